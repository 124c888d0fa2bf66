/*
 * traces/memory_ends.c - bytes at the ends of a model: the head, its logits and the loss, the embedding's gradient, and
 * what a pass returns
 */
#include "traces/memory_ends.h"

#include <math.h>

#include "traces/autocast.h"
#include "traces/block.h"
#include "traces/memory.h"
#include "traces/offload.h"
#include "traces/sharding.h"

/* PyTorch's DDP clones what a pass returns where it looks for unused parameters (_DDPSink in torch/nn/parallel/distributed.py). Trainer
 * asks for that unless layers are recomputed, of adapters always (transformers/trainer.py, ddp_find_unused_parameters). Both read 2026-11-29. */
bool copies_outputs(const struct builder *b)
{
	const struct ft_plan *p = b->plan;
	bool again = p->recompute == FT_RECOMPUTE_FULL ?
			     p->recompute_layers > 0 :
			     p->recompute != FT_RECOMPUTE_NONE;

	return b->rules->copied_outputs && p->sharding == FT_DDP && p->dp * p->cp > 1 &&
	       (!again || p->lora.rank > 0);
}

/* Of a fused loss, bytes per logit. XLA (one_program) keeps them in 16 and 32 bit (temporaries of four programs whose logits are 2.1 to 4.2 billion numbers:
 * h200-jax, h100-jax). Where the model returns them in fp32 the backward pass is given zeros for their gradient; under DDP two sets in
 * fp32 stand beside those in 16 bit when the forward pass ends (what an H200's allocator held at the peaks of three compiled steps of
 * Trainer: measurements/probes/h200-2026-11-29-compiled-peaks-unseen). */
static double fused_loss_width(const struct builder *b)
{
	if (b->rules->one_program)
		return 6;
	if (!b->rules->wide_outputs)
		return 4;
	return copies_outputs(b) ? 10 : 6;
}

/* Bytes per logit at the loss's fullest moment, with no unit gathered. */
static double loss_width(const struct builder *b)
{
	if (b->rules->plain_loss) /* logits, log_softmax, and the gradients of both */
		return 8 * (double)b->plan->tp;
	if (splits_by_dtensor(b))
		return 16;
	if (b->rules->fused_loss)
		return fused_loss_width(b);
	if (b->rules->loss_in_place) /* in 16 and 32 bit, and the gradient cast back */
		return 8;
	/* what a tanh on the logits gave stays for its gradient, here or on the host */
	return (b->rules->fusion == FT_FUSION_KERNELS ? 10 : 12) +
	       (b->model->logit_cap && !sends_loss(b) ? 2 : 0);
}

double head_weights(const struct builder *b)
{
	return (double)(b->model->hidden_size * ft_model_vocab(b->model, b->plan->tp)) /
	       (double)b->plan->tp;
}

/* Where autograd adds up the gradients of micro-batches, a new one stands beside the sum. Of embedding and head
 * it counts. Source: the peak of two layers and the head of a 70B in a pipeline of two H100, and that of the
 * first of sixteen stages (tests/test_stages.c). */
static bool adds_up(const struct builder *b)
{
	const struct ft_plan *p = b->plan;

	return summed_micro_batches(b) > 1 && !b->rules->gradient_fusion &&
	       !p->lora.rank && (!is_fsdp(p) || sums_whole(b));
}

static bool has_parts(const struct builder *b)
{
	return b->rules->head_chunks > 1;
}

/* What parts of a micro-batch leave beside the next one's logits: copies of the head's input, its gradient in fp32, and the
 * sum of the head's gradients. Source: torchtitan's ChunkedCELoss (torchtitan/components/loss.py, read 2026-11-29). */
static double parts_beside(const struct builder *b)
{
	if (!has_parts(b))
		return 0;
	return 6 * (double)(b->tokens * b->model->hidden_size) +
	       (b->plan->lora.rank ? 0 : 2 * head_weights(b));
}

/* While the head's gradient is computed: that of the logits, in 16 bit; and the one to be added. */
static double head_product_bytes(const struct builder *b, double logits)
{
	bool adds = adds_up(b) || (has_parts(b) && !b->rules->gradient_fusion);

	return 2 * logits + (adds ? 2 * head_weights(b) : 0) + parts_beside(b);
}

/* The embedding's gradient under fsdp comes while the root and the head's gradient still wait, beside what the
 * lowest layer packed. DTensor computes that of the whole table on each rank, from the whole
 * gradient of its output, and takes the rank's rows of it. Source: the last kernels of
 * measurements/traces/h100-eight-8b16L-tp8-s4096-b1-compile, a fill of 525 M numbers. */
static double root_table_bytes(const struct builder *b, struct held root, bool head,
			       bool packed)
{
	double rows = (double)ft_model_embedding_parameters(b->model, b->plan->tp);
	struct held lowest = packed ? of_fsdp(b, layer_held(b, 0)) : (struct held){ 0 };
	double bytes = 2 * rows / (double)b->plan->tp +
		       (head ? 2 * head_weights(b) : 0) +
		       gradient_width(b) * (lowest.dense + lowest.experts);

	if (b->plan->reshard_after_forward)
		bytes += whole_bytes(root);
	if (splits_by_dtensor(b))
		bytes += 2 * rows + hidden_bytes(b);
	return bytes - b->seg->peak_bytes[FT_MEMORY_GRADIENTS];
}

/* A wrapper's hooks, at each unit or bucket, cut it. */
bool is_one_graph(const struct builder *b)
{
	return b->rules->whole_graph && b->plan->sharding == FT_ALONE;
}

/* Beside the gradient of a table that the head shares: that of the head, and the sum of both. In one compiled graph its rows are added up in
 * fp32, and cast where the table is in 16 bit, and the logits that the pass returned are there still. Source: what an H200's allocator held at
 * the peaks of Llama 3.2 1B's first eight layers (measurements/probes/h200-2026-11-30-short-peaks-unseen). */
static double table_beside_bytes(const struct builder *b, double table, bool tied)
{
	double width = b->autocast ? 4 : 2, bytes = tied ? 2 * width * table : 0;

	if (b->rules->gradient_fusion) /* both are added to one gradient */
		return 0;
	if (!is_one_graph(b))
		return bytes;
	return (tied ? width * table : 0) + (b->autocast ? 0 : 4 * table) +
	       (b->rules->wide_outputs ? 4 : 2) * head_logits(b);
}

void table_bytes(struct builder *b, struct held root, bool head, unsigned variant)
{
	double table = (double)ft_model_embedding_parameters(b->model, b->plan->tp) /
		       (double)b->plan->tp;
	double own = (b->autocast ? 4 : 2) * table;
	bool tied = head && b->model->tied;
	double *peak = &b->seg->peak_bytes[FT_MEMORY_OTHER];

	if (b->plan->lora.rank)
		return;
	if (is_fsdp(b->plan) && b->rules->fsdp_copy_grad_bytes > 0)
		*peak = fmax(*peak, root_table_bytes(b, root, head, variant & V_SYNC));
	else if (!is_fsdp(b->plan))
		*peak = fmax(*peak, table_beside_bytes(b, table, tied));
	if (adds_up(b) && !(variant & V_FIRST))
		*peak = fmax(*peak, own);
}

/* The root's weights, gathered for the head. */
static double gathered_root(const struct builder *b, struct held root)
{
	return is_fsdp(b->plan) && b->plan->reshard_after_forward ? whole_bytes(root) :
								    0;
}

static struct held last_unit(const struct builder *b)
{
	return of_fsdp(b, layer_held(b, b->model->n_layers - 1));
}

/* Bytes of a loss within the root's forward pass, without its gradient: the last layer's weights are still there, as they
 * were gathered, until the root's forward is over (FSDP2's all_gather_state). Source: what is allocated at the peak of a mixture
 * of two layers (measurements/probes/h200-2026-11-30-peaks-unseen). */
static double loss_in_root_bytes(const struct builder *b, struct held root,
				 double logits)
{
	struct held last = last_unit(b);
	bool copied = has_peers(b, last) && b->rules->fsdp_copy_out_bytes > 0;

	return gathered_root(b, root) + (loss_width(b) - 2) * logits +
	       (copied ? 2 * (last.dense + last.experts) : 0);
}

/* Beside the logits: the root where the loss is a part of it, or where it stays gathered for the backward pass; in a program of XLA's the head in 16 bit; and where gradients are added up by the
 * products a stand-in for the gradient of the head's weights in 16 bit, and the head's input and its
 * gradient, whole. */
static double head_beside(const struct builder *b, struct held root)
{
	bool there = b->rules->loss_in_root || !b->rules->gather_root_again;
	double bytes = there ? gathered_root(b, root) : 0;

	if (b->rules->one_program)
		bytes = is_fsdp(b->plan) && b->plan->master_weights ?
				2 * head_weights(b) :
				0;

	/* FSDP1 gathers the last unit ahead of the loss; a rank alone casts it then */
	if (b->rules->flat_shards && is_fsdp(b->plan) &&
	    b->plan->reshard_after_forward && b->rules->loss_in_root)
		bytes += whole_bytes(last_unit(b));
	if (hands_stand_ins(b))
		bytes += 2 * head_weights(b) +
			 4 * (double)(b->tokens * b->model->hidden_size);
	return bytes;
}

/* What the last norm keeps for its backward, and the head's product: their inputs, the head's
 * gathered. Megatron's kernels were counted without; see head_beside. Source: peaks of an H100
 * with full recomputation, where little else is there (h100-long-sequences). */
static double last_norm_bytes(const struct builder *b)
{
	struct layer_sizes s = sizes_of(b, b->model->n_layers - 1);

	if (b->rules->fusion == FT_FUSION_KERNELS)
		return 0;
	return (double)s.h *
	       ((2 + norm_kept(b)) * (double)s.part + 2 * (double)s.tokens);
}

/* Bytes per logit that a loss keeps for its backward pass beside the logits: what is not fused
 * keeps its softmax in fp32. Source: the peak of an eager GPipe pipeline on two H100. */
static double loss_kept(const struct builder *b)
{
	return b->rules->fused_loss ? 0 : 4;
}

/* Counts logits where a pipeline keeps the outputs of all its micro-batches; what the loss keeps beside them may wait on the host. */
static void kept_logits(struct builder *b, double logits, bool backward)
{
	double kept = loss_kept(b), stays = sends_loss(b) ? 0 : kept;
	double peak = (backward ? loss_width(b) - stays : 2 + kept) * logits;

	if (backward)
		peak = fmax(peak, head_product_bytes(b, logits) - stays * logits);
	takes(b, FT_MEMORY_OTHER, (backward ? -stays : 2 + stays) * logits, peak);
}

/* Forward holds the root's weights and 16-bit logits; backward first the logits
 * and their gradient, then the root gathered again beside the gradient; where the loss is a part of
 * the root, it is gathered before. */
static double logits_peak(const struct builder *b, struct held root, double logits,
			  bool backward)
{
	double whole = b->plan->reshard_after_forward ? unit_bytes(b, root) : 0;
	double peak = gathered_root(b, root) + 2 * logits;

	if (!backward && (b->rules->loss_in_root || early_copies(b) > 0))
		return loss_in_root_bytes(b, root, logits);
	if (!backward)
		return peak;
	peak = fmax(peak, whole + 2 * logits);
	return fmax(
		fmax(peak + parts_beside(b),
		     loss_width(b) * logits + head_beside(b, root) + parts_beside(b)),
		head_product_bytes(b, logits));
}

void head_bytes(struct builder *b, struct held root, bool backward)
{
	double logits = part_logits(b), norm = last_norm_bytes(b);

	if (b->part != PART_WHOLE && !b->rules->autograd_split)
		/* the gradient of the logits waits for the head's */
		takes(b, FT_MEMORY_OTHER, (b->part == PART_INPUTS ? 2 : -2) * logits,
		      0);
	if (b->part == PART_WEIGHTS)
		return;
	copies_bytes(b, 2 * head_weights(b), backward, false);
	takes(b, FT_MEMORY_OTHER, backward ? 0 : -early_copies(b), 0);
	takes(b, FT_MEMORY_ACTIVATIONS, backward ? -norm : norm, backward ? 0 : norm);
	if (b->rules->keeps_outputs && b->plan->pp > 1 && !has_parts(b))
		kept_logits(b, logits, backward);
	else
		takes(b, FT_MEMORY_OTHER, 0, logits_peak(b, root, logits, backward));
}

/* Behind the last pass what was kept of a run's micro-batches becomes one tensor. */
void outputs_join(struct builder *b, double freed)
{
	double *peak = &b->seg->peak_bytes[FT_MEMORY_OTHER];
	int64_t run = ft_plan_run(b->plan);
	double logits = head_logits(b) * (double)run;
	bool more = run < b->plan->micro_batches; /* which have the room of these */

	if (has_parts(b))
		return;
	takes(b, FT_MEMORY_OTHER, more ? -2 * logits : 0, 0);
	*peak = fmax(*peak, 2 * logits - freed);
	put_memory(b, "join_outputs", "copy", 4 * logits, (int)run);
}
