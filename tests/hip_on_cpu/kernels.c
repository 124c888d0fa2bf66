/* tests/hip_on_cpu/kernels.c - the probes' kernels as plain loops, for testing what calls
 * them on a machine without a GPU */
#include <math.h>
#include <string.h>

#include "tests/hip_on_cpu/numbers.h"
#include "calibrate/probes/gpu/kernels.h"

float number_load(const void *p, uint64_t i, int dtype)
{
	uint32_t bits;
	float f;

	if (dtype == KERNEL_FP32)
		return ((const float *)p)[i];
	if (dtype != KERNEL_BF16)
		return NAN; /* not needed by any test */
	bits = (uint32_t)((const uint16_t *)p)[i] << 16;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

void number_store(void *p, uint64_t i, int dtype, float f)
{
	uint32_t bits;

	if (dtype == KERNEL_FP32) {
		((float *)p)[i] = f;
		return;
	}
	memcpy(&bits, &f, sizeof(bits));
	if (f == f)
		bits += 0x7fff + (bits >> 16 & 1);
	((uint16_t *)p)[i] = (uint16_t)(bits >> 16);
}

void kernel_empty(void *stream)
{
	(void)stream;
}

void kernel_fill(void *p, uint64_t n, int dtype, uint64_t seed, void *stream)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;

	(void)stream;
	for (uint64_t i = 0; i < n; i++) {
		double sum = 0;

		for (int j = 0; j < 4; j++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			sum += (double)(x >> 40) / 16777216 - 0.5;
		}
		number_store(p, i, dtype, (float)(sum * 1.7320508));
	}
}

void kernel_block(const void *p, uint64_t at, uint64_t rows, uint64_t width,
		  uint64_t stride, int dtype, float *out, void *stream)
{
	(void)stream;
	for (uint64_t i = 0; i < rows; i++)
		for (uint64_t j = 0; j < width; j++)
			out[i * width + j] = number_load(p, at + i * stride + j, dtype);
}

void kernel_gather(const void *p, uint64_t at, uint64_t stride, uint64_t n, int dtype,
		   float *out, void *stream)
{
	kernel_block(p, at, n, 1, stride, dtype, out, stream);
}

void kernel_holes(const void *p, uint64_t n, int dtype, float *out, void *stream)
{
	(void)stream;
	memset(out, 0, KERNEL_HOLES * sizeof(*out));
	for (uint64_t i = 0; i < n; i++)
		out[i % KERNEL_HOLES] += isnan(number_load(p, i, dtype)) ? 1 : 0;
}

void kernel_attention_softmax(void *scores, int64_t rows, int64_t n, int causal,
			      void *stream)
{
	(void)stream;
	for (int64_t r = 0; r < rows; r++) {
		uint16_t *row = (uint16_t *)scores + r * n;
		int64_t seen = causal ? r % n + 1 : n;
		double sum = 0;

		for (int64_t i = 0; i < seen; i++)
			sum += exp((double)number_load(row, (uint64_t)i, KERNEL_BF16));
		for (int64_t i = 0; i < n; i++) {
			double e =
				exp((double)number_load(row, (uint64_t)i, KERNEL_BF16));

			number_store(row, (uint64_t)i, KERNEL_BF16,
				     i < seen ? (float)(e / sum) : 0);
		}
	}
}

void kernel_attention_gradient(const void *prob, void *d, int64_t rows, int64_t n,
			       void *stream)
{
	(void)stream;
	for (int64_t r = 0; r < rows; r++) {
		const uint16_t *p = (const uint16_t *)prob + r * n;
		uint16_t *row = (uint16_t *)d + r * n;
		double sum = 0;

		for (int64_t i = 0; i < n; i++)
			sum += (double)number_load(p, (uint64_t)i, KERNEL_BF16) *
			       (double)number_load(row, (uint64_t)i, KERNEL_BF16);
		for (int64_t i = 0; i < n; i++)
			number_store(
				row, (uint64_t)i, KERNEL_BF16,
				number_load(p, (uint64_t)i, KERNEL_BF16) *
					(number_load(row, (uint64_t)i, KERNEL_BF16) -
					 (float)sum));
	}
}

int kernel_memory(const char *name, void *x, void *y, void *z, int64_t m, int64_t n,
		  void *stream)
{
	(void)name, (void)x, (void)y, (void)z, (void)m, (void)n, (void)stream;
	return -1;
}
