/* tests/test_odds_many.c - a bill of many uncertain lines, against plain draws of them */
#include "tests/check.h"
#include "tests/bare_cluster.h"

#include <math.h>

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_sort.h>

#include "cost/split.h"
#include "foretoken/cost.h"

enum { LINES_MOST = 120, DRAWS = 20000 };

/* A cluster without power that costs its bill: n lines of a million USD. */
static struct ft_cost cost_of(size_t n, double low_usd, double high_usd)
{
	static char name[LINES_MOST][32];
	static struct ft_bom_item item[LINES_MOST];
	struct bare_cluster bare;
	struct ft_prices prices = { 0 };
	struct ft_bom bom = { .n_items = n,
			      .item = item,
			      .total_usd = 1e6 * (double)n };
	struct ft_cost_terms terms = {
		.horizon_years = 4, .pue = 1, .utilization_frac = 1, .goodput = 1
	};
	struct ft_cost cost;
	struct ft_error err;

	bare_cluster(&bare, 8, 1, 0);
	for (size_t i = 0; i < n; i++) {
		snprintf(name[i], sizeof(name[i]), "line-%zu", i);
		item[i] = (struct ft_bom_item){ .item = name[i],
						.book = "test",
						.vendor = "",
						.total_usd = 1e6,
						.low_usd = low_usd,
						.high_usd = high_usd,
						.part_class = FT_PART_NETWORK,
						.network = true };
	}
	ok_or_say(ft_cost_compute(&(struct ft_purchase){ &bare.cluster, &prices, &bom,
							 &terms, false },
				  &(struct ft_throughput){ .tokens_per_s = 1e6,
							   .busy_frac = 1 },
				  &cost, &err),
		  err);
	return cost;
}

/* P10 and P90 of the sum of n such lines, in millions. */
static void plain_range(size_t n, double low_usd, double high_usd, double range[2])
{
	static double sum[DRAWS];
	struct split s = split_of(low_usd * 1e-6, 1, high_usd * 1e-6);
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_taus);

	for (int d = 0; d < DRAWS; d++) {
		sum[d] = 0;
		for (size_t i = 0; i < n; i++)
			sum[d] += split_quantile(&s, gsl_rng_uniform_pos(rng));
	}
	gsl_rng_free(rng);
	gsl_sort(sum, 1, DRAWS);
	range[0] = sum[DRAWS / 10];
	range[1] = sum[DRAWS / 10 * 9];
}

/* Lines move apart, be they fewer or more than the sequence of draws has dimensions. */
static void many_lines_are_as_uncertain_as_plain_draws(void **state)
{
	static const size_t lines[] = { 1, 2, 39, 40, 41, 120 };

	(void)state;
	for (size_t k = 0; k < sizeof(lines) / sizeof(*lines); k++) {
		size_t n = lines[k];
		struct ft_cost c = cost_of(n, 0.6e6, 1.8e6);
		double each = 1e6 / (8 * 4 * 8760), want[2];

		plain_range(n, 0.6e6, 1.8e6, want);
		near_frac(c.usd_per_gpu_hour, (double)n * each, 1e-12);
		near_frac(c.usd_per_gpu_hour_low, want[0] * each, 0.025);
		near_frac(c.usd_per_gpu_hour_high, want[1] * each, 0.025);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_lines_are_as_uncertain_as_plain_draws),
	};

	return cmocka_run_group_tests_name("odds_many", tests, NULL, NULL);
}
