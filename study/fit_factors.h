/*
 * study/fit_factors.h - a few factors of a stack, fitted to what runs took
 *
 * How a run's step answers to each factor alone is simulated at FIT_POINTS values; between
 * them ln(step) is linear in ln(factor), and the answers to several factors add up. The fit
 * then makes least
 *
 *   sum over runs |ln(measured / step)| + sum over factors |ln(factor)|
 *
 * by the simplex of Nelder and Mead. The second sum holds factors to 1: one moves only
 * where that mends more, over all runs, than one run's error of the same size.
 */
#ifndef STUDY_FIT_FACTORS_H
#define STUDY_FIT_FACTORS_H

#include "foretoken/study.h"

enum { FIT_POINTS = 5 }; /* from the least factor to the greatest, 1 in the middle */

struct fit_run {
	double ratio; /* ln(measured / step), all factors 1 */
	double reply[FT_FIT_FACTORS][FIT_POINTS]; /* ln(step / step with all at 1) */
	size_t fold;
};

/* ln of a factor at a point: the ends are the bounds of the fit. */
double fit_point(size_t factor, int point);

/* What ln(step) gains under these factors. */
double fit_reply(const struct fit_run *run, const double ln_factor[FT_FIT_FACTORS]);

/* Of n runs those that are not of fold `without` (any above all folds: all count). */
void fit_factors(const struct fit_run *run, size_t n, size_t without,
		 double ln_factor[FT_FIT_FACTORS]);

#endif
