/* cost/split.c - the split log-normal of a price */
#include "cost/split.h"

#include <math.h>

#include <gsl/gsl_cdf.h>

static const double FAR = 5; /* a table's last z */

/* P10's distance below the mode when the lower side weighs a and has deviation 1. */
static double reach(double a)
{
	return -gsl_cdf_ugaussian_Pinv(0.05 / a);
}

/* The weight a below the mode. Each a asks for deviations s and t; the right one is the share
 * s / (s + t) of those that it asks for, which falls from 1 to 0 between 0.1 and 0.9. */
static double weight(double below, double above)
{
	double low = 0.1, high = 0.9;

	for (int i = 0; i < 60; i++) {
		double a = (low + high) / 2;
		double s = below / reach(a), t = above / reach(1 - a);

		if (s * (1 - a) > t * a)
			low = a;
		else
			high = a;
	}
	return (low + high) / 2;
}

struct split split_of(double low, double mode, double high)
{
	double below = log(mode / low), above = log(high / mode);
	struct split s = { mode, 0, 0 };
	double a;

	if (!(below > 0) && !(above > 0))
		return s;
	a = !(below > 0) ? 0 : !(above > 0) ? 1 : weight(below, above);
	s.below = a > 0 ? below / reach(a) : 0;
	s.above = a < 1 ? above / reach(1 - a) : 0;
	return s;
}

double split_quantile(const struct split *s, double p)
{
	double all = s->below + s->above, a;

	if (!(all > 0))
		return s->mode;
	a = s->below / all;
	if (p < a)
		return s->mode *
		       exp(s->below * gsl_cdf_ugaussian_Pinv(fmax(p, 1e-12) / (2 * a)));
	return s->mode * exp(s->above * gsl_cdf_ugaussian_Qinv(fmax(1 - p, 1e-12) /
							       (2 * (1 - a))));
}

static double look_up_first(struct split_table *t, int i)
{
	double *p = &t->grid->p[i];

	if (!(*p > 0))
		*p = gsl_cdf_ugaussian_P(FAR * (2.0 * i / (SPLIT_TABLE - 1) - 1));
	t->amount[i] = split_quantile(&t->of, *p);
	return t->amount[i];
}

static inline double amount(struct split_table *t, int i)
{
	return t->amount[i] > 0 ? t->amount[i] : look_up_first(t, i);
}

double split_look_up(struct split_table *table, double z)
{
	double at = (z / FAR + 1) / 2 * (SPLIT_TABLE - 1), below;
	int i = (int)at;

	if (!(at > 0))
		return amount(table, 0);
	if (i >= SPLIT_TABLE - 1)
		return amount(table, SPLIT_TABLE - 1);
	below = amount(table, i);
	return below + (amount(table, i + 1) - below) * (at - i);
}
