/* hw/site.c - a site's file: what stands around the servers */
#include "base/arena.h"
#include "base/extends.h"
#include "base/reader.h"
#include "hw/parts.h"

static struct reader open_block(struct reader *outer, const char *key)
{
	struct reader r = reader_open(read_need(outer, key), outer->err);

	r.failed = r.failed || outer->failed;
	r.from = outer->from;
	return r;
}

static double within(struct reader *r, const char *key, enum dimension dim,
		     double least, double most)
{
	double v = read_has(r, key) ? read_quantity(r, key, dim, 0) : 0;

	if (!r->failed && !(v >= least && v <= most))
		reader_fail(r, key, "is not between %g and %g, in units without prefix",
			    least, most);
	return v;
}

static void read_front_end(struct reader *outer, struct site *to)
{
	struct reader r = open_block(outer, "front_end");

	to->front_end.ports_per_node = read_int(&r, "ports_per_node", 0, 16, 2);
	to->front_end.switch_item = read_name(&r, "switch", "");
	to->front_end.radix = read_int(&r, "radix", 2, 1024, 64);
	to->front_end.oversubscription =
		within(&r, "oversubscription", DIM_NONE, 1, 64);
	to->front_end.optic_item = read_name(&r, "optic", "");
	to->front_end.cable_item = read_name(&r, "cable", "");
	to->front_end.hall_nodes = read_int(&r, "hall_nodes", 2, 65536, 16384);
	outer->failed = !reader_close(&r) || outer->failed;
}

static void read_servers(struct reader *outer, struct site *to)
{
	struct reader r = open_block(outer, "storage");
	struct reader m;

	to->storage.item = read_name(&r, "item", "");
	to->storage.per_gpu_bytes = within(&r, "per_gpu", DIM_BYTES, 0, 1e14);
	to->storage.per_server_bytes = within(&r, "per_server", DIM_BYTES, 1e12, 1e18);
	to->storage.ports_per_server = read_int(&r, "ports_per_server", 1, 16, 2);
	outer->failed = !reader_close(&r) || outer->failed;
	m = open_block(outer, "management");
	to->management.item = read_name(&m, "item", "");
	to->management.servers = read_int(&m, "servers", 0, 1000, 3);
	to->management.nodes_per_server =
		read_int(&m, "nodes_per_server", 1, 1 << 20, 64);
	outer->failed = !reader_close(&m) || outer->failed;
	m = open_block(outer, "out_of_band");
	to->out_of_band.switch_item = read_name(&m, "switch", "");
	to->out_of_band.ports = read_int(&m, "ports", 1, 1024, 48);
	outer->failed = !reader_close(&m) || outer->failed;
}

static void read_racks(struct reader *outer, struct site *to)
{
	struct reader r = open_block(outer, "racks");

	to->racks.item = read_name(&r, "item", "");
	to->racks.pdu_item = read_name(&r, "pdu", "");
	to->racks.pdus = read_int(&r, "pdus", 0, 8, 2);
	to->racks.units = within(&r, "units", DIM_NONE, 12, 100);
	to->racks.power_w = within(&r, "power", DIM_W, 1000, 1e7);
	to->racks.width_m = within(&r, "width", DIM_M, 0.1, 100);
	to->racks.row = read_int(&r, "row", 1, 1000, 20);
	to->racks.pitch_m = within(&r, "pitch", DIM_M, 0.1, 1000);
	to->racks.slack_m = within(&r, "slack", DIM_M, 0, 1000);
	outer->failed = !reader_close(&r) || outer->failed;
}

bool site_read(struct arena *mem, const struct node *value, struct site *to,
	       struct ft_error *err)
{
	struct node *map = extends_value(mem, "hw/sites", value, err);
	const struct node *parts;
	struct reader r;

	*to = (struct site){ 0 };
	if (!map)
		return false;
	r = reader_open(map, err);
	reader_allow(&r, "extends");
	read_provenance(&r, mem);
	to->name = read_name(&r, "name", "");
	to->title = read_text(&r, "title", to->name);
	read_front_end(&r, to);
	read_servers(&r, to);
	read_racks(&r, to);
	to->integration_item = read_name(&r, "integration", "");
	to->spares_frac = read_number_or(&r, mem, "spares_frac", DIM_FRAC, 0);
	reader_bound(&r, "spares_frac", &to->spares_frac, 0, 1);
	parts = read_node(&r, "parts");
	return reader_close(&r) && catalogue_read(mem, parts, &to->catalogue, err);
}
