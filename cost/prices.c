/* cost/prices.c - price books: dated, sourced, one upon another */
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/file.h"
#include "base/plain.h"
#include "base/reader.h"
#include "base/text.h"
#include "cost/price.h"
#include "foretoken/cost.h"

struct owned {
	struct ft_prices prices;
	struct arena mem;
};

/* A book upon another: of prices, facility and operation each entry replaces
 * the other's whole, its source and date with it; all else replaces too. */
static struct node *lay(struct arena *mem, const struct node *under,
			const struct node *book)
{
	struct node *out = node_map(mem, &book->mark);

	for (size_t i = 0; i < under->n; i++)
		node_put(mem, out, under->key[i], &under->key_mark[i], under->item[i]);
	for (size_t i = 0; i < book->n; i++) {
		struct node *base = node_get(under, book->key[i]);
		struct node *over = book->item[i], *both;

		if (!base || base->kind != NODE_MAP || over->kind != NODE_MAP ||
		    !strcmp(book->key[i], "provenance")) {
			node_put(mem, out, book->key[i], &book->key_mark[i], over);
			continue;
		}
		both = node_map(mem, &over->mark);
		for (size_t k = 0; k < base->n; k++)
			node_put(mem, both, base->key[k], &base->key_mark[k],
				 base->item[k]);
		for (size_t k = 0; k < over->n; k++)
			node_put(mem, both, over->key[k], &over->key_mark[k],
				 over->item[k]);
		node_put(mem, out, book->key[i], &book->key_mark[i], both);
	}
	return out;
}

/* A book with the one it extends laid under it. */
static struct node *read_book(struct arena *mem, const char *name,
			      const struct ft_mark *at, int depth, struct ft_error *err)
{
	const char *path = file_find(mem, "cost/prices", name, at, err);
	struct node *book = path ? node_read_file(mem, path, err) : NULL;
	const struct node *extends = node_get(book, "extends");
	struct node *under;

	if (!extends)
		return book;
	if (extends->kind != NODE_SCALAR || depth > 8) {
		ft_fail(err, &extends->mark,
			"extends: should be the name of a book that does not "
			"extend this one");
		return NULL;
	}
	under = read_book(mem, extends->text, &extends->mark, depth + 1, err);
	return under ? lay(mem, under, book) : NULL;
}

static bool read_price(struct arena *mem, const char *item, const struct node *node,
		       struct ft_price *price, struct ft_error *err)
{
	struct reader r = reader_open(node, err);

	read_provenance(&r, mem);
	price->item = item;
	price->usd = read_number(&r, mem, "usd", DIM_USD);
	price->estimated = read_bool(&r, "estimated", false);
	if (!read_bool(&r, "included", false) && !r.failed && price->usd.value <= 0)
		reader_fail(&r, "usd",
			    "is zero; what the price of another item includes says "
			    "included: true");
	return reader_close(&r);
}

static bool read_prices(struct arena *mem, const struct node *map,
			struct ft_prices *prices, struct ft_error *err)
{
	if (map->kind != NODE_MAP)
		return ft_fail(err, &map->mark, "prices: should be a map of items");
	prices->n_prices = map->n;
	prices->price = ARENA_ARRAY(mem, map->n, struct ft_price);
	for (size_t i = 0; i < map->n; i++)
		if (!text_is_name(map->key[i]))
			return ft_fail(err, &map->key_mark[i],
				       "'%.70s' " TEXT_NAME_RULE, map->key[i],
				       (int)LIMIT_NAME_BYTES);
		else if (!read_price(mem, map->key[i], map->item[i], &prices->price[i],
				     err))
			return false;
	return true;
}

static bool read_facility(struct arena *mem, const struct node *node,
			  struct ft_prices *p, struct ft_error *err)
{
	struct reader r = reader_open(node, err);

	read_provenance(&r, mem);
	p->colocation_usd_per_kw_month =
		read_number(&r, mem, "colocation", DIM_USD_PER_KW_MONTH);
	p->colocation_includes_power =
		read_bool(&r, "colocation_includes_power", false);
	p->electricity_usd_per_kwh =
		read_number(&r, mem, "electricity", DIM_USD_PER_KWH);
	p->other_power_frac = read_number(&r, mem, "other_power_frac", DIM_FRAC);
	reader_bound(&r, "other_power_frac", &p->other_power_frac, 0, 0.95);
	return reader_close(&r);
}

static bool read_operation(struct arena *mem, const struct node *node,
			   struct ft_prices *p, struct ft_error *err)
{
	struct reader r = reader_open(node, err);

	read_provenance(&r, mem);
	p->maintenance_frac = read_number(&r, mem, "maintenance_frac", DIM_FRAC);
	p->storage_usd_per_gpu = read_number(&r, mem, "storage_per_gpu", DIM_USD);
	p->management_usd_per_gpu = read_number(&r, mem, "management_per_gpu", DIM_USD);
	p->failures_per_1000_node_days =
		read_number(&r, mem, "failures_per_1000_node_days", DIM_NONE);
	p->checkpoint_s = read_number(&r, mem, "checkpoint", DIM_S);
	p->restart_s = read_number(&r, mem, "restart", DIM_S);
	return reader_close(&r);
}

static bool read_all(struct arena *mem, const struct node *map,
		     struct ft_prices *prices, struct ft_error *err)
{
	struct reader r = reader_open(map, err);
	struct node *items, *facility, *operation;

	read_provenance(&r, mem);
	prices->from = r.from;
	prices->name = read_name(&r, "name", "");
	prices->title = read_text(&r, "title", prices->name);
	prices->nics_apart = read_bool(&r, "nics_apart", false);
	reader_allow(&r, "extends");
	items = read_need(&r, "prices");
	facility = read_need(&r, "facility");
	operation = read_need(&r, "operation");
	return reader_close(&r) && read_prices(mem, items, prices, err) &&
	       read_facility(mem, facility, prices, err) &&
	       read_operation(mem, operation, prices, err);
}

struct ft_prices *ft_prices_load(const char *name, const struct ft_mark *at,
				 struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct owned *owned = ARENA_NEW(&mem, struct owned);
	struct node *map = read_book(&mem, name, at, 0, err);

	if (!map || !read_all(&mem, map, &owned->prices, err)) {
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

/* The year and month a book's name ends in, as text that sorts: "2025-08", or
 * "2025" for a whole year. "" when it ends in neither. */
static const char *date_of(const char *name)
{
	const char *p = name + strcspn(name, "-");

	for (; *p; p += 1 + strcspn(p + 1, "-"))
		if (strspn(p + 1, "0123456789-") == strlen(p + 1) &&
		    strspn(p + 1, "0123456789") == 4)
			return p + 1;
	return "";
}

const char *price_newest(struct arena *mem, struct ft_error *err)
{
	size_t n;
	const char **name = file_list(mem, "cost/prices", &n, err);
	const char *best = NULL;

	for (size_t i = 0; name && i < n; i++)
		if (!best || strcmp(date_of(name[i]), date_of(best)) > 0)
			best = name[i];
	if (name && !best)
		ft_fail(err, NULL, "there is no price book");
	return best;
}
