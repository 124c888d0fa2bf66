/* tests/test_network_counted.c - shares of links, against flows counted one by one */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "sim/network_links.h"
#include "tests/clos.h"

/* Two tiers of leaves with 12 nodes of a NIC each and 4 uplinks, which any flow may take: what
 * each node sends, in an exchange to all others, and through which leaf, counted one by one. */
static double counted(const struct network_part *part, const struct network_sends *x)
{
	enum { LEAF = 12, UPLINKS = 4, NODES = 60 };
	double out[NODES] = { 0 }, in[NODES] = { 0 }, up[NODES / LEAF] = { 0 },
	       down[NODES / LEAF] = { 0 }, most = 1;
	int64_t end = part->first_node + part->nodes, m = x->members;

	for (int64_t i = part->first_node; i < end; i++) {
		int64_t first = i - (i - part->first_node) / x->stride % m * x->stride;
		int64_t partners = x->pattern == NETWORK_PAIRS ? m - 1 : 1;

		for (int64_t k = 1; k <= partners; k++) {
			int64_t to =
				first + ((i - first) / x->stride + k) % m * x->stride;

			if (x->pattern == NETWORK_SHIFT)
				to = i + x->stride;
			if (to == i || to >= (x->pattern != NETWORK_SHIFT ? end :
					      x->end			  ? x->end :
									    NODES))
				continue;
			out[i] += 1.0 / (double)partners;
			in[to] += 1.0 / (double)partners;
			if (i / LEAF == to / LEAF)
				continue;
			up[i / LEAF] += 1.0 / (double)partners;
			down[to / LEAF] += 1.0 / (double)partners;
		}
	}
	for (int i = 0; i < NODES; i++) {
		most = fmax(most, fmax(out[i], in[i]));
		most = fmax(most, fmax(up[i / LEAF], down[i / LEAF]) / UPLINKS);
	}
	return 1 / most;
}

static void shares_are_those_of_flows_counted(void **state)
{
	struct ft_fabric fabric = clos(16);
	struct ft_cluster c;
	struct ft_error err;
	uint64_t seed = 11;
	int narrow = 0, chosen = 0;
	double off = 0;

	(void)state;
	fabric.oversubscription = 3;
	c = clos_cluster(&fabric, 60, 1);
	assert_int_equal(c.topology.nodes_per_leaf, 12);
	for (int i = 0; i < 400; i++) {
		const struct network_sends x = {
			(enum network_pattern)(rnd(&seed) % 3),
			1 + rnd(&seed) % 5,
			2 + rnd(&seed) % 14,
			rnd(&seed) % 3 ? 0 : 1 + rnd(&seed) % 60,
			i % 2, /* the other way as many flows cross as much */
		};
		int64_t span = x.stride * x.members, fit = 60 / span;
		struct arena mem = { 0 };
		struct network_part part;
		struct network_path p;
		struct network *w;
		double want;
		bool few; /* partners that stand for all others */

		if (!fit)
			continue;
		part.nodes = span * (1 + rnd(&seed) % fit);
		part.first_node = rnd(&seed) % (61 - part.nodes);
		w = network_new(&mem, &c, 60, &part, 1, &err);
		ok_or_say(w, err);
		network_find(w, 0, &x, &p);
		want = counted(&part, &x);
		few = x.pattern == NETWORK_PAIRS && x.members > 9;
		off += few ? p.share / want - 1 : 0;
		chosen += few;
		if (fabs(p.share - want) > (few ? 0.08 * want : 1e-9))
			fail_msg(
				"pattern %d, stride %d, %d members, nodes %d to %d: %.9g, counted %.9g",
				(int)x.pattern, (int)x.stride, (int)x.members,
				(int)part.first_node,
				(int)(part.first_node + part.nodes - 1), p.share, want);
		narrow += want < 1;
		arena_release(&mem);
	}
	assert_true(narrow > 100 && chosen > 20);
	near_frac(1 + off / chosen, 1, 0.03);
}

/* Of an exchange among all nodes, each connection of each two hashed by itself. */
static double hashed_one_by_one(const struct network *w, struct arena *mem,
				gsl_rng *rng)
{
	double *load = ARENA_ARRAY(mem, w->n_links, double), share = 1;
	int64_t pairs = w->c->fabric->queue_pairs;

	for (int64_t i = 0; i < w->nodes * w->nodes * pairs; i++) {
		struct links_flow f = { i / pairs / w->nodes, i / pairs % w->nodes, 0 };
		uint32_t link[SHARE_HOPS];
		size_t hops = f.from == f.to ? 0 : links_route(w, rng, &f, link);

		for (size_t k = 0; k < hops; k++)
			load[link[k]] += w->line / (double)((w->nodes - 1) * pairs);
	}
	for (size_t i = 0; i < w->n_links; i++)
		if (load[i] > 0)
			share = fmin(share, w->capacity[i] / load[i]);
	return share;
}

/* Under ECMP partners that stand for many have the connections of as many. */
static void few_partners_are_hashed_as_often_as_all(void **state)
{
	enum { NODES = 64, SEEDS = 40 };
	const struct network_sends all = { NETWORK_PAIRS, 1, NODES, 0, false };
	const struct network_part part = { 0, NODES };
	struct ft_fabric fabric = clos(16);
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
	struct ft_cluster c;
	double few = 0, each = 0;

	(void)state;
	fabric.adaptive = false;
	fabric.queue_pairs = 4;
	c = clos_cluster(&fabric, NODES, 1);
	assert_int_equal(c.topology.leaf_up, 8);
	for (int i = 0; i < SEEDS; i++) {
		struct arena mem = { 0 };
		struct ft_error err;
		struct network_path p;
		struct network *w;

		c.imperfections.seed = (uint64_t)i;
		w = network_new(&mem, &c, NODES, &part, 1, &err);
		ok_or_say(w, err);
		network_find(w, 0, &all, &p);
		few += p.share;
		each += hashed_one_by_one(w, &mem, rng);
		arena_release(&mem);
	}
	near_frac(few, each, 0.03);
	gsl_rng_free(rng);
}

/* Of scattered nodes, each sending to the next in order of placement, all leaves counted. */
static double scattered_counted(const struct network *w)
{
	double up[512] = { 0 }, down[512] = { 0 }, most = 1;

	assert_true(w->leaves <= 512);
	for (int64_t i = 0; i < w->nodes; i++) {
		int64_t a = w->order[i] / w->per_leaf;
		int64_t b = w->order[(i + 1) % w->nodes] / w->per_leaf;

		up[a] += a != b;
		down[b] += a != b;
	}
	for (int64_t i = 0; i < w->leaves; i++)
		most = fmax(most, fmax(up[i], down[i]) / (double)w->uplinks);
	return 1 / most;
}

/* Of 4,096 nodes all are senders, of more those under some leaves, which are as full as all are. */
static void of_many_scattered_nodes_some_stand_for_all(void **state)
{
	(void)state;
	for (int64_t nodes = 2048; nodes <= 16384; nodes *= 2) {
		const struct network_sends ring = { NETWORK_RING, 1, nodes, 0, false };
		const struct network_part part = { 0, nodes };
		struct ft_fabric fabric = clos(64);
		struct arena mem = { 0 };
		struct ft_error err;
		struct ft_cluster c;
		struct network_path p;
		struct network *w;

		fabric.oversubscription = 3;
		c = clos_cluster(&fabric, nodes, 1);
		c.imperfections.scattered = true;
		w = network_new(&mem, &c, nodes, &part, 1, &err);
		ok_or_say(w, err);
		network_find(w, 0, &ring, &p);
		near_frac(p.share, scattered_counted(w), 0.02);
		assert_true(p.share < 0.5);
		arena_release(&mem);
	}
}

/* A chain of eight with a few more cables: each distance by Floyd and Warshall. */
static void switches_are_as_far_as_the_shortest_way(void **state)
{
	enum { N = 8 };

	(void)state;
	for (int round = 0; round < 20; round++) {
		int far[N][N];
		struct arena mem = { 0 };
		struct ft_error err;
		struct node *n;
		struct ft_cluster *c;
		const char *text =
			"{gpu: h100-sxm, gpus: 16, fabric: {extends: roce-400-rail, wiring: "
			"graph, graph: {switches: [a, b, c, d, e, f, g, h], attach: "
			"[{nodes: [0, 0], switch: a}, {nodes: [1, 1], switch: d}], cables: [";

		for (int i = 0; i < N * N; i++) {
			int a = i / N, b = i % N;
			bool joined =
				b == a + 1 ||
				(b > a + 1 && (round * 37 + i * i * 11) % 13 == 0);

			if (a <= b)
				far[a][b] = far[b][a] = a == b ? 0 : joined ? 1 : 99;
			if (joined)
				text = arena_printf(&mem, "%s{from: %c, to: %c}, ",
						    text, 'a' + a, 'a' + b);
		}
		for (int k = 0; k < N; k++)
			for (int i = 0; i < N * N; i++)
				if (far[i / N][k] + far[k][i % N] < far[i / N][i % N])
					far[i / N][i % N] =
						far[i / N][k] + far[k][i % N];
		text = arena_printf(&mem, "%s]}}}", text);
		n = node_read_text(&mem, "c", text, strlen(text), &err);
		ok_or_say(n, err);
		c = ft_cluster_load(n, &err);
		ok_or_say(c, err);
		for (int i = 0; i < N * N; i++)
			assert_int_equal(c->fabric->graph->distance[i],
					 far[i / N][i % N]);
		assert_int_equal(c->fabric->graph->diameter, far[0][3]);
		ft_cluster_free(c);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_are_those_of_flows_counted),
		cmocka_unit_test(few_partners_are_hashed_as_often_as_all),
		cmocka_unit_test(of_many_scattered_nodes_some_stand_for_all),
		cmocka_unit_test(switches_are_as_far_as_the_shortest_way),
	};

	return cmocka_run_group_tests_name("sim/network, counted", tests, NULL, NULL);
}
