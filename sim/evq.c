/* sim/evq.c - a 4-ary heap of borrowed events, each knowing its own slot */
#include "sim/evq.h"

#include <assert.h>

#include "base/arena.h"

enum { KIDS = 4, ROOT = 1 };

static size_t first_kid(size_t slot)
{
	return KIDS * (slot - ROOT) + ROOT + 1;
}

static size_t parent(size_t slot)
{
	return (slot - ROOT - 1) / KIDS + ROOT;
}

__extension__ typedef unsigned __int128 both_keys;

/* Times are not negative. Both keys are one number: which of two events comes first cannot be
 * foreseen, and a branch would be wrong half of the time. */
static both_keys keys(const struct evq_slot *a)
{
	return (both_keys)(uint64_t)a->at << 64 | a->seq;
}

static bool before(const struct evq_slot *a, const struct evq_slot *b)
{
	return keys(a) < keys(b);
}

static void set(struct evq *q, size_t slot, struct evq_slot what)
{
	q->heap[slot] = what;
	what.ev->slot = (uint32_t)slot;
}

/* The first of a slot's kids, of which all or some are there. Of four, two pairs are compared beside each
 * other: a chain of three waits for itself. */
static size_t first_of(const struct evq_slot *heap, size_t kid, size_t last)
{
	size_t best = kid;

	if (kid + KIDS - 1 <= last) {
		size_t a = kid + before(&heap[kid + 1], &heap[kid]);
		size_t b = kid + 2 + before(&heap[kid + 3], &heap[kid + 2]);

		return before(&heap[b], &heap[a]) ? b : a;
	}
	for (size_t i = kid + 1; i <= last; i++)
		if (before(&heap[i], &heap[best]))
			best = i;
	return best;
}

/* Put an event where it belongs, given one free slot in an otherwise sound heap. Its keys come
 * one by one: they stay in registers. */
static void settle(struct evq *q, size_t slot, ft_ps at, uint64_t seq, struct event *ev)
{
	const struct evq_slot what = { at, seq, ev };

	for (; slot > ROOT && before(&what, &q->heap[parent(slot)]);
	     slot = parent(slot))
		set(q, slot, q->heap[parent(slot)]);
	for (;;) {
		size_t kid = first_kid(slot), best;

		if (kid > q->n)
			break;
		best = first_of(q->heap, kid, q->n);
		if (!before(&q->heap[best], &what))
			break;
		set(q, slot, q->heap[best]);
		slot = best;
	}
	set(q, slot, what);
}

void evq_init(struct evq *q, struct arena *mem)
{
	*q = (struct evq){ .mem = mem };
}

/* What took the place of the event that was taken: the last. */
static void fill(struct evq *q)
{
	struct evq_slot last = q->heap[q->n--];

	q->hole = false;
	if (q->n)
		settle(q, ROOT, last.at, last.seq, last.ev);
}

void evq_put(struct evq *q, struct event *ev, ft_ps at)
{
	size_t slot;

	assert(at >= q->now);
	if (q->hole && !ev->slot) {
		q->hole = false;
		settle(q, ROOT, at, q->seq++, ev);
		return;
	}
	if (q->hole)
		fill(q);
	slot = ev->slot;
	if (!slot) {
		if (q->n + 2 > q->cap)
			q->heap = ARENA_GROW(q->mem, q->heap, &q->cap);
		slot = ++q->n;
	}
	settle(q, slot, at, q->seq++, ev);
}

void evq_drop(struct evq *q, struct event *ev)
{
	struct evq_slot last;
	size_t slot;

	if (!ev->slot)
		return;
	if (q->hole)
		fill(q);
	slot = ev->slot;
	assert(q->heap[slot].ev == ev); /* else: of another queue */
	last = q->heap[q->n--];
	ev->slot = 0;
	if (last.ev != ev)
		settle(q, slot, last.at, last.seq, last.ev);
}

bool evq_is_before(struct evq *q, ft_ps at)
{
	if (q->hole)
		fill(q);
	return q->n && q->heap[ROOT].at < at;
}

struct event *evq_take(struct evq *q)
{
	struct event *ev;

	if (q->hole)
		fill(q);
	if (!q->n)
		return NULL;
	ev = q->heap[ROOT].ev;
	q->now = q->heap[ROOT].at;
	q->hole = true;
	ev->slot = 0;
	return ev;
}

void evq_later(struct evq *q, ft_ps by)
{
	for (size_t i = ROOT; i <= q->n; i++)
		q->heap[i].at += by;
	q->now += by;
}
