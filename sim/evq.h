/*
 * sim/evq.h - what happens next: the pending events of one simulation
 *
 * An event lives inside the thing it wakes; the queue only borrows it, so there
 * is nothing per event to allocate or free. Events come out by time and, at equal
 * times, in the order they went in: ties are the rule here, and the second key
 * makes two runs give one timeline.
 */
#ifndef SIM_EVQ_H
#define SIM_EVQ_H

#include "foretoken/base.h"

struct arena;

struct event {
	uint32_t slot; /* the queue's: place in the heap, from 1; 0 while idle */
};

struct evq_slot { /* keys beside the pointer: no chase while sifting */
	ft_ps at;
	uint64_t seq;
	struct event *ev;
};

struct evq {
	struct evq_slot *heap; /* heap[1..n]; */
	bool hole;	       /* but heap[1] was taken: what is put next goes there */
	size_t n, cap;
	uint64_t seq;
	ft_ps now;	   /* time of the event taken last */
	struct arena *mem; /* holds heap[]; must outlive the queue */
};

void evq_init(struct evq *q, struct arena *mem);

/* Wake ev at a time >= q->now. An event already pending moves, as if new. */
void evq_put(struct evq *q, struct event *ev, ft_ps at);

/* When a pending event is due. */
static inline ft_ps evq_due(const struct evq *q, const struct event *ev)
{
	return q->heap[ev->slot].at;
}

/* Of two pending events. */
static inline bool evq_comes_before(const struct evq *q, const struct event *a,
				    const struct event *b)
{
	const struct evq_slot *x = &q->heap[a->slot], *y = &q->heap[b->slot];

	return x->at < y->at || (x->at == y->at && x->seq < y->seq);
}

/* All that is pending, and now, by so much later. */
void evq_later(struct evq *q, ft_ps by);

/* Forget ev; harmless while idle. */
void evq_drop(struct evq *q, struct event *ev);

/* Is an event due before that? */
bool evq_is_before(struct evq *q, ft_ps at);

/* Take the next event and advance q->now to it; NULL when none is left. */
struct event *evq_take(struct evq *q);

#endif
