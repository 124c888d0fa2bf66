/*
 * base/row_columns.h - which columns rows of single kernels and of collectives may have, as foretoken-runs(5) documents them
 */
#ifndef BASE_ROW_COLUMNS_H
#define BASE_ROW_COLUMNS_H

#include "base/csv.h"

/* Whose columns: a table may hold rows of several kinds. */
enum row_of {
	ROW_OF_KERNEL = 1,
	ROW_OF_COLLECTIVE = 2,
	ROW_OF_STORE = 4, /* what measurements that are kept say besides */
};

/* Is each column one of these kinds'? of: enum row_of, or'ed. Names the nearest where one is not. */
bool row_columns_known(const struct csv *rows, unsigned of, struct ft_error *err)
	__attribute__((warn_unused_result));

#endif
