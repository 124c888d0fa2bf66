/* calibrate/probes/gpu/kernels.h - the kernels as C calls them; stream is void * so that
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
void kernel_gather(const void *p, uint64_t at, uint64_t stride, uint64_t n, int dtype,
		   float *out, void *stream);

/* rows of `width` numbers, `stride` apart */
void kernel_block(const void *p, uint64_t at, uint64_t rows, uint64_t width,
		  uint64_t stride, int dtype, float *out, void *stream);

/* How many of n numbers are no numbers (poison): KERNEL_HOLES counts to add up. */
enum { KERNEL_HOLES = 1024 };
void kernel_holes(const void *p, uint64_t n, int dtype, float *out, void *stream);

/* rows of n bf16 scores, n even. Softmax in place, under a mask row r is query
 * r % n; dS = P (dP - rowsum(P dP)) in the place of d = dP. */
void kernel_attention_softmax(void *scores, int64_t rows, int64_t n, int causal,
			      void *stream);
void kernel_attention_gradient(const void *prob, void *d, int64_t rows, int64_t n,
			       void *stream);

/* One memory-bound kernel on m rows of n: x, y are read, z is written. adamw
 * works on four arrays side by side in x. -1: no kernel of that name. */
int kernel_memory(const char *name, void *x, void *y, void *z, int64_t m, int64_t n,
		  void *stream);

#ifdef __cplusplus
}
#endif
#endif
