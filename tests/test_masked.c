/*
 * tests/test_masked.c - experts behind a mask (traces/masked.h): FLOPs of each product and bytes of the mask in closed form;
 * arrays of experts for all copies of all ranks
 */
#include <math.h>

#include "tests/counted.h"
#include "tests/routed.h"

enum { SAME = 3 };

/* Slots of a sequence, an expert's counted one by one as MaxText does. */
static double slots_of(const struct drawn *d, double capacity)
{
	int64_t copies = SEQUENCE * d->per_token, each = 0;

	while (each * d->experts < copies)
		each++;
	return (double)d->experts * fmax(1, floor((double)each * capacity));
}

static void products_with_a_mask_bring_tokens_into_slots(void **state)
{
	static const char *const names[] = { "expert_dispatch", "expert_combine",
					     "expert_dispatch_back",
					     "expert_combine_back",
					     "expert_mask_gradient" };
	static const double capacities[] = { 1, 1.25, 2, 4 };
	uint64_t seed = 3;

	(void)state;
	for (int i = 0; i < 40; i++) {
		double capacity = capacities[rnd(&seed) % 4], slots, flop, passes;
		bool again = rnd(&seed) % 2;
		struct drawn d;
		struct parts p;
		char more[100];

		snprintf(more, sizeof(more),
			 ", recompute: %s, moe_capacity_factor: %.2f",
			 again ? "full" : "none", capacity);
		do
			draw(&d, &seed, more);
		while (d.tp > 1 || d.sliced || strcmp(d.dispatcher, "alltoall") != 0);
		build(&p, d.model, d.plan, "maxtext-2025", RANKS);
		slots = slots_of(&d, capacity);
		flop = 2 * SEQUENCE * slots * (double)d.h;
		passes = (double)(d.layers * d.micro_batches);
		for (int k = 0; k < 5; k++) {
			/* what runs again stops in front of the sum */
			double times = k == 0 && again ? 2 : 1;

			near_frac(sum_of(p.graph, names[k]).flop, times * passes * flop,
				  1e-12);
		}
		expect(&p, "expert_mask", passes * (again ? 2 : 1),
		       6 * SEQUENCE * slots, 2);
		expect(&p, "expert_mask_back", passes, 5 * SEQUENCE * slots, 2);
		assert_true(sum_of(p.graph, "permute").n == 0);
		assert_true(sum_of(p.graph, "sort_by_expert").n == 0);
		drop(&p);
	}
}

/* A rank has its part of the tokens, and all slots. */
static void ranks_share_the_tokens_and_not_the_slots(void **state)
{
	static const char *const split[] = {
		"", ", parallel: {cp: 2}", ", parallel: {cp: 4}",
		", sequence_parallel: true, parallel: {tp: 2}"
	};
	static const double ranks[] = { 1, 2, 4, 2 };
	double flop[4], bytes[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct parts p;
		char plan[300];

		snprintf(plan, sizeof(plan), PLAN("moe_capacity_factor: 1.25%s"),
			 split[i]);
		build(&p, MOE, plan, "maxtext-2025", RANKS);
		flop[i] = sum_of(p.graph, "expert_combine").flop /
			  sum_of(p.graph, "expert_combine").n;
		bytes[i] = sum_of(p.graph, "expert_mask").bytes /
			   sum_of(p.graph, "expert_mask").n;
		near_frac(flop[i], flop[0] / ranks[i], 1e-12);
		near_frac(bytes[i], bytes[0] / ranks[i], 1e-12);
		drop(&p);
	}
}

/* Without a capacity no mask, and arrays as long as all ranks could fill them; products take what is there. */
static void arrays_hold_what_all_ranks_could_send(void **state)
{
	static const char *const longer[] = { "sort_by_expert", "expert_activation",
					      "expert_activation_back" };
	static const int64_t ranks[SAME] = { 2, 4, 8 };
	double bytes[SAME][3], flop[SAME];

	(void)state;
	for (int i = 0; i < SAME; i++) {
		struct parts p;
		char plan[300];

		snprintf(plan, sizeof(plan), PLAN("parallel: {ep: %d}"), (int)ranks[i]);
		build(&p, MOE, plan, "maxtext-2025", RANKS);
		assert_true(sum_of(p.graph, "expert_dispatch").n == 0);
		for (int k = 0; k < 3; k++)
			bytes[i][k] = sum_of(p.graph, longer[k]).bytes;
		flop[i] = sum_of(p.graph, "expert_up (forward)").flop;
		drop(&p);
	}
	for (int i = 1; i < SAME; i++) {
		for (int k = 0; k < 3; k++)
			near_frac(bytes[i][k], 2 * bytes[i - 1][k], 1e-12);
		near_frac(flop[i], flop[i - 1], 1e-12);
	}
	assert_true(bytes[0][0] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_with_a_mask_bring_tokens_into_slots),
		cmocka_unit_test(ranks_share_the_tokens_and_not_the_slots),
		cmocka_unit_test(arrays_hold_what_all_ranks_could_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
