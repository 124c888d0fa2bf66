/* study/whatif_wishes.c - operations of a recorded step that are to be faster, or left out */
#include "study/whatif.h"

/* Beyond these, a step is too long for its picoseconds, or a kernel takes none. */
static const double least_times = 1e-6, most_times = 1e6;

static bool can_be(const struct ft_whatif_request *asked, struct ft_error *err)
{
	for (int c = 0; c < FT_REC_CLASSES; c++)
		if (asked->speedup[c] && !(asked->speedup[c] >= least_times &&
					   asked->speedup[c] <= most_times))
			return ft_fail(
				err, NULL,
				"--speedup %s: %g times is not between %g and %g",
				ft_rec_class_name((enum ft_rec_class)c),
				asked->speedup[c], least_times, most_times);
	return true;
}

/* Does the step have the operations that are to be faster or left out? */
static bool can_apply(const struct whatif *w, const bool *has, const bool *has_op,
		      struct ft_error *err)
{
	for (int c = 0; c < FT_REC_CLASSES; c++)
		if (w->asked->speedup[c] > 0 && !has[c])
			return ft_fail(
				err, NULL,
				"--speedup %s changes nothing: the recorded step "
				"has no such operation",
				ft_rec_class_name((enum ft_rec_class)c));
	for (int c = 0; c < FT_COLLECTIVES; c++)
		if (w->asked->without[c] && !has_op[c])
			return ft_fail(
				err, NULL,
				"--without %s changes nothing: the recorded step "
				"has no such collective",
				ft_collective_name((enum ft_collective)c));
	return true;
}

static bool leaves_out(const struct whatif *w)
{
	for (int c = 0; c < FT_COLLECTIVES; c++)
		if (w->asked->without[c])
			return true;
	return false;
}

bool wishes_apply(struct whatif *w, struct ft_error *err)
{
	const struct ft_replay *p = w->asked->replay;
	bool has[FT_REC_CLASSES] = { false }, has_op[FT_COLLECTIVES] = { false };
	size_t unknown = 0;

	if (!can_be(w->asked, err))
		return false;
	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		const struct ft_recording *r = ft_replay_recording(p, k);

		for (size_t i = 0; i < ft_recording_ops(r); i++) {
			const struct ft_rec_op *op = ft_recording_op(r, i);
			enum ft_collective c = ft_recording_collective_op(r, op);
			double by = w->asked->speedup[op->rec_class];
			ft_ps *t = &w->changed.op[k][i];

			if (by > 0) {
				*t = (ft_ps)((double)*t / by);
				w->spread_s[k][i] /= by;
			}
			has[op->rec_class] = true;
			unknown += op->rec_class == FT_REC_COLLECTIVE &&
				   c == FT_COLLECTIVES;
			if (c == FT_COLLECTIVES)
				continue;
			has_op[c] = true;
			if (w->asked->without[c])
				*t = 0, w->spread_s[k][i] = 0;
		}
	}
	if (unknown && leaves_out(w))
		whatif_note(w,
			    "%zu collectives stay: neither arguments nor names tell of "
			    "what kind they are.",
			    unknown);
	return can_apply(w, has, has_op, err);
}
