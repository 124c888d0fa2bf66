/*
 * foretoken/study_plan.h - the search for the best plan
 */
#ifndef FORETOKEN_STUDY_PLAN_H
#define FORETOKEN_STUDY_PLAN_H

#include "foretoken/study.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ft_rank_by { FT_RANK_TOKENS, FT_RANK_USD, FT_RANK_DAYS };
enum {
	FT_PLANS_MOST = 100,
	FT_SIZES_MOST = 32,
	FT_WAYS_MOST = 8,
	FT_WHY = 256,
	FT_LEFT_OUT = 16
};

/* How far a search is. */
struct ft_search_state {
	bool bounds; /* bounds are computed; else steps, which end before `total` of them */
	size_t finished, total;	      /* of these */
	size_t considered, simulated; /* plans in all; steps so far */
	double spent_s;
	bool any; /* the best so far: */
	double best_step_s, best_usd_per_million_tokens;
};

struct ft_search {
	const char *const *sets;     /* of the document */
	const char *const *free_key; /* keys that are searched though they are stated */
	size_t n_sets, n_free;
	size_t top; /* so many of the best are kept, 1 to FT_PLANS_MOST */
	enum ft_rank_by rank_by;
	const char *db;	      /* where simulated plans are stored, as a sweep's; NULL */
	int threads;	      /* 0: all cores */
	bool no_ways_out;     /* where nothing fits, do not look for what would help */
	bool exhaustive;      /* simulate all that fit, whatever their bounds */
	bool stop_on_signals; /* SIGINT and SIGTERM end it; what was found is told */
	double at_most_s;     /* then it ends, as by a signal; 0: never */
	size_t most;	      /* more legal plans than that are refused; 0: none are */
	void (*watch)(void *context, const struct ft_search_state *state); /* or NULL */
	void *watch_context;
	struct ft_ranks
		*ranks; /* the processes that share it (study_ranks.h); NULL. Only
				 * the first of them finds plans, the others none. */
	struct ft_progress progress;
};

struct ft_planned {
	const struct ft_scenario *scenario; /* with the plan in it */
	const struct ft_outcome *outcome;
	double complexity; /* the less, the simpler */
	bool equal;	   /* to the best, within the range of its prediction */
	char why[FT_WHY];
};

struct ft_plans {
	const char *label; /* the title or the file, with the GPUs of a list */
	double combinations, wall_s;
	size_t considered; /* legal plans, equal ones counted once */
	size_t bounded; /* of them, those that could win by what their layers run alone */
	size_t refused;	 /* of these, those that the stack or the model does not run */
	size_t feasible; /* of these, those that fit */
	size_t over_gpu,
		over_node; /* those known not to fit, by the memory that is fuller */
	size_t simulated;  /* of those that fit, the whole step */
	size_t known;	   /* answers that the database had */
	size_t n_left_out; /* words of training.parallel, and shardings, that would have been */
	const char *left_out[FT_LEFT_OUT]; /* tried, but that the stack does not run */
	bool interrupted;
	size_t open; /* then: plans that may be better than the last that is shown, and by */
	double open_better_frac; /* how much at most than the best; 0: by nothing, or no
				  * plan was found */
	size_t n, n_front, n_ways;
	size_t simplest;	  /* of those equal to the best */
	struct ft_planned *best;  /* [n] the best first */
	struct ft_planned *front; /* none is faster, cheaper and smaller than another */
	struct { /* where nothing fits: changes that help, cheapest first */
		char text[FT_WHY];
		double memory_frac; /* of the GPU's, or of the node's if fuller, that a plan then takes */
		bool of_node; /* of the node's */
	} way[FT_WAYS_MOST];
};

/* The best plans that a scenario leaves open, once for each size where cluster.gpus is a list;
 * ends when one is interrupted. plans[0 .. *n - 1] are the caller's to free, on errors, too.
 * That nothing fits is an answer, with n 0; that no plan is legal is an error. */
bool ft_study_plans(const char *path, const struct ft_search *search,
		    struct ft_plans *plans[FT_SIZES_MOST], size_t *n,
		    struct ft_error *err) __attribute__((warn_unused_result));
/* The same of a text, whose name stands in errors. */
bool ft_study_plans_of(const char *name, const char *text,
		       const struct ft_search *search,
		       struct ft_plans *plans[FT_SIZES_MOST], size_t *n,
		       struct ft_error *err) __attribute__((warn_unused_result));
void ft_plans_free(struct ft_plans *plans);

/* What the scenario's `run` asks (study_decide.h), over the sizes of one call of ft_study_plans,
 * each under the first of its plans. n 0: nothing is asked, or nothing was found. */
void ft_plans_run(struct ft_plans *const *plans, size_t n,
		  struct ft_run_answer *answer);

/* A scenario under the best of its plans, on a shelf that outlives it. NULL: an error, or no
 * plan fits. */
struct ft_scenario *ft_scenario_at_best(struct ft_shelf *shelf, const char *path,
					const struct ft_search *search,
					struct ft_error *err)
	__attribute__((warn_unused_result));

/* A scenario to be simulated and then asked by ft_study_run. Where its `run` asks and it says
 * nothing of training.parallel, it comes under the best of its plans (its `searched` says of how
 * many), or as it is where none fits; else it is ft_scenario_load's. */
struct ft_scenario *ft_scenario_to_run(struct ft_shelf *shelf, const char *path,
				       const struct ft_search *search,
				       struct ft_error *err)
	__attribute__((warn_unused_result));
/* The same from a document already read; the nodes must outlive it. */
struct ft_scenario *ft_scenario_to_run_from(struct ft_shelf *shelf,
					    const struct node *root, const char *name,
					    const struct ft_search *search,
					    struct ft_error *err)
	__attribute__((warn_unused_result));

#ifdef __cplusplus
}
#endif
#endif
