/*
 * hw/topology.c - how many switches and cables a recipe takes at a given size
 *
 * One plane is a folded Clos. The divisor rule for spines reproduces every row
 * of NVIDIA's published SuperPOD tables (tests/test_topology.c): the uplinks of
 * a leaf spread evenly over the spines, so their number divides the uplinks.
 */
#include <assert.h>
#include <string.h>

#include "foretoken/hw.h"
#include "hw/graph.h"

/* One plane on its way to a topology. */
struct clos {
	int64_t radix;
	int64_t ends;		/* leaf ports in use: NICs and extra ones */
	int64_t leaf, down, up; /* down, up: of the fullest leaf */
	int64_t spine, core, to_core;
	int64_t nodes_per_leaf, nodes_per_pod;
	int tiers;
};

static int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* Ports down of a leaf whose ratio down : up is at most o. */
static int64_t ports_down(int64_t radix, double o)
{
	return (int64_t)((double)radix * o / (o + 1) + 1e-9);
}

/* The smallest divisor of n that is >= least; 0 when least > n. */
static int64_t divisor_from(int64_t n, int64_t least)
{
	for (int64_t i = least; i <= n; i++)
		if (n % i == 0)
			return i;
	return 0;
}

/* Spines of two tiers; 0 when the leaves are too many for them. */
static int64_t spines_for(int64_t leaf, int64_t up, int64_t radix)
{
	return divisor_from(up, ceil_div(leaf * up, radix));
}

/* Uplinks: as the oversubscription asks, more where spines are saved by it. */
static void choose_uplinks(struct clos *c, double oversubscription)
{
	int64_t least = (int64_t)((double)c->down / oversubscription + 1 - 1e-9);
	int64_t most = c->radix - c->down, best = 0;

	if (least > most)
		least = most;
	for (int64_t up = least; up <= most; up++) {
		int64_t spine = spines_for(c->leaf, up, c->radix);

		if (spine && (!best || spine < best)) {
			best = spine;
			c->up = up;
		}
	}
	c->spine = best;
}

/* Leaves of two or three tiers: a rail has its own, or a group of nodes. */
static bool set_leaves(const struct ft_fabric *fabric, int64_t nodes, int64_t nics,
		       struct clos *c, struct ft_error *err)
{
	int64_t most = ports_down(c->radix, fabric->oversubscription);
	bool rail = fabric->wiring == FT_WIRING_RAIL;
	int64_t per_leaf = rail ? most : most / nics;
	int64_t wide = rail ? nics : 1; /* leaves side by side */
	int64_t groups; /* of nodes that share leaves, as even as possible */

	if (per_leaf < 1)
		return ft_fail(err, NULL,
			       "fabric %s: %lld NICs of a node do not fit a leaf "
			       "of %lld ports down",
			       fabric->name, (long long)nics, (long long)most);
	groups = ceil_div(nodes, per_leaf);
	c->nodes_per_leaf = ceil_div(nodes, groups);
	c->leaf = wide * groups;
	c->down = c->nodes_per_leaf * (rail ? 1 : nics);
	/* Extra ports go where there is room; the fullest leaf may grow. */
	if (c->leaf * c->down < c->ends)
		c->down = ceil_div(c->ends, c->leaf);
	if (c->down > most) {
		c->down = most;
		c->leaf = ceil_div(c->ends, most);
	}
	return true;
}

/* Three tiers: pods of (k/2)^2 leaf uplinks, spines half down, half up. */
static bool set_core(const struct ft_fabric *fabric, int64_t nics, struct clos *c)
{
	double o = fabric->core_oversubscription;
	int64_t half = c->radix / 2;
	int64_t down = ports_down(c->radix, o), up = c->radix - down;
	int64_t links;

	c->up = (int64_t)((double)c->down / fabric->oversubscription + 1 - 1e-9);
	if (c->up > c->radix - c->down)
		c->up = c->radix - c->down;
	links = c->leaf * c->up;
	if (links > half * half * c->radix)
		return false;
	c->spine = ceil_div(links, down);
	c->to_core = o > 1 ? c->spine * up : links;
	c->core = ceil_div(c->to_core, c->radix);
	c->nodes_per_pod = c->down * half / nics;
	return true;
}

static bool set_plane(const struct ft_fabric *fabric, int64_t nodes, int64_t nics,
		      int64_t extra, struct clos *c, struct ft_error *err)
{
	int64_t most = fabric->tiers ? fabric->tiers : 3;
	int64_t least = fabric->tiers;

	c->radix = fabric->radix;
	c->ends = nodes * nics + extra;
	if (c->ends <= c->radix && least < 2) {
		c->tiers = 1;
		c->leaf = 1;
		c->down = c->ends;
		c->nodes_per_leaf = c->nodes_per_pod = nodes;
		return true;
	}
	if (!set_leaves(fabric, nodes, nics, c, err))
		return false;
	if (most >= 2 && least < 3)
		choose_uplinks(c, fabric->oversubscription);
	if (c->spine) {
		c->tiers = 2;
		c->nodes_per_pod = nodes;
		return true;
	}
	if (most >= 3 && set_core(fabric, nics, c)) {
		c->tiers = 3;
		return true;
	}
	return ft_fail(err, NULL,
		       "fabric %s: %lld endpoints do not fit %lld tiers of "
		       "switches of %lld ports",
		       fabric->name, (long long)c->ends, (long long)most,
		       (long long)c->radix);
}

/* Modules: NIC ends in NIC cages, all others in switch cages, several ports to
 * a module. Copper has none. */
static void count_optics(const struct ft_fabric *fabric, int64_t endpoints,
			 struct ft_topology *t)
{
	int64_t per = fabric->ports_per_optic;
	int64_t at_leaf = fabric->copper_node ? 0 : t->cables_node_leaf;
	int64_t leaf_spine = fabric->copper_leaf ? 0 : t->cables_leaf_spine;

	t->optics_node = fabric->copper_node ?
				 0 :
				 ceil_div(endpoints, fabric->nic_ports_per_optic);
	t->optics_switch = ceil_div(t->planes * at_leaf, per) +
			   ceil_div(t->planes * 2 * leaf_spine, per) +
			   ceil_div(t->planes * 2 * t->cables_spine_core, per);
	t->transceivers = t->optics_node + t->optics_switch;
}

bool ft_topology_build(const struct ft_fabric *fabric, int64_t nodes,
		       int64_t nics_per_node, int64_t extra_ports,
		       struct ft_topology *topology, struct ft_error *err)
{
	int64_t nics = fabric->nics_per_node ? fabric->nics_per_node : nics_per_node;
	struct clos c = { 0 };

	assert(nodes > 0 && nics_per_node > 0 && extra_ports >= 0);
	*topology = (struct ft_topology){ .planes = fabric->planes };
	topology->nodes_per_leaf = topology->nodes_per_pod = nodes;
	if (nodes == 1 || fabric->wiring == FT_WIRING_NONE)
		return true;
	if (fabric->wiring == FT_WIRING_GRAPH) {
		if (!graph_topology(fabric, nodes, nics, topology, err))
			return false;
		count_optics(fabric, nodes * nics, topology);
		return true;
	}
	if (!set_plane(fabric, nodes, nics, extra_ports, &c, err))
		return false;
	topology->tiers = c.tiers;
	topology->endpoints = nodes * nics;
	topology->leaf = c.leaf * fabric->planes;
	topology->spine = c.spine * fabric->planes;
	topology->core = c.core * fabric->planes;
	topology->leaf_down = c.down;
	topology->leaf_up = c.tiers > 1 ? c.up : 0;
	topology->cables_node_leaf = c.ends;
	topology->cables_leaf_spine = c.tiers > 1 ? c.leaf * c.up : 0;
	topology->cables_spine_core = c.tiers > 2 ? c.to_core : 0;
	topology->nodes_per_leaf = c.nodes_per_leaf;
	topology->nodes_per_pod = c.nodes_per_pod;
	count_optics(fabric, nodes * nics, topology);
	return true;
}
