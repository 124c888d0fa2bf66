/* sim/passes.c - calls of a graph, by its marks: pass, micro-batch, layers */
#include "sim/passes.h"

#include "base/arena.h"
#include "base/text.h"

/* Where a mark's calls end: where the next begins. */
static size_t end_of(const struct ft_class *c, size_t mark)
{
	return mark + 1 < c->n_slots ? c->slot[mark + 1].call : c->n_calls;
}

/* Segments of layers are named so, those of both parts of a split backward alike. */
static bool of_layers(const struct ft_graph *g, const struct ft_call *call,
		      bool forward)
{
	const char *with = forward ? "forward." : "backward.";

	return text_begins_with(g->segment[call->segment].name, with);
}

static int64_t layers_of(const struct ft_graph *g, const struct ft_class *c,
			 size_t mark)
{
	int64_t n = 0;

	for (size_t i = c->slot[mark].call; i < end_of(c, mark); i++)
		if (of_layers(g, &c->call[i], true))
			n += c->call[i].repeat;
	return n;
}

/* Layers of each chunk of each stage, in the order in which data goes through them. */
struct places {
	size_t n, chunks;
	int64_t *first; /* [n + 1] */
	bool back;	/* every other chunk runs from the last stage to the first */
};

int64_t passes_place(int64_t stages, bool folded, int64_t stage, int64_t chunk)
{
	bool back = folded && chunk % 2;

	return chunk * stages + (back ? stages - 1 - stage : stage);
}

static size_t place(const struct places *p, size_t stages, size_t stage, int64_t chunk)
{
	return (size_t)passes_place((int64_t)stages, p->back, (int64_t)stage, chunk);
}

bool passes_fold(const struct ft_graph *g)
{
	for (size_t s = 0; s < g->n_segments; s++)
		for (size_t i = 0; i < g->segment[s].n_ops; i++)
			if (g->segment[s].op[i].reverse)
				return true;
	return false;
}

static struct places places_of(const struct ft_graph *g, struct arena *mem)
{
	struct places p = { .back = passes_fold(g) };
	size_t stages = g->n_classes;

	for (size_t c = 0; c < stages; c++)
		for (size_t k = 0; k < g->rank_class[c].n_slots; k++)
			if ((size_t)g->rank_class[c].slot[k].slot.chunk >= p.chunks)
				p.chunks =
					(size_t)g->rank_class[c].slot[k].slot.chunk + 1;
	p.n = p.chunks * stages;
	p.first = ARENA_ARRAY(mem, p.n + 1, int64_t);
	for (size_t c = 0; c < stages; c++)
		for (size_t k = 0; k < g->rank_class[c].n_slots; k++) {
			const struct ft_slot *s = &g->rank_class[c].slot[k].slot;

			if (s->kind == FT_SLOT_FORWARD)
				p.first[place(&p, stages, c, s->chunk) + 1] =
					layers_of(g, &g->rank_class[c], k);
		}
	for (size_t i = 0; i < p.n; i++)
		p.first[i + 1] += p.first[i];
	return p;
}

/* Two marks at one call run side by side. */
static bool alone(const struct ft_class *c, size_t mark)
{
	return end_of(c, mark) > c->slot[mark].call &&
	       !(mark > 0 && c->slot[mark - 1].call == c->slot[mark].call);
}

static void put(const struct ft_graph *g, const struct places *p, size_t class,
		size_t mark, struct pass_call *to)
{
	const struct ft_class *c = &g->rank_class[class];
	const struct ft_slot *s = &c->slot[mark].slot;
	size_t at = place(p, g->n_classes, class, s->chunk);
	bool forward = s->kind == FT_SLOT_FORWARD;
	int64_t layer = forward ? p->first[at] : p->first[at + 1] - 1;
	int64_t step = forward ? 1 : -1;

	for (size_t i = c->slot[mark].call; i < end_of(c, mark); i++) {
		if (!of_layers(g, &c->call[i], forward))
			continue;
		to[i] = (struct pass_call){ ft_slot_name(s->kind), s->micro_batch,
					    layer, step };
		layer += step * c->call[i].repeat;
	}
}

struct pass_call **passes_of(const struct ft_graph *g, struct arena *mem)
{
	struct pass_call **to = ARENA_ARRAY(mem, g->n_classes, struct pass_call *);
	struct places p = places_of(g, mem);

	for (size_t c = 0; c < g->n_classes; c++) {
		const struct ft_class *k = &g->rank_class[c];

		to[c] = ARENA_ARRAY(mem, k->n_calls + 1, struct pass_call);
		for (size_t i = 0; i < k->n_calls; i++)
			to[c][i].micro_batch = -1;
		for (size_t m = 0; m < k->n_slots; m++)
			if (ft_slot_is_pass(k->slot[m].slot.kind) && alone(k, m))
				put(g, &p, c, m, to[c]);
	}
	return to;
}
