/*
 * tests/test_elements_counted.c - kernels that only move bytes: how often in a step, how many
 * bytes, and how many kernels the host launches, counted by hand from the model's own sizes
 *
 * A feature is 2 bytes. A norm reads and writes it (4), its gradient reads two, writes one, and
 * sums another up (8); a sum of two reads both and writes one (6). One micro-batch, one stage.
 */
#include "tests/counted.h"

enum { SEQUENCE = 1024, LAYERS = 3 };

/* One micro-batch of 2 sequences on each of 8 / (tp cp) replicas. */
static void step(struct parts *p, const char *model, const char *stack, int tp, int cp,
		 const char *more)
{
	struct arena mem = { 0 };

	build(p, arena_printf(&mem, "{name: %s, num_hidden_layers: %d}", model, LAYERS),
	      arena_printf(&mem,
			   "{sequence_length: %d, global_batch_size: %d, "
			   "micro_batch_size: 2, sharding: ddp, recompute: none, "
			   "parallel: {tp: %d, cp: %d, %s}",
			   SEQUENCE, 2 * 8 / tp / cp, tp, cp, *more ? more : "ep: 1}"),
	      stack, 8);
	arena_release(&mem);
}

static double tokens_of(const struct parts *p)
{
	return 2 * SEQUENCE / (double)p->plan->cp;
}

static double slice_of(const struct parts *p)
{
	return tokens_of(p) / (p->plan->sequence_parallel ? (double)p->plan->tp : 1);
}

static void norms_of_heads_are_of_queries_and_keys(void **state)
{
	(void)state;
	for (int tp = 1; tp <= 4; tp *= 2) {
		struct parts p;
		double features;

		step(&p, "qwen3-30b-a3b", "megatron-core", tp, 1, "");
		features = (double)((p.model->layer[0].heads +
				     p.model->layer[0].kv_heads) *
				    p.model->layer[0].qk_head_dim) /
			   tp;
		expect(&p, "qk_norm", LAYERS, 4 * tokens_of(&p) * features, 2);
		expect(&p, "qk_norm_back", LAYERS, 8 * tokens_of(&p) * features, 4);
		/* and a kernel each that adds up the blocks' sums, whatever the tokens and tp are */
		expect(&p, "qk_norm_finalize", 2 * LAYERS,
		       4 * (double)p.model->layer[0].qk_head_dim, 1);
		p.stack->layout.norm_finalize = false;
		rebuild(&p);
		expect(&p, "qk_norm_finalize", 0, 0, 0);
		drop(&p);
	}
}

/* PyTorch's kernel takes a head's row at a time; where all heads have one norm, theirs. */
static void eager_norms_of_heads_take_short_rows(void **state)
{
	static const struct {
		const char *model;
		double row, back; /* numbers; bytes of each */
	} cases[] = { { "qwen3-30b-a3b", 128, 1.43 * 4 }, { "olmo2-7b", 4096, 8 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct parts p;
		double features;

		step(&p, cases[i].model, "torch-2.11-eager", 1, 1, "");
		features = (double)((p.model->layer[0].heads +
				     p.model->layer[0].kv_heads) *
				    p.model->layer[0].qk_head_dim);
		expect(&p, "qk_norm", LAYERS, 4 * tokens_of(&p) * features, 2);
		expect(&p, "qk_norm_back", LAYERS,
		       cases[i].back * tokens_of(&p) * features, 4);
		for (size_t w = 0; w < p.graph->n_works; w++)
			if (!strncmp(p.graph->work[w].name, "qk_norm", 7))
				assert_true(p.graph->work[w].memory.row_bytes ==
					    2 * cases[i].row);
		drop(&p);
	}
}

/* Megatron's ranks have a slice of the latents each, DTensor's all of them. */
static void norms_of_latents_are_of_both(void **state)
{
	static const char *const stacks[] = { "megatron-core", "torchtitan-2024" };

	(void)state;
	for (int i = 0; i < 2; i++)
		for (int tp = 1; tp <= 4; tp *= 2) {
			struct parts p;
			double latents, rows;

			step(&p, "deepseek-v2", stacks[i], tp, 1, "");
			latents = (double)(p.model->layer[0].q_lora_rank +
					   p.model->layer[0].kv_lora_rank);
			rows = i ? tokens_of(&p) : slice_of(&p);
			assert_true(latents == 1536 + 512);
			expect(&p, "latent_norm", LAYERS, 4 * rows * latents, 2);
			expect(&p, "latent_norm_back", LAYERS, 8 * rows * latents, 4);
			drop(&p);
		}
}

/* Of q, k and v, of the output, of the MLP's first and second product: each reads its output's
 * gradient; of those that are summed over ranks the slice of its tokens. */
static void biases_read_each_gradient_once(void **state)
{
	(void)state;
	for (int tp = 1; tp <= 4; tp *= 2) {
		struct parts p;
		double h = 12288;

		step(&p, "gpt3-175b", "megatron-core", tp, 1, "");
		expect(&p, "bias_gradient", LAYERS,
		       2 * (tokens_of(&p) * (3 * h / tp + 4 * h / tp) +
			    slice_of(&p) * (h + h)),
		       4);
		drop(&p);
		step(&p, "llama3-8b", "megatron-core", tp, 1, "");
		expect(&p, "bias_gradient", 0, 0, 0);
		drop(&p);
	}
}

/* Beside q (4096 of 4096), k (1024) and the second product (4096 of 14336), whose input is split:
 * a mask of a byte with two features in front; a scaling and a sum behind. */
static void adapters_mask_and_add(void **state)
{
	static const char with[] =
		"ep: 1}, lora: {rank: 8, dropout: %s, targets: [q_proj, k_proj, down_proj]}";

	(void)state;
	for (int tp = 1; tp <= 4; tp *= 2)
		for (int dropped = 0; dropped < 2; dropped++) {
			struct arena mem = { 0 };
			double t, wide = 4096, f = 14336.0 / tp, outs;
			struct parts p;

			step(&p, "llama3-8b", "megatron-core", tp, 1,
			     arena_printf(&mem, with, dropped ? "true" : "false"));
			t = tokens_of(&p);
			outs = (4096.0 + 1024 + 4096) /
			       tp; /* the last: of its tokens */
			near_frac(sum_of(p.graph, "lora_add").bytes,
				  LAYERS * 6 * t * (outs + 2 * wide + f), 1e-12);
			assert_true(launches_of(p.graph, "lora_add") == LAYERS * 3 * 2);
			near_frac(sum_of(p.graph, "lora_scale").bytes,
				  LAYERS * 2 * 4 * t * outs, 1e-12);
			assert_true(launches_of(p.graph, "lora_scale") ==
				    LAYERS * 3 * 2);
			assert_true(sum_of(p.graph, "lora_dropout").n ==
				    (dropped ? LAYERS * 3 * 2 : 0));
			near_frac(sum_of(p.graph, "lora_dropout").bytes,
				  dropped * LAYERS * 2 * 5 * t * (2 * wide + f), 1e-12);
			assert_true(sum_of(p.graph, "tp_lora").n ==
				    (tp > 1 ? LAYERS * 3 * 2 : 0));
			drop(&p);
			arena_release(&mem);
		}
}

/* Their input cast to fp32 and back, and its gradient: 12 bytes a number each; none where they are
 * in 16 bit. A mask of a byte lies between both casts, and so reads and writes fp32. */
static void adapters_in_fp32_cast(void **state)
{
	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		struct arena mem = { 0 };
		struct parts p;

		step(&p, "llama3-8b", "transformers-5-eager", 1, 1,
		     arena_printf(
			     &mem,
			     "ep: 1}, lora: {rank: 8, dropout: true, fp32_adapters: %s, targets: "
			     "[q_proj, k_proj, down_proj]}",
			     wide ? "true" : "false"));
		assert_true(launches_of(p.graph, "lora_cast") ==
			    wide * LAYERS * 3 * 2 * 4);
		near_frac(sum_of(p.graph, "lora_cast").bytes,
			  wide * LAYERS * 2 * 12 * tokens_of(&p) * (2 * 4096 + 14336),
			  1e-12);
		near_frac(sum_of(p.graph, "lora_dropout").bytes,
			  LAYERS * 2 * (wide ? 9 : 5) * tokens_of(&p) *
				  (2 * 4096 + 14336),
			  1e-12);
		drop(&p);
		arena_release(&mem);
	}
}

/* Each of cp - 1 further blocks: a partial result read, a sum in fp32 read and written, of three
 * quarters of the output; backward of keys and values, too. */
static void a_ring_corrects_behind_each_further_block(void **state)
{
	(void)state;
	for (int cp = 2; cp <= 8; cp *= 2) {
		struct parts p;
		double t, out = 4096, kv = 2048, further = cp - 1;

		step(&p, "llama3-8b", "megatron-core", 1, cp, "");
		t = tokens_of(&p);
		near_frac(sum_of(p.graph, "cp_correction").bytes,
			  LAYERS * 0.75 * (2 + 4 + 4) * t * (2 * out + kv) * further,
			  1e-12);
		assert_true(sum_of(p.graph, "cp_correction").n == 2 * LAYERS);
		assert_true(launches_of(p.graph, "cp_correction") ==
			    2 * LAYERS * 2 * further);
		assert_true(sum_of(p.graph, "attention").n == 2 * LAYERS * cp);
		drop(&p);
	}
}

/* Table and head. A gradient of the table is cleared in 16 bit. */
static void ends_touch_tables_and_logits(void **state)
{
	(void)state;
	for (int tp = 1; tp <= 4; tp *= 2) {
		struct parts p;
		double t, h = 4096, vocab = 128256.0 / tp;

		step(&p, "llama3-8b", "megatron-core", tp, 1, "");
		t = tokens_of(&p);
		expect(&p, "embedding", 1, 4 * t * h, 1);
		expect(&p, "embedding_fill", 1, 2 * vocab * h, 1);
		expect(&p, "embedding_back", 1, 40 * t * h, 8);
		expect(&p, "final_norm", 1, 4 * slice_of(&p) * h, 1);
		expect(&p, "final_norm_back", 1, 8 * slice_of(&p) * h, 2);
		drop(&p);
		step(&p, "llama3-8b", "megatron-core-te-2.11", tp, 1,
		     ""); /* one kernel's */
		expect(&p, "loss", 1, 2 * t * vocab, 2);
		expect(&p, "loss_back", 1, 4 * t * vocab, 2);
		drop(&p);
		step(&p, "gpt3-175b", "megatron-core", tp, 1, "");
		expect(&p, "embedding", 1, 4 * t * 12288, 3); /* of places, too */
		drop(&p);
	}
}

static void routed_copies_move_as_often_as_they_are_put_in_order(void **state)
{
	static const char *const both[] = { "permute", "unpermute", "permute_back",
					    "unpermute_back" };
	static const char *const sorts[] = { "sort_by_expert", "unsort", "sort_back",
					     "unsort_back" };

	(void)state;
	for (int ep = 1; ep <= 8; ep *= 2) {
		struct arena mem = { 0 };
		double h = 4096, t, f = 14336;
		struct parts p;

		step(&p, "mixtral-8x7b", "megatron-core", 1, 1,
		     arena_printf(&mem, "ep: %d}, moe_force_balance: true", ep));
		t = tokens_of(&p);
		expect(&p, "top_k", LAYERS, 12 * t * 8, 6);
		for (int i = 0; i < 4; i++) {
			expect(&p, both[i], LAYERS, 4 * 2 * t * h, 2);
			expect(&p, sorts[i], ep < 8 ? LAYERS : 0, 4 * 2 * t * h, 2);
		}
		expect(&p, "expert_activation", LAYERS, 6 * 2 * t * f, 1);
		expect(&p, "expert_activation_back", LAYERS, 18 * 2 * t * f, 2);
		/* what is not weighted has no sum over its rows */
		p.stack->layout.weighted_activation = false;
		rebuild(&p);
		expect(&p, "expert_activation_back", LAYERS, 10 * 2 * t * f, 1);
		drop(&p);
		arena_release(&mem);
	}
}

/* Gated delta rules: a convolution over queries, keys and values, read and written; a norm times a
 * gate. 16 heads of keys and 32 of values, of 128. */
static void linear_attention_touches_its_channels(void **state)
{
	(void)state;
	for (int tp = 1; tp <= 4; tp *= 2) {
		struct parts p;
		double t, out = 32 * 128.0 / tp, channels = 2 * 16 * 128.0 / tp + out;

		step(&p, "qwen3-next-80b-a3b", "megatron-core", tp, 1, "");
		t = tokens_of(&p);
		expect(&p, "delta_conv", LAYERS, 4 * t * channels, 1);
		expect(&p, "delta_conv_back", LAYERS, 8 * t * channels, 2);
		/* a norm, and its output and a gate read, one written; their gradients */
		expect(&p, "delta_norm", LAYERS, (4 + 6) * t * out, 2);
		expect(&p, "delta_norm_back", LAYERS, (8 + 10) * t * out, 3);
		/* channels turned and turned back; the gate; backward q, k and v joined, too */
		expect_by(&p, "delta_order", "strided_turn", true, LAYERS,
			  2 * 4 * t * channels, 4);
		expect_by(&p, "delta_order", "strided_turn", false, LAYERS, 4 * t * out,
			  1);
		expect_by(&p, "delta_order_back", "strided_turn", true, LAYERS,
			  2 * 4 * t * channels, 2);
		expect_by(&p, "delta_order_back", "strided_turn", false, LAYERS,
			  4 * t * (channels + out), 2);
		/* q and k to length one, and for two heads of values each */
		expect(&p, "delta_length", LAYERS, 4 * t * (channels - out), 2);
		expect(&p, "delta_length_back", LAYERS, 6 * t * (channels - out), 2);
		expect(&p, "delta_repeat", LAYERS, (2 + 4) * t * (channels - out), 2);
		expect(&p, "delta_repeat_back", LAYERS, (4 + 2) * t * (channels - out),
		       2);
		expect(&p, "output_gate", 0, 0, 0);
		expect(&p, "shared_gate", 2 * LAYERS, 16 * slice_of(&p) * 2048 / 2,
		       7 / 2.0);
		drop(&p);
	}
}

/* Two read and one written, its gradient three and two: of 16 heads of 256. */
static void a_gated_output_is_an_activation_as_wide(void **state)
{
	(void)state;
	for (int tp = 1; tp <= 4; tp *= 2) {
		struct parts p;

		step(&p, "qwen3-next-80b-a3b, full_attention_interval: 1",
		     "megatron-core", tp, 1, "");
		expect(&p, "output_gate", LAYERS, 6 * tokens_of(&p) * 16 * 256 / tp, 1);
		expect(&p, "output_gate_back", LAYERS,
		       10 * tokens_of(&p) * 16 * 256 / tp, 1);
		expect(&p, "delta_conv", 0, 0, 0);
		drop(&p);
	}
}

/* A fused softmax reads the triangle of scores and writes the square; backward two triangles. A
 * mask of dropout is a byte. */
static void scores_are_as_many_as_pairs_of_tokens(void **state)
{
	(void)state;
	for (int tp = 1; tp <= 4; tp *= 2) {
		struct parts p;
		double scores = 2 * 96.0 / tp * SEQUENCE * SEQUENCE;

		step(&p, "gpt3-175b", "megatron-lm-2022", tp, 1, "");
		near_frac(sum_of(p.graph, "softmax").bytes, LAYERS * (3 + 4) * scores,
			  1e-12);
		assert_true(launches_of(p.graph, "softmax") == LAYERS * 2);
		expect(&p, "attention_dropout", 2 * LAYERS, 5 * scores, 1);
		near_frac(sum_of(p.graph, "scores").flop, LAYERS * 3 * 2 * 128 * scores,
			  1e-12);
		near_frac(sum_of(p.graph, "context").flop,
			  LAYERS * 3 * 2 * 128 * scores, 1e-12);
		drop(&p);
	}
}

/* Each feature more of the queries' latents is kept in front of its norm and behind: in 16 bit,
 * or behind it as the next product takes it, in 8. */
static void latents_are_kept_twice(void **state)
{
	static const char *const precision[] = { "bf16", "fp8" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		double kept[2] = { 0, 0 };

		for (int more = 0; more < 2; more++) {
			struct parts p;
			char model[160], plan[200];

			snprintf(model, sizeof(model),
				 "{name: deepseek-v3, num_hidden_layers: 3, "
				 "q_lora_rank: %d}",
				 1536 + 128 * more);
			snprintf(plan, sizeof(plan),
				 "{sequence_length: 2048, global_batch_size: 8, "
				 "recompute: none, precision: %s}",
				 precision[i]);
			build(&p, model, plan, "megatron-core", 8);
			for (size_t k = 0; k < p.graph->n_segments; k++)
				if (!strncmp(p.graph->segment[k].name, "forward", 7))
					kept[more] = p.graph->segment[k].net_bytes
							     [FT_MEMORY_ACTIVATIONS];
			drop(&p);
		}
		near_frac(kept[1] - kept[0], 2048. * 128 * (i ? 2 + 1 : 2 + 2), 1e-9);
	}
}

/* Of other fusions nobody has said what a weighted gate costs. */
static void weights_in_gates_want_kernels(void **state)
{
	static const char *const fusions[] = { "kernels", "modules", "eager",
					       "compiled", "operations" };

	(void)state;
	for (int i = 0; i < 10; i++) {
		bool weighted = i & 1;
		struct ft_error err;
		struct ft_stack *stack;
		char path[64];
		FILE *f = fopen(own_path(path, "weighted.yaml"), "w");

		assert_non_null(f);
		fprintf(f,
			"{extends: megatron-core, title: x, layout: {fusion: %s, "
			"weighted_activation: %s}}",
			fusions[i / 2], weighted ? "true" : "false");
		fclose(f);
		stack = ft_stack_load(path, NULL, &err);
		unlink(path);
		assert_int_equal(stack != NULL, !weighted || i < 4);
		if (!stack)
			assert_non_null(strstr(err.text, "goes with fusion: kernels"));
		ft_stack_free(stack);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(norms_of_heads_are_of_queries_and_keys),
		cmocka_unit_test(eager_norms_of_heads_take_short_rows),
		cmocka_unit_test(norms_of_latents_are_of_both),
		cmocka_unit_test(latents_are_kept_twice),
		cmocka_unit_test(biases_read_each_gradient_once),
		cmocka_unit_test(adapters_mask_and_add),
		cmocka_unit_test(adapters_in_fp32_cast),
		cmocka_unit_test(a_ring_corrects_behind_each_further_block),
		cmocka_unit_test(ends_touch_tables_and_logits),
		cmocka_unit_test(routed_copies_move_as_often_as_they_are_put_in_order),
		cmocka_unit_test(linear_attention_touches_its_channels),
		cmocka_unit_test(a_gated_output_is_an_activation_as_wide),
		cmocka_unit_test(scores_are_as_many_as_pairs_of_tokens),
		cmocka_unit_test(weights_in_gates_want_kernels),
	};

	return cmocka_run_group_tests_name("traces/elements", tests, NULL, NULL);
}
