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

struct told {
	int64_t start;
	uint64_t rest; /* of all else that is compared */
	uint32_t i;
};

static int by_told(const void *a, const void *b)
{
	const struct told *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rest != y->rest)
		return x->rest < y->rest ? -1 : 1;
	return x->i < y->i ? -1 : x->i > y->i;
}

static uint64_t mixed(int64_t duration, int64_t correlation, int32_t name, int16_t lane)
{
	static const uint64_t prime = 0x100000001b3; /* of FNV-1a */
	uint64_t h = 0xcbf29ce484222325;

	h = (h ^ (uint64_t)duration) * prime;
	h = (h ^ (uint64_t)correlation) * prime;
	h = (h ^ (uint64_t)name) * prime;
	return (h ^ (uint64_t)lane) * prime;
}

static bool same_op(const struct ft_rec_op *a, const struct ft_rec_op *b)
{
	return a->start == b->start && a->duration == b->duration &&
	       a->correlation == b->correlation && a->name == b->name &&
	       a->stream == b->stream;
}

static bool same_call(const struct ft_rec_call *a, const struct ft_rec_call *b)
{
	return a->start == b->start && a->duration == b->duration &&
	       a->correlation == b->correlation && a->name == b->name &&
	       a->thread == b->thread;
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

int64_t recording_once(struct ft_recording *r)
{
	struct arena scratch = { 0 };
	size_t most = r->op.n > r->call.n ? r->op.n : r->call.n, n = 0;
	struct told *told = ARENA_ARRAY(&scratch, most, struct told);
	bool *ops = ARENA_ARRAY(&scratch, r->op.n, bool);
	bool *calls = ARENA_ARRAY(&scratch, r->call.n, bool);
	int64_t gone;

	for (size_t i = 0; i < r->op.n; i++) {
		const struct ft_rec_op *o = op_of(r, i);

		if (o->correlation != FT_REC_NONE)
			told[n++] = (struct told){ o->start,
						   mixed(o->duration, o->correlation,
							 o->name, o->stream),
						   (uint32_t)i };
	}
	qsort(told, n, sizeof(*told), by_told);
	for (size_t i = 1; i < n; i++)
		ops[told[i].i] = same_op(op_of(r, told[i - 1].i), op_of(r, told[i].i));
	n = 0;
	for (size_t i = 0; i < r->call.n; i++) {
		const struct ft_rec_call *c = call_of(r, i);

		if (c->correlation != FT_REC_NONE)
			told[n++] = (struct told){ c->start,
						   mixed(c->duration, c->correlation,
							 c->name, c->thread),
						   (uint32_t)i };
	}
	qsort(told, n, sizeof(*told), by_told);
	for (size_t i = 1; i < n; i++)
		calls[told[i].i] =
			same_call(call_of(r, told[i - 1].i), call_of(r, told[i].i));
	gone = take_out(&r->op, ops) + take_out(&r->call, calls);
	arena_release(&scratch);
	return gone;
}
