/* base/stats.c - order statistics */
#include "base/stats.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

/* 0.1 n is a little more than the whole number that it should be. */
static const double ROUNDING = 1e-9;

void stats_sort(double *v, size_t n)
{
	gsl_sort(v, 1, n);
}

double stats_quantile(const double *v, size_t n, double q)
{
	size_t rank = (size_t)ceil(q * (double)n - ROUNDING);

	return n ? v[rank ? rank - 1 : 0] : 0;
}

double stats_median(const double *v, size_t n)
{
	return n ? gsl_stats_median_from_sorted_data(v, 1, n) : 0;
}
