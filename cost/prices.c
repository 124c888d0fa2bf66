/* cost/prices.c - the lines of a price book, read and looked up */
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/plain.h"
#include "base/reader.h"
#include "base/text.h"
#include "cost/book.h"
#include "cost/factors.h"
#include "cost/price.h"
#include "foretoken/cost.h"

struct owned {
	struct ft_prices prices;
	struct arena mem;
};

struct reading {
	struct arena *mem;
	const struct books *books;
	struct ft_prices *to;
	struct ft_error *err;
	bool rents; /* a book of rents */
};

const char *ft_price_kind_name(enum ft_price_kind kind)
{
	static const char *const names[] = { "quoted", "derived", "guessed", "given" };

	return names[kind];
}

static struct ft_number read_figure(struct reader *r, struct arena *mem,
				    const char *key, enum dimension dim)
{
	struct ft_number n = read_number(r, mem, key, dim);

	reader_range(r, key, &n, 0);
	return n;
}

/* What is the same of all prices, once usd is read; line is where it stands. */
static void finish_price(struct reader *r, const struct reading *in, const char *key,
			 const struct node *line, struct ft_price *price)
{
	reader_range(r, key, &price->usd, 0);
	if (r->failed)
		return;
	price->book = books_whose(in->books, line);
	price->kind = price->usd.from->kind == FT_DERIVED ? FT_PRICE_DERIVED :
		      price->usd.from->kind == FT_ASSUMED ? FT_PRICE_GUESSED :
							    FT_PRICE_QUOTED;
	if (!*price->usd.from->date)
		reader_fail(
			r, key,
			"has no date; the provenance of a price needs one, as date: 2026-11");
}

/* What costs nothing by mistake would win every comparison; what another price includes would be paid twice. */
static void need_price(struct reader *r, bool rents, bool included,
		       const struct ft_number *usd)
{
	if (!r->failed && included && usd->value > 0)
		reader_fail(
			r, "included",
			"is true, and the item has a price of its own: say usd: 0 USD, "
			"or leave it out");
	if (!r->failed && !included && !(usd->value > 0))
		reader_fail(r, "usd", "is zero%s",
			    rents ? "" :
				    "; what the price of another item includes says "
				    "included: true");
}

static bool read_price(const struct reading *in, const char *item,
		       const struct node *node, struct ft_price *price)
{
	const struct node *under = in->books->book[0].under;
	struct reader r = reader_open(node, in->err);

	read_provenance(&r, in->mem);
	price->item = item;
	price->added = under && !node_get(node_get(under, "prices"), item) &&
		       !node_get(node_get(under, "rent"), item);
	price->usd =
		read_number(&r, in->mem, "usd", in->rents ? DIM_USD_PER_HOUR : DIM_USD);
	price->vendor = read_text(&r, "vendor", "");
	need_price(&r, in->rents, !in->rents && read_bool(&r, "included", false),
		   &price->usd);
	finish_price(&r, in, "usd", node, price);
	return reader_close(&r);
}

/* A map of items to prices; NULL on error. */
static struct ft_price *read_prices(const struct reading *in, const struct node *map)
{
	struct ft_price *price;

	if (map->kind != NODE_MAP) {
		ft_fail(in->err, &map->mark, "should be a map of items");
		return NULL;
	}
	price = ARENA_ARRAY(in->mem, map->n + 1, struct ft_price);
	for (size_t i = 0; i < map->n; i++)
		if (!text_is_name(map->key[i])) {
			ft_fail(in->err, &map->key_mark[i], "'%.70s' " TEXT_NAME_RULE,
				map->key[i], (int)LIMIT_NAME_BYTES);
			return NULL;
		} else if (!read_price(in, map->key[i], map->item[i], &price[i]))
			return NULL;
	return price;
}

/* An allowance for each GPU: a price whose item has a section of its own. */
static void read_allowance(struct reader *r, const struct reading *in, const char *key,
			   struct ft_price *price)
{
	const struct node *line = read_node(r, key);

	price->vendor = "";
	if (!line)
		return;
	price->usd = read_number(r, in->mem, key, DIM_USD);
	if (!r->failed && !(price->usd.value > 0))
		reader_fail(
			r, key,
			"is zero, and would stand for nothing: leave it out, and say "
			"included: true of parts whose price another item includes");
	finish_price(r, in, key, line, price);
}

/* The figures of a block that stand in another book. */
static void note_taken(const struct reading *in, const struct node *block)
{
	struct ft_prices *p = in->to;
	struct ft_taken *list =
		ARENA_ARRAY(in->mem, p->n_taken + block->n, struct ft_taken);

	if (p->n_taken)
		memcpy(list, p->taken, p->n_taken * sizeof(*list));
	p->taken = list;
	for (size_t i = 0; i < block->n; i++) {
		const char *book = books_whose(in->books, block->item[i]);

		/* allowances are lines of the bill, with their book */
		if (strcmp(book, p->name) != 0 &&
		    strcmp(block->key[i], "provenance") != 0 &&
		    !text_ends_with(block->key[i], "_per_gpu"))
			list[p->n_taken++] = (struct ft_taken){ block->key[i], book };
	}
}

static bool read_facility(const struct reading *in, const struct node *node)
{
	struct reader r = reader_open(node, in->err);
	struct arena *mem = in->mem;
	struct ft_prices *p = in->to;

	read_provenance(&r, mem);
	if (node_get(r.map, "other_power_frac"))
		reader_fail(&r, "other_power_frac",
			    "has no place here: storage, management and front end "
			    "are parts, whose power hw/parts knows");
	if (!in->rents) {
		p->colocation_usd_per_kw_month =
			read_figure(&r, mem, "colocation", DIM_USD_PER_KW_MONTH);
		p->colocation_includes_power =
			read_bool(&r, "colocation_includes_power", false);
		if (p->colocation_includes_power)
			reader_allow(&r, "electricity"); /* of what is extended */
		else
			p->electricity_usd_per_kwh =
				read_figure(&r, mem, "electricity", DIM_USD_PER_KWH);
	}
	p->pue = read_figure(&r, mem, "pue", DIM_NONE);
	reader_bound(&r, "pue", &p->pue, 1, 10);
	reader_range(&r, "pue", &p->pue, 1);
	return reader_close(&r);
}

static bool read_operation(const struct reading *in, const struct node *node)
{
	struct reader r = reader_open(node, in->err);
	struct arena *mem = in->mem;
	struct ft_prices *p = in->to;

	read_provenance(&r, mem);
	p->storage.item = "storage";
	p->management.item = "management";
	if (!in->rents) {
		p->maintenance_frac =
			read_figure(&r, mem, "maintenance_frac", DIM_FRAC);
		read_allowance(&r, in, "storage_per_gpu", &p->storage);
		read_allowance(&r, in, "management_per_gpu", &p->management);
	}
	p->failure_factor = read_figure(&r, mem, "failure_factor", DIM_NONE);
	p->checkpoint_s = read_figure(&r, mem, "checkpoint", DIM_S);
	p->restart_s = read_figure(&r, mem, "restart", DIM_S);
	p->repair_s = read_figure(&r, mem, "repair", DIM_S);
	p->failover_s = read_figure(&r, mem, "failover", DIM_S);
	p->flap_s = read_figure(&r, mem, "flap", DIM_S);
	return reader_close(&r);
}

/* What is bought, or what is rented: a book has one of the two. */
static bool read_items(struct reading *in, const struct node *items)
{
	struct ft_price *price = read_prices(in, items);

	if (in->rents && price && !items->n)
		return ft_fail(in->err, &items->mark, "rent: names no GPU");
	in->to->mark = items->mark;
	*(in->rents ? &in->to->rent : &in->to->price) = price;
	*(in->rents ? &in->to->n_rents : &in->to->n_prices) = price ? items->n : 0;
	return price != NULL;
}

static bool read_all(struct reading *in)
{
	const struct book *book = &in->books->book[0];
	struct ft_prices *prices = in->to;
	struct reader r = reader_open(book->map, in->err);
	struct node *items, *facility, *operation;

	read_provenance(&r, in->mem);
	prices->from = r.from;
	prices->name = book->name;
	prices->date = book->date;
	prices->title = read_text(&r, "title", prices->name);
	prices->buyer = read_text(&r, "buyer", "");
	in->rents = read_has(&r, "rent");
	if (!in->rents)
		prices->nics_apart = read_bool(&r, "nics_apart", false);
	reader_allow(&r, "name");
	reader_allow(&r, "date");
	reader_allow(&r, "extends");
	items = read_need(&r, in->rents ? "rent" : "prices");
	facility = read_need(&r, "facility");
	operation = read_need(&r, "operation");
	if (!reader_close(&r) || !read_items(in, items) ||
	    !read_facility(in, facility) || !read_operation(in, operation))
		return false;
	note_taken(in, facility);
	note_taken(in, operation);
	return true;
}

struct ft_prices *ft_prices_load(const char *name, const struct ft_mark *at,
				 struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct owned *owned = ARENA_NEW(&mem, struct owned);
	struct books books;
	struct reading in = { &mem, &books, &owned->prices, err, false };

	owned->prices.factors = factors_load(&mem, err);
	if (!owned->prices.factors || !books_read(&mem, &books, name, at, err) ||
	    !read_all(&in)) {
		arena_release(&mem);
		return NULL;
	}
	owned->prices.digest = mem.read;
	owned->mem = mem;
	return &owned->prices;
}

void ft_prices_free(struct ft_prices *prices)
{
	struct arena mem;

	if (!prices)
		return;
	mem = ((struct owned *)prices)->mem;
	arena_release(&mem);
}

const struct ft_price *price_find(const struct ft_prices *prices, const char *item)
{
	for (size_t i = 0; i < prices->n_prices; i++)
		if (!strcmp(prices->price[i].item, item))
			return &prices->price[i];
	return NULL;
}

size_t ft_prices_figures(const struct ft_prices *p,
			 struct ft_figure figure[FT_FIGURES_MOST])
{
	const struct ft_figure all[FT_FIGURES_MOST] = {
		{ "colocation", "USD/kW-month", &p->colocation_usd_per_kw_month },
		{ "electricity", "USD/kWh", &p->electricity_usd_per_kwh },
		{ "pue", "", &p->pue },
		{ "maintenance_frac", "of the capital a year", &p->maintenance_frac },
		{ "failure_factor", "", &p->failure_factor },
		{ "checkpoint", "s", &p->checkpoint_s },
		{ "restart", "s", &p->restart_s },
		{ "repair", "s", &p->repair_s },
		{ "failover", "s", &p->failover_s },
		{ "flap", "s", &p->flap_s },
	};
	size_t n = 0;

	for (size_t i = 0; i < FT_FIGURES_MOST; i++)
		if (all[i].is->from)
			figure[n++] = all[i];
	return n;
}
