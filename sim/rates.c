/* sim/rates.c - max-min shares of links, then factors of interference */
#include "sim/rates.h"

#include <math.h>

#include "base/arena.h"
#include "sim/engine.h"

void running_begin(struct running *r, const struct work_timing *c, int stream,
		   bool optimizer, ft_ps now)
{
	*r = (struct running){ .left = (double)c->duration,
			       .rate = 1,
			       .share = 1,
			       .at = now,
			       .flow = NO_FLOW,
			       .of = c,
			       .stream = (uint8_t)stream,
			       .optimizer = optimizer,
			       .copy_engine = c->copy_engine };
}

ft_ps running_change(struct running *r, ft_ps now, double rate)
{
	r->left -= (double)(now - r->at) * r->rate;
	if (r->left < 0)
		r->left = 0;
	r->at = now;
	r->rate = rate;
	return now + ft_ps_from_double(ceil(r->left / rate));
}

void rates_init(struct rates *s, struct arena *mem, size_t n_parts, size_t n_links)
{
	size_t n = 2 * n_parts + n_links;
	double *capacity = ARENA_ARRAY(mem, n, double);

	*s = (struct rates){ .mem = mem, .n_parts = n_parts };
	for (size_t i = 0; i < n; i++)
		capacity[i] = 1;
	share_init(&s->share, mem, capacity, n);
}

/* Lists those whose share the last update of the solver changed. */
static void note_changes(struct rates *s)
{
	s->n_changed = 0;
	for (size_t i = 0; i < s->share.n_some_flows; i++) {
		uint32_t id = s->share.some_flows[i];
		const struct share_flow *f = &s->share.flow[id];
		struct running *r = s->owner[id];

		if (!f->active || f->rate == r->share)
			continue;
		r->share = f->rate;
		if (s->n_changed == s->changed_cap)
			s->changed = ARENA_GROW(s->mem, s->changed, &s->changed_cap);
		s->changed[s->n_changed++] = r;
	}
}

void rates_enter(struct rates *s, struct running *r, size_t part,
		 const struct work_timing *c)
{
	uint32_t link[SHARE_HOPS];
	float use[SHARE_HOPS];
	size_t n = 0;

	s->n_changed = 0;
	if (c->port_frac > 0) {
		link[n] = (uint32_t)(2 * part);
		use[n++] = c->port_frac;
	}
	if (c->nic_frac > 0) {
		link[n] = (uint32_t)(2 * part + 1);
		use[n++] = c->nic_frac;
	}
	for (int i = 0; c->path && i < c->path->n_uses; i++) {
		link[n] = (uint32_t)(2 * s->n_parts) + c->path->link[i];
		use[n++] = c->path->use[i] * c->path_frac;
	}
	if (!n)
		return;
	r->flow = share_add(&s->share, link, use, n);
	while (s->owner_cap <= r->flow)
		s->owner = ARENA_GROW(s->mem, s->owner, &s->owner_cap);
	s->owner[r->flow] = r;
	share_update(&s->share, r->flow);
	note_changes(s);
}

void rates_leave(struct rates *s, struct running *r)
{
	s->n_changed = 0;
	if (r->flow == NO_FLOW)
		return;
	share_drop(&s->share, r->flow);
	share_update(&s->share, r->flow);
	r->flow = NO_FLOW;
	note_changes(s);
}

static bool is_collective(const struct running *r)
{
	return r->stream >= FT_STREAM_GATHER;
}

/* What is running besides: null and -1 where there is none. */
struct company {
	const struct running *compute, *copy;
	int held; /* most units that a collective's kernel holds */
};

static struct company company_of(struct running *const *run, int n)
{
	struct company c = { .held = -1 };

	for (int i = 0; i < n; i++) {
		if (run[i]->stream == FT_STREAM_COMPUTE)
			c.compute = run[i];
		if (run[i]->stream == FT_STREAM_COPY)
			c.copy = run[i];
		if (is_collective(run[i]) && !run[i]->copy_engine &&
		    (int)run[i]->of->held > c.held)
			c.held = (int)run[i]->of->held;
	}
	return c;
}

static double compute_rate(const struct company *c)
{
	const struct work_timing *of = c->compute->of;
	double beside = c->held >= 0 ? (double)of->beside[c->held] : 1;

	return c->compute->share / beside / (c->copy ? (double)of->beside_copy : 1);
}

void rates_of(struct running *const *run, int n, double *rate)
{
	struct company c;

	if (n == 1) { /* nothing runs beside it */
		rate[0] = run[0]->share;
		return;
	}
	c = company_of(run, n);
	for (int i = 0; i < n; i++) {
		rate[i] = run[i]->share;
		if (run[i] == c.compute)
			rate[i] = compute_rate(&c);
		else if (c.compute && run[i] == c.copy)
			rate[i] /= (double)c.compute->of->slows_copy;
		else if (c.compute && is_collective(run[i]) && !run[i]->copy_engine)
			rate[i] = fmin(rate[i], 1 / (double)c.compute->of->slows);
	}
}
