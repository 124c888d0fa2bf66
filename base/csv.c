/* base/csv.c - one pass over the text, cells cut in place */
#include "base/csv.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/plain.h"

struct scan {
	struct arena *mem;
	const char *file;
	char *p, *end, *line_start;
	int line;
	struct ft_error *err;
};

static struct ft_mark here(const struct scan *s, const char *p)
{
	return (struct ft_mark){ s->file, s->line, (int)(p - s->line_start) + 1 };
}

/* A quoted cell: s->p is behind the opening quote. NULL when it never closes. */
static char *quoted(struct scan *s)
{
	struct ft_mark open = here(s, s->p - 1);
	char *out = s->p, *start = s->p;

	while (s->p < s->end) {
		if (*s->p == '"' && s->p + 1 < s->end && s->p[1] == '"') {
			s->p++;
		} else if (*s->p == '"') {
			s->p++;
			/* out < s->p always: the end mark overwrites read text */
			*out = '\0';
			return start;
		} else if (*s->p == '\n') {
			s->line++;
			s->line_start = s->p + 1;
		}
		*out++ = *s->p++;
	}
	ft_fail(s->err, &open, "this quote is never closed");
	return NULL;
}

/* What follows at s->p; the file ends like a line. */
static char next_of(const struct scan *s)
{
	return s->p < s->end ? *s->p : '\n';
}

/* A cell in quotes, and the \r of a line's end behind it. NULL on error. */
static char *quoted_cell(struct scan *s)
{
	char *text;

	s->p++;
	text = quoted(s);
	if (!text)
		return NULL;
	if (next_of(s) == '\r')
		s->p++;
	if (next_of(s) != ',' && next_of(s) != '\n') {
		struct ft_mark at = here(s, s->p);

		ft_fail(s->err, &at, "text after a closing quote");
		return NULL;
	}
	return text;
}

/* Where a cell without quotes ends, before the \r of a line's end. The text holds no NUL and is
 * ended by one; most of its characters are above the comma. */
static char *plain_end(struct scan *s)
{
	char *text = s->p, *p = text;

	while ((unsigned char)*p > ',' || (*p != ',' && *p != '\n' && *p))
		p++;
	s->p = p;
	return p > text && p[-1] == '\r' && *p != ',' ? p - 1 : p;
}

/* Take one cell; *last when the line ended behind it. NULL on error. */
static char *cell(struct scan *s, bool *last)
{
	char *text = s->p, *stop = NULL;

	if (next_of(s) == '"')
		text = quoted_cell(s);
	else
		stop = plain_end(s);
	if (!text)
		return NULL;
	*last = next_of(s) == '\n';
	if (stop)
		*stop = '\0';
	if (s->p < s->end)
		s->p++;
	return text;
}

static void skip_blank(struct scan *s)
{
	while (s->p < s->end) {
		char *eol = memchr(s->p, '\n', (size_t)(s->end - s->p));

		if (!eol)
			eol = s->end;
		if (*s->p != '#' && *s->p != '\n' &&
		    !(*s->p == '\r' && s->p + 1 == eol))
			return;
		s->p = eol < s->end ? eol + 1 : eol;
		s->line++;
		s->line_start = s->p;
	}
}

/* One line of cells into row[], places into place[]; the count, or -1. */
static int row_of(struct scan *s, const char **row, int *place, size_t most)
{
	bool last = false;
	size_t n = 0;
	int line;

	while (!last) {
		struct ft_mark at = here(s, s->p);

		if (n == most) {
			ft_fail(s->err, &at,
				"this row has more than the "
				"header's %zu columns",
				most);
			return -1;
		}
		place[n] = at.column;
		row[n] = cell(s, &last);
		if (!row[n++])
			return -1;
	}
	line = s->line + 1;
	s->line = line;
	s->line_start = s->p;
	return (int)n;
}

static bool header(struct scan *s, struct csv *t)
{
	const char **name = ARENA_ARRAY(s->mem, LIMIT_CSV_COLUMNS, const char *);
	int *place = ARENA_ARRAY(s->mem, LIMIT_CSV_COLUMNS, int);
	struct ft_mark at;
	int n;

	skip_blank(s);
	at = here(s, s->p);
	if (s->p >= s->end)
		return ft_fail(s->err, &at, "is empty: a header line is needed");
	n = row_of(s, name, place, LIMIT_CSV_COLUMNS);
	if (n < 0)
		return false;
	for (int i = 0; i < n; i++) {
		at.column = place[i];
		for (int j = 0; j < i; j++)
			if (!strcmp(name[i], name[j]))
				return ft_fail(s->err, &at,
					       "column '%.60s' is "
					       "given twice",
					       name[i]);
		if (!name[i][0])
			return ft_fail(s->err, &at, "a column has no name");
	}
	t->column = name;
	t->n_columns = (size_t)n;
	return true;
}

/* Room for one more row. */
static bool make_room(struct scan *s, struct csv *t, size_t *cap)
{
	struct ft_mark at = here(s, s->p);
	size_t w = t->n_columns, rows = *cap ? 2 * *cap : 64;
	const char **cell;
	int *place, *line;

	if (t->n_rows < *cap)
		return true;
	if ((t->n_rows + 1) * w > LIMIT_CSV_CELLS)
		return ft_fail(s->err, &at, "holds too many cells: more than %d",
			       (int)LIMIT_CSV_CELLS);
	cell = ARENA_ARRAY(s->mem, rows * w, const char *);
	place = ARENA_ARRAY(s->mem, rows * w, int);
	line = ARENA_ARRAY(s->mem, rows, int);
	if (*cap) {
		memcpy(cell, t->cell, *cap * w * sizeof(*cell));
		memcpy(place, t->place, *cap * w * sizeof(*place));
		memcpy(line, t->line, *cap * sizeof(*line));
	}
	t->cell = cell;
	t->place = place;
	t->line = line;
	*cap = rows;
	return true;
}

static bool body(struct scan *s, struct csv *t)
{
	size_t cap = 0, w = t->n_columns;

	for (skip_blank(s); s->p < s->end; skip_blank(s)) {
		struct ft_mark at = here(s, s->p);
		size_t r = t->n_rows;
		int n;

		if (!make_room(s, t, &cap))
			return false;
		t->line[r] = s->line;
		n = row_of(s, t->cell + r * w, t->place + r * w, w);
		if (n < 0)
			return false;
		if ((size_t)n != w)
			return ft_fail(s->err, &at,
				       "this row has %d cells, the "
				       "header %zu",
				       n, w);
		t->n_rows++;
	}
	return true;
}

/* text lies in mem, and becomes the cells. */
static struct csv *cut(struct arena *mem, const char *name, char *text, size_t len,
		       struct ft_error *err)
{
	struct csv *t = ARENA_NEW(mem, struct csv);
	struct scan s = { .mem = mem, .line = 1, .err = err };

	t->file = s.file = arena_text(mem, name);
	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		text += 3;
		len -= 3;
	}
	if (memchr(text, '\0', len)) {
		struct ft_mark at = { t->file, 0, 0 };

		ft_fail(err, &at, "is binary, not CSV text");
		return NULL;
	}
	s.p = s.line_start = text;
	s.end = s.p + len;
	return header(&s, t) && body(&s, t) ? t : NULL;
}

struct csv *csv_read_text(struct arena *mem, const char *name, const char *text,
			  size_t len, struct ft_error *err)
{
	return cut(mem, name, arena_text_n(mem, text, len), len, err);
}

struct csv *csv_read_file(struct arena *mem, const char *path, struct ft_error *err)
{
	size_t len;
	char *text = file_read(mem, path, LIMIT_CSV_BYTES, &len, err);

	return text ? cut(mem, path, text, len, err) : NULL;
}

int csv_column(const struct csv *t, const char *name)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (!strcmp(t->column[i], name))
			return (int)i;
	return -1;
}

const char *csv_text(const struct csv *t, size_t row, int column)
{
	return column < 0 ? "" : t->cell[row * t->n_columns + (size_t)column];
}

struct ft_mark csv_mark(const struct csv *t, size_t row, int column)
{
	int place = column < 0 ? 1 : t->place[row * t->n_columns + (size_t)column];

	return (struct ft_mark){ t->file, t->line[row], place };
}

bool csv_number(const struct csv *t, size_t row, int column, double fallback,
		double *value, struct ft_error *err)
{
	const char *text = csv_text(t, row, column);
	struct ft_mark at;
	char *end;

	*value = fallback;
	if (!text[0])
		return true;
	*value = plain_number(text, &end);
	if (!*end && isfinite(*value))
		return true;
	at = csv_mark(t, row, column);
	return ft_fail(err, &at, "'%.40s' is not a number", text);
}

void csv_put(FILE *out, const char *text, bool last)
{
	if (strpbrk(text, ",\"\n\r")) {
		putc('"', out);
		for (; *text; text++) {
			if (*text == '"')
				putc('"', out);
			putc(*text, out);
		}
		putc('"', out);
	} else {
		fputs(text, out);
	}
	putc(last ? '\n' : ',', out);
}

void csv_cell(FILE *out, const char *text)
{
	putc('"', out);
	if (*text && strchr("=+-@", *text))
		putc('\'', out);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
	putc('"', out);
}
