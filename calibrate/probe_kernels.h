/* calibrate/probe_kernels.h - the kernels as C calls them; stream is void * so that
 * the header needs no vendor's. dtype numbers: probe_kernels.inc */
#ifndef CALIBRATE_PROBE_KERNELS_H
#define CALIBRATE_PROBE_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KERNEL_FP32, KERNEL_BF16, KERNEL_FP16, KERNEL_FP8, KERNEL_FP8_FNUZ };

void kernel_empty(void *stream);
void kernel_fill(void *p, uint64_t n, int dtype, uint64_t seed, void *stream);
void kernel_gather(const void *p, uint64_t at, uint64_t stride, uint64_t n,
		   int dtype, float *out, void *stream);

/* One memory-bound kernel on m rows of n: x, y are read, z is written. adamw
 * works on four arrays side by side in x. -1: no kernel of that name. */
int kernel_memory(const char *name, void *x, void *y, void *z, int64_t m,
		  int64_t n, void *stream);

#ifdef __cplusplus
}
#endif
#endif
