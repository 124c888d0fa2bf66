/* tests/test_stats.c - order statistics as base/stats.h defines them */

#include "base/stats.h"
#include "tests/check.h"

static void the_median_is_the_middle_or_the_mean_of_the_middle_two(void **state)
{
	double odd[] = { 3, 1, 2 }, even[] = { 4, 1, 3, 2 };

	(void)state;
	stats_sort(odd, 3);
	stats_sort(even, 4);
	assert_true(stats_median(odd, 3) == 2);
	assert_true(stats_median(even, 4) == 2.5);
}

/* The obvious way: the least value that has at least q n values up to it. */
static void a_quantile_is_a_value_that_was_seen(void **state)
{
	double v[20];

	(void)state;
	for (size_t n = 1; n <= 20; n++) {
		for (size_t i = 0; i < n; i++)
			v[i] = (double)(i * i);
		for (int tenths = 1; tenths <= 10; tenths++) {
			size_t rank = 1;

			while (10 * rank < (size_t)tenths * n)
				rank++;
			assert_true(stats_quantile(v, n, tenths / 10.0) == v[rank - 1]);
		}
		assert_true(stats_quantile(v, n, 0) == v[0]);
	}
}

/* Sorted and asked, as the oracle; ties among the values. */
static void selecting_is_sorting_and_asking(void **state)
{
	enum { MOST = 200 };
	double any[MOST], sorted[MOST];
	unsigned seed = 1;

	(void)state;
	for (size_t n = 1; n <= MOST; n++)
		for (int tenths = 0; tenths <= 10; tenths++) {
			for (size_t i = 0; i < n; i++) {
				seed = seed * 1103515245U + 12345;
				any[i] = sorted[i] =
					(double)(seed >> (16 + 5 * (n % 3)));
			}
			stats_sort(sorted, n);
			assert_true(stats_select(any, n, tenths / 10.0) ==
				    stats_quantile(sorted, n, tenths / 10.0));
			/* the values are those that they were */
			stats_sort(any, n);
			assert_memory_equal(any, sorted, n * sizeof(*any));
		}
}

static void of_no_values_all_is_zero(void **state)
{
	(void)state;
	assert_true(stats_median(NULL, 0) == 0);
	assert_true(stats_quantile(NULL, 0, 0.9) == 0);
	assert_true(stats_select(NULL, 0, 0.9) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_median_is_the_middle_or_the_mean_of_the_middle_two),
		cmocka_unit_test(a_quantile_is_a_value_that_was_seen),
		cmocka_unit_test(selecting_is_sorting_and_asking),
		cmocka_unit_test(of_no_values_all_is_zero),
	};

	return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
