/*
 * traces/sketch.c - what a layer, the embedding and the head run, whatever the pipeline
 *
 * Plans that cut a model into other stages run the same layers. What is put once in a step
 * (gathers, reductions, the update) and between stages is left out, so that a sketch stands
 * for all of them, as less than what each of them runs.
 */
#include <string.h>

#include "traces/stage.h"

struct whole {
	struct ft_sketch sketch; /* first: the handle is the arena's */
	struct arena mem;
};

enum { EMBEDDING = -1, HEAD = -2 }; /* in place of a layer */

/* Calls from here on are of another part. */
static struct ft_sketch_calls begin(const struct stage *st)
{
	return (struct ft_sketch_calls){ st->rank_class->n_calls,
					 st->rank_class->n_calls };
}

/* One way or the other in one go, or in the two parts of a split backward. Where autograd splits
 * it, the first chunk is not split, and runs less. */
static struct ft_sketch_calls put_back(struct stage *st, int64_t layer,
				       unsigned variant)
{
	struct ft_sketch_calls calls = begin(st);
	bool splits = plan_splits(st->b->plan) && !st->b->rules->autograd_split;

	for (enum part part = splits ? PART_INPUTS : PART_WHOLE;; part = PART_WEIGHTS) {
		st->part = part;
		if (layer >= 0)
			segment_backward(
				st, (struct layer_call){ layer, variant, false, 0 });
		else if (layer == HEAD)
			segment_head_back(st, variant, st->b->model->n_layers - 1);
		else if (part != PART_INPUTS)
			segment_embed_back(st, variant);
		if (part != PART_INPUTS)
			break;
	}
	st->part = PART_WHOLE;
	calls.end = st->rank_class->n_calls;
	return calls;
}

static void put_unit(struct stage *st, int64_t layer, struct ft_sketch_unit *u)
{
	segment_slot(st, (struct ft_slot){ FT_SLOT_FORWARD, 0, 0 });
	u->forward = begin(st);
	if (layer >= 0)
		segment_forward(st, (struct layer_call){ layer, 0, false, 0 });
	else if (layer == EMBEDDING)
		segment_embed(st, 0);
	else
		segment_head(st, 0, false);
	u->forward.end = st->rank_class->n_calls;
	segment_slot(st, (struct ft_slot){ FT_SLOT_BACKWARD, 0, 0 });
	u->backward = put_back(st, layer, 0);
	segment_slot(st, (struct ft_slot){ FT_SLOT_BACKWARD, 0, 1 });
	u->first = put_back(st, layer, V_FIRST);
}

/* Layers of different shapes, each as a kind of its own, and again where it runs twice. */
static void put_layers(struct stage *st, struct ft_sketch *s)
{
	struct builder *b = st->b;
	int64_t n = b->model->n_layers;

	for (int64_t l = 0; l < n; l++) {
		int64_t same = 0;

		while (memcmp(&b->model->layer[same], &b->model->layer[l],
			      sizeof(*b->model->layer)) != 0)
			same++;
		s->unit_of[l] = same < l ? s->unit_of[same] : s->n_units;
		if (same < l)
			continue;
		for (int again = 0; again < 2; again++) {
			b->again[l] = again;
			b->kind[l] = l + again * n;
			b->below[l] = l; /* stages gather each of theirs once */
			put_unit(st, l, &s->unit[s->n_units++]);
		}
	}
}

struct ft_sketch *ft_sketch_build(const struct ft_model *model,
				  const struct ft_plan *plan,
				  const struct ft_stack *stack, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct whole *w = ARENA_NEW(&mem, struct whole);
	struct ft_sketch *s = &w->sketch;
	struct builder b = { .mem = &w->mem, .g = &s->graph };
	struct stage st = { .b = &b, .first = true, .last = true };
	size_t n = (size_t)model->n_layers;

	w->mem = mem;
	if (!build_begin(&b, model, plan, stack, err)) {
		ft_sketch_free(s);
		return NULL;
	}
	b.transfers = false; /* they only add to it */
	s->n_layers = n;
	s->graph.n_classes = 1;
	st.rank_class = &s->graph.rank_class[0];
	st.rank_class->name = "";
	st.rank_class->ranks = 1;
	st.root = ends_held(&b, true, true);
	s->unit = ARENA_ARRAY(&w->mem, 2 * n + 2, struct ft_sketch_unit);
	s->unit_of = ARENA_ARRAY(&w->mem, n, size_t);
	put_unit(&st, EMBEDDING, &s->unit[s->n_units++]);
	put_unit(&st, HEAD, &s->unit[s->n_units++]);
	put_layers(&st, s);
	return s;
}

void ft_sketch_free(struct ft_sketch *sketch)
{
	struct arena mem;

	if (!sketch)
		return;
	mem = ((struct whole *)sketch)->mem;
	arena_release(&mem);
}
