/*
 * traces/base_bytes.c - bytes a rank holds all step long
 *
 * Per parameter of a rank (P dense or expert, n ranks share sharded state):
 *   mixed precision  2 weight + g gradient (/n under zero2) + 12 optimizer (/n under zero1, zero2)
 *   fsdp             4/n weight + 8/n optimizer + 4/n gradient, two units whole; in pipelines
 *                    that keep them 2 weight and g gradient besides, and no 4/n gradient
 *   autocast         4 weight + 4 gradient + 8 optimizer, and 2 from its forward to its backward; under ddp
 *                    buckets 4 (8: several micro-batches)
 *   all 16 bit       2 + 2 + 4, and 2 under ddp where gradients are copied into buckets
 *   frozen           its format's width alone (/n under fsdp)
 * The optimizer's 8 and 4 are Adam's two moments; others keep less (ft_optimizer_state_bytes), and moment_dtype and
 * master_dtype make them and the 4 of master weights narrower.
 *   DeepSpeed's BF16_Optimizer: 2 more, a micro-batch's gradients
 * Checked against allocator peaks of measured steps by `make validate`.
 */
#include <math.h>
#include <string.h>

#include "traces/block.h"
#include "traces/casts.h"
#include "traces/host_state.h"
#include "traces/memory.h"
#include "traces/sharding.h"

/* Frameworks that give each gradient its memory when it is computed, and take it back
 * before the next step; others have buffers that stay. Autocast's under DDP are views of its buckets,
 * unless they are copied into those. */
bool gradients_come(const struct builder *b)
{
	bool views = b->autocast && b->plan->sharding != FT_ALONE &&
		     b->rules->bucket_copy_bytes <= 0;

	return is_fsdp(b->plan) ||
	       (b->rules->tensor_parallel == FT_TP_DTENSOR && !views);
}

/* Gradients of a unit that come and stay: under fsdp, if they are not summed up whole, its shard's. */
double gradient_bytes(const struct builder *b, struct held unit)
{
	const struct ft_plan *p = b->plan;
	bool sharded = is_fsdp(p) && !sums_whole(b);
	bool parts = sharded || p->sharding == FT_ZERO2;
	double n = parts ? held_share(b, unit) : unit.dense + unit.experts;
	double width = sharded ? kept_gradient_width(b) : gradient_width(b);

	if (!gradients_come(b))
		return 0;
	return (parts ? staying_gradient_width(b, width) : width) * n;
}

/* Lightning's zero_grad runs between a forward pass and its backward pass: where others have no gradient, these of
 * the step before are beside all activations. */
double earlier_gradients(const struct builder *b, struct held stage)
{
	return b->rules->gradients_until_backward && b->plan->pp == 1 ?
		       gradient_bytes(b, stage) :
		       0;
}

/* Of a weight: in 16 bit, or copies in the narrow format, alone or beside that. */
static double weight_bytes(const struct builder *b)
{
	if (!is_narrow(b))
		return 2;
	return narrow_copies(b) * stored_width(b->format) +
	       (b->rules->narrow_parameters ? 0 : 2);
}

/* Products that add gradients up themselves still hand autograd a tensor of the weight's shape, in
 * 16 bit; Transformer Engine keeps one of each shape. Source: its get_dummy_wgrad (2.11); peaks of
 * Llama on B200 hold 2.1 bytes for each weight of one layer, and 1.7 for the head's. */
bool hands_stand_ins(const struct builder *b)
{
	return b->rules->gradient_fusion && b->rules->fusion == FT_FUSION_KERNELS &&
	       !b->plan->lora.rank && !is_fsdp(b->plan);
}

/* Of one layer's weights, the largest layer's, and of one expert. They come with the first
 * backward, and so are beside a peak from the second micro-batch on. */
static double stand_in_bytes(const struct builder *b)
{
	const struct ft_model *m = b->model;
	double most = 0;

	for (int64_t l = 0; l < m->n_layers; l++) {
		int64_t experts = m->layer[l].experts;
		double n = b->unit[l].dense;

		if (experts)
			n += ft_layer_expert_parameters(m, l) /
			     (double)(experts * b->plan->etp);
		most = fmax(most, n);
	}
	return hands_stand_ins(b) && b->plan->micro_batches > 1 ? 2 * most : 0;
}

static bool is_wrapped(const struct ft_plan *p)
{
	return p->sharding == FT_DDP && (p->dp * p->cp > 1 || p->pp == 1);
}

/* PyTorch's DDP lays its buckets twice in the first steps of a job; and the gradients of micro-batches
 * that are not reduced are tensors of their own. Source: peaks of GPT 1.5B on two H100, 55.6, 62.1 and, with
 * two micro-batches, 68.7 GB, 4 bytes a parameter apart; nine steps of Transformers, whose peaks were taken
 * behind the first steps, have one copy less. One rank has them, too (GPT 350M and 1.5B on one H100); a stage of a
 * pipeline that is alone has no wrapper. */
static double bucket_copies(const struct ft_plan *p)
{
	return !is_wrapped(p) ? 0 : p->micro_batches > 1 ? 2 : 1;
}

/* Buckets that gradients are copied into, and out of again, stay while those come and go: DDP's unless gradient_as_bucket_view is
 * asked for (torch/csrc/distributed/c10d/reducer.cpp, read 2026-11-29). They are one set, also where they are laid anew and where
 * micro-batches are summed. Source: peaks of 22 steps of Trainer on two H200, in 16 bit and fp32. */
static double copied_buckets(const struct builder *b, double all)
{
	bool copied = b->rules->bucket_copy_bytes > 0 && gradients_come(b);

	return copied && is_wrapped(b->plan) ? gradient_width(b) * all : 0;
}

/* Bytes of a rank's shards under fsdp; whole weights come and go with the units. */
static void of_shards(const struct builder *b, struct held stage, double kept,
		      double bytes[FT_MEMORIES])
{
	const struct ft_plan *p = b->plan;
	double shared = held_share(b, stage);

	bytes[FT_MEMORY_WEIGHTS] =
		kept * shared + stage.frozen / (double)p->shard +
		stage.frozen_experts / (double)ft_plan_expert_shard(p);
	bytes[FT_MEMORY_OPTIMIZER] = held_state(b, stage, true, kept);
	if (holds_units(b))
		bytes[FT_MEMORY_WEIGHTS] += whole_bytes(of_fsdp(b, stage));
	if (flush_reduces(b) && reduces_last(b)) /* of the runs before */
		bytes[FT_MEMORY_GRADIENTS] += kept_gradient_width(b) * shared;
}

static void under_autocast_bytes(const struct builder *b, struct held stage,
				 double bytes[FT_MEMORIES])
{
	const struct ft_plan *p = b->plan;
	double all = stage.dense + stage.experts;

	bytes[FT_MEMORY_WEIGHTS] = 4 * all + stage.frozen + stage.frozen_experts;
	bytes[FT_MEMORY_OPTIMIZER] = held_state(b, stage, false, 4);
	bytes[FT_MEMORY_OTHER] =
		gradients_come(b) ? copied_buckets(b, all) : bucket_copies(p) * 4 * all;
}

/* Bytes of weights and optimizer where adapters in fp32 are all that is trained. */
static void of_wide_adapters(const struct builder *b, struct held stage,
			     double bytes[FT_MEMORIES])
{
	bytes[FT_MEMORY_WEIGHTS] =
		4 * (stage.dense + stage.experts) + stage.frozen + stage.frozen_experts;
	bytes[FT_MEMORY_OPTIMIZER] = held_state(b, stage, ft_plan_divides(b->plan), 4);
}

/* Embedding and head have no narrow copies. */
static void of_mixed_precision(const struct builder *b, struct held stage,
			       struct held ends, double bytes[FT_MEMORIES])
{
	const struct ft_plan *p = b->plan;
	bool divided = ft_plan_divides(p);
	double all = stage.dense + stage.experts;
	double state = held_state(b, stage, divided, p->master_weights ? 4 : 2);

	bytes[FT_MEMORY_WEIGHTS] =
		weight_bytes(b) * (stage.dense - ends.dense) + 2 * ends.dense +
		(experts_narrow(b) ? weight_bytes(b) : 2) * stage.experts +
		stage.frozen + stage.frozen_experts;
	bytes[FT_MEMORY_OPTIMIZER] =
		state + ft_master_bytes(p) * (divided ? held_share(b, stage) : all);
}

void base_bytes(const struct builder *b, struct held stage, struct held ends,
		double bytes[FT_MEMORIES])
{
	const struct ft_plan *p = b->plan;
	double all = stage.dense + stage.experts;

	memset(bytes, 0, FT_MEMORIES * sizeof(*bytes));
	bytes[FT_MEMORY_GRADIENTS] = earlier_gradients(b, stage);
	if (is_fsdp(p)) {
		of_shards(b, stage, p->master_weights || wide_adapters(b) ? 4 : 2,
			  bytes);
		state_leaves(b, stage, bytes);
		return;
	}
	if (!gradients_come(b))
		bytes[FT_MEMORY_GRADIENTS] +=
			gradient_width(b) *
				(p->sharding == FT_ZERO2 ? held_share(b, stage) : all) +
			(has_two_gradients(b) ? 2 * all : 0);
	if (b->autocast) {
		under_autocast_bytes(b, stage, bytes);
		return;
	}
	bytes[FT_MEMORY_GRADIENTS] += stand_in_bytes(b);
	bytes[FT_MEMORY_OTHER] = copied_buckets(b, all);
	if (wide_adapters(b))
		of_wide_adapters(b, stage, bytes);
	else
		of_mixed_precision(b, stage, ends, bytes);
	state_leaves(b, stage, bytes);
}
