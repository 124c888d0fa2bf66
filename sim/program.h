/*
 * sim/program.h - a graph made ready to be run: what each call puts on which stream
 *
 * A segment is cut into pieces where the host waits for an op; most have one piece. Within
 * a piece an op is known by (stream, how many ops of that stream come before it), so that a
 * call that is launched is one small record, and its ops need none.
 *
 * A pass is what a class's marks say: a forward or a backward of one micro-batch in one
 * chunk of layers. Passes that make the same calls are of one kind, in whatever class.
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include "foretoken/traces.h"

struct arena;

enum { RECEIVES = 1 << FT_STREAM_RECV_FORWARD | 1 << FT_STREAM_RECV_BACKWARD };

static inline bool is_receive(int stream)
{
	return RECEIVES >> stream & 1;
}

/* Over when the stream has completed `after` ops more than before the piece. */
struct piece_wait {
	uint8_t stream; /* PIECE_EVENT: `after` is an event, as it was before the piece */
	uint32_t after;
};

enum { PIECE_EVENT = FT_STREAMS };

struct piece_op {
	const struct ft_op *op;
	const struct piece_wait *wait; /* [n_waits] */
	uint32_t n_waits;
	uint32_t place; /* in its segment */
};

struct piece {
	struct piece_op *op;		/* by stream, each in the order of launch */
	uint32_t begin[FT_STREAMS + 1]; /* where a stream's begin */
	uint32_t record[FT_EVENTS];	/* 1 + number of the op that records it last; */
	uint8_t record_stream[FT_EVENTS]; /* FT_STREAMS: none does */
	uint32_t streams;		  /* bit s: it has ops on s */
	uint32_t last;			  /* place of its last op */
	uint32_t awaits; /* bit s: an op of it awaits stream s, a receive */
	bool host_waits; /* for its last op */
	uint32_t free;	 /* bit s: some op of it on s, no receive, may start before the
			  * compute op that was launched ahead of the piece is over; */
	uint32_t free_to[FT_STREAMS]; /* the last such op is the one before this */
};

/* Calls [first, last] of a class: of a pass those from the first that computes to the
 * last. */
struct program_pass {
	size_t first, last;
	uint32_t kind;	 /* equal: the same calls */
	uint32_t awaits; /* receives, as of a piece */
	uint64_t ahead;	 /* hash of the calls behind it, with the next two passes */
	bool receives;	 /* it has some of its own */
	/* Once so many ops of each stream are over, nothing behind the pass starts while it
	 * runs; NULL: nothing does. */
	const uint32_t *free_to; /* [FT_STREAMS] */
};

enum { NO_PASS = UINT32_MAX };

struct program_class {
	uint32_t *pass_of; /* [n_calls] the pass, if that has no receives, or NO_PASS */
	struct program_pass *pass;
	uint32_t *launches; /* [n_calls + 1] pieces of the calls before */
};

struct program {
	struct piece *piece;
	size_t *begin;		  /* [n_segments + 1] where a segment's pieces begin */
	struct program_class *of; /* [n_classes] */
	bool waits;		  /* some host waits for some op, */
	bool waits_elsewhere;	  /* that is not of compute */
};

/* depth: how many compute ops the host may be ahead. */
struct program *program_of(const struct ft_graph *graph, uint32_t depth,
			   struct arena *mem);

#endif
