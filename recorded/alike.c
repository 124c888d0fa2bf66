/* recorded/alike.c - whether several recordings can be of one job, by what they say of themselves */
#include <string.h>

#include "recorded/replay.h"

static struct ft_mark of(const struct ft_recording *r)
{
	return (struct ft_mark){ .file = r->file };
}

static bool ranks_differ(const struct ft_recording *a, const struct ft_recording *b,
			 struct ft_error *err)
{
	struct ft_mark at = of(b);

	if (a->rank == FT_REC_NONE && b->rank == FT_REC_NONE)
		return ft_fail(err, &at,
			       "does not tell its rank, nor does %.100s: of several "
			       "recordings each must, in distributedInfo",
			       a->file);
	if (a->rank == b->rank)
		return ft_fail(err, &at, "is rank %lld, and so is %.100s",
			       (long long)b->rank, a->file);
	if (a->world > 0 && b->world > 0 && a->world != b->world)
		return ft_fail(err, &at,
			       "is of a job of %lld ranks, and %.100s of one of %lld: "
			       "give recordings of one job",
			       (long long)b->world, a->file, (long long)a->world);
	return true;
}

static const char *first_step(const struct ft_recording *r)
{
	return ft_recording_text(r, r->step[0].name);
}

/* Collectives of other steps would meet. All that one holds may be the only step of another. */
static bool steps_agree(const struct ft_recording *a, const struct ft_recording *b,
			struct ft_error *err)
{
	struct ft_mark at = of(b);
	bool both = a->step[0].marked && b->step[0].marked;

	if (both && strcmp(first_step(a), first_step(b)))
		return ft_fail(err, &at,
			       "begins with %.60s, and %.100s with %.60s: give "
			       "recordings of the same steps",
			       first_step(b), a->file, first_step(a));
	if (!both && a->n_steps != b->n_steps)
		return ft_fail(
			err, &at,
			"does not have as many steps (%zu) as %.100s (%zu): give "
			"recordings of the same steps, all marked "
			"(ProfilerStep#) or none",
			b->n_steps, a->file, a->n_steps);
	return true;
}

bool ranks_alike(const struct ft_replay *p, struct ft_error *err)
{
	for (size_t i = 0; i < p->n_ranks; i++)
		for (size_t j = 0; j < i; j++)
			if (!ranks_differ(p->rank[j].r, p->rank[i].r, err))
				return false;
	for (size_t i = 1; i < p->n_ranks; i++)
		if (!steps_agree(p->rank[0].r, p->rank[i].r, err))
			return false;
	return true;
}
