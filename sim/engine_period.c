/* sim/engine_period.c - a step of one part, whose micro-batches come to go as those before */
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "sim/engine_jump.h"

/*
 * Such a part depends on nothing but its own state. Where two passes begin in states that are
 * alike, as seen from the moment and from the place in the program, what lies between them comes
 * again as often as the program goes on alike, and is added that often.
 */
enum { MOMENTS = 4, WAIT_BITS = (1 << 28) - 1 };

/* A pass began: the state, and what had been counted up to then. */
struct moment {
	uint64_t *word; /* [n_words] */
	size_t n_words, cap_words;
	ft_ps now;
	size_t call;
	uint32_t n_launches, completed[FT_STREAMS];
	ft_ps spent[5];
	uint64_t events, jumped;
	ft_ps *work_time;     /* [n_works] */
	uint64_t *work_count; /* [n_works] */
	uint64_t *times;      /* [MOST_JUMPS] of each jump */
	size_t n_jumps;
};

struct periods {
	struct moment moment[MOMENTS]; /* in turn */
	uint64_t n;		       /* since the start */
	struct launch *ring;	       /* [cap] room */
	uint32_t cap;
};

struct periods *periods_new(struct engine *e)
{
	const struct engine_input *in = e->in;
	size_t n_works = in->part[0].job->graph->n_works;
	struct periods *p;

	if (in->n_parts > 1)
		return NULL;
	p = ARENA_NEW(e->mem, struct periods);
	for (int i = 0; i < MOMENTS; i++) {
		p->moment[i].work_time = ARENA_ARRAY(e->mem, n_works, ft_ps);
		p->moment[i].work_count = ARENA_ARRAY(e->mem, n_works, uint64_t);
		p->moment[i].times = ARENA_ARRAY(e->mem, MOST_JUMPS, uint64_t);
	}
	return p;
}

/* ---- the state ------------------------------------------------------------------------- */

static void add(struct engine *e, struct moment *m, const void *what)
{
	if (m->n_words == m->cap_words)
		m->word = ARENA_GROW(e->mem, m->word, &m->cap_words);
	memcpy(&m->word[m->n_words++], what, sizeof(uint64_t));
}

static void add_number(struct engine *e, struct moment *m, uint64_t n)
{
	add(e, m, &n);
}

/* An op that is awaited: how many of its stream are over before it. */
static void add_wait(struct engine *e, struct moment *m, const struct part_state *r,
		     const struct wait *w)
{
	uint32_t left =
		w->stream == FT_STREAMS ?
			0 :
			(w->number + 1 - r->stream[w->stream].completed) & WAIT_BITS;

	/* over: a number below 0 */
	if (left > WAIT_BITS / 2)
		left = 0;
	add_number(e, m, (uint64_t)left << 8 | (left ? w->stream : FT_STREAMS));
}

/* How many events come before this one. */
static uint64_t rank_of(const struct engine *e, const struct part_state *r,
			const struct event *ev)
{
	uint64_t n = 0;

	for (int i = 0; i < FT_STREAMS; i++)
		n += r->stream[i].event.slot &&
		     evq_comes_before(&e->q, &r->stream[i].event, ev);
	return n;
}

static void add_stream(struct engine *e, struct moment *m, const struct part_state *r,
		       const struct stream *s)
{
	uint32_t held = s->held_to ? s->held_to - r->stream[s->held_by].completed : 0;

	add_number(e, m, (uint64_t)s->state << 32 | (s->launched - s->completed));
	add_number(e, m, (uint64_t)s->number << 32 | held);
	add_number(e, m, s->held_to ? s->held_by : FT_STREAMS);
	for (int i = 0; i < 2; i++)
		add_number(e, m, s->arrived[i] - s->taken[i]);
	add_number(e, m, r->queued >> s->id & 1 ? r->n_launches - s->at : 0);
	if (s->event.slot) {
		add_number(e, m, (uint64_t)(evq_due(&e->q, &s->event) - e->q.now));
		add_number(e, m, rank_of(e, r, &s->event));
	}
	if (s->state != RUNNING)
		return;
	add(e, m, &s->run.left);
	add(e, m, &s->run.rate);
	add(e, m, &s->run.share);
	add_number(e, m, (uint64_t)(e->q.now - s->run.at));
	add_number(e, m, (uint64_t)(e->q.now - s->began));
}

/* What was launched and is not over; when the host launches it, where that is to come. */
static void add_launch(struct engine *e, struct moment *m, const struct part_state *r,
		       const struct launch *l, size_t call)
{
	const struct engine_job *job = r->of->job;
	const struct ft_call *calls = job->graph->rank_class[r->of->rank_class].call;
	ft_ps until =
		l->began + (l->host ? job->host_total[calls[l->call].segment] : 0);

	add(e, m, &l->piece);
	add_number(e, m, until > e->q.now ? (uint64_t)(l->began - e->q.now) : 0);
	add_number(e, m, (uint64_t)(l->call - call) << 32 | l->turn);
	for (int i = 0; i < FT_STREAMS; i++)
		add_number(e, m, l->base[i] - r->stream[i].completed);
	for (int i = 0; i < FT_EVENTS; i++)
		add_wait(e, m, r, &l->event[i]);
}

static void add_host(struct engine *e, struct moment *m, const struct part_state *r,
		     size_t call)
{
	ft_ps ahead = r->host_now - e->q.now;

	add_number(e, m, ahead > 0 ? (uint64_t)ahead : 0);
	add_number(e, m, r->next_piece ? (uint64_t)(r->host_now - r->call_began) : 0);
	add_number(e, m, r->next_call - call);
	add_number(e, m, (uint64_t)r->next_piece << 32 | r->repeat_done);
	add_number(e, m, (uint64_t)r->state << 8 | r->host_blocked);
	add_wait(e, m, r, &r->awaited);
	for (int i = 0; i < FT_EVENTS; i++)
		add_wait(e, m, r, &r->event[i]);
}

static void look(struct engine *e, struct part_state *r, struct moment *m, size_t call)
{
	uint32_t first = r->n_launches;

	m->n_words = 0;
	m->call = call;
	for (int i = 0; i < FT_STREAMS; i++) {
		const struct stream *s = &r->stream[i];

		add_stream(e, m, r, s);
		if (r->queued >> i & 1 && r->n_launches - s->at > r->n_launches - first)
			first = s->at;
		m->completed[i] = s->completed;
	}
	add_host(e, m, r, call);
	for (uint32_t at = first; at != r->n_launches; at++)
		add_launch(e, m, r, launch_at(r, at), call);
}

static void note_counts(const struct engine *e, const struct part_state *r,
			struct moment *m)
{
	size_t n_works = r->of->job->graph->n_works;

	m->now = e->q.now;
	m->n_launches = r->n_launches;
	memcpy(m->spent, r->spent, sizeof(m->spent));
	m->events = e->out->events;
	m->jumped = e->out->jumped;
	memcpy(m->work_time, e->out->work_time, n_works * sizeof(*m->work_time));
	memcpy(m->work_count, e->out->work_count, n_works * sizeof(*m->work_count));
	m->n_jumps = e->jumps->n;
	for (size_t i = 0; i < m->n_jumps; i++)
		m->times[i] = e->jumps->all[i]->times;
}

/* ---- how often --------------------------------------------------------------------------- */

/* How often the program goes on as between the two: up to where the host is, and so much
 * further. */
static uint64_t comes_again(const struct part_state *r, size_t from, size_t to)
{
	const struct ft_class *c = &r->of->job->graph->rank_class[r->of->rank_class];
	size_t last = r->next_call + (r->repeat_done || r->next_piece), at = to;

	while (at < c->n_calls &&
	       c->call[at].segment == c->call[at - (to - from)].segment &&
	       c->call[at].repeat == c->call[at - (to - from)].repeat)
		at++;
	return at > last ? (at - last) / (to - from) : 0;
}

/* Not beyond what a run may take, so that what is too long ends as if it had been run. */
static uint64_t bounded(uint64_t n, uint64_t each, uint64_t room)
{
	return each && n > room / each ? room / each : n;
}

static uint64_t times_more(const struct engine *e, const struct part_state *r,
			   const struct moment *from, const struct moment *to)
{
	uint64_t n = from->call < to->call ? comes_again(r, from->call, to->call) : 0;

	if (to->now > FT_PS_LONGEST || to->events > LIMIT_STEP_EVENTS)
		return 0;
	n = bounded(n, (uint64_t)(to->now - from->now),
		    (uint64_t)(FT_PS_LONGEST - to->now));
	n = bounded(n, to->events - from->events, LIMIT_STEP_EVENTS - to->events);
	return e->crowded ? 0 : n;
}

/* ---- and so it is later -------------------------------------------------------------------- */

static void move_wait(struct wait *w, const uint32_t by[FT_STREAMS])
{
	if (w->stream < FT_STREAMS)
		w->number = (w->number + by[w->stream]) & WAIT_BITS;
}

static void move_launches(struct engine *e, struct part_state *r, uint32_t launches,
			  size_t calls, const uint32_t by[FT_STREAMS], ft_ps later)
{
	struct periods *p = e->periods;
	uint32_t n = r->n_launches - r->first;

	if (p->cap < r->cap) {
		p->cap = r->cap;
		p->ring = ARENA_ARRAY(e->mem, p->cap, struct launch);
	}
	for (uint32_t i = 0; i < n; i++)
		p->ring[i] = *launch_at(r, r->first + i);
	r->first += launches;
	r->n_launches += launches;
	for (uint32_t i = 0; i < n; i++) {
		struct launch *l = &r->ring[(r->first + i) & (r->cap - 1)];

		*l = p->ring[i];
		l->began += later;
		l->call += (uint32_t)calls;
		for (int s = 0; s < FT_STREAMS; s++)
			l->base[s] += by[s];
		for (int k = 0; k < FT_EVENTS; k++)
			move_wait(&l->event[k], by);
	}
}

static void move_streams(struct part_state *r, uint32_t launches,
			 const uint32_t by[FT_STREAMS], ft_ps later)
{
	for (int i = 0; i < FT_STREAMS; i++) {
		struct stream *s = &r->stream[i];

		s->launched += by[i];
		s->completed += by[i];
		s->at += launches;
		s->run.at += later;
		s->began += later;
		if (s->held_to)
			s->held_to += by[s->held_by];
	}
}

static void move_on(struct engine *e, struct part_state *r, const struct moment *from,
		    const struct moment *to, uint64_t n)
{
	ft_ps later = (ft_ps)n * (to->now - from->now);
	uint32_t launches = (uint32_t)n * (to->n_launches - from->n_launches);
	size_t calls = n * (to->call - from->call);
	uint32_t by[FT_STREAMS];

	for (int i = 0; i < FT_STREAMS; i++)
		by[i] = (uint32_t)n * (to->completed[i] - from->completed[i]);
	move_launches(e, r, launches, calls, by, later);
	move_streams(r, launches, by, later);
	for (int i = 0; i < FT_EVENTS; i++)
		move_wait(&r->event[i], by);
	move_wait(&r->awaited, by);
	evq_later(&e->q, later);
	r->since += later;
	r->host_now += later;
	r->call_began += later;
	r->next_call += calls;
	for (int i = 0; i < 5; i++)
		r->spent[i] += (ft_ps)n * (to->spent[i] - from->spent[i]);
}

static void count_more(const struct engine *e, const struct part_state *r,
		       const struct moment *from, const struct moment *to, uint64_t n)
{
	struct engine_output *out = e->out;

	for (size_t i = 0; i < r->of->job->graph->n_works; i++) {
		out->work_time[i] = engine_add_up(
			out->work_time[i], n, to->work_time[i] - from->work_time[i]);
		out->work_count[i] += n * (to->work_count[i] - from->work_count[i]);
	}
	for (size_t i = 0; i < to->n_jumps; i++)
		e->jumps->all[i]->times +=
			n * (to->times[i] - (i < from->n_jumps ? from->times[i] : 0));
	out->events += n * (to->events - from->events);
	out->jumped += n * (to->events - from->events);
}

void period_or_note(struct engine *e, struct part_state *r,
		    const struct program_pass *pass)
{
	struct periods *p = e->periods;
	const struct launch *l = launch_at(r, r->stream[FT_STREAM_COMPUTE].at);
	struct moment *m = &p->moment[p->n % MOMENTS];

	if (l->call != pass->first || l->turn)
		return;
	engine_account(e, r);
	look(e, r, m, l->call);
	note_counts(e, r, m);
	for (uint64_t back = 1; back < MOMENTS && back <= p->n; back++) {
		const struct moment *from = &p->moment[(p->n - back) % MOMENTS];
		uint64_t n = from->n_words == m->n_words &&
					     !memcmp(from->word, m->word,
						     m->n_words * sizeof(*m->word)) ?
				     times_more(e, r, from, m) :
				     0;

		if (!n)
			continue;
		move_on(e, r, from, m, n);
		count_more(e, r, from, m, n);
		p->n = 0;
		return;
	}
	p->n++;
}
