/*
 * cost/power.h - what a cluster draws
 */
#ifndef COST_POWER_H
#define COST_POWER_H

#include "foretoken/cost.h"

/* IT power with GPUs computing for busy_frac of the time; 1 is full load. */
double power_it_w(const struct ft_cluster *cluster, const struct ft_prices *prices,
		  double busy_frac);

#endif
