/*
 * tests/test_clock_range.c - how much a step depends on the clock that its cards hold: against the step on cards that hold the
 * highest and the lowest of their kind; and what a profile says of other cards
 */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"
#include "tests/check.h"

static struct ft_outcome run(const char *gpu, const char *keys)
{
	struct arena mem = { 0 };
	struct ft_shelf *shelf = ft_shelf_new();
	const char *text =
		arena_printf(&mem, "{cluster: {gpu: %s, gpus: 8}, %s}", gpu, keys);
	struct ft_error err;
	struct ft_outcome o;
	struct node *root = node_read_text(&mem, "s", text, strlen(text), &err);
	struct ft_scenario *s;

	ok_or_say(root, err);
	s = ft_scenario_from(shelf, root, "s", true, &err);
	ok_or_say(s, err);
	ok_or_say(ft_study_simulate(s, NULL, NULL, &o, &err), err);
	ft_outcome_release(&o);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
	return o;
}

#define LLAMA "model: llama3-8b, stack: megatron-core-te-2.11, training: "

static const struct {
	const char *gpu, *keys;
} cases[] = {
	{ "b200",
	  LLAMA "{sequence_length: 8192, global_batch_size: 64, sharding: zero1}" },
	{ "b200", LLAMA
	  "{sequence_length: 8192, global_batch_size: 64, sharding: zero1, recompute: full}" },
	{ "b200", LLAMA
	  "{sequence_length: 65536, global_batch_size: 16, recompute: full, parallel: {tp: 2}}" },
	{ "b200",
	  LLAMA "{sequence_length: 4096, global_batch_size: 32, parallel: {pp: 4}}" },
	{ "b200",
	  LLAMA "{sequence_length: 2048, global_batch_size: 8, parallel: {tp: 8}}" },
	{ "b300",
	  LLAMA "{sequence_length: 8192, global_batch_size: 64, precision: fp8}" },
	{ "gb200",
	  "model: qwen3-30b-a3b, stack: megatron-bridge-26.02, training: {sequence_length: "
	  "4096, global_batch_size: 128, micro_batch_size: 4, cuda_graphs: partial, parallel: {ep: 8}}" },
};

/* The step where all formats hold what they hold at most, or at least. */
static double at(size_t i, bool highest)
{
	struct ft_error err;
	struct ft_gpu *gpu = ft_gpu_load(cases[i].gpu, NULL, &err);
	struct arena mem = { 0 };
	const char *rates = "";
	double step;

	ok_or_say(gpu, err);
	for (int d = 0; d < FT_DTYPES; d++) {
		const struct ft_number *of = &gpu->sustained[d];
		double rate = highest ? of->high : of->low;

		rates = arena_printf(
			&mem, "%s%s: {value: %.17g, low: %.17g, high: %.17g}, ", rates,
			ft_dtype_name((enum ft_dtype)d), rate, rate, rate);
	}
	ft_gpu_free(gpu);
	step = run(arena_printf(
			   &mem,
			   "{extends: %s, gemm.sustained: {%selsewhere: ~, provenance: {kind: assumed, "
			   "date: 2026-12-01}}}",
			   cases[i].gpu, rates),
		   cases[i].keys)
		       .step_s;
	arena_release(&mem);
	return step;
}

static void a_step_is_as_unsure_as_its_cards_clocks(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ft_outcome o = run(cases[i].gpu, cases[i].keys);
		double less = (1 - at(i, true) / o.step_s) / 1.2816;
		double more = (at(i, false) / o.step_s - 1) / 1.2816;

		assert_true(fabs(o.traits.clock_faster_frac - less) < 0.006);
		assert_true(fabs(o.traits.clock_slower_frac - more) < 0.006);
	}
}

static struct ft_number bf16(const char *gpu)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *root = node_read_text(&mem, "g", gpu, strlen(gpu), &err);
	struct ft_gpu *g;
	struct ft_number rate;

	ok_or_say(root, err);
	g = ft_gpu_load_value(root, FT_GPU_ALL_ROWS, &err);
	ok_or_say(g, err);
	rate = g->sustained[FT_BF16];
	ft_gpu_free(g);
	arena_release(&mem);
	return rate;
}

/* Other cards widen a range, on the side on which they are, and move no value. */
static void a_range_reaches_other_cards(void **state)
{
	struct ft_number own = bf16("{extends: h200}"), r;

	(void)state;
#define OTHERS(rate) \
	"{extends: h200, gemm.sustained.elsewhere: {bf16: " rate \
	", provenance: {kind: assumed, date: 2026-12-01}}}"
	r = bf16(OTHERS("0.95"));
	assert_true(r.value == own.value && r.low == own.low && r.high == 0.95);
	r = bf16(OTHERS("{value: 0.7, low: 0.6, high: 0.8}"));
	assert_true(r.value == own.value && r.low == 0.6 && r.high == own.high);
	r = bf16(OTHERS("0.86"));
	assert_true(r.low == own.low && r.high == own.high);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_reaches_other_cards),
		cmocka_unit_test(a_step_is_as_unsure_as_its_cards_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
