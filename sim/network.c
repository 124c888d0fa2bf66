/* sim/network.c - a part's sends as flows on the links of the cluster */
#include "sim/network.h"

#include <math.h>
#include <stdlib.h>

#include <gsl/gsl_randist.h>

#include "base/arena.h"
#include "sim/network_drawn.h"

enum { MOST_SENDERS = 4096, PARTNERS = 8 };

static const double LEAST_SHARE = 1e-3;

bool network_matters(const struct ft_cluster *c)
{
	return c->imperfections.given || c->fabric->graph ||
	       (c->topology.tiers > 1 &&
		(!c->fabric->adaptive || c->fabric->oversubscription > 1 ||
		 c->fabric->core_oversubscription > 1));
}

struct network *network_new(struct arena *mem, const struct ft_cluster *c,
			    int64_t nodes, const struct network_part *part,
			    size_t n_parts, struct ft_error *err)
{
	struct network *w = ARENA_NEW(mem, struct network);
	gsl_rng *rng = allocated(gsl_rng_alloc(gsl_rng_mt19937));

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
	w->weight = ARENA_ARRAY(mem, w->n_links, double);
	w->met = ARENA_ARRAY(mem, w->n_links, uint32_t);
	gsl_rng_free(rng);
	return links_join_all(w, err) ? w : NULL;
}

size_t network_links(const struct network *w)
{
	return w->n_shared;
}

/* ---- flows ------------------------------------------------------------------------- */

/* What the flows so far put on each link that they meet, and who sends. */
struct sending {
	struct network *w;
	gsl_rng *rng;
	int64_t *sender; /* [n_senders] */
	size_t n_senders;
};

/* weight flows of line rate from the i-th node to the j-th, which stands for so many, over every rail. */
static void send(struct sending *s, int64_t i, int64_t j, double weight, int64_t many)
{
	struct network *w = s->w;
	int64_t from = w->order[i], to = w->order[j];
	int64_t split = links_split(w, from, to, many);

	for (int64_t n = 0; n < w->rails * split; n++) {
		uint32_t link[SHARE_HOPS];
		struct links_flow f = { from, to, n / split };
		size_t hops = links_route(w, s->rng, &f, link);

		for (size_t k = 0; k < hops; k++)
			links_load(w, link[k], weight / (double)split);
		if (links_spread(w))
			drawn_add(w, &f, weight);
	}
}

/* How far on the k-th of so many partners is that stand for all others of m members: in the middle of
 * an equal part of them, so that near ones count as often as far ones. */
static int64_t partner(int64_t k, int64_t partners, int64_t m)
{
	return 1 + (2 * k - 1) * (m - 1) / (2 * partners);
}

static void send_from(struct sending *s, const struct network_part *part,
		      const struct network_sends *x, int64_t i)
{
	int64_t at = i - part->first_node, m = x->members;
	int64_t j = at / x->stride % m;
	int64_t group = i - j * x->stride; /* its first member */
	int64_t partners = m - 1 < PARTNERS ? m - 1 : PARTNERS;
	int64_t end = part->first_node + part->nodes, to;

	switch (x->pattern) {
	case NETWORK_SHIFT:
		to = i + x->stride;
		if (to < (x->end ? x->end : s->w->nodes))
			send(s, x->back ? to : i, x->back ? i : to, 1, 1);
		return;
	case NETWORK_RING:
		to = group + (j + 1) % m * x->stride;
		if (to != i && to < end)
			send(s, i, to, 1, 1);
		return;
	case NETWORK_PAIRS:
		for (int64_t k = 1; k <= partners; k++) {
			to = group + (j + partner(k, partners, m)) % m * x->stride;
			if (to != i && to < end)
				send(s, i, to, 1.0 / (double)partners,
				     (2 * (m - 1) + partners) / (2 * partners));
		}
	}
}

/*
 * A split flow is as slow as its slowest part: the least rate per weight. Of max-min shares
 * the least is that of the link which has the least capacity per weight on it, the first
 * that filling from below meets; no other needs to be solved for.
 */
static double slowest(const struct network *w)
{
	double least = w->line;

	for (size_t i = 0; i < w->n_met; i++)
		least = fmin(least, w->capacity[w->met[i]] / w->weight[w->met[i]]);
	return fmax(least / w->line, LEAST_SHARE);
}

/* Rails that are hashed each by themselves. */
static int64_t hashed_rails(const struct network *w)
{
	return w->c->fabric->adaptive ? 1 : w->alike;
}

/* Is the i-th node one of those that stand for a large part? Those under the first leaves, whose uplinks
 * then carry all that they do; as many of all rails together. */
static bool sends(const struct network *w, const struct network_part *p, int64_t i)
{
	int64_t senders = MOST_SENDERS / hashed_rails(w);
	int64_t most = p->first_node + senders;

	if (w->c->imperfections.scattered)
		most = (int64_t)((double)w->nodes * (double)senders / (double)p->nodes);
	return p->nodes <= senders || w->order[i] < most;
}

/* What a part sends over the rail that is laid out; kept if that is slower than out. */
static void find_rail(struct sending *s, const struct network_part *p,
		      const struct network_sends *x, struct network_path *out)
{
	struct network *w = s->w;
	double share;

	for (size_t i = 0; i < s->n_senders; i++)
		send_from(s, p, x, s->sender[i]);
	drawn_spread(w);
	share = w->n_met ? slowest(w) : 1;
	if (share < out->share || (!out->n_uses && share <= out->share)) {
		*out = (struct network_path){ .share = share };
		links_note_uses(w, share * w->line, out);
	}
	while (w->n_met)
		w->weight[w->met[--w->n_met]] = 0;
}

/* Flows of rails alike are hashed each by themselves: the slowest rail sets the pace. */
static void find(struct network *w, size_t part, const struct network_sends *x,
		 struct network_path *out)
{
	const struct network_part *p = &w->part[part];
	struct sending s = { .w = w,
			     .rng = allocated(gsl_rng_alloc(gsl_rng_mt19937)),
			     .sender = allocated(
				     calloc((size_t)p->nodes, sizeof(*s.sender))) };

	*out = (struct network_path){ .share = 1 };
	gsl_rng_set(s.rng, (unsigned long)(w->c->imperfections.seed + part));
	for (int64_t i = p->first_node; i < p->first_node + p->nodes; i++)
		if (sends(w, p, i))
			s.sender[s.n_senders++] = i;
	for (int64_t rail = 0; rail < hashed_rails(w); rail++)
		find_rail(&s, p, x, out);
	free(s.sender);
	gsl_rng_free(s.rng);
}

/* What was found of a part's sends before. */
struct found {
	size_t part;
	struct network_sends sends;
	struct network_path path;
	const struct found *next;
};

static bool same_sends(const struct network_sends *a, const struct network_sends *b)
{
	return a->pattern == b->pattern && a->stride == b->stride &&
	       a->members == b->members && a->end == b->end && a->back == b->back;
}

void network_find(struct network *w, size_t part, const struct network_sends *x,
		  struct network_path *out)
{
	struct found *f;

	for (const struct found *at = w->found; at; at = at->next)
		if (at->part == part && same_sends(&at->sends, x)) {
			*out = at->path;
			return;
		}
	find(w, part, x, out);
	f = ARENA_NEW(w->mem, struct found);
	*f = (struct found){ part, *x, *out, w->found };
	w->found = f;
}

bool network_share(const struct ft_cluster *c, const struct network_sends *x,
		   double *share, struct ft_error *err)
{
	int64_t span = x->stride * x->members, groups = c->nodes / span;
	struct network_part part = { 0, groups ? groups * span : c->nodes };
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
