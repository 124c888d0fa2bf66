/* traces/blockwise.c - attention in blocks of scores that go to memory, as a program in JAX writes it */
#include "traces/blockwise.h"

static int64_t block_of(const struct builder *b)
{
	int64_t block = b->rules->attention_block, seq = b->plan->sequence;

	return block < seq ? block : seq;
}

/* Of a sequence; a causal mask leaves those at the diagonal and below. */
static int64_t blocks_of(const struct builder *b)
{
	int64_t block = block_of(b), n = (b->plan->sequence + block - 1) / block;

	return b->model->causal ? n * (n + 1) / 2 : n * n;
}

double scores_computed(const struct builder *b)
{
	double all = (double)b->plan->sequence, block = (double)block_of(b);

	return b->rules->attention_block ? (double)blocks_of(b) * block * block :
					   all * all;
}

double block_bytes(const struct builder *b, const struct layer_sizes *s)
{
	double block = (double)block_of(b);

	return 8 * (double)(b->sequences * s->heads) * block * block;
}

/*
 * Two products a block forward, five backward, which computes scores again. Between them a compiler's kernels read scores for their
 * maximum, read them again and write the weights: 2 + 4 bytes a score; backward scores and their gradient are read, weights and
 * gradient written: 8. Each block adds to the output of its queries what it has (read, read, written: 6 bytes a number), and
 * backward to the gradients of queries, keys and values. Products of all blocks stand as one here.
 * Source: lib/levanter/src/levanter/models/flash_attention.py of github.com/marin-community/marin@20ff5907 (read 2026-11-29); counted.
 */
void blockwise_attention(struct builder *b, const struct layer_sizes *s, bool backward)
{
	int64_t block = block_of(b), d = s->l->qk_head_dim, v = s->l->v_head_dim;
	int64_t groups = b->sequences * s->heads * blocks_of(b) / b->plan->cp;
	double rows = (double)groups * (double)block;
	double sums = (double)(backward ? 2 * d + v : v);
	int outer = backward ? 2 : 1, inner = backward ? 3 : 1;

	for (int i = 0; i < outer; i++)
		put_square(b, "scores", FT_DTYPES,
			   (struct edges){ (int64_t)rows, block, i ? v : d }, groups);
	put_memory(b, "softmax", "add",
		   rows * ((backward ? 8 : 6) * (double)block + 6 * sums), 2);
	for (int i = 0; i < inner; i++)
		put_square(b, "context", FT_DTYPES,
			   (struct edges){ (int64_t)rows, i ? d : v, block }, groups);
}
