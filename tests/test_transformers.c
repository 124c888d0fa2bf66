/*
 * tests/test_transformers.c - steps as Hugging Face Transformers writes its models: what is a single
 * operation there, windows that are masks, sinks beside plain scores, what is kept for the backward
 * pass, and what the host asks for
 *
 * Beside each stands the same step of the stack for a plain PyTorch loop.
 */
#include <math.h>

#include "tests/transformers.h"

/* A residual's addition takes 6, and gradients that products share 8. */
static void an_rms_norm_is_single_operations(void **state)
{
	struct parts p;
	double h = TOKENS * 4096, turned = TOKENS * (4096 + 1024);

	(void)state;
	step(&p, "llama3-8b", EAGER, "");
	expect_norm(&p, "norm", LAYERS, false, (struct norms){ h, 1, 0, 0 });
	expect_norm(&p, "add_norm", LAYERS, false, (struct norms){ h, 1, 6, 1 });
	expect_norm(&p, "norm_back", 2 * LAYERS, true, (struct norms){ h, 1, 8, 2 });
	expect_norm(&p, "final_norm", 1, false, (struct norms){ h, 1, 0, 0 });
	expect_norm(&p, "final_norm_back", 1, true, (struct norms){ h, 1, 0, 0 });
	expect_on(&p, "rope", false, 0, 0, 0);
	expect_on(&p, "rope", true, LAYERS, 20.9 * turned, 10);
	expect_on(&p, "rope_back", false, LAYERS, 9 * turned, 6);
	expect_on(&p, "rope_back", true, LAYERS, 25.6 * turned, 14);
	expect(&p, "transpose", 0, 0, 0);
	drop(&p);
	step(&p, "olmo2-7b", EAGER, "");
	expect_norm(&p, "qk_norm", LAYERS, false, (struct norms){ 2 * h, 2, 0, 0 });
	expect_norm(&p, "qk_norm_back", LAYERS, true, (struct norms){ 2 * h, 2, 0, 0 });
	drop(&p);
}

/* One call of any framework. Gradients are summed behind q, k and v alone (11 bytes a number), where a
 * plain loop is given the mean of models with a gate. */
static void a_layer_norm_is_one_kernel(void **state)
{
	static const char *const names[] = { "norm", "add_norm", "final_norm",
					     "final_norm_back", "add" };
	struct parts a, b;

	(void)state;
	step(&a, "starcoder2-15b", EAGER, "");
	step(&b, "starcoder2-15b", PLAIN, "");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		near_frac(sum_of(a.graph, names[i]).bytes,
			  sum_of(b.graph, names[i]).bytes, 1e-12);
		assert_true(launches_of(a.graph, names[i]) ==
			    launches_of(b.graph, names[i]));
	}
	near_frac(sum_of(a.graph, "norm_back").bytes,
		  LAYERS * TOKENS * 6144 * (8 + 11 + 8), 1e-12);
	assert_true(launches_of(a.graph, "norm_back") == LAYERS * (2 + 3 + 2));
	drop(&a);
	drop(&b);
}

/* Starcoder2's 48 heads share 4 of keys; its window of 4,096 is a mask as soon as a sequence fills
 * it. One token less, and nobody sees a window. */
static void a_window_that_is_filled_is_a_mask(void **state)
{
	double square = BATCH * (double)SEQUENCE * SEQUENCE;
	double heads = TOKENS * 2 * 48 * 128;
	const struct ft_work *w;
	struct parts p;

	(void)state;
	step(&p, "starcoder2-15b", EAGER, "");
	w = work_of(p.graph, "attention");
	assert_string_equal(w->attention.impl, "cudnn-masked");
	assert_false(w->attention.causal);
	assert_true(w->attention.window == 0 && w->attention.kv_heads == 48);
	assert_true(w->attention.queries == SEQUENCE && w->attention.keys == SEQUENCE);
	expect(&p, "mask", LAYERS, 8 * square, 3);
	expect(&p, "repeat", LAYERS, 8 * heads, 2);
	expect(&p, "repeat_back", LAYERS, 3 * heads, 2);
	drop(&p);
	step(&p, "starcoder2-15b, sliding_window: 4097", EAGER, "");
	w = work_of(p.graph, "attention");
	assert_string_equal(w->attention.impl, "cudnn");
	assert_true(w->attention.causal && w->attention.kv_heads == 4);
	expect(&p, "mask", 0, 0, 0);
	expect(&p, "repeat", 0, 0, 0);
	drop(&p);
}

/* Phi-3 has as many heads of keys as of queries; of Gemma 2's layers every second has a window;
 * Llama 4's chunks are masks, too, and its other layers are whole. */
static void only_layers_with_a_window_and_shared_heads_pay(void **state)
{
	struct parts p;

	(void)state;
	step(&p, "phi3-mini", EAGER, "");
	assert_true(sum_of(p.graph, "mask").n == LAYERS);
	expect(&p, "repeat", 0, 0, 0);
	drop(&p);
	step(&p, "gemma2-9b", EAGER, "");
	assert_true(sum_of(p.graph, "mask").n == LAYERS / 2);
	drop(&p);
	step(&p, "llama4-scout, attention_chunk_size: 1024", EAGER,
	     "moe_force_balance: true");
	assert_true(sum_of(p.graph, "mask").n == LAYERS);
	assert_true(work_of(p.graph, "attention")->attention.keys == SEQUENCE);
	drop(&p);
	step(&p, "llama4-scout, attention_chunk_size: 4096", EAGER,
	     "moe_force_balance: true");
	assert_true(sum_of(p.graph, "mask").n == 0);
	drop(&p);
}

/* Scores of 64 heads, beside the products: 4 bytes each in one kernel, and 26.7 in 8 that are not
 * vectorized; for their gradients 18 and 14.6. */
static void sinks_leave_scores_plain(void **state)
{
	double scores = BATCH * 64.0 * SEQUENCE * SEQUENCE;
	struct parts p;

	(void)state;
	step(&p, "gpt-oss-20b", EAGER, "moe_force_balance: true");
	expect_on(&p, "softmax", false, 2 * LAYERS, (4 + 18) / 2 * scores,
		  (1 + 8) / 2.);
	expect_on(&p, "softmax", true, 2 * LAYERS, (26.7 + 14.6) / 2 * scores,
		  (8 + 6) / 2.);
	assert_true(sum_of(p.graph, "scores").n == 3 * LAYERS);
	assert_true(sum_of(p.graph, "attention").n == 0);
	assert_true(ft_stack_unfused(p.stack, true, false, false) &&
		    !ft_stack_unfused(p.stack, false, false, false));
	drop(&p);
	step(&p, "gpt-oss-20b", PLAIN, "moe_force_balance: true");
	assert_true(sum_of(p.graph, "softmax").n == 0);
	drop(&p);
}

/* 128 experts, 8 of which see each token: of each number of both products' outputs 3.1 bytes are copied and
 * 4.7 filled, by a kernel that is not vectorized. */
static void outputs_of_experts_are_filled(void **state)
{
	static const struct {
		const char *name;
		double bytes, kernels, strided, strided_kernels;
	} moved[] = { { "permute", 2.4, 1, 4.7, 1 },
		      { "unpermute", 3.3, 3, 5.6, 2 },
		      { "unpermute_back", 7.8, 3, 12.2, 4 },
		      { "permute_back", 3.8, 1, 8.1, 2 } };
	double copies = 8 * TOKENS, h = 2048, f = 768;
	struct parts p;

	(void)state;
	step(&p, "qwen3-30b-a3b", EAGER, "moe_force_balance: true");
	for (int back = 0; back < 2; back++) {
		const char *fill = back ? "expert_fill_back" : "expert_fill";

		expect_on(&p, fill, false, LAYERS, 3.1 * copies * (h + 2 * f), 2);
		expect_on(&p, fill, true, LAYERS, 4.7 * copies * (h + 2 * f), 2);
	}
	for (size_t i = 0; i < sizeof(moved) / sizeof(*moved); i++) {
		expect_on(&p, moved[i].name, false, LAYERS, moved[i].bytes * copies * h,
			  moved[i].kernels);
		expect_on(&p, moved[i].name, true, LAYERS,
			  moved[i].strided * copies * h, moved[i].strided_kernels);
	}
	expect(&p, "expert_join_back", 0, 0, 0);
	drop(&p);
}

/* 128 heads of 192 for queries and keys. */
static void latent_queries_are_joined(void **state)
{
	double q = TOKENS * 128 * 192;
	struct parts p;

	(void)state;
	step(&p, "deepseek-v3", EAGER, "");
	expect_on(&p, "latent_join", true, LAYERS, 13.3 * q, 4);
	expect_on(&p, "latent_join_back", true, LAYERS, 38.4 * q, 11);
	expect_on(&p, "latent_join", false, 0, 0, 0);
	expect_norm(&p, "latent_norm", LAYERS, false,
		    (struct norms){ TOKENS * (1536 + 512), 2, 0, 0 });
	expect_norm(&p, "latent_norm_back", LAYERS, true,
		    (struct norms){ TOKENS * (1536 + 512), 2, 0, 0 });
	drop(&p);
}

/* Of an activity of the host, over a step. */
static double host_of(const struct ft_graph *g, enum ft_host what)
{
	double n = 0;

	for (size_t i = 0; i < g->rank_class[0].n_calls; i++) {
		const struct ft_call *call = &g->rank_class[0].call[i];

		n += (double)call->repeat * g->segment[call->segment].host[what];
	}
	return n;
}

static double waits_of(const struct ft_graph *g)
{
	double n = 0;

	for (size_t i = 0; i < g->rank_class[0].n_calls; i++) {
		const struct ft_call *call = &g->rank_class[0].call[i];
		const struct ft_segment *s = &g->segment[call->segment];

		for (size_t j = 0; j < s->n_ops; j++)
			n += (double)call->repeat * s->op[j].host_waits;
	}
	return n;
}

/* A number of each micro-batch's inputs; experts whose numbers of tokens stay on the GPU add none. */
static void the_host_asks_once_a_forward(void **state)
{
	struct parts p;

	(void)state;
	for (int n = 1; n <= 3; n++) {
		struct arena mem = { 0 };

		build(&p, "{name: qwen3-30b-a3b, num_hidden_layers: 2}",
		      arena_printf(&mem,
				   "{sequence_length: 4096, global_batch_size: %d, "
				   "micro_batch_size: 1, sharding: fsdp}",
				   2 * n),
		      EAGER, 2);
		assert_true(waits_of(p.graph) == n);
		drop(&p);
		arena_release(&mem);
	}
	step(&p, "llama3-8b", PLAIN, "");
	assert_true(waits_of(p.graph) == 0);
	drop(&p);
	/* an expert's own product is as large as the host is told, in each layer */
	step(&p, "qwen3-30b-a3b", PLAIN, "grouped_experts: false");
	assert_true(waits_of(p.graph) == LAYERS);
	drop(&p);
	step(&p, "qwen3-30b-a3b", EAGER, "grouped_experts: false");
	assert_true(waits_of(p.graph) == LAYERS + 1);
	assert_true(host_of(p.graph, FT_HOST_INPUTS) == 1);
	assert_true(host_of(p.graph, FT_HOST_SYNC) == LAYERS);
	drop(&p);
	step(&p, "qwen3-30b-a3b", PLAIN, "grouped_experts: true");
	assert_true(waits_of(p.graph) == 0);
	drop(&p);
}

/* Bytes of activations that the step holds at its fullest, by the graph's own segments. */
static double kept(const struct ft_graph *g)
{
	double now = 0, most = 0;

	for (size_t i = 0; i < g->rank_class[0].n_calls; i++) {
		const struct ft_call *call = &g->rank_class[0].call[i];
		const struct ft_segment *s = &g->segment[call->segment];

		now += (double)call->repeat * s->net_bytes[FT_MEMORY_ACTIVATIONS];
		most = now > most ? now : most;
	}
	return most;
}

/* More by that many bytes a token: of each layer, and of the norm behind all. */
static void keeps_more(const char *model, const char *more, double of_layer,
		       double of_norm)
{
	struct parts a, b;

	step(&a, model, EAGER, more);
	step(&b, model, PLAIN, more);
	near_frac(kept(a.graph) - kept(b.graph), TOKENS * (LAYERS * of_layer + of_norm),
		  1e-9);
	drop(&a);
	drop(&b);
}

/* A norm's input in fp32 and what its weights multiply, if they are trained, for its input in 16 bit:
 * 4 or 2 bytes more a number. A mask is 2 bytes for each key; keys and values are repeated. */
static void what_norms_and_masks_keep(void **state)
{
	(void)state;
	keeps_more("llama3-8b", "", 2 * 4 * 4096.0, 4 * 4096.0);
	keeps_more("olmo2-7b", "", 2 * 6 * 4096.0 + 6 * 2 * 4096.0,
		   6 * 4096.0); /* in fp32 */
	keeps_more("olmo2-7b", "lora: {rank: 8}", 2 * 2 * 4096.0 + 2 * 2 * 4096.0,
		   2 * 4096.0);
	keeps_more("starcoder2-15b", "", 2 * SEQUENCE + 2 * 2 * (48 - 4) * 128.0, 0);
	keeps_more("llama3-8b", "lora: {rank: 8}", 2 * 2 * 4096.0, 2 * 4096.0);
	keeps_more("phi3-mini", "", 2 * 4 * 3072.0 + 2 * SEQUENCE + 2 * 2 * 3072.0,
		   4 * 3072.0); /* q and k, which v holds */
}

/* Seven targets of Llama's layer share the outputs of two norms and take attention's and the
 * gate's; each in fp32 keeps its own input. */
static void adapters_in_fp32_keep_their_own_input(void **state)
{
	static const char with[] = "lora: {rank: 8, targets: [q_proj, k_proj, v_proj, "
				   "o_proj, gate_proj, up_proj, down_proj], "
				   "fp32_adapters: %s}";
	double bytes[2];

	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		struct arena mem = { 0 };
		struct parts p;

		step(&p, "llama3-8b", EAGER,
		     arena_printf(&mem, with, wide ? "true" : "false"));
		bytes[wide] = kept(p.graph);
		drop(&p);
		arena_release(&mem);
	}
	near_frac(bytes[1] - bytes[0],
		  LAYERS * TOKENS * 2 * (5 * 4096.0 + 4096 - 2 * 4096), 1e-9);
}

/* Latents stand in front of two norms. */
static void latents_keep_more(void **state)
{
	struct parts a;

	(void)state;
	keeps_more("deepseek-v3", "", 2 * 4 * 7168.0 + 4 * (1536 + 512), 4 * 7168.0);
	step(&a, "deepseek-v3, q_lora_rank: 0", EAGER, "");
	expect_norm(&a, "latent_norm", LAYERS, false,
		    (struct norms){ TOKENS * 512, 1, 0, 0 });
	expect_norm(&a, "latent_norm_back", LAYERS, true,
		    (struct norms){ TOKENS * 512, 1, 0, 0 });
	drop(&a);
}

/* What runs again of a layer, and what it keeps less for that. */
static void again(const char *model, const char *modules, const char *works,
		  double bytes_a_token)
{
	struct arena mem = { 0 };
	struct parts with, without;

	step(&without, model, EAGER, "");
	step(&with, model, EAGER,
	     arena_printf(&mem, "recompute: selective, recompute_modules: %s",
			  modules));
	for (const char *at = works; *at; at += strlen(at) + 1)
		assert_true(sum_of(with.graph, at).n ==
				    2 * sum_of(without.graph, at).n &&
			    sum_of(without.graph, at).n > 0);
	if (bytes_a_token > 0)
		near_frac(kept(without.graph) - kept(with.graph),
			  LAYERS * TOKENS * bytes_a_token, 1e-9);
	near_frac(with.graph->recomputed_flop_per_rank,
		  sum_of(with.graph, NULL).flop - sum_of(without.graph, NULL).flop,
		  2e-3);
	drop(&with);
	drop(&without);
	arena_release(&mem);
}

/* Attention alone: the mask and what is repeated. Norms alone: of the first two what is fp32, what
 * weights multiply, and their outputs. What chosen operations keep is in test_chosen.c. */
static void what_runs_again_is_not_kept(void **state)
{
	double mask = 2 * SEQUENCE + 2 * 2 * (48 - 4) * 128.0, h = 4096;

	(void)state;
	again("starcoder2-15b", "core_attn", "mask\0repeat\0", mask);
	again("starcoder2-15b", "op", "mask\0repeat\0rope\0", 0);
	again("llama3-8b", "norm", "norm\0add_norm\0", 2 * 4 * h + 2 * 2 * h);
	again("olmo2-7b", "op", "qk_norm\0rope\0", 0);
	again("deepseek-v3", "op", "latent_norm\0latent_join\0", 0);
}

/* A kernel that is given a mask, or chunks as one, computes again all scores; so do plain ones. */
static void all_scores_are_computed_again(void **state)
{
	static const char *const models[] = {
		"gemma2-9b", "phi3-mini", "llama4-scout, attention_chunk_size: 1024",
		"gpt-oss-20b", "qwen2.5-7b"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
		struct parts with, without;

		step(&with, models[i], EAGER,
		     "recompute: full, moe_force_balance: true");
		step(&without, models[i], EAGER, "moe_force_balance: true");
		near_frac(with.graph->recomputed_flop_per_rank,
			  sum_of(with.graph, NULL).flop -
				  sum_of(without.graph, NULL).flop,
			  2e-3);
		drop(&with);
		drop(&without);
	}
}

/* Beside logits of 12 bytes: the gathered weights of embedding, head and last norm, in 16 bit. */
static void the_root_is_there_for_the_loss(void **state)
{
	const double root = 2 * 128256.0 * 4096 + 4096, logits = TOKENS * 128256;
	double peak[2];
	struct parts p;

	(void)state;
	step(&p, "llama3-8b", EAGER, "");
	for (int inside = 0; inside < 2; inside++) {
		p.stack->layout.loss_in_root = inside;
		rebuild(&p);
		peak[inside] = 0;
		for (size_t i = 0; i < p.graph->n_segments; i++)
			peak[inside] =
				fmax(peak[inside],
				     p.graph->segment[i].peak_bytes[FT_MEMORY_OTHER]);
	}
	near_frac(peak[0], 12 * logits, 1e-9);
	near_frac(peak[1], 12 * logits + 2 * root, 1e-9);
	drop(&p);
	step(&p, "llama3-8b", EAGER, "lora: {rank: 8}");
	peak[1] = 0;
	for (size_t i = 0; i < p.graph->n_segments; i++)
		peak[1] =
			fmax(peak[1], p.graph->segment[i].peak_bytes[FT_MEMORY_OTHER]);
	near_frac(peak[1], 12 * logits + 2 * root, 1e-9); /* frozen, and as large */
	drop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_rms_norm_is_single_operations),
		cmocka_unit_test(a_layer_norm_is_one_kernel),
		cmocka_unit_test(a_window_that_is_filled_is_a_mask),
		cmocka_unit_test(only_layers_with_a_window_and_shared_heads_pay),
		cmocka_unit_test(sinks_leave_scores_plain),
		cmocka_unit_test(outputs_of_experts_are_filled),
		cmocka_unit_test(latent_queries_are_joined),
		cmocka_unit_test(the_host_asks_once_a_forward),
		cmocka_unit_test(what_norms_and_masks_keep),
		cmocka_unit_test(adapters_in_fp32_keep_their_own_input),
		cmocka_unit_test(latents_keep_more),
		cmocka_unit_test(what_runs_again_is_not_kept),
		cmocka_unit_test(all_scores_are_computed_again),
		cmocka_unit_test(the_root_is_there_for_the_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
