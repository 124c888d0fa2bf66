/*
 * foretoken/cost_history.h - an item's price in many books
 */
#ifndef FORETOKEN_COST_HISTORY_H
#define FORETOKEN_COST_HISTORY_H

#include "foretoken/cost.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ft_price_point {
	const char *item, *book, *buyer, *vendor;
	const char *date; /* of the price, in its source */
	const char *source, *address;
	enum ft_price_kind kind;
	bool rent; /* USD per GPU and hour */
	double usd, low, high;
};

struct ft_price_history {
	size_t n;
	struct ft_price_point *point; /* by date, then book */
};

/* The books of the tree; or, db not NULL, those imported into that SQLite file. An item
 * that none of them has is an error that names the nearest. */
struct ft_price_history *ft_price_history_load(const char *item, const char *db,
					       struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_price_history_free(struct ft_price_history *history);

/* Puts the book's own lines (not those it takes from others) into the SQLite file, which
 * is made if needed, in place of what it had of that book and date; *n: how many. */
bool ft_price_history_import(const char *db, const char *book, size_t *n,
			     struct ft_error *err) __attribute__((warn_unused_result));

#ifdef __cplusplus
}
#endif
#endif
