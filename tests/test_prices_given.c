/*
 * tests/test_prices_given.c - prices that a scenario gives: each drawn one replaces its line of the book or is a new one
 * of the cluster's parts, all others stay, and what is no item or no price is refused
 */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/cost.h"
#include "tests/clusters.h"

enum { DRAWS = 120, ITEMS = 80 };

static uint64_t seed = 389;

static const char *const clusters[] = {
	"{gpu: h100-sxm, gpus: 64}",
	"{gpu: b200, gpus: 16, fabric: roce-400-rail}",
	"{gpu: mi300x, gpus: 32}",
};
static const char *const books[] = { "neocloud-2026-09", "enterprise-2026",
				     "mixnet-2025" };

struct given {
	const char *item[ITEMS];
	double usd[ITEMS]; /* 0: not given */
	size_t n, lines;   /* lines: of the book, which are the first */
};

/* All that can have a price, each once. */
static void name_items(struct given *g, const struct ft_prices *book,
		       const struct ft_cluster *c)
{
	const struct ft_price *by_gpu[] = { &book->storage, &book->management };

	*g = (struct given){ .n = 0 };
	for (size_t i = 0; i < book->n_prices; i++)
		g->item[g->n++] = book->price[i].item;
	g->lines = g->n;
	for (int i = 0; i < 2; i++)
		if (by_gpu[i]->usd.high > 0)
			g->item[g->n++] = by_gpu[i]->item;
	for (size_t i = 0; i < c->parts->n; i++) {
		bool known = c->parts->line[i].included;

		for (size_t k = 0; k < g->n && !known; k++)
			known = !strcmp(g->item[k], c->parts->line[i].item);
		if (!known)
			g->item[g->n++] = c->parts->line[i].item;
	}
	assert_true(g->n <= ITEMS);
}

static const struct node *draw(struct given *g, struct arena *mem)
{
	const char *text = "{";
	struct ft_error err;
	struct node *n;

	for (size_t i = 0; i < g->n; i++) {
		if (rnd_below(&seed, 4))
			continue;
		/* a number is of dollars, as one with their name is */
		g->usd[i] = rnd_below(&seed, 9) ? 0.25 * (1 + rnd_below(&seed, 90000)) :
						  1e12;
		text = arena_printf(mem, "%s\"%s\": %.17g%s, ", text, g->item[i],
				    g->usd[i], rnd_below(&seed, 2) ? " USD" : "");
	}
	text = arena_printf(mem, "%s}", text);
	n = node_read_text(mem, rnd_below(&seed, 2) ? "--price x" : "test.yaml", text,
			   strlen(text), &err);
	ok_or_say(n, err);
	return n;
}

static bool same(const struct ft_price *a, const struct ft_price *b)
{
	return !strcmp(a->item, b->item) && a->usd.value == b->usd.value &&
	       a->usd.low == b->usd.low && a->usd.high == b->usd.high &&
	       a->kind == b->kind && !strcmp(a->book, b->book);
}

static void is_given(const struct ft_price *p, const char *item, double usd, bool typed)
{
	assert_string_equal(p->item, item);
	assert_true(p->usd.value == usd && p->usd.low == usd && p->usd.high == usd);
	assert_int_equal(p->kind, FT_PRICE_GIVEN);
	assert_string_equal(p->book, "given");
	assert_string_equal(p->usd.from->source, typed ? "given on the command line" :
							 "given in the scenario");
}

static const struct ft_price *line_of(const struct ft_prices *of, const char *item)
{
	const struct ft_price *by_gpu[] = { &of->storage, &of->management };

	for (size_t i = 0; i < of->n_prices; i++)
		if (!strcmp(of->price[i].item, item))
			return &of->price[i];
	for (int i = 0; i < 2; i++)
		if (by_gpu[i]->item && !strcmp(by_gpu[i]->item, item))
			return by_gpu[i];
	return NULL;
}

/* Each item's line, where it stood in the book; and no line more. */
static void check(const struct given *g, const struct ft_prices *book,
		  const struct ft_prices *is, bool typed)
{
	size_t lines = book->n_prices;

	for (size_t i = 0; i < g->n; i++) {
		const struct ft_price *was = line_of(book, g->item[i]);
		const struct ft_price *now = line_of(is, g->item[i]);

		lines += g->usd[i] > 0 && !was;
		if (g->usd[i] > 0)
			is_given(now, g->item[i], g->usd[i], typed);
		else if (was)
			assert_true(same(was, now));
		else
			assert_null(now);
		if (i < g->lines)
			assert_ptr_equal(now, &is->price[i]); /* in their order */
	}
	assert_int_equal(is->n_prices, lines);
	assert_string_equal(is->name, book->name);
}

/* A book of some of its lines, with or without prices by GPU: then parts have none in it. */
static void cut(struct ft_prices *book)
{
	struct ft_price *by_gpu[] = { &book->storage, &book->management };
	static const char *const names[] = { "storage", "management" };

	book->n_prices = (size_t)rnd_below(&seed, (int)book->n_prices + 1);
	for (int i = 0; i < 2; i++)
		*by_gpu[i] = (struct ft_price){ .item = names[i],
						.usd = { 0, 0, rnd_below(&seed, 2),
							 book->from },
						.vendor = "",
						.book = book->name };
}

static void given_prices_stand_in_place_of_the_books(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct ft_cluster *c = good(clusters[i % 3]);
		struct arena mem = { 0 };
		struct ft_cost_terms terms = { .usd_per_gpu_hour = 0 };
		struct ft_error err;
		struct ft_prices *book = ft_prices_load(books[i / 3 % 3], NULL, &err),
				 *is;
		struct given g;
		size_t rents;

		ok_or_say(book, err);
		rents = book->n_rents;
		cut(book);
		name_items(&g, book, c);
		terms.price_of = rnd_below(&seed, 9) ? draw(&g, &mem) : NULL;
		if (rnd_below(&seed, 2)) {
			terms.usd_per_gpu_hour = 0.5 * (1 + rnd_below(&seed, 9));
			terms.usd_per_gpu_hour_mark.file = "test.yaml";
		}
		is = ft_prices_given(book, c, &terms, &err);
		ok_or_say(is, err);
		check(&g, book, is,
		      terms.price_of && terms.price_of->mark.file[0] == '-');
		if (terms.usd_per_gpu_hour > 0)
			is_given(is->rent, c->gpu->name, terms.usd_per_gpu_hour, false);
		assert_int_equal(is->n_rents, terms.usd_per_gpu_hour > 0 ? 1 : rents);
		ft_prices_free(is);
		ft_prices_free(book);
		ft_cluster_free(c);
		arena_release(&mem);
	}
}

static void what_is_no_item_or_no_price_is_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "{frobnicator: 5}", "neither book mixnet-2025 nor the cluster has an "
				      "item 'frobnicator'" },
		{ "{%s: 0}", "should be above 0 and at most 1e12 USD" },
		{ "{%s: -1}", "-1 is negative" },
		{ "{%s: 1.001e12}", "should be above 0 and at most 1e12 USD" },
		{ "{%s: 5 W}", "" },
		{ "{%sx: 5}", "; did you mean '" },
	};
	struct ft_cluster *c = good(clusters[0]);
	struct ft_error err;
	struct ft_prices *book = ft_prices_load("mixnet-2025", NULL, &err);
	struct arena mem = { 0 };

	(void)state;
	ok_or_say(book, err);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		/* of the book, and of the cluster's parts that have a line of their own */
		for (size_t k = 0; k < book->n_prices + c->parts->n; k++) {
			const struct ft_part_line *part =
				k < book->n_prices ?
					NULL :
					&c->parts->line[k - book->n_prices];
			const char *at = strstr(rows[i].text, "%s"), *text;
			struct ft_cost_terms terms = { .price_of = NULL };

			if (part && part->included)
				continue;
			text = at ? arena_printf(&mem, "{%s%s",
						 part ? part->item :
							book->price[k].item,
						 at + 2) :
				    rows[i].text;
			terms.price_of = node_read_text(&mem, "test.yaml", text,
							strlen(text), &err);
			ok_or_say(terms.price_of, err);
			assert_null(ft_prices_given(book, c, &terms, &err));
			if (!strstr(err.text, rows[i].why))
				fail_msg("%s: %s", text, err.text);
			assert_int_equal(err.line, 1);
		}
	}
	ft_prices_free(book);
	ft_cluster_free(c);
	arena_release(&mem);
}

/* What is in the price of a server has none of its own. */
static void what_is_included_is_no_item(void **state)
{
	int refused = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(clusters) / sizeof(*clusters); i++) {
		struct ft_cluster *c = good(clusters[i]);
		struct ft_error err;
		struct ft_prices *book = ft_prices_load("mixnet-2025", NULL, &err);
		struct arena mem = { 0 };

		ok_or_say(book, err);
		book->n_prices = 1;
		for (size_t k = 0; k < c->parts->n; k++) {
			const struct ft_part_line *part = &c->parts->line[k];
			struct ft_cost_terms terms = { .price_of = NULL };
			const char *text = arena_printf(&mem, "{%s: 5}", part->item);

			if (!part->included || line_of(book, part->item))
				continue;
			terms.price_of = node_read_text(&mem, "test.yaml", text,
							strlen(text), &err);
			assert_null(ft_prices_given(book, c, &terms, &err));
			assert_non_null(strstr(err.text, "neither book "));
			refused++;
		}
		ft_prices_free(book);
		ft_cluster_free(c);
		arena_release(&mem);
	}
	assert_true(refused > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(given_prices_stand_in_place_of_the_books),
		cmocka_unit_test(what_is_no_item_or_no_price_is_refused),
		cmocka_unit_test(what_is_included_is_no_item),
	};

	return cmocka_run_group_tests_name("prices given", tests, NULL, NULL);
}
