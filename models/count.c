/* models/count.c - parameters and FLOPs: matrices, biases and norms counted */
#include "foretoken/models.h"

#include <assert.h>

static const struct ft_layer *at(const struct ft_model *model, int64_t i)
{
	assert(i >= 0 && i < model->n_layers);
	return &model->layer[i];
}

int64_t ft_model_vocab(const struct ft_model *model, int64_t tp)
{
	int64_t multiple = model->vocab_multiple * tp;

	if (!multiple)
		return model->vocab_size;
	return (model->vocab_size + multiple - 1) / multiple * multiple;
}

/* The matrices of attention. Latent attention (DeepSeek-V2, arXiv 2405.04434,
 * 2.1): q through a low rank, k and v from another and a shared rope key. */
static double attention_matrices(const struct ft_model *model, int64_t i)
{
	const struct ft_layer *l = at(model, i);
	double h = (double)model->hidden_size, heads = (double)l->heads;
	double qk = (double)l->qk_head_dim, v = (double)l->v_head_dim;
	double rope = (double)l->qk_rope_head_dim;
	double kv = (double)l->kv_lora_rank, q = (double)l->q_lora_rank;
	double out = heads * v * h;

	if (!l->kv_lora_rank)
		return h * heads * qk + h * (double)l->kv_heads * (qk + v) + out;
	return (l->q_lora_rank ? h * q + q * heads * qk : h * heads * qk) +
	       h * (kv + rope) + kv * heads * (qk - rope + v) + out;
}

static double attention_biases(const struct ft_model *model, int64_t i)
{
	const struct ft_layer *l = at(model, i);
	double q = (double)(l->heads * l->qk_head_dim);
	double kv = (double)(l->kv_heads * (l->qk_head_dim + l->v_head_dim));
	bool qkv = model->qkv_bias || model->linear_bias;

	if (l->kv_lora_rank)
		return 0;
	return (qkv ? q + kv : 0) +
	       (model->linear_bias ? (double)model->hidden_size : 0);
}

/* Matrices of an MLP of this width: up, down, and the gate if there is one. */
static double mlp_matrices(const struct ft_model *model, int64_t width)
{
	return (model->activation == FT_SWIGLU ? 3 : 2) * (double)model->hidden_size *
	       (double)width;
}

static double mlp_biases(const struct ft_model *model, int64_t width)
{
	double up = (model->activation == FT_SWIGLU ? 2 : 1) * (double)width;

	return model->linear_bias && width ? up + (double)model->hidden_size : 0;
}

static double router_matrix(const struct ft_model *model, int64_t i)
{
	return (double)model->hidden_size * (double)at(model, i)->experts;
}

double ft_layer_attention_parameters(const struct ft_model *model, int64_t i)
{
	return attention_matrices(model, i) + attention_biases(model, i);
}

double ft_layer_dense_parameters(const struct ft_model *model, int64_t i)
{
	const struct ft_layer *l = at(model, i);

	return mlp_matrices(model, l->intermediate) +
	       mlp_biases(model, l->intermediate) +
	       mlp_matrices(model, l->shared_intermediate) +
	       mlp_biases(model, l->shared_intermediate) + router_matrix(model, i) +
	       (model->linear_bias ? (double)l->experts : 0);
}

double ft_layer_expert_parameters(const struct ft_model *model, int64_t i)
{
	const struct ft_layer *l = at(model, i);

	return (double)l->experts * (mlp_matrices(model, l->expert_intermediate) +
				     mlp_biases(model, l->expert_intermediate));
}

static double norm(const struct ft_model *model, int64_t width)
{
	return (model->norm_bias ? 2 : 1) * (double)width;
}

double ft_layer_norm_parameters(const struct ft_model *model, int64_t i)
{
	const struct ft_layer *l = at(model, i);

	return 2 * norm(model, model->hidden_size) +
	       (model->qk_norm ? 2 * norm(model, l->qk_head_dim) : 0) +
	       norm(model, l->q_lora_rank + l->kv_lora_rank);
}

double ft_model_embedding_parameters(const struct ft_model *model, int64_t tp)
{
	int64_t rows = ft_model_vocab(model, tp) + model->max_positions;

	return (double)model->hidden_size * (double)rows;
}

static double head_matrix(const struct ft_model *model, int64_t tp)
{
	return (double)model->hidden_size * (double)ft_model_vocab(model, tp);
}

double ft_model_head_parameters(const struct ft_model *model, int64_t tp)
{
	return model->tied ? 0 : head_matrix(model, tp);
}

/* All of it, or what one token uses. */
static double parameters(const struct ft_model *model, int64_t tp, bool active)
{
	double sum = ft_model_embedding_parameters(model, tp) +
		     ft_model_head_parameters(model, tp) +
		     norm(model, model->hidden_size) * (model->embedding_norm ? 2 : 1);

	for (int64_t i = 0; i < model->n_layers; i++) {
		const struct ft_layer *l = &model->layer[i];
		double part = active && l->experts ? (double)l->experts_per_token /
							     (double)l->experts :
						     1;

		sum += ft_layer_attention_parameters(model, i) +
		       ft_layer_dense_parameters(model, i) +
		       ft_layer_expert_parameters(model, i) * part +
		       ft_layer_norm_parameters(model, i);
	}
	return sum;
}

double ft_model_parameters(const struct ft_model *model, int64_t tp)
{
	return parameters(model, tp, false);
}

double ft_model_active_parameters(const struct ft_model *model, int64_t tp)
{
	return parameters(model, tp, true);
}

/* Multiply-adds of attention itself, forward, a token: scores and values. */
static double attention_products(const struct ft_layer *l, int64_t sequence,
				 bool causal)
{
	double pairs = ft_attention_pairs((double)sequence, (double)sequence,
					  (double)l->window, causal);

	return (double)(l->heads * (l->qk_head_dim + l->v_head_dim)) * pairs /
	       (double)sequence;
}

double ft_model_flop_per_token(const struct ft_model *model, int64_t tp,
			       int64_t sequence, bool causal)
{
	double matrices = head_matrix(model, tp), attention = 0;

	for (int64_t i = 0; i < model->n_layers; i++) {
		const struct ft_layer *l = &model->layer[i];

		matrices += attention_matrices(model, i) + router_matrix(model, i) +
			    mlp_matrices(model, l->intermediate) +
			    mlp_matrices(model, l->shared_intermediate) +
			    (double)l->experts_per_token *
				    mlp_matrices(model, l->expert_intermediate);
		attention += attention_products(l, sequence, causal);
	}
	return 6 * matrices + 6 * attention;
}
