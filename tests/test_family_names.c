/* tests/test_family_names.c - what each model_type calls its keys, there and back; of published configs, from the first
 * type of the table to its last */
#include "base/arena.h"
#include "base/node.h"
#include "models/family.h"
#include "tests/check.h"

static const struct {
	const char *type, *own, *common;
} rows[] = {
	{ "afmoe", "global_attn_every_n_layers", "sliding_window_pattern" },
	{ "afmoe", "num_shared_experts", "n_shared_experts" },
	{ "bloom", "n_embed", "hidden_size" },
	{ "chatglm", "multi_query_group_num", "num_key_value_heads" },
	{ "falcon", "parallel_attn", "use_parallel_residual" },
	{ "gpt2", "n_embd", "hidden_size" },
	{ "gpt2", "n_inner", "intermediate_size" },
	{ "gpt_neo", "num_heads", "num_attention_heads" },
	{ "llama4_text", "intermediate_size", "moe_intermediate_size" },
	{ "llama4_text", "intermediate_size_mlp", "intermediate_size" },
	{ "mpt", "attn_config.kv_n_heads", "num_key_value_heads" },
	{ "mpt", "d_model", "hidden_size" },
	{ "opt", "ffn_dim", "intermediate_size" },
	{ "qwen3_moe", "num_experts", "num_local_experts" },
	{ "stablelm", "use_qkv_bias", "qkv_bias" },
	{ "starcoder2", "use_bias", "linear_bias" },
};

static void a_key_has_one_name_of_its_type(void **state)
{
	const struct family *llama = family_find("llama");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct family *f = family_find(rows[i].type);

		assert_non_null(f);
		assert_string_equal(family_common_name(f, rows[i].own), rows[i].common);
		assert_string_equal(family_own_name(f, rows[i].common), rows[i].own);
		assert_string_equal(family_own_name(llama, rows[i].common),
				    rows[i].common);
		assert_string_equal(family_own_name(f, "none_such"), "none_such");
		assert_string_equal(family_common_name(f, "none_such"), "none_such");
	}
}

/* Keys of a map inside, in the table's order. */
static void keys_of_maps_inside_are_listed(void **state)
{
	const struct family *mpt = family_find("mpt");
	const char *common;

	(void)state;
	assert_string_equal(family_inner_key(mpt, 0, &common), "attn_config.alibi");
	assert_string_equal(common, "alibi");
	assert_string_equal(family_inner_key(mpt, 1, &common),
			    "attn_config.attn_pdrop");
	assert_string_equal(common, "attention_dropout");
	assert_string_equal(family_inner_key(mpt, 2, &common),
			    "attn_config.kv_n_heads");
	assert_string_equal(common, "num_key_value_heads");
	for (size_t i = 3; i < 9; i++) {
		const char *own = family_inner_key(mpt, i, &common);

		if (!own)
			return;
		assert_non_null(strchr(own, '.'));
		assert_string_equal(family_own_name(mpt, common), own);
	}
	fail_msg("it has no end");
}

/* A mistake is told under the name that was written, that of the type or the common one, also of keys that
 * it compares with. */
static void mistakes_are_told_by_the_name_that_was_written(void **state)
{
	static const struct {
		const char *model, *says;
	} cases[] = {
		{ "{model_type: gpt2, n_embd: 0, n_layer: 2, n_head: 8, vocab_size: 9}",
		  "n_embd: 0 is not between 1 and" },
		{ "{model_type: gpt2, hidden_size: 0, n_layer: 2, n_head: 8, vocab_size: 9}",
		  "hidden_size: 0 is not between 1 and" },
		{ "{model_type: gpt2, n_embd: 100, n_layer: 2, n_head: 7, vocab_size: 9, "
		  "n_positions: 8}",
		  "n_head: n_embd 100 is not a multiple of 7" },
		{ "{model_type: gpt2, hidden_size: 100, n_layer: 2, n_head: 7, vocab_size: 9, "
		  "n_positions: 8}",
		  "n_head: hidden_size 100 is not a multiple of 7" },
		{ "{model_type: dbrx, d_model: 128, n_layers: 2, n_heads: 8, vocab_size: 9, "
		  "max_seq_len: 8, attn_config: {kv_n_heads: 3}}",
		  "attn_config.kv_n_heads: n_heads 8 is not a multiple of 3" },
		{ "{model_type: dbrx, d_model: 128, n_layers: 2, n_heads: 8, vocab_size: 9, "
		  "max_seq_len: 8, attn_config: {kv_n_heads: 4, qk_ln: true}}",
		  "attn_config.qk_ln is not read in a model of type dbrx, which reads "
		  "others, such as attn_config.kv_n_heads" },
		{ "{model_type: llama, hidden_size: 128, num_hidden_layers: 2, "
		  "attn_config: {alibi: true}}",
		  "attn_config.alibi is not read in a model of type llama; leave it" },
		{ "{model_type: gpt2, n_layer: 2, n_head: 8, vocab_size: 9}",
		  "lacks the key 'n_embd'" },
		{ "{model_type: llama4_text, hidden_size: 64, num_hidden_layers: 2, "
		  "num_attention_heads: 8, vocab_size: 9, max_position_embeddings: 8, "
		  "intermediate_size: 8, intermediate_size_mlp: x, num_local_experts: 2, "
		  "num_experts_per_tok: 1, interleave_moe_layer_step: 2}",
		  "intermediate_size_mlp: 'x' is not a whole number" },
		{ "{model_type: llama4_text, hidden_size: 64, num_hidden_layers: 2, "
		  "num_attention_heads: 8, vocab_size: 9, max_position_embeddings: 8, "
		  "intermediate_size: x, intermediate_size_mlp: 8, num_local_experts: 2, "
		  "num_experts_per_tok: 1, interleave_moe_layer_step: 2}",
		  "intermediate_size: 'x' is not a whole number" },
		/* a scenario's map comes before that of the file below it */
		{ "{name: mpt-7b, d_model: x}", "d_model: 'x' is not a whole number" },
		{ "{name: mpt-7b, hidden_size: x}",
		  "hidden_size: 'x' is not a whole number" },
		{ "{name: llama3-8b, hidden_size: x}",
		  "hidden_size: 'x' is not a whole number" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena mem = { 0 };
		struct ft_error err;
		const char *text = cases[i].model;
		const struct node *n =
			node_read_text(&mem, "m", text, strlen(text), &err);

		ok_or_say(n, err);
		assert_null(ft_model_load(n, &err));
		if (strncmp(err.text, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("%s: '%s' does not begin with '%s'", text, err.text,
				 cases[i].says);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_has_one_name_of_its_type),
		cmocka_unit_test(keys_of_maps_inside_are_listed),
		cmocka_unit_test(mistakes_are_told_by_the_name_that_was_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
