/* calibrate/probes/plan.h - the planned cells: the same list on every machine */
#ifndef CALIBRATE_PROBE_PLAN_H
#define CALIBRATE_PROBE_PLAN_H

#include "calibrate/probes/backend.h"

/* How much to probe: QUICK ends in seconds on a CPU, FULL in about ten minutes
 * on a data-centre GPU. */
enum probe_effort { PROBE_QUICK, PROBE_FULL };

struct probe_plan {
	struct probe_cell *cell;
	size_t n, cap;
	bool failed; /* out of memory */
};

/* kinds: bits 1 << enum probe_kind. Of the device counts how many there are and
 * which fused attention. Shuffled by seed, so that drift of the machine does not
 * look like an effect of size. */
bool probe_plan_make(struct probe_plan *plan, enum probe_effort effort, unsigned kinds,
		     const struct probe_device *device, uint64_t seed);
void probe_plan_free(struct probe_plan *plan);

/* calibrate/probes/plan_gemm.c */
void probe_plan_put(struct probe_plan *plan, const struct probe_cell *cell);
void probe_plan_gemm(struct probe_plan *plan, enum probe_effort effort);

/* calibrate/probes/plan_attention.c */
void probe_plan_attention(struct probe_plan *plan, enum probe_effort effort,
			  const struct probe_device *device);

#endif
