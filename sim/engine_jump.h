/*
 * sim/engine_jump.h - passes that were run before; the engine's own files' alone
 *
 * From the moment that compute begins a call of a pass until the pass's last compute op is
 * over, a part's streams depend on nothing but the state in which they are then: how far each
 * is, what of the op that it runs is left, and, where the host has not yet launched all of
 * the pass, where the host is. That holds where nothing behind the pass can start before it
 * is over (but what started by itself, as gathers of weights do, and was over before it
 * began) and the pass awaits no receive once it runs (sim/program.h), and where its ops
 * cross no link that others use. So the first time that a pass goes on from a state it is
 * recorded, and each further time, on any part with the same durations, it is the moments at
 * which its sends arrive, and its end. Receives and launches go on as they would. Times are
 * whole picoseconds from the beginning on, and what is left of an op is compared bit by bit,
 * so that a step comes out as if all of it had been run: tests/test_jump.c does both.
 *
 * A collective that waits for other parts when the pass goes on may go on waiting: what is
 * behind it on its stream waits, too. If the others come while the pass is jumped over, the
 * part goes back to where it left and runs up to that moment, without what it has sent.
 *
 * Time in which a part waits for its neighbour or its host only is a bubble or not by what
 * has arrived; a pass with such moments is used again only if no receive was launched by
 * then. Not used again is one that ends while its collectives share a link.
 */
#ifndef SIM_ENGINE_JUMP_H
#define SIM_ENGINE_JUMP_H

#include "sim/engine_state.h"

enum {
	MOST_JUMPS = 4096,
	MOST_LATE = 16,
	KEY_WORDS = 10 + 7 * FT_STREAMS + FT_EVENTS + 2 * MOST_LATE
};

/* A stream at the end of a pass, from its beginning and its end on. */
struct stream_end {
	int32_t done; /* of the ops launched since the pass began; -1: runs one before */
	uint8_t state; /* IDLE, RUNNING, TO_LAUNCH */
	struct running run;
	ft_ps began, due;
};

struct sent {
	ft_ps at; /* from the pass's beginning on */
	uint8_t stream;
	bool reverse;
};

struct spent_on {
	uint32_t work, count;
	ft_ps time;
};

/* A pass as it was run. */
struct jump {
	const uint64_t *key; /* [n_key] */
	size_t n_key;
	bool usable;
	ft_ps length;
	ft_ps spent[5];
	uint8_t state; /* enum phase, at its end */
	struct stream_end end[FT_STREAMS];
	const struct sent *sent; /* [n_sent] in their order */
	size_t n_sent;
	const struct spent_on *on; /* [n_on] but for its last op */
	size_t n_on;
	uint64_t n_over;
	const ft_ps *done_at; /* [n_done] ends of compute ops, but for the last */
	uint32_t n_done;
	uint64_t times; /* jumped over, in pipeline 0 */
};

/* A stream when its part left: as it ran, and when its event was due. */
struct stood {
	struct running run;
	ft_ps due;
};

/* A part's pass while it is run, or jumped over. */
struct recording {
	struct jump *into;
	const struct program_pass *pass;
	ft_ps from;
	bool held_up;  /* not all of it was launched when it began */
	bool receives; /* some were launched since, */
	ft_ps idle;    /* and it had been idle for so long when the first was */
	uint32_t base[FT_STREAMS];
	ft_ps spent[5];
	struct spent_on *over; /* [n_over] one op each */
	size_t n_over, cap_over;
	struct sent *sent; /* [n_sent] */
	size_t n_sent, cap_sent, next_sent;
	ft_ps *done_at; /* [n_done] */
	size_t n_done, cap_done;
	struct stood stood[FT_STREAMS]; /* when it was left to be jumped over */
};

struct jumps {
	struct jump **slot; /* [n_slots] by the hash of their keys */
	size_t n_slots, n;
	struct jump **all;    /* [n] in their order */
	struct recording *of; /* [n_parts] */
	struct spent_on *sum; /* [n_works] all zero between uses */
};

struct jump_key {
	uint64_t word[KEY_WORDS];
	size_t n;
};

static inline struct recording *recording_of(const struct engine *e,
					     const struct part_state *r)
{
	return &e->jumps->of[r - e->part];
}

/* ---- engine_record.c ------------------------------------------------------------------ */

/* Where the jump from the state in which the part is now is, or is to be put; its key. NULL:
 * what follows does not depend on that state alone. */
struct jump **jump_find(const struct engine *e, const struct part_state *r,
			const struct program_pass *pass, struct jump_key *key);
/* The pass goes on from here; what is done from now on is kept there. */
void jump_record(struct engine *e, struct part_state *r,
		 const struct program_pass *pass, const struct jump_key *key,
		 struct jump **at);
/* Note where and when the part is. */
void jump_note_begin(const struct engine *e, struct part_state *r,
		     const struct program_pass *pass, struct jump *into);

/* ---- engine_period.c ------------------------------------------------------------------ */

/* The part begins a call of a pass, with all that this set off: if it is the first of the pass, and a pass
 * before began alike, so many micro-batches later; else what it is like is noted. */
void period_or_note(struct engine *e, struct part_state *r,
		    const struct program_pass *pass);

#endif
