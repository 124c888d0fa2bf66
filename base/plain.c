/* base/plain.c - the "C" locale for a thread, and back */
#include "base/plain.h"

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
