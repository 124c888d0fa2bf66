/* tests/test_plan.c - parallel plans: what is derived, and what cannot be */

#include "tests/check.h"

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/models.h"

static struct ft_model *model_of(const char *yaml)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *node = node_read_text(&mem, "test.yaml", yaml, strlen(yaml), &err);
	struct ft_model *model;

	assert_non_null(node);
	model = ft_model_load(node, &err);
	assert_non_null(model);
	arena_release(&mem);
	return model;
}

static struct ft_plan *plan_of(const char *model_yaml, int64_t ranks, bool ragged,
			       const char *yaml, struct ft_error *err)
{
	struct ft_plan_context context = { .ranks = ranks,
					   .ranks_per_node = 8,
					   .ragged_batch = ragged,
					   .gpus = { "cluster.yaml", 7, 9 } };
	struct ft_model *model = model_of(model_yaml);
	struct arena mem = { 0 };
	struct node *node = node_read_text(&mem, "test.yaml", yaml, strlen(yaml), err);
	struct ft_plan *plan;

	assert_non_null(node);
	plan = ft_plan_load(node, model, &context, err);
	arena_release(&mem);
	ft_model_free(model);
	return plan;
}

static struct ft_plan *good(const char *model_yaml, int64_t ranks, const char *yaml)
{
	struct ft_error err;
	struct ft_plan *plan = plan_of(model_yaml, ranks, false, yaml, &err);

	if (!plan)
		fail_msg("%s: %d:%d: %s", yaml, err.line, err.column, err.text);
	return plan;
}

static void missing_keys_take_their_defaults(void **state)
{
	struct ft_plan *p = good("llama3-8b", 16,
				 "{sequence_length: 4096, "
				 "global_batch_size: 64}");

	(void)state;
	assert_int_equal(p->tp * p->pp * p->cp * p->ep * p->etp * p->vpp, 1);
	assert_int_equal(p->dp, 16);
	assert_int_equal(p->micro_batches, 4);
	assert_int_equal(p->last_micro_batch, 1);
	assert_int_equal(p->precision, FT_BF16);
	assert_int_equal(p->gradient_dtype, FT_FP32);
	assert_int_equal(p->sharding, FT_ZERO1);
	assert_int_equal(p->shard, 16);
	assert_int_equal(p->schedule, FT_1F1B);
	assert_int_equal(p->recompute, FT_RECOMPUTE_NONE);
	assert_int_equal(p->step_start, FT_STEADY);
	assert_true(p->master_weights && p->reshard_after_forward);
	assert_true(!p->overlap_tp && p->overlap_dp && p->overlap_pp);
	assert_false(p->sequence_parallel);
	assert_int_equal(p->stage_layers[0], 32);
	ft_plan_free(p);
}

static void a_full_plan_is_read_as_written(void **state)
{
	struct ft_plan *p =
		good("llama3-70b", 1024,
		     "sequence_length: 8192\nglobal_batch_size: 1024\n"
		     "precision: fp8\nrecompute: selective\nsharding: zero3\n"
		     "gradient_dtype: bf16\nstep_start: together\n"
		     "parallel: {tp: 8, pp: 4, cp: 2, vpp: 5}\n"
		     "overlap: {tp: true, dp: false}\n");

	(void)state;
	assert_int_equal(p->dp, 16);
	assert_int_equal(p->micro_batches, 64);
	assert_int_equal(p->schedule, FT_INTERLEAVED);
	assert_int_equal(p->sharding, FT_FSDP);
	assert_int_equal(p->shard, 32);
	assert_true(p->sequence_parallel && p->overlap_tp);
	assert_false(p->overlap_dp);
	assert_int_equal(p->stage_layers[19], 4);
	ft_plan_free(p);
}

static void sharding_in_a_node_leaves_tensor_ranks_out(void **state)
{
	static const struct {
		const char *yaml;
		int64_t shard, ranks;
	} known[] = {
		{ "sharding: hsdp", 8, 64 },
		{ "sharding: hsdp, shard: 32", 32, 64 },
		{ "sharding: hsdp, parallel: {tp: 4}", 2, 64 },
		{ "sharding: ddp", 1, 64 },
		{ "sharding: fsdp, shard: 8", 64, 64 },
		/* three or six would lie on one node, and the next ones on two */
		{ "sharding: hsdp, parallel: {tp: 1}", 4, 12 },
		{ "sharding: hsdp, parallel: {pp: 4}", 2, 24 },
		{ "sharding: hsdp, parallel: {tp: 2, pp: 2}", 2, 24 },
		{ "sharding: hsdp, parallel: {tp: 1}", 6, 6 },
		{ "sharding: hsdp, parallel: {tp: 2}", 3, 6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		char yaml[200];
		struct ft_plan *p;

		snprintf(yaml, sizeof(yaml),
			 "{sequence_length: 4096, global_batch_size: 192, %s}",
			 known[i].yaml);
		p = good("llama3-8b", known[i].ranks, yaml);
		assert_int_equal(p->shard, known[i].shard);
		ft_plan_free(p);
	}
}

static void experts_are_split_over_the_ranks_of_a_stage(void **state)
{
	struct ft_plan *p = good("deepseek-v3", 256,
				 "{sequence_length: 4096, global_batch_size: 4096, "
				 "parallel: {pp: 4, ep: 64, vpp: 4}}");
	struct ft_plan *dense = good("llama3-8b", 8,
				     "{sequence_length: 4096, global_batch_size: 8, "
				     "parallel: {ep: 3}}"),
		       *whole;

	(void)state;
	assert_int_equal(p->edp, 1);
	assert_int_equal(p->dp, 64);
	assert_int_equal(dense->ep, 1); /* cannot apply, so ignored */
	/* shards of one rank divide no experts either, however many ranks have the same */
	whole = good(
		"mixtral-8x7b", 8,
		"{sequence_length: 4096, global_batch_size: 8, sharding: hsdp, shard: 1, "
		"parallel: {tp: 4, ep: 2}}");
	assert_int_equal(whole->edp, 4);
	assert_int_equal(ft_plan_expert_shard(whole), 1);
	ft_plan_free(whole);
	ft_plan_free(p);
	ft_plan_free(dense);
}

/* Layers per chunk as published: 405B's 126 over 16, DeepSeek's 61 ... */
static void uneven_layers_leave_room_for_embedding_and_head(void **state)
{
	static const struct {
		int layers, pp, vpp;
		int want[8];
	} known[] = {
		{ 126, 8, 1, { 15, 16, 16, 16, 16, 16, 16, 15 } },
		{ 32, 4, 1, { 8, 8, 8, 8 } },
		{ 30, 4, 1, { 7, 8, 8, 7 } },
		{ 61, 4, 1, { 15, 16, 15, 15 } },
		{ 61, 2, 2, { 15, 16, 15, 15 } },
		{ 62, 3, 1, { 21, 21, 20 } },
		{ 35, 4, 1, { 9, 9, 9, 8 } },
		{ 6, 8, 1, { 0, 1, 1, 1, 1, 1, 1, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		int n = known[i].pp * known[i].vpp;
		char model[100], yaml[200];
		struct ft_plan *p;
		int64_t sum = 0;

		snprintf(model, sizeof(model),
			 "{name: llama3-8b, num_hidden_layers: %d}", known[i].layers);
		snprintf(yaml, sizeof(yaml),
			 "{sequence_length: 4096, global_batch_size: 64, "
			 "parallel: {pp: %d, vpp: %d}}",
			 known[i].pp, known[i].vpp);
		p = good(model, 2L * known[i].pp, yaml);
		for (int k = 0; k < n; k++) {
			sum += p->stage_layers[k];
			assert_int_equal(p->stage_layers[k], known[i].want[k]);
		}
		assert_int_equal(sum, known[i].layers);
		ft_plan_free(p);
	}
}

/* Whatever the numbers: nothing is lost, chunks differ by one at most (by two
 * at the ends where embedding and head take a slot), no end is the longest. */
static void stages_are_whole_and_even(void **state)
{
	(void)state;
	for (int layers = 4; layers < 70; layers += 3)
		for (int pp = 2; pp <= layers && pp <= 16; pp++) {
			char model[100], yaml[200];
			struct ft_plan *p;
			int64_t sum = 0, most = 0, least = layers;

			snprintf(model, sizeof(model),
				 "{name: llama3-8b, num_hidden_layers: %d}", layers);
			snprintf(yaml, sizeof(yaml),
				 "{sequence_length: 4096, global_batch_size: "
				 "8, parallel: {pp: %d}}",
				 pp);
			p = good(model, pp, yaml);
			for (int k = 0; k < pp; k++) {
				int64_t n = p->stage_layers[k];

				sum += n;
				most = n > most ? n : most;
				least = n < least ? n : least;
			}
			assert_int_equal(sum, layers);
			assert_true(most - least <= 1);
			assert_int_equal(p->stage_layers[pp - 1], least);
			ft_plan_free(p);
		}
}

static void stage_layers_may_be_given(void **state)
{
	struct ft_plan *p =
		good("{name: llama3-8b, num_hidden_layers: 10}", 4,
		     "{sequence_length: 4096, global_batch_size: 8, "
		     "parallel: {pp: 2, vpp: 2, stage_layers: [1, 4, 4, 1]}}");

	(void)state;
	assert_int_equal(p->stage_layers[1], 4);
	assert_int_equal(p->stage_layers[3], 1);
	ft_plan_free(p);
}

static void a_ragged_batch_needs_a_stack_that_takes_it(void **state)
{
	struct ft_error err;
	const char *yaml = "{sequence_length: 2048, global_batch_size: 2064, "
			   "micro_batch_size: 12}";
	struct ft_plan *p = plan_of("mpt-7b", 24, true, yaml, &err);

	(void)state;
	assert_non_null(p);
	assert_int_equal(p->micro_batches, 8); /* 86 = 7 * 12 + 2 */
	assert_int_equal(p->last_micro_batch, 2);
	ft_plan_free(p);
	assert_null(plan_of("mpt-7b", 24, false, yaml, &err));
	assert_null(plan_of("mpt-7b", 32, true, yaml, &err)); /* not of replicas */
	assert_non_null(strstr(err.text, "2064 is not a multiple of dp 32"));
}

/* Whole rows of scores do not lie on one rank of a context group. */
static void unfused_attention_has_no_context_group(void **state)
{
	const struct ft_plan_context context = { .ranks = 8,
						 .ranks_per_node = 8,
						 .no_context = "it is unfused" };
	const char *yaml[] = { "{sequence_length: 2048, global_batch_size: 8, "
			       "parallel: {cp: 2}}",
			       "{sequence_length: 2048, global_batch_size: 8}" };
	struct ft_model *model = model_of("gpt3-175b");

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ft_error err;
		struct arena mem = { 0 };
		struct node *node =
			node_read_text(&mem, "t", yaml[i], strlen(yaml[i]), &err);
		struct ft_plan *plan = ft_plan_load(node, model, &context, &err);

		assert_int_equal(plan != NULL, i);
		assert_true(i || (err.column == 62 && strstr(err.text, "unfused")));
		ft_plan_free(plan);
		arena_release(&mem);
	}
	ft_model_free(model);
}

#define SIZES "sequence_length: 4096\nglobal_batch_size: 64\n"

static void impossible_plans_point_at_the_key_to_change(void **state)
{
	static const struct {
		const char *model, *yaml;
		int line, column;
		const char *text;
	} wrong[] = {
		{ "llama3-8b", SIZES "parallel: {tp: 3}", 3, 16,
		  "tp 3 x pp 1 x cp 1 does not divide the 64 ranks" },
		{ "llama3-8b", SIZES "parallel: {pp: 128}", 3, 16,
		  "does not divide the 64 ranks" },
		{ "llama3-8b", SIZES "parallel: {tp: 2, pp: 2, cp: 3}", 3, 30,
		  "tp 2 x pp 2 x cp 3 does not divide the 64 ranks" },
		{ "llama3-8b", SIZES "parallel: {tp: 64}", 3, 16,
		  "does not divide the 32 attention heads" },
		{ "qwen2.5-7b", SIZES "parallel: {tp: 8}", 3, 16,
		  "does not divide the 28 attention heads" },
		{ "llama3-8b", SIZES "parallel:\n  pp: 64", 4, 7,
		  "more stages than the model's 32 layers" },
		{ "llama3-8b", SIZES "parallel: {pp: 4, vpp: 16}", 3, 16,
		  "more stages" },
		{ "llama3-8b",
		  "sequence_length: 4100\nglobal_batch_size: 64\n"
		  "parallel: {cp: 4}",
		  3, 16, "not a multiple of 2 x cp = 8" },
		{ "llama3-8b",
		  "sequence_length: 4098\nglobal_batch_size: 64\n"
		  "parallel: {tp: 4}",
		  3, 16, "sequence_parallel" },
		{ "llama3-8b", "sequence_length: 4096\nglobal_batch_size: 70", 2, 20,
		  "not a multiple of dp 64 x micro_batch_size 1 = 64" },
		{ "mixtral-8x7b", SIZES "parallel: {ep: 16}", 3, 16,
		  "does not divide the 8 experts" },
		{ "deepseek-v3", SIZES "parallel: {ep: 128}", 3, 16,
		  "does not divide the 64 ranks of a pipeline stage" },
		{ "llama3-8b", SIZES "sharding: hsdp\nshard: 3", 4, 8,
		  "does not divide the 64 ranks" },
		{ "llama3-8b", SIZES "schedule: gpipe\nparallel: {pp: 2, vpp: 2}", 4,
		  24, "one chunk a stage" },
		{ "llama3-8b", SIZES "schedule: fifo", 3, 11,
		  "1f1b, interleaved, gpipe, zero-bubble, zbv, dualpipev" },
		{ "llama3-8b", SIZES "schedule: zbv\nparallel: {pp: 2}", 4, 16,
		  "schedule zbv runs two chunks a stage, not 1; set vpp: 2" },
		{ "llama3-8b", SIZES "schedule: dualpipev\nparallel: {pp: 2}", 4, 16,
		  "schedule dualpipev runs two chunks a stage, not 1; set vpp: 2" },
		{ "llama3-8b", SIZES "schedule: dualpipev\nparallel: {pp: 1}", 4, 16,
		  "schedule dualpipev runs in a pipeline, pp 2 or more; with pp 1 set "
		  "schedule: 1f1b" },
		{ "llama3-8b",
		  SIZES "schedule: dualpipev\nmicro_batch_size: 8\n"
			"parallel: {tp: 8, pp: 4, vpp: 2}",
		  2, 20,
		  "64 is 4 micro-batches of each replica, schedule dualpipev needs 2 x "
		  "pp = 8 or more: global_batch_size 128, or a smaller "
		  "micro_batch_size or pp" },
		{ "llama3-8b",
		  "sequence_length: 4096\nglobal_batch_size: 128\n"
		  "schedule: dualpipev\nparallel: {pp: 32, vpp: 2}",
		  4, 16, "pp 32 x vpp 2 wants more stages than the model's 32 layers" },
		{ "llama3-8b", SIZES "precission: bf16", 3, 1,
		  "did you mean 'precision'" },
		{ "llama3-8b", SIZES "parallel: {dp: 4}", 3, 12, "unknown key 'dp'" },
		{ "llama3-8b", SIZES "overlap: {xp: true}", 3, 11,
		  "unknown key 'xp'; did you mean" },
		{ "llama3-8b", SIZES "recompute_modules: [mlp, nope]", 3, 20,
		  "'nope' is not one of core_attn" },
		{ "llama3-8b", SIZES "precision: mxfp8\nfp8_recipe: delayed", 4, 13,
		  "precision mxfp8 is not scaled by recipe delayed" },
		{ "llama3-8b", SIZES "precision: fp32", 3, 12,
		  "fp32 is not simulated; use bf16" },
		{ "llama3-8b", SIZES "zero_group: 3", 3, 13,
		  "3 does not divide the 64 ranks of dp x cp" },
		{ "llama3-8b", SIZES "offload_layers: 33", 3, 17,
		  "33 is more than the model's 32 layers" },
		{ "llama3-8b", SIZES "moe_capacity_factor: 17", 3, 22,
		  "is not between 0 (dropless) and 16" },
		{ "mixtral-8x7b",
		  SIZES "sequence_parallel: false\nparallel: {tp: 2, ep: 8}", 3, 20,
		  "experts under tp 2 need it to be true" },
		{ "llama3-8b", SIZES "gradient_dtype: fp8", 3, 17, "fp32, bf16, fp16" },
		{ "llama3-8b", "global_batch_size: 4", 1, 1,
		  "lacks the key 'sequence_length'" },
		{ "llama3-8b", SIZES "parallel: {pp: 2, stage_layers: [1, 2]}", 3, 33,
		  "adds up to 3, but the model has 32" },
		{ "llama3-8b", SIZES "parallel: {pp: 2, stage_layers: [32, '']}", 3, 38,
		  "should be whole numbers of layers" },
		{ "llama3-8b", SIZES "parallel: {pp: 2, stage_layers: [32]}", 3, 33,
		  "a list of pp x vpp = 2 numbers" },
	};
	struct ft_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct ft_plan *p =
			plan_of(wrong[i].model, 64, false, wrong[i].yaml, &err);

		if (p || !strstr(err.text, wrong[i].text) ||
		    err.line != wrong[i].line || err.column != wrong[i].column)
			fail_msg("case %zu: %d:%d: %s", i, err.line, err.column,
				 p ? "no error" : err.text);
	}
}

/* With no split to blame, the cluster's size is what has to change. */
static void a_default_is_not_blamed(void **state)
{
	struct ft_error err;
	struct ft_plan *p;

	(void)state;
	p = plan_of("deepseek-v3", 60, false,
		    "{sequence_length: 4096, global_batch_size: 60}", &err);
	assert_non_null(p);
	ft_plan_free(p);
	assert_null(plan_of("deepseek-v3", 0, false,
			    "{sequence_length: 4096, global_batch_size: 60}", &err));
	assert_string_equal(err.file, "cluster.yaml");
	assert_int_equal(err.line, 7);
}

/* Of a rank's part of a sequence each tensor rank keeps a whole part, and a context group's ring two. */
static bool divides(int sequence, int tp, int cp)
{
	return (cp == 1 || sequence % (2 * cp) == 0) && sequence / cp % tp == 0;
}

static void agrees_at(int sequence, int tp, int pp, int cp)
{
	bool want = 64 % (tp * pp * cp) == 0 && 32 % tp == 0 && pp <= 32 &&
		    divides(sequence, tp, cp);
	struct ft_error err;
	struct ft_plan *p;
	char yaml[200];

	snprintf(yaml, sizeof(yaml),
		 "{sequence_length: %d, global_batch_size: 64, parallel: "
		 "{tp: %d, pp: %d, cp: %d}}",
		 sequence, tp, pp, cp);
	p = plan_of("llama3-8b", 64, false, yaml, &err);
	if (!p == want)
		fail_msg("%s: %s", yaml, p ? "taken" : err.text);
	if (p)
		assert_int_equal(p->tp * p->pp * p->cp * p->dp, 64);
	ft_plan_free(p);
}

/* Every split of 64 ranks: accepted exactly when the obvious test says so. */
static void agrees_with_the_obvious_rule(void **state)
{
	static const int sizes[] = { 1, 2, 3, 4, 8, 12, 16, 64 };
	static const int sequences[] = { 4096, 4104, 4112, 12 };

	(void)state;
	for (int a = 0; a < 8; a++)
		for (int b = 0; b < 8; b++)
			for (int c = 0; c < 8; c++)
				for (int s = 0; s < 4; s++)
					agrees_at(sequences[s], sizes[a], sizes[b],
						  sizes[c]);
}

/* Without master weights all is in 16 bit, unless gradients are said to be wider. */
static void sixteen_bit_throughout_means_gradients_too(void **state)
{
	static const struct {
		const char *words;
		enum ft_dtype gradients;
	} cases[] = {
		{ "master_weights: false", FT_BF16 },
		{ "master_weights: false\nprecision: fp16", FT_FP16 },
		{ "master_weights: false\ngradient_dtype: fp32", FT_FP32 },
		{ "precision: fp16", FT_FP32 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[200];
		struct ft_plan *p;

		snprintf(text, sizeof(text),
			 "sequence_length: 4096\nglobal_batch_size: 64\n%s",
			 cases[i].words);
		p = good("llama3-8b", 16, text);
		assert_int_equal(p->gradient_dtype, cases[i].gradients);
		ft_plan_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_keys_take_their_defaults),
		cmocka_unit_test(sixteen_bit_throughout_means_gradients_too),
		cmocka_unit_test(a_full_plan_is_read_as_written),
		cmocka_unit_test(sharding_in_a_node_leaves_tensor_ranks_out),
		cmocka_unit_test(experts_are_split_over_the_ranks_of_a_stage),
		cmocka_unit_test(uneven_layers_leave_room_for_embedding_and_head),
		cmocka_unit_test(stages_are_whole_and_even),
		cmocka_unit_test(stage_layers_may_be_given),
		cmocka_unit_test(a_ragged_batch_needs_a_stack_that_takes_it),
		cmocka_unit_test(unfused_attention_has_no_context_group),
		cmocka_unit_test(impossible_plans_point_at_the_key_to_change),
		cmocka_unit_test(a_default_is_not_blamed),
		cmocka_unit_test(agrees_with_the_obvious_rule),
	};

	return cmocka_run_group_tests_name("models/plan", tests, NULL, NULL);
}
