/*
 * sim/passes.h - which micro-batch and which layers each call of a graph is about
 *
 * The marks of a class (ft_slot_mark) tell the pass and the micro-batch; layers are counted
 * from them: a forward pass runs its chunk's layers in order, a backward one in reverse, and
 * chunks follow each other from stage to stage, or back where data is sent in reverse (zbv, dualpipev).
 * Not known of a graph without marks, nor where two passes run side by side (overlap.ep).
 */
#ifndef SIM_PASSES_H
#define SIM_PASSES_H

#include "foretoken/traces.h"

struct arena;

/* One call of a class's program. */
struct pass_call {
	const char *pass;    /* "forward", "backward" ...; NULL: of none */
	int64_t micro_batch; /* -1: not known, nor are its layers */
	int64_t layer;	     /* of the model, of its first repeat; */
	int64_t step;	     /* of the next one: +1 or -1 */
};

/* The place in the model of a stage's chunk, of n stages: data goes from place to place. */
int64_t passes_place(int64_t stages, bool folded, int64_t stage, int64_t chunk);

/* Are the stages folded into a V, whose second half sends back (zbv, dualpipev)? */
bool passes_fold(const struct ft_graph *graph);

/* [n_classes][n_calls], in mem. */
struct pass_call **passes_of(const struct ft_graph *graph, struct arena *mem);

#endif
