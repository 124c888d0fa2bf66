/* calibrate/probes/cudnn/parts.h - what the graphs of attention are put together from */
#ifndef CALIBRATE_PROBE_CUDNN_PARTS_H
#define CALIBRATE_PROBE_CUDNN_PARTS_H

#include "calibrate/probes/cudnn/cudnn.h"

typedef cudnnBackendDescriptor_t part;

/* Remembers the first failure; true while there is none. */
bool graph_ok(struct cudnn_graph *g, cudnnStatus_t status, const char *what);
part graph_make(struct cudnn_graph *g, cudnnBackendDescriptorType_t type);
void graph_set(struct cudnn_graph *g, part p, cudnnBackendAttributeName_t name,
	       cudnnBackendAttributeType_t type, int64_t n, const void *value);
void graph_set_part(struct cudnn_graph *g, part p, cudnnBackendAttributeName_t name,
		    part value);
void graph_finish(struct cudnn_graph *g, part p, const char *what);

struct graph_form {
	int64_t size[4], stride[4];
};

/* id 0: a virtual tensor, which lives only inside the fused kernel. */
part graph_tensor(struct cudnn_graph *g, int id, cudnnDataType_t type,
		  const struct graph_form *f);
/* [batch, heads, sequence, head_dim], stored batch, sequence, heads, head_dim */
struct graph_form graph_packed(const struct attention_problem *p, int64_t heads);
/* The same memory, seen with its last two dimensions swapped. */
struct graph_form graph_swapped(const struct attention_problem *p, int64_t heads);
struct graph_form graph_dense(int64_t b, int64_t h, int64_t r, int64_t c);
/* The matrix of scores, virtual. */
part graph_score(struct cudnn_graph *g, const struct attention_problem *p,
		 cudnnDataType_t type);
/* The same, keys by queries. */
part graph_turned(struct cudnn_graph *g, const struct attention_problem *p,
		  cudnnDataType_t type);
/* One number a row of scores. */
part graph_rows(struct cudnn_graph *g, const struct attention_problem *p, int id);
part graph_scalar(struct cudnn_graph *g, int id);

void graph_product(struct cudnn_graph *g, part a, part b, part c);
/* y = mode(x, b); b may be NULL */
void graph_pointwise(struct cudnn_graph *g, cudnnPointwiseMode_t mode, part x, part b,
		     part y);
void graph_reduce(struct cudnn_graph *g, cudnnReduceTensorOp_t with, part x, part y);
void graph_reshape(struct cudnn_graph *g, part x, part y);
/* Scores above the diagonal become minus infinity, under a mask. */
part graph_masked(struct cudnn_graph *g, const struct attention_problem *p, part s);
/* prob = softmax(s), with its log-sum-exp as T_STATS */
void graph_softmax(struct cudnn_graph *g, const struct attention_problem *p, part s,
		   part prob);

/* calibrate/probes/cudnn/fp8.c */
void graph_fp8_forward(struct cudnn_graph *g, const struct attention_problem *p);
void graph_fp8_backward(struct cudnn_graph *g, const struct attention_problem *p);

#endif
