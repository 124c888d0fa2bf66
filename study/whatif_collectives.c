/*
 * study/whatif_collectives.c - collectives of a recorded step on another network, at another size
 *
 *   time = waiting + transfer * predicted(target) / predicted(recorded)
 *
 * Of a collective that all its ranks recorded, waiting is known. Of others it is, beside the
 * waiting for ranks that did, what exceeds the quickest of its kind (or the prediction, if there is but one)
 * times what collectives slow down beside kernels; it stays as it is, unless asked to go. Data-parallel
 * groups, those of experts among them, grow and shrink with --scale, all to all and send and
 * receive excepted, and ranks of groups that lie around them, as a pipeline's do, are farther apart
 * or nearer by as much; the message, as nccl-tests counts it, stays. Tensor-parallel groups likewise; the messages of
 * data-parallel ones, which are of weights, are then divided as weights are, and their
 * ranks lie as many apart as the tensor-parallel group has.
 */
#include <math.h>

#include "study/whatif_groups.h"

/* The quickest of one kind, by rank: collectives of one description. */
struct quick {
	const struct ft_rec_collective *c;
	ft_ps least;
	int64_t n;
};

struct retiming {
	struct whatif *w;
	struct groups groups;
	struct quick *quick;
	size_t n_quick;
	int64_t dp_stride; /* of the data-parallel groups */
	int64_t slow; /* timed anew, and recorded far above what the network needs */
	double slow_s;
	bool waited; /* any of them: --without waiting has an effect */
};

static struct quick *quick_of(struct retiming *t, const struct ft_rec_collective *c)
{
	for (size_t i = 0; i < t->n_quick; i++)
		if (t->quick[i].c == c)
			return &t->quick[i];
	t->quick[t->n_quick] = (struct quick){ c, INT64_MAX, 0 };
	return &t->quick[t->n_quick++];
}

/* In times of what the network is predicted to take: a rank that waits is often as far from it, a network
 * never was in a recording of ours. Assumed. */
enum { FAR = 5 };

/* The group and the size of a collective that is to be predicted. */
struct asked {
	int64_t size, stride;
	double bytes;
};

static bool predict(const struct machine *m, const struct ft_rec_collective *c,
		    struct asked of, struct ft_prediction *out, struct ft_error *err)
{
	struct ft_collective_call call = { .op = c->op,
					   .bytes = of.bytes,
					   .shape = { of.size, of.stride } };
	struct ft_collective_result r;

	*out = (struct ft_prediction){ 0 };
	if (of.size < 2)
		return true;
	if (!ft_collective_predict(m->scenario->cluster, m->ccl, &call, &r, err))
		return false;
	*out = r.duration;
	return true;
}

/* How much of a recorded time was transfer; the rest was waiting. */
static double transfer_s(const struct retiming *t, const struct quick *q, double time_s,
			 double predicted_s)
{
	double beside = t->w->from.gpu->collective_beside_compute.value;
	double alone = q->n > 1 ? (double)q->least * 1e-12 : predicted_s;

	return fmin(time_s, alone * fmax(1, beside));
}

/* How far its ranks lie apart in groups of the sizes that are asked for: those of a group around
 * others are as far as these are wide. */
static int64_t apart(const struct retiming *t, const struct group *g, int64_t stride)
{
	const struct ft_whatif *a = t->w->answer;

	if (a->dp != a->dp_recorded && stride % (t->dp_stride * a->dp_recorded) == 0)
		stride = stride / a->dp_recorded * a->dp;
	if (a->tp != a->tp_recorded && !(g && g->tp) && stride % a->tp_recorded == 0)
		stride = stride / a->tp_recorded * a->tp;
	return stride;
}

/* A recorded collective as it is in groups of the sizes that are asked for. */
static struct asked scaled(const struct retiming *t, const struct group *g,
			   struct asked was)
{
	const struct ft_whatif *a = t->w->answer;
	struct asked is = was;

	is.stride = apart(t, g, was.stride);
	if (!g)
		return is;
	if (g->tp && was.size == a->tp_recorded)
		is.size = a->tp;
	if (g->dp && was.size == a->dp_recorded)
		is.size = a->dp;
	if (g->edp && a->dp != a->dp_recorded)
		is.size = was.size * a->dp / a->dp_recorded;
	if (g->dp && !g->tp && a->tp != a->tp_recorded)
		is.bytes *= (double)a->tp_recorded / (double)a->tp;
	return is;
}

/* Was it recorded by all of its ranks, so that no other can have come late? */
static bool all_recorded(const struct whatif *w, const struct ft_rec_collective *c,
			 size_t rank, size_t i)
{
	int64_t ranks = c->op == FT_SENDRECV ? 2 : c->size;

	return (int64_t)ft_replay_meets(w->asked->replay, rank, i) >= ranks;
}

static bool retime_one(struct retiming *t, size_t rank, size_t i, struct ft_error *err)
{
	struct whatif *w = t->w;
	const struct ft_recording *r = ft_replay_recording(w->asked->replay, rank);
	const struct ft_rec_collective *c =
		ft_recording_collective(r, ft_recording_op(r, i));
	const struct group *g = can_be_dp(c) ? group_of(&t->groups, c) : NULL;
	struct asked of = { c->size, ranks_stride(c->ranks), c->bytes };
	struct asked to = scaled(t, g, of);
	double was_s = (double)w->recorded.op[rank][i] * 1e-12, moving_s = was_s, is_s;
	struct ft_prediction before, after;

	if (!predict(&w->from, c, of, &before, err) ||
	    !predict(&w->to, c, to, &after, err))
		return false;
	if (!all_recorded(w, c, rank, i))
		moving_s = transfer_s(t, quick_of(t, c), was_s, before.time_s);
	t->waited |= moving_s < was_s;
	if (to.size < 2)
		is_s = 0;
	else
		is_s = (w->asked->without_waiting ? moving_s : was_s) +
		       moving_s * (after.time_s / before.time_s - 1);
	if (!(is_s < was_s || is_s > was_s))
		return true;
	if (moving_s > FAR * before.time_s && to.size > 1) {
		t->slow++;
		t->slow_s += moving_s;
	}
	w->changed.op[rank][i] = ft_ps_from_s(is_s);
	w->spread_s[rank][i] = moving_s * after.time_s / before.time_s *
			       hypot(before.spread_frac, after.spread_frac);
	return true;
}

/* Of a collective whose like all waited nothing tells the waiting from the transfer. */
static void tell_slow(struct retiming *t)
{
	if (t->slow)
		whatif_note(t->w,
			    "%lld collectives (%.3g ms) are recorded at over %d times "
			    "what the network needs: what they waited for other ranks "
			    "is timed anew with them.",
			    (long long)t->slow, 1e3 * t->slow_s, FAR);
}

static bool waits(const struct retiming *t, struct ft_error *err)
{
	return !t->w->asked->without_waiting || t->waited ||
	       ft_fail(err, NULL,
		       "--without waiting changes nothing: no collective is known to "
		       "have waited, or all of its ranks are recorded");
}

static bool known(const struct ft_rec_collective *c)
{
	return c && c->op != FT_COLLECTIVES && c->size > 1 && c->bytes > 0;
}

bool collectives_retime(struct whatif *w, struct ft_error *err)
{
	const struct ft_replay *p = w->asked->replay;
	struct retiming *t = ARENA_NEW(&w->mem, struct retiming);
	int64_t unknown = 0;

	t->w = w;
	groups_met(p, &t->groups);
	t->dp_stride = 1;
	for (size_t i = 0; i < t->groups.n; i++)
		if (t->groups.of[i].dp)
			t->dp_stride = t->groups.of[i].stride;
	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		const struct ft_recording *r = ft_replay_recording(p, k);

		t->n_quick = 0;
		t->quick = ARENA_ARRAY(&w->mem, ft_recording_ops(r) + 1, struct quick);
		for (size_t i = 0; i < ft_recording_ops(r); i++) {
			const struct ft_rec_op *op = ft_recording_op(r, i);
			const struct ft_rec_collective *c =
				ft_recording_collective(r, op);
			struct quick *q = known(c) ? quick_of(t, c) : NULL;

			unknown += op->rec_class == FT_REC_COLLECTIVE && !q;
			if (q && op->duration < q->least)
				q->least = op->duration;
			if (q)
				q->n++;
		}
		for (size_t i = 0; i < ft_recording_ops(r); i++)
			if (known(ft_recording_collective(r, ft_recording_op(r, i))) &&
			    !retime_one(t, k, i, err))
				return false;
	}
	if (unknown)
		whatif_note(w,
			    "%lld collectives whose group or size was not recorded "
			    "keep their time.",
			    (long long)unknown);
	tell_slow(t);
	return waits(t, err);
}
