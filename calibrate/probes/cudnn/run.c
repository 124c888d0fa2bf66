/*
 * calibrate/probes/cudnn/run.c - attention by cuDNN: plans of both passes, their buffers and
 * the scales of fp8, behind the interface of gpu/attention.h
 */
#include "calibrate/probes/cudnn/cudnn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "calibrate/probes/gpu/attention.h"

/* Of softmax's probabilities and of the gradient of scores, in fp8: the largest are
 * 1 and about 5. */
static const float scale_s = 256, scale_dp = 64;

struct bound {
	struct cudnn_graph pass[2];
	cudnnHandle_t handle;
	float scale, lowest, unit; /* read when a pass is queued */
	size_t plan_bytes;	   /* of the work: then delta, sums, numbers */
};

void attention_cudnn_version(char *text, size_t n)
{
	size_t v = cudnnGetVersion();

	snprintf(text, n, "cuDNN %zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
}

void attention_cudnn_close(struct gpu_attention *a)
{
	if (a->library)
		cudnnDestroy(a->library);
	a->library = NULL;
}

static bool start(struct probe_session *s)
{
	struct gpu_attention *a = s->attention;
	cudnnHandle_t handle;

	if (a->library)
		return true;
	if (cudnnCreate(&handle))
		return false;
	if (cudnnSetStream(handle, s->stream)) {
		cudnnDestroy(handle);
		return false;
	}
	a->library = handle;
	return true;
}

/* A number of fp8's lies as far from the next as tensors are aligned. */
enum { APART = 4 };

static size_t rounded(size_t bytes)
{
	return (bytes + 255) & ~(size_t)255;
}

static enum probe_status refused(const struct cudnn_graph *g, char *why, size_t n_why)
{
	snprintf(why, n_why, "cuDNN cannot: %s: %s",
		 g->failed ? g->failed : "no engine", cudnnGetErrorString(g->status));
	return PROBE_UNSUPPORTED;
}

static enum probe_status open_cudnn(struct probe_session *s, struct attention_run *r,
				    char *why, size_t n_why)
{
	struct bound *b = calloc(1, sizeof(*b));
	int engines;

	if (!b)
		abort();
	r->own = b;
	if (!start(s)) {
		snprintf(why, n_why, "cuDNN does not start");
		return PROBE_UNSUPPORTED;
	}
	b->handle = s->attention->library;
	b->scale = r->scale;
	b->lowest = -INFINITY;
	b->unit = 1;
	for (int i = 0; i <= r->trains; i++) {
		struct attention_problem p = { r->batch,    r->heads,	 r->kv_heads,
					       r->sequence, r->head_dim, r->causal,
					       i,	    r->fp8 };
		struct cudnn_graph *g = &b->pass[i];

		if (!cudnn_attention(g, &p) ||
		    !cudnn_plan(g, b->handle, NULL, 0, &engines))
			return refused(g, why, n_why);
		if ((size_t)g->workspace_bytes > b->plan_bytes)
			b->plan_bytes = (size_t)g->workspace_bytes;
	}
	b->plan_bytes = rounded(b->plan_bytes);
	r->work_bytes = b->plan_bytes + rounded(APART * T_TENSORS * sizeof(float)) +
			rounded(4 * r->numbers[A_STATS]) + rounded(4 * r->numbers[A_Q]);
	return PROBE_OK;
}

/* What the fp8 graphs read, by id. */
static void numbers_of(const struct attention_run *r, float out[APART * T_TENSORS])
{
	const double *f = r->factor;
	float number[T_TENSORS];

	for (int i = 0; i < T_TENSORS; i++)
		number[i] = 1;
	number[T_DESCALE_O] = (float)(1 / f[A_O]);
	number[T_SCALE_O] = (float)f[A_O];
	number[T_SCALE_DQ] = (float)f[A_DQ];
	number[T_SCALE_DK] = (float)f[A_DK];
	number[T_SCALE_DV] = (float)f[A_DV];
	number[T_SCALE_S] = scale_s;
	number[T_DESCALE_S] = 1 / scale_s;
	number[T_SCALE_DP] = scale_dp;
	number[T_DESCALE_DP] = 1 / scale_dp;
	for (int i = 0; i < APART * T_TENSORS; i++)
		out[i] = number[i / APART];
}

static enum probe_status bind_cudnn(struct probe_session *s, struct attention_run *r,
				    char *why, size_t n_why)
{
	static const int mine[A_TENSORS] = {
		[A_Q] = T_Q,   [A_K] = T_K,	    [A_V] = T_V,
		[A_O] = T_O,   [A_STATS] = T_STATS, [A_DO] = T_DO,
		[A_DQ] = T_DQ, [A_DK] = T_DK,	    [A_DV] = T_DV,
	};
	struct bound *b = r->own;
	char *rest = r->work + b->plan_bytes;
	void *pointer[T_TENSORS] = { NULL };
	float number[APART * T_TENSORS];

	numbers_of(r, number);
	GPU_TRY(cudaStreamSynchronize(s->stream));
	GPU_TRY(cudaMemcpy(rest, number, sizeof(number), cudaMemcpyHostToDevice));
	for (int i = T_DESCALE_Q; i < T_SCALE; i++)
		pointer[i] = rest + (size_t)i * APART * sizeof(float);
	rest += rounded(sizeof(number));
	pointer[T_DELTA] = rest;
	pointer[T_DQ_SUM] = rest + rounded(4 * r->numbers[A_STATS]);
	for (int i = 0; i < A_TENSORS; i++)
		pointer[mine[i]] = r->at[i];
	pointer[T_SCALE] = &b->scale;
	pointer[T_LOWEST] = &b->lowest;
	pointer[T_UNIT] = &b->unit;
	for (int i = 0; i <= r->trains; i++)
		if (!cudnn_bind(&b->pass[i], pointer, r->work))
			return refused(&b->pass[i], why, n_why);
	return PROBE_OK;
}

static enum probe_status queue_cudnn(struct probe_session *s, struct attention_run *r,
				     char *why, size_t n_why)
{
	struct bound *b = r->own;
	struct cudnn_graph *g = &b->pass[r->backward];
	cudnnStatus_t status = cudnnBackendExecute(b->handle, g->plan, g->pack);

	(void)s;
	if (status)
		snprintf(why, n_why, "cuDNN does not run its plan: %s",
			 cudnnGetErrorString(status));
	return status ? PROBE_FAILED : PROBE_OK;
}

static void close_cudnn(struct attention_run *r)
{
	struct bound *b = r->own;

	for (int i = 0; b && i < 2; i++)
		cudnn_drop(&b->pass[i]);
	free(b);
	r->own = NULL;
}

const struct attention_engine *attention_cudnn(void)
{
	static const struct attention_engine engine = { open_cudnn, bind_cudnn,
							queue_cudnn, close_cudnn };

	return &engine;
}
