/* base/row_columns.c - the columns of rows of single kernels and of collectives, in one table */
#include "base/row_columns.h"

static const struct {
	const char *name;
	unsigned of;
} columns[] = {
	{ "kernel", ROW_OF_KERNEL },
	{ "op", ROW_OF_COLLECTIVE },
	{ "gpu", ROW_OF_KERNEL | ROW_OF_COLLECTIVE },
	{ "dtype", ROW_OF_KERNEL },
	{ "warm", ROW_OF_KERNEL },
	{ "clock", ROW_OF_KERNEL },
	{ "layout", ROW_OF_KERNEL },
	{ "m", ROW_OF_KERNEL },
	{ "n", ROW_OF_KERNEL },
	{ "k", ROW_OF_KERNEL },
	{ "groups", ROW_OF_KERNEL },
	{ "accumulate", ROW_OF_KERNEL },
	{ "fast", ROW_OF_KERNEL },
	{ "impl", ROW_OF_KERNEL },
	{ "pass", ROW_OF_KERNEL },
	{ "batch", ROW_OF_KERNEL },
	{ "heads", ROW_OF_KERNEL },
	{ "kv_heads", ROW_OF_KERNEL },
	{ "sequence_length", ROW_OF_KERNEL },
	{ "head_dim", ROW_OF_KERNEL },
	{ "v_head_dim", ROW_OF_KERNEL },
	{ "causal", ROW_OF_KERNEL },
	{ "bytes", ROW_OF_KERNEL | ROW_OF_COLLECTIVE },
	{ "gpus", ROW_OF_COLLECTIVE },
	{ "nodes", ROW_OF_COLLECTIVE },
	{ "fabric", ROW_OF_COLLECTIVE },
	{ "load_ms", ROW_OF_STORE },
	{ "in_step", ROW_OF_STORE },
	{ "measured.time_us", ROW_OF_KERNEL | ROW_OF_COLLECTIVE },
	{ "measured.tflops", ROW_OF_KERNEL },
	{ "measured.busbw_gb_per_s", ROW_OF_COLLECTIVE },
	{ "measured.gb_per_s", ROW_OF_STORE },
	{ "id", ROW_OF_KERNEL | ROW_OF_COLLECTIVE },
	{ "group", ROW_OF_KERNEL | ROW_OF_COLLECTIVE },
	{ "source", ROW_OF_KERNEL | ROW_OF_COLLECTIVE },
	{ "notes", ROW_OF_KERNEL | ROW_OF_COLLECTIVE },
	{ "date", ROW_OF_STORE },
	{ "status", ROW_OF_STORE },
	{ "why", ROW_OF_STORE },
};
enum { COLUMNS = sizeof(columns) / sizeof(*columns) };

bool row_columns_known(const struct csv *rows, unsigned of, struct ft_error *err)
{
	const char *names[COLUMNS];
	size_t n = 0;

	for (size_t i = 0; i < COLUMNS; i++)
		if (columns[i].of & of)
			names[n++] = columns[i].name;
	return csv_columns_known(rows, names, n, NULL, 0, err);
}
