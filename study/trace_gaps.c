/*
 * study/trace_gaps.c - a recorded step beside a predicted one, part by part
 *
 * Kernels are told apart as the recording's classes are. Collectives' durations hold
 * what they waited in both, and are without those of send and receive, which last for as long as
 * they are asked for early: what is waited for them is the bubble. A launch that came late is
 * idle time in both.
 */
#include "study/whatif.h"

/* All of a kind but the optimizer's. */
static double of_kind(const struct ft_run *run, enum ft_work_kind kind)
{
	double s = 0;

	for (size_t i = 0; i < run->n_shares; i++)
		if (run->share[i].kind == kind && !run->share[i].optimizer)
			s += run->share[i].time_s;
	return s;
}

/* Durations of the stages' kernels; where they cannot be drawn, means over all stages. */
static void kernels_of(const struct ft_trace_predicted *p,
		       double class_s[FT_REC_CLASSES])
{
	static const enum ft_rec_class as[] = {
		[FT_GEMM] = FT_REC_GEMM,
		[FT_ATTENTION] = FT_REC_ATTENTION,
		[FT_MEMORY_BOUND] = FT_REC_MEMORY,
		[FT_COMMUNICATION] = FT_REC_COLLECTIVE,
	};
	struct arena mem = { 0 };
	struct ft_replayed t;

	for (size_t i = 0; i < sizeof(as) / sizeof(*as); i++)
		class_s[as[i]] = of_kind(p->outcome.run, (enum ft_work_kind)i);
	if (!p->replay)
		return;
	for (int c = 0; c < FT_REC_CLASSES; c++)
		class_s[c] = 0;
	t = ft_replay_as_recorded(p->replay, &mem);
	for (size_t k = 0; k < p->n; k++) {
		struct ft_rec_where w = ft_replay_where(
			p->replay, &t, k, ft_replay_step(p->replay, &t, k, 0));

		for (int c = 0; c < FT_REC_CLASSES; c++)
			class_s[c] += w.class_s[c] / (double)p->n;
		class_s[FT_REC_COLLECTIVE] -= w.sendrecv_s / (double)p->n;
	}
	arena_release(&mem);
}

/* Of the stages; of a step without a pipeline, its own, with what its hosts add. A stage that
 * is done waits for the others. */
static struct ft_breakdown parts_of(const struct ft_trace_predicted *p)
{
	const struct ft_run *run = p->outcome.run;
	struct ft_breakdown b = { 0 };
	double each = 1e-12 / (double)p->n;
	ft_ps end = 0;

	if (run->n_classes == 1)
		return p->outcome.breakdown;
	for (size_t c = 0; c < run->n_classes; c++)
		end = run->rank_class[c].end > end ? run->rank_class[c].end : end;
	for (size_t i = 0; i < p->n; i++) {
		const struct ft_class_result *r = &run->rank_class[p->stage[i]];

		b.compute_s += each * (double)r->compute;
		b.exposed_communication_s += each * (double)r->exposed;
		b.bubble_s += each * (double)(r->bubble + end - r->end);
		b.optimizer_s += each * (double)r->optimizer;
	}
	b.host_s = p->outcome.step_s - b.compute_s - b.exposed_communication_s -
		   b.bubble_s - b.optimizer_s;
	return b;
}

void ft_study_trace_gaps(const struct ft_whatif *a, const struct ft_trace_predicted *p,
			 struct ft_trace_gap gap[FT_TRACE_GAPS])
{
	const struct ft_rec_where *w = &a->recorded;
	const struct ft_breakdown b = parts_of(p);
	double is[FT_REC_CLASSES] = { 0 };

	kernels_of(p, is);
	const struct ft_trace_gap all[FT_TRACE_GAPS] = {
		{ "matrix products", w->class_s[FT_REC_GEMM], is[FT_REC_GEMM], false },
		{ "attention", w->class_s[FT_REC_ATTENTION], is[FT_REC_ATTENTION],
		  false },
		{ "memory-bound kernels",
		  w->class_s[FT_REC_MEMORY] + w->class_s[FT_REC_COPY],
		  is[FT_REC_MEMORY] + is[FT_REC_COPY], false },
		{ "collectives", w->class_s[FT_REC_COLLECTIVE] - w->sendrecv_s,
		  is[FT_REC_COLLECTIVE], false },
		{ "compute", w->compute_s, b.compute_s, true },
		{ "optimizer", w->optimizer_s, b.optimizer_s, true },
		{ "exposed communication", w->exposed_s, b.exposed_communication_s,
		  true },
		{ "bubble", w->bubble_s, b.bubble_s, true },
		{ "idle: host and launch",
		  w->step_s - w->compute_s - w->optimizer_s - w->exposed_s -
			  w->bubble_s,
		  b.host_s, true },
		{ "step", w->step_s, p->outcome.step_s, true },
	};

	for (int i = 0; i < FT_TRACE_GAPS; i++)
		gap[i] = all[i];
}
