/*
 * models/layers.h - the blocks of a model: which layers are routed, windowed or
 * latent, read from a config under common names
 */
#ifndef MODELS_LAYERS_H
#define MODELS_LAYERS_H

#include "foretoken/models.h"

struct arena;
struct reader;

enum layer_kind {
	LAYERS_DENSE,
	LAYERS_MIXTRAL, /* every layer routed, intermediate_size is an expert's */
	LAYERS_ROUTED,	/* some dense, moe_intermediate_size is an expert's */
	LAYERS_LATENT,	/* the same, with latent attention and shared experts */
};

/* model->n_layers layers; mistakes are kept in the reader. */
struct ft_layer *layers_read(struct arena *mem, struct reader *r, enum layer_kind kind,
			     const char *type, const struct ft_model *model);

#endif
