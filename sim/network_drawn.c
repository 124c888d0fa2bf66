/* sim/network_drawn.c - cables of a drawing: their capacities, bundles and ways */
#include "sim/network_drawn.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"

static uint32_t way_of(const struct network *w, size_t c, bool back)
{
	return (uint32_t)(2 * (w->nodes * w->rails + (int64_t)c) + back);
}

/* The cables at each switch. */
static void find_ends(struct network *w)
{
	const struct ft_switch_graph *g = w->graph;
	size_t *at = ARENA_ARRAY(w->mem, g->n_switches, size_t);

	w->first_end = ARENA_ARRAY(w->mem, g->n_switches + 1, size_t);
	w->end = ARENA_ARRAY(w->mem, 2 * g->n_cables, uint32_t);
	for (size_t c = 0; c < g->n_cables; c++) {
		w->first_end[g->cable[c].a + 1]++;
		w->first_end[g->cable[c].b + 1]++;
	}
	for (size_t s = 0; s < g->n_switches; s++) {
		w->first_end[s + 1] += w->first_end[s];
		at[s] = w->first_end[s];
	}
	for (size_t c = 0; c < g->n_cables; c++) {
		w->end[at[g->cable[c].a]++] = (uint32_t)c;
		w->end[at[g->cable[c].b]++] = (uint32_t)c;
	}
}

/* How many cables that work lead from a switch to each other, no more than ways may have; a wave. */
static void measure(const struct network *w, uint32_t start, uint8_t *far,
		    uint32_t *queue)
{
	const struct ft_switch_graph *g = w->graph;
	size_t first = 0, last = 0;

	far[start] = 0;
	queue[last++] = start;
	for (; first < last && far[queue[first]] < FT_GRAPH_HOPS; first++) {
		uint32_t at = queue[first];

		for (size_t i = w->first_end[at]; i < w->first_end[at + 1]; i++) {
			const struct ft_cable *c = &g->cable[w->end[i]];
			uint32_t next = (uint32_t)(c->a == at ? c->b : c->a);

			if (!w->working[w->end[i]] || far[next] != FT_UNREACHED)
				continue;
			far[next] = (uint8_t)(far[at] + 1);
			queue[last++] = next;
		}
	}
}

static const uint8_t *measure_all(const struct network *w)
{
	size_t n = w->graph->n_switches;
	uint8_t *far = ARENA_ARRAY(w->mem, n * n, uint8_t);
	uint32_t *queue = ARENA_ARRAY(w->mem, n, uint32_t);

	memset(far, FT_UNREACHED, n * n);
	for (size_t s = 0; s < n; s++)
		measure(w, (uint32_t)s, far + s * n, queue);
	return far;
}

void drawn_set_cables(struct network *w, gsl_rng *rng)
{
	const struct ft_switch_graph *g = w->graph;
	bool gone = false;

	find_ends(w);
	w->last_stream = ARENA_ARRAY(w->mem, g->n_switches, size_t);
	w->passing = ARENA_ARRAY(w->mem, g->n_switches, double);
	w->working = ARENA_ARRAY(w->mem, g->n_cables, int64_t);
	for (size_t i = 0; i < g->n_cables; i++) {
		const struct ft_cable *c = &g->cable[i];

		w->working[i] = links_working(w, rng, c->count);
		w->capacity[way_of(w, i, false)] = w->capacity[way_of(w, i, true)] =
			c->bytes_per_s * (double)w->working[i];
		gone |= !w->working[i];
	}
	w->distance = gone ? measure_all(w) : g->distance;
}

bool drawn_joins_all(const struct network *w, struct ft_error *err)
{
	const struct ft_switch_graph *g = w->graph;

	for (size_t i = 0; i < g->n_attaches; i++)
		for (size_t k = 0; k < i; k++) {
			size_t a = g->attach[k].to, b = g->attach[i].to;

			if (w->distance[a * g->n_switches + b] > FT_GRAPH_HOPS)
				return ft_fail(
					err, NULL,
					"imperfections: with these failed uplinks no "
					"way of at most %d cables is left between %s "
					"and %s; lower failed_uplinks_frac (%g), or "
					"choose another seed",
					(int)FT_GRAPH_HOPS, g->name[a], g->name[b],
					w->c->imperfections.failed_uplinks_frac);
		}
	return true;
}

/* ---- bundles ---------------------------------------------------------------------- */

/* A bundle that is being gathered: the switch it leaves, the first switch like those it
 * leads to, and the parts below it. */
struct gathered {
	uint32_t from, to;
	size_t first, last; /* first > last: no leaf's */
	size_t n, cap;
	uint32_t *way;
};

static bool has_nodes(const struct ft_switch_graph *g, size_t s)
{
	for (size_t i = 0; i < g->n_attaches; i++)
		if (g->attach[i].to == s)
			return true;
	return false;
}

/* Are both as far from every leaf? */
static bool alike(const struct ft_switch_graph *g, const bool *leaf, size_t s, size_t t)
{
	for (size_t i = 0; i < g->n_switches; i++)
		if (leaf[i] && g->distance[i * g->n_switches + s] !=
				       g->distance[i * g->n_switches + t])
			return false;
	return true;
}

/* For each switch the first that is like it; a leaf is like none. */
static uint32_t *find_classes(const struct network *w, const bool *leaf)
{
	const struct ft_switch_graph *g = w->graph;
	uint32_t *like = ARENA_ARRAY(w->mem, g->n_switches, uint32_t);

	for (size_t s = 0; s < g->n_switches; s++) {
		size_t t = leaf[s] ? s : 0;

		while (t < s && (leaf[t] || like[t] != t || !alike(g, leaf, s, t)))
			t++;
		like[s] = (uint32_t)t;
	}
	return like;
}

/* The parts below a leaf whose cables lead to switches without nodes. */
static void find_parts(const struct network *w, struct gathered *b)
{
	const struct ft_switch_graph *g = w->graph;

	for (size_t i = 0; i < g->n_attaches; i++)
		if (g->attach[i].to == b->from)
			links_parts_in(w, g->attach[i].first_node,
				       g->attach[i].last_node + 1, &b->first, &b->last);
}

/* The i-th bundle's shared link: that of one before it, or a new one. */
static uint32_t link_of(struct network *w, const struct gathered *all, size_t i)
{
	const struct gathered *b = &all[i];

	for (size_t k = 0; b->first <= b->last && k < i; k++)
		if (all[k].to == b->to && all[k].first <= all[k].last &&
		    (w->c->imperfections.scattered ||
		     (all[k].first == b->first && all[k].last == b->last)))
			return w->bundle[k].link;
	return (uint32_t)w->n_shared++;
}

struct gathering {
	struct network *w;
	const bool *leaf;
	struct gathered *all; /* [n] */
	size_t n, cap;
};

/* The bundle between two classes of switches. */
static struct gathered *bundle_of(struct gathering *g, uint32_t from, uint32_t to)
{
	struct gathered *b;

	for (size_t k = 0; k < g->n; k++)
		if (g->all[k].from == from && g->all[k].to == to)
			return &g->all[k];
	if (g->n == g->cap)
		g->all = ARENA_GROW(g->w->mem, g->all, &g->cap);
	b = &g->all[g->n++];
	*b = (struct gathered){ .from = from, .to = to, .first = g->w->n_parts };
	if (g->leaf[from] && !g->leaf[to])
		find_parts(g->w, b);
	return b;
}

void drawn_find_bundles(struct network *w)
{
	const struct ft_switch_graph *g = w->graph;
	bool *leaf = ARENA_ARRAY(w->mem, g->n_switches, bool);
	struct gathering all = { .w = w, .leaf = leaf };
	uint32_t *like;

	for (size_t s = 0; s < g->n_switches; s++)
		leaf[s] = has_nodes(g, s);
	like = find_classes(w, leaf);
	for (size_t i = 0; i < 2 * g->n_cables; i++) {
		const struct ft_cable *c = &g->cable[i / 2];
		uint32_t from = like[i % 2 ? c->b : c->a];
		uint32_t to = like[i % 2 ? c->a : c->b];
		struct gathered *b;

		if (leaf[to] && !leaf[from])
			continue;
		b = bundle_of(&all, from, to);
		if (b->n == b->cap)
			b->way = ARENA_GROW(w->mem, b->way, &b->cap);
		b->way[b->n++] = way_of(w, i / 2, i % 2);
	}
	w->bundle = ARENA_ARRAY(w->mem, all.n, struct bundle);
	w->n_bundles = all.n;
	for (size_t i = 0; i < all.n; i++)
		w->bundle[i] = (struct bundle){ all.all[i].way, all.all[i].n,
						link_of(w, all.all, i) };
}

/* ---- ways --------------------------------------------------------------------------- */

/* Where a cable leads from a switch, if it works and that is nearer to the end, from which `left` counts;
 * else the switch itself. */
static size_t nearer(const struct network *w, const uint8_t *left, size_t c, size_t at)
{
	const struct ft_cable *k = &w->graph->cable[c];
	size_t next = k->a == at ? k->b : k->b == at ? k->a : at;

	return w->working[c] && left[next] + 1 == left[at] ? next : at;
}

/* One cable nearer each time, by lot over those that lead there. */
size_t drawn_route(const struct network *w, gsl_rng *rng, const struct links_flow *f,
		   uint32_t *link)
{
	const struct ft_switch_graph *g = w->graph;
	size_t at = (size_t)ft_graph_switch_of(g, f->from, f->rail), hops = 0;
	size_t end = (size_t)ft_graph_switch_of(g, f->to, f->rail);
	const uint8_t *left = w->distance + end * g->n_switches;

	while (at != end && !links_spread(w)) {
		int64_t ways = 0, lot;
		size_t i, c = 0, next = at;

		for (i = w->first_end[at]; i < w->first_end[at + 1]; i++)
			if (nearer(w, left, w->end[i], at) != at)
				ways += w->working[w->end[i]];
		lot = (int64_t)gsl_rng_uniform_int(rng, (unsigned long)ways);
		for (i = w->first_end[at]; lot >= 0; i++) {
			c = w->end[i];
			next = nearer(w, left, c, at);
			lot -= next != at ? w->working[c] : 0;
		}
		link[hops++] = way_of(w, c, g->cable[c].b == at);
		at = next;
	}
	return hops;
}

/* ---- all ways at once ------------------------------------------------------------------ */

void drawn_add(struct network *w, const struct links_flow *f, double weight)
{
	uint32_t from = (uint32_t)ft_graph_switch_of(w->graph, f->from, f->rail);
	uint32_t to = (uint32_t)ft_graph_switch_of(w->graph, f->to, f->rail);
	size_t i = w->last_stream[from];

	while (i && w->stream[i - 1].to != to)
		i = w->stream[i - 1].next;
	if (i) {
		w->stream[i - 1].weight += weight;
		return;
	}
	if (w->n_streams == w->cap_streams)
		w->stream = ARENA_GROW(w->mem, w->stream, &w->cap_streams);
	w->stream[w->n_streams++] =
		(struct stream){ from, to, weight, w->last_stream[from] };
	w->last_stream[from] = w->n_streams;
}

/* What has come to a switch goes on, to each cable that leads nearer as much. */
static void pass_on(struct network *w, const uint8_t *left, size_t at)
{
	double each = 0;

	for (size_t i = w->first_end[at]; i < w->first_end[at + 1]; i++)
		if (nearer(w, left, w->end[i], at) != at)
			each += (double)w->working[w->end[i]];
	each = w->passing[at] / each;
	for (size_t i = w->first_end[at]; i < w->first_end[at + 1]; i++) {
		uint32_t c = w->end[i];
		size_t next = nearer(w, left, c, at);
		double goes = each * (double)w->working[c];

		if (next == at)
			continue;
		links_load(w, way_of(w, c, w->graph->cable[c].b == at), goes);
		w->passing[next] += goes;
	}
	w->passing[at] = 0;
}

void drawn_spread(struct network *w)
{
	const struct ft_switch_graph *g = w->graph;

	while (w->n_streams) {
		const struct stream *s = &w->stream[--w->n_streams];
		const uint8_t *left = w->distance + s->to * g->n_switches;

		w->last_stream[s->from] = 0;
		w->passing[s->from] = s->weight;
		for (int far = left[s->from]; far; far--)
			for (size_t at = 0; at < g->n_switches; at++)
				if (left[at] == far && w->passing[at] > 0)
					pass_on(w, left, at);
		w->passing[s->to] = 0;
	}
}
