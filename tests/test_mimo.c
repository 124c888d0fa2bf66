/* tests/test_mimo.c - MiMo-V2: layers with heads of two kinds, values narrower than keys, sinks in some layers */
#include "tests/config_json.h"
#include "tests/counted.h"

#define KEYS \
	"model_type: mimo_v2_flash, num_hidden_layers: 3, hidden_size: 512, " \
	"num_attention_heads: 8, num_key_value_heads: 1, head_dim: 96, v_head_dim: 64, " \
	"sliding_window: 32, intermediate_size: 1024, n_routed_experts: 8, " \
	"num_experts_per_tok: 2, moe_intermediate_size: 256, vocab_size: 1024"
#define MODEL(more) "{" KEYS more "}"
#define PLAN "{sequence_length: 128, global_batch_size: 1, sharding: fsdp}"

enum { H = 512, TOKENS = 128, HEADS = 8, QK = 96, V = 64 };

/* Where nothing is said: the first layer sees all tokens and has a dense MLP, the others have a window, twice the key heads,
 * and sinks. */
static void its_class_says_what_layers_are(void **state)
{
	struct ft_error err;
	struct ft_model *
		bare = model_of_text(MODEL(""), &err),
	       *said = model_of_text(
		       MODEL(", hybrid_layer_pattern: [0, 1, 1], moe_layer_freq: [0, 1, 1], "
			     "swa_num_attention_heads: 8, swa_num_key_value_heads: 2, "
			     "swa_head_dim: 96, swa_v_head_dim: 64"),
		       &err),
	       *words = model_of_text(
		       MODEL(", layer_types: [full_attention, sliding_attention, "
			     "sliding_attention], mlp_layer_types: [dense, sparse, sparse]"),
		       &err);

	(void)state;
	ok_or_say(bare && said && words, err);
	for (int i = 0; i < 3; i++) {
		const struct ft_layer *l = &bare->layer[i];

		assert_true(l->heads == HEADS && l->qk_head_dim == QK &&
			    l->v_head_dim == V);
		assert_int_equal(l->kv_heads, i ? 2 : 1);
		assert_int_equal(l->window, i ? 32 : 0);
		assert_int_equal(l->sinks, i > 0);
		assert_int_equal(l->experts, i ? 8 : 0);
	}
	assert_true(bare->sinks);
	assert_memory_equal(bare->layer, said->layer, 3 * sizeof(*bare->layer));
	assert_memory_equal(bare->layer, words->layer, 3 * sizeof(*bare->layer));
	ft_model_free(words);
	ft_model_free(said);
	ft_model_free(bare);
}

/* A sliding layer beside the global one: a key and a value head more, a sink a head. */
static void parameters_are_of_each_kind_of_layer(void **state)
{
	double all =
		(double)H * HEADS * QK + (double)H * (QK + V) + (double)HEADS * V * H;
	struct ft_error err;
	struct ft_model *m = model_of_text(MODEL(""), &err);

	(void)state;
	ok_or_say(m, err);
	near_frac(ft_layer_attention_parameters(m, 0), all, 1e-12);
	near_frac(ft_layer_attention_parameters(m, 1),
		  all + (double)H * (QK + V) + HEADS, 1e-12);
	ft_model_free(m);
}

/* Products of queries, keys and values as wide as each layer's heads, and a product with values' narrower ones; values times
 * a number, forward and backward. */
static void products_are_as_wide_as_heads(void **state)
{
	static const char *const stacks[] = { "transformers-5-eager", "megatron-core" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts p;

		build(&p, MODEL(""), PLAN, stacks[i], 1);
		near_frac(sum_of(p.graph, "attention_out").flop,
			  3 * 6. * TOKENS * H * HEADS * V, 1e-12);
		near_frac(sum_of(p.graph, "value_scale").bytes,
			  2 * 4. * TOKENS * V * (1 + 2 + 2), 1e-12);
		if (i)
			near_frac(sum_of(p.graph, "qkv").flop,
				  6. * TOKENS * H *
					  (3 * HEADS * QK + (1 + 2 + 2) * (QK + V)),
				  1e-12);
		else
			near_frac(sum_of(p.graph, "v").flop,
				  6. * TOKENS * H * (1 + 2 + 2) * V, 1e-12);
		drop(&p);
	}
}

/* In its class all layers write their scores; those without a sink do not join it, 8 bytes a score less, and 10 backward. */
static void layers_without_sinks_join_none(void **state)
{
	double scores = (double)HEADS * TOKENS * TOKENS;
	struct parts p, q;

	(void)state;
	build(&p, MODEL(""), PLAN, "transformers-5-eager", 1);
	near_frac(sum_of(p.graph, "softmax").bytes,
		  scores * (20 + 26 + 2 * (4 + 26.7) + 2 * (18 + 14.6)), 1e-12);
	drop(&p);
	build(&p, MODEL(", add_full_attention_sink_bias: true"), PLAN,
	      "transformers-5-eager", 1);
	near_frac(sum_of(p.graph, "softmax").bytes, scores * 3 * (4 + 26.7 + 18 + 14.6),
		  1e-12);
	drop(&p);
	/* by a kernel that knows none, its output is scaled in layers that have some */
	build(&p, MODEL(""), PLAN, "transformers-5-eager-flex", 1);
	build(&q, MODEL(", add_full_attention_sink_bias: true"), PLAN,
	      "transformers-5-eager-flex", 1);
	near_frac(3 * sum_of(p.graph, "sinks").bytes,
		  2 * sum_of(q.graph, "sinks").bytes, 1e-12);
	assert_true(sum_of(p.graph, "sinks").n > 0);
	drop(&q);
	drop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_class_says_what_layers_are),
		cmocka_unit_test(parameters_are_of_each_kind_of_layer),
		cmocka_unit_test(products_are_as_wide_as_heads),
		cmocka_unit_test(layers_without_sinks_join_none),
	};

	return cmocka_run_group_tests_name("mimo", tests, NULL, NULL);
}
