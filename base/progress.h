/*
 * base/progress.h - how far long work is, and how long the rest will take, told on a stream
 *
 * A bar on a terminal, four times a second at most and from a second on; or a line each half
 * minute, terminal or not (mpirun hides it). The caller says what time it is.
 */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct progress {
	const char *what; /* "run", "row" */
	FILE *to;
	bool terminal, lines;
	bool quiet;		/* nothing is told */
	double begun_s, told_s; /* all three begin as the time at which the work does */
	double pace_s; /* since when the work so far has gone at one pace: counts that fall */
	size_t from,
		last; /* begin another phase; fresh ones then, and when told last */
};

/* fresh: of those finished, the ones that took time. */
void progress_say(struct progress *p, double now_s, size_t finished, size_t fresh,
		  size_t total);

#endif
