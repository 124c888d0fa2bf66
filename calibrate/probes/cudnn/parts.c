/*
 * calibrate/probes/cudnn/parts.c - tensors and operations of cuDNN's backend
 * interface, one function each
 *
 * After the first refusal nothing more is made; the graph keeps what failed.
 */
#include "calibrate/probes/cudnn/parts.h"

static const cudnnDataType_t F32 = CUDNN_DATA_FLOAT;

bool graph_ok(struct cudnn_graph *g, cudnnStatus_t status, const char *what)
{
	if (status != CUDNN_STATUS_SUCCESS && g->status == CUDNN_STATUS_SUCCESS) {
		g->status = status;
		g->failed = what;
	}
	return g->status == CUDNN_STATUS_SUCCESS;
}

part graph_make(struct cudnn_graph *g, cudnnBackendDescriptorType_t type)
{
	part p = NULL;

	if (g->n_parts == CUDNN_MOST_PARTS) {
		graph_ok(g, CUDNN_STATUS_INTERNAL_ERROR, "too many parts");
		return NULL;
	}
	if (graph_ok(g, cudnnBackendCreateDescriptor(type, &p), "descriptor"))
		g->part[g->n_parts++] = p;
	return p;
}

void graph_set(struct cudnn_graph *g, part p, cudnnBackendAttributeName_t name,
	       cudnnBackendAttributeType_t type, int64_t n, const void *value)
{
	if (g->status == CUDNN_STATUS_SUCCESS)
		graph_ok(g, cudnnBackendSetAttribute(p, name, type, n, value),
			 "attribute");
}

void graph_set_part(struct cudnn_graph *g, part p, cudnnBackendAttributeName_t name,
		    part value)
{
	graph_set(g, p, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void graph_finish(struct cudnn_graph *g, part p, const char *what)
{
	if (g->status == CUDNN_STATUS_SUCCESS)
		graph_ok(g, cudnnBackendFinalize(p), what);
}

static void add_op(struct cudnn_graph *g, part p, const char *what)
{
	graph_finish(g, p, what);
	if (g->n_ops < CUDNN_MOST_OPS)
		g->op[g->n_ops++] = p;
	else
		graph_ok(g, CUDNN_STATUS_INTERNAL_ERROR, "too many operations");
}

/* ---- tensors
 * ----------------------------------------------------------------- */

/* id 0: a virtual tensor, which lives only inside the fused kernel. */
part graph_tensor(struct cudnn_graph *g, int id, cudnnDataType_t type,
		  const struct graph_form *f)
{
	part t = graph_make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	int64_t align = 16, uid = id ? id : g->next_id++;
	bool yes = true;

	graph_set(g, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	graph_set(g, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, f->size);
	graph_set(g, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, f->stride);
	graph_set(g, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
	graph_set(g, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
	if (!id)
		graph_set(g, t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1,
			  &yes);
	if (id >= T_SCALE)
		graph_set(g, t, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1,
			  &yes);
	if (id)
		g->used[id] = true;
	graph_finish(g, t, "tensor");
	return t;
}

/* [batch, heads, sequence, head_dim], stored batch, sequence, heads, head_dim
 */
struct graph_form graph_packed(const struct attention_problem *p, int64_t heads)
{
	int64_t d = p->head_dim, s = p->sequence;

	return (struct graph_form){ { p->batch, heads, s, d },
				    { s * heads * d, d, heads * d, 1 } };
}

/* The same memory, seen with its last two dimensions swapped. */
struct graph_form graph_swapped(const struct attention_problem *p, int64_t heads)
{
	struct graph_form f = graph_packed(p, heads);
	int64_t size = f.size[2], stride = f.stride[2];

	f.size[2] = f.size[3], f.stride[2] = f.stride[3];
	f.size[3] = size, f.stride[3] = stride;
	return f;
}

struct graph_form graph_dense(int64_t b, int64_t h, int64_t r, int64_t c)
{
	return (struct graph_form){ { b, h, r, c }, { h * r * c, r * c, c, 1 } };
}

static struct graph_form scores(const struct attention_problem *p)
{
	return graph_dense(p->batch, p->heads, p->sequence, p->sequence);
}

part graph_score(struct cudnn_graph *g, const struct attention_problem *p,
		 cudnnDataType_t type)
{
	struct graph_form f = scores(p);

	return graph_tensor(g, 0, type, &f);
}

/* One number a row of scores. */
part graph_rows(struct cudnn_graph *g, const struct attention_problem *p, int id)
{
	struct graph_form f = graph_dense(p->batch, p->heads, p->sequence, 1);

	return graph_tensor(g, id, F32, &f);
}

part graph_scalar(struct cudnn_graph *g, int id)
{
	struct graph_form f = graph_dense(1, 1, 1, 1);

	return graph_tensor(g, id, F32, &f);
}

part graph_turned(struct cudnn_graph *g, const struct attention_problem *p,
		  cudnnDataType_t type)
{
	struct graph_form f = scores(p);

	f.stride[2] = 1;
	f.stride[3] = p->sequence;
	return graph_tensor(g, 0, type, &f);
}

/* ---- operations
 * ---------------------------------------------------------------- */

void graph_product(struct cudnn_graph *g, part a, part b, part c)
{
	part how = graph_make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
	part op = graph_make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);

	graph_set(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &F32);
	graph_finish(g, how, "matmul");
	graph_set_part(g, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
	graph_set_part(g, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
	graph_set_part(g, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
	graph_set_part(g, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
	add_op(g, op, "matmul operation");
}

/* y = mode(x, b, t); b and t may be NULL; axis: of GEN_INDEX, else -1 */
static void pointwise_typed(struct cudnn_graph *g, cudnnPointwiseMode_t mode,
			    cudnnDataType_t type, int64_t axis, part x, part b, part t,
			    part y)
{
	part how = graph_make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
	part op = graph_make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);

	graph_set(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1,
		  &mode);
	graph_set(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1,
		  &type);
	if (axis >= 0)
		graph_set(g, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1,
			  &axis);
	graph_finish(g, how, "pointwise");
	graph_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
	graph_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
	if (b)
		graph_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
	if (t)
		graph_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
	graph_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
	add_op(g, op, "pointwise operation");
}

void graph_pointwise(struct cudnn_graph *g, cudnnPointwiseMode_t mode, part x, part b,
		     part y)
{
	pointwise_typed(g, mode, F32, -1, x, b, NULL, y);
}

void graph_reduce(struct cudnn_graph *g, cudnnReduceTensorOp_t with, part x, part y)
{
	part how = graph_make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
	part op = graph_make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);

	graph_set(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1,
		  &F32);
	graph_set(g, how, CUDNN_ATTR_REDUCTION_OPERATOR,
		  CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &with);
	graph_finish(g, how, "reduction");
	graph_set_part(g, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
	graph_set_part(g, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
	graph_set_part(g, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
	add_op(g, op, "reduction operation");
}

void graph_reshape(struct cudnn_graph *g, part x, part y)
{
	part op = graph_make(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);

	graph_set_part(g, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
	graph_set_part(g, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
	add_op(g, op, "reshape operation");
}

/* Scores above the diagonal become minus infinity. */
part graph_masked(struct cudnn_graph *g, const struct attention_problem *p, part s)
{
	part row = graph_score(g, p, CUDNN_DATA_INT32);
	part column = graph_score(g, p, CUDNN_DATA_INT32);
	part keep = graph_score(g, p, CUDNN_DATA_BOOLEAN), y = graph_score(g, p, F32);

	if (!p->causal)
		return s;
	pointwise_typed(g, CUDNN_POINTWISE_GEN_INDEX, F32, 2, s, NULL, NULL, row);
	pointwise_typed(g, CUDNN_POINTWISE_GEN_INDEX, F32, 3, s, NULL, NULL, column);
	pointwise_typed(g, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, -1, row, column,
			NULL, keep);
	pointwise_typed(g, CUDNN_POINTWISE_BINARY_SELECT, F32, -1, s,
			graph_scalar(g, T_LOWEST), keep, y);
	return y;
}

void graph_softmax(struct cudnn_graph *g, const struct attention_problem *p, part s,
		   part prob)
{
	part less = graph_score(g, p, F32), e = graph_score(g, p, F32);
	part most = graph_rows(g, p, 0), sum = graph_rows(g, p, 0);
	part log = graph_rows(g, p, 0);

	graph_reduce(g, CUDNN_REDUCE_TENSOR_MAX, s, most);
	graph_pointwise(g, CUDNN_POINTWISE_SUB, s, most, less);
	graph_pointwise(g, CUDNN_POINTWISE_EXP, less, NULL, e);
	graph_reduce(g, CUDNN_REDUCE_TENSOR_ADD, e, sum);
	graph_pointwise(g, CUDNN_POINTWISE_LOG, sum, NULL, log);
	graph_pointwise(g, CUDNN_POINTWISE_ADD, most, log, graph_rows(g, p, T_STATS));
	graph_pointwise(g, CUDNN_POINTWISE_DIV, e, sum, prob);
}
