/*
 * tests/test_fit_clock.c - the rate of products that run for seconds, found again in made rows:
 * beside bursts of their own or predicted ones, among rows that cannot tell or are of others
 */
#include <math.h>

#include "calibrate/fit.h"
#include "foretoken/hw.h"
#include "tests/check.h"
#include "tests/scratch.h"

enum { DRAWS = 60, ROWS = 200 };

static uint64_t seed = 5;

struct made {
	struct ft_measurement row[ROWS];
	size_t n, told; /* told: whose time says the rate */
};

static struct ft_measurement *add(struct made *x, int size, bool sustained)
{
	struct ft_measurement *m = &x->row[x->n++];

	assert_true(x->n <= ROWS);
	*m = (struct ft_measurement){ .kind = "gemm",
				      .kernel = "",
				      .dtype = "bf16",
				      .layout = "forward",
				      .impl = "",
				      .pass = "",
				      .backend = "",
				      .source = "t",
				      .provenance = "published",
				      .m = 64 << size,
				      .n = 1024,
				      .k = 256 << size,
				      .sustained = sustained };
	return m;
}

static double us_at(struct ft_gpu *gpu, const struct ft_measurement *m, double rate)
{
	double was = gpu->sustained[FT_BF16].value, us;

	gpu->sustained[FT_BF16].value = rate;
	us = measurement_predict_us(gpu, m);
	gpu->sustained[FT_BF16].value = was;
	return us;
}

/* A product of seconds at that rate, beside bursts that take `slower` times what is predicted,
 * or beside none. What loses less than a quarter of a loss by half says nothing. */
static void add_pair(struct made *x, struct ft_gpu *gpu, double rate, bool paired)
{
	struct ft_measurement *m, *b;
	double slower = paired ? 1 + rnd_below(&seed, 5) / 10. : 1, burst_us, part;
	int size = rnd_below(&seed, 8);

	for (size_t i = 0; i < x->n; i++) /* its bursts are of one size */
		if ((int)x->row[i].m == 64 << size)
			return;
	m = add(x, size, false);
	burst_us = us_at(gpu, m, 1);
	m->sustained = true;
	part = us_at(gpu, m, 0.5) / burst_us - 1;
	m->time_us = slower * us_at(gpu, m, part > 0.25 ? rate : 0.2);
	x->told += part > 0.25;
	for (int i = 1; paired && i <= 3; i += 2) { /* their mean counts */
		b = add(x, size, false);
		b->time_us = slower * burst_us * i / 2;
	}
}

/* Of others, with times that would change what is found. */
static void add_beside(struct made *x)
{
	static const struct ft_measurement others[] = {
		{ .warm = true },     { .dtype = "fp8" }, { .layout = "dgrad" },
		{ .kind = "memory" }, { .m = 100 },	  { .n = 100 },
		{ .k = 100 }
	};
	size_t n = x->n;

	for (size_t i = 0; i < n; i++) {
		const struct ft_measurement *o = &others[rnd_below(&seed, 7)];
		struct ft_measurement *m = &x->row[x->n++];

		*m = x->row[i];
		m->sustained = false;
		m->warm = o->warm;
		m->dtype = o->dtype ? o->dtype : m->dtype;
		m->layout = o->layout ? o->layout : m->layout;
		m->kind = o->kind ? o->kind : m->kind;
		m->m = o->m > 0 ? o->m : m->m;
		m->n = o->n > 0 ? o->n : m->n;
		m->k = o->k > 0 ? o->k : m->k;
		m->time_us *= 7;
	}
	for (size_t i = 0; i < n; i++) { /* measured here, for seconds */
		struct ft_measurement *m = &x->row[x->n++];

		*m = x->row[i];
		m->provenance = "measured";
		m->sustained = true;
		m->time_us *= 3;
	}
}

static void the_rate_of_seconds_is_found_again(void **state)
{
	struct ft_error err;
	struct ft_gpu *gpu = ft_gpu_load("h100-sxm", NULL, &err);
	int found = 0, silent = 0;

	(void)state;
	assert_non_null(gpu);
	for (int i = 0; i < DRAWS; i++) {
		static struct made x;
		double rate = 0.55 + rnd_below(&seed, 40) / 100., was;
		struct fit_input in = { .base = gpu, .row = x.row };
		bool paired = rnd_below(&seed, 2);

		x = (struct made){ .n = 0 };
		for (int k = 2 + rnd_below(&seed, 9); k > 0; k--)
			add_pair(&x, gpu, rate, paired);
		silent += x.told < x.n / (paired ? 3 : 1);
		add_beside(&x);
		in.n = x.n;
		was = gpu->sustained[FT_BF16].value;
		fit_clock(&in, gpu);
		assert_true(gpu->sustained[FT_BF16].value == was);
		assert_int_equal(in.clock[FT_BF16].n, x.told < 2 ? 0 : x.told);
		assert_int_equal(in.clock[FT_FP8].n, 0);
		if (x.told < 2)
			continue;
		found++;
		assert_true(fabs(in.clock[FT_BF16].value / rate - 1) < 1e-6);
		assert_true(fabs(in.clock[FT_BF16].low / rate - 1) < 1e-6);
		assert_true(fabs(in.clock[FT_BF16].high / rate - 1) < 1e-6);
	}
	assert_true(found > DRAWS / 4 && found < DRAWS && silent > DRAWS / 8);
	ft_gpu_free(gpu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rate_of_seconds_is_found_again),
	};

	return cmocka_run_group_tests_name("calibrate/fit_published_rates", tests, NULL,
					   NULL);
}
