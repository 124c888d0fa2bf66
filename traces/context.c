/*
 * traces/context.c - core attention, and the same over the ranks of a context group
 *
 * A causal sequence of s tokens is cut into 2 cp pieces, an early and a late one for each
 * rank, so that all have the same work. Keys and values reach every rank
 *   ring         cp - 1 steps of send and receive beside the blocks that are there: one
 *                causal block of s/cp, then cp - 1 full blocks of s/cp x s/(2 cp), and a
 *                correction behind each but the first. Without a causal mask there are no pieces: cp
 *                full blocks of s/cp x s/cp, each of which corrects the whole output
 *   all_gather   before attention, which is one kernel; backward they are gathered
 *                again and their gradients reduced
 *   all_to_all   each rank gets all tokens of heads/cp heads, and gives its output back
 *   gathered_ring  the ring's blocks, but all keys and values are gathered beside the first, forward
 *                and backward, and gradients of both go round in fp32: cp times, each beside the
 *                next block, the last one in sight. A compiled pass waits for the gather before the
 *                first block, keeps what it gathered for its backward, and sends all gradients
 *                behind the last block
 * Latents that queries choose from are gathered, whatever the group does elsewhere, and kept for the backward pass.
 * Windows are counted as one kernel; one as long as the sequence is none. Source: Transformer
 * Engine's documentation of context parallelism; arXiv 2310.01889, 2309.14509; of gathered_ring
 * torch 2.11 (torch/distributed/tensor/experimental) and measurements/traces/h100-two-7b8L-cp2-*.
 */
#include "base/whole.h"
#include "traces/block.h"
#include "traces/indexed.h"
#include "traces/sinks.h"

/* The blocks of one kernel. */
struct blocks {
	int64_t batch, heads, kv_heads, queries, keys;
	bool causal;
};

bool is_masked(const struct builder *b, const struct ft_layer *l)
{
	int64_t all = b->plan->sequence;

	return b->rules->masked_attention[0] && !is_unfused(b) && b->plan->cp == 1 &&
	       !is_gathered(b, l) && !l->compressed &&
	       (b->rules->masks_always || l->index_topk ||
		(l->window && l->window <= all) || (l->chunk && l->chunk < all));
}

int64_t window_of(const struct builder *b, const struct ft_layer *l)
{
	bool computed = b->rules->windows && !is_unfused(b) && !is_masked(b, l);

	return computed && l->window < b->plan->sequence ? l->window : 0;
}

/* The window by which a pass leaves out keys; 0: it runs on all of them. */
static int64_t window_in(const struct builder *b, const struct ft_layer *l,
			 enum ft_pass pass)
{
	bool whole = pass == FT_PASS_BACKWARD &&
		     b->plan->attention_precision == FT_FP8 &&
		     !b->rules->fp8_windows_back;

	return whole ? 0 : window_of(b, l);
}

static int launches_of(enum ft_pass pass)
{
	return pass == FT_PASS_FORWARD ? 1 : 5;
}

static void attend(struct builder *b, const struct layer_sizes *s, enum ft_pass pass,
		   struct blocks x)
{
	struct ft_work w = { .kind = FT_ATTENTION,
			     .name = "attention",
			     .dtype = b->plan->attention_precision };

	w.attention.pass = pass;
	w.attention.batch = x.batch;
	w.attention.heads = x.heads;
	w.attention.kv_heads = x.kv_heads;
	w.attention.queries = x.queries;
	w.attention.keys = x.keys;
	w.attention.qk_head_dim = s->l->qk_head_dim;
	w.attention.v_head_dim = s->l->v_head_dim;
	w.attention.window = window_in(b, s->l, pass);
	w.attention.causal = x.causal;
	if (is_masked(b, s->l))
		w.attention.impl = b->rules->masked_attention;
	else if (scales_for_sinks(b, s->l))
		w.attention.impl = b->rules->sink_attention;
	else
		w.attention.impl = b->rules->attention[0] ? b->rules->attention : NULL;
	if (is_gathered(b, s->l))
		gather_latents(&w, s->l);
	put_op(b, &w, FT_STREAM_COMPUTE, launches_of(pass));
}

/* All whole chunks of a rank's own, each a sequence of its own. */
static struct blocks whole(const struct builder *b, const struct layer_sizes *s)
{
	struct pieces p = pieces_of(b, s->l);

	return (struct blocks){ p.batch[0],  s->heads,
				s->kv_heads, ceil_div(p.length[0], b->plan->cp),
				p.length[0], b->model->causal };
}

/* Whole chunks, and what is left of the sequence behind them. */
static void attend_chunks(struct builder *b, const struct layer_sizes *s,
			  enum ft_pass pass, struct blocks x)
{
	int64_t left = b->plan->sequence % x.keys;

	attend(b, s, pass, x);
	x.batch = b->sequences;
	x.queries = ceil_div(left * x.queries, x.keys);
	x.keys = left;
	if (left)
		attend(b, s, pass, x);
}

/*
 * A kernel that is given its mask computes the whole square. The mask is made 16 bits wide for each
 * layer anew, and keys and values are repeated for each head that reads them, whose gradients are
 * then summed. Bytes as a copy moves them: 8 a number of the mask and of what is repeated (they
 * touch 3 and 4), 3 backward. Measured: measurements/traces/h100-transformers-starcoder2-15b,
 * -gemma2-9b, within 5 % of each other.
 */
static double repeated(const struct layer_sizes *s)
{
	return s->heads > s->kv_heads ? (double)(s->tokens * (s->q + s->out)) : 0;
}

void attention_mask(struct builder *b, const struct layer_sizes *s)
{
	double all = (double)b->plan->sequence;

	if (!is_masked(b, s->l))
		return;
	put_memory(b, "repeat", "copy", 8 * repeated(s), 2);
	put_memory(b, "mask", "copy", 8 * (double)b->sequences * all * all, 3);
}

static void attend_masked(struct builder *b, const struct layer_sizes *s,
			  enum ft_pass pass)
{
	int64_t all = b->plan->sequence;
	struct blocks x = { b->sequences, s->heads, s->heads, all, all, false };

	if (pass == FT_PASS_FORWARD)
		attention_mask(b, s);
	attend(b, s, pass, x);
	if (pass == FT_PASS_BACKWARD)
		put_memory(b, "repeat_back", "copy", 3 * repeated(s), 2);
}

/* Elements of keys and values that a rank has. */
static double own_kv(const struct layer_sizes *s)
{
	return (double)(s->tokens * (s->k + s->v));
}

/* A block of its own tokens, then cp - 1 of all of them, or under a causal mask of half. between, if any, comes behind each. */
static void attend_blocks(struct builder *b, const struct layer_sizes *s,
			  enum ft_pass pass,
			  void (*between)(struct builder *, const struct layer_sizes *))
{
	struct blocks x = whole(b, s);

	x.keys = x.queries;
	attend(b, s, pass, x);
	if (x.causal)
		x.keys = (x.queries + 1) / 2;
	x.causal = false;
	for (int64_t i = 1; i < b->plan->cp; i++) {
		if (between)
			between(b, s);
		attend(b, s, pass, x);
	}
}

static bool in_one_kernel(const struct builder *b, const struct layer_sizes *s)
{
	return window_of(b, s->l) || (s->l->chunk && s->l->chunk < b->plan->sequence);
}

static void ring(struct builder *b, const struct layer_sizes *s, enum ft_pass pass)
{
	bool backward = pass == FT_PASS_BACKWARD;
	int64_t cp = b->plan->cp;
	double kv = 2 * own_kv(s) * (double)(cp - 1);
	double out = (double)(s->tokens * s->out) + (backward ? own_kv(s) : 0);

	if (put_collective(b, "cp_exchange", FT_STREAM_CP, FT_SENDRECV, FT_GROUP_CP,
			   backward ? 2 * kv : kv))
		host(b, FT_HOST_COLLECTIVE, (double)(cp - 2));
	if (in_one_kernel(b, s))
		attend_chunks(b, s, pass, whole(b, s));
	else
		attend_blocks(b, s, pass, NULL);
	/* a partial result in 16 bit is added to the sum in fp32; under a causal mask on
	 * average three quarters of it in each step */
	put_memory(b, "cp_correction", "default",
		   (b->model->causal ? 0.75 : 1) * 10 * out * (double)(cp - 1),
		   (int)(2 * (cp - 1)));
	need(b, FT_STREAM_CP);
}

static bool compiled(const struct builder *b)
{
	return b->rules->fusion == FT_FUSION_COMPILED;
}

/* Gradients of the keys and values that a rank has, in fp32, to the next rank. */
static void send_gradients(struct builder *b, const struct layer_sizes *s)
{
	put_collective(b, "cp_exchange", FT_STREAM_CP, FT_SENDRECV, FT_GROUP_CP,
		       4 * own_kv(s));
}

static void wait_for_context(struct builder *b, const struct layer_sizes *s)
{
	(void)s;
	need(b, FT_STREAM_CP);
}

/* What was under way is there; the gradients of the block that is done go beside the next. */
static void pass_gradients_on(struct builder *b, const struct layer_sizes *s)
{
	need(b, FT_STREAM_CP);
	send_gradients(b, s);
}

/*
 * Partial results are merged in fp32, and gradients are summed, joined for an exchange and cut
 * again. Bytes as a copy moves them, by kernels in recordings of 8,192 to 32,768 tokens on two
 * H100: a number of the output forward, of queries, keys and values backward. Eager ones are some
 * sixteen kernels a block. Only two context ranks were recorded, under a causal mask: that each block beyond the second
 * moves as much as the second is assumed, and that it does without the mask.
 */
static void merge_blocks(struct builder *b, const struct layer_sizes *s, bool backward)
{
	double cp = (double)b->plan->cp, out = (double)(s->tokens * s->out);
	double qkv = (double)(s->tokens * s->q) + own_kv(s), bytes;

	if (backward)
		bytes = compiled(b) ? (5 + 11 * (cp - 1)) * qkv : 25 * qkv * cp;
	else
		bytes = compiled(b) ? 8 * out * (cp - 1) : (14 + 34 * (cp - 1)) * out;
	put_memory(b, "cp_correction", "copy", bytes,
		   (int)((compiled(b) ? 2 : 16) * b->plan->cp));
}

static void gathered_ring(struct builder *b, const struct layer_sizes *s,
			  enum ft_pass pass)
{
	bool backward = pass == FT_PASS_BACKWARD, one = in_one_kernel(b, s);
	int64_t sent = backward && !compiled(b) && !one ? b->plan->cp - 1 : 0;

	if (!backward || !compiled(b)) {
		put_memory(b, "cp_flatten", "copy", 4 * own_kv(s), 1);
		put_collective(b, "cp_all_gather", FT_STREAM_CP, FT_ALL_GATHER,
			       FT_GROUP_CP, 2 * own_kv(s) * (double)b->plan->cp);
		if (compiled(b))
			need(b, FT_STREAM_CP);
	}
	if (one)
		attend_chunks(b, s, pass, whole(b, s));
	else if (!backward)
		attend_blocks(b, s, pass, wait_for_context);
	else
		attend_blocks(b, s, pass, compiled(b) ? NULL : pass_gradients_on);
	merge_blocks(b, s, backward);
	for (int64_t i = sent; backward && i < b->plan->cp; i++)
		pass_gradients_on(b, s);
	need(b, FT_STREAM_CP);
}

static void all_gather(struct builder *b, const struct layer_sizes *s,
		       enum ft_pass pass)
{
	double bytes = 2 * own_kv(s) * (double)b->plan->cp;

	if (pass == FT_PASS_FORWARD || !is_gathered(b, s->l)) {
		put_collective(b, "cp_all_gather", FT_STREAM_CP, FT_ALL_GATHER,
			       FT_GROUP_CP, bytes);
		need(b, FT_STREAM_CP);
	}
	attend_chunks(b, s, pass, whole(b, s));
	if (pass == FT_PASS_BACKWARD) {
		put_collective(b, "cp_reduce_scatter", FT_STREAM_CP, FT_REDUCE_SCATTER,
			       FT_GROUP_CP, bytes);
		need(b, FT_STREAM_CP);
	}
}

static void all_to_all(struct builder *b, const struct layer_sizes *s,
		       enum ft_pass pass)
{
	double qkv = 2 * ((double)(s->tokens * s->q) + own_kv(s));
	double out = 2 * (double)(s->tokens * s->out);
	bool backward = pass == FT_PASS_BACKWARD;
	int64_t cp = b->plan->cp;
	struct blocks x = whole(b, s);

	put_collective(b, "cp_all_to_all", FT_STREAM_CP, FT_ALL_TO_ALL, FT_GROUP_CP,
		       backward ? out : qkv);
	need(b, FT_STREAM_CP);
	x.queries = x.keys;
	x.heads = ceil_div(x.heads, cp);
	x.kv_heads = ceil_div(x.kv_heads, cp);
	attend_chunks(b, s, pass, x);
	put_collective(b, "cp_all_to_all", FT_STREAM_CP, FT_ALL_TO_ALL, FT_GROUP_CP,
		       backward ? qkv : out);
	need(b, FT_STREAM_CP);
}

enum ft_context_parallel context_parallel(const struct ft_stack *stack,
					  const struct ft_plan *plan)
{
	return plan->lora.rank ? stack->layout.context_parallel_lora :
				 stack->layout.context_parallel;
}

/* Keys and values of all ranks of the group, where one rank gathers them. */
static double context_bytes(const struct builder *b, int64_t layer)
{
	struct layer_sizes s = sizes_of(b, layer);
	enum ft_context_parallel how = context_parallel(b->stack, b->plan);
	bool gathers = how == FT_CP_ALL_GATHER || how == FT_CP_GATHERED_RING ||
		       is_gathered(b, s.l);

	if (b->plan->cp == 1 || is_unfused(b) || s.linear || s.l->compressed ||
	    !gathers)
		return 0;
	return 2 * own_kv(&s) * (double)b->plan->cp;
}

/* Where modules of a set run again. Gathered latents are gathered in the core. */
static bool keeps_context(const struct builder *b, int64_t layer, unsigned set)
{
	if (is_gathered(b, &b->model->layer[layer]))
		return !(set & FT_MODULE_CORE_ATTENTION);
	return compiled(b) &&
	       context_parallel(b->stack, b->plan) == FT_CP_GATHERED_RING;
}

double gathered_context_bytes(const struct builder *b, int64_t layer)
{
	bool selective = layer_recompute(b, layer) == FT_RECOMPUTE_SELECTIVE;

	return keeps_context(b, layer, selective ? recomputed_modules(b) : 0) ?
		       0 :
		       context_bytes(b, layer);
}

/* Beside its own tokens', where these are among what all layers keep. */
double kept_context_bytes(const struct builder *b, int64_t layer, unsigned set)
{
	double cp = (double)b->plan->cp;
	bool own = is_gathered(b, &b->model->layer[layer]);

	return keeps_context(b, layer, set) ?
		       context_bytes(b, layer) * (own ? 1 - 1 / cp : 1) :
		       0;
}

/* To its caller it is one operator, whose kernels, merges and exchanges then work on a rank's own tensors: torch's handler takes
 * these out of DTensors (torch/distributed/tensor/experimental/_attention.py, _templated_ring_attention, read 2026-11-30). */
static void attend_over_context(struct builder *b, const struct layer_sizes *s,
				enum ft_pass pass)
{
	enum ft_context_parallel how = context_parallel(b->stack, b->plan);
	bool was = b->of_shards;

	call_operator(b, launches_of(pass));
	b->of_shards = true;
	if (how == FT_CP_ALL_GATHER || is_gathered(b, s->l))
		all_gather(b, s, pass);
	else if (how == FT_CP_ALL_TO_ALL)
		all_to_all(b, s, pass);
	else if (how == FT_CP_GATHERED_RING)
		gathered_ring(b, s, pass);
	else
		ring(b, s, pass);
	b->of_shards = was;
}

static void fused_attention(struct builder *b, const struct layer_sizes *s,
			    enum ft_pass pass)
{
	if (is_masked(b, s->l))
		attend_masked(b, s, pass);
	else if (b->plan->cp == 1)
		attend_chunks(b, s, pass, whole(b, s));
	else
		attend_over_context(b, s, pass);
}

void attention_core(struct builder *b, const struct layer_sizes *s, bool backward)
{
	if (is_unfused(b)) {
		unfused_attention(b, s, backward);
		return;
	}
	if (backward)
		put_sinks(b, s, true);
	if (b->chosen) { /* kept, but not what its backward reads */
		attention_mask(b, s);
		put_sinks(b, s, false);
		return;
	}
	if (backward && is_gathered(b, s->l))
		project_values(b, s, true);
	fused_attention(b, s, backward ? FT_PASS_BACKWARD : FT_PASS_FORWARD);
	if (!backward && is_gathered(b, s->l))
		project_values(b, s, false);
	put_score_dropout(b, s, backward);
	if (!backward)
		put_sinks(b, s, false);
}
