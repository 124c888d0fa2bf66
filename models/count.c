/* models/count.c - parameters and FLOPs: matrices, biases and norms counted */
#include "base/whole.h"
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
	return ceil_div(model->vocab_size, multiple) * multiple;
}

bool ft_layer_has_mlp(const struct ft_layer *layer)
{
	return layer->intermediate || layer->experts;
}

bool ft_layer_attends(const struct ft_layer *layer)
{
	return !layer->linear_heads || layer->states_beside;
}

bool ft_layer_chooses(const struct ft_layer *layer)
{
	return layer->index_topk && !layer->shares_index;
}

int64_t ft_layer_seen(const struct ft_layer *layer)
{
	return layer->index_topk && !layer->compressed ? layer->index_topk :
							 layer->window;
}

int64_t ft_layer_expert_hidden(const struct ft_model *model,
			       const struct ft_layer *layer)
{
	return layer->expert_latent ? layer->expert_latent : model->hidden_size;
}

int ft_layer_norms(const struct ft_model *model, const struct ft_layer *layer)
{
	int more =
		(model->layer_input ? 1 : 0) + (model->expert_norm && layer->experts);

	if (model->dense_beside && layer->experts)
		return model->norms + 3 + more;
	return (ft_layer_has_mlp(layer) ? model->norms : model->norms / 2) + more;
}

int64_t ft_layer_linear_rates(const struct ft_layer *layer)
{
	return layer->short_conv ? 0 : layer->state_chunk || layer->linear_rank ? 1 : 2;
}

/* Channels of the convolution over q, k and v; or that is all there is. */
static double linear_channels(const struct ft_layer *l)
{
	if (l->short_conv)
		return (double)l->linear_heads;
	return (double)(2 * l->linear_key_heads * l->linear_key_dim +
			l->linear_heads * l->linear_value_dim);
}

/* Numbers in the matrices of each part of a layer; of routed experts in one of each. */
struct matrices {
	double of[FT_OF_ROUTER + 1];
};

static struct matrices matrices(const struct ft_model *model, int64_t i)
{
	struct ft_matrix matrix[FT_LAYER_MATRICES];
	size_t n = ft_layer_matrices(model, i, matrix);
	struct matrices sum = { { 0 } };

	for (size_t j = 0; j < n; j++)
		sum.of[matrix[j].of] +=
			(double)matrix[j].outputs * (double)matrix[j].inputs;
	return sum;
}

/* Numbers a head, beside its matrices: a delta rule's two, a state space's three, none of a convolution; of Kimi's rule
 * one, and one for each channel. */
static int64_t head_numbers(const struct ft_layer *l)
{
	if (l->linear_rank)
		return 1 + l->linear_key_dim;
	return l->short_conv ? 0 : l->state_chunk ? 3 : 2;
}

/* And the taps of the convolution, which has biases in a state space. */
static double linear_others(const struct ft_layer *l)
{
	int64_t taps = l->linear_taps + (l->state_chunk > 0);

	return linear_channels(l) * (double)taps +
	       (double)(l->linear_heads * head_numbers(l));
}

/* Numbers that say how much each of the tokens of an entry counts by its place: chosen entries are of two series, which the
 * indexer makes anew. */
static double entry_places(const struct ft_layer *l)
{
	int64_t width = l->index_topk ? 2 * (l->qk_head_dim + l->index_head_dim) :
					l->qk_head_dim;

	return (double)(l->entry_tokens * width);
}

/* Biases and scales of the hyper-connections of a layer's two halves; or of the head that sums streams up (DeepSeek-V4's hc_head). */
static double stream_numbers(const struct ft_model *model, bool head)
{
	double n = (double)model->streams;

	if (n < 2)
		return 0;
	return head ? n + 1 : 2 * (n * (n + 2) + 3);
}

/* What else attention has: biases, sinks. */
static double attention_biases(const struct ft_model *model, int64_t i)
{
	const struct ft_layer *l = at(model, i);
	double q = (double)(l->heads * l->qk_head_dim);
	double kv = (double)(l->kv_heads * (l->qk_head_dim + l->v_head_dim));
	double sinks = l->sinks ? (double)l->heads : 0;
	double others = l->linear_heads ? linear_others(l) : 0;

	if (!ft_layer_attends(l))
		return others;
	if (l->kv_lora_rank)
		return sinks;
	if (l->compressed)
		return (double)l->heads + entry_places(l); /* sinks, too */
	return others + sinks +
	       (model->qkv_bias ? (model->gated_output ? 2 : 1) * q + kv : 0) +
	       (model->out_bias ? (double)model->hidden_size : 0);
}

static double mlp_biases(const struct ft_model *model, int64_t width, int64_t hidden)
{
	double up = (model->activation == FT_SWIGLU ? 2 : 1) * (double)width;

	return model->mlp_bias && width ? up + (double)hidden : 0;
}

double ft_layer_attention_parameters(const struct ft_model *model, int64_t i)
{
	return matrices(model, i).of[FT_OF_ATTENTION] + attention_biases(model, i);
}

/* A number for each feature of the router's input, and one for each expert. */
static double router_scales(const struct ft_model *model, const struct ft_layer *l)
{
	return model->dense_beside && l->experts ?
		       (double)(model->hidden_size + l->experts) :
		       0;
}

static double dense_parameters(const struct ft_model *model, const struct ft_layer *l,
			       const struct matrices *m)
{
	int64_t h = model->hidden_size;

	return m->of[FT_OF_MLP] + mlp_biases(model, l->intermediate, h) +
	       m->of[FT_OF_SHARED] + mlp_biases(model, l->shared_intermediate, h) +
	       m->of[FT_OF_ROUTER] + router_scales(model, l) +
	       model->activation_numbers + (model->layer_scale ? 1 : 0) +
	       (model->router_bias ? (double)l->experts : 0);
}

double ft_layer_dense_parameters(const struct ft_model *model, int64_t i)
{
	struct matrices m = matrices(model, i);

	return dense_parameters(model, at(model, i), &m);
}

double ft_layer_expert_parameters(const struct ft_model *model, int64_t i)
{
	const struct ft_layer *l = at(model, i);

	return (double)l->experts * (matrices(model, i).of[FT_OF_EXPERTS] +
				     mlp_biases(model, l->expert_intermediate,
						ft_layer_expert_hidden(model, l)));
}

static double norm(const struct ft_model *model, int64_t width)
{
	return model->norm_vectors * (double)width;
}

static double qk_norm(const struct ft_model *model, const struct ft_layer *l)
{
	switch (model->qk_norm) {
	case FT_QK_HEAD:
		return (l->shares_kv ? 1 : 2) * norm(model, l->qk_head_dim);
	case FT_QK_WHOLE: /* never with a bias */
		return (double)((l->heads + l->kv_heads) * l->qk_head_dim);
	default:
		return 0;
	}
}

/* The norm of an indexer's key, which has a bias (DeepSeek-V3.2's k_norm), but of entries. */
static double index_norm(const struct ft_layer *l)
{
	return ft_layer_chooses(l) ?
		       (l->compressed ? 1 : 2) * (double)l->index_head_dim :
		       0;
}

/* Of keys that are values, and of entries. */
static double compressed_norms(const struct ft_layer *l)
{
	return l->compressed ? (l->entry_tokens ? 2 : 1) * (double)l->qk_head_dim : 0;
}

static double index_matrices(const struct ft_model *model, const struct ft_layer *l)
{
	double width = (double)(l->index_heads * l->index_head_dim);
	int64_t keys = (l->compressed ? 4 : 1) * l->index_head_dim;

	return ft_layer_chooses(l) ? width * (double)l->q_lora_rank +
					     (double)(keys + l->index_heads) *
						     (double)model->hidden_size :
				     0;
}

double ft_layer_index_parameters(const struct ft_model *model, const struct ft_layer *l)
{
	return index_matrices(model, l) + index_norm(l);
}

double ft_layer_norm_parameters(const struct ft_model *model, int64_t i)
{
	const struct ft_layer *l = at(model, i);
	/* a state space's norm is as wide as all its heads; a convolution has none */
	int64_t heads = l->bare_states ? 0 :
			l->state_chunk ? l->linear_heads :
					 !l->short_conv;

	return ft_layer_norms(model, l) * norm(model, model->hidden_size) +
	       (double)(heads * l->linear_value_dim) +
	       (ft_layer_attends(l) ? qk_norm(model, l) : 0) +
	       norm(model, l->q_lora_rank + l->kv_lora_rank) + index_norm(l) +
	       compressed_norms(l) + stream_numbers(model, false);
}

/* Down-projections, indexers, and what stands around routed experts. */
static double never_split(const struct ft_model *model, const struct ft_layer *l,
			  const struct matrices *m)
{
	double latents =
		(double)(l->q_lora_rank + l->kv_lora_rank + l->qk_rope_head_dim);

	return m->of[FT_OF_ROUTER] + (double)(2 * l->linear_rank * model->hidden_size) +
	       (model->router_bias ? (double)l->experts : 0) + router_scales(model, l) +
	       (l->kv_lora_rank ? (double)model->hidden_size * latents : 0) +
	       index_matrices(model, l);
}

double ft_layer_rank_parameters(const struct ft_model *model, int64_t i, int64_t tp)
{
	const struct ft_layer *l = at(model, i);
	struct matrices m = matrices(model, i);
	double all = m.of[FT_OF_ATTENTION] + attention_biases(model, i) +
		     dense_parameters(model, l, &m);
	double whole = never_split(model, l, &m), copied = 0;

	if (ft_layer_attends(l) && !l->kv_lora_rank && l->kv_heads < tp)
		copied = (double)((tp - l->kv_heads) * model->hidden_size *
				  (l->qk_head_dim +
				   (l->values_are_keys ? 0 : l->v_head_dim)));
	return (all - whole + copied) / (double)tp + whole +
	       ft_layer_norm_parameters(model, i);
}

/* The projection of an embedded token to the inputs of all layers (Gemma 4's per_layer_model_projection). */
static double layer_inputs_matrix(const struct ft_model *model)
{
	return (double)(model->n_layers * model->layer_input) *
	       (double)model->hidden_size;
}

/* A table of them, that projection and a norm. */
double ft_model_layer_input_parameters(const struct ft_model *model)
{
	return (double)(model->n_layers * model->layer_input) *
		       (double)model->layer_input_rows +
	       layer_inputs_matrix(model) + norm(model, model->layer_input);
}

double ft_model_embedding_parameters(const struct ft_model *model, int64_t tp)
{
	int64_t rows = ft_model_vocab(model, tp) + model->max_positions;

	return (double)model->hidden_size * (double)rows +
	       ft_model_layer_input_parameters(model);
}

static double head_matrix(const struct ft_model *model, int64_t tp)
{
	return (double)model->hidden_size * (double)ft_model_vocab(model, tp);
}

static double stream_head_matrix(const struct ft_model *model)
{
	double n = (double)model->streams;

	return n > 1 ? n * n * (double)model->hidden_size : 0;
}

double ft_model_stream_head_parameters(const struct ft_model *model)
{
	return stream_head_matrix(model) + stream_numbers(model, true);
}

double ft_model_head_parameters(const struct ft_model *model, int64_t tp)
{
	double bias = model->head_bias ? (double)ft_model_vocab(model, tp) : 0;

	return bias + (model->tied ? 0 : head_matrix(model, tp));
}

static double layer_parameters(const struct ft_model *model, int64_t i, bool active)
{
	const struct ft_layer *l = at(model, i);
	double part = active && l->experts ?
			      (double)l->experts_per_token / (double)l->experts :
			      1;

	return ft_layer_attention_parameters(model, i) +
	       ft_layer_dense_parameters(model, i) +
	       ft_layer_expert_parameters(model, i) * part +
	       ft_layer_norm_parameters(model, i);
}

/* DeepSeek-V3 (arXiv 2412.19437, 2.2): the last hidden state and the next token's
 * embedding, each through a norm, are projected to one; a layer, a norm, the head. */
double ft_model_predicted_parameters(const struct ft_model *model, bool active)
{
	double h = (double)model->hidden_size;

	return layer_parameters(model, model->predicted_like, active) + 2 * h * h +
	       3 * norm(model, model->hidden_size) +
	       ft_model_stream_head_parameters(model);
}

/* All of it, or what one token uses. */
static double parameters(const struct ft_model *model, bool active)
{
	double sum = ft_model_embedding_parameters(model, 1) +
		     ft_model_head_parameters(model, 1) +
		     ft_model_stream_head_parameters(model) +
		     norm(model, model->hidden_size) * (model->embedding_norm ? 2 : 1);

	for (int64_t i = 0; i < model->n_layers; i++)
		sum += layer_parameters(model, i, active);
	return sum +
	       (double)model->predicted * ft_model_predicted_parameters(model, active);
}

double ft_model_parameters(const struct ft_model *model)
{
	return parameters(model, false);
}

double ft_model_active_parameters(const struct ft_model *model)
{
	return parameters(model, true);
}

/* Of a state that is carried along: half of 8 FLOP a number (delta rule) or of 7 (state space: Megatron Core's
 * training.py, read 2026-11-27). */
static double rule_products(const struct ft_layer *l)
{
	double numbers =
		(double)(l->linear_heads * l->linear_key_dim * l->linear_value_dim);

	return l->short_conv ? 0 : (l->state_chunk ? 3.5 : 4) * numbers;
}

/* Of an indexer, which scores all tokens or entries before: a third of them, as its backward pass reads the chosen scores alone. */
static double index_products(const struct ft_layer *l, int64_t sequence, bool causal)
{
	double pairs = ft_layer_scored(l, sequence, causal) / (double)sequence;

	return ft_layer_chooses(l) ?
		       (double)(l->index_heads * l->index_head_dim) * pairs / 3 :
		       0;
}

/* Multiply-adds of attention itself, forward, a token: scores and values; or of what stands in its place. */
static double attention_products(const struct ft_layer *l, int64_t sequence,
				 bool causal)
{
	double pairs = (ft_layer_pairs(l, sequence, ft_layer_seen(l), causal) +
			ft_layer_entry_pairs(l, sequence, causal)) /
		       (double)sequence;
	double linear =
		l->linear_heads ?
			rule_products(l) + linear_channels(l) * (double)l->linear_taps :
			0;

	if (!ft_layer_attends(l))
		return linear;
	return linear + (double)(l->heads * (l->qk_head_dim + l->v_head_dim)) * pairs +
	       index_products(l, sequence, causal);
}

static double routed_matrices(const struct ft_model *model, int64_t i)
{
	return (double)at(model, i)->experts_per_token *
	       matrices(model, i).of[FT_OF_EXPERTS];
}

/* Matrices of a layer that a token uses. */
static double layer_matrices(const struct ft_model *model, int64_t i)
{
	struct matrices m = matrices(model, i);

	return m.of[FT_OF_ATTENTION] + m.of[FT_OF_ROUTER] + m.of[FT_OF_MLP] +
	       m.of[FT_OF_SHARED] + routed_matrices(model, i);
}

double ft_model_product_parameters(const struct ft_model *model, int64_t tp)
{
	double h = (double)model->hidden_size;
	double sum = head_matrix(model, tp) + layer_inputs_matrix(model);

	for (int64_t i = 0; i < model->n_layers; i++)
		sum += layer_matrices(model, i);
	return sum + (double)model->predicted *
			     (layer_matrices(model, model->predicted_like) + 2 * h * h +
			      head_matrix(model, tp));
}

double ft_model_routed_parameters(const struct ft_model *model)
{
	double sum = 0;

	for (int64_t i = 0; i < model->n_layers; i++)
		sum += routed_matrices(model, i);
	return sum +
	       (double)model->predicted * routed_matrices(model, model->predicted_like);
}

double ft_model_flop_per_token(const struct ft_model *model, int64_t tp,
			       int64_t sequence, bool causal)
{
	int64_t last = model->predicted_like;
	double attention = (double)model->predicted *
			   attention_products(at(model, last), sequence, causal);

	for (int64_t i = 0; i < model->n_layers; i++)
		attention += attention_products(at(model, i), sequence, causal);
	return 6 * (ft_model_product_parameters(model, tp) + attention);
}
