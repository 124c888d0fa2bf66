/*
 * study/whatif_groups.c - collectives of a recorded step on another network, at another
 * size
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
#include <string.h>

#include "study/whatif.h"

/* A group met in the recordings. */
struct group {
	const char *ranks, *about;
	int64_t size, stride;
	int64_t n_gathers, n_scatters, n_fsdp; /* n_fsdp: in FSDP's annotations */
	double elements;		       /* of its largest message */
	bool dp, tp, edp, gathers;	       /* edp: data-parallel ranks of experts */
};

enum { GROUPS = 1024 };

struct groups {
	struct group of[GROUPS];
	size_t n;
};

/* ---- groups ------------------------------------------------------------------------- */

static struct group *group_of(struct groups *g, const struct ft_rec_collective *c)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->of[i].size == c->size && !strcmp(g->of[i].ranks, c->ranks) &&
		    !strcmp(g->of[i].about, c->about))
			return &g->of[i];
	if (g->n == GROUPS)
		return NULL;
	g->of[g->n] = (struct group){ .ranks = c->ranks,
				      .about = c->about,
				      .size = c->size,
				      .stride = ranks_stride(c->ranks) };
	return &g->of[g->n++];
}

static bool can_be_dp(const struct ft_rec_collective *c)
{
	return c->op == FT_ALL_REDUCE || c->op == FT_ALL_GATHER ||
	       c->op == FT_REDUCE_SCATTER || c->op == FT_BROADCAST;
}

/* 0: of a format that is none of ours. */
static double elements_of(const struct ft_rec_collective *c)
{
	for (int d = 0; d < FT_DTYPES; d++)
		if (!strcmp(c->dtype, ft_dtype_name((enum ft_dtype)d)))
			return c->bytes / ft_dtype_bytes((enum ft_dtype)d);
	return 0;
}

static void collect(const struct ft_replay *p, struct groups *g)
{
	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		const struct ft_recording *r = ft_replay_recording(p, k);

		for (size_t i = 0; i < ft_recording_ops(r); i++) {
			const struct ft_rec_collective *c =
				ft_recording_collective(r, ft_recording_op(r, i));
			struct group *x = c && c->size > 1 && can_be_dp(c) ?
						  group_of(g, c) :
						  NULL;

			if (!x)
				continue;
			x->elements = fmax(x->elements, elements_of(c));
			x->n_gathers += c->op == FT_ALL_GATHER;
			x->n_scatters += c->op == FT_REDUCE_SCATTER;
			x->gathers = x->n_gathers + x->n_scatters > 0;
			x->n_fsdp += ft_recording_op(r, i)->in_fsdp;
		}
	}
}

/* Those that say so; else those that FSDP uses; else those that only reduce. */
static bool is_dp(const struct group *x, bool told, bool fsdp)
{
	return x->edp ? false :
	       told   ? says_dp(x->about) :
	       fsdp   ? x->n_fsdp > 0 :
			!x->gathers && !says_tp(x->about);
}

/* Two dimensions of one mesh have groups whose ranks lie differently far apart (HSDP's
 * shards and replicas): which of them is to be scaled nothing tells. */
static int64_t mark_dp(struct groups *g)
{
	int64_t size = 0, stride = 0;
	bool told = false, fsdp = false;

	for (size_t i = 0; i < g->n; i++) {
		told |= says_dp(g->of[i].about);
		fsdp |= g->of[i].n_fsdp > 0;
		g->of[i].edp = says_expert_dp(g->of[i].about);
	}
	for (size_t i = 0; i < g->n; i++) {
		if (!is_dp(&g->of[i], told, fsdp))
			continue;
		if (size && (size != g->of[i].size || stride != g->of[i].stride))
			return 0;
		size = g->of[i].size;
		stride = g->of[i].stride;
		g->of[i].dp = true;
	}
	return size;
}

/* Those that say so; else the only one that gathers as often as it scatters, for no FSDP,
 * and is not data-parallel: sequence parallelism. */
static int64_t mark_tp(struct groups *g)
{
	int64_t size = 0;
	bool told = false;

	for (size_t i = 0; i < g->n; i++)
		told |= says_tp(g->of[i].about);
	for (size_t i = 0; i < g->n; i++) {
		struct group *x = &g->of[i];

		if (told ? !says_tp(x->about) :
			   x->dp || x->edp || x->n_fsdp || !x->n_gathers ||
				    x->n_gathers != x->n_scatters)
			continue;
		if (size && (!told || size != x->size))
			return 0;
		size = x->size;
		x->tp = true;
	}
	return size;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
	return b ? common_divisor(b, a % b) : a;
}

/* So many that all groups told are among them, and that groups of each size fill them. */
static int64_t world_by_groups(const struct groups *g)
{
	int64_t most = 0, step = 1;

	for (size_t i = 0; i < g->n; i++) {
		int64_t size = g->of[i].size, up = ranks_up_to(g->of[i].ranks);

		most = up > most ? up : most;
		if (size < INT32_MAX && step < INT32_MAX)
			step = step / common_divisor(step, size) * size;
	}
	return step > most ? step : (most + step - 1) / step * step;
}

static int64_t world_of(struct whatif *w, const struct groups *g)
{
	const struct ft_replay *p = w->asked->replay;
	int64_t world = ft_recording_world(ft_replay_recording(p, 0));
	bool told = world > 0;

	if (world < (int64_t)ft_replay_ranks(p))
		world = (int64_t)ft_replay_ranks(p);
	for (size_t i = 0; i < g->n; i++)
		if (g->of[i].size > world)
			world = g->of[i].size;
	if (told || !g->n)
		return world;
	if (world_by_groups(g) > world)
		world = world_by_groups(g);
	whatif_note(w,
		    "How many ranks there were is not recorded: %lld, by the groups of "
		    "its collectives.",
		    (long long)world);
	return world;
}

static void name_groups(struct whatif *w, const struct groups *g, bool tensor)
{
	for (size_t i = 0; i < g->n; i++)
		if (tensor ? g->of[i].tp : g->of[i].dp)
			whatif_note(w,
				    "%s: the group of %lld ranks described as '%.60s'.",
				    tensor ? "Tensor-parallel" : "Data-parallel",
				    (long long)g->of[i].size, g->of[i].about);
}

/* PyTorch makes no second communicator of all ranks: a context group can share FSDP's. */
static bool is_shared(const struct group *x)
{
	return x->dp && x->n_fsdp && x->n_gathers + x->n_scatters > x->n_fsdp &&
	       !says_dp(x->about);
}

static bool scale_dp(struct whatif *w, const struct groups *g, struct ft_error *err)
{
	struct ft_whatif *a = w->answer;
	const char *file = ft_recording_file(ft_replay_recording(w->asked->replay, 0));

	if (!a->dp_recorded)
		return ft_fail(
			err, &(struct ft_mark){ .file = file },
			g->n ? "cannot be scaled by dp: neither descriptions nor use tell which of its groups is data-parallel" :
			       "cannot be scaled by dp: it has no collective of "
			       "data-parallel ranks");
	name_groups(w, g, false);
	a->dp = w->asked->dp;
	a->ranks = a->ranks_recorded * a->dp / a->dp_recorded;
	for (size_t i = 0; i < g->n; i++)
		if (is_shared(&g->of[i]))
			return ft_fail(
				err, &(struct ft_mark){ .file = file },
				"cannot be scaled by dp: its group of %lld ranks "
				"gathers for FSDP and for something else, as context "
				"parallelism does; record a step where each has its own",
				(long long)g->of[i].size);
		else if (g->of[i].edp && g->of[i].size * a->dp % a->dp_recorded)
			return ft_fail(
				err, &(struct ft_mark){ .file = file },
				"has %lld replicas of its experts: dp=%lld instead of %lld makes no whole number of them",
				(long long)g->of[i].size, (long long)a->dp,
				(long long)a->dp_recorded);
	return a->ranks * a->dp_recorded == a->ranks_recorded * a->dp ||
	       ft_fail(err, &(struct ft_mark){ .file = file },
		       "has %lld ranks, %lld of them data-parallel: dp=%lld "
		       "makes no whole number of ranks",
		       (long long)a->ranks_recorded, (long long)a->dp_recorded,
		       (long long)a->dp);
}

static bool scale_tp(struct whatif *w, const struct groups *g, struct ft_error *err)
{
	struct ft_whatif *a = w->answer;
	const char *file = ft_recording_file(ft_replay_recording(w->asked->replay, 0));
	int64_t ranks = a->ranks;

	if (!a->tp_recorded)
		return ft_fail(err, &(struct ft_mark){ .file = file },
			       "cannot be scaled by tp: no group of its collectives is "
			       "described as tensor-parallel, and none other than "
			       "FSDP's gathers as often as it scatters");
	name_groups(w, g, true);
	a->tp = w->asked->tp;
	a->ranks = ranks * a->tp / a->tp_recorded;
	for (size_t i = 0; i < g->n; i++)
		if (g->of[i].tp) {
			w->tensor.sequence |= g->of[i].gathers;
			w->tensor.elements =
				fmax(w->tensor.elements, g->of[i].elements);
		}
	return a->ranks * a->tp_recorded == ranks * a->tp ||
	       ft_fail(err, &(struct ft_mark){ .file = file },
		       "has %lld ranks, %lld of them tensor-parallel: tp=%lld "
		       "makes no whole number of ranks",
		       (long long)ranks, (long long)a->tp_recorded, (long long)a->tp);
}

bool groups_find(struct whatif *w, struct ft_error *err)
{
	struct ft_whatif *a = w->answer;
	const struct ft_replay *p = w->asked->replay;
	struct groups *g = ARENA_NEW(&w->mem, struct groups);

	collect(p, g);
	a->ranks = a->ranks_recorded = world_of(w, g);
	a->dp = a->dp_recorded = mark_dp(g);
	a->tp = a->tp_recorded = mark_tp(g);
	for (size_t i = 0; i < g->n; i++)
		w->sharded |= g->of[i].dp && g->of[i].gathers;
	return (!w->asked->dp || scale_dp(w, g, err)) &&
	       (!w->asked->tp || scale_tp(w, g, err));
}

/* ---- time ----------------------------------------------------------------------------- */

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

/* A collective of such a group. */
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

/* What of a recorded time was transfer. */
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

/* The same in the groups that are asked for. */
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

bool groups_retime(struct whatif *w, struct ft_error *err)
{
	const struct ft_replay *p = w->asked->replay;
	struct retiming *t = ARENA_NEW(&w->mem, struct retiming);
	int64_t unknown = 0;

	t->w = w;
	collect(p, &t->groups);
	mark_dp(&t->groups);
	mark_tp(&t->groups);
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
