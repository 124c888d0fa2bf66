/* tests/fuzz/changes.c - bytes flipped, words swapped, numbers that are none */
#include "tests/fuzz/changes.h"

#include <stdbool.h>
#include <string.h>

static uint64_t next(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static size_t below(uint64_t *state, size_t n)
{
	return n ? (size_t)(next(state) % n) : 0;
}

static const char *const nasty[] = {
	"0",
	"-1",
	"1e308",
	"-1e308",
	"nan",
	"inf",
	"1e-300",
	"1e29",
	"1e-30",
	"9223372036854775807",
	"-9223372036854775808",
	"18446744073709551616",
	"2147483648",
	"4294967295",
	"1000000000",
	"1e18",
	"1e9",
	"0.1",
	"",
	"~",
	"true",
	"[]",
	"{}",
	"*a",
	"&a [*a]",
	"\"",
	"'",
	"%s%n",
	"../../../etc/passwd",
	"\x1b[2J",
	"<script>",
	"1e9 s",
	"0 s",
	"1e29 s",
	"0 B",
	"1e21 B",
	"0 %",
	"-5 GB/s",
	"1e-9 B",
	"1",
	"2",
	"65536",
	"1048576",
	",",
	":",
	"\n",
	"x'; system('id'); #",
};

enum { NASTY = sizeof(nasty) / sizeof(*nasty) };

/* data[at, at + gone) becomes text. */
static void splice(struct seed *s, size_t at, size_t gone, const void *text, size_t n)
{
	if (at > s->n)
		at = s->n;
	if (gone > s->n - at)
		gone = s->n - at;
	if (s->n - gone + n > LONGEST)
		return;
	memmove(s->data + at + n, s->data + at + gone, s->n - at - gone);
	memcpy(s->data + at, text, n);
	s->n = s->n - gone + n;
}

static bool in_word(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-' || c == '+';
}

/* A word at or behind a place: its beginning and length. */
static size_t word(const struct seed *s, size_t from, bool number, size_t *n)
{
	for (size_t i = from; i < s->n; i++) {
		size_t end = i;

		if (!in_word(s->data[i]) || (i && in_word(s->data[i - 1])))
			continue;
		while (end < s->n && in_word(s->data[end]))
			end++;
		if (number && !(s->data[i] >= '0' && s->data[i] <= '9'))
			continue;
		*n = end - i;
		return i;
	}
	*n = 0;
	return s->n;
}

static size_t line(const struct seed *s, size_t from, size_t *n)
{
	size_t begin = from < s->n ? from : 0, end;

	while (begin && s->data[begin - 1] != '\n')
		begin--;
	end = begin;
	while (end < s->n && s->data[end] != '\n')
		end++;
	*n = end - begin + (end < s->n);
	return begin;
}

static void swap_words(struct seed *s, uint64_t *state)
{
	size_t na, nb, a = word(s, below(state, s->n), false, &na),
		       b = word(s, below(state, s->n), false, &nb);
	uint8_t keep[64];

	if (!na || !nb || na > sizeof(keep) || nb > sizeof(keep) || a + na > b)
		return;
	memcpy(keep, s->data + b, nb);
	splice(s, b, nb, s->data + a, na);
	splice(s, a, na, keep, nb);
}

static void change(struct seed *s, uint64_t *state)
{
	static uint8_t copy[LONGEST];
	const char *bad = nasty[below(state, NASTY)];
	size_t at = below(state, s->n), n;

	switch (below(state, 10)) {
	case 0:
		if (s->n)
			s->data[at] ^= (uint8_t)(1u << below(state, 8));
		break;
	case 1:
		if (s->n)
			s->data[at] = (uint8_t)next(state);
		break;
	case 2:
		s->n = at;
		break;
	case 3:
		splice(s, at, below(state, 40), "", 0);
		break;
	case 4:
		splice(s, at, 0, bad, strlen(bad));
		break;
	case 5:
		swap_words(s, state);
		break;
	case 6: /* a line, twice or gone */
		at = line(s, at, &n);
		memcpy(copy, s->data + at, n);
		splice(s, at, below(state, 2) ? n : 0, copy, below(state, 2) ? n : 0);
		break;
	default: /* what an input is likeliest to get wrong: a number, a word */
		at = word(s, at, below(state, 4) > 0, &n);
		splice(s, at, n, bad, strlen(bad));
	}
}

/* One number becomes another, so that the rest is still read and used. */
static void change_number(struct seed *s, uint64_t *state)
{
	static const char *const numbers[] = {
		"0",	      "1",
		"2",	      "3",
		"7",	      "64",
		"1000",	      "65536",
		"1e6",	      "1e9",
		"1e12",	      "1e18",
		"1e30",	      "1e-3",
		"1e-9",	      "1e-30",
		"0.5",	      "0.999",
		"1.5",	      "100",
		"1048576",    "1000000",
		"16777216",   "1073741824",
		"4294967296", "9223372036854775807",
	};
	const char *to = numbers[below(state, sizeof(numbers) / sizeof(*numbers))];
	size_t from = below(state, s->n), at = from, end;

	while (at < s->n && !(s->data[at] >= '0' && s->data[at] <= '9' &&
			      !(at && in_word(s->data[at - 1]))))
		at++;
	end = at;
	while (end < s->n &&
	       ((s->data[end] >= '0' && s->data[end] <= '9') || s->data[end] == '.'))
		end++;
	splice(s, at, end - at, to, strlen(to));
}

struct seed changed(const struct seeds *from, uint64_t seed, long i, uint8_t *data)
{
	uint64_t state = seed * UINT64_C(1000003) + (uint64_t)i;
	const struct seed *s = &from->of[below(&state, from->n)];
	struct seed out = { data, s->n };

	memcpy(data, s->data, s->n);
	if (below(&state, 2)) {
		change_number(&out, &state);
		return out;
	}
	for (size_t k = 1 + below(&state, 6); k > 0; k--)
		change(&out, &state);
	return out;
}
