/*
 * hw/gpu_sheet.h - files of numbers and words, read one row at a time
 *
 * base/csv.h would do, but keeps every cell of the table: many times slower, and profiles
 * of 5,000 rows are read by every command. Rows that follow each other begin with the same
 * words: a word is compared with the one above it, and looked up only where it differs.
 * Nothing is quoted; empty lines and lines that begin with '#' are skipped. Mistakes have
 * their line and column.
 */
#ifndef HW_GPU_SHEET_H
#define HW_GPU_SHEET_H

#include "foretoken/base.h"

struct arena;

enum { SHEET_CELLS = 16 };

/* A column that is wanted. */
struct sheet_column {
	const char *name;
	bool number; /* above zero, as all numbers of these files are; else a word */
};

struct sheet_cell {
	bool number;
	bool same;   /* a word: that of the row before */
	char *begin; /* in this row */
	char *text;  /* a word, ended; of an earlier row, if it is the same */
	size_t len;
	double value; /* a number */
};

struct sheet {
	const char *path;
	char *start, *next; /* this row, and the one after it */
	int line;
	size_t width;
	struct sheet_cell cell[SHEET_CELLS]; /* as they stand in the file */
	size_t at[SHEET_CELLS];		     /* where the columns asked for are */
	/* rows whose first so many cells are words as in the row before are passed over */
	size_t pass_over;
	struct ft_error *err;
};

/* The n columns that are wanted, later asked for by their index here. */
bool sheet_open(struct sheet *s, struct arena *mem, const char *path,
		const struct sheet_column *columns, size_t n, struct ft_error *err);

/* 1: a row is there, and its numbers are above zero; 0: the end; -1: a mistake. */
int sheet_next(struct sheet *s);

static inline const char *sheet_text(const struct sheet *s, int i)
{
	return s->cell[s->at[i]].text;
}

static inline double sheet_number(const struct sheet *s, int i)
{
	return s->cell[s->at[i]].value;
}

/* The word of the row before stands there again; false in the first row. */
static inline bool sheet_same(const struct sheet *s, int i)
{
	return s->cell[s->at[i]].same;
}

/* A mistake at cell i of this row; returns false. */
bool sheet_refuse(const struct sheet *s, int i, const char *why);

/* One of n words; *value, on entry, is what it was in the row before. */
bool sheet_choice(const struct sheet *s, int i, const char *const *names, int n,
		  int *value);

#endif
