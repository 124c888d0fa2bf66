/* sim/bound_pass.c - the passes of an outline, each timed once */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "sim/bound_pass.h"

void bound_put_pass(struct front *f, const struct bounding *b, size_t class,
		    const struct ft_pass_calls *pass)
{
	for (size_t i = pass->begin; i < pass->end; i++) {
		const struct ft_call *call = &b->o->graph.rank_class[class].call[i];

		front_call(f, &b->of[class], call->segment,
			   (int64_t)call->repeat / pass->times);
	}
}

static bool gathers(const struct bounding *b, size_t class,
		    const struct ft_pass_calls *pass)
{
	const struct ft_graph *g = &b->o->graph;

	for (size_t i = pass->begin; i < pass->end; i++) {
		const struct ft_segment *seg =
			&g->segment[g->rank_class[class].call[i].segment];

		for (size_t k = 0; k < seg->n_ops; k++)
			if (seg->op[k].stream == FT_STREAM_GATHER)
				return true;
	}
	return false;
}

static struct pass_time time_pass(const struct bounding *b, size_t class,
				  const struct ft_pass_calls *pass)
{
	struct pass_time t = { .gathers = pass->times == 1 && gathers(b, class, pass) };
	const struct block *reduces;
	struct front f;

	front_open(&f);
	bound_put_pass(&f, b, class, pass);
	if (f.any_compute)
		t.from_first = f.stream[FT_STREAM_COMPUTE];
	t.awaits = f.awaits[0] || f.awaits[1];
	front_open(&f);
	f.stream[FT_STREAM_COMPUTE] = 0;
	front_open_block(&f, FRONT_WORK, (struct block){ .least = INFINITY });
	bound_put_pass(&f, b, class, pass);
	t.length = f.stream[FT_STREAM_COMPUTE];
	t.reduced = f.stream[FT_STREAM_REDUCE];
	t.gathered = f.stream[FT_STREAM_GATHER];
	t.work = *front_block(&f, FRONT_WORK);
	reduces = front_block(&f, FT_STREAM_REDUCE);
	t.reduces_any = reduces != NULL;
	if (reduces) {
		t.reduces = *reduces;
		t.reduces.compute = block_compute(&b->of[class], reduces);
	}
	return t;
}

static bool same_call(const struct ft_graph *g, const struct ft_call *a,
		      const struct ft_call *b)
{
	const struct ft_segment *x = &g->segment[a->segment],
				*y = &g->segment[b->segment];

	return x == y || (x->n_ops == y->n_ops &&
			  !memcmp(x->op, y->op, x->n_ops * sizeof(*x->op)));
}

/* Do two passes of a class put the same? */
static bool same_pass(const struct bounding *b, size_t class,
		      const struct ft_pass_calls *x, const struct ft_pass_calls *y)
{
	const struct ft_graph *g = &b->o->graph;
	const struct ft_call *of = g->rank_class[class].call;

	if (!y->times || (x->times == 1) != (y->times == 1) ||
	    x->end - x->begin != y->end - y->begin)
		return false;
	for (size_t i = x->begin, k = y->begin; i < x->end; i++, k++)
		if ((int64_t)of[i].repeat / x->times !=
			    (int64_t)of[k].repeat / y->times ||
		    !same_call(g, &of[i], &of[k]))
			return false;
	return true;
}

/* Passes that are the same are timed once: most chunks, and most turns. */
static void time_class(const struct bounding *b, size_t class)
{
	const struct ft_outline *o = b->o;
	const struct ft_pass_calls *pass = o->pass[class];
	size_t chunk = FT_SLOT_UPDATE, turn = o->n_passes / FT_TURNS;

	for (size_t i = 0; i < o->n_passes; i++) {
		struct pass_time *t = &b->pass[class][i];

		if (!pass[i].times)
			continue;
		if (i >= chunk && same_pass(b, class, &pass[i], &pass[i - chunk]))
			*t = t[-(ptrdiff_t)chunk];
		else if (i >= turn && same_pass(b, class, &pass[i], &pass[i - turn]))
			*t = t[-(ptrdiff_t)turn];
		else
			*t = time_pass(b, class, &pass[i]);
	}
}

void bound_time_passes(struct bounding *b)
{
	const struct ft_outline *o = b->o;

	b->pass = ARENA_ARRAY(b->mem, o->graph.n_classes, struct pass_time *);
	for (size_t c = 0; c < o->graph.n_classes; c++) {
		b->pass[c] = b->pass[o->like[c]];
		if (o->like[c] != c)
			continue;
		b->pass[c] = ARENA_ARRAY(b->mem, o->n_passes, struct pass_time);
		time_class(b, c);
	}
}
