/*
 * traces/memory.c - bytes that segments take; what is held all step long is in base_bytes.c
 *
 * While a layer of PyTorch's FSDP runs backward (W its parameters, R the root's, E the head's):
 *   2W gathered, 2W copied out of or, of the layer below, into, 2R + 2E the root's wait, g W what the layer above packed,
 *   and 2 t (h + f) + 2 h f its own gradients, for t tokens
 * Checked against allocator peaks of measured steps by `make validate`.
 */
#include <math.h>

#include "traces/autocast.h"
#include "traces/block.h"
#include "traces/casts.h"
#include "traces/indexed.h"
#include "traces/memory.h"
#include "traces/memory_ends.h"
#include "traces/scan.h"
#include "traces/sharding.h"

/* The weights of a unit, gathered. */
double whole_bytes(struct held unit)
{
	return 2 * (unit.dense + unit.experts) + unit.frozen + unit.frozen_experts;
}

void takes(struct builder *b, enum ft_memory category, double net, double peak)
{
	b->seg->net_bytes[category] += net;
	b->seg->peak_bytes[category] += peak;
}

/* The buffer that a unit's weights are copied out of, or that the next ones are gathered into. */
static double copied_bytes(const struct builder *b, struct held unit)
{
	unit = of_fsdp(b, unit);
	return b->rules->fsdp_copy_out_bytes > 0 ? 2 * (unit.dense + unit.experts) : 0;
}

/* Whole weights of one unit while it runs: gathered, and copied out. */
double unit_bytes(const struct builder *b, struct held unit)
{
	return is_fsdp(b->plan) ?
		       copied_bytes(b, unit) + whole_bytes(of_fsdp(b, unit)) :
		       0;
}

void unit_comes(struct builder *b, struct held unit, bool gathered)
{
	double whole =
		b->plan->reshard_after_forward ? 0 : whole_bytes(of_fsdp(b, unit));

	if (gathered)
		takes(b, FT_MEMORY_OTHER, 0, unit_bytes(b, unit) - whole);
	if (!holds_units(b)) /* else counted as held all step long */
		takes(b, FT_MEMORY_WEIGHTS, whole, whole);
}

void gathers_below(struct builder *b, int64_t layer, bool lowest)
{
	struct held unit = of_fsdp(b, b->unit[layer]);

	if (!has_peers(b, unit))
		return;
	if (lowest)
		takes(b, FT_MEMORY_OTHER, 0, -copied_bytes(b, unit));
	else if (b->rules->flat_shards)
		takes(b, FT_MEMORY_OTHER, 0,
		      whole_bytes(layer ? of_fsdp(b, layer_held(b, layer - 1)) : unit));
}

void unit_goes(struct builder *b, struct held unit)
{
	if (!b->plan->reshard_after_forward && !holds_units(b))
		takes(b, FT_MEMORY_WEIGHTS, -whole_bytes(of_fsdp(b, unit)), 0);
}

/* A split backward: what weights' gradients need stays until they are computed. */
static void split_bytes(struct builder *b, double later, double saved, double whole)
{
	if (b->part == PART_WEIGHTS)
		takes(b, FT_MEMORY_ACTIVATIONS, -later, 0);
	else
		takes(b, FT_MEMORY_ACTIVATIONS, later - saved, whole - saved);
}

void gradient_waits(struct builder *b, double elements)
{
	takes(b, FT_MEMORY_ACTIVATIONS, (b->part == PART_INPUTS ? 2 : -2) * elements,
	      0);
}

/* A rank that gathers from nobody gathers no unit ahead, so that what it copied is gone when
 * gradients come. */
static double copied_alone_bytes(const struct builder *b, struct held unit)
{
	return is_fsdp(b->plan) && !has_peers(b, unit) ? copied_bytes(b, unit) : 0;
}

/* Gradients at a layer's fullest moment: behind its MLP's second product in backward those of the
 * layer's output, of that product's input and of its weights; or, where a unit's gradients are packed when all are there, behind its first
 * those of all its weights, with less kept; or those of scores that are written, beside them. Megatron's kernels were counted
 * without, see saved.c. Source: peaks of an H100 at 16,384 to 65,536 tokens, where they are the
 * largest part that was missing (h100-long-sequences); 299 other peaks of PyTorch. */
static double layer_gradient_bytes(const struct builder *b, int64_t layer)
{
	struct layer_sizes s = sizes_of(b, layer);
	const struct ft_layer *l = s.l;
	double tokens = (double)s.tokens, h = (double)s.h, f = (double)s.f;
	double each = (double)l->expert_intermediate / (double)b->plan->etp;
	double held = (double)l->experts / (double)b->plan->ep;
	double copies = (double)experts_used(b, l) * (double)s.part;
	double inner = (double)ft_layer_expert_hidden(b->model, l);
	double wide = experts_width(b);
	double weights = b->plan->lora.rank ? 0 : h * f + wide * inner * held * each;
	double products = b->model->activation == FT_SWIGLU ? 3 : 2;
	double scores = score_gradients(b, &s), first = 0;

	if (b->rules->fusion == FT_FUSION_KERNELS)
		return 0;
	if (is_fsdp(b->plan) && b->rules->fsdp_copy_grad_bytes > 0) {
		first = 2 * (products * weights + tokens * h + wide * copies * inner -
			     products * (tokens * f + wide * copies * each));
		scores += scores > 0 ? 2 * products * weights : 0;
	}
	return fmax(2 * (tokens * (h + f) + wide * copies * each + weights),
		    fmax(first, scores));
}

/* Autocast's copies of weights stay for the backward pass, which frees them. Those of a layer that runs again are held by
 * autocast alone; where only the forward pass runs under it (Trainer, and loops as PyTorch's documents advise) they go with the loss, or with the layer where autocast has no cache, and are made anew by the
 * backward pass. Source: PyTorch's autocast_mode.cpp (cached_cast, clear_cache), Transformers' Trainer.compute_loss under
 * compute_loss_context_manager (read 2026-11-29). */
static bool copies_go_early(const struct builder *b, int64_t layer)
{
	return b->autocast && b->rules->backward_outside_autocast && b->plan->pp == 1 &&
	       !b->model->predicted && layer_recompute(b, layer) == FT_RECOMPUTE_FULL;
}

static double copies_of(const struct builder *b, struct held unit)
{
	return 2 * cast_by_autocast(b, unit);
}

double early_copies(const struct builder *b)
{
	double sum = 0;

	for (int64_t l = 0; l < b->model->n_layers; l++)
		sum += copies_go_early(b, l) ? copies_of(b, b->unit[l]) : 0;
	return b->rules->uncached_autocast ? 0 : sum;
}

void copies_bytes(struct builder *b, double copies, bool backward, bool again)
{
	if (!b->autocast || b->part == PART_WEIGHTS)
		return;
	if (again)
		takes(b, FT_MEMORY_OTHER,
		      backward || b->rules->uncached_autocast ? 0 : copies, copies);
	else
		takes(b, FT_MEMORY_OTHER, backward ? -copies : copies,
		      backward ? 0 : copies);
}

/* A choice that is made by operations has its scores twice, one by kernels a square of them, while half of what a layer keeps is
 * there, and none of its gradients: what that takes more than the layer's fullest moment. */
static double beside_choice(const struct builder *b, int64_t layer, bool backward,
			    double again, double gradients)
{
	double scores = choice_bytes(b, layer);

	if (backward &&
	    (!(again > 0) || b->part == PART_WEIGHTS || !chooses_again(b, layer)))
		return 0; /* it is not made again */
	if (!backward)
		return fmax(0, scores - layer_saved_bytes(b, layer,
							  layer_recompute(b, layer)) /
						2);
	return fmax(0, scores - again / 2 - gradients);
}

void layer_bytes(struct builder *b, int64_t layer, bool backward)
{
	double saved = layer_saved_bytes(b, layer, layer_recompute(b, layer));
	double whole = layer_saved_bytes(b, layer, FT_RECOMPUTE_NONE);
	double again = whole - saved;
	double goes = is_stacked(b) ? 0 : saved; /* with its own backward */
	double gradients = fmax(0, layer_gradient_bytes(b, layer) -
					   copied_alone_bytes(b, layer_held(b, layer)));

	copies_bytes(b, copies_of(b, layer_held(b, layer)), backward,
		     copies_go_early(b, layer));
	if (b->part != PART_WEIGHTS)
		takes(b, FT_MEMORY_ACTIVATIONS, 0,
		      (backward ? 2 : 1) * gathered_context_bytes(b, layer));
	if (backward && b->part != PART_WEIGHTS)
		takes(b, FT_MEMORY_ACTIVATIONS, 0, gradients);
	takes(b, FT_MEMORY_ACTIVATIONS, 0,
	      beside_choice(b, layer, backward, again, gradients));
	if (b->offload[layer]) { /* on its way out, or back again */
		takes(b, FT_MEMORY_ACTIVATIONS, 0, b->part == PART_WEIGHTS ? 0 : whole);
		saved = again = goes = 0;
	}
	if (b->part != PART_WHOLE)
		split_bytes(b, layer_deferred_bytes(b, layer), saved, saved + again);
	else
		takes(b, FT_MEMORY_ACTIVATIONS, backward ? -goes : saved,
		      backward ? again : saved);
}

/* What a turn of a scan keeps on the GPU: where it waits in host memory, nothing. */
static double stacked_bytes(const struct builder *b, int64_t layer)
{
	return is_stacked(b) && !b->offload[layer] ?
		       layer_saved_bytes(b, layer, layer_recompute(b, layer)) :
		       0;
}

void layer_beside_scan(struct builder *b, int64_t layer)
{
	takes(b, FT_MEMORY_ACTIVATIONS, -stacked_bytes(b, layer), 0);
}

/* Behind the scan's backward what its turns kept goes, all of it. */
void scan_ends(struct builder *b)
{
	double kept = 0, turn = 0;

	if (!b->rules->scan_layers && !b->rules->one_program)
		return;
	for (int64_t l = 0; l < b->model->n_layers; l++) {
		kept += stacked_bytes(b, l);
		turn += scan_turn_bytes(b, layer_held(b, l),
					l == b->model->n_layers - 1);
	}
	takes(b, FT_MEMORY_ACTIVATIONS, -kept, -kept);
	takes(b, FT_MEMORY_GRADIENTS, -turn, 0);
}

/* Bytes of the root beside a layer's backward: its weights, unless they are counted since forward, and the head's gradient. */
static double root_beside(const struct builder *b, struct held root, bool head)
{
	return (b->plan->reshard_after_forward ? whole_bytes(root) : 0) +
	       (head ? 2 * head_weights(b) : 0);
}

/* Behind the head's backward the root stays gathered until its own, with the head's gradient: a
 * root unit is not resharded behind its forward, and reduced last (torch.distributed.fsdp). */
void root_waits(struct builder *b, struct held root, bool head)
{
	if (b->rules->fsdp_copy_grad_bytes > 0)
		takes(b, FT_MEMORY_OTHER, 0, root_beside(b, root, head));
}

/* Weights that are counted all step long and that a unit gave back before its gradients were packed. */
static double given_back(const struct builder *b, struct held unit)
{
	return keeps_units(b) ? whole_bytes(unit) : 0;
}

/* Packed gradients are held until those of the next unit are packed; a flat one goes when it is reduced. */
void packed_waits(struct builder *b, struct held unit)
{
	unit = of_fsdp(b, unit);
	if (b->rules->fsdp_copy_grad_bytes > 0 && !b->rules->flat_shards)
		takes(b, FT_MEMORY_OTHER, 0,
		      gradient_width(b) * (unit.dense + unit.experts) -
			      given_back(b, unit));
}

/* Bytes of the gradients of a unit of n parameters while they are packed: in 16 bit (or as they were added up, which is
 * counted), and packed. A flat one is in one piece: it stays while it is cast, if it is, and while its shard is made, if it has one. Source: what
 * is allocated at the peak of two mixtures under FSDP1 (measurements/probes/h200-2026-11-30-peaks-unseen). */
static double packing(const struct builder *b, struct held unit)
{
	double n = unit.dense + unit.experts, width = gradient_width(b);

	if (b->rules->flat_shards)
		return 2 * n + (width > 2 ? width * n : 0) +
		       (has_peers(b, unit) ? width * held_share(b, unit) : 0);
	return ((sums_whole(b) ? 0 : 2) + width) * n;
}

/* While a layer's gradients are packed nothing of its activations is left, nor its weights; the next unit is there. That
 * is more than the layer's fullest moment where its weights are many for its tokens. Source: FSDP2's post_backward. */
void packing_bytes(struct builder *b, int64_t layer, bool lowest, struct held root,
		   bool head)
{
	const double *peak = b->seg->peak_bytes;
	struct held unit = of_fsdp(b, b->unit[layer]);
	double fullest = peak[FT_MEMORY_ACTIVATIONS] + peak[FT_MEMORY_GRADIENTS] +
			 peak[FT_MEMORY_OTHER];
	double bytes = packing(b, unit) + root_beside(b, root, head) -
		       given_back(b, unit) + b->seg->net_bytes[FT_MEMORY_ACTIVATIONS] +
		       b->seg->net_bytes[FT_MEMORY_WEIGHTS];

	if (b->rules->fsdp_copy_grad_bytes <= 0 || b->part != PART_WHOLE)
		return;
	if (!lowest && has_peers(b, unit) && b->plan->reshard_after_forward)
		bytes += b->rules->flat_shards ?
				 whole_bytes(of_fsdp(b, layer_held(b, layer - 1))) :
				 copied_bytes(b, layer_held(b, layer - 1));
	takes(b, FT_MEMORY_OTHER, 0, fmax(0, bytes - fullest));
}

double flush_frees(const struct builder *b, struct held stage, bool reduces)
{
	double all = stage.dense + stage.experts;
	double shards = kept_gradient_width(b) * held_share(b, stage);
	double whole = holds_units(b) ? whole_bytes(of_fsdp(b, stage)) : 0;

	if (!reduces)
		return keeps_units(b) ? 0 : whole;
	/* of several runs the shards are held all step long */
	return whole + gradient_width(b) * all - (flush_reduces(b) ? 0 : shards);
}

/* Packed, one unit behind the other. */
void reduced_bytes(struct builder *b, struct held unit)
{
	double *peak = &b->seg->peak_bytes[FT_MEMORY_OTHER];

	unit = of_fsdp(b, unit);
	*peak = fmax(*peak, gradient_width(b) * (unit.dense + unit.experts));
}

/* Of shards in fp32 the optimizer wants gradients in fp32, in whatever they were reduced. */
double kept_gradient_width(const struct builder *b)
{
	bool wide = (b->rules->fsdp_copy_grad_bytes > 0 || b->rules->one_program) &&
		    b->plan->master_weights;

	return is_fsdp(b->plan) && wide ? 4 : gradient_width(b);
}

/* The root's reduction, the last: first its gradients in 16 bit and packed, when its shard's
 * are not there yet; then packed and reduced, once more where they are widened, and, if there
 * are others to reduce with, the embedding's gradient still. Source: peaks on 1 to 8 H100. */
void reduce_bytes(struct builder *b, struct held root)
{
	double n = root.dense + root.experts, width = gradient_width(b);
	double shard = held_share(b, root);
	double kept = kept_gradient_width(b), behind = kept > width ? width * shard : 0;

	if (b->g->group[FT_GROUP_SHARD].size > 1)
		behind += 2 *
			  (double)ft_model_embedding_parameters(b->model, b->plan->tp) /
			  (double)b->plan->tp;
	if (b->rules->flat_shards)
		takes(b, FT_MEMORY_OTHER, 0, packing(b, root) - width * shard);
	else
		takes(b, FT_MEMORY_OTHER, 0,
		      b->rules->fsdp_copy_grad_bytes > 0 ?
			      width * n + fmax(2 * n - kept * shard, behind) :
			      unit_bytes(b, root));
}
