/* tests/test_network_domains.c - nodes of several domains send as nodes of one do: their NICs are the same */
#include "tests/ccl.h"
#include "tests/clusters.h"

#include "sim/collective.h"

/* 512 GPUs in nodes of eight with so many in a domain, under leaves with a port up for four down. */
static struct ft_cluster *nodes_of(int domain)
{
	return good(arena_printf(
		&documents,
		"{gpu: h100-sxm, gpus: 512, node: {extends: hgx-h100, scale_up: {gpus: %d}}, "
		"fabric: {extends: ib-ndr-rail, oversubscription: 4}}",
		domain));
}

/* A group lies on as many nodes, as far apart, whatever of a node is a domain. */
static void domains_of_a_node_share_its_nics(void **state)
{
	static const struct ft_group_shape shapes[] = {
		{ 512, 1, true }, { 16, 1, true },  { 64, 1, true }, { 8, 2, true },
		{ 16, 4, true },  { 128, 4, true }, { 32, 8, true }, { 8, 16, true },
		{ 4, 128, true }, { 12, 1, true },  { 6, 3, false },
	};
	struct ft_cluster *whole = nodes_of(8);

	(void)state;
	for (int domain = 1; domain < 8; domain *= 2) {
		struct ft_cluster *parts = nodes_of(domain);

		for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
			struct network_sends a =
				collective_sends(whole, FT_ALL_TO_ALL, shapes[i]);
			struct network_sends b =
				collective_sends(parts, FT_ALL_TO_ALL, shapes[i]);

			assert_int_equal(b.members, a.members);
			assert_int_equal(b.stride, a.stride);
		}
		ft_cluster_free(parts);
	}
	ft_cluster_free(whole);
}

/* Groups of one rank a domain, of which a node has several: they span eight nodes at most, under a leaf. */
static void a_group_of_one_rank_a_domain_has_an_answer(void **state)
{
	struct ft_ccl *ccl = ccl_named("nccl-2.30");
	struct ft_cluster *c = nodes_of(1), *none;
	struct ft_collective_result r, alone;
	struct ft_error err;

	(void)state;
	none = good("{gpu: h100-sxm, gpus: 512, node: {extends: hgx-h100, scale_up: "
		    "{gpus: 1}}, fabric: ib-ndr-rail}");
	for (int64_t stride = 2; stride < 8; stride += 2) {
		struct ft_collective_call call =
			call_of(FT_ALL_TO_ALL, 1 << 24, 8, stride);

		ok_or_say(ft_collective_predict(c, ccl, &call, &r, &err), err);
		ok_or_say(ft_collective_predict(none, ccl, &call, &alone, &err), err);
		near_frac(r.duration.time_s, alone.duration.time_s, 1e-9);
	}
	ft_cluster_free(c);
	ft_cluster_free(none);
	ft_ccl_free(ccl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(domains_of_a_node_share_its_nics),
		cmocka_unit_test(a_group_of_one_rank_a_domain_has_an_answer),
	};

	return cmocka_run_group_tests_name("sim/network_domains", tests, NULL, NULL);
}
