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

static const char columns[] =
	"cell, kind, kernel, dtype, layout, impl, pass, m, n, k, batch, heads,"
	" kv_heads, sequence_length, head_dim, bytes, gpus, from_gpu, to_gpu,"
	" causal, warm, accumulate, sustained, in_step, status, why, time_us,"
	" p10_us, p90_us, reps, relative_error, alone_us, other_us,"
	" other_alone_us, clock_mhz, power_w, temperature_c";

bool store_fail(struct ft_store *s, const char *what, struct ft_error *err)
{
	struct ft_mark at = { s->path, 0, 0 };
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

static int64_t pragma(struct ft_store *s, const char *sql)
{
	sqlite3_stmt *q;
	int64_t v = -1;

	if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK &&
	    sqlite3_step(q) == SQLITE_ROW)
		v = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	return v;
}

/* Two programs may open a new or an old store at once: the first one changes it,
 * and the second finds that it was. */
static bool change(struct ft_store *s, const char *sql, const char *what,
		   struct ft_error *err)
{
	if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ||
	    (sqlite3_errcode(s->db) == SQLITE_ERROR &&
	     pragma(s, "PRAGMA user_version") == STORE_VERSION)) {
		if (!sqlite3_get_autocommit(s->db))
			(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
		return true;
	}
	return store_fail(s, what, err);
}

static bool check_version(struct ft_store *s, struct ft_error *err)
{
	struct ft_mark at = { s->path, 0, 0 };
	/* in this order: both are written at once */
	int64_t tables = pragma(s, "SELECT count(*) FROM sqlite_schema");
	int64_t version = pragma(s, "PRAGMA user_version");

	if (version == STORE_VERSION)
		return true;
	if (tables < 0)
		return ft_fail(err, &at, "is not a measurement store");
	if (version == 1 && pragma(s, "PRAGMA application_id") == 1179927627)
		return change(s, from_version_1,
			      "is of version 1 and cannot be "
			      "brought to 2",
			      err);
	if (version == 0 && tables == 0)
		return change(s, schema, "cannot make the tables", err);
	return ft_fail(err, &at,
		       "is a store of version %lld, this foretoken reads %d; "
		       "export it as CSV with the version that wrote it and "
		       "import that",
		       (long long)version, STORE_VERSION);
}

static bool prepare(struct ft_store *s, struct ft_error *err)
{
	char sql[1024];

	snprintf(sql, sizeof(sql),
		 "INSERT OR REPLACE INTO measurement (run, %s, source, date, "
		 "fabric) "
		 "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
		 "?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, "
		 "?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, "
		 "?37, ?38, ?39, ?40, ?41)",
		 columns);
	return sqlite3_prepare_v2(s->db, sql, -1, &s->insert, NULL) == SQLITE_OK ||
	       store_fail(s, "cannot be written to", err);
}

struct ft_store *ft_store_open(const char *path, bool create, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct ft_store *s = ARENA_NEW(&mem, struct ft_store);
	struct ft_mark at = { path, 0, 0 };

	s->mem = mem;
	snprintf(s->path, sizeof(s->path), "%s", path);
	if (!create && !file_exists(path)) {
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

static void bind_text(sqlite3_stmt *q, int i, const char *text)
{
	sqlite3_bind_text(q, i, text ? text : "", -1, SQLITE_TRANSIENT);
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
		bind_text(q, i + 1, text[i]);
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
		bind_text(q, at++, words[i]);
	for (int i = 0; i < 12; i++)
		sqlite3_bind_double(q, at++, shape[i]);
	for (int i = 0; i < 5; i++)
		sqlite3_bind_int(q, at++, flags[i]);
	bind_text(q, at++, m->status);
	bind_text(q, at++, m->why);
	for (int i = 0; i < 11; i++)
		sqlite3_bind_double(q, at++, numbers[i]);
	bind_text(q, at++, m->source);
	bind_text(q, at++, m->date);
	bind_text(q, at++, m->fabric);
}

bool ft_store_add(struct ft_store *s, const struct ft_measurement *m,
		  struct ft_error *err)
{
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

/* ---- reading ------------------------------------------------------------------ */

static const char *text_at(struct ft_store *s, sqlite3_stmt *q, int i)
{
	const char *text = (const char *)sqlite3_column_text(q, i);

	return arena_text(&s->mem, text ? text : "");
}

const struct ft_probe_run *ft_store_runs(struct ft_store *s, size_t *n,
					 struct ft_error *err)
{
	struct ft_probe_run *run = NULL;
	size_t cap = 0;
	sqlite3_stmt *q;

	*n = 0;
	if (sqlite3_prepare_v2(s->db,
			       "SELECT run.id, backend, device, run.date, driver, "
			       "run.fabric, libraries, run.source, "
			       "count(measurement.id), ifnull(sum(status = "
			       "'ok'), 0), provenance FROM run LEFT "
			       "JOIN measurement ON run = run.id GROUP BY "
			       "run.id ORDER BY run.id",
			       -1, &q, NULL)) {
		store_fail(s, "cannot be read", err);
		return NULL;
	}
	run = ARENA_GROW(&s->mem, run, &cap);
	while (sqlite3_step(q) == SQLITE_ROW) {
		if (*n == cap)
			run = ARENA_GROW(&s->mem, run, &cap);
		run[(*n)++] = (struct ft_probe_run){
			.id = sqlite3_column_int64(q, 0),
			.backend = text_at(s, q, 1),
			.device = text_at(s, q, 2),
			.date = text_at(s, q, 3),
			.driver = text_at(s, q, 4),
			.fabric = text_at(s, q, 5),
			.libraries = text_at(s, q, 6),
			.source = text_at(s, q, 7),
			.n_cells = sqlite3_column_int64(q, 8),
			.n_ok = sqlite3_column_int64(q, 9),
			.provenance = text_at(s, q, 10),
		};
	}
	sqlite3_finalize(q);
	return run;
}

static struct ft_measurement read_row(struct ft_store *s, sqlite3_stmt *q)
{
	struct ft_measurement m = { 0 };
	const char **words[] = { &m.cell,   &m.kind, &m.kernel, &m.dtype,
				 &m.layout, &m.impl, &m.pass };
	double *shape[] = { &m.m,     &m.n,	   &m.k,	&m.batch,
			    &m.heads, &m.kv_heads, &m.sequence, &m.head_dim,
			    &m.bytes, &m.gpus,	   &m.from,	&m.to };
	bool *flags[] = { &m.causal, &m.warm, &m.accumulate, &m.sustained, &m.in_step };
	double *numbers[] = { &m.time_us,  &m.p10_us,	      &m.p90_us,
			      &m.reps,	   &m.relative_error, &m.alone_us,
			      &m.other_us, &m.other_alone_us, &m.clock_mhz,
			      &m.power_w,  &m.temperature_c };
	int at = 0;

	for (int i = 0; i < 7; i++)
		*words[i] = text_at(s, q, at++);
	for (int i = 0; i < 12; i++)
		*shape[i] = sqlite3_column_double(q, at++);
	for (int i = 0; i < 5; i++)
		*flags[i] = sqlite3_column_int(q, at++);
	m.status = text_at(s, q, at++);
	m.why = text_at(s, q, at++);
	for (int i = 0; i < 11; i++)
		*numbers[i] = sqlite3_column_double(q, at++);
	m.backend = text_at(s, q, at++);
	m.device = text_at(s, q, at++);
	m.date = text_at(s, q, at++);
	m.fabric = text_at(s, q, at++);
	m.source = text_at(s, q, at++);
	m.provenance = text_at(s, q, at++);
	return m;
}

const struct ft_measurement *ft_store_measurements(struct ft_store *s,
						   const char *device, int64_t run,
						   size_t *n, struct ft_error *err)
{
	struct ft_measurement *row = NULL;
	sqlite3_stmt *q;
	size_t cap = 0;
	char sql[1024];

	*n = 0;
	snprintf(sql, sizeof(sql),
		 "SELECT %s, backend, device, ifnull(nullif("
		 "measurement.date, ''), run.date), ifnull(nullif(measurement."
		 "fabric, ''), run.fabric), measurement.source, provenance FROM "
		 "measurement JOIN run ON run.id = run WHERE (?1 IS NULL OR "
		 "device = ?1) AND (?2 = 0 OR run = ?2) ORDER BY cell, run",
		 columns);
	if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK) {
		store_fail(s, "cannot be read", err);
		return NULL;
	}
	if (device)
		bind_text(q, 1, device);
	sqlite3_bind_int64(q, 2, run);
	row = ARENA_GROW(&s->mem, row, &cap);
	while (sqlite3_step(q) == SQLITE_ROW) {
		if (*n == cap)
			row = ARENA_GROW(&s->mem, row, &cap);
		row[(*n)++] = read_row(s, q);
	}
	sqlite3_finalize(q);
	return row;
}

bool measurement_is(const struct ft_measurement *m, const char *kind)
{
	return !strcmp(m->kind, kind);
}
