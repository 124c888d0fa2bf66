/* traces/autocast.c - what autocast makes a layer do and keep more: traces/autocast.h */
#include "traces/autocast.h"

#include "traces/block.h"

bool under_autocast(const struct builder *b)
{
	return b->autocast || b->rules->autocast_always;
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
	double n = s->linear || s->l->kv_lora_rank || joins_qkv(b) ? 0 :
		   s->l->shares_kv				   ? 0 :
								     2;

	return n + (mlp && gated && !joins_gate_up(b) ? 1 : 0);
}

double autocast_kept(const struct builder *b, const struct layer_sizes *s)
{
	double h = (double)s->h / (double)b->plan->tp, kept = 0;
	double norms = (double)ft_layer_norms(b->model, s->l);
	bool layer_norm = b->model->norm == FT_LAYER_NORM;

	if (b->autocast && b->model->activation != FT_SWIGLU)
		kept += 6;
	if (!writes_wide(b))
		return kept * h;
	if (casts_norms(b))
		kept += 2 * norms;
	else if (!layer_norm && norms_in_operations(b) && !b->model->wide_norms)
		kept += 2 * norms;
	return (kept + 2 * further(b, s)) * h;
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
