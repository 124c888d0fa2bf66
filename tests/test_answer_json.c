/*
 * tests/test_answer_json.c - an answer as JSON: each number under its key, its interval, the items, the runs nearest to
 * it, what follows from the scenario and where it comes from; of drawn plans
 */
#include <math.h>

#include <jansson.h>

#include "base/node.h"
#include "foretoken/reports.h"
#include "foretoken/study.h"
#include "study/keys.h"
#include "tests/plan_drawn.h"
#include "tests/printed.h"

enum { ANSWERS = 8, ITEMS = 40 };

static const json_t *at(const json_t *j, const char *path)
{
	char key[96];
	size_t n = strcspn(path, ".");

	snprintf(key, sizeof(key), "%.*s", (int)n, path);
	j = json_object_get(j, key);
	return path[n] && j ? at(j, path + n + 1) : j;
}

/* What is no number is null. */
static void is_number(const json_t *j, const char *key, double want)
{
	if (!j || (isfinite(want) ? !json_is_number(j) : !json_is_null(j)))
		fail_msg("%s is no number of the answer", key);
	if (isfinite(want) && fabs(json_number_value(j) - want) > 1e-11 * fabs(want))
		fail_msg("%s: %.14g, wanted %.14g", key, json_number_value(j), want);
}

static void has(const json_t *j, const char *path, double want)
{
	is_number(at(j, path), path, want);
}

static void says(const json_t *j, const char *path, const char *want)
{
	const json_t *is = at(j, path);

	if (!json_is_string(is) || strcmp(json_string_value(is), want) != 0)
		fail_msg("%s: %s, wanted %s", path,
			 json_is_string(is) ? json_string_value(is) : "nothing", want);
}

static void is(const json_t *j, const char *path, bool want)
{
	if (!json_is_boolean(at(j, path)) || json_is_true(at(j, path)) != want)
		fail_msg("%s is not %d", path, want);
}

/* ---- parts of an answer ------------------------------------------------------------------ */

static void check_numbers(const json_t *j, const struct ft_outcome *o)
{
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f), ranges = 0;
	const json_t *interval = at(j, "interval");

	for (size_t i = 0; i < n; i++) {
		const char *leaf = strrchr(f[i].key, '.');
		const json_t *pair;

		has(j, f[i].key, ft_outcome_at(o, f[i].value));
		if (!f[i].high)
			continue;
		ranges++;
		pair = json_object_get(interval, leaf ? leaf + 1 : f[i].key);
		assert_int_equal(json_array_size(pair), 2);
		is_number(json_array_get(pair, 0), f[i].key,
			  ft_outcome_at(o, f[i].low));
		is_number(json_array_get(pair, 1), f[i].key,
			  ft_outcome_at(o, f[i].high));
	}
	has(interval, "coverage_frac", 0.8);
	assert_int_equal(json_object_size(interval), ranges + 1);
}

static void check_items(const json_t *j, const struct ft_run *run)
{
	const json_t *items = at(j, "items");
	size_t n = run->n_shares < ITEMS ? run->n_shares : ITEMS;

	assert_int_equal(json_array_size(items), n);
	for (size_t i = 0; i < n; i++) {
		const struct ft_share *s = &run->share[i];
		const json_t *of = json_array_get(items, i);
		bool moves = s->kind == FT_COMMUNICATION;

		says(of, "name", s->name);
		has(of, "time_s", s->time_s);
		has(of, "count", s->count);
		is(of, "communication", moves);
		is(of, "extrapolated", s->extrapolated);
		assert_int_equal(json_object_size(of), moves ? 5 : 8);
		if (moves)
			continue;
		has(of, "flop", s->flop);
		has(of, "bytes", s->bytes);
		has(of, "roofline_s", s->roofline_s);
	}
}

static void check_nearest(const json_t *j, const struct ft_outcome *o)
{
	const json_t *runs = at(j, "nearest_runs");

	assert_int_equal(json_array_size(runs), o->n_nearest);
	for (size_t i = 0; i < o->n_nearest; i++) {
		const json_t *of = json_array_get(runs, i);

		says(of, "id", o->nearest[i].id);
		says(of, "source", o->nearest[i].source);
		says(of, "differs", o->nearest[i].differs);
		has(of, "error_frac", o->nearest[i].error_frac);
		has(of, "distance", o->nearest[i].distance);
		assert_int_equal(json_object_size(of), 5);
	}
}

static void check_derived(const json_t *j, const struct ft_scenario *s)
{
	const struct ft_model *m = s->model;
	const json_t *of = at(j, "derived");
	double trained = s->plan->lora.rank ?
				 ft_model_lora_parameters(m, &s->plan->lora) :
				 ft_model_parameters(m);
	int64_t each = m->vocab_multiple * s->plan->tp;
	int64_t words = each ? (m->vocab_size + each - 1) / each * each : m->vocab_size;

	has(of, "dp", (double)s->plan->dp);
	has(of, "micro_batches", (double)s->plan->micro_batches);
	has(of, "nodes", (double)s->cluster->nodes);
	has(of, "ranks", (double)s->cluster->ranks);
	has(of, "parameters", ft_model_parameters(m));
	has(of, "active_parameters", ft_model_active_parameters(m));
	has(of, "trained_parameters", trained);
	if (m->stretched_from)
		has(of, "positions_stretched_from", (double)m->stretched_from);
	assert_int_equal(json_array_size(at(of, "model_keys_passed_over")),
			 m->n_passed_over);
	if (words > m->vocab_size)
		has(of, "padded_vocab_size", (double)words);
	assert_int_equal(json_object_size(of),
			 8 + (m->stretched_from > 0) + (words > m->vocab_size));
}

static void comes_from(const json_t *j, const char *path, const struct ft_provenance *p)
{
	char want[600] = "";

	if (p)
		snprintf(want, sizeof(want), "%s%s%s%s%s",
			 ft_provenance_kind_name(p->kind), p->source[0] ? ": " : "",
			 p->source, p->date[0] ? ", " : "", p->date);
	says(j, path, want);
}

/* The scenario as it was answered states each key that it could have stated. */
static void check_stated(const json_t *j, const struct ft_scenario *s)
{
	const struct scenario_key *key;
	size_t n = scenario_keys(&key), stated = 0;
	struct arena mem = { 0 };
	char path[128];

	for (size_t i = 0; i < n; i++) {
		const char *value = key[i].value ? key[i].value(&mem, s) : NULL;
		const struct node *is = node_path(s->resolved, key[i].path);

		if (!value || !node_is_null(node_path(s->given, key[i].path)) ||
		    scenario_idle_value(s, key[i].path))
			continue;
		stated++;
		if (node_is_null(is))
			fail_msg("%s is not stated", key[i].path);
		snprintf(path, sizeof(path), "scenario.%s", key[i].path);
		if (!at(j, path))
			fail_msg("%s is not in the JSON", path);
	}
	assert_true(stated > 10);
	arena_release(&mem);
}

static void check_idle(const json_t *j, const struct ft_scenario *s)
{
	const char *key, *where;
	size_t n = 0;

	for (; (key = ft_scenario_idle(s, n, &where)); n++) {
		const json_t *k = json_array_get(at(j, "idle_keys"), n);

		says(k, "key", key);
		says(k, "counts", where);
	}
	assert_int_equal(json_array_size(at(j, "idle_keys")), n);
}

static void check(const json_t *j, const struct ft_scenario *s,
		  const struct ft_outcome *o)
{
	check_idle(j, s);
	says(j, "name", s->label);
	says(j, "id", s->label);
	says(j, "bottleneck", o->bottleneck);
	is(j, "fits", o->fits);
	is(j, "gpu_measured", o->gpu_measured);
	is(j, "stack_measured", o->stack_measured);
	is(j, "attention_measured", o->attention_measured);
	check_numbers(j, o);
	check_items(j, o->run);
	check_nearest(j, o);
	check_derived(j, s);
	comes_from(j, "provenance.gpu", s->cluster->gpu->from);
	comes_from(j, "provenance.stack", s->stack->from);
	comes_from(j, "provenance.ccl", s->ccl->from);
	comes_from(j, "provenance.prices", s->prices->from);
	assert_int_equal(json_array_size(at(j, "assumed")), s->n_assumed);
	for (size_t i = 0; i < s->n_assumed; i++)
		assert_string_equal(
			json_string_value(json_array_get(at(j, "assumed"), i)),
			s->assumed[i]);
	check_stated(j, s);
	says(j, "scenario.cluster.gpu", s->cluster->gpu->name);
	has(j, "scenario.training.global_batch_size", (double)s->plan->global_batch);
}

static void each_number_stands_under_its_key(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();
	int answers = 0;

	(void)state;
	seed = 101;
	while (answers < ANSWERS) {
		struct arena mem = { 0 };
		const char *text = drawn(&mem);
		struct ft_error err;
		struct node *n = node_read_text(&mem, "d", text, strlen(text), &err);
		struct ft_scenario *s = ft_scenario_from(shelf, n, "drawn", true, &err);
		struct ft_outcome o;

		if (s && ft_study_simulate(s, NULL, NULL, &o, &err)) {
			char *json = NULL;
			json_t *j;

			PRINTED(json, ft_report_outcome_json(out, s, &o));
			j = json_loads(json, 0, NULL);
			assert_non_null(j);
			check(j, s, &o);
			json_decref(j);
			free(json);
			ft_outcome_release(&o);
			answers++;
		}
		ft_scenario_free(s);
		arena_release(&mem);
	}
	ft_shelf_free(shelf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_number_stands_under_its_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
