/*
 * hw/gpu_collectives.c - measured collectives beside a profile
 *
 *   NAME.collectives.csv  fabric,op,gpus,bytes,time_us,source
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "hw/gpu.h"
#include "hw/gpu_sheet.h"

enum { C_FABRIC, C_OP, C_GPUS, C_BYTES, C_TIME, C_CELLS };
enum { MOST_SIZES = 128, MOST_RANKS = 1 << 30 };

static struct ft_collective_table *collective_table(struct arena *mem,
						    struct ft_gpu *gpu, size_t *cap,
						    const char *fabric,
						    enum ft_collective op, int64_t n)
{
	struct ft_collective_table *t;

	for (size_t i = 0; i < gpu->n_collective; i++) {
		t = &gpu->collective[i];
		if (t->op == op && t->n == n && !strcmp(t->fabric, fabric))
			return t;
	}
	if (gpu->n_collective == *cap)
		gpu->collective = ARENA_GROW(mem, gpu->collective, cap);
	t = &gpu->collective[gpu->n_collective++];
	*t = (struct ft_collective_table){ .op = op, .n = n };
	t->fabric = arena_text(mem, fabric);
	return t;
}

/* Room for one more row: that of eight, doubled whenever it is full. */
static void make_room(struct arena *mem, struct ft_collective_table *t)
{
	size_t n = t->n_rows;
	struct ft_collective_row *row;

	if (n && (n < 8 || n & (n - 1)))
		return;
	row = ARENA_ARRAY(mem, n ? 2 * n : 8, struct ft_collective_row);
	if (n)
		memcpy(row, t->row, n * sizeof(*row));
	t->row = row;
}

static int by_bytes(const void *a, const void *b)
{
	double x = ((const struct ft_collective_row *)a)->bytes;
	double y = ((const struct ft_collective_row *)b)->bytes;

	return (x > y) - (x < y);
}

/* Rows of a kin only fill what the GPU itself lacks: whole tables. */
static bool has_own(const struct ft_gpu *gpu, size_t n_own, const char *fabric,
		    enum ft_collective op, int64_t n)
{
	for (size_t i = 0; i < n_own; i++) {
		const struct ft_collective_table *t = &gpu->collective[i];

		if (t->op == op && t->n == n && !strcmp(t->fabric, fabric))
			return true;
	}
	return false;
}

static bool read_collectives(const struct gpu_file *f, struct sheet *s)
{
	struct ft_gpu *gpu = f->gpu;
	size_t n_own = gpu->n_collective, cap = n_own;
	struct ft_collective_table *t = NULL; /* NULL: the GPU has this one's rows */
	enum ft_collective op = 0;
	double ranks = 0;
	int more;

	while ((more = sheet_next(s)) > 0) {
		const char *fabric = sheet_text(s, C_FABRIC);
		bool same = sheet_same(s, C_FABRIC) && sheet_same(s, C_OP) &&
			    sheet_number(s, C_GPUS) == ranks;

		ranks = sheet_number(s, C_GPUS);
		if (ranks > MOST_RANKS)
			return sheet_refuse(s, C_GPUS, "is too many GPUs");
		if (!sheet_same(s, C_OP) &&
		    !ft_collective_find(sheet_text(s, C_OP), &op))
			return sheet_refuse(s, C_OP, "is not a collective");
		if (!same && has_own(gpu, n_own, fabric, op, (int64_t)ranks))
			t = NULL;
		else if (!same)
			t = collective_table(f->mem, gpu, &cap, fabric, op,
					     (int64_t)ranks);
		if (!t)
			continue;
		t->from = f->from;
		t->on = f->on;
		if (t->n_rows == MOST_SIZES)
			return sheet_refuse(s, C_BYTES, "is too many sizes");
		make_room(f->mem, t);
		t->row[t->n_rows++] = (struct ft_collective_row){
			.bytes = sheet_number(s, C_BYTES),
			.time_s = sheet_number(s, C_TIME) * 1e-6,
		};
	}
	for (size_t i = n_own; i < gpu->n_collective; i++)
		qsort(gpu->collective[i].row, gpu->collective[i].n_rows,
		      sizeof(*gpu->collective[i].row), by_bytes);
	return more == 0;
}

bool gpu_load_collectives(const struct gpu_file *f, struct ft_error *err)
{
	static const struct sheet_column columns[] = {
		{ "fabric", false }, { "op", false },	  { "gpus", true },
		{ "bytes", true },   { "time_us", true },
	};
	struct sheet s;

	return sheet_open(&s, f->mem, f->path, columns, C_CELLS, err) &&
	       read_collectives(f, &s);
}
