/*
 * sim/memory_bound.c - kernels that only move bytes
 *
 *   t = max(floor, (start_s^p + max((B + half_bytes) / bytes_per_s, N step_s)^p)^(1/p))
 *
 * B is read plus written, N the steps that a block takes one after the other, as along a
 * sequence whose state is carried on: with few blocks they take longer than the bytes. With p = 1 that is a bandwidth that saturates as
 * B / (B + half); above it the start lies partly under the transfer. Kernels that
 * take rows whole have start and bandwidth by row length, straight in logarithms
 * between the lengths that were measured, level beyond. A kernel that was measured against
 * another's curve has that one's, and a byte of it counts as so many of the other's.
 * A kernel without a curve has that of another with half as much more spread (assumed).
 * Source: the profile's curves; limit: strided access and tables in the cache
 * are as the curve's kernel had them.
 */
#include <math.h>
#include <string.h>

#include "sim/kernel.h"

/* Start and bandwidth for rows of this length; those of the curve if unknown. */
static void for_rows(const struct ft_memory_curve *c, double row_bytes, double *start_s,
		     double *bytes_per_s, double *sharpness)
{
	const struct ft_memory_row *low, *high;
	double w;

	*start_s = c->start_s.value;
	*bytes_per_s = c->bytes_per_s.value;
	*sharpness = c->sharpness.value;
	if (!c->n_rows || !(row_bytes > 0))
		return;
	*sharpness = c->row_sharpness.value;
	low = high = c->row;
	for (size_t i = 1; i < c->n_rows && high->row_bytes < row_bytes; i++) {
		low = high;
		high = &c->row[i];
	}
	if (high->row_bytes < row_bytes)
		low = high;
	w = low == high ? 0 :
			  log(row_bytes / low->row_bytes) /
				  log(high->row_bytes / low->row_bytes);
	*start_s = pow(low->start_s.value, 1 - w) * pow(high->start_s.value, w);
	*bytes_per_s =
		pow(low->bytes_per_s.value, 1 - w) * pow(high->bytes_per_s.value, w);
}

void memory_bound_predict(const struct ft_gpu *gpu, const struct ft_work *work,
			  struct ft_prediction *out)
{
	const struct ft_memory_curve *c =
		ft_gpu_memory_curve(gpu, work->memory.kernel, work->memory.warm);
	bool own = work->memory.kernel && !strcmp(work->memory.kernel, c->kernel);
	double spread = gpu->memory_spread.value, p;
	double start, rate, moving, low, high;

	for_rows(c, work->memory.row_bytes, &start, &rate, &p);
	moving = ((c->as ? c->as_bytes.value : 1) * work->memory.bytes +
		  c->half_bytes.value) /
		 rate;
	moving = fmax(moving, (double)work->memory.steps * c->step_s.value);
	low = fmin(start, moving);
	high = fmax(start, moving);
	if (p > 1)
		start = high * pow(1 + pow(low / high, p), 1 / p);
	else
		start += moving;
	out->time_s = fmax(gpu->kernel_floor_s.value, start);
	out->spread_frac = own ? spread : 1.5 * spread;
	out->extrapolated = false;
}
