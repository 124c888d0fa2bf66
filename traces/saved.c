/* traces/saved.c - what a layer keeps for backward, and what it computes again */
#include <math.h>

#include "traces/block.h"

/* What blocks other than llama's and GPT-2's keep more, or less, a token: no sum between
 * halves side by side, nor its norm's output; the inputs of norms behind the halves; the
 * gate of attention's output; a delta rule's q, which is wider than hidden_size. */
static double other_saved(const struct builder *b, const struct layer_sizes *s)
{
	double h = 2 * (double)s->h / (double)b->plan->tp, more = 2 * (double)s->gate;

	if (s->beside)
		more -= b->model->norms > 1 ? h : 2 * h;
	if (b->model->norms > 2)
		more += 2 * h;
	more += adapters_saved(b, s);
	return more + (s->l->linear_heads ? 2 * (double)s->q : 0);
}

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
	struct layer_sizes s = sizes_of(b, layer);
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
	rest = (gated ? 10 : b->autocast ? 14 : 8) * h / tp;
	whole = 4 * h * (b->rules->tensor_parallel == FT_TP_MEGATRON ? sliced : 1);
	if (b->plan->recompute == FT_RECOMPUTE_SELECTIVE)
		wide *= b->rules->selective == FT_SELECTIVE_OPS ? 0.5 : 1;
	if (is_unfused(b) && !l->linear_heads &&
	    b->plan->recompute == FT_RECOMPUTE_NONE)
		rest += softmax_saved(b, &s) * (double)s.heads *
			(double)b->plan->sequence;
	return tokens * (wide + other_saved(b, &s) + whole + rest + kv +
			 (b->rules->dropout ? 2 * h * sliced : 0));
}

double layer_recomputed_flop(const struct builder *b, int64_t layer)
{
	struct layer_sizes s = sizes_of(b, layer);
	double products = layer_weights(b, layer).dense;
	double length = (double)b->plan->sequence;
	double reach = s.l->chunk ? fmin((double)s.l->chunk, length) : length;
	double attention = ft_attention_flop(
		FT_PASS_FORWARD,
		(double)(s.heads * b->sequences) / (double)b->plan->cp * length /
			reach *
			ft_attention_pairs(reach, reach, (double)window_of(b, s.l),
					   b->model->causal),
		(double)s.l->qk_head_dim, (double)s.l->v_head_dim);

	if (s.l->linear_heads)
		attention = 8 * (double)(s.tokens * s.out * s.l->linear_key_dim);
	switch (b->plan->recompute) {
	case FT_RECOMPUTE_FULL:
		return 2 * products * (double)s.tokens + attention;
	case FT_RECOMPUTE_SELECTIVE:
		return b->rules->selective == FT_SELECTIVE_ATTENTION ?
			       attention :
			       products * (double)s.tokens;
	default:
		return 0;
	}
}
