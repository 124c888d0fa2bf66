/* study/sweep_db.c - a sweep's table in SQLite: made, checked, asked, written */
#include "study/sweep_db.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/node.h"
#include "base/text.h"

enum { APPLICATION = 0x46545357, /* "FTSW" */ SCHEMA = 3, PATIENCE_MS = 60000 };

struct sweep_db {
	struct arena mem; /* statements' texts */
	sqlite3 *db;
	sqlite3_stmt *insert, *find, *get;
	const char *path, *scenario;
	size_t n_keys;
};

static bool db_fail(const struct sweep_db *d, struct ft_error *err)
{
	struct ft_mark at = { .file = d->path };

	return ft_fail(err, &at, "SQLite: %s",
		       d->db ? sqlite3_errmsg(d->db) : "out of memory");
}

static bool refuse(const struct sweep_db *d, struct ft_error *err, const char *why)
{
	struct ft_mark at = { .file = d->path };

	return ft_fail(err, &at, "%s", why);
}

static bool exec(struct sweep_db *d, const char *sql, struct ft_error *err)
{
	return sqlite3_exec(d->db, sql, NULL, NULL, NULL) == SQLITE_OK ||
	       db_fail(d, err);
}

/* The first column of the first row of a query, as a number. */
static bool ask(struct sweep_db *d, const char *sql, int *value, struct ft_error *err)
{
	sqlite3_stmt *q = NULL;
	bool ok = sqlite3_prepare_v2(d->db, sql, -1, &q, NULL) == SQLITE_OK &&
		  sqlite3_step(q) == SQLITE_ROW;

	if (ok)
		*value = sqlite3_column_int(q, 0);
	else
		db_fail(d, err);
	sqlite3_finalize(q);
	return ok;
}

static bool whole(struct sweep_db *d, struct ft_error *err)
{
	sqlite3_stmt *q = NULL;
	bool ok = sqlite3_prepare_v2(d->db, "PRAGMA quick_check(1)", -1, &q, NULL) ==
			  SQLITE_OK &&
		  sqlite3_step(q) == SQLITE_ROW;

	if (!ok)
		db_fail(d, err);
	else if (strcmp((const char *)sqlite3_column_text(q, 0), "ok"))
		ok = refuse(d, err,
			    "is damaged; take another file, or mend it with "
			    "sqlite3's .recover");
	sqlite3_finalize(q);
	return ok;
}

/* Ours, or, where it may be made, empty. */
static bool ours(struct sweep_db *d, bool may_make, struct ft_error *err)
{
	int tables, application, version;

	if (!whole(d, err) ||
	    !ask(d, "SELECT count(*) FROM sqlite_schema", &tables, err) ||
	    !ask(d, "PRAGMA application_id", &application, err) ||
	    !ask(d, "PRAGMA user_version", &version, err))
		return false;
	if (!tables && !application && !version)
		return may_make || refuse(d, err, "holds no sweep");
	if (application != APPLICATION)
		return refuse(d, err,
			      "is the database of another program, or a sweep "
			      "of foretoken before its version 2; take another "
			      "file");
	if (version != SCHEMA)
		return refuse(d, err,
			      "holds a sweep of another version of foretoken; "
			      "take another file");
	return true;
}

/* cost.goodput -> goodput, breakdown_s.host -> breakdown_s_host */
static const char *column_of(struct arena *mem, const char *key)
{
	char *name = arena_text(mem, text_begins_with(key, "cost.") ? key + 5 : key);

	for (char *p = name; *p; p++)
		if (*p == '.')
			*p = '_';
	return name;
}

/* A growing SQL text; sqlite3_str quotes. */
static const char *finished(struct arena *mem, sqlite3_str *sql)
{
	char *text = sqlite3_str_finish(sql);
	const char *kept = text ? arena_text(mem, text) : NULL;

	sqlite3_free(text);
	return kept;
}

static const char *schema(struct arena *mem)
{
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f);
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendf(
		sql,
		"PRAGMA application_id=%d; PRAGMA user_version=%d;"
		"CREATE TABLE IF NOT EXISTS runs (key TEXT NOT NULL UNIQUE, "
		"scenario TEXT NOT NULL, label TEXT, settings TEXT NOT NULL, "
		"version TEXT NOT NULL, error TEXT, fits INTEGER",
		APPLICATION, SCHEMA);
	for (size_t i = 0; i < n; i++) {
		const char *name = column_of(mem, f[i].key);

		sqlite3_str_appendf(sql, ", \"%w\" REAL", name);
		if (f[i].high)
			sqlite3_str_appendf(sql, ", \"%w_p10\" REAL, \"%w_p90\" REAL",
					    name, name);
	}
	sqlite3_str_appendf(sql, ") STRICT;");
	return finished(mem, sql);
}

static bool has_column(struct sweep_db *d, const char *name, bool *has,
		       struct ft_error *err)
{
	sqlite3_stmt *q = NULL;
	int step;

	if (sqlite3_prepare_v2(d->db,
			       "SELECT 1 FROM pragma_table_info('runs') WHERE name=?1",
			       -1, &q, NULL) != SQLITE_OK)
		return db_fail(d, err);
	sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
	step = sqlite3_step(q);
	*has = step == SQLITE_ROW;
	if (step != SQLITE_ROW && step != SQLITE_DONE)
		db_fail(d, err);
	sqlite3_finalize(q);
	return step == SQLITE_ROW || step == SQLITE_DONE;
}

static bool make_columns(struct sweep_db *d, const char *const *keys, size_t n,
			 struct ft_error *err)
{
	for (size_t i = 0; i < n; i++) {
		sqlite3_str *sql;
		bool has = false;

		if (!has_column(d, keys[i], &has, err))
			return false;
		if (has)
			continue;
		sql = sqlite3_str_new(NULL);
		sqlite3_str_appendf(sql, "ALTER TABLE runs ADD COLUMN \"%w\" ANY",
				    keys[i]);
		if (!exec(d, finished(&d->mem, sql), err))
			return false;
	}
	return true;
}

/* INSERT with the columns by name: the fixed ones, the numbers, the keys. Of a row that is there,
 * those of its keys that no sweep before had. */
static const char *insertion(struct arena *mem, const char *const *keys, size_t n_keys)
{
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f), parameters = 7;
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendf(sql, "INSERT INTO runs (key, scenario, label, "
				 "settings, version, error, fits");
	for (size_t i = 0; i < n; i++) {
		const char *name = column_of(mem, f[i].key);

		sqlite3_str_appendf(sql, ", \"%w\"", name);
		if (f[i].high)
			sqlite3_str_appendf(sql, ", \"%w_p10\", \"%w_p90\"", name,
					    name);
		parameters += f[i].high ? 3 : 1;
	}
	for (size_t i = 0; i < n_keys; i++)
		sqlite3_str_appendf(sql, ", \"%w\"", keys[i]);
	sqlite3_str_appendf(sql, ") VALUES (?");
	for (size_t i = 1; i < parameters + n_keys; i++)
		sqlite3_str_appendf(sql, ",?");
	sqlite3_str_appendf(sql, ") ON CONFLICT (key) DO ");
	for (size_t i = 0; i < n_keys; i++)
		sqlite3_str_appendf(sql, "%s\"%w\" = coalesce(\"%w\", excluded.\"%w\")",
				    i ? ", " : "UPDATE SET ", keys[i], keys[i],
				    keys[i]);
	if (!n_keys)
		sqlite3_str_appendf(sql, "NOTHING");
	return finished(mem, sql);
}

/* SQLite does not wait for others while it changes the journal: two that begin at once. */
static bool begin_journal(struct sweep_db *d, struct ft_error *err)
{
	int got = SQLITE_BUSY;

	for (int ms = 0; got == SQLITE_BUSY && ms < PATIENCE_MS; ms += 10) {
		if (ms)
			sqlite3_sleep(10);
		got = sqlite3_exec(d->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL);
	}
	return got == SQLITE_OK || db_fail(d, err);
}

static bool prepare(struct sweep_db *d, const char *const *keys, size_t n,
		    struct ft_error *err)
{
	if (!begin_journal(d, err) ||
	    !exec(d, "PRAGMA cache_size=-65536; BEGIN IMMEDIATE", err))
		return false;
	if (!exec(d, schema(&d->mem), err) || !make_columns(d, keys, n, err) ||
	    !exec(d, "COMMIT", err))
		return false;
	if (sqlite3_prepare_v2(d->db, insertion(&d->mem, keys, n), -1, &d->insert,
			       NULL) ||
	    sqlite3_prepare_v2(d->db, "SELECT error IS NULL FROM runs WHERE key=?1", -1,
			       &d->find, NULL) ||
	    sqlite3_prepare_v2(d->db,
			       "SELECT step_s, usd_per_million_tokens, "
			       "memory_bytes_per_gpu_total, fits FROM runs "
			       "WHERE key=?1 AND error IS NULL",
			       -1, &d->get, NULL))
		return db_fail(d, err);
	return true;
}

struct sweep_db *sweep_db_open(const char *path, const char *scenario,
			       const char *const *keys, size_t n_keys,
			       struct ft_error *err)
{
	struct arena mem = { 0 };
	struct sweep_db *d = ARENA_NEW(&mem, struct sweep_db);
	bool ok;

	d->mem = mem;
	d->path = arena_text(&d->mem, path);
	d->scenario = arena_text(&d->mem, scenario);
	d->n_keys = n_keys;
	if (!file_for_sqlite("--db", path, err))
		ok = false;
	else if (sqlite3_open_v2(path, &d->db,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
				 NULL) != SQLITE_OK)
		ok = db_fail(d, err);
	else {
		sqlite3_busy_timeout(d->db, PATIENCE_MS);
		ok = ours(d, true, err) && prepare(d, keys, n_keys, err);
	}
	if (ok)
		return d;
	sweep_db_close(d);
	return NULL;
}

bool sweep_db_readable(const char *path, struct ft_error *err)
{
	struct sweep_db d = { .path = path };
	bool ok = sqlite3_open_v2(path, &d.db, SQLITE_OPEN_READWRITE, NULL) ==
			  SQLITE_OK ||
		  db_fail(&d, err);

	if (ok) {
		sqlite3_busy_timeout(d.db, PATIENCE_MS);
		ok = ours(&d, false, err);
	}
	sqlite3_close(d.db);
	return ok;
}

void sweep_db_close(struct sweep_db *d)
{
	struct arena mem;

	if (!d)
		return;
	sqlite3_finalize(d->insert);
	sqlite3_finalize(d->find);
	sqlite3_finalize(d->get);
	sqlite3_close(d->db);
	mem = d->mem;
	arena_release(&mem);
}

bool sweep_db_empty(struct sweep_db *d, bool *empty, struct ft_error *err)
{
	int rows = 0;
	bool ok = ask(d, "SELECT EXISTS (SELECT 1 FROM runs)", &rows, err);

	*empty = !rows;
	return ok;
}

int sweep_db_find(struct sweep_db *d, const char key[33], struct ft_error *err)
{
	int step, found = 0;

	sqlite3_bind_text(d->find, 1, key, -1, SQLITE_TRANSIENT);
	step = sqlite3_step(d->find);
	if (step == SQLITE_ROW)
		found = sqlite3_column_int(d->find, 0) ? 1 : 2;
	else if (step != SQLITE_DONE) {
		db_fail(d, err);
		found = -1;
	}
	sqlite3_reset(d->find);
	return found;
}

int sweep_db_get(struct sweep_db *d, const char key[33], struct ft_outcome *o,
		 struct ft_error *err)
{
	int step, found = 0;

	sqlite3_bind_text(d->get, 1, key, -1, SQLITE_TRANSIENT);
	step = sqlite3_step(d->get);
	if (step == SQLITE_ROW) {
		o->step_s = sqlite3_column_double(d->get, 0);
		o->cost.usd_per_million_tokens = sqlite3_column_double(d->get, 1);
		o->memory_total_bytes = sqlite3_column_double(d->get, 2);
		o->fits = sqlite3_column_int(d->get, 3);
		found = 1;
	} else if (step != SQLITE_DONE) {
		db_fail(d, err);
		found = -1;
	}
	sqlite3_reset(d->get);
	return found;
}

/* A number as a number, so that a column can be sorted and averaged. */
static void bind_value(sqlite3_stmt *q, int at, const char *text)
{
	struct node scalar = { .kind = NODE_SCALAR, .text = text };

	if (!text)
		sqlite3_bind_null(q, at);
	else if (!node_is_number(&scalar))
		sqlite3_bind_text(q, at, text, -1, SQLITE_STATIC);
	else if (strcspn(text, ".eE") == strlen(text) && strlen(text) < 18)
		sqlite3_bind_int64(q, at, strtoll(text, NULL, 10));
	else
		sqlite3_bind_double(q, at, strtod(text, NULL));
}

static int bind_outcome(sqlite3_stmt *q, int at, const struct ft_outcome *o)
{
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f);

	for (size_t i = 0; i < n; i++) {
		if (o)
			sqlite3_bind_double(q, at, ft_outcome_at(o, f[i].value));
		at++;
		if (!f[i].high)
			continue;
		if (o) {
			sqlite3_bind_double(q, at, ft_outcome_at(o, f[i].low));
			sqlite3_bind_double(q, at + 1, ft_outcome_at(o, f[i].high));
		}
		at += 2;
	}
	return at;
}

static bool insert(struct sweep_db *d, const struct sweep_row *r, struct ft_error *err)
{
	sqlite3_stmt *q = d->insert;
	int at;
	bool ok;

	sqlite3_clear_bindings(q);
	sqlite3_bind_text(q, 1, r->key, -1, SQLITE_STATIC);
	sqlite3_bind_text(q, 2, d->scenario, -1, SQLITE_STATIC);
	sqlite3_bind_text(q, 3, r->label, -1, SQLITE_STATIC);
	sqlite3_bind_text(q, 4, r->settings, -1, SQLITE_STATIC);
	sqlite3_bind_text(q, 5, ft_version(), -1, SQLITE_STATIC);
	if (r->error)
		sqlite3_bind_text(q, 6, r->error, -1, SQLITE_STATIC);
	else
		sqlite3_bind_int(q, 7, r->outcome.fits);
	at = bind_outcome(q, 8, r->error ? NULL : &r->outcome);
	for (size_t i = 0; i < d->n_keys; i++)
		bind_value(q, at + (int)i, r->value[i]);
	ok = sqlite3_step(q) == SQLITE_DONE || db_fail(d, err);
	sqlite3_reset(q);
	return ok;
}

bool sweep_db_write(struct sweep_db *d, const struct sweep_row *first,
		    struct ft_error *err)
{
	struct ft_error ignored;
	bool ok;

	if (!first)
		return true;
	if (!exec(d, "BEGIN IMMEDIATE", err))
		return false;
	ok = true;
	for (; ok && first; first = first->next)
		ok = insert(d, first, err);
	if (ok && exec(d, "COMMIT", err))
		return true;
	(void)exec(d, "ROLLBACK", &ignored);
	return false;
}
