/*
 * base/csv.h - tables of text with a header line, read whole (RFC 4180)
 *
 * Cells may be quoted ("" is a quote inside). Rows shorter or longer than the
 * header are errors with their line, as are duplicate column names, NUL bytes
 * and an unterminated quote. Empty lines and lines that start with '#' are
 * skipped.
 */
#ifndef BASE_CSV_H
#define BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "foretoken/base.h"

struct arena;

struct csv {
	const char *file;
	size_t n_columns, n_rows;
	const char **column; /* [n_columns] names */
	const char **cell;   /* [n_rows * n_columns], "" when empty */
	int *line;	     /* [n_rows] where each row begins */
	int *place;	     /* [n_rows * n_columns] column in that line */
};

struct csv *csv_read_file(struct arena *mem, const char *path, struct ft_error *err)
	__attribute__((warn_unused_result));
struct csv *csv_read_text(struct arena *mem, const char *name, const char *text,
			  size_t len, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Index of a column, -1 when the table has none of that name. */
int csv_column(const struct csv *t, const char *name);

/* The text of a cell; "" when column is -1. */
const char *csv_text(const struct csv *t, size_t row, int column);

/* A plain finite number; an empty cell is fallback. */
bool csv_number(const struct csv *t, size_t row, int column, double fallback,
		double *value, struct ft_error *err)
	__attribute__((warn_unused_result));

struct ft_mark csv_mark(const struct csv *t, size_t row, int column);

/* Write one cell, quoted when it must be. */
#include <stdio.h>
void csv_put(FILE *out, const char *text, bool last);

/* A cell as others read it: in quotes, those inside doubled. What a spreadsheet would take for a
 * formula begins with an apostrophe. */
void csv_cell(FILE *out, const char *text);

#endif
