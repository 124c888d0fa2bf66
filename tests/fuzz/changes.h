/* tests/fuzz/changes.h - a spoilt copy of one of several inputs */
#ifndef TESTS_FUZZ_CHANGES_H
#define TESTS_FUZZ_CHANGES_H

#include <stddef.h>
#include <stdint.h>

enum { LONGEST = 1 << 18 };

struct seed {
	uint8_t *data;
	size_t n;
};

struct seeds {
	struct seed *of;
	size_t n;
};

/* Input i: what it is follows from the seed and i. It lies in data, LONGEST bytes. */
struct seed changed(const struct seeds *from, uint64_t seed, long i, uint8_t *data);

#endif
