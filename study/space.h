/*
 * study/space.h - the parallel plans that a scenario leaves open
 *
 * An axis is a key of `training` and the values it is tried with; what the scenario states
 * has one value. A candidate is a place on each axis. Equal plans come once: a value that
 * would do nothing beside the others, or the same as one before it, is left out.
 */
#ifndef STUDY_SPACE_H
#define STUDY_SPACE_H

#include "foretoken/study_plan.h"

struct arena;
struct node;

enum axis {
	AXIS_TP,
	AXIS_PP,
	AXIS_CP,
	AXIS_EP,
	AXIS_ETP,
	AXIS_MICRO_BATCH,
	AXIS_VPP,
	AXIS_SCHEDULE,
	AXIS_SHARDING,
	AXIS_ZERO_GROUP, /* 0: all of dp x cp */
	AXIS_SHARD,	 /* 0: as many as a node has */
	AXIS_RECOMPUTE,
	AXIS_MODULES, /* 0: the stack's */
	AXIS_LAYERS,  /* below 0: all */
	AXIS_OFFLOAD,
	AXIS_OVERLAP_TP,
	AXIS_OVERLAP_DP,
	AXIS_OVERLAP_PP,
	AXIS_OVERLAP_EP,
	AXES
};

enum { AXIS_VALUES = 200 };

struct space_axis {
	const char *key; /* dotted, of the scenario */
	bool stated;	 /* held: the scenario says it */
	size_t n;
	int64_t value[AXIS_VALUES];
};

struct candidate {
	uint8_t at[AXES];
	bool pairs;   /* its micro-batches run in pairs: a looser bound */
	bool of_node; /* the node's memory is fuller than the GPU's */
	float memory; /* of the fuller one, what is taken at the peak; once bounded, or too much in any case */
	double least; /* it can rank by: seconds, dollars; as its sketch says */
	double bound; /* the same, higher; once bounded */
};

struct space {
	const struct ft_scenario *scenario; /* open */
	struct ft_plan_context context;
	int64_t *unlike; /* the context's */
	struct space_axis axis[AXES];
	bool wants_sequence_parallel,
		gather_follows; /* sequence_parallel; overlap.dp */
	double combinations;	/* before any rule */
	size_t n_left_out;	/* words that would be tried, had the framework them */
	const char *left_out[FT_LEFT_OUT];
	size_t n, cap, n_tried;
	struct candidate *candidate; /* the legal ones, in the order of the axes */
};

/* The axes of an open scenario, and all legal candidates. free: keys that are searched though
 * the scenario states them. false: an unknown key, or too many. */
bool space_open(struct space *space, const struct ft_scenario *scenario,
		const char *const *free_key, size_t n_free, struct ft_error *err);
void space_close(struct space *space);

static inline int64_t space_value(const struct space *space, const struct candidate *c,
				  enum axis axis)
{
	return space->axis[axis].value[c->at[axis]];
}

/* space_values.c: what the axes are tried with; more of one that is freed; and 1 of a size, or
 * none of the shardings, that the stack's framework does not have. */
void space_values(struct space *space);
bool space_is_torch(const struct ft_stack *stack); /* PyTorch's own wrappers */
void space_on_demand(struct space *space, enum axis axis);
void space_leave_out(struct space *space, enum axis axis);

/* The first layer with experts, or NULL. */
const struct ft_layer *space_routed_layer(const struct ft_model *model);

/* The plan of a candidate; stage_layers as of ft_plan_vary. false: not legal. */
bool space_plan(const struct space *space, const struct candidate *c,
		struct ft_plan *plan, int64_t *stage_layers);

/* The scenario's document with that plan in it. */
struct node *space_document(const struct space *space, const struct candidate *c,
			    struct arena *mem);

/* Is a key one that can be searched? The i-th such key; NULL after the last. */
const char *space_key(size_t i);

/* How much a plan has to be explained: the fewer of its axes differ from what goes without
 * saying, and the smaller its sizes, the simpler. */
double space_complexity(const struct space *space, const struct candidate *c);

#endif
