/*
 * tests/fuzz/fuzz.c - libFuzzer on one target: the one that the program is called after
 *
 * build/fuzz/fuzz_NAME is a link to build/fuzz/fuzz. Refusing without a word is a crash.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/targets.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *name = strstr((*argv)[0], "fuzz_");

	(void)argc;
	for (const struct target *t = targets; name && t->name; t++)
		if (!strcmp(t->name, name + 5))
			target = t;
	if (!target) {
		fprintf(stderr, "%s is called after no target\n", (*argv)[0]);
		exit(64);
	}
	targets_begin();
	targets_limit(4096);
	atexit(targets_end);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (target->run(data, n) == SILENT)
		abort();
	return 0;
}
