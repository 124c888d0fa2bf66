/* traces/fanout.c - how many ranks, or domains, the copies of a token reach */
#include <math.h>

#include <gsl/gsl_sf_gamma.h>

#include "base/whole.h"
#include "foretoken/traces.h"

/* Of n places, those that c copies reach, each as likely each time. */
static double thrown(double c, double n)
{
	return n * (1 - pow(1 - 1 / n, c));
}

/* The probability that d groups, drawn from `of`, are none of s: C(of - s, d) / C(of, d). */
static double missed(double of, double s, double d)
{
	if (d > of - s)
		return 0;
	return exp(gsl_sf_lngamma(of - s + 1) + gsl_sf_lngamma(of - d + 1) -
		   gsl_sf_lngamma(of - s - d + 1) - gsl_sf_lngamma(of + 1));
}

/* Experts of c copies follow one another, and the next token's follow them: of n places with as many
 * each, how many the c span, where they may begin at each multiple of what both have in common. */
static double spanned(double c, double experts, double n)
{
	int64_t each = llround(experts / n);

	if (each < 1)
		return fmin(c, n);
	return fmin(n,
		    1 + (c - (double)whole_divisor(llround(c), each)) / (double)each);
}

/* The copies are thrown into the groups that a token may go to. Where a group is spread over
 * places they are thrown into these; where a place has several groups, it is reached by each. */
double ft_fanout_reached(struct ft_fanout f, double n)
{
	if (f.of <= 0)
		return thrown(f.copies, n);
	if (f.groups <= 0)
		return spanned(f.copies, f.of, n);
	if (n >= f.of)
		return thrown(f.copies, n * f.groups / f.of);
	return n * (1 - missed(f.of, f.of / n, thrown(f.copies, f.groups)));
}
