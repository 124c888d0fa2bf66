/* cost/bom.c - the bill of materials: the table of parts at a book's prices */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "cost/goodput.h"
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

/* The price of an item; NULL, with the error, when the book has none. */
static const struct ft_price *price_of(struct bill *b, const char *item)
{
	const struct ft_price *price = price_find(b->prices, item);

	if (price)
		return price;
	ft_fail(b->err, &b->prices->mark,
		"price book %s has no price for %s; give one with --price "
		"%s=USD, or in a book of yours that extends it",
		b->prices->name, item, item);
	b->failed = true;
	return NULL;
}

/* Is the line in an allowance of the book, by GPU? */
static bool allowed_for(const struct ft_prices *p, enum ft_part_class class)
{
	bool around = class == FT_PART_FRONT_END || class == FT_PART_MANAGEMENT ||
		      class == FT_PART_FACILITY || class == FT_PART_SERVICE;

	return (class == FT_PART_STORAGE && p->storage.usd.high > 0) ||
	       (around && p->management.usd.high > 0);
}

/* Adapters that the book lists apart come off the server's price, which includes them. */
static void take_off(struct bill *b, const struct ft_bom_item *nics)
{
	struct ft_bom_item *server = &b->bom->item[0];
	double off_usd = nics->total_usd;

	b->bom->apart_usd += off_usd;
	server->unit_usd -= off_usd / (double)server->count;
	server->total_usd -= off_usd;
	server->low_usd -= off_usd;
	server->high_usd -= off_usd;
	if (server->low_usd > 0)
		return;
	ft_fail(b->err, &b->prices->mark,
		"price book %s lists adapters apart, and these cost USD %.0f of each "
		"server: the price of %s includes them, and has to be above that",
		b->prices->name, off_usd / (double)server->count, server->item);
	b->failed = true;
}

static void add_line(struct bill *b, const struct ft_part_line *l)
{
	bool apart = l->included && l->part_class == FT_PART_NETWORK &&
		     b->prices->nics_apart;
	const struct ft_price *price;
	struct ft_bom_item *line;

	if ((l->included && !apart) || allowed_for(b->prices, l->part_class))
		return;
	price = price_of(b, l->item);
	if (!price)
		return;
	line = put(b, l->role, l->count, price);
	line->part_class = l->part_class;
	line->network = l->part_class == FT_PART_NETWORK;
	if (apart)
		take_off(b, line);
}

static void add_allowances(struct bill *b, const struct ft_cluster *c)
{
	const struct ft_prices *p = b->prices;

	if (p->storage.usd.high > 0)
		put(b, "storage, by GPU", c->gpus, &p->storage)->part_class =
			FT_PART_STORAGE;
	if (p->management.usd.high > 0)
		put(b, "front-end network, management, racks, by GPU", c->gpus,
		    &p->management)
			->part_class = FT_PART_MANAGEMENT;
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
		bom->by_class_usd[line->part_class] += line->total_usd;
		if (!*line->date) /* given */
			continue;
		if (!*bom->first_date || strcmp(line->date, bom->first_date) < 0)
			bom->first_date = line->date;
		if (strcmp(line->date, bom->last_date) > 0)
			bom->last_date = line->date;
	}
}

static bool has_line(const struct ft_bom *bom, const char *item)
{
	for (size_t i = 0; i < bom->n_items; i++)
		if (!strcmp(bom->item[i].item, item))
			return true;
	return false;
}

/* Prices that the scenario gives, or a book beside those of the one it extends, of what a server's price includes, of
 * another cluster's parts, or under a name that is misspelt: no dollar depends on them. */
static const char *given_in_vain(const struct bill *b)
{
	const struct ft_prices *prices = b->prices;
	size_t n = prices->n_prices + prices->n_rents;
	const char *items = "";

	for (size_t i = 0; i < n; i++) {
		const struct ft_price *p = i < prices->n_prices ?
						   &prices->price[i] :
						   &prices->rent[i - prices->n_prices];

		if ((p->kind == FT_PRICE_GIVEN || p->added) &&
		    !has_line(b->bom, p->item))
			items = arena_printf(b->mem, "%s%s%s", items,
					     *items ? ", " : "", p->item);
	}
	return items;
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
	if (!*c->node->price_item) {
		ft_fail(b->err, &c->gpus_mark,
			"node %s names no item of a price book (price: {item: NAME}), "
			"and would be free",
			c->node->name);
		b->failed = true;
	}
	for (size_t i = 0; !b->failed && i < c->parts->n; i++)
		add_line(b, &c->parts->line[i]);
	if (!b->failed)
		add_allowances(b, c);
}

/* Servers and racks are sold whole: what of them the job leaves over is paid for. */
static const char *idle_of(struct arena *mem, const struct ft_cluster *c)
{
	bool racks = c->node->nodes_per_price_item > 1;

	for (size_t i = 0; i < c->parts->n; i++) {
		const struct ft_part_line *l = &c->parts->line[i];

		if (l->gpu && l->idle > 0)
			return arena_printf(
				mem,
				"%" PRId64 " of the %" PRId64
				" GPUs that are bought stand%s idle, as %s are sold "
				"whole; USD per GPU-hour is of the %" PRId64
				" that work%s.",
				l->idle, l->count, l->idle == 1 ? "s" : "",
				racks ? "racks" : "servers", c->gpus,
				c->gpus == 1 ? "s" : "");
	}
	return "";
}

struct ft_bom *ft_bom_build(const struct ft_cluster *cluster,
			    const struct ft_prices *prices, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct owned *owned = ARENA_NEW(&mem, struct owned);
	struct ft_bom *bom = &owned->bom;
	struct bill b = { .mem = &mem, .prices = prices, .bom = bom, .err = err };

	if (cluster->parts->unknown) {
		ft_fail(err, &cluster->gpus_mark,
			"nothing is known of the part %s, not even its power; describe it as cluster.site: {extends: %s, parts: {%s: {class: "
			"network, power: 800 W}}}",
			cluster->parts->unknown, cluster->parts->site,
			cluster->parts->unknown);
		arena_release(&mem);
		return NULL;
	}
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
	bom->job_failures_per_hour = goodput_failures_per_hour(cluster, prices);
	add_up(bom);
	bom->in_vain = given_in_vain(&b);
	bom->idle = bom->rented ? "" : idle_of(&mem, cluster);
	owned->mem = mem;
	return bom;
}

struct ft_bom *ft_bom_bought(const struct ft_cluster *cluster,
			     const struct ft_prices *prices, struct ft_error *err)
{
	if (!prices->n_rents)
		return ft_bom_build(cluster, prices, err);
	ft_fail(err, NULL,
		"there is no bill of a rented cluster: %s is a book of rents",
		prices->name);
	return NULL;
}

void ft_bom_free(struct ft_bom *bom)
{
	struct arena mem;

	if (!bom)
		return;
	mem = ((struct owned *)bom)->mem;
	arena_release(&mem);
}
