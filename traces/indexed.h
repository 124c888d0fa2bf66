/*
 * traces/indexed.h - attention to the tokens that an indexer chooses (DeepSeek Sparse Attention, arXiv 2512.02556)
 *
 * In kernels of its own each query gathers its index_topk latents, which all heads share: the up-projection of keys
 * is applied to queries, that of values to attention's output, by one product a head (absorbed). Where a stack has
 * no such kernels what is chosen is a mask (layout.masked_choice), as a window is.
 */
#ifndef TRACES_INDEXED_H
#define TRACES_INDEXED_H

#include "traces/block.h"

/* Do its queries gather what they see, by kernels of their own? */
bool is_gathered(const struct builder *b, const struct ft_layer *l);

/* Attention's work over latents that all heads share. */
void gather_latents(struct ft_work *attention, const struct ft_layer *l);

/* The indexer: its products, scores of all tokens before, and the choice; backward, what its loss takes. */
void choose_tokens(struct builder *b, const struct layer_sizes *s);
void choice_back(struct builder *b, const struct layer_sizes *s);

/* A choice by so many scores in fp32: one pass writes them, two read them. */
void put_choice(struct builder *b, double scores);

/* The up-projections of keys and of values, a head at a time; forward, or both gradients. */
void absorb_keys(struct builder *b, const struct layer_sizes *s, bool backward);
void project_values(struct builder *b, const struct layer_sizes *s, bool backward);

/* Bytes that scores take while tokens are chosen by them, or a mask made of them, a layer at a time. And does a layer do that
 * again, where a part of it runs again? */
double choice_bytes(const struct builder *b, int64_t layer);
bool chooses_again(const struct builder *b, int64_t layer);

/* Bytes of a choice that a layer sees and a layer before it made, of a rank's tokens. */
double choice_sent(const struct builder *b, int64_t layer);

/* FLOPs of a forward pass that runs again, beyond those of the first, but for products with weights. */
double gathered_flop(const struct builder *b, const struct layer_sizes *s);

/* The same of scores of which a mask is made. */
double masked_choice_flop(const struct builder *b, const struct layer_sizes *s);

/* Multiply-adds a token: of an indexer's products, what a rank does beyond its share of all ranks'; of products in attention's
 * core, when it runs again. */
double whole_index_products(const struct builder *b, const struct layer_sizes *s);
double core_products(const struct builder *b, const struct layer_sizes *s);

/* Bytes a token that all this makes a layer keep, beside latents, queries and output, where modules of a set run again; and of a
 * choice that layers behind it see, too, whatever runs again. */
double indexed_kept(const struct builder *b, const struct layer_sizes *s, unsigned set);
double chosen_for_others(const struct builder *b, const struct layer_sizes *s);

#endif
