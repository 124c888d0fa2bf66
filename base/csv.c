/* base/csv.c - one pass over the text, cells cut in place */
#include "base/csv.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/plain.h"
#include "base/text.h"

struct scan {
	struct arena *mem;
	const char *file;
	char *p, *end, *line_start;
	int line;
	char between; /* two cells */
	struct ft_error *err;
	size_t n_read; /* rows, with those of empty cells */
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
	if (next_of(s) != s->between && next_of(s) != '\n') {
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
	char *text = s->p, *p = text, between = s->between;

	if (between == ',')
		while ((unsigned char)*p > ',' || (*p != ',' && *p != '\n' && *p))
			p++;
	else
		while (*p != between && *p != '\n' && *p)
			p++;
	s->p = p;
	return p > text && p[-1] == '\r' && *p != between ? p - 1 : p;
}

/* c holds the cell above, unquoted; is it here again? */
static bool is_again(const struct scan *s, const struct csv_cell *c)
{
	const char *end;

	if (!c->plain || *s->p != *c->text || (size_t)(s->end - s->p) < c->len ||
	    memcmp(s->p, c->text, c->len) != 0)
		return false;
	end = s->p + c->len;
	return *end == s->between || (*end == '\n' && end[-1] != '\r');
}

/* Take one cell into what holds the one above; *last when the line ended behind it. */
static bool take(struct scan *s, struct csv_cell *c, bool *last)
{
	char *text = s->p, *stop = NULL;

	c->place = here(s, s->p).column;
	c->same = is_again(s, c);
	if (c->same) {
		s->p += c->len;
	} else if (next_of(s) == '"') {
		text = quoted_cell(s);
		if (!text)
			return false;
		c->plain = false;
	} else {
		stop = plain_end(s);
		c->len = (size_t)(stop - text);
		c->plain = true;
	}
	*last = next_of(s) == '\n';
	if (stop)
		*stop = '\0';
	if (!c->same)
		c->text = text;
	if (s->p < s->end)
		s->p++;
	return true;
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

/* One line of cells; the count, or 0: an error that was told. */
static size_t row_of(struct scan *s, struct csv_cell *row, size_t most)
{
	bool last = false;
	size_t n = 0;

	while (!last) {
		if (n == most) {
			struct ft_mark at = here(s, s->p);

			ft_fail(s->err, &at,
				"this row has more than the "
				"header's %zu columns",
				most);
			return 0;
		}
		if (!take(s, &row[n++], &last))
			return 0;
	}
	s->line++;
	s->line_start = s->p;
	return n;
}

/* A header without a comma has the semicolons or tabs of a spreadsheet between its cells. */
static char between_cells(const struct scan *s)
{
	size_t left = (size_t)(s->end - s->p);
	const char *eol = memchr(s->p, '\n', left);
	size_t len = eol ? (size_t)(eol - s->p) : left;
	static const char signs[] = ",;\t";

	for (size_t i = 0; signs[i]; i++)
		if (memchr(s->p, signs[i], len))
			return signs[i];
	return ',';
}

static bool header(struct csv_rows *t)
{
	struct scan *s = t->scan;
	struct csv_cell *cell = ARENA_ARRAY(s->mem, LIMIT_CSV_COLUMNS, struct csv_cell);
	struct ft_mark at;
	size_t n;

	skip_blank(s);
	at = here(s, s->p);
	if (s->p >= s->end)
		return ft_fail(s->err, &at, "is empty: a header line is needed");
	s->between = between_cells(s);
	n = row_of(s, cell, LIMIT_CSV_COLUMNS);
	if (!n)
		return false;
	t->n_columns = n;
	t->column = ARENA_ARRAY(s->mem, t->n_columns, const char *);
	t->column_place = ARENA_ARRAY(s->mem, t->n_columns, int);
	t->header_line = at.line;
	for (size_t i = 0; i < n; i++) {
		t->column[i] = cell[i].text;
		at.column = t->column_place[i] = cell[i].place;
		for (size_t j = 0; j < i; j++)
			if (!strcmp(cell[i].text, cell[j].text))
				return ft_fail(s->err, &at,
					       "column '%.60s' is "
					       "given twice",
					       cell[i].text);
		if (!cell[i].text[0])
			return ft_fail(s->err, &at, "a column has no name");
	}
	t->cell = ARENA_ARRAY(s->mem, t->n_columns, struct csv_cell);
	return true;
}

/* text lies in mem, and becomes the cells. */
static struct csv_rows *cut(struct arena *mem, const char *name, char *text, size_t len,
			    struct ft_error *err)
{
	struct csv_rows *t = ARENA_NEW(mem, struct csv_rows);
	struct scan *s = ARENA_NEW(mem, struct scan);
	const char *fault;

	*s = (struct scan){ .mem = mem, .line = 1, .err = err };
	t->scan = s;
	t->file = s->file = arena_text(mem, name);
	if (len >= 3 && !memcmp(text, UTF8_MARK, 3)) {
		text += 3;
		len -= 3;
	}
	fault = csv_fault(text, len);
	if (fault) {
		ft_fail(err, &(struct ft_mark){ .file = t->file }, "%s", fault);
		return NULL;
	}
	s->p = s->line_start = text;
	s->end = s->p + len;
	return header(t) ? t : NULL;
}

struct csv_rows *csv_open_text(struct arena *mem, const char *name, const char *text,
			       size_t len, struct ft_error *err)
{
	return cut(mem, name, arena_text_n(mem, text, len), len, err);
}

struct csv_rows *csv_open_file(struct arena *mem, const char *path,
			       struct ft_error *err)
{
	size_t len;
	char *text = file_read(mem, path, LIMIT_CSV_BYTES, &len, err);

	return text ? cut(mem, path, text, len, err) : NULL;
}

/* Spreadsheets write rows of nothing but commas; what follows one is as in no row above. */
static bool says_nothing(struct csv_rows *t)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (t->cell[i].text[0])
			return false;
	for (size_t i = 0; i < t->n_columns; i++)
		t->cell[i].plain = false;
	return true;
}

static int next_row(struct csv_rows *t)
{
	struct scan *s = t->scan;
	struct ft_mark at;
	size_t n;

	skip_blank(s);
	if (s->p >= s->end)
		return 0;
	at = here(s, s->p);
	if (++s->n_read * t->n_columns > LIMIT_CSV_CELLS) {
		ft_fail(s->err, &at, "holds too many cells: more than %d",
			(int)LIMIT_CSV_CELLS);
		return -1;
	}
	t->line = s->line;
	n = row_of(s, t->cell, t->n_columns);
	if (!n)
		return -1;
	if (n != t->n_columns) {
		ft_fail(s->err, &at,
			"this row has %zu cells, the "
			"header %zu",
			n, t->n_columns);
		return -1;
	}
	return 1;
}

int csv_next(struct csv_rows *t)
{
	int more;

	do
		more = next_row(t);
	while (more > 0 && t->n_columns > 1 && says_nothing(t));
	t->n_rows += more > 0;
	return more;
}

/* A row ends a line, and has a byte between two cells. */
size_t csv_rows_most(const struct csv_rows *t)
{
	const struct scan *s = t->scan;
	size_t left = (size_t)(s->end - s->p), lines = 1;

	for (const char *p = s->p; (p = memchr(p, '\n', (size_t)(s->end - p))); p++)
		lines++;
	return lines < left / t->n_columns + 1 ? lines : left / t->n_columns + 1;
}

/* ---- whole tables ---------------------------------------------------------------- */

/* Room for one more row. */
static void make_room(struct arena *mem, struct csv *t, size_t *cap)
{
	size_t w = t->n_columns, rows = *cap ? 2 * *cap : 64;
	const char **cell;
	int *place, *line;

	if (t->n_rows < *cap)
		return;
	cell = ARENA_ARRAY(mem, rows * w, const char *);
	place = ARENA_ARRAY(mem, rows * w, int);
	line = ARENA_ARRAY(mem, rows, int);
	if (*cap) {
		memcpy(cell, t->cell, *cap * w * sizeof(*cell));
		memcpy(place, t->place, *cap * w * sizeof(*place));
		memcpy(line, t->line, *cap * sizeof(*line));
	}
	t->cell = cell;
	t->place = place;
	t->line = line;
	*cap = rows;
}

static struct csv *all_of(struct arena *mem, struct csv_rows *rows)
{
	struct csv *t;
	size_t cap = 0;
	int more;

	if (!rows)
		return NULL;
	t = ARENA_NEW(mem, struct csv);
	t->file = rows->file;
	t->n_columns = rows->n_columns;
	t->column = rows->column;
	t->column_place = rows->column_place;
	t->header_line = rows->header_line;
	while ((more = csv_next(rows)) > 0) {
		size_t at = t->n_rows * t->n_columns;

		make_room(mem, t, &cap);
		t->line[t->n_rows++] = rows->line;
		for (size_t i = 0; i < t->n_columns; i++) {
			t->cell[at + i] = rows->cell[i].text;
			t->place[at + i] = rows->cell[i].place;
		}
	}
	return more < 0 ? NULL : t;
}

struct csv *csv_read_text(struct arena *mem, const char *name, const char *text,
			  size_t len, struct ft_error *err)
{
	return all_of(mem, csv_open_text(mem, name, text, len, err));
}

struct csv *csv_read_file(struct arena *mem, const char *path, struct ft_error *err)
{
	return all_of(mem, csv_open_file(mem, path, err));
}

static int column_of(const char *const *column, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(column[i], name))
			return (int)i;
	return -1;
}

int csv_column(const struct csv *t, const char *name)
{
	return column_of(t->column, t->n_columns, name);
}

int csv_rows_column(const struct csv_rows *t, const char *name)
{
	return column_of(t->column, t->n_columns, name);
}

const char *csv_text(const struct csv *t, size_t row, int column)
{
	return column < 0 ? "" : t->cell[row * t->n_columns + (size_t)column];
}

struct ft_mark csv_column_mark(const struct csv *t, size_t column)
{
	return (struct ft_mark){ t->file, t->header_line, t->column_place[column] };
}

struct ft_mark csv_mark(const struct csv *t, size_t row, int column)
{
	int place = column < 0 ? 1 : t->place[row * t->n_columns + (size_t)column];

	return (struct ft_mark){ t->file, t->line[row], place };
}

static bool number_of(const char *text, const struct ft_mark *at, double *value,
		      struct ft_error *err)
{
	char *end;

	*value = plain_number(text, &end);
	if (plain_is_hexadecimal(text))
		return ft_fail(err, at, "'%.40s' is hexadecimal; write decimals", text);
	if (!*end && isfinite(*value))
		return true;
	if (end > text && *end == ',')
		return ft_fail(err, at,
			       "'%.40s' is not a number; a point stands before "
			       "decimals, and nothing between thousands",
			       text);
	if (end > text)
		return ft_fail(err, at,
			       "'%.40s' is not a number; it stands alone, in the unit "
			       "that its column names",
			       text);
	return ft_fail(err, at, "'%.40s' is not a number", text);
}

bool csv_number(const struct csv *t, size_t row, int column, double fallback,
		double *value, struct ft_error *err)
{
	const char *text = csv_text(t, row, column);
	struct ft_mark at;

	*value = fallback;
	if (!text[0])
		return true;
	at = csv_mark(t, row, column);
	return number_of(text, &at, value, err);
}

bool csv_truth(const struct csv *t, size_t row, int column, bool *value,
	       struct ft_error *err)
{
	const char *text = csv_text(t, row, column);
	struct ft_mark at = csv_mark(t, row, column);

	*value = !strcasecmp(text, "true") || !strcmp(text, "1");
	return *value || !text[0] || !strcasecmp(text, "false") || !strcmp(text, "0") ||
	       ft_fail(err, &at, "%s should be true or false, not '%.40s'",
		       t->column[column], text);
}

struct ft_mark csv_rows_mark(const struct csv_rows *t, size_t column)
{
	return (struct ft_mark){ t->file, t->line, t->cell[column].place };
}

bool csv_rows_number(const struct csv_rows *t, size_t column, double *value)
{
	struct ft_mark at = csv_rows_mark(t, column);

	*value = 0;
	return !t->cell[column].text[0] ||
	       number_of(t->cell[column].text, &at, value, t->scan->err);
}
