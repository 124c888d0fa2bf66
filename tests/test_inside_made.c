/*
 * tests/test_inside_made.c - collectives inside a domain, on tables that are made
 *
 * Rows that lie on a law T = a + c sqrt(S) + d S are followed to the last digit, so that
 * what is made of a table can be said in closed form: which one is asked, and what is
 * composed of which.
 */
#include <math.h>

#include "tests/ccl.h"

#include "sim/kernel.h"

static const double MIB = 1048576;

struct law {
	double a, c, d;
};

static double at(struct law l, double bytes)
{
	return l.a + l.c * sqrt(bytes) + l.d * bytes;
}

struct machine {
	struct ft_gpu gpu;
	const char *by; /* the fabric that is asked for */
	struct ft_scale_up fabric[2];
	struct ft_collective_table table[12];
	struct ft_collective_row row[12][16];
};

static struct ft_number sure(double x)
{
	return (struct ft_number){ x, x, x, NULL };
}

/* A fabric of eight: 100 GB/s on the bus and a port, 20 GB/s a link at 0.9, 10 us of start. */
static void add_fabric(struct machine *m, const char *name, bool mesh)
{
	m->gpu.scale_up = m->fabric;
	m->gpu.collective = m->table;
	m->gpu.collective_spread = sure(0.1);
	m->fabric[m->gpu.n_scale_ups++] = (struct ft_scale_up){
		.fabric = name,
		.mesh = mesh,
		.bus_bytes_per_s = sure(100e9),
		.link_bytes_per_s = sure(20e9),
		.port_bytes_per_s = sure(100e9),
		.efficiency = sure(0.9),
		.start_s = sure(10e-6),
		.n_full = 8,
	};
}

/* 1 KiB to 1 GiB, or fewer rows. */
static void add_table(struct machine *m, const char *fabric, enum ft_collective op,
		      int64_t n, size_t rows, struct law law)
{
	size_t i = m->gpu.n_collective++;

	for (size_t k = 0; k < rows; k++) {
		double bytes = pow(2, 10 + 20 * (double)k / (double)(rows - 1));

		m->row[i][k] = (struct ft_collective_row){ bytes, at(law, bytes) };
	}
	m->table[i] = (struct ft_collective_table){ fabric,    op,	n,   rows,
						    m->row[i], &m->gpu, NULL };
}

static struct ft_collective_result run(const struct machine *m, const char *fabric,
				       enum ft_collective op, int64_t n, double bytes)
{
	struct ft_collective_call call = call_of(op, bytes, n, 1);
	struct ft_collective_result r;
	struct ft_error err;

	ok_or_say(ft_collective_inside(&m->gpu, &(struct ft_links){ fabric, 0 }, NULL,
				       &call, &r, &err),
		  err);
	return r;
}

static void takes(const struct machine *m, enum ft_collective op, int64_t n,
		  double bytes, double want, bool derived)
{
	struct ft_collective_result r = run(m, m->by, op, n, bytes);

	if (fabs(r.duration.time_s / want - 1) > 1e-5)
		fail_msg("%s of %lld, %.0f bytes: %g us, not %g",
			 ft_collective_name(op), (long long)n, bytes,
			 r.duration.time_s * 1e6, want * 1e6);
	assert_int_equal(r.duration.extrapolated, derived);
	near_frac(r.duration.spread_frac, derived ? 0.15 : 0.1, 1e-12);
	near_frac(r.scale_up_bytes, bytes * ft_collective_bus_factor(op, n), 1e-12);
}

/* ---- without tables ------------------------------------------------------------------ */

static void a_mesh_without_tables_is_links_and_a_start(void **state)
{
	static const enum ft_collective ops[] = { FT_ALL_REDUCE, FT_ALL_GATHER,
						  FT_ALL_TO_ALL, FT_SENDRECV };
	struct machine m = { 0 };

	(void)state;
	add_fabric(&m, "xgmi", true);
	for (int k = 0; k < 4; k++)
		for (int n = 2; n <= 8; n++) {
			double peers = (n - 1) / 7.0, sent = MIB, wire;

			/* to each peer over its own link; a tenth is lost among all */
			if (ops[k] != FT_SENDRECV)
				sent = MIB / n * (ops[k] == FT_ALL_REDUCE ? 2 : 1);
			wire = sent / (20e9 * (1 - 0.1 * peers));
			takes(&m, ops[k], n, MIB,
			      wire + (ops[k] == FT_ALL_REDUCE ? 10e-6 : 5e-6) *
					      (0.3 + 0.7 * peers),
			      true);
		}
}

static void a_ring_without_tables_is_a_start_and_a_pipeline(void **state)
{
	struct machine m = { 0 };

	(void)state;
	add_fabric(&m, "pcie", false);
	for (int n = 2; n <= 8; n++) {
		double start = 10e-6 * (0.5 + 0.5 * (n - 1) / 7);
		double fill = sqrt(16 * MIB * MIB / 2), part = 16 * MIB * (n - 1) / n;

		takes(&m, FT_ALL_REDUCE, n, 16 * MIB, start + (2 * part + fill) / 100e9,
		      true);
		takes(&m, FT_REDUCE_SCATTER, n, 16 * MIB,
		      0.6 * start + (part + fill) / 100e9, true);
	}
}

/* Four, two links between each pair: a ring or an exchange takes those of its members. */
static void members_have_the_links_among_them(void **state)
{
	struct ft_mesh all = { .n = 4 };
	struct machine m = { 0 };
	double fill = sqrt(MIB * MIB / 2), t;

	(void)state;
	add_fabric(&m, "xgmi", false);
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 4; k++)
			all.links[i][k] = i != k ? 2 : 0;
	m.fabric[0].pairs = &all;
	m.fabric[0].n_full = 4;
	/* two neighbours: a ring over their two links, once */
	t = 10e-6 * (0.5 + 0.5 / 3);
	takes(&m, FT_ALL_REDUCE, 2, MIB,
	      t + (MIB + fill) /
			      (20e9 * (double)ft_mesh_rings(&all, (int[]){ 0, 1 }, 2)),
	      true);
	takes(&m, FT_ALL_TO_ALL, 2, MIB,
	      0.6 * t + (MIB / 2 + fill) /
				(20e9 * ft_mesh_exchange(&all, (int[]){ 0, 1 }, 2)),
	      true);
}

/* ---- tables ------------------------------------------------------------------------------ */

static const struct law gather = { 8e-6, 2e-9, 1 / 200e9 },
			scatter = { 9e-6, 3e-9, 1 / 180e9 },
			reduce = { 7e-6, 1e-9, 1 / 300e9 },
			exchange = { 6e-6, 2e-9, 1 / 150e9 };

static void a_table_of_these_ranks_is_followed(void **state)
{
	struct machine m = { 0 };

	(void)state;
	add_fabric(&m, "pcie", false);
	add_table(&m, "xgmi", FT_ALL_REDUCE, 4, 16, gather); /* of another fabric */
	add_table(&m, "pcie", FT_ALL_GATHER, 4, 16, gather); /* another op */
	add_table(&m, "pcie", FT_ALL_REDUCE, 4, 3, gather);  /* three rows are none */
	add_table(&m, "pcie", FT_ALL_REDUCE, 4, 16, reduce);
	add_table(&m, "pcie", FT_ALL_REDUCE, 8, 16, scatter);
	for (double bytes = 1024; bytes <= 1024 * MIB; bytes *= 3)
		takes(&m, FT_ALL_REDUCE, 4, bytes, at(reduce, bytes), false);
}

/* Links of half the speed take for S bytes what the measured ones take for 2 S: latencies
 * stay, and the pipeline's share grows by the square root. */
static void links_of_another_speed_keep_the_latency(void **state)
{
	struct ft_collective_call call = call_of(FT_ALL_REDUCE, 64 * MIB, 4, 1);
	struct ft_collective_result r;
	struct machine m = { 0 };
	struct ft_error err;

	(void)state;
	add_fabric(&m, "nvlink", false);
	add_table(&m, "nvlink", FT_ALL_REDUCE, 4, 16, reduce);
	for (double port = 25e9; port < 1e12; port *= 2) {
		double k = port / 100e9;
		double want = reduce.a + reduce.c * sqrt(call.bytes / k) +
			      reduce.d * call.bytes / k;

		ok_or_say(ft_collective_inside(&m.gpu,
					       &(struct ft_links){ "nvlink", port },
					       NULL, &call, &r, &err),
			  err);
		near_frac(r.duration.time_s, want, 1e-5);
		near_frac(r.scale_up_bytes, 1.5 * call.bytes, 1e-12);
	}
}

/* In a mesh what a full node's all-reduce takes beyond its links is overhead, of which fewer
 * peers have less and one-way operations half; rings of these n tell their own. */
static void a_mesh_adds_the_overhead_seen_in_all_reduces(void **state)
{
	const struct law own = { 30e-6, 0, 1 / 40e9 };
	struct machine m = { 0 };
	double over, peers = 3 / 7.0;

	(void)state;
	add_fabric(&m, "xgmi", true);
	add_table(&m, "xgmi", FT_ALL_REDUCE, 8, 16, (struct law){ 40e-6, 0, 1 / 60e9 });
	over = 40e-6 + MIB / 60e9 - 2 * MIB / 8 / 18e9;
	takes(&m, FT_ALL_GATHER, 4, MIB,
	      MIB / 4 / (20e9 * (1 - 0.1 * peers)) + over / 2 * (0.3 + 0.7 * peers),
	      true);
	takes(&m, FT_ALL_TO_ALL, 8, MIB, MIB / 8 / 18e9 + over / 2, true);
	add_table(&m, "xgmi", FT_ALL_REDUCE, 4, 16, own);
	over = at(own, MIB) - 2 * MIB / 4 / 18e9;
	takes(&m, FT_ALL_GATHER, 4, MIB, MIB / 4 / 18e9 + over / 2, true);
	/* exchanges use no ring */
	over = 40e-6 + MIB / 60e9 - 2 * MIB / 8 / 18e9;
	takes(&m, FT_ALL_TO_ALL, 4, MIB,
	      MIB / 4 / (20e9 * (1 - 0.1 * peers)) + over / 2 * (0.3 + 0.7 * peers),
	      true);
}

static void a_switch_makes_one_operation_of_others(void **state)
{
	struct machine m = { 0 };
	double bytes = 64 * MIB;

	(void)state;
	add_fabric(&m, "nvlink", false);
	add_table(&m, "nvlink", FT_ALL_GATHER, 4, 16, gather);
	takes(&m, FT_ALL_REDUCE, 4, bytes, /* half of what it needs: a ring */
	      10e-6 * (0.5 + 0.5 * 3 / 7) +
		      (bytes * 1.5 + sqrt(bytes * MIB / 2)) / 100e9,
	      true);
	add_table(&m, "nvlink", FT_REDUCE_SCATTER, 4, 16, scatter);
	takes(&m, FT_ALL_REDUCE, 4, bytes,
	      at(gather, bytes) + at(scatter, bytes) - at(gather, 512) / 2, true);
	takes(&m, FT_BROADCAST, 4, bytes, at(gather, bytes) * 4 / 3, true);
	takes(&m, FT_SENDRECV, 4, bytes, 10e-6 + bytes / 96e9, true);
	add_table(&m, "nvlink", FT_ALL_TO_ALL, 8, 16, gather);
	add_table(&m, "nvlink", FT_ALL_TO_ALL, 2, 16, exchange);
	add_table(&m, "nvlink", FT_ALL_TO_ALL, 4, 16, scatter);
	takes(&m, FT_SENDRECV, 4, bytes,
	      exchange.a + exchange.c / 2 * sqrt(bytes) + bytes / 96e9, true);
}

/* NVLink without its switch is NVLink, but for all-reduces that the switch would do; small
 * ones do not use it. */
static void without_the_switch_it_is_the_same_links(void **state)
{
	struct machine m = { 0 };

	(void)state;
	add_fabric(&m, "nvlink", false);
	m.fabric[0].nvls_from = 4;
	add_fabric(&m, "nvlink-no-nvls", false);
	m.by = "nvlink-no-nvls";
	add_table(&m, "nvlink", FT_ALL_GATHER, 4, 16, gather);
	add_table(&m, "nvlink", FT_REDUCE_SCATTER, 4, 16, scatter);
	add_table(&m, "nvlink", FT_ALL_REDUCE, 4, 16, reduce);
	takes(&m, FT_ALL_GATHER, 4, 8 * MIB, at(gather, 8 * MIB), false);
	takes(&m, FT_ALL_REDUCE, 4, MIB, at(reduce, MIB), false);
	takes(&m, FT_ALL_REDUCE, 4, 2 * MIB,
	      at(gather, 2 * MIB) + at(scatter, 2 * MIB) - at(gather, 512) / 2, true);
	m.fabric[0].nvls_from = 5;
	takes(&m, FT_ALL_REDUCE, 4, 2 * MIB, at(reduce, 2 * MIB), false);
	/* the first fabric, when none is named; none of that name */
	near_frac(run(&m, NULL, FT_ALL_GATHER, 4, MIB).duration.time_s, at(gather, MIB),
		  1e-5);
	near_frac(run(&m, "nvlink", FT_ALL_GATHER, 1, MIB).duration.time_s + 1, 1, 0);
	near_frac(run(&m, "nvlink", FT_ALL_GATHER, 4, 0).duration.time_s + 1, 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mesh_without_tables_is_links_and_a_start),
		cmocka_unit_test(a_ring_without_tables_is_a_start_and_a_pipeline),
		cmocka_unit_test(members_have_the_links_among_them),
		cmocka_unit_test(a_table_of_these_ranks_is_followed),
		cmocka_unit_test(links_of_another_speed_keep_the_latency),
		cmocka_unit_test(a_mesh_adds_the_overhead_seen_in_all_reduces),
		cmocka_unit_test(a_switch_makes_one_operation_of_others),
		cmocka_unit_test(without_the_switch_it_is_the_same_links),
	};

	return cmocka_run_group_tests_name("inside, made", tests, NULL, NULL);
}
