/*
 * tests/test_run_asked.c - which size answers what a scenario's `run` asks, and which is like another cluster: sizes
 * that are drawn, and those of a job, looked through one by one
 */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study_decide.h"
#include "foretoken/study_plan.h"
#include "tests/check.h"

enum { DRAWS = 3000, SIZES = 6, JOBS = 3, ASKED = 12, ODDS = 2048, MOST = 8 };

static const double DAY_S = 86400;

static uint64_t seed = 131;

/* A size, and what is known of it. */
struct size {
	bool there, fits;
	struct ft_fleet fleet;
};

static struct ft_asked any_question(int most)
{
	struct ft_asked q = { .tokens = 0 };

	if (rnd_below(&seed, 2))
		q.tokens = 1e9;
	if (rnd_below(&seed, 2))
		q.days = 1 + rnd_below(&seed, most);
	if (rnd_below(&seed, 2))
		q.budget_usd = 1 + rnd_below(&seed, most);
	if (rnd_below(&seed, 2))
		q.megawatts = 1 + rnd_below(&seed, most);
	return q;
}

/* ---- looked through ---------------------------------------------------------------------- */

/* May this size be the answer? which: 1, 2: in time at P50, P90; 3: budget; 4: megawatts. */
static bool may_be(const struct ft_asked *q, const struct size *z, int which)
{
	const struct ft_fleet *f = &z->fleet;

	if (!z->there || !z->fits)
		return false;
	if (which <= 2)
		return f->days[which] <= q->days;
	if (which == 4)
		return f->megawatts <= q->megawatts;
	if (q->tokens > 0)
		return f->usd[1] <= q->budget_usd &&
		       (q->days <= 0 || f->days[1] <= q->days);
	return q->days <= 0 || f->days[1] > q->days * (1 - 2e-9); /* all of them */
}

/* Is a the better answer? Sizes rise. */
static bool beats(const struct ft_asked *q, const struct size *a, const struct size *b,
		  int which)
{
	if (which <= 2)
		return a->fleet.gpus < b->fleet.gpus;
	if (which == 4 || (q->tokens <= 0 && q->days > 0))
		return a->fleet.gpus > b->fleet.gpus;
	return a->fleet.cost.usd_per_million_tokens <
	       b->fleet.cost.usd_per_million_tokens;
}

static const struct size *best_of(const struct ft_asked *q, const struct size *z,
				  size_t n, int which)
{
	const struct size *found = NULL;

	for (size_t i = 0; i < n; i++) /* of equally cheap ones the smallest */
		if (may_be(q, &z[i], which) &&
		    (!found || beats(q, &z[i], found, which)))
			found = &z[i];
	return found;
}

static const char *title_of(const struct ft_asked *q, int which)
{
	static const char *const titles[] = {
		"",
		"smallest in time, at P50",
		"smallest in time, at P90",
		"cheapest within the budget",
		"largest within the megawatts",
	};

	return which == 3 && q->days > 0 && q->tokens <= 0 ?
		       "largest within the budget" :
		       titles[which];
}

static const char *none_of(const struct size *z, size_t n, int which)
{
	bool any_fits = false;

	for (size_t i = 0; i < n; i++)
		any_fits |= z[i].there && z[i].fits;
	return which <= 2 ? "no size that the batch allows is done in time and fits" :
	       !any_fits  ? "no size fits in memory" :
	       which == 3 ? "the budget pays for no size that fits" :
			    "all sizes that fit draw more";
}

static bool is_asked(const struct ft_asked *q, int which)
{
	return which <= 2 ? q->tokens > 0 && q->days > 0 :
	       which == 3 ? q->budget_usd > 0 :
			    q->megawatts > 0;
}

/* From `at` on, the answers to all that is asked. */
static void is_answer(const struct ft_run_answer *is, size_t at,
		      const struct ft_asked *q, const struct size *z, size_t n)
{
	for (int which = 1; which <= 4; which++) {
		const struct size *best = best_of(q, z, n, which);
		const struct ft_fleet *f = &is->fleet[at];

		if (!is_asked(q, which))
			continue;
		assert_true(at++ < is->n);
		assert_string_equal(f->question, title_of(q, which));
		if (best) {
			assert_null(f->none);
			assert_int_equal(f->gpus, best->fleet.gpus);
			near_frac(f->days[1], best->fleet.days[1], 1e-9);
			near_frac(f->usd[2], best->fleet.usd[2], 1e-9);
		} else {
			assert_string_equal(f->none, none_of(z, n, which));
			assert_int_equal(f->gpus, 0);
		}
	}
	assert_int_equal(is->n, at);
}

/* ---- sizes that are drawn ------------------------------------------------------------------ */

static struct ft_fleet any_fleet(int64_t gpus)
{
	struct ft_fleet f = { .gpus = gpus, .tokens = 1e9 };

	f.days[0] = 1 + rnd_below(&seed, 4);
	f.days[1] = f.days[0] + rnd_below(&seed, 3);
	f.days[2] = f.days[1] + rnd_below(&seed, 3);
	f.usd[1] = 1 + rnd_below(&seed, 6);
	f.usd[2] = 1 + rnd_below(&seed, 6);
	f.megawatts = 1 + rnd_below(&seed, 6);
	f.cost.usd_per_million_tokens = 1 + rnd_below(&seed, 4);
	return f;
}

static void the_best_of_drawn_sizes_answers(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct ft_scenario s = { .asked = any_question(6) };
		struct size z[SIZES] = { { 0 } };
		struct ft_outcome o[SIZES];
		struct ft_planned best[SIZES];
		struct ft_plans plans[SIZES], *list[SIZES];
		struct ft_run_answer is;
		size_t n = (size_t)rnd_below(&seed, SIZES + 1), there = 0;
		bool turned = rnd_below(&seed, 2);
		struct ft_asked q = s.asked;

		if (q.tokens > 0 && rnd_below(&seed, 2)) {
			s.asked.flop = 7; /* tokens are as many as the plan's take */
			s.asked.tokens = 0;
		}
		for (size_t k = 0; k < n; k++) {
			bool searched = rnd_below(&seed, 8),
			     asked = rnd_below(&seed, 8);

			z[k] = (struct size){ searched && asked, true,
					      any_fleet(8 + 8 * (int64_t)k) };
			there += z[k].there;
			o[k] = (struct ft_outcome){ .asked.n = asked };
			o[k].asked.fleet[0] = z[k].fleet;
			best[k] =
				(struct ft_planned){ .scenario = &s, .outcome = &o[k] };
			plans[k] = (struct ft_plans){ .n = searched, .best = &best[k] };
			list[turned ? n - 1 - k : k] = &plans[k];
		}
		ft_plans_run(list, n, &is);
		if (there)
			is_answer(&is, 0, &q, z, n);
		else
			assert_int_equal(is.n, 0);
	}
}

/* ---- sizes of a job -------------------------------------------------------------------------- */

static const char *const jobs[JOBS] = {
	"{model: {name: llama3-8b, num_hidden_layers: 4}, cluster: {gpu: h100-sxm, gpus: 8}, "
	"training: {sequence_length: 1024, micro_batch_size: 1, global_batch_size: 16}}",
	"{model: {name: llama3-8b, num_hidden_layers: 24}, cluster: {gpu: h200, gpus: 16}, "
	"training: {sequence_length: 512, micro_batch_size: 1, global_batch_size: 32, "
	"sharding: fsdp}, cost: {electricity: 0.3 USD/kWh}}",
	"{model: {name: llama3-8b, num_hidden_layers: 40}, cluster: {gpu: h100-sxm, gpus: 8}, "
	"training: {sequence_length: 512, micro_batch_size: 1, global_batch_size: 8, "
	"sharding: ddp}}", /* fits nowhere */
};

struct job {
	struct arena mem;
	struct ft_shelf *shelf;
	struct ft_scenario *s, *at[MOST];
	struct ft_outcome own, o[MOST];
	struct ft_odds odds[MOST];
	struct size size[MOST];
	size_t n, given; /* which is the cluster as given */
};

static void odds_of(const struct ft_scenario *s, const struct ft_outcome *o,
		    struct ft_odds *odds)
{
	struct ft_side side = ft_outcome_side(s, o);
	struct ft_error err;

	ok_or_say(ft_odds_of(&side, 1, ODDS, odds, &err), err);
}

static void load(struct job *j, const char *text)
{
	struct ft_error err;
	int64_t gpus[FT_FLEETS];
	struct node *root;

	*j = (struct job){ .shelf = ft_shelf_new() };
	root = node_read_text(&j->mem, "job", text, strlen(text), &err);
	ok_or_say(root, err);
	j->s = ft_scenario_from(j->shelf, root, "job", true, &err);
	ok_or_say(j->s, err);
	ok_or_say(ft_study_simulate(j->s, NULL, NULL, &j->own, &err), err);
	j->n = ft_study_fleets(j->s, gpus);
	assert_in_range(j->n, 3, MOST);
	for (size_t i = 0; i < j->n; i++) {
		j->at[i] = ft_scenario_resized(j->s, gpus[i], 1, &err);
		ok_or_say(j->at[i], err);
		ok_or_say(ft_study_simulate(j->at[i], NULL, NULL, &j->o[i], &err), err);
		odds_of(j->at[i], &j->o[i], &j->odds[i]);
		if (gpus[i] == j->s->cluster->gpus)
			j->given = i;
	}
}

static void drop(struct job *j)
{
	for (size_t i = 0; i < j->n; i++) {
		ft_outcome_release(&j->o[i]);
		ft_scenario_free(j->at[i]);
	}
	ft_outcome_release(&j->own);
	ft_scenario_free(j->s);
	ft_shelf_free(j->shelf);
	arena_release(&j->mem);
}

/* Kept tokens/s and dollars a million tokens, at P10, P50 and P90. */
static void work_out(const struct ft_asked *q, const struct ft_scenario *s,
		     const struct ft_outcome *o, const struct ft_odds *odds,
		     struct size *z)
{
	const struct ft_deal deal = ft_outcome_deal(s, o);
	const double kept[] = { odds->p90[FT_DRAWN_KEPT][0],
				odds->p50[FT_DRAWN_KEPT][0],
				odds->p10[FT_DRAWN_KEPT][0] };
	const double usd[] = { odds->p10[FT_DRAWN_USD][0], odds->p50[FT_DRAWN_USD][0],
			       odds->p90[FT_DRAWN_USD][0] };
	struct ft_fleet *f = &z->fleet;
	double tokens = INFINITY;

	*z = (struct size){ .there = true, .fits = o->fits };
	if (q->days > 0)
		tokens = kept[1] * q->days * DAY_S;
	if (q->budget_usd > 0)
		tokens = fmin(tokens, 1e6 * q->budget_usd / usd[1]);
	f->tokens = q->tokens > 0 ? q->tokens : tokens;
	for (int i = 0; i < 3; i++) {
		f->days[i] = f->tokens / kept[i] / DAY_S;
		f->usd[i] = f->tokens / 1e6 * usd[i];
	}
	f->gpus = s->cluster->gpus;
	f->failures = f->days[1] * DAY_S / deal.failures.mtbf_s;
	f->megawatts = o->cost.facility_provisioned_w / 1e6;
	f->megawatts_low = odds->p10[FT_DRAWN_FULL_W][0] / 1e6;
	f->megawatts_high = odds->p90[FT_DRAWN_FULL_W][0] / 1e6;
	f->energy_mwh = f->tokens * o->cost.joules_per_token / 1e6 / 3600;
	f->cost = o->cost;
	f->beyond[FT_LIMIT_DAYS] = q->days > 0 && f->days[1] > q->days * (1 + 1e-9);
	f->beyond[FT_LIMIT_BUDGET] =
		q->budget_usd > 0 && f->usd[1] > q->budget_usd * (1 + 1e-9);
	f->beyond[FT_LIMIT_MEGAWATTS] =
		q->megawatts > 0 && f->megawatts > q->megawatts * (1 + 1e-9);
	f->beyond[FT_LIMIT_HORIZON] =
		!o->bom->rented &&
		f->days[1] > s->terms.horizon_years * 365 * (1 + 1e-9);
	f->beyond[FT_LIMIT_MEMORY] = !o->fits;
}

/* Near what some size has, so that it is just enough, or just not. */
static struct ft_asked draw_question(const struct job *j)
{
	/* the smallest is less than a day, and than a dollar */
	const struct ft_asked some = { .tokens = rnd_below(&seed, 2) ? 1e12 : 0.5 };
	struct ft_asked q = any_question(1);
	struct size z;
	size_t like = (size_t)rnd_below(&seed, (int)j->n);
	double times = rnd_below(&seed, 2) ? 1.0001 : 0.9999;

	work_out(&some, j->at[like], &j->o[like], &j->odds[like], &z);
	if (q.tokens > 0)
		q.tokens = some.tokens;
	if (q.days > 0)
		q.days = z.fleet.days[1 + rnd_below(&seed, 2)] * times;
	if (q.budget_usd > 0)
		q.budget_usd = z.fleet.usd[1] * (rnd_below(&seed, 2) ? 1.0001 : 0.9999);
	if (q.megawatts > 0)
		q.megawatts =
			z.fleet.megawatts * (rnd_below(&seed, 2) ? 1.0001 : 0.9999);
	return q;
}

static void is_given(const struct ft_fleet *f, const struct ft_fleet *want)
{
	assert_string_equal(f->question, "the cluster as given");
	assert_null(f->none);
	assert_int_equal(f->gpus, want->gpus);
	near_frac(f->tokens, want->tokens, 1e-9);
	for (int i = 0; i < 3; i++) {
		near_frac(f->days[i], want->days[i], 1e-9);
		near_frac(f->usd[i], want->usd[i], 1e-9);
	}
	near_frac(f->megawatts, want->megawatts, 1e-9);
	near_frac(f->megawatts_low, want->megawatts_low, 1e-9);
	near_frac(f->megawatts_high, want->megawatts_high, 1e-9);
	near_frac(f->energy_mwh, want->energy_mwh, 1e-9);
	for (int l = 0; l < FT_LIMITS; l++)
		assert_int_equal(f->beyond[l], want->beyond[l]);
	near_frac(f->failures, want->failures, 1e-9);
	near_frac(f->cost.usd_per_million_tokens, want->cost.usd_per_million_tokens,
		  1e-9);
}

static void ask(struct job *j)
{
	struct ft_asked q = draw_question(j);
	bool trains = q.tokens > 0 || q.days > 0 || q.budget_usd > 0;
	struct ft_error err = { 0 };
	double per_token;

	j->s->asked = q;
	if (q.tokens > 0 && rnd_below(&seed, 2)) { /* said in FLOPs */
		per_token = ft_plan_flop_per_token(j->s->model, j->s->plan,
						   j->s->model->causal);
		j->s->asked.flop = q.tokens * per_token;
		j->s->asked.tokens = 0;
	}
	for (size_t i = 0; i < j->n; i++)
		work_out(&q, j->at[i], &j->o[i], &j->odds[i], &j->size[i]);
	if (!trains && q.megawatts > 0) {
		assert_false(ft_study_run(j->s, &j->own, &err));
		assert_non_null(strstr(err.text, "alone trains nothing"));
		return;
	}
	ok_or_say(ft_study_run(j->s, &j->own, &err), err);
	if (!trains) {
		assert_int_equal(j->own.asked.n, 0);
		return;
	}
	is_given(&j->own.asked.fleet[0], &j->size[j->given].fleet);
	is_answer(&j->own.asked, 1, &q, j->size, j->n);
}

static void the_best_of_a_jobs_sizes_answers(void **state)
{
	struct ft_error err;
	struct job j;

	(void)state;
	for (int k = 0; k < JOBS; k++) {
		load(&j, jobs[k]);
		for (int i = 0; i < ASKED; i++)
			ask(&j);
		j.s->asked = (struct ft_asked){ .tokens = 1, .flop = 1 };
		assert_false(ft_study_run(j.s, &j.own, &err));
		assert_non_null(strstr(err.text, "give one of the two"));
		drop(&j);
	}
}

/* ---- like another cluster ---------------------------------------------------------------------- */

static double worth(const struct ft_scenario *s, const struct ft_outcome *o,
		    enum ft_basis basis)
{
	return basis == FT_EQUAL_GPUS ?
		       (double)s->cluster->gpus :
	       basis == FT_EQUAL_MONEY ?
		       o->cost.usd_per_gpu_hour * (double)s->cluster->gpus :
	       basis == FT_EQUAL_MEGAWATTS ? o->cost.facility_provisioned_w :
					     o->tokens_per_s * o->cost.goodput;
}

/* Of the second job, as the first one's k-th size. */
static int64_t likest(const struct job *a, size_t k, const struct job *b,
		      enum ft_basis basis)
{
	double want = worth(a->at[k], &a->o[k], basis), least = INFINITY;
	int64_t found = 0;

	for (size_t i = 0; i < b->n; i++) {
		double is = worth(b->at[i], &b->o[i], basis);
		double times = is > want ? is / want : want / is;

		if (!b->o[i].fits)
			continue;
		if (basis == FT_EQUAL_TIME ? is >= want && !found : times < least) {
			found = b->at[i]->cluster->gpus;
			least = times;
		}
	}
	return found;
}

static void the_likest_size_is_found(void **state)
{
	struct job a, b;
	struct ft_error err = { 0 };

	(void)state;
	load(&a, jobs[0]);
	load(&b, jobs[1]);
	for (size_t k = 0; k < a.n; k++)
		for (int basis = 0; basis < FT_BASES; basis++) {
			int64_t want = likest(&a, k, &b, (enum ft_basis)basis);

			near_frac(ft_study_measure(a.at[k], &a.o[k],
						   (enum ft_basis)basis),
				  worth(a.at[k], &a.o[k], (enum ft_basis)basis), 1e-12);
			assert_int_equal(ft_study_fleet_like(a.at[k], &a.o[k], b.s,
							     (enum ft_basis)basis,
							     &err),
					 want);
			if (!want)
				assert_non_null(
					strstr(err.text, "no size of job that fits"));
		}
	drop(&a);
	drop(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_best_of_drawn_sizes_answers),
		cmocka_unit_test(the_best_of_a_jobs_sizes_answers),
		cmocka_unit_test(the_likest_size_is_found),
	};

	return cmocka_run_group_tests_name("run asked", tests, NULL, NULL);
}
