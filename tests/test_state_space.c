/* tests/test_state_space.c - layers that are a state space, attention or an MLP alone: blocks, works, memory, FLOPs */
#include "tests/routed.h"

#define HYBRID_KEYS(layers, pattern) \
	"hidden_size: 512, num_hidden_layers: " layers ", " \
	"hybrid_override_pattern: '" pattern "', num_attention_heads: 8, " \
	"num_key_value_heads: 2, head_dim: 64, mamba_num_heads: 16, mamba_head_dim: 32, " \
	"ssm_state_size: 64, n_groups: 4, conv_kernel: 4, chunk_size: 128, vocab_size: 512, " \
	"intermediate_size: 1024, n_routed_experts: 16, num_experts_per_tok: 4, " \
	"moe_intermediate_size: 256, mlp_hidden_act: relu2"
#define HYBRID(layers, pattern) \
	"{model_type: nemotron_h, " HYBRID_KEYS(layers, pattern) "}"

enum {
	H = 512,
	HEADS = 16,
	P = 32,
	N = 64,
	GROUPS = 4,
	CHUNK = 128,
	INNER = HEADS * P
};

/* An MLP joins what stands before it; what has none is a block all the same. */
static void layers_of_halves_become_blocks(void **state)
{
	struct ft_model *m = model_from(HYBRID("5", "M*-ME")), *cut, *words;

	(void)state;
	assert_int_equal(m->n_layers, 3);
	assert_true(m->layer[0].state_chunk == CHUNK &&
		    !ft_layer_has_mlp(&m->layer[0]));
	assert_true(!m->layer[1].linear_heads && m->layer[1].intermediate == 1024);
	assert_true(m->layer[2].linear_heads == HEADS && m->layer[2].experts == 16 &&
		    !m->layer[2].intermediate);
	assert_int_equal(ft_layer_norms(m, &m->layer[0]), 1);
	assert_int_equal(ft_layer_norms(m, &m->layer[1]), 2);
	/* the same in words */
	cut = model_from(HYBRID("3", "M*-"));
	assert_int_equal(cut->n_layers, 2);
	words = model_from(
		"{model_type: nemotron_h, hidden_size: 512, num_hidden_layers: 3, "
		"layers_block_type: [mamba, attention, mlp], "
		"num_attention_heads: 8, num_key_value_heads: 2, head_dim: 64, "
		"mamba_num_heads: 16, mamba_head_dim: 32, ssm_state_size: 64, "
		"n_groups: 4, conv_kernel: 4, chunk_size: 128, vocab_size: 512, "
		"intermediate_size: 1024}");
	assert_memory_equal(cut->layer, words->layer, 2 * sizeof(*cut->layer));
	ft_model_free(words);
	ft_model_free(cut);
	ft_model_free(m);
}

#define LISTED(layers, more) \
	"{model_type: bamba, hidden_size: 512, num_hidden_layers: " layers ", " \
	"num_attention_heads: 8, num_key_value_heads: 2, mamba_n_heads: 16, " \
	"mamba_d_head: 32, mamba_d_state: 64, mamba_n_groups: 4, mamba_d_conv: 4, " \
	"mamba_chunk_size: 128, intermediate_size: 1024, vocab_size: 512" more "}"

/* Attention by number or by word; without either there is none. The layers are those of a pattern. */
static void which_layers_are_state_spaces_is_said_in_three_ways(void **state)
{
	struct ft_model *numbers =
		model_from(LISTED("4", ", attn_layer_indices: [1, 3]"));
	struct ft_model *words = model_from(
		LISTED("4", ", layer_types: [mamba, attention, mamba, attention]"));
	struct ft_model *pattern = model_from(HYBRID("8", "M-*-M-*-"));
	struct ft_model *bare = model_from(LISTED("4", ""));

	(void)state;
	assert_memory_equal(numbers->layer, words->layer, 4 * sizeof(*words->layer));
	assert_memory_equal(numbers->layer, pattern->layer, 4 * sizeof(*words->layer));
	for (int i = 0; i < 4; i++)
		assert_int_equal(bare->layer[i].linear_heads, HEADS);
	ft_model_free(bare);
	ft_model_free(pattern);
	ft_model_free(words);
	ft_model_free(numbers);
}

/* State spaces alone are a hybrid without attention, under the names of their own class. */
static void state_spaces_may_stand_alone(void **state)
{
	struct ft_model *alone = model_from(
		"{model_type: mamba2, hidden_size: 512, num_hidden_layers: 3, "
		"num_heads: 16, head_dim: 32, state_size: 64, n_groups: 4, "
		"conv_kernel: 4, chunk_size: 128, vocab_size: 512}");
	struct ft_model *hybrid = model_from(HYBRID("3", "MMM"));

	(void)state;
	assert_int_equal(alone->positions, FT_NO_POSITIONS);
	near_frac(ft_model_parameters(alone), ft_model_parameters(hybrid), 1e-12);
	for (int i = 0; i < 3; i++) {
		struct ft_layer *a = &alone->layer[i], *h = &hybrid->layer[i];

		assert_false(ft_layer_has_mlp(a));
		h->heads = h->kv_heads = HEADS; /* of what it has no layer of */
		h->qk_head_dim = h->v_head_dim = P;
		assert_memory_equal(a, h, sizeof(*a));
	}
	ft_model_free(hybrid);
	ft_model_free(alone);
}

/* Two kinds of states in one model: each has what its own kind has. */
static void state_spaces_and_delta_rules_may_take_turns(void **state)
{
	struct ft_model *m = model_from(
		LISTED("3", ", layer_types: [linear_attention, mamba, attention]"));

	(void)state;
	assert_int_equal(m->layer[0].linear_heads, HEADS);
	assert_int_equal(m->layer[0].state_chunk, 0);
	assert_int_equal(m->layer[1].state_chunk, CHUNK);
	assert_int_equal(m->layer[2].linear_heads, 0);
	ft_model_free(m);
}

#define GRANITE(experts) \
	"{model_type: granitemoehybrid, hidden_size: 512, num_hidden_layers: 2, " \
	"layer_types: [attention, mamba], num_attention_heads: 8, " \
	"num_key_value_heads: 2, mamba_n_heads: 16, mamba_d_head: 32, " \
	"mamba_d_state: 64, mamba_n_groups: 4, mamba_d_conv: 4, mamba_chunk_size: 128, " \
	"intermediate_size: 256, shared_intermediate_size: 1024, vocab_size: 512, " \
	"num_experts_per_tok: 2, num_local_experts: " experts "}"

/* Without experts, what they share is the MLP. */
static void no_experts_leave_the_shared_mlp(void **state)
{
	struct ft_model *some = model_from(GRANITE("8")),
			*none = model_from(GRANITE("0"));

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(some->layer[i].experts, 8);
		assert_int_equal(some->layer[i].shared_intermediate, 1024);
		assert_int_equal(none->layer[i].experts, 0);
		assert_int_equal(none->layer[i].intermediate, 1024);
	}
	/* eight experts of three matrices, and a router, a layer */
	near_frac(ft_model_parameters(some) - ft_model_parameters(none),
		  2 * (8 * 3. * 512 * 256 + 8 * 512), 1e-12);
	ft_model_free(none);
	ft_model_free(some);
}

/* Layers of predicted tokens are like a layer that a pattern pictures, which need not be the last. */
static void predicted_tokens_may_be_like_another_layer(void **state)
{
	struct ft_model *last = model_from("{model_type: nemotron_h, " HYBRID_KEYS(
		"4", "*EME") ", num_nextn_predict_layers: 1}");
	struct ft_model *first = model_from("{model_type: nemotron_h, " HYBRID_KEYS(
		"4",
		"*EME") ", num_nextn_predict_layers: 1, mtp_hybrid_override_pattern: '*E'}");

	(void)state;
	assert_int_equal(last->predicted_like, 1);
	assert_int_equal(first->predicted_like, 0);
	near_frac(ft_model_predicted_parameters(first, false) -
			  ft_model_predicted_parameters(last, false),
		  ft_layer_attention_parameters(first, 0) -
			  ft_layer_attention_parameters(first, 1) - INNER,
		  1e-12);
	ft_model_free(first);
	ft_model_free(last);
}

/* Routed experts in a space of their own: narrower products, exchanges and copies; a projection in and one out. */
static void latent_experts_are_smaller_and_projected(void **state)
{
	static const char *const latent = "{model_type: nemotron_h, " HYBRID_KEYS(
		"2", "*E") ", moe_latent_size: 128}";
	struct ft_model *m = model_from(latent);
	struct parts p;

	(void)state;
	/* router, both projections; each expert's two matrices */
	near_frac(ft_layer_dense_parameters(m, 0), H * 16 + 2. * H * 128, 1e-12);
	near_frac(ft_layer_expert_parameters(m, 0), 16 * 2. * 128 * 256, 1e-12);
	ft_model_free(m);
	build(&p, latent, PLAN("parallel: {ep: 8}, moe_force_balance: true"),
	      "megatron-core", 8);
	/* one block, four micro-batches; forward and twice backward */
	near_frac(sum_of(p.graph, "ep_dispatch").bytes, 4 * 2. * 512 * 4 * 128, 1e-12);
	near_frac(sum_of(p.graph, "expert_up").flop, 4 * 6. * 512 * 4 * 256 * 128,
		  1e-12);
	near_frac(sum_of(p.graph, "router").flop, 4 * 6. * 512 * H * 16, 1e-12);
	near_frac(sum_of(p.graph, "expert_latent_in").flop, 4 * 6. * 512 * H * 128,
		  1e-12);
	near_frac(sum_of(p.graph, "expert_latent_out").flop, 4 * 6. * 512 * H * 128,
		  1e-12);
	drop(&p);
}

/* Megatron Core copies what goes in and comes out of several sequences, and the gradient of what went in. */
static void several_sequences_are_turned(void **state)
{
	double in = 2. * INNER + 2. * GROUPS * N + HEADS, tokens = 512 * 2;
	struct parts p;

	(void)state;
	build(&p, HYBRID("1", "M"), PLAN("micro_batch_size: 2"), "megatron-core", 8);
	near_frac(sum_of(p.graph, "state_turn").bytes, 2 * 4 * tokens * (in + INNER),
		  1e-12);
	near_frac(sum_of(p.graph, "state_turn_back").bytes, 2 * 4 * tokens * in, 1e-12);
	drop(&p);
	build(&p, HYBRID("1", "M"), PLAN(""), "megatron-core", 8);
	assert_int_equal(sum_of(p.graph, "state_turn").n, 0);
	drop(&p);
	build(&p, HYBRID("1", "M"), PLAN("micro_batch_size: 2"),
	      "transformers-5-compile", 8);
	assert_int_equal(sum_of(p.graph, "state_turn").n, 0);
	drop(&p);
}

/* A matrix in, a matrix out, taps and biases of the convolution, three numbers a head, two norms. */
static void a_state_space_has_its_parameters(void **state)
{
	double channels = INNER + 2. * GROUPS * N;
	double in = (double)H * (INNER + channels + HEADS), out = (double)INNER * H;
	double want = in + out + 5 * channels + 3. * HEADS + INNER + H;
	struct ft_model *one = model_from(HYBRID("1", "M")),
			*two = model_from(HYBRID("2", "MM"));

	(void)state;
	near_frac(ft_model_parameters(two) - ft_model_parameters(one), want, 1e-12);
	/* 7 FLOP a number of the state, three times, beside the matrices' and the convolution's */
	near_frac(ft_model_flop_per_token(two, 1, 4096, true) -
			  ft_model_flop_per_token(one, 1, 4096, true),
		  6 * (in + out) + 3 * 7. * INNER * N + 6 * 4 * channels, 1e-12);
	ft_model_free(two);
	ft_model_free(one);
}

/* What each kernel reads and writes of outputs (x), states (s), scores (k) and B or C (g), written out once more; and what a score of
 * each head (e) counts as. */
static void its_kernels_touch_outputs_states_and_scores(void **state)
{
	static const struct {
		const char *name;
		double x, s, k, g, e;
	} want[] = {
		/* x read; states written: forward, and again backward */
		{ "state_write", 2 * 2, 2 * 4, 0, 2 * 2, 0 },
		/* states read, written in 16 bit; again, in 32 */
		{ "state_pass", 0, 4 + 2 + 4 + 4, 0, 0, 0 },
		{ "state_scores", 0, 0, 2 * 4, 2 * (2 + 2), 0 },
		{ "state_scan", 2 + 2, 2, 4, 2, 1.9 },
		/* the gate read, the output before it written; gate, output, g and x read, both gradients written */
		{ "state_gate", 2 + 2, 0, 0, 0, 0 },
		{ "state_gate_back", 2 * 3 + 2 * 2, 0, 0, 0, 0 },
		/* of states: g, ds, C; of x: x, g, dx, ds, k, B; of C: g, s, C, dC; of scores: x, g, dk; decays: x, g, k */
		{ "state_scan_back", 2 + (2 + 2 + 2) + 2 + (2 + 2) + (2 + 2), 4 + 2 + 2,
		  4 + 4 + 4, 2 + 2 + (2 + 4), 4.9 },
		/* states and gradients read, both written in 16 bit */
		{ "state_pass_back", 0, 4 + 4 + 2 + 2, 0, 0, 0 },
		/* of B: x, ds, B, dB; scores' gradients to B and to C: the other, the sum in fp32, and both together */
		{ "state_write_back", 2, 2, 4 + 4, (2 + 4) + 2 * (2 + 4 + 2), 0 },
	};

	(void)state;
	for (int tp = 1; tp <= 4; tp *= 2) {
		char plan[160];
		struct parts p;
		double passes = 2. * 4 * tp, x = 512. * INNER / tp, s = x / CHUNK * N,
		       k = 512. * GROUPS / tp * CHUNK, g = 512. * GROUPS / tp * N,
		       e = 512. * HEADS / tp * CHUNK;

		snprintf(plan, sizeof(plan),
			 "{sequence_length: 512, global_batch_size: 32, sharding: ddp, "
			 "moe_force_balance: true, sequence_parallel: true, "
			 "parallel: {tp: %d}}",
			 tp);
		build(&p, HYBRID("5", "M*-ME"), plan, "megatron-core", 8);
		for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
			near_frac(sum_of(p.graph, want[i].name).bytes,
				  passes * (want[i].x * x + want[i].s * s +
					    want[i].k * k + want[i].g * g +
					    want[i].e * e),
				  1e-12);
		near_frac(sum_of(p.graph, "state_in").flop,
			  passes * 6 * 512 * H *
				  (2. * INNER + 2. * GROUPS * N + HEADS) / tp,
			  1e-12);
		assert_true(!sum_of(p.graph, "delta_in").n &&
			    !sum_of(p.graph, "delta_norm").n);
		drop(&p);
	}
}

/* Forward a norm for each half that there is, and one MLP's products, which are two. */
static void a_block_without_an_mlp_has_nothing_of_one(void **state)
{

	(void)state;
	for (size_t again = 0; again < 2; again++) {
		struct parts p;
		size_t micro = 4, times = 1 + again;

		build(&p, HYBRID("5", "M*-ME"),
		      again ? PLAN("moe_force_balance: true, recompute: full") :
			      PLAN("moe_force_balance: true"),
		      "megatron-core", 8);
		assert_int_equal(sum_of(p.graph, "norm").n, 3 * micro * times);
		assert_int_equal(sum_of(p.graph, "add_norm").n, 2 * micro * times);
		assert_int_equal(sum_of(p.graph, "norm_back").n, 5 * micro);
		assert_int_equal(sum_of(p.graph, "activation").n, micro * times);
		assert_int_equal(sum_of(p.graph, "activation_back").n, micro);
		assert_int_equal(sum_of(p.graph, "expert_activation").n, micro * times);
		assert_int_equal(sum_of(p.graph, "state_scan").n, 2 * micro * times);
		assert_int_equal(sum_of(p.graph, "add").n, 3 * micro * times);
		drop(&p);
	}
}

/* A token keeps the block's input and its norm's output; what the matrix gives but for a number a head; outputs
 * of the scan, before its gate and behind, and of the norm behind it: 2 bytes each. In Transformers the norm gates. */
static void a_state_space_keeps_what_its_gradients_need(void **state)
{
	struct parts p;

	(void)state;
	build(&p, HYBRID("1", "M"), PLAN("optimizer: adam"), "megatron-core", 8);
	near_frac(segment_of(p.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS],
		  2. * 512 * (2 * H + 2 * INNER + 2 * GROUPS * N + 3 * INNER), 1e-12);
	near_frac(sum_of(p.graph, "state_norm").bytes, 4 * 4. * 512 * INNER, 1e-12);
	near_frac(sum_of(p.graph, "state_norm_back").bytes, 4 * 6. * 512 * INNER,
		  1e-12);
	drop(&p);
	build(&p, HYBRID("1", "M"), PLAN("optimizer: adam"), "transformers-5-compile",
	      8);
	assert_int_equal(sum_of(p.graph, "state_gate").n, 0);
	near_frac(sum_of(p.graph, "state_norm").bytes, 4 * 6. * 512 * INNER, 1e-12);
	near_frac(sum_of(p.graph, "state_norm_back").bytes, 4 * 10. * 512 * INNER,
		  1e-12);
	drop(&p);
}

static double kept(const char *pattern, const char *recompute)
{
	char model[600], plan[200];
	struct parts p;
	double bytes;

	snprintf(model, sizeof(model), HYBRID("2", "%s"), pattern);
	snprintf(plan, sizeof(plan), PLAN("moe_force_balance: true, %s"), recompute);
	build(&p, model, plan, "megatron-core", 8);
	bytes = segment_of(p.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS];
	drop(&p);
	return bytes;
}

/* Megatron Core runs no state space again by the name of attention's core, nor a norm in front of it; run again whole, a
 * layer of its own is each half of a block. A gateless activation keeps its input and its output, 2 bytes each; run again,
 * only its input, and the shared expert's stays. */
static void modules_of_hybrids_are_run_again(void **state)
{
	static const char *const none = "recompute: none",
				 *const full = "recompute: full",
				 *const core = "recompute: selective, "
					       "recompute_modules: core_attn",
				 *const norm = "recompute: selective, "
					       "recompute_modules: layernorm",
				 *const act = "recompute: selective, "
					      "recompute_modules: moe_act";
	struct parts p, q;

	(void)state;
	near_frac(kept("ME", full), 2 * 2. * 512 * H, 1e-12);
	near_frac(kept("MM", full), 2. * 512 * H, 1e-12);
	near_frac(kept("MM", core), kept("MM", none), 1e-12);
	near_frac(kept("MM", norm), kept("MM", none), 1e-12);
	near_frac(kept("ME", none) - kept("ME", norm), 2. * 512 * H, 1e-12);
	near_frac(kept("*E", none) - kept("*E", norm), 2 * 2. * 512 * H, 1e-12);
	near_frac(kept("ME", none) - kept("ME", act), 2. * 512 * 4 * 256, 1e-12);
	build(&p, HYBRID("2", "MM"),
	      PLAN("recompute: selective, recompute_modules: [core_attn, layernorm]"),
	      "megatron-core", 8);
	build(&q, HYBRID("2", "MM"), PLAN("recompute: none"), "megatron-core", 8);
	assert_true(sum_of(p.graph, NULL).n == sum_of(q.graph, NULL).n);
	assert_true(p.graph->recomputed_flop_per_rank <= 0);
	drop(&p);
	drop(&q);
}

/* Beside a width of 256: 2 bytes of what goes into relu^2, 2 of what comes out; of 8 experts' copies half as much more
 * than of 4's. */
static void gateless_experts_keep_two_numbers(void **state)
{
	static const char *const model =
		"{model_type: nemotron_h, " HYBRID_KEYS("2", "ME") ", %s}";
	double bytes[2];

	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		char text[700];
		struct parts p;

		snprintf(
			text, sizeof(text), model,
			wide ? "n_shared_experts: 1, moe_shared_expert_intermediate_size: "
			       "512" :
			       "n_shared_experts: 0");
		build(&p, text, PLAN("moe_force_balance: true"), "megatron-core", 8);
		bytes[wide] = segment_of(p.graph, "forward")
				      ->net_bytes[FT_MEMORY_ACTIVATIONS];
		drop(&p);
	}
	near_frac(bytes[1] - bytes[0], 512 * 512. * (2 + 2), 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers_of_halves_become_blocks),
		cmocka_unit_test(which_layers_are_state_spaces_is_said_in_three_ways),
		cmocka_unit_test(state_spaces_may_stand_alone),
		cmocka_unit_test(state_spaces_and_delta_rules_may_take_turns),
		cmocka_unit_test(no_experts_leave_the_shared_mlp),
		cmocka_unit_test(predicted_tokens_may_be_like_another_layer),
		cmocka_unit_test(latent_experts_are_smaller_and_projected),
		cmocka_unit_test(several_sequences_are_turned),
		cmocka_unit_test(a_state_space_has_its_parameters),
		cmocka_unit_test(its_kernels_touch_outputs_states_and_scores),
		cmocka_unit_test(a_block_without_an_mlp_has_nothing_of_one),
		cmocka_unit_test(a_state_space_keeps_what_its_gradients_need),
		cmocka_unit_test(modules_of_hybrids_are_run_again),
		cmocka_unit_test(gateless_experts_keep_two_numbers),
	};

	return cmocka_run_group_tests_name("traces/state-space", tests, NULL, NULL);
}
