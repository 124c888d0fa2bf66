/*
 * cost/book.h - a price book's document, with what it takes from other books
 *
 * A book stands alone. `extends: NAME` lays it upon a book of the same year, and
 * `ITEM: {from: NAME}` takes one line from any other; nothing else comes from elsewhere.
 * A line taken over keeps its place in the other's file, so that one can always say
 * whose it is.
 */
#ifndef COST_BOOK_H
#define COST_BOOK_H

#include "base/node.h"

enum { BOOKS_MOST = 9 }; /* that one book may lead to, itself included */

struct book {
	const char *file, *name;
	const char *date; /* "2025", "2025-08"; when it extends another: of that one */
	struct node *map; /* NULL while it is being read */
	const struct node *under; /* of the book that it extends; NULL: none */
};

/* All books that one leads to, which is the first. */
struct books {
	size_t n;
	struct book book[BOOKS_MOST];
};

/* The book of that name or path, its lines complete; all of it lies in mem. NULL on
 * error: a book that leads back to itself, one that extends a book of another year. */
const struct book *books_read(struct arena *mem, struct books *books, const char *name,
			      const struct ft_mark *at, struct ft_error *err)
	__attribute__((warn_unused_result));

/* The name of the book that has this line: the first's, or the one it is taken from. */
const char *books_whose(const struct books *books, const struct node *line);

#endif
