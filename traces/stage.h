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
	ROLE_RECEIVE, /* kind 0 forward, 1 backward; plus 2: the other way; plus 4: a choice beside */
	ROLE_SEND,
	ROLE_WALKS,
	ROLE_ROOT_BACK,
	ROLE_REDUCE,
	ROLE_FLUSH,
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

/* A micro-batch in a step. Where a flush of the pipeline reduces what fsdp summed up whole, each
 * run begins with nothing gathered and nothing summed; else the first of the step does. */
bool opens_sums(const struct builder *b, int64_t micro_batch);
bool ends_run(const struct ft_plan *plan, int64_t micro_batch); /* the pipeline's */
bool ends_sums(const struct builder *b,
	       int64_t micro_batch); /* gradients are reduced */
/* Are there shards of an earlier run that the reduced ones are added to? */
bool joins_shards(const struct builder *b, int64_t micro_batch);

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
/* fsdp: gradients of a head without an embedding, behind its chunk's layers. */
void segment_root_back(struct stage *st, unsigned variant);
void segment_reduce(struct stage *st); /* of the stage, all at once */
/* Behind the last pass of a run of the pipeline; and whether a stage has anything to do there. */
void segment_flush(struct stage *st, int64_t micro_batch);
bool flush_works(const struct builder *b, bool last, int64_t micro_batch);

/* Of the gradients of weights that autograd cut off and the slot computed: for each tensor the
 * host walked as much of the graph as lies below. */
void segment_walks(struct stage *st);

/* One layer in one pass, as a chunk's loop asks for it. */
struct layer_call {
	int64_t layer;
	unsigned variant;
	bool received;
	int64_t streams; /* of a chunk's first layer forward 1, of its last one backward the layers whose streams are made
			  * again; else, and where none are, 0 */
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

/* recompute.c: what selective recomputation runs again, of enum ft_module */
unsigned selected_modules(const struct ft_plan *plan, const struct ft_stack *stack);

/* stack_runs.c */
bool stack_runs(const struct ft_model *model, const struct ft_plan *plan,
		const struct ft_stack *stack, struct ft_error *err);
struct stage stage_begin(struct builder *b, int64_t number);
/* The stage's slots: those of ft_plan_slots, or fewer, and one behind each run of the pipeline
 * where something is done there; and room for them. */
size_t stage_most_slots(const struct ft_plan *plan);
size_t stage_order(const struct builder *b, int64_t number, struct ft_slot *slot);
void stage_slot(struct stage *st, const struct ft_slot *slot);
void stage_finish(struct stage *st); /* the update */

#endif
