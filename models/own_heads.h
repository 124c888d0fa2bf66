/*
 * models/own_heads.h - layers whose heads are not those of all others, and gates of what heads put out
 */
#ifndef MODELS_OWN_HEADS_H
#define MODELS_OWN_HEADS_H

struct family;
struct ft_layer;
struct ft_model;
struct reader;

/* Query heads are a multiple of the key heads that key is about, or it is a mistake, kept in the reader. */
void heads_check_groups(struct reader *r, const char *key, const struct ft_layer *l);

/* Layers whose windows are set already: those with a window may have heads of another number, each layer may, and gates are made
 * for heads or for all they put out. Mistakes are kept in the reader. */
void heads_set(struct reader *r, const struct family *family,
	       const struct ft_model *model, struct ft_layer *layer);

#endif
