/*
 * traces/schedule.h - the order of passes on one stage of a pipeline
 */
#ifndef TRACES_SCHEDULE_H
#define TRACES_SCHEDULE_H

#include "foretoken/traces.h"

/* Which part of a backward, where a schedule splits it. */
enum part {
	PART_WHOLE,
	PART_INPUTS,  /* gradients of inputs, and what they need */
	PART_WEIGHTS, /* gradients of weights, and what becomes of them */
};

/* Are backwards cut in two? */
bool plan_splits(const struct ft_plan *plan);

/* The slots of a step on one stage, and how many: slot has room for schedule_count() of them,
 * which is how many there are but under dualpipev, where it is the most. */
size_t schedule_count(const struct ft_plan *plan);

size_t schedule_slots(const struct ft_plan *plan, int64_t stage, struct ft_slot *slot);

#endif
