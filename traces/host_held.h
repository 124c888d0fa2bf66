/*
 * traces/host_held.h - what waits in a node's memory at once of what layers send there for backward
 */
#ifndef TRACES_HOST_HELD_H
#define TRACES_HOST_HELD_H

#include "foretoken/traces.h"

struct swing { /* of a segment or a pass: what it takes for good, and its fullest moment */
	double net, peak;
};

typedef struct swing segment_swing(const struct ft_graph *graph,
				   const struct ft_segment *segment);

/* In the memory of the node: what goes there is there before what comes back is gone. */
segment_swing swing_on_host;

/* held: of a rank of each class. The sum of the ranks of the node that holds most; ranks are numbered class by class. */
double fullest_node(const struct ft_graph *graph, const double *held,
		    int64_t ranks_per_node);

#endif
