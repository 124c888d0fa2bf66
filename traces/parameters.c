/* traces/parameters.c - how many parameters a rank holds before sharding */
#include "traces/build.h"

struct held layer_held(const struct builder *b, int64_t layer)
{
	const struct ft_model *m = b->model;
	struct held held = {
		.dense = (ft_layer_attention_parameters(m, layer) +
			  ft_layer_dense_parameters(m, layer)) /
				 (double)b->plan->tp +
			 ft_layer_norm_parameters(m, layer),
		.experts = ft_layer_expert_parameters(m, layer) /
			   (double)(b->plan->ep * b->plan->etp),
	};

	return held;
}

struct held ends_held(const struct builder *b, bool first, bool last)
{
	const struct ft_model *m = b->model;
	double tp = (double)b->plan->tp;
	double head = (double)(m->hidden_size * ft_model_vocab(m, b->plan->tp));
	struct held held = last ? predicted_held(b) : (struct held){ 0, 0 };

	if (first || (last && m->predicted && b->plan->pp > 1))
		held.dense += ft_model_embedding_parameters(m, b->plan->tp) / tp;
	if (last && !(m->tied && first)) /* tied: a copy of its own at the end */
		held.dense += head / tp;
	if (last)
		held.dense += (double)m->hidden_size;
	return held;
}

/* Parameter tensors of a layer: what gradient hooks count. */
int64_t layer_tensors(const struct builder *b, int64_t layer)
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
