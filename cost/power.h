/*
 * cost/power.h - what a cluster draws: GPUs by what they do, the rest by its table of parts
 */
#ifndef COST_POWER_H
#define COST_POWER_H

#include "foretoken/cost.h"

/* IT power while steps run: the equation is in foretoken/cost.h. */
double power_it_w(const struct ft_cluster *cluster, const struct ft_throughput *during);

/* IT power that must be provided: every part at full load, spares too. */
double power_provisioned_w(const struct ft_cluster *cluster);

#endif
