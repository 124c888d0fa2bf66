/*
 * tests/test_network_links.c - links and ways of a network, held against its drawing
 *
 * A ledger says of each link what it joins, as found from ways alone: no link is two
 * things, every way begins at its sender and ends at its receiver, and goes up and down
 * by the same spine.
 */
#include "tests/check.h"

#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "sim/network_drawn.h"
#include "tests/laid.h"

enum { MOST_LINKS = 20000 };

/* What a link is: its kind, of which node, leaf or pod, and which of those there. */
struct owner {
	char kind; /* 0: not met; n, N: NIC up, down; u, U: uplink; c, C: of a pod */
	int64_t of, which;
};

static struct owner ledger[MOST_LINKS];

static void is(const struct network *w, uint32_t link, char kind, int64_t of,
	       int64_t which)
{
	struct owner *o = &ledger[link];

	assert_true(link < w->n_links && w->n_links < MOST_LINKS);
	if (o->kind && (o->kind != kind || o->of != of || o->which != which))
		fail_msg("link %u is %c of %lld, %lld and %c of %lld, %lld",
			 (unsigned)link, o->kind, (long long)o->of, (long long)o->which,
			 kind, (long long)of, (long long)which);
	*o = (struct owner){ kind, of, which };
}

/* Links of a kind that were met. */
static int64_t met(const struct network *w, char kind)
{
	int64_t n = 0;

	for (size_t i = 0; i < w->n_links; i++)
		n += ledger[i].kind == kind;
	return n;
}

/* Do the leaves of these uplinks have a spine in common to which both are joined? */
static bool could(const struct network *w, uint32_t up, uint32_t down)
{
	uint32_t first = 2 * (uint32_t)(w->nodes * w->rails),
		 each = 2 * (uint32_t)w->uplinks;
	uint32_t a = first + (up - first) / each * each,
		 b = first + (down - first) / each * each;

	for (uint32_t i = 0; i < each; i += 2)
		if (w->capacity[a + i] > 0 && w->capacity[b + i + 1] > 0)
			return true;
	return w->c->fabric->adaptive;
}

/* Every pair's way, several times: ECMP draws. */
static void walk_all(struct laid *l)
{
	const struct network *w = &l->w;
	const struct ft_topology *t = &l->c.topology;
	int64_t leaf = t->nodes_per_leaf,
		pod = t->tiers > 2 ? t->nodes_per_pod : w->nodes;
	uint32_t link[SHARE_HOPS];

	memset(ledger, 0, sizeof(ledger));
	for (int64_t a = 0; a < w->nodes; a++)
		for (int64_t b = 0; b < w->nodes; b++)
			for (int64_t k = 0; a != b && k < 8; k++) {
				struct links_flow f = { a, b, k % w->rails };
				size_t n = links_route(w, l->rng, &f, link), at = 2;

				is(w, link[0], 'n', a, f.rail);
				is(w, link[1], 'N', b, f.rail);
				if (a / leaf != b / leaf) {
					int64_t up =
						(int64_t)link[2] - (int64_t)link[3];

					/* the same spine: as far apart as the leaves */
					assert_true(
						up ==
						2 * w->uplinks * (a / leaf - b / leaf) -
							1);
					assert_true(!could(w, link[2], link[3]) ||
						    (w->capacity[link[2]] > 0 &&
						     w->capacity[link[3]] > 0));
					is(w, link[2], 'u', a / leaf, link[2] / 2);
					is(w, link[3], 'U', b / leaf, link[3] / 2);
					at = 4;
				}
				if (a / pod != b / pod) {
					is(w, link[at], 'c', a / pod, 0);
					is(w, link[at + 1], 'C', b / pod, 0);
					at += 2;
				}
				assert_int_equal(n, at);
			}
}

static void ways_of_a_clos_are_those_of_its_drawing(void **state)
{
	static const struct {
		int64_t nodes;
		int nics;
		enum ft_wiring wiring;
		bool adaptive;
	} cases[] = {
		{ 4, 1, FT_WIRING_RAIL, false },  { 24, 1, FT_WIRING_RAIL, false },
		{ 24, 1, FT_WIRING_RAIL, true },  { 48, 1, FT_WIRING_RAIL, false },
		{ 22, 4, FT_WIRING_RAIL, false }, { 16, 2, FT_WIRING_TOR, false },
		{ 44, 2, FT_WIRING_TOR, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ft_fabric f = clos;
		struct laid l;
		int64_t rails = cases[i].wiring == FT_WIRING_TOR ? cases[i].nics : 1;

		f.wiring = cases[i].wiring;
		f.adaptive = cases[i].adaptive;
		lay(&l, &f, cases[i].nodes, cases[i].nics, NULL);
		walk_all(&l);
		assert_int_equal(l.w.rails, rails);
		assert_int_equal(met(&l.w, 'n'), cases[i].nodes * rails);
		assert_int_equal(met(&l.w, 'N'), cases[i].nodes * rails);
		if (l.w.leaves > 1) {
			int64_t up = l.w.leaves * (f.adaptive ? 1 : l.w.uplinks);

			assert_int_equal(met(&l.w, 'u'), up);
			assert_int_equal(met(&l.w, 'U'), up);
		}
		assert_int_equal(met(&l.w, 'c'), l.w.pods > 1 ? l.w.pods : 0);
		for (int64_t a = 0; a < l.w.nodes; a++)
			assert_int_equal(links_split(&l.w, 0, a, 1),
					 f.adaptive || a / l.w.per_leaf == 0 ? 1 : 4);
		gone(&l);
	}
}

/* Bytes a second of all links of a kind, by the ledger. */
static double carried(const struct network *w, char kind)
{
	double sum = 0;

	for (size_t i = 0; i < w->n_links; i++)
		sum += ledger[i].kind == kind ? w->capacity[i] : 0;
	return sum;
}

/* Three tiers of 48 nodes: a NIC takes what its two ranks send, an uplink what a port
 * does, a pod its cables to the core. */
static void links_carry_what_the_drawing_says(void **state)
{
	struct laid l;
	const struct ft_topology *t = &l.c.topology;

	(void)state;
	lay(&l, &clos, 48, 1, NULL);
	walk_all(&l);
	assert_true(l.w.pods > 1 && t->tiers == 3);
	near_frac(carried(&l.w, 'n'), 48 * 50e9, 1e-12);
	near_frac(carried(&l.w, 'N'), 48 * 50e9, 1e-12);
	near_frac(carried(&l.w, 'u'), 50e9 * (double)(t->leaf * t->leaf_up), 1e-12);
	near_frac(carried(&l.w, 'U'), 50e9 * (double)(t->leaf * t->leaf_up), 1e-12);
	near_frac(carried(&l.w, 'c'), 50e9 * (double)t->cables_spine_core, 1e-12);
	gone(&l);
}

/* Of many links about as many fail as said; both ways of a link fail together, and a lost
 * spine takes the same uplinks of every leaf. */
static void faults_take_their_part(void **state)
{
	const struct ft_imperfections some = { .slow_nics_frac = 0.25,
					       .slow_nic_rate_frac = 0.4,
					       .failed_uplinks_frac = 0.3 };
	const struct ft_imperfections spine = { .failed_spines = 1 };
	double slow = 0, dead = 0, whole = 0;
	struct laid l;

	(void)state;
	lay(&l, &clos, 48, 1, &some);
	for (int64_t i = 0; i < 48; i++) {
		assert_true(l.w.capacity[2 * i] == l.w.capacity[2 * i + 1]);
		slow += fabs(l.w.capacity[2 * i] / 20e9 - 1) < 1e-9;
		whole += fabs(l.w.capacity[2 * i] / 50e9 - 1) < 1e-9;
	}
	assert_true(slow + whole == 48 && fabs(slow / 48 - 0.25) < 0.2);
	for (int64_t i = 48; i < 48 + l.w.leaves * l.w.uplinks; i++) {
		assert_true(l.w.capacity[2 * i] == l.w.capacity[2 * i + 1]);
		dead += !(l.w.capacity[2 * i] > 0);
	}
	near_frac(dead / (double)(l.w.leaves * l.w.uplinks), 0.3, 0.6);
	walk_all(&l); /* around them */
	gone(&l);
	lay(&l, &clos, 24, 1, &spine);
	for (int64_t i = 0; i < l.w.leaves * l.w.uplinks; i++) {
		int64_t n = l.w.uplinks, spines = l.c.topology.spine;
		bool lost = (double)(i % n) + 0.5 < (double)n / (double)spines;

		assert_int_equal(l.w.capacity[2 * (24 + i)] > 0, !lost);
	}
	walk_all(&l);
	gone(&l);
}

/* All leaves are joined where each pair has a spine that both reach; pooled, where none is cut off. */
static void joined_are_leaves_with_a_spine_in_common(void **state)
{
	int joined = 0, cut = 0;

	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		struct ft_imperfections im = { .failed_uplinks_frac = 0.2 + 0.01 * i,
					       .seed = i };
		struct ft_fabric f = clos;
		struct ft_error err;
		struct laid l;
		bool all = true;

		f.adaptive = i % 2;
		lay(&l, &f, 24, 1, &im);
		for (int64_t p = 0; p < l.w.leaves * l.w.leaves; p++) {
			const double *up = &l.w.capacity[2 * l.w.nodes];
			int64_t n = l.w.uplinks, a = p / l.w.leaves * n,
				b = p % l.w.leaves * n;
			bool one = a == b;

			for (int64_t u = 0; u < (f.adaptive ? 1 : n); u++)
				one |= up[2 * (a + u)] > 0 && up[2 * (b + u)] > 0;
			all &= one;
		}
		assert_int_equal(links_join_all(&l.w, &err), all);
		joined += all;
		cut += !all;
		gone(&l);
	}
	assert_true(joined > 5 && cut > 5);
}

/* Adaptive routing: a leaf's uplinks are one, with all their rates. */
static void a_pool_has_what_its_links_have(void **state)
{
	struct ft_fabric f = clos;
	struct laid l;

	(void)state;
	f.adaptive = true;
	lay(&l, &f, 24, 1, NULL);
	walk_all(&l);
	near_frac(carried(&l.w, 'u'),
		  50e9 * (double)(l.c.topology.leaf * l.c.topology.leaf_up), 1e-12);
	gone(&l);
}

/* Leaves that hold the same parts are one shared link: of two halves of 24 nodes, four to a
 * leaf, those of the first, those of the second; with 20 nodes one leaf has both. */
static void leaves_of_the_same_parts_are_one(void **state)
{
	struct ft_imperfections scattered = { .scattered = true };
	struct laid l;

	(void)state;
	lay(&l, &clos, 24, 1, NULL);
	for (int64_t i = 0; i < l.w.leaves; i++)
		assert_int_equal(l.w.leaf_link[i], i * 4 >= 12);
	gone(&l);
	lay(&l, &clos, 20, 1, NULL);
	for (int64_t i = 0; i < l.w.leaves; i++)
		assert_int_equal(l.w.leaf_link[i], i * 4 + 4 <= 10 ? 0 :
						   i * 4 < 10	   ? 1 :
								     2);
	assert_int_equal(l.w.pod_link[0], 3);
	assert_int_equal(l.w.n_shared, 4);
	gone(&l);
	lay(&l, &clos, 20, 1, &scattered);
	assert_int_equal(l.w.n_shared, 2);
	gone(&l);
}

/* ---- drawn by hand -------------------------------------------------------------------- */

/* Two leaves of two nodes each, a and b, joined by spines x (3 cables) and y (1): of many
 * flows three quarters go by x, evenly dealt parts exactly so. */
static void a_drawn_network_is_walked_by_its_cables(void **state)
{
	const char *text =
		"{gpu: h100-sxm, gpus: 32, fabric: {extends: roce-400-rail, wiring: graph, "
		"graph: {switches: [a, b, x, y], attach: [{nodes: [0, 1], switch: a}, "
		"{nodes: [2, 3], switch: b}], cables: [{from: a, to: x, count: 3}, "
		"{from: y, to: a}, {from: x, to: b, count: 3}, {from: b, to: y}]}}}";
	const struct network_part part = { 0, 4 };
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *n = node_read_text(&mem, "c", text, strlen(text), &err);
	struct ft_cluster *c = n ? ft_cluster_load(n, &err) : NULL;
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_taus);
	struct network w = {
		.mem = &mem, .c = c, .nodes = 4, .part = &part, .n_parts = 1
	};
	uint32_t link[SHARE_HOPS], first;
	struct links_flow f = { 0, 3, 0 };
	double by_x = 0, port;

	(void)state;
	ok_or_say(c, err);
	links_lay_out(&w, rng);
	port = c->fabric->port_bytes_per_s.value;
	first = 2 * 4 * (uint32_t)w.rails;
	near_frac(w.capacity[first], 3 * port, 1e-12);
	near_frac(w.capacity[first + 1], 3 * port, 1e-12);
	near_frac(w.capacity[first + 2], port, 1e-12);
	assert_int_equal(w.n_links, first + 2 * 4);
	for (int i = 0; i < 4000; i++) {
		assert_int_equal(links_route(&w, rng, &f, link), 4);
		/* a to x forward, x to b forward; or back over y: its cable begins there */
		if (link[2] == first) {
			assert_int_equal(link[3], first + 4);
			by_x++;
		} else {
			assert_int_equal(link[2], first + 3);
			assert_int_equal(link[3], first + 7);
		}
	}
	near_frac(by_x, 3000, 0.05);
	f.to = 1; /* below the same switch */
	assert_int_equal(links_route(&w, rng, &f, link), 2);
	f.to = 3;
	((struct ft_fabric *)c->fabric)->adaptive = true;
	links_lay_out(&w, rng);
	w.weight = ARENA_ARRAY(&mem, w.n_links, double);
	w.met = ARENA_ARRAY(&mem, w.n_links, uint32_t);
	assert_int_equal(links_split(&w, 0, 3, 1), 1);
	assert_int_equal(links_route(&w, rng, &f, link), 2);
	drawn_add(&w, &f, 8);
	drawn_add(&w, &f, 4);
	drawn_spread(&w);
	near_frac(w.weight[first], 9, 1e-12);
	near_frac(w.weight[first + 4], 9, 1e-12);
	near_frac(w.weight[first + 3], 3, 1e-12);
	near_frac(w.weight[first + 7], 3, 1e-12);
	assert_int_equal(w.n_met, 4);
	gsl_rng_free(rng);
	ft_cluster_free(c);
	arena_release(&mem);
}

/* Two nodes of eight NICs behind three ports: 3/16 of the line, and the cable is full. */
static void a_drawn_cable_is_taken_whole(void **state)
{
	const char *text =
		"{gpu: h100-sxm, gpus: 32, fabric: {extends: spectrum-x-400-rail, wiring: "
		"graph, graph: {switches: [a, b], attach: [{nodes: [0, 1], switch: a}, "
		"{nodes: [2, 3], switch: b}], cables: [{from: a, to: b, count: 3}]}}}";
	const struct network_part part = { 0, 4 };
	const struct network_sends far = { NETWORK_SHIFT, 2, 1, 0, false };
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *n = node_read_text(&mem, "c", text, strlen(text), &err);
	struct ft_cluster *c = n ? ft_cluster_load(n, &err) : NULL;
	struct network_path p;
	struct network *w;

	(void)state;
	ok_or_say(c, err);
	near_frac(c->fabric->port_bytes_per_s.value, c->nic_bytes_per_s, 1e-12);
	w = network_new(&mem, c, 4, &part, 1, &err);
	ok_or_say(w, err);
	network_find(w, 0, &far, &p);
	near_frac(p.share, 3. / 16, 1e-6);
	assert_true(p.n_uses >= 1);
	near_frac((double)p.use[0], 1, 1e-6);
	ft_cluster_free(c);
	arena_release(&mem);
}

/* The slowest of all max-min shares of a rail, each solved for; the i-th node sends to the one `by`
 * further on. */
static double slowest_of_rail(const struct network *w, gsl_rng *rng,
			      const struct network_part *p, int64_t by)
{
	struct arena mem = { 0 };
	double *capacity = ARENA_ARRAY(&mem, w->n_links, double), least = 1;
	struct share s;

	for (size_t l = 0; l < w->n_links; l++)
		capacity[l] = w->capacity[l] / w->line;
	share_init(&s, &mem, capacity, w->n_links);
	for (int64_t i = p->first_node; i < p->first_node + p->nodes; i++) {
		int64_t from = w->order[i], to, split;

		if (i + by >= w->nodes)
			break;
		to = w->order[i + by];
		split = links_split(w, from, to, 1);
		for (int64_t k = 0; k < w->rails * split; k++) {
			struct links_flow f = { from, to, k / split };
			uint32_t link[SHARE_HOPS];
			size_t hops = links_route(w, rng, &f, link);
			float use[SHARE_HOPS];

			for (size_t h = 0; h < hops; h++)
				use[h] = (float)(1. / (double)split);
			share_add(&s, link, use, hops);
		}
	}
	share_solve(&s);
	for (size_t f = 0; f < s.n_flows; f++)
		least = fmin(least, s.flow[f].rate);
	arena_release(&mem);
	return fmax(least, 1e-3);
}

/* Of all rails that are alike: each is hashed anew. */
static double slowest_solved(const struct network *w, size_t part, int64_t by)
{
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
	double least = 1;

	gsl_rng_set(rng, (unsigned long)(w->c->imperfections.seed + part));
	for (int64_t rail = 0; rail < (w->c->fabric->adaptive ? 1 : w->alike); rail++)
		least = fmin(least, slowest_of_rail(w, rng, &w->part[part], by));
	gsl_rng_free(rng);
	return least;
}

static void the_slowest_flow_is_that_of_the_whole_solution(void **state)
{
	int below = 0;

	(void)state;
	for (uint64_t i = 1; i <= 60; i++) {
		const struct ft_imperfections im = {
			.given = true,
			.seed = i,
			.scattered = i % 3 > 0,
			.failed_uplinks_frac = i % 5 ? 0 : 0.1,
			.slow_nics_frac = i % 4 ? 0 : 0.1,
			.slow_nic_rate_frac = 0.5,
		};
		int64_t nodes = 20 + (int64_t)(i % 7) * 9;
		struct ft_fabric fabric = clos;
		struct network_path p;
		struct ft_error err;
		struct network *w;
		struct laid l;

		fabric.wiring = i % 2 ? FT_WIRING_RAIL : FT_WIRING_TOR;
		fabric.adaptive = i % 6 == 0;
		lay(&l, &fabric, nodes, 2, &im);
		w = network_new(&l.mem, &l.c, nodes, l.part, 2, &err);
		for (size_t part = 0; w && part < 2; part++)
			for (int64_t by = 1; by < nodes; by += 5) {
				const struct network_sends x = { NETWORK_SHIFT, by, 1,
								 0, false };

				network_find(w, part, &x, &p);
				near_frac(p.share, slowest_solved(w, part, by), 1e-12);
				below += p.share < 1;
			}
		gone(&l);
	}
	assert_true(below > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ways_of_a_clos_are_those_of_its_drawing),
		cmocka_unit_test(links_carry_what_the_drawing_says),
		cmocka_unit_test(faults_take_their_part),
		cmocka_unit_test(joined_are_leaves_with_a_spine_in_common),
		cmocka_unit_test(a_pool_has_what_its_links_have),
		cmocka_unit_test(leaves_of_the_same_parts_are_one),
		cmocka_unit_test(a_drawn_network_is_walked_by_its_cables),
		cmocka_unit_test(a_drawn_cable_is_taken_whole),
		cmocka_unit_test(the_slowest_flow_is_that_of_the_whole_solution),
	};

	return cmocka_run_group_tests_name("network links", tests, NULL, NULL);
}
