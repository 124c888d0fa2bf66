/*
 * sim/tuner.h - the library's own prices: what NCCL and RCCL think a collective takes
 *
 * A library prices every pair of algorithm and protocol by a small model:
 *
 *	time = latency(algorithm, protocol, steps) + bytes / bandwidth
 *	bandwidth = channels * rate, cut by the protocol's and algorithm's shares and by
 *		    corrections by size
 *
 * RCCL fixes the protocol by windows of size on several nodes. Source: src/graph/tuning.cc
 * of NVIDIA/nccl and ROCm/rccl, figures only; the constants stand in stacks/ccl/NAME.yaml.
 * Prices are 8 to 38 % off measured curves: they tell what is chosen, inside a domain and
 * where a library is known to choose by them; how long it takes is told by sim/inside.c
 * and sim/across.h. Limits: balanced trees; of CollNet the direct kind; no plug-in tuner.
 */
#ifndef SIM_TUNER_H
#define SIM_TUNER_H

#include "sim/algorithm.h"

algorithm_time tuner_ring_s, tuner_tree_s, tuner_nvls_s, tuner_nvls_tree_s,
	tuner_sharp_s, tuner_pat_s;

/* The protocol that the library's windows fix at this size; -1: by price. */
int tuner_window(const struct group *g, enum ft_collective op, double bytes);

/* What the search of a node finds when a ring reaches ring_bytes_per_s inside and
 * net_bytes_per_s (all NICs of the group's ranks on a node) between: into ring and nvls. */
void tuner_search(struct group *g, double ring_bytes_per_s, double net_bytes_per_s);

#endif
