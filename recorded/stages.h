/*
 * recorded/stages.h - a pipeline of which some stages were recorded, inside
 */
#ifndef RECORDED_STAGES_H
#define RECORDED_STAGES_H

#include "recorded/replay.h"

enum way { SEND_FORWARD, SEND_BACKWARD, RECEIVE_FORWARD, RECEIVE_BACKWARD, WAYS };
enum {
	STAGES_MOST = 1024,
	PASSES_MOST = 1 << 20,
	NO_RANK = -1,
	FORWARD = 0,
	BACKWARD = 1
};

/* Operations, in the order of launch. */
struct ops {
	uint32_t *op;
	size_t n, cap;
};

struct stage {
	int64_t rank;	       /* of the files given, or NO_RANK */
	int64_t like;	       /* the stage whose passes it runs, or NO_RANK */
	struct ops way[WAYS];  /* sends and receives */
	size_t *pass[2], n[2]; /* forward, backward: numbers in ft_replay.pass */
	size_t cap[2], ahead;  /* forward passes before the first backward */
	uint32_t *event[2];    /* of a missing one: each pass's begin */
};

struct layout {
	struct ft_replay *p;
	struct arena scratch;
	int64_t number[STAGES_MOST]; /* ranks of the pipeline */
	struct stage *stage;
	size_t n, step, micro_batches;
	ft_ps transfer;
	bool forwards_first;
};

/* recorded/stage_passes.c: a send or receive that tells its other end; or NULL. */
const struct ft_rec_collective *transfer_of(const struct ft_recording *r, size_t op);

/* The passes, sends and receives of a recorded stage. false: it sends or receives otherwise
 * than to and from its neighbours. */
bool stage_read(struct layout *l, int64_t here);

#endif
