/* hw/gpu.c - a GPU profile: its head, and in which order parts are loaded */
#include <string.h>

#include "base/arena.h"
#include "base/extends.h"
#include "base/file.h"
#include "base/plain.h"
#include "base/reader.h"
#include "hw/gpu.h"
#include "hw/gpu_later.h"

struct owned {
	struct ft_gpu gpu;
	struct arena mem;
	struct rows_desk desk;
};

enum { LARGEST_CARD = 64 };

static void per_rank(struct ft_number *x, int64_t ranks)
{
	x->value /= (double)ranks;
	x->low /= (double)ranks;
	x->high /= (double)ranks;
}

static void take_away(struct ft_number *x, double amount)
{
	x->value -= amount;
	x->low -= amount;
	x->high -= amount;
}

/* What a process can use: capacity less its context. */
static void read_memory(struct reader *outer, struct arena *mem, struct ft_gpu *gpu)
{
	struct reader r = gpu_open_block(outer, mem, read_need(outer, "memory"));
	struct ft_number context;

	gpu->memory_bytes = read_positive(&r, mem, "capacity", DIM_BYTES);
	context = read_number_or(&r, mem, "context", DIM_BYTES, 0);
	if (context.value >= gpu->memory_bytes.value)
		(void)reader_fail(&r, "context", "leaves nothing of capacity");
	take_away(&gpu->memory_bytes, context.value);
	gpu->memory_bytes_per_s = read_positive(&r, mem, "bandwidth", DIM_BYTES_PER_S);
	gpu_close_block(&r, outer);
}

static void read_peak(struct reader *outer, struct arena *mem, struct ft_gpu *gpu)
{
	struct reader r = gpu_open_block(outer, mem, read_need(outer, "peak"));

	for (int d = 0; d < FT_DTYPES; d++)
		gpu->peak_flop_per_s[d] = read_number_or(
			&r, mem, ft_dtype_name((enum ft_dtype)d), DIM_FLOP_PER_S, 0);
	gpu_close_block(&r, outer);
}

static void read_launch(struct reader *outer, struct arena *mem, struct ft_gpu *gpu)
{
	struct reader r = gpu_open_block(outer, mem, read_need(outer, "launch"));

	gpu->kernel_floor_s = read_number(&r, mem, "floor", DIM_S);
	gpu->launch_gap_s = read_number(&r, mem, "gap", DIM_S);
	gpu_close_block(&r, outer);
}

/* A number of one of a profile's blocks; 0: it is not given. */
static double given(const struct node *map, struct arena *mem, const char *block,
		    const char *key, enum dimension dim)
{
	const struct ft_provenance any = { 0 }; /* whoever says it */
	struct ft_error ignored;
	struct reader r = reader_open(node_path(map, block), &ignored);
	struct ft_number x;

	r.from = &any;
	x = read_number_or(&r, mem, key, dim, 0);

	return r.failed ? 0 : x.value;
}

static bool same_chip(const struct node *a, const struct node *b, struct arena *mem)
{
	return given(a, mem, "peak", "bf16", DIM_FLOP_PER_S) ==
	       given(b, mem, "peak", "bf16", DIM_FLOP_PER_S);
}

/* Kernels draw as many watts as on the GPU they were measured on, whatever the limit; on another chip, as
 * its bf16 peak tells, as much of its own limit. */
static double watts_scale(const struct node *profile, struct arena *mem)
{
	const struct node *of = profile;

	while (of->below && node_path(of->below, "power.kernels"))
		of = of->below;
	return same_chip(profile, of, mem) ?
		       1 :
		       given(profile, mem, "power", "limit", DIM_W) /
			       given(of, mem, "power", "limit", DIM_W);
}

/* The limit of the chip that is extended, and capped by another. */
static double rated_w(const struct node *profile, struct arena *mem)
{
	const struct node *of = profile;

	while (of->below && same_chip(profile, of->below, mem))
		of = of->below;
	return given(of, mem, "power", "limit", DIM_W);
}

/* Also by the curve that it is, unless the map has it itself. */
static bool names(const struct node *map, const char *key,
		  const struct ft_memory_curve *c)
{
	return !strcmp(c->kernel, key) ||
	       (c->as && !strcmp(c->as, key) && !node_get(map, c->kernel));
}

/* kernels: {copy: 500 W, ...}, of curves that have been read. */
static void read_kernel_watts(struct reader *outer, struct arena *mem,
			      const struct node *profile, struct ft_gpu *gpu)
{
	const struct node *map = read_node(outer, "kernels");
	struct reader r;

	if (!map)
		return;
	r = gpu_open_block(outer, mem, map);
	for (size_t i = 0; !r.failed && i < map->n; i++) {
		struct ft_number w = { 0 };
		bool any = !strcmp(map->key[i], "provenance");

		if (!any)
			w = read_positive(&r, mem, map->key[i], DIM_W);
		if (!any && node_get(map, map->key[i])->inherited) {
			double scale = watts_scale(profile, mem);

			w.value *= scale, w.low *= scale, w.high *= scale;
		}
		for (size_t k = 0; k < gpu->n_memory; k++)
			if (names(map, map->key[i], &gpu->memory[k])) {
				gpu->memory[k].w = w;
				any = true;
			}
		if (!any)
			reader_fail(&r, map->key[i], "has no curve in memory_bound");
	}
	gpu_close_block(&r, outer);
}

/* At what was said last: a profile that extends another may say either. */
static void blame_watts(struct reader *r, const struct node *profile,
			const struct ft_gpu *gpu)
{
	const struct node *idle = node_get(r->map, "idle");
	const struct node *limit = node_get(r->map, "limit");
	const struct node *base = node_get(profile, "memory");

	if (strcmp(idle->mark.file, limit->mark.file) &&
	    !strcmp(limit->mark.file, base->mark.file))
		reader_fail(r, "idle", "is not below the limit of %.4g W",
			    gpu->limit_w.value);
	else
		reader_fail(r, "limit", "is not above the %.4g W that it draws idle",
			    gpu->idle_w.value);
}

static void read_power(struct reader *outer, struct arena *mem,
		       const struct node *profile, struct ft_gpu *gpu)
{
	struct reader r = gpu_open_block(outer, mem, read_need(outer, "power"));

	gpu->idle_w = read_number(&r, mem, "idle", DIM_W);
	gpu->limit_w = read_positive(&r, mem, "limit", DIM_W);
	reader_range(&r, "idle", &gpu->idle_w, 0);
	reader_range(&r, "limit", &gpu->limit_w, 0);
	gpu->rated_w = gpu->limit_w;
	gpu->rated_w.value = rated_w(profile, mem);
	if (!r.failed && gpu->limit_w.value <= gpu->idle_w.value)
		blame_watts(&r, profile, gpu);
	gpu->attention_clock = read_number_or(&r, mem, "attention_clock", DIM_FRAC, 0);
	if (node_get(r.map, "attention_clock"))
		reader_bound(&r, "attention_clock", &gpu->attention_clock, 1, 2);
	read_kernel_watts(&r, mem, profile, gpu);
	gpu_close_block(&r, outer);
}

/* A rank has its own memory: kernels that move bytes get their share of the card's rates. */
static void curves_per_rank(struct ft_gpu *gpu)
{
	for (size_t i = 0; i < gpu->n_memory; i++) {
		struct ft_memory_curve *c = &gpu->memory[i];

		per_rank(&c->bytes_per_s, gpu->ranks_per_gpu);
		per_rank(&c->half_bytes, gpu->ranks_per_gpu);
		for (size_t k = 0; k < c->n_rows; k++)
			per_rank(&c->row[k].bytes_per_s, gpu->ranks_per_gpu);
	}
}

/* Of one quantity of a profile over another's; 1: nobody says. */
static double ratio_of(double own, double below)
{
	return own > 0 && below > 0 ? own / below : 1;
}

/* Memory bandwidth, and units x clock of vectors, against those of a profile and all that it extends. */
static const struct gpu_below *all_below(const struct node *of, struct arena *mem,
					 double memory, double die)
{
	struct gpu_below *b = of ? ARENA_NEW(mem, struct gpu_below) : NULL;

	if (of)
		*b = (struct gpu_below){
			of->mark.file,
			ratio_of(memory, given(of, mem, "memory", "bandwidth",
					       DIM_BYTES_PER_S)),
			ratio_of(die, given(of, mem, "peak", "fp32", DIM_FLOP_PER_S)),
			all_below(of->below, mem, memory, die),
		};
	return b;
}

/* The limit under which a format's sustained rate holds: that of the profile that gives the
 * rate, if the peak is still the same. */
static double sustained_at_w(const struct node *map, struct arena *mem,
			     const char *format)
{
	static const char block[] = "gemm.sustained";
	double rate = given(map, mem, block, format, DIM_FRAC);
	double peak = given(map, mem, "peak", format, DIM_FLOP_PER_S);

	while (map->below && given(map->below, mem, block, format, DIM_FRAC) == rate)
		map = map->below;
	return rate > 0 && given(map, mem, "peak", format, DIM_FLOP_PER_S) == peak ?
		       given(map, mem, "power", "limit", DIM_W) :
		       0;
}

bool gpu_read_profile(const struct node *map, struct arena *mem, struct ft_gpu *gpu,
		      struct gpu_wanted *wanted, struct ft_error *err)
{
	struct reader r = reader_open(map, err);

	reader_allow(&r, "extends");
	read_provenance(&r, mem);
	gpu->from = r.from;
	gpu->name = read_name(&r, "name", "");
	gpu->title = read_text(&r, "title", gpu->name);
	gpu->vendor = read_name(&r, "vendor", "");
	gpu->ranks_per_gpu = read_int(&r, "ranks_per_gpu", 1, LARGEST_CARD, 1);
	gpu->compute_units = read_int(&r, "compute_units", 1, 1 << 20, 0);
	read_memory(&r, mem, gpu);
	read_peak(&r, mem, gpu);
	read_launch(&r, mem, gpu);
	gpu_read_gemm(&r, mem, gpu, &wanted->gemm);
	for (int d = 0; d < FT_DTYPES; d++)
		gpu->sustained_at_w[d] =
			sustained_at_w(map, mem, ft_dtype_name((enum ft_dtype)d));
	gpu_read_attention(&r, mem, gpu, &wanted->attention);
	gpu_read_memory(&r, mem, gpu,
			all_below(map->below, mem, gpu->memory_bytes_per_s.value,
				  given(map, mem, "peak", "fp32", DIM_FLOP_PER_S)));
	read_power(&r, mem, map, gpu);
	gpu_read_collectives(&r, mem, gpu, &wanted->collectives);
	gpu_read_interference(&r, mem, gpu);
	gpu->default_node = read_text(&r, "default_node", "");
	gpu->ccl_generation = read_text(&r, "ccl_generation", "");
	per_rank(&gpu->memory_bytes, gpu->ranks_per_gpu);
	per_rank(&gpu->memory_bytes_per_s, gpu->ranks_per_gpu);
	curves_per_rank(gpu);
	for (int d = 0; d < FT_DTYPES; d++)
		per_rank(&gpu->peak_flop_per_s[d], gpu->ranks_per_gpu);
	if (!reader_close(&r))
		return false;
	/* said last: a misspelt key has been named by now */
	if (!gpu->name[0] || gpu->compute_units < gpu->ranks_per_gpu)
		return ft_fail(err, &map->mark, "lacks the key '%s'",
			       gpu->name[0] ? "compute_units" : "name");
	gpu->compute_units /= gpu->ranks_per_gpu;
	return true;
}

struct ft_gpu *ft_gpu_load(const char *name, const struct ft_mark *at,
			   struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct node what = { .kind = NODE_SCALAR, .text = name };

	if (at)
		what.mark = *at;
	return ft_gpu_load_value(&what, FT_GPU_ALL_ROWS, err);
}

/* All that wait to be asked for. */
static bool read_rows(struct ft_gpu *gpu, struct ft_error *err)
{
	bool ok = true;

	for (int d = 0; ok && d < FT_DTYPES; d++) {
		const struct ft_gemm_table *t = ft_gemm_rows(&gpu->gemm[d], err);

		ok = t;
		if (ok)
			gpu->gemm[d] = *t;
	}
	for (size_t i = 0; ok && i < gpu->n_attention; i++) {
		const struct ft_attention_table *t =
			ft_attention_rows(&gpu->attention[i], err);

		ok = t;
		if (ok)
			gpu->attention[i] = *t;
	}
	if (!ok)
		err->of_system = false; /* of a file that is read at once */
	return ok;
}

struct ft_gpu *ft_gpu_load_value(const struct node *what, int rows,
				 struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct owned *owned = ARENA_NEW(&mem, struct owned);
	struct gpu_file own = {
		.mem = &mem, .on = &owned->gpu, .gpu = &owned->gpu, .desk = &owned->desk
	};
	struct gpu_wanted wanted = { 0 };
	const struct node *map = extends_value(&mem, "hw/gpus", what, err);

	rows_desk_open(&owned->desk, &mem);
	if (map && gpu_read_profile(map, &mem, &owned->gpu, &wanted, err) &&
	    gpu_load_all_rows(&own, map, &wanted, rows, err) &&
	    (rows & FT_GPU_ROWS_LATER || read_rows(&owned->gpu, err))) {
		owned->gpu.digest = mem.read;
		owned->mem = mem;
		owned->desk.mem = &owned->mem;
		return &owned->gpu;
	}
	rows_desk_close(&owned->desk);
	arena_release(&mem);
	return NULL;
}

void ft_gpu_free(struct ft_gpu *gpu)
{
	struct owned *owned = (struct owned *)gpu;
	struct arena mem;

	if (!gpu)
		return;
	rows_desk_close(&owned->desk);
	mem = owned->mem;
	arena_release(&mem);
}

/* How well a curve's name fits: as it is, or without what stands behind the last underscore (rmsnorm_mixed,
 * where no curve is its own, goes by rmsnorm). */
static int name_score(const char *curve, const char *kernel)
{
	const char *variant = kernel ? strrchr(kernel, '_') : NULL;

	if (kernel && !strcmp(curve, kernel))
		return 6;
	if (variant && strlen(curve) == (size_t)(variant - kernel) &&
	    !strncmp(curve, kernel, (size_t)(variant - kernel)))
		return 4;
	return strcmp(curve, "default") ? -1 : 2;
}

const struct ft_memory_curve *ft_gpu_memory_curve(const struct ft_gpu *gpu,
						  const char *kernel, bool warm)
{
	const struct ft_memory_curve *best = &gpu->memory[0];
	int best_score = -1;

	for (size_t i = 0; i < gpu->n_memory; i++) {
		const struct ft_memory_curve *c = &gpu->memory[i];
		int score = name_score(c->kernel, kernel);

		if (score >= 0 && score + (c->warm == warm) > best_score) {
			best = c;
			best_score = score + (c->warm == warm);
		}
	}
	return best;
}

double ft_gpu_source_factor(const struct ft_gpu *gpu, const char *source,
			    enum ft_dtype dtype)
{
	const struct ft_gemm_tuned *t = &gpu->gemm_tuned;

	for (size_t i = 0; source && i < t->n_sources; i++)
		if (!strcmp(t->source[i], source))
			return t->time[dtype].value;
	return 1;
}
