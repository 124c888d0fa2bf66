/* tests/test_beside.c - products beside collectives: what was measured, and what must hold */
#include <math.h>

#include "base/arena.h"
#include "sim/kernel.h"
#include "tests/check.h"

static struct ft_gpu *load(const char *name)
{
	struct ft_error err;
	struct ft_gpu *gpu = ft_gpu_load(name, NULL, &err);

	ok_or_say(gpu, err);
	return gpu;
}

static double beside(const struct ft_gpu *gpu, double m, double n, double k,
		     double held)
{
	struct product p = { .m = m, .n = n, .k = k, .groups = 1, .out_bytes = 2 };

	return gemm_beside(gpu, &p, held);
}

/* Two H100, all-gathers of 512 MB without a pause: measurements/probes/
 * h100-2026-11-23-channels-unseen.jsonl.gz. Products that are shorter than the collectives. */
static void measured_products_are_met(void **state)
{
	static const double channels[] = { 2, 4, 8, 16, 24 };
	static const struct {
		double m, n, k, times[5];
	} row[] = {
		{ 2048, 4096, 4096, { 1.452, 1.465, 1.889, 1.930, 1.966 } },
		{ 4096, 4096, 4096, { 1.232, 1.234, 1.443, 1.451, 1.468 } },
		{ 4096, 14336, 4096, { 1.139, 1.144, 1.149, 1.224, 1.287 } },
		{ 8192, 8192, 8192, { 1.070, 1.075, 1.040, 1.106, 1.195 } },
	};
	struct ft_gpu *gpu = load("h100-sxm");
	double sum = 0;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		for (int c = 0; c < 5; c++) {
			double t =
				beside(gpu, row[i].m, row[i].n, row[i].k, channels[c]);

			assert_true(fabs(t / row[i].times[c] - 1) < 0.09);
			sum += fabs(t / row[i].times[c] - 1) / 20;
		}
	print_message("# %.1f %% mean error of 20 products beside collectives\n",
		      100 * sum);
	assert_true(sum < 0.04);
	ft_gpu_free(gpu);
}

/* The obvious count: blocks take tiles in turn, and those that found no unit come last. */
static double dealt(double tiles, int units, int held, bool persistent)
{
	int left = units - held, taken = 0, waves = 0;

	if (tiles <= left)
		return 1;
	for (; taken < tiles; taken += left)
		waves++;
	if (persistent && held)
		waves++;
	return fmin(2, waves / ceil(tiles / units));
}

static void any_product_is_dealt_out(void **state)
{
	static const char *const names[] = { "h100-sxm", "a100-80g", "mi300x", "b200" };

	(void)state;
	for (size_t g = 0; g < 4; g++) {
		struct ft_gpu *gpu = load(names[g]);
		int units = (int)gpu->compute_units;

		for (int m = 1; m <= 64; m = m * 2 + (m & 1)) {
			double was = 1;

			for (int held = 0; held <= units / 2; held += 3) {
				double t =
					beside(gpu, (double)gpu->gemm_model.tile_m * m,
					       (double)gpu->gemm_model.tile_n * 37,
					       4096, held);

				near_frac(t,
					  dealt(37.0 * m, units, held,
						gpu->persistent_products),
					  1e-12);
				assert_true(t >= was && t <= 2);
				was = t;
			}
		}
		ft_gpu_free(gpu);
	}
}

/* Grouped products of torch._grouped_mm on two H200, with all-reduces of DDP beside them and none: measurements/traces/
 * h200-two-mixtral-4L-s2048-b1-ddp-trainer, eight experts of 512 tokens, microseconds of gradients of inputs. */
static void grouped_products_are_met(void **state)
{
	static const struct {
		double n, k, alone, beside[3];
	} row[] = {
		{ 4096, 14336, 654.2, { 1256.1, 1270.7, 1284.4 } },
		{ 28672, 4096, 1255.8, { 2482.4, 2474.1, 2482.4 } },
	};
	struct ft_gpu *gpu = load("h200");

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct product p = { .m = 4096,
				     .n = row[i].n,
				     .k = row[i].k,
				     .groups = 8,
				     .static_tiles = true,
				     .out_bytes = 2 };
		double t = gemm_beside(gpu, &p, gpu->collective_units.value);

		for (int c = 0; c < 3; c++)
			near_frac(row[i].beside[c] / row[i].alone, t, 0.05);
		near_frac(gemm_beside(gpu, &p, 0), 1, 1e-12);
	}
	ft_gpu_free(gpu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measured_products_are_met),
		cmocka_unit_test(any_product_is_dealt_out),
		cmocka_unit_test(grouped_products_are_met),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
