/*
 * models/stages.h - how many layers each chunk of a pipeline gets
 */
#ifndef MODELS_STAGES_H
#define MODELS_STAGES_H

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct reader;

/* Layers of each of `chunks`, in the order of the model. The embedding counts
 * as a layer of the first chunk and the head as one of the last where layers
 * and these two divide evenly; else chunks are as even as possible, the last
 * and then the first getting fewer. n: room for
 * `chunks`. false when there are too few layers. */
bool stages_even_into(int64_t *n, int64_t layers, int64_t chunks);
/* The same in an array of its own; NULL for false. */
int64_t *stages_even(struct arena *mem, int64_t layers, int64_t chunks);

/* The same as the user wrote it under key; a mistake is kept in the reader. */
int64_t *stages_read(struct arena *mem, struct reader *r, const char *key,
		     int64_t chunks, int64_t layers);

#endif
