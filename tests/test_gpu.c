/*
 * tests/test_gpu.c - every profile loads, says where its numbers come from, and
 * mistakes in one are found where they stand
 */
#include "base/arena.h"
#include "base/file.h"
#include "foretoken/hw.h"
#include "tests/check.h"

static const char *const names[] = {
	"mi100",  "mi210",  "mi250",	"mi250x",   "gh200",	"mi300x",
	"mi325x", "mi355x", "a100-40g", "a100-80g", "h100-sxm", "h100-96g-500w",
	"h200",	  "b200",   "b300",	"gb200",    "gb300",	"mi350x",
};

static struct ft_gpu *load(const char *name)
{
	struct ft_error err;
	struct ft_gpu *gpu = ft_gpu_load(name, NULL, &err);

	if (!gpu)
		fail_msg("%s: %s:%d:%d: %s", name, err.file, err.line, err.column,
			 err.text);
	return gpu;
}

static void all_profiles_load_and_are_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct ft_gpu *g = load(names[i]);

		assert_string_equal(g->name, names[i]);
		assert_true(g->memory_bytes.value > 3e10);
		assert_true(g->memory_bytes_per_s.value > 1e12);
		assert_true(g->peak_flop_per_s[FT_BF16].value > 9e13);
		assert_true(g->compute_units >= 104);
		assert_true(g->limit_w.value > g->idle_w.value);
		assert_true(g->n_memory > 10 && g->n_scale_ups >= 1);
		assert_true(g->gemm[FT_BF16].n_rows > 0);
		assert_true(g->default_node[0]);
		assert_non_null(g->memory_bytes.from);
		assert_non_null(g->gemm[FT_BF16].from);
		for (size_t t = 0; t < g->n_attention; t++)
			assert_non_null(g->attention[t].from);
		for (size_t t = 0; t < g->n_collective; t++)
			assert_non_null(g->collective[t].on);
		ft_gpu_free(g);
	}
}

struct counted {
	size_t attention, collective;
};

static struct counted rows_in(const char *name)
{
	struct ft_gpu *g = load(name);
	struct counted n = { 0 };

	for (size_t i = 0; i < g->n_attention; i++)
		n.attention += g->attention[i].n_rows;
	for (size_t i = 0; i < g->n_collective; i++)
		n.collective += g->collective[i].n_rows;
	ft_gpu_free(g);
	return n;
}

static bool same_table(const struct ft_collective_table *a,
		       const struct ft_collective_table *b)
{
	return !strcmp(a->fabric, b->fabric) && a->op == b->op && a->n == b->n &&
	       !strcmp(a->on->name, b->on->name);
}

/* MI325X takes MI300X's, which takes MI355X's, and an H100 with less power those of H100, which takes H200's. */
static void kin_of_kin_is_kin(void **state)
{
	struct counted h100 = rows_in("h100-sxm"), capped = rows_in("h100-96g-500w");

	(void)state;
	assert_int_equal(rows_in("mi325x").attention, rows_in("mi300x").attention);
	assert_int_equal(capped.attention, h100.attention);
	assert_int_equal(capped.collective, h100.collective);
}

/* Though some name each other, and one may be named by two. */
static void no_rows_are_taken_twice(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct ft_gpu *g = load(names[i]);

		for (size_t a = 0; a < g->n_collective; a++)
			for (size_t b = 0; b < a; b++)
				assert_false(same_table(&g->collective[a],
							&g->collective[b]));
		ft_gpu_free(g);
	}
}

static double strided_of(const struct ft_gpu *g)
{
	for (size_t i = 0; i < g->n_memory; i++)
		if (!strcmp(g->memory[i].kernel, "strided") && !g->memory[i].as)
			return g->memory[i].bytes_per_s.value;
	fail_msg("%s lacks the curve strided", g->name);
	return 0;
}

/* Instructions bind these kernels, not the memory: MI325X has MI300X's die and a faster memory. */
static void strided_kernels_go_with_units_and_clock(void **state)
{
	static const char *const others[] = { "mi325x", "mi355x", "mi350x", "mi250",
					      "mi250x", "mi210",  "mi100" };
	struct ft_gpu *a = load("mi300x");

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		struct ft_gpu *b = load(others[i]);

		near_frac(strided_of(b) / strided_of(a),
			  b->peak_flop_per_s[FT_FP32].value /
				  a->peak_flop_per_s[FT_FP32].value,
			  1e-3);
		ft_gpu_free(b);
	}
	ft_gpu_free(a);
}

/* An H100 with another memory and less power: what a product reaches of its peak is the die's. */
static void products_of_one_die_reach_as_much_of_its_peak(void **state)
{
	struct ft_gpu *a = load("h100-sxm"), *b = load("h100-96g-500w");

	(void)state;
	for (int d = 0; d < FT_DTYPES; d++)
		near_frac(a->gemm_efficiency[d].value, b->gemm_efficiency[d].value,
			  1e-12);
	near_frac(a->gemm_grouped.value, b->gemm_grouped.value, 1e-12);
	ft_gpu_free(a);
	ft_gpu_free(b);
}

/* What is not in a cache comes no faster than a rank's memory gives it. */
static void no_curve_is_faster_than_the_memory(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct ft_gpu *g = load(names[i]);
		double most = g->memory_bytes_per_s.value;

		for (size_t k = 0; k < g->n_memory; k++) {
			const struct ft_memory_curve *c = &g->memory[k];

			if (c->warm)
				continue;
			if (c->bytes_per_s.value >
			    most * (c->as ? c->as_bytes.value : 1))
				fail_msg("%s %s: %.0f of %.0f GB/s", g->name, c->kernel,
					 c->bytes_per_s.value * 1e-9, most * 1e-9);
			for (size_t r = 0; r < c->n_rows; r++)
				assert_true(c->as ||
					    c->row[r].bytes_per_s.value <= most);
		}
		ft_gpu_free(g);
	}
}

/* 181.05 TFLOP/s, 63.985 GiB less a context of 4, 104 units, rates of memory: halves of the card's. Power is not. */
static void a_card_of_two_dies_is_given_per_rank(void **state)
{
	struct ft_gpu *g = load("mi250"), *die = load("mi210");

	(void)state;
	assert_int_equal(g->ranks_per_gpu, 2);
	assert_int_equal(g->compute_units, 104);
	near_frac(g->memory_bytes.value, (127.97 / 2 - 4) * 0x1p30, 1e-12);
	assert_true(g->peak_flop_per_s[FT_BF16].value == 181.05e12);
	assert_true(g->limit_w.value == 560);
	/* its rows are those of a die sold alone */
	assert_string_equal(g->gemm[FT_BF16].on->name, "mi210");
	near_frac(ft_gpu_memory_curve(g, "copy", false)->bytes_per_s.value,
		  ft_gpu_memory_curve(die, "copy", false)->bytes_per_s.value, 0.001);
	near_frac(ft_gpu_memory_curve(g, "softmax", false)->row[0].bytes_per_s.value,
		  ft_gpu_memory_curve(die, "softmax", false)->row[0].bytes_per_s.value,
		  0.001);
	ft_gpu_free(die);
	ft_gpu_free(g);
}

static void own_rows_come_before_those_of_a_kin(void **state)
{
	struct ft_gpu *g = load("gb200");
	bool own = false, kin = false;

	(void)state;
	for (size_t i = 0; i < g->n_collective; i++) {
		const struct ft_collective_table *t = &g->collective[i];

		if (t->n <= 4) {
			assert_ptr_equal(t->on, g);
			own = true;
		} else {
			assert_string_equal(t->on->name, "b200");
			kin = true;
		}
		for (size_t r = 1; r < t->n_rows; r++)
			assert_true(t->row[r].bytes >= t->row[r - 1].bytes);
	}
	assert_true(own && kin);
	ft_gpu_free(g);
}

static void rows_of_any_layout_become_products(void **state)
{
	struct ft_gpu *g = load("mi355x");
	const struct ft_gemm_table *t = &g->gemm[FT_BF16];
	bool seen = false;

	(void)state;
	/* wgrad of 90112 tokens, 4608 x 1024: C[1024,4608], inner 90112 */
	for (size_t i = 0; i < t->n_rows; i++)
		seen |= t->row[i].m == 1024 && t->row[i].n == 4608 &&
			t->row[i].k == 90112;
	assert_true(seen);
	ft_gpu_free(g);
}

static void a_kernel_without_a_curve_has_the_default(void **state)
{
	struct ft_gpu *g = load("h200");

	(void)state;
	assert_string_equal(ft_gpu_memory_curve(g, "rmsnorm", false)->kernel,
			    "rmsnorm");
	assert_true(ft_gpu_memory_curve(g, "rmsnorm", true)->warm);
	assert_string_equal(ft_gpu_memory_curve(g, "no_such", true)->kernel, "default");
	assert_string_equal(ft_gpu_memory_curve(g, NULL, false)->kernel, "default");
	/* a variant without one goes by what it is a variant of */
	assert_string_equal(ft_gpu_memory_curve(g, "rmsnorm_mixed", false)->kernel,
			    "rmsnorm_mixed");
	assert_string_equal(ft_gpu_memory_curve(g, "rmsnorm_other", false)->kernel,
			    "rmsnorm");
	assert_string_equal(ft_gpu_memory_curve(g, "rms_norm", false)->kernel,
			    "default");
	/* no warm curve of its own: its cold one before another kernel's */
	assert_string_equal(ft_gpu_memory_curve(g, "adamw", true)->kernel, "adamw");
	ft_gpu_free(g);
}

/* Lengths of rows stand in any order in the file, and rise where they are read. */
static void rows_of_a_curve_rise(void **state)
{
	static const char *const order[] = { "1, 2, 3", "3, 2, 1", "2, 3, 1",
					     "3, 1, 2" };
	char path[64];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		FILE *f = fopen(own_path(path, "rows.yaml"), "w");
		const struct ft_memory_curve *c;
		int length[3];
		struct ft_gpu *g;

		assert_int_equal(sscanf(order[i], "%d, %d, %d", &length[0], &length[1],
					&length[2]),
				 3);
		fputs("extends: h200\nmemory_bound:\n  curves:\n    copy:\n      "
		      "by_row: {",
		      f);
		for (int k = 0; k < 3; k++)
			fprintf(f, "%s%d: {start: %d us, bandwidth: 1 TB/s}",
				k ? ", " : "", 1024 * length[k], length[k]);
		fputs("}\nprovenance: {kind: assumed, date: 2026-11-26}\n", f);
		fclose(f);
		g = load(path);
		c = ft_gpu_memory_curve(g, "copy", false);
		assert_int_equal(c->n_rows, 3);
		for (int k = 0; k < 3; k++) {
			assert_true(c->row[k].row_bytes == 1024 * (k + 1));
			near_frac(c->row[k].start_s.value, (k + 1) * 1e-6, 1e-9);
		}
		ft_gpu_free(g);
		unlink(path);
	}
}

/* A kernel that was measured against another's curve has that one's start, rate, rows and watts, on each die of a
 * card, and draws its own watts where the file gives them. */
static void a_curve_may_be_anothers(void **state)
{
	static const char *const watts[] = { "", ", cast_autocast: 300 W" };

	(void)state;
	for (int own = 0; own < 2; own++)
		for (int dies = 1; dies <= 2; dies++) {
			const struct ft_memory_curve *c, *of;
			char path[64];
			FILE *f = fopen(own_path(path, "as.yaml"), "w");
			struct ft_gpu *g;

			fprintf(f,
				"extends: %s\nprovenance: {kind: assumed, date: 2026-11-28}\n"
				"power: {kernels: {cast: 200 W, softmax: 100 W%s}}\n"
				"memory_bound: {curves: {cast_autocast: {as: softmax, bytes: 4}}}\n",
				dies == 2 ? "mi250" : "mi210", watts[own]);
			fclose(f);
			g = load(path);
			c = ft_gpu_memory_curve(g, "cast_autocast", false);
			of = ft_gpu_memory_curve(g, "softmax", false);
			assert_string_equal(c->as, "softmax");
			assert_true(c->as_bytes.value == 4);
			assert_true(c->start_s.value == of->start_s.value);
			assert_true(c->bytes_per_s.value == of->bytes_per_s.value);
			assert_int_equal(c->n_rows, of->n_rows);
			for (size_t r = 0; r < c->n_rows; r++)
				assert_true(c->row[r].bytes_per_s.value ==
					    of->row[r].bytes_per_s.value);
			assert_true(c->w.value == (own ? 300 : 100));
			ft_gpu_free(g);
			unlink(path);
		}
}

/* ---- mistakes ----------------------------------------------------------- */

static int lines_before(const char *text, const char *at)
{
	int n = 0;

	for (; text < at; text++)
		n += *text == '\n';
	return n;
}

/* mi210.yaml with one text put for another; loaded from a folder of its own. The
 * mistake is told so many lines below where it was put. */
static void expect(const char *file, const char *old, const char *put, int below,
		   const char *text)
{
	char dir[] = "/tmp/ft-test-gpu-XXXXXX", yaml[80], csv[80];
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	const char *all[2] = { "hw/gpus/mi210.yaml", "hw/gpus/mi210.gemm.csv" };
	const char *to[2] = { yaml, csv };
	struct ft_gpu *gpu;
	int line = 0;

	assert_non_null(mkdtemp(dir));
	snprintf(yaml, sizeof(yaml), "%s/mi210.yaml", dir);
	snprintf(csv, sizeof(csv), "%s/mi210.gemm.csv", dir);
	for (int i = 0; i < 2; i++) {
		size_t len;
		char *in = file_read(&mem, all[i], 1 << 20, &len, &err), *at;
		FILE *out = fopen(to[i], "w");

		assert_non_null(in);
		assert_non_null(out);
		at = strstr(all[i], file) ? strstr(in, old) : NULL;
		if (strstr(all[i], file))
			assert_non_null(at);
		if (at)
			line = lines_before(in, at) + 1 + below;
		if (at)
			fprintf(out, "%.*s%s%s", (int)(at - in), in, put,
				at + strlen(old));
		else
			fputs(in, out);
		fclose(out);
	}
	gpu = ft_gpu_load(yaml, NULL, &err);
	unlink(yaml);
	unlink(csv);
	rmdir(dir);
	if (gpu)
		fail_msg("loaded in spite of '%s'", put);
	assert_non_null(strstr(err.file, file));
	assert_int_equal(err.line, line);
	if (!strstr(err.text, text))
		fail_msg("'%s' is not in '%s'", text, err.text);
	arena_release(&mem);
}

static void mistakes_are_found_where_they_stand(void **state)
{
	(void)state;
	expect("mi210.yaml", "provenance: {kind: published, source: \"AnandTech", "#",
	       8, "provenance");
	expect("mi210.yaml", "    value: 4 GiB", "    value: 64 GiB", 0,
	       "leaves nothing of capacity");
	expect("mi210.yaml", "compute_units", "compute_unit", 0, "compute_units");
	expect("mi210.yaml", "1638.4 GB/s", "1638.4", 0, "unit");
	expect("mi210.yaml", "\n  floor:", "\n  floors:", 1,
	       "unknown key 'floors'; did you mean 'floor'?");
	expect("mi210.yaml", "    strided_turn: {as: strided,",
	       "    strided_turn: {as: stride,", 0,
	       "as: names no curve that has a bandwidth of its own");
	expect("mi210.yaml", "    strided_turn: {as: strided,",
	       "    strided_turn: {as: strided_add,", 0,
	       "as: names no curve that has a bandwidth of its own");
	expect("mi210.yaml", "    strided_turn: {as: strided, bytes: 3}",
	       "    strided_turn: {as: strided, bytes: 300}", 0,
	       "is not between 0.01 and 100");
	expect("mi210.yaml", "    strided_turn: {as: strided,",
	       "    strided_turn: {as: strided, start: 1 us,", 0,
	       "unknown key 'start'");
	expect("mi210.yaml", "\npeak: {", "\npeak: {fp8: 181 TFLOP/s, ", 1,
	       "fp8: has a peak, and no gemm.efficiency");
	expect("mi210.yaml", "    copy: {", "    copy: {sharpness: 0.5, ", 0,
	       "is not between 1 and 1000");
	expect("mi210.yaml", "    copy: {",
	       "    copy: {by_row: {4096: {start: 1 us, "
	       "bandwidth: 1 TB/s}, 4096.0: {start: 1 us, bandwidth: 1 TB/s}}, ",
	       0, "was given before");
	expect("mi210.yaml", "    copy: {",
	       "    copy: {by_row: {long: {start: 1 us, "
	       "bandwidth: 1 TB/s}}, ",
	       0, "row length");
	expect("gemm.csv", "fp16,forward,8192,32,32", "fp17,forward,1,1,1", 0,
	       "number format");
	expect("gemm.csv", ",33.3,", ",x33,", 0, "not a number");
	expect("gemm.csv", ",33.3,", ",-33.3,", 0, "above zero");
	expect("gemm.csv", ",33.3,", ",33.3,,", 0, "cells");
	expect("gemm.csv", "time_us", "time_ms", 0, "time_us");
}

static void unknown_names_suggest_the_nearest(void **state)
{
	struct ft_error err;

	(void)state;
	assert_null(ft_gpu_load("h10-sxm", NULL, &err));
	assert_non_null(strstr(err.text, "h100-sxm"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kin_of_kin_is_kin),
		cmocka_unit_test(no_rows_are_taken_twice),
		cmocka_unit_test(strided_kernels_go_with_units_and_clock),
		cmocka_unit_test(products_of_one_die_reach_as_much_of_its_peak),
		cmocka_unit_test(all_profiles_load_and_are_whole),
		cmocka_unit_test(no_curve_is_faster_than_the_memory),
		cmocka_unit_test(a_card_of_two_dies_is_given_per_rank),
		cmocka_unit_test(own_rows_come_before_those_of_a_kin),
		cmocka_unit_test(rows_of_any_layout_become_products),
		cmocka_unit_test(a_kernel_without_a_curve_has_the_default),
		cmocka_unit_test(rows_of_a_curve_rise),
		cmocka_unit_test(a_curve_may_be_anothers),
		cmocka_unit_test(mistakes_are_found_where_they_stand),
		cmocka_unit_test(unknown_names_suggest_the_nearest),
	};

	return cmocka_run_group_tests_name("hw/gpu", tests, NULL, NULL);
}
