/* tests/test_recipes.c - context groups, unfused softmax, groups of optimizer state, buckets, Muon */
#include <math.h>

#include "tests/works.h"

#define DENSE \
	"{model_type: llama, hidden_size: 1024, num_hidden_layers: 4, " \
	"num_attention_heads: 16, num_key_value_heads: 8, vocab_size: 1024, " \
	"intermediate_size: 3072}"
#define PLAN(more) "{sequence_length: 4096, global_batch_size: 16, " more "}"

enum { S = 4096, H = 1024, Q = 1024, KV = 2 * 512, LAYERS = 4 };

/* ---- context parallelism --------------------------------------------------- */

static const enum ft_context_parallel ways[] = { FT_CP_RING, FT_CP_ALL_GATHER,
						 FT_CP_ALL_TO_ALL };

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
	for (int i = 0; i < 2 * 3 * 3; i++) {
		int cp = 2 << i / 3 % 3;
		struct parts one, cut;
		char plan[200];

		build(&one, models[i / 9], PLAN("sharding: ddp"), "megatron-core", 8);
		snprintf(plan, sizeof(plan), PLAN("sharding: ddp, parallel: {cp: %d}"),
			 cp);
		build(&cut, models[i / 9], plan, "megatron-core", 8);
		cut.stack->layout.context_parallel = ways[i % 3];
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

/* Keys and values of the whole sequence, backward their gradients as well, for as long as a layer
 * runs. */
static void a_gathered_context_is_held(void **state)
{
	struct parts p;
	double back[2];

	(void)state;
	build(&p, DENSE, PLAN("sharding: ddp, parallel: {cp: 4}"), "megatron-core", 8);
	for (int gathered = 0; gathered < 2; gathered++) {
		const struct ft_segment *forward, *backward;

		p.stack->layout.context_parallel =
			gathered ? FT_CP_ALL_GATHER : FT_CP_RING;
		rebuild(&p);
		forward = segment_of(p.graph, "forward");
		backward = segment_of(p.graph, "backward");
		near_frac(forward->peak_bytes[FT_MEMORY_ACTIVATIONS] -
				  forward->net_bytes[FT_MEMORY_ACTIVATIONS],
			  gathered * 2. * S * KV, 1e-12);
		back[gathered] = backward->peak_bytes[FT_MEMORY_ACTIVATIONS];
	}
	near_frac(back[1] - back[0], 2 * 2. * S * KV, 1e-12);
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

/* Blocks of a ring are those of a causal square cut in 2 cp pieces; windows are not cut. */
static void a_ring_runs_a_causal_block_and_full_ones(void **state)
{
	struct parts p;
	int causal = 0, full = 0;

	(void)state;
	build(&p, DENSE, PLAN("sharding: ddp, parallel: {cp: 4}"), "megatron-core", 8);
	for (size_t i = 0; i < p.graph->n_works; i++) {
		const struct ft_work *w = &p.graph->work[i];

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
	build(&p, "{name: mistral-7b, num_hidden_layers: 2}",
	      PLAN("sharding: ddp, parallel: {cp: 4}"), "megatron-core", 8);
	near_frac(sum_in(p.graph, "forward", "attention").n, 2. * 8, 1e-12);
	drop(&p);
}

/* ---- unfused attention ------------------------------------------------------- */

static void a_softmax_moves_what_its_kernels_touch(void **state)
{
	static const struct {
		const char *heads, *more;
		bool fused, causal;
		double forward, backward; /* bytes a score */
	} cases[] = {
		{ "16", "micro_batch_size: 1", true, true, 3, 4 },
		{ "16", "micro_batch_size: 1", true, false, 4, 6 },
		{ "16", "micro_batch_size: 1", false, true, 37, 32 },
		/* 16 / 8 heads of a sequence are no multiple of 4; of two they are */
		{ "16", "micro_batch_size: 1, parallel: {tp: 8}", true, true, 37, 32 },
		{ "16", "micro_batch_size: 2, parallel: {tp: 8}", true, true, 3, 4 },
		/* rows longer than 16,384 */
		{ "16", "micro_batch_size: 1, sequence_length: 32768", true, true, 37,
		  32 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool wide = strstr(cases[i].more, "sequence") != NULL;
		double scores, s = wide ? 32768 : S;
		char model[300], plan[200];
		struct parts p;

		snprintf(model, sizeof(model),
			 "{model_type: llama, hidden_size: 1024, num_hidden_layers: 1, "
			 "num_attention_heads: %s, vocab_size: 1024, "
			 "intermediate_size: 3072, is_causal: %s}",
			 cases[i].heads, cases[i].causal ? "true" : "false");
		snprintf(plan, sizeof(plan),
			 "{global_batch_size: 16, sharding: ddp, %s%s}",
			 wide ? "" : "sequence_length: 4096, ", cases[i].more);
		build(&p, model, plan, "megatron-lm-2022", 8);
		p.stack->layout.fused_softmax = cases[i].fused;
		rebuild(&p);
		scores = s * s * 16 * 16 / 8;
		near_frac(sum_in(p.graph, "forward", "softmax").bytes,
			  cases[i].forward * scores, 1e-12);
		near_frac(sum_in(p.graph, "backward", "softmax").bytes,
			  cases[i].backward * scores, 1e-12);
		drop(&p);
	}
}

/* ---- optimizer state and gradients ------------------------------------------- */

static void groups_of_optimizer_state_hold_a_part_each(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * 4; i++) {
		int each = 1 << i / 2;
		const char *sharding = i % 2 ? "zero1" : "zero2";
		const struct ft_class *c;
		struct parts p;
		char plan[300];
		double n, times;

		snprintf(plan, sizeof(plan),
			 PLAN("sharding: %s, zero_group: %d, gradient_dtype: fp32"),
			 sharding, each);
		build(&p, DENSE, plan, "megatron-core", 8);
		c = &p.graph->rank_class[0];
		n = ft_model_parameters(p.model);
		assert_int_equal(p.graph->group[FT_GROUP_SHARD].size, each);
		assert_int_equal(p.graph->group[FT_GROUP_REPLICA].size, 8 / each);
		near_frac(c->base_bytes[FT_MEMORY_OPTIMIZER], 12 * n / each, 1e-9);
		/* and a stand-in of a layer's shapes in 16 bit */
		near_frac(c->base_bytes[FT_MEMORY_GRADIENTS],
			  4 * n / (i % 2 ? 1 : each) +
				  2 * ft_layer_rank_parameters(p.model, 0, 1),
			  1e-9);
		/* each part is summed within a group, then over the groups' copies; zero2, which
		 * keeps parts alone, does so for each micro-batch, and adds up the parts */
		times = i % 2 ? 1 : (double)p.plan->micro_batches;
		near_frac(sum_of(p.graph, "gradient_reduce").bytes,
			  each > 1 ? 4 * n * times : 0, 1e-9);
		near_frac(sum_of(p.graph, "gradient_copies").bytes,
			  each < 8 ? 4 * n / each * times : 0, 1e-9);
		near_frac(sum_of(p.graph, "accumulate").bytes,
			  3 * 4 * n / each * (times - 1), 1e-9);
		near_frac(sum_of(p.graph, "zero_gather").bytes, each > 1 ? 2 * n : 0,
			  1e-9);
		drop(&p);
	}
}

/* Reductions of a layer's gradients: one for each bucket of layers. */
static void buckets_close_at_40_million_or_a_million_a_replica(void **state)
{
	static const struct {
		const char *model;
		int ranks, tp;
	} cases[] = {
		{ DENSE, 8, 1 },	 { "llama3-8b", 8, 1 },
		{ "llama3-8b", 16, 8 },	 { "llama3-8b", 64, 8 },
		{ "llama3-8b", 512, 2 }, { "llama3-8b", 4096, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double held, most, each, n;
		struct parts p;
		char plan[200];

		snprintf(
			plan, sizeof(plan),
			"{sequence_length: 4096, global_batch_size: %d, sharding: ddp, "
			"gradient_dtype: bf16, parallel: {tp: %d}}",
			cases[i].ranks, cases[i].tp);
		build(&p, cases[i].model, plan, "megatron-core", cases[i].ranks);
		most = cases[i].ranks / cases[i].tp > 40 ?
			       1e6 * cases[i].ranks / cases[i].tp :
			       40e6;
		held = (ft_layer_attention_parameters(p.model, 0) +
			ft_layer_dense_parameters(p.model, 0)) /
			       cases[i].tp +
		       ft_layer_norm_parameters(p.model, 0);
		each = ceil(most / held);
		n = ceil((double)p.model->n_layers / each);
		near_frac(sum_in(p.graph, "backward", "gradient_reduce").n, n, 1e-12);
		near_frac(sum_in(p.graph, "backward", "gradient_reduce").bytes,
			  2 * held * (double)p.model->n_layers, 1e-9);
		p.stack->layout.bucket_bytes = 2 * held * 2.5; /* a stack's own */
		rebuild(&p);
		near_frac(sum_in(p.graph, "backward", "gradient_reduce").n,
			  ceil((double)p.model->n_layers / 2), 1e-12);
		for (int less = 0; less < 2;
		     less++) { /* two layers to the byte, or not */
			p.stack->layout.bucket_bytes = 2 * 2 * held - less;
			rebuild(&p);
			near_frac(sum_in(p.graph, "backward", "gradient_reduce").n,
				  ceil((double)p.model->n_layers / (2 - less)), 1e-12);
		}
		drop(&p);
	}
}

/* Five steps of 4 n n m for each n x m matrix: 20 n a parameter. One moment, not two. */
static void muon_multiplies_more_and_keeps_less(void **state)
{
	static const char *const shardings[] = { "ddp", "zero1", "fsdp" };

	(void)state;
	for (int i = 0; i < 3 * 2; i++) {
		bool master = i % 2;
		double n, over = i / 2 ? 8 : 1, width = master ? 4 : 2, adam_bytes;
		struct parts adam, muon;
		char plan[2][300];

		for (int k = 0; k < 2; k++)
			snprintf(plan[k], sizeof(plan[k]),
				 PLAN("sharding: %s, master_weights: %s, "
				      "gradient_dtype: bf16, optimizer: %s"),
				 shardings[i / 2], master ? "true" : "false",
				 k ? "muon" : "adam");
		build(&adam, DENSE, plan[0], "megatron-core", 8);
		build(&muon, DENSE, plan[1], "megatron-core", 8);
		n = ft_model_parameters(muon.model) / over;
		near_frac(sum_of(muon.graph, "newton_schulz").flop, 20. * H * n, 1e-3);
		assert_true(sum_of(adam.graph, "newton_schulz").n == 0);
		near_frac(adam.graph->rank_class[0].base_bytes[FT_MEMORY_OPTIMIZER] -
				  muon.graph->rank_class[0]
					  .base_bytes[FT_MEMORY_OPTIMIZER],
			  width * n, 1e-9);
		/* a moment less to read and to write */
		adam_bytes = sum_of(adam.graph, "adam").bytes;
		near_frac(adam_bytes - sum_of(muon.graph, "adam").bytes, 2 * width * n,
			  1e-9);
		near_frac(adam_bytes, n * (!master ? 14 : i / 2 == 2 ? 28 : 30), 1e-9);
		drop(&adam);
		drop(&muon);
	}
}

/* Biases of attention's products are none of a delta rule's: where all layers are such, nothing is
 * summed up for them. */
static void a_delta_rule_has_no_biases(void **state)
{
	static const char *const kinds[] = { "linear_attention", "full_attention" };

	(void)state;
	for (int full = 0; full < 2; full++) {
		struct parts p;
		char model[200];

		snprintf(model, sizeof(model),
			 "{name: qwen3-next-80b-a3b, attention_bias: true, "
			 "layer_types: [%s]}",
			 kinds[full]);
		build(&p, model,
		      "{sequence_length: 4096, global_batch_size: 8, parallel: {ep: "
		      "8}}",
		      "nemo-24", 8);
		assert_int_equal(sum_of(p.graph, "bias_gradient").n > 0, full);
		drop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_delta_rule_has_no_biases),
		cmocka_unit_test(a_context_group_does_the_work_of_one_rank),
		cmocka_unit_test(a_context_group_exchanges_what_its_way_needs),
		cmocka_unit_test(a_gathered_context_is_held),
		cmocka_unit_test(all_to_all_deals_heads_of_keys_too),
		cmocka_unit_test(a_delta_rule_deals_its_heads_over_a_context_group),
		cmocka_unit_test(adapters_may_have_a_way_of_their_own),
		cmocka_unit_test(heads_that_cannot_be_dealt_are_refused),
		cmocka_unit_test(a_ring_runs_a_causal_block_and_full_ones),
		cmocka_unit_test(a_softmax_moves_what_its_kernels_touch),
		cmocka_unit_test(groups_of_optimizer_state_hold_a_part_each),
		cmocka_unit_test(buckets_close_at_40_million_or_a_million_a_replica),
		cmocka_unit_test(muon_multiplies_more_and_keeps_less),
	};

	return cmocka_run_group_tests_name("traces/recipes", tests, NULL, NULL);
}
