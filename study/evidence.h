/*
 * study/evidence.h - what measured runs say of a prediction: its range, and the runs nearest
 *
 * study/residuals.csv has r = ln(measured / predicted) of every measured step under its own
 * stack, study/residuals-unnamed.csv under the stack that nobody named, each with its traits;
 * study/groups.csv says whose groups of rows they are, study/ranges.yaml how far apart traits
 * are. For a new plan x and run i of source s (whose runs were written by the same people with
 * the same software):
 *
 *   d_i  = sqrt(sum over traits (distance * how far apart)^2)
 *   c_s  = exp(-min of d_i in s)              how near the source is; far ones count less
 *   w_i  = c_s exp(-d_i) / sum in s exp(-d)   however many runs it has, a source counts as one
 *
 * P10 and P90 of ln(measured / predicted) are the quantiles of r under these weights, at
 * 0.1 n / (n + missing_sources) from either end, n = (sum c)^2 / sum c^2 being how many
 * sources there are in effect. Then the distance of each from the median grows
 *   by 1 + widening * (least d_i)             where nothing near was measured,
 *   and, in quadrature, by P90 of what the plan's kernels, host and clock are less certain than the
 *   runs'; how far clocks may be higher counts for P10, how far lower for P90.
 * The prediction itself is never outside.
 *
 * Runs under a stack that is unnamed (foretoken-stack(5)) speak for scenarios under such a
 * stack, as those that name none are, and for no others.
 */
#ifndef STUDY_EVIDENCE_H
#define STUDY_EVIDENCE_H

#include "foretoken/study.h"

/* The runs under unnamed stacks, or those under all others: no question asks for both. */
struct ft_evidence *evidence_load(bool unnamed, struct ft_error *err)
	__attribute__((warn_unused_result));
void evidence_free(struct ft_evidence *evidence);
const struct ft_digest *evidence_digest(const struct ft_evidence *evidence);

struct evidence_answer {
	double low, high; /* P10 and P90 of ln(measured / predicted) */
	bool gpu_measured, stack_measured, attention_measured;
	size_t n_nearest;
	struct ft_near nearest[FT_NEAREST];
};

/* group: of a measured row, whose own source then counts nothing; NULL: all count. False when
 * no run is left. */
bool evidence_ask(const struct ft_evidence *evidence, const struct ft_traits *of,
		  const char *group, struct evidence_answer *answer,
		  struct ft_error *err) __attribute__((warn_unused_result));

#endif
