/* traces/block.c - the two halves of a layer, attention and MLP, as a rank sees them */
#include "traces/autocast.h"
#include "traces/block.h"
#include "traces/casts.h"
#include "traces/compressed.h"
#include "traces/gates.h"
#include "traces/indexed.h"
#include "traces/mixers.h"
#include "traces/streams.h"

/* ---- tensor-parallel collectives ---------------------------------------- */

/* What is gathered goes into a product, and travels in its format if it can. */
static double gathered_bytes(const struct builder *b, const struct layer_sizes *s,
			     int64_t features, bool both)
{
	return gathered_width(b, both) * (double)(s->tokens * features);
}

/* Products whose input DTensor gathers, or whose input's gradient it reduces, one by one. A compiler merges gathers of one
 * tensor: torch/_functorch/compile_utils.py, fx_graph_cse (read 2026-11-29). */
static int64_t apart(const struct builder *b, int64_t products, bool gathers)
{
	bool merged = gathers && b->rules->fusion == FT_FUSION_COMPILED;

	return b->rules->inputs_apart && splits_by_dtensor(b) && !merged ? products : 1;
}

static int64_t up_count(const struct builder *b)
{
	return b->model->activation == FT_SWIGLU && !joins_gate_up(b) ? 2 : 1;
}

void enter_columns(struct builder *b, const struct layer_sizes *s, int64_t products)
{
	for (int64_t i = apart(b, products, true); i > 0; i--)
		enter_split(b, s, s->h, false);
}

void enter_split(struct builder *b, const struct layer_sizes *s, int64_t features,
		 bool gradient)
{
	if (b->plan->sequence_parallel &&
	    put_collective(b, "tp_all_gather", FT_STREAM_TP, FT_ALL_GATHER, FT_GROUP_TP,
			   gathered_bytes(b, s, features, gradient)) &&
	    !b->plan->overlap_tp)
		need(b, FT_STREAM_TP);
}

/* Around a row-split product: partial sums become slices, or whole sums. */
static void leave_split(struct builder *b, const struct layer_sizes *s,
			int64_t features)
{
	bool sp = b->plan->sequence_parallel;

	if (b->chosen && sp) /* kept */
		return;
	if (put_collective(b, sp ? "tp_reduce_scatter" : "tp_all_reduce", FT_STREAM_TP,
			   sp ? FT_REDUCE_SCATTER : FT_ALL_REDUCE, FT_GROUP_TP,
			   2 * (double)(s->tokens * features)))
		need(b, FT_STREAM_TP);
}

/* The next compute op waits for what ran beside the last product. */
static void join_split(struct builder *b)
{
	if (b->plan->tp > 1)
		need(b, FT_STREAM_TP);
}

void row_product(struct builder *b, const struct layer_sizes *s, const char *name,
		 int64_t n, int64_t k)
{
	if (b->plan->overlap_tp) {
		leave_split(b, s, n);
		b->needs[FT_STREAM_TP] = false;
		put_gemm(b, name, FT_FORWARD, s->tokens, n, k);
		join_split(b);
		return;
	}
	put_gemm(b, name, FT_FORWARD, s->tokens, n, k);
	leave_split(b, s, n);
}

void up_products(struct builder *b, const struct layer_sizes *s, enum ft_layout layout)
{
	bool gated = b->model->activation == FT_SWIGLU;

	if (gated && !joins_gate_up(b)) {
		put_gemm(b, s->shared ? "shared_up" : "gate", layout, s->tokens, s->f,
			 s->h);
		put_gemm(b, s->shared ? "shared_up" : "up", layout, s->tokens, s->f,
			 s->h);
	} else {
		put_gemm(b,
			 s->shared ? "shared_up" :
			 gated	   ? "gate_up" :
				     "up",
			 layout, s->tokens, gated ? 2 * s->f : s->f, s->h);
	}
}

/* Backward of products of `features` split by columns: dgrad, its sum over ranks, wgrad.
 * Megatron gathers the input again beside dgrad and reduces beside wgrad; a frozen weight
 * needs no input. Where each product sums by itself, the sums are behind the products of weights. */
static void column_back(struct builder *b, const struct layer_sizes *s,
			int64_t features, int64_t count,
			void (*products)(struct builder *, const struct layer_sizes *,
					 enum ft_layout))
{
	bool megatron = b->rules->tensor_parallel == FT_TP_MEGATRON;
	bool sp = b->plan->sequence_parallel;

	if (megatron && sp && !b->plan->lora.rank) {
		of_weights(b, true);
		if (put_collective(b, "tp_all_gather", FT_STREAM_TP, FT_ALL_GATHER,
				   FT_GROUP_TP,
				   gathered_bytes(b, s, features, false)) &&
		    b->part == PART_WEIGHTS)
			need(b, FT_STREAM_TP); /* no dgrad runs beside it */
		of_weights(b, false);
	}
	products(b, s, FT_DGRAD);
	if (megatron && b->rules->sums_each_input && !sp) {
		put_input_transpose(b, (double)(s->tokens * features));
		products(b, s, FT_WGRAD);
		for (int64_t i = count; i > 0; i--)
			leave_split(b, s, features);
		return;
	}
	for (int64_t i = apart(b, count, false); i > 0; i--)
		leave_split(b, s, features);
	if (megatron && b->part == PART_WHOLE)
		b->needs[FT_STREAM_TP] = false; /* wgrad need not wait */
	put_input_transpose(b, (double)(s->tokens * features));
	products(b, s, FT_WGRAD);
	if (megatron && b->part != PART_WEIGHTS)
		join_split(b);
}

/* Backward of a row-split product: the output's gradient becomes whole first. */
static void row_back(struct builder *b, const struct layer_sizes *s, const char *name,
		     int64_t n, int64_t k)
{
	bool slices = casts_slices(b);

	if (slices)
		put_slice_cast(b, (double)s->part * (double)n);
	enter_split(b, s, n, true);
	if (!slices)
		put_cast(b, (double)s->tokens * (double)n, 1);
	put_gemm(b, name, FT_DGRAD, s->tokens, n, k);
	if (slices)
		put_transpose(b, (double)s->tokens * (double)n);
	put_gemm(b, name, FT_WGRAD, s->tokens, n, k);
	if (b->plan->overlap_tp)
		join_split(b);
}

/* ---- forward -------------------------------------------------------------- */

/* Bytes of a row: a head's, where PyTorch's own kernel takes one at a time; other libraries' take several, for
 * which no rows were measured. */
static double head_row(const struct builder *b, const struct layer_sizes *s)
{
	bool whole = b->model->qk_norm == FT_QK_WHOLE;

	if (b->rules->fusion != FT_FUSION_EAGER)
		return 0;
	return 2 * (double)(whole ? s->q : s->l->qk_head_dim);
}

/* Transformer Engine's RMS norms of widths that it has no kernel of its own for, as heads are, leave a sum for each of their blocks, of which there are as many
 * as run at once; one kernel of few blocks adds these up, one after another, and takes as long whatever the tokens are. Source: rmsnorm_bwd_finalize_general_kernel
 * (transformer_engine/common/normalization/rmsnorm, read 2026-11-29); on a GH200 75.6 us, twice a layer (see the curve norm_finalize). */
static void put_finalize(struct builder *b, int norms, int64_t width)
{
	for (int i = 0; i < norms; i++)
		put_memory(b, "qk_norm_finalize", "norm_finalize", 4 * (double)width,
			   1);
}

/* Of queries and keys, and of values where the model has it; the gradients of keys that are values,
 * too, are added up. */
static void put_head_norms(struct builder *b, const struct layer_sizes *s,
			   bool backward)
{
	int64_t k = own_k(s), values = k && b->model->value_norm ? s->v : 0;

	if (b->model->qk_norm)
		put_bare_norms(b, backward ? "qk_norm_back" : "qk_norm",
			       (double)(s->tokens * (s->q + k + values)),
			       head_row(b, s), 1 + (k > 0) + (values > 0), backward);
	if (backward && b->model->qk_norm == FT_QK_HEAD && b->rules->norm_finalize &&
	    b->model->norm == FT_RMS_NORM)
		put_finalize(b, 1 + (k > 0) + (values > 0), s->l->qk_head_dim);
	if (backward && s->l->values_are_keys)
		put_memory(b, "keys_sum", "add", 6 * (double)(s->tokens * k), 1);
	if (backward &&
	    s->l->shares_kv) /* with those of the layers that read them, too */
		put_memory(b, "keys_sum", "add",
			   6 * (double)(s->tokens * (s->k + s->v)), 2);
}

/* Values times a number, or their gradients. */
static void put_value_scale(struct builder *b, const struct layer_sizes *s)
{
	if (b->model->value_scale)
		put_memory(b, "value_scale", "copy", 4 * (double)(s->tokens * s->v), 1);
}

void attention_inputs(struct builder *b, const struct layer_sizes *s)
{
	put_query_copy(b, s);
	put_value_scale(b, s);
	put_head_norms(b, s, false);
	put_rotary(b, s, false);
	put_rotary_joined(b, s, false);
	latent_join(b, s, false);
}

/* Attention from the products of q, k and v to its own output. */
static void attention_middle(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);

	if (s->linear) {
		delta_core(b, s, false);
		return;
	}
	states_run(b, s);
	attention_inputs(b, s);
	choose_tokens(b, s);
	attention_core(b, s, false);
	put_memory(b, "output_gate", "swiglu", 6 * (double)(s->tokens * s->gate), 1);
	output_gates(b, s, false);
	put_element(b, s, "transpose", by_operation(b) ? "strided" : "copy",
		    r->shuffle);
}

/* What attention made is added, and the MLP's norm follows. */
static void between_halves(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = norm_recipe(b);

	if (!ft_layer_has_mlp(s->l))
		return;
	put_norm_behind(b, s, false);
	put_dropout(b, s, false);
	streams_out(b, s, false);
	streams_in(b, s, false);
	if (has_streams(b))
		put_norm(b, s, "norm", r->norm);
	else
		put_norm(b, s, "add_norm", r->add_norm);
}

void attention_half(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = norm_recipe(b);

	streams_in(b, s, false);
	put_norm(b, s, "norm", r->norm);
	if (s->beside && b->model->norms > 1)
		put_norm(b, s, "norm", r->norm);
	put_norm_cast(b, (double)(s->h * s->part));
	put_autocast(b, s, false);
	if (s->l->compressed) {
		compressed_forward(b, s);
		between_halves(b, s);
		return;
	}
	qkv_enter(b, s);
	qkv_forward(b, s);
	if (b->plan->overlap_tp)
		join_split(b);
	adapters(b, s, SITE_QKV, false);
	attention_middle(b, s);
	put_cast(b, (double)(s->tokens * s->out), 1);
	if (s->beside) { /* its sum over ranks is the MLP's */
		put_gemm(b, "attention_out", FT_FORWARD, s->tokens, s->h, s->out);
		adapters(b, s, SITE_OUT, false);
		return;
	}
	row_product(b, s, "attention_out", s->h, s->out);
	adapters(b, s, SITE_OUT, false);
	between_halves(b, s);
}

/* Side by side, are attention's input and the MLP's one? Falcon 40B and GPT-NeoX have a norm for each. */
static bool shares_norm(const struct builder *b, const struct layer_sizes *s)
{
	return s->beside && b->model->norms < 2;
}

void mlp_inside(struct builder *b, const struct layer_sizes *s)
{
	if (!shares_norm(b, s)) {
		put_norm_cast(b, (double)(s->h * s->part));
		enter_columns(b, s, up_count(b));
	}
	up_products(b, s, FT_FORWARD);
	if (b->plan->overlap_tp)
		join_split(b);
	adapters(b, s, SITE_UP, false);
	put_activation(b, s, s->shared ? "shared_activation" : "activation", false);
	put_cast(b, (double)(s->tokens * s->f), 1);
}

void mlp_half(struct builder *b, const struct layer_sizes *s)
{
	mlp_inside(b, s);
	row_product(b, s, s->shared ? "shared_down" : "down", s->h, s->f);
	adapters(b, s, SITE_DOWN, false);
}

/* ---- backward ------------------------------------------------------------- */

void bias_gradients(struct builder *b, const struct layer_sizes *s)
{
	const struct ft_model *m = b->model;
	bool mlp = m->mlp_bias && !s->l->experts;
	bool plain = !s->linear && !s->l->kv_lora_rank;
	/* those of sums over ranks are added to a rank's slice of the tokens */
	int64_t split =
		(m->qkv_bias && plain ? s->q + s->gate + s->kv : 0) + (mlp ? s->f : 0);
	int64_t summed = (m->out_bias && plain ? s->h : 0) + (mlp ? s->h : 0);

	if (b->plan->lora.rank)
		return;
	of_weights(b, true);
	put_memory(b, "bias_gradient", "default",
		   2 * (double)(s->tokens * split + s->part * summed),
		   (m->qkv_bias && plain) + (m->out_bias && plain) + 2 * mlp);
	of_weights(b, false);
}

void mlp_back(struct builder *b, const struct layer_sizes *s)
{
	bool gated = b->model->activation == FT_SWIGLU;

	row_back(b, s, s->shared ? "shared_down" : "down", s->h, s->f);
	adapters(b, s, SITE_DOWN, true);
	put_activation(b, s, s->shared ? "shared_activation" : "activation_back", true);
	if (gated)
		put_gate_up_joined(b, s);
	put_cast(b, (double)(s->tokens * s->f * (gated ? 2 : 1)), 1);
	adapters(b, s, SITE_UP, true);
	if (!shares_norm(b, s)) {
		column_back(b, s, s->h, up_count(b), up_products);
		return;
	}
	/* its input's gradient is summed with attention's */
	up_products(b, s, FT_DGRAD);
	up_products(b, s, FT_WGRAD);
}

static void middle_back(struct builder *b, const struct layer_sizes *s)
{
	if (s->linear) {
		delta_core(b, s, true);
		return;
	}
	put_memory(b, "output_gate_back", "swiglu", 10 * (double)(s->tokens * s->gate),
		   1);
	output_gates(b, s, true);
	choice_back(b, s);
	attention_core(b, s, true);
	latent_join(b, s, true);
	put_rotary_joined(b, s, true);
	put_rotary(b, s, true);
	put_head_norms(b, s, true);
	put_value_scale(b, s);
	put_qkv_joined(b, s);
	states_back(b, s);
}

void attention_back(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);

	streams_out(b, s, true);
	if (s->l->compressed) {
		compressed_back(b, s);
		put_first_norm_back(b, s);
		streams_in(b, s, true);
		return;
	}
	if (s->beside) { /* the gradient is whole already */
		linear_back(b, "attention_out", s->tokens, s->h, s->out);
	} else {
		put_dropout(b, s, true);
		put_norm_behind(b, s, true);
		row_back(b, s, "attention_out", s->h, s->out);
	}
	adapters(b, s, SITE_OUT, true);
	middle_back(b, s);
	adapters(b, s, SITE_QKV, true);
	put_cast(b, (double)(s->tokens * (s->q + s->gate + s->kv + s->gates)), 1);
	column_back(b, s, qkv_features(b, s), qkv_count(b, s), qkv_products);
	latent_back(b, s);
	put_first_norm_back(b, s);
	if (s->beside && b->model->norms > 1)
		put_norm(b, s, "norm_back", norm_back_of(b, s, true));
	if (has_streams(b))
		streams_in(b, s, true);
	else
		put_element(b, s, "add_back", "add", r->add_back);
}
