/*
 * study/shelf.h - parts loaded once: clusters by their text, stacks,
 * libraries and price books by name; a file of the user's is loaded again
 * once it has changed (but not for a change in a file that it extends)
 */
#ifndef STUDY_SHELF_H
#define STUDY_SHELF_H

#include "foretoken/study.h"

struct arena;

struct arena *shelf_memory(struct ft_shelf *shelf);
struct ft_memo *shelf_memo(struct ft_shelf *shelf);
/* rows: of the GPU's, see ft_cluster_load_rows. */
const struct ft_cluster *shelf_cluster(struct ft_shelf *shelf, const struct node *node,
				       int rows, struct ft_error *err);
/* As it is on GPUs of the generation; NULL: of none. */
const struct ft_stack *shelf_stack(struct ft_shelf *shelf, const char *name,
				   const struct ft_mark *at, const char *generation,
				   struct ft_error *err);
/* A library that has to know a generation of GPUs, by its name, or a stack's. */
const struct ft_ccl *shelf_ccl(struct ft_shelf *shelf, const char *name,
			       const struct ft_mark *at, const char *generation,
			       struct ft_error *err);
const struct ft_ccl *shelf_ccl_of(struct ft_shelf *shelf, const struct ft_stack *stack,
				  const char *generation, struct ft_error *err);
const struct ft_prices *shelf_prices(struct ft_shelf *shelf, const char *name,
				     const struct ft_mark *at, struct ft_error *err);

/* The measured runs under unnamed stacks, or those under all others, read once. */
const struct ft_evidence *shelf_evidence(struct ft_shelf *shelf, bool unnamed,
					 struct ft_error *err);

/* What was found before a scenario was refused, or loaded. */
struct scenario_seen {
	bool parts_read;	 /* model, cluster, stack and prices could be read */
	struct ft_digest digest; /* of them, of what is given, and of the program */
};

/* How much of a scenario is loaded: its cluster and cost; all but the sizes of its plan,
 * which are those of one rank; all. */
enum scenario_depth {
	SCENARIO_CLUSTER,
	SCENARIO_OPEN,
	SCENARIO_LENIENT,
	SCENARIO_WHOLE
};

/* The document of a scenario, --set applied. */
struct node *scenario_read(struct arena *mem, const char *path, const char *const *sets,
			   size_t n, struct ft_error *err);

/* --set, applied to a document. */
bool scenario_set(struct arena *mem, struct node *root, const char *const *sets,
		  size_t n, struct ft_error *err);

/* A whole one that nobody wrote as it is: a row of measurements, a plan that was found. Keys
 * that do nothing may stand in it. */
struct ft_scenario *scenario_lenient(struct ft_shelf *shelf, const struct node *root,
				     const char *name, struct ft_error *err);

/* Of a size that ft_scenario_resized refuses: would it be one without cluster.imperfections, whose slow GPUs
 * and failed spines are counted in the cluster as given? */
bool scenario_size_hindered(const struct ft_scenario *scenario, int64_t gpus);

/* A scenario whose plan is left open: `plan` has no sizes of use, `resolved` is NULL. */
struct ft_scenario *scenario_open(struct ft_shelf *shelf, const struct node *root,
				  const char *name, struct ft_error *err);

/* A scenario's text, as a file of this name would hold it, and its --set. */
struct scenario_text {
	const char *name, *text;
	const char *const *sets;
	size_t n_sets;
};

/* What its plan needs to know of its cluster and its stack. */
struct ft_plan_context scenario_plan_context(const struct ft_scenario *scenario);

/* Does it ask for the best plan: run without training.parallel? */
bool scenario_leaves_plan(const struct ft_scenario *scenario);

/* ft_scenario_load of a whole scenario from a text, which also tells that. */
struct ft_scenario *scenario_load_text(struct ft_shelf *shelf,
				       const struct scenario_text *of,
				       struct scenario_seen *seen,
				       struct ft_error *err);

/* study/run.c: is there something that answers it? Asked ahead of a search that may take minutes. */
bool run_makes_sense(const struct ft_asked *q, struct ft_error *err);

#endif
