/*
 * calibrate/probes/gpu/attention.c - attention cells: which implementation, its memory and
 * inputs; then it is checked (check.c) and timed
 *
 * Fused: cuDNN on NVIDIA; on AMD what a shim lends (attention_shim.h). `unfused` is
 * there on both: an upper bound on time, and labelled as what it is.
 */
#include "calibrate/probes/gpu/attention.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/probes/gpu/shim.h"

#ifdef PROBE_HIP
/* The shim beside this plug-in. */
static const struct ft_shim *find_shim(void)
{
	const struct ft_shim *shim;
	char folder[4200] = "", why[512];
	Dl_info self;

	if (dladdr((void *)(uintptr_t)gpu_attention_open, &self) && self.dli_fname &&
	    strrchr(self.dli_fname, '/'))
		snprintf(folder, sizeof(folder), "%.*s",
			 (int)(strrchr(self.dli_fname, '/') - self.dli_fname),
			 self.dli_fname);
	shim = shim_load(folder[0] ? folder : NULL, why, sizeof(why));
	if (why[0])
		fprintf(stderr, "foretoken-probe: %s; attention is unfused\n", why);
	return shim;
}
#endif

void gpu_attention_open(struct probe_session *s, struct probe_device *d)
{
	struct gpu_attention *a = calloc(1, sizeof(*a));

	if (!a)
		abort();
	s->attention = a;
#ifdef PROBE_HIP
	a->shim = find_shim();
	snprintf(d->attention, sizeof(d->attention), "%.47s",
		 a->shim ? a->shim->library : "none");
	snprintf(d->fused, sizeof(d->fused), "%s", a->shim ? a->shim->name : "");
#else
	attention_cudnn_version(d->attention, sizeof(d->attention));
	snprintf(d->fused, sizeof(d->fused), "cudnn");
	d->fused_fp8 = true;
#endif
}

void gpu_attention_close(struct probe_session *s)
{
	if (!s->attention)
		return;
#ifndef PROBE_HIP
	attention_cudnn_close(s->attention);
#endif
	(void)G(Free)(s->attention->pool);
	free(s->attention);
	s->attention = NULL;
}

static const struct attention_engine *engine_named(const struct gpu_attention *a,
						   const char *impl)
{
	if (!strcmp(impl, "unfused"))
		return attention_unfused();
	if (a->shim && !strcmp(impl, a->shim->name))
		return attention_shim_engine();
#ifndef PROBE_HIP
	if (!strcmp(impl, "cudnn"))
		return attention_cudnn();
#endif
	return NULL;
}

size_t attention_element(const struct attention_run *r, int tensor)
{
	return tensor == A_STATS ? 4 : r->fp8 ? 1 : 2;
}

void attention_fill(struct probe_session *s, const struct attention_run *r, int tensor)
{
	kernel_fill(r->at[tensor], r->numbers[tensor], r->dtype,
		    (uint64_t)(tensor + 1) << 40, s->stream);
}

static struct attention_run run_of(const struct probe_cell *c)
{
	struct attention_run r = {
		.batch = c->batch,
		.heads = c->heads,
		.kv_heads = c->kv_heads,
		.sequence = c->sequence,
		.head_dim = c->head_dim,
		.causal = c->causal,
		.trains = !strcmp(c->pass, "backward"),
		.fp8 = !strcmp(c->dtype, "fp8"),
		.scale = (float)(1 / sqrt((double)c->head_dim)),
	};
	size_t rows = (size_t)(c->batch * c->sequence), d = (size_t)c->head_dim;

	r.dtype = r.fp8 ? KERNEL_FP8 : KERNEL_BF16;
	for (int i = 0; i < A_TENSORS; i++) {
		bool few = i == A_K || i == A_V || i == A_DK || i == A_DV;

		r.factor[i] = 1;
		r.numbers[i] = rows * d * (size_t)(few ? c->kv_heads : c->heads);
	}
	r.numbers[A_STATS] = rows * (size_t)c->heads;
	/* as large as the largest results leave room for below 448 */
	if (r.fp8) {
		r.factor[A_O] = 64;
		r.factor[A_DQ] = r.factor[A_DK] = r.factor[A_DV] = 16;
	}
	return r;
}

/* A part of the pool for each tensor, and the rest for the engine. */
static enum probe_status place(struct probe_session *s, struct attention_run *r,
			       char *why, size_t n_why)
{
	struct gpu_attention *a = s->attention;
	int tensors = r->trains ? A_TENSORS : A_DO;
	size_t need = 0, size[A_TENSORS];

	for (int i = 0; i < tensors; i++) {
		size[i] =
			(r->numbers[i] * attention_element(r, i) + 255) & ~(size_t)255;
		need += size[i];
	}
	if (need + r->work_bytes > a->pool_bytes) {
		(void)G(Free)(a->pool);
		a->pool = NULL;
		a->pool_bytes = 0;
		GPU_TRY(G(Malloc)((void **)&a->pool, need + r->work_bytes));
		a->pool_bytes = need + r->work_bytes;
	}
	r->work = a->pool + need;
	need = 0;
	for (int i = 0; i < tensors; i++) {
		r->at[i] = a->pool + need;
		need += size[i];
	}
	GPU_TRY(G(MemsetAsync)(a->pool, 0xff, need, s->stream));
	attention_fill(s, r, A_Q);
	attention_fill(s, r, A_K);
	attention_fill(s, r, A_V);
	if (r->trains)
		attention_fill(s, r, A_DO);
	return PROBE_OK;
}

struct timed {
	const struct attention_engine *engine;
	struct attention_run *run;
	char *why;
	size_t n_why;
};

static enum probe_status queue_timed(struct probe_session *s, void *self)
{
	struct timed *t = self;

	return t->engine->queue(s, t->run, t->why, t->n_why);
}

enum probe_status gpu_attention(struct probe_session *s, const struct probe_cell *c,
				const struct probe_method *method,
				struct probe_time *out, char *why, size_t n_why)
{
	const struct attention_engine *e = engine_named(s->attention, c->impl);
	struct attention_run r = run_of(c);
	struct timed t = { e, &r, why, n_why };
	struct gpu_call call = { queue_timed, &t, why, n_why };
	enum probe_status status;

	if (!e) {
		snprintf(why, n_why, "no attention called '%.24s' here", c->impl);
		return PROBE_UNSUPPORTED;
	}
	status = e->open(s, &r, why, n_why);
	if (status == PROBE_OK)
		status = place(s, &r, why, n_why);
	if (status == PROBE_OK)
		status = e->bind(s, &r, why, n_why);
	if (status == PROBE_OK)
		status = attention_check(s, e, &r, &out->relative_error, why, n_why);
	r.backward = r.trains;
	if (status == PROBE_OK)
		status = gpu_time(s, &call, true, method, out);
	e->close(&r);
	return status;
}
