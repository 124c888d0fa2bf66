/*
 * sim/network_links.h - the links of a cluster's network, and ways over them
 *
 * Each NIC has a link up and one down. In a Clos a leaf's uplinks follow, one by one (in a
 * pool under adaptive routing), and what a pod has to the core; in a fabric drawn by hand
 * each cable group, both ways.
 */
#ifndef SIM_NETWORK_LINKS_H
#define SIM_NETWORK_LINKS_H

#include <gsl/gsl_rng.h>

#include "sim/network.h"
#include "sim/share.h"

/* Ways of a drawing (links of cables, in one direction) that serve alike: network_drawn.c. */
struct bundle {
	const uint32_t *way; /* [n] */
	size_t n;
	uint32_t link; /* the shared link they are */
};

/* What flows between two switches of a drawing under adaptive routing: network_drawn.c. */
struct stream {
	uint32_t from, to;
	double weight;
	size_t next; /* the one before it of those from the same switch, counted from 1; 0: none */
};

/* One rail of the fabric: with rail wiring they are alike but for their draws, so one is
 * laid out; with ToR wiring a node's NICs share a leaf, and all are, as in a graph. */
struct network {
	struct arena *mem;
	const struct ft_cluster *c;
	const struct ft_switch_graph *graph; /* NULL: a Clos */
	const struct network_part *part;
	size_t n_parts, n_links, n_shared;
	int64_t nodes, rails, per_leaf, leaves, uplinks, per_pod, pods;
	int64_t alike;	  /* rails, or packs of them, that those laid out stand for */
	uint32_t *order;  /* [nodes] where the i-th node in order of placement stands */
	double line;	  /* bytes/s of a NIC */
	double *capacity; /* [n_links] */
	uint32_t *leaf_link, *pod_link; /* the shared link each is */
	struct bundle *bundle;		/* [n_bundles] of a drawing */
	size_t n_bundles;
	struct stream *stream; /* [n_streams] while network_find looks at some */
	size_t n_streams, cap_streams;
	size_t *last_stream; /* [switches] of those from each, counted from 1; 0: none */
	double *passing;     /* [switches] zero, but for while a stream is spread */
	size_t *first_end;   /* [switches + 1] where each one's ends begin */
	uint32_t *end;	     /* the cable of each */
	int64_t *working;    /* [cables] of a group those that have not failed */
	const uint8_t *distance; /* the graph's, over cables that work */
	double *weight; /* [n_links] of flows while network_find looks at some; else zero */
	uint32_t *met; /* [n_met] which have any */
	size_t n_met;
	const struct found *found; /* what was asked before */
};

/* Widen *first and *last to the parts with a node in [from, to) in order of placement. */
void links_parts_in(const struct network *network, int64_t from, int64_t to,
		    size_t *first, size_t *last);
/* Of count links those that work. */
int64_t links_working(const struct network *network, gsl_rng *rng, int64_t count);

/* Sizes, capacities with the faults drawn from rng, and what parts share. */
void links_lay_out(struct network *w, gsl_rng *rng);

/* Is there a way that works between any two leaves? Adaptive routing needs an uplink of
 * each, ECMP one of the same spine. */
bool links_join_all(const struct network *w, struct ft_error *err);

/* How many flows a send that stands for so many is split into: the queue pairs of each, or none need
 * be told apart. */
int64_t links_split(const struct network *w, int64_t from, int64_t to, int64_t many);

/* A part of a send between two nodes over a rail. */
struct links_flow {
	int64_t from, to, rail; /* nodes, and the NIC of each */
};

/* More weight on a link. */
void links_load(struct network *w, uint32_t link, double weight);

/* Does a flow take all ways of a drawing at once? Else it has one. */
bool links_spread(const struct network *w);

/* The links of the flow's way, where it has one; how many. */
size_t links_route(const struct network *w, gsl_rng *rng, const struct links_flow *f,
		   uint32_t link[SHARE_HOPS]);

/* What the flows that are on the links take of each shared link at pace bytes/s a unit of
 * weight. */
void links_note_uses(const struct network *w, double pace, struct network_path *out);

#endif
