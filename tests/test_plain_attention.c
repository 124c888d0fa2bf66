/*
 * tests/test_plain_attention.c - attention that writes its scores, as classes of Transformers do that call
 * no kernel for it: products, what stands between them, and what is kept
 *
 * Beside each stands the same step of the stack for a plain PyTorch loop, whose attention is fused.
 */
#include <math.h>

#include "tests/works.h"

enum { SEQUENCE = 1024, LAYERS = 2, BATCH = 2 };
#define EAGER "transformers-5-eager"
#define COMPILED "transformers-5-compile"
#define FUSED "torch-2.11-eager"
#define GPTJ(more) \
	"{model_type: gptj, n_embd: 4096, n_head: 16, n_layer: 2, vocab_size: 50400, " \
	"n_positions: 2048" more "}"
#define TOKENS ((double)(BATCH * SEQUENCE))
#define PLAN \
	"{sequence_length: 1024, micro_batch_size: 2, global_batch_size: 2, sharding: " \
	"fsdp, recompute: none, gradient_dtype: fp32}"

/* Bytes a score forward and backward, the same compiled, kept, and of gradients; formats of both products. */
static const struct {
	const char *model;
	double heads, between, fused, kept, fused_kept, gradients;
	enum ft_dtype scores, context;
} rows[] = {
	{ "{model_type: bloom, hidden_size: 4096, n_head: 32, n_layer: 2, vocab_size: 250880}",
	  32, 39 + 40, 9 + 14, 6, 4, 6, FT_BF16, FT_BF16 },
	{ "{name: mpt-7b, num_hidden_layers: 2}", 32, 52 + 57, 9 + 14, 6, 4, 6, FT_BF16,
	  FT_BF16 },
	{ "{name: falcon-7b, num_hidden_layers: 2}", 71, 25 + 24, 8 + 12, 4, 4, 8,
	  FT_FP32, FT_FP32 },
	{ GPTJ(""), 16, 39 + 38, 9 + 18, 6, 6, 8, FT_FP32, FT_BF16 },
	{ "{model_type: gpt_neo, hidden_size: 2560, num_heads: 20, num_layers: 2, "
	  "vocab_size: 50257, max_position_embeddings: 2048}",
	  20, 39 + 38, 9 + 18, 6, 6, 8, FT_FP32, FT_BF16 },
};
enum { ROWS = sizeof(rows) / sizeof(*rows) };

static void all_of(const struct ft_graph *g, const char *name, enum ft_dtype dtype)
{
	for (size_t i = 0; i < g->n_works; i++)
		if (!strcmp(g->work[i].name, name))
			assert_int_equal(g->work[i].dtype, dtype);
}

static void scores_are_written_as_the_class_does(void **state)
{
	(void)state;
	for (int i = 0; i < ROWS; i++) {
		double scores = rows[i].heads * TOKENS * SEQUENCE;
		struct parts p;

		build(&p, rows[i].model, PLAN, EAGER, 1);
		near_frac(sum_in(p.graph, NULL, "softmax").bytes,
			  LAYERS * rows[i].between * scores, 1e-12);
		assert_true(sum_in(p.graph, NULL, "scores").n == 3 * LAYERS &&
			    sum_in(p.graph, NULL, "context").n == 3 * LAYERS &&
			    sum_in(p.graph, NULL, "attention").n == 0);
		all_of(p.graph, "scores", rows[i].scores);
		all_of(p.graph, "context", rows[i].context);
		assert_true((sum_in(p.graph, NULL, "attention_casts").n > 0) ==
			    (rows[i].context == FT_FP32));
		drop(&p);
		build(&p, rows[i].model, PLAN, COMPILED, 1);
		near_frac(sum_in(p.graph, NULL, "softmax").bytes,
			  LAYERS * rows[i].fused * scores, 1e-12);
		drop(&p);
		build(&p, rows[i].model, PLAN, FUSED, 1);
		assert_true(sum_in(p.graph, NULL, "softmax").n == 0 &&
			    sum_in(p.graph, NULL, "attention").n == 2 * LAYERS);
		drop(&p);
	}
}

/* What a layer keeps beside the same with a fused kernel: scores; in fp32 q, k and v of all heads; what
 * a class that joins them keeps of q and k; and results on the way of a GELU by operations. */
static void scores_are_kept(void **state)
{
	static const char *const stack[][2] = { { EAGER, FUSED },
						{ COMPILED, "torch-2.11-compile" } };
	static const double gelu[ROWS] = { 0, 0, 0, 6 * 4 * 4096, 6 * 4 * 2560 };

	(void)state;
	for (int k = 0; k < 2 * ROWS; k++) {
		int i = k / 2, compiled = k % 2;
		double each = compiled ? rows[i].fused_kept : rows[i].kept, more, other;
		struct parts with, without;

		build(&with, rows[i].model, PLAN, stack[compiled][0], 1);
		build(&without, rows[i].model, PLAN, stack[compiled][1], 1);
		more = segment_of(with.graph, "forward")
			       ->net_bytes[FT_MEMORY_ACTIVATIONS] -
		       segment_of(without.graph, "forward")
			       ->net_bytes[FT_MEMORY_ACTIVATIONS];
		other = rows[i].context == FT_FP32 ? 12 * 71 * 64 + 2 * 72 * 64 : 0;
		other += compiled ? 0 : gelu[i];
		near_frac(more, TOKENS * (each * rows[i].heads * SEQUENCE + other),
			  1e-9);
		drop(&with);
		drop(&without);
	}
}

/* Dropout keeps a mask of a byte, and in fp32 its output beside the softmax's; a kernel that it is part of keeps nothing. */
static void dropout_keeps_a_mask(void **state)
{
	static const char *const stack[] = { EAGER, COMPILED, FUSED };

	(void)state;
	for (int k = 0; k < 3 * ROWS; k++) {
		int i = k / 3, at = k % 3;
		double each = at == 2 ? 0 : rows[i].context == FT_FP32 ? 1 + 4 : 1;
		struct parts p, dropped;

		build(&p, rows[i].model, PLAN, stack[at], 1);
		build(&dropped, rows[i].model, PLAN, stack[at], 1);
		dropped.model->attention_dropout = true;
		rebuild(&dropped);
		near_frac(segment_of(dropped.graph, "forward")
				  ->net_bytes[FT_MEMORY_ACTIVATIONS],
			  segment_of(p.graph, "forward")
					  ->net_bytes[FT_MEMORY_ACTIVATIONS] +
				  TOKENS * each * rows[i].heads * SEQUENCE,
			  1e-9);
		drop(&p);
		drop(&dropped);
	}
}

/* Bytes a number of the MLP's width, both ways: a call of PyTorch's, or operations of the class, unless
 * a compiler joins them, or the config names another. */
static void a_gelu_may_be_operations(void **state)
{
	static const struct {
		const char *model, *stack;
		double bytes, f;
	} seen[] = {
		{ GPTJ(""), EAGER, 36 + 56, 16384 },
		{ GPTJ(", activation_function: gelu"), EAGER, 4 + 6, 16384 },
		{ GPTJ(""), COMPILED, 4 + 6, 16384 },
		{ GPTJ(""), FUSED, 4 + 6, 16384 },
		{ "{model_type: bloom, hidden_size: 4096, n_head: 32, n_layer: 2, "
		  "vocab_size: 250880}",
		  EAGER, 42 + 88, 16384 },
		{ "{name: gpt-neox-20b, num_hidden_layers: 2}", EAGER, 4 + 6, 24576 },
		{ "{name: gpt-neox-20b, num_hidden_layers: 2, hidden_act: gelu_fast}",
		  EAGER, 36 + 56, 24576 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
		struct parts p;

		build(&p, seen[i].model, PLAN, seen[i].stack, 1);
		near_frac(sum_in(p.graph, NULL, "activation").bytes +
				  sum_in(p.graph, NULL, "activation_back").bytes,
			  LAYERS * seen[i].bytes * seen[i].f * TOKENS, 1e-12);
		drop(&p);
	}
}

/* Two gradients of scores, where they are more than an MLP's. */
static void gradients_of_scores_stand_beside_that(void **state)
{
	(void)state;
	for (int i = 0; i < ROWS; i++) {
		double scores = rows[i].heads * TOKENS * SEQUENCE, peak;
		struct parts p;

		build(&p, rows[i].model,
		      "{sequence_length: 1024, micro_batch_size: 2, "
		      "global_batch_size: 2, sharding: ddp, recompute: none}",
		      EAGER, 1);
		peak = segment_of(p.graph, "backward")
			       ->peak_bytes[FT_MEMORY_ACTIVATIONS];
		assert_true(peak >= rows[i].gradients * scores);
		if (i == 2)
			near_frac(peak, 8 * scores, 1e-12);
		drop(&p);
	}
}

/* Falcon's later models spread their few heads themselves. */
static void heads_that_are_spread_are_fused(void **state)
{
	struct parts p;

	(void)state;
	build(&p,
	      "{name: falcon-7b, num_hidden_layers: 2, new_decoder_architecture: true, "
	      "num_attention_heads: 64, hidden_size: 4096, num_key_value_heads: 8}",
	      PLAN, EAGER, 1);
	assert_true(sum_in(p.graph, NULL, "softmax").n == 0);
	drop(&p);
}

/* Sinks are joined by kernels of their own where the stack says so and the model has some: of
 * attention that is not fused, too. */
static void sinks_are_of_models_that_have_them(void **state)
{
	static const char *const model[] = {
		"{name: llama3-8b, num_hidden_layers: 2}",
		"{name: gpt-oss-20b, num_hidden_layers: 2}"
	};

	(void)state;
	for (int m = 0; m < 2; m++) {
		double bytes[2], n[2];
		struct parts p;

		build(&p, model[m], PLAN, "generic-2022", 1);
		for (int i = 0; i < 2; i++) {
			p.stack->layout.plain_sinks = i;
			rebuild(&p);
			bytes[i] = sum_in(p.graph, NULL, "softmax").bytes;
			n[i] = sum_in(p.graph, NULL, "softmax").n;
			assert_true(n[i] > 0);
		}
		drop(&p);
		assert_int_equal(bytes[0] == bytes[1], !m);
		near_frac((1 + m) * n[0], n[1], 1e-12); /* what is strided is apart */
	}
}

/* gpt-oss compiled: two kernels forward and three backward, of which one each way is bound by its
 * instructions; scores and their softmax are kept. */
static void a_compiler_joins_what_is_done_to_scores_with_sinks(void **state)
{
	double scores = 1024. * 1024 * 2 * 64 * 2; /* of two layers */
	struct parts eager, compiled;

	(void)state;
	build(&eager, "{name: gpt-oss-20b, num_hidden_layers: 2}", PLAN, EAGER, 1);
	build(&compiled, "{name: gpt-oss-20b, num_hidden_layers: 2}", PLAN,
	      "transformers-5-compile", 1);
	near_frac(sum_in(eager.graph, "forward", "softmax").bytes, 30.7 * scores,
		  1e-12);
	near_frac(sum_in(eager.graph, "backward", "softmax").bytes, 32.6 * scores,
		  1e-12);
	near_frac(sum_in(compiled.graph, "forward", "softmax").bytes, 13.4 * scores,
		  1e-12);
	near_frac(sum_in(compiled.graph, "backward", "softmax").bytes, 17.1 * scores,
		  1e-12);
	drop(&compiled);
	build(&compiled, "{name: gpt-oss-20b, num_hidden_layers: 2}",
	      "{sequence_length: 1024, micro_batch_size: 2, global_batch_size: 4, "
	      "sharding: fsdp, recompute: none, gradient_dtype: fp32}",
	      "transformers-5-compile", 2);
	assert_true(segment_of(compiled.graph, "backward")
			    ->peak_bytes[FT_MEMORY_ACTIVATIONS] >= 8 * scores / 2);
	drop(&eager);
	drop(&compiled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scores_are_written_as_the_class_does),
		cmocka_unit_test(scores_are_kept),
		cmocka_unit_test(dropout_keeps_a_mask),
		cmocka_unit_test(a_gelu_may_be_operations),
		cmocka_unit_test(gradients_of_scores_stand_beside_that),
		cmocka_unit_test(heads_that_are_spread_are_fused),
		cmocka_unit_test(sinks_are_of_models_that_have_them),
		cmocka_unit_test(a_compiler_joins_what_is_done_to_scores_with_sinks),
	};

	return cmocka_run_group_tests_name("plain attention", tests, NULL, NULL);
}
