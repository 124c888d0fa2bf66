/* sim/network.c - NICs, leaves, uplinks and pods as links, a part's sends as flows */
#include "sim/network.h"

#include <math.h>

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include "base/arena.h"
#include "sim/share.h"

enum { MOST_SENDERS = 4096, MOST_PAIRS = 64, PARTNERS = 8 };

static const double LEAST_SHARE = 1e-3, LEAST_USE = 1e-3;

/* Leaves (or pods) that hold the same parts are one shared link. */
struct kinds {
	int64_t n;       /* leaves or pods */
	uint32_t *link;  /* [n] which shared link each is */
};

/* One rail of the fabric: with rail wiring they are alike but for their draws, so
 * one is laid out; with ToR wiring a node's NICs share a leaf and all are. */
struct network {
	struct arena *mem;
	const struct ft_cluster *c;
	const struct network_part *part;
	size_t n_parts, n_links, n_shared;
	int64_t nodes, rails, per_leaf, leaves, uplinks, per_pod, pods;
	uint32_t *order; /* [nodes] where the i-th node in order of placement stands */
	double line;     /* bytes/s of a NIC */
	double *capacity; /* [n_links] */
	struct kinds leaf, pod;
};

/* ---- links ---------------------------------------------------------------------- */

static uint32_t nic(const struct network *w, int64_t node, int64_t rail, bool down)
{
	return (uint32_t)((node * w->rails + rail) * 2 + down);
}

static uint32_t uplink(const struct network *w, int64_t leaf, int64_t up, bool down)
{
	int64_t first = 2 * w->nodes * w->rails;

	return (uint32_t)(first + (leaf * w->uplinks + up) * 2 + down);
}

static uint32_t core(const struct network *w, int64_t pod, bool down)
{
	int64_t first = 2 * (w->nodes * w->rails + w->leaves * w->uplinks);

	return (uint32_t)(first + pod * 2 + down);
}

/* A failed uplink has no capacity: ECMP passes it by (pick), adaptive routing loses
 * its part of the pool. */
static void set_capacities(struct network *w, gsl_rng *rng)
{
	const struct ft_imperfections *im = &w->c->imperfections;
	const struct ft_topology *t = &w->c->topology;
	double port = w->c->fabric->port_bytes_per_s.value, pod = INFINITY;
	double *cap = w->capacity;

	for (int64_t i = 0; i < w->nodes * w->rails; i++) {
		bool slow = gsl_rng_uniform(rng) < im->slow_nics_frac;

		cap[2 * i] = cap[2 * i + 1] =
			w->line * (slow ? im->slow_nic_rate_frac : 1);
	}
	for (int64_t i = 0; i < w->leaves * w->uplinks; i++) {
		bool failed = gsl_rng_uniform(rng) < im->failed_uplinks_frac;
		uint32_t at = uplink(w, i / w->uplinks, i % w->uplinks, false);

		cap[at] = cap[at + 1] = failed ? 0 : port;
	}
	if (t->tiers > 2) /* the laid out rail's part of a pod's links to the core */
		pod = (double)t->cables_spine_core / (double)w->pods * port *
		      (double)w->rails / (double)w->c->nics_per_node;
	for (int64_t i = 0; i < w->pods; i++)
		cap[core(w, i, false)] = cap[core(w, i, true)] = pod;
}

/* Adaptive routing: all uplinks of a leaf are one. */
static void pool(struct network *w)
{
	for (int64_t leaf = 0; leaf < w->leaves; leaf++)
		for (int down = 0; down < 2; down++) {
			double sum = 0;

			for (int64_t u = 0; u < w->uplinks; u++)
				sum += w->capacity[uplink(w, leaf, u, down)];
			w->capacity[uplink(w, leaf, 0, down)] = sum;
		}
}

/* ---- what parts share ------------------------------------------------------------- */

/* First and last part with a node in [from, to) in order of placement. */
static void parts_in(const struct network *w, int64_t from, int64_t to,
		     size_t *first, size_t *last)
{
	*first = w->n_parts;
	*last = 0;
	for (size_t p = 0; p < w->n_parts; p++)
		if (w->part[p].first_node < to &&
		    w->part[p].first_node + w->part[p].nodes > from) {
			*first = p < *first ? p : *first;
			*last = p;
		}
}

/* Scattered parts are everywhere. */
static void find_kinds(struct network *w, struct kinds *k, int64_t n, int64_t per)
{
	size_t first = 0, last = 0, f, l;

	k->n = n;
	k->link = ARENA_ARRAY(w->mem, (size_t)n + 1, uint32_t);
	for (int64_t i = 0; i < n; i++) {
		parts_in(w, i * per, (i + 1) * per, &f, &l);
		if (i == 0 || (!w->c->imperfections.scattered &&
			       (f != first || l != last)))
			w->n_shared++;
		first = f;
		last = l;
		k->link[i] = (uint32_t)w->n_shared - 1;
	}
}

bool network_matters(const struct ft_cluster *c)
{
	return c->topology.tiers > 0 &&
	       (c->imperfections.given ||
		(c->topology.tiers > 1 &&
		 (!c->fabric->adaptive || c->fabric->oversubscription > 1 ||
		  c->fabric->core_oversubscription > 1)));
}

static void set_sizes(struct network *w)
{
	const struct ft_cluster *c = w->c;
	const struct ft_topology *t = &c->topology;

	w->rails = c->fabric->wiring == FT_WIRING_TOR ? c->nics_per_node : 1;
	w->per_leaf = t->tiers > 1 && t->nodes_per_leaf > 0 ? t->nodes_per_leaf :
							      w->nodes;
	w->leaves = (w->nodes + w->per_leaf - 1) / w->per_leaf;
	w->uplinks = t->leaf_up > 0 ? t->leaf_up : 1;
	w->per_pod = t->tiers > 2 && t->nodes_per_pod > 0 ? t->nodes_per_pod :
							    w->nodes;
	w->pods = (w->nodes + w->per_pod - 1) / w->per_pod;
	w->line = c->nic_bytes_per_s * (double)c->ranks_per_node /
		  (double)c->nics_per_node;
	w->n_links = (size_t)(2 * (w->nodes * w->rails + w->leaves * w->uplinks +
				   w->pods));
}

struct network *network_new(struct arena *mem, const struct ft_cluster *c,
			    int64_t nodes, const struct network_part *part,
			    size_t n_parts)
{
	struct network *w = ARENA_NEW(mem, struct network);
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);

	*w = (struct network){ .mem = mem, .c = c, .part = part,
			       .n_parts = n_parts, .nodes = nodes };
	gsl_rng_set(rng, (unsigned long)c->imperfections.seed);
	set_sizes(w);
	w->order = ARENA_ARRAY(mem, (size_t)nodes, uint32_t);
	for (int64_t i = 0; i < nodes; i++)
		w->order[i] = (uint32_t)i;
	if (c->imperfections.scattered)
		gsl_ran_shuffle(rng, w->order, (size_t)nodes, sizeof(*w->order));
	w->capacity = ARENA_ARRAY(mem, w->n_links, double);
	set_capacities(w, rng);
	if (c->fabric->adaptive)
		pool(w);
	find_kinds(w, &w->leaf, w->leaves, w->per_leaf);
	find_kinds(w, &w->pod, w->pods, w->per_pod);
	gsl_rng_free(rng);
	return w;
}

size_t network_links(const struct network *w)
{
	return w->n_shared;
}

/* ---- flows ------------------------------------------------------------------------- */

struct solving {
	struct network *w;
	struct share share;
	gsl_rng *rng;
};

/* ECMP routes around links that are down: hash over those that are up. */
static int64_t pick(struct solving *s, int64_t from, int64_t to)
{
	const struct network *w = s->w;

	if (w->c->fabric->adaptive)
		return 0;
	for (int tries = 0; tries < 1000; tries++) {
		int64_t u = (int64_t)gsl_rng_uniform_int(s->rng,
				(unsigned long)w->uplinks);

		if (w->capacity[uplink(w, from, u, false)] > 0 &&
		    w->capacity[uplink(w, to, u, true)] > 0)
			return u;
	}
	return 0;
}

/* weight flows of line rate from the i-th node to the j-th, over every rail. */
static void send(struct solving *s, int64_t i, int64_t j, double weight)
{
	const struct network *w = s->w;
	int64_t from = w->order[i], to = w->order[j];
	int64_t a = from / w->per_leaf, b = to / w->per_leaf;
	int64_t pa = from / w->per_pod, pb = to / w->per_pod;
	int64_t pairs = w->c->fabric->adaptive || a == b ? 1 :
			w->c->fabric->queue_pairs;

	if (pairs > MOST_PAIRS)
		pairs = MOST_PAIRS;
	for (int64_t n = 0; n < w->rails * pairs; n++) {
		uint32_t link[6] = { nic(w, from, n / pairs, false),
				     nic(w, to, n / pairs, true) };
		size_t hops = 2;

		if (a != b) {
			int64_t u = pick(s, a, b);

			link[hops++] = uplink(w, a, u, false);
			link[hops++] = uplink(w, b, u, true);
		}
		if (pa != pb) {
			link[hops++] = core(w, pa, false);
			link[hops++] = core(w, pb, true);
		}
		share_add(&s->share, link, NULL, hops, weight / (double)pairs,
			  INFINITY);
	}
}

static void send_from(struct solving *s, const struct network_part *part,
		      const struct network_sends *x, int64_t i)
{
	int64_t at = i - part->first_node, m = x->members;
	int64_t j = at / x->stride % m;
	int64_t group = i - j * x->stride; /* its first member */
	int64_t partners = m - 1 < PARTNERS ? m - 1 : PARTNERS;
	int64_t end = part->first_node + part->nodes, to;

	switch (x->pattern) {
	case NETWORK_SHIFT:
		if (i + x->stride < s->w->nodes)
			send(s, i, i + x->stride, 1);
		return;
	case NETWORK_RING:
		to = group + (j + 1) % m * x->stride;
		if (to != i && to < end)
			send(s, i, to, 1);
		return;
	case NETWORK_PAIRS:
		for (int64_t k = 1; k <= partners; k++) {
			to = group + (j + k * m / (partners + 1)) % m * x->stride;
			if (to != i && to < end)
				send(s, i, to, 1.0 / (double)partners);
		}
	}
}

/* A split flow is as slow as its slowest part: rate per weight, least of all. */
static double slowest(const struct solving *s)
{
	double least = 1;

	for (size_t f = 0; f < s->share.n_flows; f++) {
		const struct share_flow *x = &s->share.flow[f];

		least = fmin(least, x->rate / (x->weight * s->w->line));
	}
	return fmax(least, LEAST_SHARE);
}

/* ---- loads of what is shared -------------------------------------------------------- */

static void note_use(struct network_path *out, uint32_t link, double use)
{
	int i = 0;

	if (use < LEAST_USE)
		return;
	while (i < out->n_uses && out->link[i] != link)
		i++;
	if (i == NETWORK_USES)
		return;
	if (i == out->n_uses) {
		out->link[out->n_uses++] = link;
		out->use[i] = 0;
	}
	out->use[i] = fmaxf(out->use[i], (float)fmin(1, use));
}

/* The slowest paces all: loads shrink by what each flow had beyond it. */
static void note_uses(const struct solving *s, double share,
		      struct network_path *out)
{
	const struct network *w = s->w;
	double pace = share * w->line;

	for (int64_t leaf = 0; leaf < w->leaves; leaf++) {
		double load = 0, room = 0;

		for (int64_t u = 0; u < w->uplinks; u++) {
			uint32_t at = uplink(w, leaf, u, false);
			const struct share_link *l = &s->share.link[at];

			for (uint32_t k = 0; k < l->n; k++)
				load += pace * s->share.flow[l->on[k] /
							     SHARE_HOPS].weight;
			if (u == 0 || !w->c->fabric->adaptive)
				room += w->capacity[at];
		}
		if (load > 0 && room > 0)
			note_use(out, w->leaf.link[leaf], load / room);
	}
	for (int64_t pod = 0; pod < w->pods; pod++) {
		const struct share_link *l = &s->share.link[core(w, pod, false)];
		double load = 0;

		for (uint32_t k = 0; k < l->n; k++)
			load += pace * s->share.flow[l->on[k] / SHARE_HOPS].weight;
		if (load > 0)
			note_use(out, w->pod.link[pod], load / l->capacity);
	}
}

void network_find(struct network *w, size_t part, const struct network_sends *x,
		  struct network_path *out)
{
	struct arena mem = { 0 };
	struct solving s = { .w = w, .rng = gsl_rng_alloc(gsl_rng_mt19937) };
	const struct network_part *p = &w->part[part];
	int64_t senders = p->nodes < MOST_SENDERS ? p->nodes : MOST_SENDERS;

	*out = (struct network_path){ .share = 1 };
	gsl_rng_set(s.rng, (unsigned long)(w->c->imperfections.seed + part));
	share_init(&s.share, &mem, w->capacity, w->n_links);
	for (int64_t i = 0; i < senders; i++)
		send_from(&s, p, x, p->first_node + i);
	if (s.share.n_flows) {
		share_solve(&s.share);
		out->share = slowest(&s);
		note_uses(&s, out->share, out);
	}
	gsl_rng_free(s.rng);
	arena_release(&mem);
}

double network_share(const struct ft_cluster *c, const struct network_sends *x)
{
	int64_t span = x->stride * x->members;
	struct network_part part = { 0, span < c->nodes ? span : c->nodes };
	struct arena mem = { 0 };
	struct network_path path;
	struct network *w;

	if (!network_matters(c) || part.nodes < 2)
		return 1;
	w = network_new(&mem, c, c->nodes, &part, 1);
	network_find(w, 0, x, &path);
	arena_release(&mem);
	return path.share;
}
