/*
 * base/csv.h - tables of text with a header line (RFC 4180), read whole or row by row
 *
 * Cells may be quoted ("" is a quote inside). Rows shorter or longer than the
 * header are errors with their line, as are duplicate column names, NUL bytes
 * and an unterminated quote. Empty lines, rows of empty cells and lines that start
 * with '#' are skipped. A header without a comma may have semicolons or tabs between
 * its names, as spreadsheets write them; then they are between all cells.
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
	int *column_place;   /* [n_columns] column in the header's line */
	int header_line;
	const char **cell; /* [n_rows * n_columns], "" when empty */
	int *line;	   /* [n_rows] where each row begins */
	int *place;	   /* [n_rows * n_columns] column in that line */
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

/* true or false, or 1 or 0, as C, Python and spreadsheets write them; an empty cell is
 * false. */
bool csv_truth(const struct csv *t, size_t row, int column, bool *value,
	       struct ft_error *err) __attribute__((warn_unused_result));

/* Where a column's name stands. */
struct ft_mark csv_column_mark(const struct csv *t, size_t column);

struct ft_mark csv_mark(const struct csv *t, size_t row, int column);

/* Why the text, which is ended by a NUL, is none of a table; NULL: it may be one. */
const char *csv_fault(const char *text, size_t len);

/* Every column must be one of names[n] or begin with one of heads[n_heads]. */
bool csv_columns_known(const struct csv *t, const char *const *names, size_t n,
		       const char *const *heads, size_t n_heads, struct ft_error *err)
	__attribute__((warn_unused_result));

/* ---- row by row ------------------------------------------------------------------ */

/* A cell of the row that was read last. Texts stay when further rows are read. */
struct csv_cell {
	const char *text;
	size_t len; /* of a plain one */
	int place;  /* column in its line */
	bool plain; /* no quotes */
	bool same; /* as in the row above; of plain ones alone, and never of the first row's */
};

struct csv_rows {
	const char *file;
	size_t n_columns, n_rows; /* n_rows: were read so far */
	const char **column;	  /* [n_columns] names */
	int *column_place, header_line;
	struct csv_cell *cell; /* [n_columns] */
	int line;	       /* where the row begins */
	struct scan *scan;
};

/* err is kept, and told what is wrong in a row. */
struct csv_rows *csv_open_file(struct arena *mem, const char *path,
			       struct ft_error *err)
	__attribute__((warn_unused_result));
struct csv_rows *csv_open_text(struct arena *mem, const char *name, const char *text,
			       size_t len, struct ft_error *err)
	__attribute__((warn_unused_result));

/* 1: a row is there; 0: the end; -1: a mistake. */
int csv_next(struct csv_rows *rows) __attribute__((warn_unused_result));

/* At most so many rows are left. */
size_t csv_rows_most(const struct csv_rows *rows);

int csv_rows_column(const struct csv_rows *rows, const char *name);
bool csv_rows_number(const struct csv_rows *rows, size_t column, double *value)
	__attribute__((warn_unused_result));
struct ft_mark csv_rows_mark(const struct csv_rows *rows, size_t column);

/* Write one cell, quoted when it must be. */
#include <stdio.h>
void csv_put(FILE *out, const char *text, bool last);

/* A cell as others read it: in quotes, those inside doubled. What a spreadsheet would take for a
 * formula begins with an apostrophe. */
void csv_cell(FILE *out, const char *text);

#endif
