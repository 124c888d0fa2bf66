/*
 * tests/test_refused.c - what a cluster may not say: each mistake has its words and its place
 *
 * A cluster that is right is changed at one place; the error must name what is wrong, and
 * stand where it was written.
 */
#include "tests/check.h"

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/hw.h"

struct mistake {
	const char *yaml;
	const char *says;
};

/* Is it refused, with these words, where it stands? */
static bool is_refused(const char *yaml, const char *says)
{
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	struct node *node = node_read_text(&mem, "c", yaml, strlen(yaml), &err);
	struct ft_cluster *c;

	bool good;

	ok_or_say(node, err);
	c = ft_cluster_load(node, &err);
	good = !c && strstr(err.text, says) && !strcmp(err.file, "c") &&
	       err.line >= 1 && err.column >= 1;
	if (!good)
		print_error("%s\n%s: %s:%d:%d: %s\nwanted: %s\n", yaml,
			    c ? "taken" : "says", err.file, err.line, err.column,
			    err.text, says);
	ft_cluster_free(c);
	arena_release(&mem);
	return good;
}

static void taken(const char *yaml)
{
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	struct node *node = node_read_text(&mem, "c", yaml, strlen(yaml), &err);
	struct ft_cluster *c = node ? ft_cluster_load(node, &err) : NULL;

	ok_or_say(c, err);
	ft_cluster_free(c);
	arena_release(&mem);
}

/* Each mistake in the place of %s. */
static void all_refused(const char *around, const struct mistake *m, size_t n)
{
	char yaml[4096];
	size_t bad = 0;

	for (size_t i = 0; i < n; i++) {
		snprintf(yaml, sizeof(yaml), "%.*s%s%s",
			 (int)(strchr(around, '@') - around), around, m[i].yaml,
			 strchr(around, '@') + 1);
		bad += !is_refused(yaml, m[i].says);
	}
	assert_int_equal(bad, 0);
}
#define ALL_REFUSED(around, m) all_refused(around, m, sizeof(m) / sizeof(*(m)))

static void a_gpu_by_another_is_held_to_its_bounds(void **state)
{
	static const struct mistake m[] = {
		{ "gemm.sharpness: 0.5", "sharpness" },
		{ "gemm.grouped_sharpness: 0", "grouped_sharpness" },
		{ "gemm.wave_loss: 2", "wave_loss" },
		{ "gemm.distance: {m: 1000}", "m" },
		{ "gemm.batched_fp32: {rows_32: 2}", "rows_32" },
		{ "gemm.batched_fp32: {rows_16: 0.4}", "rows_16" },
		{ "gemm.tuned: {bf16: 1}", "needs 'sources'" },
		{ "gemm.tuned: {bf16: 1, sources: x}", "needs 'sources'" },
		{ "gemm.tuned: {bf16: 1, sources: [[x]]}", "is a list of words" },
		{ "attention.kernels.flex: {backward: [{head_dim: 64}]}",
		  "needs 'else'" },
		{ "attention.kernels.fa3: {else: fa2, backward: 64}",
		  "is a list of shapes" },
		{ "attention.kernels.fa3: {else: fa2, backward: [{windows: true}]}",
		  "head_dim" },
		{ "attention.kernels.fa3: {else: fa2, backward: [{head_dim: [64]}]}",
		  "or [least, most]" },
		{ "attention.kernels.fa3: {else: fa2, forward: [{head_dim: 5000}]}",
		  "from 1 to 4096" },
		{ "attention.kernels.fa3: {else: fa2, forward: [{head_dim: [64, 32]}]}",
		  "the least first" },
		{ "attention.kernels.fa3: {sizes: 64}", "is a rising list" },
		{ "attention.kernels.fa3: {sizes: [64, 64]}", "is a rising list" },
		{ "attention.kernels.fa3: {sizes: [64, 80]}", "multiples of 32" },
		{ "attention.kernels.fa3: {else: fa2, backward: [64]}",
		  "is a list of shapes" },
		{ "attention.kernels.fa3: {else: fa2, backward: [~]}",
		  "is a list of shapes" },
		{ "attention.kernels.fa9: {sizes: [64]}", "fa9: is no implementation" },
		{ "attention.kernels.fa9: ~", "fa9: is no implementation" },
		{ "attention.kernels.fa3: {else: fa9, backward: [{head_dim: 64}]}",
		  "else: is no implementation" },
		{ "attention.kernels.fa3: {else: fa3, forward: [{head_dim: 64}]}",
		  "fa3: comes back to itself" },
		{ "attention.kernels: {fa2: {else: fa3, backward: []}, "
		  "fa3: {else: fa2, backward: [{head_dim: 64}]}}",
		  "fa2: comes back to itself" },
		{ "attention.kernels.fa3: {size: [64]}", "unknown key 'size'" },
		{ "memory_bound.curves.copy.sharpness: 0.5", "sharpness" },
		{ "memory_bound.curves.copy.row_sharpness: 0.5", "row_sharpness" },
		{ "memory_bound.curves.copy.traffic: 0", "traffic" },
		{ "memory_bound.curves: {\"a<b\": {start: 1 us, bandwidth: 1 GB/s}}",
		  "is not a name" },
		{ "memory_bound.curves.copy.by_row: {x: {start: 1 us, bandwidth: 1 "
		  "GB/s}}",
		  "should be a row length" },
		{ "memory_bound.curves.copy.by_row: {0: {start: 1 us, bandwidth: 1 "
		  "GB/s}}",
		  "should be a row length" },
		{ "memory_bound.curves.copy.by_row: {2048: {start: 1 us, bandwidth: 1 "
		  "GB/s}, 2048.0: {start: 1 us, bandwidth: 1 GB/s}}",
		  "was given before" },
		{ "memory_bound.curves.copy.by_row: {1024: {start: 1 us}}",
		  "bandwidth" },
		{ "collectives.nvlink.mesh: true", "lacks the key 'link'" },
		{ "collectives.xgmi: {port: 64 GB/s, start: 1 us}",
		  "lacks the key 'bus'" },
		{ "collectives.xgmi: {port: 64 GB/s, start: 1 us, link: 50 GB/s, pairs: 7}",
		  "is a list of [rank, rank, links]" },
		{ "collectives.xgmi: {port: 64 GB/s, start: 1 us, link: 50 GB/s, ranks: 16, "
		  "pairs: [[0, 1, 1]]}",
		  "at most 8 ranks" },
		{ "collectives.xgmi: {port: 64 GB/s, start: 1 us, link: 50 GB/s, pairs: [[0, 1, 1]]}",
		  "without a way to the others" },
		{ "collectives.xgmi: {port: 64 GB/s, start: 1 us, link: 50 GB/s, pairs: [x]}",
		  "a pair is [rank, rank, links]" },
		{ "collectives.xgmi: {port: 64 GB/s, start: 1 us, link: 50 GB/s, pairs: [[0, 1]]}",
		  "a pair is [rank, rank, links]" },
		{ "collectives.xgmi: {port: 64 GB/s, start: 1 us, link: 50 GB/s, pairs: [[0, 8, 1]]}",
		  "whole numbers from 0 to 7" },
		{ "collectives.xgmi: {port: 64 GB/s, start: 1 us, link: 50 GB/s, pairs: [[0, 1x, 1]]}",
		  "whole numbers from 0 to 7" },
		{ "collectives.xgmi: {port: 64 GB/s, start: 1 us, link: 50 GB/s, pairs: [[0, [1], "
		  "1]]}",
		  "whole numbers from 0 to 7" },
		{ "collectives.xgmi: {port: 64 GB/s, start: 1 us, link: 50 GB/s, pairs: [[0, -1, 1]]}",
		  "whole numbers from 0 to 7" },
		{ "collectives.xgmi: {port: 64 GB/s, start: 1 us, link: 50 GB/s, pairs: [['', 1, 1]]}",
		  "whole numbers from 0 to 7" },
		{ "collectives.xgmi: {port: 64 GB/s, start: 1 us, link: 50 GB/s, pairs: [[0, 1, ~]]}",
		  "links are a whole number from 1" },
		{ "collectives.xgmi: {port: 64 GB/s, start: 1 us, link: 50 GB/s, pairs: [[0, 1, 0]]}",
		  "links are a whole number from 1" },
		{ "collectives.xgmi: {port: 64 GB/s, start: 1 us, link: 50 GB/s, pairs: [[1, 1, 1]]}",
		  "joins two different ranks" },
		{ "collectives.xgmi: {port: 64 GB/s, start: 1 us, link: 50 GB/s, pairs: [[0, 1, 1], "
		  "[1, 0, 1]]}",
		  "this pair is given twice" },
		{ "compute_units: 0", "compute_units" },
		{ "memory: 80 GB", "should be a map" },
		{ "peak: [1]", "should be a map" },
		{ "power: 700 W", "should be a map" },
		{ "launch: {floor: 2 us, gap: 1 us, more: 1}", "more" },
	};

	(void)state;
	taken("{gpu: {extends: h100-sxm, gemm.sharpness: 1.5}, gpus: 8}");
	taken("{gpu: {extends: h100-sxm, memory_bound.curves.copy.by_row: {provenance: "
	      "{kind: assumed, date: 2026-11-22}, 1024: {start: 1 us, bandwidth: 1 GB/s}}}, "
	      "gpus: 8}");
	ALL_REFUSED("{gpu: {extends: h100-sxm, @}, gpus: 8}", m);
}

static void a_drawn_network_is_whole(void **state)
{
	static const struct mistake m[] = {
		{ "switches: x, attach: []", "should be a list" },
		{ "attach: []", "switches" },
		{ "switches: []", "should be 1 to 2048 names" },
		{ "switches: [[a]], attach: []", "a switch is a name" },
		{ "switches: [a<b], attach: []", "is not a name" },
		{ "switches: [a, a], attach: []", "two switches 'a'" },
		{ "switches: [a]", "attach" },
		{ "switches: [a], attach: {}", "should be a list" },
		{ "switches: [a], attach: [{switch: b}]", "there is no switch 'b'" },
		{ "switches: [a], attach: [{nodes: 3}]", "switch" },
		{ "switches: [a], attach: [{nodes: [0, 1, 2], switch: a}]",
		  "should be a number from 0 to" },
		{ "switches: [a], attach: [{nodes: [0, x], switch: a}]",
		  "should be a number from 0 to" },
		{ "switches: [a], attach: [{nodes: [[0], 1], switch: a}]",
		  "should be a number from 0 to" },
		{ "switches: [a], attach: [{nodes: -1, switch: a}]",
		  "should be a number from 0 to" },
		{ "switches: [a], attach: [{nics: [0, 65], switch: a}]",
		  "should be a number from 0 to 64" },
		{ "switches: [a], attach: [{nodes: '', switch: a}]",
		  "nodes: should be a number from 0 to" },
		{ "switches: [a], attach: [{nodes: [0, ''], switch: a}]",
		  "nodes: should be a number from 0 to" },
		{ "switches: [a], attach: [{nics: [\"\", 3], switch: a}]",
		  "nics: should be a number from 0 to 64" },
		{ "switches: [a], attach: [{nodes: [2, 1], switch: a}]",
		  "ends before it begins" },
		{ "switches: [a, b], attach: [{nodes: [0, 3], switch: a}, "
		  "{nodes: 3, switch: b}]",
		  "attached to a already" },
		{ "switches: [a], attach: [{switch: a}], cables: 7",
		  "should be a list" },
		{ "switches: [a], attach: [{switch: a}], cables: [{from: a, to: a}]",
		  "joins two switches" },
		{ "switches: [a, b], attach: [{switch: a}], "
		  "cables: [{from: a, to: b, rate: 0 Gb/s}]",
		  "is zero" },
		{ "switches: [a, b], attach: [{switch: a}], "
		  "cables: [{from: a, to: b}, {from: a, to: b}]",
		  "joined twice" },
		{ "switches: [a, b], attach: [{switch: a}], "
		  "cables: [{from: a, to: b}, {from: b, to: a}]",
		  "joined twice" },
		{ "switches: [a, b], attach: [{switch: a}], "
		  "cables: [{from: a, to: b, count: 0}]",
		  "count" },
		{ "switches: [a, b], attach: [{nodes: 0, switch: a}, "
		  "{nodes: 1, switch: b}]",
		  "there is no path from a to b" },
		{ "switches: [a, b], attach: [{switch: a}]", "no cable leads to b" },
		{ "switches: [a, b, c, d, e, f, g, h, i, j], "
		  "attach: [{nodes: 0, switch: a}, {nodes: 1, switch: j}], "
		  "cables: [{from: a, to: b}, {from: b, to: c}, {from: c, to: d}, "
		  "{from: d, to: e}, {from: e, to: f}, {from: f, to: g}, "
		  "{from: g, to: h}, {from: h, to: i}, {from: i, to: j}]",
		  "j is 9 cables from a" },
		{ "switches: [a], attach: [{switch: a}], lines: 7", "lines" },
	};
	static const char around[] =
		"{gpu: h100-sxm, gpus: 16, fabric: {extends: roce-400-rail, "
		"provenance: {kind: assumed, date: 2026-11-22}, wiring: graph, "
		"graph: {@}}}";

	(void)state;
	taken("{gpu: h100-sxm, gpus: 16, fabric: {extends: roce-400-rail, "
	      "wiring: graph, graph: {switches: [a, b], attach: [{nodes: 0, switch: a}, "
	      "{nodes: [1, 1], switch: b}], cables: [{from: a, to: b, count: 4}]}}}");
	ALL_REFUSED(around, m);
}

static void a_fabric_is_held_to_its_bounds(void **state)
{
	static const struct mistake m[] = {
		{ "rails_per_leaf: 2, wiring: tor", "belongs to wiring: rail" },
		{ "oversubscription: 0.1", "is not between 0.125 and 64" },
		{ "oversubscription: 65", "is not between 0.125 and 64" },
		{ "core_oversubscription: 0.5", "is not between 1 and 64" },
		{ "core_oversubscription: 65", "is not between 1 and 64" },
		{ "efficiency: 0", "efficiency" },
		{ "switch.upper_radix: 33", "should be even" },
		{ "switch.power: 100 W", "power" },
		{ "switch: 64", "should be a map" },
		{ "links: 7", "should be a map" },
		{ "wiring: web", "wiring" },
	};

	(void)state;
	ALL_REFUSED("{gpu: h100-sxm, gpus: 16, fabric: {extends: ib-ndr-rail, @}}", m);
}

static void a_cluster_is_held_to_its_bounds(void **state)
{
	static const struct mistake m[] = {
		{ "gpus: 16, slow_gpus: 3", "slow_gpus" },
		{ "gpus: 16, imperfections: {slow_gpus: 3}", "should be a list of" },
		{ "gpus: 16, imperfections: {slow_gpus: [{gpu: 16, speed_frac: 0.5}]}",
		  "gpu" },
		{ "gpus: 16, imperfections: {slow_gpus: [{speed_frac: 0.5}]}", "gpu" },
		{ "gpus: 16, imperfections: {slow_gpus: [{gpu: 1, speed_frac: 0}]}",
		  "should be above 0" },
		{ "gpus: 16, imperfections: {slow_gpus: [{gpu: 1, speed_frac: 0.5}, "
		  "{gpu: 1, speed_frac: 0.6}]}",
		  "name GPU 1 twice" },
		{ "gpus: 16, imperfections: {slow_nic_rate_frac: 0}",
		  "should be above 0" },
		{ "gpus: 16, imperfections: {slow_nic_rate_frac: 0.2}",
		  "has an effect only with slow_nics_frac" },
		{ "gpus: 16, imperfections: {failed_uplinks_frac: 1}",
		  "should be below 1" },
		{ "gpus: 1024, imperfections: {failed_spines: 99}",
		  "some must be left" },
		{ "gpus: 1024, fabric: {extends: ib-ndr-rail, wiring: rail-only}, "
		  "imperfections: {failed_spines: 9}",
		  "a leaf reaches 2 of 16 spine switches" },
		{ "gpus: 16, imperfections: {placement: anywhere}", "placement" },
		{ "gpus: 16, fabric: none", "connects no nodes" },
		{ "gpus: 0", "gpus" },
		{ "gpus: 16, optics: cheap", "optics" },
		{ "gpus: 16, node: {extends: hgx-h100, nics: 8}", "should be a map" },
		{ "gpus: 16, node: {extends: hgx-h100, scale_up: fast}",
		  "should be a map" },
		{ "gpus: 16, node: {extends: hgx-h100, price: 7}", "should be a map" },
		{ "gpus: 16, node: {extends: hgx-h100, host_memory_size: 0 B}",
		  "should be above 0; leave it out if it is unknown" },
		{ "gpus: 16, node: {extends: hgx-h100, scale_up.fabric: pcie}",
		  "needs a bandwidth of its own" },
		{ "gpus: 16, node: {extends: hgx-h100, power: {value: 100 km}}",
		  "power" },
		{ "", "gpus" },
	};

	(void)state;
	taken("{gpu: h100-sxm, gpus: 1024, imperfections: {failed_spines: 1}}");
	taken("{gpu: h100-sxm, gpus: 1024, fabric: {extends: ib-ndr-rail, wiring: "
	      "rail-only}, imperfections: {failed_spines: 8}}");
	ALL_REFUSED("{gpu: h100-sxm, @}", m);
	assert_true(is_refused("{gpus: 8}", "gpu"));
}

/* Watts are drawn as logarithms: a range from 0 on would count as none. */
static void no_range_of_watts_begins_at_nothing(void **state)
{
#define FROM(unit, provenance) \
	"{value: 0.5" unit ", low: 0" unit ", high: 0.9" unit provenance "}"
#define ASSUMED ", provenance: {kind: assumed, date: 2026-11-25}"
#define SITE(fact) \
	{ \
		"gpu: h100-sxm, site: {extends: standard, parts: {gpu: {class: server, " fact \
		"}}}", \
			"has a range that begins at 0" \
	}
	static const struct mistake m[] = {
		{ "gpu: {extends: h100-sxm, power.idle: " FROM(" kW", "") "}",
		  "idle: has a range that begins at 0" },
		{ "gpu: {extends: h100-sxm, power.limit: " FROM(" kW", "") "}",
		  "limit: has a range that begins at 0" },
		{ "gpu: h100-sxm, node: {extends: hgx-h100, power: " FROM(" kW",
									  "") "}",
		  "power: has a range that begins at 0" },
		SITE("power: " FROM(" kW", ASSUMED)),
		SITE("typical_frac: " FROM("", ASSUMED)),
		SITE("memory_frac: " FROM("", ASSUMED)),
		SITE("waiting_frac: " FROM("", ASSUMED)),
	};

	(void)state;
	taken("{gpu: {extends: h100-sxm, power.idle: {value: 90 W, low: 1 W, high: 95 W}}, "
	      "gpus: 8}");
	taken("{gpu: {extends: h100-sxm, power.idle: 0 W}, gpus: 8}");
	ALL_REFUSED("{gpus: 8, @}", m);
#undef FROM
#undef ASSUMED
#undef SITE
}

/* Of a list, the item that is wrong. */
static void an_item_is_pointed_at(void **state)
{
	const char *yaml =
		"gpu: h100-sxm\ngpus: 16\nfabric:\n  extends: ib-ndr-rail\n  wiring: graph\n  graph:\n"
		"    switches: [a]\n    attach:\n"
		"      - {nodes: [0, ''], switch: a}\n";
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	struct node *node = node_read_text(&mem, "c", yaml, strlen(yaml), &err);

	(void)state;
	ok_or_say(node, err);
	assert_null(ft_cluster_load(node, &err));
	assert_string_equal(err.file, "c");
	assert_int_equal(err.line, 9);
	assert_int_equal(err.column, 21);
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_item_is_pointed_at),
		cmocka_unit_test(no_range_of_watts_begins_at_nothing),
		cmocka_unit_test(a_gpu_by_another_is_held_to_its_bounds),
		cmocka_unit_test(a_drawn_network_is_whole),
		cmocka_unit_test(a_fabric_is_held_to_its_bounds),
		cmocka_unit_test(a_cluster_is_held_to_its_bounds),
	};

	return cmocka_run_group_tests_name("refused", tests, NULL, NULL);
}
