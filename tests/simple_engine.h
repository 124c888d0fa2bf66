/*
 * tests/simple_engine.h - one step in the obvious way: all ops of all parts laid out, and at each
 * moment each of them looked at
 *
 * Parts are stages of pipelines. What an op waits for is an op; what the host waits for, too. Times
 * are doubles, in picoseconds. Flows on links grow alike until one of their links is full.
 */
#ifndef TESTS_SIMPLE_ENGINE_H
#define TESTS_SIMPLE_ENGINE_H

#include <math.h>

#include "sim/engine.h"
#include "tests/check.h"

enum { SIMPLE_OPS = 2000, SIMPLE_PARTS = 6, SIMPLE_LINKS = 3 * SIMPLE_PARTS };

enum simple_state { SIMPLE_WAITS, SIMPLE_MEETS, SIMPLE_RUNS, SIMPLE_OVER };

struct simple_op {
	const struct ft_op *op;
	const struct ft_work *work;
	const struct work_timing *time;
	double launched; /* had the host waited for nothing */
	double began, left, rate, share;
	int n_waits, wait[FT_OP_WAITS]; /* ops of the same part */
	enum simple_state state;
};

struct simple_part {
	const struct engine_part *of;
	int n;
	struct simple_op op[SIMPLE_OPS];
	int head[FT_STREAMS], last[FT_STREAMS]; /* -1: none */
	int next[SIMPLE_OPS];			/* on the same stream */
	int arrived[2][2];			/* [backward][reverse] */
	double spent[5], end;
	int host_at;	  /* the op behind which the host waits; n: none */
	double host_late; /* for what it has waited */
};

struct simple {
	const struct engine_input *in;
	struct simple_part part[SIMPLE_PARTS];
	double now, end, work_time[64];
	int work_count[64];
};

/* ---- laid out -------------------------------------------------------------------------- */

static inline void simple_add(struct simple_part *p, const struct ft_op *op,
			      double launched, int event[FT_EVENTS])
{
	const struct ft_graph *g = p->of->job->graph;
	int at = p->n++, s = op->stream;
	struct simple_op *x = &p->op[at];

	assert_true(at < SIMPLE_OPS);
	*x = (struct simple_op){ .op = op,
				 .work = &g->work[op->work],
				 .time = &p->of->timing[op->work],
				 .launched = launched };
	for (int i = 0; i < FT_OP_WAITS && op->wait[i] != FT_EVENT_NONE; i++) {
		int on = op->wait[i] < FT_EVENTS ? event[op->wait[i]] :
						   p->last[op->wait[i] - FT_TAIL];

		if (on >= 0)
			x->wait[x->n_waits++] = on;
	}
	p->next[at] = -1;
	if (p->last[s] >= 0)
		p->next[p->last[s]] = at;
	else
		p->head[s] = at;
	p->last[s] = at;
	if (op->record != FT_EVENT_NONE)
		event[op->record] = at;
}

/* The next op behind which the host waits. */
static inline void simple_go_on(struct simple_part *p, int from)
{
	for (p->host_at = from; p->host_at < p->n; p->host_at++)
		if (p->op[p->host_at].op->host_waits)
			return;
}

static inline void simple_lay(struct simple_part *p, const struct engine_part *of)
{
	const struct engine_job *job = of->job;
	const struct ft_class *c = &job->graph->rank_class[of->rank_class];
	int event[FT_EVENTS];
	double host = 0;

	memset(p, 0, sizeof(*p));
	memset(p->head, -1, sizeof(p->head));
	memset(p->last, -1, sizeof(p->last));
	memset(event, -1, sizeof(event));
	p->of = of;
	for (size_t i = 0; i < c->n_calls; i++)
		for (uint32_t k = 0; k < c->call[i].repeat; k++) {
			uint32_t s = c->call[i].segment;
			const struct ft_segment *seg = &job->graph->segment[s];

			for (size_t j = 0; j < seg->n_ops; j++)
				simple_add(p, &seg->op[j],
					   job->host_free ?
						   0 :
						   host + (double)job->host
								   [job->host_begin[s] +
								    j],
					   event);
			host += job->host_free ? 0 : (double)job->host_total[s];
		}
	simple_go_on(p, 0);
}

/* ---- one moment -------------------------------------------------------------------------- */

static inline struct simple_op *simple_head(struct simple_part *p, int stream)
{
	return p->head[stream] < 0 ? NULL : &p->op[p->head[stream]];
}

/* When it is launched; infinite: the host waits before. */
static inline double simple_launched(const struct simple_part *p,
				     const struct simple_op *o)
{
	return o - p->op > p->host_at ? INFINITY : o->launched + p->host_late;
}

static inline bool simple_receives(int stream)
{
	return stream == FT_STREAM_RECV_FORWARD || stream == FT_STREAM_RECV_BACKWARD;
}

static inline bool simple_sends(int stream)
{
	return stream == FT_STREAM_SEND_FORWARD || stream == FT_STREAM_SEND_BACKWARD;
}

static inline void simple_over(struct simple *x, struct simple_part *p, int stream)
{
	struct simple_op *o = simple_head(p, stream);
	bool back = stream == FT_STREAM_SEND_BACKWARD;

	if (o->state == SIMPLE_RUNS && p->of->pipeline == 0) {
		x->work_time[o->op->work] += x->now - o->began;
		x->work_count[o->op->work]++;
	}
	if (o - p->op == p->host_at) {
		p->host_late = fmax(p->host_late, x->now - o->launched);
		simple_go_on(p, p->host_at + 1);
	}
	o->state = SIMPLE_OVER;
	p->head[stream] = p->next[p->head[stream]];
	p->end = x->now;
	if (simple_sends(stream))
		x->part[back != o->op->reverse ? p->of->before : p->of->next]
			.arrived[back][o->op->reverse]++;
}

static inline bool simple_may(const struct simple *x, struct simple_part *p, int stream)
{
	const struct simple_op *o = simple_head(p, stream),
			       *c = simple_head(p, FT_STREAM_COMPUTE);

	if (!o || o->state != SIMPLE_WAITS || simple_launched(p, o) > x->now)
		return false;
	for (int i = 0; i < o->n_waits; i++)
		if (p->op[o->wait[i]].state != SIMPLE_OVER)
			return false;
	if (simple_receives(stream))
		return p->arrived[stream == FT_STREAM_RECV_BACKWARD][o->op->reverse] >
		       0;
	/* a product that holds all leaves no room to what comes later */
	return stream < FT_STREAM_GATHER || o->time->copy_engine || !c ||
	       c->state != SIMPLE_RUNS || !c->time->holds_all || c->began >= x->now;
}

static inline void simple_start(const struct simple *x, struct simple_op *o)
{
	o->state = SIMPLE_RUNS;
	o->began = x->now;
	o->left = (double)o->time->duration;
}

/* Is the other one to come to this one's collective? */
static inline bool simple_meets_with(const struct simple_part *p,
				     const struct simple_op *o,
				     const struct simple_part *other)
{
	enum ft_group g = o->work->communication.group;
	size_t class = other->of->rank_class;

	if (p == other || o->work->kind != FT_COMMUNICATION)
		return p == other;
	if (g == FT_GROUP_EMBEDDING) /* the ends of a pipeline */
		return p->of->pipeline == other->of->pipeline &&
		       (!class || class + 1 == p->of->job->graph->n_classes);
	return p->of->job->meeting >> g & 1 && p->of->team == other->of->team;
}

static inline bool simple_alone(const struct simple *x, const struct simple_part *p,
				const struct simple_op *o)
{
	for (size_t i = 0; i < x->in->n_parts; i++)
		if (&x->part[i] != p && simple_meets_with(p, o, &x->part[i]))
			return false;
	return true;
}

/* All that it meets with have come: they start. */
static inline void simple_meet(struct simple *x, struct simple_part *p, int stream)
{
	struct simple_op *o = simple_head(p, stream);

	o->state = SIMPLE_MEETS;
	for (int start = 0; start < 2; start++)
		for (size_t i = 0; i < x->in->n_parts; i++) {
			struct simple_op *other = simple_head(&x->part[i], stream);

			if (!simple_meets_with(p, o, &x->part[i]))
				continue;
			if (!other || other->state != SIMPLE_MEETS ||
			    other->op->work != o->op->work)
				return;
			if (start)
				simple_start(x, other);
		}
}

/* Anything that can begin begins; false: nothing could. */
static inline bool simple_begin(struct simple *x)
{
	bool any = false;

	for (size_t i = 0; i < x->in->n_parts; i++)
		for (int s = 0; s < FT_STREAMS; s++) {
			struct simple_part *p = &x->part[i];
			struct simple_op *o = simple_head(p, s);

			if (!simple_may(x, p, s))
				continue;
			any = true;
			if (simple_receives(s)) {
				p->arrived[s == FT_STREAM_RECV_BACKWARD]
					  [o->op->reverse]--;
				simple_over(x, p, s);
			} else if (simple_alone(x, p, o)) {
				simple_start(x, o);
			} else {
				simple_meet(x, p, s);
			}
		}
	return any;
}

static inline struct simple_op *simple_running(struct simple_part *p, int stream)
{
	struct simple_op *o = simple_head(p, stream);

	return o && o->state == SIMPLE_RUNS ? o : NULL;
}

/* What a flow takes of a link: of each part's port and NIC, and of those that parts share. */
static inline double simple_use(const struct simple *x, const struct simple_op *o,
				size_t part, size_t link)
{
	const struct work_timing *t = o->time;
	size_t n = x->in->n_parts;
	double use = 0;

	if (link < 2 * n)
		return link / 2 != part ? 0 :
		       link % 2		? (double)t->nic_frac :
					  (double)t->port_frac;
	for (int i = 0; t->path && i < t->path->n_uses; i++)
		if (t->path->link[i] == link - 2 * n)
			use = (double)(t->path->use[i] * t->path_frac);
	return use;
}

struct simple_flow {
	struct simple_op *op;
	size_t part;
	bool full; /* one of its links is */
};

/* All grow alike; those on a link that is full stop. */
static inline void simple_share(struct simple *x, struct simple_flow *f, int n)
{
	size_t links = 2 * x->in->n_parts + x->in->n_links;
	double level = 0;

	while (level < 1) {
		double most = 1;
		size_t narrowest = links;

		for (size_t l = 0; l < links; l++) {
			double room = 1, grow = 0;

			for (int i = 0; i < n; i++) {
				double use = simple_use(x, f[i].op, f[i].part, l);

				room -= f[i].full ? use * f[i].op->share : 0;
				grow += f[i].full ? 0 : use;
			}
			if (grow > 0 && room / grow < most) {
				most = room / grow;
				narrowest = l;
			}
		}
		level = most;
		for (int i = 0; i < n; i++) {
			if (f[i].full)
				continue;
			f[i].op->share = level;
			f[i].full = narrowest < links &&
				    simple_use(x, f[i].op, f[i].part, narrowest) > 0;
		}
	}
}

static inline void simple_shares(struct simple *x)
{
	struct simple_flow flow[SIMPLE_PARTS * FT_STREAMS];
	int n = 0;

	for (size_t i = 0; i < x->in->n_parts; i++)
		for (int s = 0; s < FT_STREAMS; s++) {
			struct simple_op *o = simple_running(&x->part[i], s);

			if (!o)
				continue;
			o->share = 1;
			if (s >= FT_STREAM_GATHER)
				flow[n++] = (struct simple_flow){ o, i, false };
		}
	simple_share(x, flow, n);
}

static inline void simple_rates(struct simple_part *p)
{
	const struct simple_op *c = simple_running(p, FT_STREAM_COMPUTE);
	int held = -1;

	for (int s = FT_STREAM_GATHER; s < FT_STREAMS; s++) {
		const struct simple_op *o = simple_running(p, s);

		if (o && !o->time->copy_engine && (int)o->time->held > held)
			held = (int)o->time->held;
	}
	for (int s = 0; s < FT_STREAMS; s++) {
		struct simple_op *o = simple_running(p, s);

		if (!o)
			continue;
		o->rate = o->share;
		if (s == FT_STREAM_COMPUTE && held >= 0)
			o->rate /= (double)o->time->beside[held];
		if (s == FT_STREAM_COMPUTE && simple_running(p, FT_STREAM_COPY))
			o->rate /= (double)o->time->beside_copy;
		else if (s == FT_STREAM_COPY && c)
			o->rate /= (double)c->time->slows_copy;
		else if (s >= FT_STREAM_GATHER && c && !o->time->copy_engine)
			o->rate = fmin(o->share, 1 / (double)c->time->slows);
	}
}

/* What its time counts as: 0 to 4 are optimizer, compute, exposed, bubble, host. */
static inline int simple_phase(const struct simple *x, struct simple_part *p)
{
	const struct simple_op *c = simple_running(p, FT_STREAM_COMPUTE);
	bool bubble = false;

	if (c)
		return c->op->optimizer ? 0 : 1;
	if (simple_running(p, FT_STREAM_COPY))
		return 1;
	if (simple_running(p, FT_STREAM_OFFLOAD) || simple_running(p, FT_STREAM_FETCH))
		return 2;
	for (int s = FT_STREAM_GATHER; s < FT_STREAMS; s++) {
		const struct simple_op *o = simple_head(p, s);

		if (!o)
			continue;
		if (simple_receives(s))
			bubble |= simple_launched(p, o) <= x->now;
		else if (simple_sends(s))
			bubble |= o->state == SIMPLE_RUNS;
		else if (o->state == SIMPLE_RUNS || o->state == SIMPLE_MEETS)
			return 2;
	}
	return bubble ? 3 : 4;
}

/* ---- from moment to moment --------------------------------------------------------------- */

/* How long until something ends or is launched; infinite: never. */
static inline double simple_until(struct simple *x)
{
	double until = INFINITY;

	for (size_t i = 0; i < x->in->n_parts; i++)
		for (int s = 0; s < FT_STREAMS; s++) {
			struct simple_op *o = simple_head(&x->part[i], s);

			if (o && o->state == SIMPLE_RUNS)
				until = fmin(until, o->left / o->rate);
			else if (o && simple_launched(&x->part[i], o) > x->now)
				until = fmin(until,
					     simple_launched(&x->part[i], o) - x->now);
		}
	return until;
}

static inline void simple_pass(struct simple *x, double by)
{
	x->now += by;
	for (size_t i = 0; i < x->in->n_parts; i++) {
		struct simple_part *p = &x->part[i];

		for (int s = 0; s < FT_STREAMS; s++) {
			struct simple_op *o = simple_running(p, s);

			if (o)
				o->left -= by * o->rate;
			if (o && o->left < 0.5 * o->rate) /* half a picosecond */
				simple_over(x, p, s);
		}
	}
}

static inline bool simple_all_over(const struct simple_part *p)
{
	for (int s = 0; s < FT_STREAMS; s++)
		if (p->head[s] >= 0)
			return false;
	return true;
}

/* false: something waits for what never comes. */
static inline bool simple_run(struct simple *x, const struct engine_input *in)
{
	memset(x, 0, sizeof(*x));
	x->in = in;
	for (size_t i = 0; i < in->n_parts; i++)
		simple_lay(&x->part[i], &in->part[i]);
	for (;;) {
		double until;

		while (simple_begin(x))
			;
		simple_shares(x);
		for (size_t i = 0; i < in->n_parts; i++)
			simple_rates(&x->part[i]);
		until = simple_until(x);
		if (isinf(until))
			break;
		for (size_t i = 0; i < in->n_parts; i++)
			if (!simple_all_over(&x->part[i]))
				x->part[i].spent[simple_phase(x, &x->part[i])] += until;
		simple_pass(x, until);
	}
	for (size_t i = 0; i < in->n_parts; i++) {
		if (!simple_all_over(&x->part[i]))
			return false;
		x->end = fmax(x->end, x->part[i].end);
	}
	return true;
}

#endif
