/* tests/test_network_spread.c - adaptive routing in a drawn network takes all cables that lead nearer, each as much */
#include "tests/check.h"

#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "sim/network.h"

/* Three nodes of eight NICs on either side of so many spines: adaptive routing fills each cable as much, however many
 * there are. */
static void adaptive_routing_fills_all_spines_alike(void **state)
{
	static const int spines[] = { 1, 3, 5, 7, 11, 16, 17, 24, 30 };
	const struct network_part part = { 0, 6 };
	const struct network_sends far = { NETWORK_SHIFT, 3, 1, 0, false };

	(void)state;
	for (size_t k = 0; k < sizeof(spines) / sizeof(*spines); k++) {
		struct arena mem = { 0 };
		const char *names = "", *cables = "", *text;
		struct ft_error err;
		struct ft_cluster *c;
		struct network_path p;
		struct network *w;

		for (int i = 0; i < spines[k]; i++) {
			names = arena_printf(&mem, "%s, s%d", names, i);
			cables = arena_printf(
				&mem, "%s{from: a, to: s%d}, {from: b, to: s%d}, ",
				cables, i, i);
		}
		text = arena_printf(
			&mem,
			"{gpu: h100-sxm, gpus: 48, fabric: {extends: spectrum-x-400-rail, wiring: graph, graph: {switches: [a, b%s], "
			"attach: [{nodes: [0, 2], switch: a}, {nodes: [3, 5], switch: b}], cables: [%s]}}}",
			names, cables);
		c = ft_cluster_load(node_read_text(&mem, "c", text, strlen(text), &err),
				    &err);
		ok_or_say(c, err);
		w = network_new(&mem, c, 6, &part, 1, &err);
		ok_or_say(w, err);
		for (int again = 0; again < 2; again++) {
			network_find(w, 0, &far, &p);
			near_frac(p.share, fmin(1, spines[k] / 24.), 1e-9);
		}
		ft_cluster_free(c);
		arena_release(&mem);
	}
}

/* Of twelve nodes of one NIC, each of which sends to the one so many further on. */
static double share_of(const char *fabric, int64_t by)
{
	const struct network_part part = { 0, 12 };
	const struct network_sends far = { NETWORK_SHIFT, by, 1, 0, false };
	struct arena mem = { 0 };
	const char *text = arena_printf(
		&mem,
		"{gpu: h100-sxm, gpus: 96, node: {extends: hgx-h100, nics.count: 1}, fabric: %s}",
		fabric);
	struct ft_error err;
	struct ft_cluster *c = ft_cluster_load(
		node_read_text(&mem, "c", text, strlen(text), &err), &err);
	struct network_path p;
	struct network *w;

	ok_or_say(c, err);
	w = network_new(&mem, c, 12, &part, 1, &err);
	ok_or_say(w, err);
	network_find(w, 0, &far, &p);
	ft_cluster_free(c);
	arena_release(&mem);
	return p.share;
}

static void spines_are_as_fast_as_one_of_all_their_cables(void **state)
{
	/* three leaves of four NICs, with three cables to each of a spine, or one to each of three */
	static const char *const drawn[] = {
		"{extends: ib-ndr-rail, wiring: graph, graph: {switches: [a, b, c, x], attach: [{nodes: [0, 3], switch: a}, "
		"{nodes: [4, 7], switch: b}, {nodes: [8, 11], switch: c}], cables: [{from: a, to: x, count: 3}, {from: b, to: x, "
		"count: 3}, {from: c, to: x, count: 3}]}}",
		"{extends: ib-ndr-rail, wiring: graph, graph: {switches: [a, b, c, x, y, z], attach: [{nodes: [0, 3], switch: a}, "
		"{nodes: [4, 7], switch: b}, {nodes: [8, 11], switch: c}], cables: [{from: a, to: x}, {from: b, to: x}, {from: c, "
		"to: x}, {from: a, to: y}, {from: b, to: y}, {from: c, to: y}, {from: a, to: z}, {from: b, to: z}, {from: c, to: z}]}}",
	};

	(void)state;
	for (int64_t by = 1; by < 12; by++)
		near_frac(share_of(drawn[0], by), share_of(drawn[1], by), 1e-9);
	near_frac(share_of(drawn[1], 4), 0.75, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adaptive_routing_fills_all_spines_alike),
		cmocka_unit_test(spines_are_as_fast_as_one_of_all_their_cables),
	};

	return cmocka_run_group_tests_name("network, spread", tests, NULL, NULL);
}
