/*
 * study/sweep_db.h - the database of a sweep: table `runs`, one row a run
 *
 * Columns: key (digest of all that the run was made from; primary key), scenario, label,
 * settings, version, error (why the plan cannot be; else null), one column for each key
 * that was varied or set, named as the key is ("training.parallel.tp"), fits, and one for
 * each number of an answer: the JSON's keys with '_' for '.', without "cost.", and _p10
 * and _p90 behind those that have a range. All in SI units, USD and tokens.
 *
 * The file carries an application id, and another program's database is refused.
 * Several sweeps may write into one file at once: rows are committed in short
 * transactions, and a key that exists stays as it is.
 */
#ifndef STUDY_SWEEP_DB_H
#define STUDY_SWEEP_DB_H

#include "foretoken/study.h"

struct arena;
struct node;
struct sweep_db;

/* A row on its way into the table. */
struct sweep_row {
	char key[33];
	const char *label, *settings, *error; /* error NULL: outcome is meant */
	const char **value; /* [n_keys] of the varied keys; NULL: none */
	struct ft_outcome outcome;
	struct sweep_row *next;
};

/* keys: those that are varied or set. A damaged file, one of another program or of
 * another version is an error. */
struct sweep_db *sweep_db_open(const char *path, const char *scenario,
			       const char *const *keys, size_t n_keys,
			       struct ft_error *err);
void sweep_db_close(struct sweep_db *db);

/* Does a file hold a sweep, whole and of this version? Nothing is made of it. */
bool sweep_db_readable(const char *path, struct ft_error *err);

/* Are there no rows? */
bool sweep_db_empty(struct sweep_db *db, bool *empty, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Is the key there? 1 yes, as an answer; 2 yes, as an error; 0 no; -1: err is filled. */
int sweep_db_find(struct sweep_db *db, const char key[33], struct ft_error *err);

/* What a search asks of a run that is there as an answer: step_s, dollars, memory and
 * fits of *o are filled. 1 yes, 0 no, -1: err is filled. */
int sweep_db_get(struct sweep_db *db, const char key[33], struct ft_outcome *o,
		 struct ft_error *err);

/* Commit a list of rows, all or none. */
bool sweep_db_write(struct sweep_db *db, const struct sweep_row *first,
		    struct ft_error *err) __attribute__((warn_unused_result));

#endif
