/* traces/update.c - the optimizer's update of a stage: norm of gradients, the update, narrow copies, and new weights to all */
#include <math.h>

#include "traces/block.h"
#include "traces/casts.h"
#include "traces/host_state.h"
#include "traces/memory.h"
#include "traces/muon.h"
#include "traces/sharding.h"

/*
 * What an update moves for each parameter, in bytes, with weights, gradients and moments in fp32 or
 * all in 16 bit, once for each kernel that reads or writes it:
 *   adam          weight and two moments both ways, the gradient: 28, 14; a 16-bit copy of the weight adds 2
 *   adam8bit      weight both ways, gradient, two moments of a byte both ways: 16, 10
 *   sgd           weight both ways, gradient: 12, 6
 *   sgd-momentum  three operations over lists of tensors, on the moment alone, with the gradient, with the weight: 32, 16
 *   adafactor     22 to 27 kernels in fp32 a tensor, one tensor after another: 84, and 18 for copies of 16-bit weights and gradients
 * Source: kernels of recorded updates on an H200 (measurements/probes/h200-2026-11-29-optimizers-unseen: these bytes at
 * 3.3 to 3.9 TB/s); adam8bit's are derived from what bitsandbytes' kernel has to read and write.
 */
static const struct update {
	double wide, narrow;
	const char *kernel; /* NULL: Adam's own */
	const char *item;
} updates[FT_OPTIMIZERS] = {
	[FT_ADAM] = { 28, 14, NULL, "adam" },
	[FT_ADAM_8BIT] = { 16, 10, "adamw", "adam8bit" },
	[FT_ADAFACTOR] = { 84, 102, "default", "adafactor" },
	[FT_SGD] = { 12, 6, "add", "sgd" },
	[FT_SGD_MOMENTUM] = { 32, 16, "add", "sgd" },
	[FT_MUON] = { 28, 14, NULL, "adam" },
};

/* Kernels of a tensor that is updated by itself: 22 to 27 in the same recordings. While one op of several tensors runs,
 * the host launches the next. */
enum { KERNELS_A_TENSOR = 24, TENSORS_AN_OP = 8 };

/* How many numbers of its share a rank updates here; those of Muon are updated elsewhere. */
static double updated(const struct builder *b, struct held stage)
{
	return held_share(b, stage) - muon_numbers(b, stage, true);
}

static bool updates_narrow(const struct builder *b)
{
	return !b->plan->master_weights && !wide_adapters(b);
}

/* State that is not in fp32, of Transformer Engine's Adam: it is widened in front of the update and narrowed behind it, all
 * of it at once (transformer_engine/pytorch/optimizers/fused_adam.py, read 2026-11-30); remainders are read and written as they are. */
static double widened_bytes(const struct builder *b)
{
	double moment = ft_moment_bytes(b->plan, 4);

	return (moment < 4 ? 2 * (2 * moment + 8) : 0) +
	       (b->plan->master == FT_MASTER_FP16 ? 12 : 0);
}

static int widened(const struct builder *b)
{
	return (ft_moment_bytes(b->plan, 4) < 4 ? 2 : 0) +
	       (b->plan->master == FT_MASTER_FP16);
}

/* What narrower moments and master weights move more than those in fp32. A compiler and PyTorch's own kernels read and write them as
 * they are; a remainder always is, with the other half of the weight. */
static double state_bytes(const struct builder *b)
{
	double wide = updates_narrow(b) ? 2 : 4;
	double remainder = b->plan->master == FT_MASTER_REMAINDER ? -2 : 0;

	if (b->rules->fusion == FT_FUSION_KERNELS && !updates_narrow(b))
		return widened_bytes(b) + remainder;
	return 4 * (ft_moment_bytes(b->plan, wide) - wide) + remainder -
	       (b->plan->master == FT_MASTER_FP16 ? 4 : 0);
}

static double update_bytes(const struct builder *b)
{
	const struct update *u = &updates[b->plan->optimizer];

	if (b->rules->optimizer_bytes > 0)
		return b->rules->optimizer_bytes;
	if (updates_narrow(b))
		return u->narrow + state_bytes(b);
	return u->wide + state_bytes(b) +
	       (is_fsdp(b->plan) || b->autocast || wide_adapters(b) ? 0 : 2);
}

/* In bf16 throughout a thread loads half as many bytes at a time. */
static const char *update_kernel(const struct builder *b)
{
	const char *own = updates[b->plan->optimizer].kernel;

	if (own)
		return own;
	if (b->rules->compiled_update)
		return "add";
	return updates_narrow(b) && !(b->rules->optimizer_bytes > 0) ? "adamw_bf16" :
								       "adamw";
}

/* Numbers of the largest tensor: the table of words, a matrix of an MLP, or what gates all experts of a layer. */
static double largest_tensor(const struct builder *b, bool ends)
{
	const struct ft_model *m = b->model;
	double n = ends ? (double)ft_model_embedding_parameters(m, b->plan->tp) : 0;

	for (int64_t l = 0; l < m->n_layers; l++) {
		double experts = ft_layer_expert_parameters(m, l) /
				 (double)(b->plan->ep * b->plan->etp);

		n = fmax(n, (double)(m->hidden_size * m->layer[l].intermediate));
		n = fmax(n, 2. / 3 * experts * (double)b->plan->tp);
	}
	return n / (double)b->plan->tp;
}

/* Tensor by tensor: the host calls each operation, and copies in fp32 stand side by side, two of the
 * largest tensor, four if it is in 16 bit itself. Source: the same, with tensors of 0.2 to 2.1 GB. */
static void put_update_of_tensors(struct builder *b, struct held stage,
				  struct held ends)
{
	double largest = fmin(largest_tensor(b, ends.dense > 0), updated(b, stage));
	double each = update_bytes(b) * updated(b, stage) / (double)stage.tensors;

	host(b, FT_HOST_TENSOR_UPDATE, (double)stage.tensors);
	for (int64_t left = stage.tensors; left > 0; left -= TENSORS_AN_OP) {
		int n = (int)(left < TENSORS_AN_OP ? left : TENSORS_AN_OP);

		put_memory(b, "adafactor", update_kernel(b), n * each,
			   n * KERNELS_A_TENSOR);
	}
	b->seg->peak_bytes[FT_MEMORY_OTHER] +=
		(updates_narrow(b) ? 4 : 2) * 4 * largest;
}

static void put_update(struct builder *b, struct held stage, struct held ends)
{
	if (b->plan->optimizer == FT_ADAFACTOR) {
		put_update_of_tensors(b, stage, ends);
		return;
	}
	host(b, FT_HOST_OPTIMIZER_TENSOR, (double)stage.tensors);
	put_memory(b, updates[b->plan->optimizer].item, update_kernel(b),
		   update_bytes(b) * updated(b, stage),
		   (int)b->rules->optimizer_kernels);
	if (b->rules->fusion == FT_FUSION_KERNELS && !updates_narrow(b))
		b->seg->peak_bytes[FT_MEMORY_OTHER] +=
			4 * widened(b) * updated(b, stage);
	if (b->rules->update_lists && b->plan->optimizer == FT_ADAM)
		b->seg->peak_bytes[FT_MEMORY_OTHER] +=
			(updates_narrow(b) ? 2 : 4) * updated(b, stage);
}

/* Gradients are read for their norm, and once more or, where they are scaled in place, read and written. PyTorch's clip_grad_norm_
 * scales whatever the norm is (torch/nn/utils/clip_grad.py): two kernels that take 2.7 ms for 1.24 G numbers of 16 bit, and 5.1 for
 * 1.56 G in fp32 (measurements/traces/h200-transformers-*-trainer), where 1.5 and 3.7 were counted with 2. */
static double norm_passes(const struct builder *b)
{
	return b->rules->tensor_parallel == FT_TP_DTENSOR ? 3 : 2;
}

static void put_gradient_norm(struct builder *b, struct held stage)
{
	if (!b->rules->scaled_gradients || weights_wait(b))
		return;
	put_memory(b, "gradient_norm", "default",
		   norm_passes(b) * gradient_width(b) * held_share(b, stage), 2);
	if (put_collective(b, "norm_sum", FT_STREAM_REDUCE, FT_ALL_REDUCE, FT_GROUP_DP,
			   8))
		need(b, FT_STREAM_REDUCE);
}

void mark_optimizer(struct builder *b, size_t from)
{
	for (size_t i = from; i < b->seg->n_ops; i++)
		if (b->seg->op[i].stream == FT_STREAM_COMPUTE)
			b->seg->op[i].optimizer = true;
}

/* InternEvo's HybridZeroOptimizer: a rank has whole tensors, about as many parameters as each other one,
 * and sends them to all, when the ranks before it have sent theirs. Parts are taken as equal. */
static void broadcast_weights(struct builder *b, struct held stage)
{
	double bytes = parameter_width(b) * stage.dense;
	int64_t parts = b->g->group[FT_GROUP_SHARD].size;

	if (parts > stage.tensors)
		parts = stage.tensors;
	for (int64_t i = 0; i < parts; i++)
		put_collective(b, "zero_broadcast", FT_STREAM_GATHER, FT_BROADCAST,
			       FT_GROUP_SHARD, bytes / (double)parts);
}

/* zero1, zero2: each rank's new weights go to all, behind the update. */
static void return_weights(struct builder *b, struct held stage)
{
	bool twice = b->rules->gathers_twice && b->plan->ep > 1 && stage.experts > 0;

	for (int i = twice ? 2 : 1; i > 0; i--) { /* two optimizers, each for both */
		if (b->rules->broadcast_parts && b->plan->sharding == FT_ZERO1)
			broadcast_weights(b, stage);
		else
			put_collective(b, "zero_gather", FT_STREAM_GATHER,
				       FT_ALL_GATHER, FT_GROUP_SHARD,
				       parameter_width(b) * stage.dense);
		put_collective(b, "zero_gather_experts", FT_STREAM_GATHER,
			       FT_ALL_GATHER, FT_GROUP_EXPERT_SHARD,
			       expert_parameter_width(b) * stage.experts);
	}
}

/* A rank writes its updates into one array of all, which is filled with zeros first; behind the sum each is cast to fp32 and added.
 * Source: github.com/KellerJordan/modded-nanogpt, class Muon (records of 2024-10, read 2026-11-29). */
static void share_updates(struct builder *b, struct held stage)
{
	put_memory(b, "muon_fill", "default", 2 * stage.matrices, 1);
	if (put_collective(b, "muon_sum", FT_STREAM_REDUCE, FT_ALL_REDUCE, FT_GROUP_DP,
			   2 * stage.matrices))
		need(b, FT_STREAM_REDUCE);
	put_memory(b, "muon_apply", "add", 18 * stage.matrices, 2);
}

void optimizer_ops(struct builder *b, struct held stage, struct held ends, double tied)
{
	enum ft_sharding how = b->plan->sharding;
	double parts = sums_shards(b) ? (double)b->plan->shard : 1;
	size_t from = b->seg->n_ops;

	host(b, FT_HOST_OPTIMIZER, 1);
	if (is_fsdp(b->plan))
		host(b, FT_HOST_SHARD_TENSOR, (double)stage.tensors);
	if (put_collective(b, "tied_embedding", FT_STREAM_REDUCE, FT_ALL_REDUCE,
			   FT_GROUP_EMBEDDING, gradient_width(b) * tied / parts))
		need(b, FT_STREAM_REDUCE);
	if (b->plan->dp * b->plan->cp > 1 || is_fsdp(b->plan))
		need(b, FT_STREAM_REDUCE);
	put_gradient_norm(b, stage);
	if (shares_matrices(b))
		share_updates(b, stage);
	if (state_waits(b))
		update_on_host(b, stage);
	else
		put_update(b, stage, ends);
	if (is_narrow(b) && !casts_gathered(b))
		put_memory(b, "cast_weights", "cast",
			   4 * (stage.dense - ends.dense +
				(experts_narrow(b) ? stage.experts : 0)),
			   8);
	mark_optimizer(b, from);
	if (!gathers_ahead(b) && (how == FT_ZERO1 || how == FT_ZERO2))
		return_weights(b, stage);
}
