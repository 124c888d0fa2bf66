/*
 * sim/timeline.h - a step as Chrome trace JSON, which ui.perfetto.dev opens
 *
 * One process per part (ranks that do the same), one thread per stream, complete events ("X").
 * Times are microseconds with six decimals: picoseconds, exactly.
 */
#ifndef SIM_TIMELINE_H
#define SIM_TIMELINE_H

#include <stdio.h>

#include "foretoken/traces.h"

void timeline_begin(FILE *out);
void timeline_part(FILE *out, size_t part, const char *name);
void timeline_op(FILE *out, const struct ft_work *work, size_t part, int stream,
		 ft_ps from, ft_ps to);
void timeline_end(FILE *out, ft_ps end);

#endif
