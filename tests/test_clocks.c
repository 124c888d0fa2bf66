/*
 * tests/test_clocks.c - the clock that a power limit leaves, against its equation with constants
 * that are drawn, and what kernels lose at the clock that products hold
 */
#include "tests/seeded.h"

#include <math.h>

#include "sim/job.h"
#include "sim/kernel.h"

enum { DRAWS = 3000 };

/* What a card asks for at a clock, its limit being 1: products no more than in their bursts,
 * attention in its own. */
static double asked_w(const struct ft_cluster *c, const struct job_load *l, double of_s,
		      double clock)
{
	const struct ft_part *gpu = c->parts->line[0].part;
	double idle = fmin(1, c->gpu->idle_w.value / c->gpu->limit_w.value);
	double waits = idle + gpu->waiting_frac.value * (1 - idle);
	double e = gpu->clock_exponent.value;
	double slower = l->products > 0 ? l->sustained / l->products : 1;

	return (l->products * pow(fmin(1, clock) * slower, e) +
		l->asked * pow(clock, e) + l->drawn +
		(of_s - l->products - l->attention - l->others) * waits) /
	       of_s;
}

/* By halving: the highest clock at which the card asks for no more than its limit. */
static void the_clock_is_where_power_meets_its_limit(void **state)
{
	int below = 0, between = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct ft_gpu gpu = { .limit_w = about(700), .idle_w = about(80) };
		struct ft_part part = { .clock_exponent = about(2.5),
					.memory_frac = about(0.4),
					.waiting_frac = about(0.2) };
		struct ft_part_line line = { .gpu = true, .part = &part };
		struct ft_parts parts = { .n = 1, .line = &line };
		struct ft_cluster c = { .gpu = &gpu, .parts = &parts };
		double products = pick(8) ? 0.05 + 0.95 * draw() : 0;
		double attention = pick(2) ? (1 - products) * draw() : 0;
		double others = (1 - products - attention) * draw(), of = 1 + draw();
		double slower = pick(5) ? 1 + draw() * 0.3 : 1;
		struct job_load l = { .products = products,
				      .sustained = products * slower,
				      .attention = attention,
				      .asked = attention * (0.5 + draw()),
				      .others = others,
				      .drawn = others * (0.3 + 0.7 * draw()) };
		double low = 0, high, most;
		struct job_clock got;

		gpu.attention_clock.value = attention > 0 ? 1 + 0.2 * draw() : 0;
		most = high = fmax(1, gpu.attention_clock.value);
		if (asked_w(&c, &l, of, most) <= 1)
			low = most;
		for (int k = 0; k < 60; k++) {
			double clock = (low + high) / 2;

			*(asked_w(&c, &l, of, clock) <= 1 ? &low : &high) = clock;
		}
		below += low < 1;
		between += low > 1 && low < most;
		got = job_clock_of(&c, &l, of);
		near_frac(got.clock, low, 1e-9);
		if (slower <= 1 || products <= 0 ||
		    low >= 1) /* no clock is known to fall */
			assert_true(got.fall <= 0 && got.fall >= 0);
		else
			near_frac(1 / (1 + got.fall * (slower - 1)), low, 1e-9);
	}
	assert_true(below > DRAWS / 10 && between > DRAWS / 50);
}

/* Sustained over burst. */
static double slower(const struct ft_gpu *gpu, const struct ft_work *w)
{
	struct ft_prediction burst, sustained;
	struct ft_error err;

	ok_or_say(ft_kernel_predict(gpu, w, FT_CLOCK_BURST, &burst, &err), err);
	ok_or_say(ft_kernel_predict(gpu, w, FT_CLOCK_SUSTAINED, &sustained, &err), err);
	return sustained.time_s / burst.time_s;
}

static void long_busy_kernels_slow_under_sustained_clocks(void **state)
{
	struct ft_work big = { .kind = FT_GEMM,
			       .dtype = FT_BF16,
			       .gemm = { .m = 8192, .n = 8192, .k = 8192 } };
	struct ft_work tiny = { .kind = FT_GEMM,
				.dtype = FT_BF16,
				.gemm = { .m = 128, .n = 512, .k = 512 } };
	struct ft_work copy = { .kind = FT_MEMORY_BOUND,
				.memory = { .kernel = "copy", .bytes = 1e9 } };
	struct ft_work attention = { .kind = FT_ATTENTION,
				     .dtype = FT_BF16,
				     .attention = { .batch = 4,
						    .heads = 32,
						    .kv_heads = 32,
						    .queries = 8192,
						    .keys = 8192,
						    .qk_head_dim = 128,
						    .v_head_dim = 128,
						    .causal = true } };
	struct ft_error err;
	struct ft_gpu *gpu = ft_gpu_load("h200", NULL, &err);
	double held;

	(void)state;
	if (!gpu)
		fail_msg("%s", err.text);
	held = gpu->sustained[FT_BF16].value;
	assert_true(held < 0.98);
	near_frac(slower(gpu, &big), 1 / held, 0.03);
	assert_true(slower(gpu, &tiny) >= 1 && slower(gpu, &tiny) < 1.005);
	near_frac(slower(gpu, &copy), 1, 1e-12);
	gpu->attention_clock.value = 0; /* as products; then higher in its bursts */
	near_frac(slower(gpu, &attention), 1 / held, 0.01);
	gpu->attention_clock.value = 1.2;
	near_frac(slower(gpu, &attention), 1.2 / held, 0.01);
	ft_gpu_free(gpu);
}

/* What a kernel asks for of the limit: its own watts, those of any, or none that is known. */
static void kernels_ask_for_their_own_watts(void **state)
{
	struct ft_memory_curve curve[] = { { .kernel = "default" },
					   { .kernel = "copy", .w.value = 350 },
					   { .kernel = "silu", .w.value = 900 } };
	struct ft_gpu gpu = {
		.limit_w.value = 700, .idle_w.value = 70, .n_memory = 3, .memory = curve
	};
	struct ft_part part = { .clock_exponent.value = 2,
				.memory_frac.value = 0.5,
				.waiting_frac.value = 0.1 };
	struct ft_part_line line = { .gpu = true, .part = &part };
	struct ft_parts parts = { .n = 1, .line = &line };
	struct ft_cluster c = { .gpu = &gpu, .parts = &parts };
	struct ft_work w = { .kind = FT_MEMORY_BOUND, .memory.kernel = "copy" };

	(void)state;
	near_frac(job_asks(&c, &w, 1), 0.5, 1e-12);
	w.memory.kernel = "silu"; /* no more than the limit */
	near_frac(job_asks(&c, &w, 1), 1, 1e-12);
	w.memory.kernel = "add";
	near_frac(job_asks(&c, &w, 1), 0.1 + 0.9 * 0.5, 1e-12);
	near_frac(job_waiting_asks(&c), 0.1 + 0.9 * 0.1, 1e-12);
	w = (struct ft_work){ .kind = FT_ATTENTION,
			      .dtype = FT_BF16,
			      .attention = { .batch = 1,
					     .heads = 1,
					     .kv_heads = 1,
					     .queries = 1024,
					     .keys = 1024,
					     .qk_head_dim = 64,
					     .v_head_dim = 64 } };
	gpu.peak_flop_per_s[FT_BF16].value = 1e12;
	gpu.gemm_efficiency[FT_BF16].value = 0.8;
	gpu.sustained[FT_BF16].value = 0.5;
	assert_true(job_asks(&c, &w, 1e-3) <= 0); /* as products */
	gpu.attention_clock.value = 1.1;
	near_frac(job_asks(&c, &w, 1e-3), 4 * 1024. * 1024 * 64 / 1e-3 / 0.8e12 * 4,
		  1e-12);
	near_frac(job_asks(&c, &w, 1e-5), 4, 1e-12); /* as products do, at most */
}

/* By a straight line over 1 / clock: attention from its bursts, at its own clock, down to what
 * products hold, and no further; all else by what products fall; collectives not at all. */
static void each_kernel_takes_what_its_clock_leaves(void **state)
{
	enum { WORKS = 6 };
	static const enum ft_work_kind kinds[] = { FT_GEMM, FT_ATTENTION,
						   FT_MEMORY_BOUND, FT_COMMUNICATION };
	int seen[4] = { 0 };

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct ft_gpu gpu = { .name = "g" };
		struct ft_cluster c = { .gpu = &gpu };
		struct ft_work work[WORKS] = { { .name = "w" } };
		struct ft_graph g = { .work = work, .n_works = WORKS };
		struct work_timing timing[WORKS] = { 0 }, *of = timing;
		struct job s = { .graph = &g, .cluster = &c, .timing = &of };
		struct job_clock at = { 0.3 + draw(), pick(3) ? draw() : 0 };
		struct clocks t[WORKS];
		double burst = pick(4) ? 0.6 + 0.7 * draw() : 0;

		gpu.attention_clock.value = burst;
		gpu.sustained[FT_BF16].value = 0.4 + 0.5 * draw();
		for (int k = 0; k < WORKS; k++) {
			t[k].burst_s = 1e-3 * (1 + draw());
			t[k].sustained_s = t[k].burst_s * (1 + draw());
			work[k].kind = kinds[pick(4)];
			work[k].dtype = pick(4) ? FT_BF16 : FT_FP32; /* held by none */
			timing[k].duration = 7;
		}
		job_set_clock(&s, 0, t, at);
		for (int k = 0; k < WORKS; k++) {
			double rate = gpu.sustained[work[k].dtype].value;
			double fall = at.fall, past;

			if (work[k].kind == FT_COMMUNICATION) {
				assert_int_equal(timing[k].duration, 7);
				continue;
			}
			if (work[k].kind == FT_ATTENTION && burst > 0) {
				fall = 0;
				if (rate > 0 &&
				    rate < burst) { /* from 0 at its bursts */
					past = (1 / at.clock - 1 / burst) /
					       (1 / rate - 1 / burst);
					fall = past < 0 ? 0 : past > 1 ? 1 : past;
					seen[past < 0 ? 0 : past > 1 ? 1 : 2]++;
				} else {
					seen[3]++;
				}
			}
			near_frac((double)timing[k].duration,
				  1e12 * (t[k].burst_s * (1 - fall) +
					  t[k].sustained_s * fall),
				  1e-9);
		}
	}
	for (int i = 0; i < 4; i++)
		assert_true(seen[i] > DRAWS / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_clock_is_where_power_meets_its_limit),
		cmocka_unit_test(long_busy_kernels_slow_under_sustained_clocks),
		cmocka_unit_test(kernels_ask_for_their_own_watts),
		cmocka_unit_test(each_kernel_takes_what_its_clock_leaves),
	};

	seed = 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
