/* tests/ccl.h - collectives in tests: a library by name, a call in one line */
#ifndef TESTS_CCL_H
#define TESTS_CCL_H

#include "foretoken/sim.h"
#include "tests/check.h"

static inline struct ft_ccl *ccl_named(const char *name)
{
	struct ft_error err;
	struct ft_ccl *c = ft_ccl_load(name, NULL, &err);

	ok_or_say(c, err);
	return c;
}

static inline struct ft_collective_call call_of(enum ft_collective op, double bytes,
						int64_t n, int64_t stride)
{
	return (struct ft_collective_call){ .op = op,
					    .bytes = bytes,
					    .shape = { n, stride } };
}

/* The library that a stack has for the GPU. */
static inline struct ft_ccl *ccl_of(const struct ft_gpu *gpu, const char *stack)
{
	struct ft_error err;
	struct ft_stack *s = ft_stack_load(stack, NULL, &err);
	struct ft_ccl *c;

	ok_or_say(s, err);
	c = ft_stack_ccl(s, gpu->ccl_generation, &err);
	ok_or_say(c, err);
	ft_stack_free(s);
	return c;
}

#endif
