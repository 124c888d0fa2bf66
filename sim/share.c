/* sim/share.c - progressive filling with a lazy heap of link levels */
#include "sim/share.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"

/* The rate at which a link fills up, as it was when pushed; it only grows while flows
 * are fixed elsewhere, so a stale one is pushed again. */
struct share_level {
	double level;
	uint32_t link;
};

static const double FULL = 1 - 1e-9;

/* What is left of a link's uses when all of its flows are fixed is rounding: of its
 * capacity, and in itself (uses are about 1). */
static const double EMPTY_OF_CAPACITY = 1e-12, EMPTY = 1e-9;
/* A level that rose by less has not moved. */
static const double SAME_LEVEL = 1 + 1e-12;

void share_init(struct share *s, struct arena *mem, const double *capacity,
		size_t n_links)
{
	*s = (struct share){ .mem = mem, .n_links = n_links };
	s->link = ARENA_ARRAY(mem, n_links, struct share_link);
	s->some_links = ARENA_ARRAY(mem, n_links + 1, uint32_t);
	for (size_t i = 0; i < n_links; i++)
		s->link[i].capacity = capacity[i];
}

static struct share_flow *flow_on(const struct share *s, const struct share_link *l,
				  uint32_t i)
{
	return &s->flow[l->on[i] / SHARE_HOPS];
}

static double use_on(const struct share *s, const struct share_link *l, uint32_t i)
{
	return (double)flow_on(s, l, i)->use[l->on[i] % SHARE_HOPS];
}

static void enlist(struct share *s, struct share_link *l, uint32_t flow)
{
	if (l->n == l->cap) {
		size_t cap = l->cap;

		l->on = ARENA_GROW(s->mem, l->on, &cap);
		l->cap = (uint32_t)cap;
	}
	l->on[l->n++] = flow;
}

static uint32_t new_number(struct share *s)
{
	if (s->n_spare)
		return s->spare[--s->n_spare];
	if (s->n_flows == s->flow_cap)
		s->flow = ARENA_GROW(s->mem, s->flow, &s->flow_cap);
	return (uint32_t)s->n_flows++;
}

uint32_t share_add(struct share *s, const uint32_t *link, const float *use, size_t hops)
{
	uint32_t id = new_number(s);
	struct share_flow *f = &s->flow[id];

	assert(hops <= SHARE_HOPS);
	*f = (struct share_flow){ .hops = (uint8_t)hops, .active = true };
	for (size_t i = 0; i < hops; i++) {
		f->link[i] = link[i];
		f->use[i] = use ? use[i] : 1;
		f->place[i] = s->link[link[i]].n;
		enlist(s, &s->link[link[i]], id * SHARE_HOPS + (uint32_t)i);
	}
	return id;
}

void share_drop(struct share *s, uint32_t id)
{
	struct share_flow *f = &s->flow[id];

	assert(f->active);
	f->active = false;
	for (int i = 0; i < f->hops; i++) {
		struct share_link *l = &s->link[f->link[i]];
		uint32_t last = l->on[--l->n];

		l->load -= f->rate * (double)f->use[i];
		l->on[f->place[i]] = last;
		s->flow[last / SHARE_HOPS].place[last % SHARE_HOPS] = f->place[i];
	}
	f->rate = 0;
	if (s->n_spare == s->spare_cap)
		s->spare = ARENA_GROW(s->mem, s->spare, &s->spare_cap);
	s->spare[s->n_spare++] = id;
}

/* ---- the heap --------------------------------------------------------------- */

static void push(struct share *s, double level, uint32_t link)
{
	size_t i;

	if (s->n_heap == s->heap_cap)
		s->heap = ARENA_GROW(s->mem, s->heap, &s->heap_cap);
	for (i = s->n_heap++; i; i = (i - 1) / 4) {
		if (s->heap[(i - 1) / 4].level <= level)
			break;
		s->heap[i] = s->heap[(i - 1) / 4];
	}
	s->heap[i] = (struct share_level){ level, link };
}

static struct share_level pop(struct share *s)
{
	struct share_level top = s->heap[0], last = s->heap[--s->n_heap];
	size_t i = 0;

	for (;;) {
		size_t kid = 4 * i + 1, best = kid;

		if (kid >= s->n_heap)
			break;
		for (size_t k = kid + 1; k < kid + 4 && k < s->n_heap; k++)
			if (s->heap[k].level < s->heap[best].level)
				best = k;
		if (s->heap[best].level >= last.level)
			break;
		s->heap[i] = s->heap[best];
		i = best;
	}
	s->heap[i] = last;
	return top;
}

/* ---- solving some flows on some links ----------------------------------------- */

static void fix(struct share *s, struct share_flow *f, double rate)
{
	f->rate = rate;
	f->fixed = true;
	for (int i = 0; i < f->hops; i++) {
		struct share_link *l = &s->link[f->link[i]];

		l->room -= rate * (double)f->use[i];
		l->uses -= (double)f->use[i];
	}
}

static double level_of(const struct share_link *l)
{
	return l->room > 0 ? l->room / l->uses : 0;
}

/* Room and uses of the links; flows outside keep what they have. The heap is empty. */
static void prepare(struct share *s)
{
	for (size_t i = 0; i < s->n_some_links; i++) {
		struct share_link *l = &s->link[s->some_links[i]];

		l->room = l->capacity;
		l->uses = 0;
		for (uint32_t k = 0; k < l->n; k++) {
			const struct share_flow *f = flow_on(s, l, k);

			if (f->fixed)
				l->room -= f->rate * use_on(s, l, k);
			else
				l->uses += use_on(s, l, k);
		}
		if (l->uses > 0)
			push(s, level_of(l), s->some_links[i]);
	}
}

static void fill(struct share *s)
{
	prepare(s);
	while (s->n_heap) {
		struct share_level top = pop(s);
		struct share_link *l = &s->link[top.link];
		double level;

		if (l->uses <= EMPTY_OF_CAPACITY * l->capacity && l->uses <= EMPTY)
			continue; /* all of its flows are fixed */
		level = level_of(l);
		if (level > top.level * SAME_LEVEL) {
			if (l->uses > EMPTY)
				push(s, level, top.link);
			continue;
		}
		for (uint32_t i = 0; i < l->n; i++) {
			struct share_flow *f = flow_on(s, l, i);

			if (!f->fixed)
				fix(s, f, fmin(level, 1));
		}
	}
}

/* A flow on no link at all has what it would have alone. */
static void finish(struct share *s)
{
	for (size_t i = 0; i < s->n_some_flows; i++) {
		struct share_flow *f = &s->flow[s->some_flows[i]];

		if (!f->fixed)
			fix(s, f, 1);
	}
	for (size_t i = 0; i < s->n_some_links; i++) {
		struct share_link *l = &s->link[s->some_links[i]];

		l->load = 0;
		for (uint32_t k = 0; k < l->n; k++)
			l->load += flow_on(s, l, k)->rate * use_on(s, l, k);
	}
}

static void take_flow(struct share *s, uint32_t id)
{
	struct share_flow *f = &s->flow[id];

	if (!f->active || f->mark == s->mark)
		return;
	f->mark = s->mark;
	f->fixed = false;
	if (s->n_some_flows == s->some_flow_cap)
		s->some_flows = ARENA_GROW(s->mem, s->some_flows, &s->some_flow_cap);
	s->some_flows[s->n_some_flows++] = id;
}

void share_solve(struct share *s)
{
	s->mark++;
	s->n_some_flows = 0;
	s->n_some_links = s->n_links;
	for (size_t i = 0; i < s->n_links; i++)
		s->some_links[i] = (uint32_t)i;
	for (size_t i = 0; i < s->n_flows; i++)
		take_flow(s, (uint32_t)i);
	fill(s);
	finish(s);
}

/* ---- solving what a change can reach -------------------------------------------- */

static void take_link(struct share *s, uint32_t id)
{
	struct share_link *l = &s->link[id];

	if (l->mark == s->mark)
		return;
	l->mark = s->mark;
	s->some_links[s->n_some_links++] = id;
}

/* All flows of a link may change. */
static void open_link(struct share *s, uint32_t id)
{
	struct share_link *l = &s->link[id];

	if (l->open == s->mark)
		return;
	l->open = s->mark;
	take_link(s, id);
	for (uint32_t i = 0; i < l->n; i++)
		take_flow(s, l->on[i] / SHARE_HOPS);
}

static bool is_full(const struct share_link *l)
{
	return l->load >= l->capacity * FULL;
}

/* From flows[from..] on: their links, and through full ones further flows. */
static void spread(struct share *s, size_t from)
{
	for (; from < s->n_some_flows; from++) {
		const struct share_flow *f = &s->flow[s->some_flows[from]];

		for (int i = 0; i < f->hops; i++) {
			take_link(s, f->link[i]);
			if (is_full(&s->link[f->link[i]]))
				open_link(s, f->link[i]);
		}
	}
}

static void unfix(struct share *s)
{
	for (size_t i = 0; i < s->n_some_flows; i++)
		s->flow[s->some_flows[i]].fixed = false;
}

/* No other flow on its links: there is nothing to share. */
static bool alone(struct share *s, struct share_flow *c)
{
	c->rate = c->active;
	for (int i = 0; i < c->hops; i++) {
		const struct share_link *l = &s->link[c->link[i]];

		if (l->n > c->active)
			return false;
		if (c->active)
			c->rate = fmin(c->rate, l->capacity / (double)c->use[i]);
	}
	for (int i = 0; i < c->hops; i++)
		s->link[c->link[i]].load = c->rate * (double)c->use[i];
	return true;
}

void share_update(struct share *s, uint32_t changed)
{
	struct share_flow *c = &s->flow[changed];
	size_t before;

	s->mark++;
	s->n_some_flows = s->n_some_links = 0;
	if (alone(s, c))
		return;
	for (int i = 0; i < c->hops; i++)
		open_link(s, c->link[i]);
	spread(s, 0);
	do { /* links that have become full reach further */
		before = s->n_some_flows;
		unfix(s);
		fill(s);
		finish(s);
		for (size_t i = 0; i < s->n_some_links; i++)
			if (is_full(&s->link[s->some_links[i]]))
				open_link(s, s->some_links[i]);
		spread(s, before);
	} while (s->n_some_flows > before);
}
