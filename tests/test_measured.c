/*
 * tests/test_measured.c - what was measured inside steps: clocks that fall, attention under a
 * window, the kernels of an eager mixture of experts
 *
 * Sources: measurements/README.md (an H100, 2026-11-22); cudnn-frontend's benchmark of
 * gpt-oss (hw/gpus/SOURCES.md: cudnn919, and 2026-04-24 for the window of 128); recorded
 * step measurements/traces/h100-mixtral4L-ep2-s4096-b1.
 */
#include <math.h>

#include "sim/job.h"
#include "tests/ccl.h"
#include "tests/works.h"

static struct ft_cluster *cluster_of(struct arena *mem, const char *text)
{
	struct ft_error err = { 0 };
	const struct node *n = node_read_text(mem, "test", text, strlen(text), &err);
	struct ft_cluster *c = n ? ft_cluster_load(n, &err) : NULL;

	if (!c)
		fail_msg("%s", err.text);
	return c;
}

/* Of its fall, of products that are so much of the time; the rest is what others are, and waits. */
static double fall_of(const struct ft_cluster *c, double products, double others,
		      double slower)
{
	struct ft_work copies = { .kind = FT_MEMORY_BOUND, .memory.kernel = "none" };
	struct job_load l = { .products = products,
			      .sustained = products * slower,
			      .others = others,
			      .drawn = others * job_asks(c, &copies, 1) };

	return job_clock_of(c, &l, 1).fall;
}

/* 8192 cubed beside copies, by its share of the time at the full clock. Alone it is what
 * `sustained` says, which is the mean of two machines and not quite this one's. */
static void the_clock_falls_as_the_limit_asks(void **state)
{
	static const double at[][2] = { { 1, 0.864 },	 { 0.9, 0.870 },
					{ 0.75, 0.881 }, { 0.6, 0.944 },
					{ 0.45, 0.992 }, { 0.3, 1.000 },
					{ 0.15, 1.004 } };
	struct arena mem = { 0 };
	struct ft_cluster *c =
		cluster_of(&mem, "{gpu: h100-sxm, gpus: 1, fabric: none}");
	double slower = 1 / 0.864;

	(void)state;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		double rate = 1 / (1 + fall_of(c, at[i][0], 1 - at[i][0], slower) *
					       (slower - 1));

		if (fabs(rate / at[i][1] - 1) > 0.025)
			fail_msg("%g of the time: %.3f, measured %.3f", at[i][0], rate,
				 at[i][1]);
	}
	assert_true(fall_of(c, 1, 0, slower) > 0.999 &&
		    fall_of(c, 1, 0, slower) < 1.001);
	assert_true(fall_of(c, 0, 1, slower) == 0 && fall_of(c, 1, 0, 1) == 0);
	ft_cluster_free(c);
	arena_release(&mem);
}

/* cuDNN's attention over 16,384 tokens beside 8192 cubed and copies of 512 MB, for seconds: shares
 * of the time, and rates over those of bursts, means of two H100
 * (measurements/probes/h100-2026-11-26-watts-unseen.jsonl.gz). */
static void attention_asks_for_less_and_loses_more(void **state)
{
	static const struct {
		enum ft_pass pass;
		double attention, products, at[2]; /* of both */
	} seen[] = {
		{ FT_PASS_FORWARD, 1, 0, { 0.928, 0 } },
		{ FT_PASS_BACKWARD, 1, 0, { 0.912, 0 } },
		{ FT_PASS_FORWARD, 0.721, 0.279, { 0.908, 0.943 } },
		{ FT_PASS_BACKWARD, 0.715, 0.285, { 0.890, 0.955 } },
		{ FT_PASS_FORWARD, 0.462, 0.538, { 0.868, 0.939 } },
		{ FT_PASS_BACKWARD, 0.485, 0.515, { 0.866, 0.954 } },
		{ FT_PASS_FORWARD, 0.244, 0.756, { 0.880, 0.909 } },
		{ FT_PASS_FORWARD, 0.769, 0, { 0.942, 0 } },
		{ FT_PASS_BACKWARD, 0.724, 0, { 0.972, 0 } },
		{ FT_PASS_FORWARD, 0, 0.777, { 1, 0.921 } },
	};
	static const double burst_s[] = {
		[FT_PASS_FORWARD] = 3.53e-3, [FT_PASS_BACKWARD] = 9.9e-3
	};
	struct arena mem = { 0 };
	struct ft_cluster *c =
		cluster_of(&mem, "{gpu: h100-sxm, gpus: 1, fabric: none}");
	struct ft_work copies = { .kind = FT_MEMORY_BOUND, .memory.kernel = "copy" };
	double own = c->gpu->attention_clock.value, held = 0.8775, slower = 1 / held;
	struct ft_gpu card = *c->gpu; /* as these two, not as the mean of all */
	struct ft_cluster of = *c;
	double sum = 0, n = 0;

	(void)state;
	card.sustained[FT_BF16].value = held;
	of.gpu = &card;
	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
		struct ft_work w = { .kind = FT_ATTENTION,
				     .dtype = FT_BF16,
				     .attention = { .batch = 1,
						    .heads = 32,
						    .kv_heads = 8,
						    .queries = 16384,
						    .keys = 16384,
						    .qk_head_dim = 128,
						    .v_head_dim = 128,
						    .pass = seen[i].pass,
						    .causal = true } };
		double others = 1 - seen[i].attention - seen[i].products;
		struct job_load l = { .products = seen[i].products * seen[i].at[1],
				      .attention = seen[i].attention * seen[i].at[0],
				      .others = others };
		struct job_clock got;
		double rate[2];

		l.sustained = l.products * slower;
		l.asked = l.attention * job_asks(&of, &w, burst_s[seen[i].pass]);
		l.drawn = others * job_asks(&of, &copies, 1);
		got = job_clock_of(&of, &l, l.products + l.attention + l.others);
		rate[0] = fmin(1, got.clock / own);
		rate[1] = 1 / (1 + got.fall * (slower - 1));
		for (int k = 0; k < 2; k++) {
			double off = fabs(rate[k] / seen[i].at[k] - 1);

			if (!((k ? l.products : l.attention) > 0))
				continue;
			if (off > 0.05)
				fail_msg("case %zu, %s: %.3f, measured %.3f", i,
					 k ? "products" : "attention", rate[k],
					 seen[i].at[k]);
			sum += off;
			n++;
		}
	}
	if (sum / n > 0.022)
		fail_msg("off by %.3f in the mean", sum / n);
	ft_cluster_free(c);
	arena_release(&mem);
}

/* cuDNN 9.18 in recorded steps of B200 (measurements/README.md, together-dgxc): microseconds of
 * attention in the mean of a rank's calls, beside bursts of the rows that GB200 lends. */
static void attention_of_recorded_steps_is_lent(void **state)
{
	static const struct {
		int64_t batch, heads, kv, s, qk;
		double us[2];
	} seen[] = { { 1, 32, 2, 8192, 128, { 397, 1240 } },
		     { 2, 48, 8, 4096, 128, { 381, 1059 } },
		     { 1, 128, 128, 4096, 192, { 551, 1838 } } };
	struct ft_error err;
	struct ft_gpu *g = ft_gpu_load("b200", NULL, &err);

	(void)state;
	assert_non_null(g);
	for (size_t i = 0; i < 6; i++) {
		struct ft_work w = { .kind = FT_ATTENTION,
				     .dtype = FT_BF16,
				     .attention = { .impl = "cudnn",
						    .batch = seen[i / 2].batch,
						    .heads = seen[i / 2].heads,
						    .kv_heads = seen[i / 2].kv,
						    .queries = seen[i / 2].s,
						    .keys = seen[i / 2].s,
						    .qk_head_dim = seen[i / 2].qk,
						    .v_head_dim = 128,
						    .pass = (enum ft_pass)(i % 2),
						    .causal = true } };
		struct ft_prediction p;

		assert_true(ft_kernel_predict(g, &w, FT_CLOCK_BURST, &p, &err));
		if (fabs(seen[i / 2].us[i % 2] * 1e-6 / p.time_s - 1.05) > 0.09)
			fail_msg("case %zu: %.0f us", i, p.time_s * 1e6);
	}
	ft_gpu_free(g);
}

/* 4096 cubed in bursts, with waits between them in which the card spins: ms, ms, and the mean
 * clock of the products (measurements/probes/h100-2026-11-25-bursts-unseen.jsonl.gz). While it
 * spins there the card takes a fifth of its limit. */
static void bursts_rest_for_a_window_at_most(void **state)
{
	static const double at[][3] = {
		{ 3.33, 1.15, 0.947 },	 { 16.79, 5.70, 0.949 },
		{ 89.39, 12.88, 0.896 }, { 4.06, 5.00, 0.992 },
		{ 16.04, 20.73, 0.994 }, { 40.42, 55.99, 0.988 },
		{ 84.72, 111.0, 0.945 }, { 177.7, 206.3, 0.900 },
		{ 440.7, 500.0, 0.908 }, { 177.9, 57.92, 0.899 },
		{ 356.0, 107.7, 0.899 }, { 909.4, 217.4, 0.880 },
		{ 911.4, 520.8, 0.878 }, { 1.59, 2.00, 0.993 },
		{ 8.32, 9.99, 0.969 },	 { 86.75, 31.35, 0.923 },
		{ 82.57, 59.51, 0.970 }, { 40.50, 107.7, 0.986 },
	};
	struct arena mem = { 0 };
	struct ft_cluster *c = cluster_of(
		&mem,
		"{gpu: h100-sxm, gpus: 1, fabric: none, site: {extends: standard, parts: "
		"{gpu: {class: server, memory_frac: 0.66, waiting_frac: 0.112, "
		"clock_exponent: 2.4}}}}");
	struct ft_cluster *own =
		cluster_of(&mem, "{gpu: h100-sxm, gpus: 1, fabric: none}");
	double window_ms = 1e3 * ft_parts_gpu(own->parts)->limit_window_s.value;
	double slower = 1 / 0.865;

	(void)state;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		double wait = fmin(at[i][1], window_ms),
		       busy = at[i][0] / (at[i][0] + wait);
		double rate = 1 / (1 + fall_of(c, busy, 0, slower) * (slower - 1));

		if (fabs(rate / at[i][2] - 1) > 0.035)
			fail_msg("%g ms and %g of waiting: %.3f, measured %.3f",
				 at[i][0], at[i][1], rate, at[i][2]);
	}
	ft_cluster_free(own);
	ft_cluster_free(c);
	arena_release(&mem);
}

/* Two stages of so many products of 8192 cubed, the second after so many receives; filling
 * and draining take half a stage's mean. What each waits counts by the window. */
static void two_stages(const uint32_t times[2], uint32_t receives)
{
	struct arena mem = { 0 };
	struct ft_cluster *c =
		cluster_of(&mem, "{gpu: h100-sxm, gpus: 2, fabric: none}");
	struct ft_error err = { 0 };
	struct ft_work w[] = {
		{ .name = "up",
		  .kind = FT_GEMM,
		  .dtype = FT_BF16,
		  .gemm = { .layout = FT_FORWARD,
			    .m = 8192,
			    .n = 8192,
			    .k = 8192,
			    .groups = 1 } },
		{ .name = "arrives",
		  .kind = FT_COMMUNICATION,
		  .dtype = FT_BF16,
		  .communication = { .group = FT_GROUP_PP,
				     .op = FT_SENDRECV,
				     .bytes = 8 } },
	};
	struct ft_op product = { .stream = FT_STREAM_COMPUTE, .launches = 1 };
	struct ft_op receive = { .work = 1,
				 .stream = FT_STREAM_RECV_FORWARD,
				 .launches = 1 };
	struct ft_segment segment[] = {
		{ .name = "forward", .n_ops = 1, .op = &product },
		{ .name = "receive", .n_ops = 1, .op = &receive },
	};
	struct ft_call first = { 0, times[0] },
		       second[] = { { 0, times[1] }, { 1, receives } };
	struct ft_class stage[] = {
		{ .ranks = 1, .n_calls = 1, .call = &first },
		{ .ranks = 1, .n_calls = receives ? 2 : 1, .call = second },
	};
	struct ft_graph g = { .n_works = 2,
			      .n_segments = 2,
			      .n_classes = 2,
			      .work = w,
			      .segment = segment,
			      .rank_class = stage,
			      .group[FT_GROUP_PP] = { 2, 1, true },
			      .bubble_frac = 0.5 };
	struct ft_stack *k = ft_stack_load("torch-2.11-compile", NULL, &err);
	struct ft_ccl *ccl = ccl_named("nccl-2.30");
	struct job j = {
		.mem = &mem, .graph = &g, .cluster = c, .stack = k, .ccl = ccl
	};
	struct ft_prediction burst, sustained;
	double slower, bubble, window = ft_parts_gpu(c->parts)->limit_window_s.value;

	c->imperfections.gpu_speed_spread_frac = 0;
	if (!k || !job_time(&j, FT_TOGETHER, &err))
		fail_msg("%s", err.text);
	assert_true(ft_kernel_predict(c->gpu, w, FT_CLOCK_BURST, &burst, &err));
	assert_true(ft_kernel_predict(c->gpu, w, FT_CLOCK_SUSTAINED, &sustained, &err));
	slower = sustained.time_s / burst.time_s;
	bubble = 0.25 * (times[0] + times[1]) * burst.time_s;
	for (int s = 0; s < 2; s++) {
		double busy = times[s] * burst.time_s, t = burst.time_s;
		double behind = (times[0] - times[s]) * burst.time_s;
		double of = busy + fmin(bubble, 2 * window) +
			    fmin(behind, (receives ? receives : 1) * window);

		t *= 1 + fall_of(c, busy / of, 0, slower) * (slower - 1);
		if (fabs((double)j.timing[s][0].duration * 1e-12 / t - 1) > 0.003)
			fail_msg("stage %d: %g s, not %g", s,
				 (double)j.timing[s][0].duration * 1e-12, t);
	}
	assert_true(j.timing[1][0].duration < j.timing[0][0].duration);
	ft_ccl_free(ccl);
	ft_stack_free(k);
	ft_cluster_free(c);
	arena_release(&mem);
}

/* Who waits more has the higher clock, but for no more of a wait than the limit averages over:
 * 20 products are some 30 ms. */
static void stages_that_wait_rest_their_cards(void **state)
{
	(void)state;
	two_stages((uint32_t[]){ 20, 10 }, 1);
	two_stages((uint32_t[]){ 400, 200 }, 0);
	two_stages((uint32_t[]){ 400, 200 }, 4);
	two_stages((uint32_t[]){ 400, 200 }, 100);
}

struct windowed {
	const char *gpu;
	int pass;
	int64_t batch, heads, kv_heads, length, window;
	double time_ms;
};

static double attention_s(const struct ft_gpu *gpu, const struct windowed *w,
			  int64_t window)
{
	struct ft_work work = { .kind = FT_ATTENTION, .dtype = FT_BF16 };
	struct ft_prediction p;
	struct ft_error err;

	work.attention.pass = (enum ft_pass)w->pass;
	work.attention.batch = w->batch;
	work.attention.heads = w->heads;
	work.attention.kv_heads = w->kv_heads;
	work.attention.queries = work.attention.keys = w->length;
	work.attention.qk_head_dim = work.attention.v_head_dim = 64;
	work.attention.causal = true;
	work.attention.window = window;
	assert_true(ft_kernel_predict(gpu, &work, FT_CLOCK_BURST, &p, &err));
	return p.time_s;
}

/* The tables have no windows: what is told is the arithmetic's. A window of all keys is none;
 * a wider one is never faster. */
static void windows_cost_near_what_was_measured(void **state)
{
	static const struct windowed row[] = {
		{ "gb300", FT_PASS_FORWARD, 2, 64, 8, 2048, 1024, 0.089 },
		{ "gb300", FT_PASS_BACKWARD, 2, 64, 8, 2048, 1024, 0.221 },
		{ "gb300", FT_PASS_FORWARD, 2, 64, 8, 8192, 1024, 0.359 },
		{ "gb300", FT_PASS_BACKWARD, 2, 64, 8, 8192, 1024, 0.965 },
		{ "gb200", FT_PASS_FORWARD, 2, 64, 8, 8192, 1024, 0.423 },
		{ "gb200", FT_PASS_BACKWARD, 2, 64, 8, 8192, 1024, 0.998 },
		{ "h200", FT_PASS_FORWARD, 2, 64, 8, 8192, 1024, 0.738 },
		{ "h200", FT_PASS_BACKWARD, 2, 64, 8, 8192, 1024, 2.149 },
		{ "gb300", FT_PASS_FORWARD, 2, 128, 128, 4096, 128, 0.202 },
		{ "gb300", FT_PASS_BACKWARD, 2, 128, 128, 4096, 128, 0.442 },
		{ "gb300", FT_PASS_FORWARD, 2, 128, 128, 16384, 128, 0.790 },
		{ "gb300", FT_PASS_BACKWARD, 2, 128, 128, 16384, 128, 1.712 },
	};
	double sum = 0;
	size_t n = sizeof(row) / sizeof(row[0]);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		struct ft_error err;
		struct ft_gpu *gpu = ft_gpu_load(row[i].gpu, NULL, &err);
		double s, last = 0;

		assert_non_null(gpu);
		s = attention_s(gpu, &row[i], row[i].window);
		sum += log(s * 1e3 / row[i].time_ms);
		if (fabs(log(s * 1e3 / row[i].time_ms)) > log(1.75))
			fail_msg("%s, window %d of %d: %.3f ms, measured %.3f",
				 row[i].gpu, (int)row[i].window, (int)row[i].length,
				 s * 1e3, row[i].time_ms);
		for (int64_t w = 128; w <= row[i].length; w *= 2) {
			s = attention_s(gpu, &row[i], w);
			assert_true(s >= last);
			last = s;
		}
		assert_true(fabs(last / attention_s(gpu, &row[i], 0) - 1) < 1e-9);
		ft_gpu_free(gpu);
	}
	if (fabs(sum / (double)n) > log(1.25))
		fail_msg("windows are off by %.2f in the mean", exp(sum / (double)n));
}

struct recorded {
	const char *name;
	double us;
};

/* A work by name: that of a layer, where layers have one. */
static const struct ft_work *layer_work(const struct ft_graph *g, const char *name)
{
	for (size_t i = 0; i < g->n_segments; i++)
		for (size_t j = 0; j < g->segment[i].n_ops; j++) {
			const struct ft_work *w = &g->work[g->segment[i].op[j].work];

			if ((!strncmp(g->segment[i].name, "forward", 7) ||
			     !strncmp(g->segment[i].name, "backward", 8)) &&
			    !strcmp(w->name, name))
				return w;
		}
	return work_of(g, name);
}

/* Kernels of a step on two H100 against what was recorded, within a quarter. */
static void take_what_was_recorded(const char *model, const char *training,
				   const char *stack, const struct recorded *row, int n)
{
	struct arena mem = { 0 };
	struct ft_cluster *c =
		cluster_of(&mem, "{gpu: h100-sxm, gpus: 2, fabric: none}");
	struct parts p;

	build(&p, model, training, stack, 2);
	for (int i = 0; i < n; i++) {
		const struct ft_work *w = layer_work(p.graph, row[i].name);
		struct ft_prediction t;
		struct ft_error err;
		double off;

		assert_true(ft_kernel_predict(c->gpu, w, FT_CLOCK_BURST, &t, &err));
		off = t.time_s * 1e6 / row[i].us - 1;
		if (fabs(off) > 0.25)
			fail_msg("%s: %.1f us, recorded %.1f", row[i].name,
				 t.time_s * 1e6, row[i].us);
	}
	drop(&p);
	ft_cluster_free(c);
	arena_release(&mem);
}

/* One layer: what an eager mixture does to move copies. */
static void eager_experts_take_what_was_recorded(void **state)
{
	static const struct recorded row[] = {
		{ "permute", 34.6 },
		{ "sort_by_expert", 93.6 },
		{ "expert_activation", 152.2 + 225.6 },
		{ "unsort", 91.8 },
		{ "unpermute", 49.1 + 93.7 + 81.4 },
		{ "unpermute_back", 112.1 + 104.8 + 33.2 + 20.9 + 93.2 },
		{ "unsort_back", 97.4 },
		{ "expert_activation_back", 224.9 + 231.6 + 225.6 },
		{ "expert_join_back", 62.1 },
		{ "sort_back", 98.6 },
		{ "permute_back", 11.1 + 79.5 },
		{ "adam", 21967 },
	};

	(void)state;
	take_what_was_recorded(
		"{name: mixtral-8x7b, num_hidden_layers: 4}",
		"{sequence_length: 4096, global_batch_size: 2, sharding: ddp, "
		"master_weights: false, gradient_dtype: bf16, parallel: {ep: 2}, "
		"moe_force_balance: true}",
		"torch-2.11-eager", row, sizeof(row) / sizeof(row[0]));
}

/* measurements/traces/h100-two-70b4L-tp2-s4096-b1-compile, 70B's layers over two ranks of
 * tensor parallelism and one replica: the loss over a split vocabulary, operation by
 * operation, and how a layer of a shard of one rank is cast, copied and kept. */
static void a_shard_alone_takes_what_was_recorded(void **state)
{
	static const struct recorded row[] = {
		{ "loss_cast", 825.4 },
		{ "loss", 352.8 + 881.9 + 695.1 + 350.4 + 880.3 },
		{ "loss_back", 326.9 + 697.7 + 1033.3 + 884.4 },
		{ "loss_cast_back", 513.7 },
		{ "fsdp_copy_in", 3 * 232.8 + 66.3 + 67.4 + 10.8 + 10.3 + 1.7 + 1.7 },
		{ "fsdp_copy_out", 3 * 154.3 + 46.3 + 44.8 + 4.2 + 4.4 + 1.2 + 1.1 },
		{ "fsdp_pack", 1414.4 },
		{ "fsdp_keep", 1144.5 },
	};

	(void)state;
	take_what_was_recorded(
		"{name: llama3-70b, num_hidden_layers: 4}",
		"{sequence_length: 4096, global_batch_size: 1, micro_batch_size: 1, "
		"sharding: fsdp, parallel: {tp: 2}, gradient_dtype: fp32}",
		"torch-2.11-compile", row, sizeof(row) / sizeof(row[0]));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_clock_falls_as_the_limit_asks),
		cmocka_unit_test(attention_asks_for_less_and_loses_more),
		cmocka_unit_test(attention_of_recorded_steps_is_lent),
		cmocka_unit_test(bursts_rest_for_a_window_at_most),
		cmocka_unit_test(stages_that_wait_rest_their_cards),
		cmocka_unit_test(windows_cost_near_what_was_measured),
		cmocka_unit_test(eager_experts_take_what_was_recorded),
		cmocka_unit_test(a_shard_alone_takes_what_was_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
