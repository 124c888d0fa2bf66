/* tests/test_indexed_plans.c - attention to chosen tokens under plans: what runs again, ranks, documents, formats, what is kept */
#include "tests/indexed.h"

#include "foretoken/reports.h"
#include "foretoken/study.h"
#include "study/shelf.h"

/* A choice that a layer behind sees, one that none does, and none. */
static const char shared[] = MODEL("3", ", index_topk_pattern: FSF");

static const struct {
	const char *recompute, *parallel;
} again[] = {
	{ ", recompute: full", "" },
	{ ", recompute: full", ", parallel: {tp: 4}" },
	{ ", recompute: full, recompute_layers: 1", ", parallel: {tp: 4}" },
	{ ", recompute: full", ", parallel: {cp: 2}" },
	{ ", recompute: selective, recompute_modules: [core_attn]", "" },
	{ ", recompute: selective, recompute_modules: [core_attn]",
	  ", parallel: {tp: 4}" },
	{ ", recompute: selective, recompute_modules: [core_attn]",
	  ", document_length: 128" },
	{ ", recompute: selective, recompute_modules: [mla_up_proj]", "" },
	{ ", recompute: selective, recompute_modules: [mla_up_proj]",
	  ", parallel: {tp: 4}" },
	{ ", recompute: selective, recompute_modules: [mla_up_proj, core_attn]", "" },
};

/* FLOPs of the graph, and FLOPs that are said to run again. */
static void what_runs_again_is_what_is_counted(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(again) / sizeof(*again); i++) {
		char text[2][300];
		struct parts once, twice;
		double more;

		snprintf(text[0], sizeof(text[0]), PLAN("%s"), again[i].parallel);
		snprintf(text[1], sizeof(text[1]), PLAN("%s%s"), again[i].parallel,
			 again[i].recompute);
		build(&once, shared, text[0], "megatron-core", 8);
		build(&twice, shared, text[1], "megatron-core", 8);
		more = sum_of(twice.graph, NULL).flop - sum_of(once.graph, NULL).flop;
		if (fabs(more / twice.graph->recomputed_flop_per_rank - 1) > 1e-9)
			fail_msg("%s: the graph has %.6g more, counted are %.6g",
				 text[1], more, twice.graph->recomputed_flop_per_rank);
		drop(&twice);
		drop(&once);
	}
}

/* An indexer's loss is of the pass that has gradients: of Megatron's checkpoints the second alone. */
static void a_loss_is_of_the_pass_with_gradients(void **state)
{
	static const struct {
		const char *plan, *stack;
		double scores, target;
	} of[] = {
		{ "", "megatron-core", 1, 1 },
		{ ", recompute: full", "megatron-core", 2, 1 },
		{ ", recompute: selective, recompute_modules: [core_attn]",
		  "megatron-core", 2, 1 },
		{ ", recompute: selective, recompute_modules: [mla_up_proj]",
		  "megatron-core", 1, 1 },
		{ ", recompute: full", "torchtitan-2026", 2, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		char text[200];
		struct parts p;

		snprintf(text, sizeof(text), PLAN("%s"), of[i].plan);
		build(&p, MODEL("1", ""), text, of[i].stack, 8);
		near_frac(sum_of(p.graph, "index_scores").n, of[i].scores * PASSES,
			  1e-12);
		near_frac(sum_of(p.graph, "index_target").n, of[i].target * PASSES,
			  1e-12);
		drop(&p);
	}
}

/* Scores of which a mask is made run again with it. */
static void a_mask_that_is_made_again_is_counted(void **state)
{
	static const char plan[] =
		"{sequence_length: 512, global_batch_size: 1, sharding: none, "
		"precision: bf16%s}";
	static const char model[] = MODEL("2", ", index_topk_pattern: FS");
	char text[200];
	struct parts once, twice;

	(void)state;
	snprintf(text, sizeof(text), plan, "");
	build(&once, model, text, "transformers-5-eager", 1);
	snprintf(text, sizeof(text), plan, ", recompute: full");
	build(&twice, model, text, "transformers-5-eager", 1);
	near_frac(sum_of(twice.graph, NULL).flop - sum_of(once.graph, NULL).flop,
		  twice.graph->recomputed_flop_per_rank, 1e-9);
	drop(&twice);
	drop(&once);
}

/* Each document by itself, also what is left behind the last whole one. */
static void indexers_stay_in_documents(void **state)
{
	static const struct {
		const char *plan;
		double whole, length, left;
	} of[] = { { ", document_length: 128", 4, 128, 0 },
		   { ", document_length: 200", 2, 200, 112 } };

	(void)state;
	for (int i = 0; i < 2; i++) {
		double n = of[i].length, r = of[i].left, w = of[i].whole;
		double all = w * ft_attention_pairs(n, n, 0, true);
		double seen = w * ft_attention_pairs(n, n, TOPK, true);
		char text[200];
		struct parts p;

		if (r > 0) {
			all += ft_attention_pairs(r, r, 0, true);
			seen += ft_attention_pairs(r, r, TOPK, true);
		}
		snprintf(text, sizeof(text), PLAN("%s"), of[i].plan);
		build(&p, MODEL("1", ""), text, "megatron-core", 8);
		near_frac(sum_of(p.graph, "index_scores").flop,
			  PASSES * 2. * INDEX_DIM * INDEX_HEADS * all, 1e-12);
		near_frac(sum_of(p.graph, "index_scores_back").flop,
			  PASSES * 5. * INDEX_DIM * INDEX_HEADS * seen, 1e-12);
		near_frac(sum_of(p.graph, "index_target").flop,
			  PASSES * 2. * (LATENT + ROPE) * HEADS * seen, 1e-12);
		drop(&p);
	}
}

/* Slices of what an indexer reads are made whole, forward, as it sends nothing back: where a rank has slices. */
static void what_an_indexer_reads_is_gathered(void **state)
{
	static const struct {
		const char *model, *plan, *stack;
		double times;
	} of[] = {
		{ MODEL("1", ""), PLAN(", parallel: {tp: 4}"), "megatron-core", 1 },
		{ MODEL("2", ", index_topk_pattern: FS"), PLAN(", parallel: {tp: 4}"),
		  "megatron-core", 1 },
		{ MODEL("1", ""), PLAN(", parallel: {tp: 4}, recompute: full"),
		  "megatron-core", 2 },
		{ MODEL("1", ""), PLAN(""), "megatron-core", 0 },
		{ MODEL("1", ""),
		  "{sequence_length: 512, global_batch_size: 32, sharding: ddp, "
		  "sequence_parallel: false, parallel: {tp: 4}}",
		  "megatron-core", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct parts p;
		struct sum s;

		build(&p, of[i].model, of[i].plan, of[i].stack, 8);
		s = sum_of(p.graph, "index_all_gather");
		near_frac(s.n, of[i].times * PASSES * 4, 1e-12);
		near_frac(s.bytes, s.n * 2. * TOKENS * (H + QRANK), 1e-12);
		drop(&p);
	}
}

/* Latents and an indexer's keys of all context ranks, once, and kept; backward the sums of their gradients, of keys where
 * the indexer is trained. */
static void context_ranks_share_keys(void **state)
{
	static const char *const more[] = { "", ", indexer_loss: false" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		double each = 2. * TOKENS;
		char text[200];
		struct parts one, two;

		snprintf(text, sizeof(text), PLAN(", parallel: {cp: 2}%s"), more[i]);
		build(&two, MODEL("1", ""), text, "megatron-core", 8);
		near_frac(sum_of(two.graph, "cp_all_gather").bytes,
			  2 * PASSES * each * (LATENT + ROPE + INDEX_DIM), 1e-12);
		near_frac(sum_of(two.graph, "cp_reduce_scatter").bytes,
			  2 * PASSES * each * (LATENT + ROPE + (i ? 0 : INDEX_DIM)),
			  1e-12);
		snprintf(text, sizeof(text), PLAN("%s"), more[i]);
		build(&one, MODEL("1", ""), text, "megatron-core", 8);
		near_frac(kept_by_layer(two.graph) - kept_by_layer(one.graph) / 2,
			  each / 2 * (LATENT + ROPE + (i ? 0 : INDEX_DIM)), 1e-12);
		drop(&two);
		drop(&one);
	}
}

/* A layer keeps what it chose among all tokens: no more than there are. */
static void no_more_is_chosen_than_there_is(void **state)
{
	static const char *const model[] = {
		"{model_type: deepseek_v32, " KEYS(
			"1") ", index_n_heads: 4, index_head_dim: 32, index_topk: 512}",
		"{model_type: deepseek_v32, " KEYS(
			"1") ", index_n_heads: 4, index_head_dim: 32, index_topk: 4096}",
	};
	struct parts p[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		build(&p[i], model[i], PLAN(", parallel: {tp: 4}"), "megatron-core", 8);
	near_frac(kept_by_layer(p[1].graph), kept_by_layer(p[0].graph), 1e-12);
	near_frac(sum_of(p[1].graph, NULL).bytes, sum_of(p[0].graph, NULL).bytes,
		  1e-12);
	drop(&p[1]);
	drop(&p[0]);
}

/* Bytes a token beyond a layer whose attention gathers what another chose; beside that each keeps the same. */
static double kept_more(const char *plan)
{
	struct parts chooses, sees;
	double more;

	build(&chooses, MODEL("1", ""), plan, "megatron-core", 8);
	build(&sees, MODEL("1", ""), plan, "megatron-core", 8);
	sees.model->layer[0].shares_index = true;
	rebuild(&sees);
	more = kept_by_layer(chooses.graph) - kept_by_layer(sees.graph);
	drop(&sees);
	drop(&chooses);
	return more / TOKENS;
}

/* Its queries and key in 16 bit, its softmax, attention's, and the choice; slices that were gathered; nothing of it where
 * the core runs again, which it is a part of. */
static void an_indexer_keeps_what_it_is_trained_by(void **state)
{
	double trained = 2. * INDEX_DIM * (INDEX_HEADS + 1) + 8 * TOPK;

	(void)state;
	near_frac(kept_more(PLAN("")), trained + 4 * TOPK, 1e-12);
	near_frac(kept_more(PLAN(", indexer_loss: false")), 4. * TOPK, 1e-12);
	near_frac(kept_more(PLAN(", parallel: {tp: 4}")),
		  trained + 4 * TOPK + 2. * (H + QRANK), 1e-12);
	assert_true(kept_more(PLAN(", recompute: selective, recompute_modules: "
				   "[core_attn]")) == 0);
	assert_true(kept_more(PLAN(", recompute: full")) == 0);
}

/* At a layer's fullest moment the scores of all pairs are there in fp32, with half of what it keeps; backward where it chooses
 * again. */
static void scores_of_all_pairs_are_there_once(void **state)
{
	static const struct {
		const char *how;
		bool back;
	} of[] = {
		{ "", false },
		{ ", recompute: selective, recompute_modules: [mla_up_proj]", false },
		{ ", recompute: selective, recompute_modules: [core_attn]", true },
		{ ", recompute: full", true },
	};
	double scores = 4. * 32768 * 32768;

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		const struct ft_segment *there, *back;
		double kept;
		char text[250];
		struct parts p;

		snprintf(text, sizeof(text),
			 "{sequence_length: 32768, global_batch_size: 8, sharding: "
			 "ddp%s}",
			 of[i].how);
		build(&p, MODEL("1", ""), text, "megatron-core", 8);
		there = segment_of(p.graph, "forward");
		kept = there->net_bytes[FT_MEMORY_ACTIVATIONS];
		near_frac(there->peak_bytes[FT_MEMORY_ACTIVATIONS], kept / 2 + scores,
			  1e-12);
		back = segment_of(p.graph, "backward");
		assert_int_equal(back->peak_bytes[FT_MEMORY_ACTIVATIONS] > scores / 2,
				 of[i].back);
		drop(&p);
	}
}

/* Modules that run again take along what is theirs: absorbed queries, or attention's output in the latents' space. */
static void modules_that_run_again_keep_less(void **state)
{
	static const char *const how[] = {
		PLAN(""),
		PLAN(", recompute: selective, recompute_modules: [mla_up_proj]"),
		PLAN(", recompute: selective, recompute_modules: [core_attn]"),
	};
	double kept[3], own = 2. * INDEX_DIM * (INDEX_HEADS + 1) + 12 * TOPK;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct parts p;

		build(&p, MODEL("1", ""), how[i], "megatron-core", 8);
		kept[i] = kept_by_layer(p.graph) / TOKENS;
		drop(&p);
	}
	near_frac(kept[0] - kept[1],
		  2. * HEADS * (NOPE + ROPE + LATENT + ROPE) + 2 * (LATENT + ROPE),
		  1e-12);
	near_frac(kept[0] - kept[2], 2. * HEADS * LATENT + own, 1e-12);
}

/* A choice outlives its layer's checkpoint where a layer behind it, which runs again before it, sees it. */
static void a_shared_choice_is_kept_under_checkpoints(void **state)
{
	struct parts alone, seen;

	(void)state;
	build(&alone, MODEL("2", ", index_topk_pattern: FF"), PLAN(", recompute: full"),
	      "megatron-core", 8);
	build(&seen, MODEL("2", ", index_topk_pattern: FS"), PLAN(", recompute: full"),
	      "megatron-core", 8);
	near_frac(kept_by_layer(seen.graph) - kept_by_layer(alone.graph),
		  4. * TOPK * TOKENS, 1e-12);
	drop(&seen);
	drop(&alone);
}

/* From stage to stage a choice goes along, forward, where the layer behind the boundary sees it: indices of 4 bytes. */
static void a_choice_goes_along_between_stages(void **state)
{
	static const struct {
		const char *model;
		double with; /* of three boundaries */
	} of[] = { { MODEL("8", ", index_topk_pattern: FSFSFSFS"), 0 },
		   { MODEL("8", ", index_topk_pattern: FFFFSSFF"), 1 },
		   { MODEL("8", ", index_topk_pattern: FSSSSSSF"), 3 } };
	double hidden = 2. * TOKENS * H, choice = 4. * TOKENS * TOPK;

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		double passes = 32. / 2;
		struct parts p;

		build(&p, of[i].model, PLAN(", parallel: {pp: 4}"), "megatron-core", 8);
		/* sent and received */
		near_frac(sum_of(p.graph, "pp_activation").bytes,
			  2 * passes * (3 * hidden + of[i].with * choice), 1e-12);
		near_frac(sum_of(p.graph, "pp_gradient").bytes, 2 * passes * 3 * hidden,
			  1e-12);
		drop(&p);
	}
}

/* Absorbed up-projections are views of a weight, and run in 16 bit; an indexer's own products in the plan's format. */
static void absorbed_products_are_in_16_bit(void **state)
{
	struct parts p;

	(void)state;
	build(&p, MODEL("1", ""), PLAN(", precision: fp8"), "megatron-core", 8);
	assert_int_equal(work_of(p.graph, "absorb_keys")->dtype, FT_BF16);
	assert_int_equal(work_of(p.graph, "project_values")->dtype, FT_BF16);
	assert_int_equal(work_of(p.graph, "index_q")->dtype, FT_FP8);
	assert_int_equal(work_of(p.graph, "attention")->dtype, FT_BF16);
	drop(&p);
}

static void expect_refused(const char *plan, const char *stack, const char *text)
{
	struct ft_error err = { .text = "" };
	struct arena mem = { 0 };
	struct ft_plan_context context = { .ranks = 8, .ranks_per_node = 8 };
	struct ft_model *model = model_from(MODEL("1", ""));
	struct ft_stack *s = ft_stack_load(stack, NULL, &err);
	struct node *n = node_read_text(&mem, "t", plan, strlen(plan), &err);
	struct ft_plan *p;

	ok_or_say(s, err);
	ok_or_say(n, err);
	p = ft_plan_load(node_overlay(&mem, s->defaults, n), model, &context, &err);
	ok_or_say(p, err);
	assert_null(ft_graph_build(model, p, s, &err));
	if (!strstr(err.text, text))
		fail_msg("%s: %s", plan, err.text);
	ft_plan_free(p);
	ft_stack_free(s);
	ft_model_free(model);
	arena_release(&mem);
}

static void what_is_not_known_is_refused(void **state)
{
	(void)state;
	expect_refused(PLAN(", precision: fp8, attention_precision: fp8"),
		       "megatron-core", "train in 16 bit alone");
	expect_refused("{sequence_length: 512, global_batch_size: 32, sharding: fsdp, "
		       "recompute: selective, recompute_modules: [op]}",
		       "torchtitan-2026", "indexers");
}

/* Indexers are trained where attention gathers what they choose, and not where that is a mask. */
static void their_loss_means_nothing_where_a_mask_is_made(void **state)
{
	static const char *const stack[] = { "transformers-5-eager",
					     "torch-2.9-written-out", "megatron-core" };
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct ft_error err = { .text = "" };
		struct ft_scenario *s =
			of_eight(shelf, &mem, stack[i], "num_hidden_layers: 3",
				 "sharding: fsdp, indexer_loss: false", &err);

		assert_int_equal(s != NULL, i == 2);
		if (!s)
			assert_non_null(strstr(err.text, "indexer_loss has an effect"));
		ft_scenario_free(s);
	}
	arena_release(&mem);
	ft_shelf_free(shelf);
}

/* Megatron Core's loss of an indexer is of all tokens, and none without a coefficient; its chosen tokens take no other way over
 * context ranks. */
static void megatron_is_told_of_indexers(void **state)
{
	static const struct {
		const char *model, *training, *line;
	} told[] = {
		{ "num_hidden_layers: 4", "parallel: {cp: 2}",
		  "--dsa-indexer-use-sparse-loss\n# not mapped: indexer_loss: choose "
		  "dsa_indexer_loss_coeff\n" },
		{ "num_hidden_layers: 4", "parallel: {cp: 2}, indexer_loss: false",
		  "--dsa-indexer-loss-coeff 0.0\n" },
		{ "num_hidden_layers: 4, index_topk_pattern: FSSS",
		  "parallel: {cp: 2, pp: 2}",
		  "# not mapped: layer 3 begins a chunk and sees what an earlier one "
		  "chose" },
	};
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct ft_error err = { .text = "" };
		struct ft_scenario *s = of_eight(shelf, &mem, "megatron-core",
						 told[i].model, told[i].training, &err);
		char *said;
		size_t len;
		FILE *out = open_memstream(&said, &len);

		ok_or_say(s, err);
		ft_report_plan_arguments(out, s, FT_MEGATRON);
		fclose(out);
		if (!strstr(said, told[i].line) ||
		    !strstr(said, "--cp-comm-type allgather\n"))
			fail_msg("%s", said);
		free(said);
		ft_scenario_free(s);
	}
	arena_release(&mem);
	ft_shelf_free(shelf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_runs_again_is_what_is_counted),
		cmocka_unit_test(a_loss_is_of_the_pass_with_gradients),
		cmocka_unit_test(a_mask_that_is_made_again_is_counted),
		cmocka_unit_test(indexers_stay_in_documents),
		cmocka_unit_test(what_an_indexer_reads_is_gathered),
		cmocka_unit_test(context_ranks_share_keys),
		cmocka_unit_test(no_more_is_chosen_than_there_is),
		cmocka_unit_test(an_indexer_keeps_what_it_is_trained_by),
		cmocka_unit_test(scores_of_all_pairs_are_there_once),
		cmocka_unit_test(modules_that_run_again_keep_less),
		cmocka_unit_test(a_shared_choice_is_kept_under_checkpoints),
		cmocka_unit_test(a_choice_goes_along_between_stages),
		cmocka_unit_test(absorbed_products_are_in_16_bit),
		cmocka_unit_test(what_is_not_known_is_refused),
		cmocka_unit_test(their_loss_means_nothing_where_a_mask_is_made),
		cmocka_unit_test(megatron_is_told_of_indexers),
	};

	return cmocka_run_group_tests_name("indexed_plans", tests, NULL, NULL);
}
