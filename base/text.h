/*
 * base/text.h - small work on words: the nearest known one, lists of them
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct arena;

/* The word of list nearest to word by edit distance, or NULL when none is
 * near enough to be worth suggesting (more than a third of it would change). */
const char *text_nearest(const char *word, const char *const *list, size_t n);

/* "a, b, c" */
char *text_join(struct arena *mem, const char *const *list, size_t n);

bool text_ends_with(const char *text, const char *tail);

#endif
