/* tests/test_network_spread.c - adaptive routing in a drawn network takes all cables that lead nearer and work, each as much */
#include "tests/check.h"

#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "sim/network_links.h"

/* Three nodes of eight NICs on either side of so many spines, each of one cable to either side. */
static struct ft_cluster *between(struct arena *mem, int spines)
{
	const char *names = "", *cables = "", *text;
	struct ft_cluster *c;
	struct ft_error err;

	for (int i = 0; i < spines; i++) {
		names = arena_printf(mem, "%s, s%d", names, i);
		cables = arena_printf(mem, "%s{from: a, to: s%d}, {from: b, to: s%d}, ",
				      cables, i, i);
	}
	text = arena_printf(
		mem,
		"{gpu: h100-sxm, gpus: 48, fabric: {extends: spectrum-x-400-rail, wiring: graph, graph: {switches: [a, b%s], "
		"attach: [{nodes: [0, 2], switch: a}, {nodes: [3, 5], switch: b}], cables: [%s]}}}",
		names, cables);
	c = ft_cluster_load(node_read_text(mem, "c", text, strlen(text), &err), &err);
	ok_or_say(c, err);
	return c;
}

static const struct network_part both = { 0, 6 };
static const struct network_sends across = { NETWORK_SHIFT, 3, 1, 0, false };

/* Each cable is filled as much, however many there are. */
static void adaptive_routing_fills_all_spines_alike(void **state)
{
	static const int spines[] = { 1, 3, 5, 7, 11, 16, 17, 24, 30 };

	(void)state;
	for (size_t k = 0; k < sizeof(spines) / sizeof(*spines); k++) {
		struct arena mem = { 0 };
		struct ft_cluster *c = between(&mem, spines[k]);
		struct ft_error err;
		struct network_path p;
		struct network *w = network_new(&mem, c, 6, &both, 1, &err);

		ok_or_say(w, err);
		for (int again = 0; again < 2; again++) {
			network_find(w, 0, &across, &p);
			near_frac(p.share, fmin(1, spines[k] / 24.), 1e-9);
		}
		ft_cluster_free(c);
		arena_release(&mem);
	}
}

/* A spine serves while both of its cables work, and none does where all have lost one. */
static void failed_cables_of_a_drawing_are_avoided(void **state)
{
	int fewer = 0, none = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct arena mem = { 0 };
		struct ft_cluster *c = between(&mem, seed % 2 ? 24 : 5);
		struct ft_error err = { .text = "" };
		struct network_path p;
		struct network *w;
		int left = 0;

		c->imperfections = (struct ft_imperfections){
			.given = true, .seed = seed, .failed_uplinks_frac = 0.4
		};
		w = network_new(&mem, c, 6, &both, 1, &err);
		for (size_t i = 0; w && i < w->graph->n_cables; i += 2)
			left += w->working[i] && w->working[i + 1];
		if (w) {
			network_find(w, 0, &across, &p);
			near_frac(p.share, fmin(1, left / 24.), 1e-9);
			fewer += left < 24;
		} else {
			assert_non_null(
				strstr(err.text,
				       "no way of at most 6 cables is left between "));
			none++;
		}
		ft_cluster_free(c);
		arena_release(&mem);
	}
	assert_true(fewer > 20 && none > 0);
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
		cmocka_unit_test(failed_cables_of_a_drawing_are_avoided),
		cmocka_unit_test(spines_are_as_fast_as_one_of_all_their_cables),
	};

	return cmocka_run_group_tests_name("network, spread", tests, NULL, NULL);
}
