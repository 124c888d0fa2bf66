/* traces/update.c - the optimizer's update of a stage: norm of gradients, Adam, narrow copies, and new weights to all */
#include "traces/block.h"
#include "traces/casts.h"
#include "traces/sharding.h"

/* What an Adam update moves per parameter: fp32 weight, gradient, two moments read,
 * three written: 28; a 16-bit copy of the weight adds 2; all in 16 bit: 14. */
static double update_bytes(const struct builder *b)
{
	if (b->rules->optimizer_bytes > 0)
		return b->rules->optimizer_bytes;
	if (!b->plan->master_weights && !wide_adapters(b))
		return 14;
	return is_fsdp(b->plan) || b->autocast || wide_adapters(b) ? 28 : 30;
}

/* In bf16 throughout a thread loads half as many bytes at a time. */
static const char *update_kernel(const struct builder *b)
{
	bool narrow = !b->plan->master_weights && !wide_adapters(b) &&
		      !(b->rules->optimizer_bytes > 0);

	if (b->rules->compiled_update)
		return "add";
	return narrow ? "adamw_bf16" : "adamw";
}

/* Gradients are read for their norm, and once more or, where they are scaled in place, read and written. PyTorch's clip_grad_norm_
 * scales whatever the norm is (torch/nn/utils/clip_grad.py): two kernels that take 2.7 ms for 1.24 G numbers of 16 bit, and 5.1 for
 * 1.56 G in fp32 (measurements/traces/h200-transformers-*-trainer), where 1.5 and 3.7 were counted with 2. */
static double norm_passes(const struct builder *b)
{
	return b->rules->tensor_parallel == FT_TP_DTENSOR ? 3 : 2;
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

void optimizer_ops(struct builder *b, struct held stage, struct held ends, double tied)
{
	enum ft_sharding how = b->plan->sharding;
	double local = held_share(b, stage);
	double parts = sums_shards(b) ? (double)b->plan->shard : 1;
	size_t from = b->seg->n_ops;

	host(b, FT_HOST_OPTIMIZER, 1);
	host(b, FT_HOST_OPTIMIZER_TENSOR, (double)stage.tensors);
	if (is_fsdp(b->plan))
		host(b, FT_HOST_SHARD_TENSOR, (double)stage.tensors);
	if (put_collective(b, "tied_embedding", FT_STREAM_REDUCE, FT_ALL_REDUCE,
			   FT_GROUP_EMBEDDING, gradient_width(b) * tied / parts))
		need(b, FT_STREAM_REDUCE);
	if (b->plan->dp * b->plan->cp > 1 || is_fsdp(b->plan))
		need(b, FT_STREAM_REDUCE);
	if (b->rules->scaled_gradients) {
		put_memory(b, "gradient_norm", "default",
			   norm_passes(b) * gradient_width(b) * local, 2);
		if (put_collective(b, "norm_sum", FT_STREAM_REDUCE, FT_ALL_REDUCE,
				   FT_GROUP_DP, 8))
			need(b, FT_STREAM_REDUCE);
	}
	put_memory(b, "adam", update_kernel(b),
		   update_bytes(b) * (held_moments(b, stage, true) - local),
		   (int)b->rules->optimizer_kernels);
	if (is_narrow(b) && !casts_gathered(b))
		put_memory(b, "cast_weights", "cast",
			   4 * (stage.dense - ends.dense +
				(experts_narrow(b) ? stage.experts : 0)),
			   8);
	mark_optimizer(b, from);
	if (!gathers_ahead(b) && (how == FT_ZERO1 || how == FT_ZERO2))
		return_weights(b, stage);
}
