/*
 * hw/graph.h - a fabric's `graph` map, and what it comes to at a size
 *
 *	graph:
 *	  switches: [leaf0, leaf1, spine0]
 *	  attach:                                    # each NIC once
 *	    - {nodes: [0, 15], nics: [0, 7], switch: leaf0}
 *	    - {nodes: [16, 31], switch: leaf1}       # nics: all
 *	  cables:
 *	    - {from: leaf0, to: spine0, count: 16, rate: 400 Gb/s}
 *	    - {from: leaf1, to: spine0, count: 16}   # rate: a port's
 */
#ifndef HW_GRAPH_H
#define HW_GRAPH_H

#include "foretoken/hw.h"

struct arena;
struct node;

/* port: of a switch, bytes/s. */
bool graph_read(struct arena *mem, const struct node *map, double port,
		struct ft_switch_graph *graph, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Switches, cables and tiers when nodes of that many NICs are there. */
bool graph_topology(const struct ft_fabric *fabric, int64_t nodes, int64_t nics,
		    struct ft_topology *topology, struct ft_error *err)
	__attribute__((warn_unused_result));

#endif
