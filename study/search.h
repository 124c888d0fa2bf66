/*
 * study/search.h - a search while it runs: what its files share
 */
#ifndef STUDY_SEARCH_H
#define STUDY_SEARCH_H

#include "foretoken/study_plan.h"
#include <pthread.h>

#include "base/arena.h"
#include "study/ranks.h"
#include "study/space.h"
#include "study/sweep_db.h"

enum { FRONT_MOST = 512, SEARCH_CHUNK = 16 };

/* A share of the memory that rounding cannot bring back to 1. */
#define SEARCH_WONT_FIT 1.000001F

/* A simulated plan. */
struct found {
	size_t at;   /* in the space */
	double rank; /* less is better */
	struct ft_outcome outcome;
};

struct point { /* of the front */
	size_t at;
	double step_s, usd, memory;
};

enum phase { SKETCHING, BOUNDING, SIMULATING };

struct sketches;

struct search_job {
	const struct ft_search *search;
	const struct node *root;
	const char *name;
	struct space space;
	enum phase phase;
	size_t *by_least; /* [space.n] candidates by the least that they can rank by; NULL:
			   * in the order of the space */
	size_t n_bounded, round_end; /* of these; those of the round end there */
	size_t *order; /* [n_order] candidates that fit: simulated ones, the others by bound */
	size_t n_order, n_done;
	double begun_s, wall_s;

	pthread_mutex_t lock; /* of all below */
	size_t next, finished;
	bool stop, broken;
	struct ft_error err;
	size_t n_refused; /* candidates that could not be built or run */
	struct ft_error why_refused;
	size_t n_simulated, n_known;
	struct found kept[FT_PLANS_MOST]; /* the best first */
	size_t n_kept;
	struct point *simulated; /* [n_points] those that fit */
	size_t n_points, cap_points;
	struct point front[FRONT_MOST]; /* at the end */
	size_t n_front;
	struct ranks_desk desk; /* rank 0's */
	struct sweep_db *db;
	struct sweep_row *waiting;
	struct arena rows;
	double committed_s;
};

/* What was found last of candidates whose axes but that of host memory, which only adds time, are
 * at the same places. */
struct twin {
	uint8_t at[AXES];
	bool sketched;
	double least;
};

/* What is taken of a memory, as a share of it: of the node's or of the GPU's, whichever is fuller. */
struct fullness {
	double frac;
	bool of_node;
};

static inline struct fullness fuller(double gpu_frac, double node_frac)
{
	bool of_node = node_frac > gpu_frac;

	return (struct fullness){ of_node ? node_frac : gpu_frac, of_node };
}

/* What plans hold that differ in what they compute again and in host memory alone. */
struct weight {
	uint8_t at[AXES];
	bool known;
	struct fullness held;
};

enum { TWINS = 256 };

struct worker {
	struct search_job *job;
	struct twin *twin;     /* [TWINS] by a hash of their places */
	struct weight *weight; /* likewise */
	struct ft_shelf *shelf;
	struct ft_scenario *open;
	struct ft_bom *bom;
	struct ft_memo *memo;
	struct sketches *sketches;
	int64_t *layers; /* room for stage_layers */
};

/* study/planned.c: the plans of a document, which outlives the answer. */
struct ft_plans *plans_of(const struct node *root, const char *name,
			  const struct ft_search *search, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Bounds, then simulations; false: j->err. */
bool search_run(struct search_job *j);
/* The lock is held: nothing more is started. */
void search_fail(struct search_job *j, const struct ft_error *why);

/* study/search_rounds.c: bounds and simulations in rounds, so that only those are bounded
 * whose least may still win. */
typedef void search_run_phase(struct search_job *j, enum phase phase, void *context);
void search_rounds(struct search_job *j, search_run_phase *run, void *context);
/* Not simulated, and not ruled out. */
size_t search_open_plans(const struct search_job *j, double *least);
/* The rank that a plan has to come up to. */
double search_worst_kept(const struct search_job *j);

/* study/search.c: what a plan holds all through the step, with state that waits in the node; and at its peak, of an outline or, unless
 * it is NULL, of the whole graph. A node that says nothing of its memory is not full. */
struct fullness search_held(const struct ft_scenario *scenario,
			    const struct ft_plan *plan);
struct fullness search_peak(const struct ft_scenario *scenario,
			    const struct ft_plan *plan,
			    const struct ft_outline *outline,
			    const struct ft_graph *graph);
/* Does the candidate take more than there is? */
static inline bool search_wont_fit(const struct candidate *c)
{
	return c->memory > SEARCH_WONT_FIT;
}

/* study/search_sketch.c: what a candidate can rank by at least, into it. */
struct sketches *sketches_new(void);
void sketches_free(struct sketches *s);
void search_sketch(struct worker *w, struct candidate *c);
/* Dollars per million tokens of a bound, or its seconds: what the search ranks by. */
double search_rank_bound(const struct worker *w, const struct ft_bound *bound,
			 struct ft_error *err);

/* study/search.c, for search_ranks.c: what a candidate is, into it; why it is none. */
bool search_bound(struct worker *w, struct candidate *c, struct ft_error *err);
/* Of a candidate; NULL: *err. Its nodes are in mem. */
struct ft_scenario *search_scenario(struct worker *w, size_t at, struct arena *mem,
				    struct ft_error *err);
/* The lock is held: what follows from a candidate's step, or from why it has none (ok). */
void search_take_in(struct search_job *j, struct found *f, bool ok,
		    const struct ft_error *why);
void search_refuse(struct search_job *j, size_t n, const struct ft_error *why);
/* Neither stopped nor broken; the lock is held. */
bool search_on(void *job);
/* The next item of the phase that nobody was given: a chunk, or a candidate. */
bool search_next(void *job, size_t *item);
bool search_open(struct worker *w, struct search_job *j);
void search_close(struct worker *w);

/* study/search_front.c: a plan that fits was simulated, the lock held; and the front of them in
 * the end. */
void search_note_point(struct search_job *j, const struct found *f);
void search_find_front(struct search_job *j, double worst);

/* study/search_ranks.c: a phase with other processes. The identity of a search; rank 0's side
 * of a phase, or a process alone's; and a member's thread. */
uint64_t search_identity(const struct search_job *j);
void search_begin_phase(struct search_job *j);
void search_for_rank_0(void *workers, int i);
void search_watch_for_rank_0(void *workers, bool stop, bool over);

/* study/search_db.c: answers of the database, and into it. */
/* These take the lock. */
bool search_known(struct search_job *j, const struct ft_scenario *s,
		  struct ft_outcome *o);
void search_store(struct search_job *j, const struct ft_scenario *s,
		  const struct ft_outcome *o);
/* These are called with it held. */
bool search_knows(struct search_job *j, const char key[33], struct ft_outcome *o);
void search_keep_row(struct search_job *j, struct sweep_row row);
void search_commit(struct search_job *j, bool now);
/* A row of the table, in mem but for the outcome. */
struct sweep_row search_row(const struct ft_scenario *s, const struct ft_outcome *o,
			    struct arena *mem);

/* study/ways_out.c: what would make a plan fit. */
void ways_out(const struct search_job *j, struct ft_plans *plans);

#endif
