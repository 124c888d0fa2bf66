/*
 * tests/test_fit_profile.c - what a profile says of kernels beside collectives and of launches:
 * written from made rows, read back, and worked out here from those that count
 */
#include <math.h>

#include "base/stats.h"
#include "calibrate/fit.h"
#include "foretoken/hw.h"
#include "tests/check.h"
#include "tests/scratch.h"

enum { DRAWS = 40, ROWS = 40 };

static uint64_t seed = 3;

struct made {
	struct ft_measurement row[ROWS];
	size_t n, counted;
	double units[ROWS], slower[ROWS]; /* of those that count */
};

static struct ft_measurement *add(struct made *x, const char *kind, const char *kernel)
{
	x->row[x->n] = (struct ft_measurement){ .kind = kind,
						.kernel = kernel,
						.dtype = "bf16",
						.layout = "",
						.impl = "",
						.pass = "",
						.status = "ok",
						.source = "",
						.date = "2026-11-25",
						.backend = "cuda",
						.device = "D",
						.provenance = "measured" };
	return &x->row[x->n++];
}

/* A product that collectives slow down, or do not; collectives half as long as it at least. */
static void draw(struct made *x, double compute_units, bool slowed)
{
	*x = (struct made){ .n = 0 };
	for (int i = 3 + rnd_below(&seed, 12); i > 0; i--) {
		struct ft_measurement *m = add(x, "beside", "gemm");
		int part = rnd_below(&seed, 4);

		/* of a fraction of a microsecond, too */
		m->alone_us = (1000 + rnd_below(&seed, 1000)) * (i % 4 ? 1 : 5e-4);
		m->other_alone_us = m->alone_us * (0.3 + 0.2 * part);
		m->time_us =
			m->alone_us *
			(slowed ? 1.05 + rnd_below(&seed, 20) / 100. : 1 - part / 50.);
		m->other_us = m->other_alone_us *
			      (slowed ? 1.1 + rnd_below(&seed, 30) / 100. : 0.99);
		if (part == 0) /* it is over while the product runs */
			continue;
		x->units[x->counted] =
			compute_units * fmax(0, 1 - m->alone_us / m->time_us);
		x->slower[x->counted++] = m->other_us / m->other_alone_us;
	}
	add(x, "beside", "gemm")->time_us = 1; /* of no time alone */
	add(x, "launch", "gap")->time_us = 0.25 + rnd_below(&seed, 40) / 8.;
	add(x, "launch", "graph")->time_us = 0.25 + rnd_below(&seed, 40) / 8.;
	add(x, "launch", "other")->time_us = 77;
	stats_sort(x->units, x->counted);
	stats_sort(x->slower, x->counted);
}

static bool near(double is, double want)
{
	return fabs(is - want) <= 0.00051 * fmax(1, fabs(want));
}

/* The median, not below the least, between what was seen. */
static void is_median(const struct ft_number *is, const double *v, size_t n,
		      double least)
{
	double middle = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
	double want = fmax(least, middle);

	assert_true(near(is->value, want));
	assert_true(near(is->low, fmin(want, v[0])));
	assert_true(near(is->high, fmax(want, v[n - 1])));
}

static void what_runs_beside_collectives_is_read_back(void **state)
{
	const struct scratch *s = *state;
	const struct ft_fit_options options = { .name = "made", .base = "h100-sxm" };
	struct ft_error err;
	struct ft_gpu *base = ft_gpu_load("h100-sxm", NULL, &err);
	static struct made x;

	assert_non_null(base);
	for (int i = 0; i < DRAWS; i++) {
		struct fit_input in = { .options = &options,
					.row = x.row,
					.base = base,
					.families = FT_FIT_INTERFERENCE | FT_FIT_LAUNCH,
					.date = "2026-11-25",
					.device = "D" };
		struct ft_fit fit = { .n_groups = 0 };
		char path[128];
		struct ft_gpu *gpu;

		draw(&x, (double)base->compute_units, i % 3);
		if (!x.counted)
			continue;
		in.n = x.n;
		assert_true(fit_write_profile(&in, -1, s->folder, &fit, &err));
		snprintf(path, sizeof(path), "%s/made.yaml", s->folder);
		gpu = ft_gpu_load(path, NULL, &err);
		if (!gpu)
			fail_msg("%s", err.text);
		is_median(&gpu->collective_units, x.units, x.counted, 0);
		is_median(&gpu->collective_beside_compute, x.slower, x.counted, 1);
		assert_true(
			near(gpu->launch_gap_s.value * 1e6, x.row[x.n - 3].time_us));
		assert_true(
			near(gpu->kernel_floor_s.value * 1e6, x.row[x.n - 2].time_us));
		assert_true(gpu->copy_beside_gemm.value ==
			    base->copy_beside_gemm.value);
		assert_true(gpu->memory_beside_copy.value ==
			    base->memory_beside_copy.value);
		ft_gpu_free(gpu);
	}
	ft_gpu_free(base);
}

/* ---- seconds against bursts ---------------------------------------------------------------- */

static bool is_burst(const struct ft_measurement *b, const struct ft_measurement *a)
{
	return !b->sustained && !strcmp(b->layout, "forward") && !b->impl[0] &&
	       !strcmp(b->provenance, "measured") && !strcmp(b->dtype, a->dtype) &&
	       b->m == a->m && b->n == a->n && b->k == a->k;
}

/* The median over all pairs of one size, no more than 1; 0: there is none. */
static double rate_of(const struct made *x, const char *dtype)
{
	double v[ROWS * ROWS];
	size_t n = 0;

	for (size_t i = 0; i < x->n; i++)
		for (size_t k = 0; k < x->n; k++)
			if (x->row[i].sustained && !strcmp(x->row[i].dtype, dtype) &&
			    is_burst(&x->row[k], &x->row[i]))
				v[n++] = (x->row[k].p10_us > 0 ? x->row[k].p10_us :
								 x->row[k].time_us) /
					 x->row[i].time_us;
	stats_sort(v, n);
	return !n    ? 0 :
	       n % 2 ? fmin(1, v[n / 2]) :
		       fmin(1, (v[n / 2 - 1] + v[n / 2]) / 2);
}

static void draw_products(struct made *x, double slower)
{
	*x = (struct made){ .n = 0 };
	for (int i = 0; i < 20; i++) {
		struct ft_measurement *m = add(x, "gemm", "");

		m->dtype = rnd_below(&seed, 2) ? "bf16" : "fp8";
		m->layout = rnd_below(&seed, 6) ? "forward" : "dgrad";
		m->impl = rnd_below(&seed, 6) ? "" : "torch";
		m->provenance =
			i && rnd_below(&seed, 6) == 0 ? "published" : "measured";
		m->m = 4096 << rnd_below(&seed, 2);
		m->n = m->k = 8192;
		m->sustained = rnd_below(&seed, 2);
		m->time_us = 1000 * (m->m / 4096) * (1 + rnd_below(&seed, 9) / 90.) *
			     (m->sustained ? slower : 1);
		m->p10_us = rnd_below(&seed, 2) ? m->time_us * 0.98 : 0;
	}
}

static void seconds_are_held_against_bursts(void **state)
{
	static const enum ft_dtype formats[][2] = { { FT_BF16, FT_FP16 },
						    { FT_FP8, FT_FP8_BLOCK128 } };
	const struct scratch *s = *state;
	const struct ft_fit_options options = { .name = "made", .base = "h100-sxm" };
	struct ft_error err;
	struct ft_gpu *base = ft_gpu_load("h100-sxm", NULL, &err), *gpu;
	static struct made x;
	char path[128];

	assert_non_null(base);
	snprintf(path, sizeof(path), "%s/made.yaml", s->folder);
	for (int i = 0; i < DRAWS / 2; i++) {
		struct fit_input in = { .options = &options,
					.row = x.row,
					.base = base,
					.families = FT_FIT_SUSTAINED,
					.date = "2026-11-25",
					.device = "D" };
		struct ft_fit fit = { .n_groups = 0 };
		bool any = false;

		draw_products(&x, i % 3 ? 1.2 : 0.9);
		in.n = x.n;
		assert_true(fit_write_profile(&in, -1, s->folder, &fit, &err));
		gpu = ft_gpu_load(path, NULL, &err);
		ok_or_say(gpu, err);
		any = rate_of(&x, "bf16") > 0 || rate_of(&x, "fp8") > 0;
		for (int k = 0; k < 4; k++) {
			enum ft_dtype d = formats[k / 2][k % 2];
			double r = rate_of(&x, k / 2 ? "fp8" : "bf16");

			if (r > 0)
				assert_true(near(gpu->sustained[d].value, r));
			else if (!any)
				assert_true(gpu->sustained[d].value ==
					    base->sustained[d].value);
		}
		ft_gpu_free(gpu);
	}
	ft_gpu_free(base);
}

/* ---- which attention, and how sure ---------------------------------------------------------- */

/* Of the fused ones that with most rows, of equals the first; the stand-in where there is no other. */
static const char *most_of(const struct made *x)
{
	const char *best = NULL;
	int most = 0;

	for (size_t i = 0; i < x->n; i++) {
		int n = 0;

		if (strcmp(x->row[i].kind, "attention"))
			continue;
		for (size_t k = 0; k < x->n; k++)
			n += !strcmp(x->row[k].kind, "attention") &&
			     !strcmp(x->row[k].impl, x->row[i].impl);
		if (strcmp(x->row[i].impl, "unfused") && n > most) {
			best = x->row[i].impl;
			most = n;
		}
	}
	for (size_t i = 0; !best && i < x->n; i++)
		if (!strcmp(x->row[i].kind, "attention"))
			best = x->row[i].impl;
	return best;
}

static void the_attention_measured_most_is_the_profiles(void **state)
{
	static const char *const impls[] = { "unfused", "fa2", "fa3", "cudnn" };
	struct ft_gpu base = { .attention_impl = "the base's" };
	int none = 0, stand_in = 0;

	(void)state;
	for (int i = 0; i < 10 * DRAWS; i++) {
		static struct made x;
		struct fit_input in = { .row = x.row, .base = &base };
		int fused = rnd_below(&seed, 4);
		const char *want;

		x = (struct made){ .n = 0 };
		for (int k = rnd_below(&seed, 9); k > 0; k--) {
			bool counts = rnd_below(&seed, 4) > 0;

			add(&x, counts ? "attention" : "gemm", "")->impl =
				impls[rnd_below(&seed, 1 + fused)];
		}
		in.n = x.n;
		want = most_of(&x);
		none += !want;
		stand_in += want && !strcmp(want, "unfused");
		assert_string_equal(fit_attention_impl(&in),
				    want ? want : "the base's");
		in.own_base = true;
		assert_string_equal(fit_attention_impl(&in), "the base's");
	}
	assert_true(none > 10 && stand_in > 10);
}

static void an_error_of_few_shapes_is_told(void **state)
{
	static const struct {
		size_t shapes;
		double spread;
		const char *says; /* NULL: nothing */
	} bars[] = {
		{ 2, 0,
		  "# family: too few shapes (2) for an error bar; the base's stays\n" },
		{ 3, 0.1, "# family: error bar widened for 3 shapes (Student's t)\n" },
		{ 29, 0.1,
		  "# family: error bar widened for 29 shapes (Student's t)\n" },
		{ 30, 0.1, NULL },
		{ 31, 0.1, NULL },
	};
	const struct scratch *s = *state;
	const struct ft_fit_options options = { .name = "made", .base = "h100-sxm" };
	struct ft_error err;
	struct ft_gpu *base = ft_gpu_load("h100-sxm", NULL, &err);
	char path[128], text[20000];

	ok_or_say(base, err);
	snprintf(path, sizeof(path), "%s/made.yaml", s->folder);
	for (size_t i = 0; i < sizeof(bars) / sizeof(*bars); i++) {
		struct fit_input in = { .options = &options,
					.base = base,
					.date = "2026-11-25",
					.device = "D" };
		struct ft_fit fit = { .group = { { .family = "family",
						   .n = 40,
						   .shapes = bars[i].shapes,
						   .mape = 0.125,
						   .p90 = 0.25,
						   .bias = -0.0625,
						   .spread = bars[i].spread },
						 { .family = "family part",
						   .spread = 0 },
						 { .family = "collective x" } },
				      .n_groups = 3 };
		FILE *f;

		ok_or_say(fit_write_profile(&in, -1, s->folder, &fit, &err), err);
		f = fopen(path, "r");
		text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
		fclose(f);
		assert_non_null(strstr(
			text, "n   40  MAPE  12.5 %  p90  25.0 %  bias  -6.2 %\n"));
		assert_non_null(strstr(text, "#   family part "));
		assert_null(strstr(text, "collective x"));
		assert_null(strstr(text, "# family part:"));
		if (bars[i].says)
			assert_non_null(strstr(text, bars[i].says));
		else
			assert_null(strstr(text, "# family:"));
	}
	ft_gpu_free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_runs_beside_collectives_is_read_back),
		TEST(seconds_are_held_against_bursts),
		TEST(the_attention_measured_most_is_the_profiles),
		TEST(an_error_of_few_shapes_is_told),
	};

	return cmocka_run_group_tests_name("calibrate/fit_profile", tests, NULL, NULL);
}
