/*
 * tests/test_clocks_mixed.c - the clock of each stage of a drawn pipeline: its kernels added up one by one,
 * and of its waits as much as the limit's window lets count (sim/clocks.c)
 */
#include "tests/seeded.h"

#include <math.h>

#include "base/arena.h"
#include "sim/job.h"

enum { DRAWS = 600, STAGES = 4, WORKS = 8, SEGMENTS = 5, OPS = 4, CALLS = 6 };

/* A pipeline as drawn. */
struct drawn {
	struct ft_gpu gpu;
	struct ft_part part;
	struct ft_part_line line;
	struct ft_parts parts;
	struct ft_cluster cluster;
	struct ft_work work[WORKS];
	struct clocks t[WORKS];
	struct ft_op op[SEGMENTS][OPS];
	struct ft_segment segment[SEGMENTS];
	struct ft_call call[STAGES][CALLS];
	struct ft_class stage[STAGES];
	struct ft_graph graph;
	struct work_timing first[WORKS], *timing[STAGES];
	struct arena mem;
	struct job job;
};

static void draw_works(struct drawn *d)
{
	for (int i = 0; i < WORKS; i++) {
		struct ft_work *w = &d->work[i];
		struct clocks *t = &d->t[i];
		int kind = pick(5);

		*w = (struct ft_work){ .name = "w", .dtype = FT_BF16 };
		*t = (struct clocks){ .burst_s = 1e-3 * (0.5 + draw()) };
		t->sustained_s = t->burst_s;
		w->kind = kind == 0 ? FT_COMMUNICATION :
			  kind == 1 ? FT_MEMORY_BOUND :
			  kind == 2 ? FT_ATTENTION :
				      FT_GEMM;
		if (w->kind == FT_MEMORY_BOUND) {
			w->memory.kernel = pick(4) ? "copy" : FT_HOST_LINK;
			t->asks = 0.3 + 0.7 * draw();
		} else if (w->kind != FT_COMMUNICATION) {
			t->sustained_s *= 1 + 0.3 * draw();
		}
		if (w->kind == FT_ATTENTION && d->gpu.attention_clock.value > 0)
			t->asks = 0.5 + draw();
	}
}

static void draw_graph(struct drawn *d)
{
	d->graph = (struct ft_graph){ .work = d->work,
				      .n_works = WORKS,
				      .segment = d->segment,
				      .n_segments = SEGMENTS,
				      .rank_class = d->stage,
				      .n_classes = 1 + (size_t)pick(STAGES),
				      .bubble_frac = pick(2) ? 0.3 * draw() : 0 };
	for (int i = 0; i < SEGMENTS; i++) {
		d->segment[i] = (struct ft_segment){ .op = d->op[i],
						     .n_ops = (size_t)pick(OPS + 1) };
		for (int k = 0; k < OPS; k++)
			d->op[i][k] = (struct ft_op){
				.work = (uint32_t)pick(WORKS),
				.stream = pick(6) ? FT_STREAM_COMPUTE :
					  pick(2) ? FT_STREAM_RECV_FORWARD :
						    FT_STREAM_RECV_BACKWARD
			};
	}
	for (size_t c = 0; c < STAGES; c++) {
		struct ft_class *s = &d->stage[c];

		if (c && !pick(4)) { /* as the one before */
			*s = d->stage[c - 1];
			continue;
		}
		*s = (struct ft_class){ .call = d->call[c],
					.n_calls = 1 + (size_t)pick(CALLS) };
		for (size_t i = 0; i < s->n_calls; i++)
			s->call[i] = (struct ft_call){ (uint32_t)pick(SEGMENTS),
						       1 + (uint32_t)pick(5) };
	}
}

static void make(struct drawn *d)
{
	*d = (struct drawn){ .gpu = { .limit_w = about(700), .idle_w = about(80) },
			     .part = { .clock_exponent = about(2.5),
				       .waiting_frac = about(0.2),
				       .limit_window_s.value = 1e-3 * draw() } };
	d->gpu.attention_clock.value = pick(2) ? 1 + 0.2 * draw() : 0;
	d->gpu.sustained[FT_BF16].value = 0.6 + 0.4 * draw();
	d->line = (struct ft_part_line){ .gpu = true, .part = &d->part };
	d->parts = (struct ft_parts){ .n = 1, .line = &d->line };
	d->cluster = (struct ft_cluster){ .gpu = &d->gpu, .parts = &d->parts };
	draw_works(d);
	draw_graph(d);
	d->timing[0] = d->first;
	for (int i = 0; i < WORKS; i++)
		d->first[i].duration = 99;
	d->job = (struct job){ .mem = &d->mem,
			       .graph = &d->graph,
			       .cluster = &d->cluster,
			       .timing = d->timing };
}

/* What a stage's kernels are, and how often it receives; the network's are no kernels here. */
struct counted {
	struct job_load load;
	double all, receives;
};

static struct counted count(const struct drawn *d, size_t stage)
{
	const struct ft_class *s = &d->stage[stage];
	struct counted n = { .all = 0 };

	for (size_t i = 0; i < s->n_calls; i++)
		for (uint32_t r = 0; r < s->call[i].repeat; r++) {
			const struct ft_segment *seg = &d->segment[s->call[i].segment];
			bool receives = false;

			for (size_t k = 0; k < seg->n_ops; k++) {
				uint32_t w = seg->op[k].work;
				const struct clocks *t = &d->t[w];

				receives = receives ||
					   seg->op[k].stream != FT_STREAM_COMPUTE;
				if (d->work[w].kind == FT_COMMUNICATION ||
				    ft_work_is_host_copy(&d->work[w]))
					continue;
				n.all += t->burst_s;
				if (d->work[w].kind == FT_MEMORY_BOUND) {
					n.load.others += t->burst_s;
					n.load.drawn += t->burst_s * t->asks;
				} else if (t->asks > 0) {
					n.load.attention += t->burst_s;
					n.load.asked += t->burst_s * t->asks;
				} else {
					n.load.products += t->burst_s;
					n.load.sustained += t->sustained_s;
				}
			}
			n.receives += receives;
		}
	return n;
}

static void each_stage_runs_at_the_clock_of_its_own_load(void **state)
{
	static struct drawn d; /* large */
	int apart = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct counted n[STAGES];
		double longest = 0, mean = 0, window;

		make(&d);
		window = d.part.limit_window_s.value;
		for (size_t c = 0; c < d.graph.n_classes; c++) {
			n[c] = count(&d, c);
			longest = fmax(longest, n[c].all);
			mean += n[c].all / (double)d.graph.n_classes;
		}
		job_mix_clocks(&d.job, d.t);
		for (size_t c = 0; c < d.graph.n_classes; c++) {
			double waits = n[c].receives > 1 ? n[c].receives : 1;
			double of = n[c].all +
				    fmin(longest - n[c].all, waits * window) +
				    fmin(d.graph.bubble_frac * mean, 2 * window);
			struct job_clock at = job_clock_of(&d.cluster, &n[c].load, of);
			struct work_timing want[WORKS], *to = want;
			struct job alone = d.job;

			for (int w = 0; w < WORKS; w++)
				want[w].duration = 99;
			alone.timing = &to;
			job_set_clock(&alone, 0, d.t, at);
			for (int w = 0; w < WORKS; w++)
				near_frac((double)d.timing[c][w].duration,
					  (double)want[w].duration, 1e-9);
			apart += c && d.timing[c] != d.timing[c - 1];
		}
		arena_release(&d.mem);
	}
	assert_true(apart > DRAWS / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_stage_runs_at_the_clock_of_its_own_load),
	};

	seed = 9;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
