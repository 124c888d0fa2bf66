/*
 * traces/outline.c - a step in outline: its calls counted, the order of its passes
 *
 * The micro-batches between the first and the last of a step call the same segments, so
 * that three of them say what all call. What a search asks of a plan before it simulates
 * it (does it fit, and how fast can it be at best) takes an outline and not the step.
 */
#include <string.h>

#include "traces/host_held.h"
#include "traces/stage.h"

struct whole {
	struct ft_outline outline; /* first: the handle is the arena's */
	struct arena mem;
};

enum { KINDS = FT_SLOT_UPDATE }; /* of slots with passes */

static size_t index_of(const struct ft_plan *p, enum ft_turn turn,
		       enum ft_slot_kind kind, int64_t chunk)
{
	return (size_t)(((int64_t)turn * p->vpp + chunk) * KINDS + kind);
}

static enum ft_turn turn_of(const struct builder *b, int64_t micro_batch)
{
	int64_t last = b->plan->micro_batches - 1;

	if (micro_batch == 0)
		return FT_TURN_FIRST;
	if (!ends_run(b->plan, micro_batch))
		return opens_sums(b, micro_batch) ? FT_TURN_FIRST : FT_TURN_MIDDLE;
	return ends_sums(b, micro_batch) == ends_sums(b, last) &&
			       joins_shards(b, micro_batch) == joins_shards(b, last) ?
		       FT_TURN_LAST :
		       FT_TURN_FLUSH;
}

/* The first micro-batch with this turn, or the last one; at least one has it. */
static int64_t of_turn(const struct builder *b, enum ft_turn turn)
{
	int64_t m = turn == FT_TURN_LAST ? b->plan->micro_batches - 1 : 0;

	while (turn_of(b, m) != turn)
		m++;
	return m;
}

static void put_pass(struct stage *st, enum ft_turn turn, enum ft_slot_kind kind,
		     int64_t chunk, struct ft_pass_calls *pass)
{
	struct ft_class *c = st->rank_class;
	struct ft_slot slot = { kind, chunk, 0 };

	pass->begin = pass->end = c->n_calls;
	if (!pass->times)
		return;
	slot.micro_batch = of_turn(st->b, turn);
	stage_slot(st, &slot);
	pass->end = c->n_calls;
	for (size_t i = pass->begin; i < pass->end; i++)
		c->call[i].repeat *= (uint32_t)pass->times;
}

static void put_passes(struct stage *st, struct ft_outline *o)
{
	const struct ft_plan *p = st->b->plan;
	struct ft_pass_calls *pass =
		ARENA_ARRAY(st->b->mem, o->n_passes, struct ft_pass_calls);

	for (size_t i = 0; i < o->n_order[st->number]; i++)
		pass[o->order[st->number][i].pass].times++;
	for (int turn = 0; turn < FT_TURNS; turn++)
		for (int64_t c = 0; c < p->vpp; c++)
			for (int kind = 0; kind < KINDS; kind++)
				put_pass(st, (enum ft_turn)turn,
					 (enum ft_slot_kind)kind, c,
					 &pass[index_of(p, (enum ft_turn)turn,
							(enum ft_slot_kind)kind, c)]);
	o->pass[st->number] = pass;
	o->last_call[st->number] = st->rank_class->n_calls;
	stage_finish(st);
}

/* Two stages with a neighbour on each side, whose layers are of the same kinds, call the
 * same. */
static bool are_alike(const struct stage *a, const struct stage *b)
{
	const struct ft_plan *p = a->b->plan;
	const int64_t *kind = a->b->kind;

	if (p->schedule == FT_DUALPIPEV) /* each has a part of its backwards whole */
		return false;
	if (a->number == 0 || b->number == 0 || a->number == p->pp - 1 ||
	    b->number == p->pp - 1)
		return false;
	for (int64_t c = 0; c < p->vpp; c++) {
		int64_t n = a->end[c] - a->begin[c];

		if (b->end[c] - b->begin[c] != n ||
		    memcmp(kind + a->begin[c], kind + b->begin[c],
			   (size_t)n * sizeof(*kind)) != 0)
			return false;
	}
	return true;
}

static void put_order(struct builder *b, struct ft_outline *o, size_t number,
		      struct ft_slot *slot)
{
	const struct ft_plan *p = b->plan;
	size_t n = stage_order(b, (int64_t)number, slot);
	struct ft_outline_slot *order = ARENA_ARRAY(b->mem, n, struct ft_outline_slot);

	for (size_t i = 0; i < n; i++) {
		const struct ft_slot *s = &slot[i];
		size_t pass =
			index_of(p, turn_of(b, s->micro_batch), s->kind, s->chunk);

		order[i] = (struct ft_outline_slot){ (uint32_t)pass,
						     (uint32_t)s->micro_batch,
						     (uint16_t)s->chunk,
						     (uint8_t)s->kind };
	}
	o->order[number] = order;
	o->n_order[number] = n;
}

/* Stages that are like the one before share its calls. */
static void put_stages(struct builder *b, struct ft_outline *o)
{
	struct ft_slot *slot =
		ARENA_ARRAY(b->mem, stage_most_slots(b->plan), struct ft_slot);
	struct stage before = { .b = b };

	for (size_t s = 0; s < o->graph.n_classes; s++) {
		struct stage st = stage_begin(b, (int64_t)s);

		put_order(b, o, s, slot);
		if (s && are_alike(&before, &st)) {
			o->like[s] = o->like[s - 1];
			o->pass[s] = o->pass[s - 1];
			o->last_call[s] = o->last_call[s - 1];
			st.rank_class->call = st.rank_class[-1].call;
			st.rank_class->n_calls = st.rank_class[-1].n_calls;
		} else {
			o->like[s] = s;
			put_passes(&st, o);
		}
		before = st;
	}
}

struct ft_outline *ft_outline_build(const struct ft_model *model,
				    const struct ft_plan *plan,
				    const struct ft_stack *stack, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct whole *w = ARENA_NEW(&mem, struct whole);
	struct ft_outline *o = &w->outline;
	struct builder b = { .mem = &w->mem, .g = &o->graph };

	*err = (struct ft_error){ 0 };
	w->mem = mem;
	if (ft_plan_pairs(plan) || !build_begin(&b, model, plan, stack, err)) {
		ft_outline_free(o);
		return NULL;
	}
	o->plan = plan;
	o->n_order = ARENA_ARRAY(&w->mem, o->graph.n_classes, size_t);
	o->n_passes = (size_t)(plan->vpp * FT_TURNS * KINDS);
	o->like = ARENA_ARRAY(&w->mem, o->graph.n_classes, size_t);
	o->pass = ARENA_ARRAY(&w->mem, o->graph.n_classes, struct ft_pass_calls *);
	o->last_call = ARENA_ARRAY(&w->mem, o->graph.n_classes, size_t);
	o->order = ARENA_ARRAY(&w->mem, o->graph.n_classes,
			       const struct ft_outline_slot *);
	put_stages(&b, o);
	build_end(&b);
	return o;
}

void ft_outline_free(struct ft_outline *outline)
{
	struct arena mem;

	if (!outline)
		return;
	mem = ((struct whole *)outline)->mem;
	arena_release(&mem);
}

double ft_plan_held_bytes(const struct ft_model *model, const struct ft_plan *plan,
			  const struct ft_stack *stack)
{
	struct arena mem = { 0 };
	struct ft_graph g = { .n_works = 0 };
	struct builder b = { .mem = &mem, .g = &g };
	struct ft_error err;
	double most = 0;

	if (build_begin(&b, model, plan, stack, &err))
		for (size_t s = 0; s < g.n_classes; s++) {
			double bytes = 0;

			stage_begin(&b, (int64_t)s);
			for (int m = 0; m < FT_MEMORIES; m++)
				bytes += g.rank_class[s].base_bytes[m];
			most = bytes > most ? bytes : most;
		}
	arena_release(&mem);
	return most;
}

/* ---- memory ---------------------------------------------------------------------- */

static struct swing swing_on_gpu(const struct ft_graph *g, const struct ft_segment *seg)
{
	(void)g;
	return (struct swing){ ft_memory_sum(seg->net_bytes),
			       ft_memory_sum(seg->peak_bytes) };
}

static void add_call(const struct ft_graph *g, const struct ft_call *call,
		     int64_t times, segment_swing *swing, struct swing *s)
{
	const struct swing one = swing(g, &g->segment[call->segment]);

	for (int64_t r = 0; r < (int64_t)call->repeat / times; r++) {
		if (s->net + one.peak > s->peak)
			s->peak = s->net + one.peak;
		s->net += one.net;
		if (s->net > s->peak)
			s->peak = s->net;
	}
}

/* What each pass of a class adds to the memory that is held, and its peak. */
static void swings_of(const struct ft_outline *o, size_t c, segment_swing *swing,
		      struct swing *of)
{
	const struct ft_class *class = &o->graph.rank_class[c];

	memset(of, 0, o->n_passes * sizeof(*of));
	for (size_t i = 0; i < o->n_passes; i++) {
		const struct ft_pass_calls *pass = &o->pass[c][i];

		for (size_t k = pass->begin; k < pass->end; k++)
			add_call(&o->graph, &class->call[k], pass->times, swing,
				 &of[i]);
	}
}

/* From what is held when the step begins. */
static double peak_of_class(const struct ft_outline *o, size_t c, double begin,
			    segment_swing *swing, const struct swing *of)
{
	const struct ft_class *class = &o->graph.rank_class[c];
	struct swing all = { begin, begin };

	for (size_t i = 0; i < o->n_order[c]; i++) {
		const struct swing *s = &of[o->order[c][i].pass];

		if (all.net + s->peak > all.peak)
			all.peak = all.net + s->peak;
		all.net += s->net;
	}
	for (size_t k = o->last_call[c]; k < class->n_calls; k++)
		add_call(&o->graph, &class->call[k], 1, swing, &all);
	return all.peak;
}

double ft_outline_peak_bytes(const struct ft_outline *o)
{
	struct arena mem = { 0 };
	struct swing *of = ARENA_ARRAY(&mem, o->n_passes, struct swing);
	double most = 0;

	for (size_t c = 0; c < o->graph.n_classes; c++) {
		double bytes;

		if (o->like[c] == c)
			swings_of(o, c, swing_on_gpu, of);
		bytes = peak_of_class(o, c,
				      ft_memory_sum(o->graph.rank_class[c].base_bytes),
				      swing_on_gpu, of);
		most = bytes > most ? bytes : most;
	}
	arena_release(&mem);
	return most;
}

double ft_outline_host_bytes(const struct ft_outline *o, int64_t ranks_per_node)
{
	struct arena mem = { 0 };
	struct swing *of = ARENA_ARRAY(&mem, o->n_passes, struct swing);
	double *held = ARENA_ARRAY(&mem, o->graph.n_classes, double), most;

	for (size_t c = 0; c < o->graph.n_classes; c++) {
		if (o->like[c] == c)
			swings_of(o, c, swing_on_host, of);
		held[c] = peak_of_class(o, c, 0, swing_on_host, of);
	}
	most = fullest_node(&o->graph, held, ranks_per_node);
	arena_release(&mem);
	return most;
}
