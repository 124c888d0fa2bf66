/* reports/prices.c - what an answer's capital stands on, in words and in JSON */
#include "reports/prices.h"

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

char *prices_said(struct arena *mem, const struct ft_bom *bom,
		  const struct ft_prices *prices)
{
	const char *item, *book, *last = "";
	char *said = arena_printf(
		mem,
		"Prices: book %s (%s%sof %s), dated %s to %s; %.0f %% of the capital is at "
		"quoted, %.0f %% at derived, %.0f %% at guessed prices.",
		bom->book, bom->buyer, *bom->buyer ? ", " : "", bom->book_date,
		bom->first_date, bom->last_date, 100 * bom->quoted_usd / bom->total_usd,
		100 * bom->derived_usd / bom->total_usd,
		100 * bom->guessed_usd / bom->total_usd);

	for (size_t i = 0; (item = taken(bom, prices, i, &book)); i++) {
		if (!*item)
			continue;
		if (!strcmp(book, last))
			said = arena_printf(mem, "%s, %s", said, item);
		else
			said = arena_printf(mem, "%s%s\nFrom %s: %s", said,
					    *last ? "." : "", book, item);
		last = book;
	}
	return *last ? arena_printf(mem, "%s.", said) : said;
}

json_t *prices_json(const struct ft_bom *bom, const struct ft_prices *prices)
{
	json_t *j = json_object(), *others = json_object();
	const char *item, *book;

	json_put_text(j, "book", bom->book);
	json_put_text(j, "date", bom->book_date);
	json_put_text(j, "buyer", bom->buyer);
	json_put_text(j, "first_date", bom->first_date);
	json_put_text(j, "last_date", bom->last_date);
	json_put(j, "quoted_frac", bom->quoted_usd / bom->total_usd);
	json_put(j, "derived_frac", bom->derived_usd / bom->total_usd);
	json_put(j, "guessed_frac", bom->guessed_usd / bom->total_usd);
	for (size_t i = 0; (item = taken(bom, prices, i, &book)); i++)
		if (*item)
			json_put_text(others, item, book);
	json_object_set_new(j, "taken_from", others);
	return j;
}
