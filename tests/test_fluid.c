/*
 * tests/test_fluid.c - collectives that come and go on shared links: the engine, which
 * re-solves what a change can reach, against a simulation that looks at everything at each
 * event; and that every byte arrives
 */
#include "tests/check.h"

#include <math.h>

#include "base/arena.h"
#include "sim/engine.h"

enum { MOST = 12, LINKS = 6 };

/* A transfer: so long alone, launched then, taking so much of its links meanwhile. */
struct transfer {
	double start_s, alone_s;
	int n_uses;
	uint32_t link[NETWORK_USES];
	float use[NETWORK_USES];
	double left, rate, end_s;
};

/* All rates rise together; who crosses a link that is full stays. */
static void obvious_rates(struct transfer *t, int n, double now)
{
	bool fixed[MOST] = { false };
	double room[LINKS];

	for (int l = 0; l < LINKS; l++)
		room[l] = 1;
	for (int i = 0; i < n; i++) {
		t[i].rate = 0;
		fixed[i] = t[i].left <= 0 || t[i].start_s > now;
	}
	for (;;) {
		double step = INFINITY, use[LINKS] = { 0 };

		for (int i = 0; i < n; i++) {
			if (fixed[i])
				continue;
			step = fmin(step, 1 - t[i].rate);
			for (int k = 0; k < t[i].n_uses; k++)
				use[t[i].link[k]] += (double)t[i].use[k];
		}
		if (isinf(step))
			return;
		for (int l = 0; l < LINKS; l++)
			if (use[l] > 0)
				step = fmin(step, room[l] / use[l]);
		for (int l = 0; l < LINKS; l++)
			room[l] -= step * use[l];
		for (int i = 0; i < n; i++) {
			if (fixed[i])
				continue;
			t[i].rate += step;
			fixed[i] = t[i].rate >= 1 - 1e-12;
			for (int k = 0; k < t[i].n_uses; k++)
				fixed[i] |= room[t[i].link[k]] < 1e-12;
		}
	}
}

/* From event to event; the work done must be the work there was. */
static void obvious_simulation(struct transfer *t, int n)
{
	double now = 0, done = 0, all = 0;
	int going = n;

	for (int i = 0; i < n; i++)
		all += t[i].left = t[i].alone_s;
	while (going) {
		double next = INFINITY;

		obvious_rates(t, n, now);
		for (int i = 0; i < n; i++) {
			if (t[i].start_s > now)
				next = fmin(next, t[i].start_s);
			else if (t[i].left > 0)
				next = fmin(next, now + t[i].left / t[i].rate);
		}
		for (int i = 0; i < n; i++) {
			double part = t[i].rate * (next - now);

			if (t[i].left <= 0 || t[i].start_s > now)
				continue;
			done += fmin(part, t[i].left);
			t[i].left -= part;
			if (t[i].left < 1e-13) {
				t[i].left = 0;
				t[i].end_s = next;
				going--;
			}
		}
		now = next;
	}
	near_frac(done, all, 1e-9);
}

/* Each transfer is a job of one part and one op. */
static void by_engine(struct arena *mem, const struct transfer *t, int n,
		      struct engine_output *out)
{
	struct engine_part *part = ARENA_ARRAY(mem, (size_t)n, struct engine_part);
	struct ft_work *work = ARENA_NEW(mem, struct ft_work);
	struct ft_op *op = ARENA_NEW(mem, struct ft_op);
	struct ft_segment *seg = ARENA_NEW(mem, struct ft_segment);
	struct ft_call *call = ARENA_NEW(mem, struct ft_call);
	struct ft_class *class = ARENA_NEW(mem, struct ft_class);
	struct ft_graph *g = ARENA_NEW(mem, struct ft_graph);
	struct engine_input in = { .part = part,
				   .n_parts = (size_t)n,
				   .n_pipelines = (size_t)n,
				   .n_teams = (size_t)n,
				   .n_links = LINKS };
	struct ft_error err;

	*work = (struct ft_work){ .name = "t", .kind = FT_COMMUNICATION };
	*op = (struct ft_op){ .stream = FT_STREAM_GATHER, .record = FT_EVENT_NONE };
	memset(op->wait, FT_EVENT_NONE, sizeof(op->wait));
	*seg = (struct ft_segment){ .name = "s", .n_ops = 1, .op = op };
	*call = (struct ft_call){ 0, 1 };
	*class = (struct ft_class){
		.name = "c", .ranks = 1, .n_calls = 1, .call = call
	};
	*g = (struct ft_graph){ .n_works = 1,
				.work = work,
				.n_segments = 1,
				.segment = seg,
				.n_classes = 1,
				.rank_class = class };
	for (int i = 0; i < n; i++) {
		struct engine_job *job = ARENA_NEW(mem, struct engine_job);
		struct work_timing *cost = ARENA_NEW(mem, struct work_timing);
		struct network_path *path = ARENA_NEW(mem, struct network_path);
		ft_ps *host = ARENA_NEW(mem, ft_ps);

		*host = ft_ps_from_s(t[i].start_s);
		path->n_uses = t[i].n_uses;
		memcpy(path->link, t[i].link, sizeof(path->link));
		memcpy(path->use, t[i].use, sizeof(path->use));
		*cost = (struct work_timing){ .duration = ft_ps_from_s(t[i].alone_s),
					      .beside = { 1, 1, 1 },
					      .slows = 1,
					      .slows_copy = 1,
					      .beside_copy = 1,
					      .path = path,
					      .path_frac = 1 };
		*job = (struct engine_job){ .graph = g,
					    .host = host,
					    .host_begin = ARENA_NEW(mem, size_t),
					    .host_total = host };
		part[i] = (struct engine_part){ .job = job,
						.timing = cost,
						.next = (uint32_t)i,
						.before = (uint32_t)i,
						.pipeline = (uint32_t)i,
						.team = (uint32_t)i,
						.name = "p" };
	}
	*out = (struct engine_output){
		.part = ARENA_ARRAY(mem, (size_t)n, struct ft_class_result),
		.work_time = ARENA_NEW(mem, ft_ps),
		.work_count = ARENA_NEW(mem, uint64_t),
	};
	ok_or_say(engine_run(mem, &in, out, &err), err);
}

static int random_transfers(struct transfer *t, uint64_t *seed)
{
	int n = 2 + (int)(rnd(seed) % (MOST - 1));

	for (int i = 0; i < n; i++) {
		t[i] = (struct transfer){
			/* some at once: ties are the rule in a step */
			.start_s = 1e-3 * (double)(rnd(seed) % 8),
			.alone_s = 1e-4 * (double)(1 + rnd(seed) % 60),
			.n_uses = 1 + (int)(rnd(seed) % 3),
		};
		for (int k = 0; k < t[i].n_uses; k++) {
			t[i].link[k] =
				(uint32_t)((rnd(seed) % 2 + 2 * (uint32_t)k) % LINKS);
			t[i].use[k] = (float)(1 + rnd(seed) % 8) / 8;
		}
	}
	return n;
}

static void ends_are_those_of_the_obvious_simulation(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct transfer t[MOST];
		int n = random_transfers(t, &seed);
		struct arena mem = { 0 };
		struct engine_output out;

		obvious_simulation(t, n);
		by_engine(&mem, t, n, &out);
		for (int i = 0; i < n; i++)
			if (fabs(ft_s_from_ps(out.part[i].end) - t[i].end_s) > 1e-10)
				fail_msg("round %d, %d: %.12f, not %.12f", round, i,
					 ft_s_from_ps(out.part[i].end), t[i].end_s);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_those_of_the_obvious_simulation),
	};

	return cmocka_run_group_tests_name("sim/fluid", tests, NULL, NULL);
}
