/* models/interleave.c - which remainders of micro-batches wait for themselves */
#include "models/interleave.h"

/* In a pipeline only if it is interleaved: else the next stage's backward waits for this one,
 * and this one's forward for the stage before, so that stages take turns. Megatron Core, too,
 * has pairs without pipelines and in interleaved ones, and dualpipev is made of them; its one more forward ahead is the one
 * before the first pair. */
bool ft_plan_pairs(const struct ft_plan *p)
{
	bool alone = ft_schedule_splits(p->schedule) && p->schedule != FT_DUALPIPEV;

	return p->overlap_ep && p->ep > 1 && p->sharding != FT_FSDP &&
	       p->sharding != FT_HSDP && (p->pp == 1 || (p->vpp > 1 && !alone));
}

bool ft_plan_pairs_again(const struct ft_plan *p)
{
	return ft_plan_pairs(p) &&
	       ((p->recompute == FT_RECOMPUTE_FULL && p->recompute_layers > 0) ||
		(p->recompute == FT_RECOMPUTE_SELECTIVE &&
		 p->recompute_modules & FT_MODULE_EXPERTS));
}

/* Remainders that do not end: from least to most, which may be below it. */
static void circle_of(const struct ft_plan *p, int64_t *least, int64_t *most)
{
	bool ragged = p->last_micro_batch != p->micro_batch;

	*least = p->vpp == 2 ? 2 : 1;
	*most = p->pp - 3;
	if (ft_plan_pairs(p) && !(ragged && *least == p->pp - 2))
		*most = p->pp - 2;
}

bool interleave_ends(const struct ft_plan *p)
{
	int64_t least, most, run = ft_plan_run(p), left = run % p->pp;

	if (p->vpp == 1 || ft_schedule_folds(p->schedule) || run < p->pp)
		return true;
	circle_of(p, &least, &most);
	return left < least || left > most;
}

int64_t interleave_nearest(const struct ft_plan *p)
{
	int64_t least, most, run = ft_plan_run(p), left = run % p->pp;

	if (interleave_ends(p))
		return run;
	circle_of(p, &least, &most);
	return left - least <= most - left ? run - (left - least + 1) :
					     run + (most - left + 1);
}
