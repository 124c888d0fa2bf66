/*
 * traces/compressed.h - attention to a window of tokens and to entries that stand for those before it (DeepSeek-V4)
 *
 * One head of keys, which are values; each query gathers what it sees by the kernels that chosen tokens are gathered by.
 */
#ifndef TRACES_COMPRESSED_H
#define TRACES_COMPRESSED_H

#include "traces/block.h"

/* From a layer's norm to what it adds to the residual; and back. */
void compressed_forward(struct builder *b, const struct layer_sizes *s);
void compressed_back(struct builder *b, const struct layer_sizes *s);

/* What mla_up_proj runs again: queries and keys from latents, turned. */
void compressed_up(struct builder *b, const struct layer_sizes *s);

/* FLOPs of a forward pass that runs again, beyond products with weights; and multiply-adds a token of what mla_up_proj runs again. */
double compressed_flop(const struct builder *b, const struct layer_sizes *s);
double compressed_up_products(const struct layer_sizes *s);

/* Bytes a token that it keeps beside the norm's output and its own output, where modules of a set run again. */
double compressed_kept(const struct builder *b, const struct layer_sizes *s,
		       unsigned set, double input_width);

/* Is it simulated under that plan and stack? False: *err says what is. */
bool compressed_runs(const struct ft_model *model, const struct ft_plan *plan,
		     const struct ft_stack *stack, struct ft_error *err);

/* Tensors that its weights are kept in. */
int64_t compressed_tensors(const struct ft_layer *l);

#endif
