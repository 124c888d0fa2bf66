/*
 * sim/timeline_kineto.h - a step as PyTorch's profiler (Kineto) would have recorded it
 *
 * One rank: the host's launches (what they took is in the pauses between
 * them), the kernels joined to them by correlation, products with their operators'
 * shapes, collectives with their arguments, one ProfilerStep around all. Of a pipeline also
 * receives, which run from when they are asked for to when what is sent has come, and marks of
 * passes as PyTorch's schedules set them (recorded/stage_marks.c). Kernels of layers say which
 * "Pass", "Layer" and "Micro-batch" is theirs, as no profiler does (recorded/told_layers.c). Our own reader,
 * Holistic Trace Analysis and TensorBoard take it. Times are microseconds with six
 * decimals: picoseconds, exactly.
 */
#ifndef SIM_TIMELINE_KINETO_H
#define SIM_TIMELINE_KINETO_H

#include <stdio.h>

#include "foretoken/traces.h"

/* What comes from the other side in a V is on a stream of its own, so much further on. */
enum { KINETO_OTHER_SIDE = 100 };

struct kineto_op {
	const struct ft_graph *graph;
	const struct ft_work *work;
	bool optimizer;
	int stream;
	ft_ps launched, from, to;
	uint64_t number;  /* from 1 */
	const char *pass; /* "forward" ...; NULL: outside layers, or not known */
	int64_t layer, micro_batch; /* of a pass; the layer of the model, from 0 */
	int64_t rank;		    /* whose groups are told */
	int64_t peer;		    /* of a pipeline's send or receive: its other end */
};

void kineto_begin(FILE *out, const char *device, int64_t rank, int64_t ranks);
void kineto_put(FILE *out, const struct kineto_op *op);
/* The host waits for what it launched last on a stream. */
void kineto_put_wait(FILE *out, ft_ps from, ft_ps to, uint64_t number);

/* A pass, whose kernels were launched meanwhile: "PP:3F0" is the forward of micro-batch 0 at
 * place 3 of the model, B a backward, I and W the gradients of inputs and weights. */
struct kineto_pass {
	char letter;
	int64_t place, micro_batch;
	ft_ps from, to;
	uint64_t number;
};

void kineto_put_pass(FILE *out, const struct kineto_pass *pass);
/* last: when the last op was launched; number: of the call that waits for the end. */
void kineto_end(FILE *out, ft_ps last, ft_ps end, uint64_t number);

#endif
