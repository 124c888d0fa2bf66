/* sim/network.c - a part's sends as flows on the links of the cluster */
#include "sim/network.h"

#include <math.h>

#include <gsl/gsl_randist.h>

#include "base/arena.h"
#include "sim/network_links.h"

enum { MOST_SENDERS = 4096, PARTNERS = 8 };

static const double LEAST_SHARE = 1e-3;

bool network_matters(const struct ft_cluster *c)
{
	return c->topology.tiers > 0 &&
	       (c->imperfections.given || c->fabric->graph ||
		(c->topology.tiers > 1 &&
		 (!c->fabric->adaptive || c->fabric->oversubscription > 1 ||
		  c->fabric->core_oversubscription > 1)));
}

struct network *network_new(struct arena *mem, const struct ft_cluster *c,
			    int64_t nodes, const struct network_part *part,
			    size_t n_parts, struct ft_error *err)
{
	struct network *w = ARENA_NEW(mem, struct network);
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);

	*w = (struct network){
		.mem = mem, .c = c, .part = part, .n_parts = n_parts, .nodes = nodes
	};
	gsl_rng_set(rng, (unsigned long)c->imperfections.seed);
	w->order = ARENA_ARRAY(mem, (size_t)nodes, uint32_t);
	for (int64_t i = 0; i < nodes; i++)
		w->order[i] = (uint32_t)i;
	if (c->imperfections.scattered)
		gsl_ran_shuffle(rng, w->order, (size_t)nodes, sizeof(*w->order));
	links_lay_out(w, rng);
	gsl_rng_free(rng);
	return links_join_all(w, err) ? w : NULL;
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

/* weight flows of line rate from the i-th node to the j-th, over every rail. */
static void send(struct solving *s, int64_t i, int64_t j, double weight)
{
	const struct network *w = s->w;
	int64_t from = w->order[i], to = w->order[j];
	int64_t split = links_split(w, from, to);

	for (int64_t n = 0; n < w->rails * split; n++) {
		uint32_t link[SHARE_HOPS];
		struct links_flow f = { from, to, n / split,
					((double)(n % split) + 0.5) / (double)split };
		size_t hops = links_route(w, s->rng, &f, link);

		share_add(&s->share, link, NULL, hops, weight / (double)split,
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
		links_note_uses(w, &s.share, out->share * w->line, out);
	}
	gsl_rng_free(s.rng);
	arena_release(&mem);
}

bool network_share(const struct ft_cluster *c, const struct network_sends *x,
		   double *share, struct ft_error *err)
{
	int64_t span = x->stride * x->members;
	struct network_part part = { 0, span < c->nodes ? span : c->nodes };
	struct arena mem = { 0 };
	struct network_path path;
	struct network *w;

	*share = 1;
	if (!network_matters(c) || part.nodes < 2)
		return true;
	w = network_new(&mem, c, c->nodes, &part, 1, err);
	if (w) {
		network_find(w, 0, x, &path);
		*share = path.share;
	}
	arena_release(&mem);
	return w != NULL;
}
