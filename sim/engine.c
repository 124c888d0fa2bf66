/* sim/engine.c - streams run, rates change, time adds up */
#include "sim/engine_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"

static struct stream *container_of_run(struct running *run)
{
	return (struct stream *)((char *)run - offsetof(struct stream, run));
}

static bool is_receive(int stream)
{
	return stream == FT_STREAM_RECV_FORWARD || stream == FT_STREAM_RECV_BACKWARD;
}

static bool is_send(int stream)
{
	return stream == FT_STREAM_SEND_FORWARD || stream == FT_STREAM_SEND_BACKWARD;
}

static struct entry *head(struct stream *s)
{
	return &s->ring[s->completed & (s->cap - 1)];
}

static bool empty(const struct stream *s)
{
	return s->launched == s->completed;
}

/* ---- where the time goes -------------------------------------------------- */

static enum phase phase_of(const struct engine *e, struct part_state *r)
{
	const struct stream *compute = &r->stream[FT_STREAM_COMPUTE];
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
			bubble |= head(s)->launched <= e->q.now;
		else if (is_send(i))
			bubble |= s->state == RUNNING;
		else if (s->state == RUNNING || s->state == MEETING)
			return EXPOSED;
	}
	return bubble ? BUBBLE : HOST;
}

static void account(struct engine *e, struct part_state *r)
{
	r->spent[r->state] += e->q.now - r->since;
	r->since = e->q.now;
}

static void rephase(struct engine *e, struct part_state *r)
{
	uint8_t was = r->state;

	account(e, r);
	r->state = (uint8_t)phase_of(e, r);
	if (r->drawn) {
		draw_phase(e, r, was);
		draw_links(e, r);
	}
}

/* ---- rates ----------------------------------------------------------------- */

static void rerate(struct engine *e, struct part_state *r)
{
	struct running *run[FT_STREAMS];
	struct stream *owner[FT_STREAMS];
	double rate[FT_STREAMS];
	int n = 0;

	for (int i = 0; i < FT_STREAMS; i++)
		if (r->stream[i].state == RUNNING) {
			owner[n] = &r->stream[i];
			run[n++] = &r->stream[i].run;
		}
	rates_of(run, n, part_of(e, r)->job->copy_beside_gemm, rate);
	for (int i = 0; i < n; i++)
		if (rate[i] != run[i]->rate)
			evq_put(&e->q, &owner[i]->event,
				running_change(run[i], e->q.now, rate[i]));
}

/* Others whose share of a link has changed. */
static void rerate_others(struct engine *e, const struct part_state *not_this)
{
	for (size_t i = 0; i < e->rates.n_changed; i++) {
		struct stream *s = container_of_run(e->rates.changed[i]);
		struct part_state *r = &e->part[s->part];

		if (r != not_this)
			rerate(e, r);
		if (r->drawn && r != not_this)
			draw_links(e, r);
	}
}

/* ---- starting and ending ops ------------------------------------------------ */

static void finish(struct engine *e, struct stream *s);

static void start(struct engine *e, struct stream *s)
{
	struct part_state *r = &e->part[s->part];
	const struct ft_op *op = head(s)->op;
	const struct work_timing *c = &part_of(e, r)->timing[op->work];

	s->state = RUNNING;
	s->began = e->q.now;
	running_begin(&s->run, c, s->id, op->optimizer, e->q.now);
	evq_put(&e->q, &s->event, e->q.now + c->duration);
	r->n_running++;
	if (s->id >= FT_STREAM_GATHER)
		rates_enter(&e->rates, &s->run, s->part, c);
	if (r->n_running > 1 || s->run.share < 1)
		rerate(e, r);
	if (s->id >= FT_STREAM_GATHER)
		rerate_others(e, r);
}

static bool met(const struct part_state *r, const struct entry *in)
{
	for (int i = 0; i < FT_OP_WAITS && in->wait[i].stream < FT_STREAMS; i++)
		if (r->stream[in->wait[i].stream].completed <= in->wait[i].number)
			return false;
	return true;
}

static const struct ft_work *work_of(const struct engine *e, const struct part_state *r,
				     const struct entry *in)
{
	return &part_of(e, r)->job->graph->work[in->op->work];
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
	start(e, first);
	start(e, s);
	rephase(e, &e->part[first->part]);
}

/* The last part of a team to arrive starts all. Streams run in order and the programs
 * are the same, so that streams that wait, wait for the same collective. */
static void meet_team(struct engine *e, struct stream *s)
{
	uint32_t team = e->in->part[s->part].team;
	uint32_t from = e->team_begin[team], to = e->team_begin[team + 1];

	s->state = MEETING;
	for (uint32_t i = from; i < to; i++)
		if (e->part[e->team_of[i]].stream[s->id].state != MEETING)
			return;
	for (uint32_t i = from; i < to; i++) {
		struct part_state *r = &e->part[e->team_of[i]];

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
	if (w->communication.group == FT_GROUP_EMBEDDING)
		meet_tied(e, s);
	else
		meet_team(e, s);
}

/* Start the op at the head if nothing holds it; note why not, else. */
static void try_start(struct engine *e, struct stream *s)
{
	struct part_state *r = &e->part[s->part];
	struct entry *in;

	if (s->state == RUNNING || s->state == MEETING || empty(s))
		return;
	in = head(s);
	if (!met(r, in))
		return;
	if (in->launched > e->q.now) {
		if (s->state != TO_LAUNCH)
			evq_put(&e->q, &s->event, in->launched);
		s->state = TO_LAUNCH;
		return;
	}
	if (is_receive(s->id)) {
		if (s->arrived[in->op->reverse] > s->taken[in->op->reverse])
			finish(e, s);
		return;
	}
	if (must_meet(e, s, work_of(e, r, in)))
		meet(e, s, work_of(e, r, in));
	else
		start(e, s);
}

static void wake_all(struct engine *e, struct part_state *r)
{
	for (unsigned left = r->queued; left; left &= left - 1) {
		struct stream *s = &r->stream[__builtin_ctz(left)];

		if (s->state == IDLE)
			try_start(e, s);
	}
}

/* A send arrives: the next (previous) stage's receive may end. */
static void deliver(struct engine *e, const struct stream *s, bool reverse)
{
	const struct engine_part *p = &e->in->part[s->part];
	bool forward = s->id == FT_STREAM_SEND_FORWARD;
	struct part_state *r = &e->part[receiver(p, (enum ft_stream)s->id, reverse)];
	struct stream *to =
		&r->stream[forward ? FT_STREAM_RECV_FORWARD : FT_STREAM_RECV_BACKWARD];

	to->arrived[reverse]++;
	try_start(e, to);
}

static void count(struct engine *e, struct stream *s)
{
	const struct ft_op *op = head(s)->op;
	const struct engine_part *p = &e->in->part[s->part];

	if (p->pipeline == 0) {
		ft_ps *sum = &e->out->work_time[op->work], t = e->q.now - s->began;

		*sum = t > INT64_MAX - *sum ? INT64_MAX : *sum + t;
		e->out->work_count[op->work]++;
	}
	if (e->in->timeline)
		draw_op(e, s, head(s));
}

/* Its program has run, for the first time. */
static void note_over(struct engine *e, struct part_state *r)
{
	const struct engine_job *job = part_of(e, r)->job;

	if (r->over || r->queued || r->host_blocked || job->again ||
	    r->next_call < job->graph->rank_class[part_of(e, r)->rank_class].n_calls)
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
static void finish(struct engine *e, struct stream *s)
{
	struct part_state *r = &e->part[s->part];
	bool ran = s->state == RUNNING, reverse = head(s)->op->reverse;

	e->rates.n_changed = 0;
	if (ran) {
		count(e, s);
		r->n_running--;
		rates_leave(&e->rates, &s->run);
	}
	s->taken[reverse] += is_receive(s->id);
	s->state = IDLE;
	rerate_others(e, r);
	if (++s->completed == s->launched)
		r->queued &= ~(1u << s->id);
	r->end = e->q.now;
	if (r->host_blocked)
		engine_launch(e, r);
	wake_all(e, r);
	if (ran && r->n_running)
		rerate(e, r);
	if (is_send(s->id))
		deliver(e, s, reverse);
	note_over(e, r);
	rephase(e, r);
}

/* ---- bounds ----------------------------------------------------------------------- */

/* What all parts are to run, once. */
static double ops_of(const struct engine_input *in)
{
	double n = 0;

	for (size_t p = 0; p < in->n_parts; p++) {
		const struct ft_graph *g = in->part[p].job->graph;
		const struct ft_class *c = &g->rank_class[in->part[p].rank_class];

		for (size_t i = 0; i < c->n_calls; i++) {
			size_t ops = g->segment[c->call[i].segment].n_ops;

			n += (double)(ops ? ops : 1) * c->call[i].repeat;
		}
	}
	return n;
}

static bool small_enough(const struct engine_input *in, struct ft_error *err)
{
	double n = ops_of(in);

	if (n > LIMIT_STEP_OPS)
		return ft_fail(err, NULL,
			       "a step of %.0f operations is too much to simulate, at "
			       "most %d; use larger or fewer micro-batches",
			       n, (int)LIMIT_STEP_OPS);
	return !in->timeline || n <= LIMIT_TIMELINE_OPS ||
	       ft_fail(err, NULL,
		       "a step of %.0f operations is too much to draw, at most %d; "
		       "use fewer micro-batches for a timeline",
		       n, (int)LIMIT_TIMELINE_OPS);
}

/* Has it gone on for too long? */
static bool beyond(const struct engine *e, struct ft_error *err)
{
	bool late = e->q.now > FT_PS_LONGEST;

	for (size_t p = 0; p < e->in->n_parts; p++)
		late |= e->part[p].host_now > FT_PS_LONGEST;
	if (late)
		ft_fail(err, NULL, "a step takes longer than %d days",
			(int)LIMIT_STEP_DAYS);
	else if (e->crowded)
		ft_fail(err, NULL, "more than %d operations wait on one stream",
			(int)LIMIT_STREAM_OPS);
	else if (e->out->events >= LIMIT_STEP_EVENTS)
		ft_fail(err, NULL,
			"a step of more than %d events is too much to simulate",
			(int)LIMIT_STEP_EVENTS);
	else
		return false;
	return true;
}

/* ---- the whole ----------------------------------------------------------------- */

static bool stuck(struct engine *e, struct ft_error *err)
{
	for (size_t p = 0; e->n_going && p < e->in->n_parts; p++)
		for (int i = 0; i < FT_STREAMS; i++) {
			struct part_state *r = &e->part[p];
			struct stream *s = &r->stream[i];

			if (empty(s))
				continue;
			ft_fail(err, NULL,
				"%s cannot finish: '%s' on stream "
				"%s waits for an op that is never launched",
				e->in->part[p].name, work_of(e, r, head(s))->name,
				ft_stream_name((enum ft_stream)i));
			return true;
		}
	return false;
}

static void collect(struct engine *e)
{
	struct engine_output *out = e->out;

	for (size_t p = 0; p < e->in->n_parts; p++) {
		struct part_state *r = &e->part[p];
		struct ft_class_result *to = &out->part[p];

		to->end = r->end;
		to->compute = r->spent[COMPUTE];
		to->exposed = r->spent[EXPOSED];
		to->bubble = r->spent[BUBBLE];
		to->host = r->spent[HOST];
		to->optimizer = r->spent[OPTIMIZER];
		if (r->end > out->end && !e->in->part[p].job->again)
			out->end = r->end;
	}
}

static void begin(struct engine *e)
{
	const struct engine_input *in = e->in;

	engine_init(e);
	for (size_t p = 0; p < in->n_parts; p++) {
		engine_launch(e, &e->part[p]);
		wake_all(e, &e->part[p]);
		note_over(e, &e->part[p]);
		rephase(e, &e->part[p]);
	}
}

bool engine_run(struct arena *mem, const struct engine_input *in,
		struct engine_output *out, struct ft_error *err)
{
	struct engine e = { .mem = mem, .in = in, .out = out };
	struct event *ev;

	if (!small_enough(in, err))
		return false;
	begin(&e);
	while (e.n_going && e.q.now <= FT_PS_LONGEST && !e.crowded &&
	       out->events < LIMIT_STEP_EVENTS && (ev = evq_take(&e.q))) {
		struct stream *s = (struct stream *)ev;
		struct part_state *r = &e.part[s->part];

		out->events++;
		if (s->state == RUNNING) {
			finish(&e, s);
		} else {
			s->state = IDLE;
			try_start(&e, s);
			rephase(&e, r);
		}
	}
	if (beyond(&e, err) || stuck(&e, err))
		return false;
	if (in->timeline)
		draw_rest(&e);
	collect(&e);
	return true;
}
