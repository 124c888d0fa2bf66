/*
 * sim/timeline_svg.h - a step as a Gantt chart: a row a pipeline stage, a box a pass
 *
 * A pass is drawn from the begin of its first kernel to the end of its last, with pauses in
 * between; below the boxes of a stage stand its collectives and its sends. Of parts that
 * differ by slow GPUs the first pipeline is drawn. The graph must say which calls are of which
 * pass (foretoken/traces.h); what is of none is drawn without a number.
 */
#ifndef SIM_TIMELINE_SVG_H
#define SIM_TIMELINE_SVG_H

#include <stdio.h>

#include "foretoken/sim.h"

struct arena;
struct gantt;

/* What a chart of the first pipeline of that graph needs to keep; of mem. */
struct gantt *gantt_new(struct arena *mem, const struct ft_graph *graph);

/* An op of a class that ran; slot: the last of the class's that its call is of, or
 * class->n_slots when it is of none. Ops of a stream come in their order. */
void gantt_op(struct gantt *g, size_t class, int stream, size_t slot, ft_ps from,
	      ft_ps to);

/* Write it; title may be NULL, and may be anything: it is escaped. */
void gantt_write(FILE *out, const struct gantt *g, const char *title,
		 const struct ft_run *run);

#endif
