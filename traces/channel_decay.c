/*
 * traces/channel_decay.c - a delta rule with a decay of each channel of its keys (Kimi Delta Attention, arXiv 2510.26692)
 *
 * Its products in chunks are those of the gated delta rule (traces/delta.c), with keys and queries that decay by channel. Bytes
 * of a decay, of which there are as many as of keys:
 *   made from its input in 16 bit and summed up along a chunk, in fp32         6
 *   read for squares of a chunk, for w and u, and for outputs                  12, and a decayed key written, 2
 *   backward made once more (6), w, u, keys and queries once more (8), read for gradients of squares, of the rest (8),
 *   gradients written, read and written (12), summed up from behind (8), and brought back to the input (8)
 * In the class of Transformers the decay is made by operations in fp32 first: 30 more, backward 42; and three numbers in fp32
 * are kept, where else its input is. Gate and decay come out of a low rank each, whose matrices no rank of a tensor
 * group divides (assumed). Sources: fla/ops/kda/chunk_fwd.py and chunk.py of flash-linear-attention, Transformers'
 * modular_kimi_linear.py (read 2026-11-28). Counted, not measured; without that package the class runs loops over chunks and
 * over their tokens, which are not simulated.
 */
#include "traces/mixers.h"

static bool by_class(const struct builder *b)
{
	return b->rules->model_classes && by_operation(b);
}

void decay_products(struct builder *b, const struct layer_sizes *s,
		    enum ft_layout layout)
{
	int64_t heads = s->l->linear_heads / b->plan->tp, rank = s->l->linear_rank;

	if (b->rules->fused_qkv) {
		put_gemm(b, "delta_in", layout, s->tokens, s->q + s->k + s->v, s->h);
	} else {
		put_gemm(b, "delta_in", layout, s->tokens, s->q, s->h);
		put_gemm(b, "delta_in", layout, s->tokens, s->k, s->h);
		put_gemm(b, "delta_in", layout, s->tokens, s->v, s->h);
	}
	put_gemm(b, "delta_rates", layout, s->tokens, heads, s->h);
	for (int i = 0; i < 2; i++)
		put_gemm(b, "delta_down", layout, s->tokens, rank, s->h);
	put_gemm(b, "delta_up", layout, s->tokens, s->k, rank);
	put_gemm(b, "delta_up", layout, s->tokens, s->gate, rank);
}

void decays(struct builder *b, const struct layer_sizes *s, bool backward)
{
	double numbers = (double)(s->tokens * s->k);
	double bytes = backward ? 50 : 20, apart = backward ? 42 : 30;

	if (!s->l->linear_rank)
		return;
	put_memory(b, backward ? "delta_decay_back" : "delta_decay", "default",
		   bytes * numbers, backward ? 3 : 1);
	if (by_class(b))
		put_memory(b, backward ? "delta_decay_back" : "delta_decay", "default",
			   apart * numbers, backward ? 5 : 4);
}

double decays_kept(const struct builder *b, const struct layer_sizes *s)
{
	double latents = 4 * (double)s->l->linear_rank;

	return s->l->linear_rank ? (by_class(b) ? 12 : 2) * (double)s->k + latents : 0;
}
