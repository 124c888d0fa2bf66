/* tests/test_context.c - context groups: what their ranks compute, exchange and hold */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/works.h"

#define DENSE \
	"{model_type: llama, hidden_size: 1024, num_hidden_layers: 4, " \
	"num_attention_heads: 16, num_key_value_heads: 8, vocab_size: 1024, " \
	"intermediate_size: 3072}"
#define PLAN(more) "{sequence_length: 4096, global_batch_size: 16, " more "}"

enum { S = 4096, H = 1024, Q = 1024, KV = 2 * 512, LAYERS = 4 };

static const enum ft_context_parallel ways[] = { FT_CP_RING, FT_CP_ALL_GATHER,
						 FT_CP_ALL_TO_ALL,
						 FT_CP_GATHERED_RING };

/* Products and attention of all ranks together are the same however the sequence is cut. */
static void a_context_group_does_the_work_of_one_rank(void **state)
{
	static const char *const models[] = {
		DENSE,
		"{model_type: llama, hidden_size: 1024, num_hidden_layers: 4, "
		"num_attention_heads: 16, num_key_value_heads: 8, vocab_size: 1024, "
		"intermediate_size: 3072, is_causal: false}",
	};

	(void)state;
	for (int i = 0; i < 2 * 3 * 4; i++) {
		int cp = 2 << i / 4 % 3;
		struct parts one, cut;
		char plan[200];

		build(&one, models[i / 12], PLAN("sharding: ddp"), "megatron-core", 8);
		snprintf(plan, sizeof(plan), PLAN("sharding: ddp, parallel: {cp: %d}"),
			 cp);
		build(&cut, models[i / 12], plan, "megatron-core", 8);
		cut.stack->layout.context_parallel = ways[i % 4];
		rebuild(&cut);
		/* as many ranks, cp times the micro-batches */
		near_frac(sum_of(cut.graph, "attention").flop,
			  sum_of(one.graph, "attention").flop, 1e-3);
		near_frac(sum_of(cut.graph, NULL).flop, sum_of(one.graph, NULL).flop,
			  1e-3);
		drop(&one);
		drop(&cut);
	}
}

/* Works of that name run in passes of that name alone: "forward" or "backward". */
static bool only_in(const struct ft_graph *g, const char *name, const char *pass)
{
	for (size_t i = 0; i < g->n_segments; i++)
		for (size_t k = 0; k < g->segment[i].n_ops; k++)
			if (!strcmp(g->work[g->segment[i].op[k].work].name, name) &&
			    strncmp(g->segment[i].name, pass, strlen(pass)) != 0)
				return false;
	return true;
}

/* Bytes as nccl-tests count them, of a layer in a micro-batch, forward and backward. */
static void a_context_group_exchanges_what_its_way_needs(void **state)
{
	(void)state;
	for (int cp = 2; cp <= 8; cp *= 2) {
		double times = LAYERS * 16 / (8. / cp), own = 2. * KV * S / cp;
		double q = 2. * Q * S / cp;
		struct parts p;
		char plan[200];

		snprintf(plan, sizeof(plan), PLAN("sharding: ddp, parallel: {cp: %d}"),
			 cp);
		build(&p, DENSE, plan, "megatron-core", 8);
		/* keys and values go round; backward their gradients as well */
		near_frac(sum_of(p.graph, "cp_exchange").bytes,
			  times * 3 * own * (cp - 1), 1e-12);
		/* a partial result of 2 bytes is read, a sum of 4 read and written: 10,
		 * three quarters of it a step; backward of q, and of k and v */
		near_frac(sum_of(p.graph, "cp_correction").bytes,
			  times * 0.75 * 10 * (cp - 1) * (2 * q + own) / 2, 1e-12);
		assert_true(host_times(p.graph, FT_HOST_COLLECTIVE) >=
			    times * 2 * (cp - 1));
		p.stack->layout.context_parallel = FT_CP_ALL_GATHER;
		rebuild(&p);
		near_frac(sum_of(p.graph, "cp_all_gather").bytes, times * 2 * own * cp,
			  1e-12);
		near_frac(sum_of(p.graph, "cp_reduce_scatter").bytes, times * own * cp,
			  1e-12);
		assert_true(only_in(p.graph, "cp_reduce_scatter", "backward"));
		p.stack->layout.context_parallel = FT_CP_ALL_TO_ALL;
		rebuild(&p);
		/* q, k, v there and the output back; backward the gradients the other way */
		near_frac(sum_of(p.graph, "cp_all_to_all").bytes,
			  times * 2 * (q + own + q), 1e-12);
		assert_true(sum_of(p.graph, "cp_correction").n == 0);
		assert_true(sum_of(p.graph, "cp_exchange").n == 0);
		drop(&p);
	}
}

/* PyTorch's: keys and values once forward and once backward, and cp times the gradients of a
 * rank's own, in fp32. A compiled backward has what its forward gathered. */
static void a_gathered_ring_sends_gradients_round(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * 3; i++) {
		int cp = 2 << i % 3, compiled = i / 3;
		double times = LAYERS * 16 / (8. / cp), own = 2. * KV * S / cp;
		struct parts p;
		char plan[200];

		snprintf(plan, sizeof(plan), PLAN("sharding: ddp, parallel: {cp: %d}"),
			 cp);
		build(&p, DENSE, plan,
		      compiled ? "torch-2.11-compile" : "torch-2.11-eager", 8);
		near_frac(sum_of(p.graph, "cp_all_gather").bytes,
			  times * (compiled ? 1 : 2) * own * cp, 1e-12);
		assert_true(only_in(p.graph, "cp_all_gather", "forward") == compiled);
		near_frac(sum_of(p.graph, "cp_exchange").bytes, times * cp * 2 * own,
			  1e-12);
		assert_true(only_in(p.graph, "cp_exchange", "backward"));
		assert_int_equal(sum_of(p.graph, "cp_exchange").n, times * cp);
		/* a block of its own tokens, and cp - 1 of others', both ways */
		assert_int_equal(sum_of(p.graph, "attention").n, times * 2 * cp);
		/* as many without a mask; a window makes it one kernel, and sends as much */
		p.model->causal = false;
		rebuild(&p);
		assert_int_equal(sum_of(p.graph, "attention").n, times * 2 * cp);
		for (int l = 0; l < LAYERS; l++)
			p.model->layer[l].window = S / 2;
		rebuild(&p);
		assert_int_equal(sum_of(p.graph, "attention").n, times * 2);
		near_frac(sum_of(p.graph, "cp_exchange").bytes, times * cp * 2 * own,
			  1e-12);
		drop(&p);
	}
}

/* Numbers of the output forward, of queries, keys and values backward, in bytes as a copy moves
 * them; keys and values are put together for each gather. */
static void a_gathered_ring_merges_its_blocks(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * 3; i++) {
		int cp = 2 << i % 3, compiled = i / 3;
		double times = LAYERS * 16 / (8. / cp), q = Q * S / cp,
		       kv = KV * S / cp;
		double forward = compiled ? 8 * (cp - 1) : 14 + 34 * (cp - 1);
		double backward = compiled ? 5 + 11 * (cp - 1) : 25 * cp;
		struct parts p;
		char plan[200];

		snprintf(plan, sizeof(plan), PLAN("sharding: ddp, parallel: {cp: %d}"),
			 cp);
		build(&p, DENSE, plan,
		      compiled ? "torch-2.11-compile" : "torch-2.11-eager", 8);
		near_frac(sum_of(p.graph, "cp_correction").bytes,
			  times * (forward * q + backward * (q + kv)), 1e-12);
		near_frac(sum_of(p.graph, "cp_flatten").bytes,
			  times * (compiled ? 1 : 2) * 4 * kv, 1e-12);
		drop(&p);
	}
}

static bool waits_for(const struct ft_op *op, int tail)
{
	for (int i = 0; i < FT_OP_WAITS; i++)
		if (op->wait[i] == tail)
			return true;
	return false;
}

/* A context group of all ranks is FSDP's communicator, which runs one collective at a time; a
 * smaller group has one of its own, be it of the same ranks as the shards'. */
static void a_context_of_all_ranks_takes_turns_with_shards(void **state)
{
	static const struct {
		const char *plan;
		int ranks;
		bool together;
	} cases[] = {
		{ PLAN("sharding: fsdp, parallel: {cp: 4}"), 4, true },
		{ PLAN("sharding: fsdp, parallel: {cp: 4}"), 8, false },
		{ PLAN("sharding: fsdp, parallel: {cp: 4, tp: 2}"), 8, false },
		{ PLAN("sharding: hsdp, shard: 4, parallel: {cp: 4}"), 8, false },
	};

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		struct parts p;
		int gathers = 0;

		build(&p, DENSE, cases[c].plan, "torch-2.11-eager", cases[c].ranks);
		for (size_t i = 0; i < p.graph->n_segments; i++)
			for (size_t k = 0; k < p.graph->segment[i].n_ops; k++) {
				const struct ft_op *op = &p.graph->segment[i].op[k];
				const char *name = p.graph->work[op->work].name;

				if (!strcmp(name, "cp_all_gather"))
					assert_int_equal(
						waits_for(op,
							  FT_TAIL + FT_STREAM_GATHER),
						cases[c].together);
				if (strcmp(name, "fsdp_gather") != 0)
					continue;
				gathers++;
				assert_int_equal(waits_for(op, FT_TAIL + FT_STREAM_CP),
						 cases[c].together);
				assert_true(waits_for(op, FT_TAIL + FT_STREAM_REDUCE));
			}
		assert_true(gathers > 0);
		drop(&p);
	}
}

/* Of a compiled one that is kept, 2 bytes a number of all ranks; without it for as long as a
 * layer runs. */
static void a_compiled_ring_keeps_what_it_gathered(void **state)
{
	struct parts p;
	double net[2];

	(void)state;
	build(&p, DENSE, PLAN("sharding: ddp, parallel: {cp: 4}"), "torch-2.11-compile",
	      8);
	for (int gathered = 0; gathered < 2; gathered++) {
		const struct ft_segment *forward;

		p.stack->layout.context_parallel =
			gathered ? FT_CP_GATHERED_RING : FT_CP_RING;
		rebuild(&p);
		forward = segment_of(p.graph, "forward");
		net[gathered] = forward->net_bytes[FT_MEMORY_ACTIVATIONS];
		near_frac(forward->peak_bytes[FT_MEMORY_ACTIVATIONS], net[gathered],
			  1e-12);
	}
	near_frac(net[1] - net[0], 2. * S * KV, 1e-12);
	drop(&p);
}

/* Keys and values of the whole sequence, backward their gradients as well, for as long as a layer
 * runs. */
static void a_gathered_context_is_held(void **state)
{
	struct parts p;
	double back[3];

	(void)state;
	build(&p, DENSE, PLAN("sharding: ddp, parallel: {cp: 4}"), "megatron-core", 8);
	for (int i = 0; i < 3; i++) {
		static const enum ft_context_parallel way[] = { FT_CP_RING,
								FT_CP_ALL_GATHER,
								FT_CP_GATHERED_RING };
		const struct ft_segment *forward, *backward;
		bool gathered = i > 0;

		p.stack->layout.context_parallel = way[i];
		rebuild(&p);
		forward = segment_of(p.graph, "forward");
		backward = segment_of(p.graph, "backward");
		near_frac(forward->peak_bytes[FT_MEMORY_ACTIVATIONS] -
				  forward->net_bytes[FT_MEMORY_ACTIVATIONS],
			  gathered * 2. * S * KV, 1e-12);
		back[i] = backward->peak_bytes[FT_MEMORY_ACTIVATIONS];
	}
	near_frac(back[1] - back[0], 2 * 2. * S * KV, 1e-12);
	near_frac(back[2] - back[0], 2 * 2. * S * KV, 1e-12);
	drop(&p);
}

/* 16 heads of queries and 8 of keys and values: over 16 ranks the latter cannot be dealt. */
static void all_to_all_deals_heads_of_keys_too(void **state)
{
	(void)state;
	for (int cp = 8; cp <= 16; cp *= 2) {
		struct ft_error err;
		struct ft_graph *g;
		struct parts p;
		char plan[200];

		snprintf(plan, sizeof(plan), PLAN("sharding: ddp, parallel: {cp: %d}"),
			 cp);
		build(&p, DENSE, plan, "megatron-core", 16);
		p.stack->layout.context_parallel = FT_CP_ALL_TO_ALL;
		g = ft_graph_build(p.model, p.plan, p.stack, &err);
		assert_int_equal(g != NULL, cp == 8);
		assert_true(g || strstr(err.text, "the 8 key-value heads of a rank"));
		ft_graph_free(g);
		drop(&p);
	}
}

/* 36 layers of 16 key heads and 32 value heads of 128: q and k of 2,048 features, v and the gate of
 * 4,096, two numbers a value head, there, and 4,096 back; backward the other way. 16 ranks
 * cannot share them under tp 2. */
static void a_delta_rule_deals_its_heads_over_a_context_group(void **state)
{
	static const char model[] =
		"{name: qwen3-next-80b-a3b, num_nextn_predict_layers: 0}";
	double there = 2 * 2048 + 2 * 4096 + 64, back = 4096;
	struct ft_error err;
	struct parts p;

	(void)state;
	build(&p, model, PLAN("parallel: {cp: 2, ep: 8}"), "nemo-24", 8);
	/* 4 micro-batches of 2,048 tokens a rank, in 2 bytes */
	near_frac(sum_of(p.graph, "cp_all_to_all").bytes,
		  4 * 36 * 2 * (there + back) * (S / 2) * 2, 1e-12);
	drop(&p);
	build(&p, model, PLAN("parallel: {tp: 2, cp: 8}"), "nemo-24", 16);
	p.plan->cp = 16;
	assert_null(ft_graph_build(p.model, p.plan, p.stack, &err));
	assert_non_null(strstr(err.text, "the 8 key heads of a delta rule"));
	drop(&p);
}

static void adapters_may_have_a_way_of_their_own(void **state)
{
	struct parts p;

	(void)state;
	build(&p, DENSE, PLAN("sharding: ddp, lora: {rank: 8}, parallel: {cp: 2}"),
	      "mlperf-nemo-2025", 8);
	assert_true(sum_of(p.graph, "cp_all_to_all").n > 0);
	drop(&p);
	build(&p, DENSE, PLAN("sharding: ddp, parallel: {cp: 2}"), "mlperf-nemo-2025",
	      8);
	assert_true(sum_of(p.graph, "cp_all_to_all").n == 0);
	drop(&p);
}

/* Sixteen heads over tp 8: two for each rank, which a context group of four cannot share. */
static void heads_that_cannot_be_dealt_are_refused(void **state)
{
	struct parts p;
	struct ft_error err = { 0 };

	(void)state;
	build(&p, DENSE, PLAN("sharding: ddp, lora: {rank: 8}, parallel: {cp: 4}"),
	      "mlperf-nemo-2025", 16);
	p.plan->tp = 8;
	assert_null(ft_graph_build(p.model, p.plan, p.stack, &err));
	assert_non_null(strstr(err.text, "cp 4 does not divide the 2 heads"));
	drop(&p);
}

/* To DTensors attention is one operator, of however many blocks and merges: as many micro-batches take the host as long with a
 * context group as without one. */
static void a_ring_is_one_operator_of_dtensors(void **state)
{
	double times[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts p;

		build(&p, DENSE,
		      i ? "{sequence_length: 4096, global_batch_size: 4, "
			  "sharding: fsdp, parallel: {tp: 2, cp: 4}}" :
			  PLAN("sharding: fsdp, parallel: {tp: 2}"),
		      "torch-2.11-eager", 8);
		assert_int_equal(p.plan->micro_batches, 4);
		times[i] = host_times(p.graph, FT_HOST_TENSOR_OP);
		drop(&p);
	}
	assert_true(times[0] > 0);
	near_frac(times[1], times[0], 1e-12);
}

/* Blocks of a ring are those of a causal square cut in 2 cp pieces, or of a full one cut in cp; windows are not cut. */
static void a_ring_runs_a_causal_block_and_full_ones(void **state)
{
	const struct ft_work *w;
	struct parts p;
	int causal = 0, full = 0;

	(void)state;
	build(&p, DENSE, PLAN("sharding: ddp, parallel: {cp: 4}"), "megatron-core", 8);
	for (size_t i = 0; i < p.graph->n_works; i++) {
		w = &p.graph->work[i];
		if (w->kind != FT_ATTENTION || w->attention.pass != FT_PASS_FORWARD)
			continue;
		assert_int_equal(w->attention.queries, S / 4);
		assert_int_equal(w->attention.keys,
				 w->attention.causal ? S / 4 : S / 8);
		causal += w->attention.causal;
		full += !w->attention.causal;
	}
	assert_int_equal(causal, 1);
	assert_int_equal(full, 1);
	near_frac(sum_in(p.graph, "forward", "attention").n, 4. * LAYERS * 8, 1e-12);
	drop(&p);
	build(&p, "{name: llama3-8b, num_hidden_layers: 2, is_causal: false}",
	      PLAN("sharding: ddp, parallel: {cp: 4}"), "megatron-core", 8);
	w = work_of(p.graph, "attention");
	assert_int_equal(w->attention.queries, S / 4);
	assert_int_equal(w->attention.keys, S / 4);
	assert_false(w->attention.causal);
	near_frac(sum_in(p.graph, "forward", "attention").n, 4. * 2 * 8, 1e-12);
	drop(&p);
	build(&p, "{name: mistral-7b, num_hidden_layers: 2, sliding_window: 2048}",
	      PLAN("sharding: ddp, parallel: {cp: 4}"), "megatron-core", 8);
	near_frac(sum_in(p.graph, "forward", "attention").n, 2. * 8, 1e-12);
	drop(&p);
}

/* The graph's text; free it. */
static char *text_of(const struct ft_graph *g)
{
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	assert_non_null(out);
	ft_graph_write(g, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* Whoever sees a whole sequence runs what is run without a window, however the sequence is cut. */
static void a_window_of_the_whole_sequence_is_none(void **state)
{
	static const char *const windows[] = { "null", "4096", "8192", "4095" };

	(void)state;
	for (int i = 0; i < 2 * 4; i++) {
		char *of[4];

		for (int w = 0; w < 4; w++) {
			struct parts p;
			char model[100], plan[100];

			snprintf(model, sizeof(model),
				 "{name: mistral-7b, num_hidden_layers: 2, "
				 "sliding_window: %s}",
				 windows[w]);
			snprintf(plan, sizeof(plan),
				 PLAN("sharding: ddp, parallel: {cp: %d}"),
				 i / 4 ? 4 : 1);
			build(&p, model, plan, "megatron-core", 8);
			p.stack->layout.context_parallel = ways[i % 4];
			rebuild(&p);
			of[w] = text_of(p.graph);
			drop(&p);
		}
		assert_string_equal(of[1], of[0]);
		assert_string_equal(of[2], of[0]);
		assert_string_not_equal(of[3], of[0]);
		for (int w = 0; w < 4; w++)
			free(of[w]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_context_group_does_the_work_of_one_rank),
		cmocka_unit_test(a_context_group_exchanges_what_its_way_needs),
		cmocka_unit_test(a_gathered_ring_sends_gradients_round),
		cmocka_unit_test(a_context_of_all_ranks_takes_turns_with_shards),
		cmocka_unit_test(a_gathered_ring_merges_its_blocks),
		cmocka_unit_test(a_compiled_ring_keeps_what_it_gathered),
		cmocka_unit_test(a_gathered_context_is_held),
		cmocka_unit_test(all_to_all_deals_heads_of_keys_too),
		cmocka_unit_test(a_delta_rule_deals_its_heads_over_a_context_group),
		cmocka_unit_test(adapters_may_have_a_way_of_their_own),
		cmocka_unit_test(heads_that_cannot_be_dealt_are_refused),
		cmocka_unit_test(a_ring_is_one_operator_of_dtensors),
		cmocka_unit_test(a_ring_runs_a_causal_block_and_full_ones),
		cmocka_unit_test(a_window_of_the_whole_sequence_is_none),
	};

	return cmocka_run_group_tests_name("traces/context", tests, NULL, NULL);
}
