/*
 * tests/test_fit_tuned.c - what frameworks' products take against those of tuners: made rows of both, among rows that
 * do not count; each ratio worked out from the profile of tuners' rows, and how the factors are written
 */
#include <math.h>

#include "base/stats.h"
#include "calibrate/fit.h"
#include "foretoken/hw.h"
#include "tests/check.h"
#include "tests/scratch.h"

enum { DRAWS = 25, ROWS = 120, FORMATS = 3 };

static uint64_t seed = 907;

static const char *const formats[FORMATS] = { "bf16", "fp8", "nvfp4" };

struct made {
	struct ft_measurement row[ROWS];
	size_t n;
};

static struct ft_measurement *add(struct made *x, const char *dtype, const char *source)
{
	struct ft_measurement *m = &x->row[x->n++];

	assert_true(x->n <= ROWS);
	*m = (struct ft_measurement){ .kind = "gemm",
				      .kernel = "",
				      .dtype = dtype,
				      .layout = "forward",
				      .impl = "",
				      .pass = "",
				      .backend = "",
				      .device = "",
				      .fabric = "",
				      .status = "ok",
				      .date = "2026-01-02",
				      .source = source,
				      .provenance = "published",
				      .m = 256 << rnd_below(&seed, 6),
				      .n = 1024 * (1 + rnd_below(&seed, 12)),
				      .k = 1024 * (1 + rnd_below(&seed, 12)) };
	m->time_us = 2 * m->m * m->n * m->k * 1e-6 /
		     (400 + rnd_below(&seed, 800)); /* at so many TFLOP/s */
	return m;
}

/* Tuners' rows in each format, frameworks' in some, and others that say nothing. */
static void make(struct made *x)
{
	*x = (struct made){ .n = 0 };
	for (int d = 0; d < FORMATS; d++) {
		for (int i = 0; i < 8; i++)
			add(x, formats[d], "tune");
		for (int i = rnd_below(&seed, 14); i > 0; i--)
			add(x, formats[d], "frame");
		for (int i = 0; i < 4; i++) {
			struct ft_measurement *m = add(x, formats[d], "frame");

			m->time_us *= 9;
			m->sustained = i == 0;
			m->warm = i == 1;
			if (i == 2)
				m->provenance = "measured";
			if (i == 3)
				m->source = "tune";
		}
	}
}

static bool counts(const struct ft_measurement *m, const char *dtype, int fold)
{
	return !strcmp(m->dtype, dtype) && !strcmp(m->source, "frame") &&
	       !strcmp(m->provenance, "published") && !m->sustained && !m->warm &&
	       fit_fold(m) != fold;
}

static bool are_found(const struct fit_input *in, int fold, const struct ft_gpu *gpu)
{
	bool all = true;

	for (int d = 0; d < FT_DTYPES; d++) {
		const char *dtype = ft_dtype_name((enum ft_dtype)d);
		const struct fit_ratio *r = &in->tuned[d];
		double ratio[ROWS];
		size_t n = 0;

		for (size_t i = 0; i < in->n; i++)
			if (counts(&in->row[i], dtype, fold))
				ratio[n++] = measurement_predict_us(gpu, &in->row[i]) *
					     gpu->gemm_tuned.time[d].value /
					     in->row[i].time_us;
		if (n < 5) {
			assert_int_equal(r->n, 0);
			all &= !n;
			continue;
		}
		assert_int_equal(r->n, n);
		stats_sort(ratio, n);
		near_frac(r->value, stats_median(ratio, n), 1e-12);
		near_frac(r->low, stats_quantile(ratio, n, 0.1), 1e-12);
		near_frac(r->high, stats_quantile(ratio, n, 0.9), 1e-12);
	}
	return all;
}

/* A line for each format that was compared, and one for fp16, which goes as bf16 does. */
static void are_written(const struct fit_input *in)
{
	char *text = NULL, want[400];
	size_t size, lines = 0;
	FILE *out = open_memstream(&text, &size);

	fit_published_rates_yaml(in, out);
	fclose(out);
	for (int d = 0; d < FT_DTYPES; d++) {
		const struct fit_ratio *r = &in->tuned[d == FT_FP16 ? (int)FT_BF16 : d];

		if (!r->n)
			continue;
		lines++;
		snprintf(want, sizeof(want),
			 "\n    %s: {value: %.3f, low: %.3f, high: %.3f, provenance: "
			 "{kind: derived, source: \"published rows, see SOURCES.md\", "
			 "date: \"2026-01-02\", note: \"median, P10 and P90 of %zu "
			 "products of frameworks, predicted from the tuners' "
			 "rows\"}}\n",
			 ft_dtype_name((enum ft_dtype)d), r->value, r->low, r->high,
			 r->n);
		if (!strstr(text, want))
			fail_msg("%s, wanted %s", text, want);
	}
	for (const char *p = text; *p; p++)
		lines -= *p == '\n';
	/* and one above them */
	assert_true(lines == (size_t)-1 ? !strncmp(text, "  tuned:\n", 9) : !*text);
	free(text);
}

static void frameworks_are_held_against_tuners(void **state)
{
	struct scratch *s = *state;
	static const char *tuners[] = { "other", "tune" };
	struct ft_fit_options o = { .name = "mine", .base = "b200" };
	int few = 0;

	for (int i = 0; i < DRAWS; i++) {
		static struct made x;
		struct arena mem = { 0 };
		struct ft_error err;
		struct ft_gpu *base = ft_gpu_load("b200", NULL, &err), *gpu;
		struct fit_input in = { .options = &o,
					.row = x.row,
					.base = base,
					.families = FT_FIT_GEMM,
					.date = "2026-01-02",
					.device = "" },
				 alone;
		int fold = rnd_below(&seed, 6) - 1;

		ok_or_say(base, err);
		base->gemm_tuned.n_sources = 2;
		base->gemm_tuned.source = tuners;
		make(&x);
		in.n = x.n;
		for (int d = 0; d < FT_DTYPES; d++) {
			in.keep[d] = true;
			/* of a fold before */
			in.tuned[d] = in.clock[d] = (struct fit_ratio){ 7, 7, 7, 7 };
		}
		fit_list_codes(&in, &mem);
		ok_or_say(fit_tuned(&in, fold, s->folder, &err), err);
		assert_false(in.only_tuned);
		for (int d = 0; d < FT_DTYPES; d++)
			assert_int_equal(in.clock[d].n, 0);
		alone = in;
		alone.only_tuned = true;
		memset(alone.tuned, 0, sizeof(alone.tuned));
		gpu = fit_write_and_load(&alone, fold, s->folder, NULL, &err);
		ok_or_say(gpu, err);
		few += !are_found(&in, fold, gpu);
		are_written(&in);
		ft_gpu_free(gpu);
		ft_gpu_free(base);
		arena_release(&mem);
	}
	assert_in_range(few, 1, DRAWS);
}

static void without_tuners_nothing_is_compared(void **state)
{
	struct scratch *s = *state;
	struct ft_fit_options o = { .name = "mine", .base = "b200" };
	struct ft_error err;
	struct ft_gpu *base = ft_gpu_load("b200", NULL, &err);
	struct fit_input in = { .options = &o, .base = base, .date = "", .device = "" };
	char path[128];

	ok_or_say(base, err);
	snprintf(path, sizeof(path), "%s/mine.yaml", s->folder);
	in.tuned[FT_BF16].n = 9;
	ok_or_say(fit_tuned(&in, -1, s->folder, &err), err); /* no products asked for */
	assert_int_equal(in.tuned[FT_BF16].n, 0);
	in.families = FT_FIT_GEMM;
	base->gemm_tuned.n_sources = 0;
	ok_or_say(fit_tuned(&in, -1, s->folder, &err), err);
	assert_int_not_equal(access(path, F_OK), 0);
	are_written(&in);
	ft_gpu_free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(frameworks_are_held_against_tuners),
		TEST(without_tuners_nothing_is_compared),
	};

	return cmocka_run_group_tests_name("tuners and frameworks", tests, NULL, NULL);
}
