/*
 * study/single_rows.h - what rows of single kernels and of single collectives have in common: a GPU by
 * its name, whole numbers, and a time or a rate that was measured
 */
#ifndef STUDY_SINGLE_ROWS_H
#define STUDY_SINGLE_ROWS_H

#include "base/csv.h"
#include "study/tally.h"

/* As much as `collective --bytes` takes. */
#define ROW_BYTES_MOST 1e18

/* GPUs by name or path as the rows say it, loaded once per file. */
struct garage {
	struct ft_gpu *gpu[32];
	const char *asked[32];
	size_t n;
};

/* The garage's; NULL on error. */
const struct ft_gpu *garage_gpu(struct garage *g, const char *name,
				const struct ft_mark *at, struct ft_error *err);
void garage_close(struct garage *g);

/* A whole number from 0, or the fallback where the cell is empty. */
bool row_whole(const struct csv *t, size_t row, const char *column, int64_t fallback,
	       int64_t *out, struct ft_error *err);

/* What a row measured: microseconds, or 0 and the rate in its column. */
bool row_measured(const struct csv *t, size_t row, const char *rate_column, double *us,
		  double *rate, struct ft_error *err);

/* A measured rate and how much of its unit the work is, by what name. */
struct rate {
	const char *key;
	double measured, work;
};

/* The prediction against the measured time, and without one (us 0) against the rate.
 * c: the check's id and group. */
void check_time_or_rate(struct tally *t, struct ft_check *c,
			const struct ft_prediction *p, double us, struct rate rate);

#endif
