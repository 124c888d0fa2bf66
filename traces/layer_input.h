/*
 * traces/layer_input.h - what each layer reads of a token by itself (per-layer embeddings, Gemma 4)
 */
#ifndef TRACES_LAYER_INPUT_H
#define TRACES_LAYER_INPUT_H

#include "traces/block.h"

/* Those of all layers, made beside the embedding. */
void layer_inputs(struct builder *b, bool backward);

/* Behind a layer's halves. Bytes a token that it keeps for it. */
void layer_input(struct builder *b, const struct layer_sizes *s, bool backward);
double layer_input_kept(const struct builder *b, const struct layer_sizes *s);

#endif
