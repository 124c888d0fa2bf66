/*
 * base/plain.h - numbers with a point, whatever the caller's locale
 *
 * A program that uses this library may have called setlocale: strtod and printf would
 * then read and write "1,5". Every public function that reads or writes text begins with
 *
 *	PLAIN_NUMBERS;
 *
 * which sets the calling thread's locale to "C" until the function returns.
 */
#ifndef BASE_PLAIN_H
#define BASE_PLAIN_H

#include <locale.h>
#include <stdbool.h>

locale_t plain_numbers_begin(void);
void plain_numbers_end(locale_t *before);

#define PLAIN_NUMBERS \
	locale_t plain_before_ __attribute__((cleanup(plain_numbers_end))) = \
		plain_numbers_begin()

/* strtod where the locale is "C", several times as fast for short decimals: the same value,
 * to the last bit, and the same end. */
double plain_number(const char *text, char **end);

/* 0x40, which strtod takes: in a table or a scenario it is a slip (0x1B is not a billion). */
bool plain_is_hexadecimal(const char *text);

#endif
