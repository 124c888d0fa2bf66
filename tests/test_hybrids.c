/* tests/test_hybrids.c - published config.json files of hybrids, and their counts, as tests/test_families.c has of others */
#include <math.h>

#include "tests/config_json.h"

#define LFM2 "'conv_L_cache': 3, 'conv_bias': false, 'vocab_size': 65536, "
#define LFM2_2600 \
	"{'model_type': 'lfm2', 'hidden_size': 2048, 'num_hidden_layers': 30, " \
	"'num_attention_heads': 32, 'num_key_value_heads': 8, 'conv_L_cache': 3, " \
	"'intermediate_size': 10752, 'block_auto_adjust_ff_dim': false, " \
	"'full_attn_idxs': [2, 5, 9, 13, 17, 21, 24, 27], "

#define FIVE "1, 1, 1, 1, 1"

/* Parameters to the last one; those that a token uses, as rounded by their authors, or 0. */
static const struct {
	const char *json;
	double parameters, active;
} known[] = {
	/* LiquidAI/LFM2-350M, -700M, -1.2B and -2.6B, by the table of their model cards; LFM2.5-2.6B, which has more words */
	{ "{'model_type': 'lfm2', 'hidden_size': 1024, 'num_hidden_layers': 16,"
	  "'num_attention_heads': 16, 'num_key_value_heads': 8, " LFM2
	  "'full_attn_idxs': [2, 5, 8, 10, 12, 14], 'block_ff_dim': 6656}",
	  354483968., 0 },
	{ "{'model_type': 'lfm2', 'hidden_size': 1536, 'num_hidden_layers': 16,"
	  "'num_attention_heads': 24, 'num_key_value_heads': 8, " LFM2
	  "'full_attn_idxs': [2, 5, 8, 10, 12, 14], 'block_ff_dim': 10240,"
	  "'intermediate_size': 10240}",
	  742489344., 0 },
	{ "{'model_type': 'lfm2', 'hidden_size': 2048, 'num_hidden_layers': 16,"
	  "'num_attention_heads': 32, 'num_key_value_heads': 8, " LFM2
	  "'full_attn_idxs': [2, 5, 8, 10, 12, 14], 'block_ff_dim': 12288,"
	  "'intermediate_size': 8192, 'block_auto_adjust_ff_dim': true,"
	  "'block_ffn_dim_multiplier': 1.0, 'block_multiple_of': 256}",
	  1170340608., 0 },
	{ LFM2_2600 "'vocab_size': 65536}", 2569272320., 0 },
	{ LFM2_2600 "'vocab_size': 128000}", 2697198592., 0 },
	/* LiquidAI/LFM2-8B-A1B: 8.3B; derived by hand from its matrices, with its router's corrections */
	{ "{'model_type': 'lfm2_moe', 'hidden_size': 2048, 'num_hidden_layers': 24,"
	  "'num_attention_heads': 32, 'num_key_value_heads': 8, " LFM2
	  "'full_attn_idxs': [2, 6, 10, 14, 18, 21], 'intermediate_size': 7168,"
	  "'moe_intermediate_size': 1792, 'num_experts': 32,"
	  "'num_experts_per_tok': 4, 'num_dense_layers': 2, 'norm_topk_prob': true,"
	  "'use_expert_bias': true, 'routed_scaling_factor': 1.0}",
	  8339930560., 1.5e9 },
	/* tiiuae/Falcon-H1-0.5B: 521 million; derived by hand from its matrices */
	{ "{'model_type': 'falcon_h1', 'hidden_size': 1024, 'num_hidden_layers': 36,"
	  "'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 64,"
	  "'intermediate_size': 2048, 'mamba_d_ssm': 1536, 'mamba_n_heads': 24,"
	  "'mamba_d_head': 64, 'mamba_d_state': 128, 'mamba_n_groups': 1,"
	  "'mamba_d_conv': 4, 'mamba_chunk_size': 128, 'mamba_rms_norm': false,"
	  "'mamba_conv_bias': true, 'projectors_bias': false,"
	  "'attn_layer_indices': null, 'mlp_multipliers': [0.9, 0.6],"
	  "'lm_head_multiplier': 0.04, 'tie_word_embeddings': false,"
	  "'vocab_size': 32784}",
	  521411104., 0 },
	/* moonshotai/Kimi-Linear-48B-A3B: 48B, 3B active; derived by hand, with the router's corrections */
	{ "{'model_type': 'kimi_linear', 'hidden_size': 2304, 'head_dim': 72,"
	  "'num_hidden_layers': 27, 'num_attention_heads': 32,"
	  "'num_key_value_heads': 32, 'intermediate_size': 9216,"
	  "'linear_attn_config': {'kda_layers': [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15,"
	  "17, 18, 19, 21, 22, 23, 25, 26], 'full_attn_layers': [4, 8, 12, 16, 20, 24, 27],"
	  "'num_heads': 32, 'head_dim': 128, 'short_conv_kernel_size': 4},"
	  "'num_experts': 256, 'moe_intermediate_size': 1024, 'kv_lora_rank': 512,"
	  "'q_lora_rank': null, 'qk_nope_head_dim': 128, 'qk_rope_head_dim': 64,"
	  "'v_head_dim': 128, 'mla_use_nope': true, 'num_experts_per_token': 8,"
	  "'num_shared_experts': 1, 'first_k_dense_replace': 1, 'moe_layer_freq': 1,"
	  "'num_expert_group': 1, 'topk_group': 1, 'model_max_length': 1048576,"
	  "'num_nextn_predict_layers': 0, 'tie_word_embeddings': false,"
	  "'vocab_size': 163840}",
	  49122681728., 3e9 },
	/* XiaomiMiMo/MiMo-V2-Flash: 309B, 15B active; derived by hand, with sinks and the router's corrections */
	{ "{'model_type': 'mimo_v2_flash', 'hidden_size': 4096, 'head_dim': 192,"
	  "'num_hidden_layers': 48, 'num_attention_heads': 64,"
	  "'num_key_value_heads': 4, 'v_head_dim': 128, 'intermediate_size': 16384,"
	  "'swa_num_attention_heads': 64, 'swa_num_key_value_heads': 8,"
	  "'swa_head_dim': 192, 'swa_v_head_dim': 128, 'sliding_window': 128,"
	  "'hybrid_layer_pattern': [0, 1, 1, 1, 1, 0, " FIVE ", 0, " FIVE ", 0, " FIVE
	  ", 0, " FIVE ", 0, " FIVE ", 0, " FIVE ", 0, " FIVE ", 0],"
	  "'moe_layer_freq': [0, 1, 1, " FIVE ", " FIVE ", " FIVE ", " FIVE ", " FIVE
	  ", " FIVE ", " FIVE ", " FIVE ", " FIVE "],"
	  "'add_swa_attention_sink_bias': true, 'n_shared_experts': null,"
	  "'add_full_attention_sink_bias': false, 'attention_chunk_size': 128,"
	  "'n_routed_experts': 256, 'num_experts_per_tok': 8, 'n_group': 1,"
	  "'moe_intermediate_size': 2048, 'attention_value_scale': 0.707,"
	  "'tie_word_embeddings': false, 'vocab_size': 152576}",
	  308778780864., 15e9 },
};

static void checkpoints_have_the_parameters_that_are_counted(void **state)
{
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct ft_model *m = must(json_of(known[i].json));
		double got = ft_model_parameters(m);
		double active = ft_model_active_parameters(m);
		double tables = 2 * (double)m->hidden_size * (double)m->vocab_size;

		if (got != known[i].parameters && ++wrong)
			print_error("%.60s: %.0f, not %.0f (%.0f)\n", known[i].json,
				    got, known[i].parameters,
				    got - known[i].parameters);
		/* some count embedding and head among the active ones */
		if (known[i].active > 0 &&
		    (active < known[i].active * 0.97 ||
		     active - tables > known[i].active * 1.03) &&
		    ++wrong)
			print_error("%.60s: active %.4g, not %.4g\n", known[i].json,
				    active, known[i].active);
		ft_model_free(m);
	}
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checkpoints_have_the_parameters_that_are_counted),
	};

	return cmocka_run_group_tests_name("models/hybrids", tests, NULL, NULL);
}
