/*
 * sim/tuner.h - which algorithm and protocol NCCL and RCCL choose
 *
 * A library prices every pair of algorithm and protocol by a small model and takes the
 * cheapest:
 *
 *	time = latency(algorithm, protocol, steps) + bytes / bandwidth      [us, GB/s]
 *	bandwidth = channels * rate, cut by the protocol's and algorithm's factors
 *
 * Source: NVIDIA/nccl 2.30.7 (commit 5067397) and ROCm/rocm-systems (03a8914),
 * src/graph/tuning.cc of each, figures only. This tells what is chosen; how long it
 * takes is told by sim/inside.c and sim/collective.c, as the libraries' own model is 8
 * to 38 % off measured curves. Limits: balanced trees; no plug-in tuner; of RCCL its
 * ratios and protocol windows, not its corrections by size.
 */
#ifndef SIM_TUNER_H
#define SIM_TUNER_H

#include <stdbool.h>

#include "foretoken/base.h"
#include "foretoken/hw.h"

enum tuner_algorithm {
	TUNER_TREE,
	TUNER_RING,
	TUNER_COLLNET_DIRECT, /* reduction in the network's switches: SHARP */
	TUNER_COLLNET_CHAIN,
	TUNER_NVLS,	 /* reduction in the NVLink switch */
	TUNER_NVLS_TREE, /* the same, trees across nodes */
	TUNER_PAT,	 /* parallel aggregated trees, one GPU a node */
	TUNER_ALGORITHMS
};

enum tuner_protocol { TUNER_LL, TUNER_LL128, TUNER_SIMPLE, TUNER_PROTOCOLS };

enum tuner_generation {
	TUNER_VOLTA,
	TUNER_AMPERE,
	TUNER_HOPPER,
	TUNER_BLACKWELL,
	TUNER_MI250,
	TUNER_MI300,
	TUNER_MI350,
};

/* What the library's search of the node found: channels and GB/s of each, inside a
 * node and between nodes. channels 0: the algorithm is not there. */
struct tuner_graph {
	double channels, intra, inter;
};

struct tuner_input {
	enum tuner_generation generation;
	double ranks, nodes;
	bool pcie; /* no scale-up fabric */
	bool amd_cpu;
	bool sharp; /* CollNet is enabled */
	struct tuner_graph ring, tree, nvls, collnet;
};

/* Microseconds by one pair; INFINITY when the library would not run it. bytes as
 * nccl-tests counts them. */
double tuner_us(const struct tuner_input *in, enum ft_collective op, double bytes,
		enum tuner_algorithm algorithm, enum tuner_protocol protocol);

struct tuner_choice {
	enum tuner_algorithm algorithm;
	enum tuner_protocol protocol;
	double us;
};
struct tuner_choice tuner_choose(const struct tuner_input *in, enum ft_collective op,
				 double bytes);

/* What is left of a tree's bandwidth at this size. */
double tuner_tree_correction(enum tuner_protocol protocol, double bytes);

/* ring, tree, nvls ...; LL, LL128, Simple. */
const char *tuner_algorithm_name(enum tuner_algorithm algorithm);
const char *tuner_protocol_name(enum tuner_protocol protocol);

/* What the search finds for n ranks on k nodes of a GPU whose ring reaches ring_gb_s
 * inside a node and net_gb_s (all NICs of the group's ranks on a node) between them. */
struct tuner_input tuner_input_of(const struct ft_gpu *gpu, double ranks, double nodes,
				  double ring_gb_s, double net_gb_s);

#endif
