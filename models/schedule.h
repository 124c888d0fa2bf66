/*
 * models/schedule.h - a pipeline's schedule, as a plan states it
 */
#ifndef MODELS_SCHEDULE_H
#define MODELS_SCHEDULE_H

#include "foretoken/models.h"

struct reader;

/* `schedule` and `pipeline_flushes` of `training`; mistakes are kept in the reader. */
void schedule_read(struct reader *training, struct ft_plan *plan);

/* Are the runs of the pipeline between two flushes alike? Of a plan whose micro-batches are
 * set. */
bool schedule_flushes(const struct ft_plan *plan);

#endif
