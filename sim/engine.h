/*
 * sim/engine.h - one step, event by event
 *
 * Per class of ranks: a host that launches calls, and streams that run ops in
 * launch order. An op is known by (stream, number): it is over when its stream
 * has completed more ops than its number, so a wait is two small integers and
 * nothing is allocated per op. A running op has work left and a rate; the rate
 * changes when something starts or ends beside it in the same class:
 *   compute beside a collective, a collective beside compute, a low-priority copy
 *   beside a product: the profile's factors;
 *   collectives beside each other: max-min shares of the rank's scale-up port and
 *   of its NIC.
 * A host that is QUEUE_DEPTH kernels ahead of its compute stream waits.
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include <stdio.h>

#include "foretoken/sim.h"

/* What the engine knows of one work on this machine. */
struct cost {
	ft_ps duration;            /* alone */
	double port_frac, nic_frac; /* of the rank's scale-up port, of its NIC */
	float beside;              /* factor beside a collective (or compute) */
	bool optimizer;
};

struct engine_input {
	const struct ft_graph *graph;
	const struct cost *cost;     /* [n_works] */
	const ft_ps *host;           /* [n ops of all segments] launch offsets */
	const size_t *host_begin;    /* [n_segments] where a segment's begin */
	const ft_ps *host_total;     /* [n_segments] host time of one call */
	bool host_free;              /* launches cost nothing: the host is ahead */
	double copy_beside_gemm;
	FILE *timeline;              /* may be NULL */
};

struct engine_output {
	struct ft_class_result *class; /* [n_classes], times filled in */
	ft_ps *work_time;              /* [n_works] summed over classes */
	uint64_t *work_count;          /* [n_works] */
	ft_ps end, host_end;
	uint64_t events;
};

struct arena;

/* false when the graph can never finish: an op waits for one never launched. */
bool engine_run(struct arena *mem, const struct engine_input *in,
		struct engine_output *out, struct ft_error *err)
	__attribute__((warn_unused_result));

#endif
