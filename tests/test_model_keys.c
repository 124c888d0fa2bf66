/* tests/test_model_keys.c - no key of a model is without effect */

#include "tests/check.h"

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/models.h"
#include "models/family.h"

/* A model and a value for each key, which changes what is built. */
static const struct {
	const char *key, *model, *value;
} keys[] = {
	{ "add_full_attention_sink_bias", "mimo-v2-flash", "true" },
	{ "add_swa_attention_sink_bias", "mimo-v2-flash", "false" },
	{ "alibi", "falcon-7b", "true" },
	{ "attention_bias", "llama3-8b", "true" },
	{ "attention_chunk_size", "llama4-scout", "1024" },
	{ "attention_dropout", "opt-6.7b", "0.1" },
	{ "attention_k_eq_v", "gemma4-31b", "false" },
	{ "attention_out_bias", "llama3-8b", "true" },
	{ "attn_config", "mpt-7b", "{kv_n_heads: 8}" },
	{ "attn_layer_indices", "bamba-9b", "[9, 18]" },
	{ "attn_logit_softcapping", "gemma2-9b", "0" },
	{ "compress_rate_csa", NULL, NULL },
	{ "compress_rate_hca", NULL, NULL },
	{ "compress_rates", NULL, NULL },
	{ "compress_ratios", "deepseek-v4-flash", "[4]" },
	{ "decoder_sparse_step", "qwen3-30b-a3b", "2" },
	{ "block_auto_adjust_ff_dim", "lfm2-1.2b", "false" },
	{ "block_ff_dim", "lfm2-1.2b", "6656" },
	{ "block_ffn_dim_multiplier", "lfm2-1.2b", "1.5" },
	{ "block_multiple_of", "lfm2-1.2b", "1000" },
	{ "expansion_ratio", "falcon-7b", "2" },
	{ "final_logit_softcapping", "gemma2-9b", "0" },
	{ "first_k_dense_replace", "deepseek-v3", "5" },
	{ "full_attention_interval", "qwen3-next-80b-a3b", "2" },
	{ "full_attn_layers", "kimi-linear-48b-a3b", "[4]" },
	{ "gating", "laguna-xs.2", "per-element" },
	{ "global_head_dim", "gemma4-31b", "256" },
	{ "hc_mult", "deepseek-v4-flash", "2" },
	{ "head_dim", "llama3-8b", "64" },
	{ "hidden_act", "opt-6.7b", "relu2" },
	{ "hidden_dropout", "opt-6.7b", "0.1" },
	{ "hidden_size", "llama3-8b", "2048" },
	{ "hybrid_layer_pattern", "mimo-v2-flash", "[1]" },
	{ "hybrid_override_pattern", "nemotron-3-nano-30b-a3b",
	  "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*" },
	{ "index_head_dim", "deepseek-v3.2", "64" },
	{ "index_n_heads", "deepseek-v3.2", "32" },
	{ "index_skip_topk_offset", "glm-5.2", "2" },
	{ "index_topk", "deepseek-v3.2", "1024" },
	{ "index_topk_freq", "glm-5.2", "2" },
	{ "index_topk_pattern", NULL, NULL },
	{ "indexer_types", "glm-5.2", "[full]" },
	{ "intermediate_size", "llama3-8b", "2048" },
	{ "is_causal", "llama3-8b", "false" },
	{ "kv_lora_rank", "deepseek-v3", "256" },
	{ "layer_types", "mistral-7b", "[full_attention]" },
	{ "learned_pos_emb", "mpt-7b", "false" },
	{ "linear_bias", "llama3-8b", "true" },
	{ "linear_conv_kernel_dim", "qwen3-next-80b-a3b", "8" },
	{ "linear_key_head_dim", "qwen3-next-80b-a3b", "64" },
	{ "linear_num_key_heads", "qwen3-next-80b-a3b", "8" },
	{ "linear_num_value_heads", "qwen3-next-80b-a3b", "16" },
	{ "linear_value_head_dim", "qwen3-next-80b-a3b", "64" },
	{ "lm_head_bias", "llama3-8b", "true" },
	{ "mamba_d_ssm", NULL, NULL },
	{ "mamba_expand", NULL, NULL },
	{ "mamba_chunk_size", "nemotron-3-nano-30b-a3b", "256" },
	{ "mamba_rms_norm", "falcon-h1-0.5b", "true" },
	{ "max_position_embeddings", "opt-6.7b", "4096" },
	{ "max_window_layers", "mistral-7b", "4" },
	{ "mlp_bias", "llama3-8b", "true" },
	{ "mlp_layer_types", "qwen3-30b-a3b", "[dense]" },
	{ "mlp_only_layers", "qwen3-30b-a3b", "[0, 1]" },
	{ "moe_intermediate_size", "qwen3-30b-a3b", "1024" },
	{ "moe_layer_freq", "deepseek-v3", "2" },
	{ "moe_layers", "llama4-scout", "[1, 3]" },
	{ "moe_latent_size", "nemotron-3-super-120b-a12b", "512" },
	{ "multi_query", "falcon-7b", "false" },
	{ "n_group", "deepseek-v3", "16" },
	{ "n_shared_experts", "deepseek-v3", "2" },
	{ "new_decoder_architecture", "falcon-7b", "true" },
	{ "no_bias", "opt-6.7b", "true" },
	{ "no_rope_layers", "llama4-scout", "[1]" },
	{ "num_attention_heads", "llama3-8b", "64" },
	{ "num_attention_heads_per_layer", "laguna-xs.2", "[48]" },
	{ "num_experts_per_tok", "qwen3-30b-a3b", "4" },
	{ "num_global_key_value_heads", "gemma4-31b", "8" },
	{ "num_hidden_layers", "llama3-8b", "4" },
	{ "num_key_value_heads", "llama3-8b", "4" },
	{ "num_ln_in_parallel_attn", "falcon-40b", "1" },
	{ "num_local_experts", "mixtral-8x7b", "16" },
	{ "num_nextn_predict_layers", "glm4.5-air", "1" },
	{ "o_groups", "deepseek-v4-flash", "4" },
	{ "o_lora_rank", "deepseek-v4-flash", "512" },
	{ "position_embedding_type", "granite-4.0-h-small", "rope" },
	{ "q_lora_rank", "deepseek-v3", "256" },
	{ "qk_nope_head_dim", "deepseek-v3", "64" },
	{ "qk_norm", "llama3-8b", "true" },
	{ "qk_rope_head_dim", "deepseek-v3", "32" },
	{ "qkv_bias", "llama3-8b", "true" },
	{ "shared_expert_intermediate_size", "qwen3-next-80b-a3b", "256" },
	{ "sliding_window", "llama3-8b", "1024" },
	{ "sliding_window_pattern", "gemma3-27b", "2" },
	{ "swa_head_dim", "mimo-v2-flash", "128" },
	{ "swa_num_attention_heads", "mimo-v2-flash", "32" },
	{ "swa_num_key_value_heads", "mimo-v2-flash", "4" },
	{ "swa_v_head_dim", "mimo-v2-flash", "64" },
	{ "tie_word_embeddings", "llama3-8b", "true" },
	{ "topk_group", "deepseek-v3", "2" },
	{ "hidden_size_per_layer_input", "gemma4-e2b", "128" },
	{ "num_kv_shared_layers", "gemma4-e2b", "19" },
	{ "use_double_wide_mlp", "gemma4-e2b", "false" },
	{ "vocab_size_per_layer_input", "gemma4-e2b", "1000" },
	{ "use_expert_bias", "lfm2-8b-a1b", "false" },
	{ "use_parallel_residual", "gpt-neox-20b", "false" },
	{ "use_sliding_window", "mistral-7b", "false" },
	{ "v_head_dim", "deepseek-v3", "64" },
	{ "use_post_norm", "llama3-8b", "true" },
	{ "vocab_size", "llama3-8b", "1000" },
	{ "vocab_size_multiple", "llama3-8b", "1000" },
	/* names, or read under other names, or refused when they would matter; and a list of 52 words and a key that
	 * needs another beside it, for which see tests/test_state_space.c; letters of all layers: tests/test_indexed.c; entries of
	 * other sizes, which two keys say alike: tests/test_compressed.c; what is said twice, or of predicted tokens:
	 * tests/test_head_gates.c */
	{ "attention_other_setting", NULL, NULL },
	{ "attn_res_block_size", NULL, NULL },
	{ "conv_bias", NULL, NULL },
	{ "enable_moe_block", NULL, NULL },
	{ "gating_types", NULL, NULL },
	{ "ffn_config", NULL, NULL },
	{ "layers_block_type", NULL, NULL },
	{ "linear_attn_config", NULL, NULL },
	{ "mtp_hybrid_override_pattern", NULL, NULL },
	{ "mtp_layer_types", NULL, NULL },
	{ "mtp_mlp_layer_types", NULL, NULL },
	{ "model_type", NULL, NULL },
	{ "name", NULL, NULL },
	{ "provenance", NULL, NULL },
	{ "title", NULL, NULL },
	{ "word_embed_proj_dim", NULL, NULL },
};

enum { KEYS = sizeof(keys) / sizeof(*keys) };

static struct ft_model *named(const char *yaml)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *node = node_read_text(&mem, "test.yaml", yaml, strlen(yaml), &err);
	struct ft_model *m = ft_model_load(node, &err);

	if (!m)
		fail_msg("%s: %s", yaml, err.text);
	arena_release(&mem);
	return m;
}

/* All that a model is, in one order; layers too. */
static uint64_t print_of(const struct ft_model *m)
{
	struct ft_model plain = *m;
	uint64_t h = 1469598103934665603u;
	const unsigned char *byte = (const unsigned char *)&plain;

	memset(&plain.digest, 0, sizeof(plain.digest));
	plain.name = plain.type = NULL;
	plain.layer = NULL;
	plain.from = NULL;
	plain.config = NULL;
	plain.passed_over = NULL;
	for (size_t i = 0; i < sizeof(plain); i++)
		h = (h ^ byte[i]) * 1099511628211u;
	byte = (const unsigned char *)m->layer;
	for (size_t i = 0; i < (size_t)m->n_layers * sizeof(*m->layer); i++)
		h = (h ^ byte[i]) * 1099511628211u;
	return h;
}

static void every_key_of_a_model_has_an_effect(void **state)
{
	size_t n = 0;

	(void)state;
	for (const char *key; (key = family_common(n)); n++) {
		size_t i = 0;

		while (i < KEYS && strcmp(key, keys[i].key))
			i++;
		if (i == KEYS)
			fail_msg("%s is not tried", key);
	}
	assert_int_equal(n, KEYS);
	for (size_t i = 0; i < KEYS; i++) {
		struct ft_model *with, *without;
		char yaml[200];

		if (!keys[i].model)
			continue;
		snprintf(yaml, sizeof(yaml), "{name: %s, %s: %s}", keys[i].model,
			 keys[i].key, keys[i].value);
		with = named(yaml);
		without = named(keys[i].model);
		if (print_of(with) == print_of(without))
			fail_msg("%s of %s changes nothing", keys[i].key,
				 keys[i].model);
		ft_model_free(with);
		ft_model_free(without);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_of_a_model_has_an_effect),
	};

	return cmocka_run_group_tests_name("models/keys", tests, NULL, NULL);
}
