/*
 * tests/lost.h - what is lost when something is asked again and again: memory and open files
 *
 * Memory as malloc counts it, which counts chunks that a thread keeps for itself as held: it keeps
 * none here. What grows each time is lost; the first two times may fill what libraries keep. The leak
 * sanitizer sees what is lost the first time.
 */
#ifndef TESTS_LOST_H
#define TESTS_LOST_H

#include <dirent.h>
#include <malloc.h>

#include "tests/check.h"

#ifdef __SANITIZE_ADDRESS__
enum { WARM = 1, TIMES = 0 };
#else
enum { WARM = 2, TIMES = 3 };
#endif

static inline size_t held_bytes(void)
{
	return mallinfo2().uordblks + mallinfo2().hblkhd;
}

static inline size_t open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static inline void holds(const char *what, void (*ask)(void))
{
	size_t grew = 0, files = open_files();

	for (int i = 0; i < WARM + TIMES; i++) {
		size_t before = held_bytes();

		ask();
		grew += i >= WARM && held_bytes() > before;
		if (open_files() != files)
			fail_msg("%s: %zu files are open, %zu were", what, open_files(),
				 files);
	}
	if (TIMES && grew == TIMES)
		fail_msg("%s: memory grows each time", what);
}

/* Where reports go. */
static inline FILE *nowhere(void)
{
	FILE *f = fopen("/dev/null", "w");

	assert_non_null(f);
	return f;
}

/* The program once more, so that malloc keeps no chunks for threads. */
static inline void lost_begin(char **argv)
{
	static const char tunable[] = "GLIBC_TUNABLES",
			  none[] = "glibc.malloc.tcache_count=0";

	if (!getenv(tunable) && !setenv(tunable, none, 1))
		execv("/proc/self/exe", argv);
}

/* A test of that name. */
#define LOSES_NOTHING(name, ask) \
	static void name(void **state) \
	{ \
		(void)state; \
		holds(#name, ask); \
	}

#endif
