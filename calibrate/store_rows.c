/*
 * calibrate/store_rows.c - what a store holds, read whole or not at all
 *
 * A row that cannot be read, or that no import could have written, is an error of
 * the store; it is never left out.
 */
#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "base/plain.h"
#include "calibrate/store.h"

bool store_kind(const char *kind)
{
	static const char *const kinds[] = { "gemm",	   "attention", "memory",
					     "collective", "transfer",	"beside",
					     "launch",	   "trace" };

	for (size_t i = 0; kind && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i], kind))
			return true;
	return false;
}

/* What a store may hold: a kind that is known, a status of letters (a short one is
 * a spoilt "ok"), numbers that are numbers. */
bool store_sensible(struct ft_store *s, const struct ft_measurement *m,
		    struct ft_error *err)
{
	const double numbers[] = { m->m,	 m->n,	      m->k,
				   m->batch,	 m->heads,    m->kv_heads,
				   m->sequence,	 m->head_dim, m->bytes,
				   m->gpus,	 m->time_us,  m->p10_us,
				   m->p90_us,	 m->reps,     m->relative_error,
				   m->alone_us,	 m->other_us, m->other_alone_us,
				   m->clock_mhz, m->power_w,  m->temperature_c,
				   m->from,	 m->to };
	enum { SHAPES = 11 }; /* of the numbers: shapes and the time, not below 0 */
	struct ft_mark at = { .file = s->path };
	const char *status = m->status ? m->status : "";

	if (!store_kind(m->kind))
		return ft_fail(err, &at,
			       "a measurement is of kind '%.20s', which is not one of "
			       "gemm, attention, memory, collective, transfer, "
			       "beside, launch, trace",
			       m->kind ? m->kind : "");
	if (strcmp(status, "ok") && strlen(status) < 3)
		return ft_fail(err, &at,
			       "a measurement's status is '%.20s'; it is ok or a "
			       "word of three letters or more",
			       status);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!isfinite(numbers[i]) || fabs(numbers[i]) > 1e18 ||
		    (i < SHAPES && numbers[i] < 0))
			return ft_fail(err, &at,
				       "the measurement '%.60s' holds a value that "
				       "is not a number, or is out of range",
				       m->cell ? m->cell : "");
	return true;
}

/* ---- reading ------------------------------------------------------------------ */

static const char *text_at(struct ft_store *s, sqlite3_stmt *q, int i)
{
	const char *text = (const char *)sqlite3_column_text(q, i);

	if (!text && sqlite3_column_type(q, i) != SQLITE_NULL)
		out_of_memory();
	return arena_text(&s->mem, text ? text : "");
}

const struct ft_probe_run *ft_store_runs(struct ft_store *s, size_t *n,
					 struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct ft_probe_run *run = NULL;
	bool ok, more;
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
	for (;;) {
		ok = store_step(s, q, &more, err);
		if (!ok || !more)
			break;
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
	return ok ? run : NULL;
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

static bool has_run(struct ft_store *s, int64_t run, struct ft_error *err)
{
	struct ft_mark at = { .file = s->path };
	const struct ft_probe_run *r;
	size_t n;

	r = ft_store_runs(s, &n, err);
	for (size_t i = 0; r && i < n; i++)
		if (r[i].id == run)
			return true;
	return r && ft_fail(err, &at,
			    "there is no run %lld; `foretoken calibrate runs` lists "
			    "them",
			    (long long)run);
}

static bool room_for_one(struct ft_store *s, size_t n, struct ft_error *err)
{
	struct ft_mark at = { .file = s->path };

	return n < LIMIT_STORE_ROWS ||
	       ft_fail(err, &at,
		       "holds too many measurements: more than %d; choose with "
		       "--device or --run",
		       (int)LIMIT_STORE_ROWS);
}

const struct ft_measurement *ft_store_measurements(struct ft_store *s,
						   const char *device, int64_t run,
						   size_t *n, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct ft_measurement *row = NULL;
	bool ok, more;
	sqlite3_stmt *q;
	size_t cap = 0;
	static const char sql[] =
		"SELECT " STORE_COLUMNS ", backend, device, ifnull(nullif("
		"measurement.date, ''), run.date), ifnull(nullif(measurement."
		"fabric, ''), run.fabric), measurement.source, provenance FROM "
		"measurement JOIN run ON run.id = run WHERE (?1 IS NULL OR "
		"device = ?1) AND (?2 = 0 OR run = ?2) ORDER BY cell, run";

	*n = 0;
	if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK) {
		store_fail(s, "cannot be read", err);
		return NULL;
	}
	if (device)
		store_bind(q, 1, device);
	sqlite3_bind_int64(q, 2, run);
	row = ARENA_GROW(&s->mem, row, &cap);
	for (;;) {
		ok = store_step(s, q, &more, err);
		if (!ok || !more)
			break;
		if (*n == cap)
			row = ARENA_GROW(&s->mem, row, &cap);
		ok = room_for_one(s, *n, err);
		if (!ok)
			break;
		row[*n] = read_row(s, q);
		ok = store_sensible(s, &row[(*n)++], err);
		if (!ok)
			break;
	}
	sqlite3_finalize(q);
	if (ok && run && !*n)
		ok = has_run(s, run, err);
	return ok ? row : NULL;
}

bool measurement_is(const struct ft_measurement *m, const char *kind)
{
	return !strcmp(m->kind, kind);
}
