/* tests/annuity.h - what capital costs a year, as textbooks have it */
#ifndef TESTS_ANNUITY_H
#define TESTS_ANNUITY_H

#include <math.h>

#include "cost/finance.h"

/* usd, of which residual_frac is got back after years. */
static inline double per_year_usd(double usd, double residual_frac, double i,
				  double years)
{
	double residual_now_usd = usd * residual_frac / pow(1 + i, years);

	return (usd - residual_now_usd) * finance_recovery(i, years);
}

#endif
