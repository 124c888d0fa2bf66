/*
 * tests/test_rows_told.c - JSON of rows that were held against predictions, of a fitted stack and of collectives: each
 * key once, with what the answer has, of answers that are drawn
 */
#include <math.h>

#include <jansson.h>

#include "foretoken/reports.h"
#include "foretoken/sim.h"
#include "tests/printed.h"

enum { DRAWS = 40, ROWS = 6 };

static uint64_t seed = 71;

static double any(void)
{
	return (rnd_below(&seed, 2000001) - 1000000) * 1e-4;
}

static json_t *read_back(char *text)
{
	json_t *j = json_loads(text, 0, NULL);

	assert_non_null(j);
	free(text);
	return j;
}

static void has(const json_t *j, const char *key, double want)
{
	const json_t *is = json_object_get(j, key);

	if (!json_is_number(is) || fabs(json_number_value(is) - want) > 1e-9)
		fail_msg("%s: %.12g, wanted %.12g", key, json_number_value(is), want);
}

static void says(const json_t *j, const char *key, const char *want)
{
	const json_t *is = json_object_get(j, key);

	if (!json_is_string(is) || strcmp(json_string_value(is), want) != 0)
		fail_msg("%s: %s, wanted %s", key,
			 json_is_string(is) ? json_string_value(is) : "nothing", want);
}

static void is(const json_t *j, const char *key, bool want)
{
	if (!json_is_boolean(json_object_get(j, key)) ||
	    json_is_true(json_object_get(j, key)) != want)
		fail_msg("%s is not %d", key, want);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static struct ft_summary draw_summary(const char *name)
{
	return (struct ft_summary){ .name = name,
				    .n = (size_t)rnd_below(&seed, 90),
				    .mape = any(),
				    .bias = any(),
				    .median = any(),
				    .p90 = any(),
				    .max = any(),
				    .inside_interval_frac = any(),
				    .slow_frac = any(),
				    .fast_frac = any() };
}

static void has_errors(const json_t *j, const struct ft_summary *s)
{
	has(j, "n", (double)s->n);
	has(j, "mape", s->mape);
	has(j, "bias", s->bias);
	has(j, "median", s->median);
	has(j, "p90", s->p90);
	has(j, "max", s->max);
}

static void has_summary(const json_t *j, const struct ft_summary *s, size_t more)
{
	has_errors(j, s);
	has(j, "inside_interval_frac", s->inside_interval_frac);
	has(j, "slow_frac", s->slow_frac);
	has(j, "fast_frac", s->fast_frac);
	assert_int_equal(json_object_size(j), 9 + more);
}

/* A fold is a group; else a scenario where some have several runs, or a run. */
static void a_fitted_stack_is_told(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct ft_stack_fit *fit = calloc(1, sizeof(*fit));
		char *text = NULL;
		json_t *j;

		snprintf(fit->path, sizeof(fit->path), "stacks/s%d.yaml", i);
		fit->n = 4 + (size_t)rnd_below(&seed, 9);
		fit->n_failed = (size_t)rnd_below(&seed, 5);
		fit->folds = fit->n - (size_t)rnd_below(&seed, 2);
		fit->by_group = rnd_below(&seed, 3) == 0;
		fit->before = draw_summary("a");
		fit->after = draw_summary("b");
		fit->held_out = draw_summary("c");
		for (int k = 0; k < FT_FIT_FACTORS; k++)
			fit->ln_factor[k] = any() / 100;
		PRINTED(text, ft_report_stack_fit_json(out, fit));
		j = read_back(text);
		assert_int_equal(json_object_size(j), 9);
		says(j, "stack", fit->path);
		has(j, "n", (double)fit->n);
		has(j, "failed", (double)fit->n_failed);
		has(j, "folds", (double)fit->folds);
		says(j, "fold",
		     fit->by_group	 ? "group" :
		     fit->folds < fit->n ? "scenario" :
					   "run");
		has_errors(json_object_get(j, "before"), &fit->before);
		has_errors(json_object_get(j, "after"), &fit->after);
		has_errors(json_object_get(j, "held_out"), &fit->held_out);
		assert_int_equal(json_object_size(json_object_get(j, "factors")),
				 FT_FIT_FACTORS);
		for (size_t k = 0; k < FT_FIT_FACTORS; k++)
			has(json_object_get(j, "factors"), ft_fit_factor_name(k),
			    exp(fit->ln_factor[k]));
		json_decref(j);
		free(fit);
	}
}

/* ---- rows -------------------------------------------------------------------------------------- */

static struct ft_traits traits(void)
{
	static const char *const words[] = { "x", "y z", "h200" };
	const char *w = words[rnd_below(&seed, 3)];
	double n = 1 + rnd_below(&seed, 99);

	return (struct ft_traits){ .gpu = w,
				   .generation = "hopper",
				   .stack = w,
				   .stack_root = w,
				   .model = "dense",
				   .precision = "bf16",
				   .sharding = "ddp",
				   .optimizer = "adam",
				   .trained = "all",
				   .offload_state = "none",
				   .attention = "heads",
				   .flop_per_token = 1e9 * n,
				   .gpus = n,
				   .sequence = 2 * n,
				   .micro_tokens = 3 * n,
				   .micro_batches = 4 * n,
				   .tp = 5 * n,
				   .pp = 6 * n,
				   .cp = 7 * n,
				   .ep = 8 * n,
				   .kernel_spread_frac = 0.01 * n,
				   .host_spread_frac = 0.02 * n,
				   .clock_faster_frac = 0.03 * n,
				   .clock_slower_frac = 0.04 * n };
}

static struct ft_check draw_check(const struct ft_traits *of)
{
	return (struct ft_check){ .id = rnd_below(&seed, 2) ? "r1" : "r\"2\"",
				  .group = "g",
				  .key = "k",
				  .measured = fabs(any()) + 1,
				  .predicted = fabs(any()) + 1,
				  .error_frac = any(),
				  .low = any(),
				  .high = any(),
				  .extrapolated_frac = any(),
				  .no_room = rnd_below(&seed, 2) > 0,
				  .traits = of };
}

static void has_check(const json_t *j, const struct ft_check *c)
{
	says(j, "id", c->id);
	says(j, "group", c->group);
	says(j, "key", c->key);
	has(j, "measured", c->measured);
	has(j, "predicted", c->predicted);
	has(j, "error_frac", c->error_frac);
	has(j, "low", c->low);
	has(j, "high", c->high);
	is(j, "doubtful", ft_check_doubtful(c));
}

static void has_traits(const json_t *j, const struct ft_traits *of)
{
	const struct ft_trait *t;
	size_t n = ft_trait_table(&t), k = 0;
	char text[FT_CLASS];
	const char *by, *about;
	const json_t *all = json_object_get(j, "traits");

	for (size_t i = 0; i < n; i++)
		if (t[i].number)
			has(all, t[i].name, ft_trait_number(&t[i], of));
		else
			says(all, t[i].name, ft_trait_word(&t[i], of));
	has(all, "kernel_spread_frac", of->kernel_spread_frac);
	has(all, "host_spread_frac", of->host_spread_frac);
	has(all, "clock_faster_frac", of->clock_faster_frac);
	has(all, "clock_slower_frac", of->clock_slower_frac);
	assert_true(json_is_boolean(json_object_get(all, "unnamed")));
	assert_int_equal(json_boolean_value(json_object_get(all, "unnamed")),
			 of->unnamed);
	assert_int_equal(json_object_size(all), n + 5);
	for (; (by = ft_class_by(k, &about)); k++)
		says(json_object_get(j, "classes"), by, ft_class_of(of, by, text));
	assert_int_equal(json_object_size(json_object_get(j, "classes")), k);
}

struct held {
	struct ft_validation v;
	struct ft_traits traits[ROWS];
	struct ft_check check[ROWS], other[ROWS];
	struct ft_failure failure[ROWS];
	struct ft_summary group[2], by_key[2];
};

static void draw_held(struct held *h)
{
	*h = (struct held){ .v = { .check = h->check,
				   .other = h->other,
				   .failure = h->failure,
				   .group = h->group,
				   .by_key = h->by_key,
				   .by = "group",
				   .n_checks = (size_t)rnd_below(&seed, ROWS),
				   .n_others = (size_t)rnd_below(&seed, ROWS),
				   .n_failures = (size_t)rnd_below(&seed, ROWS),
				   .n_groups = (size_t)rnd_below(&seed, 3),
				   .n_keys = (size_t)rnd_below(&seed, 3),
				   .summary = draw_summary("all") } };
	for (int i = 0; i < ROWS; i++) {
		h->traits[i] = traits();
		h->check[i] = draw_check(i % 2 ? &h->traits[i] : NULL);
		h->other[i] = draw_check(NULL);
		h->failure[i] = (struct ft_failure){ i % 2 ? "f1" : "f2", "why; so" };
	}
	for (int i = 0; i < 2; i++) {
		h->group[i] = draw_summary(i ? "g1" : "g2");
		h->by_key[i] = draw_summary(i ? "k1" : "k2");
	}
}

static void has_rows(const json_t *j, const struct held *h)
{
	const json_t *rows = json_object_get(j, "rows"), *of;

	assert_int_equal(json_array_size(rows), h->v.n_checks);
	for (size_t i = 0; i < h->v.n_checks; i++) {
		of = json_array_get(rows, i);
		has_check(of, &h->check[i]);
		has(of, "extrapolated_frac", h->check[i].extrapolated_frac);
		assert_int_equal(json_object_size(of), i % 2 ? 13 : 10);
		if (i % 2)
			has_traits(of, &h->traits[i]);
		if (i % 2)
			assert_int_equal(json_is_true(json_object_get(of, "fits")),
					 !h->check[i].no_room);
	}
	rows = json_object_get(j, "other_rows");
	assert_int_equal(json_array_size(rows), h->v.n_others);
	for (size_t i = 0; i < h->v.n_others; i++) {
		has_check(json_array_get(rows, i), &h->other[i]);
		assert_int_equal(json_object_size(json_array_get(rows, i)), 9);
	}
	rows = json_object_get(j, "failed");
	assert_int_equal(json_array_size(rows), h->v.n_failures);
	for (size_t i = 0; i < h->v.n_failures; i++) {
		says(json_array_get(rows, i), "id", h->failure[i].id);
		says(json_array_get(rows, i), "reason", h->failure[i].reason);
	}
}

static void rows_and_their_sums_are_told(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		static struct held h;
		char *text = NULL;
		const json_t *of;
		json_t *j;

		draw_held(&h);
		PRINTED(text, ft_report_validation_json(out, &h.v));
		j = read_back(text);
		assert_int_equal(json_object_size(j), 7);
		says(j, "by", "group");
		has_rows(j, &h);
		of = json_object_get(j, "summary");
		has_summary(of, &h.v.summary, 1);
		has(of, "failed", (double)h.v.n_failures);
		of = json_object_get(j, "groups");
		assert_int_equal(json_object_size(of), h.v.n_groups);
		for (size_t k = 0; k < h.v.n_groups; k++)
			has_summary(json_object_get(of, h.group[k].name), &h.group[k],
				    0);
		of = json_object_get(j, "by_key");
		assert_int_equal(json_object_size(of), h.v.n_keys);
		for (size_t k = 0; k < h.v.n_keys; k++)
			has_summary(json_object_get(of, h.by_key[k].name), &h.by_key[k],
				    0);
		json_decref(j);
	}
}

/* ---- collectives ------------------------------------------------------------------------------- */

static void has_line(const json_t *j, const struct ft_collective_line *l)
{
	double us = l->result.duration.time_s * 1e6;
	double algbw = us > 0 ? l->bytes / us * 1e-3 : 0, n = (double)l->gpus;
	double part = (n - 1) / n;
	bool better = l->result.regret_frac > 0.02;

	says(j, "op", ft_collective_name(l->op));
	has(j, "gpus", n);
	has(j, "bytes", l->bytes);
	has(j, "time_us", us);
	has(j, "algbw_gb_per_s", algbw);
	has(j, "busbw_gb_per_s", algbw * (l->op == FT_ALL_REDUCE ? 2 * part : part));
	says(j, "algorithm", "ring");
	says(j, "protocol", "LL");
	says(j, "chosen_by", "time");
	has(j, "regret_frac", l->result.regret_frac);
	is(j, "extrapolated", l->result.duration.extrapolated);
	if (better) {
		says(j, "best_algorithm", "tree");
		says(j, "best_protocol", "Simple");
	}
	assert_int_equal(json_object_size(j), better ? 13 : 11);
}

static void collectives_are_told(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct ft_collective_line line[ROWS];
		size_t n = (size_t)rnd_below(&seed, ROWS);
		char *text = NULL;
		json_t *j;

		for (size_t k = 0; k < n; k++) {
			line[k] = (struct ft_collective_line){
				.op = rnd_below(&seed, 2) ? FT_ALL_REDUCE :
							    FT_ALL_GATHER,
				.gpus = 2 + rnd_below(&seed, 30),
				.bytes = 1024. * (1 + rnd_below(&seed, 999)),
				.result = { .algorithm = "ring",
					    .protocol = "LL",
					    .chosen_by = "time",
					    .regret_frac = rnd_below(&seed, 5) * 0.01,
					    .best_algorithm = "tree",
					    .best_protocol = "Simple" }
			};
			line[k].result.duration.time_s = rnd_below(&seed, 5) * 0.00025;
			line[k].result.duration.extrapolated = rnd_below(&seed, 2);
		}
		PRINTED(text, ft_report_collectives_json(out, line, n));
		j = read_back(text);
		assert_int_equal(json_object_size(j), 1);
		assert_int_equal(json_array_size(json_object_get(j, "rows")), n);
		for (size_t k = 0; k < n; k++)
			has_line(json_array_get(json_object_get(j, "rows"), k),
				 &line[k]);
		json_decref(j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fitted_stack_is_told),
		cmocka_unit_test(rows_and_their_sums_are_told),
		cmocka_unit_test(collectives_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
