/* study/validate.c - a file of measured rows, told apart by its first column */
#include <string.h>

#include "base/node.h"
#include "base/plain.h"
#include "base/text.h"
#include "study/keys.h"
#include "study/shelf.h"
#include "study/tally.h"
#include "study/traits.h"

struct whole {
	struct ft_validation validation; /* first: the handle is the arena's */
	struct arena mem;
};

/* Columns that say what a row is, beside the keys of its scenario. */
static const char *const about[] = { "id", "group", "source", "notes" };

enum { ABOUT = sizeof(about) / sizeof(*about) };

static const char *const heads[] = { "model." };

enum { HEADS = sizeof(heads) / sizeof(*heads) };

/* The first of these that a row has is the one it is scored by. */
static const char *const scored[] = { "step_s", "tokens_per_s_per_gpu",
				      "model_flop_per_s_per_gpu", "tokens_per_s" };

enum { SCORED = sizeof(scored) / sizeof(*scored) };

static bool is_scored(const char *key)
{
	return text_place(key, scored, SCORED) < SCORED;
}

/* What a column "measured.KEY" measures; NULL: it is another one. */
static const char *measured_key(const char *column)
{
	static const char head[] = "measured.";

	return strncmp(column, head, sizeof(head) - 1) ? NULL :
							 column + sizeof(head) - 1;
}

/* More of it is faster, or cheaper. */
static bool is_rate(const char *key)
{
	static const char *const others[] = { "hfu", "cost.tokens_per_usd",
					      "cost.goodput" };

	return strstr(key, "per_s") != NULL || text_begins_with(key, "mfu") ||
	       text_place(key, others, 3) < 3;
}

static bool is_about(const char *key)
{
	return text_place(key, about, ABOUT) < ABOUT;
}

bool rows_are_steps(struct tally *t, const struct csv *rows, struct ft_error *err)
{
	const struct scenario_key *key;
	const struct ft_outcome_field *field;
	size_t n_keys = scenario_keys(&key), n_fields = ft_outcome_fields(&field);
	const char **name =
		ARENA_ARRAY(t->mem, ABOUT + n_fields + n_keys, const char *);
	size_t n = ABOUT;

	memcpy(name, about, sizeof(about));
	for (size_t i = 0; i < n_fields; i++)
		name[n++] = arena_printf(t->mem, "measured.%s", field[i].key);
	for (size_t i = 0; i < n_keys; i++)
		if (key[i].flags & KEY_COLUMN)
			name[n++] = key[i].path;
	return csv_columns_known(rows, name, n, heads, HEADS, err);
}

static void mark_all(struct node *node, const struct ft_mark *at)
{
	node->mark = *at;
	for (size_t i = 0; node->kind != NODE_SCALAR && i < node->n; i++) {
		if (node->kind == NODE_MAP)
			node->key_mark[i] = *at;
		mark_all(node->item[i], at);
	}
}

/* A cell that begins like a list or a map is one. */
static bool put_cell(struct arena *mem, struct node *root, const char *key,
		     const struct ft_mark *at, const char *text, struct ft_error *err)
{
	struct node *list;

	if (text[0] != '[' && text[0] != '{')
		return node_put_path(mem, root, key, at, text, err);
	list = node_read_text(mem, at->file, text, strlen(text), err);
	if (!list) {
		err->line = at->line;
		err->column = at->column;
		return false;
	}
	mark_all(list, at);
	return node_put_node(mem, root, key, at, list, err);
}

bool rows_alike(const struct csv *rows, size_t row, size_t other)
{
	for (size_t i = 0; i < rows->n_columns; i++)
		if (!measured_key(rows->column[i]) && !is_about(rows->column[i]) &&
		    strcmp(csv_text(rows, row, (int)i), csv_text(rows, other, (int)i)))
			return false;
	return true;
}

struct node *row_scenario(struct tally *t, const struct csv *rows, size_t row,
			  struct ft_error *err)
{
	struct arena *mem = t->mem;
	struct ft_mark at = csv_mark(rows, row, -1);
	struct node *root = node_map(mem, &at);

	for (size_t c = 0; c < rows->n_columns; c++) {
		const char *key = rows->column[c];
		const char *text = csv_text(rows, row, (int)c);

		if (!text[0] || measured_key(key) || is_about(key))
			continue;
		at = csv_mark(rows, row, (int)c);
		if (!put_cell(mem, root, key, &at, text, err))
			return NULL;
	}
	for (size_t i = 0; i < t->n_sets; i++)
		if (!node_set(mem, root, t->sets[i], err))
			return NULL;
	return root;
}

static void set_interval(struct ft_check *c, const struct ft_outcome *o)
{
	double slow = o->step_high_s / o->step_s, fast = o->step_low_s / o->step_s;

	/* memory, by the allocator's own slack, power and cost: assumed */
	c->low = c->predicted * 0.95;
	c->high = c->predicted * 1.05;
	if (!strcmp(c->key, "step_s")) {
		c->low = c->predicted * fast;
		c->high = c->predicted * slow;
	} else if (c->is_rate && !text_begins_with(c->key, "cost.")) {
		c->low = c->predicted / slow;
		c->high = c->predicted / fast;
	}
}

/* A row that was measured, and what was predicted for it. */
struct measured_row {
	const struct csv *rows;
	size_t row;
	const struct ft_outcome *o;
};

/* 0: it was not measured; what others are divided by is never 0. */
static bool measured(struct tally *t, const struct measured_row *r, const char *key,
		     double *out, struct ft_error *err)
{
	int column = csv_column(r->rows, arena_printf(t->mem, "measured.%s", key));
	struct ft_mark at = csv_mark(r->rows, r->row, column);

	if (!csv_number(r->rows, r->row, column, 0, out, err))
		return false;
	if (*out < 0)
		return ft_fail(err, &at, "measured.%s should not be below 0", key);
	return *out > 0 || !is_scored(key) || !csv_text(r->rows, r->row, column)[0] ||
	       ft_fail(err, &at, "measured.%s should be above 0", key);
}

static bool check(struct tally *t, const struct measured_row *r, struct ft_check c,
		  struct ft_error *err)
{
	if (!ft_outcome_get(r->o, c.key, &c.predicted))
		return ft_fail(err, NULL, "there is no prediction for measured.%s",
			       c.key);
	c.is_rate = is_rate(c.key);
	set_interval(&c, r->o);
	tally_check(t, &c, is_scored(c.key));
	return true;
}

static bool is_share(const char *key)
{
	return text_begins_with(key, "mfu") || !strcmp(key, "hfu");
}

/* Measured keys beside those that are scored. *any: there is one. */
static bool check_others(struct tally *t, const struct measured_row *r,
			 struct ft_check c, bool *any, struct ft_error *err)
{
	for (size_t i = 0; i < r->rows->n_columns; i++) {
		struct ft_mark at = csv_mark(r->rows, r->row, (int)i);

		c.key = measured_key(r->rows->column[i]);
		if (!c.key || is_scored(c.key))
			continue;
		if (!measured(t, r, c.key, &c.measured, err))
			return false;
		if (is_share(c.key) && c.measured > 1)
			return ft_fail(err, &at, "measured.%s is a fraction, 0 to 1",
				       c.key);
		*any |= c.measured > 0;
		if (c.measured > 0 && !check(t, r, c, err))
			return false;
	}
	return true;
}

/* The first of the scored keys that a row has, and every other one. */
static bool check_measured(struct tally *t, const struct measured_row *r,
			   struct ft_error *err)
{
	const char *group = csv_text(r->rows, r->row, csv_column(r->rows, "group"));
	struct ft_traits *traits = ARENA_NEW(t->mem, struct ft_traits);
	struct ft_check c = { .id = row_id(t, r->rows, r->row),
			      .group = group[0] ? group : "-",
			      .extrapolated_frac = r->o->extrapolated_frac,
			      .no_room = !r->o->fits,
			      .traits = traits };
	struct ft_mark at = csv_mark(r->rows, r->row, -1);
	bool found = false, any = false;

	*traits = traits_copy(t->mem, &r->o->traits);
	for (size_t i = 0; i < SCORED; i++) {
		c.key = scored[i];
		if (!measured(t, r, c.key, &c.measured, err))
			return false;
		if (found || c.measured <= 0)
			continue;
		found = any = true;
		if (!check(t, r, c, err))
			return false;
	}
	return check_others(t, r, c, &any, err) &&
	       (any || ft_fail(err, &at,
			       "the row has no measured value, such as "
			       "measured.step_s"));
}

bool row_scored(struct tally *t, const struct csv *rows, size_t row, const char **key,
		double *value, struct ft_error *err)
{
	struct measured_row r = { rows, row, NULL };
	struct ft_mark at = csv_mark(rows, row, -1);

	for (size_t i = 0; i < SCORED; i++) {
		*key = scored[i];
		if (!measured(t, &r, *key, value, err))
			return false;
		if (*value > 0)
			return true;
	}
	return ft_fail(err, &at, "the row has no measured step or rate: measured.%s",
		       text_join(t->mem, scored, SCORED));
}

bool validate_row(struct tally *t, const struct csv *rows, size_t row,
		  struct ft_error *err)
{
	struct node *root = row_scenario(t, rows, row, err);
	struct ft_scenario *s =
		root ? scenario_lenient(t->shelf, root, rows->file, err) : NULL;
	size_t n_checks = t->v->n_checks, n_side = t->n_side;
	struct ft_outcome o;
	bool ok;

	if (s)
		s->group = csv_text(rows, row, csv_column(rows, "group"));
	ok = s && ft_study_simulate(s, NULL, NULL, &o, err);
	if (ok) {
		ok = check_measured(t, &(struct measured_row){ rows, row, &o }, err);
		ft_outcome_release(&o);
	}
	if (!ok) { /* none of it counts */
		t->v->n_checks = n_checks;
		t->n_side = n_side;
	}
	ft_scenario_free(s);
	return ok;
}

/* Kernels or collectives, which have no scenario. */
static bool are_single(const struct csv *rows)
{
	return !strcmp(rows->column[0], "kernel") || !strcmp(rows->column[0], "op");
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
		w->validation.n_rows = rows->n_rows;
		if (n && are_single(rows))
			ft_fail(err, NULL,
				"%s holds kernels or collectives: --set changes the "
				"scenario of training steps alone",
				rows->file);
		else if (!strcmp(rows->column[0], "kernel"))
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

struct arena *validation_memory(struct ft_validation *validation)
{
	return &((struct whole *)validation)->mem;
}

void ft_validation_free(struct ft_validation *validation)
{
	struct arena mem;

	if (!validation)
		return;
	mem = ((struct whole *)validation)->mem;
	arena_release(&mem);
}
