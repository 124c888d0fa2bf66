/* tests/test_session.c - answers as text, for programs that link the library */
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "foretoken/reports_session.h"
#include "foretoken/study.h"
#include "tests/check.h"

#define CASE(gpu, more) \
	"{model: llama3-8b, cluster: {gpu: " gpu ", gpus: 8},\n" \
	" training: {sequence_length: 2048, global_batch_size: 16, parallel: {tp: 2}" more \
	"}}"

static json_t *read_json(char *text)
{
	json_error_t e;
	json_t *j = text ? json_loads(text, 0, &e) : NULL;

	ft_session_release(text);
	return j;
}

static double step_of(const json_t *answer)
{
	return json_real_value(json_object_get(answer, "step_s"));
}

/* What a session has read before changes no answer, byte by byte. */
static void a_question_has_one_answer(void **state)
{
	struct ft_session *s = ft_session_new();
	char *first = NULL;

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct ft_session *fresh = ft_session_new();
		char *text =
			ft_session_simulate(i % 2 ? s : fresh, CASE("h100-sxm", ""));

		assert_non_null(text);
		assert_string_equal(ft_session_error(i % 2 ? s : fresh), "");
		if (first)
			assert_string_equal(text, first);
		else
			first = strdup(text);
		ft_session_release(text);
		ft_session_release(ft_session_simulate(s, CASE("mi300x", "")));
		ft_session_free(fresh);
	}
	free(first);
	ft_session_free(s);
	ft_session_free(NULL);
}

static void write_stack(const char *path, const char *of)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fprintf(f,
		"name: mine\ntitle: mine\nextends: %s\nprovenance: {kind: assumed}\n",
		of);
	fclose(f);
}

/* A file that changed is read again; those of one path in two folders are two. */
static void a_path_is_the_file_as_it_is(void **state)
{
	struct ft_session *s = ft_session_new();
	char folder[] = "/tmp/session-XXXXXX", path[64], text[300];
	double step[3];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/mine.yaml", folder);
	snprintf(
		text, sizeof(text),
		"{model: llama3-8b, cluster: {gpu: h100-sxm, gpus: 8}, stack: %s,\n"
		" training: {sequence_length: 2048, global_batch_size: 16, parallel: {tp: 2}}}",
		path);
	for (size_t i = 0; i < 3; i++) {
		json_t *answer;

		write_stack(path,
			    i == 1 ? "torch-2.11-eager" : "megatron-core-te-2.11");
		answer = read_json(ft_session_simulate(s, text));
		assert_string_equal(ft_session_error(s), "");
		step[i] = step_of(answer);
		json_decref(answer);
	}
	assert_true(step[0] == step[2] && step[1] > step[0] * 1.02);
	unlink(path);
	rmdir(folder);
	ft_session_free(s);
}

/* Nor does what it has given back: some hundred clusters, of which few are kept. */
static void a_session_forgets_what_is_too_much(void **state)
{
	struct ft_session *s = ft_session_new(), *fresh = ft_session_new();
	char text[200];

	(void)state;
	for (int i = 1; i <= 262; i++) {
		bool last = i > 258;
		char *of_s, *of_fresh;

		snprintf(text, sizeof(text),
			 "{model: llama3-8b, cluster: {gpu: mi300x, gpus: %d},"
			 " training: {sequence_length: 512, global_batch_size: %d}}",
			 8 * (last ? 8 * i - 2064 : i), 8 * (last ? 8 * i - 2064 : i));
		of_s = ft_session_simulate(s, text);
		assert_string_equal(ft_session_error(s), "");
		assert_non_null(of_s);
		if (last || i == 2) {
			of_fresh = ft_session_simulate(fresh, text);
			assert_string_equal(of_s, of_fresh);
			ft_session_release(of_fresh);
		}
		ft_session_release(of_s);
	}
	ft_session_free(fresh);
	ft_session_free(s);
}

/* A scenario of which only the cluster was asked for has no step. */
static void a_cluster_alone_has_no_step(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_error err = { 0 };
	struct ft_scenario *s = ft_scenario_load(
		shelf, "examples/01-first-answer/h100.yaml", NULL, 0, false, &err);
	struct ft_outcome o;

	(void)state;
	ok_or_say(s, err);
	assert_false(ft_study_simulate(s, NULL, NULL, &o, &err));
	assert_non_null(strstr(err.text, "without its model and its plan"));
	ft_scenario_free(s);
	ft_shelf_free(shelf);
}

/* Every answer, but for names and numbers, of which no two are alike, and ranges of money: those are drawn
 * together. */
static void is_as_alone(const json_t *side, const json_t *alone)
{
	const char *key;
	json_t *value;
	size_t n = 0;

	json_object_foreach((json_t *)alone, key, value)
	{
		if (!strcmp(key, "version") || !strcmp(key, "command") ||
		    !strcmp(key, "name") || !strcmp(key, "id") ||
		    !strcmp(key, "interval"))
			continue;
		if (!json_equal(value, json_object_get(side, key)))
			fail_msg("%s is another one than alone", key);
		n++;
	}
	assert_true(n > 20);
	json_object_foreach(json_object_get(alone, "interval"), key, value)
	{
		json_t *is = json_object_get(json_object_get(side, "interval"), key);

		for (size_t i = 0; i < json_array_size(value); i++)
			near_frac(json_number_value(json_array_get(is, i)),
				  json_number_value(json_array_get(value, i)),
				  strcmp(key, "step_s") != 0 ? 0.1 : 0);
	}
}

/* The range of a side's dollars is that of the draws by which it is compared. */
static void is_as_drawn(const json_t *side, const json_t *verdict, size_t i)
{
	static const char *const ends[] = { "p10", "p90" };
	const json_t *range = json_object_get(json_object_get(side, "interval"),
					      "usd_per_million_tokens");

	for (size_t k = 0; k < 2; k++)
		assert_true(json_real_value(json_array_get(range, k)) ==
			    json_real_value(json_array_get(
				    json_object_get(verdict, ends[k]), i)));
}

static void compared_is_each_alone(void **state)
{
	static const char *const both[] = { CASE("h100-sxm", ""), CASE("mi300x", "") };
	struct ft_session *s = ft_session_new();
	json_t *compare = read_json(ft_session_compare(s, both, 2));
	json_t *sides = json_object_get(compare, "scenarios"), *side;
	size_t i, n = 0;

	(void)state;
	assert_string_equal(ft_session_error(s), "");
	json_array_foreach(sides, i, side)
	{
		json_t *alone = read_json(ft_session_simulate(s, both[i]));

		assert_true(step_of(alone) > 0);
		assert_true(step_of(side) == step_of(alone));
		is_as_alone(side, alone);
		is_as_drawn(side, json_object_get(compare, "verdict"), i);
		json_decref(alone);
		n++;
	}
	assert_int_equal(n, 2);
	json_decref(compare);
	ft_session_free(s);
}

/* What is asked of a run is answered with it. */
static void a_run_is_answered(void **state)
{
	struct ft_session *s = ft_session_new();
	json_t *j = read_json(ft_session_simulate(
		s,
		"{model: llama3-8b, cluster: {gpu: h100-sxm, gpus: 8}, run: {tokens: 1T, days: 400}, "
		"training: {sequence_length: 2048, global_batch_size: 16}}"));

	(void)state;
	assert_string_equal(ft_session_error(s), "");
	assert_true(json_is_object(json_object_get(j, "run")) ||
		    json_is_array(json_object_get(j, "run")));
	json_decref(j);
	ft_session_free(s);
}

static void mistakes_are_told_with_their_place(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "scenario 1:1:1: error: is empty" },
		{ "- 1\n", "scenario 1:1:1: error: a scenario is a map of model" },
		{ "{model: [}", "scenario 1:1:" },
		{ CASE("h100-sxm", ", colour: 1"), "scenario 1:2:" },
		{ CASE("h100-zzz", ""), "scenario 1:1:" },
		{ CASE("h100-sxm", ", parallel: {tp: 3}"), "scenario 1:2:" },
	};
	struct ft_session *s = ft_session_new();
	const char *pair[2] = { CASE("h100-sxm", ""), NULL };
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_null(ft_session_simulate(s, bad[i].text));
		if (strncmp(ft_session_error(s), bad[i].says, strlen(bad[i].says)) != 0)
			fail_msg("%s, wanted %s", ft_session_error(s), bad[i].says);
		pair[1] = bad[i].text;
		assert_null(ft_session_compare(s, pair, 2));
		if (!strncmp(bad[i].says, "scenario 1", 10))
			assert_memory_equal(ft_session_error(s), "scenario 2", 10);
	}
	text = ft_session_simulate(s, pair[0]);
	assert_non_null(text);
	assert_string_equal(ft_session_error(s), "");
	ft_session_release(text);
	ft_session_free(s);
}

static void so_many_are_compared(void **state)
{
	struct ft_session *s = ft_session_new();
	const char *many[FT_SIDES_MOST + 1];
	json_t *j;

	(void)state;
	for (int i = 0; i <= FT_SIDES_MOST; i++)
		many[i] = CASE("h100-sxm", "");
	assert_null(ft_session_compare(s, many, 1));
	assert_string_equal(ft_session_error(s),
			    "error: two to 16 scenarios can be compared, not 1");
	assert_null(ft_session_compare(s, many, FT_SIDES_MOST + 1));
	assert_string_equal(ft_session_error(s),
			    "error: two to 16 scenarios can be compared, not 17");
	j = read_json(ft_session_compare(s, many, FT_SIDES_MOST));
	assert_int_equal(json_array_size(json_object_get(j, "scenarios")),
			 FT_SIDES_MOST);
	json_decref(j);
	ft_session_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_has_one_answer),
		cmocka_unit_test(a_cluster_alone_has_no_step),
		cmocka_unit_test(a_path_is_the_file_as_it_is),
		cmocka_unit_test(a_session_forgets_what_is_too_much),
		cmocka_unit_test(compared_is_each_alone),
		cmocka_unit_test(a_run_is_answered),
		cmocka_unit_test(mistakes_are_told_with_their_place),
		cmocka_unit_test(so_many_are_compared),
	};

	return cmocka_run_group_tests_name("reports/session", tests, NULL, NULL);
}
