/*
 * study/search_front.c - the plans that no other beats in time, dollars and memory
 *
 * Which plans are simulated depends on the order in which answers come. The front is that of
 * the plans that any order simulates: those whose bound is not above the worst rank that is
 * kept in the end.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "study/search.h"

void search_note_point(struct search_job *j, const struct found *f)
{
	const struct ft_outcome *o = &f->outcome;

	if (j->n_points == j->cap_points) {
		j->cap_points = 2 * j->cap_points + 64;
		j->simulated = allocated(
			realloc(j->simulated, j->cap_points * sizeof(*j->simulated)));
	}
	j->simulated[j->n_points++] =
		(struct point){ f->at, o->step_s, o->cost.usd_per_million_tokens,
				o->memory_total_bytes };
}

/* Is it on the front of time, dollars and memory? Those it beats leave. */
static void front_put(struct search_job *j, const struct point *p)
{
	size_t n = 0;

	for (size_t i = 0; i < j->n_front; i++)
		if (j->front[i].step_s <= p->step_s && j->front[i].usd <= p->usd &&
		    j->front[i].memory <= p->memory)
			return;
	for (size_t i = 0; i < j->n_front; i++)
		if (!(p->step_s <= j->front[i].step_s && p->usd <= j->front[i].usd &&
		      p->memory <= j->front[i].memory))
			j->front[n++] = j->front[i];
	if (n < FRONT_MOST)
		j->front[n++] = *p;
	j->n_front = n;
}

static int by_place(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

void search_find_front(struct search_job *j, double worst)
{
	if (j->n_points)
		qsort(j->simulated, j->n_points, sizeof(*j->simulated), by_place);
	for (size_t i = 0; i < j->n_points; i++)
		if (j->search->exhaustive ||
		    j->space.candidate[j->simulated[i].at].bound <= worst)
			front_put(j, &j->simulated[i]);
	free(j->simulated);
}
