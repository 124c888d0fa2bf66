/* study/sweep_merge.c - the tables of several sweeps into one */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "base/arena.h"
#include "study/sweep_db.h"

struct merge {
	struct arena mem;
	sqlite3 *db;
	const char *into;
	struct ft_error *err;
};

static bool fails(struct merge *m, const char *path)
{
	struct ft_mark at = { .file = path };

	return ft_fail(m->err, &at, "SQLite: %s", sqlite3_errmsg(m->db));
}

static bool exec(struct merge *m, const char *path, const char *sql)
{
	return sqlite3_exec(m->db, sql, NULL, NULL, NULL) == SQLITE_OK ||
	       fails(m, path);
}

/* Names of the columns of a sweep's file that stand for its keys and for all else. */
static bool columns(struct merge *m, const char *path, const char *schema,
		    const char ***name, size_t *n)
{
	sqlite3_stmt *q = NULL;
	size_t cap = 0;
	int step;

	*n = 0;
	*name = NULL;
	if (sqlite3_prepare_v2(m->db, "SELECT name FROM pragma_table_info('runs', ?1)",
			       -1, &q, NULL) != SQLITE_OK)
		return fails(m, path);
	sqlite3_bind_text(q, 1, schema, -1, SQLITE_STATIC);
	while ((step = sqlite3_step(q)) == SQLITE_ROW) {
		if (*n == cap)
			*name = ARENA_GROW(&m->mem, *name, &cap);
		(*name)[(*n)++] =
			arena_text(&m->mem, (const char *)sqlite3_column_text(q, 0));
	}
	sqlite3_finalize(q);
	return step == SQLITE_DONE || fails(m, path);
}

static bool in(const char *const *list, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], word))
			return true;
	return false;
}

/* The columns of `from` that the file lacks are made: keys that others did not vary. */
static bool widen(struct merge *m, const char *path, const char *const *name, size_t n)
{
	const char **have;
	size_t n_have;

	if (!columns(m, path, "main", &have, &n_have))
		return false;
	for (size_t i = 0; i < n; i++) {
		char *sql;
		bool ok;

		if (in(have, n_have, name[i]))
			continue;
		sql = sqlite3_mprintf("ALTER TABLE runs ADD COLUMN \"%w\" ANY",
				      name[i]);
		ok = sql && exec(m, path, sql);
		sqlite3_free(sql);
		if (!ok)
			return false;
	}
	return true;
}

static bool count(struct merge *m, const char *path, const char *sql, size_t *n)
{
	sqlite3_stmt *q = NULL;
	bool ok = sqlite3_prepare_v2(m->db, sql, -1, &q, NULL) == SQLITE_OK &&
		  sqlite3_step(q) == SQLITE_ROW;

	if (ok)
		*n = (size_t)sqlite3_column_int64(q, 0);
	else
		fails(m, path);
	sqlite3_finalize(q);
	return ok;
}

/* INSERT of all rows, the columns by name; of those that are there what is missing. */
static bool take_rows(struct merge *m, const char *path, const char *const *name,
		      size_t n)
{
	sqlite3_str *list = sqlite3_str_new(NULL), *both = sqlite3_str_new(NULL);
	char *names, *kept, *sql;
	bool ok;

	for (size_t i = 0; i < n; i++) {
		sqlite3_str_appendf(list, "%s\"%w\"", i ? ", " : "", name[i]);
		sqlite3_str_appendf(both,
				    "%s\"%w\" = coalesce(\"%w\", excluded.\"%w\")",
				    i ? ", " : "", name[i], name[i], name[i]);
	}
	names = sqlite3_str_finish(list);
	kept = sqlite3_str_finish(both);
	sql = sqlite3_mprintf(
		"INSERT INTO main.runs (%s) SELECT %s FROM part.runs WHERE "
		"true ON CONFLICT (key) DO UPDATE SET %s",
		names, names, kept);
	ok = names && kept && sql && exec(m, path, sql);
	sqlite3_free(names);
	sqlite3_free(kept);
	sqlite3_free(sql);
	return ok;
}

static bool merge_one(struct merge *m, const char *path, struct ft_merge_result *r)
{
	const char **name;
	size_t n, before, after, rows;
	bool ok =
		columns(m, path, "part", &name, &n) && exec(m, path, "BEGIN IMMEDIATE");

	if (!ok)
		return false;
	ok = widen(m, path, name, n) &&
	     count(m, path, "SELECT count(*) FROM main.runs", &before) &&
	     count(m, path, "SELECT count(*) FROM part.runs", &rows) &&
	     take_rows(m, path, name, n) &&
	     count(m, path, "SELECT count(*) FROM main.runs", &after) &&
	     exec(m, path, "COMMIT");
	if (!ok) {
		sqlite3_exec(m->db, "ROLLBACK", NULL, NULL, NULL);
		return false;
	}
	r->files++;
	r->rows += after - before;
	r->already += rows - (after - before);
	return true;
}

/* Does the file exist, and does it hold an undamaged sweep? */
static bool readable(const char *path, struct ft_error *err)
{
	struct ft_mark at = { .file = path };
	struct stat st;

	if (stat(path, &st))
		return ft_fail(err, &at, "cannot be read: %s", strerror(errno));
	if (!st.st_size)
		return ft_fail(err, &at, "is empty: no sweep has written it");
	return sweep_db_readable(path, err);
}

/* Refuses to merge a file into itself: it would wait for its own lock. */
static bool apart(const char *into, const char *from, struct ft_error *err)
{
	struct ft_mark at = { .file = from };
	struct stat a, b;

	if (stat(into, &a) || stat(from, &b) || a.st_dev != b.st_dev ||
	    a.st_ino != b.st_ino)
		return true;
	return ft_fail(err, &at, "is the file that the others are put into");
}

static bool merge_file(struct merge *m, const char *path, struct ft_merge_result *r)
{
	sqlite3_stmt *q = NULL;
	bool ok;

	ok = sqlite3_prepare_v2(m->db, "ATTACH ?1 AS part", -1, &q, NULL) == SQLITE_OK;
	if (ok) {
		sqlite3_bind_text(q, 1, path, -1, SQLITE_STATIC);
		ok = sqlite3_step(q) == SQLITE_DONE;
	}
	sqlite3_finalize(q);
	if (!ok)
		return fails(m, path);
	ok = merge_one(m, path, r);
	return exec(m, path, "DETACH part") && ok;
}

bool ft_study_merge(const char *into, const char *const *from, size_t n,
		    struct ft_merge_result *r, struct ft_error *err)
{
	struct merge m = { .into = into, .err = err };
	struct sweep_db *made = NULL;
	bool ok = true;

	*r = (struct ft_merge_result){ 0 };
	for (size_t i = 0; ok && i < n; i++) /* before anything is made */
		ok = apart(into, from[i], err) && readable(from[i], err);
	if (ok)
		ok = (made = sweep_db_open(into, "", NULL, 0, err)) != NULL;
	sweep_db_close(made);
	if (ok &&
	    sqlite3_open_v2(into, &m.db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		ok = fails(&m, into);
	if (ok)
		sqlite3_busy_timeout(m.db, 60000);
	for (size_t i = 0; ok && i < n; i++)
		ok = merge_file(&m, from[i], r);
	sqlite3_close(m.db);
	arena_release(&m.mem);
	return ok;
}
