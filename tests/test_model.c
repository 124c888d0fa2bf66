/* tests/test_model.c - parameters and FLOPs of the model zoo */
#include "tests/check.h"

#include <math.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/node.h"
#include "foretoken/models.h"

static struct ft_model *load(const char *yaml)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *node = node_read_text(&mem, "test.yaml", yaml, strlen(yaml), &err);
	struct ft_model *model;

	assert_non_null(node);
	model = ft_model_load(node, &err);
	if (!model)
		fail_msg("%s: %s:%d:%d: %s", yaml, err.file, err.line, err.column,
			 err.text);
	arena_release(&mem);
	return model;
}

static void assert_near_of(double got, double want, double frac, const char *what)
{
	if (fabs(got - want) > frac * fabs(want))
		fail_msg("%s: %.6g, expected %.6g", what, got, want);
}

/* What the authors print, or the sum of the tensors they published. */
static void presets_have_the_published_parameters(void **state)
{
	static const struct {
		const char *name;
		double parameters, frac;
	} known[] = {
		{ "llama2-7b", 6738415616., 0 },
		{ "llama2-13b", 13015864320., 0 },
		{ "llama2-70b", 68976648192., 0 },
		{ "llama3-8b", 8030261248., 0 },
		{ "llama3-70b", 70553706496., 0 },
		{ "llama3.1-8b", 8030261248., 0 },
		{ "llama3.1-70b", 70553706496., 0 },
		{ "llama3.1-405b", 405853388800., 0 },
		{ "mistral-7b", 7241732096., 0 },
		{ "mixtral-8x7b", 46702792704., 0 },
		{ "mixtral-8x22b", 140.63e9, 1e-4 },
		{ "deepseek-v2", 235.74e9, 1e-4 },
		{ "deepseek-v3", 671026419200., 0 },
		{ "kimi-k2", 1.0264e12, 1e-3 },
		{ "qwen2.5-7b", 7615616512., 0 },
		{ "qwen2.5-72b", 72706203648., 0 },
		{ "qwen3-30b-a3b", 30532122624., 0 },
		{ "qwen3-235b-a22b", 235093634560., 0 },
		{ "gpt-oss-20b", 20914757184., 0 },
		{ "gpt-oss-120b", 116829156672., 0 },
		{ "gpt3-175b", 174.6e9, 1e-3 },
		{ "gpt-1.5b", 1557.7e6, 1e-3 },
		{ "gpt-350m", 355.9e6, 5e-3 },
		{ "megatron-530b", 529.6e9, 2e-3 },
		{ "megatron-1t", 1008e9, 2e-3 },
		{ "grok1-314b", 316e9, 5e-3 },
		{ "gemma2-9b", 9241705984., 0 },
		/* Gemma 3 report (arXiv 2503.19786), table 1: 25,600M and the embedding */
		{ "gemma3-27b", 25.6e9 + 262208. * 5376, 1e-4 },
		{ "falcon-7b", 6921720704., 0 },
		{ "falcon-40b", 41.3e9, 1e-3 },
		{ "opt-6.7b", 6658473984., 0 },
		{ "gpt-neox-20b", 20554567680., 0 },
		{ "phi3-mini", 3821079552., 0 },
		{ "olmo2-7b", 7298617344., 0 },
		{ "llama4-scout", 107769861120., 0 },
		{ "llama4-maverick", 400e9, 5e-3 },
		{ "glm4.5-air", 106852251264., 0 },
		{ "qwen3-next-80b-a3b", 79674391296., 0 },
		{ "granite3-8b", 8170848256., 0 },
		{ "starcoder2-15b", 15957889024., 0 },
		{ "llama3.2-1b", 1235814400., 0 },
		{ "llama3.2-3b", 3212749824., 0 },
		{ "qwen3-8b", 8190735360., 0 },
		{ "qwen3-14b", 14768307200., 0 },
		{ "qwen3-32b", 32762123264., 0 },
		{ "qwen2.5-14b", 14770033664., 0 },
		{ "qwen2.5-32b", 32763876352., 0 },
		{ "mistral-nemo-12b", 12247782400., 0 },
		{ "mistral-small-24b", 23572403200., 0 },
		{ "phi4-14b", 14659507200., 0 },
		{ "deepseek-v2-lite", 15706484224., 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct ft_model *m = load(known[i].name);

		assert_near_of(ft_model_parameters(m), known[i].parameters,
			       known[i].frac + 1e-12, known[i].name);
		ft_model_free(m);
	}
}

static void a_token_uses_the_published_active_parameters(void **state)
{
	static const struct {
		const char *name;
		double parameters, frac;
	} known[] = {
		{ "mixtral-8x7b", 12.88e9, 2e-3 },
		{ "deepseek-v2", 21.4e9, 5e-3 },
		{ "deepseek-v3", 37.6e9, 2e-2 },
		{ "qwen3-30b-a3b", 3.35e9, 1e-2 },
		{ "qwen3-235b-a22b", 22.2e9, 1e-2 },
		{ "gpt-oss-120b", 5.7e9, 2e-2 },
		{ "kimi-k2", 32.9e9, 2e-2 },
		{ "llama3-8b", 8030261248., 1e-9 },
		{ "llama4-scout", 17e9, 2e-2 },
		{ "llama4-maverick", 17e9, 2e-2 },
		/* published without embedding and head */
		{ "glm4.5-air", 12e9 + 2 * 151552. * 4096, 2e-2 },
		{ "qwen3-next-80b-a3b", 3e9 + 2 * 151936. * 2048, 0.1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct ft_model *m = load(known[i].name);

		assert_near_of(ft_model_active_parameters(m), known[i].parameters,
			       known[i].frac, known[i].name);
		ft_model_free(m);
	}
}

/* NumParams of LLM Foundry's scripts/train/benchmarking/README.md: biases and a
 * table of positions as long as the sequence are in them. */
static void mpt_counts_its_positions_once_the_sequence_is_known(void **state)
{
	static const struct {
		const char *name;
		int64_t sequence;
		double parameters;
	} known[] = {
		{ "mpt-350m", 512, 354412544 },	  { "mpt-760m", 2048, 760470528 },
		{ "mpt-1b", 2048, 1315950592 },	  { "mpt-3b", 2048, 2651837440 },
		{ "mpt-7b", 2048, 6658859008 },	  { "mpt-7b", 65536, 6918905856 },
		{ "mpt-13b", 2048, 12853954560 }, { "mpt-30b", 2048, 29975214080 },
		{ "mpt-70b", 2048, 64862437376 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct ft_model *m = load(known[i].name);

		ft_model_fit(m, &(struct ft_plan){ .sequence = known[i].sequence });
		assert_near_of(ft_model_parameters(m), known[i].parameters, 1e-12,
			       known[i].name);
		ft_model_free(m);
	}
}

/* Model FLOPs per token as NVIDIA's Megatron-Bridge and NeMo print them. */
static void flops_agree_with_published_counts(void **state)
{
	static const struct {
		const char *name;
		int64_t sequence;
		bool causal;
		double flop, frac;
	} known[] = {
		{ "llama3-8b", 8192, false, 57.9e9, 2e-3 },
		{ "llama3-8b", 8192, true, 51.47e9, 2e-3 },
		{ "llama3-70b", 8192, true, 449.2e9, 3e-3 },
		{ "llama3.1-405b", 8192, true, 2524e9, 1e-3 },
		{ "qwen3-30b-a3b", 4096, true, 23.0e9, 5e-3 },
		{ "qwen3-235b-a22b", 4096, true, 148e9, 5e-3 },
		{ "kimi-k2", 4096, true, 204.5e9, 1e-2 },
		/* 6 N' + 12 L H d (w - w^2 / (2 s)), w = 4096 */
		{ "mistral-7b", 8192, true, 47.50e9, 1e-3 },
		{ "mistral-7b", 32768, true, 48.70e9, 1e-3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct ft_model *m = load(known[i].name);
		double got = ft_model_flop_per_token(m, 1, known[i].sequence,
						     known[i].causal);

		assert_near_of(got, known[i].flop, known[i].frac, known[i].name);
		ft_model_free(m);
	}
}

/* The obvious count of a dense llama, written out. */
static void a_dense_model_costs_what_its_matrices_do(void **state)
{
	struct ft_model *m = load("{name: llama, num_hidden_layers: 2, "
				  "hidden_size: 64, num_attention_heads: 4, "
				  "num_key_value_heads: 2, "
				  "intermediate_size: 160, vocab_size: 1000}");
	double layer = 64 * 64 + 2 * 64 * 32 + 64 * 64 + 3 * 64 * 160;
	double norms = 2 * 64;

	(void)state;
	assert_true(ft_model_parameters(m) == 2 * 1000 * 64 + 2 * (layer + norms) + 64);
	assert_true(ft_model_flop_per_token(m, 1, 128, false) ==
		    6 * (2 * layer + 64 * 1000) + 12 * 2 * 64 * 128);
	ft_model_free(m);
}

static void a_window_bounds_what_attention_sees(void **state)
{
	struct ft_model *m = load("mistral-7b");
	struct ft_model *oss = load("gpt-oss-20b");

	(void)state;
	assert_true(ft_model_flop_per_token(m, 1, 4096, false) ==
		    ft_model_flop_per_token(m, 1, 65536, false));
	assert_true(ft_model_flop_per_token(m, 1, 4096, true) <
		    ft_model_flop_per_token(m, 1, 8192, true));
	assert_int_equal(oss->layer[0].window, 128);
	assert_int_equal(oss->layer[1].window, 0);
	assert_int_equal(oss->layer[22].window, 128);
	ft_model_free(m);
	ft_model_free(oss);
}

static void a_vocabulary_is_padded_only_when_it_is_the_familys_own(void **state)
{
	struct ft_model *preset,
		*own = load("{name: gpt, num_hidden_layers: 2, hidden_size: 64, "
			    "num_attention_heads: 4}");
	struct ft_model *given =
		load("{name: gpt, num_hidden_layers: 2, hidden_size: 64, "
		     "num_attention_heads: 4, vocab_size: 50257}");

	(void)state;
	assert_int_equal(ft_model_vocab(own, 1), 50304);
	assert_int_equal(ft_model_vocab(own, 4), 50688);
	assert_int_equal(ft_model_vocab(own, 8), 51200);
	assert_int_equal(ft_model_vocab(given, 8), 50257);
	preset = load("llama2-7b"); /* says of no multiple */
	assert_int_equal(ft_model_vocab(preset, 1), 32000);
	assert_int_equal(ft_model_vocab(preset, 3), 32000);
	ft_model_free(preset);
	assert_int_equal(own->layer[0].intermediate, 256);
	ft_model_free(own);
	ft_model_free(given);
}

static void fewer_layers_keep_the_dense_ones(void **state)
{
	struct ft_model *four = load("{name: deepseek-v3, "
				     "num_hidden_layers: 4}");
	struct ft_model *two = load("{name: deepseek-v3, "
				    "num_hidden_layers: 2}");

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(four->layer[i].experts, i < 3 ? 0 : 256);
	assert_int_equal(two->layer[1].experts, 0);
	assert_int_equal(two->layer[1].intermediate, 18432);
	ft_model_free(four);
	ft_model_free(two);
}

static void an_override_of_tying_adds_a_head(void **state)
{
	struct ft_model *tied = load("gpt-1.5b");
	struct ft_model *free_head = load("{name: gpt-1.5b, vocab_size: 50304, "
					  "tie_word_embeddings: false}");

	(void)state;
	assert_true(ft_model_head_parameters(tied, 1) == 0);
	assert_true(ft_model_head_parameters(free_head, 1) == 50304 * 1600);
	assert_true(ft_model_parameters(free_head) - ft_model_parameters(tied) ==
		    50304 * 1600);
	ft_model_free(tied);
	ft_model_free(free_head);
}

static void every_preset_loads_and_says_where_it_is_from(void **state)
{
	struct arena mem = { 0 };
	size_t n;
	struct ft_error err;
	const char **name = file_list(&mem, "models", &n, &err);

	(void)state;
	assert_true(n >= 39);
	for (size_t i = 0; i < n; i++) {
		struct ft_model *m;
		char yaml[400];
		bool family = !strcmp(name[i], "gpt") || !strcmp(name[i], "llama") ||
			      !strcmp(name[i], "nemotron4");

		snprintf(yaml, sizeof(yaml), "{name: %s%s}", name[i],
			 family ? ", num_hidden_layers: 4, hidden_size: 256, "
				  "num_attention_heads: 4, "
				  "intermediate_size: 1024" :
				  "");
		m = load(yaml);
		assert_string_equal(m->name, name[i]);
		assert_int_equal(m->from->kind, FT_PUBLISHED);
		assert_true(m->from->source[0] && m->from->date[0]);
		ft_model_free(m);
	}
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(presets_have_the_published_parameters),
		cmocka_unit_test(a_token_uses_the_published_active_parameters),
		cmocka_unit_test(mpt_counts_its_positions_once_the_sequence_is_known),
		cmocka_unit_test(flops_agree_with_published_counts),
		cmocka_unit_test(a_dense_model_costs_what_its_matrices_do),
		cmocka_unit_test(a_window_bounds_what_attention_sees),
		cmocka_unit_test(
			a_vocabulary_is_padded_only_when_it_is_the_familys_own),
		cmocka_unit_test(fewer_layers_keep_the_dense_ones),
		cmocka_unit_test(an_override_of_tying_adds_a_head),
		cmocka_unit_test(every_preset_loads_and_says_where_it_is_from),
	};

	return cmocka_run_group_tests_name("models", tests, NULL, NULL);
}
