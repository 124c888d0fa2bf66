/* study/space_values.c - what each axis of a search is tried with */
#include <assert.h>
#include <string.h>

#include "study/space.h"

enum { MOST_MICRO_BATCH = 16, LEAST_TOKENS_OF_CP = 1024 };

static void put(struct space_axis *a, int64_t value)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->value[i] == value)
			return;
	if (a->n < AXIS_VALUES)
		a->value[a->n++] = value;
}

static void divisors(struct space_axis *a, int64_t of, int64_t most)
{
	for (int64_t i = 1; i <= of && i <= most; i++)
		if (of % i == 0)
			put(a, i);
}

const struct ft_layer *space_routed_layer(const struct ft_model *m)
{
	for (int64_t i = 0; i < m->n_layers; i++)
		if (m->layer[i].experts)
			return &m->layer[i];
	return NULL;
}

static void sizes(struct space *sp)
{
	const struct ft_scenario *s = sp->scenario;
	const struct ft_layer *routed = space_routed_layer(s->model);
	int64_t ranks = s->cluster->ranks, domain = s->cluster->domain_ranks;
	int64_t tokens = s->plan->sequence;

	divisors(&sp->axis[AXIS_TP], ranks, domain);
	divisors(&sp->axis[AXIS_PP], ranks, s->model->n_layers + 2);
	put(&sp->axis[AXIS_CP], 1);
	for (int64_t cp = 2; cp <= ranks && tokens / cp >= LEAST_TOKENS_OF_CP; cp++)
		if (ranks % cp == 0 && tokens % (2 * cp) == 0)
			put(&sp->axis[AXIS_CP], cp);
	divisors(&sp->axis[AXIS_EP], routed ? routed->experts : 1, ranks);
	divisors(&sp->axis[AXIS_ETP], routed ? routed->expert_intermediate : 1,
		 domain < 8 ? domain : 8);
	for (int64_t i = 1; i <= MOST_MICRO_BATCH; i++)
		put(&sp->axis[AXIS_MICRO_BATCH], i);
	for (int64_t i = 1; i <= s->model->n_layers; i++)
		put(&sp->axis[AXIS_VPP], i);
}

bool space_is_torch(const struct ft_stack *stack)
{
	return stack->layout.tensor_parallel == FT_TP_DTENSOR ||
	       stack->layout.fsdp_copy_in_bytes > 0;
}

/* What the framework of a stack has; where nobody named it, all. */
static void shardings(struct space *sp, bool all)
{
	const struct ft_stack *k = sp->scenario->stack;
	struct space_axis *a = &sp->axis[AXIS_SHARDING];
	bool torch = space_is_torch(k);

	all |= k->unnamed || k->runs.sharding != FT_RUNS_ALL;
	put(a, sp->scenario->plan->sharding);
	if (all || !torch)
		put(a, FT_ZERO1);
	if (all || torch)
		put(a, FT_FSDP);
	if (all || torch)
		put(a, FT_HSDP);
	put(a, FT_DDP);
	if ((all || torch) && ft_stack_runs(k, "none"))
		put(a, FT_ALONE);
	if (all)
		put(a, FT_ZERO2);
}

static void modules(struct space *sp)
{
	struct space_axis *a = &sp->axis[AXIS_MODULES];
	const struct ft_layer *routed = space_routed_layer(sp->scenario->model);
	bool latent = routed && (routed->kv_lora_rank || routed->compressed);
	bool streams = sp->scenario->model->streams > 1;
	unsigned up =
		(latent ? FT_MODULE_MLA_UP : 0) | (streams ? FT_MODULE_STREAMS : 0);

	put(a, sp->scenario->plan->recompute_modules);
	if (!routed) { /* no framework recomputes a dense MLP's activation alone */
		put(a, FT_MODULE_NORM);
		put(a, FT_MODULE_CORE_ATTENTION | FT_MODULE_NORM);
		put(a, FT_MODULE_MLP);
		return;
	}
	put(a, FT_MODULE_ACTIVATION);
	put(a, FT_MODULE_ACTIVATION | FT_MODULE_NORM | up);
	if (!routed->compressed) /* whose attention runs again with its layer alone */
		put(a, FT_MODULE_CORE_ATTENTION | FT_MODULE_ACTIVATION |
			       FT_MODULE_NORM | up);
	put(a, FT_MODULE_EXPERTS | FT_MODULE_NORM | up);
}

static void words(struct space *sp)
{
	const struct ft_plan *p = sp->scenario->plan;
	int64_t layers = sp->scenario->model->n_layers;
	const struct {
		enum axis axis;
		bool value;
	} overlap[] = {
		{ AXIS_OVERLAP_TP, p->overlap_tp },
		{ AXIS_OVERLAP_DP, p->overlap_dp },
		{ AXIS_OVERLAP_PP, p->overlap_pp },
		{ AXIS_OVERLAP_EP, p->overlap_ep },
	};

	put(&sp->axis[AXIS_SCHEDULE], FT_1F1B);
	put(&sp->axis[AXIS_SCHEDULE], FT_GPIPE);
	if (sp->scenario->stack->layout.split_backward) {
		put(&sp->axis[AXIS_SCHEDULE], FT_ZERO_BUBBLE);
		put(&sp->axis[AXIS_SCHEDULE], FT_ZBV);
		if (sp->scenario->stack->layout.dual_pipe)
			put(&sp->axis[AXIS_SCHEDULE], FT_DUALPIPEV);
	}
	put(&sp->axis[AXIS_ZERO_GROUP], 0);
	put(&sp->axis[AXIS_ZERO_GROUP], sp->scenario->cluster->ranks_per_node);
	put(&sp->axis[AXIS_SHARD], 0);
	for (int i = 0; i < 3; i++)
		put(&sp->axis[AXIS_RECOMPUTE], i);
	modules(sp);
	put(&sp->axis[AXIS_LAYERS], -1);
	for (int64_t i = 3; i; i--) {
		bool strides = sp->scenario->stack->runs.recompute_by_stride;
		int64_t some = strides ? layers / (5 - i) : layers * i / 4;

		if (some > 0)
			put(&sp->axis[AXIS_LAYERS], some);
	}
	put(&sp->axis[AXIS_OFFLOAD], p->offload_layers);
	for (int i = 0; i < 4; i++)
		put(&sp->axis[overlap[i].axis], overlap[i].value);
}

/* Searched when it is asked for only: the model of it is too kind, or the stack does not
 * have it. */
void space_on_demand(struct space *sp, enum axis axis)
{
	struct space_axis *a = &sp->axis[axis];
	int64_t layers = sp->scenario->model->n_layers;

	if (axis >= AXIS_OVERLAP_TP) {
		put(a, false);
		put(a, true);
	}
	for (int64_t i = 0; axis == AXIS_OFFLOAD && i <= 4; i++)
		put(a, layers * i / 4);
	if (axis == AXIS_SHARDING)
		shardings(sp, true);
	if (axis == AXIS_SHARD || axis == AXIS_ZERO_GROUP)
		divisors(a, sp->scenario->cluster->ranks, 4096);
}

void space_values(struct space *sp)
{
	sizes(sp);
	shardings(sp, false);
	words(sp);
}

static void note(struct space *sp, const char *word)
{
	for (size_t i = 0; i < sp->n_left_out; i++)
		if (!strcmp(sp->left_out[i], word))
			return;
	assert(sp->n_left_out < FT_LEFT_OUT);
	sp->left_out[sp->n_left_out++] = word;
}

void space_leave_out(struct space *sp, enum axis axis)
{
	struct space_axis *a = &sp->axis[axis];
	bool size = axis <= AXIS_ETP || axis == AXIS_VPP;
	size_t n = 0;

	for (size_t i = 0; i < a->n && (size || axis == AXIS_SHARDING); i++) {
		const char *word =
			size ? strrchr(space_key(axis), '.') + 1 :
			       ft_sharding_name((enum ft_sharding)a->value[i]);

		if ((size && a->value[i] == 1) ||
		    ft_stack_runs(sp->scenario->stack, word))
			a->value[n++] = a->value[i];
		else
			note(sp, word);
	}
	if (n) /* else: what the stack itself says goes without saying, which is refused */
		a->n = n;
}
