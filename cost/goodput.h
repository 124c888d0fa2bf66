/*
 * cost/goodput.h - what failures leave of a cluster's time
 *
 * Failures are independent and equally likely at any time (exponential), and each stops the
 * whole job. It goes back to its last checkpoint, so that on average half an interval is done
 * again, and a failure may come while it saves or restarts. With M the mean time between
 * failures, d what a checkpoint costs, tau the work between two, R the time from a failure until
 * it trains again:
 *
 *   time that tau takes  E = M e^(R/M) (e^((tau+d)/M) - 1)       exact; productive: tau / E
 *   best tau             M (1 + W(-e^(-d/M-1)))                  W: Lambert's function
 *
 *   without failures     E = tau + d                             the limit; tau is without end unless stated
 *
 * Daly, FGCS 22 (2006), equation 20; its minimum in closed form. Young, CACM 17 (1974), is the
 * first-order approximation, which fails where saving takes long against M.
 *
 * How a job recovers (after ClusterMAX's calculator): cold, it waits until the node is repaired;
 * hot, a spare takes its place, and the failed node's scale-up domain is out of use until it is
 * repaired; fault-tolerant, the others go on after a failover, without going back.
 */
#ifndef COST_GOODPUT_H
#define COST_GOODPUT_H

#include "foretoken/cost.h"

/* Mean time between failures of so many nodes. */
double goodput_mtbf_s(double failures_per_1000_node_days, double nodes);

/* Of a job on all of a cluster: by its parts, times how well they are looked after. */
double goodput_failures_per_hour(const struct ft_cluster *cluster,
				 const struct ft_prices *prices);

/* The best interval between checkpoints that cost save_s each: Young's, and the exact one. */
double goodput_young_s(double save_s, double mtbf_s);
double goodput_best_s(double save_s, double mtbf_s);

/* Where the time of a job goes; the shares add up to 1. */
struct ft_time_use goodput_time_use(const struct ft_reliability *r);

#endif
