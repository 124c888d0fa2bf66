/* traces/parameters.c - how many parameters a rank holds before sharding */
#include <math.h>

#include "traces/block.h"
#include "traces/casts.h"
#include "traces/compressed.h"
#include "traces/host_state.h"
#include "traces/muon.h"

/* Two matrices for each adapter. */
static int64_t adapter_tensors(const struct builder *b, int64_t layer)
{
	int64_t n = 0;

	for (int t = 0; t < FT_LORA_TARGETS; t++)
		n += 2 * ft_lora_laid(b->model, &b->plan->lora, layer,
				      (enum ft_lora_target)t);
	return n;
}

/* q, k and v, or latents with their norms, and the output; norms on q and k. */
static int64_t attention_tensors(const struct builder *b, const struct ft_layer *l)
{
	const struct ft_model *m = b->model;
	int64_t own = l->shares_kv ? 0 : l->values_are_keys ? 1 : 2;
	int64_t gates = l->output_gates && !joins_qkv(b); /* without a bias */
	int64_t inputs = joins_qkv(b) ? 1 : 1 + own;
	/* of a state space beside: in, taps, their biases, three numbers a head, out, a norm */
	int64_t states = l->states_beside ? 7 + !l->bare_states : 0;
	int64_t n = inputs + gates + 1 + states;

	if (l->short_conv) /* in, taps, out */
		return 3;
	if (l->linear_rank) /* q, k, v, taps, two of the gate and two of the decay, three of rates, a norm, out */
		return 13;
	if (l->compressed)
		return compressed_tensors(l);
	if (l->kv_lora_rank)
		n = (l->q_lora_rank ? 3 : 1) + 4;
	return n + (m->qkv_bias ? inputs : 0) + m->out_bias + l->sinks +
	       (m->qk_norm == FT_QK_HEAD || m->qk_norm == FT_QK_WHOLE ?
			1 + !l->shares_kv :
			0);
}

/* Experts of a rank lie in one tensor a matrix. */
static int64_t mlp_tensors(const struct builder *b, const struct ft_layer *l)
{
	const struct ft_model *m = b->model;
	bool gated = m->activation == FT_SWIGLU;
	int64_t matrices = 2 + (gated && !joins_gate_up(b));
	int64_t n = matrices * (1 + m->mlp_bias);

	if (!ft_layer_has_mlp(l))
		return 0;
	if (!l->experts)
		return n;
	return n + 1 + m->router_bias + (l->expert_latent ? 2 : 0) +
	       (m->dense_beside ? 2 : 0) +
	       (l->shared_intermediate ? matrices + m->shared_gate : 0);
}

/* How many tensors the weights of a layer are kept in, adapters not counted. */
static int64_t weight_tensors(const struct builder *b, int64_t layer)
{
	const struct ft_model *m = b->model;
	const struct ft_layer *l = &m->layer[layer];

	return attention_tensors(b, l) + mlp_tensors(b, l) + (m->layer_input ? 2 : 0) +
	       (m->streams > 1 ? 6 : 0) + ft_layer_norms(m, l) * m->norm_vectors;
}

int64_t layer_tensors(const struct builder *b, int64_t layer)
{
	return b->plan->lora.rank ? adapter_tensors(b, layer) :
				    weight_tensors(b, layer);
}

/* Of a layer's matrices; experts of a rank lie in one tensor a matrix. */
static double mapped_matrices(const struct builder *b, int64_t layer)
{
	struct ft_matrix matrix[FT_LAYER_MATRICES];
	size_t n = ft_layer_matrices(b->model, layer, matrix);
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ft_matrix *x = &matrix[i];
		bool routed = x->of == FT_OF_EXPERTS;
		double split = routed ? (double)(b->plan->ep * b->plan->etp) :
			       x->split == FT_SPLIT_NOT ? 1 :
							  (double)b->plan->tp;
		double shard = routed ? (double)ft_plan_expert_shard(b->plan) :
					(double)b->plan->shard;
		double each = (double)x->outputs * (double)x->inputs / split;

		sum += routed ? mapped_share(each * (double)x->count, shard) :
				(double)x->count * mapped_share(each, shard);
	}
	return sum;
}

/* All of a layer, as trained. */
static struct held layer_weights(const struct builder *b, int64_t layer)
{
	const struct ft_model *m = b->model;
	struct held held = {
		.dense = ft_layer_rank_parameters(m, layer, b->plan->tp),
		.experts = ft_layer_expert_parameters(m, layer) /
			   (double)(b->plan->ep * b->plan->etp),
		.tensors = weight_tensors(b, layer),
	};

	if (b->plan->offload_state != FT_OFFLOAD_NONE)
		held.mapped = mapped_matrices(b, layer);
	if (b->plan->optimizer == FT_MUON)
		held.matrices = fmin(held.dense, matrix_parameters(b, layer));
	return held;
}

void held_add(struct held *sum, struct held more)
{
	sum->dense += more.dense;
	sum->experts += more.experts;
	sum->matrices += more.matrices;
	sum->mapped += more.mapped;
	sum->frozen += more.frozen;
	sum->frozen_experts += more.frozen_experts;
	sum->tensors += more.tensors;
	sum->frozen_tensors += more.frozen_tensors;
}

double held_state(const struct builder *b, struct held of, bool shared, double width)
{
	double all = shared ? held_share(b, of) : of.dense + of.experts;

	width = ft_moment_bytes(b->plan, width);
	return ft_optimizer_state_bytes(b->plan->optimizer, width) * all -
	       width * muon_numbers(b, of, shared);
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
	double width = stored_width(lora->frozen), trained;

	if (!lora->rank)
		return all;
	trained = ft_layer_lora_parameters(b->model, lora, layer) / (double)b->plan->tp;
	return (struct held){ .dense = trained,
			      .matrices = trained,
			      .frozen = width * all.dense,
			      .frozen_experts = width * all.experts,
			      .tensors = layer_tensors(b, layer),
			      .frozen_tensors = all.tensors };
}

/* Words and learned positions, and their norm; the last norm, and a head of its own. */
static int64_t ends_tensors(const struct ft_model *m, bool first, bool last)
{
	int64_t words = 1 + (m->max_positions > 0) + (m->layer_input ? 3 : 0) +
			(m->embedding_norm ? m->norm_vectors : 0);
	int64_t head = m->norm_vectors + !(m->tied && first) + m->head_bias +
		       (m->streams > 1 ? 3 : 0);

	return (first ? words : 0) + (last ? head : 0);
}

/* Does the last stage look tokens up that it predicts, in a copy? A V ends where it began. */
static bool copies_words(const struct builder *b)
{
	return b->model->predicted && b->plan->pp > 1 &&
	       !ft_schedule_folds(b->plan->schedule);
}

/* Learned positions are whole on each tensor rank, words are not (Megatron Core's LanguageModelEmbedding). */
struct held ends_held(const struct builder *b, bool first, bool last)
{
	const struct ft_model *m = b->model;
	double tp = (double)b->plan->tp;
	int64_t vocab = ft_model_vocab(m, b->plan->tp);
	double norm = (double)(m->norm_vectors * m->hidden_size);
	double head = (double)(m->hidden_size * vocab);
	struct held held = last ? predicted_held(b) : (struct held){ 0 };
	bool words = first || (last && copies_words(b));

	if (words) /* what makes layers' inputs is never split: see stack_runs.c */
		held.dense += head / tp + (double)(m->max_positions * m->hidden_size) +
			      ft_model_layer_input_parameters(m);
	if (last && !(m->tied && words)) /* tied: a copy of its own at the end */
		held.dense += head / tp;
	if (last)
		held.dense += norm + ft_model_stream_head_parameters(m) +
			      (m->head_bias ? (double)vocab / tp : 0);
	if (first && m->embedding_norm)
		held.dense += norm;
	held.mapped += (words + (last && !(m->tied && words))) *
		       mapped_share(head / tp, (double)b->plan->shard);
	held.tensors += ends_tensors(m, first, last);
	if (b->plan->lora.rank) /* frozen, in 16 bit */
		return (struct held){ .frozen = 2 * held.dense,
				      .frozen_tensors = held.tensors };
	return held;
}
