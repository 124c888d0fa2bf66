/* tests/test_short_conv.c - gated convolutions in place of attention (LFM2): layers, parameters, works, memory */
#include "tests/routed.h"

#define KEYS \
	"model_type: lfm2, hidden_size: 512, num_attention_heads: 8, " \
	"num_key_value_heads: 2, conv_L_cache: 3, block_ff_dim: 1500, vocab_size: 512"
#define CONVS(layers, more) "{" KEYS ", num_hidden_layers: " layers more "}"

enum { H = 512, F = 1024, TAPS = 3, TOKENS = 512, MICRO = 4 };

/* By number or by word; where neither is said all layers are attention, as in the class. */
static void which_layers_are_convolutions_is_said_in_two_ways(void **state)
{
	struct ft_model *numbers = model_from(CONVS("3", ", full_attn_idxs: [1]"));
	struct ft_model *words =
		model_from(CONVS("3", ", layer_types: [conv, full_attention, conv]"));
	struct ft_model *bare = model_from(CONVS("3", ""));

	(void)state;
	assert_memory_equal(numbers->layer, words->layer, 3 * sizeof(*words->layer));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(numbers->layer[i].short_conv, i != 1);
		assert_int_equal(numbers->layer[i].linear_heads, i != 1 ? H : 0);
		assert_int_equal(bare->layer[i].linear_heads, 0);
	}
	ft_model_free(bare);
	ft_model_free(words);
	ft_model_free(numbers);
}

/* Two thirds, times a factor, in whole blocks of 256 but where another is said; or as it is. */
static void widths_are_adjusted(void **state)
{
	static const struct {
		const char *keys;
		int width;
	} want[] = {
		{ "block_ff_dim: 1500", F },
		{ "intermediate_size: 1500", F },
		{ "block_ff_dim: 1500, intermediate_size: 6144", F },
		{ "block_ff_dim: 1500, block_ffn_dim_multiplier: 1.3", 1536 },
		{ "block_ff_dim: 1500, block_multiple_of: 1", 1000 },
		{ "block_ff_dim: 2", 256 },
		{ "block_ff_dim: 1500, block_auto_adjust_ff_dim: false", 1500 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		char text[400];
		struct ft_model *m;

		snprintf(text, sizeof(text),
			 "{model_type: lfm2, hidden_size: 512, num_hidden_layers: 1, "
			 "num_attention_heads: 8, vocab_size: 512, %s}",
			 want[i].keys);
		m = model_from(text);
		assert_int_equal(m->layer[0].intermediate, want[i].width);
		ft_model_free(m);
	}
}

/* Three numbers of each feature by one matrix, taps, a matrix out, two norms; an MLP. */
static void a_convolution_has_its_parameters(void **state)
{
	double matrices = 4. * H * H + 3. * H * F;
	struct ft_model *one = model_from(CONVS("1", ", layer_types: [conv]")),
			*two = model_from(CONVS("2", ", layer_types: [conv]"));

	(void)state;
	near_frac(ft_model_parameters(two) - ft_model_parameters(one),
		  matrices + (double)TAPS * H + 2. * H, 1e-12);
	near_frac(ft_model_flop_per_token(two, 1, 4096, true) -
			  ft_model_flop_per_token(one, 1, 4096, true),
		  6 * (matrices + (double)TAPS * H), 1e-12);
	ft_model_free(two);
	ft_model_free(one);
}

/* Bytes of a feature, by stack: the gates and the convolution, forward and backward. */
static void its_kernels_touch_features(void **state)
{
	static const struct {
		const char *stack;
		int tp, sequences;
		double gate, conv, gate_back, conv_back;
	} want[] = {
		/* two inputs and an output each; one of each; backward two of three and both gradients, twice; */
		{ "megatron-core", 1, 1, 12, 4, 20, 8 },
		{ "megatron-core", 4, 1, 12, 4, 20, 8 },
		/* and both products again; each tap reads all */
		{ "transformers-5-compile", 1, 1, 12, 4, 32, 4 + 4 * TAPS },
		/* turned inputs count thrice */
		{ "transformers-5-eager", 1, 1, 6 + 14, 12 + 4, 14 + 6 + 14 + 14 + 20,
		  14 + 4 + 4 * TAPS },
		{ "transformers-5-eager", 1, 2, 6 + 14, 12 + 4,
		  14 + 6 + 14 + 14 + 20 + 36, 14 + 4 + 4 * TAPS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		char plan[200];
		double passes = (double)MICRO * want[i].tp / want[i].sequences;
		double features = (double)TOKENS * want[i].sequences * H / want[i].tp;
		struct parts p;

		snprintf(plan, sizeof(plan),
			 "{sequence_length: 512, global_batch_size: 32, sharding: ddp, "
			 "micro_batch_size: %d, sequence_parallel: true, "
			 "parallel: {tp: %d}}",
			 want[i].sequences, want[i].tp);
		build(&p, CONVS("1", ", layer_types: [conv]"), plan, want[i].stack, 8);
		near_frac(sum_of(p.graph, "conv_gate").bytes,
			  passes * want[i].gate * features, 1e-12);
		near_frac(sum_of(p.graph, "short_conv").bytes,
			  passes * want[i].conv * features, 1e-12);
		near_frac(sum_of(p.graph, "conv_gate_back").bytes,
			  passes * want[i].gate_back * features, 1e-12);
		near_frac(sum_of(p.graph, "short_conv_back").bytes,
			  passes * want[i].conv_back * features, 1e-12);
		near_frac(sum_of(p.graph, "conv_in").flop,
			  passes * 6 * 3 * H * features, 1e-12);
		near_frac(sum_of(p.graph, "attention_out").flop,
			  passes * 6 * H * features, 1e-12);
		assert_int_equal(sum_of(p.graph, "attention").n, 0);
		assert_int_equal(sum_of(p.graph, "rope").n, 0);
		drop(&p);
	}
}

/* What a layer keeps a token beyond one with the same MLP and attention's products: its own numbers. */
static void a_convolution_keeps_what_its_gradients_need(void **state)
{
	static const struct {
		const char *stack;
		double each;
	} want[] = {
		/* b, c and x; what the convolution takes and gives, the product's input: 2 bytes each */
		{ "megatron-core", 6 + 6 },
		/* what the convolution gives alone */
		{ "transformers-5-compile", 6 + 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		double mlp = 6. * F, sums = 4. * H, norms = 4. * H;
		struct parts p;

		build(&p, CONVS("1", ", layer_types: [conv]"), PLAN("optimizer: adam"),
		      want[i].stack, 8);
		near_frac(segment_of(p.graph, "forward")
				  ->net_bytes[FT_MEMORY_ACTIVATIONS],
			  TOKENS * (mlp + sums + norms + want[i].each * H), 1e-12);
		drop(&p);
	}
}

/* Run again whole: all products, and 2 FLOP a tap. */
static void a_convolution_runs_again(void **state)
{
	double tokens = TOKENS * (double)MICRO;
	struct parts p;

	(void)state;
	build(&p, CONVS("1", ", layer_types: [conv]"), PLAN("recompute: full"),
	      "transformers-5-compile", 8);
	near_frac(p.graph->recomputed_flop_per_rank,
		  tokens * 2 * (4. * H * H + 3. * H * F + (double)TAPS * H), 1e-12);
	assert_int_equal(sum_of(p.graph, "short_conv").n, 2 * MICRO);
	drop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_layers_are_convolutions_is_said_in_two_ways),
		cmocka_unit_test(widths_are_adjusted),
		cmocka_unit_test(a_convolution_has_its_parameters),
		cmocka_unit_test(its_kernels_touch_features),
		cmocka_unit_test(a_convolution_keeps_what_its_gradients_need),
		cmocka_unit_test(a_convolution_runs_again),
	};

	return cmocka_run_group_tests_name("traces/short-conv", tests, NULL, NULL);
}
