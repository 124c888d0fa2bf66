/*
 * tests/test_said_twice.c - what a model's config says twice it says alike, or it is refused where it says it otherwise
 *
 * Which key is taken, and which are leftovers that published configs hold, is as in Transformers' classes.
 */
#include "tests/config_json.h"

#define SHAPE \
	"'hidden_size': 64, 'num_hidden_layers': 4, 'vocab_size': 100, " \
	"'num_attention_heads': 4, 'intermediate_size': 96"
#define FULL "'full_attention'"
#define SEES "'sliding_attention'"
#define LFM2 "{'model_type': 'lfm2', " SHAPE ", 'conv_L_cache': 3,\n"
#define GEMMA3 "{'model_type': 'gemma3_text', " SHAPE ", 'sliding_window': 8,\n"
#define KIMI \
	"{'model_type': 'kimi_linear', " SHAPE ", 'kv_lora_rank': 8, " \
	"'qk_nope_head_dim': 8, 'qk_rope_head_dim': 8, 'v_head_dim': 8, " \
	"'num_experts': 8, 'num_experts_per_token': 2, " \
	"'moe_intermediate_size': 16, 'linear_attn_config': {'num_heads': 4, " \
	"'head_dim': 16, 'short_conv_kernel_size': 4,\n"
#define MOE(type) \
	"{'model_type': '" type "', " SHAPE ", 'num_experts': 8, " \
	"'num_experts_per_tok': 2, 'moe_intermediate_size': 16,\n"
#define LLAMA4 \
	"{'model_type': 'llama4_text', " SHAPE ", 'num_local_experts': 8, " \
	"'num_experts_per_tok': 2, 'intermediate_size_mlp': 96,\n"
#define STATES(type) \
	"{'model_type': '" type "', " SHAPE ", 'mamba_n_heads': 8, " \
	"'mamba_d_head': 12, 'mamba_d_state': 16, 'mamba_n_groups': 1, " \
	"'mamba_d_conv': 4, 'mamba_chunk_size': 64,\n"
#define HALVES \
	"{'model_type': 'nemotron_h', " SHAPE ", 'mamba_num_heads': 8, " \
	"'mamba_head_dim': 12, 'ssm_state_size': 16, 'n_groups': 1, " \
	"'conv_kernel': 4, 'chunk_size': 64,\n"

/* Files: what differs stands on the second line. */
static const struct {
	const char *json;
	int column;
	const char *text; /* NULL: it is taken */
} files[] = {
	/* LFM2: the class takes layer_types */
	{ LFM2 "'full_attn_idxs': [1, 3], 'layer_types': ['conv', " FULL
	       ", 'conv', " FULL "]}",
	  0, NULL },
	{ LFM2 "'full_attn_idxs': [1, 2], 'layer_types': ['conv', " FULL
	       ", 'conv', " FULL "]}",
	  19,
	  "full_attn_idxs: says otherwise than layer_types what layer 3 is; leave one "
	  "of them out, or say null for it" },
	{ LFM2 "'full_attn_idxs': [1, 4]}", 23,
	  "there is no layer 4: num_hidden_layers is 4, and layers are counted from 0" },
	{ LFM2 "'layer_types': [" FULL ", 'conv', 'conv', 'conv', 'conv']}", 16,
	  "layer_types: names 5 layers, but num_hidden_layers is 4" },
	{ LFM2 "'full_attn_idxs': null, 'layer_types': ['conv']}", 0, NULL },
	{ LFM2 "'full_attn_idxs': [1], 'tie_word_embeddings': true, "
	       "'tie_embedding': false}",
	  53, "tie_embedding says the same of a model of type lfm2 as tie_word_embed" },
	{ LFM2 "'block_ff_dim': 128}", 0, NULL }, /* as in the published one of 1.2B */
	/* windows */
	{ GEMMA3 "'sliding_window_pattern': 2, 'layer_types': [" SEES ", " FULL
		 ", " SEES ", " FULL "]}",
	  0, NULL },
	{ GEMMA3 "'sliding_window_pattern': 4, 'layer_types': [" SEES ", " FULL
		 ", " SEES ", " FULL "]}",
	  27,
	  "sliding_window_pattern: says otherwise than layer_types what layer 2 sees" },
	{ "{'model_type': 'qwen2', " SHAPE ", 'sliding_window': 8,\n"
	  "'use_sliding_window': false, 'max_window_layers': 2, 'layer_types': [" FULL
	  "]}",
	  0, NULL },
	{ "{'model_type': 'qwen2', " SHAPE ", 'sliding_window': 8,\n"
	  "'max_window_layers': 2, 'use_sliding_window': true, 'layer_types': [" FULL
	  "]}",
	  22, "max_window_layers: says otherwise than layer_types what layer 3 sees" },
	{ LLAMA4 "'no_rope_layer_interval': 4, 'no_rope_layers': [1, 1, 1, 0]}", 0,
	  NULL },
	{ LLAMA4 "'no_rope_layer_interval': 2, 'no_rope_layers': [1, 1, 1, 0]}", 27,
	  "no_rope_layer_interval: says otherwise than no_rope_layers what layer 2 sees" },
	{ LLAMA4 "'no_rope_layers': [1, 1, 1, 0, 1]}", 0,
	  NULL }, /* "at least" as many */
	/* of rotation alone: its class makes masks of layer_types */
	{ LLAMA4 "'no_rope_layers': [1, 1, 1, 0], 'layer_types': [" FULL "]}", 0,
	  NULL },
	/* states: the class has every fourth layer be full where full_attn_layers is not there */
	{ KIMI "'kda_layers': [1, 3], 'full_attn_layers': [2, 4]}}", 0, NULL },
	{ KIMI "'kda_layers': [1, 2, 3], 'full_attn_layers': [2, 4]}}", 15,
	  "layer 2 is full attention by linear_attn_config.full_attn_layers" },
	{ KIMI "'kda_layers': [1], 'full_attn_layers': [2, 4]}}", 15,
	  "lacks layer 3, which is not full attention by "
	  "linear_attn_config.full_attn_layers" },
	{ KIMI "'kda_layers': [1, 3], 'full_attn_layers': [2, 4, 5]}}", 50,
	  "there is no layer 5: num_hidden_layers is 4, and layers are counted from 1" },
	{ KIMI "'kda_layers': [1, 3, 5], 'full_attn_layers': [2, 4]}}", 22,
	  "there is no layer 5" },
	{ KIMI "'kda_layers': [1, 3]}}", 15,
	  "lacks layer 2, which is not full attention by full_attention_interval" },
	{ KIMI "'full_attn_layers': [2, 4]}, 'layer_types': ['linear_attention']}", 21,
	  "full_attn_layers: says otherwise than layer_types what layer 2 is" },
	/* how wide a state space is */
	{ STATES("falcon_h1") "'mamba_expand': 2, 'mamba_d_ssm': 96}", 0, NULL },
	{ STATES("falcon_h1") "'mamba_d_ssm': 128}", 16,
	  "mamba_d_ssm: makes a state space 128 wide, but 8 heads of 12 make it 96" },
	{ STATES("falcon_h1") "'mamba_expand': 2, 'mamba_d_ssm': null}", 17,
	  "mamba_expand: makes a state space 128 wide" },
	{ STATES("bamba") "'mamba_expand': 2}", 17, "128 wide, but 8 heads of 12" },
	{ STATES("bamba") "'attn_layer_indices': [1, 7]}", 27, "there is no layer 7" },
	{ "{'model_type': 'mamba2', " SHAPE ", 'num_heads': 8, 'head_dim': 12, "
	  "'state_size': 16, 'n_groups': 1, 'conv_kernel': 4, 'chunk_size': 64,\n"
	  "'expand': 2}",
	  11, "expand: makes a state space 128 wide" },
	{ HALVES "'expand': 2, 'hybrid_override_pattern': 'M-M-'}", 0, NULL },
	{ HALVES "'hybrid_override_pattern': 'M-M-', 'layers_block_type': ['mamba', "
		 "'mlp', 'mamba', 'mlp']}",
	  0, NULL },
	{ HALVES "'hybrid_override_pattern': 'M-*-', 'layers_block_type': ['mamba', "
		 "'mlp', 'mamba', 'mlp']}",
	  28,
	  "hybrid_override_pattern: says otherwise than layers_block_type what layer 3 "
	  "is" },
	{ HALVES "'hybrid_override_pattern': 'M-M-M-'}", 28,
	  "names 6 layers, but num_hidden_layers is 4" },
	{ HALVES "'hybrid_override_pattern': 'M-M-', 'attention_head_dim': 16, "
		 "'head_dim': null}",
	  0, NULL },
	{ HALVES "'hybrid_override_pattern': '*-M-', 'attention_head_dim': 16, "
		 "'head_dim': 32}",
	  62,
	  "head_dim says the same of a model of type nemotron_h as attention_head" },
	/* experts */
	{ MOE("exaone_moe") "'first_k_dense_replace': 1, 'mlp_layer_types': ['dense', "
			    "'sparse', 'sparse', 'sparse']}",
	  0, NULL },
	{ MOE("exaone_moe") "'first_k_dense_replace': 2, 'mlp_layer_types': ['dense', "
			    "'sparse', 'sparse', 'sparse']}",
	  26,
	  "first_k_dense_replace: says otherwise than mlp_layer_types whether layer 2 "
	  "has experts" },
	{ MOE("qwen3_moe") "'mlp_only_layers': [4]}", 21, "there is no layer 4" },
	{ MOE("qwen3_moe") "'mlp_only_layers': [0], 'mlp_layer_types': ['sparse']}", 20,
	  "mlp_only_layers: says otherwise than mlp_layer_types whether layer 1 has" },
	/* dense, as small models made of large ones are */
	{ MOE("qwen3_moe") "'decoder_sparse_step': 8}", 0, NULL },
	{ LLAMA4 "'interleave_moe_layer_step': 2, 'moe_layers': [1, 3]}", 0, NULL },
	{ LLAMA4 "'interleave_moe_layer_step': 0, 'moe_layers': []}", 0, NULL },
	{ LLAMA4 "'interleave_moe_layer_step': 1, 'moe_layers': [1, 3]}", 30,
	  "interleave_moe_layer_step: says otherwise than moe_layers whether layer 1" },
	{ LLAMA4 "'moe_layers': [1, 4]}", 19, "there is no layer 4" },
};

static void files_say_a_thing_once_or_alike(void **state)
{
	size_t bad = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		struct ft_error err = { 0 };
		struct ft_model *m = model_of_json(json_of(files[i].json), "", &err);
		const char *text = files[i].text;

		if (text ? m || !strstr(err.text, text) || err.line != 2 ||
				    err.column != files[i].column :
			   !m) {
			print_error("%s\n%s %d:%d: %s\n", files[i].json,
				    m ? "was taken" : "says", err.line, err.column,
				    err.text);
			bad++;
		}
		ft_model_free(m);
	}
	assert_int_equal(bad, 0);
}

/* What a scenario says overrides a file's; of two things that it says itself, or of one that a file's would hide, it is told. */
static const struct {
	const char *yaml;
	int line, column;
	const char *text; /* NULL: it is taken */
} laid[] = {
	{ "name: gemma3-27b\nlayer_types: [full_attention]", 0, 0, NULL },
	{ "name: kimi-linear-48b-a3b\nnum_hidden_layers: 4", 0, 0, NULL },
	{ "name: kimi-linear-48b-a3b\nlayer_types: [full_attention]", 0, 0, NULL },
	{ "name: gpt-oss-20b\nnum_hidden_layers: 4", 0, 0, NULL },
	{ "name: nemotron-h-8b\nnum_hidden_layers: 4", 0, 0, NULL },
	{ "name: deepseek-v3\nnum_hidden_layers: 2", 0, 0, NULL },
	{ "name: gpt-oss-20b\nlayer_types: null\nsliding_window_pattern: 3", 0, 0,
	  NULL },
	{ "name: gpt-oss-20b\nsliding_window_pattern: 3", 2, 25,
	  "says otherwise than layer_types what layer 2 sees" },
	{ "name: gemma2-9b\nlayer_types: [full_attention]\nsliding_window_pattern: 3",
	  3, 25, "says otherwise than layer_types what layer 1 sees" },
	{ "name: bamba-9b\nattn_layer_indices: [40]", 2, 22,
	  "there is no layer 40: num_hidden_layers is 32" },
	{ "name: kimi-linear-48b-a3b\nfull_attn_layers: [28]", 2, 20,
	  "there is no layer 28" },
	{ "name: mimo-v2-flash\nmoe_layer_freq: [1]\nfirst_k_dense_replace: 3", 3, 24,
	  "says otherwise than moe_layer_freq whether layer 1 has experts" },
	{ "name: mimo-v2-flash\nhybrid_layer_pattern: [1]\nsliding_window_pattern: 2",
	  3, 25, "says otherwise than hybrid_layer_pattern what layer 1 sees" },
	{ "name: falcon-h1-0.5b\nmamba_d_ssm: 1024", 2, 14, "but 24 heads of 64" },
};

static void a_scenario_overrides_a_file_and_not_itself(void **state)
{
	size_t bad = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(laid) / sizeof(*laid); i++) {
		struct ft_error err = { 0 };
		struct ft_model *m = model_of_text(laid[i].yaml, &err);
		const char *text = laid[i].text;

		if (text ? m || !strstr(err.text, text) || err.line != laid[i].line ||
				    err.column != laid[i].column :
			   !m) {
			print_error("%s\n%s %d:%d: %s\n", laid[i].yaml,
				    m ? "was taken" : "says", err.line, err.column,
				    err.text);
			bad++;
		}
		ft_model_free(m);
	}
	assert_int_equal(bad, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_say_a_thing_once_or_alike),
		cmocka_unit_test(a_scenario_overrides_a_file_and_not_itself),
	};

	return cmocka_run_group_tests_name("models/twice", tests, NULL, NULL);
}
