/*
 * recorded/operator.c - the work of recorded operators of PyTorch
 *
 * "Input Dims", "Input Strides", "Input type" and "Concrete Inputs" are lists over
 * the operator's arguments. Strides tell the layouts of a product apart: a linear
 * layer multiplies by W transposed (forward), by W (dgrad), or the transposed
 * gradient by the input (wgrad). Operators whose traffic the shapes give away, dense
 * and without broadcast, are `exact`; of others the inputs are counted as read once,
 * and as many bytes as the largest has as written.
 */
#include "recorded/operator.h"

#include <string.h>

#include "base/text.h"

/* ---- arguments ------------------------------------------------------------- */

static const json_t *argument(const json_t *op, const char *list, size_t i)
{
	return json_array_get(json_object_get(op, list), i);
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

static bool dtype_named(const char *type, enum ft_dtype *dtype)
{
	static const struct {
		const char *name;
		enum ft_dtype dtype;
	} known[] = {
		{ "c10::BFloat16", FT_BF16 },
		{ "BFloat16", FT_BF16 },
		{ "c10::Half", FT_FP16 },
		{ "Half", FT_FP16 },
		{ "float", FT_FP32 },
		{ "Float", FT_FP32 },
		{ "c10::Float8_e4m3fn", FT_FP8 },
		{ "c10::Float8_e4m3fnuz", FT_FP8 },
		{ "c10::Float8_e5m2", FT_FP8 },
	};

	for (size_t i = 0; type && i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(type, known[i].name)) {
			*dtype = known[i].dtype;
			return true;
		}
	return false;
}

static bool dtype_of(const json_t *op, size_t i, enum ft_dtype *dtype)
{
	return dtype_named(json_string_value(argument(op, "Input type", i)), dtype);
}

/* Bytes of an element of the i-th input, by the name of its type; 0: it is no tensor. */
static double element_bytes(const json_t *op, size_t i)
{
	const char *type = json_string_value(argument(op, "Input type", i));
	enum ft_dtype dtype;

	if (dtype_named(type, &dtype))
		return ft_dtype_bytes(dtype);
	if (!type || !argument(op, "Input Dims", i))
		return 0;
	return text_begins_with(type, "long") || !strcmp(type, "double") ? 8 :
	       !strcmp(type, "int")					 ? 4 :
	       !strcmp(type, "short int")				 ? 2 :
	       strstr(type, "char") || !strcmp(type, "bool") || strstr(type, "Float8") ?
					    1 :
					    0;
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

static bool inputs_are_alike(const json_t *op)
{
	return json_equal(argument(op, "Input Dims", 0), argument(op, "Input Dims", 1));
}

/* ---- products ---------------------------------------------------------------- */

static bool whole(double v)
{
	return v >= 1 && v <= 1e12;
}

static bool set_product(struct ft_rec_work *w, enum ft_layout layout, double m,
			double n, double k)
{
	w->work.kind = FT_GEMM;
	w->work.name = "gemm";
	w->work.gemm.layout = layout;
	w->work.gemm.groups = 1;
	if (!whole(m) || !whole(n) || !whole(k))
		return false;
	w->work.gemm.m = (int64_t)m;
	w->work.gemm.n = (int64_t)n;
	w->work.gemm.k = (int64_t)k;
	w->exact = true;
	return true;
}

static bool product(const json_t *op, size_t a, struct ft_rec_work *w)
{
	size_t b = a + 1;
	double rows, inner, columns;
	bool a_turned, b_turned;

	if (rank_of(op, a) != 2 || rank_of(op, b) != 2 ||
	    !dtype_of(op, a, &w->work.dtype))
		return false;
	rows = dim(op, a, 0);
	inner = dim(op, a, 1);
	columns = dim(op, b, 1);
	if (dim(op, b, 0) < inner || dim(op, b, 0) > inner)
		return false;
	a_turned = at(op, "Input Strides", a, 0) == 1 && rows > 1;
	b_turned = !argument(op, "Input Strides", b) || /* old: not told */
		   (at(op, "Input Strides", b, 0) == 1 && inner > 1);
	if (b_turned)
		return set_product(w, FT_FORWARD, rows, columns, inner);
	return a_turned ? set_product(w, FT_WGRAD, inner, rows, columns) :
			  set_product(w, FT_DGRAD, rows, inner, columns);
}

/* [groups, rows, inner] x [groups, inner, columns]: one launch. */
static bool batched(const json_t *op, size_t a, struct ft_rec_work *w)
{
	double groups = dim(op, a, 0);

	if (rank_of(op, a) != 3 || rank_of(op, a + 1) != 3 || !whole(groups) ||
	    !dtype_of(op, a, &w->work.dtype) ||
	    !set_product(w, FT_FORWARD, groups * dim(op, a, 1), dim(op, a + 1, 2),
			 dim(op, a, 2)))
		return false;
	w->work.gemm.groups = (int64_t)groups;
	w->exact = false;
	return true;
}

/* Rows shared out over groups: [rows, inner] x [groups, inner, columns]; or the inner
 * side shared out: [rows, inner] x [inner, columns] to [groups, rows, columns]. */
static bool grouped(const json_t *op, struct ft_rec_work *w)
{
	double groups = dim(op, 2, 0);
	bool inner = rank_of(op, 1) == 2;

	if (rank_of(op, 0) != 2 || (!inner && rank_of(op, 1) != 3) ||
	    !dtype_of(op, 0, &w->work.dtype))
		return false;
	if (!inner)
		groups = dim(op, 1, 0);
	if (!whole(groups))
		return false;
	if (!(inner ? set_product(w, FT_WGRAD, dim(op, 0, 1), dim(op, 0, 0),
				  dim(op, 1, 1)) :
		      set_product(w, FT_FORWARD, dim(op, 0, 0), dim(op, 1, 2),
				  dim(op, 0, 1))))
		return false;
	w->work.gemm.groups = (int64_t)groups;
	w->exact = false;
	return true;
}

/* The layer itself: input [..., k], weight [n, k]. */
static bool linear(const json_t *op, struct ft_rec_work *w)
{
	size_t n = rank_of(op, 0);
	double rows = 1;

	if (n < 1 || rank_of(op, 1) != 2 || !dtype_of(op, 0, &w->work.dtype))
		return false;
	for (size_t d = 0; d + 1 < n; d++)
		rows *= dim(op, 0, d);
	return set_product(w, FT_FORWARD, rows, dim(op, 1, 0), dim(op, 1, 1));
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
	{ "aten::_cudnn_attention_backward", 1, true, 14, true },
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
		      const char *kernel, struct ft_rec_work *w)
{
	size_t q = how->query, k = q + 1, s = how->heads_first ? 2 : 1;
	size_t h = how->heads_first ? 1 : 2;

	if (rank_of(op, q) != 4 || rank_of(op, k) != 4 ||
	    !dtype_of(op, q, &w->work.dtype))
		return false;
	for (size_t d = 0; d < 4; d++)
		if (!whole(dim(op, q, d)) || !whole(dim(op, k, d)))
			return false;
	w->work.kind = FT_ATTENTION;
	w->work.name = "attention";
	w->work.attention.impl = impl_of(kernel);
	w->work.attention.pass = how->backward ? FT_PASS_BACKWARD : FT_PASS_FORWARD;
	w->work.attention.batch = (int64_t)dim(op, q, 0);
	w->work.attention.heads = (int64_t)dim(op, q, h);
	w->work.attention.kv_heads = (int64_t)dim(op, k, h);
	w->work.attention.queries = (int64_t)dim(op, q, s);
	w->work.attention.keys = (int64_t)dim(op, k, s);
	w->work.attention.qk_head_dim = w->work.attention.v_head_dim =
		(int64_t)dim(op, q, 3);
	w->work.attention.causal = truth(op, how->causal);
	w->exact = true;
	return true;
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

/* Read once, and as much written as the largest input, of its type. */
static bool traffic(const json_t *op, struct ft_rec_work *w)
{
	size_t n = json_array_size(json_object_get(op, "Input Dims"));
	double read = 0, largest = 0;

	for (size_t i = 0; i < n; i++) {
		double bytes = element_bytes(op, i);

		for (size_t d = 0; d < rank_of(op, i); d++)
			bytes *= dim(op, i, d);
		if (!rank_of(op, i))
			continue;
		read += bytes;
		if (bytes > largest)
			largest = bytes;
	}
	w->work.kind = FT_MEMORY_BOUND;
	w->work.name = w->work.memory.kernel = "default";
	w->work.memory.bytes = read + largest;
	w->work.memory.warm = true;
	return read > 0;
}

/* Bytes of the kinds whose curves count otherwise than the arguments say. */
static void count_copies(const char *kernel, double elements, struct ft_rec_work *w)
{
	if (!strcmp(kernel, "copy")) /* the first argument is written */
		w->work.memory.bytes = 2 * elements * ft_dtype_bytes(w->work.dtype);
	else if (!strcmp(kernel, "cast"))
		w->work.memory.bytes = 6 * elements;
}

static bool memory(const json_t *op, const char *kernel, bool two,
		   struct ft_rec_work *w)
{
	size_t from = !strcmp(kernel, "rmsnorm") && rank_of(op, 0) == rank_of(op, 1);
	double elements, row, other, unused;
	enum ft_dtype second;

	if (!dtype_of(op, from, &w->work.dtype) || !dense(op, from, &elements, &row))
		return false;
	if (two && (!inputs_are_alike(op) || !dense(op, 1, &other, &unused) ||
		    !dtype_of(op, 1, &second)))
		return false;
	if (two && second != w->work.dtype) {
		/* to bf16 from fp32 is what the curve of casts was measured on */
		if (strcmp(kernel, "copy") || w->work.dtype != FT_BF16 ||
		    second != FT_FP32)
			return false;
		kernel = "cast";
	}
	if (!traffic(op, w))
		return false;
	w->work.name = w->work.memory.kernel = kernel;
	w->work.memory.row_bytes = row * ft_dtype_bytes(w->work.dtype);
	count_copies(kernel, elements, w);
	w->rows = elements / row;
	w->row = row;
	w->exact = true;
	return true;
}

/* ---- which ------------------------------------------------------------------------ */

/* Exactly, where the operator is one of those whose work is known. */
static bool known(const char *name, const json_t *args, const char *kernel,
		  struct ft_rec_work *w)
{
	if (!strcmp(name, "aten::mm") || !strcmp(name, "aten::_scaled_mm"))
		return product(args, 0, w);
	if (!strcmp(name, "aten::addmm"))
		return product(args, 1, w);
	if (!strcmp(name, "aten::linear"))
		return linear(args, w);
	if (!strcmp(name, "aten::bmm"))
		return batched(args, 0, w);
	if (!strcmp(name, "aten::baddbmm"))
		return batched(args, 1, w);
	if (!strcmp(name, "aten::_grouped_mm"))
		return grouped(args, w);
	for (size_t i = 0; i < sizeof(attention_ops) / sizeof(*attention_ops); i++)
		if (!strcmp(name, attention_ops[i].name))
			return attention(args, &attention_ops[i], kernel, w);
	for (size_t i = 0; i < sizeof(memory_ops) / sizeof(*memory_ops); i++)
		if (!strcmp(name, memory_ops[i].name))
			return memory(args, memory_ops[i].kernel, memory_ops[i].two, w);
	return false;
}

bool operator_work(const char *name, const json_t *args, const char *kernel,
		   struct ft_rec_work *w)
{
	*w = (struct ft_rec_work){ .exact = false };
	if (known(name, args, kernel, w))
		return true;
	*w = (struct ft_rec_work){ .exact = false };
	return text_begins_with(name, "aten::") && traffic(args, w);
}
