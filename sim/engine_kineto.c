/*
 * sim/engine_kineto.c - a rank of the engine's, as its profiler would record it
 *
 * Where the host runs ahead no launch has a time: ops are launched a picosecond apart then, in
 * their order, so that what reads the timeline finds it. A pass is marked from the first launch
 * of its kernels to the last; two that run side by side are not, as nothing tells their kernels
 * apart. What one rank sends another arrives in the order in which it is sent, of whatever pass:
 * a library's receives are asked for in that order, and so are these, as early as that takes.
 */
#include "base/arena.h"
#include "sim/engine_kineto.h"
#include "sim/passes.h"
#include "sim/timeline_kineto.h"

/* When a pass's first and last kernel were launched; last < first: none was. */
struct span {
	ft_ps first, last;
};

/* Receives of one kind, in order. */
struct received {
	const struct ft_op *op;
	struct moment {
		ft_ps launched, over;
	} * at;
	size_t n, cap, ordered;
	ft_ps last; /* when the one before is over */
};

struct drawn_rank {
	bool folded;
	struct received received[2][2]; /* backward, reverse */
	struct span *slot;		/* [n_slots] of its class */
	const struct pass_call *pass;	/* [n_calls] of its class; or NULL */
};

static const struct ft_class *class_of(const struct engine *e)
{
	const struct engine_part *p = &e->in->part[e->in->drawn_part];

	return &p->job->graph->rank_class[p->rank_class];
}

static bool side_by_side(const struct ft_class *c, size_t slot)
{
	return (slot > 0 && c->slot[slot - 1].call == c->slot[slot].call) ||
	       (slot + 1 < c->n_slots && c->slot[slot + 1].call == c->slot[slot].call);
}

/* Where one of its passes runs beside another, kernels do not tell theirs: some would, and look like all. */
static const struct pass_call *passes_told(struct engine *e, const struct ft_class *c)
{
	const struct engine_part *p = &e->in->part[e->in->drawn_part];

	for (size_t i = 0; i < c->n_slots; i++)
		if (side_by_side(c, i))
			return NULL;
	return passes_of(p->job->graph, e->mem)[p->rank_class];
}

static struct drawn_rank *rank_of(struct engine *e)
{
	const struct ft_class *c = class_of(e);

	if (e->rank)
		return e->rank;
	e->rank = ARENA_NEW(e->mem, struct drawn_rank);
	e->rank->folded = passes_fold(e->in->part[e->in->drawn_part].job->graph);
	e->rank->pass = passes_told(e, c);
	e->rank->slot = ARENA_ARRAY(e->mem, c->n_slots + 1, struct span);
	for (size_t i = 0; i < c->n_slots; i++)
		e->rank->slot[i] = (struct span){ INT64_MAX, 0 };
	return e->rank;
}

static ft_ps launched(const struct engine *e, const struct stream *s,
		      const struct entry *in)
{
	const struct part_state *r = &e->part[s->part];
	const struct launch *l = launch_at(r, s->at);
	ft_ps order = s->head->place;

	if (!r->of->job->host_free)
		return in->launched;
	for (int i = 0; i < FT_STREAMS; i++)
		order += l->base[i];
	return in->launched + order;
}

/* The part at the other end of a pipeline's send or receive. */
static size_t other_end(const struct engine *e, int stream, bool reverse)
{
	const struct engine_part *p = &e->in->part[e->in->drawn_part];
	bool up = (stream == FT_STREAM_SEND_FORWARD ||
		   stream == FT_STREAM_RECV_BACKWARD) != reverse;

	return up ? p->next : p->before;
}

static int64_t peer_of(const struct engine *e, int stream, bool reverse)
{
	const struct ft_graph *g = e->in->part[e->in->drawn_part].job->graph;
	size_t to = e->in->part[other_end(e, stream, reverse)].rank_class;
	int64_t rank = e->in->drawn_rank - e->in->drawn_from;

	for (size_t c = 0; c < to; c++)
		rank += g->rank_class[c].ranks;
	return rank;
}

static void put(struct engine *e, const struct ft_op *in, struct kineto_op *op)
{
	const struct ft_graph *g = e->in->part[e->in->drawn_part].job->graph;

	op->graph = g;
	op->work = &g->work[in->work];
	op->optimizer = in->optimizer;
	op->number = ++e->out->drawn;
	op->rank = e->in->drawn_rank;
	op->peer = peer_of(e, in->stream, in->reverse);
	kineto_put(e->in->timeline, op);
	if (op->launched > e->out->last_launch)
		e->out->last_launch = op->launched;
}

void rank_op(struct engine *e, const struct stream *s, const struct entry *in)
{
	struct kineto_op op = { .stream = s->id, .from = s->began, .to = e->q.now };
	const struct pass_call *call;
	struct span *slot;

	if (s->part != e->in->drawn_part)
		return;
	op.launched = launched(e, s, in);
	if (op.launched > op.from)
		op.launched = op.from;
	call = rank_of(e)->pass;
	if (call) {
		call += in->call;
		op.pass = call->pass;
		op.layer = call->layer + call->step * in->turn;
		op.micro_batch = call->micro_batch;
	}
	put(e, in->op, &op);
	if (s->id != FT_STREAM_COMPUTE || in->slot >= class_of(e)->n_slots)
		return;
	slot = &rank_of(e)->slot[in->slot];
	if (op.launched < slot->first)
		slot->first = op.launched;
	if (op.launched > slot->last)
		slot->last = op.launched;
}

void rank_host(struct engine *e, const struct part_state *r, ft_ps from, ft_ps to)
{
	if (r == &e->part[e->in->drawn_part] && !r->of->job->host_free)
		kineto_put_wait(e->in->timeline, from, to, ++e->out->drawn);
}

/* ---- receives ---------------------------------------------------------------------------- */

void rank_received(struct engine *e, const struct stream *s, const struct entry *in)
{
	struct received *r;

	if (s->part != e->in->drawn_part)
		return;
	r = &rank_of(e)->received[s->id == FT_STREAM_RECV_BACKWARD][in->op->reverse];
	r->op = in->op;
	if (r->n == r->cap)
		r->at = ARENA_GROW(e->mem, r->at, &r->cap);
	r->at[r->n++] = (struct moment){ launched(e, s, in), e->q.now };
}

/* What a part sends to the one that is drawn, in order: each receive's moments. */
static struct moment **sent_by(struct engine *e, size_t part, size_t *n)
{
	const struct ft_graph *g = e->in->part[part].job->graph;
	const struct ft_class *c = &g->rank_class[e->in->part[part].rank_class];
	struct drawn_rank *rank = rank_of(e);
	struct moment **to;
	size_t most = 0;

	for (int i = 0; i < 4; i++)
		most += rank->received[i / 2][i % 2].n;
	to = ARENA_ARRAY(e->mem, most + 1, struct moment *);
	*n = 0;
	for (size_t i = 0; i < c->n_calls; i++)
		for (size_t k = 0;
		     k <
		     c->call[i].repeat * (size_t)g->segment[c->call[i].segment].n_ops;
		     k++) {
			const struct ft_segment *of = &g->segment[c->call[i].segment];
			const struct ft_op *op = &of->op[k % of->n_ops];
			bool back = op->stream == FT_STREAM_SEND_BACKWARD;
			struct received *r = &rank->received[back][op->reverse];

			if (ft_stream_sends(op->stream) &&
			    receiver(&e->in->part[part], (enum ft_stream)op->stream,
				     op->reverse) == e->in->drawn_part &&
			    r->ordered < r->n)
				to[(*n)++] = &r->at[r->ordered++];
		}
	return to;
}

/* None is asked for later than what comes behind it from the same part. */
static void order_from(struct engine *e, size_t part)
{
	size_t n;
	struct moment **at = sent_by(e, part, &n);

	for (size_t i = n; i-- > 1;)
		if (at[i - 1]->launched >= at[i]->launched)
			at[i - 1]->launched =
				at[i]->launched > 0 ? at[i]->launched - 1 : 0;
}

static void put_receives(struct engine *e)
{
	struct drawn_rank *rank = rank_of(e);
	const struct engine_part *p = &e->in->part[e->in->drawn_part];

	order_from(e, p->next);
	if (p->before != p->next)
		order_from(e, p->before);
	for (int k = 0; k < 4; k++) {
		struct received *r = &rank->received[k / 2][k % 2];

		for (size_t i = 0; i < r->n; i++) {
			struct kineto_op op = { .stream = r->op->stream,
						.launched = r->at[i].launched,
						.from = r->at[i].launched,
						.to = r->at[i].over };

			if (r->op->reverse)
				op.stream += KINETO_OTHER_SIDE;
			if (op.from < r->last)
				op.from = r->last;
			put(e, r->op, &op);
			r->last = op.to;
		}
	}
}

/* ---- passes ------------------------------------------------------------------------------ */

static bool splits(const struct ft_graph *g)
{
	for (size_t c = 0; c < g->n_classes; c++)
		for (size_t i = 0; i < g->rank_class[c].n_slots; i++)
			if (g->rank_class[c].slot[i].slot.kind == FT_SLOT_WEIGHTS)
				return true;
	return false;
}

static char letter_of(enum ft_slot_kind kind, bool split)
{
	return kind == FT_SLOT_FORWARD		 ? 'F' :
	       kind == FT_SLOT_WEIGHTS		 ? 'W' :
	       kind == FT_SLOT_BACKWARD && split ? 'I' :
						   'B';
}

static void put_passes(struct engine *e)
{
	const struct engine_part *p = &e->in->part[e->in->drawn_part];
	const struct ft_graph *g = p->job->graph;
	const struct ft_class *c = class_of(e);
	struct drawn_rank *rank = rank_of(e);
	bool split = splits(g);

	for (size_t i = 0; g->n_classes > 1 && i < c->n_slots; i++) {
		const struct ft_slot *s = &c->slot[i].slot;
		const struct span *at = &rank->slot[i];

		if (!ft_slot_is_pass(s->kind) || at->last < at->first ||
		    side_by_side(c, i))
			continue;
		kineto_put_pass(
			e->in->timeline,
			&(struct kineto_pass){
				letter_of(s->kind, split),
				passes_place((int64_t)g->n_classes, rank->folded,
					     (int64_t)p->rank_class, s->chunk),
				s->micro_batch, at->first, at->last + 1,
				++e->out->drawn });
	}
}

void rank_rest(struct engine *e)
{
	put_receives(e);
	put_passes(e);
}
