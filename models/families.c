/* models/families.c - what each model_type implies: a row for each family */
#include "models/family.h"

#include <string.h>

#include "base/text.h"

/* Where a row says nothing: RMSNorm, rotary positions, a gated MLP, no biases, two
 * norms a layer: llama. The other common ancestor is GPT-2. */
#define LAYER_NORM .norm = FT_LAYER_NORM, .norm_bias = true
#define GPT LAYER_NORM, .activation = FT_GELU
#define GPT_BIASED GPT, .linear_bias = true

/* joined_*: by the modeling files, which name the weights (qkv_proj, query_key_value, gate_up_proj).
 * plain: those without _supports_sdpa there (bloom, mpt, gptj, gpt_neo; read 2026-11-25).
 * wide_norms: where the comment on huggingface/transformers pull request 29402 stands, or gpt-oss's "main diff with
 * Llama"; and Olmo2RMSNorm (Transformers' modeling files, read 2026-11-25). */
static const struct family families[] = {
	/* dense, as llama */
	{ .type = "llama" },
	{ .type = "mistral" },
	{ "qwen2", .qkv_bias = true },
	{ "qwen3", .qk_norm = FT_QK_HEAD },
	{ "qwen3_5_text", .qk_norm = FT_QK_HEAD, .gated_output = true,
	  .joined_rotary = true },
	{ "qwen", .qkv_bias = true, .half_width = true, .joined_qkv = FT_SPLIT,
	  .wide_rotary = true },
	{ "gemma", .tanh_gate = true, .wide_norms = true, .tied = true },
	{ "gemma2", .tanh_gate = true, .wide_norms = true, .tied = true, .norms = 4 },
	{ "gemma3_text", .tanh_gate = true, .wide_norms = true, .tied = true,
	  .norms = 4, .qk_norm = FT_QK_HEAD },
	{ "gemma4_text", .tanh_gate = true, .wide_norms = true, .tied = true,
	  .norms = 4, .qk_norm = FT_QK_HEAD, .value_norm = true, .layer_scale = true,
	  .dense_beside = true, .global_heads = true, .experts = EXPERTS_SOME },
	{ "vaultgemma", .tanh_gate = true, .wide_norms = true, .tied = true },
	{ .type = "granite" },
	{ "granite_swa", .tied = true, .sinks = true },
	{ "phi3", .joined_qkv = FT_SLICED, .joined_gate_up = true,
	  .joined_rotary = true },
	{ "olmo", .norm = FT_LAYER_NORM, .bare_norms = true,
	  .written_norm = FT_NORM_CAST },
	{ "olmo2", .wide_norms = true, .qk_norm = FT_QK_WHOLE },
	{ "olmo_hybrid", .wide_norms = true, .qk_norm = FT_QK_WHOLE },
	{ .type = "exaone" },
	{ .type = "hyperclovax" },
	{ "hunyuan_v1_dense", .qk_norm = FT_QK_HEAD },
	{ "exaone4", .qk_norm = FT_QK_HEAD },
	{ "glm", .qkv_only = true, .joined_gate_up = true, .joined_rotary = true },
	{ "glm4", .qkv_only = true, .norms = 4, .joined_gate_up = true,
	  .joined_rotary = true },
	{ .type = "chatglm" },
	{ "smollm3", .tied = true },
	{ "ernie4_5", .tied = true },
	{ .type = "internlm" },
	{ .type = "internlm2" },
	{ .type = "seed_oss" },
	{ .type = "baichuan" },
	{ "bamba", .states = true },
	{ "mamba2", .positions = FT_NO_POSITIONS, .states_alone = true },
	{ "falcon_h1", .states_beside = true, .scaled_logits = true },
	{ "lfm2", .tied = true, .qk_norm = FT_QK_HEAD, .short_convs = true },
	{ "minicpm", .tied = true },
	{ "minicpm3", .tied = true, .latent = true },
	{ "youtu", .tied = true, .latent = true },
	{ "apertus", .qk_norm = FT_QK_HEAD, .activation = FT_GELU, /* xIELU */
	  .activation_numbers = 2, .written_activation = FT_WRITTEN_XIELU },
	{ "stablelm", LAYER_NORM, .joins_norm = true, .qk_norm = FT_QK_WHOLE,
	  .qk_norm_off = true, .joined_rotary = true },
	{ "cohere", .norm = FT_LAYER_NORM, .written_norm = FT_NORM_CENTERED,
	  .scaled_logits = true, .tied = true, .parallel = true, .norms = 1,
	  .qk_norm = FT_QK_WHOLE, .qk_norm_off = true },
	/* dense, as GPT-2 */
	{ "gpt2", GPT_BIASED, .written_activation = FT_WRITTEN_GELU,
	  .positions = FT_LEARNED, .tied = true, .joined_qkv = FT_SPLIT },
	{ "gpt_bigcode", GPT_BIASED, .positions = FT_LEARNED, .tied = true,
	  .few_heads = HEADS_SWITCH, .joined_qkv = FT_SPLIT },
	{ "gpt_neo", GPT_BIASED, .written_activation = FT_WRITTEN_GELU,
	  .positions = FT_LEARNED, .tied = true, .plain = FT_PLAIN_SCORES },
	{ "gpt_neox", GPT_BIASED, .parallel = true, .joined_qkv = FT_SPLIT_HEADS,
	  .joined_rotary = true },
	{ "gptj", GPT_BIASED, .written_activation = FT_WRITTEN_GELU, .parallel = true,
	  .norms = 1, .head_bias = true, .plain = FT_PLAIN_SCORES },
	{ "phi", GPT_BIASED, .written_activation = FT_WRITTEN_GELU, .parallel = true,
	  .norms = 1, .head_bias = true, .qk_norm = FT_QK_HEAD, .qk_norm_off = true,
	  .joined_rotary = true },
	{ "opt", GPT_BIASED, .positions = FT_LEARNED, .tied = true, .more_rows = 2 },
	{ "bloom", GPT_BIASED, .written_activation = FT_WRITTEN_BLOOM,
	  .positions = FT_ALIBI, .tied = true, .joined_qkv = FT_SLICED,
	  .embedding_norm = true, .plain = FT_PLAIN_16 },
	{ "mpt", GPT_BIASED, .positions = FT_LEARNED, .tied = true,
	  .joined_qkv = FT_SPLIT, .plain = FT_PLAIN_FILLED },
	{ "falcon", GPT, .tied = true, .parallel = true, .joins_norm = true,
	  .few_heads = HEADS_FALCON, .joined_qkv = FT_SLICED },
	{ "starcoder2", GPT_BIASED, .tied = true },
	{ "persimmon", LAYER_NORM, .linear_bias = true, .activation = FT_SQUARED_RELU,
	  .joined_qkv = FT_SLICED, .qk_norm = FT_QK_HEAD, .joined_rotary = true },
	{ "arcee", .activation = FT_SQUARED_RELU },
	{ "nemotron", LAYER_NORM, .activation = FT_SQUARED_RELU,
	  .joined_rotary = true },
	{ "jais2", LAYER_NORM, .linear_bias = true, .activation = FT_SQUARED_RELU },
	{ "nanochat", .activation = FT_SQUARED_RELU, .qk_norm = FT_QK_BARE,
	  .bare_norms = true, .embedding_norm = true },
	/* routed */
	{ "mixtral", .experts = EXPERTS_ALL },
	{ "phimoe", LAYER_NORM, .experts = EXPERTS_ALL },
	{ "olmoe", .qk_norm = FT_QK_WHOLE, .experts = EXPERTS_ALL },
	{ "flex_olmo", .wide_norms = true, .qk_norm = FT_QK_WHOLE,
	  .experts = EXPERTS_ALL },
	{ "granitemoe", .experts = EXPERTS_ALL },
	{ "granitemoe_swa", .sinks = true, .experts = EXPERTS_ALL },
	{ "aria_text", .experts = EXPERTS_ALL },
	{ "cohere2_moe", .norm = FT_LAYER_NORM, .written_norm = FT_NORM_CENTERED,
	  .scaled_logits = true, .tied = true, .parallel = true, .norms = 1,
	  .experts = EXPERTS_SOME },
	{ "dbrx", .norm = FT_LAYER_NORM, .joined_qkv = FT_SPLIT,
	  .experts = EXPERTS_ALL },
	{ "gpt_oss", .wide_norms = true, .linear_bias = true, .router_bias = true,
	  .sinks = true, .clamped = true, .scaled_rope = true, .experts = EXPERTS_ALL },
	{ "hunyuan_v1_moe", .qk_norm = FT_QK_HEAD, .experts = EXPERTS_ALL },
	{ "minimax_m2", .qk_norm = FT_QK_WHOLE, .router_bias = true,
	  .experts = EXPERTS_ALL, .joined_rotary = true },
	{ "qwen2_moe", .qkv_bias = true, .shared_gate = true, .experts = EXPERTS_SOME },
	{ "qwen3_moe", .qk_norm = FT_QK_HEAD, .experts = EXPERTS_SOME },
	{ "mellum", .qk_norm = FT_QK_HEAD, .experts = EXPERTS_SOME },
	{ "qwen3_next", .wide_norms = true, .qk_norm = FT_QK_HEAD, .gated_output = true,
	  .shared_gate = true, .experts = EXPERTS_SOME, .joined_rotary = true },
	{ "qwen3_5_moe_text", .qk_norm = FT_QK_HEAD, .gated_output = true,
	  .shared_gate = true, .experts = EXPERTS_SOME, .joined_rotary = true },
	{ "bailing_moe", .qk_norm = FT_QK_HEAD, .qk_norm_off = true,
	  .experts = EXPERTS_SOME },
	{ "deepseek", .experts = EXPERTS_SOME },
	{ "deepseek_v2", .latent = true, .experts = EXPERTS_SOME },
	{ "deepseek_v3", .latent = true, .router_bias = true, .experts = EXPERTS_SOME },
	{ "axk1", .latent = true, .expert_norm = true, .router_bias = true,
	  .experts = EXPERTS_SOME },
	{ "deepseek_v32", .latent = true, .indexed = true, .router_bias = true,
	  .experts = EXPERTS_SOME },
	{ "deepseek_v4", .compressed = true, .clamped = true, .experts = EXPERTS_SOME },
	{ "kimi_linear", .positions = FT_NO_POSITIONS, .latent = true,
	  .channel_decay = true, .router_bias = true, .experts = EXPERTS_SOME },
	{ "glm4_moe", .qkv_only = true, .qk_norm = FT_QK_HEAD, .qk_norm_off = true,
	  .router_bias = true, .experts = EXPERTS_SOME, .joined_rotary = true },
	{ "dots1", .qk_norm = FT_QK_HEAD, .router_bias = true,
	  .experts = EXPERTS_SOME },
	{ "solar_open", .router_bias = true, .experts = EXPERTS_SOME },
	{ "exaone_moe", .qk_norm = FT_QK_HEAD, .router_bias = true,
	  .experts = EXPERTS_SOME },
	{ "hy_v3", .qk_norm = FT_QK_HEAD, .router_bias = true,
	  .experts = EXPERTS_SOME },
	{ "afmoe", .norms = 4, .qk_norm = FT_QK_HEAD, .gated_output = true,
	  .router_bias = true, .experts = EXPERTS_SOME },
	{ "ernie4_5_moe", .tied = true, .router_bias = true, .experts = EXPERTS_SOME },
	{ "lfm2_moe", .tied = true, .qk_norm = FT_QK_HEAD, .short_convs = true,
	  .router_bias = true, .experts = EXPERTS_SOME },
	{ "mimo_v2_flash", .qkv_only = true, .local_heads = true, .sinks = true,
	  .router_bias = true, .experts = EXPERTS_SOME, .joined_rotary = true },
	{ "laguna", .qk_norm = FT_QK_HEAD, .head_gates = true, .wide_gates = true,
	  .router_bias = true, .experts = EXPERTS_SOME, .joined_rotary = true },
	{ "step3p5", .wide_norms = true, .qk_norm = FT_QK_HEAD, .head_gates = true,
	  .window_heads = true, .padded = true, .limits = true, .router_bias = true,
	  .experts = EXPERTS_SOME, .joined_rotary = true },
	{ "granitemoehybrid", .positions = FT_NO_POSITIONS, .states = true,
	  .shared_alone = true, .experts = EXPERTS_ALL },
	{ "nemotron_h", .activation = FT_SQUARED_RELU, .positions = FT_NO_POSITIONS,
	  .halves = true, .experts = EXPERTS_SOME },
	{ "llama4_text", .qk_norm = FT_QK_BARE, .chunks = true, .all_experts = true,
	  .experts = EXPERTS_SOME },
	/* of our own, for models without a config.json */
	{ "gpt", GPT_BIASED, .positions = FT_LEARNED, .tied = true },
	{ "nemotron4", LAYER_NORM, .activation = FT_SQUARED_RELU },
};

/* The same blocks under another name. */
static const struct {
	const char *type, *family;
} same[] = {
	{ "aquila", "llama" },
	{ "bailing_moe_v2", "bailing_moe" },
	{ "cohere2", "cohere" },
	{ "codegen", "gptj" },
	{ "cwm", "llama" },
	{ "exaone4_5_text", "exaone4" },
	{ "glm4_moe_lite", "deepseek_v3" },
	{ "glm4v_text", "glm4" },
	{ "glm_moe_dsa", "deepseek_v32" },
	{ "glm4v_moe_text", "glm4_moe" },
	{ "granitemoeshared", "granitemoe" },
	{ "helium", "llama" },
	{ "kimi_k2", "deepseek_v3" },
	{ "mimo", "qwen2" },
	{ "mimo_v2", "mimo_v2_flash" },
	{ "minimax-m2", "minimax_m2" },
	{ "ministral", "mistral" },
	{ "ministral3", "mistral" },
	{ "mistral4", "deepseek_v2" },
	{ "olmo3", "olmo2" },
	{ "qwen2_5_omni_text", "qwen2" },
	{ "qwen2_5_vl", "qwen2" },
	{ "qwen2_5_vl_text", "qwen2" },
	{ "qwen2_vl", "qwen2" },
	{ "qwen2_vl_text", "qwen2" },
	{ "qwen3_omni_moe_text", "qwen3_moe" },
	{ "qwen3_vl_moe_text", "qwen3_moe" },
	{ "qwen3_vl_text", "qwen3" },
	{ "RefinedWeb", "falcon" },
	{ "RefinedWebModel", "falcon" },
	{ "stablelm_epoch", "stablelm" },
	{ "step3p7", "step3p5" },
	{ "xverse", "llama" },
	{ "Yi", "llama" },
};

#define RECURRENT "recurrent layers are not simulated"
#define HYPER "its hyper-connections are not simulated"
#define ENCODER "it is an encoder; decoder-only models are simulated"
#define HAS_ENCODER "it has an encoder; decoder-only models are simulated"

/* What cannot be a family here, and why: the first whose part is in its name. */
static const struct {
	const char *part, *why;
} refused[] = {
	{ "hymba", "its attention beside a state space is not simulated" },
	{ "zamba", "its attention that layers share is not simulated" },
	{ "amba", "state spaces of the first kind (Mamba-1) are not simulated" },
	{ "recurrent_gemma", RECURRENT },
	{ "rwkv", RECURRENT },
	{ "xlstm", RECURRENT },
	{ "gemma3n", "its alternating updates of parts of a layer are not simulated" },
	{ "nemotron-nas", "its layers of different widths are not simulated" },
	{ "openelm", "its layers of different widths are not simulated" },
	{ "llada", "it fills in masked tokens; decoder-only models are simulated" },
	{ "hy_v4", HYPER },
	{ "glm5_next", HYPER },
	{ "qwen4_exp", "its tables of n-grams are not simulated" },
	{ "inkling", "its relative positions are not simulated" },
	{ "zaya", "its convolutions before attention are not simulated" },
	{ "longcat_flash", "its layers of two attentions are not simulated" },
	{ "diffllama", "its differential attention is not simulated" },
	{ "bitnet", "its ternary weights are not simulated" },
	{ "minimax_m3", "its attention to chosen blocks of tokens is not simulated" },
	{ "minimax", "its lightning attention is not simulated" },
	{ "axk2", "its gated norms are not simulated" },
	{ "mllama", "its attention to images is not simulated" },
	{ "bert", ENCODER },
	{ "data2vec", ENCODER },
	{ "electra", ENCODER },
	{ "roformer", ENCODER },
	{ "xmod", ENCODER },
	{ "t5", HAS_ENCODER },
	{ "bart", HAS_ENCODER },
	{ "blenderbot", HAS_ENCODER },
	{ "marian", HAS_ENCODER },
	{ "mvp", HAS_ENCODER },
	{ "pegasus", HAS_ENCODER },
	{ "prophetnet", HAS_ENCODER },
	{ "whisper", HAS_ENCODER },
};

enum {
	FAMILIES = sizeof(families) / sizeof(*families),
	SAME = sizeof(same) / sizeof(*same),
};

const struct family *family_find(const char *type)
{
	for (size_t i = 0; i < SAME; i++)
		if (!strcmp(type, same[i].type))
			type = same[i].family;
	for (size_t i = 0; i < FAMILIES; i++)
		if (!strcmp(type, families[i].type))
			return &families[i];
	return NULL;
}

const char *family_nearest(const char *type)
{
	const char *name[FAMILIES + SAME];

	for (size_t i = 0; i < FAMILIES; i++)
		name[i] = families[i].type;
	for (size_t i = 0; i < SAME; i++)
		name[FAMILIES + i] = same[i].type;
	return text_nearest(type, name, FAMILIES + SAME);
}

const char *family_refusal(const char *type)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		if (strstr(type, refused[i].part))
			return refused[i].why;
	return NULL;
}
