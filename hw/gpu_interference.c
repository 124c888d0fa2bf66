/* hw/gpu_interference.c - a GPU profile: how kernels that run at once slow each other */
#include "base/reader.h"
#include "hw/gpu.h"

/* Time factors of kernels that run at once; one that is not said is another, or 1. */
static void read_factors(struct reader *r, struct arena *mem, struct ft_gpu *gpu)
{
	const struct {
		const char *key;
		struct ft_number *is;
		const struct ft_number *else_as;
		double least;
	} f[] = {
		{ "memory_beside_collective", &gpu->memory_beside_collective, NULL, 1 },
		{ "collective_beside_compute", &gpu->collective_beside_compute, NULL,
		  0.01 },
		{ "collective_beside_memory", &gpu->collective_beside_memory,
		  &gpu->collective_beside_compute, 0.01 },
		{ "copy_beside_gemm", &gpu->copy_beside_gemm, NULL, 0.01 },
		{ "copy_beside_memory", &gpu->copy_beside_memory,
		  &gpu->copy_beside_gemm, 0.01 },
	};

	for (size_t i = 0; i < sizeof(f) / sizeof(*f); i++) {
		*f[i].is = f[i].else_as ? read_number_or(r, mem, f[i].key, DIM_NONE,
							 f[i].else_as->value) :
					  read_number(r, mem, f[i].key, DIM_NONE);
		reader_bound(r, f[i].key, f[i].is, f[i].least, 1000);
	}
	gpu->memory_beside_copy =
		read_number_or(r, mem, "memory_beside_copy", DIM_NONE, 1);
	reader_bound(r, "memory_beside_copy", &gpu->memory_beside_copy, 1, 1000);
}

void gpu_read_interference(struct reader *outer, struct arena *mem, struct ft_gpu *gpu)
{
	struct reader r = gpu_open_block(outer, mem, read_need(outer, "interference"));

	gpu->collective_units = read_number(&r, mem, "collective_units", DIM_NONE);
	gpu->collective_units_per_nic =
		read_number(&r, mem, "collective_units_per_nic", DIM_NONE);
	gpu->message_units = read_number_or(&r, mem, "message_units", DIM_NONE, 0);
	gpu->persistent_products = read_bool(&r, "persistent_products", false);
	if (gpu->compute_units > 1)
		reader_bound(&r, "collective_units", &gpu->collective_units, 0,
			     (double)gpu->compute_units / 2);
	reader_bound(&r, "collective_units_per_nic", &gpu->collective_units_per_nic, 0,
		     1000);
	if (gpu->compute_units > 1)
		reader_bound(&r, "message_units", &gpu->message_units, 0,
			     (double)gpu->compute_units / 2);
	read_factors(&r, mem, gpu);
	gpu_close_block(&r, outer);
}
