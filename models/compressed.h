/*
 * models/compressed.h - attention to compressed tokens (DeepSeek-V4), read from a config
 *
 * A query sees the tokens of a window one by one, and all before it as entries, each made of m tokens: of those an indexer
 * chooses index_topk (compressed sparse attention), or it sees all (heavily compressed). Keys are values, one head for all
 * heads of queries, which are made of a latent; groups of heads are projected to a rank of their own behind attention.
 */
#ifndef MODELS_COMPRESSED_H
#define MODELS_COMPRESSED_H

struct ft_layer;
struct ft_model;
struct reader;

/* What all model->n_layers layers share: widths and ranks. heads is there; mistakes are kept in the reader. */
void compressed_read(struct reader *r, struct ft_layer *layer);

/* What each layer sees, by layer_types, else by compress_ratios, else as the class has it. */
void compressed_set(struct reader *r, const struct ft_model *model,
		    struct ft_layer *layer);

#endif
