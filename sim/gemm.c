/*
 * sim/gemm.c - matrix products: waves of tiles, times a ratio that was measured
 *
 * Arithmetic. A product is cut in tiles, perhaps with the inner sum split in
 * s; x = tiles s / compute units is the number of waves. Of an unfilled last
 * wave the share `wave_frac` is lost (persistent kernels lose little):
 *
 *   compute = max(1, x + wave_frac (ceil x - x)) (tile flop / rate + tile_s)
 *   memory  = (A + B once, C) / (memory_frac bandwidth)
 *   t       = start_s + (compute^p + memory^p)^(1/p)
 *
 * with the best of five tiles and s = 1, 2, 4, 8. A quarter of a tile has 0.8 of the rate of a narrow one (assumed). Grouped products have a p of their
 * own: where each group is launched by itself (1), the loads of one are not hidden under
 * the arithmetic of another. No product is faster than its bytes at the whole bandwidth: none
 * of 29,000 measured ones is, caches or not. Ratio: log(measured / t) is a
 * field over x = log2(m, n, k) with the covariance of `terms` below: a smooth
 * part over all three, and rougher parts that are shared by products with the
 * same m and n (the tile pattern does not know k), the same n and k, or none.
 * Source of the constants: search by 5-fold cross-validation over whole (n,k)
 * on six published grids (H200 bf16 and fp8, A100, B200 bf16 and nvfp4, GB300
 * fp8). `make search` repeats it from where they stand (scripts/search_kriging.py);
 * tests/test_kernel_held_out.c says what error they give. A profile may stretch the axes
 * (`distance`), as the rough grids of tuners want. Limits: below m = 256 and n or k = 1024
 * the grids are empty; rows
 * are taken as aligned (the profile's unaligned_rate and odd_rate say what others lose).
 */
#include <math.h>

#include "base/arena.h"
#include "base/text.h"
#include "sim/kernel.h"

enum { TERMS = 4, BLOCK = 8 };

static const struct {
	float variance, m, n, k;
} terms[TERMS] = {
	{ 0.01256f, 0.03114f, 0.07865f, 0.03403f },
	{ 0.006209f, 0.6689f, 7.056f, 0.01627f },
	{ 0.01541f, 0.4546f, 0.1472f, 0.05864f },
	{ 0.0005995f, 0.263f, 8.231f, 0.776f },
};

/* Beyond this many doublings from the next row a shape is called far. */
static const float far_log2 = 1.75f;

double gemm_tiles(double m, double n, double tile_m, double tile_n)
{
	return ceil(m / tile_m) * ceil(n / tile_n);
}

double gemm_waves(double tiles, int64_t compute_units)
{
	return ceil(tiles / (double)compute_units);
}

/* An element of C: written in 16 bits, or added to an fp32 gradient. */
struct product product_of(const struct ft_work *w)
{
	struct ft_product p = ft_product_of(w->gemm.layout, (double)w->gemm.m,
					    (double)w->gemm.n, (double)w->gemm.k);

	return (struct product){
		.m = p.m,
		.n = p.n,
		.k = p.k,
		.groups = w->gemm.groups > 1 ? (double)w->gemm.groups : 1,
		.out_bytes = w->gemm.accumulate ? 8 : 2,
		.inner = w->gemm.layout == FT_WGRAD,
		.static_tiles = w->gemm.static_tiles,
	};
}

/* The best choice of tile and split; m, n, k are of one group. */
static double compute_s(const struct ft_gpu *gpu, enum ft_dtype dtype, double m,
			double n, double k, double groups)
{
	const struct ft_gemm_model *g = &gpu->gemm_model;
	double tm = (double)g->tile_m, tn = (double)g->tile_n;
	const double tile[5][3] = {
		{ tm, tn, 1 },
		{ tn, tm, 1 },
		{ tm, tm, g->square_frac.value },
		{ tm / 2, tn, g->narrow_frac.value },
		{ tm / 2, tm, g->narrow_frac.value * 0.8 },
	};
	double units = (double)gpu->compute_units, best = INFINITY;
	double unit_rate = gpu->peak_flop_per_s[dtype].value / units *
			   gpu->gemm_efficiency[dtype].value;

	for (int i = 0; i < 5; i++) {
		double tiles = groups * gemm_tiles(m, n, tile[i][0], tile[i][1]);
		double flop = 2 * tile[i][0] * tile[i][1] * k;
		double rate = unit_rate * tile[i][2];

		for (int s = 1; s <= 8; s *= 2) {
			double x = tiles * s / units, t;

			if (s > 1 && (k / s < 512 || x > 4))
				break;
			t = fmax(1, x + g->wave_frac.value * (ceil(x) - x)) *
			    (flop / s / rate + g->tile_s.value);
			if (s > 1)
				t += g->split.value * 4 * s * groups * m * n /
				     gpu->memory_bytes_per_s.value;
			best = fmin(best, t);
		}
	}
	return best;
}

/* m and k of one group. */
static double one_m(const struct product *p)
{
	return p->inner ? p->m : ceil(p->m / p->groups);
}

static double one_k(const struct product *p)
{
	return p->inner ? ceil(p->k / p->groups) : p->k;
}

static double moved_bytes(enum ft_dtype dtype, const struct product *p)
{
	double m = one_m(p), k = one_k(p);

	return p->groups *
	       (ft_dtype_bytes(dtype) * k * (m + p->n) + p->out_bytes * m * p->n);
}

static double least_s(const struct ft_gpu *gpu, enum ft_dtype dtype,
		      const struct product *p)
{
	return moved_bytes(dtype, p) / gpu->memory_bytes_per_s.value;
}

/* The equation, where the main loop runs at `rate` of what whole loads of 16 bytes let it. */
static double equation_s(const struct ft_gpu *gpu, enum ft_dtype dtype,
			 const struct product *p, double rate)
{
	const struct ft_gemm_model *g = &gpu->gemm_model;
	double compute =
		compute_s(gpu, dtype, one_m(p), p->n, one_k(p), p->groups) / rate;
	double bytes = moved_bytes(dtype, p);
	double memory = bytes / (gpu->memory_bytes_per_s.value * g->memory_frac.value);
	double low = fmin(compute, memory), high = fmax(compute, memory);
	double power = p->groups > 1 ? g->grouped_sharpness.value : g->sharpness.value;

	return g->start_s.value + high * pow(1 + pow(low / high, power), 1 / power);
}

double gemm_arithmetic_s(const struct ft_gpu *gpu, enum ft_dtype dtype,
			 const struct product *p)
{
	return equation_s(gpu, dtype, p, 1);
}

/*
 * A product takes the waves of the units that are left; of a persistent one the blocks that
 * found no unit at its start come after, at most twice its time. Source: products of 2 to 16
 * waves beside 2 to 24 channels on an H100, within 8 % (docs/networks.md). Where each block has its
 * tiles from the start, those that come after have as much to do as the first: grouped products of
 * two recorded steps on two H200 take 1.8 to 2.0 times as long (measurements/traces/h200-two-mixtral-*).
 */
double gemm_beside(const struct ft_gpu *gpu, const struct product *p, double held)
{
	const struct ft_gemm_model *g = &gpu->gemm_model;
	double left = (double)gpu->compute_units - held;
	double tiles = p->groups *
		       gemm_tiles(one_m(p), p->n, (double)g->tile_m, (double)g->tile_n);
	double late = gpu->persistent_products && held > 0 ? 1 : 0;

	if (tiles <= left)
		return 1;
	if (p->static_tiles && gpu->persistent_products)
		return ceil(fmin(tiles, (double)gpu->compute_units) / left);
	return fmin(2, (ceil(tiles / left) + late) /
			       gemm_waves(tiles, gpu->compute_units));
}

/* ---- the ratio ---------------------------------------------------------- */

static float between(const void *rows, size_t a, size_t b)
{
	const struct ft_gemm_table *t = rows;
	float m = t->log_m[a] - t->log_m[b], n = t->log_n[a] - t->log_n[b];
	float k = t->log_k[a] - t->log_k[b], sum = 0;

	for (int i = 0; i < TERMS; i++)
		sum += terms[i].variance *
		       krige_near(m * m * terms[i].m + n * n * terms[i].n +
				  k * k * terms[i].k);
	return sum;
}

/* The rows nearest to a point; eight at a time, for the vector units. */
static void nearest(const struct ft_gemm_table *t, const float at[3], const bool *skip,
		    struct krige *near)
{
	size_t blocks = (t->n_rows + BLOCK - 1) / BLOCK, b = 0;
	size_t stride = krige_stride(blocks);

	krige_init(near);
	for (size_t count = 0; count < blocks; count++) {
		float m[BLOCK], n[BLOCK], k[BLOCK], sum[BLOCK] = { 0 };
		size_t i = b * BLOCK;

		for (size_t j = 0; j < BLOCK; j++) {
			m[j] = t->log_m[i + j] - at[0];
			n[j] = t->log_n[i + j] - at[1];
			k[j] = t->log_k[i + j] - at[2];
			m[j] *= m[j];
			n[j] *= n[j];
			k[j] *= k[j];
		}
		for (int e = 0; e < TERMS; e++)
			for (int j = 0; j < BLOCK; j++)
				sum[j] += terms[e].variance *
					  krige_near(m[j] * terms[e].m +
						     n[j] * terms[e].n +
						     k[j] * terms[e].k);
		for (size_t j = 0; j < BLOCK && i + j < t->n_rows; j++)
			if (!skip || !skip[i + j])
				krige_offer(near, i + j, sum[j]);
		b = (b + stride) % blocks;
	}
}

static bool is_far(const struct ft_gemm_table *t, const struct krige *near,
		   const float at[3])
{
	for (size_t i = 0; i < near->n; i++) {
		size_t r = near->row[i];

		if (fabsf(t->log_m[r] - at[0]) < far_log2 * t->scale[0] &&
		    fabsf(t->log_n[r] - at[1]) < far_log2 * t->scale[1] &&
		    fabsf(t->log_k[r] - at[2]) < far_log2 * t->scale[2])
			return false;
	}
	return true;
}

struct kernel_estimate gemm_estimate(const struct ft_gpu *gpu,
				     const struct ft_gemm_table *t, enum ft_dtype dtype,
				     const struct product *p, const bool *skip)
{
	struct kernel_estimate e = { 0 };
	const float at[3] = { t->scale[0] * log2f((float)p->m),
			      t->scale[1] * log2f((float)p->n),
			      t->scale[2] * log2f((float)p->k) };
	double noise = t->on->gemm_model.noise.value, ratio;
	struct krige_field field = { between, t, 0, 0 };
	double value[KRIGE_NEAR];
	struct krige near;

	nearest(t, at, skip, &near);
	for (size_t i = 0; i < near.n; i++) {
		const struct ft_gemm_row *row = &t->row[near.row[i]];
		struct product q = { row->m, row->n, row->k, 1, false, 2, false };

		value[i] = log(row->time_s / gemm_arithmetic_s(t->on, t->dtype, &q));
	}
	for (int i = 0; i < TERMS; i++)
		field.variance += (double)terms[i].variance;
	field.noise = noise * noise;
	ratio = near.n ? krige_estimate(&near, value, &field, &e.left) : 0;
	e.far = is_far(t, &near, at);
	e.time_s = fmax(gemm_arithmetic_s(gpu, dtype, p) * exp(ratio),
			least_s(gpu, dtype, p));
	return e;
}

/* ---- the prediction ----------------------------------------------------- */

/* The measured table that says most about a format: its own, or the nearest. */
static const struct ft_gemm_table *table_for(const struct ft_gpu *gpu,
					     enum ft_dtype dtype)
{
	static const enum ft_dtype order[FT_DTYPES][4] = {
		[FT_BF16] = { FT_BF16, FT_BF16, FT_BF16, FT_BF16 },
		[FT_FP16] = { FT_FP16, FT_BF16, FT_BF16, FT_BF16 },
		[FT_FP32] = { FT_FP32, FT_FP32, FT_FP32, FT_FP32 },
		[FT_FP8] = { FT_FP8, FT_FP8_BLOCK128, FT_MXFP8, FT_BF16 },
		[FT_FP8_BLOCK128] = { FT_FP8_BLOCK128, FT_FP8, FT_MXFP8, FT_BF16 },
		[FT_MXFP8] = { FT_MXFP8, FT_FP8, FT_FP8_BLOCK128, FT_BF16 },
		[FT_NVFP4] = { FT_NVFP4, FT_FP8, FT_FP8_BLOCK128, FT_BF16 },
		[FT_MXFP4] = { FT_MXFP4, FT_FP8, FT_FP8_BLOCK128, FT_BF16 },
	};

	for (int i = 0; i < 4; i++)
		if (gpu->gemm[order[dtype][i]].n_rows)
			return &gpu->gemm[order[dtype][i]];
	return NULL;
}

static bool no_format(const struct ft_gpu *gpu, enum ft_dtype dtype,
		      struct ft_error *err)
{
	const char *has[FT_DTYPES];
	struct arena mem = { 0 };
	size_t n = 0;

	for (int d = 0; d < FT_DTYPES; d++)
		if (gpu->peak_flop_per_s[d].value > 0)
			has[n++] = ft_dtype_name((enum ft_dtype)d);
	ft_fail(err, NULL, "%s has no %s matrix products; it has %s", gpu->name,
		ft_dtype_name(dtype), text_join(&mem, has, n));
	arena_release(&mem);
	return false;
}

/*
 * The rate of a product whose rows begin at no multiple of 16 bytes; NULL: all do. Kernels
 * load 16 bytes at a time where they do: rows have the layer's n and k as their length, in
 * every layout. It is the main loop's alone: source, 72 products on an H100 and 285 on an H200
 * (docs/findings.md, "Rows that are not aligned").
 */
static const struct ft_number *unaligned_rate(const struct ft_gpu *gpu,
					      const struct ft_work *w)
{
	double e = ft_dtype_bytes(w->dtype);
	double n = (double)w->gemm.n * e, k = (double)w->gemm.k * e;

	if (fmod(n, 4) != 0 || fmod(k, 4) != 0)
		return &gpu->gemm_odd;
	return fmod(n, 16) != 0 || fmod(k, 16) != 0 ? &gpu->gemm_unaligned : NULL;
}

/* Small groups in fp32 that one kernel runs, their rows in tiles of 32 or 64; groups may share their second operand, whose
 * bytes bind none of them. 0: none of these, or not known. Source: measurements/probes/h200-2026-11-30-indexers-unseen. */
static double batched_s(const struct ft_gpu *gpu, enum ft_dtype dtype,
			const struct product *p)
{
	const struct ft_gemm_model *g = &gpu->gemm_model;
	double rows = one_m(p), of_peak, flop;

	of_peak = fmax(g->batched[0].value / ceil(rows / 32) / 32,
		       g->batched[1].value / 64);
	if (dtype != FT_FP32 || !(p->groups > 1) || p->inner || rows > 64 ||
	    !(of_peak > 0))
		return 0;
	flop = 2 * p->groups * p->n * p->k;
	return g->start_s.value + flop / of_peak / gpu->peak_flop_per_s[dtype].value;
}

bool gemm_predict(const struct ft_gpu *gpu, const struct ft_work *work,
		  struct ft_prediction *out, struct ft_error *err)
{
	const struct ft_gemm_table *t = table_for(gpu, work->dtype);
	struct product p = product_of(work);
	double spread = gpu->gemm_spread.value, left = 0, noise;
	const struct ft_number *rate;

	if (!(gpu->peak_flop_per_s[work->dtype].value > 0))
		return no_format(gpu, work->dtype, err);
	*out = (struct ft_prediction){ .time_s = batched_s(gpu, work->dtype, &p) };
	if (out->time_s > 0) {
		out->spread_frac = gpu->gemm_spread.value;
		return true;
	}
	if (t && !(t = ft_gemm_rows(t, err)))
		return false;
	if (t) {
		bool same = t->dtype == work->dtype || work->dtype == FT_FP16;
		struct kernel_estimate e = gemm_estimate(gpu, t, work->dtype, &p, NULL);

		out->time_s = e.time_s;
		if (work->dtype == FT_MXFP8 && t->dtype == FT_FP8)
			out->time_s *= gpu->gemm_mxfp8.value;
		out->extrapolated = e.far;
		left = e.left;
		spread *= same ? 1 : 2;
	} else {
		out->time_s = fmax(gemm_arithmetic_s(gpu, work->dtype, &p),
				   least_s(gpu, work->dtype, &p));
		out->extrapolated = true;
		spread = fmax(2 * spread, 0.15); /* assumed: no row says it */
	}
	if (p.groups > 1)
		out->time_s = fmax(out->time_s * gpu->gemm_grouped.value,
				   least_s(gpu, work->dtype, &p));
	out->time_s *= gpu->gemm_layout[work->dtype][work->gemm.layout].value;
	if (work->gemm.accumulate)
		out->time_s *= gpu->gemm_accumulate.value;
	if (work->gemm.fast)
		out->time_s = fmax(out->time_s * gpu->gemm_fast.value,
				   least_s(gpu, work->dtype, &p));
	rate = unaligned_rate(gpu, work);
	if (rate && rate->value < 1) {
		out->time_s *= equation_s(gpu, work->dtype, &p, rate->value) /
			       equation_s(gpu, work->dtype, &p, 1);
		out->extrapolated = true;
		spread = fmax(spread, (rate->high - rate->low) / 2 / rate->value);
	}
	out->time_s = fmax(out->time_s, gpu->kernel_floor_s.value);
	noise = gpu->gemm_model.noise.value;
	out->spread_frac = krige_spread(spread, left, noise * noise);
	return true;
}
