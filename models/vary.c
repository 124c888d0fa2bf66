/*
 * models/vary.c - a plan from another by changing sizes and words, without a document
 *
 * The rules are those of models/plan.c and models/recipe.c, which say what is wrong and
 * where; here a plan is legal or not, in under a microsecond. tests/test_search.c holds the
 * two against each other.
 */
#include "foretoken/models.h"

#include <string.h>

#include "base/limits.h"
#include "base/whole.h"
#include "models/interleave.h"
#include "models/recipe.h"
#include "models/schedule.h"
#include "models/stages.h"

static bool layer_splits(const struct ft_layer *l, const struct ft_plan *p)
{
	int64_t tp = p->tp, kv = l->kv_heads;

	return l->linear_heads % tp == 0 && l->linear_key_heads % tp == 0 &&
	       l->heads % tp == 0 && (kv % tp == 0 || tp % kv == 0) &&
	       l->intermediate % tp == 0 && l->shared_intermediate % tp == 0 &&
	       l->experts % p->ep == 0 && l->expert_intermediate % p->etp == 0;
}

static bool experts_fit(struct ft_plan *p, const struct ft_model *m)
{
	int64_t within = p->tp * p->cp * p->dp;
	bool routed = false;

	for (int64_t i = 0; i < m->n_layers && !routed; i++)
		routed = m->layer[i].experts;
	if (!routed)
		p->ep = p->etp = 1;
	else if (p->tp > 1 && !p->sequence_parallel)
		return false;
	if (p->ep * p->etp > within || within % (p->ep * p->etp))
		return false;
	p->edp = within / (p->ep * p->etp);
	return true;
}

static bool unlike_before(const struct ft_model *m, int64_t layer)
{
	return !layer ||
	       memcmp(&m->layer[layer], &m->layer[layer - 1], sizeof(*m->layer)) != 0;
}

size_t ft_model_unlike(const struct ft_model *m, int64_t *unlike)
{
	size_t n = 0;

	for (int64_t i = 0; i < m->n_layers; i++)
		if (unlike_before(m, i))
			unlike[n++] = i;
	return n;
}

static bool layers_split(const struct ft_plan *p, const struct ft_model *m,
			 const struct ft_plan_context *context)
{
	for (size_t i = 0; i < context->n_unlike; i++)
		if (!layer_splits(&m->layer[context->unlike[i]], p))
			return false;
	for (int64_t i = 0; !context->unlike && i < m->n_layers; i++)
		if (unlike_before(m, i) && !layer_splits(&m->layer[i], p))
			return false;
	return true;
}

static bool sequence_splits(const struct ft_plan *p, bool no_context)
{
	if (p->cp > 1 && (no_context || p->sequence % (2 * p->cp)))
		return false;
	return !p->sequence_parallel || p->sequence / p->cp % p->tp == 0;
}

static bool batch_divides(struct ft_plan *p, bool ragged)
{
	int64_t mine = p->global_batch / p->dp;

	if (p->global_batch % (ragged ? p->dp : p->dp * p->micro_batch))
		return false;
	p->micro_batches = ceil_div(mine, p->micro_batch);
	p->last_micro_batch = mine - (p->micro_batches - 1) * p->micro_batch;
	return schedule_flushes(p) &&
	       (double)p->pp * (double)p->vpp * (double)p->micro_batches <=
		       LIMIT_CHUNK_RUNS;
}

static bool recipe_fits(struct ft_plan *p, const struct ft_model *m)
{
	int64_t same = p->dp * p->cp;

	if (p->capacity_factor > CAPACITY_MOST || p->recompute_layers > m->n_layers ||
	    p->offload_layers > m->n_layers || plan_offload_wrong(p))
		return false;
	if (p->recompute != FT_RECOMPUTE_FULL)
		p->recompute_layers = 0;
	else if (p->recompute_layers < 0)
		p->recompute_layers = m->n_layers;
	if (p->zero_group && ft_plan_zero(p) && same % p->zero_group)
		return false;
	if (!p->zero_group || !ft_plan_zero(p))
		p->zero_group = same;
	return true;
}

static bool schedule_fits(struct ft_plan *p)
{
	if (p->schedule == FT_1F1B && p->vpp > 1)
		p->schedule = FT_INTERLEAVED;
	if (p->schedule == FT_INTERLEAVED && p->vpp == 1)
		p->schedule = FT_1F1B;
	if (p->schedule == FT_DUALPIPEV && (p->pp == 1 || ft_plan_run(p) < 2 * p->pp))
		return false;
	if (ft_schedule_folds(p->schedule) && p->pp > 1)
		return p->vpp == 2;
	return p->schedule == FT_GPIPE ? p->vpp == 1 : interleave_ends(p);
}

static bool shard_fits(struct ft_plan *p, int64_t ranks_per_node)
{
	int64_t same = p->dp * p->cp, given = p->shard;

	switch (p->sharding) {
	case FT_ALONE:
		p->shard = 1;
		return same == 1;
	case FT_DDP:
		p->shard = 1;
		return true;
	case FT_ZERO1:
	case FT_ZERO2:
		p->shard = p->zero_group;
		return true;
	case FT_FSDP:
		p->shard = same;
		return true;
	default:
		p->shard = given > 0 ? given : ft_plan_near_shard(p, ranks_per_node);
		return same % p->shard == 0;
	}
}

bool ft_plan_vary(struct ft_plan *p, const struct ft_model *m,
		  const struct ft_plan_context *context, int64_t *stage_layers)
{
	p->ranks = context->ranks;
	p->ranks_per_node = context->ranks_per_node;
	if (p->pp == 1)
		p->vpp = 1;
	if (p->tp * p->pp > p->ranks || p->tp * p->pp * p->cp > p->ranks ||
	    p->ranks % (p->tp * p->pp * p->cp))
		return false;
	p->dp = p->ranks / (p->tp * p->pp * p->cp);
	p->sequence_parallel = p->sequence_parallel && p->tp > 1;
	p->reshard_after_forward = plan_reshards(p);
	plan_unwrap(p, context);
	/* that of all layers last: it takes longest */
	if (!experts_fit(p, m) || !sequence_splits(p, context->no_context != NULL) ||
	    !batch_divides(p, context->ragged_batch) || !recipe_fits(p, m) ||
	    !schedule_fits(p) || !shard_fits(p, context->ranks_per_node) ||
	    (!context->pairs_again && ft_plan_pairs_again(p)) ||
	    !layers_split(p, m, context))
		return false;
	p->stage_layers = stage_layers;
	return stages_even_into(stage_layers, m->n_layers, p->pp * p->vpp);
}
