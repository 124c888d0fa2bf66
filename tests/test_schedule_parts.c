/* tests/test_schedule_parts.c - steps whose backwards are cut in two: work and memory */
#include "tests/check.h"
#include "tests/simulated.h"
#include "tests/works.h"

#include "traces/build.h"

#define LLAMA "{name: llama3-8b, num_hidden_layers: 8}"
#define ROUTED "{name: qwen3-30b-a3b, num_hidden_layers: 8}"
#define MTP "{name: deepseek-v3, num_hidden_layers: 8}"

static const struct {
	const char *model, *plan;
} steps[] = {
	{ LLAMA, "sharding: ddp, parallel: {pp: 4}" },
	{ LLAMA, "sharding: ddp, gradient_dtype: bf16, parallel: {pp: 4, tp: 2}" },
	{ LLAMA, "sharding: zero1, parallel: {pp: 2, vpp: 2, tp: 2}" },
	{ LLAMA, "sharding: fsdp, parallel: {pp: 2}, recompute: selective" },
	{ LLAMA, "sharding: hsdp, parallel: {pp: 2, tp: 2}, recompute: full" },
	{ LLAMA, "sharding: ddp, parallel: {pp: 4, cp: 2}, precision: fp8" },
	{ LLAMA, "sharding: ddp, parallel: {pp: 2}, offload_layers: 3" },
	{ LLAMA, "sharding: ddp, parallel: {pp: 2, tp: 2}, lora: {rank: 16}" },
	{ ROUTED, "sharding: zero1, parallel: {pp: 2, ep: 4}" },
	{ ROUTED, "sharding: ddp, parallel: {pp: 2, ep: 2, tp: 2}, cuda_graphs: full" },
	{ MTP, "sharding: zero1, parallel: {pp: 2, ep: 8}, recompute: full" },
	/* as a V: */
	{ LLAMA, "sharding: ddp, parallel: {pp: 4, vpp: 2, tp: 2}" },
	{ ROUTED,
	  "sharding: zero1, parallel: {pp: 2, vpp: 2, ep: 4}, recompute: full" },
	/* and as dualpipev, */
	{ LLAMA, "sharding: ddp, parallel: {pp: 4, vpp: 2, tp: 2}" },
	{ ROUTED,
	  "sharding: zero1, parallel: {pp: 2, vpp: 2, ep: 4}, recompute: full" },
	/* in pairs */
	{ ROUTED, "sharding: zero1, parallel: {pp: 2, vpp: 2, ep: 4}, "
		  "overlap: {ep: true}" },
};

enum { STEPS = sizeof(steps) / sizeof(*steps), VEES = 5, DUALS = 3 };

static const char *const stacks[] = { "torch-2.11-eager", "megatron-core", "generic" };

/* A V has fewer transfers, as the two chunks of its last stage follow each other, and both
 * ends on one stage, whose update is the larger, and whose weights are gathered at once: all else
 * is the same. */
static bool is_of_layers(const struct ft_work *w)
{
	return w->kind == FT_GEMM || w->kind == FT_ATTENTION;
}

static bool has_part(const struct ft_graph *g)
{
	for (size_t i = 0; i < g->n_segments; i++)
		if (strstr(g->segment[i].name, ".weights"))
			return true;
	return false;
}

static void build_how(struct parts *whole, struct parts *split, size_t step,
		      const char *stack, bool autograd)
{
	char plan[400];
	bool launches_all = !strcmp(stack, "torch-2.11-eager");

	for (int k = 0; k < 2; k++) {
		struct parts *p = k ? split : whole;
		char *graphs;

		snprintf(plan, sizeof(plan),
			 "{sequence_length: 512, global_batch_size: 64, %s}",
			 steps[step].plan);
		graphs = strstr(plan, ", cuda_graphs: full");
		if (graphs && launches_all)
			strcpy(graphs, "}");
		build(p, steps[step].model, plan, stack, 16);
		if (!k)
			continue;
		p->plan->schedule = step < STEPS - VEES	 ? FT_ZERO_BUBBLE :
				    step < STEPS - DUALS ? FT_ZBV :
							   FT_DUALPIPEV;
		p->stack->layout.split_backward = true;
		p->stack->layout.dual_pipe = true;
		p->stack->layout.autograd_split = autograd;
		rebuild(p);
	}
}

static void build_both(struct parts *whole, struct parts *split, size_t step,
		       const char *stack)
{
	build_how(whole, split, step, stack, false);
}

/* All works, or those of layers, run as often in both, and leave as much in memory. */
static void as_often(const struct parts *whole, const struct parts *split, bool all)
{
	for (size_t k = 0; k < whole->graph->n_works; k++) {
		const struct ft_work *w = &whole->graph->work[k];

		if (all || is_of_layers(w))
			near_frac(times_of(split->graph, w), times_of(whole->graph, w),
				  1e-12);
	}
	for (int m = 0; m < FT_MEMORIES; m++)
		near_frac(1e9 + left_over(split->graph, (enum ft_memory)m),
			  1e9 + left_over(whole->graph, (enum ft_memory)m), 1e-9);
}

static void the_two_parts_do_the_whole_work(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3 * STEPS; i++) {
		struct parts whole, split;

		build_both(&whole, &split, i / 3, stacks[i % 3]);
		assert_true(has_part(split.graph) && !has_part(whole.graph));
		if (i / 3 < STEPS - VEES)
			assert_int_equal(whole.graph->n_works, split.graph->n_works);
		as_often(&whole, &split, i / 3 < STEPS - VEES);
		for (int h = 0; h < FT_HOSTS; h++)
			if (h != FT_HOST_GRAPH &&
			    (i / 3 < STEPS - VEES ||
			     (h != FT_HOST_PIPELINE && h != FT_HOST_PAIR &&
			      h != FT_HOST_PAIR_EXPERT &&
			      h != FT_HOST_COLLECTIVE))) /* each part is a graph of its own */
				near_frac(host_times(split.graph, (enum ft_host)h),
					  host_times(whole.graph, (enum ft_host)h),
					  1e-12);
		drop(&whole);
		drop(&split);
	}
}

/* Products of gradients of weights are in the second part and nowhere else but in backwards
 * that are whole. */
static void the_parts_are_what_they_say(void **state)
{
	(void)state;
	for (size_t i = 0; i < STEPS; i++) {
		struct parts whole, split;

		build_both(&whole, &split, i, "torch-2.11-eager");
		for (size_t k = 0; k < split.graph->n_segments; k++) {
			const struct ft_segment *s = &split.graph->segment[k];
			bool weights = strstr(s->name, ".weights") != NULL;
			bool both = i >= STEPS - DUALS && !weights &&
				    !strstr(s->name, ".inputs");

			for (size_t j = 0; j < s->n_ops; j++) {
				const struct ft_work *w =
					&split.graph->work[s->op[j].work];

				if (w->kind == FT_GEMM && !both)
					assert_true((w->gemm.layout == FT_WGRAD) ==
						    weights);
				assert_false(weights && w->kind == FT_ATTENTION);
			}
		}
		drop(&whole);
		drop(&split);
	}
}

/* Bytes of activations that a stage keeps at most between its calls. */
static double most_kept_bytes(const struct ft_graph *g, size_t c)
{
	double kept = 0, most = 0;

	for (size_t i = 0; i < g->rank_class[c].n_calls; i++) {
		const struct ft_call *call = &g->rank_class[c].call[i];

		kept += call->repeat *
			g->segment[call->segment].net_bytes[FT_MEMORY_ACTIVATIONS];
		most = kept > most ? kept : most;
	}
	return most;
}

/* Of the one micro-batch whose loss is computed: what the last norm multiplied and what the head
 * did, 2 bytes each. Kernels written by hand were counted without. */
static double behind_layers(const struct parts *p)
{
	return p->stack->layout.fusion == FT_FUSION_KERNELS ? 0 : 4.0 * 512 * 4096;
}

/* All stages keep as much as the first, and the first as much as under 1f1b; the last beside that
 * what stands between its layers and the loss. */
static void activations_are_those_of_1f1b(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct parts whole, split;

		build_both(&whole, &split, 0, stacks[i]);
		for (size_t c = 0; c < whole.graph->n_classes; c++) {
			double end = c == 3 ? behind_layers(&whole) : 0;

			near_frac(most_kept_bytes(split.graph, c),
				  most_kept_bytes(whole.graph, 0) + end, 1e-12);
			near_frac(most_kept_bytes(whole.graph, c),
				  most_kept_bytes(whole.graph, 0) * (4 - (double)c) /
						  4 +
					  end,
				  1e-12);
		}
		drop(&whole);
		drop(&split);
	}
}

/* All stages of dualpipev keep 2 pp + 1 chunks of half a stage: what pp + 1/2 stages are. The first
 * has both ends. */
static void dualpipev_keeps_half_a_stage_more(void **state)
{
	struct parts one, dual;

	(void)state;
	build(&one, LLAMA,
	      "{sequence_length: 512, global_batch_size: 64, sharding: ddp, "
	      "parallel: {pp: 4}}",
	      "torch-2.11-eager", 16);
	build(&dual, LLAMA,
	      "{sequence_length: 512, global_batch_size: 64, sharding: ddp, "
	      "schedule: dualpipev, parallel: {pp: 4, vpp: 2}}",
	      "torch-2.11-eager", 16);
	dual.stack->layout.autograd_split = false;
	rebuild(&dual);
	for (size_t c = 0; c < 4; c++)
		near_frac(most_kept_bytes(dual.graph, c),
			  most_kept_bytes(one.graph, 0) * 4.5 / 4 +
				  (c ? 0 : behind_layers(&dual)),
			  1e-12);
	drop(&one);
	drop(&dual);
}

/* ---- cut by autograd ------------------------------------------------------------------ */

/* Bytes of the outputs' gradients that are summed up, over all calls of a stage, and their number: by
 * the products of gradients of weights in the parts that are cut off, and norms. */
static struct sum sums_expected(const struct ft_graph *g, size_t c, int64_t h,
				double norms)
{
	const struct ft_class *k = &g->rank_class[c];
	struct sum t = { 0, 0, 0 };

	for (size_t i = 0; i < k->n_calls; i++) {
		const struct ft_segment *s = &g->segment[k->call[i].segment];
		double times = k->call[i].repeat,
		       of = strstr(s->name, "head") ? 1 : norms;

		if (!strstr(s->name, ".weights"))
			continue;
		t.n += times * of;
		for (size_t j = 0; j < s->n_ops; j++) {
			const struct ft_work *w = &g->work[s->op[j].work];

			if (w->kind != FT_GEMM)
				continue;
			t.n += times;
			t.bytes += times * 4 * (double)(w->gemm.m * w->gemm.n);
		}
		t.bytes += times * of * 4 * (double)(512 * h);
	}
	return t;
}

static double host_of_class(const struct ft_graph *g, size_t c, enum ft_host h)
{
	double t = 0;

	for (size_t i = 0; i < g->rank_class[c].n_calls; i++)
		t += g->rank_class[c].call[i].repeat *
		     g->segment[g->rank_class[c].call[i].segment].host[h];
	return t;
}

static bool has_slot(const struct ft_class *c, enum ft_slot_kind kind, int64_t chunk)
{
	for (size_t i = 0; i < c->n_slots; i++)
		if (c->slot[i].slot.kind == kind && c->slot[i].slot.chunk == chunk)
			return true;
	return false;
}

/* Two layers a stage of 9 tensors each, the last with the head and its norm: 18 and 20 tensors
 * of 16 micro-batches, of which 153 and 190 pairs lie above each other. */
static void autograd_sums_what_it_cut(void **state)
{
	static const double n[] = { 0, 18, 18, 20 }, below[] = { 0, 153, 153, 190 };
	struct parts whole, split;

	(void)state;
	build_how(&whole, &split, 0, "torch-2.11-eager", true);
	assert_int_equal(split.plan->micro_batches, 16);
	for (size_t c = 0; c < 4; c++) {
		struct sum want = sums_expected(split.graph, c, 4096, 2);

		near_frac(1 + want.n, 1 + 16 * n[c], 1e-12);
		near_frac(1 + host_of_class(split.graph, c, FT_HOST_SPLIT_WEIGHT),
			  1 + 16 * n[c], 1e-12);
		near_frac(1 + host_of_class(split.graph, c, FT_HOST_SPLIT_BELOW),
			  1 + 16 * below[c], 1e-12);
		for (int kind = 0; kind < FT_SLOT_FLUSH; kind++)
			assert_int_equal(has_slot(&split.graph->rank_class[c],
						  (enum ft_slot_kind)kind, 0),
					 kind == FT_SLOT_FORWARD ||
						 (kind == FT_SLOT_WHOLE) == !c);
	}
	near_frac(sum_in(split.graph, NULL, "gradient_sum").bytes,
		  sums_expected(split.graph, 1, 4096, 2).bytes * 2 +
			  sums_expected(split.graph, 3, 4096, 2).bytes,
		  1e-12);
	drop(&whole);
	drop(&split);
}

/* All else is what a whole backward runs, and nothing is left in memory. */
static void autograd_does_the_whole_work(void **state)
{
	(void)state;
	for (size_t i = 0; i < STEPS; i++) {
		struct parts whole, split;
		bool lora = strstr(steps[i].plan, "lora") != NULL;

		build_how(&whole, &split, i, "torch-2.11-eager", true);
		as_often(&whole, &split, false);
		assert_int_equal(sum_in(split.graph, NULL, "gradient_sum").n == 0,
				 lora);
		drop(&whole);
		drop(&split);
	}
}

/* A stage keeps what its layers saved until weights' gradients are computed, and with it the
 * gradients of 43,008 features a token and of two norms, of 4,096 each, a layer: stage s of s + 1
 * backwards. */
static void autograd_keeps_the_graph(void **state)
{
	struct parts whole, split;
	double gradients = 2.0 * 2 * 512 * (43008 + 2 * 4096), kept;

	(void)state;
	build_how(&whole, &split, 0, "torch-2.11-eager", true);
	kept = most_kept_bytes(whole.graph, 3) - behind_layers(&whole);
	near_frac(most_kept_bytes(split.graph, 0), 4 * kept, 1e-12);
	near_frac(most_kept_bytes(split.graph, 1), 4 * kept + 2 * gradients, 1e-12);
	near_frac(most_kept_bytes(split.graph, 2), 4 * kept + 3 * gradients, 1e-12);
	drop(&whole);
	drop(&split);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_two_parts_do_the_whole_work),
		cmocka_unit_test(the_parts_are_what_they_say),
		cmocka_unit_test(activations_are_those_of_1f1b),
		cmocka_unit_test(dualpipev_keeps_half_a_stage_more),
		cmocka_unit_test(autograd_sums_what_it_cut),
		cmocka_unit_test(autograd_does_the_whole_work),
		cmocka_unit_test(autograd_keeps_the_graph),
	};

	return cmocka_run_group_tests_name("traces/schedule: parts", tests, NULL, NULL);
}
