/*
 * study/search.c - the best plans of a space, without simulating those that cannot win
 *
 *   1. every legal candidate whose weights and states fit gets a loose lower bound
 *      (sim/sketched.c), on all cores; the others come last
 *   2. in that order, in rounds, they get their memory and a tight one (sim/bound.c)
 *   3. those that fit are simulated in the order of these, until the next is above the worst
 *      of the plans that are kept: none of the rest can be among them
 *
 * What is kept does not depend on how many threads there are: plans are ordered by what
 * they rank by and then by their place in the space, and a plan is left out only when its
 * bound says that it cannot be kept. Each thread has parts of its own.
 */
#include "study/search.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/plain.h"
#include "study/crew.h"
#include "study/shelf.h"
#include "study/traits.h"

/* ---- one candidate -------------------------------------------------------------- */

struct fullness search_held(const struct ft_scenario *s, const struct ft_plan *p)
{
	double state = ft_plan_node_bytes(s->model, p);

	return fuller(ft_plan_held_bytes(s->model, p, s->stack) /
			      s->cluster->gpu->memory_bytes.value,
		      ft_node_memory_frac(s->cluster->node, state));
}

struct fullness search_peak(const struct ft_scenario *s, const struct ft_plan *p,
			    const struct ft_outline *o, const struct ft_graph *g)
{
	int64_t ranks = s->cluster->ranks_per_node;
	double gpu = g ? ft_graph_peak_bytes(g) : ft_outline_peak_bytes(o);
	double node = !p->offload_layers ? ft_plan_node_bytes(s->model, p) :
		      g			 ? ft_graph_host_bytes(g, ranks) :
					   ft_outline_host_bytes(o, ranks);

	return fuller(gpu / s->cluster->gpu->memory_bytes.value,
		      ft_node_memory_frac(s->cluster->node, node));
}

static void fill(struct candidate *c, struct fullness is)
{
	c->memory = (float)is.frac;
	c->of_node = is.of_node;
}

/* What pairs hold together is counted on the whole graph. */
static bool peak(const struct ft_scenario *s, const struct ft_plan *p,
		 const struct ft_outline *o, struct candidate *c, struct ft_error *err)
{
	struct ft_graph *g = NULL;

	if (c->pairs)
		g = ft_graph_build(s->model, p, s->stack, err);
	if (c->pairs && !g)
		return false;
	fill(c, search_peak(s, p, o, g));
	ft_graph_free(g);
	return true;
}

/* Memory, and where that fits the least time. */
static bool bound(struct worker *w, const struct ft_plan *p, struct candidate *c,
		  struct ft_error *err)
{
	const struct ft_scenario *s = w->open;
	struct ft_sim_job job = { .cluster = s->cluster,
				  .stack = s->stack,
				  .ccl = s->ccl,
				  .start = p->step_start };
	struct ft_plan apart = *p; /* a pair's work is that of its halves */
	struct ft_outline *o;
	struct ft_bound least = { 0, 0 };
	bool ok;

	fill(c, search_held(s, p));
	if (search_wont_fit(c))
		return true; /* before anything is used */
	o = ft_outline_build(s->model, p, s->stack, err);
	c->pairs = !o && !err->text[0];
	if (c->pairs) {
		apart.overlap_ep = false;
		o = ft_outline_build(s->model, &apart, s->stack, err);
	}
	ok = o && peak(s, p, o, c, err);
	if (ok && !search_wont_fit(c)) {
		ok = ft_sim_bound(&job, o, w->memo, c->pairs, &least, err);
		if (ok)
			c->bound = fmax(c->least, search_rank_bound(w, &least, err));
	}
	ft_outline_free(o);
	return ok;
}

bool search_bound(struct worker *w, struct candidate *c, struct ft_error *err)
{
	struct ft_plan p;

	if (!w->job->by_least) /* all are bounded, and by the same */
		search_sketch(w, c);
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

	return root ? scenario_lenient(w->shelf, root, j->name, err) : NULL;
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

double search_worst_kept(const struct search_job *j)
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
		if (f->at >= k->at)
			return true;
		*k = *f;
		for (; i && better(&j->kept[i], &j->kept[i - 1]); i--) {
			struct found behind = j->kept[i - 1];

			j->kept[i - 1] = j->kept[i];
			j->kept[i] = behind;
		}
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

bool search_on(void *job)
{
	const struct search_job *j = job;

	return !j->stop && !j->broken;
}

/* Sketches and bounds: chunks. Steps: those that can still be kept, unless some that are not
 * bounded yet may be better; the order is that of bounds. */
bool search_next(void *job, size_t *item)
{
	struct search_job *j = job;
	const struct candidate *all = j->space.candidate;

	if (!search_on(j))
		return false;
	if (j->phase != SIMULATING) {
		*item = j->next;
		j->next += SEARCH_CHUNK;
		return *item < j->round_end;
	}
	if (j->next >= j->n_order)
		return false;
	*item = j->order[j->next];
	if (!j->search->exhaustive && all[*item].bound > search_worst_kept(j))
		return false;
	if (j->n_kept && j->n_bounded < j->space.n &&
	    all[*item].bound > all[j->by_least[j->n_bounded]].least)
		return false;
	j->next++;
	return true;
}

static void bound_all(struct worker *w)
{
	struct search_job *j = w->job;
	size_t from;

	while (ranks_next(j->search->ranks, &j->desk, &from)) {
		size_t to = from + SEARCH_CHUNK < j->round_end ? from + SEARCH_CHUNK :
								 j->round_end;

		for (size_t i = from; i < to; i++)
			if (j->phase == SKETCHING)
				search_sketch(w, &j->space.candidate[i]);
			else
				bound_one(w,
					  &j->space.candidate[j->by_least ?
								      j->by_least[i] :
								      i]);
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

static void simulate_into(struct worker *w, size_t at)
{
	struct search_job *j = w->job;
	struct found f = { 0 };
	struct ft_error why;
	bool ok = simulate_one(w, at, &f, &why);

	pthread_mutex_lock(&j->lock);
	search_take_in(j, &f, ok, &why);
	pthread_mutex_unlock(&j->lock);
	if (ok)
		ft_outcome_release(&f.outcome);
}

static void simulate_all(struct worker *w)
{
	size_t at;

	while (ranks_next(w->job->search->ranks, &w->job->desk, &at))
		simulate_into(w, at);
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
		w->sketches = sketches_new();
		w->layers = calloc((size_t)w->open->model->n_layers + 3,
				   sizeof(*w->layers));
		w->twin = calloc(TWINS, sizeof(*w->twin));
		w->weight = calloc(TWINS, sizeof(*w->weight));
		if (!w->layers || !w->twin || !w->weight)
			out_of_memory();
		return true;
	}
	pthread_mutex_lock(&j->lock);
	search_fail(j, &why);
	pthread_mutex_unlock(&j->lock);
	return false;
}

void search_close(struct worker *w)
{
	free(w->layers);
	free(w->twin);
	free(w->weight);
	sketches_free(w->sketches);
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
		if (j->phase == SIMULATING)
			simulate_all(w);
		else
			bound_all(w);
	}
}

/* ---- the thread that watches -------------------------------------------------------- */

/* The lock is held. */
static struct ft_search_state state_of(const struct search_job *j)
{
	const struct ft_outcome *best = j->n_kept ? &j->kept[0].outcome : NULL;

	return (struct ft_search_state){
		.bounds = j->phase != SIMULATING,
		.finished = j->finished,
		.total = j->phase == SIMULATING ? j->n_order : j->space.n,
		.considered = j->space.n,
		.simulated = j->n_simulated,
		.spent_s = clock_now_s() - j->begun_s,
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

/* The threads, and what each has. */
struct hands {
	struct crew crew;
	struct worker *worker;
};

static void run_phase(struct search_job *j, enum phase phase, void *context)
{
	const struct hands *h = context;
	bool member = ranks_member(j->search->ranks);

	j->phase = phase;
	j->next = j->finished = phase == SKETCHING ? 0 :
				phase == BOUNDING  ? j->n_bounded :
						     j->n_done;
	search_begin_phase(j);
	crew_run(&h->crew, member ? search_for_rank_0 : work,
		 member ? search_watch_for_rank_0 : watch, h->worker);
}

bool search_run(struct search_job *j)
{
	struct hands h = { .crew = crew_open(j->search->threads,
					     j->search->stop_on_signals) };

	h.crew.brisk = ranks_shared(j->search->ranks);
	if ((size_t)h.crew.threads > j->space.n)
		h.crew.threads = (int)j->space.n;
	h.worker = allocated(calloc((size_t)h.crew.threads + 1, sizeof(*h.worker)));
	for (int i = 0; i <= h.crew.threads; i++)
		h.worker[i].job = j;
	j->begun_s = clock_now_s();
	search_rounds(j, run_phase, &h);
	search_find_front(j, search_worst_kept(j));
	j->wall_s = clock_now_s() - j->begun_s;
	crew_close(&h.crew);
	for (int i = 0; i <= h.crew.threads; i++)
		if (h.worker[i].shelf)
			search_close(&h.worker[i]);
	free(h.worker);
	return !j->broken;
}

void search_fail(struct search_job *j, const struct ft_error *why)
{
	if (!j->broken)
		j->err = *why;
	j->broken = true;
}
