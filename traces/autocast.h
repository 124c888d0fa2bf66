/*
 * traces/autocast.h - what a layer does and keeps more where its forward pass runs under autocast
 *
 * Autocast runs products in 16 bit, and in fp32 what it takes to be delicate: LayerNorms and powers. Each product
 * casts its own input, so that three that read one norm's output make three copies, and autograd keeps each.
 * The weights' format does not matter for that: fp32 under DDP, or 16 bit as Trainer runs them (layout.autocast_always).
 *
 * Bytes a token and number of hidden_size, h, where operations are kernels of their own; n are the products that read a norm's output:
 *   kept     2 (n - 1) of each norm in fp32: the further copies
 *            LayerNorm: 2 of each, its input in fp32; side by side norms have one input in fp32, 4, or of 16-bit weights one each
 *            MLPs without a gate, weights in fp32: 2, which allocator peaks of GPT's layers say
 *            RMS norm in operations, weights in fp32: 2, what its weights multiply, unless that was in fp32 before
 *   moved    LayerNorm on 16-bit weights: 4 more by itself, 6 of its input's cast, 6 n of its output's; backward
 *            the same and 6 (n - 1), the sums of the copies' gradients
 * gelu_new has a power, so that what follows it is in fp32: see traces/elements.c.
 * Grouped products are not on its lists, and PyTorch has them in 16 bit alone: of weights in fp32 Transformers takes one product an expert, in fp32,
 * and asks how many tokens each has (layout.experts_as_weights; transformers/integrations/moe.py, 5.17.0, and measurements/probes/h200-2026-11-29-drawn-unseen).
 * Source: PyTorch 2.11's autocast (its lists of operations for CUDA); measurements/probes/h200-2026-11-28-trainer-unseen,
 * where peaks of GPT-2, OPT, Llama and Qwen2.5 are within 3 % with these and 3 to 28 % too small without.
 */
#ifndef FT_TRACES_AUTOCAST_H
#define FT_TRACES_AUTOCAST_H

#include <stdbool.h>

#include "traces/build.h"

struct layer_sizes;

bool under_autocast(const struct builder *b);

/* Are routed experts computed in fp32, as their weights are? */
bool experts_in_fp32(const struct builder *b);

/* what their numbers take, over 16 bit; and the weights of a unit that are cast */
double experts_width(const struct builder *b);
double cast_by_autocast(const struct builder *b, struct held unit);

/* bytes a token that a layer keeps more; again: its norms run again before its backward */
double autocast_kept(const struct builder *b, const struct layer_sizes *s, bool again);

/* its casts and norms in fp32, of one pass of a layer; where norms run again, again */
void put_autocast(struct builder *b, const struct layer_sizes *s, bool backward);

#endif
