/*
 * tests/test_schedule.c - orders of passes against what must hold of each, against closed
 * forms of their length, and what a step keeps under them
 *
 * The clock here is the obvious one: a pass takes its time once its stage is free and its
 * input is there. Sends take none.
 */
#include "tests/check.h"
#include "tests/simulated.h"
#include "tests/works.h"

#include "base/arena.h"
#include "traces/build.h"

static const enum ft_slot_kind F = FT_SLOT_FORWARD, B = FT_SLOT_BACKWARD,
			       W = FT_SLOT_WEIGHTS;

struct drawn_schedule {
	struct arena mem;
	struct ft_plan plan;
	struct ft_slot **slot; /* [pp][n] */
	size_t n;
};

static void lay(struct drawn_schedule *d, enum ft_schedule schedule, int64_t pp,
		int64_t vpp, int64_t m)
{
	*d = (struct drawn_schedule){ .plan = { .pp = pp,
						.vpp = vpp,
						.micro_batches = m,
						.schedule = schedule } };
	d->n = schedule_count(&d->plan);
	d->slot = ARENA_ARRAY(&d->mem, (size_t)pp, struct ft_slot *);
	for (int64_t s = 0; s < pp; s++) {
		d->slot[s] = ARENA_ARRAY(&d->mem, d->n, struct ft_slot);
		assert_int_equal(schedule_slots(&d->plan, s, d->slot[s]), d->n);
	}
}

/* When a pass of a chunk was over, or -1: [kind][chunk of the model][micro-batch]. */
static double *end_of(double *end, const struct ft_plan *p, enum ft_slot_kind kind,
		      int64_t at, int64_t m)
{
	return &end[((int64_t)kind * p->pp * p->vpp + at) * p->micro_batches + m];
}

/* When its input is there; -1: not yet. Weights need their own backward, a backward its
 * forward and the next chunk's backward, a forward the chunk before. */
static double input_of(double *end, const struct ft_plan *p, const struct ft_slot *s,
		       int64_t at)
{
	int64_t m = s->micro_batch, last = p->pp * p->vpp - 1;
	double own, other = 0;

	if (s->kind == W)
		return *end_of(end, p, B, at, m);
	if (s->kind == F)
		return at ? *end_of(end, p, F, at - 1, m) : 0;
	own = *end_of(end, p, F, at, m);
	if (at < last)
		other = *end_of(end, p, B, at + 1, m);
	return own < 0 || other < 0 ? -1 : own > other ? own : other;
}

/* The step's length; fails where a pass comes twice, never, or can never begin. */
static double length_of(const struct drawn_schedule *d, const double takes[3])
{
	const struct ft_plan *p = &d->plan;
	size_t ends = (size_t)(3 * p->pp * p->vpp * p->micro_batches);
	size_t *next = calloc((size_t)p->pp, sizeof(*next)), left;
	double *end = malloc(ends * sizeof(*end)), longest = 0;
	double *free_at = calloc((size_t)p->pp, sizeof(*free_at));
	bool moved = true;

	for (size_t i = 0; i < ends; i++)
		end[i] = -1;
	while (moved) {
		moved = false;
		for (int64_t s = 0; s < p->pp; s++)
			for (; next[s] < d->n; next[s]++, moved = true) {
				const struct ft_slot *t = &d->slot[s][next[s]];
				int64_t at = ft_plan_place(p, s, t->chunk);
				double from = input_of(end, p, t, at);
				double *to =
					end_of(end, p, t->kind, at, t->micro_batch);

				if (from < 0)
					break;
				assert_true(*to < 0); /* once */
				from = from > free_at[s] ? from : free_at[s];
				*to = free_at[s] = from + takes[t->kind];
				longest = *to > longest ? *to : longest;
			}
	}
	left = 0;
	for (int64_t s = 0; s < p->pp; s++)
		left += d->n - next[s];
	assert_int_equal(left, 0); /* all ran; d->n of them, no two alike: each once */
	free(next);
	free(end);
	free(free_at);
	return longest;
}

/* The most micro-batches of all chunks whose activations a stage keeps at once. */
static int64_t most_kept(const struct drawn_schedule *d, int64_t stage)
{
	bool splits = plan_splits(&d->plan);
	int64_t kept = 0, most = 0;

	for (size_t i = 0; i < d->n; i++) {
		enum ft_slot_kind kind = d->slot[stage][i].kind;

		kept += kind == FT_SLOT_FORWARD;
		most = kept > most ? kept : most;
		kept -= kind == (splits ? W : B);
	}
	assert_int_equal(kept, 0);
	return most;
}

static int64_t from_to(uint64_t *seed, int64_t least, int64_t most)
{
	return least + (int64_t)(rnd(seed) % (uint64_t)(most - least + 1));
}

static void every_pass_runs_once_in_a_legal_order(void **state)
{
	static const double ones[] = { 1, 1, 1 };
	uint64_t seed = 5;

	(void)state;
	for (int i = 0; i < 600; i++) {
		enum ft_schedule how =
			(enum ft_schedule)from_to(&seed, FT_1F1B, FT_ZBV);
		int64_t pp = from_to(&seed, 1, 9), m = from_to(&seed, 1, 24);
		bool chunks = how == FT_INTERLEAVED || how == FT_ZERO_BUBBLE;
		int64_t vpp = chunks ? from_to(&seed, 1, 3) : 1;
		struct drawn_schedule d;

		if (how == FT_ZBV)
			vpp = 2;
		if (pp == 1)
			vpp = 1;
		if (vpp > 1 &&
		    how != FT_ZBV) /* groups of pp micro-batches, as Megatron has them */
			m = (m + pp - 1) / pp * pp;
		lay(&d, how, pp, vpp, m);
		length_of(&d, ones);
		arena_release(&d.mem);
	}
}

static void lengths_are_the_closed_forms(void **state)
{
	uint64_t seed = 9;

	(void)state;
	for (int i = 0; i < 600; i++) {
		int64_t pp = from_to(&seed, 1, 9), m = from_to(&seed, pp, 24);
		double f = (double)from_to(&seed, 1, 9),
		       b = (double)from_to(&seed, 1, 9);
		double w = (double)from_to(&seed, 1, (int64_t)(f < b ? f : b));
		double work = (double)m * (f + b + w), ramp = (double)(pp - 1);
		const double split[] = { f, b, w }, whole[] = { f, b + w, 0 };
		struct drawn_schedule d;

		lay(&d, FT_1F1B, pp, 1, m);
		near_frac(length_of(&d, whole), work + ramp * (f + b + w), 1e-12);
		for (int64_t s = 0; s < pp; s++)
			assert_int_equal(most_kept(&d, s), pp - s);
		arena_release(&d.mem);
		lay(&d, FT_INTERLEAVED, pp, 3, m / pp * pp); /* chunks of a third */
		near_frac(length_of(&d, whole),
			  3 * (double)(m / pp * pp) * (f + b + w) + ramp * (f + b + w),
			  1e-12);
		arena_release(&d.mem);
		lay(&d, FT_GPIPE, pp, 1, m);
		near_frac(length_of(&d, whole), work + ramp * (f + b + w), 1e-12);
		arena_release(&d.mem);
		lay(&d, FT_ZERO_BUBBLE, pp, 1, m);
		near_frac(length_of(&d, pp > 1 ? split : whole),
			  work + ramp * (f + b - w), 1e-12);
		for (int64_t s = 0; s < pp; s++)
			assert_int_equal(most_kept(&d, s), pp > 1 ? pp : 1);
		arena_release(&d.mem);
	}
}

/* zbv with equal parts: each stage without a pause, the next one begins a forward later. */
static void a_v_has_no_bubble(void **state)
{
	static const double ones[] = { 1, 1, 1 };

	(void)state;
	for (int64_t pp = 2; pp < 10; pp++)
		for (int64_t m = 1; m < 30; m++) {
			double full = 6 * (double)m + (double)(pp - 1), t;
			struct drawn_schedule d;

			lay(&d, FT_ZBV, pp, 2, m);
			t = length_of(&d, ones);
			if (m >= 2 * pp - 1)
				near_frac(t, full, 1e-12);
			else
				assert_true(t >= full);
			for (int64_t s = 0; s < pp; s++)
				assert_int_equal(most_kept(&d, s) <= 2 * pp, true);
			if (m >= 2 * pp - 1)
				assert_int_equal(most_kept(&d, 0), 2 * pp);
			arena_release(&d.mem);
		}
}

/* Weights that take longer than a forward or a backward cannot all hide: then it is no
 * shorter than the closed form, and no longer than 1f1b. */
static void long_weights_stay_between(void **state)
{
	uint64_t seed = 21;

	(void)state;
	for (int i = 0; i < 300; i++) {
		int64_t pp = from_to(&seed, 2, 9), m = from_to(&seed, pp, 24);
		double f = (double)from_to(&seed, 1, 9),
		       b = (double)from_to(&seed, 1, 9);
		double w = (double)from_to(&seed, 1, 12);
		double work = (double)m * (f + b + w), ramp = (double)(pp - 1), t;
		const double split[] = { f, b, w };
		struct drawn_schedule d;

		lay(&d, FT_ZERO_BUBBLE, pp, 1, m);
		t = length_of(&d, split);
		assert_true(t >= work + ramp * (f + b - w) - 1e-9);
		assert_true(t <= work + ramp * (f + b + w) + 1e-9);
		arena_release(&d.mem);
	}
}

/* ---- a step whose backwards are cut in two --------------------------------------- */

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
};

enum { STEPS = sizeof(steps) / sizeof(*steps), VEES = 2 };

static const char *const stacks[] = { "torch-2.11-eager", "megatron-core", "generic" };

/* A V has fewer transfers, as the two chunks of its last stage follow each other, and both
 * ends on one stage, whose update is the larger: all else is the same. */
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

static void build_both(struct parts *whole, struct parts *split, size_t step,
		       const char *stack)
{
	char plan[400];

	for (int k = 0; k < 2; k++) {
		struct parts *p = k ? split : whole;

		snprintf(plan, sizeof(plan),
			 "{sequence_length: 512, global_batch_size: 64, %s}",
			 steps[step].plan);
		build(p, steps[step].model, plan, stack, 16);
		if (!k)
			continue;
		p->plan->schedule = step < STEPS - VEES ? FT_ZERO_BUBBLE : FT_ZBV;
		p->stack->layout.split_backward = true;
		rebuild(p);
	}
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
		for (size_t k = 0; k < whole.graph->n_works; k++)
			if (i / 3 < STEPS - VEES || is_of_layers(&whole.graph->work[k]))
				near_frac(times_of(split.graph, &whole.graph->work[k]),
					  times_of(whole.graph, &whole.graph->work[k]),
					  1e-12);
		for (int h = 0; h < FT_HOSTS; h++)
			if (h != FT_HOST_GRAPH &&
			    (i / 3 < STEPS - VEES ||
			     h != FT_HOST_PIPELINE)) /* each part is a graph of its own */
				near_frac(host_times(split.graph, (enum ft_host)h),
					  host_times(whole.graph, (enum ft_host)h),
					  1e-12);
		for (int m = 0; m < FT_MEMORIES; m++)
			near_frac(1e9 + left_over(split.graph, (enum ft_memory)m),
				  1e9 + left_over(whole.graph, (enum ft_memory)m),
				  1e-9);
		drop(&whole);
		drop(&split);
	}
}

/* Products of gradients of weights are in the second part and nowhere else. */
static void the_parts_are_what_they_say(void **state)
{
	(void)state;
	for (size_t i = 0; i < STEPS; i++) {
		struct parts whole, split;

		build_both(&whole, &split, i, "torch-2.11-eager");
		for (size_t k = 0; k < split.graph->n_segments; k++) {
			const struct ft_segment *s = &split.graph->segment[k];
			bool weights = strstr(s->name, ".weights") != NULL;

			for (size_t j = 0; j < s->n_ops; j++) {
				const struct ft_work *w =
					&split.graph->work[s->op[j].work];

				if (w->kind == FT_GEMM)
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

/* All stages keep as much as the first, and the first as much as under 1f1b. */
static void activations_are_those_of_1f1b(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct parts whole, split;

		build_both(&whole, &split, 0, stacks[i]);
		for (size_t c = 0; c < whole.graph->n_classes; c++) {
			near_frac(most_kept_bytes(split.graph, c),
				  most_kept_bytes(whole.graph, 0), 1e-12);
			near_frac(most_kept_bytes(whole.graph, c),
				  most_kept_bytes(whole.graph, 0) * (4 - (double)c) / 4,
				  1e-12);
		}
		drop(&whole);
		drop(&split);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pass_runs_once_in_a_legal_order),
		cmocka_unit_test(lengths_are_the_closed_forms),
		cmocka_unit_test(a_v_has_no_bubble),
		cmocka_unit_test(long_weights_stay_between),
		cmocka_unit_test(the_two_parts_do_the_whole_work),
		cmocka_unit_test(the_parts_are_what_they_say),
		cmocka_unit_test(activations_are_those_of_1f1b),
	};

	return cmocka_run_group_tests_name("traces/schedule", tests, NULL, NULL);
}
