/* tests/test_counted_models.c - parameters of every decoder, as Transformers built and counted it; what its classes say unasked */
#include <jansson.h>
#include <zlib.h>

#include "base/arena.h"
#include "base/node.h"
#include "tests/config_json.h"

enum { LINE = 1 << 16 };

/* Without tokens predicted ahead: the library trains none. */
static struct ft_model *model_of(json_t *config, struct ft_error *err)
{
	struct ft_model *model;
	char *text;

	json_object_set_new(config, "num_nextn_predict_layers", json_integer(0));
	text = json_dumps(config, 0);
	assert_non_null(text);
	model = model_of_json(text, "", err);
	free(text);
	return model;
}

/* As it is written down, but for its name, which is that of a file here. */
static char *written(struct arena *mem, const struct ft_model *m)
{
	struct node *map = node_map(mem, &m->config->mark);

	for (size_t i = 0; i < m->config->n; i++)
		if (strcmp(m->config->key[i], "name") != 0)
			node_put(mem, map, m->config->key[i], NULL, m->config->item[i]);
	return node_flow(mem, map);
}

/* It is read again as the same model. */
static void is_read_again(const struct ft_model *m, const char *line)
{
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	char *text = written(&mem, m);
	struct node *root = node_read_text(&mem, "written", text, strlen(text), &err);
	struct ft_model *again = root ? ft_model_load(root, &err) : NULL;

	if (!again || ft_model_parameters(again) != ft_model_parameters(m))
		fail_msg("%.200s: written as %.600s: %.0f, not %.0f %s", line, text,
			 again ? ft_model_parameters(again) : 0, ft_model_parameters(m),
			 err.text);
	assert_string_equal(written(&mem, again), text);
	ft_model_free(again);
	arena_release(&mem);
}

static void is_counted(const char *line)
{
	json_t *row = json_loads(line, 0, NULL);
	struct ft_error err = { 0 };
	struct ft_model *m;
	double counted;

	assert_non_null(row);
	counted = (double)json_integer_value(json_object_get(row, "parameters"));
	m = model_of(json_object_get(row, "config"), &err);
	if (!m || ft_model_parameters(m) != counted)
		fail_msg("%.300s: %.0f, not %.0f %s", line,
			 m ? ft_model_parameters(m) : 0, counted, err.text);
	is_read_again(m, line);
	for (size_t i = 0; i < m->n_passed_over; i++) /* its class wrote it */
		assert_string_not_equal(m->passed_over[i], "sliding_window");
	ft_model_free(m);
	json_decref(row);
}

static void counts_are_those_of_the_library(void **state)
{
	static const struct {
		const char *file;
		int rows;
	} counted[] = {
		{ "measurements/models/transformers-5.17-2026-11-25.jsonl.gz", 281 },
		{ "measurements/models/transformers-5.17-2026-11-30.jsonl.gz", 16 },
		{ "measurements/models/transformers-5.17-2026-12-01.jsonl.gz", 8 }
	};
	char *line = malloc(LINE);

	(void)state;
	assert_non_null(line);
	for (size_t i = 0; i < sizeof(counted) / sizeof(*counted); i++) {
		gzFile f = gzopen(counted[i].file, "rb");
		int n = 0;

		assert_non_null(f);
		for (; gzgets(f, line, LINE); n++)
			is_counted(line);
		assert_int_equal(n, counted[i].rows);
		gzclose(f);
	}
	free(line);
}

/* A model's own count pads embedding and head as one rank has them: 1,000 words to 1,056, not to 1,152. */
static void padding_is_that_of_one_rank(void **state)
{
	static const char text[] =
		"{model_type: llama, hidden_size: 64, num_hidden_layers: 1, "
		"num_attention_heads: 1, intermediate_size: 128, vocab_size: 1000%s}";
	double n[2];

	(void)state;
	for (int padded = 0; padded < 2; padded++) {
		struct ft_error err;
		char said[256];
		struct ft_model *m;

		snprintf(said, sizeof(said), text,
			 padded ? ", vocab_size_multiple: 96" : "");
		m = model_of_text(said, &err);
		ok_or_say(m, err);
		n[padded] = ft_model_parameters(m);
		ft_model_free(m);
	}
	assert_true(n[1] - n[0] == 2 * 56 * 64.);
}

/* Llama's class has no window; Qwen 3's says how wide heads are. */
static void a_key_of_other_types_is_passed_over(void **state)
{
	static const char of[] =
		"{'model_type': '%s', 'hidden_size': 64, 'num_hidden_layers': 1, "
		"'num_attention_heads': 1, 'intermediate_size': 128, 'vocab_size': 100%s}";
	static const char *const types[] = { "llama", "mistral", "olmo3", "cohere2" };
	struct ft_model *m;
	char text[400];

	(void)state;
	for (int i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), of, types[i], ", 'sliding_window': 512");
		m = must(json_of(text));
		assert_int_equal(m->layer[0].window, i ? 512 : 0);
		assert_int_equal(m->n_passed_over, i ? 0 : 1);
		ft_model_free(m);
	}
	snprintf(text, sizeof(text), of, "qwen3", "");
	m = must(json_of(text));
	assert_int_equal(m->layer[0].v_head_dim, 128);
	ft_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_are_those_of_the_library),
		cmocka_unit_test(padding_is_that_of_one_rank),
		cmocka_unit_test(a_key_of_other_types_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
