/*
 * study/trace_predict.c - a predicted step as profilers would have recorded it
 *
 * It is drawn and read back, so that layers, kernels and moments of a recorded step and of a
 * predicted one are found by the same code. Ranks of one stage do the same; so one of each
 * stage is drawn.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "study/whatif.h"

/* One rank's recording; NULL: it cannot be drawn. The first also brings the answer. */
static struct ft_recording *draw(struct ft_scenario *s, int64_t rank,
				 struct ft_outcome *o, struct ft_error *why)
{
	struct ft_recording *r = NULL;
	FILE *timeline = tmpfile();

	if (!timeline) {
		ft_fail(why, NULL, "no temporary file can be made: %s",
			strerror(errno));
		return NULL;
	}
	s->timeline = FT_TIMELINE_KINETO;
	s->timeline_rank = rank;
	if (!ft_study_simulate(s, NULL, timeline, o, why)) {
		fclose(timeline);
		return NULL;
	}
	r = ft_recording_read_stream(timeline, "the predicted step", why);
	if (!r)
		ft_outcome_release(o);
	return r;
}

/* Of a pipeline each stage is another; of anything else any rank will do. */
static bool stage_of(const struct ft_scenario *s, const struct ft_recording *r,
		     size_t *stage, struct ft_error *err)
{
	int64_t rank = r && s->plan->pp > 1 ? ft_recording_rank(r) : 0;
	struct ft_mark at = { r ? ft_recording_file(r) : NULL, 0, 0 };

	if (rank == FT_REC_NONE)
		return ft_fail(err, &at,
			       "does not tell its rank, and so not its stage of the "
			       "scenario's pipeline");
	if (rank >= s->plan->ranks)
		return ft_fail(
			err, &at,
			"is rank %lld, and the scenario's pipeline has ranks 0 to "
			"%lld",
			(long long)rank, (long long)s->plan->ranks - 1);
	*stage = (size_t)(rank / (s->plan->ranks / s->plan->pp));
	return true;
}

/* Lists the stages that the recorded ranks are of, each once. */
static bool find_stages(const struct ft_scenario *s, const struct ft_replay *recorded,
			struct ft_trace_predicted *to, struct ft_error *err)
{
	size_t ranks = recorded ? ft_replay_ranks(recorded) : 1;

	to->stage = calloc(ranks, sizeof(*to->stage));
	to->of = calloc(ranks, sizeof(struct ft_recording *));
	if (!to->stage || !to->of)
		out_of_memory();
	for (size_t k = 0; k < ranks; k++) {
		const struct ft_recording *r =
			recorded ? ft_replay_recording(recorded, k) : NULL;
		size_t stage = 0, i = 0;

		if (!stage_of(s, r, &stage, err))
			return false;
		while (i < to->n && to->stage[i] != stage)
			i++;
		if (i == to->n)
			to->stage[to->n++] = stage;
	}
	return true;
}

bool ft_study_trace_predict(struct ft_scenario *s, const struct ft_replay *recorded,
			    struct ft_trace_predicted *to, struct ft_error *err)
{
	int64_t a_stage = s->plan->ranks / s->plan->pp;

	*to = (struct ft_trace_predicted){
		.cut = ft_schedule_splits(s->plan->schedule) && s->plan->pp > 1
	};
	if (!find_stages(s, recorded, to, err))
		return false;
	for (size_t i = 0; i < to->n; i++) {
		if (i)
			ft_outcome_release(&to->outcome);
		to->of[i] = draw(s, (int64_t)to->stage[i] * a_stage, &to->outcome,
				 &to->why);
		if (!to->of[i])
			return ft_study_simulate(s, NULL, NULL, &to->outcome, err);
	}
	to->replay = ft_replay_build((const struct ft_recording *const *)to->of, to->n,
				     &to->why);
	return true;
}

void ft_trace_predicted_release(struct ft_trace_predicted *p)
{
	ft_replay_free(p->replay);
	for (size_t i = 0; i < p->n; i++)
		ft_recording_free(p->of[i]);
	free(p->of);
	free(p->stage);
	ft_outcome_release(&p->outcome);
	*p = (struct ft_trace_predicted){ .n = 0 };
}
