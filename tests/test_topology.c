/*
 * tests/test_topology.c - switches and cables against published designs
 *
 * Sources: NVIDIA DGX SuperPOD reference architectures, H100 network fabrics
 * table 4, B200 table 3, B300 (Spectrum-X) table 3, B300-XDR table 3; AMD MI3XX
 * cluster reference; SemiAnalysis, AI Neocloud Playbook (2024-10-03). The last
 * B300-XDR row prints 9,216 GPUs beside 1,296 nodes and 10,368 cables: 10,368.
 */

#include "tests/check.h"

#include "foretoken/hw.h"

/* A plain recipe; tests change what they need. */
static struct ft_fabric recipe(int64_t radix)
{
	return (struct ft_fabric){ .name = "test",
				   .wiring = FT_WIRING_RAIL,
				   .radix = radix,
				   .planes = 1,
				   .oversubscription = 1,
				   .core_oversubscription = 1,
				   .rails_per_leaf = 1,
				   .port_split = 1,
				   .ports_per_optic = 2,
				   .nic_ports_per_optic = 1 };
}

static struct ft_topology build(const struct ft_fabric *fabric, int64_t nodes,
				int64_t extra)
{
	struct ft_topology t;
	struct ft_error err;

	if (!ft_topology_build(fabric, nodes, 8, extra, &t, &err))
		fail_msg("%lld nodes: %s", (long long)nodes, err.text);
	return t;
}

static void published_superpods_come_out_exactly(void **state)
{
	static const struct {
		int64_t radix, planes, nodes, extra;
		int64_t leaf, spine, core, node_leaf, leaf_spine, spine_core;
	} row[] = {
		{ 64, 1, 31, 4, 8, 4, 0, 252, 256, 0 },
		{ 64, 1, 63, 4, 16, 8, 0, 508, 512, 0 },
		{ 64, 1, 95, 4, 24, 16, 0, 764, 768, 0 },
		{ 64, 1, 127, 4, 32, 16, 0, 1020, 1024, 0 },
		{ 64, 1, 64, 0, 16, 8, 0, 512, 512, 0 },
		{ 64, 1, 128, 0, 32, 16, 0, 1024, 1024, 0 },
		{ 64, 1, 256, 0, 64, 32, 0, 2048, 2048, 0 },
		{ 64, 1, 512, 0, 128, 128, 64, 4096, 4096, 4096 },
		{ 64, 1, 1024, 0, 256, 256, 128, 8192, 8192, 8192 },
		{ 64, 1, 2048, 0, 512, 512, 256, 16384, 16384, 16384 },
		{ 128, 2, 64, 0, 16, 8, 0, 512, 512, 0 },
		{ 128, 2, 128, 0, 32, 16, 0, 1024, 1024, 0 },
		{ 128, 2, 256, 0, 64, 32, 0, 2048, 2048, 0 },
		{ 128, 2, 512, 0, 128, 64, 0, 4096, 4096, 0 },
		{ 128, 2, 1024, 0, 256, 128, 0, 8192, 8192, 0 },
		{ 144, 1, 72, 0, 8, 4, 0, 576, 576, 0 },
		{ 144, 1, 144, 0, 16, 8, 0, 1152, 1152, 0 },
		{ 144, 1, 288, 0, 32, 18, 0, 2304, 2304, 0 },
		{ 144, 1, 576, 0, 64, 36, 0, 4608, 4608, 0 },
		{ 144, 1, 1296, 0, 144, 72, 0, 10368, 10368, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct ft_fabric fabric = recipe(row[i].radix);
		struct ft_topology t;

		fabric.planes = row[i].planes;
		t = build(&fabric, row[i].nodes, row[i].extra);
		if (t.leaf != row[i].leaf || t.spine != row[i].spine ||
		    t.core != row[i].core || t.cables_node_leaf != row[i].node_leaf ||
		    t.cables_leaf_spine != row[i].leaf_spine ||
		    t.cables_spine_core != row[i].spine_core)
			fail_msg("row %zu: %lld/%lld/%lld %lld/%lld/%lld", i,
				 (long long)t.leaf, (long long)t.spine,
				 (long long)t.core, (long long)t.cables_node_leaf,
				 (long long)t.cables_leaf_spine,
				 (long long)t.cables_spine_core);
	}
}

/* k, k^2/2, k^3/4 and k^4/8 endpoints; one node more is one tier more, or too much. */
static void each_number_of_tiers_reaches_its_maximum(void **state)
{
	(void)state;
	for (int64_t k = 64; k <= 128; k += 64) {
		struct ft_fabric fabric = recipe(k);
		struct ft_error err;
		struct ft_topology t = build(&fabric, k / 8, 0);

		assert_int_equal(t.tiers, 1);
		assert_int_equal(t.leaf, 1);
		assert_int_equal(t.spine, 0);
		assert_int_equal(build(&fabric, k / 8 + 1, 0).tiers, 2);
		t = build(&fabric, k * k / 16, 0);
		assert_int_equal(t.tiers, 2);
		assert_int_equal(t.spine, k / 2);
		assert_int_equal(build(&fabric, k * k / 16 + 1, 0).tiers, 3);
		t = build(&fabric, k * k * k / 32, 0);
		assert_int_equal(t.tiers, 3);
		assert_int_equal(t.endpoints, k == 64 ? 65536 : 524288);
		assert_int_equal(t.core, k * k / 4);
		assert_int_equal(build(&fabric, k * k * k / 32 + 1, 0).tiers, 4);
		t = build(&fabric, k * k * k * k / 64, 0);
		assert_int_equal(t.tiers, 4);
		assert_int_equal(t.core, 2 * t.top);
		assert_int_equal(t.spine, t.core);
		assert_int_equal(t.leaf, t.spine);
		assert_int_equal(t.cables_core_top, t.endpoints);
		assert_false(ft_topology_build(&fabric, k * k * k * k / 64 + 1, 8, 0,
					       &t, &err));
		assert_non_null(strstr(err.text, "do not fit 4 tiers"));
		fabric.tiers = 3;
		assert_false(
			ft_topology_build(&fabric, k * k * k / 32 + 1, 8, 0, &t, &err));
		assert_non_null(strstr(err.text, "do not fit 3 tiers"));
	}
}

static void two_tiers_refuse_what_needs_three(void **state)
{
	struct ft_fabric fabric = recipe(64);
	struct ft_topology t;
	struct ft_error err;

	(void)state;
	fabric.tiers = 2;
	assert_false(ft_topology_build(&fabric, 512, 8, 0, &t, &err));
	assert_non_null(strstr(err.text, "4096 endpoints do not fit 2 tiers"));
}

static void two_to_one_takes_eight_spines(void **state)
{
	struct ft_fabric fabric = recipe(64);
	struct ft_topology t;

	(void)state;
	fabric.oversubscription = 2;
	t = build(&fabric, 128, 0);
	assert_int_equal(t.leaf, 32);
	assert_int_equal(t.leaf_down, 32);
	assert_int_equal(t.leaf_up, 16);
	assert_int_equal(t.spine, 8);
	assert_int_equal(t.cables_leaf_spine, 512);
}

/* An extra port takes the place of an uplink only where its leaf has another. */
static void no_leaf_loses_its_only_uplink(void **state)
{
	struct ft_fabric fabric = recipe(64);
	struct ft_topology t;

	(void)state;
	fabric.oversubscription = 31; /* 62 down, 2 up */
	t = build(&fabric, 496, 4);
	assert_int_equal(t.leaf, 64);
	assert_int_equal(t.cables_leaf_spine, 64 * 2 - 4);
	fabric.oversubscription = 63;
	t = build(&fabric, 252, 0);
	assert_int_equal(t.leaf, 32);
	assert_int_equal(t.leaf_up, 1);
	t = build(&fabric, 252, 4);
	assert_int_equal(t.leaf, 33);
	assert_int_equal(t.cables_leaf_spine, 33);
	assert_int_equal(t.spine, 1);
}

/* AMD: 1:1.16 undersubscribed 51.2T switches, trees of 56 GPUs a leaf, rails of
 * 52, 57 and 58 nodes a leaf; 256 nodes take about 61 switches in all. */
static void undersubscribed_trees_and_rails_come_out(void **state)
{
	static const struct {
		int64_t nodes, leaf, per_leaf;
	} tree[] = { { 259, 37, 7 }, { 518, 74, 7 }, { 756, 108, 7 } },
	  rail[] = { { 260, 40, 52 }, { 513, 72, 57 }, { 754, 104, 58 } };
	struct ft_fabric fabric = recipe(128);
	struct ft_topology t;

	(void)state;
	fabric.oversubscription = 1 / 1.16;
	for (int i = 0; i < 3; i++) {
		fabric.wiring = FT_WIRING_TOR;
		t = build(&fabric, tree[i].nodes, 0);
		assert_int_equal(t.leaf, tree[i].leaf);
		assert_int_equal(t.nodes_per_leaf, tree[i].per_leaf);
		fabric.wiring = FT_WIRING_RAIL;
		t = build(&fabric, rail[i].nodes, 0);
		assert_int_equal(t.leaf, rail[i].leaf);
		assert_int_equal(t.nodes_per_leaf, rail[i].per_leaf);
	}
	t = build(&fabric, 256, 0);
	assert_int_equal(t.leaf + t.spine, 61);
}

/* Meta's 24,576-GPU RoCE cluster: 7:1 above pods of full bisection. */
static void a_core_may_be_oversubscribed(void **state)
{
	struct ft_fabric fabric = recipe(64);
	struct ft_topology t;
	double ratio;

	(void)state;
	fabric.core_oversubscription = 7;
	t = build(&fabric, 3072, 0);
	ratio = (double)t.cables_leaf_spine / (double)t.cables_spine_core;
	assert_true(ratio > 6.95 && ratio < 7.05);
	assert_int_equal(t.cables_leaf_spine, 24576);
}

/* 512 H100 on rails of their own: 8 switches, one a rail, and no spine; the same in
 * two tiers where a rail has more nodes than a switch has ports. */
static void rails_may_be_networks_of_their_own(void **state)
{
	struct ft_fabric fabric = recipe(64);
	struct ft_topology t;

	(void)state;
	fabric.wiring = FT_WIRING_RAIL_ONLY;
	t = build(&fabric, 64, 0);
	assert_int_equal(t.tiers, 1);
	assert_int_equal(t.leaf, 8);
	assert_int_equal(t.spine + t.cables_leaf_spine, 0);
	assert_int_equal(t.cables_node_leaf, 512);
	t = build(&fabric, 128, 0);
	assert_int_equal(t.tiers, 2);
	assert_int_equal(t.leaf, 8 * 4);
	assert_int_equal(t.spine, 8 * 2);
	/* a rail is what a fabric of one NIC a node is */
	for (int64_t nodes = 2; nodes < 5000; nodes += 61) {
		struct ft_topology one;
		struct ft_error err;
		struct ft_fabric rail = recipe(64);

		assert_true(ft_topology_build(&rail, nodes, 1, 0, &one, &err));
		t = build(&fabric, nodes, 0);
		assert_int_equal(t.leaf, 8 * one.leaf);
		assert_int_equal(t.spine, 8 * one.spine);
		assert_int_equal(t.core, 8 * one.core);
	}
}

/* 128 GPUs in 16 nodes: two rails a leaf take 4 leaves and 2 spines, one takes 8 and 2. */
static void small_clusters_pack_rails(void **state)
{
	struct ft_fabric fabric = recipe(64);
	struct ft_topology t;

	(void)state;
	fabric.tiers = 2;
	t = build(&fabric, 16, 0);
	assert_int_equal(t.leaf, 8);
	fabric.rails_per_leaf = 2;
	t = build(&fabric, 16, 0);
	assert_int_equal(t.leaf, 4);
	assert_int_equal(t.spine, 2);
	assert_int_equal(t.nodes_per_leaf, 16);
	assert_int_equal(t.leaf_down, 32);
	fabric.rails_per_leaf = 8; /* all of them: a tree of nodes */
	t = build(&fabric, 64, 0);
	fabric.wiring = FT_WIRING_TOR;
	assert_int_equal(t.leaf, build(&fabric, 64, 0).leaf);
	assert_int_equal(t.spine, build(&fabric, 64, 0).spine);
}

/* AMD and DriveNets, system reference architecture, table 11: endpoints of 800 Gb/s,
 * leaves of 18 ports down and 20 up, spines of 128. */
static void a_scheduled_fabric_mixes_radixes(void **state)
{
	static const int64_t row[][3] = { { 108, 6, 1 },     { 216, 12, 2 },
					  { 576, 32, 5 },    { 1152, 64, 10 },
					  { 2304, 128, 20 }, { 4608, 256, 40 } };
	struct ft_fabric fabric = recipe(38);

	(void)state;
	fabric.wiring = FT_WIRING_TOR;
	fabric.upper_radix = 128;
	fabric.oversubscription = 18. / 20;
	fabric.adaptive = fabric.scheduled = true;
	for (size_t i = 0; i < 6; i++) {
		struct ft_topology t;
		struct ft_error err;

		if (!ft_topology_build(&fabric, row[i][0], 1, 0, &t, &err))
			fail_msg("%s", err.text);
		assert_int_equal(t.tiers, 2);
		assert_int_equal(t.leaf, row[i][1]);
		assert_int_equal(t.spine, row[i][2]);
		assert_int_equal(t.leaf_up, 20);
	}
}

/* A published plan for 256 B300 buys the 4 spines of a full scalable unit of 72 nodes
 * (Kedios, 2026): 8 leaves, 4 spines; what is needed is 2. One more spare, and the
 * tiers of a later size, without the leaves of it. */
static void spines_may_be_bought_ahead(void **state)
{
	struct ft_fabric fabric = recipe(144);
	struct ft_topology t = build(&fabric, 32, 0);

	(void)state;
	assert_int_equal(t.leaf, 8);
	assert_int_equal(t.spine, 2);
	fabric.planned_nodes = 72;
	t = build(&fabric, 32, 0);
	assert_int_equal(t.leaf, 8);
	assert_int_equal(t.spine, 4);
	assert_int_equal(t.cables_node_leaf, 256);
	fabric.spare_spines = 1;
	assert_int_equal(build(&fabric, 32, 0).spine, 5);
	fabric.spare_spines = 0;
	fabric.planned_nodes = 5000;
	t = build(&fabric, 32, 0);
	assert_int_equal(t.tiers, 3);
	assert_int_equal(t.leaf, 8);
	assert_int_equal(t.core, build(&fabric, 5000, 0).core);
}

/* One node takes no network, but the first of 32 that are planned takes what it is to
 * be joined to. */
static void the_first_node_of_a_plan_has_its_network(void **state)
{
	struct ft_fabric fabric = recipe(144);
	struct ft_topology t = build(&fabric, 1, 0);

	(void)state;
	assert_int_equal(t.tiers, 0);
	fabric.planned_nodes = 1;
	assert_int_equal(build(&fabric, 1, 0).tiers, 0);
	fabric.planned_nodes = 32;
	t = build(&fabric, 1, 0);
	assert_int_equal(t.tiers, 2);
	assert_int_equal(t.leaf, 8);
	assert_int_equal(t.spine, build(&fabric, 2, 0).spine);
	assert_int_equal(t.cables_node_leaf, 8);
	assert_int_equal(t.endpoints, 8);
}

/* BasePOD: 16 nodes of 8 NICs at 200 Gb/s on the split ports of one QM9700. */
static void split_ports_are_more_ports(void **state)
{
	struct ft_fabric fabric = recipe(2 * 64);
	struct ft_topology t = build(&fabric, 16, 0);

	(void)state;
	assert_int_equal(t.tiers, 1);
	assert_int_equal(t.leaf, 1);
	assert_int_equal(t.cables_node_leaf, 128);
}

/* One node or one port more: never twice the spines, never more than a leaf for each
 * rail; ports of fabric management on full leaves take uplinks' places. */
static void nothing_doubles_with_one_node_more(void **state)
{
	struct ft_fabric fabric = recipe(64);
	struct ft_topology before = build(&fabric, 33, 0), t;

	(void)state;
	for (int64_t nodes = 34; nodes <= 256; nodes++) {
		t = build(&fabric, nodes, 0);
		if (t.spine > before.spine * 3 / 2 + 1 || t.leaf > before.leaf + 8)
			fail_msg("%lld nodes: %lld/%lld after %lld/%lld",
				 (long long)nodes, (long long)t.leaf,
				 (long long)t.spine, (long long)before.leaf,
				 (long long)before.spine);
		before = t;
	}
	t = build(&fabric, 128, 1); /* was 33 leaves and 32 spines */
	assert_int_equal(t.leaf, 32);
	assert_int_equal(t.spine, 16);
	assert_int_equal(t.cables_leaf_spine, 1023);
	t = build(&fabric, 256, 4); /* was three tiers */
	assert_int_equal(t.tiers, 2);
	assert_int_equal(t.leaf, 64);
	assert_int_equal(t.cables_node_leaf + t.cables_leaf_spine, 4096);
	t = build(&fabric, 129, 0); /* was 26 */
	assert_int_equal(t.spine, 17);
	assert_int_equal(build(&fabric, 128, 33).leaf,
			 34); /* beyond one on each leaf */
}

/* 1,024 GPUs: HGX 1,024 single-port and 1,536 twin-port modules, DGX 2,048
 * twin-port ones; copper to the leaf leaves the leaf-spine modules. */
static void modules_are_counted_per_link_end(void **state)
{
	struct ft_fabric fabric = recipe(64);
	struct ft_topology t = build(&fabric, 128, 0);

	(void)state;
	assert_int_equal(t.optics_node, 1024);
	assert_int_equal(t.optics_switch, 1536);
	assert_int_equal(t.transceivers, 2560);
	fabric.nic_ports_per_optic = 2;
	assert_int_equal(build(&fabric, 128, 0).transceivers, 2048);
	fabric.copper_node = true;
	assert_int_equal(build(&fabric, 128, 0).transceivers, 1024);
	fabric.copper_leaf = true;
	assert_int_equal(build(&fabric, 128, 0).transceivers, 0);
}

/* Of four tiers, the largest: two ends a cable, those of nodes one in a switch. */
static void modules_of_every_tier_are_two_a_cable(void **state)
{
	struct ft_fabric fabric = recipe(16);
	struct ft_topology t = build(&fabric, 16 * 16 * 16 / 32 + 1, 0);
	int64_t per = fabric.ports_per_optic;

	(void)state;
	assert_int_equal(t.tiers, 4);
	assert_true(t.cables_core_top > 0 && t.cables_spine_core > 0);
	assert_int_equal(t.optics_leaf_node,
			 (t.planes * t.cables_node_leaf + per - 1) / per);
	assert_int_equal(t.optics_leaf_spine,
			 (2 * t.planes * t.cables_leaf_spine + per - 1) / per);
	assert_int_equal(t.optics_spine_core,
			 (2 * t.planes * t.cables_spine_core + per - 1) / per);
	assert_int_equal(t.optics_core_top,
			 (2 * t.planes * t.cables_core_top + per - 1) / per);
}

/* Whatever the size: ports are enough, and links in balance. */
static void no_switch_has_more_links_than_ports(void **state)
{
	(void)state;
	for (int64_t nodes = 2; nodes < 3000; nodes += nodes < 300 ? 1 : 37)
		for (int w = FT_WIRING_RAIL; w <= FT_WIRING_TOR; w++) {
			struct ft_fabric fabric = recipe(64);
			struct ft_topology t;

			fabric.wiring = (enum ft_wiring)w;
			t = build(&fabric, nodes, 0);
			assert_int_equal(t.cables_node_leaf, nodes * 8);
			assert_true(t.leaf * t.leaf_down >= nodes * 8);
			assert_true(t.leaf_down + t.leaf_up <= 64);
			if (t.tiers == 2) {
				int64_t least = (t.leaf * t.leaf_up + 63) / 64;

				/* evenly, or as few as have the ports */
				assert_true(t.leaf_up % t.spine == 0 ||
					    t.spine == least);
				assert_true(3 * t.spine <= 4 * least);
				assert_true(t.leaf * t.leaf_up <= t.spine * 64);
				assert_true(t.leaf_up >= t.leaf_down);
			} else if (t.tiers == 3) {
				assert_true(t.cables_leaf_spine + t.cables_spine_core <=
					    t.spine * 64);
				assert_true(t.cables_spine_core <= t.core * 64);
			}
		}
}

static void one_node_needs_no_network(void **state)
{
	struct ft_fabric fabric = recipe(64);
	struct ft_topology t = build(&fabric, 1, 0);

	(void)state;
	assert_int_equal(
		t.tiers + t.leaf + t.spine + t.cables_node_leaf + t.transceivers, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_superpods_come_out_exactly),
		cmocka_unit_test(each_number_of_tiers_reaches_its_maximum),
		cmocka_unit_test(two_tiers_refuse_what_needs_three),
		cmocka_unit_test(two_to_one_takes_eight_spines),
		cmocka_unit_test(no_leaf_loses_its_only_uplink),
		cmocka_unit_test(undersubscribed_trees_and_rails_come_out),
		cmocka_unit_test(a_core_may_be_oversubscribed),
		cmocka_unit_test(rails_may_be_networks_of_their_own),
		cmocka_unit_test(small_clusters_pack_rails),
		cmocka_unit_test(a_scheduled_fabric_mixes_radixes),
		cmocka_unit_test(spines_may_be_bought_ahead),
		cmocka_unit_test(the_first_node_of_a_plan_has_its_network),
		cmocka_unit_test(split_ports_are_more_ports),
		cmocka_unit_test(nothing_doubles_with_one_node_more),
		cmocka_unit_test(modules_are_counted_per_link_end),
		cmocka_unit_test(modules_of_every_tier_are_two_a_cable),
		cmocka_unit_test(one_node_needs_no_network),
		cmocka_unit_test(no_switch_has_more_links_than_ports),
	};

	return cmocka_run_group_tests_name("hw/topology", tests, NULL, NULL);
}
