/* sim/run.c - a graph on a cluster: durations of works, the engine, the result */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>

#include "base/arena.h"
#include "foretoken/sim.h"
#include "sim/engine.h"
#include "sim/timeline.h"

struct whole {
	struct ft_run run; /* first: the handle is the arena's */
	struct arena mem;
};

/* What one run carries from file to file. */
struct setting {
	struct arena *mem;
	const struct ft_graph *graph;
	const struct ft_cluster *cluster;
	const struct ft_stack *stack;
	struct ft_memo *memo;
	struct cost *cost;
	double *spread;     /* [n_works] relative */
	bool *extrapolated; /* [n_works] */
};

/* ---- durations ------------------------------------------------------------- */

static double gap_s(const struct setting *s)
{
	return s->stack->gap_s.value > 0 ? s->stack->gap_s.value :
					   s->cluster->gpu->launch_gap_s.value;
}

/* Launches that each op of this work makes: the largest over its ops. */
static void launches_of(const struct ft_graph *g, double *launches)
{
	for (size_t i = 0; i < g->n_segments; i++)
		for (size_t j = 0; j < g->segment[i].n_ops; j++) {
			const struct ft_op *op = &g->segment[i].op[j];

			if (op->launches > launches[op->work])
				launches[op->work] = op->launches;
		}
}

/*
 * All ranks wait for the slowest in every step: of n GPUs whose speeds are normal
 * with deviation s the slowest is 1 + s E[max of n], Blom's approximation.
 */
static double slowest_gpu(const struct ft_cluster *c)
{
	double n = (double)c->ranks, s = c->imperfections.gpu_speed_spread_frac;

	return s > 0 && n > 1 ?
		1 + s * gsl_cdf_ugaussian_Pinv((n - 0.375) / (n + 0.25)) : 1;
}

/* A kernel's time at the sustained clock mixed with that of a burst. */
struct clocks {
	double burst_s, sustained_s; /* of one op, stack's factor included */
};

static double stack_factor(const struct ft_stack *k, enum ft_work_kind kind)
{
	switch (kind) {
	case FT_GEMM:
		return k->gemm_factor.value;
	case FT_ATTENTION:
		return k->attention_factor.value;
	default:
		return k->memory_factor.value;
	}
}

static bool compute_clocks(struct setting *s, size_t i, double launches,
			   struct clocks *out, struct ft_error *err)
{
	const struct ft_gpu *gpu = s->cluster->gpu;
	struct ft_work w = s->graph->work[i];
	double factor = stack_factor(s->stack, w.kind) * slowest_gpu(s->cluster);
	struct ft_prediction p;
	double times = 1;

	if (w.kind == FT_MEMORY_BOUND && launches > 1) {
		times = launches;
		w.memory.bytes /= launches;
	}
	if (!ft_kernel_recall(s->memo, gpu, &w, FT_CLOCK_BURST, &p, err))
		return false;
	out->burst_s = out->sustained_s =
		times * (factor * p.time_s + gap_s(s));
	s->spread[i] = p.spread_frac;
	s->extrapolated[i] = p.extrapolated;
	s->cost[i].beside = (float)(w.kind == FT_MEMORY_BOUND ?
		gpu->memory_beside_collective.value :
		gpu->compute_beside_collective.value);
	if (w.kind == FT_MEMORY_BOUND)
		return true;
	if (!ft_kernel_recall(s->memo, gpu, &w, FT_CLOCK_SUSTAINED, &p, err))
		return false;
	out->sustained_s = factor * p.time_s + gap_s(s);
	return true;
}

/*
 * Copies of a token for experts of one remote domain cross the network once: of
 * c copies over k domains, (k-1) (1 - (1 - 1/k)^c) cross instead of c (k-1)/k.
 */
static double saved_by_sending_once(const struct ft_cluster *c,
				    const struct ft_work *w,
				    const struct ft_collective_result *r)
{
	double k = (double)r->domains, copies = w->communication.fanout;
	double crossing, all;

	if (copies <= 0 || r->domains < 2 || c->nic_bytes_per_s <= 0)
		return 0;
	all = copies * (k - 1) / k;
	crossing = (k - 1) * (1 - pow(1 - 1 / k, copies));
	return r->nic_bytes * (1 - crossing / all) / c->nic_bytes_per_s;
}

static bool communication_cost(struct setting *s, size_t i, struct ft_error *err)
{
	const struct ft_work *w = &s->graph->work[i];
	const struct ft_cluster *cl = s->cluster;
	struct ft_collective_result r;
	struct cost *c = &s->cost[i];
	double t;

	if (!ft_collective_predict(cl, w->communication.op,
				   w->communication.bytes,
				   s->graph->group[w->communication.group], &r,
				   err))
		return false;
	t = r.duration.time_s - saved_by_sending_once(cl, w, &r);
	t *= s->stack->collective_factor.value;
	c->duration = ft_ps_from_s(t);
	c->beside = (float)cl->gpu->collective_beside_compute.value;
	if (r.nic_bytes > 0 && cl->nic_bytes_per_s > 0)
		c->nic_frac = fmin(1, r.nic_bytes / (t * cl->nic_bytes_per_s));
	if (r.scale_up_bytes > 0)
		c->port_frac = fmin(1, r.scale_up_bytes /
			(t * cl->node->scale_up_bytes_per_s.value));
	s->spread[i] = r.duration.spread_frac;
	s->extrapolated[i] = r.duration.extrapolated;
	return true;
}

/* How often each work runs in a step, summed over classes. */
static void count_works(const struct ft_graph *g, double *count)
{
	for (size_t c = 0; c < g->n_classes; c++)
		for (size_t i = 0; i < g->class[c].n_calls; i++) {
			const struct ft_call *call = &g->class[c].call[i];
			const struct ft_segment *seg = &g->segment[call->segment];

			for (size_t j = 0; j < seg->n_ops; j++)
				count[seg->op[j].work] += call->repeat;
		}
}

/*
 * Products and attention run into the power limit, memory-bound kernels let the
 * chip cool: with d the share of products and attention in the time of all kernels,
 *	time = burst + d (sustained - burst)
 * Source: steps and seconds of products on an H200, where 8192^3 in bf16 falls to
 * 0.865 of its burst rate alone and to about 0.9 in steps. Limit: idle time is
 * not counted.
 */
static void mix_clocks(struct setting *s, const struct clocks *t)
{
	double *count = ARENA_ARRAY(s->mem, s->graph->n_works, double);
	double heavy = 0, all = 0, duty;

	count_works(s->graph, count);
	for (size_t i = 0; i < s->graph->n_works; i++) {
		enum ft_work_kind kind = s->graph->work[i].kind;

		if (kind == FT_GEMM || kind == FT_ATTENTION)
			heavy += count[i] * t[i].burst_s;
		all += count[i] * t[i].burst_s;
	}
	duty = all > 0 ? heavy / all : 0;
	for (size_t i = 0; i < s->graph->n_works; i++)
		if (s->graph->work[i].kind != FT_COMMUNICATION)
			s->cost[i].duration = ft_ps_from_s(
				t[i].burst_s +
				duty * (t[i].sustained_s - t[i].burst_s));
}

static bool price_works(struct setting *s, struct ft_error *err)
{
	size_t n = s->graph->n_works;
	double *launches = ARENA_ARRAY(s->mem, n, double);
	struct clocks *clocks = ARENA_ARRAY(s->mem, n, struct clocks);

	s->cost = ARENA_ARRAY(s->mem, n, struct cost);
	s->spread = ARENA_ARRAY(s->mem, n, double);
	s->extrapolated = ARENA_ARRAY(s->mem, n, bool);
	launches_of(s->graph, launches);
	for (size_t i = 0; i < n; i++)
		if (!(s->graph->work[i].kind == FT_COMMUNICATION ?
			      communication_cost(s, i, err) :
			      compute_clocks(s, i, launches[i], &clocks[i], err)))
			return false;
	mix_clocks(s, clocks);
	return true;
}

/* ---- the host's time ---------------------------------------------------------- */

/* Ranks of a node share its processors: each further one slows the others. */
static double host_s(const struct setting *s, enum ft_host activity)
{
	const struct ft_cluster *c = s->cluster;
	int64_t ranks = c->ranks < c->ranks_per_node ? c->ranks :
						       c->ranks_per_node;

	return s->stack->host_s[activity].value * c->node->host_factor.value *
	       (1 + s->stack->host_crowding_frac.value * (double)(ranks - 1));
}

/* When each op of a call is launched, after the call began: its own launches, and
 * an equal part of what the segment costs besides. */
static void host_offsets(const struct setting *s, struct engine_input *in)
{
	const struct ft_graph *g = s->graph;
	size_t n = 0, *begin = ARENA_ARRAY(s->mem, g->n_segments, size_t);
	ft_ps *total = ARENA_ARRAY(s->mem, g->n_segments, ft_ps), *at;

	for (size_t i = 0; i < g->n_segments; i++) {
		begin[i] = n;
		n += g->segment[i].n_ops;
	}
	at = ARENA_ARRAY(s->mem, n + 1, ft_ps);
	for (size_t i = 0; i < g->n_segments; i++) {
		const struct ft_segment *seg = &g->segment[i];
		double fixed = 0, sum = 0, part;

		for (int h = 0; h < FT_HOSTS; h++)
			fixed += seg->host[h] * host_s(s, (enum ft_host)h);
		part = seg->n_ops ? fixed / (double)seg->n_ops : fixed;
		for (size_t j = 0; j < seg->n_ops; j++) {
			sum += part + seg->op[j].launches *
					      host_s(s, FT_HOST_LAUNCH);
			at[begin[i] + j] = ft_ps_from_s(sum);
		}
		total[i] = ft_ps_from_s(seg->n_ops ? sum : fixed);
	}
	in->host = at;
	in->host_begin = begin;
	in->host_total = total;
}

/* The longest host time of one step over the classes. */
static ft_ps host_longest(const struct ft_graph *g, const ft_ps *total)
{
	ft_ps longest = 0;

	for (size_t c = 0; c < g->n_classes; c++) {
		ft_ps t = 0;

		for (size_t i = 0; i < g->class[c].n_calls; i++)
			t += total[g->class[c].call[i].segment] *
			     g->class[c].call[i].repeat;
		if (t > longest)
			longest = t;
	}
	return longest;
}

/* ---- memory --------------------------------------------------------------------- */

static double sum(const double *bytes)
{
	double t = 0;

	for (int i = 0; i < FT_MEMORIES; i++)
		t += bytes[i];
	return t;
}

/* The host allocates in program order, whatever the GPU is at. */
static void peak_memory(const struct ft_graph *g, size_t c,
			struct ft_class_result *out)
{
	const struct ft_class *class = &g->class[c];
	double now[FT_MEMORIES], at[FT_MEMORIES];

	memcpy(now, class->base_bytes, sizeof(now));
	memcpy(out->peak_bytes, now, sizeof(now));
	out->peak_total_bytes = sum(now);
	for (size_t i = 0; i < class->n_calls; i++) {
		const struct ft_segment *s =
			&g->segment[class->call[i].segment];

		for (uint32_t r = 0; r < class->call[i].repeat; r++) {
			for (int m = 0; m < FT_MEMORIES; m++) {
				at[m] = now[m] + s->peak_bytes[m];
				now[m] += s->net_bytes[m];
			}
			if (sum(at) > out->peak_total_bytes) {
				out->peak_total_bytes = sum(at);
				memcpy(out->peak_bytes, at, sizeof(at));
			}
			if (sum(now) > out->peak_total_bytes) {
				out->peak_total_bytes = sum(now);
				memcpy(out->peak_bytes, now, sizeof(now));
			}
		}
	}
}

/* ---- the result ------------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
	const struct ft_share *x = a, *y = b;

	if (x->time_s != y->time_s)
		return x->time_s < y->time_s ? 1 : -1;
	return strcmp(x->name, y->name);
}

static const char *share_name(struct setting *s, const struct ft_work *w)
{
	if (w->kind != FT_GEMM)
		return arena_text(s->mem, w->name);
	return arena_printf(s->mem, "%s (%s)", w->name,
			    ft_layout_name(w->gemm.layout));
}

static void shares(struct setting *s, const struct engine_output *out,
		   struct ft_run *run)
{
	size_t n = s->graph->n_works;
	double classes = (double)s->graph->n_classes;

	run->share = ARENA_ARRAY(s->mem, n, struct ft_share);
	for (size_t i = 0; i < n; i++) {
		const struct ft_work *w = &s->graph->work[i];
		const char *name = share_name(s, w);
		size_t j = 0;

		if (!out->work_count[i])
			continue;
		while (j < run->n_shares && strcmp(run->share[j].name, name))
			j++;
		if (j == run->n_shares)
			run->share[run->n_shares++].name = name;
		run->share[j].time_s +=
			ft_s_from_ps(out->work_time[i]) / classes;
		run->share[j].count += (double)out->work_count[i] / classes;
		run->share[j].communication |= w->kind == FT_COMMUNICATION;
		run->share[j].extrapolated |= s->extrapolated[i];
	}
	qsort(run->share, run->n_shares, sizeof(*run->share), by_time);
}

/*
 * P10 and P90: errors of one family of kernels go together, those of different
 * families do not; beside them the stack's own residual error:
 *   sd^2 = spread_stack^2 + sum over families (share of the step * spread)^2
 */
static void interval(const struct setting *s, const struct engine_output *out,
		     struct ft_run *run)
{
	const double z = 1.2816; /* of a normal distribution's P90 */
	double family[4] = { 0 }, all = 0, far = 0, sd2, step, sd;

	step = ft_s_from_ps(run->step);
	for (size_t i = 0; i < s->graph->n_works; i++) {
		double t = ft_s_from_ps(out->work_time[i]) /
			   (double)s->graph->n_classes;

		family[s->graph->work[i].kind] += s->spread[i] * t / step;
		all += t;
		far += s->extrapolated[i] ? t : 0;
	}
	sd2 = s->stack->spread_frac.value * s->stack->spread_frac.value;
	for (int i = 0; i < 4; i++)
		sd2 += family[i] * family[i];
	sd = sqrt(sd2);
	run->low_s = step * exp(-z * sd);
	run->high_s = step * exp(z * sd);
	run->extrapolated_frac = all > 0 ? far / all : 0;
}

/* Means over ranks; ends are padded to the step. */
static void breakdown(const struct ft_graph *g, ft_ps steady_extra,
		      struct ft_run *run)
{
	struct ft_breakdown *b = &run->breakdown;
	double ranks = 0;

	for (size_t c = 0; c < g->n_classes; c++) {
		const struct ft_class_result *r = &run->class[c];
		double w = (double)r->ranks;
		double pad = ft_s_from_ps(run->step - steady_extra - r->end);

		ranks += w;
		b->compute_s += w * ft_s_from_ps(r->compute);
		b->optimizer_s += w * ft_s_from_ps(r->optimizer);
		b->host_s += w * ft_s_from_ps(r->host + steady_extra);
		b->bubble_s += w * (ft_s_from_ps(r->bubble) +
				    (g->n_classes > 1 ? pad : 0));
		b->exposed_communication_s +=
			w * (ft_s_from_ps(r->exposed) +
			     (g->n_classes > 1 ? 0 : pad));
	}
	b->compute_s /= ranks;
	b->optimizer_s /= ranks;
	b->host_s /= ranks;
	b->bubble_s /= ranks;
	b->exposed_communication_s /= ranks;
	run->gpu_busy_frac = run->step ? (b->compute_s + b->optimizer_s) /
					 ft_s_from_ps(run->step) : 0;
}

static bool simulate(struct setting *s, enum ft_step_start start,
		     struct engine_input *in, struct engine_output *out,
		     struct ft_run *run, struct ft_error *err)
{
	const struct ft_graph *g = s->graph;
	ft_ps host;

	if (!price_works(s, err))
		return false;
	in->graph = g;
	in->cost = s->cost;
	host_offsets(s, in);
	in->host_free = start == FT_STEADY && g->host_runs_ahead;
	in->copy_beside_gemm = s->cluster->gpu->copy_beside_gemm.value;
	out->class = run->class;
	out->work_time = ARENA_ARRAY(s->mem, g->n_works, ft_ps);
	out->work_count = ARENA_ARRAY(s->mem, g->n_works, uint64_t);
	if (in->timeline)
		timeline_begin(in->timeline, g);
	if (!engine_run(s->mem, in, out, err))
		return false;
	if (in->timeline)
		timeline_end(in->timeline, out->end);
	/* launches that run ahead still set the pace when they are the slower */
	host = in->host_free ? host_longest(g, in->host_total) : 0;
	run->step = host > out->end ? host : out->end;
	return true;
}

struct ft_run *ft_sim_run(const struct ft_graph *graph,
			  const struct ft_cluster *cluster,
			  const struct ft_stack *stack,
			  enum ft_step_start start, FILE *timeline,
			  struct ft_memo *memo, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct whole *w = ARENA_NEW(&mem, struct whole);
	struct ft_run *run = &w->run;
	struct engine_input in = { .timeline = timeline };
	struct engine_output out = { 0 };
	struct setting s;

	w->mem = mem;
	s = (struct setting){ .mem = &w->mem, .graph = graph,
			      .cluster = cluster, .stack = stack,
			      .memo = memo };
	run->n_classes = graph->n_classes;
	run->class = ARENA_ARRAY(&w->mem, graph->n_classes,
				 struct ft_class_result);
	for (size_t c = 0; c < graph->n_classes; c++) {
		run->class[c].name = arena_text(&w->mem, graph->class[c].name);
		run->class[c].ranks = graph->class[c].ranks;
		peak_memory(graph, c, &run->class[c]);
	}
	if (!simulate(&s, start, &in, &out, run, err)) {
		ft_run_free(run);
		return NULL;
	}
	run->events = out.events;
	breakdown(graph, run->step - out.end, run);
	interval(&s, &out, run);
	shares(&s, &out, run);
	return run;
}

void ft_run_free(struct ft_run *run)
{
	struct arena mem;

	if (!run)
		return;
	mem = ((struct whole *)run)->mem;
	arena_release(&mem);
}
