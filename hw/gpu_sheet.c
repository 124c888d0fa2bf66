/* hw/gpu_sheet.c - files of numbers and words, one pass, cut in place */
#include "hw/gpu_sheet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"

enum { LARGEST_FILE = 64 * 1024 * 1024 };

/* Cut a row at its commas and its end, *next is what follows; the number of cells. */
static size_t cut_cells(char *p, char *cell[SHEET_CELLS], char **next)
{
	size_t n = 0;

	for (char *begin = p;; begin = ++p) {
		char c;

		while ((unsigned char)*p > ',' ||
		       (*p && *p != ',' && *p != '\n' && *p != '\r'))
			p++;
		c = *p;
		*p = '\0';
		if (n < SHEET_CELLS)
			cell[n] = begin;
		n++;
		if (c == ',')
			continue;
		if (c == '\r' && p[1] == '\n')
			p++;
		*next = p + (c != '\0');
		return n;
	}
}

/* Cut the next row that is neither empty nor a comment; false at the end. */
static bool cut(struct sheet *s)
{
	char *p = s->next;

	while (*p == '#' || *p == '\n' || *p == '\r') {
		s->line += *p != '\r';
		if (*p == '#')
			p += strcspn(p, "\n");
		p += *p != '\0';
	}
	s->start = p;
	s->line++;
	s->n_cells = 0;
	if (!*p)
		return false;
	s->n_cells = cut_cells(p, s->cell, &p);
	s->next = p;
	return true;
}

bool sheet_open(struct sheet *s, struct arena *mem, const char *path,
		const char *const *names, size_t n, struct ft_error *err)
{
	struct ft_mark top = { path, 1, 1 };
	size_t len;

	*s = (struct sheet){ .path = path, .err = err };
	s->next = file_read(mem, path, LARGEST_FILE, &len, err);
	if (!s->next)
		return false;
	if (strlen(s->next) != len)
		return ft_fail(err, &top, "is binary, not CSV text");
	if (!cut(s))
		return ft_fail(err, &top, "is empty: a header line is needed");
	top.line = s->line;
	s->width = s->n_cells;
	if (s->width > SHEET_CELLS)
		return ft_fail(err, &top, "has more than %d columns", SHEET_CELLS);
	for (size_t i = 0; i < n; i++) {
		size_t c = 0;

		while (c < s->width && strcmp(s->cell[c], names[i]))
			c++;
		if (c == s->width)
			return ft_fail(err, &top, "lacks the column '%s'", names[i]);
		s->at[i] = c;
	}
	return true;
}

/* The next row: 1; at the end 0; a row of another width is an error, -1. */
int sheet_next(struct sheet *s)
{
	struct ft_mark at = { s->path, 0, 1 };

	if (!cut(s))
		return 0;
	if (s->n_cells == s->width)
		return 1;
	at.line = s->line;
	ft_fail(s->err, &at, "this row has %zu cells, the header %zu", s->n_cells,
		s->width);
	return -1;
}

const char *sheet_text(const struct sheet *s, int i)
{
	return s->cell[s->at[i]];
}

bool sheet_refuse(const struct sheet *s, int i, const char *why)
{
	struct ft_mark at = { s->path, s->line,
			      (int)(sheet_text(s, i) - s->start) + 1 };

	return ft_fail(s->err, &at, "'%.40s' %s", sheet_text(s, i), why);
}

/* Every number of these files is above zero, most are short decimals: those
 * are read digit by digit, with one exact division. */
bool sheet_positive(const struct sheet *s, int i, double *value)
{
	static const double tens[] = { 1,   1e1, 1e2, 1e3,  1e4,  1e5, 1e6,
				       1e7, 1e8, 1e9, 1e10, 1e11, 1e12 };
	const char *p = sheet_text(s, i), *point = NULL;
	int64_t digits = 0;
	char *end;

	for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
		if (*p == '.')
			point = p + 1;
		else if (digits < INT64_C(1) << 49)
			digits = digits * 10 + (*p - '0');
		else
			break;
	}
	*value = (double)digits / (point ? tens[(p - point) % 13] : 1);
	if (*p || (point && p - point > 12)) {
		*value = strtod(sheet_text(s, i), &end);
		if (*end || !isfinite(*value))
			return sheet_refuse(s, i, "is not a number");
	}
	return *value > 0 || sheet_refuse(s, i, "is not a number above zero");
}

bool sheet_choice(const struct sheet *s, int i, const char *const *names, int n,
		  int *value)
{
	const char *word = sheet_text(s, i);

	/* mostly the word of the row before */
	if (*value >= 0 && *value < n && !strcmp(names[*value], word))
		return true;
	for (*value = 0; *value < n; ++*value)
		if (!strcmp(names[*value], word))
			return true;
	return sheet_refuse(s, i, "is not known here");
}
