/*
 * recorded/depend.c - what an operation of the GPU waits for: its launch, its stream,
 * events, and the ranks it meets
 *
 * Least lags, for what an operation did not wait for last: from a launch the tenth part
 * (P10) over operations whose stream was idle when they were launched (the others may
 * have waited for events), along a stream the median over those launched long before the
 * stream was free. An operation that began
 * later than its launch and its stream allow is taken to have waited for the operation
 * of another stream that ended just before, whether or not a wait was recorded; if none
 * did, for room: a kernel of another stream held the compute units, and this one began
 * when so much of that one was done.
 */
#include <stdlib.h>

#include "recorded/replay.h"

static const ft_ps SLACK_PS = 2000000;	/* later than known reasons explain */
static const ft_ps WITHIN_PS = 8000000; /* of an end, to be its consequence */
static const ft_ps LATER_PS = 50000000; /* the same where events are slow (ROCm) */
static const ft_ps GAP_PS = 10000000;	/* worth counting */
static const ft_ps LATE_PS = 1000000;	/* clocks of GPU streams agree so well */

struct lags {
	ft_ps launch, stream;
};

struct depend {
	struct ft_replay *p;
	struct rank *k;
	struct lags least;
	const int32_t *wait, *before; /* [op] */
	int32_t *running;	      /* by stream: the operation that began last */
	uint32_t *by_end;
	size_t ended; /* of by_end: over at the current begin */
};

static ft_ps end_of(const struct ft_rec_op *o)
{
	return o->start + o->duration;
}

/* ---- least lags --------------------------------------------------------------------- */

/* The value below which so many tenths lie. */
static ft_ps tenths(ft_ps *v, size_t n, size_t tenth)
{
	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), by_whole);
	v += n * tenth / 10;
	return *v > 0 ? *v : 0;
}

static struct lags least_lags(const struct rank *k, const int32_t *before)
{
	const struct ft_recording *r = k->r;
	struct arena scratch = { 0 };
	ft_ps *launch = ARENA_ARRAY(&scratch, r->op.n, ft_ps);
	ft_ps *stream = ARENA_ARRAY(&scratch, r->op.n, ft_ps);
	size_t n = 0, m = 0;
	struct lags l;

	for (size_t i = 0; i < r->op.n; i++) {
		const struct ft_rec_op *o = op_of(r, i), *b;
		const struct ft_rec_call *c;

		if (o->call == FT_REC_NONE || before[i] == FT_REC_NONE)
			continue;
		b = op_of(r, (size_t)before[i]);
		c = call_of(r, (size_t)o->call);
		if (end_of(b) < c->start && o->start >= c->start)
			launch[n++] = o->start - c->start;
		else if (c->start + c->duration < b->start && o->start >= end_of(b))
			stream[m++] = o->start - end_of(b);
	}
	l = (struct lags){ tenths(launch, n, 1), tenths(stream, m, 5) };
	if (l.launch >
	    LATER_PS) /* most were sends and receives, which waited for a rank */
		l.launch = LATER_PS;
	arena_release(&scratch);
	return l;
}

/* ---- one operation --------------------------------------------------------------------- */

struct reason {
	uint32_t event;
	ft_ps at, least; /* when the event was, the least lag from it */
	enum ft_rec_cause cause;
	enum lag_kind kind;
};

/* The operation of another stream that ended last before this one began. */
static int32_t just_ended(struct depend *d, const struct ft_rec_op *o, ft_ps within)
{
	const struct ft_recording *r = d->k->r;

	while (d->ended < r->op.n &&
	       end_of(op_of(r, d->by_end[d->ended])) <= o->start + LATE_PS)
		d->ended++;
	for (size_t i = d->ended; i-- > 0;) {
		const struct ft_rec_op *x = op_of(r, d->by_end[i]);

		if (o->start - end_of(x) > within)
			break;
		if (x->stream != o->stream && x->start < o->start && x->duration > 0)
			return (int32_t)d->by_end[i];
	}
	return FT_REC_NONE;
}

/* The kernel of another stream that began last and ran when this one began. */
static int32_t in_the_way(const struct depend *d, const struct ft_rec_op *o)
{
	int32_t best = FT_REC_NONE;

	for (size_t s = 0; s < d->k->r->stream.n; s++) {
		int32_t x = (int16_t)s == o->stream ? FT_REC_NONE : d->running[s];
		const struct ft_rec_op *run;

		if (x == FT_REC_NONE)
			continue;
		run = op_of(d->k->r, (size_t)x);
		if (!run->is_copy && run->rec_class != FT_REC_COLLECTIVE &&
		    run->start < o->start && end_of(run) > o->start &&
		    (best == FT_REC_NONE ||
		     run->start > op_of(d->k->r, (size_t)best)->start))
			best = x;
	}
	return best;
}

static size_t reasons_of(const struct depend *d, size_t i, struct reason reason[4])
{
	const struct rank *k = d->k;
	const struct ft_rec_op *o = op_of(k->r, i);
	size_t n = 0;

	if (o->call != FT_REC_NONE)
		reason[n++] =
			(struct reason){ call_event(k, (size_t)o->call, false),
					 call_of(k->r, (size_t)o->call)->start,
					 d->least.launch, FT_REC_BY_LAUNCH, LAG_FIXED };
	if (d->before[i] != FT_REC_NONE) {
		const struct ft_rec_op *b = op_of(k->r, (size_t)d->before[i]);
		bool over = end_of(b) <= o->start;

		reason[n++] =
			(struct reason){ op_event(k, (size_t)d->before[i], over),
					 over ? end_of(b) : b->start,
					 over ? d->least.stream : o->start - b->start,
					 FT_REC_BY_STREAM,
					 over ? LAG_FIXED : LAG_SHARE };
	}
	if (d->wait[i] != FT_REC_NONE)
		reason[n++] = (struct reason){ op_event(k, (size_t)d->wait[i], true),
					       end_of(op_of(k->r, (size_t)d->wait[i])),
					       0, FT_REC_BY_EVENT, LAG_FIXED };
	return n;
}

/* The reason that came last counts for as much as it took; others for the least. */
static enum ft_rec_cause bind(struct depend *d, size_t i, const struct reason *reason,
			      size_t n)
{
	ft_ps start = op_of(d->k->r, i)->start;
	size_t last = 0;

	if (!n)
		return FT_REC_BY_NOTHING;
	for (size_t j = 1; j < n; j++)
		if (reason[j].at + reason[j].least >
		    reason[last].at + reason[last].least)
			last = j;
	for (size_t j = 0; j < n; j++) {
		ft_ps lag = start - reason[j].at;

		if (j != last && lag > reason[j].least)
			lag = reason[j].least;
		edge_add(d->p, reason[j].event, op_event(d->k, i, false), lag,
			 reason[j].kind);
	}
	return reason[last].cause;
}

static ft_ps unexplained(const struct reason *reason, size_t n, ft_ps start)
{
	ft_ps last = INT64_MIN / 2;

	for (size_t j = 0; j < n; j++)
		if (reason[j].at + reason[j].least > last)
			last = reason[j].at + reason[j].least;
	return start - last;
}

/* What known reasons leave open: an end just before, room, an end not long before. */
static struct reason another(struct depend *d, const struct ft_rec_op *o, ft_ps slack)
{
	int32_t x = just_ended(d, o, WITHIN_PS), in = FT_REC_NONE;
	const struct ft_rec_op *op;

	if (x == FT_REC_NONE && slack > WITHIN_PS)
		in = in_the_way(d, o);
	if (in != FT_REC_NONE) {
		op = op_of(d->k->r, (size_t)in);
		return (struct reason){ op_event(d->k, (size_t)in, false), op->start,
					o->start - op->start, FT_REC_BY_ROOM,
					LAG_SHARE };
	}
	if (x == FT_REC_NONE)
		x = just_ended(d, o, LATER_PS);
	if (x != FT_REC_NONE) {
		op = op_of(d->k->r, (size_t)x);
		if (o->start - end_of(op) < slack)
			return (struct reason){ op_event(d->k, (size_t)x, true),
						end_of(op), o->start - end_of(op),
						FT_REC_BY_EVENT, LAG_FIXED };
	}
	return (struct reason){ .cause = FT_REC_BY_NOTHING };
}

static void begin_op(struct depend *d, size_t i)
{
	const struct ft_rec_op *o = op_of(d->k->r, i);
	struct reason reason[4];
	size_t n = reasons_of(d, i, reason);
	ft_ps slack = n ? unexplained(reason, n, o->start) : 0;
	enum ft_rec_cause cause;

	if (slack > SLACK_PS) {
		reason[n] = another(d, o, slack);
		if (reason[n].cause != FT_REC_BY_NOTHING) {
			slack = 0;
			n++;
		}
	}
	cause = bind(d, i, reason, n);
	if (slack > GAP_PS && cause != FT_REC_BY_LAUNCH) {
		d->p->counts.gaps++;
		d->p->counts.gaps_ps += slack;
		cause = FT_REC_BY_NOTHING;
	}
	d->k->cause[i] = (uint8_t)cause;
	d->running[o->stream] = (int32_t)i;
}

/* A collective that ranks meet for lasts from when the last of them begins. */
static void end_op(struct depend *d, size_t i)
{
	const struct rank *k = d->k;
	uint32_t begin = op_event(k, i, false), end = op_event(k, i, true), met;

	if (k->meeting[i] == FT_REC_NONE) {
		edge_add(d->p, begin, end, 0, LAG_OP);
		return;
	}
	met = d->p->first_meeting + (uint32_t)k->meeting[i];
	edge_add(d->p, begin, met, 0, LAG_FIXED);
	edge_add(d->p, met, end, 0, LAG_OP);
}

/* ---- all of them ---------------------------------------------------------------------------- */

static uint32_t *ops_by_end(const struct ft_recording *r, struct arena *scratch)
{
	struct timed_op *e = ARENA_ARRAY(scratch, r->op.n, struct timed_op);
	uint32_t *order = ARENA_ARRAY(scratch, r->op.n, uint32_t);
	bool sorted = true;

	for (size_t i = 0; i < r->op.n; i++) {
		uint32_t op = r->op_order[i];

		e[i] = (struct timed_op){ end_of(op_of(r, op)), op };
		sorted = sorted && (!i || by_time_and_op(&e[i - 1], &e[i]) <= 0);
	}
	if (!sorted)
		qsort(e, r->op.n, sizeof(*e), by_time_and_op);
	for (size_t i = 0; i < r->op.n; i++)
		order[i] = e[i].op;
	return order;
}

static int32_t *ops_before(const struct ft_recording *r, struct arena *scratch)
{
	int32_t *before = ARENA_ARRAY(scratch, r->op.n, int32_t);
	int32_t *last = ARENA_ARRAY(scratch, r->stream.n, int32_t);

	for (size_t i = 0; i < r->stream.n; i++)
		last[i] = FT_REC_NONE;
	for (size_t i = 0; i < r->op.n; i++) {
		uint32_t op = r->op_order[i];
		int16_t stream = op_of(r, op)->stream;

		before[op] = last[stream];
		last[stream] = (int32_t)op;
	}
	return before;
}

void ops_depend(struct ft_replay *p, struct rank *k)
{
	const struct ft_recording *r = k->r;
	struct arena scratch = { 0 };
	struct depend d = {
		.p = p,
		.k = k,
		.wait = waits_find(p, k, &scratch),
		.before = ops_before(r, &scratch),
		.by_end = ops_by_end(r, &scratch),
		.running = ARENA_ARRAY(&scratch, r->stream.n, int32_t),
	};

	for (size_t s = 0; s < r->stream.n; s++)
		d.running[s] = FT_REC_NONE;
	d.least = least_lags(k, d.before);
	for (size_t i = 0; i < r->op.n; i++) {
		begin_op(&d, r->op_order[i]);
		end_op(&d, r->op_order[i]);
	}
	arena_release(&scratch);
}
