/*
 * tests/test_layers_beside.c - layers of one shape whose neighbours differ: what is gathered and waits beside their
 * backward, and what they keep for others
 */
#include "tests/works.h"

#include <math.h>

/* Of attention with heads of 128, 4 of keys, a gated MLP, two norms; and of a router with experts of 256. */
#define H 512
#define LAYER(more) \
	"{model_type: qwen3_moe, hidden_size: 512, num_hidden_layers: 6, num_attention_heads: 4, head_dim: 128, " \
	"vocab_size: 1024, intermediate_size: 1024, num_experts: 8, num_experts_per_tok: 2, " \
	"moe_intermediate_size: 256, tie_word_embeddings: false" more "}"
#define PLAN(more) \
	"{sequence_length: 128, global_batch_size: 16, sharding: fsdp, gradient_dtype: fp32" more \
	"}"

static double gathered(const char *stack, const char *model, const char *more,
		       const char *name)
{
	char plan[300];
	struct parts p;
	double bytes;

	snprintf(plan, sizeof(plan), PLAN("%s"), more);
	build(&p, model, plan, stack, 8);
	bytes = sum_of(p.graph, name).bytes;
	drop(&p);
	return bytes;
}

/* A layer is gathered once forward and once backward in each of two micro-batches, whatever stands above and below it. */
static void each_layer_is_gathered_as_often_whatever_is_below(void **state)
{
	static const char *const models[] = { LAYER(", mlp_only_layers: [0]"),
					      LAYER(", mlp_only_layers: [5]"),
					      LAYER(", mlp_only_layers: [0, 2, 4]"),
					      LAYER(", mlp_only_layers: [0, 1, 4]") };
	static const int routed[] = { 5, 5, 3, 3 };
	static const char *const stacks[] = { "torch-2.11-eager", "torch-2.11-fsdp1",
					      "llm-foundry-2023", "megatron-core" };
	const double experts = 8 * 3. * H * 256;

	(void)state;
	for (int m = 0; m < 4; m++)
		for (int s = 0; s < 4; s++)
			near_frac(gathered(stacks[s], models[m], "",
					   "fsdp_gather_experts"),
				  2 * 2 * 2 * routed[m] * experts, 1e-12);
	/* stages of three layers, the first of which has nothing below it to gather */
	for (int m = 0; m < 4; m++)
		near_frac(gathered("megatron-core", models[m], ", parallel: {pp: 2}",
				   "fsdp_gather_experts"),
			  4 * 2 * 2 * routed[m] * experts, 1e-12);
}

/* Fullest moment of the second layer's backward, beside what a rank holds all step long. */
static double second_backward(const char *model)
{
	double most = 0;
	struct parts p;

	build(&p, model,
	      "{sequence_length: 16384, global_batch_size: 8, sharding: fsdp, gradient_dtype: fp32}",
	      "torch-2.11-eager", 8);
	for (size_t i = 0; i < p.graph->n_segments; i++)
		if (!strncmp(p.graph->segment[i].name, "backward.2.", 11))
			most = fmax(most,
				    p.graph->segment[i].peak_bytes[FT_MEMORY_OTHER]);
	drop(&p);
	assert_true(most > 0);
	return most;
}

/* Beside a dense layer's backward the packed gradients of the layer above it wait, in fp32, be that routed or dense. */
static void gradients_of_the_layer_above_wait(void **state)
{
	const double routed = 8 * 3. * H * 256 + 8 * H, dense = 3. * H * 1024;

	(void)state;
	near_frac(second_backward(LAYER(", mlp_only_layers: [1]")) -
			  second_backward(LAYER(", mlp_only_layers: [1, 2]")),
		  4 * (routed - dense), 1e-9);
}

#define CHOICE(pattern) \
	"{name: glm-5.2, num_hidden_layers: 8, index_topk_freq: null, index_skip_topk_offset: null, " \
	"index_topk_pattern: " pattern "}"

/* What a layer takes forward its backward gives back, also where the layer behind it sees what it chose and that behind its
 * like does not. */
static void what_is_kept_for_others_goes(void **state)
{
	static const char *const models[] = { CHOICE("FFFSFFFS"), CHOICE("FFFFFFFF"),
					      CHOICE("FSSSFFFF") };
	static const char *const again[] = { ", recompute: full",
					     ", recompute: selective",
					     ", recompute: full, recompute_layers: 3",
					     "" };

	(void)state;
	for (int m = 0; m < 3; m++)
		for (int i = 0; i < 4; i++) {
			char plan[300];
			struct parts p;
			double kept = 0, most = 0;

			snprintf(plan, sizeof(plan),
				 "{sequence_length: 512, global_batch_size: 32%s}",
				 again[i]);
			build(&p, models[m], plan, "megatron-core", 8);
			for (size_t c = 0; c < p.graph->rank_class[0].n_calls; c++) {
				const struct ft_call *call =
					&p.graph->rank_class[0].call[c];

				kept += call->repeat *
					p.graph->segment[call->segment]
						.net_bytes[FT_MEMORY_ACTIVATIONS];
				most = fmax(most, kept);
			}
			if (!(fabs(kept) <= 1e-9 * most))
				fail_msg("%s%s: %g of %g bytes are left", models[m],
					 again[i], kept, most);
			drop(&p);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_layer_is_gathered_as_often_whatever_is_below),
		cmocka_unit_test(gradients_of_the_layer_above_wait),
		cmocka_unit_test(what_is_kept_for_others_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
