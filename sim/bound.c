/*
 * sim/bound.c - a step is never shorter than this, found without running it
 *
 * Each op takes at least its duration alone, so that the longest path over what must follow
 * what is a lower bound. Kept of that are: the order of a stage's ops on each stream, waits
 * within a pass, the order of passes on a stage, and what a pass's first compute op awaits
 * of its neighbour. Where a schedule splits a backward, each part is a pass, and that of the
 * weights awaits nothing. Left out, each of which can only make a step longer: launches, queues,
 * sharing of links, interference, waits from one pass to another of a stage, what slow GPUs
 * and lost links do.
 *
 *   e(s, i)   end of pass i of stage s on the compute stream
 *   e(s, i) = max(e(s, i-1) + D(pass i), e(s', i') + transfer + R(pass i))
 *   D(pass)   longest path in the pass from the end of that before to its last compute op
 *   R(pass)   the same from its first compute op on: a collective before it awaits no
 *             neighbour in the graph
 *   step   >= the same for the last pass of s with the update behind it, until all streams
 *             are done, max over s
 *   step   >= the sum of the durations on any one stream; the host's time of all launches,
 *             of which the last is the update's last kernel
 *
 * docs/plan.md has the proof; tests/test_bound.c holds it on thousands of plans.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/plain.h"
#include "foretoken/sim.h"
#include "sim/job.h"

enum { NOT_YET = -1 }; /* before the first compute op: nothing is known */

/* When each stream has done what was put on it, from a pass's first compute op on. */
struct front {
	ft_ps stream[FT_STREAMS], event[FT_EVENTS];
	const struct work_timing *timing; /* of its class */
	bool any_compute,
		awaits[2]; /* the first compute op: a receive, forward, backward */
};

struct pass_time {
	ft_ps length;	  /* from the pass before on: D */
	ft_ps from_first; /* from its first compute op on: R */
	bool awaits;	  /* its neighbour */
};

struct bounding {
	struct arena *mem;
	const struct ft_outline *o;
	struct work_timing *const *timing; /* [n_classes] */
	struct pass_time **pass;	   /* [n_classes], as the outline's */
	ft_ps transfer[2]; /* forward, backward: as long as it takes alone */
};

/* from_first: at 0 the first compute op begins, and what was put before is over. */
static void front_open(struct front *f, const struct bounding *b, size_t class,
		       bool from_first)
{
	*f = (struct front){ .timing = b->timing[class] };
	for (int i = 0; i < FT_STREAMS; i++)
		f->stream[i] = NOT_YET;
	for (int i = 0; i < FT_EVENTS; i++)
		f->event[i] = NOT_YET;
	f->stream[FT_STREAM_COMPUTE] = from_first ? NOT_YET : 0;
}

static ft_ps awaited(const struct front *f, uint8_t code)
{
	return code < FT_EVENTS ? f->event[code] : f->stream[code - FT_TAIL];
}

/* Put one op behind what it waits for. */
static void front_put(struct front *f, const struct ft_op *op)
{
	ft_ps at = f->stream[op->stream];

	if (op->stream == FT_STREAM_RECV_FORWARD ||
	    op->stream == FT_STREAM_RECV_BACKWARD)
		return; /* its end is the neighbour's to say */
	for (int i = 0; i < FT_OP_WAITS && op->wait[i] != FT_EVENT_NONE; i++) {
		ft_ps end = awaited(f, op->wait[i]);

		at = end > at ? end : at;
		if (op->stream == FT_STREAM_COMPUTE && !f->any_compute) {
			f->awaits[0] |= op->wait[i] == FT_TAIL + FT_STREAM_RECV_FORWARD;
			f->awaits[1] |=
				op->wait[i] == FT_TAIL + FT_STREAM_RECV_BACKWARD;
		}
	}
	if (op->stream == FT_STREAM_COMPUTE && !f->any_compute && at == NOT_YET)
		at = 0;
	f->any_compute |= op->stream == FT_STREAM_COMPUTE;
	if (at != NOT_YET)
		f->stream[op->stream] = at + f->timing[op->work].duration;
	if (op->record < FT_EVENTS)
		f->event[op->record] = f->stream[op->stream];
}

/* Streams that a call puts something on; events that it records are bits above them. */
static unsigned touched_by(const struct ft_segment *seg)
{
	unsigned touched = 0;

	for (size_t i = 0; i < seg->n_ops; i++) {
		touched |= 1u << seg->op[i].stream;
		if (seg->op[i].record < FT_EVENTS)
			touched |= 1u << (FT_STREAMS + seg->op[i].record);
	}
	return touched;
}

static ft_ps *place_of(struct front *f, int i)
{
	return i < FT_STREAMS ? &f->stream[i] : &f->event[i - FT_STREAMS];
}

/*
 * A call made again and again: once all that it touches moved on by the same time, it moves
 * on by that each time. What it does not touch stays where it is, below what it had to wait
 * for, so that waiting for it makes no difference any more. false: not yet so.
 */
static bool moved_on(struct front *was, struct front *is, unsigned touched, ft_ps *by)
{
	*by = 0;
	for (int i = 0; i < FT_STREAMS + FT_EVENTS; i++) {
		ft_ps a = *place_of(was, i), b = *place_of(is, i);

		if (!(touched >> i & 1) || (a == NOT_YET && b == NOT_YET))
			continue;
		if (a == NOT_YET || b <= a || (*by && b - a != *by))
			return false;
		*by = b - a;
	}
	return *by > 0;
}

static void front_call(struct front *f, const struct bounding *b,
		       const struct ft_call *call, int64_t times)
{
	const struct ft_segment *seg = &b->o->graph.segment[call->segment];
	int64_t left = (int64_t)call->repeat / times;
	unsigned touched = left > 2 ? touched_by(seg) : 0;
	struct front was;
	ft_ps by;

	for (; left; left--) {
		if (touched)
			was = *f;
		for (size_t i = 0; i < seg->n_ops; i++)
			front_put(f, &seg->op[i]);
		if (touched && left > 1 && moved_on(&was, f, touched, &by)) {
			for (int i = 0; i < FT_STREAMS + FT_EVENTS; i++)
				if (touched >> i & 1 && *place_of(f, i) != NOT_YET)
					*place_of(f, i) += (left - 1) * by;
			return;
		}
	}
}

static void front_pass(struct front *f, const struct bounding *b, size_t class,
		       const struct ft_pass_calls *pass)
{
	for (size_t i = pass->begin; i < pass->end; i++)
		front_call(f, b, &b->o->graph.rank_class[class].call[i], pass->times);
}

static struct pass_time time_pass(const struct bounding *b, size_t class,
				  const struct ft_pass_calls *pass)
{
	struct pass_time t = { 0 };
	struct front f;

	front_open(&f, b, class, true);
	front_pass(&f, b, class, pass);
	if (f.any_compute)
		t.from_first = f.stream[FT_STREAM_COMPUTE];
	front_open(&f, b, class, false);
	front_pass(&f, b, class, pass);
	t.length = f.stream[FT_STREAM_COMPUTE];
	t.awaits = f.awaits[0] || f.awaits[1];
	return t;
}

static void time_passes(struct bounding *b)
{
	const struct ft_outline *o = b->o;

	b->pass = ARENA_ARRAY(b->mem, o->graph.n_classes, struct pass_time *);
	for (size_t c = 0; c < o->graph.n_classes; c++) {
		b->pass[c] = b->pass[o->like[c]];
		if (o->like[c] != c)
			continue;
		b->pass[c] = ARENA_ARRAY(b->mem, o->n_passes, struct pass_time);
		for (size_t i = 0; i < o->n_passes; i++)
			if (o->pass[c][i].times)
				b->pass[c][i] = time_pass(b, c, &o->pass[c][i]);
	}
}

/* The last pass of a class and the update, until all is over. */
static ft_ps time_tail(const struct bounding *b, size_t class, bool from_first)
{
	const struct ft_outline *o = b->o;
	const struct ft_class *k = &o->graph.rank_class[class];
	struct front f;
	ft_ps end = 0;

	front_open(&f, b, class, from_first);
	front_pass(&f, b, class, &o->pass[class][o->order[class][o->n_order - 1].pass]);
	for (size_t i = o->last_call[class]; i < k->n_calls; i++)
		front_call(&f, b, &k->call[i], 1);
	for (int i = 0; i < FT_STREAMS; i++)
		end = f.stream[i] > end ? f.stream[i] : end;
	return end;
}

/* Where a chunk's input comes from. */
struct source {
	int32_t stage; /* -1: it needs none */
	int32_t chunk;
};

/* Where passes stand: how far each stage is, and when what it did was over. */
struct progress {
	size_t *next;	     /* [stages] */
	ft_ps *free_at;	     /* [stages] */
	ft_ps *before;	     /* [stages] when that before its last pass was over, */
	ft_ps *input;	     /* [stages] and when the last one's input was there */
	ft_ps **end;	     /* [stages][3 * vpp * m], NOT_YET: not over */
	struct source *from; /* [stages][2 * vpp]: of forwards, and of backwards */
};

static size_t end_at(const struct ft_plan *p, uint8_t kind, uint32_t micro_batch,
		     int64_t chunk)
{
	return (size_t)((chunk * FT_SLOT_UPDATE + kind) * p->micro_batches +
			micro_batch);
}

static struct source source_of(const struct ft_plan *p, int64_t stage, int64_t chunk,
			       bool forward)
{
	int64_t at = ft_plan_place(p, stage, chunk) + (forward ? -1 : 1);

	if (at < 0 || at == p->pp * p->vpp)
		return (struct source){ -1, 0 };
	return (struct source){ (int32_t)ft_plan_stage(p, at), (int32_t)(at / p->pp) };
}

/* When its input is there; NOT_YET: the neighbour has not run. 0: it needs none. */
static ft_ps input(const struct bounding *b, const struct progress *g, size_t stage,
		   const struct ft_outline_slot *t)
{
	const struct ft_plan *p = b->o->plan;
	bool back = t->kind != FT_SLOT_FORWARD;
	const struct source *from =
		&g->from[(stage * 2 + back) * (size_t)p->vpp + t->chunk];
	ft_ps end;

	if (from->stage < 0)
		return 0;
	end = g->end[from->stage][end_at(p, t->kind, t->micro_batch, from->chunk)];
	return end == NOT_YET ? NOT_YET : end + b->transfer[back];
}

/* Run as many passes of a stage as can be; true: some. */
static bool advance(const struct bounding *b, struct progress *g, size_t stage)
{
	const struct ft_outline *o = b->o;
	bool moved = false;

	while (g->next[stage] < o->n_order) {
		const struct ft_outline_slot *t = &o->order[stage][g->next[stage]];
		const struct pass_time *d = &b->pass[stage][t->pass];
		ft_ps from = d->awaits ? input(b, g, stage, t) : 0;

		if (from == NOT_YET)
			break;
		g->before[stage] = g->free_at[stage];
		g->input[stage] = from;
		g->free_at[stage] += d->length;
		if (from + d->from_first > g->free_at[stage])
			g->free_at[stage] = from + d->from_first;
		g->end[stage][end_at(o->plan, t->kind, t->micro_batch, t->chunk)] =
			g->free_at[stage];
		g->next[stage]++;
		moved = true;
	}
	return moved;
}

static struct progress progress_new(const struct bounding *b)
{
	const struct ft_plan *p = b->o->plan;
	size_t n = b->o->graph.n_classes, vpp = (size_t)p->vpp;
	size_t ends = (size_t)(p->vpp * FT_SLOT_UPDATE * p->micro_batches);
	struct progress g = { ARENA_ARRAY(b->mem, n, size_t),
			      ARENA_ARRAY(b->mem, n, ft_ps),
			      ARENA_ARRAY(b->mem, n, ft_ps),
			      ARENA_ARRAY(b->mem, n, ft_ps),
			      ARENA_ARRAY(b->mem, n, ft_ps *),
			      ARENA_ARRAY(b->mem, n * 2 * vpp, struct source) };

	for (size_t s = 0; s < n; s++) {
		g.end[s] = ARENA_ARRAY(b->mem, ends, ft_ps);
		memset(g.end[s], 0xff, ends * sizeof(ft_ps));
		for (size_t back = 0; back < 2; back++)
			for (size_t c = 0; c < vpp; c++)
				g.from[(s * 2 + back) * vpp + c] =
					source_of(p, (int64_t)s, (int64_t)c, !back);
	}
	return g;
}

/* The last pass and the update of each class: those of classes that are alike, and end with
 * the same pass, are the same. */
static ft_ps over_tails(const struct bounding *b, const struct progress *g)
{
	const struct ft_outline *o = b->o;
	ft_ps longest = 0, from_before = 0, from_input = 0;

	for (size_t s = 0; s < o->graph.n_classes; s++) {
		bool same =
			o->like[s] != s && o->order[s][o->n_order - 1].pass ==
						   o->order[s - 1][o->n_order - 1].pass;

		if (!same) {
			from_before = time_tail(b, s, false);
			from_input = time_tail(b, s, true);
		}
		if (g->before[s] + from_before > longest)
			longest = g->before[s] + from_before;
		if (g->input[s] + from_input > longest)
			longest = g->input[s] + from_input;
	}
	return longest;
}

/* The longest path over the passes of all stages, and behind a stage's last its update. */
static ft_ps over_passes(struct bounding *b)
{
	struct progress g = progress_new(b);
	size_t n = b->o->graph.n_classes;
	bool moved = true;

	while (moved) {
		moved = false;
		for (size_t s = 0; s < n; s++)
			moved |= advance(b, &g, s);
		for (size_t s = n; s-- > 0;)
			moved |= advance(b, &g, s);
	}
	return over_tails(b, &g);
}

/* What each stream of a class has to do, in picoseconds. */
static void add_streams(const struct bounding *b, size_t class, double sum[FT_STREAMS])
{
	const struct ft_graph *g = &b->o->graph;

	for (size_t i = 0; i < g->rank_class[class].n_calls; i++) {
		const struct ft_call *k = &g->rank_class[class].call[i];
		const struct ft_segment *seg = &g->segment[k->segment];

		for (size_t j = 0; j < seg->n_ops; j++)
			sum[seg->op[j].stream] +=
				(double)k->repeat *
				(double)b->timing[class][seg->op[j].work].duration;
	}
}

/* The busiest stream of all, and what compute streams do. */
static struct ft_bound of_streams(const struct bounding *b)
{
	const struct ft_graph *g = &b->o->graph;
	struct ft_bound bound = { 0, 0 };
	double ranks = 0, sum[FT_STREAMS];

	for (size_t c = 0; c < g->n_classes; c++) {
		double n = (double)g->rank_class[c].ranks;

		if (b->o->like[c] == c) {
			memset(sum, 0, sizeof(sum));
			add_streams(b, c, sum);
		}
		for (int i = 0; i < FT_STREAM_RECV_FORWARD; i++)
			if (sum[i] > (double)bound.step)
				bound.step = ft_ps_from_double(floor(sum[i]));
		bound.busy_s += n * 1e-12 * sum[FT_STREAM_COMPUTE];
		ranks += n;
	}
	bound.busy_s /= ranks;
	return bound;
}

/* What a send takes on its own. */
static void find_transfers(struct bounding *b)
{
	const struct ft_graph *g = &b->o->graph;

	b->transfer[0] = b->transfer[1] = FT_PS_LONGEST;
	for (size_t i = 0; i < g->n_segments; i++)
		for (size_t j = 0; j < g->segment[i].n_ops; j++) {
			const struct ft_op *op = &g->segment[i].op[j];
			bool back = op->stream == FT_STREAM_SEND_BACKWARD;
			ft_ps t = b->timing[0][op->work].duration;

			if ((back || op->stream == FT_STREAM_SEND_FORWARD) &&
			    t < b->transfer[back])
				b->transfer[back] = t;
		}
}

bool ft_sim_bound(const struct ft_sim_job *given, const struct ft_outline *o,
		  struct ft_memo *memo, bool pairs, struct ft_bound *bound,
		  struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct job j = { .mem = &mem,
			 .graph = &o->graph,
			 .cluster = given->cluster,
			 .stack = given->stack,
			 .ccl = given->ccl,
			 .memo = memo };
	struct bounding b = { .mem = &mem, .o = o };
	ft_ps others;
	bool ok = job_time(&j, given->start, err);

	if (ok) {
		b.timing = j.timing;
		*bound = of_streams(&b);
	}
	if (ok && !pairs) {
		find_transfers(&b);
		time_passes(&b);
		others = over_passes(&b);
		bound->step = others > bound->step ? others : bound->step;
		others = job_host_longest(&j);
		bound->step = others > bound->step ? others : bound->step;
	}
	arena_release(&mem);
	return ok;
}

double ft_graph_peak_bytes(const struct ft_graph *g)
{
	double most = 0;

	for (size_t c = 0; c < g->n_classes; c++) {
		struct ft_class_result r;

		result_memory(g, c, &r);
		most = fmax(most, r.peak_total_bytes);
	}
	return most;
}
