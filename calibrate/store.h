/* calibrate/store.h - the open store, for the files of this folder */
#ifndef CALIBRATE_STORE_H
#define CALIBRATE_STORE_H

#include <sqlite3.h>

#include "base/arena.h"
#include "foretoken/calibrate.h"

enum { STORE_VERSION = 2, STORE_BATCH = 16, STORE_ID = 1179927627 };

/* Of a measurement, in the order of their reading and writing. */
#define STORE_COLUMNS \
	"cell, kind, kernel, dtype, layout, impl, pass, m, n, k, batch, heads," \
	" kv_heads, sequence_length, head_dim, bytes, gpus, from_gpu, to_gpu," \
	" causal, warm, accumulate, sustained, in_step, status, why, time_us," \
	" p10_us, p90_us, reps, relative_error, alone_us, other_us," \
	" other_alone_us, clock_mhz, power_w, temperature_c"

struct ft_store {
	sqlite3 *db;
	sqlite3_stmt *insert;
	struct arena mem;
	char path[4096];
	int64_t run;  /* that measurements go to; 0: none */
	int in_batch; /* measurements of the open transaction */
	bool whole;   /* one transaction until `store_whole_end` */
};

/* All that is added between these is kept, or none of it. */
bool store_whole(struct ft_store *s, struct ft_error *err)
	__attribute__((warn_unused_result));
bool store_whole_end(struct ft_store *s, bool keep, struct ft_error *err)
	__attribute__((warn_unused_result));

/* The next row of a statement; *row false at its end. false: it could not be read,
 * which is not an end. */
bool store_step(struct ft_store *s, sqlite3_stmt *q, bool *row, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Is it a kind of measurement? */
bool store_kind(const char *kind);

/* May a store hold it? */
bool store_sensible(struct ft_store *s, const struct ft_measurement *m,
		    struct ft_error *err) __attribute__((warn_unused_result));

/* NULL is stored as "". */
void store_bind(sqlite3_stmt *q, int i, const char *text);

/* An error of SQLite's as ours. */
bool store_fail(struct ft_store *s, const char *what, struct ft_error *err);

/* What a measurement is predicted to take, in microseconds; 0 when the profile
 * cannot say. clock: burst unless it was sustained. */
struct ft_gpu;
double measurement_predict_us(const struct ft_gpu *gpu, const struct ft_measurement *m);
bool measurement_is(const struct ft_measurement *m, const char *kind);

/* Of a measured attention kernel, all its passes. */
double measurement_attention_flop(const struct ft_measurement *m);

#endif
