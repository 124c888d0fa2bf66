/*
 * calibrate/probes/cudnn/cudnn.h - fused attention as operation graphs of cuDNN's C backend
 * interface, which its engines recognise by pattern
 *
 * Works without a GPU as well: given a description of a device as JSON, cuDNN says
 * which engines it would use, so the graphs are tested in CI.
 */
#ifndef CALIBRATE_PROBE_CUDNN_H
#define CALIBRATE_PROBE_CUDNN_H

#include <cudnn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attention_problem {
	int64_t batch, heads, kv_heads, sequence, head_dim;
	bool causal, backward;
	bool fp8; /* e4m3 in and out, one scale a tensor; else bf16 */
};

/* Tensors that the caller provides, by these ids: on the device to T_AMAX_DP,
 * the rest floats on the host. Those from T_DESCALE_Q are of fp8 alone, one
 * float each: what is stored is the value times its scale, a descale is one over
 * it; AMAX are written. */
enum attention_tensor {
	T_Q = 1,
	T_K,
	T_V,
	T_O,
	T_STATS,
	T_DO,
	T_DQ,
	T_DK,
	T_DV,
	T_DELTA,
	T_DQ_SUM,
	T_DESCALE_Q,
	T_DESCALE_K,
	T_DESCALE_V,
	T_DESCALE_O,
	T_DESCALE_DO,
	T_DESCALE_S,
	T_DESCALE_DP,
	T_SCALE_S,
	T_SCALE_O,
	T_SCALE_DQ,
	T_SCALE_DK,
	T_SCALE_DV,
	T_SCALE_DP,
	T_AMAX_S,
	T_AMAX_O,
	T_AMAX_DQ,
	T_AMAX_DK,
	T_AMAX_DV,
	T_AMAX_DP,
	T_SCALE,
	T_LOWEST,
	T_UNIT,
	T_TENSORS,
};

enum { CUDNN_MOST_OPS = 48, CUDNN_MOST_PARTS = 320 };

/* A graph and everything made for it; freed together. */
struct cudnn_graph {
	cudnnBackendDescriptor_t op[CUDNN_MOST_OPS], part[CUDNN_MOST_PARTS];
	cudnnBackendDescriptor_t plan, pack;
	int n_ops, n_parts;
	bool used[T_TENSORS]; /* which of the caller's tensors */
	int64_t next_id, workspace_bytes;
	cudnnStatus_t status; /* the first failure */
	const char *failed;
};

/* Build the graph; false when a descriptor was refused. */
bool cudnn_attention(struct cudnn_graph *g, const struct attention_problem *p);

/* Find an engine and make a plan: on handle, or for the device that json of
 * n bytes describes (then *engines is all that is found). */
bool cudnn_plan(struct cudnn_graph *g, cudnnHandle_t handle, const char *json, size_t n,
		int *engines);

/* Tie pointers, by enum attention_tensor, to the plan. */
bool cudnn_bind(struct cudnn_graph *g, void *const pointer[T_TENSORS], void *workspace);
void cudnn_drop(struct cudnn_graph *g);

#endif
