/* traces/build.c - a stage's program: which segments its host calls, in order */

#include "base/limits.h"
#include "traces/memory.h"
#include "traces/muon.h"
#include "traces/offload.h"
#include "traces/scan.h"
#include "traces/sharding.h"
#include "traces/stage.h"
#include "traces/streams.h"

struct whole {
	struct ft_graph graph; /* first: the handle is the arena's */
	struct arena mem;
};

static unsigned variant_of(struct stage *st, const struct ft_slot *slot)
{
	struct builder *b = st->b;
	const struct ft_plan *p = b->plan;
	bool ragged = slot->micro_batch == p->micro_batches - 1 &&
		      p->last_micro_batch != p->micro_batch;
	unsigned v = 0;

	b->sequences = ragged ? p->last_micro_batch : p->micro_batch;
	b->tokens = b->sequences * p->sequence / p->cp;
	if (opens_sums(b, slot->micro_batch))
		v |= V_FIRST;
	if (slot->kind != FT_SLOT_FORWARD && !reduces_last(b) &&
	    (ends_sums(b, slot->micro_batch) || p->sharding == FT_ZERO2 ||
	     (is_fsdp(p) && !p->sync_last)))
		v |= V_SYNC;
	if (ragged)
		v |= V_RAGGED;
	return v;
}

/* A chunk of layers in one pass of one micro-batch. */
struct pass {
	int64_t chunk;
	unsigned variant;
	bool first, last;	 /* of the model */
	bool from_self, to_self; /* the chunk before, behind it is of the same stage */
	struct held since;	 /* backward: gradients since a bucket was full */
	struct ahead ahead;	 /* forward: weights that were gathered ahead */
};

static struct pass pass_of(struct stage *st, const struct ft_slot *slot)
{
	const struct ft_plan *p = st->b->plan;
	int64_t at = ft_plan_place(p, st->number, slot->chunk);
	int64_t end = p->pp * p->vpp - 1;

	return (struct pass){
		.chunk = slot->chunk,
		.variant = variant_of(st, slot),
		.first = at == 0,
		.last = at == end,
		.from_self = at > 0 && ft_plan_stage(p, at - 1) == st->number,
		.to_self = at < end && ft_plan_stage(p, at + 1) == st->number
	};
}

static struct layer_call forward_call(struct stage *st, struct pass *p, int64_t l)
{
	bool edge = l == st->begin[p->chunk];
	unsigned v = p->variant;

	if (v & V_FIRST && gathers_ahead(st->b))
		v |= bucket_ahead(st->b, &p->ahead, l, st->end[p->chunk]);
	return (struct layer_call){ l, v, edge && !p->first && !p->from_self,
				    edge && streams_rebuilt_in(st->b, l,
							       st->end[p->chunk]) > 0 };
}

/* fsdp: the last layer to go back has none below it to gather, and the first gathers itself;
 * the model's last is gathered beside the head, and none above it has packed gradients. */
static unsigned unit_variant(const struct builder *b, const struct pass *p, bool edge,
			     bool top)
{
	bool alone = top && !p->last && b->plan->reshard_after_forward;
	bool behind_head = top && p->last && b->rules->fsdp_copy_grad_bytes > 0;

	return (edge ? V_EDGE : 0) | (alone ? V_GATHER : 0) | (behind_head ? V_TOP : 0);
}

static struct layer_call backward_call(struct stage *st, struct pass *p, int64_t l)
{
	struct builder *b = st->b;
	bool fsdp = is_fsdp(b->plan), edge = l == st->begin[p->chunk];
	bool top = l == st->end[p->chunk] - 1;
	unsigned v = p->variant, own = v & ~(unsigned)V_FIRST;

	if (v & V_FIRST && (!b->rules->gradient_fusion || sums_shards(b)))
		own |= V_FIRST;
	if (fsdp)
		own |= unit_variant(b, p, edge, top);
	if (is_stacked(b) && top) /* whose gradients the scan lays out at once */
		own |= V_TOP;
	own |= fetch_variant(b, edge, top);
	if (v & V_SYNC && !fsdp)
		own |= bucket_behind(b, &p->since, l, edge);
	if (st->part == PART_INPUTS)
		own &= V_EDGE | V_RAGGED | V_GATHER | V_FETCH | V_FETCH_BELOW | V_TOP;
	else if (st->part == PART_WEIGHTS)
		own &= ~(unsigned)(V_EDGE | V_GATHER | V_FETCH | V_FETCH_BELOW | V_TOP);
	return (struct layer_call){
		l, own, top && !p->last && !p->to_self && st->part != PART_WEIGHTS,
		top ? streams_rebuilt_in(b, st->begin[p->chunk], l + 1) : 0
	};
}

static void enter_forward(struct stage *st, const struct pass *p)
{
	if (p->first)
		segment_embed(st, p->variant);
	else if (!p->from_self)
		segment_transfer(st, p->chunk, true, false);
}

static void leave_forward(struct stage *st, const struct pass *p)
{
	bool empty = st->begin[p->chunk] == st->end[p->chunk];

	if (p->last)
		segment_head(st, p->variant, empty && !p->first && !p->from_self);
	else if (!p->to_self)
		segment_transfer(st, p->chunk, false, false);
}

static void enter_backward(struct stage *st, const struct pass *p)
{
	unsigned ragged = p->variant & V_RAGGED;
	bool empty = st->begin[p->chunk] == st->end[p->chunk];

	if (p->last)
		segment_head_back(st, st->part == PART_INPUTS ? ragged : p->variant,
				  empty ? -1 : st->end[p->chunk] - 1);
	else if (st->part != PART_WEIGHTS && !p->to_self)
		segment_transfer(st, p->chunk, true, true);
}

/* The embedding has no gradient but that of its weights. */
static void leave_backward(struct stage *st, const struct pass *p)
{
	if (!p->first && !p->from_self && st->part != PART_WEIGHTS)
		segment_transfer(st, p->chunk, false, true);
	else if (p->first && st->part != PART_INPUTS)
		segment_embed_back(st, p->variant);
	if (p->last && !st->first && st->part != PART_INPUTS && is_fsdp(st->b->plan))
		segment_root_back(st, p->variant);
}

static void stage_forward(struct stage *st, const struct ft_slot *slot)
{
	struct pass p = pass_of(st, slot);

	segment_slot(st, *slot);
	enter_forward(st, &p);
	for (int64_t l = st->begin[p.chunk]; l < st->end[p.chunk]; l++)
		segment_forward(st, forward_call(st, &p, l));
	leave_forward(st, &p);
}

static void stage_backward(struct stage *st, const struct ft_slot *slot)
{
	struct pass p = pass_of(st, slot);

	segment_slot(st, *slot);
	enter_backward(st, &p);
	for (int64_t l = st->end[p.chunk] - 1; l >= st->begin[p.chunk]; l--)
		segment_backward(st, backward_call(st, &p, l));
	leave_backward(st, &p);
	segment_walks(st);
}

void stage_slot(struct stage *st, const struct ft_slot *slot)
{
	bool splits = plan_splits(st->b->plan);

	if (slot->kind == FT_SLOT_FORWARD) {
		stage_forward(st, slot);
		return;
	}
	if (slot->kind == FT_SLOT_FLUSH) {
		segment_slot(st, *slot);
		segment_flush(st, slot->micro_batch);
		return;
	}
	st->part = slot->kind == FT_SLOT_WEIGHTS	 ? PART_WEIGHTS :
		   splits && slot->kind != FT_SLOT_WHOLE ? PART_INPUTS :
							   PART_WHOLE;
	stage_backward(st, slot);
	st->part = PART_WHOLE;
}

/* A backward and the forward next to it, of another micro-batch: their layers
 * in pairs, as long as both have some. */
static void pair_slot(struct stage *st, const struct ft_slot *back,
		      const struct ft_slot *forward)
{
	struct pass k = pass_of(st, back), f = pass_of(st, forward);
	int64_t lf = st->begin[f.chunk], lk = st->end[k.chunk] - 1;

	segment_slot(st, *back);
	segment_slot(st, *forward);
	enter_backward(st, &k);
	enter_forward(st, &f);
	while (lf < st->end[f.chunk] && lk >= st->begin[k.chunk]) {
		segment_pair(st, forward_call(st, &f, lf), backward_call(st, &k, lk));
		lf++;
		lk--;
	}
	for (; lk >= st->begin[k.chunk]; lk--)
		segment_backward(st, backward_call(st, &k, lk));
	leave_backward(st, &k);
	for (; lf < st->end[f.chunk]; lf++)
		segment_forward(st, forward_call(st, &f, lf));
	leave_forward(st, &f);
}

/* May they be? Under dualpipev all but the first on the stage where the V turns, which
 * leaves its neighbour's wait the shorter. */
static bool is_pair(const struct builder *b, const struct ft_slot *back,
		    const struct ft_slot *forward)
{
	const struct ft_plan *p = b->plan;
	int64_t last = p->micro_batches - 1;
	bool ragged = p->last_micro_batch != p->micro_batch &&
		      (back->micro_batch == last || forward->micro_batch == last);
	int64_t run = ft_plan_run(p);

	if (p->schedule == FT_DUALPIPEV &&
	    (back->kind != FT_SLOT_WHOLE || (back->chunk == 1 && !back->micro_batch)))
		return false;
	return ft_plan_pairs(p) && !ragged &&
	       back->micro_batch / run == forward->micro_batch / run &&
	       (back->kind == FT_SLOT_BACKWARD || back->kind == FT_SLOT_WHOLE) &&
	       forward->kind == FT_SLOT_FORWARD &&
	       (back->micro_batch != forward->micro_batch ||
		back->chunk != forward->chunk);
}

void stage_finish(struct stage *st)
{
	struct builder *b = st->b;
	const struct ft_plan *p = b->plan;
	double tied = !p->lora.rank && (b->model->tied || b->model->predicted) &&
				      st->first != st->last ?
			      (double)(b->model->hidden_size *
				       ft_model_vocab(b->model, p->tp)) /
				      (double)p->tp :
			      0;

	b->sequences = p->micro_batch;
	b->tokens = p->micro_batch * p->sequence / p->cp;
	segment_slot(st, (struct ft_slot){ .kind = FT_SLOT_UPDATE });
	if (reduces_at_once(b) && !flush_reduces(b)) /* else behind each run */
		segment_reduce(st);
	muon_updates(st);
	if (!segment_fresh(st,
			   (struct segment_key){ ROLE_OPTIMIZER, st->number, 0, 0,
						 PART_WHOLE },
			   "optimizer"))
		return;
	optimizer_ops(b, st->held, st->root, tied);
	host(b, FT_HOST_STEP, 1);
	segment_done(st);
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

		if (ft_plan_stage(p, v) == st->number) {
			st->begin[v / p->pp] = at;
			st->end[v / p->pp] = next;
			for (int64_t l = at; l < next; l++)
				held_add(&st->held, b->unit[l]);
		}
		at = next;
	}
	st->root = ends_held(b, st->first, st->last);
	held_add(&st->held, st->root);
}

/* Of each chunk, the most micro-batches between their forward and their backward; and the most outputs of
 * them, of all chunks that send theirs on. */
static int64_t most_open(const struct builder *b, int64_t number, int64_t *most)
{
	const struct ft_plan *p = b->plan;
	struct ft_slot *slot = ARENA_ARRAY(b->mem, stage_most_slots(p), struct ft_slot);
	int64_t *open = ARENA_ARRAY(b->mem, (size_t)p->vpp, int64_t);
	int64_t end = p->pp * p->vpp - 1, outputs = 0, most_outputs = 0;
	size_t n = stage_order(b, number, slot);

	for (size_t i = 0; i < n; i++) {
		int64_t c = slot[i].chunk;
		int step = slot[i].kind == FT_SLOT_FORWARD ? 1 :
			   slot[i].kind == FT_SLOT_BACKWARD ||
					   slot[i].kind == FT_SLOT_WHOLE ?
							     -1 :
							     0;

		open[c] += step;
		most[c] = open[c] > most[c] ? open[c] : most[c];
		outputs += ft_plan_place(p, number, c) < end ? step : 0;
		most_outputs = outputs > most_outputs ? outputs : most_outputs;
	}
	return most_outputs;
}

/* torch.distributed.pipelining makes, for each micro-batch, what its input and its gradient are to
 * arrive in, and keeps them. Inputs that wait for their backward are counted as activations. It keeps
 * each output that it sent, too, until its backward.
 * Source: its stage.py, _prepare_forward_infra, _prepare_backward_infra and fwd_cache. */
static double boundary_buffers(const struct stage *st)
{
	struct builder *b = st->b;
	const struct ft_plan *p = b->plan;
	int64_t *most = ARENA_ARRAY(b->mem, (size_t)p->vpp, int64_t);
	int64_t end = p->pp * p->vpp - 1;
	int64_t buffers = most_open(b, st->number, most);

	for (int64_t c = 0; c < p->vpp; c++) {
		int64_t at = ft_plan_place(p, st->number, c);

		if (at > 0 && ft_plan_stage(p, at - 1) != st->number)
			buffers += ft_plan_run(p) - most[c];
		if (at < end && ft_plan_stage(p, at + 1) != st->number)
			buffers += ft_plan_run(p);
	}
	b->tokens = p->micro_batch * p->sequence / p->cp;
	return (double)buffers * segment_boundary_bytes(b);
}

struct stage stage_begin(struct builder *b, int64_t number)
{
	const struct ft_plan *p = b->plan;
	struct stage st = { .b = b,
			    .rank_class = &b->g->rank_class[number],
			    .number = number,
			    .first = number == 0,
			    .last = ft_plan_stage(p, p->pp * p->vpp - 1) == number };

	st.rank_class->name = arena_printf(b->mem, "stage %d", (int)number);
	st.rank_class->ranks = p->ranks / p->pp;
	stage_layers(&st);
	base_bytes(b, st.held, st.root, st.rank_class->base_bytes);
	if (b->rules->receive_buffers && p->pp > 1)
		st.rank_class->base_bytes[FT_MEMORY_OTHER] += boundary_buffers(&st);
	return st;
}

static void build_stage(struct builder *b, int64_t number)
{
	const struct ft_plan *p = b->plan;
	struct stage st = stage_begin(b, number);
	struct ft_slot *slot = ARENA_ARRAY(b->mem, stage_most_slots(p), struct ft_slot);
	size_t n = stage_order(b, number, slot);
	bool ahead = p->schedule != FT_DUALPIPEV; /* a pair's backward is */

	for (size_t i = 0; i < n; i++)
		if (i + 1 < n && is_pair(b, &slot[i + !ahead], &slot[i + ahead])) {
			pair_slot(&st, &slot[i + !ahead], &slot[i + ahead]);
			i++;
		} else {
			stage_slot(&st, &slot[i]);
		}
	stage_finish(&st);
}

static struct ft_group_shape tiling(int64_t size, int64_t stride)
{
	return (struct ft_group_shape){ .size = size, .stride = stride, .tiles = true };
}

/* Rank order, fastest first: tp, cp, dp; the expert grid is laid over the same
 * ranks as etp, ep, edp; pp is outermost. */
static void group_shapes(const struct ft_plan *p, struct ft_group_shape *g)
{
	int64_t dp = p->dp * p->cp, shard = p->shard;
	int64_t expert = p->etp * p->ep, expert_shard = ft_plan_expert_shard(p);

	g[FT_GROUP_TP] = tiling(p->tp, 1);
	g[FT_GROUP_CP] = tiling(p->cp, p->tp);
	g[FT_GROUP_DP] = tiling(dp, p->tp);
	g[FT_GROUP_SHARD] = tiling(shard, p->tp);
	g[FT_GROUP_REPLICA] = tiling(dp / shard, p->tp * shard);
	g[FT_GROUP_ETP] = tiling(p->etp, 1);
	g[FT_GROUP_EP] = tiling(p->ep, p->etp);
	g[FT_GROUP_EDP] = tiling(p->edp, expert);
	g[FT_GROUP_EXPERT_SHARD] = tiling(expert_shard, expert);
	g[FT_GROUP_EXPERT_REPLICA] =
		tiling(p->edp / expert_shard, expert * expert_shard);
	g[FT_GROUP_PP] = tiling(p->pp > 1 ? 2 : 1, p->ranks / p->pp);
	g[FT_GROUP_EMBEDDING] = tiling(p->pp > 1 ? 2 : 1,
				       p->pp > 1 ? p->ranks / p->pp * (p->pp - 1) : 1);
}

/* On the mean rank: the last micro-batch may be a smaller one, and replicas may lack it. */
static double recomputed(struct builder *b)
{
	const struct ft_plan *p = b->plan;
	double times = (double)p->global_batch / (double)(p->dp * p->micro_batch);
	double flop = 0;

	for (int64_t l = 0; l < b->model->n_layers; l++)
		flop += layer_recomputed_flop(b, l);
	flop += (double)b->model->predicted *
		layer_recomputed_flop(b, b->model->predicted_like);
	return flop * times / (double)p->pp;
}

bool build_begin(struct builder *b, const struct ft_model *model,
		 const struct ft_plan *plan, const struct ft_stack *stack,
		 struct ft_error *err)
{
	struct ft_graph *g = b->g;

	if (!stack_runs(model, plan, stack, err))
		return false;
	builder_init(b, model, plan, stack);
	group_shapes(plan, g->group);
	set_buckets(b);
	g->n_classes = (size_t)plan->pp;
	g->rank_class = ARENA_ARRAY(b->mem, g->n_classes, struct ft_class);
	return true;
}

void build_end(struct builder *b)
{
	struct ft_graph *g = b->g;
	const struct ft_plan *p = b->plan;

	g->host_runs_ahead =
		p->step_start == FT_STEADY && !b->rules->host_sync && !b->host_waited;
	g->tokens = (double)p->global_batch * (double)p->sequence;
	g->bubble_frac = ft_plan_bubble(p);
	g->recomputed_flop_per_rank = recomputed(b);
}

/* A step that cannot be run is not built either: each layer is at least one operation
 * forward, and one backward, of each micro-batch. */
static bool small_enough(const struct ft_model *model, const struct ft_plan *plan,
			 struct ft_error *err)
{
	double n = 2.0 * (double)model->n_layers * (double)plan->micro_batches;

	if (n <= LIMIT_STEP_OPS)
		return true;
	ft_fail(err, NULL,
		"a step of more than %.0f operations is too much to simulate, at "
		"most %d; use larger or fewer micro-batches",
		n, (int)LIMIT_STEP_OPS);
	err->too_large = true;
	return false;
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
	if (!small_enough(model, plan, err) ||
	    !build_begin(&b, model, plan, stack, err)) {
		ft_graph_free(g);
		return NULL;
	}
	for (int64_t s = 0; s < plan->pp; s++)
		build_stage(&b, s);
	build_end(&b);
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
