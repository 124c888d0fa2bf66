/*
 * sim/memory_svg.h - the memory of a rank over a step, by category, as an SVG chart
 *
 * Of the fullest rank class of the first pipeline. What is drawn is what each call holds at its
 * fullest, from the begin of its first kernel to that of the next call's; its highest point is
 * the memory that the answer tells. Where calls are less than a pixel apart, the one that
 * holds the most is drawn.
 */
#ifndef SIM_MEMORY_SVG_H
#define SIM_MEMORY_SVG_H

#include <stdio.h>

#include "foretoken/sim.h"

struct arena;
struct memory_chart;

/* An op of the first pipeline that ran. */
struct memory_op {
	size_t class;
	uint32_t call, turn; /* of the class's program; which repetition */
	const struct ft_op *op;
	int stream;
	ft_ps from;
};

struct memory_chart *memory_chart_new(struct arena *mem, const struct ft_graph *graph);
/* Ops of a stream come in their order; those of other classes are passed over. */
void memory_chart_op(struct memory_chart *chart, const struct memory_op *op);
/* capacity_bytes: of the rank's GPU; title may be NULL, and is escaped. */
void memory_chart_write(FILE *out, struct memory_chart *chart, const char *title,
			ft_ps step, double capacity_bytes);

#endif
