/*
 * calibrate/fit_memory.c - start and bandwidth of each memory-bound kernel, by GSL's
 * nonlinear least squares (trust region, Levenberg-Marquardt)
 *
 * Residuals are log(prediction) - log(time): relative errors weigh the same at 5 us
 * and at 5 ms. Unknowns are the logarithms of start and rate, so both stay above
 * zero; how sharply one gives way to the other is tried out. A row length that has
 * cells of its own gets a curve that starts from the kernel's and is held to it as
 * by one cell in ten: three cells say little about a rate. Where times do not rise
 * with bytes (noise, a cache) the best rate is infinite: it is kept to what still
 * adds a thirtieth to the cell that moved most, start to the longest cell.
 */
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/stats.h"
#include "calibrate/fit.h"
#include "calibrate/store.h"
#include "foretoken/hw.h"

struct points {
	const double *bytes, *time_s, *weight;
	const bool *skip;
	size_t n;
	double sharpness;
	const double *held; /* to these unknowns, or NULL */
};

static const double hold = 0.1, beyond_seen = 30;

static double residual(const struct points *p, const double x[2], size_t i)
{
	double start = exp(x[0]), move = p->bytes[i] / exp(x[1]);
	double q = p->sharpness;

	return log(pow(pow(start, q) + pow(move, q), 1 / q) / p->time_s[i]);
}

static int residuals(const gsl_vector *v, void *data, gsl_vector *f)
{
	const struct points *p = data;
	double x[2] = { gsl_vector_get(v, 0), gsl_vector_get(v, 1) };

	for (size_t i = 0; i < p->n; i++)
		gsl_vector_set(f, i, p->skip[i] ? 0 : p->weight[i] * residual(p, x, i));
	for (size_t i = 0; i < 2; i++)
		gsl_vector_set(f, p->n + i, p->held ? hold * (x[i] - p->held[i]) : 0);
	return GSL_SUCCESS;
}

static bool solve(struct points *p, double x[2])
{
	gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
	gsl_multifit_nlinear_workspace *w = allocated(gsl_multifit_nlinear_alloc(
		gsl_multifit_nlinear_trust, &how, p->n + 2, 2));
	gsl_multifit_nlinear_fdf f = {
		.f = residuals, .n = p->n + 2, .p = 2, .params = p
	};
	gsl_vector_view at = gsl_vector_view_array(x, 2);
	int info, code;

	code = gsl_multifit_nlinear_init(&at.vector, &f, w);
	if (code == GSL_SUCCESS)
		code = gsl_multifit_nlinear_driver(100, 1e-8, 1e-8, 1e-8, NULL, NULL,
						   &info, w);
	for (int i = 0; i < 2; i++)
		x[i] = gsl_vector_get(w->x, (size_t)i);
	gsl_multifit_nlinear_free(w);
	return (code == GSL_SUCCESS || code == GSL_EMAXITER || code == GSL_ENOPROG) &&
	       isfinite(x[0]) && isfinite(x[1]);
}

/* Marks what lies beyond 4 standard deviations, judged by the mean absolute one,
 * and beyond 25 %; returns how many. */
static size_t mark_outliers(const struct points *p, const double x[2], bool *skip,
			    double *spread)
{
	double sum = 0, square = 0, weights = 0, limit;
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		sum += fabs(residual(p, x, i));
	limit = fmax(0.25, 4 * 1.2533 * sum / (double)p->n);
	for (size_t i = 0; i < p->n; i++) {
		double r = residual(p, x, i);

		skip[i] = fabs(r) > limit;
		n += skip[i];
		r *= p->weight[i];
		square += skip[i] ? 0 : r * r;
		weights += skip[i] ? 0 : p->weight[i] * p->weight[i];
	}
	*spread = sqrt(square / fmax(weights, 1e-9) * (double)(p->n - n) /
		       (double)(p->n - n > 2 ? p->n - n : 2));
	return n;
}

/* Cells crowd where small sizes were probed closely: those of one octave of bytes have
 * one cell's say together. */
static double *weigh(struct arena *mem, const double *bytes, size_t n)
{
	double *weight = ARENA_ARRAY(mem, n + 1, double);

	for (size_t i = 0; i < n; i++) {
		double crowd = 0;

		for (size_t j = 0; j < n; j++)
			crowd += fabs(log2(bytes[i] / bytes[j])) < 0.5;
		weight[i] = 1 / sqrt(crowd);
	}
	return weight;
}

/* With a sharpness given; like: the curve to start from and hold to, or NULL. */
static bool fit_sharp(const double *bytes, const double *time_s, size_t n,
		      double sharpness, const struct fit_curve *like,
		      struct fit_curve *out)
{
	struct arena mem = { 0 };
	bool *skip = ARENA_ARRAY(&mem, n + 1, bool), ok;
	struct points p = { bytes,     time_s, weigh(&mem, bytes, n), skip, n,
			    sharpness, NULL };
	double x[2] = { 0, 0 }, held[2], rate = 0, start = INFINITY, most = 0;

	*out = (struct fit_curve){ .n = n, .sharpness = sharpness };
	for (size_t i = 0; i < n; i++) {
		rate = fmax(rate, bytes[i] / time_s[i]);
		start = fmin(start, time_s[i]);
		most = fmax(most, time_s[i]);
	}
	x[0] = log(start);
	x[1] = log(rate);
	if (like) {
		held[0] = x[0] = log(like->start_s);
		held[1] = x[1] = log(like->bytes_per_s);
		p.held = held;
	}
	ok = n >= 3 && solve(&p, x);
	if (ok && !like) {
		out->outliers = mark_outliers(&p, x, skip, &out->spread);
		if (out->outliers && n - out->outliers >= 3)
			ok = solve(&p, x);
	}
	if (ok)
		mark_outliers(&p, x, skip, &out->spread);
	out->start_s = fmin(exp(x[0]), most);
	out->bytes_per_s = fmin(exp(x[1]), beyond_seen * rate);
	arena_release(&mem);
	return ok;
}

static const double tried[] = { 1.2, 1.5, 2, 3, 5 };

bool fit_curve(const double *bytes, const double *time_s, size_t n,
	       struct fit_curve *out)
{
	bool ok = fit_sharp(bytes, time_s, n, 1, NULL, out);

	for (size_t i = 0; ok && n >= 8 && i < 5; i++) {
		struct fit_curve c;

		if (fit_sharp(bytes, time_s, n, tried[i], NULL, &c) &&
		    c.outliers <= out->outliers && c.spread < 0.98 * out->spread)
			*out = c;
	}
	return ok;
}

/* A curve for rows of unknown length is made of those that training steps have:
 * norms and softmax have other kernels for the rest. */
static bool usual_width(const struct ft_measurement *m)
{
	if (!strcmp(m->kernel, "cross_entropy"))
		return m->n >= 30000;
	if (strstr(m->kernel, "norm") || !strcmp(m->kernel, "softmax"))
		return m->n >= 2048 && m->n <= 8192;
	return true;
}

/* As PyTorch runs the kernel, where that was measured, or as the probe does; rotation
 * stays the probe's, since PyTorch makes it of several kernels. */
bool fit_memory_row(const struct ft_measurement *m, bool torch)
{
	return measurement_is(m, "memory") && fit_from_torch(m) == torch &&
	       (!torch || (m->m >= 128 && strcmp(m->kernel, "rope")));
}

/* Which cells: of a kernel, outside a fold. */
struct choice {
	int fold;
	const char *kernel;
	bool warm, torch;
	double row_bytes; /* 0: of the usual row lengths */
};

struct cells {
	double *bytes, *time_s;
	size_t n;
};

static bool by_row(const char *kernel)
{
	return strstr(kernel, "norm") || !strcmp(kernel, "softmax") ||
	       !strcmp(kernel, "cross_entropy");
}

static struct cells cells_of(const struct fit_input *in, const struct choice *of,
			     struct arena *mem)
{
	struct cells c = { ARENA_ARRAY(mem, in->n + 1, double),
			   ARENA_ARRAY(mem, in->n + 1, double), 0 };

	for (size_t i = 0; i < in->n; i++) {
		const struct ft_measurement *m = &in->row[i];

		if (!measurement_is(m, "memory") || m->warm != of->warm ||
		    strcmp(m->kernel, of->kernel) || fit_fold(m) == of->fold ||
		    fit_from_torch(m) != of->torch)
			continue;
		if (of->row_bytes > 0 ? fit_row_bytes(m) != of->row_bytes :
					!fit_memory_row(m, of->torch) ||
						(of->torch && !usual_width(m)))
			continue;
		c.bytes[c.n] = fit_moved_bytes(m);
		c.time_s[c.n++] = m->time_us * 1e-6;
	}
	return c;
}

/* The row lengths that a kernel was measured at, in bytes, rising. */
static size_t lengths_of(const struct fit_input *in, const char *kernel, double *length)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < in->n; i++)
		if (measurement_is(&in->row[i], "memory") &&
		    !strcmp(in->row[i].kernel, kernel) && fit_from_torch(&in->row[i]) &&
		    fit_row_bytes(&in->row[i]) > 0)
			length[n++] = fit_row_bytes(&in->row[i]);
	stats_sort(length, n);
	for (size_t i = 0; i < n; i++)
		if (!kept || length[i] > length[kept - 1])
			length[kept++] = length[i];
	return kept;
}

/* Of a rate in GB/s: slow ones (a CPU) must not become zero. */
static int decimals(const struct fit_curve *c)
{
	return c->bytes_per_s < 10e9 ? 6 : 1;
}

/* A rank was measured; the file says what all ranks of a card have. */
static double of_card(const struct fit_input *in, const struct fit_curve *c)
{
	return c->bytes_per_s * (double)in->base->ranks_per_gpu * 1e-9;
}

/* The curves by row length, near `like`, into out (if not NULL); returns the sum
 * of squared residuals. */
static double fit_rows(const struct fit_input *in, int fold, const char *kernel,
		       bool warm, const struct fit_curve *like, FILE *out)
{
	struct arena mem = { 0 };
	double *length = ARENA_ARRAY(&mem, in->n + 1, double), square = 0;
	size_t n = lengths_of(in, kernel, length);
	const char *sep = ", by_row: {";

	for (size_t i = 0; i < n; i++) {
		struct cells at = cells_of(
			in, &(struct choice){ fold, kernel, warm, true, length[i] },
			&mem);
		struct fit_curve c;

		if (!fit_sharp(at.bytes, at.time_s, at.n, like->sharpness, like, &c))
			continue;
		square += c.spread * c.spread * (double)at.n;
		if (!out)
			continue;
		fprintf(out, "%s%.0f: {start: %.3f us, bandwidth: %.*f GB/s}", sep,
			length[i], c.start_s * 1e6, decimals(&c), of_card(in, &c));
		sep = ", ";
	}
	if (out) /* null: the base's own must go */
		fputs(sep[2] != 'b' ? "}" : ", by_row: null", out);
	arena_release(&mem);
	return square;
}

/* Row lengths share a sharpness; that of all of them together is blurred. */
static void print_rows(const struct fit_input *in, int fold, const char *kernel,
		       bool warm, struct fit_curve like, FILE *out)
{
	double least, best = 1;

	like.sharpness = 1;
	least = fit_rows(in, fold, kernel, warm, &like, NULL);
	for (size_t i = 0; i < sizeof(tried) / sizeof(*tried); i++) {
		double square;

		like.sharpness = tried[i];
		square = fit_rows(in, fold, kernel, warm, &like, NULL);
		if (square >= 0.96 * least)
			continue;
		least = square;
		best = tried[i];
	}
	like.sharpness = best;
	fprintf(out, ", row_sharpness: %g", best);
	fit_rows(in, fold, kernel, warm, &like, out);
}

static size_t one_curve(const struct fit_input *in, int fold, const char *kernel,
			bool warm, bool torch, struct fit_curve *c)
{
	struct arena mem = { 0 };
	struct cells at = cells_of(
		in,
		&(struct choice){
			.fold = fold, .kernel = kernel, .warm = warm, .torch = torch },
		&mem);
	size_t n = at.n;

	if (n < 4 || !fit_curve(at.bytes, at.time_s, n, c))
		n = 0;
	arena_release(&mem);
	return n;
}

static double traffic_of(const char *kernel, bool torch)
{
	return !strcmp(kernel, "concat") || !strcmp(kernel, "default") ?
		       2 :
		       fit_traffic(kernel, torch);
}

static void print_curve(const struct fit_input *in, const struct choice *of,
			const struct fit_curve *c, FILE *out)
{
	const char *name = of->kernel;

	fprintf(out,
		"    %s%s: {start: %.3f us, bandwidth: %.*f GB/s, traffic: "
		"%g",
		name, of->warm ? ".warm" : "", c->start_s * 1e6, decimals(c),
		of_card(in, c), traffic_of(name, of->torch));
	if (c->sharpness > 1)
		fprintf(out, ", half: null, sharpness: %g", c->sharpness);
	else
		fputs(", half: null, sharpness: null", out);
	if (by_row(name))
		print_rows(in, of->fold, name, of->warm, *c, out);
	else
		fputs(", by_row: null, row_sharpness: null", out);
	fputs("}\n", out);
}

size_t fit_memory_yaml(const struct fit_input *in, int fold, FILE *out,
		       size_t *outliers)
{
	const char *kernel;
	struct fit_curve c;
	size_t used = 0;

	for (size_t i = 0; (kernel = fit_memory_kernel(i)); i++)
		for (int warm = 0; warm < 2; warm++) {
			bool torch = strcmp(kernel, "rope");
			size_t n = one_curve(in, fold, kernel, warm, torch, &c);

			/* a profile's own curves give way only to kernels
			 * that frameworks run, not to the probe's plain ones */
			if (in->own_base && (!torch || !n))
				continue;
			if (!n && torch) {
				torch = false;
				n = one_curve(in, fold, kernel, warm, false, &c);
			}
			if (!n)
				continue;
			used += n;
			*outliers += c.outliers;
			print_curve(in,
				    &(struct choice){ .fold = fold,
						      .kernel = kernel,
						      .warm = warm,
						      .torch = torch },
				    &c, out);
			if (i == 0 && in->options->families & FT_FIT_MEMORY &&
			    !in->own_base)
				print_curve(in,
					    &(struct choice){ .fold = fold,
							      .kernel = "default",
							      .warm = warm,
							      .torch = torch },
					    &c, out);
		}
	return used;
}
