/*
 * models/layers.h - the blocks of a model: which layers are routed, windowed or
 * latent, read from a config under common names
 */
#ifndef MODELS_LAYERS_H
#define MODELS_LAYERS_H

#include "foretoken/models.h"

struct arena;
struct family;
struct reader;

/* The blocks that the layers of a config make: as many, or for a family of halves an MLP joins what stands before
 * it. >= 1. */
int64_t layers_count(struct arena *mem, struct reader *r, const struct family *family,
		     int64_t layers);

/* model->n_layers layers; mistakes are kept in the reader. */
struct ft_layer *layers_read(struct arena *mem, struct reader *r,
			     const struct family *family, const struct ft_model *model);

/* The layer that those of predicted tokens are like: the last that chooses what it sees, or of a family of halves the first that
 * `mtp_hybrid_override_pattern` is a picture of. */
int64_t layers_predicted(struct reader *r, const struct family *family,
			 const struct ft_model *model);

#endif
