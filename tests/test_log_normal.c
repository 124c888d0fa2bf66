/* tests/test_log_normal.c - prices as distributions: the split log-normal */
#include <math.h>

#include <gsl/gsl_cdf.h>

#include "base/stats.h"
#include "cost/split.h"
#include "tests/check.h"

static void quantiles_are_those_asked_for(void **state)
{
	static const double row[][3] = { { 0.7, 1, 1.3 },  { 0.9, 1, 2 },
					 { 0.5, 1, 1.05 }, { 80, 100, 300 },
					 { 1, 1, 2 },	   { 0.4, 1, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct split s = split_of(row[i][0], row[i][1], row[i][2]);

		assert_near(split_quantile(&s, 0.1) / row[i][0], 1,
			    row[i][0] == row[i][1] ? 0.15 : 1e-9);
		assert_near(split_quantile(&s, 0.9) / row[i][2], 1,
			    row[i][2] == row[i][1] ? 0.15 : 1e-9);
	}
}

/* The logarithm's density is highest at the mode, and has no step there. */
static void the_likely_price_is_the_mode(void **state)
{
	struct split s = split_of(80, 100, 200);
	double best = 0, at = 0, last = 0;

	(void)state;
	for (double p = 0.02; p < 0.98; p += 0.0005) {
		double x = log(split_quantile(&s, p)),
		       y = log(split_quantile(&s, p + 0.0005));
		double density = 0.0005 / (y - x);

		if (density > best) {
			best = density;
			at = x;
		}
		if (last > 0)
			assert_true(fabs(density / last - 1) < 0.1);
		last = density;
	}
	assert_near(exp(at), 100, 2);
}

static void a_table_is_as_good_as_the_function(void **state)
{
	struct split s = split_of(0.6, 1, 2.5);
	struct split_grid grid = { { 0 } };
	struct split_table t = { .of = s, .grid = &grid };

	(void)state;
	for (double z = -4; z < 4; z += 0.003)
		assert_near(split_look_up(&t, z) /
				    split_quantile(&s, gsl_cdf_ugaussian_P(z)),
			    1, 5e-4);
	assert_near(split_look_up(&t, 99), split_look_up(&t, 5), 1e-12);
	assert_near(split_look_up(&t, -99), split_look_up(&t, -5), 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_those_asked_for),
		cmocka_unit_test(the_likely_price_is_the_mode),
		cmocka_unit_test(a_table_is_as_good_as_the_function),
	};

	return cmocka_run_group_tests_name("cost/split", tests, NULL, NULL);
}
