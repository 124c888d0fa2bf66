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

/* model->n_layers layers; mistakes are kept in the reader. */
struct ft_layer *layers_read(struct arena *mem, struct reader *r,
			     const struct family *family, const struct ft_model *model);

#endif
