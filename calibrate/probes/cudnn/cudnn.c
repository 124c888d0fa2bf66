/*
 * calibrate/probes/cudnn/cudnn.c - attention forward and backward as cuDNN operation
 * graphs
 *
 * forward   P = softmax(mask(scale Q K')), O = P V, stats = log-sum-exp
 * backward  delta = rowsum(dO O); P from stats; dV = P' dO; dS = P (dO V' -
 * delta) scale; dK = dS' Q; dQ = dS K
 *
 * The engines want just these operations in this order, fp32 between them, 16
 * bits where a product reads P or dS, K and V with their last two dimensions
 * swapped by strides, and dQ summed in an fp32 buffer of ours. 8 bits:
 * probe_cudnn_fp8.c.
 */
#include "calibrate/probes/cudnn/parts.h"

static const cudnnDataType_t F32 = CUDNN_DATA_FLOAT, B16 = CUDNN_DATA_BFLOAT16;

/* ---- the two graphs
 * -------------------------------------------------------------- */

static void forward(struct cudnn_graph *g, const struct attention_problem *p)
{
	struct graph_form fq = graph_packed(p, p->heads);
	struct graph_form fv = graph_packed(p, p->kv_heads);
	struct graph_form fk = graph_swapped(p, p->kv_heads);
	part q = graph_tensor(g, T_Q, B16, &fq), k = graph_tensor(g, T_K, B16, &fk);
	part v = graph_tensor(g, T_V, B16, &fv), o = graph_tensor(g, T_O, B16, &fq);
	part raw = graph_score(g, p, F32), s = graph_score(g, p, F32);
	part prob = graph_score(g, p, B16);

	graph_product(g, q, k, raw);
	graph_pointwise(g, CUDNN_POINTWISE_MUL, raw, graph_scalar(g, T_SCALE), s);
	graph_softmax(g, p, graph_masked(g, p, s), prob);
	graph_product(g, prob, v, o);
}

/* x' y into out, the heads of a group added up. */
static void grouped(struct cudnn_graph *g, const struct attention_problem *p, part x,
		    part y, part out)
{
	struct graph_form wide =
		graph_dense(p->batch, p->heads, p->sequence, p->head_dim);
	part t = graph_turned(g, p, B16), full;

	graph_reshape(g, x, t);
	if (p->heads == p->kv_heads) {
		graph_product(g, t, y, out);
		return;
	}
	full = graph_tensor(g, 0, B16, &wide);
	graph_product(g, t, y, full);
	graph_reduce(g, CUDNN_REDUCE_TENSOR_ADD, full, out);
}

static void backward(struct cudnn_graph *g, const struct attention_problem *p)
{
	struct graph_form fq = graph_packed(p, p->heads),
			  fk = graph_packed(p, p->kv_heads);
	struct graph_form ft = graph_swapped(p, p->kv_heads);
	struct graph_form wide =
		graph_dense(p->batch, p->heads, p->sequence, p->head_dim);
	struct graph_form mixed = { { p->batch, p->heads, p->sequence, p->head_dim },
				    { p->heads * p->sequence * p->head_dim,
				      p->sequence * p->head_dim, p->heads * p->head_dim,
				      1 } };
	part q = graph_tensor(g, T_Q, B16, &fq), k = graph_tensor(g, T_K, B16, &ft);
	part v = graph_tensor(g, T_V, B16, &ft), o = graph_tensor(g, T_O, B16, &fq);
	part d_o = graph_tensor(g, T_DO, B16, &fq),
	     d_q = graph_tensor(g, T_DQ, B16, &fq);
	part d_k = graph_tensor(g, T_DK, B16, &fk),
	     d_v = graph_tensor(g, T_DV, B16, &fk);
	part scale = graph_scalar(g, T_SCALE), delta = graph_rows(g, p, T_DELTA);
	part both = graph_tensor(g, 0, F32, &mixed), sum = graph_rows(g, p, 0);
	part raw = graph_score(g, p, F32), s = graph_score(g, p, F32);
	part less = graph_score(g, p, F32), prob = graph_score(g, p, F32);
	part dp = graph_score(g, p, F32), off = graph_score(g, p, F32);
	part on = graph_score(g, p, F32), ds = graph_score(g, p, F32);
	part k_rows, total;

	graph_pointwise(g, CUDNN_POINTWISE_MUL, d_o, o, both);
	graph_reduce(g, CUDNN_REDUCE_TENSOR_ADD, both, sum);
	graph_pointwise(g, CUDNN_POINTWISE_MUL, sum, graph_scalar(g, T_UNIT), delta);
	graph_product(g, q, k, raw);
	graph_pointwise(g, CUDNN_POINTWISE_MUL, raw, scale, s);
	graph_pointwise(g, CUDNN_POINTWISE_SUB, s, graph_rows(g, p, T_STATS), less);
	graph_pointwise(g, CUDNN_POINTWISE_EXP, graph_masked(g, p, less), NULL, prob);
	grouped(g, p, prob, d_o, d_v);
	graph_product(g, d_o, v, dp);
	graph_pointwise(g, CUDNN_POINTWISE_SUB, dp, delta, off);
	graph_pointwise(g, CUDNN_POINTWISE_MUL, off, prob, on);
	graph_pointwise(g, CUDNN_POINTWISE_MUL, on, scale, ds);
	grouped(g, p, ds, q, d_k);
	k_rows = graph_tensor(g, 0, F32, &fk);
	total = graph_tensor(g, T_DQ_SUM, F32, &wide);
	graph_reshape(g, k, k_rows);
	graph_product(g, ds, k_rows, total);
	graph_pointwise(g, CUDNN_POINTWISE_IDENTITY, total, NULL, d_q);
}

bool cudnn_attention(struct cudnn_graph *g, const struct attention_problem *p)
{
	*g = (struct cudnn_graph){ .next_id = 100 };
	if (p->fp8 && p->backward)
		graph_fp8_backward(g, p);
	else if (p->fp8)
		graph_fp8_forward(g, p);
	else if (p->backward)
		backward(g, p);
	else
		forward(g, p);
	return g->status == CUDNN_STATUS_SUCCESS;
}

/* ---- plans
 * ------------------------------------------------------------------------ */

static int engines_of(struct cudnn_graph *g, cudnnHandle_t handle, const char *json,
		      size_t n, part *config, int most)
{
	part graph = graph_make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	part asked = graph_make(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
	int64_t found = 0;

	graph_set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS,
		  CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_ops, g->op);
	if (handle)
		graph_set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
			  1, &handle);
	graph_finish(g, graph, "operation graph");
	graph_set_part(g, asked, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
	graph_set(g, asked, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
	if (!handle) {
		part device = graph_make(g, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);

		graph_set(g, device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
			  CUDNN_TYPE_CHAR, (int64_t)n, json);
		graph_finish(g, device, "device properties");
		graph_set_part(g, asked, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
	}
	graph_finish(g, asked, "heuristics");
	for (int i = 0; i < most; i++)
		config[i] = graph_make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	if (g->status == CUDNN_STATUS_SUCCESS)
		graph_ok(g,
			 cudnnBackendGetAttribute(asked, CUDNN_ATTR_ENGINEHEUR_RESULTS,
						  CUDNN_TYPE_BACKEND_DESCRIPTOR, most,
						  &found, config),
			 "heuristic results");
	return g->status == CUDNN_STATUS_SUCCESS ? (int)found : 0;
}

bool cudnn_plan(struct cudnn_graph *g, cudnnHandle_t handle, const char *json, size_t n,
		int *engines)
{
	enum { MOST = 8 };
	part config[MOST];
	int64_t one;

	*engines = engines_of(g, handle, json, n, config, MOST);
	if (!handle || !*engines)
		return handle == NULL && *engines > 0;
	for (int i = 0; i < *engines; i++) {
		part plan = graph_make(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);

		graph_set_part(g, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
			       config[i]);
		graph_set(g, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
			  1, &handle);
		if (g->status != CUDNN_STATUS_SUCCESS)
			return false;
		if (cudnnBackendFinalize(plan) != CUDNN_STATUS_SUCCESS)
			continue; /* this engine will not; the next may */
		g->plan = plan;
		return graph_ok(g,
				cudnnBackendGetAttribute(
					plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
					CUDNN_TYPE_INT64, 1, &one, &g->workspace_bytes),
				"workspace size");
	}
	return graph_ok(g, CUDNN_STATUS_NOT_SUPPORTED, "no engine makes a plan");
}

bool cudnn_bind(struct cudnn_graph *g, void *const pointer[T_TENSORS], void *workspace)
{
	int64_t id[T_TENSORS];
	void *at[T_TENSORS];
	int64_t n = 0;

	for (int i = 1; i < T_TENSORS; i++) {
		if (!g->used[i])
			continue;
		id[n] = i;
		at[n++] = pointer[i];
	}
	g->pack = graph_make(g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
	graph_set(g, g->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n,
		  id);
	graph_set(g, g->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
		  CUDNN_TYPE_VOID_PTR, n, at);
	graph_set(g, g->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
		  &workspace);
	graph_finish(g, g->pack, "variant pack");
	return g->status == CUDNN_STATUS_SUCCESS;
}

void cudnn_drop(struct cudnn_graph *g)
{
	while (g->n_parts)
		cudnnBackendDestroyDescriptor(g->part[--g->n_parts]);
}
