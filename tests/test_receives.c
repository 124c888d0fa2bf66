/*
 * tests/test_receives.c - receives that wait beside kernels (sim/receives.c): two stages by hand, and drawn
 * pipelines of chunks run millisecond by millisecond
 */
#include "tests/seeded.h"

#include "base/arena.h"
#include "sim/job.h"

enum { STAGES = 5, CHUNKS = 3, MICRO = 6, KERNELS = 3, MS = 1000000000 };
enum { SEGMENTS = 8 * KERNELS, PASSES = 2 * CHUNKS * MICRO, UNITS = 100, HELD = 10 };

/* A pipeline whose passes are a kernel of attention each. */
struct pipeline {
	struct ft_gpu gpu;
	struct ft_cluster cluster;
	struct ft_stack stack;
	struct ft_work work[1 + KERNELS]; /* the first: what stages send */
	struct ft_op op[SEGMENTS][3];
	struct ft_segment segment[SEGMENTS];
	struct ft_call call[STAGES][PASSES];
	struct ft_slot_mark slot[STAGES][PASSES];
	struct ft_class stage[STAGES];
	struct ft_graph graph;
	struct work_timing first[1 + KERNELS], *timing[STAGES];
	struct arena mem;
	struct job job;
};

static void put(struct pipeline *p, struct ft_segment *seg, enum ft_stream stream,
		uint32_t work)
{
	(void)p;
	seg->op[seg->n_ops++] = (struct ft_op){ .work = work, .stream = stream };
}

/* Segment of a pass with this kernel, 0 to KERNELS - 1. */
static uint32_t segment_of(bool back, bool receives, bool sends, int kernel)
{
	return (uint32_t)(((back * 2 + receives) * 2 + sends) * KERNELS + kernel);
}

static void lay_segments(struct pipeline *p)
{
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		struct ft_segment *seg = &p->segment[i];
		uint32_t kind = i / KERNELS;
		bool back = kind & 4;

		*seg = (struct ft_segment){ .op = p->op[i] };
		if (kind & 2)
			put(p, seg,
			    back ? FT_STREAM_RECV_BACKWARD : FT_STREAM_RECV_FORWARD, 0);
		put(p, seg, FT_STREAM_COMPUTE, 1 + i % KERNELS);
		if (kind & 1)
			put(p, seg,
			    back ? FT_STREAM_SEND_BACKWARD : FT_STREAM_SEND_FORWARD, 0);
	}
}

static void begin(struct pipeline *p, size_t stages)
{
	*p = (struct pipeline){ .gpu = { .compute_units = UNITS },
				.stack = { .layout = { .receives_ahead = true } } };
	p->gpu.receive_units.value = HELD;
	p->gpu.collective_units_per_nic.value = 2;
	p->cluster.gpu = &p->gpu;
	p->work[0] = (struct ft_work){ .kind = FT_COMMUNICATION,
				       .communication = { .group = FT_GROUP_PP } };
	for (int i = 0; i < KERNELS; i++) {
		p->work[1 + i] = (struct ft_work){ .kind = FT_ATTENTION };
		p->first[1 + i].duration = (ft_ps)(1 + pick(9)) * MS;
	}
	p->first[0].held = HELD_BY_DOMAIN;
	lay_segments(p);
	p->graph = (struct ft_graph){ .work = p->work,
				      .n_works = 1 + KERNELS,
				      .segment = p->segment,
				      .n_segments = SEGMENTS,
				      .rank_class = p->stage,
				      .n_classes = stages };
	for (size_t c = 0; c < STAGES; c++) {
		p->stage[c] =
			(struct ft_class){ .call = p->call[c], .slot = p->slot[c] };
		p->timing[c] = p->first;
	}
	p->job = (struct job){ .mem = &p->mem,
			       .graph = &p->graph,
			       .cluster = &p->cluster,
			       .stack = &p->stack,
			       .timing = p->timing };
}

static void pass(struct pipeline *p, size_t stage, uint32_t segment, int chunk)
{
	struct ft_class *c = &p->stage[stage];

	c->slot[c->n_slots++] =
		(struct ft_slot_mark){ .slot = { .chunk = chunk }, .call = c->n_calls };
	c->call[c->n_calls++] = (struct ft_call){ segment, 1 };
}

/* What a kernel takes on a stage, over what it takes alone. */
static double slower(const struct pipeline *p, size_t stage, int kernel)
{
	return (double)p->timing[stage][1 + kernel].duration /
	       (double)p->first[1 + kernel].duration;
}

/*
 * stage 0:  A, B, and C, which receives from stage 1
 * stage 1:  D, which receives what A sends, twice as long
 * C's receive waits from B's begin at 1 until D's end at 3, beside B until 2: a third of 3.
 */
static void a_receive_waits_beside_the_pass_before_its_own(void **state)
{
	static struct pipeline p;

	(void)state;
	for (int far = 0; far < 3; far++) {
		begin(&p, 2);
		p.first[1].duration = MS;
		p.first[2].duration = 2 * (ft_ps)MS;
		if (far == 1)
			p.first[0].held = HELD_BY_RAIL;
		p.stack.layout.receives_ahead = far < 2;
		pass(&p, 0, segment_of(false, false, true, 0), 0);
		pass(&p, 0, segment_of(false, false, false, 0), 1);
		pass(&p, 0, segment_of(true, true, false, 0), 1);
		pass(&p, 1, segment_of(false, true, false, 1), 0);
		p.stage[1].call[0].segment = SEGMENTS - 1;
		p.op[SEGMENTS - 1][0].stream = FT_STREAM_RECV_FORWARD;
		p.op[SEGMENTS - 1][1].work = 2;
		job_beside_receives(&p.job);
		near_frac(slower(&p, 0, 0),
			  1 + (far == 0 ? 0.1 :
			       far == 1 ? 0.02 :
					  0) /
					  3,
			  1e-9);
		assert_true(slower(&p, 1, 1) == 1);
		arena_release(&p.mem);
	}
}

/* All forward passes, chunk by chunk, then all backward: nobody waits for ever. */
static void draw_passes(struct pipeline *p, int chunks, int micro)
{
	size_t n = p->graph.n_classes;

	for (size_t c = 0; c < n; c++)
		for (int i = 0; i < 2 * chunks; i++)
			for (int m = 0; m < micro; m++) {
				bool back = i >= chunks;
				int v = back ? 2 * chunks - 1 - i : i;
				bool top = c + 1 == n && v + 1 == chunks;
				bool root = c == 0 && v == 0;

				pass(p, c,
				     segment_of(back, back ? !top : !root,
						back ? !root : !top, pick(KERNELS)),
				     v);
			}
}

/* One stage, by the clock. */
struct running {
	size_t at;    /* the pass that runs or waits */
	int64_t left; /* ms of it; 0: it waits */
	int64_t busy, beside;
	int64_t received[2], sent[2]; /* by it and to it: forward, backward */
};

static bool has(const struct pipeline *p, size_t stage, size_t at, uint32_t bit)
{
	return p->stage[stage].call[at].segment / KERNELS & bit;
}

static bool is_back(const struct pipeline *p, size_t stage, size_t at)
{
	return has(p, stage, at, 4);
}

/* Was sent what pass `at` receives? */
static bool there(const struct pipeline *p, const struct running *r, size_t stage,
		  size_t at)
{
	bool back = is_back(p, stage, at);

	return !has(p, stage, at, 2) || r->received[back] < r->sent[back];
}

static void begin_pass(const struct pipeline *p, struct running *r, size_t stage)
{
	if (r->left || r->at == p->stage[stage].n_calls || !there(p, r, stage, r->at))
		return;
	r->received[is_back(p, stage, r->at)] += has(p, stage, r->at, 2);
	r->left = (int64_t)(p->first[1 + p->stage[stage].call[r->at].segment % KERNELS]
				    .duration /
			    MS);
}

static void millisecond(const struct pipeline *p, struct running *run)
{
	size_t n = p->graph.n_classes;

	for (size_t c = 0; c < n; c++)
		begin_pass(p, &run[c], c);
	for (size_t c = 0; c < n; c++) {
		struct running *r = &run[c];

		r->busy += r->left > 0;
		r->beside += r->left > 0 && r->at + 1 < p->stage[c].n_calls &&
			     !there(p, r, c, r->at + 1);
	}
	for (size_t c = 0; c < n; c++) {
		struct running *r = &run[c];
		bool back;

		if (!r->left || --r->left)
			continue;
		back = is_back(p, c, r->at);
		if (has(p, c, r->at, 1))
			run[(c + (back ? n - 1 : 1)) % n].sent[back]++;
		r->at++;
	}
}

static void shares_are_those_of_a_run_by_the_clock(void **state)
{
	static struct pipeline p;
	int some = 0;

	(void)state;
	for (int i = 0; i < 300; i++) {
		struct running run[STAGES] = { { 0 } };
		size_t n = 2 + (size_t)pick(STAGES - 1), over = 0;

		begin(&p, n);
		draw_passes(&p, 2 + pick(CHUNKS - 1), 1 + pick(MICRO));
		for (int ms = 0; over < n && ms < 100000; ms++) {
			millisecond(&p, run);
			over = 0;
			for (size_t c = 0; c < n; c++)
				over += run[c].at == p.stage[c].n_calls;
		}
		assert_int_equal(over, n);
		job_beside_receives(&p.job);
		for (size_t c = 0; c < n; c++) {
			double share = (double)run[c].beside / (double)run[c].busy;

			for (int k = 0; k < KERNELS; k++)
				near_frac(slower(&p, c, k), 1 + 0.1 * share, 1e-9);
			some += share > 0;
		}
		arena_release(&p.mem);
	}
	assert_true(some > 300);
}

/* One chunk and whole backwards: its schedule posts nothing ahead. */
static void one_chunk_has_none(void **state)
{
	static struct pipeline p;

	(void)state;
	begin(&p, 3);
	draw_passes(&p, 1, MICRO);
	job_beside_receives(&p.job);
	for (size_t c = 0; c < 3; c++)
		assert_ptr_equal(p.timing[c], p.first);
	arena_release(&p.mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_receive_waits_beside_the_pass_before_its_own),
		cmocka_unit_test(shares_are_those_of_a_run_by_the_clock),
		cmocka_unit_test(one_chunk_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
