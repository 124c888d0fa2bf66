/*
 * calibrate/fit_memory.c - start and bandwidth of each memory-bound kernel, by GSL's
 * nonlinear least squares (trust region, Levenberg-Marquardt)
 *
 * Residuals are log(start + bytes / rate) - log(time): relative errors weigh the
 * same at 5 us and at 5 ms. Unknowns are the logarithms of start and rate, so
 * both stay above zero.
 */
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <string.h>

#include "calibrate/fit.h"
#include "calibrate/store.h"

struct points {
	const double *bytes, *time_s;
	const bool *skip;
	size_t n;
};

static int residuals(const gsl_vector *x, void *data, gsl_vector *f)
{
	const struct points *p = data;
	double start = exp(gsl_vector_get(x, 0));
	double rate = exp(gsl_vector_get(x, 1));

	for (size_t i = 0; i < p->n; i++)
		gsl_vector_set(f, i, p->skip[i] ? 0 :
			       log((start + p->bytes[i] / rate) / p->time_s[i]));
	return GSL_SUCCESS;
}

static bool solve(struct points *p, double x[2])
{
	gsl_multifit_nlinear_parameters how =
		gsl_multifit_nlinear_default_parameters();
	gsl_multifit_nlinear_workspace *w = gsl_multifit_nlinear_alloc(
		gsl_multifit_nlinear_trust, &how, p->n, 2);
	gsl_multifit_nlinear_fdf f = { .f = residuals, .n = p->n, .p = 2,
				       .params = p };
	gsl_vector_view at = gsl_vector_view_array(x, 2);
	int info, code;

	if (!w)
		return false;
	code = gsl_multifit_nlinear_init(&at.vector, &f, w);
	if (code == GSL_SUCCESS)
		code = gsl_multifit_nlinear_driver(100, 1e-8, 1e-8, 1e-8, NULL,
						   NULL, &info, w);
	for (int i = 0; i < 2; i++)
		x[i] = gsl_vector_get(w->x, (size_t)i);
	gsl_multifit_nlinear_free(w);
	return (code == GSL_SUCCESS || code == GSL_EMAXITER ||
		code == GSL_ENOPROG) && isfinite(x[0]) && isfinite(x[1]);
}

/* Marks what lies beyond 4 standard deviations, judged by the mean absolute one,
 * and beyond 25 %; returns how many. */
static size_t mark_outliers(const struct points *p, const double x[2],
			    bool *skip, double *spread)
{
	double sum = 0, square = 0, limit;
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		sum += fabs(log((exp(x[0]) + p->bytes[i] / exp(x[1])) /
				p->time_s[i]));
	limit = fmax(0.25, 4 * 1.2533 * sum / (double)p->n);
	for (size_t i = 0; i < p->n; i++) {
		double r = log((exp(x[0]) + p->bytes[i] / exp(x[1])) /
			       p->time_s[i]);

		skip[i] = fabs(r) > limit;
		n += skip[i];
		square += skip[i] ? 0 : r * r;
	}
	*spread = sqrt(square / (double)(p->n - n > 2 ? p->n - n : 2));
	return n;
}

bool fit_curve(const double *bytes, const double *time_s, size_t n,
	       struct fit_curve *out)
{
	struct arena mem = { 0 };
	bool *skip = ARENA_ARRAY(&mem, n + 1, bool), ok;
	struct points p = { bytes, time_s, skip, n };
	double x[2] = { 0, 0 }, rate = 0, start = INFINITY;

	*out = (struct fit_curve){ .n = n };
	for (size_t i = 0; i < n; i++) {
		rate = fmax(rate, bytes[i] / time_s[i]);
		start = fmin(start, time_s[i]);
	}
	x[0] = log(start);
	x[1] = log(rate);
	ok = n >= 3 && solve(&p, x);
	if (ok) {
		out->outliers = mark_outliers(&p, x, skip, &out->spread);
		if (out->outliers && n - out->outliers >= 3)
			ok = solve(&p, x);
	}
	out->start_s = exp(x[0]);
	out->bytes_per_s = exp(x[1]);
	arena_release(&mem);
	return ok;
}

/* Norms and softmax have other kernels for rows that no training step has. */
static bool usual_width(const struct ft_measurement *m)
{
	if (!strcmp(m->kernel, "cross_entropy"))
		return m->n >= 30000;
	if (strstr(m->kernel, "norm") || !strcmp(m->kernel, "softmax"))
		return m->n >= 2048 && m->n <= 8192;
	return true;
}

/* Cold: as PyTorch runs the kernel, where that was measured; warm: launched back
 * to back by the probe. */
bool fit_memory_row(const struct ft_measurement *m, bool torch)
{
	return measurement_is(m, "memory") && fit_from_torch(m) == torch &&
	       (!torch || (m->m >= 128 && usual_width(m) && !m->warm &&
			   strcmp(m->kernel, "rope") &&
			   strcmp(m->kernel, "silu") &&
			   strcmp(m->kernel, "mul")));
}

static bool belongs(const struct ft_measurement *m, const char *kernel,
		    bool warm, bool torch)
{
	return m->warm == warm && !strcmp(m->kernel, kernel) &&
	       fit_memory_row(m, torch);
}

static size_t one_curve(const struct fit_input *in, int fold, const char *kernel,
			bool warm, bool torch, struct fit_curve *c)
{
	struct arena mem = { 0 };
	double *bytes = ARENA_ARRAY(&mem, in->n + 1, double);
	double *time_s = ARENA_ARRAY(&mem, in->n + 1, double);
	size_t n = 0;

	for (size_t i = 0; i < in->n; i++) {
		const struct ft_measurement *m = &in->row[i];

		if (!belongs(m, kernel, warm, torch) || fit_fold(m) == fold)
			continue;
		bytes[n] = fit_moved_bytes(m);
		time_s[n++] = m->time_us * 1e-6;
	}
	if (n < 4 || !fit_curve(bytes, time_s, n, c))
		n = 0;
	arena_release(&mem);
	return n;
}

static void print_curve(FILE *out, const char *name, const char *tail,
			const struct fit_curve *c, double traffic)
{
	fprintf(out, "    %s%s: {start: %.3f us, bandwidth: %.1f GB/s, traffic: "
		"%g}\n", name, tail, c->start_s * 1e6, c->bytes_per_s * 1e-9,
		traffic);
}

size_t fit_memory_yaml(const struct fit_input *in, int fold, FILE *out,
		       size_t *outliers)
{
	static const char *const kernels[] = {
		"copy", "add", "rmsnorm", "layernorm", "swiglu", "gelu", "rope",
		"softmax", "cross_entropy", "adamw", "cast", "concat",
	};
	struct fit_curve c;
	size_t used = 0;

	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
		for (int warm = 0; warm < 2; warm++) {
			bool torch = !warm && strcmp(kernels[i], "rope");
			size_t n = one_curve(in, fold, kernels[i], warm, torch,
					     &c);

			/* a profile's own curves give way only to kernels
			 * that frameworks run, not to the probe's plain ones */
			if (in->own_base && (!torch || !n))
				continue;
			if (!n && torch) {
				torch = false;
				n = one_curve(in, fold, kernels[i], warm,
					      false, &c);
			}
			if (!n)
				continue;
			used += n;
			*outliers += c.outliers;
			print_curve(out, kernels[i], warm ? ".warm" : "", &c,
				    !strcmp(kernels[i], "concat") ?
					    2 : fit_traffic(kernels[i], torch));
			if (i == 0 && in->options->families & FT_FIT_MEMORY &&
			    !in->own_base)
				print_curve(out, "default", warm ? ".warm" : "",
					    &c, 2);
		}
	return used;
}
