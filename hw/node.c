/* hw/node.c - a node's file: what is in one server and how it is joined */
#include <string.h>

#include "base/arena.h"
#include "base/extends.h"
#include "base/plain.h"
#include "base/reader.h"
#include "base/text.h"
#include "foretoken/hw.h"
#include "hw/scale_ups.h"

struct owned {
	struct ft_node node;
	struct arena mem;
};

/* NVLink with and without reduction in the switch is one. */
static bool one_fabric(const char *a, const char *b)
{
	return !strcmp(a, b) ||
	       (text_begins_with(a, "nvlink") && text_begins_with(b, "nvlink"));
}

/* Another fabric than that of the node that is extended, at that one's bandwidth. */
static bool keeps_another_bandwidth(const struct node *node, const char *fabric)
{
	const struct node *base =
		node->below ? node_get(node->below, "scale_up") : NULL;
	const struct node *was = base ? node_get(base, "fabric") : NULL;
	const struct node *old = base ? node_get(base, "bandwidth") : NULL;
	const struct node *now = node_get(node_get(node, "scale_up"), "bandwidth");

	return was && was->text && !one_fabric(was->text, fabric) && old && now &&
	       !strcmp(old->mark.file, now->mark.file) &&
	       old->mark.line == now->mark.line;
}

static void read_scale_up(struct arena *mem, struct reader *outer, struct ft_node *node)
{
	struct reader r = reader_open(read_need(outer, "scale_up"), outer->err);

	r.failed = r.failed || outer->failed;
	r.from = outer->from;
	read_provenance(&r, mem);
	node->scale_up = scale_ups[read_choice(&r, "fabric", scale_ups, SCALE_UPS, 0)];
	node->scale_up_gpus = read_int(&r, "gpus", 1, 4096, node->gpus);
	node->scale_up_bytes_per_s =
		read_positive(&r, mem, "bandwidth", DIM_BYTES_PER_S);
	node->scale_up_switch = read_name(&r, "switch_item", "");
	node->scale_up_switches = read_int(&r, "switches", 1, 1024, 1);
	if (!r.failed && node->gpus % node->scale_up_gpus &&
	    node->scale_up_gpus % node->gpus)
		reader_fail(&r, "gpus",
			    "%lld GPUs of a domain are neither a part of the %lld of a "
			    "node nor several nodes'",
			    (long long)node->scale_up_gpus, (long long)node->gpus);
	if (!r.failed && keeps_another_bandwidth(outer->map, node->scale_up))
		reader_fail(&r, "fabric",
			    "%s needs a bandwidth of its own: that of the node it "
			    "extends is of another fabric",
			    node->scale_up);
	outer->failed = !reader_close(&r) || outer->failed;
}

static void read_dpus(struct reader *outer, struct ft_node *node)
{
	const struct node *map = read_node(outer, "dpus");
	struct reader r = reader_open(map, outer->err);

	r.failed = r.failed || outer->failed;
	node->dpu_item = read_name(&r, "item", "");
	node->dpus = map ? read_int(&r, "count", 1, 64, 1) : 0;
	outer->failed = !reader_close(&r) || outer->failed;
}

static void read_nics(struct arena *mem, struct reader *outer, struct ft_node *node)
{
	struct reader r = reader_open(read_need(outer, "nics"), outer->err);

	r.failed = r.failed || outer->failed;
	r.from = outer->from;
	read_provenance(&r, mem);
	node->nics = read_int(&r, "count", 1, 64, 1);
	node->nic_bytes_per_s = read_positive(&r, mem, "speed", DIM_BYTES_PER_S);
	node->nic_ports_per_optic = read_int(&r, "ports_per_optic", 1, 4, 1);
	node->nic_links = read_int(&r, "links", 1, 16, 1);
	outer->failed = !reader_close(&r) || outer->failed;
}

static void read_price(struct reader *outer, struct ft_node *node)
{
	struct reader r = reader_open(read_need(outer, "price"), outer->err);

	r.failed = r.failed || outer->failed;
	node->price_item = read_name(&r, "item", "");
	node->nodes_per_price_item = read_int(&r, "nodes", 1, 1024, 1);
	outer->failed = !reader_close(&r) || outer->failed;
}

/* Unknown where the key is absent, and then without end: so that 0 would be the opposite of what it says. */
static struct ft_number read_memory_size(struct arena *mem, struct reader *r)
{
	const char *key = "host_memory_size";
	struct ft_number n = read_number_or(r, mem, key, DIM_BYTES, 0);

	if (!r->failed && read_has(r, key) && !(n.low > 0))
		reader_fail(r, key, "should be above 0; leave it out if it is unknown");
	return n;
}

static bool read_all(struct arena *mem, struct node *map, struct ft_node *node,
		     struct ft_error *err)
{
	struct reader r = reader_open(map, err);

	reader_allow(&r, "extends");
	read_provenance(&r, mem);
	node->name = read_name(&r, "name", "");
	node->title = read_text(&r, "title", node->name);
	node->gpu = read_text(&r, "gpu", "");
	node->gpus = read_need(&r, "gpus") ? read_int(&r, "gpus", 1, 1024, 1) : 1;
	node->host_factor = read_number(&r, mem, "host_factor", DIM_NONE);
	node->host_link_bytes_per_s =
		read_number_or(&r, mem, "host_link", DIM_BYTES_PER_S, 0);
	node->host_memory_bytes_per_s =
		read_number_or(&r, mem, "host_memory", DIM_BYTES_PER_S, 0);
	node->host_memory_bytes = read_memory_size(mem, &r);
	node->host_sockets = read_int(&r, "host_sockets", 1, 16, 1);
	node->gpu_speed_spread_frac =
		read_number_or(&r, mem, "gpu_speed_spread", DIM_FRAC, 0);
	node->power_w = read_number(&r, mem, "power", DIM_W);
	reader_range(&r, "power", &node->power_w, 0);
	node->rack_units = read_number_or(&r, mem, "rack_units", DIM_NONE, 0);
	reader_bound(&r, "rack_units", &node->rack_units, 0, 60);
	node->default_fabric = read_text(&r, "default_fabric", "none");
	read_scale_up(mem, &r, node);
	read_nics(mem, &r, node);
	read_dpus(&r, node);
	read_price(&r, node);
	node->from = r.from;
	return reader_close(&r);
}

struct ft_node *ft_node_load(const char *name, const struct ft_mark *at,
			     struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct node what = { .kind = NODE_SCALAR, .text = name };

	if (at)
		what.mark = *at;
	return ft_node_load_value(&what, err);
}

struct ft_node *ft_node_load_value(const struct node *what, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct owned *owned = ARENA_NEW(&mem, struct owned);
	struct node *map = extends_value(&mem, "hw/nodes", what, err);

	if (!map || !read_all(&mem, map, &owned->node, err)) {
		arena_release(&mem);
		return NULL;
	}
	owned->node.digest = mem.read;
	owned->mem = mem;
	return &owned->node;
}

void ft_node_free(struct ft_node *node)
{
	struct arena mem;

	if (!node)
		return;
	mem = ((struct owned *)node)->mem;
	arena_release(&mem);
}

bool ft_is_scale_up(const char *fabric)
{
	return text_place(fabric, scale_ups, SCALE_UPS) < SCALE_UPS;
}

double ft_node_memory_frac(const struct ft_node *node, double bytes)
{
	double holds = node->host_memory_bytes.value;

	return holds > 0 ? bytes / holds : 0;
}
