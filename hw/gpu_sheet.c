/* hw/gpu_sheet.c - files of numbers and words, one pass */
#include "hw/gpu_sheet.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/plain.h"
#include "base/text.h"

enum { LARGEST_FILE = 64 * 1024 * 1024 };

static bool ends_cell(char c)
{
	return c == ',' || c == '\n' || c == '\r' || !c;
}

static bool ends_row(char c)
{
	return c != ',' && ends_cell(c);
}

static size_t cell_bytes(const char *p)
{
	const char *end = p;

	while ((unsigned char)*end > ',' || !ends_cell(*end))
		end++;
	return (size_t)(end - p);
}

/* *p is a row that is neither empty nor a comment, or the end. */
static char *to_row(struct sheet *s, char *p)
{
	while (*p == '#' || *p == '\n' || *p == '\r') {
		s->line += *p != '\r';
		if (*p == '#')
			p += strcspn(p, "\n");
		p += *p != '\0';
	}
	s->line++;
	return p;
}

static char *after_row(char *end)
{
	if (*end == '\r' && end[1] == '\n')
		end++;
	return end + (*end != '\0');
}

/* A mistake in the cell that begins at `cell` of this row; returns false. */
static bool refuse(const struct sheet *s, const char *cell, const char *why)
{
	struct ft_mark at = { s->path, s->line, (int)(cell - s->start) + 1 };
	size_t len = cell_bytes(cell);

	return ft_fail(s->err, &at, "'%.*s' %s", len < 40 ? (int)len : 40, cell, why);
}

/* ---- one row ------------------------------------------------------------------- */

/* The number at p, with what strtod passes over before it. Returns its end; NULL: a mistake,
 * which is told. */
static char *number(const struct sheet *s, char *p, double *value)
{
	char *end;
	bool whole;

	*value = plain_number(p, &end);
	/* an end of line is white space to strtod: it may have gone too far */
	whole = *p > ' ' ? ends_cell(*end) : end == p + cell_bytes(p);
	if (whole && end > p && *value > 0 && isfinite(*value))
		return end;
	refuse(s, p,
	       ends_cell(*p) || (whole && isfinite(*value)) ?
		       "is not a number above zero" :
		       "is not a number");
	return NULL;
}

/* The word at p; returns its end. */
static char *word(struct sheet_cell *c, char *p)
{
	c->same = c->text && !strncmp(p, c->text, c->len) && ends_cell(p[c->len]);
	if (c->same)
		return p + c->len;
	c->text = p;
	c->len = cell_bytes(p);
	return p + c->len;
}

static size_t count_cells(const char *p)
{
	size_t n = 1;

	for (; !ends_row(*p); p++)
		n += *p == ',';
	return n;
}

static int wrong_width(const struct sheet *s)
{
	struct ft_mark at = { s->path, s->line, 1 };

	ft_fail(s->err, &at, "this row has %zu cells, the header %zu",
		count_cells(s->start), s->width);
	return -1;
}

int sheet_next(struct sheet *s)
{
	char *p = to_row(s, s->next);
	bool words = false; /* others than in the row before */

	s->start = p;
	if (!*p)
		return 0;
	for (size_t i = 0; i < s->width; i++) {
		struct sheet_cell *c = &s->cell[i];

		c->begin = p;
		if (c->number) {
			p = number(s, p, &c->value);
		} else {
			p = word(c, p);
			words = words || !c->same;
		}
		if (!p)
			return count_cells(s->start) == s->width ? -1 : wrong_width(s);
		if (i + 1 < s->width ? *p++ != ',' : !ends_row(*p))
			return wrong_width(s);
	}
	s->next = after_row(p);
	/* only now: what is told of a row needs its commas */
	for (size_t i = 0; words && i < s->width; i++)
		if (!s->cell[i].number && !s->cell[i].same)
			s->cell[i].text[s->cell[i].len] = '\0';
	return 1;
}

/* ---- runs of rows ---------------------------------------------------------------- */

/* Notes the words of this row through cell `last`; returns where they end, NULL: mistaken. */
static char *leading_words(struct sheet *s, size_t last)
{
	char *p = s->start;

	for (size_t i = 0;; i++) {
		struct sheet_cell *c = &s->cell[i];

		c->begin = c->text = p;
		c->len = cell_bytes(p);
		p += c->len;
		if (i + 1 < s->width ? *p != ',' : !ends_row(*p)) {
			wrong_width(s);
			return NULL;
		}
		if (i == last)
			return p;
		p++;
	}
}

static char *row_end(const struct sheet *s, char *p)
{
	return s->returns ? p + strcspn(p, "\r\n") : strchrnul(p, '\n');
}

int sheet_run(struct sheet *s, size_t n_keys, struct sheet_run *run)
{
	size_t last = 0, lead;
	char *p;

	s->line += s->passed;
	s->passed = 0;
	s->start = to_row(s, s->next);
	*run = (struct sheet_run){ s->start, s->line, 0 };
	if (!*s->start)
		return 0;
	for (size_t i = 0; i < n_keys; i++)
		if (s->at[i] > last)
			last = s->at[i];
	p = leading_words(s, last);
	if (!p)
		return -1;
	lead = (size_t)(p - s->start);
	do {
		run->n_rows++;
		p = to_row(s, after_row(row_end(s, p)));
	} while (*p && !strncmp(p, s->start, lead) && ends_cell(p[lead]));
	s->next = p;
	s->passed = s->line - 1 - run->line;
	s->line = run->line;
	return 1;
}

const char *sheet_word(const struct sheet *s, int i, char to[SHEET_WORD])
{
	const struct sheet_cell *c = &s->cell[s->at[i]];
	size_t len = c->len < SHEET_WORD ? c->len : SHEET_WORD - 1;

	memcpy(to, c->text, len);
	to[len] = '\0';
	return to;
}

static void forget_words(struct sheet *s)
{
	for (size_t c = 0; c < s->width; c++)
		s->cell[c].text = NULL;
}

void sheet_to_run(struct sheet *s, const struct sheet_run *run)
{
	s->next = run->begin;
	s->line = run->line - 1;
	s->passed = 0;
	forget_words(s);
}

/* ---- the file ------------------------------------------------------------------ */

/* The header's cells as words; false: more than there is room for. */
static bool read_header(struct sheet *s)
{
	char *p = s->start;

	for (s->width = 0; s->width < SHEET_CELLS; p++) {
		struct sheet_cell *c = &s->cell[s->width++];

		p = word(c, p);
		if (ends_row(*p)) {
			s->next = after_row(p);
			return true;
		}
	}
	return false;
}

bool sheet_open(struct sheet *s, struct arena *mem, const char *path,
		const struct sheet_column *columns, size_t n, struct ft_error *err)
{
	struct ft_mark top = { path, 1, 1 };
	char *text;
	size_t len;

	*s = (struct sheet){ .path = path, .err = err };
	text = file_read(mem, path, LARGEST_FILE, &len, err);
	if (!text)
		return false;
	if (strlen(text) != len)
		return ft_fail(err, &top, "is binary, not CSV text");
	if (text_begins_with(text, UTF8_MARK))
		text += strlen(UTF8_MARK);
	s->returns = strchr(text, '\r');
	s->start = to_row(s, text);
	if (!*s->start)
		return ft_fail(err, &top, "is empty: a header line is needed");
	top.line = s->line;
	if (!read_header(s))
		return ft_fail(err, &top, "has more than %d columns", SHEET_CELLS);
	for (size_t i = 0; i < n; i++) {
		size_t c = 0, have = strlen(columns[i].name);

		while (c < s->width && (s->cell[c].len != have ||
					memcmp(s->cell[c].text, columns[i].name, have)))
			c++;
		if (c == s->width)
			return ft_fail(err, &top, "lacks the column '%s'",
				       columns[i].name);
		s->at[i] = c;
		s->cell[c].number = columns[i].number;
	}
	forget_words(s); /* the header is no row before */
	return true;
}

/* ---- of this row ------------------------------------------------------------------ */

bool sheet_refuse(const struct sheet *s, int i, const char *why)
{
	return refuse(s, s->cell[s->at[i]].begin, why);
}

bool sheet_choice(const struct sheet *s, int i, const char *const *names, int n,
		  int *value)
{
	if (sheet_same(s, i))
		return true;
	for (*value = 0; *value < n; ++*value)
		if (!strcmp(names[*value], sheet_text(s, i)))
			return true;
	return sheet_refuse(s, i, "is not known here");
}
