/* traces/build.c - a stage's program: which segments its host calls, in order */
#include <stdio.h>
#include <string.h>

#include "traces/build.h"

struct whole {
	struct ft_graph graph; /* first: the handle is the arena's */
	struct arena mem;
};

enum role {
	ROLE_STEP,
	ROLE_EMBED,
	ROLE_HEAD,
	ROLE_LAYER,
	ROLE_HEAD_BACK,
	ROLE_EMBED_BACK,
	ROLE_LAYER_BACK,
	ROLE_RECEIVE, /* kind 0 forward, 1 backward */
	ROLE_SEND,
	ROLE_SCALE,
	ROLE_OPTIMIZER,
};

/* One stage while its program is written. */
struct stage {
	struct builder *b;
	struct ft_class *rank_class;
	size_t call_cap;
	int64_t number;
	bool first, last; /* chunk 0 of stage 0; last chunk of the last stage */
	struct held held, root;
	int64_t *begin; /* [vpp + 1 ... ] first layer of each chunk */
	int64_t *end;
	bool started[2]; /* a forward (backward) micro-batch ran before */
};

static void call(struct stage *st, uint32_t segment)
{
	struct ft_class *c = st->rank_class;

	if (c->n_calls && c->call[c->n_calls - 1].segment == segment) {
		c->call[c->n_calls - 1].repeat++;
		return;
	}
	if (c->n_calls == st->call_cap)
		c->call = ARENA_GROW(st->b->mem, c->call, &st->call_cap);
	c->call[c->n_calls++] = (struct ft_call){ segment, 1 };
}

/* Begin a segment unless it exists; when it does, call it. */
static bool fresh(struct stage *st, enum role role, int64_t kind, unsigned variant,
		  const char *name)
{
	struct segment_key key = { (int)role, kind, variant };
	static const char *const tags[] = { "first",  "sync",	"edge",
					    "ragged", "bucket", "gather" };
	struct builder *b = st->b;
	char *full;
	uint32_t id;

	if (segment_known(b, key, &id)) {
		call(st, id);
		return false;
	}
	full = arena_printf(b->mem, "%s.%d", name, (int)kind);
	for (int i = 0; i < 6; i++)
		if (variant & (1u << i))
			full = arena_printf(b->mem, "%s.%s", full, tags[i]);
	if (variant >= V_LAYERS)
		full = arena_printf(b->mem, "%s.%u", full, variant / V_LAYERS);
	segment_begin(b, key, full);
	return true;
}

static void done(struct stage *st)
{
	call(st, segment_end(st->b));
}

static void transfer(struct stage *st, bool receive, bool backward)
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
	double slice = p->sequence_parallel ? (double)p->tp : 1;
	struct ft_op *op;

	if (!fresh(st, receive ? ROLE_RECEIVE : ROLE_SEND, backward,
		   b->tokens == p->micro_batch * p->sequence / p->cp ? 0 : V_RAGGED,
		   receive ? "receive" : "send"))
		return;
	w.communication.op = FT_SENDRECV;
	w.communication.copy_engine = on_copy_engine(b, FT_SENDRECV);
	w.communication.group = FT_GROUP_PP;
	w.communication.bytes = 2 * (double)(b->tokens * b->model->hidden_size) / slice;
	host(b, FT_HOST_PIPELINE, 1);
	op = put_op(b, &w, stream, 0);
	if (!receive)
		put_wait(op, FT_TAIL + FT_STREAM_COMPUTE);
	done(st);
}

/* The compute that follows waits for what was received; without overlap for what
 * was sent, too. Written into the segment that begins a chunk. */
static void await_neighbour(struct stage *st, bool backward, bool received)
{
	struct builder *b = st->b;

	if (received)
		need(b, backward ? FT_STREAM_RECV_BACKWARD : FT_STREAM_RECV_FORWARD);
	if (b->plan->pp > 1 && !b->plan->overlap_pp && !backward)
		need(b, FT_STREAM_SEND_BACKWARD);
	if (b->plan->pp > 1 && !b->plan->overlap_pp && backward)
		need(b, FT_STREAM_SEND_FORWARD);
}

static void embed(struct stage *st, unsigned variant)
{
	struct builder *b = st->b;

	if (!fresh(st, ROLE_EMBED, st->number, variant, "embed"))
		return;
	host(b, FT_HOST_MICRO_BATCH, 1);
	await_neighbour(st, false, false);
	if (is_fsdp(b->plan)) {
		gather_unit(b, st->root, FT_EVENT_UNSHARDED);
		unshard_unit(b, st->root);
		root_bytes(b, st->root);
	} else if (gathers_ahead(b) && (variant & V_FIRST)) {
		gather_weights(b, ends_held(b, true, st->last));
	}
	cast_weights(b, ends_held(b, true, false));
	embedding_forward(b);
	done(st);
}

static void forward_layer(struct stage *st, int64_t layer, unsigned variant,
			  bool received)
{
	struct builder *b = st->b;
	struct held unit = layer_held(b, layer);

	if (received)
		variant |= V_EDGE;
	if (!fresh(st, ROLE_LAYER, b->kind[layer], variant, "forward"))
		return;
	if (received)
		await_neighbour(st, false, true);
	if (is_fsdp(b->plan)) {
		gather_unit(b, unit, FT_EVENT_UNSHARDED);
		unshard_unit(b, unit);
	} else if (variant & V_GATHER) {
		double n = variant / V_LAYERS;

		gather_weights(b, (struct held){ .dense = n * unit.dense,
						 .experts = n * unit.experts });
	}
	cast_weights(b, unit);
	layer_forward(b, layer);
	layer_bytes(b, layer, false);
	done(st);
}

static void head(struct stage *st, unsigned variant, bool received)
{
	struct builder *b = st->b;

	if (received)
		variant |= V_EDGE; /* a chunk of no layers */
	if (!fresh(st, ROLE_HEAD, st->number, variant, "head"))
		return;
	if (received)
		await_neighbour(st, false, true);
	cast_weights(b, ends_held(b, false, true));
	outputs_forward(b);
	head_bytes(b, st->root, false);
	done(st);
}

/* Gradients of a unit are kept from its first backward on (fsdp: its shard). */
static void keep_gradients(struct stage *st, struct held unit, bool first)
{
	struct builder *b = st->b;
	const struct ft_plan *p = b->plan;

	if (!is_fsdp(p) || !first)
		return;
	b->seg->net_bytes[FT_MEMORY_GRADIENTS] +=
		gradient_width(b) *
		(unit.dense / (double)p->shard + unit.experts / (double)p->edp);
}

static void head_back(struct stage *st, unsigned variant, int64_t next)
{
	struct builder *b = st->b;
	bool fsdp = is_fsdp(b->plan);

	if (!fresh(st, ROLE_HEAD_BACK, st->number, variant, "head_back"))
		return;
	await_neighbour(st, true, false);
	if (fsdp && b->rules->gather_root_again) {
		gather_unit(b, st->root, FT_EVENT_HEAD);
		unshard_unit(b, st->root);
	}
	if (fsdp && b->plan->reshard_after_forward)
		gather_unit(b, layer_held(b, next), FT_EVENT_UNSHARDED);
	outputs_backward(b);
	accumulate_gradients(b, ends_held(b, false, true), variant & V_FIRST);
	if (variant & V_SYNC && !fsdp)
		reduce_gradients(b, outputs_held(b, st->first));
	head_bytes(b, st->root, true);
	done(st);
}

static void backward_layer(struct stage *st, int64_t layer, unsigned variant,
			   bool received)
{
	struct builder *b = st->b;
	struct held unit = layer_held(b, layer);
	bool fsdp = is_fsdp(b->plan);

	if (!fresh(st, ROLE_LAYER_BACK, b->kind[layer] * 2 + received, variant,
		   "backward"))
		return;
	if (received)
		await_neighbour(st, true, true);
	if (fsdp && b->plan->reshard_after_forward) {
		if (received)
			gather_unit(b, unit, FT_EVENT_UNSHARDED);
		unshard_unit(b, unit);
		if (!(variant & V_EDGE))
			gather_unit(
				b, unit,
				FT_EVENT_UNSHARDED); /* of the layer below, as large */
	}
	layer_backward(b, layer);
	layer_bytes(b, layer, true);
	accumulate_gradients(b, unit, variant & V_FIRST);
	keep_gradients(st, unit, variant & V_FIRST);
	if (variant & V_SYNC && fsdp)
		reduce_unit(b, unit);
	if (variant & V_SYNC && b->plan->sharding == FT_DDP)
		host(b, FT_HOST_GRADIENT_HOOK, (double)layer_tensors(b, layer));
	if (variant & V_BUCKET) {
		double n = variant / V_LAYERS;

		reduce_gradients(b, (struct held){ .dense = n * unit.dense,
						   .experts = n * unit.experts });
	}
	done(st);
}

static void embed_back(struct stage *st, unsigned variant)
{
	struct builder *b = st->b;

	if (!fresh(st, ROLE_EMBED_BACK, st->number, variant, "embed_back"))
		return;
	embedding_backward(b);
	accumulate_gradients(b, ends_held(b, true, false), variant & V_FIRST);
	keep_gradients(st, st->root, variant & V_FIRST);
	if (variant & V_SYNC && is_fsdp(b->plan)) {
		reduce_unit(b, st->root);
		root_bytes(b, st->root);
	} else if (variant & V_SYNC) {
		reduce_gradients(b, ends_held(b, true, false));
	}
	done(st);
}

static unsigned variant_of(struct stage *st, const struct slot *slot)
{
	struct builder *b = st->b;
	const struct ft_plan *p = b->plan;
	bool last = slot->micro_batch == p->micro_batches - 1;
	bool ragged = last && p->last_micro_batch != p->micro_batch;
	unsigned v = 0;

	b->sequences = ragged ? p->last_micro_batch : p->micro_batch;
	b->tokens = b->sequences * p->sequence / p->cp;
	if (slot->micro_batch == 0)
		v |= V_FIRST;
	if (!slot->forward && (last || (is_fsdp(p) && b->rules->sync_each_micro_batch)))
		v |= V_SYNC;
	if (ragged)
		v |= V_RAGGED;
	return v;
}

static void forward_slot(struct stage *st, int64_t chunk, unsigned v)
{
	bool first = st->first && chunk == 0;
	bool last = st->last && chunk == st->b->plan->vpp - 1;
	bool received = !first;

	if (!first)
		transfer(st, true, false);
	if (first)
		embed(st, v);
	for (int64_t l = st->begin[chunk]; l < st->end[chunk]; l++) {
		forward_layer(st, l,
			      gather_variant(st->b, l - st->begin[chunk],
					     st->end[chunk] - l, v),
			      received);
		received = false;
	}
	if (last)
		head(st, v, received);
	else
		transfer(st, false, false);
}

static void backward_slot(struct stage *st, int64_t chunk, unsigned v)
{
	struct builder *b = st->b;
	bool first = st->first && chunk == 0;
	bool last = st->last && chunk == b->plan->vpp - 1;
	bool received = !last, fsdp = is_fsdp(b->plan);
	int64_t since = 0;

	if (last)
		head_back(st, v, st->end[chunk] - 1);
	else
		transfer(st, true, true);
	for (int64_t l = st->end[chunk] - 1; l >= st->begin[chunk]; l--) {
		unsigned own = v & ~(unsigned)V_FIRST;

		if (v & V_FIRST && (!b->rules->gradient_fusion || fsdp))
			own |= V_FIRST;
		if (l == st->begin[chunk] && fsdp)
			own |= V_EDGE;
		if (v & V_SYNC && !fsdp &&
		    (++since == b->layers_per_bucket || l == st->begin[chunk])) {
			own |= V_BUCKET | V_LAYERS * (unsigned)since;
			since = 0;
		}
		backward_layer(st, l, own, received);
		received = false;
	}
	if (first)
		embed_back(st, v);
	else
		transfer(st, false, true);
}

static void finish(struct stage *st)
{
	struct builder *b = st->b;
	const struct ft_plan *p = b->plan;
	double tied = !p->lora.rank && (b->model->tied || b->model->predicted) &&
				      p->pp > 1 && (st->first || st->last) ?
			      (double)(b->model->hidden_size *
				       ft_model_vocab(b->model, p->tp)) /
				      (double)p->tp :
			      0;

	if (!fresh(st, ROLE_OPTIMIZER, st->number, 0, "optimizer"))
		return;
	optimizer_ops(b, st->held, tied);
	host(b, FT_HOST_STEP, 1);
	done(st);
}

/* The layers of each chunk of this stage, and what they hold. */
static void stage_layers(struct stage *st)
{
	struct builder *b = st->b;
	const struct ft_plan *p = b->plan;
	int64_t at = 0;

	st->begin = ARENA_ARRAY(b->mem, (size_t)p->vpp, int64_t);
	st->end = ARENA_ARRAY(b->mem, (size_t)p->vpp, int64_t);
	for (int64_t v = 0; v < p->pp * p->vpp; v++) {
		int64_t next = at + p->stage_layers[v];

		if (v % p->pp == st->number) {
			st->begin[v / p->pp] = at;
			st->end[v / p->pp] = next;
			for (int64_t l = at; l < next; l++)
				held_add(&st->held, layer_held(b, l));
		}
		at = next;
	}
	st->root = ends_held(b, st->first, st->last);
	held_add(&st->held, st->root);
}

static void build_stage(struct builder *b, int64_t number)
{
	const struct ft_plan *p = b->plan;
	struct stage st = { .b = b,
			    .rank_class = &b->g->rank_class[number],
			    .number = number,
			    .first = number == 0,
			    .last = number == p->pp - 1 };
	struct slot *slot = ARENA_ARRAY(b->mem, (size_t)(2 * p->micro_batches * p->vpp),
					struct slot);
	size_t n = schedule_slots(b->mem, p, number, slot);

	st.rank_class->name = arena_printf(b->mem, "stage %d", (int)number);
	st.rank_class->ranks = p->ranks / p->pp;
	stage_layers(&st);
	base_bytes(b, st.held, st.rank_class->base_bytes);
	for (size_t i = 0; i < n; i++) {
		unsigned v = variant_of(&st, &slot[i]);

		if (slot[i].forward)
			forward_slot(&st, slot[i].chunk, v);
		else
			backward_slot(&st, slot[i].chunk, v);
	}
	b->sequences = p->micro_batch;
	b->tokens = p->micro_batch * p->sequence / p->cp;
	finish(&st);
}

/* Rank order, fastest first: tp, cp, dp; the expert grid is laid over the same
 * ranks as etp, ep, edp; pp is outermost. */
static void group_shapes(const struct ft_plan *p, struct ft_group_shape *g)
{
	int64_t dp = p->dp * p->cp, shard = p->shard > 0 ? p->shard : dp;

	g[FT_GROUP_TP] = (struct ft_group_shape){ p->tp, 1 };
	g[FT_GROUP_CP] = (struct ft_group_shape){ p->cp, p->tp };
	g[FT_GROUP_DP] = (struct ft_group_shape){ dp, p->tp };
	g[FT_GROUP_SHARD] = (struct ft_group_shape){ shard, p->tp };
	g[FT_GROUP_REPLICA] = (struct ft_group_shape){ dp / shard, p->tp * shard };
	g[FT_GROUP_ETP] = (struct ft_group_shape){ p->etp, 1 };
	g[FT_GROUP_EP] = (struct ft_group_shape){ p->ep, p->etp };
	g[FT_GROUP_EDP] = (struct ft_group_shape){ p->edp, p->etp * p->ep };
	g[FT_GROUP_PP] = (struct ft_group_shape){ p->pp > 1 ? 2 : 1, p->ranks / p->pp };
	g[FT_GROUP_EMBEDDING] = (struct ft_group_shape){
		p->pp > 1 ? 2 : 1, p->pp > 1 ? p->ranks / p->pp * (p->pp - 1) : 1
	};
}

static double recomputed(struct builder *b)
{
	double flop = 0;

	for (int64_t l = 0; l < b->model->n_layers; l++)
		flop += layer_recomputed_flop(b, l);
	flop += (double)b->model->predicted *
		layer_recomputed_flop(b, b->model->n_layers - 1);
	return flop * (double)b->plan->micro_batches / (double)b->plan->pp;
}

struct ft_graph *ft_graph_build(const struct ft_model *model,
				const struct ft_plan *plan,
				const struct ft_stack *stack, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct whole *w = ARENA_NEW(&mem, struct whole);
	struct ft_graph *g = &w->graph;
	struct builder b = { .mem = &w->mem, .g = g };

	w->mem = mem;
	if (plan->schedule == FT_ZERO_BUBBLE && plan->pp > 1) {
		ft_fail(err, NULL,
			"schedule: zero-bubble is not simulated yet; "
			"use 1f1b, interleaved or gpipe");
		ft_graph_free(g);
		return NULL;
	}
	builder_init(&b, model, plan, stack);
	group_shapes(plan, g->group);
	set_buckets(&b);
	g->n_classes = (size_t)plan->pp;
	g->rank_class = ARENA_ARRAY(&w->mem, g->n_classes, struct ft_class);
	for (int64_t s = 0; s < plan->pp; s++)
		build_stage(&b, s);
	g->host_runs_ahead = plan->step_start == FT_STEADY && !stack->layout.host_sync;
	g->tokens = (double)plan->global_batch * (double)plan->sequence;
	g->recomputed_flop_per_rank = recomputed(&b);
	return g;
}

void ft_graph_free(struct ft_graph *graph)
{
	struct arena mem;

	if (!graph)
		return;
	mem = ((struct whole *)graph)->mem;
	arena_release(&mem);
}
