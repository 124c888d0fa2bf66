/* reports/table.c - columns and cells handed to libsmartcols */
#include "reports/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <libsmartcols.h>

#include "base/arena.h"

struct table table_open(FILE *out, const char *const *names, size_t n)
{
	struct table t = { .table = scols_new_table() };

	if (!t.table)
		out_of_memory();
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
	t->line = scols_table_new_line(t->table, NULL);
	t->column = 0;
	if (!t->line)
		out_of_memory();
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

void table_close(struct table *t)
{
	FILE *out = scols_table_get_stream(t->table);
	const char *first = scols_cell_get_data(
		scols_column_get_header(scols_table_get_column(t->table, 0)));
	char *text = NULL;

	if (!scols_table_get_nlines(
		    t->table)) { /* of which the library prints nothing */
		table_drop(t);
		return;
	}
	/* short of memory the library may leave out the first cell and say nothing */
	if (scols_print_table_to_string(t->table, &text) || !text ||
	    !strstr(text, first))
		out_of_memory();
	fputs(text, out); /* a stream that does not take it says so at the end */
	if (!text[0] || text[strlen(text) - 1] != '\n')
		putc('\n', out);
	free(text);
	table_drop(t);
}

void table_drop(struct table *t)
{
	scols_unref_table(t->table);
	t->table = NULL;
}
