/* tests/counted.h - works of a built step against a count: how often, how many bytes each, and how
 * many kernels the host launches for each */
#ifndef TESTS_COUNTED_H
#define TESTS_COUNTED_H

#include <math.h>

#include "tests/works.h"

static inline double launches_of(const struct ft_graph *g, const char *name)
{
	double n = 0;

	for (size_t i = 0; i < g->rank_class[0].n_calls; i++) {
		const struct ft_call *call = &g->rank_class[0].call[i];
		const struct ft_segment *s = &g->segment[call->segment];

		for (size_t j = 0; j < s->n_ops; j++)
			if (!strcmp(g->work[s->op[j].work].name, name))
				n += (double)call->repeat * s->op[j].launches;
	}
	return n;
}

/* Of the first class: what is on this curve of that name, or (false) all else. */
static inline void expect_by(const struct parts *p, const char *name, const char *curve,
			     bool on, double times, double bytes, double launches)
{
	const struct ft_graph *g = p->graph;
	double n = 0, b = 0, l = 0;

	for (size_t i = 0; i < g->rank_class[0].n_calls; i++) {
		const struct ft_call *call = &g->rank_class[0].call[i];
		const struct ft_segment *s = &g->segment[call->segment];

		for (size_t j = 0; j < s->n_ops; j++) {
			const struct ft_work *w = &g->work[s->op[j].work];

			if (strcmp(w->name, name) ||
			    on != !strcmp(w->memory.kernel, curve))
				continue;
			n += (double)call->repeat;
			b += (double)call->repeat * w->memory.bytes;
			l += (double)call->repeat * s->op[j].launches;
		}
	}
	if (n != times || l != times * launches ||
	    !(fabs(b - times * bytes) <= 1e-12 * times * bytes))
		fail_msg("%s, %s %d: %g times, %.12g bytes, %g launches; wanted "
			 "%g of %.12g and %g",
			 name, curve, on, n, b, l, times, bytes, launches);
}

static inline void expect_on(const struct parts *p, const char *name, bool strided,
			     double times, double bytes, double launches)
{
	expect_by(p, name, "strided", strided, times, bytes, launches);
}

/* So many of them, each of these bytes and launches. */
static inline void expect(const struct parts *p, const char *name, double times,
			  double bytes, double launches)
{
	struct sum s = sum_of(p->graph, name);
	double l = launches_of(p->graph, name);

	if (s.n != times || l != times * launches ||
	    !(s.bytes >= times * bytes * (1 - 1e-12) &&
	      s.bytes <= times * bytes * (1 + 1e-12))) {
		print_error(
			"%s: %g times, %.12g bytes, %g launches; wanted %g of %.12g "
			"and %g\n",
			name, s.n, s.n > 0 ? s.bytes / s.n : 0, s.n > 0 ? l / s.n : 0,
			times, bytes, launches);
		fail();
	}
}

#endif
