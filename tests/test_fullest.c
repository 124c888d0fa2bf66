/* tests/test_fullest.c - the fullest rank of an ep group, against loads that are drawn, and with capacities */
#include <math.h>

#include "foretoken/study.h"
#include "tests/routed.h"

/* Of n ranks with the loads of m of E experts each, loads that add up to E and deviate by c: drawn, not by the
 * law. */
static double drawn_fullest(double c, int experts, int ep)
{
	uint64_t seed = 7;
	double sum = 0;

	for (int draw = 0; draw < 20000; draw++) {
		double load[64], mean = 0, most = -1e9;

		for (int e = 0; e < experts; e++) {
			load[e] = 0;
			for (int i = 0; i < 12; i++) /* nearly normal */
				load[e] +=
					(double)rnd_below(&seed, 1 << 20) / (1 << 20);
			load[e] -= 6;
			mean += load[e] / experts;
		}
		for (int r = 0; r < ep; r++) {
			double rank = 0;

			for (int e = r * experts / ep; e < (r + 1) * experts / ep; e++)
				rank += (load[e] - mean) * ep / experts;
			most = fmax(most, rank);
		}
		sum += most;
	}
	/* E loads deviate from their own mean by sqrt(1 - 1 / E) of what they are drawn with */
	return 1 + c * sum / 20000 / sqrt(1 - 1. / experts);
}

static void the_fullest_rank_follows_from_loads(void **state)
{
	static const int cases[][2] = {
		{ 8, 8 }, { 8, 4 }, { 8, 2 }, { 64, 8 }, { 64, 64 }
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct parts p;
		char model[400], plan[200];

		snprintf(
			model, sizeof(model),
			"{model_type: qwen3_moe, hidden_size: 512, num_hidden_layers: 2, "
			"num_attention_heads: 8, vocab_size: 512, intermediate_size: 512, "
			"num_experts: %d, num_experts_per_tok: 4, "
			"moe_intermediate_size: 256, n_shared_experts: 0}",
			cases[i][0]);
		snprintf(plan, sizeof(plan),
			 "{sequence_length: 4096, global_batch_size: 64, "
			 "micro_batch_size: 1, parallel: {ep: %d}}",
			 cases[i][1]);
		build(&p, model, plan, "megatron-core", 64);
		near_frac((double)work_of(p.graph, "expert_up")->gemm.m / (4096 * 4),
			  drawn_fullest(p.stack->layout.expert_spread, cases[i][0],
					cases[i][1]),
			  0.02);
		drop(&p);
	}
}

/* Routing that is neither forced nor padded is uneven by the stack's spread; a capacity
 * pads to just so many. */
/* 0.6 is Megatron's spread; z of four ranks is 1.0491314, the normal quantile of 3.625 / 4.25. */
#define FULLEST 1.3250615 /* 1 + 0.6 sqrt(4 / 15) z */

static void the_fullest_rank_has_its_copies(void **state)
{
	static const struct {
		const char *plan;
		double copies;
	} cases[] = {
		{ PLAN("parallel: {ep: 4}"), FULLEST },
		{ PLAN("parallel: {ep: 4}, moe_force_balance: true"), 1 },
		{ PLAN("parallel: {ep: 4}, moe_capacity_factor: 1"), 1 },
		{ PLAN("parallel: {ep: 4}, moe_capacity_factor: 1.25"), 1.25 },
		{ PLAN("parallel: {ep: 4}, moe_capacity_factor: 2, "
		       "moe_force_balance: true"),
		  2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct parts p;

		build(&p, MOE, cases[i].plan, "megatron-core", 8);
		assert_true(p.stack->layout.expert_spread == 0.6);
		assert_int_equal(work_of(p.graph, "expert_up")->gemm.m,
				 (int64_t)(512 * 4 * cases[i].copies));
		near_frac(work_of(p.graph, "ep_dispatch")->communication.bytes,
			  2 * 512 * 512 * 4 * cases[i].copies, 1e-6);
		drop(&p);
	}
}

/* Where each rank has all experts, its own tokens stay with it: none is fuller. */
static void a_rank_with_all_experts_has_its_own_copies(void **state)
{
	struct parts p;

	(void)state;
	build(&p, MOE, PLAN("parallel: {ep: 1}"), "megatron-core", 8);
	assert_int_equal(work_of(p.graph, "expert_up")->gemm.m, 512 * 4);
	drop(&p);
}

/* Of each copy of a token: 6 bytes a feature of the experts' width, 2 of hidden_size, as the router's weights are
 * applied in front of the second product. */
static void padding_is_kept_for_backward(void **state)
{
	static const char *const plans[] = {
		PLAN("parallel: {ep: 4}, moe_capacity_factor: 1"),
		PLAN("parallel: {ep: 4}, moe_capacity_factor: 1.75"),
	};
	double kept[2], width = 0;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts p;

		build(&p, MOE, plans[i], "megatron-core", 8);
		kept[i] = segment_of(p.graph, "forward")
				  ->net_bytes[FT_MEMORY_ACTIVATIONS];
		width = (double)p.model->layer[0].expert_intermediate;
		width = 6 * width + 2 * (double)p.model->hidden_size;
		drop(&p);
	}
	near_frac(kept[1] - kept[0], 0.75 * 512 * 4 * width, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fullest_rank_follows_from_loads),
		cmocka_unit_test(the_fullest_rank_has_its_copies),
		cmocka_unit_test(a_rank_with_all_experts_has_its_own_copies),
		cmocka_unit_test(padding_is_kept_for_backward),
	};

	return cmocka_run_group_tests_name("traces/routed", tests, NULL, NULL);
}
