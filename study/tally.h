/*
 * study/tally.h - checks of predictions against measurements, and their summary
 *
 * Errors are in time: predicted / measured - 1 for a time, measured / predicted - 1
 * for a rate, so that positive always means predicted too slow.
 *   mape    mean of |error|        bias  mean of error
 *   median, p90, max               of |error|; p90 as base/stats.h defines it
 */
#ifndef STUDY_TALLY_H
#define STUDY_TALLY_H

#include "base/arena.h"
#include "base/csv.h"
#include "foretoken/study.h"

struct tally {
	struct arena *mem;
	struct ft_validation *v;
	size_t check_cap, failure_cap, side_cap;
	struct ft_check *side; /* keys beside the scored one */
	size_t n_side;
	struct ft_shelf *shelf;
	const char *const *sets;
	size_t n_sets;
};

/* Add a check; its error and whether it is inside its interval are worked out here.
 * scored: it counts in the summary; else only under its key. */
void tally_check(struct tally *t, const struct ft_check *check, bool scored);
void tally_failure(struct tally *t, const char *id, const struct ft_error *err);
/* Of a row, whose line is told where the reason has no place. */
void tally_row_failure(struct tally *t, const struct csv *rows, size_t row,
		       const struct ft_error *err);
void tally_finish(struct tally *t);

/* A summary of each label of n checks, in the order in which they appear. */
struct ft_summary *tally_each(struct arena *mem, const struct ft_check *check,
			      const char *const *label, size_t n, size_t *n_out);

/* What a validation lives in. */
struct arena *validation_memory(struct ft_validation *validation);

/* Of one kind of row each; false only for a file that cannot be understood. */
bool validate_steps(struct tally *t, const struct csv *rows,
		    struct ft_progress progress, struct ft_error *err);
bool validate_kernels(struct tally *t, const struct csv *rows, struct ft_error *err);
bool validate_collectives(struct tally *t, const struct csv *rows,
			  struct ft_error *err);

/* A file of steps: its columns are known. */
bool rows_are_steps(struct tally *t, const struct csv *rows, struct ft_error *err);

/* The scenario that a row of it describes, --set applied; NULL on error. */
struct node *row_scenario(struct tally *t, const struct csv *rows, size_t row,
			  struct ft_error *err);

/* Do two rows describe the same scenario? */
bool rows_alike(const struct csv *rows, size_t row, size_t other);

/* One row, predicted and checked. */
bool validate_row(struct tally *t, const struct csv *rows, size_t row,
		  struct ft_error *err);

/* What the row is scored by, and the value measured. */
bool row_scored(struct tally *t, const struct csv *rows, size_t row, const char **key,
		double *value, struct ft_error *err);

/* The row's id column, else "line N". */
const char *row_id(struct tally *t, const struct csv *rows, size_t row);

#endif
