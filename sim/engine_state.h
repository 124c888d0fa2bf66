/*
 * sim/engine_state.h - what the engine keeps while it runs; its own files' alone
 */
#ifndef SIM_ENGINE_STATE_H
#define SIM_ENGINE_STATE_H

#include "sim/engine.h"
#include "sim/evq.h"
#include "sim/program.h"
#include "sim/rates.h"

struct wait {
	uint32_t stream : 4;  /* FT_STREAMS: none */
	uint32_t number : 28; /* a run has far fewer ops (base/limits.h) */
};

/* A piece of a call that was launched. Its ops are numbered from base on. */
struct launch {
	const struct piece *piece;
	ft_ps began;	     /* the call */
	const ft_ps *host;   /* [its segment's ops] launched so much later; NULL: 0 */
	uint32_t call, turn; /* of its class's program; which of its repeats */
	uint32_t slot;	     /* of the class: that of its call; n_slots: of none */
	uint32_t base[FT_STREAMS];    /* ops launched on each stream before */
	struct wait event[FT_EVENTS]; /* as recorded before */
};

/* An op as it is drawn. */
struct entry {
	const struct ft_op *op;
	ft_ps launched;
	uint32_t slot, call, turn;
};

enum stream_state { IDLE, TO_LAUNCH, RUNNING, MEETING };

struct stream {
	struct event event; /* first: event to stream is a cast */
	uint8_t id, state;
	uint32_t part;
	uint32_t launched, completed; /* launched - completed are queued; */
	uint32_t at, number; /* the first of them: of which launch, which of its ops; */
	const struct piece_op *head;   /* that op */
	uint32_t arrived[2], taken[2]; /* receive: what peers have sent; reverse */
	struct running run;
	ft_ps began;
	/* where it is idle, its head waits for another stream to complete so many: */
	uint8_t held_by;
	uint32_t held_to;
};

struct part_state {
	const struct engine_part *of;
	const struct program *program; /* of its job */
	struct stream stream[FT_STREAMS];
	struct wait event[FT_EVENTS];
	struct launch *ring;	      /* [cap], a power of two */
	uint32_t cap, n_launches;     /* since the start; */
	uint32_t first;		      /* none of those before it is queued */
	size_t next_call, next_piece; /* next_piece: of a call that is half launched */
	size_t next_slot;	      /* the first that begins behind next_call */
	uint32_t slot;		      /* of what is being launched */
	uint32_t repeat_done;
	ft_ps host_now, call_began;
	struct wait awaited;	 /* an op that the host waits for */
	bool host_blocked, over; /* over: its program, once */
	struct recording
		*recording; /* sim/engine_jump.c: of the pass that runs, or NULL */
	struct jump *jump;  /* the pass that is jumped over, or NULL */
	size_t n_sent_before; /* sends that arrived while it was, before it was interrupted */
	uint8_t state;	      /* enum phase */
	ft_ps since;
	ft_ps spent[5];
	ft_ps end;
	unsigned queued;  /* bit i: stream i has ops launched and not over */
	unsigned running; /* bit i: stream i is RUNNING */
	bool rated;	  /* what runs was given its rates since an op was over last */
	/* of a timeline; before: [n_calls], bytes held when one begins; NULL: not drawn */
	double (*before)[FT_MEMORIES];
	struct pass_call **passes; /* of its graph */
	ft_ps call_from, phase_from;
	double port_frac, nic_frac; /* as drawn last */
	double watts, watts_drawn;  /* since watts_from; as drawn last */
	ft_ps watts_from;
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
	struct jumps *jumps;		/* NULL: every pass is run */
	struct periods *periods; /* NULL: of several parts, or every pass is run */
	struct part_state *
		*anchored; /* [n_anchored] whose compute began a call just now */
	size_t n_anchored;
	struct drawn_rank *rank; /* of a timeline of Kineto's shape */
};

static inline const struct launch *launch_at(const struct part_state *r, uint32_t at)
{
	return &r->ring[at & (r->cap - 1)];
}

static inline const struct ft_work *work_of(const struct part_state *r,
					    const struct stream *s)
{
	return &r->of->job->graph->work[s->head->op->work];
}

/* The time up to now counts as what the part is at. */
static inline void engine_account(const struct engine *e, struct part_state *r)
{
	r->spent[r->state] += e->q.now - r->since;
	r->since = e->q.now;
}

static inline uint32_t ops_on(const struct piece *p, int stream)
{
	return p->begin[stream + 1] - p->begin[stream];
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
void draw_op(struct engine *e, const struct stream *s);
void draw_received(struct engine *e, const struct stream *s); /* it has come */
/* It was in state `was` and now is in r->state. */
void draw_phase(struct engine *e, struct part_state *r, uint8_t was);
void draw_links(struct engine *e, struct part_state *r);
void draw_power(struct engine *e, struct part_state *r);
/* What is still open when all is over. */
void draw_rest(struct engine *e);

/* ---- engine_host.c ----------------------------------------------------------------- */

void engine_init(struct engine *e);
/* How the parts spent their time, to the output. */
void engine_collect(struct engine *e);
/* Launch calls until the compute queue is full or the program is over. */
void engine_launch(struct engine *e, struct part_state *r, ft_ps now);
/* When the op at the head is launched. */
ft_ps engine_launched(const struct engine *e, const struct stream *s);
/* Its head is the next op, if one is launched. */
void engine_find_head(const struct part_state *r, struct stream *s);

/* ---- engine.c, for engine_jump.c --------------------------------------------------- */

void engine_finish(struct engine *e, struct stream *s);
/* A send arrives: the next (previous) stage's receive may end. */
void engine_deliver(struct engine *e, const struct stream *s, bool reverse);

/* What is due before then, which is all of one part, is run again. */
void engine_replay(struct engine *e, ft_ps then);

/* ---- engine_limits.c ---------------------------------------------------------------- */

/* All has run that can: true if some part is not over, with what it waits for. */
bool engine_stuck(const struct engine *e, struct ft_error *err);
bool engine_small_enough(const struct engine_input *in, struct ft_error *err);
/* Has it gone on for too long? */
bool engine_beyond(const struct engine *e, struct ft_error *err);

/* ---- engine_jump.c ------------------------------------------------------------------ */

/* Passes that begin in a state in which one of their kind began before are not run again:
 * NULL where that cannot be told. */
struct jumps *jumps_new(struct engine *e);
/* Micro-batches that come to go as those before are added instead: NULL where other parts take part. */
struct periods *periods_new(struct engine *e);
/* The part's compute has begun a call of a pass, and all that this set off has begun. */
void jump_or_record(struct engine *e, struct part_state *r);
/* An op of a pass that is recorded is over; before anything follows from it. */
void jump_note_over(struct engine *e, struct stream *s);
/* The host has launched more while a pass is recorded. */
void jump_note_launched(struct engine *e, struct part_state *r);
/* A send of it arrives. */
void jump_note_sent(struct engine *e, const struct stream *s, bool reverse);
/* Others come to a collective that the part waits with. */
void jump_interrupt(struct engine *e, struct part_state *r);
void jump_on(struct engine *e, struct part_state *r); /* its time has come */
/* What was jumped over is added to the works' times. */
void jumps_count(struct engine *e);

#endif
