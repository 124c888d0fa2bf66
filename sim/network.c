/* sim/network.c - NICs, leaves and uplinks as links, a group's sends as flows */
#include "sim/network.h"

#include <math.h>

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include "base/arena.h"
#include "sim/share.h"

enum { MOST_NODES = 4096, MOST_PAIRS = 64 };

/* One rail of the fabric: with rail wiring they are alike but for their draws, so
 * one is laid out; with ToR wiring a node's NICs share a leaf and all are. */
struct layout {
	struct arena *mem;
	const struct ft_cluster *c;
	gsl_rng *rng;
	int64_t nodes, rails, per_leaf, leaves, uplinks;
	uint32_t *order;     /* [nodes] where the i-th node of the group stands */
	double line;         /* bytes/s of a NIC */
	struct share share;
};

static uint32_t nic(const struct layout *l, int64_t node, int64_t rail, bool down)
{
	return (uint32_t)((node * l->rails + rail) * 2 + down);
}

static uint32_t uplink(const struct layout *l, int64_t leaf, int64_t up, bool down)
{
	int64_t first = 2 * l->nodes * l->rails;

	return (uint32_t)(first + (leaf * l->uplinks + up) * 2 + down);
}

static int64_t leaf_of(const struct layout *l, int64_t node)
{
	return node / l->per_leaf;
}

/* A failed uplink has no capacity: ECMP passes it by (pick), adaptive routing loses
 * its part of the pool. */
static double *capacities(struct layout *l, size_t *n)
{
	const struct ft_imperfections *im = &l->c->imperfections;
	double port = l->c->fabric->port_bytes_per_s.value;
	double *cap;

	*n = (size_t)(2 * l->nodes * l->rails + 2 * l->leaves * l->uplinks);
	cap = ARENA_ARRAY(l->mem, *n, double);
	for (int64_t i = 0; i < l->nodes * l->rails; i++) {
		bool slow = gsl_rng_uniform(l->rng) < im->slow_nics_frac;

		cap[2 * i] = cap[2 * i + 1] =
			l->line * (slow ? im->slow_nic_rate_frac : 1);
	}
	for (int64_t i = 0; i < l->leaves * l->uplinks; i++) {
		bool failed = gsl_rng_uniform(l->rng) < im->failed_uplinks_frac;
		uint32_t at = uplink(l, i / l->uplinks, i % l->uplinks, false);

		cap[at] = cap[at + 1] = failed ? 0 : port;
	}
	return cap;
}

/* Adaptive routing: all uplinks of a leaf are one. */
static void pool(struct layout *l, double *cap)
{
	for (int64_t leaf = 0; leaf < l->leaves; leaf++)
		for (int down = 0; down < 2; down++) {
			double sum = 0;

			for (int64_t u = 0; u < l->uplinks; u++)
				sum += cap[uplink(l, leaf, u, down)];
			cap[uplink(l, leaf, 0, down)] = sum;
		}
}

/* ECMP routes around links that are down: hash over those that are up. */
static int64_t pick(struct layout *l, int64_t from, int64_t to)
{
	if (l->c->fabric->adaptive)
		return 0;
	for (int tries = 0; tries < 1000; tries++) {
		int64_t u = (int64_t)gsl_rng_uniform_int(l->rng,
				(unsigned long)l->uplinks);

		if (l->share.link[uplink(l, from, u, false)].capacity > 0 &&
		    l->share.link[uplink(l, to, u, true)].capacity > 0)
			return u;
	}
	return 0;
}

/* weight flows of line rate between two nodes, over one queue pair each. */
static void send(struct layout *l, int64_t from, int64_t to, int64_t rail,
		 double weight)
{
	int64_t a = leaf_of(l, from), b = leaf_of(l, to);
	int64_t pairs = l->c->fabric->adaptive || a == b ? 1 :
			l->c->fabric->queue_pairs;

	if (pairs > MOST_PAIRS)
		pairs = MOST_PAIRS;
	for (int64_t q = 0; q < pairs; q++) {
		uint32_t link[4] = { nic(l, from, rail, false),
				     nic(l, to, rail, true) };
		size_t hops = 2;

		if (a != b) {
			int64_t u = pick(l, a, b);

			link[hops++] = uplink(l, a, u, false);
			link[hops++] = uplink(l, b, u, true);
		}
		share_add(&l->share, link, hops, weight / (double)pairs,
			  INFINITY);
	}
}

static void ring(struct layout *l)
{
	for (int64_t r = 0; r < l->rails; r++)
		for (int64_t i = 0; i < l->nodes; i++)
			send(l, l->order[i], l->order[(i + 1) % l->nodes], r, 1);
}

/* To a handful of partners spread over the group, each with an equal part: what
 * the phases of an all-to-all average to. */
static void pairs(struct layout *l)
{
	int64_t partners = l->nodes - 1 < 8 ? l->nodes - 1 : 8;

	for (int64_t r = 0; r < l->rails; r++)
		for (int64_t i = 0; i < l->nodes; i++)
			for (int64_t k = 1; k <= partners; k++) {
				int64_t j = (i + k * l->nodes / (partners + 1)) %
					    l->nodes;

				if (j != i)
					send(l, l->order[i], l->order[j], r,
					     1.0 / (double)partners);
			}
}

/* A split flow is as slow as its slowest part: rate per weight, least of all. */
static double slowest(const struct layout *l)
{
	double least = 1;

	for (size_t f = 0; f < l->share.n_flows; f++) {
		const struct share_flow *x = &l->share.flow[f];
		double share = x->rate / (x->weight * l->line);

		if (share < least)
			least = share;
	}
	return least > 1e-3 ? least : 1e-3;
}

static void lay_out(struct layout *l)
{
	const struct ft_cluster *c = l->c;
	double *cap;
	size_t n;

	l->rails = c->fabric->wiring == FT_WIRING_TOR ? c->nics_per_node : 1;
	l->per_leaf = c->topology.nodes_per_leaf > 0 ? c->topology.nodes_per_leaf :
						      l->nodes;
	l->leaves = (l->nodes + l->per_leaf - 1) / l->per_leaf;
	l->uplinks = c->topology.leaf_up > 0 ? c->topology.leaf_up : 1;
	l->line = c->nic_bytes_per_s * (double)c->ranks_per_node /
		  (double)c->nics_per_node;
	l->order = ARENA_ARRAY(l->mem, (size_t)l->nodes, uint32_t);
	for (int64_t i = 0; i < l->nodes; i++)
		l->order[i] = (uint32_t)i;
	if (c->imperfections.scattered)
		gsl_ran_shuffle(l->rng, l->order, (size_t)l->nodes,
				sizeof(*l->order));
	cap = capacities(l, &n);
	if (c->fabric->adaptive)
		pool(l, cap);
	share_init(&l->share, l->mem, cap, n);
}

double network_share(const struct ft_cluster *c, int64_t nodes,
		     enum network_pattern pattern)
{
	struct arena mem = { 0 };
	struct layout l = { .mem = &mem, .c = c,
			    .nodes = nodes < MOST_NODES ? nodes : MOST_NODES };
	double least;

	if (nodes < 2)
		return 1;
	l.rng = gsl_rng_alloc(gsl_rng_mt19937);
	gsl_rng_set(l.rng, (unsigned long)c->imperfections.seed);
	lay_out(&l);
	if (pattern == NETWORK_RING)
		ring(&l);
	else
		pairs(&l);
	share_solve(&l.share);
	least = slowest(&l);
	gsl_rng_free(l.rng);
	arena_release(&mem);
	return least;
}
