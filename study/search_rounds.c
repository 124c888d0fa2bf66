/*
 * study/search_rounds.c - who is bounded, and when steps are simulated between
 *
 * Candidates are bounded in the order of what their sketches say that they can rank by at
 * least, each round as many again as all before, and none whose least is above the worst
 * plan that is kept. Between two rounds those are simulated whose bound is not above the
 * least of all that are left. So a search that is stopped has found plans, and what it
 * finds is what bounding all would find: who is left has a least above the worst plan kept.
 */
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "study/search.h"

enum { FIRST_ROUND = 256 };

static int by_least(const void *a, const void *b, void *context)
{
	const struct candidate *c = context;
	const struct candidate *x = &c[*(const size_t *)a], *y = &c[*(const size_t *)b];

	if (x->least != y->least)
		return x->least < y->least ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int by_bound(const void *a, const void *b, void *context)
{
	const struct candidate *c = context;
	const struct candidate *x = &c[*(const size_t *)a], *y = &c[*(const size_t *)b];

	if (x->bound != y->bound)
		return x->bound < y->bound ? -1 : 1;
	return x < y ? -1 : x > y;
}

static size_t *indices(size_t n)
{
	size_t *i = allocated(calloc(n + 1, sizeof(*i)));

	return i;
}

static void sort_by_least(struct search_job *j)
{
	j->by_least = indices(j->space.n);
	for (size_t i = 0; i < j->space.n; i++)
		j->by_least[i] = i;
	qsort_r(j->by_least, j->space.n, sizeof(*j->by_least), by_least,
		j->space.candidate);
}

/* Those of the round that fit, among those that are not simulated yet. */
static void sort_fitting(struct search_job *j)
{
	for (size_t i = j->n_bounded; i < j->round_end; i++) {
		size_t at = j->by_least ? j->by_least[i] : i;
		const struct candidate *c = &j->space.candidate[at];

		/* the float may be on the other side of 1: the step itself decides */
		if (!search_wont_fit(c) && c->bound < INFINITY)
			j->order[j->n_order++] = at;
	}
	qsort_r(j->order + j->n_done, j->n_order - j->n_done, sizeof(*j->order),
		by_bound, j->space.candidate);
}

/* Sets where the next round ends; false: no plan is left for it. */
static bool next_round(struct search_job *j)
{
	double worst = search_worst_kept(j);
	size_t end = j->n_bounded ? 2 * j->n_bounded : FIRST_ROUND;

	end = end < j->space.n && j->by_least ? end : j->space.n;
	j->round_end = j->n_bounded;
	while (j->round_end < end &&
	       (!j->by_least ||
		j->space.candidate[j->by_least[j->round_end]].least <= worst))
		j->round_end++;
	return j->round_end > j->n_bounded;
}

void search_rounds(struct search_job *j, search_run_phase *run, void *context)
{
	bool shared = j->search->ranks != NULL;

	j->order = indices(j->space.n);
	j->round_end = j->space.n;
	if (!shared && !j->search->exhaustive) {
		run(j, SKETCHING, context);
		sort_by_least(j);
	}
	while (!j->stop && !j->broken && next_round(j)) {
		run(j, BOUNDING, context);
		if (j->stop || j->broken)
			break;
		sort_fitting(j);
		j->n_bounded = j->round_end;
		/* where others take part, they wait for this phase */
		if (shared || j->n_order > j->n_done) {
			run(j, SIMULATING, context);
			j->n_done = j->next;
		}
	}
	if (shared && (j->stop || j->broken) && j->phase != SIMULATING)
		run(j, SIMULATING, context);
}

size_t search_open_plans(const struct search_job *j, double *least)
{
	const struct candidate *all = j->space.candidate;
	double worst = search_worst_kept(j);
	size_t n = 0;

	*least = INFINITY;
	for (size_t i = j->n_bounded; i < j->space.n; i++) {
		double is = j->by_least ? all[j->by_least[i]].least : 0;

		n += is <= worst;
		*least = fmin(*least, is);
	}
	for (size_t i = j->n_done; i < j->n_order; i++) {
		n += all[j->order[i]].bound <= worst;
		*least = fmin(*least, all[j->order[i]].bound);
	}
	return n;
}
