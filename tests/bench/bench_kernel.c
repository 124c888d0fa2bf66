/*
 * tests/bench/bench_kernel.c - what one prediction costs
 *
 * 20,000 products of shapes that no table holds, on the H200, and as many
 * attention kernels; then the products again from memory; one line.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/arena.h"
#include "base/node.h"
#include "foretoken/hw_rows.h"
#include "foretoken/sim.h"

enum { ROUNDS = 20000 };

static struct ft_work product(int64_t i)
{
	struct ft_work w = { .kind = FT_GEMM, .name = "bench" };

	w.gemm.m = 300 + 37 * (i % 211);
	w.gemm.n = 1100 + 61 * (i % 173);
	w.gemm.k = 1300 + 53 * (i % 157);
	return w;
}

static struct ft_work attention(int64_t i)
{
	struct ft_work w = { .kind = FT_ATTENTION, .name = "bench" };

	w.attention.batch = 1 + i % 7;
	w.attention.heads = 32;
	w.attention.kv_heads = 8;
	w.attention.queries = w.attention.keys = 1024 + 96 * (i % 83);
	w.attention.qk_head_dim = w.attention.v_head_dim = 128;
	w.attention.causal = true;
	w.attention.impl = "trtllm";
	return w;
}

/* memo NULL: nothing is remembered. */
static double time_of(const struct ft_gpu *gpu, struct ft_memo *memo,
		      struct ft_work (*work)(int64_t), double *sum)
{
	struct ft_prediction p;
	struct ft_error err;
	double start = clock_now_s();

	for (int64_t i = 0; i < ROUNDS; i++) {
		struct ft_work w = work(i);

		if (!ft_kernel_recall(memo, gpu, &w, FT_CLOCK_SUSTAINED, &p, &err))
			return -1;
		*sum += p.time_s;
	}
	return (clock_now_s() - start) / ROUNDS;
}

static bool read_rows(const struct ft_gpu *gpu, struct ft_error *err)
{
	for (int d = 0; d < FT_DTYPES; d++)
		if (!ft_gemm_rows(&gpu->gemm[d], err))
			return false;
	for (size_t i = 0; i < gpu->n_attention; i++)
		if (!ft_attention_rows(&gpu->attention[i], err))
			return false;
	return true;
}

int main(void)
{
	double start, load, rows, sum = 0, g, a, again;
	struct ft_memo *memo;
	struct ft_error err;
	struct node what = { .kind = NODE_SCALAR, .text = "h200" };
	struct ft_gpu *gpu;

	arena_keep_pages(); /* as the program does */
	start = clock_now_s();
	gpu = ft_gpu_load_value(&what, FT_GPU_ALL_ROWS | FT_GPU_ROWS_LATER, &err);
	load = clock_now_s() - start;
	start = clock_now_s();
	if (gpu && !read_rows(gpu, &err)) {
		ft_gpu_free(gpu);
		gpu = NULL;
	}
	rows = clock_now_s() - start;
	if (!gpu) {
		fprintf(stderr, "%s:%d: %s\n", err.file, err.line, err.text);
		return 1;
	}
	memo = ft_memo_new();
	g = time_of(gpu, NULL, product, &sum);
	a = time_of(gpu, NULL, attention, &sum);
	time_of(gpu, memo, product, &sum);
	again = time_of(gpu, memo, product, &sum);
	printf("kernel prediction: gemm %.1f us, attention %.1f us, "
	       "remembered %.2f us; profile loaded in %.2f ms, all its rows read in %.1f (sum %.3f s)\n",
	       g * 1e6, a * 1e6, again * 1e6, load * 1e3, rows * 1e3, sum);
	ft_memo_free(memo);
	ft_gpu_free(gpu);
	return 0;
}
