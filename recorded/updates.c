/*
 * recorded/updates.c - when weights were updated, as annotations tell
 *
 * PyTorch annotates each step of an optimizer. Where that is given a closure (Lightning's Trainer does so),
 * forward and backward run inside of the annotation, and before the update: the backward's products are
 * launched by autograd's own thread, and what updates comes behind the last launch of that one.
 * An optimizer's own products (Muon's) are launched by the annotation's thread.
 */
#include <stdlib.h>

#include "base/text.h"
#include "recorded/recording.h"

enum { NOBODY = -1 };

static int by_start(const void *a, const void *b)
{
	const struct ft_rec_span *x = a, *y = b;

	int order = whole_order(x->start, y->start);

	if (!order)
		order = whole_order(y->duration, x->duration);
	return order ? order : whole_order(x->thread, y->thread);
}

/* One that steps another inside of its own step (ZeroRedundancyOptimizer) updates once. */
static void drop_inner(struct ft_recording *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_updates; i++) {
		const struct ft_rec_span *u = &r->update[i];
		const struct ft_rec_span *outer = n ? &r->update[n - 1] : NULL;

		if (!outer || u->start + u->duration > outer->start + outer->duration)
			r->update[n++] = *u;
	}
	r->n_updates = n;
}

static void collect(struct ft_recording *r)
{
	r->update = ARENA_ARRAY(&r->mem, r->annotation.n + 1, struct ft_rec_span);
	for (size_t i = 0; i < r->annotation.n; i++) {
		const struct ft_rec_span *a = table_at(&r->annotation, i);

		if (text_begins_with(ft_recording_text(r, a->name), "Optimizer.step"))
			r->update[r->n_updates++] = *a;
	}
	qsort(r->update, r->n_updates, sizeof(*r->update), by_start);
	drop_inner(r);
}

/* The number of the update in which an operation was launched; n_updates: in none. */
static size_t update_of(const struct ft_recording *r, const struct ft_rec_op *op)
{
	return op->call == FT_REC_NONE ?
		       r->n_updates :
		       spans_find(r->update, r->n_updates,
				  call_of(r, (size_t)op->call)->start);
}

static bool is_product(const struct ft_rec_op *op)
{
	return op->rec_class == FT_REC_GEMM || op->rec_class == FT_REC_ATTENTION;
}

void recording_updates(struct ft_recording *r)
{
	struct arena scratch = { 0 };
	int32_t *autograd; /* its thread */
	ft_ps *behind;

	collect(r);
	autograd = ARENA_ARRAY(&scratch, r->n_updates + 1, int32_t);
	behind = ARENA_ARRAY(&scratch, r->n_updates + 1, ft_ps);
	for (size_t u = 0; u < r->n_updates; u++)
		autograd[u] = NOBODY;
	for (size_t i = 0; i < r->op.n; i++) {
		const struct ft_rec_op *op = op_of(r, i);
		size_t u = is_product(op) ? update_of(r, op) : r->n_updates;
		int16_t thread;

		if (u == r->n_updates)
			continue;
		thread = call_of(r, (size_t)op->call)->thread;
		if (thread != r->update[u].thread)
			autograd[u] = thread;
	}
	for (size_t i = 0; i < r->op.n; i++) {
		size_t u = update_of(r, op_of(r, i));
		const struct ft_rec_call *c;

		if (u == r->n_updates || autograd[u] == NOBODY)
			continue;
		c = call_of(r, (size_t)op_of(r, i)->call);
		if (c->thread == autograd[u] && c->start + c->duration > behind[u])
			behind[u] = c->start + c->duration;
	}
	for (size_t u = 0; u < r->n_updates; u++) {
		struct ft_rec_span *s = &r->update[u];
		ft_ps end = s->start + s->duration;

		if (autograd[u] == NOBODY)
			continue;
		s->start = behind[u] < end ? behind[u] : end;
		s->duration = end - s->start;
	}
	arena_release(&scratch);
}

size_t ft_recording_updates(const struct ft_recording *r)
{
	return r->n_updates;
}

const struct ft_rec_span *ft_recording_update(const struct ft_recording *r, size_t i)
{
	return &r->update[i];
}
