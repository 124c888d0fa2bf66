/*
 * sim/engine_state.h - what the engine keeps while it runs; its own files' alone
 */
#ifndef SIM_ENGINE_STATE_H
#define SIM_ENGINE_STATE_H

#include "sim/engine.h"
#include "sim/evq.h"
#include "sim/rates.h"

struct wait {
	uint32_t stream : 4;  /* FT_STREAMS: none */
	uint32_t number : 28; /* a run has far fewer ops (base/limits.h) */
};

struct entry { /* an op in a stream's queue */
	const struct ft_op *op;
	uint32_t slot; /* of the class: that of its call; n_slots: of none */
	ft_ps launched;
	uint32_t call, turn; /* of its class's program; which of its repeats */
	struct wait wait[FT_OP_WAITS]; /* up to the first without a stream */
};

enum stream_state { IDLE, TO_LAUNCH, RUNNING, MEETING };

struct stream {
	struct event event; /* first: event to stream is a cast */
	uint8_t id, state;
	uint32_t part;
	struct entry *ring;		   /* [cap], a power of two */
	uint32_t cap, launched, completed; /* launched - completed are queued */
	uint32_t arrived[2], taken[2];	   /* receive: what peers have sent; reverse */
	struct running run;
	ft_ps began;
};

struct part_state {
	struct stream stream[FT_STREAMS];
	struct wait event[FT_EVENTS];
	size_t next_call, next_op; /* next_op: of a call that is half launched */
	size_t next_slot;	   /* the first that begins behind next_call */
	uint32_t slot;		   /* of what is being launched */
	uint32_t repeat_done;
	ft_ps host_now, call_began;
	struct wait awaited; /* an op that the host waits for */
	bool host_blocked;
	bool over;     /* its program, once */
	uint8_t state; /* enum phase */
	ft_ps since;
	ft_ps spent[5];
	ft_ps end;
	unsigned queued;   /* bit i: stream i has ops launched and not over */
	int64_t n_running; /* streams RUNNING or MEETING */
	/* of a timeline: */
	struct drawn_call *drawn;  /* [n_calls] of its program; NULL: none is drawn */
	struct pass_call **passes; /* of its graph */
	ft_ps call_from, phase_from;
	double port_frac, nic_frac; /* as drawn last */
};

enum phase { OPTIMIZER, COMPUTE, EXPOSED, BUBBLE, HOST };

struct engine {
	struct arena *mem;
	const struct engine_input *in;
	struct engine_output *out;
	struct evq q;
	struct rates rates;
	struct part_state *part; /* [n_parts] */
	struct stream **tied;	 /* [n_pipelines] a tied embedding's first arrival */
	uint32_t *team_of, *team_begin; /* parts by team, where each team's begin */
	size_t n_going;			/* parts that are to end and have not */
	bool crowded;			/* more waits on a stream than may */
};

static inline const struct engine_part *part_of(const struct engine *e,
						const struct part_state *r)
{
	return &e->in->part[r - e->part];
}

/* The part that a send goes to; reverse: as in a V's second half. */
static inline size_t receiver(const struct engine_part *p, enum ft_stream send,
			      bool reverse)
{
	return (send == FT_STREAM_SEND_FORWARD) != reverse ? p->next : p->before;
}

/* sim/engine_draw.c: the timeline, where one is asked for. */
void draw_part(struct engine *e, size_t part);
void draw_call(struct engine *e, struct part_state *r, uint32_t call, uint32_t turn);
void draw_op(struct engine *e, struct stream *s, const struct entry *in);
/* It was in state `was` and now is in r->state. */
void draw_phase(struct engine *e, struct part_state *r, uint8_t was);
void draw_links(struct engine *e, struct part_state *r);
/* What is still open when all is over. */
void draw_rest(struct engine *e);

/* engine_host.c */
void engine_init(struct engine *e);
/* Launch calls until the compute queue is full or the program is over. */
void engine_launch(struct engine *e, struct part_state *r);

#endif
