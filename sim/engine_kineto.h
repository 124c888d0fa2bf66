/*
 * sim/engine_kineto.h - a rank of the engine's, as its profiler would record it
 */
#ifndef SIM_ENGINE_KINETO_H
#define SIM_ENGINE_KINETO_H

#include "sim/engine_state.h"

/* The op at a stream's head is over; what the receive there waited for has come. */
void rank_op(struct engine *e, const struct stream *s, const struct entry *in);
void rank_received(struct engine *e, const struct stream *s, const struct entry *in);

/* The host of a part waited so long. */
void rank_host(struct engine *e, const struct part_state *r, ft_ps from, ft_ps to);

/* Receives and marks of passes, when all is over. */
void rank_rest(struct engine *e);

#endif
