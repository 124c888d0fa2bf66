/* hw/fabric.c - a fabric's file: the recipe for a network of any size */
#include <string.h>

#include "base/arena.h"
#include "base/extends.h"
#include "base/limits.h"
#include "base/plain.h"
#include "base/reader.h"
#include "foretoken/hw.h"
#include "hw/graph.h"

struct owned {
	struct ft_fabric fabric;
	struct arena mem;
};

static void read_shape(struct arena *mem, struct reader *r, struct ft_fabric *fabric)
{
	static const char *const wirings[] = { "none", "rail", "tor", "graph",
					       "rail-only" };
	static const char *const routings[] = { "adaptive", "ecmp", "scheduled" };
	int routing;

	fabric->wiring = (enum ft_wiring)read_choice(r, "wiring", wirings, 5, 0);
	fabric->planes = read_int(r, "planes", 1, 16, 1);
	fabric->planes_given = read_has(r, "planes");
	fabric->nics_per_node = read_int(r, "nics_per_node", 0, 64, 0);
	fabric->oversubscription = read_quantity(r, "oversubscription", DIM_NONE, 1);
	fabric->core_oversubscription =
		read_quantity(r, "core_oversubscription", DIM_NONE, 1);
	fabric->tiers = read_int(r, "tiers", 0, 4, 0);
	fabric->rails_per_leaf = read_int(r, "rails_per_leaf", 1, 64, 1);
	fabric->planned_nodes = read_int(r, "planned_nodes", 0, LIMIT_GPUS, 0);
	fabric->spare_spines = read_int(r, "spare_spines", 0, 4096, 0);
	fabric->sharp = read_bool(r, "sharp", false);
	routing = read_choice(r, "routing", routings, 3, 0);
	fabric->adaptive = routing != 1;
	fabric->scheduled = routing == 2;
	fabric->queue_pairs = read_int(r, "queue_pairs", 1, 1024, 1);
	if (!r->failed && fabric->rails_per_leaf > 1 &&
	    fabric->wiring != FT_WIRING_RAIL)
		reader_fail(r, "rails_per_leaf", "belongs to wiring: rail");
	if (!r->failed &&
	    (fabric->oversubscription < 0.125 || fabric->oversubscription > 64))
		reader_fail(r, "oversubscription", "is not between 0.125 and 64");
	if (!r->failed &&
	    (fabric->core_oversubscription < 1 || fabric->core_oversubscription > 64))
		reader_fail(r, "core_oversubscription", "is not between 1 and 64");
	fabric->efficiency = read_positive(r, mem, "efficiency", DIM_FRAC);
	reader_bound(r, "efficiency", &fabric->efficiency, 0.001, 1);
	fabric->latency_s = read_number(r, mem, "latency", DIM_S);
	fabric->hop_s = read_number(r, mem, "hop", DIM_S);
	fabric->ring_step_s = read_number(r, mem, "ring_step", DIM_S);
	fabric->rings_from = read_number_or(r, mem, "rings_from", DIM_BYTES, 0);
	fabric->rings_ranks = read_int(r, "rings_ranks", 1, INT64_MAX, 128);
	fabric->exchange_peer_s = read_number_or(r, mem, "exchange_peer", DIM_S, 0);
}

/* A port that is split is as many ports, each of its part of the rate, in the same cage. */
static void read_switch(struct arena *mem, struct reader *outer,
			struct ft_fabric *fabric)
{
	struct reader r = reader_open(read_need(outer, "switch"), outer->err);
	int64_t split;

	r.failed = r.failed || outer->failed;
	r.from = outer->from;
	read_provenance(&r, mem);
	fabric->radix = read_need(&r, "radix") ? read_int(&r, "radix", 2, 4096, 2) : 2;
	fabric->port_bytes_per_s = read_positive(&r, mem, "port", DIM_BYTES_PER_S);
	fabric->port_split = split = read_int(&r, "split", 1, 8, 1);
	fabric->radix *= split;
	number_scale(&fabric->port_bytes_per_s, 1 / (double)split);
	fabric->upper_radix = split * read_int(&r, "upper_radix", 0, 4096, 0);
	fabric->switch_item = read_name(&r, "price_item", "");
	if (node_get(r.map, "power"))
		reader_fail(&r, "power",
			    "has no place here: hw/parts knows the power of parts, and "
			    "cluster.site: {extends: standard, parts: {ITEM: {class: "
			    "network, power: 800 W}}} says it of others");
	fabric->upper_item = read_name(&r, "upper_item", "");
	if (!r.failed && fabric->radix % 2)
		reader_fail(&r, "radix", "should be even");
	if (!r.failed && fabric->upper_radix % 2)
		reader_fail(&r, "upper_radix", "should be even");
	outer->failed = !reader_close(&r) || outer->failed;
}

static void read_links(struct arena *mem, struct reader *outer,
		       struct ft_fabric *fabric)
{
	static const char *const makers[] = { "generic", "nvidia" };
	struct reader r = reader_open(read_need(outer, "links"), outer->err);

	r.failed = r.failed || outer->failed;
	r.from = outer->from;
	read_provenance(&r, mem);
	fabric->ports_per_optic =
		fabric->port_split * read_int(&r, "ports_per_optic", 1, 8, 1);
	fabric->nic_ports_per_optic = 1;
	fabric->copper_node = read_bool(&r, "copper_node", false);
	fabric->copper_leaf = read_bool(&r, "copper_leaf", false);
	fabric->optics = makers[read_choice(&r, "optics", makers, 2, 0)];
	fabric->optic_leaf_item = read_name(&r, "optic_switch_item", "");
	fabric->optic_node_item = read_name(&r, "optic_node_item", "");
	fabric->cable_node_item = read_name(&r, "cable_node_item", "");
	fabric->cable_leaf_item = read_name(&r, "cable_switch_item", "");
	fabric->nic_item = read_name(&r, "nic_item", "");
	outer->failed = !reader_close(&r) || outer->failed;
}

/* What a recipe makes of a size has no say in a drawing. */
static void check_drawn(struct reader *r, const struct ft_fabric *f)
{
	const struct {
		const char *key;
		bool stated;
	} of[] = {
		{ "oversubscription", f->oversubscription != 1 },
		{ "core_oversubscription", f->core_oversubscription != 1 },
		{ "tiers", f->tiers != 0 },
		{ "planes", f->planes != 1 },
		{ "planned_nodes", f->planned_nodes != 0 },
		{ "spare_spines", f->spare_spines != 0 },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		if (!r->failed && of[i].stated)
			reader_fail(r, of[i].key,
				    "has no effect with wiring: graph; draw it");
}

static bool read_graph(struct arena *mem, struct reader *r, struct ft_fabric *fabric)
{
	const struct node *map = read_node(r, "graph");
	struct ft_switch_graph *g;

	if (r->failed)
		return false;
	if (!map != (fabric->wiring != FT_WIRING_GRAPH))
		return reader_fail(r, map ? "graph" : "wiring",
				   map ? "belongs to wiring: graph" :
					 "lacks the key 'graph' beside it");
	if (!map)
		return true;
	check_drawn(r, fabric);
	if (r->failed)
		return false;
	g = ARENA_NEW(mem, struct ft_switch_graph);
	fabric->graph = g;
	return graph_read(mem, map, fabric->port_bytes_per_s.value, g, r->err);
}

static bool read_all(struct arena *mem, struct node *map, struct ft_fabric *fabric,
		     struct ft_error *err)
{
	struct reader r = reader_open(map, err);

	reader_allow(&r, "extends");
	read_provenance(&r, mem);
	fabric->name = read_name(&r, "name", "");
	fabric->title = read_text(&r, "title", fabric->name);
	read_shape(mem, &r, fabric);
	read_switch(mem, &r, fabric);
	read_links(mem, &r, fabric);
	fabric->from = r.from;
	return read_graph(mem, &r, fabric) && reader_close(&r);
}

/* The fabric of a single node: nothing. */
static void set_none(struct arena *mem, struct ft_fabric *fabric)
{
	struct ft_provenance *from = ARENA_NEW(mem, struct ft_provenance);
	struct ft_number zero = { 0, 0, 0, from };

	*from = (struct ft_provenance){ FT_DERIVED, "no network", "", "", "" };
	*fabric = (struct ft_fabric){
		.name = "none",
		.title = "no network",
		.radix = 2,
		.planes = 1,
		.oversubscription = 1,
		.core_oversubscription = 1,
		.rails_per_leaf = 1,
		.ports_per_optic = 1,
		.nic_ports_per_optic = 1,
		.queue_pairs = 1,
		.adaptive = true,
		.port_bytes_per_s = zero,
		.efficiency = zero,
		.latency_s = zero,
		.hop_s = zero,
		.ring_step_s = zero,
		.rings_from = zero,
		.exchange_peer_s = zero,
		.switch_item = "",
		.upper_item = "",
		.optics = "generic",
		.optic_leaf_item = "",
		.optic_node_item = "",
		.cable_node_item = "",
		.cable_leaf_item = "",
		.nic_item = "",
		.from = from,
	};
}

struct ft_fabric *ft_fabric_load(const char *name, const struct ft_mark *at,
				 struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct node what = { .kind = NODE_SCALAR, .text = name };

	if (at)
		what.mark = *at;
	return ft_fabric_load_value(&what, err);
}

struct ft_fabric *ft_fabric_load_value(const struct node *what, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct owned *owned = ARENA_NEW(&mem, struct owned);
	struct node *map;

	if (what->kind == NODE_SCALAR && !strcmp(what->text, "none")) {
		set_none(&mem, &owned->fabric);
	} else {
		map = extends_value(&mem, "hw/fabrics", what, err);
		if (!map || !read_all(&mem, map, &owned->fabric, err)) {
			arena_release(&mem);
			return NULL;
		}
	}
	owned->fabric.digest = mem.read;
	owned->mem = mem;
	return &owned->fabric;
}

void ft_fabric_free(struct ft_fabric *fabric)
{
	struct arena mem;

	if (!fabric)
		return;
	mem = ((struct owned *)fabric)->mem;
	arena_release(&mem);
}
