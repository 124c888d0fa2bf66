/* base/plain.c - the "C" locale for a thread, and back; numbers read fast */
#include "base/plain.h"

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

double plain_number(const char *text, char **end)
{
	enum { MOST = 15 }; /* digits that a double holds exactly */
	static const double tens[MOST] = { 1,	1e1, 1e2,  1e3,	 1e4,  1e5,  1e6, 1e7,
					   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14 };
	const char *begin = text + (*text == '-'), *p, *point;
	uint64_t digits = 0;
	double value;

	point = p = read_digits(begin, &digits);
	if (*p == '.')
		p = read_digits(p + 1, &digits);
	/* no digit, too many, an exponent, a hexadecimal number */
	if (p - begin <= (p > point) || p - begin > MOST || (*p | 0x20) == 'e' ||
	    (*p | 0x20) == 'x')
		return strtod(text, end);
	*end = (char *)(uintptr_t)p;
	value = (double)digits / (p > point ? tens[p - point - 1] : 1);
	return *text == '-' ? -value : value;
}
