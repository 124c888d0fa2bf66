/*
 * traces/block.c - one transformer layer, forward and backward, as a rank sees it
 *
 * Byte counts of element-wise work are those of the tensors each kernel reads and
 * writes: `recipe` below holds them per fusion, in bytes per token and feature.
 * The compiled and eager columns were read off recorded PyTorch steps; the kernels
 * column counts what hand-fused kernels must touch.
 */
#include <string.h>

#include "traces/block.h"

/* Bytes per token: c.h * hidden + c.f * MLP width + c.r * (q + k) features. */
struct coefficients {
	double h, f, r;
	int launches;
};

struct recipe {
	struct coefficients norm, rope, shuffle, add_norm, add;
	struct coefficients gated, plain; /* activation */
	struct coefficients norm_back, rope_back, add_back;
	struct coefficients gated_back, plain_back;
};

static const struct recipe *recipe_of(const struct builder *b)
{
	static const struct recipe eager = {
		.norm = { 16, 0, 0, 2 },
		.rope = { 0, 0, 30, 16 },
		.shuffle = { 4, 0, 0, 1 },
		.add_norm = { 22, 0, 0, 3 },
		.add = { 6, 0, 0, 1 },
		.gated = { 0, 10, 0, 2 },
		.plain = { 0, 4, 0, 1 },
		.norm_back = { 22, 0, 0, 6 },
		.rope_back = { 0, 0, 30, 18 },
		.add_back = { 6, 0, 0, 1 },
		.gated_back = { 0, 20, 0, 4 },
		.plain_back = { 0, 6, 0, 1 },
	};
	static const struct recipe compiled = {
		.norm = { 4, 0, 0, 1 },
		.rope = { 0, 0, 4, 2 },
		.shuffle = { 4, 0, 0, 1 },
		.add_norm = { 8, 0, 0, 1 },
		.add = { 6, 0, 0, 1 },
		.gated = { 0, 6, 0, 1 },
		.plain = { 0, 4, 0, 1 },
		.norm_back = { 19, 0, 0, 4 },
		.rope_back = { 2, 0, 4, 3 },
		.add_back = { 0, 0, 0, 0 },
		.gated_back = { 0, 12, 0, 2 },
		.plain_back = { 0, 6, 0, 1 },
	};
	static const struct recipe kernels = {
		.norm = { 4, 0, 0, 1 },
		.rope = { 0, 0, 4, 2 },
		.shuffle = { 0, 0, 0, 0 },
		.add_norm = { 10, 0, 0, 2 },
		.add = { 6, 0, 0, 1 },
		.gated = { 0, 6, 0, 1 },
		.plain = { 0, 4, 0, 1 },
		.norm_back = { 8, 0, 0, 2 },
		.rope_back = { 0, 0, 4, 2 },
		.add_back = { 6, 0, 0, 1 },
		.gated_back = { 0, 10, 0, 1 },
		.plain_back = { 0, 6, 0, 1 },
	};

	switch (b->rules->fusion) {
	case FT_FUSION_EAGER:
		return &eager;
	case FT_FUSION_COMPILED:
		return &compiled;
	default:
		return &kernels;
	}
}

struct layer_sizes sizes_of(const struct builder *b, int64_t layer)
{
	const struct ft_layer *l = &b->model->layer[layer];
	int64_t tp = b->plan->tp;
	struct layer_sizes s = { .l = l,
				 .tokens = b->tokens,
				 .h = b->model->hidden_size };

	s.part = b->plan->sequence_parallel ? s.tokens / tp : s.tokens;
	s.heads = l->heads / tp;
	s.kv_heads = l->kv_heads > tp ? l->kv_heads / tp : 1;
	s.q = s.heads * l->qk_head_dim;
	s.k = s.kv_heads * l->qk_head_dim;
	s.v = s.kv_heads * l->v_head_dim;
	s.out = s.heads * l->v_head_dim;
	s.f = l->intermediate / tp;
	s.fp8 = ft_dtype_bytes(b->plan->precision) < 2;
	return s;
}

/* One element-wise kernel; tokens of h-wide work may be a slice of those of the
 * split features. fp32 residuals (autocast) and dropout masks cost extra. */
static double element_bytes(const struct builder *b, const struct layer_sizes *s,
			    struct coefficients c)
{
	double width = b->autocast ? 1.5 : 1; /* fp32 residual stream */
	/* latent attention rotates a part of each query head, and one key */
	int64_t turned = s->l->kv_lora_rank ? (s->heads + 1) * s->l->qk_rope_head_dim :
					      s->q + s->k;

	return c.h * width * (double)(s->h * s->part) +
	       (double)s->tokens * (c.f * (double)s->f + c.r * (double)turned);
}

static void element(struct builder *b, const struct layer_sizes *s, const char *name,
		    const char *curve, struct coefficients c)
{
	put_memory(b, name, curve, element_bytes(b, s, c), c.launches);
}

/* A norm takes whole rows. */
static void norm(struct builder *b, const struct layer_sizes *s, const char *name,
		 struct coefficients c)
{
	put_rows(b, name, b->model->norm == FT_RMS_NORM ? "rmsnorm" : "layernorm",
		 element_bytes(b, s, c), c.launches, 2 * (double)s->h);
}

/* Forward it is fused with the addition that follows and writes a mask; backward
 * it is a kernel that reads gradient and mask and writes a gradient. */
static void dropout(struct builder *b, const struct layer_sizes *s, bool backward)
{
	if (b->rules->dropout)
		put_memory(b, "dropout", "default",
			   (backward ? 5 : 1) * (double)(s->h * s->part),
			   backward ? 1 : 0);
}

/* ---- tensor-parallel collectives ---------------------------------------- */

static double activation_bytes(const struct layer_sizes *s)
{
	return 2 * (double)(s->tokens * s->h);
}

/* What is gathered goes into a product, and travels in its format if it can. */
static double gathered_bytes(const struct builder *b, const struct layer_sizes *s,
			     bool both)
{
	return gathered_width(b, both) * (double)(s->tokens * s->h);
}

/* Before a column-split product: slices of the sequence become whole. */
static void enter_split(struct builder *b, const struct layer_sizes *s, bool gradient)
{
	if (b->plan->sequence_parallel &&
	    put_collective(b, "tp_all_gather", FT_STREAM_TP, FT_ALL_GATHER, FT_GROUP_TP,
			   gathered_bytes(b, s, gradient)) &&
	    !b->plan->overlap_tp)
		need(b, FT_STREAM_TP);
}

/* Around a row-split product: partial sums become slices, or whole sums. */
static void leave_split(struct builder *b, const struct layer_sizes *s)
{
	bool sp = b->plan->sequence_parallel;

	if (put_collective(b, sp ? "tp_reduce_scatter" : "tp_all_reduce", FT_STREAM_TP,
			   sp ? FT_REDUCE_SCATTER : FT_ALL_REDUCE, FT_GROUP_TP,
			   activation_bytes(s)))
		need(b, FT_STREAM_TP);
}

/* The next compute op waits for what ran beside the last product. */
static void join_split(struct builder *b)
{
	if (b->plan->tp > 1)
		need(b, FT_STREAM_TP);
}

static void row_product(struct builder *b, const struct layer_sizes *s,
			const char *name, int64_t n, int64_t k)
{
	if (b->plan->overlap_tp) {
		bool more = b->plan->tp > 1;

		leave_split(b, s);
		b->needs[FT_STREAM_TP] = false;
		put_gemm(b, name, FT_FORWARD, s->tokens, n, k);
		if (more)
			need(b, FT_STREAM_TP);
		return;
	}
	put_gemm(b, name, FT_FORWARD, s->tokens, n, k);
	leave_split(b, s);
}

static void up_products(struct builder *b, const struct layer_sizes *s,
			enum ft_layout layout)
{
	bool gated = b->model->activation == FT_SWIGLU;

	if (gated && !b->rules->fused_gate_up) {
		put_gemm(b, "gate", layout, s->tokens, s->f, s->h);
		put_gemm(b, "up", layout, s->tokens, s->f, s->h);
	} else {
		put_gemm(b, gated ? "gate_up" : "up", layout, s->tokens,
			 gated ? 2 * s->f : s->f, s->h);
	}
}

/* Backward of a column-split product: dgrad, its sum over ranks, wgrad. Megatron
 * gathers the input again beside dgrad and reduces beside wgrad. */
static void column_back(struct builder *b, const struct layer_sizes *s,
			void (*products)(struct builder *, const struct layer_sizes *,
					 enum ft_layout))
{
	bool megatron = b->rules->tensor_parallel == FT_TP_MEGATRON;
	bool sp = b->plan->sequence_parallel && b->plan->tp > 1;

	if (megatron && sp)
		put_collective(b, "tp_all_gather", FT_STREAM_TP, FT_ALL_GATHER,
			       FT_GROUP_TP, gathered_bytes(b, s, false));
	products(b, s, FT_DGRAD);
	leave_split(b, s);
	if (megatron)
		b->needs[FT_STREAM_TP] = false; /* wgrad need not wait */
	products(b, s, FT_WGRAD);
	if (megatron)
		join_split(b);
}

/* Backward of a row-split product: the output's gradient becomes whole first. */
static void row_back(struct builder *b, const struct layer_sizes *s, const char *name,
		     int64_t n, int64_t k)
{
	enter_split(b, s, true);
	put_cast(b, (double)s->tokens * (double)n, 1);
	linear_back(b, name, s->tokens, n, k);
	if (b->plan->overlap_tp)
		join_split(b);
}

/* ---- forward -------------------------------------------------------------- */

static void attention_half(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);

	norm(b, s, "norm", r->norm);
	put_norm_cast(b, (double)(s->h * s->part));
	enter_split(b, s, false);
	qkv_forward(b, s);
	if (b->plan->overlap_tp)
		join_split(b);
	if (b->model->qk_norm)
		put_memory(b, "qk_norm", "rmsnorm",
			   4 * (double)(s->tokens * (s->q + s->k)), 2);
	if (b->model->positions == FT_ROPE)
		element(b, s, "rope", "default", r->rope);
	attention_core(b, s, false);
	element(b, s, "transpose", "copy", r->shuffle);
	put_cast(b, (double)(s->tokens * s->out), 1);
	row_product(b, s, "attention_out", s->h, s->out);
	dropout(b, s, false);
	norm(b, s, "add_norm", r->add_norm);
}

static void mlp_half(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);
	bool gated = b->model->activation == FT_SWIGLU;

	put_norm_cast(b, (double)(s->h * s->part));
	enter_split(b, s, false);
	up_products(b, s, FT_FORWARD);
	if (b->plan->overlap_tp)
		join_split(b);
	element(b, s, "activation", gated ? "swiglu" : "gelu",
		gated ? r->gated : r->plain);
	put_cast(b, (double)(s->tokens * s->f), 1);
	row_product(b, s, "down", s->h, s->f);
}

/* Attention, and the MLP up to where tokens leave for their experts. */
static void forward_begin(struct builder *b, const struct layer_sizes *s)
{
	attention_half(b, s);
	if (!s->l->experts)
		mlp_half(b, s);
	else
		experts_send(b, s->l);
	b->graphed = b->plan->graphs == FT_GRAPHS_FULL;
}

static void forward_end(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);

	if (s->l->experts)
		experts_return(b, s->l);
	dropout(b, s, false);
	element(b, s, "add", "add", r->add);
	b->graphed = false;
}

static void forward_ops(struct builder *b, const struct layer_sizes *s)
{
	forward_begin(b, s);
	if (s->l->experts)
		experts_run(b, s->l);
	forward_end(b, s);
}

/* A layer begins: what the host pays for it, and what a graph holds of it. */
static void begin_layer(struct builder *b, bool backward)
{
	enum ft_graphs graphs = b->plan->graphs;

	host(b, backward ? FT_HOST_BLOCK_BACKWARD : FT_HOST_BLOCK_FORWARD,
	     graphs == FT_GRAPHS_NONE ? 1 : 0);
	if (b->plan->tp > 1 && graphs == FT_GRAPHS_NONE)
		host(b, backward ? FT_HOST_TENSOR_BACKWARD : FT_HOST_TENSOR_FORWARD, 1);
	if (graphs != FT_GRAPHS_NONE)
		host(b, FT_HOST_GRAPH, 1);
}

void layer_forward(struct builder *b, int64_t layer)
{
	struct layer_sizes s = sizes_of(b, layer);

	begin_layer(b, false);
	b->graphed = b->plan->graphs != FT_GRAPHS_NONE;
	forward_ops(b, &s);
}

/* ---- backward ------------------------------------------------------------- */

static void bias_gradients(struct builder *b, const struct layer_sizes *s)
{
	double features = (double)(s->q + s->k + s->v + 2 * s->h + s->f);

	if (b->model->linear_bias)
		put_memory(b, "bias_gradient", "default",
			   2 * (double)s->tokens * features, 4);
}

static void mlp_back(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);
	bool gated = b->model->activation == FT_SWIGLU;

	row_back(b, s, "down", s->h, s->f);
	element(b, s, "activation_back", gated ? "swiglu" : "gelu",
		gated ? r->gated_back : r->plain_back);
	put_cast(b, (double)(s->tokens * s->f * (gated ? 2 : 1)), 1);
	column_back(b, s, up_products);
}

static void attention_back(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);

	dropout(b, s, true);
	row_back(b, s, "attention_out", s->h, s->out);
	attention_core(b, s, true);
	if (b->model->positions == FT_ROPE)
		element(b, s, "rope_back", "default", r->rope_back);
	if (b->model->qk_norm)
		put_memory(b, "qk_norm_back", "rmsnorm",
			   8 * (double)(s->tokens * (s->q + s->k)), 4);
	put_cast(b, (double)(s->tokens * (s->q + s->k + s->v)), 1);
	column_back(b, s, qkv_products);
	latent_back(b, s);
	norm(b, s, "norm_back", r->norm_back);
	element(b, s, "add_back", "add", r->add_back);
}

/* All but every second product, attention and reductions. */
static void every_op(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);

	norm(b, s, "norm", r->norm);
	qkv_forward(b, s);
	element(b, s, "rope", "default", r->rope);
	norm(b, s, "add_norm", r->add_norm);
	if (!s->l->experts) {
		put_gemm(b, "up", FT_FORWARD, s->tokens, s->f, s->h);
		element(b, s, "activation", "swiglu", r->gated);
	}
}

static void activate(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);
	bool gated = b->model->activation == FT_SWIGLU;

	if (s->l->experts)
		experts_activate(b, s->l);
	else
		element(b, s, "activation", gated ? "swiglu" : "gelu",
			gated ? r->gated : r->plain);
}

static void mlp_again(struct builder *b, const struct layer_sizes *s, unsigned set)
{
	if (s->l->experts) {
		if (set & FT_MODULE_EXPERTS) {
			experts_send(b, s->l);
			experts_run(b, s->l);
			experts_return(b, s->l);
		} else if (set & FT_MODULE_ACTIVATION) {
			activate(b, s);
		}
		return;
	}
	if (set & FT_MODULE_MLP) {
		mlp_half(b, s);
		return;
	}
	if (set & FT_MODULE_MLP_UP)
		up_products(b, s, FT_FORWARD);
	if (set & (FT_MODULE_ACTIVATION | FT_MODULE_MLP_DOWN))
		activate(b, s);
	if (set & FT_MODULE_MLP_DOWN)
		put_gemm(b, "down", FT_FORWARD, s->tokens, s->h, s->f);
}

/* What selective recomputation runs again. */
static void selective_ops(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);
	unsigned set = recomputed_modules(b);

	if (set & FT_MODULE_OPS)
		every_op(b, s);
	if (set & FT_MODULE_MLA_UP && s->l->kv_lora_rank)
		latent_up(b, s);
	if (set & FT_MODULE_CORE_ATTENTION)
		attention_again(b, s);
	if (set & FT_MODULE_OUT_PROJECTION)
		put_gemm(b, "attention_out", FT_FORWARD, s->tokens, s->h, s->out);
	if (set & FT_MODULE_NORM) {
		norm(b, s, "norm", r->norm);
		norm(b, s, "add_norm", r->add_norm);
	}
	mlp_again(b, s, set);
}

/* What recomputation runs again before a layer's backward. */
static void run_again(struct builder *b, const struct layer_sizes *s)
{
	enum ft_recompute how = layer_recompute(b, s->l - b->model->layer);

	if (how == FT_RECOMPUTE_FULL) {
		begin_layer(b, false);
		forward_ops(b, s);
		b->graphed = b->plan->graphs != FT_GRAPHS_NONE;
	} else if (how == FT_RECOMPUTE_SELECTIVE) {
		selective_ops(b, s);
	}
}

/* The MLP's backward up to where gradients of tokens leave for their experts. */
static void backward_begin(struct builder *b, const struct layer_sizes *s)
{
	dropout(b, s, true);
	if (!s->l->experts) {
		mlp_back(b, s);
		return;
	}
	b->graphed = b->plan->graphs == FT_GRAPHS_FULL;
	experts_send_back(b, s->l);
}

static void backward_end(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);

	b->graphed = b->plan->graphs != FT_GRAPHS_NONE;
	if (s->l->experts)
		experts_return_back(b, s->l);
	norm(b, s, "norm_back", r->norm_back);
	element(b, s, "add_back", "add", r->add_back);
	attention_back(b, s);
	bias_gradients(b, s);
	b->graphed = false;
}

void layer_backward(struct builder *b, int64_t layer)
{
	struct layer_sizes s = sizes_of(b, layer);

	begin_layer(b, true);
	b->graphed = b->plan->graphs != FT_GRAPHS_NONE;
	run_again(b, &s);
	backward_begin(b, &s);
	if (s.l->experts)
		experts_run_back(b, s.l);
	backward_end(b, &s);
}

/* Tokens that are on their way are of this pass; what follows waits for them. */
static void of_pass(struct builder *b, bool backward)
{
	b->exchanged = backward ? FT_EVENT_EXCHANGED_BACK : FT_EVENT_EXCHANGED;
}

static void take_up(struct builder *b, bool backward, bool routed)
{
	of_pass(b, backward);
	if (routed && b->g->group[FT_GROUP_EP].size > 1)
		await_event(b, b->exchanged);
}

void layer_pair(struct builder *b, int64_t forward, int64_t backward)
{
	struct layer_sizes f = sizes_of(b, forward), k = sizes_of(b, backward);
	bool routed = f.l->experts > 0, routed_back = k.l->experts > 0;

	begin_layer(b, true);
	begin_layer(b, false);
	b->graphed = b->plan->graphs != FT_GRAPHS_NONE;
	run_again(b, &k);
	of_pass(b, true);
	backward_begin(b, &k);
	of_pass(b, false);
	b->graphed = b->plan->graphs != FT_GRAPHS_NONE;
	forward_begin(b, &f);
	take_up(b, true, routed_back);
	if (routed_back)
		experts_run_back(b, k.l);
	take_up(b, false, routed);
	if (routed)
		experts_run(b, f.l);
	take_up(b, true, routed_back);
	backward_end(b, &k);
	take_up(b, false, routed);
	forward_end(b, &f);
	b->exchanged = FT_EVENTS;
}
