/* study/validate.c - a file of measured rows, told apart by its first column */
#include <string.h>

#include "base/node.h"
#include "base/plain.h"
#include "study/keys.h"
#include "study/tally.h"

struct whole {
	struct ft_validation validation; /* first: the handle is the arena's */
	struct arena mem;
};

/* Columns that say what a row is, beside the keys of its scenario. */
static const char *const about[] = { "id", "group", "source", "notes" };

enum { ABOUT = sizeof(about) / sizeof(*about) };

static const char *const heads[] = { "model.", "measured." };

/* The first of these that a row has is the one it is scored by. */
static const char *const scored[] = { "step_s", "tokens_per_s_per_gpu",
				      "model_flop_per_s_per_gpu" };

static bool is_rate(const char *key)
{
	return strstr(key, "per_s") != NULL || !strncmp(key, "mfu", 3) ||
	       !strcmp(key, "hfu");
}

static bool is_about(const char *key)
{
	for (int i = 0; i < ABOUT; i++)
		if (!strcmp(key, about[i]))
			return true;
	return false;
}

static bool step_columns_known(struct tally *t, const struct csv *rows,
			       struct ft_error *err)
{
	const struct scenario_key *key;
	size_t n_keys = scenario_keys(&key), n = ABOUT;
	const char **name = ARENA_ARRAY(t->mem, ABOUT + n_keys, const char *);

	memcpy(name, about, sizeof(about));
	for (size_t i = 0; i < n_keys; i++)
		if (key[i].flags & KEY_COLUMN)
			name[n++] = key[i].path;
	return columns_known(rows, name, n, heads, 2, err);
}

static struct node *scenario_of(struct tally *t, const struct csv *rows, size_t row,
				struct ft_error *err)
{
	struct arena *mem = t->mem;
	struct ft_mark at = csv_mark(rows, row, -1);
	struct node *root = node_map(mem, &at);

	for (size_t c = 0; c < rows->n_columns; c++) {
		const char *key = rows->column[c];
		const char *text = csv_text(rows, row, (int)c);

		if (!text[0] || !strncmp(key, "measured.", 9) || is_about(key))
			continue;
		at = csv_mark(rows, row, (int)c);
		if (!node_put_path(mem, root, key, &at, text, err))
			return NULL;
	}
	for (size_t i = 0; i < t->n_sets; i++)
		if (!node_set(mem, root, t->sets[i], err))
			return NULL;
	return root;
}

static void limits(const struct ft_outcome *o, const char *key, double value,
		   double *low, double *high)
{
	double slow = o->step_high_s / o->step_s, fast = o->step_low_s / o->step_s;

	/* memory: the allocator's own slack, assumed */
	*low = value * 0.95;
	*high = value * 1.05;
	if (!strcmp(key, "step_s")) {
		*low = value * fast;
		*high = value * slow;
	} else if (is_rate(key)) {
		*low = value / slow;
		*high = value / fast;
	}
}

static bool check_measured(struct tally *t, const struct csv *rows, size_t row,
			   const struct ft_outcome *o, struct ft_error *err)
{
	const char *id = row_id(t, rows, row);
	const char *group = csv_text(rows, row, csv_column(rows, "group"));
	bool first = true;

	for (size_t i = 0; i < 3 + rows->n_columns; i++) {
		const char *key = i < 3 ? scored[i] : rows->column[i - 3] + 9;
		double measured, predicted, low, high;
		bool main_key = false;
		int column;

		if (i >= 3 && strncmp(rows->column[i - 3], "measured.", 9))
			continue;
		for (int k = 0; i >= 3 && k < 3; k++)
			main_key |= !strcmp(key, scored[k]);
		if (main_key)
			continue; /* seen above */
		column = csv_column(rows, arena_printf(t->mem, "measured.%s", key));
		if (!csv_number(rows, row, column, 0, &measured, err))
			return false;
		if (measured <= 0 || (i < 3 && !first))
			continue;
		if (!ft_outcome_get(o, key, &predicted))
			return ft_fail(err, NULL,
				       "there is no prediction for "
				       "measured.%s",
				       key);
		limits(o, key, predicted, &low, &high);
		tally_check(t, id, group[0] ? group : "-", key, measured, predicted,
			    is_rate(key), low, high, o->extrapolated_frac, i < 3);
		first &= i >= 3;
	}
	return !first || ft_fail(err, NULL,
				 "the row has no measured step_s, "
				 "tokens_per_s_per_gpu or "
				 "model_flop_per_s_per_gpu");
}

static bool one_step(struct tally *t, const struct csv *rows, size_t row,
		     struct ft_error *err)
{
	struct node *root = scenario_of(t, rows, row, err);
	struct ft_scenario *s =
		root ? ft_scenario_from(t->shelf, root, rows->file, true, err) : NULL;
	struct ft_outcome o;
	bool ok = s && ft_study_simulate(s, NULL, NULL, &o, err);

	if (ok) {
		ok = check_measured(t, rows, row, &o, err);
		ft_outcome_release(&o);
	}
	ft_scenario_free(s);
	return ok;
}

bool validate_steps(struct tally *t, const struct csv *rows,
		    struct ft_progress progress, struct ft_error *err)
{
	if (!step_columns_known(t, rows, err))
		return false;
	for (size_t i = 0; i < rows->n_rows; i++) {
		struct ft_error why = { 0 };

		bool ok;

		if (progress.tell)
			progress.tell(progress.context, i, i, rows->n_rows);
		ok = one_step(t, rows, i, &why);
		if (!ok && why.of_system) {
			*err = why;
			return false;
		}
		if (!ok)
			tally_failure(t, row_id(t, rows, i), &why);
	}
	if (progress.tell)
		progress.tell(progress.context, rows->n_rows, rows->n_rows,
			      rows->n_rows);
	return true;
}

struct ft_validation *ft_validate(const char *path, const char *const *sets, size_t n,
				  struct ft_progress progress, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct whole *w = ARENA_NEW(&mem, struct whole);
	struct tally t = { .v = &w->validation, .sets = sets, .n_sets = n };
	struct csv *rows;
	bool ok = false;

	w->mem = mem;
	t.mem = &w->mem;
	t.shelf = ft_shelf_new();
	rows = csv_read_file(&w->mem, path, err);
	if (rows) {
		w->validation.file = rows->file;
		if (!strcmp(rows->column[0], "kernel"))
			ok = validate_kernels(&t, rows, err);
		else if (!strcmp(rows->column[0], "op"))
			ok = validate_collectives(&t, rows, err);
		else
			ok = validate_steps(&t, rows, progress, err);
	}
	ft_shelf_free(t.shelf);
	if (ok) {
		tally_finish(&t);
		return &w->validation;
	}
	ft_validation_free(&w->validation);
	return NULL;
}

void ft_validation_free(struct ft_validation *validation)
{
	struct arena mem;

	if (!validation)
		return;
	mem = ((struct whole *)validation)->mem;
	arena_release(&mem);
}
