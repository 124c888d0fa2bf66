/*
 * sim/across.h - how long a collective takes across scale-up domains
 *
 * n ranks in k domains, g in each; B = min(g NIC, bus of a domain), f the bus factor,
 * S bytes as nccl-tests counts them.
 *
 *   ring      sqrt((base + steps * step)^2 + (S f / (B e))^2)
 *             steps = n-1, twice for all_reduce; LL, LL128, Simple:
 *             step = 4, 6.2, 14 us on NDR InfiniBand;  e = 0.5 (35 GB/s at most),
 *             0.78, 1
 *   tree      base + 2 ((g-1) hop + log2(k) net_hop) + 2 S / (0.92 B e c)
 *             c: by how much trees fall behind at 16 KiB to 16 MiB (NCCL's table)
 *   nvlstree  25 us + 2 log2(k) 20.9 us + 2 S / (0.85 min(g NIC, 1.25 bus))
 *   sharp     base + 2 hop + switch + max(S / (g NIC), 2 (g-1)/g S / bus)
 *   pat       8 us + log2(k) 4 us + 2.8 us n + S f / (0.75 B)
 *   hierarchical  reduce-scatter inside, all_reduce of S/g across, all_gather inside;
 *             the two networks overlap by chunks: max + (1 - o) min
 *   direct    all_to_all: base + (k-1) 1.5 us + max(S (n-g)/n / NIC, S (g-1)/n / port)
 *             RCCL brings 0.6 of the NIC to it
 *
 * A fabric's ring_step stretches steps against NDR's 4.58 us, its latency and hops the
 * net hops. Source: constants of NVIDIA/nccl 2.30 (src/graph/tuning.cc); steps and e of
 * rings from 77 published all_gather ratios of 2 to 128 nodes of 8 H100 on NDR (SimAI),
 * whose jumps lie where NCCL's model changes protocol; RCCL's tree of 0.59 from its tuner
 * and all_to_all of 0.6 from its acceptance floors (45 to 50 GB/s on two nodes); start and hops of direct and
 * broadcast, and the 0.75 of a port that all_to_all reaches, are assumed. Limit: one
 * collective alone; those that meet on links are shared out by sim/engine.c.
 */
#ifndef SIM_ACROSS_H
#define SIM_ACROSS_H

#include "foretoken/sim.h"
#include "sim/tuner.h"

/* What a group sees of the machine. */
struct paths {
	double n, g, k;
	double nic;	/* bytes/s of a rank's share of NICs that data reach */
	double bus;	/* of a ring through one domain; 1e18 when g is 1 */
	double port;	/* of a rank in its domain, all peers */
	double extra_s; /* of a net hop, beyond NDR InfiniBand under one leaf */
	double stretch; /* of a ring's step, against NDR InfiniBand */
	bool amd;
};

/* Bytes on the wire of the busiest rank over its rate: S f / B. */
double across_wire_s(enum ft_collective op, double n, double bytes, double bytes_per_s);
/* overlap_frac 0: one after the other; 1: fully pipelined. */
double across_overlap_s(double inside_s, double net_s, double overlap_frac);
/* Each NIC carries its part once; the switches add up. */
double across_sharp_net_s(double bytes, double g, double nic_bytes_per_s);

double across_ring_s(const struct paths *p, enum tuner_protocol q,
		     enum ft_collective op, double bytes);
double across_tree_s(const struct paths *p, enum tuner_protocol q, double bytes);
double across_nvls_tree_s(const struct paths *p, double bytes);
double across_sharp_s(const struct paths *p, double bytes);
double across_pat_s(const struct paths *p, enum ft_collective op, double bytes);
double across_pairs_s(const struct paths *p, double bytes);
double across_one_path_s(const struct paths *p, enum ft_collective op, double bytes);

#endif
