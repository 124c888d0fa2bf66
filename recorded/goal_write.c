/*
 * recorded/goal_write.c - recorded ranks as GOAL
 *
 * A statement for each event of the replay's graph within a rank, in an order in which none
 * comes before what it depends on (Kahn's). Times are rounded to nanoseconds before they are
 * subtracted, so that nothing adds up.
 */

#include "base/arena.h"
#include "base/goal.h"
#include "recorded/replay.h"

struct writer {
	const struct ft_replay *p;
	const struct ft_replayed *t;
	size_t number; /* of the rank */
	const struct rank *k;
	uint32_t n_calls, n;	 /* events: those of calls come first */
	uint32_t *first, *on;	 /* what each depends on: on[first[i]..first[i + 1]) */
	uint32_t *out, *waiting; /* the same from the other side; Kahn's counts */
	uint32_t *after;
	int64_t *statement; /* that an event ends with */
	int64_t *tag;	    /* of each meeting */
	int64_t **member;   /* the ranks of each meeting, as given */
	struct goal goal;
	int64_t messages, kept;
	ft_ps origin; /* when the first of all begins */
};

static int64_t ns_of(const struct writer *w, uint32_t event)
{
	uint32_t i = event / 2;
	bool call = event < w->n_calls, end = event & 1;
	size_t at = call ? i : i - w->n_calls / 2;
	const struct ft_replayed *t = w->t;
	ft_ps ps = call ? (end ? t->call_end : t->call_begin)[w->number][at] :
			  (end ? t->op_end : t->op_begin)[w->number][at];

	return (ps - w->origin + 500) / 1000;
}

/* The operation whose end it is, where its collective is written as messages; or NULL. */
static const struct ft_rec_collective *message(const struct writer *w, uint32_t event,
					       int32_t *meeting)
{
	const struct ft_rec_collective *c;
	size_t op;

	if (event < w->n_calls || !(event & 1))
		return NULL;
	op = (event - w->n_calls) / 2;
	*meeting = w->k->meeting[op];
	c = ft_recording_collective(w->k->r, op_of(w->k->r, op));
	if (*meeting == FT_REC_NONE || !c || !(c->bytes > 0))
		return NULL;
	return c->op == FT_SENDRECV || (c->op < FT_SENDRECV &&
					c->size == (int64_t)w->p->meeting[*meeting].n) ?
		       c :
		       NULL;
}

/* As one of the ranks given. */
static int64_t number_of(const struct writer *w, int64_t rank)
{
	size_t k = 0;

	while (k + 1 < w->p->n_ranks && w->p->rank[k].r->rank != rank)
		k++;
	return (int64_t)k;
}

/* Over when all that the kernel sends and receives is. */
static int64_t put_transfer(struct writer *w, const struct ft_rec_collective *c,
			    int64_t tag, int cpu, int64_t begun)
{
	int64_t first = 0, last = 0, all;

	for (const struct ft_rec_collective *x = c; x; x = x->also) {
		int64_t peer = number_of(w, x->peer);

		last = x->sends ? goal_send(&w->goal, x->bytes, peer, tag, cpu) :
				  goal_recv(&w->goal, x->bytes, peer, tag, cpu);
		first = first ? first : last;
		goal_require(&w->goal, last, begun);
		w->messages += x->sends;
	}
	if (first == last)
		return last;
	all = goal_calc(&w->goal, 0, cpu);
	for (; first <= last; first++)
		goal_require(&w->goal, all, first);
	return all;
}

/* By the ranks that recorded it, in the order given: they are all there are. */
static int64_t put_collective(struct writer *w, const struct ft_rec_collective *c,
			      int32_t meeting, int cpu, int64_t begun)
{
	struct goal_call call = { .op = c->op,
				  .bytes = c->bytes,
				  .ring = { .size = c->size,
					    .rank = w->member[meeting] },
				  .tag = w->tag[meeting],
				  .cpu = cpu };

	while (call.ring.rank[call.ring.place] != (int64_t)w->number)
		call.ring.place++;
	w->messages += !call.ring.place;
	return goal_collective(&w->goal, &call, begun);
}

/* ---- dependencies ---------------------------------------------------------------------- */

/* Does an edge lie within the rank? Its ends, counted from the rank's first event. */
static bool within(const struct writer *w, const struct edge *e, uint32_t *from,
		   uint32_t *to)
{
	*from = e->from - w->k->first_call;
	*to = e->to - w->k->first_call;
	return e->from >= w->k->first_call && e->to >= w->k->first_call &&
	       *from < w->n && *to < w->n;
}

static void count_up(uint32_t *first, uint32_t n)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i <= n; i++) {
		uint32_t here = first[i];

		first[i] = sum;
		sum += here;
	}
}

/* Edges by what depends, and by what is depended on; an end depends on its begin. */
static void collect(struct writer *w, struct arena *mem)
{
	uint32_t from, to, *put, *put_after;
	size_t edges = w->p->edge.n + w->n;

	w->first = ARENA_ARRAY(mem, w->n + 1, uint32_t);
	w->out = ARENA_ARRAY(mem, w->n + 1, uint32_t);
	w->on = ARENA_ARRAY(mem, edges, uint32_t);
	w->after = ARENA_ARRAY(mem, edges, uint32_t);
	for (int fill = 0; fill < 2; fill++) {
		for (size_t i = 0; i < edges; i++) {
			if (i >= w->p->edge.n) {
				from = (uint32_t)(i - w->p->edge.n);
				to = from + 1;
				if (from & 1)
					continue;
			} else if (!within(w, table_at(&w->p->edge, i), &from, &to)) {
				continue;
			}
			if (fill) {
				w->on[put[to]++] = from;
				w->after[put_after[from]++] = to;
			} else {
				w->first[to]++;
				w->out[from]++;
			}
		}
		if (fill)
			break;
		count_up(w->first, w->n);
		count_up(w->out, w->n);
		put = ARENA_ARRAY(mem, w->n + 1, uint32_t);
		put_after = ARENA_ARRAY(mem, w->n + 1, uint32_t);
		for (uint32_t i = 0; i < w->n; i++) {
			put[i] = w->first[i];
			put_after[i] = w->out[i];
		}
	}
}

/* ---- statements -------------------------------------------------------------------------- */

/* Threads of the host first, then streams. */
static int cpu_of(const struct writer *w, uint32_t event)
{
	if (event < w->n_calls)
		return call_of(w->k->r, event / 2)->thread;
	return (int)w->k->r->thread.n +
	       op_of(w->k->r, (event - w->n_calls) / 2)->stream;
}

static void put_event(struct writer *w, uint32_t event)
{
	int32_t meeting = FT_REC_NONE;
	const struct ft_rec_collective *c = message(w, event, &meeting);
	int cpu = cpu_of(w, event);
	int64_t ns = ns_of(w, event), before = 0, what;

	if (c && c->op == FT_SENDRECV) {
		w->statement[event] = put_transfer(w, c, w->tag[meeting], cpu,
						   w->statement[event - 1]);
		return;
	}
	if (c) {
		w->statement[event] =
			put_collective(w, c, meeting, cpu, w->statement[event - 1]);
		return;
	}
	w->kept += event >= w->n_calls && (event & 1) &&
		   op_of(w->k->r, (event - w->n_calls) / 2)->rec_class ==
			   FT_REC_COLLECTIVE;
	for (uint32_t i = w->first[event]; i < w->first[event + 1]; i++)
		if (ns_of(w, w->on[i]) > before)
			before = ns_of(w, w->on[i]);
	what = goal_calc(&w->goal, ns > before ? 1000 * (ns - before) : 0, cpu);
	for (uint32_t i = w->first[event]; i < w->first[event + 1]; i++)
		goal_require(&w->goal, what, w->statement[w->on[i]]);
	w->statement[event] = what;
}

static void put_rank(struct writer *w)
{
	struct arena mem = { 0 };
	uint32_t *ready, n = 0;

	w->n_calls = 2 * (uint32_t)w->k->r->call.n;
	w->n = w->n_calls + 2 * (uint32_t)w->k->r->op.n;
	collect(w, &mem);
	w->statement = ARENA_ARRAY(&mem, w->n, int64_t);
	w->waiting = ARENA_ARRAY(&mem, w->n, uint32_t);
	ready = ARENA_ARRAY(&mem, w->n, uint32_t);
	for (uint32_t i = 0; i < w->n; i++) {
		w->waiting[i] = w->first[i + 1] - w->first[i];
		if (!w->waiting[i])
			ready[n++] = i;
	}
	goal_rank(&w->goal, (int64_t)w->number);
	for (uint32_t i = 0; i < n; i++) {
		put_event(w, ready[i]);
		for (uint32_t j = w->out[ready[i]]; j < w->out[ready[i] + 1]; j++)
			if (!--w->waiting[w->after[j]])
				ready[n++] = w->after[j];
	}
	goal_rank_end(&w->goal);
	arena_release(&mem);
}

static void find_origin(struct writer *w)
{
	w->origin = INT64_MAX;
	for (size_t k = 0; k < w->p->n_ranks; k++) {
		const struct ft_recording *r = w->p->rank[k].r;

		for (size_t i = 0; i < r->call.n; i++)
			if (w->t->call_begin[k][i] < w->origin)
				w->origin = w->t->call_begin[k][i];
		for (size_t i = 0; i < r->op.n; i++)
			if (w->t->op_begin[k][i] < w->origin)
				w->origin = w->t->op_begin[k][i];
	}
}

/* Each meeting's messages have tags of their own. */
static void number_tags(struct writer *w, struct arena *mem)
{
	int64_t next = 0;

	w->tag = ARENA_ARRAY(mem, w->p->n_meetings + 1, int64_t);
	for (size_t m = 0; m < w->p->n_meetings; m++) {
		w->tag[m] = next;
		next += 2 *
			(int64_t)w->p->meeting[m].n; /* no collective has more steps */
	}
}

static void list_members(struct writer *w, struct arena *mem)
{
	size_t *n = ARENA_ARRAY(mem, w->p->n_meetings + 1, size_t);

	w->member = ARENA_ARRAY(mem, w->p->n_meetings + 1, int64_t *);
	for (size_t m = 0; m < w->p->n_meetings; m++)
		w->member[m] = ARENA_ARRAY(mem, w->p->meeting[m].n, int64_t);
	for (size_t k = 0; k < w->p->n_ranks; k++)
		for (size_t i = 0; i < w->p->rank[k].r->op.n; i++) {
			int32_t m = w->p->rank[k].meeting[i];

			if (m != FT_REC_NONE && n[m] < w->p->meeting[m].n)
				w->member[m][n[m]++] = (int64_t)k;
		}
}

void ft_replay_write_goal(const struct ft_replay *p, FILE *out, int64_t *messages,
			  int64_t *kept)
{
	struct arena mem = { 0 };
	struct ft_replayed t = ft_replay_as_recorded(p, &mem);
	struct writer w = { .p = p, .t = &t, .goal = { .out = out } };

	fputs("// A recorded step, written by foretoken. Times are ns; cpus are threads of "
	      "the host,\n// then streams. Collectives that all ranks of their group recorded "
	      "are rings, transfers that both ends recorded\n// messages; the others keep "
	      "the time that they took.\n",
	      out);
	find_origin(&w);
	number_tags(&w, &mem);
	list_members(&w, &mem);
	goal_begin(&w.goal, (int64_t)p->n_ranks);
	for (size_t k = 0; k < p->n_ranks; k++) {
		w.number = k;
		w.k = &p->rank[k];
		put_rank(&w);
	}
	*messages = w.messages;
	*kept = w.kept;
	arena_release(&mem);
}
