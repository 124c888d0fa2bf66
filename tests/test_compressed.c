/* tests/test_compressed.c - attention to compressed tokens: layers, parameters, works, memory */
#include "tests/compressed.h"
#include "tests/mistakes.h"

/* By words, by numbers, or neither: then the first two see all entries, and each second one behind chooses. */
static void what_layers_see_is_said_in_three_ways(void **state)
{
	static const int64_t tokens[6] = { 128, 128, 128, 4, 128, 4 };
	struct ft_model *none = model_from(MODEL("6", ""));
	struct ft_model *numbers =
		model_from(MODEL("6", RATIOS("128, 128, 128, 4, 128, 4")));
	struct ft_model *words = model_from(MODEL(
		"6", ", layer_types: [heavily_compressed_attention, "
		     "heavily_compressed_attention, heavily_compressed_attention, "
		     "compressed_sparse_attention, heavily_compressed_attention, "
		     "compressed_sparse_attention]"));
	struct ft_model *rates = model_from(MODEL(
		"6",
		RATIOS("0, 0, 64, 8, 64, 8, 0") ", compress_rates: "
						"{compressed_sparse_attention: 8, "
						"heavily_compressed_attention: 64}, "
						"num_nextn_predict_layers: 1"));

	(void)state;
	for (int i = 0; i < 6; i++) {
		const struct ft_layer *l = &none->layer[i];

		assert_int_equal(l->entry_tokens, tokens[i]);
		assert_int_equal(l->index_topk, tokens[i] == 4 ? TOPK : 0);
		assert_int_equal(l->window, WINDOW);
		assert_int_equal(rates->layer[i].entry_tokens, i < 2	      ? 0 :
							       tokens[i] == 4 ? 8 :
										64);
	}
	assert_memory_equal(none->layer, numbers->layer, 6 * sizeof(*none->layer));
	assert_memory_equal(none->layer, words->layer, 6 * sizeof(*none->layer));
	assert_int_equal(rates->predicted_like, 0);
	assert_int_equal(rates->streams, STREAMS);
	ft_model_free(rates);
	ft_model_free(words);
	ft_model_free(numbers);
	ft_model_free(none);
}

/* By the number of their own behind those of the layers, where there is one; else like those that see least. Words laid upon a
 * file's numbers are what counts, and so are the tokens of an entry that they go with. */
static void layers_of_predicted_tokens_see_what_is_said(void **state)
{
	static const char next[] = ", num_nextn_predict_layers: 1";
	static const struct {
		const char *more;
		int like;
	} of[] = {
		{ RATIOS("0, 4, 128, 4"), 1 },	 { RATIOS("0, 4, 128, 0"), 0 },
		{ RATIOS("0, 4, 128, 128"), 2 }, { RATIOS("0, 4, 128"), 0 },
		{ RATIOS("4, 4, 128, 0"), 2 },	 { RATIOS("128, 4, 128, 128"), 0 },
	};
	struct ft_model *words =
		model_from("{name: deepseek-v4-flash, layer_types: "
			   "[compressed_sparse_attention], compress_rate_csa: 8}");

	(void)state;
	assert_int_equal(words->layer[0].entry_tokens, 8);
	ft_model_free(words);
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		char text[700];
		struct ft_model *m;

		snprintf(text, sizeof(text), MODEL("3", "%s%s"), of[i].more, next);
		m = model_from(text);
		assert_int_equal(m->predicted_like, of[i].like);
		ft_model_free(m);
	}
}

static void mistakes_are_told_with_their_place(void **state)
{
	static const struct mistake wrong[] = {
		{ "name: deepseek-v4-flash\nnum_key_value_heads: 2", 2, 22,
		  "such attention has one head of keys" },
		{ "name: deepseek-v4-flash\nattention_bias: true", 2, 17,
		  "such attention has no biases; say false" },
		{ "name: deepseek-v4-flash\no_groups: 7", 2, 11,
		  "num_attention_heads 64 is not a multiple of 7" },
		{ "name: deepseek-v4-flash\nqk_rope_head_dim: 1024", 2, 19,
		  "1024 is more than head_dim, which is 512" },
		{ "name: deepseek-v4-flash\ncompress_ratios: [0, 4]", 2, 18,
		  "names 2 of the 43 layers" },
		{ "name: deepseek-v4-flash\nnum_hidden_layers: 2\n"
		  "compress_ratios: [0, 8]",
		  3, 18, "layer 2 has 8, which is neither 0 nor 4" },
		{ "name: deepseek-v4-flash\nnum_hidden_layers: 1\n"
		  "num_nextn_predict_layers: 1\ncompress_ratios: [0, 4]",
		  4, 18, "predicted tokens' layer has 4, as no layer of the model" },
		{ "name: deepseek-v4-flash\ncompress_rate_hca: 4", 2, 20,
		  "is 4 as compress_rate_csa is" },
		{ "name: deepseek-v4-flash\nlayer_types: [full_attention]", 2, 15,
		  "full_attention is no layer that is simulated; those are: "
		  "sliding_attention, compressed_sparse_attention" },
		{ "name: deepseek-v4-flash\nkv_lora_rank: 512", 2, 1,
		  "kv_lora_rank does nothing in a model of type deepseek_v4" },
		{ "name: llama3-8b\nhc_mult: 4", 2, 1,
		  "hc_mult does nothing in a model of type llama" },
	};

	(void)state;
	refused(wrong, sizeof(wrong) / sizeof(*wrong));
}

/* Flash with its module of the next token: 290,942,278,866, as pytorch/torchtitan counts it (pull request 4441); published 284B, 13B of
 * them active, and 1.6T, 49B. What is active is published without the embedding. */
static void it_has_the_parameters_that_are_published(void **state)
{
	struct ft_model *next =
		model_from("{name: deepseek-v4-flash, num_nextn_predict_layers: 1}");
	struct ft_model *flash = model_from("deepseek-v4-flash");
	struct ft_model *pro =
		model_from("{name: deepseek-v4-pro, num_nextn_predict_layers: 1}");

	(void)state;
	assert_true(ft_model_parameters(next) == 290942278866.);
	near_frac(ft_model_parameters(flash), 284e9, 0.002);
	near_frac(ft_model_active_parameters(flash) - 129280. * 4096, 13e9, 0.03);
	near_frac(ft_model_parameters(pro), 1.6e12, 0.001);
	ft_model_free(pro);
	ft_model_free(flash);
	ft_model_free(next);
}

/* Queries times entries, one by one. */
static double entries_seen(int64_t tokens, int64_t most)
{
	double sum = 0;

	for (int64_t t = 1; t <= TOKENS; t++)
		sum += (double)(t / tokens < most ? t / tokens : most);
	return sum;
}

/* A sum over tokens, but for the half of an entry that each token is taken to have begun. */
static void entries_are_seen_when_they_are_whole(void **state)
{
	struct ft_model *m = model_from(MODEL("3", RATIOS("0, 4, 128")));
	const struct ft_layer *l = m->layer;

	(void)state;
	assert_true(ft_layer_entry_pairs(&l[0], TOKENS, true) == 0);
	near_frac(ft_layer_entry_pairs(&l[1], TOKENS, true), entries_seen(4, TOPK),
		  0.02);
	near_frac(ft_layer_scored(&l[1], TOKENS, true), entries_seen(4, TOKENS), 0.02);
	near_frac(ft_layer_entry_pairs(&l[2], 64 * TOKENS, true),
		  64. * TOKENS * 64 * TOKENS / 2 / 128, 1e-12);
	ft_model_free(m);
}

/* Matrices of a layer, which are whole on a rank: queries, keys, groups and output, entries, an indexer with entries of its own, streams,
 * a router and a shared expert; 6 FLOP each, and those of attention. */
static void flops_are_those_of_its_matrices(void **state)
{
	static const double base = H * QRANK + QRANK * HEADS * DIM + H * DIM +
				   HEADS * DIM * RANK + GROUPS * RANK * H;
	static const double streams = 2. * STREAMS * (STREAMS + 2) * STREAMS * H;
	static const double experts = 3. * H * 256 * 3 + H * 8;
	static const double index = QRANK * INDEX_HEADS * INDEX_DIM + H * INDEX_HEADS +
				    2. * H * 2 * INDEX_DIM;
	static const char *const ratios[] = { "0", "4", "128" };
	static const double entries[] = { 0, 4. * H * DIM, 2. * H * DIM };

	(void)state;
	for (int i = 0; i < 3; i++) {
		char text[600];
		struct ft_model *m;
		const struct ft_layer *l;
		double scored, seen;

		snprintf(text, sizeof(text), MODEL("1", ", compress_ratios: [%s]"),
			 ratios[i]);
		m = model_from(text);
		l = m->layer;
		seen = ft_layer_pairs(l, TOKENS, WINDOW, true) +
		       ft_layer_entry_pairs(l, TOKENS, true);
		scored = i == 1 ? ft_layer_scored(l, TOKENS, true) : 0;
		near_frac(ft_model_flop_per_token(m, 1, TOKENS, true),
			  6 * (base + entries[i] + (i == 1 ? index : 0) + streams +
			       experts + H * 512. + HEADS * 2. * DIM * seen / TOKENS) +
				  2 * INDEX_HEADS * INDEX_DIM * scored / TOKENS,
			  1e-12);
		ft_model_free(m);
	}
}

/* Attention and scores of what a token sees; products of entries forward and both gradients, those of the indexer without the one of
 * their input, which is detached. */
static void its_works_are_counted(void **state)
{
	double seen = ft_attention_pairs(TOKENS, TOKENS, WINDOW, true) +
		      ft_attention_pairs(TOKENS, TOKENS, 4 * TOPK, true) / 4;
	double keys = floor(seen / TOKENS + 0.5), scored = TOKENS * TOKENS / 8.;
	struct parts p;

	(void)state;
	build(&p, MODEL("1", RATIOS("4")), PLAN(""), "megatron-bridge-26.06", 8);
	near_frac(sum_of(p.graph, "attention").flop,
		  PASSES * 3.5 * 2 * 2 * DIM * HEADS * keys * TOKENS, 1e-12);
	near_frac(sum_of(p.graph, "index_target").flop,
		  PASSES * 2. * DIM * HEADS * keys * TOKENS, 1e-12);
	near_frac(sum_of(p.graph, "index_scores").flop,
		  PASSES * 2. * INDEX_DIM * INDEX_HEADS * scored, 1e-12);
	near_frac(sum_of(p.graph, "entry_parts").flop,
		  PASSES * 2. * TOKENS * H * 2 * (2 * DIM * 3 + 2 * INDEX_DIM * 2),
		  1e-12);
	near_frac(sum_of(p.graph, "index_q").flop +
			  sum_of(p.graph, "index_weights").flop,
		  PASSES * 4. * TOKENS *
			  (QRANK * INDEX_HEADS * INDEX_DIM + H * INDEX_HEADS),
		  1e-12);
	near_frac(sum_of(p.graph, "out_groups").flop,
		  PASSES * 6. * TOKENS * HEADS * DIM * RANK, 1e-12);
	near_frac(sum_of(p.graph, "attention_out").flop,
		  PASSES * 6. * TOKENS * GROUPS * RANK * H, 1e-12);
	near_frac(sum_of(p.graph, "q_up").flop,
		  PASSES * 6. * TOKENS * QRANK * HEADS * DIM, 1e-12);
	expect(&p, "output_rotary", 2 * PASSES, 4. * TOKENS * HEADS * TURNED, 1);
	expect(&p, "input_sum", PASSES, 3 * 6. * TOKENS * H, 3);
	assert_int_equal(sum_of(p.graph, "add_norm").n, 0);
	drop(&p);
}

/* In 8 bit entries, groups and the indexer's weights stay as they are. */
static void some_products_stay_in_sixteen_bit(void **state)
{
	static const char *const stay[] = { "entry_parts", "out_groups",
					    "index_weights" };
	static const char *const narrow[] = { "q_down", "q_up", "kv_down", "index_q",
					      "attention_out" };
	struct parts p;

	(void)state;
	build(&p, MODEL("1", RATIOS("4")), PLAN(", precision: mxfp8"),
	      "megatron-bridge-26.06", 8);
	for (size_t i = 0; i < p.graph->n_works; i++) {
		const struct ft_work *w = &p.graph->work[i];

		for (int k = 0; k < 3; k++)
			if (!strcmp(w->name, stay[k]))
				assert_int_equal(w->dtype, FT_BF16);
		for (int k = 0; k < 5; k++)
			if (!strcmp(w->name, narrow[k]))
				assert_int_equal(w->dtype, FT_MXFP8);
	}
	drop(&p);
}

/* Primus copies the weights of experts together: 2 bytes a number read and written, each way, and kept of each micro-batch; not of experts that run
 * one by one. */
static void stacked_experts_are_copied_and_kept(void **state)
{
	double numbers = 3. * 8 * 256 * H, kept;
	struct parts p;

	(void)state;
	build(&p, MODEL("1", RATIOS("0")), PLAN(""), "primus-deepseek-v4-2026", 8);
	expect(&p, "expert_stack", PASSES, 4 * numbers, 2);
	expect(&p, "expert_stack_back", PASSES, 4 * numbers, 2);
	kept = kept_by_layer(p.graph);
	p.stack->layout.stacked_experts = false;
	rebuild(&p);
	near_frac(kept - kept_by_layer(p.graph), 2 * numbers, 1e-9);
	drop(&p);
	build(&p, MODEL("1", RATIOS("0")), PLAN(", grouped_experts: false"),
	      "primus-deepseek-v4-2026", 8);
	assert_int_equal(sum_of(p.graph, "expert_stack").n, 0);
	drop(&p);
}

/* By all tokens of a sequence, as kernels take them: of each query a whole number. */
static double keys_seen(const struct ft_layer *l, int64_t tokens)
{
	double seen;

	if (!tokens)
		return 0;
	seen = ft_layer_pairs(l, tokens, WINDOW, true) +
	       ft_layer_entry_pairs(l, tokens, true);
	return (double)tokens * floor(seen / (double)tokens + 0.5);
}

/* Of four context ranks the last sees most: the window, and entries of all before; each has all entries, and what its neighbour's last
 * tokens give to its window. */
static void the_last_context_rank_sees_most(void **state)
{
	static const char *const ratio[] = { "0", "4", "128" };
	enum { CP = 4, OWN = TOKENS / CP };

	(void)state;
	for (int i = 0; i < 3; i++) {
		char text[600];
		struct ft_model *m;
		double seen = 0, keys;
		struct parts p;

		snprintf(text, sizeof(text), MODEL("1", ", compress_ratios: [%s]"),
			 ratio[i]);
		m = model_from(text);
		for (int64_t n = TOKENS; n >= TOKENS - OWN; n -= OWN)
			seen += (n == TOKENS ? 1 : -1) *
				(ft_layer_pairs(m->layer, n, WINDOW, true) +
				 ft_layer_entry_pairs(m->layer, n, true));
		keys = floor(seen / OWN + 0.5);
		build(&p, text, PLAN(", parallel: {cp: 4}"), "megatron-bridge-26.06",
		      8);
		near_frac(sum_of(p.graph, "attention").flop,
			  sum_of(p.graph, "attention").n / 2 * 3.5 * 2 * 2 * DIM *
				  HEADS * keys * OWN,
			  1e-12);
		if (i)
			near_frac(sum_of(p.graph, "cp_all_gather").bytes,
				  sum_of(p.graph, "attention").n / 2 * 2. * TOKENS *
					  (DIM + (i == 1 ? INDEX_DIM : 0)) /
					  (i == 1 ? 4 : 128),
				  1e-12);
		assert_int_equal(sum_of(p.graph, "cp_exchange").n,
				 sum_of(p.graph, "attention").n);
		assert_int_equal(sum_of(p.graph, "cp_reduce_scatter").n,
				 sum_of(p.graph, "cp_all_gather").n);
		drop(&p);
		ft_model_free(m);
	}
}

/* A query sees the window and the entries of its document alone, whether the window is longer or shorter. */
static void documents_have_entries_of_their_own(void **state)
{
	static const char *const ratio[] = { "4", "128" };
	static const int64_t document[] = { 256, 160, 8 };

	(void)state;
	for (int i = 0; i < 6; i++) {
		int64_t one = document[i / 2], left = TOKENS % one;
		double n = (double)(TOKENS / one);
		char text[600], plan[200];
		struct ft_model *m;
		const struct ft_layer *l;
		struct parts p;

		snprintf(text, sizeof(text), MODEL("1", ", compress_ratios: [%s]"),
			 ratio[i % 2]);
		snprintf(plan, sizeof(plan), PLAN(", document_length: %lld"),
			 (long long)one);
		m = model_from(text);
		l = m->layer;
		build(&p, text, plan, "megatron-bridge-26.06", 8);
		near_frac(ft_layer_entry_pairs(p.model->layer, TOKENS, true),
			  n * ft_layer_entry_pairs(l, one, true) +
				  (left ? ft_layer_entry_pairs(l, left, true) : 0),
			  1e-12);
		near_frac(ft_layer_scored(p.model->layer, TOKENS, true),
			  n * ft_layer_scored(l, one, true) +
				  (left ? ft_layer_scored(l, left, true) : 0),
			  1e-12);
		near_frac(sum_of(p.graph, "attention").flop,
			  PASSES * 3.5 * 2 * 2 * DIM * HEADS *
				  (n * keys_seen(l, one) + keys_seen(l, left)),
			  1e-12);
		drop(&p);
		ft_model_free(m);
	}
}

/* What runs again is the forward pass, and is counted as such: all of it, or queries and the streams' sums. */
static void it_is_computed_again_as_it_was(void **state)
{
	struct parts once, again;

	(void)state;
	build(&once, MODEL("3", RATIOS("0, 4, 128")), PLAN(""), "megatron-bridge-26.06",
	      8);
	build(&again, MODEL("3", RATIOS("0, 4, 128")), PLAN(", recompute: full"),
	      "megatron-bridge-26.06", 8);
	near_frac(sum_of(again.graph, NULL).flop - sum_of(once.graph, NULL).flop,
		  again.graph->recomputed_flop_per_rank, 3e-3);
	drop(&again);
	build(&again, MODEL("3", RATIOS("0, 4, 128")),
	      PLAN(", recompute: selective, recompute_modules: [mla_up_proj, mhc]"),
	      "megatron-bridge-26.06", 8);
	near_frac(sum_of(again.graph, NULL).flop - sum_of(once.graph, NULL).flop,
		  again.graph->recomputed_flop_per_rank, 3e-3);
	assert_int_equal(sum_of(again.graph, "streams_mix").n,
			 2 * sum_of(once.graph, "streams_mix").n);
	assert_int_equal(sum_of(again.graph, "attention").n,
			 sum_of(once.graph, "attention").n);
	drop(&again);
	drop(&once);
}

/* What cannot be is refused, and says what can. */
static void what_no_framework_does_is_refused(void **state)
{
	struct ft_error err = { .text = "" };
	struct ft_stack *other = ft_stack_load("transformers-5-eager", NULL, &err);
	enum { WRONG = 6 };
	struct ft_plan plan[WRONG];
	static const char *const text[WRONG] = {
		"parallel.tp 2: attention to compressed tokens",
		"lora: adapters beside attention to compressed tokens",
		"has no kernel for attention to compressed tokens",
		"recompute: selective runs attention again where",
		"recompute_modules: attention to compressed tokens runs again with",
		"recompute_modules: attention to compressed tokens runs again with",
	};
	struct parts p;

	(void)state;
	ok_or_say(other, err);
	build(&p, MODEL("2", RATIOS("0, 4")), PLAN(""), "megatron-bridge-26.06", 8);
	for (int i = 0; i < WRONG; i++) {
		plan[i] = *p.plan;
		plan[i].recompute = i > 2 ? FT_RECOMPUTE_SELECTIVE : FT_RECOMPUTE_NONE;
	}
	plan[0].tp = 2;
	plan[1].lora.rank = 8;
	plan[4].recompute_modules = FT_MODULE_STREAMS | FT_MODULE_CORE_ATTENTION;
	plan[5].recompute_modules = FT_MODULE_OUT_PROJECTION;
	for (int i = 0; i < WRONG; i++) {
		assert_null(ft_graph_build(p.model, &plan[i], i == 2 ? other : p.stack,
					   &err));
		if (!strstr(err.text, text[i]))
			fail_msg("%s: %s", text[i], err.text);
	}
	ft_stack_free(other);
	drop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_layers_see_is_said_in_three_ways),
		cmocka_unit_test(layers_of_predicted_tokens_see_what_is_said),
		cmocka_unit_test(mistakes_are_told_with_their_place),
		cmocka_unit_test(it_has_the_parameters_that_are_published),
		cmocka_unit_test(entries_are_seen_when_they_are_whole),
		cmocka_unit_test(flops_are_those_of_its_matrices),
		cmocka_unit_test(its_works_are_counted),
		cmocka_unit_test(some_products_stay_in_sixteen_bit),
		cmocka_unit_test(stacked_experts_are_copied_and_kept),
		cmocka_unit_test(the_last_context_rank_sees_most),
		cmocka_unit_test(documents_have_entries_of_their_own),
		cmocka_unit_test(it_is_computed_again_as_it_was),
		cmocka_unit_test(what_no_framework_does_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
