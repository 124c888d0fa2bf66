/*
 * traces/block.c - one transformer layer, forward and backward, as a rank sees it
 *
 * Byte counts of element-wise work are those of the tensors each kernel reads and
 * writes: `recipe` below holds them per fusion, in bytes per token and feature.
 * The compiled and eager columns were read off recorded PyTorch steps; the kernels
 * column counts what hand-fused kernels must touch.
 */
#include <string.h>

#include "traces/build.h"

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
		.norm = { 16, 0, 0, 2 },     .rope = { 0, 0, 30, 16 },
		.shuffle = { 4, 0, 0, 1 },   .add_norm = { 22, 0, 0, 3 },
		.add = { 6, 0, 0, 1 },	     .gated = { 0, 10, 0, 2 },
		.plain = { 0, 4, 0, 1 },     .norm_back = { 22, 0, 0, 6 },
		.rope_back = { 0, 0, 30, 18 }, .add_back = { 6, 0, 0, 1 },
		.gated_back = { 0, 20, 0, 4 }, .plain_back = { 0, 6, 0, 1 },
	};
	static const struct recipe compiled = {
		.norm = { 4, 0, 0, 1 },	     .rope = { 0, 0, 4, 2 },
		.shuffle = { 4, 0, 0, 1 },   .add_norm = { 8, 0, 0, 1 },
		.add = { 6, 0, 0, 1 },	     .gated = { 0, 6, 0, 1 },
		.plain = { 0, 4, 0, 1 },     .norm_back = { 19, 0, 0, 4 },
		.rope_back = { 2, 0, 4, 3 }, .add_back = { 0, 0, 0, 0 },
		.gated_back = { 0, 12, 0, 2 }, .plain_back = { 0, 6, 0, 1 },
	};
	static const struct recipe kernels = {
		.norm = { 4, 0, 0, 1 },	     .rope = { 0, 0, 4, 2 },
		.shuffle = { 0, 0, 0, 0 },   .add_norm = { 10, 0, 0, 2 },
		.add = { 6, 0, 0, 1 },	     .gated = { 0, 6, 0, 1 },
		.plain = { 0, 4, 0, 1 },     .norm_back = { 8, 0, 0, 2 },
		.rope_back = { 0, 0, 4, 2 }, .add_back = { 6, 0, 0, 1 },
		.gated_back = { 0, 10, 0, 1 }, .plain_back = { 0, 6, 0, 1 },
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

/* A layer's sizes on one rank. */
struct share {
	const struct ft_layer *l;
	int64_t tokens, part; /* of the rank; of its slice under sequence parallelism */
	int64_t h, heads, kv_heads, q, k, v, out, f;
	bool fp8;
};

static struct share share_of(const struct builder *b, int64_t layer)
{
	const struct ft_layer *l = &b->model->layer[layer];
	int64_t tp = b->plan->tp;
	struct share s = { .l = l, .tokens = b->tokens,
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
static void element(struct builder *b, const struct share *s, const char *name,
		    const char *curve, struct coefficients c)
{
	double width = b->autocast ? 1.5 : 1; /* fp32 residual stream */
	/* latent attention rotates a part of each query head, and one key */
	int64_t turned = s->l->kv_lora_rank ?
		(s->heads + 1) * s->l->qk_rope_head_dim : s->q + s->k;
	double bytes = c.h * width * (double)(s->h * s->part) +
		       (double)s->tokens * (c.f * (double)s->f +
					    c.r * (double)turned);

	put_memory(b, name, curve, bytes, c.launches);
}

/* Forward it is fused with the addition that follows and writes a mask; backward
 * it is a kernel that reads gradient and mask and writes a gradient. */
static void dropout(struct builder *b, const struct share *s, bool backward)
{
	if (b->rules->dropout)
		put_memory(b, "dropout", "default",
			   (backward ? 5 : 1) * (double)(s->h * s->part),
			   backward ? 1 : 0);
}

/* fp8 products need their 16-bit input cast, and a transposed copy of it. */
static void cast(struct builder *b, const struct share *s, double elements)
{
	if (s->fp8)
		put_memory(b, "cast_fp8", "cast", 4 * elements, 1);
}

/* ---- tensor-parallel collectives ---------------------------------------- */

static double activation_bytes(const struct share *s)
{
	return 2 * (double)(s->tokens * s->h);
}

/* Before a column-split product: slices of the sequence become whole. */
static void enter_split(struct builder *b, const struct share *s)
{
	if (b->plan->sequence_parallel &&
	    put_collective(b, "tp_all_gather", FT_STREAM_TP, FT_ALL_GATHER,
			   FT_GROUP_TP, activation_bytes(s)) &&
	    !b->plan->overlap_tp)
		need(b, FT_STREAM_TP);
}

/* Around a row-split product: partial sums become slices, or whole sums. */
static void leave_split(struct builder *b, const struct share *s)
{
	bool sp = b->plan->sequence_parallel;

	if (put_collective(b, sp ? "tp_reduce_scatter" : "tp_all_reduce",
			   FT_STREAM_TP, sp ? FT_REDUCE_SCATTER : FT_ALL_REDUCE,
			   FT_GROUP_TP, activation_bytes(s)))
		need(b, FT_STREAM_TP);
}

/* The next compute op waits for what ran beside the last product. */
static void join_split(struct builder *b)
{
	if (b->plan->tp > 1)
		need(b, FT_STREAM_TP);
}

static void row_product(struct builder *b, const struct share *s,
			const char *name, int64_t n, int64_t k)
{
	if (b->plan->overlap_tp) {
		bool more = b->plan->tp > 1;

		leave_split(b, s);
		b->needs[FT_STREAM_TP] = false;
		put_gemm(b, name, FT_FORWARD, s->tokens, n, k, 1);
		if (more)
			need(b, FT_STREAM_TP);
		return;
	}
	put_gemm(b, name, FT_FORWARD, s->tokens, n, k, 1);
	leave_split(b, s);
}

/* ---- attention ----------------------------------------------------------- */

static bool is_unfused(const struct builder *b)
{
	return !strcmp(b->rules->attention, "unfused");
}

/* Products and softmax over the full square of scores, one kernel each. */
static void unfused_attention(struct builder *b, const struct share *s,
			      bool backward)
{
	int64_t groups = b->sequences * s->heads;
	int64_t seq = b->plan->sequence, m = groups * (seq / b->plan->cp);
	double scores = (double)m * (double)seq;
	int times = backward ? 2 : 1;

	for (int i = 0; i < times; i++)
		put_gemm(b, "scores", FT_FORWARD, m, seq, s->l->qk_head_dim,
			 groups);
	put_memory(b, "softmax", "softmax", scores * (backward ? 6 : 4), 1);
	if (b->rules->dropout)
		put_memory(b, "attention_dropout", "default", 5 * scores, 1);
	for (int i = 0; i < times; i++)
		put_gemm(b, "context", FT_FORWARD, m, s->l->v_head_dim, seq,
			 groups);
}

static void fused_attention(struct builder *b, const struct share *s,
			    enum ft_pass pass)
{
	struct ft_work w = { .kind = FT_ATTENTION, .name = "attention",
			     .dtype = b->plan->precision == FT_FP16 ? FT_FP16 :
								      FT_BF16 };

	w.attention.pass = pass;
	w.attention.batch = b->sequences;
	w.attention.heads = s->heads;
	w.attention.kv_heads = s->kv_heads;
	w.attention.queries = b->plan->sequence / b->plan->cp;
	w.attention.keys = b->plan->sequence;
	w.attention.qk_head_dim = s->l->qk_head_dim;
	w.attention.v_head_dim = s->l->v_head_dim;
	w.attention.window = s->l->window;
	w.attention.causal = true;
	w.attention.impl = b->rules->attention[0] ? b->rules->attention : NULL;
	put_op(b, &w, FT_STREAM_COMPUTE, pass == FT_PASS_FORWARD ? 1 : 5);
}

static void attention(struct builder *b, const struct share *s, bool backward)
{
	double kv = 2 * (double)(s->tokens * (s->k + s->v)) *
		    (double)(b->plan->cp - 1);

	/* ring exchange of keys and values beside the blocks that are there */
	if (put_collective(b, "cp_exchange", FT_STREAM_CP, FT_SENDRECV,
			   FT_GROUP_CP, backward ? 2 * kv : kv))
		host(b, FT_HOST_COLLECTIVE, (double)(b->plan->cp - 2));
	if (is_unfused(b))
		unfused_attention(b, s, backward);
	else
		fused_attention(b, s, backward ? FT_PASS_BACKWARD :
						 FT_PASS_FORWARD);
	if (b->plan->cp > 1)
		need(b, FT_STREAM_CP);
}

/* ---- projections ---------------------------------------------------------- */

static void latent_forward(struct builder *b, const struct share *s)
{
	const struct ft_layer *l = s->l;
	int64_t up = s->heads * (l->qk_head_dim - l->qk_rope_head_dim +
				 l->v_head_dim);

	if (l->q_lora_rank)
		put_gemm(b, "q_down", FT_FORWARD, s->part, l->q_lora_rank, s->h, 1);
	put_gemm(b, "kv_down", FT_FORWARD, s->part,
		 l->kv_lora_rank + l->qk_rope_head_dim, s->h, 1);
	put_memory(b, "latent_norm", "rmsnorm", 4 * (double)s->part *
		   (double)(l->q_lora_rank + l->kv_lora_rank), 2);
	put_gemm(b, "q_up", FT_FORWARD, s->tokens, s->q,
		 l->q_lora_rank ? l->q_lora_rank : s->h, 1);
	put_gemm(b, "kv_up", FT_FORWARD, s->tokens, up, l->kv_lora_rank, 1);
}

static void qkv_forward(struct builder *b, const struct share *s)
{
	if (s->l->kv_lora_rank) {
		latent_forward(b, s);
	} else if (b->rules->fused_qkv) {
		put_gemm(b, "qkv", FT_FORWARD, s->tokens, s->q + s->k + s->v,
			 s->h, 1);
	} else {
		put_gemm(b, "q", FT_FORWARD, s->tokens, s->q, s->h, 1);
		put_gemm(b, "k", FT_FORWARD, s->tokens, s->k, s->h, 1);
		put_gemm(b, "v", FT_FORWARD, s->tokens, s->v, s->h, 1);
	}
}

static void linear_back(struct builder *b, const char *name, int64_t m,
			int64_t n, int64_t k)
{
	put_gemm(b, name, FT_DGRAD, m, n, k, 1);
	put_gemm(b, name, FT_WGRAD, m, n, k, 1);
}

static void qkv_products(struct builder *b, const struct share *s,
			 enum ft_layout layout)
{
	const struct ft_layer *l = s->l;

	if (l->kv_lora_rank) {
		int64_t up = s->heads * (l->qk_head_dim - l->qk_rope_head_dim +
					 l->v_head_dim);

		put_gemm(b, "kv_up", layout, s->tokens, up, l->kv_lora_rank, 1);
		put_gemm(b, "q_up", layout, s->tokens, s->q,
			 l->q_lora_rank ? l->q_lora_rank : s->h, 1);
	} else if (b->rules->fused_qkv) {
		put_gemm(b, "qkv", layout, s->tokens, s->q + s->k + s->v, s->h, 1);
	} else {
		put_gemm(b, "q", layout, s->tokens, s->q, s->h, 1);
		put_gemm(b, "k", layout, s->tokens, s->k, s->h, 1);
		put_gemm(b, "v", layout, s->tokens, s->v, s->h, 1);
	}
}

static void up_products(struct builder *b, const struct share *s,
			enum ft_layout layout)
{
	bool gated = b->model->activation == FT_SWIGLU;

	if (gated && !b->rules->fused_gate_up) {
		put_gemm(b, "gate", layout, s->tokens, s->f, s->h, 1);
		put_gemm(b, "up", layout, s->tokens, s->f, s->h, 1);
	} else {
		put_gemm(b, gated ? "gate_up" : "up", layout, s->tokens,
			 gated ? 2 * s->f : s->f, s->h, 1);
	}
}

/* Backward of a column-split product: dgrad, its sum over ranks, wgrad. Megatron
 * gathers the input again beside dgrad and reduces beside wgrad. */
static void column_back(struct builder *b, const struct share *s,
			void (*products)(struct builder *, const struct share *,
					 enum ft_layout))
{
	bool megatron = b->rules->tensor_parallel == FT_TP_MEGATRON;
	bool sp = b->plan->sequence_parallel && b->plan->tp > 1;

	if (megatron && sp)
		put_collective(b, "tp_all_gather", FT_STREAM_TP, FT_ALL_GATHER,
			       FT_GROUP_TP, activation_bytes(s));
	products(b, s, FT_DGRAD);
	leave_split(b, s);
	if (megatron)
		b->needs[FT_STREAM_TP] = false; /* wgrad need not wait */
	products(b, s, FT_WGRAD);
	if (megatron)
		join_split(b);
}

/* Backward of a row-split product: the output's gradient becomes whole first. */
static void row_back(struct builder *b, const struct share *s, const char *name,
		     int64_t n, int64_t k)
{
	enter_split(b, s);
	cast(b, s, (double)s->tokens * (double)n);
	linear_back(b, name, s->tokens, n, k);
	if (b->plan->overlap_tp)
		join_split(b);
}

static const char *norm_curve(const struct builder *b)
{
	return b->model->norm == FT_RMS_NORM ? "rmsnorm" : "layernorm";
}

/* ---- forward -------------------------------------------------------------- */

static void attention_half(struct builder *b, const struct share *s)
{
	const struct recipe *r = recipe_of(b);

	element(b, s, "norm", norm_curve(b), r->norm);
	enter_split(b, s);
	qkv_forward(b, s);
	if (b->plan->overlap_tp)
		join_split(b);
	if (b->model->qk_norm)
		put_memory(b, "qk_norm", "rmsnorm",
			   4 * (double)(s->tokens * (s->q + s->k)), 2);
	if (b->model->positions == FT_ROPE)
		element(b, s, "rope", "rope", r->rope);
	attention(b, s, false);
	element(b, s, "transpose", "copy", r->shuffle);
	cast(b, s, (double)(s->tokens * s->out));
	row_product(b, s, "attention_out", s->h, s->out);
	dropout(b, s, false);
	element(b, s, "add_norm", norm_curve(b), r->add_norm);
}

static void mlp_half(struct builder *b, const struct share *s)
{
	const struct recipe *r = recipe_of(b);
	bool gated = b->model->activation == FT_SWIGLU;

	enter_split(b, s);
	up_products(b, s, FT_FORWARD);
	if (b->plan->overlap_tp)
		join_split(b);
	element(b, s, "activation", gated ? "swiglu" : "gelu",
		gated ? r->gated : r->plain);
	cast(b, s, (double)(s->tokens * s->f));
	row_product(b, s, "down", s->h, s->f);
}

static void forward_ops(struct builder *b, int64_t layer)
{
	const struct recipe *r = recipe_of(b);
	struct share s = share_of(b, layer);

	attention_half(b, &s);
	if (s.l->experts)
		experts_forward(b, s.l);
	else
		mlp_half(b, &s);
	dropout(b, &s, false);
	element(b, &s, "add", "add", r->add);
}

void layer_forward(struct builder *b, int64_t layer)
{
	host(b, FT_HOST_BLOCK_FORWARD, 1);
	if (b->plan->tp > 1)
		host(b, FT_HOST_TENSOR_FORWARD, 1);
	forward_ops(b, layer);
}

/* ---- backward ------------------------------------------------------------- */

static void bias_gradients(struct builder *b, const struct share *s)
{
	double features = (double)(s->q + s->k + s->v + 2 * s->h + s->f);

	if (b->model->linear_bias)
		put_memory(b, "bias_gradient", "default",
			   2 * (double)s->tokens * features, 4);
}

static void mlp_back(struct builder *b, const struct share *s)
{
	const struct recipe *r = recipe_of(b);
	bool gated = b->model->activation == FT_SWIGLU;

	row_back(b, s, "down", s->h, s->f);
	element(b, s, "activation_back", gated ? "swiglu" : "gelu",
		gated ? r->gated_back : r->plain_back);
	cast(b, s, (double)(s->tokens * s->f * (gated ? 2 : 1)));
	column_back(b, s, up_products);
}

static void latent_back(struct builder *b, const struct share *s)
{
	const struct ft_layer *l = s->l;

	if (!l->kv_lora_rank)
		return;
	put_memory(b, "latent_norm_back", "rmsnorm", 8 * (double)s->part *
		   (double)(l->q_lora_rank + l->kv_lora_rank), 4);
	if (l->q_lora_rank)
		linear_back(b, "q_down", s->part, l->q_lora_rank, s->h);
	linear_back(b, "kv_down", s->part,
		    l->kv_lora_rank + l->qk_rope_head_dim, s->h);
}

static void attention_back(struct builder *b, const struct share *s)
{
	const struct recipe *r = recipe_of(b);

	dropout(b, s, true);
	row_back(b, s, "attention_out", s->h, s->out);
	attention(b, s, true);
	if (b->model->positions == FT_ROPE)
		element(b, s, "rope_back", "rope", r->rope_back);
	if (b->model->qk_norm)
		put_memory(b, "qk_norm_back", "rmsnorm",
			   8 * (double)(s->tokens * (s->q + s->k)), 4);
	cast(b, s, (double)(s->tokens * (s->q + s->k + s->v)));
	column_back(b, s, qkv_products);
	latent_back(b, s);
	element(b, s, "norm_back", norm_curve(b), r->norm_back);
	element(b, s, "add_back", "add", r->add_back);
}

/* What selective recomputation runs again. */
static void selective_ops(struct builder *b, const struct share *s)
{
	const struct recipe *r = recipe_of(b);

	if (b->rules->selective == FT_SELECTIVE_ATTENTION) {
		if (is_unfused(b))
			unfused_attention(b, s, false);
		else
			fused_attention(b, s, FT_PASS_FORWARD);
		return;
	}
	element(b, s, "norm", norm_curve(b), r->norm);
	qkv_forward(b, s);
	element(b, s, "rope", "rope", r->rope);
	element(b, s, "add_norm", norm_curve(b), r->add_norm);
	if (!s->l->experts) {
		put_gemm(b, "up", FT_FORWARD, s->tokens, s->f, s->h, 1);
		element(b, s, "activation", "swiglu", r->gated);
	}
}

void layer_backward(struct builder *b, int64_t layer)
{
	const struct recipe *r = recipe_of(b);
	struct share s = share_of(b, layer);

	host(b, FT_HOST_BLOCK_BACKWARD, 1);
	if (b->plan->tp > 1)
		host(b, FT_HOST_TENSOR_BACKWARD, 1);
	if (b->plan->recompute == FT_RECOMPUTE_FULL) {
		host(b, FT_HOST_BLOCK_FORWARD, 1);
		if (b->plan->tp > 1)
			host(b, FT_HOST_TENSOR_FORWARD, 1);
		forward_ops(b, layer);
	} else if (b->plan->recompute == FT_RECOMPUTE_SELECTIVE) {
		selective_ops(b, &s);
	}
	dropout(b, &s, true);
	if (s.l->experts)
		experts_backward(b, s.l);
	else
		mlp_back(b, &s);
	element(b, &s, "norm_back", norm_curve(b), r->norm_back);
	element(b, &s, "add_back", "add", r->add_back);
	attention_back(b, &s);
	bias_gradients(b, &s);
}

/* ---- memory and work done again -------------------------------------------- */

/*
 * Bytes one layer keeps for backward, on a rank. Per token, read off allocator
 * peaks of PyTorch steps (mean error 0.8 % there):
 *   gated    6f + 14h + 4kv  (eager keeps one more product: 8f)
 *   plain    4f + 16h        (fp32 residuals of autocast: 4f + 22h)
 *   full recomputation 2h
 * Split layers keep 4h whole (2h slices under Megatron's scheme) and 1/tp of the rest.
 */
double layer_saved_bytes(const struct builder *b, int64_t layer)
{
	struct share s = share_of(b, layer);
	const struct ft_layer *l = s.l;
	bool gated = b->model->activation == FT_SWIGLU;
	bool eager = b->rules->fusion == FT_FUSION_EAGER;
	double tokens = (double)s.tokens, h = (double)s.h;
	double tp = (double)b->plan->tp, sliced = (double)s.part / tokens;
	double wide = (gated ? (eager ? 8 : 6) : 4) * (double)s.f;
	double kv = 2 * (double)(s.k + s.v), rest, whole;

	if (b->plan->recompute == FT_RECOMPUTE_FULL)
		return 2 * h * (double)s.part;
	if (l->experts)
		wide = (6 * (double)l->expert_intermediate + 4 * h) *
			       (double)l->experts_per_token * sliced +
		       6 * (double)l->shared_intermediate / tp;
	rest = (gated ? 10 : b->autocast ? 18 : 12) * h / tp;
	whole = 4 * h * (b->rules->tensor_parallel == FT_TP_MEGATRON ? sliced : 1);
	if (b->plan->recompute == FT_RECOMPUTE_SELECTIVE)
		wide *= b->rules->selective == FT_SELECTIVE_OPS ? 0.5 : 1;
	if (is_unfused(b) && b->plan->recompute == FT_RECOMPUTE_NONE)
		rest += (b->rules->dropout ? 5 : 2) * (double)s.heads *
			(double)b->plan->sequence;
	return tokens * (wide + whole + rest + kv +
			 (b->rules->dropout ? 2 * h * sliced : 0));
}

double layer_recomputed_flop(const struct builder *b, int64_t layer)
{
	struct share s = share_of(b, layer);
	double products = layer_held(b, layer).dense;
	double pairs = 2 * (double)(s.heads * b->sequences) *
		       (double)(s.l->qk_head_dim + s.l->v_head_dim) *
		       (double)b->plan->sequence * (double)b->plan->sequence /
		       (double)b->plan->cp * 0.5;

	switch (b->plan->recompute) {
	case FT_RECOMPUTE_FULL:
		return 2 * products * (double)s.tokens + pairs;
	case FT_RECOMPUTE_SELECTIVE:
		return b->rules->selective == FT_SELECTIVE_ATTENTION ? pairs :
			products * (double)s.tokens;
	default:
		return 0;
	}
}
