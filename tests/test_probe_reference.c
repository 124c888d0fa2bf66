/* tests/test_probe_reference.c - what the GPU probes are checked against: attention's
 * gradients by finite differences, collectives against what ranks do with whole buffers */
#include "tests/check.h"

#include <math.h>

#include "calibrate/probes/reference.c"

enum { KEYS = 5, D = 4 };

struct one {
	float q[D], g[D], k[KEYS * D], v[KEYS * D];
};

static void fill(float *x, size_t n, unsigned *state)
{
	for (size_t i = 0; i < n; i++) {
		*state = *state * 1664525u + 1013904223u;
		x[i] = (float)(*state >> 8) / 8388608.0f - 1;
	}
}

static struct one some(void)
{
	unsigned state = 7;
	struct one x;

	fill(x.q, D, &state);
	fill(x.g, D, &state);
	fill(x.k, KEYS * D, &state);
	fill(x.v, KEYS * D, &state);
	return x;
}

/* sum of g o */
static double loss(const struct one *x)
{
	struct reference_head h = { x->k, x->v, KEYS, D };
	double p[KEYS], o[D], sum = 0;

	reference_query(&h, x->q, p, o);
	for (int c = 0; c < D; c++)
		sum += (double)x->g[c] * o[c];
	return sum;
}

/* where: a number inside x */
static double slope(struct one *x, float *where)
{
	const float step = 1.0f / 256;
	float was = *where;
	double up, down;

	*where = was + step;
	up = loss(x);
	*where = was - step;
	down = loss(x);
	*where = was;
	return (up - down) / (2 * (double)step);
}

static void gradients_are_the_slopes_of_the_output(void **state)
{
	struct one x = some();
	struct reference_head h = { x.k, x.v, KEYS, D };
	double p[KEYS], o[D], dq[D], dk[KEYS * D] = { 0 }, dv[KEYS * D] = { 0 };

	(void)state;
	reference_query(&h, x.q, p, o);
	reference_query_back(&h, x.q, x.g, p, dq, dk, dv);
	for (int i = 0; i < D; i++)
		assert_true(fabs(dq[i] - slope(&x, &x.q[i])) < 1e-4);
	for (int i = 0; i < KEYS * D; i++) {
		assert_true(fabs(dk[i] - slope(&x, &x.k[i])) < 1e-4);
		assert_true(fabs(dv[i] - slope(&x, &x.v[i])) < 1e-4);
	}
}

static void a_single_key_is_copied(void **state)
{
	struct one x = some();
	struct reference_head h = { x.k, x.v, 1, D };
	double p[1], o[D];

	(void)state;
	reference_query(&h, x.q, p, o);
	assert_true(p[0] == 1);
	for (int i = 0; i < D; i++)
		assert_true(o[i] == (double)x.v[i]);
}

static void distance_sees_holes_and_what_should_be_zero(void **state)
{
	double want[2] = { 3, 4 }, none[2] = { 0, 0 };
	double out[2] = { 3, 4.5 }, hole[2] = { 3, NAN };

	(void)state;
	assert_true(fabs(reference_distance(out, want, 2) - 0.1) < 1e-12);
	assert_true(isnan(reference_distance(hole, want, 2)));
	assert_true(reference_distance(out, none, 2) > 5);
}

static void one_wrong_row_does_not_drown(void **state)
{
	enum { ROWS = 4096 };
	static const double wrong[2] = { 1, -1 };
	double *want = calloc(2 * ROWS, sizeof(*want));
	double *out = calloc(2 * ROWS, sizeof(*out));

	(void)state;
	assert_true(want && out);
	for (int i = 0; i < 2 * ROWS; i++) {
		want[i] = i < 2 ? 1000 : 1;
		out[i] = want[i] * 1.001;
	}
	assert_true(reference_worst_row(out, want, ROWS, 2) < 1.01e-3);
	memcpy(out + 400, wrong, sizeof(wrong));
	assert_true(reference_distance(out, want, 2 * ROWS) < 2e-3);
	assert_true(reference_worst_row(out, want, ROWS, 2) > 0.05);
	free(want);
	free(out);
}

/* ---- collectives ------------------------------------------------------------ */

enum { RANKS = 3, ALL = 13, EACH = ALL / RANKS };

/* Rank r's source is r * 100 + i; -1 where nothing is received. */
static double source(int r, int i)
{
	return r * 100 + i;
}

/* What the ranks do, buffer by buffer. */
static void run(const char *op, double out[RANKS][ALL])
{
	for (int r = 0; r < RANKS; r++)
		for (int i = 0; i < ALL; i++)
			out[r][i] = -1;
	for (int r = 0; r < RANKS; r++)
		for (int i = 0; i < ALL; i++) {
			int chunk = i / EACH, at = i % EACH;

			if (!strcmp(op, "all_reduce"))
				out[r][i] = 300 + 3 * i;
			if (!strcmp(op, "broadcast"))
				out[r][i] = source(0, i);
			if (!strcmp(op, "sendrecv")) /* to the next */
				out[(r + 1) % RANKS][i] = source(r, i);
			if (chunk >= RANKS)
				continue;
			if (!strcmp(op, "reduce_scatter"))
				out[chunk][at] = 300 + 3 * i;
			if (!strcmp(op, "all_gather") && i < EACH)
				for (int to = 0; to < RANKS; to++)
					out[to][r * EACH + i] = source(r, i);
			if (!strcmp(op, "all_to_all"))
				out[chunk][r * EACH + at] = source(r, i);
		}
}

static void every_element_of_a_collective_is_known(void **state)
{
	static const char *const ops[] = { "all_reduce", "all_gather", "reduce_scatter",
					   "all_to_all", "broadcast",  "sendrecv" };

	(void)state;
	for (int o = 0; o < 6; o++) {
		double out[RANKS][ALL];

		run(ops[o], out);
		for (int r = 0; r < RANKS; r++)
			for (int i = 0; i < ALL; i++) {
				double want = -1;
				size_t index;
				int from;

				if (reference_collective(ops[o], RANKS, ALL, r,
							 (size_t)i, &from, &index))
					want = from >= 0 ? source(from, (int)index) :
							   300 + 3 * (double)index;
				assert_true(out[r][i] == want);
			}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gradients_are_the_slopes_of_the_output),
		cmocka_unit_test(a_single_key_is_copied),
		cmocka_unit_test(distance_sees_holes_and_what_should_be_zero),
		cmocka_unit_test(one_wrong_row_does_not_drown),
		cmocka_unit_test(every_element_of_a_collective_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
