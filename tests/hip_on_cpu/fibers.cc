/*
 * tests/hip_on_cpu/fibers.cc - the probes' own kernels (calibrate/probes/gpu/kernels.inc) on the
 * CPU: a block's threads are fibers that take turns at each barrier. In the place of
 * kernels.c, for small shapes
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include <functional>
#include <vector>

#include "calibrate/probes/gpu/kernels.h"

struct dim {
	unsigned x;
};
static dim threadIdx, blockIdx;
static ucontext_t scheduler, *running;
static const std::function<void()> *body;
static bool ended;

static void take_turns()
{
	swapcontext(running, &scheduler);
}

#define __global__
#define __device__
#define __shared__ static
#define __syncthreads() take_turns()
#define __sinf sinf
#define __cosf cosf
#include "calibrate/probes/gpu/kernels.inc"

static void fiber_main()
{
	(*body)();
	ended = true;
	take_turns();
}

/* Every fiber to its next barrier or its end, until all have ended. */
static void launch(uint64_t blocks, const std::function<void()> &kernel)
{
	enum { STACK = 32 << 10 };
	std::vector<ucontext_t> fiber(BLOCK);
	std::vector<char> stack((size_t)BLOCK * STACK);

	body = &kernel;
	for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
		std::vector<bool> gone(BLOCK);
		unsigned left = BLOCK;

		for (unsigned i = 0; i < BLOCK; i++) {
			getcontext(&fiber[i]);
			fiber[i].uc_stack.ss_sp = &stack[(size_t)i * STACK];
			fiber[i].uc_stack.ss_size = STACK;
			makecontext(&fiber[i], fiber_main, 0);
		}
		for (unsigned i = 0; left; i = (i + 1) % BLOCK) {
			if (gone[i])
				continue;
			threadIdx.x = i;
			running = &fiber[i];
			ended = false;
			swapcontext(&scheduler, running);
			gone[i] = ended;
			left -= ended;
		}
	}
}

static uint64_t blocks_of(uint64_t n)
{
	return (n + BLOCK - 1) / BLOCK;
}

extern "C" void kernel_empty(void *)
{
}

extern "C" void kernel_fill(void *p, uint64_t n, int dtype, uint64_t seed, void *)
{
	launch(2, [=] { ft_fill(p, n, dtype, seed, 2); });
}

extern "C" void kernel_block(const void *p, uint64_t at, uint64_t rows,
			     uint64_t width, uint64_t stride, int dtype,
			     float *out, void *)
{
	launch(blocks_of(rows * width), [=] {
		ft_gather(p, at, width, stride, rows * width, dtype, out);
	});
}

extern "C" void kernel_gather(const void *p, uint64_t at, uint64_t stride,
			      uint64_t n, int dtype, float *out, void *s)
{
	kernel_block(p, at, n, 1, stride, dtype, out, s);
}

extern "C" void kernel_holes(const void *p, uint64_t n, int dtype, float *out,
			     void *)
{
	memset(out, 0, KERNEL_HOLES * sizeof(*out));
	launch(3, [=] { ft_holes(p, n, dtype, 3, out); });
}

extern "C" void kernel_attention_softmax(void *scores, int64_t rows, int64_t n,
					 int causal, void *)
{
	launch((uint64_t)rows, [=] {
		ft_attention_softmax((u32 *)scores, (int)n, causal);
	});
}

extern "C" void kernel_attention_gradient(const void *prob, void *d, int64_t rows,
					  int64_t n, void *)
{
	launch((uint64_t)rows, [=] {
		ft_attention_gradient((const u32 *)prob, (u32 *)d, (int)n);
	});
}

extern "C" int kernel_memory(const char *, void *, void *, void *, int64_t,
			     int64_t, void *)
{
	return -1;
}

/* Formats, for blas.c and rccl.c. */
extern "C" float number_load(const void *p, uint64_t i, int dtype)
{
	return load(p, i, dtype);
}

extern "C" void number_store(void *p, uint64_t i, int dtype, float f)
{
	store(p, i, dtype, f);
}
