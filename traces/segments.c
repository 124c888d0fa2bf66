/* traces/segments.c - the segments of a stage: what runs between two calls of its host */
#include "traces/host_state.h"
#include "traces/indexed.h"
#include "traces/memory.h"
#include "traces/memory_ends.h"
#include "traces/offload.h"
#include "traces/scan.h"
#include "traces/sharding.h"
#include "traces/stage.h"
#include "traces/streams.h"

static void call(struct stage *st, uint32_t segment)
{
	struct ft_class *c = st->rank_class;

	if (c->n_calls > c->slot[c->n_slots - 1].call &&
	    c->call[c->n_calls - 1].segment == segment) {
		c->call[c->n_calls - 1].repeat++;
		return;
	}
	if (c->n_calls == st->call_cap)
		c->call = ARENA_GROW(st->b->mem, c->call, &st->call_cap);
	c->call[c->n_calls++] = (struct ft_call){ segment, 1 };
}

void segment_slot(struct stage *st, struct ft_slot slot)
{
	struct ft_class *c = st->rank_class;

	if (c->n_slots == st->slot_cap)
		c->slot = ARENA_GROW(st->b->mem, c->slot, &st->slot_cap);
	c->slot[c->n_slots++] = (struct ft_slot_mark){ slot, c->n_calls };
}

/* Begin a segment unless it exists; when it does, call it. */
bool segment_fresh(struct stage *st, struct segment_key key, const char *name)
{
	static const char *const tags[] = { "first",  "sync",	     "edge",
					    "ragged", "bucket",	     "gather",
					    "fetch",  "fetch_below", "top" };
	enum { TAGS = sizeof(tags) / sizeof(*tags) };
	_Static_assert(1 << TAGS == V_BUCKETS, "a tag for each bit of a variant");
	struct builder *b = st->b;
	char *full;
	uint32_t id;

	if (segment_known(b, key, &id)) {
		call(st, id);
		return false;
	}
	full = arena_printf(b->mem, "%s.%d", name, (int)key.kind);
	for (int i = 0; i < TAGS; i++)
		if (key.variant & (1u << i))
			full = arena_printf(b->mem, "%s.%s", full, tags[i]);
	if (key.variant >= V_BUCKETS)
		full = arena_printf(b->mem, "%s.%u", full, key.variant / V_BUCKETS);
	if (key.role == ROLE_PAIR)
		full = arena_printf(b->mem, "%s.%x", full, key.beside);
	if (key.part != PART_WHOLE)
		full = arena_printf(b->mem, "%s.%s", full,
				    key.part == PART_INPUTS ? "inputs" : "weights");
	segment_begin(b, key, full);
	return true;
}

/* A segment of a backward, or of the part of it that is being called. */
static bool fresh_back(struct stage *st, enum role role, int64_t kind, unsigned variant,
		       const char *name)
{
	if (!segment_fresh(
		    st, (struct segment_key){ (int)role, kind, variant, 0, st->part },
		    name))
		return false;
	st->b->part = st->part;
	return true;
}

static bool fresh(struct stage *st, enum role role, int64_t kind, unsigned variant,
		  const char *name)
{
	return segment_fresh(
		st, (struct segment_key){ (int)role, kind, variant, 0, PART_WHOLE },
		name);
}

void segment_done(struct stage *st)
{
	call(st, segment_end(st->b));
}

/* Is each rank of a tensor group sent its slice alone, of a tensor that all of them hold? */
static bool sends_slices(const struct builder *b)
{
	return b->rules->scatter_gather && !b->plan->sequence_parallel &&
	       b->plan->tp > 1;
}

double segment_boundary_bytes(const struct builder *b)
{
	bool sliced = b->plan->sequence_parallel || sends_slices(b);

	return hidden_bytes(b) * (double)b->model->streams /
	       (sliced ? (double)b->plan->tp : 1);
}

/* What goes on beside hidden states into a chunk whose first layer sees what one before it chose. Nothing comes back. */
static double carried(const struct stage *st, int64_t chunk, bool receive,
		      bool backward)
{
	int64_t layer = receive ? st->begin[chunk] : st->end[chunk];

	return backward ? 0 : choice_sent(st->b, layer);
}

void segment_transfer(struct stage *st, int64_t chunk, bool receive, bool backward)
{
	struct builder *b = st->b;
	const struct ft_plan *p = b->plan;
	struct ft_work w = { .kind = FT_COMMUNICATION,
			     .dtype = FT_BF16,
			     .name = backward ? "pp_gradient" : "pp_activation" };
	enum ft_stream stream =
		receive ?
			(backward ? FT_STREAM_RECV_BACKWARD : FT_STREAM_RECV_FORWARD) :
			(backward ? FT_STREAM_SEND_BACKWARD : FT_STREAM_SEND_FORWARD);
	bool reverse = ft_schedule_folds(p->schedule) && chunk % 2;
	double choice = carried(st, chunk, receive, backward);
	struct ft_op *op;

	if (!fresh(st, receive ? ROLE_RECEIVE : ROLE_SEND,
		   backward + 2 * reverse + 4 * (choice > 0),
		   b->tokens == p->micro_batch * p->sequence / p->cp ? 0 : V_RAGGED,
		   receive ? "receive" : "send"))
		return;
	w.communication.op = FT_SENDRECV;
	w.communication.copy_engine = on_copy_engine(b, FT_SENDRECV);
	w.communication.group = FT_GROUP_PP;
	w.communication.bytes = segment_boundary_bytes(b) + choice;
	host(b, FT_HOST_PIPELINE, 1);
	op = put_op(b, &w, stream, 0);
	op->reverse = reverse;
	if (!receive)
		put_wait(op, FT_TAIL + FT_STREAM_COMPUTE);
	else if (b->rules->receive_sync && !p->overlap_pp)
		b->host_waited = op->host_waits = true;
	segment_done(st);
}

/* What came in slices is made whole. */
static void gather_slices(struct builder *b, enum ft_stream received)
{
	struct ft_op *o = put_collective(b, "pp_all_gather", FT_STREAM_TP,
					 FT_ALL_GATHER, FT_GROUP_TP, hidden_bytes(b));

	if (o)
		put_wait(o, FT_TAIL + (int)received);
	need(b, FT_STREAM_TP);
}

/* The compute that follows waits for what was received; without overlap for what
 * was sent, too. Written into the segment that begins a chunk. */
static void await_neighbour(struct stage *st, bool backward, bool received)
{
	struct builder *b = st->b;
	enum ft_stream stream =
		backward ? FT_STREAM_RECV_BACKWARD : FT_STREAM_RECV_FORWARD;

	if (received)
		need(b, stream);
	if (received && sends_slices(b))
		gather_slices(b, stream);
	if (b->plan->pp > 1 && !b->plan->overlap_pp && !backward)
		need(b, FT_STREAM_SEND_BACKWARD);
	if (b->plan->pp > 1 && !b->plan->overlap_pp && backward)
		need(b, FT_STREAM_SEND_FORWARD);
}

/* fsdp: a unit's weights, unless they are there from the step's first micro-batch. */
static void forward_unit(struct builder *b, struct held unit, unsigned variant)
{
	bool gathers = !keeps_units(b) || variant & V_FIRST;

	unit_comes(b, unit, gathers);
	if (!gathers) {
		host(b, FT_HOST_SHARD_KEPT, 1);
		return;
	}
	unshard_forward(b, unit);
}

/* PyTorch's FSDP, whose callback behind a backward that reduced makes compute wait for that.
 * Source: _root_post_backward_final_callback of FSDP2, and FSDP1's; on two H100 four
 * micro-batches took 50 ms more than one micro-batch promised, 32 by this. */
static bool waits_for_reductions(const struct builder *b, unsigned variant)
{
	return is_fsdp(b->plan) && b->plan->pp == 1 && !(variant & V_FIRST) &&
	       !b->plan->sync_last && b->rules->fsdp_copy_in_bytes > 0;
}

/* Of n tensors, n (n - 1) / 2 lie below another. Source: autograd's engine counts what each node
 * depends on, from the roots of every call (torch/csrc/autograd/engine.cpp). */
void segment_walks(struct stage *st)
{
	const struct ft_class *c = st->rank_class;
	double n = 0;

	for (size_t i = c->slot[c->n_slots - 1].call; i < c->n_calls; i++)
		n += c->call[i].repeat *
		     st->b->g->segment[c->call[i].segment].host[FT_HOST_SPLIT_WEIGHT];
	if (n < 2 || !fresh(st, ROLE_WALKS, (int64_t)n, 0, "walks"))
		return;
	host(st->b, FT_HOST_SPLIT_BELOW, n * (n - 1) / 2);
	segment_done(st);
}

void segment_embed(struct stage *st, unsigned variant)
{
	struct builder *b = st->b;

	if (!fresh(st, ROLE_EMBED, st->number, variant, "embed"))
		return;
	host(b, FT_HOST_MICRO_BATCH, 1);
	await_neighbour(st, false, false);
	if (waits_for_reductions(b, variant))
		need(b, FT_STREAM_REDUCE);
	await_reductions(b); /* zero2's, of the micro-batch before */
	if (is_fsdp(b->plan))
		forward_unit(b, st->root, variant);
	else if (gathers_ahead(b) && (variant & V_FIRST))
		gather_weights(b, ends_held(b, true, st->last));
	embedding_forward(b);
	if (b->rules->asks_inputs) {
		host_waits(b);
		host(b, FT_HOST_INPUTS, 1);
	}
	segment_done(st);
}

/* Before a layer's forward: what its neighbour sent, and its weights. */
static void before_forward(struct stage *st, struct layer_call f)
{
	struct builder *b = st->b;
	struct held unit = b->unit[f.layer];

	if (f.received)
		await_neighbour(st, false, true);
	if (is_fsdp(b->plan)) {
		forward_unit(b, unit, f.variant);
	} else if (f.variant & V_GATHER) {
		gather_weights(b, bucket_of(b, f.variant));
	}
	cast_weights(b, unit);
}

void segment_forward(struct stage *st, struct layer_call f)
{
	struct builder *b = st->b;

	if (f.received)
		f.variant |= V_EDGE;
	if (!fresh(st, ROLE_LAYER, b->kind[f.layer] + b->model->n_layers * f.streams,
		   f.variant, "forward"))
		return;
	before_forward(st, f);
	layer_forward(b, f.layer);
	layer_bytes(b, f.layer, false);
	streams_bytes(b, f.layer, f.streams, false);
	segment_done(st);
}

void segment_head(struct stage *st, unsigned variant, bool received)
{
	struct builder *b = st->b;

	if (received)
		variant |= V_EDGE; /* a chunk of no layers */
	if (!fresh(st, ROLE_HEAD, st->number, variant, "head"))
		return;
	if (received)
		await_neighbour(st, false, true);
	if (is_fsdp(b->plan) && !st->first)
		forward_unit(b, st->root, variant);
	else if (!st->first && gathers_ahead(b) && (variant & V_FIRST))
		gather_weights(b, ends_held(b, false, true));
	cast_weights(b, ends_held(b, false, true));
	outputs_forward(b);
	head_bytes(b, st->root, false);
	segment_done(st);
}

/* A unit's gradients stay from its first backward on. */
static void keep_gradients(struct stage *st, struct held unit, bool first)
{
	if (first)
		st->b->seg->net_bytes[FT_MEMORY_GRADIENTS] +=
			gradient_bytes(st->b, unit);
}

/* Counts the kept gradients of the root unit while its whole gradient is held, too. */
static void keep_root(struct stage *st, bool first)
{
	double *net = st->b->seg->net_bytes, was = net[FT_MEMORY_GRADIENTS];

	keep_gradients(st,
		       is_fsdp(st->b->plan) ? st->root : ends_held(st->b, true, false),
		       first);
	st->b->seg->peak_bytes[FT_MEMORY_GRADIENTS] += net[FT_MEMORY_GRADIENTS] - was;
}

/* Accumulates, keeps and reduces the gradients of the head's weights. */
static void behind_head(struct stage *st, unsigned variant)
{
	struct builder *b = st->b;
	struct held outputs = outputs_held(b, st->first);

	of_weights(b, true);
	accumulate_gradients(b, ends_held(b, false, true), variant & V_FIRST, false);
	if (!is_fsdp(b->plan))
		keep_gradients(st, outputs, variant & V_FIRST);
	if (variant & V_SYNC && !is_fsdp(b->plan))
		reduce_gradients(b, outputs, variant & V_FIRST);
	of_weights(b, false);
}

void segment_head_back(struct stage *st, unsigned variant, int64_t next)
{
	struct builder *b = st->b;
	bool again = is_fsdp(b->plan) && b->plan->reshard_after_forward;

	if (!fresh_back(st, ROLE_HEAD_BACK, st->number, variant, "head_back"))
		return;
	if (st->part != PART_WEIGHTS) {
		await_neighbour(st, true, false);
		if (again && b->rules->gather_root_again) {
			gather_unit(b, st->root, FT_EVENT_HEAD);
			unshard_unit(b, st->root);
		}
		if (again && next >= 0 && !scan_keeps_weights(b, next))
			gather_unit(b, b->unit[next], FT_EVENT_UNSHARDED);
	}
	outputs_backward(b);
	if (st->part != PART_INPUTS)
		behind_head(st, variant);
	head_bytes(b, st->root, true);
	if (variant & V_FIRST)
		takes(b, FT_MEMORY_GRADIENTS, -earlier_gradients(b, st->held),
		      -earlier_gradients(b, st->held));
	segment_done(st);
}

static void before_backward(struct stage *st, struct layer_call k)
{
	struct builder *b = st->b;
	struct held unit = b->unit[k.layer];

	if (k.received)
		await_neighbour(st, true, true);
	fetch_await(b, k.layer, k.variant);
	await_reductions(b);
	if (!is_fsdp(b->plan))
		return;
	root_waits(b, st->root, st->last);
	if (k.variant & V_SYNC && !(k.variant & (V_GATHER | V_TOP)))
		packed_waits(b, b->unit[layer_above(b, k.layer)]);
	if (!b->plan->reshard_after_forward) {
		host(b, FT_HOST_SHARD_KEPT, 1);
		unit_goes(b, unit);
		return;
	}
	unit_comes(b, unit, true);
	gathers_below(b, k.layer, k.variant & V_EDGE);
	if (scan_keeps_weights(b, k.layer))
		return;
	if (k.variant & V_GATHER)
		gather_unit(b, unit, FT_EVENT_UNSHARDED);
	unshard_unit(b, unit);
	if (!(k.variant & V_EDGE))
		gather_unit(b, b->unit[b->below[k.layer]], FT_EVENT_UNSHARDED);
}

/* Behind a layer's backward: its gradients. */
static void behind_backward(struct stage *st, struct layer_call k)
{
	struct builder *b = st->b;
	struct held unit = b->unit[k.layer];

	of_weights(b, true);
	accumulate_gradients(b, unit, k.variant & V_FIRST, false);
	keep_gradients(st, scan_laid(b, unit, k.variant & V_TOP), k.variant & V_FIRST);
	b->seg->net_bytes[FT_MEMORY_GRADIENTS] +=
		scan_turn_bytes(b, unit, k.variant & V_TOP);
	if (k.variant & V_SYNC && is_fsdp(b->plan))
		reduce_unit(b, unit, !(k.variant & V_FIRST) && !sums_whole(b));
	else if (sums_whole(b)) /* hooks sum up what comes */
		host(b, FT_HOST_SHARD_BACKWARD, 1);
	if (k.variant & V_SYNC && b->plan->sharding == FT_DDP && b->plan->pp == 1)
		host(b, FT_HOST_GRADIENT_HOOK, (double)layer_tensors(b, k.layer));
	if (k.variant & V_BUCKET)
		reduce_gradients(b, bucket_of(b, k.variant), k.variant & V_FIRST);
	of_weights(b, false);
}

void segment_backward(struct stage *st, struct layer_call k)
{
	struct builder *b = st->b;

	int64_t kind = b->kind[k.layer] + b->model->n_layers * k.streams;

	if (!fresh_back(st, ROLE_LAYER_BACK, kind * 2 + k.received, k.variant,
			"backward"))
		return;
	if (st->part != PART_WEIGHTS)
		before_backward(st, k);
	layer_backward(b, k.layer);
	fetch_below(b, k.layer, k.variant);
	layer_bytes(b, k.layer, true);
	streams_bytes(b, k.layer, k.streams, true);
	if (st->part != PART_INPUTS)
		behind_backward(st, k);
	if (k.variant & V_SYNC && is_fsdp(b->plan))
		packing_bytes(b, k.layer, k.variant & V_EDGE, st->root, st->last);
	segment_done(st);
}

void segment_pair(struct stage *st, struct layer_call f, struct layer_call k)
{
	struct builder *b = st->b;
	int64_t n = b->model->n_layers;
	int64_t kind = b->kind[f.layer] * n + b->kind[k.layer] +
		       n * n * (f.streams + 2 * k.streams);

	if (f.received)
		f.variant |= V_EDGE;
	if (!segment_fresh(st,
			   (struct segment_key){ ROLE_PAIR, kind * 2 + k.received,
						 f.variant, k.variant, PART_WHOLE },
			   "pair"))
		return;
	before_forward(st, f);
	before_backward(st, k);
	layer_pair(b, f.layer, k.layer);
	fetch_below(b, k.layer, k.variant);
	layer_bytes(b, f.layer, false);
	layer_bytes(b, k.layer, true);
	streams_bytes(b, f.layer, f.streams, false);
	streams_bytes(b, k.layer, k.streams, true);
	behind_backward(st, k);
	segment_done(st);
}

/* Behind the root unit's last backward of a micro-batch. */
static void root_done(struct stage *st, unsigned variant)
{
	struct builder *b = st->b;

	unit_goes(b, st->root);
	if (!(variant & V_SYNC))
		return;
	reduce_unit(b, st->root, !(variant & V_FIRST) && !sums_whole(b));
	reduce_bytes(b, st->root);
}

void segment_embed_back(struct stage *st, unsigned variant)
{
	struct builder *b = st->b;

	if (!fresh_back(st, ROLE_EMBED_BACK, st->number, variant, "embed_back"))
		return;
	of_weights(b, true);
	await_reductions(b);
	embedding_backward(b);
	accumulate_gradients(b, ends_held(b, true, false), variant & V_FIRST, true);
	keep_root(st, variant & V_FIRST);
	scan_ends(b);
	if (is_fsdp(b->plan))
		root_done(st, variant);
	else if (variant & V_SYNC)
		reduce_gradients(b, ends_held(b, true, false), variant & V_FIRST);
	table_bytes(b, st->root, st->last, variant);
	if (b->rules->asks_loss) {
		put_memory(b, "loss_look", "default", 2 * 4, 2);
		host_waits(b);
	}
	of_weights(b, false);
	segment_done(st);
}

void segment_root_back(struct stage *st, unsigned variant)
{
	struct builder *b = st->b;

	if (!fresh_back(st, ROLE_ROOT_BACK, st->number, variant, "root_back"))
		return;
	of_weights(b, true);
	keep_root(st, variant & V_FIRST);
	root_done(st, variant);
	of_weights(b, false);
	segment_done(st);
}
