/* cost/odds_draws.c - draws of uncertain deals: intervals, odds, causes */
#include <math.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_qrng.h>
#include <gsl/gsl_rng.h>

#include "base/arena.h"
#include "base/stats.h"
#include "cost/odds.h"

/* The first points of Sobol's sequence lie along diagonals in its high dimensions: with those from the
 * 2,048th on 1,024 draws are within 1.3 % of 262,144 in six clusters, with the first 2.6 %, with those from five
 * later ones on 1.6 to 2.2, from the 1,024th on 3.4. A block from a power of two on, as long as that at most, has each fraction of its length once in each dimension. */
enum { SOBOL_MOST = 40, SEED = 20261122, FIRST_POINT = 2048 };

struct source {
	gsl_qrng *sobol;
	gsl_rng *rest;
	size_t quasi, all;
	/* Points of Sobol's sequence are, in each dimension, other orders of the
	 * same few fractions: normal[i] is what i / n_normals becomes; 0: not asked for yet. */
	double *normal;
	size_t n_normals;
};

static void source_open(struct source *s, size_t dimensions, size_t draws,
			struct arena *mem)
{
	size_t first = FIRST_POINT;
	double skipped[SOBOL_MOST];

	while (first < draws)
		first *= 2;
	s->n_normals = 2 * first;
	s->normal = ARENA_ARRAY(mem, s->n_normals, double);
	s->all = dimensions;
	s->quasi = dimensions < SOBOL_MOST ? dimensions : SOBOL_MOST;
	s->sobol = NULL;
	if (s->quasi)
		s->sobol =
			allocated(gsl_qrng_alloc(gsl_qrng_sobol, (unsigned)s->quasi));
	for (size_t i = 1; s->sobol && i < first; i++)
		gsl_qrng_get(s->sobol, skipped);
	s->rest = allocated(gsl_rng_alloc(gsl_rng_mt19937));
	gsl_rng_set(s->rest, SEED);
}

static void source_close(struct source *s)
{
	if (s->sobol)
		gsl_qrng_free(s->sobol);
	if (s->rest)
		gsl_rng_free(s->rest);
}

static double normal_at(double p)
{
	return gsl_cdf_ugaussian_Pinv(fmin(1 - 1e-9, fmax(1e-9, p)));
}

static double normal_of(struct source *s, double p)
{
	double at = p * (double)s->n_normals;
	size_t i = (size_t)at;

	if ((double)i != at || i >= s->n_normals)
		return normal_at(p);
	if (s->normal[i] == 0)
		s->normal[i] = normal_at(p);
	return s->normal[i];
}

static void source_next(struct source *s, double *z)
{
	if (s->sobol)
		gsl_qrng_get(s->sobol, z);
	for (size_t i = s->quasi; i < s->all; i++)
		z[i] = gsl_rng_uniform_pos(s->rest);
	for (size_t i = 0; i < s->all; i++)
		z[i] = i < s->quasi ? normal_of(s, z[i]) : normal_at(z[i]);
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
	source_open(&s, m->n_dimensions, draws, &m->mem);
	for (size_t k = 0; k < draws; k++) {
		source_next(&s, draw);
		mix(m, draw, z);
		odds_model_at(m, z, of);
		count(odds, side, of);
		keep(&all, odds, k, of);
	}
	source_close(&s);
	conclude(odds, &all);
	add_causes(m, z, odds);
	odds_model_free(m);
	return true;
}
