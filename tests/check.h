/* tests/check.h - what every unit test includes: cmocka, and error checks */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "foretoken/base.h"

/* Fails with the error's own words. */
#define ok_or_say(what, err) \
	do { \
		if (!(what)) { \
			print_error("%s:%d:%d: %s\n", (err).file, (err).line, \
				    (err).column, (err).text); \
			fail(); \
		} \
	} while (0)

#define near_frac(a, b, frac) \
	do { \
		double a_ = (a), b_ = (b); \
		if (!(a_ >= b_ - (frac) * (b_ < 0 ? -b_ : b_) && \
		      a_ <= b_ + (frac) * (b_ < 0 ? -b_ : b_))) { \
			print_error("%s = %.12g, wanted %.12g\n", #a, a_, b_); \
			fail(); \
		} \
	} while (0)

static inline void assert_near(double got, double want, double within)
{
	if (!(got - want <= within && want - got <= within))
		fail_msg("%.9g, expected %.9g", got, want);
}

static inline void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* A file of this process's own, since tests run at the same time. */
static inline const char *own_path(char to[64], const char *leaf)
{
	snprintf(to, 64, "/tmp/foretoken-%d-%s", (int)getpid(), leaf);
	return to;
}

/* A small seeded generator, the same everywhere. */
static inline uint32_t rnd(uint64_t *s)
{
	*s = *s * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*s >> 33);
}

/* From 0 to n - 1. */
static inline int rnd_below(uint64_t *s, int n)
{
	return (int)(rnd(s) % (uint32_t)n);
}

#endif
