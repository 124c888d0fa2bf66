/*
 * traces/streams.h - a residual of several streams, which each half of a layer sums to its input and mixes anew
 * (manifold-constrained hyper-connections, arXiv 2512.24880)
 *
 * Of n streams of h numbers a half makes, by one product in fp32 of all n h of a token, n weights for its input's sum, n for what
 * its output adds, and n x n by which the streams are mixed, whose rows and columns are made to sum to 1.
 */
#ifndef TRACES_STREAMS_H
#define TRACES_STREAMS_H

#include "traces/block.h"

bool has_streams(const struct builder *b);

/* In front of a half's norm, and behind its output, where else an addition is; and their gradients. Nothing where there is one stream. */
void streams_in(struct builder *b, const struct layer_sizes *s, bool backward);
void streams_out(struct builder *b, const struct layer_sizes *s, bool backward);

/* Both of a layer's halves, once more: what their modules run again (mhc) is sums and mixtures, not the weights of these. */
void streams_again(struct builder *b, const struct layer_sizes *s);

/* The sum of all streams in front of the last norm, and copies of the embedding. */
void streams_end(struct builder *b, bool backward);
void streams_begin(struct builder *b, bool backward);

/* Parameters of a layer's weights of streams, whose products are among what kernels move. */
double streams_products(const struct builder *b);

/* Bytes of a layer's streams and their sums that are made again in front of its backward; 0: none are. All of a chunk's are made at
 * once, behind which each layer's go with its backward; until then the chunk keeps the streams that came in. begins: of
 * struct layer_call. */
double streams_rebuilt(const struct builder *b, int64_t layer);
int64_t streams_rebuilt_in(const struct builder *b, int64_t begin,
			   int64_t end); /* so many layers */
void streams_bytes(struct builder *b, int64_t layer, int64_t begins, bool backward);

/* Bytes a token that a layer keeps beside what one of one stream does, where modules of a set run again. */
double streams_kept(const struct builder *b, const struct layer_sizes *s, unsigned set);

#endif
