/*
 * tests/test_messages.c - messages of a pipeline in queues (sim/messages.c): two stages by hand, and drawn pipelines of
 * chunks run millisecond by millisecond
 */
#include "tests/seeded.h"
#include "tests/simulated.h"

#include <math.h>
#include <string.h>

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
				.stack = { .layout = { .messages_in_turn = true } } };
	p->gpu.message_units.value = HELD;
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
		p.stack.layout.messages_in_turn = far < 2;
		pass(&p, 0, segment_of(false, false, true, 0), 0);
		pass(&p, 0, segment_of(false, false, false, 0), 1);
		pass(&p, 0, segment_of(true, true, false, 0), 1);
		pass(&p, 1, segment_of(false, true, false, 1), 0);
		p.stage[1].call[0].segment = SEGMENTS - 1;
		p.op[SEGMENTS - 1][0].stream = FT_STREAM_RECV_FORWARD;
		p.op[SEGMENTS - 1][1].work = 2;
		job_queue_messages(&p.job);
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
	int at;	      /* the pass that runs or waits */
	int64_t left; /* ms of it; 0: it waits */
	int64_t busy, beside, end;
	int received[2], sent[2]; /* by it and to it: forward, backward */
	int n, head;		  /* messages in its queue */
	struct {
		bool back, send;
		int behind;
	} queue[2 * PASSES];
};

static bool has(const struct pipeline *p, size_t stage, int at, uint32_t bit)
{
	return p->stage[stage].call[at].segment / KERNELS & bit;
}

static int kernel_of(const struct pipeline *p, size_t stage, int at)
{
	return (int)(p->stage[stage].call[at].segment % KERNELS);
}

static size_t to_stage(const struct pipeline *p, size_t from, bool back)
{
	size_t n = p->graph.n_classes;

	return (from + (back ? n - 1 : 1)) % n;
}

static int passes_of(const struct pipeline *p, size_t stage)
{
	return (int)p->stage[stage].n_calls;
}

static void enqueue(struct running *r, bool back, bool send)
{
	r->queue[r->n].back = back;
	r->queue[r->n].send = send;
	r->queue[r->n++].behind = r->at;
}

/* In turns, a pass each: its send behind it, the receive behind what the other stage has so far. */
static void list_messages(const struct pipeline *p, struct running *run)
{
	for (int turn = 0; turn < 2 * STAGES * PASSES; turn++)
		for (size_t c = 0; c < p->graph.n_classes; c++) {
			struct running *r = &run[c], *to;
			bool back;

			if (r->at == passes_of(p, c))
				continue;
			back = has(p, c, r->at, 4);
			if (has(p, c, r->at, 2) &&
			    r->received[back]++ == r->sent[back]) {
				r->received[back]--;
				continue;
			}
			if (!has(p, c, r->at++, 1))
				continue;
			to = &run[to_stage(p, c, back)];
			to->sent[back]++;
			enqueue(r, back, true);
			enqueue(to, back, false);
		}
	for (size_t c = 0; c < p->graph.n_classes; c++) {
		assert_int_equal(run[c].at, passes_of(p, c));
		run[c].at = 0;
		memset(run[c].received, 0, sizeof(run[c].received));
		memset(run[c].sent, 0, sizeof(run[c].sent));
	}
}

static bool waits(const struct running *r)
{
	return r->head < r->n && r->queue[r->head].behind <= r->at;
}

/* What begins and meets at once; no message takes time by itself. */
static bool at_once(const struct pipeline *p, struct running *run, size_t c)
{
	struct running *r = &run[c], *to;
	bool back;

	if (waits(r) && r->queue[r->head].send) {
		back = r->queue[r->head].back;
		to = &run[to_stage(p, c, back)];
		if (waits(to) && !to->queue[to->head].send &&
		    to->queue[to->head].back == back) {
			r->head++;
			to->head++;
			to->sent[back]++;
			return true;
		}
	}
	if (r->left || r->at == passes_of(p, c))
		return false;
	back = has(p, c, r->at, 4);
	if (has(p, c, r->at, 2) && r->received[back] == r->sent[back])
		return false;
	r->received[back] += has(p, c, r->at, 2);
	r->left = (int64_t)(p->first[1 + kernel_of(p, c, r->at)].duration / MS);
	return true;
}

static void by_the_clock(const struct pipeline *p, struct running *run)
{
	size_t n = p->graph.n_classes, over = 0;

	list_messages(p, run);
	for (int ms = 0; over < n && ms < 100000; ms++) {
		bool moved = true;

		while (moved) {
			moved = false;
			for (size_t c = 0; c < n; c++)
				moved |= at_once(p, run, c);
		}
		over = 0;
		for (size_t c = 0; c < n; c++) {
			struct running *r = &run[c];

			r->busy += r->left > 0;
			r->beside += r->left > 0 && waits(r);
			if (r->left && !--r->left) {
				r->at++;
				r->end = ms + 1;
			}
			over += r->at == passes_of(p, c);
		}
	}
	assert_int_equal(over, n);
}

static void shares_are_those_of_a_run_by_the_clock(void **state)
{
	static struct pipeline p;
	int some = 0;

	(void)state;
	for (int i = 0; i < 300; i++) {
		static struct running run[STAGES];

		memset(run, 0, sizeof(run));
		begin(&p, 2 + (size_t)pick(STAGES - 1));
		draw_passes(&p, 2 + pick(CHUNKS - 1), 1 + pick(MICRO));
		by_the_clock(&p, run);
		job_queue_messages(&p.job);
		for (size_t c = 0; c < p.graph.n_classes; c++) {
			double share = (double)run[c].beside / (double)run[c].busy;

			for (int k = 0; k < KERNELS; k++)
				near_frac(slower(&p, c, k), 1 + 0.1 * share, 1e-9);
			some += share > 0;
		}
		arena_release(&p.mem);
	}
	assert_true(some > 300);
}

/* The end of a stage's passes where messages come so much later, and nothing waits in a queue. */
static double apart_ms(const struct pipeline *p, double later)
{
	static double end[STAGES][PASSES + 1], came[STAGES][2][PASSES];
	int at[STAGES] = { 0 }, got[STAGES][2] = { { 0 } },
	    n_came[STAGES][2] = { { 0 } };
	double out[STAGES][2] = { { 0 } }, last = 0;

	for (int turn = 0; turn < 2 * STAGES * PASSES; turn++)
		for (size_t c = 0; c < p->graph.n_classes; c++) {
			int i = at[c];
			bool back = i < passes_of(p, c) && has(p, c, i, 4);
			double t = end[c][i];

			if (i == passes_of(p, c) ||
			    (has(p, c, i, 2) && got[c][back] == n_came[c][back]))
				continue;
			if (has(p, c, i, 2))
				t = fmax(t, came[c][back][got[c][back]++]);
			t += (double)(p->first[1 + kernel_of(p, c, i)].duration / MS);
			end[c][++at[c]] = t;
			last = fmax(last, t);
			if (has(p, c, i, 1)) {
				size_t to = to_stage(p, c, back);

				out[c][back] = fmax(out[c][back], t) + later;
				came[to][back][n_came[to][back]++] = out[c][back];
			}
		}
	return last;
}

/* Kernels that nothing slows: what messages take longer makes passes without queues as long. */
static void messages_take_longer_by_what_queues_cost(void **state)
{
	static struct pipeline p;
	int some = 0;

	(void)state;
	for (int i = 0; i < 300; i++) {
		static struct running run[STAGES];
		double later, longest = 0;

		memset(run, 0, sizeof(run));
		begin(&p, 2 + (size_t)pick(STAGES - 1));
		p.gpu.message_units.value = 0;
		p.first[0].duration = 1;
		p.first[0].nic_frac = 0.5f;
		draw_passes(&p, 2 + pick(CHUNKS - 1), 1 + pick(MICRO));
		by_the_clock(&p, run);
		for (size_t c = 0; c < p.graph.n_classes; c++)
			longest = fmax(longest, (double)run[c].end);
		job_queue_messages(&p.job);
		later = (double)(p.timing[0][0].duration - 1) / MS;
		if (later > 0)
			near_frac(apart_ms(&p, later), longest, 1e-5);
		else
			assert_true(apart_ms(&p, 0) >= longest * (1 - 1e-9));
		assert_true(later > 0 ? p.timing[0][0].copy_engine :
					p.timing[0][0].nic_frac == 0.5f);
		some += later > 0;
		arena_release(&p.mem);
	}
	assert_true(some > 100);
}

/* One chunk and whole backwards: its schedule posts nothing ahead. */
static void one_chunk_has_none(void **state)
{
	static struct pipeline p;

	(void)state;
	begin(&p, 3);
	draw_passes(&p, 1, MICRO);
	job_queue_messages(&p.job);
	for (size_t c = 0; c < 3; c++)
		assert_ptr_equal(p.timing[c], p.first);
	arena_release(&p.mem);
}

static double pipeline_s(int vpp, const char *item)
{
	char text[500];

	snprintf(
		text, sizeof(text),
		"{model: {name: llama3-8b, num_hidden_layers: 16}, cluster: {gpu: "
		"h100-sxm, gpus: 4, fabric: none}, stack: torch-2.11-compile, training: "
		"{sequence_length: 4096, global_batch_size: 8, micro_batch_size: 1, "
		"sharding: ddp, parallel: {pp: 4, vpp: %d}}}",
		vpp);
	return simulated_s(text, item);
}

/* A wait is not counted as what is sent: a rank's share has as many bytes a message with two chunks as with one. */
static void what_a_message_waits_is_no_transfer(void **state)
{
	double one, two;

	(void)state;
	one = pipeline_s(1, "pp_activation");
	two = pipeline_s(2, "pp_activation");
	/* 3 messages a micro-batch over four stages, then 7; beside products they take up to 1.3 times as long */
	assert_true(two / one > 7. / 3 / 1.35 && two / one < 7. / 3 * 1.01);
	assert_true(pipeline_s(2, NULL) > 50 * two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_receive_waits_beside_the_pass_before_its_own),
		cmocka_unit_test(shares_are_those_of_a_run_by_the_clock),
		cmocka_unit_test(messages_take_longer_by_what_queues_cost),
		cmocka_unit_test(one_chunk_has_none),
		cmocka_unit_test(what_a_message_waits_is_no_transfer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
