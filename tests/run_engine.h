/* tests/run_engine.h - pipelines of parts that the engine runs, for its tests */
#ifndef TESTS_RUN_ENGINE_H
#define TESTS_RUN_ENGINE_H

#include "tests/check.h"

#include "base/arena.h"
#include "sim/engine.h"

/* Waits for w0 and w1; -1: for nothing. */
static inline struct ft_op op(uint32_t work, enum ft_stream stream, int w0, int w1)
{
	struct ft_op o = { .work = work,
			   .stream = (uint8_t)stream,
			   .record = FT_EVENT_NONE };

	memset(o.wait, FT_EVENT_NONE, sizeof(o.wait));
	if (w0 >= 0)
		o.wait[0] = (uint8_t)w0;
	if (w1 >= 0)
		o.wait[1] = (uint8_t)w1;
	return o;
}

/* One part for each class of the job's graph, behind those that `in` has. */
static inline void add_pipeline(struct engine_input *in, struct engine_part *part,
				const struct engine_job *job,
				const struct work_timing *cost, size_t first_team)
{
	size_t n = job->graph->n_classes, base = in->n_parts;

	for (size_t c = 0; c < n; c++)
		part[base + c] = (struct engine_part){
			.job = job,
			.rank_class = c,
			.timing = cost,
			.next = (uint32_t)(base + (c + 1) % n),
			.before = (uint32_t)(base + (c + n - 1) % n),
			.pipeline = (uint32_t)in->n_pipelines,
			.team = (uint32_t)(first_team + c),
			.name = "part",
		};
	in->part = part;
	in->n_parts += n;
	in->n_pipelines++;
	if (first_team + n > in->n_teams)
		in->n_teams = first_team + n;
}

static inline struct engine_output room(struct arena *mem,
					const struct engine_input *in)
{
	size_t n = in->part[0].job->graph->n_works;

	return (struct engine_output){
		.part = ARENA_ARRAY(mem, in->n_parts, struct ft_class_result),
		.work_time = ARENA_ARRAY(mem, n, ft_ps),
		.work_count = ARENA_ARRAY(mem, n, uint64_t),
	};
}

/* Seconds of the step. */
static inline double run(struct arena *mem, const struct engine_input *in,
			 struct engine_output *out)
{
	struct ft_error err;

	*out = room(mem, in);
	ok_or_say(engine_run(mem, in, out, &err), err);
	return ft_s_from_ps(out->end);
}

#endif
