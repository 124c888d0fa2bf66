/* hw/gpu_gemm.c - what a profile says of matrix products: constants of the arithmetic, rates by
 * format, layouts, rows */
#include <math.h>

#include "base/arena.h"
#include "base/reader.h"
#include "hw/gpu.h"

/* Times or rates by format against what the block is about; 1 where none is given. */
static void read_formats(struct reader *r, struct arena *mem,
			 struct ft_number out[FT_DTYPES])
{
	for (int d = 0; d < FT_DTYPES; d++) {
		const char *dtype = ft_dtype_name((enum ft_dtype)d);

		out[d] = read_number_or(r, mem, dtype, DIM_FRAC, 1);
		reader_bound(r, dtype, &out[d], 0.001, 10);
	}
}

/* What products reach of the peak, of each format that has one. */
static void read_efficiency(struct reader *outer, struct reader *profile,
			    struct arena *mem, struct ft_gpu *gpu)
{
	struct reader r = gpu_open_block(outer, mem, read_need(outer, "efficiency"));

	for (int d = 0; r.map && d < FT_DTYPES; d++) {
		const char *dtype = ft_dtype_name((enum ft_dtype)d);
		struct ft_number *out = &gpu->gemm_efficiency[d];

		if (read_has(&r, dtype))
			*out = read_number(&r, mem, dtype, DIM_FRAC);
		else if (gpu->peak_flop_per_s[d].value > 0)
			reader_fail_node(
				&r, dtype,
				node_path(profile->map,
					  arena_printf(mem, "peak.%s", dtype)),
				"has a peak, and no gemm.efficiency beside it: what share of it "
				"products reach");
		reader_bound(&r, dtype, out, 0.001, 10);
	}
	gpu_close_block(&r, outer);
}

/* {FORMAT: rate}: what other cards of this kind hold; the range of each format reaches there. */
static void read_elsewhere(struct reader *outer, struct arena *mem, struct ft_gpu *gpu)
{
	struct reader r = gpu_open_block(outer, mem, read_node(outer, "elsewhere"));

	for (int d = 0; d < FT_DTYPES; d++) {
		const char *dtype = ft_dtype_name((enum ft_dtype)d);
		struct ft_number *range = &gpu->sustained[d], other;

		if (!read_has(&r, dtype))
			continue;
		other = read_number(&r, mem, dtype, DIM_FRAC);
		reader_bound(&r, dtype, &other, 0.001, 10);
		range->low = fmin(range->low, other.low);
		range->high = fmax(range->high, other.high);
	}
	gpu_close_block(&r, outer);
}

static void read_sustained(struct reader *outer, struct arena *mem, struct ft_gpu *gpu)
{
	struct reader r = gpu_open_block(outer, mem, read_node(outer, "sustained"));

	read_formats(&r, mem, gpu->sustained);
	read_elsewhere(&r, mem, gpu);
	gpu_close_block(&r, outer);
}

/* {sources: [CODE, ...], FORMAT: time against a framework's product, ...} */
static void read_tuned(struct reader *outer, struct arena *mem, struct ft_gemm_tuned *t)
{
	struct reader r = gpu_open_block(outer, mem, read_node(outer, "tuned"));
	const struct node *list = read_node(&r, "sources");

	read_formats(&r, mem, t->time);
	if (r.map && !r.failed && (!list || list->kind != NODE_LIST))
		reader_fail(&r, list ? "sources" : NULL,
			    "needs 'sources', a list of codes of the rows' column "
			    "'source'");
	if (r.map && !r.failed)
		t->source = ARENA_ARRAY(mem, list->n + 1, const char *);
	for (size_t i = 0; r.map && !r.failed && i < list->n; i++) {
		if (list->item[i]->kind == NODE_SCALAR)
			t->source[t->n_sources++] = list->item[i]->text;
		else
			reader_fail(&r, "sources", "is a list of words");
	}
	gpu_close_block(&r, outer);
}

static void read_gemm_model(struct reader *r, struct arena *mem,
			    struct ft_gemm_model *m)
{
	m->tile_m = read_int(r, "tile_m", 8, 1024, 128);
	m->tile_n = read_int(r, "tile_n", 8, 1024, 256);
	m->start_s = read_number(r, mem, "start", DIM_S);
	m->tile_s = read_number(r, mem, "tile_overhead", DIM_S);
	m->wave_frac = read_number(r, mem, "wave_loss", DIM_FRAC);
	m->square_frac = read_positive(r, mem, "square_tile_rate", DIM_FRAC);
	m->narrow_frac = read_positive(r, mem, "narrow_tile_rate", DIM_FRAC);
	m->memory_frac = read_positive(r, mem, "memory_rate", DIM_FRAC);
	m->sharpness = read_number(r, mem, "sharpness", DIM_NONE);
	m->grouped_sharpness = read_number_or(r, mem, "grouped_sharpness", DIM_NONE,
					      m->sharpness.value);
	m->split = read_number(r, mem, "split_cost", DIM_NONE);
	m->noise = read_number(r, mem, "noise", DIM_FRAC);
	reader_bound(r, "wave_loss", &m->wave_frac, 0, 1);
	reader_bound(r, "square_tile_rate", &m->square_frac, 0.01, 10);
	reader_bound(r, "narrow_tile_rate", &m->narrow_frac, 0.01, 10);
	reader_bound(r, "memory_rate", &m->memory_frac, 0.01, 10);
	reader_bound(r, "sharpness", &m->sharpness, 1, 1000);
	reader_bound(r, "grouped_sharpness", &m->grouped_sharpness, 1, 1000);
	reader_bound(r, "noise", &m->noise, 0, 10);
}

/* Numbers of a block, each between two bounds; what it does not have is `otherwise`. */
struct some {
	const char *block, *key[4]; /* NULL behind the last */
	double least, most, otherwise;
};

static void read_some(struct reader *outer, struct arena *mem, const struct some *s,
		      struct ft_number *out)
{
	struct reader r = gpu_open_block(outer, mem, read_node(outer, s->block));

	for (int i = 0; s->key[i]; i++) {
		out[i] = read_number_or(&r, mem, s->key[i], DIM_NONE, s->otherwise);
		if (read_has(&r, s->key[i]))
			reader_bound(&r, s->key[i], &out[i], s->least, s->most);
	}
	gpu_close_block(&r, outer);
}

/* {FORMAT: {wgrad: 1.24}}: formats whose layouts have times of their own. */
static void read_layouts_of(struct reader *outer, struct arena *mem, struct ft_gpu *gpu)
{
	struct reader r = gpu_open_block(outer, mem, read_node(outer, "layout_of")), in;

	for (int d = 0; d < FT_DTYPES; d++) {
		const char *format = ft_dtype_name((enum ft_dtype)d);
		struct ft_number *of = gpu->gemm_layout[d];

		in = gpu_open_block(&r, mem, read_node(&r, format));
		for (int i = 0; i < FT_LAYOUTS; i++) {
			const char *layout = ft_layout_name((enum ft_layout)i);

			if (read_has(&in, layout))
				of[i] = read_number(&in, mem, layout, DIM_NONE);
			reader_bound(&in, layout, &of[i], 0.01, 100);
		}
		gpu_close_block(&in, &r);
	}
	gpu_close_block(&r, outer);
}

/* {dgrad: 1.01, wgrad: 1.02, accumulate: 1.04, fast: 0.94} */
static void read_layouts(struct reader *outer, struct arena *mem, struct ft_gpu *gpu)
{
	struct reader r = gpu_open_block(outer, mem, read_node(outer, "layout"));

	for (int i = 0; i < FT_LAYOUTS; i++) {
		const char *layout = ft_layout_name((enum ft_layout)i);
		struct ft_number all = read_number_or(&r, mem, layout, DIM_NONE, 1);

		reader_bound(&r, layout, &all, 0.01, 100);
		for (int d = 0; d < FT_DTYPES; d++)
			gpu->gemm_layout[d][i] = all;
	}
	gpu->gemm_accumulate = read_number_or(&r, mem, "accumulate", DIM_NONE, 1);
	reader_bound(&r, "accumulate", &gpu->gemm_accumulate, 0.01, 100);
	gpu->gemm_fast = read_number_or(&r, mem, "fast", DIM_NONE, 1);
	reader_bound(&r, "fast", &gpu->gemm_fast, 0.01, 100);
	gpu_close_block(&r, outer);
	read_layouts_of(outer, mem, gpu);
}

void gpu_read_gemm(struct reader *outer, struct arena *mem, struct ft_gpu *gpu,
		   struct gpu_rows *rows)
{
	static const struct some distance = {
		"distance", { "m", "n", "k" }, 0.01, 100, 1
	};
	static const struct some batched = {
		"batched_fp32", { "rows_32", "rows_64" }, 0.01, 1, 0
	};
	struct reader r = gpu_open_block(outer, mem, read_need(outer, "gemm"));

	gpu->gemm_spread = read_number(&r, mem, "spread", DIM_FRAC);
	read_gemm_model(&r, mem, &gpu->gemm_model);
	read_some(&r, mem, &distance, gpu->gemm_model.distance);
	read_some(&r, mem, &batched, gpu->gemm_model.batched);
	read_efficiency(&r, outer, mem, gpu);
	read_sustained(&r, mem, gpu);
	read_tuned(&r, mem, &gpu->gemm_tuned);
	gpu->any_layout = read_bool(&r, "any_layout", false);
	gpu->gemm_grouped = read_number(&r, mem, "grouped", DIM_NONE);
	reader_bound(&r, "grouped", &gpu->gemm_grouped, 0.01, 100);
	gpu->gemm_mxfp8 = read_number_or(&r, mem, "mxfp8_time", DIM_NONE, 1);
	reader_bound(&r, "mxfp8_time", &gpu->gemm_mxfp8, 0.01, 100);
	gpu->gemm_unaligned = read_number_or(&r, mem, "unaligned_rate", DIM_FRAC, 1);
	reader_bound(&r, "unaligned_rate", &gpu->gemm_unaligned, 0.01, 1);
	gpu->gemm_odd = read_number_or(&r, mem, "odd_rate", DIM_FRAC,
				       gpu->gemm_unaligned.value);
	reader_bound(&r, "odd_rate", &gpu->gemm_odd, 0.01, 1);
	read_layouts(&r, mem, gpu);
	gpu_read_rows(&r, rows);
	gpu_close_block(&r, outer);
}
