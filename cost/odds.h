/*
 * cost/odds.h - deals whose inputs are uncertain: intervals, odds, and what moves the answer
 *
 * Each uncertain amount (an item's price, colocation, electricity, failures ...) is a split
 * log-normal of its low, likely and high (cost/split.h), throughput one of its P10, prediction and
 * P90. Amounts move together as cost/factors.yaml says. A draw sets all of them, and the deals of
 * all sides are computed from the same draw: what they have in common cancels.
 *
 * Draws are a Latin hypercube whose orders come from the names of factors and amounts: the same question gives the same
 * answer, and so many draws of a scenario give it the same range whatever it is compared with.
 */
#ifndef COST_ODDS_H
#define COST_ODDS_H

#include "base/arena.h"
#include "cost/factors.h"
#include "cost/split.h"
#include "foretoken/cost.h"

/* What of a deal an input is. */
enum target {
	OF_CAPITAL, /* + an enum ft_capital */
	OF_RENT = OF_CAPITAL + FT_CAPITALS,
	OF_COLOCATION,
	OF_ELECTRICITY,
	OF_OVERHEAD, /* PUE - 1 */
	OF_CLOCK_EXPONENT,
	OF_MEMORY_FRAC,
	OF_WAITING_FRAC,
	OF_IDLE_W,  /* of a GPU */
	OF_LIMIT_W, /* of a GPU */
	OF_OTHERS_W,
	OF_OTHERS_TYPICAL_W,
	OF_SPARES_W,
	OF_MAINTENANCE,
	OF_FAILURES,
	OF_CHECKPOINT,
	OF_RESTART,
	OF_REPAIR,
	OF_FAILOVER,
	OF_FLAP,
	OF_UTILIZATION,
	OF_TOKENS,
};

/* What a factor has to do with an amount. */
struct loading {
	size_t factor;
	double is;
};

/* An amount over its likely value. */
struct input {
	const char *key; /* inputs of one key share the cause of their own */
	enum cause cause;
	double low, high;
	double own; /* loading of its own cause */
	size_t dimension;
	size_t n_factors;
	struct loading moved_by[FACTORS_MOST];
	struct split_table *table;
	const char *order; /* what makes the order of its draws; NULL: the key */
};

struct use {
	size_t side, input;
	enum target target;
	double likely;
};

/* The sides, and all that is uncertain about them. Draws have n_dimensions normals: the
 * factors', then inputs' own; dimension[i] is a key made of its name. */
struct odds_model {
	struct arena mem;
	size_t n;
	struct ft_deal deal[FT_SIDES_MOST];
	size_t n_inputs, n_uses, most, n_dimensions;
	uint64_t *dimension;
	struct input *input;
	struct use *use;
	const struct factors *factors;
	struct split_grid *grid;
};

struct odds_model *odds_model_of(const struct ft_side *side, size_t n,
				 struct ft_error *err)
	__attribute__((warn_unused_result));
void odds_model_free(struct odds_model *model);

/* Figures of a side, some inputs other than likely. */
struct drawn {
	double of[FT_DRAWN];
};

/* Each side's figures with all inputs at z; one whose z is NaN has its likely value. */
void odds_model_at(const struct odds_model *model, const double *z,
		   struct drawn side[FT_SIDES_MOST]);

#endif
