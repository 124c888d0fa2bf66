/* tests/test_document_json.c - a document as JSON: the same values, laid out by depth */
#include <math.h>
#include <regex.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/reader.h"
#include "foretoken/reports.h"
#include "tests/check.h"

static char *written(const char *yaml)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *n = node_read_text(&mem, "d", yaml, strlen(yaml), &err);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ok_or_say(n, err);
	ft_report_document_json(out, n);
	fclose(out);
	arena_release(&mem);
	return text;
}

static void values_stay_what_they_are(void **state)
{
	static const struct {
		const char *yaml, *json;
	} cases[] = {
		{ "3", "3\n" },
		{ "0.25", "0.25\n" },
		{ "0.333333333333333333", "0.333333333333\n" },
		{ "three", "\"three\"\n" },
		{ "'3'", "\"3\"\n" },
		{ "true", "true\n" },
		{ "false", "false\n" },
		{ "'true'", "\"true\"\n" },
		{ "null", "null\n" },
		{ "\"a\\nb\"", "\"a\\nb\"\n" },
		{ "[]", "[]\n" },
		{ "{}", "{}\n" },
		{ "{a: 1, b: [2, {c: d}]}",
		  "{\n \"a\": 1,\n \"b\": [\n  2,\n  {\n   \"c\": \"d\"\n  }\n ]\n}\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *text = written(cases[i].yaml);

		assert_string_equal(text, cases[i].json);
		free(text);
	}
}

/* Drawn words of signs, digits, points and exponents: a number is what JSON says that it is. */
static void a_number_is_one_of_jsons(void **state)
{
	static const char signs[] = "--+.00123489eE",
			  grammar[] =
				  "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$";
	uint64_t seed = 3;
	int numbers = 0;
	regex_t is;

	(void)state;
	assert_int_equal(regcomp(&is, grammar, REG_EXTENDED | REG_NOSUB), 0);
	for (int i = 0; i < 20000; i++) {
		struct arena mem = { 0 };
		static const struct ft_mark at = { "d", 1, 1 };
		char text[8];
		size_t n = 1 + rnd(&seed) % 6;
		bool want;

		for (size_t k = 0; k < n; k++)
			text[k] = signs[rnd(&seed) % (sizeof(signs) - 1)];
		text[n] = '\0';
		want = !regexec(&is, text, 0, NULL, 0);
		numbers += want;
		if (node_is_number(node_scalar(&mem, &at, text)) != want)
			fail_msg("'%s' is %s number", text, want ? "a" : "no");
		arena_release(&mem);
	}
	regfree(&is);
	assert_true(numbers > 2000);
}

/* A value lies within its low and its high, or that is refused; what is left out is the value. */
static void a_value_lies_within_its_range(void **state)
{
	(void)state;
	for (int i = 0; i < 5 * 4 * 4; i++) {
		struct arena mem = { 0 };
		struct ft_error err = { 0 };
		int value = i % 5, low = i / 5 % 4, high = i / 20;
		const char *text = arena_printf(
			&mem, "x: {value: %d W, %s%s provenance: {kind: assumed}}",
			value + 1, low ? arena_printf(&mem, "low: %d W,", low + 1) : "",
			high ? arena_printf(&mem, "high: %d W,", high + 1) : "");
		struct node *n = node_read_text(&mem, "d", text, strlen(text), &err);
		struct reader r = reader_open(n, &err);
		struct ft_number x = read_number(&r, &mem, "x", DIM_W);
		bool good = (!low || low <= value) && (!high || high >= value);

		assert_int_equal(reader_close(&r), good);
		if (good) {
			assert_true(x.value == value + 1);
			assert_true(x.low == (low ? low : value) + 1);
			assert_true(x.high == (high ? high : value) + 1);
		} else {
			assert_string_equal(err.text,
					    "value: lies outside low and high");
		}
		arena_release(&mem);
	}
}

/* All that was assumed is told, in order, and the scenario as it was resolved. */
static void an_answer_says_what_was_assumed(void **state)
{
	static const char text[] =
		"{model: {name: llama3-8b, num_hidden_layers: 2}, cluster: {gpu: "
		"h100-sxm, gpus: 8}, training: {sequence_length: 1024, "
		"global_batch_size: 16}}";
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	struct ft_error err;
	struct ft_outcome o;
	struct node *n = node_read_text(&mem, "d", text, strlen(text), &err);
	struct ft_scenario *s = ft_scenario_from(shelf, n, "d", true, &err);
	char *told = NULL;
	size_t size;
	FILE *out = open_memstream(&told, &size);
	json_t *j, *assumed;

	(void)state;
	ok_or_say(s, err);
	ok_or_say(ft_study_simulate(s, NULL, NULL, &o, &err), err);
	ft_report_outcome_json(out, s, &o);
	fclose(out);
	j = json_loads(told, 0, NULL);
	assumed = json_object_get(j, "assumed");
	assert_int_equal(json_array_size(assumed), s->n_assumed);
	assert_true(s->n_assumed > 10);
	for (size_t i = 0; i < s->n_assumed; i++) {
		assert_string_equal(json_string_value(json_array_get(assumed, i)),
				    s->assumed[i]);
		assert_null(node_path(n, s->assumed[i]));
		assert_non_null(node_path(s->resolved, s->assumed[i]));
	}
	json_decref(j);
	free(told);
	ft_outcome_release(&o);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_stay_what_they_are),
		cmocka_unit_test(a_number_is_one_of_jsons),
		cmocka_unit_test(a_value_lies_within_its_range),
		cmocka_unit_test(an_answer_says_what_was_assumed),
	};

	return cmocka_run_group_tests_name("reports/json", tests, NULL, NULL);
}
