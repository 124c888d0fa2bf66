/* tests/test_api.c - what the API writes around answers: events and errors, read back */
#include <fcntl.h>

#include <jansson.h>

#include "foretoken/base.h"
#include "serve/api.h"
#include "tests/check.h"
#include "tests/printed.h"

/* The data of an event, as a client puts its lines together; text is cut to pieces. */
static void data_of(char *text, const char *name, char *data)
{
	char *line = strtok(text, "\n"), *end = data;

	assert_true(line && !strncmp(line, "event: ", 7) && !strcmp(line + 7, name));
	while ((line = strtok(NULL, "\n"))) {
		assert_true(!strncmp(line, "data: ", 6));
		end += sprintf(end, "%s%s", end > data ? "\n" : "", line + 6);
	}
}

static void an_event_is_its_name_and_each_line_of_its_data(void **state)
{
	static const char *const lines[] = { "{", "}", " \"a\": 1,", "x", "data: y" };
	uint64_t seed = 1;
	int told[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(told), 0);
	assert_int_equal(fcntl(told[0], F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < 200; i++) {
		char want[200], given[220], got[200] = "", *text = NULL;
		size_t n = 1 + rnd(&seed) % 5, len = 0;

		for (size_t k = 0; k < n; k++)
			len += (size_t)sprintf(want + len, "%s%s", k ? "\n" : "",
					       lines[rnd(&seed) % 5]);
		/* with and without an end of the last line: the same data */
		sprintf(given, "%s%s", want, i % 2 ? "\n" : "");
		PRINTED(text,
			api_event(&(struct api_stream){ .out = out,
							.told = i % 3 ? told[1] : -1 },
				  "some", given));
		len = strlen(text);
		assert_true(len > 2 && !strcmp(text + len - 2, "\n\n"));
		assert_ptr_equal(strstr(text, "\n\n"), text + len - 2);
		data_of(text, "some", got);
		assert_string_equal(got, want);
		if (i % 3)
			assert_int_equal(read(told[0], &byte, 1), 1);
		assert_int_equal(read(told[0], &byte, 1), -1);
		free(text);
	}
	close(told[0]);
	close(told[1]);
}

static const char *text_at(const json_t *error, const char *key)
{
	const char *text = json_string_value(json_object_get(error, key));

	assert_non_null(text);
	return text;
}

static void told(struct ft_error err, const char *file, const char *hint)
{
	char *text = NULL;
	json_t *all, *error;

	PRINTED(text, api_error(out, &err));
	assert_true(text[strlen(text) - 1] == '\n');
	all = json_loads(text, 0, NULL);
	assert_int_equal(json_object_size(all), 1);
	error = json_object_get(all, "error");
	assert_int_equal(json_object_size(error), 5);
	assert_string_equal(text_at(error, "file"), file);
	assert_string_equal(text_at(error, "hint"), hint);
	assert_int_equal(json_integer_value(json_object_get(error, "line")), err.line);
	assert_int_equal(json_integer_value(json_object_get(error, "column")),
			 err.column);
	if (err.text[0] == '\xff')
		err.text[0] = '?';
	assert_string_equal(text_at(error, "text"), err.text);
	json_decref(all);
	free(text);
}

/* The file without a folder or the sign of a foreign text, the clause that says what to do. */
static void an_error_has_a_place_and_a_hint(void **state)
{
	static const char keys[] =
		"GET /api/keys lists every key, GET /api/names every preset";

	(void)state;
	told((struct ft_error){ .file = "<scenario",
				.line = 3,
				.column = 9,
				.text = "is wrong; write 2" },
	     "scenario", "write 2");
	told((struct ft_error){ .file = "hw/gpus/h100.yaml",
				.line = 1,
				.column = 2,
				.text = "a; b;c; ; d" },
	     "h100.yaml", "d");
	told((struct ft_error){ .file = "h100.yaml", .text = "no hint here" },
	     "h100.yaml", keys);
	told((struct ft_error){ .file = "<a/b", .text = "; all" }, "a/b", "all");
	told((struct ft_error){ .text = "a;b" }, "", keys);
	told((struct ft_error){ .text = "" }, "", keys);
	told((struct ft_error){ .text = "\xff; a text" }, "", "a text");
}

/* The words themselves, or nothing of the answer and why there is none. */
static void an_answer_is_whole_or_none(void **state)
{
	static const struct {
		const char *path, *body, *begin;
		bool answers;
	} asked[] = {
		{ "/api/document", "a: 1", "{", true },
		{ "/api/document", "a: [", "{\n \"error\"", false },
		{ "/api/bom", "{}", "{\n \"error\"", false },
		{ "/api/names", "", "{\"models\": [", true },
		{ "/api/keys", "", "[", true },
		{ "/api/plan", "{}", "{\n \"error\"", false },
	};

	(void)state;
	assert_null(api_find("/api"));
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		const struct api_text body = { asked[i].body, strlen(asked[i].body) };
		char *text = NULL;
		bool ok = false;
		json_t *json;

		PRINTED(text, ok = api_answer(
				      api_find(asked[i].path), &body,
				      &(struct api_stream){ .out = out, .told = -1 }));
		assert_int_equal(ok, asked[i].answers);
		assert_true(!strncmp(text, asked[i].begin, strlen(asked[i].begin)));
		json = json_loads(text, 0, NULL);
		assert_non_null(json);
		assert_int_equal(json_object_get(json, "error") == NULL, ok);
		json_decref(json);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_is_its_name_and_each_line_of_its_data),
		cmocka_unit_test(an_error_has_a_place_and_a_hint),
		cmocka_unit_test(an_answer_is_whole_or_none),
	};

	return cmocka_run_group_tests_name("serve/api", tests, NULL, NULL);
}
