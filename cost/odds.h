/*
 * cost/odds.h - deals whose inputs are uncertain: intervals, odds, and what moves the answer
 *
 * Each uncertain amount (an item's price, colocation, electricity, failures ...) is a split
 * log-normal of its low, likely and high (cost/split.h), throughput one of its P10, prediction and
 * P90. Amounts move together as cost/factors.yaml says. A draw sets all of them, and the deals of
 * all sides are computed from the same draw: what they have in common cancels.
 *
 * Draws are quasi-random (Sobol) in the first 40 dimensions, widest inputs first, and
 * pseudo-random of a fixed seed beyond: the same question gives the same answer.
 */
#ifndef COST_ODDS_H
#define COST_ODDS_H

#include "foretoken/cost.h"

/* The sides, and all that is uncertain about them. */
struct odds_model;

struct odds_model *odds_model_of(const struct ft_side *side, size_t n,
				 struct ft_error *err)
	__attribute__((warn_unused_result));
void odds_model_free(struct odds_model *model);

size_t odds_model_inputs(const struct odds_model *model);

/* Dollars per million tokens, and tokens per second that are kept, of each side, all inputs at
 * z; an input whose z is NaN has its likely value. */
void odds_model_at(const struct odds_model *model, const double *z, double *usd,
		   double *kept);

#endif
