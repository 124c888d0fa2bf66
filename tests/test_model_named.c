/*
 * tests/test_model_named.c - models in files of any name, inside other maps, and as large as they
 * may be
 */
#include <sys/stat.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/node.h"
#include "base/text.h"
#include "foretoken/models.h"
#include "tests/check.h"

#define KEYS \
	"\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 256, " \
	"\"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"head_dim\": 64, " \
	"\"intermediate_size\": 512, \"vocab_size\": 1000"

static struct ft_model *model_of(const char *yaml, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct node *node = node_read_text(&mem, "m", yaml, strlen(yaml), err);
	struct ft_model *model;

	ok_or_say(node, *err);
	model = ft_model_load(node, err);
	arena_release(&mem);
	return model;
}

/* What a name cannot hold is a dash, at its begin an x; not more than a name's length. */
static void obvious_name(const char *leaf, char *to)
{
	size_t n = 0;

	for (; leaf[n] && n < LIMIT_NAME_BYTES; n++) {
		bool letter = (leaf[n] >= 'a' && leaf[n] <= 'z') ||
			      (leaf[n] >= '0' && leaf[n] <= '9');

		to[n] = letter || (n && strchr("._+ -", leaf[n])) ? leaf[n] :
			n					  ? '-' :
								    'x';
	}
	to[n] = '\0';
}

static void a_file_may_be_called_anything(void **state)
{
	static const char letters[] = "ab09._+ -()@:,=~";
	static const char *const ends[] = { ".json", ".yaml", ".yml" };
	char folder[64], path[400], yaml[420], leaf[200], want[LIMIT_NAME_BYTES + 1];
	uint64_t seed = 5;
	struct ft_error err = { 0 };

	(void)state;
	own_path(folder, "named");
	assert_int_equal(mkdir(folder, 0700), 0);
	for (int i = 0; i < 300; i++) {
		size_t n = 1 + rnd(&seed) % (i % 10 ? 12 : 150);
		struct ft_model *model;

		for (size_t k = 0; k < n; k++)
			leaf[k] = letters[rnd(&seed) % (sizeof(letters) - 1)];
		leaf[n] = '\0';
		snprintf(path, sizeof(path), "%s/%s%s", folder, leaf, ends[i % 3]);
		snprintf(yaml, sizeof(yaml), "\"%s\"", path);
		write_text(path, "{" KEYS "}");
		model = model_of(yaml, &err);
		ok_or_say(model, err);
		obvious_name(leaf, want);
		if (strcmp(model->name, want) != 0 || !text_is_name(model->name))
			fail_msg("%s is called %s, not %s", leaf, model->name, want);
		ft_model_free(model);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(folder), 0);
}

/* A part is a map that holds something; what it lacks of what parts share is outside. */
static void the_decoder_is_inside(void **state)
{
	static const struct {
		const char *json;
		int64_t hidden, vocab;
	} cases[] = {
		{ "{" KEYS "}", 256, 1000 },
		{ "{" KEYS ", \"text_config\": {}}", 256, 1000 },
		{ "{" KEYS ", \"text_config\": 3}", 256, 1000 },
		{ "{" KEYS ", \"text_config\": [1]}", 256, 1000 },
		{ "{" KEYS ", \"text_config\": null}", 256, 1000 },
		{ "{\"hidden_size\": 9, \"text_config\": {" KEYS "}}", 256, 1000 },
		{ "{\"hidden_size\": 9, \"llm_config\": {" KEYS "}}", 256, 1000 },
		{ "{\"hidden_size\": 9, \"language_config\": {" KEYS "}}", 256, 1000 },
		{ "{\"vocab_size\": 2000, \"text_config\": {" KEYS "}}", 256, 1000 },
		{ "{\"vocab_size\": 2000, \"text_config\": {\"model_type\": \"llama\", "
		  "\"num_hidden_layers\": 2, \"hidden_size\": 128, "
		  "\"num_attention_heads\": 2, \"intermediate_size\": 512}}",
		  128, 2000 },
	};
	char path[64], yaml[80];
	struct ft_error err = { 0 };

	(void)state;
	own_path(path, "inside.json");
	snprintf(yaml, sizeof(yaml), "\"%s\"", path);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ft_model *model;

		write_text(path, cases[i].json);
		model = model_of(yaml, &err);
		if (!model)
			fail_msg("%s: %s", cases[i].json, err.text);
		assert_int_equal(model->hidden_size, cases[i].hidden);
		assert_int_equal(model->vocab_size, cases[i].vocab);
		ft_model_free(model);
	}
	assert_int_equal(unlink(path), 0);
}

/* The largest is taken, or refused for what other keys say; one more is too large. */
static void so_large_a_model_may_be(void **state)
{
	static const struct {
		const char *key;
		int64_t most;
		const char *of; /* a preset */
	} keys[] = {
		{ "hidden_size", LIMIT_HIDDEN, "llama3-8b" },
		{ "num_hidden_layers", LIMIT_LAYERS, "llama3-8b" },
		{ "vocab_size", LIMIT_VOCABULARY, "llama3-8b" },
		{ "vocab_size_multiple", LIMIT_VOCABULARY, "llama3-8b" },
		{ "num_attention_heads", LIMIT_HEADS, "llama3-8b" },
		{ "head_dim", LIMIT_HEAD_DIM, "llama3-8b" },
		{ "intermediate_size", LIMIT_MLP, "llama3-8b" },
		{ "num_local_experts", LIMIT_EXPERTS, "mixtral-8x7b" },
		{ "moe_latent_size", LIMIT_HIDDEN, "mixtral-8x7b" },
		{ "mamba_chunk_size", LIMIT_HEAD_DIM, "bamba-9b" },
	};
	struct ft_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		for (int more = 0; more < 2; more++) {
			char yaml[512];
			struct ft_model *model;
			bool large;
			char bound[32];

			snprintf(bound, sizeof(bound), " and %lld",
				 (long long)keys[i].most);
			snprintf(yaml, sizeof(yaml), "{name: %s, %s: %lld%s}",
				 keys[i].of, keys[i].key,
				 (long long)keys[i].most + more,
				 strcmp(keys[i].key, "head_dim") ?
					 ", head_dim: 128, num_key_value_heads: 1" :
					 "");
			err.text[0] = '\0';
			model = model_of(yaml, &err);
			large = strstr(err.text, "is not between") != NULL;
			if (large != more || (more && model) ||
			    (more && (!strstr(err.text, keys[i].key) ||
				      !strstr(err.text, bound))))
				fail_msg("%s: %s", yaml, err.text);
			ft_model_free(model);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_may_be_called_anything),
		cmocka_unit_test(the_decoder_is_inside),
		cmocka_unit_test(so_large_a_model_may_be),
	};

	return cmocka_run_group_tests_name("models by name", tests, NULL, NULL);
}
