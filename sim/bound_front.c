/* sim/bound_front.c - ops put one behind another, and what runs beside what */
#include "sim/bound_front.h"

#include <math.h>
#include <string.h>

/* A little less, so that the rounding of a rate is on the other side. */
static const double LESS = 1 - 1e-9;

struct front_of front_of(const struct ft_gpu *gpu, const struct ft_graph *graph,
			 const struct work_timing *timing)
{
	/* as the engine has it (sim/rates.h) */
	struct front_of of = {
		.graph = graph,
		.timing = timing,
		.b = fmin((double)(float)gpu->collective_beside_compute.value,
			  (double)(float)gpu->collective_beside_memory.value),
		.least = INFINITY
	};

	memset(of.held, HELD_BY_DOMAIN, sizeof(of.held));
	for (size_t i = 0; i < graph->n_segments; i++)
		for (size_t j = 0; j < graph->segment[i].n_ops; j++) {
			const struct ft_op *op = &graph->segment[i].op[j];
			enum holds held = timing[op->work].held;

			if (op->stream >= FT_STREAM_GATHER &&
			    held < of.held[op->stream])
				of.held[op->stream] = (uint8_t)held;
			if (op->stream == FT_STREAM_COMPUTE)
				of.least = fminf(of.least, timing[op->work].beside[0]);
		}
	return of;
}

/* x: what a collective costs compute that takes c times as long beside it. */
static double of_compute(const struct front_of *of, double c)
{
	return LESS * fmin(1, of->b * (1 - 1 / c));
}

/* y: what such compute costs the collective. */
static double on_collective(const struct front_of *of, double c)
{
	return LESS * fmin(1, c * (1 - 1 / of->b));
}

void front_open(struct front *f)
{
	*f = (struct front){ .open = 0 };
	for (int i = 0; i < FT_STREAMS; i++)
		f->stream[i] = NOT_YET;
	for (int i = 0; i < FT_EVENTS; i++) {
		f->event[i] = NOT_YET;
		f->event_of[i] = FT_STREAMS;
	}
}

void front_open_block(struct front *f, int stream, struct block block)
{
	f->block[stream - FT_STREAM_GATHER] = block;
	f->open |= 1u << stream;
}

const struct block *front_block(const struct front *f, int stream)
{
	return f->open >> stream & 1 ? &f->block[stream - FT_STREAM_GATHER] : NULL;
}

static ft_ps toll(ft_ps of, double rate)
{
	return (ft_ps)((double)of * rate);
}

ft_ps block_compute(const struct front_of *of, const struct block *b)
{
	return b->compute + toll(b->alone, of_compute(of, (double)of->least));
}

/* When compute and the block's collectives can both be over. */
static ft_ps block_end(const struct front_of *of, const struct block *b)
{
	ft_ps compute = b->compute + toll(b->alone, of_compute(of, (double)b->least));

	return compute > b->collective ? compute : b->collective;
}

static ft_ps awaited(const struct front *f, uint8_t code)
{
	return code < FT_EVENTS ? f->event[code] : f->stream[code - FT_TAIL];
}

/* The stream that has done all that was put on it when this comes; FT_STREAMS: none. */
static int drained(const struct front *f, uint8_t code)
{
	return code < FT_EVENTS ? f->event_of[code] : code - FT_TAIL;
}

/* behind: it begins when compute has done all that was put before. */
static void put_collective(struct front *f, const struct front_of *of,
			   const struct ft_op *op, bool behind)
{
	struct block *b = &f->block[op->stream - FT_STREAM_GATHER];
	const struct work_timing *t = &of->timing[op->work];
	ft_ps from = f->stream[FT_STREAM_COMPUTE];
	unsigned bit = 1u << op->stream;

	if (t->copy_engine || (!(f->open & bit) && (!behind || from == NOT_YET)))
		return;
	if (!(f->open & bit)) {
		*b = (struct block){ from, from, 0, 0, INFINITY };
		f->open |= bit;
	} else if (behind) {
		if (from >= block_end(of, b)) {
			b->compute = from;
			b->alone = 0;
			b->least = INFINITY;
		}
		if (from > b->collective)
			b->collective = from;
	}
	b->alone += t->duration;
	b->all += t->duration;
	b->collective += t->duration;
}

static void put_compute(struct front *f, const struct front_of *of,
			const struct ft_op *op)
{
	const struct work_timing *t = &of->timing[op->work];

	for (unsigned left = f->open; left; left &= left - 1) {
		int stream = __builtin_ctz(left);
		struct block *b = &f->block[stream - FT_STREAM_GATHER];
		float c = stream < FRONT_WORK ? t->beside[of->held[stream]] : of->least;

		b->compute += t->duration;
		b->collective += toll(t->duration, on_collective(of, (double)c));
		b->least = fminf(b->least, c);
	}
}

static void note_receives(struct front *f, const struct ft_op *op)
{
	for (int i = 0; i < FT_OP_WAITS && op->wait[i] != FT_EVENT_NONE; i++) {
		f->awaits[0] |= op->wait[i] == FT_TAIL + FT_STREAM_RECV_FORWARD;
		f->awaits[1] |= op->wait[i] == FT_TAIL + FT_STREAM_RECV_BACKWARD;
	}
}

static bool in_block(int stream)
{
	return stream >= FT_STREAM_GATHER && stream <= FT_STREAM_EP;
}

/* When what it waits for can be over. */
static ft_ps earliest(const struct front *f, const struct front_of *of,
		      const struct ft_op *op, bool *behind)
{
	ft_ps at = f->stream[op->stream];

	for (int i = 0; i < FT_OP_WAITS && op->wait[i] != FT_EVENT_NONE; i++) {
		ft_ps end = awaited(f, op->wait[i]);
		int stream = drained(f, op->wait[i]);

		at = end > at ? end : at;
		*behind |= stream == FT_STREAM_COMPUTE;
		if (op->stream != FT_STREAM_COMPUTE || !in_block(stream) ||
		    !(f->open >> stream & 1))
			continue;
		end = block_end(of, &f->block[stream - FT_STREAM_GATHER]);
		at = end > at ? end : at;
	}
	return at;
}

/* What was recorded before is no longer the last of its stream. */
static void note_record(struct front *f, const struct ft_op *op)
{
	for (int i = 0; i < FT_EVENTS; i++)
		if (f->event_of[i] == op->stream)
			f->event_of[i] = FT_STREAMS;
	if (op->record < FT_EVENTS) {
		f->event[op->record] = f->stream[op->stream];
		f->event_of[op->record] = op->stream;
	}
}

/* Put one op behind what it waits for. */
static void put(struct front *f, const struct front_of *of, const struct ft_op *op)
{
	bool compute = op->stream == FT_STREAM_COMPUTE, behind = false;
	ft_ps at;

	if (op->stream == FT_STREAM_RECV_FORWARD ||
	    op->stream == FT_STREAM_RECV_BACKWARD)
		return; /* its end is the neighbour's to say */
	at = earliest(f, of, op, &behind);
	if (compute && !f->any_compute) {
		note_receives(f, op);
		at = at == NOT_YET ? 0 : at;
		f->any_compute = true;
	}
	if (at != NOT_YET)
		f->stream[op->stream] = at + of->timing[op->work].duration;
	if (compute && f->open)
		put_compute(f, of, op);
	else if (in_block(op->stream))
		put_collective(f, of, op, behind);
	note_record(f, op);
}

/* ---- calls ---------------------------------------------------------------------- */

enum { FIRST_BLOCK = FT_STREAMS + FT_EVENTS, PLACES = FIRST_BLOCK + FRONT_BLOCKS };

static ft_ps *place_of(struct front *f, int i)
{
	return i < FT_STREAMS  ? &f->stream[i] :
	       i < FIRST_BLOCK ? &f->event[i - FT_STREAMS] :
				 &f->block[i - FIRST_BLOCK].compute;
}

/* What a call puts something on, records, or waits for as a block: bits as places; of a
 * block, that of its first moment. */
static unsigned touched_by(const struct front *f, const struct ft_segment *seg)
{
	unsigned touched = 0;

	for (size_t i = 0; i < seg->n_ops; i++) {
		const struct ft_op *op = &seg->op[i];

		touched |= 1u << op->stream;
		if (in_block(op->stream))
			touched |= 1u << (FIRST_BLOCK + op->stream - FT_STREAM_GATHER);
		if (op->record < FT_EVENTS)
			touched |= 1u << (FT_STREAMS + op->record);
		for (int k = 0; k < FT_OP_WAITS && op->wait[k] != FT_EVENT_NONE; k++) {
			int stream = drained(f, op->wait[k]);

			if (op->stream == FT_STREAM_COMPUTE && in_block(stream))
				touched |= 1u
					   << (FIRST_BLOCK + stream - FT_STREAM_GATHER);
		}
	}
	return touched;
}

/* By what each place moves in one repeat. */
struct move {
	ft_ps by; /* what is touched */
	struct block block[FRONT_BLOCKS];
};

/* What blocks move by; false: one of those touched is not yet in a steady state. */
static bool blocks_moved_on(const struct front *was, const struct front *is,
			    unsigned touched, struct move *m)
{
	for (int i = 0; i < FRONT_BLOCKS; i++) {
		const struct block *a = &was->block[i], *b = &is->block[i];

		m->block[i].compute = b->compute - a->compute;
		m->block[i].collective = b->collective - a->collective;
		m->block[i].all = b->all - a->all;
		if (touched >> (FIRST_BLOCK + i) & 1 &&
		    (a->alone != b->alone || a->least < b->least ||
		     a->least > b->least ||
		     m->block[i].compute != m->block[i].collective))
			return false;
	}
	return true;
}

/*
 * A call made again and again: once all that it touches moved on by the same time, it moves
 * on by that each time. What it does not touch stays where it is, below what it had to wait
 * for, so that waiting for it makes no difference any more. false: not yet so.
 */
static bool moved_on(struct front *was, struct front *is, unsigned touched,
		     struct move *m)
{
	unsigned none =
		~(is->open >> FT_STREAM_GATHER << FIRST_BLOCK) & ~0u << FIRST_BLOCK;

	*m = (struct move){ .by = 0 };
	touched &= ~none; /* blocks that are not open */
	if (was->open != is->open || !blocks_moved_on(was, is, touched, m))
		return false;
	for (int i = 0; i < PLACES; i++) {
		ft_ps a = *place_of(was, i), b = *place_of(is, i);

		if (!(touched >> i & 1) || (a == NOT_YET && b == NOT_YET))
			continue;
		if (a == NOT_YET || b <= a || (m->by && b - a != m->by))
			return false;
		m->by = b - a;
	}
	return m->by > 0;
}

static void move(struct front *f, unsigned touched, const struct move *m, int64_t times)
{
	for (int i = 0; i < FIRST_BLOCK; i++)
		if (touched >> i & 1 && *place_of(f, i) != NOT_YET)
			*place_of(f, i) += times * m->by;
	for (int i = 0; i < FRONT_BLOCKS; i++) {
		f->block[i].compute += times * m->block[i].compute;
		f->block[i].collective += times * m->block[i].collective;
		f->block[i].all += times * m->block[i].all;
	}
}

void front_call(struct front *f, const struct front_of *of, uint32_t segment,
		int64_t left)
{
	const struct ft_segment *seg = &of->graph->segment[segment];
	bool many = left > 3;
	struct front was = *f;
	struct move m;

	for (int64_t done = 0; left; left--, done++) {
		unsigned touched;

		if (many)
			was = *f;
		for (size_t i = 0; i < seg->n_ops; i++)
			put(f, of, &seg->op[i]);
		if (!many || left == 1 || !done)
			continue;
		touched = touched_by(f, seg);
		if (moved_on(&was, f, touched, &m)) {
			move(f, touched, &m, left - 1);
			return;
		}
	}
}
