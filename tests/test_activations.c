/*
 * tests/test_activations.c - what stands between an MLP's two products, counted in bytes a number of its
 * width: gates that Megatron fuses and gates that it does not, and activations that a class of
 * Transformers writes out; and experts that compute every token
 */
#include "tests/transformers.h"

#define MEGATRON "megatron-core"

/* A gate of SiLU, or of the exact GELU, is one kernel: two read, one written (6), and backward 10. Of an approximation it is that and a
 * product (4 + 6), backward two products, its gradient (6 each) and both joined (8). Families of Gemma's mean one by `gelu`, too. */
static void megatron_fuses_two_gates(void **state)
{
	static const struct {
		const char *model;
		bool apart;
		double f;
	} seen[] = {
		{ "{name: llama3-8b, num_hidden_layers: 2}", false, 14336 },
		{ "{name: llama3-8b, num_hidden_layers: 2, hidden_act: gelu_pytorch_tanh}",
		  true, 14336 },
		{ "{name: gemma3-27b, num_hidden_layers: 2}", true, 21504 },
		{ "{name: gemma3-27b, num_hidden_layers: 2, hidden_act: silu}", false,
		  21504 },
		{ "{name: gemma3-27b, num_hidden_layers: 2, hidden_act: gelu}", true,
		  21504 },
		{ "{name: gemma3-27b, num_hidden_layers: 2, hidden_act: swish}", false,
		  21504 },
		{ "{name: llama3-8b, num_hidden_layers: 2, hidden_act: quick_gelu}",
		  true, 14336 },
		{ "{name: llama3-8b, num_hidden_layers: 2, hidden_act: gelu}", false,
		  14336 },
	};
	double keeps[2];

	(void)state;
	for (size_t i = 0; i < sizeof(seen) / sizeof(*seen); i++) {
		double f = TOKENS * seen[i].f;
		struct parts p;

		build(&p, seen[i].model,
		      "{sequence_length: 4096, global_batch_size: 2, micro_batch_size: 2, "
		      "recompute: none}",
		      MEGATRON, 1);
		expect(&p, "activation", LAYERS, (seen[i].apart ? 10 : 6) * f,
		       seen[i].apart ? 2 : 1);
		expect(&p, "activation_back", LAYERS, (seen[i].apart ? 26 : 10) * f,
		       seen[i].apart ? 4 : 1);
		keeps[i % 2] = kept_by_layer(p.graph);
		if (i % 2) /* the GELU's output, beside both inputs and the product */
			near_frac(fabs(keeps[1] - keeps[0]), 2 * f, 1e-9);
		drop(&p);
	}
}

/* Of gate and up 1 byte a number each in the place of 2; where there is no gate, or no kernel for it, the key is refused. */
static void gates_may_be_kept_in_eight_bit(void **state)
{
	static const char *const refused[][2] = { { "{name: gpt-1.5b}", MEGATRON },
						  { "{name: llama3-8b}",
						    "torch-2.11-eager" } };
	static const char *const says[] = { "activation has no gate",
					    "keeps an activation's input in 8 bit" };
	double keeps[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ft_error err;
		struct parts p;

		build(&p, "{name: llama3-8b, num_hidden_layers: 2}",
		      i ? "{sequence_length: 4096, global_batch_size: 2, "
			  "micro_batch_size: 2, fp8_activation_input: true}" :
			  "{sequence_length: 4096, global_batch_size: 2, "
			  "micro_batch_size: 2}",
		      MEGATRON, 1);
		keeps[i] = kept_by_layer(p.graph);
		drop(&p);
		build(&p, refused[i][0],
		      "{sequence_length: 1024, global_batch_size: 1}", refused[i][1],
		      1);
		p.plan->fp8_gates = true;
		assert_null(ft_graph_build(p.model, p.plan, p.stack, &err));
		if (!strstr(err.text, says[i]))
			fail_msg("%s", err.text);
		drop(&p);
	}
	near_frac(keeps[0] - keeps[1], 2 * TOKENS * 14336.0, 1e-9);
}

/* Bytes that a layer keeps of 4,096 tokens. */
static double kept_of(const char *model, const char *more, const char *stack)
{
	char plan[160];
	struct parts p;
	double kept;

	snprintf(plan, sizeof(plan),
		 "{sequence_length: 4096, global_batch_size: 8, %s}", more);
	build(&p, model, plan, stack, 8);
	kept = kept_by_layer(p.graph);
	drop(&p);
	return kept;
}

#define LORA "lora: {rank: 16}, "
#define NONE "recompute: none"
#define AGAIN "recompute: selective, recompute_modules: act"

/* ReLU's backward reads its result, so that under adapters OPT's MLP keeps as much as with GELU, which reads its input; and as
 * much when either is computed again. The first product's input alone is not kept, but what two adapters keep of their rank. */
static void a_relu_keeps_its_result(void **state)
{
	double kept = kept_of("opt-6.7b", LORA NONE, EAGER);

	(void)state;
	near_frac(kept_of("opt-6.7b", LORA AGAIN, EAGER), kept, 1e-12);
	near_frac(kept_of("{name: opt-6.7b, hidden_act: gelu}", LORA NONE, EAGER), kept,
		  1e-12);
	near_frac(kept_of("opt-6.7b", NONE, EAGER) - kept, TOKENS * (4096 - 2 * 16.),
		  1e-9);
}

/* The inputs of experts' second products, which alone may run again, are not kept in any case where these are frozen. */
static void shared_experts_keep_no_more_when_others_run_again(void **state)
{
	(void)state;
	near_frac(kept_of("llama4-scout", LORA AGAIN, MEGATRON),
		  kept_of("llama4-scout", LORA NONE, MEGATRON), 1e-12);
}

#define NARROW ", sharding: none, master_weights: false, gradient_dtype: bf16"
#define AUTOCAST ", sharding: ddp"

/* Nemotron's squared ReLU, and Apertus' xIELU, of which what spreads one number over all is not vectorized; compiled they are
 * one pass. Autocast runs powers and exponentials in fp32. */
static void classes_write_activations_out(void **state)
{
	static const struct {
		const char *type, *stack, *plan;
		double forth[2], back[2], kept; /* vectorized, and not */
		int launches[2], launches_back[2];
	} seen[] = {
		{ "apertus",
		  EAGER,
		  NARROW,
		  { 37.4, 25.7 },
		  { 87, 41.7 },
		  2 + 7 + 2,
		  { 7, 5 },
		  { 17, 8 } },
		{ "apertus, hidden_act: xielu",
		  EAGER,
		  NARROW,
		  { 37.4, 25.7 },
		  { 87, 41.7 },
		  2 + 7 + 2,
		  { 7, 5 },
		  { 17, 8 } },
		{ "apertus",
		  EAGER,
		  AUTOCAST,
		  { 74.8, 51.4 },
		  { 174, 83.4 },
		  2 + 14 + 2,
		  { 8, 5 },
		  { 18, 8 } },
		{ "apertus",
		  "transformers-5-compile",
		  AUTOCAST,
		  { 4 },
		  { 6 },
		  2 + 2,
		  { 1 },
		  { 1 } },
		{ "apertus", MEGATRON, AUTOCAST, { 4 }, { 6 }, 2 + 2, { 1 }, { 1 } },
		{ "nemotron", EAGER, NARROW, { 8 }, { 20 }, 2 + 2, { 2 }, { 4 } },
		{ "nemotron",
		  EAGER,
		  AUTOCAST,
		  { 24 },
		  { 46 },
		  2 + 4 + 2,
		  { 4 },
		  { 6 } },
		{ "nemotron",
		  "transformers-5-compile",
		  AUTOCAST,
		  { 4 },
		  { 6 },
		  2 + 2,
		  { 1 },
		  { 1 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(seen) / sizeof(*seen); i++) {
		double f[2] = { 8192, 16384 }, keeps[2];

		for (int k = 0; k < 2; k++) {
			struct arena mem = { 0 };
			struct parts p;

			build(&p,
			      arena_printf(
				      &mem,
				      "{model_type: %s, hidden_size: 2048, "
				      "num_hidden_layers: 2, num_attention_heads: 16, "
				      "num_key_value_heads: 16, "
				      "intermediate_size: %g, vocab_size: 32000}",
				      seen[i].type, f[k]),
			      arena_printf(
				      &mem,
				      "{sequence_length: 4096, global_batch_size: 2, "
				      "micro_batch_size: 2, recompute: none%s}",
				      seen[i].plan),
			      seen[i].stack, 1);
			for (int s = 0; s < 2; s++) {
				double n = f[k] * TOKENS;

				expect_on(&p, "activation", s,
					  seen[i].forth[s] > 0 ? LAYERS : 0,
					  seen[i].forth[s] * n, seen[i].launches[s]);
				expect_on(&p, "activation_back", s,
					  seen[i].back[s] > 0 ? LAYERS : 0,
					  seen[i].back[s] * n,
					  seen[i].launches_back[s]);
			}
			keeps[k] = kept_by_layer(p.graph);
			drop(&p);
			arena_release(&mem);
		}
		near_frac(keeps[1] - keeps[0], seen[i].kept * (f[1] - f[0]) * TOKENS,
			  1e-9);
	}
}

/* Llama 4's class repeats all tokens for each of its 16 experts, and sends one to one of them anywhere
 * else: products of experts are 16 times as large, and there is nothing to sort. */
static void llama_4_computes_all_experts(void **state)
{
	double h = 5120, copies = 16 * TOKENS;
	struct parts all, one;

	(void)state;
	step(&all, "llama4-scout", EAGER, "moe_force_balance: true");
	step(&one, "llama4-scout", PLAIN, "moe_force_balance: true");
	near_frac(sum_of(all.graph, "expert_up").flop +
			  sum_of(all.graph, "expert_down").flop,
		  16 * (sum_of(one.graph, "expert_up").flop +
			sum_of(one.graph, "expert_down").flop),
		  1e-9);
	expect_on(&all, "permute", false, LAYERS, 4 * copies * h, 1);
	expect_on(&all, "permute", true, LAYERS, 4 * copies * h, 1);
	expect(&all, "unpermute", LAYERS, 2 * copies * h, 1);
	expect(&all, "unpermute_back", LAYERS, 4 * copies * h, 1);
	expect(&all, "permute_back", LAYERS, 10 * copies * h, 4);
	expect(&all, "sort_by_expert", 0, 0, 0);
	assert_true(kept_by_layer(all.graph) >
		    kept_by_layer(one.graph) + 2 * 15 * TOKENS * (h + 8192));
	drop(&all);
	drop(&one);
}

/* Cohere's norm is written out on fp32, OLMo's is cast before and behind; compiled each is one kernel. Cohere's logits are
 * scaled, 4 bytes each way. */
static void classes_write_layer_norms_out(void **state)
{
	static const struct {
		const char *type, *stack;
		double bytes, strided;
		int launches, launches_strided;
	} seen[] = {
		{ "cohere", EAGER, 25.7, 26.7, 6, 5 },
		{ "olmo", EAGER, 14, 5.2, 2, 1 },
		{ "cohere", PLAIN, 4, 0, 1, 0 },
		{ "olmo", "transformers-5-compile", 4, 0, 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(seen) / sizeof(*seen); i++) {
		bool cohere = !strcmp(seen[i].type, "cohere");
		double n = 2048 * TOKENS, words = 32000 * TOKENS;
		struct arena mem = { 0 };
		struct parts p;

		build(&p,
		      arena_printf(&mem,
				   "{model_type: %s, hidden_size: 2048, "
				   "num_hidden_layers: 2, num_attention_heads: 16, "
				   "num_key_value_heads: 16, intermediate_size: 8192, "
				   "vocab_size: 32000}",
				   seen[i].type),
		      "{sequence_length: 4096, global_batch_size: 4, micro_batch_size: 2, "
		      "sharding: fsdp, gradient_dtype: fp32, recompute: none}",
		      seen[i].stack, 2);
		expect_on(&p, "norm", false, LAYERS, seen[i].bytes * n,
			  seen[i].launches);
		expect_on(&p, "norm", true, seen[i].strided > 0 ? LAYERS : 0,
			  seen[i].strided * n, seen[i].launches_strided);
		expect(&p, "logit_scale", cohere && seen[i].strided > 0, 4 * words, 1);
		expect(&p, "logit_scale_back", cohere && seen[i].strided > 0, 4 * words,
		       1);
		drop(&p);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(megatron_fuses_two_gates),
		cmocka_unit_test(gates_may_be_kept_in_eight_bit),
		cmocka_unit_test(a_relu_keeps_its_result),
		cmocka_unit_test(shared_experts_keep_no_more_when_others_run_again),
		cmocka_unit_test(classes_write_activations_out),
		cmocka_unit_test(classes_write_layer_norms_out),
		cmocka_unit_test(llama_4_computes_all_experts),
	};

	return cmocka_run_group_tests_name("activations", tests, NULL, NULL);
}
