/* tests/seeded.h - constants that are drawn, one after another, from the seed of a test */
#ifndef TESTS_SEEDED_H
#define TESTS_SEEDED_H

#include "foretoken/hw.h"
#include "tests/check.h"

static uint64_t seed;

/* From 0 to 1. */
static inline double draw(void)
{
	return rnd(&seed) / 2147483648.0;
}

/* From 0 to n - 1. */
static inline int pick(int n)
{
	return (int)(draw() * n);
}

/* Half of x to one and a half, with a range of its own. */
static inline struct ft_number about(double x)
{
	double v = x * (0.5 + draw());

	return (struct ft_number){ v, 0.9 * v, 1.2 * v, NULL };
}

#endif
