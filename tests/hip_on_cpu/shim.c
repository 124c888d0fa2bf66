/*
 * tests/hip_on_cpu/shim.c - an attention shim that is right: both passes from the
 * reference, on the CPU. -DBREAK_AT=N spoils one thing: 1 dV of the first query head is
 * left out of its group's, 2 the last number of dK is not written, 3 the mask is
 * ignored, 4 run fails, 5 dQ goes to the wrong batch, 6 row 77 of dK is row 78
 */
#include <stdlib.h>
#include <string.h>

#include "calibrate/probes/attention_shim.h"
#include "calibrate/probes/gpu/kernels.h"
#include "calibrate/probes/reference.h"
#include "tests/hip_on_cpu/numbers.h"

#ifndef BREAK_AT
#define BREAK_AT 0
#endif

static int64_t workspace(const struct ft_shim_problem *p)
{
	return p->head_dim % 8 ? -1 : 4096;
}

/* Rows of a head, as floats. */
static float *head_of(const struct ft_shim_problem *p, const void *x, int64_t heads,
		      int64_t b, int64_t h)
{
	uint64_t d = (uint64_t)p->head_dim, s = (uint64_t)p->sequence;
	float *out = malloc(s * d * sizeof(*out));

	kernel_block(x, ((uint64_t)(b * heads) * s + (uint64_t)h) * d, s, d,
		     (uint64_t)heads * d, KERNEL_BF16, out, NULL);
	return out;
}

static void put(const struct ft_shim_problem *p, void *x, int64_t heads, int64_t b,
		int64_t h, const double *in)
{
	int64_t d = p->head_dim;

	for (int64_t i = 0; i < p->sequence; i++)
		for (int64_t c = 0; c < d; c++)
			number_store(
				x,
				(uint64_t)(((b * p->sequence + i) * heads + h) * d + c),
				KERNEL_BF16, (float)in[i * d + c]);
}

/* One query head; what it adds to its keys' and values' gradients. */
static void one_head(const struct ft_shim_problem *p, int64_t b, int64_t h, double *d_k,
		     double *d_v)
{
	size_t d = (size_t)p->head_dim, s = (size_t)p->sequence;
	int64_t kv = h / (p->heads / p->kv_heads), to = b;
	float *q = head_of(p, p->q, p->heads, b, h);
	float *k = head_of(p, p->k, p->kv_heads, b, kv);
	float *v = head_of(p, p->v, p->kv_heads, b, kv);
	float *g = p->backward ? head_of(p, p->d_o, p->heads, b, h) : NULL;
	double *o = malloc(s * d * sizeof(*o)), *dq = malloc(s * d * sizeof(*dq));
	double *prob = malloc(s * sizeof(*prob));

	for (size_t i = 0; i < s; i++) {
		struct reference_head r = { k, v,
					    p->causal && BREAK_AT != 3 ? i + 1 : s, d };

		reference_query(&r, q + i * d, prob, o + i * d);
		if (p->backward)
			reference_query_back(&r, q + i * d, g + i * d, prob, dq + i * d,
					     d_k, d_v);
	}
	if (BREAK_AT == 5)
		to = (b + 1) % p->batch;
	if (p->backward)
		put(p, p->d_q, p->heads, to, h, dq);
	else
		put(p, p->o, p->heads, b, h, o);
	free(q), free(k), free(v), free(g), free(o), free(dq), free(prob);
}

static int run(const struct ft_shim_problem *p)
{
	size_t n = (size_t)(p->sequence * p->head_dim);
	double *d_k = malloc(n * sizeof(*d_k)), *d_v = malloc(n * sizeof(*d_v));
	int64_t group = p->heads / p->kv_heads;

	for (int64_t b = 0; b < p->batch; b++)
		for (int64_t kv = 0; kv < p->kv_heads; kv++) {
			memset(d_k, 0, n * sizeof(*d_k));
			memset(d_v, 0, n * sizeof(*d_v));
			for (int64_t m = 0; m < group; m++) {
				one_head(p, b, kv * group + m, d_k, d_v);
				if (BREAK_AT == 1 && !m)
					memset(d_v, 0, n * sizeof(*d_v));
			}
			if (BREAK_AT == 2 && b + 1 == p->batch)
				d_k[n - 1] = 0.0 / 0.0;
			if (BREAK_AT == 6)
				memcpy(d_k + 77 * p->head_dim, d_k + 78 * p->head_dim,
				       (size_t)p->head_dim * sizeof(*d_k));
			if (p->backward) {
				put(p, p->d_k, p->kv_heads, b, kv, d_k);
				put(p, p->d_v, p->kv_heads, b, kv, d_v);
			}
		}
	free(d_k);
	free(d_v);
	return BREAK_AT == 4 || p->workspace_bytes < 4096 ? 7 : 0;
}

const struct ft_shim *ft_attention_shim(void)
{
	static const struct ft_shim shim = { FT_SHIM_VERSION, "aiter", "AITER 0",
					     workspace, run };

	return &shim;
}
