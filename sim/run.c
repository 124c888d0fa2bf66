/* sim/run.c - jobs on a cluster: parts, the engine, the result */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/plain.h"
#include "base/stats.h"
#include "base/whole.h"
#include "foretoken/sim.h"
#include "sim/engine.h"
#include "sim/job.h"
#include "sim/timeline.h"
#include "sim/timeline_kineto.h"
#include "sim/memory_svg.h"
#include "sim/timeline_svg.h"

struct whole {
	struct ft_run run; /* first: the handle is the arena's */
	struct arena mem;
};

/* Ranks that a slow GPU holds up at every layer: a pipeline of their own. */
struct slow {
	int64_t unit;	   /* which of the units of a stage */
	size_t rank_class; /* the stage it is in */
	int64_t gpu;
	double speed_frac;
};

struct setting {
	struct arena *mem;
	struct job job[2];
	int jobs;
	bool idle; /* the second only takes its place */
	struct network_part *network_part;
	struct ft_cluster whole; /* the first's, with a fabric for all */
	size_t n_slow;
	struct slow *slow;
	int64_t unit_ranks; /* of a stage, that wait for each other */
};

/* ---- the network ------------------------------------------------------------- */

static int64_t nodes_of(const struct ft_cluster *c)
{
	return ceil_div(c->ranks, c->ranks_per_node);
}

/* Classes lie on nodes in their order; the first to use a node of two counts it. */
static int64_t place(const struct job *j, int64_t first_node, struct network_part *part)
{
	const struct ft_cluster *c = j->cluster;
	int64_t rank = 0, nodes = nodes_of(c);

	for (size_t i = 0; i < j->graph->n_classes; i++) {
		int64_t ranks = j->graph->rank_class[i].ranks;
		int64_t from = rank / c->ranks_per_node;
		int64_t to = ceil_div(rank + ranks, c->ranks_per_node);

		from = from < nodes ? from : nodes - 1;
		to = to < nodes ? to : nodes;
		part[i] = (struct network_part){ first_node + from,
						 to > from ? to - from : 1 };
		rank += ranks;
	}
	return first_node + nodes;
}

static bool lay_network(struct setting *s, struct ft_error *err)
{
	size_t n = s->job[0].graph->n_classes +
		   (s->jobs > 1 ? s->job[1].graph->n_classes : 0);
	struct network *network;
	int64_t nodes = 0;

	s->whole = *s->job[0].cluster;
	s->network_part = ARENA_ARRAY(s->mem, n, struct network_part);
	for (int i = 0; i < s->jobs; i++) {
		s->job[i].first_part = i ? s->job[0].graph->n_classes : 0;
		nodes = place(&s->job[i], nodes,
			      s->network_part + s->job[i].first_part);
		s->job[i].end_node = nodes;
	}
	if (s->jobs > 1 &&
	    !ft_topology_build(s->whole.fabric, nodes, s->whole.nics_per_node, 0,
			       &s->whole.topology, err))
		return false;
	if (!network_matters(&s->whole))
		return true;
	network = network_new(s->mem, &s->whole, nodes, s->network_part, n, err);
	if (!network)
		return false;
	for (int i = 0; i < s->jobs; i++)
		s->job[i].network = network;
	return true;
}

/* ---- slow GPUs ----------------------------------------------------------------- */

/* Those that every pipeline takes part in: replicas, and what they share. */
static unsigned meeting_groups(const struct ft_graph *g)
{
	unsigned meeting = 1u << FT_GROUP_DP | 1u << FT_GROUP_REPLICA |
			   1u << FT_GROUP_EDP | 1u << FT_GROUP_EXPERT_REPLICA;

	if (g->group[FT_GROUP_SHARD].size >= g->group[FT_GROUP_DP].size)
		meeting |= 1u << FT_GROUP_SHARD;
	if (g->group[FT_GROUP_EXPERT_SHARD].size >= g->group[FT_GROUP_EDP].size)
		meeting |= 1u << FT_GROUP_EXPERT_SHARD;
	return meeting;
}

/* Ranks that wait for each other at every layer, within a stage: tensor and context
 * groups, experts' replicas, the ranks that shard weights among themselves alone. */
static int64_t unit_of(const struct ft_graph *g)
{
	static const enum ft_group blocking[] = {
		FT_GROUP_TP,  FT_GROUP_CP,    FT_GROUP_EP,
		FT_GROUP_ETP, FT_GROUP_SHARD, FT_GROUP_EXPERT_SHARD
	};
	unsigned meeting = meeting_groups(g);
	int64_t unit = 1;

	for (size_t i = 0; i < sizeof(blocking) / sizeof(*blocking); i++) {
		const struct ft_group_shape *s = &g->group[blocking[i]];
		bool all = meeting >> blocking[i] & 1;

		if (s->size > 1 && !all && s->size * s->stride > unit)
			unit = s->size * s->stride;
	}
	return unit;
}

static void find_slow(struct setting *s)
{
	const struct job *j = &s->job[0];
	const struct ft_imperfections *im = &j->cluster->imperfections;

	s->unit_ranks = unit_of(j->graph);
	s->slow = ARENA_ARRAY(s->mem, im->n_slow_gpus + 1, struct slow);
	for (size_t i = 0; i < im->n_slow_gpus; i++) {
		int64_t rank = im->slow_gpu[i].gpu * j->cluster->gpu->ranks_per_gpu;
		size_t c = 0;

		while (c < j->graph->n_classes && rank >= j->graph->rank_class[c].ranks)
			rank -= j->graph->rank_class[c++].ranks;
		if (c < j->graph->n_classes)
			s->slow[s->n_slow++] =
				(struct slow){ rank / s->unit_ranks, c,
					       im->slow_gpu[i].gpu,
					       im->slow_gpu[i].speed_frac };
	}
}

/* Pipelines that slow GPUs are in, the first of each named. */
static size_t slow_pipelines(const struct setting *s, size_t *of)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_slow; i++) {
		of[i] = n;
		for (size_t k = 0; k < i; k++)
			if (s->slow[k].unit == s->slow[i].unit)
				of[i] = of[k];
		n += of[i] == n;
	}
	return n;
}

/* ---- parts -------------------------------------------------------------------- */

static void put_pipeline(struct engine_input *in, const struct job *j,
			 size_t first_team, struct engine_part *part)
{
	size_t n = j->graph->n_classes, base = in->n_parts;

	for (size_t c = 0; c < n; c++)
		part[base + c] = (struct engine_part){
			.job = &j->engine,
			.rank_class = c,
			.timing = j->timing[c],
			.next = (uint32_t)(base + (c + 1) % n),
			.before = (uint32_t)(base + (c + n - 1) % n),
			.pipeline = (uint32_t)in->n_pipelines,
			.team = (uint32_t)(first_team + c),
			.name = j->graph->rank_class[c].name,
		};
	in->n_parts += n;
	in->n_pipelines++;
}

/* Whose flows on shared links those of all replicas already stand for. */
static struct work_timing *without_paths(const struct job *j,
					 struct work_timing *timing)
{
	for (size_t i = 0; i < j->graph->n_works; i++)
		timing[i].path = NULL;
	return timing;
}

/* The slowest GPU of a unit and stage sets its pace. */
static void slow_down(struct setting *s, const size_t *of, struct engine_part *part)
{
	const struct job *j = &s->job[0];
	size_t n = j->graph->n_classes;

	for (size_t i = 0; i < s->n_slow; i++) {
		struct engine_part *p = &part[(of[i] + 1) * n + s->slow[i].rank_class];
		double speed = s->slow[i].speed_frac;

		for (size_t k = 0; k < s->n_slow; k++)
			if (of[k] == of[i] &&
			    s->slow[k].rank_class == s->slow[i].rank_class)
				speed = fmin(speed, s->slow[k].speed_frac);
		p->timing = without_paths(j, job_slowed(j, p->rank_class, speed));
		p->name = arena_printf(s->mem, "%s, with GPU %lld at %.2f",
				       j->graph->rank_class[p->rank_class].name,
				       (long long)s->slow[i].gpu, speed);
	}
}

static void make_parts(struct setting *s, struct engine_input *in)
{
	size_t *of = ARENA_ARRAY(s->mem, s->n_slow + 1, size_t);
	size_t slow = slow_pipelines(s, of), n = s->job[0].graph->n_classes;
	size_t beside = s->jobs > 1 && !s->idle ? s->job[1].graph->n_classes : 0;
	struct engine_part *part =
		ARENA_ARRAY(s->mem, (slow + 1) * n + beside, struct engine_part);

	for (size_t i = 0; i <= slow; i++)
		put_pipeline(in, &s->job[0], 0, part);
	for (size_t i = n; i < in->n_parts; i++) {
		part[i].timing = without_paths(
			&s->job[0], job_slowed(&s->job[0], part[i].rank_class, 1));
		part[i].name = arena_printf(s->mem, "%s, of slow pipeline %zu",
					    part[i].name, i / n);
	}
	slow_down(s, of, part);
	in->n_teams = n;
	if (beside) {
		put_pipeline(in, &s->job[1], n, part);
		in->n_teams += beside;
		s->job[1].engine.again = true;
	}
	s->job[0].engine.meeting = meeting_groups(s->job[0].graph);
	in->part = part;
	in->n_links = s->job[0].network ? network_links(s->job[0].network) : 0;
}

/* ---- the whole ------------------------------------------------------------------ */

/* Launches that run ahead still set the pace when they are the slower. */
static ft_ps step_of(const struct engine_input *in, const struct engine_output *out)
{
	return in->hosts_end > out->end ? in->hosts_end : out->end;
}

static bool run_drawn(struct setting *s, struct engine_input *in,
		      struct engine_output *out, struct ft_error *err)
{
	if (in->timeline && in->form == FT_TIMELINE_SVG)
		in->gantt = gantt_new(s->mem, s->job[0].graph);
	else if (in->timeline && in->form == FT_TIMELINE_MEMORY)
		in->memory = memory_chart_new(s->mem, s->job[0].graph);
	else if (in->timeline && in->form == FT_TIMELINE_KINETO)
		kineto_begin(in->timeline, s->job[0].cluster->gpu->title,
			     in->drawn_rank, s->job[0].cluster->ranks);
	else if (in->timeline)
		timeline_begin(in->timeline);
	if (!engine_run(s->mem, in, out, err))
		return false;
	if (in->timeline && in->form == FT_TIMELINE_KINETO)
		kineto_end(in->timeline, out->last_launch, step_of(in, out),
			   out->drawn + 1);
	else if (in->timeline && in->form == FT_TIMELINE_CHROME)
		timeline_finish(in->timeline, step_of(in, out));
	return true;
}

static bool run_engine(struct setting *s, struct engine_input *in,
		       struct engine_output *out, struct ft_error *err)
{
	size_t works = s->job[0].graph->n_works;

	out->part = ARENA_ARRAY(s->mem, in->n_parts, struct ft_class_result);
	out->work_time = ARENA_ARRAY(s->mem, works, ft_ps);
	out->work_count = ARENA_ARRAY(s->mem, works, uint64_t);
	return run_drawn(s, in, out, err);
}

/* The parts of the first job, with their ranks, names and memory. */
static void note_parts(const struct setting *s, const struct engine_input *in,
		       const struct engine_output *out, struct ft_run *run)
{
	const struct ft_graph *g = s->job[0].graph;
	int64_t slow_units;

	run->rank_class = out->part;
	run->n_classes = in->n_parts;
	if (s->jobs > 1 && !s->idle)
		run->n_classes -= s->job[1].graph->n_classes;
	slow_units = (int64_t)(run->n_classes / g->n_classes) - 1;
	for (size_t i = 0; i < run->n_classes; i++) {
		struct ft_class_result *r = &run->rank_class[i];

		r->name = arena_text(s->mem, in->part[i].name);
		r->ranks = i < g->n_classes ?
				   g->rank_class[i].ranks - slow_units * s->unit_ranks :
				   s->unit_ranks;
		if (r->ranks < 0)
			r->ranks = 0;
		result_memory(g, in->part[i].rank_class, r);
	}
}

/* The stage of the rank that is drawn: the last, of what is no rank of the graph; in its slow
 * pipeline, if a slow GPU holds it up. */
static void find_drawn(struct setting *s, struct engine_input *in)
{
	const struct ft_graph *g = s->job[0].graph;
	size_t *of = ARENA_ARRAY(s->mem, s->n_slow + 1, size_t);

	slow_pipelines(s, of);
	while (in->drawn_part + 1 < g->n_classes &&
	       in->drawn_rank >= in->drawn_from + g->rank_class[in->drawn_part].ranks)
		in->drawn_from += g->rank_class[in->drawn_part++].ranks;
	for (size_t i = 0; i < s->n_slow; i++)
		if ((in->drawn_rank - in->drawn_from) / s->unit_ranks ==
		    s->slow[i].unit) {
			in->drawn_part += (of[i] + 1) * g->n_classes;
			return;
		}
}

/* Is the step worth running with a slower host? Not where it stays ahead: next to nothing waits for it, and all that it
 * does, slowed down, is well below the step. Both shares only save time: what is run is exact. */
static bool host_matters(const struct job *job, const struct ft_run *run, double slower)
{
	double step = (double)run->step, host = (double)job_host_longest(job);

	return slower > 1 && (run->breakdown.host_s * 1e12 > 0.02 * step ||
			      slower * host > 0.8 * step);
}

/*
 * What the step becomes on a host as slow as its range says, which is where one of ten is slower:
 *   sd = (step then / step - 1) / 1.2816 (NORMAL_P90)
 * A host that waits for the GPU anyway changes nothing.
 */
static bool host_certainty(struct setting *s, const struct engine_input *in,
			   const struct engine_output *out, struct ft_run *run,
			   struct ft_error *err)
{
	const struct ft_number *factor = &s->job[0].cluster->node->host_factor;
	double slower = factor->value > 0 ? factor->high / factor->value : 1;
	struct engine_job *job = &s->job[0].engine, was = *job;
	struct engine_input again = *in;
	struct engine_output late = { 0 };
	ft_ps step = run->step;

	if (job->host_free) {
		again.hosts_end = ft_ps_from_double(slower * (double)in->hosts_end);
		step = step_of(&again, out);
	} else if (host_matters(&s->job[0], run, slower)) {
		again.timeline = NULL;
		again.gantt = NULL;
		again.memory = NULL;
		job_hosts(&s->job[0], slower, job);
		if (!run_engine(s, &again, &late, err))
			return false;
		step = step_of(&again, &late);
		*job = was;
	}
	run->host_spread_frac =
		fmax(0, (double)step / (double)run->step - 1) / NORMAL_P90;
	return true;
}

/* What the step becomes on cards that hold the highest and the lowest clock of their kind, of which
 * one of ten holds more and one less: what waits for compute gets shorter and longer with it. */
static void clock_certainty(const struct job *job, struct ft_run *run)
{
	const struct ft_breakdown *b = &run->breakdown;
	double share = (b->compute_s + b->bubble_s) / ft_s_from_ps(run->step);

	run->clock_faster_frac = fmax(0, share * (1 - job->fast_card)) / NORMAL_P90;
	run->clock_slower_frac = fmax(0, share * (job->slow_card - 1)) / NORMAL_P90;
}

static struct engine_watts watts_of(const struct ft_cluster *c)
{
	const struct ft_part *part = ft_parts_gpu(c->parts);
	double idle = c->gpu->idle_w.value, above = c->gpu->limit_w.value - idle;

	return (struct engine_watts){ idle, idle + above,
				      idle + above * part->memory_frac.value,
				      idle + above * part->waiting_frac.value };
}

static bool simulate(struct setting *s, const struct ft_sim_job *const *given,
		     FILE *timeline, struct ft_run *run, struct ft_error *err)
{
	struct engine_input in = { .timeline = timeline,
				   .form = given[0]->timeline,
				   .watts = watts_of(s->job[0].cluster),
				   .drawn_rank = given[0]->drawn_rank,
				   .run_all = given[0]->run_all };
	struct engine_output out = { 0 };

	if (!lay_network(s, err))
		return false;
	for (int i = 0; i < s->jobs - s->idle; i++)
		if (!job_time(&s->job[i], given[i]->start, err))
			return false;
	find_slow(s);
	make_parts(s, &in);
	find_drawn(s, &in);
	if (s->job[0].engine.host_free)
		in.hosts_end = job_host_longest(&s->job[0]);
	if (!run_engine(s, &in, &out, err))
		return false;
	run->step = step_of(&in, &out);
	if (run->step >= FT_PS_LONGEST)
		return ft_fail(err, NULL, "a step takes longer than %d days",
			       (int)LIMIT_STEP_DAYS);
	if (run->step <= 0)
		return ft_fail(err, NULL, "the step takes no time: nothing runs in it");
	run->events = out.events;
	run->jumped = out.jumped;
	note_parts(s, &in, &out, run);
	result_fill(&s->job[0], &out, run->step - out.end, run);
	if (!host_certainty(s, &in, &out, run, err))
		return false;
	clock_certainty(&s->job[0], run);
	if (in.gantt)
		gantt_write(timeline, in.gantt, given[0]->title, run);
	if (in.memory)
		memory_chart_write(timeline, in.memory, given[0]->title, run->step,
				   s->job[0].cluster->gpu->memory_bytes.value);
	return true;
}

struct ft_run *ft_sim_run(const struct ft_sim_job *job, const struct ft_sim_job *beside,
			  FILE *timeline, struct ft_memo *memo, struct ft_error *err)
{
	PLAIN_NUMBERS;
	const struct ft_sim_job *given[] = { job, beside };
	struct arena mem = { 0 };
	struct whole *w = ARENA_NEW(&mem, struct whole);
	struct setting *s = ARENA_NEW(&mem, struct setting);

	w->mem = mem;
	s->mem = &w->mem;
	s->idle = beside && beside->idle;
	for (int i = 0; i < 2 && given[i]; i++)
		s->job[s->jobs++] = (struct job){
			.mem = &w->mem,
			.graph = given[i]->graph,
			.cluster = given[i]->cluster,
			.stack = given[i]->stack,
			.ccl = given[i]->ccl,
			.memo = memo,
		};
	if (simulate(s, given, timeline, &w->run, err))
		return &w->run;
	ft_run_free(&w->run);
	return NULL;
}

void ft_run_free(struct ft_run *run)
{
	struct arena mem;

	if (!run)
		return;
	mem = ((struct whole *)run)->mem;
	arena_release(&mem);
}
