/* tests/test_network_rails.c - of rails alike one is laid out, with the faults of the worst */
#include "tests/check.h"

#include <math.h>

#include "tests/laid.h"

/* The expected least of as many draws of how many of four links work, of which nine in ten do. */
static double least_expected(int draws)
{
	double at_least = 1, sum = 0, p[5];

	for (int k = 0; k <= 4; k++)
		p[k] = (k == 0 || k == 4 ? 1 :
			k == 2		 ? 6 :
					   4) *
		       pow(0.9, k) * pow(0.1, 4 - k);
	for (int k = 1; k <= 4; k++) {
		at_least -= p[k - 1];
		sum += pow(at_least, draws);
	}
	return sum;
}

/* Eight rails of which one is laid out: a leaf's pool is that of the rail with the fewest. */
static void a_pool_is_that_of_the_poorest_rail(void **state)
{
	enum { SEEDS = 200 };
	double sum[2] = { 0, 0 }, leaves[2] = { 0, 0 };

	(void)state;
	for (uint64_t i = 0; i < 2 * SEEDS; i++) {
		const struct ft_imperfections im = { .failed_uplinks_frac = 0.1,
						     .seed = i };
		struct ft_fabric f = clos;
		struct laid l;

		f.adaptive = true;
		lay(&l, &f, 24, i % 2 ? 8 : 1, &im);
		gsl_rng_set(l.rng, i);
		links_lay_out(&l.w, l.rng);
		assert_int_equal(l.w.uplinks, 4);
		for (int64_t leaf = 0; leaf < l.w.leaves; leaf++)
			sum[i % 2] += l.w.capacity[2 * (24 + leaf * 4)] / 50e9;
		leaves[i % 2] += (double)l.w.leaves;
		gone(&l);
	}
	near_frac(sum[0] / leaves[0], least_expected(1), 0.03);
	near_frac(sum[1] / leaves[1], least_expected(8), 0.03);
}

/* Share of line rate where each node of six leaves sends to the next leaf, hashed. */
static double hashed_share(int nics, uint64_t seed)
{
	const struct ft_imperfections im = { .given = true, .seed = seed };
	const struct network_sends next = { NETWORK_SHIFT, 4, 1, 0, false };
	struct ft_error err;
	struct laid l;
	double share;

	lay(&l, &clos, 24, nics, &im);
	assert_int_equal(l.w.per_leaf, 4);
	assert_int_equal(l.w.uplinks, 4);
	ok_or_say(network_share(&l.c, &next, &share, &err), err);
	gone(&l);
	return share;
}

/* Each of eight rails is hashed by itself: all wait for the one where most flows meet. */
static void hashed_rails_are_as_slow_as_the_slowest(void **state)
{
	enum { SEEDS = 200, RAILS = 8 };
	double one = 0, least = 0, rails = 0;

	(void)state;
	for (uint64_t i = 0; i < SEEDS; i++) {
		double slowest = 1;

		for (uint64_t k = 0; k < RAILS; k++) {
			double share = hashed_share(1, i * RAILS + k);

			one += share / RAILS;
			slowest = fmin(slowest, share);
		}
		least += slowest;
		rails += hashed_share(RAILS, i);
	}
	near_frac(rails, least, 0.03);
	assert_true(rails < 0.95 * one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pool_is_that_of_the_poorest_rail),
		cmocka_unit_test(hashed_rails_are_as_slow_as_the_slowest),
	};

	return cmocka_run_group_tests_name("sim/network_rails", tests, NULL, NULL);
}
