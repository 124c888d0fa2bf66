/* calibrate/probes/gpu/kernels.hip - the kernels for hipcc, and how C starts them; with
 * -DPROBE_BARE_AMD a bare clang makes code objects of the kernels alone */
#ifndef PROBE_BARE_AMD
#include <hip/hip_runtime.h>
#endif
#include "calibrate/probes/gpu/kernels.inc"
#ifndef PROBE_BARE_AMD
#define PROBE_STREAM hipStream_t
#include "calibrate/probes/gpu/kernels_start.inc"
#endif
