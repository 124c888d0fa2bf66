/* traces/offload.h - what layers keep, to host memory behind a forward and back for a backward */
#ifndef TRACES_OFFLOAD_H
#define TRACES_OFFLOAD_H

#include "traces/build.h"

/* Near the end of a forward: what the layer before sent has left. Behind it: this one's share
 * goes. */
void offload_await(struct builder *b);
void offload_layer(struct builder *b, int64_t layer);

/* Behind a head's forward and before its backward: the bytes that its loss keeps, where they go, too. */
bool sends_loss(const struct builder *b);
void offload_loss(struct builder *b, double bytes);
void fetch_loss(struct builder *b, double bytes);

/* What a backward fetches: its own share where it is first in its chunk, that of the layer below
 * unless it is last. */
unsigned fetch_variant(const struct builder *b, bool last, bool first);

/* At the begin of a backward: its share is there. At the end: that of the layer below, taken as
 * large, is fetched behind the op that awaited its own. */
void fetch_await(struct builder *b, int64_t layer, unsigned variant);
void fetch_below(struct builder *b, int64_t layer, unsigned variant);

#endif
