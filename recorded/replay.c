/*
 * recorded/replay.c - the recorded step again, with other times
 *
 * Every event comes after all it waits for (Kahn's order), at the latest of their
 * times plus lags. Linear in events; no clock, no ties: the result is a maximum.
 */
#include "recorded/replay.h"

#include "base/limits.h"

/* ---- building --------------------------------------------------------------------- */

/* Of a whole recording all are in the step; else what was launched in its marks. What a recorded call did not
 * launch, beside others that calls did, was launched before the recording began. */
static void find_steps(struct rank *k)
{
	const struct ft_recording *r = k->r;

	for (size_t i = 0; i < r->op.n; i++) {
		bool before = op_of(r, i)->call == FT_REC_NONE && r->call.n;
		size_t s = !r->step[0].marked ? 0 :
			   before	      ? r->n_steps :
						recording_step_of(r, i);

		if (s < r->n_steps)
			k->step[i] = (int32_t)s;
	}
}

static bool number_events(struct ft_replay *p, struct ft_error *err)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->n_ranks; i++) {
		struct rank *k = &p->rank[i];

		k->first_call = (uint32_t)n;
		k->first_op = (uint32_t)(n + 2 * k->r->call.n);
		n += 2 * (k->r->call.n + k->r->op.n);
		if (n > UINT32_MAX / 2)
			return ft_fail(err, &(struct ft_mark){ .file = k->r->file },
				       "is more than can be replayed with the files "
				       "before it: give fewer ranks");
	}
	p->first_meeting = (uint32_t)n;
	p->n_events = (size_t)n;
	return true;
}

/* Edges by what they come from, so that an event finds those that wait for it. */
static void index_edges(struct ft_replay *p)
{
	p->out = ARENA_ARRAY(&p->mem, p->n_events + 2, uint32_t);
	p->out_edge = ARENA_ARRAY(&p->mem, p->edge.n, uint32_t);
	for (size_t i = 0; i < p->edge.n; i++)
		p->out[((const struct edge *)table_at(&p->edge, i))->from + 2]++;
	for (size_t i = 2; i < p->n_events + 2; i++)
		p->out[i] += p->out[i - 1];
	for (size_t i = 0; i < p->edge.n; i++) {
		const struct edge *e = table_at(&p->edge, i);

		p->out_edge[p->out[e->from + 1]++] = (uint32_t)i;
	}
}

static struct ft_replay *begin(const struct ft_recording *const *recording, size_t n)
{
	struct arena mem = { 0 };
	struct ft_replay *p = ARENA_NEW(&mem, struct ft_replay);

	p->mem = mem;
	p->n_ranks = n;
	p->rank = ARENA_ARRAY(&p->mem, n, struct rank);
	p->edge.row_bytes = sizeof(struct edge);
	/* by rank, whatever the order of the files */
	for (size_t i = 0, at; i < n; p->rank[at].r = recording[i++])
		for (at = i; at && ft_recording_rank(p->rank[at - 1].r) >
					   ft_recording_rank(recording[i]);
		     at--)
			p->rank[at].r = p->rank[at - 1].r;
	for (size_t i = 0; i < n; i++) {
		struct rank *k = &p->rank[i];

		k->cause = ARENA_ARRAY(&p->mem, k->r->op.n, uint8_t);
		k->meeting = rec_nothing(&p->mem, k->r->op.n);
		k->step = rec_nothing(&p->mem, k->r->op.n);
		find_steps(k);
	}
	return p;
}

static bool schedule(const struct ft_replay *p, const struct ft_replay_times *times,
		     ft_ps *at, struct arena *scratch);

/* Refuses files in which an operation waits for itself: a replay would never end. */
static bool has_no_circle(struct ft_replay *p, struct ft_error *err)
{
	struct arena scratch = { 0 };
	struct ft_replay_times times = ft_replay_recorded(p, &scratch);
	ft_ps *at = ARENA_ARRAY(&scratch, p->n_events, ft_ps);
	bool ok = schedule(p, &times, at, &scratch);

	arena_release(&scratch);
	return ok || ft_fail(err, &(struct ft_mark){ .file = p->rank[0].r->file },
			     "what its operations wait for goes round in a circle: "
			     "the times of its launches and operations contradict "
			     "each other");
}

struct ft_replay *ft_replay_build(const struct ft_recording *const *recording, size_t n,
				  struct ft_error *err)
{
	struct ft_replay *p = begin(recording, n);
	bool ok = ranks_meet(p, err) && number_events(p, err);

	if (ok) {
		p->n_events += p->n_meetings;
		for (size_t i = 0; i < n; i++) {
			hosts_depend(p, &p->rank[i]);
			ops_depend(p, &p->rank[i]);
		}
		index_edges(p);
		ok = has_no_circle(p, err);
	}
	if (ok)
		return p;
	ft_replay_free(p);
	return NULL;
}

ft_ps *replay_as_recorded(struct ft_replay *p)
{
	struct ft_replay_times times = ft_replay_recorded(p, &p->mem);
	ft_ps *at = ARENA_ARRAY(&p->mem, p->n_events, ft_ps);

	index_edges(p);
	/* no circle: what is new waits for what was there */
	(void)schedule(p, &times, at, &p->mem);
	return at;
}

bool ft_replay_lay_out(struct ft_replay *p, struct ft_error *err)
{
	stages_lay_out(p);
	if (!p->n_passes)
		return true;
	index_edges(p);
	return has_no_circle(p, err);
}

const char *ft_replay_stages(const struct ft_replay *p)
{
	return p->stages;
}

void ft_replay_free(struct ft_replay *p)
{
	struct arena mem;

	if (!p)
		return;
	mem = p->mem; /* p itself lies in it */
	arena_release(&mem);
}

size_t ft_replay_ranks(const struct ft_replay *p)
{
	return p->n_ranks;
}

const struct ft_recording *ft_replay_recording(const struct ft_replay *p, size_t rank)
{
	return p->rank[rank].r;
}

const struct ft_replay_counts *ft_replay_counts(const struct ft_replay *p)
{
	return &p->counts;
}

size_t ft_replay_meets(const struct ft_replay *p, size_t rank, size_t op)
{
	int32_t m = p->rank[rank].meeting[op];

	return m == FT_REC_NONE ? 0 : p->meeting[m].n;
}

/* ---- times ---------------------------------------------------------------------------- */

/* When the last rank of each meeting began, as recorded. */
static void last_begins(const struct ft_replay *p, ft_ps *last)
{
	for (size_t m = 0; m < p->n_meetings; m++)
		last[m] = INT64_MIN;
	for (size_t k = 0; k < p->n_ranks; k++) {
		const struct rank *rank = &p->rank[k];

		for (size_t i = 0; i < rank->r->op.n; i++) {
			int32_t m = rank->meeting[i];
			ft_ps begin = op_of(rank->r, i)->start + rank->shift;

			if (m != FT_REC_NONE && begin > last[m])
				last[m] = begin;
		}
	}
}

struct ft_replay_times ft_replay_recorded(const struct ft_replay *p, struct arena *mem)
{
	struct ft_replay_times t = { ARENA_ARRAY(mem, p->n_ranks, ft_ps *), 1 };
	struct arena scratch = { 0 };
	ft_ps *last = ARENA_ARRAY(&scratch, p->n_meetings, ft_ps);

	last_begins(p, last);
	for (size_t k = 0; k < p->n_ranks; k++) {
		const struct rank *rank = &p->rank[k];

		t.op[k] = ARENA_ARRAY(mem, rank->r->op.n, ft_ps);
		for (size_t i = 0; i < rank->r->op.n; i++) {
			const struct ft_rec_op *o = op_of(rank->r, i);
			int32_t m = rank->meeting[i];

			t.op[k][i] = o->duration;
			if (m == FT_REC_NONE)
				continue;
			t.op[k][i] += o->start + rank->shift - last[m];
			if (t.op[k][i] < 0) /* ended before the last began: clocks */
				t.op[k][i] = 0;
		}
	}
	arena_release(&scratch);
	return t;
}

static struct ft_replayed room(const struct ft_replay *p, struct arena *mem)
{
	struct ft_replayed t = {
		ARENA_ARRAY(mem, p->n_ranks, ft_ps *),
		ARENA_ARRAY(mem, p->n_ranks, ft_ps *),
		ARENA_ARRAY(mem, p->n_ranks, ft_ps *),
		ARENA_ARRAY(mem, p->n_ranks, ft_ps *),
	};

	for (size_t k = 0; k < p->n_ranks; k++) {
		size_t ops = p->rank[k].r->op.n, calls = p->rank[k].r->call.n;

		t.op_begin[k] = ARENA_ARRAY(mem, ops, ft_ps);
		t.op_end[k] = ARENA_ARRAY(mem, ops, ft_ps);
		t.call_begin[k] = ARENA_ARRAY(mem, calls, ft_ps);
		t.call_end[k] = ARENA_ARRAY(mem, calls, ft_ps);
	}
	return t;
}

struct ft_replayed ft_replay_as_recorded(const struct ft_replay *p, struct arena *mem)
{
	struct ft_replayed t = room(p, mem);

	for (size_t k = 0; k < p->n_ranks; k++) {
		const struct ft_recording *r = p->rank[k].r;
		ft_ps shift = p->rank[k].shift;

		for (size_t i = 0; i < r->op.n; i++) {
			t.op_begin[k][i] = op_of(r, i)->start + shift;
			t.op_end[k][i] = t.op_begin[k][i] + op_of(r, i)->duration;
		}
		for (size_t i = 0; i < r->call.n; i++) {
			t.call_begin[k][i] = call_of(r, i)->start + shift;
			t.call_end[k][i] = t.call_begin[k][i] + call_of(r, i)->duration;
		}
	}
	return t;
}

/* ---- running ---------------------------------------------------------------------------- */

static ft_ps scaled(ft_ps t, double factor)
{
	return factor < 1 || factor > 1 ? (ft_ps)((double)t * factor) : t;
}

/* The rank and operation that an event belongs to. */
static size_t rank_of(const struct ft_replay *p, uint32_t event, size_t *op)
{
	size_t low = 0, high = p->n_ranks;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (p->rank[middle].first_call <= event)
			low = middle;
		else
			high = middle;
	}
	*op = (event - p->rank[low].first_op) / 2;
	return low;
}

/* What a pass takes under these times: it changes as its operations do. */
static ft_ps pass_time(const struct ft_replay *p, const struct ft_replay_times *times,
		       size_t number)
{
	const struct pass *pass = &p->pass[number];
	const struct ft_recording *r = p->rank[pass->rank].r;
	ft_ps t = pass->duration;

	for (size_t i = 0; i < pass->n; i++)
		t += times->op[pass->rank][pass->op[i]] -
		     op_of(r, pass->op[i])->duration;
	return t > 0 ? t : 0;
}

static ft_ps lag_of(const struct ft_replay *p, const struct ft_replay_times *times,
		    const struct edge *e)
{
	size_t rank, op;
	ft_ps was;

	switch (e->kind) {
	case LAG_HOST:
		return scaled(e->lag, times->host_factor);
	case LAG_PASS:
		return pass_time(p, times, (size_t)e->lag);
	case LAG_OP:
		rank = rank_of(p, e->to, &op);
		return e->lag + times->op[rank][op];
	case LAG_SHARE:
		rank = rank_of(p, e->from, &op);
		was = op_of(p->rank[rank].r, op)->duration;
		if (p->rank[rank].meeting[op] != FT_REC_NONE ||
		    times->op[rank][op] == was)
			return e->lag;
		return scaled(e->lag, (double)times->op[rank][op] / (double)was);
	default:
		return e->lag;
	}
}

/* Where the recording has nothing before an event, it is when it was. */
static void recorded_begins(const struct ft_replay *p, const uint32_t *wants, ft_ps *at)
{
	for (size_t k = 0; k < p->n_ranks; k++) {
		const struct rank *rank = &p->rank[k];

		for (size_t i = 0; i < rank->r->call.n; i++)
			if (!wants[call_event(rank, i, false)])
				at[call_event(rank, i, false)] =
					call_of(rank->r, i)->start + rank->shift;
		for (size_t i = 0; i < rank->r->op.n; i++)
			if (!wants[op_event(rank, i, false)])
				at[op_event(rank, i, false)] =
					op_of(rank->r, i)->start + rank->shift;
	}
}

static bool schedule(const struct ft_replay *p, const struct ft_replay_times *times,
		     ft_ps *at, struct arena *scratch)
{
	uint32_t *wants = ARENA_ARRAY(scratch, p->n_events, uint32_t);
	uint32_t *ready = ARENA_ARRAY(scratch, p->n_events, uint32_t);
	size_t n = 0, done = 0;

	for (size_t i = 0; i < p->edge.n; i++)
		wants[((const struct edge *)table_at(&p->edge, i))->to]++;
	for (size_t i = 0; i < p->n_events; i++)
		at[i] = INT64_MIN;
	recorded_begins(p, wants, at);
	for (size_t i = 0; i < p->n_events; i++)
		if (!wants[i])
			ready[n++] = (uint32_t)i;
	for (; done < n; done++) {
		uint32_t from = ready[done];

		for (uint32_t j = p->out[from]; j < p->out[from + 1]; j++) {
			const struct edge *e = table_at(&p->edge, p->out_edge[j]);
			ft_ps t = at[from] + lag_of(p, times, e);

			if (t > at[e->to])
				at[e->to] = t;
			if (!--wants[e->to])
				ready[n++] = e->to;
		}
	}
	return done == p->n_events;
}

struct ft_replayed ft_replay_run(const struct ft_replay *p,
				 const struct ft_replay_times *times, struct arena *mem)
{
	struct ft_replayed t = room(p, mem);
	struct arena scratch = { 0 };
	ft_ps *at = ARENA_ARRAY(&scratch, p->n_events, ft_ps);
	bool ok = schedule(p, times, at, &scratch);

	(void)ok; /* ft_replay_build has seen to it */
	for (size_t k = 0; k < p->n_ranks; k++) {
		const struct rank *rank = &p->rank[k];

		for (size_t i = 0; i < rank->r->op.n; i++) {
			t.op_begin[k][i] = at[op_event(rank, i, false)];
			t.op_end[k][i] = at[op_event(rank, i, true)];
		}
		for (size_t i = 0; i < rank->r->call.n; i++) {
			t.call_begin[k][i] = at[call_event(rank, i, false)];
			t.call_end[k][i] = at[call_event(rank, i, true)];
		}
	}
	arena_release(&scratch);
	return t;
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* A call or, where none was recorded, an operation: when it was, and is. */
struct moment {
	ft_ps start, end, begins, ends;
};

static struct moment moment_of(const struct rank *k, const struct ft_replayed *t,
			       size_t rank, size_t place)
{
	const struct ft_recording *r = k->r;
	size_t i = r->call.n ? r->call_order[place] : r->op_order[place];
	ft_ps start = r->call.n ? call_of(r, i)->start : op_of(r, i)->start;
	ft_ps lasts = r->call.n ? call_of(r, i)->duration : op_of(r, i)->duration;

	return (struct moment){ start, start + lasts,
				(r->call.n ? t->call_begin : t->op_begin)[rank][i],
				(r->call.n ? t->call_end : t->op_end)[rank][i] };
}

/* A mark, by the last of these before it (or the first, if it is the first). */
ft_ps replay_mark(const struct ft_replay *p, const struct ft_replayed *t, size_t rank,
		  ft_ps at)
{
	const struct rank *k = &p->rank[rank];
	size_t low = 0, high = k->r->call.n ? k->r->call.n : k->r->op.n;
	struct moment m;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (moment_of(k, t, rank, middle).start <= at)
			low = middle + 1;
		else
			high = middle;
	}
	m = moment_of(k, t, rank, low ? low - 1 : 0);
	return m.end <= at ? m.ends + at - m.end : m.begins + at - m.start;
}

static ft_ps last_end(const struct ft_replay *p, const struct ft_replayed *t,
		      size_t rank, size_t step)
{
	const struct rank *k = &p->rank[rank];
	const struct ft_rec_step *s = &k->r->step[step];
	ft_ps last = s->marked ? replay_mark(p, t, rank, s->end) : INT64_MIN;

	for (size_t i = 0; i < k->r->op.n; i++)
		if (k->step[i] == (int32_t)step && t->op_end[rank][i] > last)
			last = t->op_end[rank][i];
	return last;
}

struct ft_rec_window ft_replay_step(const struct ft_replay *p,
				    const struct ft_replayed *t, size_t rank,
				    size_t step)
{
	const struct rank *k = &p->rank[rank];
	struct ft_rec_window w = { INT64_MAX, last_end(p, t, rank, step) };

	if (k->r->step[step].marked) {
		w.from = replay_mark(p, t, rank, k->r->step[step].begin);
		if (step) {
			ft_ps before = last_end(p, t, rank, step - 1);

			if (before > w.from)
				w.from = before;
		}
	} else {
		for (size_t i = 0; i < k->r->op.n; i++)
			if (t->op_begin[rank][i] < w.from)
				w.from = t->op_begin[rank][i];
		for (size_t i = 0; i < k->r->call.n; i++)
			if (call_of(k->r, i)->kind == FT_REC_LAUNCH &&
			    t->call_begin[rank][i] < w.from)
				w.from = t->call_begin[rank][i];
	}
	if (w.to < w.from)
		w.to = w.from;
	return w;
}
