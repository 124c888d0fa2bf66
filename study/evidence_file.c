/* study/evidence_file.c - study/ranges.yaml and study/residuals.csv read */
#include "study/evidence_file.h"

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

/* Columns beside those of the traits. */
enum { ID, GROUP, SOURCE, SPREAD, RATIO, RATE, OTHERS };

struct columns {
	int trait[MOST_TRAITS], other[OTHERS];
};

/* A table without one of these says nothing. */
static bool find_columns(const struct csv *rows, struct columns *c,
			 struct ft_error *err)
{
	static const char *const others[OTHERS] = {
		"id",	     "group",
		"source",    "kernel_spread_frac",
		"log_ratio", "tokens_per_s_per_gpu"
	};
	const struct ft_trait *t;
	size_t n = ft_trait_table(&t);
	struct ft_mark at = { rows->file, 1, 1 };

	for (size_t i = 0; i < n + OTHERS; i++) {
		const char *name = i < n ? t[i].name : others[i - n];
		int *column = i < n ? &c->trait[i] : &c->other[i - n];

		*column = csv_column(rows, name);
		if (*column < 0)
			return ft_fail(err, &at,
				       "lacks the column %s: run `make residuals`",
				       name);
	}
	return true;
}

/* Rows of one source follow each other: the one that the row before had is asked first. */
static size_t source_of(struct ft_evidence *e, size_t before, const char *name)
{
	if (before < e->n_sources && !strcmp(e->source[before], name))
		return before;
	for (size_t i = 0; i < e->n_sources; i++)
		if (!strcmp(e->source[i], name))
			return i;
	e->source[e->n_sources] = name;
	return e->n_sources++;
}

/* Rows that follow each other have most of their traits in common: before, or NULL. */
static bool read_traits(const struct csv *rows, size_t row, const int *columns,
			const struct ft_traits *before, struct ft_traits *out,
			struct ft_error *err)
{
	const struct ft_trait *t;
	size_t n = ft_trait_table(&t);

	for (size_t i = 0; i < n; i++) {
		int column = columns[i];
		char *at = (char *)out + t[i].at;
		const char *word = csv_text(rows, row, column);
		double number = 0;

		if (t[i].number && before &&
		    !strcmp(word, csv_text(rows, row - 1, column)))
			memcpy(&number, (const char *)before + t[i].at, sizeof(number));
		else if (t[i].number && !csv_number(rows, row, column, 0, &number, err))
			return false;
		if (t[i].number && number <= 0) {
			struct ft_mark mark = csv_mark(rows, row, column);

			return ft_fail(err, &mark, "%s should be above 0", t[i].name);
		}
		if (t[i].number)
			memcpy(at, &number, sizeof(number));
		else
			memcpy(at, &word, sizeof(word));
	}
	return true;
}

static bool read_runs(const char *path, struct ft_evidence *e, struct ft_error *err)
{
	struct csv *rows = csv_read_file(&e->mem, path, err);
	struct columns c;

	if (!rows || !find_columns(rows, &c, err))
		return false;
	e->n = rows->n_rows;
	e->run = ARENA_ARRAY(&e->mem, e->n + 1, struct run);
	e->source = ARENA_ARRAY(&e->mem, e->n + 1, const char *);
	for (size_t i = 0; i < e->n; i++) {
		struct run *r = &e->run[i];

		r->id = csv_text(rows, i, c.other[ID]);
		r->group = csv_text(rows, i, c.other[GROUP]);
		r->source = source_of(e, i ? r[-1].source : 0,
				      csv_text(rows, i, c.other[SOURCE]));
		if (!read_traits(rows, i, c.trait, i ? &r[-1].traits : NULL, &r->traits,
				 err) ||
		    !csv_number(rows, i, c.other[SPREAD], 0,
				&r->traits.kernel_spread_frac, err) ||
		    !csv_number(rows, i, c.other[RATIO], 0, &r->log_ratio, err) ||
		    !csv_number(rows, i, c.other[RATE], 0, &r->tokens_per_s_per_gpu,
				err))
			return false;
	}
	return true;
}

static bool read_all(struct ft_evidence *e, struct ft_error *err)
{
	const char *path = file_find(&e->mem, "study", "ranges", NULL, err);
	struct node *node = path ? node_read_file(&e->mem, path, err) : NULL;
	struct reader r = reader_open(node, err);
	const struct node *distances;
	const char *runs;

	if (!node)
		return false;
	read_provenance(&r, &e->mem);
	runs = read_text(&r, "runs", "");
	distances = read_need(&r, "distance");
	e->widening = read_quantity(&r, "widening", DIM_NONE, 0);
	e->missing_sources = read_quantity(&r, "missing_sources", DIM_NONE, 0);
	if (!r.from)
		reader_fail(&r, NULL, "lacks provenance: {kind, source, date}");
	return reader_close(&r) && read_distances(distances, e, err) &&
	       read_runs(file_beside(&e->mem, path, runs), e, err);
}

struct ft_evidence *evidence_load(struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct ft_evidence *e = ARENA_NEW(&mem, struct ft_evidence);

	e->mem = mem;
	if (read_all(e, err))
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
