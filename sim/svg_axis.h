/* sim/svg_axis.h - axes of the drawings of a step: where ticks stand, and the unit of time */
#ifndef SIM_SVG_AXIS_H
#define SIM_SVG_AXIS_H

#include "foretoken/base.h"

/* 1, 2 or 5 times a power of ten, so that `length` has at most `ticks` of them. */
double svg_tick(double length, int ticks);

/* The unit in which a time up to `end` is read well: its name, and its picoseconds. */
const char *svg_time_unit(ft_ps end, double *unit_ps);

#endif
