/* study/host_alone.c - a recorded host: how long it waited, what one activity takes alone */
#include <string.h>

#include "base/stats.h"
#include "study/host_rows.h"

enum { PARTS = 3, NO_CALL = -1 };

/* ---- waiting ---------------------------------------------------------- */

static ft_ps end_of(const struct ft_rec_call *c)
{
	return c->start + c->duration;
}

static void find_waited(struct host_side *s, struct arena *mem)
{
	const bool *waits = ft_recording_host_waits(s->r, mem);
	ft_ps sum = 0, until = 0;

	s->waited = ARENA_ARRAY(mem, ft_recording_calls(s->r), ft_ps);
	for (size_t i = 0; i < ft_recording_calls(s->r); i++) {
		size_t n = ft_recording_call_at(s->r, i);
		const struct ft_rec_call *c = ft_recording_call(s->r, n);
		ft_ps from = c->start > until ? c->start : until;

		s->waited[n] = sum;
		if (!waits[n] || end_of(c) <= from)
			continue;
		sum += end_of(c) - from;
		until = end_of(c);
	}
}

struct host_side host_side_of(const struct ft_replay *p, size_t rank, struct arena *mem)
{
	struct host_side s = { .p = p,
			       .r = ft_replay_recording(p, rank),
			       .t = ft_replay_as_recorded(p, mem),
			       .rank = rank };

	find_waited(&s, mem);
	return s;
}

struct alone {
	struct arena *mem;
	double *span[FT_HOSTS][PARTS]; /* of each kind of annotation */
	size_t n_span[FT_HOSTS][PARTS], span_cap[FT_HOSTS][PARTS];
	double *pause; /* from launch to launch */
	size_t n_pauses, pause_cap;
};

/* ---- annotations ------------------------------------------------------------------------------ */

static const struct {
	const char *begin;
	enum ft_host activity;
	int part; /* of the activity: its parts add up */
} annotations[] = {
	{ "FSDP::pre_forward (", FT_HOST_SHARD_FORWARD, 0 },
	{ "FSDP::post_forward (", FT_HOST_SHARD_FORWARD, 1 },
	{ "FSDP::post_backward_accumulate (", FT_HOST_SHARD_BACKWARD, 0 },
	{ "FSDP::post_backward_reshard (", FT_HOST_SHARD_BACKWARD, 1 },
	{ "FSDP::post_backward_reduce (", FT_HOST_SHARD_BACKWARD, 2 },
};

static void add_value(struct arena *mem, double **v, size_t *n, size_t *cap, double x)
{
	if (*n == *cap)
		*v = ARENA_GROW(mem, *v, cap);
	(*v)[(*n)++] = x;
}

/* An annotation's time without waiting and without the launches in it. */
static double alone_s(const struct host_side *s, const struct ft_rec_span *a,
		      double launch_s, double collective_s)
{
	ft_ps end = a->start + a->duration;
	double time_s = (double)a->duration * 1e-12;
	ft_ps first = -1, last = 0;

	for (size_t i = 0; i < ft_recording_ops(s->r); i++) {
		const struct ft_rec_op *op = ft_recording_op(s->r, i);
		const struct ft_rec_call *c =
			op->call == FT_REC_NONE ?
				NULL :
				ft_recording_call(s->r, (size_t)op->call);

		if (!c || c->thread != a->thread || c->start < a->start ||
		    c->start >= end)
			continue;
		time_s -= op->rec_class == FT_REC_COLLECTIVE ? collective_s : launch_s;
		first = first < 0 ? s->waited[op->call] : first;
		last = s->waited[op->call];
	}
	return time_s - (first < 0 ? 0 : (double)(last - first) * 1e-12);
}

static void take(struct alone *f, enum ft_host h, int part, double time_s)
{
	add_value(f->mem, &f->span[h][part], &f->n_span[h][part], &f->span_cap[h][part],
		  time_s);
}

static void take_annotations(struct alone *f, const struct host_side *s,
			     double launch_s, double collective_s)
{
	for (size_t i = 0; i < ft_recording_annotations(s->r); i++) {
		const struct ft_rec_span *a = ft_recording_annotation(s->r, i);
		const char *name = ft_recording_text(s->r, a->name);

		for (size_t k = 0; k < sizeof(annotations) / sizeof(*annotations);
		     k++) {
			if (!strncmp(name, annotations[k].begin,
				     strlen(annotations[k].begin)))
				take(f, annotations[k].activity, annotations[k].part,
				     alone_s(s, a, launch_s, collective_s));
		}
	}
	for (size_t i = 0; i < ft_recording_updates(s->r); i++)
		take(f, FT_HOST_OPTIMIZER, 0,
		     alone_s(s, ft_recording_update(s->r, i), launch_s, collective_s));
}

/* From one launch to the next of the same thread, none of which waits. */
static void take_launches(struct alone *f, const struct host_side *s)
{
	const bool *waits = ft_recording_host_waits(s->r, f->mem);
	int64_t last = NO_CALL;

	for (size_t i = 0; i < ft_recording_calls(s->r); i++) {
		size_t n = ft_recording_call_at(s->r, i);
		const struct ft_rec_call *c = ft_recording_call(s->r, n);
		bool launch = c->kind == FT_REC_LAUNCH && !waits[n];

		if (launch && last != NO_CALL &&
		    ft_recording_call(s->r, (size_t)last)->thread == c->thread)
			add_value(
				f->mem, &f->pause, &f->n_pauses, &f->pause_cap,
				(double)(c->start -
					 ft_recording_call(s->r, (size_t)last)->start) *
					1e-12);
		last = launch ? (int64_t)n : NO_CALL;
	}
}

static double median(double *v, size_t n)
{
	stats_sort(v, n);
	return stats_median(v, n);
}

static void sum_up(struct alone *f, struct host_rows *rows)
{
	for (int h = 0; h < FT_HOSTS; h++)
		for (int part = 0; part < PARTS; part++) {
			size_t n = f->n_span[h][part];

			if (!n)
				continue;
			rows->alone[h].time_s += median(f->span[h][part], n);
			rows->alone[h].n = n > rows->alone[h].n ? n : rows->alone[h].n;
		}
}

void host_rows_alone(const struct ft_host_fit_request *asked, bool keep_launch,
		     struct arena *mem, struct host_rows *rows)
{
	const struct ft_replay *p = asked->replay;
	const struct ft_number *stack_s = asked->scenario->stack->host_s;
	struct alone *f = ARENA_NEW(mem, struct alone);
	double launch_s = stack_s[FT_HOST_LAUNCH].value / asked->pace;

	f->mem = mem;
	memset(rows->alone, 0, sizeof(rows->alone));
	for (size_t k = 0; k < ft_replay_ranks(p) && !keep_launch; k++) {
		struct host_side s = host_side_of(p, k, mem);

		take_launches(f, &s);
	}
	if (f->n_pauses) {
		launch_s = median(f->pause, f->n_pauses);
		rows->alone[FT_HOST_LAUNCH] =
			(struct host_span){ launch_s, f->n_pauses };
	}
	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		struct host_side s = host_side_of(p, k, mem);

		take_annotations(f, &s, launch_s,
				 stack_s[FT_HOST_COLLECTIVE].value / asked->pace);
	}
	sum_up(f, rows);
}

/* ---- what lies within ------------------------------------------------- */

/* What an annotation tells holds other activities, too. */
static const struct {
	enum ft_host outer, inner;
} within[] = {
	{ FT_HOST_SHARD_BACKWARD, FT_HOST_TABLE },
	{ FT_HOST_SHARD_BACKWARD, FT_HOST_TABLE_FRESH },
	{ FT_HOST_OPTIMIZER, FT_HOST_OPTIMIZER_TENSOR },
	{ FT_HOST_OPTIMIZER, FT_HOST_SHARD_TENSOR },
};

double host_within_s(const struct ft_stack *s, const struct host_rows *rows,
		     enum ft_host outer)
{
	const struct host_row *most = NULL;
	double found = 0;

	for (size_t i = 0; i < rows->n; i++)
		if (rows->row[i].times[outer] > 0 &&
		    (!most || rows->row[i].n > most->n))
			most = &rows->row[i];
	for (size_t k = 0; most && k < sizeof(within) / sizeof(*within); k++)
		if (within[k].outer == outer)
			found += s->host_s[within[k].inner].value *
				 most->times[within[k].inner] / most->times[outer];
	return found;
}
