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
#include "foretoken/hw_attention.h"

#ifdef __cplusplus
extern "C" {
#endif

struct node;

/* ---- GPU profile ------------------------------------------------------- */

/* What a matrix product would take by arithmetic alone; the measured rows say
 * how far that is off. The equation is in sim/gemm.c. */
struct ft_gemm_model {
	int64_t tile_m, tile_n;	      /* the largest tile, e.g. 128 x 256 */
	struct ft_number start_s;     /* before and after the main loop */
	struct ft_number tile_s;      /* per tile, in addition to products */
	struct ft_number wave_frac;   /* of an unfilled last wave that is lost */
	struct ft_number square_frac; /* rate of 128x128 tiles against the largest */
	struct ft_number narrow_frac; /* rate of 64-row tiles */
	struct ft_number memory_frac; /* of the memory bandwidth */
	struct ft_number sharpness;   /* p of (compute^p + memory^p)^(1/p) */
	struct ft_number grouped_sharpness; /* that of grouped products */
	struct ft_number split;		    /* cost of adding up split inner sums */
	struct ft_number noise;		    /* relative noise of the measured rows */
	struct ft_number distance[3];	    /* of rows in m, n, k: factors on squares */
	/* in fp32, groups of 64 rows at most in one kernel: of peak, in tiles of 32 and of 64 rows; 0: unknown */
	struct ft_number batched[2];
};

/* Measured products C[m,n] = A[m,k] B[k,n], whatever layer they came from. */
struct ft_gemm_row {
	double m, n, k;
	double time_s;
};

struct ft_gemm_table {
	size_t n_rows;
	struct ft_gemm_row *row;
	float scale[3]; /* (computed) square roots of the model's distance */
	float *log_m, *log_n, *log_k; /* log2 times scale, padded far away to 8 */
	enum ft_dtype
		dtype; /* measured in; bf16 and fp16 are one where their peaks are */
	const struct ft_gpu *on; /* measured on: this GPU or a kin of it */
	const struct ft_provenance *from;
	struct ft_rows_later *later; /* NULL: rows are there; else hw_rows.h */
};

/* Rows of tuners: of many kernels the best for each shape, timed in the tuner's way. They
 * say how time goes with the shape; time[format] is theirs against that of a framework's
 * product of the same shape (1 where the two were not compared). */
struct ft_gemm_tuned {
	size_t n_sources;
	const char **source; /* codes of the rows' source column */
	struct ft_number time[FT_DTYPES];
};

/* Kernels that work on rows as a whole (norms, softmax, losses) start and stream
 * at rates of each row length's own. */
struct ft_memory_row {
	double row_bytes;
	struct ft_number start_s, bytes_per_s;
};

/* Time of a memory-bound kernel that moves B bytes: start_s and B / bandwidth, which
 * saturates as B / (B + half_bytes); sim/memory_bound.c says how they add up. */
struct ft_memory_curve {
	const char *kernel; /* copy, rmsnorm ... ; "default" serves the rest */
	bool warm;	    /* its input was just written and is in the cache */
	struct ft_number start_s, bytes_per_s, half_bytes;
	struct ft_number step_s; /* of several in turn; 0: none waits */
	struct ft_number sharpness, row_sharpness; /* 1: sums; more: overlap */
	size_t n_rows;
	struct ft_memory_row *row; /* by rising length; none: all alike */
	struct ft_number traffic;  /* bytes moved per byte of the source buffer */
	const char *as; /* the curve that this was measured against; or NULL */
	struct ft_number as_bytes; /* of it, that a byte counts as */
	struct ft_number w;	   /* of the card for seconds; 0: as memory_frac says */
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
	const struct ft_gpu *on;
	const struct ft_provenance *from;
};

/* GPUs joined by links of their own, more between some than between others (MI250). */
enum { FT_MESH_RANKS = 8 };

struct ft_mesh {
	int n;
	int64_t links[FT_MESH_RANKS][FT_MESH_RANKS]; /* each way, symmetric */
};

/* Link-disjoint rings through the n members, the widest first; where no ring of direct
 * links exists, one through others. A ring carries a link's rate. */
int64_t ft_mesh_rings(const struct ft_mesh *mesh, const int *member, int n);

/* When each member sends as much to every other over the shortest ways: what a member
 * sends in all, in links' rates, when the fullest link is full. */
double ft_mesh_exchange(const struct ft_mesh *mesh, const int *member, int n);
/* The same when each sends to the one behind it, the last to the first. */
double ft_mesh_shift(const struct ft_mesh *mesh, const int *member, int n);
bool ft_mesh_connected(const struct ft_mesh *mesh);

/* Of a fabric in addition to its tables. A mesh joins each pair by a separate link: bus bandwidth
 * is (n-1) links; a switch gives all of it to any n; an irregular mesh as much as rings fit. */
struct ft_scale_up {
	const char *fabric;
	bool mesh;
	struct ft_number bus_bytes_per_s;  /* ring plateau of a rank (switch) */
	struct ft_number link_bytes_per_s; /* one pair, as protocols leave it */
	struct ft_number
		port_bytes_per_s; /* of a rank, one direction, where all this holds */
	const struct ft_mesh *pairs; /* links of an irregular mesh, or NULL */
	struct ft_number efficiency; /* of the links, at large sizes */
	struct ft_number start_s;    /* smallest all-reduce of n_full ranks */
	int64_t n_full;		     /* ranks of a full node */
	int64_t nvls_from;	     /* all-reduce in the switch from n; 0 never */
};

struct ft_gpu {
	struct ft_digest digest; /* of its files */
	const char *name, *vendor, *title;
	int64_t ranks_per_gpu;
	struct ft_number memory_bytes; /* of a rank, for tensors: without a context */
	struct ft_number memory_bytes_per_s;	     /* of a rank */
	struct ft_number peak_flop_per_s[FT_DTYPES]; /* of a rank; 0: cannot */
	int64_t compute_units;			     /* of a rank */
	struct ft_number idle_w, limit_w, rated_w;   /* of the card; rated: uncapped */
	struct ft_number attention_clock; /* in bursts; products 1; 0: as they */
	struct ft_number kernel_floor_s;  /* the shortest kernel */
	struct ft_number launch_gap_s;	  /* between dependent kernels of a stream */
	struct ft_gemm_model gemm_model;
	struct ft_number gemm_efficiency[FT_DTYPES]; /* of peak, large products */
	struct ft_number gemm_layout[FT_DTYPES][FT_LAYOUTS]; /* time against forward */
	struct ft_number gemm_accumulate; /* extra time factor of adding to fp32 */
	struct ft_number gemm_fast; /* of fp8 whose sums are not widened on the way */
	struct ft_number gemm_unaligned; /* rate of rows not of 16 bytes' multiples */
	struct ft_number gemm_odd;	 /* and not of 4 bytes' either */
	struct ft_number gemm_grouped, gemm_mxfp8; /* of one product's; fp8's time */
	struct ft_gemm_tuned gemm_tuned;
	struct ft_number sustained[FT_DTYPES]; /* rate of long runs / of short bursts */
	double sustained_at_w[FT_DTYPES]; /* under this limit of the card; 0: its own */
	struct ft_attention_model attention_model;
	/* What impl NULL means, and "plain": without a vendor's library. */
	struct ft_gathered_model gathered;
	const char *attention_impl, *attention_plain;
	struct ft_number collective_units, collective_units_per_nic; /* held by it */
	struct ft_number
		message_units; /* by one that waits, in a domain; 0: not known */
	bool persistent_products, any_layout;	   /* as foretoken-gpu(5) says */
	struct ft_number memory_beside_collective, /* time factors while both run */
		collective_beside_compute, collective_beside_memory, copy_beside_gemm,
		copy_beside_memory, memory_beside_copy;
	struct ft_gemm_table gemm[FT_DTYPES]; /* n_rows 0: none measured */
	size_t n_attention, n_impls, n_kernels, n_memory, n_collective, n_scale_ups;
	struct ft_attention_table *attention;
	struct ft_attention_impl *impl;
	struct ft_attention_kernels *kernels;
	struct ft_memory_curve *memory;
	struct ft_collective_table *collective;
	struct ft_scale_up *scale_up;
	struct ft_number gemm_spread, attention_spread, memory_spread,
		collective_spread; /* held-out relative error, one standard deviation */
	const char *default_node;
	const char *ccl_generation; /* what communication libraries tune for */
	const struct ft_provenance *from;
};

/* Measured rows of a profile; reading them takes most of the time of loading one. */
enum {
	FT_GPU_GEMM_ROWS = 1,
	FT_GPU_ATTENTION_ROWS = 2,
	FT_GPU_COLLECTIVE_ROWS = 4,
	FT_GPU_ALL_ROWS = 7,
	FT_GPU_ROWS_LATER = 8, /* kernels' when they are asked for: hw_rows.h */
};

/* name: of hw/gpus/NAME.yaml, or a path. */
struct ft_gpu *ft_gpu_load(const char *name, const struct ft_mark *at,
			   struct ft_error *err) __attribute__((warn_unused_result));

/* The same of a scenario's value, a name, a path, or a map {extends: NAME, key: value}, with
 * some rows; of families left out, arithmetic answers. What extends another takes its rows by their
 * ratio to arithmetic, and its memory-bound curves by memory bandwidth, marked derived. */
struct ft_gpu *ft_gpu_load_value(const struct node *value, int rows,
				 struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_gpu_free(struct ft_gpu *gpu);

/* The curve of its name, else of what stands before the name's last underscore, else `default`. */
const struct ft_memory_curve *ft_gpu_memory_curve(const struct ft_gpu *gpu,
						  const char *kernel, bool warm);

/* What a product's time in a row of this source (NULL: none) is against that of a
 * framework's product: gemm_tuned.time for tuners, else 1. */
double ft_gpu_source_factor(const struct ft_gpu *gpu, const char *source,
			    enum ft_dtype dtype);

/* ---- Node -------------------------------------------------------------- */

struct ft_node {
	struct ft_digest digest;	/* of its files */
	const char *name, *title, *gpu; /* gpu: that it is sold with; "": any */
	int64_t gpus, scale_up_gpus;	/* joined by the scale-up fabric: 8, or 72 */
	const char *scale_up;		/* nvlink, nvlink-no-nvls, xgmi, pcie */
	const char *scale_up_switch; /* bought apart, scale_up_switches a domain; "" */
	const char *dpu_item;	     /* dpus in each node; "": none */
	int64_t scale_up_switches, dpus;
	struct ft_number scale_up_bytes_per_s; /* a rank, one direction, all peers */
	int64_t nics, nic_ports_per_optic, nic_links; /* cages; a NIC's, in planes */
	struct ft_number nic_bytes_per_s;	      /* each, one direction */
	struct ft_number host_factor;		/* host seconds / the reference's */
	struct ft_number host_link_bytes_per_s; /* a rank's, each way; 0: unknown */
	struct ft_number
		host_memory_bytes_per_s;    /* of all ranks together; 0: unknown */
	struct ft_number host_memory_bytes; /* what it holds; 0: unknown */
	int64_t host_sockets; /* among which it and the GPUs are divided */
	struct ft_number gpu_speed_spread_frac; /* of its GPUs: standard deviation */
	struct ft_number power_w;		/* without the GPUs, at full load */
	struct ft_number rack_units;		/* 0: as hosts without a line */
	const char *price_item;			/* of the price book */
	int64_t nodes_per_price_item;		/* 18 when a rack is bought whole */
	const char *default_fabric;
	const struct ft_provenance *from;
};

struct ft_node *ft_node_load(const char *name, const struct ft_mark *at,
			     struct ft_error *err) __attribute__((warn_unused_result));

/* The same of a scenario's value: a name, a path, or a map {extends: NAME, key: value}. */
struct ft_node *ft_node_load_value(const struct node *value, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_node_free(struct ft_node *node);
/* So much state, of what its memory holds. 0, where that is not known. */
double ft_node_memory_frac(const struct ft_node *node, double bytes);

/* Is it the word for what joins the GPUs of a node, as nvlink or xgmi? */
bool ft_is_scale_up(const char *fabric);

/* ---- Fabric: a recipe for any size -------------------------------------- */

enum ft_wiring {
	FT_WIRING_NONE,	     /* one node */
	FT_WIRING_RAIL,	     /* NIC i of every node to leaves of rail i */
	FT_WIRING_TOR,	     /* all NICs of a node to the same leaf */
	FT_WIRING_GRAPH,     /* as its graph says */
	FT_WIRING_RAIL_ONLY, /* rails, each a network of its own: nothing joins them */
};

/* A network drawn by hand. Between two switches the shortest ways are taken, by hash
 * over those of equal length, weighted by cables; cables between two are pooled. */
enum { FT_GRAPH_HOPS = 6, FT_UNREACHED = 255 };

struct ft_attach { /* NICs first..last of nodes first..last */
	int64_t first_node, last_node, first_nic, last_nic;
	uint32_t to; /* switch */
};

struct ft_cable {
	uint32_t a, b; /* switches */
	int64_t count;
	double bytes_per_s; /* each, one direction */
};

struct ft_switch_graph {
	size_t n_switches, n_attaches, n_cables;
	const char **name;
	struct ft_attach *attach;
	struct ft_cable *cable;
	uint8_t *distance; /* (computed) [n_switches^2] cables; FT_UNREACHED */
	int diameter;	   /* (computed) among switches with NICs */
};

/* The switch of a node's NIC; -1: none. */
int64_t ft_graph_switch_of(const struct ft_switch_graph *graph, int64_t node,
			   int64_t nic);

struct ft_fabric {
	struct ft_digest digest; /* of its files */
	const char *name, *title;
	enum ft_wiring wiring;
	int64_t radix;	       /* ports of a switch, at port_bytes_per_s, once split */
	int64_t upper_radix;   /* the same of switches above the leaves; 0: as leaves */
	int64_t port_split;    /* ports made of one of the switch */
	int64_t planes;	       /* parallel networks that share each NIC's speed */
	bool planes_given;     /* by the file; else a node's NICs may take several */
	int64_t nics_per_node; /* 0: as the node says */
	struct ft_number port_bytes_per_s;
	double oversubscription;      /* down / up at the leaf, 1: none */
	double core_oversubscription; /* the same below the top, of three or four tiers */
	int64_t tiers;		      /* 0: as few as it takes, at most 4 */
	int64_t rails_per_leaf;	      /* NICs of a node that share a leaf (rail) */
	int64_t planned_nodes;	      /* spines and above are bought for so many; 0 */
	int64_t spare_spines;	      /* of each plane, beside those needed */
	int64_t ports_per_optic;      /* of a switch cage's module, once split */
	int64_t nic_ports_per_optic;	     /* as the node says, once in a cluster */
	bool copper_node, copper_leaf;	     /* DAC to the leaf, from it: no optics */
	bool sharp;			     /* reduction in the switches */
	const struct ft_switch_graph *graph; /* of FT_WIRING_GRAPH */
	bool adaptive;			     /* adaptive routing; false: ECMP hashing */
	bool scheduled; /* cells by credit (DDC): adaptive, and spines as ports need */
	int64_t queue_pairs;	      /* per connection, for ECMP */
	struct ft_number efficiency;  /* of a NIC's line rate that data reach */
	struct ft_number latency_s;   /* NIC to NIC through one leaf */
	struct ft_number hop_s;	      /* each further switch */
	struct ft_number ring_step_s; /* one step of an inter-node ring: lambda */
	struct ft_number rings_from;  /* the fabric's own tuner runs all_reduce as
		a ring from this many bytes per rank on, else as a tree; 0: no tuner */
	int64_t rings_ranks;	      /* the most ranks that tuner decides for */
	struct ft_number
		exchange_peer_s; /* of an all-to-all, each rank of other domains */
	const char *switch_item, *optic_leaf_item, *optic_node_item, *cable_node_item,
		*cable_leaf_item, *nic_item; /* of the price book;
		"" when there is none */
	const char *upper_item, *optics;     /* above the leaves; "generic", "nvidia" */
	const struct ft_provenance *from;
};

struct ft_fabric *ft_fabric_load(const char *name, const struct ft_mark *at,
				 struct ft_error *err)
	__attribute__((warn_unused_result));

/* The same of a scenario's value: a name, a path, or a map {extends: NAME, key: value}. */
struct ft_fabric *ft_fabric_load_value(const struct node *value, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_fabric_free(struct ft_fabric *fabric);

/* ---- Topology ----------------------------------------------------------- */

/* A folded Clos of one to four tiers. With L leaves of u uplinks, radix k:
 * spines = the smallest divisor of u that is >= ceil(L u / k), or that quotient where
 * the divisor would be over a third more; three tiers: spines = L u / (k/2), cores =
 * L u / k; four: spines and cores L u / (k/2), tops L u / k. u is the fullest leaf's
 * ports down over the oversubscription, or more where that takes fewer spines. One
 * switch for all is one tier. Planes are networks of their own: switches are counted
 * over all planes, and one cable carries a NIC's link to each plane. Source and
 * vectors: tests/test_topology.c. */
struct ft_topology {
	int64_t tiers;				     /* 0: one node, or no fabric */
	int64_t endpoints;			     /* NIC ports */
	int64_t leaf, spine, core, top, leaf_spines; /* leaf_spines: what one reaches */
	int64_t leaf_down, leaf_up;		     /* ports in use of a full leaf */
	int64_t cables_node_leaf, cables_leaf_spine, cables_spine_core, cables_core_top;
	int64_t transceivers; /* module ends, a twin-port module and a NIC's once */
	int64_t optics_node, optics_switch; /* transceivers in NICs, in switches: */
	int64_t optics_leaf_node, optics_leaf_spine, optics_spine_core, optics_core_top;
	int64_t nodes_per_leaf; /* nodes whose NIC i share a leaf */
	int64_t nodes_per_pod; /* nodes below one group of spines; of cores in 4 tiers */
	int64_t planes;
};

/* extra_ports: of leaves (UFM). More endpoints than all tiers can join is an error. */
bool ft_topology_build(const struct ft_fabric *fabric, int64_t nodes,
		       int64_t nics_per_node, int64_t extra_ports,
		       struct ft_topology *topology, struct ft_error *err)
	__attribute__((warn_unused_result));
int64_t ft_topology_spines_lost(const struct ft_topology *t, int64_t failed);

/* ---- Parts: all that a cluster consists of, line by line ------------------ */

enum ft_part_class {
	FT_PART_SERVER,	   /* GPUs and hosts, or racks of them */
	FT_PART_NETWORK,   /* back end: what training traffic runs over */
	FT_PART_FRONT_END, /* network of storage and users */
	FT_PART_STORAGE,
	FT_PART_MANAGEMENT, /* and out-of-band network */
	FT_PART_FACILITY,   /* racks and their power */
	FT_PART_SERVICE,    /* integration */
	FT_PART_SPARE,	    /* servers */
	FT_PART_CLASSES
};
const char *ft_part_class_name(enum ft_part_class part_class); /* "server" ... */
/* Physical facts of one part: hw/parts/ files, or those of GPU and node. */
struct ft_part {
	const char *item, *title;
	enum ft_part_class part_class;
	struct ft_number max_w, typical_frac; /* at full load; of it, in a step */
	struct ft_number memory_frac, waiting_frac, clock_exponent,
		limit_window_s;	     /* of a GPU: cost.h, sim/clocks.c */
	struct ft_number mttf_years; /* to a failure that stops a job; 0: none does */
	struct ft_number rack_units, life_years, carbon_kg;
	struct ft_number reach_m, bytes_per_s; /* of optics: of all their ports */
	const char *longer, *slower, *twin; /* reach; half the rate; twice the ports */
	bool takes_modules, own_ends;	    /* of a cable; neither: not known */
};
struct ft_part_line {
	const char *item, *role; /* what price books call it; "leaf switch" */
	enum ft_part_class part_class;
	int64_t count, idle; /* idle: of it, unused GPUs' */
	bool included, gpu;  /* in another line's price; power is by what GPUs do */
	const struct ft_part *part; /* NULL: hw/parts does not know the item */
};

/* Capital, power, failures, racks and carbon are sums over this one table. */
struct ft_parts {
	struct ft_digest digest;    /* of its files */
	const char *site, *unknown; /* unknown: the first item without facts; NULL */
	size_t n;
	const struct ft_part_line *line;
	int64_t spare_nodes, racks; /* racks: those of rack-scale systems included */
};

/* Of the compute network; modules slower than a NIC are one for each of its planes. */
int64_t ft_parts_modules(const struct ft_parts *parts);
double ft_parts_w(const struct ft_parts *parts); /* full load; no GPUs, spares */
double ft_parts_typical_w(const struct ft_parts *parts); /* of the same, in a step */
double ft_parts_gpus_w(const struct ft_parts *parts);	 /* at their limits */
const struct ft_part *ft_parts_gpu(const struct ft_parts *parts); /* every cluster's */
double ft_parts_spares_w(const struct ft_parts *parts);		  /* at full load */
double ft_parts_failures_per_hour(const struct ft_parts *parts, enum ft_part_class of);
double ft_parts_job_failures_per_hour(const struct ft_parts *of); /* that stop a job */
double ft_parts_rack_units(const struct ft_parts *parts);
double ft_parts_carbon_kg(const struct ft_parts *parts);

/* ---- Cluster: all of it -------------------------------------------------- */

/* What real clusters are not: the `imperfections` map of a cluster. Random draws
 * come from the seed alone. */
struct ft_slow_gpu {
	int64_t gpu;	   /* by its number in the cluster, from 0 */
	double speed_frac; /* of its kernels' speed */
};

struct ft_imperfections {
	bool given;
	uint64_t seed;
	bool scattered;		    /* placement: ranks' nodes in random order */
	double failed_uplinks_frac; /* of leaf-spine links, at random */
	int64_t failed_spines; /* switches; each takes its part of its leaves' links */
	double slow_nics_frac; /* of NICs, at random, */
	double slow_nic_rate_frac;    /* run at this share of their rate */
	double gpu_speed_spread_frac; /* standard deviation of GPUs' speed */
	size_t n_slow_gpus;
	struct ft_slow_gpu *slow_gpu; /* stragglers, by name */
};

struct ft_cluster {
	const struct ft_gpu *gpu;
	const struct ft_node *node;
	const struct ft_fabric *fabric;
	struct ft_topology topology;
	int64_t gpus, ranks, ranks_per_node; /* gpus: cards */
	int64_t domain_ranks;		     /* ranks joined by one scale-up fabric */
	int64_t nodes;			     /* whole nodes, bought */
	int64_t nics_per_node;
	double nic_bytes_per_s; /* of a rank: NICs of the node / its ranks */
	int64_t ufm_ports;
	struct ft_imperfections imperfections;
	const struct ft_parts *parts;
	struct ft_mark gpus_mark;
};

/* node: the `cluster` map of a scenario: gpu, gpus, node, fabric, ufm_ports,
 * optics, site, imperfections. */
struct ft_cluster *ft_cluster_load(const struct node *node, struct ft_error *err)
	__attribute__((warn_unused_result));

/* The same with some of the GPU's rows: FT_GPU_COLLECTIVE_ROWS where no kernel is asked
 * for. */
struct ft_cluster *ft_cluster_load_rows(const struct node *node, int rows,
					struct ft_error *err)
	__attribute__((warn_unused_result));
/* The same with the GPU of another, whose `gpu`, `site` and rows are said in the same words and
 * which is freed later: a profile is most of a cluster. NULL: with one of its own. */
struct ft_cluster *ft_cluster_load_like(const struct node *node, int rows,
					const struct ft_cluster *other,
					struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_cluster_free(struct ft_cluster *cluster);

#ifdef __cplusplus
}
#endif
#endif
