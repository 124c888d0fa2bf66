/*
 * tests/test_stack_models.c - what Megatron does to a model of its own accord: attention whose scores are
 * capped is not fused, and words are padded to a multiple of 128 times tp
 */
#include "foretoken/study.h"
#include "tests/counted.h"
#include "tests/simulated.h"

#define PLAN \
	"{sequence_length: 2048, global_batch_size: 2, micro_batch_size: 2, recompute: none}"
enum { LAYERS = 2, SEQUENCE = 2048, TOKENS = 2 * SEQUENCE };
static const double scores = 16.0 * SEQUENCE * TOKENS;

/* c tanh(x / c) in 16 bit: a factor, the tanh, a factor (4 each), and backward the gradient of the tanh takes
 * 6. Its output and the softmax's stay, 2 bytes each. NeMo's Gemma 2 is so; a plain loop's mask goes by
 * flash attention all the same. */
static void capped_scores_are_not_fused(void **state)
{
	struct parts with, without;

	(void)state;
	build(&with, "{name: gemma2-9b, num_hidden_layers: 2}", PLAN, "megatron-core",
	      1);
	build(&without,
	      "{name: gemma2-9b, num_hidden_layers: 2, attn_logit_softcapping: null}",
	      PLAN, "megatron-core", 1);
	expect(&with, "attention", 0, 0, 0);
	expect(&with, "score_cap", 2 * LAYERS, 13 * scores, 3);
	assert_true(sum_of(with.graph, "scores").n == 3 * LAYERS);
	near_frac(sum_of(with.graph, "softmax").bytes, LAYERS * (3 + 4) * scores, 1e-9);
	near_frac(kept_by_layer(with.graph) - kept_by_layer(without.graph), 4 * scores,
		  0.01);
	assert_true(sum_of(without.graph, "attention").n == 2 * LAYERS);
	assert_true(sum_of(without.graph, "score_cap").n == 0);
	drop(&with);
	drop(&without);
}

#define RUN(model, stack, training) \
	"{model: " model ", cluster: {gpu: h100-sxm, gpus: 8}, stack: " stack \
	", training: {sequence_length: 2048, global_batch_size: 8, " training "}}"

static void nor_are_they_dealt_over_a_sequence(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_error err;
	struct ft_scenario *s;

	(void)state;
	assert_null(scenario_of(
		shelf, RUN("gemma2-9b", "megatron-core", "parallel: {cp: 2}"), &err));
	assert_string_equal(
		err.text,
		"cp 2: the stack does not fuse attention whose scores are capped "
		"(attn_logit_softcapping), and keeps whole rows of scores, which no "
		"context group shares; leave cp out, or take a stack whose attention "
		"is fused here");
	assert_null(scenario_of(
		shelf,
		RUN("gpt-oss-20b", "transformers-5-eager-flex", "parallel: {cp: 2}"),
		&err));
	assert_string_equal(
		err.text,
		"cp 2: the stack scales attention with sinks behind its kernel "
		"(sink_attention), which no context group shares; leave cp out, or take a "
		"stack whose attention is fused here");
	s = scenario_of(
		shelf,
		RUN("llama3-8b", "transformers-5-eager-flex", "parallel: {cp: 2}"),
		&err);
	ok_or_say(s, err);
	ft_scenario_free(s);
	s = scenario_of(shelf,
			RUN("{name: gemma2-9b, attn_logit_softcapping: null}",
			    "megatron-core", "parallel: {cp: 2}"),
			&err);
	ok_or_say(s, err);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
}

/* Granite 3 has 49,155 words: 385 times 128 are 49,280, 193 times 256 are 49,408. */
static void words_are_padded(void **state)
{
	static const struct {
		const char *text;
		int64_t tp, words;
	} seen[] = {
		{ RUN("granite3-8b", "megatron-core", "parallel: {tp: 1}"), 1, 49280 },
		{ RUN("granite3-8b", "megatron-core", "parallel: {tp: 2}"), 2, 49408 },
		{ RUN("{name: granite3-8b, vocab_size_multiple: 1}", "megatron-core",
		      "parallel: {tp: 2}"),
		  2, 49156 },
		{ RUN("granite3-8b", "megatron-bridge-25.09", "parallel: {tp: 1}"), 1,
		  49155 },
		{ RUN("granite3-8b", "torch-2.11-eager", "parallel: {tp: 1}"), 1,
		  49155 },
	};
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (size_t i = 0; i < sizeof(seen) / sizeof(*seen); i++) {
		struct ft_error err;
		struct ft_scenario *s = scenario_of(shelf, seen[i].text, &err);

		ok_or_say(s, err);
		assert_int_equal(ft_model_vocab(s->model, seen[i].tp), seen[i].words);
		ft_scenario_free(s);
	}
	ft_shelf_free(shelf);
}

/* Positions that are learned are whole on each tensor rank; words are dealt. */
static void learned_positions_are_whole(void **state)
{
	struct parts p[2];
	double more[2];

	(void)state;
	for (int tp = 1; tp <= 4; tp += 3) {
		for (int k = 0; k < 2; k++) {
			struct arena mem = { 0 };

			build(&p[k],
			      k ? "{name: gpt3-175b, num_hidden_layers: 2, max_position_embeddings: 4096}" :
				  "{name: gpt3-175b, num_hidden_layers: 2, max_position_embeddings: 2048}",
			      arena_printf(&mem,
					   "{sequence_length: 2048, global_batch_size: "
					   "4, sharding: ddp, parallel: {tp: %d}}",
					   tp),
			      "megatron-core", 4);
			arena_release(&mem);
		}
		more[tp > 1] = p[1].graph->rank_class[0].base_bytes[FT_MEMORY_WEIGHTS] -
			       p[0].graph->rank_class[0].base_bytes[FT_MEMORY_WEIGHTS];
		for (int k = 0; k < 2; k++)
			drop(&p[k]);
	}
	near_frac(more[1], more[0], 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capped_scores_are_not_fused),
		cmocka_unit_test(nor_are_they_dealt_over_a_sequence),
		cmocka_unit_test(words_are_padded),
		cmocka_unit_test(learned_positions_are_whole),
	};

	return cmocka_run_group_tests_name("stack_models", tests, NULL, NULL);
}
