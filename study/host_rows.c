/* study/host_rows.c - moments of a recorded host and of a predicted one, held together */
#include "study/host_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "study/whatif.h"

enum { MOMENTS_MOST = 1 << 20, NO_OP = -1 };

/* Something whose launch is found on both sides; what: to tell whether they agree. */
struct moment {
	int64_t op; /* NO_OP: the step's begin */
	int64_t what;
};

struct moments {
	size_t n;
	struct moment *at;
};

/* What the host did up to an operation of the compute stream. */
struct spot {
	double times[FT_HOSTS];
};

struct finding {
	struct arena *mem;
	struct spot *spot;
	size_t n_spots;
	struct host_row *sample;
	size_t n_samples, cap;
};

/* ---- the graph ------------------------------------------------------------------------ */

static size_t compute_ops(const struct ft_graph *g)
{
	const struct ft_class *c = &g->rank_class[0];
	size_t n = 0;

	for (size_t i = 0; i < c->n_calls && n <= MOMENTS_MOST; i++) {
		const struct ft_segment *s = &g->segment[c->call[i].segment];

		for (size_t j = 0; j < s->n_ops; j++)
			n += s->op[j].stream == FT_STREAM_COMPUTE ? c->call[i].repeat :
								    0;
	}
	return n;
}

/* As sim/durations.c lays a stretch out: an equal part of what it costs on each op that is launched apart. */
static void add_stretch(struct finding *f, const struct ft_segment *s,
			const struct ft_stretch *t, struct spot *now)
{
	for (size_t j = t->begin; j < t->end; j++) {
		bool takes = t->graphed || !s->op[j].graphed;

		for (int h = 0; h < FT_HOSTS && takes; h++)
			now->times[h] += t->host[h] / (double)t->among;
		if (!s->op[j].graphed)
			now->times[FT_HOST_LAUNCH] += s->op[j].launches;
		if (s->op[j].stream == FT_STREAM_COMPUTE)
			f->spot[f->n_spots++] = *now;
	}
	for (int h = 0; h < FT_HOSTS && t->begin == t->end; h++)
		now->times[h] += t->host[h];
}

static void add_segment(struct finding *f, const struct ft_segment *s, struct spot *now)
{
	for (size_t k = 0; k <= s->n_behind; k++) {
		struct ft_stretch t = ft_segment_stretch(s, k);

		add_stretch(f, s, &t, now);
	}
}

static void unroll(struct finding *f, const struct ft_graph *g)
{
	const struct ft_class *c = &g->rank_class[0];
	struct spot now = { { 0 } };

	f->spot = ARENA_ARRAY(f->mem, compute_ops(g), struct spot);
	for (size_t i = 0; i < c->n_calls; i++)
		for (uint32_t k = 0; k < c->call[i].repeat; k++)
			add_segment(f, &g->segment[c->call[i].segment], &now);
}

/* When a moment was launched, by a clock that stands while the host waits. */
static bool own_time(const struct host_side *s, const struct moment *m, size_t step,
		     double *at_s)
{
	const struct ft_rec_op *op;

	if (m->op == NO_OP) {
		*at_s = (double)ft_recording_step(s->r, step)->begin * 1e-12;
		return true;
	}
	op = ft_recording_op(s->r, (size_t)m->op);
	if (op->call == FT_REC_NONE)
		return false;
	*at_s = (double)(ft_recording_call(s->r, (size_t)op->call)->start -
			 s->waited[op->call]) *
		1e-12;
	return true;
}

/* ---- moments -------------------------------------------------------------------------------- */

/* The product or attention that begins then; or NO_OP. */
static int64_t op_beginning(const struct host_side *s, ft_ps at)
{
	for (size_t i = 0; i < ft_recording_ops(s->r); i++) {
		const struct ft_rec_op *op = ft_recording_op(s->r, i);

		if (s->t.op_begin[s->rank][i] == at &&
		    (op->rec_class == FT_REC_GEMM || op->rec_class == FT_REC_ATTENTION))
			return (int64_t)i;
	}
	return NO_OP;
}

/* The optimizer's first kernel; or NO_OP. */
static int64_t first_update(const struct host_side *s, struct ft_rec_window w)
{
	for (size_t i = 0; i < ft_recording_ops(s->r); i++) {
		size_t n = ft_recording_op_at(s->r, i);

		if (ft_recording_op(s->r, n)->rec_class == FT_REC_OPTIMIZER &&
		    s->t.op_begin[s->rank][n] >= w.from &&
		    s->t.op_begin[s->rank][n] < w.to)
			return (int64_t)n;
	}
	return NO_OP;
}

/* The moments of a step by layer: layer i has the number 2 i in forward and 2 i + 1 in
 * backward; the update has NO_OP. Layers are those that repeat, or that are told. */
static struct moments by_layer(const struct host_side *s, size_t step, bool told,
			       struct arena *mem)
{
	struct ft_rec_window w = ft_replay_step(s->p, &s->t, s->rank, step);
	struct ft_rec_layers l =
		told ? ft_replay_told_layers(s->p, &s->t, s->rank, w, mem) :
		       ft_replay_layers(s->p, &s->t, s->rank, w, mem);
	struct moments m = { 0, ARENA_ARRAY(mem, l.n + 1, struct moment) };
	int64_t update = first_update(s, w);

	if (!l.layers)
		return m;
	for (size_t i = 0; i < l.n; i++)
		m.at[m.n++] =
			(struct moment){ op_beginning(s, l.layer[i].window.from),
					 2 * l.layer[i].layer + l.layer[i].backward };
	if (update != NO_OP)
		m.at[m.n++] = (struct moment){ update, NO_OP };
	return m;
}

/* All of the stream with most products, after the step's begin. */
static struct moments by_op(const struct host_side *s, size_t step, struct arena *mem)
{
	struct ft_rec_window w = ft_replay_step(s->p, &s->t, s->rank, step);
	size_t ops = ft_recording_ops(s->r), streams = ft_recording_streams(s->r);
	struct moments m = { 0, ARENA_ARRAY(mem, ops + 1, struct moment) };
	size_t *products = ARENA_ARRAY(mem, streams + 1, size_t), most = 0;

	for (size_t i = 0; i < ops; i++) {
		const struct ft_rec_op *op = ft_recording_op(s->r, i);

		products[op->stream] += op->rec_class == FT_REC_GEMM;
		most = products[op->stream] > products[most] ? (size_t)op->stream :
							       most;
	}
	m.at[m.n++] = (struct moment){ NO_OP, NO_OP };
	for (size_t i = 0; i < ops; i++) {
		size_t n = ft_recording_op_at(s->r, i);
		const struct ft_rec_op *op = ft_recording_op(s->r, n);

		if (op->stream == (int16_t)most &&
		    s->t.op_begin[s->rank][n] >= w.from &&
		    s->t.op_begin[s->rank][n] < w.to)
			m.at[m.n++] = (struct moment){ (int64_t)n, op->rec_class };
	}
	return m;
}

static bool same(const struct moments *a, const struct moments *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (a->at[i].what != b->at[i].what)
			return false;
	return a->n > 1;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The operation's place among the compute stream's, by the order in which it ran. */
static size_t *places_of(const struct moments *all, size_t ops, struct arena *mem)
{
	size_t *place = ARENA_ARRAY(mem, ops + 1, size_t);

	for (size_t i = 1; i < all->n; i++)
		place[all->at[i].op] = i - 1;
	return place;
}

static void add_sample(struct finding *f, double time_s, const struct spot *from,
		       const struct spot *to)
{
	struct host_row *x;

	if (f->n_samples == f->cap)
		f->sample = ARENA_GROW(f->mem, f->sample, &f->cap);
	x = &f->sample[f->n_samples++];
	*x = (struct host_row){ .time_s = time_s };
	for (int h = 0; h < FT_HOSTS; h++) /* what is alike is to be equal */
		x->times[h] = round(1e6 * (to->times[h] - from->times[h])) * 1e-6;
}

static void take_sections(struct finding *f, const struct host_side *s, size_t step,
			  const struct moments *m, const struct spot *const *spot)
{
	for (size_t i = 1; i < m->n; i++) {
		double from_s, to_s;

		if (m->at[i].op != NO_OP && own_time(s, &m->at[i - 1], step, &from_s) &&
		    own_time(s, &m->at[i], step, &to_s))
			add_sample(f, to_s - from_s, spot[i - 1], spot[i]);
	}
}

static int by_times(const void *a, const void *b)
{
	const struct host_row *x = a, *y = b;

	for (int h = 0; h < FT_HOSTS; h++)
		if (x->times[h] < y->times[h] || x->times[h] > y->times[h])
			return x->times[h] < y->times[h] ? -1 : 1;
	return (x->time_s > y->time_s) - (x->time_s < y->time_s);
}

static bool alike(const struct host_row *x, const struct host_row *y)
{
	return !memcmp(x->times, y->times, sizeof(x->times));
}

/* Sections in which the host did the same become one. */
static void group(struct finding *f, struct host_rows *rows)
{
	rows->row = ARENA_ARRAY(f->mem, f->n_samples + 1, struct host_row);
	qsort(f->sample, f->n_samples, sizeof(*f->sample), by_times);
	for (size_t i = 0, j; i < f->n_samples; i = j) {
		struct host_row *row = &rows->row[rows->n++];
		size_t n;

		for (j = i + 1;
		     j < f->n_samples && alike(&f->sample[i], &f->sample[j]);)
			j++;
		n = j - i;
		*row = f->sample[i];
		row->time_s = (f->sample[i + (n - 1) / 2].time_s +
			       f->sample[i + n / 2].time_s) /
			      2;
		row->n = n;
	}
}

/* ---- all of it --------------------------------------------------------------------------------- */

static bool not_the_same(const struct host_side *s, const struct moments *recorded,
			 const struct moments *drawn, struct ft_error *err)
{
	const char *file = ft_recording_file(s->r);

	if (!ft_recording_calls(s->r))
		return ft_fail(
			err, &(struct ft_mark){ .file = file },
			"holds no launches, as a host's constants are fitted to: "
			"record it with Nsight Systems instead");
	if (!recorded->n || !drawn->n)
		return ft_fail(
			err, &(struct ft_mark){ .file = file },
			"the layers of the %s step cannot be told apart, so its host cannot be compared with the scenario's",
			recorded->n ? "predicted" : "recorded");
	return ft_fail(
		err, &(struct ft_mark){ .file = file },
		"its step has %zu passes through layers and updates, the "
		"scenario's %zu, or in another order: name the model, the layers "
		"and the micro-batches that were recorded",
		recorded->n, drawn->n);
}

static bool take_step(struct finding *f, const struct host_side *s, size_t step,
		      const struct host_side *drawn, struct host_rows *rows,
		      struct ft_error *err)
{
	struct moments all = by_op(drawn, 0, f->mem), here = by_op(s, step, f->mem);
	size_t *place = places_of(&all, ft_recording_ops(drawn->r), f->mem);
	struct moments want = all;
	const struct spot zero = { { 0 } };
	const struct spot **spot;

	if (!same(&all, &here) || all.n != f->n_spots + 1) {
		rows->by_op = false;
		want = by_layer(drawn, 0, false, f->mem);
		here = by_layer(s, step, false, f->mem);
		if (!same(&want, &here))
			want = by_layer(drawn, 0, true, f->mem);
		if (!same(&want, &here) || all.n != f->n_spots + 1)
			return not_the_same(s, &here, &want, err);
	}
	spot = ARENA_ARRAY(f->mem, want.n, const struct spot *);
	for (size_t i = 0; i < want.n; i++)
		spot[i] =
			want.at[i].op == NO_OP ? &zero : &f->spot[place[want.at[i].op]];
	take_sections(f, s, step, &here, spot);
	return true;
}

bool host_rows_find(const struct ft_host_fit_request *asked,
		    const struct ft_graph *graph, const struct ft_replay *drawn,
		    struct arena *mem, struct host_rows *rows, struct ft_error *err)
{
	struct finding *f = ARENA_NEW(mem, struct finding);
	struct host_side of_drawn = host_side_of(drawn, 0, mem);
	const struct ft_replay *p = asked->replay;

	*rows = (struct host_rows){ .by_op = true };
	f->mem = mem;
	if (compute_ops(graph) > MOMENTS_MOST)
		return ft_fail(
			err, &(struct ft_mark){ .file = asked->scenario->file },
			"has more than %d operations a rank: take fewer layers or "
			"micro-batches, as recorded",
			(int)MOMENTS_MOST);
	unroll(f, graph);
	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		struct host_side s = host_side_of(p, k, mem);

		for (size_t i = 0; i < ft_recording_steps(s.r); i++)
			if (whatif_is_step(asked->step, p, k, i) &&
			    !take_step(f, &s, i, &of_drawn, rows, err))
				return false;
	}
	group(f, rows);
	return true;
}
