/*
 * tests/test_gemm.c - sim/gemm.c against its equation, with constants and rows that are drawn
 *
 * What rows say is found in the obvious way, too: all covariances, and a system of equations
 * solved by elimination.
 */
#include "tests/seeded.h"
#include "tests/eliminate.h"

#include <math.h>

#include "sim/kernel.h"

enum { SHAPES = 3000, TABLES = 300, MOST_ROWS = 60, ROOM = 64 };

static struct ft_gpu any_gpu(void)
{
	struct ft_gpu g = { .name = "any", .compute_units = 60 + pick(100) };
	struct ft_gemm_model *m = &g.gemm_model;

	for (int d = 0; d < FT_DTYPES; d++) {
		g.peak_flop_per_s[d] = about(1e15);
		g.gemm_efficiency[d] = about(0.7);
		for (int i = 0; i < FT_LAYOUTS; i++)
			g.gemm_layout[d][i] = about(1);
	}
	g.memory_bytes_per_s = about(3e12);
	m->tile_m = 64 << pick(3), m->tile_n = 64 << pick(3);
	m->start_s = about(3e-6), m->tile_s = about(1e-6);
	m->wave_frac = about(0.5), m->square_frac = about(0.8);
	m->narrow_frac = about(0.7), m->memory_frac = about(0.8);
	m->sharpness = about(4), m->grouped_sharpness = about(2);
	m->split = about(1), m->noise = about(0.05);
	g.gemm_spread = about(0.05), g.gemm_accumulate = about(1.05),
	g.gemm_fast = about(0.9);
	g.gemm_grouped = about(1.1), g.gemm_mxfp8 = about(1.1);
	g.gemm_unaligned = about(0.6), g.gemm_odd = about(0.4);
	g.kernel_floor_s = about(pick(2) ? 1e-4 : 1e-7);
	g.persistent_products = pick(2);
	return g;
}

/* Sizes of layers and odd ones. */
static double size(void)
{
	return (double)((1 << pick(8)) * (1 + pick(120)) + (pick(4) ? 0 : pick(8)));
}

static struct product any_product(void)
{
	struct product p = { .m = size(),
			     .n = size(),
			     .k = size(),
			     .groups = 1,
			     .inner = pick(2),
			     .static_tiles = pick(2),
			     .out_bytes = pick(2) ? 2 : 8 };

	if (pick(3) == 0)
		p.groups = 2 + pick(15);
	return p;
}

/* ---- the equation of the file's head ------------------------------------------------------ */

static double up(double x, double to)
{
	double n = 0;

	while (n * to < x)
		n++;
	return n;
}

struct one {
	double m, n, k, groups; /* of one group */
};

static struct one one_of(const struct product *p)
{
	return (struct one){ p->inner ? p->m : up(p->m, p->groups), p->n,
			     p->inner ? up(p->k, p->groups) : p->k, p->groups };
}

static double tile_s(const struct ft_gpu *g, enum ft_dtype d, const struct one *o,
		     const double tile[3], int s)
{
	const struct ft_gemm_model *c = &g->gemm_model;
	double rate = g->peak_flop_per_s[d].value * g->gemm_efficiency[d].value *
		      tile[2] / (double)g->compute_units;
	double waves = o->groups * ceil(o->m / tile[0]) * ceil(o->n / tile[1]) * s /
		       (double)g->compute_units;
	double added = s > 1 ? c->split.value * 4 * s * o->groups * o->m * o->n /
				       g->memory_bytes_per_s.value :
			       0;

	if (s > 1 && (o->k / s < 512 || waves > 4))
		return INFINITY;
	waves += c->wave_frac.value * (ceil(waves) - waves);
	return (waves < 1 ? 1 : waves) *
		       (2 * tile[0] * tile[1] * o->k / s / rate + c->tile_s.value) +
	       added;
}

static double bytes_of(enum ft_dtype d, const struct product *p)
{
	struct one o = one_of(p);

	return o.groups *
	       ((o.m * o.k + o.k * o.n) * ft_dtype_bytes(d) + o.m * o.n * p->out_bytes);
}

/* The main loop takes `longer` times as long as with whole loads. */
static double slowed_s(const struct ft_gpu *g, enum ft_dtype d, const struct product *p,
		       double longer)
{
	const struct ft_gemm_model *c = &g->gemm_model;
	double tm = (double)c->tile_m, tn = (double)c->tile_n;
	double narrow = c->narrow_frac.value;
	const double tile[5][3] = { { tm, tn, 1 },
				    { tn, tm, 1 },
				    { tm, tm, c->square_frac.value },
				    { tm / 2, tn, narrow },
				    { tm / 2, tm, 0.8 * narrow } };
	double memory =
		bytes_of(d, p) / g->memory_bytes_per_s.value / c->memory_frac.value;
	double power = p->groups > 1 ? c->grouped_sharpness.value : c->sharpness.value;
	struct one o = one_of(p);
	double best = INFINITY;

	for (int i = 0; i < 5; i++)
		for (int s = 1; s <= 8; s *= 2)
			best = fmin(best, tile_s(g, d, &o, tile[i], s));
	best *= longer;
	return c->start_s.value + pow(pow(best, power) + pow(memory, power), 1 / power);
}

static double equation_s(const struct ft_gpu *g, enum ft_dtype d,
			 const struct product *p)
{
	return slowed_s(g, d, p, 1);
}

static void time_is_that_of_the_equation(void **state)
{
	(void)state;
	for (int i = 0; i < SHAPES; i++) {
		struct ft_gpu g = any_gpu();
		struct product p = any_product();
		enum ft_dtype d = (enum ft_dtype)pick(FT_DTYPES);

		near_frac(gemm_arithmetic_s(&g, d, &p), equation_s(&g, d, &p), 1e-9);
	}
}

/* So many blocks, of which some find a unit at a time, and stay until they are through. */
static int turns_of(double blocks, double units)
{
	int turns = 0;

	for (; blocks > 0; blocks -= units)
		turns++;
	return turns;
}

/* Waves of the units that are left, and one more of a persistent product; at most twice. Or turns of blocks, one a unit,
 * that have all their tiles from the start. */
static void beside_another_it_takes_more_waves(void **state)
{
	(void)state;
	for (int i = 0; i < SHAPES; i++) {
		struct ft_gpu g = any_gpu();
		struct product p = any_product();
		struct one o = one_of(&p);
		double held = pick(4) ? pick(40) : 0, units = (double)g.compute_units;
		double tiles = o.groups * ceil(o.m / (double)g.gemm_model.tile_m) *
			       ceil(o.n / (double)g.gemm_model.tile_n);
		double more = ceil(tiles / (units - held)) / ceil(tiles / units);

		if (held > 0 && g.persistent_products && tiles > units - held)
			more += 1 / ceil(tiles / units);
		more = more > 2 ? 2 : more;
		if (p.static_tiles && g.persistent_products)
			more = turns_of(fmin(tiles, units), units - held);
		near_frac(gemm_beside(&g, &p, held), more, 1e-12);
	}
}

/* ---- what rows say -------------------------------------------------------------------------- */

struct table {
	struct ft_gemm_table t;
	struct ft_gemm_row row[MOST_ROWS];
	float log[3][ROOM];
	bool skip[MOST_ROWS];
};

static void any_table(struct table *x, const struct ft_gpu *on, enum ft_dtype d)
{
	*x = (struct table){ .t = { .row = x->row, .on = on, .dtype = d } };
	x->t.n_rows = 1 + (size_t)pick(MOST_ROWS);
	x->t.log_m = x->log[0], x->t.log_n = x->log[1], x->t.log_k = x->log[2];
	for (int i = 0; i < 3; i++)
		x->t.scale[i] = pick(2) ? 1 : (float)(0.5 + draw());
	for (size_t i = 0; i < ROOM; i++) {
		struct ft_gemm_row r = { size(), size(), size(), 0 };
		struct product p = { r.m, r.n, r.k, 1, false, 2, false };

		for (int k = 0; k < 3; k++)
			x->log[k][i] = 1e9f;
		if (i >= x->t.n_rows)
			continue;
		r.time_s = equation_s(on, d, &p) * (0.7 + 0.6 * draw());
		x->row[i] = r;
		x->log[0][i] = x->t.scale[0] * log2f((float)r.m);
		x->log[1][i] = x->t.scale[1] * log2f((float)r.n);
		x->log[2][i] = x->t.scale[2] * log2f((float)r.k);
		x->skip[i] = i && pick(5) == 0;
	}
}

static double covariance(const double *a, const double *b)
{
	static const double terms[4][4] = { { 0.01256, 0.03114, 0.07865, 0.03403 },
					    { 0.006209, 0.6689, 7.056, 0.01627 },
					    { 0.01541, 0.4546, 0.1472, 0.05864 },
					    { 0.0005995, 0.263, 8.231, 0.776 } };
	double sum = 0;

	for (int i = 0; i < 4; i++) {
		double far = 1;

		for (int k = 0; k < 3; k++)
			far += terms[i][k + 1] * (a[k] - b[k]) * (a[k] - b[k]);
		sum += terms[i][0] / far / far;
	}
	return sum;
}

/* The rows that say most, most first: place in row[], how many. */
static size_t that_say_most(const struct table *x, const double *at,
			    double with[KRIGE_NEAR], size_t row[KRIGE_NEAR])
{
	bool taken[MOST_ROWS] = { false };
	size_t n = 0;

	while (n < KRIGE_NEAR) {
		size_t best = MOST_ROWS;
		double most = -1;

		for (size_t i = 0; i < x->t.n_rows; i++) {
			double b[3] = { (double)x->log[0][i], (double)x->log[1][i],
					(double)x->log[2][i] };

			if (!taken[i] && !x->skip[i] && covariance(at, b) > most) {
				most = covariance(at, b);
				best = i;
			}
		}
		if (best == MOST_ROWS)
			break;
		taken[best] = true;
		with[n] = most;
		row[n++] = best;
	}
	return n;
}

static struct kernel_estimate wanted(const struct ft_gpu *g, const struct table *x,
				     enum ft_dtype d, const struct product *p)
{
	double at[3] = { (double)x->t.scale[0] * log2(p->m),
			 (double)x->t.scale[1] * log2(p->n),
			 (double)x->t.scale[2] * log2(p->k) };
	double a[KRIGE_NEAR][KRIGE_NEAR], with[KRIGE_NEAR], b[KRIGE_NEAR],
		w[KRIGE_NEAR];
	double noise = x->t.on->gemm_model.noise.value, level = 0, sum = 0, ratio;
	struct kernel_estimate e = { .left = covariance(at, at), .far = true };
	size_t row[KRIGE_NEAR], n = that_say_most(x, at, with, row);
	double value[KRIGE_NEAR];

	for (size_t i = 0; i < n; i++) {
		const struct ft_gemm_row *r = &x->row[row[i]];
		struct product q = { r->m, r->n, r->k, 1, false, 2, false };
		double own[3], other[3], most = 0;

		for (int k = 0; k < 3; k++) {
			own[k] = (double)x->log[k][row[i]];
			most = fmax(most, fabs(own[k] - at[k]) / (double)x->t.scale[k]);
		}
		e.far &= most >= 1.75;
		for (size_t j = 0; j < n; j++) {
			for (int k = 0; k < 3; k++)
				other[k] = (double)x->log[k][row[j]];
			a[i][j] = covariance(own, other) + (i == j ? noise * noise : 0);
		}
		b[i] = with[i];
		value[i] = log(r->time_s / equation_s(x->t.on, x->t.dtype, &q));
		level += with[i] * value[i];
		sum += with[i];
	}
	level /= sum;
	eliminate(n, KRIGE_NEAR, &a[0][0], b, w);
	ratio = level;
	for (size_t i = 0; i < n; i++) {
		ratio += w[i] * (value[i] - level);
		e.left -= w[i] * with[i];
	}
	e.time_s = fmax(equation_s(g, d, p) * exp(ratio),
			bytes_of(d, p) / g->memory_bytes_per_s.value);
	return e;
}

static void the_ratio_is_that_of_all_equations_solved(void **state)
{
	(void)state;
	for (int i = 0; i < TABLES; i++) {
		struct ft_gpu on = any_gpu(), g = any_gpu();
		enum ft_dtype d = (enum ft_dtype)pick(FT_DTYPES);
		struct product p = any_product();
		struct kernel_estimate e, want;
		struct table x;

		any_table(&x, &on, FT_BF16);
		e = gemm_estimate(&g, &x.t, d, &p, x.skip);
		want = wanted(&g, &x, d, &p);
		near_frac(e.time_s, want.time_s, 1e-3);
		assert_true(fabs(e.left - want.left) < 1e-4);
		assert_int_equal(e.far, want.far);
	}
}

/* ---- the prediction ------------------------------------------------------------------------ */

/* Tables that are asked for a format, the first that is there. */
static const enum ft_dtype asked[FT_DTYPES][4] = {
	{ FT_BF16, FT_BF16, FT_BF16, FT_BF16 },
	{ FT_FP16, FT_BF16, FT_BF16, FT_BF16 },
	{ FT_FP32, FT_FP32, FT_FP32, FT_FP32 },
	{ FT_FP8, FT_FP8_BLOCK128, FT_MXFP8, FT_BF16 },
	{ FT_FP8_BLOCK128, FT_FP8, FT_MXFP8, FT_BF16 },
	{ FT_MXFP8, FT_FP8, FT_FP8_BLOCK128, FT_BF16 },
	{ FT_NVFP4, FT_FP8, FT_FP8_BLOCK128, FT_BF16 },
	{ FT_MXFP4, FT_FP8, FT_FP8_BLOCK128, FT_BF16 },
};

static struct ft_work any_work(void)
{
	struct ft_work w = { .kind = FT_GEMM, .name = "w" };

	w.dtype = (enum ft_dtype)pick(FT_DTYPES);
	w.gemm.layout = (enum ft_layout)pick(FT_LAYOUTS);
	w.gemm.m = (int64_t)size(), w.gemm.n = (int64_t)size();
	w.gemm.k = (int64_t)size();
	w.gemm.groups = pick(2) ? 1 : 1 + pick(8);
	w.gemm.accumulate = pick(2);
	w.gemm.fast = pick(2);
	return w;
}

/* What is off by the bytes of its rows; 1: nothing. */
static const struct ft_number *off(const struct ft_gpu *g, const struct ft_work *w)
{
	/* in half bytes: all formats are whole numbers of them */
	int64_t e = (int64_t)(2 * ft_dtype_bytes(w->dtype));
	int64_t n = w->gemm.n * e, k = w->gemm.k * e;

	if (n % 8 || k % 8)
		return &g->gemm_odd;
	return n % 32 || k % 32 ? &g->gemm_unaligned : NULL;
}

static void check_prediction(const struct ft_gpu *g, const struct table *x,
			     const struct ft_work *w)
{
	struct product p = product_of(w);
	double least = bytes_of(w->dtype, &p) / g->memory_bytes_per_s.value;
	double noise = g->gemm_model.noise.value, spread = g->gemm_spread.value;
	struct kernel_estimate e = { .far = true };
	const struct ft_number *rate = off(g, w);
	struct ft_prediction got;
	struct ft_error err;

	if (x) {
		bool same = x->t.dtype == w->dtype || w->dtype == FT_FP16;

		e = gemm_estimate(g, &x->t, w->dtype, &p, NULL);
		e.time_s *= w->dtype == FT_MXFP8 && x->t.dtype == FT_FP8 ?
				    g->gemm_mxfp8.value :
				    1;
		spread *= same ? 1 : 2;
	} else {
		e.time_s = fmax(equation_s(g, w->dtype, &p), least);
		spread = fmax(2 * spread, 0.15);
	}
	if (w->gemm.groups > 1)
		e.time_s = fmax(e.time_s * g->gemm_grouped.value, least);
	e.time_s *= g->gemm_layout[w->dtype][w->gemm.layout].value;
	e.time_s *= w->gemm.accumulate ? g->gemm_accumulate.value : 1;
	if (w->gemm.fast)
		e.time_s = fmax(e.time_s * g->gemm_fast.value, least);
	if (rate && rate->value < 1) {
		e.time_s *= slowed_s(g, w->dtype, &p, 1 / rate->value) /
			    equation_s(g, w->dtype, &p);
		e.far = true;
		spread = fmax(spread, (rate->high - rate->low) / rate->value / 2);
	}
	ok_or_say(gemm_predict(g, w, &got, &err), err);
	near_frac(got.time_s, fmax(e.time_s, g->kernel_floor_s.value), 1e-9);
	assert_int_equal(got.extrapolated, e.far);
	near_frac(got.spread_frac * got.spread_frac,
		  spread * spread + fmax(0, e.left - noise * noise / 2), 1e-9);
}

static void factors_are_those_of_layout_format_and_alignment(void **state)
{
	static struct table table[FT_DTYPES];

	(void)state;
	for (int i = 0; i < 3 * TABLES; i++) {
		struct ft_gpu g = any_gpu();
		struct ft_work w = any_work();
		const struct table *x = NULL;

		for (int d = 0; d < FT_DTYPES; d++)
			if (pick(3) == 0) {
				any_table(&table[d], &g, (enum ft_dtype)d);
				g.gemm[d] = table[d].t;
			}
		for (int k = 4; k-- > 0;)
			if (g.gemm[asked[w.dtype][k]].n_rows)
				x = &table[asked[w.dtype][k]];
		check_prediction(&g, x, &w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_is_that_of_the_equation),
		cmocka_unit_test(beside_another_it_takes_more_waves),
		cmocka_unit_test(the_ratio_is_that_of_all_equations_solved),
		cmocka_unit_test(factors_are_those_of_layout_format_and_alignment),
	};

	seed = 1;
	return cmocka_run_group_tests_name("gemm", tests, NULL, NULL);
}
