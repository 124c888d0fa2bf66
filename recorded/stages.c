/*
 * recorded/stages.c - stages of a pipeline that no file is of, laid out from those recorded
 *
 * A recorded rank's passes are the kernels of its busiest stream that its program marked
 * (stage_marks.c), else those between its sends, in the order of launch (stage_passes.c). A stage
 * that is missing runs the passes of the nearest recorded stage without the model's head, chunk by
 * chunk, in the order of the schedule that the recorded stages show (stage_order.c: 1F1B,
 * interleaved, all forward passes first, and those that cut backwards or fold the stages):
 *
 *   begin(pass) = latest of the end of the pass before it on the stage and of what it
 *                 receives, a transfer later;  end = begin + the recorded pass's time
 *
 * What a recorded rank receives from it comes as recorded where nothing changes: by what
 * the layout is early or late then, it stays so. Limits: a stage's update
 * and the host are those of the recorded ranks alone; transfers to it keep their time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recorded/stages.h"

/* ---- the pipeline's ranks ----------------------------------------------------------- */

/* "[0, 4, 8]"; of "[0, 4, ...]", which profilers write of long ones, the others are as far apart. */
static size_t read_ranks(const struct ft_rec_collective *c, int64_t *number)
{
	const char *text = c->ranks + strcspn(c->ranks, "0123456789");
	size_t n = 0;

	while (*text && n < STAGES_MOST) {
		char *end;

		number[n++] = strtoll(text, &end, 10);
		text = end + strcspn(end, "0123456789");
	}
	if (n > 1 && strstr(c->ranks, "..."))
		for (; (int64_t)n < c->size && n < STAGES_MOST; n++)
			number[n] = 2 * number[n - 1] - number[n - 2];
	return n;
}

/* The first group whose sends and receives lack the other end. */
static const struct ft_rec_collective *find_group(const struct ft_replay *p)
{
	for (size_t k = 0; k < p->n_ranks; k++)
		for (size_t i = 0; i < p->rank[k].r->op.n; i++) {
			const struct ft_rec_collective *c =
				transfer_of(p->rank[k].r, i);

			if (c && p->rank[k].meeting[i] == FT_REC_NONE)
				return c;
		}
	return NULL;
}

/* ---- what stands for what ---------------------------------------------------------------- */

/* The pass of a recorded stage that one of another stage is like: of the same micro-batch, or of
 * another. NO_PASS: none is of that kind. */
static size_t pass_like(const struct layout *l, int64_t here, const struct ft_slot *of)
{
	const size_t *pass =
		l->stage[here].pass[of->kind] + of->chunk * l->plan.micro_batches;

	if (pass[of->micro_batch] != NO_PASS)
		return pass[of->micro_batch];
	for (int64_t m = 0; m < l->plan.micro_batches; m++)
		if (pass[m] != NO_PASS)
			return pass[m];
	return NO_PASS;
}

/* Can another stage run its passes? Not where they hold the model's head. */
static bool can_stand_in(const struct layout *l, int64_t here, int64_t there)
{
	int64_t head = l->plan.pp * l->plan.vpp - 1;
	const struct stage *to = &l->stage[there];

	if (l->stage[here].rank == NO_RANK || ft_plan_stage(&l->plan, head) == here)
		return false;
	for (size_t i = 0; i < to->n_slots; i++)
		if (pass_like(l, here, &to->slot[i]) == NO_PASS)
			return false;
	return true;
}

/* The nearest recorded stage that can stand for one; the first stage of a pipeline only
 * where no other is as near. */
static int64_t nearest(const struct layout *l, int64_t there)
{
	int64_t best = NO_RANK;

	for (int64_t t = 0; t < (int64_t)l->n; t++)
		if (can_stand_in(l, t, there) &&
		    (best == NO_RANK || llabs(t - there) < llabs(best - there) ||
		     (llabs(t - there) == llabs(best - there) && best == 0)))
			best = t;
	return best;
}

/* Chooses a recorded stage for each missing one; false: for one there is none. */
static bool choose(struct layout *l)
{
	for (int64_t s = 0; s < (int64_t)l->n; s++)
		if (l->stage[s].rank == NO_RANK) {
			l->stage[s].like = nearest(l, s);
			if (l->stage[s].like == NO_RANK)
				return false;
		}
	return true;
}

/* ---- events and what they wait for -------------------------------------------------------- */

/* Its passes, one after another; before them the first call of a recorded rank. */
static void run_stage(struct layout *l, int64_t here)
{
	struct stage *s = &l->stage[here];
	const struct rank *k = &l->p->rank[l->stage[s->like].rank];
	uint32_t last = call_event(k, k->r->call_order[0], false);

	for (int back = 0; back < 2; back++)
		s->event[back] = ARENA_ARRAY(&l->scratch, l->n_places, uint32_t);
	for (size_t i = 0; i < s->n_slots; i++) {
		const struct ft_slot *of = &s->slot[i];
		uint32_t begin = (uint32_t)l->p->n_events, end = begin + 1;

		l->p->n_events += 2;
		if (of->kind != FT_SLOT_WEIGHTS)
			s->event[is_back(of)][place_of(l, of)] = begin;
		edge_add(l->p, begin, end, (ft_ps)pass_like(l, s->like, of), LAG_PASS);
		edge_add(l->p, last, begin, 0, LAG_FIXED);
		last = end;
	}
}

/* When a stage sends a pass's result: a missing one when the pass ends. */
static bool sent(const struct layout *l, int64_t from, const struct ft_slot *of,
		 uint32_t *event)
{
	const struct stage *s = &l->stage[from];
	int back = is_back(of);
	size_t place = place_of(l, of);

	if (s->rank == NO_RANK)
		*event = s->event[back][place] + 1;
	else if (s->send[back][place] != NO_OP)
		*event = op_event(&l->p->rank[s->rank], s->send[back][place], false);
	return s->rank == NO_RANK || s->send[back][place] != NO_OP;
}

static void receive(struct layout *l, int64_t here)
{
	const struct stage *s = &l->stage[here];

	for (size_t i = 0; i < s->n_slots; i++) {
		struct ft_slot of = s->slot[i];
		uint32_t to = s->event[is_back(&of)][place_of(l, &of)], event;
		int64_t from;

		if (neighbour(l, here, &s->slot[i], false, &from, &of.chunk) &&
		    sent(l, from, &of, &event))
			edge_add(l->p, event, to, l->transfer, LAG_FIXED);
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

	for (size_t i = 0; i < s->n_slots; i++) {
		struct ft_slot of = s->slot[i];
		int back = is_back(&of);
		uint32_t op = s->receive[back][place_of(l, &of)], end, by;
		int64_t from;

		if (op == NO_OP ||
		    !neighbour(l, here, &s->slot[i], false, &from, &of.chunk) ||
		    l->stage[from].rank != NO_RANK)
			continue;
		end = op_event(k, op, true);
		by = l->stage[from].event[back][place_of(l, &of)] + 1;
		shorten(l, k, op);
		edge_add(l->p, by, end, at[end] - at[by], LAG_FIXED);
	}
}

/* ---- all of it --------------------------------------------------------------------------------- */

/* Stages next to each other that run the passes of one are said together. */
static void say(const struct layout *l)
{
	char *text = l->p->stages;
	size_t room = sizeof(l->p->stages), n, to;
	char chunks[40] = "";

	if (l->plan.vpp > 1)
		snprintf(chunks, sizeof(chunks), " of %lld chunks",
			 (long long)l->plan.vpp);
	n = (size_t)snprintf(
		text, room,
		"Pipeline of %zu stages%s, %lld micro-batches, %s; not recorded:", l->n,
		chunks, (long long)l->plan.micro_batches,
		l->plan.schedule == FT_GPIPE ? "forward passes first" :
		l->plan.schedule == FT_1F1B  ? "1F1B" :
					       ft_schedule_name(l->plan.schedule));
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

static void find_stages(struct layout *l, const struct ft_rec_collective *group)
{
	l->n = read_ranks(group, l->number);
	l->stage = ARENA_ARRAY(&l->scratch, l->n + 1, struct stage);
	for (size_t s = 0; s < l->n; s++) {
		l->stage[s].rank = l->stage[s].like = NO_RANK;
		for (size_t k = 0; k < l->p->n_ranks; k++)
			if (l->p->rank[k].r->rank == l->number[s])
				l->stage[s].rank = (int64_t)k;
	}
}

static bool read_all(struct layout *l)
{
	l->marked = true;
	for (size_t s = 0; s < l->n; s++) {
		if (l->stage[s].rank == NO_RANK)
			continue;
		if (!stage_read(l, (int64_t)s))
			return false;
		marks_read(l, (int64_t)s);
		l->marked = l->marked && l->stage[s].n_marks;
	}
	if (!order_find(l))
		return false;
	for (size_t s = 0; s < l->n; s++)
		if (l->stage[s].rank != NO_RANK)
			passes_take(l, (int64_t)s);
	return choose(l);
}

static bool any_missing(const struct layout *l)
{
	for (size_t s = 0; s < l->n; s++)
		if (l->stage[s].rank == NO_RANK)
			return true;
	return false;
}

/* Lays out the missing stages of one step. */
static bool lay_out(struct ft_replay *p, const struct ft_rec_collective *group,
		    size_t step)
{
	struct layout *l = ARENA_NEW(&p->mem, struct layout);
	bool missing, ok;

	l->p = p;
	l->step = step;
	l->transfer = INT64_MAX;
	find_stages(l, group);
	missing = any_missing(l);
	ok = !missing || read_all(l);
	for (int64_t s = 0; ok && s < (int64_t)l->n; s++)
		if (l->stage[s].rank == NO_RANK)
			run_stage(l, s);
	for (int64_t s = 0; ok && s < (int64_t)l->n; s++)
		if (l->stage[s].rank == NO_RANK)
			receive(l, s);
	if (missing && ok) {
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
	const struct ft_rec_collective *group = find_group(p);
	size_t steps = p->rank[0].r->n_steps;

	if (!group && transfers_untold(p))
		snprintf(p->stages, sizeof(p->stages),
			 "%zu kernels that send or receive do not tell the other end: "
			 "what they waited for it stays.",
			 transfers_untold(p));
	for (size_t step = 0; group && step < steps; step++)
		if (!lay_out(p, group, step))
			snprintf(
				p->stages, sizeof(p->stages),
				"Stages of the pipeline that are not recorded cannot be "
				"laid out: what is received from them comes as recorded.");
}
