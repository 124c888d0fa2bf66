/*
 * study/trace_gaps.c - a recorded step beside a predicted one, part by part
 *
 * Kernels are told apart as the recording's classes are. Collectives' durations hold
 * what they waited in both; a launch that came late is idle time in both.
 */
#include "foretoken/study_whatif.h"

static double of_kind(const struct ft_run *run, enum ft_work_kind kind, bool optimizer)
{
	double s = 0;

	for (size_t i = 0; i < run->n_shares; i++)
		if (run->share[i].kind == kind && run->share[i].optimizer == optimizer)
			s += run->share[i].time_s;
	return s;
}

void ft_study_trace_gaps(const struct ft_whatif *a, const struct ft_outcome *o,
			 struct ft_trace_gap gap[FT_TRACE_GAPS])
{
	const struct ft_rec_where *w = &a->recorded;
	const struct ft_breakdown *b = &o->breakdown;
	const struct ft_trace_gap all[FT_TRACE_GAPS] = {
		{ "matrix products", w->class_s[FT_REC_GEMM],
		  of_kind(o->run, FT_GEMM, false), false },
		{ "attention", w->class_s[FT_REC_ATTENTION],
		  of_kind(o->run, FT_ATTENTION, false), false },
		{ "memory-bound kernels",
		  w->class_s[FT_REC_MEMORY] + w->class_s[FT_REC_COPY],
		  of_kind(o->run, FT_MEMORY_BOUND, false), false },
		{ "collectives", w->class_s[FT_REC_COLLECTIVE],
		  of_kind(o->run, FT_COMMUNICATION, false), false },
		{ "compute", w->compute_s, b->compute_s, true },
		{ "optimizer", w->optimizer_s, b->optimizer_s, true },
		{ "exposed communication", w->exposed_s, b->exposed_communication_s,
		  true },
		{ "bubble", w->bubble_s, b->bubble_s, true },
		{ "idle: host and launch",
		  w->step_s - w->compute_s - w->optimizer_s - w->exposed_s -
			  w->bubble_s,
		  b->host_s, true },
		{ "step", w->step_s, o->step_s, true },
	};

	for (int i = 0; i < FT_TRACE_GAPS; i++)
		gap[i] = all[i];
}
