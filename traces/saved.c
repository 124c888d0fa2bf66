/*
 * traces/saved.c - what a layer keeps for its backward, on a rank
 *
 * Bytes per token, read off allocator peaks of PyTorch steps (mean error 0.8 % there):
 *   gated    6f + 14h + 4kv  (eager keeps one more product: 8f)
 *   plain    4f + 16h        (fp32 residuals of autocast: 4f + 22h)
 *   full recomputation 2h
 * Of PyTorch's h, 2 are q's and 4 attention's output, in its own order and in the product's:
 * they go by the heads' width where that is not h.
 * Split layers keep 4h whole (2h slices under Megatron's scheme) and 1/tp of the rest.
 * Hand-written kernels keep the inputs of narrow products in one byte: of the MLP's
 * second product f less, of the other three h each. A compiler casts them again in the
 * backward pass from what is kept besides, and keeps none: 2f and 6h less. Source: steps of
 * FSDP in bf16 and tensorwise fp8 on 8 H100, 13.0 h apart a token and layer at f = 3.5 h.
 */
#include "traces/block.h"
#include "traces/casts.h"

static bool casts_again(const struct builder *b)
{
	return is_narrow(b) && b->rules->fusion == FT_FUSION_COMPILED;
}

/* Bytes per feature of the input of the MLP's second product. */
static double second_input_not_kept(const struct builder *b, const struct ft_layer *l,
				    unsigned set)
{
	if (keeps_a_byte(b))
		return 1;
	return casts_again(b) && !l->experts && !(set & FT_MODULE_OPS) ? 2 : 0;
}

/* The MLP's part: what its activation and its second product need. */
static double mlp_bytes(const struct builder *b, const struct layer_sizes *s,
			double sliced, unsigned set)
{
	const struct ft_layer *l = s->l;
	bool gated = b->model->activation == FT_SWIGLU, byte = keeps_a_byte(b);
	double width = (double)s->f, h = 0;
	double each = gated ? (b->rules->fusion == FT_FUSION_EAGER ? 8 : 6) : 4;

	if (l->experts) { /* padded inputs are kept padded */
		double capacity = b->plan->capacity_factor;
		double copies = (double)l->experts_per_token * sliced *
				(capacity > 0 ? capacity : 1);

		width = (double)l->expert_intermediate * copies;
		h = (double)s->h * copies;
		each = b->rules->fusion == FT_FUSION_EAGER ? each : 6;
		set &= ~(unsigned)(FT_MODULE_MLP_UP | FT_MODULE_MLP_DOWN |
				   FT_MODULE_OPS);
	}
	if (set & FT_MODULE_OPS)
		each /= 2;
	if (set & (FT_MODULE_ACTIVATION | FT_MODULE_MLP_DOWN))
		each -= 2;
	else
		each -= second_input_not_kept(b, l, set);
	if (set & FT_MODULE_MLP_UP)
		each -= gated ? 4 : 2;
	if (set & (l->experts ? FT_MODULE_EXPERTS : FT_MODULE_MLP))
		return 0; /* a mixture from router to shared expert, from the layer's input */
	/* the first product's input is gathered over etp, the second's output is scattered */
	h *= (byte ? 1 : 2) * (double)b->plan->etp + 2;
	return (each > 0 ? each : 0) * width + h +
	       6 * (double)l->shared_intermediate / (double)b->plan->tp;
}

bool keeps_a_byte(const struct builder *b)
{
	return is_narrow(b) && b->rules->fusion == FT_FUSION_KERNELS;
}

/* Bytes per feature of the inputs of a layer's products, but for the MLP's second. */
static double inputs_not_kept(const struct builder *b)
{
	return keeps_a_byte(b) ? 3 : casts_again(b) ? 6 : 0;
}

/* Scores and their dropout mask, kept by attention that is not fused. */
static double score_bytes(const struct builder *b, const struct layer_sizes *s,
			  unsigned set)
{
	if (!is_unfused(b) || s->l->linear_heads || set & FT_MODULE_CORE_ATTENTION)
		return 0;
	return (b->rules->dropout ? 5 : 2) * (double)s->heads *
	       (double)b->plan->sequence;
}

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

/* Inputs of products and gradients of their outputs take what the layer keeps, within a
 * twentieth (32 s b h of 34 in arXiv 2401.10241, table 1), but for scores and masks. */
double layer_deferred_bytes(const struct builder *b, int64_t layer)
{
	struct layer_sizes s = sizes_of(b, layer);
	double h = b->rules->dropout ? 2 * (double)(s.h * s.part) : 0;

	return layer_saved_bytes(b, layer, FT_RECOMPUTE_NONE) - h -
	       (double)s.tokens * score_bytes(b, &s, 0);
}

/* What q and attention's output take beyond hidden_size's width. */
static double wide_heads(const struct builder *b, const struct layer_sizes *s)
{
	double h = (double)s->h / (double)b->plan->tp;

	if (b->rules->fusion == FT_FUSION_KERNELS || s->l->linear_heads)
		return 0;
	return 2 * ((double)s->q - h) + 4 * ((double)s->out - h);
}

double layer_saved_bytes(const struct builder *b, int64_t layer, enum ft_recompute how)
{
	struct layer_sizes s = sizes_of(b, layer);
	bool gated = b->model->activation == FT_SWIGLU, byte = keeps_a_byte(b);
	unsigned set = how == FT_RECOMPUTE_SELECTIVE ? recomputed_modules(b) : 0;
	double tokens = (double)s.tokens, h = (double)s.h;
	double tp = (double)b->plan->tp, sliced = (double)s.part / tokens;
	double kv = 2 * (double)(s.k + s.v), rest, whole, into;

	if (how == FT_RECOMPUTE_FULL)
		return 2 * h * (double)s.part;
	/* inputs of products that are split by columns: outputs of norms */
	into = b->plan->sequence_parallel ? h / tp : h;
	rest = (gated ? 6 : b->autocast ? 10 : 4) * h / tp + 4 * into;
	whole = 4 * h * (b->rules->tensor_parallel == FT_TP_MEGATRON ? sliced : 1);
	rest -= inputs_not_kept(b) * (2 * into + h / tp) / 3;
	if (set & FT_MODULE_NORM)
		rest -= (byte ? 2 : 4) * into;
	if (set & FT_MODULE_OUT_PROJECTION) /* its input, and the sum behind it */
		rest -= 4 * h / tp;
	if (set & FT_MODULE_MLA_UP && s.l->kv_lora_rank) {
		rest -= 2 * (double)s.q;
		kv = 0;
	}
	rest += wide_heads(b, &s);
	rest = rest > 2 * h / tp ? rest : 2 * h / tp;
	return tokens *
	       (mlp_bytes(b, &s, sliced, set) + whole + rest + kv + other_saved(b, &s) +
		score_bytes(b, &s, set) + (b->rules->dropout ? 2 * h * sliced : 0));
}
