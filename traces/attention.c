/* traces/attention.c - attention that is not fused, and the products before it */

#include "traces/block.h"
#include "traces/blockwise.h"
#include "traces/casts.h"
#include "traces/indexed.h"
#include "traces/mixers.h"
#include "traces/sinks.h"

bool is_unfused(const struct builder *b)
{
	return ft_stack_unfused(b->stack, b->model->sinks,
				b->model->plain != FT_PLAIN_NOT,
				b->model->score_cap) != NULL;
}

/*
 * Attention that a class of Transformers writes plainly. Bytes a score between the products, as many as an
 * addition moves in their time: masks that are spread over heads and casts to fp32 run at 0.5 and 0.64 of its rate, the
 * softmax at 0.87. In 16 bit (BLOOM, whose product adds a copied bias) a copy, a mask, a cast, a softmax and a cast: 6 + 9 + 9 + 9 + 6;
 * backward 10 + 12 + 12 + 6, as PyTorch takes the gradient times the output first. MPT scales, adds its bias, copies
 * and fills: 4 + 10 + 4 + 10 more, less the copied bias; backward 4 + 10 + 4. In fp32 a scale, a
 * mask, a softmax and a cast to 16 bit: 8 + 16 + 9 + 6; backward 6 + 12 + 12 + 8. All in fp32 a mask and a softmax: 16 +
 * 9; backward 12 + 12. Compiled it is one kernel each way (9, 9 or 8; backward 14, 18 or 12). Source: recorded steps of BLOOM,
 * MPT, GPT-J, GPT-Neo and Falcon, measurements/probes/h100-2026-11-26-plain-unseen.jsonl.gz. Kept are the
 * softmax's output, and its cast; all in fp32 that alone, compiled in 16 bit scores and output. Two gradients of scores stand beside that.
 * All in fp32, q, k and v are cast, q and k scaled, k and v spread over all heads, and the output is cast
 * back: 6 + 8 + 8 + 6 bytes a number of q each way.
 */
static const struct plain {
	double bytes[2], kept, gradients; /* forward, backward */
	int launches[2];
	enum ft_dtype scores, context; /* FT_DTYPES: the plan's */
	double fused[2], fused_kept;   /* compiled */
} plain[] = {
	[FT_PLAIN_NOT] = { { 0, 0 },
			   2,
			   4,
			   { 0, 0 },
			   FT_DTYPES,
			   FT_DTYPES,
			   { 0, 0 },
			   2 },
	[FT_PLAIN_16] = { { 39, 40 },
			  6,
			  6,
			  { 5, 4 },
			  FT_DTYPES,
			  FT_DTYPES,
			  { 9, 14 },
			  4 },
	[FT_PLAIN_FILLED] = { { 52, 57 },
			      6,
			      6,
			      { 7, 7 },
			      FT_DTYPES,
			      FT_DTYPES,
			      { 9, 14 },
			      4 },
	[FT_PLAIN_SCORES] = { { 39, 38 },
			      6,
			      8,
			      { 4, 4 },
			      FT_FP32,
			      FT_DTYPES,
			      { 9, 18 },
			      6 },
	[FT_PLAIN_32] = { { 25, 24 }, 4, 8, { 2, 2 }, FT_FP32, FT_FP32, { 8, 12 }, 4 },
};

static const struct plain *plain_of(const struct builder *b)
{
	return &plain[b->rules->model_classes ? b->model->plain : FT_PLAIN_NOT];
}

static bool drops_scores(const struct builder *b)
{
	return b->rules->dropout || b->model->attention_dropout;
}

/* A fused kernel draws a random number for each score, and draws it again backward: as long as the curve `dropout` takes for
 * so many bytes a score. Measured on an H200, cuDNN's: measurements/probes/h200-2026-11-28-attention-dropout-unseen (2.7 to 3.8 and
 * 0.9 to 2.1 of causal kernels, 12 and 4 at heads of 256) and h200-2026-11-29-attention-dropout-masked-unseen (3.4 to 3.7 and 1.9 to 2.0 of
 * those that are given a mask, 4.5 to 5.2 and 7.8 to 7.9 at heads of 128). */
static double dropped_bytes(int64_t head, bool masked, bool backward)
{
	static const struct {
		int64_t narrow;			 /* heads up to this width */
		double of_narrow[2], of_wide[2]; /* forward, backward */
	} kernels[] = {
		[false] = { 128, { 3, 1.8 }, { 12, 4 } },
		[true] = { 64, { 3.6, 1.95 }, { 5, 7.8 } },
	};

	return head > kernels[masked].narrow ? kernels[masked].of_wide[backward] :
					       kernels[masked].of_narrow[backward];
}

void put_score_dropout(struct builder *b, const struct layer_sizes *s, bool backward)
{
	double seq = (double)b->plan->sequence;
	bool masked = is_masked(b, s->l);
	int64_t window = is_gathered(b, s->l) ? s->l->index_topk : window_of(b, s->l);
	double keys = masked ? seq :
			       ft_layer_pairs(s->l, b->plan->sequence, window,
					      b->model->causal) /
				       seq;

	if (drops_scores(b))
		put_memory(b, "attention_dropout", "dropout",
			   dropped_bytes(s->l->qk_head_dim, masked, backward) *
				   (double)(s->tokens * s->heads) * keys,
			   0);
}

/* Bytes a score that dropout keeps more: its mask, and where the softmax's own output went into the product behind it
 * (in 16 bit throughout, or in fp32) what goes there now. */
static double dropped_kept(const struct plain *p)
{
	return 1 + (p->context == FT_FP32 ? 4 : p == &plain[FT_PLAIN_NOT] ? 2 : 0);
}

double score_kept(const struct builder *b)
{
	const struct plain *p = plain_of(b);
	double cap = b->model->score_cap ? 2 : 0; /* the tanh's output */

	double kept = sinks_compiled(b) ? 4 : /* in 16 bit scores and output */
			      by_operation(b) ? p->kept + cap :
						p->fused_kept + cap;

	return kept + (drops_scores(b) ? dropped_kept(p) : 0);
}

double score_gradients(const struct builder *b, const struct layer_sizes *s)
{
	bool counted =
		is_unfused(b) && b->rules->fusion != FT_FUSION_KERNELS && !s->linear;

	double each = sinks_compiled(b) ? 8 : plain_of(b)->gradients;

	if (b->rules->attention_block)
		return counted ? block_bytes(b, s) : 0;
	return counted ? each * (double)s->heads * (double)b->plan->sequence *
				 (double)s->tokens :
			 0;
}

double plain_copies(const struct builder *b, const struct layer_sizes *s)
{
	return plain_of(b)->context == FT_FP32 ? 4 * (double)(2 * s->q + s->out) : 0;
}

/* The cap on scores, c tanh(x / c): three kernels in 16 bit, or one that a compiler makes. */
static void put_score_cap(struct builder *b, bool backward, double scores)
{
	bool compiled = b->rules->fusion == FT_FUSION_COMPILED;
	double bytes = (compiled ? 4 : 12) + (backward ? 2 : 0);

	if (b->model->score_cap)
		put_memory(b, "score_cap", "default", scores * bytes, compiled ? 1 : 3);
}

/*
 * Bytes per score of everything between the two products. Megatron's fused kernel scales,
 * masks and normalizes at once: it reads the lower triangle and writes the whole square
 * (2/2 + 2; backward two halves and a whole). It takes scores of which (heads on the rank) x
 * (sequences) divides by 4, rows up to 16,384 that divide by 4. A compiler's takes any, and knows
 * no triangle: 2 + 2, backward 2 + 2 + 2. Else, and in stacks without either, scale, mask and
 * softmax are kernels of their own in fp32, with a cast before and behind: 6 + 8 + 9 + 8 + 6; backward 6 + 12 + 8 + 6. A model in 16 bit that writes
 * them itself has no casts: a scale, a copy, which PyTorch's masked_fill fills, and a
 * softmax, 4 bytes each; backward 6 + 4 + 4 + 4.
 * Source: the kernels' conditions in Megatron-LM's documentation and code; counted.
 */
static const double softmax_bytes[2][2] = { { 37, 32 }, { 16, 18 } };

static void softmax(struct builder *b, const struct layer_sizes *s, bool backward,
		    double scores)
{
	int64_t seq = b->plan->sequence;
	bool fits =
		b->rules->fusion == FT_FUSION_COMPILED ||
		((b->sequences * s->heads) % 4 == 0 && seq % 4 == 0 && seq <= 16384);
	bool half = b->model->causal && b->rules->fusion != FT_FUSION_COMPILED;
	double row = 2 * (double)seq;

	put_score_cap(b, backward, scores);
	if (!b->rules->fused_softmax || !fits) {
		put_rows(b, "softmax", "softmax",
			 scores * softmax_bytes[b->rules->narrow_softmax][backward],
			 backward ? 4 : 5, row);
		host(b, FT_HOST_OPERATION, backward ? 3 : 4);
	} else if (half)
		put_rows(b, "softmax", "softmax", scores * (backward ? 4 : 3), 1, row);
	else
		put_rows(b, "softmax", "softmax", scores * (backward ? 6 : 4), 1, row);
}

static void plain_softmax(struct builder *b, const struct plain *p, bool backward,
			  double scores)
{
	bool operations = by_operation(b);

	put_memory(b, "softmax", "add",
		   scores * (operations ? p->bytes : p->fused)[backward],
		   operations ? p->launches[backward] : 1);
}

void put_square(struct builder *b, const char *name, enum ft_dtype dtype,
		struct edges edges, int64_t groups)
{
	put_product(b, &(struct ft_work){
			       .kind = FT_GEMM,
			       .name = name,
			       .dtype = dtype == FT_DTYPES ? b->plan->precision : dtype,
			       .gemm = { .layout = FT_FORWARD,
					 .m = edges.m,
					 .n = edges.n,
					 .k = edges.k,
					 .groups = groups } });
}

/* Products and softmax over the full square of scores, one kernel each. */
void unfused_attention(struct builder *b, const struct layer_sizes *s, bool backward)
{
	int64_t groups = b->sequences * s->heads;
	int64_t seq = b->plan->sequence, m = groups * (seq / b->plan->cp);
	double scores = (double)m * (double)seq;
	const struct plain *p = plain_of(b);
	int times = backward ? 2 : 1;

	if (b->rules->attention_block) {
		blockwise_attention(b, s, backward);
		if (drops_scores(b))
			put_memory(b, "attention_dropout", backward ? "mul" : "dropout",
				   5 * scores_computed(b) * (double)groups, 1);
		return;
	}
	for (int i = 0; i < times; i++)
		put_square(b, "scores", p->scores,
			   (struct edges){ m, seq, s->l->qk_head_dim }, groups);
	if (p->bytes[0] > 0)
		plain_softmax(b, p, backward, scores);
	else if (b->rules->plain_sinks && b->model->sinks)
		softmax_with_sinks(b, s, backward, scores);
	else
		softmax(b, s, backward, scores);
	if (p->context == FT_FP32)
		put_memory(b, backward ? "attention_casts_back" : "attention_casts",
			   "copy", 28 * (double)(s->tokens * s->q), 8);
	if (drops_scores(b))
		put_memory(b, "attention_dropout", backward ? "mul" : "dropout",
			   (p->context == FT_FP32 ? 9 : 5) * scores, 1);
	for (int i = 0; i < times; i++)
		put_square(b, "context", p->context,
			   (struct edges){ m, s->l->v_head_dim, seq }, groups);
}

/*
 * Latent attention under tensor parallelism. Megatron keeps the down-projections whole on each
 * rank, which projects its slice of the sequence; latents and the rope key are gathered in front
 * of the up-projections. DTensor (torchtitan) gathers the hidden state, and all ranks project all
 * of it. Source: Megatron Core's MLASelfAttention, torchtitan's deepseek_v3 (read 2026-11-24).
 */
static bool splits_latents(const struct builder *b, const struct layer_sizes *s)
{
	return s->l->kv_lora_rank && b->rules->tensor_parallel == FT_TP_MEGATRON;
}

int64_t latent_tokens(const struct builder *b, const struct layer_sizes *s)
{
	return splits_latents(b, s) ? s->part : s->tokens;
}

int64_t qkv_features(const struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;

	if (!splits_latents(b, s))
		return s->h;
	return (l->q_lora_rank ? l->q_lora_rank : s->h) + l->kv_lora_rank +
	       l->qk_rope_head_dim;
}

int64_t qkv_count(const struct builder *b, const struct layer_sizes *s)
{
	if (s->linear || s->l->kv_lora_rank || joins_qkv(b))
		return 1;
	return 1 + (own_k(s) > 0) + (s->kv > own_k(s)) + (s->gates > 0);
}

void qkv_enter(struct builder *b, const struct layer_sizes *s)
{
	if (!splits_latents(b, s))
		enter_columns(b, s, qkv_count(b, s));
}

/* Of the latents, one of which q may not have. */
static void latent_norms(struct builder *b, const struct ft_layer *l, int64_t rows,
			 bool backward)
{
	put_bare_norms(b, backward ? "latent_norm_back" : "latent_norm",
		       (double)(rows * (l->q_lora_rank + l->kv_lora_rank)), 0,
		       l->q_lora_rank ? 2 : 1, backward);
}

void latent_up(struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;
	int64_t up = s->heads * (l->qk_head_dim - l->qk_rope_head_dim + l->v_head_dim);

	if (splits_latents(b, s))
		enter_split(b, s, qkv_features(b, s), false);
	put_gemm(b, "q_up", FT_FORWARD, s->tokens, s->q,
		 l->q_lora_rank ? l->q_lora_rank : s->h);
	if (!is_gathered(b, l))
		put_gemm(b, "kv_up", FT_FORWARD, s->tokens, up, l->kv_lora_rank);
}

static void latent_forward(struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;
	int64_t rows = latent_tokens(b, s), latents = l->q_lora_rank + l->kv_lora_rank;

	if (l->q_lora_rank)
		put_gemm(b, "q_down", FT_FORWARD, rows, l->q_lora_rank, s->h);
	put_gemm(b, "kv_down", FT_FORWARD, rows, l->kv_lora_rank + l->qk_rope_head_dim,
		 s->h);
	latent_norms(b, l, rows, false);
	put_norm_cast(b, (double)(rows * latents));
	latent_up(b, s);
}

/*
 * Latent attention's queries and keys are made of two parts each, one of which all heads' keys share. Megatron's
 * kernel writes keys and values out of the product of both, and backward their gradients into one: 2 bytes a
 * number, read and written. Where rotary positions are not fused each of queries, keys and values is copied.
 * Source: Megatron Core's fused_mla_yarn_rope_apply.py and multi_latent_attention.py (read 2026-11-28).
 */
static struct moved joined_by_kernels(const struct builder *b,
				      const struct layer_sizes *s)
{
	double k = (double)s->l->qk_head_dim, v = (double)s->l->v_head_dim;
	double both = k - (double)s->l->qk_rope_head_dim + v;

	if (b->rules->plain_rotary)
		return (struct moved){ .bytes = 4 * (k + k + v) / k, .launches = 3 };
	return (struct moved){ .bytes = 2 * (both + k + v) / k, .launches = 1 };
}

void latent_join(struct builder *b, const struct layer_sizes *s, bool backward)
{
	const struct recipe *r = recipe_of(b);
	struct moved joined = backward ? r->latent_back : r->latent;

	if (!s->l->kv_lora_rank)
		return;
	if (is_gathered(b, s->l)) {
		absorb_keys(b, s, backward);
		return;
	}
	if (b->rules->fusion == FT_FUSION_KERNELS)
		joined = joined_by_kernels(b, s);
	put_moved(b, backward ? "latent_join_back" : "latent_join", "copy", joined,
		  (double)(s->tokens * s->q));
}

void qkv_forward(struct builder *b, const struct layer_sizes *s)
{
	if (s->l->kv_lora_rank)
		latent_forward(b, s);
	else
		qkv_products(b, s, FT_FORWARD);
}

void linear_back(struct builder *b, const char *name, int64_t m, int64_t n, int64_t k)
{
	put_gemm(b, name, FT_DGRAD, m, n, k);
	put_gemm(b, name, FT_WGRAD, m, n, k);
}

void qkv_products(struct builder *b, const struct layer_sizes *s, enum ft_layout layout)
{
	const struct ft_layer *l = s->l;

	states_products(b, s, layout);
	if (s->linear) {
		delta_products(b, s, layout);
	} else if (l->kv_lora_rank) {
		int64_t up = s->heads *
			     (l->qk_head_dim - l->qk_rope_head_dim + l->v_head_dim);

		if (!is_gathered(b, l))
			put_gemm(b, "kv_up", layout, s->tokens, up, l->kv_lora_rank);
		put_gemm(b, "q_up", layout, s->tokens, s->q,
			 l->q_lora_rank ? l->q_lora_rank : s->h);
	} else if (joins_qkv(b)) {
		put_gemm(b, "qkv", layout, s->tokens, s->q + s->gate + s->kv + s->gates,
			 s->h);
	} else {
		put_gemm(b, "q", layout, s->tokens, s->q + s->gate, s->h);
		put_gemm(b, "k", layout, s->tokens, own_k(s), s->h);
		put_gemm(b, "v", layout, s->tokens, s->kv - own_k(s), s->h);
		put_gemm(b, "attention_gate", layout, s->tokens, s->gates, s->h);
	}
}

void latent_back(struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;
	int64_t rows = latent_tokens(b, s), latents = l->q_lora_rank + l->kv_lora_rank;

	if (!l->kv_lora_rank)
		return;
	latent_norms(b, l, rows, true);
	put_cast(b, (double)(rows * (latents + l->qk_rope_head_dim)), 2);
	put_input_transpose(b, (double)(rows * s->h));
	if (l->q_lora_rank)
		linear_back(b, "q_down", rows, l->q_lora_rank, s->h);
	linear_back(b, "kv_down", rows, l->kv_lora_rank + l->qk_rope_head_dim, s->h);
}
