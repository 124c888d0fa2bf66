/* tests/hip_on_cpu/numbers.h - formats, by KERNEL_... of calibrate/probes/gpu/kernels.h */
#ifndef HIP_ON_CPU_NUMBERS_H
#define HIP_ON_CPU_NUMBERS_H

#include <stdint.h>

float number_load(const void *p, uint64_t i, int dtype);
void number_store(void *p, uint64_t i, int dtype, float f);

#endif
