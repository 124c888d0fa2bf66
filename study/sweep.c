/*
 * study/sweep.c - many scenarios on all cores into one table
 *
 * Workers take combinations in order and simulate, each with a shelf of its own. The
 * calling thread watches: it commits what has gathered once a second, tells progress,
 * and stops at SIGINT or SIGTERM when it was asked to. A run's key is the digest of all
 * that it was made from, so that a sweep goes on where it was stopped, and runs again
 * what has changed since. What a scenario or plan cannot be is kept as a row with its error; what
 * could not be read is not kept, and is tried again by the next sweep.
 *
 * Shared by ranks (study/ranks.h), rank 0 does all that and takes the results of the others,
 * which have no table.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/node.h"
#include "base/plain.h"
#include "study/crew.h"
#include "study/ranks.h"
#include "study/row_pack.h"
#include "study/shelf.h"
#include "study/sweep_db.h"
#include "study/sweep_grid.h"

static const double COMMIT_S = 1;

struct job {
	const struct ft_sweep *sweep;
	struct ft_sweep_result *result;
	const char *text; /* of the scenario, read once: it may be standard input */
	struct grid grid;
	size_t next, finished; /* combinations taken; looked at */
	pthread_mutex_t lock;  /* of all below */
	struct ranks_desk desk;
	struct sweep_db *db;
	struct sweep_row *waiting; /* to be committed, the last one first */
	struct arena rows;	   /* of them */
	double committed_s;	   /* when it last was */
	bool stop, broken;
	struct ft_error err;
};

/* The result of one combination. */
struct answer {
	const struct ft_scenario *scenario; /* NULL: it could not be loaded */
	struct sweep_row row;
	bool ok;   /* there is an outcome */
	bool kept; /* it goes into the table, as that or as an error */
	struct ft_error why;
};

/* ---- workers ------------------------------------------------------------------- */

static void fail_job(struct job *j, const struct ft_error *why)
{
	if (!j->broken)
		j->err = *why;
	j->broken = true;
}

/* Counts an error; each text is listed once. */
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
static const char **values(const struct grid *g, struct arena *mem,
			   const struct ft_scenario *s, const char *const *sets)
{
	size_t n_sets = g->sweep->n_sets + g->sweep->n_vary;
	const char **value = ARENA_ARRAY(mem, g->n_keys + 1, const char *);

	for (size_t k = 0; k < g->n_keys; k++) {
		const struct node *n = s ? node_path(s->resolved, g->key[k]) : NULL;
		size_t len = strlen(g->key[k]);

		if (n) {
			value[k] = n->kind == NODE_SCALAR ? arena_text(mem, n->text) :
							    node_flow(mem, n);
			continue;
		}
		for (size_t i = 0; i < n_sets; i++)
			if (!strncmp(sets[i], g->key[k], len) && sets[i][len] == '=')
				value[k] = arena_text(mem, sets[i] + len + 1);
	}
	return value;
}

/* Loaded and its key found; NULL: the scenario could not be loaded, as a->why says. true:
 * all its parts could be read, or it was refused before that, so that the key holds. */
static bool load(const struct job *j, struct ft_shelf *shelf, const char **sets,
		 struct answer *a)
{
	const struct scenario_text text = { j->sweep->scenario, j->text, sets,
					    j->sweep->n_sets + j->sweep->n_vary };
	struct scenario_seen seen = { 0 };

	a->scenario = scenario_load_text(shelf, &text, &seen, &a->why);
	digest_hex(&seen.digest, a->row.key);
	if (a->scenario && scenario_leaves_plan(a->scenario)) {
		ft_fail(&a->why, NULL,
			"run without training.parallel asks for the best plan, which a sweep does not search: set training.parallel, or use plan");
		ft_scenario_free((struct ft_scenario *)a->scenario);
		a->scenario = NULL;
	}
	a->kept = seen.parts_read ||
		  grid_refused(&j->grid, j->text, a->row.settings, &a->why, a->row.key);
	return a->kept;
}

/* Simulates a scenario that was loaded. All but the outcome is in mem. */
static void simulate(const struct job *j, struct arena *mem, const char **sets,
		     struct answer *a)
{
	const struct ft_scenario *s = a->scenario;

	if (s)
		a->ok = ft_study_simulate(s, NULL, NULL, &a->row.outcome, &a->why);
	a->kept = a->kept && (a->ok || !a->why.of_system);
	a->row.error = a->ok ? NULL : a->why.text;
	a->row.label = s ? s->label : NULL;
	a->row.value = values(&j->grid, mem, s, sets);
}

/* ---- this process's own --------------------------------------------------------- */

/* A row for the watching thread; the lock is held. */
static struct sweep_row *hand_over(struct job *j)
{
	struct sweep_row *r = ARENA_NEW(&j->rows, struct sweep_row);

	r->next = j->waiting;
	j->waiting = r;
	return r;
}

static void keep_text(struct job *j, const char **text)
{
	*text = *text ? arena_text(&j->rows, *text) : NULL;
}

static void keep_row(struct job *j, const struct sweep_row *row)
{
	struct sweep_row *r = hand_over(j), *next = r->next;

	*r = *row;
	r->next = next;
	keep_text(j, &r->label);
	keep_text(j, &r->settings);
	keep_text(j, &r->error);
	r->value = ARENA_ARRAY(&j->rows, j->grid.n_keys + 1, const char *);
	for (size_t k = 0; k < j->grid.n_keys; k++) {
		r->value[k] = row->value[k];
		keep_text(j, &r->value[k]);
	}
	r->outcome.run = NULL;
	r->outcome.bom = NULL;
	r->outcome.memory_svg = NULL;
}

/* The lock is held. */
static void tally(struct job *j, const struct answer *a, const char *settings)
{
	if (!a->ok)
		note_error(j->result, settings, &a->why);
	j->result->done += a->ok;
	j->result->failed += !a->ok && a->kept;
	j->result->unread += !a->kept;
	j->finished++;
}

/* Is it in the table already? Counts it when so; the lock is held. */
static bool there_already(struct job *j, const char key[33])
{
	struct ft_error why;
	int found = sweep_db_find(j->db, key, &why);

	if (found < 0)
		fail_job(j, &why);
	j->result->already += found == 1;
	j->result->already_failed += found == 2;
	j->finished += found > 0;
	return found != 0;
}

static void one(struct job *j, struct ft_shelf *shelf, struct arena *mem, size_t i)
{
	const char *sets[GRID_VARY + GRID_SETS];
	struct answer a = { .row = { .settings = NULL } };
	bool there = false;

	a.row.settings = grid_settings(&j->grid, mem, i, sets);
	if (load(j, shelf, sets, &a)) {
		pthread_mutex_lock(&j->lock);
		there = there_already(j, a.row.key);
		pthread_mutex_unlock(&j->lock);
	}
	if (!there) {
		simulate(j, mem, sets, &a);
		pthread_mutex_lock(&j->lock);
		if (a.kept)
			keep_row(j, &a.row);
		tally(j, &a, a.row.settings);
		pthread_mutex_unlock(&j->lock);
	}
	if (there && a.scenario) { /* its columns of keys that no sweep before had */
		a.row.value = values(&j->grid, mem, a.scenario, sets);
		pthread_mutex_lock(&j->lock);
		keep_row(j, &a.row);
		pthread_mutex_unlock(&j->lock);
	}
	if (a.ok)
		ft_outcome_release(&a.row.outcome);
	ft_scenario_free((struct ft_scenario *)a.scenario);
}

static bool goes_on(void *job)
{
	const struct job *j = job;

	return !j->broken && !j->stop;
}

/* The next that nobody was given; the lock is held. */
static bool next(void *job, size_t *i)
{
	struct job *j = job;
	bool got = goes_on(j) && j->next < j->grid.total;

	if (got)
		*i = j->next++;
	return got;
}

static void work(void *job, int thread)
{
	PLAIN_NUMBERS;
	struct job *j = job;
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	size_t i;

	(void)thread;
	while (ranks_next(j->sweep->ranks, &j->desk, &i)) {
		one(j, shelf, &mem, i);
		arena_release(&mem);
		ft_shelf_renew(&shelf);
	}
	ft_shelf_free(shelf);
}

/* ---- rank 0: what others find ------------------------------------------------------ */

static size_t left(void *job)
{
	const struct job *j = job;

	return j->grid.total - j->next;
}

static bool known(void *job, size_t i, const char key[RANKS_KEY])
{
	(void)i;
	return there_already(job, key);
}

static void take_result(void *job, size_t i, const char *bytes, size_t n)
{
	struct job *j = job;
	struct unpack from = { bytes, n, false };
	struct answer a = { .ok = false };
	const char *sets[GRID_VARY + GRID_SETS];

	unpack_bytes(&from, &a.ok, sizeof(a.ok));
	unpack_bytes(&from, &a.kept, sizeof(a.kept));
	if (!a.ok)
		unpack_bytes(&from, &a.why, sizeof(a.why));
	if (a.kept && !unpack_row(&from, &j->rows, &a.row, j->grid.n_keys))
		from.bad = true;
	if (from.bad) {
		ft_fail(&a.why, NULL, "another rank's result cannot be read");
		fail_job(j, &a.why);
		return;
	}
	if (a.kept) {
		struct sweep_row *r = hand_over(j), *behind = r->next;

		*r = a.row;
		r->next = behind;
	}
	tally(j, &a, grid_settings(&j->grid, &j->rows, i, sets));
}

/* ---- another rank: for rank 0 ------------------------------------------------------- */

static void one_for_rank_0(struct job *j, struct ft_shelf *shelf, struct arena *mem,
			   const struct ranks_piece *p)
{
	const char *sets[GRID_VARY + GRID_SETS];
	struct answer a = { .row = { .settings = NULL } };
	struct pack to = { NULL, 0, 0 };
	bool read;

	a.row.settings = grid_settings(&j->grid, mem, p->item, sets);
	read = load(j, shelf, sets, &a);
	if (p->round == RANKS_ROUND_KEYS) {
		ranks_keyed(j->sweep->ranks, p->place, read ? a.row.key : "");
		ft_scenario_free((struct ft_scenario *)a.scenario);
		return;
	}
	simulate(j, mem, sets, &a);
	pack_bytes(&to, &a.ok, sizeof(a.ok));
	pack_bytes(&to, &a.kept, sizeof(a.kept));
	if (!a.ok)
		pack_bytes(&to, &a.why, sizeof(a.why));
	if (a.kept)
		pack_row(&to, &a.row, j->grid.n_keys);
	ranks_found(j->sweep->ranks, p->place, to.bytes, to.n);
	pack_release(&to);
	if (a.ok)
		ft_outcome_release(&a.row.outcome);
	ft_scenario_free((struct ft_scenario *)a.scenario);
}

static void work_for_rank_0(void *job, int thread)
{
	PLAIN_NUMBERS;
	struct job *j = job;
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	struct ranks_piece piece;

	(void)thread;
	while (ranks_take(j->sweep->ranks, &piece)) {
		one_for_rank_0(j, shelf, &mem, &piece);
		arena_release(&mem);
		ft_shelf_renew(&shelf);
	}
	ft_shelf_free(shelf);
}

static void watch_for_rank_0(void *job, bool stop, bool over)
{
	struct job *j = job;

	j->stop |= stop;
	ranks_watch(j->sweep->ranks, stop, over);
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
	ranks_tend(j->sweep->ranks, &j->desk);
	if (over || clock_now_s() - j->committed_s >= COMMIT_S) {
		commit(j);
		j->committed_s = clock_now_s();
	}
	if (over) { /* when it was stopped, others have parts of batches */
		ranks_finish(j->sweep->ranks, &j->desk);
		commit(j);
	}
	finished = j->finished;
	fresh = j->result->done + j->result->failed;
	pthread_mutex_unlock(&j->lock);
	if (j->sweep->progress.tell)
		j->sweep->progress.tell(j->sweep->progress.context, finished, fresh,
					j->grid.total);
}

static void run_all(struct job *j)
{
	struct crew crew = crew_open(j->sweep->threads, j->sweep->stop_on_signals);

	crew.brisk = ranks_shared(j->sweep->ranks);
	j->committed_s = clock_now_s();
	if (ranks_member(j->sweep->ranks))
		crew_run(&crew, work_for_rank_0, watch_for_rank_0, j);
	else
		crew_run(&crew, work, watch, j);
	crew_close(&crew);
	j->result->interrupted = j->stop && j->finished < j->grid.total;
}

/* All ranks must mean the same by a number: the same program, file and grid. */
static uint64_t identity(const struct ft_sweep *s, const struct node *root,
			 struct arena *mem)
{
	struct ft_digest d = { 0, 0 };

	digest_text(&d, ft_version_build());
	digest_text(&d, node_flow(mem, root));
	for (size_t i = 0; i < s->n_sets; i++)
		digest_text(&d, s->sets[i]);
	for (size_t i = 0; i < s->n_vary; i++)
		digest_text(&d, s->vary[i]);
	return d.low ^ d.high;
}

/* The table, which rank 0 alone has. */
static bool open_table(struct job *j, struct ft_error *err)
{
	bool empty;

	if (ranks_member(j->sweep->ranks))
		return true;
	j->db = sweep_db_open(j->sweep->db, j->sweep->scenario, j->grid.key,
			      j->grid.n_keys, err);
	if (!j->db || !sweep_db_empty(j->db, &empty, err))
		return false;
	j->desk = (struct ranks_desk){
		.context = j,
		.lock = &j->lock,
		.on = goes_on,
		.next = next,
		.left = left,
		.known = empty ? NULL : known,
		.result = take_result,
	};
	return true;
}

bool ft_study_sweep(const struct ft_sweep *sweep, struct ft_sweep_result *result,
		    struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct job j = { .sweep = sweep,
			 .result = result,
			 .lock = PTHREAD_MUTEX_INITIALIZER };
	struct arena mem = { 0 };
	const struct node *root;
	size_t length;
	bool ok;

	*result = (struct ft_sweep_result){ 0 };
	j.text = file_read(&mem, file_input(sweep->scenario), LIMIT_YAML_BYTES, &length,
			   err);
	root = j.text ? node_read_text(&mem, sweep->scenario, j.text, length, err) :
			NULL;
	ok = grid_open(&j.grid, sweep, root ? err : &j.err) && root;
	result->total = j.grid.total;
	if (ok && sweep->ranks)
		ranks_begin(sweep->ranks, identity(sweep, root, &mem));
	ok = ok && open_table(&j, err);
	if (ok) {
		run_all(&j);
		ok = !j.broken;
		if (!ok)
			*err = j.err;
	}
	sweep_db_close(j.db);
	arena_release(&j.rows);
	grid_release(&j.grid);
	arena_release(&mem);
	return ok;
}
