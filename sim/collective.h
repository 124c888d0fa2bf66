/*
 * sim/collective.h - a collective on a network whose share of line rate is known
 */
#ifndef SIM_COLLECTIVE_H
#define SIM_COLLECTIVE_H

#include "foretoken/sim.h"
#include "sim/network.h"

/* How the NICs of a group send, in nodes; members 1: they do not. */
struct network_sends collective_sends(const struct ft_cluster *cluster,
				      enum ft_collective op,
				      struct ft_group_shape shape);

/* ft_collective_predict, with share of line rate (0 to 1) left by other flows of its own. */
bool collective_at(const struct ft_cluster *cluster, const struct ft_ccl *ccl,
		   const struct ft_collective_call *call, double share,
		   struct ft_collective_result *out, struct ft_error *err)
	__attribute__((warn_unused_result));

/* The same on links of its own, remembered by the cluster's and the library's handles
 * (sim/memo.c); memo may be NULL. */
bool collective_recall(struct ft_memo *memo, const struct ft_cluster *cluster,
		       const struct ft_ccl *ccl, const struct ft_collective_call *call,
		       struct ft_collective_result *out, struct ft_error *err);

#endif
