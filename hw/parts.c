/*
 * hw/parts.c - the table of parts: every line that is bought, powered, or fails
 *
 * Servers hold GPUs and adapters, so that those are lines whose price another includes.
 * Switches, modules and cables are the topology's. Everything else follows from the site:
 *   front end     a Clos of its own: a node's ports, those of storage and management
 *   storage       bytes a GPU / bytes a server;  management  one server for so many nodes
 *   out of band   one port for each server, switch and power distribution
 *   racks         as many servers as units and power allow; the rest by units
 *   spares        a share of the nodes, rounded down
 */
#include <math.h>

#include "base/arena.h"
#include "base/quantity.h"
#include "base/whole.h"
#include "hw/parts.h"

struct table {
	struct arena *mem;
	const struct ft_cluster *c;
	const struct site *site;
	struct ft_parts *to;
	struct ft_part_line *line;
	size_t cap;
	struct layout layout;
	int64_t ports; /* on the front end, beside the nodes' */
};

static struct ft_part_line *put(struct table *t, const char *item, const char *role,
				int64_t count, const struct ft_part *part)
{
	struct ft_part_line *line;

	if (!count || !*item)
		return NULL;
	if (t->to->n == t->cap)
		t->line = ARENA_GROW(t->mem, t->line, &t->cap);
	line = &t->line[t->to->n++];
	t->to->line = t->line;
	*line = (struct ft_part_line){ .item = item,
				       .role = role,
				       .part_class = part ? part->part_class :
							    FT_PART_NETWORK,
				       .count = count,
				       .part = part };
	if (!part && !t->to->unknown)
		t->to->unknown = item;
	return line;
}

/* A line of what hw/parts calls the item. */
static struct ft_part_line *add(struct table *t, const char *item, const char *role,
				int64_t count)
{
	return put(t, item, role, count, catalogue_find(&t->site->catalogue, item));
}

/* ---- servers ---------------------------------------------------------------------- */

static void add_number(struct ft_number *to, const struct ft_number *n)
{
	to->value += n->value;
	to->low += n->low;
	to->high += n->high;
}

static struct ft_part *copy_of(struct table *t, const char *item, const char *other)
{
	struct ft_part *part = ARENA_NEW(t->mem, struct ft_part);
	const struct ft_part *fact = catalogue_find(&t->site->catalogue, item);

	if (!fact)
		fact = catalogue_find(&t->site->catalogue, other);
	if (fact)
		*part = *fact;
	part->item = item;
	part->part_class = FT_PART_SERVER;
	return part;
}

/* Those of whole racks, where these are sold: what a job leaves over stands there, too. */
static int64_t bought_nodes(const struct ft_cluster *c)
{
	int64_t per = c->node->nodes_per_price_item;

	return ceil_div(c->nodes, per) * per;
}

/* DPUs are in the server's price and power; scale-up switches that are bought apart are
 * not: so many for each domain. */
static void add_inside(struct table *t)
{
	const struct ft_node *node = t->c->node;
	int64_t nodes = bought_nodes(t->c);
	struct ft_part_line *dpus = add(t, node->dpu_item, "DPU", nodes * node->dpus);
	int64_t domains = ceil_div(t->c->nodes * node->gpus, node->scale_up_gpus);

	if (dpus) {
		dpus->included = true;
		dpus->idle = (nodes - t->c->nodes) * node->dpus;
	}
	add(t, node->scale_up_switch, "scale-up switch",
	    domains * node->scale_up_switches);
}

static bool add_servers(struct table *t, struct ft_error *err)
{
	const struct ft_cluster *c = t->c;
	const struct ft_node *node = c->node;
	int64_t per = node->nodes_per_price_item;
	int64_t count = ceil_div(c->nodes, per);
	struct ft_part *bought = ARENA_NEW(t->mem, struct ft_part);
	struct ft_part *gpu = copy_of(t, *c->gpu->name ? c->gpu->name : "gpu", "gpu");
	struct ft_part *host = copy_of(t, *node->name ? node->name : "host", "host");
	struct ft_part *spare = ARENA_NEW(t->mem, struct ft_part);
	int64_t nodes = bought_nodes(c), gpus = nodes * node->gpus;
	int64_t idle = gpus - c->gpus;
	double node_w =
		node->power_w.value + (double)node->gpus * c->gpu->limit_w.value;
	double units;
	struct ft_part_line *line;

	bought->item = node->price_item;
	bought->title = node->title;
	bought->life_years = host->life_years;
	put(t, node->price_item, per > 1 ? "rack" : "server", count, bought);
	gpu->title = c->gpu->title;
	gpu->max_w = c->gpu->limit_w;
	catalogue_uncap(gpu, c->gpu);
	line = put(t, gpu->item, "GPU", gpus, gpu);
	line->included = line->gpu = true;
	line->idle = idle;
	host->max_w = node->power_w;
	if (node->rack_units.value > 0)
		host->rack_units = node->rack_units;
	units = fmax(1, host->rack_units.value);
	line = put(t, host->item, "host", nodes, host);
	line->included = true;
	line->idle = nodes - c->nodes;
	line = put(t, "software", "software", gpus,
		   catalogue_find(&t->site->catalogue, "software"));
	line->included = true;
	line->idle = idle;
	*spare = *bought;
	spare->max_w = c->gpu->limit_w;
	number_scale(&spare->max_w, (double)node->gpus);
	add_number(&spare->max_w, &node->power_w);
	spare->carbon_kg = gpu->carbon_kg;
	number_scale(&spare->carbon_kg, (double)node->gpus);
	add_number(&spare->carbon_kg, &host->carbon_kg);
	spare->rack_units = host->rack_units;
	number_scale(&spare->max_w, (double)per);
	number_scale(&spare->carbon_kg, (double)per);
	number_scale(&spare->rack_units, (double)per);
	spare->part_class = FT_PART_SPARE;
	count = (int64_t)(t->site->spares_frac.value * (double)count + 1e-9);
	put(t, node->price_item, per > 1 ? "spare rack" : "spare server", count, spare);
	t->to->spare_nodes = count * per;
	t->layout = layout_of(c, t->site, units, node_w);
	return layout_holds(c, t->site, units, node_w, err);
}

/* ---- back-end network ---------------------------------------------------------------- */

/* Of so many at the NICs, those of GPUs that the job leaves over. */
static int64_t idle_of(const struct table *t, int64_t count)
{
	int64_t gpus = t->c->nodes * t->c->node->gpus;

	return count * (gpus - t->c->gpus) / gpus;
}

/* Is there something longer? What does not go further than this is not. */
static bool goes_further(const struct table *t, const struct ft_part *part)
{
	const struct ft_part *longer =
		catalogue_find(&t->site->catalogue, part->longer);

	return *part->longer &&
	       (!longer || longer->reach_m.value > part->reach_m.value);
}

/* count modules or cables of a class of links, each as long as it must be; maker: of
 * modules, NULL for cables. */
static void add_reach(struct table *t, enum link_class class, const char *item,
		      const char *maker, const char *role, int64_t count)
{
	struct ft_part_line *line;
	int64_t left = count;

	while (left > 0 && *item) {
		const struct ft_part *part = catalogue_find(&t->site->catalogue, item);
		bool last = !part || !goes_further(t, part);
		double near = last ? 1 :
				     layout_within_frac(&t->layout, class,
							part->reach_m.value);
		int64_t so_far = (int64_t)floor(near * (double)count + 0.5);
		int64_t n = last ? left : so_far - (count - left);

		n = n < 0 ? 0 : n > left ? left : n;
		line = put(t, maker ? arena_printf(t->mem, "%s-%s", item, maker) : item,
			   role, n, part);
		if (line && class == NODE_LEAF)
			line->idle = idle_of(t, n);
		left -= n;
		item = last ? "" : part->longer;
	}
}

static void add_switches(struct table *t)
{
	const struct ft_topology *net = &t->c->topology;
	const struct ft_fabric *f = t->c->fabric;
	const char *upper = *f->upper_item ? f->upper_item : f->switch_item;

	add(t, f->switch_item, "leaf switch", net->leaf);
	add(t, upper, "spine switch", net->spine);
	add(t, upper, "core switch", net->core);
	add(t, upper, "top switch", net->top);
}

/* A module of a known rate carries that much and no more. */
static bool holds(const struct table *t, const char *item, double bytes_per_s)
{
	const struct ft_part *part = catalogue_find(&t->site->catalogue, item);
	double rate = part ? part->bytes_per_s.value : 0;

	return !(rate > 0) || bytes_per_s <= rate * (1 + 1e-6);
}

static bool carries(const struct table *t, const char *item, int64_t modules,
		    double bytes_per_s, struct ft_error *err)
{
	if (modules <= 0 || holds(t, item, bytes_per_s))
		return true;
	return ft_fail(err, &t->c->gpus_mark,
		       "fabric %s: the module %s carries %.0f Gb/s, and the ports that "
		       "share one %.0f; name others as links.optic_node_item and "
		       "links.optic_switch_item, or let fewer ports share one "
		       "(ports_per_optic)",
		       t->c->fabric->name, item,
		       catalogue_find(&t->site->catalogue, item)->bytes_per_s.value *
			       8e-9,
		       bytes_per_s * 8e-9);
}

/* Of a port above the leaves: a cable of a drawing may have another rate than those below. */
static double upper_port(const struct ft_fabric *f)
{
	double most = f->graph ? 0 : f->port_bytes_per_s.value;

	for (size_t i = 0; f->graph && i < f->graph->n_cables; i++)
		most = fmax(most, f->graph->cable[i].bytes_per_s);
	return most;
}

static bool add_links(struct table *t, struct ft_error *err)
{
	const struct ft_topology *net = &t->c->topology;
	const struct ft_fabric *f = t->c->fabric;
	const char *leaf = f->optic_leaf_item, *cable = f->cable_leaf_item;
	double port = f->port_bytes_per_s.value;
	double nic = fmin(t->c->node->nic_bytes_per_s.value, port * (double)f->planes);
	int64_t times = 1; /* modules of a NIC, whose planes may have one each */
	const char *at_node, *at_leaf;

	catalogue_modules(&t->site->catalogue, t->c, &at_node, &at_leaf);
	while (times < f->planes && !holds(t, at_node, nic / (double)times))
		times++;
	if (!carries(t, at_node, net->optics_node,
		     nic * (double)f->nic_ports_per_optic / (double)times, err) ||
	    !carries(t, at_leaf, net->optics_leaf_node,
		     nic / (double)f->planes * (double)f->ports_per_optic, err) ||
	    !carries(t, leaf, net->optics_leaf_spine,
		     upper_port(f) * (double)f->ports_per_optic, err))
		return false;
	add_reach(t, NODE_LEAF, at_node, f->optics, "optics in nodes",
		  times * net->optics_node);
	add_reach(t, NODE_LEAF, at_leaf, f->optics, "optics in leaves, to nodes",
		  net->optics_leaf_node);
	add_reach(t, LEAF_SPINE, leaf, f->optics, "optics leaf to spine",
		  net->optics_leaf_spine);
	add_reach(t, SPINE_CORE, leaf, f->optics, "optics spine to core",
		  net->optics_spine_core);
	add_reach(t, CORE_TOP, leaf, f->optics, "optics core to top",
		  net->optics_core_top);
	add_reach(t, NODE_LEAF, f->cable_node_item, NULL, "cables node to leaf",
		  net->cables_node_leaf);
	add_reach(t, LEAF_SPINE, cable, NULL, "cables leaf to spine",
		  net->cables_leaf_spine);
	add_reach(t, SPINE_CORE, cable, NULL, "cables spine to core",
		  net->cables_spine_core);
	add_reach(t, CORE_TOP, cable, NULL, "cables core to top", net->cables_core_top);
	return true;
}

static bool add_network(struct table *t, struct ft_error *err)
{
	const struct ft_cluster *c = t->c;
	struct ft_part_line *nics =
		add(t, c->fabric->nic_item, "NIC", c->nodes * c->nics_per_node);

	if (nics) {
		nics->included = true;
		nics->idle = idle_of(t, nics->count);
	}
	add_switches(t);
	if (!add_links(t, err))
		return false;
	if (c->ufm_ports) /* licensed by endpoint where the fabric is managed */
		add(t, "ufm-licence", "fabric manager licences", c->topology.endpoints);
	return true;
}

/* ---- around it --------------------------------------------------------------------- */

static void add_storage(struct table *t)
{
	const struct site *s = t->site;
	double bytes = s->storage.per_gpu_bytes * (double)t->c->gpus;
	int64_t storage = (int64_t)ceil(bytes / s->storage.per_server_bytes - 1e-9);
	int64_t management = ceil_div(t->c->nodes, s->management.nodes_per_server);

	if (management < s->management.servers)
		management = s->management.servers;
	if (!*s->storage.item) /* what is left out has no ports */
		storage = 0;
	if (!*s->management.item)
		management = 0;
	add(t, s->storage.item, "storage server", storage);
	add(t, s->management.item, "management server", management);
	t->ports = storage * s->storage.ports_per_server + 2 * management;
}

/* One front end for each hall, as if they were alike. */
static bool add_front_end(struct table *t, struct ft_error *err)
{
	const struct site *s = t->site;
	int64_t halls = ceil_div(t->c->nodes, s->front_end.hall_nodes);
	int64_t extra = ceil_div(t->ports, halls);
	struct ft_fabric f = { .name = "of the front end",
			       .wiring = FT_WIRING_TOR,
			       .radix = s->front_end.radix,
			       .planes = 1,
			       .oversubscription = s->front_end.oversubscription,
			       .core_oversubscription = 1,
			       .rails_per_leaf = 1,
			       .ports_per_optic = 1,
			       .nic_ports_per_optic = 1 };
	struct ft_topology net;
	size_t first = t->to->n;
	struct ft_error told;

	if (!s->front_end.ports_per_node)
		return true;
	if (!ft_topology_build(&f, ceil_div(t->c->nodes, halls),
			       s->front_end.ports_per_node, extra, &net, &told))
		return ft_fail(err, &t->c->gpus_mark, "%s", told.text);
	add(t, s->front_end.switch_item, "front-end switch",
	    halls * (net.leaf + net.spine + net.core + net.top));
	if (*s->front_end.optic_item) /* one front end fits one hall: short reach */
		put(t, arena_printf(t->mem, "%s-generic", s->front_end.optic_item),
		    "front-end optics", halls * (net.transceivers + extra),
		    catalogue_find(&s->catalogue, s->front_end.optic_item));
	add(t, s->front_end.cable_item, "front-end cables",
	    halls * (net.cables_node_leaf + net.cables_leaf_spine +
		     net.cables_spine_core + net.cables_core_top));
	for (; first < t->to->n; first++)
		t->line[first].part_class = FT_PART_FRONT_END;
	return true;
}

/* What has a port for out-of-band management, or stands in a rack beside servers. */
static void count_devices(const struct table *t, int64_t *ports, double *units)
{
	*ports = 0;
	*units = 0;
	for (size_t i = 0; i < t->to->n; i++) {
		const struct ft_part_line *l = &t->line[i];

		if (!l->part || !(l->part->rack_units.value > 0))
			continue;
		*ports += l->count;
		if (l->part_class != FT_PART_SERVER && l->part_class != FT_PART_SPARE)
			*units += (double)l->count * l->part->rack_units.value;
	}
}

static void add_racks(struct table *t)
{
	const struct site *s = t->site;
	bool sold = t->c->node->nodes_per_price_item > 1; /* by the rack */
	int64_t ports, others, racks, spares, pdus;
	double units;

	count_devices(t, &ports, &units);
	others = (int64_t)ceil(units / (s->racks.units - 2));
	spares = ceil_div(t->to->spare_nodes, t->layout.nodes_per_rack);
	racks = others + (sold ? 0 : t->layout.racks + spares);
	pdus = *s->racks.pdu_item ? racks * s->racks.pdus : 0;
	t->to->racks = others + t->layout.racks + spares;
	if (t->c->nodes > 1) /* and one for each power distribution */
		add(t, s->out_of_band.switch_item, "out-of-band switch",
		    ceil_div(ports + pdus, s->out_of_band.ports));
	add(t, s->racks.item, "equipment rack", racks);
	add(t, s->racks.pdu_item, "power distribution", pdus);
	add(t, s->integration_item, "integration",
	    bought_nodes(t->c) * t->c->node->gpus);
}

const struct ft_parts *parts_build(struct arena *mem, const struct ft_cluster *c,
				   const struct node *value, struct ft_error *err)
{
	struct site *site = ARENA_NEW(mem, struct site);
	struct table t = {
		.mem = mem, .c = c, .site = site, .to = ARENA_NEW(mem, struct ft_parts)
	};

	if (!site_read(mem, value, site, err))
		return NULL;
	t.to->site = site->name;
	t.to->digest = mem->read;
	if (!add_servers(&t, err))
		return NULL;
	add_inside(&t);
	if (c->topology.tiers && !add_network(&t, err))
		return NULL;
	if (c->nodes > 1) {
		add_storage(&t);
		if (!add_front_end(&t, err))
			return NULL;
	}
	add_racks(&t);
	return t.to;
}
