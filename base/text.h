/*
 * base/text.h - small work on words: the nearest known one, lists of them
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct arena;

/* The same words? Most that are compared differ in their first letter. */
static inline bool text_same(const char *a, const char *b)
{
	return *a == *b && !strcmp(a, b);
}

/* The word of list that was probably meant: the same but for case and for - _ . and blanks,
 * the shortest that begins with it, the nearest by edit distance, one that holds it. NULL
 * when none is near enough to be worth suggesting (more than a third would change, or less
 * than that where the first letter is another). */
const char *text_nearest(const char *word, const char *const *list, size_t n);

/* "a, b, c" */
char *text_join(struct arena *mem, const char *const *list, size_t n);

/* The place of a word in a list of n; n: it is not there. */
size_t text_place(const char *word, const char *const *list, size_t n);

/* Letters, digits, spaces and ._+-, beginning with a letter or a digit, not longer
 * than LIMIT_NAME_BYTES: it means the same in a script, a page and a file name. */
bool text_is_name(const char *text);
#define TEXT_NAME_RULE \
	"is not a name: write at most %d letters, digits, spaces and ._+-, " \
	"the first a letter or a digit"

/* text into to[n], control characters as \xNN; what does not fit is cut. */
void text_visible(const char *text, char *to, size_t n);
/* In place: bytes that are part of no character of UTF-8, as where a text was cut within one,
 * become one question mark. */
void text_mend(char *text);

/* text as it may stand in XML and HTML, in quotes too; control characters but for tabs and
 * line ends, which XML cannot hold, as ?. */
void text_put_xml(FILE *out, const char *text);

static inline bool text_begins_with(const char *text, const char *head)
{
	return !strncmp(text, head, strlen(head));
}
/* What stands behind the last point of a dotted path; all of it without one. */
static inline const char *text_last_word(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot ? dot + 1 : path;
}

bool text_ends_with(const char *text, const char *tail);

/* The year and month of "2026-11" or "2026-11-22"; of "2026" its first month. false: none. */
bool text_month(const char *text, int *year, int *month);

/* The whole number that text is, however it is written: 4, 4.0, 4e3, 0.5e1. false: it is none, and *beyond
 * says whether it would be one of more than 18 digits. */
bool text_whole(const char *text, int64_t *value, bool *beyond);

/* The mark that some editors put before a text in UTF-8. */
#define UTF8_MARK "\xef\xbb\xbf"

#endif
