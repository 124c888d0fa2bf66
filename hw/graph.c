/* hw/graph.c - a fabric drawn by hand: switches, who is attached, cables between them */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/reader.h"
#include "base/text.h"
#include "hw/graph.h"

enum { MOST_SWITCHES = 2048, MOST_NODES = 1 << 24, MOST_NICS = 64 };

/* 5 or [0, 15], both ends included. */
static void read_range(struct reader *r, const char *key, int64_t most,
		       int64_t range[2])
{
	const struct node *n = read_node(r, key);

	range[0] = 0;
	range[1] = most;
	if (!n || r->failed)
		return;
	for (int i = 0; i < 2; i++) {
		const struct node *v =
			n->kind == NODE_LIST && n->n == 2 ? n->item[i] : n;

		if (!node_whole(v, 0, most, &range[i])) {
			reader_fail_node(r, key, v,
					 "should be a number from 0 to %lld, or "
					 "[first, last]",
					 (long long)most);
			return;
		}
	}
	if (range[1] < range[0])
		reader_fail(r, key, "ends before it begins");
}

static uint32_t read_switch_name(struct reader *r, const char *key,
				 const struct ft_switch_graph *g)
{
	const char *name = read_need(r, key) ? read_name(r, key, "") : "";

	for (size_t i = 0; i < g->n_switches; i++)
		if (!strcmp(g->name[i], name))
			return (uint32_t)i;
	if (!r->failed)
		reader_fail(r, key, "there is no switch '%s' under 'switches'", name);
	return 0;
}

static bool read_attach(const struct node *item, const struct ft_switch_graph *g,
			struct ft_attach *a, struct ft_error *err)
{
	struct reader r = reader_open(item, err);
	int64_t node[2], nic[2];

	read_range(&r, "nodes", MOST_NODES, node);
	read_range(&r, "nics", MOST_NICS, nic);
	*a = (struct ft_attach){ node[0], node[1], nic[0], nic[1],
				 read_switch_name(&r, "switch", g) };
	return reader_close(&r);
}

static bool read_cable(const struct node *item, const struct ft_switch_graph *g,
		       double port, struct ft_cable *c, struct ft_error *err)
{
	struct reader r = reader_open(item, err);

	c->a = read_switch_name(&r, "from", g);
	c->b = read_switch_name(&r, "to", g);
	c->count = read_int(&r, "count", 1, 4096, 1);
	c->bytes_per_s = read_quantity(&r, "rate", DIM_BYTES_PER_S, port);
	if (!r.failed && c->a == c->b)
		reader_fail(&r, "to", "a cable joins two switches");
	return reader_close(&r);
}

/* Nodes that both hold, NICs that both hold. */
static bool overlap(const struct ft_attach *a, const struct ft_attach *b)
{
	return a->first_node <= b->last_node && b->first_node <= a->last_node &&
	       a->first_nic <= b->last_nic && b->first_nic <= a->last_nic;
}

static const struct node *list_of(struct reader *r, const char *key)
{
	const struct node *n = read_need(r, key);

	if (n && n->kind != NODE_LIST) {
		reader_fail(r, key, "should be a list");
		return NULL;
	}
	return n;
}

static bool read_switches(struct arena *mem, struct reader *r,
			  struct ft_switch_graph *g)
{
	const struct node *n = list_of(r, "switches");

	if (!n)
		return false;
	if (n->n < 1 || n->n > MOST_SWITCHES)
		return reader_fail(r, "switches", "should be 1 to %d names",
				   (int)MOST_SWITCHES);
	g->name = ARENA_ARRAY(mem, n->n, const char *);
	for (size_t i = 0; i < n->n; i++) {
		const struct node *v = n->item[i];

		if (v->kind != NODE_SCALAR)
			return ft_fail(r->err, &v->mark, "a switch is a name");
		if (!text_is_name(v->text))
			return ft_fail(r->err, &v->mark, "'%.70s' " TEXT_NAME_RULE,
				       v->text, (int)LIMIT_NAME_BYTES);
		for (size_t k = 0; k < i; k++)
			if (!strcmp(g->name[k], v->text))
				return ft_fail(r->err, &v->mark,
					       "there are two "
					       "switches '%s'",
					       v->text);
		g->name[g->n_switches++] = arena_text(mem, v->text);
	}
	return true;
}

static bool read_attaches(struct arena *mem, struct reader *r,
			  struct ft_switch_graph *g)
{
	const struct node *n = list_of(r, "attach");

	if (!n)
		return false;
	g->attach = ARENA_ARRAY(mem, n->n + 1, struct ft_attach);
	for (size_t i = 0; i < n->n; i++) {
		struct ft_attach *a = &g->attach[g->n_attaches++];

		if (!read_attach(n->item[i], g, a, r->err))
			return false;
		for (size_t k = 0; k < i; k++)
			if (overlap(&g->attach[k], a))
				return ft_fail(r->err, &n->item[i]->mark,
					       "these NICs are attached to %s "
					       "already",
					       g->name[g->attach[k].to]);
	}
	return true;
}

static bool read_cables(struct arena *mem, struct reader *r, double port,
			struct ft_switch_graph *g)
{
	const struct node *n = read_node(r, "cables");

	if (r->failed || !n)
		return !r->failed;
	if (n->kind != NODE_LIST)
		return reader_fail(r, "cables", "should be a list");
	g->cable = ARENA_ARRAY(mem, n->n + 1, struct ft_cable);
	for (size_t i = 0; i < n->n; i++) {
		struct ft_cable *c = &g->cable[g->n_cables++];

		if (!read_cable(n->item[i], g, port, c, r->err))
			return false;
		for (size_t k = 0; k < i; k++)
			if ((g->cable[k].a == c->a && g->cable[k].b == c->b) ||
			    (g->cable[k].a == c->b && g->cable[k].b == c->a))
				return ft_fail(r->err, &n->item[i]->mark,
					       "%s and %s are joined twice: say "
					       "it once, with a count",
					       g->name[c->a], g->name[c->b]);
	}
	return true;
}

/* Cables from every switch to every other: a wave from each. */
static void measure(struct arena *mem, struct ft_switch_graph *g)
{
	size_t n = g->n_switches;
	bool more = true;

	g->distance = ARENA_ARRAY(mem, n * n, uint8_t);
	memset(g->distance, FT_UNREACHED, n * n);
	for (size_t i = 0; i < n; i++)
		g->distance[i * n + i] = 0;
	for (int d = 0; more && d < FT_UNREACHED - 1; d++) {
		more = false;
		for (size_t c = 0; c < 2 * g->n_cables; c++) {
			size_t a = c % 2 ? g->cable[c / 2].b : g->cable[c / 2].a;
			size_t b = c % 2 ? g->cable[c / 2].a : g->cable[c / 2].b;

			for (size_t from = 0; from < n; from++)
				if (g->distance[from * n + a] == d &&
				    g->distance[from * n + b] == FT_UNREACHED) {
					g->distance[from * n + b] = (uint8_t)(d + 1);
					more = true;
				}
		}
	}
}

/* A switch to which nothing leads would be bought, and carry nothing. */
static bool check_joined(struct reader *r, const struct ft_switch_graph *g)
{
	for (size_t s = 0; g->n_attaches && s < g->n_switches; s++)
		if (g->distance[g->attach[0].to * g->n_switches + s] == FT_UNREACHED)
			return reader_fail(
				r, "switches",
				"no cable leads to %s; draw one, or leave it "
				"out",
				g->name[s]);
	return true;
}

/* Every attached switch must reach every other, not too far off. */
static bool check_reach(struct reader *r, struct ft_switch_graph *g)
{
	for (size_t i = 0; i < g->n_attaches; i++)
		for (size_t k = 0; k < i; k++) {
			size_t a = g->attach[i].to, b = g->attach[k].to;
			int d = g->distance[a * g->n_switches + b];

			if (d == FT_UNREACHED)
				return reader_fail(r, "cables",
						   "there is no path from "
						   "%s to %s",
						   g->name[b], g->name[a]);
			if (d > FT_GRAPH_HOPS)
				return reader_fail(r, "cables",
						   "%s is %d cables "
						   "from %s; at most %d are "
						   "simulated",
						   g->name[a], d, g->name[b],
						   (int)FT_GRAPH_HOPS);
			g->diameter = d > g->diameter ? d : g->diameter;
		}
	return true;
}

bool graph_read(struct arena *mem, const struct node *map, double port,
		struct ft_switch_graph *g, struct ft_error *err)
{
	struct reader r = reader_open(map, err);

	if (!read_switches(mem, &r, g) || !read_attaches(mem, &r, g) ||
	    !read_cables(mem, &r, port, g))
		return false;
	measure(mem, g);
	return check_reach(&r, g) && check_joined(&r, g) && reader_close(&r);
}

/* ---- at a size ------------------------------------------------------------------- */

int64_t ft_graph_switch_of(const struct ft_switch_graph *g, int64_t node, int64_t nic)
{
	for (size_t i = 0; i < g->n_attaches; i++) {
		const struct ft_attach *a = &g->attach[i];

		if (node >= a->first_node && node <= a->last_node &&
		    nic >= a->first_nic && nic <= a->last_nic)
			return a->to;
	}
	return -1;
}

/* The most nodes whose NICs of one number are at one switch; room for a count of each switch. */
static int64_t most_below(const struct ft_switch_graph *g, int64_t nodes, int64_t nics,
			  int64_t *below)
{
	int64_t most = 0;

	for (int64_t nic = 0; nic < nics; nic++) {
		memset(below, 0, g->n_switches * sizeof(*below));
		for (int64_t node = 0; node < nodes; node++) {
			int64_t n = ++below[ft_graph_switch_of(g, node, nic)];

			most = n > most ? n : most;
		}
	}
	return most;
}

static bool is_leaf(const struct ft_switch_graph *g, size_t s)
{
	for (size_t i = 0; i < g->n_attaches; i++)
		if (g->attach[i].to == s)
			return true;
	return false;
}

/* Each NIC has a place, and no switch more cables than ports. */
static bool check_ports(const struct ft_fabric *fabric, int64_t nodes, int64_t nics,
			int64_t *down, struct ft_error *err)
{
	const struct ft_switch_graph *g = fabric->graph;

	for (int64_t node = 0; node < nodes; node++)
		for (int64_t nic = 0; nic < nics; nic++) {
			int64_t at = ft_graph_switch_of(g, node, nic);

			if (at < 0)
				return ft_fail(err, NULL,
					       "fabric %s: NIC %lld of "
					       "node %lld is not attached to "
					       "a switch of the graph",
					       fabric->name, (long long)nic,
					       (long long)node);
			down[at]++;
		}
	for (size_t s = 0; s < g->n_switches; s++) {
		int64_t used = down[s];
		int64_t ports = fabric->upper_radix && !is_leaf(g, s) ?
					fabric->upper_radix :
					fabric->radix;

		for (size_t c = 0; c < g->n_cables; c++)
			if (g->cable[c].a == s || g->cable[c].b == s)
				used += g->cable[c].count;
		if (used > ports)
			return ft_fail(err, NULL,
				       "fabric %s: %lld cables end at %s, "
				       "a switch of %lld ports",
				       fabric->name, (long long)used, g->name[s],
				       (long long)ports);
	}
	return true;
}

bool graph_topology(const struct ft_fabric *fabric, int64_t nodes, int64_t nics,
		    struct ft_topology *t, struct ft_error *err)
{
	const struct ft_switch_graph *g = fabric->graph;
	int64_t *down = allocated(calloc(g->n_switches, sizeof(*down)));

	if (!check_ports(fabric, nodes, nics, down, err)) {
		free(down);
		return false;
	}
	t->tiers = (g->diameter + 1) / 2 + 1;
	t->endpoints = t->cables_node_leaf = nodes * nics;
	for (size_t s = 0; s < g->n_switches; s++) {
		bool leaf = is_leaf(g, s);

		t->leaf += leaf;
		t->spine += !leaf;
		t->leaf_down = down[s] > t->leaf_down ? down[s] : t->leaf_down;
	}
	for (size_t c = 0; c < g->n_cables; c++)
		t->cables_leaf_spine += g->cable[c].count;
	t->nodes_per_leaf = most_below(g, nodes, nics, down);
	free(down);
	return true;
}
