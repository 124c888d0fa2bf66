/*
 * tests/test_api_asked.c - what a request may ask of the API: each bound is taken, what lies beyond it is refused with
 * its words; answers are those of the library, and a search's events lead to what it finds
 */
#include <jansson.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/reports.h"
#include "serve/api.h"
#include "tests/check.h"
#include "tests/printed.h"

#define CLUSTER "cluster: {gpu: h200, gpus: 8}"
#define SMALL \
	"{model: {name: llama3-8b, num_hidden_layers: 4}, " CLUSTER ", training: " \
	"{sequence_length: 4096, global_batch_size: 16, sharding: zero1, recompute: " \
	"none, parallel: {tp: 1, pp: 1, cp: 1}, micro_batch_size: 1}}"

static char *ask(const char *path, const char *text, double at_most_s, bool *ok)
{
	const struct api_text body = { text, strlen(text) };
	char *answer = NULL;

	PRINTED(answer,
		*ok = api_answer(api_find(path), &body,
				 &(struct api_stream){ .out = out,
						       .told = -1,
						       .at_most_s = at_most_s }));
	return answer;
}

static void refused(const char *path, const char *body, const char *words)
{
	bool ok;
	char *text = ask(path, body, 60, &ok);

	if (ok || !strstr(text, words))
		fail_msg("%s %s: %.400s", path, body, text);
	assert_int_equal(strncmp(text, "{\n \"error\": {", 13), 0);
	free(text);
}

static void taken(const char *path, const char *body)
{
	bool ok;
	char *text = ask(path, body, 60, &ok);

	if (!ok)
		fail_msg("%s %s: %.400s", path, body, text);
	free(text);
}

/* So many of one text in a list. */
static const char *times(struct arena *mem, const char *text, int n)
{
	const char *all = "";

	for (int i = 0; i < n; i++)
		all = arena_printf(mem, "%s%s%s", all, i ? ", " : "", text);
	return all;
}

static void a_search_takes_what_is_within_its_bounds(void **state)
{
	struct arena mem = { 0 };
	static const char *const within[] = { "top: 1",		  "top: 100",
					      "rank_by: usd",	  "rank_by: days",
					      "rank_by: tokens",  "free: []",
					      "free: [recompute]" };
	static const char *const wrong[][2] = {
		{ "top: 0", "top" },
		{ "top: 101", "top" },
		{ "rank_by: luck", "luck" },
		{ "free: recompute", "should be a list of keys" },
		{ "free: {recompute: 1}", "should be a list of keys" },
		{ "free: [[recompute]]", "should be a list of keys" },
		{ "free: [recompute, {a: 1}]", "should be a list of keys" },
		{ "free: [colour]", "colour" },
		{ "frees: []", "frees" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(within) / sizeof(*within); i++)
		taken("/api/plan",
		      arena_printf(&mem, "{scenario: %s, %s}", SMALL, within[i]));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		refused("/api/plan",
			arena_printf(&mem, "{scenario: %s, %s}", SMALL, wrong[i][0]),
			wrong[i][1]);
	taken("/api/plan", arena_printf(&mem, "{scenario: %s, free: [%s]}", SMALL,
					times(&mem, "recompute", 64)));
	refused("/api/plan",
		arena_printf(&mem, "{scenario: %s, free: [%s]}", SMALL,
			     times(&mem, "recompute", 65)),
		"should be a list of keys");
	refused("/api/plan", "{top: 1}", "lacks the key 'scenario'");
	refused("/api/plan", "[1]", "should be {");
	refused("/api/plan", "{", "error");
	arena_release(&mem);
}

static void a_comparison_takes_what_is_within_its_bounds(void **state)
{
	struct arena mem = { 0 };
	static const char *const within[] = {
		"draws: 16", "draws: 4000",   "at: gpus",
		"at: money", "at: megawatts", "at: time"
	};
	static const char *const wrong[][2] = { { "draws: 15", "draws" },
						{ "draws: 4194305", "draws" },
						{ "at: luck", "luck" },
						{ "ats: gpus", "ats" } };
	const char *two = times(&mem, SMALL, 2);

	(void)state;
	for (size_t i = 0; i < sizeof(within) / sizeof(*within); i++)
		taken("/api/compare",
		      arena_printf(&mem, "{scenarios: [%s], %s}", two, within[i]));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		refused("/api/compare",
			arena_printf(&mem, "{scenarios: [%s], %s}", two, wrong[i][0]),
			wrong[i][1]);
	taken("/api/compare", arena_printf(&mem, "{draws: 16, scenarios: [%s]}",
					   times(&mem, SMALL, FT_SIDES_MOST)));
	refused("/api/compare",
		arena_printf(&mem, "{scenarios: [%s]}",
			     times(&mem, SMALL, FT_SIDES_MOST + 1)),
		"should be a list of 2 to 16 scenarios");
	refused("/api/compare", "{scenarios: [" SMALL "]}", "should be a list of 2");
	refused("/api/compare", "{scenarios: {a: 1}}", "should be a list of 2");
	refused("/api/compare", "{at: gpus}", "lacks the key 'scenarios'");
	refused("/api/compare", "a", "should be {");
	refused("/api/compare", "{scenarios: [" SMALL ", [a]]}",
		"a scenario is a map of model");
	/* a text's mistakes are at its own lines, under its letter */
	refused("/api/compare", "{scenarios: [" SMALL ", \"a: 1\\nb: [\"]}",
		"\"file\": \"B\",\n  \"line\": ");
	arena_release(&mem);
}

static void whoever_asks_for_nothing_is_told(void **state)
{
	static const char *const paths[] = { "/api/simulate", "/api/bom",
					     "/api/timeline" };

	(void)state;
	for (int i = 0; i < 3; i++) {
		refused(paths[i], "- 1", "a scenario is a map of model");
		refused(paths[i], "{" CLUSTER "0}", "error");
		refused(paths[i], "{model: x}", "error");
	}
	assert_null(api_find("/api/simulate/"));
	assert_null(api_find("/api/names")->as);
	assert_string_equal(api_find("/api/timeline")->as, "foretoken-timeline.json");
	assert_true(api_find("/api/bom")->posted && !api_find("/api/keys")->posted);
}

/* ---- answers ------------------------------------------------------------------------------ */

/* As the library answers, loaded here. */
static char *by_library(const char *path, const char *text)
{
	struct ft_shelf *shelf = ft_shelf_new();
	bool whole = strcmp(path, "/api/bom") != 0;
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *root = node_read_text(&mem, "scenario", text, strlen(text), &err);
	struct ft_scenario *s = ft_scenario_from(shelf, root, "scenario", whole, &err);
	struct ft_outcome o;
	char *answer = NULL;

	ok_or_say(s, err);
	if (!whole) {
		struct ft_bom *bom;

		ok_or_say(ft_scenario_prices(s, &err), err);
		bom = ft_bom_build(s->cluster, s->prices, &err);
		ok_or_say(bom, err);
		PRINTED(answer, ft_report_bom_json(out, s->cluster, bom));
		ft_bom_free(bom);
	} else if (!strcmp(path, "/api/simulate")) {
		ok_or_say(ft_study_simulate(s, NULL, NULL, &o, &err), err);
		ok_or_say(ft_study_run(s, &o, &err), err);
		PRINTED(answer, ft_report_outcome_json(out, s, &o));
		ft_outcome_release(&o);
	} else {
		bool ok = false;

		PRINTED(answer, ok = ft_study_simulate(s, NULL, out, &o, &err));
		ok_or_say(ok, err);
		ft_outcome_release(&o);
	}
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
	return answer;
}

/* As by the command: who rents buys nothing. */
static void what_is_rented_has_no_bill(void **state)
{
	(void)state;
	refused("/api/bom", "{" CLUSTER ", cost: {prices: rent-2026}}",
		"there is no bill of a rented cluster: rent-2026 is a book of rents");
	refused("/api/bom", "{" CLUSTER ", cost: {usd_per_gpu_hour: 2 USD/h}}",
		"there is no bill of a rented cluster: rent-2026 is a book of rents");
}

static void answers_are_the_librarys(void **state)
{
	static const char *const asked[][2] = {
		{ "/api/simulate", SMALL },
		{ "/api/timeline", SMALL },
		{ "/api/bom", SMALL },
		{ "/api/bom", "{" CLUSTER "}" },
		{ "/api/bom", "{cluster: {gpu: mi300x, gpus: 64}, cost: {prices: "
			      "hyperscaler-2025-08}}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		bool ok;
		char *is = ask(asked[i][0], asked[i][1], 60, &ok);
		char *want = by_library(asked[i][0], asked[i][1]);

		assert_true(ok);
		assert_true(strlen(want) > 100);
		assert_string_equal(is, want);
		free(is);
		free(want);
	}
}

/* A progress of the search says how far it is; the last event has the plans. */
static void a_search_tells_how_far_it_is(void **state)
{
	static const char body[] =
		"{top: 2, scenario: {model: {name: llama3-8b, num_hidden_layers: 4}, "
		"cluster: {gpu: h200, gpus: 16}, training: {sequence_length: 4096, "
		"global_batch_size: 32}}}";
	double most_s[] = { 30, 0.0001 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		bool ok, plans = false;
		char *text = ask("/api/plan", body, most_s[i], &ok), *at = text, *data;
		int events = 0;

		assert_true(ok);
		while ((at = strstr(at, "event: progress\ndata: "))) {
			json_t *j;

			data = at + strlen("event: progress\ndata: ");
			j = json_loadb(data, strcspn(data, "\n"), 0, NULL);
			assert_non_null(j);
			assert_int_equal(json_object_size(j), 8);
			assert_true(json_number_value(json_object_get(
					    j, "at_most_left_s")) <= most_s[i]);
			assert_true(json_number_value(
					    json_object_get(j, "at_most_left_s")) >= 0);
			assert_true(
				json_integer_value(json_object_get(j, "finished")) <=
				json_integer_value(json_object_get(j, "total")));
			json_decref(j);
			events++;
			at = data;
		}
		assert_true(events > 0);
		plans = strstr(text, "event: plans\ndata: {") != NULL;
		assert_true(plans || strstr(text, "event: error\n"));
		if (!i)
			assert_true(plans);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_search_takes_what_is_within_its_bounds),
		cmocka_unit_test(a_comparison_takes_what_is_within_its_bounds),
		cmocka_unit_test(whoever_asks_for_nothing_is_told),
		cmocka_unit_test(answers_are_the_librarys),
		cmocka_unit_test(what_is_rented_has_no_bill),
		cmocka_unit_test(a_search_tells_how_far_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
