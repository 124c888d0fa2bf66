/* tests/works.h - what a built step runs: works by name, and whether two steps run the same */
#ifndef TESTS_WORKS_H
#define TESTS_WORKS_H

#include "tests/parts.h"

struct sum {
	double n, flop, bytes;
};

/* All works of this name (NULL: all) in segments whose name begins so (NULL: all), once
 * for each rank class. */
static inline struct sum sum_in(const struct ft_graph *g, const char *segment,
				const char *name)
{
	struct sum t = { 0, 0, 0 };

	for (size_t c = 0; c < g->n_classes; c++)
		for (size_t i = 0; i < g->rank_class[c].n_calls; i++) {
			const struct ft_call *call = &g->rank_class[c].call[i];
			const struct ft_segment *s = &g->segment[call->segment];

			if (segment && strncmp(s->name, segment, strlen(segment)))
				continue;
			for (size_t j = 0; j < s->n_ops; j++) {
				const struct ft_work *w = &g->work[s->op[j].work];

				if (name && strcmp(w->name, name))
					continue;
				t.n += call->repeat;
				t.flop += call->repeat * ft_work_flop(w);
				t.bytes += call->repeat * ft_work_bytes(w);
			}
		}
	return t;
}

/* All works of this name (NULL: all) over all ranks; of collectives of one group where
 * group >= 0. */
static inline struct sum sum_over_ranks(const struct ft_graph *g, const char *name,
					int group)
{
	struct sum t = { 0, 0, 0 };

	for (size_t c = 0; c < g->n_classes; c++)
		for (size_t i = 0; i < g->rank_class[c].n_calls; i++) {
			const struct ft_call *call = &g->rank_class[c].call[i];
			const struct ft_segment *s = &g->segment[call->segment];
			double times =
				(double)call->repeat * (double)g->rank_class[c].ranks;

			for (size_t j = 0; j < s->n_ops; j++) {
				const struct ft_work *w = &g->work[s->op[j].work];

				if ((name && strcmp(w->name, name)) ||
				    (group >= 0 &&
				     (w->kind != FT_COMMUNICATION ||
				      w->communication.group != (enum ft_group)group)))
					continue;
				t.n += times;
				t.flop += times * ft_work_flop(w);
				t.bytes += times * ft_work_bytes(w);
			}
		}
	return t;
}

static inline struct sum sum_of(const struct ft_graph *g, const char *name)
{
	return sum_in(g, NULL, name);
}

/* How often a step does each host activity, all classes together. */
static inline double host_times(const struct ft_graph *g, enum ft_host activity)
{
	double n = 0;

	for (size_t c = 0; c < g->n_classes; c++)
		for (size_t i = 0; i < g->rank_class[c].n_calls; i++) {
			const struct ft_call *call = &g->rank_class[c].call[i];

			n += call->repeat * g->segment[call->segment].host[activity];
		}
	return n;
}

/* How often a step does that work, all classes together. */
static inline double times_of(const struct ft_graph *g, const struct ft_work *w)
{
	double n = 0;

	for (size_t c = 0; c < g->n_classes; c++)
		for (size_t i = 0; i < g->rank_class[c].n_calls; i++) {
			const struct ft_call *call = &g->rank_class[c].call[i];
			const struct ft_segment *s = &g->segment[call->segment];

			for (size_t j = 0; j < s->n_ops; j++) {
				const struct ft_work *v = &g->work[s->op[j].work];

				if (ft_work_same(v, w) && !strcmp(v->name, w->name))
					n += call->repeat;
			}
		}
	return n;
}

/* What all classes have more at the end of a step than at its beginning. */
static inline double left_over(const struct ft_graph *g, enum ft_memory m)
{
	double left = 0;

	for (size_t c = 0; c < g->n_classes; c++)
		for (size_t i = 0; i < g->rank_class[c].n_calls; i++) {
			const struct ft_call *call = &g->rank_class[c].call[i];

			left += call->repeat * g->segment[call->segment].net_bytes[m];
		}
	return left;
}

/* The first segment whose name begins so; fails if there is none. */
static inline const struct ft_segment *segment_of(const struct ft_graph *g,
						  const char *name)
{
	for (size_t i = 0; i < g->n_segments; i++)
		if (!strncmp(g->segment[i].name, name, strlen(name)))
			return &g->segment[i];
	fail_msg("no segment %s", name);
	return NULL;
}

/* Bytes of activations that a layer's forward keeps. */
static inline double kept_by_layer(const struct ft_graph *g)
{
	return segment_of(g, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS];
}

static inline bool has_segment(const struct ft_graph *g, const char *name)
{
	for (size_t i = 0; i < g->n_segments; i++)
		if (!strncmp(g->segment[i].name, name, strlen(name)))
			return true;
	return false;
}

/* The first work of this name; fails if there is none. */
static inline const struct ft_work *work_of(const struct ft_graph *g, const char *name)
{
	for (size_t i = 0; i < g->n_works; i++)
		if (!strcmp(g->work[i].name, name))
			return &g->work[i];
	fail_msg("no work %s", name);
	return NULL;
}

/* Build anew, after a test changed plan or stack. */
static inline void rebuild(struct parts *p)
{
	struct ft_error err;

	ft_graph_free(p->graph);
	p->graph = ft_graph_build(p->model, p->plan, p->stack, &err);
	ok_or_say(p->graph, err);
}

#endif
