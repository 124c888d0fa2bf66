/*
 * traces/saved.c - what a layer keeps for its backward, on a rank
 *
 * Bytes per token, read off allocator peaks of PyTorch steps (mean error 0.8 % there):
 *   gated    6f + 14h + 4kv  (eager keeps one more product: 8f)
 *   plain    4f + 16h        (fp32 residuals of autocast: 4f + 22h)
 *   full recomputation 2h       (4h)
 * Of PyTorch's h, 2 are q's and 4 attention's output, in its own order and in the product's:
 * they go by the heads' width where that is not h. Megatron's kernels leave one order: 12h, as ten
 * peaks of Llama's layers on B200 say (8 h of 8.3 fitted, 4 in slices; see docs/findings.md).
 * Split layers keep 4h whole (2h slices under Megatron's scheme) and 1/tp of the rest.
 * Hand-written kernels keep the inputs of narrow products in that format, along columns: in 8 bit
 * f less of the MLP's second product, h less of each behind a norm, h more of the output projection
 * beside what attention keeps. A compiler casts them again in the
 * backward pass from what is kept besides, and keeps none: 2f and 6h less. Source: steps of
 * FSDP in bf16 and tensorwise fp8 on 8 H100, 13.0 h apart a token and layer at f = 3.5 h.
 */
#include <math.h>

#include "traces/autocast.h"
#include "traces/beside.h"
#include "traces/block.h"
#include "traces/casts.h"
#include "traces/chosen.h"
#include "traces/compressed.h"
#include "traces/gates.h"
#include "traces/indexed.h"
#include "traces/layer_input.h"
#include "traces/masked.h"
#include "traces/mixers.h"
#include "traces/scan.h"
#include "traces/sinks.h"
#include "traces/stacked.h"
#include "traces/streams.h"

/* MaxText's names, of products. */
static const unsigned BY_NAME =
	FT_MODULE_OUT_PROJECTION | FT_MODULE_MLP_UP | FT_MODULE_MLP_DOWN;

static bool casts_again(const struct builder *b)
{
	return is_narrow(b) && b->rules->fusion == FT_FUSION_COMPILED;
}

static bool keeps_narrow(const struct builder *b)
{
	return is_narrow(b) && b->rules->fusion == FT_FUSION_KERNELS;
}

/* Bytes per feature of a product's input that is kept for the gradient of its weights. */
static double input_kept(const struct builder *b)
{
	return keeps_narrow(b) ? input_width(b) : 2;
}

/* Bytes per feature of the MLP's second product's input. */
static double second_kept(const struct builder *b, const struct ft_layer *l,
			  unsigned set)
{
	if (set & (FT_MODULE_ACTIVATION | FT_MODULE_MLP_UP | FT_MODULE_MLP_DOWN))
		return 0;
	return casts_again(b) && !l->experts ? 0 : input_kept(b);
}

/* Of a gate whose inputs are clamped: both clamped, beside what they were; by operations the sigmoid's
 * output and two factors besides one of them. A compiler clamps again. */
static double clamp_kept(const struct builder *b)
{
	if (b->model->limits)
		return limits_gates(b) ? 4 : 0;
	if (!b->model->clamped || b->plan->fused_experts)
		return 0;
	if (has_compiled_gates(b))
		return 0;
	return by_operation(b) ? 6 : 4;
}

/* Does the activation's backward read its result, which PyTorch's ReLU keeps, and not its input? */
static bool reads_result(const struct builder *b, const struct ft_layer *l)
{
	return b->model->activation == FT_RELU &&
	       b->rules->fusion != FT_FUSION_KERNELS && !l->experts;
}

/* Bytes per feature of an MLP's width: what its activation and its second product need. */
static double width_kept(const struct builder *b, const struct ft_layer *l,
			 unsigned set)
{
	bool gated = b->model->activation == FT_SWIGLU;
	bool apart = l->experts ? by_operation(b) && !has_compiled_gates(b) :
				  by_operation(b) || gates_apart(b);
	double gates = b->plan->fp8_gates ? 2 : 4;
	double first = gated ? gates + (apart ? 2 : 0) : 2 + gelu_kept(b);
	double second = second_kept(b, l, set);

	if ((l->experts || b->model->limits) && !(set & FT_MODULE_ACTIVATION))
		first += clamp_kept(b);
	if (set & FT_MODULE_MLP_UP)
		first -= gated ? gates : 2;
	else if (reads_result(b, l) && second > 0)
		first = 0; /* it is the second product's input */
	return first + second;
}

/* A mixture's part: padded inputs are kept padded. The first product's input is gathered over etp,
 * the second's output is scattered; those of frozen products are not kept. That output is kept for the gradients of the
 * router's weights, but where the activation is multiplied with them (Megatron Core's weighted_bias_swiglu_impl; its unpermute
 * then keeps nothing: megatron/core/transformer/moe/moe_utils.py, read 2026-11-30). What a mask dispatches, and the mask, have no name
 * by which MaxText's policies keep them (MaxText/layers/moe.py names the three products). */
static double experts_bytes(const struct builder *b, const struct layer_sizes *s,
			    double sliced, unsigned set)
{
	const struct ft_layer *l = s->l;
	struct builder routed = *b;
	double capacity = b->plan->capacity_factor;
	double copies =
		(double)experts_used(b, l) * sliced * (capacity > 0 ? capacity : 1);
	double input, each, shared, out = input_kept(b) * (double)l->expert_latent;
	double output = b->rules->weighted_activation ? 0 : 2;
	bool nameless = dispatches_by_mask(b) && set & FT_MODULE_NORM;
	unsigned beside; /* of the set, what runs again in shared experts */

	routed.format = b->plan->expert_precision;
	input = nameless ? 0 : input_kept(&routed) * (double)b->plan->etp;

	set &= ~(unsigned)(FT_MODULE_MLP_UP | FT_MODULE_MLP_DOWN);
	if (set & FT_MODULE_EXPERTS)
		return 0; /* from router to shared expert, from the layer's input */
	copies *= (double)experts_rows(b);
	beside = set & ~(unsigned)FT_MODULE_ACTIVATION;
	each = width_kept(&routed, l, set);
	shared = width_kept(b, l, beside);
	if (b->plan->lora.rank) {
		input = out = 0;
		each -= second_kept(&routed, l, set);
		shared -= second_kept(b, l, beside);
	}
	copies *= experts_width(b);
	return copies * (each * (double)l->expert_intermediate +
			 (input + output) *
				 (double)ft_layer_expert_hidden(b->model, l)) +
	       out * sliced + (nameless ? 0 : mask_kept(b, l)) * sliced +
	       shared * (double)l->shared_intermediate / (double)b->plan->tp;
}

static double mlp_bytes(const struct builder *b, const struct layer_sizes *s,
			double sliced, unsigned set)
{
	double each = width_kept(b, s->l, set);

	if (s->l->experts)
		return experts_bytes(b, s, sliced, set);
	return set & FT_MODULE_MLP || each < 0 ? 0 : each * (double)s->f;
}

/* Bytes per feature of the input of a product split by columns, the output of a norm. */
static double first_kept(const struct builder *b, unsigned set)
{
	if (set & FT_MODULE_NORM || casts_again(b))
		return 0;
	return input_kept(b);
}

/* Features of that input on a rank. */
static double first_width(const struct builder *b, const struct layer_sizes *s)
{
	return (double)s->h / (double)(b->plan->sequence_parallel ? b->plan->tp : 1);
}

/* What adapters add to it, less the inputs that frozen products do not need. Where a part of the
 * layer is computed again, its input stays whatever is trained, and so does a ReLU's result. */
static double frozen_inputs(const struct builder *b, const struct layer_sizes *s,
			    unsigned set)
{
	double first = first_kept(b, set) * first_width(b, s), input[SITES] = { 0 };
	unsigned again =
		s->l->experts ? FT_MODULE_EXPERTS : FT_MODULE_MLP | FT_MODULE_MLP_UP;

	input[SITE_QKV] = first;
	input[SITE_UP] = set & again || !ft_layer_has_mlp(s->l) ? 0 : first;
	if (!s->l->experts && !(set & FT_MODULE_MLP) && !reads_result(b, s->l))
		input[SITE_DOWN] = fmin(second_kept(b, s->l, set),
					fmax(0, width_kept(b, s->l, set))) *
				   (double)s->f;
	return adapters_saved(b, s, input);
}

/* Bytes per feature of attention's output: 2 as attention keeps it, and what the product
 * behind it does not share with that: PyTorch's in another order, a narrow one. */
static double output_kept(const struct builder *b, unsigned set)
{
	bool named = b->rules->one_program && set & FT_MODULE_NORM &&
		     !(set & FT_MODULE_CORE_ATTENTION);
	bool kernels = b->rules->fusion == FT_FUSION_KERNELS ||
		       b->rules->fusion == FT_FUSION_MODULES;
	bool reordered = b->model->activation == FT_SWIGLU && !kernels;

	if (keeps_narrow(b))
		return 2 + input_width(b);
	return reordered && !named && !casts_again(b) ? 4 : 2;
}

/* Scores and their dropout mask, kept by attention that is not fused. */
static double score_bytes(const struct builder *b, const struct layer_sizes *s,
			  unsigned set)
{
	if (!is_unfused(b) || s->linear || set & FT_MODULE_CORE_ATTENTION ||
	    b->rules->attention_block)
		return 0;
	return score_kept(b) * (double)s->heads * (double)b->plan->sequence +
	       plain_copies(b, s);
}

/* An output of attention that is scaled, beside the product's input. */
static double sinks_kept(const struct builder *b, const struct layer_sizes *s,
			 unsigned set)
{
	bool again = set & FT_MODULE_CORE_ATTENTION;

	return scales_for_sinks(b, s->l) && !again ? 2 * (double)s->out : 0;
}

/* What blocks other than llama's and GPT-2's keep more, or less, a token: no sum between
 * halves side by side, nor its norm's output; the inputs of norms behind the halves and of
 * those of q and k; the gate of attention's output; a delta rule's q, which is wider than
 * hidden_size. What runs again keeps no numbers of a norm's operations, and no mask. */
static double other_saved(const struct builder *b, const struct layer_sizes *s,
			  unsigned set)
{
	double h = 2 * first_width(b, s), more = 2 * (double)s->gate;
	double operations = norm_kept(b);
	int64_t norms = ft_layer_norms(b->model, s->l);

	if (set & FT_MODULE_NORM) /* the first two */
		norms = norms > 2 ? norms - 2 : 0;

	if (s->beside)
		more -= b->model->norms > 1 ? h : 2 * h;
	if (b->model->norms > 2)
		more += 2 * h;
	if (b->model->qk_norm && !s->linear) /* norms' inputs */
		more += (2 + operations) *
			(double)(s->q + own_k(s) +
				 (b->model->value_norm ? s->kv - own_k(s) : 0));
	if (b->model->expert_norm && s->l->experts)
		more += h;
	more += output_gates_kept(b, s);
	more += operations / 2 * h * (double)norms + beside_kept(b, s) +
		sinks_kept(b, s, set) + layer_input_kept(b, s);
	if (is_masked(b, s->l) && !(set & FT_MODULE_CORE_ATTENTION))
		/* the mask, and what keys and values are repeated to */
		more += 2 * (double)(b->plan->sequence + s->q - s->k + s->out - s->v);
	return more + joined_kept(b, s) + (s->linear ? 2 * (double)s->q : 0);
}

/* Inputs of products and gradients of their outputs take what the layer keeps, within a
 * twentieth (32 s b h of 34 in arXiv 2401.10241, table 1), but for scores and masks. Autograd
 * keeps all of it, as the graph is there until its last part is done, and gradients besides. */
double layer_deferred_bytes(const struct builder *b, int64_t layer)
{
	struct layer_sizes s = sizes_of(b, layer);
	double h = drops_out(b) ? 2 * (double)(s.h * s.part) : 0;

	if (b->rules->autograd_split)
		return layer_saved_bytes(b, layer, FT_RECOMPUTE_NONE);
	return layer_saved_bytes(b, layer, FT_RECOMPUTE_NONE) - h -
	       (double)s.tokens * score_bytes(b, &s, 0);
}

/* Attention's q and output, by the heads' width, of a sum over ranks, and what autocast keeps more. A delta
 * rule counts the rest as its own. */
static double heads_kept(const struct builder *b, const struct layer_sizes *s,
			 unsigned set)
{
	double more = autocast_kept(b, s, set & FT_MODULE_NORM);

	if (s->l->compressed)
		return compressed_kept(b, s, set, input_kept(b)) + more;
	if (!s->linear)
		return 2 * (double)s->q + output_kept(b, set) * (double)s->out + more;
	if (s->l->short_conv)
		return short_conv_kept(b) * (double)s->out;
	if (s->l->state_chunk) /* of its scan, the same gated, and of the norm behind it */
		return (gates_in_scan(b, s->l) && !s->l->bare_states ? 6 : 4) *
		       (double)s->out;
	return (2 + output_kept(b, set)) * (double)s->out + delta_kept(s) +
	       decays_kept(b, s) + more;
}

/* A state space beside attention: what its own layer would keep, but for its input and the sum behind it. */
static double states_kept(const struct builder *b, const struct layer_sizes *s,
			  unsigned set)
{
	struct layer_sizes m = state_sizes(b, s);

	if (!s->l->states_beside)
		return 0;
	return heads_kept(b, &m, set) + 2 * (double)(m.q + m.k + m.v + m.gate) +
	       multipliers_kept(b, s);
}

/* Latents in front of their norms and behind, and the key that is turned. Where they are gathered
 * a rank keeps its slice. */
static double latents_kept(const struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;
	bool sliced = b->rules->tensor_parallel == FT_TP_MEGATRON;

	if (!l->kv_lora_rank)
		return 0;
	return ((2 + input_kept(b) + norm_kept(b)) *
			(double)(l->q_lora_rank + l->kv_lora_rank) +
		2 * (double)l->qk_rope_head_dim) *
	       (sliced ? (double)s->part / (double)s->tokens : 1);
}

/* The norm in front of a state space is the product's own, which no module's name reaches (megatron/core/ssm/mamba_layer.py,
 * read 2026-11-28). */
static unsigned mixer_set(const struct layer_sizes *s, unsigned set)
{
	return s->linear && s->l->state_chunk ? set & ~(unsigned)FT_MODULE_NORM : set;
}

static double kept_beside_modules(const struct builder *b, const struct layer_sizes *s,
				  unsigned set)
{
	double tokens = (double)s->tokens, h = (double)s->h;
	double sliced = (double)s->part / tokens;
	double halves = ft_layer_has_mlp(s->l) ? 2 : 1;
	bool own = !s->l->shares_kv && !s->l->compressed;
	double kv = own ? 2 * (double)(s->k + s->v) : 0, rest, whole;

	rest = heads_kept(b, s, set) + states_kept(b, s, set) +
	       (first_kept(b, mixer_set(s, set)) + (halves - 1) * first_kept(b, set)) *
		       first_width(b, s);
	whole = halves * 2 * h *
		(b->rules->tensor_parallel == FT_TP_MEGATRON ? sliced : 1);
	if (set & FT_MODULE_OUT_PROJECTION) /* the sum behind it */
		whole /= halves;
	if (set & BY_NAME && !s->linear) /* attention's output has no name */
		rest -= output_kept(b, set) * (double)s->out;
	if (set & FT_MODULE_MLA_UP && s->l->kv_lora_rank) {
		rest -= 2 * (double)s->q;
		kv = 0;
	}
	if (set & FT_MODULE_STREAMS) /* an output in place of a sum */
		whole = halves * 2 * h * sliced;
	rest += indexed_kept(b, s, set) + streams_kept(b, s, set);
	return tokens *
	       (mlp_bytes(b, s, sliced, set) + whole + rest + kv + latents_kept(b, s) +
		other_saved(b, s, set) + frozen_inputs(b, s, set) +
		score_bytes(b, s, set) + (drops_out(b) ? 2 * h * sliced : 0));
}

double layer_saved_bytes(const struct builder *b, int64_t layer, enum ft_recompute how)
{
	struct layer_sizes s = sizes_of(b, layer);
	unsigned set = how == FT_RECOMPUTE_SELECTIVE ? recomputed_modules(b) : 0;
	double halves = b->model->halves && ft_layer_has_mlp(s.l) ? 2 : 1;

	if (how == FT_RECOMPUTE_FULL)
		return halves * (b->autocast ? 4 : 2) *
			       (double)(s.h * s.part * b->model->streams) +
		       (double)s.tokens * chosen_for_others(b, &s);
	return kept_context_bytes(b, layer, set) + stacked_kept(b, s.l, set) +
	       (set & FT_MODULE_OPS ? (double)s.tokens * chosen_bytes(b, &s) :
				      kept_beside_modules(b, &s, set)) +
	       (how == FT_RECOMPUTE_NONE ? scan_saved_bytes(b, layer) : 0);
}
