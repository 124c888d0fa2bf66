/* calibrate/probes/plan.c - the planned cells beside the products, and their order */
#include "calibrate/probes/plan.h"

#include <stdlib.h>
#include <string.h>

void probe_plan_put(struct probe_plan *plan, const struct probe_cell *cell)
{
	struct probe_cell c = *cell;

	if (plan->n == plan->cap) {
		size_t cap = plan->cap ? 2 * plan->cap : 256;
		struct probe_cell *grown = realloc(plan->cell, cap * sizeof(*grown));

		if (!grown) {
			plan->failed = true;
			return;
		}
		plan->cell = grown;
		plan->cap = cap;
	}
	c.kernel = c.kernel ? c.kernel : "";
	c.dtype = c.dtype ? c.dtype : "";
	c.layout = c.layout ? c.layout : "";
	c.impl = c.impl ? c.impl : "";
	c.pass = c.pass ? c.pass : "";
	plan->cell[plan->n++] = c;
}

/* Shapes of memory-bound kernels: m rows of n; bytes is then m n elements. */
static void plan_memory(struct probe_plan *plan, enum probe_effort effort)
{
	static const char *const kernels[] = {
		"copy", "add",	   "rmsnorm",	    "layernorm", "swiglu", "gelu",
		"rope", "softmax", "cross_entropy", "adamw",	 "cast",   "concat",
	};
	static const int64_t widths[] = { 4096, 1600, 8192, 14336 };
	int64_t least = effort == PROBE_QUICK ? 1 << 10 : 1 << 16, step = 0;
	int64_t most = effort == PROBE_QUICK ? 1 << 20 : INT64_C(1) << 29;

	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
		for (int64_t n = least; n <= most; n *= 2) {
			struct probe_cell c = { .kind = PROBE_MEMORY,
						.kernel = kernels[i] };

			c.dtype = i == 9 || i == 10 ? "fp32" : "bf16";
			if (effort == PROBE_QUICK)
				c.dtype = "fp32";
			c.n = effort == PROBE_QUICK ? 256 :
			      i == 8		    ? 32000 :
						      widths[step++ % 4];
			c.m = n / c.n > 0 ? n / c.n : 1;
			probe_plan_put(plan, &c);
			c.warm = true;
			if (c.m * c.n <= 1 << 24)
				probe_plan_put(plan, &c);
		}
}

static void plan_launch(struct probe_plan *plan)
{
	static const char *const launches[] = { "enqueue", "gap", "graph",
						"event_pair" };

	for (int i = 0; i < 4; i++)
		probe_plan_put(plan, &(struct probe_cell){ .kind = PROBE_LAUNCH,
							   .kernel = launches[i] });
}

/* Between host and device. */
static void plan_copies(struct probe_plan *plan, enum probe_effort effort)
{
	int64_t most = effort == PROBE_QUICK ? 1 << 20 : 1 << 28;

	for (int64_t b = 1 << 12; b <= most; b *= 16)
		for (int i = 0; i < 4; i++) {
			static const char *const ways[] = {
				"h2d",
				"d2h",
				"h2d_pageable",
				"d2h_pageable",
			};

			probe_plan_put(plan,
				       &(struct probe_cell){ .kind = PROBE_TRANSFER,
							     .kernel = ways[i],
							     .bytes = b });
		}
}

static void plan_pairs(struct probe_plan *plan, int devices)
{
	for (int a = 0; a < devices; a++)
		for (int b = 0; b < devices; b++)
			for (int both = 0; both < 2; both++) {
				struct probe_cell c = {
					.kind = PROBE_TRANSFER,
					.from = a,
					.to = b,
					.bytes = 1 << 28,
					.kernel = both ? "p2p_both" : "p2p",
				};

				if (a != b && (!both || a < b))
					probe_plan_put(plan, &c);
			}
}

static void plan_collectives(struct probe_plan *plan, enum probe_effort effort,
			     int devices)
{
	static const char *const ops[] = { "all_reduce", "all_gather", "reduce_scatter",
					   "all_to_all", "broadcast",  "sendrecv" };
	int64_t most = effort == PROBE_QUICK ? 1 << 22 : 1 << 30;

	for (int n = 2; n <= devices; n++) {
		bool whole = !(n & (n - 1)); /* 2, 4, 8: every size */

		for (int i = 0; i < 6; i++)
			for (int64_t b = 1024; b <= most; b *= whole ? 2 : 16)
				probe_plan_put(plan, &(struct probe_cell){
							     .kind = PROBE_COLLECTIVE,
							     .kernel = ops[i],
							     .gpus = n,
							     .bytes = b });
	}
}

static void plan_beside(struct probe_plan *plan, enum probe_effort effort, int devices)
{
	static const char *const ops[] = { "all_reduce", "all_gather", "reduce_scatter",
					   "all_to_all" };
	bool quick = effort == PROBE_QUICK;

	for (int i = 0; i < (quick ? 1 : 4); i++)
		for (int64_t b = quick ? 1 << 20 : 1 << 24; b <= 1 << 28; b *= 16) {
			struct probe_cell c = {
				.kind = PROBE_BESIDE,
				.kernel = ops[i],
				.gpus = devices,
				.bytes = b,
				.dtype = quick ? "fp32" : "bf16",
				.m = quick ? 256 : 8192,
				.n = quick ? 256 : 8192,
				.k = quick ? 256 : 4096,
			};

			probe_plan_put(plan, &c);
			if (quick)
				break;
		}
}

static void shuffle(struct probe_plan *plan, uint64_t seed)
{
	struct probe_random r = { seed };

	for (size_t i = plan->n; i > 1; i--) {
		size_t j = (size_t)(probe_uniform(&r) * (double)i);
		struct probe_cell c = plan->cell[j];

		plan->cell[j] = plan->cell[i - 1];
		plan->cell[i - 1] = c;
	}
}

static int by_id(const void *a, const void *b)
{
	char x[PROBE_CELL_ID], y[PROBE_CELL_ID];

	probe_cell_id(a, x);
	probe_cell_id(b, y);
	return strcmp(x, y);
}

/* Different models share layers: each cell once. */
static void drop_twins(struct probe_plan *plan)
{
	size_t kept = 0;

	if (plan->n)
		qsort(plan->cell, plan->n, sizeof(*plan->cell), by_id);
	for (size_t i = 0; i < plan->n; i++)
		if (!kept || by_id(&plan->cell[kept - 1], &plan->cell[i]))
			plan->cell[kept++] = plan->cell[i];
	plan->n = kept;
}

bool probe_plan_make(struct probe_plan *plan, enum probe_effort effort, unsigned kinds,
		     const struct probe_device *device, uint64_t seed)
{
	int devices = device->devices;

	*plan = (struct probe_plan){ 0 };
	if (kinds & 1u << PROBE_GEMM)
		probe_plan_gemm(plan, effort);
	if (kinds & 1u << PROBE_ATTENTION)
		probe_plan_attention(plan, effort, device);
	if (kinds & 1u << PROBE_MEMORY)
		plan_memory(plan, effort);
	if (kinds & 1u << PROBE_LAUNCH)
		plan_launch(plan);
	if (kinds & 1u << PROBE_TRANSFER) {
		plan_copies(plan, effort);
		plan_pairs(plan, devices);
	}
	if (kinds & 1u << PROBE_COLLECTIVE)
		plan_collectives(plan, effort, devices);
	if (kinds & 1u << PROBE_BESIDE && devices > 1)
		plan_beside(plan, effort, devices);
	drop_twins(plan);
	shuffle(plan, seed);
	return !plan->failed;
}

void probe_plan_free(struct probe_plan *plan)
{
	free(plan->cell);
	*plan = (struct probe_plan){ 0 };
}
