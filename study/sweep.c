/*
 * study/sweep.c - many scenarios on all cores into one table
 *
 * Workers take combinations in order and simulate, each with a shelf of its own. The
 * calling thread watches: it commits what has gathered once a second, tells progress,
 * and stops at SIGINT or SIGTERM when it was asked to. A run's key is the digest of all
 * that it was made from, so that a sweep goes on where it was stopped, and runs again
 * what has changed since. What a plan cannot be is kept as a row with its error; what
 * could not be read is not kept, and is tried again by the next sweep.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/digest.h"
#include "base/node.h"
#include "base/plain.h"
#include "study/crew.h"
#include "study/shelf.h"
#include "study/sweep_db.h"

enum { MOST_VARY = 16, MOST_VALUES = 256, MOST_SETS = 256 };

static const double MOST_RUNS = 1e7;
static const double COMMIT_S = 1;

struct axis {
	const char *key;
	const char *value[MOST_VALUES];
	size_t n;
};

struct job {
	const struct ft_sweep *sweep;
	struct ft_sweep_result *result;
	struct arena mem;
	struct axis axis[MOST_VARY];
	const char **key; /* [n_keys] of --set and --vary, each once */
	size_t n_keys;
	size_t next, finished; /* combinations taken; looked at */
	pthread_mutex_t lock;  /* of all below */
	struct sweep_db *db;
	struct sweep_row *waiting; /* to be committed, the last one first */
	struct arena rows;	   /* of them */
	double committed_s;	   /* when it last was */
	bool stop, broken;
	struct ft_error err;
};

/* ---- the grid ------------------------------------------------------------------ */

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

static void add_key(struct job *j, const char *key)
{
	for (size_t i = 0; i < j->n_keys; i++)
		if (!strcmp(j->key[i], key))
			return;
	j->key[j->n_keys++] = key;
}

static bool axes(struct job *j, struct ft_error *err)
{
	const struct ft_sweep *s = j->sweep;
	double total = 1;

	if (s->n_vary > MOST_VARY || s->n_sets > MOST_SETS)
		return ft_fail(err, NULL, "at most %d keys can vary, and %d be set",
			       (int)MOST_VARY, (int)MOST_SETS);
	j->key = ARENA_ARRAY(&j->mem, s->n_vary + s->n_sets + 1, const char *);
	for (size_t i = 0; i < s->n_sets; i++)
		add_key(j, arena_text_n(&j->mem, s->sets[i], strcspn(s->sets[i], "=")));
	for (size_t i = 0; i < s->n_vary; i++) {
		if (!cut(j, s->vary[i], &j->axis[i], err))
			return false;
		add_key(j, j->axis[i].key);
		total *= (double)j->axis[i].n;
	}
	if (total > MOST_RUNS)
		return ft_fail(err, NULL,
			       "%.0f combinations are too many: %.0f at most", total,
			       MOST_RUNS);
	j->result->total = (size_t)total;
	if (s->shards > 1) { /* those left for this one */
		size_t first = (size_t)s->shard - 1, every = (size_t)s->shards;

		j->result->total =
			j->result->total > first ?
				(j->result->total - first + every - 1) / every :
				0;
	}
	return true;
}

/* The settings of combination i: sets[] for the scenario, text to be read. */
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

/* ---- workers ------------------------------------------------------------------- */

static void fail_job(struct job *j, const struct ft_error *why)
{
	if (!j->broken)
		j->err = *why;
	j->broken = true;
}

/* What went wrong, each once, with how often. */
static void note_error(struct ft_sweep_result *r, const char *settings,
		       const struct ft_error *why)
{
	for (size_t i = 0; i < r->n_reasons; i++)
		if (!strcmp(r->reason[i].error.text, why->text)) {
			r->reason[i].n++;
			return;
		}
	if (r->n_reasons == FT_SWEEP_REASONS)
		return;
	r->reason[r->n_reasons] = (struct ft_sweep_reason){ .error = *why, .n = 1 };
	snprintf(r->reason[r->n_reasons].settings, sizeof(r->reason->settings), "%s",
		 settings);
	r->n_reasons++;
}

/* The values of the varied keys: as resolved, or as asked for when there is none. */
static const char **values(struct job *j, const struct ft_scenario *s,
			   const char *const *sets, size_t n_sets)
{
	const char **value = ARENA_ARRAY(&j->rows, j->n_keys + 1, const char *);

	for (size_t k = 0; k < j->n_keys; k++) {
		const struct node *n = s ? node_path(s->resolved, j->key[k]) : NULL;
		size_t len = strlen(j->key[k]);

		if (n) {
			value[k] = n->kind == NODE_SCALAR ?
					   arena_text(&j->rows, n->text) :
					   node_flow(&j->rows, n);
			continue;
		}
		for (size_t i = 0; i < n_sets; i++)
			if (!strncmp(sets[i], j->key[k], len) && sets[i][len] == '=')
				value[k] = arena_text(&j->rows, sets[i] + len + 1);
	}
	return value;
}

/* Hand a row to the watching thread; the lock is held. */
static void hand_over(struct job *j, const struct sweep_row *row,
		      const struct ft_scenario *s, const char *const *sets,
		      size_t n_sets)
{
	struct sweep_row *r = ARENA_NEW(&j->rows, struct sweep_row);

	*r = *row;
	r->label = s ? arena_text(&j->rows, s->label) : NULL;
	r->settings = arena_text(&j->rows, row->settings);
	r->error = row->error ? arena_text(&j->rows, row->error) : NULL;
	r->value = values(j, s, sets, n_sets);
	r->outcome.run = NULL;
	r->outcome.bom = NULL;
	r->next = j->waiting;
	j->waiting = r;
}

/* Is it in the table already? Counts it when so. */
static bool there_already(struct job *j, const char key[33])
{
	struct ft_error why;
	int found;

	pthread_mutex_lock(&j->lock);
	found = sweep_db_find(j->db, key, &why);
	if (found < 0)
		fail_job(j, &why);
	j->result->already += found == 1;
	j->result->already_failed += found == 2;
	j->finished += found > 0;
	pthread_mutex_unlock(&j->lock);
	return found != 0;
}

static void one(struct job *j, struct ft_shelf *shelf, const char **sets,
		const char *text)
{
	size_t n = j->sweep->n_sets + j->sweep->n_vary;
	struct scenario_seen seen = { 0 };
	struct sweep_row row = { .settings = text };
	struct ft_error why;
	struct ft_scenario *s =
		scenario_load(shelf, j->sweep->scenario, sets, n, &seen, &why);
	bool ok = false, kept;

	digest_hex(&seen.digest, row.key);
	if (seen.parts_read && there_already(j, row.key)) {
		ft_scenario_free(s);
		return;
	}
	if (s)
		ok = ft_study_simulate(s, NULL, NULL, &row.outcome, &why);
	row.error = ok ? NULL : why.text;
	kept = seen.parts_read && (ok || !why.of_system);
	pthread_mutex_lock(&j->lock);
	if (kept)
		hand_over(j, &row, s, sets, n);
	if (!ok)
		note_error(j->result, text, &why);
	j->result->done += ok;
	j->result->failed += !ok && kept;
	j->result->unread += !kept;
	j->finished++;
	pthread_mutex_unlock(&j->lock);
	if (ok)
		ft_outcome_release(&row.outcome);
	ft_scenario_free(s);
}

static bool take(struct job *j, size_t *i)
{
	bool got;

	pthread_mutex_lock(&j->lock);
	got = !j->broken && !j->stop && j->next < j->result->total;
	if (got)
		*i = j->next++;
	if (got && j->sweep->shards > 1)
		*i = *i * (size_t)j->sweep->shards + (size_t)j->sweep->shard - 1;
	pthread_mutex_unlock(&j->lock);
	return got;
}

static void work(void *job, int thread)
{
	PLAIN_NUMBERS;
	struct job *j = job;
	const char *sets[MOST_VARY + MOST_SETS];
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	size_t i;

	(void)thread;
	while (take(j, &i)) {
		one(j, shelf, sets, settings(j, &mem, i, sets));
		arena_release(&mem);
	}
	ft_shelf_free(shelf);
}

/* ---- the thread that watches ----------------------------------------------------- */

/* Commit what waits; the lock is held. */
static void commit(struct job *j)
{
	struct ft_error why;

	if (!j->broken && !sweep_db_write(j->db, j->waiting, &why))
		fail_job(j, &why);
	j->waiting = NULL;
	arena_release(&j->rows);
}

static void watch(void *context, bool stop, bool over)
{
	struct job *j = context;
	size_t finished, fresh;

	pthread_mutex_lock(&j->lock);
	j->stop |= stop;
	if (over || crew_now_s() - j->committed_s >= COMMIT_S) {
		commit(j);
		j->committed_s = crew_now_s();
	}
	finished = j->finished;
	fresh = j->result->done + j->result->failed;
	pthread_mutex_unlock(&j->lock);
	if (j->sweep->progress.tell)
		j->sweep->progress.tell(j->sweep->progress.context, finished, fresh,
					j->result->total);
}

static void run_all(struct job *j)
{
	struct crew crew = crew_open(j->sweep->threads, j->sweep->stop_on_signals);

	j->committed_s = crew_now_s();
	crew_run(&crew, work, watch, j);
	crew_close(&crew);
	j->result->interrupted = j->stop && j->finished < j->result->total;
}

bool ft_study_sweep(const struct ft_sweep *sweep, struct ft_sweep_result *result,
		    struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct job j = { .sweep = sweep,
			 .result = result,
			 .lock = PTHREAD_MUTEX_INITIALIZER };
	bool ok;

	*result = (struct ft_sweep_result){ 0 };
	ok = node_read_file(&j.mem, sweep->scenario, err) && axes(&j, err);
	if (ok) {
		j.db = sweep_db_open(sweep->db, sweep->scenario, j.key, j.n_keys, err);
		ok = j.db != NULL;
	}
	if (ok) {
		run_all(&j);
		ok = !j.broken;
		if (!ok)
			*err = j.err;
	}
	sweep_db_close(j.db);
	arena_release(&j.rows);
	arena_release(&j.mem);
	return ok;
}
