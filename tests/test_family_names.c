/* tests/test_family_names.c - what each model_type calls its keys, there and back; of published configs, from the first
 * type of the table to its last */
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
			    "attn_config.kv_n_heads");
	assert_string_equal(common, "num_key_value_heads");
	for (size_t i = 2; i < 9; i++) {
		const char *own = family_inner_key(mpt, i, &common);

		if (!own)
			return;
		assert_non_null(strchr(own, '.'));
		assert_string_equal(family_own_name(mpt, common), own);
	}
	fail_msg("it has no end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_has_one_name_of_its_type),
		cmocka_unit_test(keys_of_maps_inside_are_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
