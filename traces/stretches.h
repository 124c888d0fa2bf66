/* traces/stretches.h - a segment is cut where the host waits: what it does later is spread among later launches */
#ifndef TRACES_STRETCHES_H
#define TRACES_STRETCHES_H

#include "foretoken/traces.h"

struct arena;

/* Cut it in front of that op, unless it is; false: there are FT_BEHIND cuts. */
bool segment_cut(struct arena *mem, struct ft_segment *segment, size_t op);

#endif
