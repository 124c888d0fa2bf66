/* base/whole.h - whole numbers */
#ifndef BASE_WHOLE_H
#define BASE_WHOLE_H

#include <stdint.h>

/* The greatest whole number that divides both; of 0 and another, the other. */
static inline int64_t whole_divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

#endif
