/*
 * tests/test_engine_drawn.c - steps of programs that are drawn, against the obvious simulation
 * (tests/simple_engine.h): when each part is over, what its time went to, what each work took
 *
 * Pipelines of up to three stages under 1F1B, one or two of them whose stages meet in collectives;
 * ops of all streams with waits at random, hosts that wait, links that are shared. Each is run whole,
 * and with passes jumped over.
 */
#include "tests/simple_engine.h"

#include "base/arena.h"

enum { DRAWS = 1000, STAGES = 3, KINDS = 3, WORKS = KINDS * FT_STREAMS, OPS = 6 };
enum { RECV_F, LAYER_F, SEND_F, RECV_B, LAYER_B, SEND_B, UPDATE, SEGMENTS };
enum { CALLS = 300, ALL_SEGMENTS = STAGES * SEGMENTS, ROOM = OPS + 3 };

static uint64_t seed = 33;

static bool once_in(int n)
{
	return !rnd_below(&seed, n);
}

struct made {
	int stages, pipelines, micro_batches;
	struct ft_graph g;
	struct ft_work work[WORKS + 1]; /* the last: of a tied embedding */
	struct work_timing timing[2][WORKS + 1];
	struct ft_segment segment[ALL_SEGMENTS];
	struct ft_op op[ALL_SEGMENTS][ROOM];
	ft_ps host[ALL_SEGMENTS * ROOM], total[ALL_SEGMENTS];
	size_t begin[ALL_SEGMENTS];
	struct ft_class rank_class[STAGES];
	struct ft_call call[STAGES][CALLS];
	struct ft_slot_mark slot[STAGES][CALLS];
	struct network_path path[4];
	bool shares, host_waits, calm; /* calm: little happens beside compute */
	struct engine_job job;
	struct engine_part part[2 * STAGES];
	struct engine_input in;
};

/* ---- what is drawn ------------------------------------------------------------------- */

static ft_ps drawn_ps(void)
{
	return 1000000 + (ft_ps)rnd_below(&seed, 1000000000);
}

static float drawn_factor(void)
{
	return 1 + (float)rnd_below(&seed, 7) / 8;
}

static void draw_work(struct made *m, int i)
{
	int stream = i / KINDS;
	bool sends = stream >= FT_STREAM_SEND_FORWARD;
	struct ft_work *w = &m->work[i];
	struct work_timing *t = &m->timing[0][i];

	*w = (struct ft_work){ .name = "w", .kind = FT_MEMORY_BOUND };
	if (i == WORKS || stream >= FT_STREAM_GATHER) {
		w->kind = FT_COMMUNICATION;
		w->communication.group =
			i == WORKS ? FT_GROUP_EMBEDDING :
			sends	   ? FT_GROUP_PP :
				     (enum ft_group)rnd_below(&seed, FT_GROUP_PP);
	} else if (stream == FT_STREAM_COMPUTE && rnd_below(&seed, 2)) {
		w->kind = FT_GEMM;
	}
	*t = (struct work_timing){ .duration = drawn_ps(),
				   .slows = drawn_factor(),
				   .slows_copy = 1 + (float)rnd_below(&seed, 8) / 4,
				   .beside_copy = drawn_factor(),
				   .held = (enum holds)rnd_below(&seed, HELD_KINDS),
				   .copy_engine =
					   w->kind == FT_COMMUNICATION && once_in(6),
				   .holds_all = w->kind == FT_GEMM && once_in(3) };
	if (m->shares && w->kind == FT_COMMUNICATION) {
		t->port_frac = (float)rnd_below(&seed, 5) / 4;
		t->nic_frac = (float)rnd_below(&seed, 5) / 4;
		t->path = once_in(3) ? &m->path[rnd_below(&seed, 4)] : NULL;
		t->path_frac = 0.5f + (float)rnd_below(&seed, 3) / 4;
	}
	for (int k = 0; k < HELD_KINDS; k++)
		t->beside[k] = drawn_factor();
	m->timing[1][i] = *t; /* of a pipeline that is slower */
	if (w->kind != FT_COMMUNICATION)
		m->timing[1][i].duration += t->duration / 7;
}

/* Waits for events, and for all so far of other streams. */
static struct ft_op drawn_op(enum ft_stream stream)
{
	struct ft_op op = { .work = (uint32_t)stream * KINDS +
				    (uint32_t)rnd_below(&seed, KINDS),
			    .stream = (uint8_t)stream,
			    .launches = 1,
			    .optimizer = stream == FT_STREAM_COMPUTE && once_in(6),
			    .record = FT_EVENT_NONE };
	int n = rnd_below(&seed, 3);

	if (once_in(3))
		op.record = (uint8_t)rnd_below(&seed, FT_EVENTS);
	memset(op.wait, FT_EVENT_NONE, sizeof(op.wait));
	for (int i = 0; i < n; i++)
		op.wait[i] = once_in(3) ?
				     (uint8_t)rnd_below(&seed, FT_EVENTS) :
				     (uint8_t)(FT_TAIL + rnd_below(&seed, FT_STREAMS));
	return op;
}

static struct ft_op op_behind(enum ft_stream stream, int waits_for)
{
	struct ft_op op = drawn_op(stream);

	op.record = FT_EVENT_NONE;
	memset(op.wait, FT_EVENT_NONE, sizeof(op.wait));
	if (waits_for >= 0)
		op.wait[0] = (uint8_t)(FT_TAIL + waits_for);
	return op;
}

/* A layer computes behind what came from the neighbour, and does this and that beside. */
static size_t draw_layer(const struct made *m, struct ft_op *op, int received)
{
	size_t n = 0, more = (size_t)rnd_below(&seed, m->calm ? 3 : OPS);

	op[n] = op_behind(FT_STREAM_COMPUTE, received);
	op[n++].optimizer = false;
	for (size_t i = 0; i < more; i++)
		op[n++] = drawn_op(once_in(2) ? FT_STREAM_COMPUTE :
						(enum ft_stream)rnd_below(
							&seed, FT_STREAM_EP + 1));
	if (m->host_waits && once_in(3))
		op[rnd_below(&seed, (int)n)].host_waits = true;
	return n;
}

static void draw_segment(struct made *m, int stage, int what)
{
	int at = stage * SEGMENTS + what;
	struct ft_op *op = m->op[at];
	ft_ps host = 0;
	size_t n = 1;

	switch (what) {
	case LAYER_F:
		n = draw_layer(m, op, stage ? FT_STREAM_RECV_FORWARD : -1);
		break;
	case LAYER_B:
		n = draw_layer(m, op,
			       stage + 1 < m->stages ? FT_STREAM_RECV_BACKWARD : -1);
		break;
	case UPDATE:
		n = draw_layer(m, op, -1);
		if (m->stages > 1 && (!stage || stage + 1 == m->stages)) {
			op[n] = op_behind(FT_STREAM_REDUCE, FT_STREAM_COMPUTE);
			op[n++].work = WORKS;
			if (once_in(2)) /* of its team, behind that of its pipeline */
				op[n++] = op_behind(FT_STREAM_REDUCE, -1);
		}
		break;
	case RECV_F:
		op[0] = op_behind(FT_STREAM_RECV_FORWARD, -1);
		break;
	case RECV_B:
		op[0] = op_behind(FT_STREAM_RECV_BACKWARD, -1);
		break;
	case SEND_F:
		op[0] = op_behind(FT_STREAM_SEND_FORWARD, FT_STREAM_COMPUTE);
		break;
	default:
		op[0] = op_behind(FT_STREAM_SEND_BACKWARD, FT_STREAM_COMPUTE);
	}
	m->segment[at] = (struct ft_segment){ .name = "s", .n_ops = n, .op = op };
	m->begin[at] = (size_t)at * ROOM;
	for (size_t i = 0; i < n; i++)
		m->host[m->begin[at] + i] = host += drawn_ps() / 2;
	m->total[at] = host + drawn_ps() / 9;
}

static void put(struct made *m, int stage, int what, uint32_t repeat)
{
	struct ft_class *c = &m->rank_class[stage];

	assert_true(c->n_calls < CALLS);
	c->call[c->n_calls++] =
		(struct ft_call){ (uint32_t)(stage * SEGMENTS + what), repeat };
}

static void put_pass(struct made *m, int stage, bool back, int micro_batch)
{
	struct ft_class *c = &m->rank_class[stage];
	bool from = back ? stage + 1 < m->stages : stage > 0,
	     to = back ? stage > 0 : stage + 1 < m->stages;

	c->slot[c->n_slots++] =
		(struct ft_slot_mark){ { back ? FT_SLOT_BACKWARD : FT_SLOT_FORWARD, 0,
					 micro_batch },
				       c->n_calls };
	if (from)
		put(m, stage, back ? RECV_B : RECV_F, 1);
	put(m, stage, back ? LAYER_B : LAYER_F, 2);
	if (to)
		put(m, stage, back ? SEND_B : SEND_F, 1);
}

/* 1F1B: as many forwards ahead as stages are behind. */
static void put_program(struct made *m, int stage)
{
	int ahead = m->stages - 1 - stage, forward = 0, back = 0;
	struct ft_class *c = &m->rank_class[stage];

	*c = (struct ft_class){
		.name = "c", .ranks = 1, .call = m->call[stage], .slot = m->slot[stage]
	};
	while (back < m->micro_batches)
		if (forward < m->micro_batches && forward - back <= ahead)
			put_pass(m, stage, false, forward++);
		else
			put_pass(m, stage, true, back++);
	c->slot[c->n_slots++] =
		(struct ft_slot_mark){ { FT_SLOT_UPDATE, 0, 0 }, c->n_calls };
	put(m, stage, UPDATE, 1);
}

static void draw(struct made *m)
{
	memset(m, 0, sizeof(*m));
	m->stages = 1 + rnd_below(&seed, STAGES);
	m->pipelines = 1 + rnd_below(&seed, 2);
	m->calm = once_in(2);
	m->shares = once_in(3);
	m->host_waits = once_in(3);
	for (int i = 0; i < 4; i++)
		m->path[i] = (struct network_path){
			.n_uses = 1 + rnd_below(&seed, 2),
			.link = { (uint32_t)rnd_below(&seed, 2), 2 },
			.use = { (float)(1 + rnd_below(&seed, 4)) / 4,
				 (float)(1 + rnd_below(&seed, 4)) / 4 },
		};
	m->micro_batches = m->stages + rnd_below(&seed, m->calm ? 36 : 12);
	for (int i = 0; i <= WORKS; i++)
		draw_work(m, i);
	for (int s = 0; s < m->stages; s++) {
		for (int k = 0; k < SEGMENTS; k++)
			draw_segment(m, s, k);
		put_program(m, s);
	}
	m->g = (struct ft_graph){ .n_works = WORKS + 1,
				  .n_segments = (size_t)m->stages * SEGMENTS,
				  .n_classes = (size_t)m->stages,
				  .work = m->work,
				  .segment = m->segment,
				  .rank_class = m->rank_class };
	m->job = (struct engine_job){ .graph = &m->g,
				      .host = m->host,
				      .host_begin = m->begin,
				      .host_total = m->total,
				      .host_free = rnd_below(&seed, 2),
				      .meeting = (uint32_t)rnd_below(
					      &seed, 1 << FT_GROUP_PP) };
	for (int i = 0; i < m->pipelines * m->stages; i++) {
		int pipeline = i / m->stages, stage = i % m->stages;
		int first = pipeline * m->stages;

		m->part[i] = (struct engine_part){
			.job = &m->job,
			.rank_class = (size_t)stage,
			.timing = m->timing[pipeline],
			.next = (uint32_t)(first + (stage + 1) % m->stages),
			.before =
				(uint32_t)(first + (stage + m->stages - 1) % m->stages),
			.pipeline = (uint32_t)pipeline,
			.team = (uint32_t)stage,
			.name = "part",
		};
	}
	m->in = (struct engine_input){ .part = m->part,
				       .n_parts = (size_t)(m->pipelines * m->stages),
				       .n_pipelines = (size_t)m->pipelines,
				       .n_teams = (size_t)m->stages,
				       .n_links = 3 };
}

/* ---- held against each other ---------------------------------------------------------- */

/* Each change of a rate rounds an op's end to the next picosecond. */
static void near_ps(const char *what, int draw, ft_ps got, double want)
{
	if (fabs((double)got - want) > 20000 + 1e-9 * want)
		fail_msg("draw %d: %s is %.0f ps, wanted %.0f", draw, what, (double)got,
			 want);
}

static uint64_t hold(struct made *m, const struct simple *x, int draw)
{
	struct ft_class_result part[2 * STAGES] = { { 0 } };
	ft_ps work_time[WORKS + 1] = { 0 };
	uint64_t work_count[WORKS + 1] = { 0 };
	struct engine_output out = { .part = part,
				     .work_time = work_time,
				     .work_count = work_count };
	struct arena mem = { 0 };
	struct ft_error err;

	ok_or_say(engine_run(&mem, &m->in, &out, &err), err);
	for (size_t i = 0; i < m->in.n_parts; i++) {
		const double *spent = x->part[i].spent;

		near_ps("the end of a part", draw, part[i].end, x->part[i].end);
		near_ps("optimizer", draw, part[i].optimizer, spent[0]);
		near_ps("compute", draw, part[i].compute, spent[1]);
		near_ps("exposed", draw, part[i].exposed, spent[2]);
		near_ps("bubble", draw, part[i].bubble, spent[3]);
		near_ps("host", draw, part[i].host, spent[4]);
	}
	for (int i = 0; i <= WORKS; i++) {
		near_ps("a work", draw, work_time[i], x->work_time[i]);
		assert_int_equal(work_count[i], x->work_count[i]);
	}
	near_ps("the end", draw, out.end, x->end);
	arena_release(&mem);
	return out.jumped;
}

static void a_step_is_that_of_the_obvious_simulation(void **state)
{
	static struct simple x;
	static struct made m;
	int jumped = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		draw(&m);
		if (!simple_run(&x, &m.in))
			fail_msg("draw %d never ends", i);
		for (int all = 1; all >= 0; all--) {
			m.in.run_all = all;
			jumped += hold(&m, &x, i) > 0;
		}
	}
	print_message("%d of %d were run with jumps\n", jumped, DRAWS);
	assert_true(jumped > DRAWS / 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_that_of_the_obvious_simulation),
	};

	return cmocka_run_group_tests_name("engine drawn", tests, NULL, NULL);
}
