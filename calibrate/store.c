/*
 * calibrate/store.c - the measurement store: two STRICT tables of SQLite
 *
 * Measurements are only ever added. A batch is one transaction, so a killed run
 * loses at most the batch that was open; the file itself stays sound (journal).
 * An import is one transaction as a whole.
 *
 * Version 2 knows whose numbers they are (provenance of a run; source and date of
 * a row) and which were taken inside a training step. A store of version 1 is
 * brought up to it when it is opened: all in it was measured by a probe or
 * imported as such.
 */
#include "calibrate/store.h"

#include <string.h>

#include "base/file.h"
#include "base/plain.h"

static const char schema[] =
	"BEGIN IMMEDIATE;"
	"CREATE TABLE IF NOT EXISTS run (id INTEGER PRIMARY KEY, backend TEXT NOT NULL,"
	" device TEXT NOT NULL, date TEXT NOT NULL, driver TEXT NOT NULL,"
	" fabric TEXT NOT NULL, libraries TEXT NOT NULL, source TEXT NOT NULL,"
	" provenance TEXT NOT NULL) STRICT;"
	"CREATE TABLE IF NOT EXISTS measurement (id INTEGER PRIMARY KEY,"
	" run INTEGER NOT NULL REFERENCES run, cell TEXT NOT NULL,"
	" kind TEXT NOT NULL, kernel TEXT NOT NULL, dtype TEXT NOT NULL,"
	" layout TEXT NOT NULL, impl TEXT NOT NULL, pass TEXT NOT NULL,"
	" m REAL NOT NULL, n REAL NOT NULL, k REAL NOT NULL,"
	" batch REAL NOT NULL, heads REAL NOT NULL, kv_heads REAL NOT NULL,"
	" sequence_length REAL NOT NULL, head_dim REAL NOT NULL,"
	" bytes REAL NOT NULL, gpus REAL NOT NULL,"
	" from_gpu REAL NOT NULL, to_gpu REAL NOT NULL,"
	" causal INTEGER NOT NULL, warm INTEGER NOT NULL,"
	" accumulate INTEGER NOT NULL, sustained INTEGER NOT NULL,"
	" status TEXT NOT NULL, why TEXT NOT NULL,"
	" time_us REAL NOT NULL, p10_us REAL NOT NULL, p90_us REAL NOT NULL,"
	" reps REAL NOT NULL, relative_error REAL NOT NULL,"
	" alone_us REAL NOT NULL, other_us REAL NOT NULL,"
	" other_alone_us REAL NOT NULL, clock_mhz REAL NOT NULL,"
	" power_w REAL NOT NULL, temperature_c REAL NOT NULL,"
	" in_step INTEGER NOT NULL, source TEXT NOT NULL, date TEXT NOT NULL,"
	" fabric TEXT NOT NULL,"
	" UNIQUE (run, cell)) STRICT;"
	"PRAGMA application_id = 1179927627;" /* FTKK */
	"PRAGMA user_version = 2;"
	"COMMIT;";

static const char from_version_1[] =
	"BEGIN IMMEDIATE;"
	"ALTER TABLE run ADD COLUMN provenance TEXT NOT NULL DEFAULT 'measured';"
	"ALTER TABLE measurement ADD COLUMN in_step INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE measurement ADD COLUMN source TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE measurement ADD COLUMN date TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE measurement ADD COLUMN fabric TEXT NOT NULL DEFAULT '';"
	"PRAGMA user_version = 2;"
	"COMMIT;";

bool store_fail(struct ft_store *s, const char *what, struct ft_error *err)
{
	struct ft_mark at = { .file = s->path };
	int code = sqlite3_errcode(s->db);
	const char *advice = "";

	if (code == SQLITE_FULL || code == SQLITE_IOERR)
		advice = s->whole ? "; free some space and run it again" :
				    "; free some space and run it again, it goes "
				    "on where it stopped";
	if (code == SQLITE_BUSY)
		advice = "; another program is writing to it";
	return ft_fail(err, &at, "%s: %s%s", what, sqlite3_errmsg(s->db), advice);
}

bool store_step(struct ft_store *s, sqlite3_stmt *q, bool *row, struct ft_error *err)
{
	int code = sqlite3_step(q);

	*row = code == SQLITE_ROW;
	return *row || code == SQLITE_DONE || store_fail(s, "cannot be read", err);
}

/* The one number that a statement answers with. */
static bool ask(struct ft_store *s, const char *sql, int64_t *v, struct ft_error *err)
{
	sqlite3_stmt *q = NULL;
	bool ok = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK, row;

	*v = -1;
	if (!ok)
		store_fail(s, "cannot be read", err);
	ok = ok && store_step(s, q, &row, err);
	if (ok && row)
		*v = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	return ok;
}

/* The file's trees, its index against its table, the types of all values, and that
 * each measurement has its run: what is damaged is refused, never read as less. */
static bool check_sound(struct ft_store *s, struct ft_error *err)
{
	static const char *const checks[] = { "PRAGMA integrity_check(1)",
					      "PRAGMA foreign_key_check" };
	struct ft_mark at = { .file = s->path };

	for (int i = 0; i < 2; i++) {
		sqlite3_stmt *q = NULL;
		bool ok, row, sound;
		const char *says;

		ok = sqlite3_prepare_v2(s->db, checks[i], -1, &q, NULL) == SQLITE_OK ||
		     store_fail(s, "cannot be read", err);
		ok = ok && store_step(s, q, &row, err);
		says = ok && row ? (const char *)sqlite3_column_text(q, 0) : NULL;
		sound = ok && (i ? !row : says && !strcmp(says, "ok"));
		if (ok && !sound)
			ft_fail(err, &at,
				"is damaged (%.120s); take the copy you kept, or "
				"import what it was made from again",
				i    ? "a measurement without its run" :
				says ? says :
				       "out of memory");
		sqlite3_finalize(q);
		if (!sound)
			return false;
	}
	return true;
}

/* Two programs may open a new or an old store at once: the first one changes it,
 * and the second finds that it was. */
static bool change(struct ft_store *s, const char *sql, const char *what,
		   struct ft_error *err)
{
	struct ft_error ignored;
	int64_t version;

	if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ||
	    (sqlite3_errcode(s->db) == SQLITE_ERROR &&
	     ask(s, "PRAGMA user_version", &version, &ignored) &&
	     version == STORE_VERSION)) {
		if (!sqlite3_get_autocommit(s->db))
			(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
		return true;
	}
	return store_fail(s, what, err);
}

static bool check_version(struct ft_store *s, struct ft_error *err)
{
	struct ft_mark at = { .file = s->path };
	int64_t tables, version, id;

	/* in this order: they are written at once */
	if (!ask(s, "SELECT count(*) FROM sqlite_schema", &tables, err) ||
	    !ask(s, "PRAGMA user_version", &version, err) ||
	    !ask(s, "PRAGMA application_id", &id, err) || !check_sound(s, err))
		return false;
	if (version <= STORE_VERSION && (version || tables) && id != STORE_ID)
		return ft_fail(err, &at,
			       "is a database of another program, not a "
			       "measurement store");
	if (version == STORE_VERSION)
		return true;
	if (version == 1)
		return change(s, from_version_1,
			      "is of version 1 and cannot be "
			      "brought to 2",
			      err);
	if (version == 0 && tables == 0)
		return change(s, schema, "cannot make the tables", err);
	return ft_fail(err, &at,
		       "is %sa store of version %lld, this foretoken reads %d; "
		       "export it as CSV with the version that wrote it and "
		       "import that",
		       id == STORE_ID ? "" : "a database of another program, or ",
		       (long long)version, STORE_VERSION);
}

static bool prepare(struct ft_store *s, struct ft_error *err)
{
	static const char sql[] =
		"INSERT OR REPLACE INTO measurement (run, " STORE_COLUMNS ", source, "
		"date, fabric) "
		"VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
		"?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, "
		"?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, "
		"?37, ?38, ?39, ?40, ?41)";

	return sqlite3_prepare_v2(s->db, sql, -1, &s->insert, NULL) == SQLITE_OK ||
	       store_fail(s, "cannot be written to", err);
}

struct ft_store *ft_store_open(const char *path, bool create, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct ft_store *s = ARENA_NEW(&mem, struct ft_store);
	struct ft_mark at = { .file = path };

	s->mem = mem;
	snprintf(s->path, sizeof(s->path), "%s", path);
	if (strlen(path) >= sizeof(s->path)) {
		ft_fail(err, NULL, "the store's path is too long");
	} else if (!create && !file_exists(path)) {
		ft_fail(err, &at,
			"there is no such store; `foretoken calibrate "
			"probe` or `import` makes one");
	} else if (sqlite3_open_v2(path, &s->db,
				   SQLITE_OPEN_READWRITE |
					   (create ? SQLITE_OPEN_CREATE : 0),
				   NULL) != SQLITE_OK) {
		store_fail(s, "cannot be opened", err);
	} else {
		sqlite3_busy_timeout(s->db, 5000);
		sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		if (check_version(s, err) && prepare(s, err))
			return s;
	}
	ft_store_close(s);
	return NULL;
}

void ft_store_close(struct ft_store *s)
{
	struct arena mem;

	if (!s)
		return;
	sqlite3_finalize(s->insert);
	sqlite3_close(s->db);
	mem = s->mem;
	arena_release(&mem);
}

/* ---- writing ----------------------------------------------------------------- */

void store_bind(sqlite3_stmt *q, int i, const char *text)
{
	if (sqlite3_bind_text(q, i, text ? text : "", -1, SQLITE_TRANSIENT) ==
	    SQLITE_NOMEM)
		out_of_memory(); /* unbound it would be stored as nothing */
}

bool ft_store_begin(struct ft_store *s, const struct ft_probe_run *run,
		    struct ft_error *err)
{
	const char *const text[] = {
		run->backend, run->device,
		run->date,    run->driver,
		run->fabric,  run->libraries,
		run->source,  run->provenance ? run->provenance : "measured"
	};
	sqlite3_stmt *q = NULL;
	bool ok;

	if (!ft_store_end(s, err))
		return false;
	ok = sqlite3_prepare_v2(s->db,
				"INSERT INTO run (backend, device, date, "
				"driver, fabric, libraries, source, provenance) "
				"VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
				-1, &q, NULL) == SQLITE_OK;
	for (int i = 0; ok && i < 8; i++)
		store_bind(q, i + 1, text[i]);
	ok = ok && sqlite3_step(q) == SQLITE_DONE;
	sqlite3_finalize(q);
	if (!ok)
		return store_fail(s, "cannot add a run", err);
	s->run = sqlite3_last_insert_rowid(s->db);
	return true;
}

bool ft_store_end(struct ft_store *s, struct ft_error *err)
{
	bool open = s->in_batch > 0;

	if (s->whole)
		return true;
	s->in_batch = 0;
	return !open || sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK ||
	       store_fail(s, "cannot keep the measurements", err);
}

bool store_whole(struct ft_store *s, struct ft_error *err)
{
	if (!ft_store_end(s, err))
		return false;
	if (sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return store_fail(s, "cannot begin an import", err);
	s->whole = true;
	return true;
}

bool store_whole_end(struct ft_store *s, bool keep, struct ft_error *err)
{
	bool ok = keep && sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;

	if (keep && !ok)
		store_fail(s, "cannot keep the import", err);
	s->whole = false;
	s->in_batch = 0;
	if (ok)
		return true;
	/* SQLite may have rolled back by itself: a full disk */
	(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	s->run = 0;
	return false;
}

static void bind_all(sqlite3_stmt *q, int64_t run, const struct ft_measurement *m)
{
	const char *const words[] = { m->cell,	 m->kind, m->kernel, m->dtype,
				      m->layout, m->impl, m->pass };
	const double shape[] = { m->m,	   m->n,	m->k,	     m->batch,
				 m->heads, m->kv_heads, m->sequence, m->head_dim,
				 m->bytes, m->gpus,	m->from,     m->to };
	const bool flags[] = { m->causal, m->warm, m->accumulate, m->sustained,
			       m->in_step };
	const double numbers[] = { m->time_us,	m->p10_us,	   m->p90_us,
				   m->reps,	m->relative_error, m->alone_us,
				   m->other_us, m->other_alone_us, m->clock_mhz,
				   m->power_w,	m->temperature_c };
	int at = 1;

	sqlite3_bind_int64(q, at++, run);
	for (int i = 0; i < 7; i++)
		store_bind(q, at++, words[i]);
	for (int i = 0; i < 12; i++)
		sqlite3_bind_double(q, at++, shape[i]);
	for (int i = 0; i < 5; i++)
		sqlite3_bind_int(q, at++, flags[i]);
	store_bind(q, at++, m->status);
	store_bind(q, at++, m->why);
	for (int i = 0; i < 11; i++)
		sqlite3_bind_double(q, at++, numbers[i]);
	store_bind(q, at++, m->source);
	store_bind(q, at++, m->date);
	store_bind(q, at++, m->fabric);
}

bool ft_store_add(struct ft_store *s, const struct ft_measurement *m,
		  struct ft_error *err)
{
	PLAIN_NUMBERS;
	if (!store_sensible(s, m, err))
		return false;
	if (!s->run)
		return ft_fail(err, NULL, "a measurement comes before its run");
	if (!s->whole && !s->in_batch &&
	    sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return store_fail(s, "cannot begin a batch", err);
	s->in_batch++;
	bind_all(s->insert, s->run, m);
	if (sqlite3_step(s->insert) != SQLITE_DONE) {
		store_fail(s, "cannot add a measurement", err);
		sqlite3_reset(s->insert);
		return false;
	}
	sqlite3_reset(s->insert);
	return s->whole || s->in_batch < STORE_BATCH || ft_store_end(s, err);
}
