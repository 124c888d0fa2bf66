/* tests/test_gpu_sheet.c - rows beside a profile, against the CSV reader; their mistakes */
#include "tests/check.h"

#include <glob.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/csv.h"
#include "hw/gpu_sheet.h"

/* Every cell of every file, read by words or by numbers, is what base/csv.c makes of it. */
static void files_are_read_as_csv_is(void **state)
{
	size_t cells = 0;
	glob_t found;

	(void)state;
	assert_int_equal(glob("hw/gpus/*.csv", 0, NULL, &found), 0);
	for (size_t k = 0; k < found.gl_pathc; k++) {
		const char *path = found.gl_pathv[k];
		struct sheet_column column[SHEET_CELLS];
		struct arena mem = { 0 };
		struct ft_error err;
		struct csv *t = csv_read_file(&mem, path, &err);
		struct sheet s;

		ok_or_say(t, err);
		assert_true(t->n_rows > 0 && t->n_columns <= SHEET_CELLS);
		for (size_t i = 0; i < t->n_columns; i++) {
			double value;

			column[i].name = t->column[i];
			column[i].number = csv_number(t, 0, (int)i, 0, &value, &err);
		}
		ok_or_say(sheet_open(&s, &mem, path, column, t->n_columns, &err), err);
		for (size_t row = 0; row < t->n_rows; row++) {
			assert_int_equal(sheet_next(&s), 1);
			assert_int_equal(s.line, t->line[row]);
			for (int i = 0; i < (int)t->n_columns; i++, cells++) {
				const char *text = csv_text(t, row, i);

				if (column[i].number)
					assert_true(sheet_number(&s, i) ==
						    strtod(text, NULL));
				else
					assert_string_equal(sheet_text(&s, i), text);
				if (!column[i].number)
					assert_int_equal(
						sheet_same(&s, i),
						row && !strcmp(text,
							       csv_text(t, row - 1,
									i)));
			}
		}
		assert_int_equal(sheet_next(&s), 0);
		arena_release(&mem);
	}
	print_message("# %zu cells\n", cells);
	globfree(&found);
}

static const struct sheet_column columns[] = {
	{ "op", false },
	{ "bytes", true },
	{ "time", true },
};

/* A file of text; the test frees its name and takes the file away. */
static char *file_of(const char *text)
{
	char *path = strdup("/tmp/foretoken-sheet-XXXXXX");
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	return path;
}

static void gone(char *path)
{
	unlink(path);
	free(path);
}

/* What is told of the text; "": it is read. */
static void told(const char *text, struct ft_error *err)
{
	char *path;
	struct arena mem = { 0 };
	struct sheet s;
	int more;

	*err = (struct ft_error){ 0 };
	path = file_of(text);
	if (sheet_open(&s, &mem, path, columns, 3, err)) {
		while ((more = sheet_next(&s)) > 0)
			;
		if (!more)
			assert_string_equal(err->text, "");
	}
	gone(path);
	arena_release(&mem);
}

static void mistakes_have_line_and_column(void **state)
{
	static const struct {
		const char *text, *want;
		int line, column;
	} cases[] = {
		{ "op,bytes,time\na,1,2\n# x\n\nb,3,4e1\r\nb,.5,6.\n", "", 0, 0 },
		{ "op,bytes,time\na,1,2", "", 0, 0 },
		{ "\xef\xbb\xbfop,bytes,time\na,1,2", "", 0, 0 }, /* Excel's mark */
		{ "op,bytes\na,1\n", "lacks the column 'time'", 1, 1 },
		{ "", "is empty", 1, 1 },
		{ "op,bytes,time\na,1,2\na,1\n", "this row has 2 cells, the header 3",
		  3, 1 },
		{ "op,bytes,time\na,1,2,3\n", "this row has 4 cells, the header 3", 2,
		  1 },
		{ "op,bytes,time\na,x\n", "this row has 2 cells, the header 3", 2, 1 },
		{ "op,bytes,time\na,1,2\n\na,1x,2\n", "'1x' is not a number", 4, 3 },
		{ "op,bytes,time\na,1,2\na,12,0\n", "'0' is not a number above zero", 3,
		  6 },
		{ "op,bytes,time\na,-1,2\n", "'-1' is not a number above zero", 2, 3 },
		{ "op,bytes,time\na,,2\n", "'' is not a number above zero", 2, 3 },
		{ "op,bytes,time\na,1,\n5,1,2\n", "'' is not a number above zero", 2,
		  5 },
		{ "op,bytes,time\na,1, \n5,1,2\n", "' ' is not a number", 2, 5 },
		{ "op,bytes,time\na,inf,2\n", "'inf' is not a number", 2, 3 },
		{ "op,bytes,time\na,1e999,2\n", "'1e999' is not a number", 2, 3 },
		{ "op,bytes,time\na,nan,2\n", "'nan' is not a number", 2, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ft_error err;

		told(cases[i].text, &err);
		if (!strstr(err.text, cases[i].want) || !*err.text != !*cases[i].want ||
		    err.line != cases[i].line || err.column != cases[i].column)
			fail_msg("case %zu: %d:%d: %s; wanted %d:%d: %s", i, err.line,
				 err.column, err.text, cases[i].line, cases[i].column,
				 cases[i].want);
	}
}

/* A word as above is not looked up again; a refusal points at this row. */
static void words_of_the_row_before_stay(void **state)
{
	static const char *const names[] = { "a", "b" };
	char *path;
	struct arena mem = { 0 };
	struct ft_error err;
	struct sheet s;
	int value = -1;

	(void)state;
	path = file_of("bytes,op,time\n1,a,1\n10,a,2\n3,ab,3\n4,a,4\n");
	ok_or_say(sheet_open(&s, &mem, path, columns, 3, &err), err);
	assert_int_equal(sheet_next(&s), 1);
	assert_true(sheet_choice(&s, 0, names, 2, &value) && value == 0);
	assert_false(sheet_same(&s, 0));
	assert_int_equal(sheet_next(&s), 1);
	assert_true(sheet_same(&s, 0) && sheet_choice(&s, 0, names, 2, &value));
	assert_false(sheet_refuse(&s, 0, "x"));
	assert_int_equal(err.line, 3);
	assert_int_equal(err.column, 4);
	assert_int_equal(sheet_next(&s), 1);
	assert_false(sheet_choice(&s, 0, names, 2, &value));
	assert_non_null(strstr(err.text, "'ab' is not known here"));
	assert_int_equal(sheet_next(&s), 1);
	assert_false(sheet_same(&s, 0));
	gone(path);
	arena_release(&mem);
}

/* Runs hold every row once, in order, and the words of their first row; they end where these
 * change. The mark of a mistake in one is the row's. */
static void runs_are_the_rows_that_begin_alike(void **state)
{
	static const char *const ends[] = { "\n", "\r\n", "\r", "\n\n# x\n" };
	uint64_t seed = 9;

	(void)state;
	for (int k = 0; k < 400; k++) {
		const char *end = ends[rnd(&seed) % 4];
		char text[1200] = "", want[64][8], word[SHEET_WORD];
		size_t rows = 1 + rnd(&seed) % 30, at = 0;
		struct arena mem = { 0 };
		struct sheet_run run;
		struct ft_error err;
		struct sheet s, again;
		char *path;

		snprintf(text, sizeof(text), "op,bytes,time%s", end);
		for (size_t i = 0; i < rows; i++) {
			size_t have = strlen(text);

			snprintf(want[i], sizeof(want[i]), "%.*s",
				 (int)(rnd(&seed) % 3), "aa");
			snprintf(text + have, sizeof(text) - have, "%s,%zu,1%s",
				 want[i], i + 1, end);
		}
		path = file_of(text);
		ok_or_say(sheet_open(&s, &mem, path, columns, 3, &err), err);
		while (sheet_run(&s, 1, &run) == 1) {
			assert_string_equal(sheet_word(&s, 0, word), want[at]);
			assert_true(!at || strcmp(want[at - 1], want[at]) != 0);
			assert_false(sheet_refuse(&s, 0, "x"));
			again = s;
			sheet_to_run(&again, &run);
			for (size_t i = 0; i < run.n_rows; i++, at++) {
				assert_string_equal(want[at], word);
				assert_int_equal(sheet_next(&again), 1);
				assert_true(sheet_number(&again, 1) == (double)at + 1);
				if (!i)
					assert_int_equal(err.line, again.line);
			}
		}
		assert_int_equal(at, rows);
		gone(path);
		arena_release(&mem);
	}
}

static void a_run_needs_its_words(void **state)
{
	char *path = file_of("bytes,op,time\n1,a,1\n2\n"), word[SHEET_WORD];
	struct arena mem = { 0 };
	struct sheet_run run;
	struct ft_error err;
	struct sheet s;

	(void)state;
	ok_or_say(sheet_open(&s, &mem, path, columns, 3, &err), err);
	assert_int_equal(sheet_run(&s, 1, &run), 1);
	assert_string_equal(sheet_word(&s, 0, word), "a");
	assert_int_equal(run.n_rows, 1);
	assert_int_equal(sheet_run(&s, 1, &run), -1);
	assert_int_equal(err.line, 3);
	assert_non_null(strstr(err.text, "this row has 1 cells, the header 3"));
	gone(path);
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_read_as_csv_is),
		cmocka_unit_test(mistakes_have_line_and_column),
		cmocka_unit_test(words_of_the_row_before_stay),
		cmocka_unit_test(runs_are_the_rows_that_begin_alike),
		cmocka_unit_test(a_run_needs_its_words),
	};

	return cmocka_run_group_tests_name("gpu_sheet", tests, NULL, NULL);
}
