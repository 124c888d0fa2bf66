/*
 * traces/memory.h - bytes a rank holds all step long, and what segments take
 *
 * A segment takes, by category, a net and a peak: what it leaves behind it, and what stands at
 * its fullest moment beside what it found. Each call below adds to the segment being written.
 */
#ifndef TRACES_MEMORY_H
#define TRACES_MEMORY_H

#include "traces/build.h"

/* ends: of it, embedding and head */
void base_bytes(const struct builder *b, struct held stage, struct held ends,
		double bytes[FT_MEMORIES]);
double whole_bytes(struct held unit);	       /* its weights, gathered */
bool hands_stand_ins(const struct builder *b); /* tensors in place of gradients */
bool gradients_come(const struct builder *b);  /* each one when it is computed */
double kept_gradient_width(const struct builder *b);
double gradient_bytes(const struct builder *b,
		      struct held unit); /* that come and stay */
/* Of the step before, as far as they are there until the first backward pass of this one. */
double earlier_gradients(const struct builder *b, struct held stage);

void takes(struct builder *b, enum ft_memory category, double net, double peak);
double unit_bytes(const struct builder *b, struct held unit); /* and copied out */

/* Autocast's copies of weights: those that a pass makes, or, again, makes anew; those that go with the loss. */
void copies_bytes(struct builder *b, double copies, bool backward, bool again);
double early_copies(const struct builder *b);

void layer_bytes(struct builder *b, int64_t layer, bool backward);
/* Behind its backward: a layer of predicted tokens is no turn of a scan, and gives back what it kept. */
void layer_beside_scan(struct builder *b, int64_t layer);
void gradient_waits(struct builder *b, double elements); /* for its part */
/* What a stage has freed when its pipeline is drained: whole weights, and gradients where it reduces them now. */
double flush_frees(const struct builder *b, struct held stage, bool reduces);

/* fsdp: units gathered for a forward, and gone behind a backward. */
void scan_ends(struct builder *b);
void unit_comes(struct builder *b, struct held unit, bool gathered);
/* Beside a layer's backward: the unit below, gathered ahead (FSDP1); below the lowest none is, so that what its weights were copied
 * out of is gone when gradients come (FSDP2). */
void gathers_below(struct builder *b, int64_t layer, bool lowest);
void unit_goes(struct builder *b, struct held unit);
/* Beside a layer's backward: the root, and what the unit before it packed. */
void root_waits(struct builder *b, struct held root, bool head);
void packed_waits(struct builder *b, struct held unit);
/* While a layer's gradients are packed, if that is more; lowest: no unit is gathered meanwhile. */
void packing_bytes(struct builder *b, int64_t layer, bool lowest, struct held root,
		   bool head);
/* While gradients are reduced: a unit's, and the root's. */
void reduced_bytes(struct builder *b, struct held unit);
void reduce_bytes(struct builder *b, struct held root);

#endif
