/*
 * tests/test_at_best.c - a scenario under the best of its plans, or why there is none; and a model of a file of one's
 * own, which stands in the answer's scenario when the file is gone
 */
#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"
#include "foretoken/study_plan.h"
#include "tests/check.h"

#define JOB(model, more) \
	"model: " model "\ncluster: {gpu: h100-sxm, gpus: 8}\n" \
	"training: {sequence_length: 512, global_batch_size: 16" more "}\n"

/* fits: how many plans do; refused: the words instead. */
static const struct {
	const char *text;
	bool fits, asks; /* it leaves its plan to be searched for its `run` */
	const char *refused;
} rows[] = {
	{ JOB("{name: llama3-8b, num_hidden_layers: 4}", ""), true, false, NULL },
	{ JOB("{name: llama3-8b, num_hidden_layers: 4}", "") "run: {tokens: 1T}\n",
	  true, true, NULL },
	{ JOB("{name: llama3-8b, num_hidden_layers: 4}",
	      ", parallel: {tp: 2}") "run: {tokens: 1T}\n",
	  true, false, NULL },
	{ JOB("{name: llama3.1-405b}", ""), false, false, "no plan fits" },
	{ JOB("{name: llama3.1-405b}", "") "run: {tokens: 1T}\n", false, true,
	  "no plan fits" },
	{ JOB("{name: llama3-8b}", ", colour: red"), false, false, "colour" },
};

static void is_best(const char *path, const struct ft_search *how,
		    const struct ft_scenario *s)
{
	struct ft_plans *plans[FT_SIZES_MOST];
	struct ft_outcome o;
	struct ft_error err;
	size_t n;

	ok_or_say(ft_study_plans(path, how, plans, &n, &err), err);
	assert_int_equal(n, 1);
	assert_true(plans[0]->n > 0);
	ok_or_say(ft_study_simulate(s, NULL, NULL, &o, &err), err);
	near_frac(o.step_s, plans[0]->best[0].outcome->step_s, 1e-12);
	ft_outcome_release(&o);
	ft_plans_free(plans[0]);
}

static size_t legal_of(const char *path, const struct ft_search *how)
{
	struct ft_plans *plans[FT_SIZES_MOST];
	struct ft_error err;
	size_t n, legal;

	ok_or_say(ft_study_plans(path, how, plans, &n, &err), err);
	legal = plans[0]->considered;
	ft_plans_free(plans[0]);
	return legal;
}

static void a_scenario_comes_under_its_best_plan(void **state)
{
	const struct ft_search how = { .top = 1, .threads = 1, .no_ways_out = true };
	char path[64];

	(void)state;
	own_path(path, "best.yaml");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ft_shelf *shelf = ft_shelf_new();
		struct ft_error err = { 0 };
		struct ft_scenario *s, *run;

		write_text(path, rows[i].text);
		s = ft_scenario_at_best(shelf, path, &how, &err);
		if (rows[i].fits) {
			ok_or_say(s, err);
			is_best(path, &how, s);
		} else {
			assert_null(s);
			if (!strstr(err.text, rows[i].refused))
				fail_msg("%s instead of %s", err.text, rows[i].refused);
		}
		ft_scenario_free(s);
		run = ft_scenario_to_run(shelf, path, &how, &err);
		assert_int_equal(run != NULL, i + 1 < sizeof(rows) / sizeof(*rows));
		if (run)
			assert_int_equal(run->searched,
					 rows[i].asks ? legal_of(path, &how) : 0);
		if (run && rows[i].asks && rows[i].fits)
			is_best(path, &how, run);
		ft_scenario_free(run);
		ft_shelf_free(shelf);
	}
	unlink(path);
}

/* ---- a model's file ------------------------------------------------------------------------ */

static double step_of(struct ft_shelf *shelf, const struct node *root, char **resolved)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct ft_outcome o;
	struct ft_scenario *s = ft_scenario_from(shelf, root, "job", true, &err);
	double step_s;

	ok_or_say(s, err);
	ok_or_say(ft_study_simulate(s, NULL, NULL, &o, &err), err);
	step_s = o.step_s;
	*resolved = strdup(node_flow(&mem, s->resolved));
	ft_outcome_release(&o);
	ft_scenario_free(s);
	arena_release(&mem);
	return step_s;
}

static struct node *node_of(struct arena *mem, const char *text)
{
	struct ft_error err;
	struct node *root = node_read_text(mem, "job", text, strlen(text), &err);

	ok_or_say(root, err);
	return root;
}

static void a_model_of_a_file_stands_in_the_answer(void **state)
{
	static const char config[] =
		"{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 1024, "
		"\"intermediate_size\": 2816, \"num_attention_heads\": 8, "
		"\"num_key_value_heads\": 4, \"vocab_size\": 32000}";
	static const char *const how[] = { "%s", "{name: %s}",
					   "{name: %s, num_hidden_layers: 3}" };
	char path[64], model[160], text[600];

	(void)state;
	own_path(path, "config.json");
	for (int i = 0; i < 3; i++) {
		struct ft_shelf *shelf = ft_shelf_new();
		struct arena mem = { 0 };
		char *resolved, *again;
		double step_s;

		write_text(path, config);
		snprintf(model, sizeof(model), how[i], path);
		snprintf(text, sizeof(text), JOB("%s", ""), model);
		step_s = step_of(shelf, node_of(&mem, text), &resolved);
		unlink(path);
		near_frac(step_of(shelf, node_of(&mem, resolved), &again), step_s,
			  1e-12);
		assert_string_equal(again, resolved);
		free(again);
		free(resolved);
		ft_shelf_free(shelf);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_scenario_comes_under_its_best_plan),
		cmocka_unit_test(a_model_of_a_file_stands_in_the_answer),
	};

	return cmocka_run_group_tests_name("at best", tests, NULL, NULL);
}
