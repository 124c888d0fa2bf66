/*
 * tests/test_trace_gaps.c - a recorded step beside a predicted one: each part added up here, of steps that are drawn,
 * with and without the kernels of the predicted step
 */
#include <math.h>

#include "foretoken/study_whatif.h"
#include "tests/made_recording.h"

enum { DRAWS = 200, SHARES = 16, STAGES = 4, KERNELS = 20 };

static uint64_t seed = 73;

struct drawn {
	struct ft_run run;
	struct ft_share share[SHARES];
	struct ft_class_result stage[STAGES];
	size_t of[STAGES]; /* which stages are looked at */
	struct ft_trace_predicted p;
	struct ft_whatif recorded;
	double kernel_s
		[FT_REC_CLASSES]; /* of the predicted step's kernels, if they are there */
};

static double any_s(void)
{
	return rnd_below(&seed, 100000) * 1e-6;
}

static ft_ps any_ps(void)
{
	return 1000000 * (ft_ps)rnd_below(&seed, 100000);
}

static struct ft_rec_where any_where(void)
{
	struct ft_rec_where w = { .step_s = 1 + any_s(),
				  .optimizer_s = any_s(),
				  .compute_s = any_s(),
				  .exposed_s = any_s(),
				  .bubble_s = any_s(),
				  .sendrecv_s = any_s() };

	for (int c = 0; c < FT_REC_CLASSES; c++)
		w.class_s[c] = any_s();
	return w;
}

static struct ft_breakdown any_breakdown(void)
{
	return (struct ft_breakdown){ any_s(), any_s(), any_s(), any_s(), any_s() };
}

static void draw(struct drawn *d)
{
	static const enum ft_work_kind kinds[] = { FT_GEMM, FT_ATTENTION,
						   FT_MEMORY_BOUND, FT_COMMUNICATION };

	*d = (struct drawn){ .recorded = { .recorded = any_where() } };
	d->run.share = d->share;
	d->run.rank_class = d->stage;
	d->run.n_shares = (size_t)rnd_below(&seed, SHARES + 1);
	d->run.n_classes = 1 + (size_t)rnd_below(&seed, STAGES);
	for (size_t i = 0; i < d->run.n_shares; i++)
		d->share[i] =
			(struct ft_share){ .kind = kinds[rnd_below(&seed, 4)],
					   .time_s = any_s(),
					   .optimizer = rnd_below(&seed, 4) == 0 };
	for (size_t i = 0; i < d->run.n_classes; i++)
		d->stage[i] = (struct ft_class_result){ .end = any_ps(),
							.compute = any_ps(),
							.exposed = any_ps(),
							.bubble = any_ps(),
							.optimizer = any_ps() };
	d->p.outcome.run = &d->run;
	d->p.outcome.step_s = 2 + any_s();
	d->p.outcome.breakdown = any_breakdown();
	d->p.stage = d->of;
	d->p.n = 1 + (size_t)rnd_below(&seed, (int)d->run.n_classes);
	for (size_t i = 0; i < d->p.n; i++)
		d->of[i] = (size_t)rnd_below(&seed, (int)d->run.n_classes);
}

/* ---- added up --------------------------------------------------------------------------------- */

/* Durations of shares: the optimizer's are no other kernels'. */
static double shares_s(const struct drawn *d, enum ft_work_kind kind)
{
	double s = 0;

	for (size_t i = 0; i < d->run.n_shares; i++)
		if (d->share[i].kind == kind && !d->share[i].optimizer)
			s += d->share[i].time_s;
	return s;
}

/* Means over the stages looked at; each waits for the last of all. */
static struct ft_breakdown parts(const struct drawn *d)
{
	struct ft_breakdown b = { 0 };
	double last = 0, n = (double)d->p.n;

	if (d->run.n_classes == 1)
		return d->p.outcome.breakdown;
	for (size_t i = 0; i < d->run.n_classes; i++)
		last = fmax(last, (double)d->stage[i].end);
	for (size_t i = 0; i < d->p.n; i++) {
		const struct ft_class_result *r = &d->stage[d->of[i]];

		b.compute_s += (double)r->compute * 1e-12 / n;
		b.exposed_communication_s += (double)r->exposed * 1e-12 / n;
		b.optimizer_s += (double)r->optimizer * 1e-12 / n;
		b.bubble_s += ((double)r->bubble + last - (double)r->end) * 1e-12 / n;
	}
	b.host_s = d->p.outcome.step_s - b.compute_s - b.exposed_communication_s -
		   b.optimizer_s - b.bubble_s;
	return b;
}

static void check(const struct drawn *d)
{
	const struct ft_rec_where *w = &d->recorded.recorded;
	struct ft_trace_gap gap[FT_TRACE_GAPS];
	struct ft_breakdown b = parts(d);
	const double *k = d->kernel_s;
	const double want[FT_TRACE_GAPS][2] = {
		{ w->class_s[FT_REC_GEMM], k[FT_REC_GEMM] },
		{ w->class_s[FT_REC_ATTENTION], k[FT_REC_ATTENTION] },
		{ w->class_s[FT_REC_MEMORY] + w->class_s[FT_REC_COPY],
		  k[FT_REC_MEMORY] + k[FT_REC_COPY] },
		{ w->class_s[FT_REC_COLLECTIVE] - w->sendrecv_s, k[FT_REC_COLLECTIVE] },
		{ w->compute_s, b.compute_s },
		{ w->optimizer_s, b.optimizer_s },
		{ w->exposed_s, b.exposed_communication_s },
		{ w->bubble_s, b.bubble_s },
		{ w->step_s - w->compute_s - w->optimizer_s - w->exposed_s -
			  w->bubble_s,
		  b.host_s },
		{ w->step_s, d->p.outcome.step_s },
	};

	ft_study_trace_gaps(&d->recorded, &d->p, gap);
	for (int i = 0; i < FT_TRACE_GAPS; i++) {
		if (fabs(gap[i].recorded_s - want[i][0]) > 1e-12 ||
		    fabs(gap[i].predicted_s - want[i][1]) > 1e-12)
			fail_msg("%s: %.12g and %.12g, wanted %.12g and %.12g",
				 gap[i].what, gap[i].recorded_s, gap[i].predicted_s,
				 want[i][0], want[i][1]);
		assert_int_equal(gap[i].of_step, i > 3);
	}
}

static void without_kernels_shares_are_added_up(void **state)
{
	struct drawn d;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		draw(&d);
		d.kernel_s[FT_REC_GEMM] = shares_s(&d, FT_GEMM);
		d.kernel_s[FT_REC_ATTENTION] = shares_s(&d, FT_ATTENTION);
		d.kernel_s[FT_REC_MEMORY] = shares_s(&d, FT_MEMORY_BOUND);
		d.kernel_s[FT_REC_COLLECTIVE] = shares_s(&d, FT_COMMUNICATION);
		check(&d);
	}
}

/* One stage's kernels; those that send and receive are no collectives. */
static struct ft_recording *predicted(struct drawn *d)
{
	static const struct {
		const char *name;
		enum ft_rec_class of;
	} kinds[] = {
		{ "gemm", FT_REC_GEMM },
		{ "flash_fwd", FT_REC_ATTENTION },
		{ "elementwise", FT_REC_MEMORY },
		{ "ncclDevKernel_AllReduce", FT_REC_COLLECTIVE },
		{ "ncclDevKernel_SendRecv", FT_REC_CLASSES },
	};
	struct made m = begin(0);

	memset(d->kernel_s, 0, sizeof(d->kernel_s));
	for (int i = 1; i <= KERNELS; i++) {
		int k = rnd_below(&seed, 5), us = 1 + rnd_below(&seed, 90);

		call(&m, "cudaLaunchKernel", i, i * 10, 3);
		if (kinds[k].of == FT_REC_CLASSES)
			add(&m,
			    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,"
			    "\"tid\":7,\"ts\":%d,\"dur\":%d,\"args\":{\"stream\":7,"
			    "\"correlation\":%d,\"Collective name\":\"send\",\"dtype\":"
			    "\"Float\",\"In msg nelems\":9,\"Group size\":2}},\n",
			    kinds[k].name, 500 + i * 100, us, i);
		else
			kernel(&m, kinds[k].name, i, 7, 500 + i * 100, us);
		if (kinds[k].of != FT_REC_CLASSES)
			d->kernel_s[kinds[k].of] += us * 1e-6;
	}
	return end(&m);
}

static void kernels_of_the_stages_are_added_up(void **state)
{
	struct drawn d;

	(void)state;
	for (int i = 0; i < DRAWS / 4; i++) {
		struct ft_recording *r;
		struct ft_error err;

		draw(&d);
		d.p.n = 1;
		r = predicted(&d);
		d.p.replay = ft_replay_build(one(r), 1, &err);
		ok_or_say(d.p.replay, err);
		check(&d);
		ft_replay_free(d.p.replay);
		ft_recording_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_kernels_shares_are_added_up),
		cmocka_unit_test(kernels_of_the_stages_are_added_up),
	};
	int status = cmocka_run_group_tests(tests, NULL, NULL);

	unlink(made_path());
	return status;
}
