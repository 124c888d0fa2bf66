/*
 * sim/network.h - a collective's flows on the links of an imperfect cluster
 *
 * Nodes, their NICs, leaves and uplinks are those of the cluster's topology. All
 * NICs of a group send at once, as a ring (to the next node of the group) or as
 * all-to-all (to every node, flows between two leaves taken as one class). Each
 * flow is split over the fabric's queue pairs, each hashed to an uplink of its own
 * under ECMP; adaptive routing pools a leaf's uplinks. Rates are max-min shares
 * (sim/share.h). The slowest member sets the pace of a synchronous collective.
 *
 *	share = slowest flow's rate / line rate of a NIC          0 < share <= 1
 *
 * Limits: two tiers are laid out link by link; a third is taken as unblocking.
 * Above MOST_NODES nodes a sample of that many is laid out.
 */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include "foretoken/sim.h"

enum network_pattern { NETWORK_RING, NETWORK_PAIRS };

/* nodes: how many of the cluster's nodes the group touches. */
double network_share(const struct ft_cluster *cluster, int64_t nodes,
		     enum network_pattern pattern);

#endif
