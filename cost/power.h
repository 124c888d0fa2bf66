/*
 * cost/power.h - what a cluster draws: GPUs by what they do, the rest by its table of parts
 *
 * The equation is in foretoken/cost.h; its numbers are a deal's `power`.
 */
#ifndef COST_POWER_H
#define COST_POWER_H

#include "foretoken/cost.h"

/* Of a GPU that works, while steps run. */
double power_of_gpu_w(const struct ft_power *power);

struct ft_power power_of(const struct ft_cluster *cluster,
			 const struct ft_throughput *during);

/* What follows from the deal's power. it_w: while steps run. idle_w: between jobs, when GPUs do
 * nothing and hosts go on. provisioned_w: every part at full load, spares too. */
void power_set(struct ft_deal *deal);

#endif
