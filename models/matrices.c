/* models/matrices.c - the matrices of a layer, one by one: counts of parameters and FLOPs are their sums */
#include "foretoken/models.h"

#include <assert.h>

struct list {
	struct ft_matrix *matrix;
	size_t n;
};

static void put(struct list *to, enum ft_matrix_of of, enum ft_matrix_split split,
		int64_t outputs, int64_t inputs, int64_t count)
{
	assert(to->n < FT_LAYER_MATRICES);
	if (outputs > 0 && inputs > 0 && count > 0)
		to->matrix[to->n++] =
			(struct ft_matrix){ of, split, outputs, inputs, count };
}

/* A gated delta rule (arXiv 2412.06464): q and k, v and its gate in one, two numbers for each
 * value head in another; and the output. Of a state space the first two are one matrix, whose
 * parts are told apart here all the same. A gated convolution's has what is convolved and two gates; Kimi's rule makes its
 * gate and its decays through a low rank, which no rank of a tensor group divides. */
static void put_linear(struct list *to, const struct ft_layer *l, int64_t h)
{
	int64_t k = l->linear_key_heads * l->linear_key_dim;
	int64_t v = l->linear_heads * l->linear_value_dim;

	put(to, FT_OF_ATTENTION, FT_SPLIT_OUTPUTS,
	    2 * k + (l->short_conv || l->linear_rank ? 1 : 2) * v, h, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_NOT, 2 * l->linear_rank, h, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_OUTPUTS, k, l->linear_rank, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_OUTPUTS, v, l->linear_rank, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_OUTPUTS,
	    ft_layer_linear_rates(l) * l->linear_heads, h, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_INPUTS, h, v, 1);
}

/* An indexer (DeepSeek-V3.2, arXiv 2512.02556): its heads of queries from q's latent, one key and a weight for each head from
 * the hidden state. Whole on each tensor rank: Megatron Core's DSAIndexer, whose layers are duplicated (read 2026-11-30). */
static void put_indexer(struct list *to, const struct ft_layer *l, int64_t h)
{
	put(to, FT_OF_ATTENTION, FT_SPLIT_NOT, l->index_heads * l->index_head_dim,
	    l->q_lora_rank, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_NOT, l->index_head_dim, h, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_NOT, l->index_heads, h, 1);
}

/* Latent attention (DeepSeek-V2, arXiv 2405.04434, 2.1): q through a low rank, k and v from
 * another and a shared rope key. */
static void put_latent(struct list *to, const struct ft_layer *l, int64_t h)
{
	int64_t rank = l->q_lora_rank;

	put(to, FT_OF_ATTENTION, FT_SPLIT_NOT, rank, h, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_OUTPUTS, l->heads * l->qk_head_dim,
	    rank ? rank : h, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_NOT, l->kv_lora_rank + l->qk_rope_head_dim, h,
	    1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_OUTPUTS,
	    l->heads * (l->qk_head_dim - l->qk_rope_head_dim + l->v_head_dim),
	    l->kv_lora_rank, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_INPUTS, h, l->heads * l->v_head_dim, 1);
	if (ft_layer_chooses(l))
		put_indexer(to, l, h);
}

/* What entries are made of: a value and a weight of each token, of two series where entries are chosen. */
static void put_entries(struct list *to, int64_t width, bool chosen, int64_t h)
{
	for (int i = 0; i < 2; i++)
		put(to, FT_OF_ATTENTION, FT_SPLIT_NOT, (chosen ? 2 : 1) * width, h, 1);
}

/* DeepSeek-V4's: queries through a low rank, keys that are values, the output through a low rank of each group of heads.
 * Source: Transformers' modeling of deepseek_v4 (read 2026-11-30). No framework divides it over tensor ranks. */
static void put_compressed(struct list *to, const struct ft_layer *l, int64_t h)
{
	bool chosen = ft_layer_chooses(l);
	int64_t q = l->heads * l->qk_head_dim;

	put(to, FT_OF_ATTENTION, FT_SPLIT_NOT, l->q_lora_rank, h, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_NOT, q, l->q_lora_rank, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_NOT, l->qk_head_dim, h, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_NOT, l->out_groups * l->out_rank,
	    q / l->out_groups, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_NOT, h, l->out_groups * l->out_rank, 1);
	if (l->entry_tokens)
		put_entries(to, l->qk_head_dim, chosen, h);
	if (!chosen)
		return;
	put_entries(to, l->index_head_dim, chosen, h);
	put(to, FT_OF_ATTENTION, FT_SPLIT_NOT, l->index_heads * l->index_head_dim,
	    l->q_lora_rank, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_NOT, l->index_heads, h, 1);
}

static void put_attention(struct list *to, const struct ft_model *m,
			  const struct ft_layer *l)
{
	int64_t h = m->hidden_size, q = l->heads * l->qk_head_dim;

	if (!ft_layer_attends(l)) {
		put_linear(to, l, h);
		return;
	}
	if (l->kv_lora_rank) {
		put_latent(to, l, h);
		return;
	}
	if (l->compressed) {
		put_compressed(to, l, h);
		return;
	}
	put(to, FT_OF_ATTENTION, FT_SPLIT_OUTPUTS, (m->gated_output ? 2 : 1) * q, h, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_OUTPUTS,
	    l->shares_kv ? 0 : l->kv_heads * l->qk_head_dim, h, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_OUTPUTS,
	    l->shares_kv || l->values_are_keys ? 0 : l->kv_heads * l->v_head_dim, h, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_OUTPUTS, l->output_gates, h, 1);
	put(to, FT_OF_ATTENTION, FT_SPLIT_INPUTS, h, l->heads * l->v_head_dim, 1);
	if (l->states_beside)
		put_linear(to, l, h);
}

/* Up, the gate if there is one, which is as large, and down. */
static void put_mlp(struct list *to, const struct ft_model *m, struct ft_matrix up)
{
	put(to, up.of, up.split, up.outputs, up.inputs, up.count);
	if (m->activation == FT_SWIGLU)
		put(to, up.of, up.split, up.outputs, up.inputs, up.count);
	put(to, up.of, FT_SPLIT_INPUTS, up.inputs, up.outputs, up.count);
}

/* Around routed experts. Source that the projections are whole on each tensor rank: Megatron Core's moe_layer.py,
 * fc1_latent_proj and fc2_latent_proj (read 2026-11-28). */
static void put_around(struct list *to, const struct ft_model *m,
		       const struct ft_layer *l)
{
	int64_t h = m->hidden_size;

	put(to, FT_OF_ROUTER, FT_SPLIT_NOT, l->experts, h, 1);
	put(to, FT_OF_ROUTER, FT_SPLIT_NOT, m->shared_gate && l->shared_intermediate, h,
	    1);
	put(to, FT_OF_ROUTER, FT_SPLIT_NOT, l->expert_latent, h, 1);
	put(to, FT_OF_ROUTER, FT_SPLIT_NOT, l->expert_latent ? h : 0, l->expert_latent,
	    1);
}

/* Of n streams each half of a layer makes n weights to sum them by, n to add its output by, and n x n to mix them. */
static void put_streams(struct list *to, const struct ft_model *m)
{
	int64_t n = m->streams;

	for (int i = 0; i < 2 && n > 1; i++)
		put(to, i ? FT_OF_ROUTER : FT_OF_ATTENTION, FT_SPLIT_NOT, n * (n + 2),
		    n * m->hidden_size, 1);
}

size_t ft_layer_matrices(const struct ft_model *model, int64_t i,
			 struct ft_matrix matrix[FT_LAYER_MATRICES])
{
	struct list to = { matrix, 0 };
	const struct ft_layer *l;
	int64_t h = model->hidden_size;

	assert(i >= 0 && i < model->n_layers);
	l = &model->layer[i];
	put_attention(&to, model, l);
	put_mlp(&to, model,
		(struct ft_matrix){ FT_OF_MLP, FT_SPLIT_OUTPUTS, l->intermediate, h,
				    1 });
	put_mlp(&to, model,
		(struct ft_matrix){ FT_OF_SHARED, FT_SPLIT_OUTPUTS,
				    l->shared_intermediate, h, 1 });
	put_mlp(&to, model,
		(struct ft_matrix){ FT_OF_EXPERTS, FT_SPLIT_OUTPUTS,
				    l->expert_intermediate,
				    ft_layer_expert_hidden(model, l), l->experts });
	put_around(&to, model, l);
	put_streams(&to, model);
	put(&to, FT_OF_MLP, FT_SPLIT_NOT, model->layer_input, h, 1);
	put(&to, FT_OF_MLP, FT_SPLIT_NOT, h, model->layer_input, 1);
	return to.n;
}

double ft_model_matrix_parameters(const struct ft_model *model)
{
	struct ft_matrix matrix[FT_LAYER_MATRICES];
	double sum = 0;

	for (int64_t i = 0; i < model->n_layers; i++) {
		size_t n = ft_layer_matrices(model, i, matrix);

		for (size_t j = 0; j < n; j++)
			sum += (double)matrix[j].outputs * (double)matrix[j].inputs *
			       (double)matrix[j].count;
	}
	return sum;
}
