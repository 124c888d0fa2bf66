/*
 * tests/test_ccl_defaults.c - a key of a communication library that is left out counts as the
 * manual says (foretoken-ccl(5)): the same constants as of a file that states it
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "foretoken/stacks.h"
#include "tests/check.h"

/* What a file has of each block beside what it must have. */
struct more {
	const char *ring, *tree, *all, *top;
};

static struct ft_ccl *loaded(const struct more *x)
{
	char path[] = "/tmp/foretoken-ccl-XXXXXX.yaml";
	int fd = mkstemps(path, 5);
	FILE *f = fdopen(fd, "w");
	struct ft_error err;
	struct ft_ccl *c;

	assert_non_null(f);
	fprintf(f,
		"title: T\nprovenance: {kind: assumed, date: 2026-11-25, note: n}\n"
		"generations: {hopper: {channels: 7}}\n%s\n"
		"all:\n"
		"  net_overhead: [1 us, 2 us, 3 us]\n"
		"  spread: 0.2\n"
		"  network: {ring_step: 4 us, latency: 2 us}\n"
		"  pairs: {start: 5 us, peer: 1 us, nic_share: 0.9, port_share: 0.8}\n"
		"  pipeline: {start: 6 us, hop: 3 us}\n"
		"  hierarchical: {overlap: 0.9, chunk: 32 MB}\n"
		"  ring: {base: [6 us, 14 us, 8 us], hop: [1 us, 2 us, 4 us], hop_net: "
		"[3 us, 5 us, 13 us], share: [0.4, 0.8, 0.9]%s}\n"
		"  tree: {base: [7 us, 15 us, 9 us], hop: [1 us, 2 us, 5 us], hop_net: "
		"[2 us, 6 us, 12 us], share: [0.3, 0.6, 0.7]%s}\n%s\n",
		x->top, x->ring, x->tree, x->all);
	assert_int_equal(fclose(f), 0);
	c = ft_ccl_load(path, NULL, &err);
	ok_or_say(c, err);
	assert_int_equal(unlink(path), 0);
	return c;
}

/* All constants of the one generation, byte for byte, its name apart. */
static bool same(const struct ft_ccl *a, const struct ft_ccl *b)
{
	struct ft_ccl_tuning s = a->tuning[0], t = b->tuning[0];

	assert_true(a->n_generations == 1 && b->n_generations == 1);
	assert_string_equal(s.generation, t.generation);
	s.generation = t.generation = NULL;
	return a->nvls == b->nvls && a->choice == b->choice &&
	       !memcmp(&s, &t, sizeof(s));
}

#define ONES "{LL: 1, LL128: [1, 1], Simple: [1, 1, 1]}"
#define FALLS "correction: {LL: [0.9, 0.8], LL128: [0.7, 0.6], Simple: 0.5}"

static void what_is_left_out_is_the_default(void **state)
{
	static const struct {
		struct more without, with,
			other; /* other: another value, another answer */
	} cases[] = {
#define RING(without, with, other) \
	{ \
		{ without, "", "", "" }, { without with, "", "", "" }, \
		{ \
			without other, "", "", "" \
		} \
	}
#define TREE(without, with, other) \
	{ \
		{ "", without, "", "" }, { "", without with, "", "" }, \
		{ \
			"", without other, "", "" \
		} \
	}
#define ALL(without, with, other) \
	{ \
		{ "", "", without, "" }, { "", "", with, "" }, \
		{ \
			"", "", other, "" \
		} \
	}
#define TOP(with, other) \
	{ \
		{ "", "", "", "" }, { "", "", "", with }, \
		{ \
			"", "", "", other \
		} \
	}
		RING("", ", correction: " ONES, ", " FALLS),
		RING("", ", plateau: 1", ", plateau: 2"),
		RING("", ", step: [3 us, 5 us, 13 us]", ", step: [3 us, 5 us, 14 us]"),
		RING("", ", efficiency: [0.4, 0.8, 0.9]", ", efficiency: 0.4"),
		TREE("", ", correction: " ONES, ", " FALLS),
		TREE("", ", share_more: 0.7", ", share_more: 0.6"),
		TREE("", ", narrow: [1, 1, 1]", ", narrow: [0.5, 1, 1]"),
		TREE("", ", simple_inside: true", ", simple_inside: false"),
		TREE("", ", wait: [0 us, 0 us]", ", wait: [0 us, 1 us]"),
		TREE("", ", efficiency: [0.3, 0.6, 0.7]",
		     ", efficiency: [0.3, 0.6, 0.8]"),
		TREE(", narrow: [0.5, 0.25, 0.5], share_more: 0.8",
		     ", efficiency: [0.15, 0.15, 0.4]",
		     ", efficiency: [0.15, 0.15, 0.35]"),
		TREE(", " FALLS,
		     ", lag: {LL: [0.9, 0.8], LL128: [0.7, 0.6], Simple: 0.5}",
		     ", lag: " ONES),
		ALL("  windows: {all_reduce: [1 MB, 2 MB]}",
		    "  windows: {all_reduce: [1 MB, 2 MB], growth: 1}",
		    "  windows: {all_reduce: [1 MB, 2 MB], growth: 2}"),
		ALL("  windows: {all_gather: 1 MB}",
		    "  windows: {all_gather: [1 MB, 1 MB]}",
		    "  windows: {all_gather: [1 MB, 0 MB]}"),
		TOP("nvls: true", "nvls: false"),
		TOP("choice: {by: time}", "choice: {by: library}"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ft_ccl *without = loaded(&cases[i].without);
		struct ft_ccl *with = loaded(&cases[i].with);
		struct ft_ccl *other = loaded(&cases[i].other);

		if (!same(without, with) || same(without, other))
			fail_msg("case %zu: %s%s%s%s", i, cases[i].with.ring,
				 cases[i].with.tree, cases[i].with.all,
				 cases[i].with.top);
		ft_ccl_free(without);
		ft_ccl_free(with);
		ft_ccl_free(other);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_out_is_the_default),
	};

	return cmocka_run_group_tests_name("stacks/ccl, defaults", tests, NULL, NULL);
}
