/*
 * tests/test_fit_judged.c - which published products a fit keeps: drawn rows of a store, ours and others',
 * compared here pair by pair, whatever their order
 */
#include "base/stats.h"
#include "foretoken/hw.h"
#include "tests/check.h"
#include "tests/scratch.h"

enum { DRAWS = 120, SIZES = 24, OURS = 290, ROWS = 2 * (SIZES + OURS) };

static uint64_t seed = 5;

struct made {
	struct ft_measurement row[ROWS];
	size_t n;
};

static struct ft_measurement *add(struct made *x, const char *dtype, int size,
				  double us)
{
	x->row[x->n] = (struct ft_measurement){ .kind = "gemm",
						.kernel = "",
						.dtype = dtype,
						.layout = "forward",
						.impl = "",
						.pass = "",
						.status = "ok",
						.source = "",
						.provenance = "measured",
						.m = 64. * (1 + size % 4),
						.n = 512. * (1 + size / 4 % 3),
						.k = 128. * (1 + size / 12),
						.time_us = us };
	return &x->row[x->n++];
}

static void shuffle(struct made *x)
{
	for (size_t i = x->n; i > 1; i--) {
		size_t k = (size_t)rnd_below(&seed, (int)i);
		struct ft_measurement m = x->row[i - 1];

		x->row[i - 1] = x->row[k];
		x->row[k] = m;
	}
}

/* What others published of the first sizes, and what we measured of more: off by about `off`. */
static void draw(struct made *x, const char *dtype, int published, int ours, double off)
{
	for (int i = 0; i < published; i++) {
		struct ft_measurement *m = add(x, dtype, i, 100);

		m->provenance = "published";
		m->source = "s1";
	}
	for (int i = 0; i < ours; i++) {
		double part = off + rnd_below(&seed, 9) / 100. -
			      0.0413; /* no half of a per cent */
		struct ft_measurement *m = add(
			x, dtype, i, 100 / (1 + (rnd_below(&seed, 2) ? part : -part)));

		m->sustained = rnd_below(&seed, 8) == 0;
		if (rnd_below(&seed, 8) == 0)
			m->layout = "dgrad";
	}
}

static bool counts(const struct ft_measurement *m, const char *dtype)
{
	return !strcmp(m->dtype, dtype) && !strcmp(m->layout, "forward");
}

/* How far apart each pair of one size is; how many products are ours. */
static size_t apart(const struct made *x, const char *dtype, double *off, size_t *ours)
{
	size_t n = 0;

	*ours = 0;
	for (size_t i = 0; i < x->n; i++) {
		const struct ft_measurement *m = &x->row[i];

		if (!counts(m, dtype) || m->sustained || m->source[0])
			continue;
		++*ours;
		for (size_t k = 0; k < x->n; k++) {
			const struct ft_measurement *p = &x->row[k];

			if (counts(p, dtype) && p->source[0] && p->m == m->m &&
			    p->n == m->n && p->k == m->k)
				off[n++] = fabs(p->time_us - m->time_us) / m->time_us;
		}
	}
	stats_sort(off, n);
	return n;
}

/* Twenty pairs and more whose median is above 15 %, or 200 products of our own with one pair at least. */
static bool stay(const struct made *x, const char *dtype, char note[128])
{
	double off[ROWS], median;
	size_t ours, n = apart(x, dtype, off, &ours);

	note[0] = '\0';
	if (!n)
		return true;
	median = n % 2 ? off[n / 2] : (off[n / 2 - 1] + off[n / 2]) / 2;
	if (ours < 200 && (n < 20 || median <= 0.15))
		return true;
	snprintf(note, 128,
		 "published %s products are left out: measurements differ from them by "
		 "%.0f %% (median of %zu)",
		 dtype, 100 * median, n);
	return false;
}

static void published_products_stay_where_ours_agree(void **state)
{
	static struct made x;
	int gone[3] = { 0 };

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		static const char *const formats[] = { "bf16", "fp16", "fp8" };
		struct fit_input in = { .row = x.row };
		struct ft_fit fit = { .n_groups = 0 };
		struct arena mem = { 0 };
		char want[400] = "", note[128];

		x.n = 0;
		draw(&x, "bf16", SIZES, 22 + rnd_below(&seed, 10),
		     0.05 + rnd_below(&seed, 3) * 0.1);
		draw(&x, "fp16", rnd_below(&seed, 3),
		     i % 5 ? rnd_below(&seed, 40) : OURS, 0.3);
		draw(&x, "fp8", 15 + rnd_below(&seed, 2 * SIZES), 3 * SIZES, 0.3);
		shuffle(&x);
		in.n = x.n;
		fit_list_codes(&in, &mem);
		fit_judge_published(&in, &fit, &mem);
		for (int d = 0; d < FT_DTYPES; d++) {
			const char *name = ft_dtype_name((enum ft_dtype)d);
			bool stays = stay(&x, name, note);

			assert_int_equal(in.keep[d], stays);
			if (stays)
				continue;
			if (want[0])
				strcat(want, "; ");
			strcat(want, note);
			for (int f = 0; f < 3; f++)
				gone[f] += !strcmp(name, formats[f]);
		}
		assert_string_equal(fit.note, want);
		arena_release(&mem);
	}
	for (int f = 0; f < 3; f++)
		assert_true(gone[f] > 5 && gone[f] < DRAWS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_products_stay_where_ours_agree),
	};

	return cmocka_run_group_tests_name("judged rows", tests, NULL, NULL);
}
