/*
 * recorded/twice.c - what a file tells twice is kept once
 *
 * Joined files and some exporters repeat events. An operation, or a call, that has start, duration,
 * stream (thread), name and correlation of one before it is that one: one stream runs one kernel at a
 * time. What has no correlation is not compared.
 */
#include <stdlib.h>
#include <string.h>

#include "recorded/recording.h"

/* What is compared of an event. */
struct told {
	int64_t start, duration, correlation;
	int32_t name;
	int16_t lane; /* stream or thread */
	uint32_t i;
};

static int compared(const struct told *x, const struct told *y)
{
	int by = whole_order(x->start, y->start);

	by = by ? by : whole_order(x->correlation, y->correlation);
	by = by ? by : whole_order(x->duration, y->duration);
	by = by ? by : whole_order(x->name, y->name);
	return by ? by : whole_order(x->lane, y->lane);
}

static int by_told(const void *a, const void *b)
{
	const struct told *x = a, *y = b;
	int by = compared(x, y);

	return by ? by : whole_order(x->i, y->i);
}

/* Those that are not marked move together. */
static int64_t take_out(struct table_rows *t, const bool *twice)
{
	size_t n = 0;
	int64_t gone;

	for (size_t i = 0; i < t->n; i++)
		if (!twice[i])
			memmove(table_at(t, n++), table_at(t, i), t->row_bytes);
	gone = (int64_t)(t->n - n);
	t->n = n;
	return gone;
}

/* Takes out of t what is told twice; told: those of its rows that are compared, in any order. */
static int64_t once(struct table_rows *t, struct told *told, size_t n)
{
	struct arena scratch = { 0 };
	bool *twice = ARENA_ARRAY(&scratch, t->n, bool);
	int64_t gone;

	qsort(told, n, sizeof(*told), by_told);
	for (size_t i = 1; i < n; i++)
		twice[told[i].i] = !compared(&told[i - 1], &told[i]);
	gone = take_out(t, twice);
	arena_release(&scratch);
	return gone;
}

int64_t recording_once(struct ft_recording *r)
{
	struct arena scratch = { 0 };
	size_t most = r->op.n > r->call.n ? r->op.n : r->call.n, n = 0;
	struct told *told = ARENA_ARRAY(&scratch, most, struct told);
	int64_t gone;

	for (size_t i = 0; i < r->op.n; i++) {
		const struct ft_rec_op *o = op_of(r, i);

		if (o->correlation != FT_REC_NONE)
			told[n++] =
				(struct told){ o->start, o->duration, o->correlation,
					       o->name,	 o->stream,   (uint32_t)i };
	}
	gone = once(&r->op, told, n);
	n = 0;
	for (size_t i = 0; i < r->call.n; i++) {
		const struct ft_rec_call *c = call_of(r, i);

		if (c->correlation != FT_REC_NONE)
			told[n++] =
				(struct told){ c->start, c->duration, c->correlation,
					       c->name,	 c->thread,   (uint32_t)i };
	}
	gone += once(&r->call, told, n);
	arena_release(&scratch);
	return gone;
}
