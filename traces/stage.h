/*
 * traces/stage.h - one stage of a pipeline while its program is written: the segments
 * it calls
 */
#ifndef TRACES_STAGE_H
#define TRACES_STAGE_H

#include "traces/build.h"

enum role {
	ROLE_EMBED,
	ROLE_HEAD,
	ROLE_LAYER,
	ROLE_HEAD_BACK,
	ROLE_EMBED_BACK,
	ROLE_LAYER_BACK,
	ROLE_PAIR,
	ROLE_RECEIVE, /* kind 0 forward, 1 backward */
	ROLE_SEND,
	ROLE_WALKS,
	ROLE_ROOT_BACK,
	ROLE_REDUCE,
	ROLE_MATRIX, /* kind: the layer's, times FT_LAYER_MATRICES, and the matrix */
	ROLE_OPTIMIZER,
};

struct stage {
	struct builder *b;
	struct ft_class *rank_class;
	size_t call_cap, slot_cap;
	int64_t number;
	bool first, last; /* it has the model's first, its last chunk */
	struct held held, root;
	int64_t *begin; /* [vpp + 1 ... ] first layer of each chunk */
	int64_t *end;
	enum part part; /* of the backward being called */
};

/* segments.c: each writes its segment unless it exists, and calls it. received: it begins
 * a chunk, behind what the neighbour sent. */
void segment_slot(struct stage *st, struct ft_slot slot); /* what follows is of it */
bool segment_fresh(struct stage *st, struct segment_key key, const char *name);
void segment_done(struct stage *st);
double segment_boundary_bytes(
	const struct builder *b); /* sent by a rank, of b->tokens */
/* of the chunk */
void segment_transfer(struct stage *st, int64_t chunk, bool receive, bool backward);
void segment_embed(struct stage *st, unsigned variant);
void segment_head(struct stage *st, unsigned variant, bool received);
void segment_head_back(struct stage *st, unsigned variant,
		       int64_t next); /* < 0: none */
void segment_embed_back(struct stage *st, unsigned variant);
/* fsdp: gradients of a head without an embedding, behind its chunk's layers; those of all the
 * stage, in the end. */
void segment_root_back(struct stage *st, unsigned variant);
void segment_reduce(struct stage *st);

/* Of the gradients of weights that autograd cut off and the slot computed: for each tensor the
 * host walked as much of the graph as lies below. */
void segment_walks(struct stage *st);

/* One layer in one pass, as a chunk's loop asks for it. */
struct layer_call {
	int64_t layer;
	unsigned variant;
	bool received;
};

void segment_forward(struct stage *st, struct layer_call f);
void segment_backward(struct stage *st, struct layer_call b);
/* Both, of two micro-batches, side by side. */
void segment_pair(struct stage *st, struct layer_call f, struct layer_call b);

/* build.c: the frame of a graph; a stage, and its passes. */
bool build_begin(struct builder *b, const struct ft_model *model,
		 const struct ft_plan *plan, const struct ft_stack *stack,
		 struct ft_error *err);
void build_end(struct builder *b);

/* stack_runs.c */
bool stack_runs(const struct ft_model *model, const struct ft_plan *plan,
		const struct ft_stack *stack, struct ft_error *err);
struct stage stage_begin(struct builder *b, int64_t number);
/* The stage's slots, as many as ft_plan_slots gives or fewer. */
size_t stage_order(const struct builder *b, int64_t number, struct ft_slot *slot);
void stage_slot(struct stage *st, const struct ft_slot *slot);
void stage_finish(struct stage *st); /* the update */

#endif
