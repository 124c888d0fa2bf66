/*
 * traces/scan.c - layers as turns of a scan: what it stacks
 *
 * XLA keeps what a turn leaves for its backward, and the gradients of its weights, in arrays with a
 * row for each layer. Bytes moved, counted from its kernels in steps on an H100
 * (measurements/probes/h100-2026-11-26-jax-unseen.jsonl.gz):
 *   weights            6 a parameter of the rank, to 16 bit where a unit's pass begins
 *   what is kept       3 a byte: zeros, then out of the product that made it and into its row
 *   gradients, fp32    10 a parameter of the rank: zeros (4), then from 16 bit into its row (6)
 *
 * Where nothing is computed again a turn keeps more than PyTorch's layers do, as JAX's autodiff keeps each
 * operation's numbers: a token 4 f bytes of a gate, 7 h of a norm, which is in fp32, and 4 of each number
 * that is rotated; and its gathered weights in 16 bit. Counted from the program; the peaks of the two models
 * that it was counted beside are met within 2 %, of three others within 7.
 */
#include "traces/block.h"

bool is_stacked(const struct builder *b)
{
	return b->rules->scan_layers && b->plan->pp == 1;
}

double scan_saved_bytes(const struct builder *b, int64_t layer)
{
	struct layer_sizes s = sizes_of(b, layer);
	struct held of = b->unit[layer];
	double f = b->model->activation == FT_SWIGLU ? 4 * (double)s.f : 0;

	if (!b->rules->scan_layers || layer_recompute(b, layer) != FT_RECOMPUTE_NONE)
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
		put_memory(b, "scan_keep", "copy",
			   3 * layer_saved_bytes(b, layer, layer_recompute(b, layer)),
			   8);
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
