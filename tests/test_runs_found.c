/*
 * tests/test_runs_found.c - the measured runs that pass drawn filters: those of study/residuals.csv, each row looked at
 * by itself, in its order and with what the row says
 */
#include <math.h>

#include "base/arena.h"
#include "base/csv.h"
#include "foretoken/study.h"
#include "tests/check.h"

enum { DRAWS = 120, FILTERS = 3, TEXT = 120 };

static uint64_t seed = 97;

#define PICK(list) (list)[rnd_below(&seed, (int)(sizeof(list) / sizeof(*(list))))]

static const char *const words[] = { "id",	 "source",     "gpu",	"generation",
				     "stack",	 "stack_root", "model", "precision",
				     "sharding", "optimizer" };
static const char *const numbers[] = { "flop_per_token",
				       "gpus",
				       "sequence",
				       "micro_tokens",
				       "micro_batches",
				       "tp",
				       "pp",
				       "cp",
				       "ep" };

/* A word that is this, begins or ends with it, or has it within; a number of that range. */
struct filter {
	const char *key;
	bool number, before, behind; /* anything may stand there */
	char part[TEXT], text[2 * TEXT];
	double least, most;
};

static const char *cell(const struct csv *t, size_t row, const char *column)
{
	assert_true(csv_column(t, column) >= 0);
	return csv_text(t, row, csv_column(t, column));
}

static double value(const struct csv *t, size_t row, const char *column)
{
	return strtod(cell(t, row, column), NULL);
}

/* ---- drawn ------------------------------------------------------------------------------ */

/* After a run that is there, so that some pass. */
static void draw_word(const struct csv *t, size_t like, struct filter *f)
{
	const char *word = cell(t, like, f->key);
	size_t n = strlen(word), from = 0, to = n;

	f->before = !rnd_below(&seed, 3);
	f->behind = rnd_below(&seed, 2);
	if (f->before && n)
		from = (size_t)rnd_below(&seed, (int)n);
	if (f->behind && n)
		to = from + (size_t)rnd_below(&seed, (int)(n - from) + 1);
	snprintf(f->part, TEXT, "%.*s", (int)(to - from), word + from);
	snprintf(f->text, sizeof(f->text), "%s=%s%s%s", f->key, f->before ? "*" : "",
		 f->part, f->behind ? "*" : "");
}

static void draw_number(const struct csv *t, size_t like, struct filter *f)
{
	const char *first = cell(t, like, f->key);
	const char *last = cell(t, (size_t)rnd_below(&seed, (int)t->n_rows), f->key);

	if (strtod(last, NULL) < strtod(first, NULL))
		last = first;
	f->least = -INFINITY;
	f->most = INFINITY;
	switch (rnd_below(&seed, 4)) {
	case 0:
		f->least = f->most = strtod(first, NULL);
		snprintf(f->text, TEXT, "%s=%s", f->key, first);
		break;
	case 1:
		f->least = strtod(first, NULL);
		snprintf(f->text, TEXT, "%s=%s..", f->key, first);
		break;
	case 2:
		f->most = strtod(last, NULL);
		snprintf(f->text, TEXT, "%s=..%s", f->key, last);
		break;
	default:
		f->least = strtod(first, NULL);
		f->most = strtod(last, NULL);
		snprintf(f->text, TEXT, "%s=%s..%s", f->key, first, last);
	}
}

static void draw(const struct csv *t, size_t like, struct filter *f)
{
	*f = (struct filter){ .number = rnd_below(&seed, 2) };
	f->key = f->number ? PICK(numbers) : PICK(words);
	if (f->number)
		draw_number(t, like, f);
	else
		draw_word(t, like, f);
}

/* ---- looked for --------------------------------------------------------------------------- */

static bool passes(const struct csv *t, size_t row, const struct filter *f)
{
	const char *word = cell(t, row, f->key);
	size_t n = strlen(word), part = strlen(f->part);

	if (f->number)
		return value(t, row, f->key) >= f->least &&
		       value(t, row, f->key) <= f->most;
	for (size_t from = 0; from + part <= n; from++)
		if (!strncmp(word + from, f->part, part) && (f->before || !from) &&
		    (f->behind || from + part == n))
			return true;
	return false;
}

static void is_row(const struct csv *t, size_t row, const struct ft_measured *m)
{
	const struct ft_trait *trait;
	size_t n = ft_trait_table(&trait);

	assert_string_equal(m->id, cell(t, row, "id"));
	assert_string_equal(m->source, cell(t, row, "source"));
	near_frac(m->tokens_per_s_per_gpu, value(t, row, "tokens_per_s_per_gpu"),
		  1e-12);
	/* what was predicted takes so much longer than what was measured */
	near_frac(1 + m->error_frac, exp(-value(t, row, "log_ratio")), 1e-12);
	for (size_t i = 0; i < n; i++)
		if (trait[i].number)
			near_frac(ft_trait_number(&trait[i], m->traits),
				  value(t, row, trait[i].name), 1e-12);
		else
			assert_string_equal(ft_trait_word(&trait[i], m->traits),
					    cell(t, row, trait[i].name));
}

static void all_are_found(const struct csv *t, const struct filter *f, size_t n_filters)
{
	const char *text[FILTERS] = { f[0].text, f[1].text, f[2].text };
	struct ft_error err;
	struct ft_runs *runs = ft_runs_find(text, n_filters, &err);
	size_t n = 0;

	ok_or_say(runs, err);
	for (size_t row = 0; row < t->n_rows; row++) {
		bool all = true;

		for (size_t i = 0; i < n_filters; i++)
			all &= passes(t, row, &f[i]);
		if (!all)
			continue;
		assert_true(n < runs->n);
		is_row(t, row, &runs->run[n++]);
	}
	assert_int_equal(runs->n, n);
	ft_runs_free(runs);
}

static void a_run_is_found_where_it_passes_each_filter(void **state)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct csv *t = csv_read_file(&mem, "study/residuals.csv", &err);

	(void)state;
	ok_or_say(t, err);
	for (int i = 0; i < DRAWS; i++) {
		struct filter f[FILTERS];
		size_t like = (size_t)rnd_below(&seed, (int)t->n_rows);

		for (int k = 0; k < FILTERS; k++)
			draw(t, like, &f[k]);
		all_are_found(t, f, (size_t)rnd_below(&seed, FILTERS + 1));
	}
	arena_release(&mem);
}

static void what_is_no_filter_is_refused(void **state)
{
	static const struct {
		const char *filter, *why;
	} rows[] = {
		{ "gpus", "'gpus' is no filter: write KEY=VALUE" },
		{ "", "'' is no filter" },
		{ "gpux=h100", "runs have no 'gpux'; they have gpu, generation, " },
		{ "gp=h100", "runs have no 'gp'; " },
		{ "i=h100", "runs have no 'i'; " },
		{ "ide=h100", "runs have no 'ide'; " },
		{ "sourc=h100", "runs have no 'sourc'; " },
		{ "sourcx=h100", "runs have no 'sourcx'; " },
		{ "unnamed=true", "runs have no 'unnamed'; " },
		{ "gpus=", "'gpus=': write a number, or a range as 64..512" },
		{ "gpus=x", "'gpus=x': write a number" },
		{ "gpus=8x", "'gpus=8x': write a number" },
		{ "gpus=8..x", "'gpus=8..x': write a number" },
		{ "gpus=8..9x", "'gpus=8..9x': write a number" },
		{ "gpus=x..9", "'gpus=x..9': write a number" },
		{ "gpus=9..8", "'gpus=9..8': write a number" },
		{ "gpus=8.9", NULL },
		{ "gpus=..", NULL },
		{ "gpus=8..8", NULL },
		{ "gpu=", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ft_error err = { 0 };
		struct ft_runs *runs = ft_runs_find(&rows[i].filter, 1, &err);

		if (!rows[i].why)
			ok_or_say(runs, err);
		else if (runs || !strstr(err.text, rows[i].why))
			fail_msg("%s: %s", rows[i].filter, runs ? "taken" : err.text);
		ft_runs_free(runs);
	}
}

/* What runs are told by is named in full, so that the next filter is right. */
static void all_names_are_told(void **state)
{
	const char *const filter = "x=1";
	struct ft_error err = { 0 };
	char name[64];

	(void)state;
	assert_null(ft_runs_find(&filter, 1, &err));
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strstr(err.text, words[i]))
			fail_msg("%s is not in: %s", words[i], err.text);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		snprintf(name, sizeof(name), " %s,", numbers[i]);
		if (!strstr(err.text, name))
			fail_msg("%s is not in: %s", numbers[i], err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_is_found_where_it_passes_each_filter),
		cmocka_unit_test(what_is_no_filter_is_refused),
		cmocka_unit_test(all_names_are_told),
	};

	return cmocka_run_group_tests_name("runs found", tests, NULL, NULL);
}
