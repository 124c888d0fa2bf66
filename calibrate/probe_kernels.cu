/* calibrate/probe_kernels.cu - the kernels for nvcc, and how C starts them */
#include <cuda_runtime.h>
#include "probe_kernels.inc"
#define PROBE_STREAM cudaStream_t
#include "probe_kernels_start.inc"
