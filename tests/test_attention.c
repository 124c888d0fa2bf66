/*
 * tests/test_attention.c - sim/attention.c against its equation, tile by tile
 *
 * Constants are drawn, tables are made so that they say what arithmetic says, times a
 * number: which table was asked is then seen from the answer.
 */
#include "tests/check.h"

#include <math.h>

#include "sim/kernel.h"

enum { SHAPES = 3000 };

static double draw(uint64_t *s)
{
	*s = *s * 6364136223846793005u + 1442695040888963407u;
	return (double)(*s >> 11) / 9007199254740992.0;
}

static int pick(uint64_t *s, int n)
{
	return (int)(draw(s) * n);
}

static struct ft_number about(uint64_t *s, double x)
{
	double v = x * (0.5 + draw(s));

	return (struct ft_number){ v, v, v, NULL };
}

static struct ft_gpu any_gpu(uint64_t *s)
{
	struct ft_gpu g = { .name = "any", .compute_units = 60 + pick(s, 100) };

	g.memory_bytes_per_s.value = INFINITY;
	for (int d = 0; d < FT_DTYPES; d++)
		g.peak_flop_per_s[d] = about(s, 1e15);
	for (int pass = 0; pass < 2; pass++) {
		g.attention_model.efficiency[pass] = about(s, 0.6);
		g.attention_model.ramp[pass] = about(s, 100);
		g.attention_model.edge[pass] = about(s, 300);
	}
	g.attention_model.start_s = about(s, 5e-6);
	g.attention_model.wave_frac = about(s, 0.5);
	g.attention_model.narrow_frac = about(s, 0.7);
	g.attention_model.wide_frac = about(s, 0.9);
	g.attention_spread = about(s, 0.05);
	g.attention_impl = "first";
	return g;
}

static struct attention_shape any_shape(uint64_t *s)
{
	static const double dims[] = { 16, 32, 48, 64, 96, 128, 192, 256, 512 };
	struct attention_shape a = { .batch = 1 + pick(s, 4),
				     .heads = 1 + pick(s, 64),
				     .keys = 128 << pick(s, 8),
				     .head_dim = dims[pick(s, 9)],
				     .causal = pick(s, 2),
				     .pass = pick(s, 3),
				     .dtype = pick(s, 2) ? FT_BF16 : FT_FP8 };

	a.kv_heads = a.heads;
	a.keys += pick(s, 100);
	a.queries = a.keys;
	if (a.causal && pick(s, 2))
		a.window = ceil(a.keys * (0.1 + draw(s)));
	return a;
}

/* ---- the equation of the file's head ----------------------------------------------------- */

static double rate_of_head(const struct ft_attention_model *m, double dim)
{
	if (dim <= 32)
		return m->narrow_frac.value * m->narrow_frac.value;
	if (dim == 64)
		return m->narrow_frac.value;
	if (dim == 96)
		return exp(log(m->narrow_frac.value) * log2(128.0 / 96));
	if (dim == 128)
		return 1;
	if (dim == 192)
		return exp(log(m->wide_frac.value) * log2(192.0 / 128));
	return m->wide_frac.value;
}

static double pass_s(const struct ft_gpu *g, const struct attention_shape *a, int pass)
{
	const struct ft_attention_model *m = &g->attention_model;
	double s = a->keys, ramp = m->ramp[pass].value, edge = m->edge[pass].value;
	double dim = a->head_dim, per_query, flop, waves, last, tiles = 0;
	double w = a->window > 0 && a->window < s ? a->window : s;

	while ((int)dim % 32)
		dim++;
	if (!a->causal)
		per_query = s * (1 + ramp / s);
	else if (w < s)
		per_query = w - w * w / (2 * s) + (ramp + edge * (2 - w / s)) / 2 +
			    ramp * edge * (w - w * w / (2 * s)) / (s * s);
	else
		per_query = s / 2 * (1 + ramp / s) * (1 + edge / s);
	if (edge > 512 && per_query > (s + ramp) * (1 + edge / 512) / 2)
		per_query = (s + ramp) * (1 + edge / 512) / 2;
	if (edge <= 512 && per_query > s + ramp)
		per_query = s + ramp;
	flop = (pass ? 2.5 : 1) * 4 * dim * a->batch * a->heads * s * per_query;
	for (double q = 0; q < s; q += 128)
		tiles += a->batch * a->heads;
	waves = tiles / (double)g->compute_units;
	last = fmod(waves, 1) > 0 ? 1 - fmod(waves, 1) : 0;
	waves = (waves + m->wave_frac.value * last < 1 ?
			 1 :
			 waves + m->wave_frac.value * last) /
		waves;
	return m->start_s.value +
	       flop /
		       (g->peak_flop_per_s[a->dtype].value * m->efficiency[pass].value *
			rate_of_head(m, dim)) *
		       waves;
}

static void time_is_that_of_the_equation(void **state)
{
	uint64_t s = 1;

	(void)state;
	for (int i = 0; i < SHAPES; i++) {
		struct ft_gpu g = any_gpu(&s);
		struct attention_shape a = any_shape(&s);
		double want = 0;

		for (int pass = 0; pass < 2; pass++)
			if (a.pass == pass || a.pass == FT_PASS_BOTH)
				want += pass_s(&g, &a, pass);
		near_frac(attention_arithmetic_s(&g, &a), want, 1e-6);
	}
}

/* ---- tables ------------------------------------------------------------------------------- */

/* A row where arithmetic takes `times` as long as it says. */
static struct ft_attention_row row_of(const struct ft_gpu *on,
				      const struct attention_shape *a, double times)
{
	return (struct ft_attention_row){
		.batch = a->batch,
		.heads = a->heads,
		.kv_heads = a->kv_heads,
		.sequence = a->keys,
		.head_dim = a->head_dim,
		.causal = a->causal,
		.flop_per_s =
			attention_flop(a) / (times * attention_arithmetic_s(on, a)),
		.at = { log2f((float)a->keys), log2f((float)a->batch),
			log2f((float)a->heads), log2f((float)a->kv_heads),
			log2f((float)a->head_dim), a->causal ? 1 : 0 },
	};
}

/* Rows that all say the same are believed everywhere, on another GPU, too. */
static void a_ratio_that_all_rows_have_is_carried(void **state)
{
	uint64_t s = 3;

	(void)state;
	for (int i = 0; i < 200; i++) {
		struct ft_gpu on = any_gpu(&s), g = any_gpu(&s);
		struct ft_attention_row row[5];
		struct ft_attention_table t = { .row = row, .n_rows = 5, .on = &on };
		double times = 0.5 + draw(&s);
		struct attention_shape a;

		t.pass = pick(&s, 3);
		t.dtype = FT_BF16;
		for (int k = 0; k < 5; k++) {
			a = any_shape(&s);
			a.window = 0;
			a.pass = t.pass;
			a.dtype = t.dtype;
			row[k] = row_of(&on, &a, times);
		}
		a = any_shape(&s);
		near_frac(attention_estimate(&g, &t, &a, NULL).time_s,
			  times * attention_arithmetic_s(&g, &a), 1e-5);
		near_frac(attention_estimate(&g, &t, &a,
					     (bool[]){ true, true, true, true, true })
				  .time_s,
			  attention_arithmetic_s(&g, &a), 1e-9);
	}
}

/* What one row leaves open grows with the distance along each axis, the same both ways; far
 * is from 1.75 doublings of the sequence on, 0.75 of the head size, 3 of heads at work. */
static void a_row_knows_its_neighbours(void **state)
{
	const struct attention_shape at = {
		4, 32, 32, 4096, 4096, 128, 0, true, FT_PASS_FORWARD, FT_BF16, NULL
	};
	const size_t axis[] = { offsetof(struct attention_shape, keys),
				offsetof(struct attention_shape, batch),
				offsetof(struct attention_shape, heads),
				offsetof(struct attention_shape, kv_heads),
				offsetof(struct attention_shape, head_dim) };
	const double near[] = { 1.74, 2.99, 2.99, 99, 0.74 },
		     far[] = { 1.76, 3.01, 3.01, 99, 0.76 };
	uint64_t s = 4;
	struct ft_gpu g = any_gpu(&s);
	struct ft_attention_row row = row_of(&g, &at, 1);
	struct ft_attention_table t = {
		.row = &row, .n_rows = 1, .on = &g, .dtype = FT_BF16
	};
	struct attention_shape a = at;
	double here = attention_estimate(&g, &t, &at, NULL).left;

	(void)state;
	for (int k = 0; k < 5; k++) {
		double left = here;

		for (double step = 0.25; step <= 4; step += 0.25) {
			struct kernel_estimate up, down;

			a = at;
			*(double *)((char *)&a + axis[k]) *= pow(2, step);
			up = attention_estimate(&g, &t, &a, NULL);
			a = at;
			*(double *)((char *)&a + axis[k]) *= pow(2, -step);
			down = attention_estimate(&g, &t, &a, NULL);
			near_frac(up.left, down.left, 1e-4);
			assert_true(up.left > left);
			left = up.left;
		}
		a = at;
		*(double *)((char *)&a + axis[k]) *= pow(2, near[k]);
		assert_false(attention_estimate(&g, &t, &a, NULL).far);
		a = at;
		*(double *)((char *)&a + axis[k]) *= pow(2, -far[k]);
		assert_int_equal(attention_estimate(&g, &t, &a, NULL).far, k != 3);
	}
	/* as many heads at work are nearer than more of them; another mask is far */
	a = at;
	a.batch *= 4;
	a.heads /= 4;
	assert_false(attention_estimate(&g, &t, &a, NULL).far);
	here = attention_estimate(&g, &t, &a, NULL).left;
	a.heads *= 16;
	assert_true(attention_estimate(&g, &t, &a, NULL).left > here);
	a = at;
	a.causal = false;
	assert_true(attention_estimate(&g, &t, &a, NULL).far);
}

/* ---- which table ---------------------------------------------------------------------------- */

struct shelf {
	struct ft_gpu gpu, kin;
	struct ft_attention_row row[8];
	struct ft_attention_table table[4];
	struct ft_attention_impl impl[2];
	struct ft_work work;
};

/* A table of one row where the work is, which says `times`. */
static void put(struct shelf *x, const char *impl, int pass, enum ft_dtype dtype,
		bool own, double times)
{
	const struct ft_gpu *on = own ? &x->gpu : &x->kin;
	size_t i = x->gpu.n_attention++;
	struct attention_shape a = { 2, 16,   16,   2048,  2048, 128,
				     0, true, pass, dtype, NULL };

	x->row[i] = row_of(on, &a, times);
	x->table[i] = (struct ft_attention_table){ impl, pass, dtype, 1,   &x->row[i],
						   on,	 NULL, NULL,  !own };
	x->gpu.attention = x->table;
}

static void open_shelf(struct shelf *x)
{
	uint64_t s = 6;

	*x = (struct shelf){ .gpu = any_gpu(&s), .kin = any_gpu(&s) };
	x->impl[0] = (struct ft_attention_impl){ "first", { 1, 1, 1, NULL } };
	x->impl[1] = (struct ft_attention_impl){ "second", { 0.5, 0.5, 0.5, NULL } };
	x->gpu.impl = x->impl;
	x->gpu.n_impls = 2;
	x->work = (struct ft_work){ .kind = FT_ATTENTION, .dtype = FT_BF16 };
	x->work.attention.batch = 2;
	x->work.attention.heads = x->work.attention.kv_heads = 16;
	x->work.attention.queries = x->work.attention.keys = 2048;
	x->work.attention.qk_head_dim = x->work.attention.v_head_dim = 128;
	x->work.attention.causal = true;
	x->work.attention.pass = FT_PASS_FORWARD;
}

/* What was predicted, against arithmetic. */
static double times_of(struct shelf *x, struct ft_prediction *p)
{
	struct ft_error err;
	enum ft_dtype dtype = x->work.dtype == FT_FP8  ? FT_FP8 :
			      x->work.dtype == FT_FP16 ? FT_FP16 :
							 FT_BF16;
	int pass = (int)x->work.attention.pass;
	struct attention_shape a = { 2, 16,   16,   2048,  2048, 128,
				     0, true, pass, dtype, NULL };

	ok_or_say(attention_predict(&x->gpu, &x->work, p, &err), err);
	return p->time_s / attention_arithmetic_s(&x->gpu, &a);
}

/* Before another's rows: those of the implementation, then of the pass, of the format, of
 * the GPU; both passes together before the other one. */
static void the_nearest_table_is_asked(void **state)
{
	static const struct {
		struct {
			const char *impl;
			int pass;
			enum ft_dtype dtype;
			bool own;
		} a, b; /* a says 2, b says 3 */
		double want, spread;
		bool extrapolated;
	} cases[] = {
		{ { "first", 0, FT_BF16, true },
		  { "second", 0, FT_BF16, true },
		  2,
		  1,
		  0 },
		{ { "first", 1, FT_FP8, false },
		  { "second", 0, FT_BF16, true },
		  2,
		  2.5,
		  0 },
		{ { "first", 0, FT_FP8, false },
		  { "first", 1, FT_BF16, true },
		  2,
		  1.5,
		  0 },
		{ { "first", 0, FT_BF16, false },
		  { "first", 0, FT_FP8, true },
		  2,
		  1.5,
		  0 },
		{ { "first", 2, FT_BF16, true },
		  { "first", 1, FT_BF16, true },
		  2,
		  2.5,
		  0 },
		{ { "first", 0, FT_BF16, true },
		  { "first", 2, FT_BF16, true },
		  2,
		  1,
		  0 },
		{ { "first", 0, FT_FP8, true },
		  { "first", 2, FT_BF16, true },
		  2,
		  1.5,
		  0 },
		{ { "second", 0, FT_BF16, true },
		  { "second", 0, FT_FP8, true },
		  1,
		  2.5,
		  1 },
		{ { "second", 2, FT_BF16, true },
		  { "second", 1, FT_BF16, true },
		  1,
		  2.5,
		  1 },
	};

	double open = 0; /* variance that one row leaves, beside the spread's */

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		struct ft_prediction p;
		struct shelf x;
		double got, spread;

		open_shelf(&x);
		for (int k = 0; k < 2; k++)
			if ((k == 0) == (i % 2 == 0))
				put(&x, cases[i / 2].a.impl, cases[i / 2].a.pass,
				    cases[i / 2].a.dtype, cases[i / 2].a.own, 2);
			else
				put(&x, cases[i / 2].b.impl, cases[i / 2].b.pass,
				    cases[i / 2].b.dtype, cases[i / 2].b.own, 3);
		got = times_of(&x, &p);
		spread = cases[i / 2].spread * x.gpu.attention_spread.value;
		if (!i)
			open = p.spread_frac * p.spread_frac - spread * spread;
		if (fabs(got / cases[i / 2].want - 1) > 1e-4 ||
		    p.extrapolated != cases[i / 2].extrapolated ||
		    fabs(p.spread_frac / sqrt(open + spread * spread) - 1) > 1e-6)
			fail_msg("case %zu: %g times, spread %g, %d", i, got,
				 p.spread_frac / x.gpu.attention_spread.value,
				 p.extrapolated);
	}
	assert_true(open > 0 && open < 0.003);
}

/* NAME-VERSION without rows of its own goes by NAME's, at the ratio of their rates; a name
 * that only begins alike is another. */
static void a_version_goes_by_its_name(void **state)
{
	static const struct {
		const char *asked, *near;
		double want;
		bool extrapolated;
	} cases[] = {
		{ "second-2", "second", 2 * 0.5 / 0.8, false },
		{ "second-2", "second-3", 2 * 1 / 0.8, false },
		{ "second-2", "second-2", 2, false },
		{ "second-2", "secondly", 3 / 0.8, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ft_prediction p;
		struct shelf x;

		open_shelf(&x);
		x.impl[0] = (struct ft_attention_impl){ "second-2",
							{ 0.8, 0.8, 0.8, NULL } };
		put(&x, "first", 0, FT_BF16, true, 3);
		put(&x, cases[i].near, 1, FT_FP8, true, 7);
		put(&x, cases[i].near, 0, FT_BF16, true, 2);
		x.work.attention.impl = cases[i].asked;
		near_frac(times_of(&x, &p), cases[i].want, 1e-4);
		assert_int_equal(p.extrapolated, cases[i].extrapolated);
	}
}

/* Of two alike the one with more rows; fp16 is asked of bf16's. */
static void more_rows_say_more(void **state)
{
	struct ft_prediction p;
	struct shelf x;

	(void)state;
	open_shelf(&x);
	put(&x, "first", 0, FT_BF16, true, 2);
	put(&x, "first", 0, FT_BF16, true, 3);
	x.row[2] = x.row[1];
	x.table[1].n_rows = 2;
	x.work.dtype = FT_FP16;
	near_frac(times_of(&x, &p), 3, 1e-4);
	x.table[1].n_rows = 1;
	near_frac(times_of(&x, &p), 2, 1e-4);
}

static void without_rows_there_is_arithmetic(void **state)
{
	struct ft_prediction p;
	struct ft_error err;
	struct shelf x;

	(void)state;
	open_shelf(&x);
	near_frac(times_of(&x, &p), 1, 1e-9);
	assert_true(p.extrapolated);
	near_frac(p.spread_frac, 0.2, 0.08);
	x.work.attention.impl = "second";
	near_frac(times_of(&x, &p), 2, 1e-9);
	x.work.attention.impl = "nobody's";
	near_frac(times_of(&x, &p), 1, 1e-9);
	x.gpu.attention_spread.value = 0.3;
	(void)times_of(&x, &p);
	near_frac(p.spread_frac, 0.6, 0.02);
	/* 8 bits where there are none, and 32, run in 16 */
	x.gpu.peak_flop_per_s[FT_FP8].value = 0;
	x.work.dtype = FT_FP8;
	assert_true(attention_predict(&x.gpu, &x.work, &p, &err));
	x.work.dtype = FT_FP32;
	near_frac(times_of(&x, &p), 1, 1e-9);
	x.gpu.kernel_floor_s.value = 7;
	assert_true(attention_predict(&x.gpu, &x.work, &p, &err) && p.time_s == 7);
	x.gpu.peak_flop_per_s[FT_BF16].value = 0;
	assert_false(attention_predict(&x.gpu, &x.work, &p, &err));
	assert_non_null(strstr(err.text, "no 16-bit products"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_is_that_of_the_equation),
		cmocka_unit_test(a_ratio_that_all_rows_have_is_carried),
		cmocka_unit_test(a_row_knows_its_neighbours),
		cmocka_unit_test(the_nearest_table_is_asked),
		cmocka_unit_test(a_version_goes_by_its_name),
		cmocka_unit_test(more_rows_say_more),
		cmocka_unit_test(without_rows_there_is_arithmetic),
	};

	return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
