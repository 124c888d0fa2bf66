/* tests/test_chosen.c - a layer in a checkpoint that keeps the outputs of chosen operations */
#include <math.h>

#include "tests/works.h"

enum { LAYERS = 4, TOKENS = 2048 };

#define OP "recompute: selective, recompute_modules: op"
#define PLAN(more) \
	"{sequence_length: 2048, global_batch_size: 8, micro_batch_size: 1, " \
	"sharding: fsdp, " more "}"
#define LLAMA "name: llama3-8b, num_hidden_layers: 4"
#define BIASED LLAMA ", attention_bias: true"

/* What PyTorch's allocator held more behind a layer, a token, on an H200 (measurements/probes/h200-2026-11-30-selective-unseen). */
static const struct measured {
	int hidden, heads, kv, ffn;
	double eager, compiled;
} measured[] = {
	{ 4096, 32, 8, 14336, 63616, 55424 },  { 4096, 32, 32, 11008, 63104, 54912 },
	{ 2048, 32, 8, 8192, 33920, 29824 },   { 8192, 64, 8, 28672, 125184, 108800 },
	{ 5120, 40, 40, 13824, 79008, 68768 },
};

static double kept(struct parts *p)
{
	return segment_of(p->graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS] /
	       TOKENS;
}

static void a_layer_keeps_what_was_measured(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(measured) / sizeof(*measured); i++) {
		const struct measured *m = &measured[i];
		struct parts p;
		char model[300];

		snprintf(model, sizeof(model),
			 "{model_type: llama, num_hidden_layers: 4, hidden_size: %d, "
			 "num_attention_heads: %d, num_key_value_heads: %d, "
			 "intermediate_size: %d, vocab_size: 1024}",
			 m->hidden, m->heads, m->kv, m->ffn);
		for (int c = 0; c < 2; c++) {
			build(&p, model, PLAN(OP),
			      c ? "torch-2.11-compile" : "torch-2.11-eager", 1);
			near_frac(kept(&p), c ? m->compiled : m->eager, 1e-9);
			drop(&p);
		}
	}
}

/* How often a layer runs a work more than where nothing runs again. */
static double again(const struct parts *with, const struct parts *without,
		    const char *name)
{
	return (sum_of(with->graph, name).n - sum_of(without->graph, name).n) / LAYERS /
	       (double)with->plan->micro_batches;
}

static void expect(const char *model, const char *plan, const char *stack,
		   const char *works, const char *others)
{
	struct parts with, without;

	build(&with, model, plan, stack, 8);
	build(&without, model, plan, stack, 8);
	without.plan->recompute = FT_RECOMPUTE_NONE;
	rebuild(&without);
	for (const char *at = works; *at; at += strlen(at) + 1)
		if (again(&with, &without, at) < 1)
			fail_msg("%s runs again %g times", at,
				 again(&with, &without, at));
	for (const char *at = others; *at; at += strlen(at) + 1)
		if (again(&with, &without, at) != 0)
			fail_msg("%s runs again", at);
	drop(&with);
	drop(&without);
}

/* q, v, the gate and the last product are kept: every second one. Those with a bias are no part of the count. */
static void every_second_product_runs_again(void **state)
{
	(void)state;
	expect("{" LLAMA "}", PLAN(OP), "torch-2.11-eager",
	       "norm\0k\0rope\0attention_out\0add_norm\0up\0activation\0",
	       "q\0v\0attention\0gate\0down\0");
	expect("{" BIASED "}", PLAN(OP), "torch-2.11-eager",
	       "q\0k\0v\0attention_out\0up\0", "gate\0down\0");
	expect("{" LLAMA "}", PLAN(OP), "megatron-core",
	       "attention_out\0activation\0down\0", "qkv\0gate_up\0attention\0");
}

/* A sum that a reduction scattered is kept; one that all have is made again, with its product. A compiler leaves out the
 * product of a sum that is kept. */
static void scattered_sums_are_kept(void **state)
{
	(void)state;
	expect("{" LLAMA "}", PLAN(OP ", sequence_parallel: true, parallel: {tp: 2}"),
	       "torch-2.11-eager", "attention_out\0k\0up\0", "tp_reduce_scatter\0q\0");
	expect("{" LLAMA "}", PLAN(OP ", sequence_parallel: true, parallel: {tp: 2}"),
	       "torch-2.11-compile", "k\0up\0", "attention_out\0tp_reduce_scatter\0");
	expect("{" LLAMA "}", PLAN(OP ", sequence_parallel: false, parallel: {tp: 2}"),
	       "torch-2.11-eager", "attention_out\0", "tp_reduce_scatter\0");
}

/* Experts run again, on tokens that are there. */
static void what_was_exchanged_is_kept(void **state)
{
	static const char model[] =
		"{name: qwen3-30b-a3b, num_hidden_layers: 4, num_experts: 8}";
	static const char *const ep[] = { "{ep: 1}", "{ep: 2}" };
	double bytes[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts p;
		char plan[300];

		snprintf(plan, sizeof(plan), PLAN(OP ", parallel: %s"), ep[i]);
		expect(model, plan, "torch-2.11-eager", "router\0expert_up\0",
		       "ep_dispatch\0ep_combine\0");
		build(&p, model, plan, "torch-2.11-eager", 8);
		bytes[i] = kept(&p);
		drop(&p);
	}
	near_frac(bytes[1] - bytes[0], 4 * 8 * 2048.0, 1e-9); /* 8 copies of 2,048 */
}

/* FLOPs that are counted as done twice are those that run more, whatever stands in a layer or behind it, however it is split. */
static void what_is_counted_runs(void **state)
{
	static const char *const models[] = {
		"{name: llama3-8b, num_hidden_layers: 4}",
		"{name: gemma2-9b, num_hidden_layers: 4}",
		"{name: falcon-7b, num_hidden_layers: 4}",
		"{name: gpt-neox-20b, num_hidden_layers: 4}",
		"{name: deepseek-v2-lite, num_hidden_layers: 4}",
		"{name: qwen3-30b-a3b, num_hidden_layers: 4, num_experts: 8}",
		"{name: starcoder2-15b, num_hidden_layers: 4}",
		"{name: megatron-22b, num_hidden_layers: 4}",
	};
	static const char *const splits[] = {
		"parallel: {tp: 1}", "parallel: {tp: 2}, sequence_parallel: true",
		"parallel: {tp: 2}, sequence_parallel: false"
	};
	static const char *const stacks[] = { "torch-2.11-eager", "torch-2.11-compile",
					      "megatron-core" };

	(void)state;
	for (int i = 0; i < 8 * 3 * 3; i++) {
		struct parts with, without;
		char plan[300];
		double more;

		if ((i % 8 == 2 && i / 8 % 3 > 0) ||
		    ((i % 8 == 4 || i % 8 == 5) && i / 8 % 3 == 2))
			continue; /* 71 heads; experts are sent slices */
		snprintf(plan, sizeof(plan), PLAN(OP ", moe_force_balance: true, %s"),
			 splits[i / 8 % 3]);
		build(&with, models[i % 8], plan, stacks[i / 24], 8);
		build(&without, models[i % 8], plan, stacks[i / 24], 8);
		without.plan->recompute = FT_RECOMPUTE_NONE;
		rebuild(&without);
		more = sum_of(with.graph, NULL).flop - sum_of(without.graph, NULL).flop;
		if (fabs(with.graph->recomputed_flop_per_rank - more) > 0.002 * more)
			fail_msg("%s %s %s: %g counted, %g run", models[i % 8], plan,
				 stacks[i / 24], with.graph->recomputed_flop_per_rank,
				 more);
		assert_true(again(&with, &without, "tp_reduce_scatter") == 0);
		drop(&with);
		drop(&without);
	}
}

/* Beside attention an MLP has no norm of its own, and one sum over the ranks. */
static void halves_side_by_side_have_one_norm_and_one_sum(void **state)
{
	(void)state;
	expect("{name: falcon-7b, num_hidden_layers: 4}", PLAN(OP), "torch-2.11-eager",
	       "norm\0attention_out\0", "add_norm\0attention\0");
	expect("{name: gpt-neox-20b, num_hidden_layers: 4}",
	       PLAN(OP ", sequence_parallel: false, parallel: {tp: 2}"),
	       "torch-2.11-eager", "norm\0", "add_norm\0tp_all_reduce\0");
}

/* Norms behind the halves, gates of attention's output and latents' norms run again. */
static void elements_run_again(void **state)
{
	(void)state;
	expect("{name: gemma2-9b, num_hidden_layers: 4}", PLAN(OP), "torch-2.11-eager",
	       "norm_behind\0activation\0", "attention\0");
	expect("{name: deepseek-v2-lite, num_hidden_layers: 4}", PLAN(OP),
	       "torch-2.11-eager", "latent_norm\0", "attention\0");
}

static void other_mixers_are_refused(void **state)
{
	static const char *const models[] = { "{name: falcon-h1-0.5b}",
					      "{name: qwen3-next-80b-a3b, "
					      "num_nextn_predict_layers: 0}",
					      "{name: gemma4-e2b}",
					      "{name: nemotron-h-8b}" };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct ft_error err;
		struct parts p;

		build(&p, models[i], PLAN("recompute: none"), "torch-2.11-eager", 1);
		p.plan->recompute = FT_RECOMPUTE_SELECTIVE;
		assert_null(ft_graph_build(p.model, p.plan, p.stack, &err));
		assert_non_null(strstr(err.text, "recompute_modules: op"));
		drop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_layer_keeps_what_was_measured),
		cmocka_unit_test(every_second_product_runs_again),
		cmocka_unit_test(scattered_sums_are_kept),
		cmocka_unit_test(what_was_exchanged_is_kept),
		cmocka_unit_test(what_is_counted_runs),
		cmocka_unit_test(halves_side_by_side_have_one_norm_and_one_sum),
		cmocka_unit_test(elements_run_again),
		cmocka_unit_test(other_mixers_are_refused),
	};

	return cmocka_run_group_tests_name("chosen", tests, NULL, NULL);
}
