/*
 * models/interleave.h - which numbers of micro-batches an interleaved pipeline can run
 *
 * Stages take micro-batches in groups of pp, chunk by chunk (traces/schedule.c). The last group
 * may be narrower, of r = m mod pp. Its forwards of a chunk then come round in r passes and not
 * in pp, while backwards of the group before still come in pp: from r = 1 (2 with two chunks,
 * where a group has but one way round) to pp - 3 some stage has a backward ahead of a forward
 * that the backward's own neighbour waits for, and all wait in a circle. A pair of a backward
 * and the forward behind it (overlap.ep) ends when both can, so that pp - 2 waits as well;
 * unless that is the only r, when the micro-batch of another size, the last, is in each such
 * pair and so not paired. A chunk that has neither layers nor an end of the model waits for
 * nothing: the rule is not for plans with such chunks. tests/test_interleave.c holds the rule
 * to the engine, both ways.
 */
#ifndef MODELS_INTERLEAVE_H
#define MODELS_INTERLEAVE_H

#include "foretoken/models.h"

/* Do the passes of such a plan all end? Of its schedule, sizes and micro-batches alone. */
bool interleave_ends(const struct ft_plan *plan);

/* The number of micro-batches nearest to the plan's whose passes do; of two, the smaller. */
int64_t interleave_nearest(const struct ft_plan *plan);

#endif
