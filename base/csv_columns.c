/* base/csv_columns.c - what text a table may be, and which columns it may have */
#include <string.h>

#include "base/csv.h"
#include "base/text.h"

const char *csv_fault(const char *text, size_t len)
{
	const char *cr = memchr(text, '\r', len);

	if (memchr(text, '\0', len))
		return !memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2) ?
			       "is text in UTF-16; save it as CSV in UTF-8" :
			       "is binary, not CSV text";
	return cr && cr[1] && !memchr(text, '\n', len) ?
		       "ends its lines by CR alone, as old Macs did; save it as CSV in "
		       "UTF-8" :
		       NULL;
}

bool csv_columns_known(const struct csv *rows, const char *const *names, size_t n,
		       const char *const *heads, size_t n_heads, struct ft_error *err)
{
	for (size_t i = 0; i < rows->n_columns; i++) {
		const char *column = rows->column[i], *near;
		struct ft_mark at = csv_column_mark(rows, i);
		bool known = false;

		for (size_t j = 0; j < n && !known; j++)
			known = !strcmp(column, names[j]);
		for (size_t j = 0; j < n_heads && !known; j++)
			known = text_begins_with(column, heads[j]);
		if (known)
			continue;
		near = text_nearest(column, names, n);
		if (near)
			return ft_fail(err, &at,
				       "unknown column '%.60s'; did "
				       "you mean '%s'?",
				       column, near);
		return ft_fail(err, &at, "unknown column '%.60s'", column);
	}
	return true;
}
