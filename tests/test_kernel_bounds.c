/*
 * tests/test_kernel_bounds.c - what no kernel can be faster than, on any GPU of the tree and on one
 * with a slower memory: its arithmetic at the peak, its bytes at the whole bandwidth
 */
#include "tests/check.h"

#include "sim/kernel.h"

static const char *const names[] = { "h100-sxm", "h200",   "a100-80g",
				     "b200",	 "mi300x", "mi355x" };

enum { NAMES = sizeof(names) / sizeof(*names), SHAPES = 400 };

static int64_t one_of(uint64_t *seed, const int64_t *list, size_t n)
{
	return list[rnd(seed) % n];
}

#define ONE_OF(seed, ...) \
	one_of(seed, (const int64_t[]){ __VA_ARGS__ }, \
	       sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))

static double time_of(const struct ft_gpu *gpu, const struct ft_work *w)
{
	struct ft_prediction p;
	struct ft_error err;

	ok_or_say(ft_kernel_predict(gpu, w, FT_CLOCK_BURST, &p, &err), err);
	return p.time_s;
}

/* Forward: q, k, v, o; backward: these, do, dq, dk, dv. In 16 bits. */
static double attention_bytes(const struct ft_work *w)
{
	double batch = (double)w->attention.batch;
	double q = (double)(w->attention.heads * w->attention.queries);
	double k = (double)(w->attention.kv_heads * w->attention.keys);
	double qk = (double)w->attention.qk_head_dim;
	double v = (double)w->attention.v_head_dim;
	double forward = q * qk + k * qk + k * v + q * v;
	double backward = forward + q * v + q * qk + k * qk + k * v;

	switch (w->attention.pass) {
	case FT_PASS_FORWARD:
		return 2 * batch * forward;
	case FT_PASS_BACKWARD:
		return 2 * batch * backward;
	default:
		return 2 * batch * (forward + backward);
	}
}

static struct ft_work any_attention(uint64_t *seed)
{
	struct ft_work w = { .kind = FT_ATTENTION, .name = "any", .dtype = FT_BF16 };

	w.attention.batch = ONE_OF(seed, 1, 4, 64, 512);
	w.attention.kv_heads = ONE_OF(seed, 1, 8, 16);
	w.attention.heads = w.attention.kv_heads * ONE_OF(seed, 1, 4, 8);
	w.attention.queries = w.attention.keys = ONE_OF(seed, 16, 100, 128, 512, 4096);
	w.attention.qk_head_dim = ONE_OF(seed, 32, 64, 128, 192, 256);
	w.attention.v_head_dim = ONE_OF(seed, 64, 128);
	w.attention.causal = rnd(seed) % 2;
	if (w.attention.causal && rnd(seed) % 2)
		w.attention.window = ONE_OF(seed, 16, 128, 1024);
	w.attention.pass = (enum ft_pass)(rnd(seed) % FT_PASSES);
	return w;
}

static void no_attention_is_faster_than_its_bytes(void **state)
{
	static const double rates[] = { 1, 0.2 }; /* of the memory */
	uint64_t seed = 17;

	(void)state;
	for (size_t i = 0; i < NAMES; i++) {
		struct ft_error err;
		struct ft_gpu *gpu = ft_gpu_load(names[i], NULL, &err);

		ok_or_say(gpu, err);
		for (int k = 0; k < 2; k++) {
			gpu->memory_bytes_per_s.value *= rates[k];
			for (int s = 0; s < SHAPES; s++) {
				struct ft_work w = any_attention(&seed);
				double least = attention_bytes(&w) /
					       gpu->memory_bytes_per_s.value;

				if (time_of(gpu, &w) < least * (1 - 1e-9))
					fail_msg("%s: %.3g s, bytes take %.3g s",
						 names[i], time_of(gpu, &w), least);
			}
		}
		ft_gpu_free(gpu);
	}
}

static void no_kernel_is_faster_than_the_peak(void **state)
{
	uint64_t seed = 18;

	(void)state;
	for (size_t i = 0; i < NAMES; i++) {
		struct ft_error err;
		struct ft_gpu *gpu = ft_gpu_load(names[i], NULL, &err);

		ok_or_say(gpu, err);
		for (int s = 0; s < SHAPES; s++) {
			struct ft_work w = any_attention(&seed);
			double peak = gpu->peak_flop_per_s[FT_BF16].value;

			assert_true(time_of(gpu, &w) > ft_work_flop(&w) / peak);
			w = (struct ft_work){ .kind = FT_GEMM, .name = "any" };
			w.gemm.layout = (enum ft_layout)(rnd(&seed) % 3);
			w.gemm.m = ONE_OF(&seed, 1, 100, 4096, 1000000);
			w.gemm.n = ONE_OF(&seed, 1, 64, 8192, 128256);
			w.gemm.k = ONE_OF(&seed, 1, 64, 8192, 100000);
			w.gemm.groups = ONE_OF(&seed, 1, 1, 8);
			assert_true(time_of(gpu, &w) > ft_work_flop(&w) / peak);
		}
		ft_gpu_free(gpu);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_attention_is_faster_than_its_bytes),
		cmocka_unit_test(no_kernel_is_faster_than_the_peak),
	};

	return cmocka_run_group_tests_name("kernel bounds", tests, NULL, NULL);
}
