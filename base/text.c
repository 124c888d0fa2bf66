/* base/text.c - edit distance and joined lists */
#include "base/text.h"

#include <string.h>

#include "base/arena.h"

enum { LONGEST = 64 };

/* Levenshtein distance, one row at a time; a swap of neighbours counts 2. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t row[LONGEST + 1];

	for (size_t j = 0; j <= nb; j++)
		row[j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t above_left = row[0];

		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			size_t best = above_left + (a[i - 1] != b[j - 1]);

			above_left = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[nb];
}

const char *text_nearest(const char *word, const char *const *list, size_t n)
{
	size_t len = strlen(word), best = LONGEST;
	const char *found = NULL;

	if (len > LONGEST)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t other = strlen(list[i]), d;

		if (other > LONGEST)
			continue;
		d = distance(word, len, list[i], other);
		if (d < best) {
			best = d;
			found = list[i];
		}
	}
	return best <= 1 || 3 * best <= len + 2 ? found : NULL;
}

char *text_join(struct arena *mem, const char *const *list, size_t n)
{
	size_t len = 1;
	char *text, *p;

	for (size_t i = 0; i < n; i++)
		len += strlen(list[i]) + 2;
	p = text = arena_alloc(mem, len, 1);
	for (size_t i = 0; i < n; i++) {
		size_t part = strlen(list[i]);

		if (i) {
			memcpy(p, ", ", 2);
			p += 2;
		}
		memcpy(p, list[i], part);
		p += part;
	}
	return text;
}

bool text_ends_with(const char *text, const char *tail)
{
	size_t n = strlen(text), t = strlen(tail);

	return n >= t && !strcmp(text + n - t, tail);
}
