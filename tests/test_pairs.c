/* tests/test_pairs.c - overlap.ep: a backward and the next forward side by side */
#include "tests/routed.h"
#include "tests/simulated.h"

/* Works, the host's part but for the pairing, and what is given back are those of the plan
 * without pairs. */
static void same_step(const struct ft_graph *pairs, const struct ft_graph *alone)
{
	double left;

	assert_int_equal(alone->n_works, pairs->n_works);
	for (size_t k = 0; k < alone->n_works; k++)
		near_frac(times_of(pairs, &alone->work[k]),
			  times_of(alone, &alone->work[k]), 1e-12);
	for (int a = 0; a < FT_HOSTS; a++)
		if (a != FT_HOST_PAIR && a != FT_HOST_PAIR_EXPERT)
			near_frac(host_times(pairs, (enum ft_host)a),
				  host_times(alone, (enum ft_host)a), 1e-12);
	left = left_over(pairs, FT_MEMORY_ACTIVATIONS);
	assert_true(left > -1 && left < 1);
}

static void pairs_do_the_same_work(void **state)
{
	uint64_t seed = 3;
	int paired = 0;

	(void)state;
	for (int i = 0; i < 30; i++) {
		struct parts alone, pairs;
		struct drawn d;

		draw(&d, &seed, i % 3 ? "" : ", precision: fp8, recompute: selective");
		build(&alone, d.model, d.plan, "megatron-core", RANKS);
		if (i % 3 == 1) { /* none of them is pairs' to refuse */
			d.plan[strlen(d.plan) - 1] = '\0';
			strcat(d.plan, ", recompute: full, recompute_layers: 0}");
		}
		d.plan[strlen(d.plan) - 1] = '\0';
		strcat(d.plan, ", overlap: {ep: true}}");
		build(&pairs, d.model, d.plan, "megatron-core", RANKS);
		same_step(pairs.graph, alone.graph);
		assert_true(has_segment(pairs.graph, "pair") ==
			    (d.ep > 1 && d.micro_batches > 1));
		paired += has_segment(pairs.graph, "pair");
		drop(&alone);
		drop(&pairs);
	}
	assert_true(paired > 5);
}

/* With pipelines, whose stages begin behind their neighbours. */
static void pairs_do_the_same_work_in_pipelines(void **state)
{
	static const char *const plans[] = {
		"sharding: zero1, parallel: {pp: 2, ep: 4}",
		"sharding: zero2, parallel: {pp: 2, vpp: 2, ep: 2, etp: 2, tp: 2}",
		"sharding: ddp, parallel: {pp: 4, vpp: 2, ep: 2}, recompute: selective",
		"sharding: ddp, schedule: gpipe, parallel: {pp: 2, ep: 4}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(plans) / sizeof(*plans); i++) {
		struct parts alone, pairs;
		char plan[300];

		for (int k = 0; k < 2; k++) {
			snprintf(plan, sizeof(plan),
				 "{sequence_length: 512, global_batch_size: 64, %s, "
				 "overlap: {ep: %s}}",
				 plans[i], k ? "true" : "false");
			build(k ? &pairs : &alone,
			      "{name: qwen3-30b-a3b, num_hidden_layers: 8}", plan,
			      "megatron-core", 8);
		}
		same_step(pairs.graph, alone.graph);
		assert_true(has_segment(pairs.graph, "pair") == (pairs.plan->vpp > 1));
		drop(&alone);
		drop(&pairs);
	}
}

/* In a pair each exchange is recorded, what needs it waits for its event, and the other
 * micro-batch computes between the two. */
static void a_pair_computes_while_tokens_travel(void **state)
{
	const struct ft_segment *s;
	struct parts p;
	int under_way[FT_EVENTS] = { 0 }, beside[FT_EVENTS] = { 0 }, exchanges = 0;

	(void)state;
	build(&p, MOE, PLAN("parallel: {ep: 4}, overlap: {ep: true}"), "megatron-core",
	      8);
	s = segment_of(p.graph, "pair");
	for (size_t i = 0; i < s->n_ops; i++) {
		const struct ft_op *op = &s->op[i];

		for (int k = 0; k < FT_OP_WAITS; k++) {
			int e = op->wait[k];

			assert_true(op->stream != FT_STREAM_COMPUTE ||
				    e != FT_TAIL + FT_STREAM_EP);
			if (e != FT_EVENT_EXCHANGED && e != FT_EVENT_EXCHANGED_BACK)
				continue;
			assert_int_equal(under_way[e]--, 1);
			assert_true(beside[e] > 0);
		}
		for (int e = 0; e < FT_EVENTS; e++)
			beside[e] += op->stream == FT_STREAM_COMPUTE && under_way[e];
		if (op->stream != FT_STREAM_EP)
			continue;
		assert_true(op->record == FT_EVENT_EXCHANGED ||
			    op->record == FT_EVENT_EXCHANGED_BACK);
		assert_int_equal(under_way[op->record]++, 0);
		beside[op->record] = 0;
		exchanges++;
	}
	assert_int_equal(exchanges, 4);
	assert_true(!under_way[FT_EVENT_EXCHANGED] &&
		    !under_way[FT_EVENT_EXCHANGED_BACK]);
	drop(&p);
}

/* The host pays for both layers, once for what pairs them, and for each local expert whose gradients
 * are computed apart; a graph of all does it else, and one of what precedes the experts its share of the first. */
static void pairing_costs_the_host_unless_a_graph_does_it(void **state)
{
	static const struct {
		const char *plan;
		double times;
	} cases[] = {
		{ PLAN("parallel: {ep: 4}, overlap: {ep: true}"), 1 },
		{ PLAN("parallel: {ep: 4}, overlap: {ep: true}, cuda_graphs: router"),
		  1 },
		{ PLAN("parallel: {ep: 4}, overlap: {ep: true}, cuda_graphs: partial"),
		  0.7 }, /* three of ten pieces are in the graph */
		{ PLAN("parallel: {ep: 4}, overlap: {ep: true}, cuda_graphs: full"),
		  0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct parts p;

		build(&p, MOE, cases[i].plan, "megatron-core", 8);
		for (size_t k = 0; k < p.graph->n_segments; k++) {
			const double *host = p.graph->segment[k].host;
			bool pair = !strncmp(p.graph->segment[k].name, "pair.", 5);

			assert_true(host[FT_HOST_PAIR] == (pair ? cases[i].times : 0));
			assert_true(host[FT_HOST_PAIR_EXPERT] ==
				    (pair && cases[i].times > 0 ? 16 / 4 : 0));
		}
		drop(&p);
	}
}

static void what_cannot_be_paired_is_not(void **state)
{
	struct parts p;

	(void)state;
	build(&p, MOE,
	      "{sequence_length: 512, global_batch_size: 32, sharding: fsdp, "
	      "parallel: {ep: 4}, overlap: {ep: true}}",
	      "megatron-core", 8);
	assert_false(has_segment(p.graph, "pair"));
	drop(&p);
	build(&p, MOE,
	      "{sequence_length: 512, global_batch_size: 48, sharding: ddp, "
	      "micro_batch_size: 2, parallel: {ep: 4}, overlap: {ep: true}}",
	      "megatron-core", 8);
	assert_true(has_segment(p.graph, "pair"));
	p.plan->last_micro_batch = 1; /* F0 B0 F1 B1 F2 B2: the first pair stays */
	rebuild(&p);
	assert_true(sum_in(p.graph, "pair", "router").n == 3. * 2);
	p.plan->micro_batches = 2;
	rebuild(&p);
	assert_false(has_segment(p.graph, "pair"));
	drop(&p);
}

#define SCENARIO(overlap, split) \
	"{model: qwen3-30b-a3b, cluster: {gpu: h100-sxm, gpus: 32}, " \
	"stack: megatron-core, training: {sequence_length: 4096, " \
	"global_batch_size: 256, moe_force_balance: true, cuda_graphs: full, " \
	"parallel: " split ", overlap: {ep: " overlap "}}}"

static void pairs_hide_exchanges(void **state)
{
	(void)state;
	assert_true(simulated_s(SCENARIO("true", "{ep: 32}"), NULL) <
		    0.98 * simulated_s(SCENARIO("false", "{ep: 32}"), NULL));
	assert_true(
		simulated_s(SCENARIO("true", "{pp: 2, vpp: 2, ep: 16}"), NULL) <
		0.98 * simulated_s(SCENARIO("false", "{pp: 2, vpp: 2, ep: 16}"), NULL));
}

/* Stage s of dualpipev runs m - 2 pp + s + 1 times two pairs, and pp - 1 - s more where it
 * drains; the first of the last stage is none. Chunks here are of two layers. */
static void dualpipev_pairs_as_its_order_says(void **state)
{
	enum { PP = 2, M = 8, LAYERS = 2 };
	struct parts alone, pairs;

	(void)state;
	for (int k = 0; k < 2; k++) {
		char plan[300];

		snprintf(
			plan, sizeof(plan),
			"{sequence_length: 512, global_batch_size: 32, sharding: zero1, "
			"schedule: dualpipev, parallel: {pp: 2, vpp: 2, ep: 4}, "
			"overlap: {ep: %s}}",
			k ? "true" : "false");
		build(k ? &pairs : &alone,
		      "{name: qwen3-30b-a3b, num_hidden_layers: 8}", plan,
		      "torch-2.11-eager", 8);
	}
	same_step(pairs.graph, alone.graph);
	assert_int_equal(pairs.plan->micro_batches, M);
	for (int s = 0; s < PP; s++) {
		const struct ft_class *c = &pairs.graph->rank_class[s];
		int ran = 0,
		    want = 2 * (M - 2 * PP + s + 1) + (PP - 1 - s) - (s == PP - 1);

		for (size_t i = 0; i < c->n_calls; i++)
			if (!strncmp(pairs.graph->segment[c->call[i].segment].name,
				     "pair.", 5))
				ran += (int)c->call[i].repeat;
		assert_int_equal(ran, LAYERS * want);
	}
	assert_false(has_segment(alone.graph, "pair"));
	drop(&alone);
	drop(&pairs);
}

#define DUAL(overlap) \
	"{model: qwen3-30b-a3b, cluster: {gpu: h100-sxm, gpus: 32}, " \
	"stack: torch-2.11-eager, training: {sequence_length: 4096, " \
	"global_batch_size: 256, moe_force_balance: true, sharding: zero1, " \
	"schedule: dualpipev, parallel: {pp: 2, vpp: 2, ep: 16}, " \
	"overlap: {ep: " overlap "}}}"

static void dualpipev_hides_exchanges(void **state)
{
	(void)state;
	assert_true(simulated_s(DUAL("true"), NULL) <
		    0.98 * simulated_s(DUAL("false"), NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_do_the_same_work),
		cmocka_unit_test(pairs_do_the_same_work_in_pipelines),
		cmocka_unit_test(a_pair_computes_while_tokens_travel),
		cmocka_unit_test(pairing_costs_the_host_unless_a_graph_does_it),
		cmocka_unit_test(what_cannot_be_paired_is_not),
		cmocka_unit_test(pairs_hide_exchanges),
		cmocka_unit_test(dualpipev_pairs_as_its_order_says),
		cmocka_unit_test(dualpipev_hides_exchanges),
	};

	return cmocka_run_group_tests_name("traces/pairs", tests, NULL, NULL);
}
