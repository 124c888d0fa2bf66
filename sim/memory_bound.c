/*
 * sim/memory_bound.c - kernels that only move bytes
 *
 *   t = max(floor, start_s + (B + half_bytes) / bytes_per_s)
 *
 * B is read plus written. That is a bandwidth that saturates as B / (B + half).
 * Source: the profile's curves; limit: strided access and tables in the cache
 * are as the curve's kernel had them.
 */
#include <math.h>
#include <string.h>

#include "sim/kernel.h"

void memory_bound_predict(const struct ft_gpu *gpu, const struct ft_work *work,
			  struct ft_prediction *out)
{
	const struct ft_memory_curve *c = ft_gpu_memory_curve(
		gpu, work->memory.kernel, work->memory.warm);
	bool own = work->memory.kernel &&
		   !strcmp(work->memory.kernel, c->kernel);
	double spread = gpu->memory_spread.value;

	out->time_s = fmax(gpu->kernel_floor_s.value,
			   c->start_s.value +
				   (work->memory.bytes + c->half_bytes.value) /
					   c->bytes_per_s.value);
	out->spread_frac = own ? spread : 1.5 * spread;
	out->extrapolated = false;
}
