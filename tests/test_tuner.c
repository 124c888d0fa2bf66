/* tests/test_tuner.c - what NCCL and RCCL choose: exact prices, known switch points */
#include "tests/check.h"

#include <math.h>

#include "sim/tuner.h"

static const double KiB = 1024, MiB = 1048576, GiB = 1073741824;

/* One Hopper node of eight: 16 rings and trees of 20 GB/s, 8 NVLS heads of 40. */
static struct tuner_input hopper_node(void)
{
	return (struct tuner_input){ .generation = TUNER_HOPPER,
				     .ranks = 8,
				     .nodes = 1,
				     .ring = { 16, 20, 0 },
				     .tree = { 16, 20, 0 },
				     .nvls = { 8, 40, 0 } };
}

static void chosen(const struct tuner_input *in, enum ft_collective op, double bytes,
		   enum tuner_algorithm a, enum tuner_protocol p, double us)
{
	struct tuner_choice c = tuner_choose(in, op, bytes);

	if (c.algorithm != a || c.protocol != p || fabs(c.us / us - 1) > 1e-6)
		fail_msg("%.0f bytes: %s/%s %.5f us, not %s/%s %.5f us", bytes,
			 tuner_algorithm_name(c.algorithm),
			 tuner_protocol_name(c.protocol), c.us, tuner_algorithm_name(a),
			 tuner_protocol_name(p), us);
}

/* Computed by hand from the published constants. */
static void one_hopper_node_is_priced_as_nccl_does(void **state)
{
	struct tuner_input in = hopper_node();

	(void)state;
	chosen(&in, FT_ALL_REDUCE, KiB, TUNER_RING, TUNER_LL, 15.01271);
	chosen(&in, FT_ALL_REDUCE, MiB, TUNER_RING, TUNER_LL, 28.01424);
	chosen(&in, FT_ALL_REDUCE, 8 * MiB, TUNER_NVLS, TUNER_SIMPLE, 55.84047);
	chosen(&in, FT_ALL_REDUCE, GiB, TUNER_NVLS, TUNER_SIMPLE, 3972.5802);
	chosen(&in, FT_ALL_GATHER, 8 * MiB, TUNER_RING, TUNER_LL128, 52.23217);
	chosen(&in, FT_ALL_GATHER, GiB, TUNER_RING, TUNER_SIMPLE, 2968.2128);
	in.nvls.channels = 0;
	chosen(&in, FT_ALL_REDUCE, GiB, TUNER_RING, TUNER_SIMPLE, 5928.0256);
}

/* A ring alone: base 8.4, 14 hops of 3.4 us, 370 GB/s. */
static void a_ring_is_base_hops_and_wire(void **state)
{
	struct tuner_input in = { .generation = TUNER_HOPPER,
				  .ranks = 8,
				  .nodes = 1,
				  .ring = { 1, 370, 0 } };

	(void)state;
	near_frac(tuner_us(&in, FT_ALL_REDUCE, GiB, TUNER_RING, TUNER_SIMPLE),
		  5134.5086, 1e-8);
}

static struct ft_gpu *gpu(const char *name)
{
	struct ft_error err;
	struct ft_gpu *g = ft_gpu_load(name, NULL, &err);

	ok_or_say(g, err);
	return g;
}

/* Measured: NVLS from five ranks on H200, from six on B200; ring/LL to 1 MiB and
 * NVLS/Simple from 2 MiB on eight H200. */
static void switch_points_are_the_measured_ones(void **state)
{
	struct ft_gpu *h200 = gpu("h200"), *b200 = gpu("b200");

	(void)state;
	for (int n = 2; n <= 8; n++) {
		struct tuner_input h = tuner_input_of(h200, n, 1, 367, 0);
		struct tuner_input b = tuner_input_of(b200, n, 1, 682, 0);

		assert_int_equal(tuner_choose(&h, FT_ALL_REDUCE, GiB).algorithm ==
					 TUNER_NVLS,
				 n >= 5);
		assert_int_equal(tuner_choose(&b, FT_ALL_REDUCE, GiB).algorithm ==
					 TUNER_NVLS,
				 n >= 6);
	}
	for (double bytes = KiB; bytes <= MiB; bytes *= 2) {
		struct tuner_input h = tuner_input_of(h200, 8, 1, 367, 0);

		assert_int_equal(tuner_choose(&h, FT_ALL_REDUCE, bytes).algorithm,
				 TUNER_RING);
		assert_int_equal(tuner_choose(&h, FT_ALL_REDUCE, bytes).protocol,
				 TUNER_LL);
	}
	ft_gpu_free(h200);
	ft_gpu_free(b200);
}

/* Latency decides small messages, so trees win there; rings win the large ones. */
static void trees_win_small_and_rings_win_large_on_many_nodes(void **state)
{
	struct ft_gpu *a100 = gpu("a100-80g");
	struct tuner_input in = tuner_input_of(a100, 512, 64, 230, 192);

	(void)state;
	assert_int_equal(tuner_choose(&in, FT_ALL_REDUCE, KiB).algorithm, TUNER_TREE);
	assert_int_equal(tuner_choose(&in, FT_ALL_REDUCE, 16 * GiB).algorithm,
			 TUNER_RING);
	/* others than all-reduce know the ring alone, with one GPU a node PAT too */
	assert_int_equal(tuner_choose(&in, FT_ALL_GATHER, KiB).algorithm, TUNER_RING);
	assert_true(isinf(tuner_us(&in, FT_ALL_GATHER, MiB, TUNER_PAT, TUNER_SIMPLE)));
	in.nodes = 512;
	near_frac(tuner_us(&in, FT_ALL_GATHER, MiB, TUNER_PAT, TUNER_SIMPLE),
		  8 + 9 * 14 / 3.5 + 2.8 * 512 + MiB / (1000 * 0.75 * 192), 1e-9);
	ft_gpu_free(a100);
}

static void rccl_keeps_to_its_windows(void **state)
{
	struct ft_gpu *mi = gpu("mi355x");
	struct tuner_input in = tuner_input_of(mi, 8, 1, 330, 0);

	(void)state;
	assert_int_equal(tuner_choose(&in, FT_ALL_REDUCE, 256 * KiB).protocol,
			 TUNER_LL);
	assert_int_equal(tuner_choose(&in, FT_ALL_REDUCE, 64 * MiB).protocol,
			 TUNER_LL128);
	assert_int_equal(tuner_choose(&in, FT_ALL_REDUCE, GiB).protocol, TUNER_SIMPLE);
	assert_int_equal(tuner_choose(&in, FT_ALL_GATHER, 128 * KiB).protocol,
			 TUNER_LL128);
	ft_gpu_free(mi);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_hopper_node_is_priced_as_nccl_does),
		cmocka_unit_test(a_ring_is_base_hops_and_wire),
		cmocka_unit_test(switch_points_are_the_measured_ones),
		cmocka_unit_test(trees_win_small_and_rings_win_large_on_many_nodes),
		cmocka_unit_test(rccl_keeps_to_its_windows),
	};

	return cmocka_run_group_tests_name("sim/tuner", tests, NULL, NULL);
}
