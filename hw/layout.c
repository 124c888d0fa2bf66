/*
 * hw/layout.c - how long cables are
 *
 * Rack p stands in row p / row at place p % row. A cable between racks goes along the
 * row, across the rows and takes the slack of both ends; within a rack, 2 m. Limits: one
 * hall, all groups of racks alike, switches of a tier in one place of their group.
 */
#include <stdlib.h>

#include "base/whole.h"
#include "hw/parts.h"

enum { MOST_IN_A_RACK = 1000 };

static int64_t in_a_rack(double n)
{
	return n >= MOST_IN_A_RACK ? MOST_IN_A_RACK : n >= 1 ? (int64_t)n : 1;
}

/* Two units are kept free. */
static double usable_units(const struct site *site)
{
	return site->racks.units - 2;
}

struct layout layout_of(const struct ft_cluster *c, const struct site *site,
			double node_units, double node_w)
{
	const struct ft_topology *t = &c->topology;
	int64_t by_units = in_a_rack(usable_units(site) / node_units);
	int64_t by_power = in_a_rack(site->racks.power_w / node_w);
	struct layout l = { .site = site };

	l.nodes_per_rack = by_units < by_power ? by_units : by_power;
	if (c->node->nodes_per_price_item > 1) /* sold by the rack */
		l.nodes_per_rack = c->node->nodes_per_price_item;
	l.racks = ceil_div(c->nodes, l.nodes_per_rack);
	l.group_racks = ceil_div(t->nodes_per_leaf, l.nodes_per_rack);
	l.pod_racks = ceil_div(t->nodes_per_pod, l.nodes_per_rack);
	l.group_racks = l.group_racks < l.racks ? l.group_racks : l.racks;
	l.pod_racks = l.pod_racks < l.racks ? l.pod_racks : l.racks;
	return l;
}

bool layout_holds(const struct ft_cluster *c, const struct site *site,
		  double node_units, double node_w, struct ft_error *err)
{
	const char *node = *c->node->name ? c->node->name : "the node";

	if (c->node->nodes_per_price_item > 1) /* comes in its own */
		return true;
	if (node_units > usable_units(site))
		return ft_fail(
			err, &c->gpus_mark,
			"%s of %.3g units does not fit a rack of %.3g, of which two "
			"stay free (cluster.site: racks.units)",
			node, node_units, site->racks.units);
	if (node_w > site->racks.power_w)
		return ft_fail(
			err, &c->gpus_mark,
			"%s of %.3g kW is more than a rack's %.3g kW (cluster.site: "
			"racks.power)",
			node, node_w / 1e3, site->racks.power_w / 1e3);
	return true;
}

static double distance_m(const struct layout *l, int64_t a, int64_t b)
{
	int64_t row = l->site->racks.row;

	if (a == b)
		return RACK_ITSELF_M;
	return l->site->racks.slack_m +
	       (double)llabs(a % row - b % row) * l->site->racks.width_m +
	       (double)llabs(a / row - b / row) * l->site->racks.pitch_m;
}

/* Ends stand `step` racks apart, from the middle of the first group on, in the first
 * `all` racks; the other end in the middle of those. */
static double within_frac(const struct layout *l, int64_t step, int64_t all, double m)
{
	int64_t n = 0, near = 0;

	for (int64_t at = step / 2; at < all || n == 0; at += step, n++)
		near += distance_m(l, at < all ? at : all - 1, all / 2) <= m;
	return (double)near / (double)n;
}

double layout_within_frac(const struct layout *l, enum link_class class, double metres)
{
	switch (class) {
	case NODE_LEAF:
		return within_frac(l, 1, l->group_racks, metres);
	case LEAF_SPINE:
		return within_frac(l, l->group_racks, l->pod_racks, metres);
	case SPINE_CORE:
	case CORE_TOP:
	case LINK_CLASSES:
		break;
	}
	return within_frac(l, l->pod_racks, l->racks, metres);
}
