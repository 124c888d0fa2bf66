/*
 * recorded/waits.c - which operation of another stream an operation was told to wait for
 *
 * The profiler records that the host told some stream to wait for some event, but
 * seldom which (CUDA's synchronisation events are off by default). The stream is
 * taken to be that of the thread's next launch. The event is
 *   1. the one told, where it is;
 *   2. else the last operation of the stream on which the waiting operation's begin
 *      follows an end within WITHIN_PS;
 *   3. else the last one launched before the event was recorded, on the stream of the
 *      launch before that.
 * An operation that ended after the waiting one began was not meant: the one before
 * it on its stream is tried. Limit: of two waits before one launch each finds its own.
 */
#include "recorded/replay.h"

static const ft_ps WITHIN_PS = 8000000, LATE_PS = 1000000;

enum { BACK = 64, PENDING = 8 };

struct search {
	struct ft_replay *p;
	const struct rank *k;
	int32_t *last_on_stream, *before; /* before: of an operation on its stream */
	int32_t *last_of_thread;	  /* operation launched last */
	int32_t *recorded; /* by call: operation that its event follows */
	int32_t *ops;	   /* first of a call */
};

struct pending {
	size_t n;
	int32_t call[PENDING];
};

static ft_ps begin_of(const struct search *s, int32_t op)
{
	return op_of(s->k->r, (size_t)op)->start;
}

static ft_ps end_of(const struct search *s, int32_t op)
{
	return begin_of(s, op) + op_of(s->k->r, (size_t)op)->duration;
}

/* The last of a stream that was over when op began. */
static int32_t over(const struct search *s, int32_t last, int32_t op)
{
	for (int i = 0; last != FT_REC_NONE && i < BACK; i++) {
		if (end_of(s, last) <= begin_of(s, op) + LATE_PS)
			return last;
		last = s->before[last];
	}
	return FT_REC_NONE;
}

static int32_t by_time(const struct search *s, int32_t op)
{
	int16_t own = op_of(s->k->r, (size_t)op)->stream;
	int32_t best = FT_REC_NONE;

	for (size_t i = 0; i < s->k->r->stream.n; i++) {
		int32_t x = (int16_t)i == own ? FT_REC_NONE :
						over(s, s->last_on_stream[i], op);

		if (x != FT_REC_NONE &&
		    (best == FT_REC_NONE || end_of(s, x) > end_of(s, best)))
			best = x;
	}
	if (best == FT_REC_NONE || begin_of(s, op) - end_of(s, best) > WITHIN_PS)
		return FT_REC_NONE;
	return best;
}

/* The collective launched last on any other stream: for a stream that waits for an
 * event recorded on itself. */
static int32_t last_collective(const struct search *s, int16_t own)
{
	int32_t best = FT_REC_NONE;

	for (size_t i = 0; i < s->k->r->stream.n; i++) {
		int32_t x = s->last_on_stream[i];

		if ((int16_t)i != own && x != FT_REC_NONE &&
		    op_of(s->k->r, (size_t)x)->rec_class == FT_REC_COLLECTIVE &&
		    (best == FT_REC_NONE || begin_of(s, x) > begin_of(s, best)))
			best = x;
	}
	return best;
}

static int32_t resolve(struct search *s, int32_t wait, int32_t op, int32_t recorded)
{
	const struct ft_recording *r = s->k->r;
	int16_t own = op_of(r, (size_t)op)->stream;
	int32_t told = call_of(r, (size_t)wait)->waits_for;
	int32_t found = FT_REC_NONE;

	if (told != FT_REC_NONE)
		found = s->recorded[told];
	if (found != FT_REC_NONE && end_of(s, found) <= begin_of(s, op) + LATE_PS) {
		s->p->counts.waits_told++;
		return found;
	}
	found = by_time(s, op);
	if (found != FT_REC_NONE) {
		s->p->counts.waits_by_time++;
		return found;
	}
	if (recorded != FT_REC_NONE && op_of(r, (size_t)recorded)->stream != own)
		found = over(s, recorded, op);
	else
		found = over(s, last_collective(s, own), op);
	if (found != FT_REC_NONE)
		s->p->counts.waits_by_order++;
	else
		s->p->counts.waits_unresolved++;
	return found;
}

/* Of several waits the operation that ends last. */
static int32_t settle(struct search *s, const struct pending *w, int32_t recorded,
		      int32_t op)
{
	int32_t last = FT_REC_NONE;

	for (size_t i = 0; i < w->n; i++) {
		int32_t x = resolve(s, w->call[i], op, recorded);

		if (x != FT_REC_NONE &&
		    (last == FT_REC_NONE || end_of(s, x) > end_of(s, last)))
			last = x;
	}
	return last;
}

static void launched(struct search *s, int32_t op, int16_t thread)
{
	int16_t stream = op_of(s->k->r, (size_t)op)->stream;

	s->before[op] = s->last_on_stream[stream];
	s->last_on_stream[stream] = op;
	s->last_of_thread[thread] = op;
}

static int32_t *filled(struct arena *mem, size_t n)
{
	int32_t *a = ARENA_ARRAY(mem, n, int32_t);

	for (size_t i = 0; i < n; i++)
		a[i] = FT_REC_NONE;
	return a;
}

/* A call that is no launch: events recorded, waits that come. */
static void note(struct search *s, size_t c, struct pending *w, int32_t *recorded)
{
	const struct ft_rec_call *call = call_of(s->k->r, c);

	if (call->kind == FT_REC_RECORD) {
		*recorded = s->recorded[c] = s->last_of_thread[call->thread];
	} else if (call->kind == FT_REC_WAIT) {
		if (w->n < PENDING)
			w->call[w->n++] = (int32_t)c;
		else
			s->p->counts.waits_unresolved++;
	}
}

int32_t *waits_find(struct ft_replay *p, const struct rank *k, struct arena *scratch)
{
	const struct ft_recording *r = k->r;
	struct search s = {
		.p = p,
		.k = k,
		.last_on_stream = filled(scratch, r->stream.n),
		.before = filled(scratch, r->op.n),
		.last_of_thread = filled(scratch, r->thread.n),
		.recorded = filled(scratch, r->call.n),
		.ops = filled(scratch, r->call.n),
	};
	struct pending *waits = ARENA_ARRAY(scratch, r->thread.n, struct pending);
	int32_t *recorded = filled(scratch, r->thread.n);
	int32_t *found = filled(scratch, r->op.n), *next = filled(scratch, r->op.n);

	for (size_t i = r->op.n; i-- > 0;) {
		int32_t op = (int32_t)r->op_order[i], call = op_of(r, (size_t)op)->call;

		if (call == FT_REC_NONE)
			continue;
		next[op] = s.ops[call];
		s.ops[call] = op;
	}
	for (size_t i = 0; i < r->call.n; i++) {
		size_t c = r->call_order[i];
		int16_t thread = call_of(r, c)->thread;
		int32_t op = s.ops[c];

		if (op == FT_REC_NONE) {
			note(&s, c, &waits[thread], &recorded[thread]);
			continue;
		}
		found[op] = settle(&s, &waits[thread], recorded[thread], op);
		waits[thread].n = 0;
		for (; op != FT_REC_NONE; op = next[op])
			launched(&s, op, thread);
	}
	return found;
}
