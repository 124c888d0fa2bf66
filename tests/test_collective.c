/* tests/test_collective.c - collectives across nodes: exact terms and shapes */
#include "tests/ccl.h"

#include <math.h>

#include "base/arena.h"
#include "base/csv.h"
#include "base/node.h"
#include "foretoken/sim.h"
#include "sim/across.h"

static const double MiB = 1048576.0, GiB = 1073741824.0;

static struct ft_cluster *cluster(struct arena *mem, const char *text)
{
	struct ft_error err;
	struct node *n = node_read_text(mem, "c", text, strlen(text), &err);
	struct ft_cluster *c;

	ok_or_say(n, err);
	c = ft_cluster_load(n, &err);
	ok_or_say(c, err);
	return c;
}

static struct ft_collective_result predict(const struct ft_cluster *c,
					   enum ft_collective op, double bytes,
					   int64_t n, int64_t stride)
{
	struct ft_collective_call call = call_of(op, bytes, n, stride);
	/* of the years of the published tables */
	struct ft_ccl *ccl = ccl_of(
		c->gpu, strcmp(c->gpu->vendor, "amd") ? "nemo-24" : "mi300x-vendor");
	struct ft_collective_result r;
	struct ft_error err;

	ok_or_say(ft_collective_predict(c, ccl, &call, &r, &err), err);
	ft_ccl_free(ccl);
	return r;
}

/* The same under a library by name. */
static double seconds_under(const struct ft_cluster *c, const char *library,
			    enum ft_collective op, double bytes, int64_t n)
{
	struct ft_collective_call call = call_of(op, bytes, n, 1);
	struct ft_ccl *ccl = ccl_named(library);
	struct ft_collective_result r;
	struct ft_error err;

	ok_or_say(ft_collective_predict(c, ccl, &call, &r, &err), err);
	ft_ccl_free(ccl);
	return r.duration.time_s;
}

static double busbw(const struct ft_cluster *c, enum ft_collective op, double bytes,
		    int64_t n)
{
	return bytes * ft_collective_bus_factor(op, n) /
	       predict(c, op, bytes, n, 1).duration.time_s;
}

static void latency_grows_with_ranks_and_not_under_sharp(void **state)
{
	struct arena mem = { 0 };
	struct ft_cluster *plain = cluster(&mem, "{gpu: h100-sxm, gpus: 1024, "
						 "fabric: ib-ndr-rail}");
	struct ft_cluster *sharp = cluster(&mem, "{gpu: h100-sxm, gpus: 1024, "
						 "fabric: ib-ndr-rail-sharp}");
	double t16, t1024, s16, s1024;

	(void)state;
	t16 = predict(plain, FT_ALL_REDUCE, 16 * MiB, 16, 1).duration.time_s;
	t1024 = predict(plain, FT_ALL_REDUCE, 16 * MiB, 1024, 1).duration.time_s;
	s16 = predict(sharp, FT_ALL_REDUCE, 16 * MiB, 16, 1).duration.time_s;
	s1024 = predict(sharp, FT_ALL_REDUCE, 16 * MiB, 1024, 1).duration.time_s;
	assert_true(t1024 > 1.3 * t16);
	near_frac(s1024, s16, 0.10);
	/* growth without SHARP is that of a tree: the same for each doubling */
	near_frac(predict(plain, FT_ALL_REDUCE, 64 * 1024, 1024, 1).duration.time_s -
			  predict(plain, FT_ALL_REDUCE, 64 * 1024, 512, 1)
				  .duration.time_s,
		  predict(plain, FT_ALL_REDUCE, 64 * 1024, 512, 1).duration.time_s -
			  predict(plain, FT_ALL_REDUCE, 64 * 1024, 256, 1)
				  .duration.time_s,
		  0.05);
	ft_cluster_free(plain);
	ft_cluster_free(sharp);
	arena_release(&mem);
}

/* The same bytes cross a NIC whether the algorithm was chosen or asked for. */
static void the_switch_reduces_what_a_nic_carries(void **state)
{
	static const char *const names[] = { NULL, "sharp", "ring" };
	const double carried[] = { GiB / 8, GiB / 8, GiB / 8 * 2 * 63 / 64 };
	struct arena mem = { 0 };
	struct ft_cluster *c = cluster(&mem, "{gpu: h100-sxm, gpus: 64, "
					     "fabric: ib-ndr-rail-sharp}");
	struct ft_ccl *ccl = ccl_named("nccl-2.30");

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct ft_collective_call call = call_of(FT_ALL_REDUCE, GiB, 64, 1);
		struct ft_collective_result r;
		struct ft_error err;

		call.algorithm = names[i];
		ok_or_say(ft_collective_predict(c, ccl, &call, &r, &err), err);
		assert_string_equal(r.algorithm, i < 2 ? "sharp" : "ring");
		near_frac(r.nic_bytes, carried[i], 1e-9);
	}
	ft_ccl_free(ccl);
	ft_cluster_free(c);
	arena_release(&mem);
}

/* Published of 2024: RCCL (of ROCm 6) over RoCE reaches about half of NCCL over
 * InfiniBand at 16 to 256 MiB on 32 GPUs and more. */
static void roce_reaches_about_half_of_infiniband(void **state)
{
	struct arena mem = { 0 };
	struct ft_cluster *ib = cluster(&mem, "{gpu: h100-sxm, gpus: 256, "
					      "fabric: ib-ndr-rail}");
	struct ft_cluster *roce = cluster(&mem, "{gpu: mi300x, gpus: 256, "
						"fabric: roce-400-rail}");

	(void)state;
	for (int64_t n = 32; n <= 256; n *= 2)
		for (double b = 16 * MiB; b <= 256 * MiB; b *= 4) {
			double rccl =
				seconds_under(roce, "rccl-6", FT_ALL_REDUCE, b, n);
			double wire = b * ft_collective_bus_factor(FT_ALL_REDUCE, n);
			double ratio = wire / rccl / busbw(ib, FT_ALL_REDUCE, b, n);

			if (ratio < 0.4 || ratio > 0.6)
				fail_msg("%lld GPUs, %.0f MiB: %.2f", (long long)n,
					 b / MiB, ratio);
		}
	ft_cluster_free(ib);
	ft_cluster_free(roce);
	arena_release(&mem);
}

/* Published: the other collectives are 2 to 4 times slower at sizes of training. */
static void rccl_over_roce_gathers_at_a_half_to_a_quarter(void **state)
{
	static const enum ft_collective ops[] = { FT_ALL_GATHER, FT_REDUCE_SCATTER,
						  FT_ALL_TO_ALL };
	struct arena mem = { 0 };
	struct ft_cluster *ib = cluster(&mem, "{gpu: h100-sxm, gpus: 256, "
					      "fabric: ib-ndr-rail}");
	struct ft_cluster *roce = cluster(&mem, "{gpu: mi300x, gpus: 256, "
						"fabric: roce-400-rail}");

	(void)state;
	for (int i = 0; i < 3; i++)
		for (double b = 16 * MiB; b <= 256 * MiB; b *= 4) {
			double rccl = seconds_under(roce, "rccl-6", ops[i], b, 256);
			double wire = b * ft_collective_bus_factor(ops[i], 256);
			double ratio = wire / rccl / busbw(ib, ops[i], b, 256);

			if (ratio < 0.25 || ratio > 0.6)
				fail_msg("%s, %.0f MiB: %.2f",
					 ft_collective_name(ops[i]), b / MiB, ratio);
		}
	ft_cluster_free(ib);
	ft_cluster_free(roce);
	arena_release(&mem);
}

/* Hierarchical all-reduce, SHARP's part of it and the law of rings, by hand: 4 nodes
 * of 8, 4 GiB, 370 GB/s inside, NICs of 48.5. */
/* A tree waits at each hop: 2 (7 a + log2(nodes) b) more than without. */
static void trees_of_rocm_7_wait_at_their_hops(void **state)
{
	struct arena mem = { 0 };
	struct ft_cluster *c = cluster(&mem, "{gpu: mi300x, gpus: 64}");
	struct ft_ccl *seven = ccl_named("rccl-7");
	const double *wait = ft_ccl_tuning(seven, "cdna3")->tree.wait_s;

	(void)state;
	assert_true(wait[0] > 0 && wait[1] > wait[0]);
	for (int nodes = 2; nodes <= 8; nodes *= 2) {
		double six = seconds_under(c, "rccl-6", FT_ALL_REDUCE, 2048, nodes * 8);
		double now = seconds_under(c, "rccl-7", FT_ALL_REDUCE, 2048, nodes * 8);

		near_frac(now - six, 2 * (7 * wait[0] + log2(nodes) * wait[1]), 1e-9);
	}
	ft_ccl_free(seven);
	ft_cluster_free(c);
	arena_release(&mem);
}

static void laws_reproduce_worked_numbers(void **state)
{
	const double s = 4 * GiB, us = 1e-6;
	double in = across_wire_s(FT_REDUCE_SCATTER, 8, s, 370e9);
	double net = across_wire_s(FT_ALL_REDUCE, 4, s / 8, 48.5e9);
	double flat = across_wire_s(FT_ALL_REDUCE, 32, s, 388e9);

	(void)state;
	near_frac(in, 10157.0173 * us, 1e-8);
	near_frac(net, 16604.2550 * us, 1e-8);
	near_frac(across_overlap_s(2 * in, net, 0), 36918.2895 * us, 1e-8);
	near_frac(across_overlap_s(2 * in, net, 1), 20314.0345 * us, 1e-8);
	near_frac(flat, 21447.1627 * us, 1e-8);
	near_frac(across_sharp_net_s(s, 8, 48.5e9), 11069.5033 * us, 1e-8);
	near_frac(net / across_sharp_net_s(s, 8, 48.5e9), 1.5, 1e-12);
	near_frac(1024 * 4.58 * us +
			  across_wire_s(FT_ALL_GATHER, 1024, GiB, 0.97 * 388e9),
		  7540.0987 * us, 1e-8);
}

static void each_algorithm_can_be_asked_for(void **state)
{
	static const char *const all[] = { "ring", "tree", "nvlstree", "sharp",
					   "hierarchical" };
	struct arena mem = { 0 };
	struct ft_cluster *c = cluster(&mem, "{gpu: h100-sxm, gpus: 64, "
					     "fabric: ib-ndr-rail-sharp}");
	struct ft_collective_call call = call_of(FT_ALL_REDUCE, GiB, 64, 1);
	struct ft_ccl *ccl = ccl_named("nccl-2.30");
	struct ft_collective_result r;
	struct ft_error err;

	(void)state;
	for (int i = 0; i < 5; i++) {
		call.algorithm = all[i];
		ok_or_say(ft_collective_predict(c, ccl, &call, &r, &err), err);
		assert_string_equal(r.algorithm, all[i]);
		assert_string_equal(r.chosen_by, "asked");
		assert_true(r.duration.time_s > GiB / 400e9);
	}
	call.algorithm = "ring";
	call.protocol = "LL";
	ok_or_say(ft_collective_predict(c, ccl, &call, &r, &err), err);
	assert_string_equal(r.protocol, "LL");
	assert_true(r.regret_frac > 1); /* ten times less bandwidth */
	call.algorithm = "sharp";
	call.protocol = "LL128";
	assert_false(ft_collective_predict(c, ccl, &call, &r, &err));
	assert_non_null(strstr(err.text, "cannot run as 'sharp LL128'"));
	call = call_of(FT_ALL_GATHER, MiB, 8, 8);
	call.algorithm = "pat";
	ok_or_say(ft_collective_predict(c, ccl, &call, &r, &err), err);
	assert_string_equal(r.algorithm, "pat");
	call.shape = (struct ft_group_shape){ 64, 1, false };
	assert_false(ft_collective_predict(c, ccl, &call, &r, &err));
	assert_non_null(strstr(err.text, "cannot run as 'pat'"));
	call.algorithm = "hierarchical"; /* of as many ranks in each server */
	ok_or_say(ft_collective_predict(c, ccl, &call, &r, &err), err);
	call.shape = (struct ft_group_shape){ 9, 1, false };
	assert_false(ft_collective_predict(c, ccl, &call, &r, &err));
	assert_non_null(strstr(err.text, "cannot run as 'hierarchical'"));
	ft_ccl_free(ccl);
	ft_cluster_free(c);
	arena_release(&mem);
}

static void a_rail_group_has_one_nic_a_rank(void **state)
{
	struct arena mem = { 0 };
	struct ft_cluster *c = cluster(&mem, "{gpu: h100-sxm, gpus: 256, "
					     "fabric: ib-ndr-rail}");
	struct ft_collective_result r = predict(c, FT_ALL_GATHER, GiB, 32, 8);
	double least = GiB * 31 / 32 / 50e9;

	(void)state;
	assert_int_equal(r.domains, 32);
	assert_true(r.duration.time_s > least);
	assert_true(r.duration.time_s < 1.15 * least);
	near_frac(r.nic_bytes, GiB * 31 / 32, 1e-9);
	near_frac(r.scale_up_bytes, 0, 0);
	ft_cluster_free(c);
	arena_release(&mem);
}

/* Of all groups, rank by rank, the one whose poorest server has the fewest ranks; then that of
 * most servers. false: each lies in one server. */
static bool poorest(struct ft_group_shape s, int64_t *fewest, int64_t *most)
{
	enum { RANKS = 384, PER = 8 };

	*fewest = *most = 0;
	for (int64_t g = 0; g < (s.tiles ? RANKS / s.size : 1); g++) {
		int64_t in[RANKS / PER + 1] = { 0 }, n = s.size, k = 0;
		int64_t from = g / s.stride * s.stride * s.size + g % s.stride;

		if (from + (s.size - 1) * s.stride >= RANKS)
			continue;
		for (int64_t i = 0; i < s.size; i++)
			in[(from + i * s.stride) / PER]++;
		for (int64_t d = 0; d <= RANKS / PER; d++) {
			k += in[d] > 0;
			n = in[d] && in[d] < n ? in[d] : n;
		}
		if (k > 1 && (!*fewest || n < *fewest || (n == *fewest && k > *most))) {
			*fewest = n;
			*most = k;
		}
	}
	return *fewest > 0;
}

/* A gather goes at the pace of the server with the fewest NICs. */
static void groups_need_not_fill_servers(void **state)
{
	static const int64_t sizes[] = { 2, 3, 4, 6, 8, 9, 12, 16, 20, 24, 48 };
	struct arena mem = { 0 };
	struct ft_cluster *c = cluster(&mem, "{gpu: h100-sxm, gpus: 384, "
					     "fabric: ib-ndr-rail}");
	double nic =
		GiB * 47 / 48 / predict(c, FT_ALL_GATHER, GiB, 48, 8).duration.time_s;
	struct ft_ccl *ccl = ccl_named("nccl-2.27");
	struct ft_error err;

	(void)state;
	for (size_t i = 0; i < 11 * 10 * 2; i++) {
		struct ft_collective_call call = {
			.op = FT_ALL_GATHER,
			.bytes = 64 * GiB,
			.algorithm = "ring",
			.shape = { sizes[i % 11], (int64_t)(i / 11 % 10) + 1,
				   i >= 110 },
		};
		struct ft_collective_result r;
		int64_t fewest, most;
		double n = (double)call.shape.size;
		bool across = poorest(call.shape, &fewest, &most);

		if (call.shape.size * call.shape.stride > 384)
			continue;
		if (!across)
			call.algorithm = NULL;
		ok_or_say(ft_collective_predict(c, ccl, &call, &r, &err), err);
		assert_int_equal(r.domains > 1, across);
		if (!across)
			continue;
		if (fewest > 1)
			assert_int_equal(r.domains, most);
		near_frac(r.duration.time_s,
			  call.bytes * (n - 1) / n / ((double)fewest * nic), 0.06);
	}
	ft_ccl_free(ccl);
	ft_cluster_free(c);
	arena_release(&mem);
}

/* However few ranks a server has, they take in what all others hold. */
static void switches_gather_no_faster_than_the_poorest_server(void **state)
{
	static const int64_t sizes[] = { 9, 12, 13, 16, 17, 31, 64 };
	struct arena mem = { 0 };
	struct ft_cluster *c = cluster(&mem, "{gpu: h100-sxm, gpus: 384, "
					     "fabric: ib-ndr-rail-sharp}");
	struct ft_ccl *ccl = ccl_named("nccl-2.27");
	struct ft_error err;

	(void)state;
	for (size_t i = 0; i < 7 * 4 * 2; i++) {
		struct ft_collective_call call = {
			.op = i % 2 ? FT_ALL_GATHER : FT_REDUCE_SCATTER,
			.bytes = 64 * GiB,
			.algorithm = "sharp",
			.shape = { sizes[i / 8], (int64_t)(i / 2 % 4) + 1, false },
		};
		double n = (double)call.shape.size, carried;
		struct ft_collective_result r;
		int64_t fewest, most;

		assert_true(poorest(call.shape, &fewest, &most));
		ok_or_say(ft_collective_predict(c, ccl, &call, &r, &err), err);
		carried = call.bytes * (n - (double)fewest) / n / (double)fewest;
		near_frac(r.nic_bytes, carried, 1e-12);
		assert_true(r.duration.time_s >= carried / 50e9);
	}
	ft_ccl_free(ccl);
	ft_cluster_free(c);
	arena_release(&mem);
}

/* Each rank of another node adds the fabric's time to an all-to-all, and to nothing else. */
static void an_exchange_pays_for_each_peer(void **state)
{
	static const int64_t ranks[] = { 16, 32, 256 };
	struct arena mem = { 0 };
	struct ft_cluster *efa = cluster(&mem, "{gpu: h100-sxm, gpus: 256, "
					       "fabric: efa-400-rail}");
	struct ft_fabric free_peers = *efa->fabric;
	struct ft_cluster without = *efa;
	double peer_s = free_peers.exchange_peer_s.value;

	(void)state;
	free_peers.exchange_peer_s.value = 0;
	without.fabric = &free_peers;
	near_frac(peer_s, 6e-6, 1e-12);
	for (size_t i = 0; i < 3; i++)
		for (int op = 0; op < FT_COLLECTIVES; op++) {
			double less = predict(&without, op, 64 * MiB, ranks[i], 1)
					      .duration.time_s;
			double more =
				predict(efa, op, 64 * MiB, ranks[i], 1).duration.time_s;
			double peers = op == FT_ALL_TO_ALL ? (double)ranks[i] - 8 : 0;

			near_frac(more, less + peers * peer_s, 1e-12);
		}
	ft_cluster_free(efa);
	arena_release(&mem);
}

static void nodes_without_a_fabric_are_refused(void **state)
{
	struct arena mem = { 0 };
	struct ft_error err;
	const char *text = "{gpu: h100-sxm, gpus: 16, fabric: none}";
	struct node *n = node_read_text(&mem, "c", text, strlen(text), &err);

	(void)state;
	assert_null(ft_cluster_load(n, &err));
	assert_int_equal(err.line, 1);
	arena_release(&mem);
}

/* Published ratios of achieved to peak bus bandwidth, 2 to 128 nodes of 8 GPUs
 * with eight 400 Gb/s NICs, NIC-bound all_gather; peak 8 x 48.5 GB/s. */
static void multi_node_ratios_follow_the_published_table(void **state)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct csv *t = csv_read_file(&mem, "tests/data/multi_node_ratio.csv", &err);
	double sum = 0;
	size_t n = 0;

	(void)state;
	ok_or_say(t, err);
	for (size_t i = 0; i < t->n_rows; i++) {
		struct ft_cluster *c;
		double bytes, gpus, ratio, predicted;

		assert_true(csv_number(t, i, csv_column(t, "bytes"), 0, &bytes, &err));
		assert_true(csv_number(t, i, csv_column(t, "gpus"), 0, &gpus, &err));
		assert_true(csv_number(t, i, csv_column(t, "busbw_over_peak"), 0,
				       &ratio, &err));
		if (strcmp(csv_text(t, i, 0), "nic_ratio") || gpus < 16)
			continue;
		c = cluster(&mem, "{gpu: h100-sxm, gpus: 1024, fabric: "
				  "ib-ndr-rail}");
		predicted = busbw(c, FT_ALL_GATHER, bytes, (int64_t)gpus) / 388e9;
		if (getenv("VERBOSE"))
			print_message("%5.0f gpus %12.0f bytes: %.4f, predicted "
				      "%.4f\n",
				      gpus, bytes, ratio, predicted);
		sum += fabs(ratio / predicted - 1);
		n++;
		ft_cluster_free(c);
	}
	print_message("multi-node all_gather ratios: %zu cells, MAPE %.1f %%\n", n,
		      100 * sum / (double)n);
	assert_true(n > 50);
	assert_true(sum / (double)n < 0.10);
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latency_grows_with_ranks_and_not_under_sharp),
		cmocka_unit_test(the_switch_reduces_what_a_nic_carries),
		cmocka_unit_test(roce_reaches_about_half_of_infiniband),
		cmocka_unit_test(rccl_over_roce_gathers_at_a_half_to_a_quarter),
		cmocka_unit_test(trees_of_rocm_7_wait_at_their_hops),
		cmocka_unit_test(laws_reproduce_worked_numbers),
		cmocka_unit_test(each_algorithm_can_be_asked_for),
		cmocka_unit_test(a_rail_group_has_one_nic_a_rank),
		cmocka_unit_test(groups_need_not_fill_servers),
		cmocka_unit_test(switches_gather_no_faster_than_the_poorest_server),
		cmocka_unit_test(an_exchange_pays_for_each_peer),
		cmocka_unit_test(nodes_without_a_fabric_are_refused),
		cmocka_unit_test(multi_node_ratios_follow_the_published_table),
	};

	return cmocka_run_group_tests_name("sim/collective", tests, NULL, NULL);
}
