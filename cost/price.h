/*
 * cost/price.h - looking things up in price books
 */
#ifndef COST_PRICE_H
#define COST_PRICE_H

#include "foretoken/cost.h"

struct arena;

/* NULL when the book does not price it. */
const struct ft_price *price_find(const struct ft_prices *prices, const char *item);

/* The book whose name carries the latest date; NULL on error. */
const char *price_newest(struct arena *mem, struct ft_error *err);

#endif
