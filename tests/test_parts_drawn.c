/*
 * tests/test_parts_drawn.c - what stands around the servers, counted by ones
 *
 * Clusters and sites are drawn; every count that follows from a site's numbers is found by
 * adding one until it is enough, and every sum by going through the lines.
 */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/hw.h"
#include "tests/check.h"

enum { CLUSTERS = 300 };

/* A site's numbers, as they are written into it. */
struct site {
	int ports_per_node, radix, hall_nodes, oversubscription;
	int per_gpu_tb, per_server_tb, ports_per_server;
	int servers, nodes_per_server, oob_ports;
	int pdus, units, power_kw, spares_percent;
};

static uint64_t seed = 3;

static int between(int low, int high)
{
	return low + (int)(rnd(&seed) % (uint32_t)(high - low + 1));
}

static struct site drawn_site(void)
{
	return (struct site){ between(1, 4),   2 * between(16, 64), between(20, 200),
			      between(1, 3),   between(0, 5),	    between(50, 200),
			      between(1, 4),   between(0, 5),	    between(5, 64),
			      between(8, 48),  between(0, 3),	    between(12, 60),
			      between(5, 150), between(0, 20) };
}

static struct ft_cluster *drawn_cluster(const struct site *s, struct arena *mem)
{
	static const char *const gpu[] = { "h100-sxm", "b200",	   "gb200",
					   "mi300x",   "a100-80g", "mi250" };
	const char *text = arena_printf(
		mem,
		"{gpu: %s, gpus: %d, site: {extends: standard, spares_frac: 0.%02d, "
		"front_end: {ports_per_node: %d, radix: %d, hall_nodes: %d, "
		"oversubscription: %d}, storage: {per_gpu: %d TB, per_server: %d TB, "
		"ports_per_server: %d}, management: {servers: %d, nodes_per_server: %d}, "
		"out_of_band: {ports: %d}, racks: {pdus: %d, units: %d, power: %d kW}}}",
		gpu[between(0, 5)], between(9, 2000), s->spares_percent,
		s->ports_per_node, s->radix, s->hall_nodes, s->oversubscription,
		s->per_gpu_tb, s->per_server_tb, s->ports_per_server, s->servers,
		s->nodes_per_server, s->oob_ports, s->pdus, s->units, s->power_kw);
	struct ft_error err = { 0 };
	struct node *node = node_read_text(mem, "c", text, strlen(text), &err);

	ok_or_say(node, err);
	return ft_cluster_load_rows(node, 0, &err); /* NULL: too large a front end */
}

static const struct ft_part_line *line_of(const struct ft_parts *p, const char *role)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->line[i].role, role))
			return &p->line[i];
	return NULL;
}

static int64_t count_of(const struct ft_parts *p, const char *role)
{
	const struct ft_part_line *l = line_of(p, role);

	return l ? l->count : 0;
}

/* The fewest that hold so much, each as much as one does. */
static int64_t fewest(double all, double each)
{
	int64_t n = 0;

	while ((double)n * each < all * (1 - 1e-12))
		n++;
	return n;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ---- counts ------------------------------------------------------------------------------ */

static void storage_holds_what_gpus_need(const struct ft_cluster *c,
					 const struct site *s)
{
	int64_t storage =
		fewest((double)c->gpus * s->per_gpu_tb, (double)s->per_server_tb);
	int64_t management =
		most(s->servers, fewest((double)c->nodes, s->nodes_per_server));
	int64_t halls = fewest((double)c->nodes, s->hall_nodes);
	int64_t ports = storage * s->ports_per_server + 2 * management;
	struct ft_fabric f = { .name = "",
			       .wiring = FT_WIRING_TOR,
			       .radix = s->radix,
			       .planes = 1,
			       .oversubscription = s->oversubscription,
			       .core_oversubscription = 1,
			       .rails_per_leaf = 1,
			       .ports_per_optic = 1,
			       .nic_ports_per_optic = 1 };
	int64_t each = fewest((double)ports, (double)halls);
	struct ft_topology t;
	struct ft_error err;

	assert_int_equal(count_of(c->parts, "storage server"), storage);
	assert_int_equal(count_of(c->parts, "management server"), management);
	ok_or_say(ft_topology_build(&f, fewest((double)c->nodes, (double)halls),
				    s->ports_per_node, each, &t, &err),
		  err);
	assert_int_equal(count_of(c->parts, "front-end switch"),
			 halls * (t.leaf + t.spine + t.core + t.top));
	assert_int_equal(count_of(c->parts, "front-end optics"),
			 halls * (t.transceivers + each));
	assert_int_equal(count_of(c->parts, "front-end cables"),
			 halls * (t.cables_node_leaf + t.cables_leaf_spine +
				  t.cables_spine_core + t.cables_core_top));
	for (size_t i = 0; i < c->parts->n; i++)
		assert_int_equal(c->parts->line[i].part_class == FT_PART_FRONT_END,
				 !strncmp(c->parts->line[i].role, "front-end", 9));
}

/* Of one rack: as many as stand in it and as its power feeds; of one sold by the rack, all. */
static int64_t nodes_per_rack(const struct ft_cluster *c, const struct site *s)
{
	const struct ft_part *host = line_of(c->parts, "host")->part;
	double units = fmax(1, host->rack_units.value);
	double w =
		c->node->power_w.value + c->gpu->limit_w.value * (double)c->node->gpus;
	int64_t n = 1;

	while ((double)(n + 1) * units <= s->units - 2 &&
	       (double)(n + 1) * w <= 1000 * s->power_kw)
		n++;
	return c->node->nodes_per_price_item > 1 ? c->node->nodes_per_price_item : n;
}

/* Behind the table's other lines. */
static bool is_of_racks(const struct ft_part_line *l)
{
	return !strcmp(l->role, "out-of-band switch") ||
	       !strcmp(l->role, "equipment rack") ||
	       !strcmp(l->role, "power distribution") ||
	       !strcmp(l->role, "integration");
}

static void racks_hold_all_that_has_units(const struct ft_cluster *c,
					  const struct site *s)
{
	int64_t per = c->node->nodes_per_price_item;
	int64_t servers = fewest((double)c->nodes, (double)per);
	int64_t spares = servers * s->spares_percent / 100 * per;
	int64_t each = nodes_per_rack(c, s), devices = 0;
	int64_t own = fewest((double)c->nodes, (double)each) +
		      fewest((double)spares, (double)each);
	int64_t others, bought;
	double units = 0;

	for (size_t i = 0; i < c->parts->n; i++) {
		const struct ft_part_line *l = &c->parts->line[i];

		if (is_of_racks(l) || !l->part || l->part->rack_units.value <= 0)
			continue;
		devices += l->count;
		if (l->part_class != FT_PART_SERVER && l->part_class != FT_PART_SPARE)
			units += l->part->rack_units.value * (double)l->count;
	}
	others = fewest(units, s->units - 2);
	bought = others + (per > 1 ? 0 : own);
	assert_int_equal(count_of(c->parts, per > 1 ? "rack" : "server"), servers);
	assert_int_equal(c->parts->spare_nodes, spares);
	assert_int_equal(c->parts->racks, others + own);
	assert_int_equal(count_of(c->parts, "equipment rack"), bought);
	assert_int_equal(count_of(c->parts, "power distribution"), bought * s->pdus);
	assert_int_equal(count_of(c->parts, "integration"),
			 servers * per * c->node->gpus);
	if (c->nodes > 1)
		assert_int_equal(
			count_of(c->parts, "out-of-band switch"),
			fewest((double)(devices + bought * s->pdus), s->oob_ports));
}

static void what_no_job_uses_is_idle(const struct ft_cluster *c)
{
	int64_t per = c->node->nodes_per_price_item, each = c->node->gpus;
	int64_t nodes = fewest((double)c->nodes, (double)per) * per;
	const struct ft_part_line *nics = line_of(c->parts, "NIC");

	assert_int_equal(count_of(c->parts, "GPU"), nodes * each);
	assert_int_equal(line_of(c->parts, "GPU")->idle, nodes * each - c->gpus);
	assert_int_equal(line_of(c->parts, "software")->idle, nodes * each - c->gpus);
	assert_int_equal(count_of(c->parts, "host"), nodes);
	assert_int_equal(line_of(c->parts, "host")->idle, nodes - c->nodes);
	if (nics)
		assert_int_equal(nics->idle, nics->count * (c->nodes * each - c->gpus) /
						     (c->nodes * each));
}

/* ---- sums -------------------------------------------------------------------------------- */

static void sums_go_through_all_lines(const struct ft_cluster *c)
{
	double w = 0, typical = 0, gpus = 0, spares = 0, units = 0, carbon = 0;
	double fails[32] = { 0 };

	for (size_t i = 0; i < c->parts->n; i++) {
		const struct ft_part_line *l = &c->parts->line[i];
		double n = (double)l->count;

		if (!l->part)
			continue;
		units += n * l->part->rack_units.value;
		carbon += n * l->part->carbon_kg.value;
		if (l->part->mttf_years.value > 0)
			fails[l->part_class] += (double)(l->count - l->idle) / 8760 /
						l->part->mttf_years.value;
		if (l->part_class == FT_PART_SPARE) {
			spares += n * l->part->max_w.value;
		} else if (l->gpu) {
			gpus += n * l->part->max_w.value;
		} else {
			w += n * l->part->max_w.value;
			typical +=
				n * l->part->max_w.value * l->part->typical_frac.value;
		}
	}
	near_frac(ft_parts_w(c->parts), w, 1e-12);
	near_frac(ft_parts_typical_w(c->parts), typical, 1e-12);
	near_frac(ft_parts_gpus_w(c->parts), gpus, 1e-12);
	near_frac(ft_parts_spares_w(c->parts), spares, 1e-12);
	near_frac(ft_parts_rack_units(c->parts), units, 1e-12);
	near_frac(ft_parts_carbon_kg(c->parts), carbon, 1e-12);
	for (int i = 0; i <= FT_PART_SPARE; i++)
		near_frac(ft_parts_failures_per_hour(c->parts, (enum ft_part_class)i),
			  fails[i], 1e-12);
	near_frac(ft_parts_job_failures_per_hour(c->parts),
		  fails[FT_PART_SERVER] + fails[FT_PART_NETWORK] +
			  fails[FT_PART_SERVICE],
		  1e-12);
	assert_ptr_equal(ft_parts_gpu(c->parts), line_of(c->parts, "GPU")->part);
}

static void whole(const struct ft_number *is, double n, double gpus,
		  const struct ft_number *gpu, const struct ft_number *host)
{
	near_frac(is->value, n * (gpus * gpu->value + host->value), 1e-12);
	near_frac(is->low, n * (gpus * gpu->low + host->low), 1e-12);
	near_frac(is->high, n * (gpus * gpu->high + host->high), 1e-12);
}

/* A spare server is one with its GPUs, at full load. */
static void a_spare_is_a_whole_server(const struct ft_cluster *c)
{
	const struct ft_part *gpu = line_of(c->parts, "GPU")->part;
	const struct ft_part *host = line_of(c->parts, "host")->part;
	bool rack = c->node->nodes_per_price_item > 1;
	const struct ft_part_line *l =
		line_of(c->parts, rack ? "spare rack" : "spare server");
	double gpus = (double)c->node->gpus, n = (double)c->node->nodes_per_price_item;

	if (!l)
		return;
	assert_int_equal(l->part_class, FT_PART_SPARE);
	whole(&l->part->max_w, n, gpus, &c->gpu->limit_w, &c->node->power_w);
	whole(&l->part->carbon_kg, n, gpus, &gpu->carbon_kg, &host->carbon_kg);
	near_frac(l->part->rack_units.value, n * host->rack_units.value, 1e-12);
}

static void what_is_around_is_counted_by_ones(void **state)
{
	int built = 0;

	(void)state;
	for (int i = 0; i < CLUSTERS; i++) {
		struct arena mem = { 0 };
		struct site s = drawn_site();
		struct ft_cluster *c = drawn_cluster(&s, &mem);

		if (c) {
			built++;
			if (c->nodes > 1)
				storage_holds_what_gpus_need(c, &s);
			racks_hold_all_that_has_units(c, &s);
			what_no_job_uses_is_idle(c);
			sums_go_through_all_lines(c);
			a_spare_is_a_whole_server(c);
		}
		ft_cluster_free(c);
		arena_release(&mem);
	}
	assert_true(built > CLUSTERS / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_around_is_counted_by_ones),
	};

	return cmocka_run_group_tests_name("parts_drawn", tests, NULL, NULL);
}
