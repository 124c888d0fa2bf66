/*
 * traces/stacked.h - experts whose weights are apart, copied into one tensor for each grouped product (layout.stacked_experts)
 *
 * Of e local experts of p numbers each pass moves 4 e p bytes: their weights forward, their gradients backward. What was copied is an
 * input of the products, and is kept for the backward pass, of each micro-batch: 2 e p.
 */
#ifndef TRACES_STACKED_H
#define TRACES_STACKED_H

#include "traces/block.h"

void stack_experts(struct builder *b, const struct ft_layer *l, bool backward);
double stacked_kept(const struct builder *b, const struct ft_layer *l, unsigned set);

#endif
