/*
 * tests/test_crossovers.c - what of drawn deals is told to make both equal: each knob that does between a quarter
 * of it and four times, found by turning it to both ends
 */
#include "tests/check.h"

#include <math.h>

#include "foretoken/cost.h"

enum { DRAWS = 400, KNOBS = 4 };

static const char *const names[KNOBS] = { "price of a server", "price of the network",
					  "rent", "model FLOP/s per GPU" };

static double *knob_of(struct ft_deal *d, int k)
{
	double *const knobs[KNOBS] = { &d->capital_usd[FT_CAPITAL_SERVERS],
				       &d->capital_usd[FT_CAPITAL_NETWORK],
				       &d->rent_usd_per_gpu_hour, &d->tokens_per_s };

	return knobs[k];
}

static struct ft_deal drawn(uint64_t *seed, bool rented)
{
	struct ft_deal d = { .gpus = 1024,
			     .electricity_usd_per_kwh = 0.1,
			     .it_w = 1e6,
			     .idle_w = 6e5,
			     .provisioned_w = 1.2e6,
			     .goodput = 0.9,
			     .terms = { .horizon_years = 4,
					.cost_of_capital_frac = 0.08,
					.pue = 1.2,
					.utilization_frac = 0.9 } };

	d.tokens_per_s = 1e6 * (0.5 + 0.01 * (double)(rnd(seed) % 100));
	if (rented)
		d.rent_usd_per_gpu_hour = 0.5 + 0.01 * (double)(rnd(seed) % 200);
	else
		d.capital_usd[FT_CAPITAL_SERVERS] = 1e7 * (double)(1 + rnd(seed) % 5);
	if (!rented && rnd(seed) % 4)
		d.capital_usd[FT_CAPITAL_NETWORK] = 1e6 * (double)(1 + rnd(seed) % 20);
	return d;
}

/* By how much b is dearer than a when its knob is turned. */
static double dearer(const struct ft_deal *a, struct ft_deal b, int k, double times)
{
	*knob_of(&b, k) *= times;
	return ft_deal_usd_per_million_tokens(&b) - ft_deal_usd_per_million_tokens(a);
}

static void each_knob_that_crosses_is_told(void **state)
{
	uint64_t seed = 11;
	int crossing[KNOBS] = { 0 }, others[KNOBS] = { 0 };

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct ft_deal a = drawn(&seed, i % 2), b = drawn(&seed, i % 3 == 0);
		struct ft_crossover x[FT_CROSSOVERS_MOST];
		size_t n = ft_deals_crossovers(&a, &b, 128, 4e11, x);

		for (int k = 0; k < KNOBS; k++) {
			bool crosses = *knob_of(&b, k) > 0 &&
				       dearer(&a, b, k, 0.25) * dearer(&a, b, k, 4) < 0;
			int told = 0;

			for (size_t j = 0; j < n; j++)
				told += !strcmp(x[j].what, names[k]);
			assert_int_equal(told, crosses);
			crossing[k] += crosses;
			others[k] += !crosses;
		}
	}
	for (int k = 0; k < KNOBS; k++)
		assert_true(crossing[k] > 5 && others[k] > 5);
}

/* 2.3 years, or 27.6 months of which each is a twelfth of one: the same but for the last bit. */
static void what_both_share_may_be_said_in_other_units(void **state)
{
	uint64_t seed = 11;
	struct ft_deal a = drawn(&seed, false), b = a;
	struct ft_crossover x[FT_CROSSOVERS_MOST];
	size_t n, years = 0, electricity = 0;

	(void)state;
	b.capital_usd[FT_CAPITAL_SERVERS] *= 1.2;
	b.it_w = b.idle_w = 1e5;
	b.terms.horizon_years = nextafter(a.terms.horizon_years, 9);
	b.electricity_usd_per_kwh = nextafter(a.electricity_usd_per_kwh, 9);
	n = ft_deals_crossovers(&a, &b, 128, 4e11, x);
	for (size_t i = 0; i < n; i++) {
		years += !strcmp(x[i].what, "years of use of both");
		electricity += !strcmp(x[i].what, "electricity of both");
	}
	assert_int_equal(years, 1);
	assert_int_equal(electricity, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_both_share_may_be_said_in_other_units),
		cmocka_unit_test(each_knob_that_crosses_is_told),
	};

	return cmocka_run_group_tests_name("crossovers", tests, NULL, NULL);
}
