/* cost/power.c - GPUs by what they do, all else at full load */
#include "cost/power.h"

double power_it_w(const struct ft_cluster *cluster, const struct ft_prices *prices,
		  double busy_frac)
{
	const struct ft_gpu *gpu = cluster->gpu;
	const struct ft_topology *t = &cluster->topology;
	double idle_w = gpu->idle_w.value, limit_w = gpu->limit_w.value;
	double gpus_w = (double)(cluster->nodes * cluster->node->gpus) *
			(idle_w + (limit_w - idle_w) * busy_frac);
	double nodes_w = (double)cluster->nodes * cluster->node->power_w.value;
	double switches_w = (double)(t->leaf + t->spine + t->core) *
			    cluster->fabric->switch_w.value;

	return (gpus_w + nodes_w + switches_w) / (1 - prices->other_power_frac.value);
}
