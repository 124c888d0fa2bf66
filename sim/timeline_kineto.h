/*
 * sim/timeline_kineto.h - a step as PyTorch's profiler (Kineto) would have recorded it
 *
 * One rank: the host's launches (what they took is in the pauses between
 * them), the kernels joined to them by correlation, products with their operators'
 * shapes, collectives with their arguments, one ProfilerStep around all. Our own reader,
 * Holistic Trace Analysis and TensorBoard take it. Times are microseconds with six
 * decimals: picoseconds, exactly.
 */
#ifndef SIM_TIMELINE_KINETO_H
#define SIM_TIMELINE_KINETO_H

#include <stdio.h>

#include "foretoken/traces.h"

struct kineto_op {
	const struct ft_graph *graph;
	const struct ft_work *work;
	bool optimizer;
	int stream;
	ft_ps launched, from, to;
	uint64_t number; /* from 1 */
	int64_t first;	 /* rank of its stage, of which groups are told */
};

void kineto_begin(FILE *out, const char *device, int64_t rank, int64_t ranks);
void kineto_put(FILE *out, const struct kineto_op *op);
/* last: when the last op was launched; number: of the call that waits for the end. */
void kineto_end(FILE *out, ft_ps last, ft_ps end, uint64_t number);

#endif
