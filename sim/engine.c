/* sim/engine.c - hosts launch, streams run, rates change, time adds up */
#include "sim/engine.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "sim/evq.h"
#include "sim/rates.h"
#include "sim/timeline.h"

enum { QUEUE_DEPTH = 1024 };

struct wait {
	uint8_t stream; /* FT_STREAMS: none */
	uint32_t number;
};

struct entry { /* an op in a stream's queue */
	const struct ft_op *op;
	ft_ps launched;
	struct wait wait[FT_OP_WAITS];
};

enum stream_state { IDLE, TO_LAUNCH, RUNNING, MEETING };

struct stream {
	struct event event; /* first: event to stream is a cast */
	uint8_t id, state;
	uint32_t class;
	struct entry *ring; /* [cap], a power of two */
	uint32_t cap, launched, completed; /* launched - completed are queued */
	uint32_t arrived;                  /* receive: what peers have sent */
	struct running run;
	ft_ps began;
};

struct rank {
	struct stream stream[FT_STREAMS];
	struct wait event[FT_EVENTS];
	size_t next_call;
	uint32_t repeat_done;
	ft_ps host_now;
	bool host_blocked;
	uint8_t state;    /* enum phase */
	ft_ps since;
	ft_ps spent[5];
	ft_ps end;
	unsigned queued;   /* bit i: stream i has ops launched and not over */
	int64_t n_running; /* streams RUNNING or MEETING */
};

enum phase { OPTIMIZER, COMPUTE, EXPOSED, BUBBLE, HOST };

struct engine {
	struct arena *mem;
	const struct engine_input *in;
	struct engine_output *out;
	struct evq q;
	struct rank *rank;
	struct stream *meeting; /* a tied embedding's first arrival */
};

static bool is_receive(int stream)
{
	return stream == FT_STREAM_RECV_FORWARD ||
	       stream == FT_STREAM_RECV_BACKWARD;
}

static bool is_send(int stream)
{
	return stream == FT_STREAM_SEND_FORWARD ||
	       stream == FT_STREAM_SEND_BACKWARD;
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

static enum phase phase_of(const struct engine *e, struct rank *r)
{
	const struct stream *compute = &r->stream[FT_STREAM_COMPUTE];
	bool bubble = false;

	if (compute->state == RUNNING)
		return compute->run.optimizer ? OPTIMIZER : COMPUTE;
	if (r->stream[FT_STREAM_COPY].state == RUNNING)
		return COMPUTE;
	for (unsigned left = r->queued >> FT_STREAM_GATHER << FT_STREAM_GATHER;
	     left; left &= left - 1) {
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

static void account(struct engine *e, struct rank *r)
{
	r->spent[r->state] += e->q.now - r->since;
	r->since = e->q.now;
}

static void rephase(struct engine *e, struct rank *r)
{
	account(e, r);
	r->state = (uint8_t)phase_of(e, r);
}

/* ---- rates ----------------------------------------------------------------- */

static void rerate(struct engine *e, struct rank *r)
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
	rates_of(run, n, e->in->copy_beside_gemm, rate);
	for (int i = 0; i < n; i++)
		if (rate[i] != run[i]->rate)
			evq_put(&e->q, &owner[i]->event,
				running_change(run[i], e->q.now, rate[i]));
}

/* ---- starting and ending ops ------------------------------------------------ */

static void finish(struct engine *e, struct stream *s);

static void start(struct engine *e, struct stream *s)
{
	struct rank *r = &e->rank[s->class];
	const struct ft_op *op = head(s)->op;
	const struct cost *c = &e->in->cost[op->work];

	s->state = RUNNING;
	s->began = e->q.now;
	running_begin(&s->run, c, s->id, op->optimizer, e->q.now);
	evq_put(&e->q, &s->event, e->q.now + c->duration);
	r->n_running++;
	if (r->n_running > 1)
		rerate(e, r);
}

static bool met(const struct rank *r, const struct entry *in)
{
	for (int i = 0; i < FT_OP_WAITS; i++)
		if (in->wait[i].stream < FT_STREAMS &&
		    r->stream[in->wait[i].stream].completed <= in->wait[i].number)
			return false;
	return true;
}

static const struct ft_work *work_of(const struct engine *e,
				     const struct entry *in)
{
	return &e->in->graph->work[in->op->work];
}

/* The first of the two tied stages waits; the second starts both. */
static void meet(struct engine *e, struct stream *s)
{
	if (!e->meeting) {
		e->meeting = s;
		s->state = MEETING;
		return;
	}
	struct stream *first = e->meeting;

	e->meeting = NULL;
	start(e, first);
	start(e, s);
	rephase(e, &e->rank[first->class]);
}

/* Start the op at the head if nothing holds it; note why not, else. */
static void try_start(struct engine *e, struct stream *s)
{
	struct rank *r = &e->rank[s->class];
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
		if (s->arrived > s->completed)
			finish(e, s);
		return;
	}
	if (work_of(e, in)->kind == FT_COMMUNICATION &&
	    work_of(e, in)->communication.group == FT_GROUP_EMBEDDING) {
		meet(e, s);
		return;
	}
	start(e, s);
}

static void launch(struct engine *e, struct rank *r);

static void wake_all(struct engine *e, struct rank *r)
{
	for (unsigned left = r->queued; left; left &= left - 1) {
		struct stream *s = &r->stream[__builtin_ctz(left)];

		if (s->state == IDLE)
			try_start(e, s);
	}
}

/* A send arrives: the next (previous) stage's receive may end. */
static void deliver(struct engine *e, const struct stream *s)
{
	size_t n = e->in->graph->n_classes;
	bool forward = s->id == FT_STREAM_SEND_FORWARD;
	size_t peer = (s->class + (forward ? 1 : n - 1)) % n;
	struct stream *to =
		&e->rank[peer].stream[forward ? FT_STREAM_RECV_FORWARD :
						FT_STREAM_RECV_BACKWARD];

	to->arrived++;
	try_start(e, to);
}

static void count(struct engine *e, struct stream *s)
{
	const struct ft_op *op = head(s)->op;

	e->out->work_time[op->work] += e->q.now - s->began;
	e->out->work_count[op->work]++;
	if (e->in->timeline)
		timeline_op(e->in->timeline, &e->in->graph->work[op->work],
			    (int)s->class, s->id, s->began, e->q.now);
}

static void finish(struct engine *e, struct stream *s)
{
	struct rank *r = &e->rank[s->class];
	bool ran = s->state == RUNNING;

	if (ran) {
		count(e, s);
		r->n_running--;
	}
	s->state = IDLE;
	if (++s->completed == s->launched)
		r->queued &= ~(1u << s->id);
	r->end = e->q.now;
	if (r->host_blocked)
		launch(e, r);
	wake_all(e, r);
	if (ran && r->n_running)
		rerate(e, r);
	if (is_send(s->id))
		deliver(e, s);
	rephase(e, r);
}

/* ---- the host ----------------------------------------------------------------- */

static struct wait resolve(const struct rank *r, uint8_t code)
{
	struct wait none = { FT_STREAMS, 0 };
	int stream = code - FT_TAIL;

	if (code == FT_EVENT_NONE)
		return none;
	if (code < FT_EVENTS)
		return r->event[code];
	if (!r->stream[stream].launched)
		return none;
	return (struct wait){ (uint8_t)stream, r->stream[stream].launched - 1 };
}

static void enqueue(struct engine *e, struct rank *r, const struct ft_op *op,
		    ft_ps at)
{
	struct stream *s = &r->stream[op->stream];
	struct entry *in;

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
	for (int i = 0; i < FT_OP_WAITS; i++)
		in->wait[i] = resolve(r, op->wait[i]);
	if (op->record < FT_EVENTS)
		r->event[op->record] = (struct wait){ op->stream, s->launched };
	s->launched++;
	r->queued |= 1u << op->stream;
}

static void launch_call(struct engine *e, struct rank *r, uint32_t segment)
{
	const struct ft_segment *seg = &e->in->graph->segment[segment];
	const ft_ps *offset = e->in->host + e->in->host_begin[segment];
	bool free_host = e->in->host_free;

	for (size_t i = 0; i < seg->n_ops; i++)
		enqueue(e, r, &seg->op[i],
			r->host_now + (free_host ? 0 : offset[i]));
	if (!free_host)
		r->host_now += e->in->host_total[segment];
}

/* Launch calls until the compute queue is full or the program is over. */
static void launch(struct engine *e, struct rank *r)
{
	const struct ft_class *c = &e->in->graph->class[r - e->rank];
	const struct stream *s = &r->stream[FT_STREAM_COMPUTE];

	if (r->host_blocked && r->host_now < e->q.now)
		r->host_now = e->q.now;
	while (r->next_call < c->n_calls) {
		r->host_blocked = s->launched - s->completed > QUEUE_DEPTH;
		if (r->host_blocked)
			return;
		launch_call(e, r, c->call[r->next_call].segment);
		if (++r->repeat_done == c->call[r->next_call].repeat) {
			r->repeat_done = 0;
			r->next_call++;
		}
	}
	r->host_blocked = false;
}

/* ---- the whole ----------------------------------------------------------------- */

static void init(struct engine *e)
{
	size_t n = e->in->graph->n_classes;

	evq_init(&e->q, e->mem);
	e->rank = ARENA_ARRAY(e->mem, n, struct rank);
	for (size_t c = 0; c < n; c++) {
		struct rank *r = &e->rank[c];

		for (int i = 0; i < FT_EVENTS; i++)
			r->event[i].stream = FT_STREAMS;
		for (int i = 0; i < FT_STREAMS; i++) {
			struct stream *s = &r->stream[i];

			s->id = (uint8_t)i;
			s->class = (uint32_t)c;
			s->cap = 16;
			s->ring = ARENA_ARRAY(e->mem, s->cap, struct entry);
		}
		r->state = HOST;
	}
}

static bool stuck(struct engine *e, struct ft_error *err)
{
	for (size_t c = 0; c < e->in->graph->n_classes; c++)
		for (int i = 0; i < FT_STREAMS; i++) {
			struct stream *s = &e->rank[c].stream[i];

			if (empty(s))
				continue;
			ft_fail(err, NULL, "%s can never go on: '%s' on stream "
				"%s waits for something never launched",
				e->in->graph->class[c].name,
				work_of(e, head(s))->name,
				ft_stream_name((enum ft_stream)i));
			return true;
		}
	return false;
}

static void collect(struct engine *e)
{
	struct engine_output *out = e->out;

	for (size_t c = 0; c < e->in->graph->n_classes; c++) {
		struct rank *r = &e->rank[c];
		struct ft_class_result *to = &out->class[c];

		to->end = r->end;
		to->compute = r->spent[COMPUTE];
		to->exposed = r->spent[EXPOSED];
		to->bubble = r->spent[BUBBLE];
		to->host = r->spent[HOST];
		to->optimizer = r->spent[OPTIMIZER];
		if (r->end > out->end)
			out->end = r->end;
	}
}

bool engine_run(struct arena *mem, const struct engine_input *in,
		struct engine_output *out, struct ft_error *err)
{
	struct engine e = { .mem = mem, .in = in, .out = out };
	struct event *ev;

	init(&e);
	for (size_t c = 0; c < in->graph->n_classes; c++) {
		launch(&e, &e.rank[c]);
		wake_all(&e, &e.rank[c]);
		rephase(&e, &e.rank[c]);
	}
	while ((ev = evq_take(&e.q))) {
		struct stream *s = (struct stream *)ev;
		struct rank *r = &e.rank[s->class];

		out->events++;
		if (s->state == RUNNING) {
			finish(&e, s);
		} else {
			s->state = IDLE;
			try_start(&e, s);
			rephase(&e, r);
		}
	}
	if (stuck(&e, err))
		return false;
	collect(&e);
	return true;
}
