/* cost/bom.c - the bill of materials of a cluster's exact topology */
#include <string.h>

#include "base/arena.h"
#include "cost/price.h"
#include "foretoken/cost.h"

struct owned {
	struct ft_bom bom;
	struct arena mem;
};

/* A bill being written; a missing price stops it. */
struct bill {
	struct arena *mem;
	const struct ft_prices *prices;
	struct ft_bom *bom;
	size_t cap;
	struct ft_error *err;
	bool failed;
};

static struct ft_bom_item *put(struct bill *b, const char *what, int64_t count,
			       const struct ft_price *price)
{
	struct ft_bom *bom = b->bom;
	struct ft_bom_item *line;
	const struct ft_number *usd = &price->usd;
	double n = (double)count;

	if (bom->n_items == b->cap)
		bom->item = ARENA_GROW(b->mem, bom->item, &b->cap);
	line = &bom->item[bom->n_items++];
	*line = (struct ft_bom_item){
		.item = arena_text(b->mem, price->item),
		.what = what,
		.count = count,
		.unit_usd = usd->value,
		.total_usd = n * usd->value,
		.low_usd = n * usd->low,
		.high_usd = n * usd->high,
		.source = arena_text(b->mem, usd->from->source),
		.address = arena_text(b->mem, usd->from->address),
		.date = arena_text(b->mem, usd->from->date),
		.vendor = arena_text(b->mem, price->vendor),
		.book = arena_text(b->mem, price->book),
		.kind = price->kind,
	};
	return line;
}

/* One line. A count or an item of nothing is left out. */
static struct ft_bom_item *add(struct bill *b, const char *item, const char *what,
			       int64_t count, bool network)
{
	const struct ft_price *price;
	struct ft_bom_item *line;

	if (b->failed || !count || !*item)
		return NULL;
	price = price_find(b->prices, item);
	if (!price) {
		ft_fail(b->err, &b->prices->mark,
			"price book %s has no price for %s; give one with --price "
			"%s=USD, or in a book of yours that extends it",
			b->prices->name, item, item);
		b->failed = true;
		return NULL;
	}
	line = put(b, what, count, price);
	line->network = network;
	return line;
}

/* Servers, and their NICs where the book lists them apart: the server's price
 * includes them, so they come off it. */
static void add_servers(struct bill *b, const struct ft_cluster *c)
{
	const struct ft_node *node = c->node;
	int64_t per = node->nodes_per_price_item;
	int64_t count = (c->nodes + per - 1) / per;
	bool networked = c->topology.tiers > 0 && *c->fabric->nic_item;
	struct ft_bom_item *server, *nics;
	double off_usd;

	server = add(b, node->price_item, per > 1 ? "rack" : "server", count, false);
	if (!server || !networked || !b->prices->nics_apart)
		return;
	nics = add(b, c->fabric->nic_item, "NIC", c->nodes * c->nics_per_node, true);
	if (!nics)
		return;
	server = &b->bom->item[0]; /* add may have moved the lines */
	off_usd = nics->total_usd / (double)count;
	server->unit_usd -= off_usd;
	server->total_usd -= nics->total_usd;
	server->low_usd -= nics->total_usd;
	server->high_usd -= nics->total_usd;
}

static void add_network(struct bill *b, const struct ft_cluster *c)
{
	const struct ft_topology *t = &c->topology;
	const struct ft_fabric *f = c->fabric;

	add(b, f->switch_item, "leaf switch", t->leaf, true);
	add(b, f->switch_item, "spine switch", t->spine, true);
	add(b, f->switch_item, "core switch", t->core, true);
	add(b, f->optic_node_item, "optics in nodes", t->optics_node, true);
	add(b, f->optic_leaf_item, "optics in switches", t->optics_switch, true);
	add(b, f->cable_node_item, "cables node to leaf", t->cables_node_leaf, true);
	add(b, f->cable_leaf_item, "cables between switches",
	    t->cables_leaf_spine + t->cables_spine_core, true);
	/* Licensed by endpoint where the fabric is managed. */
	if (c->ufm_ports)
		add(b, "ufm-licence", "fabric manager licences", t->endpoints, true);
}

static void add_allowances(struct bill *b, const struct ft_cluster *c)
{
	const struct ft_prices *p = b->prices;

	if (b->failed)
		return;
	if (p->storage.usd.high > 0)
		put(b, "storage, by GPU", c->gpus, &p->storage);
	if (p->management.usd.high > 0)
		put(b, "front-end network, management, racks, by GPU", c->gpus,
		    &p->management);
}

/* Totals, what they stand on, and of when the prices are. */
static void add_up(struct ft_bom *bom)
{
	bom->first_date = bom->last_date = "";
	for (size_t i = 0; i < bom->n_items; i++) {
		const struct ft_bom_item *line = &bom->item[i];

		bom->total_usd += line->total_usd;
		bom->low_usd += line->low_usd;
		bom->high_usd += line->high_usd;
		if (line->network)
			bom->network_usd += line->total_usd;
		bom->by_kind_usd[line->kind] += line->total_usd;
		if (!*line->date) /* given */
			continue;
		if (!*bom->first_date || strcmp(line->date, bom->first_date) < 0)
			bom->first_date = line->date;
		if (strcmp(line->date, bom->last_date) > 0)
			bom->last_date = line->date;
	}
}

/* Rented: the GPUs, at USD per hour. */
static void add_rent(struct bill *b, const struct ft_cluster *c)
{
	const struct ft_prices *p = b->prices;

	b->bom->rented = true;
	for (size_t i = 0; i < p->n_rents; i++)
		if (!strcmp(p->rent[i].item, c->gpu->name)) {
			put(b, "GPUs, by the hour", c->gpus, &p->rent[i]);
			return;
		}
	ft_fail(b->err, &b->prices->mark,
		"price book %s has no rent of %s; give cost.usd_per_gpu_hour", p->name,
		c->gpu->name);
	b->failed = true;
}

static void add_purchase(struct bill *b, const struct ft_cluster *c)
{
	add_servers(b, c);
	if (c->topology.tiers)
		add_network(b, c);
	add_allowances(b, c);
}

struct ft_bom *ft_bom_build(const struct ft_cluster *cluster,
			    const struct ft_prices *prices, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct owned *owned = ARENA_NEW(&mem, struct owned);
	struct ft_bom *bom = &owned->bom;
	struct bill b = { .mem = &mem, .prices = prices, .bom = bom, .err = err };

	if (prices->n_rents)
		add_rent(&b, cluster);
	else
		add_purchase(&b, cluster);
	if (b.failed) {
		arena_release(&mem);
		return NULL;
	}
	bom->book = arena_text(&mem, prices->name);
	bom->book_date = arena_text(&mem, prices->date);
	bom->buyer = arena_text(&mem, prices->buyer);
	add_up(bom);
	owned->mem = mem;
	return bom;
}

void ft_bom_free(struct ft_bom *bom)
{
	struct arena mem;

	if (!bom)
		return;
	mem = ((struct owned *)bom)->mem;
	arena_release(&mem);
}
