/* sim/engine.c - streams run, rates change, time adds up */
#include "sim/engine_state.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/limits.h"

static struct stream *container_of_run(struct running *run)
{
	return (struct stream *)((char *)run - offsetof(struct stream, run));
}

static bool empty(const struct stream *s)
{
	return s->launched == s->completed;
}

/* ---- where the time goes -------------------------------------------------- */

static enum phase phase_of(const struct engine *e, struct part_state *r)
{
	const struct stream *compute = &r->stream[FT_STREAM_COMPUTE];
	bool exposed = r->running & (1u << FT_STREAM_OFFLOAD | 1u << FT_STREAM_FETCH);
	bool bubble = false;

	if (compute->state == RUNNING)
		return compute->run.optimizer ? OPTIMIZER : COMPUTE;
	if (r->stream[FT_STREAM_COPY].state == RUNNING)
		return COMPUTE;
	for (unsigned left = r->queued >> FT_STREAM_GATHER << FT_STREAM_GATHER; left;
	     left &= left - 1) {
		int i = __builtin_ctz(left);
		struct stream *s = &r->stream[i];

		if (is_receive(i))
			bubble |= engine_launched(e, s) <= e->q.now;
		else if (ft_stream_sends(i))
			bubble |= s->state == RUNNING;
		else if (s->state == RUNNING && work_of(r, s)->kind != FT_COMMUNICATION)
			return COMPUTE; /* a sum behind a reduction is a kernel */
		else
			exposed |= s->state == RUNNING || s->state == MEETING;
	}
	return exposed ? EXPOSED : bubble ? BUBBLE : HOST;
}

static void rephase(struct engine *e, struct part_state *r)
{
	uint8_t was = r->state;

	engine_account(e, r);
	r->state = (uint8_t)phase_of(e, r);
	if (r->before) {
		draw_phase(e, r, was);
		draw_links(e, r);
		draw_power(e, r);
	}
}

/* ---- rates ----------------------------------------------------------------- */

/* What runs on a part takes the rates that it has by now. `begun` has no event yet: null, or what begins. */
static void rerate_with(struct engine *e, struct part_state *r, struct stream *begun)
{
	struct running *run[FT_STREAMS];
	struct stream *owner[FT_STREAMS];
	double rate[FT_STREAMS];
	int n = 0;

	if (!r->running)
		return;

	r->rated = true;
	for (unsigned left = r->running; left; left &= left - 1) {
		owner[n] = &r->stream[__builtin_ctz(left)];
		run[n] = &owner[n]->run;
		n++;
	}
	rates_of(run, n, rate);
	for (int i = 0; begun && i < n; i++)
		if (owner[i] == begun && rate[i] == begun->run.rate)
			evq_put(&e->q, &begun->event,
				e->q.now + begun->run.of->duration);
	for (int i = 0; i < n; i++)
		if (rate[i] != run[i]->rate)
			evq_put(&e->q, &owner[i]->event,
				running_change(run[i], e->q.now, rate[i]));
}

static void rerate(struct engine *e, struct part_state *r)
{
	rerate_with(e, r, NULL);
}

/* Others whose share of a link has changed. */
static void rerate_others(struct engine *e, const struct part_state *not_this)
{
	for (size_t i = 0; i < e->rates.n_changed; i++) {
		struct stream *s = container_of_run(e->rates.changed[i]);
		struct part_state *r = &e->part[s->part];

		if (r != not_this)
			rerate(e, r);
		if (r->before && r != not_this)
			draw_links(e, r);
	}
}

/* ---- starting and ending ops ------------------------------------------------ */

/* Does compute begin a call of a pass that can be jumped over, or recorded? */
static bool begins_call(const struct part_state *r, const struct engine_part *p,
			const struct stream *s)
{
	return !s->number && !r->recording &&
	       r->program->of[p->rank_class].pass_of[launch_at(r, s->at)->call] !=
		       NO_PASS;
}

static void start(struct engine *e, struct stream *s)
{
	struct part_state *r = &e->part[s->part];
	const struct ft_op *op = s->head->op;
	const struct work_timing *c = &r->of->timing[op->work];

	if (e->jumps && s->id == FT_STREAM_COMPUTE && begins_call(r, r->of, s))
		e->anchored[e->n_anchored++] = r;
	if (c->path)
		r->recording = NULL; /* others may change its pace */
	s->state = RUNNING;
	s->began = e->q.now;
	running_begin(&s->run, c, s->id, op->optimizer, e->q.now);
	r->running |= 1u << s->id;
	if (s->id >= FT_STREAM_GATHER)
		rates_enter(&e->rates, &s->run, s->part, c);
	if (r->running != 1u << s->id || s->run.share < 1)
		rerate_with(e, r, s);
	else
		evq_put(&e->q, &s->event, e->q.now + c->duration);
	if (s->id >= FT_STREAM_GATHER)
		rerate_others(e, r);
}

/* What the head waits for is over, as far as it was looked at last. */
static bool let_go(const struct part_state *r, const struct stream *s)
{
	return r->stream[s->held_by].completed >= s->held_to;
}

/* The first wait of the head that is not over is kept. */
static bool met(const struct part_state *r, struct stream *s)
{
	const struct launch *l = launch_at(r, s->at);
	const struct piece_op *op = s->head;

	for (uint32_t i = 0; i < op->n_waits; i++) {
		uint32_t stream = op->wait[i].stream, to = op->wait[i].after;

		if (stream == PIECE_EVENT) {
			const struct wait *w = &l->event[to];

			if (w->stream == FT_STREAMS)
				continue;
			stream = w->stream;
			to = w->number + 1;
		} else {
			to += l->base[stream];
		}
		if (r->stream[stream].completed < to) {
			s->held_by = (uint8_t)stream;
			s->held_to = to;
			return false;
		}
	}
	return true;
}

/* The first of the two tied stages waits; the second starts both. */
static void meet_tied(struct engine *e, struct stream *s)
{
	struct stream **tied = &e->tied[e->in->part[s->part].pipeline];
	struct stream *first = *tied;

	if (!first) {
		*tied = s;
		s->state = MEETING;
		return;
	}
	*tied = NULL;
	jump_interrupt(e, &e->part[first->part]);
	start(e, first);
	start(e, s);
	rephase(e, &e->part[first->part]);
}

/* The last part of a team to arrive starts all. Streams run in order and the programs are the
 * same: what waits in one work is not behind. (A pipeline's ends meet at a tied embedding.) */
static void meet_team(struct engine *e, struct stream *s)
{
	uint32_t team = e->in->part[s->part].team;
	uint32_t from = e->team_begin[team], to = e->team_begin[team + 1];

	s->state = MEETING;
	for (uint32_t i = from; i < to; i++) {
		const struct stream *other = &e->part[e->team_of[i]].stream[s->id];

		if (other->state != MEETING ||
		    other->head->op->work != s->head->op->work)
			return;
	}
	for (uint32_t i = from; i < to; i++) {
		struct part_state *r = &e->part[e->team_of[i]];

		jump_interrupt(e, r);
		start(e, &r->stream[s->id]);
		rephase(e, r);
	}
}

/* Must others arrive first? */
static bool must_meet(const struct engine *e, const struct stream *s,
		      const struct ft_work *w)
{
	const struct engine_part *p = &e->in->part[s->part];
	enum ft_group group = w->communication.group;

	if (w->kind != FT_COMMUNICATION)
		return false;
	return group == FT_GROUP_EMBEDDING ||
	       ((p->job->meeting >> group & 1) &&
		e->team_begin[p->team + 1] - e->team_begin[p->team] > 1);
}

/* Arrive; the last to arrive starts all. */
static void meet(struct engine *e, struct stream *s, const struct ft_work *w)
{
	e->part[s->part].recording = NULL; /* what others do is not its own */
	if (w->communication.group == FT_GROUP_EMBEDDING)
		meet_tied(e, s);
	else
		meet_team(e, s);
}

/* A product whose blocks stay until they are done leaves a collective no room before it ends;
 * one that begins now finds it there. */
static bool finds_no_unit(const struct engine *e, const struct part_state *r,
			  struct stream *s)
{
	const struct stream *c = &r->stream[FT_STREAM_COMPUTE];

	if (s->id < FT_STREAM_GATHER || c->state != RUNNING || c->began >= e->q.now ||
	    !c->run.of->holds_all || r->of->timing[s->head->op->work].copy_engine)
		return false;
	s->held_by = FT_STREAM_COMPUTE;
	s->held_to = c->completed + 1;
	s->state = IDLE;
	return true;
}

/* Start the op at the head if nothing holds it; note why not, else. */
static void try_start(struct engine *e, struct stream *s)
{
	struct part_state *r = &e->part[s->part];
	const struct ft_work *w;
	ft_ps launched;

	if (s->state == RUNNING || s->state == MEETING || empty(s))
		return;
	if (!met(r, s))
		return;
	launched = engine_launched(e, s);
	if (launched > e->q.now) {
		if (s->state != TO_LAUNCH)
			evq_put(&e->q, &s->event, launched);
		s->state = TO_LAUNCH;
		return;
	}
	if (is_receive(s->id)) {
		bool reverse = s->head->op->reverse;

		if (s->arrived[reverse] > s->taken[reverse]) {
			engine_finish(e, s);
			return;
		}
		s->held_by = s->id; /* what arrives tries it again, and nothing else */
		s->held_to = s->completed + 1;
		return;
	}
	if (finds_no_unit(e, r, s))
		return;
	w = work_of(r, s);
	if (must_meet(e, s, w))
		meet(e, s, w);
	else
		start(e, s);
}

static void wake_all(struct engine *e, struct part_state *r)
{
	if (r->jump)
		return;
	for (unsigned left = r->queued; left; left &= left - 1) {
		struct stream *s = &r->stream[__builtin_ctz(left)];

		if (s->state == IDLE && let_go(r, s))
			try_start(e, s);
	}
}

void engine_deliver(struct engine *e, const struct stream *s, bool reverse)
{
	const struct engine_part *p = &e->in->part[s->part];
	bool forward = s->id == FT_STREAM_SEND_FORWARD;
	struct part_state *r = &e->part[receiver(p, (enum ft_stream)s->id, reverse)];
	struct stream *to =
		&r->stream[forward ? FT_STREAM_RECV_FORWARD : FT_STREAM_RECV_BACKWARD];

	if (e->part[s->part].n_sent_before) {
		e->part[s->part].n_sent_before--;
		return;
	}
	if (e->part[s->part].recording)
		jump_note_sent(e, s, reverse);
	to->arrived[reverse]++;
	try_start(e, to);
}

static void count(struct engine *e, struct stream *s)
{
	const struct engine_part *p = &e->in->part[s->part];
	const struct ft_op *op = s->head->op;

	if (e->part[s->part].recording)
		jump_note_over(e, s);
	if (p->pipeline == 0) {
		ft_ps *sum = &e->out->work_time[op->work];

		*sum = engine_add_up(*sum, 1, e->q.now - s->began);
		e->out->work_count[op->work]++;
	}
	if (e->in->timeline)
		draw_op(e, s);
}

/* Its program has run, for the first time. */
static void note_over(struct engine *e, struct part_state *r)
{
	const struct engine_job *job = r->of->job;

	if (r->over || r->queued || r->host_blocked || job->again ||
	    r->next_call < job->graph->rank_class[r->of->rank_class].n_calls)
		return;
	r->over = true;
	e->n_going--;
}

/*
 * The op at the head is over. The order of what follows is part of the model:
 *   1. it is counted and leaves its links, so that shares are those of the others
 *   2. others whose share of a link grew get their new rate, before anything starts
 *   3. the stream moves on, and a host that waited for room in the queue launches,
 *      so that step 4 sees the ops that were launched
 *   4. all idle streams of this part try to start: what waited for this op, too
 *   5. what still runs here gets its rate beside what has just started
 *   6. a send arrives at the neighbour; its receive may finish, which comes back here
 *      for the neighbour's part
 *   7. last the part's own state: is its program over, and what does it spend time on
 */
void engine_finish(struct engine *e, struct stream *s)
{
	struct part_state *r = &e->part[s->part];
	bool ran = s->state == RUNNING, reverse = s->head->op->reverse;

	e->rates.n_changed = 0;
	r->rated = false;
	if (!ran && e->in->timeline)
		draw_received(e, s);
	if (ran) {
		count(e, s);
		r->running &= ~(1u << s->id);
		rates_leave(&e->rates, &s->run);
	}
	s->taken[reverse] += is_receive(s->id);
	s->state = IDLE;
	s->held_to = 0;
	rerate_others(e, r);
	s->number++;
	if (++s->completed == s->launched)
		r->queued &= ~(1u << s->id);
	else
		engine_find_head(r, s);
	r->end = e->q.now;
	if (r->host_blocked && !r->jump) {
		engine_launch(e, r, e->q.now);
		if (r->recording)
			jump_note_launched(e, r);
	}
	wake_all(e, r);
	if (ran && r->running && !r->rated)
		rerate(e, r);
	if (ft_stream_sends(s->id))
		engine_deliver(e, s, reverse);
	note_over(e, r);
	if (!r->jump)
		rephase(e, r);
}

/* ---- the whole ----------------------------------------------------------------- */

/* Calls that have begun, with all that began at the same moment. */
static void note_calls(struct engine *e)
{
	while (e->n_anchored)
		jump_or_record(e, e->anchored[--e->n_anchored]);
}

static void begin(struct engine *e)
{
	const struct engine_input *in = e->in;

	engine_init(e);
	for (size_t p = 0; p < in->n_parts; p++) {
		engine_launch(e, &e->part[p], 0);
		wake_all(e, &e->part[p]);
		note_over(e, &e->part[p]);
		rephase(e, &e->part[p]);
	}
	note_calls(e);
}

static void happen(struct engine *e, struct stream *s)
{
	struct part_state *r = &e->part[s->part];

	e->out->events++;
	if (r->jump && s->id == FT_STREAM_COMPUTE) {
		jump_on(e, r);
	} else if (s->state == RUNNING) {
		engine_finish(e, s);
	} else {
		s->state = IDLE;
		try_start(e, s);
		if (!r->jump)
			rephase(e, r);
	}
}

void engine_replay(struct engine *e, ft_ps then)
{
	size_t n_anchored = e->n_anchored;

	while (evq_is_before(&e->q, then)) {
		happen(e, (struct stream *)evq_take(&e->q));
		e->n_anchored = n_anchored;
	}
	e->q.now = then;
}

/* The next event; false: there is none. */
static bool step(struct engine *e)
{
	struct event *ev = evq_take(&e->q);

	if (!ev)
		return false;
	happen(e, (struct stream *)ev);
	note_calls(e);
	return true;
}

bool engine_run(struct arena *mem, const struct engine_input *in,
		struct engine_output *out, struct ft_error *err)
{
	struct engine e = { .mem = mem, .in = in, .out = out };

	if (!engine_small_enough(in, err))
		return false;
	begin(&e);
	while (e.n_going && e.q.now <= FT_PS_LONGEST && !e.crowded &&
	       out->events < LIMIT_STEP_EVENTS && step(&e))
		;
	if (e.jumps)
		jumps_count(&e);
	if (engine_beyond(&e, err) || engine_stuck(&e, err))
		return false;
	if (in->timeline)
		draw_rest(&e);
	engine_collect(&e);
	return true;
}
