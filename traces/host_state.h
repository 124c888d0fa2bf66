/*
 * traces/host_state.h - state that waits in host memory: its copies, and the update that the host makes there
 *
 * offload_state: optimizer   gradients go out behind their reduction (zero2, fsdp) or behind the last one, the host updates
 *                            fp32 weights and moments, new weights come back in the format of the GPU's
 *                all         (fsdp) shards of weights come, in fp32, for each gather, and gradients go out behind each
 *                            reduction; the GPU keeps neither
 * For n numbers of a rank the update takes n / threads of FT_HOST_STATE_UPDATE and 28 n bytes of FT_HOST_STATE_MEMORY, both
 * counted in millions.
 */
#ifndef TRACES_HOST_STATE_H
#define TRACES_HOST_STATE_H

#include "traces/build.h"

bool state_waits(const struct builder *b);  /* the optimizer's */
bool weights_wait(const struct builder *b); /* and those of weights */

/* Of a tensor's share in fp32, numbers for which the host maps memory when it is made, and unmaps it when it goes. */
double mapped_share(double numbers, double shard);

/* Ahead of a gather of that unit: its shard comes, behind these events or tails (too: or FT_EVENT_NONE). What waits for it waits for
 * the tail of FT_STREAM_FETCH. False: nothing comes. */
bool shard_comes(struct builder *b, struct held unit, int behind, int too);
/* Behind a reduction of that unit: its share of gradients goes. joins: to those of earlier micro-batches. */
void gradients_go(struct builder *b, struct held unit, bool joins);
/* Do what each reduction left go to the host at once? Else behind the last one. */
bool gradients_go_each(const struct builder *b);
/* Bytes of a number of the gradients that stay on the GPU until the update. */
double staying_gradient_width(const struct builder *b, double width);
/* The update of a stage, norm of gradients included. */
void update_on_host(struct builder *b, struct held stage);
/* What the state takes of the GPU's memory less. */
void state_leaves(const struct builder *b, struct held stage,
		  double bytes[FT_MEMORIES]);

#endif
