/* traces/scan.c - layers as turns of a scan, as its header says */
#include "traces/scan.h"

#include "traces/block.h"
#include "traces/memory.h"
#include "traces/sharding.h"

bool is_stacked(const struct builder *b)
{
	return b->rules->scan_layers && b->plan->pp == 1;
}

static bool is_nested(const struct builder *b)
{
	return b->rules->one_program && b->plan->pp == 1 && b->plan->micro_batches > 1;
}

bool scan_keeps_weights(const struct builder *b, int64_t layer)
{
	return b->rules->scan_layers && layer_recompute(b, layer) == FT_RECOMPUTE_NONE;
}

double scan_saved_bytes(const struct builder *b, int64_t layer)
{
	struct layer_sizes s = sizes_of(b, layer);
	struct held of = b->unit[layer];
	double f = b->model->activation == FT_SWIGLU ? 4 * (double)s.f : 0;

	if (!scan_keeps_weights(b, layer))
		return 0;
	return 2 * (of.dense + of.experts) +
	       (double)s.tokens * (f + 7 * (double)(s.h * b->model->norms) +
				   4 * (double)(s.q + s.k));
}

void scan_casts(struct builder *b, struct held unit)
{
	if (b->rules->scan_layers && b->plan->master_weights)
		put_memory(b, "weight_casts", "cast", 6 * held_share(b, unit),
			   (int)unit.tensors);
}

void scan_keeps(struct builder *b, int64_t layer)
{
	if (b->rules->scan_layers)
		put_memory(
			b, "scan_keep", "copy",
			(b->rules->scan_kept_bytes + (is_nested(b) ? 2 : 0)) *
				layer_saved_bytes(b, layer, layer_recompute(b, layer)),
			8);
}

void scan_takes(struct builder *b, int64_t layer)
{
	struct layer_sizes s = sizes_of(b, layer);
	struct held of = b->unit[layer];
	double inputs = (double)(s.q + s.kv + s.out + s.h * b->model->norms);

	if (scan_keeps_weights(b, layer) && !has_peers(b, of))
		put_memory(b, "scan_take", "copy",
			   4 * (of.dense + of.experts + (double)s.tokens * inputs),
			   (int)of.tensors + 6);
}

void scan_gradients(struct builder *b, int64_t layer)
{
	struct held of = layer_held(b, layer);

	if (b->rules->scan_layers)
		put_memory(b, "scan_gradients", "cast", 10 * held_share(b, of),
			   (int)of.tensors);
}

struct held scan_laid(const struct builder *b, struct held unit, bool top)
{
	struct held all = { .dense = 0 };

	if (!is_stacked(b))
		return unit;
	for (int64_t l = 0; top && l < b->model->n_layers; l++)
		held_add(&all, layer_held(b, l));
	return all;
}

double scan_turn_bytes(const struct builder *b, struct held unit, bool top)
{
	return is_nested(b) ?
		       kept_gradient_width(b) * held_share(b, scan_laid(b, unit, top)) :
		       0;
}
