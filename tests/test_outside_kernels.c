/*
 * tests/test_outside_kernels.c - what operations do where no fused kernel runs: rotary positions (plain_rotary), gates (plain_gates),
 * attention sinks behind FlexAttention (sink_attention), and tokens on their way to experts (routing)
 *
 * Bytes are counted from NeMo AutoModel's functions of October 2025, as traces/rotary.c and sinks.c say.
 */
#include <math.h>

#include "tests/works.h"

enum { SEQUENCE = 1024, LAYERS = 2, BATCH = 2 };
#define TOKENS ((double)(BATCH * SEQUENCE))
#define OLDER "nemo-automodel-2025"
#define YOUNGER "nemo-automodel-2026"
#define OSS "{name: gpt-oss-20b, num_hidden_layers: 2}"
#define PLAN \
	"{sequence_length: 1024, micro_batch_size: 2, global_batch_size: 2, sharding: " \
	"fsdp, recompute: none}"

static void rotary_positions_are_turned_by_operations(void **state)
{
	static const struct {
		const char *model;
		double turned, older[2],
			younger[2]; /* features; bytes of each, both ways */
	} rows[] = {
		{ "{name: qwen3-30b-a3b, num_hidden_layers: 2}",
		  (32 + 4) * 128,
		  { 18, 20 },
		  { 4, 4 } },
		{ "{name: deepseek-v3, num_hidden_layers: 2, first_k_dense_replace: 1}",
		  (128 + 1) * 64,
		  { 20, 20 },
		  { 4, 4 } },
		/* its positions are scaled, which the kernel does not do */
		{ OSS, (64 + 8) * 64, { 18, 20 }, { 22.9, 24.8 } },
		{ "{name: gpt-350m, num_hidden_layers: 2}", 0, { 0, 0 }, { 0, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (int younger = 0; younger < 2; younger++) {
			const double *each = younger ? rows[i].younger : rows[i].older;
			double all = LAYERS * TOKENS * rows[i].turned;
			struct parts p;

			build(&p, rows[i].model, PLAN, younger ? YOUNGER : OLDER, 1);
			near_frac(sum_of(p.graph, "rope").bytes, each[0] * all, 1e-12);
			near_frac(sum_of(p.graph, "rope_back").bytes, each[1] * all,
				  1e-12);
			drop(&p);
		}
}

/* Bytes a number of a token's copy, as traces/recipes.c counts them; whatever the stack fuses else. */
static void tokens_reach_experts_by_indexing(void **state)
{
	static const struct {
		const char *name;
		double fused, gathered, indexed, weighted, compiled, deepep;
	} rows[] = {
		{ "permute", 4, 4.2, 4.2, 4.2, 4.2, 0 },
		{ "sort_by_expert", 4, 8.7, 8.7, 0, 0, 4.2 },
		{ "unsort", 4, 7.3, 7.3, 0, 0, 13.6 },
		{ "unpermute", 4, 25.6, 20.9, 25.6, 6.8, 0 },
		{ "permute_back", 4, 6.2, 4.2, 4.2, 6.8, 0 },
		{ "sort_back", 4, 5.7, 5.7, 0, 0, 13.5 },
		{ "unsort_back", 4, 10.9, 10.9, 0, 0, 4.2 },
		{ "unpermute_back", 4, 39.2, 23.1, 39.2, 6.5, 0 },
		{ "expert_join_back", 0, 6, 6, 6, 6, 0 },
	};
	double copies = LAYERS * TOKENS * 8 * 2048;
	struct parts p;

	(void)state;
	build(&p, "{name: qwen3-30b-a3b, num_hidden_layers: 2}", PLAN,
	      "torchtitan-2025-mixtures", 1);
	assert_true(p.stack->layout.routing == FT_ROUTING_GATHERED);
	for (int way = 0; way < 6; way++) {
		p.stack->layout.routing =
			way < 5 ? (enum ft_routing)way : FT_ROUTING_INDEXED;
		if (way == 5)
			p.plan->dispatcher = FT_DISPATCH_DEEPEP;
		rebuild(&p);
		for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
			const double each[] = { rows[i].fused,	  rows[i].gathered,
						rows[i].indexed,  rows[i].weighted,
						rows[i].compiled, rows[i].deepep };

			near_frac(sum_of(p.graph, rows[i].name).bytes,
				  each[way] * copies, 1e-12);
		}
	}
	drop(&p);
}

/* A head of 64 numbers a row: both casts and products in fp32, and eight bytes for each small kernel of a row. */
static void sinks_scale_what_flex_attention_returns(void **state)
{
	double out = LAYERS * TOKENS * 64 * 64, rows = LAYERS * TOKENS * 64;
	struct parts older, younger;

	(void)state;
	build(&older, OSS, PLAN, OLDER, 1);
	build(&younger, OSS, PLAN, YOUNGER, 1);
	near_frac(sum_of(older.graph, "sinks").bytes, 12 * out + 16 * rows, 1e-12);
	near_frac(sum_of(older.graph, "sinks_back").bytes, 34 * out + 32 * rows, 1e-12);
	assert_true(sum_of(younger.graph, "sinks").n == 0);
	assert_string_equal(work_of(older.graph, "attention")->attention.impl, "flex");
	assert_string_equal(work_of(younger.graph, "attention")->attention.impl,
			    younger.stack->layout.attention);
	near_frac(segment_of(older.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS] -
			  segment_of(younger.graph, "forward")
				  ->net_bytes[FT_MEMORY_ACTIVATIONS],
		  2 * out / LAYERS, 1e-9);
	drop(&older);
	drop(&younger);
	build(&older, "{name: llama3-8b, num_hidden_layers: 2}", PLAN, OLDER, 1);
	assert_true(sum_of(older.graph, "sinks").n == 0);
	assert_string_equal(work_of(older.graph, "attention")->attention.impl,
			    older.stack->layout.attention);
	drop(&older);
}

/* Where attention is not fused there is nothing to scale. */
static void unfused_scores_take_the_sinks_themselves(void **state)
{
	struct parts p;

	(void)state;
	build(&p, OSS, PLAN, OLDER, 1);
	p.stack->layout.attention = "unfused";
	rebuild(&p);
	assert_true(sum_of(p.graph, "sinks").n == 0 &&
		    sum_of(p.graph, "softmax").n > 0);
	drop(&p);
}

/* Megatron's kernel reads 256 numbers of a head and writes 320; without it queries, keys and values are copied. */
static void keys_of_latent_attention_are_laid_out(void **state)
{
	double heads = LAYERS * TOKENS * 128;
	struct parts p;

	(void)state;
	build(&p, "{name: deepseek-v3, num_hidden_layers: 2, first_k_dense_replace: 1}",
	      PLAN, "megatron-core", 1);
	near_frac(sum_of(p.graph, "latent_join").bytes, 2 * (256. + 320) * heads,
		  1e-12);
	near_frac(sum_of(p.graph, "latent_join_back").bytes, 2 * (256. + 320) * heads,
		  1e-12);
	assert_true(sum_of(p.graph, "latent_join").n == LAYERS);
	p.stack->layout.plain_rotary = true;
	rebuild(&p);
	near_frac(sum_of(p.graph, "latent_join").bytes, 4 * (192. + 192 + 128) * heads,
		  1e-12);
	assert_true(sum_of(p.graph, "latent_join").n == LAYERS);
	/* by Megatron's operations 24 bytes of what is turned, and 20 backward; its pairs are halves before that: 4 and 14 */
	near_frac(sum_of(p.graph, "rope").bytes,
		  (24. + 4) * (128 + 1) * 64 * LAYERS * TOKENS, 1e-12);
	near_frac(sum_of(p.graph, "rope_back").bytes,
		  (20. + 14) * (128 + 1) * 64 * LAYERS * TOKENS, 1e-12);
	drop(&p);
	build(&p, "{name: llama3-8b, num_hidden_layers: 2}", PLAN, "megatron-core", 1);
	assert_true(sum_of(p.graph, "latent_join").n == 0);
	drop(&p);
}

/* silu and a product; backward eleven operations. What is kept stays, and so does all else. */
static void gates_run_by_operations(void **state)
{
	double features = LAYERS * TOKENS * 14336;
	struct parts p;
	double all, back, kept;

	(void)state;
	build(&p, "{name: llama3-8b, num_hidden_layers: 2}", PLAN, "megatron-core", 1);
	all = sum_of(p.graph, NULL).bytes;
	back = sum_of(p.graph, "activation_back").bytes;
	kept = segment_of(p.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS];
	near_frac(sum_of(p.graph, "activation").bytes, 6 * features, 1e-12);
	p.stack->layout.plain_gates = true;
	rebuild(&p);
	near_frac(sum_of(p.graph, "activation").bytes, 10 * features, 1e-12);
	near_frac(sum_of(p.graph, "activation_back").bytes, 58 * features, 1e-12);
	near_frac(sum_of(p.graph, NULL).bytes, all - back + (58 + 10 - 6) * features,
		  1e-12);
	near_frac(segment_of(p.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS],
		  kept, 1e-12);
	/* PyTorch's own gates are operations already */
	drop(&p);
	build(&p, "{name: llama3-8b, num_hidden_layers: 2}", PLAN,
	      "torchtitan-2025-eager", 1);
	all = sum_of(p.graph, NULL).bytes;
	p.stack->layout.plain_gates = true;
	rebuild(&p);
	near_frac(sum_of(p.graph, NULL).bytes, all, 1e-12);
	drop(&p);
}

/* The scaled output is a product's input: what does not keep it scales again before that product's backward. */
static void scaled_outputs_are_kept_or_scaled_again(void **state)
{
	static const struct {
		const char *again;
		bool scaled, kept;
	} rows[] = {
		{ "recompute: none", false, true },
		{ "recompute: full", true, false },
		{ "recompute: selective, recompute_modules: [core_attn]", true, false },
		{ "recompute: selective, recompute_modules: [op]", true, false },
		{ "recompute: selective, recompute_modules: [norm]", false, true }
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct parts p, fused;
		char plan[256];
		double more;

		snprintf(plan, sizeof(plan),
			 "{sequence_length: 1024, micro_batch_size: 2, "
			 "global_batch_size: 2, sharding: fsdp, %s}",
			 rows[i].again);
		build(&p, OSS, plan, OLDER, 1);
		build(&fused, OSS, plan, YOUNGER, 1);
		assert_true(sum_of(p.graph, "sinks").n ==
			    (rows[i].scaled ? 2 : 1) * 3 * LAYERS);
		more = segment_of(p.graph, "forward")
			       ->net_bytes[FT_MEMORY_ACTIVATIONS] -
		       segment_of(fused.graph, "forward")
			       ->net_bytes[FT_MEMORY_ACTIVATIONS];
		assert_true((more > 0) == rows[i].kept);
		drop(&p);
		drop(&fused);
	}
}

/* Megatron's mla_up_proj is a function from latents to queries, keys and values: positions and layout are in it. */
static void up_projections_turn_and_lay_out_again(void **state)
{
	static const char *const names[] = { "q_up", "kv_up", "rope", "latent_join" };
	struct parts p;

	(void)state;
	build(&p, "{name: deepseek-v3, num_hidden_layers: 2, first_k_dense_replace: 1}",
	      "{sequence_length: 1024, micro_batch_size: 2, global_batch_size: 2, "
	      "sharding: ddp, recompute: selective, recompute_modules: [mla_up_proj]}",
	      "megatron-core", 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		near_frac(sum_in(p.graph, "backward", names[i]).n /
				  sum_in(p.graph, "forward", names[i]).n,
			  i < 2 ? 3 : 1, 1e-12);
	drop(&p);
}

static struct ft_stack *stack_with(const char *layout, struct ft_error *err)
{
	struct ft_stack *stack;
	char path[64];
	FILE *f = fopen(own_path(path, "fused.yaml"), "w");

	assert_non_null(f);
	fprintf(f, "{extends: " YOUNGER ", title: x, layout: {%s}}", layout);
	fclose(f);
	stack = ft_stack_load(path, NULL, err);
	unlink(path);
	return stack;
}

/* What takes attention's place is a kernel: no rate of one is called unfused. */
static void what_takes_attentions_place_is_fused(void **state)
{
	static const char *const wrong[] = {
		"sink_attention: unfused", "masked_attention: unfused",
		"sink_attention: flex, plain_sinks: true"
	};
	struct ft_error err;
	struct ft_stack *right = stack_with("sink_attention: flex", &err);

	(void)state;
	ok_or_say(right, err);
	ft_stack_free(right);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_null(stack_with(wrong[i], &err));
		assert_non_null(strstr(err.text, "fused"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rotary_positions_are_turned_by_operations),
		cmocka_unit_test(tokens_reach_experts_by_indexing),
		cmocka_unit_test(sinks_scale_what_flex_attention_returns),
		cmocka_unit_test(keys_of_latent_attention_are_laid_out),
		cmocka_unit_test(gates_run_by_operations),
		cmocka_unit_test(unfused_scores_take_the_sinks_themselves),
		cmocka_unit_test(scaled_outputs_are_kept_or_scaled_again),
		cmocka_unit_test(up_projections_turn_and_lay_out_again),
		cmocka_unit_test(what_takes_attentions_place_is_fused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
