/*
 * cost/capital.h - what capital each class of parts is
 */
#ifndef COST_CAPITAL_H
#define COST_CAPITAL_H

#include "foretoken/cost.h"

/* Spares are servers; all that is neither server nor back end is the rest. */
enum ft_capital cost_capital_of(enum ft_part_class part_class);

#endif
