/* tests/test_fit_stack.c - factors of a stack recovered from runs made up here */
#include <math.h>

#include "study/fit_factors.h"
#include "tests/check.h"

enum { RUNS = 12 };

/* Each run's step is made up of five parts, one for each factor, that add up to 1; nothing
 * overlaps. Runs differ in which parts are large. */
static void make_runs(struct fit_run run[RUNS], const double truth[FT_FIT_FACTORS])
{
	uint64_t seed = 7;

	for (size_t i = 0; i < RUNS; i++) {
		double part[FT_FIT_FACTORS], all = 0, step = 0;

		for (size_t k = 0; k < FT_FIT_FACTORS; k++)
			all += part[k] = 1 + rnd(&seed) % 10;
		for (size_t k = 0; k < FT_FIT_FACTORS; k++) {
			part[k] /= all;
			step += part[k] * truth[k];
			for (int p = 0; p < FIT_POINTS; p++)
				run[i].reply[k][p] =
					log(1 + part[k] * (exp(fit_point(k, p)) - 1));
		}
		run[i].ratio = log(step);
		run[i].fold = i;
	}
}

static void no_error_moves_no_factor(void **state)
{
	static const double ones[FT_FIT_FACTORS] = { 1, 1, 1, 1, 1 };
	struct fit_run run[RUNS];
	double x[FT_FIT_FACTORS];

	(void)state;
	make_runs(run, ones);
	fit_factors(run, RUNS, RUNS, x);
	for (size_t k = 0; k < FT_FIT_FACTORS; k++)
		assert_true(x[k] == 0);
}

static void one_slow_part_is_found(void **state)
{
	static const double truth[FT_FIT_FACTORS] = { 1, 1.4, 1, 1, 1 };
	struct fit_run run[RUNS];
	double x[FT_FIT_FACTORS];

	(void)state;
	make_runs(run, truth);
	fit_factors(run, RUNS, RUNS, x);
	near_frac(exp(x[1]), 1.4, 0.1);
	for (size_t i = 0; i < RUNS; i++)
		assert_true(fabs(run[i].ratio - fit_reply(&run[i], x)) < 0.04);
}

static void one_wild_run_moves_little(void **state)
{
	static const double truth[FT_FIT_FACTORS] = { 1, 1.4, 1, 1, 1 };
	struct fit_run run[RUNS];
	double x[FT_FIT_FACTORS], y[FT_FIT_FACTORS];

	(void)state;
	make_runs(run, truth);
	fit_factors(run, RUNS, 3, x); /* without run 3 */
	run[3].ratio = 3;
	fit_factors(run, RUNS, RUNS, y);
	for (size_t i = 0; i < RUNS; i++)
		if (i != 3)
			assert_true(fabs(fit_reply(&run[i], x) -
					 fit_reply(&run[i], y)) < 0.08);
}

static void factors_stay_within_their_bounds(void **state)
{
	static const double truth[FT_FIT_FACTORS] = { 50, 50, 50, 50, 50 };
	struct fit_run run[RUNS];
	double x[FT_FIT_FACTORS];

	(void)state;
	make_runs(run, truth);
	fit_factors(run, RUNS, RUNS, x);
	for (size_t k = 0; k < FT_FIT_FACTORS; k++)
		assert_true(x[k] <= fit_point(k, FIT_POINTS - 1) + 1e-9 && x[k] >= 0);
}

/* At the points themselves the reply is what was simulated. */
static void replies_are_what_was_seen(void **state)
{
	static const double ones[FT_FIT_FACTORS] = { 1, 1, 1, 1, 1 };
	struct fit_run run[RUNS];

	(void)state;
	make_runs(run, ones);
	for (size_t k = 0; k < FT_FIT_FACTORS; k++)
		for (int p = 0; p < FIT_POINTS; p++) {
			double x[FT_FIT_FACTORS] = { 0 };

			x[k] = fit_point(k, p);
			assert_true(fabs(fit_reply(&run[0], x) - run[0].reply[k][p]) <
				    1e-12);
		}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_error_moves_no_factor),
		cmocka_unit_test(one_slow_part_is_found),
		cmocka_unit_test(one_wild_run_moves_little),
		cmocka_unit_test(factors_stay_within_their_bounds),
		cmocka_unit_test(replies_are_what_was_seen),
	};

	return cmocka_run_group_tests_name("fit_stack", tests, NULL, NULL);
}
