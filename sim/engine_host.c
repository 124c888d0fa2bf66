/* sim/engine_host.c - hosts: programs unrolled into the queues of their streams */
#include "sim/engine_state.h"

#include "base/arena.h"
#include "base/limits.h"

enum { QUEUE_DEPTH = 1024, WAIT_NUMBER = (1 << 28) - 1 };

static struct wait resolve(const struct part_state *r, uint8_t code)
{
	struct wait none = { FT_STREAMS, 0 };
	int stream = code - FT_TAIL;

	if (code == FT_EVENT_NONE)
		return none;
	if (code < FT_EVENTS)
		return r->event[code];
	if (!r->stream[stream].launched)
		return none;
	return (struct wait){ (uint32_t)stream & 15,
			      (r->stream[stream].launched - 1) & WAIT_NUMBER };
}

static void enqueue(struct engine *e, struct part_state *r, const struct ft_op *op,
		    ft_ps at)
{
	struct stream *s = &r->stream[op->stream];
	struct entry *in;
	int n = 0;

	if (s->launched - s->completed >= LIMIT_STREAM_OPS) {
		e->crowded = true;
		return;
	}
	if (s->launched - s->completed == s->cap) {
		struct entry *ring = ARENA_ARRAY(e->mem, 2 * s->cap, struct entry);

		for (uint32_t i = s->completed; i != s->launched; i++)
			ring[i & (2 * s->cap - 1)] = s->ring[i & (s->cap - 1)];
		s->ring = ring;
		s->cap *= 2;
	}
	in = &s->ring[s->launched & (s->cap - 1)];
	in->op = op;
	in->launched = at;
	in->call = (uint32_t)r->next_call;
	in->turn = r->repeat_done;
	in->slot = r->slot;
	for (int i = 0; i < FT_OP_WAITS && op->wait[i] != FT_EVENT_NONE; i++) {
		struct wait w = resolve(r, op->wait[i]);

		if (w.stream < FT_STREAMS)
			in->wait[n++] = w;
	}
	if (n < FT_OP_WAITS)
		in->wait[n].stream = FT_STREAMS;
	if (op->record < FT_EVENTS)
		r->event[op->record] =
			(struct wait){ op->stream & 15u, s->launched & WAIT_NUMBER };
	s->launched++;
	r->queued |= 1u << op->stream;
}

/* The host stops behind this op until it is over. */
static void await(struct part_state *r, const struct ft_op *op, size_t next_op)
{
	r->awaited = resolve(r, (uint8_t)(FT_TAIL + op->stream));
	r->next_op = next_op;
	r->host_blocked = true;
}

/* What the host waited for is over: it goes on from there. */
static bool arrived(const struct engine *e, struct part_state *r)
{
	if (r->awaited.stream == FT_STREAMS)
		return true;
	if (((r->stream[r->awaited.stream].completed - 1 - r->awaited.number) &
	     WAIT_NUMBER) > WAIT_NUMBER / 2)
		return false;
	if (e->q.now > r->host_now) {
		r->call_began += e->q.now - r->host_now;
		r->host_now = e->q.now;
	}
	r->awaited.stream = FT_STREAMS;
	return true;
}

/* The slot of the next call: the last that begins there or before. */
static void find_slot(const struct ft_class *c, struct part_state *r)
{
	while (r->next_slot < c->n_slots && c->slot[r->next_slot].call <= r->next_call)
		r->next_slot++;
	r->slot = (uint32_t)(r->next_slot ? r->next_slot - 1 : c->n_slots);
}

/* true: all of it was launched. */
static bool launch_call(struct engine *e, struct part_state *r, uint32_t segment)
{
	const struct engine_job *job = part_of(e, r)->job;
	const struct ft_segment *seg = &job->graph->segment[segment];
	const ft_ps *offset = job->host + job->host_begin[segment];
	bool free_host = job->host_free;

	if (!r->next_op)
		r->call_began = r->call_from = r->host_now;
	for (size_t i = r->next_op; i < seg->n_ops && !e->crowded; i++) {
		ft_ps at = r->call_began + (free_host ? 0 : offset[i]);

		enqueue(e, r, &seg->op[i], at);
		if (seg->op[i].host_waits) {
			r->host_now = at;
			await(r, &seg->op[i], i + 1);
			return false;
		}
	}
	r->next_op = 0;
	r->host_now = r->call_began + (free_host ? 0 : job->host_total[segment]);
	if (r->drawn && !free_host)
		draw_call(e, r, (uint32_t)r->next_call, r->repeat_done);
	return true;
}

/* Calls, until the queue is full, the host waits for an op, or all are launched: true. */
static bool launch_calls(struct engine *e, struct part_state *r,
			 const struct ft_class *c)
{
	const struct stream *s = &r->stream[FT_STREAM_COMPUTE];

	while (r->next_call < c->n_calls && !e->crowded &&
	       r->host_now <= FT_PS_LONGEST) {
		r->host_blocked = s->launched - s->completed > QUEUE_DEPTH;
		if (!r->host_blocked)
			find_slot(c, r);
		if (r->host_blocked ||
		    !launch_call(e, r, c->call[r->next_call].segment))
			return false;
		if (++r->repeat_done == c->call[r->next_call].repeat) {
			r->repeat_done = 0;
			r->next_call++;
		}
	}
	return true;
}

/* A job that starts over begins its next step when this one is over. */
static bool ends_step(const struct engine_part *p, const struct part_state *r)
{
	return p->job->again && r->queued && !r->next_call && !r->repeat_done &&
	       !r->next_op;
}

void engine_launch(struct engine *e, struct part_state *r)
{
	const struct engine_part *p = part_of(e, r);

	if (!arrived(e, r))
		return;
	if (r->host_blocked && !r->next_op && r->host_now < e->q.now)
		r->host_now = e->q.now;
	if (ends_step(p, r))
		return;
	if (!launch_calls(e, r, &p->job->graph->rank_class[p->rank_class]))
		return;
	if (p->job->again && e->n_going) {
		r->host_blocked = true;
		r->next_call = r->next_slot = 0;
		return;
	}
	r->host_blocked = false;
}

static void init_rank(struct engine *e, size_t part)
{
	struct part_state *r = &e->part[part];

	for (int i = 0; i < FT_EVENTS; i++)
		r->event[i].stream = FT_STREAMS;
	r->awaited.stream = FT_STREAMS;
	for (int i = 0; i < FT_STREAMS; i++) {
		struct stream *s = &r->stream[i];

		s->id = (uint8_t)i;
		s->part = (uint32_t)part;
		s->cap = 16;
		s->ring = ARENA_ARRAY(e->mem, s->cap, struct entry);
	}
	r->state = HOST;
	e->n_going += !e->in->part[part].job->again;
	if (e->in->timeline && e->in->form == FT_TIMELINE_CHROME)
		draw_part(e, part);
}

static void init_teams(struct engine *e)
{
	const struct engine_input *in = e->in;
	uint32_t n = 0;

	e->team_of = ARENA_ARRAY(e->mem, in->n_parts, uint32_t);
	e->team_begin = ARENA_ARRAY(e->mem, in->n_teams + 1, uint32_t);
	for (uint32_t t = 0; t < in->n_teams; t++) {
		for (uint32_t p = 0; p < in->n_parts; p++)
			if (in->part[p].team == t)
				e->team_of[n++] = p;
		e->team_begin[t + 1] = n;
	}
}

void engine_init(struct engine *e)
{
	const struct engine_input *in = e->in;

	evq_init(&e->q, e->mem);
	rates_init(&e->rates, e->mem, in->n_parts, in->n_links);
	e->part = ARENA_ARRAY(e->mem, in->n_parts, struct part_state);
	e->tied = ARENA_ARRAY(e->mem, in->n_pipelines, struct stream *);
	init_teams(e);
	for (size_t p = 0; p < in->n_parts; p++)
		init_rank(e, p);
}
