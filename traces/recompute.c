/*
 * traces/recompute.c - what a layer computes again before its backward, and which do
 *
 * full: the forward pass, of all layers or of as many as the plan says, dealt to the
 * chunks of stages, of each the first. Where the stack stops at what a backward reads last (PyTorch's
 * checkpoint since 2.1, a compiler that sees both passes), the MLP's last product and the sum
 * behind it do not run again: nobody reads them, unless a norm or a dropout stands behind, an
 * adapter beside, or the outputs are experts', whose weights' gradients do.
 *
 * selective: what the stack saves out of habit, or the modules that the plan
 * names. MaxText's names (out_proj, mlpwi, mlpwo) are of products; with them,
 * attention's core and the norms, which have no name to be saved by, run again too. What a
 * compiler makes again it makes if the backward needs it (docs.jax.dev, gradient-checkpointing):
 * the output of the MLP's second product only if a norm stands behind it. Attention's core is that of attention: no
 * framework runs a state space or a delta rule again by that name.
 */
#include <math.h>
#include <string.h>

#include "traces/block.h"
#include "traces/chosen.h"
#include "traces/compressed.h"
#include "traces/indexed.h"
#include "traces/masked.h"
#include "traces/sharding.h"
#include "traces/stage.h"
#include "traces/streams.h"

enum ft_recompute layer_recompute(const struct builder *b, int64_t layer)
{
	enum ft_recompute how = b->plan->recompute;

	return how == FT_RECOMPUTE_FULL && !b->again[layer] ? FT_RECOMPUTE_NONE : how;
}

/* The first layers of each chunk, n of the model's in all; frac: of those of its stage, for each layer. Megatron's modules
 * are chunks, each of which counts its own (megatron/core/transformer/transformer_block.py, read 2026-11-30). */
static void first_of_chunks(const struct builder *b, int64_t n, bool *chosen,
			    double *frac)
{
	const struct ft_plan *p = b->plan;
	int64_t *most = ARENA_ARRAY(b->mem, (size_t)(p->pp * p->vpp), int64_t);
	int64_t *all = ARENA_ARRAY(b->mem, (size_t)p->pp, int64_t);
	int64_t *of = ARENA_ARRAY(b->mem, (size_t)p->pp, int64_t);

	ft_plan_deal(p, n, most);
	for (int64_t c = 0; c < p->pp * p->vpp; c++) {
		all[ft_plan_stage(p, c)] += p->stage_layers[c];
		of[ft_plan_stage(p, c)] += most[c];
	}
	for (int64_t c = 0, at = 0; c < p->pp * p->vpp; at += p->stage_layers[c++]) {
		int64_t s = ft_plan_stage(p, c);

		for (int64_t l = at; l < at + p->stage_layers[c]; l++) {
			chosen[l] = l - at < most[c];
			frac[l] = (double)of[s] / (double)all[s];
		}
	}
}

/* What a layer chose is kept for the layers behind it that see it, too. */
static bool lends_choice(const struct builder *b, int64_t i)
{
	return i + 1 < b->model->n_layers && b->model->layer[i + 1].shares_index;
}

static bool keeps_alike(const struct builder *b, int64_t i, int64_t j)
{
	return b->again[i] == b->again[j] && lends_choice(b, i) == lends_choice(b, j) &&
	       !memcmp(&b->model->layer[i], &b->model->layer[j],
		       sizeof(*b->model->layer));
}

/* Two layers whose weights are as many are one unit under fsdp. */
static bool weighs_alike(const struct builder *b, int64_t i, int64_t j)
{
	const struct ft_layer *l = b->model->layer;
	struct held x, y;

	if (i == j || !memcmp(&l[i], &l[j], sizeof(*l)))
		return true;
	x = layer_held(b, i);
	y = layer_held(b, j);
	return x.dense == y.dense && x.experts == y.experts && x.frozen == y.frozen &&
	       x.frozen_experts == y.frozen_experts && x.tensors == y.tensors;
}

int64_t layer_above(const struct builder *b, int64_t layer)
{
	return layer + 1 < b->model->n_layers ? layer + 1 : layer;
}

/* Beside a layer's backward comes back what the one below it keeps; under fsdp that one's weights are gathered, and gradients of the
 * one above it wait. */
static bool beside_alike(const struct builder *b, int64_t i, int64_t j)
{
	int64_t k = b->below[i], l = b->below[j];

	return (!b->transfers || keeps_alike(b, k, l)) &&
	       (!is_fsdp(b->plan) ||
		(weighs_alike(b, k, l) &&
		 weighs_alike(b, layer_above(b, i), layer_above(b, j))));
}

static bool runs_alike(const struct builder *b, int64_t i, int64_t j)
{
	return keeps_alike(b, i, j) && b->offload[i] == b->offload[j] &&
	       b->sent_frac[i] == b->sent_frac[j] && beside_alike(b, i, j);
}

void choose_layers(struct builder *b)
{
	size_t n = (size_t)b->model->n_layers;

	b->kind = ARENA_ARRAY(b->mem, n, int64_t);
	b->again = ARENA_ARRAY(b->mem, n, bool);
	b->offload = ARENA_ARRAY(b->mem, n, bool);
	b->sent_frac = ARENA_ARRAY(b->mem, n, double);
	b->below = ARENA_ARRAY(b->mem, n, int64_t);
	for (int64_t i = 1; i < (int64_t)n; i++)
		b->below[i] = i - 1;
	if (b->plan->recompute == FT_RECOMPUTE_FULL)
		first_of_chunks(b, b->plan->recompute_layers, b->again,
				ARENA_ARRAY(b->mem, n, double));
	first_of_chunks(b, b->plan->offload_layers, b->offload, b->sent_frac);
	b->transfers = b->plan->offload_layers > 0;
	for (int64_t i = 0; i < (int64_t)n; i++) {
		int64_t j = 0;

		while (!runs_alike(b, i, j))
			j++;
		b->kind[i] = j;
	}
}

unsigned selected_modules(const struct ft_plan *plan, const struct ft_stack *stack)
{
	static const unsigned by_name =
		FT_MODULE_OUT_PROJECTION | FT_MODULE_MLP_UP | FT_MODULE_MLP_DOWN;
	unsigned set = plan->recompute_modules;

	if (!set)
		set = stack->layout.selective == FT_SELECTIVE_OPS ?
			      FT_MODULE_OPS :
			      FT_MODULE_CORE_ATTENTION;
	if (set & by_name)
		set |= FT_MODULE_CORE_ATTENTION | FT_MODULE_NORM;
	return set;
}

unsigned recomputed_modules(const struct builder *b)
{
	return selected_modules(b->plan, b->stack);
}

bool output_is_needed(const struct builder *b, const struct ft_layer *l)
{
	return b->model->norms > 2 || (b->model->expert_norm && l->experts) ||
	       drops_out(b);
}

bool may_stop_inside_mlp(const struct builder *b, const struct layer_sizes *s)
{
	bool adapted =
		b->plan->lora.rank > 0 && b->plan->lora.targets & 1U << FT_LORA_DOWN;

	return (s->f || (s->l->experts && dispatches_by_mask(b))) &&
	       !output_is_needed(b, s->l) && !adapted;
}

bool stops_inside_mlp(const struct builder *b, const struct layer_sizes *s)
{
	return b->rules->full_recompute == FT_AGAIN_NEEDED && may_stop_inside_mlp(b, s);
}

/* Of scores that are written, and of those under a mask, all are computed. */
static double attention_flop(const struct builder *b, const struct layer_sizes *s)
{
	double all = (double)b->plan->sequence, pairs;

	if (s->l->short_conv) /* its taps are among its parameters */
		return 0;
	if (s->linear)
		return (s->l->state_chunk ? 7 : 8) *
		       (double)(s->tokens * s->out * s->l->linear_key_dim);
	if (s->l->compressed)
		return compressed_flop(b, s);
	if (is_gathered(b, s->l))
		return gathered_flop(b, s);
	if (is_unfused(b))
		pairs = scores_computed(b);
	else if (is_masked(b, s->l))
		pairs = all * all;
	else
		pairs = ft_layer_pairs(s->l, b->plan->sequence, window_of(b, s->l),
				       b->model->causal);
	return ft_attention_flop(FT_PASS_FORWARD,
				 (double)(s->heads * b->sequences) /
					 (double)b->plan->cp * pairs,
				 (double)s->l->qk_head_dim, (double)s->l->v_head_dim);
}

/* The FLOPs of attention and of a state space beside it. */
static double mixers_flop(const struct builder *b, const struct layer_sizes *s)
{
	struct layer_sizes state = state_sizes(b, s);

	return attention_flop(b, s) + masked_choice_flop(b, s) +
	       (s->l->states_beside ? attention_flop(b, &state) : 0);
}

/* Parameters of the experts' products that a token uses, as this rank's share of tokens has
 * them; routing taken as even, and without copies that are dropped. */
static double expert_products(const struct builder *b, const struct layer_sizes *s)
{
	double matrices = b->model->activation == FT_SWIGLU ? 3 : 2;
	int64_t h = ft_layer_expert_hidden(b->model, s->l);

	return matrices * (double)(h * s->l->expert_intermediate) *
	       (double)experts_used(b, s->l) * ft_plan_kept_frac(b->plan) *
	       (double)s->part / (double)s->tokens;
}

/* Parameters of the products behind latents: of absorbed ones those of keys. */
static double latent_products(const struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;
	int64_t keys = s->heads * (l->qk_head_dim - l->qk_rope_head_dim);
	int64_t up = keys + (is_gathered(b, l) ? 0 : s->out);

	if (l->compressed)
		return compressed_up_products(s);
	if (!l->kv_lora_rank)
		return 0;
	return (double)(s->q * (l->q_lora_rank ? l->q_lora_rank : s->h) +
			up * l->kv_lora_rank);
}

/* Parameters of adapters that run again with the products beside them: those of a whole layer or, of its modules, of its MLP. */
static double adapters_again(const struct builder *b, int64_t layer, bool all)
{
	const struct ft_lora *lora = &b->plan->lora;
	double sum = 0;

	for (int t = all ? 0 : FT_LORA_GATE_UP; t < FT_LORA_TARGETS; t++) {
		struct ft_lora_shape s =
			ft_lora_shape(b->model, layer, (enum ft_lora_target)t);

		if (ft_lora_laid(b->model, lora, layer, (enum ft_lora_target)t))
			sum += (double)(lora->rank * (s.in + s.out));
	}
	return sum / (double)b->plan->tp;
}

/* Parameters of the products that selective recomputation runs again. */
static double selected_products(const struct builder *b, const struct layer_sizes *s,
				unsigned set)
{
	const struct ft_model *m = b->model;
	int64_t layer = s->l - m->layer;
	double tp = (double)b->plan->tp, out = (double)(s->h * s->out);
	double mlp = (double)(s->h * s->f), again = 0;
	double routed = expert_products(b, s) + (double)(s->h * s->l->experts) *
							(double)s->part /
							(double)s->tokens;

	if (set & (FT_MODULE_OPS | FT_MODULE_MLP))
		again += adapters_again(b, layer, set & FT_MODULE_OPS);
	if (set & FT_MODULE_OPS)
		again += chosen_products(b, s) + (s->l->experts ? routed : 0);
	if (set & (FT_MODULE_MLP | FT_MODULE_MLP_UP))
		again += (m->activation == FT_SWIGLU ? 2 : 1) * mlp;
	if (set & FT_MODULE_MLP ||
	    (set & FT_MODULE_MLP_DOWN && output_is_needed(b, s->l)))
		again += mlp;
	if (set & FT_MODULE_EXPERTS && s->l->experts)
		again += ft_layer_dense_parameters(m, layer) / tp +
			 expert_products(b, s);
	if (set & FT_MODULE_OUT_PROJECTION)
		again += out;
	if (set & FT_MODULE_MLA_UP)
		again += latent_products(b, s);
	if (set & FT_MODULE_CORE_ATTENTION)
		again += core_products(b, s);
	return again;
}

double layer_recomputed_flop(const struct builder *b, int64_t layer)
{
	struct layer_sizes s = sizes_of(b, layer);
	unsigned set = recomputed_modules(b);
	double products;

	if (layer_recompute(b, layer) == FT_RECOMPUTE_NONE)
		return 0;
	if (b->plan->recompute == FT_RECOMPUTE_SELECTIVE)
		return 2 * selected_products(b, &s, set) * (double)s.tokens +
		       ((set & FT_MODULE_CORE_ATTENTION && !s.linear) ||
					(set & FT_MODULE_OPS && is_unfused(b)) ?
				attention_flop(b, &s) :
				0);
	products = (ft_layer_attention_parameters(b->model, layer) +
		    ft_layer_dense_parameters(b->model, layer)) /
			   (double)b->plan->tp +
		   (s.l->experts ? expert_products(b, &s) : 0) +
		   whole_index_products(b, &s) - streams_products(b) +
		   adapters_again(b, layer, true);
	if (stops_inside_mlp(b, &s) && s.f)
		products -= (double)(s.h * s.f);
	else if (stops_inside_mlp(b, &s) && !b->model->shared_gate)
		products -=
			(double)(s.h * s.l->shared_intermediate) / (double)b->plan->tp;
	return 2 * products * (double)s.tokens + mixers_flop(b, &s);
}
