/* hw/cluster.c - a `cluster` map made whole: GPU, node, fabric, topology */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/plain.h"
#include "base/reader.h"
#include "base/whole.h"
#include "foretoken/hw.h"
#include "hw/parts.h"

/* The parts have arenas of their own; the cluster keeps them to free them. */
struct owned {
	struct ft_cluster cluster;
	struct arena mem;
	struct ft_gpu *gpu;
	bool borrowed; /* the GPU is another cluster's */
	struct ft_node *node;
	struct ft_fabric *fabric;
};

static void release(struct owned *owned)
{
	struct arena mem = owned->mem;

	if (!owned->borrowed)
		ft_gpu_free(owned->gpu);
	ft_node_free(owned->node);
	ft_fabric_free(owned->fabric);
	arena_release(&mem);
}

/* What stands under key, or else the name that a part has as its default. */
static const struct node *value_or(struct arena *mem, struct reader *r, const char *key,
				   const char *name)
{
	const struct node *n = read_node(r, key);
	struct ft_mark at = reader_mark(r, key);

	return n ? n : node_scalar(mem, &at, name);
}

/* A server that is sold with one GPU holds no other; one of the user's own may. */
static bool holds(const struct owned *owned, const struct node *gpu,
		  const struct node *node, struct ft_error *err)
{
	const struct ft_node *n = owned->node;
	const struct ft_gpu *g = owned->gpu;

	if (!node || node->kind != NODE_SCALAR || gpu->kind != NODE_SCALAR ||
	    !*n->gpu || !strcmp(n->gpu, g->name) || !strcmp(n->name, g->default_node))
		return true;
	return ft_fail(
		err, &node->mark,
		"%s is a server of %s; that of %s is %s: leave out node, or write "
		"node: {extends: %s} for a server of your own",
		n->name, n->gpu, g->name, g->default_node, n->name);
}

static bool load_parts(struct owned *owned, struct reader *r, int rows,
		       struct ft_error *err)
{
	const struct node *gpu = read_node(r, "gpu");

	if (r->failed)
		return false;
	if (!owned->borrowed)
		owned->gpu = ft_gpu_load_value(gpu, rows | FT_GPU_ROWS_LATER, err);
	if (!owned->gpu)
		return false;
	owned->node = ft_node_load_value(
		value_or(&owned->mem, r, "node", owned->gpu->default_node), err);
	if (r->failed || !owned->node || !holds(owned, gpu, read_node(r, "node"), err))
		return false;
	owned->fabric = ft_fabric_load_value(
		value_or(&owned->mem, r, "fabric", owned->node->default_fabric), err);
	return owned->fabric != NULL;
}

static void set_sizes(struct owned *owned)
{
	struct ft_cluster *c = &owned->cluster;
	const struct ft_gpu *gpu = owned->gpu;
	const struct ft_node *node = owned->node;
	int64_t domain = node->scale_up_gpus * gpu->ranks_per_gpu;

	c->gpu = gpu;
	c->node = node;
	c->fabric = owned->fabric;
	c->nodes = ceil_div(c->gpus, node->gpus);
	c->ranks = c->gpus * gpu->ranks_per_gpu;
	c->ranks_per_node = node->gpus * gpu->ranks_per_gpu;
	c->domain_ranks = domain < c->ranks ? domain : c->ranks;
}

/* Domains of a single node meet through its NICs, which are on a network then as those of
 * two nodes are. */
static void join_domains(struct owned *owned)
{
	const struct ft_cluster *c = &owned->cluster;

	if (c->nodes == 1 && c->domain_ranks < c->ranks &&
	    owned->fabric->planned_nodes < 2)
		owned->fabric->planned_nodes = 2;
}

/* Fit the recipe to the node: a NIC that is faster than a port and can be split is served
 * by several planes, where neither the file nor a drawing says otherwise; any other runs at
 * the port's rate; twin-port cages are the node's, and a fabric may use fewer NICs. */
static bool fit_fabric(struct owned *owned, const struct ft_mark *at,
		       struct ft_error *err)
{
	struct ft_fabric *fabric = owned->fabric;
	struct ft_cluster *c = &owned->cluster;
	double nic = owned->node->nic_bytes_per_s.value;
	double port = fabric->port_bytes_per_s.value;
	double served;

	c->nics_per_node =
		fabric->nics_per_node ? fabric->nics_per_node : owned->node->nics;
	c->nic_bytes_per_s = nic * (double)c->nics_per_node / (double)c->ranks_per_node;
	if (fabric->wiring == FT_WIRING_NONE)
		return true;
	if (c->nics_per_node > owned->node->nics)
		return ft_fail(err, at,
			       "fabric %s takes %lld NICs of a node, %s has %lld "
			       "(nics.count)",
			       fabric->name, (long long)c->nics_per_node,
			       owned->node->name, (long long)owned->node->nics);
	if (!fabric->planes_given && !fabric->graph && nic >= 2 * port &&
	    !fabric->nics_per_node)
		fabric->planes = (int64_t)fmin(nic / port + 1e-9,
					       (double)owned->node->nic_links);
	fabric->nic_ports_per_optic = owned->node->nic_ports_per_optic;
	served = port * (double)fabric->planes;
	if (fabric->planes > 1 && served > 1.5 * nic)
		return ft_fail(
			err, at,
			"fabric %s: %lld planes of ports of %.0f Gb/s are more "
			"than a NIC of %.0f Gb/s can use; split each port among "
			"the planes (switch.split: %lld), or take fewer planes",
			fabric->name, (long long)fabric->planes, port * 8e-9,
			nic * 8e-9,
			(long long)(served / nic * (double)fabric->port_split + 0.5));
	c->nic_bytes_per_s = (nic < served ? nic : served) * (double)c->nics_per_node /
			     (double)c->ranks_per_node;
	return true;
}

static double fraction(struct reader *r, const char *key, double fallback)
{
	double v = read_quantity(r, key, DIM_FRAC, fallback);

	if (v > 1)
		reader_fail(r, key, "is a fraction, 0 to 1");
	return v;
}

enum { MOST_SLOW_GPUS = 64 };

static bool read_slow_gpu(const struct node *node, int64_t gpus, struct ft_slow_gpu *g,
			  struct ft_error *err)
{
	struct reader r = reader_open(node, err);

	if (read_need(&r, "gpu"))
		g->gpu = read_int(&r, "gpu", 0, gpus - 1, 0);
	g->speed_frac = fraction(&r, "speed_frac", 0);
	if (!r.failed && g->speed_frac <= 0)
		reader_fail(&r, "speed_frac",
			    "should be above 0: the GPU's speed "
			    "against the others'");
	return reader_close(&r);
}

/* slow_gpus: [{gpu: 17, speed_frac: 0.8}] */
static bool read_slow_gpus(struct arena *mem, struct reader *r, int64_t gpus,
			   struct ft_imperfections *i, struct ft_error *err)
{
	const struct node *list = read_node(r, "slow_gpus");

	if (r->failed || !list)
		return !r->failed;
	if (list->kind != NODE_LIST || list->n > MOST_SLOW_GPUS)
		return reader_fail(r, "slow_gpus",
				   "should be a list of at most %d "
				   "{gpu: N, speed_frac: X}",
				   (int)MOST_SLOW_GPUS);
	i->slow_gpu = ARENA_ARRAY(mem, list->n, struct ft_slow_gpu);
	for (size_t k = 0; k < list->n; k++)
		if (!read_slow_gpu(list->item[k], gpus, &i->slow_gpu[k], err))
			return false;
	i->n_slow_gpus = list->n;
	for (size_t k = 0; k < list->n; k++)
		for (size_t j = 0; j < k; j++)
			if (i->slow_gpu[j].gpu == i->slow_gpu[k].gpu)
				return reader_fail(r, "slow_gpus",
						   "name GPU %lld "
						   "twice",
						   (long long)i->slow_gpu[k].gpu);
	return true;
}

static bool read_imperfections(struct arena *mem, const struct node *node, int64_t gpus,
			       double usual_spread_frac, struct ft_imperfections *i,
			       struct ft_error *err)
{
	static const char *const placements[] = { "packed", "scattered" };
	struct reader r = reader_open(node, err);

	i->given = node != NULL;
	i->seed = (uint64_t)read_int(&r, "seed", 0, INT64_MAX, 1);
	i->scattered = read_choice(&r, "placement", placements, 2, 0) == 1;
	i->failed_uplinks_frac = fraction(&r, "failed_uplinks_frac", 0);
	i->failed_spines = read_int(&r, "failed_spines", 0, 1 << 20, 0);
	i->slow_nics_frac = fraction(&r, "slow_nics_frac", 0);
	i->slow_nic_rate_frac = fraction(&r, "slow_nic_rate_frac", 0.5);
	i->gpu_speed_spread_frac =
		fraction(&r, "gpu_speed_spread_frac", usual_spread_frac);
	if (!r.failed && i->slow_nic_rate_frac <= 0)
		reader_fail(&r, "slow_nic_rate_frac", "should be above 0");
	if (!r.failed && read_has(&r, "slow_nic_rate_frac") &&
	    !read_has(&r, "slow_nics_frac"))
		reader_fail(&r, "slow_nic_rate_frac",
			    "has an effect only with slow_nics_frac");
	if (!r.failed && i->failed_uplinks_frac >= 1)
		reader_fail(&r, "failed_uplinks_frac",
			    "should be below 1: without "
			    "uplinks the leaves are not connected");
	return read_slow_gpus(mem, &r, gpus, i, err) && reader_close(&r);
}

/* Some spine must be left to each leaf; a drawn network is drawn without what has failed. */
static bool check_spines(const struct ft_cluster *c, const struct node *map,
			 struct ft_error *err)
{
	int64_t failed = c->imperfections.failed_spines;
	const struct node *at = node_get(map, "failed_spines");

	if (failed && c->fabric->graph)
		return ft_fail(err, &at->mark,
			       "failed_spines: leave the switch out "
			       "of the drawing instead");
	if (failed &&
	    ft_topology_spines_lost(&c->topology, failed) >= c->topology.leaf_spines)
		return ft_fail(err, &at->mark,
			       "failed_spines: a leaf reaches %lld of %lld spine "
			       "switches, and some must be left",
			       (long long)c->topology.leaf_spines,
			       (long long)c->topology.spine);
	return true;
}

/* Whose modules, where the cluster says other than its fabric. */
static bool read_optics(struct owned *owned, struct reader *r)
{
	static const char *const makers[] = { "generic", "nvidia" };

	if (read_has(r, "optics"))
		owned->fabric->optics = makers[read_choice(r, "optics", makers, 2, 0)];
	return !r->failed;
}

/* What products ask for at the full clock, limit x sustained^-e, is the chip's: under another
 * limit they run at a clock of which the power, as clock^e, is as much less. Above 1 is a rate
 * whose limit is more than they ask for. */
static void follow_limit(struct ft_gpu *gpu, const struct ft_number *e)
{
	for (int d = 0; d < FT_DTYPES; d++) {
		struct ft_number *rate = &gpu->sustained[d];
		double was = gpu->sustained_at_w[d], more, steep, flat;

		if (!(was > 0) || was == gpu->limit_w.value)
			continue;
		more = gpu->limit_w.value / was;
		steep = pow(more, 1 / e->low);
		flat = pow(more, 1 / e->high);
		rate->value *= pow(more, 1 / e->value);
		rate->low *= fmin(steep, flat);
		rate->high *= fmax(steep, flat);
		gpu->sustained_at_w[d] = 0;
	}
}

/* Fibre wants modules at its ends, copper and active cables have their own. */
static bool check_cables(const struct ft_cluster *c, const struct ft_mark *at,
			 struct ft_error *err)
{
	const struct ft_fabric *f = c->fabric;

	for (size_t i = 0; i < c->parts->n; i++) {
		const struct ft_part_line *l = &c->parts->line[i];
		bool node = !strcmp(l->role, "cables node to leaf");
		bool copper = node ? f->copper_node : f->copper_leaf;
		const char *end = node ? "node" : "leaf";

		if (strncmp(l->role, "cables ", 7) || !l->part ||
		    !*f->optic_leaf_item ||
		    !(copper ? l->part->takes_modules : l->part->own_ends))
			continue;
		return ft_fail(
			err, at,
			copper ? "fabric %s: %s has modules at its ends, which "
				 "links.copper_%s leaves out; name the copper in "
				 "links.cable_%s_item, dac-400g" :
				 "fabric %s: %s has its own ends, but modules are "
				 "bought: say links.copper_%s: true, or another "
				 "links.cable_%s_item",
			f->name, l->item, end, node ? end : "switch");
	}
	return true;
}

/* The switches and links that so many nodes take. */
static bool lay_out(struct owned *owned, const struct ft_mark *at, struct ft_error *err)
{
	struct ft_cluster *c = &owned->cluster;
	struct ft_error told;

	if (owned->fabric->wiring == FT_WIRING_NONE && c->domain_ranks < c->ranks &&
	    c->nodes > 1)
		return ft_fail(err, at,
			       "fabric none connects no nodes, but %lld GPUs take "
			       "%lld nodes %s",
			       (long long)c->gpus, (long long)c->nodes,
			       owned->node->name);
	if (ft_topology_build(owned->fabric, c->nodes, c->nics_per_node, c->ufm_ports,
			      &c->topology, err))
		return true;
	told = *err;
	return ft_fail(err, &c->gpus_mark, "%s", told.text);
}

static bool load(struct owned *owned, struct reader *r, int rows, struct ft_error *err)
{
	const struct node *imperfections = read_node(r, "imperfections");
	const struct node *site = value_or(&owned->mem, r, "site", "standard");
	struct ft_cluster *c = &owned->cluster;
	struct ft_mark at;

	reader_allow(r, "gpus"); /* nobody means "gpu" by it */
	if (!read_need(r, "gpu") || !read_need(r, "gpus"))
		return false;
	c->gpus = read_int(r, "gpus", 1, LIMIT_GPUS, 1);
	c->gpus_mark = reader_mark(r, "gpus");
	c->ufm_ports = read_int(r, "ufm_ports", 0, 1 << 16, 0);
	if (r->failed || !load_parts(owned, r, rows, err) || !read_optics(owned, r) ||
	    !reader_close(r))
		return false;
	if (!read_imperfections(&owned->mem, imperfections, c->gpus,
				owned->node->gpu_speed_spread_frac.value,
				&c->imperfections, err))
		return false;
	set_sizes(owned);
	join_domains(owned);
	at = reader_mark(r, "fabric");
	if (!fit_fabric(owned, &at, err))
		return false;
	if (!lay_out(owned, &at, err))
		return false;
	if (!check_spines(c, imperfections, err))
		return false;
	c->parts = parts_build(&owned->mem, c, site, err);
	if (!c->parts || !check_cables(c, &at, err))
		return false;
	follow_limit(owned->gpu, &ft_parts_gpu(c->parts)->clock_exponent);
	return true;
}

struct ft_cluster *ft_cluster_load(const struct node *node, struct ft_error *err)
{
	return ft_cluster_load_rows(node, FT_GPU_ALL_ROWS, err);
}

struct ft_cluster *ft_cluster_load_rows(const struct node *node, int rows,
					struct ft_error *err)
{
	return ft_cluster_load_like(node, rows, NULL, err);
}

struct ft_cluster *ft_cluster_load_like(const struct node *node, int rows,
					const struct ft_cluster *other,
					struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct owned *owned = ARENA_NEW(&mem, struct owned);
	struct reader r = reader_open(node, err);
	bool ok;

	owned->mem = mem;
	if (other) {
		owned->gpu = ((const struct owned *)other)->gpu;
		owned->borrowed = true;
	}
	ok = !r.failed && load(owned, &r, rows, err);
	if (ok)
		return &owned->cluster;
	release(owned);
	return NULL;
}

void ft_cluster_free(struct ft_cluster *cluster)
{
	if (cluster)
		release((struct owned *)cluster);
}
