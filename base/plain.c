/* base/plain.c - the "C" locale for a thread, and back; numbers read fast */
#include "base/plain.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

locale_t plain_numbers_begin(void)
{
	/* of "C" the C library hands out one object that is always there */
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);

	return uselocale(c);
}

void plain_numbers_end(locale_t *before)
{
	uselocale(*before);
}

/* More digits than fit go round: the caller counts them. */
static const char *read_digits(const char *p, uint64_t *digits)
{
	for (unsigned d; (d = (unsigned)*p - '0') <= 9; p++)
		*digits = 10 * *digits + d;
	return p;
}

/* Digits, and powers of ten, that a double holds exactly. */
enum { MOST = 15, TENS = 23 };

/* *p is behind the e of an exponent; false: none of one or two digits stands there. */
static bool read_exponent(const char **p, int *exponent)
{
	bool minus = **p == '-';
	const char *begin = *p + (minus || **p == '+');
	uint64_t digits = 0;

	*p = read_digits(begin, &digits);
	*exponent = minus ? -(int)digits : (int)digits;
	return *p > begin && *p - begin <= 2;
}

bool plain_is_hexadecimal(const char *text)
{
	while (*text == ' ')
		text++;
	text += *text == '-' || *text == '+';
	return text[0] == '0' && (text[1] | 0x20) == 'x';
}

double plain_number(const char *text, char **end)
{
	static const double tens[TENS] = { 1,	 1e1,  1e2,  1e3,  1e4,	 1e5,
					   1e6,	 1e7,  1e8,  1e9,  1e10, 1e11,
					   1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
					   1e18, 1e19, 1e20, 1e21, 1e22 };
	const char *begin = text + (*text == '-'), *p, *point;
	uint64_t digits = 0;
	double value;
	int tenth = 0, exponent = 0;

	point = p = read_digits(begin, &digits);
	if (*p == '.') {
		p = read_digits(p + 1, &digits);
		tenth = (int)(p - point - 1);
	}
	/* no digit, too many, a hexadecimal number */
	if (p - begin <= (p > point) || p - begin > MOST || (*p | 0x20) == 'x')
		return strtod(text, end);
	if ((*p | 0x20) == 'e' && (p++, !read_exponent(&p, &exponent)))
		return strtod(text, end);
	exponent -= tenth;
	/* one rounding, of two numbers that are exact */
	if (exponent <= -TENS || exponent >= TENS)
		return strtod(text, end);
	*end = (char *)(uintptr_t)p;
	value = (double)digits;
	value = exponent < 0 ? value / tens[-exponent] : value * tens[exponent];
	return *text == '-' ? -value : value;
}
