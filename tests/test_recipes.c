/* tests/test_recipes.c - unfused softmax, groups of optimizer state, buckets, Muon */
#include <math.h>

#include "tests/works.h"

#define DENSE \
	"{model_type: llama, hidden_size: 1024, num_hidden_layers: 4, " \
	"num_attention_heads: 16, num_key_value_heads: 8, vocab_size: 1024, " \
	"intermediate_size: 3072}"
#define PLAN(more) "{sequence_length: 4096, global_batch_size: 16, " more "}"

enum { S = 4096, H = 1024, Q = 1024, KV = 2 * 512, LAYERS = 4 };

/* ---- unfused attention ------------------------------------------------------- */

static void a_softmax_moves_what_its_kernels_touch(void **state)
{
	static const struct {
		const char *heads, *more;
		bool fused, narrow, causal;
		double forward, backward; /* bytes a score */
	} cases[] = {
		{ "16", "micro_batch_size: 1", true, false, true, 3, 4 },
		{ "16", "micro_batch_size: 1", true, true, true, 3, 4 },
		{ "16", "micro_batch_size: 1", true, false, false, 4, 6 },
		{ "16", "micro_batch_size: 1", false, false, true, 37, 32 },
		/* each of four kernels reads and writes two bytes; backward one has two inputs */
		{ "16", "micro_batch_size: 1", false, true, true, 4 * 4, 4 * 4 + 2 },
		/* 16 / 8 heads of a sequence are no multiple of 4; of two they are */
		{ "16", "micro_batch_size: 1, parallel: {tp: 8}", true, false, true, 37,
		  32 },
		{ "16", "micro_batch_size: 2, parallel: {tp: 8}", true, false, true, 3,
		  4 },
		/* rows longer than 16,384 */
		{ "16", "micro_batch_size: 1, sequence_length: 32768", true, false,
		  true, 37, 32 },
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
		p.stack->layout.narrow_softmax = cases[i].narrow;
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
		double n, over = i / 2 ? 8 : 1, width = master ? 4 : 2, adam_bytes,
			  matrices;
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
		matrices = ft_model_matrix_parameters(muon.model) / over;
		assert_true(sum_of(muon.graph, "newton_schulz").n > 0);
		assert_true(sum_of(adam.graph, "newton_schulz").n == 0);
		near_frac(adam.graph->rank_class[0].base_bytes[FT_MEMORY_OPTIMIZER] -
				  muon.graph->rank_class[0]
					  .base_bytes[FT_MEMORY_OPTIMIZER],
			  width * matrices, 1e-9);
		/* what Muon updates is not Adam's */
		adam_bytes = sum_of(adam.graph, "adam").bytes;
		near_frac(sum_of(muon.graph, "adam").bytes / adam_bytes,
			  (n - matrices) / n, 1e-9);
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
		cmocka_unit_test(a_softmax_moves_what_its_kernels_touch),
		cmocka_unit_test(groups_of_optimizer_state_hold_a_part_each),
		cmocka_unit_test(buckets_close_at_40_million_or_a_million_a_replica),
		cmocka_unit_test(muon_multiplies_more_and_keeps_less),
	};

	return cmocka_run_group_tests_name("traces/recipes", tests, NULL, NULL);
}
