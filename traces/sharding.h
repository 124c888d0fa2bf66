/* traces/sharding.h - weights that are gathered, gradients that are reduced, the update */
#ifndef TRACES_SHARDING_H
#define TRACES_SHARDING_H

#include "traces/build.h"

bool is_fsdp(const struct ft_plan *plan);
bool keeps_units(const struct builder *b); /* whole to the end of the step */
/* Whole weights that are counted as held all step long: these, and where micro-batches in flight in a pipeline share them. */
bool holds_units(const struct builder *b);
bool reduces_last(const struct builder *b); /* fsdp: once, behind the last backward */
/* A pipeline that is drained several times a step reduces gradients each time. */
bool flush_reduces(const struct builder *b);
/* Micro-batches whose gradients are summed up before they are reduced, if they are. */
int64_t summed_micro_batches(const struct builder *b);
/* fsdp: gradients of micro-batches are added up whole; weights that are not resharded then stay, too */
bool sums_whole(const struct builder *b);
bool gathers_ahead(const struct builder *b); /* zero1, under the next forward */
/* Of a unit, what fsdp gathers and reduces. */
struct held of_fsdp(const struct builder *b, struct held unit);
bool wide_adapters(const struct builder *b);	 /* in fp32, whatever else is */
double gradient_width(const struct builder *b);	 /* bytes */
bool has_two_gradients(const struct builder *b); /* in 16 bit, and to be reduced */
bool has_peers(const struct builder *b,
	       struct held unit); /* somebody to gather it from */
void gather_unit(struct builder *b, struct held unit, enum ft_event behind);
void unshard_unit(struct builder *b, struct held unit);
void unshard_forward(struct builder *b, struct held unit); /* both, of a forward */
/* first: nothing is there yet that the rank's shard is added to */
/* joins: what is reduced is added to what was before. */
void reduce_unit(struct builder *b, struct held unit, bool joins);
void gather_weights(struct builder *b, struct held unit); /* zero1, ahead */
void await_reductions(struct builder *b);
void put_reductions(struct builder *b, struct held unit);
/* Nothing where all come at once in the end. first: of the first micro-batch. */
void reduce_gradients(struct builder *b, struct held unit, bool first);
bool reduces_at_once(const struct builder *b);
bool sums_shards(const struct builder *b); /* of micro-batches, each reduced */
/* first: of the first micro-batch; table: the embedding's. */
void accumulate_gradients(struct builder *b, struct held unit, bool first, bool table);
void cast_weights(struct builder *b, struct held unit);
void mark_optimizer(struct builder *b, size_t from); /* what was put since then */
/* ends: of the stage, embedding and head. */
void optimizer_ops(struct builder *b, struct held stage, struct held ends, double tied);

/* buckets.c */
struct ahead { /* the first layer of a chunk whose weights are not yet gathered */
	int64_t dense, experts;
};
void set_buckets(struct builder *b);
/* Bits of a layer's variant: the bucket that is full behind its backward. since: gradients in those
 * that are not; edge: it is the chunk's last to go back. */
unsigned bucket_behind(struct builder *b, struct held *since, int64_t layer, bool edge);
/* The same of weights that are gathered ahead of its forward. */
unsigned bucket_ahead(struct builder *b, struct ahead *ahead, int64_t layer,
		      int64_t end);
struct held bucket_of(const struct builder *b, unsigned variant);

/* recompute.c: whose backward was before this one's; of the last itself */
int64_t layer_above(const struct builder *b, int64_t layer);

#endif
