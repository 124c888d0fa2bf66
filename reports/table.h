/*
 * reports/table.h - a table of text on a stream, through libsmartcols
 *
 *	struct table t = TABLE_OPEN(out, "item", ">count", ">USD");
 * A name that begins with '>' makes a column that is flush right.
 */
#ifndef REPORTS_TABLE_H
#define REPORTS_TABLE_H

#include <stdio.h>

struct libscols_table;
struct libscols_line;

struct table {
	struct libscols_table *table;
	struct libscols_line *line;
	size_t column;
};

struct table table_open(FILE *out, const char *const *names, size_t n);
#define TABLE_OPEN(out, ...) \
	table_open(out, (const char *const[]){ __VA_ARGS__ }, \
		   sizeof((const char *const[]){ __VA_ARGS__ }) / \
			   sizeof(const char *))

void table_row(struct table *t);
/* The next cell of the row. */
void table_put(struct table *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Prints the table unless it has no row, and frees it. */
void table_close(struct table *t);
/* Frees it; nothing is printed. */
void table_drop(struct table *t);

#endif
