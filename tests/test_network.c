/* tests/test_network.c - flows of a group on links that collide, fail and lag */
#include "tests/clos.h"

#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "sim/network.h"

static struct network *new_network(struct arena *mem, const struct ft_cluster *c,
				   int64_t nodes, const struct network_part *part,
				   size_t n)
{
	struct ft_error err;
	struct network *w = network_new(mem, c, nodes, part, n, &err);

	ok_or_say(w, err);
	return w;
}

static double share(const char *fabric, const char *imperfections, int64_t nodes,
		    enum network_pattern pattern)
{
	struct arena mem = { 0 };
	struct ft_error err;
	const char *text = arena_printf(&mem,
					"{gpu: h100-sxm, gpus: 2048, fabric: "
					"%s, imperfections: %s}",
					fabric, imperfections);
	struct node *n = node_read_text(&mem, "c", text, strlen(text), &err);
	struct network_sends sends;
	struct ft_cluster *c;
	double s;

	ok_or_say(n, err);
	c = ft_cluster_load(n, &err);
	ok_or_say(c, err);
	sends = (struct network_sends){ pattern, 1, nodes, 0, false };
	ok_or_say(network_share(c, &sends, &s, &err), err);
	assert_true(s > 0 && s <= 1);
	ft_cluster_free(c);
	arena_release(&mem);
	return s;
}

static void a_sound_packed_ring_has_its_line_rate(void **state)
{
	static const char *const fabrics[] = { "ib-ndr-rail", "roce-400-rail",
					       "spectrum-x-400-rail", "roce-400-tor" };

	(void)state;
	for (int i = 0; i < 4; i++)
		near_frac(share(fabrics[i], "{seed: 1}", 256, NETWORK_RING), 1, 1e-6);
}

static void scattered_ranks_collide_under_ecmp_and_not_when_adaptive(void **state)
{
	double ecmp =
		share("roce-400-tor", "{placement: scattered}", 256, NETWORK_RING);

	(void)state;
	assert_true(ecmp < 0.8);
	near_frac(share("ib-ndr-rail", "{placement: scattered}", 256, NETWORK_RING), 1,
		  1e-6);
}

static void a_slow_nic_slows_its_group(void **state)
{
	(void)state;
	near_frac(share("ib-ndr-rail",
			"{slow_nics_frac: 0.2, slow_nic_rate_frac: "
			"0.5}",
			256, NETWORK_RING),
		  0.5, 1e-6);
	/* a group of two sound nodes of that cluster may not meet it */
	near_frac(share("ib-ndr-rail", "{slow_nics_frac: 0}", 2, NETWORK_RING), 1,
		  1e-6);
}

/* Over seeds. */
static double mean_share(const char *fault)
{
	enum { SEEDS = 60 };
	struct arena mem = { 0 };
	double sum = 0;

	for (int seed = 1; seed <= SEEDS; seed++)
		sum += share("ib-ndr-rail",
			     arena_printf(&mem, "{%s, seed: %d}", fault, seed), 256,
			     NETWORK_RING);
	arena_release(&mem);
	return sum / SEEDS;
}

/* 256 nodes have 2,048 NICs: of a thousandth 0.87 of the draws have a slow one, of 256 0.23. */
static void the_slowest_of_all_rails_sets_the_pace(void **state)
{
	(void)state;
	near_frac(mean_share("slow_nics_frac: 0.001"), 1 - 0.87 / 2, 0.1);
}

static void failed_uplinks_take_their_part(void **state)
{
	double all = share("ib-ndr-rail", "{placement: scattered}", 256, NETWORK_PAIRS);
	double most = share("ib-ndr-rail",
			    "{placement: scattered, "
			    "failed_uplinks_frac: 0.3}",
			    256, NETWORK_PAIRS);

	(void)state;
	assert_true(most < all);
	assert_true(most > 0.3 * all);
}

static void the_same_seed_gives_the_same_share(void **state)
{
	const char *text = "{placement: scattered, failed_uplinks_frac: 0.1, seed: ";
	struct arena mem = { 0 };
	double first = 0;
	int others = 0;

	(void)state;
	for (int seed = 1; seed <= 5; seed++) {
		const char *im = arena_printf(&mem, "%s%d}", text, seed);
		double s = share("roce-400-tor", im, 256, NETWORK_RING);

		assert_true(s == share("roce-400-tor", im, 256, NETWORK_RING));
		first = seed == 1 ? s : first;
		others += s != first;
	}
	assert_true(others > 0);
	arena_release(&mem);
}

/* 8 nodes a leaf (16-port switches), two parts of 12 nodes: the middle leaf is of both. */
static void parts_share_the_leaves_that_hold_both(void **state)
{
	const struct network_part part[] = { { 0, 12 }, { 12, 12 } };
	const struct network_sends far = { NETWORK_SHIFT, 12, 1, 0, false };
	const struct network_sends ring = { NETWORK_RING, 1, 12, 0, false };
	struct ft_fabric fabric = clos(16);
	struct ft_cluster c = clos_cluster(&fabric, 24, 1);
	struct arena mem = { 0 };
	struct network_path p, q;
	struct network *w;

	(void)state;
	assert_int_equal(c.topology.nodes_per_leaf, 8);
	w = new_network(&mem, &c, 24, part, 2);
	assert_int_equal(network_links(w), 3 + 1); /* leaves A, AB, B; one pod */
	network_find(w, 0, &far, &p);
	near_frac(p.share, 1, 1e-9);
	assert_int_equal(p.n_uses, 2);
	near_frac((double)p.use[0], 1, 1e-6);	/* all 8 of leaf A send up */
	near_frac((double)p.use[1], 0.5, 1e-6); /* 4 of leaf AB */
	network_find(w, 1, &ring, &q);
	assert_int_equal(q.n_uses, 2);
	assert_int_equal(q.link[0], p.link[1]); /* the leaf of both */
	near_frac((double)q.use[0], 1.0 / 8, 1e-6);
	arena_release(&mem);
}

/* Share of line rate when each of n nodes sends to the one half the cluster on. */
static double half_way_of(struct ft_fabric fabric, int64_t n, int64_t nics)
{
	const struct network_part part = { 0, n };
	const struct network_sends far = { NETWORK_SHIFT, n / 2, 1, 0, false };
	struct ft_cluster c = clos_cluster(&fabric, n, nics);
	struct arena mem = { 0 };
	struct network_path p;
	struct network *w;

	w = new_network(&mem, &c, n, &part, 1);
	network_find(w, 0, &far, &p);
	arena_release(&mem);
	return p.share;
}

static double half_way(struct ft_fabric fabric, int64_t n)
{
	return half_way_of(fabric, n, 4);
}

/* What is priced is what is simulated: as many cables as a half needs to reach the other
 * at full rate, or as the oversubscription leaves, however they are laid. */
static void each_wiring_carries_what_its_cables_can(void **state)
{
	struct ft_fabric fabric = clos(16);
	struct ft_fabric f = fabric;

	(void)state;
	near_frac(half_way(f, 32), 1, 1e-9);
	f.rails_per_leaf = 2;
	near_frac(half_way(f, 32), 1, 1e-9);
	f.oversubscription = 3;
	near_frac(half_way(f, 30), 1. / 3, 1e-9);
	f = fabric;
	f.wiring = FT_WIRING_RAIL_ONLY;
	near_frac(half_way(f, 32), 1, 1e-9);
	near_frac(half_way(f, 16), 1, 1e-9); /* one switch a rail */
	f.oversubscription = 3;
	near_frac(half_way(f, 48), 1. / 3, 1e-9);
	f = fabric;
	f.radix = 12;
	f.upper_radix = 32;
	f.scheduled = true;
	near_frac(half_way(f, 30), 1, 1e-9);
	f = fabric;
	f.radix = 8; /* 128 endpoints in three tiers: these are 384 */
	near_frac(half_way(f, 96), 1, 1e-9);
	f.core_oversubscription = 3;
	near_frac(half_way(f, 96), 1. / 3, 1e-9);
}

/* Pods of 16 nodes, of which the last has 8: its full neighbours have the cables of 16. */
static void a_pod_has_the_cables_of_its_nodes(void **state)
{
	struct ft_fabric f = clos(8);

	(void)state;
	near_frac(half_way_of(f, 80, 1), 1, 1e-9);
	near_frac(half_way_of(f, 72, 1), 1, 1e-9);
	f.core_oversubscription = 3;
	near_frac(half_way_of(f, 72, 1), 1. / 3, 1e-9);
}

/* Groups that fill a leaf each, of nodes of eight NICs: what they exchange stays below it, however few
 * cables lead to the core, also where a pod has fewer leaves than a node has rails, or two and a half times
 * as many. */
static void what_stays_under_a_leaf_meets_no_core(void **state)
{
	static const struct {
		int64_t radix, nodes, leaf;
	} cases[] = { { 8, 16, 4 }, { 40, 240, 20 }, { 64, 320, 32 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct network_sends x = { NETWORK_PAIRS, 1, cases[i].leaf, 0,
						 false };
		struct ft_fabric f = clos(cases[i].radix);
		struct ft_error err;
		struct ft_cluster c;
		double share;

		f.tiers = 3;
		f.core_oversubscription = 20;
		c = clos_cluster(&f, cases[i].nodes, 8);
		assert_int_equal(c.topology.tiers, 3);
		assert_int_equal(c.topology.nodes_per_leaf, cases[i].leaf);
		ok_or_say(network_share(&c, &x, &share, &err), err);
		near_frac(share, 1, 1e-9);
	}
}

/* A Clos of ECMP with n nodes of one NIC, as many uplinks as nodes below a leaf. */
static struct ft_fabric hashed(int64_t queue_pairs)
{
	struct ft_fabric f = clos(64);

	f.adaptive = false;
	f.tiers = 2;
	f.queue_pairs = queue_pairs;
	return f;
}

/* Mean over seeds of line rate / slowest, where `senders` nodes of each leaf of 32 send
 * to the same place under the next leaf; two: as two parts that meet. */
static double slowdown(int64_t queue_pairs, int64_t senders, bool two, int seeds)
{
	struct ft_fabric fabric = hashed(queue_pairs);
	struct ft_cluster c = clos_cluster(&fabric, 64, 1);
	const struct network_part part[] = { { 0, senders },
					     { 32 - senders, senders } };
	const struct network_sends x = { NETWORK_SHIFT, 32, 1, 0, false };
	double sum = 0;

	assert_int_equal(c.topology.leaf_up, 32);
	for (int i = 0; i < seeds; i++) {
		struct arena mem = { 0 };
		struct network_path p, q;
		struct network *w;

		c.imperfections.seed = (uint64_t)(2 * i + 1);
		w = new_network(&mem, &c, 64, part, 2);
		network_find(w, 0, &x, &p);
		if (two)
			network_find(w, 1, &x, &q);
		sum += 1 / p.share * (two ? fmax(1, (double)(p.use[0] + q.use[0])) : 1);
		arena_release(&mem);
	}
	return sum / seeds;
}

/* Every node sends to the next leaf: what is left of the spines is what is left. */
static void a_failed_spine_takes_its_part(void **state)
{
	struct ft_fabric fabric = clos(64);
	struct ft_cluster c = clos_cluster(&fabric, 256, 1);
	const struct network_part part = { 0, 256 };
	const struct network_sends next = { NETWORK_SHIFT, 32, 1, 0, false };

	(void)state;
	for (int64_t failed = 0; failed < c.topology.spine; failed++) {
		struct arena mem = { 0 };
		struct network_path p;

		c.imperfections.failed_spines = failed;
		network_find(new_network(&mem, &c, 256, &part, 1), 0, &next, &p);
		near_frac(p.share, 1 - (double)failed / (double)c.topology.spine, 1e-6);
		arena_release(&mem);
	}
	assert_true(c.topology.spine > 1);
}

/* Eight rails that are not joined, each with two spines of its own: with one of them half of its rail's
 * uplinks is gone, for which all wait; eight take no more, one of each. */
static void a_failed_spine_takes_its_part_of_its_rail(void **state)
{
	struct ft_fabric fabric = clos(64);
	struct ft_cluster c;
	const struct network_part part = { 0, 128 };
	const struct network_sends next = { NETWORK_SHIFT, 32, 1, 0, false };

	(void)state;
	fabric.wiring = FT_WIRING_RAIL_ONLY;
	c = clos_cluster(&fabric, 128, 8);
	assert_int_equal(c.topology.spine, 16);
	for (int64_t failed = 0; failed <= 8; failed++) {
		struct arena mem = { 0 };
		struct network_path p;

		c.imperfections.failed_spines = failed;
		network_find(new_network(&mem, &c, 128, &part, 1), 0, &next, &p);
		near_frac(p.share, failed ? 0.5 : 1, 1e-6);
		arena_release(&mem);
	}
}

/* Each leaf of three tiers reaches the spines of its pod alone, of which one is 1/32: not 1/128. */
static void of_many_spines_a_failed_one_is_felt(void **state)
{
	struct ft_fabric fabric = clos(64);
	struct ft_cluster c = clos_cluster(&fabric, 4096, 1);
	const struct network_part part = { 0, 4096 };
	const struct network_sends next = { NETWORK_SHIFT, 32, 1, 0, false };

	(void)state;
	assert_int_equal(c.topology.tiers, 3);
	assert_int_equal(c.topology.spine, 128);
	for (int64_t failed = 0; failed < 128; failed++) {
		struct arena mem = { 0 };
		int64_t lost = (failed + 3) / 4;
		struct network_path p;

		c.imperfections.failed_spines = failed;
		network_find(new_network(&mem, &c, 4096, &part, 1), 0, &next, &p);
		near_frac(p.share, 1 - (double)(lost < 32 ? lost : 31) / 32, 1e-6);
		arena_release(&mem);
	}
}

/* Of 256 nodes that lie anyhow over leaves with one uplink to four of them, those of a small group
 * have it no better than those of one group of all: all groups send. */
static void groups_side_by_side_share_what_lies_between(void **state)
{
	const char *fabric = "{extends: ib-ndr-rail, oversubscription: 4, tiers: 2}";
	double all = share(fabric, "{placement: scattered}", 256, NETWORK_RING);

	(void)state;
	assert_true(all < 0.5);
	for (int64_t nodes = 2; nodes < 256; nodes *= 2)
		assert_true(share(fabric, "{placement: scattered}", nodes,
				  NETWORK_RING) < 1.1 * all + 0.1);
	/* packed ones lie under their leaves */
	near_frac(share(fabric, "{placement: packed}", 2, NETWORK_RING), 1, 1e-9);
}

/* E[load of the fullest of 32 uplinks], published Monte Carlo: 32 line-rate flows of 1, 4
 * and 16 queue pairs, 16 of 1 and 4. */
static void hashing_collides_as_often_as_it_should(void **state)
{
	(void)state;
	assert_true(fabs(slowdown(1, 32, false, 20000) - 3.54) < 0.02);
	assert_true(fabs(slowdown(4, 32, false, 20000) - 2.16) < 0.02);
	assert_true(fabs(slowdown(16, 32, false, 20000) - 1.55) < 0.02);
	near_frac(slowdown(1, 16, false, 2000), 2.40, 0.02);
	near_frac(slowdown(4, 16, false, 2000), 1.35, 0.03);
}

/* Two groups of 16 that meet as shared uses against 32 flows hashed together. */
static void groups_that_meet_slow_as_if_hashed_together(void **state)
{
	(void)state;
	near_frac(slowdown(1, 16, true, 2000), slowdown(1, 32, false, 2000), 0.05);
	near_frac(slowdown(4, 16, true, 2000), slowdown(4, 32, false, 2000), 0.05);
}

/* 8 leaves of 4 nodes of 8 NICs, 16 cables up; all nodes send to the next leaf: 32 NICs
 * over 16 cables, dealt out 12 to 4 where routing is adaptive. */
static void a_drawn_network_shares_its_cables(void **state)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct ft_fabric *f =
		ft_fabric_load("examples/09-drawn-network/fabric.yaml", NULL, &err);
	const struct network_part part = { 0, 32 };
	const struct network_sends next = { NETWORK_SHIFT, 4, 1, 0, false },
				   near = { NETWORK_RING, 1, 2, 0, false };
	struct ft_cluster c = { .nodes = 32,
				.ranks_per_node = 8,
				.nics_per_node = 8,
				.nic_bytes_per_s = 50e9,
				.imperfections = { .seed = 1 } };
	struct network_path p;

	(void)state;
	ok_or_say(f, err);
	f->adaptive = true;
	c.fabric = f;
	ok_or_say(ft_topology_build(f, 32, 8, 0, &c.topology, &err), err);
	assert_int_equal(c.topology.tiers, 2);
	assert_true(network_matters(&c));
	network_find(new_network(&mem, &c, 32, &part, 1), 0, &next, &p);
	near_frac(p.share, 0.5, 1e-6);
	network_find(new_network(&mem, &c, 32, &part, 1), 0, &near, &p);
	near_frac(p.share, 1, 1e-9); /* pairs under one leaf */
	assert_int_equal(p.n_uses, 0);
	f->adaptive = false;
	network_find(new_network(&mem, &c, 32, &part, 1), 0, &next, &p);
	assert_true(p.share < 0.5 && p.share > 0.2);
	ft_fabric_free(f);
	arena_release(&mem);
}

/* Leaves that share no spine any more are an error, and no step of minutes. */
static void leaves_without_a_way_are_an_error(void **state)
{
	const struct network_part part = { 0, 128 };
	struct arena mem = { 0 };
	struct ft_error err = { .text = "" };
	const char *text = "{gpu: h100-sxm, gpus: 1024, fabric: roce-400-rail, "
			   "imperfections: {failed_uplinks_frac: 0.9}}";
	struct node *n = node_read_text(&mem, "c", text, strlen(text), &err);
	struct network_sends sends = { NETWORK_SHIFT, 1, 128, 0, false };
	struct ft_cluster *c;
	double share;

	(void)state;
	ok_or_say(n, err);
	c = ft_cluster_load(n, &err);
	ok_or_say(c, err);
	assert_null(network_new(&mem, c, 128, &part, 1, &err));
	assert_non_null(strstr(err.text, "failed_uplinks_frac (0.9)"));
	assert_false(network_share(c, &sends, &share, &err));
	c->imperfections.failed_uplinks_frac = 0.2;
	assert_true(network_share(c, &sends, &share, &err));
	ft_cluster_free(c);
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sound_packed_ring_has_its_line_rate),
		cmocka_unit_test(
			scattered_ranks_collide_under_ecmp_and_not_when_adaptive),
		cmocka_unit_test(a_slow_nic_slows_its_group),
		cmocka_unit_test(the_slowest_of_all_rails_sets_the_pace),
		cmocka_unit_test(failed_uplinks_take_their_part),
		cmocka_unit_test(parts_share_the_leaves_that_hold_both),
		cmocka_unit_test(each_wiring_carries_what_its_cables_can),
		cmocka_unit_test(a_pod_has_the_cables_of_its_nodes),
		cmocka_unit_test(what_stays_under_a_leaf_meets_no_core),
		cmocka_unit_test(a_failed_spine_takes_its_part),
		cmocka_unit_test(a_failed_spine_takes_its_part_of_its_rail),
		cmocka_unit_test(of_many_spines_a_failed_one_is_felt),
		cmocka_unit_test(groups_side_by_side_share_what_lies_between),
		cmocka_unit_test(hashing_collides_as_often_as_it_should),
		cmocka_unit_test(groups_that_meet_slow_as_if_hashed_together),
		cmocka_unit_test(a_drawn_network_shares_its_cables),
		cmocka_unit_test(leaves_without_a_way_are_an_error),
		cmocka_unit_test(the_same_seed_gives_the_same_share),
	};

	return cmocka_run_group_tests_name("sim/network", tests, NULL, NULL);
}
