/*
 * traces/host_state.c - state that waits in host memory: its copies, and the update that the host makes there
 *
 * PyTorch's FSDP (all): a unit's shard is copied in fp32 on the stream that copies in, or, of one rank, on compute's. FSDP2
 * sends reduced gradients behind the reduction, on its stream, and waits for them behind the step's last backward; those of later
 * micro-batches it copies into other memory of the host, which waits for each, and adds them there. FSDP1's host waits for each
 * copy, and a later micro-batch's takes the place of an earlier one's, so that only sums of whole gradients (no_sync) are right. With
 * use_orig_params (as accelerate and Lightning set it) parameters' gradients are views of the last step's when a unit is gathered for
 * its backward, and the host makes memory for all of the unit's and copies them there.
 * DeepSpeed (optimizer): a reduced part goes at once; a later micro-batch's brings the sum back, adds to it, and sends it again.
 * Megatron's zero1 and ddp send their sums when all are there.
 *
 * Source: torch/distributed/fsdp (_fully_shard/_fsdp_param.py, _fsdp_collectives.py; _runtime_utils.py), DeepSpeed's
 * runtime/zero/stage_1_and_2.py (read 2026-11-30). Measured: measurements/probes/h200-2026-11-30-host-update-unseen,
 * -host-state-unseen (steps), of two ranks -two-host-state-unseen.
 * Limits: one copy a unit, not one a tensor; a node's other ranks take nothing of a link; such gradients of a unit's share of less than
 * 32 MiB take nothing.
 */
#include "traces/host_state.h"
#include "traces/casts.h"
#include "traces/memory.h"
#include "traces/sharding.h"

/* Bytes of a number on the host, and those that Adam's update moves for it, as on a GPU (update.c). */
enum { WEIGHT = 4, UPDATE = 28 };

static const double million = 1e6;

bool state_waits(const struct builder *b)
{
	return b->plan->offload_state != FT_OFFLOAD_NONE;
}

bool weights_wait(const struct builder *b)
{
	return b->plan->offload_state == FT_OFFLOAD_ALL;
}

double mapped_share(double numbers, double shard)
{
	enum { MOST = 32 << 20 }; /* glibc's M_MMAP_THRESHOLD, its largest */

	return WEIGHT * numbers / shard > MOST ? numbers / shard : 0;
}

bool gradients_go_each(const struct builder *b)
{
	return state_waits(b) && sums_shards(b);
}

double staying_gradient_width(const struct builder *b, double width)
{
	return gradients_go_each(b) ? 0 : width;
}

static struct ft_op *put_host_copy(struct builder *b, const char *name,
				   enum ft_stream stream, double bytes)
{
	struct ft_work w = { .kind = FT_MEMORY_BOUND, .name = name, .dtype = FT_FP32 };

	w.memory.kernel = FT_HOST_LINK;
	w.memory.bytes = bytes;
	return bytes > 0 ? put_op(b, &w, stream, 1) : NULL;
}

/* A place in compute, which waits for what was noted; the host goes on behind it if it waits. */
static void put_mark(struct builder *b, const char *name, bool host_too)
{
	struct ft_work w = { .kind = FT_MEMORY_BOUND, .name = name, .dtype = FT_BF16 };
	struct ft_op *mark;

	w.memory.kernel = "multi_copy";
	mark = put_op(b, &w, FT_STREAM_COMPUTE, 0);
	mark->host_waits = false;
	if (host_too)
		host_waits(b);
}

bool shard_comes(struct builder *b, struct held unit, int behind, int too)
{
	struct ft_op *copy;
	double bytes = WEIGHT * held_share(b, unit) +
		       unit.frozen / (double)b->plan->shard +
		       unit.frozen_experts / (double)ft_plan_expert_shard(b->plan);

	if (!weights_wait(b))
		return false;
	copy = put_host_copy(b, "state_in", FT_STREAM_FETCH, bytes);
	if (!copy)
		return false;
	put_wait(copy, behind);
	if (too != FT_EVENT_NONE)
		put_wait(copy, too);
	return true;
}

/* FSDP2's: the host waits for the copy, into memory that it does not pin, of large tensors not touched before, and adds. */
static void join_on_host(struct builder *b, struct held unit)
{
	need(b, FT_STREAM_OFFLOAD);
	put_mark(b, "state_joins", true);
	host(b, FT_HOST_STATE_JOIN, held_share(b, unit) / million);
	host(b, FT_HOST_STATE_MAPPED, unit.mapped / million);
}

/* DeepSpeed's: the sum comes back. */
static void join_on_gpu(struct builder *b, double n)
{
	double width = gradient_width(b);

	if (put_host_copy(b, "state_in", FT_STREAM_FETCH, width * n))
		need(b, FT_STREAM_FETCH);
	put_memory(b, "accumulate", "add", 3 * width * n, 1);
}

void gradients_go(struct builder *b, struct held unit, bool joins)
{
	double n = held_share(b, unit), width = gradient_width(b);
	struct ft_op *copy;

	if (!gradients_go_each(b))
		return;
	if (weights_wait(b))
		width = kept_gradient_width(b);
	else if (joins)
		join_on_gpu(b, n);
	copy = put_host_copy(b, "state_out", FT_STREAM_OFFLOAD, width * n);
	if (!copy)
		return;
	put_wait(copy, FT_TAIL + FT_STREAM_REDUCE);
	put_wait(copy, FT_TAIL + FT_STREAM_COMPUTE);
	if (!weights_wait(b))
		return;
	if (b->rules->flat_shards) {
		b->host_waited = copy->host_waits = true;
		if (!joins && has_peers(b, unit))
			host(b, FT_HOST_STATE_VIEWS, mapped_share(n, 1) / million);
	} else if (joins)
		join_on_host(b, unit);
}

void update_on_host(struct builder *b, struct held stage)
{
	bool divided = ft_plan_divides(b->plan);
	double n = divided ? held_share(b, stage) : stage.dense + stage.experts;
	struct ft_op *copy = NULL;

	if (!gradients_go_each(b))
		copy = put_host_copy(b, "state_out", FT_STREAM_OFFLOAD,
				     gradient_width(b) * n);
	if (copy) {
		put_wait(copy, FT_TAIL + FT_STREAM_REDUCE);
		put_wait(copy, FT_TAIL + FT_STREAM_COMPUTE);
	}
	need(b, FT_STREAM_OFFLOAD);
	put_mark(b, "state_there", true);
	if (b->rules->scaled_gradients && weights_wait(b))
		host(b, FT_HOST_STATE_NORM, n / million);
	host(b, FT_HOST_STATE_UPDATE, n / million / (double)b->plan->offload_threads);
	host(b, FT_HOST_STATE_MEMORY, UPDATE * n / million);
	if (!weights_wait(b) &&
	    put_host_copy(b, "state_in", FT_STREAM_FETCH, parameter_width(b) * n))
		need(b, FT_STREAM_FETCH);
	put_mark(b, "state_back", false); /* behind all that: the step is over */
}

void state_leaves(const struct builder *b, struct held stage, double bytes[FT_MEMORIES])
{
	const struct ft_plan *p = b->plan;
	double shared = held_share(b, stage);

	if (!state_waits(b))
		return;
	bytes[FT_MEMORY_OPTIMIZER] = 0;
	if (weights_wait(b))
		bytes[FT_MEMORY_WEIGHTS] -=
			WEIGHT * shared + stage.frozen / (double)p->shard +
			stage.frozen_experts / (double)ft_plan_expert_shard(p);
	else if (is_fsdp(p)) /* what is gathered is kept as it is gathered */
		bytes[FT_MEMORY_WEIGHTS] -= 2 * shared;
	if (p->sharding == FT_ZERO2 && !gradients_come(b))
		bytes[FT_MEMORY_GRADIENTS] -= gradient_width(b) * shared;
}
