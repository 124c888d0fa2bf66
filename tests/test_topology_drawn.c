/*
 * tests/test_topology_drawn.c - recipes that are drawn: no switch has more cables than ports, and
 * spines are as few as a search of all numbers finds
 */
#include "tests/check.h"

#include "foretoken/hw.h"

enum { DRAWS = 4000 };

static uint64_t seed = 8;

static int64_t below(int64_t n)
{
	return (int64_t)(rnd(&seed) % (uint64_t)n);
}

/* A recipe with what is asked of it. */
struct asked {
	struct ft_fabric f;
	int64_t nodes, nics, extra;
	struct ft_topology t;
};

static void draw(struct asked *a)
{
	static const enum ft_wiring wirings[] = { FT_WIRING_RAIL, FT_WIRING_RAIL,
						  FT_WIRING_TOR, FT_WIRING_RAIL_ONLY };
	static const double over[] = { 1, 1, 1.5, 2, 3 };

	*a = (struct asked){ .f = { .name = "drawn",
				    .wiring = wirings[below(4)],
				    .radix = 2 * (8 + below(57)),
				    .planes = 1 + below(2),
				    .oversubscription = over[below(5)],
				    .core_oversubscription = over[below(5)],
				    .rails_per_leaf = 1,
				    .ports_per_optic = 1 + below(2),
				    .nic_ports_per_optic = 1 + below(2),
				    .copper_node = below(4) == 0,
				    .copper_leaf = below(4) == 0,
				    .scheduled = below(6) == 0 } };
	a->f.upper_radix = below(3) ? 0 : 2 * (8 + below(57));
	if (a->f.wiring == FT_WIRING_RAIL)
		a->f.rails_per_leaf = 1 << below(3);
	a->f.spare_spines = below(4) ? 0 : below(5);
	a->f.planned_nodes = below(4) ? 0 : below(3000);
	a->f.nics_per_node = below(5) ? 0 : 1 + below(8);
	a->nodes = 2 + below(below(3) ? 200 : 4000);
	a->nics = 1 + below(8);
	a->extra = below(3) ? 0 : below(40);
}

static int64_t up(int64_t n, int64_t of)
{
	int64_t most = n / of;

	return most * of < n ? most + 1 : most;
}

static int64_t nics_of(const struct asked *a)
{
	return a->f.nics_per_node ? a->f.nics_per_node : a->nics;
}

/* NIC ports and extra ones, of all networks side by side in a plane. */
static int64_t ends_of(const struct asked *a)
{
	int64_t n = nics_of(a);

	return a->nodes * n +
	       (a->f.wiring == FT_WIRING_RAIL_ONLY ? n * up(a->extra, n) : a->extra);
}

static void switches_have_the_ports(const struct asked *a)
{
	const struct ft_topology *t = &a->t;
	int64_t radix = a->f.radix, upper = a->f.upper_radix ? a->f.upper_radix : radix;
	int64_t p = a->f.planes;

	assert_int_equal(t->endpoints, a->nodes * nics_of(a));
	assert_int_equal(t->cables_node_leaf, ends_of(a));
	assert_true(t->leaf_down + t->leaf_up <= radix);
	assert_true(t->leaf / p * radix >= t->cables_node_leaf + t->cables_leaf_spine);
	assert_true(t->leaf / p * t->leaf_down >=
		    t->cables_node_leaf - t->leaf / p); /* an extra one for an uplink */
	assert_int_equal(t->leaf % p, 0);
	assert_int_equal(t->spine % p, 0);
	if (t->tiers == 1) {
		assert_int_equal(t->leaf_up, 0);
		assert_int_equal(t->cables_leaf_spine + t->cables_spine_core +
					 t->cables_core_top,
				 0);
		return;
	}
	assert_true(t->cables_leaf_spine + t->cables_spine_core <=
		    t->spine / p * upper);
	assert_true(t->cables_spine_core + t->cables_core_top <= t->core / p * upper);
	assert_true(t->cables_core_top <= t->top / p * upper);
	assert_int_equal(t->tiers >= 3, t->cables_spine_core > 0);
	assert_int_equal(t->tiers >= 4, t->cables_core_top > 0);
	/* what goes down over what goes up, cut where ports end */
	if (!a->extra && t->leaf_down + t->leaf_up < radix)
		assert_true((double)t->leaf_up * a->f.oversubscription >=
			    (double)t->leaf_down * (1 - 1e-9));
}

static void modules_are_at_ends_without_copper(const struct asked *a)
{
	const struct ft_topology *t = &a->t;
	int64_t per = a->f.ports_per_optic, p = a->f.planes;
	int64_t at_node = a->f.copper_node ? 0 : t->endpoints;
	int64_t at_leaf = a->f.copper_node ? 0 : p * t->cables_node_leaf;
	int64_t ends = a->f.copper_leaf ? 0 : 2 * p;

	assert_int_equal(t->optics_node, up(at_node, a->f.nic_ports_per_optic));
	assert_int_equal(t->optics_leaf_node, up(at_leaf, per));
	assert_int_equal(t->optics_leaf_spine, up(ends * t->cables_leaf_spine, per));
	assert_int_equal(t->optics_spine_core, up(ends * t->cables_spine_core, per));
	assert_int_equal(t->optics_core_top, up(ends * t->cables_core_top, per));
	assert_int_equal(t->optics_switch, t->optics_leaf_node + t->optics_leaf_spine +
						   t->optics_spine_core +
						   t->optics_core_top);
	assert_int_equal(t->transceivers, t->optics_switch + t->optics_node);
}

/* Of three tiers and more: uplinks as the oversubscription asks, and pods as large as half the
 * ports of a spine let them be; of four, as many of those as half the ports of a core. */
static void pods_are_below_half_the_ports(const struct asked *a)
{
	int64_t half = (a->f.upper_radix ? a->f.upper_radix : a->f.radix) / 2, u = 0;
	int64_t nics = a->f.wiring == FT_WIRING_RAIL_ONLY ? 1 : nics_of(a);
	int64_t pod = a->t.leaf_down * half / nics;

	while (u < a->f.radix - a->t.leaf_down &&
	       (double)u * a->f.oversubscription < (double)a->t.leaf_down * (1 - 1e-9))
		u++;
	assert_int_equal(a->t.leaf_up, u);
	pod = pod > 1 ? pod : 1;
	assert_int_equal(a->t.nodes_per_pod, a->t.tiers == 4 ? pod * half : pod);
}

/* Of all numbers of uplinks and spines; even: each leaf has as many to each spine. 0: none. */
static int64_t fewest_spines(const struct asked *a, int64_t leaves, bool even)
{
	int64_t upper = a->f.upper_radix ? a->f.upper_radix : a->f.radix, best = 0;
	int64_t down = a->t.leaf_down;

	for (int64_t u = 1; u <= a->f.radix - down; u++) {
		bool enough =
			(double)u * a->f.oversubscription >= (double)down * (1 - 1e-9);

		if (!enough && u < a->f.radix - down)
			continue;
		for (int64_t s = 1; s <= leaves * u; s++) {
			bool all = a->f.scheduled || s <= u;
			bool fits = leaves * u <= s * upper && all &&
				    leaves <= (a->f.scheduled ? 2 : 1) * upper;

			if (fits && (!even || (u % s == 0 && !a->f.scheduled)) &&
			    (!best || s < best))
				best = s;
		}
	}
	return best;
}

static void spines_are_as_few_as_can_be(const struct asked *a)
{
	int64_t n = a->f.wiring == FT_WIRING_RAIL_ONLY ? nics_of(a) : 1;
	int64_t leaves = a->t.leaf / a->f.planes / n, want;
	int64_t even = fewest_spines(a, leaves, true);
	int64_t any = fewest_spines(a, leaves, false);

	want = even && (double)even <= (double)any * 4 / 3 + 1e-9 ? even : any;
	assert_int_equal(a->t.spine, (want + a->f.spare_spines) * n * a->f.planes);
}

static void no_switch_has_more_cables_than_ports(void **state)
{
	int tiers[5] = { 0 };

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct ft_error err;
		struct asked a;

		draw(&a);
		if (!ft_topology_build(&a.f, a.nodes, a.nics, a.extra, &a.t, &err))
			continue;
		tiers[a.t.tiers]++;
		switches_have_the_ports(&a);
		modules_are_at_ends_without_copper(&a);
		if (a.t.tiers >= 3)
			pods_are_below_half_the_ports(&a);
		else
			assert_true(a.t.nodes_per_pod == a.nodes);
		if (a.t.tiers == 2 && !a.extra && a.f.planned_nodes <= a.nodes &&
		    a.t.leaf < 200)
			spines_are_as_few_as_can_be(&a);
	}
	for (int n = 1; n <= 4; n++)
		assert_true(tiers[n] > DRAWS / 200);
}

/* As few tiers as it takes are T. Fewer are refused, T are the same network, and more are built
 * as they are asked for, where leaves have the ports. */
static void tiers_that_are_asked_for_are_built(void **state)
{
	int refused[5] = { 0 }, built[5] = { 0 };

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct ft_error err;
		struct asked a, few;
		bool any;

		draw(&few);
		few.f.planned_nodes = 0;
		any = ft_topology_build(&few.f, few.nodes, few.nics, few.extra, &few.t,
					&err);
		a = few;
		for (a.f.tiers = 1; a.f.tiers <= 4; a.f.tiers++) {
			bool ok = ft_topology_build(&a.f, a.nodes, a.nics, a.extra,
						    &a.t, &err);
			bool no_leaf = !ok && strstr(err.text, "do not fit a leaf");

			if (!any || a.f.tiers < few.t.tiers)
				assert_false(ok);
			else if (a.f.tiers == few.t.tiers)
				assert_true(ok && !memcmp(&a.t, &few.t, sizeof(a.t)));
			else
				assert_true(ok ? a.t.tiers == a.f.tiers : no_leaf);
			built[a.f.tiers] += ok;
			refused[a.f.tiers] += !ok && !no_leaf;
		}
	}
	for (int n = 1; n <= 4; n++)
		assert_true(built[n] > DRAWS / 50 &&
			    (n == 4 || refused[n] > DRAWS / 50));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tiers_that_are_asked_for_are_built),
		cmocka_unit_test(no_switch_has_more_cables_than_ports),
	};

	return cmocka_run_group_tests_name("topology drawn", tests, NULL, NULL);
}
