/* tests/test_parallel_halves.c - attention and MLP side by side, on a norm that both share or on one for each */
#include "tests/works.h"

/* What all layers of a stage keep for their backward, a token and feature, in bytes. */
static double kept_by_layers(const char *model)
{
	struct parts p;
	double kept = 0;

	build(&p, model,
	      "{sequence_length: 2048, global_batch_size: 1, sharding: ddp, recompute: none}",
	      "torch-2.11-compile", 1);
	for (size_t i = 0; i < p.graph->rank_class[0].n_calls; i++) {
		const struct ft_call *call = &p.graph->rank_class[0].call[i];
		const struct ft_segment *s = &p.graph->segment[call->segment];

		if (s->net_bytes[FT_MEMORY_ACTIVATIONS] > 0 &&
		    !strncmp(s->name, "forward", 7))
			kept += call->repeat * s->net_bytes[FT_MEMORY_ACTIVATIONS];
	}
	kept /= (double)(p.model->n_layers * p.model->hidden_size) * 2048;
	drop(&p);
	return kept;
}

/* The sum between the halves is not there, which the second norm reads in fp32 under autocast: 4; nor is that norm's output, 2,
 * where one norm serves both. */
static void parallel_halves_keep_less(void **state)
{
	double two =
		kept_by_layers("{name: gpt-neox-20b, use_parallel_residual: false}") -
		kept_by_layers("gpt-neox-20b");
	double one = kept_by_layers("{name: falcon-7b, parallel_attn: false}") -
		     kept_by_layers("falcon-7b");

	(void)state;
	near_frac(two, 4, 1e-9);
	near_frac(one, 6, 1e-9);
}

/* Outputs are summed before one reduction forward in place of two. Backward, a norm for each half has its own
 * gradient of the input, which is reduced on its own, and over a sequence in parts its own gathered input. */
static void parallel_halves_are_summed_once(void **state)
{
	static const struct {
		const char *model;
		double h, layers, reduced; /* of a layer's four */
		bool beside;
	} seen[] = {
		{ "{name: gpt-neox-20b, use_parallel_residual: false}", 6144, 44, 4,
		  false },
		{ "{name: gpt-neox-20b}", 6144, 44, 3, true },
		{ "{model_type: cohere, num_hidden_layers: 8, hidden_size: 4096, "
		  "num_attention_heads: 32, intermediate_size: 16384, vocab_size: "
		  "32000}",
		  4096, 8, 2, true },
	};

	(void)state;
	for (int k = 0; k < 6; k++) {
		bool sp = k % 2;
		struct arena mem = { 0 };
		double reduced, ranks = 8;
		struct parts p;

		build(&p, seen[k / 2].model,
		      arena_printf(
			      &mem,
			      "{sequence_length: 2048, global_batch_size: 4, "
			      "parallel: {tp: 2}, sequence_parallel: %s, sharding: "
			      "ddp}",
			      sp ? "true" : "false"),
		      "torch-2.11-eager", 8);
		reduced = sum_over_ranks(p.graph, "tp_all_reduce", -1).n +
			  sum_over_ranks(p.graph, "tp_reduce_scatter", -1).n;
		assert_true(reduced ==
			    ranks * seen[k / 2].reduced * seen[k / 2].layers);
		near_frac(sum_over_ranks(p.graph, "join", -1).bytes,
			  (seen[k / 2].beside ? 2. : 0) * seen[k / 2].h * 2048 *
				  seen[k / 2].layers * 4 * (sp ? 1 : 2),
			  1e-12);
		drop(&p);
		arena_release(&mem);
	}
}

/* Sums over a tensor group of two, a layer and micro-batch: two forward, and two backward, or one for each of q, k, v, gate and
 * up (one for up, where nothing gates). Each is of 2 bytes a token and feature, and the wgrad of none runs beside it. */
static void products_sum_each_input(void **state)
{
	static const struct {
		const char *model;
		double layers, h, joined, each;
	} seen[] = {
		{ "llama2-7b", 32, 4096, 4, 7 },
		{ "{name: opt-6.7b}", 32, 4096, 4, 6 },
	};

	(void)state;
	for (int k = 0; k < 4; k++) {
		const char *stack =
			k % 2 ? "atorch-2023-deepspeed" : "megatron-deepspeed-2022";
		double want = k % 2 ? seen[k / 2].each : seen[k / 2].joined;
		struct sum got;
		struct parts p;

		build(&p, seen[k / 2].model,
		      "{sequence_length: 2048, global_batch_size: 8, micro_batch_size: 2, "
		      "parallel: {tp: 2}, sequence_parallel: false, precision: fp16, "
		      "sharding: ddp, recompute: none}",
		      stack, 8);
		got = sum_over_ranks(p.graph, "tp_all_reduce", -1);
		assert_true(got.n == 8 * want * seen[k / 2].layers);
		near_frac(got.bytes / got.n, 2 * 2 * 2048 * seen[k / 2].h, 1e-12);
		drop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parallel_halves_are_summed_once),
		cmocka_unit_test(parallel_halves_keep_less),
		cmocka_unit_test(products_sum_each_input),
	};

	return cmocka_run_group_tests_name("parallel_halves", tests, NULL, NULL);
}
