/* traces/graph_work.c - the shapes of a work, from a line of a step graph's text */
#include <math.h>

#include "base/arena.h"
#include "traces/graph_words.h"

static const char *layout_at(int i)
{
	return ft_layout_name((enum ft_layout)i);
}

/* Are so many multiplications too many? Their number is the product of edges. */
static bool products(struct graph_line *l, double n)
{
	return n <= GRAPH_MOST_PRODUCTS ||
	       graph_fail(l, 1, "%g multiplications are more than %g", n,
			  GRAPH_MOST_PRODUCTS);
}

/* An edge of a shape, 1 when it is not given. */
static bool edge(struct graph_line *l, const char *key, int64_t *out)
{
	*out = 1;
	return graph_whole_of(l, key, 1, LIMIT_GRAPH_NUMBER, out);
}

static bool read_gemm(struct graph_line *l, struct ft_work *w)
{
	int layout = graph_find(graph_value(l, "layout"), layout_at, FT_LAYOUTS);

	if (layout < 0)
		return graph_fail(l, 0, "layout= is forward, dgrad or wgrad");
	w->gemm.layout = (enum ft_layout)layout;
	w->gemm.groups = 1;
	if (!graph_truth(l, "accumulate", &w->gemm.accumulate) ||
	    !graph_truth(l, "fast", &w->gemm.fast) ||
	    !graph_truth(l, "static_tiles", &w->gemm.static_tiles) ||
	    !graph_whole_of(l, "m", 1, LIMIT_GRAPH_NUMBER, &w->gemm.m) ||
	    !graph_whole_of(l, "n", 1, LIMIT_GRAPH_NUMBER, &w->gemm.n) ||
	    !graph_whole_of(l, "k", 1, LIMIT_GRAPH_NUMBER, &w->gemm.k) ||
	    !graph_whole_of(l, "groups", 1, LIMIT_EXPERTS, &w->gemm.groups))
		return false;
	if (!w->gemm.m || !w->gemm.n || !w->gemm.k)
		return graph_fail(l, 0, "a gemm needs m=, n= and k=");
	return products(l, (double)w->gemm.m * (double)w->gemm.n * (double)w->gemm.k *
				   (double)w->gemm.groups);
}

static const char *pass_at(int i)
{
	return ft_pass_name((enum ft_pass)i);
}

static const char *keys_at(int i)
{
	return ft_keys_name((enum ft_keys)i);
}

/* keys_are=: in_order when it is not given. Of keys that are gathered or scored there may be no values. */
static bool read_keys(struct graph_line *l, struct ft_work *w)
{
	const char *text = graph_value(l, "keys_are");
	int keys = text ? graph_find(text, keys_at, FT_KEYS) : FT_KEYS_IN_ORDER;

	if (keys < 0)
		return graph_fail(l, 0, "keys_are= is in_order, chosen or scored");
	w->attention.keys_are = (enum ft_keys)keys;
	w->attention.v_head_dim = 1;
	return graph_whole_of(l, "v_head_dim", keys == FT_KEYS_IN_ORDER,
			      LIMIT_GRAPH_NUMBER, &w->attention.v_head_dim);
}

static bool read_attention(struct graph_line *l, struct arena *mem, struct ft_work *w)
{
	int pass = graph_find(graph_value(l, "pass"), pass_at, FT_PASSES);
	const char *impl = graph_value(l, "impl");

	if (pass < 0)
		return graph_fail(l, 0, "pass= is forward, backward or both");
	w->attention.pass = (enum ft_pass)pass;
	w->attention.impl = impl ? arena_text(mem, impl) : NULL;
	if (!graph_truth(l, "causal", &w->attention.causal) ||
	    !edge(l, "batch", &w->attention.batch) ||
	    !edge(l, "heads", &w->attention.heads) ||
	    !edge(l, "kv_heads", &w->attention.kv_heads) ||
	    !edge(l, "queries", &w->attention.queries) ||
	    !edge(l, "keys", &w->attention.keys) ||
	    !edge(l, "qk_head_dim", &w->attention.qk_head_dim) || !read_keys(l, w) ||
	    !graph_whole_of(l, "window", 0, LIMIT_GRAPH_NUMBER, &w->attention.window))
		return false;
	return products(
		l,
		(double)w->attention.batch *
			fmax((double)w->attention.heads,
			     (double)w->attention.kv_heads) *
			(double)w->attention.queries * (double)w->attention.keys *
			(double)(w->attention.qk_head_dim + w->attention.v_head_dim));
}

static bool read_bytes(struct graph_line *l, double *bytes)
{
	size_t at = graph_option(l, "bytes");

	return at ? graph_number(l, at, 0, GRAPH_MOST_BYTES, bytes) :
		    graph_fail(l, 0, "bytes= is missing");
}

static bool read_memory(struct graph_line *l, struct arena *mem, struct ft_work *w)
{
	const char *kernel = graph_value(l, "kernel");

	if (!kernel)
		return graph_fail(l, 0, "a memory-bound work needs kernel=");
	w->memory.kernel = arena_text(mem, kernel);
	return graph_truth(l, "warm", &w->memory.warm) &&
	       graph_truth(l, "low_priority", &w->memory.low_priority) &&
	       graph_number_of(l, "row_bytes", GRAPH_MOST_BYTES,
			       &w->memory.row_bytes) &&
	       graph_whole_of(l, "steps", 0, LIMIT_GRAPH_NUMBER, &w->memory.steps) &&
	       graph_number_of(l, "flop", 2 * GRAPH_MOST_PRODUCTS, &w->memory.flop) &&
	       read_bytes(l, &w->memory.bytes);
}

static bool read_communication(struct graph_line *l, struct ft_work *w)
{
	const char *op = graph_value(l, "op");
	int group = graph_find(graph_value(l, "group"), graph_group_at, FT_GROUPS);

	if (!op || !ft_collective_find(op, &w->communication.op) || group < 0)
		return graph_fail(l, 0, "a communication needs op= and group=");
	w->communication.group = (enum ft_group)group;
	return graph_truth(l, "copy_engine", &w->communication.copy_engine) &&
	       graph_number_of(l, "fanout", LIMIT_EXPERTS,
			       &w->communication.fanout.copies) &&
	       graph_number_of(l, "fanout_of", LIMIT_EXPERTS,
			       &w->communication.fanout.of) &&
	       graph_number_of(l, "fanout_groups", w->communication.fanout.of,
			       &w->communication.fanout.groups) &&
	       read_bytes(l, &w->communication.bytes);
}

bool graph_work(struct graph_line *l, struct arena *mem, struct ft_work *w)
{
	switch (w->kind) {
	case FT_GEMM:
		return read_gemm(l, w);
	case FT_ATTENTION:
		return read_attention(l, mem, w);
	case FT_MEMORY_BOUND:
		return read_memory(l, mem, w);
	default:
		return read_communication(l, w);
	}
}
