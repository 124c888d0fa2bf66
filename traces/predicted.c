/*
 * traces/predicted.c - tokens predicted ahead of the next one (MTP, arXiv 2412.19437, 2.2)
 *
 * On the last stage, for each: the last hidden state and the embedding of the token
 * ahead go through a norm each and one projection of both, a layer like the last (or another of the model), and
 * the shared head with a loss of its own. A last stage that is not the first keeps a
 * copy of the embedding, whose gradients the two then sum.
 */
#include "traces/build.h"
#include "traces/casts.h"
#include "traces/memory.h"
#include "traces/memory_ends.h"
#include "traces/offload.h"

struct held predicted_held(const struct builder *b)
{
	const struct ft_model *m = b->model;
	double h = (double)m->hidden_size, n = (double)m->predicted;
	struct held held = { 0 };

	if (!m->predicted)
		return held;
	held = layer_held(b, m->predicted_like);
	held.dense = n * (held.dense + 2 * h * h / (double)b->plan->tp +
			  3 * m->norm_vectors * h + ft_model_stream_head_parameters(m));
	held.matrices = n * (held.matrices + 2 * h * h / (double)b->plan->tp);
	held.experts *= n;
	return held;
}

struct held outputs_held(const struct builder *b, bool first)
{
	return b->model->tied && first ? predicted_held(b) : ends_held(b, false, true);
}

/* Of both side by side; where the residual has streams one of the embedding and one of each stream (DeepSeek-V4's e_proj and
 * h_proj, by Megatron Core's multi_token_prediction.py, read 2026-12-01). */
static void projection(struct builder *b, enum ft_layout layout)
{
	int64_t h = b->model->hidden_size, tp = b->plan->tp, n = b->model->streams;

	if (n > 1) {
		put_gemm(b, "mtp_projection", layout, b->tokens, h / tp, h);
		put_gemm(b, "mtp_projection", layout, n * b->tokens, h / tp, h);
	} else {
		put_gemm(b, "mtp_projection", layout, b->tokens, h / tp, 2 * h);
	}
}

/* Hidden states that go into it for each token, the embedding among them. */
static double joined_states(const struct builder *b)
{
	return 1 + (double)b->model->streams;
}

/* Two norms and the tensor that holds both side by side. */
static void norms(struct builder *b, bool backward)
{
	int64_t part = b->plan->sequence_parallel ? b->tokens / b->plan->tp : b->tokens;
	double numbers = joined_states(b) * (double)(part * b->model->hidden_size);

	put_bare_norms(b, backward ? "mtp_norm_back" : "mtp_norm", numbers,
		       2 * (double)b->model->hidden_size, 2, backward);
	put_memory(b, "mtp_join", "copy", 4 * numbers, backward ? 2 : 1);
}

/* What a predicted token's norms and projection keep: both inputs, and both outputs side by side. */
static void joined_bytes(struct builder *b, bool backward)
{
	int64_t part = b->plan->sequence_parallel ? b->tokens / b->plan->tp : b->tokens;
	double kept = joined_states(b) * (4 + norm_kept(b)) *
		      (double)(part * b->model->hidden_size);

	if (!backward)
		b->seg->peak_bytes[FT_MEMORY_ACTIVATIONS] += kept;
	if (!backward || b->part != PART_INPUTS)
		b->seg->net_bytes[FT_MEMORY_ACTIVATIONS] += backward ? -kept : kept;
}

/* Of so many hidden states of each token. */
static bool over_ranks(struct builder *b, enum ft_collective op, double states)
{
	return put_collective(b, "tp_mtp", FT_STREAM_TP, op, FT_GROUP_TP,
			      states * hidden_bytes(b)) != NULL;
}

/* It is split by columns, as those in layers are, but its outputs become whole: slices of both norms' outputs are gathered in front of it,
 * and its own outputs behind it, of which a rank goes on with its slice of the tokens; backward the other way. Source:
 * megatron/core/transformer/multi_token_prediction.py, _concat_embeddings (read 2026-12-01). */
static void project(struct builder *b)
{
	double width = gathered_width(b, false) / 2;

	if (b->plan->sequence_parallel &&
	    over_ranks(b, FT_ALL_GATHER, width * joined_states(b)))
		need(b, FT_STREAM_TP);
	projection(b, FT_FORWARD);
	if (over_ranks(b, FT_ALL_GATHER, 1))
		need(b, FT_STREAM_TP);
}

/* Megatron gathers the inputs again beside dgrad, and sums beside wgrad. */
static void project_back(struct builder *b)
{
	bool megatron = b->rules->tensor_parallel == FT_TP_MEGATRON;
	bool sliced = b->plan->sequence_parallel;
	double width = gathered_width(b, false) / 2;

	if (sliced && over_ranks(b, FT_ALL_GATHER, 1))
		need(b, FT_STREAM_TP);
	of_weights(b, true);
	if (sliced && megatron &&
	    over_ranks(b, FT_ALL_GATHER, width * joined_states(b)) &&
	    b->part == PART_WEIGHTS)
		need(b, FT_STREAM_TP); /* no dgrad runs beside it */
	of_weights(b, false);
	projection(b, FT_DGRAD);
	if (over_ranks(b, sliced ? FT_REDUCE_SCATTER : FT_ALL_REDUCE,
		       joined_states(b)) &&
	    !(megatron && b->part == PART_WHOLE))
		need(b, FT_STREAM_TP);
	projection(b, FT_WGRAD);
	if (b->plan->tp > 1 && b->part != PART_WEIGHTS)
		need(b, FT_STREAM_TP);
}

void outputs_forward(struct builder *b)
{
	int64_t last = b->model->predicted_like;

	head_forward(b);
	for (int64_t i = 0; i < b->model->predicted; i++) {
		embedding_forward(b);
		norms(b, false);
		joined_bytes(b, false);
		project(b);
		layer_forward(b, last);
		layer_bytes(b, last, false);
		head_forward(b);
		head_bytes(b, (struct held){ 0 }, false);
	}
}

void outputs_backward(struct builder *b)
{
	int64_t last = b->model->predicted_like;

	for (int64_t i = 0; i < b->model->predicted; i++) {
		head_backward(b);
		head_bytes(b, (struct held){ 0 }, true);
		if (b->part != PART_WEIGHTS)
			fetch_await(b, last, V_FETCH);
		layer_backward(b, last);
		layer_bytes(b, last, true);
		layer_beside_scan(b, last);
		project_back(b);
		norms(b, true);
		joined_bytes(b, true);
		embedding_backward(b);
	}
	head_backward(b);
}
