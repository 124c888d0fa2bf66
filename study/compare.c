/*
 * study/compare.c - why one scenario is slower per token than another
 *
 * Per token per GPU, the step splits into compute by kind of kernel, exposed
 * communication, bubble, host and optimizer. Compute is split by each kind's share
 * of the kernels' time, so that the parts add up to the step.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "foretoken/study.h"

/* Parts of a step. The first three are kernels of the kinds of enum ft_work_kind. */
enum part {
	PRODUCTS = FT_GEMM,
	ATTENTION = FT_ATTENTION,
	MEMORY_BOUND = FT_MEMORY_BOUND,
	EXPOSED,
	BUBBLE,
	HOST,
	OPTIMIZER,
	ALL,
	PARTS,
	KERNELS = EXPOSED
};

static const char *const names[PARTS] = {
	[PRODUCTS] = "matrix products",
	[ATTENTION] = "attention",
	[MEMORY_BOUND] = "memory-bound kernels",
	[EXPOSED] = "exposed communication",
	[BUBBLE] = "pipeline bubble",
	[HOST] = "host",
	[OPTIMIZER] = "optimizer",
	[ALL] = "all",
};

struct whole {
	struct ft_difference difference[PARTS]; /* first: the handle */
	struct arena mem;
};

/* Nanoseconds per token per GPU, by part. */
static void parts_of(const struct ft_scenario *s, const struct ft_outcome *o,
		     double part[PARTS])
{
	const struct ft_breakdown *b = &o->breakdown;
	double kernels[KERNELS] = { 0 }, all = 0;
	double per = 1e9 * (double)s->cluster->gpus / (o->tokens_per_s * o->step_s);

	for (size_t i = 0; i < o->run->n_shares; i++) {
		const struct ft_share *share = &o->run->share[i];

		if (share->kind == FT_COMMUNICATION || share->optimizer)
			continue;
		kernels[share->kind] += share->time_s;
		all += share->time_s;
	}
	for (int i = 0; i < KERNELS; i++)
		part[i] = all > 0 ? per * b->compute_s * kernels[i] / all : 0;
	part[EXPOSED] = per * b->exposed_communication_s;
	part[BUBBLE] = per * b->bubble_s;
	part[HOST] = per * b->host_s;
	part[OPTIMIZER] = per * b->optimizer_s;
	part[ALL] = per * o->step_s;
}

static int by_share(const void *a, const void *b)
{
	const struct ft_difference *x = a, *y = b;
	double dx = fabs(x->share_frac), dy = fabs(y->share_frac);

	if (dx != dy)
		return dx < dy ? 1 : -1;
	return strcmp(x->what, y->what);
}

struct ft_difference *ft_study_differences(const struct ft_scenario *sa,
					   const struct ft_outcome *a,
					   const struct ft_scenario *sb,
					   const struct ft_outcome *b, size_t *n)
{
	struct arena mem = { 0 };
	struct whole *w = ARENA_NEW(&mem, struct whole);
	double first[PARTS], second[PARTS], all;

	w->mem = mem;
	parts_of(sa, a, first);
	parts_of(sb, b, second);
	all = fabs(second[ALL] - first[ALL]);
	for (int i = 0; i < ALL; i++)
		w->difference[i] = (struct ft_difference){
			.what = names[i],
			.value = { first[i], second[i] },
			.share_frac = all > 0 ? (second[i] - first[i]) / all : 0,
		};
	qsort(w->difference, ALL, sizeof(*w->difference), by_share);
	*n = ALL;
	return w->difference;
}

void ft_differences_free(struct ft_difference *differences)
{
	struct arena mem;

	if (!differences)
		return;
	mem = ((struct whole *)(void *)differences)->mem;
	arena_release(&mem);
}
