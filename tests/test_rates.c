/* tests/test_rates.c - how fast ops run that run together: on links, beside compute, on copy engines */
#include "tests/check.h"

#include "tests/run_engine.h"
#include "tests/timing.h"

struct pair {
	struct work_timing a;
	enum ft_stream on_a;
	struct work_timing b;
	enum ft_stream on_b;
	ft_ps launch_b;
	double copy; /* beside a product: so much slower */
};

/* One class, two ops on two streams, or with the third three on three; the rates say how long they take. */
static double beside_s(struct pair p, const struct work_timing *third, double *end_a)
{
	struct arena mem = { 0 };
	struct ft_work work[3] = { { .name = "a" }, { .name = "b" }, { .name = "c" } };
	struct ft_op ops[3] = { op(0, p.on_a, -1, -1), op(1, p.on_b, -1, -1),
				op(2, FT_STREAM_COMPUTE, -1, -1) };
	struct ft_segment seg = { .name = "s", .n_ops = third ? 3 : 2, .op = ops };
	struct ft_call call = { 0, 1 };
	struct ft_class class = {
		.name = "c", .ranks = 1, .n_calls = 1, .call = &call
	};
	struct ft_graph g = { .n_works = seg.n_ops,
			      .work = work,
			      .n_segments = 1,
			      .segment = &seg,
			      .n_classes = 1,
			      .rank_class = &class };
	struct work_timing cost[3] = { p.a, p.b, third ? *third : p.b };
	ft_ps host[3] = { 0, p.launch_b, p.launch_b }, total = p.launch_b;
	size_t begin = 0;
	struct engine_job job = {
		.graph = &g, .host = host, .host_begin = &begin, .host_total = &total
	};
	struct engine_input in = { 0 };
	struct engine_part part;
	struct engine_output out;
	double s;

	for (int i = 0; i < 3; i++)
		cost[i].slows_copy = (float)p.copy;
	add_pipeline(&in, &part, &job, cost, 0);
	s = run(&mem, &in, &out);
	*end_a = ft_s_from_ps(out.work_time[0]);
	assert_int_equal(out.part->compute + out.part->exposed + out.part->bubble +
				 out.part->host + out.part->optimizer,
			 out.part->end);
	arena_release(&mem);
	return s;
}

static double pair_s(struct pair p, double *end_a)
{
	return beside_s(p, NULL, end_a);
}

static void collectives_share_a_nic_fluidly(void **state)
{
	/* 50 GB/s: 100 MB at 0 and 50 MB at 1 ms both end at 3 ms */
	struct work_timing a = takes(ft_ps_from_s(2e-3), 0, 1, 1, NULL, 0);
	struct work_timing b = takes(ft_ps_from_s(1e-3), 0, 1, 1, NULL, 0);
	double end_a;

	(void)state;
	near_frac(pair_s((struct pair){ a, FT_STREAM_GATHER, b, FT_STREAM_REDUCE,
					ft_ps_from_s(1e-3), 1 },
			 &end_a),
		  3e-3, 1e-9);
	near_frac(end_a, 3e-3, 1e-9);
	/* both at 0: b ends at 2 ms, a at 3 ms */
	near_frac(
		pair_s((struct pair){ a, FT_STREAM_GATHER, b, FT_STREAM_REDUCE, 0, 1 },
		       &end_a),
		3e-3, 1e-9);
	near_frac(end_a, 3e-3, 1e-9);
	/* different links: no sharing */
	b.nic_frac = 0;
	b.port_frac = 1;
	near_frac(
		pair_s((struct pair){ a, FT_STREAM_GATHER, b, FT_STREAM_REDUCE, 0, 1 },
		       &end_a),
		2e-3, 1e-9);
}

static void compute_and_collective_slow_each_other(void **state)
{
	struct work_timing gemm = takes(ft_ps_from_s(1e-3), 0, 0, 1.5f, NULL, 0);
	struct work_timing gather = takes(ft_ps_from_s(10e-3), 0, 0, 1, NULL, 0);
	double end_a;

	(void)state;
	gemm.slows = 1.25f; /* 1.5 ms; the collective did 1.2 of work by then */
	near_frac(pair_s((struct pair){ gemm, FT_STREAM_COMPUTE, gather,
					FT_STREAM_GATHER, 0, 1 },
			 &end_a),
		  10.3e-3, 1e-9);
	near_frac(end_a, 1.5e-3, 1e-9);
}

/* Two that share a link are slower than kernels beside compute need be, so that compute costs them nothing. */
static void a_slow_link_hides_what_compute_takes(void **state)
{
	static const struct {
		float nic;
		double want_s;
	} cases[] = { { 1, 4e-3 }, { 0.5f, 2.5e-3 }, { 0.75f, 3e-3 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct work_timing gemm = takes(ft_ps_from_s(10e-3), 0, 0, 1, NULL, 0);
		struct work_timing gather =
			takes(ft_ps_from_s(2e-3), 0, cases[i].nic, 1, NULL, 0);
		double end_a;

		gemm.slows = 1.25f;
		near_frac(beside_s((struct pair){ gather, FT_STREAM_GATHER, gather,
						  FT_STREAM_REDUCE, 0, 1 },
				   &gemm, &end_a),
			  10e-3, 1e-9);
		near_frac(end_a, cases[i].want_s, 1e-9);
	}
}

/* A product whose blocks stay until it is over: launched into it, a collective waits for it;
 * with it, it runs beside it. */
static void a_collective_waits_for_a_product_that_holds_all(void **state)
{
	struct work_timing gemm = takes(ft_ps_from_s(1e-3), 0, 0, 1, NULL, 0);
	struct work_timing gather = takes(ft_ps_from_s(10e-3), 0, 0, 1, NULL, 0);
	double end_a;

	(void)state;
	for (int holds = 0; holds < 2; holds++)
		for (int late = 0; late < 2; late++) {
			struct pair p = { gemm,
					  FT_STREAM_COMPUTE,
					  gather,
					  FT_STREAM_GATHER,
					  ft_ps_from_s(late * 4e-4),
					  1 };

			p.a.holds_all = holds;
			near_frac(pair_s(p, &end_a),
				  10e-3 + late * (holds ? 1e-3 : 4e-4), 1e-9);
			near_frac(end_a, 1e-3, 1e-9);
		}
}

static void copy_engines_leave_compute_alone(void **state)
{
	struct work_timing gemm = takes(ft_ps_from_s(1e-3), 0, 0, 1.5f, NULL, 0);
	struct work_timing gather = takes(ft_ps_from_s(10e-3), 0, 0, 1.25f, NULL, 0);
	double end_a;

	(void)state;
	gather.copy_engine = true;
	near_frac(pair_s((struct pair){ gemm, FT_STREAM_COMPUTE, gather,
					FT_STREAM_GATHER, 0, 1 },
			 &end_a),
		  10e-3, 1e-9);
	near_frac(end_a, 1e-3, 1e-9);
}

static void a_copy_crawls_beside_compute(void **state)
{
	struct work_timing gemm = takes(ft_ps_from_s(4e-3), 0, 0, 1.5f, NULL, 0);
	struct work_timing copy = takes(ft_ps_from_s(2e-3), 0, 0, 1, NULL, 0);
	double end_a;

	(void)state;
	/* 4 ms at a quarter: 1 ms done, 1 ms left */
	near_frac(pair_s((struct pair){ gemm, FT_STREAM_COMPUTE, copy, FT_STREAM_COPY,
					0, 4 },
			 &end_a),
		  5e-3, 1e-9);
}

/* Memory-bound: both want the memory. */
static void a_copy_and_a_kernel_share_the_memory(void **state)
{
	struct work_timing norm = takes(ft_ps_from_s(2e-3), 0, 0, 1, NULL, 0);
	struct work_timing copy = takes(ft_ps_from_s(1e-3), 0, 0, 1, NULL, 0);
	double end_a;

	(void)state;
	norm.beside_copy =
		1.75f; /* the copy is over after 1.5 ms, of which the kernel did 1.5 / 1.75 */
	near_frac(pair_s((struct pair){ norm, FT_STREAM_COMPUTE, copy, FT_STREAM_COPY,
					0, 1.5 },
			 &end_a),
		  1.5e-3 + 2e-3 - 1.5e-3 / 1.75, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collectives_share_a_nic_fluidly),
		cmocka_unit_test(compute_and_collective_slow_each_other),
		cmocka_unit_test(a_slow_link_hides_what_compute_takes),
		cmocka_unit_test(a_collective_waits_for_a_product_that_holds_all),
		cmocka_unit_test(copy_engines_leave_compute_alone),
		cmocka_unit_test(a_copy_crawls_beside_compute),
		cmocka_unit_test(a_copy_and_a_kernel_share_the_memory),
	};

	return cmocka_run_group_tests_name("sim/rates", tests, NULL, NULL);
}
