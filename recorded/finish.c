/*
 * recorded/finish.c - tables in order, operations joined to the calls that launched
 * them, steps found
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "recorded/recording.h"

/* ---- order and search -------------------------------------------------------------- */

struct keyed {
	int64_t key, then;
	uint32_t i;
};

static int by_key(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	int order = whole_order(x->key, y->key);

	if (!order)
		order = whole_order(x->then, y->then);
	return order ? order : whole_order(x->i, y->i);
}

static void sort(struct keyed *k, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (by_key(&k[i - 1], &k[i]) > 0) {
			qsort(k, n, sizeof(*k), by_key);
			return;
		}
}

static uint32_t *order_of(struct ft_recording *r, struct keyed *k, size_t n)
{
	uint32_t *order = ARENA_ARRAY(&r->mem, n, uint32_t);

	sort(k, n);
	for (size_t i = 0; i < n; i++)
		order[i] = k[i].i;
	return order;
}

/* The place of the first row with this key; -1: there is none. */
static int64_t search(const struct keyed *k, size_t n, int64_t key)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (k[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && k[low].key == key ? (int64_t)low : FT_REC_NONE;
}

/* ---- joins ---------------------------------------------------------------------------- */

/* Of two calls with one correlation (a runtime's and the driver's inside it) the one
 * that begins first. What a call launched and is not there, the profiler lost. */
static void join_calls(struct ft_recording *r, struct keyed *by_correlation, size_t n,
		       bool *ran)
{
	for (size_t i = 0; i < r->op.n; i++) {
		struct ft_rec_op *op = op_of(r, i);
		int64_t at = op->correlation == FT_REC_NONE ?
				     FT_REC_NONE :
				     search(by_correlation, n, op->correlation);

		if (at == FT_REC_NONE) {
			r->counts.without_call++;
			continue;
		}
		op->call = (int32_t)by_correlation[at].i;
		ran[at] = true;
		if (op->external_id == FT_REC_NONE)
			op->external_id = call_of(r, (size_t)op->call)->external_id;
		r->counts.before_call +=
			op->start < call_of(r, (size_t)op->call)->start;
	}
	for (size_t i = 0; i < n; i++)
		r->counts.without_op +=
			!ran[i] &&
			(!i || by_correlation[i - 1].key != by_correlation[i].key);
}

static int16_t stream_numbered(const struct ft_recording *r, int64_t number)
{
	for (size_t i = 0; i < r->stream.n; i++)
		if (((struct lane *)table_at(&r->stream, i))->number == number)
			return (int16_t)i;
	return FT_REC_NONE;
}

static void join_syncs(struct ft_recording *r, struct keyed *k)
{
	size_t n = r->call.n;

	for (size_t i = 0; i < n; i++)
		k[i] = (struct keyed){ call_of(r, i)->correlation, 0, (uint32_t)i };
	sort(k, n);
	for (size_t i = 0; i < r->sync.n; i++) {
		const struct told_sync *s = table_at(&r->sync, i);
		int64_t at = search(k, n, s->correlation);
		int64_t record = s->record == FT_REC_NONE ? FT_REC_NONE :
							    search(k, n, s->record);
		struct ft_rec_call *c;

		if (at == FT_REC_NONE || s->correlation == FT_REC_NONE)
			continue;
		c = call_of(r, k[at].i);
		if (c->kind == FT_REC_LAUNCH)
			continue;
		c->stream = stream_numbered(r, s->stream);
		if (record != FT_REC_NONE)
			c->waits_for = (int32_t)k[record].i;
	}
}

static void join(struct ft_recording *r, struct keyed *k, struct arena *scratch)
{
	size_t n = 0;

	for (size_t i = 0; i < r->call.n; i++) {
		const struct ft_rec_call *c = call_of(r, i);

		if (c->kind == FT_REC_LAUNCH && c->correlation != FT_REC_NONE)
			k[n++] =
				(struct keyed){ c->correlation, c->start, (uint32_t)i };
	}
	sort(k, n);
	join_calls(r, k, n, ARENA_ARRAY(scratch, n, bool));
	if (r->sync.n)
		join_syncs(r, k);
}

/* ---- times from 0 ----------------------------------------------------------------------- */

static void earlier(ft_ps *first, ft_ps t)
{
	if (t < *first)
		*first = t;
}

/* Whole microseconds, so that what is printed again reads the same. */
static void begin_at_zero(struct ft_recording *r)
{
	struct table_rows *const spans[] = { &r->span, &r->annotation };
	ft_ps first = INT64_MAX, whole;

	for (size_t i = 0; i < r->op.n; i++)
		earlier(&first, op_of(r, i)->start);
	for (size_t i = 0; i < r->call.n; i++)
		earlier(&first, call_of(r, i)->start);
	for (int s = 0; s < 2; s++)
		for (size_t i = 0; i < spans[s]->n; i++)
			earlier(&first,
				((struct ft_rec_span *)table_at(spans[s], i))->start);
	whole = first / 1000000 - (first < 0 && first % 1000000);
	r->origin_us += whole;
	for (size_t i = 0; i < r->op.n; i++)
		op_of(r, i)->start -= whole * 1000000;
	for (size_t i = 0; i < r->call.n; i++)
		call_of(r, i)->start -= whole * 1000000;
	for (int s = 0; s < 2; s++)
		for (size_t i = 0; i < spans[s]->n; i++)
			((struct ft_rec_span *)table_at(spans[s], i))->start -=
				whole * 1000000;
}

/* ---- steps -------------------------------------------------------------------------------- */

static void later(ft_ps *last, ft_ps t)
{
	if (t > *last)
		*last = t;
}

/* All that was recorded is one step, from the first call or operation on. */
static void one_step(struct ft_recording *r)
{
	struct ft_rec_step *s = &r->step[0];

	r->n_steps = 1;
	*s = (struct ft_rec_step){ INT64_MAX, 0, text_number(r, "all", 3), false };
	for (size_t i = 0; i < r->op.n; i++) {
		const struct ft_rec_op *op = op_of(r, i);

		earlier(&s->begin, op->start);
		later(&s->end, op->start + op->duration);
	}
	for (size_t i = 0; i < r->call.n; i++)
		if (call_of(r, i)->kind == FT_REC_LAUNCH)
			earlier(&s->begin, call_of(r, i)->start);
}

static int by_begin(const void *a, const void *b)
{
	const struct ft_rec_step *x = a, *y = b;

	return whole_order(x->begin, y->begin);
}

size_t recording_step_of(const struct ft_recording *r, size_t op)
{
	const struct ft_rec_op *o = op_of(r, op);
	bool launched = o->call != FT_REC_NONE;
	ft_ps at = launched ? call_of(r, (size_t)o->call)->start : o->start;
	size_t s = r->n_steps;

	while (s-- > 0 && r->step[s].begin > at)
		;
	return s < r->n_steps && at <= r->step[s].end ? s : r->n_steps;
}

/* A mark around nothing (the profiler's last, when its loop is over) is no step: it would make the
 * mean shorter. Where all are, what was recorded is one. */
static void drop_empty_steps(struct ft_recording *r, struct arena *scratch)
{
	bool *holds = ARENA_ARRAY(scratch, r->n_steps + 1, bool);
	size_t n = 0;

	for (size_t i = 0; i < r->op.n; i++)
		holds[recording_step_of(r, i)] = true;
	for (size_t s = 0; s < r->n_steps; s++)
		if (holds[s])
			r->step[n++] = r->step[s];
	r->counts.empty_steps = (int64_t)(r->n_steps - n);
	r->n_steps = n;
	if (!n)
		one_step(r);
}

static void find_steps(struct ft_recording *r)
{
	size_t n = 0;

	r->step = ARENA_ARRAY(&r->mem, r->annotation.n + 1, struct ft_rec_step);
	for (size_t i = 0; i < r->annotation.n; i++) {
		const struct ft_rec_span *a = table_at(&r->annotation, i);

		if (!strncmp(ft_recording_text(r, a->name), "ProfilerStep#", 13))
			r->step[n++] =
				(struct ft_rec_step){ a->start, a->start + a->duration,
						      a->name, true };
	}
	r->n_steps = n;
	qsort(r->step, n, sizeof(*r->step), by_begin);
	if (!n)
		one_step(r);
	for (size_t s = 1; s < n; s++)
		if (r->step[s - 1].end > r->step[s].begin) {
			r->step[s - 1].end = r->step[s].begin;
			r->counts.overlapping_steps++;
		}
}

/* ---- all of it -------------------------------------------------------------------------------- */

static void order(struct ft_recording *r, struct keyed *k)
{
	for (size_t i = 0; i < r->op.n; i++)
		k[i] = (struct keyed){ op_of(r, i)->start, op_of(r, i)->duration,
				       (uint32_t)i };
	r->op_order = order_of(r, k, r->op.n);
	for (size_t i = 0; i < r->call.n; i++)
		k[i] = (struct keyed){ call_of(r, i)->start, call_of(r, i)->duration,
				       (uint32_t)i };
	r->call_order = order_of(r, k, r->call.n);
	for (size_t i = 0; i < r->span.n; i++) {
		const struct ft_rec_span *s = table_at(&r->span, i);

		k[i] = (struct keyed){ s->id, s->start, (uint32_t)i };
	}
	r->span_by_id = order_of(r, k, r->span.n);
}

static int64_t device_of(const struct ft_recording *r, const struct ft_rec_op *op)
{
	return ((const struct lane *)table_at(&r->stream, (size_t)op->stream))->of;
}

/* Kernels of two GPUs are two ranks', or one's that the rest does not understand; their
 * processes may number calls alike. Copies may be of a peer. */
static bool of_one_gpu(const struct ft_recording *r, struct ft_error *err)
{
	const struct ft_rec_op *first = NULL;

	for (size_t i = 0; i < r->op.n; i++) {
		const struct ft_rec_op *op = op_of(r, i);

		if (op->is_copy)
			continue;
		if (first && device_of(r, op) != device_of(r, first))
			return ft_fail(
				err, &(struct ft_mark){ .file = r->file },
				"holds kernels of GPUs %lld and %lld: a recording is "
				"of one rank; record each by itself",
				(long long)device_of(r, first),
				(long long)device_of(r, op));
		first = op;
	}
	return true;
}

/* Ranks count from 0. What the file does not tell is FT_REC_NONE; a job of 0 ranks is not told either. */
static bool rank_fits(const struct ft_recording *r, struct ft_error *err)
{
	struct ft_mark at = { .file = r->file };

	if (r->rank < FT_REC_NONE)
		return ft_fail(err, &at, "states rank %lld: ranks count from 0",
			       (long long)r->rank);
	if (r->world > LIMIT_GPUS)
		return ft_fail(err, &at,
			       "states a job of %lld ranks: at most %d are taken",
			       (long long)r->world, (int)LIMIT_GPUS);
	return r->world <= 0 || r->rank < r->world ||
	       ft_fail(err, &at,
		       "states rank %lld of a job of %lld rank%s: ranks count from 0, "
		       "and are below the number of ranks",
		       (long long)r->rank, (long long)r->world,
		       r->world == 1 ? "" : "s");
}

bool recording_finish(struct ft_recording *r, struct ft_error *err)
{
	struct ft_mark at = { .file = r->file };
	size_t most = r->op.n > r->call.n ? r->op.n : r->call.n;
	struct arena scratch = { 0 };
	struct keyed *k;

	if (!r->op.n)
		return ft_fail(
			err, &at,
			"holds no kernels; record the accelerator's activities, too");
	if (!rank_fits(r, err) || !of_one_gpu(r, err))
		return false;
	r->counts.twice = recording_once(r);
	if (r->span.n > most)
		most = r->span.n;
	k = ARENA_ARRAY(&scratch, most, struct keyed);
	begin_at_zero(r);
	join(r, k, &scratch);
	order(r, k);
	find_steps(r);
	if (r->step[0].marked)
		drop_empty_steps(r, &scratch);
	arena_release(&scratch);
	return true;
}

/* The place in span_by_id of the first operator with this id or a larger one. */
static size_t find_span(const struct ft_recording *r, int64_t id)
{
	size_t low = 0, high = r->span.n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct ft_rec_span *s = table_at(&r->span, r->span_by_id[middle]);

		if (s->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct ft_rec_span *ft_recording_operator(const struct ft_recording *r,
						const struct ft_rec_op *op)
{
	size_t i = op->external_id == FT_REC_NONE ? r->span.n :
						    find_span(r, op->external_id);
	const struct ft_rec_span *s =
		i < r->span.n ? table_at(&r->span, r->span_by_id[i]) : NULL;

	return s && s->id == op->external_id ? s : NULL;
}

size_t span_number(const struct ft_recording *r, const struct ft_rec_span *span)
{
	return find_span(r, span->id);
}
