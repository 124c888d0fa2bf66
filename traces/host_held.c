/*
 * traces/host_held.c - what waits in a node's memory at once of what layers send there for backward
 *
 * A rank's: bytes that its step has sent (offload.c) less those that have come back, at the fullest moment. A node's: the sum over
 * its ranks, as if their fullest moments came together; stages of a pipeline that share a node come close to that.
 * Limits: buffers are taken to be as large as what is in them, and to be used again.
 */
#include "traces/host_held.h"

#include <math.h>

#include "base/arena.h"

struct swing swing_on_host(const struct ft_graph *g, const struct ft_segment *seg)
{
	struct swing s = { 0, 0 };

	for (size_t i = 0; i < seg->n_ops; i++) {
		const struct ft_op *op = &seg->op[i];
		const struct ft_work *w = &g->work[op->work];

		if (!ft_work_is_host_copy(w))
			continue;
		if (op->stream == FT_STREAM_OFFLOAD) {
			s.net += w->memory.bytes;
			s.peak += w->memory.bytes;
		} else if (op->stream == FT_STREAM_FETCH) {
			s.net -= w->memory.bytes;
		}
	}
	return s;
}

double fullest_node(const struct ft_graph *g, const double *held,
		    int64_t ranks_per_node)
{
	double most = 0;
	size_t c = 0;
	int64_t left = g->n_classes ? g->rank_class[0].ranks : 0;

	while (c < g->n_classes) {
		int64_t room = ranks_per_node;
		double sum = 0;

		if (left > 2 * room) /* nodes within a class are alike: one is enough */
			left -= (left / room - 1) * room;
		while (room && c < g->n_classes) {
			int64_t here = left < room ? left : room;

			sum += (double)here * held[c];
			room -= here;
			left -= here;
			if (!left && ++c < g->n_classes)
				left = g->rank_class[c].ranks;
		}
		most = fmax(most, sum);
	}
	return most;
}

double ft_graph_host_bytes(const struct ft_graph *g, int64_t ranks_per_node)
{
	struct arena mem = { 0 };
	struct swing *of = ARENA_ARRAY(&mem, g->n_segments, struct swing);
	double *held = ARENA_ARRAY(&mem, g->n_classes, double), most = 0;

	for (size_t i = 0; i < g->n_segments; i++)
		of[i] = swing_on_host(g, &g->segment[i]);
	for (size_t c = 0; c < g->n_classes; c++) {
		const struct ft_class *class = &g->rank_class[c];
		double now = 0;

		for (size_t i = 0; i < class->n_calls; i++) {
			const struct swing *s = &of[class->call[i].segment];
			double before_last =
				((double)class->call[i].repeat - 1) * s->net;

			held[c] = fmax(held[c], now + fmax(before_last, 0) + s->peak);
			now += before_last + s->net;
		}
	}
	most = fullest_node(g, held, ranks_per_node);
	arena_release(&mem);
	return most;
}
