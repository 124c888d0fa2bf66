/*
 * recorded/classify.c - what an operation of the GPU is, by the names of its kernel
 * and of the operator that launched it
 *
 * The tables are searched in order and the first word that occurs decides, the
 * kernel's name before the operator's: an operator may launch kernels of several
 * kinds. A function's own name comes before its namespaces, and these before its template
 * arguments and parameters, whose types tell little (cutlass::bfloat16_t). What lies in an
 * optimizer's annotation and moves memory is the optimizer's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "recorded/recording.h"

struct sign {
	const char *word;
	enum ft_rec_class is;
};

/* Words that decide wherever in a name they stand. */
static const struct sign of_all[] = {
	{ "foretoken::gemm", FT_REC_GEMM }, /* of our own timelines */
	{ "foretoken::attention", FT_REC_ATTENTION },
	{ "foretoken::memory", FT_REC_MEMORY },
	{ "foretoken::optimizer", FT_REC_OPTIMIZER },
	/* Inductor's, named after all operators that they are fused with or copy for */
	{ "triton_poi_fused", FT_REC_MEMORY },
	{ "triton_red_fused", FT_REC_MEMORY },
	{ "triton_per_fused", FT_REC_MEMORY },
	{ "triton_for_fused", FT_REC_MEMORY },
	{ "nccl", FT_REC_COLLECTIVE },
	{ "rccl", FT_REC_COLLECTIVE },
	{ "AllReduce", FT_REC_COLLECTIVE },
	{ "all_reduce", FT_REC_COLLECTIVE },
	{ "allreduce", FT_REC_COLLECTIVE },
	{ "cross_device_reduce", FT_REC_COLLECTIVE },
	{ "all_gather_kernel", FT_REC_COLLECTIVE },
	{ "reduce_scatter_kernel", FT_REC_COLLECTIVE },
	{ "multimem_", FT_REC_COLLECTIVE },
	{ "nvshmem", FT_REC_COLLECTIVE },
	{ "deep_ep", FT_REC_COLLECTIVE },
	{ "Adam", FT_REC_OPTIMIZER },
	{ "FusedOptimizer", FT_REC_OPTIMIZER },
	{ "kOptimizer", FT_REC_OPTIMIZER },
	{ "multi_tensor_apply_kernel_sgd", FT_REC_OPTIMIZER },
	{ NULL, FT_REC_OTHER },
};

/* CUDA's libraries, ROCm's, Triton's and those of inference engines. */
static const struct sign of_kernels[] = {
	{ "reshape_and_cache", FT_REC_MEMORY },
	{ "cudnn_bn", FT_REC_MEMORY },
	{ "bn_fw", FT_REC_MEMORY },
	{ "bn_bw", FT_REC_MEMORY },
	{ "compute_dot_do_o", FT_REC_ATTENTION },
	{ "convert_dq", FT_REC_ATTENTION },
	{ "fmha", FT_REC_ATTENTION },
	{ "Fmha", FT_REC_ATTENTION },
	{ "flash", FT_REC_ATTENTION },
	{ "sdpa", FT_REC_ATTENTION },
	{ "attn", FT_REC_ATTENTION },
	{ "attention", FT_REC_ATTENTION },
	{ "Attention", FT_REC_ATTENTION },
	{ "AttnForward", FT_REC_ATTENTION },
	{ "PagedKV", FT_REC_ATTENTION },
	{ "RaggedKV", FT_REC_ATTENTION },
	{ "mla_", FT_REC_ATTENTION },
	{ "bwd_kernel_dk_dv", FT_REC_ATTENTION },
	{ "bwd_kernel_dq", FT_REC_ATTENTION },
	{ "bwd_preprocess", FT_REC_ATTENTION },
	{ "selective_scan", FT_REC_ATTENTION },
	{ "chunk_scan", FT_REC_ATTENTION },
	{ "gated_delta", FT_REC_ATTENTION },
	{ "splitKreduce", FT_REC_GEMM },
	{ "nvjet", FT_REC_GEMM },
	{ "gemm", FT_REC_GEMM },
	{ "Gemm", FT_REC_GEMM },
	{ "GEMM", FT_REC_GEMM },
	{ "gemv", FT_REC_GEMM },
	{ "Cijk_", FT_REC_GEMM },
	{ "bmm_", FT_REC_GEMM },
	{ "triton_mm", FT_REC_GEMM },
	{ "triton_tem_fused", FT_REC_GEMM },
	{ "wgmma", FT_REC_GEMM },
	{ "s884", FT_REC_GEMM },
	{ "s1688", FT_REC_GEMM },
	{ "s16816", FT_REC_GEMM },
	{ "wgrad", FT_REC_GEMM },
	{ "dgrad", FT_REC_GEMM },
	{ "cutlass", FT_REC_GEMM },
	{ "cublas", FT_REC_GEMM },
	{ "fused_moe_kernel", FT_REC_GEMM },
	{ "igemm", FT_REC_GEMM },
	{ "xdlops", FT_REC_GEMM },
	{ "winograd", FT_REC_GEMM },
	{ "Winograd", FT_REC_GEMM },
	{ "miopenSp3AsmConv", FT_REC_GEMM },
	{ "naive_conv", FT_REC_GEMM },
	{ "implicit_convolve", FT_REC_GEMM },
	{ "conv2d", FT_REC_GEMM },
	{ "Convert", FT_REC_MEMORY },
	{ "Conv", FT_REC_GEMM },
	{ "gridwise_gen", FT_REC_GEMM },
	{ "at::native", FT_REC_MEMORY },
	{ "at::cuda", FT_REC_MEMORY },
	{ "at_cuda_detail", FT_REC_MEMORY },
	{ "cub::", FT_REC_MEMORY },
	{ "rocprim", FT_REC_MEMORY },
	{ "hipcub", FT_REC_MEMORY },
	{ "thrust::", FT_REC_MEMORY },
	{ "c10::", FT_REC_MEMORY },
	{ "triton_poi", FT_REC_MEMORY },
	{ "triton_red", FT_REC_MEMORY },
	{ "triton_per", FT_REC_MEMORY },
	{ "triton_for", FT_REC_MEMORY },
	{ "elementwise", FT_REC_MEMORY },
	{ "multi_tensor_apply", FT_REC_MEMORY },
	{ "norm", FT_REC_MEMORY },
	{ "Norm", FT_REC_MEMORY },
	{ "softmax", FT_REC_MEMORY },
	{ "Softmax", FT_REC_MEMORY },
	{ "SoftMax", FT_REC_MEMORY },
	{ "rope", FT_REC_MEMORY },
	{ "rotary", FT_REC_MEMORY },
	{ "silu", FT_REC_MEMORY },
	{ "gelu", FT_REC_MEMORY },
	{ "swiglu", FT_REC_MEMORY },
	{ "act_and_mul", FT_REC_MEMORY },
	{ "quantize", FT_REC_MEMORY },
	{ "Quantize", FT_REC_MEMORY },
	{ "quant_kernel", FT_REC_MEMORY },
	{ "dequant", FT_REC_MEMORY },
	{ "cast", FT_REC_MEMORY },
	{ "Cast", FT_REC_MEMORY },
	{ "transpose", FT_REC_MEMORY },
	{ "permute", FT_REC_MEMORY },
	{ "moe::dev", FT_REC_MEMORY },
	{ "moe_align", FT_REC_MEMORY },
	{ "topk", FT_REC_MEMORY },
	{ "TopK", FT_REC_MEMORY },
	{ "Sampling", FT_REC_MEMORY },
	{ "embedding", FT_REC_MEMORY },
	{ "cross_entropy", FT_REC_MEMORY },
	{ "SubTensorOp", FT_REC_MEMORY },
	{ "OpTensor", FT_REC_MEMORY },
	{ "MIOpen", FT_REC_MEMORY },
	{ "tensor_reorder", FT_REC_MEMORY },
	{ "pooling", FT_REC_MEMORY },
	{ "nchwToNhwc", FT_REC_MEMORY },
	{ "nhwcToNchw", FT_REC_MEMORY },
	{ "vllm::", FT_REC_MEMORY },
	{ "copy", FT_REC_MEMORY },
	{ "Copy", FT_REC_MEMORY },
	{ "fill", FT_REC_MEMORY },
	{ "Fill", FT_REC_MEMORY },
	{ "memset", FT_REC_MEMORY },
	{ "reduce", FT_REC_MEMORY },
	{ "scatter", FT_REC_MEMORY },
	{ "gather", FT_REC_MEMORY },
	/* XLA's, named after what they are fused of */
	{ "_fusion", FT_REC_MEMORY },
	{ "fusion", FT_REC_MEMORY },
	{ "wrapped_", FT_REC_MEMORY },
	{ "memcpy", FT_REC_MEMORY },
	{ NULL, FT_REC_OTHER },
};

static const struct sign of_operators[] = {
	{ "flash_attention", FT_REC_ATTENTION },
	{ "attention", FT_REC_ATTENTION },
	{ "aten::mm", FT_REC_GEMM },
	{ "aten::bmm", FT_REC_GEMM },
	{ "aten::addmm", FT_REC_GEMM },
	{ "aten::baddbmm", FT_REC_GEMM },
	{ "aten::_scaled_mm", FT_REC_GEMM },
	{ "aten::_grouped_mm", FT_REC_GEMM },
	{ "aten::linear", FT_REC_GEMM },
	{ "convolution", FT_REC_GEMM },
	{ "_fused_adam", FT_REC_OPTIMIZER },
	{ "_fused_sgd", FT_REC_OPTIMIZER },
	{ "record_param_comms", FT_REC_COLLECTIVE },
	{ "aten::", FT_REC_MEMORY },
	{ "triton_", FT_REC_MEMORY },
	{ "_C::", FT_REC_MEMORY },
	{ NULL, FT_REC_OTHER },
};

static enum ft_rec_class by_signs(const struct sign *s, const char *name)
{
	while (s->word && !strstr(name, s->word))
		s++;
	return s->is;
}

/* Neither a template's argument nor a parameter? Brackets are counted on the way. */
static bool is_of_name(char c, int *angles, int *parens)
{
	if (c == '(' || c == ')')
		*parens += c == '(' ? 1 : -1;
	else if (!*parens && (c == '<' || c == '>'))
		*angles += c == '<' ? 1 : -1;
	else
		return !*parens && !*angles;
	return false;
}

/* "std::enable_if<(8 > 0), void>::type ns::(anonymous namespace)::k<T>(T*)": "ns::::k". Without template
 * arguments, parameters and what is returned; no name of C++ stays as it is. */
static void function_of(const char *name, char *to, size_t size)
{
	static const char anonymous[] = "(anonymous namespace)";
	int angles = 0, parens = 0;
	size_t n = 0;

	for (const char *c = name; *c && n + 1 < size; c++) {
		if (!parens && text_begins_with(c, anonymous)) {
			c += sizeof(anonymous) - 2;
			continue;
		}
		if (*c == '(' && !parens && !angles)
			break;
		if (!is_of_name(*c, &angles, &parens))
			continue;
		if (*c == ' ')
			n = 0;
		else
			to[n++] = *c;
	}
	to[n] = '\0';
}

/* Wrappers of CUTLASS are named after nothing that they do. */
static enum ft_rec_class by_name(const char *name)
{
	enum { LONGEST = 512 };
	char function[LONGEST];
	const char *own = function, *next;
	enum ft_rec_class c = by_signs(of_all, name);

	function_of(name, function, sizeof(function));
	while ((next = strstr(own, "::")))
		own = next + 2;
	if (c == FT_REC_OTHER)
		c = by_signs(of_kernels, own);
	if (c == FT_REC_OTHER && !text_begins_with(function, "cutlass::"))
		c = by_signs(of_kernels, function);
	return c == FT_REC_OTHER ? by_signs(of_kernels, name) : c;
}

/* Names are few and operations many: each name is looked at once. */
struct judged {
	uint8_t *kernel, *operator; /* by text: class + 1; 0: not yet */
};

static enum ft_rec_class judge(const struct ft_recording *r, uint8_t *known,
			       bool operator, int32_t name)
{
	const char *text = ft_recording_text(r, name);

	if (name == FT_REC_NONE)
		return FT_REC_OTHER;
	if (!known[name])
		known[name] = (uint8_t)(1 + (operator? by_signs(of_operators, text) :
						       by_name(text)));
	return (enum ft_rec_class)(known[name] - 1);
}

static int by_start(const void *a, const void *b)
{
	const struct ft_rec_span *x = a, *y = b;

	return whole_order(x->start, y->start);
}

/* Annotations of PyTorch: of FSDP2, and of FSDP1's hooks, one round
 * each gather (what it then copies out is of no shard) and each reduction. */
static const char *const of_gathers[] = { "FSDP::all_gather",
					  "FullyShardedDataParallel._pre_",
					  "FullyShardedDataParallel._post_backward_pre",
					  NULL };
static const char *const of_reduces[] = {
	"FSDP::post_backward_reduce", "FullyShardedDataParallel._post_backward_hook",
	NULL
};

static bool begins_with_one(const char *name, const char *const *begin)
{
	for (; *begin; begin++)
		if (text_begins_with(name, *begin))
			return true;
	return false;
}

/* Annotations, by start, whose names begin so. */
static struct ft_rec_span *named(const struct ft_recording *r, struct arena *scratch,
				 const char *const *begin, size_t *n)
{
	struct ft_rec_span *u;

	u = ARENA_ARRAY(scratch, r->annotation.n + 1, struct ft_rec_span);
	*n = 0;
	for (size_t i = 0; i < r->annotation.n; i++) {
		const struct ft_rec_span *a = table_at(&r->annotation, i);
		const char *name = ft_recording_text(r, a->name);

		if (begins_with_one(name, begin) && !strstr(name, "copy_out"))
			u[(*n)++] = *a;
	}
	qsort(u, *n, sizeof(*u), by_start);
	return u;
}

size_t spans_find(const struct ft_rec_span *u, size_t n, ft_ps t)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (u[middle].start <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low && t <= u[low - 1].start + u[low - 1].duration ? low - 1 : n;
}

static bool inside(const struct ft_rec_span *u, size_t n, ft_ps t)
{
	return spans_find(u, n, t) < n;
}

/* What says of calls that they were made for something. */
struct marks {
	size_t n_gathers, n_reduces;
	const struct ft_rec_span *gathers, *reduces;
};

static enum ft_rec_class class_of(const struct ft_recording *r, struct judged *known,
				  const struct ft_rec_op *op,
				  const struct ft_rec_span *o)
{
	enum ft_rec_class c, by_operator = FT_REC_OTHER;

	if (op->is_copy)
		return FT_REC_COPY;
	if (op->rec_class ==
	    FT_REC_COLLECTIVE) /* the file says so, whatever its name */
		return FT_REC_COLLECTIVE;
	if (o)
		by_operator = judge(r, known->operator, true, o->name);
	if (by_operator == FT_REC_COLLECTIVE)
		return FT_REC_COLLECTIVE;
	c = judge(r, known->kernel, false, op->name);
	return c == FT_REC_OTHER ? by_operator : c;
}

/* What it was launched for. */
static void mark(const struct ft_recording *r, const struct marks *m,
		 struct ft_rec_op *op)
{
	enum ft_rec_class c = (enum ft_rec_class)op->rec_class;
	ft_ps call = op->call == FT_REC_NONE ? -1 : call_of(r, (size_t)op->call)->start;
	bool gathered = inside(m->gathers, m->n_gathers, call);

	if (c == FT_REC_MEMORY && inside(r->update, r->n_updates, call))
		c = FT_REC_OPTIMIZER;
	op->rec_class = (uint8_t)c;
	op->in_fsdp = gathered || inside(m->reduces, m->n_reduces, call);
	op->on_shard = c == FT_REC_OPTIMIZER || (c == FT_REC_MEMORY && gathered);
}

void recording_classify(struct ft_recording *r)
{
	struct arena scratch = { 0 };
	struct judged known = {
		ARENA_ARRAY(&scratch, r->texts.text.n, uint8_t),
		ARENA_ARRAY(&scratch, r->texts.text.n, uint8_t),
	};
	struct marks m;

	m.gathers = named(r, &scratch, of_gathers, &m.n_gathers);
	m.reduces = named(r, &scratch, of_reduces, &m.n_reduces);
	for (size_t i = 0; i < r->op.n; i++) {
		struct ft_rec_op *op = op_of(r, i);

		op->rec_class =
			(uint8_t)class_of(r, &known, op, ft_recording_operator(r, op));
	}
	recording_updates(r);
	for (size_t i = 0; i < r->op.n; i++)
		mark(r, &m, op_of(r, i));
	arena_release(&scratch);
}
