/* traces/blockwise.h - attention in blocks of scores that go to memory, as a program in JAX writes it */
#ifndef TRACES_BLOCKWISE_H
#define TRACES_BLOCKWISE_H

#include "traces/block.h"

void blockwise_attention(struct builder *b, const struct layer_sizes *s, bool backward);

/* Weights and gradients of the one row of blocks that is computed at a time. */
double block_bytes(const struct builder *b, const struct layer_sizes *s);

#endif
