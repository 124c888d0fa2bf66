/*
 * sim/sketched.c - a lower bound of a step from what its layers run alone
 *
 * With t(u) what unit u takes of a stage forward and back (sim/bound_front.h), n(s, u) how
 * many of it stage s has, and m micro-batches,
 *
 *   step >= sum over stages before s of a first chunk forward
 *           + m sum over u of n(s, u) t(u)
 *           + sum over stages before s of a first chunk back
 *
 * where what awaits another stage counts from its first compute op on. The last sum is left
 * out where a schedule splits backwards. The first and the last come again with each flush of
 * the pipeline but the last. t depends on the clock, which falls the less the
 * more a stage waits, so that the bound follows from itself: durations.c has
 * longest = max L + b mean L <= (1 + b) step, and what a step of length z allows to be the
 * least, phi(z), falls as z grows. step >= phi(step), so that step >= z for any z with
 * phi(z) >= z. docs/plan.md has the proof.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/plain.h"
#include "foretoken/sim.h"
#include "sim/bound_front.h"

enum { FALLS = 16, UNITS_MOST = 18, HALVINGS = 5 };

/* Of a unit, at each sixteenth of the clock's fall. */
struct unit_time {
	ft_ps forward[FALLS + 1], backward[FALLS + 1], first[FALLS + 1];
	ft_ps forward_in[FALLS + 1], back_in[FALLS + 1]; /* from the first compute op */
	struct job_load load; /* of a micro-batch's compute */
};

struct ft_sketched {
	struct arena mem; /* first: the handle is the arena's */
	const struct ft_cluster *cluster;
	size_t n_units;
	size_t *unit_of; /* [n_layers] */
	size_t n_layers;
	bool clocked;  /* products are known to the last */
	double hidden; /* copies beside compute count as kernels, too */
	struct unit_time *unit;
};

/* ---- what units take ---------------------------------------------------------------- */

static void front_calls(struct front *f, const struct front_of *of,
			const struct ft_sketch_calls *calls)
{
	const struct ft_call *call = of->graph->rank_class[0].call;

	for (size_t i = calls->begin; i < calls->end; i++)
		front_call(f, of, call[i].segment, call[i].repeat);
}

/* From the end of compute before it on; in: from its own first compute op on. */
static ft_ps length(const struct front_of *of, const struct ft_sketch_calls *calls,
		    bool in)
{
	struct front f;

	front_open(&f);
	if (!in)
		f.stream[FT_STREAM_COMPUTE] = 0;
	front_calls(&f, of, calls);
	return f.stream[FT_STREAM_COMPUTE] > 0 ? f.stream[FT_STREAM_COMPUTE] : 0;
}

static void time_unit(struct unit_time *t, const struct front_of *of,
		      const struct ft_sketch_unit *u, int fall)
{
	ft_ps back = length(of, &u->backward, true);
	ft_ps first = length(of, &u->first, true);

	t->forward[fall] = length(of, &u->forward, false);
	t->backward[fall] = length(of, &u->backward, false);
	t->first[fall] = length(of, &u->first, false);
	t->forward_in[fall] = length(of, &u->forward, true);
	t->back_in[fall] = back < first ? back : first;
}

/* Compute of the calls. */
static struct job_load load_of(const struct ft_graph *g, const struct clocks *t,
			       const struct ft_sketch_calls *calls)
{
	struct job_load sum = { .products = 0 };

	for (size_t i = calls->begin; i < calls->end; i++) {
		const struct ft_call *call = &g->rank_class[0].call[i];
		const struct ft_segment *seg = &g->segment[call->segment];

		for (size_t k = 0; k < seg->n_ops; k++)
			if (seg->op[k].stream == FT_STREAM_COMPUTE)
				job_load_add(&sum, g->work[seg->op[k].work].kind,
					     &t[seg->op[k].work], call->repeat);
	}
	return sum;
}

static void add_load(struct job_load *to, const struct job_load *l, double times)
{
	to->products += times * l->products;
	to->sustained += times * l->sustained;
	to->attention += times * l->attention;
	to->asked += times * l->asked;
	to->others += times * l->others;
	to->drawn += times * l->drawn;
}

static double busy_s(const struct job_load *l)
{
	return l->products + l->attention + l->others;
}

/* The first micro-batch adds nothing to gradients: the lesser of both. */
static void add_loads(struct ft_sketched *s, const struct ft_graph *g,
		      const struct clocks *t, const struct ft_sketch_unit *u,
		      struct unit_time *to)
{
	struct job_load back = load_of(g, t, &u->backward);
	struct job_load first = load_of(g, t, &u->first);

	s->clocked &= back.products == first.products &&
		      back.sustained == first.sustained &&
		      back.attention == first.attention && back.asked == first.asked;
	to->load = load_of(g, t, &u->forward);
	add_load(&to->load, busy_s(&back) < busy_s(&first) ? &back : &first, 1);
}

/* Collectives within a layer; what crosses replicas takes no time here. */
static bool time_exchanges(struct job *j, struct ft_error *err)
{
	for (size_t i = 0; i < j->graph->n_segments; i++)
		for (size_t k = 0; k < j->graph->segment[i].n_ops; k++) {
			const struct ft_op *op = &j->graph->segment[i].op[k];

			if (op->stream >= FT_STREAM_TP && op->stream <= FT_STREAM_EP &&
			    !j->timing[0][op->work].duration &&
			    !job_time_collective(j, op->work, err))
				return false;
		}
	return true;
}

/* Copies beside compute are of replicas, too. */
static void stop_copies(struct job *j)
{
	for (size_t i = 0; i < j->graph->n_segments; i++)
		for (size_t k = 0; k < j->graph->segment[i].n_ops; k++)
			if (j->graph->segment[i].op[k].stream == FT_STREAM_COPY)
				j->timing[0][j->graph->segment[i].op[k].work].duration =
					0;
}

/* Attention at the highest clock at which the products of any stage have fallen so far: their mean
 * slowness lies between those of units. */
static struct job_clock at_fall(const struct ft_sketched *s, int fall)
{
	double most = fmax(1, s->cluster->gpu->attention_clock.value);
	double part = (double)fall / FALLS, least = INFINITY;

	for (size_t u = 0; u < s->n_units; u++) {
		const struct job_load *l = &s->unit[u].load;

		if (l->products > 0)
			least = fmin(least, l->sustained / l->products);
	}
	return (struct job_clock){ !fall || isinf(least) ? most :
							   1 / (1 + part * (least - 1)),
				   part };
}

static void time_units(struct ft_sketched *s, const struct ft_sketch *sketch,
		       struct job *j, struct clocks *t)
{
	struct front_of of = front_of(s->cluster->gpu, j->graph, j->timing[0]);

	for (size_t u = 0; u < s->n_units; u++)
		add_loads(s, j->graph, t, &sketch->unit[u], &s->unit[u]);
	for (size_t i = 0; i < j->graph->n_works; i++) /* whatever the clock */
		t[i].burst_s = fmin(t[i].burst_s, t[i].sustained_s);
	for (int fall = 0; fall <= FALLS; fall++) {
		job_set_clock(j, 0, t, at_fall(s, fall));
		stop_copies(j);
		for (size_t u = 0; u < s->n_units; u++)
			time_unit(&s->unit[u], &of, &sketch->unit[u], fall);
	}
}

struct ft_sketched *ft_sim_sketch(const struct ft_sim_job *given,
				  const struct ft_sketch *sketch, struct ft_memo *memo,
				  struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 }, room = { 0 };
	struct ft_sketched *s = ARENA_NEW(&mem, struct ft_sketched);
	struct job j = { .mem = &room,
			 .graph = &sketch->graph,
			 .cluster = given->cluster,
			 .stack = given->stack,
			 .ccl = given->ccl,
			 .memo = memo };
	struct clocks *t = job_clocks(&j, err);
	bool ok = t && time_exchanges(&j, err);

	s->mem = mem;
	s->cluster = given->cluster;
	s->n_units = sketch->n_units;
	s->n_layers = sketch->n_layers;
	s->unit_of = ARENA_ARRAY(&s->mem, s->n_layers, size_t);
	memcpy(s->unit_of, sketch->unit_of, s->n_layers * sizeof(*s->unit_of));
	s->clocked = true;
	s->hidden = given->stack->layout.fsdp_copy_in_bytes > 0 ? 2 : 1;
	s->unit = ARENA_ARRAY(&s->mem, s->n_units, struct unit_time);
	if (ok)
		time_units(s, sketch, &j, t);
	arena_release(&room);
	if (ok)
		return s;
	ft_sketched_free(s);
	return NULL;
}

void ft_sketched_free(struct ft_sketched *s)
{
	struct arena mem;

	if (!s)
		return;
	mem = s->mem;
	arena_release(&mem);
}

/* ---- a plan's bound ------------------------------------------------------------------ */

struct stage_sums {
	int32_t all[UNITS_MOST], chunk[UNITS_MOST]; /* units; of the first chunk */
	bool like;				    /* the one before */
	struct job_load load;			    /* of a micro-batch */
};

struct placing {
	const struct ft_sketched *s;
	const struct ft_plan *p;
	struct stage_sums *stage; /* [pp] */
	int64_t *again;		  /* [pp * vpp] layers of each chunk that run again */
	double m;		  /* micro-batches that are whole */
};

static void place_layers(const struct placing *x, const int64_t *begin, int64_t stage)
{
	const struct ft_plan *p = x->p;
	struct stage_sums *t = &x->stage[stage];

	for (int64_t c = 0; c < p->vpp; c++) {
		int64_t place = ft_plan_place(p, stage, c), from = begin[place];
		int64_t again = x->again[place];

		for (int64_t l = from; l < from + p->stage_layers[place]; l++) {
			size_t unit = x->s->unit_of[l] + (again > 0);

			again--;
			t->all[unit]++;
			t->chunk[unit] += !c;
		}
	}
}

static void place_all(struct placing *x, struct arena *mem)
{
	const struct ft_plan *p = x->p;
	int64_t chunks = p->pp * p->vpp, at = 0;
	int64_t *begin = ARENA_ARRAY(mem, (size_t)chunks, int64_t);

	x->stage = ARENA_ARRAY(mem, (size_t)p->pp, struct stage_sums);
	x->again = ARENA_ARRAY(mem, (size_t)chunks, int64_t);
	if (p->recompute == FT_RECOMPUTE_FULL)
		ft_plan_deal(p, p->recompute_layers, x->again);
	for (int64_t c = 0; c < chunks; at += p->stage_layers[c++])
		begin[c] = at;
	for (int64_t s = 0; s < p->pp; s++)
		place_layers(x, begin, s);
	x->stage[0].all[0] = x->stage[0].chunk[0] = 1;
	x->stage[ft_plan_stage(p, chunks - 1)].all[1] = 1;
	for (int64_t s = 0; s < p->pp; s++) {
		struct stage_sums *t = &x->stage[s];

		t->like = s && !memcmp(t[-1].all, t->all, sizeof(t->all)) &&
			  !memcmp(t[-1].chunk, t->chunk, sizeof(t->chunk));
		for (size_t u = 0; u < x->s->n_units; u++)
			add_load(&t->load, &x->s->unit[u].load, t->all[u]);
	}
}

/* The least fall of its clock, in sixteenths, in a step of z seconds. */
static int fall_at(const struct placing *x, const struct stage_sums *t, double z)
{
	const struct ft_part *gpu = ft_parts_gpu(x->s->cluster->parts);
	double filling = fmin(z * ft_plan_bubble(x->p), job_filling_s(gpu));
	double longest = fmax((z + filling) * x->s->hidden / x->m, busy_s(&t->load));
	double fall;

	if (!x->s->clocked || x->m < (double)x->p->micro_batches ||
	    t->load.products <= 0 ||
	    t->load.drawn < t->load.others * job_waiting_asks(x->s->cluster))
		return 0;
	fall = fmin(1, job_clock_of(x->s->cluster, &t->load, longest).fall);
	return (int)fmin(FALLS, floor(FALLS * fall * (1 - 1e-9)));
}

/* A stage's units at so much of a fall. */
struct stage_times {
	double forward, back; /* of all */
	double first;	      /* all of the first micro-batch, both ways */
	double chunk_forward,
		chunk_back; /* of the first chunk, where it awaits another */
	double ahead;	    /* of a forward's first compute op, at most */
};

static struct stage_times times_of(const struct placing *x, const struct stage_sums *t,
				   int fall)
{
	struct stage_times sum = { .forward = 0 };

	for (size_t u = 0; u < x->s->n_units; u++) {
		const struct unit_time *of = &x->s->unit[u];
		double forward = (double)of->forward[fall];
		double in = (double)of->forward_in[fall];

		sum.forward += t->all[u] * forward;
		sum.back += t->all[u] * (double)of->backward[fall];
		sum.first += t->all[u] * (forward + (double)of->first[fall]);
		sum.chunk_forward += t->chunk[u] * in;
		sum.chunk_back += t->chunk[u] * (double)of->back_in[fall];
		sum.ahead = fmax(sum.ahead, forward - in);
	}
	return sum;
}

/* In seconds. A step of length z takes at least phi(z). */
static double phi(const struct placing *x, double z)
{
	struct stage_times t = { .forward = 0 };
	double before = 0, behind = 0, most = 0, each;
	bool turns = !ft_schedule_splits(x->p->schedule);
	double runs = (double)(x->p->micro_batches / ft_plan_run(x->p));

	for (int64_t s = 0; s < x->p->pp; s++) {
		const struct stage_sums *of = &x->stage[s];

		if (!of->like)
			t = times_of(x, of, fall_at(x, of, z));
		each = t.forward + t.back;
		most = fmax(most, runs * (before + behind - (s ? t.ahead : 0)) +
					  t.first + (runs - 1) * fmin(t.first, each) +
					  (x->m - runs) * each);
		before += t.chunk_forward;
		behind += turns ? t.chunk_back : 0;
	}
	return 1e-12 * most;
}

/* The largest z found with phi(z) >= z. */
static double fixed_point(const struct placing *x)
{
	double low = phi(x, INFINITY), high = phi(x, low);

	for (int i = 0; i < HALVINGS && high > low; i++) {
		double z = (low + high) / 2;

		if (phi(x, z) >= z)
			low = z;
		else
			high = z;
	}
	return low;
}

static double busiest(const struct placing *x, double *mean)
{
	double most = 0;

	*mean = 0;
	for (int64_t s = 0; s < x->p->pp; s++) {
		const struct stage_sums *t = &x->stage[s];
		double busy = x->m * busy_s(&t->load);

		most = fmax(most, busy);
		*mean += busy / (double)x->p->pp;
	}
	return most;
}

struct ft_bound ft_sketched_bound(const struct ft_sketched *s, const struct ft_plan *p)
{
	PLAIN_NUMBERS;
	/* passes run side by side, or backwards are cut in two now and whole then */
	bool mixed = (p->overlap_ep && p->ep > 1) || p->schedule == FT_DUALPIPEV;
	struct placing x = { .s = s, .p = p };
	struct ft_bound bound = { 0, 0 };
	struct arena mem = { 0 };
	double step;

	x.m = (double)(p->micro_batches - (p->last_micro_batch != p->micro_batch));
	if (s->n_units > UNITS_MOST || x.m < 1)
		return bound;
	place_all(&x, &mem);
	step = busiest(&x, &bound.busy_s);
	if (!mixed)
		step = fmax(step, fixed_point(&x));
	bound.step = ft_ps_from_s(step * (1 - 1e-9));
	arena_release(&mem);
	return bound;
}
