/* tests/test_experts.c - routed MLPs: bytes of exchanges, passes, waits of the host, graphs */
#include <math.h>

#include <gsl/gsl_cdf.h>

#include "foretoken/study.h"
#include "tests/routed.h"

/* Ranks that c copies reach of n, by throwing them. */
static double thrown(int64_t c, int64_t n)
{
	enum { THROWS = 40000 };
	uint64_t seed = 7;
	double hit = 0;

	for (int i = 0; i < THROWS; i++) {
		uint64_t seen = 0;

		for (int64_t j = 0; j < c; j++)
			seen |= UINT64_C(1) << rnd(&seed) % (uint32_t)n;
		for (; seen; seen &= seen - 1)
			hit++;
	}
	return hit / THROWS;
}

/* What the fullest rank takes in, over the mean, under Megatron's spread. */
static double blom_fullest(int64_t experts, int64_t ep)
{
	double n = (double)ep;

	return ep < 2 ?
		       1 :
		       1 + 0.6 * sqrt(n / ((double)experts - 1)) *
				       gsl_cdf_ugaussian_Pinv((n - 0.375) / (n + 0.25));
}

static void exchanges_move_what_their_dispatcher_sends(void **state)
{
	static const char *const names[] = { "ep_dispatch", "ep_combine",
					     "ep_dispatch_back", "ep_combine_back" };
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 60; i++) {
		bool direct;
		struct drawn d;
		struct parts p;
		double each, want;

		draw(&d, &seed, "");
		direct = strcmp(d.dispatcher, "alltoall") != 0;
		build(&p, d.model, d.plan, "megatron-core", RANKS);
		each = 2. * (double)(d.h * SEQUENCE) *
		       (double)(d.layers * d.micro_batches) /
		       (double)(d.sliced ? d.tp : 1);
		want = direct ? thrown(d.per_token, d.ep) : (double)d.per_token;
		for (int k = 0; k < 4; k++) {
			struct sum s = sum_of(p.graph, names[k]);

			if (d.ep == 1)
				assert_true(s.n == 0);
			else
				near_frac(s.bytes,
					  each * want * blom_fullest(d.experts, d.ep),
					  direct ? 0.01 : 1e-9);
		}
		if (d.ep > 1)
			assert_true(work_of(p.graph, names[0])
					    ->communication.fanout.copies ==
				    (direct ? (double)d.per_token : 0));
		drop(&p);
	}
}

/* Sorting passes read and write all copies. The library's all-to-all needs them in order
 * of ranks, and behind it in order of experts; a direct kernel only the latter. */
static void copies_are_sorted_as_often_as_the_dispatcher_needs(void **state)
{
	static const char *const by_rank[] = { "permute", "unpermute", "permute_back",
					       "unpermute_back" };
	static const char *const by_expert[] = { "sort_by_expert", "unsort",
						 "sort_back", "unsort_back" };
	uint64_t seed = 2;

	(void)state;
	for (int i = 0; i < 40; i++) {
		struct drawn d;
		struct parts p;
		double n, bytes;
		bool direct, several;

		draw(&d, &seed, ", moe_force_balance: true");
		direct = strcmp(d.dispatcher, "alltoall") != 0;
		several = d.experts > d.ep;
		build(&p, d.model, d.plan, "megatron-core", RANKS);
		n = (double)(d.layers * d.micro_batches);
		bytes = n * 4 * (double)(d.h * d.per_token) * SEQUENCE /
			(double)(d.sliced ? d.tp : 1);
		for (int k = 0; k < 4; k++) {
			near_frac(sum_of(p.graph, by_rank[k]).bytes, direct ? 0 : bytes,
				  1e-12);
			near_frac(sum_of(p.graph, by_expert[k]).bytes,
				  direct || several ? bytes : 0, 1e-12);
		}
		drop(&p);
	}
}

static void the_host_waits_for_counts_unless_they_are_known(void **state)
{
	static const struct {
		const char *plan;
		int waits; /* in a forward */
	} cases[] = {
		{ PLAN("parallel: {ep: 4}"), 1 },
		{ PLAN("parallel: {ep: 4}, moe_dispatcher: deepep"), 1 },
		{ PLAN("parallel: {ep: 4}, cuda_graphs: partial"), 1 },
		{ PLAN("parallel: {ep: 4}, cuda_graphs: full"), 0 },
		{ PLAN("parallel: {ep: 4}, moe_capacity_factor: 1"), 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct ft_segment *s;
		struct parts p;
		int waits = 0;

		build(&p, MOE, cases[i].plan, "megatron-core", 8);
		s = segment_of(p.graph, "forward");
		for (size_t k = 0; k < s->n_ops; k++)
			waits += s->op[k].host_waits;
		assert_int_equal(waits, cases[i].waits);
		assert_true(s->host[FT_HOST_SYNC] == cases[i].waits);
		p.stack->layout.host_sync = false;
		rebuild(&p);
		assert_true(p.graph->host_runs_ahead == !cases[i].waits);
		drop(&p);
	}
}

/* Model FLOPs of the experts are those of products that run, and those of copies that are dropped. */
static void what_is_dropped_does_not_run(void **state)
{
	static const char *const plans[] = {
		PLAN("parallel: {ep: 4}, moe_capacity_factor: 0.25"),
		PLAN("parallel: {ep: 4}, moe_capacity_factor: 1"),
		PLAN("parallel: {ep: 4}, moe_force_balance: true"),
	};

	(void)state;
	for (int i = 0; i < 3; i++) {
		double run, model;
		struct parts p;

		build(&p, MOE, plans[i], "megatron-core", 8);
		run = sum_of(p.graph, "expert_up").flop +
		      sum_of(p.graph, "expert_down").flop;
		model = 6 * ft_model_routed_parameters(p.model) -
			ft_plan_dropped_flop_per_token(p.model, p.plan);
		near_frac(8 * run, model * p.graph->tokens, 1e-9);
		drop(&p);
	}
}

static void experts_apart_do_the_same_work(void **state)
{
	static const char *const names[] = { "expert_up", "expert_down" };
	struct parts one, apart;

	(void)state;
	build(&one, MOE, PLAN("parallel: {ep: 4}, moe_force_balance: true"),
	      "megatron-core", 8);
	build(&apart, MOE,
	      PLAN("parallel: {ep: 4}, moe_force_balance: true, "
		   "grouped_experts: false"),
	      "megatron-core", 8);
	for (int i = 0; i < 2; i++) {
		const struct ft_work *w = work_of(one.graph, names[i]);
		struct sum a = sum_of(one.graph, names[i]);
		struct sum b = sum_of(apart.graph, names[i]);

		assert_int_equal(w->gemm.groups, 4);
		assert_int_equal(work_of(apart.graph, names[i])->gemm.groups, 1);
		near_frac(b.n, 4 * a.n, 1e-12);
		near_frac(b.flop, a.flop, 1e-12);
	}
	/* four experts' calls in each pass of two layers and four micro-batches */
	assert_true(host_times(one.graph, FT_HOST_EXPERT) == 0);
	assert_true(host_times(apart.graph, FT_HOST_EXPERT) == 4. * 2 * 2 * 4);
	drop(&one);
	drop(&apart);
}

/* Is each exchange of this name next to one over the parts of an expert: behind it (back), a
 * reduce-scatter, or in front of it, an all-gather? */
static bool is_beside_parts(const struct ft_graph *g, const char *name, bool back)
{
	enum ft_collective op = back ? FT_REDUCE_SCATTER : FT_ALL_GATHER;
	bool found = false;

	for (size_t s = 0; s < g->n_segments; s++)
		for (size_t i = 0; i < g->segment[s].n_ops; i++) {
			const struct ft_op *o = &g->segment[s].op[i];
			const struct ft_work *w;

			if (strcmp(g->work[o->work].name, name))
				continue;
			found = true;
			if (back ? i == 0 : i + 1 == g->segment[s].n_ops)
				return false;
			w = &g->work[o[back ? -1 : 1].work];
			if (strcmp(w->name, "etp_exchange") ||
			    w->communication.op != op)
				return false;
		}
	return found;
}

/* Split experts: each rank of etp computes all their copies with its share of the width. */
static void split_experts_gather_their_tokens(void **state)
{
	struct parts one, split;

	(void)state;
	build(&one, MOE, PLAN("parallel: {ep: 4}, moe_force_balance: true"),
	      "megatron-core", 8);
	build(&split, MOE, PLAN("parallel: {ep: 4, etp: 2}, moe_force_balance: true"),
	      "megatron-core", 8);
	near_frac(sum_of(split.graph, "expert_up").flop,
		  sum_of(one.graph, "expert_up").flop, 1e-12);
	assert_int_equal(work_of(split.graph, "expert_up")->gemm.m, 2 * 512 * 4);
	assert_int_equal(work_of(split.graph, "expert_up")->gemm.n, 2 * 256 / 2);
	/* beside each of the four exchanges of two layers in four micro-batches */
	near_frac(sum_of(split.graph, "etp_exchange").bytes,
		  4. * 2 * 4 * 2 * (2. * 512 * 512 * 4), 1e-12);
	assert_true(sum_of(one.graph, "etp_exchange").n == 0);
	assert_true(is_beside_parts(split.graph, "ep_dispatch", false));
	assert_true(is_beside_parts(split.graph, "ep_combine", true));
	assert_true(is_beside_parts(split.graph, "ep_combine_back", false));
	assert_true(is_beside_parts(split.graph, "ep_dispatch_back", true));
	/* a rank permutes its own copies, orders all, and keeps all as input */
	near_frac(sum_of(split.graph, "permute").bytes,
		  sum_of(one.graph, "permute").bytes, 1e-12);
	near_frac(sum_of(split.graph, "sort_by_expert").bytes,
		  2 * sum_of(one.graph, "sort_by_expert").bytes, 1e-12);
	near_frac(segment_of(split.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS] -
			  segment_of(one.graph, "forward")
				  ->net_bytes[FT_MEMORY_ACTIVATIONS],
		  2. * 512 * 512 * 4, 1e-12);
	drop(&one);
	drop(&split);
}

/* Fused products activate and cast what goes from one to the other: forward the width, backward twice the
 * width of each copy, four bytes an element (delayed). What goes in is cast before them, h forward and h backward, by
 * one kernel of all experts. */
static void fused_experts_need_no_casts_between_and_no_activation(void **state)
{
	struct parts apart, fused;
	double copies = 512 * 4 * 2 * 4., between = 256 + 2 * 256, outer = 512 + 512;

	(void)state;
	build(&apart, MOE,
	      PLAN("parallel: {ep: 4}, moe_force_balance: true, precision: fp8"),
	      "megatron-core", 8);
	build(&fused, MOE,
	      PLAN("parallel: {ep: 4}, moe_force_balance: true, precision: fp8, "
		   "fused_experts: true"),
	      "megatron-core", 8);
	near_frac(sum_of(apart.graph, "cast_fp8").bytes -
			  sum_of(fused.graph, "cast_fp8").bytes,
		  4 * copies * between, 1e-12);
	assert_true(sum_of(fused.graph, "cast_fp8").bytes > 4 * copies * outer);
	near_frac(sum_of(apart.graph, "expert_activation").bytes, 6 * copies * 256,
		  1e-12);
	near_frac(sum_of(apart.graph, "expert_activation_back").bytes,
		  18 * copies * 256, 1e-12);
	assert_true(sum_of(fused.graph, "expert_activation").n == 0);
	assert_true(sum_of(fused.graph, "expert_activation_back").n == 0);
	near_frac(sum_of(fused.graph, NULL).flop, sum_of(apart.graph, NULL).flop,
		  1e-12);
	drop(&apart);
	drop(&fused);
}

/* ---- graphs ---------------------------------------------------------------- */

/* Of a layer's own ops all are launched by a graph, or those up to the router: forward to
 * the choice of experts, backward from the router's products on; or the router's alone. */
static void graphs_hold_what_they_say(void **state)
{
	static const char *const plans[] = {
		PLAN("parallel: {ep: 4, tp: 2}"),
		PLAN("parallel: {ep: 4, tp: 2}, cuda_graphs: partial"),
		PLAN("parallel: {ep: 4, tp: 2}, cuda_graphs: full"),
		PLAN("parallel: {ep: 4, tp: 2}, cuda_graphs: router"),
	};
	static const char *const segments[] = { "forward", "backward" };

	(void)state;
	for (int i = 0; i < 8; i++) {
		const struct ft_segment *s;
		struct parts p;
		bool attention = i % 2 == 0, eager = i / 2 == 0 || i / 2 == 3;
		double calls = 0;

		build(&p, MOE, plans[i / 2], "megatron-core", 8);
		s = segment_of(p.graph, segments[i % 2]);
		for (size_t k = 0; k < s->n_ops; k++) {
			const struct ft_work *w = &p.graph->work[s->op[k].work];
			bool want;

			if (i % 2 && !strcmp(w->name, "router"))
				attention = true;
			want = i / 2 == 2 || (i / 2 == 1 && attention) ||
			       (i / 2 == 3 && (!strcmp(w->name, "router") ||
					       !strcmp(w->name, "top_k")));
			calls += w->kind == FT_COMMUNICATION && !s->op[k].graphed;
			if (s->op[k].graphed != want)
				fail_msg("%s: %s is %sin a graph", plans[i / 2],
					 w->name, want ? "not " : "");
			if (!strcmp(w->name, "top_k"))
				attention = false;
		}
		assert_true(s->host[FT_HOST_COLLECTIVE] == calls);
		assert_true(s->host[FT_HOST_GRAPH] == (i / 2 > 0));
		assert_true(s->host[FT_HOST_BLOCK_FORWARD] +
				    s->host[FT_HOST_BLOCK_BACKWARD] ==
			    eager);
		assert_true(s->host[FT_HOST_TENSOR_FORWARD] +
				    s->host[FT_HOST_TENSOR_BACKWARD] ==
			    eager);
		drop(&p);
	}
}

/* One token's routing, drawn: so many groups of all, and so many different experts in them; at how
 * many of n places they are. */
static int drawn_places(uint64_t *seed, int experts, int copies, int of, int groups,
			int n)
{
	int place[512] = { 0 }, group[64], reached = 0, each = experts / of;

	for (int i = 0; i < of; i++)
		group[i] = i;
	for (int i = 0; i < groups; i++) {
		int k = i + (int)(rnd(seed) % (uint64_t)(of - i)), swap = group[i];

		group[i] = group[k];
		group[k] = swap;
	}
	for (bool seen[512] = { false }; copies;) {
		int e = (int)(rnd(seed) % (uint64_t)(groups * each));

		if (seen[e])
			continue;
		seen[e] = true;
		copies--;
		place[(group[e / each] * each + e % each) / (experts / n)] = 1;
	}
	for (int i = 0; i < n; i++)
		reached += place[i];
	return reached;
}

/* As many places as groups, more, fewer, one; routing that is limited and not. Experts are
 * thrown one by one, as if a token could have one twice: 3 %. */
static void limited_routing_reaches_fewer_places(void **state)
{
	static const struct {
		int experts, copies, of, groups, n;
	} row[] = {
		{ 256, 8, 8, 4, 8 },  { 256, 8, 8, 4, 64 }, { 256, 8, 8, 4, 32 },
		{ 256, 8, 8, 4, 4 },  { 256, 8, 8, 4, 2 },  { 256, 8, 8, 4, 1 },
		{ 160, 6, 8, 3, 8 },  { 160, 6, 8, 3, 16 }, { 160, 6, 8, 3, 2 },
		{ 256, 8, 1, 1, 64 }, { 256, 8, 1, 1, 8 },  { 256, 8, 16, 16, 8 },
	};
	uint64_t seed = 11;

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct ft_fanout f = { row[i].copies, 0, 0 };
		double sum = 0;

		if (row[i].groups < row[i].of)
			f.groups = row[i].groups, f.of = row[i].of;
		for (int k = 0; k < 20000; k++)
			sum += drawn_places(&seed, row[i].experts, row[i].copies,
					    row[i].of, row[i].groups, row[i].n);
		near_frac(ft_fanout_reached(f, row[i].n), sum / 20000, 0.03);
	}
}

/* DeepSeek-V3's tokens go to at most four nodes of eight: fewer cross the network. */
static void a_model_says_how_far_its_tokens_go(void **state)
{
	static const char plan[] =
		"{sequence_length: 512, global_batch_size: 64, moe_dispatcher: deepep, "
		"parallel: {ep: 64}}";
	struct ft_fanout f;
	struct parts p;

	(void)state;
	build(&p, "{name: deepseek-v3, num_hidden_layers: 4}", plan, "megatron-core",
	      64);
	f = work_of(p.graph, "ep_dispatch")->communication.fanout;
	assert_true(f.copies == 8 && f.groups == 4 && f.of == 8);
	near_frac(work_of(p.graph, "ep_dispatch")->communication.bytes,
		  2. * 512 * 7168 * ft_fanout_reached(f, 64) * blom_fullest(256, 64),
		  1e-9);
	assert_true(ft_fanout_reached(f, 8) < 4);
	drop(&p);
	build(&p, "{name: deepseek-v3, num_hidden_layers: 4, topk_group: 8}", plan,
	      "megatron-core", 64);
	f = work_of(p.graph, "ep_dispatch")->communication.fanout;
	assert_true(f.copies == 8 && f.of == 0);
	drop(&p);
}

/* Seconds of one ep_dispatch whose works have this fanout. */
static double dispatch_s(const struct ft_scenario *s, double fanout, double *bytes)
{
	struct ft_error err;
	struct ft_outcome o;
	double answer = 0;
	struct ft_graph *g = ft_graph_build(s->model, s->plan, s->stack, &err);

	ok_or_say(g, err);
	for (size_t i = 0; i < g->n_works; i++)
		if (g->work[i].kind == FT_COMMUNICATION &&
		    g->work[i].communication.fanout.copies > 0) {
			g->work[i].communication.fanout.copies = fanout;
			*bytes = g->work[i].communication.bytes;
		}
	ok_or_say(ft_study_simulate(s, g, NULL, &o, &err), err);
	for (size_t i = 0; i < o.run->n_shares; i++)
		if (!strcmp(o.run->share[i].name, "ep_dispatch"))
			answer = o.run->share[i].time_s / o.run->share[i].count;
	ft_outcome_release(&o);
	ft_graph_free(g);
	return answer;
}

/* Of the bytes that cross the network, domains reached for each rank reached remain. */
static void a_token_crosses_the_network_once_a_domain(void **state)
{
	static const char text[] =
		"{model: {name: qwen3-30b-a3b, num_hidden_layers: 2}, "
		"cluster: {gpu: h100-sxm, gpus: 32}, stack: megatron-core, training: "
		"{sequence_length: 4096, global_batch_size: 32, sharding: ddp, "
		"moe_dispatcher: deepep, parallel: {ep: 32}}}";
	struct arena mem = { 0 };
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_error err;
	struct node *root = node_read_text(&mem, "s", text, strlen(text), &err);
	struct ft_scenario *s = ft_scenario_from(shelf, root, "s", true, &err);
	struct ft_collective_call call = { .op = FT_ALL_TO_ALL, .shape = { 32, 1 } };
	struct ft_collective_result r;
	double all, once, seconds;

	(void)state;
	ok_or_say(s, err);
	all = dispatch_s(s, 0, &call.bytes);
	once = dispatch_s(s, 8, &call.bytes);
	ok_or_say(ft_collective_predict(s->cluster, s->ccl, &call, &r, &err), err);
	assert_int_equal(r.domains, 4);
	/* at the rate of an exchange, which large ones tell without their start */
	seconds = r.duration.time_s;
	call.bytes *= 2;
	ok_or_say(ft_collective_predict(s->cluster, s->ccl, &call, &r, &err), err);
	near_frac(all - once,
		  (1 - thrown(8, 4) / thrown(8, 32)) * (r.duration.time_s - seconds) *
			  s->stack->collective_factor.value *
			  s->stack->dispatcher_factor.value,
		  0.02);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exchanges_move_what_their_dispatcher_sends),
		cmocka_unit_test(copies_are_sorted_as_often_as_the_dispatcher_needs),
		cmocka_unit_test(limited_routing_reaches_fewer_places),
		cmocka_unit_test(a_model_says_how_far_its_tokens_go),
		cmocka_unit_test(the_host_waits_for_counts_unless_they_are_known),
		cmocka_unit_test(what_is_dropped_does_not_run),
		cmocka_unit_test(experts_apart_do_the_same_work),
		cmocka_unit_test(split_experts_gather_their_tokens),
		cmocka_unit_test(fused_experts_need_no_casts_between_and_no_activation),
		cmocka_unit_test(graphs_hold_what_they_say),
		cmocka_unit_test(a_token_crosses_the_network_once_a_domain),
	};

	return cmocka_run_group_tests_name("traces/experts", tests, NULL, NULL);
}
