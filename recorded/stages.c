/*
 * recorded/stages.c - stages of a pipeline that no file is of, laid out from those recorded
 *
 * A recorded rank's passes are the kernels of its busiest stream between its sends (and
 * receives, of the first stage), in the order of launch. A stage that is missing runs the passes of the
 * nearest recorded stage but the last, whose forward and backward passes nothing parts,
 * in the order of the schedule (1F1B, or all forward passes first):
 *
 *   begin(pass) = latest of the end of the pass before it on the stage and of what it
 *                 receives, a transfer later;  end = begin + the recorded pass's time
 *
 * What a recorded rank receives from it comes as recorded where nothing changes: by what
 * the layout is early or late then, it stays so. Limits: one chunk a stage; a stage's update
 * and the host are those of the recorded ranks alone; transfers to it keep their time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "recorded/replay.h"

enum way { SEND_FORWARD, SEND_BACKWARD, RECEIVE_FORWARD, RECEIVE_BACKWARD, WAYS };
enum { STAGES_MOST = 1024, NO_RANK = -1, FORWARD = 0, BACKWARD = 1 };

/* Operations, in the order of launch. */
struct ops {
	uint32_t *op;
	size_t n, cap;
};

struct stage {
	int64_t rank;	       /* of the files given, or NO_RANK */
	int64_t like;	       /* the stage whose passes it runs, or NO_RANK */
	struct ops way[WAYS];  /* sends and receives */
	size_t *pass[2], n[2]; /* forward, backward: numbers in ft_replay.pass */
	size_t cap[2], ahead;  /* forward passes before the first backward */
	uint32_t *event[2];    /* of a missing one: each pass's begin */
};

struct layout {
	struct ft_replay *p;
	struct arena scratch;
	int64_t number[STAGES_MOST]; /* ranks of the pipeline */
	struct stage *stage;
	size_t n, step, micro_batches;
	ft_ps transfer;
	bool forwards_first;
};

/* ---- the pipeline's ranks ----------------------------------------------------------- */

static size_t read_ranks(const char *text, int64_t *number)
{
	size_t n = 0;

	for (text += strcspn(text, "0123456789"); *text && n < STAGES_MOST;) {
		char *end;

		number[n++] = strtoll(text, &end, 10);
		text = end + strcspn(end, "0123456789");
	}
	return n;
}

static int64_t place_of(const struct layout *l, int64_t number)
{
	for (size_t s = 0; s < l->n; s++)
		if (l->number[s] == number)
			return (int64_t)s;
	return NO_RANK;
}

static const struct ft_rec_collective *transfer_of(const struct ft_recording *r,
						   size_t op)
{
	const struct ft_rec_collective *c = ft_recording_collective(r, op_of(r, op));

	return c && c->op == FT_SENDRECV && c->peer != FT_REC_NONE ? c : NULL;
}

/* The first group whose sends and receives lack the other end. */
static const char *find_group(const struct ft_replay *p)
{
	for (size_t k = 0; k < p->n_ranks; k++)
		for (size_t i = 0; i < p->rank[k].r->op.n; i++) {
			const struct ft_rec_collective *c =
				transfer_of(p->rank[k].r, i);

			if (c && p->rank[k].meeting[i] == FT_REC_NONE)
				return c->ranks;
		}
	return NULL;
}

/* ---- passes of a recorded rank -------------------------------------------------------- */

static void append(struct layout *l, struct ops *to, uint32_t op)
{
	if (to->n == to->cap)
		to->op = ARENA_GROW(&l->scratch, to->op, &to->cap);
	to->op[to->n++] = op;
}

static void add_pass(struct layout *l, struct stage *s, int back, const uint32_t *op,
		     size_t n)
{
	struct ft_replay *p = l->p;
	const struct ft_recording *r = p->rank[s->rank].r;
	const struct ft_rec_op *first = op_of(r, op[0]), *last = op_of(r, op[n - 1]);
	struct pass *pass;

	if (p->n_passes == p->pass_cap)
		p->pass = ARENA_GROW(&p->mem, p->pass, &p->pass_cap);
	pass = &p->pass[p->n_passes];
	*pass = (struct pass){ (size_t)s->rank, n, ARENA_ARRAY(&p->mem, n, uint32_t),
			       last->start + last->duration - first->start };
	memcpy(pass->op, op, n * sizeof(*op));
	if (s->n[back] == s->cap[back])
		s->pass[back] = ARENA_GROW(&l->scratch, s->pass[back], &s->cap[back]);
	s->pass[back][s->n[back]++] = p->n_passes++;
	if (!back && !s->n[BACKWARD])
		s->ahead++;
}

static size_t ops_of_pass(const struct layout *l, const struct stage *s, int back)
{
	return s->n[back] ? l->p->pass[s->pass[back][0]].n : 0;
}

/* Of a stage behind the first: kernels up to a send; receives may be posted at any time. */
static void close_pass(struct layout *l, struct stage *s, struct ops *region,
		       enum way by)
{
	if (by != SEND_FORWARD && by != SEND_BACKWARD)
		return;
	if (region->n)
		add_pass(l, s, by == SEND_BACKWARD, region->op, region->n);
	region->n = 0;
}

/* Of the first stage, up to a send or receive (WAYS: up to the end). Nothing is sent between
 * a backward pass and the forward pass, or the update, behind it: it is told by the number
 * of kernels. */
static void close_region(struct layout *l, struct stage *s, struct ops *region,
			 enum way by)
{
	size_t forward = ops_of_pass(l, s, FORWARD), back = ops_of_pass(l, s, BACKWARD);
	size_t n = region->n;

	region->n = 0;
	if (!n || (by == WAYS && !back))
		return;
	if (by != SEND_FORWARD) {
		add_pass(l, s, BACKWARD, region->op, by == WAYS && back < n ? back : n);
	} else if (!s->way[RECEIVE_BACKWARD].n || n <= forward) {
		add_pass(l, s, FORWARD, region->op, n);
	} else {
		add_pass(l, s, BACKWARD, region->op, n - forward);
		add_pass(l, s, FORWARD, region->op + n - forward, forward);
	}
}

struct launched {
	ft_ps at;
	uint32_t op;
};

static int by_launch(const void *a, const void *b)
{
	const struct launched *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->op < y->op ? -1 : x->op > y->op;
}

static struct launched *in_launch_order(struct layout *l, const struct rank *k,
					size_t *n)
{
	struct launched *to = ARENA_ARRAY(&l->scratch, k->r->op.n, struct launched);

	*n = 0;
	for (size_t i = 0; i < k->r->op.n; i++) {
		const struct ft_rec_op *op = op_of(k->r, i);

		if (k->step[i] == (int32_t)l->step && op->call != FT_REC_NONE)
			to[(*n)++] = (struct launched){
				call_of(k->r, (size_t)op->call)->start, (uint32_t)i
			};
	}
	qsort(to, *n, sizeof(*to), by_launch);
	return to;
}

/* false: it sends or receives otherwise than to and from its neighbours. */
static bool way_of(const struct layout *l, int64_t here,
		   const struct ft_rec_collective *c, enum way *way)
{
	int64_t peer = place_of(l, c->peer);

	if (peer == NO_RANK || (peer != here - 1 && peer != here + 1))
		return false;
	*way = peer > here ? (c->sends ? SEND_FORWARD : RECEIVE_BACKWARD) :
			     (c->sends ? SEND_BACKWARD : RECEIVE_FORWARD);
	return true;
}

static bool read_stage(struct layout *l, int64_t here)
{
	struct stage *s = &l->stage[here];
	const struct rank *k = &l->p->rank[s->rank];
	struct ops region = { NULL, 0, 0 };
	int16_t stream = busiest_stream(k->r, &l->scratch);
	size_t n;
	const struct launched *at = in_launch_order(l, k, &n);

	for (size_t i = 0; i < n; i++) {
		const struct ft_rec_op *op = op_of(k->r, at[i].op);
		const struct ft_rec_collective *c = transfer_of(k->r, at[i].op);
		enum way way;

		if (!c) {
			if (op->stream == stream && op->rec_class != FT_REC_COLLECTIVE)
				append(l, &region, at[i].op);
			continue;
		}
		if (!way_of(l, here, c, &way))
			return false;
		if (here)
			close_pass(l, s, &region, way);
		else
			close_region(l, s, &region, way);
		append(l, &s->way[way], at[i].op);
		if (c->sends && op->duration < l->transfer)
			l->transfer = op->duration;
	}
	if (!here)
		close_region(l, s, &region, WAYS);
	return true;
}

/* ---- the schedule ---------------------------------------------------------------------- */

/* Forward passes before the first backward under 1F1B. */
static size_t warm(const struct layout *l, int64_t here)
{
	size_t n = l->n - (size_t)here;

	return n < l->micro_batches ? n : l->micro_batches;
}

/* Can other stages run its passes: all of them, in a known order? */
static bool can_stand_in(const struct layout *l, int64_t here)
{
	const struct stage *s = &l->stage[here];

	return s->rank != NO_RANK && here + 1 < (int64_t)l->n &&
	       s->n[FORWARD] == l->micro_batches &&
	       s->n[BACKWARD] == l->micro_batches &&
	       (s->ahead == warm(l, here) || s->ahead == l->micro_batches);
}

/* The nearest; of two as near, one in the middle. */
static int64_t nearest(const struct layout *l, int64_t here)
{
	int64_t best = NO_RANK;

	for (int64_t t = 0; t < (int64_t)l->n; t++)
		if (can_stand_in(l, t) &&
		    (best == NO_RANK || llabs(t - here) < llabs(best - here) ||
		     (llabs(t - here) == llabs(best - here) && best == 0)))
			best = t;
	return best;
}

static bool choose(struct layout *l)
{
	bool any = false;

	for (int64_t s = 0; s < (int64_t)l->n; s++) {
		const struct stage *x = &l->stage[s];

		for (int w = 0; w < WAYS; w++)
			if (x->way[w].n > l->micro_batches)
				l->micro_batches = x->way[w].n;
	}
	for (int64_t s = 0; s < (int64_t)l->n; s++)
		if (l->stage[s].rank == NO_RANK) {
			l->stage[s].like = nearest(l, s);
			any = true;
			if (l->stage[s].like == NO_RANK)
				return false;
			l->forwards_first |= l->stage[l->stage[s].like].ahead !=
					     warm(l, l->stage[s].like);
		}
	return any && l->micro_batches > 0;
}

/* ---- events and what they wait for -------------------------------------------------------- */

static void run_pass(struct layout *l, struct stage *s, int back, size_t i,
		     uint32_t *last)
{
	const struct stage *like = &l->stage[s->like];
	uint32_t begin = (uint32_t)l->p->n_events, end = begin + 1;

	l->p->n_events += 2;
	s->event[back][i] = begin;
	edge_add(l->p, begin, end, (ft_ps)like->pass[back][i], LAG_PASS);
	edge_add(l->p, *last, begin, 0, LAG_FIXED);
	*last = end;
}

/* Its passes, one after another; before them the first call of a recorded rank. */
static void run_stage(struct layout *l, int64_t here)
{
	struct stage *s = &l->stage[here];
	size_t m = l->micro_batches, ahead = l->forwards_first ? m : warm(l, here),
	       f = 0;
	uint32_t last =
		call_event(&l->p->rank[l->stage[s->like].rank],
			   l->p->rank[l->stage[s->like].rank].r->call_order[0], false);

	for (int back = 0; back < 2; back++)
		s->event[back] = ARENA_ARRAY(&l->scratch, m, uint32_t);
	for (size_t b = 0; b < m; b++) {
		for (; f < m && f < b + ahead; f++)
			run_pass(l, s, FORWARD, f, &last);
		run_pass(l, s, BACKWARD, b, &last);
	}
}

/* When a stage sends the i-th: a missing one when its pass ends. */
static bool sent(const struct layout *l, int64_t from, int back, size_t i,
		 uint32_t *event)
{
	const struct stage *s = &l->stage[from];
	const struct ops *sends = &s->way[back ? SEND_BACKWARD : SEND_FORWARD];

	if (s->rank == NO_RANK)
		*event = s->event[back][i] + 1;
	else if (i < sends->n)
		*event = op_event(&l->p->rank[s->rank], sends->op[i], false);
	return s->rank == NO_RANK || i < sends->n;
}

static void receive(struct layout *l, int64_t here)
{
	const struct stage *s = &l->stage[here];

	for (int back = 0; back < 2; back++) {
		int64_t from = back ? here + 1 : here - 1;
		uint32_t event;

		for (size_t i = 0;
		     from >= 0 && from < (int64_t)l->n && i < l->micro_batches; i++)
			if (sent(l, from, back, i, &event))
				edge_add(l->p, event, s->event[back][i], l->transfer,
					 LAG_FIXED);
	}
}

/* ---- what recorded ranks receive ------------------------------------------------------------ */

/* What is left of a receive's own time: no more than a transfer. */
static void shorten(struct layout *l, const struct rank *k, uint32_t op)
{
	uint32_t begin = op_event(k, op, false), end = op_event(k, op, true);

	for (uint32_t i = l->p->out[begin]; i < l->p->out[begin + 1]; i++) {
		struct edge *e = table_at(&l->p->edge, l->p->out_edge[i]);

		if (e->to != end || e->kind != LAG_OP)
			continue;
		e->kind = LAG_FIXED;
		e->lag = op_of(k->r, op)->duration;
		if (e->lag > l->transfer)
			e->lag = l->transfer;
	}
}

/* As late after the missing stage's pass as it was in the recording. */
static void deliver(struct layout *l, int64_t here, const ft_ps *at)
{
	const struct stage *s = &l->stage[here];
	const struct rank *k = &l->p->rank[s->rank];

	for (int back = 0; back < 2; back++) {
		int64_t from = back ? here + 1 : here - 1;
		const struct ops *r =
			&s->way[back ? RECEIVE_BACKWARD : RECEIVE_FORWARD];

		if (from < 0 || from >= (int64_t)l->n || l->stage[from].rank != NO_RANK)
			continue;
		for (size_t i = 0; i < r->n && i < l->micro_batches; i++) {
			uint32_t end = op_event(k, r->op[i], true);
			uint32_t by = l->stage[from].event[back][i] + 1;

			shorten(l, k, r->op[i]);
			edge_add(l->p, by, end, at[end] - at[by], LAG_FIXED);
		}
	}
}

/* ---- all of it --------------------------------------------------------------------------------- */

/* Stages next to each other that run the passes of one are said together. */
static void say(const struct layout *l)
{
	char *text = l->p->stages;
	size_t room = sizeof(l->p->stages), n, to;

	n = (size_t)snprintf(
		text, room,
		"Pipeline of %zu stages, %zu micro-batches, %s; not recorded:", l->n,
		l->micro_batches, l->forwards_first ? "forward passes first" : "1F1B");
	for (size_t s = 0; s < l->n && n + 60 < room; s = to + 1) {
		to = s;
		if (l->stage[s].rank != NO_RANK)
			continue;
		while (to + 1 < l->n && l->stage[to + 1].rank == NO_RANK &&
		       l->stage[to + 1].like == l->stage[s].like)
			to++;
		n += (size_t)(to > s ? snprintf(text + n, room - n,
						" %zu to %zu (as stage %lld)", s, to,
						(long long)l->stage[s].like) :
				       snprintf(text + n, room - n,
						" %zu (as stage %lld)", s,
						(long long)l->stage[s].like));
		if (n + 60 >= room)
			n += (size_t)snprintf(text + n, room - n, " and more");
	}
	snprintf(text + n, room - n, ".");
}

static bool read_all(struct layout *l, const char *ranks)
{
	l->n = read_ranks(ranks, l->number);
	l->stage = ARENA_ARRAY(&l->scratch, l->n + 1, struct stage);
	for (size_t s = 0; s < l->n; s++) {
		l->stage[s].rank = l->stage[s].like = NO_RANK;
		for (size_t k = 0; k < l->p->n_ranks; k++)
			if (l->p->rank[k].r->rank == l->number[s])
				l->stage[s].rank = (int64_t)k;
	}
	for (size_t s = 0; s < l->n; s++)
		if (l->stage[s].rank != NO_RANK && !read_stage(l, (int64_t)s))
			return false;
	return choose(l);
}

/* Of one step. */
static bool lay_out(struct ft_replay *p, const char *ranks, size_t step,
		    ft_ps *(*run)(struct ft_replay *))
{
	struct layout *l = ARENA_NEW(&p->mem, struct layout);
	bool ok;

	l->p = p;
	l->step = step;
	l->transfer = INT64_MAX;
	ok = read_all(l, ranks);
	for (int64_t s = 0; ok && s < (int64_t)l->n; s++)
		if (l->stage[s].rank == NO_RANK)
			run_stage(l, s);
	for (int64_t s = 0; ok && s < (int64_t)l->n; s++)
		if (l->stage[s].rank == NO_RANK)
			receive(l, s);
	if (ok) {
		const ft_ps *at = run(p);

		for (int64_t s = 0; s < (int64_t)l->n; s++)
			if (l->stage[s].rank != NO_RANK)
				deliver(l, s, at);
		say(l);
	}
	arena_release(&l->scratch);
	return ok;
}

void stages_lay_out(struct ft_replay *p, ft_ps *(*run)(struct ft_replay *))
{
	const char *ranks = find_group(p);
	size_t steps = p->rank[0].r->n_steps;

	if (!ranks && transfers_untold(p))
		snprintf(p->stages, sizeof(p->stages),
			 "%zu kernels that send or receive do not tell the other end: "
			 "what they waited for it stays.",
			 transfers_untold(p));
	for (size_t step = 0; ranks && step < steps; step++)
		if (!lay_out(p, ranks, step, run))
			snprintf(
				p->stages, sizeof(p->stages),
				"Stages of the pipeline that are not recorded cannot be "
				"laid out: what is received from them comes as recorded.");
}
