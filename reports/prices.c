/* reports/prices.c - what an answer's capital stands on, in words and in JSON */
#include "reports/prices.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "reports/json.h"

/* Item i of what comes from other books: lines of the bill, then figures. NULL after
 * the last; "" what is this book's own. */
static const char *taken(const struct ft_bom *bom, const struct ft_prices *prices,
			 size_t i, const char **book)
{
	const struct ft_bom_item *line = &bom->item[i];

	if (i < bom->n_items) {
		*book = line->book;
		if (!strcmp(line->book, bom->book))
			return "";
		for (size_t k = 0; k < i; k++) /* an item is named once */
			if (!strcmp(bom->item[k].item, line->item))
				return "";
		return line->item;
	}
	i -= bom->n_items;
	if (!prices || i >= prices->n_taken)
		return NULL;
	*book = prices->taken[i].book;
	return prices->taken[i].figure;
}

/* Is i the first of what comes from that book? */
static bool first_of(const struct ft_bom *bom, const struct ft_prices *prices, size_t i,
		     const char *book)
{
	const char *other;

	for (size_t k = 0; k < i; k++)
		if (*taken(bom, prices, k, &other) && !strcmp(other, book))
			return false;
	return true;
}

/* "From BOOK: a, b." */
static char *of_book(struct arena *mem, const struct ft_bom *bom,
		     const struct ft_prices *prices, const char *book)
{
	bool given = !strcmp(book, "given");
	char *said = arena_printf(mem, "%s%s:", given ? "Given" : "From ",
				  given ? "" : book);
	const char *item, *other, *comma = "";

	for (size_t i = 0; (item = taken(bom, prices, i, &other)); i++) {
		if (!*item || strcmp(other, book) != 0)
			continue;
		said = arena_printf(mem, "%s%s %s", said, comma, item);
		comma = ",";
	}
	return arena_printf(mem, "%s.", said);
}

/* Where most of a bill is guessed: its largest item, which one quote would mend; "" else. */
static const char *to_be_asked(struct arena *mem, const struct ft_bom *bom)
{
	const struct ft_bom_item *most = NULL;

	for (size_t i = 0; i < bom->n_items; i++)
		if (bom->item[i].kind == FT_PRICE_GUESSED &&
		    (!most || bom->item[i].total_usd > most->total_usd))
			most = &bom->item[i];
	if (!most || bom->rented ||
	    bom->by_kind_usd[FT_PRICE_GUESSED] < 0.5 * bom->total_usd)
		return "";
	return arena_printf(
		mem,
		"\nThe price of %s, %.0f %% of the capital, is guessed: ask "
		"for a quote, and give it with --price %s=USD.",
		most->item, 100 * most->total_usd / bom->total_usd, most->item);
}

char *prices_said(struct arena *mem, const struct ft_bom *bom,
		  const struct ft_prices *prices)
{
	const char *item, *book;
	const double *usd = bom->by_kind_usd;
	const char *dated = *bom->first_date ?
				    arena_printf(mem, ", dated %s to %s",
						 bom->first_date, bom->last_date) :
				    "";
	char *said = arena_printf(
		mem,
		"Prices: book %s (%s%sof %s)%s; %.0f %% of the %s is at "
		"quoted, %.0f %% at derived, %.0f %% at guessed prices",
		bom->book, bom->buyer, *bom->buyer ? ", " : "", bom->book_date, dated,
		100 * usd[FT_PRICE_QUOTED] / bom->total_usd,
		bom->rented ? "rent" : "capital",
		100 * usd[FT_PRICE_DERIVED] / bom->total_usd,
		100 * usd[FT_PRICE_GUESSED] / bom->total_usd);

	if (usd[FT_PRICE_GIVEN] > 0)
		said = arena_printf(mem, "%s, %.0f %% at prices given to the scenario",
				    said, 100 * usd[FT_PRICE_GIVEN] / bom->total_usd);
	said = arena_printf(mem, "%s.%s", said, to_be_asked(mem, bom));
	for (size_t i = 0; (item = taken(bom, prices, i, &book)); i++)
		if (*item && first_of(bom, prices, i, book))
			said = arena_printf(mem, "%s\n%s", said,
					    of_book(mem, bom, prices, book));
	if (*bom->in_vain)
		said = arena_printf(mem, "%s\nGiven, but on no line of the bill: %s.",
				    said, bom->in_vain);
	return said;
}

/* What the book says beside its prices. */
static json_t *figures_json(const struct ft_prices *prices)
{
	struct ft_figure f[FT_FIGURES_MOST];
	size_t n = ft_prices_figures(prices, f);
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *one = json_object();

		json_put_text(one, "figure", f[i].name);
		json_put(one, "value", f[i].is->value);
		json_put(one, "low", f[i].is->low);
		json_put(one, "high", f[i].is->high);
		json_put_text(one, "unit", f[i].unit);
		json_put_text(one, "kind",
			      ft_provenance_kind_name(f[i].is->from->kind));
		json_put_text(one, "source", f[i].is->from->source);
		json_put_text(one, "date", f[i].is->from->date);
		json_array_append_new(list, one);
	}
	return list;
}

json_t *prices_json(const struct ft_bom *bom, const struct ft_prices *prices)
{
	json_t *j = json_object(), *others = json_array();
	const char *item, *book;
	char key[32];

	json_put_text(j, "book", bom->book);
	json_put_text(j, "date", bom->book_date);
	json_put_text(j, "buyer", bom->buyer);
	json_put_text(j, "first_date", bom->first_date);
	json_put_text(j, "last_date", bom->last_date);
	json_put_text(j, "given_in_vain", bom->in_vain);
	for (int k = 0; k < FT_PRICE_KINDS; k++) {
		snprintf(key, sizeof(key), "%s_frac",
			 ft_price_kind_name((enum ft_price_kind)k));
		json_put(j, key, bom->by_kind_usd[k] / bom->total_usd);
	}
	for (size_t i = 0; (item = taken(bom, prices, i, &book)); i++) {
		json_t *line;

		if (!*item)
			continue;
		line = json_object();
		json_put_text(line, "item", item);
		json_put_text(line, "book", book);
		json_array_append_new(others, line);
	}
	json_object_set_new(j, "taken_from", others);
	if (prices)
		json_object_set_new(j, "figures", figures_json(prices));
	return j;
}
