/* tests/test_engine.c - steps whose length is known, and what always holds */
#include "tests/check.h"

#include "base/arena.h"
#include "sim/engine.h"
#include "traces/build.h"
#include "tests/run_engine.h"
#include "tests/timing.h"

enum { WORK_F, WORK_B, WORK_W, WORK_SEND, WORKS };
enum { SEG_F, SEG_B, SEG_W, SEG_RECV_F, SEG_RECV_B, SEG_SEND_F, SEG_SEND_B, SEGS };

/* A pipeline of p stages: forwards of 1 s and backwards of 2 s per micro-batch, of which
 * half is the weights' where they are split; transfers of `delay`; stage `slow` takes `factor` times as long. */
struct pipeline {
	int p, m, vpp;
	double delay, factor;
	int slow;
	enum ft_schedule schedule;
};

static void set_segment(struct ft_graph *g, struct arena *mem, size_t i, struct ft_op o)
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
static struct ft_graph *pipeline_graph(struct arena *mem, const struct pipeline *pl)
{
	struct ft_graph *g = ARENA_NEW(mem, struct ft_graph);
	struct ft_plan plan = { .pp = pl->p,
				.vpp = pl->vpp,
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
	set_segment(g, mem, SEG_W, op(WORK_W, FT_STREAM_COMPUTE, -1, -1));
	set_segment(g, mem, SEG_RECV_F, op(WORK_SEND, FT_STREAM_RECV_FORWARD, -1, -1));
	set_segment(g, mem, SEG_RECV_B, op(WORK_SEND, FT_STREAM_RECV_BACKWARD, -1, -1));
	set_segment(g, mem, SEG_SEND_F,
		    op(WORK_SEND, FT_STREAM_SEND_FORWARD, compute, -1));
	set_segment(g, mem, SEG_SEND_B,
		    op(WORK_SEND, FT_STREAM_SEND_BACKWARD, compute, -1));
	set_segment(g, mem, SEGS, op(WORKS, FT_STREAM_COMPUTE, recv_f, -1));
	set_segment(g, mem, SEGS + 1, op(WORKS + 1, FT_STREAM_COMPUTE, recv_b, -1));
	g->n_classes = (size_t)pl->p;
	g->rank_class = ARENA_ARRAY(mem, g->n_classes, struct ft_class);
	for (int s = 0; s < pl->p; s++) {
		struct ft_class *c = &g->rank_class[s];
		size_t n = ft_plan_most_slots(&plan);
		struct ft_slot *slot = ARENA_ARRAY(mem, n, struct ft_slot);

		c->name = "stage";
		c->call = ARENA_ARRAY(mem, 3 * n, struct ft_call);
		assert_int_equal(ft_plan_slots(&plan, s, slot), n);
		for (size_t i = 0; i < n; i++) {
			bool first = s == 0 && slot[i].chunk == 0;
			bool last = s == pl->p - 1 && slot[i].chunk == pl->vpp - 1;
			bool forward = slot[i].kind == FT_SLOT_FORWARD;
			uint32_t slow = s == pl->slow ? SEGS : 0;

			if (slot[i].kind == FT_SLOT_WEIGHTS) {
				put_call(c, SEG_W);
				continue;
			}
			if (forward ? !first : !last)
				put_call(c, forward ? SEG_RECV_F : SEG_RECV_B);
			put_call(c, (forward ? SEG_F : SEG_B) + slow);
			if (forward ? !last : !first)
				put_call(c, forward ? SEG_SEND_F : SEG_SEND_B);
		}
	}
	return g;
}

/* One pipeline whose hosts launch everything at once. */
static struct engine_job *free_job(struct arena *mem, const struct ft_graph *g)
{
	struct engine_job *j = ARENA_NEW(mem, struct engine_job);

	*j = (struct engine_job){
		.graph = g,
		.host = ARENA_ARRAY(mem, 64 + g->n_segments, ft_ps),
		.host_begin = ARENA_ARRAY(mem, g->n_segments, size_t),
		.host_total = ARENA_ARRAY(mem, g->n_segments, ft_ps),
	};
	return j;
}

static double pipeline_s(const struct pipeline *pl)
{
	struct arena mem = { 0 };
	struct engine_input in = { 0 };
	struct engine_output out;
	struct work_timing cost[WORKS + 2] = { { 0 } };
	bool split = pl->schedule == FT_ZERO_BUBBLE;
	double s;

	cost[WORK_F].duration = ft_ps_from_s(1.0 / pl->vpp);
	cost[WORK_B].duration = ft_ps_from_s((split ? 1.0 : 2.0) / pl->vpp);
	cost[WORK_W].duration = ft_ps_from_s(1.0 / pl->vpp);
	cost[WORK_SEND].duration = ft_ps_from_s(pl->delay);
	cost[WORKS].duration = ft_ps_from_s(pl->factor / pl->vpp);
	cost[WORKS + 1].duration = ft_ps_from_s(2 * pl->factor / pl->vpp);
	for (size_t i = 0; i < WORKS + 2; i++)
		set_beside(&cost[i], 1);
	add_pipeline(&in, ARENA_ARRAY(&mem, (size_t)pl->p, struct engine_part),
		     free_job(&mem, pipeline_graph(&mem, pl)), cost, 0);
	s = run(&mem, &in, &out);
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
		/* zero-bubble: m*3 + (p-1) (1 + 1 - 1) */
		{ { 4, 8, 1, 0, 1, -1, FT_ZERO_BUBBLE }, 24 + 3 },
		{ { 16, 64, 1, 0, 1, -1, FT_ZERO_BUBBLE }, 192 + 15 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		near_frac(pipeline_s(&cases[i].pl), cases[i].want, 1e-9);
}

/* One op on one stream, as a graph. */
static struct ft_graph *lone_op(struct arena *mem, struct ft_work work,
				enum ft_stream stream)
{
	struct ft_graph *g = ARENA_NEW(mem, struct ft_graph);

	g->n_works = g->n_segments = g->n_classes = 1;
	g->work = ARENA_NEW(mem, struct ft_work);
	*g->work = work;
	g->segment = ARENA_NEW(mem, struct ft_segment);
	set_segment(g, mem, 0, op(0, stream, -1, -1));
	g->rank_class = ARENA_NEW(mem, struct ft_class);
	*g->rank_class = (struct ft_class){ .name = "c",
					    .ranks = 1,
					    .call = ARENA_NEW(mem, struct ft_call) };
	put_call(g->rank_class, 0);
	return g;
}

/* A job whose gather takes all of a link, beside one that takes half of it again and
 * again: max-min gives the first a half of the link, the second all it can use. */
static void jobs_slow_each_other_on_a_shared_link(void **state)
{
	struct arena mem = { 0 };
	struct ft_work w = { .name = "gather", .kind = FT_COMMUNICATION };
	struct ft_graph *g = lone_op(&mem, w, FT_STREAM_GATHER);
	struct network_path all = { 1, 1, { 0 }, { 1 } },
			    half = { 1, 1, { 0 }, { 0.5f } };
	struct work_timing a = takes(ft_ps_from_s(3e-3), 0, 0, 1, &all, 1);
	struct work_timing b = takes(ft_ps_from_s(1e-3), 0, 0, 1, &half, 1);
	struct engine_job *first = free_job(&mem, g), *second = free_job(&mem, g);
	struct engine_input in = { .n_links = 1 };
	struct engine_part part[2];
	struct engine_output out;

	(void)state;
	add_pipeline(&in, part, first, &a, 0);
	near_frac(run(&mem, &in, &out), 3e-3, 1e-9);
	add_pipeline(&in, part, second, &b, 1);
	second->again = true;
	/* rates r, r: 1.5 r = 1 */
	near_frac(run(&mem, &in, &out), 4.5e-3, 1e-9);
	assert_true(out.events >= 3);
	arena_release(&mem);
}

/* All replicas wait in the gradient reduction for the slow one. */
static void a_team_waits_for_its_slow_member(void **state)
{
	struct arena mem = { 0 };
	struct ft_work work[2] = { { .name = "f" },
				   { .name = "reduce", .kind = FT_COMMUNICATION } };
	struct ft_op ops[2] = { op(0, FT_STREAM_COMPUTE, -1, -1),
				op(1, FT_STREAM_REDUCE, FT_TAIL + FT_STREAM_COMPUTE,
				   -1) };
	struct ft_segment seg = { .name = "s", .n_ops = 2, .op = ops };
	struct ft_call call = { 0, 1 };
	struct ft_class class = {
		.name = "c", .ranks = 1, .n_calls = 1, .call = &call
	};
	struct ft_graph g = { .n_works = 2,
			      .work = work,
			      .n_segments = 1,
			      .segment = &seg,
			      .n_classes = 1,
			      .rank_class = &class };
	struct work_timing fast[2] = { takes(ft_ps_from_s(2), 0, 0, 1, NULL, 0),
				       takes(ft_ps_from_s(1), 0, 1, 1, NULL, 0) };
	struct work_timing slow[2] = { takes(ft_ps_from_s(2.5), 0, 0, 1, NULL, 0),
				       takes(ft_ps_from_s(1), 0, 1, 1, NULL, 0) };
	struct engine_job *job = free_job(&mem, &g);
	struct engine_input in = { 0 };
	struct engine_part part[2];
	struct engine_output out;

	(void)state;
	work[1].communication.group = FT_GROUP_DP;
	job->meeting = 1u << FT_GROUP_DP;
	add_pipeline(&in, part, job, fast, 0);
	near_frac(run(&mem, &in, &out), 3, 1e-9);
	add_pipeline(&in, part, job, slow, 0);
	near_frac(run(&mem, &in, &out), 3.5, 1e-9);
	near_frac(ft_s_from_ps(out.part[0].exposed), 1.5, 1e-9);
	near_frac(ft_s_from_ps(out.part[1].exposed), 1, 1e-9);
	arena_release(&mem);
}

static void a_wait_for_what_never_comes_is_an_error(void **state)
{
	struct arena mem = { 0 };
	struct ft_work work = { .name = "lonely", .kind = FT_COMMUNICATION };
	struct ft_op ops = op(0, FT_STREAM_RECV_FORWARD, -1, -1);
	struct ft_segment seg = { .name = "s", .n_ops = 1, .op = &ops };
	struct ft_call call = { 0, 1 };
	struct ft_class class = {
		.name = "c", .ranks = 1, .n_calls = 1, .call = &call
	};
	struct ft_graph g = { .n_works = 1,
			      .work = &work,
			      .n_segments = 1,
			      .segment = &seg,
			      .n_classes = 1,
			      .rank_class = &class };
	struct work_timing cost = { 0 };
	ft_ps host = 0, total = 0;
	size_t begin = 0;
	struct engine_job job = {
		.graph = &g, .host = &host, .host_begin = &begin, .host_total = &total
	};
	struct engine_input in = { 0 };
	struct engine_part part;
	struct engine_output out;
	struct ft_error err;

	(void)state;
	add_pipeline(&in, &part, &job, &cost, 0);
	out = room(&mem, &in);
	assert_false(engine_run(&mem, &in, &out, &err));
	assert_non_null(strstr(err.text, "lonely"));
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipelines_take_their_known_time),
		cmocka_unit_test(jobs_slow_each_other_on_a_shared_link),
		cmocka_unit_test(a_team_waits_for_its_slow_member),
		cmocka_unit_test(a_wait_for_what_never_comes_is_an_error),
	};

	return cmocka_run_group_tests_name("sim/engine", tests, NULL, NULL);
}
