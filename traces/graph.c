/* traces/graph.c - filling a graph: works once, segments by key, ops in order */
#include "foretoken/traces.h"

#include <assert.h>
#include <string.h>

#include "traces/build.h"
#include "traces/casts.h"
#include "traces/memory.h"
#include "traces/sharding.h"
#include "traces/chosen.h"
#include "traces/stretches.h"

/* As many bytes take longer in many kernels than in one: those are two works. */
static uint32_t add_work(struct builder *b, const struct ft_work *work,
			 uint16_t launches)
{
	struct ft_graph *g = b->g;

	for (size_t i = 0; i < g->n_works; i++)
		if (b->launches[i] == launches && ft_work_same(&g->work[i], work) &&
		    !strcmp(g->work[i].name, work->name))
			return (uint32_t)i;
	if (g->n_works == b->work_cap) {
		size_t cap = b->work_cap;

		g->work = ARENA_GROW(b->mem, g->work, &b->work_cap);
		b->launches = ARENA_GROW(b->mem, b->launches, &cap);
	}
	g->work[g->n_works] = *work;
	b->launches[g->n_works] = launches;
	return (uint32_t)g->n_works++;
}

/* Whole weights on each rank are, in a program of XLA's, shards of a group of one: in fp32, cast where they are
 * used, with gradients that all replicas sum. */
static const struct ft_plan *as_compiled(struct builder *b, const struct ft_plan *plan,
					 const struct ft_stack *stack)
{
	struct ft_plan *same;

	if (!stack->layout.one_program || plan->sharding != FT_DDP)
		return plan;
	same = ARENA_NEW(b->mem, struct ft_plan);
	*same = *plan;
	same->sharding = FT_HSDP;
	same->reshard_after_forward = true;
	return same;
}

void builder_init(struct builder *b, const struct ft_model *model,
		  const struct ft_plan *plan, const struct ft_stack *stack)
{
	b->model = model;
	b->plan = as_compiled(b, plan, stack);
	b->stack = stack;
	b->rules = &stack->layout;
	b->format = plan->precision;
	b->autocast = stack->layout.autocast && plan->master_weights &&
		      !ft_plan_divides(plan);
	b->sequences = plan->micro_batch;
	b->tokens = plan->micro_batch * plan->sequence / plan->cp;
	b->exchanged = FT_EVENTS;
	choose_layers(b);
}

bool segment_known(struct builder *b, struct segment_key key, uint32_t *id)
{
	for (size_t i = 0; i < b->g->n_segments; i++)
		if (b->key[i].role == key.role && b->key[i].kind == key.kind &&
		    b->key[i].variant == key.variant &&
		    b->key[i].beside == key.beside && b->key[i].part == key.part) {
			*id = (uint32_t)i;
			return true;
		}
	return false;
}

void segment_begin(struct builder *b, struct segment_key key, const char *name)
{
	struct ft_graph *g = b->g;

	if (g->n_segments == b->segment_cap) {
		size_t cap = b->segment_cap;

		g->segment = ARENA_GROW(b->mem, g->segment, &b->segment_cap);
		b->key = ARENA_GROW(b->mem, b->key, &cap);
	}
	b->key[g->n_segments] = key;
	b->seg = &g->segment[g->n_segments++];
	*b->seg = (struct ft_segment){ .name = name };
	b->op_cap = 0;
	memset(b->needs, 0, sizeof(b->needs));
	memset(b->awaits, 0, sizeof(b->awaits));
	b->record_next = FT_EVENT_NONE;
}

uint32_t segment_end(struct builder *b)
{
	b->seg = NULL;
	b->part = PART_WHOLE;
	return (uint32_t)(b->g->n_segments - 1);
}

void put_wait(struct ft_op *op, int event_or_tail)
{
	for (int i = 0; i < FT_OP_WAITS; i++) {
		if (op->wait[i] == event_or_tail)
			return;
		if (op->wait[i] == FT_EVENT_NONE) {
			op->wait[i] = (uint8_t)event_or_tail;
			return;
		}
	}
	assert(!"an op waits for too much");
}

bool left_out(const struct builder *b)
{
	return b->part != PART_WHOLE && b->of_weights != (b->part == PART_WEIGHTS);
}

bool of_weights(struct builder *b, bool is)
{
	bool was = b->of_weights;

	b->of_weights = is;
	return was;
}

/* An op that is in no segment; what waits for it or is recorded with it is not, either. */
static struct ft_op *put_nowhere(struct builder *b)
{
	struct ft_op *op = ARENA_NEW(b->mem, struct ft_op);

	memset(op->wait, FT_EVENT_NONE, sizeof(op->wait));
	if (b->part == PART_WEIGHTS)
		b->record_next = FT_EVENT_NONE;
	return op;
}

/* A compute op waits for what was noted. */
static void put_needs(struct builder *b, struct ft_op *op)
{
	for (int i = 0; i < FT_EVENTS; i++)
		if (b->awaits[i]) {
			put_wait(op, i);
			b->awaits[i] = false;
		}
	for (int i = 0; i < FT_STREAMS; i++)
		if (b->needs[i]) {
			put_wait(op, FT_TAIL + i);
			b->needs[i] = false;
		}
}

bool splits_by_dtensor(const struct builder *b)
{
	return b->rules->tensor_parallel == FT_TP_DTENSOR && b->plan->tp > 1;
}

void call_operator(struct builder *b, int launches)
{
	if (splits_by_dtensor(b) && by_operation(b) && !b->of_shards)
		host(b, FT_HOST_TENSOR_OP, launches);
}

struct ft_op *put_op(struct builder *b, const struct ft_work *work,
		     enum ft_stream stream, int launches)
{
	uint16_t times = (uint16_t)(launches < UINT16_MAX ? launches : UINT16_MAX);
	struct ft_segment *s = b->seg;
	struct ft_op *op;

	if (left_out(b))
		return put_nowhere(b);
	if (s->n_ops == b->op_cap)
		s->op = ARENA_GROW(b->mem, s->op, &b->op_cap);
	op = &s->op[s->n_ops++];
	*op = (struct ft_op){ .work = add_work(b, work, times),
			      .stream = (uint8_t)stream,
			      .launches = times,
			      .graphed = b->graphed,
			      .record = FT_EVENT_NONE };
	memset(op->wait, FT_EVENT_NONE, sizeof(op->wait));
	if (b->rules->blocking_launches)
		b->host_waited = op->host_waits = true;
	if (stream == FT_STREAM_COMPUTE)
		put_needs(b, op);
	if (stream == FT_STREAM_COMPUTE)
		call_operator(b, launches);
	if (stream == FT_STREAM_COMPUTE && b->record_next != FT_EVENT_NONE) {
		op->record = (uint8_t)b->record_next;
		b->record_next = FT_EVENT_NONE;
	}
	return op;
}

void need(struct builder *b, enum ft_stream stream)
{
	b->needs[stream] = true;
}

void await_event(struct builder *b, enum ft_event event)
{
	b->awaits[event] = true;
}

void host_waits(struct builder *b)
{
	for (size_t i = b->seg->n_ops; !left_out(b) && i-- > 0;)
		if (b->seg->op[i].stream == FT_STREAM_COMPUTE) {
			b->seg->op[i].host_waits = true;
			b->host_waited = true;
			(void)segment_cut(b->mem, b->seg, i + 1);
			return;
		}
}

void host(struct builder *b, enum ft_host activity, double times)
{
	struct ft_segment *s = b->seg;

	if (left_out(b))
		return;
	s->host[activity] += times;
	if (s->n_behind)
		s->behind[s->n_behind - 1].host[activity] += times;
}

void put_gradient_sum(struct builder *b, double elements)
{
	bool was;

	if (!b->rules->autograd_split || b->part == PART_WHOLE || b->plan->lora.rank)
		return;
	gradient_waits(b, elements);
	was = of_weights(b, true);
	host(b, FT_HOST_SPLIT_WEIGHT, 1);
	put_memory(b, "gradient_sum", "copy", 4 * elements, 1);
	of_weights(b, was);
}

/* Up to the next edge that tensor cores take at their full rate: what a compiler pads a product to. */
static int64_t padded(const struct builder *b, int64_t edge)
{
	return b->rules->pads_products ? (edge + 7) / 8 * 8 : edge;
}

void put_product(struct builder *b, const struct ft_work *product)
{
	struct ft_work w = *product;
	bool was;

	if (w.gemm.m <= 0 || w.gemm.n <= 0 || w.gemm.k <= 0)
		return;
	if (w.gemm.layout == FT_WGRAD && b->plan->lora.rank && !b->adapting)
		return; /* the weight is frozen */
	w.gemm.m = padded(b, w.gemm.m);
	w.gemm.n = padded(b, w.gemm.n);
	w.gemm.k = padded(b, w.gemm.k);
	w.gemm.accumulate = w.gemm.layout == FT_WGRAD && b->rules->gradient_fusion &&
			    b->plan->gradient_dtype == FT_FP32;
	w.gemm.fast = w.gemm.layout == FT_FORWARD && w.dtype == FT_FP8;
	if (w.gemm.layout == FT_WGRAD)
		put_gradient_sum(b, (double)w.gemm.m * (double)w.gemm.n);
	was = of_weights(b, b->of_weights || w.gemm.layout == FT_WGRAD);
	put_op(b, &w, FT_STREAM_COMPUTE, 1);
	of_weights(b, was);
}

void put_grouped(struct builder *b, const char *name, enum ft_layout layout,
		 struct edges edges, int64_t groups)
{
	put_product(b, &(struct ft_work){ .kind = FT_GEMM,
					  .name = name,
					  .dtype = b->format,
					  .gemm.layout = layout,
					  .gemm.m = edges.m,
					  .gemm.n = edges.n,
					  .gemm.k = edges.k,
					  .gemm.groups = groups,
					  .gemm.static_tiles = b->rules->static_tiles &&
							       groups > 1 });
}

void put_gemm(struct builder *b, const char *name, enum ft_layout layout, int64_t m,
	      int64_t n, int64_t k)
{
	if (layout == FT_FORWARD && chosen_skips(b, name))
		return;
	if (layout != FT_WGRAD)
		put_unpack(b, (double)n * (double)k);
	put_grouped(b, name, layout, (struct edges){ m, n, k }, 1);
}

void put_memory(struct builder *b, const char *name, const char *curve, double bytes,
		int launches)
{
	put_rows(b, name, curve, bytes, launches, 0);
}

void put_rows(struct builder *b, const char *name, const char *curve, double bytes,
	      int launches, double row_bytes)
{
	struct ft_work w = { .kind = FT_MEMORY_BOUND, .name = name, .dtype = FT_BF16 };

	if (bytes <= 0)
		return;
	w.memory.kernel = curve;
	w.memory.bytes = bytes;
	w.memory.row_bytes = row_bytes;
	put_op(b, &w, FT_STREAM_COMPUTE, launches);
}

/* Copy engines move; reductions need compute units. */
bool on_copy_engine(const struct builder *b, enum ft_collective op)
{
	return b->plan->copy_engines && op != FT_ALL_REDUCE && op != FT_REDUCE_SCATTER;
}

/* One communicator runs its collectives in the order of their launches, one at a time, on whatever
 * streams they are: 23 recordings of FSDP on 2 to 8 GPUs have no microsecond of two of them. PyTorch
 * has one communicator for all groups of all ranks of the job, and one for each smaller group
 * (h100-two-7b8L-cp2-*: both groups are its default one). */
static void take_turns(const struct builder *b, struct ft_op *o, enum ft_stream stream,
		       enum ft_group group)
{
	static const enum ft_stream on[] = { FT_STREAM_GATHER, FT_STREAM_REDUCE,
					     FT_STREAM_CP };
	bool context = b->plan->cp > 1 && b->plan->cp == b->plan->ranks &&
		       b->plan->shard == b->plan->ranks;

	if (!b->rules->collectives_in_turn || !is_fsdp(b->plan) ||
	    (group != FT_GROUP_SHARD && !(group == FT_GROUP_CP && context)))
		return;
	for (int i = 0; i < 2 + context; i++)
		if (on[i] != stream)
			put_wait(o, FT_TAIL + (int)on[i]);
}

struct ft_op *put_collective(struct builder *b, const char *name, enum ft_stream stream,
			     enum ft_collective op, enum ft_group group, double bytes)
{
	struct ft_work w = { .kind = FT_COMMUNICATION, .name = name, .dtype = FT_BF16 };
	struct ft_op *o;

	if (b->g->group[group].size <= 1 || bytes <= 0 || left_out(b))
		return NULL;
	w.communication.op = op;
	w.communication.group = group;
	w.communication.bytes = bytes;
	w.communication.copy_engine = on_copy_engine(b, op);
	o = put_op(b, &w, stream, 0);
	put_wait(o, FT_TAIL + FT_STREAM_COMPUTE);
	take_turns(b, o, stream, group);
	if (!b->graphed)
		host(b, FT_HOST_COLLECTIVE, 1);
	return o;
}
