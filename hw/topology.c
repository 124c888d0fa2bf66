/*
 * hw/topology.c - how many switches and cables a recipe takes at a given size
 *
 * One plane is a folded Clos. The divisor rule for spines reproduces every row
 * of NVIDIA's published SuperPOD tables (tests/test_topology.c): the uplinks of
 * a leaf spread evenly over the spines, so their number divides the uplinks. Evenness
 * costs up to a third more spines in those tables; where it would cost more than that,
 * cables are dealt out unevenly, over as few spines as have the ports. Rails that are
 * not joined are networks of their own, and so are planes.
 */
#include <assert.h>

#include "base/whole.h"
#include "foretoken/hw.h"
#include "hw/graph.h"

/* One plane on its way to a topology. */
struct clos {
	int64_t radix, upper;	/* ports of a leaf; of all switches above */
	int64_t ends;		/* leaf ports in use: NICs and extra ones */
	int64_t leaf, down, up; /* down, up: of the fullest leaf */
	int64_t taken;		/* uplinks whose place an extra port took */
	int64_t spine, core, top, to_core, to_top;
	int64_t nodes_per_leaf, nodes_per_pod;
	int tiers;
};

/* What is asked for: nodes of so many NICs, and extra ports. */
struct size {
	int64_t nodes, nics, extra;
};

static int64_t least_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most_of(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Ports down of a switch whose ratio down : up is at most o. */
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

/* Spines of two tiers; 0 when the leaves are too many for them. Cells of a scheduled
 * fabric go wherever a credit is, so that leaves need not reach all of its spines; the
 * published tables end at twice as many leaves as a spine has ports. */
static int64_t spines_for(const struct clos *c, int64_t up, bool scheduled, bool even)
{
	int64_t least = ceil_div(c->leaf * up, c->upper);

	if (scheduled)
		return even || c->leaf > 2 * c->upper ? 0 : least;
	if (c->leaf > c->upper || least > up)
		return 0;
	return even ? divisor_from(up, least) : least;
}

/* Of least to most uplinks those that take the fewest spines, and so many. */
static int64_t best_uplinks(const struct clos *c, bool scheduled, bool even,
			    int64_t *up)
{
	int64_t least = *up, most = c->radix - c->down, best = 0;

	for (int64_t n = least_of(least, most); n <= most; n++) {
		int64_t spine = spines_for(c, n, scheduled, even);

		if (spine && (!best || spine < best)) {
			best = spine;
			*up = n;
		}
	}
	return best;
}

/* Uplinks: as the oversubscription asks, more where spines are saved by it. */
static void choose_uplinks(struct clos *c, const struct ft_fabric *fabric)
{
	int64_t least =
		(int64_t)((double)c->down / fabric->oversubscription + 1 - 1e-9);
	int64_t even_up = least, any_up = least;
	int64_t even = best_uplinks(c, fabric->scheduled, true, &even_up);
	int64_t any = best_uplinks(c, fabric->scheduled, false, &any_up);
	bool evenly = even && 3 * even <= 4 * any;

	c->up = evenly ? even_up : any_up;
	c->spine = evenly ? even : any;
}

/* Extra ports (fabric management: next to no traffic) go where there is room on a leaf;
 * when all are full, they take the place of an uplink, at most one on each leaf, which
 * keeps another. */
static void place_extra(struct clos *c, int64_t most, double oversubscription)
{
	int64_t over = c->ends - c->leaf * most;

	if (c->leaf * c->down >= c->ends)
		return;
	c->down = ceil_div(c->ends, c->leaf);
	if (c->down <= most)
		return;
	c->down = most;
	if (over <= c->leaf && (double)most > oversubscription)
		c->taken = over;
	else
		c->leaf = ceil_div(c->ends, most);
}

/* Leaves of two or more tiers: rails have their own, or groups of nodes. */
static bool set_leaves(const struct ft_fabric *fabric, const struct size *of,
		       struct clos *c, struct ft_error *err)
{
	int64_t most = ports_down(c->radix, fabric->oversubscription);
	bool tor = fabric->wiring == FT_WIRING_TOR;
	int64_t rails =
		tor ? of->nics : least_of(most_of(1, fabric->rails_per_leaf), of->nics);
	int64_t per_leaf = most / rails;
	int64_t wide = ceil_div(of->nics, rails); /* leaves side by side */
	int64_t groups; /* of nodes that share leaves, as even as possible */

	if (per_leaf < 1)
		return ft_fail(err, NULL,
			       "fabric %s: %lld NICs of a node do not fit a leaf "
			       "of %lld ports down",
			       fabric->name, (long long)rails, (long long)most);
	groups = ceil_div(of->nodes, per_leaf);
	c->nodes_per_leaf = ceil_div(of->nodes, groups);
	c->leaf = wide * groups;
	c->down = c->nodes_per_leaf * rails;
	place_extra(c, most, fabric->oversubscription);
	return true;
}

/* Three and four tiers: pods of (k/2)^2 leaf uplinks, switches half down, half up, but
 * for those below the top, which core_oversubscription is about. */
static bool set_core(const struct ft_fabric *fabric, const struct size *of,
		     struct clos *c, int tiers)
{
	double o = fabric->core_oversubscription;
	int64_t half = c->radix / 2, half_up = c->upper / 2;
	int64_t down = ports_down(c->upper, o), up = c->upper - down;
	int64_t most = half * half_up * c->upper, links, below;

	c->up = least_of(
		(int64_t)((double)c->down / fabric->oversubscription + 1 - 1e-9),
		c->radix - c->down);
	links = c->leaf * c->up;
	if (links > (tiers == 4 ? most * half_up : most))
		return false;
	below = ceil_div(links, down); /* switches below the top, and their way up */
	c->to_top = o > 1 ? below * up : links;
	c->top = ceil_div(c->to_top, c->upper);
	c->nodes_per_pod = most_of(1, c->down * half_up / of->nics);
	c->tiers = tiers;
	if (tiers == 3) {
		c->spine = below;
		c->core = c->top;
		c->to_core = c->to_top;
		c->top = c->to_top = 0;
		return true;
	}
	c->spine = ceil_div(links, half_up);
	c->core = below;
	c->to_core = links;
	c->nodes_per_pod *= half_up; /* below one group of cores */
	return true;
}

/* The plane with at least so many tiers. */
static bool set_plane(const struct ft_fabric *fabric, const struct size *of, int least,
		      struct clos *c, struct ft_error *err)
{
	int most = fabric->tiers ? (int)fabric->tiers : 4;

	*c = (struct clos){ .radix = fabric->radix,
			    .upper = fabric->upper_radix ? fabric->upper_radix :
							   fabric->radix,
			    .ends = of->nodes * of->nics + of->extra };
	if (c->ends <= c->radix && least < 2) {
		c->tiers = 1;
		c->leaf = 1;
		c->down = c->ends;
		c->nodes_per_leaf = c->nodes_per_pod = of->nodes;
		return true;
	}
	if (!set_leaves(fabric, of, c, err))
		return false;
	if (most >= 2 && least < 3)
		choose_uplinks(c, fabric);
	if (c->spine) {
		c->tiers = 2;
		c->nodes_per_pod = of->nodes;
		return true;
	}
	for (int tiers = most_of(least, 3) > 3 ? 4 : 3; tiers <= most; tiers++)
		if (set_core(fabric, of, c, tiers))
			return true;
	return ft_fail(err, NULL,
		       "fabric %s: %lld endpoints do not fit %d tiers of "
		       "switches of %lld ports",
		       fabric->name, (long long)c->ends, most, (long long)c->radix);
}

/* What is bought today of a network planned for more nodes: its tiers, and all switches
 * above the leaves; then spines to spare. */
static bool set_planned(const struct ft_fabric *fabric, const struct size *of,
			struct clos *c, struct ft_error *err)
{
	struct size later = *of;
	struct clos plan = { 0 };

	later.nodes = most_of(of->nodes, fabric->planned_nodes);
	if (!set_plane(fabric, &later, (int)fabric->tiers, &plan, err) ||
	    !set_plane(fabric, of, plan.tiers > 1 ? plan.tiers : (int)fabric->tiers, c,
		       err))
		return false;
	c->spine = most_of(c->spine, plan.spine);
	c->core = most_of(c->core, plan.core);
	c->top = most_of(c->top, plan.top);
	if (c->tiers > 1)
		c->spine += fabric->spare_spines;
	return true;
}

/* Modules: NIC ends in NIC cages, all others in switch cages, several ports to
 * a module. Copper has none. */
static void count_optics(const struct ft_fabric *fabric, int64_t endpoints,
			 struct ft_topology *t)
{
	int64_t per = fabric->ports_per_optic;
	int64_t at_leaf = fabric->copper_node ? 0 : t->cables_node_leaf;
	int64_t ends = fabric->copper_leaf ? 0 : 2 * t->planes;

	t->optics_node = fabric->copper_node ?
				 0 :
				 ceil_div(endpoints, fabric->nic_ports_per_optic);
	t->optics_leaf_node = ceil_div(t->planes * at_leaf, per);
	t->optics_leaf_spine = ceil_div(ends * t->cables_leaf_spine, per);
	t->optics_spine_core = ceil_div(ends * t->cables_spine_core, per);
	t->optics_core_top = ceil_div(ends * t->cables_core_top, per);
	t->optics_switch = t->optics_leaf_node + t->optics_leaf_spine +
			   t->optics_spine_core + t->optics_core_top;
	t->transceivers = t->optics_node + t->optics_switch;
}

/* n networks side by side, each a plane's, of a NIC or of all; the planes' switches are
 * counted, and one cable carries a NIC's link to each plane. */
static void put(const struct clos *c, int64_t n, struct ft_topology *t)
{
	int64_t planes = n * t->planes;

	t->tiers = c->tiers;
	t->leaf = c->leaf * planes;
	t->spine = c->spine * planes;
	t->core = c->core * planes;
	t->top = c->top * planes;
	t->leaf_down = c->down;
	t->leaf_up = c->tiers > 1 ? c->up : 0;
	t->leaf_spines = least_of(t->leaf_up, c->spine);
	t->cables_node_leaf = n * c->ends;
	t->cables_leaf_spine = c->tiers > 1 ? n * (c->leaf * c->up - c->taken) : 0;
	t->cables_spine_core = n * c->to_core;
	t->cables_core_top = n * c->to_top;
	t->nodes_per_leaf = c->nodes_per_leaf;
	t->nodes_per_pod = c->nodes_per_pod;
}

/* Of the leaf that loses most: planes, pods, and rails that are not joined lose as many or one less. */
int64_t ft_topology_spines_lost(const struct ft_topology *t, int64_t failed)
{
	int64_t apart = t->leaf_spines ? ceil_div(t->spine, t->leaf_spines) : 1;

	return ceil_div(failed, apart);
}

bool ft_topology_build(const struct ft_fabric *fabric, int64_t nodes,
		       int64_t nics_per_node, int64_t extra_ports,
		       struct ft_topology *topology, struct ft_error *err)
{
	int64_t nics = fabric->nics_per_node ? fabric->nics_per_node : nics_per_node;
	bool apart = fabric->wiring == FT_WIRING_RAIL_ONLY;
	struct size of = { nodes, apart ? 1 : nics, extra_ports };
	struct clos c;

	assert(nodes > 0 && nics_per_node > 0 && extra_ports >= 0);
	*topology = (struct ft_topology){ .planes = fabric->planes };
	topology->nodes_per_leaf = topology->nodes_per_pod = nodes;
	if (fabric->wiring == FT_WIRING_NONE ||
	    (nodes == 1 && fabric->planned_nodes <= 1))
		return true;
	if (fabric->wiring == FT_WIRING_GRAPH) {
		if (!graph_topology(fabric, nodes, nics, topology, err))
			return false;
		count_optics(fabric, nodes * nics, topology);
		return true;
	}
	if (apart) /* each rail has its ports for fabric management */
		of.extra = ceil_div(extra_ports, nics);
	if (!set_planned(fabric, &of, &c, err))
		return false;
	topology->endpoints = nodes * nics;
	put(&c, apart ? nics : 1, topology);
	count_optics(fabric, nodes * nics, topology);
	return true;
}
