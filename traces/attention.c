/*
 * traces/attention.c - core attention, fused or not, and the products before it
 */
#include <string.h>

#include "traces/block.h"

bool is_unfused(const struct builder *b)
{
	return !strcmp(b->rules->attention, "unfused");
}

/* What a softmax moves for each score, and in how many kernels. */
struct softmax {
	double forward, backward; /* bytes */
	int launches;
};

/*
 * A kernel over the whole square reads 2 bytes and writes 2, backward reads 4 and writes 2.
 * A causal one reads what lies below the diagonal and writes all: 1 + 2, 2 + 2. It takes
 * four rows at once, of as many heads or sequences, or is not used; then 16-bit scores are
 * made fp32 (6), scaled (8), masked (9), put through a softmax (8) and made 16-bit again
 * (6); backward 6, 12, 9, 8 and 6.
 */
static struct softmax softmax_of(const struct builder *b, const struct layer_sizes *s)
{
	int64_t longest = b->rules->causal_softmax, seq = b->plan->sequence;

	if (!longest || !b->model->causal)
		return (struct softmax){ 4, 6, 1 };
	if (seq <= longest && seq % 4 == 0 && b->sequences * s->heads % 4 == 0)
		return (struct softmax){ 3, 4, 1 };
	return (struct softmax){ 37, 41, 5 };
}

double softmax_saved(const struct builder *b, const struct layer_sizes *s)
{
	bool apart = softmax_of(b, s).launches > 1;

	return (b->rules->dropout ? 5 : 2) + (apart ? 4 : 0);
}

/* Products and softmax over the full square of scores, one kernel each. */
static void unfused_attention(struct builder *b, const struct layer_sizes *s,
			      bool backward)
{
	int64_t groups = b->sequences * s->heads;
	int64_t seq = b->plan->sequence, m = groups * (seq / b->plan->cp);
	double scores = (double)m * (double)seq;
	struct softmax softmax = softmax_of(b, s);
	int times = backward ? 2 : 1;

	for (int i = 0; i < times; i++)
		put_grouped(b, "scores", FT_FORWARD,
			    (struct edges){ m, seq, s->l->qk_head_dim }, groups);
	if (b->model->score_cap)
		put_memory(b, "score_cap", "default", scores * (backward ? 6 : 4), 1);
	put_rows(b, "softmax", "softmax",
		 scores * (backward ? softmax.backward : softmax.forward),
		 softmax.launches, 2 * (double)seq);
	if (b->rules->dropout)
		put_memory(b, "attention_dropout", "default", 5 * scores, 1);
	for (int i = 0; i < times; i++)
		put_grouped(b, "context", FT_FORWARD,
			    (struct edges){ m, s->l->v_head_dim, seq }, groups);
}

int64_t window_of(const struct builder *b, const struct ft_layer *l)
{
	return b->rules->windows && !is_unfused(b) ? l->window : 0;
}

static void fused_attention(struct builder *b, const struct layer_sizes *s,
			    enum ft_pass pass)
{
	struct ft_work w = { .kind = FT_ATTENTION,
			     .name = "attention",
			     .dtype = b->plan->precision == FT_FP16 ? FT_FP16 :
								      FT_BF16 };

	/* in chunks, each is a sequence of its own */
	int64_t length = s->l->chunk && s->l->chunk < b->plan->sequence ?
				 s->l->chunk :
				 b->plan->sequence;

	w.attention.pass = pass;
	w.attention.batch = b->sequences * ((b->plan->sequence + length - 1) / length);
	w.attention.heads = s->heads;
	w.attention.kv_heads = s->kv_heads;
	w.attention.queries = (length + b->plan->cp - 1) / b->plan->cp;
	w.attention.keys = length;
	w.attention.qk_head_dim = s->l->qk_head_dim;
	w.attention.v_head_dim = s->l->v_head_dim;
	w.attention.window = window_of(b, s->l);
	w.attention.causal = b->model->causal;
	w.attention.impl = b->rules->attention[0] ? b->rules->attention : NULL;
	put_op(b, &w, FT_STREAM_COMPUTE, pass == FT_PASS_FORWARD ? 1 : 5);
}

void attention_core(struct builder *b, const struct layer_sizes *s, bool backward)
{
	double kv = 2 * (double)(s->tokens * (s->k + s->v)) * (double)(b->plan->cp - 1);

	/* ring exchange of keys and values beside the blocks that are there */
	if (put_collective(b, "cp_exchange", FT_STREAM_CP, FT_SENDRECV, FT_GROUP_CP,
			   backward ? 2 * kv : kv))
		host(b, FT_HOST_COLLECTIVE, (double)(b->plan->cp - 2));
	if (is_unfused(b))
		unfused_attention(b, s, backward);
	else
		fused_attention(b, s, backward ? FT_PASS_BACKWARD : FT_PASS_FORWARD);
	if (b->plan->cp > 1)
		need(b, FT_STREAM_CP);
}

static void latent_forward(struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;
	int64_t up = s->heads * (l->qk_head_dim - l->qk_rope_head_dim + l->v_head_dim);

	if (l->q_lora_rank)
		put_gemm(b, "q_down", FT_FORWARD, s->part, l->q_lora_rank, s->h);
	put_gemm(b, "kv_down", FT_FORWARD, s->part,
		 l->kv_lora_rank + l->qk_rope_head_dim, s->h);
	put_memory(b, "latent_norm", "rmsnorm",
		   4 * (double)s->part * (double)(l->q_lora_rank + l->kv_lora_rank), 2);
	put_gemm(b, "q_up", FT_FORWARD, s->tokens, s->q,
		 l->q_lora_rank ? l->q_lora_rank : s->h);
	put_gemm(b, "kv_up", FT_FORWARD, s->tokens, up, l->kv_lora_rank);
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

	if (l->linear_heads) {
		delta_products(b, s, layout);
	} else if (l->kv_lora_rank) {
		int64_t up = s->heads *
			     (l->qk_head_dim - l->qk_rope_head_dim + l->v_head_dim);

		put_gemm(b, "kv_up", layout, s->tokens, up, l->kv_lora_rank);
		put_gemm(b, "q_up", layout, s->tokens, s->q,
			 l->q_lora_rank ? l->q_lora_rank : s->h);
	} else if (b->rules->fused_qkv) {
		put_gemm(b, "qkv", layout, s->tokens, s->q + s->gate + s->k + s->v,
			 s->h);
	} else {
		put_gemm(b, "q", layout, s->tokens, s->q + s->gate, s->h);
		put_gemm(b, "k", layout, s->tokens, s->k, s->h);
		put_gemm(b, "v", layout, s->tokens, s->v, s->h);
	}
}

void latent_back(struct builder *b, const struct layer_sizes *s)
{
	const struct ft_layer *l = s->l;

	if (!l->kv_lora_rank)
		return;
	put_memory(b, "latent_norm_back", "rmsnorm",
		   8 * (double)s->part * (double)(l->q_lora_rank + l->kv_lora_rank), 4);
	if (l->q_lora_rank)
		linear_back(b, "q_down", s->part, l->q_lora_rank, s->h);
	linear_back(b, "kv_down", s->part, l->kv_lora_rank + l->qk_rope_head_dim, s->h);
}

/* What selective recomputation runs again. */
void attention_again(struct builder *b, const struct layer_sizes *s)
{
	if (is_unfused(b))
		unfused_attention(b, s, false);
	else
		fused_attention(b, s, FT_PASS_FORWARD);
}
