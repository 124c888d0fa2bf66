/* base/text.c - edit distance and joined lists */
#include "base/text.h"

#include <string.h>

#include "base/arena.h"
#include "base/limits.h"

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

bool text_is_name(const char *text)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrst"
				      "uvwxyz0123456789._+ -";
	size_t n = strlen(text);

	return n && n <= LIMIT_NAME_BYTES && strspn(text, letters) == n &&
	       !strchr("._+ -", text[0]);
}

/* C0, DEL, and the first byte of C1 in UTF-8 */
static bool is_control(const unsigned char *p)
{
	return p[0] < ' ' || p[0] == 127 ||
	       (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0);
}

void text_visible(const char *text, char *to, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *p = (const unsigned char *)text;

	for (; *p && n > 1; p++) {
		if (!is_control(p)) {
			*to++ = (char)*p;
			n--;
			continue;
		}
		if (n < 5)
			break;
		*to++ = '\\';
		*to++ = 'x';
		*to++ = digits[*p >> 4];
		*to++ = digits[*p & 15];
		n -= 4;
	}
	*to = '\0';
}

bool text_ends_with(const char *text, const char *tail)
{
	size_t n = strlen(text), t = strlen(tail);

	return n >= t && !strcmp(text + n - t, tail);
}
