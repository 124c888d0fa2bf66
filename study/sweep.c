/*
 * study/sweep.c - many scenarios on all cores into one SQLite table
 *
 * Workers simulate, each with a shelf of its own; rows are handed to one writer
 * under a lock. A row's key is the text of its settings, so a sweep that was
 * stopped goes on where it was. Rows are committed in batches: kill -9 loses at
 * most the last batch.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"

enum { MOST_VARY = 16, MOST_VALUES = 256, BATCH = 64, SCHEMA = 1 };

static const double MOST_RUNS = 1e7;

struct axis {
	const char *key;
	const char *value[MOST_VALUES];
	size_t n;
};

struct job {
	const struct ft_sweep *sweep;
	struct arena mem;
	struct axis axis[MOST_VARY];
	size_t total, next, finished, batch;
	size_t done, skipped, failed;
	sqlite3 *db;
	sqlite3_stmt *insert, *find;
	pthread_mutex_t lock;
	bool broken;
	struct ft_error err;
};

static bool db_fail(struct job *j, struct ft_error *err)
{
	struct ft_mark at = { j->sweep->db, 0, 0 };

	return ft_fail(err, &at, "SQLite: %s",
		       j->db ? sqlite3_errmsg(j->db) : "out of memory");
}

static bool cut(struct job *j, const char *text, struct axis *a, struct ft_error *err)
{
	char *copy = arena_text(&j->mem, text), *eq = strchr(copy, '=');
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
		if (a->n == MOST_VALUES)
			return ft_fail(err, NULL, "more than %d values of %s",
				       (int)MOST_VALUES, a->key);
		a->value[a->n++] = p + 1;
	}
	return true;
}

static bool axes(struct job *j, struct ft_error *err)
{
	double total = 1;

	if (j->sweep->n_vary > MOST_VARY)
		return ft_fail(err, NULL, "at most %d keys can vary", (int)MOST_VARY);
	for (size_t i = 0; i < j->sweep->n_vary; i++) {
		if (!cut(j, j->sweep->vary[i], &j->axis[i], err))
			return false;
		total *= (double)j->axis[i].n;
	}
	if (total > MOST_RUNS)
		return ft_fail(err, NULL, "%.0f combinations are too many", total);
	j->total = (size_t)total;
	return true;
}

static bool exec(struct job *j, const char *sql, struct ft_error *err)
{
	return sqlite3_exec(j->db, sql, NULL, NULL, NULL) == SQLITE_OK ||
	       db_fail(j, err);
}

static bool check_schema(struct job *j, struct ft_error *err)
{
	sqlite3_stmt *q;
	struct ft_mark at = { j->sweep->db, 0, 0 };
	int version = -1;

	if (sqlite3_prepare_v2(j->db, "PRAGMA user_version", -1, &q, NULL))
		return db_fail(j, err);
	if (sqlite3_step(q) == SQLITE_ROW)
		version = sqlite3_column_int(q, 0);
	sqlite3_finalize(q);
	if (version < 0)
		return db_fail(j, err);
	if (version != 0 && version != SCHEMA)
		return ft_fail(err, &at,
			       "holds a sweep of version %d, this "
			       "program writes %d; take another file",
			       version, (int)SCHEMA);
	return true;
}

static bool open_db(struct job *j, struct ft_error *err)
{
	static const char *const schema =
		"PRAGMA journal_mode=WAL; PRAGMA user_version=1;"
		"CREATE TABLE IF NOT EXISTS runs (scenario TEXT NOT NULL, "
		"settings TEXT NOT NULL, error TEXT, step_s REAL, "
		"tokens_per_s REAL, tokens_per_s_per_gpu REAL, mfu REAL, "
		"fits INTEGER, memory_bytes REAL, usd_per_gpu_hour REAL, "
		"usd_per_million_tokens REAL, joules_per_token REAL, "
		"capex_usd REAL, PRIMARY KEY (scenario, settings)) STRICT;";

	if (sqlite3_open(j->sweep->db, &j->db) != SQLITE_OK)
		return db_fail(j, err);
	sqlite3_busy_timeout(j->db, 10000);
	if (!check_schema(j, err) || !exec(j, schema, err) || !exec(j, "BEGIN", err))
		return false;
	if (sqlite3_prepare_v2(j->db,
			       "INSERT INTO runs VALUES (?,?,?,?,?,?,?,?,"
			       "?,?,?,?,?)",
			       -1, &j->insert, NULL) ||
	    sqlite3_prepare_v2(j->db,
			       "SELECT 1 FROM runs WHERE scenario=? AND "
			       "settings=?",
			       -1, &j->find, NULL))
		return db_fail(j, err);
	return true;
}

/* The settings of combination i: sets[] for the scenario, text for the key. */
static const char *settings(const struct job *j, struct arena *mem, size_t i,
			    const char **sets)
{
	const char *text = "";

	for (size_t a = 0; a < j->sweep->n_sets; a++) {
		sets[a] = j->sweep->sets[a];
		text = arena_printf(mem, "%s%s ", text, sets[a]);
	}
	for (size_t a = 0; a < j->sweep->n_vary; a++) {
		const struct axis *x = &j->axis[a];
		const char *set =
			arena_printf(mem, "%s=%s", x->key, x->value[i % x->n]);

		i /= x->n;
		sets[j->sweep->n_sets + a] = set;
		text = arena_printf(mem, "%s%s%s", text, a ? " " : "", set);
	}
	return text;
}

static bool known(struct job *j, const char *text)
{
	bool there;

	sqlite3_bind_text(j->find, 1, j->sweep->scenario, -1, SQLITE_STATIC);
	sqlite3_bind_text(j->find, 2, text, -1, SQLITE_STATIC);
	there = sqlite3_step(j->find) == SQLITE_ROW;
	sqlite3_reset(j->find);
	return there;
}

static void store(struct job *j, const char *text, const struct ft_outcome *o,
		  const struct ft_error *why)
{
	sqlite3_stmt *q = j->insert;

	sqlite3_clear_bindings(q);
	sqlite3_bind_text(q, 1, j->sweep->scenario, -1, SQLITE_STATIC);
	sqlite3_bind_text(q, 2, text, -1, SQLITE_STATIC);
	if (why) {
		sqlite3_bind_text(q, 3, why->text, -1, SQLITE_STATIC);
	} else {
		const double v[] = { o->step_s, o->tokens_per_s,
				     o->tokens_per_s_per_gpu, o->mfu };
		const double w[] = { o->memory_total_bytes, o->cost.usd_per_gpu_hour,
				     o->cost.usd_per_million_tokens,
				     o->cost.joules_per_token, o->cost.capex_usd };

		for (int i = 0; i < 4; i++)
			sqlite3_bind_double(q, 4 + i, v[i]);
		sqlite3_bind_int(q, 8, o->fits);
		for (int i = 0; i < 5; i++)
			sqlite3_bind_double(q, 9 + i, w[i]);
	}
	if (sqlite3_step(q) != SQLITE_DONE && !j->broken)
		j->broken = !db_fail(j, &j->err);
	sqlite3_reset(q);
	if (++j->batch % BATCH == 0 && !j->broken)
		j->broken = !exec(j, "COMMIT; BEGIN", &j->err);
}

/* Take the next combination that is not there yet; false when none is left. */
static bool take(struct job *j, struct arena *mem, const char **sets, const char **text)
{
	bool got = false;

	pthread_mutex_lock(&j->lock);
	while (!got && !j->broken && j->next < j->total) {
		*text = settings(j, mem, j->next++, sets);
		got = !known(j, *text);
		j->skipped += !got;
		j->finished += !got;
	}
	pthread_mutex_unlock(&j->lock);
	return got;
}

static void one(struct job *j, struct ft_shelf *shelf, const char **sets,
		const char *text)
{
	size_t n = j->sweep->n_sets + j->sweep->n_vary;
	struct ft_error err;
	struct ft_outcome o;
	struct ft_scenario *s =
		ft_scenario_load(shelf, j->sweep->scenario, sets, n, true, &err);
	bool ok = s && ft_study_simulate(s, NULL, NULL, &o, &err);

	pthread_mutex_lock(&j->lock);
	store(j, text, ok ? &o : NULL, ok ? NULL : &err);
	j->done += ok;
	j->failed += !ok;
	j->finished++;
	pthread_mutex_unlock(&j->lock);
	if (ok)
		ft_outcome_release(&o);
	ft_scenario_free(s);
}

static void *worker(void *arg)
{
	struct job *j = arg;
	const char *sets[MOST_VARY + 256], *text;
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };

	while (take(j, &mem, sets, &text)) {
		one(j, shelf, sets, text);
		arena_release(&mem);
	}
	arena_release(&mem);
	ft_shelf_free(shelf);
	return NULL;
}

static void watch(struct job *j)
{
	for (;;) {
		size_t finished;

		pthread_mutex_lock(&j->lock);
		finished = j->finished;
		if (j->broken)
			finished = j->total;
		pthread_mutex_unlock(&j->lock);
		j->sweep->progress(finished, j->total);
		if (finished >= j->total)
			return;
		usleep(100000);
	}
}

static void run_all(struct job *j)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int n = j->sweep->threads > 0 ? j->sweep->threads : cores > 0 ? (int)cores : 1;
	pthread_t thread[256];
	int started = 0;

	for (; started < n && started < 256; started++)
		if (pthread_create(&thread[started], NULL, worker, j))
			break;
	if (!started)
		worker(j);
	if (j->sweep->progress)
		watch(j);
	for (int i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
}

bool ft_study_sweep(const struct ft_sweep *sweep, size_t *done, size_t *skipped,
		    size_t *failed, struct ft_error *err)
{
	struct job j = { .sweep = sweep, .lock = PTHREAD_MUTEX_INITIALIZER };
	bool ok;

	ok = node_read_file(&j.mem, sweep->scenario, err) && axes(&j, err) &&
	     open_db(&j, err);
	if (ok) {
		run_all(&j);
		ok = !j.broken && exec(&j, "COMMIT", &j.err);
		if (!ok)
			*err = j.err;
	}
	sqlite3_finalize(j.insert);
	sqlite3_finalize(j.find);
	sqlite3_close(j.db);
	arena_release(&j.mem);
	*done = j.done;
	*skipped = j.skipped;
	*failed = j.failed;
	return ok;
}
