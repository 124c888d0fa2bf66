/*
 * traces/memory_ends.h - bytes at the ends of a model: head, loss and embedding
 */
#ifndef TRACES_MEMORY_ENDS_H
#define TRACES_MEMORY_ENDS_H

#include "traces/build.h"

double head_weights(const struct builder *b); /* numbers of this rank */

/* ddp, of what a pass returns: the logits */
bool copies_outputs(const struct builder *b);

void head_bytes(struct builder *b, struct held root, bool backward);

/* Is the model, its table of words and its loss included, one compiled graph? */
bool is_one_graph(const struct builder *b);

/* While the embedding's gradient is computed, if that is more; variant: its segment's. */
void table_bytes(struct builder *b, struct held root, bool head, unsigned variant);

/* Of a run's micro-batches, and its time, when so many bytes have been freed. */
void outputs_join(struct builder *b, double freed);

#endif
