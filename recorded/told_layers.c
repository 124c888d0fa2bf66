/*
 * recorded/told_layers.c - layers that kernels tell, as those of our own timelines do
 *
 * A layer begins with its first product or attention, as one that is found by repetition does
 * (recorded/layers.c), and lasts to that of the next layer of its pass; the last one to what
 * follows its own operations. Layers are numbered by their order among those of the rank.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/whole.h"
#include "recorded/replay.h"

struct begun { /* a layer */
	struct told_place of;
	size_t begin,
		end; /* places among the stream's operations; end: behind its last */
	int64_t marks;
};

struct teller {
	const struct ft_recording *r;
	const ft_ps *begin; /* [operation] */
	struct told_place *known;
	bool *is_known; /* [text] */
	uint32_t *op;
	size_t n_ops, n, cap;
	struct begun *layer;
};

static int64_t whole_in(const json_t *args, const char *key)
{
	const json_t *x = json_object_get(args, key);

	return json_is_integer(x) && json_integer_value(x) >= 0 ?
		       json_integer_value(x) :
		       -1;
}

struct told_place told_place(const struct ft_recording *r, const struct ft_rec_op *op)
{
	struct told_place to = { PASS_NOT_TOLD, -1, -1 };
	json_t *args = op->args == FT_REC_NONE ?
			       NULL :
			       json_loads(ft_recording_text(r, op->args), 0, NULL);
	const char *pass = json_string_value(json_object_get(args, "Pass"));

	if (pass) {
		to.pass = !strcmp(pass, "forward") ? PASS_FORWARD : PASS_BACKWARD;
		to.layer = whole_in(args, "Layer");
		to.micro_batch = whole_in(args, "Micro-batch");
	}
	json_decref(args);
	return to;
}

/* Operations of one place share their text. */
static struct told_place place_of(struct teller *k, const struct ft_rec_op *op)
{
	if (op->args == FT_REC_NONE)
		return (struct told_place){ PASS_NOT_TOLD, -1, -1 };
	if (!k->is_known[op->args]) {
		k->known[op->args] = told_place(k->r, op);
		k->is_known[op->args] = true;
	}
	return k->known[op->args];
}

static bool same(const struct told_place *a, const struct told_place *b)
{
	return a->pass == b->pass && a->layer == b->layer &&
	       a->micro_batch == b->micro_batch;
}

/* What comes before its layer's first product is counted with what precedes it. */
static void add(struct teller *k, const struct ft_rec_op *op, size_t at,
		struct arena *mem)
{
	struct told_place p = place_of(k, op);
	struct begun *last = k->n ? &k->layer[k->n - 1] : NULL;

	if (p.pass == PASS_NOT_TOLD || p.layer < 0)
		return;
	if (last && same(&last->of, &p)) {
		last->end = at + 1;
		last->marks += op_is_mark(op);
	} else if (op_is_mark(op)) {
		if (k->n == k->cap)
			k->layer = ARENA_GROW(mem, k->layer, &k->cap);
		k->layer[k->n++] = (struct begun){ p, at, at + 1, 1 };
	}
}

/* The layers of the model that the rank has, in order. */
static int64_t *numbers_of(const struct teller *k, size_t *n, struct arena *mem)
{
	int64_t *to = ARENA_ARRAY(mem, k->n, int64_t);

	*n = 0;
	for (size_t i = 0; i < k->n; i++)
		to[i] = k->layer[i].of.layer;
	qsort(to, k->n, sizeof(*to), by_whole);
	for (size_t i = 0; i < k->n; i++)
		if (!*n || to[*n - 1] != to[i])
			to[(*n)++] = to[i];
	return to;
}

/* To the next layer of its pass, or what follows its own operations. */
static ft_ps end_of(const struct teller *k, size_t i, ft_ps step_end)
{
	const struct begun *l = &k->layer[i], *next = l + 1;
	bool goes_on = i + 1 < k->n && next->of.pass == l->of.pass &&
		       next->of.micro_batch == l->of.micro_batch;
	size_t at = goes_on ? next->begin : l->end;

	return at < k->n_ops ? k->begin[k->op[at]] : step_end;
}

static void put(const struct teller *k, ft_ps step_end, struct ft_rec_layers *to,
		struct arena *mem)
{
	size_t numbers;
	const int64_t *number = numbers_of(k, &numbers, mem);

	to->layer = ARENA_ARRAY(mem, k->n, struct ft_rec_layer);
	to->layers = (int64_t)numbers;
	for (size_t i = 0; i < k->n; i++) {
		const struct begun *l = &k->layer[i];
		bool backward = l->of.pass == PASS_BACKWARD;
		const int64_t *at = bsearch(&l->of.layer, number, numbers,
					    sizeof(*number), by_whole);
		int64_t *marks = backward ? &to->in_backward : &to->in_forward;

		if (at == number)
			*marks = l->marks;
		to->layer[to->n++] = (struct ft_rec_layer){
			backward,
			at - number,
			{ k->begin[k->op[l->begin]], end_of(k, i, step_end) },
		};
	}
}

struct ft_rec_layers ft_replay_told_layers(const struct ft_replay *p,
					   const struct ft_replayed *t, size_t rank,
					   struct ft_rec_window window,
					   struct arena *mem)
{
	struct ft_rec_layers to = { .why = "its kernels do not tell them" };
	const struct ft_recording *r = p->rank[rank].r;
	int16_t stream = busiest_stream(r, mem);
	struct teller k = {
		.r = r,
		.begin = t->op_begin[rank],
		.known = ARENA_ARRAY(mem, r->texts.text.n, struct told_place),
		.is_known = ARENA_ARRAY(mem, r->texts.text.n, bool),
		.op = ARENA_ARRAY(mem, r->op.n, uint32_t),
	};

	if (marks_cut(r)) {
		to.why = FT_LAYERS_CUT;
		return to;
	}
	for (size_t i = 0; i < r->op.n; i++) {
		uint32_t number = r->op_order[i];
		const struct ft_rec_op *op = op_of(r, number);

		if (op->stream != stream || k.begin[number] < window.from ||
		    k.begin[number] >= window.to)
			continue;
		k.op[k.n_ops] = number;
		add(&k, op, k.n_ops++, mem);
	}
	if (k.n)
		put(&k, window.to, &to, mem);
	return to;
}
