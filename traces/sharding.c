/*
 * traces/sharding.c - how weights and gradients travel between replicas
 *
 * fsdp: before a unit (a layer; the root: embedding, final norm, head) its shard is cast and
 * copied in, gathered, and copied out; behind its backward the gradients are packed and
 * reduce-scattered. At most one unit is gathered ahead.
 * Where a unit is one flat tensor (FullyShardedDataParallel) its shard is cast by one
 * kernel, nothing is copied out, and behind its backward the gradients are joined, widened
 * to the format of the reduction and divided by the ranks, a kernel each. These kernels are
 * launched on streams of high priority and leave nothing of the GPU to compute while they run, so
 * they are put on its stream. Source: recordings on two H100 (measurements/traces, h100-two-flat).
 *
 * ddp, zero1, zero2: gradients of a bucket are reduced behind the layer that completes it, and
 * under zero1 the new weights are gathered after the update or, in buckets, ahead of the next forward.
 *
 * A group of one rank gathers nothing ahead: FSDP2 then casts and copies a unit in front of
 * it on the compute stream, and behind its backward copies the packed gradients where a
 * reduction would have put them. Source: recordings of FSDP2 on one H100, and of tensor
 * parallelism with one replica on two (measurements/traces/).
 */
#include <math.h>

#include "traces/autocast.h"
#include "traces/build.h"
#include "traces/casts.h"
#include "traces/host_state.h"
#include "traces/memory.h"
#include "traces/scan.h"
#include "traces/sharding.h"

bool is_fsdp(const struct ft_plan *plan)
{
	return plan->sharding == FT_FSDP || plan->sharding == FT_HSDP;
}

bool keeps_units(const struct builder *b)
{
	return sums_whole(b) && !b->plan->reshard_after_forward;
}

bool holds_units(const struct builder *b)
{
	bool shared = is_fsdp(b->plan) && b->plan->pp > 1;

	return (sums_whole(b) || shared) && !b->plan->reshard_after_forward;
}

bool reduces_last(const struct builder *b)
{
	return is_fsdp(b->plan) && b->rules->unsharded_pipeline && b->plan->pp > 1;
}

bool flush_reduces(const struct builder *b)
{
	return b->rules->reduces_at_flush &&
	       ft_plan_run(b->plan) < b->plan->micro_batches;
}

int64_t summed_micro_batches(const struct builder *b)
{
	return flush_reduces(b) && reduces_last(b) ? ft_plan_run(b->plan) :
						     b->plan->micro_batches;
}

bool gathers_ahead(const struct builder *b)
{
	return b->rules->gather_under_forward && b->plan->overlap_gather &&
	       (b->plan->sharding == FT_ZERO2 ||
		(b->plan->sharding == FT_ZERO1 && !b->rules->broadcast_parts));
}

bool sums_whole(const struct builder *b)
{
	bool once = b->plan->sync_last && b->plan->micro_batches > 1;

	return is_fsdp(b->plan) && (once || reduces_last(b));
}

struct held of_fsdp(const struct builder *b, struct held unit)
{
	if (is_fsdp(b->plan) && b->rules->ignored_experts && b->plan->edp == 1)
		unit.experts = unit.frozen_experts = 0;
	return unit;
}

bool wide_adapters(const struct builder *b)
{
	return b->plan->lora.rank && b->plan->lora.fp32;
}

double gradient_width(const struct builder *b)
{
	return wide_adapters(b) ? 4 : ft_dtype_bytes(b->plan->gradient_dtype);
}

static struct ft_op *side_copy(struct builder *b, const char *name, double bytes)
{
	struct ft_work w = { .kind = FT_MEMORY_BOUND, .name = name, .dtype = FT_BF16 };

	w.memory.kernel = "multi_copy";
	w.memory.bytes = bytes;
	w.memory.low_priority = true;
	return put_op(b, &w, FT_STREAM_COPY, 1 + (int)(bytes / 6 / 10e6));
}

/* In a forward pass the streams that copy in and gather wait for one unit's weights when those of the next are about to be copied
 * out: a unit is gathered while the one before still comes. Source: wait_for_unshard of FSDP2 (torch/distributed/fsdp/_fully_shard/
 * _fsdp_param_group.py, read 2026-11-29). Measured: measurements/traces/h200-two-minimax-2L-s2048-b2-eager: the second layer's shard
 * is copied in 8.5 ms before the first one's weights are out, and its gather follows the first one's. */
static void streams_follow(struct builder *b)
{
	struct ft_op *mark = side_copy(b, "fsdp_follow", 0);

	mark->launches = 0;
	put_wait(mark, FT_EVENT_UNSHARDED);
}

bool has_peers(const struct builder *b, struct held unit)
{
	return b->g->group[FT_GROUP_SHARD].size > 1 ||
	       (unit.experts + unit.frozen_experts > 0 &&
		b->g->group[FT_GROUP_EXPERT_SHARD].size > 1);
}

/* What a rank casts and copies of its own shard before a gather. */
static double copied_in(const struct builder *b, struct held unit)
{
	return b->rules->fsdp_copy_in_bytes * held_share(b, unit) +
	       2 * (unit.frozen / (double)b->plan->shard +
		    unit.frozen_experts / (double)ft_plan_expert_shard(b->plan));
}

/* A gather that does not wait for compute: the caller adds what it waits for. */
static struct ft_op *side_gather(struct builder *b, const char *name,
				 enum ft_group group, double bytes)
{
	struct ft_op *o =
		put_collective(b, name, FT_STREAM_GATHER, FT_ALL_GATHER, group, bytes);

	if (o)
		o->wait[0] = FT_EVENT_NONE;
	return o;
}

/* behind: what frees the memory that the gathered weights will take. */
void gather_unit(struct builder *b, struct held unit, enum ft_event behind)
{
	int ready = (int)behind;
	struct ft_op *gather;

	unit = of_fsdp(b, unit);
	host(b, FT_HOST_SHARD_FORWARD, 0.5);
	if (!has_peers(b, unit))
		return;
	if (b->rules->fsdp_copy_in_bytes > 0 && b->rules->flat_shards &&
	    !weights_wait(b)) {
		put_memory(b, "fsdp_copy_in", "cast", copied_in(b, unit), 1);
	} else if (b->rules->fsdp_copy_in_bytes > 0) {
		bool comes = shard_comes(b, unit, FT_TAIL + FT_STREAM_COPY, behind);
		struct ft_op *in = side_copy(b, "fsdp_copy_in", copied_in(b, unit));

		if (behind != FT_EVENT_NONE)
			put_wait(in, behind);
		if (comes)
			put_wait(in, FT_TAIL + FT_STREAM_FETCH);
		ready = FT_TAIL + FT_STREAM_COPY;
	}
	gather = side_gather(b, "fsdp_gather", FT_GROUP_SHARD,
			     2 * unit.dense + unit.frozen);
	if (gather)
		put_wait(gather, ready);
	gather = side_gather(b, "fsdp_gather_experts", FT_GROUP_EXPERT_SHARD,
			     2 * unit.experts + unit.frozen_experts);
	if (gather)
		put_wait(gather, ready);
}

static bool copies_in_aside(const struct builder *b, struct held unit)
{
	return has_peers(b, of_fsdp(b, unit)) && b->rules->fsdp_copy_in_bytes > 0 &&
	       !b->rules->flat_shards;
}

void unshard_forward(struct builder *b, struct held unit)
{
	bool aside = copies_in_aside(b, unit);

	gather_unit(b, unit, aside ? FT_EVENT_NONE : FT_EVENT_UNSHARDED);
	if (aside)
		streams_follow(b);
	unshard_unit(b, unit);
}

/* Compute has come to a unit whose weights are gathered in place: what is gathered next may be, as the unit
 * before is through. Source: FSDP1's rate limiter, whose third gather waits until the first one's weights are
 * freed (torch/distributed/fsdp/_runtime_utils.py, _unshard). XLA's gather, ready together with a kernel of a
 * scan's turn, starts when that ends (docs/findings.md, "What XLA's settings change on two GPUs"). */
static void reach_unit(struct builder *b)
{
	struct ft_work w = { .kind = FT_MEMORY_BOUND,
			     .name = "fsdp_unsharded",
			     .dtype = FT_BF16 };
	struct ft_op *mark;

	w.memory.kernel = "multi_copy";
	mark = put_op(b, &w, FT_STREAM_COMPUTE, 0);
	mark->host_waits = false;
}

void unshard_unit(struct builder *b, struct held unit)
{
	double out = b->rules->fsdp_copy_out_bytes;
	int launches =
		has_peers(b, unit) ? 1 : (int)(unit.tensors + unit.frozen_tensors);

	unit = of_fsdp(b, unit);
	b->of_shards = true;
	host(b, FT_HOST_SHARD_FORWARD, 0.5);
	if (has_peers(b, unit))
		need(b, FT_STREAM_GATHER);
	else if (b->rules->fsdp_copy_in_bytes > 0) {
		if (shard_comes(b, unit, FT_TAIL + FT_STREAM_COMPUTE, FT_EVENT_NONE))
			need(b, FT_STREAM_FETCH);
		put_memory(b, "fsdp_copy_in", "cast", copied_in(b, unit), launches);
	}
	scan_casts(b, unit);
	b->record_next = FT_EVENT_UNSHARDED;
	if (out > 0)
		put_memory(b, "fsdp_copy_out", "cast",
			   out * (unit.dense + unit.experts) +
				   2 * (unit.frozen + unit.frozen_experts),
			   launches);
	else if (!b->rules->scan_layers && !b->rules->one_program)
		reach_unit(b);
	b->of_shards = false;
}

/* A kernel behind a reduction, on its stream. */
static struct ft_op *reduced_kernel(struct builder *b, const char *name,
				    const char *curve, double bytes, int launches)
{
	struct ft_work w = { .kind = FT_MEMORY_BOUND, .name = name, .dtype = FT_BF16 };

	w.memory.kernel = curve;
	w.memory.bytes = bytes;
	return put_op(b, &w, FT_STREAM_REDUCE, launches);
}

/* Of earlier micro-batches a rank has its shard's gradients: it adds those that came, a kernel a
 * tensor. Of flat units compute stands still for it, which is counted in front of the reduction:
 * behind it compute would wait for that, too. */
static void add_reduced(struct builder *b, struct held unit)
{
	double n = held_share(b, unit), bytes = 3 * kept_gradient_width(b) * n;

	if (n > 0 && b->rules->flat_shards)
		put_memory(b, "fsdp_accumulate", "add", bytes, 1);
	else if (n > 0)
		reduced_kernel(b, "fsdp_accumulate", "add", bytes, (int)unit.tensors);
}

/* The largest share that a step lists for each of several layers. */
static double listed_often(const struct builder *b)
{
	double most = 0;

	for (int64_t i = 0; i < b->model->n_layers; i++)
		most = fmax(most, held_share(b, of_fsdp(b, b->unit[i])));
	return gradient_width(b) * most;
}

/* The host lists the blocks of a rank's share before they are packed. Memory of a list is there from the list before, if that was as
 * long: not of a root that is larger than layers, and of no list that the allocator maps and gives back by itself. */
static void list_blocks(struct builder *b, struct held unit)
{
	double bytes = gradient_width(b) * held_share(b, unit);
	double blocks = b->rules->table_block_bytes > 0 ?
				ceil(bytes / b->rules->table_block_bytes) :
				0;

	host(b, FT_HOST_TABLE, blocks);
	if (bytes > (bytes > 2 * listed_often(b) ? b->rules->table_kept_bytes :
						   b->rules->table_kept_often_bytes))
		host(b, FT_HOST_TABLE_FRESH, blocks);
}

static void flatten_gradients(struct builder *b, struct held unit)
{
	double width = gradient_width(b), n = unit.dense + unit.experts;

	put_memory(b, "fsdp_join", "concat", 4 * n, 1);
	if (width > 2)
		put_memory(b, "fsdp_widen", "multi_copy", (2 + width) * n, 1);
	if (has_peers(b, unit))
		put_memory(b, "fsdp_divide", "copy", 2 * width * n, 1);
}

/* Into one tensor by rank, on compute's stream, when the reduction before is done. */
static void pack_gradients(struct builder *b, struct held unit)
{
	double width = gradient_width(b), n = unit.dense + unit.experts;
	bool sums = sums_whole(b); /* in the format that they are reduced in */

	list_blocks(b, unit);
	need(b, FT_STREAM_REDUCE); /* one reduction in flight */
	if (weights_wait(b))
		need(b, FT_STREAM_OFFLOAD); /* and what it sends to the host */
	put_memory(b, "fsdp_pack", sums ? "copy" : "multi_copy",
		   (sums ? 2 * width : b->rules->fsdp_copy_grad_bytes + width) * n, 1);
	if (!has_peers(b, unit))
		put_wait(reduced_kernel(b, "fsdp_keep", "copy", 2 * width * n, 0),
			 FT_TAIL + FT_STREAM_COMPUTE);
}

void reduce_unit(struct builder *b, struct held unit, bool joins)
{
	double width = gradient_width(b), shard = (double)b->plan->shard;
	double expert_shard = (double)ft_plan_expert_shard(b->plan);

	unit = of_fsdp(b, unit);
	host(b, FT_HOST_SHARD_BACKWARD, 1);
	if (b->rules->flat_shards)
		flatten_gradients(b, unit);
	else if (b->rules->fsdp_copy_grad_bytes > 0)
		pack_gradients(b, unit);
	put_collective(b, "fsdp_reduce", FT_STREAM_REDUCE, FT_REDUCE_SCATTER,
		       FT_GROUP_SHARD, width * unit.dense);
	put_collective(b, "fsdp_reduce_experts", FT_STREAM_REDUCE, FT_REDUCE_SCATTER,
		       FT_GROUP_EXPERT_SHARD, width * unit.experts);
	if (b->plan->sharding == FT_HSDP) {
		bool whole = b->rules->one_program && b->plan->shard == 1;

		put_collective(b, whole ? "gradient_reduce" : "hsdp_reduce",
			       FT_STREAM_REDUCE, FT_ALL_REDUCE, FT_GROUP_REPLICA,
			       width * unit.dense / shard);
		put_collective(
			b, whole ? "gradient_reduce_experts" : "hsdp_reduce_experts",
			FT_STREAM_REDUCE, FT_ALL_REDUCE, FT_GROUP_EXPERT_REPLICA,
			width * unit.experts / expert_shard);
	}
	if (joins && staying_gradient_width(b, 1) > 0)
		add_reduced(b, unit);
	gradients_go(b, unit, joins);
}

void gather_weights(struct builder *b, struct held unit)
{
	if (side_gather(b, "zero_gather", FT_GROUP_SHARD,
			parameter_width(b) * unit.dense))
		need(b, FT_STREAM_GATHER);
	if (side_gather(b, "zero_gather_experts", FT_GROUP_EXPERT_SHARD,
			expert_parameter_width(b) * unit.experts))
		need(b, FT_STREAM_GATHER);
}

/* DeepSpeed's BF16_Optimizer. */
bool has_two_gradients(const struct builder *b)
{
	return b->rules->whole_gradients && b->plan->sharding == FT_ZERO1 &&
	       b->plan->precision == FT_BF16;
}

/* Does each rank get whole gradients, also those that another one's update needs? */
static bool reduces_whole(const struct builder *b)
{
	return !ft_plan_divides(b->plan) || has_two_gradients(b) ||
	       (b->plan->sharding == FT_ZERO1 && b->rules->all_reduced_gradients);
}

bool sums_shards(const struct builder *b)
{
	return is_fsdp(b->plan) || b->plan->sharding == FT_ZERO2;
}

/* Megatron without overlap: one bucket, when the last backward is over. Source: its
 * DistributedDataParallel, which then has no bucket size (read 2026-11-24); DeepSpeed of 2022 is
 * taken to do so. */
bool reduces_at_once(const struct builder *b)
{
	return !b->plan->overlap_dp && b->rules->bucket_bytes <= 0 &&
	       b->plan->sharding <= FT_ZERO1;
}

/* Where nothing may run beside them, what comes next waits for those that were put; behind one at
 * once comes the update, or another run of the pipeline. */
void await_reductions(struct builder *b)
{
	if (!b->plan->overlap_dp && !is_fsdp(b->plan) &&
	    (!reduces_at_once(b) || flush_reduces(b)) && !left_out(b))
		need(b, FT_STREAM_REDUCE);
}

void put_reductions(struct builder *b, struct held unit)
{
	enum ft_collective op = reduces_whole(b) ? FT_ALL_REDUCE : FT_REDUCE_SCATTER;
	double width = gradient_width(b);

	if (b->autocast && b->plan->dp * b->plan->cp > 1)
		put_memory(b, "bucket_scale", "copy",
			   2 * width * (unit.dense + unit.experts), 1);
	if (b->plan->dp * b->plan->cp > 1)
		put_memory(b, "bucket_copy", "copy",
			   b->rules->bucket_copy_bytes * (unit.dense + unit.experts),
			   2);
	put_collective(b, "gradient_reduce", FT_STREAM_REDUCE, op,
		       op == FT_ALL_REDUCE ? FT_GROUP_DP : FT_GROUP_SHARD,
		       width * unit.dense);
	if (op != FT_ALL_REDUCE)
		put_collective(b, "gradient_copies", FT_STREAM_REDUCE, FT_ALL_REDUCE,
			       FT_GROUP_REPLICA,
			       width * unit.dense / (double)b->plan->shard);
	put_collective(b, "gradient_reduce_experts", FT_STREAM_REDUCE, op,
		       op == FT_ALL_REDUCE ? FT_GROUP_EDP : FT_GROUP_EXPERT_SHARD,
		       width * unit.experts);
	if (op != FT_ALL_REDUCE)
		put_collective(b, "gradient_copies_experts", FT_STREAM_REDUCE,
			       FT_ALL_REDUCE, FT_GROUP_EXPERT_REPLICA,
			       width * unit.experts /
				       (double)ft_plan_expert_shard(b->plan));
}

void reduce_gradients(struct builder *b, struct held unit, bool first)
{
	if (reduces_at_once(b))
		return;
	put_reductions(b, unit);
	gradients_go(b, unit, !first);
	if (b->plan->sharding == FT_ZERO2 && !first && !gradients_go_each(b))
		put_memory(b, "accumulate", "add",
			   3 * gradient_width(b) * held_share(b, unit), 1);
}

/* A micro-batch's gradients in 16 bit are cleared and come as sums, then are added to the set that
 * is reduced, by way of a copy where that is wider. */
static void accumulate_in_two_sets(struct builder *b, double n)
{
	double width = gradient_width(b);

	put_memory(b, "gradient_clear", "copy", 2 * n, 4);
	put_memory(b, "accumulate", "add", 6 * n, 4);
	if (width > 2)
		put_memory(b, "gradient_cast", "cast", (2 + width) * n, 4);
	put_memory(b, "accumulate", "add", 3 * width * n, 4);
}

/* A product's gradient becomes fp32 in each micro-batch, a table's is. Source: a recorded step of DDP on two H200 with two
 * micro-batches, 3.9 ms of casts and 6.4 of sums of 1.9 G gradients (measurements/probes/h200-2026-11-28-two-drawn-unseen). */
static void accumulate_under_autocast(struct builder *b, struct held unit, bool first,
				      bool table)
{
	double n = unit.dense + unit.experts;

	if (!table)
		put_memory(b, "gradient_cast", "cast", 6 * cast_by_autocast(b, unit),
			   4);
	if (!first || (table && b->model->tied && b->plan->pp == 1)) /* to the head's */
		put_memory(b, "accumulate", "add", 12 * n, 4);
}

void accumulate_gradients(struct builder *b, struct held unit, bool first, bool table)
{
	struct held reduced = of_fsdp(b, unit);
	double width = gradient_width(b), n = reduced.dense + reduced.experts;

	if (!first && !b->rules->gradient_fusion) /* the others', in 16 bit */
		put_memory(b, "accumulate", "add", 6 * (unit.experts - reduced.experts),
			   2);
	first |= b->plan->sharding == FT_ZERO2; /* those of before are shards */
	if (b->rules->gradient_fusion || (is_fsdp(b->plan) && !sums_whole(b)))
		return;
	if (b->autocast)
		accumulate_under_autocast(b, reduced, first, table);
	else if (has_two_gradients(b))
		accumulate_in_two_sets(b, n);
	else if (!first && is_fsdp(b->plan) && width > 2)
		put_memory(b, "accumulate", "strided_add", (2 + 2 * width) * n,
			   (int)unit.tensors);
	else if (!first)
		put_memory(b, "accumulate", "add", (2 + 2 * width) * n, 4);
	else if (width > 2)
		put_memory(b, "gradient_cast", "cast", (2 + width) * n, 4);
}

void cast_weights(struct builder *b, struct held unit)
{
	if (b->autocast)
		put_memory(b, "weight_cast", "cast", 6 * cast_by_autocast(b, unit), 6);
}
