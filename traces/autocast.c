/* traces/autocast.c - what autocast makes a layer do and keep more: traces/autocast.h */
#include "traces/autocast.h"

#include "traces/block.h"

bool under_autocast(const struct builder *b)
{
	return b->autocast || b->rules->autocast_always;
}

static bool has_wide_weights(const struct ft_plan *p,
			     const struct ft_layout_rules *rules)
{
	bool frozen = p->lora.rank > 0;

	return rules->autocast && p->master_weights && !ft_plan_divides(p) &&
	       (!frozen || p->lora.frozen == FT_FP32);
}

bool ft_plan_wide_experts(const struct ft_plan *p, const struct ft_layout_rules *rules)
{
	return rules->experts_as_weights && has_wide_weights(p, rules);
}

bool ft_plan_experts_break(const struct ft_plan *p, const struct ft_layout_rules *rules)
{
	return rules->wide_experts_break && has_wide_weights(p, rules);
}

bool experts_in_fp32(const struct builder *b)
{
	return ft_plan_wide_experts(b->plan, b->rules);
}

double experts_width(const struct builder *b)
{
	return experts_in_fp32(b) ? 2 : 1;
}

double cast_by_autocast(const struct builder *b, struct held unit)
{
	return unit.dense + (experts_in_fp32(b) ? 0 : unit.experts);
}

static bool is_apart(const struct builder *b)
{
	return b->rules->fusion == FT_FUSION_EAGER || by_operation(b);
}

/* Is what a norm writes in fp32, so that each product behind it casts it? */
static bool writes_wide(const struct builder *b)
{
	return under_autocast(b) && is_apart(b) &&
	       (b->autocast || b->model->norm == FT_LAYER_NORM);
}

/* LayerNorms that autocast runs in fp32 between numbers of 16 bit. */
static bool casts_norms(const struct builder *b)
{
	return writes_wide(b) && !b->autocast;
}

/* Products that read the first norm's output beyond one, and the second's. */
static double further(const struct builder *b, const struct layer_sizes *s)
{
	bool gated = b->model->activation == FT_SWIGLU;
	bool mlp = ft_layer_has_mlp(s->l) && !s->l->experts;
	bool one = s->linear || s->l->kv_lora_rank || joins_qkv(b) || s->l->shares_kv;
	bool shared = mlp && s->beside && b->model->norms < 2; /* the MLP's, too */

	return (one ? 0 : 2) + (!one && s->gates ? 1 : 0) + (shared ? 1 : 0) +
	       (mlp && gated && !joins_gate_up(b) ? 1 : 0);
}

/* Of the norms' inputs in fp32, beyond the 2 of each that any layer keeps, and of what norms in operations multiply. Side by
 * side norms read one input, which is counted once: in fp32 they share it, of 16 bit each has its own copy. Norms that run
 * again keep their input as it comes. */
static double norms_kept(const struct builder *b, const struct layer_sizes *s,
			 bool again)
{
	double norms = (double)ft_layer_norms(b->model, s->l);
	bool in_operations = norms_in_operations(b) && !b->model->wide_norms;
	bool own = casts_norms(b);

	if (own && again)
		return 0;
	if (b->model->norm != FT_LAYER_NORM)
		return b->autocast && is_apart(b) && in_operations ? 2 * norms : 0;
	if (!s->beside)
		return 2 * norms;
	return 4 * (own ? norms : 1) - 2;
}

double autocast_kept(const struct builder *b, const struct layer_sizes *s, bool again)
{
	double h = (double)s->h / (double)b->plan->tp, kept = 0;
	bool gated = b->model->activation == FT_SWIGLU;

	if (b->autocast && !gated)
		kept += b->model->norm == FT_LAYER_NORM ? 2 : 6;
	if (b->autocast || casts_norms(b))
		kept += norms_kept(b, s, again);
	if (writes_wide(b) && !again)
		kept += 2 * further(b, s);
	return kept * h;
}

void put_autocast(struct builder *b, const struct layer_sizes *s, bool backward)
{
	double norms = (double)ft_layer_norms(b->model, s->l), more = further(b, s);
	double h = (double)(s->h * s->part);

	if (!casts_norms(b))
		return;
	put_memory(b, backward ? "autocast_back" : "autocast", "cast_autocast",
		   (16 * norms + (backward ? 12 : 6) * more) * h,
		   (int)(2 * norms + (backward ? 2 : 1) * more));
}
