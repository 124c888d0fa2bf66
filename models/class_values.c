/* models/class_values.c - what the class of a model_type sets a key to that a config leaves out */
#include "models/family.h"

#include <string.h>

/* What transformers' class of that type sets where a config leaves a key out: only
 * where published configs do, or where the key is ours. */
static const struct {
	const char *type, *common, *value;
} defaults[] = {
	{ "cohere", "sliding_window_pattern", "4" },
	{ "cohere2_moe", "n_shared_experts", "0" },
	{ "cohere2_moe", "sliding_window_pattern", "4" },
	{ "gemma", "head_dim", "256" },
	{ "gemma2", "attn_logit_softcapping", "50" },
	{ "gemma2", "final_logit_softcapping", "30" },
	{ "gemma2", "head_dim", "256" },
	{ "gemma2", "sliding_window", "4096" },
	{ "gemma2", "sliding_window_pattern", "2" },
	{ "gemma3_text", "head_dim", "256" },
	{ "gemma3_text", "num_attention_heads", "8" },
	{ "gemma3_text", "num_key_value_heads", "4" },
	{ "gemma3_text", "sliding_window", "4096" },
	{ "gemma3_text", "sliding_window_pattern", "6" },
	{ "gemma3_text", "vocab_size", "262208" },
	{ "gemma4_text", "global_head_dim", "512" },
	{ "gemma4_text", "head_dim", "256" },
	{ "gemma4_text", "hidden_size_per_layer_input", "256" },
	{ "gemma4_text", "sliding_window", "512" },
	{ "gemma4_text", "sliding_window_pattern", "6" },
	{ "gpt_neo", "qkv_bias", "false" },
	{ "gpt_oss", "sliding_window_pattern", "2" },
	{ "gptj", "attention_bias", "false" },
	{ "hunyuan_v1_moe", "n_shared_experts", "1" },
	{ "kimi_linear", "first_k_dense_replace", "1" },
	{ "kimi_linear", "full_attention_interval", "4" },
	{ "laguna", "first_k_dense_replace", "1" },
	{ "laguna", "sliding_window_pattern",
	  "1" }, /* layer_types alone say which see less */
	{ "lfm2", "block_auto_adjust_ff_dim", "true" },
	{ "lfm2", "block_ffn_dim_multiplier", "1" },
	{ "lfm2", "block_multiple_of", "256" },
	{ "llama4_text", "attention_chunk_size", "8192" },
	{ "llama4_text", "n_shared_experts", "1" },
	{ "llama4_text", "sliding_window_pattern", "4" },
	/* layer_types alone say which see less, else all see all (configuration_mellum.py, read 2026-11-30) */
	{ "mellum", "sliding_window_pattern", "1" },
	{ "mimo_v2_flash", "first_k_dense_replace", "1" },
	{ "mimo_v2_flash", "head_dim", "192" },
	{ "mimo_v2_flash", "max_window_layers", "1" },
	{ "mimo_v2_flash", "sliding_window", "128" },
	{ "mimo_v2_flash", "sliding_window_pattern", "6" },
	{ "mimo_v2_flash", "v_head_dim", "128" },
	{ "minicpm3", "v_head_dim", "64" },
	{ "olmo_hybrid", "full_attention_interval", "4" },
	{ "olmo_hybrid", "linear_conv_kernel_dim", "4" },
	{ "qwen2", "use_sliding_window", "false" },
	{ "qwen2_moe", "use_sliding_window", "false" },
	{ "qwen3", "head_dim", "128" },
	{ "qwen3", "use_sliding_window", "false" },
	{ "qwen3_5_moe_text", "full_attention_interval", "4" },
	{ "qwen3_5_moe_text", "use_sliding_window", "false" },
	{ "qwen3_5_text", "full_attention_interval", "4" },
	{ "qwen3_5_text", "use_sliding_window", "false" },
	{ "qwen3_moe", "use_sliding_window", "false" },
	{ "qwen3_next", "full_attention_interval", "4" },
	{ "qwen3_next", "head_dim", "256" },
	{ "qwen3_next", "linear_conv_kernel_dim", "4" },
	{ "qwen3_next", "linear_key_head_dim", "128" },
	{ "qwen3_next", "linear_num_key_heads", "16" },
	{ "qwen3_next", "linear_num_value_heads", "32" },
	{ "qwen3_next", "linear_value_head_dim", "128" },
	{ "qwen3_next", "use_sliding_window", "false" },
	{ "stablelm", "use_parallel_residual", "false" },
	{ "step3p5", "first_k_dense_replace", "3" },
	{ "step3p5", "sliding_window_pattern", "1" },
};

const char *family_default(const struct family *family, size_t i, const char **value)
{
	for (size_t k = 0; k < sizeof(defaults) / sizeof(*defaults); k++) {
		if (strcmp(family->type, defaults[k].type) || i--)
			continue;
		*value = defaults[k].value;
		return defaults[k].common;
	}
	return NULL;
}
