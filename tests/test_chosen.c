/* tests/test_chosen.c - a layer in a checkpoint that keeps the outputs of chosen operations */
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
		near_frac(p.graph->recomputed_flop_per_rank,
			  sum_in(p.graph, "backward", NULL).flop -
				  2 * sum_in(p.graph, "forward", NULL).flop,
			  0.3);
		drop(&p);
	}
	near_frac(bytes[1] - bytes[0], 4 * 8 * 2048.0, 1e-9); /* 8 copies of 2,048 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_layer_keeps_what_was_measured),
		cmocka_unit_test(every_second_product_runs_again),
		cmocka_unit_test(scattered_sums_are_kept),
		cmocka_unit_test(what_was_exchanged_is_kept),
	};

	return cmocka_run_group_tests_name("chosen", tests, NULL, NULL);
}
