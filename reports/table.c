/* reports/table.c - columns and cells handed to libsmartcols */
#include "reports/table.h"

#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libsmartcols.h>

#include "base/arena.h"
#include "base/terminal.h"

struct table table_open(FILE *out, const char *const *names, size_t n)
{
	struct table t = { .table = allocated(scols_new_table()) };

	scols_table_set_stream(t.table, out);
	scols_table_enable_nowrap(t.table, 1);
	scols_table_set_termforce(t.table, SCOLS_TERMFORCE_NEVER);
	scols_table_set_termwidth(t.table, 0);
	if (scols_table_set_column_separator(t.table, "  "))
		out_of_memory();
	for (size_t i = 0; i < n; i++) {
		int right = names[i][0] == '>';

		struct libscols_column *c = scols_table_new_column(
			t.table, names[i] + right, 0, right ? SCOLS_FL_RIGHT : 0);

		/* its name may be what there was no memory for */
		if (!c || !scols_cell_get_data(scols_column_get_header(c)))
			out_of_memory();
	}
	return t;
}

void table_row(struct table *t)
{
	t->line = allocated(scols_table_new_line(t->table, NULL));
	t->column = 0;
}

void table_put(struct table *t, const char *fmt, ...)
{
	char text[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (scols_line_set_data(t->line, t->column++, text))
		out_of_memory();
}

/* ---- printing ------------------------------------------------------------------- */

enum { GAP = 2, NARROW = 24, WIDE = 60 };

/* The table's text. The library writes letters beyond ASCII as they are, and counts them, where
 * the locale knows them; else \xc3\xa9. Where there is no such locale it is as it was. */
static int in_utf8(struct libscols_table *table, char **text)
{
	locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
	int failed = scols_print_table_to_string(table, text);

	if (utf8) {
		uselocale(before);
		freelocale(utf8);
	}
	return failed;
}

static void print_whole(struct libscols_table *table)
{
	FILE *out = scols_table_get_stream(table);
	const char *first = scols_cell_get_data(
		scols_column_get_header(scols_table_get_column(table, 0)));
	char *text = NULL;

	/* short of memory the library may leave out the first cell and say nothing */
	if (in_utf8(table, &text) || !text || !strstr(text, first))
		out_of_memory();
	fputs(text, out); /* a stream that does not take it says so at the end */
	if (!text[0] || text[strlen(text) - 1] != '\n')
		putc('\n', out);
	free(text);
}

static const char *header_of(struct libscols_table *table, size_t column)
{
	return scols_cell_get_data(
		scols_column_get_header(scols_table_get_column(table, column)));
}

static bool is_text(struct libscols_table *table, size_t column)
{
	return !(scols_column_get_flags(scols_table_get_column(table, column)) &
		 SCOLS_FL_RIGHT);
}

static const char *cell_of(struct libscols_table *table, size_t line, size_t column)
{
	const char *data =
		scols_line_get_column_data(scols_table_get_line(table, line),
					   scols_table_get_column(table, column));

	return data ? data : "";
}

/* Of the widest cell, without the header. */
static size_t cells_width(struct libscols_table *table, size_t column)
{
	size_t most = 0;

	for (size_t i = 0; i < scols_table_get_nlines(table); i++) {
		size_t n = strlen(cell_of(table, i, column));

		most = n > most ? n : most;
	}
	return most;
}

static size_t width_of(struct libscols_table *table, size_t column)
{
	size_t cells = cells_width(table, column),
	       head = strlen(header_of(table, column));

	return head > cells ? head : cells;
}

/* The next piece of a text that is at most `most` bytes: to a blank where there is one, else
 * behind a sign where that is far enough, and never within a character. */
static size_t piece(const char *text, size_t most)
{
	size_t n = strlen(text), at = most;

	if (n <= most)
		return n;
	while (at && text[at] != ' ')
		at--;
	if (at)
		return at;
	for (at = most; at > most / 2; at--)
		if (strchr("-/,;:", text[at - 1]))
			return at;
	for (at = most; at > 1 && ((unsigned char)text[at] & 0xC0) == 0x80;)
		at--;
	return at;
}

enum { COLUMNS = 64 };

/* What is left to be printed of each column, of a header or of a line. */
struct rest {
	const char *text[COLUMNS];
	bool whole[COLUMNS]; /* a number is not cut */
	size_t n, most;
};

/* The next pieces as a row; false: there was nothing left. */
static bool put_pieces(struct table *t, struct rest *r)
{
	bool any = false;

	for (size_t i = 0; i < r->n; i++)
		any |= r->text[i][0] != '\0';
	if (!any)
		return false;
	table_row(t);
	for (size_t i = 0; i < r->n; i++) {
		size_t k =
			r->whole[i] ? strlen(r->text[i]) : piece(r->text[i], r->most);

		table_put(t, "%.*s", (int)k, r->text[i]);
		r->text[i] += k + (r->text[i][k] == ' ');
	}
	return true;
}

/* Those columns of the table in a new one; texts, and heads, go on in lines below where they
 * are longer than `most`. */
static void print_columns(struct libscols_table *table, const size_t *column, size_t n,
			  size_t most)
{
	struct rest head = { .n = n, .most = most }, line = head;
	const char *name[COLUMNS];
	char first[COLUMNS][WIDE + 1];
	struct table t;

	for (size_t i = 0; i < n; i++) {
		const char *all = header_of(table, column[i]);
		size_t k = piece(all, most);

		snprintf(first[i], sizeof(first[i]), "%.*s", (int)k, all);
		name[i] = first[i];
		head.text[i] = all + k + (all[k] == ' ');
		line.whole[i] = !is_text(table, column[i]);
	}
	t = table_open(scols_table_get_stream(table), name, n);
	for (size_t i = 0; i < n; i++)
		if (line.whole[i])
			scols_column_set_flags(scols_table_get_column(t.table, i),
					       SCOLS_FL_RIGHT);
	while (put_pieces(&t, &head))
		;
	for (size_t l = 0; l < scols_table_get_nlines(table); l++) {
		for (size_t i = 0; i < n; i++)
			line.text[i] = cell_of(table, l, column[i]);
		if (!put_pieces(&t, &line))
			table_row(&t); /* an empty line */
		while (put_pieces(&t, &line))
			;
	}
	print_whole(t.table);
	table_drop(&t);
}

/* The first column, and from..to. */
static void print_block(struct libscols_table *table, size_t from, size_t to,
			size_t most)
{
	size_t column[COLUMNS] = { 0 }, n = 1;

	for (size_t i = from ? from : 1; i < to && n < COLUMNS; i++)
		column[n++] = i;
	print_columns(table, column, n, most);
}

static size_t narrowed(struct libscols_table *table, size_t column, size_t most)
{
	size_t cells = cells_width(table, column),
	       head = strlen(header_of(table, column));

	if (is_text(table, column) && cells > most)
		cells = most;
	head = head < most ? head : most;
	return head > cells ? head : cells;
}

/* The first column behind `from` that has no room beside the first one, of COLUMNS at most. */
static size_t block_end(struct libscols_table *table, size_t from, size_t most,
			size_t width)
{
	size_t columns = scols_table_get_ncols(table), i = from;
	size_t used = narrowed(table, 0, most);

	for (; i < columns && i - from < COLUMNS - 1; i++) {
		size_t n = i ? GAP + narrowed(table, i, most) : 0;

		if (used + n > width && i > from)
			break;
		used += n;
	}
	return i;
}

/* For a person: texts in lines below each other, as wide as there is room; and where numbers
 * alone are too wide, some columns below the others. */
static void print_within(struct libscols_table *table, size_t width)
{
	size_t columns = scols_table_get_ncols(table), most = WIDE, at = 0;

	while (most > NARROW && block_end(table, 0, most, width) < columns)
		most--;
	while (at < columns) {
		size_t end = block_end(table, at, most, width);

		if (at)
			putc('\n', scols_table_get_stream(table));
		print_block(table, at, end, most);
		at = end;
	}
}

static bool too_wide(struct libscols_table *table, size_t width)
{
	size_t all = 0;

	for (size_t i = 0; i < scols_table_get_ncols(table); i++)
		all += width_of(table, i) + (i ? GAP : 0);
	return all > width;
}

void table_close(struct table *t)
{
	size_t width = terminal_width(scols_table_get_stream(t->table));

	if (scols_table_get_nlines(t->table)) { /* of none the library prints nothing */
		if (width && too_wide(t->table, width))
			print_within(t->table, width);
		else
			print_whole(t->table);
	}
	table_drop(t);
}

void table_drop(struct table *t)
{
	scols_unref_table(t->table);
	t->table = NULL;
}
