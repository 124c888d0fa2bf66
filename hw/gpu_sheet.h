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
	bool returns; /* it has an end of line that is not \n alone */
	int passed;   /* lines between this row and the next that is to be read */
	struct ft_error *err;
};

/* Rows that follow each other and begin with the same words. */
struct sheet_run {
	char *begin;
	int line;
	size_t n_rows;
};

/* The n columns that are wanted, later asked for by their index here. */
bool sheet_open(struct sheet *s, struct arena *mem, const char *path,
		const struct sheet_column *columns, size_t n, struct ft_error *err);

/* 1: a row is there, and its numbers are above zero; 0: the end; -1: a mistake. */
int sheet_next(struct sheet *s);

/* The next run: rows are the same from their first cell through the last of the n_keys
 * columns asked for first, which are words; the rest is not looked at. As sheet_next. */
int sheet_run(struct sheet *s, size_t n_keys, struct sheet_run *run);

/* A word of a run that sheet_run found; longer ones are cut. */
enum { SHEET_WORD = 64 };
const char *sheet_word(const struct sheet *s, int i, char to[SHEET_WORD]);

/* sheet_next reads the run next; it may be asked for its n_rows rows, and only once. */
void sheet_to_run(struct sheet *s, const struct sheet_run *run);

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
