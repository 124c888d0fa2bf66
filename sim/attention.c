/*
 * sim/attention.c - fused attention: arithmetic, times a measured ratio
 *
 * Arithmetic, for one pass over b h heads of s queries and keys:
 *
 *   t = start_s + flop / (efficiency peak) (1 + ramp / s) (1 + edge / s)
 *                 max(1, x + wave_frac (ceil x - x)) / x
 *
 * under a window of w of s keys, which cuts tiles along two edges and shortens no fill,
 *
 *   s/2 (1 + ramp / s) (1 + edge / s) becomes
 *   w - w^2 / (2 s) + (ramp + edge (2 - w / s)) / 2 + ramp edge (w - w^2 / (2 s)) / s^2
 *
 * but below the shortest tables, 512 tokens, the mask costs no more beside a pass without one than there: of 107 pairs of their rows
 * (H100, H200) the causal one takes 1.01 times as long in the median, 1.09 at most.
 *
 * x = b h ceil(s / 128) / compute units is the number of waves; edge counts
 * only under a causal mask (tiles on the diagonal are computed whole), ramp
 * always (the first tiles of a row fill the pipeline). Heads of 64 and 256
 * have rates of their own; flop is that of the next multiple of 32 as head size. Both passes are the sum of the two. As with
 * products, no pass is faster than what it reads and writes once at the whole bandwidth. Ramp and edge of
 * H200 cuDNN follow from its published rates at s = 2048 to 32768. The log of
 * measured / t is a field over log2(s, b, h, kv, d) and the mask; constants by
 * 5-fold cross-validation on the published grids of five GPU formats.
 * Limits: those grids have d = 128, causal, s >= 1024, forward only.
 *
 * A library that has kernels of its own for some shapes alone (AITER's backward passes) runs another's
 * for the rest, and Composable Kernel's are built for few head sizes: the profile's `kernels` say so.
 */
#include <math.h>
#include <string.h>

#include "sim/kernel.h"

enum { AXES = 6, TILE = 128, SHORTEST = 512 };

static const float variance_all = 0.03063f, variance_heads = 0.002145f,
		   variance_work = 0.02005f;
static const double noise = 0.002242;

double attention_flop(const struct attention_shape *a)
{
	return ft_attention_flop(
		(enum ft_pass)a->pass,
		a->batch * a->heads *
			ft_attention_pairs(a->queries, a->keys, a->window, a->causal),
		a->head_dim, a->head_dim);
}

/* Rate of a head size against 128, straight in log2(d) between those given. */
static double head_rate(const struct ft_attention_model *m, double head_dim)
{
	double x = log2(head_dim / 128);

	return x < 0 ? pow(m->narrow_frac.value, fmin(-x, 2)) :
		       pow(m->wide_frac.value, fmin(x, 1));
}

/* Kernels are built for head sizes in steps of 32, if not wider ones; between them they
 * compute zeros. */
static double built_for(const struct ft_gpu *gpu, const struct attention_shape *a)
{
	return 32 * ceil(ft_attention_kernel_size(gpu, a->impl, a->head_dim) / 32);
}

/* Work against what the mask lets count. A query's row of tiles has a pipeline to fill and,
 * where the mask cuts through tiles, computes those whole: along one edge if causal, along
 * two inside a window, whose rear edge the first w queries do not reach. Where there is but
 * one tile or two, all are computed. */
static double beside_what_counts(const struct attention_shape *a, double ramp,
				 double edge)
{
	double seen = a->window > 0 ? fmin(a->window, a->keys) : a->keys;
	double pairs = ft_attention_pairs(a->queries, a->keys, a->window, a->causal);
	double edges = a->causal + (1 - seen / a->keys);
	double whole = a->queries * (a->keys + ramp) / pairs *
		       fmax(1, (1 + edge / SHORTEST) / 2);

	if (!a->causal)
		return fmin(1 + (ramp + edges * edge) * a->queries / pairs, whole);
	return fmin(1 + (ramp + edges * edge) / 2 * a->queries / pairs +
			    ramp * edge / (a->keys * a->keys),
		    whole);
}

static double one_pass_s(const struct ft_gpu *gpu, const struct attention_shape *a,
			 int pass)
{
	const struct ft_attention_model *m = &gpu->attention_model;
	double tiles = a->batch * a->heads * ceil(a->queries / TILE);
	double x = tiles / (double)gpu->compute_units;
	double dim = built_for(gpu, a);
	double flop = attention_flop(a) * dim / a->head_dim *
		      beside_what_counts(a, m->ramp[pass].value, m->edge[pass].value);

	return m->start_s.value +
	       flop /
		       (gpu->peak_flop_per_s[a->dtype].value *
			m->efficiency[pass].value * head_rate(m, dim)) *
		       fmax(1, x + m->wave_frac.value * (ceil(x) - x)) / x;
}

double attention_arithmetic_s(const struct ft_gpu *gpu, const struct attention_shape *a)
{
	struct attention_shape one = *a;
	double time = 0;

	for (int pass = 0; pass < 2; pass++) {
		if (a->pass != FT_PASS_BOTH && a->pass != pass)
			continue;
		one.pass = pass;
		time += one_pass_s(gpu, &one, pass);
	}
	return time;
}

/* A forward pass reads q, k and v and writes the output; a backward one reads these and the
 * output's gradient and writes three. */
static double least_s(const struct ft_gpu *gpu, const struct attention_shape *a)
{
	static const double times[FT_PASSES] = { 1, 2, 3 };
	double rows = a->heads * a->queries + a->kv_heads * a->keys;
	double bytes = 2 * ft_dtype_bytes(a->dtype) * a->batch * rows * a->head_dim;

	return times[a->pass] * bytes / gpu->memory_bytes_per_s.value;
}

/* ---- the ratio ---------------------------------------------------------- */

static float covariance(const float *a, const float *b)
{
	float d[AXES], other;
	float work = a[1] + a[2] - b[1] - b[2];

	for (int i = 0; i < AXES; i++) {
		d[i] = a[i] - b[i];
		d[i] *= d[i];
	}
	other = d[4] + 0.5f * d[5];
	return variance_all * krige_near(d[0] * 0.2246f + d[1] * 0.03001f +
					 d[2] * 0.01806f + d[3] * 0.02346f + other) +
	       variance_heads * krige_near(d[0] * 2.23f + d[1] * 0.2841f +
					   d[2] * 1.594f + d[3] * 0.5126f + other) +
	       variance_work *
		       krige_near(d[0] * 0.7008f + work * work * 0.3727f + other);
}

static float between(const void *rows, size_t a, size_t b)
{
	const struct ft_attention_table *t = rows;

	return covariance(t->row[a].at, t->row[b].at);
}

/* No neighbour within 1.75 doublings of the sequence, 0.75 of the head size and three of
 * the heads at work, with the same mask. */
static bool is_far(const struct ft_attention_table *t, const struct krige *near,
		   const float *at)
{
	for (size_t i = 0; i < near->n; i++) {
		const float *r = t->row[near->row[i]].at;

		if (fabsf(r[0] - at[0]) < 1.75f && fabsf(r[4] - at[4]) < 0.75f &&
		    r[5] == at[5] && fabsf(r[1] + r[2] - at[1] - at[2]) < 3)
			return false;
	}
	return true;
}

struct kernel_estimate attention_estimate(const struct ft_gpu *gpu,
					  const struct ft_attention_table *t,
					  const struct attention_shape *a,
					  const bool *skip)
{
	struct kernel_estimate e = { 0 };
	const float at[AXES] = {
		log2f((float)a->keys),
		log2f((float)a->batch),
		log2f((float)a->heads),
		log2f((float)a->kv_heads),
		log2f((float)ft_attention_kernel_size(gpu, a->impl, a->head_dim)),
		a->causal ? 1 : 0,
	};
	size_t row = 0, stride = krige_stride(t->n_rows);
	struct krige_field field = { between, t, noise,
				     (double)(variance_all + variance_heads +
					      variance_work) };
	double value[KRIGE_NEAR], ratio;
	struct krige near;

	krige_init(&near);
	for (size_t count = 0; count < t->n_rows; count++) {
		if (!skip || !skip[row])
			krige_offer(&near, row, covariance(at, t->row[row].at));
		row = (row + stride) % t->n_rows;
	}
	for (size_t i = 0; i < near.n; i++) {
		const struct ft_attention_row *r = &t->row[near.row[i]];
		struct attention_shape b = {
			r->batch,    r->heads,	  r->kv_heads, r->sequence,
			r->sequence, r->head_dim, 0,	       r->causal,
			t->pass,     t->dtype,	  t->impl,
		};

		value[i] = log(attention_flop(&b) / r->flop_per_s /
			       attention_arithmetic_s(t->on, &b));
	}
	ratio = near.n ? krige_estimate(&near, value, &field, &e.left) : 0;
	e.far = is_far(t, &near, at);
	e.time_s = attention_arithmetic_s(gpu, a) * exp(ratio);
	return e;
}

/* ---- the prediction ----------------------------------------------------- */

enum {
	OTHER_IMPL = 32,
	OTHER_VERSION = 16,
	OTHER_PASS = 8,
	OTHER_DTYPE = 3,
	OTHER_GPU = 1
};

/* How far one implementation is from another; NAME-VERSION is a version of NAME. */
static int impl_distance(const char *a, const char *b)
{
	size_t name = strcspn(a, "-");

	if (!strcmp(a, b))
		return 0;
	return name == strcspn(b, "-") && !strncmp(a, b, name) ? OTHER_VERSION :
								 OTHER_IMPL;
}

/* A nearer one; of those that are as near the one of nearer kin, then the longer one. */
static bool is_nearer(const struct ft_attention_table *a, int w,
		      const struct ft_attention_table *b, int v)
{
	if (w != v)
		return w < v;
	return a->kin != b->kin ? a->kin < b->kin : a->n_rows > b->n_rows;
}

/* The table that stands nearest, and what it is wrong in. What extends a GPU asks those tables that the GPU would. */
static const struct ft_attention_table *table_for(const struct ft_gpu *gpu,
						  const char *impl,
						  const struct attention_shape *a,
						  int *wrong)
{
	const struct ft_attention_table *best = NULL;
	enum ft_dtype dtype = a->dtype == FT_FP16 ? FT_BF16 : a->dtype;

	int least = 0;

	*wrong = 0;
	for (size_t i = 0; i < gpu->n_attention; i++) {
		const struct ft_attention_table *t = &gpu->attention[i];
		int w = impl_distance(t->impl, impl) +
			(t->pass != a->pass ? OTHER_PASS : 0) +
			(t->dtype != dtype ? OTHER_DTYPE : 0) +
			(t->kin ? OTHER_GPU : 0);

		/* both passes say more about one of them than the other does */
		if (w & OTHER_PASS && t->pass == FT_PASS_BOTH)
			w -= OTHER_GPU + 1;

		if (!best || is_nearer(t, w, best, least)) {
			best = t;
			least = w;
		}
	}
	if (best)
		*wrong = least + (best->on != gpu && !best->kin ? OTHER_GPU : 0);
	return best;
}

/* NULL: the profile does not know it, and it counts as 1. */
static const struct ft_number *rate_of(const struct ft_gpu *gpu, const char *impl)
{
	for (size_t i = 0; i < gpu->n_impls; i++)
		if (!strcmp(gpu->impl[i].name, impl))
			return &gpu->impl[i].rate;
	return NULL;
}

/* From the rows of one implementation to another, by their rates; how far off they may be adds to
 * how far off the rows are. */
static void by_rates(const struct ft_gpu *gpu, const char *from, const char *to,
		     struct ft_prediction *out)
{
	const struct ft_number *a = rate_of(gpu, from), *b = rate_of(gpu, to);

	out->time_s *= (a ? a->value : 1) / (b ? b->value : 1);
	if (b)
		out->spread_frac =
			hypot(out->spread_frac, (b->high - b->low) / (2 * b->value));
	else
		out->extrapolated = true;
}

static struct attention_shape shape_of(const struct ft_gpu *gpu,
				       const struct ft_work *w)
{
	struct attention_shape a = {
		.batch = (double)w->attention.batch,
		.heads = (double)w->attention.heads,
		.kv_heads = (double)w->attention.kv_heads,
		.queries = (double)w->attention.queries,
		.keys = (double)w->attention.keys,
		.window = (double)w->attention.window,
		.causal = w->attention.causal,
		.pass = (int)w->attention.pass,
		.dtype = w->dtype,
	};

	a.head_dim = (double)(w->attention.qk_head_dim + w->attention.v_head_dim) / 2;
	/* what has no fused kernel of its own runs in 16 bits */
	if (a.dtype != FT_FP8 && a.dtype != FT_FP16)
		a.dtype = FT_BF16;
	if (!(gpu->peak_flop_per_s[a.dtype].value > 0))
		a.dtype = FT_BF16;
	return a;
}

static bool takes(const struct ft_attention_taken *t, const struct ft_work *w)
{
	int64_t q = w->attention.qk_head_dim, v = w->attention.v_head_dim;
	bool whole = !w->attention.window || w->attention.window >= w->attention.keys;

	return q >= t->least && q <= t->most &&
	       v == (t->v_head_dim ? t->v_head_dim : q) && (t->windows || whole);
}

static bool has_own(const struct ft_attention_kernels *k, const struct ft_work *w,
		    int pass)
{
	if (k->widest && (w->attention.qk_head_dim > k->widest ||
			  w->attention.v_head_dim > k->widest))
		return false;
	for (size_t i = 0; i < k->n_taken[pass]; i++)
		if (takes(&k->taken[pass][i], w))
			return true;
	return !k->taken[pass];
}

/* What runs: an implementation without a kernel of its own for the shape calls another's. */
static const char *runs(const struct ft_gpu *gpu, const char *impl,
			const struct ft_work *w, int pass)
{
	const struct ft_attention_kernels *k;

	while ((k = ft_attention_kernels(gpu, impl)) && !has_own(k, w, pass))
		impl = k->otherwise;
	return impl;
}

static bool predict_as(const struct ft_gpu *gpu, const char *impl,
		       const struct ft_work *work, struct ft_prediction *out,
		       struct ft_error *err)
{
	struct attention_shape a = shape_of(gpu, work);
	const struct ft_attention_table *t;
	double spread = gpu->attention_spread.value, left = 0;
	int wrong;

	a.impl = impl;
	if (!(gpu->peak_flop_per_s[a.dtype].value > 0))
		return ft_fail(err, NULL,
			       "%s has no 16-bit products, which "
			       "attention needs",
			       gpu->name);
	t = table_for(gpu, impl, &a, &wrong);
	if (t && !(t = ft_attention_rows(t, err)))
		return false;
	if (t) {
		struct kernel_estimate e = attention_estimate(gpu, t, &a, NULL);

		out->time_s = e.time_s;
		out->extrapolated = e.far;
		left = e.left;
		spread *= 1 + 0.5 * (wrong != 0) + (wrong > OTHER_DTYPE + OTHER_GPU);
		out->extrapolated |= wrong >= OTHER_IMPL - 2;
	} else {
		const struct ft_number *rate = rate_of(gpu, impl);

		out->time_s =
			attention_arithmetic_s(gpu, &a) / (rate ? rate->value : 1);
		out->extrapolated = true;
		spread = fmax(2 * spread, 0.2); /* assumed: no row says it */
	}
	out->spread_frac = krige_spread(spread, left, noise);
	if (t && wrong >= OTHER_VERSION - 2)
		by_rates(gpu, t->impl, impl, out);
	out->time_s =
		fmax(out->time_s, fmax(gpu->kernel_floor_s.value, least_s(gpu, &a)));
	return true;
}

/* Both passes, each by another library. */
static bool predict_apart(const struct ft_gpu *gpu, const char *const impl[2],
			  const struct ft_work *work, struct ft_prediction *out,
			  struct ft_error *err)
{
	struct ft_work one = *work;
	struct ft_prediction p[2];

	for (int pass = 0; pass < 2; pass++) {
		p[pass] = *out;
		one.attention.pass = (enum ft_pass)pass;
		if (!predict_as(gpu, impl[pass], &one, &p[pass], err))
			return false;
	}
	*out = p[0];
	out->time_s += p[1].time_s;
	out->extrapolated |= p[1].extrapolated;
	out->spread_frac = fmax(p[0].spread_frac, p[1].spread_frac);
	return true;
}

bool attention_predict(const struct ft_gpu *gpu, const struct ft_work *work,
		       struct ft_prediction *out, struct ft_error *err)
{
	const char *impl = work->attention.impl, *by[2];
	int pass = (int)work->attention.pass;

	if (!impl || !impl[0])
		impl = gpu->attention_impl;
	else if (!strcmp(impl, "plain"))
		impl = gpu->attention_plain;
	if (pass != FT_PASS_BOTH)
		return predict_as(gpu, runs(gpu, impl, work, pass), work, out, err);
	for (int i = 0; i < 2; i++)
		by[i] = runs(gpu, impl, work, i);
	if (strcmp(by[0], by[1]))
		return predict_apart(gpu, by, work, out, err);
	return predict_as(gpu, by[0], work, out, err);
}
