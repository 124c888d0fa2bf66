/* calibrate/probes/gpu/shim_attention.c - attention through a shim (attention_shim.h) */
#include <stdio.h>

#include "calibrate/probes/gpu/attention.h"

static struct ft_shim_problem problem_of(struct probe_session *s,
					 const struct attention_run *r, bool backward)
{
	return (struct ft_shim_problem){
		.batch = r->batch,
		.heads = r->heads,
		.kv_heads = r->kv_heads,
		.sequence = r->sequence,
		.head_dim = r->head_dim,
		.causal = r->causal,
		.backward = backward,
		.scale = r->scale,
		.q = r->at[A_Q],
		.k = r->at[A_K],
		.v = r->at[A_V],
		.d_o = r->at[A_DO],
		.o = r->at[A_O],
		.stats = r->at[A_STATS],
		.d_q = r->at[A_DQ],
		.d_k = r->at[A_DK],
		.d_v = r->at[A_DV],
		.workspace = r->work,
		.workspace_bytes = (int64_t)r->work_bytes,
		.stream = (void *)s->stream,
	};
}

static enum probe_status open_shim(struct probe_session *s, struct attention_run *r,
				   char *why, size_t n_why)
{
	const struct ft_shim *shim = s->attention->shim;

	for (int pass = 0; pass <= r->trains; pass++) {
		struct ft_shim_problem p = problem_of(s, r, pass);
		int64_t bytes = r->fp8 ? -1 : shim->workspace(&p);

		if (bytes < 0) {
			snprintf(why, n_why, "%s has no kernel for this",
				 shim->library);
			return PROBE_UNSUPPORTED;
		}
		if ((size_t)bytes > r->work_bytes)
			r->work_bytes = (size_t)bytes;
	}
	return PROBE_OK;
}

static enum probe_status bind_shim(struct probe_session *s, struct attention_run *r,
				   char *why, size_t n_why)
{
	(void)s, (void)r, (void)why, (void)n_why;
	return PROBE_OK;
}

static enum probe_status queue_shim(struct probe_session *s, struct attention_run *r,
				    char *why, size_t n_why)
{
	struct ft_shim_problem p = problem_of(s, r, r->backward);
	int code = s->attention->shim->run(&p);

	if (code)
		snprintf(why, n_why, "%s answers %d", s->attention->shim->library,
			 code);
	return code ? PROBE_FAILED : PROBE_OK;
}

static void close_shim(struct attention_run *r)
{
	(void)r;
}

const struct attention_engine *attention_shim_engine(void)
{
	static const struct attention_engine engine = { open_shim, bind_shim,
							queue_shim, close_shim };

	return &engine;
}
