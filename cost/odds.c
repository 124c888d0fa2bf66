/* cost/odds.c - what is uncertain about some deals, and the deals at a draw of it */
#include "cost/odds.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/stats.h"
#include "cost/capital.h"
#include "cost/factors.h"

enum { SIDE_INPUTS = 128 }; /* uncertain amounts of a side, at most */

/* ---- the model ---------------------------------------------------------------------- */

static size_t input_of(struct odds_model *m, const char *key, enum cause cause,
		       double low, double high)
{
	struct input *in;
	struct split split;
	double squares = 0;

	for (size_t i = 0; i < m->n_inputs; i++)
		if (!strcmp(m->input[i].key, key) && m->input[i].low == low &&
		    m->input[i].high == high)
			return i;
	in = &m->input[m->n_inputs];
	*in = (struct input){ .key = key, .cause = cause, .low = low, .high = high };
	for (size_t k = 0; m->factors && k < m->factors->n; k++)
		squares += pow(m->factors->loading[cause][k], 2);
	in->own = sqrt(fmax(0, 1 - squares));
	split = split_of(low, 1, high);
	split_tabulate(&split, &in->table);
	return m->n_inputs++;
}

/* What is not known exactly: what it is of, why, and between which bounds. */
struct amount {
	enum target target;
	enum cause cause;
	const char *key;
	double low, likely, high;
};

/* An amount of a side; one that is exact stays as the deal has it. */
static void uncertain(struct odds_model *m, size_t side, struct amount a)
{
	if (!(a.low > 0) || !(a.likely > 0) || !(a.high >= a.likely) ||
	    !(a.low <= a.likely) || a.low == a.high || m->n_inputs == m->most ||
	    m->n_uses == m->most)
		return;
	m->use[m->n_uses++] = (struct use){
		side, input_of(m, a.key, a.cause, a.low / a.likely, a.high / a.likely),
		a.target, a.likely
	};
}

static bool is_nvidia(const char *vendor)
{
	return !strcmp(vendor, "nvidia") || !strcmp(vendor, "NVIDIA");
}

static enum cause cause_of(const struct ft_purchase *p, const struct ft_bom_item *line)
{
	bool nvidia = is_nvidia(p->cluster->gpu->vendor);

	if (p->bom->rented)
		return nvidia ? CAUSE_RENT_NVIDIA : CAUSE_RENT_AMD;
	if (!strncmp(line->item, "optic", 5))
		return CAUSE_OPTICS;
	switch (line->part_class) {
	case FT_PART_SERVER:
	case FT_PART_SPARE:
		return nvidia ? CAUSE_SERVERS_NVIDIA : CAUSE_SERVERS_AMD;
	case FT_PART_NETWORK:
		return is_nvidia(line->vendor) ? CAUSE_NETWORK_NVIDIA : CAUSE_NETWORK;
	case FT_PART_STORAGE:
		return CAUSE_STORAGE;
	default:
		return CAUSE_MANAGEMENT;
	}
}

static void add_bill(struct odds_model *m, size_t side, const struct ft_purchase *p)
{
	for (size_t i = 0; i < p->bom->n_items; i++) {
		const struct ft_bom_item *line = &p->bom->item[i];
		enum cause cause = cause_of(p, line);
		/* a deal has its rent per GPU and hour */
		double per = p->bom->rented ? m->deal[side].gpus : 1;

		uncertain(
			m, side,
			(struct amount){
				.target = p->bom->rented ?
						  OF_RENT :
						  OF_CAPITAL +
							  (enum target)cost_capital_of(
								  line->part_class),
				.cause = cause,
				.key = arena_printf(&m->mem, "%s of %s", line->item,
						    line->book),
				.low = line->low_usd / per,
				.likely = line->total_usd / per,
				.high = line->high_usd / per,
			});
	}
}

/* A figure of a price book. */
static void add_figure(struct odds_model *m, size_t side, enum target target,
		       enum cause cause, const char *name, const struct ft_number *x)
{
	const char *book = m->deal[side].terms.prices;

	uncertain(m, side,
		  (struct amount){ target, cause,
				   arena_printf(&m->mem, "%s of %s", name, book),
				   x->low, x->value, x->high });
}

static void add_energy(struct odds_model *m, size_t side, const struct ft_purchase *p)
{
	const struct ft_number *price = &p->prices->electricity_usd_per_kwh;

	if (ft_cost_electricity_usd_per_kwh(p->terms, p->prices) == price->value)
		add_figure(m, side, OF_ELECTRICITY, CAUSE_ELECTRICITY, "electricity",
			   price);
	if (m->factors && !p->terms->pue_known)
		uncertain(m, side,
			  (struct amount){ OF_OVERHEAD, CAUSE_PUE,
					   "building's overhead",
					   m->factors->overhead_low, 1,
					   m->factors->overhead_high });
}

static void add_running(struct odds_model *m, size_t side, const struct ft_purchase *p)
{
	const struct ft_failure_terms *f = &p->terms->failures;
	const struct ft_prices *b = p->prices;
	bool own = !p->bom->rented, auto_goodput = !(p->terms->goodput > 0);

	if (own) {
		add_figure(m, side, OF_COLOCATION, CAUSE_COLOCATION, "colocation",
			   &b->colocation_usd_per_kw_month);
		add_figure(m, side, OF_MAINTENANCE, CAUSE_MAINTENANCE, "maintenance",
			   &b->maintenance_frac);
	}
	if (own && !b->colocation_includes_power)
		add_energy(m, side, p);
	if (auto_goodput && f->failures_per_1000_node_days < 0)
		add_figure(m, side, OF_FAILURES, CAUSE_FAILURES, "failures",
			   &b->failure_factor);
	if (auto_goodput && f->checkpoint_s < 0 && !(f->storage_bytes_per_s > 0))
		add_figure(m, side, OF_CHECKPOINT, CAUSE_CHECKPOINT, "checkpoint",
			   &b->checkpoint_s);
	if (auto_goodput && f->restart_s < 0)
		add_figure(m, side, OF_RESTART, CAUSE_RESTART, "restart",
			   &b->restart_s);
	if (m->factors && p->terms->utilization_frac < 1)
		uncertain(m, side,
			  (struct amount){ OF_UTILIZATION, CAUSE_UTILIZATION,
					   "idle hours", m->factors->idle_low, 1,
					   m->factors->idle_high });
}

static void add_side(struct odds_model *m, size_t side, const struct ft_side *s)
{
	const struct ft_throughput *t = &s->throughput;

	m->deal[side] = ft_deal_of(&s->purchase, t);
	add_bill(m, side, &s->purchase);
	add_running(m, side, &s->purchase);
	uncertain(m, side,
		  (struct amount){
			  .target = OF_TOKENS,
			  .cause = CAUSE_THROUGHPUT,
			  .key = t->job ? arena_printf(&m->mem,
						       "throughput of job %016" PRIx64,
						       t->job) :
					  arena_printf(&m->mem,
						       "throughput of side %zu", side),
			  .low = t->low,
			  .likely = t->tokens_per_s,
			  .high = t->high,
		  });
}

/* ---- one draw -------------------------------------------------------------------------- */

/* times: the amount over its likely value. */
static void apply(struct ft_deal *d, const struct use *u, double times)
{
	double amount = u->likely * times;

	switch (u->target) {
	case OF_RENT:
		d->rent_usd_per_gpu_hour = amount;
		break;
	case OF_COLOCATION:
		d->colocation_usd_per_kw_month = amount;
		break;
	case OF_ELECTRICITY:
		d->electricity_usd_per_kwh = amount;
		break;
	case OF_OVERHEAD:
		d->terms.pue = 1 + (d->terms.pue - 1) * times;
		break;
	case OF_MAINTENANCE:
		d->maintenance_frac = amount;
		break;
	case OF_FAILURES:
		d->failures.mtbf_s /= times;
		break;
	case OF_CHECKPOINT:
		d->failures.save_s = amount;
		break;
	case OF_RESTART:
		d->failures.restart_s = amount;
		break;
	case OF_UTILIZATION:
		d->terms.utilization_frac =
			fmax(0.01, 1 - (1 - d->terms.utilization_frac) * times);
		break;
	case OF_TOKENS:
		d->tokens_per_s = amount;
		break;
	default: /* bills have several lines of one kind */
		d->capital_usd[u->target - OF_CAPITAL] += amount - u->likely;
	}
}

void odds_model_at(const struct odds_model *m, const double *z,
		   struct drawn of[FT_SIDES_MOST])
{
	size_t u = 0;

	for (size_t i = 0; i < m->n; i++) {
		struct ft_deal d = m->deal[i];

		for (; u < m->n_uses && m->use[u].side == i; u++) {
			const struct use *use = &m->use[u];

			if (!isnan(z[use->input]))
				apply(&d, use,
				      split_look_up(&m->input[use->input].table,
						    z[use->input]));
		}
		of[i].usd = ft_deal_usd_per_million_tokens(&d);
		of[i].kept = d.tokens_per_s * ft_deal_goodput(&d);
		of[i].hour = of[i].usd * 1e-6 * of[i].kept * d.terms.utilization_frac *
			     3600 / d.gpus;
	}
}

/* ---- which input gets which dimension ------------------------------------------------- */

struct width {
	double usd;
	size_t input;
};

static int widest_first(const void *a, const void *b)
{
	const struct width *x = a, *y = b;

	if (x->usd != y->usd)
		return x->usd < y->usd ? 1 : -1;
	return (x->input > y->input) - (x->input < y->input);
}

/* All inputs at their likely values: no normal, so that apply leaves them. */
static void at_likely(const struct odds_model *m, double *z)
{
	for (size_t i = 0; i < m->n_inputs; i++)
		z[i] = NAN;
}

static void set_dimensions(struct odds_model *m)
{
	struct width *w = ARENA_ARRAY(&m->mem, m->n_inputs + 1, struct width);
	double *z = ARENA_ARRAY(&m->mem, m->n_inputs + 1, double);
	struct drawn low[FT_SIDES_MOST], high[FT_SIDES_MOST];
	size_t factors = m->factors ? m->factors->n : 0;

	at_likely(m, z);
	for (size_t i = 0; i < m->n_inputs; i++) {
		w[i] = (struct width){ 0, i };
		z[i] = -NORMAL_P90;
		odds_model_at(m, z, low);
		z[i] = NORMAL_P90;
		odds_model_at(m, z, high);
		z[i] = NAN;
		for (size_t k = 0; k < m->n; k++)
			w[i].usd = fmax(w[i].usd,
					fabs(high[k].usd - low[k].usd) / low[k].usd);
	}
	qsort(w, m->n_inputs, sizeof(*w), widest_first);
	m->n_dimensions = factors;
	for (size_t k = 0; k < m->n_inputs; k++) {
		struct input *in = &m->input[w[k].input];

		in->dimension = m->n_dimensions;
		for (size_t e = 0; e < k; e++)
			if (!strcmp(m->input[w[e].input].key, in->key))
				in->dimension = m->input[w[e].input].dimension;
		m->n_dimensions += in->dimension == m->n_dimensions;
	}
}

struct odds_model *odds_model_of(const struct ft_side *side, size_t n,
				 struct ft_error *err)
{
	struct arena mem = { 0 };
	struct odds_model *m = ARENA_NEW(&mem, struct odds_model);

	m->mem = mem;
	m->n = n;
	m->most = SIDE_INPUTS * n;
	m->input = ARENA_ARRAY(&m->mem, m->most, struct input);
	m->use = ARENA_ARRAY(&m->mem, m->most, struct use);
	m->factors = n ? side[0].purchase.prices->factors : NULL;
	for (size_t i = 0; i < n; i++)
		add_side(m, i, &side[i]);
	if (m->n_uses == m->most) {
		ft_fail(err, NULL,
			"a bill has more than %d lines whose prices are uncertain",
			(int)SIDE_INPUTS - 1);
		odds_model_free(m);
		return NULL;
	}
	set_dimensions(m);
	return m;
}

void odds_model_free(struct odds_model *m)
{
	struct arena mem;

	if (!m)
		return;
	mem = m->mem;
	arena_release(&mem);
}
