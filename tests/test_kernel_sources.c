/* tests/test_kernel_sources.c - products of sources and formats of their own: tuners, nvfp4, mxfp8 */
#include "tests/check.h"

#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "sim/kernel.h"

static struct ft_work product(enum ft_dtype dtype, int64_t m, int64_t n, int64_t k)
{
	struct ft_work w = { .kind = FT_GEMM, .name = "test", .dtype = dtype };

	w.gemm.m = m;
	w.gemm.n = n;
	w.gemm.k = k;
	return w;
}

static double burst_s(const struct ft_gpu *g, struct ft_work w)
{
	struct ft_prediction p;
	struct ft_error err;

	if (!ft_kernel_predict(g, &w, FT_CLOCK_BURST, &p, &err))
		fail_msg("%s", err.text);
	return p.time_s;
}

/* A profile that extends another, with a word more on its products. */
static struct ft_gpu *with_gemm(const char *base, const char *words)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *map = node_read_text(
		&mem, "t", arena_printf(&mem, "{extends: %s, %s}", base, words),
		strlen(base) + strlen(words) + 13, &err);
	struct ft_gpu *g;

	assert_non_null(map);
	g = ft_gpu_load_value(map, FT_GPU_ALL_ROWS, &err);
	if (!g)
		fail_msg("%s", err.text);
	arena_release(&mem);
	return g;
}

/* Rows of tuners stand in the table as a framework's product would: by their format's
 * factor. What is held against such a row is taken times that factor again. */
static void rows_of_tuners_are_taken_by_their_factor(void **state)
{
	struct ft_error err;
	struct ft_gpu *g = ft_gpu_load("mi355x", NULL, &err);
	double factor = ft_gpu_source_factor(g, "aif", FT_FP8);
	const struct ft_gemm_table *t = &g->gemm[FT_FP8];
	size_t found = 0;

	(void)state;
	assert_true(factor > 1.05 && factor < 1.4);
	assert_true(ft_gpu_source_factor(g, "aib", FT_BF16) > 1);
	assert_true(ft_gpu_source_factor(g, "hkf", FT_FP8) == 1);
	assert_true(ft_gpu_source_factor(g, NULL, FT_FP8) == 1);
	assert_true(ft_gpu_source_factor(g, "ai4", FT_MXFP4) == 1);
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct ft_gemm_row *r = &t->row[i];

		if (r->m != 8192 || r->n != 8192 || r->k != 8192)
			continue;
		found += fabs(r->time_s * factor * 1e6 / 435.3 - 1) < 0.02; /* aif */
		found += fabs(r->time_s * 1e6 / 340.1 - 1) < 1e-9;	    /* hkf */
	}
	assert_int_equal(found, 2);
	ft_gpu_free(g);
}

/* Without rows of mxfp8 those of fp8 serve, times what a library takes longer. */
static void mxfp8_takes_fp8_times_its_factor(void **state)
{
	struct ft_gpu *g = with_gemm("b200", "gemm.mxfp8_time: 1.25");
	struct ft_work fp8 = product(FT_FP8, 8192, 8192, 8192);
	struct ft_work mx = product(FT_MXFP8, 8192, 8192, 8192);

	(void)state;
	assert_true(fabs(burst_s(g, mx) / burst_s(g, fp8) - 1.25) < 1e-12);
	ft_gpu_free(g);
}

/* TensorRT-LLM's kernels of nvfp4 are not those that a framework calls. */
static void nvfp4_goes_by_the_library_of_frameworks(void **state)
{
	static const struct {
		double edge, us; /* torch._scaled_mm, published as ao1 */
	} told[] = { { 4096, 30.8 }, { 6144, 84.4 }, { 8192, 205 } };
	struct ft_error err;
	struct ft_gpu *g = ft_gpu_load("b200", NULL, &err);

	(void)state;
	assert_true(ft_gpu_source_factor(g, "s4q", FT_NVFP4) > 1.1);
	assert_true(ft_gpu_source_factor(g, "s4q", FT_FP8) == 1);
	for (size_t i = 0; i < 3; i++) {
		int64_t e = (int64_t)told[i].edge;
		double us = 1e6 * burst_s(g, product(FT_NVFP4, e, e, e));

		assert_true(fabs(us / told[i].us - 1) < 0.15);
	}
	ft_gpu_free(g);
}

static void a_list_of_tuners_is_needed_and_is_of_words(void **state)
{
	static const char *const bad[] = {
		"gemm: {tuned: {provenance: {kind: assumed}, bf16: 1.1}}",
		"gemm: {tuned: {provenance: {kind: assumed}, sources: aib}}",
		"gemm: {tuned: {provenance: {kind: assumed}, sources: [[a]]}}",
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct arena mem = { 0 };
		struct ft_error err = { 0 };
		char *text = arena_printf(&mem, "{extends: h200, %s}", bad[i]);
		struct node *map = node_read_text(&mem, "t", text, strlen(text), &err);

		assert_non_null(map);
		assert_null(ft_gpu_load_value(map, 0, &err));
		assert_non_null(strstr(err.text, "sources"));
		arena_release(&mem);
	}
}

/* Stretched axes change which rows speak, not what arithmetic says; a shape that was
 * measured stays near its row. */
static void stretched_axes_leave_measured_shapes_alone(void **state)
{
	struct ft_error err;
	struct ft_gpu *g = ft_gpu_load("mi355x", NULL, &err);
	const struct ft_gemm_table *t = &g->gemm[FT_MXFP4];
	size_t near = 0, count = 0;

	(void)state;
	assert_true(t->scale[0] > 1.5f && t->scale[1] < 0.7f);
	assert_true(fabs((double)t->log_n[7] / log2(t->row[7].n) -
			 (double)t->scale[1]) < 1e-5);
	for (size_t i = 0; i < t->n_rows; i += 9) {
		struct product p = { t->row[i].m, t->row[i].n, t->row[i].k, 1,
				     false,	  2,	       false };
		struct kernel_estimate e = gemm_estimate(g, t, FT_MXFP4, &p, NULL);

		assert_false(e.far);
		near += fabs(e.time_s / t->row[i].time_s - 1) < 0.12;
		count++;
	}
	assert_true((double)near > 0.9 * (double)count);
	ft_gpu_free(g);
}

/* Formats of four bits: MI355X has mxfp4, no nvfp4; it is the fastest of its formats. */
static void mxfp4_has_a_table_of_its_own(void **state)
{
	struct ft_error err;
	struct ft_gpu *g = ft_gpu_load("mi355x", NULL, &err);
	struct ft_work w = product(FT_MXFP4, 16384, 8192, 8192);
	double four = burst_s(g, w);
	struct ft_prediction p;

	(void)state;
	assert_true(g->gemm[FT_MXFP4].n_rows > 500);
	w.dtype = FT_FP8;
	assert_true(four < burst_s(g, w));
	w.dtype = FT_NVFP4;
	assert_false(ft_kernel_predict(g, &w, FT_CLOCK_BURST, &p, &err));
	assert_non_null(strstr(err.text, "mxfp4"));
	ft_gpu_free(g);
}

/* MI100's bf16 has half the peak of its fp16: rows of one are not the other's. */
static void fp16_stands_apart_where_its_peak_does(void **state)
{
	struct ft_error err;
	struct ft_gpu *a = ft_gpu_load("mi100", NULL, &err);
	struct ft_gpu *b = with_gemm("mi100", "peak: {bf16: 184.6 TFLOP/s}");
	struct ft_work w = product(FT_FP16, 2048, 2048, 2048);
	double t = burst_s(a, w);

	(void)state;
	assert_true(a->gemm[FT_FP16].n_rows > 10 && a->gemm[FT_FP16].on == a);
	assert_true(a->gemm[FT_BF16].on != a);
	assert_true(b->gemm[FT_FP16].on != b);
	w.dtype = FT_BF16;
	assert_true(burst_s(a, w) > 1.3 * t);
	ft_gpu_free(a);
	ft_gpu_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_tuners_are_taken_by_their_factor),
		cmocka_unit_test(mxfp8_takes_fp8_times_its_factor),
		cmocka_unit_test(nvfp4_goes_by_the_library_of_frameworks),
		cmocka_unit_test(a_list_of_tuners_is_needed_and_is_of_words),
		cmocka_unit_test(stretched_axes_leave_measured_shapes_alone),
		cmocka_unit_test(mxfp4_has_a_table_of_its_own),
		cmocka_unit_test(fp16_stands_apart_where_its_peak_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
