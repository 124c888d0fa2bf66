/* study/spread.h - a group of ranks as far apart as a row of measurements says */
#ifndef STUDY_SPREAD_H
#define STUDY_SPREAD_H

#include "foretoken/sim.h"

/* Of the ranks of a cluster's nodes those that a group takes which has as many on each of
 * `nodes` nodes; false, with a reason, where no stride does that. */
bool spread_over(const struct ft_cluster *cluster, int64_t nodes,
		 struct ft_group_shape *group, struct ft_error *err)
	__attribute__((warn_unused_result));

#endif
