/* tests/test_base.c - quantities, text, CSV, YAML and its readers */
#include "tests/check.h"

#include <math.h>

#include "base/arena.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/reader.h"
#include "base/text.h"

static void units_become_si(void **state)
{
	static const struct {
		const char *text;
		enum dimension dim;
		double want;
	} cases[] = {
		{ "4.8 TB/s", DIM_BYTES_PER_S, 4.8e12 },
		{ "400 Gb/s", DIM_BYTES_PER_S, 5e10 },
		{ "80 GiB", DIM_BYTES, 80 * 1073741824.0 },
		{ "80GB", DIM_BYTES, 80e9 },
		{ "8 b", DIM_BYTES, 1 },
		{ "989.5 TFLOP/s", DIM_FLOP_PER_S, 989.5e12 },
		{ "4.5 us", DIM_S, 4.5e-6 },
		{ "4 y", DIM_S, 4 * 365 * 86400.0 },
		{ "700 W", DIM_W, 700 },
		{ "2.10 USD/h", DIM_USD_PER_HOUR, 2.10 },
		{ "12 %", DIM_FRAC, 0.12 },
		{ "0.12", DIM_FRAC, 0.12 },
		{ "180 USD/kW-month", DIM_USD_PER_KW_MONTH, 180 },
	};
	char why[200];
	double v;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (!quantity_parse(cases[i].text, cases[i].dim, &v, why, sizeof(why)))
			fail_msg("%s: %s", cases[i].text, why);
		near_frac(v, cases[i].want, 1e-12);
	}
}

static void what_is_no_quantity_is_refused(void **state)
{
	static const struct {
		const char *text;
		enum dimension dim;
		const char *says;
	} cases[] = {
		{ "4.8", DIM_BYTES_PER_S, "needs a unit" },
		{ "fast", DIM_BYTES_PER_S, "is not a bandwidth" },
		{ "nan GB", DIM_BYTES, "is not a size" },
		{ "inf", DIM_NONE, "is not a number" },
		{ "0x1B", DIM_COUNT, "is hexadecimal" },
		{ "-0X40 GB", DIM_BYTES, "is hexadecimal" },
		{ "1e999 GB", DIM_BYTES, "out of range" },
		{ "3 GB/s", DIM_BYTES, "not a unit of a size" },
		{ "", DIM_S, "is not a time" },
		{ "5 lightyears", DIM_S,
		  "not a unit of a time; write for example 4.5 us or 4 y" },
		{ "4 KB", DIM_BYTES,
		  "'KB' is not a unit of a size; did you mean 'kB' or 'kb'?" },
		{ "4 tB/s", DIM_BYTES_PER_S, "did you mean 'TB/s' or 'Tb/s'?" },
		{ "4 Years", DIM_S, "did you mean 'years'?" },
		{ "2.1 usd/h", DIM_USD_PER_HOUR, "did you mean 'USD/h'?" },
		{ "15t", DIM_COUNT, "did you mean 'T'?" },
		{ "700 k", DIM_W, "'k' is not a unit of a power; write for example" },
	};
	char why[200];
	double v;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_false(quantity_parse(cases[i].text, cases[i].dim, &v, why,
					    sizeof(why)));
		if (!strstr(why, cases[i].says))
			fail_msg("'%s' says: %s", cases[i].text, why);
	}
}

static void what_is_shown_reads_back_near(void **state)
{
	static const enum dimension dims[] = { DIM_BYTES, DIM_BYTES_PER_S,
					       DIM_FLOP_PER_S, DIM_S, DIM_W };
	uint64_t seed = 1;
	char text[64], why[200];
	double v, back;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		enum dimension dim = dims[rnd(&seed) % 5];

		v = pow(10, (double)(rnd(&seed) % 14) - (dim == DIM_S ? 8 : 0)) *
		    (1 + (double)(rnd(&seed) % 899) / 100);
		quantity_text(v, dim, text, sizeof(text));
		if (!quantity_parse(text, dim, &back, why, sizeof(why)))
			fail_msg("%s: %s", text, why);
		near_frac(back, v, 0.006);
	}
}

/* Each unit begins where a thousandth of it is told: below the last digit that is shown. */
static void times_are_in_their_unit(void **state)
{
	static const struct {
		double s;
		const char *text;
	} cases[] = {
		{ 0, "0.00 ns" },
		{ 1e-9, "1.00 ns" },
		{ 9.994e-9, "9.99 ns" },
		{ 1.001e-8, "10.0 ns" },
		{ 9.994e-8, "99.9 ns" },
		{ 1.004e-7, "100 ns" },
		{ 9.994e-7, "999 ns" },
		{ 9.996e-7, "1.00 us" },
		{ 9.996e-4, "1.00 ms" },
		{ 0.9994, "999 ms" },
		{ 0.9996, "1.00 s" },
		{ 99.94, "99.9 s" },
		{ 599.4, "599 s" },
		{ 599.9, "600 s" },
		{ 600, "10 min" },
		{ 3599, "60 min" },
		{ 3600, "1 h" },
		{ 86400, "1 d" },
		{ 31535999, "365 d" },
		{ 617.28, "10.3 min" },
		{ 3617.28, "1 h" },
		{ 3619, "1.01 h" },
		{ 86399, "24 h" },
		{ 86816, "1 d" },
		{ 86840, "1.01 d" },
		{ 31536000, "1 y" },
		{ 1.5 * 31536000, "1.5 y" },
	};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		quantity_text(cases[i].s, DIM_S, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

static void others_are_in_thousands(void **state)
{
	static const struct {
		double v;
		const char *text;
	} cases[] = {
		{ 0, "0 B" },	       { 1, "1 B" },	     { 12.34, "12.3 B" },
		{ 999.4, "999 B" },    { 999.6, "1 kB" },    { 1234, "1.23 kB" },
		{ 123456, "123 kB" },  { 999600, "1 MB" },   { 80e9, "80 GB" },
		{ -1234, "-1.23 kB" }, { -999.6, "-1 kB" },  { 4.8e12, "4.8 TB" },
		{ 2.5e15, "2.5 PB" },  { 9.996e14, "1 PB" }, { 1e18, "1 EB" },
		{ 5e20, "500 EB" },
	};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		quantity_text(cases[i].v, DIM_BYTES, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

static void seconds_round_up_to_picoseconds(void **state)
{
	(void)state;
	assert_int_equal(ft_ps_from_s(0), 0);
	assert_int_equal(ft_ps_from_s(1e-12), 1);
	assert_int_equal(ft_ps_from_s(1.5e-12), 2);
	assert_int_equal(ft_ps_from_s(3e-3), 3000000000);
}

static void the_nearest_word_is_suggested(void **state)
{
	static const char *const words[] = { "micro_batch_size", "precision",
					     "parallel" };

	(void)state;
	assert_string_equal(text_nearest("micro_batchsize", words, 3),
			    "micro_batch_size");
	assert_string_equal(text_nearest("paralel", words, 3), "parallel");
	assert_null(text_nearest("zzz", words, 3));
	/* a part of a name, from four letters on */
	assert_string_equal(text_nearest("size", words, 3), "micro_batch_size");
	assert_null(text_nearest("siz", words, 3));
}

static void csv_keeps_cells_and_places(void **state)
{
	static const char text[] = "id,note\r\n# a comment\n1,\"a, \"\"b\"\"\n"
				   "c\"\n\n2,\n";
	struct arena mem = { 0 };
	struct ft_error err;
	struct csv *t = csv_read_text(&mem, "x.csv", text, sizeof(text) - 1, &err);

	(void)state;
	ok_or_say(t, err);
	assert_int_equal(t->n_rows, 2);
	assert_string_equal(csv_text(t, 0, 1), "a, \"b\"\nc");
	assert_string_equal(csv_text(t, 1, 1), "");
	assert_int_equal(csv_mark(t, 1, 0).line, 6);
	assert_int_equal(csv_mark(t, 0, 1).column, 3);
	arena_release(&mem);
}

static void csv_mistakes_have_a_line(void **state)
{
	static const struct {
		const char *text;
		int line;
		const char *says;
	} cases[] = {
		{ "", 1, "empty" },
		{ "a,a\n", 1, "twice" },
		{ "a,b\n1\n", 2, "1 cells" },
		{ "a,b\n1,2,3\n", 2, "more than" },
		{ "a\n\"x\n", 2, "never closed" },
		{ "a\n\"x\"y\n", 2, "after a closing quote" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena mem = { 0 };
		struct ft_error err;

		assert_null(csv_read_text(&mem, "x", cases[i].text,
					  strlen(cases[i].text), &err));
		assert_int_equal(err.line, cases[i].line);
		assert_non_null(strstr(err.text, cases[i].says));
		arena_release(&mem);
	}
}

static struct node *yaml(struct arena *mem, const char *text, struct ft_error *err)
{
	return node_read_text(mem, "t.yaml", text, strlen(text), err);
}

static void yaml_nodes_know_their_place(void **state)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *n = yaml(&mem, "a:\n  b: [1, {c: x}]\n", &err);
	struct node *b;

	(void)state;
	ok_or_say(n, err);
	b = node_path(n, "a.b");
	assert_int_equal(b->n, 2);
	assert_string_equal(node_get(b->item[1], "c")->text, "x");
	assert_int_equal(b->mark.line, 2);
	assert_int_equal(b->mark.column, 6);
	arena_release(&mem);
}

static void bad_yaml_is_one_clear_error(void **state)
{
	static const struct {
		const char *text;
		int line, column;
		const char *says;
	} cases[] = {
		{ "a: [1, 2", 2, 1, "is not valid YAML" },
		{ "a: [1, *x, 2]", 1, 8, "undefined alias" },
		{ "a: [&x 1, *x, [{b: *y}]]", 1, 20, "undefined alias" },
		{ "a: {b: 1, b: 2}", 1, 11, "'b' is given twice" },
		{ "a: 1\na: 2\n", 2, 1, "'a' is given twice" },
		{ "", 1, 1, "is empty" },
		{ "a: &x 1\n---\nb: 2\n", 1, 1, "more than one document" },
		{ "{a: &x 1}\n]", 2, 1, "is not valid YAML" },
		{ "? [x]\n: 1\n", 1, 3, "a key must be a word" },
		{ "a: {? *x : 1}", 1, 7, "a key must be a word" },
		{ "a: \x01", 1, 4, "is not valid YAML" },
		{ "a: 1\nbä: \xff", 2, 5, "is not valid YAML" },
		{ "a: \"\\x01\"", 1, 4, "holds a control character" },
		{ "{a: 1, \"b\\0\": 2}", 1, 8, "holds a NUL byte" },
		{ "a: {b: \"c\\x7f\"}", 1, 8, "holds a control character" },
		{ "\t- x", 1, 1,
		  "is not valid YAML: a tab stands where only spaces may" },
		{ "*x", 1, 1, "undefined alias" },
		{ "a: &x {b: 1}\nc: {<<: *x}", 2, 5, "merge keys (<<) are not read" },
		{ "a:\n  b: 'x\n", 3, 1, "is not valid YAML" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena mem = { 0 };
		struct ft_error err = { 0 };

		assert_null(yaml(&mem, cases[i].text, &err));
		if (!strstr(err.text, cases[i].says) || err.line != cases[i].line ||
		    err.column != cases[i].column)
			fail_msg("case %zu: %d:%d: %s", i, err.line, err.column,
				 err.text);
		arena_release(&mem);
	}
}

static void aliases_cannot_explode(void **state)
{
	char text[4096] = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
	struct arena mem = { 0 };
	struct ft_error err;

	(void)state;
	for (int i = 1; i < 12; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i,
			 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	assert_null(yaml(&mem, text, &err));
	assert_non_null(strstr(err.text, "too many"));
	arena_release(&mem);
}

static void set_overrides_and_makes_maps(void **state)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *n = yaml(&mem, "model: llama3-8b\nt: {p: {tp: 1}}\n", &err);
	const struct node *list;

	(void)state;
	ok_or_say(n, err);
	ok_or_say(node_set(&mem, n, "t.p.tp=4", &err), err);
	ok_or_say(node_set(&mem, n, "model.num_hidden_layers=8", &err), err);
	ok_or_say(node_set(&mem, n, "t.list=[1, 2]", &err), err);
	assert_string_equal(node_path(n, "t.p.tp")->text, "4");
	assert_string_equal(node_path(n, "model.name")->text, "llama3-8b");
	assert_int_equal(node_path(n, "t.list")->n, 2);
	/* each stands where the command line has it: "--set " is six characters */
	list = node_path(n, "t.list");
	assert_int_equal(list->mark.column, 14);
	assert_int_equal(list->item[1]->mark.column, 18);
	assert_false(node_set(&mem, n, "t.p={a: 1, a: 2}", &err));
	assert_int_equal(err.column, 18);
	assert_false(node_set(&mem, n, "t.p.tp=", &err));
	assert_int_equal(err.column, 14);
	assert_non_null(strstr(err.text, "no value behind '='"));
	assert_string_equal(node_path(n, "t.p.tp")->text, "4");
	assert_false(node_set(&mem, n, "nonsense", &err));
	assert_false(node_set(&mem, n, "a..b=1", &err));
	arena_release(&mem);
}

static void unknown_keys_name_the_nearest(void **state)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *n = yaml(&mem, "bandwith: 4.8 TB/s\n", &err);
	struct reader r = reader_open(n, &err);

	(void)state;
	read_quantity(&r, "bandwidth", DIM_BYTES_PER_S, 1);
	assert_false(reader_close(&r));
	assert_int_equal(err.line, 1);
	assert_int_equal(err.column, 1);
	assert_non_null(strstr(err.text, "did you mean 'bandwidth'"));
	arena_release(&mem);
}

static void a_number_without_provenance_is_refused(void **state)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *n = yaml(&mem, "x: 5 W\n", &err);
	struct reader r = reader_open(n, &err);

	(void)state;
	read_number(&r, &mem, "x", DIM_W);
	assert_false(reader_close(&r));
	assert_non_null(strstr(err.text, "provenance"));
	n = yaml(&mem,
		 "x: {value: 5 W, low: 4 W, high: 7 W, provenance: {kind: "
		 "assumed}}\n",
		 &err);
	r = reader_open(n, &err);
	near_frac(read_number(&r, &mem, "x", DIM_W).high, 7, 0);
	assert_true(reader_close(&r));
	arena_release(&mem);
}

static void a_failed_write_leaves_the_old_file(void **state)
{
	struct arena mem = { 0 };
	struct file_out f;
	struct ft_error err;
	char name[64];
	const char *path = own_path(name, "file");
	size_t len;

	(void)state;
	ok_or_say(file_begin(&f, path, &err), err);
	fputs("old", f.out);
	ok_or_say(file_commit(&f, &err), err);
	ok_or_say(file_begin(&f, path, &err), err);
	fputs("half of the ne", f.out);
	file_abandon(&f);
	assert_string_equal(file_read(&mem, path, 100, &len, &err), "old");
	remove(path);
	assert_false(file_begin(&f, "/nonexistent/x", &err));
	assert_null(file_read(&mem, "/", 100, &len, &err));
	arena_release(&mem);
}

/* A needed key is missing: a key that is read later is not called a misspelt one, another is. */
static void what_is_missing_may_be_misspelt(void **state)
{
	static const char *const cases[][2] = {
		{ "{gpus_speed: 1}", "lacks the key 'gpus'" },
		{ "{gpuss: 8}", "unknown key 'gpuss'; did you mean 'gpus'?" },
		{ "{gpus_speed: 1, gpuss: 8}", "unknown key 'gpuss'" },
		{ "{size: 4}", "lacks the key 'gpus'" },
	};
	struct ft_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena mem = { 0 };
		struct node *n = node_read_text(&mem, "x", cases[i][0],
						strlen(cases[i][0]), &err);
		struct reader r = reader_open(n, &err);

		assert_null(read_need(&r, "gpus"));
		assert_false(read_has(&r, "gpus_speed"));
		assert_false(reader_close(&r));
		if (!strstr(err.text, cases[i][1]))
			fail_msg("%s: %s", cases[i][0], err.text);
		arena_release(&mem);
	}
}

/* global_batch_size may be said as batch_size; of three letters and fewer nothing is told from. */
static void a_part_of_a_key_is_told_at_once(void **state)
{
	static const char whole[] = "global_batch_size";

	(void)state;
	for (size_t from = 0; from < sizeof(whole) - 4; from++) {
		const char *part = whole + from;
		size_t n =
			strlen(part) - (from ? 0 : 4); /* what is nearly all is near */
		struct arena mem = { 0 };
		struct ft_error err;
		char text[32], want[80];
		struct reader r;

		for (size_t len = 3; len <= n; len += 3) {
			bool told = len > 3;

			snprintf(text, sizeof(text), "{%.*s: 4}", (int)len, part);
			snprintf(want, sizeof(want),
				 told ? "unknown key '%.*s'; did you mean '%s'?" :
					"lacks the key 'global_batch_size'",
				 (int)len, part, whole);
			r = reader_open(
				node_read_text(&mem, "x", text, strlen(text), &err),
				&err);
			assert_null(read_need(&r, whole));
			if (told)
				assert_string_equal(err.text, want);
			else
				assert_false(reader_close(&r));
			if (!told && !strstr(err.text, want))
				fail_msg("%s: %s", text, err.text);
		}
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_become_si),
		cmocka_unit_test(what_is_no_quantity_is_refused),
		cmocka_unit_test(what_is_missing_may_be_misspelt),
		cmocka_unit_test(a_part_of_a_key_is_told_at_once),
		cmocka_unit_test(what_is_shown_reads_back_near),
		cmocka_unit_test(times_are_in_their_unit),
		cmocka_unit_test(others_are_in_thousands),
		cmocka_unit_test(seconds_round_up_to_picoseconds),
		cmocka_unit_test(the_nearest_word_is_suggested),
		cmocka_unit_test(csv_keeps_cells_and_places),
		cmocka_unit_test(csv_mistakes_have_a_line),
		cmocka_unit_test(yaml_nodes_know_their_place),
		cmocka_unit_test(bad_yaml_is_one_clear_error),
		cmocka_unit_test(aliases_cannot_explode),
		cmocka_unit_test(set_overrides_and_makes_maps),
		cmocka_unit_test(unknown_keys_name_the_nearest),
		cmocka_unit_test(a_number_without_provenance_is_refused),
		cmocka_unit_test(a_failed_write_leaves_the_old_file),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
