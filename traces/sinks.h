/*
 * traces/sinks.h - attention sinks where no kernel knows them
 */
#ifndef TRACES_SINKS_H
#define TRACES_SINKS_H

#include "traces/block.h"

/* Does a compiler make few kernels of all between the two products of scores with a sink? */
bool sinks_compiled(const struct builder *b);
/* Of a model that has sinks; a layer may have none. */
void softmax_with_sinks(struct builder *b, const struct layer_sizes *s, bool backward,
			double scores);

/* Is a fused kernel's output scaled for the sinks, by operations (put_sinks)? It is then kept beside the
 * product's input. */
bool scales_for_sinks(const struct builder *b, const struct ft_layer *l);
void put_sinks(struct builder *b, const struct layer_sizes *s, bool backward);

#endif
