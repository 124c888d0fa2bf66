/* models/names.c - what each model_type calls its keys, and which keys there are */
#include "models/family.h"

#include <string.h>

#include "base/limits.h"

/* Names of one type's own. One with a dot lies in a map inside. */
static const struct {
	const char *type, *own, *common;
} renamed[] = {
	{ "afmoe", "global_attn_every_n_layers", "sliding_window_pattern" },
	{ "afmoe", "num_dense_layers", "first_k_dense_replace" },
	{ "afmoe", "num_experts", "num_local_experts" },
	{ "afmoe", "num_shared_experts", "n_shared_experts" },
	{ "aria_text", "moe_num_experts", "num_local_experts" },
	{ "aria_text", "moe_num_shared_experts", "n_shared_experts" },
	{ "aria_text", "moe_topk", "num_experts_per_tok" },
	{ "bailing_moe", "num_experts", "num_local_experts" },
	{ "bailing_moe", "num_shared_experts", "n_shared_experts" },
	{ "bailing_moe", "use_bias", "linear_bias" },
	{ "bailing_moe", "use_qk_norm", "qk_norm" },
	{ "bailing_moe", "use_qkv_bias", "qkv_bias" },
	{ "axk1", "n_routed_experts", "num_local_experts" },
	{ "baichuan", "model_max_length", "max_position_embeddings" },
	{ "bamba", "mamba_d_conv", "linear_conv_kernel_dim" },
	{ "bamba", "mamba_d_head", "linear_value_head_dim" },
	{ "bamba", "mamba_d_state", "linear_key_head_dim" },
	{ "bamba", "mamba_n_groups", "linear_num_key_heads" },
	{ "bamba", "mamba_n_heads", "linear_num_value_heads" },
	{ "bloom", "n_embed", "hidden_size" },
	{ "bloom", "n_head", "num_attention_heads" },
	{ "bloom", "n_layer", "num_hidden_layers" },
	{ "bloom", "seq_length", "max_position_embeddings" },
	{ "chatglm", "add_bias_linear", "linear_bias" },
	{ "chatglm", "add_qkv_bias", "qkv_bias" },
	{ "chatglm", "ffn_hidden_size", "intermediate_size" },
	{ "chatglm", "kv_channels", "head_dim" },
	{ "chatglm", "multi_query_group_num", "num_key_value_heads" },
	{ "chatglm", "num_layers", "num_hidden_layers" },
	{ "chatglm", "padded_vocab_size", "vocab_size" },
	{ "chatglm", "seq_length", "max_position_embeddings" },
	{ "cohere", "use_qk_norm", "qk_norm" },
	{ "cohere2_moe", "intermediate_size", "moe_intermediate_size" },
	{ "cohere2_moe", "num_experts", "num_local_experts" },
	{ "cohere2_moe", "num_shared_experts", "n_shared_experts" },
	{ "cohere2_moe", "prefix_dense_intermediate_size", "intermediate_size" },
	{ "dbrx", "attn_config.kv_n_heads", "num_key_value_heads" },
	{ "dbrx", "d_model", "hidden_size" },
	{ "dbrx", "ffn_config.ffn_hidden_size", "intermediate_size" },
	{ "dbrx", "ffn_config.moe_num_experts", "num_local_experts" },
	{ "dbrx", "ffn_config.moe_top_k", "num_experts_per_tok" },
	{ "dbrx", "max_seq_len", "max_position_embeddings" },
	{ "dbrx", "n_heads", "num_attention_heads" },
	{ "dbrx", "n_layers", "num_hidden_layers" },
	{ "deepseek", "n_routed_experts", "num_local_experts" },
	{ "deepseek_v2", "n_routed_experts", "num_local_experts" },
	{ "deepseek_v3", "n_routed_experts", "num_local_experts" },
	{ "deepseek_v32", "n_routed_experts", "num_local_experts" },
	{ "deepseek_v4", "compress_rates.compressed_sparse_attention",
	  "compress_rate_csa" },
	{ "deepseek_v4", "compress_rates.heavily_compressed_attention",
	  "compress_rate_hca" },
	{ "deepseek_v4", "n_routed_experts", "num_local_experts" },
	{ "dots1", "n_routed_experts", "num_local_experts" },
	{ "ernie4_5", "use_bias", "linear_bias" },
	{ "ernie4_5_moe", "moe_k", "num_experts_per_tok" },
	{ "ernie4_5_moe", "moe_layer_interval", "decoder_sparse_step" },
	{ "ernie4_5_moe", "moe_layer_start_index", "first_k_dense_replace" },
	{ "ernie4_5_moe", "moe_num_experts", "num_local_experts" },
	{ "ernie4_5_moe", "moe_num_shared_experts", "n_shared_experts" },
	{ "ernie4_5_moe", "use_bias", "linear_bias" },
	{ "exaone", "activation_function", "hidden_act" },
	{ "exaone", "num_layers", "num_hidden_layers" },
	{ "exaone_moe", "num_experts", "num_local_experts" },
	{ "exaone_moe", "num_shared_experts", "n_shared_experts" },
	{ "falcon", "bias", "linear_bias" },
	{ "falcon", "ffn_hidden_size", "intermediate_size" },
	{ "falcon", "n_head", "num_attention_heads" },
	{ "falcon", "n_head_kv", "num_key_value_heads" },
	{ "falcon", "n_layer", "num_hidden_layers" },
	{ "falcon", "num_kv_heads", "num_key_value_heads" },
	{ "falcon", "parallel_attn", "use_parallel_residual" },
	{ "falcon_h1", "mamba_d_conv", "linear_conv_kernel_dim" },
	{ "falcon_h1", "mamba_d_head", "linear_value_head_dim" },
	{ "falcon_h1", "mamba_d_state", "linear_key_head_dim" },
	{ "falcon_h1", "mamba_n_groups", "linear_num_key_heads" },
	{ "falcon_h1", "mamba_n_heads", "linear_num_value_heads" },
	{ "flex_olmo", "num_experts", "num_local_experts" },
	{ "glm4_moe", "n_routed_experts", "num_local_experts" },
	{ "gemma4_text", "num_experts", "num_local_experts" },
	{ "gemma4_text", "top_k_experts", "num_experts_per_tok" },
	{ "glm4_moe", "use_qk_norm", "qk_norm" },
	{ "gpt2", "activation_function", "hidden_act" },
	{ "gpt2", "attn_pdrop", "attention_dropout" },
	{ "gpt2", "n_embd", "hidden_size" },
	{ "gpt2", "n_head", "num_attention_heads" },
	{ "gpt2", "n_inner", "intermediate_size" },
	{ "gpt2", "n_layer", "num_hidden_layers" },
	{ "gpt2", "n_positions", "max_position_embeddings" },
	{ "gpt2", "resid_pdrop", "hidden_dropout" },
	{ "gpt_bigcode", "activation_function", "hidden_act" },
	{ "gpt_bigcode", "attn_pdrop", "attention_dropout" },
	{ "gpt_bigcode", "n_embd", "hidden_size" },
	{ "gpt_bigcode", "n_head", "num_attention_heads" },
	{ "gpt_bigcode", "n_inner", "intermediate_size" },
	{ "gpt_bigcode", "n_layer", "num_hidden_layers" },
	{ "gpt_bigcode", "n_positions", "max_position_embeddings" },
	{ "gpt_bigcode", "resid_pdrop", "hidden_dropout" },
	{ "gpt_neo", "activation_function", "hidden_act" },
	{ "gpt_neo", "num_heads", "num_attention_heads" },
	{ "gpt_neo", "num_layers", "num_hidden_layers" },
	{ "gpt_neo", "resid_dropout", "hidden_dropout" },
	{ "gpt_neo", "window_size", "sliding_window" },
	{ "gpt_oss", "experts_per_token", "num_experts_per_tok" },
	{ "gptj", "activation_function", "hidden_act" },
	{ "gptj", "attn_pdrop", "attention_dropout" },
	{ "gptj", "n_embd", "hidden_size" },
	{ "gptj", "n_head", "num_attention_heads" },
	{ "gptj", "n_inner", "intermediate_size" },
	{ "gptj", "n_layer", "num_hidden_layers" },
	{ "gptj", "n_positions", "max_position_embeddings" },
	{ "gptj", "resid_pdrop", "hidden_dropout" },
	{ "granitemoe", "shared_intermediate_size", "shared_expert_intermediate_size" },
	{ "granitemoe_swa", "shared_intermediate_size",
	  "shared_expert_intermediate_size" },
	{ "granitemoehybrid", "mamba_d_conv", "linear_conv_kernel_dim" },
	{ "granitemoehybrid", "mamba_d_head", "linear_value_head_dim" },
	{ "granitemoehybrid", "mamba_d_state", "linear_key_head_dim" },
	{ "granitemoehybrid", "mamba_n_groups", "linear_num_key_heads" },
	{ "granitemoehybrid", "mamba_n_heads", "linear_num_value_heads" },
	{ "granitemoehybrid", "shared_intermediate_size",
	  "shared_expert_intermediate_size" },
	{ "hunyuan_v1_moe", "moe_topk", "num_experts_per_tok" },
	{ "hunyuan_v1_moe", "num_experts", "num_local_experts" },
	{ "hunyuan_v1_moe", "num_shared_expert", "n_shared_experts" },
	{ "hy_v3", "num_experts", "num_local_experts" },
	{ "hy_v3", "num_shared_experts", "n_shared_experts" },
	{ "internlm", "bias", "attention_bias" },
	{ "internlm2", "bias", "attention_bias" },
	{ "kimi_linear", "linear_attn_config.full_attn_layers", "full_attn_layers" },
	{ "kimi_linear", "linear_attn_config.head_dim", "linear_key_head_dim" },
	{ "kimi_linear", "linear_attn_config.num_heads", "linear_num_key_heads" },
	{ "kimi_linear", "linear_attn_config.short_conv_kernel_size",
	  "linear_conv_kernel_dim" },
	{ "kimi_linear", "model_max_length", "max_position_embeddings" },
	{ "kimi_linear", "num_expert_group", "n_group" },
	{ "kimi_linear", "num_experts", "num_local_experts" },
	{ "kimi_linear", "num_experts_per_token", "num_experts_per_tok" },
	{ "kimi_linear", "num_shared_experts", "n_shared_experts" },
	{ "laguna", "num_experts", "num_local_experts" },
	{ "lfm2", "conv_L_cache", "linear_conv_kernel_dim" },
	{ "lfm2", "full_attn_idxs", "attn_layer_indices" },
	{ "lfm2", "tie_embedding", "tie_word_embeddings" },
	{ "lfm2_moe", "conv_L_cache", "linear_conv_kernel_dim" },
	{ "lfm2_moe", "full_attn_idxs", "attn_layer_indices" },
	{ "lfm2_moe", "num_dense_layers", "first_k_dense_replace" },
	{ "lfm2_moe", "num_experts", "num_local_experts" },
	{ "lfm2_moe", "tie_embedding", "tie_word_embeddings" },
	{ "llama4_text", "interleave_moe_layer_step", "decoder_sparse_step" },
	{ "llama4_text", "intermediate_size", "moe_intermediate_size" },
	{ "llama4_text", "intermediate_size_mlp", "intermediate_size" },
	{ "llama4_text", "no_rope_layer_interval", "sliding_window_pattern" },
	{ "llama4_text", "use_qk_norm", "qk_norm" },
	{ "mamba2", "chunk_size", "mamba_chunk_size" },
	{ "mamba2", "conv_kernel", "linear_conv_kernel_dim" },
	{ "mamba2", "expand", "mamba_expand" },
	{ "mamba2", "head_dim", "linear_value_head_dim" },
	{ "mamba2", "n_groups", "linear_num_key_heads" },
	{ "mamba2", "num_heads", "linear_num_value_heads" },
	{ "mamba2", "state_size", "linear_key_head_dim" },
	{ "mellum", "num_experts", "num_local_experts" },
	{ "mimo_v2_flash", "n_routed_experts", "num_local_experts" },
	{ "mpt", "attn_config.alibi", "alibi" },
	{ "mpt", "attn_config.attn_pdrop", "attention_dropout" },
	{ "mpt", "attn_config.kv_n_heads", "num_key_value_heads" },
	{ "mpt", "d_model", "hidden_size" },
	{ "mpt", "max_seq_len", "max_position_embeddings" },
	{ "mpt", "n_heads", "num_attention_heads" },
	{ "mpt", "n_layers", "num_hidden_layers" },
	{ "mpt", "resid_pdrop", "hidden_dropout" },
	{ "nemotron_h", "attention_head_dim", "head_dim" },
	{ "nemotron_h", "chunk_size", "mamba_chunk_size" },
	{ "nemotron_h", "conv_kernel", "linear_conv_kernel_dim" },
	{ "nemotron_h", "mamba_head_dim", "linear_value_head_dim" },
	{ "nemotron_h", "mamba_num_heads", "linear_num_value_heads" },
	{ "nemotron_h", "mlp_hidden_act", "hidden_act" },
	{ "nemotron_h", "moe_shared_expert_intermediate_size",
	  "shared_expert_intermediate_size" },
	{ "nemotron_h", "n_groups", "linear_num_key_heads" },
	{ "nemotron_h", "n_routed_experts", "num_local_experts" },
	{ "nemotron_h", "ssm_state_size", "linear_key_head_dim" },
	{ "olmoe", "num_experts", "num_local_experts" },
	{ "opt", "activation_function", "hidden_act" },
	{ "opt", "dropout", "hidden_dropout" },
	{ "opt", "enable_bias", "linear_bias" },
	{ "opt", "ffn_dim", "intermediate_size" },
	{ "persimmon", "qk_layernorm", "qk_norm" },
	{ "phi", "qk_layernorm", "qk_norm" },
	{ "phi", "resid_pdrop", "hidden_dropout" },
	{ "phi3", "resid_pdrop", "hidden_dropout" },
	{ "qwen", "kv_channels", "head_dim" },
	{ "qwen", "seq_length", "max_position_embeddings" },
	{ "qwen2_moe", "num_experts", "num_local_experts" },
	{ "qwen3_5_moe_text", "mtp_num_hidden_layers", "num_nextn_predict_layers" },
	{ "qwen3_5_moe_text", "num_experts", "num_local_experts" },
	{ "qwen3_5_text", "mtp_num_hidden_layers", "num_nextn_predict_layers" },
	{ "qwen3_moe", "num_experts", "num_local_experts" },
	{ "qwen3_next", "num_experts", "num_local_experts" },
	{ "seed_oss", "residual_dropout", "hidden_dropout" },
	{ "solar_open", "n_routed_experts", "num_local_experts" },
	{ "stablelm", "qk_layernorm", "qk_norm" },
	{ "stablelm", "use_qkv_bias", "qkv_bias" },
	{ "starcoder2", "residual_dropout", "hidden_dropout" },
	{ "starcoder2", "use_bias", "linear_bias" },
	{ "step3p5", "attention_other_setting.head_dim", "swa_head_dim" },
	{ "step3p5", "attention_other_setting.num_attention_groups",
	  "swa_num_key_value_heads" },
	{ "step3p5", "attention_other_setting.num_attention_heads",
	  "swa_num_attention_heads" },
	{ "step3p5", "moe_layers_enum", "moe_layers" },
	{ "step3p5", "moe_num_experts", "num_local_experts" },
	{ "step3p5", "moe_top_k", "num_experts_per_tok" },
	{ "step3p5", "n_routed_experts", "num_local_experts" },
	{ "step3p5", "num_attention_groups", "num_key_value_heads" },
	{ "step3p5", "num_mtp_layers", "num_nextn_predict_layers" },
	{ "step3p5", "num_sliding_attention_heads", "swa_num_attention_heads" },
	{ "step3p5", "share_expert_dim", "shared_expert_intermediate_size" },
	{ "step3p5", "share_expert_dims", "shared_expert_intermediate_size" },
	{ "step3p5", "use_head_wise_attn_gate", "gating" },
	{ "step3p5", "use_moe_router_bias", "use_expert_bias" },
};

/* The common names: those of llama's config.json, and what else some need; which models have them, and the most that they
 * may say, 0: docs/limits.md has no bound of it. */
static const struct common_key {
	const char *name;
	enum family_key_of of;
	int64_t most;
} common_keys[] = {
	{ .name = "add_full_attention_sink_bias", .of = LOCAL },
	{ .name = "add_swa_attention_sink_bias", .of = LOCAL },
	{ .name = "alibi" },
	{ .name = "attention_bias" },
	{ .name = "attention_chunk_size", .of = CHUNKED },
	{ .name = "attention_dropout" },
	{ .name = "attention_k_eq_v", .of = GLOBAL },
	{ .name = "attention_out_bias" },
	{ .name = "attention_other_setting", .of = INSIDE },
	{ .name = "attn_config", .of = INSIDE },
	{ .name = "attn_layer_indices" },
	{ .name = "attn_res_block_size", .of = DECAY },
	{ .name = "attn_logit_softcapping" },
	{ .name = "block_auto_adjust_ff_dim", .of = CONV },
	{ .name = "block_ff_dim", .of = CONV, .most = LIMIT_MLP },
	{ .name = "block_ffn_dim_multiplier", .of = CONV },
	{ .name = "block_multiple_of", .of = CONV, .most = LIMIT_MLP },
	{ .name = "compress_rate_csa", .of = COMPRESSED, .most = 1 << 20 },
	{ .name = "compress_rate_hca", .of = COMPRESSED, .most = 1 << 20 },
	{ .name = "compress_rates", .of = INSIDE },
	{ .name = "compress_ratios", .of = COMPRESSED },
	{ .name = "conv_bias", .of = CONV },
	{ .name = "decoder_sparse_step", .of = ROUTED },
	{ .name = "enable_moe_block", .of = GLOBAL },
	{ .name = "expansion_ratio" },
	{ .name = "ffn_config", .of = INSIDE },
	{ .name = "final_logit_softcapping" },
	{ .name = "first_k_dense_replace", .of = ROUTED },
	{ .name = "full_attention_interval" },
	{ .name = "full_attn_layers", .of = DECAY },
	{ .name = "gating", .of = HEADED },
	{ .name = "gating_types", .of = HEADED },
	{ .name = "global_head_dim", .of = GLOBAL, .most = LIMIT_HEAD_DIM },
	{ .name = "hc_mult", .of = COMPRESSED, .most = 64 },
	{ .name = "head_dim", .most = LIMIT_HEAD_DIM },
	{ .name = "hidden_act" },
	{ .name = "hidden_dropout" },
	{ .name = "hidden_size", .most = LIMIT_HIDDEN },
	{ .name = "hidden_size_per_layer_input", .of = GLOBAL, .most = LIMIT_HIDDEN },
	{ .name = "hybrid_layer_pattern", .of = LOCAL },
	{ .name = "hybrid_override_pattern" },
	{ .name = "index_head_dim", .of = INDEXED, .most = LIMIT_HEAD_DIM },
	{ .name = "index_n_heads", .of = INDEXED, .most = LIMIT_HEADS },
	{ .name = "index_skip_topk_offset", .of = INDEXED, .most = LIMIT_LAYERS },
	{ .name = "index_topk", .of = INDEXED },
	{ .name = "index_topk_freq", .of = INDEXED, .most = LIMIT_LAYERS },
	{ .name = "index_topk_pattern", .of = INDEXED },
	{ .name = "indexer_types", .of = INDEXED },
	{ .name = "intermediate_size", .most = LIMIT_MLP },
	{ .name = "is_causal" },
	{ .name = "kv_lora_rank", .of = LATENT, .most = LIMIT_HIDDEN },
	{ .name = "layer_types" },
	{ .name = "layers_block_type" },
	{ .name = "learned_pos_emb", .of = TABLED },
	{ .name = "linear_attn_config", .of = INSIDE },
	{ .name = "linear_bias" },
	{ .name = "linear_conv_kernel_dim", .most = LIMIT_HEAD_DIM },
	{ .name = "linear_key_head_dim", .most = LIMIT_HEAD_DIM },
	{ .name = "linear_num_key_heads", .most = LIMIT_HEADS },
	{ .name = "linear_num_value_heads", .most = LIMIT_HEADS },
	{ .name = "linear_value_head_dim", .most = LIMIT_HEAD_DIM },
	{ .name = "lm_head_bias" },
	{ .name = "mamba_chunk_size", .most = LIMIT_HEAD_DIM },
	{ .name = "mamba_d_ssm", .of = BESIDE, .most = LIMIT_HIDDEN },
	{ .name = "mamba_expand", .most = LIMIT_HEAD_DIM },
	{ .name = "mamba_rms_norm", .of = BESIDE },
	{ .name = "max_position_embeddings" },
	{ .name = "max_window_layers" },
	{ .name = "mlp_bias" },
	{ .name = "mlp_layer_types", .of = ROUTED },
	{ .name = "mlp_only_layers", .of = ROUTED },
	{ .name = "model_type" },
	{ .name = "moe_intermediate_size", .of = ROUTED, .most = LIMIT_MLP },
	{ .name = "moe_latent_size", .of = ROUTED, .most = LIMIT_HIDDEN },
	{ .name = "moe_layer_freq", .of = ROUTED },
	{ .name = "moe_layers", .of = ROUTED },
	{ .name = "mtp_hybrid_override_pattern" },
	{ .name = "mtp_layer_types", .of = PADDED },
	{ .name = "mtp_mlp_layer_types", .of = PADDED },
	{ .name = "multi_query", .of = SWITCHED },
	{ .name = "n_group", .of = ROUTED },
	{ .name = "n_shared_experts", .of = ROUTED },
	{ .name = "name" },
	{ .name = "new_decoder_architecture", .of = FALCON },
	{ .name = "no_bias" },
	{ .name = "no_rope_layers" },
	{ .name = "num_attention_heads", .most = LIMIT_HEADS },
	{ .name = "num_attention_heads_per_layer", .of = HEADED },
	{ .name = "num_experts_per_tok", .of = ROUTED, .most = LIMIT_EXPERTS },
	{ .name = "num_global_key_value_heads", .of = GLOBAL, .most = LIMIT_HEADS },
	{ .name = "num_hidden_layers", .most = LIMIT_LAYERS },
	{ .name = "num_key_value_heads", .most = LIMIT_HEADS },
	{ .name = "num_kv_shared_layers", .of = GLOBAL, .most = LIMIT_LAYERS },
	{ .name = "num_ln_in_parallel_attn", .of = FALCON },
	{ .name = "num_local_experts", .of = ROUTED, .most = LIMIT_EXPERTS },
	{ .name = "num_nextn_predict_layers" },
	{ .name = "o_groups", .of = COMPRESSED, .most = LIMIT_HEADS },
	{ .name = "o_lora_rank", .of = COMPRESSED, .most = LIMIT_HIDDEN },
	{ .name = "position_embedding_type" },
	{ .name = "provenance" },
	{ .name = "q_lora_rank", .of = LATENT, .most = LIMIT_HIDDEN },
	{ .name = "qk_nope_head_dim", .of = LATENT, .most = LIMIT_HEAD_DIM },
	{ .name = "qk_norm" },
	{ .name = "qk_rope_head_dim", .of = LATENT, .most = LIMIT_HEAD_DIM },
	{ .name = "qkv_bias" },
	{ .name = "shared_expert_intermediate_size", .of = ROUTED, .most = LIMIT_MLP },
	{ .name = "sliding_window" },
	{ .name = "sliding_window_pattern" },
	{ .name = "swa_head_dim", .of = LOCAL, .most = LIMIT_HEAD_DIM },
	{ .name = "swa_num_attention_heads", .of = LOCAL, .most = LIMIT_HEADS },
	{ .name = "swa_num_key_value_heads", .of = LOCAL, .most = LIMIT_HEADS },
	{ .name = "swa_v_head_dim", .of = LOCAL, .most = LIMIT_HEAD_DIM },
	{ .name = "tie_word_embeddings" },
	{ .name = "title" },
	{ .name = "topk_group", .of = ROUTED },
	{ .name = "use_double_wide_mlp", .of = GLOBAL },
	{ .name = "use_expert_bias", .of = ROUTED },
	{ .name = "use_parallel_residual" },
	{ .name = "use_post_norm" },
	{ .name = "use_sliding_window" },
	{ .name = "v_head_dim", .of = LATENT, .most = LIMIT_HEAD_DIM },
	{ .name = "vocab_size", .most = LIMIT_VOCABULARY },
	{ .name = "vocab_size_multiple", .most = LIMIT_VOCABULARY },
	{ .name = "vocab_size_per_layer_input",
	  .of = GLOBAL,
	  .most = LIMIT_VOCABULARY },
	{ .name = "word_embed_proj_dim" },
};

enum { COMMON_KEYS = sizeof(common_keys) / sizeof(*common_keys) };

const char *family_common_name(const struct family *family, const char *key)
{
	for (size_t i = 0; i < sizeof(renamed) / sizeof(*renamed); i++)
		if (!strcmp(family->type, renamed[i].type) &&
		    !strcmp(key, renamed[i].own))
			return renamed[i].common;
	return key;
}

const char *family_other_name(const struct family *family, const char *common, size_t i)
{
	for (size_t k = 0; k < sizeof(renamed) / sizeof(*renamed); k++)
		if (!strcmp(family->type, renamed[k].type) &&
		    !strcmp(common, renamed[k].common) && !i--)
			return renamed[k].own;
	return NULL;
}

const char *family_own_name(const struct family *family, const char *common)
{
	const char *own = family_other_name(family, common, 0);

	return own ? own : common;
}

const char *family_inner_key(const struct family *family, size_t i, const char **common)
{
	for (size_t k = 0; k < sizeof(renamed) / sizeof(*renamed); k++) {
		if (strcmp(family->type, renamed[k].type) ||
		    !strchr(renamed[k].own, '.') || i--)
			continue;
		*common = renamed[k].common;
		return renamed[k].own;
	}
	return NULL;
}

bool family_reads_inside(const struct family *family, const char *outer,
			 const char *key)
{
	size_t n = strlen(outer);
	const char *own, *common;

	for (size_t i = 0; (own = family_inner_key(family, i, &common)); i++)
		if (!strncmp(own, outer, n) && own[n] == '.' &&
		    !strcmp(own + n + 1, key))
			return true;
	return family->channel_decay && !strcmp(outer, "linear_attn_config") &&
	       !strcmp(key, "kda_layers"); /* compared with the others' list */
}

const char *family_common(size_t i)
{
	return i < COMMON_KEYS ? common_keys[i].name : NULL;
}

/* Of a name that is none: a key without a bound, in any model. */
static const struct common_key *common_key(const char *name)
{
	static const struct common_key none = { 0 };

	for (size_t i = 0; i < COMMON_KEYS; i++)
		if (!strcmp(name, common_keys[i].name))
			return &common_keys[i];
	return &none;
}

bool family_is_common(const char *key)
{
	return common_key(key)->name != NULL;
}

enum family_key_of family_key_of(const char *common)
{
	return common_key(common)->of;
}

int64_t family_key_most(const char *common)
{
	int64_t most = common_key(common)->most;

	return most ? most : FAMILY_MOST;
}

const char *ft_model_key(size_t i)
{
	return family_common(i);
}
