/* calibrate/probes/cpu/cpu.h - what the CPU backend runs: plain loops, threads that copy */
#ifndef CALIBRATE_PROBE_CPU_H
#define CALIBRATE_PROBE_CPU_H

#include <stdbool.h>
#include <stddef.h>

void probe_cpu_memory(const char *kernel, float *x, float *y, float *z, size_t m,
		      size_t n);

/* q, k, v one behind the other in x; scores in y, at least sequence long */
void probe_cpu_attention(const float *x, float *y, float *z, size_t heads,
			 size_t sequence, size_t head_dim, bool causal);

/* n threads, each moving what a ring would make its rank move */
void probe_cpu_collective(const char *op, const float *from, float *to, size_t bytes,
			  int n);

#endif
