/* cost/odds_draws.c - draws of uncertain deals: intervals, odds, causes */
#include <math.h>

#include <gsl/gsl_cdf.h>

#include "base/arena.h"
#include "base/stats.h"
#include "cost/odds.h"

enum { ROUNDS = 3 };

/* A Latin hypercube: in each dimension every draw has another n-th of the distribution, in an order that the dimension's
 * name makes. So a dimension is drawn alike whatever others there are. Source: McKay, Beckman, Conover,
 * Technometrics 21 (1979), 239-245. */
struct source {
	const struct odds_model *m;
	size_t n;
	uint64_t mask; /* all ones, as many as the bits of the last draw's number */
	unsigned half; /* of those bits */
	struct turn {
		uint64_t plus[ROUNDS], times[ROUNDS];
	} * turn;	/* [n_dimensions] what a number goes through */
	double *normal; /* [n] of the middle of each n-th */
};

static void source_open(struct source *s, const struct odds_model *m, size_t draws,
			struct arena *mem)
{
	*s = (struct source){ .m = m,
			      .n = draws,
			      .turn = ARENA_ARRAY(mem, m->n_dimensions + 1,
						  struct turn),
			      .normal = ARENA_ARRAY(mem, draws, double) };
	while (s->mask < draws - 1)
		s->mask = s->mask << 1 | 1;
	s->half = (unsigned)__builtin_popcountll(s->mask) / 2 + 1;
	for (size_t i = 0; i < m->n_dimensions; i++)
		for (int k = 0; k < ROUNDS; k++) {
			s->turn[i].plus[k] = m->dimension[i] >> 16 * k;
			s->turn[i].times[k] = m->dimension[i] >> 8 * k | 1;
		}
	for (size_t i = 0; i < draws; i++)
		s->normal[i] =
			gsl_cdf_ugaussian_Pinv(((double)i + 0.5) / (double)draws);
}

/* The draw's place among n, each once: what is done to a number of so many bits can be undone, and is done until it is below n. */
static inline size_t place(const struct source *s, const struct turn *t, size_t draw)
{
	uint64_t x = draw;

	do {
		for (int k = 0; k < ROUNDS; k++) {
			x = (x + t->plus[k]) * t->times[k] & s->mask;
			x ^= x >> s->half;
		}
	} while (x >= s->n);
	return (size_t)x;
}

static void source_next(const struct source *s, size_t draw, double *z)
{
	for (size_t i = 0; i < s->m->n_dimensions; i++)
		z[i] = s->normal[place(s, &s->turn[i], draw)];
}

/* Each input's normal from those of its factors and its own. */
static void mix(const struct odds_model *m, const double *draw, double *z)
{
	for (size_t i = 0; i < m->n_inputs; i++) {
		const struct input *in = &m->input[i];

		z[i] = in->own * draw[in->dimension];
		for (size_t k = 0; k < in->n_factors; k++)
			z[i] += in->moved_by[k].is * draw[in->moved_by[k].factor];
	}
}

/* Does scenario i take part? Those that can run do; where none can, all do. */
static bool counts(const struct ft_side *side, size_t n, size_t i)
{
	for (size_t k = 0; side[i].cannot_run && k < n; k++)
		if (!side[k].cannot_run)
			return false;
	return true;
}

/* Counts who is the cheapest in a draw; scenarios of the same dollars share it. */
static void count(struct ft_odds *odds, const struct ft_side *side,
		  const struct drawn *of)
{
	double least = INFINITY;
	size_t alike = 0;

	for (size_t i = 0; i < odds->n; i++) {
		double usd = of[i].of[FT_DRAWN_USD];

		for (size_t j = 0; j < odds->n; j++)
			odds->below[i][j] += usd < of[j].of[FT_DRAWN_USD];
		if (!counts(side, odds->n, i) || usd > least)
			continue;
		alike = usd < least ? 1 : alike + 1;
		least = usd;
	}
	for (size_t i = 0; i < odds->n; i++)
		if (counts(side, odds->n, i) && of[i].of[FT_DRAWN_USD] <= least)
			odds->cheapest_frac[i] += 1. / (double)alike;
}

/* P10, P50 and P90 of what was drawn, whose order is lost. */
static void quantiles(double *drawn, size_t n, double *p10, double *p50, double *p90)
{
	*p10 = stats_select(drawn, n, 0.1);
	*p50 = stats_select(drawn, n, 0.5);
	*p90 = stats_select(drawn, n, 0.9);
}

/* All that was drawn of the sides, draws of one side beside each other. */
struct draws {
	double *of[FT_DRAWN];
};

static void keep(struct draws *all, const struct ft_odds *odds, size_t draw,
		 const struct drawn *side)
{
	for (int k = 0; k < FT_DRAWN; k++)
		for (size_t i = 0; i < odds->n; i++)
			all->of[k][i * odds->draws + draw] = side[i].of[k];
}

static void conclude(struct ft_odds *odds, const struct draws *d)
{
	double all = (double)odds->draws;

	for (size_t i = 0; i < odds->n; i++) {
		for (int k = 0; k < FT_DRAWN; k++)
			quantiles(d->of[k] + i * odds->draws, odds->draws,
				  &odds->p10[k][i], &odds->p50[k][i], &odds->p90[k][i]);
		odds->cheapest_frac[i] /= all;
		for (size_t j = 0; j < odds->n; j++)
			odds->below[i][j] /= all;
	}
}

void ft_odds_ranges(const struct ft_odds *o, size_t i, struct ft_cost *c)
{
	c->usd_per_million_tokens_low = o->p10[FT_DRAWN_USD][i];
	c->usd_per_million_tokens_high = o->p90[FT_DRAWN_USD][i];
	c->usd_per_gpu_hour_low = o->p10[FT_DRAWN_HOUR][i];
	c->usd_per_gpu_hour_high = o->p90[FT_DRAWN_HOUR][i];
	c->facility_provisioned_w_low = o->p10[FT_DRAWN_FULL_W][i];
	c->facility_provisioned_w_high = o->p90[FT_DRAWN_FULL_W][i];
	c->average_power_w_low = o->p10[FT_DRAWN_AVERAGE_W][i];
	c->average_power_w_high = o->p90[FT_DRAWN_AVERAGE_W][i];
	c->joules_per_token_low = o->p10[FT_DRAWN_JOULES][i];
	c->joules_per_token_high = o->p90[FT_DRAWN_JOULES][i];
}

/* ---- causes ------------------------------------------------------------------------------ */

static const char *cause_name(enum cause cause)
{
	static const char *const names[CAUSES] = {
		[CAUSE_SERVERS_NVIDIA] = "servers, NVIDIA",
		[CAUSE_SERVERS_AMD] = "servers, AMD",
		[CAUSE_NETWORK_NVIDIA] = "switches and cables, NVIDIA",
		[CAUSE_NETWORK] = "switches and cables, others",
		[CAUSE_OPTICS] = "optics",
		[CAUSE_STORAGE] = "storage",
		[CAUSE_MANAGEMENT] = "management and racks",
		[CAUSE_RENT_NVIDIA] = "rent, NVIDIA",
		[CAUSE_RENT_AMD] = "rent, AMD",
		[CAUSE_COLOCATION] = "colocation",
		[CAUSE_ELECTRICITY] = "electricity",
		[CAUSE_PUE] = "PUE of the building",
		[CAUSE_WATTS] = "watts of GPUs and hosts",
		[CAUSE_MAINTENANCE] = "maintenance",
		[CAUSE_FAILURES] = "failure rate",
		[CAUSE_CHECKPOINT] = "checkpoint time",
		[CAUSE_RESTART] = "restart time",
		[CAUSE_RECOVERY] = "time of repair, failover or flap",
		[CAUSE_UTILIZATION] = "utilisation",
		[CAUSE_THROUGHPUT] = "predicted throughput",
	};

	return names[cause];
}

/* Dollars with all inputs of a cause at z; false when the model has none of it. */
static bool with(const struct odds_model *m, enum cause cause, double z, double *work,
		 double *usd)
{
	struct drawn of[FT_SIDES_MOST];
	bool any = false;

	for (size_t i = 0; i < m->n_inputs; i++) {
		bool mine = m->input[i].cause == cause;

		work[i] = mine ? z : NAN;
		any |= mine;
	}
	odds_model_at(m, work, of);
	for (size_t i = 0; i < m->n; i++)
		usd[i] = of[i].of[FT_DRAWN_USD];
	return any;
}

static double swing(const struct ft_odds *odds, const struct ft_cause *c)
{
	double most = 0;

	for (size_t i = 0; i < odds->n; i++)
		most = fmax(most, fabs(c->high[i] - c->low[i]));
	return most;
}

static void add_causes(const struct odds_model *m, double *work, struct ft_odds *odds)
{
	for (int c = 0; c < CAUSES; c++) {
		struct ft_cause new = { .name = cause_name((enum cause)c) };
		size_t k = odds->n_causes;

		if (!with(m, (enum cause)c, -NORMAL_P90, work, new.low))
			continue;
		with(m, (enum cause)c, NORMAL_P90, work, new.high);
		if (!(swing(odds, &new) > 0)) /* of watts or tokens alone */
			continue;
		for (; k && swing(odds, &new) > swing(odds, &odds->cause[k - 1]); k--)
			odds->cause[k] = odds->cause[k - 1];
		odds->cause[k] = new;
		odds->n_causes++;
	}
}

bool ft_odds_of(const struct ft_side *side, size_t n, size_t draws,
		struct ft_odds *odds, struct ft_error *err)
{
	struct odds_model *m = odds_model_of(side, n, err);
	struct drawn of[FT_SIDES_MOST];
	struct draws all;
	double *draw, *z;
	struct source s;

	*odds = (struct ft_odds){ .n = n, .draws = draws };
	if (!m)
		return false;
	draw = ARENA_ARRAY(&m->mem, m->n_dimensions + 1, double);
	z = ARENA_ARRAY(&m->mem, m->n_inputs + 1, double);
	for (int k = 0; k < FT_DRAWN; k++)
		all.of[k] = ARENA_ARRAY(&m->mem, n * draws, double);
	source_open(&s, m, draws, &m->mem);
	for (size_t k = 0; k < draws; k++) {
		source_next(&s, k, draw);
		mix(m, draw, z);
		odds_model_at(m, z, of);
		count(odds, side, of);
		keep(&all, odds, k, of);
	}
	conclude(odds, &all);
	add_causes(m, z, odds);
	odds_model_free(m);
	return true;
}
