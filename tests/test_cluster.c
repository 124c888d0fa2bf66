/* tests/test_cluster.c - a cluster map, its defaults, what it refuses */
#include "tests/check.h"

#include <math.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/node.h"
#include "foretoken/hw.h"

static struct ft_cluster *load(const char *yaml, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct node *node = node_read_text(&mem, "test.yaml", yaml, strlen(yaml), err);
	struct ft_cluster *cluster;

	assert_non_null(node);
	cluster = ft_cluster_load(node, err);
	arena_release(&mem);
	return cluster;
}

static struct ft_cluster *good(const char *yaml)
{
	struct ft_error err;
	struct ft_cluster *cluster = load(yaml, &err);

	if (!cluster)
		fail_msg("%s: %s:%d:%d: %s", yaml, err.file, err.line, err.column,
			 err.text);
	return cluster;
}

static void a_gpu_names_its_node_and_that_its_fabric(void **state)
{
	struct ft_cluster *c = good("{gpu: h100-sxm, gpus: 1016, "
				    "ufm_ports: 4}");

	(void)state;
	assert_string_equal(c->node->name, "hgx-h100");
	assert_string_equal(c->fabric->name, "ib-ndr-rail");
	assert_int_equal(c->nodes, 127);
	assert_int_equal(c->ranks, 1016);
	assert_int_equal(c->topology.leaf, 32);
	assert_int_equal(c->topology.spine, 16);
	assert_int_equal(c->topology.cables_node_leaf, 1020);
	assert_int_equal(c->topology.cables_leaf_spine, 1024);
	assert_true(c->nic_bytes_per_s == 50e9);
	ft_cluster_free(c);
}

static void a_node_of_twin_port_cages_needs_fewer_modules(void **state)
{
	struct ft_cluster *hgx = good("{gpu: h100-sxm, gpus: 1024}");
	struct ft_cluster *dgx = good("{gpu: h100-sxm, gpus: 1024, node: dgx-h100}");

	(void)state;
	assert_int_equal(hgx->topology.transceivers, 2560);
	assert_int_equal(dgx->topology.transceivers, 2048);
	ft_cluster_free(hgx);
	ft_cluster_free(dgx);
}

static void whole_nodes_are_bought(void **state)
{
	struct ft_cluster *two = good("{gpu: h200, gpus: 2, fabric: none}");
	struct ft_cluster *twelve = good("{gpu: h200, gpus: 12}");

	(void)state;
	assert_int_equal(two->nodes, 1);
	assert_int_equal(two->topology.tiers, 0);
	assert_int_equal(two->domain_ranks, 2);
	assert_int_equal(twelve->nodes, 2);
	assert_int_equal(twelve->topology.tiers, 1);
	ft_cluster_free(two);
	ft_cluster_free(twelve);
}

static void a_card_of_two_dies_is_two_ranks(void **state)
{
	struct ft_cluster *c = good("{gpu: mi250, gpus: 128}");

	(void)state;
	assert_int_equal(c->nodes, 32);
	assert_int_equal(c->ranks, 256);
	assert_int_equal(c->ranks_per_node, 8);
	assert_int_equal(c->domain_ranks, 8);
	assert_true(c->nic_bytes_per_s == 100e9 / 8);
	ft_cluster_free(c);
}

static void a_rack_is_one_scale_up_domain(void **state)
{
	struct ft_cluster *c = good("{gpu: gb200, gpus: 576}");
	struct ft_cluster *rack = good("{gpu: gb200, gpus: 72, fabric: none}");

	(void)state;
	assert_int_equal(c->nodes, 144);
	assert_int_equal(c->domain_ranks, 72);
	assert_int_equal(c->topology.endpoints, 576);
	assert_int_equal(rack->nodes, 18);
	ft_cluster_free(c);
	ft_cluster_free(rack);
}

/* Two domains of four GPUs in a node exchange through its NICs: their switch is bought. One
 * domain, and a job that has one of the two, need none. */
static void domains_of_one_node_are_on_a_network(void **state)
{
#define HALVES "node: {extends: hgx-h100, scale_up.gpus: 4}}"
	struct ft_cluster *two = good("{gpu: h100-sxm, gpus: 8, " HALVES);
	struct ft_cluster *half = good("{gpu: h100-sxm, gpus: 4, " HALVES);
#undef HALVES

	(void)state;
	assert_int_equal(two->topology.tiers, 1);
	assert_int_equal(two->topology.leaf, 1);
	assert_int_equal(two->topology.endpoints, 8);
	assert_int_equal(half->topology.tiers, 0);
	ft_cluster_free(two);
	ft_cluster_free(half);
}

/* 800 Gb/s NICs on 400 Gb/s ports: two planes, as in NVIDIA's B300 design. */
static void fast_nics_are_served_by_planes(void **state)
{
	struct ft_cluster *c =
		good("{gpu: b300, gpus: 4096, fabric: spectrum-x-400-rail}");

	(void)state;
	assert_int_equal(c->topology.planes, 2);
	assert_int_equal(c->topology.leaf, 128);
	assert_int_equal(c->topology.spine, 64);
	assert_int_equal(c->topology.cables_node_leaf, 4096);
	assert_true(c->nic_bytes_per_s == 100e9);
	ft_cluster_free(c);
}

/* A NIC of one link is no faster than its port, whatever other fabrics carry. */
static void a_nic_of_one_link_runs_at_its_ports_rate(void **state)
{
	static const struct {
		const char *yaml;
		int64_t planes;
		double gb_per_s; /* of a rank */
	} of[] = {
		{ "{gpu: h100-sxm, gpus: 64, fabric: ib-hdr-rail}", 1, 25 },
		{ "{gpu: h100-sxm, gpus: 64, fabric: tcpxo-a3mega}", 1, 25 },
		{ "{gpu: b300, gpus: 64, fabric: ib-ndr-rail}", 2, 100 },
		{ "{gpu: b300, gpus: 64, fabric: ib-hdr-rail}", 2, 50 },
		{ "{gpu: b300, gpus: 64, fabric: {extends: ib-ndr-rail, planes: 1}}", 1,
		  50 },
		{ "{gpu: b300, gpus: 16, fabric: {extends: ib-ndr-rail, wiring: graph, "
		  "graph: {switches: [a], attach: [{nodes: [0, 1], switch: a}]}}}",
		  1, 50 },
		{ "{gpu: h100-sxm, gpus: 64, fabric: ib-hdr-rail, node: {extends: "
		  "hgx-h100, nics: {links: 2}}}",
		  2, 50 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct ft_cluster *c = good(of[i].yaml);

		assert_int_equal(c->topology.planes, of[i].planes);
		assert_true(fabs(c->nic_bytes_per_s / 1e9 / of[i].gb_per_s - 1) < 1e-9);
		ft_cluster_free(c);
	}
}

static void slow_ports_bound_the_nics(void **state)
{
	struct ft_cluster *c = good("{gpu: a100-80g, gpus: 64, fabric: opa100-x4}");

	(void)state;
	assert_int_equal(c->nics_per_node, 4);
	assert_true(c->nic_bytes_per_s == 12.5e9 / 2);
	ft_cluster_free(c);
}

static void mistakes_point_at_their_key(void **state)
{
	static const struct {
		const char *yaml;
		int line, column;
		const char *text;
	} wrong[] = {
		{ "gpu: h100-sxm\ngpus: 16\nfabric: none", 3, 9,
		  "fabric none connects no nodes, but 16 GPUs take 2 nodes" },
		{ "gpu: h100-sxm\ngpus: 2097160", 2, 7, "do not fit 4 tiers" },
		{ "gpu: h100-sxm\ngpus: 16\nfabric: ib-ndr-rial", 3, 9, "ib-ndr-rail" },
		{ "gpu: h100-sxm\ngpus: 16\nfabric: {extends: ib-ndr-rail, planes: 8}",
		  3, 9, "split each port among the planes (switch.split: 8)" },
		{ "gpu: mi250\ngpus: 16\nfabric: roce-100-x8", 3, 9,
		  "fabric roce-100-x8 takes 8 NICs of a node, mi250-4x has 4 (nics.count)" },
		{ "gpu: h100-sxm\ngpus: 16\nfabric: {extends: ib-ndr-rail, "
		  "links.copper_node: true}",
		  3, 9,
		  "fiber has modules at its ends, which links.copper_node leaves out" },
		{ "gpu: h100-sxm\ngpus: 128\nfabric: {extends: ib-ndr-rail, "
		  "links.cable_switch_item: dac-400g}",
		  3, 9,
		  "has its own ends, but modules are bought: say links.copper_leaf" },
		{ "gpu: h100-sxm\ngpus: 16\nsite: {extends: standard, racks.power: 8 kW}",
		  2, 7, "hgx-h100 of 10.2 kW is more than a rack's 8 kW" },
		{ "gpu: h100-sxm\ngpus: 16\nnode: {extends: hgx-h100, rack_units: 41}",
		  2, 7, "of 41 units does not fit a rack of 42, of which two" },
		{ "gpu: h100-sxm\ngpus: 16\nnode: {extends: hgx-h100, scale_up.gpus: 5}",
		  3, 42,
		  "5 GPUs of a domain are neither a part of the 8 of a node nor" },
		{ "gpu: h100-sxm\ngpus: 16\nnodes: hgx-h100", 3, 1,
		  "did you mean 'node'" },
		{ "gpu: h100-sxm\ngpus: 0", 2, 7, "not between" },
		{ "gpu: h100-sxm", 1, 1, "lacks the key 'gpus'" },
	};
	struct ft_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct ft_cluster *c = load(wrong[i].yaml, &err);

		if (c || !strstr(err.text, wrong[i].text) ||
		    err.line != wrong[i].line || err.column != wrong[i].column)
			fail_msg("case %zu: %d:%d: %s", i, err.line, err.column,
				 c ? "no error" : err.text);
	}
}

static void every_node_and_fabric_loads(void **state)
{
	struct arena mem = { 0 };
	struct ft_error err;
	size_t n;
	const char **name = file_list(&mem, "hw/nodes", &n, &err);

	(void)state;
	assert_true(n >= 14);
	for (size_t i = 0; i < n; i++) {
		struct ft_node *node = ft_node_load(name[i], NULL, &err);
		struct ft_fabric *fabric;

		if (!node)
			fail_msg("%s: %d:%d: %s", err.file, err.line, err.column,
				 err.text);
		assert_string_equal(node->name, name[i]);
		fabric = ft_fabric_load(node->default_fabric, NULL, &err);
		assert_non_null(fabric);
		ft_fabric_free(fabric);
		ft_node_free(node);
	}
	name = file_list(&mem, "hw/fabrics", &n, &err);
	assert_true(n >= 14);
	for (size_t i = 0; i < n; i++) {
		struct ft_fabric *fabric = ft_fabric_load(name[i], NULL, &err);

		if (!fabric)
			fail_msg("%s: %d:%d: %s", err.file, err.line, err.column,
				 err.text);
		assert_string_equal(fabric->name, name[i]);
		assert_true(fabric->efficiency.value <= 1);
		ft_fabric_free(fabric);
	}
	arena_release(&mem);
}

/* What a site says of a part that is known leaves the rest of it as it is. */
static void a_fact_of_a_part_leaves_the_others(void **state)
{
	struct ft_cluster *was = good("{gpu: h100-sxm, gpus: 8}");
	struct ft_cluster *is =
		good("{gpu: h100-sxm, gpus: 8, site: {extends: standard, "
		     "parts: {gpu: {life_years: 4}}}}");
	const struct ft_part *a = ft_parts_gpu(was->parts),
			     *b = ft_parts_gpu(is->parts);

	(void)state;
	assert_true(b->life_years.value == 4 && a->life_years.value == 5);
	assert_true(a->mttf_years.value == b->mttf_years.value &&
		    a->memory_frac.value == b->memory_frac.value &&
		    a->waiting_frac.value == b->waiting_frac.value &&
		    a->clock_exponent.value == b->clock_exponent.value &&
		    a->limit_window_s.value == b->limit_window_s.value &&
		    a->typical_frac.value == b->typical_frac.value &&
		    a->part_class == b->part_class);
	assert_string_equal(a->title, b->title);
	ft_cluster_free(was);
	ft_cluster_free(is);
}

/* h100-sxm with these keys laid upon it: what a format's products run at for seconds. */
static struct ft_number sustained(const char *keys, enum ft_dtype d, double *e)
{
	char yaml[300];
	struct ft_cluster *c;
	struct ft_number rate;

	snprintf(yaml, sizeof(yaml), "{gpu: {extends: h100-sxm%s}, gpus: 8}", keys);
	c = good(yaml);
	rate = c->gpu->sustained[d];
	*e = ft_parts_gpu(c->parts)->clock_exponent.value;
	ft_cluster_free(c);
	return rate;
}

/* They are a chip's: under another limit it is the clock that gives way. */
static void products_ask_for_the_same_watts_under_any_limit(void **state)
{
	static const int limits[] = { 200, 350, 699, 701, 1400 };
	static const enum ft_dtype formats[] = { FT_BF16, FT_FP8 };

	(void)state;
	for (int k = 0; k < 2; k++) {
		double e, usual = sustained("", formats[k], &e).value;

		assert_true(usual > 0.8 && usual < 1 && e > 2 && e < 3);
		for (int i = 0; i < 5; i++) {
			char keys[60];
			struct ft_number rate;
			double asked;

			snprintf(keys, sizeof(keys), ", power.limit: %d W", limits[i]);
			rate = sustained(keys, formats[k], &e);
			asked = limits[i] * pow(rate.value, -e);
			assert_true(fabs(asked / (700 * pow(usual, -e)) - 1) < 1e-9);
			assert_true(rate.low <= rate.value && rate.value <= rate.high);
		}
	}
}

/* A rate that is given holds under the limit beside it, and of another peak nothing is known. */
static void a_rate_holds_under_the_limit_that_it_was_given_with(void **state)
{
	char path[] = "/tmp/foretoken-cluster-XXXXXX.yaml", yaml[200];
	double e, usual = sustained("", FT_BF16, &e).value, half;
	FILE *f = fdopen(mkstemps(path, 5), "w");
	struct ft_cluster *c;

	(void)state;
	assert_true(
		sustained(", power.limit: 350 W, gemm.sustained.bf16: 0.8", FT_BF16, &e)
			.value == 0.8);
	assert_true(
		sustained(", power.limit: 350 W, peak.bf16: 1200 TFLOP/s", FT_BF16, &e)
			.value == usual);
	half = sustained(", power.limit: 350 W", FT_BF16, &e).value;
	assert_true(half < 0.8 * usual);
	fputs("extends: h100-sxm\nname: half\nprovenance: {kind: assumed}\n"
	      "power: {limit: 350 W}\n",
	      f);
	fclose(f);
	snprintf(yaml, sizeof(yaml),
		 "{gpu: {extends: %s, memory.capacity: 90 GB}, gpus: 8}", path);
	c = good(yaml); /* the limit of the file between */
	assert_true(fabs(c->gpu->sustained[FT_BF16].value / half - 1) < 1e-12);
	ft_cluster_free(c);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_ask_for_the_same_watts_under_any_limit),
		cmocka_unit_test(a_rate_holds_under_the_limit_that_it_was_given_with),
		cmocka_unit_test(a_fact_of_a_part_leaves_the_others),
		cmocka_unit_test(a_gpu_names_its_node_and_that_its_fabric),
		cmocka_unit_test(a_node_of_twin_port_cages_needs_fewer_modules),
		cmocka_unit_test(whole_nodes_are_bought),
		cmocka_unit_test(a_card_of_two_dies_is_two_ranks),
		cmocka_unit_test(a_rack_is_one_scale_up_domain),
		cmocka_unit_test(domains_of_one_node_are_on_a_network),
		cmocka_unit_test(fast_nics_are_served_by_planes),
		cmocka_unit_test(a_nic_of_one_link_runs_at_its_ports_rate),
		cmocka_unit_test(slow_ports_bound_the_nics),
		cmocka_unit_test(mistakes_point_at_their_key),
		cmocka_unit_test(every_node_and_fabric_loads),
	};

	return cmocka_run_group_tests_name("hw/cluster", tests, NULL, NULL);
}
