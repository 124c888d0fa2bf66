/*
 * sim/inside_table.c - one measured table of a collective, and between two of them
 *
 * T(S) = a + c sqrt(S) + S f / B is fitted to a table's rows (it holds within about
 * 6 %), and what they deviate from it is carried along by kriging over log2(S);
 * small messages with the scatter that the rows themselves show. Above the last row
 * the law goes on from that row: the plateau. Where a table ends before it, f / B is that
 * of the fuller ones. A table of less than ten sizes is held
 * against the fuller ones of its op at other n, not against a law of its own: with
 * every second size left out, 6 sizes from 1 KiB to 1 GiB among 3, 5, 6, 7 H200 are
 * then found again within 10.5 %, 21 % otherwise.
 */
#include <math.h>
#include <string.h>

#include "sim/kernel.h"

static const double MIB = 1048576;

/* ---- the law ------------------------------------------------------------ */

/* Solve the symmetric system over the unknowns in use (bits of mask); false
 * when it is singular or an unknown is negative. */
static bool solve(double a[3][3], const double b[3], int mask, double x[3])
{
	double m[3][4];
	int id[3], n = 0;

	for (int i = 0; i < 3; i++) {
		x[i] = 0;
		if (mask & 1 << i)
			id[n++] = i;
	}
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < n; j++)
			m[i][j] = a[id[i]][id[j]];
		m[i][n] = b[id[i]];
	}
	for (int i = 0; i < n; i++) {
		if (!(m[i][i] > 1e-12))
			return false;
		for (int r = 0; r < n; r++) {
			double f = m[r][i] / m[i][i];

			for (int j = i; r != i && j <= n; j++)
				m[r][j] -= f * m[i][j];
		}
	}
	for (int i = 0; i < n; i++) {
		x[id[i]] = m[i][n] / m[i][i];
		if (!(x[id[i]] >= 0))
			return false;
	}
	return true;
}

/* least: of s_per_byte. */
static struct inside_law fit(const struct ft_collective_table *t, const bool *skip,
			     double least_s_per_byte)
{
	static const double unit[3] = { 1e-6, 1e-9, 1e-12 };
	struct inside_law law = { .s_per_byte = least_s_per_byte };
	double a[3][3] = { { 0 } }, b[3] = { 0 }, least = INFINITY, all = 0;

	for (size_t i = 0; i < t->n_rows; i++) {
		double S = t->row[i].bytes, time = t->row[i].time_s;
		double rest = 1 - least_s_per_byte * S / time;
		double g[3] = { unit[0] / time, unit[1] * sqrt(S) / time,
				unit[2] * S / time };

		if (skip && skip[i])
			continue;
		all += rest * rest;
		for (int p = 0; p < 3; p++) {
			b[p] += g[p] * rest;
			for (int q = 0; q < 3; q++)
				a[p][q] += g[p] * g[q];
		}
	}
	for (int mask = 1; mask < 8; mask++) {
		double x[3], error = all;

		if (!solve(a, b, mask, x))
			continue;
		for (int p = 0; p < 3; p++)
			error -= x[p] * b[p];
		if (error < least - 1e-9) {
			least = error;
			law = (struct inside_law){ x[0] * unit[0], x[1] * unit[1],
						   x[2] * unit[2] + least_s_per_byte };
		}
	}
	return law;
}

static double law_s(const struct inside_law *law, double bytes)
{
	return law->a_s + law->c_s * sqrt(bytes) + law->s_per_byte * bytes;
}

/* ---- a table ------------------------------------------------------------ */

/* Of the logarithm of a time: what sizes far apart differ by, and one row's own error,
 * squared. */
static const double VARIANCE = 150 * 1e-4, NOISE = 0.0004;

/* A full table has as many rows, and such sizes; others borrow from it. */
enum { FULL_ROWS = 10 };
static const double FULL_BYTES = 64 * 1048576.0;

static bool reaches_plateau(const struct ft_collective_table *t)
{
	return t->n_rows && t->row[t->n_rows - 1].bytes >= FULL_BYTES;
}

static float near_size(double a, double b)
{
	float d = (float)log2(a / b);

	return (float)VARIANCE * krige_near(0.15f * d * d);
}

static float between(const void *rows, size_t a, size_t b)
{
	const struct ft_collective_table *t = rows;

	return near_size(t->row[a].bytes, t->row[b].bytes);
}

static double bus_of(const struct ft_gpu *gpu, const struct ft_collective_table *t,
		     double bytes)
{
	return bytes * ft_collective_bus_factor(t->op, t->n) /
	       inside_table_s(gpu, t, bytes, NULL);
}

double inside_between_s(const struct inside_between *e, double bytes)
{
	const struct ft_collective_table *below = e->below, *above = e->above;
	double f = ft_collective_bus_factor(e->op, e->n), n = (double)e->n, w;
	double bus;

	if (!below)
		return bytes * f / bus_of(e->gpu, above, bytes);
	bus = bus_of(e->gpu, below, bytes);
	w = log2(n / (double)below->n);
	if (!above)
		return bytes * f / bus +
		       0.5 * w * inside_law_of(e->gpu, below, NULL).a_s;
	w /= log2((double)above->n / (double)below->n);
	bus *= pow(bus_of(e->gpu, above, bytes) / bus, w);
	return bytes * f / bus;
}

void inside_enclose(struct inside_between *e, const struct ft_collective_table *t)
{
	if (t->n < e->n && (!e->below || t->n > e->below->n))
		e->below = t;
	if (t->n > e->n && (!e->above || t->n < e->above->n))
		e->above = t;
}

static bool is_mesh(const struct ft_gpu *gpu, const char *fabric)
{
	for (size_t i = 0; i < gpu->n_scale_ups; i++)
		if (!strcmp(gpu->scale_up[i].fabric, fabric))
			return gpu->scale_up[i].mesh;
	return false;
}

/* What rows are held against. */
struct expected {
	struct inside_between fuller;
	struct inside_law law; /* where there is no fuller table */
};

/* The full tables of its op next to one that is not. */
static struct inside_between fuller_than(const struct ft_gpu *gpu,
					 const struct ft_collective_table *t)
{
	struct inside_between fuller = { gpu, t->op, t->n, NULL, NULL };

	for (size_t i = 0; !is_mesh(gpu, t->fabric) && i < gpu->n_collective; i++) {
		const struct ft_collective_table *o = &gpu->collective[i];

		if (o->n_rows >= FULL_ROWS && reaches_plateau(o) && o->op == t->op &&
		    !strcmp(o->fabric, t->fabric))
			inside_enclose(&fuller, o);
	}
	return fuller;
}

struct inside_law inside_law_of(const struct ft_gpu *gpu,
				const struct ft_collective_table *t, const bool *skip)
{
	struct inside_between fuller;
	double large = 16 * FULL_BYTES, least = 0;

	if (!reaches_plateau(t)) {
		fuller = fuller_than(gpu, t);
		if (fuller.below || fuller.above)
			least = inside_between_s(&fuller, large) / large;
	}
	return fit(t, skip, least);
}

static struct expected expect(const struct ft_gpu *gpu,
			      const struct ft_collective_table *t, const bool *skip)
{
	struct expected e = { 0 };

	if (t->n_rows < FULL_ROWS)
		e.fuller = fuller_than(gpu, t);
	if (!e.fuller.below && !e.fuller.above)
		e.law = inside_law_of(gpu, t, skip);
	return e;
}

static double expected_s(const struct expected *e, double bytes)
{
	return e->fuller.below || e->fuller.above ?
		       inside_between_s(&e->fuller, bytes) :
		       law_s(&e->law, bytes);
}

/* How far rows scatter about their neighbours on either side: the variance of
 * the logarithm, among sizes that wait for latency alone. Few rows: unknown. */
static double scatter(const struct ft_collective_table *t, const bool *skip)
{
	double last[3] = { 0, 0, 0 }, sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < t->n_rows && t->row[i].bytes <= MIB / 2; i++) {
		double off;

		if (skip && skip[i])
			continue;
		last[0] = last[1];
		last[1] = last[2];
		last[2] = log(t->row[i].time_s);
		if (++n < 3)
			continue;
		off = last[1] - (last[0] + last[2]) / 2;
		sum += off * off / 1.5;
	}
	return n > 4 ? sum / (double)(n - 2) : 0;
}

/* Scatter is smoothed over where it is; beyond 1 MiB it is gone. */
static double noise_at(const struct ft_collective_table *t, const bool *skip,
		       double bytes)
{
	double x = bytes / MIB;

	return NOISE + scatter(t, skip) / (1 + x * x);
}

double inside_table_s(const struct ft_gpu *gpu, const struct ft_collective_table *t,
		      double bytes, const bool *skip)
{
	struct expected e = expect(gpu, t, skip);
	double value[KRIGE_NEAR], left, last = 0, at;
	struct krige near;

	for (size_t i = 0; i < t->n_rows; i++)
		if (!skip || !skip[i])
			last = t->row[i].bytes;
	at = fmin(bytes, last);
	krige_init(&near);
	for (size_t i = 0; i < t->n_rows; i++)
		if (!skip || !skip[i])
			krige_offer(&near, i, near_size(at, t->row[i].bytes));
	for (size_t i = 0; i < near.n; i++) {
		const struct ft_collective_row *row = &t->row[near.row[i]];

		value[i] = log(row->time_s / expected_s(&e, row->bytes));
	}
	return expected_s(&e, bytes) *
	       exp(krige_estimate(&near, value,
				  &(struct krige_field){ between, t,
							 noise_at(t, skip, bytes),
							 VARIANCE },
				  &left));
}
