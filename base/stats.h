/*
 * base/stats.h - the median, the quantile, and the normal's P90: one definition of
 * each for all that is printed
 *
 * Quantile: the nearest rank. Of n values by rising size, the ceil(q n)-th, and the
 * first for q 0: always a value that was seen. Median: the middle value; of an even
 * number the mean of the middle two.
 */
#ifndef BASE_STATS_H
#define BASE_STATS_H

#include <stddef.h>

/* P90 of the normal distribution, in standard deviations: P10 to P90 is 80 %. */
static const double NORMAL_P90 = 1.2816;

void stats_sort(double *v, size_t n);

/* Of n sorted values; 0 when there are none. */
double stats_quantile(const double *v, size_t n, double q);
double stats_median(const double *v, size_t n);

/* stats_quantile of values in any order, which leaves them in another one: without sorting
 * them all. */
double stats_select(double *v, size_t n, double q);

#endif
