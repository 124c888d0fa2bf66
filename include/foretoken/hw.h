/*
 * foretoken/hw.h - the machine: GPU profiles, nodes, fabrics, and the one
 * topology object that sim/ routes over and cost/ counts
 *
 * Nothing here knows any work. A profile holds measurements (and what they say
 * about shapes never measured); sim/ turns them into times. Every number
 * carries its provenance: loading one without is an error.
 *
 * An MI250 card is two ranks (ranks_per_gpu): memory, peak and compute units
 * here are of ONE RANK; the file states the card's, the loader divides. Power is
 * of the card.
 */
#ifndef FORETOKEN_HW_H
#define FORETOKEN_HW_H

#include "foretoken/base.h"

struct node;

/* ---- GPU profile ------------------------------------------------------- */

enum { FT_HW_LAYOUTS = 3 }; /* forward, dgrad, wgrad: as enum ft_layout */

/* One measured product; m tokens, n output, k input features. */
struct ft_gemm_row {
	double m, n, k;
	double time_s;
};

struct ft_gemm_table {
	size_t n_rows;
	struct ft_gemm_row *row;
	const struct ft_provenance *from;
};

struct ft_attention_row {
	double batch, heads, kv_heads, sequence, head_dim;
	bool causal;
	double flop_per_s; /* counted 4bhs^2d forward, x2.5 backward, halved if causal */
};

struct ft_attention_table {
	const char *impl;
	int pass; /* 0 forward, 1 backward, 2 both */
	enum ft_dtype dtype;
	size_t n_rows;
	struct ft_attention_row *row;
	const struct ft_provenance *from;
};

/* Time of a memory-bound kernel that moves B bytes: start_s + B / bandwidth, the
 * bandwidth saturating as B / (B + half_bytes). */
struct ft_memory_curve {
	const char *kernel; /* copy, rmsnorm ... ; "default" serves the rest */
	bool warm;
	struct ft_number start_s, bytes_per_s, half_bytes;
};

struct ft_collective_row {
	double bytes, time_s;
};

/* One op among n ranks of one node over one fabric; rows by rising bytes. */
struct ft_collective_table {
	const char *fabric; /* nvlink, nvlink-no-nvls, xgmi, pcie */
	enum ft_collective op;
	int64_t n;
	size_t n_rows;
	struct ft_collective_row *row;
	const struct ft_provenance *from;
};

struct ft_gpu {
	const char *name, *vendor, *title;
	int64_t ranks_per_gpu;
	struct ft_number memory_bytes, memory_bytes_per_s; /* of a rank */
	struct ft_number peak_flop_per_s[FT_DTYPES];       /* of a rank; 0: cannot */
	int64_t compute_units;                             /* of a rank */
	int64_t tile_m, tile_n;                            /* of the wave model */
	struct ft_number idle_w, limit_w;                  /* of the card */
	struct ft_number kernel_floor_s;                   /* the shortest kernel */
	struct ft_number launch_gap_s;    /* between dependent kernels of a stream */
	struct ft_number gemm_efficiency[FT_DTYPES];   /* where no table is near */
	struct ft_number gemm_layout[FT_HW_LAYOUTS];   /* time against forward */
	struct ft_number attention_efficiency[2];      /* forward, backward, of peak */
	struct ft_number sustained[FT_DTYPES];  /* rate of long runs / of short bursts */
	struct ft_number compute_beside_collective;    /* time factors while both run */
	struct ft_number memory_beside_collective;
	struct ft_number collective_beside_compute;
	struct ft_number copy_beside_gemm;             /* a low-priority copy's */
	struct ft_gemm_table gemm[FT_DTYPES][FT_HW_LAYOUTS];
	size_t n_attention, n_memory, n_collective;
	struct ft_attention_table *attention;
	struct ft_memory_curve *memory;
	struct ft_collective_table *collective;
	struct ft_number gemm_spread, attention_spread, memory_spread,
		collective_spread; /* held-out relative error, one standard deviation */
	const char *default_node, *default_stack;
	const struct ft_provenance *from;
};

struct ft_gpu *ft_gpu_load(const char *name, const struct ft_mark *at,
			   struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_gpu_free(struct ft_gpu *gpu);

/* ---- Node -------------------------------------------------------------- */

struct ft_node {
	const char *name, *title;
	int64_t gpus;              /* cards (or GB200 packages) */
	int64_t scale_up_gpus;     /* joined by the scale-up fabric: 8, or 72 */
	const char *scale_up;      /* nvlink, nvlink-no-nvls, xgmi, pcie */
	int64_t scale_up_links;    /* to each peer of a mesh; 0: switched */
	struct ft_number scale_up_bytes_per_s; /* a rank, one direction, all peers */
	struct ft_number scale_up_link_bytes_per_s; /* one pair in a mesh */
	struct ft_number pcie_bytes_per_s;     /* host and device */
	int64_t nics;
	struct ft_number nic_bytes_per_s;      /* each, one direction */
	struct ft_number host_factor;          /* host seconds / the reference's */
	struct ft_number power_w;              /* without the GPUs, at full load */
	const char *price_item;                /* of the price book */
	const char *default_fabric;
	const struct ft_provenance *from;
};

/* ---- Fabric: a recipe for any size -------------------------------------- */

enum ft_wiring {
	FT_WIRING_NONE, /* one node */
	FT_WIRING_RAIL, /* NIC i of every node to leaves of rail i */
	FT_WIRING_TOR,  /* all NICs of a node to the same leaf */
};

struct ft_fabric {
	const char *name, *title;
	enum ft_wiring wiring;
	int64_t radix;            /* ports of a switch, at port_bytes_per_s */
	int64_t planes;           /* parallel networks that share each NIC's speed */
	int64_t nics_per_node;    /* 0: as the node says */
	struct ft_number port_bytes_per_s;
	double oversubscription;  /* down / up at the leaf, 1: none */
	bool sharp;               /* reduction in the switches */
	bool adaptive;            /* adaptive routing; false: ECMP hashing */
	int64_t queue_pairs;      /* per connection, for ECMP */
	struct ft_number efficiency;      /* of a NIC's line rate that data reach */
	struct ft_number latency_s;       /* NIC to NIC through one leaf */
	struct ft_number hop_s;           /* each further switch */
	struct ft_number ring_step_s;     /* one step of an inter-node ring: lambda */
	const char *switch_item, *optic_leaf_item, *optic_node_item,
		*cable_node_item, *cable_leaf_item, *nic_item; /* of the price book */
	const struct ft_provenance *from;
};

/* ---- Topology ----------------------------------------------------------- */

/* A folded Clos of one, two or three tiers. With L leaves of u uplinks, radix k:
 * spines = the smallest divisor of u that is >= ceil(L u / k); three tiers:
 * spines = N/(k/2), cores = N/k. Source and vectors: tests/test_topology.c. */
struct ft_topology {
	int64_t tiers;            /* 0: one node, or no fabric */
	int64_t endpoints;        /* NIC ports */
	int64_t leaf, spine, core;
	int64_t leaf_down, leaf_up; /* ports in use of a full leaf */
	int64_t cables_node_leaf, cables_leaf_spine, cables_spine_core;
	int64_t transceivers;     /* module ends, twin-port modules counted once */
	int64_t nodes_per_leaf;   /* nodes whose NIC i share a leaf */
	int64_t nodes_per_pod;    /* nodes below one group of spines (3 tiers) */
	int64_t planes;
};

/* tiers 0: as few as it takes. nodes, NICs per node, extra leaf ports (UFM).
 * Too many endpoints for three tiers is an error. */
bool ft_topology_build(const struct ft_fabric *fabric, int64_t nodes,
		       int64_t nics_per_node, int64_t extra_ports,
		       struct ft_topology *topology, struct ft_error *err)
	__attribute__((warn_unused_result));

/* ---- Cluster: all of it -------------------------------------------------- */

struct ft_cluster {
	const struct ft_gpu *gpu;
	const struct ft_node *node;
	const struct ft_fabric *fabric;
	struct ft_topology topology;
	int64_t gpus;            /* cards */
	int64_t ranks, ranks_per_node;
	int64_t domain_ranks;    /* ranks joined by one scale-up fabric */
	int64_t nodes;           /* whole nodes, bought */
	int64_t nics_per_node;
	double nic_bytes_per_s;  /* of a rank: NICs of the node / its ranks */
	int64_t ufm_ports;
	struct ft_mark gpus_mark;
};

/* node: the `cluster` map of a scenario: gpu, gpus, node, fabric, ufm_ports. */
struct ft_cluster *ft_cluster_load(const struct node *node,
				   struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_cluster_free(struct ft_cluster *cluster);

#endif
