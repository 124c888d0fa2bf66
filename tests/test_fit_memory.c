/*
 * tests/test_fit_memory.c - curves of memory-bound kernels out of rows that lie on known ones, among
 * rows that must not count: of other kinds, held out, narrow, warm where the others are cold
 */
#include <math.h>

#include "calibrate/fit.h"
#include "foretoken/hw.h"
#include "tests/check.h"
#include "tests/scratch.h"

enum { DRAWS = 99, ROWS = 600, FOLD = 2 };

static uint64_t seed = 8;

static uint32_t draw32(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33);
}

static int below(int n)
{
	return (int)(draw32() % (uint32_t)n);
}

/* Bytes read and written to one of the source: as PyTorch runs it, and the probe's own. */
static const struct kernel {
	const char *name;
	double torch, own;
	bool by_row;	 /* has curves for lengths of rows */
	double from, to; /* the usual ones, in elements */
} kernels[] = {
	{ "copy", 2, 2, false, 0, 1e9 },
	{ "add", 3, 3, false, 0, 1e9 }, /* two in, one out */
	{ "rmsnorm", 2, 2, true, 2048, 8192 },
	{ "layernorm", 2, 2, true, 2048, 8192 },
	{ "swiglu", 5, 3, false, 0, 1e9 }, /* two kernels of PyTorch's */
	{ "gelu", 2, 2, false, 0, 1e9 },
	{ "softmax", 2, 2, true, 2048, 8192 },
	{ "cross_entropy", 2, 2, true, 30000, 1e9 },
	{ "cast", 1.5, 1.5, false, 0, 1e9 },
	{ "mul", 3, 3, false, 0, 1e9 },
	{ "silu", 2, 2, false, 0, 1e9 },
};

enum { KERNELS = sizeof(kernels) / sizeof(*kernels) };

struct law {
	double start_us, gb_per_s, sharpness;
};

struct made {
	struct ft_measurement row[ROWS];
	size_t n, used; /* used: that are to be fitted */
};

static double us_of(const struct law *l, double bytes)
{
	double q = l->sharpness;

	return pow(pow(l->start_us, q) + pow(bytes / l->gb_per_s * 1e-3, q), 1 / q);
}

static struct ft_measurement *add(struct made *x, const struct kernel *k, bool torch,
				  bool warm, double m, double n)
{
	struct ft_measurement *r = &x->row[x->n++];

	assert_true(x->n <= ROWS);
	*r = (struct ft_measurement){ .kind = "memory",
				      .kernel = k->name,
				      .dtype = "bf16",
				      .layout = "",
				      .impl = torch ? "torch" : "",
				      .pass = "",
				      .backend = "cuda",
				      .status = "ok",
				      .source = "",
				      .m = m,
				      .n = n,
				      .warm = warm };
	return r;
}

/* Three widths of rows. */
static const double usual[3] = { 2048, 4096, 8192 }, wide[3] = { 30000, 32000, 128256 };
static const double narrow[3] = { 512, 512, 512 };

/* Rows on the law, of the widths; those of the fold that is held out do not count. */
static void add_on(struct made *x, const struct kernel *k, bool torch, bool warm,
		   const struct law *l, const double width[3])
{
	double traffic = torch ? k->torch : k->own;

	for (int w = 0; w < 3; w++)
		for (double m = 128 + w; m <= 524288 + w; m = 2 * (m - w) + w) {
			struct ft_measurement *r = add(x, k, torch, warm, m, width[w]);
			bool held = fit_fold(r) == FOLD;

			r->time_us = us_of(l, traffic * m * width[w] * 2);
			r->time_us *= held ? 4 : 1;
			x->used += !held;
		}
}

/* Four times as long as they should take, which nobody is to see. */
static void add_beside(struct made *x, const struct kernel *k, bool torch, bool warm,
		       const struct law *l)
{
	for (int i = 0; i < 12; i++) {
		double m = 100 * pow(3, i % 6), n = 4096;
		struct ft_measurement *r;

		switch (below(torch ? (k->by_row ? 3 : 4) : 2)) {
		case 0:
			r = add(x, k, torch, warm, m, n);
			r->kind = "gemm";
			break;
		case 1:
			r = add(x, k, torch, warm, m, n);
			r->kernel = "other";
			break;
		case 3: /* too few rows */
			r = add(x, k, torch, warm, 127 - 63 * below(3), n);
			break;
		default: /* the probe's own, where there are PyTorch's */
			r = add(x, k, false, warm, m, n);
		}
		r->time_us = 4 * us_of(l, 2 * r->m * r->n * 2);
	}
}

static struct law drawn_law(void)
{
	return (struct law){ 1 + below(900) * 0.01, 100 + below(4000),
			     (const double[]){ 1, 1.2, 1.5, 2, 3, 5 }[below(6)] };
}

/* ---- what is written of it -------------------------------------------------------------- */

/* The line of a kernel; NULL: none. */
static const char *line_of(const char *text, const char *name, bool warm)
{
	char begin[64];

	snprintf(begin, sizeof(begin), "    %s%s: {", name, warm ? ".warm" : "");
	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, begin, strlen(begin)))
			return at + strlen(begin);
	}
	return NULL;
}

static bool near(double a, double b, double frac)
{
	return fabs(a - b) <= frac * b;
}

static void curve_is(const char *line, const struct law *l, double traffic)
{
	double start, rate, told, sharpness = 1;

	assert_non_null(line);
	if (sscanf(line,
		   "start: %lf us, bandwidth: %lf GB/s, traffic: %lf, half: null, ",
		   &start, &rate, &told) != 3)
		fail_msg("'%.80s'", line);
	line = strstr(line, "sharpness: ");
	if (strncmp(line, "sharpness: null", 15))
		assert_int_equal(sscanf(line, "sharpness: %lf", &sharpness), 1);
	if (!near(start, l->start_us, 2e-3) || !near(rate, l->gb_per_s, 2e-3) ||
	    told != traffic || sharpness != l->sharpness)
		fail_msg("%g us, %g GB/s, %g, %g; wanted %g us, %g GB/s, %g, %g", start,
			 rate, told, sharpness, l->start_us, l->gb_per_s, traffic,
			 l->sharpness);
}

/* Each length in bytes, rising, with the law of all. */
static void rows_are(const char *line, const struct law *l, const double width[3])
{
	const char *at = strstr(line, ", row_sharpness: ");
	double sharpness;
	int used;

	assert_true(at && at < strchr(line, '\n'));
	assert_int_equal(
		sscanf(at, ", row_sharpness: %lf, by_row: {%n", &sharpness, &used), 1);
	if (sharpness != l->sharpness)
		fail_msg("%g, wanted %g: %.300s", sharpness, l->sharpness, line);
	at += used;
	for (int i = 0; i < 3; i++) {
		double bytes, start, rate;

		assert_int_equal(sscanf(at,
					"%lf: {start: %lf us, bandwidth: %lf GB/s}%n",
					&bytes, &start, &rate, &used),
				 3);
		at += used;
		at += strspn(at, ", ");
		assert_true(bytes == 2 * width[i]);
		assert_true(near(start, l->start_us, 5e-3) &&
			    near(rate, l->gb_per_s, 5e-3));
	}
	assert_int_equal(strncmp(at, "}}\n", 3), 0);
}

static void curves_are_found_again(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		static struct made x;
		const struct kernel *k = &kernels[i % KERNELS];
		const double *width = k->from > 8192 ? wide : usual;
		bool torch = below(3) > 0, warm = below(2), own = below(3) == 0;
		struct ft_fit_options options = { .families = FT_FIT_MEMORY };
		/* a rank is measured, and the rates of its card are written */
		struct ft_gpu base = { .ranks_per_gpu = 1 + below(2) };
		struct fit_input in = { .options = &options,
					.row = x.row,
					.base = &base,
					.own_base = own };
		struct law l = drawn_law(), other = drawn_law();
		size_t size, used, outliers = 0;
		char *text = NULL;
		const char *line;
		FILE *out = open_memstream(&text, &size);

		memset(&x, 0, sizeof(x));
		add_on(&x, k, torch, warm, &l, width);
		used = x.used;
		add_on(&x, k, torch, !warm, &other, width);
		add_beside(&x, k, torch, warm, &l);
		in.n = x.n;
		used = fit_memory_yaml(&in, FOLD, out, &outliers);
		fclose(out);
		line = line_of(text, k->name, warm);
		if (own && !torch) { /* a profile's own curves stay */
			assert_string_equal(text, "");
			assert_int_equal(used, 0);
			free(text);
			continue;
		}
		assert_int_equal(used, x.used);
		assert_int_equal(outliers, 0);
		l.gb_per_s *= (double)base.ranks_per_gpu;
		other.gb_per_s *= (double)base.ranks_per_gpu;
		curve_is(line, &l, torch ? k->torch : k->own);
		curve_is(line_of(text, k->name, !warm), &other,
			 torch ? k->torch : k->own);
		if (!k->by_row)
			assert_non_null(strstr(line, ", by_row: null, row_sharpness: "
						     "null}\n"));
		else if (torch)
			rows_are(line, &l, width);
		if (!strcmp(k->name, "copy") && !own)
			curve_is(line_of(text, "default", warm), &l, 2);
		else
			assert_null(line_of(text, "default", warm));
		free(text);
	}
}

/* Rows of lengths that steps do not have say nothing of rows of unknown length, and have their
 * own curves. */
static void unusual_rows_have_curves_of_their_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < KERNELS; i++) {
		static struct made x;
		const struct kernel *k = &kernels[i];
		struct ft_fit_options options = { .families = FT_FIT_MEMORY };
		struct ft_gpu base = { .ranks_per_gpu = 1 };
		struct fit_input in = { .options = &options,
					.row = x.row,
					.base = &base };
		struct law l = { 2, 1000, 1 }, slow = { 2, 970, 1 };
		size_t size, outliers = 0, used, fitted;
		char *text = NULL, want[32];
		FILE *out;

		if (!k->by_row)
			continue;
		out = open_memstream(&text, &size);
		memset(&x, 0, sizeof(x));
		add_on(&x, k, true, false, &l, k->from > 8192 ? wide : usual);
		fitted = x.used;
		add_on(&x, k, true, false, &slow, narrow);
		in.n = x.n;
		used = fit_memory_yaml(&in, FOLD, out, &outliers);
		fclose(out);
		assert_int_equal(used, fitted);
		curve_is(line_of(text, k->name, false), &l, k->torch);
		snprintf(want, sizeof(want), "by_row: {%.0f: {start", 2 * narrow[0]);
		assert_non_null(strstr(text, want));
		free(text);
	}
}

/* A row is as long as it has numbers, of its format, 16 bit where none is said; of what is told in bytes no
 * row is known. All rows go each way as often as the kernel reads and writes them. */
static void rows_are_as_long_as_their_numbers(void **state)
{
	static const struct {
		const char *name;
		double bytes;
	} formats[] = { { "bf16", 2 }, { "fp32", 4 }, { "fp8", 1 }, { "", 2 } };

	(void)state;
	for (int i = 0; i < 4 * KERNELS; i++) {
		const struct kernel *k = &kernels[i / 4];
		double each = formats[i % 4].bytes;
		bool torch = below(2);
		struct ft_measurement m = { .kind = "memory",
					    .kernel = k->name,
					    .dtype = formats[i % 4].name,
					    .impl = "",
					    .backend = torch ? "torch" : "cuda",
					    .bytes = 1 + below(1 << 20) };
		double times = torch ? k->torch : k->own;

		near_frac(fit_moved_bytes(&m), times * m.bytes, 1e-12);
		assert_true(fit_row_bytes(&m) <= 0);
		m.m = 1 + below(1 << 12);
		m.n = 1 + below(1 << 12);
		near_frac(fit_moved_bytes(&m), times * m.m * m.n * each, 1e-12);
		near_frac(fit_row_bytes(&m), m.n * each, 1e-12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(curves_are_found_again),
		cmocka_unit_test(unusual_rows_have_curves_of_their_own),
		cmocka_unit_test(rows_are_as_long_as_their_numbers),
	};

	gsl_set_error_handler_off();
	return cmocka_run_group_tests_name("fit memory", tests, NULL, NULL);
}
