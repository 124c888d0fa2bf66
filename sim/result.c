/* sim/result.c - what a step came to: memory, shares, certainty, breakdown */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "sim/job.h"

/* ---- memory --------------------------------------------------------------------- */

/* The host allocates in program order, whatever the GPU is at. */
void result_memory(const struct ft_graph *g, size_t c, struct ft_class_result *out)
{
	const struct ft_class *class = &g->rank_class[c];
	double now[FT_MEMORIES], at[FT_MEMORIES];

	memcpy(now, class->base_bytes, sizeof(now));
	memcpy(out->peak_bytes, now, sizeof(now));
	out->peak_total_bytes = ft_memory_sum(now);
	for (size_t i = 0; i < class->n_calls; i++) {
		const struct ft_segment *s = &g->segment[class->call[i].segment];

		for (uint32_t r = 0; r < class->call[i].repeat; r++) {
			for (int m = 0; m < FT_MEMORIES; m++) {
				at[m] = now[m] + s->peak_bytes[m];
				now[m] += s->net_bytes[m];
			}
			if (ft_memory_sum(at) > out->peak_total_bytes) {
				out->peak_total_bytes = ft_memory_sum(at);
				memcpy(out->peak_bytes, at, sizeof(at));
			}
			if (ft_memory_sum(now) > out->peak_total_bytes) {
				out->peak_total_bytes = ft_memory_sum(now);
				memcpy(out->peak_bytes, now, sizeof(now));
			}
		}
	}
}

void result_memory_before(const struct ft_graph *g, size_t c,
			  double (*before)[FT_MEMORIES])
{
	const struct ft_class *class = &g->rank_class[c];
	double now[FT_MEMORIES];

	memcpy(now, class->base_bytes, sizeof(now));
	for (size_t i = 0; i < class->n_calls; i++) {
		const struct ft_segment *s = &g->segment[class->call[i].segment];

		memcpy(before[i], now, sizeof(now));
		for (int m = 0; m < FT_MEMORIES; m++)
			now[m] += s->net_bytes[m] * class->call[i].repeat;
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

/* A product of a layer says which of the layer's three it is. */
static const char *share_name(const struct job *s, const struct ft_work *w,
			      bool of_optimizer)
{
	if (w->kind != FT_GEMM || of_optimizer)
		return arena_text(s->mem, w->name);
	return arena_printf(s->mem, "%s (%s)", w->name, ft_layout_name(w->gemm.layout));
}

/* Works that the optimizer alone runs. */
static void of_optimizer(const struct ft_graph *g, bool *of)
{
	memset(of, true, g->n_works * sizeof(*of));
	for (size_t i = 0; i < g->n_segments; i++)
		for (size_t j = 0; j < g->segment[i].n_ops; j++) {
			const struct ft_op *op = &g->segment[i].op[j];

			of[op->work] &= op->optimizer;
		}
}

/* A copy to host memory is as much communication as one to another GPU. */
static enum ft_work_kind kind_of(const struct ft_work *w)
{
	return ft_work_is_host_copy(w) ? FT_COMMUNICATION : w->kind;
}

static double roofline_s(const struct ft_gpu *gpu, const struct ft_work *w)
{
	double flop = ft_work_flop(w), peak = gpu->peak_flop_per_s[w->dtype].value;

	if (kind_of(w) == FT_COMMUNICATION || (flop > 0 && !(peak > 0)))
		return 0;
	return fmax(flop > 0 ? flop / peak : 0,
		    ft_work_bytes(w) / gpu->memory_bytes_per_s.value);
}

/* Of all turns of a work, without what messages wait in their queues. */
static double time_of(const struct job *s, const struct engine_output *out, size_t work)
{
	double all = ft_s_from_ps(out->work_time[work]);

	if (!work_is_message(&s->graph->work[work]))
		return all;
	return fmax(0, all - (double)out->work_count[work] * s->queued_s);
}

static void shares(const struct job *s, const struct engine_output *out,
		   struct ft_run *run)
{
	size_t n = s->graph->n_works;
	double classes = (double)s->graph->n_classes;
	bool *optimizer = ARENA_ARRAY(s->mem, n, bool);

	of_optimizer(s->graph, optimizer);
	run->share = ARENA_ARRAY(s->mem, n, struct ft_share);
	for (size_t i = 0; i < n; i++) {
		const struct ft_work *w = &s->graph->work[i];
		const char *name = share_name(s, w, optimizer[i]);
		enum ft_work_kind kind = kind_of(w);
		double count = (double)out->work_count[i] / classes;
		size_t j = 0;

		if (!out->work_count[i] || ft_work_is_mark(w))
			continue;
		while (j < run->n_shares &&
		       (run->share[j].kind != kind || strcmp(run->share[j].name, name)))
			j++;
		if (j == run->n_shares)
			run->share[run->n_shares++] = (struct ft_share){
				.name = name, .kind = kind, .optimizer = true
			};
		run->share[j].time_s += time_of(s, out, i) / classes;
		run->share[j].count += count;
		run->share[j].flop += count * ft_work_flop(w);
		run->share[j].bytes += count * ft_work_bytes(w);
		run->share[j].roofline_s += count * roofline_s(s->cluster->gpu, w);
		run->share[j].optimizer &= optimizer[i];
		run->share[j].extrapolated |= s->extrapolated[i];
	}
	qsort(run->share, run->n_shares, sizeof(*run->share), by_time);
}

/*
 * What the kernels' own errors make of the step: errors of one family of kernels go
 * together, those of different families do not:
 *   sd^2 = sum over families (share of the step * spread)^2
 */
static void certainty(const struct job *s, const struct engine_output *out,
		      struct ft_run *run)
{
	double family[4] = { 0 }, all = 0, far = 0, sd2 = 0;
	double step = ft_s_from_ps(run->step);

	for (size_t i = 0; i < s->graph->n_works; i++) {
		double t = time_of(s, out, i) / (double)s->graph->n_classes;

		family[s->graph->work[i].kind] += s->spread[i] * t / step;
		all += t;
		far += s->extrapolated[i] ? t : 0;
	}
	for (int i = 0; i < 4; i++)
		sd2 += family[i] * family[i];
	run->spread_frac = sqrt(sd2);
	run->extrapolated_frac = all > 0 ? far / all : 0;
}

static void add_times(struct ft_breakdown *sum, const struct ft_breakdown *b,
		      double times)
{
	sum->compute_s += times * b->compute_s;
	sum->optimizer_s += times * b->optimizer_s;
	sum->host_s += times * b->host_s;
	sum->bubble_s += times * b->bubble_s;
	sum->exposed_communication_s += times * b->exposed_communication_s;
}

/* The breakdown of a class of ranks, whose end is padded to the end of the step. */
static struct ft_breakdown of_class(const struct ft_class_result *r, bool staged,
				    ft_ps steady_extra, ft_ps step)
{
	double pad = ft_s_from_ps(step - steady_extra - r->end);

	return (struct ft_breakdown){
		.compute_s = ft_s_from_ps(r->compute),
		.optimizer_s = ft_s_from_ps(r->optimizer),
		.host_s = ft_s_from_ps(r->host + steady_extra),
		.bubble_s = ft_s_from_ps(r->bubble) + (staged ? pad : 0),
		.exposed_communication_s =
			ft_s_from_ps(r->exposed) + (staged ? 0 : pad),
	};
}

/* Classes are the stages in order, once for all pipelines without a slow GPU and once for each with one:
 * those of a stage, by their ranks. */
static void stages(struct ft_run *run, ft_ps steady_extra)
{
	for (size_t s = 0; s < run->n_stages; s++) {
		struct ft_stage_result *stage = &run->stage[s];
		double ranks = 0;

		memcpy(stage->peak_bytes, run->rank_class[s].peak_bytes,
		       sizeof(stage->peak_bytes));
		stage->peak_total_bytes = run->rank_class[s].peak_total_bytes;
		for (size_t c = s; c < run->n_classes; c += run->n_stages)
			ranks += (double)run->rank_class[c].ranks;
		for (size_t c = s; c < run->n_classes; c += run->n_stages) {
			const struct ft_class_result *r = &run->rank_class[c];
			struct ft_breakdown b =
				of_class(r, run->n_stages > 1, steady_extra, run->step);

			add_times(&stage->breakdown, &b, (double)r->ranks / ranks);
		}
	}
}

/* Means over ranks, of which each stage has as many. */
static void breakdown(struct ft_run *run)
{
	struct ft_breakdown *b = &run->breakdown;

	for (size_t s = 0; s < run->n_stages; s++)
		add_times(b, &run->stage[s].breakdown, 1 / (double)run->n_stages);
	run->gpu_busy_frac =
		run->step ? (b->compute_s + b->optimizer_s) / ft_s_from_ps(run->step) :
			    0;
	run->gpu_waiting_frac = run->step ? (b->exposed_communication_s + b->bubble_s) /
						    ft_s_from_ps(run->step) :
					    0;
	run->gpu_bubble_frac = run->step ? b->bubble_s / ft_s_from_ps(run->step) : 0;
}

/* Mean over ranks, of which each stage has as many. */
static double pace(const struct job *job, const struct ft_run *run)
{
	double sum = 0, ranks = 0;

	for (size_t c = 0; c < run->n_classes; c++) {
		sum += job->pace[c % run->n_stages] * (double)run->rank_class[c].ranks;
		ranks += (double)run->rank_class[c].ranks;
	}
	return ranks > 0 ? sum / ranks : 1;
}

/* Of the time with a kernel that of kernels bound by memory, and by how much others are longer than at the clock of
 * their bursts. */
static void as_power_counts(const struct job *job, struct ft_run *run)
{
	double memory_s = 0, all_s = 0;

	for (size_t i = 0; i < run->n_shares; i++) {
		if (run->share[i].kind == FT_COMMUNICATION)
			continue;
		all_s += run->share[i].time_s;
		if (run->share[i].kind == FT_MEMORY_BOUND)
			memory_s += run->share[i].time_s;
	}
	run->gpu_memory_frac = all_s > 0 ? run->gpu_busy_frac * memory_s / all_s : 0;
	run->gpu_slowed_frac =
		(run->gpu_busy_frac - run->gpu_memory_frac) * (1 - pace(job, run));
}

void result_fill(const struct job *job, const struct engine_output *out,
		 ft_ps steady_extra, struct ft_run *run)
{
	run->n_stages = job->graph->n_classes;
	run->stage = ARENA_ARRAY(job->mem, run->n_stages, struct ft_stage_result);
	stages(run, steady_extra);
	breakdown(run);
	certainty(job, out, run);
	shares(job, out, run);
	as_power_counts(job, run);
}
