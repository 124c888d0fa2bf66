/*
 * traces/indexed.c - attention to the tokens that an indexer chooses
 *
 * Of s tokens an indexer of h heads of d scores all s^2 / 2 pairs, 2 h d FLOP each, and sends nothing back to what it
 * reads. Its loss compares its softmax over the chosen ones with attention's, summed over heads: attention's scores of these
 * once more, then the gradients of its own. Without the loss it is not trained.
 *
 * Source: DeepSeek-V3.2 (arXiv 2512.02556, 2.1); Megatron Core's dsa.py and absorbed_mla.py (read 2026-11-30): inputs
 * are detached, indexers and their inputs whole on each tensor rank, for which slices of hidden states and latents are
 * gathered; the sum over heads is one over tensor ranks; context ranks gather latents and indexers' keys, and keep them;
 * up-projections that are absorbed are products in 16 bit whatever the format of others. Where a stage of a pipeline begins
 * with a layer that sees what another chose the choice is sent along, as NeMo AutoModel has it (its pull request 3573).
 * Counted: what a choice moves, scores in fp32 written once and read twice.
 */
#include "traces/indexed.h"

#include <math.h>

#include "base/whole.h"
#include "traces/compressed.h"

bool is_gathered(const struct builder *b, const struct ft_layer *l)
{
	return l->index_topk && !l->compressed && !b->rules->masked_choice &&
	       !is_unfused(b);
}

void gather_latents(struct ft_work *w, const struct ft_layer *l)
{
	w->attention.kv_heads = 1;
	w->attention.qk_head_dim = l->kv_lora_rank + l->qk_rope_head_dim;
	w->attention.v_head_dim = l->kv_lora_rank;
	w->attention.window = l->index_topk;
	w->attention.keys_are = FT_KEYS_CHOSEN;
	w->attention.impl = NULL;
}

/* Tokens that a query sees at most. */
static double chosen_of(const struct builder *b, const struct ft_layer *l)
{
	return (double)(l->index_topk < b->plan->sequence ? l->index_topk :
							    b->plan->sequence);
}

static bool is_trained(const struct builder *b, const struct ft_layer *l)
{
	return ft_layer_chooses(l) && b->plan->indexer_loss && !b->plan->lora.rank;
}

/* Does its first pass run without gradients, by which its loss is left to the second? Megatron's checkpoints run so, of layers or
 * of the core (tensor_parallel.checkpoint and dsa.py, which asks torch.is_grad_enabled), PyTorch's since 2.1 do not. */
static bool loses_later(const struct builder *b, const struct ft_layer *l)
{
	return b->rules->full_recompute == FT_AGAIN_WHOLE &&
	       chooses_again(b, l - b->model->layer);
}

static struct ft_work over_tokens(const struct builder *b, const char *name,
				  enum ft_pass pass)
{
	struct ft_work w = { .kind = FT_ATTENTION,
			     .name = name,
			     .dtype = b->plan->attention_precision };

	w.attention.pass = pass;
	w.attention.kv_heads = 1;
	w.attention.causal = b->model->causal;
	return w;
}

/* Of a rank's queries, each sequence or chunk by itself. */
static void put_over(struct builder *b, const struct ft_layer *l, struct ft_work *w)
{
	struct pieces p = pieces_of(b, l);

	for (int i = 0; i < 2 && p.length[i]; i++) {
		w->attention.batch = p.batch[i];
		w->attention.queries = ceil_div(p.length[i], b->plan->cp);
		w->attention.keys = p.length[i];
		put_op(b, w, FT_STREAM_COMPUTE, 1);
	}
}

/* Scores of the indexer: of all tokens before, or the gradients of those that are chosen. */
static void put_index_scores(struct builder *b, const struct ft_layer *l,
			     enum ft_pass pass)
{
	struct ft_work w = over_tokens(
		b, pass == FT_PASS_FORWARD ? "index_scores" : "index_scores_back",
		pass);

	w.attention.heads = l->index_heads;
	w.attention.qk_head_dim = l->index_head_dim;
	w.attention.window = pass == FT_PASS_FORWARD ? 0 : l->index_topk;
	w.attention.keys_are = FT_KEYS_SCORED;
	put_over(b, l, &w);
}

/* What attention itself made of the chosen tokens, summed over heads. */
static void put_target(struct builder *b, const struct layer_sizes *s)
{
	struct ft_work w = over_tokens(b, "index_target", FT_PASS_FORWARD);

	gather_latents(&w, s->l);
	w.attention.heads = s->heads;
	w.attention.v_head_dim = 0;
	put_over(b, s->l, &w);
	if (put_collective(b, "index_all_reduce", FT_STREAM_TP, FT_ALL_REDUCE,
			   FT_GROUP_TP, 4 * (double)s->tokens * chosen_of(b, s->l)))
		need(b, FT_STREAM_TP);
}

/* Has a rank a slice of the hidden states and of q's latents, which its indexer reads whole? */
static bool reads_slices(const struct builder *b)
{
	return b->plan->tp > 1 && b->plan->sequence_parallel &&
	       b->rules->tensor_parallel == FT_TP_MEGATRON;
}

/* Numbers a token that an indexer reads. */
static double index_inputs(const struct layer_sizes *s)
{
	return (double)(s->h + s->l->q_lora_rank);
}

static void gather_inputs(struct builder *b, const struct layer_sizes *s)
{
	if (reads_slices(b) &&
	    put_collective(b, "index_all_gather", FT_STREAM_TP, FT_ALL_GATHER,
			   FT_GROUP_TP, 2 * (double)s->tokens * index_inputs(s)))
		need(b, FT_STREAM_TP);
}

/* The indexer's keys of all context ranks, or their gradients. */
static void share_keys(struct builder *b, const struct layer_sizes *s, bool backward)
{
	if (put_collective(
		    b, backward ? "cp_reduce_scatter" : "cp_all_gather", FT_STREAM_CP,
		    backward ? FT_REDUCE_SCATTER : FT_ALL_GATHER, FT_GROUP_CP,
		    2 * (double)(s->tokens * b->plan->cp * s->l->index_head_dim)))
		need(b, FT_STREAM_CP);
}

/* Multiply-adds a token of an indexer's products. */
static double index_matrices(const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;

	return ft_layer_chooses(l) ?
		       (double)(l->index_heads * l->index_head_dim * l->q_lora_rank +
				(l->index_head_dim + l->index_heads) * s->h) :
		       0;
}

static void index_products(struct builder *b, const struct layer_sizes *s,
			   enum ft_layout layout)
{
	const struct ft_layer *l = s->l;

	put_gemm(b, "index_q", layout, s->tokens, l->index_heads * l->index_head_dim,
		 l->q_lora_rank);
	put_gemm(b, "index_k", layout, s->tokens, l->index_head_dim, s->h);
	put_gemm(b, "index_weights", layout, s->tokens, l->index_heads, s->h);
}

/* Keys through a norm, both turned and rotated: each reads and writes 2 bytes. */
static void index_elements(struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;
	double k = (double)(s->tokens * l->index_head_dim);

	put_bare_norms(b, "index_norm", k, 2 * (double)l->index_head_dim, 1, false);
	put_memory(b, "index_rotary", "copy", 8 * k * (double)(l->index_heads + 1), 4);
}

/*
 * As Transformers' classes choose, without gradients: scores of all tokens in fp32, head by head, scaled, cut off at 0 and
 * summed by their weights; the choice by a sort, and a mask of it. Of several sequences each query has a copy of all keys of
 * its own, as the product is told to spread them over two dimensions; a compiler copies keys that are rotated whole by rows,
 * others across them. Bytes as a copy moves them in their time: a number of the indexer's queries, one of such keys, a score,
 * a pair of tokens, and a chosen one. Source: modeling_deepseek_v32.py of Transformers 5.17 (read 2026-11-30),
 * measurements/traces/h200-transformers-deepseek-v3.2-*, -glm-dsa-* (spread_turned: one of them, -glm-dsa-small-*), and, of
 * the keys, measurements/probes/h200-2026-11-30-indexers-unseen.jsonl.gz.
 */
static const struct mask_made {
	double turned, spread, spread_turned, scaled, summed, pair, chosen;
	int turns, scales, choices; /* launches */
} by_operations = { 55, 24, 24, 16, 5, 100, 180, 14, 2, 40 },
  compiled = { 7, 24, 4, 8, 5, 60, 180, 2, 1, 30 };

/* Numbers of keys that are copied, one set for each query. */
static double spread_keys(const struct builder *b, const struct layer_sizes *s)
{
	return b->sequences > 1 ? (double)s->tokens * (double)b->plan->sequence *
					  (double)s->l->index_head_dim :
				  0;
}

static void make_mask(struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;
	const struct mask_made *m =
		b->rules->fusion == FT_FUSION_COMPILED ? &compiled : &by_operations;
	int64_t all = b->plan->sequence, rows = s->tokens * l->index_heads;
	double scores = (double)rows * (double)all, tokens = (double)s->tokens;
	double seen = chosen_of(b, l);

	index_products(b, s, FT_FORWARD);
	put_bare_norms(b, "index_norm", tokens * (double)l->index_head_dim,
		       2 * (double)l->index_head_dim, 1, false);
	put_memory(b, "index_rotary", "copy",
		   m->turned * (double)(rows * l->index_head_dim), m->turns);
	if (spread_keys(b, s) > 0)
		put_memory(b, "index_keys", "copy",
			   spread_keys(b, s) *
				   (l->index_head_dim == l->qk_rope_head_dim ?
					    m->spread_turned :
					    m->spread),
			   1);
	put_square(b, "index_scores", FT_FP32,
		   (struct edges){ rows, all, l->index_head_dim }, s->tokens);
	put_memory(b, "index_scale", "mul", m->scaled * scores, m->scales);
	put_memory(b, "index_sum", "copy", m->summed * scores, 1);
	put_memory(b, "index_choice", "copy",
		   tokens * (m->pair * (double)all + m->chosen * seen), m->choices);
}

/* Kernels that gather choose from scores in fp32 of all pairs, the square of them (dsa_cudnn_kernels.py, read 2026-11-30). */
double choice_bytes(const struct builder *b, int64_t layer)
{
	struct layer_sizes s = sizes_of(b, layer);
	double pairs = (double)s.tokens * (double)b->plan->sequence;
	double scores = pairs * (double)s.l->index_heads;

	if (!ft_layer_chooses(s.l))
		return 0;
	if (s.l->compressed)
		return 4 * pairs / (double)s.l->entry_tokens;
	return 4 * (is_gathered(b, s.l) ?
			    pairs :
			    fmax(2 * scores, scores + spread_keys(b, &s)));
}

bool chooses_again(const struct builder *b, int64_t layer)
{
	enum ft_recompute how = layer_recompute(b, layer);

	if (!b->model->layer[layer].compressed &&
	    !is_gathered(b, &b->model->layer[layer]))
		return how != FT_RECOMPUTE_NONE;
	return how == FT_RECOMPUTE_FULL ||
	       (how == FT_RECOMPUTE_SELECTIVE &&
		recomputed_modules(b) & FT_MODULE_CORE_ATTENTION);
}

void put_choice(struct builder *b, double scores)
{
	put_memory(b, "index_choice", "default", 3 * 4 * scores, 3);
}

void choose_tokens(struct builder *b, const struct layer_sizes *s)
{
	double pairs = ft_layer_pairs(s->l, b->plan->sequence, 0, b->model->causal) *
		       (double)b->sequences / (double)b->plan->cp;

	if (!ft_layer_chooses(s->l))
		return;
	if (!is_gathered(b, s->l)) {
		make_mask(b, s);
		return;
	}
	gather_inputs(b, s);
	index_products(b, s, FT_FORWARD);
	index_elements(b, s);
	share_keys(b, s, false);
	put_index_scores(b, s->l, FT_PASS_FORWARD);
	put_choice(b, pairs);
	if (is_trained(b, s->l) && (b->again_now || !loses_later(b, s->l)))
		put_target(b, s);
}

void choice_back(struct builder *b, const struct layer_sizes *s)
{
	if (!is_trained(b, s->l) || !is_gathered(b, s->l))
		return;
	put_index_scores(b, s->l, FT_PASS_BACKWARD);
	share_keys(b, s, true);
	index_elements(b, s);
	index_products(b, s, FT_WGRAD);
}

/* A product for each head. */
static void by_head(struct builder *b, const char *name, const struct layer_sizes *s,
		    int64_t n, int64_t k, bool backward)
{
	int64_t m = s->tokens * s->heads;
	enum ft_dtype dtype = b->plan->precision == FT_FP16 ? FT_FP16 : FT_BF16;

	put_square(b, name, dtype, (struct edges){ m, n, k }, s->heads);
	if (!backward || b->plan->lora.rank)
		return;
	of_weights(b, true);
	put_square(b, name, dtype, (struct edges){ m, n, k }, s->heads);
	of_weights(b, false);
}

void absorb_keys(struct builder *b, const struct layer_sizes *s, bool backward)
{
	const struct ft_layer *l = s->l;

	by_head(b, "absorb_keys", s, l->kv_lora_rank,
		l->qk_head_dim - l->qk_rope_head_dim, backward);
	put_memory(b, backward ? "latent_join_back" : "latent_join", "copy",
		   4 * (double)(s->tokens * s->heads *
				(l->kv_lora_rank + l->qk_rope_head_dim)),
		   1);
}

void project_values(struct builder *b, const struct layer_sizes *s, bool backward)
{
	by_head(b, "project_values", s, s->l->v_head_dim, s->l->kv_lora_rank, backward);
}

double gathered_flop(const struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;
	int64_t all = b->plan->sequence;
	double each = (double)b->sequences / (double)b->plan->cp;
	double seen = each * ft_layer_pairs(l, all, l->index_topk, b->model->causal);
	double scored = each * ft_layer_pairs(l, all, 0, b->model->causal);
	double latent = (double)l->kv_lora_rank,
	       k = latent + (double)l->qk_rope_head_dim;
	double target = is_trained(b, l) && !loses_later(b, l) ? k : 0;

	if (!ft_layer_chooses(l))
		scored = 0;
	return ft_attention_flop(FT_PASS_FORWARD, (double)s->heads * seen, k + target,
				 latent) +
	       ft_attention_flop(FT_PASS_FORWARD, (double)l->index_heads * scored,
				 (double)l->index_head_dim, 0);
}

double masked_choice_flop(const struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;

	return ft_layer_chooses(l) && !is_gathered(b, l) && !l->compressed ?
		       2 * (double)(s->tokens * l->index_heads * l->index_head_dim) *
			       (double)b->plan->sequence :
		       0;
}

double whole_index_products(const struct builder *b, const struct layer_sizes *s)
{
	return index_matrices(s) * (1 - 1 / (double)b->plan->tp);
}

double core_products(const struct builder *b, const struct layer_sizes *s)
{
	return is_gathered(b, s->l) ?
		       index_matrices(s) + (double)(s->out * s->l->kv_lora_rank) :
		       0;
}

double choice_sent(const struct builder *b, int64_t layer)
{
	bool there = layer < b->model->n_layers;
	const struct ft_layer *l = &b->model->layer[there ? layer : 0];

	return there && l->shares_index ? 4 * chosen_of(b, l) * (double)b->tokens : 0;
}

double chosen_for_others(const struct builder *b, const struct layer_sizes *s)
{
	bool last = s->l == &b->model->layer[b->model->n_layers - 1];

	return ft_layer_chooses(s->l) && is_gathered(b, s->l) && !last &&
			       s->l[1].shares_index ?
		       4 * chosen_of(b, s->l) :
		       0;
}

/* Of an indexer that is trained its queries, its keys of all context ranks, and what it read and had to gather, in 16 bit; its
 * softmax and attention's over the chosen ones in fp32. */
static double trained_kept(const struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;
	double keys = (double)(l->index_heads + b->plan->cp);

	if (!is_trained(b, l))
		return 0;
	return 2 * (double)l->index_head_dim * keys + 8 * chosen_of(b, l) +
	       (reads_slices(b) ? 2 * index_inputs(s) : 0);
}

/* The absorbed queries, attention's output in the latents' space, the choice, and what an indexer keeps. Where the core runs again
 * so does the indexer, which is a part of it. */
double indexed_kept(const struct builder *b, const struct layer_sizes *s, unsigned set)
{
	const struct ft_layer *l = s->l;
	double latent = (double)l->kv_lora_rank, rope = (double)l->qk_rope_head_dim;
	double heads = 2 * (double)s->heads, kept;

	if (!is_gathered(b, l))
		return 0;
	kept = set & FT_MODULE_MLA_UP ? 0 : heads * (latent + rope);
	if (set & FT_MODULE_CORE_ATTENTION)
		return kept + chosen_for_others(b, s);
	return kept + heads * latent + trained_kept(b, s) +
	       (ft_layer_chooses(l) ? 4 * chosen_of(b, l) : 0);
}
