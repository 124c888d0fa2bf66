/*
 * traces/compressed.c - attention to a window of tokens and to entries that stand for those before it (DeepSeek-V4)
 *
 * Queries come from a latent of r numbers, d wide each, with a norm of each head; keys, which are values, from the hidden state.
 * Every m tokens become an entry: two products make a value and a weight of each token, of two series where entries are chosen, a
 * softmax over m (2 m) tokens weights them, and a norm and a turn follow. An indexer has entries of its own, scores all of them for
 * each token, and chooses. Attention reads a window and entries by one kernel; what it made is turned back, and each group of heads
 * projected to a rank of its own before the output's matrix.
 *
 * Source: Megatron Core's deepseek_v4_hybrid_attention.py and csa.py (read 2026-11-30): entries, weights of the indexer and groups
 * stay in 16 bit whatever the format of others; inputs of the indexer are detached; context ranks have pieces of a sequence, in
 * order, and gather entries, so that the last sees most; what a query sees is counted by its length, not padded; the indexer's
 * products run backward with or without a loss. A softmax over tokens reads both parts and writes entries, backward it reads both
 * and writes both gradients; as torch.compile makes them they take five times as long as both parts are read, each way
 * (measurements/probes/h200-2026-12-01-streams-unseen: 3.9 to 7.4 and 3.7 to 13.4).
 */
#include "traces/compressed.h"

#include "base/whole.h"
#include "traces/casts.h"
#include "traces/indexed.h"
#include "traces/stage.h"

static enum ft_dtype wide(const struct builder *b)
{
	return b->plan->precision == FT_FP16 ? FT_FP16 : FT_BF16;
}

/* A product that stays in 16 bit. */
static void wide_product(struct builder *b, const char *name, enum ft_layout layout,
			 struct edges e, int64_t groups)
{
	bool was = of_weights(b, layout == FT_WGRAD);

	put_product(b, &(struct ft_work){ .kind = FT_GEMM,
					  .name = name,
					  .dtype = wide(b),
					  .gemm = { .layout = layout,
						    .m = e.m,
						    .n = e.n,
						    .k = e.k,
						    .groups = groups } });
	of_weights(b, was);
}

/* Numbers a token of the parts of which entries so wide are made. */
static int64_t parts_of(const struct ft_layer *l, int64_t width)
{
	return (ft_layer_chooses(l) ? 2 : 1) * width;
}

static void entry_products(struct builder *b, const struct layer_sizes *s,
			   int64_t width, enum ft_layout layout)
{
	for (int part = 0; part < 2; part++)
		wide_product(b, "entry_parts", layout,
			     (struct edges){ s->tokens, parts_of(s->l, width), s->h },
			     1);
}

/* Parts become entries, or gradients of entries those of parts. */
static void join_entries(struct builder *b, const struct layer_sizes *s, int64_t width,
			 bool backward)
{
	double parts = 4 * (double)(s->tokens * parts_of(s->l, width));
	double entries = (double)(s->tokens * width) / (double)s->l->entry_tokens;

	put_memory(b, backward ? "entries_back" : "entries", "copy", 5 * parts,
		   backward ? 3 : 1);
	put_bare_norms(b, backward ? "entry_norm_back" : "entry_norm", entries,
		       2 * (double)width, 1, backward);
}

/* Queries of a sequence times the tokens and entries that they see; times the entries that are scored; times those that are chosen. */
static double seen_pairs(const struct builder *b, const struct ft_layer *l,
			 int64_t length)
{
	return ft_layer_pairs(l, length, l->window, b->model->causal) +
	       ft_layer_entry_pairs(l, length, b->model->causal);
}

static double scored_pairs(const struct builder *b, const struct ft_layer *l,
			   int64_t length)
{
	return ft_layer_scored(l, length, b->model->causal);
}

static double chosen_pairs(const struct builder *b, const struct ft_layer *l,
			   int64_t length)
{
	return ft_layer_entry_pairs(l, length, b->model->causal);
}

typedef double pairs_of(const struct builder *b, const struct ft_layer *l,
			int64_t length);

/* Of all sequences of a micro-batch, the share of a context rank. */
static double rank_pairs(const struct builder *b, const struct ft_layer *l,
			 pairs_of *pairs)
{
	return pairs(b, l, b->plan->sequence) * (double)b->sequences /
	       (double)b->plan->cp;
}

/* Keys of a query, on average, in a piece of length tokens, of which a context rank has so many: of one document the last, which see most
 * and for which the others wait. Kernels take whole numbers of them. */
static int64_t keys_of(const struct builder *b, const struct ft_layer *l,
		       int64_t length, int64_t queries, pairs_of *pairs)
{
	struct ft_layer one = *l;
	bool cut = l->chunk && l->chunk < b->plan->sequence;
	double all;

	one.chunk = 0;
	all = pairs(b, &one, length);
	if (cut || !b->model->causal || queries == length)
		return (int64_t)(all / (double)length + 0.5);
	return (int64_t)((all - pairs(b, &one, length - queries)) / (double)queries +
			 0.5);
}

/* An attention kernel over a rank's part of each sequence, or of each chunk of it. */
static void put_each(struct builder *b, const struct ft_layer *l, struct ft_work *w,
		     pairs_of *pairs)
{
	struct pieces p = pieces_of(b, l);

	for (int i = 0; i < 2 && p.length[i]; i++) {
		w->attention.batch = p.batch[i];
		w->attention.queries = ceil_div(p.length[i], b->plan->cp);
		w->attention.keys =
			keys_of(b, l, p.length[i], w->attention.queries, pairs);
		if (w->attention.keys > 0)
			put_op(b, w, FT_STREAM_COMPUTE, 1);
	}
}

static void put_scores(struct builder *b, const struct layer_sizes *s,
		       enum ft_pass pass)
{
	const struct ft_layer *l = s->l;
	bool forward = pass == FT_PASS_FORWARD;
	struct ft_work w = { .kind = FT_ATTENTION,
			     .name = forward ? "index_scores" : "index_scores_back",
			     .dtype = b->plan->attention_precision };

	w.attention.pass = pass;
	w.attention.heads = l->index_heads;
	w.attention.kv_heads = 1;
	w.attention.qk_head_dim = l->index_head_dim;
	w.attention.keys_are = FT_KEYS_SCORED;
	put_each(b, l, &w, forward ? scored_pairs : chosen_pairs);
}

/* Entries so wide of all context ranks, or their gradients. Each rank's part of a sequence is one piece, in order, and begins with what
 * tokens before it give to its window and its first entry: hidden states of a window, from its neighbour. */
static void share_entries(struct builder *b, const struct layer_sizes *s, int64_t width,
			  bool backward)
{
	double bytes = 2 * (double)(s->tokens * b->plan->cp * width) /
		       (double)s->l->entry_tokens;

	if (put_collective(b, backward ? "cp_reduce_scatter" : "cp_all_gather",
			   FT_STREAM_CP, backward ? FT_REDUCE_SCATTER : FT_ALL_GATHER,
			   FT_GROUP_CP, bytes))
		need(b, FT_STREAM_CP);
}

static void share_window(struct builder *b, const struct layer_sizes *s)
{
	if (put_collective(b, "cp_exchange", FT_STREAM_CP, FT_SENDRECV, FT_GROUP_CP,
			   2 * (double)(b->sequences * s->l->window * s->h)))
		need(b, FT_STREAM_CP);
}

/* What the indexer makes of its inputs: queries, entries and a weight for each head. */
static void index_products(struct builder *b, const struct layer_sizes *s,
			   enum ft_layout layout)
{
	const struct ft_layer *l = s->l;

	put_gemm(b, "index_q", layout, s->tokens, l->index_heads * l->index_head_dim,
		 l->q_lora_rank);
	entry_products(b, s, l->index_head_dim, layout);
	wide_product(b, "index_weights", layout,
		     (struct edges){ s->tokens, l->index_heads, s->h }, 1);
}

/* Queries turned and rotated: each reads and writes 2 bytes. */
static void turn_index(struct builder *b, const struct layer_sizes *s)
{
	put_memory(b, "index_rotary", "copy",
		   8 * (double)(s->tokens * s->l->index_heads * s->l->index_head_dim),
		   2);
}

static void choose_entries(struct builder *b, const struct layer_sizes *s)
{
	index_products(b, s, FT_FORWARD);
	turn_index(b, s);
	join_entries(b, s, s->l->index_head_dim, false);
	share_entries(b, s, s->l->index_head_dim, false);
	put_scores(b, s, FT_PASS_FORWARD);
	put_choice(b, rank_pairs(b, s->l, scored_pairs));
}

static void choose_back(struct builder *b, const struct layer_sizes *s)
{
	if (b->plan->indexer_loss)
		put_scores(b, s, FT_PASS_BACKWARD);
	share_entries(b, s, s->l->index_head_dim, true);
	join_entries(b, s, s->l->index_head_dim, true);
	turn_index(b, s);
	index_products(b, s, FT_WGRAD);
}

static struct ft_work attention_of(const struct builder *b, const struct layer_sizes *s,
				   const char *name, enum ft_pass pass)
{
	struct ft_work w = { .kind = FT_ATTENTION,
			     .name = name,
			     .dtype = b->plan->attention_precision };

	w.attention.pass = pass;
	w.attention.heads = s->heads;
	w.attention.kv_heads = 1;
	w.attention.qk_head_dim = w.attention.v_head_dim = s->l->qk_head_dim;
	w.attention.keys_are = FT_KEYS_CHOSEN;
	return w;
}

/* The loss of an indexer compares its scores with attention's own of what it chose, which are made once more. */
static void put_target(struct builder *b, const struct layer_sizes *s)
{
	struct ft_work w = attention_of(b, s, "index_target", FT_PASS_FORWARD);

	w.attention.v_head_dim = 0;
	put_each(b, s->l, &w, seen_pairs);
}

/* Attention itself, with the choice of entries in front of it. */
static void compressed_core(struct builder *b, const struct layer_sizes *s,
			    bool backward)
{
	struct ft_work w = attention_of(b, s, "attention",
					backward ? FT_PASS_BACKWARD : FT_PASS_FORWARD);

	if (!backward && ft_layer_chooses(s->l))
		choose_entries(b, s);
	put_each(b, s->l, &w, seen_pairs);
	if (!backward && ft_layer_chooses(s->l) && b->plan->indexer_loss)
		put_target(b, s);
}

/* Of what attention made, turned back in place, and its gradient. */
static void turn_back(struct builder *b, const struct layer_sizes *s)
{
	put_memory(b, "output_rotary", "copy",
		   4 * (double)(s->tokens * s->heads * s->l->qk_rope_head_dim), 1);
}

static void group_product(struct builder *b, const struct layer_sizes *s,
			  enum ft_layout layout)
{
	const struct ft_layer *l = s->l;

	wide_product(b, "out_groups", layout,
		     (struct edges){ s->tokens * l->out_groups, l->out_rank,
				     s->out / l->out_groups },
		     l->out_groups);
}

void compressed_up(struct builder *b, const struct layer_sizes *s)
{
	int64_t d = s->l->qk_head_dim;

	put_gemm(b, "q_up", FT_FORWARD, s->tokens, s->q, s->l->q_lora_rank);
	put_bare_norms(b, "qk_norm", (double)(s->tokens * s->q), 2 * (double)d, 1,
		       false);
	put_gemm(b, "kv_down", FT_FORWARD, s->tokens, d, s->h);
	put_bare_norms(b, "latent_norm", (double)(s->tokens * d), 2 * (double)d, 1,
		       false);
	put_rotary(b, s, false);
}

void compressed_forward(struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;
	double latents = (double)(s->tokens * l->q_lora_rank);

	share_window(b, s);
	put_gemm(b, "q_down", FT_FORWARD, s->tokens, l->q_lora_rank, s->h);
	put_bare_norms(b, "latent_norm", latents, 2 * (double)l->q_lora_rank, 1, false);
	put_norm_cast(b, latents);
	compressed_up(b, s);
	if (l->entry_tokens) {
		entry_products(b, s, l->qk_head_dim, FT_FORWARD);
		join_entries(b, s, l->qk_head_dim, false);
		share_entries(b, s, l->qk_head_dim, false);
	}
	compressed_core(b, s, false);
	turn_back(b, s);
	group_product(b, s, FT_FORWARD);
	put_cast(b, (double)(s->tokens * l->out_groups * l->out_rank), 1);
	put_gemm(b, "attention_out", FT_FORWARD, s->tokens, s->h,
		 l->out_groups * l->out_rank);
}

static void output_back(struct builder *b, const struct layer_sizes *s)
{
	int64_t rank = s->l->out_groups * s->l->out_rank;

	put_cast(b, (double)(s->tokens * s->h), 1);
	linear_back(b, "attention_out", s->tokens, s->h, rank);
	group_product(b, s, FT_DGRAD);
	group_product(b, s, FT_WGRAD);
	turn_back(b, s);
}

static void entries_back(struct builder *b, const struct layer_sizes *s)
{
	if (!s->l->entry_tokens)
		return;
	share_entries(b, s, s->l->qk_head_dim, true);
	join_entries(b, s, s->l->qk_head_dim, true);
	entry_products(b, s, s->l->qk_head_dim, FT_DGRAD);
	entry_products(b, s, s->l->qk_head_dim, FT_WGRAD);
}

void compressed_back(struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;
	int64_t d = l->qk_head_dim, inputs = l->entry_tokens ? 4 : 2;

	output_back(b, s);
	compressed_core(b, s, true);
	if (ft_layer_chooses(l))
		choose_back(b, s);
	entries_back(b, s);
	put_rotary(b, s, true);
	put_bare_norms(b, "qk_norm_back", (double)(s->tokens * s->q), 2 * (double)d, 1,
		       true);
	put_bare_norms(b, "latent_norm_back",
		       (double)(s->tokens * (d + l->q_lora_rank)), 0, 2, true);
	put_cast(b, (double)(s->tokens * (s->q + d)), 2);
	linear_back(b, "q_up", s->tokens, s->q, l->q_lora_rank);
	linear_back(b, "kv_down", s->tokens, d, s->h);
	put_cast(b, (double)(s->tokens * l->q_lora_rank), 1);
	put_input_transpose(b, (double)(s->tokens * s->h));
	linear_back(b, "q_down", s->tokens, l->q_lora_rank, s->h);
	share_window(b, s);
	/* each product that reads the hidden state adds to its gradient */
	put_memory(b, "input_sum", "add",
		   6 * (double)(s->tokens * s->h) * (double)(inputs - 1),
		   (int)(inputs - 1));
}

double compressed_flop(const struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;
	bool chooses = ft_layer_chooses(l);
	double d = (double)l->qk_head_dim;
	double seen = (double)s->heads * rank_pairs(b, l, seen_pairs);
	double scored =
		chooses ? (double)l->index_heads * rank_pairs(b, l, scored_pairs) : 0;

	return ft_attention_flop(FT_PASS_FORWARD, seen, d,
				 chooses && b->plan->indexer_loss ? 2 * d : d) +
	       ft_attention_flop(FT_PASS_FORWARD, scored, (double)l->index_head_dim, 0);
}

double compressed_up_products(const struct layer_sizes *s)
{
	return (double)(s->q * s->l->q_lora_rank + s->l->qk_head_dim * s->h);
}

/* Of an indexer its queries, weights and entries, or the gradients of these where its loss makes them in the forward pass, the
 * parts of its entries, and what it chose. */
static double choice_kept(const struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;
	int64_t most = b->plan->sequence / l->entry_tokens;
	int64_t near = l->window ? l->window : l->chunk; /* all of a document */
	int64_t seen = near + (l->index_topk < most ? l->index_topk : most);

	return 2 * (double)(l->index_heads * (l->index_head_dim + 1)) +
	       4 * (double)parts_of(l, l->index_head_dim) + 4 * (double)seen;
}

double compressed_kept(const struct builder *b, const struct layer_sizes *s,
		       unsigned set, double input_width)
{
	const struct ft_layer *l = s->l;
	double q = (double)s->q, d = (double)l->qk_head_dim;
	double r = (double)l->q_lora_rank, out = (double)s->out;
	double entries = /* of all context ranks */
		l->entry_tokens ? (double)b->plan->cp / (double)l->entry_tokens : 0;
	bool narrow = input_width < 2, again = set & FT_MODULE_MLA_UP;
	double behind = again ? 2 : input_width;
	double kept = (2 + behind) * r; /* latents in front of their norm, behind */

	if (!again) /* in front of norms, and as attention reads them */
		kept += 2 * 2 * (q + d);
	if (narrow && (l->entry_tokens ||
		       again)) /* what products in 16 bit read, or run again from */
		kept += 2 * (double)s->h;
	if (narrow && !again) /* each product casts its own: keys' */
		kept += input_width * (double)s->h;
	if (narrow && ft_layer_chooses(l)) /* queries' of the indexer */
		kept += input_width * r;
	kept += 2 * (double)(l->out_groups * l->out_rank);
	kept += 2 * d * entries +
		(l->entry_tokens ? 4 * (double)parts_of(l, (int64_t)d) : 0);
	return kept + 2 * out + 4 * (double)s->heads +
	       (ft_layer_chooses(l) ? choice_kept(b, s) : 0);
}

int64_t compressed_tensors(const struct ft_layer *l)
{
	/* five matrices, two norms, sinks; of entries two matrices, places and a norm; of an indexer two matrices and its entries */
	return 8 + (l->entry_tokens ? 4 : 0) + (ft_layer_chooses(l) ? 6 : 0);
}

/* Attention itself, which Megatron Core's class does not compute again ("Checkpoint core attention is not supported":
 * deepseek_v4_hybrid_attention.py, read 2026-12-01), nor do the names of MaxText's products fit its own. */
static bool entries_again(const struct ft_plan *plan, const struct ft_stack *stack,
			  struct ft_error *err)
{
	bool core = plan->recompute == FT_RECOMPUTE_SELECTIVE &&
		    selected_modules(plan, stack) & FT_MODULE_CORE_ATTENTION;

	if (!core)
		return true;
	if (plan->recompute_modules)
		return ft_fail(err, NULL,
			       "recompute_modules: attention to compressed tokens runs "
			       "again with its whole layer alone; take some of "
			       "mla_up_proj, mhc, layernorm, moe_act and moe");
	return ft_fail(err, NULL,
		       "recompute: selective runs attention again where "
		       "recompute_modules names nothing else, and attention to "
		       "compressed tokens runs again with its whole layer alone; name "
		       "some of mla_up_proj, mhc, layernorm, moe_act and moe");
}

/* Megatron Core refuses tensor ranks. Transformers' class copies the entries of
 * each query, and takes no kernel. All read 2026-12-01. */
bool compressed_runs(const struct ft_model *model, const struct ft_plan *plan,
		     const struct ft_stack *stack, struct ft_error *err)
{
	if (model->n_layers < 1 || !model->layer[0].compressed)
		return true;
	if (plan->tp > 1)
		return ft_fail(err, NULL,
			       "parallel.tp %lld: attention to compressed tokens is "
			       "simulated with tp 1; use pp, ep, cp and dp",
			       (long long)plan->tp);
	if (plan->lora.rank)
		return ft_fail(err, NULL,
			       "lora: adapters beside attention to compressed tokens "
			       "are not simulated");
	if (stack->layout.masked_choice || ft_stack_unfused(stack, false, false, false))
		return ft_fail(err, NULL,
			       "model_type %s: stack %s has no kernel for attention to "
			       "compressed tokens; take one that has, such as "
			       "megatron-bridge-26.06",
			       model->type, stack->name);
	return entries_again(plan, stack, err);
}
