/*
 * foretoken/study_decide.h - answers compared by their dollars, and fleets for what is asked
 */
#ifndef FORETOKEN_STUDY_DECIDE_H
#define FORETOKEN_STUDY_DECIDE_H

#include "foretoken/study.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whose dollars are fewer, with which odds, why, and what would change it. */
struct ft_verdict {
	struct ft_odds odds;
	size_t n_fit; /* whose plans fit in memory: the others are never the cheapest */
	size_t best,
		second; /* the most often cheapest, and the next of those that fit, if any does */
	/* of draws in which the best is the cheapest, with those that it shares with others
	 * of the same dollars in every draw: so many, if there are any of other dollars */
	double probability;
	size_t n_twins;
	bool tie; /* the probability is less than FT_ODDS_DECIDED */
	/* [i]: of scenario i's dollars against the first's */
	double part_usd[FT_SIDES_MOST][FT_COST_PARTS];
	/* at likely values, where ranges are skewed, `second` is cheaper already: nothing makes it so */
	bool likely_otherwise;
	/* what would make `second` as cheap as `best`, at likely values */
	size_t n_crossovers;
	struct ft_crossover crossover[FT_CROSSOVERS_MOST];
};

/* n from 2 to FT_SIDES_MOST. */
bool ft_study_verdict(const struct ft_scenario *const *scenario,
		      const struct ft_outcome *outcome, size_t n, size_t draws,
		      struct ft_verdict *verdict, struct ft_error *err)
	__attribute__((warn_unused_result));

/* "B is cheaper with probability 0.58: no clear winner." label: of each scenario. */
enum { FT_SENTENCE = 512 };
const char *ft_verdict_sentence(const struct ft_verdict *verdict,
				const char *const *label, char text[FT_SENTENCE]);

/* ---- fleets, and the planner's questions -------------------------------------- */

/* The sizes that a scenario's plan can have, its own among them: replicas that divide its
 * batch, whole nodes. Rising; the batch stays what it is. FT_FLEETS is more than a batch below
 * 17 million sequences has divisors; of a larger one the smallest sizes. */
enum { FT_FLEETS = 512 };
size_t ft_study_fleets(const struct ft_scenario *scenario, int64_t gpus[FT_FLEETS]);

/* The scenario on another number of GPUs, its batch times batch_times (1: as it is). Its
 * nodes live on the shelf. NULL on error. */
struct ft_scenario *ft_scenario_resized(const struct ft_scenario *scenario,
					int64_t gpus, double batch_times,
					struct ft_error *err)
	__attribute__((warn_unused_result));

/* What the scenario's `run` asks, into outcome->asked; its n is 0 where it asks nothing. */
bool ft_study_run(const struct ft_scenario *scenario, struct ft_outcome *outcome,
		  struct ft_error *err) __attribute__((warn_unused_result));

/* Clusters that are compared alike in what? */
enum ft_basis {
	FT_EQUAL_GPUS, /* as they are */
	FT_EQUAL_MONEY,
	FT_EQUAL_MEGAWATTS,
	FT_EQUAL_TIME,
	FT_BASES
};

const char *ft_basis_name(enum ft_basis basis); /* "gpus" ... */

/* What a cluster is measured by: GPUs, USD an hour, W of the facility at full load, or kept
 * tokens/s. */
double ft_study_measure(const struct ft_scenario *scenario,
			const struct ft_outcome *outcome, enum ft_basis basis);

/* The size that fits and is worth the same as the first: nearest to its dollars an hour or its
 * megawatts, by ratio; the smallest of at least its kept tokens/s. 0 with *err when there is none. */
int64_t ft_study_fleet_like(const struct ft_scenario *first,
			    const struct ft_outcome *of_first,
			    const struct ft_scenario *scenario, enum ft_basis basis,
			    struct ft_error *err);

/* How scenarios are compared: what makes them alike, and draws of the odds. */
struct ft_compared {
	enum ft_basis basis;
	size_t draws;
};

/* Scenarios with their answers and what follows for the dollars; the ranges of the dollars
 * are of the same draws as the odds. Those after the first are made alike it in how->basis:
 * s[i] is then freed, and its resized self put there. On error no outcome is held. */
bool ft_study_compare(const struct ft_scenario **s, struct ft_outcome *outcome,
		      size_t n, const struct ft_compared *how,
		      struct ft_verdict *verdict, struct ft_error *err)
	__attribute__((warn_unused_result));

#ifdef __cplusplus
}
#endif
#endif
