/* tests/test_head_gates.c - gates of attention's output for each head (Laguna, Step 3.5), heads by layer, limits of MLPs' gates, a norm
 * behind experts (A.X-K1): layers, parameters, works, memory */
#include "tests/config_json.h"
#include "tests/counted.h"

#define SIZES \
	"hidden_size: 512, num_hidden_layers: 4, head_dim: 64, vocab_size: 1024, " \
	"sliding_window: 32, intermediate_size: 1024, moe_intermediate_size: 256, " \
	"num_key_value_heads: 2, num_experts_per_tok: 2, num_attention_heads: 8, " \
	"layer_types: [full_attention, sliding_attention, sliding_attention, " \
	"full_attention], "
#define LAGUNA(more) \
	"{model_type: laguna, " SIZES "num_experts: 8, " \
	"shared_expert_intermediate_size: 128, mlp_layer_types: [dense]" more "}"
#define LISTED ", num_attention_heads_per_layer: [8, 12, 12, 8]"
#define STEP(more) \
	"{model_type: step3p5, " SIZES "n_routed_experts: 8, share_expert_dim: 128, " \
	"num_sliding_attention_heads: 12" more "}"
#define PLAN(more) \
	"{sequence_length: 128, global_batch_size: 1, sharding: fsdp, " \
	"recompute: none" more "}"

enum {
	H = 512,
	F = 1024,
	X = 256,
	TOKENS = 128,
	WIDE = 64,
	KV = 2,
	HEADS = 8 + 12 + 12 + 8
};

/* By a list, or by which layers have a window; a gate a head, or one each number. */
static void layers_have_heads_and_gates_of_their_own(void **state)
{
	struct ft_model *laguna = model_from(LAGUNA(LISTED));
	struct ft_model *wide = model_from(LAGUNA(LISTED ", gating: per-element"));
	struct ft_model *listed = model_from(LAGUNA(
		LISTED ", gating_types: [per_head, per_element, per_head, per_head]"));
	struct ft_model *bare = model_from(LAGUNA(LISTED ", gating: false"));
	struct ft_model *step = model_from(STEP(""));

	(void)state;
	for (int i = 0; i < 4; i++) {
		int heads = i % 3 ? 12 : 8;

		assert_int_equal(laguna->layer[i].heads, heads);
		assert_int_equal(laguna->layer[i].output_gates, heads);
		assert_int_equal(wide->layer[i].output_gates, heads * WIDE);
		assert_int_equal(listed->layer[i].output_gates,
				 heads * (i == 1 ? WIDE : 1));
		assert_int_equal(bare->layer[i].output_gates, 0);
		assert_int_equal(step->layer[i].heads, heads);
		assert_int_equal(step->layer[i].kv_heads, KV);
		assert_int_equal(step->layer[i].output_gates, heads);
		assert_int_equal(step->layer[i].experts, i < 3 ? 0 : 8);
	}
	ft_model_free(step);
	ft_model_free(bare);
	ft_model_free(listed);
	ft_model_free(wide);
	ft_model_free(laguna);
}

/* poolside publishes 33.4 B of which 3.0 B are active, StepFun 196 B and 11 B (10.9 B without embedding and head): to the last one as Transformers' classes count them
 * (measurements/models), of Step's with its head. A.X-K1 is published with 519 B and 33 B. */
static void presets_have_published_parameters(void **state)
{
	static const struct {
		const char *name;
		double all, active;
	} known[] = {
		{ "{name: laguna-xs.2}", 33442617088., 3.0e9 },
		{ "{name: step-3.5-flash}", 196956130368., 12.0e9 },
		{ "{name: a.x-k1}", 518983063808., 33e9 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct ft_model *m = model_from(known[i].name);

		assert_true(ft_model_parameters(m) == known[i].all);
		near_frac(ft_model_active_parameters(m), known[i].active, 0.01);
		ft_model_free(m);
	}
}

/* A gate's matrix is as the others divided over tensor ranks, and counts in FLOPs. */
static void a_gate_is_a_matrix_of_its_own(void **state)
{
	struct ft_model *with = model_from(LAGUNA(LISTED)),
			*without = model_from(LAGUNA(LISTED ", gating: false"));
	double gate = (double)H * 12;

	(void)state;
	near_frac(ft_layer_attention_parameters(with, 1) -
			  ft_layer_attention_parameters(without, 1),
		  gate, 1e-12);
	near_frac(ft_layer_rank_parameters(with, 1, 2) -
			  ft_layer_rank_parameters(without, 1, 2),
		  gate / 2, 1e-12);
	near_frac(ft_model_flop_per_token(with, 1, TOKENS, true) -
			  ft_model_flop_per_token(without, 1, TOKENS, true),
		  6. * H * HEADS, 1e-12);
	ft_model_free(without);
	ft_model_free(with);
}

/* As adapters of a joined product have them, but not of q alone. */
static void adapters_of_a_joined_product_have_gates_in_it(void **state)
{
	static const struct {
		enum ft_lora_target target;
		int64_t out;
	} want[] = { { FT_LORA_QKV, 12 * WIDE + 2 * KV * WIDE + 12 },
		     { FT_LORA_Q, 12 * WIDE } };
	struct ft_model *m = model_from(LAGUNA(LISTED));

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ft_lora_shape s = ft_lora_shape(m, 1, want[i].target);

		assert_int_equal(s.in, H);
		assert_int_equal(s.out, want[i].out);
	}
	ft_model_free(m);
}

/* Bytes: of a number of attention's output, and of a gate; those that are not vectorized. */
static const struct {
	const char *model, *stack;
	double out[2], gate[2], strided[2], launches[2];
} gates[] = {
	{ LAGUNA(LISTED),
	  "transformers-5-eager",
	  { 4, 12 },
	  { 20, 24 },
	  { 4, 4 },
	  { 4, 6 } },
	{ LAGUNA(LISTED ", gating: per-element"),
	  "transformers-5-eager",
	  { 26, 36 },
	  { 0, 0 },
	  { 0, 0 },
	  { 4, 5 } },
	{ STEP(""), "transformers-5-eager", { 4, 12 }, { 4, 6 }, { 4, 4 }, { 2, 4 } },
	{ LAGUNA(LISTED),
	  "transformers-5-compile",
	  { 4, 6 },
	  { 0, 0 },
	  { 0, 0 },
	  { 1, 1 } },
	{ LAGUNA(LISTED), "megatron-core", { 4, 6 }, { 0, 0 }, { 0, 0 }, { 1, 1 } },
	{ LAGUNA(LISTED ", gating: per-element"),
	  "megatron-core",
	  { 6, 10 },
	  { 0, 0 },
	  { 0, 0 },
	  { 1, 1 } },
};

static void gates_are_kernels_of_each_way(void **state)
{
	static const char *const names[] = { "output_gate", "output_gate_back" };

	(void)state;
	for (size_t i = 0; i < sizeof(gates) / sizeof(*gates); i++) {
		struct parts p;

		build(&p, gates[i].model, PLAN(""), gates[i].stack, 1);
		for (int back = 0; back < 2; back++) {
			double out = (double)TOKENS * HEADS * WIDE, strided = 0;

			near_frac(sum_of(p.graph, names[back]).bytes,
				  out * gates[i].out[back] +
					  (double)TOKENS * HEADS * gates[i].gate[back],
				  1e-12);
			assert_true(launches_of(p.graph, names[back]) ==
				    4 * gates[i].launches[back]);
			for (size_t k = 0; k < p.graph->n_works; k++)
				if (!strcmp(p.graph->work[k].name, names[back]) &&
				    !strcmp(p.graph->work[k].memory.kernel, "strided"))
					strided += 1;
			assert_true((strided > 0) == (gates[i].strided[back] > 0));
		}
		drop(&p);
	}
}

/* Of its own, or part of the product of q, k and v; on two ranks half of it. */
static void a_gates_product_is_apart_or_joined(void **state)
{
	struct parts p;

	(void)state;
	build(&p, LAGUNA(LISTED), PLAN(""), "transformers-5-eager", 1);
	near_frac(sum_of(p.graph, "attention_gate").flop, 6. * TOKENS * H * HEADS,
		  1e-12);
	drop(&p);
	for (int tp = 1; tp <= 2; tp++) {
		build(&p, LAGUNA(LISTED),
		      tp == 1 ? PLAN("") :
				PLAN(", sequence_parallel: true, parallel: {tp: 2}"),
		      "megatron-core", tp);
		assert_int_equal(sum_of(p.graph, "attention_gate").n, 0);
		near_frac(sum_of(p.graph, "qkv").flop,
			  6. * TOKENS * H *
				  (HEADS * WIDE + 4. * 2 * KV * WIDE + HEADS) / tp,
			  1e-12);
		drop(&p);
	}
}

static double kept(const char *model, const char *stack)
{
	struct parts p;
	double bytes;

	build(&p, model, PLAN(""), stack, 1);
	bytes = segment_of(p.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS];
	drop(&p);
	return bytes;
}

/* The output once more; of gates their input in fp32 and their result, or their result. What a compiler makes again is not kept. The
 * first layer alone, which is dense. */
static void gates_keep_what_they_read(void **state)
{
	static const struct {
		const char *with, *without, *stack;
		double out, gate;
	} want[] = {
		{ LAGUNA(LISTED), LAGUNA(LISTED ", gating: false"),
		  "transformers-5-eager", 2, 6 },
		{ STEP(""), STEP(", gating: false"), "transformers-5-eager", 2, 2 },
		{ LAGUNA(LISTED), LAGUNA(LISTED ", gating: false"),
		  "transformers-5-compile", 0, 2 },
		{ LAGUNA(LISTED), LAGUNA(LISTED ", gating: false"), "megatron-core", 2,
		  2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
		near_frac(kept(want[i].with, want[i].stack) -
				  kept(want[i].without, want[i].stack),
			  (double)TOKENS * 8 * (want[i].out * WIDE + want[i].gate),
			  1e-12);
}

/* Bytes a token and feature of the first layer's MLP: gate, its SiLU, the other factor and their product; limited, two of them
 * once more. */
static void limits_keep_what_they_read(void **state)
{
	static const struct {
		const char *model, *stack;
		double bytes;
	} want[] = { { LAGUNA(""), "transformers-5-eager", 8 },
		     { STEP(""), "transformers-5-eager", 12 },
		     { STEP(""), "transformers-5-compile", 6 },
		     { STEP(""), "megatron-core", 6 } };

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		char wider[1000];
		char *at;

		snprintf(wider, sizeof(wider), "%s", want[i].model);
		at = strstr(wider, "intermediate_size: 1024");
		assert_non_null(at);
		at[strlen("intermediate_size: ")] = '2'; /* 2024 */
		near_frac(kept(wider, want[i].stack) -
				  kept(want[i].model, want[i].stack),
			  want[i].bytes * TOKENS * 1000, 1e-12);
	}
}

/* Forward 8 bytes a number and backward 22, of which 10 are not vectorized; where both lie in a row of two 4 and 16. Fused
 * kernels and compilers have none. */
static void limits_are_operations_of_their_class(void **state)
{
	double dense = (double)TOKENS * F, shared = (double)TOKENS * 128;
	double routed = (double)TOKENS * 2 * X;
	struct parts p;

	(void)state;
	build(&p, STEP(""), PLAN(""), "transformers-5-eager", 1);
	near_frac(sum_of(p.graph, "clamp").bytes, 8 * (3 * dense + shared), 1e-12);
	near_frac(sum_of(p.graph, "clamp_back").bytes, 22 * (3 * dense + shared),
		  1e-12);
	assert_true(launches_of(p.graph, "clamp") == 4 * 2);
	assert_true(launches_of(p.graph, "clamp_back") == 4 * 8);
	expect_on(&p, "expert_clamp", false, 1, 4 * routed, 1);
	expect_on(&p, "expert_clamp", true, 1, 4 * routed, 1);
	expect_on(&p, "expert_clamp_back", false, 1, 6 * routed, 4);
	expect_on(&p, "expert_clamp_back", true, 1, 16 * routed, 4);
	drop(&p);
	for (int i = 0; i < 2; i++) {
		build(&p, STEP(""), PLAN(""),
		      i ? "transformers-5-compile" : "megatron-core", 1);
		assert_int_equal(sum_of(p.graph, "clamp").n, 0);
		assert_int_equal(sum_of(p.graph, "expert_clamp").n, 0);
		drop(&p);
	}
}

/* Lists go on with three layers of predicted tokens, which have a window and a dense MLP, as the second layer; layers with experts are a
 * text. */
static void lists_go_on_with_predicted_tokens(void **state)
{
	static const char json[] =
		"{'model_type': 'step3p7', 'vision_config': {'width': 1536}, 'text_config': "
		"{'model_type': 'step3p5', 'hidden_size': 512, 'num_hidden_layers': 5, "
		"'num_nextn_predict_layers': 3, 'num_attention_heads': 8, "
		"'num_attention_groups': 2, 'head_dim': 64, 'intermediate_size': 1024, "
		"'moe_intermediate_size': 256, 'share_expert_dim': 128, "
		"'moe_num_experts': 8, 'moe_top_k': 2, 'moe_layers_enum': '3,4', "
		"'sliding_window': 32, 'vocab_size': 1024, 'attention_other_setting': "
		"{'num_attention_heads': 12, 'num_attention_groups': 2}, 'layer_types': "
		"['full_attention', 'sliding_attention', 'sliding_attention', "
		"'full_attention', 'full_attention', 'sliding_attention', "
		"'sliding_attention', 'sliding_attention']}}";
	struct ft_model *m = must(json_of(json));

	(void)state;
	assert_int_equal(m->n_layers, 5);
	assert_int_equal(m->predicted, 3);
	assert_int_equal(m->predicted_like, 1);
	assert_int_equal(m->layer[1].heads, 12);
	assert_int_equal(m->layer[4].experts, 8);
	/* a layer, a projection of two and three norms each */
	near_frac(ft_model_predicted_parameters(m, false),
		  2. * H * 12 * WIDE + 2. * H * KV * WIDE + H * 12. + 2 * WIDE +
			  3. * H * F + 2 * H + 2. * H * H + 3 * H,
		  1e-12);
	ft_model_free(m);
}

/* One norm more in layers with experts: its number, its input, its kernels. */
static void a_norm_stands_behind_experts(void **state)
{
	static const char text[] =
		"{model_type: %s, hidden_size: 512, num_hidden_layers: 3, "
		"num_attention_heads: 8, q_lora_rank: 96, kv_lora_rank: 64, "
		"qk_nope_head_dim: 32, qk_rope_head_dim: 32, v_head_dim: 32, "
		"first_k_dense_replace: 1, intermediate_size: 1024, n_routed_experts: 8, "
		"num_experts_per_tok: 2, n_shared_experts: 1, moe_intermediate_size: 256, "
		"vocab_size: 1024}";
	char with[600], without[600];
	struct parts p, q;

	(void)state;
	snprintf(with, sizeof(with), text, "axk1");
	snprintf(without, sizeof(without), text, "deepseek_v3");
	assert_true(parameters_of_text(with, NULL, NULL) -
			    parameters_of_text(without, NULL, NULL) ==
		    2 * H);
	build(&p, with, PLAN(""), "megatron-core", 1);
	build(&q, without, PLAN(""), "megatron-core", 1);
	expect(&p, "norm_behind", 2, 4. * TOKENS * H, 1);
	expect(&p, "norm_behind_back", 2, 8. * TOKENS * H, 2);
	assert_int_equal(sum_of(q.graph, "norm_behind").n, 0);
	drop(&q);
	drop(&p);
}

static const struct {
	const char *text, *why;
} wrong[] = {
	{ LAGUNA(", gating: per-layer"), "neither per-head, per-element nor false" },
	{ LAGUNA(", gating: per-head, gating_types: [per_element]"),
	  "says otherwise than gating what layer 1 has" },
	{ LAGUNA(", gating_types: [per_head, per_head]"), "names 2 of the 4 layers" },
	{ LAGUNA(", num_attention_heads_per_layer: [8, 12]"),
	  "names 2 of the 4 layers" },
	{ LAGUNA(", num_attention_heads_per_layer: [8, 12, 12, 8, 8]"),
	  "names 5 layers, but num_hidden_layers is 4" },
	{ LAGUNA(", num_attention_heads_per_layer: [8, 12, 7, 8]"),
	  "the heads of layer 3 should be a multiple of the 2 key and value heads" },
	{ "{name: laguna-xs.2, num_attention_heads: 64}",
	  "does nothing beside num_attention_heads_per_layer" },
	{ "{name: laguna-xs.2, num_attention_heads_per_layer: null, "
	  "swa_num_attention_heads: 64}",
	  "swa_num_attention_heads does nothing in a model of type laguna" },
	{ "{name: llama3-8b, gating: per-head}", "such as laguna" },
	{ "{name: laguna-xs.2, mtp_layer_types: [full_attention]}", "such as step3p5" },
	{ "{name: step-3.5-flash, sliding_window: null}",
	  "num_sliding_attention_heads: is of layers with a window, and there is none" },
	{ "{name: step-3.5-flash, swa_v_head_dim: 64}", "such as mimo_v2_flash" },
	{ "{name: step-3.5-flash, num_sliding_attention_heads: 90}",
	  "90 is not a multiple of 8" },
	{ STEP(", num_nextn_predict_layers: 2, mtp_layer_types: [full_attention, "
	       "sliding_attention]"),
	  "predicted tokens whose layers differ are not simulated" },
	{ STEP(", num_nextn_predict_layers: 1, mtp_layer_types: [sliding_attention], "
	       "mtp_mlp_layer_types: [sparse]"),
	  "have a window and a routed MLP, as none of the model has" },
	{ STEP(", moe_layers_enum: '1,x'"), "should be whole numbers" },
};

static void mistakes_are_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct ft_error err = { 0 };
		struct ft_model *m = model_of_text(wrong[i].text, &err);

		if (m || !strstr(err.text, wrong[i].why))
			fail_msg("%s: '%s', wanted '%s'", wrong[i].text, err.text,
				 wrong[i].why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers_have_heads_and_gates_of_their_own),
		cmocka_unit_test(presets_have_published_parameters),
		cmocka_unit_test(a_gate_is_a_matrix_of_its_own),
		cmocka_unit_test(adapters_of_a_joined_product_have_gates_in_it),
		cmocka_unit_test(gates_are_kernels_of_each_way),
		cmocka_unit_test(a_gates_product_is_apart_or_joined),
		cmocka_unit_test(gates_keep_what_they_read),
		cmocka_unit_test(limits_keep_what_they_read),
		cmocka_unit_test(limits_are_operations_of_their_class),
		cmocka_unit_test(lists_go_on_with_predicted_tokens),
		cmocka_unit_test(a_norm_stands_behind_experts),
		cmocka_unit_test(mistakes_are_told),
	};

	return cmocka_run_group_tests_name("head gates", tests, NULL, NULL);
}
