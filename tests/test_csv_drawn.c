/*
 * tests/test_csv_drawn.c - tables written cell by cell, some of them wrong at one place: what is
 * read, where each cell stands, and where the mistake is said to be
 */
#include "tests/check.h"

#include "base/arena.h"
#include "base/csv.h"
#include "tests/printed.h"

enum { WIDE = 5, HIGH = 6, ROUNDS = 3000 };

enum wrong { RIGHT, OPEN, BEHIND, SHORT, LONG, WRONGS };

/* A text as it grows, and where its end is. */
struct written {
	char text[4000];
	size_t n;
	int line, column;
};

static uint64_t seed = 41;

static void put(struct written *w, const char *text)
{
	for (; *text; text++) {
		w->text[w->n++] = *text;
		w->column = *text == '\n' ? 1 : w->column + 1;
		w->line += *text == '\n';
	}
	w->text[w->n] = '\0';
}

struct cell {
	char text[40];
	int line, column;
};

/* In quotes where it must be, and sometimes else. */
static void put_cell(struct written *w, struct cell *c)
{
	static const char *const pieces[] = { "a", "7",	 ".5", "b c",
					      ",", "\n", "\"", "#" };
	bool quoted = rnd_below(&seed, 4) == 0;

	*c = (struct cell){ .line = w->line, .column = w->column };
	for (int i = rnd_below(&seed, 4); i > 0; i--) {
		const char *piece = pieces[rnd_below(&seed, quoted ? 8 : 4)];

		strcat(c->text, piece);
	}
	if (!quoted) {
		put(w, c->text);
		return;
	}
	put(w, "\"");
	for (const char *p = c->text; *p; p++)
		put(w, *p == '"' ? "\"\"" : (char[]){ *p, '\0' });
	put(w, "\"");
}

static void put_end(struct written *w)
{
	put(w, rnd_below(&seed, 5) ? "\n" : "\r\n");
	if (rnd_below(&seed, 6) == 0)
		put(w, rnd_below(&seed, 2) ? "\n" : "# a remark, \"open\n");
}

/* Rows of cells; the first cell of each says something, so that none is skipped. */
struct table {
	struct written w;
	struct cell cell[HIGH][WIDE];
	int width, height;
	enum wrong wrong;
	struct cell at; /* the mistake */
	const char *says;
};

static void spoil(struct table *t, int row, int column)
{
	static const char *const says[WRONGS] = { "", "never closed",
						  "after a closing quote",
						  " cells, the header",
						  "more than the header" };
	struct written *w = &t->w;

	t->says = says[t->wrong];
	t->at = (struct cell){ .line = w->line, .column = w->column };
	if (t->wrong == OPEN) {
		put(w, "\"open, and so to the end");
	} else if (t->wrong == BEHIND) {
		put(w, "\"a\nb\"");
		t->at = (struct cell){ .line = w->line, .column = w->column };
		put(w, "c");
	} else if (t->wrong == SHORT) {
		t->at.column = 1;
		t->at.line = t->cell[row][0].line;
	} else {
		for (; column < t->width; column++)
			put(w, "x,");
		t->at = (struct cell){ .line = w->line, .column = w->column };
		put(w, "y");
	}
}

static void write_table(struct table *t)
{
	int row = 0, column = 0;
	struct written before;

	*t = (struct table){ .w = { .line = 1, .column = 1 },
			     .width = 1 + rnd_below(&seed, WIDE),
			     .height = 1 + rnd_below(&seed, HIGH),
			     .wrong = (enum wrong)rnd_below(&seed, WRONGS) };
	for (int i = 0; i < t->width; i++)
		put(&t->w,
		    (char[]){ (char)('a' + i), i + 1 < t->width ? ',' : '\0', '\0' });
	put_end(&t->w);
	if (t->width == 1 && t->wrong == SHORT)
		t->wrong = RIGHT; /* it would be an empty line */
	row = t->wrong ? rnd_below(&seed, t->height) : HIGH;
	column = t->wrong == SHORT ? 1 + rnd_below(&seed, t->width - 1) :
				     rnd_below(&seed, t->width);
	for (int i = 0; i < t->height; i++) {
		for (int k = 0; k < t->width; k++) {
			if (i == row && k == column && t->wrong != SHORT) {
				spoil(t, i, k);
				break;
			}
			before = t->w;
			put_cell(&t->w, &t->cell[i][k]);
			while (k == 0 && !t->cell[i][k].text[0]) {
				t->w = before;
				put_cell(&t->w, &t->cell[i][k]);
			}
			if (i == row && k + 1 == column && t->wrong == SHORT) {
				spoil(t, i, k);
				break;
			}
			if (k + 1 < t->width)
				put(&t->w, ",");
		}
		if (i == row && t->wrong == OPEN)
			return; /* the next quote would close it */
		put_end(&t->w);
	}
}

static void cells_are_those_written(const struct table *t, const struct csv *c)
{
	assert_int_equal(c->n_rows, t->height);
	for (int i = 0; i < t->height; i++)
		for (int k = 0; k < t->width; k++) {
			struct ft_mark at = csv_mark(c, (size_t)i, k);

			assert_string_equal(csv_text(c, (size_t)i, k),
					    t->cell[i][k].text);
			assert_int_equal(at.column, t->cell[i][k].column);
			assert_int_equal(at.line, t->cell[i][0].line);
		}
}

/* Room for all rows is asked for before they are read. */
static void rows_are_no_more_than_told(const struct table *t)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct csv_rows *rows = csv_open_text(&mem, "x", t->w.text, t->w.n, &err);
	size_t most;
	int n = 0, more;

	ok_or_say(rows, err);
	most = csv_rows_most(rows);
	while ((more = csv_next(rows)) > 0)
		n++;
	assert_true(!more && n == t->height && (size_t)n <= most);
	arena_release(&mem);
}

static void tables_are_read_and_mistakes_have_their_place(void **state)
{
	int of[WRONGS] = { 0 };

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct arena mem = { 0 };
		struct ft_error err;
		struct table t;
		struct csv *c;

		write_table(&t);
		of[t.wrong]++;
		c = csv_read_text(&mem, "x", t.w.text, t.w.n, &err);
		if (t.wrong == RIGHT) {
			ok_or_say(c, err);
			cells_are_those_written(&t, c);
			rows_are_no_more_than_told(&t);
		} else if (c || !strstr(err.text, t.says) || err.line != t.at.line ||
			   err.column != t.at.column) {
			fail_msg("%s:%d:%d, not %s:%d:%d:\n%s", c ? "read" : err.text,
				 err.line, err.column, t.says, t.at.line, t.at.column,
				 t.w.text);
		}
		arena_release(&mem);
	}
	for (int i = 0; i < WRONGS; i++)
		assert_true(of[i] > ROUNDS / 20);
}

/* What csv_put and csv_cell write is read back; of the latter a formula is a text. */
static void cells_that_are_written_are_read_back(void **state)
{
	static const char *const pieces[] = { "a", "7", "=",  "-",  "@", "+",
					      " ", ",", "\n", "\"", "#", "\r\n" };

	(void)state;
	for (int round = 0; round < 500; round++) {
		struct arena mem = { 0 };
		struct ft_error err;
		char cell[3][40] = { "x", "", "" }, *text = NULL;
		struct csv *c;

		for (int k = 0; k < 3; k++)
			for (int i = rnd_below(&seed, 4); i > 0; i--)
				strcat(cell[k], pieces[rnd_below(&seed, 12)]);
		PRINTED(text, {
			fputs("one,two,three\n", out);
			csv_put(out, cell[0], false);
			csv_cell(out, cell[1]);
			putc(',', out);
			csv_put(out, cell[2], true);
		});
		c = csv_read_text(&mem, "x", text, strlen(text), &err);
		ok_or_say(c, err);
		assert_int_equal(c->n_rows, 1);
		assert_string_equal(csv_text(c, 0, 0), cell[0]);
		assert_string_equal(
			csv_text(c, 0, 1),
			arena_printf(&mem, "%s%s",
				     cell[1][0] && strchr("=+-@", cell[1][0]) ? "'" :
										"",
				     cell[1]));
		assert_string_equal(csv_text(c, 0, 2), cell[2]);
		if (!strpbrk(cell[0], ",\"\n\r")) /* as it is, where it can be */
			assert_true(!strncmp(text + 14, cell[0], strlen(cell[0])));
		free(text);
		arena_release(&mem);
	}
}

/* A byte-order mark is none of the first name's letters; other encodings are told apart. */
static void text_is_utf8_with_or_without_its_mark(void **state)
{
	static const struct {
		const char *text;
		size_t n;
		const char *says;
	} cases[] = {
		{ "\xef\xbb\xbf"
		  "a,b\n1,2\n",
		  11, NULL },
		{ "\xff\xfe"
		  "a\0",
		  4, "is text in UTF-16" },
		{ "\xfe\xff\0"
		  "a",
		  4, "is text in UTF-16" },
		{ "a,b\n\0,2\n", 8, "is binary, not CSV text" },
		{ "a,,b\n1,2,3\n", 11, "a column has no name" },
		{ "a,b,a\n1,2,3\n", 12, "column 'a' is given twice" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena mem = { 0 };
		struct ft_error err = { .text = "" };
		struct csv *c =
			csv_read_text(&mem, "x", cases[i].text, cases[i].n, &err);

		if (cases[i].says) {
			assert_null(c);
			assert_non_null(strstr(err.text, cases[i].says));
		} else {
			ok_or_say(c, err);
			assert_string_equal(c->column[0], "a");
			assert_string_equal(csv_text(c, 0, 1), "2");
		}
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_read_and_mistakes_have_their_place),
		cmocka_unit_test(cells_that_are_written_are_read_back),
		cmocka_unit_test(text_is_utf8_with_or_without_its_mark),
	};

	return cmocka_run_group_tests_name("base/csv", tests, NULL, NULL);
}
