/* tests/test_joined.c - weights that are joined: what is copied out of what they give, and put together again */
#include "tests/transformers.h"

enum { S = 1024, D = 64, SEQUENCES = 8 };

static void build_heads(struct parts *p, int heads, int groups, int tp,
			const char *stack)
{
	struct arena mem = { 0 };

	build(p,
	      arena_printf(
		      &mem,
		      "{model_type: llama, hidden_size: 1024, num_hidden_layers: %d, "
		      "num_attention_heads: %d, num_key_value_heads: %d, head_dim: "
		      "%d, vocab_size: 1024, intermediate_size: 1536}",
		      LAYERS, heads, groups, D),
	      arena_printf(&mem,
			   "{sequence_length: %d, global_batch_size: %d, "
			   "micro_batch_size: 1, sharding: ddp, recompute: none, "
			   "parallel: {tp: %d}}",
			   S, SEQUENCES, tp),
	      stack, 8);
	arena_release(&mem);
}

/* A rank has heads / tp of them in groups / tp groups. Queries of one group lie as one, and queries that
 * have a key each are alone in their group: neither is copied. Gradients are always put together. */
static void queries_are_copied_out_of_their_groups(void **state)
{
	(void)state;
	for (int heads = 8; heads <= 16; heads *= 2)
		for (int groups = 1; groups <= heads; groups *= 2)
			for (int tp = 1; tp <= 8 && tp <= groups; tp *= 2) {
				double tokens = (double)LAYERS * S * SEQUENCES * tp / 8;
				double q = (double)heads / tp * D,
				       k = (double)groups / tp * D;
				bool copied = groups / tp > 1 && heads > groups;
				struct parts p;

				build_heads(&p, heads, groups, tp, "megatron-core");
				near_frac(sum_of(p.graph, "query_copy").bytes,
					  copied ? 4 * tokens * q : 0, 1e-12);
				near_frac(sum_of(p.graph, "qkv_join_back").bytes,
					  4 * tokens * (q + 2 * k), 1e-12);
				drop(&p);
			}
}

/* Where each has a weight of its own, or the kernels are another framework's, nothing is. */
static void weights_apart_are_not_joined(void **state)
{
	static const char *const stacks[] = { "torch-2.11-eager", "torch-2.11-compile",
					      "llm-foundry-2023" };
	struct parts p;

	(void)state;
	for (size_t i = 0; i < sizeof(stacks) / sizeof(*stacks); i++) {
		build_heads(&p, 16, 4, 1, stacks[i]);
		assert_true(sum_of(p.graph, "query_copy").n == 0);
		assert_true(sum_of(p.graph, "qkv_join_back").n == 0);
		drop(&p);
	}
	build(&p,
	      "{name: deepseek-v3, num_hidden_layers: 2, num_nextn_predict_layers: 0}",
	      "{sequence_length: 1024, global_batch_size: 8}", "megatron-core", 8);
	assert_true(sum_of(p.graph, "query_copy").n == 0);
	assert_true(sum_of(p.graph, "qkv_join_back").n == 0);
	drop(&p);
}

/* One product, gradients of whose parts are put together, and heads joined with the rest of them. */
static void weights_that_a_class_joins(void **state)
{
	const double q = TOKENS * 3072, qkv = 3 * q, neox = TOKENS * 6144;
	struct parts p;

	(void)state;
	step(&p, "phi3-mini", EAGER, "");
	expect(&p, "qkv_join_back", LAYERS, 22 * qkv, 8);
	expect(&p, "gate_up_join_back", LAYERS, 8 * TOKENS * 8192, 1);
	expect(&p, "rope_join", LAYERS, 4 * 2 * q, 2);
	expect(&p, "rope_join_back", LAYERS, 14 * 2 * q, 10);
	expect_norm(&p, "norm_back", 2 * LAYERS, true,
		    (struct norms){ q, 1, 0, 0 }); /* nothing to sum up */
	assert_true(sum_of(p.graph, "qkv").n == 3 * LAYERS);
	assert_true(sum_of(p.graph, "gate_up").n == 3 * LAYERS);
	assert_true(sum_of(p.graph, "q").n == 0 && sum_of(p.graph, "up").n == 0);
	drop(&p);
	step(&p, "gpt-neox-20b", EAGER, "");
	expect(&p, "qkv_join_back", LAYERS, 12 * 3 * neox, 2);
	assert_true(sum_of(p.graph, "gate_up_join_back").n == 0);
	drop(&p);
	step(&p, "phi3-mini", PLAIN, "");
	assert_true(sum_of(p.graph, "q").n == 3 * LAYERS);
	assert_true(sum_of(p.graph, "qkv_join_back").n == 0);
	assert_true(sum_of(p.graph, "rope_join").n == 0);
	drop(&p);
	step(&p, "llama3-8b", EAGER, "");
	assert_true(sum_of(p.graph, "qkv_join_back").n == 0);
	assert_true(sum_of(p.graph, "rope_join").n == 0);
	drop(&p);
}

/* Qwen's c_attn of 2023, split along its last dimension: one kernel joins three gradients. Its queries and keys are cast to fp32,
 * turned there by a kernel and cast back, 6, 8 and 6 bytes a number; another class's are turned as they are. */
static void qwen_splits_one_product(void **state)
{
	static const char *const types[] = { "qwen", "qwen2" };

	(void)state;
	for (int other = 0; other < 2; other++) {
		struct arena mem = { 0 };
		struct parts p;

		build(&p,
		      arena_printf(
			      &mem,
			      "{model_type: %s, hidden_size: 1024, num_hidden_layers: 2, "
			      "num_attention_heads: 16, vocab_size: 1024, "
			      "intermediate_size: 3072}",
			      types[other]),
		      "{sequence_length: 1024, global_batch_size: 1, micro_batch_size: 1, "
		      "sharding: none, recompute: none}",
		      "qwen-2023", 1);
		expect(&p, "qkv_join_back", other ? 0 : LAYERS,
		       other ? 0 : 4.0 * S * 3 * 1024, other ? 0 : 1);
		for (int back = 0; back < 2; back++)
			expect(&p, back ? "rope_back" : "rope", LAYERS,
			       (other ? 4.0 : 20.0) * S * 2 * 1024, other ? 2 : 6);
		assert_true((sum_of(p.graph, "qkv").n == 3 * LAYERS) == !other);
		assert_true(sum_of(p.graph, "gate_up").n == 0);
		drop(&p);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queries_are_copied_out_of_their_groups),
		cmocka_unit_test(weights_apart_are_not_joined),
		cmocka_unit_test(weights_that_a_class_joins),
		cmocka_unit_test(qwen_splits_one_product),
	};

	return cmocka_run_group_tests_name("traces/joined", tests, NULL, NULL);
}
