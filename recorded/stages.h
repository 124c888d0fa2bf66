/*
 * recorded/stages.h - a pipeline of which some stages were recorded, inside
 *
 * A pass of a chunk and micro-batch has the number chunk * micro_batches + micro-batch, its
 * place, among the passes of its kind on its stage. What it sends and receives goes forward or
 * backward; gradients of weights that a schedule cuts off go nowhere.
 */
#ifndef RECORDED_STAGES_H
#define RECORDED_STAGES_H

#include "foretoken/traces.h"
#include "recorded/replay.h"

enum {
	STAGES_MOST = 1024,
	CHUNKS_MOST = 16,
	PASSES_MOST = 1 << 20,
	NO_RANK = -1,
	FORWARD = 0,
	BACKWARD = 1
};

#define NO_OP UINT32_MAX
#define NO_PASS SIZE_MAX

/* Operations, in the order of launch. */
struct ops {
	uint32_t *op;
	size_t n, cap;
};

/* A send or receive of a stage. */
struct cut {
	uint32_t op;
	size_t at;    /* so many kernels were launched before it */
	int64_t peer; /* the stage at its other end */
	bool sends;
};

/* A pass that the program marked. */
struct mark {
	struct ft_slot slot; /* its chunk: the place in the model */
	size_t from, n;	     /* of stage.marked */
};

struct stage {
	int64_t rank;	   /* of the files given, or NO_RANK */
	int64_t like;	   /* the stage whose passes it runs, or NO_RANK */
	struct ops kernel; /* of the rank's busiest stream */
	struct cut *cut;
	size_t n_cuts, cut_cap, n_sends;
	struct ops marked; /* kernels of marked passes, one pass behind the other */
	struct mark *mark;
	size_t n_marks, mark_cap;
	struct ft_slot *slot; /* [n_slots] its passes in order */
	size_t n_slots;
	size_t *pass
		[FT_SLOT_UPDATE]; /* recorded: numbers in ft_replay.pass, or NO_PASS */
	uint32_t *send[2], *receive[2]; /* recorded: operations, or NO_OP */
	uint32_t *event[2];		/* missing: each pass's begin */
};

struct layout {
	struct ft_replay *p;
	struct arena scratch;
	int64_t number[STAGES_MOST]; /* ranks of the pipeline */
	struct stage *stage;
	size_t n, step;
	struct ft_plan plan; /* its schedule, pp, vpp and micro_batches alone */
	bool marked;	     /* all recorded stages have marks */
	size_t n_places;
	ft_ps transfer;
};

static inline int is_back(const struct ft_slot *s)
{
	return s->kind == FT_SLOT_FORWARD ? FORWARD : BACKWARD;
}

static inline void add_kernel(struct arena *mem, struct ops *to, uint32_t op)
{
	if (to->n == to->cap)
		to->op = ARENA_GROW(mem, to->op, &to->cap);
	to->op[to->n++] = op;
}

static inline size_t place_of(const struct layout *l, const struct ft_slot *s)
{
	return (size_t)(s->chunk * l->plan.micro_batches + s->micro_batch);
}

/* ---- recorded/stage_read.c ------------------------------------------------------------ */

/* A send or receive that tells its other end; or NULL. */
const struct ft_rec_collective *transfer_of(const struct ft_recording *r, size_t op);

/* The kernels, sends and receives of a recorded stage. false: it sends or receives otherwise
 * than to and from stages of the pipeline. */
bool stage_read(struct layout *l, int64_t here);

/* ---- recorded/stage_marks.c ------------------------------------------------------------ */

/* The passes of a recorded stage that its program marked, if it did. */
void marks_read(struct layout *l, int64_t here);

/* ---- recorded/stage_order.c ------------------------------------------------------------ */

/* The stage and chunk that a pass's result goes to (to), or its input comes from. false: the
 * pass is the last or the first one of its way, its neighbour is on its own stage, or it is of
 * weights' gradients alone. */
bool neighbour(const struct layout *l, int64_t here, const struct ft_slot *s, bool to,
	       int64_t *stage, int64_t *chunk);

/* The schedule whose passes the recorded stages marked; or under which they send what they send,
 * and are most alike from pass to pass; the slots of all stages. false: there is none. */
bool order_find(struct layout *l);

/* ---- recorded/stage_passes.c ------------------------------------------------------------ */

/* How unlike the passes of one kind and chunk are, in kernels, if the layout's order is that of
 * the stage: 0 where all have the same number, more than 1 where the order cannot be. */
double passes_unlike(struct layout *l, int64_t here);

/* The passes of a recorded stage, what each sends and what it receives. */
void passes_take(struct layout *l, int64_t here);

#endif
