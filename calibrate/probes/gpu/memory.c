/* calibrate/probes/gpu/memory.c - kernels that only move bytes, cold and warm, checked
 * row by row against the same arithmetic in double precision */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/probes/gpu/gpu.h"

struct kernel {
	const struct probe_cell *cell;
	void *x, *y, *z;
};

static enum probe_status queue_kernel(struct probe_session *s, void *self)
{
	struct kernel *k = self;

	return kernel_memory(k->cell->kernel, k->x, k->y, k->z, k->cell->m, k->cell->n,
			     s->stream) ?
		       PROBE_UNSUPPORTED :
		       PROBE_OK;
}

static double gelu(double a)
{
	return a / (1 + exp(-1.5957691216 * (a + 0.044715 * a * a * a)));
}

static void norm(const float *x, int64_t n, bool centre, double *want)
{
	double mean = 0, square = 0;

	for (int64_t i = 0; centre && i < n; i++)
		mean += (double)x[i] / (double)n;
	for (int64_t i = 0; i < n; i++)
		square += ((double)x[i] - mean) * ((double)x[i] - mean);
	for (int64_t i = 0; i < n; i++)
		want[i] = ((double)x[i] - mean) / sqrt(square / (double)n + 1e-6);
}

static void softmax(const float *x, int64_t n, int64_t target, double *want)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += exp((double)x[i]);
	for (int64_t i = 0; i < n; i++)
		want[i] = exp((double)x[i]) / sum - (i == target ? 1 : 0);
}

/* Row `row` of the result, from the same row of the inputs. */
static bool reference(const char *name, const float *x, const float *y, int64_t n,
		      int64_t row, double *want)
{
	if (!strcmp(name, "rmsnorm") || !strcmp(name, "layernorm")) {
		norm(x, n, name[0] == 'l', want);
		return true;
	}
	if (!strcmp(name, "softmax") || !strcmp(name, "cross_entropy")) {
		softmax(x, n, name[0] == 'c' ? row % n : -1, want);
		return true;
	}
	for (int64_t i = 0; i < n; i++) {
		double a = (double)x[i], b = (double)y[i];

		if (!strcmp(name, "add"))
			want[i] = a + b;
		else if (!strcmp(name, "gelu"))
			want[i] = gelu(a);
		else if (!strcmp(name, "swiglu"))
			want[i] = a / (1 + exp(-a)) * b;
		else if (!strcmp(name, "copy") || !strcmp(name, "concat") ||
			 !strcmp(name, "cast"))
			want[i] = a;
		else
			return false; /* rope, adamw: see below */
	}
	return true;
}

/* Lengths are kept by a rotation, and AdamW moves each number by little. */
static double preserved(const char *name, const float *x, const float *z, int64_t n)
{
	double before = 0, after = 0, most = 0;

	for (int64_t i = 0; i < n; i++) {
		before += (double)x[i] * (double)x[i];
		after += (double)z[i] * (double)z[i];
		most = fmax(most, fabs((double)x[i] - (double)z[i]));
		if (isnan(z[i]))
			return NAN;
	}
	return !strcmp(name, "rope") ? fabs(sqrt(after / before) - 1) : most / 10;
}

static enum probe_status fetch(struct probe_session *s, const void *p, int64_t at,
			       int64_t n, int dtype, float *host, char *why,
			       size_t n_why)
{
	kernel_gather(p, (uint64_t)at, 1, (uint64_t)n, dtype, s->gathered, s->stream);
	GPU_TRY(G(StreamSynchronize)(s->stream));
	GPU_TRY(G(Memcpy)(host, s->gathered, (size_t)n * sizeof(*host),
			  G(MemcpyDeviceToHost)));
	return PROBE_OK;
}

static enum probe_status check(struct probe_session *s, const struct kernel *k,
			       double *error, char *why, size_t n_why)
{
	const struct probe_cell *c = k->cell;
	/* the second half of a concatenation comes from elsewhere */
	int64_t n = c->n, row = c->kernel[3] == 'c' ? 0 : c->m - 1;
	bool wide = !strcmp(c->dtype, "fp32"),
	     adam = c->kernel[1] == 'd' && c->kernel[2] == 'a';
	int in = wide ? KERNEL_FP32 : KERNEL_BF16;
	int out = adam ? KERNEL_FP32 : KERNEL_BF16;
	float *host = malloc((size_t)n * 3 * sizeof(*host));
	double *both = malloc((size_t)n * 2 * sizeof(*both));
	enum probe_status status;

	if (!host || !both)
		abort();
	status = fetch(s, k->x, row * n, n, in, host, why, n_why);
	if (status == PROBE_OK)
		status = fetch(s, k->y, row * n, n, in, host + n, why, n_why);
	if (status == PROBE_OK)
		status = queue_kernel(s, (void *)k);
	if (status == PROBE_OK)
		status = fetch(s, adam ? k->x : k->z, row * n, n, out, host + 2 * n,
			       why, n_why);
	for (int64_t i = 0; i < n; i++)
		both[i] = (double)host[2 * n + i];
	if (status == PROBE_OK)
		*error = reference(c->kernel, host, host + n, n, row, both + n) ?
				 reference_distance(both, both + n, (size_t)n) :
				 preserved(c->kernel, host, host + 2 * n, n);
	free(host);
	free(both);
	return status;
}

enum probe_status gpu_memory(struct probe_session *s, const struct probe_cell *c,
			     const struct probe_method *method, struct probe_time *out,
			     char *why, size_t n_why)
{
	struct kernel k = { c, s->region[0], s->region[1], s->region[2] };
	struct gpu_call call = { queue_kernel, &k, why, n_why };
	bool wide = !strcmp(c->dtype, "fp32");
	bool adam = !strcmp(c->kernel, "adamw");
	size_t numbers = (size_t)(c->m * c->n) * (adam ? 4 : 1);
	enum probe_status status;

	if (numbers * (wide ? 4 : 2) * 2 > s->region_bytes ||
	    (size_t)c->n > s->n_gathered)
		return PROBE_NO_MEMORY;
	kernel_fill(k.x, numbers, wide ? KERNEL_FP32 : KERNEL_BF16, 17, s->stream);
	kernel_fill(k.y, (uint64_t)(c->m * c->n), wide ? KERNEL_FP32 : KERNEL_BF16, 34,
		    s->stream);
	if (adam) /* second moments are above zero */
		GPU_TRY(G(MemsetAsync)((float *)k.x + 3 * (c->m * c->n), 0x3c,
				       (size_t)(c->m * c->n) * 4, s->stream));
	GPU_TRY(G(MemsetAsync)(k.z, 0xff, numbers * 2, s->stream));
	status = check(s, &k, &out->relative_error, why, n_why);
	if (status == PROBE_OK && !(out->relative_error < 1e-2)) {
		snprintf(why, n_why, "differs from double precision by %.2e",
			 out->relative_error);
		return PROBE_WRONG;
	}
	if (status != PROBE_OK)
		return status;
	return gpu_time(s, &call, !c->warm, method, out);
}
