/*
 * sim/across.h - our clock: how long a collective takes across scale-up domains
 *
 * n ranks in k domains, g in each; B = min(g NIC, bus of a domain), f the bus factor,
 * S bytes as nccl-tests counts them. Names in <> are constants of the library
 * (stacks/ccl/NAME.yaml, with their sources), by protocol where it matters.
 *
 *   ring      sqrt((<base> + steps <step>)^2 + (S f / b)^2)
 *             b = B <efficiency>, no more than <ll_most>, channels <ll128_channel_most>;
 *             steps = n-1, twice for all_reduce
 *   broadcast <pipeline start> + (k-1) <step> + (n-k) <hop> + S / B, along a ring, Simple
 *   tree      <base> + 2 ((g-1) <hop> + log2(k) <hop_net>) + 2 S / (b <lag>), <wait> added
 *             to each hop; b = B <efficiency>, no more than channels <channel_most> (LL128: its own)
 *   nvlstree  <hop> + 2 log2(k) <hop_net> + 2 S / (<efficiency> min(g NIC, <bus_gain> bus))
 *             no more than g <channel_most>
 *   sharp     L = <start> + 2 (<hop> + (g-1) <arity>) + <hop_net>, then
 *             all_reduce: L + max(S / (g NIC), 2 (g-1)/g S / bus)
 *             all_gather, reduce_scatter: sqrt(L^2 + max(S (n-g)/n / (g NIC), (g-1)/g S / bus)^2)
 *   pat       <base> + log2(k) <hop_net> / <overlap> + <rank> n + S f / (<share> B)
 *   hierarchical  reduce-scatter inside, all_reduce of S/g across, all_gather inside;
 *             the two networks overlap by chunks: max + (1 - o) min
 *   direct    all_to_all: <start> + (k-1) <peer> + (n-g) exchange_peer + max(S (n-g)/n /
 *             (<nic_share> NIC), S (g-1)/n / (<port_share> port)), exchange_peer being the
 *             fabric's; send and receive: as broadcast, one hop
 *
 * A fabric's ring_step over the library's <network ring_step> stretches steps, either way;
 * its latency beyond the library's and its hops are added to each <hop_net>. Limits: one
 * collective alone (those that meet on links are shared out by sim/engine.c); the latency
 * of SHARP and all that a file calls assumed.
 */
#ifndef SIM_ACROSS_H
#define SIM_ACROSS_H

#include "sim/algorithm.h"

/* Bytes on the wire of the busiest rank over its rate: S f / B. */
double across_wire_s(enum ft_collective op, double n, double bytes, double bytes_per_s);
/* overlap_frac 0: one after the other; 1: fully pipelined. */
double across_overlap_s(double inside_s, double net_s, double overlap_frac);
/* Each NIC carries its part once; the switches add up. */
double across_sharp_net_s(double bytes, double g, double nic_bytes_per_s);

algorithm_time across_ring_s, across_tree_s, across_nvls_tree_s, across_sharp_s,
	across_pat_s, across_hierarchical_s, across_direct_s;

#endif
