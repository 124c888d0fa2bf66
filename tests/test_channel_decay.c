/* tests/test_channel_decay.c - Kimi's delta rule, with a decay of each channel, beside latent attention: layers, parameters,
 * works, memory */
#include "tests/routed.h"

#define KEYS(layers) \
	"model_type: kimi_linear, hidden_size: 512, num_hidden_layers: " layers ", " \
	"num_attention_heads: 8, kv_lora_rank: 128, qk_nope_head_dim: 64, " \
	"qk_rope_head_dim: 32, v_head_dim: 64, linear_num_key_heads: 16, " \
	"linear_key_head_dim: 32, linear_conv_kernel_dim: 4, intermediate_size: 1024, " \
	"first_k_dense_replace: " layers \
	", num_experts: 8, num_experts_per_token: 2, " \
	"moe_intermediate_size: 256, vocab_size: 512"
#define MODEL(layers, more) "{" KEYS(layers) more "}"

enum {
	H = 512,
	F = 1024,
	HEADS = 16,
	WIDE = 32,
	INNER = HEADS * WIDE,
	TAPS = 4,
	TOKENS = 512,
	MICRO = 4
};

/* Counted from one, by a list; else one in four; or by words. */
static void which_layers_attend_is_said_in_three_ways(void **state)
{
	struct ft_model *listed = model_from(MODEL("5", ", full_attn_layers: [4]"));
	struct ft_model *custom = model_from(MODEL("5", ""));
	struct ft_model *words = model_from(MODEL(
		"5", ", layer_types: [kda_attention, linear_attention, kda_attention, "
		     "full_attention, kda_attention]"));
	struct ft_model *last = model_from(MODEL("5", ", full_attn_layers: [4, 5]"));

	(void)state;
	for (int i = 0; i < 5; i++) {
		const struct ft_layer *l = &listed->layer[i];

		assert_int_equal(l->linear_rank, i == 3 ? 0 : WIDE);
		assert_int_equal(l->linear_heads, i == 3 ? 0 : HEADS);
		assert_int_equal(l->kv_lora_rank, i == 3 ? 128 : 0);
	}
	assert_int_equal(last->layer[4].kv_lora_rank, 128);
	assert_int_equal(listed->positions, FT_NO_POSITIONS);
	assert_memory_equal(listed->layer, custom->layer, 5 * sizeof(*custom->layer));
	assert_memory_equal(listed->layer, words->layer, 5 * sizeof(*custom->layer));
	ft_model_free(last);
	ft_model_free(words);
	ft_model_free(custom);
	ft_model_free(listed);
}

/* q, k, v and the output; gate and decay through a rank as wide as a head; a rate a head; taps; a number a head and one a
 * channel; three norms. */
static void a_layer_has_its_parameters(void **state)
{
	double matrices = 4. * H * INNER + 2. * (H * WIDE + WIDE * INNER) + H * HEADS;
	double others = 3. * INNER * TAPS + HEADS + INNER + WIDE + 2. * H;
	struct ft_model *one = model_from(MODEL("1", "")),
			*two = model_from(MODEL("2", ""));

	(void)state;
	near_frac(ft_model_parameters(two) - ft_model_parameters(one),
		  matrices + others + 3. * H * F, 1e-12);
	/* 8 FLOP a number of the state, three times */
	near_frac(ft_model_flop_per_token(two, 1, 4096, true) -
			  ft_model_flop_per_token(one, 1, 4096, true),
		  6 * (matrices + 3. * H * F + 3. * INNER * TAPS) +
			  3 * 8. * INNER * WIDE,
		  1e-12);
	/* low ranks and norms in front of the halves are whole on each rank */
	near_frac(ft_layer_rank_parameters(two, 0, 4),
		  (matrices - 2. * H * WIDE + 3. * H * F + others - WIDE - 2. * H) / 4 +
			  2. * H * WIDE + WIDE + 2. * H,
		  1e-12);
	ft_model_free(two);
	ft_model_free(one);
}

/* Products, and 20 and 50 bytes a decay; in the class's own operations 30 and 42 more. */
static void its_works_are_counted(void **state)
{
	static const struct {
		const char *stack;
		int tp;
		double forward, backward;
	} want[] = {
		{ "megatron-core", 1, 20, 50 },
		{ "megatron-core", 4, 20, 50 },
		{ "transformers-5-compile", 1, 20, 50 },
		{ "transformers-5-eager", 1, 20 + 30, 50 + 42 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		double tp = want[i].tp, passes = MICRO * tp, tokens = TOKENS;
		char plan[200];
		struct parts p;

		snprintf(plan, sizeof(plan),
			 "{sequence_length: 512, global_batch_size: 32, sharding: ddp, "
			 "sequence_parallel: true, parallel: {tp: %d}}",
			 want[i].tp);
		build(&p, MODEL("1", ""), plan, want[i].stack, 8);
		near_frac(sum_of(p.graph, "delta_in").flop,
			  passes * 6 * tokens * 3 * INNER / tp * H, 1e-12);
		near_frac(sum_of(p.graph, "delta_rates").flop,
			  passes * 6 * tokens * HEADS / tp * H, 1e-12);
		near_frac(sum_of(p.graph, "delta_down").flop,
			  passes * 6 * tokens * 2 * WIDE * H, 1e-12);
		near_frac(sum_of(p.graph, "delta_up").flop,
			  passes * 6 * tokens * 2 * INNER / tp * WIDE, 1e-12);
		near_frac(sum_of(p.graph, "attention_out").flop,
			  passes * 6 * tokens * H * INNER / tp, 1e-12);
		near_frac(sum_of(p.graph, "delta_decay").bytes,
			  passes * want[i].forward * tokens * INNER / tp, 1e-12);
		near_frac(sum_of(p.graph, "delta_decay_back").bytes,
			  passes * want[i].backward * tokens * INNER / tp, 1e-12);
		assert_int_equal(sum_of(p.graph, "rope").n, 0);
		drop(&p);
	}
}

/* A layer of a gated delta rule as wide keeps no decay of a channel, no latents, and one square of a chunk a head less. */
static void it_keeps_decays_and_latents(void **state)
{
	static const char *const plain =
		"{model_type: qwen3_5_text, hidden_size: 512, num_hidden_layers: 1, "
		"num_attention_heads: 8, linear_num_key_heads: 16, "
		"linear_num_value_heads: 16, linear_key_head_dim: 32, "
		"linear_value_head_dim: 32, linear_conv_kernel_dim: 4, "
		"intermediate_size: 1024, vocab_size: 512}";
	static const struct {
		const char *stack;
		double decay;
	} want[] = { { "megatron-core", 2 },
		     { "transformers-5-compile", 2 },
		     { "transformers-5-eager", 12 } };

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		struct parts p, q;
		double more;

		build(&p, MODEL("1", ""), PLAN(""), want[i].stack, 8);
		build(&q, plain, PLAN(""), want[i].stack, 8);
		more = segment_of(p.graph, "forward")
			       ->net_bytes[FT_MEMORY_ACTIVATIONS] -
		       segment_of(q.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS];
		near_frac(more,
			  TOKENS * (want[i].decay * INNER + 2. * 2 * WIDE +
				    2. * 64 * HEADS),
			  1e-12);
		drop(&q);
		drop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_layers_attend_is_said_in_three_ways),
		cmocka_unit_test(a_layer_has_its_parameters),
		cmocka_unit_test(its_works_are_counted),
		cmocka_unit_test(it_keeps_decays_and_latents),
	};

	return cmocka_run_group_tests_name("traces/channel-decay", tests, NULL, NULL);
}
