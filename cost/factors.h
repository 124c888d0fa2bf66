/*
 * cost/factors.h - what uncertain amounts have in common
 *
 * The logarithm of an amount is a standard normal z, stretched: z = sum of loading * factor + own
 * cause * sqrt(1 - sum of loadings squared). cost/factors.yaml holds the loadings.
 */
#ifndef COST_FACTORS_H
#define COST_FACTORS_H

#include "foretoken/base.h"

struct arena;

enum { FACTORS_MOST = 12 };

/* What a cause moves: one row for each key of `loadings`. */
enum cause {
	CAUSE_SERVERS_NVIDIA,
	CAUSE_SERVERS_AMD,
	CAUSE_NETWORK_NVIDIA,
	CAUSE_NETWORK,
	CAUSE_OPTICS,
	CAUSE_STORAGE,
	CAUSE_MANAGEMENT,
	CAUSE_RENT_NVIDIA,
	CAUSE_RENT_AMD,
	CAUSE_COLOCATION,
	CAUSE_ELECTRICITY,
	CAUSE_PUE,
	CAUSE_WATTS,
	CAUSE_MAINTENANCE,
	CAUSE_FAILURES,
	CAUSE_CHECKPOINT,
	CAUSE_RESTART,
	CAUSE_RECOVERY,
	CAUSE_UTILIZATION,
	CAUSE_THROUGHPUT,
	CAUSES
};

struct factors {
	size_t n;
	const char *name[FACTORS_MOST];
	double loading[CAUSES][FACTORS_MOST];
	double idle_low, idle_high; /* P10, P90 of unused hours, against those given */
};

/* Read from the tree's file, into mem. NULL on error. */
const struct factors *factors_load(struct arena *mem, struct ft_error *err)
	__attribute__((warn_unused_result));

#endif
