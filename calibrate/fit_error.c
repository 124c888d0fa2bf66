/*
 * calibrate/fit_error.c - held-out errors: what they add up to, and the error bar
 * that they give a profile
 *
 * Error bar: the deviation of the normal whose P10 to P90 holds 80 % of the errors,
 * since that range is what it is used for; the root mean square below 20 errors,
 * where quantiles say little. Then times t(0.9, shapes - 1) / z(0.9) *
 * sqrt(1 + 1 / shapes): what one more shape deserves when the deviation itself is
 * known from so few (Student). Shapes, not rows, are counted: rows of one weight
 * shape err together.
 */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>

#include "base/stats.h"
#include "calibrate/fit.h"

enum { FEW_ERRORS = 20, FEWEST_SHAPES = 3 };

double fit_spread(double root_mean_square, double p80, size_t n, size_t shapes)
{
	double z = gsl_cdf_ugaussian_Pinv(0.9), count = (double)shapes;
	double one = n < FEW_ERRORS ? root_mean_square : p80 / z;

	if (shapes < FEWEST_SHAPES)
		return 0;
	return one * gsl_cdf_tdist_Pinv(0.9, count - 1) / z * sqrt(1 + 1 / count);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static size_t distinct(uint64_t *shape, size_t n)
{
	size_t count = 0;

	qsort(shape, n, sizeof(*shape), by_value);
	for (size_t i = 0; i < n; i++)
		count += !i || shape[i] != shape[i - 1];
	return count;
}

void fit_summarize(struct ft_fit_error *g, double *v, uint64_t *shape, size_t n)
{
	double square = 0;

	g->n = n;
	for (size_t i = 0; i < n; i++) {
		g->bias += v[i] / (double)n;
		g->mape += fabs(v[i]) / (double)n;
		square += v[i] * v[i] / (double)n;
	}
	for (size_t i = 0; i < n; i++)
		v[i] = fabs(v[i]);
	stats_sort(v, n);
	g->median = stats_median(v, n);
	g->p90 = stats_quantile(v, n, 0.9);
	g->shapes = distinct(shape, n);
	/* the least error does not count: the bar is rather too wide */
	g->spread = fit_spread(sqrt(square), n ? stats_quantile(v + 1, n - 1, 0.8) : 0,
			       n, g->shapes);
}
