/* cost/odds.c - what is uncertain about some deals, and the deals at a draw of it */
#include "cost/odds.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/stats.h"
#include "base/text.h"
#include "cost/capital.h"
#include "cost/factors.h"

enum { SIDE_INPUTS = 192 }; /* uncertain amounts of a side, at most */

/* ---- the model ---------------------------------------------------------------------- */

/* The table of a price's distribution; inputs of the same range share one. */
static struct split_table *table_of(struct odds_model *m, double low, double high)
{
	struct split_table *table;

	for (size_t i = 0; i < m->n_inputs; i++)
		if (m->input[i].low == low && m->input[i].high == high)
			return m->input[i].table;
	table = ARENA_NEW(&m->mem, struct split_table);
	table->of = split_of(low, 1, high);
	table->grid = m->grid;
	return table;
}

static size_t input_of(struct odds_model *m, const char *key, enum cause cause,
		       double low, double high)
{
	struct input *in;
	struct split_table *table;
	double squares = 0;

	for (size_t i = 0; i < m->n_inputs; i++)
		if (!strcmp(m->input[i].key, key) && m->input[i].low == low &&
		    m->input[i].high == high)
			return i;
	table = table_of(m, low, high);
	in = &m->input[m->n_inputs];
	*in = (struct input){ key, cause, low, high, .table = table };
	for (size_t k = 0; m->factors && k < m->factors->n; k++) {
		double loading = m->factors->loading[cause][k];

		squares += pow(loading, 2);
		if (loading != 0)
			in->moved_by[in->n_factors++] = (struct loading){ k, loading };
	}
	in->own = sqrt(fmax(0, 1 - squares));
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
	if (text_begins_with(line->item, "optic"))
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

/* The book that a figure stands in, by its own name: two deals that read it there draw it once, however each was given its
 * book. */
static const char *whose(const struct ft_prices *p, const char *figure)
{
	for (size_t i = 0; i < p->n_taken; i++)
		if (!strcmp(p->taken[i].figure, figure))
			return p->taken[i].book;
	return p->name;
}

/* A figure of a price book, by its key there. */
struct figure {
	enum target target;
	enum cause cause;
	const char *key;
	const struct ft_number *x;
};

static void add_figure(struct odds_model *m, size_t side, const struct ft_prices *p,
		       struct figure f)
{
	uncertain(m, side,
		  (struct amount){
			  f.target, f.cause,
			  arena_printf(&m->mem, "%s of %s", f.key, whose(p, f.key)),
			  f.x->low, f.x->value, f.x->high });
}

/* Is a figure of the scenario the book's own? In other units its last bits may be others. */
static bool is_of_book(double x, const struct ft_number *of_book)
{
	return fabs(x - of_book->value) <= 1e-12 * of_book->value;
}

static void add_energy(struct odds_model *m, size_t side, const struct ft_purchase *p)
{
	const struct ft_number *price = &p->prices->electricity_usd_per_kwh;

	if (is_of_book(ft_cost_electricity_usd_per_kwh(p->terms, p->prices), price))
		add_figure(m, side, p->prices,
			   (struct figure){ OF_ELECTRICITY, CAUSE_ELECTRICITY,
					    "electricity", price });
}

/* The scenario's own PUE is exact. What is uncertain is what a building takes beyond its machines,
 * and buildings of equal range are taken to be one. */
static void add_building(struct odds_model *m, size_t side, const struct ft_purchase *p)
{
	const struct ft_number *pue = &p->prices->pue;

	if (is_of_book(ft_cost_pue(p->terms, p->prices), pue))
		uncertain(m, side,
			  (struct amount){ OF_OVERHEAD, CAUSE_PUE,
					   "building's overhead", pue->low - 1,
					   pue->value - 1, pue->high - 1 });
}

static const struct ft_part_line *gpu_line(const struct ft_parts *parts)
{
	for (size_t i = 0; i < parts->n; i++)
		if (parts->line[i].gpu)
			return &parts->line[i];
	return NULL;
}

/* What hw/parts or a profile says of the power of a kind of part; times: how many there are. */
static void add_watts(struct odds_model *m, size_t side, enum target target,
		      const char *key, const struct ft_number *x, double times)
{
	uncertain(m, side,
		  (struct amount){ target, CAUSE_WATTS, key, x->low * times,
				   x->value * times, x->high * times });
}

static void add_gpu_watts(struct odds_model *m, size_t side, const struct ft_gpu *gpu,
			  const struct ft_part *part)
{
	const struct {
		enum target target;
		const char *what;
		const struct ft_number *x;
	} of[] = {
		{ OF_CLOCK_EXPONENT, "clock exponent", &part->clock_exponent },
		{ OF_MEMORY_FRAC, "power of copies", &part->memory_frac },
		{ OF_WAITING_FRAC, "power of waiting", &part->waiting_frac },
		{ OF_IDLE_W, "power of idling", &gpu->idle_w },
		{ OF_LIMIT_W, "limit", &gpu->limit_w },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		add_watts(m, side, of[i].target,
			  arena_printf(&m->mem, "%s of %s", of[i].what, part->item),
			  of[i].x, 1);
}

static void add_part_watts(struct odds_model *m, size_t side,
			   const struct ft_part_line *l)
{
	const struct ft_part *part = l->part;
	const char *power = arena_printf(&m->mem, "power of %s", part->item);
	double n = (double)l->count;

	if (l->part_class == FT_PART_SPARE) {
		add_watts(m, side, OF_SPARES_W, power, &part->max_w, n);
		return;
	}
	add_watts(m, side, OF_OTHERS_W, power, &part->max_w, n);
	add_watts(m, side, OF_OTHERS_TYPICAL_W, power, &part->max_w,
		  n * part->typical_frac.value);
	add_watts(m, side, OF_OTHERS_TYPICAL_W,
		  arena_printf(&m->mem, "share of power of %s", part->item),
		  &part->typical_frac, n * part->max_w.value);
}

static void add_power(struct odds_model *m, size_t side, const struct ft_purchase *p)
{
	const struct ft_parts *parts = p->cluster->parts;
	const struct ft_part_line *gpu = gpu_line(parts);

	if (gpu)
		add_gpu_watts(m, side, p->cluster->gpu, gpu->part);
	for (size_t i = 0; i < parts->n; i++)
		if (parts->line[i].part && !parts->line[i].gpu)
			add_part_watts(m, side, &parts->line[i]);
}

/* What the goodput is computed from, where it is. A figure of the scenario's own is exact, unless
 * it is the book's. */
static void add_goodput(struct odds_model *m, size_t side, const struct ft_purchase *p)
{
	const struct ft_failure_terms *f = &p->terms->failures;
	const struct ft_prices *b = p->prices;
	const struct {
		enum target target;
		enum cause cause;
		const char *name;
		double given;
		const struct ft_number *of_book;
	} of[] = {
		{ OF_CHECKPOINT, CAUSE_CHECKPOINT, "checkpoint", f->checkpoint_s,
		  &b->checkpoint_s },
		{ OF_RESTART, CAUSE_RESTART, "restart", f->restart_s, &b->restart_s },
		{ OF_REPAIR, CAUSE_RECOVERY, "repair", f->repair_s, &b->repair_s },
		{ OF_FAILOVER, CAUSE_RECOVERY, "failover", f->failover_s,
		  &b->failover_s },
		{ OF_FLAP, CAUSE_RECOVERY, "flap", f->flap_s, &b->flap_s },
	};

	if (p->terms->goodput > 0)
		return;
	if (f->failures_per_1000_node_days < 0)
		add_figure(m, side, b,
			   (struct figure){ OF_FAILURES, CAUSE_FAILURES,
					    "failure_factor", &b->failure_factor });
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		if ((of[i].given < 0 || is_of_book(of[i].given, of[i].of_book)) &&
		    !(of[i].target == OF_CHECKPOINT && f->storage_bytes_per_s > 0))
			add_figure(m, side, b,
				   (struct figure){ of[i].target, of[i].cause,
						    of[i].name, of[i].of_book });
}

static void add_running(struct odds_model *m, size_t side, const struct ft_purchase *p)
{
	const struct ft_prices *b = p->prices;
	bool own = !p->bom->rented;

	if (own) {
		add_figure(m, side, b,
			   (struct figure){ OF_COLOCATION, CAUSE_COLOCATION,
					    "colocation",
					    &b->colocation_usd_per_kw_month });
		add_figure(m, side, b,
			   (struct figure){ OF_MAINTENANCE, CAUSE_MAINTENANCE,
					    "maintenance_frac", &b->maintenance_frac });
	}
	if (own && !b->colocation_includes_power)
		add_energy(m, side, p);
	add_building(m, side, p);
	add_power(m, side, p);
	add_goodput(m, side, p);
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
	/* a side's place is no name: what is like no other goes by its speed */
	if (!t->job && m->n_uses && m->use[m->n_uses - 1].side == side &&
	    m->use[m->n_uses - 1].target == OF_TOKENS)
		m->input[m->use[m->n_uses - 1].input].order =
			arena_printf(&m->mem, "throughput of %.12g/s", t->tokens_per_s);
}

/* ---- which input gets which dimension ------------------------------------------------- */

/* Of a name: FNV-1a, with its bits mixed as SplitMix64 does. */
static uint64_t key_of(const char *name)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3;
	h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9;
	h = (h ^ h >> 27) * 0x94d049bb133111eb;
	return h ^ h >> 31;
}

/* Two of one name are apart all the same. */
static size_t new_dimension(struct odds_model *m, const char *name)
{
	uint64_t key = key_of(name);

	for (size_t i = 0; i < m->n_dimensions; i++)
		if (m->dimension[i] == key)
			key = key_of(arena_printf(&m->mem, "%016" PRIx64, key));
	m->dimension[m->n_dimensions] = key;
	return m->n_dimensions++;
}

static bool moved_by(const struct input *in, size_t factor)
{
	for (size_t k = 0; k < in->n_factors; k++)
		if (in->moved_by[k].factor == factor)
			return true;
	return false;
}

/* Does a factor move amounts of one key alone? */
static bool factor_is_lone(const struct odds_model *m, size_t factor)
{
	const char *key = NULL;

	for (size_t i = 0; i < m->n_inputs; i++)
		if (moved_by(&m->input[i], factor)) {
			if (key && strcmp(key, m->input[i].key))
				return false;
			key = m->input[i].key;
		}
	return true;
}

/* What moves one amount alone is part of its own cause: one dimension is drawn better than two. Not where sides are
 * compared: a side's draws must not depend on the others. */
static void join_lone_factors(struct odds_model *m)
{
	for (size_t i = 0; i < m->n_inputs; i++) {
		struct input *in = &m->input[i];
		size_t kept = 0;

		for (size_t k = 0; k < in->n_factors; k++)
			if (factor_is_lone(m, in->moved_by[k].factor))
				in->own = hypot(in->own, in->moved_by[k].is);
			else
				in->moved_by[kept++] = in->moved_by[k];
		in->n_factors = kept;
	}
}

/* Factors first; inputs of one key share one. */
static void set_dimensions(struct odds_model *m)
{
	size_t factors = m->factors ? m->factors->n : 0;

	m->dimension = ARENA_ARRAY(&m->mem, factors + m->n_inputs + 1, uint64_t);
	for (size_t k = 0; k < factors; k++)
		(void)new_dimension(
			m, arena_printf(&m->mem, "factor %s", m->factors->name[k]));
	for (size_t i = 0; i < m->n_inputs; i++) {
		size_t e = 0;

		while (e < i && strcmp(m->input[e].key, m->input[i].key))
			e++;
		m->input[i].dimension =
			e < i ? m->input[e].dimension :
				new_dimension(m, m->input[i].order ? m->input[i].order :
								     m->input[i].key);
	}
}

struct odds_model *odds_model_of(const struct ft_side *side, size_t n,
				 struct ft_error *err)
{
	struct arena mem = { 0 };
	struct odds_model *m = ARENA_NEW(&mem, struct odds_model);

	m->mem = mem;
	m->n = n;
	m->grid = ARENA_NEW(&m->mem, struct split_grid);
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
	if (n == 1)
		join_lone_factors(m);
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
