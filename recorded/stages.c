/*
 * recorded/stages.c - stages of a pipeline that no file is of, laid out from those recorded
 *
 * A recorded rank's passes are the kernels of its busiest stream between its sends (and
 * receives, of the first stage), in the order of launch. A stage that is missing runs the
 * passes of the nearest recorded stage but the last, whose forward and backward passes
 * nothing parts, in the order of the schedule (1F1B, or all forward passes first):
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

#include "recorded/stages.h"

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
	return any && l->micro_batches > 0 && l->micro_batches < PASSES_MOST / l->n;
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
		if (l->stage[s].rank != NO_RANK && !stage_read(l, (int64_t)s))
			return false;
	return choose(l);
}

/* Of one step. */
static bool lay_out(struct ft_replay *p, const char *ranks, size_t step)
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
		const ft_ps *at = replay_as_recorded(p);

		for (int64_t s = 0; s < (int64_t)l->n; s++)
			if (l->stage[s].rank != NO_RANK)
				deliver(l, s, at);
		say(l);
	}
	arena_release(&l->scratch);
	return ok;
}

void stages_lay_out(struct ft_replay *p)
{
	const char *ranks = find_group(p);
	size_t steps = p->rank[0].r->n_steps;

	if (!ranks && transfers_untold(p))
		snprintf(p->stages, sizeof(p->stages),
			 "%zu kernels that send or receive do not tell the other end: "
			 "what they waited for it stays.",
			 transfers_untold(p));
	for (size_t step = 0; ranks && step < steps; step++)
		if (!lay_out(p, ranks, step))
			snprintf(
				p->stages, sizeof(p->stages),
				"Stages of the pipeline that are not recorded cannot be "
				"laid out: what is received from them comes as recorded.");
}
