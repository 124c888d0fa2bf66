/*
 * sim/passes.h - which micro-batch and which layers each call of a graph is about
 *
 * A graph does not say so, but its data does. Calls of segments named "forward." or "backward."
 * that follow each other are a pass. One that begins with an embedding (backward: with the
 * head's) begins its micro-batch, in order; any other continues the pass whose data it
 * receives: the n-th that arrives at a stage is the n-th that the neighbour sent. So it holds
 * for whatever order a schedule has. Where layers of two micro-batches are one segment
 * (overlap.ep) it is not known.
 */
#ifndef SIM_PASSES_H
#define SIM_PASSES_H

#include "foretoken/traces.h"

struct arena;

/* One call of a class's program. */
struct pass_call {
	const char *pass;    /* "forward", "backward"; NULL: neither */
	int64_t micro_batch; /* -1: not known, nor are its layers */
	int64_t layer; /* of the model, of its first repeat; the next is +1 or -1 */
};

/* [n_classes][n_calls], in mem. */
struct pass_call **passes_of(const struct ft_graph *graph, struct arena *mem);

#endif
