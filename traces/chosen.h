/* traces/chosen.h - a layer in a checkpoint by operations: what it keeps, and what of its forward pass runs again */
#ifndef TRACES_CHOSEN_H
#define TRACES_CHOSEN_H

#include "traces/block.h"

/* Bytes a token that it keeps; parameters of the products that run again, without a router and routed experts. */
double chosen_bytes(const struct builder *b, const struct layer_sizes *s);
double chosen_products(const struct builder *b, const struct layer_sizes *s);

/* Does it run again no further than to the MLP's last product? */
bool chosen_stops(const struct builder *b, const struct layer_sizes *s);

/* From here on what is put forward is what runs again of that layer, to the end. */
void chosen_begin(struct builder *b, const struct layer_sizes *s);
void chosen_end(struct builder *b);

/* While it runs again: is the output of that product, the next of its name, kept or read by nobody? */
bool chosen_skips(struct builder *b, const char *name);

#endif
