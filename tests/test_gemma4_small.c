/*
 * tests/test_gemma4_small.c - Gemma 4's small models: an input of each layer by itself, layers that take keys and
 * values of another, and their wider MLPs, counted by hand
 */
#include "foretoken/models.h"
#include "tests/config_json.h"
#include "tests/counted.h"

#define KEYS \
	"model_type: gemma4_text, num_attention_heads: 8, num_key_value_heads: 1, " \
	"head_dim: 256, global_head_dim: 512, hidden_size: 1536, " \
	"intermediate_size: 6144, vocab_size: 262144, sliding_window: 512, " \
	"sliding_window_pattern: 5"
#define TEN KEYS ", num_hidden_layers: 10"
#define SHARED "{" TEN ", num_kv_shared_layers: 5, use_double_wide_mlp: true}"
#define PLAN "{sequence_length: 128, global_batch_size: 1, sharding: fsdp}"
enum { T = 128, H = 1536, LAYERS = 10, P = 256, ROWS = 262144 };
#define ALL ((double)T * LAYERS * P) /* numbers of all layers' inputs */

static double parameters(const char *text, double *adapters)
{
	struct ft_lora lora = { .rank = 16,
				.targets = 1u << FT_LORA_Q | 1u << FT_LORA_K |
					   1u << FT_LORA_V | 1u << FT_LORA_OUT |
					   1u << FT_LORA_GATE | 1u << FT_LORA_UP |
					   1u << FT_LORA_DOWN };

	return parameters_of_text(text, &lora, adapters);
}

/* As Transformers 5.17 counted those of the models it built, adapters too (measurements/probes/
 * h100-2026-11-28-gemma4-small-unseen); a layer's scale is no weight there. */
static void parameters_are_those_of_the_library(void **state)
{
	double adapters;

	(void)state;
	assert_true(parameters(SHARED, &adapters) == 1590510848. + 10);
	assert_true(parameters("{name: gemma4-e2b}", &adapters) == 4628569344. + 35);
	assert_true(adapters == 24158208);
	assert_true(parameters("{name: gemma4-e4b, num_hidden_layers: 12, "
			       "num_kv_shared_layers: 6}",
			       &adapters) == 2609018880. + 12);
}

/* The last five layers have queries alone, and add the gradients of the keys and values that they read. */
static void layers_take_keys_and_values_of_another(void **state)
{
	struct parts p, own;
	double kept;

	(void)state;
	build(&p, SHARED, PLAN, "transformers-5-eager", 1);
	build(&own, "{" TEN "}", PLAN, "transformers-5-eager", 1);
	for (int64_t i = 0; i < LAYERS; i++) {
		assert_int_equal(p.model->layer[i].shares_kv, i >= 5);
		assert_int_equal(p.model->layer[i].intermediate, i < 5 ? 6144 : 12288);
	}
	assert_true(sum_of(p.graph, "q").n == 30 && sum_of(p.graph, "k").n == 15 &&
		    sum_of(p.graph, "v").n == 15);
	assert_true(sum_of(p.graph, "attention").n == 20);
	near_frac(sum_of(p.graph, "keys_sum").bytes, 6. * T * (4 * 2 * 256 + 2 * 512),
		  1e-12);
	assert_true(sum_of(own.graph, "keys_sum").n == 0);
	/* of a layer with a window: queries, keys and values; then queries alone */
	near_frac(sum_in(p.graph, "forward.5", "qk_norm").bytes /
			  sum_in(p.graph, "forward.0", "qk_norm").bytes,
		  8. / 10 * sum_in(p.graph, "forward.5", "q").n /
			  sum_in(p.graph, "forward.0", "q").n,
		  1e-9);
	near_frac(sum_in(p.graph, "forward.5", "rope").bytes /
			  sum_in(p.graph, "forward.0", "rope").bytes,
		  8. / 9 * sum_in(p.graph, "forward.5", "q").n /
			  sum_in(p.graph, "forward.0", "q").n,
		  1e-9);
	/* keys and values, and inputs of their norms (6 bytes more on fp32), less; a wider MLP: 8 bytes a feature more */
	kept = segment_of(p.graph, "forward.5")->net_bytes[FT_MEMORY_ACTIVATIONS] -
	       segment_of(p.graph, "forward.0")->net_bytes[FT_MEMORY_ACTIVATIONS];
	near_frac(kept, T * (8. * 6144 - 2 * 2 * 256 - (2 + 6) * 2 * 256), 1e-9);
	drop(&p);
	drop(&own);
}

/* Megatron splits one product's output by group of heads, and joins the gradients: not where there are queries alone. */
static void queries_alone_are_not_split(void **state)
{
	struct parts p;

	(void)state;
	build(&p, "{name: gemma4-e4b, num_hidden_layers: 12, num_kv_shared_layers: 6}",
	      PLAN, "megatron-core", 1);
	assert_true(sum_of(p.graph, "query_copy").n == 6);
	assert_true(sum_of(p.graph, "qkv_join_back").n == 6);
	drop(&p);
}

/* One product each, 18 bytes a number of all layers forward; in a layer two products, a norm and a sum. */
static void each_layer_reads_an_input_of_its_own(void **state)
{
	struct parts p, none;
	double slice = 2 * ALL + 4. * T * P + 6 * ALL;

	(void)state;
	build(&p, SHARED, PLAN, "transformers-5-eager", 1);
	build(&none,
	      "{" TEN ", num_kv_shared_layers: 5, use_double_wide_mlp: true, "
	      "hidden_size_per_layer_input: 0}",
	      PLAN, "transformers-5-eager", 1);
	near_frac(sum_of(p.graph, "layer_inputs").flop, 3 * 2 * ALL * H, 1e-12);
	near_frac(sum_in(p.graph, "embed", "layer_inputs_scale").bytes, 24 * ALL,
		  1e-12);
	near_frac(sum_of(p.graph, "layer_inputs_sum").bytes, 6 * ALL + 6. * T * H,
		  1e-12);
	near_frac(sum_of(p.graph, "layer_input_in").flop, 3. * LAYERS * 2 * T * H * P,
		  1e-12);
	near_frac(sum_of(p.graph, "layer_input_out").flop, 3. * LAYERS * 2 * T * H * P,
		  1e-12);
	near_frac(sum_of(p.graph, "layer_input_gate").bytes,
		  LAYERS * (10. + 18) * T * P, 1e-12);
	near_frac(sum_of(p.graph, "layer_input_slice").bytes, LAYERS * slice, 1e-12);
	near_frac(sum_of(p.graph, "layer_input_add").bytes, LAYERS * 6. * T * H, 1e-12);
	near_frac(sum_of(p.graph, "embedding_fill").bytes -
			  sum_of(none.graph, "embedding_fill").bytes,
		  2. * LAYERS * P * ROWS, 1e-12);
	assert_true(sum_of(none.graph, "layer_inputs").n == 0 &&
		    sum_of(none.graph, "layer_input_in").n == 0);
	/* inputs of the projection and of the norm, which is on fp32 (6 bytes more); 6 bytes of each narrow number */
	near_frac(segment_of(p.graph, "forward.0")->net_bytes[FT_MEMORY_ACTIVATIONS] -
			  segment_of(none.graph, "forward.0")
				  ->net_bytes[FT_MEMORY_ACTIVATIONS],
		  T * (4. * H + 6 * H + 6 * P), 1e-9);
	near_frac(left_over(p.graph, FT_MEMORY_ACTIVATIONS) + 1, 1, 1e-9);
	drop(&p);
	drop(&none);
}

/* What makes them is frozen under adapters: no gradients of them, and less is kept. In a layer that is what the gradient of
 * its own input alone reads, and inputs of products whose weights are frozen: of the norm's and the GELU's inputs 2 bytes each stay, and 2 of
 * the norm on fp32. */
static void adapters_leave_the_inputs_frozen(void **state)
{
	struct parts p, none;

	(void)state;
	build(&p, SHARED,
	      "{sequence_length: 128, global_batch_size: 1, sharding: fsdp, lora: {rank: "
	      "16, targets: all}}",
	      "transformers-5-eager", 1);
	near_frac(sum_of(p.graph, "layer_inputs").flop, 2 * ALL * H, 1e-12);
	assert_true(sum_of(p.graph, "layer_input_slice").n == 0);
	near_frac(sum_of(p.graph, "layer_input_in").flop, 2. * LAYERS * 2 * T * H * P,
		  1e-12);
	near_frac(segment_of(p.graph, "embed")->net_bytes[FT_MEMORY_ACTIVATIONS],
		  2 * ALL, 1e-12);
	build(&none,
	      "{" TEN ", num_kv_shared_layers: 5, use_double_wide_mlp: true, "
	      "hidden_size_per_layer_input: 0}",
	      "{sequence_length: 128, global_batch_size: 1, sharding: fsdp, lora: {rank: "
	      "16, targets: all}}",
	      "transformers-5-eager", 1);
	near_frac(segment_of(p.graph, "forward.0")->net_bytes[FT_MEMORY_ACTIVATIONS] -
			  segment_of(none.graph, "forward.0")
				  ->net_bytes[FT_MEMORY_ACTIVATIONS],
		  T * (2. * H + 2 * H + 2 * P), 1e-9);
	drop(&p);
	drop(&none);
}

/* In 8 bit what enters each of a layer's two products is cast, and its gradient; beside the embedding it stays in 16 bit. */
static void narrow_products_have_their_inputs_cast(void **state)
{
	struct parts p, none;
	const char *plan = "{sequence_length: 128, global_batch_size: 1, sharding: "
			   "ddp, precision: mxfp8}";

	(void)state;
	build(&p, SHARED, plan, "megatron-core", 1);
	build(&none,
	      "{" TEN ", num_kv_shared_layers: 5, use_double_wide_mlp: true, "
	      "hidden_size_per_layer_input: 0}",
	      plan, "megatron-core", 1);
	assert_int_equal(work_of(p.graph, "layer_input_in")->dtype, FT_MXFP8);
	assert_true(sum_of(p.graph, "cast_fp8").n - sum_of(none.graph, "cast_fp8").n ==
		    4 * LAYERS);
	for (size_t i = 0; i < p.graph->n_works; i++)
		if (p.graph->work[i].kind == FT_GEMM &&
		    !strcmp(p.graph->work[i].name, "layer_inputs"))
			assert_int_equal(p.graph->work[i].dtype, FT_BF16);
	drop(&p);
	drop(&none);
}

static void what_cannot_be_is_refused(void **state)
{
	static const struct {
		const char *keys, *says;
	} wrong[] = {
		{ ", num_kv_shared_layers: 10",
		  "should leave a layer with keys of its own" },
		{ ", num_kv_shared_layers: 6", "layer 5 has no window" },
		{ ", num_kv_shared_layers: -1", "num_kv_shared_layers" },
		{ ", use_double_wide_mlp: true", "it counts none" },
		{ ", num_kv_shared_layers: 5, vocab_size_per_layer_input: 0",
		  "vocab_size_per_layer_input" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct ft_error err;
		char text[1024];

		snprintf(text, sizeof(text), "{" TEN "%s}", wrong[i].keys);
		assert_null(model_of_text(text, &err));
		if (!strstr(err.text, wrong[i].says))
			fail_msg("%s: %s", wrong[i].keys, err.text);
	}
}

/* A model of another type reads nothing of the kind. */
static void other_models_have_none_of_it(void **state)
{
	static const char *const key[] = { "hidden_size_per_layer_input: 256",
					   "num_kv_shared_layers: 2",
					   "use_double_wide_mlp: true" };

	(void)state;
	for (size_t i = 0; i < sizeof(key) / sizeof(*key); i++) {
		struct ft_error err;
		char text[128];

		snprintf(text, sizeof(text), "{name: llama3-8b, %s}", key[i]);
		assert_null(model_of_text(text, &err));
		if (!strstr(err.text, "does nothing in a model of type llama"))
			fail_msg("%s: %s", key[i], err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_are_those_of_the_library),
		cmocka_unit_test(layers_take_keys_and_values_of_another),
		cmocka_unit_test(queries_alone_are_not_split),
		cmocka_unit_test(each_layer_reads_an_input_of_its_own),
		cmocka_unit_test(adapters_leave_the_inputs_frozen),
		cmocka_unit_test(narrow_products_have_their_inputs_cast),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(other_models_have_none_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
