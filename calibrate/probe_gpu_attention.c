/*
 * calibrate/probe_gpu_attention.c - fused attention: cuDNN on NVIDIA. AMD's fused
 * kernels have no C interface; there, import the output of their own benchmark
 */
#include "probe_gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PROBE_HIP

void gpu_attention_version(char *text, size_t n)
{
	snprintf(text, n, "none");
}

void gpu_attention_close(struct probe_session *s)
{
	(void)s;
}

enum probe_status gpu_attention(struct probe_session *s,
				const struct probe_cell *cell,
				const struct probe_method *method,
				struct probe_time *out, char *why,
				size_t n_why)
{
	(void)s, (void)cell, (void)method, (void)out;
	snprintf(why, n_why, "no fused attention with a C interface here; "
		 "import the output of AITER's or CK's benchmark instead");
	return PROBE_UNSUPPORTED;
}

#else

#include "probe_cudnn.h"

struct gpu_attention {
	cudnnHandle_t handle;
	char *pool;
	size_t pool_bytes;
	float scale, lowest, unit;
};

void gpu_attention_version(char *text, size_t n)
{
	size_t v = cudnnGetVersion();

	snprintf(text, n, "cuDNN %zu.%zu.%zu", v / 10000, v / 100 % 100,
		 v % 100);
}

static struct gpu_attention *library(struct probe_session *s)
{
	struct gpu_attention *a = s->attention;

	if (a)
		return a;
	a = calloc(1, sizeof(*a));
	if (!a)
		abort();
	if (cudnnCreate(&a->handle) ||
	    cudnnSetStream(a->handle, s->stream)) {
		free(a);
		return NULL;
	}
	a->lowest = -INFINITY;
	a->unit = 1;
	return s->attention = a;
}

void gpu_attention_close(struct probe_session *s)
{
	if (!s->attention)
		return;
	cudnnDestroy(s->attention->handle);
	(void)cudaFree(s->attention->pool);
	free(s->attention);
	s->attention = NULL;
}

/* Both passes of a problem and the memory they share. */
struct bound {
	struct attention_problem problem;
	struct cudnn_graph pass[2];
	void *pointer[T_TENSORS];
	cudnnHandle_t handle;
	bool backward;
};

static enum probe_status queue_pass(struct probe_session *s, void *self)
{
	struct bound *b = self;
	struct cudnn_graph *g = &b->pass[b->backward];

	(void)s;
	return cudnnBackendExecute(b->handle, g->plan, g->pack) ? PROBE_FAILED :
								  PROBE_OK;
}

/* A part of the pool for each tensor, and the rest for the workspace. */
static enum probe_status place(struct probe_session *s, struct bound *b,
			       char **rest, char *why, size_t n_why)
{
	const struct attention_problem *p = &b->problem;
	struct gpu_attention *a = s->attention;
	size_t rows = (size_t)(p->batch * p->heads * p->sequence);
	size_t q = rows * (size_t)p->head_dim * 2;
	size_t k = q / (size_t)p->heads * (size_t)p->kv_heads, need = 0;
	size_t bytes[T_SCALE] = {
		[T_Q] = q, [T_K] = k, [T_V] = k, [T_O] = q, [T_STATS] = rows * 4,
		[T_DO] = q, [T_DQ] = q, [T_DK] = k, [T_DV] = k,
		[T_DELTA] = rows * 4, [T_DQ_SUM] = 2 * q,
	};
	int64_t work = b->pass[0].workspace_bytes;

	if (b->backward && b->pass[1].workspace_bytes > work)
		work = b->pass[1].workspace_bytes;
	for (int i = 1; i < T_SCALE; i++)
		need += (bytes[i] + 255) / 256 * 256;
	if (need + (size_t)work > a->pool_bytes) {
		(void)cudaFree(a->pool);
		a->pool = NULL;
		a->pool_bytes = 0;
		GPU_TRY(cudaMalloc((void **)&a->pool, need + (size_t)work));
		a->pool_bytes = need + (size_t)work;
	}
	need = 0;
	for (int i = 1; i < T_SCALE; i++) {
		b->pointer[i] = a->pool + need;
		need += (bytes[i] + 255) / 256 * 256;
	}
	*rest = a->pool + need;
	GPU_TRY(cudaMemsetAsync(a->pool, 0xff, need, s->stream));
	kernel_fill(b->pointer[T_Q], q / 2, KERNEL_BF16, 1, s->stream);
	kernel_fill(b->pointer[T_K], k / 2, KERNEL_BF16, 2, s->stream);
	kernel_fill(b->pointer[T_V], k / 2, KERNEL_BF16, 3, s->stream);
	kernel_fill(b->pointer[T_DO], q / 2, KERNEL_BF16, 4, s->stream);
	return PROBE_OK;
}

static enum probe_status fetch(struct probe_session *s, const void *p,
			       size_t at, size_t n, float *host, char *why,
			       size_t n_why)
{
	kernel_gather(p, at, 1, n, KERNEL_BF16, s->gathered, s->stream);
	GPU_TRY(cudaStreamSynchronize(s->stream));
	GPU_TRY(cudaMemcpy(host, s->gathered, n * sizeof(*host),
			   cudaMemcpyDeviceToHost));
	return PROBE_OK;
}

/* Output row of query i of the last head, from rows q, k[], v[]. */
static void one_query(const struct attention_problem *p, const float *q,
		      const float *k, const float *v, size_t keys, double *out)
{
	size_t d = (size_t)p->head_dim, step = d * (size_t)p->kv_heads;
	double scale = 1 / sqrt((double)d), most = -INFINITY, sum = 0;
	double *s = malloc(keys * sizeof(*s));

	if (!s)
		abort();
	for (size_t j = 0; j < keys; j++) {
		s[j] = 0;
		for (size_t c = 0; c < d; c++)
			s[j] += (double)q[c] * (double)k[j * step + c];
		s[j] *= scale;
		most = fmax(most, s[j]);
	}
	for (size_t c = 0; c < d; c++)
		out[c] = 0;
	for (size_t j = 0; j < keys; j++) {
		double e = exp(s[j] - most);

		sum += e;
		for (size_t c = 0; c < d; c++)
			out[c] += e * (double)v[j * step + c];
	}
	for (size_t c = 0; c < d; c++)
		out[c] /= sum;
	free(s);
}

/* The last head's query 100 of batch 0 against double precision; its keys are the
 * first 101 under a mask, and all without. Of the backward pass only that it left
 * no hole in dQ and dK. */
static enum probe_status check(struct probe_session *s, struct bound *b,
			       double *error, char *why, size_t n_why)
{
	const struct attention_problem *p = &b->problem;
	size_t d = (size_t)p->head_dim, i = 100, kv = (size_t)p->kv_heads;
	size_t h = (size_t)p->heads, last = h - 1;
	size_t keys = p->causal ? i + 1 : (size_t)p->sequence;
	size_t n = keys * kv * d;
	float *host;
	double *both;
	enum probe_status status;

	if (n > s->n_gathered)
		return PROBE_OK; /* not checked: see the smaller ones */
	host = malloc((2 * n + 2 * d) * sizeof(*host));
	both = malloc(2 * d * sizeof(*both));
	if (!host || !both)
		abort();
	status = fetch(s, b->pointer[T_K], 0, n, host, why, n_why);
	if (status == PROBE_OK)
		status = fetch(s, b->pointer[T_V], 0, n, host + n, why, n_why);
	if (status == PROBE_OK)
		status = fetch(s, b->pointer[T_Q], (i * h + last) * d, d,
			       host + 2 * n, why, n_why);
	if (status == PROBE_OK)
		status = fetch(s, b->pointer[T_O], (i * h + last) * d, d,
			       host + 2 * n + d, why, n_why);
	one_query(p, host + 2 * n, host + (kv - 1) * d, host + n + (kv - 1) * d,
		  keys, both);
	for (size_t c = 0; c < d; c++)
		both[d + c] = (double)host[2 * n + d + c];
	*error = gpu_distance(both + d, both, d);
	if (status == PROBE_OK && b->backward) {
		status = fetch(s, b->pointer[T_DQ], (i * h + last) * d, d, host,
			       why, n_why);
		for (size_t c = 0; c < d; c++)
			if (isnan(host[c]))
				*error = NAN;
		if (status == PROBE_OK)
			status = fetch(s, b->pointer[T_DK], 0, d, host, why,
				       n_why);
		for (size_t c = 0; c < d; c++)
			if (isnan(host[c]))
				*error = NAN;
	}
	free(host);
	free(both);
	return status;
}

static enum probe_status no_plan(const struct cudnn_graph *g, char *why,
				 size_t n_why)
{
	snprintf(why, n_why, "cuDNN cannot: %s: %s",
		 g->failed ? g->failed : "no engine",
		 cudnnGetErrorString(g->status));
	return PROBE_UNSUPPORTED;
}

static enum probe_status measure(struct probe_session *s, struct bound *b,
				 bool backward,
				 const struct probe_method *method,
				 struct probe_time *out, char *why,
				 size_t n_why)
{
	struct gpu_call call = { queue_pass, b, why, n_why };
	struct attention_problem p = b->problem;
	enum probe_status status;
	char *rest = NULL;
	int engines;

	for (int i = 0; i <= backward; i++) {
		p.backward = i;
		if (!cudnn_attention(&b->pass[i], &p) ||
		    !cudnn_plan(&b->pass[i], b->handle, NULL, 0, &engines))
			return no_plan(&b->pass[i], why, n_why);
	}
	b->backward = backward;
	status = place(s, b, &rest, why, n_why);
	if (status != PROBE_OK)
		return status;
	for (int i = 0; i <= backward; i++) {
		void *pointer[T_TENSORS];

		memcpy(pointer, b->pointer, sizeof(pointer));
		for (int t = T_DO; !i && t <= T_DQ_SUM; t++)
			pointer[t] = NULL;
		if (!i)
			pointer[T_UNIT] = NULL;
		if (!p.causal)
			pointer[T_LOWEST] = NULL;
		if (!cudnn_bind(&b->pass[i], pointer, rest))
			return no_plan(&b->pass[i], why, n_why);
		b->backward = i;
		status = queue_pass(s, b);
		if (status != PROBE_OK)
			return status;
	}
	status = check(s, b, &out->relative_error, why, n_why);
	if (status == PROBE_OK && !(out->relative_error < 2e-2)) {
		snprintf(why, n_why, "differs from double precision by %.2e",
			 out->relative_error);
		return PROBE_WRONG;
	}
	return status == PROBE_OK ? gpu_time(s, &call, true, method, out) :
				    status;
}

enum probe_status gpu_attention(struct probe_session *s,
				const struct probe_cell *c,
				const struct probe_method *method,
				struct probe_time *out, char *why,
				size_t n_why)
{
	struct gpu_attention *a = library(s);
	struct bound b = { .problem = { c->batch, c->heads, c->kv_heads,
					c->sequence, c->head_dim, c->causal,
					false } };
	enum probe_status status;

	if (!a) {
		snprintf(why, n_why, "cuDNN does not start");
		return PROBE_UNSUPPORTED;
	}
	a->scale = (float)(1 / sqrt((double)c->head_dim));
	b.handle = a->handle;
	b.pointer[T_SCALE] = &a->scale;
	b.pointer[T_LOWEST] = &a->lowest;
	b.pointer[T_UNIT] = &a->unit;
	status = measure(s, &b, !strcmp(c->pass, "backward"), method, out, why,
			 n_why);
	cudnn_drop(&b.pass[0]);
	cudnn_drop(&b.pass[1]);
	return status;
}

#endif
