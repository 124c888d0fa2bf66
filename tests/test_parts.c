/*
 * tests/test_parts.c - the table of parts: lines, distances, sums; against published power,
 * failures and savings
 */
#include <math.h>

#include "foretoken/cost.h"
#include "tests/clusters.h"

static int64_t count_of(const struct ft_cluster *c, const char *item)
{
	int64_t n = 0;

	for (size_t i = 0; i < c->parts->n; i++)
		if (!strcmp(c->parts->line[i].item, item))
			n += c->parts->line[i].count;
	return n;
}

static int64_t role_of(const struct ft_cluster *c, const char *role)
{
	int64_t n = 0;

	for (size_t i = 0; i < c->parts->n; i++)
		if (!strcmp(c->parts->line[i].role, role))
			n += c->parts->line[i].count;
	return n;
}

/* A NIC of 800 Gb/s meets ports of 200 Gb/s as two planes, and a module of 200 Gb/s carries one. */
static void modules_slower_than_a_nic_are_one_for_each_plane(void **state)
{
	struct ft_cluster *c = good("{gpu: b300, gpus: 64, fabric: ib-hdr-rail}");
	struct ft_cluster *one = good("{gpu: h100-sxm, gpus: 64}");

	(void)state;
	assert_int_equal(role_of(c, "optics in nodes"), 2 * c->topology.optics_node);
	assert_int_equal(ft_parts_modules(c->parts),
			 c->topology.transceivers + c->topology.optics_node);
	assert_int_equal(ft_parts_modules(one->parts), one->topology.transceivers);
	ft_cluster_free(one);
	ft_cluster_free(c);
}

static double full_w(const struct ft_parts *p)
{
	return ft_parts_w(p) + ft_parts_gpus_w(p) + ft_parts_spares_w(p);
}

/* Every switch, module and cable of the topology is in the table, once. */
static void the_table_holds_what_the_topology_counts(void **state)
{
	static const char *const cluster[] = {
		"{gpu: h100-sxm, gpus: 1016, ufm_ports: 4}",
		"{gpu: h200, gpus: 16384}",
		"{gpu: mi300x, gpus: 16384}",
		"{gpu: h100-sxm, gpus: 100000}",
		"{gpu: h100-sxm, gpus: 128, fabric: roce-400-tor}",
		"{gpu: gb300, gpus: 9216}",
		"{gpu: h100-sxm, gpus: 512, fabric: {extends: ib-ndr-rail, wiring: "
		"rail-only}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cluster) / sizeof(*cluster); i++) {
		struct ft_cluster *c = good(cluster[i]);
		const struct ft_topology *t = &c->topology;

		assert_null(c->parts->unknown);
		assert_int_equal(role_of(c, "leaf switch"), t->leaf);
		assert_int_equal(role_of(c, "spine switch"), t->spine);
		assert_int_equal(role_of(c, "core switch"), t->core);
		assert_int_equal(role_of(c, "top switch"), t->top);
		assert_int_equal(role_of(c, "optics in nodes"), t->optics_node);
		assert_int_equal(role_of(c, "optics in leaves, to nodes") +
					 role_of(c, "optics leaf to spine") +
					 role_of(c, "optics spine to core") +
					 role_of(c, "optics core to top"),
				 t->optics_switch);
		assert_int_equal(role_of(c, "cables node to leaf"),
				 t->cables_node_leaf);
		assert_int_equal(role_of(c, "cables leaf to spine") +
					 role_of(c, "cables spine to core") +
					 role_of(c, "cables core to top"),
				 t->cables_leaf_spine + t->cables_spine_core +
					 t->cables_core_top);
		assert_int_equal(role_of(c, "GPU"), c->nodes * c->node->gpus);
		assert_int_equal(role_of(c, "NIC"), c->nodes * c->nics_per_node);
		ft_cluster_free(c);
	}
}

/* SemiAnalysis's provisioned kW a GPU, facility included (InferenceX constants, 2026-04),
 * against full load x 1.25, without spares: within 10 %, whoever makes the GPU. */
static void full_load_is_the_published_power(void **state)
{
	static const struct {
		const char *gpu;
		int64_t gpus;
		double kw;
	} row[] = { { "h100-sxm", 1024, 1.73 }, { "h200", 1024, 1.73 },
		    { "b200", 1024, 2.17 },	{ "gb200", 1152, 2.10 },
		    { "mi300x", 1024, 1.79 },	{ "mi325x", 1024, 2.18 },
		    { "mi355x", 1024, 2.65 } };

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		char yaml[120];
		struct ft_cluster *c;
		double kw;

		snprintf(yaml, sizeof(yaml),
			 "{gpu: %s, gpus: %lld, site: {extends: standard, "
			 "spares_frac: 0}}",
			 row[i].gpu, (long long)row[i].gpus);
		c = good(yaml);
		kw = 1.25 * full_w(c->parts) / (double)row[i].gpus / 1000;
		print_message("# %s: %.3f kW, published %.2f, %+.1f %%\n", row[i].gpu,
			      kw, row[i].kw, 100 * (kw / row[i].kw - 1));
		if (!(fabs(kw / row[i].kw - 1) < 0.10))
			fail_msg("%s: %.3f kW", row[i].gpu, kw);
		ft_cluster_free(c);
	}
}

/* SemiAnalysis, 100,000 H100 Clusters, 2024-06-17: about 150 MW of critical IT. */
static void a_hundred_thousand_take_150_megawatts(void **state)
{
	struct ft_cluster *c = good("{gpu: h100-sxm, gpus: 100000}");
	double mw = full_w(c->parts) / 1e6;

	(void)state;
	print_message("# 100,000 H100: %.0f MW of IT, published about 150, %+.1f %%\n",
		      mw, 100 * (mw / 150 - 1));
	assert_true(fabs(mw / 150 - 1) < 0.10);
	ft_cluster_free(c);
}

/* Llama 3 on 16,384 H100 in 54 days: 356 of 419 interruptions are of parts: GPUs 268, hosts
 * 46, network 42; 62 are of software. The rates are those, so that this holds the sums, not the rates. */
static void failures_add_up_to_those_of_llama_3(void **state)
{
	struct ft_cluster *c = good("{gpu: h100-sxm, gpus: 16384}");
	double hours = 54 * 24.;
	double servers = hours * ft_parts_failures_per_hour(c->parts, FT_PART_SERVER);
	double network = hours * ft_parts_failures_per_hour(c->parts, FT_PART_NETWORK);

	(void)state;
	assert_true(fabs(servers - 268 - 46) < 2);
	assert_true(fabs(network - 42) < 2);
	assert_true(ft_parts_failures_per_hour(c->parts, FT_PART_STORAGE) == 0);
	assert_true(fabs(hours * ft_parts_job_failures_per_hour(c->parts) - 419) < 3);
	ft_cluster_free(c);
}

/* One GPU of eight: the seven others fail for nobody, the host fails for all. */
static void idle_gpus_stop_no_job(void **state)
{
	struct ft_cluster *one = good("{gpu: h100-sxm, gpus: 1}");
	struct ft_cluster *all = good("{gpu: h100-sxm, gpus: 8}");
	double of_one = ft_parts_failures_per_hour(one->parts, FT_PART_SERVER);
	double of_all = ft_parts_failures_per_hour(all->parts, FT_PART_SERVER);
	const struct ft_part *gpu = ft_parts_gpu(all->parts);

	(void)state;
	assert_true(fabs((of_all - of_one) * 8760 * gpu->mttf_years.value - 7) < 1e-9);
	assert_true(fabs(ft_parts_failures_per_hour(all->parts, FT_PART_SERVICE) -
			 8 * ft_parts_failures_per_hour(one->parts, FT_PART_SERVICE)) <
		    1e-15);
	assert_true(full_w(one->parts) == full_w(all->parts));
	ft_cluster_free(one);
	ft_cluster_free(all);
}

static const struct ft_part_line *line_of(const struct ft_parts *parts,
					  const char *role)
{
	for (size_t i = 0; i < parts->n; i++)
		if (!strcmp(parts->line[i].role, role))
			return &parts->line[i];
	fail_msg("no %s", role);
	return NULL;
}

static double mttf_years(const struct ft_parts *parts, const char *role)
{
	return line_of(parts, role)->part->mttf_years.value;
}

/* 80 GPUs take two racks of 72: the 64 left over draw power as those of a node do, and stop
 * no job; nor do their 16 hosts and the DPUs
 * in these. */
static void a_rack_is_bought_whole(void **state)
{
	struct ft_cluster *some = good("{gpu: gb200, gpus: 80, site: bare}");
	struct ft_cluster *all = good("{gpu: gb200, gpus: 144, site: bare}");
	const struct ft_part *gpu = ft_parts_gpu(all->parts);
	double more = ft_parts_failures_per_hour(all->parts, FT_PART_SERVER) -
		      ft_parts_failures_per_hour(some->parts, FT_PART_SERVER);

	(void)state;
	assert_true(fabs(ft_parts_gpus_w(some->parts) - 144 * gpu->max_w.value) < 1);
	assert_int_equal(line_of(some->parts, "host")->count, 36);
	assert_int_equal(line_of(some->parts, "host")->idle, 16);
	assert_true(fabs(more * 8760 - 64 / gpu->mttf_years.value -
			 16 / mttf_years(all->parts, "host") -
			 16 * (double)all->node->dpus / mttf_years(all->parts, "DPU")) <
		    1e-9);
	ft_cluster_free(some);
	ft_cluster_free(all);
}

static double network_per_year(const char *yaml)
{
	struct ft_cluster *c = good(yaml);
	double rate = ft_parts_failures_per_hour(c->parts, FT_PART_NETWORK);

	ft_cluster_free(c);
	return 8760 * rate;
}

/* Half a node of two: its four NICs fail for nobody, nor do the modules and cables that
 * lead to them, two ports of a leaf to a module; the switch fails for all. */
static void nics_of_idle_gpus_stop_no_job(void **state)
{
	struct ft_cluster *all = good("{gpu: h100-sxm, gpus: 16}");
	double less = 4 / mttf_years(all->parts, "NIC") +
		      4 / mttf_years(all->parts, "optics in nodes") +
		      2 / mttf_years(all->parts, "optics in leaves, to nodes");

	(void)state;
	assert_true(mttf_years(all->parts, "cables node to leaf") == 0);
	assert_true(fabs(network_per_year("{gpu: h100-sxm, gpus: 16}") -
			 network_per_year("{gpu: h100-sxm, gpus: 12}") - less) < 1e-12);
	ft_cluster_free(all);
}

/* SuperPOD: 4 DGX H100 or 2 DGX B200 a rack; NVL72 is bought as racks. */
static void racks_hold_what_units_and_power_allow(void **state)
{
	struct ft_cluster *h = good("{gpu: h100-sxm, gpus: 1024}");
	struct ft_cluster *b = good("{gpu: b200, gpus: 1024}");
	struct ft_cluster *nvl = good("{gpu: gb200, gpus: 1152}");

	(void)state;
	assert_true(h->parts->racks >= 32 + 1 && h->parts->racks < 32 + 6);
	assert_true(b->parts->racks >= 64 + 1 && b->parts->racks < 64 + 6);
	assert_int_equal(count_of(nvl, "gb200-nvl72-rack"), 16);
	assert_true(count_of(nvl, "rack") < 8); /* switches, storage */
	assert_true(nvl->parts->racks == 16 + count_of(nvl, "rack"));
	ft_cluster_free(h);
	ft_cluster_free(b);
	ft_cluster_free(nvl);
}

/* The obvious way: from every rack to the middle one, by a ruler. */
static void modules_reach_as_far_as_they_must(void **state)
{
	struct ft_cluster *small = good("{gpu: h100-sxm, gpus: 1024}");
	struct ft_cluster *large = good("{gpu: h100-sxm, gpus: 32768}");
	struct ft_cluster *tor =
		good("{gpu: h100-sxm, gpus: 256, fabric: roce-400-tor}");
	int64_t far = 0, all = 0, in_rack = 0;

	(void)state;
	assert_int_equal(count_of(small, "optic-2x400g-generic"),
			 small->topology.optics_switch);
	assert_int_equal(count_of(small, "optic-2x400g-dr-generic"), 0);
	/* three tiers: 1,024-node pods of 256 racks, 4,096 nodes in 1,024 racks; pods' middles
	 * stand 128, 384, 640 and 896 racks on, the core at 512 */
	assert_int_equal(large->topology.nodes_per_pod, 128);
	for (int64_t at = 16; at < 1024; at += 32, all++)
		far += 3 + 0.6 * fabs((double)(at % 20 - 512 % 20)) +
			       3 * fabs((double)(at / 20 - 512 / 20)) >
		       50;
	assert_true(far > 0);
	{
		double want = (double)(far * role_of(large, "optics spine to core")) /
			      (double)all;

		assert_true(fabs((double)count_of(large, "optic-2x400g-dr-generic") -
				 want) <= 1);
	}
	/* 8 nodes a leaf, 4 a rack: the switch stands in the second of two racks */
	assert_int_equal(tor->topology.nodes_per_leaf, 8);
	in_rack = count_of(tor, "dac-400g");
	assert_int_equal(in_rack, 128);
	assert_int_equal(count_of(tor, "aec-400g"), 128);
	ft_cluster_free(small);
	ft_cluster_free(large);
	ft_cluster_free(tor);
}

static void a_site_says_what_is_around(void **state)
{
	struct ft_cluster *c =
		good("{gpu: h100-sxm, gpus: 1024, site: {extends: standard, "
		     "spares_frac: 0.05, storage: {per_gpu: 4 TB}}}");
	struct ft_cluster *none =
		good("{gpu: h100-sxm, gpus: 1024, site: {extends: standard, "
		     "spares_frac: 0, storage: {per_gpu: 4 TB}}}");
	struct ft_cluster *nv = good("{gpu: h100-sxm, gpus: 1024, fabric: {extends: "
				     "ib-ndr-rail, links: {optics: nvidia}}}");
	struct ft_cluster *round = good(
		"{gpu: h100-sxm, gpus: 1024, fabric: {extends: ib-ndr-rail, links: "
		"{optic_switch_item: loop}}, site: {extends: standard, parts: {loop: "
		"{class: network, reach: 1 m, longer: loop}}}}");
	struct ft_cluster *half = good("{gpu: h100-sxm, gpus: 1024}");
	struct ft_cluster *halls =
		good("{gpu: h100-sxm, gpus: 2048, site: {extends: standard, "
		     "front_end: {hall_nodes: 128}, racks: {row: 1}}}");
	struct ft_error err;

	(void)state;
	assert_int_equal(c->parts->spare_nodes, 6);
	assert_true(fabs(ft_parts_carbon_kg(c->parts) -
			 ft_parts_carbon_kg(none->parts) - 6 * 8 * 318) <
		    1e-6 + 2 * (200 + 2 * 50));
	assert_int_equal(count_of(c, "hgx-h100-server"), 134);
	assert_int_equal(count_of(c, "storage-server"), 33);
	assert_int_equal(count_of(nv, "optic-2x400g-nvidia"), 1536);
	assert_int_equal(count_of(nv, "optic-2x400g-generic"), 0);
	/* two halls, and rows of one rack each */
	assert_int_equal(role_of(halls, "front-end switch"),
			 2 * role_of(half, "front-end switch"));
	assert_true(count_of(halls, "optic-2x400g-dr-generic") > 0 &&
		    count_of(half, "optic-2x400g-dr-generic") == 0);
	/* what would lead back to itself is the end */
	assert_int_equal(count_of(round, "loop-generic"),
			 round->topology.optics_switch);
	assert_null(load("{gpu: h100-sxm, gpus: 8, site: standart}", &err));
	assert_non_null(strstr(err.text, "standard"));
	assert_null(
		load("{gpu: h100-sxm, gpus: 8, site: {extends: standard, racks: {unit: "
		     "42}}}",
		     &err));
	assert_non_null(strstr(err.text, "did you mean 'units'"));
	ft_cluster_free(none);
	ft_cluster_free(round);
	ft_cluster_free(half);
	ft_cluster_free(halls);
	ft_cluster_free(c);
	ft_cluster_free(nv);
}

/* 18 DPUs a rack are in its price; switches that are bought apart are lines, so many for
 * each domain of 32 GPUs. */
static void what_is_inside_is_listed_once(void **state)
{
	struct ft_cluster *nvl = good("{gpu: gb200, gpus: 144}");
	struct ft_cluster *apart = good(
		"{gpu: h200, gpus: 100, node: {extends: hgx-h200, scale_up: {gpus: 32, "
		"switch_item: switch-ndr-64, switches: 9}}}");
	struct ft_error err;
	struct ft_prices *book = ft_prices_load("neocloud-2026-09", NULL, &err);
	struct ft_bom *bom = ft_bom_build(nvl, book, &err);

	(void)state;
	assert_non_null(bom);
	assert_int_equal(role_of(nvl, "DPU"), 36);
	for (size_t i = 0; i < bom->n_items; i++)
		assert_true(strcmp(bom->item[i].what, "DPU") != 0);
	assert_int_equal(role_of(apart, "scale-up switch"), 4 * 9);
	ft_bom_free(bom);
	ft_prices_free(book);
	ft_cluster_free(nvl);
	ft_cluster_free(apart);
}

/* A switch that hw/parts does not know: an error when it is to be priced or powered, gone
 * once the site tells. */
static void an_unknown_part_is_an_error(void **state)
{
	struct ft_error err;
	struct ft_prices *book = ft_prices_load("neocloud-2026-09", NULL, &err);
	struct ft_cluster *c = good("{gpu: h100-sxm, gpus: 64, fabric: {extends: "
				    "ib-ndr-rail, switch: {price_item: mine}}}");
	struct ft_cluster *told = good(
		"{gpu: h100-sxm, gpus: 64, fabric: {extends: ib-ndr-rail, switch: "
		"{price_item: mine}}, site: {extends: standard, parts: {mine: {class: "
		"network, power: 800 W}}}}");

	(void)state;
	assert_non_null(book);
	assert_string_equal(c->parts->unknown, "mine");
	assert_null(ft_bom_build(c, book, &err));
	assert_non_null(strstr(err.text, "nothing is known of the part mine"));
	assert_null(told->parts->unknown);
	assert_true(ft_parts_w(told->parts) - ft_parts_w(c->parts) == 800);
	ft_prices_free(book);
	ft_cluster_free(c);
	ft_cluster_free(told);
}

/* ---- the Playbook's savings ----------------------------------------------------------- */

/* Dollars of the back end of 1,024 GPUs. */
struct prices {
	double node_usd, switch_optic_usd, switch_usd, copper_usd, fiber_usd;
};

static double network_usd(const char *fabric, const struct prices *p)
{
	char yaml[300];
	struct ft_cluster *c;
	double sum;

	snprintf(yaml, sizeof(yaml), "{gpu: h100-sxm, gpus: 1024, fabric: %s}", fabric);
	c = good(yaml);
	sum = (double)(c->topology.leaf + c->topology.spine) * p->switch_usd +
	      (double)c->topology.optics_node * p->node_usd +
	      (double)c->topology.optics_switch * p->switch_optic_usd +
	      (double)(count_of(c, "dac-400g") + count_of(c, "aec-400g") +
		       count_of(c, "aoc-400g")) *
		      p->copper_usd;
	for (size_t i = 0; i < c->parts->n; i++) {
		const struct ft_part_line *l = &c->parts->line[i];

		if (l->part_class == FT_PART_NETWORK && !strcmp(l->item, "fiber"))
			sum += (double)l->count * p->fiber_usd;
	}
	ft_cluster_free(c);
	return sum;
}

/* SemiAnalysis, AI Neocloud Playbook and Anatomy, 2024-10-03: against the rail-optimised
 * reference, top-of-rack switches on copper save 34.8 % of the back end, copper from leaf
 * to spine 24.9 %, the same at 2:1 31.6 %. With a switch at 50,000 USD, a copper cable at
 * 100 (third-party ones begin there) and a fibre at 60 the last two say what modules cost;
 * the first is then a test of the counts. */
static void the_playbooks_savings_come_out(void **state)
{
	const char *tor =
		"{extends: ib-ndr-rail, wiring: tor, links: {copper_node: true, "
		"cable_node_item: dac-400g}}";
	const char *copper = "{extends: ib-ndr-rail, links: {copper_leaf: true, "
			     "cable_switch_item: dac-400g}}";
	const char *half = "{extends: ib-ndr-rail, oversubscription: 2, links: "
			   "{copper_leaf: true, cable_switch_item: dac-400g}}";
	struct prices p = { .switch_usd = 50000, .copper_usd = 100, .fiber_usd = 60 };
	double more_usd = 1024 * (p.copper_usd - p.fiber_usd);
	double reference, saved;

	(void)state;
	/* 8 switches and 512 cables are 31.6 - 24.9 % of the reference */
	reference = (8 * p.switch_usd + 512 * p.copper_usd) / (0.316 - 0.249);
	p.switch_optic_usd = (0.249 * reference + more_usd) / 1024;
	p.node_usd = (reference - 48 * p.switch_usd - 1536 * p.switch_optic_usd -
		      2048 * p.fiber_usd) /
		     1024;
	assert_true(fabs(network_usd("ib-ndr-rail", &p) / reference - 1) < 1e-9);
	assert_true(fabs(1 - network_usd(copper, &p) / reference - 0.249) < 1e-3);
	assert_true(fabs(1 - network_usd(half, &p) / reference - 0.316) < 1e-3);
	saved = 1 - network_usd(tor, &p) / reference;
	print_message(
		"# top of rack on copper: %.1f %% saved, published 34.8 %%; modules "
		"of %.0f and %.0f USD\n",
		100 * saved, p.node_usd, p.switch_optic_usd);
	assert_true(fabs(saved - 0.348) < 0.02);
	assert_true(p.node_usd > 500 && p.node_usd < 2500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_holds_what_the_topology_counts),
		cmocka_unit_test(modules_slower_than_a_nic_are_one_for_each_plane),
		cmocka_unit_test(full_load_is_the_published_power),
		cmocka_unit_test(a_hundred_thousand_take_150_megawatts),
		cmocka_unit_test(failures_add_up_to_those_of_llama_3),
		cmocka_unit_test(idle_gpus_stop_no_job),
		cmocka_unit_test(a_rack_is_bought_whole),
		cmocka_unit_test(nics_of_idle_gpus_stop_no_job),
		cmocka_unit_test(racks_hold_what_units_and_power_allow),
		cmocka_unit_test(modules_reach_as_far_as_they_must),
		cmocka_unit_test(a_site_says_what_is_around),
		cmocka_unit_test(what_is_inside_is_listed_once),
		cmocka_unit_test(an_unknown_part_is_an_error),
		cmocka_unit_test(the_playbooks_savings_come_out),
	};

	int failed = cmocka_run_group_tests_name("hw/parts", tests, NULL, NULL);

	arena_release(&documents);
	return failed;
}
