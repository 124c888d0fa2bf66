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

/* a / b, rounded up; a >= 0, b > 0. */
static inline int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* -1: x comes before y; 1: behind; 0: they are the same. */
static inline int whole_order(int64_t x, int64_t y)
{
	return (x > y) - (x < y);
}

/* whole_order of two int64_t (or ft_ps) for qsort and bsearch. */
static inline int by_whole(const void *a, const void *b)
{
	return whole_order(*(const int64_t *)a, *(const int64_t *)b);
}

#endif
