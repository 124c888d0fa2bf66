/*
 * tests/test_claims.c - what published comparisons claim, asked of the tree
 *
 * Each claim is a ratio of two rates of training, or of products, with its source, and how
 * far off an honest answer may be. None was a target of a fit. (MI250's rate of long runs has
 * its 166 TFLOP/s on four cards, the mi300x stacks have ratios of SemiAnalysis' steps, so that
 * those are not asked here.) Claims that the tree misses stand in docs/accuracy.md.
 */
#include "base/arena.h"
#include "base/node.h"
#include "foretoken/sim.h"
#include "foretoken/study.h"
#include "tests/check.h"

#define COST "cost: {prices: neocloud-2026-09}}"
#define MPT(gpu, n, stack) \
	"{model: mpt-7b, cluster: {gpu: " gpu ", gpus: " n "}, stack: " stack \
	", training: {sequence_length: 2048, global_batch_size: 1536, " \
	"micro_batch_size: 6, sharding: fsdp}, " COST

static double tokens_per_s(const char *scenario)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	struct node *root =
		node_read_text(&mem, "claim", scenario, strlen(scenario), &err);
	struct ft_scenario *s;
	struct ft_outcome o;
	double rate;

	ok_or_say(root, err);
	s = ft_scenario_from(shelf, root, "claim", true, &err);
	ok_or_say(s, err);
	ok_or_say(ft_study_simulate(s, NULL, NULL, &o, &err), err);
	assert_true(ft_outcome_get(&o, "tokens_per_s_per_gpu", &rate));
	ft_outcome_release(&o);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
	return rate;
}

static void training_rates_stand_to_each_other_as_published(void **state)
{
	static const struct {
		const char *what, *a, *b;
		double ratio, within;
		double misses; /* what it is instead, a miss that docs/accuracy.md lists */
	} claims[] = {
		{ "MI250, 128 cards against 4 (Databricks, 2023-10: 159 of 166 TFLOP/s)",
		  MPT("mi250", "128", "rocm-5.7"), MPT("mi250", "4", "rocm-5.7"), 0.958,
		  0.02, 0.983 },
		{ "MI250 against A100 40 GB (the same: 85 %)",
		  MPT("mi250", "4", "rocm-5.7"),
		  MPT("a100-40g", "8", "llm-foundry-2023"), 0.85, 0.05, 0 },
		{ "MI250 against A100 80 GB (the same: 77 %)",
		  MPT("mi250", "4", "rocm-5.7"),
		  MPT("a100-80g", "8", "llm-foundry-2023"), 0.77, 0.10, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(claims) / sizeof(*claims); i++) {
		double r = tokens_per_s(claims[i].a) / tokens_per_s(claims[i].b);

		print_message("# %s: %.3f%s\n", claims[i].what, r,
			      claims[i].misses > 0 ? ", a miss" : "");
		if (claims[i].misses > 0) {
			near_frac(r, claims[i].misses, 0.002);
			continue;
		}
		if (r < claims[i].ratio * (1 - claims[i].within) ||
		    r > claims[i].ratio * (1 + claims[i].within))
			fail_msg("%s: %.3f", claims[i].what, r);
	}
}

/* The mean of the five shapes that SemiAnalysis timed, in TFLOP/s of a burst. */
static double product_rate(const char *name, enum ft_dtype dtype)
{
	static const int64_t shapes[][3] = { { 16384, 8192, 1280 },
					     { 16384, 1024, 8192 },
					     { 16384, 8192, 7168 },
					     { 16384, 3584, 8192 },
					     { 8192, 8192, 8192 } };
	struct ft_error err;
	struct ft_gpu *gpu = ft_gpu_load(name, NULL, &err);
	double sum = 0;

	ok_or_say(gpu, err);
	for (int i = 0; i < 5; i++) {
		struct ft_work w = { .kind = FT_GEMM, .name = "claim", .dtype = dtype };
		struct ft_prediction p;

		w.gemm.m = shapes[i][0];
		w.gemm.n = shapes[i][1];
		w.gemm.k = shapes[i][2];
		w.gemm.groups = 1;
		ok_or_say(ft_kernel_predict(gpu, &w, FT_CLOCK_BURST, &p, &err), err);
		sum += ft_work_flop(&w) / p.time_s / 5e12;
	}
	ft_gpu_free(gpu);
	return sum;
}

static void products_run_as_published(void **state)
{
	static const struct {
		const char *gpu;
		enum ft_dtype dtype;
		double tflops;
	} claims[] = { { "h100-sxm", FT_BF16, 720 }, { "h200", FT_BF16, 720 },
		       { "mi300x", FT_BF16, 620 },   { "h100-sxm", FT_FP8, 1280 },
		       { "h200", FT_FP8, 1280 },     { "mi300x", FT_FP8, 990 } };
	double rate[6];

	(void)state;
	for (int i = 0; i < 6; i++) {
		rate[i] = product_rate(claims[i].gpu, claims[i].dtype);
		print_message("# %s %s: %.0f TFLOP/s, published about %.0f\n",
			      claims[i].gpu, ft_dtype_name(claims[i].dtype), rate[i],
			      claims[i].tflops);
		near_frac(rate[i], claims[i].tflops, 0.12);
	}
	assert_true(rate[2] < rate[0] && rate[2] < rate[1]);
	assert_true(rate[5] < rate[3] && rate[5] < rate[4]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(training_rates_stand_to_each_other_as_published),
		cmocka_unit_test(products_run_as_published),
	};

	return cmocka_run_group_tests_name("claims", tests, NULL, NULL);
}
