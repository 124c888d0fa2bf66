/*
 * tests/test_peaks.c - what a step written in PyTorch holds at its fullest moments, against closed
 * forms: a layer's gradients, the root beside a layer's backward, gradients that were packed, and
 * what stands between the last layer and the loss
 *
 * Of Llama 3 8B: h 4,096, f 14,336, 128,256 words; of Qwen3 30B A3B: h 2,048, 128 experts of 768,
 * eight of them for a token.
 */
#include <math.h>

#include "tests/works.h"

enum { TOKENS = 256, LAYERS = 3 };
#define LLAMA "{name: llama3-8b, num_hidden_layers: 3}"
#define ROUTED "{name: qwen3-30b-a3b, num_hidden_layers: 3}"
#define PLAN(batch, more) \
	"{sequence_length: 256, micro_batch_size: 1, global_batch_size: " batch \
	", recompute: none, gradient_dtype: fp32, " more "}"
#define PYTORCH "torch-2.11-eager"

static const double h = 4096, f = 14336;
static const double layer =
	2 * 4096.0 * 4096 + 2 * 1024.0 * 4096 + 3 * 4096.0 * 14336 + 2 * 4096;
static const double head = 128256.0 * 4096, root = 2 * 128256.0 * 4096 + 4096;

/* The peak of the backward segment whose name ends so: of several the least. */
static double least(const struct ft_graph *g, const char *end, enum ft_memory category)
{
	double least = INFINITY;

	for (size_t i = 0; i < g->n_segments; i++) {
		const char *name = g->segment[i].name;
		size_t n = strlen(name), k = strlen(end);

		if (!strncmp(name, "backward", 8) && n >= k &&
		    !strcmp(name + n - k, end))
			least = fmin(least, g->segment[i].peak_bytes[category]);
	}
	assert_true(isfinite(least));
	return least;
}

static double at_backward(const char *model, const char *plan, const char *stack,
			  int64_t ranks, const char *end, enum ft_memory category)
{
	struct parts p;
	double bytes;

	build(&p, model, plan, stack, ranks);
	bytes = least(p.graph, end, category);
	drop(&p);
	return bytes;
}

static double activations(const char *model, const char *plan, const char *stack,
			  int64_t ranks)
{
	return at_backward(model, plan, stack, ranks, "", FT_MEMORY_ACTIVATIONS);
}

/* Behind the MLP's second product in a layer's backward: the gradients of the layer's output, of
 * the product's input and of its weights, each in 16 bit. Where gradients are packed when all are there, as FSDP's are, with so few
 * tokens those of all three products behind the first, beside that of their input, less what they kept. */
static void a_layer_holds_its_own_gradients(void **state)
{
	static const char *const stacks[] = { PYTORCH, "torch-2.11-compile",
					      "transformers-5-eager" };
	const double of_tokens = 2 * TOKENS * (h + f), of_weights = 2 * h * f;
	const double of_three = 2 * TOKENS * (h - 3 * f) + 3 * of_weights;

	(void)state;
	for (int i = 0; i < 3; i++) {
		near_frac(activations(LLAMA, PLAN("8", "sharding: fsdp"), stacks[i], 8),
			  of_three, 1e-9);
		near_frac(activations(LLAMA,
				      "{sequence_length: 16384, micro_batch_size: 1, "
				      "global_batch_size: 8, recompute: none, "
				      "gradient_dtype: fp32, sharding: fsdp}",
				      stacks[i], 8),
			  2 * 16384 * (h + f) + of_weights, 1e-9);
		near_frac(activations(LLAMA, PLAN("8", "sharding: ddp"), stacks[i], 8),
			  of_tokens + of_weights, 1e-9);
		near_frac(activations(LLAMA,
				      PLAN("8", "sharding: ddp, lora: {rank: 8}"),
				      stacks[i], 8),
			  of_tokens, 1e-9);
	}
	near_frac(activations(LLAMA, PLAN("4", "sharding: fsdp, parallel: {tp: 2}"),
			      PYTORCH, 8),
		  2 * TOKENS * (h - 3 * f / 2) + 3 * of_weights / 2, 1e-9);
	assert_true(activations(LLAMA, PLAN("8", "sharding: zero1"), "megatron-core",
				8) <= 0);
}

/* Of experts that a rank holds, the weights of all; of its tokens, a copy for each expert. */
static void experts_hold_theirs(void **state)
{
	static const char *const plans[] = {
		PLAN("8", "sharding: ddp"),
		PLAN("8", "sharding: ddp, parallel: {ep: 4}"),
	};
	const double held[] = { 128, 32 };

	(void)state;
	for (int i = 0; i < 2; i++)
		near_frac(activations(ROUTED, plans[i], PYTORCH, 8),
			  2 * (TOKENS * 2048. + 8. * TOKENS * 768. +
			       held[i] * 768. * 2048.),
			  1e-9);
}

/* A rank that gathers from nobody has no unit come ahead: the room that it was copied through is
 * larger than the gradients, and free when they come. */
static void a_rank_alone_has_room_for_them(void **state)
{
	(void)state;
	assert_true(2 * layer > 2 * (TOKENS * (h + f) + h * f));
	assert_true(activations(LLAMA, PLAN("1", "sharding: fsdp"), PYTORCH, 1) <= 0);
	assert_true(activations(LLAMA, PLAN("1", "sharding: ddp"), PYTORCH, 1) > 0);
}

/* Beside a layer's weights, gathered and copied out: the root, gathered until its own backward,
 * with the head's gradient; and below the topmost layer what the one above packed, in fp32. Below the lowest nothing is gathered: what
 * its own weights were copied out of is gone. */
static void the_root_waits_beside_each_layer(void **state)
{
	/* so many tokens that nothing is more than the layer's own moment */
	const char *plan = "{sequence_length: 8192, micro_batch_size: 1, "
			   "global_batch_size: 8, recompute: none, "
			   "gradient_dtype: fp32, sharding: fsdp}";
	const double both = 2 * 2 * layer + 2 * root + 2 * head;

	(void)state;
	near_frac(at_backward(LLAMA, plan, PYTORCH, 8, "top", FT_MEMORY_OTHER), both,
		  1e-9);
	near_frac(at_backward(LLAMA, plan, PYTORCH, 8, "edge", FT_MEMORY_OTHER),
		  both + (4 - 2) * layer, 1e-9);
	near_frac(at_backward(LLAMA, plan, PYTORCH, 8, "sync", FT_MEMORY_OTHER),
		  both + 4 * layer, 1e-9);
}

/* PyTorch's pipelines reduce behind their last backward, so that none packs. The first stage has
 * the embedding and no head. */
static void what_is_not_reduced_is_not_packed(void **state)
{
	static const char *const ends[] = { "0.edge", "1.gather", "1.first.gather" };
	const char *plan = PLAN("16", "sharding: fsdp, reshard_after_forward: true, "
				      "parallel: {pp: 2}");

	(void)state;
	for (int i = 0; i < 3; i++)
		near_frac(
			at_backward(LLAMA, plan, PYTORCH, 4, ends[i], FT_MEMORY_OTHER),
			(i ? 2 : 1) * 2 * layer + 2 * head, 1e-9);
}

static const struct ft_segment *topmost(const struct parts *p)
{
	const struct ft_segment *s = NULL;

	for (size_t i = 0; i < p->graph->n_segments; i++)
		if (!strncmp(p->graph->segment[i].name, "backward", 8) &&
		    strstr(p->graph->segment[i].name, "top"))
			s = &p->graph->segment[i];
	assert_non_null(s);
	return s;
}

/* Experts have many weights for their tokens: while the topmost layer's gradients are packed, they in 16
 * bit and packed in fp32, the next layer's weights, the root and the head's gradient are there, and
 * nothing that the layer kept. Of two ranks, 16 tokens. */
static void packing_is_the_most_of_many_weights(void **state)
{
	const char *plan = "{sequence_length: 16, micro_batch_size: 1, "
			   "global_batch_size: 2, recompute: none, "
			   "gradient_dtype: fp32, sharding: fsdp}";
	double w, root_of, head_of;
	const struct ft_segment *s;
	struct parts p;

	(void)state;
	build(&p, ROUTED, plan, PYTORCH, 2);
	w = ft_layer_attention_parameters(p.model, 1) +
	    ft_layer_dense_parameters(p.model, 1) +
	    ft_layer_expert_parameters(p.model, 1) +
	    ft_layer_norm_parameters(p.model, 1);
	head_of = 151936. * 2048;
	root_of = 2 * head_of + 2048;
	s = topmost(&p);
	near_frac(s->peak_bytes[FT_MEMORY_OTHER] + s->peak_bytes[FT_MEMORY_GRADIENTS] +
			  s->peak_bytes[FT_MEMORY_ACTIVATIONS] -
			  s->net_bytes[FT_MEMORY_ACTIVATIONS],
		  2 * w + 4 * w + 2 * w + 2 * root_of + 2 * head_of, 1e-9);
	drop(&p);
}

/* A library that copies nothing in or out was counted without. */
static void others_hold_units_alone(void **state)
{
	struct parts p;

	(void)state;
	build(&p, LLAMA, PLAN("8", "sharding: fsdp"), "megatron-core", 8);
	for (size_t i = 0; i < p.graph->n_segments; i++)
		assert_null(strstr(p.graph->segment[i].name, "top"));
	near_frac(least(p.graph, "", FT_MEMORY_OTHER), 2 * layer, 1e-9);
	drop(&p);
}

/* Between the last layer and the loss: what the norm multiplies and what the head does, each of 2
 * bytes a number; in single operations the norm keeps 4 more. Behind the backward it is gone. */
static void the_last_norm_keeps_its_input(void **state)
{
	static const struct {
		const char *stack;
		double bytes;
	} row[] = { { PYTORCH, 4 },
		    { "transformers-5-eager", 8 },
		    { "megatron-core", 0 } };

	(void)state;
	for (int i = 0; i < 3; i++) {
		const struct ft_segment *s;
		struct parts p;

		build(&p, LLAMA, PLAN("8", "sharding: ddp"), row[i].stack, 8);
		s = segment_of(p.graph, "head.");
		near_frac(1 + s->net_bytes[FT_MEMORY_ACTIVATIONS],
			  1 + row[i].bytes * TOKENS * h, 1e-9);
		s = segment_of(p.graph, "head_back");
		near_frac(1 - s->net_bytes[FT_MEMORY_ACTIVATIONS],
			  1 + row[i].bytes * TOKENS * h, 1e-9);
		drop(&p);
	}
}

/* Tensor parallel, each rank computes the gradient of the whole table, 2 V h, from the whole one of
 * its output, and takes its rows, beside the root, the head's gradient and what the lowest layer
 * packed. Kept gradients are counted where they are kept. */
static void dtensor_computes_the_whole_table(void **state)
{
	const double t = 8, table = 2 * head / t;
	const char *plan = PLAN("1", "sharding: fsdp, parallel: {tp: 8}");
	const struct ft_segment *s;
	struct parts p;

	(void)state;
	build(&p, LLAMA, plan, PYTORCH, 8);
	s = segment_of(p.graph, "embed_back");
	near_frac(s->peak_bytes[FT_MEMORY_OTHER] + s->peak_bytes[FT_MEMORY_GRADIENTS],
		  2 * head + 2 * TOKENS * h /* whole */ + 2 * table +
			  2 * 4096 /* the root */ + 2 * table +
			  4 * ((layer - 2 * h) / t + 2 * h),
		  1e-9);
	near_frac(sum_in(p.graph, NULL, "embedding_fill").bytes, 2 * head, 1e-9);
	near_frac(sum_in(p.graph, NULL, "embedding_rows").bytes, 4 * head / t, 1e-9);
	drop(&p);
}

/* Else the root's reduction is more than that. */
static void a_table_of_its_own_is_no_peak(void **state)
{
	const struct ft_segment *s;
	struct parts p;

	(void)state;
	build(&p, LLAMA, PLAN("8", "sharding: fsdp"), PYTORCH, 8);
	s = segment_of(p.graph, "embed_back");
	near_frac(s->peak_bytes[FT_MEMORY_OTHER] + s->peak_bytes[FT_MEMORY_GRADIENTS],
		  (4 + 2) * root, 1e-9);
	assert_true(sum_in(p.graph, NULL, "embedding_rows").n == 0);
	drop(&p);
}

static double layer_keeps(const char *model, const char *stack)
{
	struct parts p;
	double bytes;

	build(&p, model, PLAN("8", "sharding: ddp"), stack, 8);
	bytes = segment_of(p.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS];
	drop(&p);
	return bytes;
}

/* 16,384 numbers of 16 bit less a token, where an activation needs its output alone, which the
 * product behind it takes. */
static void relu_keeps_its_output(void **state)
{
	static const char *const stacks[] = { PYTORCH, "torch-2.11-compile",
					      "megatron-core" };

	(void)state;
	for (int i = 0; i < 3; i++)
		near_frac(1 +
				  layer_keeps("{name: opt-6.7b, hidden_act: gelu}",
					      stacks[i]) -
				  layer_keeps("opt-6.7b", stacks[i]),
			  1 + (i < 2 ? TOKENS * 2.0 * 16384 : 0), 1e-9);
}

/* A flat gradient in 16 bit is there while it is cast and while its shard is made; the unit below is gathered, and the root, with
 * the head's gradient in 16 bit. Weights that stay: the layer's own are given back, and the root's are counted since forward. */
static void gradients_are_packed_as_the_library_does(void **state)
{
	static const struct {
		const char *stack, *more;
		double unit, roots;
	} cases[] = {
		{ "transformers-5-fsdp1", "gradient_dtype: fp32", 2 + 4 + 4. / 2 + 2,
		  1 },
		{ "transformers-5-eager", "gradient_dtype: fp32", 2 + 4 + 2, 1 },
		{ "transformers-5-eager",
		  "gradient_dtype: fp32, reshard_after_forward: false", 2 + 4 - 2, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct ft_segment *s;
		struct parts p;
		char plan[300];

		snprintf(
			plan, sizeof(plan),
			"{sequence_length: 16, micro_batch_size: 1, global_batch_size: "
			"2, recompute: none, sharding: fsdp, %s}",
			cases[i].more);
		build(&p, LLAMA, plan, cases[i].stack, 2);
		s = topmost(&p);
		near_frac(s->peak_bytes[FT_MEMORY_OTHER] +
				  s->peak_bytes[FT_MEMORY_GRADIENTS] +
				  s->peak_bytes[FT_MEMORY_ACTIVATIONS] -
				  s->net_bytes[FT_MEMORY_ACTIVATIONS],
			  cases[i].unit * layer + 2 * cases[i].roots * root + 2 * head,
			  1e-9);
		drop(&p);
	}
}

/* Of two ranks and one: a loss in the root's forward pass stands beside the last layer's weights, as they were gathered. */
static void a_loss_in_the_root_has_the_last_layer_beside(void **state)
{
	double peak[2];

	(void)state;
	for (int two = 0; two < 2; two++) {
		struct parts p;

		build(&p, LLAMA,
		      two ? PLAN("2", "sharding: fsdp") : PLAN("1", "sharding: fsdp"),
		      "transformers-5-eager", 1 + two);
		peak[two] = segment_of(p.graph, "head.0")->peak_bytes[FT_MEMORY_OTHER];
		drop(&p);
	}
	near_frac(peak[1] - peak[0], 2 * layer, 1e-9);
	near_frac(peak[0], 2 * root + 10. * TOKENS * 128256, 1e-9);
}

/* One compiled graph adds up the table's gradient in fp32 and casts what came out, behind the sum: beside the logits that were
 * returned, in 16 bit, and, of a table that the head shares, the head's gradient. Of blocks compiled one by one that and the sum of both. */
static void one_compiled_graph_sums_its_table_wide(void **state)
{
	static const char *const at[] = { "embedding_fill", "embedding_back",
					  "embedding_cast" };
	static const char *const of[] = { "torch-2.11-compile",
					  "torch-2.11-compile-whole" };
	const double logits = 2 * TOKENS * 128256.0;

	(void)state;
	for (int tied = 0; tied < 2; tied++)
		for (int whole = 0; whole < 2; whole++) {
			const struct ft_segment *s;
			struct parts p;
			int n = 0;

			build(&p,
			      tied ? "{name: llama3-8b, num_hidden_layers: 3, "
				     "tie_word_embeddings: true}" :
				     LLAMA,
			      PLAN("1", "sharding: none, master_weights: false"),
			      of[whole], 1);
			s = segment_of(p.graph, "embed_back");
			for (size_t i = 0; i < s->n_ops; i++)
				if (!strncmp(p.graph->work[s->op[i].work].name,
					     "embedding", 9))
					assert_string_equal(
						p.graph->work[s->op[i].work].name,
						at[n++]);
			assert_int_equal(n, whole ? 3 : 2);
			near_frac(sum_in(p.graph, NULL, at[0]).bytes,
				  (whole ? 4 : 2) * head, 1e-9);
			near_frac(sum_in(p.graph, NULL, at[2]).bytes,
				  whole ? 6 * head : 0, 1e-9);
			near_frac(s->peak_bytes[FT_MEMORY_OTHER],
				  whole ? 4 * head + logits + tied * 2 * head :
				  tied	? 4 * head :
					  0,
				  1e-9);
			drop(&p);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_layer_holds_its_own_gradients),
		cmocka_unit_test(experts_hold_theirs),
		cmocka_unit_test(a_rank_alone_has_room_for_them),
		cmocka_unit_test(the_root_waits_beside_each_layer),
		cmocka_unit_test(what_is_not_reduced_is_not_packed),
		cmocka_unit_test(packing_is_the_most_of_many_weights),
		cmocka_unit_test(gradients_are_packed_as_the_library_does),
		cmocka_unit_test(a_loss_in_the_root_has_the_last_layer_beside),
		cmocka_unit_test(others_hold_units_alone),
		cmocka_unit_test(the_last_norm_keeps_its_input),
		cmocka_unit_test(dtensor_computes_the_whole_table),
		cmocka_unit_test(a_table_of_its_own_is_no_peak),
		cmocka_unit_test(relu_keeps_its_output),
		cmocka_unit_test(one_compiled_graph_sums_its_table_wide),
	};

	return cmocka_run_group_tests_name("peaks", tests, NULL, NULL);
}
