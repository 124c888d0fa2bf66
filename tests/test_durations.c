/*
 * tests/test_durations.c - what each work of a drawn plan takes on each stage, and when the host launches
 * it: out of what it takes alone, by the equations at the heads of sim/clocks.c and sim/durations.c
 */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"
#include "sim/job.h"
#include "tests/check.h"
#include "tests/plan_drawn.h"

enum { PLANS = 40 };

static double factor_of(const struct ft_stack *k, const struct ft_work *w,
			const char *generation)
{
	double back = 1;

	if (w->kind != FT_GEMM)
		return w->kind == FT_ATTENTION ? k->attention_factor.value :
						 k->memory_factor.value;
	if (w->gemm.groups > 1 && w->gemm.layout != FT_FORWARD)
		back = k->grouped_back[w->dtype].value;
	for (size_t i = 0; i < k->n_gemm_on; i++)
		if (!strcmp(k->gemm_on[i].generation, generation))
			return back * k->gemm_on[i].factor.value;
	return back * k->gemm_factor.value;
}

/* The largest of n GPUs whose speeds are normal: where (n - 3/8) of n + 1/4 lie below. */
static double slowest(const struct ft_cluster *c)
{
	double n = (double)c->ranks, s = c->imperfections.gpu_speed_spread_frac;
	double low = -9, high = 9;

	if (n < 2)
		return 1;
	for (int i = 0; i < 100; i++) {
		double x = (low + high) / 2;

		if ((1 + erf(x / sqrt(2))) / 2 < (n - 0.375) / (n + 0.25))
			low = x;
		else
			high = x;
	}
	return 1 + s * low;
}

/* What is known of the card's watts in the kernel, of its limit; 0: as products. */
static double asks_of(const struct ft_cluster *c, const struct ft_work *w,
		      double burst_s)
{
	const struct ft_gpu *gpu = c->gpu;
	const struct ft_part *part = ft_parts_gpu(c->parts);
	double idle = fmin(1, gpu->idle_w.value / gpu->limit_w.value);
	double asks = idle + (1 - idle) * part->memory_frac.value;

	if (w->kind == FT_MEMORY_BOUND) {
		for (size_t i = 0; i < gpu->n_memory; i++)
			if (!strcmp(gpu->memory[i].kernel, w->memory.kernel) &&
			    gpu->memory[i].w.value > 0)
				asks = fmin(1, gpu->memory[i].w.value /
						       gpu->limit_w.value);
		return asks;
	}
	if (w->kind != FT_ATTENTION || !(gpu->attention_clock.value > 0))
		return 0;
	return fmin(1, ft_work_flop(w) / burst_s /
			       (gpu->peak_flop_per_s[w->dtype].value *
				gpu->gemm_efficiency[w->dtype].value)) /
	       pow(gpu->sustained[w->dtype].value, part->clock_exponent.value);
}

/* One op of a work, at the full clock and at the sustained one. */
struct both {
	double burst_s, sustained_s, times;
	double asks; /* of the limit: attention at the clock of products, kernels bound by memory */
};

/* The most launches of an op of it. */
static double launches_of(const struct ft_graph *g, size_t work)
{
	double most = 0;

	for (size_t i = 0; i < g->n_segments; i++)
		for (size_t j = 0; j < g->segment[i].n_ops; j++)
			if (g->segment[i].op[j].work == work)
				most = fmax(most, g->segment[i].op[j].launches);
	return most;
}

static struct both alone(const struct ft_scenario *s, const struct ft_graph *g,
			 size_t work)
{
	const struct ft_cluster *c = s->cluster;
	struct ft_work w = g->work[work];
	double gap = s->stack->gap_s.value > 0 ? s->stack->gap_s.value :
						 c->gpu->launch_gap_s.value;
	double times = w.kind == FT_MEMORY_BOUND ? fmax(1, launches_of(g, work)) : 1;
	double factor = factor_of(s->stack, &w, c->gpu->ccl_generation) * slowest(c);
	struct ft_prediction p;
	struct both t;
	struct ft_error err;

	if (w.kind == FT_MEMORY_BOUND && !(w.memory.bytes > 0))
		return (struct both){ .times = 1 }; /* a mark */
	if (ft_work_is_host_copy(&w)) {
		t.burst_s = w.memory.bytes / c->node->host_link_bytes_per_s.value + gap;
		t.sustained_s = t.burst_s;
		return t;
	}
	if (w.kind == FT_MEMORY_BOUND)
		w.memory.bytes /= times;
	ok_or_say(ft_kernel_predict(c->gpu, &w, FT_CLOCK_BURST, &p, &err), err);
	t.burst_s = t.sustained_s = times * (factor * p.time_s + gap);
	t.asks = asks_of(c, &w, p.time_s);
	if (w.kind == FT_MEMORY_BOUND)
		return t;
	ok_or_say(ft_kernel_predict(c->gpu, &w, FT_CLOCK_SUSTAINED, &p, &err), err);
	t.sustained_s = factor * p.time_s + gap;
	return t;
}

/* ---- clocks -------------------------------------------------------------------------------- */

/* Of a stage's step: kernels in bursts, of which products, these sustained, attention, what it
 * and kernels bound by memory ask for; how many of its calls receive. */
struct load {
	double all, products, sustained, attention, asked, drawn, receives;
};

static struct load load_of(const struct ft_graph *g, const struct ft_class *k,
			   const struct both *t)
{
	struct load l = { .all = 0 };

	for (size_t i = 0; i < k->n_calls; i++) {
		const struct ft_segment *seg = &g->segment[k->call[i].segment];
		double n = k->call[i].repeat;
		bool receives = false;

		for (size_t j = 0; j < seg->n_ops; j++) {
			const struct ft_work *w = &g->work[seg->op[j].work];
			const struct both *x = &t[seg->op[j].work];

			receives |= seg->op[j].stream >= FT_STREAM_RECV_FORWARD;
			if (w->kind == FT_COMMUNICATION || ft_work_is_host_copy(w))
				continue;
			l.all += n * x->burst_s;
			if (w->kind == FT_MEMORY_BOUND) {
				l.drawn += n * x->burst_s * x->asks;
			} else if (x->asks > 0) {
				l.attention += n * x->burst_s;
				l.asked += n * x->burst_s * x->asks;
			} else {
				l.products += n * x->burst_s;
				l.sustained += n * x->sustained_s;
			}
		}
		l.receives += receives ? n : 0;
	}
	return l;
}

/* The highest clock at which what a step asks for in `of` seconds is the limit, by halving:
 * products no more than at 1, attention than in its bursts. */
static double clock_of(const struct ft_cluster *c, const struct load *l, double of)
{
	const struct ft_part *gpu = ft_parts_gpu(c->parts);
	double idle = fmin(1, c->gpu->idle_w.value / c->gpu->limit_w.value);
	double w = idle + (1 - idle) * gpu->waiting_frac.value;
	double e = gpu->clock_exponent.value, low = 0;
	double high = fmax(1, c->gpu->attention_clock.value);
	double slower = l->products > 0 ? l->sustained / l->products : 1;

	for (int i = 0; i < 200; i++) {
		double x = (low + high) / 2;

		if (l->products * pow(slower * fmin(1, x), e) + l->asked * pow(x, e) +
			    l->drawn + (of - l->all) * w <
		    of)
			low = x;
		else
			high = x;
	}
	return high;
}

static double clock_in(const struct ft_scenario *s, const struct ft_graph *g,
		       const struct load *all, size_t class)
{
	const struct load *l = &all[class];
	double window = ft_parts_gpu(s->cluster->parts)->limit_window_s.value;
	double longest = 0, mean = 0;

	for (size_t c = 0; c < g->n_classes; c++) {
		longest = fmax(longest, all[c].all);
		mean += all[c].all / (double)g->n_classes;
	}
	return clock_of(s->cluster, l,
			l->all + fmin(longest - l->all, fmax(1, l->receives) * window) +
				fmin(g->bubble_frac * mean, 2 * window));
}

/* How far a work falls from its burst to the clock that products hold alone. */
static double fall_of(const struct ft_gpu *gpu, const struct ft_work *w,
		      const struct both *t, const struct load *l, double clock)
{
	double slower = l->products > 0 ? l->sustained / l->products : 1;
	double own = gpu->attention_clock.value, held = gpu->sustained[w->dtype].value;

	if (w->kind == FT_ATTENTION && t->asks > 0)
		return clock < own ? fmin(1, (own / clock - 1) / (own / held - 1)) : 0;
	return clock < 1 && slower > 1 ? (1 / clock - 1) / (slower - 1) : 0;
}

/* ---- held against the job --------------------------------------------------------------------- */

static void near_s(const char *what, const char *name, ft_ps got, double want_s)
{
	if (fabs((double)got - want_s * 1e12) > 2 + 1e-6 * want_s * 1e12)
		fail_msg("%s of %s: %.0f ps, wanted %.0f", what, name, (double)got,
			 want_s * 1e12);
}

/* Alone on the machine, times what the stack says; neighbours of a pipeline are in different
 * domains where the pipeline does not fit into one. */
static void collective_is(const struct ft_scenario *s, const struct ft_graph *g,
			  size_t work, const struct work_timing *t)
{
	const struct ft_work *w = &g->work[work];
	const struct ft_cluster *c = s->cluster;
	struct ft_collective_call call = { .op = w->communication.op,
					   .bytes = w->communication.bytes,
					   .shape = g->group[w->communication.group],
					   .fanout = w->communication.fanout };
	struct ft_collective_result r;
	struct ft_error err;
	double s_;

	if (w->communication.group == FT_GROUP_PP && c->ranks > c->domain_ranks)
		call.shape.stride = call.shape.stride > c->domain_ranks ?
					    call.shape.stride :
					    c->domain_ranks;
	ok_or_say(ft_collective_predict(c, s->ccl, &call, &r, &err), err);
	s_ = r.duration.time_s * s->stack->collective_factor.value;
	if (call.fanout.copies > 0)
		s_ *= s->stack->dispatcher_factor.value;
	near_s("time", w->name, t->duration, s_);
	near_frac((double)t->nic_frac,
		  c->nic_bytes_per_s > 0 ?
			  fmin(1, r.nic_bytes / s_ / c->nic_bytes_per_s) :
			  0,
		  1e-6);
	near_frac((double)t->port_frac,
		  r.scale_up_bytes > 0 ?
			  fmin(1, r.scale_up_bytes / s_ /
					  c->node->scale_up_bytes_per_s.value) :
			  0,
		  1e-6);
	assert_int_equal(t->held, r.domains == 1	       ? HELD_BY_DOMAIN :
				  call.shape.size == r.domains ? HELD_BY_RAIL :
								 HELD_BY_NODE);
	assert_int_equal(t->copy_engine, w->communication.copy_engine);
}

/* A collective beside it; copies to the host move without compute. */
static void slows_is(const struct ft_gpu *gpu, const struct ft_work *w,
		     const struct work_timing *t)
{
	double want = w->kind == FT_MEMORY_BOUND ? gpu->collective_beside_memory.value :
						   gpu->collective_beside_compute.value;
	bool moves = w->kind == FT_MEMORY_BOUND;
	double copy =
		moves ? gpu->copy_beside_memory.value : gpu->copy_beside_gemm.value;

	if (ft_work_is_host_copy(w))
		return;
	assert_true(t->slows == (float)want && t->slows_copy == (float)copy);
	assert_true(t->beside_copy ==
		    (moves ? (float)gpu->memory_beside_copy.value : 1));
}

/* An activity once; a MB of a socket's memory takes each of its ranks at least so long. */
static double cost_s(const struct ft_scenario *s, int activity)
{
	const struct ft_cluster *c = s->cluster;
	int64_t sockets = c->node->host_sockets, ranks = 0;
	double alone =
		s->stack->host_s[activity].value * ft_sim_host_factor(c, s->stack);

	for (int64_t rank = 0; rank < c->ranks; rank++) /* of the first socket */
		ranks += rank * sockets < c->ranks_per_node;
	return activity == FT_HOST_STATE_MEMORY ?
		       fmax(alone, 1e6 * (double)(ranks * sockets) /
					   c->node->host_memory_bytes_per_s.value) :
		       alone;
}

/* Of each segment: what it costs besides its launches is spread over the ops that are launched one by one, in front of
 * where the host waits and behind; each then takes its launches. */
static void host_is(const struct ft_scenario *s, const struct ft_graph *g,
		    const struct job *j)
{
	double crowd = ft_sim_host_factor(s->cluster, s->stack);
	double launch = s->stack->host_s[FT_HOST_LAUNCH].value * crowd;

	for (size_t i = 0; i < g->n_segments; i++) {
		const struct ft_segment *seg = &g->segment[i];
		const ft_ps *at = j->engine.host + j->engine.host_begin[i];
		double now = 0, late = 0;

		for (size_t c = seg->n_behind + 1; c-- > 0;)
			for (int h = 0; h < FT_HOSTS && c; h++)
				late += seg->behind[c - 1].host[h] * cost_s(s, h);
		for (size_t c = 0; c <= seg->n_behind; c++) {
			size_t from = c ? seg->behind[c - 1].op : 0, apart = 0;
			size_t to = c < seg->n_behind ? seg->behind[c].op : seg->n_ops;
			double fixed = c ? 0 : -late;

			for (int h = 0; h < FT_HOSTS; h++)
				fixed += (c ? seg->behind[c - 1].host[h] :
					      seg->host[h]) *
					 cost_s(s, h);
			for (size_t k = from; k < to; k++)
				apart += !seg->op[k].graphed;
			for (size_t k = from; k < to; k++) {
				bool graphed = seg->op[k].graphed;

				if (!apart || !graphed)
					now += fixed /
					       (double)(apart ? apart : to - from);
				now += graphed ? 0 : seg->op[k].launches * launch;
				near_s("launch", seg->name, at[k], now);
			}
			now += from == to ? fixed : 0;
		}
		near_s("host", seg->name, j->engine.host_total[i], now);
	}
}

static void hold(const struct ft_scenario *s, const struct ft_graph *g,
		 struct arena *mem)
{
	struct job j = { .mem = mem,
			 .graph = g,
			 .cluster = s->cluster,
			 .stack = s->stack,
			 .ccl = s->ccl };
	struct both *t = ARENA_ARRAY(mem, g->n_works, struct both);
	struct load *load = ARENA_ARRAY(mem, g->n_classes, struct load);
	struct ft_error err;

	ok_or_say(job_time(&j, s->plan->step_start, &err), err);
	for (size_t i = 0; i < g->n_works; i++)
		if (g->work[i].kind != FT_COMMUNICATION)
			t[i] = alone(s, g, i);
	for (size_t c = 0; c < g->n_classes; c++)
		load[c] = load_of(g, &g->rank_class[c], t);
	for (size_t c = 0; c < g->n_classes; c++) {
		double clock = clock_in(s, g, load, c);
		struct work_timing *slow = job_slowed(&j, c, 0.8);

		for (size_t i = 0; i < g->n_works; i++) {
			const struct work_timing *x = &j.timing[c][i];
			const struct ft_work *w = &g->work[i];
			bool compute = w->kind != FT_COMMUNICATION;

			if (!compute) {
				collective_is(s, g, i, x);
			} else {
				near_s("time", w->name, x->duration,
				       t[i].burst_s + fall_of(s->cluster->gpu, w, &t[i],
							      &load[c], clock) *
							      (t[i].sustained_s -
							       t[i].burst_s));
				slows_is(s->cluster->gpu, w, x);
			}
			near_s("time of a slow GPU", w->name, slow[i].duration,
			       (double)x->duration * 1e-12 /
				       (compute && !ft_work_is_host_copy(w) ? 0.8 : 1));
		}
	}
	host_is(s, g, &j);
}

static void a_work_takes_what_it_takes_alone_by_the_clock(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();
	int held = 0, pipelines = 0, refused = 0;

	(void)state;
	for (seed = 41; held < PLANS;) {
		struct arena mem = { 0 };
		struct ft_error err = { .text = "" };
		const char *text = drawn(&mem);
		struct node *n =
			node_read_text(&mem, "drawn", text, strlen(text), &err);
		struct ft_scenario *s;
		struct ft_graph *g = NULL;

		ok_or_say(n, err);
		s = ft_scenario_from(shelf, n, "drawn", true, &err);
		if (s && s->cluster->node->host_link_bytes_per_s.value > 0)
			g = ft_graph_build(s->model, s->plan, s->stack, &err);
		if (g) {
			hold(s, g, &mem);
			held++;
			pipelines += g->n_classes > 1;
		} else if (++refused > 100 * PLANS) {
			fail_msg("only %d of %d plans drawn; the last: %s", held,
				 refused, err.text);
		}
		ft_graph_free(g);
		ft_scenario_free(s);
		arena_release(&mem);
	}
	assert_true(pipelines > PLANS / 3);
	ft_shelf_free(shelf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_work_takes_what_it_takes_alone_by_the_clock),
	};

	return cmocka_run_group_tests_name("sim/durations", tests, NULL, NULL);
}
