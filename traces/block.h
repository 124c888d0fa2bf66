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
	int64_t gate; /* of attention's output, as wide as q; 0: none */
	bool fp8;
	bool beside; /* attention and MLP read the same input, and are summed once */
};

struct layer_sizes sizes_of(const struct builder *b, int64_t layer);

/* attention.c: core attention, and the products in front of it */
bool is_unfused(const struct builder *b);
int64_t window_of(const struct builder *b, const struct ft_layer *l); /* as computed */
double softmax_saved(const struct builder *b,
		     const struct layer_sizes *s); /* a score */
void attention_core(struct builder *b, const struct layer_sizes *s, bool backward);
void attention_again(struct builder *b, const struct layer_sizes *s);
void qkv_forward(struct builder *b, const struct layer_sizes *s);
void qkv_products(struct builder *b, const struct layer_sizes *s,
		  enum ft_layout layout);
void latent_back(struct builder *b, const struct layer_sizes *s);
/* delta.c: a gated delta rule in place of attention */
void delta_core(struct builder *b, const struct layer_sizes *s, bool backward);
void delta_products(struct builder *b, const struct layer_sizes *s,
		    enum ft_layout layout);

/* adapters.c: adapters beside the products of a layer */
enum adapter_site { SITE_QKV, SITE_OUT, SITE_UP, SITE_DOWN, SITES };

void adapters(struct builder *b, const struct layer_sizes *s, enum adapter_site site,
	      bool backward);
double adapters_saved(const struct builder *b,
		      const struct layer_sizes *s); /* bytes a token, may be negative */

void linear_back(struct builder *b, const char *name, int64_t m, int64_t n, int64_t k);

#endif
