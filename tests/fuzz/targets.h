/*
 * tests/fuzz/targets.h - every reader of foretoken as one function of bytes
 *
 * libFuzzer (tests/fuzz/fuzz.c) and the mutation driver (tests/fuzz/mutate.c) share them.
 * A target reads the bytes as its kind of input and uses what was read as the program
 * does.
 */
#ifndef TESTS_FUZZ_TARGETS_H
#define TESTS_FUZZ_TARGETS_H

#include <stddef.h>
#include <stdint.h>

enum verdict {
	SILENT, /* refused without a word, or numbers that are none: what must not be */
	REFUSED,
	TAKEN
};

struct target {
	const char *name;
	enum verdict (*run)(const uint8_t *data, size_t n);
	const char *seeds[6]; /* patterns of files in the tree that are such inputs */
	size_t longest;	      /* bytes of a seed that are taken, whole lines; 0: all */
};

/* Ends with one without a name. */
extern const struct target targets[];

/* A folder for inputs that must be files; call it once, from the tree's root. */
void targets_begin(void);
void targets_end(void);

/* Steps larger than this are not simulated; 0: all are. Sanitizers are slow. */
void targets_limit(double ops);

#endif
