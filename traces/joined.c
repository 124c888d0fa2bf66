/*
 * traces/joined.c - weights that a model's class joins, and heads of which it turns a part
 *
 * Bytes a number backward, as counted from the operations of Transformers' modeling files; of q, k and
 * v together, w wide:
 *   split from one output    4: one kernel joins their gradients
 *   for each head            12: and lays them out by token again, across memory
 *   sliced                   22: each has zeros as wide as all (2 of 3 w) and a copy of its own
 *                            (4 of w); two sums (6 of 2 w)
 *   gate and up split        4, of both
 * of what is turned of q and k, joined with the rest of the head: 4 forward; backward zeros and a
 * copy for both (2 and 4), and a sum: 14. A part lies in short rows, which PyTorch's kernels walk
 * slowly: it is taken to cost what the whole head would.
 * One output that attention reads a part of stays whole: q and k beside what they were turned into.
 *
 * Megatron joins q, k and v by group of heads: where there are several groups of several heads, q is
 * copied out of its groups, 4 bytes a number across strides; backward one kernel joins the three
 * gradients, 4 each. A layer with keys and values of another has q alone. Source: Megatron Core's
 * SelfAttention.get_query_key_value_tensors, Transformer Engine's SplitAlongDim (read 2026-11-26).
 */
#include "traces/block.h"

bool joins_qkv(const struct builder *b)
{
	return ft_stack_joins_qkv(b->stack, b->model->joined_qkv != FT_APART);
}

bool joins_gate_up(const struct builder *b)
{
	return ft_stack_joins_gate_up(b->stack, b->model->joined_gate_up);
}

double joined_kept(const struct builder *b, const struct layer_sizes *s)
{
	return b->rules->model_classes && joins_qkv(b) &&
			       b->model->positions == FT_ROPE && !s->linear ?
		       2 * (double)(s->q + s->k) :
		       0;
}

/* Each as operations of its own. */
static bool in_operations(const struct builder *b)
{
	return b->rules->model_classes && by_operation(b);
}

/* Joined by group of heads, as Megatron has them? */
static bool joins_groups(const struct builder *b, const struct layer_sizes *s)
{
	return b->rules->fused_qkv && b->rules->fusion == FT_FUSION_KERNELS &&
	       !s->l->kv_lora_rank && !s->l->shares_kv;
}

void put_query_copy(struct builder *b, const struct layer_sizes *s)
{
	if (joins_groups(b, s) && s->kv_heads > 1 && s->heads > s->kv_heads)
		put_memory(b, "query_copy", "strided", 4 * (double)(s->tokens * s->q),
			   1);
}

void put_qkv_joined(struct builder *b, const struct layer_sizes *s)
{
	static const struct moved moved[] = { [FT_SPLIT] = { 4, 1 },
					      [FT_SPLIT_HEADS] = { 12, 2 },
					      [FT_SLICED] = { 22, 8 } };
	struct moved m = moved[b->model->joined_qkv];

	if (in_operations(b) && b->model->joined_qkv != FT_APART)
		put_memory(b, "qkv_join_back", "copy",
			   m.bytes * (double)(s->tokens * (s->q + s->kv)), m.launches);
	if (joins_groups(b, s))
		put_memory(b, "qkv_join_back", "concat",
			   4 * (double)(s->tokens * (s->q + s->kv)), 1);
}

void put_gate_up_joined(struct builder *b, const struct layer_sizes *s)
{
	if (in_operations(b) && b->model->joined_gate_up)
		put_memory(b, "gate_up_join_back", "copy",
			   8 * (double)(s->tokens * s->f), 1);
}

void put_rotary_joined(struct builder *b, const struct layer_sizes *s, bool backward)
{
	if (in_operations(b) && b->model->joined_rotary)
		put_memory(b, backward ? "rope_join_back" : "rope_join", "copy",
			   (backward ? 14 : 4) * (double)(s->tokens * (s->q + s->k)),
			   backward ? 10 : 2);
}

/* Of the sums in a recipe, 16 bytes a number in a layer: two behind q, k and v, one behind gate and up. */
static struct coefficients without_sums(struct coefficients c)
{
	c.h -= 8;
	c.launches -= 2;
	return c;
}

/* A frozen norm's weights have no gradient: a product and a sum over rows, 46 of 501 us at 16.8 million numbers of an H200
 * (measurements/probes/h200-2026-11-29-adapters-unseen), in bytes as the curve `add` moves them. */
static struct coefficients without_weights(struct coefficients c)
{
	c.h -= 11.8;
	c.launches -= 2;
	return c;
}

struct coefficients norm_back_of(const struct builder *b, const struct layer_sizes *s,
				 bool mlp)
{
	struct coefficients c = norm_recipe(b)->norm_back;
	bool gated = b->model->activation == FT_SWIGLU;

	if (b->plan->lora.rank && norms_in_operations(b))
		c = without_weights(c);

	if (!in_operations(b) || s->l->experts || s->l->kv_lora_rank ||
	    (s->linear && !s->l->short_conv))
		return c;
	c = without_sums(c);
	if (mlp ? gated && !joins_gate_up(b) : !joins_qkv(b) && !s->l->short_conv) {
		c.h += mlp ? 5 : 11;
		c.launches += mlp ? 1 : 3;
	}
	return c;
}
