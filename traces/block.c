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
	s.gate = b->model->gated_output ? s.q : 0;
	if (l->linear_heads) {
		s.q = s.k = l->linear_key_heads * l->linear_key_dim / tp;
		s.v = s.out = s.gate = l->linear_heads * l->linear_value_dim / tp;
	}
	s.f = l->intermediate / tp;
	s.beside = b->model->parallel && !l->experts;
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

/* fp8 products need their 16-bit input cast, and a transposed copy of it for the weight's
 * gradient. */
static void cast(struct builder *b, const struct layer_sizes *s, double elements)
{
	if (s->fp8)
		put_memory(b, "cast_fp8", "cast",
			   (b->plan->lora.rank ? 3 : 4) * elements, 1);
}

/* ---- tensor-parallel collectives ---------------------------------------- */

static double activation_bytes(const struct layer_sizes *s)
{
	return 2 * (double)(s->tokens * s->h);
}

/* Before a column-split product: slices of the sequence become whole. */
static void enter_split(struct builder *b, const struct layer_sizes *s)
{
	if (b->plan->sequence_parallel &&
	    put_collective(b, "tp_all_gather", FT_STREAM_TP, FT_ALL_GATHER, FT_GROUP_TP,
			   activation_bytes(s)) &&
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

/* The norms that a layer has beyond the two before its halves: gemma's, behind them. */
static void norm_behind(struct builder *b, const struct layer_sizes *s, bool backward)
{
	const struct recipe *r = recipe_of(b);

	if (b->model->norms > 2)
		norm(b, s, backward ? "norm_behind_back" : "norm_behind",
		     backward ? r->norm_back : r->norm);
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
 * gathers the input again beside dgrad and reduces beside wgrad; a frozen weight needs
 * no input. */
static void column_back(struct builder *b, const struct layer_sizes *s,
			void (*products)(struct builder *, const struct layer_sizes *,
					 enum ft_layout))
{
	bool megatron = b->rules->tensor_parallel == FT_TP_MEGATRON;
	bool sp = b->plan->sequence_parallel && b->plan->tp > 1;

	if (megatron && sp && !b->plan->lora.rank)
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
static void row_back(struct builder *b, const struct layer_sizes *s, const char *name,
		     int64_t n, int64_t k)
{
	enter_split(b, s);
	cast(b, s, (double)s->tokens * (double)n);
	linear_back(b, name, s->tokens, n, k);
	if (b->plan->overlap_tp)
		join_split(b);
}

/* ---- forward -------------------------------------------------------------- */

/* Attention from the products of q, k and v to its own output. */
static void attention_middle(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);

	if (s->l->linear_heads) {
		delta_core(b, s, false);
		return;
	}
	if (b->model->qk_norm)
		put_memory(b, "qk_norm", "rmsnorm",
			   4 * (double)(s->tokens * (s->q + s->k)), 2);
	if (b->model->positions == FT_ROPE)
		element(b, s, "rope", "default", r->rope);
	attention_core(b, s, false);
	put_memory(b, "output_gate", "swiglu", 6 * (double)(s->tokens * s->gate), 1);
	element(b, s, "transpose", "copy", r->shuffle);
}

static void attention_half(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);

	norm(b, s, "norm", r->norm);
	if (s->beside && b->model->norms > 1)
		norm(b, s, "norm", r->norm);
	enter_split(b, s);
	qkv_forward(b, s);
	if (b->plan->overlap_tp)
		join_split(b);
	adapters(b, s, SITE_QKV, false);
	attention_middle(b, s);
	cast(b, s, (double)(s->tokens * s->out));
	if (s->beside) { /* its sum over ranks is the MLP's */
		put_gemm(b, "attention_out", FT_FORWARD, s->tokens, s->h, s->out);
		adapters(b, s, SITE_OUT, false);
		return;
	}
	row_product(b, s, "attention_out", s->h, s->out);
	adapters(b, s, SITE_OUT, false);
	norm_behind(b, s, false);
	dropout(b, s, false);
	norm(b, s, "add_norm", r->add_norm);
}

static void mlp_half(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);
	bool gated = b->model->activation == FT_SWIGLU;

	if (!s->beside)
		enter_split(b, s);
	up_products(b, s, FT_FORWARD);
	if (b->plan->overlap_tp)
		join_split(b);
	adapters(b, s, SITE_UP, false);
	element(b, s, "activation", gated ? "swiglu" : "gelu",
		gated ? r->gated : r->plain);
	cast(b, s, (double)(s->tokens * s->f));
	row_product(b, s, "down", s->h, s->f);
	adapters(b, s, SITE_DOWN, false);
}

static void forward_ops(struct builder *b, int64_t layer)
{
	const struct recipe *r = recipe_of(b);
	struct layer_sizes s = sizes_of(b, layer);

	attention_half(b, &s);
	if (s.l->experts)
		experts_forward(b, s.l);
	else
		mlp_half(b, &s);
	norm_behind(b, &s, false);
	dropout(b, &s, false);
	element(b, &s, "add", "add", r->add);
	if (s.beside)
		put_memory(b, "join", "add", 2 * (double)(s.h * s.part), 0);
}

void layer_forward(struct builder *b, int64_t layer)
{
	host(b, FT_HOST_BLOCK_FORWARD, 1);
	if (b->plan->tp > 1)
		host(b, FT_HOST_TENSOR_FORWARD, 1);
	forward_ops(b, layer);
}

/* ---- backward ------------------------------------------------------------- */

static void bias_gradients(struct builder *b, const struct layer_sizes *s)
{
	const struct ft_model *m = b->model;
	bool mlp = m->mlp_bias && !s->l->experts;
	bool plain = !s->l->linear_heads && !s->l->kv_lora_rank;
	int64_t features = (m->qkv_bias && plain ? s->q + s->gate + s->k + s->v : 0) +
			   (m->out_bias && plain ? s->h : 0) + (mlp ? s->h + s->f : 0);

	if (b->plan->lora.rank)
		return;
	put_memory(b, "bias_gradient", "default", 2 * (double)(s->tokens * features),
		   (m->qkv_bias && plain) + (m->out_bias && plain) + 2 * mlp);
}

static void mlp_back(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);
	bool gated = b->model->activation == FT_SWIGLU;

	row_back(b, s, "down", s->h, s->f);
	adapters(b, s, SITE_DOWN, true);
	element(b, s, "activation_back", gated ? "swiglu" : "gelu",
		gated ? r->gated_back : r->plain_back);
	cast(b, s, (double)(s->tokens * s->f * (gated ? 2 : 1)));
	adapters(b, s, SITE_UP, true);
	if (!s->beside) {
		column_back(b, s, up_products);
		return;
	}
	up_products(b, s,
		    FT_DGRAD); /* its input's gradient is summed with attention's */
	up_products(b, s, FT_WGRAD);
}

static void middle_back(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);

	if (s->l->linear_heads) {
		delta_core(b, s, true);
		return;
	}
	put_memory(b, "output_gate_back", "swiglu", 10 * (double)(s->tokens * s->gate),
		   1);
	attention_core(b, s, true);
	if (b->model->positions == FT_ROPE)
		element(b, s, "rope_back", "default", r->rope_back);
	if (b->model->qk_norm)
		put_memory(b, "qk_norm_back", "rmsnorm",
			   8 * (double)(s->tokens * (s->q + s->k)), 4);
}

static void attention_back(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);

	if (s->beside) { /* the gradient is whole already */
		linear_back(b, "attention_out", s->tokens, s->h, s->out);
	} else {
		dropout(b, s, true);
		norm_behind(b, s, true);
		row_back(b, s, "attention_out", s->h, s->out);
	}
	adapters(b, s, SITE_OUT, true);
	middle_back(b, s);
	adapters(b, s, SITE_QKV, true);
	cast(b, s, (double)(s->tokens * (s->q + s->gate + s->k + s->v)));
	column_back(b, s, qkv_products);
	latent_back(b, s);
	norm(b, s, "norm_back", r->norm_back);
	if (s->beside && b->model->norms > 1)
		norm(b, s, "norm_back", r->norm_back);
	element(b, s, "add_back", "add", r->add_back);
}

/* What selective recomputation runs again. */
static void selective_ops(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);

	if (b->rules->selective == FT_SELECTIVE_ATTENTION) {
		attention_again(b, s);
		return;
	}
	norm(b, s, "norm", r->norm);
	qkv_forward(b, s);
	element(b, s, "rope", "default", r->rope);
	norm(b, s, "add_norm", r->add_norm);
	if (!s->l->experts) {
		put_gemm(b, "up", FT_FORWARD, s->tokens, s->f, s->h);
		element(b, s, "activation", "swiglu", r->gated);
	}
}

void layer_backward(struct builder *b, int64_t layer)
{
	const struct recipe *r = recipe_of(b);
	struct layer_sizes s = sizes_of(b, layer);

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
	norm_behind(b, &s, true);
	if (s.l->experts)
		experts_backward(b, s.l);
	else
		mlp_back(b, &s);
	if (!s.beside) {
		norm(b, &s, "norm_back", r->norm_back);
		element(b, &s, "add_back", "add", r->add_back);
	}
	attention_back(b, &s);
	bias_gradients(b, &s);
}
