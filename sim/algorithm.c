/* sim/algorithm.c - the table of algorithms, and the cheapest of its rows */
#include "sim/algorithm.h"

#include <math.h>
#include <string.h>

#include "sim/across.h"
#include "sim/tuner.h"

/* ---- when a row can run ------------------------------------------------------ */

static bool across(const struct group *g)
{
	return g->domains > 1;
}

static bool ring_runs(const struct group *g, enum ft_protocol p, enum ft_collective op)
{
	if (op == FT_ALL_TO_ALL || op == FT_SENDRECV)
		return false;
	if (op == FT_BROADCAST)
		return p == FT_SIMPLE;
	return g->tuning->ring.share_frac[p] > 0;
}

static bool tree_runs(const struct group *g, enum ft_protocol p, enum ft_collective op)
{
	const struct ft_ccl_tree *t = &g->tuning->tree;

	(void)op;
	return t->share_frac[p] > 0 &&
	       (across(g) || p != FT_SIMPLE || t->simple_inside);
}

static bool nvls_runs(const struct group *g, enum ft_protocol p, enum ft_collective op)
{
	(void)p;
	(void)op;
	return !across(g) && !g->mesh && g->ccl->nvls &&
	       g->tuning->nvls.share_frac > 0 && g->nvls.channels >= 2;
}

static bool nvls_tree_runs(const struct group *g, enum ft_protocol p,
			   enum ft_collective op)
{
	(void)p;
	(void)op;
	return across(g) && g->ccl->nvls && g->tuning->nvls.share_frac > 0 &&
	       g->tuning->nvls_tree.efficiency_frac > 0 && g->nvls.channels >= 2;
}

static bool sharp_runs(const struct group *g, enum ft_protocol p, enum ft_collective op)
{
	(void)p;
	(void)op;
	return across(g) && g->sharp && g->tuning->sharp.hop_net_s > 0;
}

static bool pat_runs(const struct group *g, enum ft_protocol p, enum ft_collective op)
{
	(void)p;
	(void)op;
	return across(g) && g->ranks == g->domains && g->tuning->pat.share_frac > 0;
}

/* Across domains with as many ranks in each, as calls want that have a rank of each domain. */
static bool even_across_runs(const struct group *g, enum ft_protocol p,
			     enum ft_collective op)
{
	(void)p;
	(void)op;
	return across(g) && g->ranks == g->domains * g->per_domain;
}

/* ---- what a NIC carries ------------------------------------------------------- */

static double nic_of_wire(const struct group *g, enum ft_collective op, double bytes)
{
	return bytes * ft_collective_bus_factor(op, (int64_t)g->ranks) / g->per_domain;
}

/* Reduced in the network, once each way; gathered parts of other domains. */
static double nic_of_sharp(const struct group *g, enum ft_collective op, double bytes)
{
	return bytes / g->per_domain *
	       (op == FT_ALL_REDUCE ? 1 : (g->ranks - g->per_domain) / g->ranks);
}

static double nic_of_domains(const struct group *g, enum ft_collective op, double bytes)
{
	return bytes / g->per_domain *
	       ft_collective_bus_factor(op, (int64_t)g->domains);
}

static double nic_of_pairs(const struct group *g, enum ft_collective op, double bytes)
{
	return op == FT_SENDRECV ? bytes :
				   bytes * (g->ranks - g->per_domain) / g->ranks;
}

/* ---- the table ------------------------------------------------------------------ */

const struct algorithm algorithms[] = {
	{ .name = "ring",
	  .what = "each rank passes on to the next",
	  .ops = OF_ALL,
	  .protocols = BY_ALL,
	  .eligible = ring_runs,
	  .library_s = tuner_ring_s,
	  .time_s = across_ring_s,
	  .nic_bytes = nic_of_wire },
	{ .name = "tree",
	  .what = "up and down two binary trees of nodes",
	  .ops = OF_REDUCE,
	  .protocols = BY_ALL,
	  .eligible = tree_runs,
	  .library_s = tuner_tree_s,
	  .time_s = across_tree_s,
	  .nic_bytes = nic_of_wire },
	{ .name = "nvls",
	  .what = "reduced in the NVLink switch of one domain",
	  .ops = OF_REDUCE,
	  .protocols = BY_SIMPLE,
	  .eligible = nvls_runs,
	  .library_s = tuner_nvls_s },
	{ .name = "nvlstree",
	  .what = "reduced in each NVLink switch, trees between them",
	  .ops = OF_REDUCE,
	  .protocols = BY_SIMPLE,
	  .eligible = nvls_tree_runs,
	  .library_s = tuner_nvls_tree_s,
	  .time_s = across_nvls_tree_s,
	  .nic_bytes = nic_of_wire },
	{ .name = "sharp",
	  .what = "reduced or gathered in the switches of the network",
	  .ops = OF_REDUCE | OF_GATHER,
	  .protocols = BY_SIMPLE,
	  .eligible = sharp_runs,
	  .library_s = tuner_sharp_s,
	  .time_s = across_sharp_s,
	  .nic_bytes = nic_of_sharp },
	{ .name = "pat",
	  .what = "parallel aggregated trees, one rank a domain",
	  .ops = OF_GATHER,
	  .protocols = BY_SIMPLE,
	  .eligible = pat_runs,
	  .library_s = tuner_pat_s,
	  .time_s = across_pat_s,
	  .nic_bytes = nic_of_wire },
	{ .name = "hierarchical",
	  .what = "three calls of a framework: inside, across, inside",
	  .ops = OF_REDUCE | OF_GATHER,
	  .protocols = BY_SIMPLE,
	  .on_request = true,
	  .eligible = even_across_runs,
	  .time_s = across_hierarchical_s,
	  .nic_bytes = nic_of_domains },
	{ .name = "direct",
	  .what = "each rank to its peers",
	  .ops = 1 << FT_ALL_TO_ALL | 1 << FT_SENDRECV,
	  .protocols = BY_SIMPLE,
	  .time_s = across_direct_s,
	  .nic_bytes = nic_of_pairs },
};

const size_t n_algorithms = sizeof(algorithms) / sizeof(*algorithms);

const char *ft_collective_algorithm(size_t i, const char **what)
{
	if (i >= n_algorithms)
		return NULL;
	*what = algorithms[i].what;
	return algorithms[i].name;
}

/* ---- the cheapest --------------------------------------------------------------- */

static bool wanted(const char *name, const char *asked)
{
	return !asked || !strcmp(name, asked);
}

static bool can_run(const struct group *g, const struct algorithm *a,
		    enum ft_protocol p, const struct ft_collective_call *call)
{
	if (!(a->ops & 1u << call->op) || !(a->protocols & 1u << p))
		return false;
	if (!wanted(a->name, call->algorithm) ||
	    !wanted(ft_protocol_name(p), call->protocol))
		return false;
	if (a->on_request && !call->algorithm)
		return false;
	return !a->eligible || a->eligible(g, p, call->op);
}

static struct choice cheapest(const struct group *g,
			      const struct ft_collective_call *call, bool library)
{
	struct choice best = { NULL, FT_SIMPLE, INFINITY };

	for (size_t i = 0; i < n_algorithms; i++)
		for (int p = 0; p < FT_PROTOCOLS; p++) {
			const struct algorithm *a = &algorithms[i];
			enum ft_protocol by = (enum ft_protocol)p;
			algorithm_time *price = library ? a->library_s : a->time_s;
			double s;

			if (!price || !can_run(g, a, by, call))
				continue;
			s = price(g, by, call->op, call->bytes);
			if (s < best.time_s)
				best = (struct choice){ a, by, s };
		}
	return best;
}

/* Where neither prices nor laws compare: the first row that can run. */
static struct choice first(const struct group *g, const struct ft_collective_call *call)
{
	for (size_t i = 0; i < n_algorithms; i++)
		for (int p = FT_SIMPLE; p >= 0; p--)
			if (can_run(g, &algorithms[i], (enum ft_protocol)p, call))
				return (struct choice){ &algorithms[i],
							(enum ft_protocol)p, 0 };
	return (struct choice){ NULL, FT_SIMPLE, INFINITY };
}

struct choice choose_by_time(const struct group *g,
			     const struct ft_collective_call *call)
{
	return cheapest(g, call, false);
}

/* The library prices all pairs; its windows then override the protocol alone. */
struct choice choose_by_library(const struct group *g,
				const struct ft_collective_call *call)
{
	struct choice best = cheapest(g, call, true);
	int fixed;

	if (!best.algorithm)
		return g->domains > 1 ? cheapest(g, call, false) : first(g, call);
	fixed = tuner_window(g, call->op, call->bytes);
	if (fixed >= 0 && can_run(g, best.algorithm, (enum ft_protocol)fixed, call))
		best.protocol = (enum ft_protocol)fixed;
	return best;
}
