/*
 * hw/gpu_sheet.h - files of numbers and words, read one row at a time
 *
 * base/csv.h would do, but keeps every cell of the table: three times slower,
 * and a profile of 5,000 rows is to load in 3 ms. Cells are cut in place, not
 * quoted; empty lines and lines that begin with '#' are skipped. Mistakes have
 * their line and column.
 */
#ifndef HW_GPU_SHEET_H
#define HW_GPU_SHEET_H

#include "foretoken/base.h"

struct arena;

enum { SHEET_CELLS = 16 };

struct sheet {
	const char *path;
	char *next; /* the row after this one */
	int line;
	char *cell[SHEET_CELLS]; /* of this row, as they stand in the file */
	char *start;		 /* of this row */
	size_t n_cells, width;
	size_t at[SHEET_CELLS]; /* where the columns asked for are */
	struct ft_error *err;
};

/* names: the n columns that are wanted, later asked for by their index here. */
bool sheet_open(struct sheet *s, struct arena *mem, const char *path,
		const char *const *names, size_t n, struct ft_error *err);

/* 1: a row is there; 0: the end; -1: a mistake. */
int sheet_next(struct sheet *s);

const char *sheet_text(const struct sheet *s, int i);

/* A mistake at cell i of this row; returns false. */
bool sheet_refuse(const struct sheet *s, int i, const char *why);

/* A number above zero, which all numbers of these files are. */
bool sheet_positive(const struct sheet *s, int i, double *value);

/* One of n words; *value, on entry, is the first to be tried. */
bool sheet_choice(const struct sheet *s, int i, const char *const *names, int n,
		  int *value);

#endif
