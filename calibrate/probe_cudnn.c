/*
 * calibrate/probe_cudnn.c - attention forward and backward as cuDNN operation graphs
 *
 * forward   P = softmax(mask(scale Q K')), O = P V, stats = log-sum-exp
 * backward  delta = rowsum(dO O); P from stats; dV = P' dO; dS = P (dO V' - delta)
 *           scale; dK = dS' Q; dQ = dS K
 *
 * The engines want just these operations in this order, fp32 between them, 16 bits
 * where a product reads P or dS, K and V with their last two dimensions swapped by
 * strides, and dQ summed in an fp32 buffer of ours.
 */
#include "probe_cudnn.h"

typedef cudnnBackendDescriptor_t part;

static const cudnnDataType_t F32 = CUDNN_DATA_FLOAT, B16 = CUDNN_DATA_BFLOAT16;

static bool ok(struct cudnn_graph *g, cudnnStatus_t status, const char *what)
{
	if (status != CUDNN_STATUS_SUCCESS && g->status == CUDNN_STATUS_SUCCESS) {
		g->status = status;
		g->failed = what;
	}
	return g->status == CUDNN_STATUS_SUCCESS;
}

static part make(struct cudnn_graph *g, cudnnBackendDescriptorType_t type)
{
	part p = NULL;

	if (g->n_parts == CUDNN_MOST_PARTS) {
		ok(g, CUDNN_STATUS_INTERNAL_ERROR, "too many parts");
		return NULL;
	}
	if (ok(g, cudnnBackendCreateDescriptor(type, &p), "descriptor"))
		g->part[g->n_parts++] = p;
	return p;
}

static void set(struct cudnn_graph *g, part p, cudnnBackendAttributeName_t name,
		cudnnBackendAttributeType_t type, int64_t n, const void *value)
{
	if (g->status == CUDNN_STATUS_SUCCESS)
		ok(g, cudnnBackendSetAttribute(p, name, type, n, value),
		   "attribute");
}

static void set_part(struct cudnn_graph *g, part p,
		     cudnnBackendAttributeName_t name, part value)
{
	set(g, p, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void finish(struct cudnn_graph *g, part p, const char *what)
{
	if (g->status == CUDNN_STATUS_SUCCESS)
		ok(g, cudnnBackendFinalize(p), what);
}

static void add_op(struct cudnn_graph *g, part p, const char *what)
{
	finish(g, p, what);
	if (g->n_ops < CUDNN_MOST_OPS)
		g->op[g->n_ops++] = p;
	else
		ok(g, CUDNN_STATUS_INTERNAL_ERROR, "too many operations");
}

/* ---- tensors ----------------------------------------------------------------- */

struct form {
	int64_t size[4], stride[4];
};

/* id 0: a virtual tensor, which lives only inside the fused kernel. */
static part tensor(struct cudnn_graph *g, int id, cudnnDataType_t type,
		   const struct form *f)
{
	part t = make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	int64_t align = 16, uid = id ? id : g->next_id++;
	bool yes = true;

	set(g, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	set(g, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, f->size);
	set(g, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, f->stride);
	set(g, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
	set(g, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
	if (!id)
		set(g, t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1,
		    &yes);
	if (id >= T_SCALE)
		set(g, t, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1,
		    &yes);
	finish(g, t, "tensor");
	return t;
}

/* [batch, heads, sequence, head_dim], stored batch, sequence, heads, head_dim */
static struct form packed(const struct attention_problem *p, int64_t heads)
{
	int64_t d = p->head_dim, s = p->sequence;

	return (struct form){ { p->batch, heads, s, d },
			      { s * heads * d, d, heads * d, 1 } };
}

/* The same memory, seen with its last two dimensions swapped. */
static struct form swapped(const struct attention_problem *p, int64_t heads)
{
	struct form f = packed(p, heads);
	int64_t size = f.size[2], stride = f.stride[2];

	f.size[2] = f.size[3], f.stride[2] = f.stride[3];
	f.size[3] = size, f.stride[3] = stride;
	return f;
}

static struct form dense(int64_t b, int64_t h, int64_t r, int64_t c)
{
	return (struct form){ { b, h, r, c }, { h * r * c, r * c, c, 1 } };
}

static struct form scores(const struct attention_problem *p)
{
	return dense(p->batch, p->heads, p->sequence, p->sequence);
}

static part score(struct cudnn_graph *g, const struct attention_problem *p,
		  cudnnDataType_t type)
{
	struct form f = scores(p);

	return tensor(g, 0, type, &f);
}

/* One number a row of scores. */
static part rows(struct cudnn_graph *g, const struct attention_problem *p,
		 int id)
{
	struct form f = dense(p->batch, p->heads, p->sequence, 1);

	return tensor(g, id, F32, &f);
}

static part scalar(struct cudnn_graph *g, int id)
{
	struct form f = dense(1, 1, 1, 1);

	return tensor(g, id, F32, &f);
}

/* ---- operations ---------------------------------------------------------------- */

static void product(struct cudnn_graph *g, part a, part b, part c)
{
	part how = make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
	part op = make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);

	set(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &F32);
	finish(g, how, "matmul");
	set_part(g, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
	set_part(g, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
	set_part(g, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
	set_part(g, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
	add_op(g, op, "matmul operation");
}

/* y = mode(x, b, t); b and t may be NULL; axis: of GEN_INDEX, else -1 */
static void pointwise_typed(struct cudnn_graph *g, cudnnPointwiseMode_t mode,
			    cudnnDataType_t type, int64_t axis, part x, part b,
			    part t, part y)
{
	part how = make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
	part op = make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);

	set(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1,
	    &mode);
	set(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1,
	    &type);
	if (axis >= 0)
		set(g, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1,
		    &axis);
	finish(g, how, "pointwise");
	set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
	set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
	if (b)
		set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
	if (t)
		set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
	set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
	add_op(g, op, "pointwise operation");
}

static void pointwise(struct cudnn_graph *g, cudnnPointwiseMode_t mode, part x,
		      part b, part y)
{
	pointwise_typed(g, mode, F32, -1, x, b, NULL, y);
}

static void reduce(struct cudnn_graph *g, cudnnReduceTensorOp_t with, part x,
		   part y)
{
	part how = make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
	part op = make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);

	set(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1,
	    &F32);
	set(g, how, CUDNN_ATTR_REDUCTION_OPERATOR,
	    CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &with);
	finish(g, how, "reduction");
	set_part(g, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
	set_part(g, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
	set_part(g, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
	add_op(g, op, "reduction operation");
}

static void reshape(struct cudnn_graph *g, part x, part y)
{
	part op = make(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);

	set_part(g, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
	set_part(g, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
	add_op(g, op, "reshape operation");
}

/* Scores above the diagonal become minus infinity. */
static part masked(struct cudnn_graph *g, const struct attention_problem *p,
		   part s)
{
	part row = score(g, p, CUDNN_DATA_INT32);
	part column = score(g, p, CUDNN_DATA_INT32);
	part keep = score(g, p, CUDNN_DATA_BOOLEAN), y = score(g, p, F32);

	if (!p->causal)
		return s;
	pointwise_typed(g, CUDNN_POINTWISE_GEN_INDEX, F32, 2, s, NULL, NULL,
			row);
	pointwise_typed(g, CUDNN_POINTWISE_GEN_INDEX, F32, 3, s, NULL, NULL,
			column);
	pointwise_typed(g, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, -1, row,
			column, NULL, keep);
	pointwise_typed(g, CUDNN_POINTWISE_BINARY_SELECT, F32, -1, s,
			scalar(g, T_LOWEST), keep, y);
	return y;
}

/* ---- the two graphs -------------------------------------------------------------- */

static void forward(struct cudnn_graph *g, const struct attention_problem *p)
{
	struct form fq = packed(p, p->heads), fv = packed(p, p->kv_heads);
	struct form fk = swapped(p, p->kv_heads);
	part q = tensor(g, T_Q, B16, &fq), k = tensor(g, T_K, B16, &fk);
	part v = tensor(g, T_V, B16, &fv), o = tensor(g, T_O, B16, &fq);
	part raw = score(g, p, F32), s = score(g, p, F32);
	part less = score(g, p, F32), e = score(g, p, F32);
	part prob = score(g, p, B16);
	part most = rows(g, p, 0), sum = rows(g, p, 0), log = rows(g, p, 0);

	product(g, q, k, raw);
	pointwise(g, CUDNN_POINTWISE_MUL, raw, scalar(g, T_SCALE), s);
	s = masked(g, p, s);
	reduce(g, CUDNN_REDUCE_TENSOR_MAX, s, most);
	pointwise(g, CUDNN_POINTWISE_SUB, s, most, less);
	pointwise(g, CUDNN_POINTWISE_EXP, less, NULL, e);
	reduce(g, CUDNN_REDUCE_TENSOR_ADD, e, sum);
	pointwise(g, CUDNN_POINTWISE_LOG, sum, NULL, log);
	pointwise(g, CUDNN_POINTWISE_ADD, most, log, rows(g, p, T_STATS));
	pointwise(g, CUDNN_POINTWISE_DIV, e, sum, prob);
	product(g, prob, v, o);
}

/* x' y into out, the heads of a group added up. */
static void grouped(struct cudnn_graph *g, const struct attention_problem *p,
		    part x, part y, part out)
{
	struct form turned = scores(p);
	struct form wide = dense(p->batch, p->heads, p->sequence, p->head_dim);
	part t, full;

	turned.stride[2] = 1;
	turned.stride[3] = p->sequence;
	t = tensor(g, 0, B16, &turned);
	reshape(g, x, t);
	if (p->heads == p->kv_heads) {
		product(g, t, y, out);
		return;
	}
	full = tensor(g, 0, B16, &wide);
	product(g, t, y, full);
	reduce(g, CUDNN_REDUCE_TENSOR_ADD, full, out);
}

static void backward(struct cudnn_graph *g, const struct attention_problem *p)
{
	struct form fq = packed(p, p->heads), fk = packed(p, p->kv_heads);
	struct form ft = swapped(p, p->kv_heads);
	struct form wide = dense(p->batch, p->heads, p->sequence, p->head_dim);
	struct form mixed = { { p->batch, p->heads, p->sequence, p->head_dim },
			      { p->heads * p->sequence * p->head_dim,
				p->sequence * p->head_dim,
				p->heads * p->head_dim, 1 } };
	part q = tensor(g, T_Q, B16, &fq), k = tensor(g, T_K, B16, &ft);
	part v = tensor(g, T_V, B16, &ft), o = tensor(g, T_O, B16, &fq);
	part d_o = tensor(g, T_DO, B16, &fq), d_q = tensor(g, T_DQ, B16, &fq);
	part d_k = tensor(g, T_DK, B16, &fk), d_v = tensor(g, T_DV, B16, &fk);
	part scale = scalar(g, T_SCALE), delta = rows(g, p, T_DELTA);
	part both = tensor(g, 0, F32, &mixed), sum = rows(g, p, 0);
	part raw = score(g, p, F32), s = score(g, p, F32);
	part less = score(g, p, F32), prob = score(g, p, F32);
	part dp = score(g, p, F32), off = score(g, p, F32);
	part on = score(g, p, F32), ds = score(g, p, F32);
	part k_rows, total;

	pointwise(g, CUDNN_POINTWISE_MUL, d_o, o, both);
	reduce(g, CUDNN_REDUCE_TENSOR_ADD, both, sum);
	pointwise(g, CUDNN_POINTWISE_MUL, sum, scalar(g, T_UNIT), delta);
	product(g, q, k, raw);
	pointwise(g, CUDNN_POINTWISE_MUL, raw, scale, s);
	pointwise(g, CUDNN_POINTWISE_SUB, s, rows(g, p, T_STATS), less);
	pointwise(g, CUDNN_POINTWISE_EXP, masked(g, p, less), NULL, prob);
	grouped(g, p, prob, d_o, d_v);
	product(g, d_o, v, dp);
	pointwise(g, CUDNN_POINTWISE_SUB, dp, delta, off);
	pointwise(g, CUDNN_POINTWISE_MUL, off, prob, on);
	pointwise(g, CUDNN_POINTWISE_MUL, on, scale, ds);
	grouped(g, p, ds, q, d_k);
	k_rows = tensor(g, 0, F32, &fk);
	total = tensor(g, T_DQ_SUM, F32, &wide);
	reshape(g, k, k_rows);
	product(g, ds, k_rows, total);
	pointwise(g, CUDNN_POINTWISE_IDENTITY, total, NULL, d_q);
}

bool cudnn_attention(struct cudnn_graph *g, const struct attention_problem *p)
{
	*g = (struct cudnn_graph){ .next_id = 100 };
	if (p->backward)
		backward(g, p);
	else
		forward(g, p);
	return g->status == CUDNN_STATUS_SUCCESS;
}

/* ---- plans ------------------------------------------------------------------------ */

static int engines_of(struct cudnn_graph *g, cudnnHandle_t handle,
		      const char *json, size_t n, part *config, int most)
{
	part graph = make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	part asked = make(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
	int64_t found = 0;

	set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS,
	    CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_ops, g->op);
	if (handle)
		set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
		    CUDNN_TYPE_HANDLE, 1, &handle);
	finish(g, graph, "operation graph");
	set_part(g, asked, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
	set(g, asked, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1,
	    &mode);
	if (!handle) {
		part device = make(g, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);

		set(g, device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
		    CUDNN_TYPE_CHAR, (int64_t)n, json);
		finish(g, device, "device properties");
		set_part(g, asked, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
	}
	finish(g, asked, "heuristics");
	for (int i = 0; i < most; i++)
		config[i] = make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	if (g->status == CUDNN_STATUS_SUCCESS)
		ok(g, cudnnBackendGetAttribute(asked,
					       CUDNN_ATTR_ENGINEHEUR_RESULTS,
					       CUDNN_TYPE_BACKEND_DESCRIPTOR,
					       most, &found, config),
		   "heuristic results");
	return g->status == CUDNN_STATUS_SUCCESS ? (int)found : 0;
}

bool cudnn_plan(struct cudnn_graph *g, cudnnHandle_t handle, const char *json,
		size_t n, int *engines)
{
	enum { MOST = 8 };
	part config[MOST];
	int64_t one;

	*engines = engines_of(g, handle, json, n, config, MOST);
	if (!handle || !*engines)
		return handle == NULL && *engines > 0;
	for (int i = 0; i < *engines; i++) {
		part plan = make(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);

		set_part(g, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
			 config[i]);
		set(g, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
		    CUDNN_TYPE_HANDLE, 1, &handle);
		if (g->status != CUDNN_STATUS_SUCCESS)
			return false;
		if (cudnnBackendFinalize(plan) != CUDNN_STATUS_SUCCESS)
			continue; /* this engine will not; the next may */
		g->plan = plan;
		return ok(g, cudnnBackendGetAttribute(
				     plan,
				     CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
				     CUDNN_TYPE_INT64, 1, &one,
				     &g->workspace_bytes),
			  "workspace size");
	}
	return ok(g, CUDNN_STATUS_NOT_SUPPORTED, "no engine makes a plan");
}

bool cudnn_bind(struct cudnn_graph *g, void *const pointer[T_TENSORS],
		void *workspace)
{
	int64_t id[T_TENSORS];
	void *at[T_TENSORS];
	int64_t n = 0;

	for (int i = 1; i < T_TENSORS; i++) {
		if (!pointer[i])
			continue;
		id[n] = i;
		at[n++] = pointer[i];
	}
	g->pack = make(g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
	set(g, g->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n,
	    id);
	set(g, g->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
	    CUDNN_TYPE_VOID_PTR, n, at);
	set(g, g->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
	    1, &workspace);
	finish(g, g->pack, "variant pack");
	return g->status == CUDNN_STATUS_SUCCESS;
}

void cudnn_drop(struct cudnn_graph *g)
{
	while (g->n_parts)
		cudnnBackendDestroyDescriptor(g->part[--g->n_parts]);
}
