/*
 * calibrate/probes/cudnn/fp8.c - attention in e4m3 as cuDNN operation graphs:
 * one scale a tensor, as training with delayed scaling has them
 *
 * The graphs of cudnn.c with factors between: a product of stored numbers
 * is multiplied by the descales of both, what is stored by its own scale, and
 * the largest magnitude of each result is written for the next step's scales. P
 * and dS are stored in 8 bits where a product reads them; dQ needs no sum in
 * fp32.
 */
#include "calibrate/probes/cudnn/parts.h"

static const cudnnDataType_t F32 = CUDNN_DATA_FLOAT, F8 = CUDNN_DATA_FP8_E4M3;

enum shape { SCORES, ROWS };

static part like(struct cudnn_graph *g, const struct attention_problem *p,
		 enum shape shape)
{
	return shape == SCORES ? graph_score(g, p, F32) : graph_rows(g, p, 0);
}

/* x times a number of the caller's */
static part times(struct cudnn_graph *g, const struct attention_problem *p,
		  enum shape shape, part x, int id)
{
	part y = like(g, p, shape);

	graph_pointwise(g, CUDNN_POINTWISE_MUL, x, graph_scalar(g, id), y);
	return y;
}

/* x times its scale, in 8 bits */
static part stored(struct cudnn_graph *g, const struct attention_problem *p, part x,
		   int scale)
{
	part y = graph_score(g, p, F8);

	graph_pointwise(g, CUDNN_POINTWISE_MUL, x, graph_scalar(g, scale), y);
	return y;
}

/* What makes a stored result of a product of two stored tensors. */
struct result {
	int id, descale_a, descale_b, scale, amax;
	int64_t heads; /* fewer than the product's: those of a group add up */
};

static void product_to(struct cudnn_graph *g, const struct attention_problem *p, part a,
		       part b, const struct result *r)
{
	int64_t s = p->sequence, d = p->head_dim;
	struct graph_form wide = graph_dense(p->batch, p->heads, s, d);
	struct graph_form own = graph_dense(p->batch, r->heads, s, d);
	struct graph_form form = graph_packed(p, r->heads);
	part x = graph_tensor(g, 0, F32, &wide), y, z;

	graph_product(g, a, b, x);
	if (r->heads != p->heads) {
		part sum = graph_tensor(g, 0, F32, &own);

		graph_reduce(g, CUDNN_REDUCE_TENSOR_ADD, x, sum);
		x = sum;
	}
	y = graph_tensor(g, 0, F32, &own);
	z = graph_tensor(g, 0, F32, &own);
	graph_pointwise(g, CUDNN_POINTWISE_MUL, x, graph_scalar(g, r->descale_a), y);
	graph_pointwise(g, CUDNN_POINTWISE_MUL, y, graph_scalar(g, r->descale_b), z);
	graph_pointwise(g, CUDNN_POINTWISE_MUL, z, graph_scalar(g, r->scale),
			graph_tensor(g, r->id, F8, &form));
	graph_reduce(g, CUDNN_REDUCE_TENSOR_AMAX, z, graph_scalar(g, r->amax));
}

/* mask(scale Q K') */
static part masked_scores(struct cudnn_graph *g, const struct attention_problem *p,
			  part q, part k)
{
	part s = graph_score(g, p, F32);

	graph_product(g, q, k, s);
	s = times(g, p, SCORES, s, T_SCALE);
	s = times(g, p, SCORES, s, T_DESCALE_Q);
	s = times(g, p, SCORES, s, T_DESCALE_K);
	return graph_masked(g, p, s);
}

void graph_fp8_forward(struct cudnn_graph *g, const struct attention_problem *p)
{
	struct graph_form fq = graph_packed(p, p->heads);
	struct graph_form fv = graph_packed(p, p->kv_heads);
	struct graph_form fk = graph_swapped(p, p->kv_heads);
	struct result o = {
		T_O, T_DESCALE_S, T_DESCALE_V, T_SCALE_O, T_AMAX_O, p->heads
	};
	part q = graph_tensor(g, T_Q, F8, &fq), k = graph_tensor(g, T_K, F8, &fk);
	part v = graph_tensor(g, T_V, F8, &fv);
	part prob = graph_score(g, p, F32);

	graph_softmax(g, p, masked_scores(g, p, q, k), prob);
	graph_reduce(g, CUDNN_REDUCE_TENSOR_AMAX, prob, graph_scalar(g, T_AMAX_S));
	product_to(g, p, stored(g, p, prob, T_SCALE_S), v, &o);
}

/* rowsum(dO O) */
static part row_sums(struct cudnn_graph *g, const struct attention_problem *p, part d_o)
{
	struct graph_form fq = graph_packed(p, p->heads);
	struct graph_form own =
		graph_dense(p->batch, p->heads, p->sequence, p->head_dim);
	part both = graph_tensor(g, 0, F32, &own), sum = graph_rows(g, p, 0);

	graph_pointwise(g, CUDNN_POINTWISE_MUL, d_o, graph_tensor(g, T_O, F8, &fq),
			both);
	graph_reduce(g, CUDNN_REDUCE_TENSOR_ADD, both, sum);
	sum = times(g, p, ROWS, sum, T_DESCALE_DO);
	return times(g, p, ROWS, sum, T_DESCALE_O);
}

/* dS in 8 bits, from P and the row sums */
static part score_gradient(struct cudnn_graph *g, const struct attention_problem *p,
			   part d_o, part v, part delta, part prob)
{
	part dp = graph_score(g, p, F32), off = graph_score(g, p, F32);
	part on = graph_score(g, p, F32);

	graph_product(g, d_o, v, dp);
	dp = times(g, p, SCORES, dp, T_DESCALE_DO);
	dp = times(g, p, SCORES, dp, T_DESCALE_V);
	graph_pointwise(g, CUDNN_POINTWISE_SUB, dp, delta, off);
	graph_pointwise(g, CUDNN_POINTWISE_MUL, off, prob, on);
	on = times(g, p, SCORES, on, T_SCALE);
	graph_reduce(g, CUDNN_REDUCE_TENSOR_AMAX, on, graph_scalar(g, T_AMAX_DP));
	return stored(g, p, on, T_SCALE_DP);
}

void graph_fp8_backward(struct cudnn_graph *g, const struct attention_problem *p)
{
	struct graph_form fq = graph_packed(p, p->heads);
	struct graph_form fk = graph_packed(p, p->kv_heads);
	struct graph_form ft = graph_swapped(p, p->kv_heads);
	struct result d_v = { T_DV,	  T_DESCALE_S, T_DESCALE_DO,
			      T_SCALE_DV, T_AMAX_DV,   p->kv_heads };
	struct result d_q = { T_DQ,	  T_DESCALE_DP, T_DESCALE_K,
			      T_SCALE_DQ, T_AMAX_DQ,	p->heads };
	struct result d_k = { T_DK,	  T_DESCALE_DP, T_DESCALE_Q,
			      T_SCALE_DK, T_AMAX_DK,	p->kv_heads };
	part q = graph_tensor(g, T_Q, F8, &fq), k = graph_tensor(g, T_K, F8, &ft);
	part v = graph_tensor(g, T_V, F8, &ft);
	part d_o = graph_tensor(g, T_DO, F8, &fq), delta, ds;
	part less = graph_score(g, p, F32), prob = graph_score(g, p, F32);
	part turned = graph_turned(g, p, F8), k_rows;

	delta = row_sums(g, p, d_o);
	graph_pointwise(g, CUDNN_POINTWISE_SUB, masked_scores(g, p, q, k),
			graph_rows(g, p, T_STATS), less);
	graph_pointwise(g, CUDNN_POINTWISE_EXP, less, NULL, prob);
	graph_reshape(g, stored(g, p, prob, T_SCALE_S), turned);
	product_to(g, p, turned, d_o, &d_v);
	ds = score_gradient(g, p, d_o, v, delta, prob);
	k_rows = graph_tensor(g, 0, F8, &fk);
	graph_reshape(g, k, k_rows);
	product_to(g, p, ds, k_rows, &d_q);
	turned = graph_turned(g, p, F8);
	graph_reshape(g, ds, turned);
	product_to(g, p, turned, q, &d_k);
}
