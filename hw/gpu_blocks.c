/* hw/gpu_blocks.c - the blocks of a profile: memory-bound curves and collectives, each with its
 * model's constants and its rows */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/reader.h"
#include "base/text.h"
#include "hw/gpu.h"
#include "hw/scale_ups.h"

struct reader gpu_open_block(struct reader *outer, struct arena *mem,
			     const struct node *map)
{
	struct reader r = reader_open(map, outer->err);

	r.failed = r.failed || outer->failed;
	r.from = outer->from;
	read_provenance(&r, mem);
	return r;
}

void gpu_close_block(struct reader *r, struct reader *outer)
{
	outer->failed = !reader_close(r) || outer->failed;
}

void gpu_read_rows(struct reader *r, struct gpu_rows *rows)
{
	const struct node *file = read_node(r, "rows");

	rows->file = read_text(r, "rows", NULL);
	rows->kin[1] = read_text(r, "rows_of", NULL);
	rows->kin_mark[1] = reader_mark(r, "rows_of");
	rows->from = r->from;
	if (file && !file->inherited && !file_may_name(&file->mark))
		reader_fail(r, "rows",
			    "is a file, and files are not read here; use 'extends'");
	if (file && file->inherited) {
		rows->file = NULL; /* measured on the GPU whose file names them */
		rows->kin[0] = file->mark.file;
	}
}

/* What binds a curve's kernels, of each profile below. */
struct binding {
	const struct gpu_below *below;
	bool die; /* units and clock, not the memory */
};

/* What was measured on a GPU that is extended, by the ratio of what binds it. */
static void scale_rate(const struct reader *r, struct ft_number *rate,
		       const struct binding *by)
{
	const struct node *n = node_get(r->map, "bandwidth");
	const struct gpu_below *b = by->below;
	double scale;

	if (!n || !n->inherited)
		return;
	while (b->next && strcmp(b->file, n->mark.file))
		b = b->next;
	scale = by->die ? b->die : b->memory;
	rate->value *= scale;
	rate->low *= scale;
	rate->high *= scale;
}

/* Into its place among the rows, which rise by length. false: such a row is there. */
static bool place_row(struct ft_memory_curve *c, const struct ft_memory_row *row)
{
	size_t i = c->n_rows;

	for (; i && c->row[i - 1].row_bytes >= row->row_bytes; i--) {
		if (c->row[i - 1].row_bytes <= row->row_bytes)
			return false;
		c->row[i] = c->row[i - 1];
	}
	c->row[i] = *row;
	c->n_rows++;
	return true;
}

/* by_row: {4096: {start, bandwidth}, ...}, row lengths in bytes, in any order: what extends a
 * profile may add some. */
static void read_curve_rows(struct reader *outer, struct arena *mem,
			    const struct binding *by, struct ft_memory_curve *c)
{
	const struct node *map = read_node(outer, "by_row");
	struct reader r = gpu_open_block(outer, mem, map);

	if (!r.map) {
		outer->failed = r.failed;
		return;
	}
	c->row = ARENA_ARRAY(mem, r.map->n + 1, struct ft_memory_row);
	for (size_t i = 0; i < r.map->n; i++) {
		struct ft_memory_row row;
		const char *key = r.map->key[i];
		struct reader in;
		char *end;

		if (!strcmp(key, "provenance"))
			continue;
		in = gpu_open_block(&r, mem, read_node(&r, key));
		row.row_bytes = strtod(key, &end);
		row.start_s = read_number(&in, mem, "start", DIM_S);
		row.bytes_per_s = read_positive(&in, mem, "bandwidth", DIM_BYTES_PER_S);
		scale_rate(&in, &row.bytes_per_s, by);
		if (!in.failed && (*end || !(row.row_bytes > 0)))
			reader_fail(&in, NULL, "should be a row length in bytes");
		else if (!in.failed && !place_row(c, &row))
			reader_fail(&in, NULL, "is a row length that was given before");
		gpu_close_block(&in, &r);
	}
	gpu_close_block(&r, outer);
}

static void read_own(struct reader *r, struct arena *mem, const struct binding *by,
		     struct ft_memory_curve *c)
{
	c->start_s = read_number(r, mem, "start", DIM_S);
	c->bytes_per_s = read_positive(r, mem, "bandwidth", DIM_BYTES_PER_S);
	scale_rate(r, &c->bytes_per_s, by);
	c->half_bytes = read_number_or(r, mem, "half", DIM_BYTES, 0);
	c->sharpness = read_number_or(r, mem, "sharpness", DIM_NONE, 1);
	c->row_sharpness =
		read_number_or(r, mem, "row_sharpness", DIM_NONE, c->sharpness.value);
	read_curve_rows(r, mem, by, c);
	c->step_s = read_number_or(r, mem, "step", DIM_S, 0);
	c->traffic = read_number_or(r, mem, "traffic", DIM_NONE, 2);
	reader_bound(r, "traffic", &c->traffic, 0.01, 1000);
	reader_bound(r, "sharpness", &c->sharpness, 1, 1000);
	reader_bound(r, "row_sharpness", &c->row_sharpness, 1, 1000);
}

/* {as: strided, bytes: 3}: that curve, of which a byte of this kernel counts as so many. */
static void read_as(struct reader *r, struct arena *mem, const struct ft_gpu *gpu,
		    struct ft_memory_curve *c)
{
	const char *as = read_text(r, "as", NULL);
	const struct ft_memory_curve own = *c;
	const struct ft_memory_curve *other = NULL;

	for (size_t i = 0; i < gpu->n_memory && as && !other; i++)
		if (!strcmp(gpu->memory[i].kernel, as) && !gpu->memory[i].as &&
		    gpu->memory[i].warm == c->warm)
			other = &gpu->memory[i];
	if (!other)
		reader_fail(r, "as", "names no curve that has a bandwidth of its own");
	else
		*c = *other;
	if (c->n_rows) /* each rank of a card gets its part of them: hw/gpu.c */
		c->row = memcpy(ARENA_ARRAY(mem, c->n_rows, struct ft_memory_row),
				c->row, c->n_rows * sizeof(*c->row));
	c->kernel = own.kernel;
	c->as = as;
	c->step_s = read_number_or(r, mem, "step", DIM_S, 0);
	c->as_bytes = read_positive(r, mem, "bytes", DIM_NONE);
	reader_bound(r, "bytes", &c->as_bytes, 0.01, 100);
}

/* Curves of kernels that units and clock bind, as H100 and H200 show, whose memories differ. */
static bool bound_by_die(const char *key)
{
	static const char *const known[] = { "strided", "delta_rule", "delta_rule_back",
					     "state_space", "state_space_back" };

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(key, known[i]))
			return true;
	return false;
}

/* as: that it is another's, which has been read. */
static void read_curve(struct reader *outer, struct arena *mem, const char *key,
		       bool as, const struct gpu_below *below, struct ft_gpu *gpu)
{
	struct reader r = gpu_open_block(outer, mem, read_node(outer, key));
	struct ft_memory_curve *c = &gpu->memory[gpu->n_memory];
	const struct binding by = { below, bound_by_die(key) };
	size_t len = strlen(key);

	c->warm = len > 5 && !strcmp(key + len - 5, ".warm");
	c->kernel = arena_text_n(mem, key, c->warm ? len - 5 : len);
	if (!text_is_name(c->kernel))
		reader_fail(&r, NULL, "'%.70s' " TEXT_NAME_RULE, c->kernel,
			    (int)LIMIT_NAME_BYTES);
	if (as)
		read_as(&r, mem, gpu, c);
	else
		read_own(&r, mem, &by, c);
	gpu->n_memory++;
	gpu_close_block(&r, outer);
}

/* Those of their own first, which others may be. */
static void read_curves(struct reader *in, struct arena *mem,
			const struct gpu_below *below, struct ft_gpu *gpu)
{
	gpu->memory = ARENA_ARRAY(mem, in->map->n + 1, struct ft_memory_curve);
	for (int as = 0; as < 2; as++)
		for (size_t i = 0; i < in->map->n; i++) {
			const char *key = in->map->key[i];

			if (strcmp(key, "provenance") &&
			    !node_get(in->map->item[i], "as") == !as)
				read_curve(in, mem, key, as, below, gpu);
		}
}

void gpu_read_memory(struct reader *outer, struct arena *mem, struct ft_gpu *gpu,
		     const struct gpu_below *below)
{
	const struct node *map = read_need(outer, "memory_bound");
	struct reader r = gpu_open_block(outer, mem, map), in;

	gpu->memory_spread = read_number(&r, mem, "spread", DIM_FRAC);
	in = gpu_open_block(&r, mem, read_need(&r, "curves"));
	if (in.map)
		read_curves(&in, mem, below, gpu);
	if (!in.failed && !node_get(in.map, "default"))
		reader_fail(&in, NULL, "lacks the key 'default'");
	gpu_close_block(&in, &r);
	gpu_close_block(&r, outer);
}

/* [a, b, links] of a pair. */
static bool read_pair(const struct node *item, struct ft_mesh *m, struct ft_error *err)
{
	enum { LINKS_MOST = 1023 };
	int64_t v[3];

	if (item->kind != NODE_LIST || item->n != 3)
		return ft_fail(err, &item->mark, "a pair is [rank, rank, links]");
	for (int i = 0; i < 3; i++) {
		const struct node *n = item->item[i];

		if (!node_whole(n, i == 2, i == 2 ? LINKS_MOST : FT_MESH_RANKS - 1,
				&v[i]))
			return i == 2 ? ft_fail(err, &n->mark,
						"links are a whole number from 1 to %d",
						(int)LINKS_MOST) :
					ft_fail(err, &n->mark,
						"ranks are whole numbers from 0 to %d",
						FT_MESH_RANKS - 1);
	}
	if (v[0] == v[1] || m->links[v[0]][v[1]])
		return ft_fail(err, &item->mark,
			       v[0] == v[1] ? "a pair joins two different ranks" :
					      "this pair is given twice");
	m->links[v[0]][v[1]] = m->links[v[1]][v[0]] = v[2];
	return true;
}

static const struct ft_mesh *read_pairs(struct reader *r, struct arena *mem,
					int64_t ranks)
{
	const struct node *list = read_node(r, "pairs");
	struct ft_mesh *m;

	if (!list || r->failed)
		return NULL;
	m = ARENA_NEW(mem, struct ft_mesh);
	m->n = (int)ranks;
	if (list->kind != NODE_LIST || ranks > FT_MESH_RANKS) {
		reader_fail(r, "pairs",
			    "is a list of [rank, rank, links] among at "
			    "most %d ranks",
			    (int)FT_MESH_RANKS);
		return NULL;
	}
	for (size_t i = 0; i < list->n && !r->failed; i++)
		r->failed = !read_pair(list->item[i], m, r->err);
	if (!r->failed && !ft_mesh_connected(m))
		reader_fail(r, "pairs",
			    "leave some of the %lld ranks without a "
			    "way to the others",
			    (long long)ranks);
	return m;
}

static void read_scale_up(struct reader *outer, struct arena *mem, const char *key,
			  struct ft_scale_up *s)
{
	struct reader r = gpu_open_block(outer, mem, read_node(outer, key));

	s->fabric = key;
	s->mesh = read_bool(&r, "mesh", false);
	s->bus_bytes_per_s = read_number_or(&r, mem, "bus", DIM_BYTES_PER_S, 0);
	s->link_bytes_per_s = read_number_or(&r, mem, "link", DIM_BYTES_PER_S, 0);
	s->port_bytes_per_s = read_number(&r, mem, "port", DIM_BYTES_PER_S);
	s->efficiency = read_number_or(&r, mem, "efficiency", DIM_FRAC, 1);
	reader_bound(&r, "efficiency", &s->efficiency, 0.001, 10);
	s->start_s = read_number(&r, mem, "start", DIM_S);
	s->n_full = read_int(&r, "ranks", 2, 4096, 8);
	s->pairs = read_pairs(&r, mem, s->n_full);
	if (!strcmp(key, "nvlink")) /* no other fabric reduces in its switch */
		s->nvls_from = read_int(&r, "nvls_from", 0, 4096, 0);
	if (!r.failed && !(s->port_bytes_per_s.value > 0))
		reader_fail(&r, "port", "should be above 0");
	if (!r.failed && (s->mesh || s->pairs) && !(s->link_bytes_per_s.value > 0))
		reader_fail(&r, NULL, "a mesh lacks the key 'link'");
	if (!r.failed && !s->mesh && !s->pairs && !(s->bus_bytes_per_s.value > 0))
		reader_fail(&r, NULL, "lacks the key 'bus'");
	gpu_close_block(&r, outer);
}

void gpu_read_collectives(struct reader *outer, struct arena *mem, struct ft_gpu *gpu,
			  struct gpu_rows *rows)
{
	struct reader r = gpu_open_block(outer, mem, read_need(outer, "collectives"));

	gpu->collective_spread = read_number(&r, mem, "spread", DIM_FRAC);
	gpu->scale_up = ARENA_ARRAY(mem, SCALE_UPS, struct ft_scale_up);
	for (size_t i = 0; i < SCALE_UPS; i++)
		if (r.map && node_get(r.map, scale_ups[i]))
			read_scale_up(&r, mem, scale_ups[i],
				      &gpu->scale_up[gpu->n_scale_ups++]);
		else
			reader_allow(&r, scale_ups[i]);
	gpu_read_rows(&r, rows);
	gpu_close_block(&r, outer);
}
