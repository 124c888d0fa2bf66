/* traces/work.c - what a work counts: operations, bytes, names */
#include <string.h>

#include "foretoken/traces.h"

const char *ft_work_kind_name(enum ft_work_kind kind)
{
	static const char *const names[FT_WORK_KINDS] = { "gemm", "attention", "memory",
							  "communication" };

	return names[kind];
}

const char *ft_keys_name(enum ft_keys keys)
{
	static const char *const names[FT_KEYS] = { "in_order", "chosen", "scored" };

	return names[keys];
}

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
	case FT_MEMORY_BOUND:
		return w->memory.flop;
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

/* ---- equality: a field of struct ft_work stands in one function below ------------- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_gemm(const struct ft_work *a, const struct ft_work *b)
{
	return a->gemm.layout == b->gemm.layout && a->gemm.m == b->gemm.m &&
	       a->gemm.n == b->gemm.n && a->gemm.k == b->gemm.k &&
	       a->gemm.groups == b->gemm.groups &&
	       a->gemm.accumulate == b->gemm.accumulate &&
	       a->gemm.fast == b->gemm.fast &&
	       a->gemm.static_tiles == b->gemm.static_tiles;
}

static bool same_attention(const struct ft_work *a, const struct ft_work *b)
{
	return a->attention.pass == b->attention.pass &&
	       a->attention.batch == b->attention.batch &&
	       a->attention.heads == b->attention.heads &&
	       a->attention.kv_heads == b->attention.kv_heads &&
	       a->attention.queries == b->attention.queries &&
	       a->attention.keys == b->attention.keys &&
	       a->attention.qk_head_dim == b->attention.qk_head_dim &&
	       a->attention.v_head_dim == b->attention.v_head_dim &&
	       a->attention.window == b->attention.window &&
	       a->attention.causal == b->attention.causal &&
	       a->attention.keys_are == b->attention.keys_are &&
	       same_text(a->attention.impl, b->attention.impl);
}

static bool same_memory(const struct ft_work *a, const struct ft_work *b)
{
	return a->memory.bytes == b->memory.bytes &&
	       a->memory.row_bytes == b->memory.row_bytes &&
	       a->memory.steps == b->memory.steps && a->memory.flop == b->memory.flop &&
	       a->memory.warm == b->memory.warm &&
	       a->memory.low_priority == b->memory.low_priority &&
	       same_text(a->memory.kernel, b->memory.kernel);
}

static bool same_fanout(const struct ft_fanout *a, const struct ft_fanout *b)
{
	return a->copies == b->copies && a->groups == b->groups && a->of == b->of;
}

static bool same_communication(const struct ft_work *a, const struct ft_work *b)
{
	return a->communication.op == b->communication.op &&
	       a->communication.group == b->communication.group &&
	       a->communication.bytes == b->communication.bytes &&
	       same_fanout(&a->communication.fanout, &b->communication.fanout) &&
	       a->communication.copy_engine == b->communication.copy_engine;
}

bool ft_work_same(const struct ft_work *a, const struct ft_work *b)
{
	if (a->kind != b->kind || a->dtype != b->dtype)
		return false;
	switch (a->kind) {
	case FT_GEMM:
		return same_gemm(a, b);
	case FT_ATTENTION:
		return same_attention(a, b);
	case FT_MEMORY_BOUND:
		return same_memory(a, b);
	default:
		return same_communication(a, b);
	}
}

bool ft_work_is_host_copy(const struct ft_work *w)
{
	return w->kind == FT_MEMORY_BOUND && w->memory.kernel &&
	       !strcmp(w->memory.kernel, FT_HOST_LINK);
}

bool ft_work_is_mark(const struct ft_work *w)
{
	return w->kind == FT_MEMORY_BOUND && w->memory.bytes <= 0;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h ^= v;
	h *= 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static uint64_t mix_number(uint64_t h, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return mix(h, bits);
}

static uint64_t mix_text(uint64_t h, const char *text)
{
	for (; text && *text; text++)
		h = mix(h, (unsigned char)*text);
	return h;
}

uint64_t ft_work_hash(const struct ft_work *w)
{
	uint64_t h = mix(w->kind, w->dtype);

	switch (w->kind) {
	case FT_GEMM:
		h = mix(mix(h, (uint64_t)w->gemm.m), (uint64_t)w->gemm.n);
		h = mix(mix(h, (uint64_t)w->gemm.k), (uint64_t)w->gemm.groups);
		return mix(h, w->gemm.static_tiles * 16 + w->gemm.layout * 4 +
				      w->gemm.fast * 2 + w->gemm.accumulate);
	case FT_ATTENTION:
		h = mix(mix(h, w->attention.pass), (uint64_t)w->attention.batch);
		h = mix(mix(h, (uint64_t)w->attention.heads),
			(uint64_t)w->attention.queries);
		return mix_text(mix(h, w->attention.keys_are), w->attention.impl);
	case FT_MEMORY_BOUND:
		return mix_text(mix_number(h, w->memory.bytes), w->memory.kernel);
	default:
		h = mix(mix(h, w->communication.op), w->communication.group);
		return mix_number(h, w->communication.bytes);
	}
}

const char *ft_group_name(enum ft_group group)
{
	static const char *const names[FT_GROUPS] = {
		"tp",	 "cp",	      "ep",  "etp",	     "dp",
		"shard", "replica",   "edp", "expert_shard", "expert_replica",
		"pp",	 "embedding",
	};

	return names[group];
}

const char *ft_stream_name(enum ft_stream stream)
{
	static const char *const names[FT_STREAMS] = {
		"compute",
		"copy",
		"offload",
		"fetch",
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
	static const char *const names[FT_EVENTS] = { "unsharded", "head", "exchanged",
						      "exchanged_back" };

	return names[event];
}

const char *ft_slot_name(enum ft_slot_kind kind)
{
	static const char *const names[FT_SLOT_KINDS] = { "forward", "backward",
							  "weights", "whole",
							  "flush",   "update" };

	return names[kind];
}

bool ft_slot_is_pass(enum ft_slot_kind kind)
{
	return kind < FT_SLOT_FLUSH;
}

const char *ft_memory_name(enum ft_memory category)
{
	static const char *const names[FT_MEMORIES] = {
		"weights", "gradients", "optimizer", "activations", "other",
	};

	return names[category];
}

double ft_memory_sum(const double bytes[FT_MEMORIES])
{
	double sum = 0;

	for (int i = 0; i < FT_MEMORIES; i++)
		sum += bytes[i];
	return sum;
}
