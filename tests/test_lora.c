/* tests/test_lora.c - adapters: parameters, work, memory and gradients in closed form; mistakes */
#include <math.h>

#include "tests/works.h"

#define PLAN(more) "{sequence_length: 8192, global_batch_size: 8, " more "}"
#define LORA "lora: {rank: 16, targets: attention}"

/* MLPerf's Llama 2 70B: rank 16 on linear_qkv and linear_proj, 44,564,480 in the logs. PEFT's all-linear with rank 16
 * on Llama 3 8B: print_trainable_parameters says 41,943,040. */
static void adapters_have_the_parameters_that_are_logged(void **state)
{
	struct parts p;

	(void)state;
	build(&p, "llama2-70b", PLAN(LORA), "nemo-24", 8);
	assert_true(ft_model_lora_parameters(p.model, &p.plan->lora) == 44564480);
	drop(&p);
	build(&p, "llama3-8b", PLAN("lora: {rank: 16, targets: all-linear}"),
	      "transformers-5-eager", 8);
	assert_true(ft_model_lora_parameters(p.model, &p.plan->lora) == 41943040);
	drop(&p);
}

/* Each target by hand: rank (inputs + outputs), in each of 32 layers. */
static void each_target_has_its_own_shape(void **state)
{
	static const struct {
		const char *targets;
		double features;
	} cases[] = {
		{ "attention", 4096 + 6144 + 4096 + 4096 },
		{ "mlp", 4096 + 2 * 14336 + 14336 + 4096 },
		{ "all", 4096 + 6144 + 4096 + 4096 + 4096 + 2 * 14336 + 14336 + 4096 },
		{ "[linear_qkv]", 4096 + 6144 },
		{ "linear_proj", 4096 + 4096 },
		{ "linear_fc1", 4096 + 2 * 14336 },
		{ "linear_fc2", 14336 + 4096 },
		{ "[q_proj, v_proj]", 4096 + 4096 + 4096 + 1024 },
		{ "[k_proj, o_proj]", 4096 + 1024 + 4096 + 4096 },
		{ "[gate_proj, up_proj]", 2 * (4096 + 14336) },
		{ "down_proj", 14336 + 4096 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct parts p;
		char plan[300];

		snprintf(plan, sizeof(plan), PLAN("lora: {rank: 8, targets: %s}"),
			 cases[i].targets);
		build(&p, "llama3-8b", plan, "torch-2.11-compile", 8);
		near_frac(ft_model_lora_parameters(p.model, &p.plan->lora),
			  32 * 8 * cases[i].features, 1e-12);
		drop(&p);
	}
}

/* PEFT's word is each linear module: those that the class or the stack has, joined where they are. */
static void all_linear_is_each_module_of_the_class(void **state)
{
	static const char each[] =
		"[q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]";
	static const struct {
		const char *model, *stack, *as;
	} cases[] = {
		{ "llama3-8b", "transformers-5-eager", each },
		{ "llama3-8b", "torch-2.11-eager", each },
		{ "llama3-8b", "generic",
		  "[linear_qkv, o_proj, gate_proj, up_proj, down_proj]" },
		{ "llama3-8b", "megatron-core", "all" },
		{ "phi3-mini", "transformers-5-eager", "all" },
		{ "phi3-mini", "torch-2.11-eager", each },
		{ "opt-6.7b", "transformers-5-eager",
		  "[q_proj, k_proj, v_proj, out_proj, fc1, fc2]" },
		{ "{name: gpt-1.5b, model_type: gpt2}", "transformers-5-eager", "all" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double n[2];

		for (int k = 0; k < 2; k++) {
			char plan[240];
			struct parts p;

			snprintf(
				plan, sizeof(plan),
				"{sequence_length: 1024, global_batch_size: 8, lora: {rank: 8, targets: %s}}",
				k ? cases[i].as : "all-linear");
			build(&p, cases[i].model, plan, cases[i].stack, 8);
			n[k] = ft_model_lora_parameters(p.model, &p.plan->lora);
			drop(&p);
		}
		near_frac(n[0], n[1], 1e-12);
	}
}

/* Of a hybrid's three blocks one has a dense MLP, of 512 x 1024 without a gate: none else has adapters on it, nor their tensors. */
static void blocks_without_an_mlp_have_no_adapters_on_it(void **state)
{
	struct parts p;

	(void)state;
	build(&p,
	      "{model_type: nemotron_h, hidden_size: 512, num_hidden_layers: 4, "
	      "hybrid_override_pattern: 'M*-M', num_attention_heads: 8, "
	      "num_key_value_heads: 2, head_dim: 64, mamba_num_heads: 16, "
	      "mamba_head_dim: 32, ssm_state_size: 64, n_groups: 4, conv_kernel: 4, "
	      "chunk_size: 128, vocab_size: 512, intermediate_size: 1024, "
	      "mlp_hidden_act: relu2}",
	      PLAN("lora: {rank: 8, targets: mlp}"), "torch-2.11-compile", 8);
	assert_int_equal(p.model->n_layers, 3);
	near_frac(ft_model_lora_parameters(p.model, &p.plan->lora),
		  8 * 2 * (512 + 1024.), 1e-12);
	near_frac(host_times(p.graph, FT_HOST_OPTIMIZER_TENSOR), 4, 1e-12);
	drop(&p);
}

/* Under DDP a hook a tensor that has gradients: two matrices for each adapter of each layer. */
static void hooks_are_of_the_adapters_alone(void **state)
{
	static const struct {
		const char *targets;
		int adapters; /* of a layer */
	} cases[] = { { "linear_qkv", 1 }, { "attention", 2 }, { "all", 4 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct parts p;
		char plan[300];

		snprintf(plan, sizeof(plan),
			 PLAN("sharding: ddp, lora: {rank: 8, targets: %s}"),
			 cases[i].targets);
		build(&p, "llama3-8b", plan, "torch-2.11-compile", 8);
		assert_true(host_times(p.graph, FT_HOST_GRADIENT_HOOK) ==
			    32. * 2 * cases[i].adapters);
		drop(&p);
	}
}

/* 4 N for the frozen products and 6 for each of the adapters' parameters; attention as
 * without them. Under any split. */
static void frozen_products_run_twice_and_adapters_three_times(void **state)
{
	static const char *const plans[] = {
		PLAN(LORA),
		PLAN(LORA ", parallel: {tp: 4}"),
		PLAN(LORA ", parallel: {tp: 2, pp: 2, cp: 2}"),
		PLAN("lora: {rank: 64, targets: all, dropout: true}, sharding: fsdp"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(plans) / sizeof(*plans); i++) {
		struct parts p;
		double causal, full, want, adapters;

		build(&p, "llama2-70b", plans[i], "nemo-24", 8);
		adapters = ft_model_lora_parameters(p.model, &p.plan->lora);
		near_frac(sum_over_ranks(p.graph, "lora_a", -1).flop +
				  sum_over_ranks(p.graph, "lora_b", -1).flop,
			  6 * adapters * p.graph->tokens, 1e-9);
		causal = ft_plan_flop_per_token(p.model, p.plan, true);
		full = ft_plan_flop_per_token(p.model, p.plan, false);
		near_frac(ft_model_flop_per_token(p.model, p.plan->tp, 8192, true) -
				  causal,
			  2 * ft_model_product_parameters(p.model, p.plan->tp) -
				  6 * adapters,
			  1e-12);
		want = p.graph->tokens * (causal + (full - causal) / 6);
		near_frac(sum_over_ranks(p.graph, NULL, -1).flop, want, 1e-6);
		drop(&p);
	}
}

/* Each adapter's output is scaled, and so is its gradient: 4 bytes a number each; a compiler scales where it adds. A frozen norm's
 * weights have no gradient, 11.8 bytes a number of it. */
static void outputs_are_scaled_and_norms_are_frozen(void **state)
{
#define SHORT "sequence_length: 4096, global_batch_size: 1, master_weights: false"
	static const char alike[] =
		"{" SHORT ", lora: {rank: 16, targets: [q_proj, o_proj]}}";
	double tokens = 4096, out = 2 * 4096, layers = 32, norms = 2 * layers;
	struct parts p, whole;

	(void)state;
	build(&p, "llama3-8b", alike, "transformers-5-eager", 1);
	build(&whole, "llama3-8b", "{" SHORT "}", "transformers-5-eager", 1);
	near_frac(sum_of(p.graph, "lora_scale").bytes, 8 * layers * tokens * out, 1e-9);
	near_frac(sum_of(whole.graph, "norm_back").bytes -
			  sum_of(p.graph, "norm_back").bytes,
		  11.8 * tokens * 4096 * norms, 1e-9);
	drop(&whole);
	drop(&p);
	build(&p, "llama3-8b", alike, "transformers-5-compile", 1);
	near_frac(sum_of(p.graph, "lora_scale").bytes, 4 * layers * tokens * out, 1e-9);
	drop(&p);
#undef SHORT
}

/* NVIDIA states 2,598 TFLOP a sample: 4 N without the head, and 8 L h s, attention whole
 * and also at two thirds. */
static void flops_are_those_that_nvidia_states_by_its_own_rule(void **state)
{
	struct parts p;
	double head = 8192. * 32000, n, nvidia;

	(void)state;
	build(&p, "llama2-70b", PLAN(LORA), "nemo-24", 8);
	n = ft_model_product_parameters(p.model, 1) - head;
	nvidia = 8192 * (4 * n + 8. * 80 * 8192 * 8192);
	near_frac(nvidia, 2598e12, 2e-3);
	drop(&p);
}

static void only_adapters_have_gradients_and_optimizer_state(void **state)
{
	struct parts p, whole;
	double adapters, blocks, ends, w[FT_MEMORIES];

	(void)state;
	build(&p, "llama2-70b",
	      PLAN(LORA ", sharding: ddp, gradient_dtype: fp32, parallel: {tp: 2}"),
	      "nemo-24", 8);
	build(&whole, "llama2-70b",
	      PLAN("sharding: ddp, gradient_dtype: fp32, parallel: {tp: 2}"), "nemo-24",
	      8);
	memcpy(w, p.graph->rank_class[0].base_bytes, sizeof(w));
	adapters = ft_model_lora_parameters(p.model, &p.plan->lora) / 2;
	ends = 2 * 8192. * 32000 / 2 + 8192;
	blocks = 80 * ((ft_layer_attention_parameters(p.model, 0) +
			ft_layer_dense_parameters(p.model, 0)) /
			       2 +
		       ft_layer_norm_parameters(p.model, 0));
	near_frac(w[FT_MEMORY_WEIGHTS], 2 * (blocks + ends + adapters), 1e-12);
	near_frac(w[FT_MEMORY_GRADIENTS], 4 * adapters, 1e-12);
	near_frac(w[FT_MEMORY_OPTIMIZER], 12 * adapters, 1e-12);
	near_frac(sum_over_ranks(p.graph, "gradient_reduce", -1).bytes,
		  8 * 4 * adapters, 1e-9);
	assert_true(sum_over_ranks(p.graph, "adam", -1).bytes <
		    sum_over_ranks(whole.graph, "adam", -1).bytes / 100);
	assert_true(sum_over_ranks(p.graph, "embedding_back", -1).n == 0);
	drop(&p);
	drop(&whole);
}

/* Blocks are kept in the format of the products unless told; embedding and head are not. */
static void frozen_weights_are_as_wide_as_their_format(void **state)
{
	static const struct {
		const char *training;
		double width,
			copies; /* of a frozen weight; of an adapter's beside 16 bit */
	} cases[] = {
		{ PLAN(LORA ", sharding: ddp"), 2, 0 },
		{ PLAN(LORA ", sharding: ddp, precision: fp8"), 1, 2 },
		{ PLAN(LORA ", sharding: ddp, precision: mxfp8"), 1.03125, 2.0625 },
		{ PLAN(LORA ", sharding: ddp, precision: nvfp4"), 0.5625, 1.125 },
		{ PLAN(LORA ", sharding: ddp, precision: mxfp4"), 0.53125, 1.0625 },
		{ PLAN("lora: {rank: 16, frozen_precision: bf16}, sharding: ddp, "
		       "precision: fp8"),
		  2, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct parts p;
		double blocks, own, got;

		build(&p, "llama2-70b", cases[i].training, "nemo-24", 8);
		own = ft_model_lora_parameters(p.model, &p.plan->lora);
		blocks = 80 * (ft_layer_attention_parameters(p.model, 0) +
			       ft_layer_dense_parameters(p.model, 0) +
			       ft_layer_norm_parameters(p.model, 0));
		got = p.graph->rank_class[0].base_bytes[FT_MEMORY_WEIGHTS];
		near_frac(got,
			  cases[i].width * blocks + 2 * (2 * 8192. * 32000 + 8192) +
				  (2 + cases[i].copies) * own,
			  1e-9);
		drop(&p);
	}
}

/* Weights of another format than the products' are read and written before each of them. */
static void frozen_weights_are_unpacked_for_each_product(void **state)
{
	struct parts own, p;
	double products;

	(void)state;
	build(&own, "llama2-70b", PLAN(LORA ", sharding: ddp"), "nemo-24", 8);
	build(&p, "llama2-70b",
	      PLAN("lora: {rank: 16, frozen_precision: nvfp4}, sharding: ddp"),
	      "nemo-24", 8);
	products = 80 * (ft_layer_attention_parameters(p.model, 0) +
			 ft_layer_dense_parameters(p.model, 0));
	assert_true(sum_of(own.graph, "unpack_weights").n == 0);
	near_frac(sum_of(p.graph, "unpack_weights").bytes,
		  2 * (double)p.plan->micro_batches * (0.5625 + 2) * products, 1e-9);
	drop(&own);
	drop(&p);
}

/* fsdp gathers frozen weights too, and reduces adapters alone. */
static void fsdp_gathers_all_and_reduces_adapters(void **state)
{
	struct parts p;
	double n, own;

	(void)state;
	build(&p, "llama3-8b",
	      "{sequence_length: 4096, global_batch_size: 8, sharding: fsdp, "
	      "gradient_dtype: fp32, lora: {rank: 16, targets: all}}",
	      "torch-2.11-compile", 8);
	n = ft_model_parameters(p.model);
	own = ft_model_lora_parameters(p.model, &p.plan->lora);
	near_frac(sum_over_ranks(p.graph, "fsdp_reduce", -1).bytes, 8 * 4 * own, 1e-9);
	near_frac(sum_over_ranks(p.graph, "fsdp_gather", -1).bytes,
		  8 * 2 * 2 * (n + own), 0.02);
	drop(&p);
}

/* Activations: what only frozen weights' gradients needed is not kept. */
static void inputs_of_frozen_products_are_not_kept(void **state)
{
	static const char *const plans[] = {
		"{sequence_length: 4096, global_batch_size: 8}",
		"{sequence_length: 4096, global_batch_size: 8, lora: {rank: 16, "
		"targets: all}}",
		"{sequence_length: 4096, global_batch_size: 8, lora: {rank: 16}}",
	};
	double saved[3] = { 0, 0, 0 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct parts p;

		build(&p, "llama3-8b", plans[i], "nemo-24", 8);
		for (size_t k = 0; k < p.graph->n_segments; k++)
			if (!strncmp(p.graph->segment[k].name, "forward", 7))
				saved[i] = p.graph->segment[k]
						   .net_bytes[FT_MEMORY_ACTIVATIONS];
		drop(&p);
	}
	/* all: four adapters' rank-wide tensors; attention: two, without fc1's and
	 * fc2's inputs */
	near_frac(saved[1] - saved[0], 4096 * 4 * 2 * 16., 1e-9);
	near_frac(saved[0] - saved[2], 4096 * (2 * 4096 + 2 * 14336 - 2 * 2 * 16.),
		  1e-9);
}

/* Bytes that the first layer keeps under a plan. */
static double kept_under(const char *model, const char *more, const char *stack)
{
	struct parts p;
	char plan[300];
	double kept;

	snprintf(plan, sizeof(plan),
		 "{sequence_length: 1024, global_batch_size: 8, %s}", more);
	build(&p, model, plan, stack, 8);
	kept = segment_of(p.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS];
	drop(&p);
	return kept / 1024;
}

/* What a recomputed part or a narrow format keeps already is not taken off again. Adapters on
 * attention alone: fc1's input (2 h) and fc2's (2 f) are not needed. */
static void nothing_is_taken_off_twice(void **state)
{
	static const struct {
		const char *how;
		double less; /* bytes a token, but for the adapters' own */
	} cases[] = {
		{ "recompute: none", 2 * 4096 + 2 * 14336 },
		{ "precision: fp8", 4096 + 14336 },
		{ "recompute: selective, recompute_modules: norm", 2 * 14336 },
		{ "recompute: selective, recompute_modules: act", 2 * 4096 },
		{ "recompute: selective, recompute_modules: [norm, act]", 0 },
		{ "recompute: selective, recompute_modules: mlp", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char with[200];

		snprintf(with, sizeof(with), "%s, lora: {rank: 16}", cases[i].how);
		near_frac(kept_under("llama3-8b", cases[i].how, "nemo-24") -
				  kept_under("llama3-8b", with, "nemo-24"),
			  cases[i].less - 2 * 2 * 16., 1e-9);
	}
}

/* Of two copies of each token: inputs of both products; and the router's of the token. */
static void frozen_experts_keep_no_inputs(void **state)
{
	(void)state;
	near_frac(kept_under("mixtral-8x7b", "recompute: none", "nemo-24") -
			  kept_under("mixtral-8x7b",
				     "recompute: none, lora: {rank: 16}", "nemo-24"),
		  2 * (2. * 4096 + 2. * 14336) + 2 * 4096 - 2 * 2 * 16., 1e-9);
}

static void mistakes_are_told_with_their_place(void **state)
{
	static const struct {
		const char *model, *training, *text;
	} wrong[] = {
		{ "llama3-8b", "{rank: 0}", "rank: 0 is not between 1" },
		{ "llama3-8b", "{targets: attention}", "lacks the key 'rank'" },
		{ "llama3-8b", "{rank: 4, targets: attn}", "attn is no target" },
		{ "llama3-8b", "{rank: 4, targets: [q_proj, head]}",
		  "head is no target" },
		{ "llama3-8b", "{rank: 4, targets: []}", "should name at least one" },
		{ "llama3-8b", "{rank: 4, targets: {a: 1}}", "a value of this kind" },
		{ "llama3-8b", "{rank: 4, targets: [linear_qkv, q_proj]}", "twice" },
		{ "llama3-8b", "{rank: 4, alpha: 32}", "alpha" },
		{ "llama3-8b", "{rank: 4, frozen_precision: int4}", "int4" },
		{ "gpt-1.5b", "{rank: 4, targets: gate_proj}", "has no gate" },
		{ "mixtral-8x7b", "{rank: 4, targets: all}", "experts are not" },
		{ "deepseek-v3", "{rank: 4}",
		  "adapters on latent attention are not simulated, nor" },
		{ "gemma4-e2b", "{rank: 4, targets: all-linear}", "own input" },
		{ "qwen3-next-80b-a3b", "{rank: 4}", "adapters on linear attention" },
		{ "nemotron-h-8b", "{rank: 4}",
		  "a state space are not simulated; targets: mlp is" },
		{ "mixtral-8x7b", "{rank: 4, targets: mlp}",
		  "experts are not simulated; targets: attention is" },
		{ "{name: llama3-8b, num_nextn_predict_layers: 1}", "{rank: 4}",
		  "num_nextn_predict_layers: 0" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct ft_plan_context context = { .ranks = 8, .ranks_per_node = 8 };
		struct arena mem = { 0 };
		struct ft_error err;
		char text[300];
		struct node *m = node_read_text(&mem, "m", wrong[i].model,
						strlen(wrong[i].model), &err),
			    *t;
		struct ft_model *model = ft_model_load(m, &err);

		ok_or_say(model, err);
		snprintf(text, sizeof(text),
			 "sequence_length: 4096\nglobal_batch_size: 8\nlora: %s",
			 wrong[i].training);
		t = node_read_text(&mem, "t", text, strlen(text), &err);
		ok_or_say(t, err);
		assert_null(ft_plan_load(t, model, &context, &err));
		if (!strstr(err.text, wrong[i].text) || err.line != 3)
			fail_msg("%s: %d: %s", wrong[i].training, err.line, err.text);
		ft_model_free(model);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adapters_have_the_parameters_that_are_logged),
		cmocka_unit_test(hooks_are_of_the_adapters_alone),
		cmocka_unit_test(each_target_has_its_own_shape),
		cmocka_unit_test(all_linear_is_each_module_of_the_class),
		cmocka_unit_test(blocks_without_an_mlp_have_no_adapters_on_it),
		cmocka_unit_test(frozen_products_run_twice_and_adapters_three_times),
		cmocka_unit_test(outputs_are_scaled_and_norms_are_frozen),
		cmocka_unit_test(flops_are_those_that_nvidia_states_by_its_own_rule),
		cmocka_unit_test(only_adapters_have_gradients_and_optimizer_state),
		cmocka_unit_test(frozen_weights_are_as_wide_as_their_format),
		cmocka_unit_test(frozen_weights_are_unpacked_for_each_product),
		cmocka_unit_test(fsdp_gathers_all_and_reduces_adapters),
		cmocka_unit_test(inputs_of_frozen_products_are_not_kept),
		cmocka_unit_test(nothing_is_taken_off_twice),
		cmocka_unit_test(frozen_experts_keep_no_inputs),
		cmocka_unit_test(mistakes_are_told_with_their_place),
	};

	return cmocka_run_group_tests_name("lora", tests, NULL, NULL);
}
