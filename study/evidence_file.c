/* study/evidence_file.c - study/ranges.yaml, one of the two files of runs that it names, and whose groups they are */
#include "study/evidence_file.h"

#include <stddef.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/plain.h"
#include "base/reader.h"
#include "study/traits.h"

static bool read_distances(const struct node *node, struct ft_evidence *e,
			   struct ft_error *err)
{
	struct reader r = reader_open(node, err);
	const struct ft_trait *t;
	size_t n = ft_trait_table(&t);

	for (size_t i = 0; i < n; i++)
		e->distance[i] = read_quantity(&r, t[i].name, DIM_NONE, 0);
	return reader_close(&r);
}

/* ---- runs ------------------------------------------------------------------------------ */

#define AT(field) offsetof(struct run, field)

/* What a column of such a file becomes. */
struct column {
	const char *name;
	size_t at; /* in a run */
	enum { NOTHING, WORD, NUMBER, ABOVE_ZERO, SOURCE } is;
};

static const struct column others[] = {
	{ "id", AT(id), WORD },
	{ "source", AT(source), SOURCE },
	{ "kernel_spread_frac", AT(traits.kernel_spread_frac), NUMBER },
	{ "host_spread_frac", AT(traits.host_spread_frac), NUMBER },
	{ "clock_faster_frac", AT(traits.clock_faster_frac), NUMBER },
	{ "clock_slower_frac", AT(traits.clock_slower_frac), NUMBER },
	{ "log_ratio", AT(log_ratio), NUMBER },
	{ "tokens_per_s_per_gpu", AT(tokens_per_s_per_gpu), NUMBER },
};

enum { OTHERS = sizeof(others) / sizeof(*others) };

/* What each column of the table is. A table without one of ours says nothing. */
static struct column *find_columns(struct ft_evidence *e, const struct csv_rows *rows,
				   struct ft_error *err)
{
	struct column *c = ARENA_ARRAY(&e->mem, rows->n_columns, struct column);
	struct ft_mark top = { rows->file, 1, 1 };
	const struct ft_trait *t;
	size_t n = ft_trait_table(&t);

	for (size_t i = 0; i < n + OTHERS; i++) {
		const char *name = i < n ? t[i].name : others[i - n].name;
		int at = csv_rows_column(rows, name);

		if (at < 0) {
			ft_fail(err, &top, "lacks the column %s: run `make residuals`",
				name);
			return NULL;
		}
		if (i < n)
			c[at] = (struct column){ name, AT(traits) + t[i].at,
						 t[i].number ? ABOVE_ZERO : WORD };
		else
			c[at] = others[i - n];
	}
	return c;
}

static size_t source_of(struct ft_evidence *e, const char *name)
{
	for (size_t i = 0; i < e->n_sources; i++)
		if (!strcmp(e->source[i], name))
			return i;
	if (e->n_sources == e->sources_cap)
		e->source = ARENA_GROW(&e->mem, e->source, &e->sources_cap);
	e->source[e->n_sources] = name;
	return e->n_sources++;
}

static bool number_in(const struct csv_rows *rows, size_t i, const struct column *c,
		      double *value, struct ft_error *err)
{
	struct ft_mark at;

	if (!csv_rows_number(rows, i, value))
		return false;
	if (c->is != ABOVE_ZERO || *value > 0)
		return true;
	at = csv_rows_mark(rows, i);
	return ft_fail(err, &at, "%s should be above 0", c->name);
}

/* r begins as the run before: rows that follow each other have most of theirs in common. */
static bool read_run(struct ft_evidence *e, const struct csv_rows *rows,
		     const struct column *column, struct run *r, struct ft_error *err)
{
	for (size_t i = 0; i < rows->n_columns; i++) {
		const struct csv_cell *cell = &rows->cell[i];
		const struct column *c = &column[i];
		void *at = (char *)r + c->at;

		if (cell->same || c->is == NOTHING)
			continue;
		if (c->is == WORD)
			memcpy(at, &cell->text, sizeof(cell->text));
		else if (c->is == SOURCE)
			r->source = source_of(e, cell->text);
		else if (!number_in(rows, i, c, at, err))
			return false;
	}
	return true;
}

static bool read_runs(const char *path, bool unnamed, struct ft_evidence *e,
		      struct ft_error *err)
{
	struct csv_rows *rows = csv_open_file(&e->mem, path, err);
	struct column *column = rows ? find_columns(e, rows, err) : NULL;
	int more;

	if (!column)
		return false;
	e->run = ARENA_ARRAY(&e->mem, csv_rows_most(rows), struct run);
	while ((more = csv_next(rows)) > 0) {
		if (e->n)
			e->run[e->n] = e->run[e->n - 1];
		e->run[e->n].traits.unnamed = unnamed;
		if (!read_run(e, rows, column, &e->run[e->n++], err))
			return false;
	}
	return !more;
}

static bool read_groups(const char *path, struct ft_evidence *e, struct ft_error *err)
{
	struct csv *t = csv_read_file(&e->mem, path, err);
	int group = t ? csv_column(t, "group") : -1;
	int source = t ? csv_column(t, "source") : -1;

	if (!t)
		return false;
	if (group < 0 || source < 0) {
		return ft_fail(err, &(struct ft_mark){ path, t->header_line, 1 },
			       "should have the columns group and source: run `make "
			       "residuals`");
	}
	e->n_groups = t->n_rows;
	e->group = ARENA_ARRAY(&e->mem, t->n_rows, struct group);
	for (size_t i = 0; i < t->n_rows; i++) {
		e->group[i].name = csv_text(t, i, group);
		e->group[i].source = source_of(e, csv_text(t, i, source));
	}
	return true;
}

/* The file that a key names. */
static const char *read_file_beside(struct reader *r, const char *key, const char *what)
{
	const char *file = read_text(r, key, "");

	if (!file[0])
		reader_fail(r, NULL, "lacks the key '%s': the file of %s", key, what);
	return file;
}

static bool read_all(bool unnamed, struct ft_evidence *e, struct ft_error *err)
{
	const char *path = file_find(&e->mem, "study", "ranges", NULL, err);
	struct node *node = path ? node_read_file(&e->mem, path, err) : NULL;
	struct reader r = reader_open(node, err);
	const struct node *distances;
	const char *runs[2], *groups; /* runs: by whether their stack is unnamed */

	if (!node)
		return false;
	read_provenance(&r, &e->mem);
	runs[false] = read_file_beside(&r, "runs", "runs");
	runs[true] = read_file_beside(&r, "unnamed_runs", "runs");
	groups = read_file_beside(&r, "groups", "groups");
	distances = read_need(&r, "distance");
	e->widening = read_quantity(&r, "widening", DIM_NONE, 0);
	e->missing_sources = read_quantity(&r, "missing_sources", DIM_NONE, 0);
	if (!r.from)
		reader_fail(&r, NULL, "lacks provenance: {kind, source, date}");
	return reader_close(&r) && read_distances(distances, e, err) &&
	       read_runs(file_beside(&e->mem, path, runs[unnamed]), unnamed, e, err) &&
	       read_groups(file_beside(&e->mem, path, groups), e, err);
}

struct ft_evidence *evidence_load(bool unnamed, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct ft_evidence *e = ARENA_NEW(&mem, struct ft_evidence);

	e->mem = mem;
	if (read_all(unnamed, e, err))
		return e;
	evidence_free(e);
	return NULL;
}

void evidence_free(struct ft_evidence *e)
{
	struct arena mem;

	if (!e)
		return;
	mem = e->mem;
	arena_release(&mem);
}

const struct ft_digest *evidence_digest(const struct ft_evidence *e)
{
	return &e->mem.read;
}
