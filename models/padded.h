/*
 * models/padded.h - lists of a config that go on with the layers of predicted tokens
 */
#ifndef MODELS_PADDED_H
#define MODELS_PADDED_H

#include <stdint.h>

struct arena;
struct ft_model;
struct node;
struct reader;

/* In a map of keys under common names lists are cut to num_hidden_layers, and what they say of predicted tokens' layers gets keys
 * of its own; layers in a text become a list. */
void padded_cut(struct arena *mem, struct node *map);

/* The first layer of the model that is as those of predicted tokens; mistakes are kept in the reader. */
int64_t padded_predicted(struct reader *r, const struct ft_model *model);

#endif
