/* sim/svg_axis.c - axes of the drawings of a step */
#include "sim/svg_axis.h"

#include <math.h>

double svg_tick(double length, int ticks)
{
	double least = length / ticks, ten = pow(10, floor(log10(least)));

	return least <= ten	? ten :
	       least <= 2 * ten ? 2 * ten :
	       least <= 5 * ten ? 5 * ten :
				  10 * ten;
}

const char *svg_time_unit(ft_ps end, double *unit_ps)
{
	static const struct {
		double ps;
		const char *name;
	} units[] = { { 1e12, "s" }, { 1e9, "ms" }, { 1e6, "us" }, { 1e3, "ns" } };
	int i = 0;

	while (i < 3 && (double)end < 2 * units[i].ps)
		i++;
	*unit_ps = units[i].ps;
	return units[i].name;
}
