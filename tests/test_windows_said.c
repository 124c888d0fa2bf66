/*
 * tests/test_windows_said.c - what is said of windows, and of widths, counts: a scenario's key that another one hides is refused
 */
#include "tests/config_json.h"

#define SHAPE \
	"hidden_size: 256, num_hidden_layers: 4, num_attention_heads: 2, " \
	"intermediate_size: 512, vocab_size: 1000"
#define NO_WINDOW \
	": says which layers have a window, and there is none; say sliding_window, too"

static void a_key_of_no_window_is_refused(void **state)
{
	static const char *const bad[][2] = {
		{ "{model_type: qwen3, " SHAPE ", sliding_window: 512}",
		  "sliding_window: does nothing while use_sliding_window is false; say "
		  "use_sliding_window: true, too" },
		{ "{model_type: llama, " SHAPE ", layer_types: [sliding_attention]}",
		  "layer_types" NO_WINDOW },
		{ "{name: llama3-8b, num_hidden_layers: 2, layer_types: "
		  "[sliding_attention, full_attention]}",
		  "layer_types" NO_WINDOW },
		{ "{name: qwen3-8b, use_sliding_window: true}",
		  "use_sliding_window: there is no window to use; say sliding_window, "
		  "too" },
		{ "{name: llama3-8b, max_window_layers: 8}",
		  "max_window_layers" NO_WINDOW },
		{ "{name: llama3-8b, sliding_window_pattern: 2}",
		  "sliding_window_pattern" NO_WINDOW },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct ft_error err;

		assert_null(model_of_text(bad[i][0], &err));
		assert_string_equal(err.text, bad[i][1]);
	}
}

/* Keys that a few old types have, in a model of another. */
static void another_types_keys_are_refused(void **state)
{
	static const char *const bad[][2] = {
		{ "multi_query: true", "gpt_bigcode" },
		{ "new_decoder_architecture: true", "falcon" },
		{ "num_ln_in_parallel_attn: 2", "falcon" },
		{ "learned_pos_emb: true", "mpt" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct ft_error err;
		char text[128], says[64];

		snprintf(text, sizeof(text), "{name: llama3-8b, %s}", bad[i][0]);
		snprintf(says, sizeof(says), "such as %s", bad[i][1]);
		assert_null(model_of_text(text, &err));
		if (!strstr(err.text, "does nothing in a model of type llama") ||
		    !strstr(err.text, says))
			fail_msg("%s: %s", bad[i][0], err.text);
	}
}

/* Types of which something is not simulated: what, not the nearest name. */
static void what_new_types_lack_is_told(void **state)
{
	static const char *const bad[][2] = {
		{ "minimax_m3_vl_text", "its attention to chosen blocks of tokens" },
		{ "minimax", "its lightning attention" },
		{ "hy_v4", "its hyper-connections" },
		{ "longcat_flash", "its layers of two attentions" },
		{ "axk2", "its gated norms" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct ft_error err;
		char text[64];

		snprintf(text, sizeof(text), "{model_type: %s}", bad[i][0]);
		assert_null(model_of_text(text, &err));
		if (!strstr(err.text, bad[i][1]))
			fail_msg("%s: %s", bad[i][0], err.text);
	}
}

static void a_factor_of_no_width_is_refused(void **state)
{
	static const char *const bad[][2] = {
		{ "{name: llama3-8b, expansion_ratio: 8}",
		  "expansion_ratio: does nothing beside intermediate_size; say null for "
		  "that" },
		{ "{model_type: gpt, " SHAPE ", expansion_ratio: 8}",
		  "expansion_ratio: does nothing beside intermediate_size; say null for "
		  "that" },
		{ "{name: qwen3-next-80b-a3b, n_shared_experts: 2}",
		  "n_shared_experts: does nothing beside "
		  "shared_expert_intermediate_size; say null for that" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct ft_error err;

		assert_null(model_of_text(bad[i][0], &err));
		assert_string_equal(err.text, bad[i][1]);
	}
}

/* Where the scenario says all of it, or nothing that asks for a window, it is taken. */
static void what_counts_or_asks_for_nothing_may_stand(void **state)
{
	static const char *const good[] = {
		"{name: llama3-8b, num_hidden_layers: 2, sliding_window: 64, "
		"layer_types: [sliding_attention, full_attention]}",
		"{name: llama3-8b, layer_types: [full_attention]}",
		"{name: qwen3-8b, use_sliding_window: false, sliding_window: 64, "
		"max_window_layers: 8}",
		"{model_type: qwen2, " SHAPE ", use_sliding_window: false, "
		"sliding_window: 64, max_window_layers: 2}",
		"{name: qwen3-8b, use_sliding_window: true, sliding_window: 64}",
		"{name: gemma2-9b, sliding_window_pattern: 3}",
		"{name: mpt-7b, intermediate_size: null, expansion_ratio: 8}",
		"{name: nemotron-3-nano-30b-a3b, n_shared_experts: 1, "
		"moe_shared_expert_intermediate_size: 3712}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		struct ft_error err = { .text = "" };
		struct ft_model *m = model_of_text(good[i], &err);

		ok_or_say(m, err);
		ft_model_free(m);
	}
}

/* Mellum's class has no use_sliding_window: layer_types alone say where its windows are, and without them there are none. */
static void mellum_has_windows_where_layer_types_say(void **state)
{
	static const struct {
		const char *more;
		int64_t window[4];
	} of[] = {
		{ "'layer_types': ['full_attention', 'sliding_attention', "
		  "'sliding_attention', 'full_attention'], ",
		  { 0, 1024, 1024, 0 } },
		{ "'use_sliding_window': true, 'layer_types': ['sliding_attention', "
		  "'sliding_attention', 'full_attention', 'full_attention'], ",
		  { 1024, 1024, 0, 0 } },
		{ "", { 0 } },
		{ "'use_sliding_window': true, ", { 0 } },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(of) / sizeof(*of); k++) {
		struct arena mem = { 0 };
		struct ft_error err = { .text = "" };
		const char *text = arena_printf(
			&mem,
			"{'model_type': 'mellum', %s'sliding_window': 1024, "
			"'hidden_size': 256, 'num_hidden_layers': 4, "
			"'num_attention_heads': 2, 'intermediate_size': 512, "
			"'vocab_size': 1000, 'num_local_experts': 8, "
			"'num_experts_per_tok': 2, 'moe_intermediate_size': 128}",
			of[k].more);
		struct ft_model *m = model_of_json(json_of(text), "", &err);

		ok_or_say(m, err);
		for (int64_t i = 0; i < 4; i++)
			assert_int_equal(m->layer[i].window, of[k].window[i]);
		ft_model_free(m);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_of_no_window_is_refused),
		cmocka_unit_test(another_types_keys_are_refused),
		cmocka_unit_test(what_new_types_lack_is_told),
		cmocka_unit_test(a_factor_of_no_width_is_refused),
		cmocka_unit_test(what_counts_or_asks_for_nothing_may_stand),
		cmocka_unit_test(mellum_has_windows_where_layer_types_say),
	};

	return cmocka_run_group_tests_name("windows said", tests, NULL, NULL);
}
