/* calibrate/predict.c - what a profile says about a measured cell */
#include <string.h>

#include "base/text.h"
#include "calibrate/fit.h"
#include "calibrate/store.h"
#include "foretoken/hw.h"
#include "foretoken/sim.h"

/* Bytes read and written to one of the source buffer. PyTorch's eager gated
 * activation is two kernels (silu, then a product). */
static const struct {
	const char *kernel;
	double own, torch;
} traffic[] = {
	{ "copy", 2, 2 },	 { "add", 3, 3 },      { "rmsnorm", 2, 2 },
	{ "layernorm", 2, 2 },	 { "swiglu", 3, 5 },   { "gelu", 2, 2 },
	{ "rope", 2, 2 },	 { "softmax", 2, 2 },  { "cross_entropy", 2, 2 },
	{ "adamw", 7, 7 },	 { "cast", 1.5, 1.5 }, { "concat", 2, 4 },
	{ "mul", 3, 3 },	 { "silu", 2, 2 },     { "adamw_bf16", 7, 7 },
	{ "dropout", 2.5, 2.5 },
};

const char *fit_memory_kernel(size_t i)
{
	return i < sizeof(traffic) / sizeof(*traffic) ? traffic[i].kernel : NULL;
}

bool fit_is_memory_kernel(const char *kernel)
{
	for (size_t i = 0; i < sizeof(traffic) / sizeof(*traffic); i++)
		if (text_begins_with(kernel, traffic[i].kernel))
			return true;
	return false;
}

double measurement_attention_flop(const struct ft_measurement *m)
{
	enum ft_pass pass = FT_PASS_FORWARD;

	(void)ft_pass_find(m->pass, &pass);
	return ft_attention_flop(
		pass,
		m->batch * m->heads *
			ft_attention_pairs(m->sequence, m->sequence, 0, m->causal),
		m->head_dim, m->head_dim);
}

bool fit_from_torch(const struct ft_measurement *m)
{
	return !strcmp(m->impl, "torch") || !strcmp(m->backend, "torch");
}

double fit_traffic(const char *kernel, bool torch)
{
	for (size_t i = 0; i < sizeof(traffic) / sizeof(*traffic); i++)
		if (!strcmp(traffic[i].kernel, kernel))
			return torch ? traffic[i].torch : traffic[i].own;
	return 2;
}

double fit_moved_bytes(const struct ft_measurement *m)
{
	enum ft_dtype dtype = FT_BF16;
	double e;

	(void)ft_dtype_find(m->dtype, &dtype);
	e = ft_dtype_bytes(dtype);
	return fit_traffic(m->kernel, fit_from_torch(m)) *
	       (m->m > 0 ? m->m * m->n * e : m->bytes);
}

double fit_row_bytes(const struct ft_measurement *m)
{
	enum ft_dtype dtype = FT_BF16;

	(void)ft_dtype_find(m->dtype, &dtype);
	return m->m > 0 ? m->n * ft_dtype_bytes(dtype) : 0;
}

static bool work_of(const struct ft_measurement *m, struct ft_work *w)
{
	*w = (struct ft_work){ .name = m->kernel, .dtype = FT_BF16 };
	if (m->dtype[0] && !ft_dtype_find(m->dtype, &w->dtype))
		return false;
	if (measurement_is(m, "gemm")) {
		w->kind = FT_GEMM;
		w->gemm.m = (int64_t)m->m;
		w->gemm.n = (int64_t)m->n;
		w->gemm.k = (int64_t)m->k;
		w->gemm.groups = 1;
		w->gemm.accumulate = m->accumulate;
		(void)ft_layout_find(m->layout, &w->gemm.layout);
		return m->m > 0 && m->n > 0 && m->k > 0;
	}
	if (measurement_is(m, "attention")) {
		w->kind = FT_ATTENTION;
		(void)ft_pass_find(m->pass, &w->attention.pass);
		w->attention.batch = (int64_t)m->batch;
		w->attention.heads = (int64_t)m->heads;
		w->attention.kv_heads = (int64_t)m->kv_heads;
		w->attention.queries = w->attention.keys = (int64_t)m->sequence;
		w->attention.qk_head_dim = w->attention.v_head_dim =
			(int64_t)m->head_dim;
		w->attention.causal = m->causal;
		w->attention.impl = m->impl[0] ? m->impl : NULL;
		return m->heads > 0 && m->sequence > 0;
	}
	w->kind = FT_MEMORY_BOUND;
	w->memory.kernel = m->kernel;
	w->memory.warm = m->warm;
	w->memory.bytes = fit_moved_bytes(m);
	w->memory.row_bytes = fit_row_bytes(m);
	return measurement_is(m, "memory");
}

double measurement_predict_us(const struct ft_gpu *gpu, const struct ft_measurement *m)
{
	struct ft_collective_result c;
	struct ft_prediction p;
	struct ft_error ignored;
	struct ft_work w;

	if (measurement_is(m, "collective")) {
		struct ft_collective_call call = {
			.bytes = m->bytes,
			.shape = { (int64_t)m->gpus, 1 },
		};
		struct ft_links links = { m->fabric[0] ? m->fabric : NULL, 0 };

		if (!ft_collective_find(m->kernel, &call.op) ||
		    !ft_collective_inside(gpu, &links, NULL, &call, &c, &ignored))
			return 0;
		return c.duration.time_s * 1e6;
	}
	if (!work_of(m, &w) ||
	    !ft_kernel_predict(gpu, &w,
			       m->sustained ? FT_CLOCK_SUSTAINED : FT_CLOCK_BURST, &p,
			       &ignored))
		return 0;
	if (measurement_is(m, "gemm"))
		p.time_s *= ft_gpu_source_factor(gpu, m->source, w.dtype);
	return p.time_s * 1e6;
}
