/* tests/test_indexed.c - attention to the tokens that an indexer chooses: layers, parameters, works, memory, times */
#include "tests/indexed.h"
#include "tests/mistakes.h"

#include "sim/kernel.h"

/* One in so many behind the first, a letter each, a word each; of predicted tokens the last that chooses is the like. */
static void which_layers_choose_is_said_in_three_ways(void **state)
{
	static const bool shares[6] = { false, false, true, true, false, true };
	struct ft_model *every = model_from(MODEL("6", ", index_topk_freq: 3"));
	struct ft_model *letters =
		model_from(MODEL("6", ", index_topk_pattern: FFSSFS"));
	struct ft_model *words = model_from(
		MODEL("6", ", indexer_types: [full, full, shared, shared, full, "
			   "shared], num_nextn_predict_layers: 1"));
	struct ft_model *early = model_from(
		MODEL("6", ", index_topk_freq: 3, index_skip_topk_offset: 1"));
	struct ft_model *none =
		model_from("{model_type: deepseek_v32, " KEYS("6") NO_INDEX "}");

	(void)state;
	for (int i = 0; i < 6; i++) {
		const struct ft_layer *l = &every->layer[i];

		assert_int_equal(l->index_topk, TOPK);
		assert_int_equal(l->shares_index, shares[i]);
		assert_int_equal(ft_layer_chooses(l), !shares[i]);
		assert_int_equal(early->layer[i].shares_index, i % 3 != 0);
		assert_int_equal(none->layer[i].index_topk, 0);
	}
	assert_memory_equal(every->layer, letters->layer, 6 * sizeof(*every->layer));
	assert_memory_equal(every->layer, words->layer, 6 * sizeof(*every->layer));
	assert_int_equal(words->predicted_like, 4);
	ft_model_free(model_from("{name: glm-5.2, num_hidden_layers: 4, indexer_types: "
				 "[full, full, full, shared], index_topk_pattern: "
				 "FFFS, index_topk_freq: 4}"));
	ft_model_free(none);
	ft_model_free(early);
	ft_model_free(words);
	ft_model_free(letters);
	ft_model_free(every);
}

static void mistakes_are_told_with_their_place(void **state)
{
	static const struct mistake wrong[] = {
		{ "name: glm-5.2\nindexer_types: [full, half]", 2, 23,
		  "half is no layer that is simulated; those are: full, shared" },
		{ "name: glm-5.2\nindexer_types: [full, shared]", 2, 16,
		  "names 2 of the 78 layers" },
		{ "name: glm-5.2\nindexer_types: [shared]", 2, 16,
		  "layer 1 has no layer before it whose choice it could see" },
		{ "name: glm-5.2\nindex_topk_pattern: FSX", 2, 21,
		  "has a letter for each layer: F, which chooses, or S" },
		{ "name: glm-5.2\nindex_topk_pattern: FSS", 2, 21,
		  "names 3 of the 78 layers" },
		{ "name: glm-5.2\nindex_skip_topk_offset: 0", 2, 25,
		  "layer 1 has no layer before it whose choice it could see" },
		{ "name: glm-5.2\nindexer_types: [full]\nindex_topk_freq: 2", 3, 18,
		  "says otherwise than indexer_types what layer 4 sees" },
		{ "name: glm-5.2\nnum_hidden_layers: 4\nindex_topk_pattern: FFSF\n"
		  "index_skip_topk_offset: 4",
		  4, 25, "says otherwise than index_topk_pattern what layer 3 sees" },
		{ "name: glm-5.2\nsliding_window: 512", 2, 17,
		  "does nothing beside index_topk" },
		{ "name: glm-5.2\nlayer_types: [full_attention]", 2, 14,
		  "full_attention of layer 1 does nothing beside index_topk" },
		{ "name: glm-5.2\nq_lora_rank: 0", 2, 14,
		  "the indexer's heads are made of the latent of queries" },
	};

	(void)state;
	refused(wrong, sizeof(wrong) / sizeof(*wrong));
}

/* Of 78 layers the first three choose, then every fourth: sgl-project/sglang, pull request 28532, has layer 38 (from 0) choose
 * what 39 sees. Published: 743,377,000,704 without router's biases, 753,329,940,480 with them and the module of the next token. */
static void glm_has_the_parameters_that_are_published(void **state)
{
	struct ft_model *m = model_from("glm-5.2");
	struct ft_model *next =
		model_from("{name: glm-5.2, num_nextn_predict_layers: 1}");
	int64_t choose = 0;

	(void)state;
	for (int64_t i = 0; i < m->n_layers; i++) {
		assert_int_equal(ft_layer_chooses(&m->layer[i]), i < 3 || i % 4 == 2);
		choose += ft_layer_chooses(&m->layer[i]);
	}
	assert_int_equal(choose, 21);
	assert_true(ft_model_parameters(m) == 743377000704. + 75. * 256);
	assert_true(ft_model_parameters(next) == 753329940480.);
	ft_model_free(next);
	ft_model_free(m);
}

/* Three matrices and the norm of a key, whole on each tensor rank. A token sees as through a window of so many, and scores all
 * before it once. */
static void an_indexer_adds_its_parameters(void **state)
{
	struct ft_model *with = model_from(MODEL("2", ""));
	struct ft_model *without = model_from(DENSE("2"));
	double index = index_matrices + 2. * INDEX_DIM;
	double seen = TOPK - TOPK * TOPK / (2. * TOKENS);

	(void)state;
	near_frac(ft_model_parameters(with) - ft_model_parameters(without), 2 * index,
		  1e-12);
	near_frac(ft_layer_index_parameters(with, &with->layer[0]), index, 1e-12);
	near_frac(ft_layer_rank_parameters(with, 0, 4) -
			  ft_layer_rank_parameters(without, 0, 4),
		  index, 1e-12);
	near_frac(ft_model_flop_per_token(with, 1, TOKENS, true) -
			  ft_model_flop_per_token(without, 1, TOKENS, true),
		  2 * (6 * index_matrices +
		       6. * HEADS * (NOPE + ROPE + VALUE) * (seen - TOKENS / 2.) +
		       2. * INDEX_HEADS * INDEX_DIM * TOKENS / 2.),
		  1e-12);
	ft_model_free(without);
	ft_model_free(with);
}

/* Pairs of a sequence: those of a window of so many tokens, and all. */
static double pairs(bool all)
{
	return ft_attention_pairs(TOKENS, TOKENS, all ? 0 : TOPK, true);
}

/* Each head gathers latents; what is chosen is scored once more by attention itself, and by the indexer backward. */
static void its_works_are_counted(void **state)
{
	static const int tps[] = { 1, 4 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		double tp = tps[i], passes = PASSES * tp;
		double heads = HEADS / tp, both = LATENT + ROPE + LATENT;
		struct parts p;

		build(&p, MODEL("1", ""),
		      tp > 1 ? PLAN(", parallel: {tp: 4}") : PLAN(""), "megatron-core",
		      8);
		near_frac(sum_of(p.graph, "attention").flop,
			  passes * 3.5 * 2 * both * heads * pairs(false), 1e-12);
		near_frac(sum_of(p.graph, "index_target").flop,
			  passes * 2 * (LATENT + ROPE) * heads * pairs(false), 1e-12);
		near_frac(sum_of(p.graph, "index_scores").flop,
			  passes * 2 * INDEX_DIM * INDEX_HEADS * pairs(true), 1e-12);
		near_frac(sum_of(p.graph, "index_scores_back").flop,
			  passes * 5 * INDEX_DIM * INDEX_HEADS * pairs(false), 1e-12);
		near_frac(sum_of(p.graph, "index_q").flop +
				  sum_of(p.graph, "index_k").flop +
				  sum_of(p.graph, "index_weights").flop,
			  passes * 4 * TOKENS * index_matrices, 1e-12);
		near_frac(sum_of(p.graph, "absorb_keys").flop,
			  passes * 6 * TOKENS * heads * NOPE * LATENT, 1e-12);
		near_frac(sum_of(p.graph, "project_values").flop,
			  passes * 6 * TOKENS * heads * VALUE * LATENT, 1e-12);
		assert_int_equal(sum_of(p.graph, "kv_up").n, 0);
		assert_int_equal(sum_of(p.graph, "index_all_reduce").n,
				 tp > 1 ? (int)passes : 0);
		drop(&p);
	}
}

/* Nothing of an indexer where a layer sees what another chose, no backward where it is not trained: without its loss, with
 * adapters. */
static void what_is_not_trained_has_no_backward(void **state)
{
	static const char *const plan[] = {
		PLAN(""),
		PLAN(", indexer_loss: false"),
		PLAN(", lora: {rank: 8, targets: mlp}"),
	};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct parts p;

		build(&p, MODEL("3", ", index_topk_pattern: FSS"), plan[i],
		      "megatron-core", 8);
		assert_int_equal(sum_of(p.graph, "index_scores").n, PASSES);
		assert_int_equal(sum_of(p.graph, "index_target").n, i ? 0 : PASSES);
		assert_int_equal(sum_of(p.graph, "index_scores_back").n,
				 i ? 0 : PASSES);
		assert_int_equal(sum_of(p.graph, "attention").n, 6 * PASSES);
		drop(&p);
	}
}

/* What a step does again under full recomputation is the forward pass, and is counted as such. */
static void it_is_computed_again_as_it_was(void **state)
{
	struct parts once, again;

	(void)state;
	build(&once, MODEL("2", ", index_topk_freq: 3, index_skip_topk_offset: 1"),
	      PLAN(""), "megatron-core", 8);
	build(&again, MODEL("2", ", index_topk_freq: 3, index_skip_topk_offset: 1"),
	      PLAN(", recompute: full"), "megatron-core", 8);
	near_frac(sum_of(again.graph, NULL).flop - sum_of(once.graph, NULL).flop,
		  again.graph->recomputed_flop_per_rank, 1e-9);
	near_frac(sum_of(again.graph, "index_scores").flop,
		  2 * sum_of(once.graph, "index_scores").flop, 1e-12);
	drop(&again);
	drop(&once);
}

/* With index_topk of 0 it is the model without indexers, bit for bit. */
static void without_a_choice_it_is_the_dense_model(void **state)
{
	struct parts a, b;

	(void)state;
	build(&a, "{model_type: deepseek_v32, " KEYS("2") NO_INDEX "}", PLAN(""),
	      "megatron-core", 8);
	build(&b, DENSE("2"), PLAN(""), "megatron-core", 8);
	assert_int_equal(a.graph->n_works, b.graph->n_works);
	for (size_t i = 0; i < a.graph->n_works; i++)
		assert_true(ft_work_same(&a.graph->work[i], &b.graph->work[i]));
	drop(&b);
	drop(&a);
}

/* As Transformers' classes have it: a mask, made of scores in fp32, of all tokens and heads; no latents are gathered. */
static void a_choice_may_be_a_mask(void **state)
{
	static const struct {
		const char *stack;
		double scaled, pair;
	} want[] = { { "transformers-5-eager", 16, 100 },
		     { "transformers-5-compile", 8, 60 } };

	(void)state;
	for (int i = 0; i < 2; i++) {
		double scores = (double)TOKENS * TOKENS * INDEX_HEADS;
		struct parts p;

		build(&p, MODEL("1", ""),
		      "{sequence_length: 512, global_batch_size: 1, sharding: none, "
		      "precision: bf16}",
		      want[i].stack, 1);
		near_frac(sum_of(p.graph, "index_scores").flop, 2 * scores * INDEX_DIM,
			  1e-12);
		near_frac(sum_of(p.graph, "index_scale").bytes, want[i].scaled * scores,
			  1e-12);
		near_frac(sum_of(p.graph, "index_choice").bytes,
			  TOKENS * (want[i].pair * TOKENS + 180. * TOPK), 1e-12);
		assert_int_equal(sum_of(p.graph, "index_target").n, 0);
		assert_int_equal(sum_of(p.graph, "absorb_keys").n, 0);
		assert_int_equal(sum_of(p.graph, "kv_up").n, 3);
		drop(&p);
	}
}

/* Of several sequences each query has keys of its own in fp32: 24 bytes a number of them in time, and 4 in memory. */
static void several_sequences_copy_the_keys(void **state)
{
	double copied[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		char text[160];
		struct parts p;

		snprintf(
			text, sizeof(text),
			"{sequence_length: 512, micro_batch_size: %d, global_batch_size: "
			"%d, sharding: none, precision: bf16}",
			i + 1, i + 1);
		build(&p, MODEL("1", ""), text, "transformers-5-eager", 1);
		copied[i] = sum_of(p.graph, "index_keys").bytes;
		drop(&p);
	}
	assert_true(copied[0] == 0);
	near_frac(copied[1], 24. * 2 * TOKENS * TOKENS * INDEX_DIM, 1e-12);
}

/* A stack that masks windows gathers what is chosen all the same, unless the choice is a mask, too. */
static void a_mask_of_windows_is_none_of_a_choice(void **state)
{
	struct parts p;
	double flop;

	(void)state;
	build(&p, MODEL("1", ""), PLAN(""), "megatron-core", 8);
	flop = sum_of(p.graph, NULL).flop;
	assert_int_equal(sum_of(p.graph, "mask").n, 0);
	p.stack->layout.masked_attention = "cudnn-masked";
	p.stack->layout.masks_always = true;
	rebuild(&p);
	near_frac(sum_of(p.graph, NULL).flop, flop, 1e-12);
	assert_int_equal(sum_of(p.graph, "mask").n, 0);
	drop(&p);
}

/* FlashAttention's kernels take no mask. */
static void a_stack_without_masks_is_refused(void **state)
{
	struct ft_error err = { .text = "" };
	struct ft_stack *other = ft_stack_load("transformers-5-eager-fa2", NULL, &err);
	struct ft_graph *g;
	struct parts p;

	(void)state;
	ok_or_say(other, err);
	build(&p, MODEL("1", ""),
	      "{sequence_length: 512, global_batch_size: 1, sharding: none, "
	      "precision: bf16}",
	      "transformers-5-eager", 1);
	g = ft_graph_build(p.model, p.plan, other, &err);
	assert_null(g);
	assert_non_null(strstr(err.text, "takes no mask of chosen tokens"));
	ft_stack_free(other);
	drop(&p);
}

/* Published times of cuDNN's kernels (NVIDIA/cudnn-frontend, benchmark/dsa/results of 2026-09): 64 heads of 576 and 512,
 * 2,048 tokens a query, all of 2,048 to 8,192; the efficiencies are of the rows 576
 * wide, within 3 %; others (512 wide, fewer tokens, more heads or queries) are within 10. And of FlyDSL's (ROCm's blog of DeepSeek-V4 under
 * Primus, 2026-09): of 64 heads, which the profile was set by. */
static void published_kernels_are_met(void **state)
{
	static const struct {
		const char *gpu;
		int pass;
		int64_t queries, dim, heads, topk;
		double tflops, within;
	} row[] = {
		{ "h200", 1, 2048, 576, 64, 2048, 370.8, 0.03 },
		{ "h200", 1, 8192, 576, 64, 2048, 372.3, 0.03 },
		{ "h200", 1, 4096, 512, 64, 2048, 397.3, 0.10 },
		{ "h200", 1, 4096, 512, 64, 640, 322.5, 0.10 },
		{ "h200", 1, 4096, 512, 128, 1152, 373.3, 0.10 },
		{ "gb200", 0, 4096, 576, 64, 2048, 1026.2, 0.03 },
		{ "gb200", 1, 4096, 576, 64, 2048, 668.1, 0.03 },
		{ "gb200", 1, 32768, 576, 64, 2048, 617.1, 0.10 },
		{ "gb200", 0, 8192, 512, 64, 640, 855.3, 0.10 },
		{ "gb200", 1, 8192, 512, 64, 640, 615.8, 0.10 },
		{ "gb300", 0, 16384, 576, 64, 2048, 1102.2, 0.03 },
		{ "gb300", 1, 16384, 576, 64, 2048, 676.9, 0.03 },
		{ "gb300", 0, 4096, 512, 64, 640, 881.5, 0.10 },
		/* FlyDSL, on tokens that 4,096 queries see on average: of 640, of 160 and of 128 */
		{ "mi355x", 0, 4096, 512, 64, 638, 651.7, 0.05 },
		{ "mi355x", 0, 4096, 512, 64, 142, 384.2, 0.10 },
		{ "mi355x", 0, 4096, 512, 64, 126, 335.5, 0.05 },
		{ "mi355x", 1, 4096, 512, 64, 638, 336.9, 0.05 },
		{ "mi355x", 1, 4096, 512, 64, 142, 274.9, 0.05 },
		{ "mi355x", 1, 4096, 512, 64, 126, 257.8, 0.05 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct ft_error err;
		struct ft_gpu *gpu = ft_gpu_load(row[i].gpu, NULL, &err);
		double q = (double)row[i].dim, v = 512, flop;
		struct ft_prediction p = { 0 };
		struct ft_work w = { .kind = FT_ATTENTION, .dtype = FT_BF16 };

		ok_or_say(gpu, err);
		w.attention.pass = (enum ft_pass)row[i].pass;
		w.attention.batch = w.attention.kv_heads = 1;
		w.attention.heads = row[i].heads;
		w.attention.queries = row[i].queries;
		/* each sees as many as it may: of keys without a mask */
		w.attention.keys = row[i].topk;
		w.attention.qk_head_dim = row[i].dim;
		w.attention.v_head_dim = 512;
		w.attention.keys_are = FT_KEYS_CHOSEN;
		gathered_predict(gpu, &w, &p);
		flop = 2 * (double)(row[i].queries * row[i].heads * row[i].topk) *
		       (row[i].pass ? 3 * q + 2 * v : q + v);
		near_frac(p.time_s, flop / (row[i].tflops * 1e12), row[i].within);
		assert_false(p.extrapolated);
		ft_gpu_free(gpu);
	}
}

/* A block has 64 heads: the 16 of a tensor rank take as long. Not of scores, nor where no block is known. */
static void few_heads_take_as_long_as_a_block(void **state)
{
	static const struct {
		const char *gpu;
		enum ft_keys keys;
		double times; /* of 16 heads: the time of 64 */
	} of[] = { { "h200", FT_KEYS_CHOSEN, 1 },
		   { "gb200", FT_KEYS_CHOSEN, 1 },
		   { "h200", FT_KEYS_SCORED, 4 },
		   { "mi355x", FT_KEYS_CHOSEN, 4 } };

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct ft_error err;
		struct ft_gpu *gpu = ft_gpu_load(of[i].gpu, NULL, &err);
		struct ft_prediction p[2];
		struct ft_work w = { .kind = FT_ATTENTION, .dtype = FT_BF16 };
		double start;

		ok_or_say(gpu, err);
		start = gpu->attention_model.start_s.value;
		w.attention.batch = w.attention.kv_heads = 1;
		w.attention.queries = w.attention.keys = 8192;
		w.attention.qk_head_dim = 576;
		w.attention.v_head_dim = 512;
		w.attention.keys_are = of[i].keys;
		for (int k = 0; k < 2; k++) {
			w.attention.heads = k ? 64 : 16;
			gathered_predict(gpu, &w, &p[k]);
		}
		near_frac(p[1].time_s - start, of[i].times * (p[0].time_s - start),
			  1e-12);
		assert_int_equal(p[0].extrapolated, of[i].times == 1);
		assert_false(p[1].extrapolated);
		ft_gpu_free(gpu);
	}
}

/* Products of measurements/probes/h200-2026-11-30-indexers-unseen, one for each of so many queries. */
static void scores_in_fp32_are_met(void **state)
{
	static const struct {
		int64_t queries, heads, dim;
		double us;
	} row[] = { { 4096, 64, 128, 7393 }, { 2048, 64, 128, 1904 },
		    { 4096, 32, 128, 4670 }, { 6144, 32, 128, 10452 },
		    { 3072, 24, 128, 2574 }, { 4096, 16, 128, 4438 },
		    { 4096, 16, 64, 2431 },  { 2048, 16, 128, 1127 } };
	struct ft_error err;
	struct ft_gpu *gpu = ft_gpu_load("h200", NULL, &err);

	(void)state;
	ok_or_say(gpu, err);
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct ft_prediction p = { 0 };
		struct ft_work w = { .kind = FT_GEMM,
				     .dtype = FT_FP32,
				     .gemm = { .layout = FT_FORWARD,
					       .m = row[i].queries * row[i].heads,
					       .n = row[i].queries,
					       .k = row[i].dim,
					       .groups = row[i].queries } };

		assert_true(gemm_predict(gpu, &w, &p, &err));
		near_frac(p.time_s, row[i].us / 1e6, 0.06);
		assert_false(p.extrapolated);
	}
	ft_gpu_free(gpu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_layers_choose_is_said_in_three_ways),
		cmocka_unit_test(mistakes_are_told_with_their_place),
		cmocka_unit_test(glm_has_the_parameters_that_are_published),
		cmocka_unit_test(an_indexer_adds_its_parameters),
		cmocka_unit_test(its_works_are_counted),
		cmocka_unit_test(what_is_not_trained_has_no_backward),
		cmocka_unit_test(it_is_computed_again_as_it_was),
		cmocka_unit_test(without_a_choice_it_is_the_dense_model),
		cmocka_unit_test(a_choice_may_be_a_mask),
		cmocka_unit_test(a_mask_of_windows_is_none_of_a_choice),
		cmocka_unit_test(a_stack_without_masks_is_refused),
		cmocka_unit_test(several_sequences_copy_the_keys),
		cmocka_unit_test(published_kernels_are_met),
		cmocka_unit_test(few_heads_take_as_long_as_a_block),
		cmocka_unit_test(scores_in_fp32_are_met),
	};

	return cmocka_run_group_tests_name("indexed", tests, NULL, NULL);
}
