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

/* Of the quantile among n sorted values, from 0. */
static size_t place_of(size_t n, double q)
{
	size_t rank = (size_t)ceil(q * (double)n - ROUNDING);

	return rank ? rank - 1 : 0;
}

double stats_quantile(const double *v, size_t n, double q)
{
	return n ? v[place_of(n, q)] : 0;
}

double stats_select(double *v, size_t n, double q)
{
	return n ? gsl_stats_select(v, 1, n, place_of(n, q)) : 0;
}

double stats_median(const double *v, size_t n)
{
	return n ? gsl_stats_median_from_sorted_data(v, 1, n) : 0;
}
