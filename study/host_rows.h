/*
 * study/host_rows.h - what a recorded host took, beside what the graph says that it did
 *
 * The predicted step is drawn as a recording (study/trace_layers.c), so that moments of
 * both are found by the same code: the launch of each layer's first product, forward and
 * backward, and that of the optimizer's first kernel. A section lies between two of them:
 *
 *   time recorded, less waiting = sum over activities of times in the graph * seconds each
 *
 * Where the recording is the graph's step operation by operation, each operation of the
 * compute stream is a moment. Annotations tell some activities alone.
 */
#ifndef STUDY_HOST_ROWS_H
#define STUDY_HOST_ROWS_H

#include "base/arena.h"
#include "foretoken/study_whatif.h"

struct host_row {
	double time_s; /* median of its samples */
	double times[FT_HOSTS];
	size_t n; /* sections that are alike */
};

/* What annotations tell of one activity; n 0: nothing. */
struct host_span {
	double time_s;
	size_t n;
};

struct host_rows {
	size_t n;
	struct host_row *row;
	bool by_op;
	struct host_span alone[FT_HOSTS];
};

/* One rank of a recording. */
struct host_side {
	const struct ft_replay *p;
	const struct ft_recording *r;
	struct ft_replayed t;
	size_t rank;
	ft_ps *waited; /* [call] for the GPU, by its host before it */
};

struct host_side host_side_of(const struct ft_replay *replay, size_t rank,
			      struct arena *mem);

/* study/host_alone.c: what annotations and launches tell of one activity alone.
 * keep_launch: a launch takes what the stack says. */
void host_rows_alone(const struct ft_host_fit_request *asked, bool keep_launch,
		     struct arena *mem, struct host_rows *rows);

/* Seconds, by the stack, of other activities that annotations of one `outer` hold, too, as in the sections of
 * which there are most. */
double host_within_s(const struct ft_stack *stack, const struct host_rows *rows,
		     enum ft_host outer);

/* drawn: the scenario's step, as its replay; all in mem. */
bool host_rows_find(const struct ft_host_fit_request *asked,
		    const struct ft_graph *graph, const struct ft_replay *drawn,
		    struct arena *mem, struct host_rows *rows, struct ft_error *err)
	__attribute__((warn_unused_result));

#endif
