/*
 * sim/algorithm.h - one table of the ways in which ranks run a collective
 *
 * A row has a name, when it can run (protocols, operations, a condition), what the
 * library's own prices say it takes (sim/tuner.h) and what our clock says (sim/across.h),
 * both in seconds and from the same constants of the library (struct ft_ccl). The chooser,
 * `collective --algorithm`, its error and its help all read this table: a new algorithm is
 * one row and one function.
 */
#ifndef SIM_ALGORITHM_H
#define SIM_ALGORITHM_H

#include <math.h>

#include "foretoken/sim.h"

/* What the library's search of a node found: channels and the speed of each, inside a node
 * and between nodes. channels 0: none. */
struct search {
	double channels, intra_bytes_per_s, inter_bytes_per_s;
};

/* A group of ranks and what it sees of machine and library. */
struct group {
	const struct ft_cluster *cluster;
	const struct ft_ccl *ccl;
	const struct ft_ccl_tuning *tuning;
	double ranks, per_domain, domains; /* n, g, k */
	double stride;
	double nic_bytes_per_s;	 /* of a rank's share of NICs that data reach */
	double bus_bytes_per_s;	 /* of a ring through one domain; 1e18 when g is 1 */
	double port_bytes_per_s; /* of a rank in its domain, all peers */
	double extra_s; /* of a hop between nodes, beyond the library's network */
	double peer_s; /* of an all-to-all, each rank of other domains, by the fabric */
	double kept_frac; /* of an all-to-all to other domains, what need not travel */
	double stretch;	  /* of a ring's step, against the library's network */
	bool sharp;	  /* the network reduces in its switches */
	bool mesh;	  /* each pair of a domain has links of its own */
	struct search ring, nvls; /* for the library's prices */
};

/* Bits of operations, and of protocols. */
enum {
	OF_REDUCE = 1 << FT_ALL_REDUCE,
	OF_GATHER = 1 << FT_ALL_GATHER | 1 << FT_REDUCE_SCATTER,
	OF_ALL = (1 << FT_COLLECTIVES) - 1,
	BY_SIMPLE = 1 << FT_SIMPLE,
	BY_ALL = (1 << FT_PROTOCOLS) - 1,
};

typedef double algorithm_time(const struct group *g, enum ft_protocol p,
			      enum ft_collective op, double bytes);

struct algorithm {
	const char *name, *what;
	unsigned ops, protocols;
	bool on_request; /* frameworks build it; no library chooses it */
	bool (*eligible)(const struct group *g, enum ft_protocol p,
			 enum ft_collective op); /* NULL: always */
	algorithm_time *library_s;		 /* NULL: the library has no price */
	algorithm_time *time_s;			 /* NULL: a profile's table tells */
	double (*nic_bytes)(const struct group *g, enum ft_collective op, double bytes);
};

extern const struct algorithm algorithms[];
extern const size_t n_algorithms;

/* A limit of the library; 0: none. */
static inline double at_most(double bytes_per_s, double most_bytes_per_s)
{
	return most_bytes_per_s > 0 ? fmin(bytes_per_s, most_bytes_per_s) : bytes_per_s;
}

/* Into the library's corrections by size, of 64 B, 128 B and so on. */
static inline int size_index(double bytes)
{
	return (int)fmin(FT_CCL_SIZES - 1, fmax(0, floor(log2(bytes / 64))));
}

/* What joins the ranks of the cluster's domains. */
struct ft_links links_of(const struct ft_cluster *cluster);

/* One cell of the table. algorithm NULL: nothing can run. */
struct choice {
	const struct algorithm *algorithm;
	enum ft_protocol protocol;
	double time_s; /* or price, by what was compared */
};

/* The cheapest of what can run and was asked for (names NULL: any), by our clock or by the
 * library's prices within its windows. */
struct choice choose_by_time(const struct group *g,
			     const struct ft_collective_call *call);
struct choice choose_by_library(const struct group *g,
				const struct ft_collective_call *call);

#endif
