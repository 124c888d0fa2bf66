/*
 * tests/test_inside_table.c - measured tables of collectives, read in the obvious way
 *
 * Tables are drawn. No law near the one that is found fits their rows better; what rows deviate
 * by is carried by a system of equations that is solved by elimination.
 */
#include "tests/seeded.h"
#include "tests/eliminate.h"

#include <math.h>

#include "sim/kernel.h"

enum { TABLES = 400, MOST_ROWS = 20 };

static uint64_t seed = 4;

struct table {
	struct ft_collective_table t;
	struct ft_collective_row row[MOST_ROWS];
	bool skip[MOST_ROWS];
};

/* Sizes rise by four from some KiB on; a full one goes beyond 64 MiB. */
static void any_table(struct table *x, int64_t n, bool full)
{
	double bytes = 1024 << pick(4);
	double a = 1e-5 * draw(), c = pick(2) ? 1e-8 * draw() : 0;
	double s = (pick(4) ? 1 + draw() : 0.01) * 1e-11, off = 0.2 * draw();

	*x = (struct table){ .t = { "pcie", FT_ALL_GATHER, n } };
	x->t.row = x->row;
	x->t.n_rows = (size_t)(full ? 10 + pick(11) : 2 + pick(12));
	for (size_t i = 0; i < x->t.n_rows; i++) {
		x->row[i].bytes = bytes;
		x->row[i].time_s = (a + c * sqrt(bytes) + s * bytes + 1e-7) *
				   (1 + off * (draw() - 0.5));
		x->skip[i] = i + 1 < x->t.n_rows && i > 1 && pick(6) == 0;
		bytes *= full ? 4 : 2;
	}
}

/* ---- the law -------------------------------------------------------------------------------- */

/* Relative errors, squared. */
static double error_of(const struct table *x, const double law[3])
{
	double sum = 0;

	for (size_t i = 0; i < x->t.n_rows; i++) {
		double S = x->row[i].bytes;
		double is =
			law[0] * 1e-6 + law[1] * 1e-9 * sqrt(S) + law[2] * 1e-12 * S;

		if (!x->skip[i])
			sum += pow(is / x->row[i].time_s - 1, 2);
	}
	return sum;
}

static void no_law_near_it_fits_better(void **state)
{
	struct ft_gpu gpu = { .n_collective = 0 };

	(void)state;
	for (int i = 0; i < TABLES; i++) {
		struct table x;
		struct inside_law law;
		double of[3], least;

		any_table(&x, 8, true);
		law = inside_law_of(&gpu, &x.t, x.skip);
		of[0] = law.a_s * 1e6, of[1] = law.c_s * 1e9;
		of[2] = law.s_per_byte * 1e12;
		assert_true(of[0] >= 0 && of[1] >= 0 && of[2] >= 0);
		assert_true(of[0] > 0 || of[1] > 0 || of[2] > 0);
		least = error_of(&x, of);
		for (int k = 0; k < 300; k++) {
			double by = pow(10, -4 * draw()), other[3];

			for (int p = 0; p < 3; p++)
				other[p] =
					fmax(0, of[p] + by * (draw() - 0.5) *
								(pick(2) ? of[p] : 10));
			assert_true(error_of(&x, other) >= least * (1 - 1e-9) - 3e-9);
		}
	}
}

/* ---- what rows deviate by -------------------------------------------------------------------- */

static double law_s(const struct inside_law *l, double bytes)
{
	return l->a_s + l->c_s * sqrt(bytes) + l->s_per_byte * bytes;
}

static double covariance(double a, double b)
{
	double far = 1 + 0.15 * pow(log2(a / b), 2);

	return 0.015 / far / far;
}

/* Of rows up to half a MiB: each against the mean of its neighbours. */
static double scatter(const struct table *x)
{
	double log_s[MOST_ROWS], sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < x->t.n_rows; i++)
		if (!x->skip[i] && x->row[i].bytes <= 524288)
			log_s[n++] = log(x->row[i].time_s);
	for (size_t i = 1; i + 1 < n; i++)
		sum += pow(log_s[i] - (log_s[i - 1] + log_s[i + 1]) / 2, 2) / 1.5;
	return n < 5 ? 0 : sum / (double)(n - 2);
}

typedef double expects(const void *of, double bytes);

static double carried_s(const struct table *x, double bytes, expects *expected,
			const void *of)
{
	double a[MOST_ROWS][MOST_ROWS], b[MOST_ROWS], w[MOST_ROWS], value[MOST_ROWS];
	double at = bytes, level = 0, sum = 0, ratio, size[MOST_ROWS];
	double noise = 0.0004 + scatter(x) / (1 + pow(bytes / 1048576, 2));
	size_t n = 0;

	for (size_t i = 0; i < x->t.n_rows; i++)
		if (!x->skip[i]) {
			size[n] = x->row[i].bytes;
			value[n++] =
				log(x->row[i].time_s / expected(of, x->row[i].bytes));
		}
	at = fmin(at, size[n - 1]);
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < n; j++)
			a[i][j] = covariance(size[i], size[j]) + (i == j ? noise : 0);
		b[i] = covariance(at, size[i]);
		level += b[i] * value[i];
		sum += b[i];
	}
	ratio = level /= sum;
	eliminate(n, MOST_ROWS, &a[0][0], b, w);
	for (size_t i = 0; i < n; i++)
		ratio += w[i] * (value[i] - level);
	return expected(of, bytes) * exp(ratio);
}

static double by_law(const void *of, double bytes)
{
	return law_s(of, bytes);
}

static void a_full_table_is_its_law_and_what_rows_deviate_by(void **state)
{
	struct ft_gpu gpu = { .n_collective = 0 };

	(void)state;
	for (int i = 0; i < TABLES; i++) {
		double bytes = pow(2, 8 + 28 * draw());
		struct inside_law law;
		struct table x;

		any_table(&x, 8, true);
		law = inside_law_of(&gpu, &x.t, x.skip);
		near_frac(inside_table_s(&gpu, &x.t, bytes, x.skip),
			  carried_s(&x, bytes, by_law, &law), 1e-5);
	}
}

/* ---- between tables -------------------------------------------------------------------------- */

/* Full tables of 4 and 16 ranks and further away, and one of few rows. */
struct among {
	struct ft_gpu gpu;
	struct table full[4];
	struct ft_collective_table all[5];
	int64_t n;
	int below, above; /* of full; -1: none */
};

static double bus(const struct among *m, int i, double bytes)
{
	double n = (double)m->full[i].t.n;

	return bytes * (n - 1) / n /
	       inside_table_s(&m->gpu, &m->full[i].t, bytes, NULL);
}

/* The bandwidth goes straight in logarithms; above the largest the start grows. */
static double by_neighbours(const void *of, double bytes)
{
	const struct among *m = of;
	double n = (double)m->n, moved = bytes * (n - 1) / n, low, high, w;

	if (m->below < 0)
		return moved / bus(m, m->above, bytes);
	low = (double)m->full[m->below].t.n;
	if (m->above < 0)
		return moved / bus(m, m->below, bytes) +
		       log2(n / low) / 2 *
			       inside_law_of(&m->gpu, &m->full[m->below].t, NULL).a_s;
	high = (double)m->full[m->above].t.n;
	w = log(n / low) / log(high / low);
	return moved / exp((1 - w) * log(bus(m, m->below, bytes)) +
			   w * log(bus(m, m->above, bytes)));
}

static void tables_that_are_not_full_are_held_against_those_next_to_them(void **state)
{
	static const int64_t ranks[4] = { 16, 2, 4, 64 };

	(void)state;
	for (int i = 0; i < TABLES; i++) {
		struct among m = { .n = 3 + pick(100), .below = -1, .above = -1 };
		double bytes = pow(2, 8 + 28 * draw());
		struct inside_between e = { &m.gpu, FT_ALL_GATHER, 0, NULL, NULL };
		struct inside_law law;
		struct table few;
		int left_out = pick(8);

		while (m.n == 4 || m.n == 16 || m.n == 64)
			m.n++;
		any_table(&few, m.n, false);
		m.gpu.collective = m.all;
		for (int k = 0; k < 4; k++) {
			if (k == left_out)
				continue;
			any_table(&m.full[k], ranks[k], true);
			m.all[m.gpu.n_collective++] = m.full[k].t;
			if (ranks[k] < m.n &&
			    (m.below < 0 || ranks[k] > m.full[m.below].t.n))
				m.below = k;
			if (ranks[k] > m.n &&
			    (m.above < 0 || ranks[k] < m.full[m.above].t.n))
				m.above = k;
		}
		m.all[m.gpu.n_collective++] = few.t;
		e.n = m.n;
		for (size_t k = 0; k + 1 < m.gpu.n_collective; k++)
			inside_enclose(&e, &m.all[k]);
		near_frac(inside_between_s(&e, bytes), by_neighbours(&m, bytes), 1e-9);
		/* one that ends before the plateau is no faster there than they are, though
		 * its rows be */
		law = inside_law_of(&m.gpu, &few.t, few.skip);
		assert_true(law.s_per_byte >=
			    by_neighbours(&m, 1073741824) / 1073741824 * (1 - 1e-9));
		if (few.t.n_rows >= 10)
			near_frac(inside_table_s(&m.gpu, &few.t, bytes, few.skip),
				  carried_s(&few, bytes, by_law, &law), 1e-5);
		else
			near_frac(inside_table_s(&m.gpu, &few.t, bytes, few.skip),
				  carried_s(&few, bytes, by_neighbours, &m), 1e-5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_law_near_it_fits_better),
		cmocka_unit_test(a_full_table_is_its_law_and_what_rows_deviate_by),
		cmocka_unit_test(
			tables_that_are_not_full_are_held_against_those_next_to_them),
	};

	return cmocka_run_group_tests_name("inside table", tests, NULL, NULL);
}
