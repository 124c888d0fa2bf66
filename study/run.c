/*
 * study/run.c - the planner's questions: a fleet for so many tokens, days, dollars, megawatts
 *
 * The cluster as given is the first answer. The others are sizes of the same plan (more or fewer
 * replicas, the batch as it is), each simulated:
 *   tokens and days    the smallest that is done in time, at P50 and at P90
 *   budget             the one whose tokens are cheapest, if the budget pays for them (and they
 *                      are done in the days); with days alone the largest that it pays for so long
 *   megawatts          the largest that draws no more at full load, PUE included
 * A size whose step is more than is simulated (few replicas of a large batch) is left out, which the answer says.
 * Each answers its own question; which of the other limits it goes beyond stands beside it.
 * ft_plans_run asks the same of sizes whose plans were searched.
 */
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/plain.h"
#include "foretoken/study_decide.h"
#include "foretoken/study_plan.h"
#include "study/shelf.h"

enum { DRAWS = 2048 };

static const double DAY_S = 86400, YEAR_DAYS = 365;

/* One size, simulated or not yet. */
struct size {
	int64_t gpus;
	struct ft_scenario *scenario;
	bool known, fits, left_out;
	struct ft_fleet fleet;
};

struct asking {
	const struct ft_scenario *s;
	struct ft_asked asked; /* tokens filled in from flop */
	size_t n;
	struct size *size; /* rising */
	struct arena mem;  /* of which they are */
	struct ft_error *err;
};

/* ---- one fleet ---------------------------------------------------------------------- */

/* What is trained: as asked, or as much as the days or the budget allow. */
static double tokens_of(const struct ft_asked *asked, const struct ft_odds *odds)
{
	double in_days = odds->p50[FT_DRAWN_KEPT][0] * asked->days * DAY_S;
	double for_budget = asked->budget_usd / odds->p50[FT_DRAWN_USD][0] * 1e6;

	if (asked->tokens > 0)
		return asked->tokens;
	if (asked->days > 0 && asked->budget_usd > 0)
		return fmin(in_days, for_budget);
	return asked->days > 0 ? in_days : for_budget;
}

const char *ft_limit_name(enum ft_limit limit)
{
	static const char *const names[FT_LIMITS] = { "days", "budget", "megawatts",
						      "horizon", "memory" };

	return names[limit];
}

bool ft_fleet_keeps(const struct ft_fleet *f)
{
	for (int l = 0; l < FT_LIMITS; l++)
		if (f->beyond[l])
			return false;
	return !f->none;
}

static void hold_to_limits(const struct ft_asked *asked, double horizon_years,
			   struct ft_fleet *f)
{
	const double has[] = { f->days[1], f->usd[1], f->megawatts, f->days[1] };
	const double most[] = { asked->days, asked->budget_usd, asked->megawatts,
				horizon_years * YEAR_DAYS };

	for (int l = 0; l < FT_LIMIT_MEMORY; l++)
		f->beyond[l] = most[l] > 0 && has[l] > most[l] * (1 + 1e-9);
}

static bool fleet_of(const struct asking *a, const struct ft_scenario *s,
		     const struct ft_outcome *o, struct ft_fleet *f)
{
	const struct ft_side side = ft_outcome_side(s, o);
	struct ft_deal deal = ft_deal_of(&side.purchase, &side.throughput);
	struct ft_odds odds;
	double run_s;

	if (!ft_odds_of(&side, 1, DRAWS, &odds, a->err))
		return false;
	*f = (struct ft_fleet){
		.gpus = s->cluster->gpus,
		.tokens = tokens_of(&a->asked, &odds),
		.megawatts = o->cost.facility_provisioned_w * 1e-6,
		.megawatts_low = odds.p10[FT_DRAWN_FULL_W][0] * 1e-6,
		.megawatts_high = odds.p90[FT_DRAWN_FULL_W][0] * 1e-6,
		.cost = o->cost,
		.tokens_per_s = o->tokens_per_s,
	};
	f->days[0] = f->tokens / odds.p90[FT_DRAWN_KEPT][0] / DAY_S;
	f->days[1] = f->tokens / odds.p50[FT_DRAWN_KEPT][0] / DAY_S;
	f->days[2] = f->tokens / odds.p10[FT_DRAWN_KEPT][0] / DAY_S;
	f->usd[0] = f->tokens * 1e-6 * odds.p10[FT_DRAWN_USD][0];
	f->usd[1] = f->tokens * 1e-6 * odds.p50[FT_DRAWN_USD][0];
	f->usd[2] = f->tokens * 1e-6 * odds.p90[FT_DRAWN_USD][0];
	run_s = f->days[1] * DAY_S;
	f->energy_mwh = o->cost.joules_per_token * f->tokens / 3.6e9;
	f->failures = deal.failures.mtbf_s > 0 ? run_s / deal.failures.mtbf_s : 0;
	hold_to_limits(&a->asked, o->bom->rented ? 0 : s->terms.horizon_years, f);
	f->beyond[FT_LIMIT_MEMORY] = !o->fits;
	return true;
}

/* ---- all sizes ------------------------------------------------------------------------ */

/* A smaller cluster than the one that has its slow GPUs may do, and would not be asked. */
static bool hindered(const struct asking *a, int64_t gpus, const struct ft_error *why)
{
	const struct node *n = node_path(a->s->given, "cluster.imperfections");

	return scenario_size_hindered(a->s, gpus) &&
	       !ft_fail(
		       a->err, &n->mark,
		       "other sizes of the cluster are asked for, and one of %lld GPUs cannot have these "
		       "imperfections (%.120s); leave them out",
		       (long long)gpus, why->text);
}

/* Sizes that the plan cannot have are left out. */
static bool gather(struct asking *a)
{
	int64_t gpus[FT_FLEETS];
	size_t n = ft_study_fleets(a->s, gpus);

	a->size = ARENA_ARRAY(&a->mem, n, struct size);
	for (size_t i = 0; i < n; i++) {
		struct ft_error why;
		struct ft_scenario *s = ft_scenario_resized(a->s, gpus[i], 1, &why);

		if (s)
			a->size[a->n++] =
				(struct size){ .gpus = gpus[i], .scenario = s };
		else if (hindered(a, gpus[i], &why))
			return false;
	}
	return true;
}

static void release(struct asking *a)
{
	for (size_t i = 0; i < a->n; i++)
		ft_scenario_free(a->size[i].scenario);
	arena_release(&a->mem);
}

static bool know(struct asking *a, size_t i)
{
	struct size *z = &a->size[i];
	struct ft_outcome o;
	bool ok;

	if (z->known)
		return true;
	if (!ft_study_simulate(z->scenario, NULL, NULL, &o, a->err)) {
		z->known = z->left_out = a->err->too_large;
		return z->known;
	}
	ok = fleet_of(a, z->scenario, &o, &z->fleet);
	z->fits = o.fits;
	z->known = ok;
	ft_outcome_release(&o);
	return ok;
}

static bool in_time(const struct asking *a, const struct size *z, int quantile)
{
	return z->fits && z->fleet.days[quantile] <= a->asked.days;
}

/* The smallest that is done in time; a->n: none. One after the other, since more GPUs may be
 * slower where they leave a fast domain. */
static bool smallest(struct asking *a, int quantile, size_t *found)
{
	for (*found = 0; *found < a->n; ++*found) {
		if (!know(a, *found))
			return false;
		if (in_time(a, &a->size[*found], quantile))
			break;
	}
	return true;
}

/* Tokens that are asked must be paid for, and be done in time; without them all days. */
static bool affordable(const struct asking *a, const struct size *z)
{
	const struct ft_fleet *f = &z->fleet;

	if (!(a->asked.tokens > 0)) /* less is trained where the budget ends first */
		return !(a->asked.days > 0) || f->days[1] >= a->asked.days * (1 - 1e-9);
	return f->usd[1] <= a->asked.budget_usd &&
	       (!(a->asked.days > 0) || f->days[1] <= a->asked.days);
}

/* The one of the cheapest tokens; or the largest, where days are to be paid for. */
static bool for_budget(struct asking *a, size_t *found)
{
	bool largest = a->asked.days > 0 && !(a->asked.tokens > 0);

	*found = a->n;
	for (size_t i = 0; i < a->n; i++) {
		const struct ft_fleet *f = &a->size[i].fleet;

		if (!know(a, i))
			return false;
		if (a->size[i].fits && affordable(a, &a->size[i]) &&
		    (largest || *found == a->n ||
		     f->cost.usd_per_million_tokens <
			     a->size[*found].fleet.cost.usd_per_million_tokens))
			*found = i;
	}
	return true;
}

static bool for_megawatts(struct asking *a, size_t *found)
{
	*found = a->n;
	for (size_t i = a->n; i-- > 0 && *found == a->n;) {
		if (!know(a, i))
			return false;
		if (a->size[i].fits && a->size[i].fleet.megawatts <= a->asked.megawatts)
			*found = i;
	}
	return true;
}

/* ---- the answer ------------------------------------------------------------------------ */

static void put(const struct asking *a, struct ft_run_answer *to, const char *question,
		size_t found, const char *none)
{
	struct ft_fleet *f = &to->fleet[to->n++];

	*f = (struct ft_fleet){ .none = none };
	if (found < a->n)
		*f = a->size[found].fleet;
	f->question = question;
}

/* Why there is none, once all sizes are known. */
static const char *none_of(const struct asking *a, const char *why)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->size[i].fits)
			return why;
	return a->n ? "no size fits in memory" : "the batch and the plan allow no size";
}

static bool search(struct asking *a, struct ft_run_answer *to)
{
	const struct ft_asked *q = &a->asked;
	size_t found;

	if (q->tokens > 0 && q->days > 0) {
		if (!smallest(a, 1, &found))
			return false;
		put(a, to, "smallest in time, at P50", found,
		    "no size that the batch allows is done in time and fits");
		if (!smallest(a, 2, &found))
			return false;
		put(a, to, "smallest in time, at P90", found,
		    "no size that the batch allows is done in time and fits");
	}
	if (q->budget_usd > 0) {
		if (!for_budget(a, &found))
			return false;
		put(a, to,
		    q->days > 0 && !(q->tokens > 0) ? "largest within the budget" :
						      "cheapest within the budget",
		    found, none_of(a, "the budget pays for no size that fits"));
	}
	if (q->megawatts > 0) {
		if (!for_megawatts(a, &found))
			return false;
		put(a, to, "largest within the megawatts", found,
		    none_of(a, "all sizes that fit draw more"));
	}
	return true;
}

static int64_t left_out(const struct asking *a)
{
	int64_t gpus = 0;

	for (size_t i = 0; i < a->n; i++)
		if (a->size[i].left_out)
			gpus = a->size[i].gpus;
	return gpus;
}

static bool asks_for_fleets(const struct ft_asked *q)
{
	return (q->tokens > 0 && q->days > 0) || q->budget_usd > 0 || q->megawatts > 0;
}

bool run_makes_sense(const struct ft_asked *q, struct ft_error *err)
{
	if (q->tokens > 0 && q->flop > 0)
		return ft_fail(err, &q->mark,
			       "run has tokens and flop; give one of the two");
	if (q->megawatts > 0 && !(q->tokens > 0) && !(q->flop > 0) && !(q->days > 0) &&
	    !(q->budget_usd > 0))
		return ft_fail(err, &q->mark,
			       "run.megawatts alone trains nothing: give tokens, flop, "
			       "days or budget beside it");
	return true;
}

bool ft_study_run(const struct ft_scenario *s, struct ft_outcome *o,
		  struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct ft_run_answer *to = &o->asked;
	struct asking a = { .s = s, .asked = s->asked, .err = err };
	double flop_per_token =
		ft_plan_flop_per_token(s->model, s->plan, s->model->causal);
	bool ok;

	*to = (struct ft_run_answer){ 0 };
	if (!(s->asked.tokens > 0) && !(s->asked.days > 0) && !(s->asked.flop > 0) &&
	    !(s->asked.budget_usd > 0) && !(s->asked.megawatts > 0))
		return true;
	if (!run_makes_sense(&s->asked, err))
		return false;
	if (a.asked.flop > 0)
		a.asked.tokens = a.asked.flop / flop_per_token;
	if (!fleet_of(&a, s, o, &to->fleet[0]))
		return false;
	to->fleet[0].question = "the cluster as given";
	to->n = 1;
	ok = !asks_for_fleets(&a.asked) || (gather(&a) && search(&a, to));
	to->left_out = left_out(&a);
	release(&a);
	return ok;
}

static int by_gpus(const void *a, const void *b)
{
	int64_t x = ((const struct size *)a)->gpus, y = ((const struct size *)b)->gpus;

	return (x > y) - (x < y);
}

void ft_plans_run(struct ft_plans *const *plans, size_t n, struct ft_run_answer *to)
{
	struct ft_error unused;
	struct asking a = { .err = &unused };

	*to = (struct ft_run_answer){ 0 };
	a.size = ARENA_ARRAY(&a.mem, n, struct size);
	for (size_t i = 0; i < n; i++) {
		const struct ft_planned *best = plans[i]->best;

		if (!plans[i]->n || !best->outcome->asked.n)
			continue;
		a.asked = best->scenario->asked;
		a.size[a.n++] =
			(struct size){ .gpus = best->outcome->asked.fleet[0].gpus,
				       .known = true, /* none is simulated */
				       .fits = true,
				       .fleet = best->outcome->asked.fleet[0] };
		if (a.asked.flop > 0)
			a.asked.tokens = a.size[0].fleet.tokens;
	}
	qsort(a.size, a.n, sizeof(*a.size), by_gpus);
	if (a.n)
		(void)search(&a, to);
	arena_release(&a.mem);
}

/* ---- alike in money, megawatts or time ------------------------------------------------- */

const char *ft_basis_name(enum ft_basis basis)
{
	static const char *const names[FT_BASES] = {
		[FT_EQUAL_GPUS] = "gpus",
		[FT_EQUAL_MONEY] = "money",
		[FT_EQUAL_MEGAWATTS] = "megawatts",
		[FT_EQUAL_TIME] = "time",
	};

	return names[basis];
}

double ft_study_measure(const struct ft_scenario *s, const struct ft_outcome *o,
			enum ft_basis basis)
{
	switch (basis) {
	case FT_EQUAL_MONEY:
		return o->cost.usd_per_gpu_hour * (double)s->cluster->gpus;
	case FT_EQUAL_MEGAWATTS:
		return o->cost.facility_provisioned_w;
	case FT_EQUAL_TIME:
		return o->tokens_per_s * o->cost.goodput;
	default:
		return (double)s->cluster->gpus;
	}
}

int64_t ft_study_fleet_like(const struct ft_scenario *first,
			    const struct ft_outcome *of_first,
			    const struct ft_scenario *s, enum ft_basis basis,
			    struct ft_error *err)
{
	double wanted = ft_study_measure(first, of_first, basis), slack = 1e-6 * wanted;
	double nearest = INFINITY;
	struct asking a = { .s = s, .err = err };
	int64_t found = 0;
	bool ok = gather(&a);

	for (size_t i = 0; ok && i < a.n; i++) {
		struct ft_outcome o;
		double has;
		bool fits;

		if (!ft_study_simulate(a.size[i].scenario, NULL, NULL, &o, err)) {
			ok = err->too_large; /* and is not like the first */
			continue;
		}
		has = ft_study_measure(a.size[i].scenario, &o, basis);
		fits = o.fits;
		ft_outcome_release(&o);
		if (fits && basis == FT_EQUAL_TIME && has >= wanted - slack) {
			found = a.size[i].gpus;
			break;
		}
		if (fits && basis != FT_EQUAL_TIME &&
		    fabs(log(has / wanted)) < nearest - 1e-6) {
			nearest = fabs(log(has / wanted));
			found = a.size[i].gpus;
		}
	}
	release(&a);
	if (ok && !found)
		ft_fail(err, &s->cluster->gpus_mark,
			"no size of %s that fits and that its batch and plan allow is "
			"like the first scenario in %s",
			s->label, ft_basis_name(basis));
	return ok ? found : 0;
}
