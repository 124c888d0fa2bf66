/* calibrate/probes/gpu/kernels.cu - the kernels for nvcc, and how C starts them */
#include <cuda_runtime.h>
#include "calibrate/probes/gpu/kernels.inc"
#define PROBE_STREAM cudaStream_t
#include "calibrate/probes/gpu/kernels_start.inc"
