/*
 * models/indexer.h - attention to tokens that an indexer chooses (DeepSeek Sparse Attention, arXiv 2512.02556)
 *
 * A query sees the index_topk tokens before it that the indexer scores highest: index_n_heads heads of
 * index_head_dim, made of the latent that queries are made of, against one key a token, made of the hidden state.
 */
#ifndef MODELS_INDEXER_H
#define MODELS_INDEXER_H

struct ft_layer;
struct ft_model;
struct reader;

/* The indexer of model->n_layers layers, and which of them choose nothing themselves: by indexer_types, else by
 * index_topk_pattern, else one in index_topk_freq chooses. index_topk of 0: none has one. Mistakes are kept in the reader. */
void indexer_set(struct reader *r, const struct ft_model *model,
		 struct ft_layer *layer);

#endif
