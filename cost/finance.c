/* cost/finance.c - annuities */
#include "cost/finance.h"

#include <math.h>

double finance_recovery(double i, double years)
{
	/* i g / (g - 1) with g = (1 + i)^years, exact for the smallest i, too */
	return i == 0 ? 1 / years : i / -expm1(-years * log1p(i));
}

double finance_worth(double i, double months)
{
	return months == 0 ? 1 : exp(-months / 12 * log1p(i));
}

double finance_interest_usd(double usd, double i, double years)
{
	double months = 12 * years;

	return usd * finance_recovery(i / 12, months) * months - usd;
}
