/* tests/test_blocks.c - layers of every kind in the graph: their products, sums and bytes */
#include <math.h>
#include <unistd.h>

#include "foretoken/sim.h"
#include "tests/works.h"

#define PLAN "{sequence_length: 4096, global_batch_size: 8}"

/* Backward attention does 2.5 times forward's work where model FLOPs count 2; without a
 * window the whole square is twice the causal half. */
static double model_flop(const struct parts *p)
{
	double causal =
		ft_model_flop_per_token(p->model, p->plan->tp, p->plan->sequence, true);
	double full = ft_model_flop_per_token(p->model, p->plan->tp, p->plan->sequence,
					      false);

	return p->graph->tokens * (causal + (full - causal) / 6);
}

static void products_of_every_family_add_up(void **state)
{
	static const char *const models[] = {
		"{name: gemma2-9b, attn_logit_softcapping: null}",
		"falcon-7b",
		"opt-6.7b",
		"phi3-mini",
		"olmo2-7b",
		"gpt-neox-20b",
		"granite3-8b",
		"llama4-scout",
		"glm4.5-air",
		"{name: glm4.5-air, num_nextn_predict_layers: 2}",
		"{name: llama4-scout, attention_chunk_size: 1024}",
		"starcoder2-15b",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
		struct parts p;
		double window = 0;

		build(&p, models[i],
		      "{sequence_length: 2048, global_batch_size: 8, parallel: {ep: 8}, "
		      "moe_force_balance: true}",
		      "nemo-24", 8);
		for (int64_t k = 0; k < p.model->n_layers; k++)
			window += p.model->layer[k].window > 0 &&
				  p.model->layer[k].window < 2048;
		if (window == 0)
			near_frac(sum_over_ranks(p.graph, NULL, -1).flop,
				  model_flop(&p), 0.004);
		drop(&p);
	}
}

/* Products of a delta rule, written out: 3 C dk + 2 C dv + 3 dk dv a token and head,
 * once forward and three times backward. */
static double kept_with(int heads)
{
	char model[200];
	struct parts p;
	double kept;

	snprintf(model, sizeof(model),
		 "{name: qwen3-next-80b-a3b, linear_num_key_heads: %d}", heads);
	build(&p, model,
	      "{sequence_length: 4096, global_batch_size: 8, parallel: {ep: 8}}",
	      "nemo-24", 8);
	kept = segment_of(p.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS];
	drop(&p);
	return kept;
}

/* Its q and its k in 16 bit, of 128 features a head, in front of the convolution and of the norm to length one; repeated for the
 * heads of values they are as many with any number. */
static void a_delta_rule_keeps_its_queries(void **state)
{
	(void)state;
	near_frac(kept_with(32) - kept_with(16), 4096 * 2 * (2 + 2) * 16 * 128., 1e-9);
}

static void a_delta_rule_takes_the_place_of_attention(void **state)
{
	struct parts p;
	double tokens = 8. * 4096, rule = 3 * 64 * 128 + 2 * 64 * 128 + 3 * 128 * 128;
	double counted = 4 * 128 * 128 * 32 + 4 * (2 * 2048 + 4096), linear, want;

	(void)state;
	build(&p, "qwen3-next-80b-a3b",
	      "{sequence_length: 4096, global_batch_size: 8, parallel: {ep: 8}, "
	      "moe_force_balance: true}",
	      "nemo-24", 8);
	linear = 8 * 36 * 32 * rule * tokens;
	want = model_flop(&p) - 6 * 36 * counted * tokens + linear;
	near_frac(sum_over_ranks(p.graph, "delta_chunks", -1).flop +
			  sum_over_ranks(p.graph, "delta_state", -1).flop +
			  sum_over_ranks(p.graph, "delta_chunks_back", -1).flop +
			  sum_over_ranks(p.graph, "delta_state_back", -1).flop,
		  linear, 1e-9);
	near_frac(sum_over_ranks(p.graph, NULL, -1).flop, want, 0.004);
	assert_true(sum_over_ranks(p.graph, "attention", -1).n == 12 * 2 * 8);
	drop(&p);
}

static void local_layers_see_their_window_and_others_all(void **state)
{
	static const struct {
		const char *model;
		int64_t layer, window, chunk;
	} cases[] = {
		{ "gemma2-9b", 0, 4096, 0 },	   { "gemma2-9b", 1, 0, 0 },
		{ "gemma3-27b", 4, 1024, 0 },	   { "gemma3-27b", 5, 0, 0 },
		{ "gemma3-27b", 60, 1024, 0 },	   { "starcoder2-15b", 39, 4096, 0 },
		{ "llama4-scout", 2, 0, 8192 },	   { "llama4-scout", 3, 0, 0 },
		{ "gpt-oss-20b", 1, 0, 0 },	   { "gpt-oss-20b", 2, 128, 0 },
		{ "qwen3-next-80b-a3b", 3, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct parts p;
		const struct ft_layer *l;

		build(&p, cases[i].model,
		      "{sequence_length: 4096, global_batch_size: 8}",
		      "torch-2.11-compile", 8);
		l = &p.model->layer[cases[i].layer];
		assert_int_equal(l->window, cases[i].window);
		assert_int_equal(l->chunk, cases[i].chunk);
		drop(&p);
	}
}

/* Attention in chunks is as many short sequences. */
static void chunks_are_short_sequences(void **state)
{
	struct parts whole, chunks;
	const char *plan = "{sequence_length: 8192, global_batch_size: 8, parallel: "
			   "{ep: 8}}";

	(void)state;
	build(&whole, "{name: llama4-scout, layer_types: [full_attention]}", plan,
	      "torch-2.11-compile", 8);
	build(&chunks,
	      "{name: llama4-scout, layer_types: [chunked_attention], "
	      "attention_chunk_size: 2048}",
	      plan, "torch-2.11-compile", 8);
	near_frac(sum_over_ranks(chunks.graph, "attention", -1).flop,
		  sum_over_ranks(whole.graph, "attention", -1).flop / 4, 1e-12);
	drop(&whole);
	drop(&chunks);
}

/* 5,120 tokens in chunks of 2,048 are two of these and one of 1,024, on ranks of a context
 * group, too, and in what runs again. */
static void what_is_left_of_a_sequence_is_a_shorter_chunk(void **state)
{
	static const char *const parallel[] = { "{ep: 8}", "{ep: 8, cp: 2}" };
	const double seen = 2 * 2048. * 2048 + 1024. * 1024;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts p;
		char plan[160];

		snprintf(plan, sizeof(plan),
			 "{sequence_length: 5120, global_batch_size: 8, parallel: %s, "
			 "recompute: none}",
			 parallel[i]);
		build(&p,
		      "{name: llama4-scout, layer_types: [chunked_attention], "
		      "attention_chunk_size: 2048}",
		      plan, "torch-2.11-compile", 8);
		near_frac(sum_over_ranks(p.graph, "attention", -1).flop,
			  3.5 * 8 * 48 * 40 * 128. * 2 * seen, 1e-3);
		near_frac(ft_layer_pairs(&p.model->layer[0], 5120, 0, true), seen / 2,
			  1e-3);
		drop(&p);
	}
}

/* The last stage alone predicts ahead: a layer, a projection, a head, and a copy of the
 * embedding there. */
static void a_predicted_token_costs_the_last_stage_a_layer_and_a_head(void **state)
{
	const char *plan = "{sequence_length: 4096, global_batch_size: 64, "
			   "sharding: ddp, parallel: {pp: 4, ep: 8}}";
	struct parts none, one;
	double h = 4096, v = 151552, tokens = 64. * 4096, dense, experts, more;

	(void)state;
	build(&none, "glm4.5-air", plan, "nemo-24", 32);
	build(&one, "{name: glm4.5-air, num_nextn_predict_layers: 1}", plan, "nemo-24",
	      32);
	for (size_t c = 0; c < 3; c++)
		for (int m = 0; m < FT_MEMORIES; m++)
			assert_true(none.graph->rank_class[c].base_bytes[m] ==
				    one.graph->rank_class[c].base_bytes[m]);
	dense = ft_layer_attention_parameters(one.model, 45) +
		ft_layer_dense_parameters(one.model, 45) + 2 * h + 2 * h * h + 3 * h;
	experts = ft_layer_expert_parameters(one.model, 45);
	near_frac(one.graph->rank_class[3].base_bytes[FT_MEMORY_WEIGHTS] -
			  none.graph->rank_class[3].base_bytes[FT_MEMORY_WEIGHTS],
		  2 * (dense + experts / 8 + v * h), 1e-9);
	near_frac(ft_model_parameters(one.model) - ft_model_parameters(none.model),
		  dense + experts, 1e-12);
	more = sum_over_ranks(one.graph, "head", -1).flop -
	       sum_over_ranks(none.graph, "head", -1).flop;
	near_frac(more, 6 * tokens * h * v, 1e-12);
	near_frac(sum_over_ranks(one.graph, "mtp_projection", -1).flop,
		  6 * tokens * 2 * h * h, 1e-12);
	near_frac(sum_over_ranks(one.graph, "expert_up", -1).flop,
		  sum_over_ranks(none.graph, "expert_up", -1).flop * 46 / 45, 1e-12);
	drop(&none);
	drop(&one);
}

/* A vocabulary that tp does not divide: the rank with one row more sets the pace. */
static void a_rank_has_its_rows_of_the_head(void **state)
{
	static const int64_t vocab[] = { 128256, 128257, 128258, 128260, 128261 };

	(void)state;
	for (size_t i = 0; i < sizeof(vocab) / sizeof(*vocab); i++) {
		char model[80];
		struct parts p;
		int64_t most = 0;

		snprintf(model, sizeof(model),
			 "{name: llama3-8b, num_hidden_layers: 2, vocab_size: %lld}",
			 (long long)vocab[i]);
		build(&p, model,
		      "{sequence_length: 1024, global_batch_size: 8, parallel: "
		      "{tp: 4}}",
		      "torchtitan-2024", 8);
		for (int64_t row = 0; row < vocab[i]; row += 4)
			most++;
		assert_int_equal(work_of(p.graph, "head")->gemm.n, most);
		drop(&p);
	}
}

/* Element-wise work that only some families have is there for them alone. */
static void each_family_has_its_own_small_work(void **state)
{
	static const struct {
		const char *model, *name;
		double a_layer; /* forward and backward, of one micro-batch */
	} cases[] = {
		{ "gemma2-9b", "norm_behind", 2 },
		{ "gemma2-9b", "norm_behind_back", 2 },
		{ "llama3-8b", "norm_behind", 0 },
		{ "qwen3-next-80b-a3b", "output_gate", 0.25 },
		{ "qwen3-next-80b-a3b", "delta_norm", 0.75 },
		{ "qwen3-next-80b-a3b", "shared_gate", 2 },
		{ "glm4.5-air", "shared_gate", 0 },
		{ "olmo2-7b", "qk_norm", 1 },
		{ "opt-6.7b", "bias_gradient", 1 },
		{ "falcon-7b", "bias_gradient", 0 },
		{ "qwen2.5-7b", "bias_gradient", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct parts p;

		build(&p, cases[i].model, PLAN, "torch-2.11-eager", 8);
		near_frac(sum_over_ranks(p.graph, cases[i].name, -1).n / 8 + 1,
			  cases[i].a_layer * (double)p.model->n_layers + 1, 1e-12);
		drop(&p);
	}
}

/* A tanh on the logits is a pass of its own unless the loss is compiled. */
static void a_cap_is_a_pass_unless_compiled(void **state)
{
	static const char *const stacks[] = { "torch-2.11-eager",
					      "torch-2.11-compile" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts p;

		build(&p, "gemma2-9b", PLAN, stacks[i], 8);
		assert_true(sum_over_ranks(p.graph, "logit_cap", -1).n == (i ? 0 : 8));
		drop(&p);
	}
}

/* What the tanh gave is kept for its gradient in 16 bit, beside the logits, where the memory is
 * fullest at the loss: one layer and 256,000 words. Compiled, it is computed again. */
static void a_cap_keeps_the_logits_it_gave(void **state)
{
	static const char *const stacks[] = { "torch-2.11-eager", "nemo-24",
					      "torch-2.11-compile" };
	static const double more[] = { 2, 2, 0 };
	const double logits = 2048. * 256000;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct parts with, without;
		char plan[200];

		snprintf(plan, sizeof(plan),
			 "{sequence_length: 2048, global_batch_size: 8, "
			 "micro_batch_size: 1, sharding: ddp, recompute: full}");
		build(&with, "{name: gemma2-9b, num_hidden_layers: 1}", plan, stacks[i],
		      8);
		build(&without,
		      "{name: gemma2-9b, num_hidden_layers: 1, "
		      "final_logit_softcapping: 0}",
		      plan, stacks[i], 8);
		near_frac(1 + ft_graph_peak_bytes(with.graph) -
				  ft_graph_peak_bytes(without.graph),
			  1 + more[i] * logits, 1e-9);
		drop(&with);
		drop(&without);
	}
}

static void what_sees_all_attends_to_the_whole_square(void **state)
{
	struct parts causal, whole;

	(void)state;
	build(&causal, "llama3-8b", PLAN, "torch-2.11-compile", 8);
	build(&whole, "{name: llama3-8b, is_causal: false}", PLAN, "torch-2.11-compile",
	      8);
	near_frac(sum_over_ranks(whole.graph, "attention", -1).flop,
		  2 * sum_over_ranks(causal.graph, "attention", -1).flop, 1e-12);
	drop(&causal);
	drop(&whole);
}

/* The causal kernel takes rows four at a time, up to its longest sequence. */
static void a_causal_softmax_reads_half_where_it_can_run(void **state)
{
	static const struct {
		const char *training, *model;
		int64_t sequence;
		double forward, backward; /* bytes a score */
	} cases[] = {
		{ "{sequence_length: 2048, global_batch_size: 8}", "gpt-1.5b", 2048, 37,
		  32 },
		{ "{sequence_length: 2048, global_batch_size: 32, micro_batch_size: 4}",
		  "gpt-1.5b", 2048, 3, 4 },
		{ "{sequence_length: 2048, global_batch_size: 8}",
		  "{name: gpt-1.5b, num_attention_heads: 20, num_key_value_heads: 20}",
		  2048, 3, 4 },
		{ "{sequence_length: 2048, global_batch_size: 8, parallel: {tp: 2}}",
		  "{name: gpt-1.5b, num_attention_heads: 20, num_key_value_heads: 20}",
		  2048, 37, 32 },
		{ "{sequence_length: 32768, global_batch_size: 8}",
		  "{name: gpt-1.5b, num_attention_heads: 20, num_key_value_heads: 20}",
		  32768, 37, 32 },
		{ "{sequence_length: 2048, global_batch_size: 8}",
		  "{name: gpt-1.5b, num_attention_heads: 20, num_key_value_heads: 20, is_causal: false}",
		  2048, 4, 6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct parts p;
		double heads, s = (double)cases[i].sequence, scores;

		build(&p, cases[i].model, cases[i].training, "megatron-lm-2022", 8);
		heads = (double)p.model->layer[0].heads;
		scores = (double)p.plan->global_batch * (double)p.model->n_layers *
			 heads * s * s;
		near_frac(sum_over_ranks(p.graph, "softmax", -1).bytes,
			  scores * (cases[i].forward + cases[i].backward), 1e-9);
		drop(&p);
	}
}

/* A stack whose kernel knows no windows works on all keys. */
static void a_kernel_without_windows_sees_all(void **state)
{
	struct parts p;
	const struct ft_work *w = NULL;
	char path[] = "/tmp/foretoken-XXXXXX.yaml";
	static const char stack[] =
		"{extends: torch-2.11-compile, layout: {windows: false}}";
	int fd = mkstemps(path, 5);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, stack, sizeof(stack) - 1), sizeof(stack) - 1);
	close(fd);
	for (int blind = 0; blind < 2; blind++) {
		build(&p, "{name: mistral-7b, sliding_window: 512}", PLAN,
		      blind ? path : "torch-2.11-compile", 8);
		for (size_t i = 0; i < p.graph->n_works; i++)
			if (p.graph->work[i].kind == FT_ATTENTION)
				w = &p.graph->work[i];
		assert_non_null(w);
		assert_int_equal(w->attention.window, blind ? 0 : 512);
		drop(&p);
	}
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_of_every_family_add_up),
		cmocka_unit_test(a_delta_rule_takes_the_place_of_attention),
		cmocka_unit_test(a_delta_rule_keeps_its_queries),
		cmocka_unit_test(local_layers_see_their_window_and_others_all),
		cmocka_unit_test(chunks_are_short_sequences),
		cmocka_unit_test(what_is_left_of_a_sequence_is_a_shorter_chunk),
		cmocka_unit_test(
			a_predicted_token_costs_the_last_stage_a_layer_and_a_head),
		cmocka_unit_test(a_rank_has_its_rows_of_the_head),
		cmocka_unit_test(each_family_has_its_own_small_work),
		cmocka_unit_test(a_cap_is_a_pass_unless_compiled),
		cmocka_unit_test(a_cap_keeps_the_logits_it_gave),
		cmocka_unit_test(what_sees_all_attends_to_the_whole_square),
		cmocka_unit_test(a_causal_softmax_reads_half_where_it_can_run),
		cmocka_unit_test(a_kernel_without_windows_sees_all),
	};

	return cmocka_run_group_tests_name("traces/blocks", tests, NULL, NULL);
}
