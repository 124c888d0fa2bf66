/*
 * cost/price.h - looking things up in price books
 */
#ifndef COST_PRICE_H
#define COST_PRICE_H

#include "foretoken/cost.h"

/* NULL when the book does not price it. */
const struct ft_price *price_find(const struct ft_prices *prices, const char *item);

#endif
