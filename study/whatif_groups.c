/*
 * study/whatif_groups.c - groups of a recorded step's collectives, found by what they say of themselves
 * or do, and what a step is with more or fewer ranks of a kind
 */
#include <math.h>
#include <string.h>

#include "study/whatif_groups.h"
#include "base/whole.h"

struct group *group_of(struct groups *g, const struct ft_rec_collective *c)
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

bool can_be_dp(const struct ft_rec_collective *c)
{
	return c->op == FT_ALL_REDUCE || c->op == FT_ALL_GATHER ||
	       c->op == FT_REDUCE_SCATTER || c->op == FT_BROADCAST;
}

/* How many numbers a collective moves; 0: its number format is not known. */
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

void groups_met(const struct ft_replay *p, struct groups *g)
{
	collect(p, g);
	g->dp = mark_dp(g);
	g->tp = mark_tp(g);
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
	return step > most ? step : ceil_div(most, step) * step;
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
		       "has %lld rank%s, %lld of them data-parallel: dp=%lld "
		       "makes no whole number of ranks",
		       (long long)a->ranks_recorded, a->ranks_recorded == 1 ? "" : "s",
		       (long long)a->dp_recorded, (long long)a->dp);
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
		       "has %lld rank%s, %lld of them tensor-parallel: tp=%lld "
		       "makes no whole number of ranks",
		       (long long)ranks, ranks == 1 ? "" : "s",
		       (long long)a->tp_recorded, (long long)a->tp);
}

bool groups_find(struct whatif *w, struct ft_error *err)
{
	struct ft_whatif *a = w->answer;
	struct groups *g = ARENA_NEW(&w->mem, struct groups);

	groups_met(w->asked->replay, g);
	a->ranks = a->ranks_recorded = world_of(w, g);
	a->dp = a->dp_recorded = g->dp;
	a->tp = a->tp_recorded = g->tp;
	for (size_t i = 0; i < g->n; i++)
		w->sharded |= g->of[i].dp && g->of[i].gathers;
	return (!w->asked->dp || scale_dp(w, g, err)) &&
	       (!w->asked->tp || scale_tp(w, g, err));
}
