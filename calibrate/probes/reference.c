/* calibrate/probes/reference.c - see the header: softmax(q K' / sqrt(d)) V of one query and
 * its gradients; which source element each element of a collective's result is */
#include "calibrate/probes/reference.h"

#include <math.h>
#include <string.h>

static double dot(const float *a, const float *b, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)a[i] * (double)b[i];
	return sum;
}

void reference_query(const struct reference_head *h, const float *q, double *p,
		     double *o)
{
	double scale = 1 / sqrt((double)h->d), most = -INFINITY, sum = 0;

	for (size_t j = 0; j < h->keys; j++) {
		p[j] = scale * dot(q, h->k + j * h->d, h->d);
		most = fmax(most, p[j]);
	}
	for (size_t j = 0; j < h->keys; j++) {
		p[j] = exp(p[j] - most);
		sum += p[j];
	}
	for (size_t c = 0; c < h->d; c++)
		o[c] = 0;
	for (size_t j = 0; j < h->keys; j++) {
		p[j] /= sum;
		for (size_t c = 0; c < h->d; c++)
			o[c] += p[j] * (double)h->v[j * h->d + c];
	}
}

void reference_query_back(const struct reference_head *h, const float *q,
			  const float *d_o, const double *p, double *d_q, double *d_k,
			  double *d_v)
{
	double scale = 1 / sqrt((double)h->d), delta = 0;

	for (size_t j = 0; j < h->keys; j++)
		delta += p[j] * dot(d_o, h->v + j * h->d, h->d);
	for (size_t c = 0; c < h->d; c++)
		d_q[c] = 0;
	for (size_t j = 0; j < h->keys; j++) {
		const float *k = h->k + j * h->d;
		double ds = scale * p[j] * (dot(d_o, h->v + j * h->d, h->d) - delta);

		for (size_t c = 0; c < h->d; c++) {
			d_q[c] += ds * (double)k[c];
			d_k[j * h->d + c] += ds * (double)q[c];
			d_v[j * h->d + c] += p[j] * (double)d_o[c];
		}
	}
}

double reference_distance(const double *out, const double *want, size_t n)
{
	double e = 0, size = 0;

	for (size_t i = 0; i < n; i++) {
		e += (out[i] - want[i]) * (out[i] - want[i]);
		size += want[i] * want[i];
	}
	return size > 0 ? sqrt(e / size) : sqrt(e);
}

double reference_worst_row(const double *out, const double *want, size_t rows, size_t d)
{
	double mean = 0, worst = 0;

	for (size_t i = 0; i < rows * d; i++)
		mean += want[i] * want[i] / (double)rows;
	for (size_t r = 0; r < rows; r++) {
		double e = 0, size = 0;

		for (size_t i = r * d; i < (r + 1) * d; i++) {
			e += (out[i] - want[i]) * (out[i] - want[i]);
			size += want[i] * want[i];
		}
		if (isnan(e))
			return NAN;
		size = fmax(size, mean);
		worst = fmax(worst, size > 0 ? sqrt(e / size) : sqrt(e));
	}
	return worst;
}

bool reference_collective(const char *op, int n, size_t all, int rank, size_t at,
			  int *from, size_t *index)
{
	size_t each = all / (size_t)n, r = (size_t)rank;

	*from = -1;
	*index = at;
	if (!strcmp(op, "all_reduce"))
		return at < all;
	if (!strcmp(op, "reduce_scatter")) {
		*index = r * each + at;
		return at < each;
	}
	if (!strcmp(op, "broadcast")) {
		*from = 0;
		return at < all;
	}
	if (!strcmp(op, "sendrecv")) {
		*from = (rank + n - 1) % n;
		return at < all;
	}
	if (!each || at >= each * (size_t)n)
		return false;
	*from = (int)(at / each);
	*index = at % each + (strcmp(op, "all_to_all") ? 0 : r * each);
	return !strcmp(op, "all_gather") || !strcmp(op, "all_to_all");
}
