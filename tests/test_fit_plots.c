/*
 * tests/test_fit_plots.c - what `calibrate plot` gives gnuplot: drawn cells of a store, each a point, a share of a
 * histogram or a place on a panel that is worked out here; a script stands in for gnuplot
 */
#include <sys/stat.h>

#include "base/arena.h"
#include "foretoken/hw.h"
#include "foretoken/sim.h"
#include "tests/check.h"
#include "tests/scratch.h"

enum { DRAWS = 12, ROWS = 60, BINS = 41, TEXT = 1 << 17 };

static uint64_t seed = 419;

static const char *const dtypes[] = { "bf16", "fp8", "fp32", "fp16" };
static const char *const kinds[] = { "gemm", "attention", "memory", "collective" };

/* What the profile says of it, with an error that is drawn. */
static void time_it(struct ft_measurement *m, const struct ft_gpu *gpu)
{
	double us = measurement_predict_us(gpu, m), off;

	off = (rnd_below(&seed, 51) - 25 + 0.008 * rnd_below(&seed, 100) - 0.4) / 50;
	m->time_us = us > 0 ? us / (1 + off) : 17;
	m->status = rnd_below(&seed, 9) ? "ok" : "left-out";
}

static struct ft_measurement draw(struct arena *mem, const struct ft_gpu *gpu, int i)
{
	int kind = rnd_below(&seed, 4);
	struct ft_measurement m = { .cell = arena_printf(mem, "cell %d", i),
				    .kind = kinds[kind],
				    .kernel = "",
				    .dtype = dtypes[kind ? 0 : rnd_below(&seed, 4)],
				    .layout = "",
				    .impl = "",
				    .pass = "",
				    .why = "",
				    .source = "",
				    .fabric = "",
				    .date = "",
				    .backend = "cuda",
				    .device = "D",
				    .provenance = "measured" };

	if (kind == 0) {
		m.layout = "forward";
		m.m = 256 * (1 + rnd_below(&seed, 32));
		m.n = 256 * (1 + rnd_below(&seed, 32));
		m.k = 256 * (1 + rnd_below(&seed, 32));
	} else if (kind == 1) {
		m.pass = "forward";
		m.batch = 1 + rnd_below(&seed, 4);
		m.heads = m.kv_heads = 8;
		m.sequence = 1024 * (1 + rnd_below(&seed, 8));
		m.head_dim = 128;
	} else if (kind == 2) {
		m.kernel = "copy";
		m.bytes = 1e6 * (1 + rnd_below(&seed, 500));
	} else {
		m.kernel = rnd_below(&seed, 2) ? "all_reduce" : "all_to_all";
		m.gpus = 2 << rnd_below(&seed, 4);
		m.fabric = "nvlink";
		m.bytes = 1 << (12 + rnd_below(&seed, 16));
	}
	time_it(&m, gpu);
	return m;
}

static char *read_all(const struct scratch *x, const char *leaf)
{
	char path[128], *text = calloc(1, TEXT);
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", x->folder, leaf);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(text, 1, TEXT - 1, f);
	assert_true(n < TEXT - 1);
	fclose(f);
	return text;
}

/* ---- worked out: the lines of a block, in any order -------------------------------------- */

struct block {
	const char *about; /* its comment; NULL: it has none */
	const char *line[ROWS + BINS + 1];
	int n;
};

static bool usable(const struct ft_measurement *m, const char *kind)
{
	return !strcmp(m->kind, kind) && !strcmp(m->status, "ok");
}

/* Every line of the block once; where it ends. */
static const char *holds(const char *at, const struct block *b)
{
	bool seen[ROWS + BINS + 1] = { false };
	int n = 0;

	if (b->about) {
		assert_int_equal(strncmp(at, b->about, strlen(b->about)), 0);
		at += strlen(b->about);
	}
	for (; *at && *at != '\n'; at += strcspn(at, "\n") + 1) {
		int k = 0;

		while (k < b->n &&
		       (seen[k] || strlen(b->line[k]) != strcspn(at, "\n") ||
			strncmp(b->line[k], at, strlen(b->line[k])) != 0))
			k++;
		if (k == b->n)
			fail_msg("there should be no %.40s", at);
		seen[k] = true;
		n++;
	}
	assert_int_equal(n, b->n);
	assert_int_equal(strncmp(at, "\n\n", 2), 0);
	return at + 2;
}

/* FLOPs by bytes: of the operands in their format, of the product in two bytes. */
static void products_are_points(struct arena *mem, const struct ft_measurement *m,
				const struct ft_gpu *gpu, const char *text)
{
	static const double bytes[] = { 2, 1, 4 };

	for (int d = 0; d < 3; d++) {
		struct block b = {
			arena_printf(mem,
				     "# %s: flop/byte, measured, predicted TFLOP/s\n",
				     dtypes[d]),
			{ "0.01 0.0001 0.0001" },
			1
		};

		for (int i = 0; i < ROWS; i++) {
			double flop = 2 * m[i].m * m[i].n * m[i].k, us;

			if (!usable(&m[i], "gemm") || strcmp(m[i].dtype, dtypes[d]))
				continue;
			us = measurement_predict_us(gpu, &m[i]);
			b.line[b.n++] = arena_printf(
				mem, "%.4g %.4g %.4g",
				flop / (bytes[d] * m[i].k * (m[i].m + m[i].n) +
					2 * m[i].m * m[i].n),
				flop / (m[i].time_us * 1e6),
				us > 0 ? flop / (us * 1e6) : 0);
		}
		text = holds(text, &b);
	}
	assert_string_equal(text, "");
}

/* Bins of two percent; those beyond 40 % lie in the last. */
static void errors_are_counted(struct arena *mem, const struct ft_measurement *m,
			       const struct ft_gpu *gpu, const char *text)
{
	for (int k = 0; k < 4; k++) {
		struct block b = { .about = arena_printf(mem, "# %s\n", kinds[k]) };
		int count[BINS] = { 0 };

		for (int i = 0; i < ROWS; i++) {
			double us = measurement_predict_us(gpu, &m[i]), percent;
			int bin = 0;

			if (!usable(&m[i], kinds[k]) || !(us > 0))
				continue;
			percent = 100 * (us / m[i].time_us - 1);
			while (bin < BINS - 1 && percent > 2 * (bin - 20) + 1)
				bin++;
			count[bin]++;
		}
		for (int i = 0; i < BINS; i++)
			b.line[b.n++] =
				arena_printf(mem, "%d %d", 2 * (i - 20), count[i]);
		text = holds(text, &b);
	}
	assert_string_equal(text, "");
}

/* A panel for each operation, a colour for each size of group; the data in the same order. */
static void collectives_have_panels(struct arena *mem, const struct ft_measurement *m,
				    const struct ft_gpu *gpu, const char *text,
				    const char *script)
{
	const char *panels = "";
	int blocks = 0;

	for (int op = 0; op < FT_COLLECTIVES; op++) {
		const char *name = ft_collective_name((enum ft_collective)op);
		int colour = 0;

		for (int ranks = 2; ranks <= 64; ranks *= 2) {
			double part = (ranks - 1.) / ranks;
			double bus = !strcmp(name, "all_reduce") ? 2 * part : part;
			struct block b = { .n = 0 };

			for (int i = 0; i < ROWS; i++) {
				double us;

				if (!usable(&m[i], "collective") ||
				    strcmp(m[i].kernel, name) || m[i].gpus != ranks)
					continue;
				us = measurement_predict_us(gpu, &m[i]);
				b.line[b.n++] = arena_printf(
					mem, "%.0f %.5g %.5g", m[i].bytes,
					m[i].bytes * bus / (m[i].time_us * 1e3),
					us > 0 ? m[i].bytes * bus / (us * 1e3) : 0);
			}
			if (!b.n)
				continue;
			text = holds(text, &b);
			panels = arena_printf(
				mem,
				"%s%s'busbw.dat' index %d using 1:2 with points pt 7 "
				"ps 0.4 lt %d title '%d', '' index %d using 1:3 smooth "
				"unique with lines lt %d notitle",
				panels,
				colour ? ", " :
					 arena_printf(mem, "set title '%s'\nplot ",
						      name),
				blocks, colour + 1, ranks, blocks, colour + 1);
			colour++;
			blocks++;
		}
		if (colour)
			panels = arena_printf(mem, "%s\n", panels);
	}
	assert_string_equal(text, "");
	assert_non_null(strstr(script, panels));
}

static void the_roofs_are_the_gpus(struct arena *mem, const struct ft_gpu *gpu,
				   const char *script)
{
	double tera = 1e12, memory = gpu->memory_bytes_per_s.value / tera;
	double bf16 = gpu->peak_flop_per_s[FT_BF16].value / tera,
	       fp8 = gpu->peak_flop_per_s[FT_FP8].value / tera;

	assert_non_null(strstr(script, arena_printf(mem, "set yrange [0.1:%g]\n",
						    2 * fmax(bf16, fp8) + 1)));
	assert_non_null(strstr(script, arena_printf(mem, "= x * %g < p ? x * %g : p\n",
						    memory, memory)));
	assert_non_null(strstr(
		script, arena_printf(mem,
				     "roof(x, %g) lt 1 title 'bf16 roof', roof(x, %g) "
				     "lt 2 title 'fp8 roof'",
				     bf16, fp8)));
}

/* ---- drawn --------------------------------------------------------------------------------- */

static void stand_in(const struct scratch *x)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/gnuplot", x->folder);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("#!/bin/sh\necho '<svg></svg>'\n", f);
	fclose(f);
	assert_int_equal(chmod(path, 0755), 0);
	setenv("PATH", x->folder, 1);
}

static void are_drawn(const struct scratch *x, const char *name)
{
	static const char *const pictures[] = { "gemm.svg", "residuals.svg",
						"busbw.svg" };
	struct ft_error err;
	struct ft_gpu *gpu = ft_gpu_load(name, NULL, &err);
	struct ft_store *s = ft_store_open(":memory:", true, &err);
	const struct ft_probe_run run = { .backend = "cuda",
					  .device = "D",
					  .date = "2026-01-02",
					  .fabric = "nvlink" };
	const struct ft_measurement *m;
	struct arena mem = { 0 };
	char *text[8];
	size_t n;
	bool bus;

	ok_or_say(gpu && s && ft_store_begin(s, &run, &err), err);
	for (int i = 0; i < ROWS; i++) {
		struct ft_measurement one = draw(&mem, gpu, i);

		ok_or_say(ft_store_add(s, &one, &err), err);
	}
	ok_or_say(ft_store_end(s, &err), err);
	m = ft_store_measurements(s, NULL, 0, &n, &err);
	assert_int_equal(n, ROWS);
	ok_or_say(ft_calibrate_plot(s, name, NULL, x->folder, &bus, &err), err);
	assert_true(bus);
	text[0] = read_all(x, "gemm.dat");
	text[1] = read_all(x, "residuals.dat");
	text[2] = read_all(x, "busbw.dat");
	text[3] = read_all(x, "gemm.gp");
	text[4] = read_all(x, "busbw.gp");
	for (int i = 0; i < 3; i++) {
		text[5 + i] = read_all(x, pictures[i]);
		assert_string_equal(text[5 + i], "<svg></svg>\n");
		unlink(arena_printf(&mem, "%s/%s", x->folder, pictures[i]));
	}
	products_are_points(&mem, m, gpu, text[0]);
	errors_are_counted(&mem, m, gpu, text[1]);
	collectives_have_panels(&mem, m, gpu, text[2], text[4]);
	the_roofs_are_the_gpus(&mem, gpu, text[3]);
	for (int i = 0; i < 8; i++)
		free(text[i]);
	ft_store_close(s);
	arena_release(&mem);
	ft_gpu_free(gpu);
}

static void cells_are_drawn_where_they_belong(void **state)
{
	struct scratch *x = *state;
	char *path = strdup(getenv("PATH"));

	stand_in(x);
	for (int k = 0; k < DRAWS; k++)
		are_drawn(x, k % 2 ? "a100-80g" : "h200");
	setenv("PATH", path, 1);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(cells_are_drawn_where_they_belong),
	};

	return cmocka_run_group_tests_name("plots of fits", tests, NULL, NULL);
}
