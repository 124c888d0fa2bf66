/* tests/transformers.h - a step of two layers as Hugging Face Transformers, or a plain loop, runs it; and
 * the norms that are single operations there */
#ifndef TESTS_TRANSFORMERS_H
#define TESTS_TRANSFORMERS_H

#include "tests/counted.h"

enum { SEQUENCE = 4096, LAYERS = 2, BATCH = 2 };
#define EAGER "transformers-5-eager"
#define PLAIN "torch-2.11-eager"
#define TOKENS ((double)(BATCH * SEQUENCE))

static inline void step(struct parts *p, const char *model, const char *stack,
			const char *more)
{
	struct arena mem = { 0 };

	build(p, arena_printf(&mem, "{name: %s, num_hidden_layers: %d}", model, LAYERS),
	      arena_printf(&mem,
			   "{sequence_length: %d, global_batch_size: %d, "
			   "micro_batch_size: %d, sharding: fsdp, "
			   "gradient_dtype: fp32, %s%s}",
			   SEQUENCE, 2 * BATCH, BATCH,
			   strstr(more, "recompute") ? "" : "recompute: none, ",
			   *more ? more : "parallel: {ep: 1}"),
	      stack, 2);
	arena_release(&mem);
}

/* 19.1 bytes a number forward and 72.4 backward, of 5 and 14 kernels, beside 14.6 and 19.7 of 3 and 4 that
 * are not vectorized. */
struct norms {
	double numbers, norms, more, more_kernels;
};

static inline void expect_norm(const struct parts *p, const char *name, double times,
			       bool back, struct norms m)
{
	expect_on(p, name, false, times, ((back ? 72.4 : 19.1) + m.more) * m.numbers,
		  (back ? 14 : 5) * m.norms + m.more_kernels);
	expect_on(p, name, true, times, (back ? 19.7 : 14.6) * m.numbers,
		  (back ? 4 : 3) * m.norms);
}

#endif
