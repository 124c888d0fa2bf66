/* sim/network_links.c - capacities, routes and shared links of Clos networks, and uses of all */
#include "sim/network_links.h"

#include <math.h>

#include "base/arena.h"
#include "base/whole.h"
#include "sim/network_drawn.h"

enum { MOST_PAIRS = 64 };

static const double LEAST_USE = 1e-3;

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

/* The slowest rail sets the pace: a NIC is slow where that of any rail is, for which it stands. */
static void set_nics(struct network *w, gsl_rng *rng)
{
	const struct ft_imperfections *im = &w->c->imperfections;
	double any = 1 - pow(1 - im->slow_nics_frac, (double)w->alike);

	for (int64_t i = 0; i < w->nodes * w->rails; i++) {
		bool slow = gsl_rng_uniform(rng) < any;

		w->capacity[2 * i] = w->capacity[2 * i + 1] =
			w->line * (slow ? im->slow_nic_rate_frac : 1);
	}
}

int64_t links_working(const struct network *w, gsl_rng *rng, int64_t count)
{
	int64_t n = 0;

	for (int64_t i = 0; i < count; i++)
		n += gsl_rng_uniform(rng) >= w->c->imperfections.failed_uplinks_frac;
	return n;
}

/* Uplinks are dealt out to the spines that a leaf reaches evenly; the first ones are those that
 * failed, of the leaf that loses most. */
static bool spine_failed(const struct network *w, int64_t up)
{
	const struct ft_topology *t = &w->c->topology;
	int64_t spines = t->leaf_spines ? t->leaf_spines : 1;
	int64_t failed = ft_topology_spines_lost(t, w->c->imperfections.failed_spines);
	int64_t lost = ceil_div(failed * w->uplinks, spines);

	return up < (lost < w->uplinks ? lost : w->uplinks - 1);
}

static double port_bytes_per_s(const struct network *w)
{
	return (double)w->c->topology.planes * w->c->fabric->port_bytes_per_s.value;
}

/* A failed uplink has no capacity: ECMP passes it by (pick), adaptive routing loses
 * its part of the pool. Planes lie side by side: one uplink stands for theirs, as a NIC's line does. */
static void draw_uplinks(struct network *w, gsl_rng *rng, int64_t leaf)
{
	for (int64_t u = 0; u < w->uplinks; u++) {
		uint32_t at = uplink(w, leaf, u, false);
		int64_t up = links_working(w, rng, 1);

		w->capacity[at] = w->capacity[at + 1] =
			spine_failed(w, u) ? 0 : port_bytes_per_s(w) * (double)up;
	}
}

/* A node's part of its pod's links to the core is that of the laid out rail. */
static void set_clos(struct network *w, gsl_rng *rng)
{
	const struct ft_topology *t = &w->c->topology;
	double node = INFINITY;
	int64_t above = t->tiers > 3 ? t->cables_core_top : t->cables_spine_core;

	for (int64_t i = 0; i < w->leaves; i++)
		draw_uplinks(w, rng, i);
	if (t->tiers > 2)
		node = (double)above / (double)w->nodes * port_bytes_per_s(w) *
		       (double)w->rails / (double)w->c->nics_per_node;
	for (int64_t i = 0; i < w->pods; i++) { /* the last may be smaller */
		int64_t left = w->nodes - i * w->per_pod;
		double pod = node * (double)(left < w->per_pod ? left : w->per_pod);

		w->capacity[core(w, i, false)] = w->capacity[core(w, i, true)] = pod;
	}
}

/* Adaptive routing: all uplinks of a leaf are one, as fast as those of the rail with the fewest. */
static void pool(struct network *w, gsl_rng *rng)
{
	bool fail = w->c->imperfections.failed_uplinks_frac > 0;

	for (int64_t leaf = 0; leaf < w->leaves; leaf++) {
		double least = INFINITY;

		for (int64_t rail = 0; rail < (fail ? w->alike : 1); rail++) {
			double sum = 0;

			if (rail)
				draw_uplinks(w, rng, leaf);
			for (int64_t u = 0; u < w->uplinks; u++)
				sum += w->capacity[uplink(w, leaf, u, false)];
			least = fmin(least, sum);
		}
		w->capacity[uplink(w, leaf, 0, false)] = least;
		w->capacity[uplink(w, leaf, 0, true)] = least;
	}
}

/* ---- what parts share ------------------------------------------------------------- */

void links_parts_in(const struct network *w, int64_t from, int64_t to, size_t *first,
		    size_t *last)
{
	for (size_t p = 0; p < w->n_parts; p++)
		if (w->part[p].first_node < to &&
		    w->part[p].first_node + w->part[p].nodes > from) {
			*first = p < *first ? p : *first;
			*last = p > *last ? p : *last;
		}
}

/* Leaves (or pods) that hold the same parts are one shared link; scattered parts are
 * everywhere. */
static uint32_t *find_kinds(struct network *w, int64_t n, int64_t per)
{
	uint32_t *link = ARENA_ARRAY(w->mem, (size_t)n + 1, uint32_t);
	size_t first = 0, last = 0;

	for (int64_t i = 0; i < n; i++) {
		size_t f = w->n_parts, l = 0;

		links_parts_in(w, i * per, (i + 1) * per, &f, &l);
		if (i == 0 ||
		    (!w->c->imperfections.scattered && (f != first || l != last)))
			w->n_shared++;
		first = f;
		last = l;
		link[i] = (uint32_t)w->n_shared - 1;
	}
	return link;
}

/* Nodes of a pod: a leaf is of one, also where pods have not a whole number of each rail's. */
static int64_t pod_nodes(const struct network *w)
{
	int64_t leaves = w->c->topology.nodes_per_pod / w->per_leaf;

	return w->c->topology.tiers < 3 || w->c->topology.nodes_per_pod <= 0 ?
		       w->nodes :
		       (leaves > 1 ? leaves : 1) * w->per_leaf;
}

static void set_sizes(struct network *w)
{
	const struct ft_cluster *c = w->c;
	const struct ft_topology *t = &c->topology;
	int64_t above;

	w->graph = c->fabric->graph;
	w->rails = c->nics_per_node; /* that share leaves: one leaf stands for all */
	if (!w->graph && c->fabric->wiring != FT_WIRING_TOR) {
		int64_t shared = c->fabric->rails_per_leaf;

		w->rails = shared < 2 ? 1 : shared < w->rails ? shared : w->rails;
	}
	w->alike = w->graph || c->fabric->wiring == FT_WIRING_TOR ?
			   1 :
			   c->nics_per_node / w->rails;
	w->per_leaf =
		t->tiers > 1 && t->nodes_per_leaf > 0 ? t->nodes_per_leaf : w->nodes;
	w->leaves = ceil_div(w->nodes, w->per_leaf);
	w->uplinks = t->leaf_up > 0 ? t->leaf_up : 1;
	w->per_pod = pod_nodes(w);
	w->pods = ceil_div(w->nodes, w->per_pod);
	w->line = c->nic_bytes_per_s * (double)c->ranks_per_node /
		  (double)c->nics_per_node;
	above = w->graph ? (int64_t)w->graph->n_cables :
			   w->leaves * w->uplinks + w->pods;
	w->n_links = (size_t)(2 * (w->nodes * w->rails + above));
}

void links_lay_out(struct network *w, gsl_rng *rng)
{
	set_sizes(w);
	w->capacity = ARENA_ARRAY(w->mem, w->n_links, double);
	set_nics(w, rng);
	if (w->graph) {
		drawn_set_cables(w, rng);
		drawn_find_bundles(w);
		return;
	}
	set_clos(w, rng);
	if (w->c->fabric->adaptive)
		pool(w, rng);
	w->leaf_link = find_kinds(w, w->leaves, w->per_leaf);
	w->pod_link = find_kinds(w, w->pods, w->per_pod);
}

static bool works(const struct network *w, int64_t leaf, int64_t up)
{
	return w->capacity[uplink(w, leaf, up, false)] > 0;
}

static bool joined(const struct network *w, int64_t a, int64_t b)
{
	int64_t ways = w->c->fabric->adaptive ? 1 : w->uplinks; /* pooled: one */

	for (int64_t u = 0; u < ways; u++)
		if (works(w, a, u) && works(w, b, u))
			return true;
	return false;
}

bool links_join_all(const struct network *w, struct ft_error *err)
{
	if (w->c->imperfections.failed_uplinks_frac <= 0)
		return true; /* some spine works, and with it an uplink of each leaf */
	if (w->graph)
		return drawn_joins_all(w, err);
	for (int64_t a = 0; a < w->leaves; a++)
		for (int64_t b = 0; b < a; b++)
			if (!joined(w, a, b))
				return ft_fail(
					err, NULL,
					"imperfections: with these failed uplinks and "
					"spines no way is left between leaves %lld and "
					"%lld; lower failed_uplinks_frac (%g), or "
					"choose another seed",
					(long long)b, (long long)a,
					w->c->imperfections.failed_uplinks_frac);
	return true;
}

/* ---- routes ---------------------------------------------------------------------- */

void links_load(struct network *w, uint32_t link, double weight)
{
	if (w->weight[link] <= 0)
		w->met[w->n_met++] = link;
	w->weight[link] += weight;
}

bool links_spread(const struct network *w)
{
	return w->graph && w->c->fabric->adaptive;
}

int64_t links_split(const struct network *w, int64_t from, int64_t to, int64_t many)
{
	int64_t pairs = w->c->fabric->queue_pairs * many;

	if (w->c->fabric->adaptive ||
	    (!w->graph && from / w->per_leaf == to / w->per_leaf))
		return 1;
	return pairs < MOST_PAIRS ? pairs : MOST_PAIRS;
}

/* ECMP routes around links that are down: hash over those that are up. */
static int64_t pick(const struct network *w, gsl_rng *rng, int64_t from, int64_t to)
{
	if (w->c->fabric->adaptive)
		return 0;
	for (int tries = 0; tries < 1000; tries++) {
		int64_t u =
			(int64_t)gsl_rng_uniform_int(rng, (unsigned long)w->uplinks);

		if (w->capacity[uplink(w, from, u, false)] > 0 &&
		    w->capacity[uplink(w, to, u, true)] > 0)
			return u;
	}
	return 0;
}

static size_t route_clos(const struct network *w, gsl_rng *rng, int64_t from,
			 int64_t to, uint32_t *link)
{
	int64_t a = from / w->per_leaf, b = to / w->per_leaf;
	int64_t pa = from / w->per_pod, pb = to / w->per_pod;
	size_t hops = 0;

	if (a != b) {
		int64_t u = pick(w, rng, a, b);

		link[hops++] = uplink(w, a, u, false);
		link[hops++] = uplink(w, b, u, true);
	}
	if (pa != pb) {
		link[hops++] = core(w, pa, false);
		link[hops++] = core(w, pb, true);
	}
	return hops;
}

size_t links_route(const struct network *w, gsl_rng *rng, const struct links_flow *f,
		   uint32_t link[SHARE_HOPS])
{
	link[0] = nic(w, f->from, f->rail, false);
	link[1] = nic(w, f->to, f->rail, true);
	return 2 + (w->graph ? drawn_route(w, rng, f, link + 2) :
			       route_clos(w, rng, f->from, f->to, link + 2));
}

/* ---- what is taken of shared links -------------------------------------------------- */

/* The fullest count, when there is no room for all. */
static void note_use(struct network_path *out, uint32_t link, double use)
{
	int i = 0, least = 0;

	if (use < LEAST_USE)
		return;
	for (; i < out->n_uses && out->link[i] != link; i++)
		least = out->use[i] < out->use[least] ? i : least;
	if (i == NETWORK_USES) {
		if ((double)out->use[least] >= use)
			return;
		i = least;
		out->use[i] = 0;
	} else if (i == out->n_uses) {
		out->use[out->n_uses++] = 0;
	}
	out->link[i] = link;
	out->use[i] = fmaxf(out->use[i], (float)fmin(1, use));
}

/* How full a leaf's links are, at a pace: the fullest, and all together. */
struct fullness {
	double fullest, load, room;
};

static void add_link(struct fullness *f, const struct network *w, double pace,
		     uint32_t at)
{
	double load = pace * w->weight[at];

	f->load += load;
	f->room += w->capacity[at];
	if (load > 0 && w->capacity[at] > 0)
		f->fullest = fmax(f->fullest, load / w->capacity[at]);
}

/* Others' flows hash to other links: weight the fullest link 2/3 and the mean 1/3. That
 * matches hashing two groups together within 5 % (tests/test_network.c). Pooled links are
 * as full as each other. */
static double taken(const struct fullness *f)
{
	return f->room > 0 ? (2 * f->fullest + f->load / f->room) / 3 : 0;
}

static void note_drawn(const struct network *w, double pace, struct network_path *out)
{
	for (size_t b = 0; b < w->n_bundles; b++) {
		const struct bundle *bundle = &w->bundle[b];
		struct fullness f = { 0 };

		for (size_t i = 0; i < bundle->n; i++)
			add_link(&f, w, pace, bundle->way[i]);
		note_use(out, bundle->link, taken(&f));
	}
}

void links_note_uses(const struct network *w, double pace, struct network_path *out)
{
	int64_t pooled = w->c->fabric->adaptive ? 1 : w->uplinks;

	if (w->graph) {
		note_drawn(w, pace, out);
		return;
	}
	for (int64_t leaf = 0; leaf < w->leaves; leaf++) {
		struct fullness f = { 0 };

		for (int64_t u = 0; u < pooled; u++)
			add_link(&f, w, pace, uplink(w, leaf, u, false));
		note_use(out, w->leaf_link[leaf], taken(&f));
	}
	for (int64_t pod = 0; pod < w->pods; pod++) {
		uint32_t at = core(w, pod, false);

		note_use(out, w->pod_link[pod], pace * w->weight[at] / w->capacity[at]);
	}
}
