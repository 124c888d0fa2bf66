/*
 * sim/network.h - the links that sends meet beyond their own NICs
 *
 * Nodes, their NICs, leaves, uplinks and the links of pods to the core are those of the
 * cluster's topology, with the faults that its imperfections draw. Ranks lie on nodes in
 * parts (a part: the ranks of one pipeline stage, say). All groups of one kind in a part
 * send at once, and each flow is split over the fabric's queue pairs; under ECMP each
 * queue pair is hashed to an uplink of its own, adaptive routing pools a leaf's uplinks.
 * Rates are max-min shares (sim/share.h). The slowest member sets the pace:
 *
 *	share = slowest flow's rate / line rate of a NIC               0 < share <= 1
 *
 * What parts have in common: leaves that hold the same parts are one shared link, as are
 * pods. A path names the shared links it crosses and the fraction of each that it takes
 * at that rate (of the fullest leaf or pod; under ECMP two parts of its fullest link
 * and one of all): what sim/engine.c shares out among
 * collectives that run at once.
 *
 * Limits: a core's own switches never block; of a part only nodes under the first leaves are
 * simulated as senders, 4,096 on all rails that are hashed; in a drawn network, collectives share the links of switches that
 * have nodes.
 */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include "foretoken/sim.h"

struct arena;
struct network;

struct network_part {
	int64_t first_node, nodes; /* in order of placement */
};

enum network_pattern {
	NETWORK_RING,  /* to the next member of the group */
	NETWORK_PAIRS, /* to all members: eight stand for them, with their queue pairs */
	NETWORK_SHIFT, /* to the node `stride` further on: a pipeline's neighbour */
};

struct network_sends {
	enum network_pattern pattern;
	int64_t stride, members; /* of a group, in nodes */
	int64_t end; /* of NETWORK_SHIFT: no node from here on is the job's; 0: all are */
	bool back;   /* of NETWORK_SHIFT: each sends to the one that would send to it */
};

enum { NETWORK_USES = 5 };

struct network_path {
	double share;
	int n_uses;
	uint32_t link[NETWORK_USES]; /* below network_links() */
	float use[NETWORK_USES];     /* 0 to 1 */
};

/* Can links beyond the NICs ever be the narrowest? If not there is no need of this. */
bool network_matters(const struct ft_cluster *cluster);

/* nodes: of the whole network. Lives as long as mem. NULL: what failed leaves two of them
 * without a way. */
struct network *network_new(struct arena *mem, const struct ft_cluster *cluster,
			    int64_t nodes, const struct network_part *part,
			    size_t n_parts, struct ft_error *err)
	__attribute__((warn_unused_result));
size_t network_links(const struct network *network);

void network_find(struct network *network, size_t part,
		  const struct network_sends *sends, struct network_path *out);

/* The share of a group while all like it that the cluster holds, side by side, send as well. */
bool network_share(const struct ft_cluster *cluster, const struct network_sends *sends,
		   double *share, struct ft_error *err)
	__attribute__((warn_unused_result));

#endif
