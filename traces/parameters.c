/* traces/parameters.c - how many parameters a rank holds before sharding */
#include "traces/build.h"
#include "traces/casts.h"

/* Two matrices for each adapter. */
static int64_t adapter_tensors(const struct ft_lora *lora)
{
	int64_t n = 0;

	for (int t = 0; t < FT_LORA_TARGETS; t++)
		n += 2 * ft_lora_has(lora, (enum ft_lora_target)t);
	return n;
}

/* Of a layer without adapters. */
static int64_t weight_tensors(const struct builder *b, int64_t layer)
{
	const struct ft_model *m = b->model;
	int64_t linear = 6 + (m->activation == FT_SWIGLU);
	int64_t biases = (m->qkv_bias ? (b->rules->fused_qkv ? 1 : 3) : 0) +
			 m->out_bias +
			 (m->mlp_bias ? 2 + (m->activation == FT_SWIGLU) : 0);

	if (b->rules->fused_qkv)
		linear -= 2;
	if (m->layer[layer].experts)
		linear += 3;
	return linear + biases + m->norms * m->norm_vectors;
}

int64_t layer_tensors(const struct builder *b, int64_t layer)
{
	return b->plan->lora.rank ? adapter_tensors(&b->plan->lora) :
				    weight_tensors(b, layer);
}

struct held layer_weights(const struct builder *b, int64_t layer)
{
	const struct ft_model *m = b->model;
	struct held held = {
		.dense = ft_layer_rank_parameters(m, layer, b->plan->tp),
		.experts = ft_layer_expert_parameters(m, layer) /
			   (double)(b->plan->ep * b->plan->etp),
		.tensors = weight_tensors(b, layer),
	};

	return held;
}

void held_add(struct held *sum, struct held more)
{
	sum->dense += more.dense;
	sum->experts += more.experts;
	sum->frozen += more.frozen;
	sum->frozen_experts += more.frozen_experts;
	sum->tensors += more.tensors;
	sum->frozen_tensors += more.frozen_tensors;
}

double held_share(const struct builder *b, struct held of)
{
	return of.dense / (double)b->plan->shard +
	       of.experts / (double)ft_plan_expert_shard(b->plan);
}

struct held layer_held(const struct builder *b, int64_t layer)
{
	const struct ft_lora *lora = &b->plan->lora;
	struct held all = layer_weights(b, layer);
	double width = stored_width(lora->frozen);

	if (!lora->rank)
		return all;
	return (struct held){ .dense = ft_layer_lora_parameters(b->model, lora, layer) /
				       (double)b->plan->tp,
			      .frozen = width * all.dense,
			      .frozen_experts = width * all.experts,
			      .tensors = layer_tensors(b, layer),
			      .frozen_tensors = all.tensors };
}

/* Words and learned positions; the last norm, and a head of its own. */
static int64_t ends_tensors(const struct ft_model *m, bool first, bool last)
{
	int64_t words = 1 + (m->max_positions > 0);
	int64_t head = m->norm_vectors + !(m->tied && first) + m->head_bias;

	return (first ? words : 0) + (last ? head : 0);
}

struct held ends_held(const struct builder *b, bool first, bool last)
{
	const struct ft_model *m = b->model;
	double tp = (double)b->plan->tp;
	double head = (double)(m->hidden_size * ft_model_vocab(m, b->plan->tp));
	struct held held = last ? predicted_held(b) : (struct held){ 0 };

	if (first || (last && m->predicted && b->plan->pp > 1))
		held.dense += ft_model_embedding_parameters(m, b->plan->tp) / tp;
	if (last && !(m->tied && first)) /* tied: a copy of its own at the end */
		held.dense += head / tp;
	if (last)
		held.dense += (double)m->hidden_size;
	held.tensors += ends_tensors(m, first, last);
	if (b->plan->lora.rank) /* frozen, in 16 bit */
		return (struct held){ .frozen = 2 * held.dense,
				      .frozen_tensors = held.tensors };
	return held;
}
