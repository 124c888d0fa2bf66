/* traces/dtensor.c - what PyTorch's DTensor takes a redistribution to cost, by which it chooses among ways */
#include "traces/dtensor.h"

static const double base_us = 6.6, penalty_us = 1;
static const double near_us = 0.6, far_us = 2.7;
static const double near_gib_per_s = 87.7, far_frac = 0.22;

static double hops_us(struct dtensor_mesh mesh, double bytes, double hops)
{
	double rate = near_gib_per_s * (mesh.beyond ? far_frac : 1);
	double part_gib = bytes / (double)mesh.ranks / (1 << 30);

	return base_us +
	       hops * ((mesh.beyond ? far_us : near_us) + part_gib / rate * 1e6);
}

double dtensor_gather_us(struct dtensor_mesh mesh, double bytes)
{
	return hops_us(mesh, bytes, (double)mesh.ranks - 1);
}

double dtensor_sum_us(struct dtensor_mesh mesh, double bytes)
{
	return hops_us(mesh, bytes, 2 * ((double)mesh.ranks - 1));
}

double dtensor_turn_us(struct dtensor_mesh mesh, double bytes)
{
	return dtensor_gather_us(mesh, bytes / (double)mesh.ranks) + penalty_us;
}
