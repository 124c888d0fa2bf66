/*
 * traces/schedule.h - what else a schedule says of backwards (ft_plan_slots: their order)
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

#endif
