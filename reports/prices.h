/*
 * reports/prices.h - what an answer's capital stands on, in words and in JSON
 */
#ifndef REPORTS_PRICES_H
#define REPORTS_PRICES_H

#include <jansson.h>

#include "foretoken/cost.h"

struct arena;

/* The book, the dates, the shares at quoted, derived and guessed prices, and a line for
 * each other book of what is taken from it. prices, for the figures of facility and
 * operation, may be NULL. */
char *prices_said(struct arena *mem, const struct ft_bom *bom,
		  const struct ft_prices *prices);

/* The same as an object; a new reference. */
json_t *prices_json(const struct ft_bom *bom, const struct ft_prices *prices);

#endif
