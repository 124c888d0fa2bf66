/* sim/engine_host.c - hosts: programs unrolled into the queues of their streams */
#include <string.h>

#include "sim/engine_kineto.h"
#include "sim/engine_state.h"

#include "base/arena.h"
#include "base/limits.h"

enum { WAIT_NUMBER = (1 << 28) - 1 };

/* The first launch of which some stream has ops left. */
static uint32_t first_queued(const struct part_state *r)
{
	uint32_t first = r->n_launches;

	for (unsigned left = r->queued; left; left &= left - 1) {
		uint32_t at = r->stream[__builtin_ctz(left)].at;

		first = r->n_launches - at > r->n_launches - first ? at : first;
	}
	return first;
}

/* Room for one more: launches behind which all streams are come off the ring. */
static struct launch *new_launch(struct engine *e, struct part_state *r)
{
	if (r->n_launches - r->first == r->cap)
		r->first = first_queued(r);
	if (r->n_launches - r->first == r->cap) {
		struct launch *ring = ARENA_ARRAY(e->mem, 2 * r->cap, struct launch);

		for (uint32_t i = r->first; i != r->n_launches; i++)
			ring[i & (2 * r->cap - 1)] = r->ring[i & (r->cap - 1)];
		r->ring = ring;
		r->cap *= 2;
	}
	return &r->ring[r->n_launches++ & (r->cap - 1)];
}

static void note_records(struct part_state *r, const struct launch *l)
{
	const struct piece *p = l->piece;

	for (int i = 0; i < FT_EVENTS; i++)
		if (p->record_stream[i] < FT_STREAMS)
			r->event[i] = (struct wait){ p->record_stream[i] & 15u,
						     (l->base[p->record_stream[i]] +
						      p->record[i] - 1) &
							     WAIT_NUMBER };
}

static void put(struct engine *e, struct part_state *r, const struct piece *p,
		const ft_ps *host)
{
	struct launch *l = new_launch(e, r);

	l->piece = p;
	l->began = r->call_began;
	l->host = host;
	l->call = (uint32_t)r->next_call;
	l->turn = r->repeat_done;
	l->slot = r->slot;
	memcpy(l->event, r->event, sizeof(l->event));
	for (int i = 0; i < FT_STREAMS; i++)
		l->base[i] = r->stream[i].launched;
	for (unsigned left = p->streams; left; left &= left - 1) {
		struct stream *s = &r->stream[__builtin_ctz(left)];

		if (s->launched == s->completed) {
			s->at = r->n_launches - 1;
			s->number = 0;
			s->head = &p->op[p->begin[s->id]];
		}
		s->launched += ops_on(p, s->id);
		e->crowded |= s->launched - s->completed > LIMIT_STREAM_OPS;
	}
	r->queued |= p->streams;
	note_records(r, l);
}

ft_ps engine_launched(const struct engine *e, const struct stream *s)
{
	const struct launch *l = launch_at(&e->part[s->part], s->at);

	return l->began + (l->host ? l->host[s->head->place] : 0);
}

void engine_find_head(const struct part_state *r, struct stream *s)
{
	while (s->at != r->n_launches &&
	       s->number >= ops_on(launch_at(r, s->at)->piece, s->id)) {
		s->number -= ops_on(launch_at(r, s->at)->piece, s->id);
		s->at++;
	}
	if (s->at != r->n_launches) {
		const struct piece *p = launch_at(r, s->at)->piece;

		s->head = &p->op[p->begin[s->id] + s->number];
	}
}

/* The host stops behind this op until it is over. */
static void await(struct part_state *r, const struct stream *s)
{
	r->awaited = (struct wait){ s->id & 15u, (s->launched - 1) & WAIT_NUMBER };
	r->host_blocked = true;
}

/* What the host waited for is over: it goes on from there. */
static bool arrived(struct engine *e, struct part_state *r, ft_ps now)
{
	if (r->awaited.stream == FT_STREAMS)
		return true;
	if (((r->stream[r->awaited.stream].completed - 1 - r->awaited.number) &
	     WAIT_NUMBER) > WAIT_NUMBER / 2)
		return false;
	if (now > r->host_now) {
		if (e->in->timeline && e->in->form == FT_TIMELINE_KINETO)
			rank_host(e, r, r->host_now, now);
		r->call_began += now - r->host_now;
		r->host_now = now;
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
	const struct engine_job *job = r->of->job;
	const struct ft_segment *seg = &job->graph->segment[segment];
	const ft_ps *host =
		job->host_free ? NULL : job->host + job->host_begin[segment];
	const struct program *program = r->program;
	size_t n = program->begin[segment + 1] - program->begin[segment];

	if (!r->next_piece)
		r->call_began = r->call_from = r->host_now;
	while (r->next_piece < n && !e->crowded) {
		const struct piece *p =
			&program->piece[program->begin[segment] + r->next_piece++];

		put(e, r, p, host);
		if (p->host_waits) {
			r->host_now = r->call_began + (host ? host[p->last] : 0);
			await(r, &r->stream[seg->op[p->last].stream]);
			return false;
		}
	}
	r->next_piece = 0;
	r->host_now = r->call_began + (host ? job->host_total[segment] : 0);
	if (r->before && host)
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
	       !r->next_piece;
}

void engine_launch(struct engine *e, struct part_state *r, ft_ps now)
{
	const struct engine_part *p = r->of;

	if (!arrived(e, r, now))
		return;
	if (r->host_blocked && !r->next_piece && r->host_now < now)
		r->host_now = now;
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

/* Parts of one job share its program. */
static const struct program *find_program(struct engine *e, size_t part)
{
	const struct engine_job *job = e->in->part[part].job;

	for (size_t p = 0; p < part; p++)
		if (e->in->part[p].job == job)
			return e->part[p].program;
	return program_of(job->graph, QUEUE_DEPTH, e->mem);
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
	}
	r->cap = 64;
	r->ring = ARENA_ARRAY(e->mem, r->cap, struct launch);
	r->of = &e->in->part[part];
	r->program = find_program(e, part);
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
	e->anchored = ARENA_ARRAY(e->mem, in->n_parts, struct part_state *);
	e->jumps = jumps_new(e);
	e->periods = e->jumps ? periods_new(e) : NULL;
}

void engine_collect(struct engine *e)
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
