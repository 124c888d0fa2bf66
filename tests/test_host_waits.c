/* tests/test_host_waits.c - hosts that wait for the GPU in the middle of what they launch */
#include "tests/check.h"

#include "base/arena.h"
#include "sim/engine.h"
#include "tests/timing.h"

enum { MOST_OPS = 12, MOST_CALLS = 4, STREAMS = 2 };

static const enum ft_stream streams[STREAMS] = { FT_STREAM_COMPUTE, FT_STREAM_EP };

/* One rank that calls one segment after another; in ms. */
struct program {
	bool free_host;
	int segments, calls;
	int ops[MOST_CALLS];
	struct {
		int stream, duration, offset;
		bool waits;
	} op[MOST_CALLS][MOST_OPS];
	int total[MOST_CALLS]; /* of the host, for a segment */
	int call[MOST_CALLS], repeat[MOST_CALLS];
};

/* By hand: streams are free at `end`, the host began the call at `began`. */
static int expected_ms(const struct program *p)
{
	int end[STREAMS] = { 0 }, host = 0, last = 0;

	for (int c = 0; c < p->calls; c++)
		for (int r = 0; r < p->repeat[c]; r++) {
			int s = p->call[c], began = host;

			for (int i = 0; i < p->ops[s]; i++) {
				int k = p->op[s][i].stream;
				int at =
					began + (p->free_host ? 0 : p->op[s][i].offset);

				end[k] = (at > end[k] ? at : end[k]) +
					 p->op[s][i].duration;
				if (p->op[s][i].waits)
					began += end[k] - at;
			}
			host = began + (p->free_host ? 0 : p->total[s]);
		}
	for (int k = 0; k < STREAMS; k++)
		last = end[k] > last ? end[k] : last;
	return last;
}

static ft_ps ms(int n)
{
	return ft_ps_from_s(n * 1e-3);
}

/* The program as the engine takes it: a work for each op. */
struct made {
	struct ft_graph g;
	struct ft_segment segment[MOST_CALLS];
	struct ft_op op[MOST_CALLS][MOST_OPS];
	struct ft_work work[MOST_CALLS * MOST_OPS];
	struct work_timing timing[MOST_CALLS * MOST_OPS];
	struct ft_class rank_class;
	struct ft_call call[MOST_CALLS];
	ft_ps host[MOST_CALLS * MOST_OPS], total[MOST_CALLS];
	size_t begin[MOST_CALLS];
};

static void make_segment(const struct program *p, int s, struct made *m)
{
	m->segment[s] = (struct ft_segment){ .name = "s",
					     .n_ops = (size_t)p->ops[s],
					     .op = m->op[s] };
	m->begin[s] = (size_t)(s * MOST_OPS);
	m->total[s] = ms(p->total[s]);
	for (int i = 0; i < p->ops[s]; i++) {
		int w = s * MOST_OPS + i;
		struct ft_op *op = &m->op[s][i];

		op->work = (uint32_t)w;
		op->stream = (uint8_t)streams[p->op[s][i].stream];
		op->record = FT_EVENT_NONE;
		op->host_waits = p->op[s][i].waits;
		memset(op->wait, FT_EVENT_NONE, sizeof(op->wait));
		m->work[w] = (struct ft_work){ .kind = FT_MEMORY_BOUND, .name = "w" };
		if (op->stream != FT_STREAM_COMPUTE) {
			m->work[w].kind = FT_COMMUNICATION;
			m->work[w].communication.group = FT_GROUP_EP;
		}
		m->timing[w].duration = ms(p->op[s][i].duration);
		set_beside(&m->timing[w], 1);
		m->host[w] = ms(p->op[s][i].offset);
	}
}

static void make(const struct program *p, struct made *m)
{
	for (int s = 0; s < p->segments; s++)
		make_segment(p, s, m);
	m->rank_class = (struct ft_class){ .name = "c", .ranks = 1, .call = m->call };
	for (int c = 0; c < p->calls; c++)
		m->call[m->rank_class.n_calls++] =
			(struct ft_call){ (uint32_t)p->call[c],
					  (uint32_t)p->repeat[c] };
	m->g = (struct ft_graph){ .n_works = MOST_CALLS * MOST_OPS,
				  .work = m->work,
				  .n_segments = (size_t)p->segments,
				  .segment = m->segment,
				  .n_classes = 1,
				  .rank_class = &m->rank_class };
}

/* Programs side by side, those behind the first started over until it is done. */
static double engine_s(const struct program *p, int n, struct ft_class_result *result)
{
	struct made *m = calloc((size_t)n, sizeof(*m));
	struct arena mem = { 0 };
	struct engine_job job[2];
	struct engine_part part[2];
	struct engine_input in = { .part = part,
				   .n_parts = (size_t)n,
				   .n_pipelines = (size_t)n,
				   .n_teams = (size_t)n };
	ft_ps time[MOST_CALLS * MOST_OPS] = { 0 };
	uint64_t count[MOST_CALLS * MOST_OPS] = { 0 };
	struct engine_output out = { .part = result,
				     .work_time = time,
				     .work_count = count };
	struct ft_error err;

	for (int i = 0; i < n; i++) {
		make(&p[i], &m[i]);
		job[i] = (struct engine_job){ .graph = &m[i].g,
					      .host = m[i].host,
					      .host_begin = m[i].begin,
					      .host_total = m[i].total,
					      .host_free = p[i].free_host,
					      .again = i > 0 };
		part[i] = (struct engine_part){ .job = &job[i],
						.timing = m[i].timing,
						.next = (uint32_t)i,
						.before = (uint32_t)i,
						.pipeline = (uint32_t)i,
						.team = (uint32_t)i,
						.name = "p" };
	}
	ok_or_say(engine_run(&mem, &in, &out, &err), err);
	arena_release(&mem);
	free(m);
	return ft_s_from_ps(out.end);
}

static double alone_s(const struct program *p)
{
	struct ft_class_result r = { 0 };
	double s = engine_s(p, 1, &r);

	assert_int_equal(r.compute + r.exposed + r.bubble + r.host + r.optimizer,
			 r.end);
	return s;
}

/* Ops of 3 and 1 ms, launched at 1 and 2 ms of their call. */
static struct program two_ops(bool waits, int repeat)
{
	return (struct program){
		.segments = 1,
		.calls = 1,
		.ops = { 2 },
		.op = { { { 0, 3, 1, waits }, { 0, 1, 2, false } } },
		.total = { 2 },
		.call = { 0 },
		.repeat = { repeat },
	};
}

static void the_next_op_is_launched_after_what_the_host_waits_for(void **state)
{
	struct program p = two_ops(false, 1);

	(void)state;
	/* 1 to 4, 4 to 5 */
	near_frac(alone_s(&p), 5e-3, 1e-9);
	/* 1 to 4; the second is launched 1 ms later */
	p = two_ops(true, 1);
	near_frac(alone_s(&p), 6e-3, 1e-9);
	/* the next call begins at 5: 6 to 9, 10 to 11 */
	p = two_ops(true, 2);
	near_frac(alone_s(&p), 11e-3, 1e-9);
	/* a host that costs nothing still waits: 0 to 3, 3 to 4 */
	p.free_host = true;
	near_frac(alone_s(&p), 8e-3, 1e-9);
}

static void a_wait_at_the_end_holds_the_next_call(void **state)
{
	struct program p = two_ops(false, 2);

	(void)state;
	p.op[0][1].waits = true;
	/* 1 to 4, 4 to 5; the next call begins at 5: 6 to 9, 9 to 10 */
	near_frac(alone_s(&p), 10e-3, 1e-9);
}

/* What runs on one stream does not keep a host from going on that waits for another. */
static void the_host_waits_for_that_op_alone(void **state)
{
	struct program p = two_ops(true, 1);

	(void)state;
	p.ops[0] = 3;
	p.op[0][2] = p.op[0][1];
	p.op[0][0].stream = 0;
	p.op[0][0].waits = false;
	p.op[0][0].duration = 9;
	p.op[0][1].stream = 1;
	p.op[0][1].waits = true;
	p.op[0][1].duration = 2;
	p.op[0][2].stream = 1;
	p.op[0][2].offset = 3;
	p.total[0] = 3;
	/* 1 to 10 on one; 2 to 4 and, launched at 5, to 6 on the other */
	near_frac(alone_s(&p), 10e-3, 1e-9);
	p.op[0][2].duration = 7;
	near_frac(alone_s(&p), 12e-3, 1e-9);
}

/* A job that starts over waits within its step for what it waits for alone, and between
 * steps for all: 4 ms on one stream, two of 1 ms on the other in each. */
static void a_job_that_starts_over_waits_for_its_own(void **state)
{
	struct program p[2] = { two_ops(false, 1), two_ops(true, 1) };
	struct ft_class_result r[2] = { { 0 }, { 0 } };

	(void)state;
	p[0].op[0][0].duration = 396;
	p[0].op[0][0].offset = 0;
	p[1].free_host = true;
	p[1].ops[0] = 3;
	p[1].op[0][2] = p[1].op[0][1];
	p[1].op[0][1] = p[1].op[0][0];
	p[1].op[0][1].duration = 1;
	p[1].op[0][0].stream = 1;
	p[1].op[0][0].duration = 4;
	p[1].op[0][0].waits = false;
	near_frac(engine_s(p, 2, r), 397e-3, 1e-9);
	near_frac(ft_s_from_ps(r[1].compute), 2e-3 * 397 / 4, 0.02);
}

static void draw(struct program *p, uint64_t *seed)
{
	*p = (struct program){ .free_host = rnd(seed) % 4 == 0,
			       .segments = 1 + (int)(rnd(seed) % MOST_CALLS),
			       .calls = 1 + (int)(rnd(seed) % MOST_CALLS) };
	for (int s = 0; s < p->segments; s++) {
		p->ops[s] = 1 + (int)(rnd(seed) % MOST_OPS);
		for (int i = 0; i < p->ops[s]; i++) {
			p->total[s] += (int)(rnd(seed) % 5);
			p->op[s][i].offset = p->total[s];
			p->op[s][i].stream = (int)(rnd(seed) % STREAMS);
			p->op[s][i].duration = 1 + (int)(rnd(seed) % 9);
			p->op[s][i].waits = rnd(seed) % 4 == 0;
		}
	}
	for (int c = 0; c < p->calls; c++) {
		p->call[c] = (int)(rnd(seed) % (uint32_t)p->segments);
		p->repeat[c] = 1 + (int)(rnd(seed) % 5);
	}
}

static void drawn_programs_take_their_time(void **state)
{
	uint64_t seed = 11;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		struct program p;

		draw(&p, &seed);
		near_frac(alone_s(&p), expected_ms(&p) * 1e-3, 1e-9);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_op_is_launched_after_what_the_host_waits_for),
		cmocka_unit_test(a_wait_at_the_end_holds_the_next_call),
		cmocka_unit_test(the_host_waits_for_that_op_alone),
		cmocka_unit_test(a_job_that_starts_over_waits_for_its_own),
		cmocka_unit_test(drawn_programs_take_their_time),
	};

	return cmocka_run_group_tests_name("sim/engine_host", tests, NULL, NULL);
}
