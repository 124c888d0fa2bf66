/* traces/work.c - what a work counts: operations, bytes, names */
#include <string.h>

#include "foretoken/traces.h"

double ft_work_flop(const struct ft_work *w)
{
	switch (w->kind) {
	case FT_GEMM:
		return 2.0 * (double)w->gemm.m * (double)w->gemm.n * (double)w->gemm.k;
	case FT_ATTENTION:
		return ft_attention_flop(
			w->attention.pass,
			(double)(w->attention.batch * w->attention.heads) *
				ft_attention_pairs((double)w->attention.queries,
						   (double)w->attention.keys,
						   (double)w->attention.window,
						   w->attention.causal),
			(double)w->attention.qk_head_dim,
			(double)w->attention.v_head_dim);
	default:
		return 0;
	}
}

double ft_work_bytes(const struct ft_work *w)
{
	double e = ft_dtype_bytes(w->dtype), m, n, k, groups;

	switch (w->kind) {
	case FT_GEMM:
		m = (double)w->gemm.m;
		n = (double)w->gemm.n;
		k = (double)w->gemm.k;
		groups = w->gemm.groups > 1 ? (double)w->gemm.groups : 1;
		if (w->gemm.layout == FT_WGRAD)
			return e * (m * n + m * k) +
			       groups * n * k * (w->gemm.accumulate ? 8 : 2);
		return e * groups * n * k + (w->gemm.layout == FT_FORWARD ?
						     e * m * k + 2 * m * n :
						     e * m * n + 2 * m * k);
	case FT_ATTENTION:
		return (w->attention.pass == FT_PASS_FORWARD ? 1 : 2.5) * e *
		       (double)w->attention.batch *
		       ((double)w->attention.queries * (double)w->attention.heads +
			(double)w->attention.keys * (double)w->attention.kv_heads) *
		       (double)(w->attention.qk_head_dim + w->attention.v_head_dim);
	case FT_MEMORY_BOUND:
		return w->memory.bytes;
	default:
		return w->communication.bytes;
	}
}

const char *ft_group_name(enum ft_group group)
{
	static const char *const names[FT_GROUPS] = {
		"tp",	 "cp",	    "ep",  "etp", "dp",
		"shard", "replica", "edp", "pp",  "embedding",
	};

	return names[group];
}

const char *ft_stream_name(enum ft_stream stream)
{
	static const char *const names[FT_STREAMS] = {
		"compute",
		"copy",
		"gather",
		"reduce",
		"tp",
		"cp",
		"ep",
		"send_forward",
		"send_backward",
		"recv_forward",
		"recv_backward",
	};

	return names[stream];
}

const char *ft_event_name(enum ft_event event)
{
	static const char *const names[FT_EVENTS] = { "unsharded", "head" };

	return names[event];
}

const char *ft_memory_name(enum ft_memory category)
{
	static const char *const names[FT_MEMORIES] = {
		"weights", "gradients", "optimizer", "activations", "other",
	};

	return names[category];
}
