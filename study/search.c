/*
 * study/search.c - the best plans of a space, without simulating those that cannot win
 *
 *   1. every legal candidate gets its memory and a lower bound (sim/bound.c), on all cores
 *   2. those that fit are sorted by bound
 *   3. they are simulated in that order, until the next bound is above the worst of the
 *      plans that are kept: none of the rest can be among them
 *
 * What is kept does not depend on how many threads there are: plans are ordered by what
 * they rank by and then by their place in the space, and a plan is left out only when its
 * bound says that it cannot be kept. Each thread has parts of its own.
 */
#include "study/search.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/plain.h"
#include "study/crew.h"
#include "study/shelf.h"
#include "study/traits.h"

/* A share of the memory that rounding cannot bring back to 1. */
static const float WONT_FIT = 1.000001F;

/* ---- one candidate -------------------------------------------------------------- */

/* Dollars per million tokens at best: as fast as the bound, with GPUs that are busy for no
 * longer than their kernels take alone, at the power of those bound by memory, and idle
 * else. */
static double usd_bound(const struct worker *w, const struct ft_bound *of,
			struct ft_error *err)
{
	const struct ft_scenario *s = w->open;
	double step_s = ft_s_from_ps(of->step), busy = of->busy_s / step_s;
	double rate =
		(double)s->plan->global_batch * (double)s->plan->sequence / step_s;
	struct ft_purchase purchase = { s->cluster, s->prices, w->bom, &s->terms,
					true };
	struct ft_throughput best = {
		rate, rate, rate, busy, busy, 0, checkpoint_bytes(s), 0
	};
	struct ft_cost cost;

	return ft_cost_compute(&purchase, &best, &cost, err) ?
		       cost.usd_per_million_tokens :
		       0;
}

static bool bound(struct worker *w, const struct ft_plan *p, struct candidate *c,
		  struct ft_error *err)
{
	const struct ft_scenario *s = w->open;
	struct ft_plan apart = *p; /* a pair's work is that of its halves */
	struct ft_outline *o;
	struct ft_bound least = { 0, 0 };
	bool ok;

	c->memory = (float)(ft_plan_held_bytes(s->model, p, s->stack) /
			    s->cluster->gpu->memory_bytes.value);
	if (c->memory > WONT_FIT)
		return true; /* before anything is used */
	o = ft_outline_build(s->model, p, s->stack, err);
	c->pairs = !o && !err->text[0];
	if (c->pairs) {
		apart.overlap_ep = false;
		o = ft_outline_build(s->model, &apart, s->stack, err);
	}
	if (!o)
		return false;
	{
		struct ft_sim_job job = { .cluster = s->cluster,
					  .stack = s->stack,
					  .ccl = s->ccl,
					  .start = p->step_start };

		ok = ft_sim_bound(&job, o, w->memo, c->pairs, &least, err);
	}
	c->memory =
		(float)(ft_outline_peak_bytes(o) / s->cluster->gpu->memory_bytes.value);
	c->bound = ft_s_from_ps(least.step);
	ft_outline_free(o);
	if (ok &&
	    c->pairs) { /* what they hold together is counted on the whole graph */
		struct ft_graph *g = ft_graph_build(s->model, p, s->stack, err);

		ok = g != NULL;
		if (g)
			c->memory = (float)(ft_graph_peak_bytes(g) /
					    s->cluster->gpu->memory_bytes.value);
		ft_graph_free(g);
	}
	if (ok && w->job->search->rank_by == FT_RANK_USD)
		c->bound = usd_bound(w, &least, err);
	return ok;
}

bool search_bound(struct worker *w, struct candidate *c, struct ft_error *err)
{
	struct ft_plan p;

	if (space_plan(&w->job->space, c, &p, w->layers) && bound(w, &p, c, err))
		return true;
	c->bound = INFINITY; /* cannot be built: a schedule, a format */
	return false;
}

void search_refuse(struct search_job *j, size_t n, const struct ft_error *why)
{
	if (n && !j->n_refused)
		j->why_refused = *why;
	j->n_refused += n;
}

static void bound_one(struct worker *w, struct candidate *c)
{
	struct search_job *j = w->job;
	struct ft_error err;

	if (search_bound(w, c, &err))
		return;
	pthread_mutex_lock(&j->lock);
	search_refuse(j, 1, &err);
	pthread_mutex_unlock(&j->lock);
}

static double rank_of(const struct search_job *j, const struct ft_outcome *o)
{
	return j->search->rank_by == FT_RANK_USD ? o->cost.usd_per_million_tokens :
						   o->step_s;
}

struct ft_scenario *search_scenario(struct worker *w, size_t at, struct arena *mem,
				    struct ft_error *err)
{
	struct search_job *j = w->job;
	struct node *root = space_document(&j->space, &j->space.candidate[at], mem);

	return root ? ft_scenario_from(w->shelf, root, j->name, true, err) : NULL;
}

/* Simulate; true: *found is filled, and its outcome is the caller's to release. */
static bool simulate_one(struct worker *w, size_t at, struct found *found,
			 struct ft_error *err)
{
	struct search_job *j = w->job;
	struct arena mem = { 0 };
	struct ft_scenario *s = search_scenario(w, at, &mem, err);
	bool known = s && search_known(j, s, &found->outcome), ok;

	if (s) /* rows of a database have ranges; answers are simulated again */
		s->point = !j->search->db && !j->search->ranks;
	ok = known || (s && ft_study_simulate(s, NULL, NULL, &found->outcome, err));

	found->at = at;
	if (ok && !known)
		search_store(j, s, &found->outcome);
	ft_scenario_free(s);
	arena_release(&mem);
	return ok;
}

/* ---- what is kept ------------------------------------------------------------------- */

static bool better(const struct found *a, const struct found *b)
{
	return a->rank < b->rank || (a->rank == b->rank && a->at < b->at);
}

/* The rank that a plan has to come up to. */
static double worst_kept(const struct search_job *j)
{
	return j->n_kept < j->search->top ? INFINITY : j->kept[j->n_kept - 1].rank;
}

/* Plans that take the same time, dollars and memory are one, the first in the space. true:
 * it was there, and stays or takes that place. */
static bool same_kept(struct search_job *j, const struct found *f)
{
	for (size_t i = 0; i < j->n_kept; i++) {
		struct found *k = &j->kept[i];

		if (k->rank != f->rank || k->outcome.step_s != f->outcome.step_s ||
		    k->outcome.memory_total_bytes != f->outcome.memory_total_bytes)
			continue;
		if (f->at < k->at)
			*k = *f;
		return true;
	}
	return false;
}

static void keep(struct search_job *j, const struct found *f)
{
	struct found entry = *f;
	size_t i;

	search_note_point(j, f);
	entry.outcome.run = NULL;
	entry.outcome.bom = NULL;
	if (same_kept(j, &entry))
		return;
	if (j->n_kept == j->search->top && !better(&entry, &j->kept[j->n_kept - 1]))
		return;
	i = j->n_kept < j->search->top ? j->n_kept++ : j->n_kept - 1;
	for (; i && better(&entry, &j->kept[i - 1]); i--)
		j->kept[i] = j->kept[i - 1];
	j->kept[i] = entry;
}

/* ---- workers ------------------------------------------------------------------------ */

/* Bounds: chunks in the order of the space. Steps: those that can still be kept; the order
 * is that of bounds. */
bool search_next(void *job, size_t *item)
{
	struct search_job *j = job;

	if (j->stop || j->broken)
		return false;
	if (j->phase == BOUNDING) {
		*item = j->next;
		j->next += SEARCH_CHUNK;
		return *item < j->space.n;
	}
	if (j->next >= j->n_order)
		return false;
	*item = j->order[j->next];
	if (!j->search->exhaustive && j->space.candidate[*item].bound > worst_kept(j)) {
		j->pruned = true;
		return false;
	}
	j->next++;
	return true;
}

/* What other ranks have may come back: then it waits. */
static bool take(struct search_job *j, size_t *item)
{
	struct ft_ranks *ranks = j->search->ranks;
	struct timespec moment = { 0, 1000000 };
	bool got = false, wait = true;

	while (!got && wait) {
		bool on;

		pthread_mutex_lock(&j->lock);
		on = !j->stop && !j->broken;
		got = search_next(j, item) || (on && ranks_back(ranks, item));
		wait = !got && on && ranks_await(ranks);
		if (wait)
			ranks_tend(ranks, &j->desk);
		pthread_mutex_unlock(&j->lock);
		if (wait)
			nanosleep(&moment, NULL);
	}
	return got;
}

static void bound_all(struct worker *w)
{
	struct search_job *j = w->job;
	size_t from;

	while (take(j, &from)) {
		size_t to = from + SEARCH_CHUNK < j->space.n ? from + SEARCH_CHUNK :
							       j->space.n;

		for (size_t i = from; i < to; i++)
			bound_one(w, &j->space.candidate[i]);
		pthread_mutex_lock(&j->lock);
		j->finished += to - from;
		pthread_mutex_unlock(&j->lock);
	}
}

void search_take_in(struct search_job *j, struct found *f, bool ok,
		    const struct ft_error *why)
{
	j->finished++;
	j->n_simulated += ok;
	if (ok)
		f->rank = rank_of(j, &f->outcome);
	if (ok && f->outcome.fits)
		keep(j, f);
	if (!ok && why->of_system)
		search_fail(j, why);
	if (!ok)
		search_refuse(j, 1, why);
}

static void simulate_all(struct worker *w)
{
	struct search_job *j = w->job;
	struct found f = { 0 };
	struct ft_error why;
	size_t at;

	while (take(j, &at)) {
		bool ok = simulate_one(w, at, &f, &why);

		pthread_mutex_lock(&j->lock);
		search_take_in(j, &f, ok, &why);
		pthread_mutex_unlock(&j->lock);
		if (ok)
			ft_outcome_release(&f.outcome);
	}
}

bool search_open(struct worker *w, struct search_job *j)
{
	struct ft_error why;

	w->shelf = ft_shelf_new();
	w->open = scenario_open(w->shelf, j->root, j->name, &why);
	if (w->open)
		w->bom = ft_bom_build(w->open->cluster, w->open->prices, &why);
	if (w->bom) {
		w->memo = w->open->memo;
		w->layers = calloc((size_t)w->open->model->n_layers + 3,
				   sizeof(*w->layers));
		if (!w->layers)
			out_of_memory();
		return true;
	}
	pthread_mutex_lock(&j->lock);
	search_fail(j, &why);
	pthread_mutex_unlock(&j->lock);
	return false;
}

static void worker_close(struct worker *w)
{
	free(w->layers);
	ft_bom_free(w->bom);
	ft_scenario_free(w->open);
	ft_shelf_free(w->shelf);
}

static void work(void *workers, int i)
{
	PLAIN_NUMBERS;
	struct worker *w = (struct worker *)workers + i;
	struct search_job *j = w->job;

	if (w->shelf || search_open(w, j)) {
		if (j->phase == BOUNDING)
			bound_all(w);
		else
			simulate_all(w);
	}
}

/* ---- the thread that watches -------------------------------------------------------- */

/* The lock is held. */
static struct ft_search_state state_of(const struct search_job *j)
{
	const struct ft_outcome *best = j->n_kept ? &j->kept[0].outcome : NULL;

	return (struct ft_search_state){
		.bounds = j->phase == BOUNDING,
		.finished = j->finished,
		.total = j->phase == BOUNDING ? j->space.n : j->n_order,
		.considered = j->space.n,
		.simulated = j->n_simulated,
		.spent_s = crew_now_s() - j->begun_s,
		.any = best != NULL,
		.best_step_s = best ? best->step_s : 0,
		.best_usd_per_million_tokens =
			best ? best->cost.usd_per_million_tokens : 0,
	};
}

static void watch(void *workers, bool stop, bool over)
{
	struct search_job *j = ((struct worker *)workers)->job;
	const struct ft_progress *p = &j->search->progress;
	double most_s = j->search->at_most_s;
	struct ft_search_state now;

	pthread_mutex_lock(&j->lock);
	now = state_of(j);
	j->stop |= stop || (most_s > 0 && now.spent_s > most_s);
	ranks_tend(j->search->ranks, &j->desk);
	search_commit(j, over);
	if (over) { /* when it was stopped, others have parts of batches */
		ranks_finish(j->search->ranks, &j->desk);
		search_commit(j, true);
	}
	pthread_mutex_unlock(&j->lock);
	if (p->tell)
		p->tell(p->context, over ? now.total : now.finished, now.finished,
			now.total);
	if (j->search->watch)
		j->search->watch(j->search->watch_context, &now);
}

static void run_phase(struct search_job *j, enum phase phase, const struct crew *crew,
		      struct worker *w)
{
	bool member = ranks_member(j->search->ranks);

	j->phase = phase;
	j->next = j->finished = 0;
	if (j->search->ranks)
		search_begin_phase(j);
	crew_run(crew, member ? search_for_rank_0 : work,
		 member ? search_watch_for_rank_0 : watch, w);
}

static int by_bound(const void *a, const void *b, void *context)
{
	const struct candidate *c = context;
	const struct candidate *x = &c[*(const size_t *)a], *y = &c[*(const size_t *)b];

	if (x->bound != y->bound)
		return x->bound < y->bound ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void sort_fitting(struct search_job *j)
{
	j->order = calloc(j->space.n + 1, sizeof(*j->order));
	if (!j->order)
		out_of_memory();
	for (size_t i = 0; i < j->space.n; i++) {
		const struct candidate *c = &j->space.candidate[i];

		/* the float may be on the other side of 1: the step itself decides */
		if (c->memory <= WONT_FIT && c->bound < INFINITY)
			j->order[j->n_order++] = i;
	}
	qsort_r(j->order, j->n_order, sizeof(*j->order), by_bound, j->space.candidate);
}

bool search_run(struct search_job *j)
{
	struct crew crew = crew_open(j->search->threads, j->search->stop_on_signals);
	struct worker *w;

	crew.brisk = ranks_shared(j->search->ranks);
	if ((size_t)crew.threads > j->space.n)
		crew.threads = (int)j->space.n;
	w = calloc((size_t)crew.threads + 1, sizeof(*w));
	if (!w)
		out_of_memory();
	for (int i = 0; i <= crew.threads; i++)
		w[i].job = j;
	j->begun_s = crew_now_s();
	run_phase(j, BOUNDING, &crew, w);
	sort_fitting(j);
	/* where others take part, they wait for this phase */
	if (ranks_shared(j->search->ranks) || (!j->stop && !j->broken && j->n_order))
		run_phase(j, SIMULATING, &crew, w);
	search_find_front(j, worst_kept(j));
	j->wall_s = crew_now_s() - j->begun_s;
	crew_close(&crew);
	for (int i = 0; i <= crew.threads; i++)
		if (w[i].shelf)
			worker_close(&w[i]);
	free(w);
	return !j->broken;
}

void search_fail(struct search_job *j, const struct ft_error *why)
{
	if (!j->broken)
		j->err = *why;
	j->broken = true;
}
