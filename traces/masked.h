/*
 * traces/masked.h - experts' inputs and outputs by products with a mask
 *
 * Where each expert has so many slots for the tokens of a sequence (moe_capacity_factor), MaxText writes a mask of tokens x
 * slots, and tokens come into slots, and back out of them, by products with it (`masked_dispatch` of the stack):
 *
 *	slots = experts floor(ceil(sequence experts_per_token / experts) capacity)
 *	FLOP  = 2 tokens slots h a sequence and product: one to the slots and one back; backward one and two
 *
 *	bytes = 6 tokens slots: weights in 16 bit are written, and in 8 whether they are there, which
 *	        becomes 16 bit for the product; backward 5: that once more, and the weights' gradient is read
 *
 * 3 of these bytes are kept for backward. tokens: of the sequence on this rank, under cp and sequence_parallel a part of it. What sums of parts then cost in
 * messages is not counted.
 *
 * Source: AI-Hypercomputer/maxtext, src/MaxText/layers/moe.py, dense_matmul and generate_masks.
 */
#ifndef TRACES_MASKED_H
#define TRACES_MASKED_H

#include "traces/build.h"

bool dispatches_by_mask(const struct builder *b);

/* Bytes of the mask that are kept for backward, a token. */
double mask_kept(const struct builder *b, const struct ft_layer *l);

/* Of this rank's tokens; h: of what experts read and write. */
void mask_dispatch(struct builder *b, const struct ft_layer *l, int64_t tokens,
		   int64_t h, bool backward);
void mask_combine(struct builder *b, const struct ft_layer *l, int64_t tokens,
		  int64_t h, bool backward);

#endif
