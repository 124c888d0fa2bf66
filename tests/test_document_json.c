/* tests/test_document_json.c - a document as JSON: the same values, laid out by depth */
#include "base/arena.h"
#include "base/node.h"
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_stay_what_they_are),
	};

	return cmocka_run_group_tests_name("reports/json", tests, NULL, NULL);
}
