/* sim/engine_jump.c - a pass that was recorded is jumped over */

#include "base/arena.h"
#include "sim/engine_jump.h"

struct jumps *jumps_new(struct engine *e)
{
	const struct engine_input *in = e->in;
	struct jumps *j;

	if (in->timeline || in->run_all)
		return NULL;
	for (size_t p = 0; p < in->n_parts; p++)
		if (in->part[p].job->again || e->part[p].program->waits_elsewhere)
			return NULL;
	j = ARENA_NEW(e->mem, struct jumps);
	j->n_slots = 2 * MOST_JUMPS;
	j->slot = ARENA_ARRAY(e->mem, j->n_slots, struct jump *);
	j->all = ARENA_ARRAY(e->mem, MOST_JUMPS, struct jump *);
	j->of = ARENA_ARRAY(e->mem, in->n_parts, struct recording);
	j->sum = ARENA_ARRAY(e->mem, in->part[0].job->graph->n_works, struct spent_on);
	return j;
}

/* ---- a pass is jumped over ----------------------------------------------------------- */

/* Its event is that of compute. */
static void await_next(struct engine *e, struct part_state *r)
{
	const struct recording *rec = recording_of(e, r);
	const struct jump *j = r->jump;
	ft_ps after =
		rec->next_sent < j->n_sent ? j->sent[rec->next_sent].at : j->length;

	evq_put(&e->q, &r->stream[FT_STREAM_COMPUTE].event, rec->from + after);
}

/* Would its streams share their links as before, if they came back to them? */
static bool may_come_back(const struct part_state *r)
{
	for (unsigned left = r->running; left; left &= left - 1)
		if (r->stream[__builtin_ctz(left)].run.share < 1)
			return false;
	return true;
}

static void leave(struct engine *e, struct part_state *r,
		  const struct program_pass *pass, struct jump *j)
{
	struct stood *stood = recording_of(e, r)->stood;

	jump_note_begin(e, r, pass, j);
	for (int i = 0; i < FT_STREAMS; i++) {
		struct stream *s = &r->stream[i];

		if (is_receive(i))
			continue;
		stood[i].run = s->run;
		if (s->state == RUNNING || s->state == TO_LAUNCH)
			stood[i].due = evq_due(&e->q, &s->event);
		evq_drop(&e->q, &s->event);
		if (s->state == RUNNING)
			rates_leave(&e->rates, &s->run);
	}
	e->rates.n_changed = 0; /* its own, that left too */
	r->jump = j;
	await_next(e, r);
}

/* Takes so many ops of a stream as completed. */
static void move_to(struct part_state *r, struct stream *s, uint32_t completed)
{
	s->number += completed - s->completed;
	s->completed = completed;
	s->held_to = 0;
	r->queued &= ~(1u << s->id);
	if (s->completed != s->launched) {
		r->queued |= 1u << s->id;
		engine_find_head(r, s);
	}
}

/* The stream as it was at the end. */
static void set_up(struct engine *e, struct part_state *r, struct stream *s,
		   const struct stream_end *end)
{
	move_to(r, s, recording_of(e, r)->base[s->id] + (uint32_t)end->done);
	s->state = end->state;
	if (s->state == RUNNING || s->state == TO_LAUNCH)
		evq_put(&e->q, &s->event, e->q.now + end->due);
	if (s->state != RUNNING)
		return;
	s->run = end->run; /* its flow is gone, and made again where there was one */
	s->run.at += e->q.now;
	s->began = e->q.now + end->began;
	if (s->id >= FT_STREAM_GATHER)
		rates_enter(&e->rates, &s->run, s->part,
			    &r->of->timing[s->head->op->work]);
	r->running |= 1u << s->id;
}

/* What the host launched while the pass ran, each time that there was room or what it waited
 * for was over. */
static void launch_meanwhile(struct engine *e, struct part_state *r)
{
	const struct recording *rec = recording_of(e, r);
	struct stream *s = &r->stream[FT_STREAM_COMPUTE];
	uint32_t before = s->completed;

	while (r->host_blocked && !e->crowded) {
		bool awaits = r->awaited.stream != FT_STREAMS;
		uint32_t need = awaits ? r->awaited.number + 1 - before :
					 s->launched - QUEUE_DEPTH - before;

		if (!need || need > r->jump->n_done)
			break;
		move_to(r, s, before + need);
		engine_launch(e, r, rec->from + r->jump->done_at[need - 1]);
	}
}

/* All but what follows from its last op, which is over now. */
static void land(struct engine *e, struct part_state *r)
{
	struct stream *compute = &r->stream[FT_STREAM_COMPUTE];
	struct jump *j = r->jump;

	launch_meanwhile(e, r);
	r->running = 1u << FT_STREAM_COMPUTE;
	for (int i = 0; i < FT_STREAMS; i++)
		if (!is_receive(i))
			set_up(e, r, &r->stream[i], &j->end[i]);
	compute->state = RUNNING;
	compute->run = j->end[FT_STREAM_COMPUTE].run;
	compute->began = e->q.now + j->end[FT_STREAM_COMPUTE].began;
	for (int i = 0; i < 5; i++)
		r->spent[i] += j->spent[i];
	r->state = j->state;
	r->since = e->q.now;
	e->out->events += j->n_over;
	e->out->jumped += j->n_over;
	j->times += r->of->pipeline == 0;
	r->jump = NULL;
	engine_finish(e, compute);
}

void jump_on(struct engine *e, struct part_state *r)
{
	struct recording *rec = recording_of(e, r);
	const struct jump *j = r->jump;
	const struct sent *sent = &j->sent[rec->next_sent];

	if (rec->next_sent == j->n_sent) {
		land(e, r);
		return;
	}
	rec->next_sent++;
	e->out->events--; /* it is counted with all of the pass */
	await_next(e, r);
	engine_deliver(e, &r->stream[sent->stream], sent->reverse);
}

/* The stream as it was when its part left. */
static void come_back(struct engine *e, struct part_state *r, struct stream *s,
		      const struct stood *stood)
{
	if (s->state != RUNNING && s->state != TO_LAUNCH)
		return;
	evq_put(&e->q, &s->event, stood->due);
	if (s->state != RUNNING)
		return;
	s->run = stood->run;
	if (s->id >= FT_STREAM_GATHER)
		rates_enter(&e->rates, &s->run, s->part,
			    &r->of->timing[s->head->op->work]);
}

void jump_interrupt(struct engine *e, struct part_state *r)
{
	const struct recording *rec;
	ft_ps now = e->q.now;

	r->recording = NULL;
	if (!r->jump)
		return;
	rec = recording_of(e, r);
	evq_drop(&e->q, &r->stream[FT_STREAM_COMPUTE].event);
	e->q.now = rec->from;
	r->jump = NULL;
	r->n_sent_before = rec->next_sent;
	for (int i = 0; i < FT_STREAMS; i++)
		if (!is_receive(i))
			come_back(e, r, &r->stream[i], &rec->stood[i]);
	e->rates.n_changed = 0;
	engine_replay(e, now);
}

void jump_or_record(struct engine *e, struct part_state *r)
{
	const struct stream *compute = &r->stream[FT_STREAM_COMPUTE];
	const struct program_class *c = &r->program->of[r->of->rank_class];
	const struct program_pass *pass =
		&c->pass[c->pass_of[launch_at(r, compute->at)->call]];
	struct jump_key k;
	struct jump **slot;

	r->recording = NULL;
	if (e->periods)
		period_or_note(e, r, pass);
	slot = jump_find(e, r, pass, &k);
	if (!slot)
		return;
	if (*slot && (*slot)->usable && may_come_back(r))
		leave(e, r, pass, *slot);
	else if (!*slot && e->jumps->n < MOST_JUMPS)
		jump_record(e, r, pass, &k, slot);
}

void jumps_count(struct engine *e)
{
	struct engine_output *out = e->out;

	for (size_t i = 0; i < e->jumps->n; i++) {
		const struct jump *j = e->jumps->all[i];

		for (size_t k = 0; k < j->n_on; k++) {
			ft_ps *sum = &out->work_time[j->on[k].work];

			*sum = engine_add_up(*sum, j->times, j->on[k].time);
			out->work_count[j->on[k].work] += j->times * j->on[k].count;
		}
	}
}
