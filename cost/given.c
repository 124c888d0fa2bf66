/* cost/given.c - prices that a scenario gives itself, over its book's */
#include <string.h>

#include "base/arena.h"
#include "base/plain.h"
#include "base/reader.h"
#include "base/text.h"
#include "cost/price.h"

struct owned {
	struct ft_prices prices;
	struct arena mem;
};

static struct ft_price *new_line(struct ft_prices *to, const char *item)
{
	to->price[to->n_prices].item = item;
	return &to->price[to->n_prices++];
}

/* What is laid over a book, and for which cluster. */
struct laying {
	struct arena *mem;
	struct ft_prices *to;
	const struct ft_cluster *cluster;
	const struct ft_cost_terms *terms;
	struct ft_error *err;
};

/* The line to be replaced, or a new one at the end, of which no dollar may depend; NULL, with the error, when neither the
 * book nor the cluster knows the item, at another size of it neither. to->price has room for it. */
static struct ft_price *line_for(const struct laying *l, const char *name,
				 const struct ft_mark *at)
{
	struct ft_prices *to = l->to;
	const struct ft_parts *parts = l->cluster->parts;
	struct ft_price *const by_gpu[] = { &to->storage, &to->management };
	const char **known =
		ARENA_ARRAY(l->mem, to->n_prices + parts->n + 2, const char *);
	size_t n = 0;
	const char *near;

	for (; n < to->n_prices; n++) {
		if (!strcmp(to->price[n].item, name))
			return &to->price[n];
		known[n] = to->price[n].item;
	}
	for (size_t i = 0; i < parts->n; i++)
		if (!parts->line[i].included)
			known[n++] = parts->line[i].item;
	for (int i = 0; i < 2; i++) {
		if (!(by_gpu[i]->usd.high > 0))
			continue;
		known[n++] = by_gpu[i]->item;
		if (!strcmp(name, by_gpu[i]->item))
			return by_gpu[i];
	}
	for (size_t i = to->n_prices; i < n; i++)
		if (!strcmp(known[i], name))
			return new_line(to, known[i]);
	if (l->terms->other_sizes)
		return new_line(to, arena_text(l->mem, name));
	near = text_nearest(name, known, n);
	ft_fail(l->err, at, "neither book %s nor the cluster has an item '%.64s'%s%s%s",
		to->name, name, near ? "; did you mean '" : "", near ? near : "",
		near ? "'?" : "");
	return NULL;
}

static bool read_amount(struct reader *r, const char *item, const struct node *node,
			double *usd)
{
	*usd = read_quantity(r, item, node_is_number(node) ? DIM_NONE : DIM_USD, 0);
	if (!r->failed && !(*usd > 0 && *usd <= 1e12))
		reader_fail(r, item, "should be above 0 and at most 1e12 USD");
	return !r->failed;
}

/* The command line's own words are marked as such: "--price ITEM=USD", "--set ...". */
static const struct ft_provenance *from_of(struct arena *mem, const struct ft_mark *at)
{
	struct ft_provenance *from = ARENA_NEW(mem, struct ft_provenance);
	bool typed = at->file && text_begins_with(at->file, "--");

	*from = (struct ft_provenance){
		FT_PUBLISHED,
		typed ? "given on the command line" : "given in the scenario",
		"",
		"",
		"",
	};
	return from;
}

static struct ft_price given_price(struct arena *mem, const char *item, double usd,
				   const struct ft_mark *at)
{
	return (struct ft_price){
		.item = item,
		.usd = { usd, usd, usd, from_of(mem, at) },
		.vendor = "",
		.book = "given",
		.kind = FT_PRICE_GIVEN,
	};
}

static bool lay_given(const struct laying *l)
{
	const struct node *given = l->terms->price_of;
	struct reader r = reader_open(given, l->err);

	for (size_t i = 0; !r.failed && i < given->n; i++) {
		const char *name = given->key[i];
		const struct ft_mark *at = &given->item[i]->mark;
		struct ft_price *line = line_for(l, name, at);
		double usd;

		if (!line || !read_amount(&r, name, given->item[i], &usd))
			return false;
		*line = given_price(l->mem, line->item, usd, at);
	}
	return !r.failed;
}

struct ft_prices *ft_prices_given(const struct ft_prices *book,
				  const struct ft_cluster *cluster,
				  const struct ft_cost_terms *terms,
				  struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct owned *owned = ARENA_NEW(&mem, struct owned);
	struct ft_prices *to = &owned->prices;
	const struct laying l = { &mem, to, cluster, terms, err };

	*to = *book;
	to->price = ARENA_ARRAY(&mem,
				book->n_prices + cluster->parts->n +
					(terms->price_of ? terms->price_of->n : 0),
				struct ft_price);
	if (book->n_prices)
		memcpy(to->price, book->price, book->n_prices * sizeof(*to->price));
	if (terms->price_of && !lay_given(&l)) {
		arena_release(&mem);
		return NULL;
	}
	if (terms->usd_per_gpu_hour > 0) {
		to->n_rents = 1;
		to->rent = ARENA_NEW(&mem, struct ft_price);
		*to->rent =
			given_price(&mem, cluster->gpu->name, terms->usd_per_gpu_hour,
				    &terms->usd_per_gpu_hour_mark);
	}
	owned->mem = mem;
	return to;
}
