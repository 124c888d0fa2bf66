/*
 * traces/beside.h - experts beside a dense MLP, and layers whose output is scaled: nothing for other
 * models
 */
#ifndef TRACES_BESIDE_H
#define TRACES_BESIDE_H

#include "traces/block.h"

/* In front of the router and of the experts, and behind them; behind the MLP of all tokens. */
void beside_enter(struct builder *b, const struct ft_layer *layer, bool backward);
void beside_leave(struct builder *b, const struct ft_layer *layer, bool backward);
void beside_norm(struct builder *b, const struct layer_sizes *s, bool backward);

/* Bytes per token that these keep for backward, as many as a hidden state is wide. */
double beside_kept(const struct builder *b, const struct layer_sizes *s);

/* A layer's output, or its gradient, times a number. */
void layer_scaled(struct builder *b, const struct layer_sizes *s);

#endif
