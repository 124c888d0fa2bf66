/* sim/durations.c - durations of works, on each class of ranks; times of the host */
#include <math.h>
#include <string.h>

#include <gsl/gsl_cdf.h>

#include "base/arena.h"
#include "sim/collective.h"
#include "sim/job.h"
#include "sim/kernel.h"

/* ---- durations ------------------------------------------------------------- */

static double gap_s(const struct job *s)
{
	return s->stack->gap_s.value > 0 ? s->stack->gap_s.value :
					   s->cluster->gpu->launch_gap_s.value;
}

/* How the ops of a work are launched. */
struct launched {
	double times; /* the largest over its ops */
	bool alone;   /* one of them by no CUDA graph */
};

static void launches_of(const struct ft_graph *g, struct launched *of)
{
	for (size_t i = 0; i < g->n_segments; i++)
		for (size_t j = 0; j < g->segment[i].n_ops; j++) {
			const struct ft_op *op = &g->segment[i].op[j];

			of[op->work].times = fmax(of[op->work].times, op->launches);
			of[op->work].alone |= !op->graphed;
		}
}

/* What a kernel takes, with the gap in front of it. One of a CUDA graph takes less: its gap is shorter, and the events that its time
 * was measured by are not there; no less than the shortest kernel, or than half of what was measured. */
static double kernel_s(const struct job *s, double measured_s, bool alone)
{
	double least = fmax(s->cluster->gpu->kernel_floor_s.value, measured_s / 2);
	double all = measured_s + gap_s(s);

	return alone ? all :
		       fmin(all, fmax(least, all - s->stack->graphed_kernel_s.value));
}

/*
 * All ranks wait for the slowest in every step: of n GPUs whose speeds are normal
 * with deviation s the slowest is 1 + s E[max of n], Blom's approximation.
 */
static double slowest_gpu(const struct ft_cluster *c)
{
	double n = (double)c->ranks, s = c->imperfections.gpu_speed_spread_frac;

	return s > 0 && n > 1 ?
		       1 + s * gsl_cdf_ugaussian_Pinv((n - 0.375) / (n + 0.25)) :
		       1;
}

static double stack_factor(const struct job *s, const struct ft_work *w)
{
	const struct ft_stack *k = s->stack;
	bool experts_back = w->kind == FT_GEMM && w->gemm.groups > 1 &&
			    w->gemm.layout != FT_FORWARD;

	switch (w->kind) {
	case FT_GEMM:
		return ft_stack_gemm(k, s->cluster->gpu->ccl_generation)->value *
		       (experts_back ? k->grouped_back[w->dtype].value : 1);
	case FT_ATTENTION:
		return k->attention_factor.value;
	default:
		return k->memory_factor.value;
	}
}

/* Between nodes rings run through all ranks of a node, one or more for each of their NICs. */
static void set_beside(const struct ft_cluster *c, const struct ft_work *w,
		       struct work_timing *t)
{
	const struct ft_gpu *gpu = c->gpu;
	double inside = gpu->collective_units.value;
	double nics = (double)c->nics_per_node, ranks = (double)c->ranks_per_node;
	double node = nics * gpu->collective_units_per_nic.value;
	double port = c->node->scale_up_bytes_per_s.value;
	const double units[HELD_KINDS] = { fmin(inside, node / ranks),
					   fmin(inside, node), inside };
	const double rate[HELD_KINDS] = { fmin(1, c->nic_bytes_per_s / port),
					  fmin(1, c->nic_bytes_per_s * ranks / port),
					  1 };

	for (int i = 0; i < HELD_KINDS; i++)
		t->beside[i] = (float)kernel_beside(gpu, w, units[i], rate[i]);
	/* also of copies of packed gradients, which run where collectives do: by no NIC */
	t->held = HELD_BY_DOMAIN;
	t->slows = (float)(w->kind == FT_MEMORY_BOUND ?
				   gpu->collective_beside_memory.value :
				   gpu->collective_beside_compute.value);
	t->slows_copy =
		(float)(w->kind == FT_MEMORY_BOUND ? gpu->copy_beside_memory.value :
						     gpu->copy_beside_gemm.value);
	t->beside_copy =
		(float)(w->kind == FT_MEMORY_BOUND ? gpu->memory_beside_copy.value : 1);
	/* groups that are launched one by one let others in */
	t->holds_all = gpu->persistent_products && w->kind == FT_GEMM &&
		       (w->gemm.groups <= 1 || w->gemm.static_tiles) &&
		       t->beside[HELD_BY_DOMAIN] > 1;
}

/* A copy engine's: at one pace, whatever the clock. */
static bool host_copy(struct job *s, size_t i, struct clocks *out, struct ft_error *err)
{
	const struct ft_node *node = s->cluster->node;
	double link = node->host_link_bytes_per_s.value;

	if (link <= 0)
		return ft_fail(
			err, NULL,
			"training.offload_layers and offload_state: node '%s' has no host_link, "
			"the bandwidth of a GPU to host memory",
			node->name);
	out->burst_s = out->sustained_s =
		s->graph->work[i].memory.bytes / link + gap_s(s);
	return true;
}

static bool compute_clocks(struct job *s, size_t i, struct launched launched,
			   struct clocks *out, struct ft_error *err)
{
	const struct ft_gpu *gpu = s->cluster->gpu;
	struct ft_work w = s->graph->work[i];
	double factor = stack_factor(s, &w) * slowest_gpu(s->cluster);
	struct ft_prediction p;
	double times = 1;

	if (ft_work_is_host_copy(&w))
		return host_copy(s, i, out, err);
	if (ft_work_is_mark(&w)) {
		set_beside(s->cluster, &w, &s->timing[0][i]);
		return true;
	}
	if (w.kind == FT_MEMORY_BOUND && launched.times > 1) {
		times = launched.times;
		w.memory.bytes /= launched.times;
	}
	if (!ft_kernel_recall(s->memo, gpu, &w, FT_CLOCK_BURST, &p, err))
		return false;
	out->burst_s = out->sustained_s =
		times * kernel_s(s, factor * p.time_s, launched.alone);
	out->asks = job_asks(s->cluster, &w, p.time_s);
	s->spread[i] = p.spread_frac;
	s->extrapolated[i] = p.extrapolated;
	set_beside(s->cluster, &w, &s->timing[0][i]);
	if (w.kind == FT_MEMORY_BOUND)
		return true;
	if (!ft_kernel_recall(s->memo, gpu, &w, FT_CLOCK_SUSTAINED, &p, err))
		return false;
	out->sustained_s = kernel_s(s, factor * p.time_s, launched.alone);
	return true;
}

/* The slowest boundary of stages sets a pipeline's pace: neighbours in one that no domain holds are
 * taken to be in different ones, and where links of GPUs differ all its stages send. */
static struct ft_group_shape shape_of(const struct job *s, const struct ft_work *w)
{
	struct ft_group_shape x = s->graph->group[w->communication.group];
	int64_t domain = s->cluster->domain_ranks;
	int64_t stages = s->cluster->ranks / x.stride;

	if (w->communication.group != FT_GROUP_PP || x.stride >= domain)
		return x;
	if (s->cluster->ranks > domain)
		x.stride = domain;
	else if (s->cluster->gpu->scale_up[0].pairs && stages > x.size)
		x.size = stages;
	return x;
}

/* What the sends of a work meet: found once for a class, group, pattern and direction. */
struct path_cache {
	struct network_path *path[FT_GROUPS][NETWORK_SHIFT + 1][2];
};

/* Does a pipeline send it to the stage before, as gradients? */
static bool goes_back(const struct job *s, size_t work)
{
	const struct ft_graph *g = s->graph;

	for (size_t i = 0; i < g->n_segments; i++)
		for (size_t k = 0; k < g->segment[i].n_ops; k++)
			if (g->segment[i].op[k].work == work &&
			    g->segment[i].op[k].stream == FT_STREAM_SEND_BACKWARD)
				return true;
	return false;
}

/* From a class to the next stage, or to the one before; the last stage's next is the first. The
 * part whose nodes come first, the other being so many nodes behind it. Limit: chunks that run from the last stage
 * to the first (zbv, dualpipev) go as the others. */
static size_t pair_stages(const struct job *s, size_t class, bool to_before,
			  struct ft_group_shape shape, struct network_sends *x)
{
	size_t n = s->graph->n_classes;
	size_t other = (class + (to_before ? n - 1 : 1)) % n;
	size_t first = class < other ? class : other;
	int64_t apart = (int64_t)(class + other - 2 * first) *
			s->graph->group[FT_GROUP_PP].stride;

	x->back = class > other;
	x->stride = (apart > shape.stride ? apart : shape.stride) /
		    s->cluster->ranks_per_node;
	return s->first_part + first;
}

static const struct network_path *path_of(const struct job *s, size_t class,
					  size_t work, struct path_cache *cache)
{
	const struct ft_work *w = &s->graph->work[work];
	enum ft_group group = w->communication.group;
	struct ft_group_shape shape = shape_of(s, w);
	struct network_sends x =
		collective_sends(s->cluster, w->communication.op, shape);
	struct network_path **at;
	size_t part = s->first_part + class;
	bool to_before = false;

	if (!s->network)
		return NULL;
	if (group == FT_GROUP_PP || group == FT_GROUP_EMBEDDING) {
		x.pattern = NETWORK_SHIFT;
		x.stride = shape.stride / s->cluster->ranks_per_node;
		x.end = s->end_node;
	}
	if (group == FT_GROUP_PP) {
		to_before = goes_back(s, work);
		part = pair_stages(s, class, to_before, shape, &x);
	} else if (group == FT_GROUP_EMBEDDING) {
		/* the ends of a tied embedding send to each other, the last one back */
		part = s->first_part;
		x.back = class > 0;
	}
	if (x.members < 2 || x.stride < 1)
		return NULL;
	at = &cache->path[group][x.pattern][to_before];
	if (!*at) {
		*at = ARENA_NEW(s->mem, struct network_path);
		network_find(s->network, part, &x, *at);
	}
	return *at;
}

static bool time_collective(struct job *s, size_t class, size_t i,
			    struct path_cache *cache, struct ft_error *err)
{
	const struct ft_work *w = &s->graph->work[i];
	const struct network_path *path = path_of(s, class, i, cache);
	const struct ft_cluster *cl = s->cluster;
	struct ft_collective_call call = {
		.op = w->communication.op,
		.bytes = w->communication.bytes,
		.shape = shape_of(s, w),
		.fanout = w->communication.fanout,
	};
	struct ft_collective_result r;
	struct work_timing *c = &s->timing[class][i];
	double t;

	if (!(path ? collective_at(cl, s->ccl, &call, path->share, &r, err) :
		     collective_recall(s->memo, cl, s->ccl, &call, &r, err)))
		return false;
	t = r.duration.time_s * s->stack->collective_factor.value;
	if (call.fanout.copies > 0)
		t *= s->stack->dispatcher_factor.value;
	c->duration = ft_ps_from_s(t);
	c->held = r.domains <= 1	       ? HELD_BY_DOMAIN :
		  call.shape.size <= r.domains ? HELD_BY_RAIL :
						 HELD_BY_NODE;
	c->copy_engine = w->communication.copy_engine;
	c->path = path && path->n_uses ? path : NULL;
	if (r.nic_bytes > 0 && cl->nic_bytes_per_s > 0)
		c->nic_frac = (float)fmin(1, r.nic_bytes / (t * cl->nic_bytes_per_s));
	if (c->path)
		c->path_frac = (float)fmin(1, (double)c->nic_frac / path->share);
	if (r.scale_up_bytes > 0)
		c->port_frac = (float)fmin(
			1,
			r.scale_up_bytes / (t * cl->node->scale_up_bytes_per_s.value));
	s->spread[i] = r.duration.spread_frac;
	s->extrapolated[i] = r.duration.extrapolated;
	return true;
}

/* Without a network all classes meet the same links. */
static bool time_communication(struct job *s, struct ft_error *err)
{
	size_t n = s->graph->n_works;

	for (size_t c = 0; c < s->graph->n_classes; c++) {
		struct path_cache cache = { 0 };

		if (c && s->timing[c] == s->timing[c - 1])
			continue;
		for (size_t i = 0; i < n; i++)
			if (s->graph->work[i].kind != FT_COMMUNICATION)
				continue;
			else if (c && !s->network)
				s->timing[c][i] = s->timing[0][i];
			else if (!time_collective(s, c, i, &cache, err))
				return false;
	}
	return true;
}

struct clocks *job_clocks(struct job *s, struct ft_error *err)
{
	size_t n = s->graph->n_works;
	struct launched *launched = ARENA_ARRAY(s->mem, n, struct launched);
	struct clocks *clocks = ARENA_ARRAY(s->mem, n, struct clocks);

	s->timing = ARENA_ARRAY(s->mem, s->graph->n_classes, struct work_timing *);
	s->timing[0] = ARENA_ARRAY(s->mem, n, struct work_timing);
	s->spread = ARENA_ARRAY(s->mem, n, double);
	s->extrapolated = ARENA_ARRAY(s->mem, n, bool);
	launches_of(s->graph, launched);
	for (size_t i = 0; i < n; i++)
		if (s->graph->work[i].kind != FT_COMMUNICATION &&
		    !compute_clocks(s, i, launched[i], &clocks[i], err))
			return NULL;
	return clocks;
}

bool job_time_collective(struct job *s, size_t work, struct ft_error *err)
{
	struct path_cache cache = { 0 };

	return time_collective(s, 0, work, &cache, err);
}

static bool time_works(struct job *s, struct ft_error *err)
{
	const struct clocks *clocks = job_clocks(s, err);

	if (!clocks)
		return false;
	job_mix_clocks(s, clocks);
	if (!time_communication(s, err))
		return false;
	job_queue_messages(s);
	return true;
}

struct work_timing *job_slowed(const struct job *s, size_t class, double speed_frac)
{
	size_t n = s->graph->n_works;
	struct work_timing *c = ARENA_ARRAY(s->mem, n, struct work_timing);

	memcpy(c, s->timing[class], n * sizeof(*c));
	for (size_t i = 0; i < n; i++)
		if (s->graph->work[i].kind != FT_COMMUNICATION &&
		    !ft_work_is_host_copy(&s->graph->work[i]))
			c[i].duration =
				ft_ps_from_double((double)c[i].duration / speed_frac);
	return c;
}

/* ---- the host's time ---------------------------------------------------------- */

/* Each further rank of a node slows the others. */
double ft_sim_host_factor(const struct ft_cluster *c, const struct ft_stack *stack)
{
	int64_t ranks = c->ranks < c->ranks_per_node ? c->ranks : c->ranks_per_node;

	return c->node->host_factor.value *
	       (1 + stack->host_crowding_frac.value * (double)(ranks - 1));
}

/* Seconds a MB: ranks of a node fill its sockets one after the other, and share the memory of theirs. */
static double shared_memory_s(const struct ft_cluster *c)
{
	double sockets = (double)c->node->host_sockets;
	double bandwidth = c->node->host_memory_bytes_per_s.value / sockets;
	double of_socket = ceil((double)c->ranks_per_node / sockets);
	double ranks = fmin((double)c->ranks, of_socket);

	return bandwidth > 0 ? 1e6 * ranks / bandwidth : 0;
}

static double host_s(const struct job *s, enum ft_host activity)
{
	double alone = s->stack->host_s[activity].value *
		       ft_sim_host_factor(s->cluster, s->stack);

	return activity == FT_HOST_STATE_MEMORY ?
		       fmax(alone, shared_memory_s(s->cluster)) :
		       alone;
}

/* When each op of a stretch is launched, after the call began: its own launches, and an equal part of what the
 * stretch costs besides if it is launched apart. Ends when all of it is done. */
static double stretch_hosts(const struct job *s, const struct ft_segment *seg,
			    const struct ft_stretch *t, double times, double sum,
			    ft_ps *at)
{
	double fixed = 0, part;

	for (int h = 0; h < FT_HOSTS; h++)
		fixed += t->host[h] * times * host_s(s, (enum ft_host)h);
	if (t->begin == t->end)
		return sum + fixed;
	part = fixed / (double)t->among;
	for (size_t j = t->begin; j < t->end; j++) {
		if (t->graphed || !seg->op[j].graphed)
			sum += part;
		if (!seg->op[j].graphed)
			sum += seg->op[j].launches * times * host_s(s, FT_HOST_LAUNCH);
		at[j] = ft_ps_from_s(sum);
	}
	return sum;
}

void job_hosts(const struct job *s, double times, struct engine_job *in)
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
		double sum = 0;

		for (size_t k = 0; k <= seg->n_behind; k++) {
			struct ft_stretch t = ft_segment_stretch(seg, k);

			sum = stretch_hosts(s, seg, &t, times, sum, &at[begin[i]]);
		}
		total[i] = ft_ps_from_s(sum);
	}
	in->host = at;
	in->host_begin = begin;
	in->host_total = total;
}

/* t + n each, at most FT_PS_LONGEST. */
static ft_ps run_times(ft_ps t, ft_ps each, uint32_t n)
{
	return each && n > (FT_PS_LONGEST - t) / each ? FT_PS_LONGEST : t + n * each;
}

ft_ps job_host(const struct job *s, size_t class)
{
	const struct ft_class *c = &s->graph->rank_class[class];
	ft_ps t = 0;

	for (size_t i = 0; i < c->n_calls; i++)
		t = run_times(t, s->engine.host_total[c->call[i].segment],
			      c->call[i].repeat);
	return t;
}

ft_ps job_host_longest(const struct job *s)
{
	ft_ps longest = 0;

	for (size_t c = 0; c < s->graph->n_classes; c++)
		if (job_host(s, c) > longest)
			longest = job_host(s, c);
	return longest;
}

/* An update on the host without the bandwidth of its memory would be without a limit in silence. */
static bool memory_known(const struct job *s, struct ft_error *err)
{
	if (s->cluster->node->host_memory_bytes_per_s.value > 0)
		return true;
	for (size_t i = 0; i < s->graph->n_segments; i++)
		if (s->graph->segment[i].host[FT_HOST_STATE_MEMORY] > 0)
			return ft_fail(
				err, NULL,
				"training.offload_state: node '%s' has no "
				"host_memory, the bandwidth of its memory, which "
				"its ranks share",
				s->cluster->node->name);
	return true;
}

bool job_time(struct job *s, enum ft_step_start start, struct ft_error *err)
{
	if (!memory_known(s, err) || !time_works(s, err))
		return false;
	s->engine.graph = s->graph;
	s->engine.host_free = start == FT_STEADY && s->graph->host_runs_ahead;
	job_hosts(s, 1, &s->engine);
	return true;
}
