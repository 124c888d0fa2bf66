/* tests/test_engine.c - steps whose length is known, and what always holds */
#include "tests/check.h"

#include "base/arena.h"
#include "sim/engine.h"
#include "traces/build.h"

enum { WORK_F, WORK_B, WORK_SEND, WORKS };
enum { SEG_F, SEG_B, SEG_RECV_F, SEG_RECV_B, SEG_SEND_F, SEG_SEND_B, SEGS };

/* A pipeline of p stages: forwards of 1 s and backwards of 2 s per micro-batch,
 * transfers of `delay`; stage `slow` takes `factor` times as long. */
struct pipeline {
	int p, m, vpp;
	double delay, factor;
	int slow;
	enum ft_schedule schedule;
};

static struct ft_op op(uint32_t work, enum ft_stream stream, int w0, int w1)
{
	struct ft_op o = { .work = work, .stream = (uint8_t)stream,
			   .record = FT_EVENT_NONE };

	memset(o.wait, FT_EVENT_NONE, sizeof(o.wait));
	if (w0 >= 0)
		o.wait[0] = (uint8_t)w0;
	if (w1 >= 0)
		o.wait[1] = (uint8_t)w1;
	return o;
}

static void set_segment(struct ft_graph *g, struct arena *mem, size_t i,
			struct ft_op o)
{
	g->segment[i].n_ops = 1;
	g->segment[i].op = ARENA_NEW(mem, struct ft_op);
	g->segment[i].op[0] = o;
}

static void put_call(struct ft_class *c, uint32_t segment)
{
	c->call[c->n_calls++] = (struct ft_call){ segment, 1 };
}

/* Segments 0..5 for whole stages, and 6..7 for the slow one. */
static struct ft_graph *pipeline_graph(struct arena *mem,
				       const struct pipeline *pl)
{
	struct ft_graph *g = ARENA_NEW(mem, struct ft_graph);
	struct ft_plan plan = { .pp = pl->p, .vpp = pl->vpp,
				.micro_batches = pl->m,
				.schedule = pl->schedule };
	int recv_f = FT_TAIL + FT_STREAM_RECV_FORWARD;
	int recv_b = FT_TAIL + FT_STREAM_RECV_BACKWARD;
	int compute = FT_TAIL + FT_STREAM_COMPUTE;

	g->n_works = WORKS + 2;
	g->work = ARENA_ARRAY(mem, g->n_works, struct ft_work);
	for (size_t i = 0; i < g->n_works; i++)
		g->work[i].name = "w";
	g->work[WORK_SEND].kind = FT_COMMUNICATION;
	g->work[WORK_SEND].communication.group = FT_GROUP_PP;
	g->n_segments = SEGS + 2;
	g->segment = ARENA_ARRAY(mem, g->n_segments, struct ft_segment);
	set_segment(g, mem, SEG_F, op(WORK_F, FT_STREAM_COMPUTE, recv_f, -1));
	set_segment(g, mem, SEG_B, op(WORK_B, FT_STREAM_COMPUTE, recv_b, -1));
	set_segment(g, mem, SEG_RECV_F, op(WORK_SEND, FT_STREAM_RECV_FORWARD, -1, -1));
	set_segment(g, mem, SEG_RECV_B, op(WORK_SEND, FT_STREAM_RECV_BACKWARD, -1, -1));
	set_segment(g, mem, SEG_SEND_F, op(WORK_SEND, FT_STREAM_SEND_FORWARD, compute, -1));
	set_segment(g, mem, SEG_SEND_B, op(WORK_SEND, FT_STREAM_SEND_BACKWARD, compute, -1));
	set_segment(g, mem, SEGS, op(WORKS, FT_STREAM_COMPUTE, recv_f, -1));
	set_segment(g, mem, SEGS + 1, op(WORKS + 1, FT_STREAM_COMPUTE, recv_b, -1));
	g->n_classes = (size_t)pl->p;
	g->class = ARENA_ARRAY(mem, g->n_classes, struct ft_class);
	for (int s = 0; s < pl->p; s++) {
		struct ft_class *c = &g->class[s];
		size_t n = (size_t)(2 * pl->m * pl->vpp);
		struct slot *slot = ARENA_ARRAY(mem, n, struct slot);

		c->name = "stage";
		c->call = ARENA_ARRAY(mem, 3 * n, struct ft_call);
		assert_int_equal(schedule_slots(mem, &plan, s, slot), n);
		for (size_t i = 0; i < n; i++) {
			bool first = s == 0 && slot[i].chunk == 0;
			bool last = s == pl->p - 1 && slot[i].chunk == pl->vpp - 1;
			uint32_t slow = s == pl->slow ? SEGS : 0;

			if (slot[i].forward ? !first : !last)
				put_call(c, slot[i].forward ? SEG_RECV_F : SEG_RECV_B);
			put_call(c, (slot[i].forward ? SEG_F : SEG_B) + slow);
			if (slot[i].forward ? !last : !first)
				put_call(c, slot[i].forward ? SEG_SEND_F : SEG_SEND_B);
		}
	}
	return g;
}

static double run(const struct ft_graph *g, const struct cost *cost,
		  struct arena *mem, struct engine_output *out)
{
	size_t *begin = ARENA_ARRAY(mem, g->n_segments, size_t);
	ft_ps *total = ARENA_ARRAY(mem, g->n_segments, ft_ps);
	ft_ps *host = ARENA_ARRAY(mem, 64 + g->n_segments, ft_ps);
	struct engine_input in = { .graph = g, .cost = cost, .host = host,
				   .host_begin = begin, .host_total = total,
				   .copy_beside_gemm = 1 };
	struct ft_error err;

	*out = (struct engine_output){
		.class = ARENA_ARRAY(mem, g->n_classes, struct ft_class_result),
		.work_time = ARENA_ARRAY(mem, g->n_works, ft_ps),
		.work_count = ARENA_ARRAY(mem, g->n_works, uint64_t),
	};
	ok_or_say(engine_run(mem, &in, out, &err), err);
	return ft_s_from_ps(out->end);
}

static double pipeline_s(const struct pipeline *pl)
{
	struct arena mem = { 0 };
	struct engine_output out;
	struct cost cost[WORKS + 2] = { { 0 } };
	double s;

	cost[WORK_F].duration = ft_ps_from_s(1.0 / pl->vpp);
	cost[WORK_B].duration = ft_ps_from_s(2.0 / pl->vpp);
	cost[WORK_SEND].duration = ft_ps_from_s(pl->delay);
	cost[WORKS].duration = ft_ps_from_s(pl->factor / pl->vpp);
	cost[WORKS + 1].duration = ft_ps_from_s(2 * pl->factor / pl->vpp);
	for (size_t i = 0; i < WORKS + 2; i++)
		cost[i].beside = 1;
	s = run(pipeline_graph(&mem, pl), cost, &mem, &out);
	arena_release(&mem);
	return s;
}

static void pipelines_take_their_known_time(void **state)
{
	static const struct {
		struct pipeline pl;
		double want;
	} cases[] = {
		{ { 4, 8, 1, 0, 1, -1, FT_1F1B }, 33 },
		{ { 4, 8, 1, 0.1, 1, -1, FT_1F1B }, 34.6 },
		{ { 4, 8, 1, 0, 1.1, 2, FT_1F1B }, 35.1 },
		{ { 16, 64, 1, 0, 1, -1, FT_1F1B }, 237 },
		{ { 4, 8, 1, 0, 1, -1, FT_GPIPE }, 33 },
		/* interleaving divides the bubble by vpp: m*3 + (p-1)*3/vpp */
		{ { 4, 8, 2, 0, 1, -1, FT_INTERLEAVED }, 24 + 4.5 },
		{ { 4, 16, 4, 0, 1, -1, FT_INTERLEAVED }, 48 + 2.25 },
		{ { 1, 5, 1, 0, 1, -1, FT_1F1B }, 15 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		near_frac(pipeline_s(&cases[i].pl), cases[i].want, 1e-9);
}

/* One class, two ops on two streams; the rates say how long they take. */
static double pair_s(struct cost a, enum ft_stream sa, struct cost b,
		     enum ft_stream sb, ft_ps launch_b, double copy, double *end_a)
{
	struct arena mem = { 0 };
	struct ft_work work[2] = { { .name = "a" }, { .name = "b" } };
	struct ft_op ops[2] = { op(0, sa, -1, -1), op(1, sb, -1, -1) };
	struct ft_segment seg = { .name = "s", .n_ops = 2, .op = ops };
	struct ft_call call = { 0, 1 };
	struct ft_class class = { .name = "c", .ranks = 1, .n_calls = 1,
				  .call = &call };
	struct ft_graph g = { .n_works = 2, .work = work, .n_segments = 1,
			      .segment = &seg, .n_classes = 1, .class = &class };
	struct cost cost[2] = { a, b };
	ft_ps host[2] = { 0, launch_b }, total = launch_b;
	size_t begin = 0;
	struct engine_input in = { .graph = &g, .cost = cost, .host = host,
				   .host_begin = &begin, .host_total = &total,
				   .copy_beside_gemm = copy };
	ft_ps time[2] = { 0 };
	uint64_t count[2] = { 0 };
	struct ft_class_result result = { 0 };
	struct engine_output out = { .class = &result, .work_time = time,
				     .work_count = count };
	struct ft_error err;
	double s;

	ok_or_say(engine_run(&mem, &in, &out, &err), err);
	s = ft_s_from_ps(out.end);
	*end_a = ft_s_from_ps(time[0]);
	assert_int_equal(result.compute + result.exposed + result.bubble +
				 result.host + result.optimizer,
			 result.end);
	arena_release(&mem);
	return s;
}

static void collectives_share_a_nic_fluidly(void **state)
{
	/* 50 GB/s: 100 MB at 0 and 50 MB at 1 ms both end at 3 ms */
	struct cost a = { ft_ps_from_s(2e-3), 0, 1, 1, false };
	struct cost b = { ft_ps_from_s(1e-3), 0, 1, 1, false };
	double end_a;

	(void)state;
	near_frac(pair_s(a, FT_STREAM_GATHER, b, FT_STREAM_REDUCE,
			 ft_ps_from_s(1e-3), 1, &end_a), 3e-3, 1e-9);
	near_frac(end_a, 3e-3, 1e-9);
	/* both at 0: b ends at 2 ms, a at 3 ms */
	near_frac(pair_s(a, FT_STREAM_GATHER, b, FT_STREAM_REDUCE, 0, 1, &end_a),
		  3e-3, 1e-9);
	near_frac(end_a, 3e-3, 1e-9);
	/* different links: no sharing */
	b.nic_frac = 0;
	b.port_frac = 1;
	near_frac(pair_s(a, FT_STREAM_GATHER, b, FT_STREAM_REDUCE, 0, 1, &end_a),
		  2e-3, 1e-9);
}

static void compute_and_collective_slow_each_other(void **state)
{
	struct cost gemm = { ft_ps_from_s(1e-3), 0, 0, 1.5f, false };
	struct cost gather = { ft_ps_from_s(10e-3), 0, 0, 1.25f, false };
	double end_a;

	(void)state;
	/* gemm 1.5 ms; the collective did 1.2 ms of work by then, then 8.8 more */
	near_frac(pair_s(gemm, FT_STREAM_COMPUTE, gather, FT_STREAM_GATHER, 0, 1,
			 &end_a), 10.3e-3, 1e-9);
	near_frac(end_a, 1.5e-3, 1e-9);
}

static void a_copy_crawls_beside_compute(void **state)
{
	struct cost gemm = { ft_ps_from_s(4e-3), 0, 0, 1.5f, false };
	struct cost copy = { ft_ps_from_s(2e-3), 0, 0, 1, false };
	double end_a;

	(void)state;
	/* 4 ms at a quarter: 1 ms done, 1 ms left */
	near_frac(pair_s(gemm, FT_STREAM_COMPUTE, copy, FT_STREAM_COPY, 0, 4,
			 &end_a), 5e-3, 1e-9);
}

static void a_wait_for_what_never_comes_is_an_error(void **state)
{
	struct arena mem = { 0 };
	struct ft_work work = { .name = "lonely", .kind = FT_COMMUNICATION };
	struct ft_op ops = op(0, FT_STREAM_RECV_FORWARD, -1, -1);
	struct ft_segment seg = { .name = "s", .n_ops = 1, .op = &ops };
	struct ft_call call = { 0, 1 };
	struct ft_class class = { .name = "c", .ranks = 1, .n_calls = 1,
				  .call = &call };
	struct ft_graph g = { .n_works = 1, .work = &work, .n_segments = 1,
			      .segment = &seg, .n_classes = 1, .class = &class };
	struct cost cost = { 0 };
	ft_ps host = 0, total = 0, time = 0;
	uint64_t count = 0;
	size_t begin = 0;
	struct engine_input in = { .graph = &g, .cost = &cost, .host = &host,
				   .host_begin = &begin, .host_total = &total };
	struct ft_class_result result = { 0 };
	struct engine_output out = { .class = &result, .work_time = &time,
				     .work_count = &count };
	struct ft_error err;

	(void)state;
	assert_false(engine_run(&mem, &in, &out, &err));
	assert_non_null(strstr(err.text, "lonely"));
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipelines_take_their_known_time),
		cmocka_unit_test(collectives_share_a_nic_fluidly),
		cmocka_unit_test(compute_and_collective_slow_each_other),
		cmocka_unit_test(a_copy_crawls_beside_compute),
		cmocka_unit_test(a_wait_for_what_never_comes_is_an_error),
	};

	return cmocka_run_group_tests_name("sim/engine", tests, NULL, NULL);
}
