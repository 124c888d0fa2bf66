/*
 * tests/test_attention_kernels.c - which kernel of attention runs: what AITER has no backward pass of its own
 * for takes as long as Composable Kernel's, which computes the next of its few head sizes
 *
 * The rule is AITER's (aiter/ops/mha.py), written out here once more.
 */
#include "base/arena.h"
#include "base/node.h"
#include "foretoken/hw.h"
#include "foretoken/sim.h"
#include "tests/check.h"

struct shape {
	int64_t q, v, window;
};

static const struct shape shapes[] = {
	{ 64, 64, 0 },	 { 64, 64, 128 },    { 72, 72, 0 },	 { 96, 96, 0 },
	{ 128, 128, 0 }, { 128, 128, 1024 }, { 128, 128, 4096 }, { 136, 136, 0 },
	{ 192, 128, 0 }, { 192, 128, 512 },  { 192, 192, 0 },	 { 256, 256, 0 },
	{ 128, 64, 0 },
};

static double took_s(const struct ft_gpu *g, const char *impl, enum ft_pass pass,
		     struct shape x)
{
	struct ft_work w = { .kind = FT_ATTENTION, .name = "test", .dtype = FT_BF16 };
	struct ft_prediction p;
	struct ft_error err;

	w.attention.impl = impl;
	w.attention.pass = pass;
	w.attention.batch = 2;
	w.attention.heads = w.attention.kv_heads = 16;
	w.attention.queries = w.attention.keys = 4096;
	w.attention.qk_head_dim = x.q;
	w.attention.v_head_dim = x.v;
	w.attention.window = x.window;
	w.attention.causal = true;
	if (!ft_kernel_predict(g, &w, FT_CLOCK_BURST, &p, &err))
		fail_msg("%s", err.text);
	return p.time_s;
}

/* A window of all keys is none. */
static bool aiters_own(bool cdna4, struct shape x)
{
	bool window = x.window > 0 && x.window < 4096;

	if (cdna4)
		return !window && ((x.q > 64 && x.q <= 128 && x.v == x.q) ||
				   (x.q == 192 && x.v == 128));
	return x.q == x.v && x.q >= 64 && x.q <= 192 &&
	       (!window || (x.q > 64 && x.q <= 128));
}

static void aiter_runs_what_it_has(void **state)
{
	static const char *const names[] = { "mi300x", "mi355x" };

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct ft_error err;
		struct ft_gpu *g = ft_gpu_load(names[k], NULL, &err);
		int own = 0;

		assert_non_null(g);
		for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
			struct shape x = shapes[i];
			double aiter = took_s(g, "aiter", FT_PASS_BACKWARD, x);
			double ck = took_s(g, "ck", FT_PASS_BACKWARD, x);
			bool is_own = aiters_own(k == 1, x);

			own += is_own;
			if ((aiter == ck) == is_own)
				fail_msg(
					"%s, heads of %d and %d, window %d: %g s, ck's %g",
					names[k], (int)x.q, (int)x.v, (int)x.window,
					aiter, ck);
			assert_true(took_s(g, NULL, FT_PASS_BACKWARD, x) == aiter);
		}
		assert_in_range(own, 4, 8);
		ft_gpu_free(g);
	}
}

/* Of a trace's kernel that holds both passes, too. */
static void both_passes_are_each_librarys(void **state)
{
	struct ft_error err;
	struct ft_gpu *g = ft_gpu_load("mi355x", NULL, &err);
	struct shape narrow = { 64, 64, 0 };

	(void)state;
	assert_non_null(g);
	assert_true(took_s(g, "aiter", FT_PASS_BOTH, narrow) ==
		    took_s(g, "aiter", FT_PASS_FORWARD, narrow) +
			    took_s(g, "ck", FT_PASS_BACKWARD, narrow));
	ft_gpu_free(g);
}

static void kernels_are_of_few_head_sizes(void **state)
{
	struct ft_error err;
	struct ft_gpu *g = ft_gpu_load("mi355x", NULL, &err);

	(void)state;
	assert_non_null(g);
	assert_true(ft_attention_kernel_size(g, "ck", 64) == 64);
	assert_true(ft_attention_kernel_size(g, "ck", 65) == 96);
	assert_true(ft_attention_kernel_size(g, "ck", 160) == 256);
	assert_true(ft_attention_kernel_size(g, "ck", 512) == 512);
	assert_true(ft_attention_kernel_size(g, "aiter", 160) == 160);
	assert_true(ft_attention_kernel_size(g, NULL, 160) == 160);
	for (int pass = 0; pass < 2; pass++) {
		double wide = took_s(g, "ck", (enum ft_pass)pass,
				     (struct shape){ 256, 256, 0 });

		near_frac(took_s(g, "ck", (enum ft_pass)pass,
				 (struct shape){ 160, 160, 0 }),
			  wide, 1e-9);
		near_frac(took_s(g, "ck", (enum ft_pass)pass,
				 (struct shape){ 192, 128, 0 }),
			  wide, 1e-9);
	}
	ft_gpu_free(g);
}

/* MI325X has no rows of Composable Kernel: by AITER's, and as wide as it computes. */
static void sizes_are_those_of_what_is_asked_for(void **state)
{
	struct ft_error err;
	struct ft_gpu *g = ft_gpu_load("mi325x", NULL, &err);
	const struct shape latent = { 192, 128, 0 }, wide = { 256, 256, 0 };

	(void)state;
	assert_non_null(g);
	assert_true(took_s(g, "ck", FT_PASS_BACKWARD, latent) ==
		    took_s(g, "ck", FT_PASS_BACKWARD, wide));
	assert_true(took_s(g, "aiter", FT_PASS_BACKWARD, latent) ==
		    took_s(g, "ck", FT_PASS_BACKWARD, wide));
	assert_true(took_s(g, "aiter", FT_PASS_FORWARD, latent) <
		    took_s(g, "aiter", FT_PASS_FORWARD, wide));
	ft_gpu_free(g);
}

/* An mi355x some of whose kernels are others. */
static struct ft_gpu *with_kernels(struct arena *mem, const char *kernels)
{
	char yaml[500];
	struct ft_error err;
	struct node *n;
	struct ft_gpu *g;

	snprintf(yaml, sizeof(yaml), "{extends: mi355x, attention.kernels: {%s}}",
		 kernels);
	n = node_read_text(mem, "g", yaml, strlen(yaml), &err);
	ok_or_say(n, err);
	g = ft_gpu_load_value(n, FT_GPU_ALL_ROWS, &err);
	ok_or_say(g, err);
	return g;
}

static void a_chain_of_libraries_is_followed(void **state)
{
	const struct shape narrow = { 64, 64, 0 }, usual = { 128, 128, 0 };
	struct arena mem = { 0 };
	struct ft_gpu *g =
		with_kernels(&mem, "ck: {else: triton, backward: [{head_dim: 128}]}");

	(void)state;
	for (int pass = 0; pass < 2; pass++)
		assert_true(took_s(g, "aiter", (enum ft_pass)pass, narrow) ==
			    took_s(g, pass ? "triton" : "aiter", (enum ft_pass)pass,
				   narrow));
	assert_true(took_s(g, "ck", FT_PASS_BACKWARD, usual) !=
		    took_s(g, "triton", FT_PASS_BACKWARD, usual));
	ft_gpu_free(g);
	arena_release(&mem);
}

/* A list without shapes is not the same as no list. */
static void an_empty_list_takes_nothing(void **state)
{
	const struct shape usual = { 128, 128, 0 };
	struct arena mem = { 0 };
	struct ft_gpu *none = with_kernels(&mem, "aiter: {backward: []}"),
		      *all = with_kernels(&mem, "aiter: {backward: ~}");

	(void)state;
	assert_true(took_s(none, "aiter", FT_PASS_BACKWARD, usual) ==
		    took_s(all, "ck", FT_PASS_BACKWARD, usual));
	assert_true(took_s(all, "aiter", FT_PASS_BACKWARD, usual) <
		    took_s(all, "ck", FT_PASS_BACKWARD, usual));
	ft_gpu_free(none);
	ft_gpu_free(all);
	arena_release(&mem);
}

static void a_version_has_the_kernels_of_its_library(void **state)
{
	struct arena mem = { 0 };
	struct ft_gpu *g = with_kernels(&mem, "aiter-2025-11: ~");

	(void)state;
	assert_true(ft_attention_kernels(g, "ck-1.2") == ft_attention_kernels(g, "ck"));
	assert_true(ft_attention_kernels(g, "aiter-2025-10") ==
		    ft_attention_kernels(g, "aiter"));
	assert_true(ft_attention_kernels(g, "aiter-2026-05") !=
		    ft_attention_kernels(g, "aiter"));
	assert_null(ft_attention_kernels(g, "aiter-2025-11")->taken[1]);
	assert_null(ft_attention_kernels(g, "triton"));
	assert_null(ft_attention_kernels(g, "c"));
	ft_gpu_free(g);
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aiter_runs_what_it_has),
		cmocka_unit_test(both_passes_are_each_librarys),
		cmocka_unit_test(kernels_are_of_few_head_sizes),
		cmocka_unit_test(sizes_are_those_of_what_is_asked_for),
		cmocka_unit_test(a_chain_of_libraries_is_followed),
		cmocka_unit_test(an_empty_list_takes_nothing),
		cmocka_unit_test(a_version_has_the_kernels_of_its_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
