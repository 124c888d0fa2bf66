/* sim/engine_limits.c - what is too large to run, or to draw, and what cannot finish */
#include "base/limits.h"
#include "sim/engine_state.h"

double engine_ops_of(const struct ft_graph *g, size_t class)
{
	const struct ft_class *c = &g->rank_class[class];
	double n = 0;

	for (size_t i = 0; i < c->n_calls; i++) {
		size_t ops = g->segment[c->call[i].segment].n_ops;

		n += (double)(ops ? ops : 1) * c->call[i].repeat;
	}
	return n;
}

/* What all parts are to run, once. */
static double ops_of(const struct engine_input *in)
{
	double n = 0;

	for (size_t p = 0; p < in->n_parts; p++)
		n += engine_ops_of(in->part[p].job->graph, in->part[p].rank_class);
	return n;
}

bool engine_small_enough(const struct engine_input *in, struct ft_error *err)
{
	double n = ops_of(in);

	if (n > LIMIT_STEP_OPS) {
		ft_fail(err, NULL,
			"a step of %.0f operations is too much to simulate, at "
			"most %d; use larger or fewer micro-batches",
			n, (int)LIMIT_STEP_OPS);
		err->too_large = true;
		return false;
	}
	return !in->timeline || n <= LIMIT_TIMELINE_OPS ||
	       ft_fail(err, NULL,
		       "a step of %.0f operations is too much to draw, at most %d; "
		       "use fewer micro-batches for a timeline",
		       n, (int)LIMIT_TIMELINE_OPS);
}

bool engine_beyond(const struct engine *e, struct ft_error *err)
{
	bool late = e->q.now > FT_PS_LONGEST;

	for (size_t p = 0; p < e->in->n_parts; p++)
		late |= e->part[p].host_now > FT_PS_LONGEST;
	if (late)
		ft_fail(err, NULL, "a step takes longer than %d days",
			(int)LIMIT_STEP_DAYS);
	else if (e->crowded)
		ft_fail(err, NULL, "more than %d operations wait on one stream",
			(int)LIMIT_STREAM_OPS);
	else if (e->out->events >= LIMIT_STEP_EVENTS)
		ft_fail(err, NULL,
			"a step of more than %d events is too much to simulate",
			(int)LIMIT_STEP_EVENTS);
	else
		return false;
	err->too_large = true;
	return true;
}

bool engine_stuck(const struct engine *e, struct ft_error *err)
{
	for (size_t p = 0; e->n_going && p < e->in->n_parts; p++)
		for (int i = 0; i < FT_STREAMS; i++) {
			const struct part_state *r = &e->part[p];
			const struct stream *s = &r->stream[i];

			if (s->launched == s->completed)
				continue;
			ft_fail(err, NULL,
				"%s cannot finish: '%s' on stream "
				"%s waits for an op that is never launched",
				e->in->part[p].name, work_of(r, s)->name,
				ft_stream_name((enum ft_stream)i));
			return true;
		}
	return false;
}
