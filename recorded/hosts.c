/*
 * recorded/hosts.c - in which order the host makes its calls, and what it waits for
 *
 * Threads hand control to each other (PyTorch's backward runs on a thread of its own
 * while the one that asked for it waits): a call follows the last one that any thread
 * began before it, by the recorded pause, and follows its own thread's last one. A
 * synchronisation ends when what it waits for has ended; so does a copy to or from
 * pageable memory. A launch that takes long while the queue is full ends when the
 * GPU begins another operation. Limit: threads that run at the same time keep the
 * recorded interleaving.
 */
#include <stdlib.h>
#include <string.h>

#include "recorded/replay.h"

enum { QUEUE_FULL = 900 }; /* launched and not begun; CUDA takes 1024 */

static const ft_ps RETURN_PS = 3000000; /* of a call that needs not wait, at most */
static const ft_ps BLOCKED_PS = 50000000;

struct host {
	struct ft_replay *p;
	const struct rank *k;
	int32_t *last_of_thread;
	int32_t *last_on_stream;     /* operation launched last, by stream */
	int32_t *first_op, *next_op; /* of a call; of the same call */
	int32_t last;		     /* call begun last */
	size_t launched, begun;
};

static ft_ps end_of(const struct ft_rec_call *c)
{
	return c->start + c->duration;
}

/* ---- pauses ------------------------------------------------------------------------ */

/* Call c comes after the end of call a, or after its begin where c is called inside a. */
static void follow(struct host *h, size_t a, size_t c, bool exactly)
{
	const struct ft_rec_call *x = call_of(h->k->r, a), *y = call_of(h->k->r, c);
	bool nested = end_of(x) > y->start;
	ft_ps pause = y->start - (nested ? x->start : end_of(x));

	edge_add(h->p, call_event(h->k, a, !nested), call_event(h->k, c, false),
		 exactly || nested ? pause : 0, LAG_HOST);
}

static void begin_call(struct host *h, size_t c)
{
	int16_t thread = call_of(h->k->r, c)->thread;
	int32_t own = h->last_of_thread[thread];

	if (h->last != FT_REC_NONE)
		follow(h, (size_t)h->last, c, true);
	if (own != FT_REC_NONE && own != h->last &&
	    end_of(call_of(h->k->r, (size_t)own)) <= call_of(h->k->r, c)->start)
		follow(h, (size_t)own, c, false);
	h->last = h->last_of_thread[thread] = (int32_t)c;
}

/* ---- ends ---------------------------------------------------------------------------- */

static ft_ps op_end_of(const struct host *h, size_t op)
{
	const struct ft_rec_op *o = op_of(h->k->r, op);

	return o->start + o->duration;
}

/* The call's end waits for the operation's: by as much as recorded if that is what
 * made it wait, at most by `most` if another was, else by nothing. */
static void end_after(struct host *h, size_t c, size_t op, ft_ps most)
{
	const struct ft_rec_call *call = call_of(h->k->r, c);
	ft_ps lag = end_of(call) - op_end_of(h, op);

	if (op_end_of(h, op) <= call->start && lag > 0)
		lag = 0;
	if (lag > most)
		lag = most;
	edge_add(h->p, op_event(h->k, op, true), call_event(h->k, c, true), lag,
		 LAG_FIXED);
}

/* Did the end of this operation end the call? */
static bool waited(const struct host *h, size_t c, size_t op)
{
	const struct ft_rec_call *call = call_of(h->k->r, c);
	ft_ps end = op_end_of(h, op);

	return end > call->start && end <= end_of(call);
}

/* A call returns after its own time, or at once after what it waits for. */
static void return_after(struct host *h, size_t c, bool made_to_wait)
{
	ft_ps own = call_of(h->k->r, c)->duration;

	if (made_to_wait && own > RETURN_PS)
		own = RETURN_PS;
	edge_add(h->p, call_event(h->k, c, false), call_event(h->k, c, true), own,
		 LAG_HOST);
}

/* From the end of the last operation that the call waited for to the call's. */
static ft_ps last_lag(const struct host *h, size_t c)
{
	ft_ps least = INT64_MAX;

	for (size_t s = 0; s < h->k->r->stream.n; s++) {
		int32_t op = h->last_on_stream[s];

		if (op != FT_REC_NONE && waited(h, c, (size_t)op)) {
			ft_ps lag =
				end_of(call_of(h->k->r, c)) - op_end_of(h, (size_t)op);

			least = lag < least ? lag : least;
		}
	}
	return least;
}

static void synchronise_device(struct host *h, size_t c)
{
	bool made_to_wait = false;
	ft_ps most = last_lag(h, c);

	for (size_t s = 0; s < h->k->r->stream.n; s++) {
		int32_t op = h->last_on_stream[s];

		if (op == FT_REC_NONE)
			continue;
		end_after(h, c, (size_t)op, most);
		made_to_wait |= waited(h, c, (size_t)op);
	}
	return_after(h, c, made_to_wait);
}

/* The stream told, or the one whose last operation ended last within the call. */
static void synchronise_one(struct host *h, size_t c)
{
	const struct ft_rec_call *call = call_of(h->k->r, c);
	int32_t found = FT_REC_NONE;

	if (call->stream != FT_REC_NONE && call->kind == FT_REC_SYNC_STREAM)
		found = h->last_on_stream[call->stream];
	for (size_t s = 0; s < h->k->r->stream.n && found == FT_REC_NONE; s++)
		for (int32_t op = h->last_on_stream[s]; op != FT_REC_NONE;
		     op = FT_REC_NONE)
			if (waited(h, c, (size_t)op))
				found = op;
	if (found != FT_REC_NONE)
		end_after(h, c, (size_t)found, INT64_MAX);
	return_after(h, c, found != FT_REC_NONE && waited(h, c, (size_t)found));
}

/* ---- when it waits ----------------------------------------------------------------------- */

static bool copies_pageable(const struct ft_recording *r, const struct ft_rec_op *op,
			    const struct ft_rec_call *call)
{
	return op->is_copy && (strstr(ft_recording_text(r, op->name), "ageable") ||
			       !strstr(ft_recording_text(r, call->name), "Async"));
}

static bool finds_queue_full(const struct ft_rec_call *call, size_t launched,
			     size_t begun)
{
	return launched > begun + QUEUE_FULL && call->duration > BLOCKED_PS;
}

/* How many operations have begun when the call does, `begun` of them by the call before. */
static size_t begun_by(const struct ft_recording *r, const struct ft_rec_call *call,
		       size_t begun)
{
	while (begun < r->op.n && op_of(r, r->op_order[begun])->start <= call->start)
		begun++;
	return begun;
}

/* Operations that were launched before the recording began: how many; last on each stream. */
static size_t launched_before(const struct ft_recording *r, int32_t *last)
{
	struct arena scratch = { 0 };
	bool *launched = ARENA_ARRAY(&scratch, r->stream.n, bool);
	size_t n = 0;

	for (size_t i = 0; i < r->op.n; i++) {
		const struct ft_rec_op *o = op_of(r, r->op_order[i]);

		launched[o->stream] |= o->call != FT_REC_NONE;
		if (launched[o->stream])
			continue;
		last[o->stream] = (int32_t)r->op_order[i];
		n++;
	}
	arena_release(&scratch);
	return n;
}

bool *ft_recording_host_waits(const struct ft_recording *r, struct arena *mem)
{
	bool *waits = ARENA_ARRAY(mem, r->call.n, bool);
	size_t *launches = ARENA_ARRAY(mem, r->call.n, size_t);
	int32_t *last = ARENA_ARRAY(mem, r->stream.n, int32_t);
	size_t launched = launched_before(r, last), begun = 0;

	for (size_t i = 0; i < r->op.n; i++) {
		const struct ft_rec_op *op = op_of(r, i);

		if (op->call == FT_REC_NONE)
			continue;
		launches[op->call]++;
		waits[op->call] |= copies_pageable(r, op, call_of(r, (size_t)op->call));
	}
	for (size_t i = 0; i < r->call.n; i++) {
		size_t c = r->call_order[i];
		const struct ft_rec_call *call = call_of(r, c);

		begun = begun_by(r, call, begun);
		waits[c] |= call->kind == FT_REC_SYNC_EVENT ||
			    call->kind == FT_REC_SYNC_STREAM ||
			    call->kind == FT_REC_SYNC_DEVICE ||
			    finds_queue_full(call, launched, begun);
		launched += launches[c];
	}
	return waits;
}

/* ---- launches -------------------------------------------------------------------------- */

static bool blocks(const struct host *h, size_t c, size_t op)
{
	const struct ft_recording *r = h->k->r;

	return copies_pageable(r, op_of(r, op), call_of(r, c)) && waited(h, c, op);
}

/* The operation that began last before the call returned. */
static void unblock(struct host *h, size_t c)
{
	const struct ft_recording *r = h->k->r;
	ft_ps end = end_of(call_of(r, c));
	size_t i = h->begun;

	while (i < r->op.n && op_of(r, r->op_order[i])->start <= end)
		i++;
	if (!i)
		return;
	i = r->op_order[i - 1];
	edge_add(h->p, op_event(h->k, i, false), call_event(h->k, c, true),
		 end - op_of(r, i)->start, LAG_FIXED);
}

static void launch(struct host *h, size_t c)
{
	const struct ft_recording *r = h->k->r;
	const struct ft_rec_call *call = call_of(r, c);
	bool made_to_wait = false;

	h->begun = begun_by(r, call, h->begun);
	if (finds_queue_full(call, h->launched, h->begun)) {
		unblock(h, c);
		made_to_wait = true;
	}
	for (int32_t op = h->first_op[c]; op != FT_REC_NONE; op = h->next_op[op]) {
		h->launched++;
		h->last_on_stream[op_of(r, (size_t)op)->stream] = op;
		if (!blocks(h, c, (size_t)op))
			continue;
		end_after(h, c, (size_t)op, INT64_MAX);
		made_to_wait = true;
	}
	return_after(h, c, made_to_wait);
}

/* ---- all calls --------------------------------------------------------------------------- */

/* Operations by the call that launched them, in the order of their start. */
static void list_ops(struct host *h)
{
	const struct ft_recording *r = h->k->r;

	for (size_t i = r->op.n; i-- > 0;) {
		uint32_t op = r->op_order[i];
		int32_t call = op_of(r, op)->call;

		if (call == FT_REC_NONE)
			continue;
		h->next_op[op] = h->first_op[call];
		h->first_op[call] = (int32_t)op;
	}
}

void hosts_depend(struct ft_replay *p, struct rank *k)
{
	const struct ft_recording *r = k->r;
	struct arena scratch = { 0 };
	struct host h = {
		.p = p,
		.k = k,
		.last_of_thread = rec_nothing(&scratch, r->thread.n),
		.last_on_stream = rec_nothing(&scratch, r->stream.n),
		.first_op = rec_nothing(&scratch, r->call.n),
		.next_op = rec_nothing(&scratch, r->op.n),
		.last = FT_REC_NONE,
	};

	list_ops(&h);
	h.launched = launched_before(r, h.last_on_stream);
	for (size_t i = 0; i < r->call.n; i++) {
		size_t c = r->call_order[i];
		enum ft_rec_call_kind kind = (enum ft_rec_call_kind)call_of(r, c)->kind;

		begin_call(&h, c);
		if (kind == FT_REC_LAUNCH)
			launch(&h, c);
		else if (kind == FT_REC_SYNC_DEVICE)
			synchronise_device(&h, c);
		else if (kind == FT_REC_SYNC_STREAM || kind == FT_REC_SYNC_EVENT)
			synchronise_one(&h, c);
		else
			return_after(&h, c, false);
	}
	arena_release(&scratch);
}
