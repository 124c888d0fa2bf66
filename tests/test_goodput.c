/* tests/test_goodput.c - what failures leave of a job's time, against a run of months */
#include "tests/check.h"

#include <math.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_min.h>
#include <gsl/gsl_randist.h>

#include "cost/goodput.h"

/* ---- the obvious way: one failure after another ------------------------------------ */

enum doing { WORKING, SAVING, RESTARTING };

/* Shares of the time of a job that is run event by event until it has kept so many intervals. */
static struct ft_time_use run_for(const struct ft_reliability *r, double tau_s,
				  double intervals, unsigned long seed)
{
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
	double time[3] = { 0 }, kept = 0, all, saved = 0;
	double fails = 0, now = 0, attempt = 0;
	enum doing doing = WORKING;

	gsl_rng_set(rng, seed);
	fails = gsl_ran_exponential(rng, r->mtbf_s);
	while (kept < intervals) {
		double left = doing == WORKING ? tau_s :
			      doing == SAVING  ? r->save_s :
						 r->restart_s;

		if (now + left <= fails) {
			now += left;
			time[doing] += left;
			attempt += left;
			if (doing == SAVING) {
				kept++;
				saved += r->save_s;
				attempt = 0;
			}
			doing = doing == WORKING ? SAVING : WORKING;
			continue;
		}
		time[doing] += fails - now;
		now = fails;
		fails += gsl_ran_exponential(rng, r->mtbf_s);
		doing = RESTARTING;
	}
	gsl_rng_free(rng);
	all = time[WORKING] + time[SAVING] + time[RESTARTING];
	return (struct ft_time_use){
		.productive = kept * tau_s / all,
		.checkpoint = saved / all,
		.wasted = (time[WORKING] + time[SAVING] - kept * tau_s - saved) / all,
		.recovery = time[RESTARTING] / all,
	};
}

static void months_of_failures_agree(void **state)
{
	static const struct ft_reliability row[] = {
		{ .gpus = 16384, .mtbf_s = 11000, .save_s = 30, .restart_s = 600 },
		{ .gpus = 100000, .mtbf_s = 1820, .save_s = 30, .restart_s = 600 },
		{ .gpus = 1024, .mtbf_s = 1.6e5, .save_s = 200, .restart_s = 1800 },
		{ .gpus = 512,
		  .mtbf_s = 5000,
		  .save_s = 60,
		  .restart_s = 300,
		  .interval_s = 3600 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct ft_time_use u = goodput_time_use(&row[i]), ran;

		ran = run_for(&row[i], u.interval_s, 60000, 7 + i);
		assert_near(u.productive, ran.productive, 0.004);
		assert_near(u.checkpoint, ran.checkpoint, 0.002);
		assert_near(u.wasted, ran.wasted, 0.004);
		assert_near(u.recovery, ran.recovery, 0.004);
		assert_near(u.productive + u.checkpoint + u.wasted + u.recovery, 1,
			    1e-12);
	}
}

/* Saved all the time: only what a restart takes is lost, and a failure during one begins it anew. */
static void checkpoints_that_cost_nothing_lose_restarts_alone(void **state)
{
	struct ft_reliability r = { .gpus = 512, .mtbf_s = 5000, .restart_s = 300 };
	struct ft_time_use u = goodput_time_use(&r);

	(void)state;
	assert_near(u.productive, exp(-300 / 5000.), 1e-12);
	assert_near(u.recovery, 1 - u.productive, 1e-12);
	assert_near(u.checkpoint + u.wasted + u.repair + u.stalls + u.stragglers, 0,
		    1e-12);
}

/* ---- the best interval -------------------------------------------------------------- */

static double lost_with(double ln_tau, void *context)
{
	struct ft_reliability r = *(struct ft_reliability *)context;

	r.interval_s = exp(ln_tau);
	return -goodput_time_use(&r).productive;
}

/* Lambert's function finds what a minimiser finds by trying. */
static void no_interval_is_better_than_the_best(void **state)
{
	(void)state;
	for (double save_s = 1; save_s < 3000; save_s *= 4)
		for (double mtbf_s = 500; mtbf_s < 1e7; mtbf_s *= 6) {
			struct ft_reliability r = { .gpus = 1,
						    .mtbf_s = mtbf_s,
						    .save_s = save_s,
						    .restart_s = 100 };
			gsl_function f = { lost_with, &r };
			gsl_min_fminimizer *m =
				gsl_min_fminimizer_alloc(gsl_min_fminimizer_brent);
			double best = goodput_best_s(save_s, mtbf_s);

			gsl_min_fminimizer_set(m, &f, log(best) + 0.3, log(best) - 3,
					       log(best) + 4);
			for (int k = 0; k < 100; k++)
				gsl_min_fminimizer_iterate(m);
			assert_near(-gsl_min_fminimizer_f_minimum(m),
				    goodput_time_use(&r).productive, 1e-9);
			assert_near(gsl_min_fminimizer_x_minimum(m), log(best), 1e-3);
			gsl_min_fminimizer_free(m);
		}
	/* seldom failures: Young's approximation */
	assert_near(goodput_best_s(60, 1e9) / goodput_young_s(60, 1e9), 1, 1e-3);
	assert_near(goodput_best_s(1, 1e13) / goodput_young_s(1, 1e13), 1, 1e-6);
}

/* 3.79 failures per 1,000 node-days of 8 GPUs, 30 s and 600 s, at the best interval. */
static void large_clusters_are_never_without_progress(void **state)
{
	static const struct {
		double gpus, productive;
	} row[] = { { 16384, 0.880 },
		    { 100000, 0.597 },
		    { 131072, 0.524 },
		    { 262144, 0.310 } };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct ft_reliability r = {
			.gpus = row[i].gpus,
			.mtbf_s = goodput_mtbf_s(3.79, row[i].gpus / 8),
			.save_s = 30,
			.restart_s = 600,
		};

		assert_near(goodput_time_use(&r).productive, row[i].productive, 6e-4);
	}
}

/* Llama 3 on 16,384 H100: 419 unexpected interruptions in 54 days, more than 90 % effective. Of
 * weights and optimizer 5.7 TB go to storage that takes 2 TB/s, and jobs start again within a few
 * minutes (arXiv 2407.21783, 3.3.1 and 3.3.4). */
static void llama_3s_effective_time_comes_out(void **state)
{
	struct ft_reliability r = {
		.gpus = 16384,
		.mtbf_s = 54 * 86400.0 / 419,
		.save_s = 405e9 * 14 / 2e12,
		.restart_s = 600,
	};

	(void)state;
	assert_near(r.mtbf_s, goodput_mtbf_s(3.79, 2048), 20);
	assert_true(goodput_time_use(&r).productive > 0.9);
}

static void ways_to_recover_are_told_apart(void **state)
{
	struct ft_reliability r = { .gpus = 5184,
				    .blast_gpus = 72,
				    .mtbf_s = 40000,
				    .save_s = 20,
				    .restart_s = 600,
				    .repair_s = 4 * 3600,
				    .failover_s = 60,
				    .spares = true };
	double hot = goodput_time_use(&r).productive, without, tolerant, cold;

	(void)state;
	r.spares = false;
	without = goodput_time_use(&r).productive;
	/* 72 GPUs wait four hours for each failure */
	assert_near(hot / without, 1 + 72 * r.repair_s / (r.mtbf_s * r.gpus), 1e-12);
	r.recovery = FT_RECOVERY_FAULT_TOLERANT;
	tolerant = goodput_time_use(&r).productive;
	r.recovery = FT_RECOVERY_COLD;
	cold = goodput_time_use(&r).productive;
	assert_true(tolerant > without && without > cold);
	r.blast_gpus = 8;
	r.recovery = FT_RECOVERY_HOT;
	assert_true(goodput_time_use(&r).productive > without);
}

/* Parts that never fail cost nothing, whatever would be done. */
static void what_never_fails_is_never_recovered(void **state)
{
	(void)state;
	for (int how = 0; how <= FT_RECOVERY_FAULT_TOLERANT; how++) {
		struct ft_reliability r = { .gpus = 8,
					    .blast_gpus = 8,
					    .restart_s = 600,
					    .repair_s = 3600,
					    .failover_s = 60 };

		r.recovery = how;
		assert_true(goodput_time_use(&r).productive == 1);
	}
}

/* Checkpoints at a stated interval cost what they cost where failures are ever fewer. */
static void without_failures_an_interval_still_costs(void **state)
{
	(void)state;
	for (int how = 0; how <= FT_RECOVERY_COLD; how++) {
		struct ft_reliability r = { .gpus = 8,
					    .recovery = how,
					    .save_s = 600,
					    .restart_s = 900,
					    .repair_s = 3600,
					    .interval_s = 60,
					    .spares = true };
		struct ft_time_use never = goodput_time_use(&r), seldom;

		r.mtbf_s = 1e13;
		seldom = goodput_time_use(&r);
		assert_near(never.productive, 60 / 660., 1e-15);
		assert_near(never.checkpoint, 600 / 660., 1e-15);
		assert_near(never.productive, seldom.productive, 1e-6);
		assert_near(never.checkpoint, seldom.checkpoint, 1e-6);
		assert_true(never.interval_s == seldom.interval_s);
	}
}

static void small_losses_add_up(void **state)
{
	struct ft_reliability r = { .gpus = 8,
				    .flap_rate_per_s = 1e-4,
				    .flap_s = 100,
				    .straggler_frac = 0.05 };
	struct ft_time_use u = goodput_time_use(&r);

	(void)state;
	assert_near(u.stalls, 0.01 / 1.01, 1e-12);
	assert_near(u.stragglers, 0.05 / 1.01, 1e-12);
	assert_near(u.productive + u.stalls + u.stragglers, 1, 1e-12);
	r = (struct ft_reliability){ .gpus = 8 };
	assert_true(goodput_time_use(&r).productive == 1);
	r = (struct ft_reliability){ .gpus = 8, .mtbf_s = 1000 };
	assert_true(goodput_time_use(&r).productive == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checkpoints_that_cost_nothing_lose_restarts_alone),
		cmocka_unit_test(months_of_failures_agree),
		cmocka_unit_test(no_interval_is_better_than_the_best),
		cmocka_unit_test(large_clusters_are_never_without_progress),
		cmocka_unit_test(llama_3s_effective_time_comes_out),
		cmocka_unit_test(ways_to_recover_are_told_apart),
		cmocka_unit_test(what_never_fails_is_never_recovered),
		cmocka_unit_test(without_failures_an_interval_still_costs),
		cmocka_unit_test(small_losses_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
