/* tests/test_modules.c - which optical modules stand at the ends of a NIC's links */
#include "tests/clusters.h"

/* In a role stand modules of one kind, so many. */
static void modules_are(const struct ft_cluster *c, const char *role, const char *item,
			int64_t count)
{
	char name[80];

	snprintf(name, sizeof(name), "%s-generic", item);
	for (size_t i = 0; i < c->parts->n; i++) {
		const struct ft_part_line *l = &c->parts->line[i];

		if (strcmp(l->role, role))
			continue;
		assert_string_equal(l->item, name);
		assert_int_equal(l->count, count);
		return;
	}
	fail_msg("no %s", role);
}

/* By hand: 256 NICs; those of 400 Gb/s on ports of 800 have modules of 400 at both ends,
 * cages of two NICs and NICs of two links modules of two ports; a drawing says itself. */
static void modules_carry_what_their_links_do(void **state)
{
	static const struct {
		const char *yaml, *node, *leaf, *spine;
		int64_t at_node, at_leaf;
	} of[] = {
		{ "gpu: h100-sxm, fabric: ib-ndr-rail", "optic-400g", "optic-2x400g",
		  "optic-2x400g", 256, 128 },
		{ "gpu: h100-sxm, fabric: ib-xdr-rail", "optic-400g", "optic-2x400g",
		  "optic-2x800g", 256, 128 },
		{ "gpu: h100-sxm, node: dgx-h100", "optic-2x400g", "optic-2x400g",
		  "optic-2x400g", 128, 128 },
		{ "gpu: h100-sxm, fabric: ib-hdr-rail", "optic-200g", "optic-200g",
		  "optic-200g", 256, 256 },
		{ "gpu: b300, fabric: ib-ndr-rail", "optic-2x400g", "optic-2x400g",
		  "optic-2x400g", 256, 256 },
		{ "gpu: b300", "optic-800g", "optic-2x800g", "optic-2x800g", 256, 128 },
		{ "gpu: a100-80g, fabric: ib-xdr-rail", "optic-200g", "optic-2x400g",
		  "optic-2x800g", 256, 128 },
		{ "gpu: h100-sxm, fabric: {extends: roce-400-rail, planes: 2, switch: "
		  "{split: 2, radix: 64}}",
		  "optic-400g", "optic-2x400g", "optic-2x400g", 256, 128 },
		{ "gpu: h100-sxm, fabric: {extends: ib-xdr-rail, switch: {radix: 64, split: 2}}",
		  "optic-400g", "optic-2x800g", "optic-2x800g", 256, 64 },
		{ "gpu: h100-sxm, fabric: ib-ndr-rail, site: {extends: standard, parts: "
		  "{optic-400g: {rate: 800 Gb/s, slower: optic-400g}}}",
		  "optic-400g", "optic-2x400g", "optic-2x400g", 256, 128 },
	};
	char yaml[256];

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct ft_cluster *c;

		snprintf(yaml, sizeof(yaml), "{gpus: 256, %s}", of[i].yaml);
		c = good(yaml);
		modules_are(c, "optics in nodes", of[i].node, of[i].at_node);
		modules_are(c, "optics in leaves, to nodes", of[i].leaf, of[i].at_leaf);
		modules_are(c, "optics leaf to spine", of[i].spine,
			    c->topology.optics_leaf_spine);
		ft_cluster_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules_carry_what_their_links_do),
	};
	int failed = cmocka_run_group_tests_name("modules", tests, NULL, NULL);

	arena_release(&documents);
	return failed;
}
