/*
 * tests/printed.h - tables as they were printed, read back from where their columns stand
 *
 * Columns are parted by two blanks that all lines have. A column of numbers is flush right, one of
 * texts flush left, and each is as wide as its widest cell: no blank more.
 */
#ifndef TESTS_PRINTED_H
#define TESTS_PRINTED_H

#include "base/arena.h"
#include "tests/check.h"

enum { PRINTED_COLUMNS = 24, PRINTED_LINES = 400 };

struct printed {
	struct arena mem;
	size_t columns, lines; /* the head is line 0 */
	const char *cell[PRINTED_LINES][PRINTED_COLUMNS];
	bool right[PRINTED_COLUMNS]; /* all cells end at one place */
	bool left[PRINTED_COLUMNS];  /* and begin so */
};

/* text: what a report prints on `out`, to be freed. */
#define PRINTED(text, report) \
	do { \
		size_t size_ = 0; \
		FILE *out = open_memstream(&(text), &size_); \
		assert_non_null(out); \
		report; \
		fclose(out); \
	} while (0)

/* The lines of a table, up to an empty one. */
static inline size_t printed_lines(struct printed *p, const char *at, const char **line)
{
	size_t n = 0;

	while (*at && *at != '\n') {
		size_t k = strcspn(at, "\n");

		assert_true(n < PRINTED_LINES);
		line[n++] = arena_text_n(&p->mem, at, k);
		at += k + (at[k] == '\n');
	}
	return n;
}

static inline bool printed_blank(const char *const *line, size_t n, size_t at)
{
	for (size_t i = 0; i < n; i++)
		if (at < strlen(line[i]) && line[i][at] != ' ')
			return false;
	return true;
}

static inline void printed_column(struct printed *p, const char *const *line,
				  size_t begin, size_t end)
{
	size_t c = p->columns++;

	assert_true(c < PRINTED_COLUMNS);
	p->left[c] = p->right[c] = true;
	for (size_t i = 0; i < p->lines; i++) {
		size_t from = begin, to = strlen(line[i]) < end ? strlen(line[i]) : end;

		while (from < to && line[i][from] == ' ')
			from++;
		while (to > from && line[i][to - 1] == ' ')
			to--;
		p->cell[i][c] =
			from < to ? arena_text_n(&p->mem, line[i] + from, to - from) :
				    "";
		if (from < to) {
			p->left[c] &= from == begin;
			p->right[c] &= to == end;
		}
	}
}

/* The table whose head begins so, of a text. */
static inline void printed_read(struct printed *p, const char *text, const char *head)
{
	const char *line[PRINTED_LINES], *at = text;
	size_t width = 0, begin = 0;

	*p = (struct printed){ .columns = 0 };
	while (at && strncmp(at, head, strlen(head)) != 0)
		at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
	if (!at)
		fail_msg("there is no table '%s' in\n%s", head, text);
	p->lines = printed_lines(p, at, line);
	for (size_t i = 0; i < p->lines; i++)
		width = strlen(line[i]) > width ? strlen(line[i]) : width;
	for (size_t end = 0; end <= width; end++) {
		if (end < width && !(printed_blank(line, p->lines, end) &&
				     printed_blank(line, p->lines, end + 1)))
			continue;
		printed_column(p, line, begin, end);
		begin = end += 2;
		assert_true(end >= width || !printed_blank(line, p->lines, end));
	}
}

static inline void printed_drop(struct printed *p)
{
	struct arena mem = p->mem;

	arena_release(&mem);
}

/* Heads as TABLE_OPEN takes them: '>' says that cells are flush right. */
static inline void printed_heads(const struct printed *p, const char *const *head)
{
	size_t n = 0;

	for (; head[n]; n++) {
		bool right = head[n][0] == '>';

		assert_true(n < p->columns);
		assert_string_equal(p->cell[0][n], head[n] + right);
		if (!(right ? p->right[n] : p->left[n]))
			fail_msg("column '%s' is not flush %s", head[n],
				 right ? "right" : "left");
	}
	assert_int_equal(n, p->columns);
}

#define PRINTED_HEADS(p, ...) \
	printed_heads(p, (const char *const[]){ __VA_ARGS__, NULL })

/* A cell says what is said in this way. */
#define PRINTED_IS(p, line, column, ...) \
	do { \
		char want_[512]; \
		snprintf(want_, sizeof(want_), __VA_ARGS__); \
		assert_true((line) < (p)->lines && (size_t)(column) < (p)->columns); \
		assert_string_equal((p)->cell[line][column], want_); \
	} while (0)

#endif
