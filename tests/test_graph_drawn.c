/*
 * tests/test_graph_drawn.c - networks drawn by hand, at random: what a topology says of one is
 * counted NIC by NIC and cable by cable, and ports are enough or one too few
 */
#include "base/arena.h"
#include "base/node.h"
#include "tests/check.h"

#include "foretoken/hw.h"

enum { DRAWS = 150, MOST = 8, NICS = 8 };

static uint64_t seed = 5;

static int64_t below(int64_t n)
{
	return (int64_t)(rnd(&seed) % (uint64_t)n);
}

/* Switches in a chain with some cables more; ranges of nodes and NICs, each at a switch. */
struct drawn {
	int64_t switches, nodes, cables[MOST][MOST];
	int64_t at[MOST][NICS]; /* which switch a NIC is at */
	const char *text;
};

/* NICs of nodes from..to in two ranges, or in one. */
static void attach(struct arena *mem, struct drawn *d, int64_t from, int64_t to)
{
	int64_t cut = below(3) ? NICS : 1 + below(NICS - 1);

	for (int64_t first = 0; first < NICS; first = cut, cut = NICS) {
		int64_t s = below(d->switches), last = cut - 1;

		for (int64_t node = from; node <= to; node++)
			for (int64_t nic = first; nic <= last; nic++)
				d->at[node][nic] = s;
		d->text = arena_printf(
			mem, "%s{nodes: [%d, %d], nics: [%d, %d], switch: s%d}, ",
			d->text, (int)from, (int)to, (int)first, (int)last, (int)s);
	}
}

static void draw(struct arena *mem, struct drawn *d)
{
	*d = (struct drawn){ .switches = 2 + below(4), .nodes = 2 + below(MOST - 1) };
	d->text = "switches: [s0";
	for (int i = 1; i < d->switches; i++)
		d->text = arena_printf(mem, "%s, s%d", d->text, i);
	d->text = arena_printf(mem, "%s], attach: [", d->text);
	for (int64_t from = 0, to; from < d->nodes; from = to + 1) {
		to = from + below(d->nodes - from);
		attach(mem, d, from, to);
	}
	d->text = arena_printf(mem, "%s], cables: [", d->text);
	for (int a = 0; a < d->switches; a++)
		for (int b = a + 1; b < d->switches; b++) {
			if (b > a + 1 && below(3))
				continue;
			d->cables[a][b] = 1 + below(9);
			d->text =
				arena_printf(mem, "%s{from: s%d, to: s%d, count: %d}, ",
					     d->text, a, b, (int)d->cables[a][b]);
		}
	d->text = arena_printf(mem, "%s]", d->text);
}

/* As many ends as there are at a switch: of NICs, and of cables. */
static int64_t nics_at(const struct drawn *d, int64_t s)
{
	int64_t n = 0;

	for (int64_t i = 0; i < d->nodes * NICS; i++)
		n += d->at[i / NICS][i % NICS] == s;
	return n;
}

static int64_t cables_at(const struct drawn *d, int64_t s)
{
	int64_t n = 0;

	for (int64_t i = 0; i < d->switches; i++)
		n += d->cables[i][s] + d->cables[s][i];
	return n;
}

/* Nodes whose NICs of one number are at one switch. */
static int64_t nodes_a_leaf(const struct drawn *d)
{
	int64_t most = 0;

	for (int64_t i = 0; i < NICS * d->switches; i++) {
		int64_t n = 0;

		for (int64_t node = 0; node < d->nodes; node++)
			n += d->at[node][i / d->switches] == i % d->switches;
		most = n > most ? n : most;
	}
	return most;
}

static struct ft_cluster *cluster(struct arena *mem, const struct drawn *d,
				  int64_t radix, struct ft_error *err)
{
	const char *text = arena_printf(
		mem,
		"{gpu: h100-sxm, gpus: %d, fabric: {extends: roce-400-rail, switch: "
		"{radix: %d}, wiring: graph, graph: {%s}}}",
		(int)(8 * d->nodes), (int)radix, d->text);
	struct node *n = node_read_text(mem, "c", text, strlen(text), err);

	ok_or_say(n, *err);
	return ft_cluster_load(n, err);
}

static void is_counted(const struct drawn *d, const struct ft_topology *t)
{
	int64_t leaves = 0, down = 0, cables = 0;

	for (int64_t s = 0; s < d->switches; s++) {
		int64_t nics = nics_at(d, s);

		leaves += nics > 0;
		down = nics > down ? nics : down;
		cables += cables_at(d, s);
	}
	assert_int_equal(t->endpoints, d->nodes * NICS);
	assert_int_equal(t->cables_node_leaf, d->nodes * NICS);
	assert_int_equal(t->cables_leaf_spine, cables / 2);
	assert_int_equal(t->leaf, leaves);
	assert_int_equal(t->spine, d->switches - leaves);
	assert_int_equal(t->leaf_down, down);
	assert_int_equal(t->nodes_per_leaf, nodes_a_leaf(d));
}

/* Radixes are even: of one port too many there are two too few. */
static void a_drawn_network_is_counted(void **state)
{
	int several = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct arena mem = { 0 };
		struct drawn d;
		struct ft_error err;
		struct ft_cluster *c;
		int64_t radix = 0;

		draw(&mem, &d);
		for (int64_t s = 0; s < d.switches; s++) {
			int64_t ends = nics_at(&d, s) + cables_at(&d, s);

			radix = ends > radix ? ends : radix;
		}
		radix += radix % 2;
		c = cluster(&mem, &d, radix, &err);
		ok_or_say(c, err);
		is_counted(&d, &c->topology);
		several += c->topology.spine > 0 && c->topology.nodes_per_leaf > 1;
		ft_cluster_free(c);
		assert_null(cluster(&mem, &d, radix - 2, &err));
		assert_non_null(strstr(err.text, "cables end at s"));
		arena_release(&mem);
	}
	assert_true(several > DRAWS / 10);
}

/* Two leaves of 16 ends each, and a spine of as many, which has ports of its own. */
static void switches_above_leaves_have_their_own_radix(void **state)
{
	static const struct {
		int radix, upper;
		const char *why; /* NULL: enough */
	} cases[] = {
		{ 16, 0, NULL },
		{ 16, 16, NULL },
		{ 64, 16, NULL },
		{ 64, 14, "16 cables end at x, a switch of 14 ports" },
		{ 14, 64, "16 cables end at a, a switch of 14 ports" },
		{ 14, 0, "16 cables end at a, a switch of 14 ports" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena mem = { 0 };
		struct ft_error err = { .text = "" };
		const char *text = arena_printf(
			&mem,
			"{gpu: h100-sxm, gpus: 16, fabric: {extends: ib-ndr-rail, wiring: graph, switch.radix: %d, switch.upper_radix: %d, "
			"graph: {switches: [a, b, x], attach: [{nodes: [0, 0], switch: a}, {nodes: [1, 1], switch: b}], "
			"cables: [{from: a, to: x, count: 8}, {from: b, to: x, count: 8}]}}}",
			cases[i].radix, cases[i].upper);
		struct ft_cluster *c = ft_cluster_load(
			node_read_text(&mem, "c", text, strlen(text), &err), &err);

		assert_int_equal(c != NULL, !cases[i].why);
		assert_true(c || strstr(err.text, cases[i].why));
		ft_cluster_free(c);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_drawn_network_is_counted),
		cmocka_unit_test(switches_above_leaves_have_their_own_radix),
	};

	return cmocka_run_group_tests_name("drawn by hand", tests, NULL, NULL);
}
