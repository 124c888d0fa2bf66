/*
 * models/reach.h - which layers see less than all tokens before them, or carry a state along instead
 */
#ifndef MODELS_REACH_H
#define MODELS_REACH_H

struct family;
struct ft_layer;
struct ft_model;
struct reader;

/* A state space (Mamba-2) by the keys of a config, whose groups of heads share what keys and queries are elsewhere;
 * mistakes are kept in the reader. */
struct ft_layer reach_state_space(struct reader *r);

/* Its width as a config says it besides, by mamba_d_ssm or else mamba_expand times hidden_size, is that of its heads, or
 * Transformers' classes refuse it (Bamba, Granite 4, Falcon-H1, Mamba-2; Nemotron-H's has no use for its expand). */
void reach_expanded(struct reader *r, const struct ft_model *model,
		    const struct ft_layer *state);

/* The layer has this delta rule or state space in place of attention. */
void reach_linear(struct ft_layer *layer, const struct ft_layer *linear);

/* Windows, chunks, delta rules and state spaces of model->n_layers layers, by `layer_types`, else by the type's
 * custom; mistakes are kept in the reader. */
void reach_set(struct reader *r, const struct family *family,
	       const struct ft_model *model, struct ft_layer *layer);

#endif
