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

/* Who was looked at and has another share now. */
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
	r->flow = share_add(&s->share, link, use, n, 1, 1);
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

void rates_of(struct running *const *run, int n, double copy_beside_gemm, double *rate)
{
	const struct running *compute = NULL;
	int held = -1;

	if (n == 1) { /* nothing runs beside it */
		rate[0] = run[0]->share;
		return;
	}
	for (int i = 0; i < n; i++) {
		if (run[i]->stream == FT_STREAM_COMPUTE)
			compute = run[i];
		if (is_collective(run[i]) && !run[i]->copy_engine &&
		    (int)run[i]->of->held > held)
			held = (int)run[i]->of->held;
	}
	for (int i = 0; i < n; i++) {
		rate[i] = run[i]->share;
		if (run[i]->stream == FT_STREAM_COMPUTE && held >= 0)
			rate[i] /= (double)run[i]->of->beside[held];
		else if (run[i]->stream == FT_STREAM_COPY && compute)
			rate[i] /= copy_beside_gemm;
		else if (is_collective(run[i]) && compute && !run[i]->copy_engine)
			rate[i] = fmin(rate[i], 1 / (double)compute->of->slows);
	}
}
