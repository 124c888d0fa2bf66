/* study/planned.c - a search begun, and what it found made into an answer that explains */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/node.h"
#include "base/plain.h"
#include "foretoken/study_decide.h"
#include "study/crew.h"
#include "study/search.h"
#include "study/shelf.h"

struct whole {
	struct ft_plans plans; /* first: the handle */
	struct arena mem;      /* documents of the plans */
	struct arena document; /* the file's, of ft_study_plans */
	struct ft_shelf *shelf;
};

/* ---- reasons ------------------------------------------------------------------------- */

/* "2.1 % slower: pipeline bubble +1.5 %, exposed communication +0.8 %" */
static void explain(const struct ft_planned *best, struct ft_planned *p)
{
	double more = p->outcome->step_s / best->outcome->step_s - 1;
	size_t n, at = 0, told = 0;
	struct ft_difference *d = ft_study_differences(best->scenario, best->outcome,
						       p->scenario, p->outcome, &n);
	int len = snprintf(p->why, sizeof(p->why), "%.1f %% slower", 100 * more);

	at = len > 0 ? (size_t)len : 0;
	for (size_t i = 0; i < n && told < 3 && at < sizeof(p->why); i++) {
		double all = best->outcome->step_s * 1e9 *
			     (double)best->scenario->cluster->gpus /
			     (best->outcome->tokens_per_s * best->outcome->step_s);
		double part = (d[i].value[1] - d[i].value[0]) / all;

		if (fabs(part) < 0.0005)
			continue;
		len = snprintf(p->why + at, sizeof(p->why) - at, "%s %s %+.1f %%",
			       told++ ? "," : ":", d[i].what, 100 * part);
		at += len > 0 ? (size_t)len : 0;
	}
	ft_differences_free(d);
}

static void explain_best(struct ft_plans *plans)
{
	struct ft_planned *b = &plans->best[0];

	snprintf(b->why, sizeof(b->why), "%s", b->outcome->bottleneck);
}

/* Within what the best's own prediction may be off by. */
static bool is_equal(const struct ft_planned *best, const struct ft_planned *p,
		     enum ft_rank_by by)
{
	const struct ft_outcome *b = best->outcome;
	double worse = by == FT_RANK_USD ? p->outcome->cost.usd_per_million_tokens /
						   b->cost.usd_per_million_tokens :
					   p->outcome->step_s / b->step_s;

	return worse <= b->step_high_s / b->step_s;
}

static void find_equals(struct ft_plans *plans, enum ft_rank_by by)
{
	for (size_t i = 0; i < plans->n; i++) {
		struct ft_planned *p = &plans->best[i];

		p->equal = is_equal(&plans->best[0], p, by);
		if (p->equal && p->complexity < plans->best[plans->simplest].complexity)
			plans->simplest = i;
	}
}

/* ---- the answer ---------------------------------------------------------------------- */

static bool tell_plan(struct whole *w, const struct search_job *j, size_t at,
		      struct ft_planned *p, struct ft_error *err)
{
	struct node *root = space_document(&j->space, &j->space.candidate[at], &w->mem);
	struct ft_outcome *o = ARENA_NEW(&w->mem, struct ft_outcome);
	struct ft_scenario *s =
		root ? scenario_lenient(w->shelf, root, j->name, err) : NULL;

	if (!s)
		return false;
	if (!ft_study_simulate(s, NULL, NULL, o, err)) {
		ft_scenario_free(s);
		return false;
	}
	if (!ft_study_run(s, o, err)) {
		ft_outcome_release(o);
		ft_scenario_free(s);
		return false;
	}
	p->scenario = s;
	p->outcome = o;
	p->complexity = space_complexity(&j->space, &j->space.candidate[at]);
	return true;
}

static int by_step(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	if (x->step_s != y->step_s)
		return x->step_s < y->step_s ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static bool tell_all(struct whole *w, struct search_job *j, struct ft_error *err)
{
	struct ft_plans *plans = &w->plans;

	plans->best = ARENA_ARRAY(&w->mem, j->n_kept + 1, struct ft_planned);
	for (size_t i = 0; i < j->n_kept; i++) {
		if (!tell_plan(w, j, j->kept[i].at, &plans->best[i], err))
			return false;
		plans->n++;
	}
	for (size_t i = 1; i < plans->n; i++)
		explain(&plans->best[0], &plans->best[i]);
	if (plans->n) {
		explain_best(plans);
		find_equals(plans, j->search->rank_by);
	}
	qsort(j->front, j->n_front, sizeof(*j->front), by_step);
	plans->front = ARENA_ARRAY(&w->mem, j->n_front + 1, struct ft_planned);
	for (size_t i = 0; i < j->n_front; i++) {
		if (!tell_plan(w, j, j->front[i].at, &plans->front[i], err))
			return false;
		plans->front[i].equal =
			plans->n &&
			is_equal(&plans->best[0], &plans->front[i], j->search->rank_by);
		plans->n_front++;
	}
	return true;
}

/* Why no plan is legal: what is wrong with the first of them all. */
static bool none_legal(struct whole *w, const struct search_job *j,
		       struct ft_error *err)
{
	struct ft_error why = { .text = "" };
	struct ft_scenario *s = scenario_lenient(w->shelf, j->root, j->name, &why);

	ft_scenario_free(s);
	*err = why;
	return ft_fail(err, &j->space.context.gpus,
		       "no parallel plan of %.0f is legal on %lld rank%s%s%.160s",
		       j->space.combinations, (long long)j->space.context.ranks,
		       j->space.context.ranks == 1 ? "" : "s",
		       why.text[0] ? "; with what the scenario states: " : "",
		       why.text);
}

static void count(struct ft_plans *p, const struct search_job *j)
{
	double least;

	p->combinations = j->space.combinations;
	p->considered = j->space.n;
	p->n_left_out = j->space.n_left_out;
	memcpy(p->left_out, j->space.left_out, sizeof(p->left_out));
	p->bounded = j->n_bounded;
	p->refused = j->n_refused;
	p->feasible = j->n_order;
	for (size_t i = 0; i < j->space.n; i++)
		if (search_wont_fit(&j->space.candidate[i]))
			++*(j->space.candidate[i].of_node ? &p->over_node :
							    &p->over_gpu);
	p->simulated = j->n_simulated - j->n_known;
	p->known = j->n_known;
	p->wall_s = j->wall_s;
	p->interrupted = j->stop;
	p->open = search_open_plans(j, &least);
	if (p->open && j->n_kept)
		p->open_better_frac = fmax(0, 1 - least / j->kept[0].rank);
}

static bool search(struct whole *w, struct search_job *j, struct ft_error *err)
{
	const char *axis[AXES];
	bool ok;

	for (size_t i = 0; i < AXES; i++)
		axis[i] = space_key(i);
	if (!j->space.n)
		return none_legal(w, j, err);
	if (j->search->most && j->space.n > j->search->most)
		return ft_fail(err, NULL,
			       "%zu legal plans are too many here: %zu at most; state "
			       "some of the keys, or search with the command",
			       j->space.n, j->search->most);
	if (j->search->db && ft_ranks_first(j->search->ranks)) {
		j->db = sweep_db_open(j->search->db, j->name, axis, AXES, err);
		if (!j->db)
			return false;
	}
	ok = search_run(j);
	sweep_db_close(j->db);
	if (!ok)
		*err = j->err;
	else if (j->n_refused == j->space.n)
		ok = ft_fail(err, NULL,
			     "none of %zu legal plans can be simulated: %.200s",
			     j->space.n, j->why_refused.text);
	count(&w->plans, j);
	return ok;
}

struct ft_plans *plans_of(const struct node *root, const char *name,
			  const struct ft_search *s, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct whole *w = ARENA_NEW(&mem, struct whole);
	struct search_job *j = ARENA_NEW(&mem, struct search_job);
	struct ft_scenario *open;
	bool ok;

	w->mem = mem;
	w->shelf = ft_shelf_new();
	j->search = s;
	j->root = root;
	j->name = name;
	pthread_mutex_init(&j->lock, NULL);
	open = scenario_open(w->shelf, root, name, err);
	ok = open && run_makes_sense(&open->asked, err) &&
	     space_open(&j->space, open, s->free_key, s->n_free, err);
	if (ok) {
		ok = search(w, j, err) && tell_all(w, j, err);
		if (ok && !w->plans.n && !j->stop && !s->no_ways_out &&
		    ft_ranks_first(s->ranks))
			ways_out(j, &w->plans);
		free(j->order);
		free(j->by_least);
		space_close(&j->space);
	}
	arena_release(&j->rows);
	ft_scenario_free(open);
	pthread_mutex_destroy(&j->lock);
	if (ok)
		return &w->plans;
	ft_plans_free(&w->plans);
	return NULL;
}

static void release(struct ft_planned *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i].outcome)
			ft_outcome_release((struct ft_outcome *)p[i].outcome);
		ft_scenario_free((struct ft_scenario *)p[i].scenario);
	}
}

void ft_plans_free(struct ft_plans *plans)
{
	struct whole *w = (struct whole *)plans;
	struct arena mem;

	if (!plans)
		return;
	release(plans->best, plans->n);
	release(plans->front, plans->n_front);
	ft_shelf_free(w->shelf);
	arena_release(&w->document);
	mem = w->mem;
	arena_release(&mem);
}

/* ---- files ------------------------------------------------------------------------------ */

static const char *label_of(struct arena *mem, const struct node *root,
			    const char *path, bool sized)
{
	const struct node *title = node_get(root, "title");
	const struct node *gpus = node_path(root, "cluster.gpus");
	bool titled = !node_is_null(title) && title->kind == NODE_SCALAR;
	const char *text = titled ? title->text :
				    file_stem(mem, path + strspn(path, FILE_FOREIGN));

	return sized && gpus->text ?
		       arena_printf(mem, "%s, %s GPUs", text, gpus->text) :
		       arena_text(mem, text);
}

/* The sizes of a document: its own, or those of the list. 0: *err. */
static size_t sizes_of(const struct node *root, struct ft_error *err)
{
	const struct node *gpus = node_path(root, "cluster.gpus");

	if (!gpus || gpus->kind != NODE_LIST)
		return 1;
	if (!gpus->n || gpus->n > FT_SIZES_MOST)
		ft_fail(err, &gpus->mark, "write 1 to %d sizes, as [256, 512]",
			(int)FT_SIZES_MOST);
	return gpus->n > FT_SIZES_MOST ? 0 : gpus->n;
}

/* Where documents come from: a file, or a text with a name. */
struct origin {
	const char *path, *text;
	size_t length;
	double begun_s;
};

static struct node *read_origin(struct arena *mem, const struct origin *o,
				const struct ft_search *s, struct ft_error *err)
{
	struct node *root;

	if (!o->text)
		return scenario_read(mem, o->path, s->sets, s->n_sets, err);
	root = node_read_text(mem, o->path, o->text, o->length, err);
	return root && scenario_set(mem, root, s->sets, s->n_sets, err) ? root : NULL;
}

/* The search of one size; each has a document of its own. */
static struct ft_plans *plan_size(const struct origin *o, const struct ft_search *asked,
				  size_t i, bool sized, struct ft_error *err)
{
	struct ft_search s = *asked;
	struct arena mem = { 0 };
	struct node *root = read_origin(&mem, o, asked, err), *gpus;
	struct ft_plans *p = NULL;

	if (asked->at_most_s > 0) /* of all sizes together */
		s.at_most_s =
			fmax(asked->at_most_s - (clock_now_s() - o->begun_s), 1e-3);
	gpus = root && sized ? node_path(root, "cluster.gpus") : NULL;
	if (root && (!gpus || node_put_node(&mem, root, "cluster.gpus",
					    &gpus->item[i]->mark, gpus->item[i], err)))
		p = plans_of(root, o->path, &s, err);
	if (!p) {
		arena_release(&mem);
		return NULL;
	}
	p->label = label_of(&((struct whole *)p)->mem, root, o->path, sized);
	((struct whole *)p)->document = mem;
	return p;
}

static bool plan_sizes(const struct origin *o, const struct ft_search *s,
		       struct ft_plans **plans, size_t *n, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct node *root = read_origin(&mem, o, s, err);
	const struct node *gpus = root ? node_path(root, "cluster.gpus") : NULL;
	size_t sizes = root ? sizes_of(root, err) : 0;
	bool sized = gpus && gpus->kind == NODE_LIST, ok = sizes > 0;

	for (*n = 0; ok && *n < sizes && !(*n && plans[*n - 1]->interrupted);
	     *n += ok) {
		plans[*n] = plan_size(o, s, *n, sized, err);
		ok = plans[*n] != NULL;
	}
	arena_release(&mem);
	return ok;
}

bool ft_study_plans(const char *path, const struct ft_search *s,
		    struct ft_plans *plans[FT_SIZES_MOST], size_t *n,
		    struct ft_error *err)
{
	struct origin o = { path, NULL, 0, clock_now_s() };
	struct arena mem = { 0 };
	bool ok = true;

	*n = 0;
	if (!strcmp(path, "-")) { /* read once, parsed for each size */
		o.text =
			file_read(&mem, "/dev/stdin", LIMIT_YAML_BYTES, &o.length, err);
		o.path = "/dev/stdin";
		ok = o.text != NULL;
	}
	ok = ok && plan_sizes(&o, s, plans, n, err);
	arena_release(&mem);
	return ok;
}

bool ft_study_plans_of(const char *name, const char *text, const struct ft_search *s,
		       struct ft_plans *plans[FT_SIZES_MOST], size_t *n,
		       struct ft_error *err)
{
	struct origin o = { name, text, strlen(text), clock_now_s() };

	return plan_sizes(&o, s, plans, n, err);
}

/* A document under the first of its plans. */
struct best_plan {
	struct ft_scenario *scenario; /* on the shelf; NULL: no plan fits */
	size_t legal;
};

static bool find(struct ft_shelf *shelf, const struct node *root, const char *name,
		 const struct ft_search *search, struct best_plan *to,
		 struct ft_error *err)
{
	struct arena *mem = shelf_memory(shelf);
	struct ft_search only = *search;
	struct ft_plans *plans;
	bool ok;

	only.no_ways_out = true;
	plans = plans_of(root, name, &only, err);
	ok = plans != NULL;
	*to = (struct best_plan){ .legal = plans ? plans->considered : 0 };
	if (plans && plans->n) {
		/* written and read again: what the plan says dies with the plans */
		const char *text = node_flow(mem, plans->best[0].scenario->given);
		struct node *own = node_read_text(mem, name, text, strlen(text), err);

		to->scenario = own ? scenario_lenient(shelf, own, name, err) : NULL;
		ok = to->scenario != NULL;
	}
	ft_plans_free(plans);
	return ok;
}

struct ft_scenario *ft_scenario_at_best(struct ft_shelf *shelf, const char *path,
					const struct ft_search *search,
					struct ft_error *err)
{
	struct node *root = scenario_read(shelf_memory(shelf), path, search->sets,
					  search->n_sets, err);
	struct ft_mark at = { .file = path };
	struct best_plan best;

	if (!root || !find(shelf, root, path, search, &best, err))
		return NULL;
	if (!best.scenario)
		ft_fail(err, &at,
			"no plan fits in memory; foretoken plan "
			"says what would help");
	return best.scenario;
}

static bool says(const struct node *root, const char *key)
{
	const struct node *n = node_path(root, key);

	return n && !node_is_null(n) && !(n->kind == NODE_MAP && !n->n);
}

static bool leaves_plan(const struct node *root)
{
	return says(root, "run") && !says(root, "training.parallel");
}

bool scenario_leaves_plan(const struct ft_scenario *s)
{
	return leaves_plan(s->given);
}

struct ft_scenario *ft_scenario_to_run_from(struct ft_shelf *shelf,
					    const struct node *root, const char *name,
					    const struct ft_search *search,
					    struct ft_error *err)
{
	struct best_plan best = { 0 };

	if (leaves_plan(root) && !find(shelf, root, name, search, &best, err))
		return NULL;
	if (!best.scenario)
		best.scenario = ft_scenario_from(shelf, root, name, true, err);
	if (best.scenario)
		best.scenario->searched = best.legal;
	return best.scenario;
}

struct ft_scenario *ft_scenario_to_run(struct ft_shelf *shelf, const char *path,
				       const struct ft_search *search,
				       struct ft_error *err)
{
	struct node *root = scenario_read(shelf_memory(shelf), path, search->sets,
					  search->n_sets, err);

	return root ? ft_scenario_to_run_from(shelf, root, path, search, err) : NULL;
}
