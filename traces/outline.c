/*
 * traces/outline.c - a step in outline: its calls counted, the order of its passes
 *
 * The micro-batches between the first and the last of a step call the same segments, so
 * that three of them say what all call. What a search asks of a plan before it simulates
 * it (does it fit, and how fast can it be at best) takes an outline and not the step.
 */
#include <string.h>

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

static enum ft_turn turn_of(const struct ft_plan *p, int64_t micro_batch)
{
	return micro_batch == 0			   ? FT_TURN_FIRST :
	       micro_batch == p->micro_batches - 1 ? FT_TURN_LAST :
						     FT_TURN_MIDDLE;
}

const struct ft_pass_calls *ft_outline_pass(const struct ft_outline *o, size_t class,
					    const struct ft_slot *at)
{
	return &o->pass[class][index_of(o->plan, turn_of(o->plan, at->micro_batch),
					at->kind, at->chunk)];
}

static int64_t times_of(const struct ft_plan *p, enum ft_turn turn)
{
	if (turn == FT_TURN_MIDDLE)
		return p->micro_batches > 2 ? p->micro_batches - 2 : 0;
	return turn == FT_TURN_FIRST || p->micro_batches > 1;
}

static void put_pass(struct stage *st, enum ft_turn turn, enum ft_slot_kind kind,
		     int64_t chunk, struct ft_pass_calls *pass)
{
	const struct ft_plan *p = st->b->plan;
	int64_t micro_batch = turn == FT_TURN_FIRST  ? 0 :
			      turn == FT_TURN_MIDDLE ? 1 :
						       p->micro_batches - 1;
	struct ft_slot slot = { kind, chunk, micro_batch };
	struct ft_class *c = st->rank_class;

	if (kind == FT_SLOT_WEIGHTS && !plan_splits(p))
		return;
	pass->times = times_of(p, turn);
	pass->begin = pass->end = c->n_calls;
	if (!pass->times)
		return;
	stage_slot(st, &slot);
	pass->end = c->n_calls;
	for (size_t i = pass->begin; i < pass->end; i++)
		c->call[i].repeat *= (uint32_t)pass->times;
}

static void put_stage(struct builder *b, struct ft_outline *o, size_t number)
{
	const struct ft_plan *p = b->plan;
	struct stage st = stage_begin(b, (int64_t)number);
	struct ft_slot *order = ARENA_ARRAY(b->mem, o->n_order, struct ft_slot);

	o->pass[number] = ARENA_ARRAY(b->mem, (size_t)(p->vpp * FT_TURNS * KINDS),
				      struct ft_pass_calls);
	for (int turn = 0; turn < FT_TURNS; turn++)
		for (int64_t c = 0; c < p->vpp; c++)
			for (int kind = 0; kind < KINDS; kind++)
				put_pass(&st, (enum ft_turn)turn,
					 (enum ft_slot_kind)kind, c,
					 &o->pass[number][index_of(
						 p, (enum ft_turn)turn,
						 (enum ft_slot_kind)kind, c)]);
	o->last_call[number] = st.rank_class->n_calls;
	stage_finish(&st);
	schedule_slots(b->mem, p, (int64_t)number, order);
	o->order[number] = order;
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
	if (plan_pairs(plan) || !build_begin(&b, model, plan, stack, err)) {
		ft_outline_free(o);
		return NULL;
	}
	o->plan = plan;
	o->n_order = schedule_count(plan);
	o->pass = ARENA_ARRAY(&w->mem, o->graph.n_classes, struct ft_pass_calls *);
	o->last_call = ARENA_ARRAY(&w->mem, o->graph.n_classes, size_t);
	o->order = ARENA_ARRAY(&w->mem, o->graph.n_classes, const struct ft_slot *);
	for (size_t s = 0; s < o->graph.n_classes; s++)
		put_stage(&b, o, s);
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

static double sum(const double *bytes)
{
	double t = 0;

	for (int i = 0; i < FT_MEMORIES; i++)
		t += bytes[i];
	return t;
}

struct swing { /* of a pass: what it takes for good, and its fullest moment */
	double net, peak;
};

static void add_call(const struct ft_graph *g, const struct ft_call *call,
		     int64_t times, struct swing *s)
{
	const struct ft_segment *seg = &g->segment[call->segment];
	double net = sum(seg->net_bytes), peak = sum(seg->peak_bytes);

	for (int64_t r = 0; r < (int64_t)call->repeat / times; r++) {
		if (s->net + peak > s->peak)
			s->peak = s->net + peak;
		s->net += net;
		if (s->net > s->peak)
			s->peak = s->net;
	}
}

static double peak_of_class(const struct ft_outline *o, size_t c)
{
	const struct ft_class *class = &o->graph.rank_class[c];
	const struct ft_plan *p = o->plan;
	struct swing all = { sum(class->base_bytes), sum(class->base_bytes) };
	struct arena mem = { 0 };
	size_t n = (size_t)(p->vpp * FT_TURNS * KINDS);
	struct swing *of = ARENA_ARRAY(&mem, n, struct swing);

	for (size_t i = 0; i < n; i++) {
		const struct ft_pass_calls *pass = &o->pass[c][i];

		for (size_t k = pass->begin; k < pass->end; k++)
			add_call(&o->graph, &class->call[k], pass->times, &of[i]);
	}
	for (size_t i = 0; i < o->n_order; i++) {
		const struct ft_slot *t = &o->order[c][i];
		const struct swing *s =
			&of[index_of(p, turn_of(p, t->micro_batch), t->kind, t->chunk)];

		if (all.net + s->peak > all.peak)
			all.peak = all.net + s->peak;
		all.net += s->net;
	}
	for (size_t k = o->last_call[c]; k < class->n_calls; k++)
		add_call(&o->graph, &class->call[k], 1, &all);
	arena_release(&mem);
	return all.peak;
}

double ft_outline_peak_bytes(const struct ft_outline *o)
{
	double most = 0;

	for (size_t c = 0; c < o->graph.n_classes; c++) {
		double bytes = peak_of_class(o, c);

		if (bytes > most)
			most = bytes;
	}
	return most;
}
