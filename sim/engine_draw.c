/* sim/engine_draw.c - what the engine draws of a step, in each form */
#include <string.h>

#include "base/arena.h"
#include "sim/engine_kineto.h"
#include "sim/engine_state.h"
#include "sim/job.h"
#include "sim/memory_svg.h"
#include "sim/passes.h"
#include "sim/timeline.h"
#include "sim/timeline_svg.h"

/* ---- programs ------------------------------------------------------------------------ */

void draw_part(struct engine *e, size_t part)
{
	const struct engine_part *p = &e->in->part[part];
	const struct ft_graph *g = p->job->graph;
	const struct ft_class *c = &g->rank_class[p->rank_class];

	e->part[part].before =
		arena_alloc(e->mem, c->n_calls + 1, sizeof(*e->part[part].before));
	result_memory_before(g, p->rank_class, e->part[part].before);
	for (size_t q = 0; q < part; q++) /* parts of one graph share them */
		if (e->in->part[q].job == p->job)
			e->part[part].passes = e->part[q].passes;
	if (!e->part[part].passes)
		e->part[part].passes = passes_of(g, e->mem);
	timeline_part(e->in->timeline, part, p->name, passes_fold(g));
}

static const struct ft_segment *segment_of(const struct part_state *r, uint32_t call)
{
	const struct engine_part *p = r->of;
	const struct ft_graph *g = p->job->graph;

	return &g->segment[g->rank_class[p->rank_class].call[call].segment];
}

static struct timeline_place place_of(const struct part_state *r, uint32_t call,
				      uint32_t turn)
{
	size_t class = r->of->rank_class;
	const struct pass_call *p = &r->passes[class][call];

	return (struct timeline_place){
		.segment = segment_of(r, call)->name,
		.pass = p->pass,
		.micro_batch = p->micro_batch,
		.layer = p->layer + p->step * turn,
	};
}

/* ---- slices --------------------------------------------------------------------------- */

void draw_call(struct engine *e, struct part_state *r, uint32_t call, uint32_t turn)
{
	struct timeline_place at = place_of(r, call, turn);

	timeline_call(e->in->timeline, (size_t)(r - e->part), &at, r->call_from,
		      r->host_now);
}

/* What the call holds at its fullest, when its first kernel begins. */
static void draw_memory(struct engine *e, const struct stream *s,
			const struct entry *in)
{
	const struct part_state *r = &e->part[s->part];
	const struct ft_segment *seg = segment_of(r, in->call);
	const struct ft_op *first = seg->op;
	double bytes[FT_MEMORIES];

	while (first < in->op && first->stream != FT_STREAM_COMPUTE)
		first++;
	if (first != in->op || s->id != FT_STREAM_COMPUTE)
		return;
	for (int m = 0; m < FT_MEMORIES; m++)
		bytes[m] = r->before[in->call][m] + in->turn * seg->net_bytes[m] +
			   seg->peak_bytes[m];
	timeline_memory(e->in->timeline, s->part, s->began, bytes);
}

/* The data of a send on the neighbour's row, joined to it. */
static void draw_receive(struct engine *e, const struct stream *s, bool reverse,
			 struct timeline_op op)
{
	const struct engine_part *p = &e->in->part[s->part];
	bool forward = s->id == FT_STREAM_SEND_FORWARD;

	op.part = receiver(p, (enum ft_stream)s->id, reverse);
	op.stream = forward ? FT_STREAM_RECV_FORWARD : FT_STREAM_RECV_BACKWARD;
	op.stream += reverse ? TIMELINE_FOLDED : 0;
	timeline_op(e->in->timeline, &op);
	timeline_flow(e->in->timeline, "send", ++e->out->drawn,
		      &(struct timeline_end){ s->part, s->id, op.from },
		      &(struct timeline_end){ op.part, op.stream, op.from });
}

/* When the host began to launch it. */
static ft_ps launch_began(const struct part_state *r, const struct entry *in)
{
	const struct engine_part *p = r->of;
	const struct ft_graph *g = p->job->graph;
	uint32_t segment = g->rank_class[p->rank_class].call[in->call].segment;
	size_t i = (size_t)(in->op - g->segment[segment].op);
	const ft_ps *at = &p->job->host[p->job->host_begin[segment]];

	return in->launched - (i ? at[i] - at[i - 1] : at[i]);
}

static void draw_chrome(struct engine *e, const struct stream *s,
			const struct entry *in, const struct ft_work *w)
{
	const struct part_state *r = &e->part[s->part];
	const struct engine_job *job = r->of->job;
	struct timeline_place at = place_of(r, in->call, in->turn);
	struct timeline_op op = { w, &at, s->part, s->id, s->began, e->q.now };

	timeline_op(e->in->timeline, &op);
	draw_memory(e, s, in);
	if (!job->host_free && op.to > op.from)
		timeline_flow(e->in->timeline, "launch", ++e->out->drawn,
			      &(struct timeline_end){ s->part, TIMELINE_HOST,
						      launch_began(r, in) },
			      &(struct timeline_end){ s->part, s->id, op.from });
	if (ft_stream_sends(s->id) && op.to > op.from)
		draw_receive(e, s, in->op->reverse, op);
}

/* The op at a stream's head. */
static struct entry entry_of(const struct engine *e, const struct stream *s)
{
	const struct part_state *r = &e->part[s->part];
	const struct launch *l = launch_at(r, s->at);

	return (struct entry){ s->head->op, engine_launched(e, s), l->slot, l->call,
			       l->turn };
}

void draw_op(struct engine *e, const struct stream *s)
{
	const struct engine_part *p = &e->in->part[s->part];
	const struct entry entry = entry_of(e, s), *in = &entry;
	const struct ft_work *w = &p->job->graph->work[in->op->work];

	if (e->in->form == FT_TIMELINE_SVG) {
		if (p->pipeline == 0)
			gantt_op(e->in->gantt, p->rank_class, s->id, in->slot, s->began,
				 e->q.now);
	} else if (e->in->form == FT_TIMELINE_MEMORY) {
		if (p->pipeline == 0)
			memory_chart_op(e->in->memory,
					&(struct memory_op){ p->rank_class, in->call,
							     in->turn, in->op, s->id,
							     s->began });
	} else if (e->in->form == FT_TIMELINE_CHROME) {
		draw_chrome(e, s, in, w);
	} else {
		rank_op(e, s, in);
	}
}

void draw_received(struct engine *e, const struct stream *s)
{
	const struct entry entry = entry_of(e, s);

	if (e->in->form == FT_TIMELINE_KINETO)
		rank_received(e, s, &entry);
}

/* ---- phases, links, power ------------------------------------------------------------- */

static void put_phase(struct engine *e, struct part_state *r, uint8_t phase, ft_ps to)
{
	static const char *const names[] = { "optimizer", "compute",
					     "exposed communication", "bubble",
					     "host" };

	if (to > r->phase_from)
		timeline_phase(e->in->timeline, (size_t)(r - e->part), names[phase],
			       r->phase_from, to);
	r->phase_from = to;
}

void draw_phase(struct engine *e, struct part_state *r, uint8_t was)
{
	if (r->state != was)
		put_phase(e, r, was, e->q.now);
}

void draw_links(struct engine *e, struct part_state *r)
{
	const struct engine_part *p = r->of;
	double port = 0, nic = 0;

	for (int i = FT_STREAM_GATHER; i < FT_STREAMS; i++) {
		const struct stream *s = &r->stream[i];
		const struct work_timing *t;

		if (s->state != RUNNING)
			continue;
		t = &p->timing[s->head->op->work];
		port += s->run.rate * (double)t->port_frac;
		nic += s->run.rate * (double)t->nic_frac;
	}
	if (port < r->port_frac || port > r->port_frac || nic < r->nic_frac ||
	    nic > r->nic_frac)
		timeline_links(e->in->timeline, (size_t)(r - e->part), e->q.now, port,
			       nic);
	r->port_frac = port;
	r->nic_frac = nic;
}

static double watts_of(const struct engine *e, const struct part_state *r)
{
	const struct stream *s = &r->stream[FT_STREAM_COMPUTE];
	const struct engine_watts *w = &e->in->watts;
	const struct engine_part *p = r->of;

	if (s->state == RUNNING)
		return p->job->graph->work[s->head->op->work].kind == FT_MEMORY_BOUND ?
			       w->memory :
			       w->product;
	return r->state == EXPOSED || r->state == BUBBLE ? w->waiting : w->idle;
}

/* What was drawn since the last change, unless it lasted no time. */
static void put_power(struct engine *e, struct part_state *r, ft_ps to)
{
	bool differs = r->watts < r->watts_drawn || r->watts > r->watts_drawn;

	if (to <= r->watts_from || !differs)
		return;
	timeline_power(e->in->timeline, (size_t)(r - e->part), r->watts_from, r->watts);
	r->watts_drawn = r->watts;
}

void draw_power(struct engine *e, struct part_state *r)
{
	double watts = watts_of(e, r);

	if (watts >= r->watts && watts <= r->watts)
		return;
	put_power(e, r, e->q.now);
	r->watts = watts;
	r->watts_from = e->q.now;
}

void draw_rest(struct engine *e)
{
	ft_ps end = 0;

	if (e->in->form == FT_TIMELINE_KINETO)
		rank_rest(e);
	for (size_t p = 0; p < e->in->n_parts; p++)
		if (e->part[p].end > end && !e->part[p].of->job->again)
			end = e->part[p].end;
	for (size_t p = 0; p < e->in->n_parts; p++) {
		struct part_state *r = &e->part[p];
		/* what is done waits for the others, as the breakdown has it */
		uint8_t waits = r->of->job->graph->n_classes > 1 ? BUBBLE : EXPOSED;

		if (!r->before)
			continue;
		put_phase(e, r, r->state, r->since);
		put_phase(e, r, waits, end);
		put_phase(e, r, HOST, e->in->hosts_end);
		put_power(e, r, r->since);
		if (end > r->since)
			timeline_power(e->in->timeline, p, r->since,
				       e->in->watts.waiting);
		timeline_power(e->in->timeline, p, end > r->since ? end : r->since,
			       e->in->watts.idle);
	}
}
