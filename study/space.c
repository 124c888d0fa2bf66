/* study/space.c - axes, their values, and the legal combinations of them */
#include "study/space.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/text.h"
#include "study/keys.h"
#include "study/shelf.h"

enum { MOST_UNEVEN = 4 };

static const size_t MOST_CANDIDATES = 4000000, MOST_TRIED = 40000000;

static const char *const keys[AXES] = {
	[AXIS_TP] = "training.parallel.tp",
	[AXIS_PP] = "training.parallel.pp",
	[AXIS_CP] = "training.parallel.cp",
	[AXIS_EP] = "training.parallel.ep",
	[AXIS_ETP] = "training.parallel.etp",
	[AXIS_MICRO_BATCH] = "training.micro_batch_size",
	[AXIS_VPP] = "training.parallel.vpp",
	[AXIS_SCHEDULE] = "training.schedule",
	[AXIS_SHARDING] = "training.sharding",
	[AXIS_ZERO_GROUP] = "training.zero_group",
	[AXIS_SHARD] = "training.shard",
	[AXIS_RECOMPUTE] = "training.recompute",
	[AXIS_MODULES] = "training.recompute_modules",
	[AXIS_LAYERS] = "training.recompute_layers",
	[AXIS_OFFLOAD] = "training.offload_layers",
	[AXIS_OVERLAP_TP] = "training.overlap.tp",
	[AXIS_OVERLAP_DP] = "training.overlap.dp",
	[AXIS_OVERLAP_PP] = "training.overlap.pp",
	[AXIS_OVERLAP_EP] = "training.overlap.ep",
};

const char *space_key(size_t i)
{
	return i < AXES ? keys[i] : NULL;
}

/* ---- what the scenario states ------------------------------------------------------ */

static int64_t stated_value(const struct space *sp, enum axis axis,
			    const struct node *n, bool *ok)
{
	const struct ft_plan *p = sp->scenario->plan;
	int64_t value = 0;

	switch (axis) {
	case AXIS_SCHEDULE:
		return p->schedule;
	case AXIS_SHARDING:
		return p->sharding;
	case AXIS_RECOMPUTE:
		return p->recompute;
	case AXIS_MODULES:
		return p->recompute_modules;
	case AXIS_OFFLOAD:
		return p->offload_layers;
	case AXIS_OVERLAP_TP:
		return p->overlap_tp;
	case AXIS_OVERLAP_DP:
		return p->overlap_dp;
	case AXIS_OVERLAP_PP:
		return p->overlap_pp;
	case AXIS_OVERLAP_EP:
		return p->overlap_ep;
	default:
		*ok = node_whole(n, 1, 1 << 30, &value);
		return value;
	}
}

static bool is_free(const char *key, const char *const *free_key, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(free_key[i], key) || (text_begins_with(key, "training.") &&
						  !strcmp(free_key[i], key + 9)))
			return true;
	return false;
}

/* As an answer states it where it does nothing: no layers, which are run again under full recomputation alone. */
static bool asks_for_nothing(enum axis axis, const struct node *n)
{
	return axis == AXIS_LAYERS && node_says(n, "0");
}

static bool hold_stated(struct space *sp, const char *const *free_key, size_t n_free,
			struct ft_error *err)
{
	for (int i = 0; i < AXES; i++) {
		const struct node *n = node_path(sp->scenario->given, keys[i]);
		struct space_axis *a = &sp->axis[i];
		bool ok = true;

		a->key = keys[i];
		if (is_free(keys[i], free_key, n_free)) {
			space_on_demand(sp, (enum axis)i);
			space_leave_out(sp, (enum axis)i);
			continue;
		}
		if (node_is_null(n) || asks_for_nothing((enum axis)i, n)) {
			space_leave_out(sp, (enum axis)i);
			continue;
		}
		a->stated = true;
		a->value[0] = stated_value(sp, (enum axis)i, n, &ok);
		a->n = 1;
		if (!ok)
			return ft_fail(err, &n->mark,
				       "%s should be a whole number of at least 1",
				       keys[i]);
	}
	return true;
}

static bool known_keys(const char *const *free_key, size_t n, struct ft_error *err)
{
	for (size_t i = 0; i < n; i++) {
		bool known = false;

		for (int k = 0; k < AXES; k++)
			known |= is_free(keys[k], &free_key[i], 1);
		if (!known)
			return ft_fail(
				err, NULL,
				"--free %.60s: that key cannot be searched; these can: parallel.tp, pp, cp, ep, etp "
				"and vpp, micro_batch_size, schedule, sharding, zero_group, "
				"shard, recompute, recompute_modules, recompute_layers, "
				"offload_layers, overlap.tp, dp, pp and ep",
				free_key[i]);
	}
	return true;
}

/* ---- candidates ---------------------------------------------------------------------- */

bool space_plan(const struct space *sp, const struct candidate *c, struct ft_plan *p,
		int64_t *stage_layers)
{
	*p = *sp->scenario->plan;
	p->tp = space_value(sp, c, AXIS_TP);
	p->pp = space_value(sp, c, AXIS_PP);
	p->cp = space_value(sp, c, AXIS_CP);
	p->ep = space_value(sp, c, AXIS_EP);
	p->etp = space_value(sp, c, AXIS_ETP);
	p->vpp = space_value(sp, c, AXIS_VPP);
	p->micro_batch = space_value(sp, c, AXIS_MICRO_BATCH);
	p->schedule = (enum ft_schedule)space_value(sp, c, AXIS_SCHEDULE);
	p->sharding = (enum ft_sharding)space_value(sp, c, AXIS_SHARDING);
	p->zero_group = space_value(sp, c, AXIS_ZERO_GROUP);
	p->shard = space_value(sp, c, AXIS_SHARD);
	p->recompute = (enum ft_recompute)space_value(sp, c, AXIS_RECOMPUTE);
	p->recompute_modules = (unsigned)space_value(sp, c, AXIS_MODULES);
	p->recompute_layers = space_value(sp, c, AXIS_LAYERS);
	p->offload_layers = space_value(sp, c, AXIS_OFFLOAD);
	p->overlap_tp = space_value(sp, c, AXIS_OVERLAP_TP);
	p->overlap_dp = space_value(sp, c, AXIS_OVERLAP_DP);
	p->overlap_pp = space_value(sp, c, AXIS_OVERLAP_PP);
	p->overlap_ep = space_value(sp, c, AXIS_OVERLAP_EP);
	if (sp->gather_follows)
		p->overlap_gather = p->overlap_dp;
	p->sequence_parallel = sp->wants_sequence_parallel;
	return ft_plan_vary(p, sp->scenario->model, &sp->context, stage_layers);
}

/* One replica has nothing to divide; but PyTorch's wrappers do what they do around one rank, too: fsdp gathers, and frees, one
 * layer's weights and gradients at a time, so that what does not fit otherwise may. Nobody wants DDP there who can do without. */
static bool one_replica_differs(const struct space *sp, enum ft_sharding sharding)
{
	const struct ft_stack *k = sp->scenario->stack;

	return sharding == FT_FSDP || (space_is_torch(k) && sharding == FT_ALONE) ||
	       (k->layout.autocast && sharding == FT_DDP && !ft_stack_runs(k, "none"));
}

/* Does one of the sharding axes have a value without effect? All axes are set. */
static bool idle_sharding(const struct space *sp, const struct candidate *c,
			  const struct ft_plan *p)
{
	int64_t same = p->dp * p->cp;

	if (same == 1 && c->at[AXIS_SHARDING])
		return !one_replica_differs(sp, p->sharding);
	if (same == 1 && c->at[AXIS_OVERLAP_DP])
		return true;
	if (c->at[AXIS_ZERO_GROUP] && p->zero_group >= same)
		return true;
	return p->sharding == FT_HSDP &&
	       ((c->at[AXIS_SHARD] && /* is what goes without saying */
		 p->shard == ft_plan_near_shard(p, sp->context.ranks_per_node)) ||
		(p->shard == same && !sp->axis[AXIS_SHARDING].stated));
}

static bool add(struct space *sp, const struct candidate *c)
{
	if (sp->n == sp->cap) {
		size_t cap = sp->cap ? 2 * sp->cap : 1024;

		sp->candidate =
			allocated(realloc(sp->candidate, cap * sizeof(*sp->candidate)));
		sp->cap = cap;
	}
	sp->candidate[sp->n++] = *c;
	return sp->n <= MOST_CANDIDATES;
}

/* Are so many chunks as long as each other, the embedding and the head counted or not? */
static bool even(int64_t layers, int64_t chunks)
{
	return layers % chunks == 0 || (layers + 2) % chunks == 0;
}

/* Chunks of layers that are none, or not as long as the others though some number would be;
 * where none would, a few chunks that are not are tried. */
static bool no_chunks(const struct space *sp, const struct candidate *c)
{
	int64_t layers = sp->scenario->model->n_layers;
	int64_t pp = space_value(sp, c, AXIS_PP), vpp = space_value(sp, c, AXIS_VPP);
	int64_t other = 2;

	if (c->at[AXIS_VPP] && (pp == 1 || pp * vpp > layers + 2))
		return true;
	if (pp == 1 || vpp == 1 || sp->axis[AXIS_VPP].stated || even(layers, pp * vpp))
		return false;
	while (pp * other <= layers + 2 && !even(layers, pp * other))
		other++;
	return vpp > MOST_UNEVEN || pp * other <= layers + 2;
}

/* Does the place on this axis say nothing beside those that are set before it? */
static bool says_nothing(const struct space *sp, const struct candidate *c,
			 enum axis axis)
{
	int64_t sharding = space_value(sp, c, AXIS_SHARDING);
	int64_t recompute = space_value(sp, c, AXIS_RECOMPUTE);
	bool stated = sp->axis[axis].stated;

	if (axis == AXIS_MODULES && (c->at[axis] || stated))
		return recompute != FT_RECOMPUTE_SELECTIVE;
	if (axis == AXIS_LAYERS && (c->at[axis] || stated))
		return recompute != FT_RECOMPUTE_FULL;
	if (!c->at[axis])
		return false;
	switch (axis) {
	case AXIS_ZERO_GROUP:
		return sharding != FT_ZERO1 && sharding != FT_ZERO2;
	case AXIS_SHARD:
		return sharding != FT_HSDP;
	case AXIS_SCHEDULE:
	case AXIS_OVERLAP_PP:
		return space_value(sp, c, AXIS_PP) == 1;
	case AXIS_OVERLAP_DP:
		return sharding == FT_FSDP || sharding == FT_HSDP;
	case AXIS_OVERLAP_TP:
		return space_value(sp, c, AXIS_TP) == 1;
	case AXIS_OVERLAP_EP:
		return space_value(sp, c, AXIS_EP) == 1;
	default:
		return false;
	}
}

/* What can be said of a plan before all of its axes are set. */
static bool hopeless(const struct space *sp, const struct candidate *c, int axis)
{
	int64_t ranks = sp->context.ranks, each = 1;

	for (int i = 0; i <= axis && i <= AXIS_CP; i++)
		each *= space_value(sp, c, (enum axis)i);
	if (each > ranks || ranks % each)
		return true;
	if (axis >= AXIS_MICRO_BATCH && !sp->context.ragged_batch &&
	    sp->scenario->plan->global_batch %
		    (ranks / each * space_value(sp, c, AXIS_MICRO_BATCH)))
		return true;
	return says_nothing(sp, c, (enum axis)axis) ||
	       (axis >= AXIS_VPP && no_chunks(sp, c));
}

static bool descend(struct space *sp, struct candidate *c, int axis, int64_t *layers)
{
	struct ft_plan p;

	if (axis == AXES && ++sp->n_tried > MOST_TRIED)
		return false;
	if (axis == AXES)
		return !space_plan(sp, c, &p, layers) || idle_sharding(sp, c, &p) ||
		       add(sp, c);
	for (size_t i = 0; i < sp->axis[axis].n; i++) {
		c->at[axis] = (uint8_t)i;
		if (!hopeless(sp, c, axis) && !descend(sp, c, axis + 1, layers))
			return false;
	}
	c->at[axis] = 0;
	return true;
}

/* Of the axes that are searched the one with the most values, but those that were taken. */
static int widest(const struct space *sp, const bool taken[AXES])
{
	int best = -1;

	for (int i = 0; i < AXES; i++)
		if (!taken[i] && !sp->axis[i].stated &&
		    (best < 0 || sp->axis[i].n > sp->axis[best].n))
			best = i;
	return best;
}

/* Says which keys are worth stating. */
static bool too_many(const struct space *sp, struct ft_error *err)
{
	enum { TOLD = 4 };
	bool taken[AXES] = { false };
	char most[TOLD * 60] = "";

	for (int k = 0, i; k < TOLD && (i = widest(sp, taken)) >= 0; k++) {
		size_t n = strlen(most);

		taken[i] = true;
		snprintf(most + n, sizeof(most) - n, "%s%s (%zu)", k ? ", " : "",
			 keys[i], sp->axis[i].n);
	}
	return ft_fail(
		err, &sp->scenario->given->mark,
		"%.0e combinations are too many to search, of which more than %zu "
		"are legal; state some of the keys, or free fewer; those with the "
		"most values are %s",
		sp->combinations, sp->n ? sp->n - 1 : 0, most);
}

static bool stages_given(const struct space *sp, struct ft_error *err)
{
	const struct node *n =
		node_path(sp->scenario->given, "training.parallel.stage_layers");

	return !n ||
	       ft_fail(err, &n->mark,
		       "stage_layers leaves no pipeline to search; leave it out, or "
		       "simulate the plan as it is");
}

/* A key is refused that does nothing in any plan of the search: on these two axes it hangs whether one does. */
static bool no_vain_key(const struct space *sp, struct ft_error *err)
{
	const struct space_axis *sharding = &sp->axis[AXIS_SHARDING];
	const struct space_axis *recompute = &sp->axis[AXIS_RECOMPUTE];
	const struct ft_scenario *s = sp->scenario;
	struct arena mem = { 0 };
	struct ft_plan *plan =
		ARENA_ARRAY(&mem, sharding->n * recompute->n, struct ft_plan);
	size_t n = 0;
	bool ok;

	for (size_t i = 0; i < sharding->n; i++)
		for (size_t k = 0; k < recompute->n; k++) {
			plan[n] = *s->plan;
			plan[n].sharding = (enum ft_sharding)sharding->value[i];
			plan[n++].recompute = (enum ft_recompute)recompute->value[k];
		}
	ok = scenario_no_idle_key(s, node_get(s->given, "training"), plan, n, err);
	arena_release(&mem);
	return ok;
}

bool space_open(struct space *sp, const struct ft_scenario *s,
		const char *const *free_key, size_t n_free, struct ft_error *err)
{
	const struct node *sequence = node_path(s->given, "training.sequence_parallel");
	int64_t *layers = calloc((size_t)s->model->n_layers + 3, sizeof(*layers));
	struct candidate c = { .memory = 0 };
	bool ok;

	*sp = (struct space){ .scenario = s, .combinations = 1 };
	sp->unlike = calloc((size_t)s->model->n_layers + 1, sizeof(*sp->unlike));
	if (!layers || !sp->unlike)
		out_of_memory();
	sp->context = scenario_plan_context(s);
	sp->context.unlike = sp->unlike;
	sp->context.n_unlike = ft_model_unlike(s->model, sp->unlike);
	if (node_is_null(sequence))
		sequence = node_get(s->stack->defaults, "sequence_parallel");
	sp->wants_sequence_parallel = node_is_null(sequence) || !sequence->text ||
				      strcmp(sequence->text, "false") != 0;
	sp->gather_follows =
		node_is_null(node_path(s->given, "training.overlap.param_gather")) &&
		node_is_null(node_path(s->stack->defaults, "overlap.param_gather"));
	space_values(sp);
	ok = known_keys(free_key, n_free, err) && stages_given(sp, err) &&
	     hold_stated(sp, free_key, n_free, err) && no_vain_key(sp, err);
	for (int i = 0; i < AXES; i++)
		sp->combinations *= (double)sp->axis[i].n;
	if (ok && !descend(sp, &c, 0, layers))
		ok = too_many(sp, err);
	free(layers);
	if (!ok)
		space_close(sp);
	return ok;
}

void space_close(struct space *sp)
{
	free(sp->candidate);
	free(sp->unlike);
}
