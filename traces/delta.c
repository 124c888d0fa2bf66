/*
 * traces/delta.c - a gated delta rule in place of attention (Gated DeltaNet, arXiv 2412.06464), and what
 * a state space (traces/state_space.c) has in common with it
 *
 * A state of key x value numbers a head is carried along the sequence. It is computed in
 * chunks of C tokens (the paper's section 3.3, as its authors' kernels do): inside a chunk
 * products of C x C, between chunks products with the state. For each token and head:
 *   k k', q k'                         2 C dk
 *   w = T k, u = T v, (q k') v         C dk + 2 C dv
 *   w S, k' (u - w S), q S             3 dk dv
 * multiply-adds, in 16 bit. Backward runs them again and then two gradients of each. Not
 * modelled: that chunks of one head wait for each other, so that few heads fill no GPU.
 *
 * Over a context group a rank gets all tokens of its share of the heads, whatever attention
 * does: q, k, v, the gate and two numbers a head there, the output back, backward the other way.
 * Source: Megatron Core (github.com/NVIDIA/Megatron-LM, pull request 2614, read 2026-11-25).
 */
#include "traces/block.h"

enum { CHUNK = 64 }; /* tokens; flash-linear-attention's */

static void product(struct builder *b, const char *name, struct edges e, int64_t groups)
{
	put_product(b, &(struct ft_work){ .kind = FT_GEMM,
					  .name = name,
					  .dtype = FT_BF16,
					  .gemm.layout = FT_FORWARD,
					  .gemm.m = e.m,
					  .gemm.n = e.n,
					  .gemm.k = e.k,
					  .gemm.groups = groups });
}

static void delta_rule(struct builder *b, const struct layer_sizes *s)
{
	int64_t heads = s->l->linear_heads / b->plan->tp, m = s->tokens * heads;
	int64_t dk = s->l->linear_key_dim, dv = s->l->linear_value_dim;
	int64_t groups = (s->tokens + CHUNK - 1) / CHUNK * heads;

	for (int i = 0; i < 2; i++)
		product(b, "delta_scores", (struct edges){ m, CHUNK, dk }, groups);
	product(b, "delta_keys", (struct edges){ m, dk, CHUNK }, groups);
	for (int i = 0; i < 2; i++)
		product(b, "delta_values", (struct edges){ m, dv, CHUNK }, groups);
	for (int i = 0; i < 3; i++)
		product(b, "delta_state", (struct edges){ m, dv, dk }, groups);
}

/* One or two numbers for each value head of a rank. */
static int64_t few_features(const struct builder *b, const struct layer_sizes *s)
{
	return ft_layer_linear_rates(s->l) * s->l->linear_heads / b->plan->tp;
}

/* From a part of the tokens to a part of the heads, or back. */
static void deal(struct builder *b, const struct layer_sizes *s, int64_t features)
{
	if (put_collective(b, "cp_all_to_all", FT_STREAM_CP, FT_ALL_TO_ALL, FT_GROUP_CP,
			   2 * (double)(s->tokens * features)))
		need(b, FT_STREAM_CP);
}

/* By kind and pass. */
static const struct names {
	const char *conv[2], *norm[2];
} names[] = {
	{ { "delta_conv", "delta_conv_back" }, { "delta_norm", "delta_norm_back" } },
	{ { "state_conv", "state_conv_back" }, { "state_norm", "state_norm_back" } },
};

static void rule(struct builder *b, const struct layer_sizes *s, bool backward)
{
	if (s->l->state_chunk)
		state_space(b, s, backward);
	else
		for (int i = 0; i < (backward ? 3 : 1); i++)
			delta_rule(b, s);
}

/* The convolution and its activation, the rule, and a norm times a gate. */
void delta_core(struct builder *b, const struct layer_sizes *s, bool backward)
{
	const struct names *n = &names[s->l->state_chunk > 0];
	double channels = (double)(s->tokens * (s->q + s->k + s->v));
	double out = (double)(s->tokens * s->v);
	int64_t in = s->q + s->k + s->v + s->gate + few_features(b, s);

	deal(b, s, backward ? s->out : in);
	state_turn(b, s, in, backward);
	if (backward)
		put_memory(b, n->norm[1], "rmsnorm", 10 * out, 2);
	put_memory(b, n->conv[backward], "default", (backward ? 8 : 4) * channels,
		   backward ? 2 : 1);
	rule(b, s, backward);
	if (!backward)
		put_memory(b, n->norm[0], "rmsnorm", 6 * out, 1);
	deal(b, s, backward ? in : s->out);
}

/* q, k, v and the gate; and what each head takes, which fused stacks take along, as a state space's one matrix does. */
void delta_products(struct builder *b, const struct layer_sizes *s,
		    enum ft_layout layout)
{
	int64_t wide = s->q + s->k + s->v + s->gate;
	int64_t few = few_features(b, s);

	if (b->rules->fused_qkv || s->l->state_chunk) {
		put_gemm(b, s->l->state_chunk ? "state_in" : "delta_in", layout,
			 s->tokens, wide + few, s->h);
		return;
	}
	put_gemm(b, "delta_in", layout, s->tokens, wide, s->h);
	put_gemm(b, "delta_rates", layout, s->tokens, few, s->h);
}
