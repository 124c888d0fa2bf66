/*
 * calibrate/kineto_cell.c - recorded operators of PyTorch as cells
 *
 * "Input Dims", "Input Strides", "Input type" and "Concrete Inputs" are lists over
 * the operator's arguments. Strides tell the layouts of a product apart: a linear
 * layer multiplies by W transposed (forward), by W (dgrad), or the transposed
 * gradient by the input (wgrad). Only operators whose traffic the shapes give away
 * become memory-bound cells: dense, no broadcast.
 */
#include "calibrate/kineto.h"

#include <stdlib.h>
#include <string.h>

/* ---- arguments ------------------------------------------------------------- */

static const json_t *argument(const json_t *op, const char *list, size_t i)
{
	const json_t *args = json_object_get(op, "args");

	return json_array_get(json_object_get(args, list), i);
}

static size_t rank_of(const json_t *op, size_t i)
{
	return json_array_size(argument(op, "Input Dims", i));
}

static double at(const json_t *op, const char *list, size_t i, size_t d)
{
	return json_number_value(json_array_get(argument(op, list, i), d));
}

static double dim(const json_t *op, size_t i, size_t d)
{
	return at(op, "Input Dims", i, d);
}

static bool truth(const json_t *op, size_t i)
{
	const char *text = json_string_value(argument(op, "Concrete Inputs", i));

	return text && (!strcmp(text, "True") || !strcmp(text, "1"));
}

static const char *dtype_named(const char *type)
{
	static const char *const known[][2] = {
		{ "c10::BFloat16", "bf16" },
		{ "BFloat16", "bf16" },
		{ "c10::Half", "fp16" },
		{ "Half", "fp16" },
		{ "float", "fp32" },
		{ "Float", "fp32" },
		{ "c10::Float8_e4m3fn", "fp8" },
		{ "c10::Float8_e4m3fnuz", "fp8" },
	};

	for (size_t i = 0; type && i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(type, known[i][0]))
			return known[i][1];
	return NULL;
}

static const char *dtype_of(const json_t *op, size_t i)
{
	return dtype_named(json_string_value(argument(op, "Input type", i)));
}

/* Rows of a dense tensor one behind another; row: the last dimension. */
static bool dense(const json_t *op, size_t i, double *elements, double *row)
{
	size_t n = rank_of(op, i);

	*elements = 1;
	*row = n ? dim(op, i, n - 1) : 0;
	for (size_t d = n; d-- > 0;) {
		double stride = at(op, "Input Strides", i, d);

		if (dim(op, i, d) > 1 && stride != *elements)
			return false;
		*elements *= dim(op, i, d);
	}
	return n > 0 && *elements > 0;
}

static bool same_shape(const json_t *op, size_t i, size_t j)
{
	return json_equal(argument(op, "Input Dims", i), argument(op, "Input Dims", j));
}

/* ---- products ---------------------------------------------------------------- */

static bool product(const json_t *op, size_t a, struct ft_measurement *m)
{
	size_t b = a + 1;
	double rows, inner, columns;
	bool a_turned, b_turned;

	if (rank_of(op, a) != 2 || rank_of(op, b) != 2)
		return false;
	rows = dim(op, a, 0);
	inner = dim(op, a, 1);
	columns = dim(op, b, 1);
	a_turned = at(op, "Input Strides", a, 0) == 1 && rows > 1;
	b_turned = !argument(op, "Input Strides", b) || /* old: not told */
		   (at(op, "Input Strides", b, 0) == 1 && inner > 1);
	m->kind = "gemm";
	m->dtype = dtype_of(op, a);
	m->layout = b_turned ? "forward" : a_turned ? "wgrad" : "dgrad";
	m->m = a_turned && !b_turned ? inner : rows;
	m->n = b_turned ? columns : a_turned ? rows : inner;
	m->k = b_turned ? inner : columns;
	return m->dtype && dim(op, b, 0) == inner && rows * inner * columns > 0;
}

/* The layer itself: input [..., k], weight [n, k]. */
static bool linear(const json_t *op, struct ft_measurement *m)
{
	size_t n = rank_of(op, 0);

	if (n < 1 || rank_of(op, 1) != 2)
		return false;
	m->kind = "gemm";
	m->dtype = dtype_of(op, 0);
	m->layout = "forward";
	m->n = dim(op, 1, 0);
	m->k = dim(op, 1, 1);
	m->m = 1;
	for (size_t d = 0; d + 1 < n; d++)
		m->m *= dim(op, 0, d);
	return m->dtype && m->m * m->n * m->k > 0;
}

/* ---- attention ------------------------------------------------------------------- */

struct attention_op {
	const char *name;
	size_t query;	  /* which argument; keys are the next */
	bool heads_first; /* [batch, heads, sequence, dim], or sequence, heads */
	size_t causal;	  /* which argument */
	bool backward;
};

static const struct attention_op attention_ops[] = {
	{ "aten::_flash_attention_forward", 0, false, 8, false },
	{ "aten::_flash_attention_backward", 1, false, 11, true },
	{ "aten::_scaled_dot_product_flash_attention", 0, true, 4, false },
	{ "aten::_scaled_dot_product_flash_attention_backward", 1, true, 11, true },
	{ "aten::_efficient_attention_forward", 0, false, 9, false },
	{ "aten::_scaled_dot_product_efficient_attention", 0, true, 6, false },
	{ "aten::_cudnn_attention_forward", 0, true, 10, false },
	{ "aten::_scaled_dot_product_cudnn_attention", 0, true, 6, false },
	{ "aten::_scaled_dot_product_cudnn_attention_backward", 1, true, 14, true },
};

static const char *impl_of(const char *kernel)
{
	return strstr(kernel, "cudnn")	     ? "cudnn" :
	       strstr(kernel, "flash_")	     ? "fa2" :
	       strstr(kernel, "aiter")	     ? "aiter" :
	       strstr(kernel, "attn_fwd")    ? "triton" :
	       strstr(kernel, "bwd_kernel_") ? "triton" :
					       "torch";
}

static bool attention(const json_t *op, const struct attention_op *how,
		      const char *kernel, struct ft_measurement *m)
{
	size_t q = how->query, k = q + 1, s = how->heads_first ? 2 : 1;
	size_t h = how->heads_first ? 1 : 2;

	if (rank_of(op, q) != 4 || rank_of(op, k) != 4)
		return false;
	m->kind = "attention";
	m->dtype = dtype_of(op, q);
	m->impl = impl_of(kernel);
	m->pass = how->backward ? "backward" : "forward";
	m->batch = dim(op, q, 0);
	m->heads = dim(op, q, h);
	m->kv_heads = dim(op, k, h);
	m->sequence = dim(op, q, s);
	m->head_dim = dim(op, q, 3);
	m->causal = truth(op, how->causal);
	return m->dtype && m->sequence > 0 && dim(op, k, s) == m->sequence;
}

/* ---- memory-bound ---------------------------------------------------------------- */

static const struct {
	const char *name, *kernel;
	bool two; /* sources of one shape */
} memory_ops[] = {
	{ "aten::native_layer_norm", "layernorm", false },
	{ "aten::_fused_rms_norm", "rmsnorm", false },
	{ "_C::rms_norm", "rmsnorm", false },
	{ "aten::_softmax", "softmax", false },
	{ "aten::gelu", "gelu", false },
	{ "aten::silu", "silu", false },
	{ "aten::add", "add", true },
	{ "aten::add_", "add", true },
	{ "aten::mul", "mul", true },
	{ "aten::mul_", "mul", true },
	{ "aten::copy_", "copy", true },
};

static bool memory(const json_t *op, const char *kernel, bool two,
		   struct ft_measurement *m)
{
	size_t from = !strcmp(kernel, "rmsnorm") && rank_of(op, 0) == rank_of(op, 1);
	double elements, row, other, unused;

	if (!dense(op, from, &elements, &row))
		return false;
	if (two && (!same_shape(op, 0, 1) || !dense(op, 1, &other, &unused)))
		return false;
	m->kind = "memory";
	m->kernel = kernel;
	m->impl = "torch";
	m->dtype = dtype_of(op, from);
	m->n = row;
	m->m = elements / row;
	if (!two || !m->dtype || !dtype_of(op, 1))
		return m->dtype && !two;
	if (!strcmp(m->dtype, dtype_of(op, 1)))
		return true;
	/* to bf16 from fp32 is what the curve of casts was measured on */
	m->kernel = "cast";
	return !strcmp(kernel, "copy") && !strcmp(m->dtype, "bf16") &&
	       !strcmp(dtype_of(op, 1), "fp32");
}

/* ---- which ------------------------------------------------------------------------ */

bool kineto_cell(const json_t *op, const char *kernel, struct ft_measurement *m)
{
	const char *name = json_string_value(json_object_get(op, "name"));

	if (!name)
		return false;
	if (!strcmp(name, "aten::mm") || !strcmp(name, "aten::_scaled_mm"))
		return product(op, 0, m);
	if (!strcmp(name, "aten::addmm"))
		return product(op, 1, m);
	if (!strcmp(name, "aten::linear"))
		return linear(op, m);
	for (size_t i = 0; i < sizeof(attention_ops) / sizeof(*attention_ops); i++)
		if (!strcmp(name, attention_ops[i].name))
			return attention(op, &attention_ops[i], kernel, m);
	for (size_t i = 0; i < sizeof(memory_ops) / sizeof(*memory_ops); i++)
		if (!strcmp(name, memory_ops[i].name))
			return memory(op, memory_ops[i].kernel, memory_ops[i].two, m);
	return false;
}

/* nccl-tests counts the whole gathered, or scattered, message. */
bool kineto_collective(const json_t *event, struct ft_measurement *m)
{
	static const char *const ops[][2] = {
		{ "allreduce", "all_reduce" },
		{ "_allgather_base", "all_gather" },
		{ "allgather", "all_gather" },
		{ "_reduce_scatter_base", "reduce_scatter" },
		{ "reduce_scatter", "reduce_scatter" },
		{ "all_to_all", "all_to_all" },
		{ "alltoall", "all_to_all" },
		{ "broadcast", "broadcast" },
	};
	const json_t *args = json_object_get(event, "args");
	const char *name = json_string_value(json_object_get(args, "Collective name"));
	const char *type =
		dtype_named(json_string_value(json_object_get(args, "dtype")));
	double in = json_number_value(json_object_get(args, "In msg nelems"));
	double out = json_number_value(json_object_get(args, "Out msg nelems"));
	enum ft_dtype dtype;

	m->kernel = NULL;
	for (size_t i = 0; name && i < sizeof(ops) / sizeof(*ops); i++)
		if (!m->kernel && !strncmp(name, ops[i][0], strlen(ops[i][0])))
			m->kernel = ops[i][1];
	if (!m->kernel || !type || !ft_dtype_find(type, &dtype))
		return false;
	m->kind = "collective";
	m->dtype = type;
	m->gpus = json_number_value(json_object_get(args, "Group size"));
	m->bytes = (in > out ? in : out) * ft_dtype_bytes(dtype);
	return m->gpus > 1 && m->bytes > 0;
}
