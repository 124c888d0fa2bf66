/*
 * sim/kernel_kriging.c - an unknown value from the rows nearest to it
 *
 * With rows i, j of covariance C[i][j] (noise on the diagonal) and covariances
 * c[i] with the point, the estimate is c' C^-1 y and the variance left is
 * variance - c' C^-1 c (simple kriging). The y are taken against their mean,
 * weighted by c, so the field may sit at any level. C = L L' by Cholesky.
 */
#include <assert.h>
#include <math.h>

#include "sim/kernel.h"

void krige_init(struct krige *k)
{
	k->n = 0;
	k->least = -1;
	k->least_at = 0;
}

static void find_least(struct krige *k)
{
	size_t at = 0;

	for (size_t i = 1; i < KRIGE_NEAR; i++)
		at = k->with_point[i] < k->with_point[at] ? i : at;
	k->least = k->with_point[at];
	k->least_at = at;
}

void krige_take(struct krige *k, size_t row, float covariance)
{
	size_t at = k->n < KRIGE_NEAR ? k->n++ : k->least_at;

	k->row[at] = row;
	k->with_point[at] = covariance;
	if (k->n == KRIGE_NEAR)
		find_least(k);
}

size_t krige_stride(size_t n)
{
	size_t step = n * 5 / 13 + 1;

	for (;; step++) {
		size_t a = n, b = step;

		while (b) {
			size_t rest = a % b;

			a = b;
			b = rest;
		}
		if (a <= 1)
			return step;
	}
}

/* L in the lower half, its diagonal inverted. */
static void decompose(double c[KRIGE_NEAR][KRIGE_NEAR], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j <= i; j++) {
			double s = c[i][j];

			for (size_t q = 0; q < j; q++)
				s -= c[i][q] * c[j][q];
			if (i == j)
				c[i][i] = 1 / sqrt(s > 1e-12 ? s : 1e-12);
			else
				c[i][j] = s * c[j][j];
		}
	}
}

double krige_estimate(const struct krige *k, const double *value,
		      const struct krige_field *f, double *left)
{
	double c[KRIGE_NEAR][KRIGE_NEAR], y[KRIGE_NEAR], w[KRIGE_NEAR];
	double level = 0, weight = 0, sum = 0, explained = 0;

	assert(k->n);
	for (size_t i = 0; i < k->n; i++) {
		level += (double)k->with_point[i] * value[i];
		weight += (double)k->with_point[i];
	}
	level /= weight > 0 ? weight : 1;
	for (size_t i = 0; i < k->n; i++) {
		for (size_t j = 0; j < i; j++)
			c[i][j] = (double)f->between(f->rows, k->row[i], k->row[j]);
		c[i][i] = f->variance + f->noise;
	}
	decompose(c, k->n);
	for (size_t i = 0; i < k->n; i++) {
		y[i] = value[i] - level;
		w[i] = (double)k->with_point[i];
		for (size_t q = 0; q < i; q++) {
			y[i] -= c[i][q] * y[q];
			w[i] -= c[i][q] * w[q];
		}
		y[i] *= c[i][i];
		w[i] *= c[i][i];
		sum += y[i] * w[i];
		explained += w[i] * w[i];
	}
	*left = f->variance > explained ? f->variance - explained : 0;
	return level + sum;
}

double krige_spread(double spread, double left, double noise)
{
	return sqrt(spread * spread + fmax(0, left - 0.5 * noise));
}
