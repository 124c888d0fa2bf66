/*
 * tests/test_idle_keys.c - a key that would do nothing in a plan is refused where it was written,
 * and is not among what the answer says was assumed
 */
#include "tests/check.h"

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"
#include "study/keys.h"
#include "study/shelf.h"
#include "study/space.h"

/* Dense, bf16, zero1, nothing recomputed; and the same where each of the keys counts. */
#define DENSE "llama3-8b"
#define ROUTED "mixtral-8x7b"
static const struct {
	const char *key, *value;
	const char *model, *with; /* where it counts */
	const char *nothing;	  /* a value that may stand anywhere, or NULL */
} row[] = {
	{ "fp8_recipe", "tensorwise", DENSE, "precision: fp8", NULL },
	{ "attention_precision", "fp8", DENSE, "precision: fp8", "bf16" },
	{ "shard", "4", DENSE, "sharding: hsdp", NULL },
	{ "zero_group", "4", DENSE, "sharding: zero2", NULL },
	{ "overlap", "{dp: false}", DENSE, "sharding: zero1", "{dp: true}" },
	{ "overlap", "{param_gather: true}", DENSE, "sharding: zero1",
	  "{param_gather: false}" },
	{ "reshard_after_forward", "false", DENSE, "sharding: fsdp", "true" },
	{ "sync_each_micro_batch", "false", DENSE, "sharding: fsdp", "true" },
	{ "recompute_layers", "4", DENSE, "recompute: full", "0" },
	{ "recompute_modules", "mlp", DENSE, "recompute: selective", NULL },
	{ "parallel", "{ep: 2}", ROUTED, "sharding: zero1", "{ep: 1}" },
	{ "parallel", "{etp: 2, tp: 2}", ROUTED, "sharding: zero1", "{etp: 1, tp: 2}" },
	{ "overlap", "{ep: true}", ROUTED, "sharding: zero1", "{ep: false}" },
	{ "moe_dispatcher", "deepep", ROUTED, "sharding: zero1", NULL },
	{ "moe_capacity_factor", "1.5", ROUTED, "sharding: zero1", "0" },
	{ "moe_force_balance", "true", ROUTED, "sharding: zero1", "false" },
	{ "grouped_experts", "false", ROUTED, "sharding: zero1", NULL },
	{ "fused_experts", "true", ROUTED, "sharding: zero1", "false" },
	{ "expert_precision", "bf16", ROUTED, "precision: fp8", NULL },
	{ "cuda_graphs", "router", ROUTED, "sharding: zero1", "partial" },
};
enum { ROWS = sizeof(row) / sizeof(*row) };

/* A model, a key's value, and what else the plan says. */
struct said {
	const char *model, *key, *value, *with;
};

static struct ft_scenario *load(struct ft_shelf *shelf, struct arena *mem,
				struct said x, bool lenient, struct ft_error *err)
{
	const char *text = arena_printf(
		mem,
		"model: %s\ncluster: {gpu: h100-sxm, gpus: 16}\nstack: megatron-core\n"
		"training:\n  sequence_length: 4096\n  global_batch_size: 32\n"
		"  %s\n  %s: %s\n",
		x.model, x.with, x.key, x.value);
	struct node *root = node_read_text(mem, "s", text, strlen(text), err);

	ok_or_say(root, *err);
	return lenient ? scenario_lenient(shelf, root, "s", err) :
			 ft_scenario_from(shelf, root, "s", true, err);
}

static void taken(struct ft_shelf *shelf, struct said x, bool lenient)
{
	struct arena mem = { 0 };
	struct ft_error err = { .text = "" };
	struct ft_scenario *s = load(shelf, &mem, x, lenient, &err);

	ok_or_say(s, err);
	ft_scenario_free(s);
	arena_release(&mem);
}

/* The experts of Llama 4's class compute all tokens, so that none is padded or left out. */
static void a_capacity_means_nothing_where_experts_compute_all(void **state)
{
	static const char *const text =
		"model: {name: llama4-scout, num_hidden_layers: 2}\n"
		"cluster: {gpu: h100-sxm, gpus: 8}\nstack: %s\n"
		"training:\n  sequence_length: 4096\n  global_batch_size: 8\n"
		"  sharding: fsdp\n  moe_capacity_factor: 2\n";
	struct ft_shelf *shelf = ft_shelf_new();
	static const char *const stack[] = { "transformers-5-eager", "megatron-core" };
	struct arena mem = { 0 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		const char *said = arena_printf(&mem, text, stack[i]);
		struct ft_error err = { .text = "" };
		struct node *n = node_read_text(&mem, "s", said, strlen(said), &err);
		struct ft_scenario *s = ft_scenario_from(shelf, n, "s", true, &err);

		assert_int_equal(s != NULL, i == 1);
		if (!s)
			assert_string_equal(
				err.text,
				"moe_capacity_factor has an effect only where each "
				"token goes to some of the experts");
		ft_scenario_free(s);
	}
	arena_release(&mem);
	ft_shelf_free(shelf);
}

static void what_would_do_nothing_is_refused(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		struct said idle = { DENSE, row[i].key, row[i].value,
				     strstr(row[i].value, "dp:") ? "sharding: fsdp" :
				     i == 3 || i == 5		 ? "sharding: ddp" :
								   "precision: bf16" };
		struct said counts = { row[i].model, row[i].key, row[i].value,
				       row[i].with };
		struct said nothing = idle;
		struct arena mem = { 0 };
		struct ft_error err = { .text = "" };

		assert_null(load(shelf, &mem, idle, false, &err));
		assert_non_null(strstr(err.text, "has an effect"));
		assert_int_equal(err.line, 8);
		taken(shelf, counts, false);
		taken(shelf, idle, true);
		nothing.value = row[i].nothing;
		if (nothing.value)
			taken(shelf, nothing, false);
		arena_release(&mem);
	}
	ft_shelf_free(shelf);
}

/* The answer has the key all the same, as programs look for it: a value that may be read again. */
static void an_answer_says_that_it_does_nothing(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_error err = { .text = "" };
	struct arena mem = { 0 };
	struct ft_scenario *dense =
		load(shelf, &mem, (struct said){ DENSE, "precision", "bf16", "" },
		     false, &err);
	struct ft_scenario *routed =
		load(shelf, &mem, (struct said){ ROUTED, "precision", "fp8", "" },
		     false, &err);

	(void)state;
	ok_or_say(dense, err);
	ok_or_say(routed, err);
	assert_string_equal(scenario_idle_value(dense, "training.moe_dispatcher"),
			    "null");
	assert_string_equal(scenario_idle_value(dense, "training.parallel.ep"), "1");
	assert_null(scenario_idle_value(routed, "training.moe_dispatcher"));
	assert_null(scenario_idle_value(dense, "cluster.gpu"));
	assert_string_equal(node_path(dense->resolved, "training.parallel.ep")->text,
			    "1");
	assert_true(
		node_is_null(node_path(dense->resolved, "training.moe_dispatcher")));
	assert_true(node_is_null(node_path(dense->resolved, "training.fp8_recipe")));
	assert_false(
		node_is_null(node_path(routed->resolved, "training.moe_dispatcher")));
	assert_false(node_is_null(node_path(routed->resolved, "training.fp8_recipe")));
	assert_false(ft_scenario_assumes(dense, "training.moe_dispatcher"));
	assert_true(ft_scenario_assumes(routed, "training.moe_dispatcher"));
	ft_scenario_free(dense);
	ft_scenario_free(routed);
	ft_shelf_free(shelf);
	arena_release(&mem);
}

/* Is the key among those that an answer is told to do nothing of? */
static bool remarked(const char *model, const char *stack, int gpus,
		     const char *training, const char *key)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	struct ft_error err = { .text = "" };
	const char *where, *found = NULL;
	const char *text = arena_printf(
		&mem,
		"{model: {name: %s, num_hidden_layers: 4}, cluster: {gpu: h100-sxm, "
		"gpus: %d}, stack: %s, training: {sequence_length: 2048, "
		"global_batch_size: 64, %s}}",
		model, gpus, stack, training);
	struct node *root = node_read_text(&mem, "s", text, strlen(text), &err);
	struct ft_scenario *s = ft_scenario_from(shelf, root, "s", true, &err);
	bool is = false;

	ok_or_say(s, err);
	for (size_t i = 0; (found = ft_scenario_idle(s, i, &where)); i++)
		is |= !strcmp(found, key);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
	return is;
}

/* Gradients of one rank are summed with nobody's, but those of experts that tensor ranks share are. */
static void an_overlap_of_no_sums_is_told(void **state)
{
	static const struct {
		const char *model, *training;
		bool told;
	} of[] = {
		{ DENSE, "sharding: zero1, parallel: {tp: 8}, overlap: {dp: false}",
		  true },
		{ DENSE, "sharding: ddp, parallel: {tp: 8}, overlap: {dp: false}",
		  true },
		{ DENSE, "sharding: zero1, parallel: {tp: 8}, overlap: {dp: true}",
		  false },
		{ DENSE, "sharding: zero1, parallel: {tp: 4}, overlap: {dp: false}",
		  false },
		{ DENSE,
		  "sharding: zero1, parallel: {tp: 4, cp: 2}, overlap: {dp: false}",
		  false },
		{ ROUTED,
		  "sharding: zero1, parallel: {tp: 8, ep: 4, etp: 1}, overlap: {dp: false}",
		  false },
		{ ROUTED,
		  "sharding: zero1, parallel: {tp: 8, ep: 8, etp: 1}, overlap: {dp: false}",
		  true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		assert_int_equal(remarked(of[i].model, "megatron-core", 8,
					  of[i].training, "training.overlap.dp"),
				 of[i].told);
}

/* Nothing is gathered beside a forward pass by one rank, nor under a stack that gathers behind the update; and no sum is a copy. */
static void a_gather_of_nothing_is_told(void **state)
{
	static const struct {
		const char *model, *stack, *training, *key;
		bool told;
	} of[] = {
		{ DENSE, "megatron-core",
		  "sharding: zero1, parallel: {tp: 8}, overlap: {param_gather: true}",
		  "training.overlap.param_gather", true },
		{ DENSE, "megatron-core",
		  "sharding: zero2, parallel: {tp: 4}, overlap: {param_gather: true}",
		  "training.overlap.param_gather", false },
		{ DENSE, "megatron-core",
		  "sharding: zero1, zero_group: 1, overlap: {param_gather: true}",
		  "training.overlap.param_gather", true },
		{ DENSE, "megatron-lm-2022",
		  "sharding: zero1, overlap: {param_gather: true}",
		  "training.overlap.param_gather", true },
		{ DENSE, "megatron-lm-2022",
		  "sharding: zero1, overlap: {param_gather: false}",
		  "training.overlap.param_gather", false },
		{ ROUTED, "megatron-core",
		  "sharding: zero1, parallel: {tp: 8, ep: 4, etp: 1}, overlap: {param_gather: true}",
		  "training.overlap.param_gather", false },
		{ DENSE, "megatron-core",
		  "sharding: ddp, overlap: {copy_engines: true}",
		  "training.overlap.copy_engines", true },
		{ DENSE, "megatron-core",
		  "sharding: zero1, overlap: {copy_engines: true}",
		  "training.overlap.copy_engines", false },
		{ DENSE, "megatron-core",
		  "sharding: ddp, parallel: {pp: 2}, overlap: {copy_engines: true}",
		  "training.overlap.copy_engines", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		assert_int_equal(remarked(of[i].model, of[i].stack, 8, of[i].training,
					  of[i].key),
				 of[i].told);
}

/* With one chunk a stage interleaved is 1f1b, with two 1f1b is interleaved. */
static void a_schedule_that_runs_as_another_is_told(void **state)
{
	static const struct {
		const char *training;
		bool told;
	} of[] = {
		{ "schedule: interleaved, parallel: {pp: 2}", true },
		{ "schedule: interleaved, parallel: {pp: 2, vpp: 1}", true },
		{ "schedule: interleaved, parallel: {pp: 1}", true },
		{ "schedule: gpipe, parallel: {pp: 1}", true },
		{ "schedule: 1f1b, parallel: {pp: 1}", false },
		{ "schedule: 1f1b, parallel: {pp: 2}", false },
		{ "schedule: gpipe, parallel: {pp: 2}", false },
		{ "schedule: 1f1b, parallel: {pp: 2, vpp: 2}", true },
		{ "schedule: interleaved, parallel: {pp: 2, vpp: 2}", false },
		{ "parallel: {pp: 2}", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		assert_int_equal(remarked(DENSE, "megatron-core", 8, of[i].training,
					  "training.schedule"),
				 of[i].told);
}

/* A capacity says how many copies a rank takes, however they are spread. */
static void balance_that_a_capacity_forces_is_told(void **state)
{
	static const struct {
		const char *stack, *training;
		bool told;
	} of[] = {
		{ "megatron-core", "", false },
		{ "megatron-core", ", moe_capacity_factor: 1.5", true },
		{ "megatron-core", ", moe_capacity_factor: 0", false },
		{ "megatron-core-2024", ", moe_dispatcher: deepep", false },
		{ "nemo-automodel-2026",
		  ", moe_capacity_factor: 1.5, moe_dispatcher: deepep", false },
		{ "nemo-automodel-2026",
		  ", moe_capacity_factor: 1.5, moe_dispatcher: alltoall", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct arena mem = { 0 };

		assert_int_equal(
			remarked(ROUTED, of[i].stack, 8,
				 arena_printf(&mem,
					      "moe_force_balance: true, parallel: {ep: "
					      "4}%s",
					      of[i].training),
				 "training.moe_force_balance"),
			of[i].told);
		arena_release(&mem);
	}
}

/* Compiled, they do the same either way; in eager's passes the gate's operations differ, and in 16 bit products. */
static void ungrouped_experts_in_fp32_are_told(void **state)
{
	static const struct {
		const char *stack, *training;
		bool told;
	} of[] = {
		{ "transformers-5-compile", "sharding: ddp, grouped_experts: false",
		  true },
		{ "transformers-5-compile", "sharding: ddp, grouped_experts: true",
		  false },
		{ "transformers-5-compile", "sharding: fsdp, grouped_experts: false",
		  false },
		{ "transformers-5-compile",
		  "sharding: ddp, grouped_experts: false, master_weights: false",
		  false },
		{ "transformers-5-eager", "sharding: ddp, grouped_experts: false",
		  false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		assert_int_equal(remarked(ROUTED, of[i].stack, 8, of[i].training,
					  "training.grouped_experts"),
				 of[i].told);
}

/* A format that the GPU has not, too, where it was said. */
static void a_format_that_the_gpu_has_not_is_refused(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_error err = { .text = "" };
	struct arena mem = { 0 };

	(void)state;
	for (int lenient = 0; lenient < 2; lenient++) {
		assert_null(load(shelf, &mem,
				 (struct said){ DENSE, "precision", "mxfp8", "" },
				 lenient, &err));
		assert_string_equal(err.text,
				    "precision: h100-sxm has no matrix products in "
				    "mxfp8; it has bf16, fp16, fp8, fp8-block128");
		assert_int_equal(err.line, 8);
		assert_int_equal(err.column, 14);
	}
	ft_shelf_free(shelf);
	arena_release(&mem);
}

/* Legal plans of one sharding in a search, and what was wrong with it. */
static size_t searched(const char *more, enum ft_sharding sharding,
		       struct ft_error *err)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	const char *text = arena_printf(
		&mem,
		"{model: llama3-8b, cluster: {gpu: h100-sxm, gpus: 16}, stack: generic, "
		"training: {sequence_length: 2048, global_batch_size: 32%s}}",
		more);
	struct node *root = node_read_text(&mem, "s", text, strlen(text), err);
	struct ft_scenario *s = scenario_open(shelf, root, "s", err);
	int64_t layers[64];
	struct ft_plan plan;
	struct space sp;
	size_t n = 0;

	ok_or_say(s, *err);
	if (space_open(&sp, s, NULL, 0, err)) {
		for (size_t i = 0; i < sp.n; i++) {
			assert_true(space_plan(&sp, &sp.candidate[i], &plan, layers));
			n += plan.sharding == sharding;
		}
		space_close(&sp);
	}
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
	return n;
}

/* It is of the plans that it concerns, and leaves the others what they are without it. */
static void a_search_holds_a_key_where_it_counts(void **state)
{
	static const struct {
		const char *said, *beside;
		enum ft_sharding where, elsewhere;
	} of[] = {
		{ ", zero_group: 16", ", sharding: ddp", FT_ZERO1, FT_DDP },
		{ ", zero_group: 4", ", sharding: fsdp", FT_ZERO2, FT_FSDP },
		{ ", shard: 2", ", sharding: fsdp", FT_HSDP, FT_ZERO1 },
		{ ", shard: 4", ", sharding: zero1", FT_HSDP, FT_DDP },
		{ ", reshard_after_forward: false", ", sharding: ddp", FT_FSDP,
		  FT_DDP },
		{ ", sync_each_micro_batch: false", ", sharding: zero1", FT_HSDP,
		  FT_ZERO1 },
		{ ", overlap: {dp: false}", ", sharding: hsdp", FT_DDP, FT_HSDP },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct ft_error err = { .text = "" };
		struct arena mem = { 0 };

		assert_true(searched(of[i].said, of[i].where, &err) > 0);
		assert_int_equal(searched(of[i].said, of[i].elsewhere, &err),
				 searched("", of[i].elsewhere, &err));
		assert_string_equal(err.text, "");
		assert_int_equal(
			searched(arena_printf(&mem, "%s%s", of[i].beside, of[i].said),
				 of[i].where, &err),
			0);
		assert_non_null(strstr(err.text, "has an effect only with sharding"));
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_capacity_means_nothing_where_experts_compute_all),
		cmocka_unit_test(what_would_do_nothing_is_refused),
		cmocka_unit_test(a_format_that_the_gpu_has_not_is_refused),
		cmocka_unit_test(a_search_holds_a_key_where_it_counts),
		cmocka_unit_test(an_answer_says_that_it_does_nothing),
		cmocka_unit_test(an_overlap_of_no_sums_is_told),
		cmocka_unit_test(a_gather_of_nothing_is_told),
		cmocka_unit_test(a_schedule_that_runs_as_another_is_told),
		cmocka_unit_test(balance_that_a_capacity_forces_is_told),
		cmocka_unit_test(ungrouped_experts_in_fp32_are_told),
	};

	return cmocka_run_group_tests_name("idle keys", tests, NULL, NULL);
}
