/*
 * sim/bound.c - a step is never shorter than this, found without running it
 *
 * Each op takes at least its duration alone, so that the longest path over what must follow
 * what is a lower bound. Kept of that are: the order of a stage's ops on each stream, waits
 * within a pass, the order of passes on a stage, and what a pass's first compute op awaits
 * of its neighbour. Where a schedule splits a backward, each part is a pass, and that of the
 * weights awaits nothing; what collectives of a stream and compute cost each other; and the
 * streams of gathers and reductions from pass to pass. Left out, each of which can only make a
 * step longer: launches, queues, sharing of links, other waits from one pass to another of a
 * stage, what slow GPUs and lost links do.
 *
 *   e(s, i)   end of pass i of stage s on the compute stream
 *   e(s, i) = max(e(s, i-1) + D(pass i), e(s', i') + transfer + R(pass i))
 *   D(pass)   longest path in the pass from the end of that before to its last compute op
 *   R(pass)   the same from its first compute op on: a collective before it awaits no
 *             neighbour in the graph
 *   the same of gathers and reductions, and of their blocks (sim/bound_front.h)
 *   step   >= the same for the last pass of s with the update behind it, until all streams
 *             are done, max over s
 *   step   >= the sum of the durations on any one stream; the host's time of all launches,
 *             of which the last is the update's last kernel
 *
 * docs/plan.md has the proof; tests/test_bound.c holds it on thousands of plans.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/plain.h"
#include "foretoken/sim.h"
#include "sim/bound_pass.h"

/* Where a chunk's input comes from. */
struct source {
	int32_t stage; /* -1: it needs none */
	int32_t chunk;
};

/* A stage between two passes: when each stream has done all so far. */
struct stage_state {
	ft_ps compute, gather, reduce;
	struct block gathers, reduces; /* since the step began; since the first */
	bool reduces_any;
};

/* Where passes stand: how far each stage is, and when what it did was over. */
struct progress {
	size_t *next;		    /* [stages] */
	struct stage_state *is;	    /* [stages] */
	struct stage_state *before; /* [stages] its tail, */
	ft_ps *input;		    /* [stages] and when that one's input was there */
	ft_ps **end;	     /* [stages][FT_SLOT_UPDATE * vpp * m], NOT_YET: not over */
	struct source *from; /* [stages][2 * vpp]: of forwards, and of backwards */
};

static size_t end_at(const struct ft_plan *p, uint8_t kind, uint32_t micro_batch,
		     int64_t chunk)
{
	int slot = kind == FT_SLOT_WHOLE ? FT_SLOT_BACKWARD : kind;

	return (size_t)((chunk * FT_SLOT_UPDATE + slot) * p->micro_batches +
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

static ft_ps later(ft_ps a, ft_ps b)
{
	return a > b ? a : b;
}

/* A block that goes on: compute of any kind is in it. */
static struct block going_on(const struct front_of *of, struct block b)
{
	b.least = of->least;
	return b;
}

/* The stage's streams, and when its neighbour's part is there. */
static struct front front_at(const struct front_of *of, const struct stage_state *s,
			     ft_ps input)
{
	struct front f;

	front_open(&f);
	f.stream[FT_STREAM_COMPUTE] = s->compute;
	f.stream[FT_STREAM_GATHER] = s->gather;
	f.stream[FT_STREAM_REDUCE] = s->reduce;
	f.stream[FT_STREAM_RECV_FORWARD] = f.stream[FT_STREAM_RECV_BACKWARD] = input;
	front_open_block(&f, FT_STREAM_GATHER, going_on(of, s->gathers));
	if (s->reduces_any)
		front_open_block(&f, FT_STREAM_REDUCE, going_on(of, s->reduces));
	return f;
}

static struct block closed(const struct front_of *of, const struct block *b)
{
	return (struct block){ .compute = block_compute(of, b),
			       .collective = b->collective };
}

/* A pass put op by op behind what its stage did. */
static void run_put(const struct bounding *b, size_t stage,
		    const struct ft_pass_calls *pass, ft_ps input,
		    struct stage_state *s)
{
	struct front f = front_at(&b->of[stage], s, input);
	const struct block *reduces;

	bound_put_pass(&f, b, stage, pass);
	s->compute = f.stream[FT_STREAM_COMPUTE];
	s->gather = f.stream[FT_STREAM_GATHER];
	s->reduce = f.stream[FT_STREAM_REDUCE];
	s->gathers = closed(&b->of[stage], front_block(&f, FT_STREAM_GATHER));
	reduces = front_block(&f, FT_STREAM_REDUCE);
	s->reduces_any = reduces != NULL;
	if (reduces)
		s->reduces = closed(&b->of[stage], reduces);
}

/* What a pass that was timed does to the blocks of its stage. */
static void run_blocks(const struct front_of *of, const struct pass_time *d,
		       struct stage_state *s)
{
	struct block *g = &s->gathers, *r = &s->reduces, since = *r;

	g->compute += d->work.compute;
	g->collective += d->work.collective;
	since.compute += d->work.compute;
	since.collective += d->work.collective;
	if (d->reduces_any) {
		since.alone = d->reduces.all;
		since.compute = block_compute(of, &since);
		since.collective += d->reduces.all;
		r->compute = s->compute + d->reduces.compute;
		r->collective = s->compute + d->reduces.collective;
	}
	if (s->reduces_any || !d->reduces_any) {
		r->compute = later(d->reduces_any ? r->compute : 0, since.compute);
		r->collective =
			later(d->reduces_any ? r->collective : 0, since.collective);
	}
	s->reduces_any |= d->reduces_any;
}

/* A pass by the times that were found for its kind. */
static void run_timed(const struct front_of *of, const struct pass_time *d, ft_ps input,
		      struct stage_state *s)
{
	run_blocks(of, d, s);
	s->reduce += d->reduces_any ? d->reduces.all : 0;
	if (d->reduced != NOT_YET)
		s->reduce = later(s->reduce, s->compute + d->reduced);
	if (d->gathered != NOT_YET)
		s->gather = later(s->gather, s->compute + d->gathered);
	s->compute = later(s->compute + d->length, input + d->from_first);
}

/* A stage's tail begins with its last pass, behind which a pipeline may be flushed. */
static size_t tail_of(const struct ft_outline *o, size_t stage)
{
	size_t last = o->n_order[stage] - 1;

	return o->order[stage][last].kind == FT_SLOT_FLUSH ? last - 1 : last;
}

/* Run as many passes of a stage as can be; true: some. */
static bool advance(const struct bounding *b, struct progress *g, size_t stage)
{
	const struct ft_outline *o = b->o;
	struct stage_state *s = &g->is[stage];
	bool moved = false;

	while (g->next[stage] < o->n_order[stage]) {
		const struct ft_outline_slot *t = &o->order[stage][g->next[stage]];
		const struct pass_time *d = &b->pass[stage][t->pass];
		ft_ps from = d->awaits ? input(b, g, stage, t) : 0;

		if (from == NOT_YET)
			break;
		if (g->next[stage]++ == tail_of(o, stage)) {
			g->before[stage] = *s;
			g->input[stage] = from;
		}
		if (d->gathers)
			run_put(b, stage, &o->pass[stage][t->pass], from, s);
		else
			run_timed(&b->of[stage], d, from, s);
		g->end[stage][end_at(o->plan, t->kind, t->micro_batch, t->chunk)] =
			s->compute;
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
			      ARENA_ARRAY(b->mem, n, struct stage_state),
			      ARENA_ARRAY(b->mem, n, struct stage_state),
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

/* The tail of each class and the update, until all is over. */
static ft_ps over_tails(const struct bounding *b, const struct progress *g)
{
	const struct ft_outline *o = b->o;
	ft_ps longest = 0;

	for (size_t s = 0; s < o->graph.n_classes; s++) {
		const struct ft_class *k = &o->graph.rank_class[s];
		struct front f = front_at(&b->of[s], &g->before[s], g->input[s]);

		for (size_t i = tail_of(o, s); i < o->n_order[s]; i++)
			bound_put_pass(&f, b, s, &o->pass[s][o->order[s][i].pass]);
		for (size_t i = o->last_call[s]; i < k->n_calls; i++)
			front_call(&f, &b->of[s], k->call[i].segment,
				   (int64_t)k->call[i].repeat);
		for (int i = 0; i < FT_STREAMS; i++)
			longest = later(f.stream[i], longest);
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
	for (size_t s = 0; s < n; s++)
		assert(g.next[s] == b->o->n_order[s]); /* a plan's passes all end */
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
				(double)b->of[class].timing[seg->op[j].work].duration;
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
			ft_ps t = b->of[0].timing[op->work].duration;

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
			 .memo = memo,
			 .outline = true };
	struct bounding b = { .mem = &mem, .o = o };
	ft_ps others;
	bool ok = job_time(&j, given->start, err);

	if (ok) {
		b.of = ARENA_ARRAY(&mem, o->graph.n_classes, struct front_of);
		for (size_t c = 0; c < o->graph.n_classes; c++)
			b.of[c] = front_of(given->cluster->gpu, &o->graph, j.timing[c]);
		*bound = of_streams(&b);
	}
	if (ok && !pairs) {
		find_transfers(&b);
		bound_time_passes(&b);
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
