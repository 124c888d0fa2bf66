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

enum { PARTS = 8 };

static const char *const names[PARTS] = {
	"matrix products",
	"attention",
	"memory-bound kernels",
	"exposed communication",
	"pipeline bubble",
	"host",
	"optimizer",
	"all",
};

struct whole {
	struct ft_difference difference[PARTS]; /* first: the handle */
	struct arena mem;
};

static bool ends(const char *name, const char *tail)
{
	size_t n = strlen(name), t = strlen(tail);

	return n >= t && !strcmp(name + n - t, tail);
}

static int kind_of(const struct ft_share *share)
{
	if (share->communication)
		return 3;
	if (ends(share->name, "(forward)") || ends(share->name, "(dgrad)") ||
	    ends(share->name, "(wgrad)"))
		return 0;
	return strstr(share->name, "attention") ? 1 : 2;
}

/* Nanoseconds per token per GPU, by part. */
static void parts_of(const struct ft_scenario *s, const struct ft_outcome *o,
		     double part[PARTS])
{
	const struct ft_breakdown *b = &o->breakdown;
	double kernels[3] = { 0 }, all = 0;
	double per = 1e9 * (double)s->cluster->gpus / (o->tokens_per_s * o->step_s);

	for (size_t i = 0; i < o->run->n_shares; i++) {
		int kind = kind_of(&o->run->share[i]);

		if (kind == 3 || !strcmp(o->run->share[i].name, "adam"))
			continue;
		kernels[kind] += o->run->share[i].time_s;
		all += o->run->share[i].time_s;
	}
	for (int i = 0; i < 3; i++)
		part[i] = all > 0 ? per * b->compute_s * kernels[i] / all : 0;
	part[3] = per * b->exposed_communication_s;
	part[4] = per * b->bubble_s;
	part[5] = per * b->host_s;
	part[6] = per * b->optimizer_s;
	part[7] = per * o->step_s;
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
	all = fabs(second[PARTS - 1] - first[PARTS - 1]);
	for (int i = 0; i < PARTS - 1; i++)
		w->difference[i] = (struct ft_difference){
			.what = names[i],
			.value = { first[i], second[i] },
			.share_frac = all > 0 ? (second[i] - first[i]) / all : 0,
		};
	qsort(w->difference, PARTS - 1, sizeof(*w->difference), by_share);
	*n = PARTS - 1;
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
