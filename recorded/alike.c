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
	if (a->rank == FT_REC_NONE || b->rank == FT_REC_NONE) {
		at = of(a->rank == FT_REC_NONE ? a : b);
		return ft_fail(err, &at,
			       "does not tell its rank: of several recordings each "
			       "must, in distributedInfo");
	}
	if (a->rank == b->rank)
		return ft_fail(err, &at, "is rank %lld, and so is %.100s",
			       (long long)b->rank, a->file);
	if (a->world > 0 && b->world > 0 && a->world != b->world)
		return ft_fail(err, &at,
			       "is of a job of %lld rank%s, and %.100s of one of %lld: "
			       "give recordings of one job",
			       (long long)b->world, b->world == 1 ? "" : "s", a->file,
			       (long long)a->world);
	return true;
}

static const char *step_of(const struct ft_recording *r, size_t i)
{
	return ft_recording_text(r, r->step[i].name);
}

/* Marked steps: those that both have are the same ones. The last ones of a rank may be lost. */
static bool marks_agree(const struct ft_recording *a, const struct ft_recording *b,
			struct ft_error *err)
{
	struct ft_mark at = of(b);
	bool left_out = a->counts.empty_steps || b->counts.empty_steps;

	for (size_t i = 0; i < a->n_steps && i < b->n_steps; i++)
		if (strcmp(step_of(a, i), step_of(b, i)))
			return ft_fail(err, &at,
				       "%s with %.60s, and %.100s with %.60s: give "
				       "recordings of the same steps%s",
				       i ? "goes on" : "begins", step_of(b, i), a->file,
				       step_of(a, i),
				       left_out ? " (a step in which a rank launches "
						  "no operation is left out)" :
						  "");
	return true;
}

/* Collectives of other steps would meet. All that one holds may be the only step of another. */
static bool steps_agree(const struct ft_recording *a, const struct ft_recording *b,
			struct ft_error *err)
{
	struct ft_mark at = of(b);

	if (a->step[0].marked && b->step[0].marked)
		return marks_agree(a, b, err);
	return a->n_steps == b->n_steps ||
	       ft_fail(err, &at,
		       "does not have as many steps (%zu) as %.100s (%zu): give "
		       "recordings of the same steps, all marked (ProfilerStep#) or "
		       "none",
		       b->n_steps, a->file, a->n_steps);
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
