/* study/spread.c - a group of ranks as far apart as a row of measurements says */
#include "study/spread.h"

bool spread_over(const struct ft_cluster *cluster, int64_t nodes,
		 struct ft_group_shape *group, struct ft_error *err)
{
	long long size = group->size, each = size / nodes;
	long long node = cluster->ranks_per_node;

	if (size % nodes)
		return ft_fail(err, NULL,
			       "%lld GPUs cannot be spread evenly over %lld nodes",
			       size, (long long)nodes);
	if (each > node)
		return ft_fail(err, NULL, "%lld node%s of %lld GPUs cannot hold %lld",
			       (long long)nodes, nodes > 1 ? "s" : "", node, size);
	if (nodes > 1 && node % each)
		return ft_fail(err, NULL,
			       "%lld of the %lld GPUs of each node are not simulated; "
			       "numbers that divide %lld are",
			       each, node, node);
	group->stride = nodes > 1 ? node / each : 1;
	return true;
}
