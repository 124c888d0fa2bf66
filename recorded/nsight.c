/*
 * recorded/nsight.c - Nsight Systems' SQLite export
 *
 * Of its tables those of kernels, copies, fills, calls of the runtime, and NVTX ranges
 * are read; each may be missing but the kernels'. Times are nanoseconds. There are no
 * operators: classes come from names alone. Schema: NVIDIA Nsight Systems, "SQLite
 * Export Schema Reference". The file is opened to be read; its own triggers and views
 * are not trusted.
 */
#include <sqlite3.h>
#include <string.h>

#include "base/limits.h"
#include "recorded/recording.h"

struct nsight {
	struct ft_recording *r;
	sqlite3 *db;
	const char *path;
	int64_t base_ns;
	bool based;
};

static bool fail(const struct nsight *n, struct ft_error *err, const char *why)
{
	return ft_fail(err, &(struct ft_mark){ .file = n->path }, "%s", why);
}

static bool sql_fail(const struct nsight *n, const char *what, struct ft_error *err)
{
	return ft_fail(err, &(struct ft_mark){ .file = n->path }, "%s: %s", what,
		       sqlite3_errmsg(n->db));
}

/* Is there such a table? false: the file could not be asked. */
static bool has_table(struct nsight *n, const char *table, bool *has,
		      struct ft_error *err)
{
	sqlite3_stmt *s = NULL;
	int status = SQLITE_ERROR;

	if (sqlite3_prepare_v2(n->db,
			       "SELECT 1 FROM sqlite_master WHERE type = 'table' AND "
			       "name = ?1",
			       -1, &s, NULL) == SQLITE_OK &&
	    sqlite3_bind_text(s, 1, table, -1, SQLITE_STATIC) == SQLITE_OK)
		status = sqlite3_step(s);
	*has = status == SQLITE_ROW;
	if (status != SQLITE_ROW && status != SQLITE_DONE)
		sql_fail(n, table, err);
	sqlite3_finalize(s);
	return status == SQLITE_ROW || status == SQLITE_DONE;
}

static int64_t whole(sqlite3_stmt *s, int column)
{
	return sqlite3_column_int64(s, column);
}

static int32_t text(const struct nsight *n, sqlite3_stmt *s, int column)
{
	const char *t = (const char *)sqlite3_column_text(s, column);
	size_t len = t ? strlen(t) : 0;

	if (len > LIMIT_TRACE_TEXT_BYTES)
		len = LIMIT_TRACE_TEXT_BYTES;
	return text_number(n->r, t ? t : "", len);
}

/* Start and duration; columns 0 and 1 of every query. false: beyond the bounds. */
static bool times(struct nsight *n, sqlite3_stmt *s, ft_ps *start, ft_ps *duration)
{
	enum { NS = 1000 };
	const int64_t most = LIMIT_TRACE_SECONDS * INT64_C(1000000000);
	int64_t from = whole(s, 0), to = whole(s, 1);

	if (!n->based)
		n->base_ns = from - from % 1000;
	n->based = true;
	n->r->counts.events++;
	n->r->counts.kept++;
	if (from < 0 || from / 2 - n->base_ns / 2 > most / 2 ||
	    n->base_ns / 2 - from / 2 > most / 2)
		return false;
	if (to < from) {
		n->r->counts.negative++;
		to = from;
	}
	if (to / 2 - from / 2 > most / 2 || n->r->counts.kept > LIMIT_TRACE_EVENTS)
		return false;
	*start = (from - n->base_ns) * NS;
	*duration = (to - from) * NS;
	return true;
}

/* ---- rows --------------------------------------------------------------------------- */

typedef bool take_row(struct nsight *n, sqlite3_stmt *s);

/* start, end, device, stream, correlation, name */
static bool take_op(struct nsight *n, sqlite3_stmt *s, bool is_copy)
{
	struct ft_rec_op *op = table_add(&n->r->mem, &n->r->op);
	ft_ps start, duration;

	if (!times(n, s, &start, &duration))
		return false;
	*op = (struct ft_rec_op){
		.start = start,
		.duration = duration,
		.correlation = whole(s, 4),
		.external_id = FT_REC_NONE,
		.name = text(n, s, 5),
		.args = FT_REC_NONE,
		.call = FT_REC_NONE,
		.work = FT_REC_NONE,
		.stream = lane_number(n->r, &n->r->stream, whole(s, 2), whole(s, 3)),
		.is_copy = is_copy,
	};
	return true;
}

static bool take_kernel(struct nsight *n, sqlite3_stmt *s)
{
	return take_op(n, s, false);
}

static bool take_copy(struct nsight *n, sqlite3_stmt *s)
{
	return take_op(n, s, true);
}

/* start, end, thread, correlation, name */
static bool take_call(struct nsight *n, sqlite3_stmt *s)
{
	const char *name = (const char *)sqlite3_column_text(s, 4);
	enum ft_rec_call_kind kind =
		name ? call_kind(name, strlen(name)) : FT_REC_CALL_KINDS;
	struct ft_rec_call *call;
	ft_ps start, duration;

	if (kind == FT_REC_CALL_KINDS)
		return true;
	call = table_add(&n->r->mem, &n->r->call);
	if (!times(n, s, &start, &duration))
		return false;
	*call = (struct ft_rec_call){
		.start = start,
		.duration = duration,
		.correlation = whole(s, 3),
		.external_id = FT_REC_NONE,
		.name = text(n, s, 4),
		.waits_for = FT_REC_NONE,
		.thread = lane_number(n->r, &n->r->thread, 0, whole(s, 2)),
		.stream = FT_REC_NONE,
		.kind = (uint8_t)kind,
	};
	return true;
}

/* start, end, thread, name */
static bool take_range(struct nsight *n, sqlite3_stmt *s)
{
	struct ft_rec_span *a = table_add(&n->r->mem, &n->r->annotation);
	ft_ps start, duration;

	if (!times(n, s, &start, &duration))
		return false;
	*a = (struct ft_rec_span){
		.start = start,
		.duration = duration,
		.id = FT_REC_NONE,
		.name = text(n, s, 3),
		.args = FT_REC_NONE,
		.thread = lane_number(n->r, &n->r->thread, 0, whole(s, 2)),
	};
	return true;
}

/* ---- tables --------------------------------------------------------------------------- */

/* What each copyKind is called, so that it reads as Kineto's names do. */
#define COPY_NAME \
	"CASE copyKind WHEN 1 THEN 'Memcpy HtoD' WHEN 2 THEN 'Memcpy DtoH' " \
	"WHEN 8 THEN 'Memcpy DtoD' WHEN 10 THEN 'Memcpy PtoP' ELSE 'Memcpy' END"

static const struct {
	const char *table, *query;
	take_row *take;
} reads[] = {
	{ "CUPTI_ACTIVITY_KIND_KERNEL",
	  "SELECT start, end, deviceId, streamId, correlationId, value FROM "
	  "CUPTI_ACTIVITY_KIND_KERNEL LEFT JOIN StringIds ON id = demangledName",
	  take_kernel },
	{ "CUPTI_ACTIVITY_KIND_MEMCPY",
	  "SELECT start, end, deviceId, streamId, correlationId, " COPY_NAME
	  " FROM CUPTI_ACTIVITY_KIND_MEMCPY",
	  take_copy },
	{ "CUPTI_ACTIVITY_KIND_MEMSET",
	  "SELECT start, end, deviceId, streamId, correlationId, 'Memset' FROM "
	  "CUPTI_ACTIVITY_KIND_MEMSET",
	  take_copy },
	{ "CUPTI_ACTIVITY_KIND_RUNTIME",
	  "SELECT start, end, globalTid, correlationId, value FROM "
	  "CUPTI_ACTIVITY_KIND_RUNTIME LEFT JOIN StringIds ON id = nameId",
	  take_call },
	{ "NVTX_EVENTS", /* 59, 60: ranges, by push and pop, by start and end */
	  "SELECT start, end, globalTid, coalesce(text, value) FROM NVTX_EVENTS LEFT "
	  "JOIN StringIds ON id = textId WHERE eventType IN (59, 60) AND end IS NOT "
	  "NULL",
	  take_range },
};

static bool read_rows(struct nsight *n, size_t i, sqlite3_stmt *s, struct ft_error *err)
{
	int status = SQLITE_DONE;
	bool ok = true;

	while (ok && (status = sqlite3_step(s)) == SQLITE_ROW)
		ok = reads[i].take(n, s) && lanes_fit(n->r) ?
			     /* a text that found no room counts as none */
			     sqlite3_errcode(n->db) != SQLITE_NOMEM ||
				     sql_fail(n, reads[i].table, err) :
			     fail(n, err,
				  "an event " TOO_FAR
				  ", or there are too many events, streams or threads");
	return ok && (status == SQLITE_DONE || sql_fail(n, reads[i].table, err));
}

static bool read_table(struct nsight *n, size_t i, struct ft_error *err)
{
	sqlite3_stmt *s = NULL;
	bool has, ok;

	if (!has_table(n, reads[i].table, &has, err))
		return false;
	if (!has)
		return i || fail(n, err,
				 "holds no table CUPTI_ACTIVITY_KIND_KERNEL; export a "
				 "report that was recorded with --trace=cuda");
	ok = sqlite3_prepare_v2(n->db, reads[i].query, -1, &s, NULL) == SQLITE_OK ?
		     read_rows(n, i, s, err) :
		     sql_fail(n, reads[i].table, err);
	sqlite3_finalize(s);
	return ok;
}

/* The first row's text and number; false where memory or the file failed. What a table or column that
 * some version does not have would say is not told. */
static bool ask(struct nsight *n, const char *query, const char **name, int64_t *count,
		struct ft_error *err)
{
	sqlite3_stmt *s = NULL;
	int status = sqlite3_prepare_v2(n->db, query, -1, &s, NULL);
	const char *text = NULL;

	*name = NULL;
	*count = 0;
	if (status == SQLITE_OK)
		status = sqlite3_step(s);
	if (status == SQLITE_ROW) {
		text = (const char *)sqlite3_column_text(s, 0);
		*count = whole(s, 1);
	}
	if (text)
		*name = arena_text(&n->r->mem, text);
	if (sqlite3_errcode(n->db) == SQLITE_NOMEM)
		status = SQLITE_NOMEM;
	sqlite3_finalize(s);
	return status == SQLITE_ROW || status == SQLITE_DONE ||
	       status == SQLITE_ERROR || sql_fail(n, "the export", err);
}

/* The GPU's name, where the export has it: of a machine with several kinds, of the one that ran the kernels. */
static bool read_device(struct nsight *n, struct ft_error *err)
{
	static const char *const queries[] = {
		"SELECT min(name), count(DISTINCT name) FROM TARGET_INFO_GPU",
		"SELECT min(name), count(DISTINCT name) FROM TARGET_INFO_GPU JOIN "
		"TARGET_INFO_CUDA_DEVICE ON id = gpuId WHERE cudaId = (SELECT deviceId "
		"FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1)",
	};
	const char *name;
	int64_t count = 0;

	for (int i = 0; i < 2 && count != 1; i++) {
		if (!ask(n, queries[i], &name, &count, err))
			return false;
		if (name && count == 1)
			n->r->device = name;
	}
	return true;
}

/* Ranks of a node may each see one GPU, and all call it 0; their calls are numbered alike. */
static bool of_one_process(struct nsight *n, struct ft_error *err)
{
	const char *name;
	int64_t count;

	return ask(n,
		   "SELECT '', count(DISTINCT globalPid) FROM "
		   "CUPTI_ACTIVITY_KIND_KERNEL",
		   &name, &count, err) &&
	       (count < 2 ||
		fail(n, err,
		     "holds kernels of several processes: a recording is of one rank; "
		     "record each by itself"));
}

/* By default Nsight tells a CUDA graph as a whole: its kernels are in no table, and their time would
 * be idle. */
static bool of_kernels(struct nsight *n, struct ft_error *err)
{
	struct ft_mark at = { .file = n->path };
	const char *name;
	int64_t count;

	return ask(n, "SELECT '', count(*) FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE", &name,
		   &count, err) &&
	       (count == 0 ||
		ft_fail(err, &at,
			"holds %lld launch%s of CUDA graphs without their kernels; "
			"record with nsys profile --cuda-graph-trace=node",
			(long long)count, count == 1 ? "" : "es"));
}

bool nsight_read(struct ft_recording *r, const char *path, struct ft_error *err)
{
	struct nsight n = { .r = r, .path = path };
	bool ok = sqlite3_open_v2(path, &n.db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK;

	if (!ok)
		fail(&n, err, n.db ? sqlite3_errmsg(n.db) : "cannot be opened");
	else
		sqlite3_db_config(n.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	ok = ok && of_kernels(&n, err);
	for (size_t i = 0; ok && i < sizeof(reads) / sizeof(*reads); i++)
		ok = read_table(&n, i, err);
	ok = ok && of_one_process(&n, err) && read_device(&n, err);
	r->origin_us = n.base_ns / 1000;
	sqlite3_close(n.db);
	return ok;
}
