/* tests/test_tuner.c - what NCCL and RCCL choose: exact prices, known switch points */
#include "tests/ccl.h"

#include <math.h>

#include "sim/tuner.h"

static const double KiB = 1024, MiB = 1048576, GiB = 1073741824;

/* One Hopper node of eight: 16 rings and trees of 20 GB/s, 8 NVLS heads of 40. */
static struct group hopper_node(const struct ft_ccl *ccl)
{
	return (struct group){ .ccl = ccl,
			       .tuning = ft_ccl_tuning(ccl, "hopper"),
			       .ranks = 8,
			       .per_domain = 8,
			       .domains = 1,
			       .ring = { 16, 20e9, 0 },
			       .nvls = { 8, 40e9, 0 } };
}

static struct choice chosen(const struct group *g, enum ft_collective op, double bytes)
{
	struct ft_collective_call call = call_of(op, bytes, (int64_t)g->ranks, 1);
	struct choice c = choose_by_library(g, &call);

	assert_non_null(c.algorithm);
	return c;
}

static void priced(const struct group *g, enum ft_collective op, double bytes,
		   const char *algorithm, enum ft_protocol p, double us)
{
	struct choice c = chosen(g, op, bytes);

	if (strcmp(c.algorithm->name, algorithm) || c.protocol != p ||
	    fabs(c.time_s * 1e6 / us - 1) > 1e-6)
		fail_msg("%.0f bytes: %s/%s %.5f us, not %s/%s %.5f us", bytes,
			 c.algorithm->name, ft_protocol_name(c.protocol),
			 c.time_s * 1e6, algorithm, ft_protocol_name(p), us);
}

/* Computed by hand from the published constants. */
static void one_hopper_node_is_priced_as_nccl_does(void **state)
{
	struct ft_ccl *ccl = ccl_named("nccl-2.30");
	struct group g = hopper_node(ccl);

	(void)state;
	priced(&g, FT_ALL_REDUCE, KiB, "ring", FT_LL, 15.01271);
	priced(&g, FT_ALL_REDUCE, MiB, "ring", FT_LL, 28.01424);
	priced(&g, FT_ALL_REDUCE, 8 * MiB, "nvls", FT_SIMPLE, 55.84047);
	priced(&g, FT_ALL_REDUCE, GiB, "nvls", FT_SIMPLE, 3972.5802);
	priced(&g, FT_ALL_GATHER, 8 * MiB, "ring", FT_LL128, 52.23217);
	priced(&g, FT_ALL_GATHER, GiB, "ring", FT_SIMPLE, 2968.2128);
	g.nvls.channels = 0;
	priced(&g, FT_ALL_REDUCE, GiB, "ring", FT_SIMPLE, 5928.0256);
	ft_ccl_free(ccl);
}

/* A ring alone: base 8.4, 14 hops of 3.4 us, 370 GB/s. */
static void a_ring_is_base_hops_and_wire(void **state)
{
	struct ft_ccl *ccl = ccl_named("nccl-2.30");
	struct group g = hopper_node(ccl);

	(void)state;
	g.ring = (struct search){ 1, 370e9, 0 };
	near_frac(tuner_ring_s(&g, FT_SIMPLE, FT_ALL_REDUCE, GiB), 5134.5086e-6, 1e-8);
	ft_ccl_free(ccl);
}

static struct group searched(const struct ft_ccl *ccl, const char *generation,
			     double ranks, double domains, double ring_bytes_per_s,
			     double net_bytes_per_s)
{
	struct group g = { .ccl = ccl,
			   .tuning = ft_ccl_tuning(ccl, generation),
			   .ranks = ranks,
			   .per_domain = ranks / domains,
			   .domains = domains };

	assert_non_null(g.tuning);
	tuner_search(&g, ring_bytes_per_s, net_bytes_per_s);
	return g;
}

/* Measured: NVLS from five ranks on H200, from six on B200; ring/LL to 1 MiB and
 * NVLS/Simple from 2 MiB on eight H200. */
static void switch_points_are_the_measured_ones(void **state)
{
	struct ft_ccl *ccl = ccl_named("nccl-2.30");

	(void)state;
	for (int n = 2; n <= 8; n++) {
		struct group h = searched(ccl, "hopper", n, 1, 367e9, 0);
		struct group b = searched(ccl, "blackwell", n, 1, 682e9, 0);

		assert_int_equal(
			!strcmp(chosen(&h, FT_ALL_REDUCE, GiB).algorithm->name, "nvls"),
			n >= 5);
		assert_int_equal(
			!strcmp(chosen(&b, FT_ALL_REDUCE, GiB).algorithm->name, "nvls"),
			n >= 6);
	}
	for (double bytes = KiB; bytes <= MiB; bytes *= 2) {
		struct group h = searched(ccl, "hopper", 8, 1, 367e9, 0);
		struct choice c = chosen(&h, FT_ALL_REDUCE, bytes);

		assert_string_equal(c.algorithm->name, "ring");
		assert_int_equal(c.protocol, FT_LL);
	}
	ft_ccl_free(ccl);
}

/* Latency decides small messages, so trees win there; rings win the large ones. */
static void trees_win_small_and_rings_win_large_on_many_nodes(void **state)
{
	struct ft_ccl *ccl = ccl_named("nccl-2.30");
	struct group g = searched(ccl, "ampere", 512, 64, 230e9, 192e9);
	struct ft_collective_call pat = call_of(FT_ALL_GATHER, MiB, 512, 1);

	(void)state;
	assert_string_equal(chosen(&g, FT_ALL_REDUCE, KiB).algorithm->name, "tree");
	assert_string_equal(chosen(&g, FT_ALL_REDUCE, 16 * GiB).algorithm->name,
			    "ring");
	/* others than all-reduce know the ring alone, with one GPU a node PAT too */
	assert_string_equal(chosen(&g, FT_ALL_GATHER, KiB).algorithm->name, "ring");
	pat.algorithm = "pat";
	assert_null(choose_by_library(&g, &pat).algorithm);
	g.domains = 512;
	near_frac(choose_by_library(&g, &pat).time_s,
		  1e-6 * (8 + 9 * 14 / 3.5 + 2.8 * 512 + MiB / (1000 * 0.75 * 192)),
		  1e-9);
	ft_ccl_free(ccl);
}

/* By hand, eight Hopper nodes of eight. Tree by LL128: 16 channels of 24.25 GB/s, 0.92 and
 * 120/128 of them, 0.6 at 1 MiB; with fast NICs its limit of 29 GB/s a channel. NVLS tree:
 * eight heads of 45.5 GB/s, the limit, of 48.5. */
static void trees_between_nodes_are_priced_as_nccl_does(void **state)
{
	struct ft_ccl *ccl = ccl_named("nccl-2.30");
	struct group g = hopper_node(ccl);
	const double latency_us = 14 + 2 * (7 * 1.25 + 3 * 8.5);

	(void)state;
	g.ranks = 64;
	g.domains = 8;
	g.ring = (struct search){ 16, 20e9, 24.25e9 };
	near_frac(tuner_tree_s(&g, FT_LL128, FT_ALL_REDUCE, MiB) * 1e6,
		  latency_us + MiB / (0.5 * 388 * 0.92 * 0.9375 * 0.6) * 1e-3, 1e-9);
	g.ring.inter_bytes_per_s = 100e9;
	near_frac(tuner_tree_s(&g, FT_LL128, FT_ALL_REDUCE, MiB) * 1e6,
		  latency_us + MiB / (0.5 * 16 * 29 * 0.6) * 1e-3, 1e-9);
	g.nvls = (struct search){ 8, 40e9, 48.5e9 };
	near_frac(tuner_nvls_tree_s(&g, FT_SIMPLE, FT_ALL_REDUCE, GiB) * 1e6,
		  25 + 6 * 20.9 + GiB / (64 / 126.0 * 8 * 45.5) * 1e-3, 1e-9);
	ft_ccl_free(ccl);
}

/* Windows hold on two nodes and more; whole bytes of an all-reduce, a rank's of others;
 * beyond two nodes LL128 goes on to 3.8 times the size. */
static void rccl_keeps_to_its_windows(void **state)
{
	struct ft_ccl *ccl = ccl_named("rccl-7");
	struct group one = searched(ccl, "cdna4", 8, 1, 330e9, 0);
	struct group two = searched(ccl, "cdna4", 16, 2, 330e9, 400e9);
	struct group four = searched(ccl, "cdna4", 32, 4, 330e9, 400e9);

	(void)state;
	assert_int_equal(tuner_window(&one, FT_ALL_REDUCE, 64 * MiB), -1);
	assert_int_equal(tuner_window(&two, FT_BROADCAST, 64 * MiB), -1);
	assert_int_equal(chosen(&two, FT_ALL_REDUCE, 256 * KiB).protocol, FT_LL);
	assert_int_equal(chosen(&two, FT_ALL_REDUCE, 64 * MiB).protocol, FT_LL128);
	assert_int_equal(chosen(&two, FT_ALL_REDUCE, 128 * MiB).protocol, FT_SIMPLE);
	assert_int_equal(chosen(&four, FT_ALL_REDUCE, 128 * MiB).protocol, FT_LL128);
	assert_int_equal(chosen(&four, FT_ALL_REDUCE, GiB).protocol, FT_SIMPLE);
	assert_int_equal(chosen(&two, FT_ALL_GATHER, MiB).protocol, FT_LL);
	assert_int_equal(chosen(&two, FT_ALL_GATHER, 2 * MiB).protocol, FT_LL128);
	assert_int_equal(chosen(&two, FT_ALL_GATHER, 256 * MiB).protocol, FT_SIMPLE);
	ft_ccl_free(ccl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_hopper_node_is_priced_as_nccl_does),
		cmocka_unit_test(a_ring_is_base_hops_and_wire),
		cmocka_unit_test(switch_points_are_the_measured_ones),
		cmocka_unit_test(trees_win_small_and_rings_win_large_on_many_nodes),
		cmocka_unit_test(trees_between_nodes_are_priced_as_nccl_does),
		cmocka_unit_test(rccl_keeps_to_its_windows),
	};

	return cmocka_run_group_tests_name("sim/tuner", tests, NULL, NULL);
}
