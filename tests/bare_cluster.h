/* tests/bare_cluster.h - a cluster without a network, whose servers draw so many watts: what money needs */
#ifndef TESTS_BARE_CLUSTER_H
#define TESTS_BARE_CLUSTER_H

#include "foretoken/cost.h"

struct bare_cluster {
	struct ft_gpu gpu;
	struct ft_node node;
	struct ft_fabric fabric;
	struct ft_part all; /* of a node */
	struct ft_part_line line;
	struct ft_parts parts;
	struct ft_cluster cluster;
};

/* Nodes of so many GPUs; it_w of each at full load and while it works. */
static inline void bare_cluster(struct bare_cluster *b, int64_t gpus, int64_t nodes,
				double it_w)
{
	*b = (struct bare_cluster){ 0 };
	b->gpu = (struct ft_gpu){ .vendor = "x", .ranks_per_gpu = 1 };
	b->node.gpus = gpus;
	b->fabric.name = "none";
	b->all = (struct ft_part){ .max_w = { it_w, it_w, it_w, NULL },
				   .typical_frac = { 1, 1, 1, NULL } };
	b->line = (struct ft_part_line){ .count = 1, .part = &b->all };
	b->parts = (struct ft_parts){ .n = 1, .line = &b->line };
	b->cluster = (struct ft_cluster){ .gpu = &b->gpu,
					  .node = &b->node,
					  .fabric = &b->fabric,
					  .parts = &b->parts,
					  .gpus = gpus * nodes,
					  .nodes = nodes };
}

#endif
