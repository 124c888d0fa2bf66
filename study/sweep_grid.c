/* study/sweep_grid.c - --vary and --set as numbered combinations */
#include "study/sweep_grid.h"

#include <string.h>

#include "base/digest.h"
#include "base/text.h"

static const double MOST_RUNS = 1e7;

/* Each value once; none is empty, which would be a run of the default that nobody asked for. */
static bool check_values(const struct grid_axis *a, struct ft_error *err)
{
	for (size_t i = 0; i < a->n; i++) {
		if (!a->value[i][0])
			return ft_fail(
				err, NULL,
				"--vary %s has an empty value; write null for the default",
				a->key);
		for (size_t k = 0; k < i; k++)
			if (!strcmp(a->value[i], a->value[k]))
				return ft_fail(err, NULL, "%s=%.60s is given twice",
					       a->key, a->value[i]);
	}
	return true;
}

static bool cut(struct grid *g, const char *text, struct grid_axis *a,
		struct ft_error *err)
{
	char *copy = arena_text(&g->mem, text), *eq = strchr(copy, '=');
	int depth = 0;

	if (!eq || eq == copy || !eq[1])
		return ft_fail(err, NULL, "write --vary KEY=A,B,C, not '%.60s'", text);
	*eq++ = '\0';
	a->key = copy;
	a->value[a->n++] = eq;
	for (char *p = eq; *p; p++) {
		depth += (*p == '[' || *p == '{') - (*p == ']' || *p == '}');
		if (*p != ',' || depth > 0)
			continue;
		*p = '\0';
		if (a->n == GRID_VALUES)
			return ft_fail(err, NULL, "more than %d values of %s",
				       (int)GRID_VALUES, a->key);
		a->value[a->n++] = p + 1 + strspn(p + 1, " ");
	}
	return check_values(a, err);
}

/* Is key `inner` the key `outer` or one within it? */
static bool is_within(const char *inner, const char *outer)
{
	size_t n = strlen(outer);

	return !strncmp(inner, outer, n) && (!inner[n] || inner[n] == '.');
}

/* What is asked of a run, and what cash flows alone have, change no row: a table has no column for it. */
static bool is_told(const struct grid *g, struct ft_error *err)
{
	static const struct {
		const char *key, *instead;
	} columnless[] = { { "run", "simulate or compare" },
			   { "cost.against", "simulate --finance" },
			   { "cost.start", "simulate --flows" } };

	for (size_t i = 0; i < g->n_keys; i++)
		for (size_t k = 0; k < sizeof(columnless) / sizeof(*columnless); k++)
			if (is_within(g->key[i], columnless[k].key))
				return ft_fail(
					err, NULL,
					"%s changes no column of a sweep; use %s",
					g->key[i], columnless[k].instead);
	for (size_t a = 0; a < g->sweep->n_vary; a++) /* a row's key has no name */
		if (!strcmp(g->axis[a].key, "title") || !strcmp(g->axis[a].key, "name"))
			return ft_fail(
				err, NULL,
				"--vary %s would give one row, as names change no "
				"answer; vary another key",
				g->axis[a].key);
	return true;
}

/* A later value replaces an earlier one, which would then make no difference. */
static bool is_replaced(struct grid *g, size_t last, struct ft_error *err)
{
	for (size_t i = 0; i < last; i++)
		if (is_within(g->axis[i].key, g->axis[last].key))
			return !ft_fail(
				err, NULL,
				"--vary %s replaces what --vary %s says: vary a "
				"key once, and a map before what is in it",
				g->axis[last].key, g->axis[i].key);
	for (size_t i = 0; i < g->sweep->n_sets; i++) {
		const char *set = arena_text_n(&g->mem, g->sweep->sets[i],
					       strcspn(g->sweep->sets[i], "="));

		if (is_within(set, g->axis[last].key))
			return !ft_fail(err, NULL,
					"--vary %s replaces what --set %s says: leave "
					"one of them out",
					g->axis[last].key, set);
	}
	return false;
}

static void add_key(struct grid *g, const char *key)
{
	for (size_t i = 0; i < g->n_keys; i++)
		if (!strcmp(g->key[i], key))
			return;
	g->key[g->n_keys++] = key;
}

bool grid_open(struct grid *g, const struct ft_sweep *s, struct ft_error *err)
{
	double total = 1;

	*g = (struct grid){ .sweep = s };
	if (s->n_vary > GRID_VARY || s->n_sets > GRID_SETS)
		return ft_fail(err, NULL, "at most %d keys can vary, and %d be set",
			       (int)GRID_VARY, (int)GRID_SETS);
	g->key = ARENA_ARRAY(&g->mem, s->n_vary + s->n_sets + 1, const char *);
	for (size_t i = 0; i < s->n_sets; i++)
		add_key(g, arena_text_n(&g->mem, s->sets[i], strcspn(s->sets[i], "=")));
	for (size_t i = 0; i < s->n_vary; i++) {
		if (!cut(g, s->vary[i], &g->axis[i], err) || is_replaced(g, i, err))
			return false;
		add_key(g, g->axis[i].key);
		total *= (double)g->axis[i].n;
	}
	if (!is_told(g, err))
		return false;
	if (total > MOST_RUNS)
		return ft_fail(err, NULL,
			       "%.0f combinations are too many: %.0f at most", total,
			       MOST_RUNS);
	g->total = (size_t)total;
	if (s->shards) /* those left for this one */
		g->total =
			(g->total + (size_t)(s->shards - s->shard)) / (size_t)s->shards;
	return true;
}

void grid_release(struct grid *g)
{
	arena_release(&g->mem);
}

const char *grid_settings(const struct grid *g, struct arena *mem, size_t i,
			  const char **sets)
{
	const char *text = "";

	if (g->sweep->shards)
		i = i * (size_t)g->sweep->shards + (size_t)g->sweep->shard - 1;
	for (size_t a = 0; a < g->sweep->n_sets; a++) {
		sets[a] = g->sweep->sets[a];
		text = arena_printf(mem, "%s%s ", text, sets[a]);
	}
	for (size_t a = 0; a < g->sweep->n_vary; a++) {
		const struct grid_axis *x = &g->axis[a];
		const char *set =
			arena_printf(mem, "%s=%s", x->key, x->value[i % x->n]);

		i /= x->n;
		sets[g->sweep->n_sets + a] = set;
		text = arena_printf(mem, "%s%s%s", text, a ? " " : "", set);
	}
	return text;
}

bool grid_refused(const struct grid *g, const char *text, const char *settings,
		  const struct ft_error *why, char key[33])
{
	struct ft_digest of = { 0 };

	if (why->missing || why->of_system ||
	    (why->file[0] && strcmp(why->file, g->sweep->scenario) != 0 &&
	     !text_begins_with(why->file, "--")))
		return false;
	digest_text(&of, ft_version_build());
	digest_text(&of, text);
	digest_text(&of, settings);
	digest_text(&of, why->text);
	digest_hex(&of, key);
	return true;
}
