/*
 * sim/network_drawn.h - networks drawn by hand: cables, ways over them, and what parts share
 *
 * A drawing has switches, those with nodes (leaves) and others, and groups of cables between
 * two, each a link in either direction. Which cables a flow takes is by lot over all that lead
 * nearer; under adaptive routing it takes all of them, each switch dealing out what comes to it
 * evenly. So cables of one switch to others that are as far from every leaf (the spines of
 * a Clos) serve alike: those, in one direction, are a bundle. Bundles of leaves that hold the
 * same parts and lead to the same switches are one shared link; every other bundle is its own.
 * What comes down to a leaf from a switch without nodes is not looked at, as in a Clos.
 */
#ifndef SIM_NETWORK_DRAWN_H
#define SIM_NETWORK_DRAWN_H

#include "sim/network_links.h"

/* Capacities of the cables, with the faults drawn from rng, and how far switches are over those left. */
void drawn_set_cables(struct network *network, gsl_rng *rng);

/* Is a way left between any two switches with nodes? */
bool drawn_joins_all(const struct network *network, struct ft_error *err);

/* Bundles, and the shared link each is. */
void drawn_find_bundles(struct network *network);

/* The cables of a flow; how many: none where it takes all of them. */
size_t drawn_route(const struct network *network, gsl_rng *rng,
		   const struct links_flow *flow, uint32_t *link);

/* The same of a flow that takes all ways; its weight is on them after drawn_spread. */
void drawn_add(struct network *network, const struct links_flow *flow, double weight);
void drawn_spread(struct network *network);

#endif
