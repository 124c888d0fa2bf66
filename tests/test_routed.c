/* tests/test_routed.c - routed experts in a format of their own; balance that is forced in turn */
#include <math.h>

#include "tests/routed.h"

enum { H = 512, WIDTH = 256, EXPERTS = 16, PER_TOKEN = 4, EP = 4 };

#define NARROW "parallel: {ep: 4}, moe_force_balance: true, precision: fp8"
#define SHARED \
	"{model_type: qwen3_moe, hidden_size: 512, num_hidden_layers: 2, " \
	"num_attention_heads: 8, vocab_size: 512, intermediate_size: 512, " \
	"num_experts: 16, num_experts_per_tok: 4, moe_intermediate_size: 256, " \
	"n_shared_experts: 2}"

static double kept_bytes(const struct parts *p)
{
	return segment_of(p->graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS];
}

/* In bf16 nothing of theirs is cast; weights have one copy of two bytes, not that and two of one; the
 * products' inputs are kept in two bytes, not in one. All else is as it was, shared experts too. */
static void experts_in_bf16_leave_the_rest_narrow(void **state)
{
	static const char *const theirs[] = { "expert_up", "expert_down" };
	static const char *const others[] = { "qkv", "attention_out" };
	static const char *const models[] = { MOE, SHARED };

	(void)state;
	for (int i = 0; i < 2; i++) {
		const double copies = 512. * PER_TOKEN, passes = 2 * 4;
		const double weights = 2. * EXPERTS / EP * 3 * H * WIDTH;
		struct parts all, part;

		build(&all, models[i], PLAN(NARROW), "megatron-core", 8);
		build(&part, models[i], PLAN(NARROW ", expert_precision: bf16"),
		      "megatron-core", 8);
		for (int k = 0; k < 2; k++) {
			assert_true(work_of(all.graph, theirs[k])->dtype == FT_FP8);
			assert_true(work_of(part.graph, theirs[k])->dtype == FT_BF16);
			assert_true(work_of(part.graph, others[k])->dtype == FT_FP8);
		}
		near_frac(sum_of(all.graph, NULL).flop, sum_of(part.graph, NULL).flop,
			  1e-12);
		near_frac(sum_of(all.graph, "cast_fp8").bytes -
				  sum_of(part.graph, "cast_fp8").bytes,
			  4 * passes * copies * (H + WIDTH + H + 2 * WIDTH), 1e-12);
		near_frac(sum_of(all.graph, "cast_weights").bytes -
				  sum_of(part.graph, "cast_weights").bytes,
			  4 * weights, 1e-9);
		near_frac(
			all.graph->rank_class[0].base_bytes[FT_MEMORY_WEIGHTS] -
				part.graph->rank_class[0].base_bytes[FT_MEMORY_WEIGHTS],
			2 * weights, 1e-9);
		near_frac(kept_bytes(&part) - kept_bytes(&all), copies * (H + WIDTH),
			  1e-9);
		drop(&all);
		drop(&part);
	}
}

/* Sharded weights are gathered in the format that they are kept in. */
static void experts_in_bf16_are_gathered_so(void **state)
{
	static const char *const precision[] = { "", ", expert_precision: bf16" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct arena mem = { 0 };
		struct parts p;
		double weights = 2. * EXPERTS / EP * 3 * H * WIDTH;

		build(&p, MOE,
		      arena_printf(&mem,
				   "{sequence_length: 512, global_batch_size: 32, "
				   "sharding: zero1, %s%s}",
				   NARROW, precision[i]),
		      "megatron-core", 8);
		p.stack->layout.narrow_parameters = true;
		rebuild(&p);
		near_frac(sum_of(p.graph, "zero_gather_experts").bytes,
			  (i ? 2 : 1) * weights, 1e-9);
		drop(&p);
		arena_release(&mem);
	}
}

/* Frozen weights in eight bit are turned into two bytes for each use, forward and backward; inputs of
 * their products are not kept, so that the format tells nothing there. */
static void frozen_experts_are_unpacked_for_bf16(void **state)
{
	static const char lora[] = ", lora: {rank: 8, targets: attention}";
	static const char *const models[] = { MOE, SHARED };
	const double weights = 1. * EXPERTS / EP * 3 * H * WIDTH;
	struct arena mem = { 0 };
	double kept[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts all, part;

		build(&all, models[i], arena_printf(&mem, PLAN("%s%s"), NARROW, lora),
		      "megatron-core", 8);
		build(&part, models[i],
		      arena_printf(&mem, PLAN("%s%s%s"), NARROW, lora,
				   ", expert_precision: bf16"),
		      "megatron-core", 8);
		assert_true(sum_of(all.graph, "unpack_weights").n == 0);
		near_frac(sum_of(part.graph, "unpack_weights").bytes,
			  (1 + 2) * weights * 2 * 2 * 4, 1e-12);
		near_frac(kept_bytes(&part), kept_bytes(&all), 1e-12);
		kept[i] = kept_bytes(&all);
		drop(&all);
		drop(&part);
	}
	/* gate and up of the shared experts, which the activation wants */
	near_frac(kept[1] - kept[0], 512. * 4 * 2 * WIDTH, 1e-9);
	arena_release(&mem);
}

/* Ranks that a token reaches when the experts are numbered on, token by token. */
static double reached(int64_t per_token, int64_t ep)
{
	double hit = 0;

	for (int64_t t = 0; t < EXPERTS; t++) {
		uint64_t seen = 0;

		for (int64_t k = 0; k < per_token; k++)
			seen |= UINT64_C(1)
				<< (t * per_token + k) % EXPERTS / (EXPERTS / ep);
		for (; seen; seen &= seen - 1)
			hit++;
	}
	return hit / EXPERTS;
}

/* A step whose tokens go to k of 16 experts on ep ranks, by a dispatcher that sends them once. */
static void build_sent_once(struct parts *p, int k, int ep, const char *forced)
{
	struct arena mem = { 0 };

	build(p,
	      arena_printf(&mem,
			   "{model_type: qwen3_moe, hidden_size: 512, "
			   "num_hidden_layers: 2, num_attention_heads: 8, "
			   "vocab_size: 512, intermediate_size: 512, num_experts: 16, "
			   "num_experts_per_tok: %d, moe_intermediate_size: 256}",
			   k),
	      arena_printf(&mem,
			   "{sequence_length: 512, global_batch_size: 32, "
			   "sharding: ddp, moe_dispatcher: deepep, "
			   "parallel: {ep: %d}, moe_force_balance: %s}",
			   ep, forced),
	      "megatron-core", 16);
	arena_release(&mem);
}

static double sent(struct parts *p, bool in_turn)
{
	p->stack->layout.forced_in_turn = in_turn;
	rebuild(p);
	return work_of(p->graph, "ep_dispatch")->communication.bytes;
}

static void forced_in_turn_copies_of_a_token_lie_side_by_side(void **state)
{
	(void)state;
	for (int ep = 2; ep <= 16; ep *= 2)
		for (int k = 1; k <= 8; k++) {
			struct parts forced, learnt;

			build_sent_once(&forced, k, ep, "true");
			build_sent_once(&learnt, k, ep, "false");
			near_frac(sent(&forced, true), 2. * 512 * H * reached(k, ep),
				  1e-12);
			assert_true(sent(&learnt, true) == sent(&learnt, false));
			drop(&forced);
			drop(&learnt);
		}
}

/* Of eight copies a capacity drops a share, which no kernel sends; one above 1 drops none. */
static void what_a_capacity_drops_is_not_sent(void **state)
{
	static const double capacity[] = { 0, 0.25, 0.5, 1, 1.5 };
	static const double copies[] = { 8, 2, 4, 8, 8 };

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct parts p;

		build_sent_once(&p, 8, 4, "true");
		p.plan->capacity_factor = capacity[i];
		near_frac(sent(&p, false),
			  2. * 512 * H * 4 * (1 - pow(3. / 4, copies[i])), 1e-12);
		drop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(experts_in_bf16_leave_the_rest_narrow),
		cmocka_unit_test(experts_in_bf16_are_gathered_so),
		cmocka_unit_test(frozen_experts_are_unpacked_for_bf16),
		cmocka_unit_test(forced_in_turn_copies_of_a_token_lie_side_by_side),
		cmocka_unit_test(what_a_capacity_drops_is_not_sent),
	};

	return cmocka_run_group_tests_name("traces/experts: routed", tests, NULL, NULL);
}
