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

static bool before(const struct evq_slot *a, const struct evq_slot *b)
{
	return a->at < b->at || (a->at == b->at && a->seq < b->seq);
}

static void set(struct evq *q, size_t slot, struct evq_slot what)
{
	q->heap[slot] = what;
	what.ev->slot = (uint32_t)slot;
}

/* Put what where it belongs, given one free slot in an otherwise sound heap. */
static void settle(struct evq *q, size_t slot, struct evq_slot what)
{
	for (; slot > ROOT && before(&what, &q->heap[parent(slot)]);
	     slot = parent(slot))
		set(q, slot, q->heap[parent(slot)]);
	for (;;) {
		size_t kid = first_kid(slot), best = kid, end = kid + KIDS;

		if (kid > q->n)
			break;
		if (end > q->n + 1)
			end = q->n + 1;
		for (size_t i = kid + 1; i < end; i++)
			if (before(&q->heap[i], &q->heap[best]))
				best = i;
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

void evq_put(struct evq *q, struct event *ev, ft_ps at)
{
	size_t slot = ev->slot;

	assert(at >= q->now);
	if (!slot) {
		if (q->n + 2 > q->cap)
			q->heap = ARENA_GROW(q->mem, q->heap, &q->cap);
		slot = ++q->n;
	}
	settle(q, slot, (struct evq_slot){ at, q->seq++, ev });
}

void evq_drop(struct evq *q, struct event *ev)
{
	size_t slot = ev->slot;
	struct evq_slot last;

	if (!slot)
		return;
	assert(q->heap[slot].ev == ev); /* else: of another queue */
	last = q->heap[q->n--];
	ev->slot = 0;
	if (last.ev != ev)
		settle(q, slot, last);
}

struct event *evq_take(struct evq *q)
{
	struct event *ev;

	if (!q->n)
		return NULL;
	ev = q->heap[ROOT].ev;
	q->now = q->heap[ROOT].at;
	evq_drop(q, ev);
	return ev;
}
