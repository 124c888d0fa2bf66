/* tests/test_model_config.c - config.json of every type, and mistakes in one */
#include "tests/mistakes.h"

static void each_type_is_read_under_its_own_names(void **state)
{
	static const struct {
		const char *json;
		double parameters;
	} known[] = {
		/* gpt2 as published: 124,439,808 parameters */
		{ "{\"model_type\": \"gpt2\", \"n_embd\": 768, \"n_layer\": 12,"
		  "\"n_head\": 12, \"n_positions\": 1024, \"n_ctx\": 1024,"
		  "\"n_inner\": null, \"vocab_size\": 50257,"
		  "\"activation_function\": \"gelu_new\"}",
		  124439808 },
		/* bloom-560m: 559,214,592 */
		{ "{\"model_type\": \"bloom\", \"n_embed\": 1024, \"n_layer\": "
		  "24, \"num_attention_heads\": 16, \"vocab_size\": 250880,"
		  "\"hidden_dropout\": 0.0}",
		  559214592 },
		/* mpt-7b: 6,649,286,656 */
		{ "{\"model_type\": \"mpt\", \"d_model\": 4096, \"n_layers\": "
		  "32, \"n_heads\": 32, \"expansion_ratio\": 4, \"max_seq_len\""
		  ": 2048, \"vocab_size\": 50432, \"no_bias\": true,"
		  "\"attn_config\": {\"alibi\": true, \"alibi_bias_max\": 8}}",
		  6649286656 },
		/* Qwen2.5-0.5B: 494,032,768, tied */
		{ "{\"model_type\": \"qwen2\", \"hidden_size\": 896,"
		  "\"intermediate_size\": 4864, \"num_attention_heads\": 14,"
		  "\"num_hidden_layers\": 24, \"num_key_value_heads\": 2,"
		  "\"sliding_window\": 32768, \"use_sliding_window\": false,"
		  "\"tie_word_embeddings\": true, \"vocab_size\": 151936}",
		  494032768 },
		/* Qwen3-0.6B: 596,049,920 */
		{ "{\"model_type\": \"qwen3\", \"hidden_size\": 1024,"
		  "\"intermediate_size\": 3072, \"num_attention_heads\": 16,"
		  "\"num_hidden_layers\": 28, \"num_key_value_heads\": 8,"
		  "\"head_dim\": 128, \"tie_word_embeddings\": true,"
		  "\"vocab_size\": 151936, \"rope_scaling\": null}",
		  596049920 },
		/* the same, its whole numbers as a program of floats writes them */
		{ "{\"model_type\": \"qwen3\", \"hidden_size\": 1.024e3,"
		  "\"intermediate_size\": 3072.0, \"num_attention_heads\": 16.0,"
		  "\"num_hidden_layers\": 2.8e1, \"num_key_value_heads\": 8.0,"
		  "\"head_dim\": 128.0, \"tie_word_embeddings\": true,"
		  "\"vocab_size\": 1.51936E+05, \"rope_scaling\": null}",
		  596049920 },
		/* DeepSeek-V2-Lite: 15,706,484,224, no rank for q */
		{ "{\"model_type\": \"deepseek_v2\", \"hidden_size\": 2048,"
		  "\"intermediate_size\": 10944, \"num_hidden_layers\": 27,"
		  "\"num_attention_heads\": 16, \"vocab_size\": 102400,"
		  "\"moe_intermediate_size\": 1408, \"n_routed_experts\": 64,"
		  "\"num_experts_per_tok\": 6, \"n_shared_experts\": 2,"
		  "\"first_k_dense_replace\": 1, \"moe_layer_freq\": 1,"
		  "\"q_lora_rank\": null, \"kv_lora_rank\": 512,"
		  "\"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64,"
		  "\"v_head_dim\": 128, \"norm_topk_prob\": false}",
		  15706484224. },
	};
	struct ft_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct ft_model *m = model_of_json(known[i].json, "", &err);

		if (!m)
			fail_msg("%s", err.text);
		if (ft_model_parameters(m) != known[i].parameters)
			fail_msg("case %zu: %.0f, not %.0f", i, ft_model_parameters(m),
				 known[i].parameters);
		ft_model_free(m);
	}
}

static void keys_laid_upon_a_config_meet_its_own_names(void **state)
{
	struct ft_error err;
	struct ft_model *m = model_of_json(
		"{\"model_type\": \"gpt2\", \"n_embd\": 768, \"n_layer\": 12,"
		"\"n_head\": 12, \"vocab_size\": 50257}",
		", num_hidden_layers: 3, hidden_size: 1024, n_head: 16", &err);

	(void)state;
	assert_non_null(m);
	assert_int_equal(m->n_layers, 3);
	assert_int_equal(m->layer[2].intermediate, 4096);
	assert_int_equal(m->layer[2].qk_head_dim, 64);
	ft_model_free(m);
}

static void a_whole_model_may_stand_in_the_scenario(void **state)
{
	struct ft_error err;
	struct ft_model *m =
		model_of_text("{name: ours, model_type: llama, num_hidden_layers: 2, "
			      "hidden_size: 128, num_attention_heads: 4, "
			      "intermediate_size: 512, vocab_size: 1000}",
			      &err);

	(void)state;
	assert_non_null(m);
	assert_string_equal(m->name, "ours");
	assert_int_equal(m->from->kind, FT_ASSUMED);
	ft_model_free(m);
}

#define EXPERTS_OF(type, more) \
	"{model_type: " type \
	", hidden_size: 64, num_hidden_layers: 2, vocab_size: 99, " \
	"num_attention_heads: 4, num_experts_per_tok: 2, num_local_experts: 8, " more \
	"}"

static void mistakes_are_told_with_their_place(void **state)
{
	static const struct mistake wrong[] = {
		{ "llama3-9b", 1, 1, "did you mean 'llama3-8b'?" },
		{ "meta-llama/Llama-3.1-8B", 1, 1, "is read from its config.json" },
		{ "./models", 0, 0, "is a folder, not a file; a model that is no" },
		{ "{name: llama3-8b, num_hiden_layers: 4}", 1, 19,
		  "did you mean 'num_hidden_layers'" },
		{ "name: llama3-8b\nnum_attention_heads: 33", 2, 22,
		  "head_dim must be given" },
		{ "name: llama3-8b\nnum_key_value_heads: 5", 2, 22,
		  "not a multiple of 5" },
		{ "name: mixtral-8x7b\nnum_experts_per_tok: 9", 2, 22,
		  "more than the 8 experts" },
		{ "gpt", 1, 1, "lacks the key 'hidden_size'" },
		{ "{model_type: gpt2, n_embd: 64, n_layer: 2, vocab_size: 99}", 1, 1,
		  "lacks the key 'n_head'" },
		{ "{model_type: gpt2, n_embd: 64, n_layer: 2, vocab_size: 99, n_heads: "
		  "4}",
		  1, 60, "unknown key 'n_heads'; did you mean 'n_head'?" },
		{ EXPERTS_OF("qwen3_next", "intermediate_size: 128"), 1, 1,
		  "lacks the key 'moe_intermediate_size'" },
		{ EXPERTS_OF("llama4_text", "intermediate_size_mlp: 128"), 1, 1,
		  "lacks the key 'intermediate_size'" },
		{ EXPERTS_OF("llama4_text", "intermediate_size: 128, "
					    "interleave_moe_layer_step: 2"),
		  1, 1, "lacks the key 'intermediate_size_mlp'" },
		{ "name: llama3-8b\nnum_hidden_layers: none", 2, 20,
		  "not a whole number" },
		{ "name: llama3-8b\nnum_hidden_layers: 0", 2, 20, "not between" },
		{ "model_type: mamba\nhidden_size: 4", 1, 13,
		  "state spaces of the first kind (Mamba-1) are not simulated" },
		{ "{model_type: mamba2, hidden_size: 64, num_hidden_layers: 2, vocab_size: "
		  "99, num_heads: 8, head_dim: 16, n_groups: 1, state_size: 16, "
		  "chunk_size: 64}",
		  1, 1, "lacks the key 'conv_kernel'" },
		{ "{model_type: mamba2, hidden_size: 64, num_hidden_layers: 2, vocab_size: "
		  "99, num_heads: 8, head_dim: 16, n_groups: 3, state_size: 16, "
		  "chunk_size: 64, conv_kernel: 4}",
		  1, 88, "8 is not a multiple of the 3 groups" },
		{ "model_type: hymba\nhidden_size: 4", 1, 13,
		  "its attention beside a state space is not simulated" },
		{ "name: mimo-v2-flash\nnum_nextn_predict_layers: 3", 2, 27,
		  "have a window and a dense MLP, as none of the model has" },
		{ "name: mimo-v2-flash\nswa_num_key_value_heads: 7", 2, 26,
		  "64 is not a multiple of 7" },
		{ "name: mimo-v2-flash\nhybrid_layer_pattern: [0, 1]", 2, 23,
		  "names 2 of the 48 layers" },
		{ "name: mimo-v2-flash\nhybrid_layer_pattern: [0, 2]", 2, 27,
		  "should be whole numbers from 0 to 1" },
		{ "name: mimo-v2-flash\nmoe_layer_freq: [0, 1]", 2, 17,
		  "names 2 of the 48 layers" },
		{ "name: llama3-8b\nswa_head_dim: 64", 2, 1,
		  "swa_head_dim does nothing in a model of type llama; leave it out, or "
		  "say a model_type that has it, such as mimo_v2_flash" },
		{ "name: gemma2-9b\nhybrid_layer_pattern: [1]", 2, 1,
		  "such as mimo_v2_flash" },
		{ "name: llama3-8b\nblock_ff_dim: 100", 2, 1, "such as lfm2" },
		{ "name: llama3-8b\nblock_auto_adjust_ff_dim: true", 2, 1,
		  "such as lfm2" },
		{ "name: llama3-8b\nconv_bias: true", 2, 1, "such as lfm2" },
		{ "name: llama3-8b\nfull_attn_layers: [1]", 2, 1,
		  "such as kimi_linear" },
		{ "name: llama3-8b\nmamba_rms_norm: true", 2, 1, "such as falcon_h1" },
		{ "name: kimi-linear-48b-a3b\nfull_attn_layers: [0, 4]", 2, 19,
		  "counts layers from 1" },
		{ "name: kimi-linear-48b-a3b\nattn_res_block_size: 12", 2, 22,
		  "attention over outputs of layers before is not simulated" },
		{ "name: kimi-linear-48b-a3b\nfull_attn_layers: [four]", 2, 20,
		  "should be whole numbers from 0" },
		{ "name: kimi-linear-48b-a3b\nlayer_types: [conv]", 2, 15,
		  "linear_attention, attention, mamba, kda_attention" },
		{ "name: lfm2-1.2b\nconv_bias: true", 2, 12,
		  "convolutions with biases are not simulated" },
		{ "name: lfm2-1.2b\nblock_ffn_dim_multiplier: 0", 2, 27,
		  "0 is not above 0 and at most 1024" },
		{ "name: llama3-8b\nlayer_types: [conv]", 2, 15,
		  "conv is no layer that is simulated" },
		{ "name: deepseek-v3\nindex_topk: 2048", 2, 1, "such as deepseek_v32" },
		{ "model_type: minimax_m3\nhidden_size: 4", 1, 13,
		  "its attention to chosen blocks of tokens is not simulated" },
		{ "name: granite-4.0-h-small\nposition_embedding_type: alibi", 2, 26,
		  "'alibi' is neither nope (none) nor rope" },
		{ "name: granite-4.0-h-small\nlayer_types: [mamba, conv]", 2, 22,
		  "conv is no layer that is simulated; those are: full_attention, "
		  "sliding_attention, chunked_attention, linear_attention, attention, "
		  "mamba" },
		{ "name: bamba-9b\nattn_layer_indices: [nine]", 2, 22,
		  "should be whole numbers from 0" },
		{ "model_type: bert\nhidden_size: 4", 1, 13, "it is an encoder" },
		{ "model_type: lama\nhidden_size: 4", 1, 13, "did you mean 'llama'" },
		{ "model_type: hunyuanish\nhidden_size: 4", 1, 13,
		  "those of llama, which its keys fit best, say model: {name: FILE, "
		  "model_type: llama}" },
		{ "model_type: hunyuanish\nkv_lora_rank: 4", 1, 13,
		  "model_type: deepseek_v3}" },
		{ "model_type: hunyuanish\nmoe_intermediate_size: 4", 1, 13,
		  "model_type: qwen3_moe}" },
		{ "model_type: hunyuanish\nnum_experts: 4", 1, 13,
		  "model_type: mixtral}" },
		{ "name: opt-6.7b\nword_embed_proj_dim: 512", 2, 22,
		  "is not simulated" },
		{ "name: qwen3-next-80b-a3b\nlinear_num_key_heads: 5", 13, 25,
		  "32 is not a multiple of the 5 key heads" },
		{ "name: llama4-scout\nmoe_layers: 5", 2, 13, "should be a list" },
		{ "name: llama4-scout\nmoe_layers: [1, '']", 2, 17,
		  "whole numbers from 0 to" },
		{ "name: qwen3-30b-a3b\nmlp_only_layers: [3x]", 2, 19,
		  "whole numbers from 0 to" },
		{ "name: llama4-scout\nno_rope_layers: [1, yes]", 2, 21,
		  "whole numbers from 0 to 1" },
		{ "name: qwen3-30b-a3b\nmlp_only_layers: 5", 2, 18,
		  "should be a list" },
		{ "name: gemma2-9b\nlayer_types: [full_attention, conv]", 2, 31,
		  "conv is no layer that is simulated; those are: full_attention, "
		  "sliding_attention, chunked_attention, linear_attention" },
		{ "name: gemma2-9b\nlayer_types: [conv]", 2, 15,
		  "conv is no layer that is simulated" },
		{ "name: llama4-scout\nmoe_layers: ['']", 2, 14,
		  "whole numbers from 0 to" },
		{ "name: qwen3-30b-a3b\nmlp_layer_types: [dense, []]", 2, 26,
		  "a value of this kind is no layer that is simulated; those are: "
		  "dense, sparse" },
		{ "name: nemotron-h-8b\nhybrid_override_pattern: M-X", 2, 26,
		  "'X' is no layer that is simulated; those are: * (attention), M (state "
		  "space), - (MLP), E (routed MLP)" },
		{ "name: nemotron-h-8b\nhybrid_override_pattern: M-M", 2, 26,
		  "names 3 of the 52 layers" },
		{ "name: nemotron-h-8b\nlayers_block_type: [mamba, mlp]", 2, 20,
		  "names 2 of the 52 layers" },
		{ "name: nemotron-h-8b\nnum_hidden_layers: 3\n"
		  "hybrid_override_pattern: M--",
		  3, 26,
		  "layer 3 is an MLP that follows neither attention nor a state space" },
		{ "name: nemotron-h-8b\nnum_nextn_predict_layers: 1\n"
		  "mtp_hybrid_override_pattern: '*E'",
		  3, 30, "no layer of the model is '*E'" },
		{ "name: gpt-oss-20b\nlayer_types: [sliding_attention, full_attention]",
		  2, 14, "names 2 of the 24 layers; write an item for each, or one" },
		{ "name: gpt-oss-20b\nnum_hidden_layers: 25", 15, 14,
		  "layer_types: names 24 of the 25 layers" },
		{ "name: granite3-8b\nvocab_size_multiple: 0", 2, 22,
		  "0 is not between 1 and" },
		{ "name: llama4-scout\nno_rope_layers: [1, 1, 1, 0]", 2, 17,
		  "names 4 of the 48 layers" },
		{ "name: qwen3-30b-a3b\nmlp_layer_types: [dense, sparse]", 2, 18,
		  "names 2 of the 48 layers" },
		{ "name: llama3-8b\nlayer_types: [linear_attention]", 1, 1,
		  "lacks the key 'linear_num_value_heads'" },
		{ "name: llama3-8b\nnum_local_experts: 8", 2, 1,
		  "num_local_experts does nothing in a model of type llama; leave it "
		  "out, or say a model_type that has it, such as mixtral or qwen3_moe" },
		{ "name: llama3-8b\nkv_lora_rank: 512", 2, 1, "such as deepseek_v3" },
		{ "name: llama3-8b\nnum_experts_per_tok: 2", 2, 1, "such as mixtral" },
		{ "name: gemma3-27b\nsliding_window_pattern: LLX", 2, 25,
		  "not a whole number" },
		{ "[llama3-8b]", 1, 1, "a name, a path or a map" },
		{ "{num_hidden_layers: 3}", 1, 1, "name or a model_type" },
	};

	(void)state;
	refused(wrong, sizeof(wrong) / sizeof(*wrong));
}

static void a_config_without_a_type_is_refused(void **state)
{
	struct ft_error err;

	(void)state;
	assert_null(model_of_json("{\"n_embd\": 768}", "", &err));
	assert_non_null(strstr(err.text, "model_type is missing"));
	assert_null(model_of_text("./no-such-config.json", &err));
}

/* Files that people have: each is refused where it is wrong, with what to do next. */
static void a_file_that_is_no_model_is_told_what_it_is(void **state)
{
	static const struct {
		const char *json;
		int line, column;
		const char *text;
	} wrong[] = {
		{ "<!DOCTYPE html>\n<html></html>", 1, 1, "holds no keys and values" },
		{ "[{\"model_type\": \"llama\"}]", 1, 1, "holds no keys and values" },
		{ "{\"model_type\": \"llama\", \"hidden_size\": 64,\n\"num_hidden_layers\": 2, "
		  "\"num_attention_heads\": 2, \"intermediate_size\": 128, "
		  "\"vocab_size\": 64,\n\"hidden_act\": \"foo\"}",
		  3, 15, "'foo' is no activation that Transformers has" },
		{ "{\"peft_type\": \"LORA\", \"r\": 16}", 1, 1,
		  "name the config.json of its base model, and the adapter in "
		  "training.lora" },
		{ "{\"dim\": 4096, \"n_layers\": 32, \"n_heads\": 32}", 1, 1,
		  "is a params.json of Meta's" },
		{ "{\"hidden_size\": 64, \"kv_lora_rank\": 8}", 1, 1,
		  "say model: {name: FILE, model_type: deepseek_v3}" },
		{ "{\"model_type\": \"llava\", \"text_config\": {\n"
		  "\"model_type\": \"llama\", \"vocab_size\": 32064}}",
		  1, 40,
		  "lacks the key 'hidden_size'; it is not guessed: add it to the "
		  "scenario's model" },
		/* in a file that others wrote, a word is seldom mistyped */
		{ "{\"model_type\": \"mixtrel\",\n\"hidden_size\": 64}", 1, 16,
		  "if its layers are those of llama, which its keys fit best" },
		{ "{\"model_type\": \"kimi_k25\", \"kv_lora_rank\": 512,"
		  "\"n_routed_experts\": 8}",
		  1, 16, "if its layers are those of kimi_k2, which" },
		{ "{\"model_type\": \"nemotron-nas\"}", 1, 16,
		  "its layers of different widths are not simulated" },
	};
	struct ft_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_null(model_of_json(wrong[i].json, "", &err));
		if (!strstr(err.text, wrong[i].text) || err.line != wrong[i].line ||
		    err.column != wrong[i].column ||
		    strncmp(err.file, "/tmp/foretoken-", 15) != 0)
			fail_msg("%s: %s:%d:%d: %s", wrong[i].json, err.file, err.line,
				 err.column, err.text);
	}
}

#define SHAPE \
	"\"hidden_size\": 64, \"num_hidden_layers\": 8, \"vocab_size\": 100," \
	"\"num_attention_heads\": 4, \"intermediate_size\": 96"

/* A file's keys that its type has no use for are listed and left out of what is written
 * down; those that say that there is none are neither. */
static void keys_of_other_types_are_told(void **state)
{
	struct ft_error err;
	struct ft_model *m = model_of_json("{\"model_type\": \"mixtral\", " SHAPE
					   ", \"num_local_experts\": 8,"
					   "\"num_experts_per_tok\": 2,"
					   "\"kv_lora_rank\": null, \"rope_theta\": 1,"
					   "\"first_k_dense_replace\": 0}",
					   ", model_type: llama", &err);

	(void)state;
	assert_non_null(m);
	assert_int_equal(m->n_passed_over, 3);
	assert_string_equal(m->passed_over[0], "rope_theta");
	assert_string_equal(m->passed_over[1], "num_local_experts");
	assert_string_equal(m->passed_over[2], "num_experts_per_tok");
	assert_null(node_get(m->config, "num_local_experts"));
	assert_non_null(node_get(m->config, "intermediate_size"));
	ft_model_free(m);
}

/* So are those of a map inside, but for what says nothing. */
static void keys_of_maps_inside_are_told(void **state)
{
	struct ft_error err;
	struct ft_model *m = model_of_json(
		"{\"model_type\": \"mpt\", \"d_model\": 64, \"n_layers\": 2, \"n_heads\": 4,"
		"\"vocab_size\": 9, \"max_seq_len\": 8, \"attn_config\": {\"alibi\": true,"
		"\"clip_qkv\": 8, \"qk_ln\": false, \"softmax_scale\": null}}",
		"", &err);

	(void)state;
	assert_non_null(m);
	assert_int_equal(m->positions, FT_ALIBI);
	assert_int_equal(m->n_passed_over, 1);
	assert_string_equal(m->passed_over[0], "attn_config.clip_qkv");
	ft_model_free(m);
}

/* So are keys that a scenario lays upon a model whose type has them, but no layer of it. */
static void keys_without_a_layer_are_told(void **state)
{
	static const char *const yaml[][2] = {
		{ "name: qwen3-30b-a3b\nintermediate_size: 64", "intermediate_size" },
		{ "name: deepseek-v3\nnum_key_value_heads: 8", "num_key_value_heads" },
		{ "name: gemma2-9b\nlayer_types: [full_attention]\n"
		  "sliding_window_pattern: 1",
		  "sliding_window_pattern" },
	};
	struct ft_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(yaml) / sizeof(*yaml); i++) {
		struct ft_model *m = model_of_text(yaml[i][0], &err);

		if (!m)
			fail_msg("%s: %s", yaml[i][0], err.text);
		assert_int_equal(m->n_passed_over, 1);
		assert_string_equal(m->passed_over[0], yaml[i][1]);
		ft_model_free(m);
	}
}

/* EXAONE says where windows are in letters, Hunyuan a number once for each layer. */
static void what_is_said_for_each_layer_is_understood(void **state)
{
	struct ft_error err;
	struct ft_model *m = model_of_json("{\"model_type\": \"exaone4\", " SHAPE
					   ", \"sliding_window\": 128,"
					   "\"sliding_window_pattern\": \"LLG\"}",
					   "", &err);

	(void)state;
	assert_non_null(m);
	for (int64_t i = 0; i < 8; i++)
		assert_int_equal(m->layer[i].window, i % 3 == 2 ? 0 : 128);
	ft_model_free(m);
	m = model_of_json("{\"model_type\": \"hunyuan_v1_moe\", " SHAPE
			  ", \"num_experts\": 16, \"moe_topk\": [2, 2, 2],"
			  "\"num_shared_expert\": [3, 3]}",
			  "", &err);
	assert_non_null(m);
	assert_int_equal(m->layer[7].experts_per_token, 2);
	assert_int_equal(m->layer[7].shared_intermediate, 3 * 96);
	ft_model_free(m);
	assert_null(model_of_json("{\"model_type\": \"hunyuan_v1_moe\", " SHAPE
				  ", \"num_experts\": 16, \"moe_topk\": [2, 3]}",
				  "", &err));
	assert_non_null(strstr(err.text, "moe_topk: is not the same for all layers"));
}

/* Qwen Omni: a text part inside a part that thinks. */
static void a_part_inside_a_part_is_read(void **state)
{
	struct ft_error err;
	struct ft_model *m = model_of_json(
		"{\"model_type\": \"qwen2_5_omni\", \"talker_config\": {\"a\": 1},"
		"\"thinker_config\": {\"audio_config\": {\"a\": 1}, \"text_config\": "
		"{\"model_type\": \"qwen2_5_omni_text\", " SHAPE "}}}",
		"", &err);

	(void)state;
	assert_non_null(m);
	assert_true(m->qkv_bias);
	assert_int_equal(m->n_passed_over, 2);
	assert_string_equal(m->passed_over[0], "audio_config");
	assert_string_equal(m->passed_over[1], "talker_config");
	ft_model_free(m);
}

static void positions_that_are_added_are_told(void **state)
{
	struct ft_error err;
	struct ft_model *m = model_of_json("{\"model_type\": \"gpt2\", " SHAPE
					   ", \"n_positions\": 1024}",
					   "", &err);

	(void)state;
	assert_non_null(m);
	ft_model_fit(m, &(struct ft_plan){ .sequence = 1024 });
	assert_int_equal(m->stretched_from, 0);
	ft_model_fit(m, &(struct ft_plan){ .sequence = 4096 });
	assert_int_equal(m->stretched_from, 1024);
	assert_int_equal(m->max_positions, 4096);
	ft_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_type_is_read_under_its_own_names),
		cmocka_unit_test(keys_laid_upon_a_config_meet_its_own_names),
		cmocka_unit_test(a_whole_model_may_stand_in_the_scenario),
		cmocka_unit_test(mistakes_are_told_with_their_place),
		cmocka_unit_test(a_config_without_a_type_is_refused),
		cmocka_unit_test(a_file_that_is_no_model_is_told_what_it_is),
		cmocka_unit_test(keys_of_other_types_are_told),
		cmocka_unit_test(keys_of_maps_inside_are_told),
		cmocka_unit_test(keys_without_a_layer_are_told),
		cmocka_unit_test(what_is_said_for_each_layer_is_understood),
		cmocka_unit_test(a_part_inside_a_part_is_read),
		cmocka_unit_test(positions_that_are_added_are_told),
	};

	return cmocka_run_group_tests_name("models/config", tests, NULL, NULL);
}
