/* base/text.c - edit distance and joined lists */
#include "base/text.h"

#include <stdlib.h>
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

/* Lower case, without the signs that people put between words or leave out. */
static size_t plain(const char *word, char out[LONGEST + 1])
{
	size_t n = 0;

	for (; *word && n < LONGEST; word++)
		if (!strchr("-_. ", *word))
			out[n++] = *word >= 'A' && *word <= 'Z' ?
					   (char)(*word - 'A' + 'a') :
					   *word;
	out[n] = '\0';
	return n;
}

/* How far apart: 0 the same, 1 when word begins other, else twice the edit distance. */
static size_t apart(const char *word, size_t len, const char *other, size_t n)
{
	return len >= 3 && len < n && !strncmp(word, other, len) ?
		       1 :
		       2 * distance(word, len, other, n);
}

/* Who misspells a word rarely does so at its first letter: V100 is not meant for A800. */
static bool begins_as(const char *word, const char *found)
{
	char other[LONGEST + 1];

	plain(found ? found : "", other);
	return word[0] == other[0];
}

const char *text_nearest(const char *word, const char *const *list, size_t n)
{
	char mine[LONGEST + 1], other[LONGEST + 1];
	size_t len = plain(word, mine), best = 2 * LONGEST, shortest = LONGEST;
	const char *found = NULL;

	if (strlen(word) > LONGEST)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t other_len = plain(list[i], other);
		size_t d = apart(mine, len, other, other_len);

		if (strlen(list[i]) > LONGEST || d > best ||
		    (d == best && other_len >= shortest))
			continue;
		best = d;
		shortest = other_len;
		found = list[i];
	}
	if (best <= 2 || 3 * best <= 2 * (len + (begins_as(mine, found) ? 2 : 0)))
		return found;
	for (size_t i = 0; len >= 4 && i < n; i++) { /* a part of a name */
		plain(list[i], other);
		if (strstr(other, mine))
			return list[i];
	}
	return NULL;
}

size_t text_place(const char *word, const char *const *list, size_t n)
{
	size_t i = 0;

	while (i < n && strcmp(list[i], word) != 0)
		i++;
	return i;
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

/* How many bytes the character at p has; 0: it is none of UTF-8. */
static size_t character(const unsigned char *p)
{
	static const struct {
		unsigned mask, lead, least;
	} forms[] = { { 0x80, 0, 0 },
		      { 0xe0, 0xc0, 0x80 },
		      { 0xf0, 0xe0, 0x800 },
		      { 0xf8, 0xf0, 0x10000 } };

	for (size_t n = 0; n < 4; n++) {
		unsigned value = *p & ~forms[n].mask;

		if ((*p & forms[n].mask) != forms[n].lead)
			continue;
		for (size_t i = 1; i <= n; i++) {
			if ((p[i] & 0xc0) != 0x80)
				return 0;
			value = value << 6 | (p[i] & 0x3f);
		}
		return value < forms[n].least || value > 0x10ffff ||
				       value >> 11 == 0xd800 >> 11 ?
			       0 :
			       n + 1;
	}
	return 0;
}

void text_mend(char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	char *to = text;

	while (*p) {
		size_t n = character(p);

		if (n) {
			memmove(to, p, n);
			to += n, p += n;
			continue;
		}
		while (*p && !character(p))
			p++;
		*to++ = '?';
	}
	*to = '\0';
}

bool text_ends_with(const char *text, const char *tail)
{
	size_t n = strlen(text), t = strlen(tail);

	return n >= t && !strcmp(text + n - t, tail);
}

/* So many digits; -1: other signs, or fewer. */
static int digits_of(const char *text, int n)
{
	int value = 0;

	for (int i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = 10 * value + (text[i] - '0');
	}
	return value;
}

bool text_month(const char *text, int *year, int *month)
{
	int y = digits_of(text, 4), m = 1;

	if (y < 1970 || (text[4] && text[4] != '-'))
		return false;
	if (text[4] == '-') {
		m = digits_of(text + 5, 2);
		if (m < 1 || m > 12 || (text[7] && text[7] != '-'))
			return false;
	}
	*year = y;
	*month = m;
	return true;
}

/* Ten times as much and a digit, of the sign that is wanted; false: an int64_t does not hold it. */
static bool append_digit(int64_t *value, int digit, bool negative)
{
	return !__builtin_mul_overflow(*value, INT64_C(10), value) &&
	       !__builtin_add_overflow(*value, negative ? -digit : digit, value);
}

/* A number as it is written: its digits with their point, and how many are ahead of it once all is read. */
struct written {
	const char *digits, *end;
	long ahead;
};

static bool take_apart(const char *text, struct written *w)
{
	const char *at = w->digits = text, *point = NULL;
	long times = 0; /* powers of ten */

	for (; (*at >= '0' && *at <= '9') || (*at == '.' && !point); at++)
		if (*at == '.')
			point = at;
	w->end = at;
	w->ahead = (point ? point : at) - text;
	if (at - text <= (point ? 1 : 0)) /* not a digit */
		return false;
	if (*at == 'e' || *at == 'E') {
		char *past;

		times = strtol(at + 1, &past, 10);
		if (past == at + 1 || at[1] <= ' ')
			return false;
		at = past;
	}
	w->ahead += times > INT16_MAX  ? INT16_MAX :
		    times < -INT16_MAX ? -INT16_MAX :
					 times;
	return !*at;
}

bool text_whole(const char *text, int64_t *value, bool *beyond)
{
	const char *at = text + strspn(text, " \t\n");
	bool negative = *at == '-', rest = false;
	struct written w;

	*value = 0;
	*beyond = false;
	if (!take_apart(at + (*at == '-' || *at == '+'), &w))
		return false;
	for (const char *d = w.digits; d < w.end; d++) {
		if (*d == '.')
			continue;
		if (w.ahead-- > 0)
			*beyond |= !append_digit(value, *d - '0', negative);
		else
			rest |= *d != '0';
	}
	for (; w.ahead > 0 && *value && !*beyond; w.ahead--)
		*beyond = !append_digit(value, 0, negative);
	*beyond &= !rest;
	return !rest && !*beyond;
}

void text_put_xml(FILE *out, const char *text)
{
	static const struct {
		char plain;
		const char *safe;
	} unsafe[] = { { '<', "&lt;" },
		       { '>', "&gt;" },
		       { '&', "&amp;" },
		       { '"', "&quot;" },
		       { '\'', "&#39;" } };

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		const char *safe =
			c < 0x20 && c != '\t' && c != '\n' && c != '\r' ? "?" : NULL;

		for (size_t i = 0; i < sizeof(unsafe) / sizeof(*unsafe); i++)
			if (*text == unsafe[i].plain)
				safe = unsafe[i].safe;
		if (safe)
			fputs(safe, out);
		else
			putc(c, out);
	}
}
