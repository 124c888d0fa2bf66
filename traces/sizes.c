/* traces/sizes.c - a layer's sizes on one rank: of its attention, of what stands in its place, of what stands beside it */
#include "traces/block.h"
#include "traces/indexed.h"

static void set_linear(struct layer_sizes *s, int64_t tp)
{
	const struct ft_layer *l = s->l;

	s->linear = true;
	s->q = s->k = l->linear_key_heads * l->linear_key_dim / tp;
	s->v = s->out = l->linear_heads * l->linear_value_dim / tp;
	s->gate = l->short_conv ? 0 : s->v;
}

struct layer_sizes state_sizes(const struct builder *b, const struct layer_sizes *s)
{
	struct layer_sizes of = *s;

	set_linear(&of, b->plan->tp);
	of.kv = of.k + of.v;
	return of;
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
	if (is_gathered(b, l)) { /* latents and a turned key, which are values, too */
		s.kv_heads = 1;
		s.k = l->kv_lora_rank + l->qk_rope_head_dim;
		s.v = 0;
	}
	s.gate = b->model->gated_output ? s.q : 0;
	s.gates = l->output_gates / tp;
	if (!ft_layer_attends(l))
		set_linear(&s, tp);
	s.kv = l->shares_kv ? 0 : s.k + (l->values_are_keys ? 0 : s.v);
	s.f = l->intermediate / tp;
	s.beside = b->model->parallel && !l->experts;
	return s;
}

int64_t own_k(const struct layer_sizes *s)
{
	return s->l->shares_kv ? 0 : s->k;
}

struct pieces pieces_of(const struct builder *b, const struct ft_layer *l)
{
	int64_t all = b->plan->sequence;
	int64_t length = l->chunk && l->chunk < all ? l->chunk : all;

	return (struct pieces){ { b->sequences * (all / length), b->sequences },
				{ length, all % length } };
}
