/*
 * study/search.h - a search while it runs: what its files share
 */
#ifndef STUDY_SEARCH_H
#define STUDY_SEARCH_H

#include "foretoken/study_plan.h"
#include <pthread.h>

#include "base/arena.h"
#include "study/space.h"
#include "study/sweep_db.h"

enum { FRONT_MOST = 512 };

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

enum phase { BOUNDING, SIMULATING };

struct search_job {
	const struct ft_search *search;
	const struct node *root;
	const char *name;
	struct space space;
	enum phase phase;
	size_t *order; /* [n_order] candidates that fit, by bound */
	size_t n_order;
	double begun_s, wall_s;

	pthread_mutex_t lock; /* of all below */
	size_t next, finished;
	bool stop, broken, pruned;
	struct ft_error err;
	size_t n_refused; /* candidates that could not be built or run */
	struct ft_error why_refused;
	size_t n_simulated, n_known;
	struct found kept[FT_PLANS_MOST]; /* the best first */
	size_t n_kept;
	struct point front[FRONT_MOST];
	size_t n_front;
	struct sweep_db *db;
	struct sweep_row *waiting;
	struct arena rows;
	double committed_s;
};

struct worker {
	struct search_job *job;
	struct ft_shelf *shelf;
	struct ft_scenario *open;
	struct ft_bom *bom;
	struct ft_memo *memo;
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

/* study/search_db.c: answers of the database, and into it; the first two take the lock,
 * the last is called with it held. */
bool search_known(struct search_job *j, const struct ft_scenario *s,
		  struct ft_outcome *o);
void search_store(struct search_job *j, const struct ft_scenario *s,
		  const struct ft_outcome *o);
void search_commit(struct search_job *j, bool now);

/* study/ways_out.c: what would make a plan fit. */
void ways_out(const struct search_job *j, struct ft_plans *plans);

#endif
