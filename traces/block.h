/*
 * traces/block.h - what the files that write one layer share: its sizes on a rank
 */
#ifndef TRACES_BLOCK_H
#define TRACES_BLOCK_H

#include "traces/build.h"

/* A layer's sizes on one rank. */
struct layer_sizes {
	const struct ft_layer *l;
	int64_t tokens, part; /* of the rank; of its slice under sequence parallelism */
	int64_t h, heads, kv_heads, q, k, v, out, f;
	bool fp8;
};

struct layer_sizes sizes_of(const struct builder *b, int64_t layer);

/* recompute.c: modules that selective recomputation runs again */
unsigned recomputed_modules(const struct builder *b);

/* saved.c: inputs of products are kept in 8 bit */
bool keeps_a_byte(const struct builder *b);

/* attention.c: core attention, and the products in front of it */
bool is_unfused(const struct builder *b);
void attention_core(struct builder *b, const struct layer_sizes *s, bool backward);
void attention_again(struct builder *b, const struct layer_sizes *s);
void qkv_forward(struct builder *b, const struct layer_sizes *s);
void qkv_products(struct builder *b, const struct layer_sizes *s,
		  enum ft_layout layout);
void latent_up(struct builder *b, const struct layer_sizes *s);
void latent_back(struct builder *b, const struct layer_sizes *s);
void linear_back(struct builder *b, const char *name, int64_t m, int64_t n, int64_t k);

#endif
