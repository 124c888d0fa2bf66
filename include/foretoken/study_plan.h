/*
 * foretoken/study_plan.h - the search for the best plan
 */
#ifndef FORETOKEN_STUDY_PLAN_H
#define FORETOKEN_STUDY_PLAN_H

#include "foretoken/study.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- plan ---------------------------------------------------------------------- */

enum ft_rank_by { FT_RANK_TOKENS, FT_RANK_USD, FT_RANK_DAYS };

struct ft_search {
	const char *const *free_key; /* keys that are searched though they are stated */
	size_t n_free;
	enum ft_rank_by rank_by;
	size_t top;	 /* so many of the best are kept, 1 to FT_PLANS_MOST */
	const char *db;	 /* where each simulated plan is stored, as a sweep's; NULL */
	int threads;	 /* 0: all cores */
	bool exhaustive; /* simulate all that fit, whatever their bounds */
	bool stop_on_signals; /* SIGINT and SIGTERM end it; what was found is told */
	struct ft_progress progress;
};

enum { FT_PLANS_MOST = 100, FT_WHY = 256 };

struct ft_planned {
	const struct ft_scenario *scenario; /* with the plan in it */
	const struct ft_outcome *outcome;
	double complexity; /* the less, the simpler */
	bool equal; /* within the range of the best's prediction: no worse as far as known */
	char why[FT_WHY];
};

/* A change to the scenario that makes a plan fit where none does. */
struct ft_way_out {
	char text[FT_WHY];
	double memory_frac; /* of the GPU's memory, with the change; or before it */
};

struct ft_plans {
	double combinations;
	size_t considered; /* legal plans, equal ones counted once */
	size_t feasible;   /* of them, those that fit */
	size_t simulated;  /* of them, the whole step */
	size_t known;	   /* answers that the database had */
	double wall_s;
	bool interrupted;
	bool proved; /* no plan of the space is better than the first */
	size_t n;
	struct ft_planned *best; /* [n] the best first */
	size_t simplest;	 /* of those equal to the best */
	size_t n_front;
	struct ft_planned *front; /* none is faster, cheaper and smaller than another */
	size_t n_ways;
	struct ft_way_out way[8]; /* where nothing fits */
};

/* The best plans that the scenario leaves open; its document is a scenario whose sizes may
 * be missing. root must outlive the answer. NULL on error: no plan is legal, say. That
 * nothing fits is an answer, with n 0 and ways out. */
struct ft_plans *ft_study_plan(const struct node *root, const char *name,
			       const struct ft_search *search, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_plans_free(struct ft_plans *plans);

/* A scenario under the best plan of those that it leaves open; on that shelf, which must
 * outlive it. NULL: an error, or no plan fits. */
struct ft_scenario *ft_scenario_at_best(struct ft_shelf *shelf, const char *path,
					const char *const *sets, size_t n,
					const struct ft_search *search,
					struct ft_error *err)
	__attribute__((warn_unused_result));

/* The document of a scenario from its file, --set applied; freed by ft_document_free. */
struct ft_document;
struct ft_document *ft_document_read(const char *path, const char *const *sets,
				     size_t n, struct ft_error *err)
	__attribute__((warn_unused_result));
/* One, or one for each number of GPUs where cluster.gpus is a list: how many, and the i-th.
 * 0 with *err: the list is not one of sizes. */
enum { FT_SIZES_MOST = 32 };
size_t ft_document_sizes(const struct ft_document *document,
			 const struct node *root[FT_SIZES_MOST], struct ft_error *err);
/* What to call a search: the scenario's title or file, with its GPUs where sized; the caller
 * frees it. */
char *ft_plans_label(const struct node *root, const char *path, bool sized);
void ft_document_free(struct ft_document *document);

#ifdef __cplusplus
}
#endif
#endif
