/* tests/clos.h - a fabric by rails without a name, and a cluster of nodes on it */
#ifndef TESTS_CLOS_H
#define TESTS_CLOS_H

#include "foretoken/hw.h"
#include "tests/check.h"

/* Switches of that radix with as many uplinks as nodes below them, which any flow may take. */
static inline struct ft_fabric clos(int64_t radix)
{
	return (struct ft_fabric){ .name = "t",
				   .wiring = FT_WIRING_RAIL,
				   .radix = radix,
				   .planes = 1,
				   .port_bytes_per_s = { .value = 50e9 },
				   .adaptive = true,
				   .oversubscription = 1,
				   .core_oversubscription = 1,
				   .rails_per_leaf = 1,
				   .ports_per_optic = 1,
				   .nic_ports_per_optic = 1,
				   .queue_pairs = 1 };
}

/* As many ranks in each node as NICs. */
static inline struct ft_cluster clos_cluster(const struct ft_fabric *fabric,
					     int64_t nodes, int64_t nics)
{
	struct ft_cluster c = { .fabric = fabric,
				.nodes = nodes,
				.ranks_per_node = nics,
				.nics_per_node = nics,
				.nic_bytes_per_s = 50e9,
				.imperfections = { .given = true } };
	struct ft_error err;

	ok_or_say(ft_topology_build(fabric, nodes, nics, 0, &c.topology, &err), err);
	return c;
}

#endif
