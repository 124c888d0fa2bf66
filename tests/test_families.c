/* tests/test_families.c - published config.json files of every family, and their counts */
#include <math.h>

#include "tests/config_json.h"

#define GLM_AIR \
	"'model_type': 'glm4_moe', 'hidden_size': 4096, 'num_hidden_layers': 46, " \
	"'num_attention_heads': 96, 'num_key_value_heads': 8, 'head_dim': 128, " \
	"'intermediate_size': 10944, 'moe_intermediate_size': 1408, " \
	"'n_routed_experts': 128, 'n_shared_experts': 1, 'num_experts_per_tok': 8, " \
	"'first_k_dense_replace': 1, 'vocab_size': 151552, 'attention_bias': true, " \
	"'use_qk_norm': false, 'partial_rotary_factor': 0.5"
#define QWEN_NEXT \
	"'model_type': 'qwen3_next', 'hidden_size': 2048, 'num_hidden_layers': 48, " \
	"'num_attention_heads': 16, 'num_key_value_heads': 2, 'head_dim': 256, " \
	"'full_attention_interval': 4, 'linear_num_key_heads': 16, " \
	"'linear_num_value_heads': 32, 'linear_key_head_dim': 128, " \
	"'linear_value_head_dim': 128, 'linear_conv_kernel_dim': 4, " \
	"'num_experts': 512, 'num_experts_per_tok': 10, 'intermediate_size': 5120, " \
	"'moe_intermediate_size': 512, 'shared_expert_intermediate_size': 512, " \
	"'decoder_sparse_step': 1, 'mlp_only_layers': [], 'vocab_size': 151936"

#define TEN \
	"'mamba', 'mamba', 'mamba', 'mamba', 'mamba', 'attention', 'mamba', 'mamba', " \
	"'mamba', 'mamba'"

/* Parameters as the checkpoints on huggingface.co hold them, to the last one. The
 * quotes of JSON are written ' here. */
static const struct {
	const char *json;
	double parameters;
} known[] = {
	/* google/gemma-2b and gemma-2-9b */
	{ "{'model_type': 'gemma', 'hidden_size': 2048, 'num_hidden_layers': 18,"
	  "'num_attention_heads': 8, 'num_key_value_heads': 1, 'head_dim': 256,"
	  "'intermediate_size': 16384, 'vocab_size': 256000}",
	  2506172416. },
	{ "{'model_type': 'gemma2', 'hidden_size': 3584, 'num_hidden_layers': 42,"
	  "'num_attention_heads': 16, 'num_key_value_heads': 8, 'head_dim': 256,"
	  "'intermediate_size': 14336, 'vocab_size': 256000, 'sliding_window': 4096,"
	  "'attn_logit_softcapping': 50.0, 'final_logit_softcapping': 30.0}",
	  9241705984. },
	/* tiiuae/falcon-rw-1b, falcon-7b, falcon-40b */
	{ "{'model_type': 'falcon', 'hidden_size': 2048, 'num_hidden_layers': 24,"
	  "'num_attention_heads': 32, 'alibi': true, 'bias': true,"
	  "'multi_query': false, 'parallel_attn': false, 'vocab_size': 50304,"
	  "'new_decoder_architecture': false}",
	  1311625216. },
	{ "{'model_type': 'falcon', 'hidden_size': 4544, 'num_hidden_layers': 32,"
	  "'num_attention_heads': 71, 'num_kv_heads': 71, 'multi_query': true,"
	  "'parallel_attn': true, 'bias': false, 'new_decoder_architecture': false,"
	  "'alibi': false, 'vocab_size': 65024}",
	  6921720704. },
	{ "{'model_type': 'falcon', 'hidden_size': 8192, 'num_hidden_layers': 60,"
	  "'num_attention_heads': 128, 'num_kv_heads': 8, 'multi_query': true,"
	  "'parallel_attn': true, 'bias': false, 'new_decoder_architecture': true,"
	  "'vocab_size': 65024}",
	  41303293952. },
	/* EleutherAI/gpt-neox-20b, gpt-j-6b, gpt-neo-2.7B */
	{ "{'model_type': 'gpt_neox', 'hidden_size': 6144, 'num_hidden_layers': 44,"
	  "'num_attention_heads': 64, 'intermediate_size': 24576,"
	  "'hidden_act': 'gelu_fast', 'vocab_size': 50432,"
	  "'tie_word_embeddings': false}",
	  20554567680. },
	{ "{'model_type': 'gptj', 'n_embd': 4096, 'n_layer': 28, 'n_head': 16,"
	  "'n_inner': null, 'n_positions': 2048, 'vocab_size': 50400,"
	  "'tie_word_embeddings': false, 'rotary_dim': 64}",
	  6050882784. },
	{ "{'model_type': 'gpt_neo', 'hidden_size': 2560, 'num_layers': 32,"
	  "'num_heads': 20, 'intermediate_size': null, 'window_size': 256,"
	  "'max_position_embeddings': 2048, 'vocab_size': 50257}",
	  2651307520. },
	/* facebook/opt-6.7b, microsoft/phi-2, Phi-3-mini-4k, phi-4 */
	{ "{'model_type': 'opt', 'hidden_size': 4096, 'num_hidden_layers': 32,"
	  "'num_attention_heads': 32, 'ffn_dim': 16384, 'vocab_size': 50272,"
	  "'max_position_embeddings': 2048, 'word_embed_proj_dim': 4096,"
	  "'activation_function': 'relu'}",
	  6658473984. },
	{ "{'model_type': 'phi', 'hidden_size': 2560, 'num_hidden_layers': 32,"
	  "'num_attention_heads': 32, 'intermediate_size': 10240,"
	  "'vocab_size': 51200, 'qk_layernorm': false, 'hidden_act': 'gelu_new'}",
	  2779683840. },
	{ "{'model_type': 'phi3', 'hidden_size': 3072, 'num_hidden_layers': 32,"
	  "'num_attention_heads': 32, 'num_key_value_heads': 32,"
	  "'intermediate_size': 8192, 'vocab_size': 32064, 'sliding_window': 2047}",
	  3821079552. },
	{ "{'model_type': 'phi3', 'hidden_size': 5120, 'num_hidden_layers': 40,"
	  "'num_attention_heads': 40, 'num_key_value_heads': 10,"
	  "'intermediate_size': 17920, 'vocab_size': 100352,"
	  "'sliding_window': null}",
	  14659507200. },
	/* allenai/OLMo-7B-hf, OLMo-2-1124-7B */
	{ "{'model_type': 'olmo', 'hidden_size': 4096, 'num_hidden_layers': 32,"
	  "'num_attention_heads': 32, 'intermediate_size': 11008,"
	  "'vocab_size': 50304}",
	  6888095744. },
	{ "{'model_type': 'olmo2', 'hidden_size': 4096, 'num_hidden_layers': 32,"
	  "'num_attention_heads': 32, 'num_key_value_heads': 32,"
	  "'intermediate_size': 11008, 'vocab_size': 100352}",
	  7298617344. },
	/* bigcode/starcoderbase, starcoder2-7b, starcoder2-15b */
	{ "{'model_type': 'gpt_bigcode', 'n_embd': 6144, 'n_layer': 40, 'n_head': 48,"
	  "'n_inner': 24576, 'n_positions': 8192, 'multi_query': true,"
	  "'vocab_size': 49152}",
	  15517456384. },
	{ "{'model_type': 'starcoder2', 'hidden_size': 4608, 'num_hidden_layers': 32,"
	  "'num_attention_heads': 36, 'num_key_value_heads': 4, 'use_bias': true,"
	  "'intermediate_size': 18432, 'vocab_size': 49152,"
	  "'sliding_window': 4096}",
	  7173923840. },
	{ "{'model_type': 'starcoder2', 'hidden_size': 6144, 'num_hidden_layers': 40,"
	  "'num_attention_heads': 48, 'num_key_value_heads': 4, 'use_bias': true,"
	  "'intermediate_size': 24576, 'vocab_size': 49152,"
	  "'tie_word_embeddings': false, 'sliding_window': 4096}",
	  15957889024. },
	/* stabilityai/stablelm-2-1_6b, CohereForAI/c4ai-command-r-v01 and -plus */
	{ "{'model_type': 'stablelm', 'hidden_size': 2048, 'num_hidden_layers': 24,"
	  "'num_attention_heads': 32, 'num_key_value_heads': 32,"
	  "'intermediate_size': 5632, 'vocab_size': 100352, 'use_qkv_bias': true}",
	  1644515328. },
	{ "{'model_type': 'cohere', 'hidden_size': 8192, 'num_hidden_layers': 40,"
	  "'num_attention_heads': 64, 'num_key_value_heads': 64,"
	  "'intermediate_size': 22528, 'vocab_size': 256000}",
	  34980831232. },
	{ "{'model_type': 'cohere', 'hidden_size': 12288, 'num_hidden_layers': 64,"
	  "'num_attention_heads': 96, 'num_key_value_heads': 8, 'use_qk_norm': true,"
	  "'intermediate_size': 33792, 'vocab_size': 256000}",
	  103810674688. },
	/* internlm/internlm2-7b, baichuan-inc/Baichuan2-7B, Qwen/Qwen-7B, chatglm3-6b */
	{ "{'model_type': 'internlm2', 'hidden_size': 4096, 'num_hidden_layers': 32,"
	  "'num_attention_heads': 32, 'num_key_value_heads': 8, 'bias': false,"
	  "'intermediate_size': 14336, 'vocab_size': 92544}",
	  7737708544. },
	{ "{'model_type': 'baichuan', 'hidden_size': 4096, 'num_hidden_layers': 32,"
	  "'num_attention_heads': 32, 'intermediate_size': 11008,"
	  "'vocab_size': 125696, 'model_max_length': 4096}",
	  7505973248. },
	{ "{'model_type': 'qwen', 'hidden_size': 4096, 'num_hidden_layers': 32,"
	  "'num_attention_heads': 32, 'intermediate_size': 22016, 'no_bias': true,"
	  "'kv_channels': 128, 'vocab_size': 151936}",
	  7721324544. },
	{ "{'model_type': 'chatglm', 'hidden_size': 4096, 'num_layers': 28,"
	  "'num_attention_heads': 32, 'multi_query_group_num': 2,"
	  "'multi_query_attention': true, 'kv_channels': 128,"
	  "'ffn_hidden_size': 13696, 'add_qkv_bias': true, 'add_bias_linear': false,"
	  "'padded_vocab_size': 65024}",
	  6243584000. },
	/* zai-org/glm-4-9b-hf and GLM-4-9B-0414: two more norms a layer */
	{ "{'model_type': 'glm', 'hidden_size': 4096, 'num_hidden_layers': 40,"
	  "'num_attention_heads': 32, 'num_key_value_heads': 2, 'head_dim': 128,"
	  "'intermediate_size': 13696, 'attention_bias': true,"
	  "'vocab_size': 151552}",
	  9399951360. },
	{ "{'model_type': 'glm4', 'hidden_size': 4096, 'num_hidden_layers': 40,"
	  "'num_attention_heads': 32, 'num_key_value_heads': 2, 'head_dim': 128,"
	  "'intermediate_size': 13696, 'attention_bias': true,"
	  "'vocab_size': 151552}",
	  9400279040. },
	/* ibm-granite/granite-3.0-8b-base, HuggingFaceTB/SmolLM3-3B, openbmb/MiniCPM-2B,
	 * baidu/ERNIE-4.5-0.3B, ByteDance-Seed/Seed-OSS-36B */
	{ "{'model_type': 'granite', 'hidden_size': 4096, 'num_hidden_layers': 40,"
	  "'num_attention_heads': 32, 'num_key_value_heads': 8,"
	  "'intermediate_size': 12800, 'vocab_size': 49155,"
	  "'tie_word_embeddings': true}",
	  8170848256. },
	{ "{'model_type': 'smollm3', 'hidden_size': 2048, 'num_hidden_layers': 36,"
	  "'num_attention_heads': 16, 'num_key_value_heads': 4,"
	  "'intermediate_size': 11008, 'vocab_size': 128256}",
	  3075098624. },
	{ "{'model_type': 'minicpm', 'hidden_size': 2304, 'num_hidden_layers': 40,"
	  "'num_attention_heads': 36, 'num_key_value_heads': 36,"
	  "'intermediate_size': 5760, 'vocab_size': 122753}",
	  2724880896. },
	{ "{'model_type': 'ernie4_5', 'hidden_size': 1024, 'num_hidden_layers': 18,"
	  "'num_attention_heads': 16, 'num_key_value_heads': 2, 'head_dim': 128,"
	  "'intermediate_size': 3072, 'use_bias': false, 'vocab_size': 103424}",
	  360748032. },
	{ "{'model_type': 'seed_oss', 'hidden_size': 5120, 'num_hidden_layers': 64,"
	  "'num_attention_heads': 80, 'num_key_value_heads': 8, 'head_dim': 128,"
	  "'intermediate_size': 27648, 'attention_bias': true,"
	  "'attention_out_bias': false, 'mlp_bias': false, 'vocab_size': 155136}",
	  36151104512. },
	/* LGAI-EXAONE/EXAONE-3.5-7.8B */
	{ "{'model_type': 'exaone', 'hidden_size': 4096, 'num_layers': 32,"
	  "'num_attention_heads': 32, 'num_key_value_heads': 8,"
	  "'intermediate_size': 14336, 'vocab_size': 102400,"
	  "'activation_function': 'silu'}",
	  7818448896. },
	/* databricks/dbrx-base, microsoft/Phi-3.5-MoE, allenai/OLMoE-1B-7B */
	{ "{'model_type': 'dbrx', 'd_model': 6144, 'n_layers': 40, 'n_heads': 48,"
	  "'attn_config': {'kv_n_heads': 8, 'clip_qkv': 8}, 'ffn_config':"
	  "{'ffn_hidden_size': 10752, 'moe_num_experts': 16, 'moe_top_k': 4},"
	  "'vocab_size': 100352, 'max_seq_len': 32768}",
	  131596523520. },
	{ "{'model_type': 'phimoe', 'hidden_size': 4096, 'num_hidden_layers': 32,"
	  "'num_attention_heads': 32, 'num_key_value_heads': 8,"
	  "'intermediate_size': 6400, 'num_local_experts': 16,"
	  "'num_experts_per_tok': 2, 'attention_bias': true, 'lm_head_bias': true,"
	  "'vocab_size': 32064}",
	  41873153344. },
	{ "{'model_type': 'olmoe', 'hidden_size': 2048, 'num_hidden_layers': 16,"
	  "'num_attention_heads': 16, 'num_key_value_heads': 16,"
	  "'intermediate_size': 1024, 'num_experts': 64, 'num_experts_per_tok': 8,"
	  "'vocab_size': 50304}",
	  6919161856. },
	/* Qwen/Qwen1.5-MoE-A2.7B, deepseek-ai/deepseek-moe-16b-base */
	{ "{'model_type': 'qwen2_moe', 'hidden_size': 2048, 'num_hidden_layers': 24,"
	  "'num_attention_heads': 16, 'num_key_value_heads': 16,"
	  "'intermediate_size': 5632, 'moe_intermediate_size': 1408,"
	  "'shared_expert_intermediate_size': 5632, 'num_experts': 60,"
	  "'num_experts_per_tok': 4, 'vocab_size': 151936}",
	  14315784192. },
	{ "{'model_type': 'deepseek', 'hidden_size': 2048, 'num_hidden_layers': 28,"
	  "'num_attention_heads': 16, 'num_key_value_heads': 16,"
	  "'intermediate_size': 10944, 'moe_intermediate_size': 1408,"
	  "'n_routed_experts': 64, 'n_shared_experts': 2, 'num_experts_per_tok': 6,"
	  "'first_k_dense_replace': 1, 'moe_layer_freq': 1, 'vocab_size': 102400}",
	  16375728128. },
	/* Qwen/Qwen3-Next-80B-A3B, without and with its predicted token */
	{ "{" QWEN_NEXT "}", 79674391296. },
	/* nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16, without the router's corrections */
	{ "{'model_type': 'nemotron_h', 'hidden_size': 2688, 'num_hidden_layers': 52,"
	  "'hybrid_override_pattern':"
	  "'MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME',"
	  "'num_attention_heads': 32, 'num_key_value_heads': 2, 'head_dim': 128,"
	  "'mamba_num_heads': 64, 'mamba_head_dim': 64, 'ssm_state_size': 128,"
	  "'n_groups': 8, 'conv_kernel': 4, 'chunk_size': 128, 'expand': 2,"
	  "'intermediate_size': 1856, 'n_routed_experts': 128,"
	  "'num_experts_per_tok': 6, 'moe_intermediate_size': 1856,"
	  "'n_shared_experts': 1, 'moe_shared_expert_intermediate_size': 3712,"
	  "'mlp_hidden_act': 'relu2', 'vocab_size': 131072}",
	  31577937344. },
	/* nvidia/NVIDIA-Nemotron-Nano-9B-v2, in which two state spaces follow each other */
	{ "{'model_type': 'nemotron_h', 'hidden_size': 4480, 'num_hidden_layers': 56,"
	  "'hybrid_override_pattern':"
	  "'M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-',"
	  "'num_attention_heads': 40, 'num_key_value_heads': 8, 'head_dim': 128,"
	  "'mamba_num_heads': 128, 'mamba_head_dim': 80, 'ssm_state_size': 128,"
	  "'n_groups': 8, 'conv_kernel': 4, 'chunk_size': 128,"
	  "'intermediate_size': 15680, 'mlp_hidden_act': 'relu2',"
	  "'vocab_size': 131072}",
	  8888227328. },
	/* mistralai/Mamba-Codestral-7B-v0.1, state spaces alone */
	{ "{'model_type': 'mamba2', 'hidden_size': 4096, 'num_hidden_layers': 64,"
	  "'num_heads': 128, 'head_dim': 64, 'state_size': 128, 'n_groups': 8,"
	  "'conv_kernel': 4, 'chunk_size': 256, 'expand': 2, 'use_bias': false,"
	  "'tie_word_embeddings': false, 'vocab_size': 32768}",
	  7285403648. },
	/* ibm-granite/granite-4.0-h-small */
	{ "{'model_type': 'granitemoehybrid', 'hidden_size': 4096,"
	  "'num_hidden_layers': 40, 'layer_types': [" TEN ", " TEN ", " TEN ", " TEN
	  "],"
	  "'num_attention_heads': 32, 'num_key_value_heads': 8,"
	  "'intermediate_size': 768, 'shared_intermediate_size': 1536,"
	  "'num_local_experts': 72, 'num_experts_per_tok': 10,"
	  "'mamba_n_heads': 128, 'mamba_d_head': 64, 'mamba_d_state': 128,"
	  "'mamba_n_groups': 1, 'mamba_d_conv': 4, 'mamba_chunk_size': 256,"
	  "'mamba_conv_bias': true, 'mamba_proj_bias': false,"
	  "'position_embedding_type': 'nope', 'tie_word_embeddings': true,"
	  "'vocab_size': 100352}",
	  32207337984. },
	{ "{" QWEN_NEXT ", 'num_nextn_predict_layers': 1}", 81324862720. },
	/* zai-org/GLM-4.5-Air: 110,468,824,832 with copies of embedding and head */
	{ "{" GLM_AIR "}", 106852251264. },
	{ "{" GLM_AIR ", 'num_nextn_predict_layers': 1}",
	  110468824832. - 2 * 151552 * 4096. },
	/* the language part of Llama-4-Scout-17B-16E */
	{ "{'model_type': 'llama4', 'vision_config': {'hidden_size': 1408},"
	  "'text_config': {'model_type': 'llama4_text', 'hidden_size': 5120,"
	  "'num_hidden_layers': 48, 'num_attention_heads': 40,"
	  "'num_key_value_heads': 8, 'head_dim': 128, 'intermediate_size': 8192,"
	  "'intermediate_size_mlp': 16384, 'num_local_experts': 16,"
	  "'num_experts_per_tok': 1, 'interleave_moe_layer_step': 1,"
	  "'use_qk_norm': true, 'vocab_size': 202048}}",
	  107769861120. },
};

static void checkpoints_have_the_parameters_that_are_counted(void **state)
{
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct ft_model *m = must(json_of(known[i].json));
		double got = ft_model_parameters(m);

		if (got != known[i].parameters && ++wrong)
			print_error("%.60s: %.0f, not %.0f (%.0f)\n", known[i].json,
				    got, known[i].parameters,
				    got - known[i].parameters);
		ft_model_free(m);
	}
	assert_int_equal(wrong, 0);
}

/* Rounded counts of reports and model cards, and what one token uses of them (0: all, or
 * not said). */
static const struct {
	const char *json;
	double parameters, active, frac;
} rounded[] = {
	/* MiniMaxAI/MiniMax-M2: 230B, 10B active */
	{ "{'model_type': 'minimax_m2', 'hidden_size': 3072, 'num_hidden_layers': 62,"
	  "'num_attention_heads': 48, 'num_key_value_heads': 8, 'head_dim': 128,"
	  "'intermediate_size': 1536, 'num_local_experts': 256,"
	  "'num_experts_per_tok': 8, 'vocab_size': 200064, 'use_qk_norm': true,"
	  "'use_mtp': true, 'shared_intermediate_size': 0}",
	  230e9, 10e9, 0.02 },
	/* nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16 without its predicted token: 120.6B, 12.7B active */
	{ "{'model_type': 'nemotron_h', 'hidden_size': 4096, 'num_hidden_layers': 88,"
	  "'hybrid_override_pattern': 'MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*"
	  "EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME', 'num_attention_heads': 32,"
	  "'num_key_value_heads': 2, 'head_dim': 128, 'mamba_num_heads': 128,"
	  "'mamba_head_dim': 64, 'ssm_state_size': 128, 'n_groups': 8,"
	  "'conv_kernel': 4, 'chunk_size': 128, 'n_routed_experts': 512,"
	  "'num_experts_per_tok': 22, 'moe_intermediate_size': 2688,"
	  "'moe_latent_size': 1024, 'n_shared_experts': 1,"
	  "'moe_shared_expert_intermediate_size': 5376,"
	  "'mlp_hidden_act': 'relu2', 'vocab_size': 131072}",
	  120.6e9, 12.7e9, 0.01 },
	/* ibm-ai-platform/Bamba-9B-v1: 9.78B */
	{ "{'model_type': 'bamba', 'hidden_size': 4096, 'num_hidden_layers': 32,"
	  "'attn_layer_indices': [9, 18, 27], 'num_attention_heads': 32,"
	  "'num_key_value_heads': 8, 'intermediate_size': 14336,"
	  "'mamba_n_heads': 128, 'mamba_d_head': 64, 'mamba_d_state': 128,"
	  "'mamba_n_groups': 1, 'mamba_d_conv': 4, 'mamba_chunk_size': 256,"
	  "'tie_word_embeddings': false, 'vocab_size': 128256}",
	  9.78e9, 0, 0.001 },
	/* ibm-granite/granite-4.0-micro: 3B, one kind of layers, and no expert */
	{ "{'model_type': 'granitemoehybrid', 'hidden_size': 2560,"
	  "'num_hidden_layers': 40, 'layer_types': ['attention'],"
	  "'num_attention_heads': 40, 'num_key_value_heads': 8,"
	  "'intermediate_size': 8192, 'shared_intermediate_size': 8192,"
	  "'num_local_experts': 0, 'num_experts_per_tok': 0,"
	  "'position_embedding_type': 'rope', 'tie_word_embeddings': true,"
	  "'vocab_size': 100352}",
	  3.4e9, 0, 0.01 },
	/* inclusionAI/Ling-lite: 16.8B, 2.75B active */
	{ "{'model_type': 'bailing_moe', 'hidden_size': 2048, 'num_hidden_layers': 28,"
	  "'num_attention_heads': 16, 'num_key_value_heads': 4, 'num_experts': 64,"
	  "'num_shared_experts': 2, 'num_experts_per_tok': 6, 'use_bias': false,"
	  "'use_qkv_bias': false, 'moe_intermediate_size': 1408,"
	  "'intermediate_size': 5632, 'first_k_dense_replace': 0,"
	  "'vocab_size': 126464}",
	  16.8e9, 2.75e9, 0.01 },
	/* rednote-hilab/dots.llm1: 142B, 14B active */
	{ "{'model_type': 'dots1', 'hidden_size': 4096, 'num_hidden_layers': 62,"
	  "'num_attention_heads': 32, 'num_key_value_heads': 32, 'head_dim': 128,"
	  "'intermediate_size': 10944, 'moe_intermediate_size': 1408,"
	  "'n_routed_experts': 128, 'n_shared_experts': 2,"
	  "'num_experts_per_tok': 6, 'first_k_dense_replace': 1,"
	  "'vocab_size': 152064}",
	  142e9, 14e9, 0.02 },
	/* Qwen/Qwen3.5-27B, its language part */
	{ "{'model_type': 'qwen3_5', 'text_config': {'model_type': 'qwen3_5_text',"
	  "'hidden_size': 5120, 'intermediate_size': 17408, 'head_dim': 256,"
	  "'num_hidden_layers': 64, 'num_attention_heads': 24,"
	  "'num_key_value_heads': 4, 'attn_output_gate': true,"
	  "'linear_num_key_heads': 16, 'linear_num_value_heads': 48,"
	  "'linear_key_head_dim': 128, 'linear_value_head_dim': 128,"
	  "'linear_conv_kernel_dim': 4, 'vocab_size': 248320}}",
	  27e9, 0, 0.01 },
	/* deepseek-ai/DeepSeek-V3: 671B, and 14B of a module for one predicted token, in
	 * which copies of embedding and head are counted */
	{ "{'model_type': 'deepseek_v3', 'hidden_size': 7168, 'num_hidden_layers': 61,"
	  "'num_attention_heads': 128, 'intermediate_size': 18432,"
	  "'moe_intermediate_size': 2048, 'n_routed_experts': 256,"
	  "'n_shared_experts': 1, 'num_experts_per_tok': 8, 'moe_layer_freq': 1,"
	  "'first_k_dense_replace': 3, 'q_lora_rank': 1536, 'kv_lora_rank': 512,"
	  "'qk_nope_head_dim': 128, 'qk_rope_head_dim': 64, 'v_head_dim': 128,"
	  "'vocab_size': 129280, 'num_nextn_predict_layers': 1}",
	  671e9 + 14e9 - 2. * 129280 * 7168, 0, 0.001 },
	/* tencent/Hunyuan-A13B-Instruct: 80B, 13B active */
	{ "{'model_type': 'hunyuan_v1_moe', 'hidden_size': 4096, 'head_dim': 128,"
	  "'num_hidden_layers': 32, 'num_attention_heads': 32,"
	  "'num_key_value_heads': 8, 'intermediate_size': 3072,"
	  "'num_experts': 64, 'moe_topk': [8, 8], 'num_shared_expert': [1, 1],"
	  "'tie_word_embeddings': true, 'vocab_size': 128167}",
	  80e9, 13e9, 0.01 },
	/* openbmb/MiniCPM3-4B, whose config.json leaves v_head_dim out */
	{ "{'model_type': 'minicpm3', 'hidden_size': 2560, 'num_hidden_layers': 62,"
	  "'num_attention_heads': 40, 'num_key_value_heads': 40,"
	  "'intermediate_size': 6400, 'q_lora_rank': 768, 'kv_lora_rank': 256,"
	  "'qk_nope_head_dim': 64, 'qk_rope_head_dim': 32, 'vocab_size': 73448}",
	  4.07e9, 0, 0.002 },
	/* facebook/MobileLLM-R1-950M: the family of Llama 4 without experts, 949M */
	{ "{'model_type': 'llama4_text', 'hidden_size': 1536, 'num_hidden_layers': 22,"
	  "'num_attention_heads': 24, 'num_key_value_heads': 6, 'head_dim': 64,"
	  "'intermediate_size': 8192, 'intermediate_size_mlp': 6144,"
	  "'interleave_moe_layer_step': 0, 'moe_layers': [], 'vocab_size': 128256,"
	  "'num_experts_per_tok': 0, 'tie_word_embeddings': true}",
	  949e6, 0, 0.01 },
};

static void reports_have_the_parameters_that_are_counted(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rounded) / sizeof(*rounded); i++) {
		struct ft_model *m = must(json_of(rounded[i].json));
		double all = ft_model_parameters(m), want = rounded[i].parameters;
		double active = ft_model_active_parameters(m);
		double tables = 2 * (double)m->hidden_size * (double)m->vocab_size;

		/* some count embedding and head among the active ones */
		if (fabs(all / want - 1) > rounded[i].frac ||
		    (rounded[i].active > 0 &&
		     (active < rounded[i].active * 0.97 ||
		      active - tables > rounded[i].active * 1.03)))
			fail_msg("%.60s: %.4g, not %.4g; active %.4g", rounded[i].json,
				 all, want, active);
		ft_model_free(m);
	}
}

/* Of a model of several parts, the text is read and the rest is told. */
static void what_is_around_the_text_part_is_told(void **state)
{
	struct ft_model *m = must(json_of(
		"{'model_type': 'mistral3', 'vision_config': {'hidden_size': 1024},"
		"'tie_word_embeddings': true, 'torch_dtype': 'bfloat16',"
		"'text_config': {'model_type': 'mistral', 'hidden_size': 64,"
		"'num_hidden_layers': 2, 'num_attention_heads': 4, 'rope_theta': 1,"
		"'intermediate_size': 128, 'vocab_size': 100}}"));

	(void)state;
	assert_true(m->tied);
	assert_int_equal(m->hidden_size, 64);
	assert_int_equal(m->n_passed_over, 3);
	assert_string_equal(m->passed_over[0], "rope_theta");
	assert_string_equal(m->passed_over[1], "vision_config");
	assert_string_equal(m->passed_over[2], "torch_dtype");
	ft_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checkpoints_have_the_parameters_that_are_counted),
		cmocka_unit_test(reports_have_the_parameters_that_are_counted),
		cmocka_unit_test(what_is_around_the_text_part_is_told),
	};

	return cmocka_run_group_tests_name("models/families", tests, NULL, NULL);
}
