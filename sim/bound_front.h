/*
 * sim/bound_front.h - how early streams can be done: ops put one behind another
 *
 * Each op takes at least its duration alone, and begins no earlier than what it waits for
 * ends. Besides, a collective and compute slow each other down where both run. Of a window
 * in which compute that takes C alone and collectives of one stream that take K alone both
 * begin and end,
 *
 *   window >= C + x K,  x = min(1, b (1 - 1/c))
 *   window >= K + y C,  y = min(1, c (1 - 1/b))
 *
 * where compute beside such a collective takes c times as long or more, a collective beside
 * compute b times. docs/plan.md has the proof. A block is such a window that is still open.
 */
#ifndef SIM_BOUND_FRONT_H
#define SIM_BOUND_FRONT_H

#include "sim/job.h"

enum {
	NOT_YET = -1,		       /* nothing is known */
	FRONT_WORK = FT_STREAM_EP + 1, /* a block that no collective is in */
	FRONT_BLOCKS = FRONT_WORK - FT_STREAM_GATHER + 1
};

/* Of the collectives of one stream, from a moment on before which none of them began. */
struct block {
	ft_ps compute;	  /* the moment, and what compute did since */
	ft_ps collective; /* a moment, the collectives since, and y of compute */
	ft_ps alone;	  /* those since the first moment, */
	ft_ps all;	  /* and since the block began */
	float least;	  /* c of that compute */
};

/* When each stream has done what was put on it. */
struct front {
	ft_ps stream[FT_STREAMS], event[FT_EVENTS];
	struct block block[FRONT_BLOCKS];
	uint8_t event_of[FT_EVENTS]; /* the stream whose last op recorded it */
	unsigned open;		     /* blocks */
	bool any_compute,
		awaits[2]; /* the first compute op: a receive, forward, backward */
};

/* What is put, and what it takes. */
struct front_of {
	const struct ft_graph *graph;
	const struct work_timing *timing; /* of its class */
	double b;
	float least;		  /* c of any compute beside any collective */
	uint8_t held[FT_STREAMS]; /* the least that collectives of a stream hold */
};

struct front_of front_of(const struct ft_gpu *gpu, const struct ft_graph *graph,
			 const struct work_timing *timing);
/* Nothing is known of any stream. */
void front_open(struct front *f);
/* Of a stream from FT_STREAM_GATHER on a block goes on; FRONT_WORK: one begins, of compute. */
void front_open_block(struct front *f, int stream, struct block block);
const struct block *front_block(const struct front *f, int stream); /* NULL: none */
/* Compute of the block and what its collectives cost it, whatever runs beside them. */
ft_ps block_compute(const struct front_of *of, const struct block *block);
/* A call, left times in a row. */
void front_call(struct front *f, const struct front_of *of, uint32_t segment,
		int64_t left);

#endif
