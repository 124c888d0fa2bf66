/*
 * tests/test_nsight.c - exports of Nsight Systems with rows that are drawn: each comes back as it was
 * written, one by one; and what is not read is told
 */
#include <math.h>

#include <sqlite3.h>

#include "recorded/recording.h"
#include "tests/lost.h"
#include "tests/scratch.h"

enum { DRAWS = 15, ROWS = 60, NS = 1000 };

static uint64_t seed = 19;

static const char schema[] =
	"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, "
	"streamId INT, correlationId INT, demangledName INT, shortName INT);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, "
	"streamId INT, correlationId INT, copyKind INT, bytes INT);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT, end INT, deviceId INT, "
	"streamId INT, correlationId INT, bytes INT);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, "
	"correlationId INT, nameId INT);"
	"CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId "
	"INT, globalTid INT);"
	"CREATE TABLE TARGET_INFO_GPU (name TEXT);";

static void run(sqlite3 *db, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void run(sqlite3 *db, const char *fmt, ...)
{
	va_list args;
	char *sql;

	va_start(args, fmt);
	sql = sqlite3_vmprintf(fmt, args);
	va_end(args);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_free(sql);
}

/* What stands in the tables, in their order. */
struct row {
	long long from, to, correlation,
		lane; /* ns; a thread, or 100 device + stream */
	const char *name;
	bool copy;
};

struct drawn {
	struct row op[3 * ROWS], call[ROWS], range[ROWS];
	size_t ops, calls, ranges, negative;
	long long first; /* of all that are read */
};

static struct row drawn_row(struct drawn *d, const char *name, long long lane)
{
	struct row r = { .from = 1700000000000000000ll + rnd_below(&seed, 2000000000),
			 .correlation = rnd_below(&seed, 1 << 30),
			 .lane = lane,
			 .name = name };

	r.to = r.from + rnd_below(&seed, 3000000) -
	       (rnd_below(&seed, 20) ? 0 : 3000001);
	d->negative += r.to < r.from;
	return r;
}

static void put_kernels(struct drawn *d, sqlite3 *db)
{
	static const char *const name[] = { "gemm_kernel<bf16>", "void rms(float*)",
					    "flash_fwd", "k" };

	for (int i = 0; i < 4; i++)
		run(db, "INSERT INTO StringIds VALUES (%d, '%s')", i + 1, name[i]);
	for (int i = 0; i < ROWS; i++) {
		int stream = 7 + rnd_below(&seed, 5), device = 0,
		    at = rnd_below(&seed, 4);
		struct row r = drawn_row(d, name[at], 100 * device + stream);

		run(db,
		    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (%lld, %lld, %d, "
		    "%d, %lld, %d, 1)",
		    r.from, r.to, device, stream, r.correlation, at + 1);
		d->op[d->ops++] = r;
	}
}

static void put_copies(struct drawn *d, sqlite3 *db)
{
	static const struct {
		int kind;
		const char *name;
	} copy[] = { { 1, "Memcpy HtoD" },  { 2, "Memcpy DtoH" }, { 8, "Memcpy DtoD" },
		     { 10, "Memcpy PtoP" }, { 4, "Memcpy" },	  { 0, "Memset" } };

	for (int fill = 0; fill < 2; fill++) /* a table behind the other */
		for (int i = 0; i < ROWS / 2; i++) {
			int at = fill ? 5 : rnd_below(&seed, 5);
			struct row r = drawn_row(d, copy[at].name, 7);

			r.copy = true;
			run(db,
			    "INSERT INTO CUPTI_ACTIVITY_KIND_%s VALUES (%lld, %lld, 0, "
			    "7, %lld, %d%s)",
			    fill ? "MEMSET" : "MEMCPY", r.from, r.to, r.correlation,
			    fill ? 64 : copy[at].kind, fill ? "" : ", 64");
			d->op[d->ops++] = r;
		}
}

/* Of calls those that launch or wait are kept, whatever version they have. */
static void put_calls(struct drawn *d, sqlite3 *db)
{
	static const struct {
		const char *name;
		bool kept;
	} call[] = { { "cudaLaunchKernel_v7000", true },
		     { "cudaMemcpyAsync_v3020", true },
		     { "cudaStreamWaitEvent_v3020", true },
		     { "cudaDeviceSynchronize_v3020", true },
		     { "cudaEventQuery_v3020", false },
		     { "cudaGetDevice_v3020", false } };

	for (int i = 0; i < 6; i++)
		run(db, "INSERT INTO StringIds VALUES (%d, '%s')", i + 10,
		    call[i].name);
	for (int i = 0; i < ROWS; i++) {
		int at = rnd_below(&seed, 6);
		size_t negative = d->negative;
		struct row r = drawn_row(d, call[at].name, 40 + rnd_below(&seed, 3));

		run(db,
		    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (%lld, %lld, %lld, "
		    "%lld, %d)",
		    r.from, r.to, r.lane, r.correlation, at + 10);
		if (call[at].kept) {
			d->call[d->calls++] = r;
			continue;
		}
		d->negative = negative;
	}
}

/* Ranges by push and pop, or start and end, that end; their text here, or by its number. */
static void put_ranges(struct drawn *d, sqlite3 *db)
{
	run(db, "INSERT INTO StringIds VALUES (30, 'by number')");
	for (int i = 0; i < ROWS; i++) {
		int type = 58 + rnd_below(&seed, 4);
		bool ends = rnd_below(&seed, 5) > 0, here = rnd_below(&seed, 2), kept;
		size_t negative = d->negative;
		struct row r = drawn_row(d, here ? "here" : "by number",
					 40 + rnd_below(&seed, 3));
		char to[32] = "NULL";

		kept = ends && (type == 59 || type == 60);
		if (ends)
			snprintf(to, sizeof(to), "%lld", r.to);
		run(db, "INSERT INTO NVTX_EVENTS VALUES (%lld, %s, %d, %s, %s, %lld)",
		    r.from, to, type, here ? "'here'" : "NULL", here ? "NULL" : "30",
		    r.lane);
		if (kept)
			d->range[d->ranges++] = r;
		else
			d->negative = negative;
	}
}

static void write_export(struct drawn *d, const char *path, bool device)
{
	sqlite3 *db;

	unlink(path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	run(db, "%s", schema);
	run(db, "BEGIN");
	put_kernels(d, db);
	put_copies(d, db);
	put_calls(d, db);
	put_ranges(d, db);
	if (device)
		run(db,
		    "INSERT INTO TARGET_INFO_GPU VALUES ('NVIDIA X1'), ('NVIDIA X1')");
	run(db, "COMMIT");
	sqlite3_close(db);
}

/* Times are from the microsecond on in which the first event begins. */
static void times_are(const struct drawn *d, const struct row *r, ft_ps start,
		      ft_ps duration)
{
	assert_true(start == (r->from - d->first + d->first % 1000) * NS);
	assert_true(duration == (r->to > r->from ? (r->to - r->from) * NS : 0));
}

static void note_first(struct drawn *d, const struct row *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!d->first || r[i].from < d->first)
			d->first = r[i].from;
}

static void rows_come_back(const struct drawn *d, const struct ft_recording *r)
{
	const struct ft_rec_counts *c = ft_recording_counts(r);

	assert_int_equal(ft_recording_ops(r), d->ops);
	assert_int_equal(ft_recording_calls(r), d->calls);
	assert_int_equal(ft_recording_annotations(r), d->ranges);
	assert_int_equal(ft_recording_spans(r), 0);
	assert_int_equal(c->events, d->ops + d->calls + d->ranges);
	assert_int_equal(c->kept, c->events);
	assert_int_equal(c->negative, d->negative);
	for (size_t i = 0; i < d->ops; i++) {
		const struct ft_rec_op *op = ft_recording_op(r, i);

		times_are(d, &d->op[i], op->start, op->duration);
		assert_int_equal(op->correlation, d->op[i].correlation);
		assert_int_equal(op->is_copy, d->op[i].copy);
		assert_string_equal(ft_recording_text(r, op->name), d->op[i].name);
		assert_int_equal(ft_recording_stream(r, op->stream),
				 d->op[i].lane % 100);
		for (size_t k = 0; k < i; k++)
			assert_int_equal(ft_recording_op(r, k)->stream == op->stream,
					 d->op[k].lane == d->op[i].lane);
	}
	for (size_t i = 0; i < d->calls; i++) {
		const struct ft_rec_call *call = ft_recording_call(r, i);

		times_are(d, &d->call[i], call->start, call->duration);
		assert_int_equal(call->correlation, d->call[i].correlation);
		assert_string_equal(ft_recording_text(r, call->name), d->call[i].name);
		for (size_t k = 0; k < i; k++)
			assert_int_equal(ft_recording_call(r, k)->thread ==
						 call->thread,
					 d->call[k].lane == d->call[i].lane);
	}
	for (size_t i = 0; i < d->ranges; i++) {
		const struct ft_rec_span *x = ft_recording_annotation(r, i);

		times_are(d, &d->range[i], x->start, x->duration);
		assert_string_equal(ft_recording_text(r, x->name), d->range[i].name);
	}
}

static void each_row_comes_back(void **state)
{
	const struct scratch *s = *state;
	size_t files = open_files();

	for (int i = 0; i < DRAWS; i++) {
		static struct drawn d;
		struct ft_recording *r;
		struct ft_error err;

		memset(&d, 0, sizeof(d));
		write_export(&d, s->path, i % 2);
		note_first(&d, d.op, d.ops);
		note_first(&d, d.call, d.calls);
		note_first(&d, d.range, d.ranges);
		r = ft_recording_read(s->path, &err);
		ok_or_say(r, err);
		assert_string_equal(ft_recording_device(r), i % 2 ? "NVIDIA X1" : "");
		rows_come_back(&d, r);
		assert_int_equal(r->origin_us, d.first / 1000);
		ft_recording_free(r);
		assert_int_equal(open_files(), files);
	}
}

/* An export with this done to it is read, or refused so. */
static void with(const char *path, const char *sql, const char *why)
{
	static struct drawn d;
	struct ft_recording *r;
	struct ft_error err = { 0 };
	sqlite3 *db;

	memset(&d, 0, sizeof(d));
	write_export(&d, path, true);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	run(db, "%s", sql);
	sqlite3_close(db);
	r = ft_recording_read(path, &err);
	if (why) {
		assert_null(r);
		assert_string_equal(err.text, why);
		assert_string_equal(err.file, path);
	} else {
		ok_or_say(r, err);
	}
	ft_recording_free(r);
}

#define FAR \
	"an event lies more than 100,000 s from the first one, or there are too many " \
	"events, streams or threads"

static void what_is_not_there_or_too_far_is_told(void **state)
{
	const struct scratch *s = *state;

	with(s->path, "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL",
	     "holds no table CUPTI_ACTIVITY_KIND_KERNEL; export a report that was "
	     "recorded with --trace=cuda");
	with(s->path, "DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY", NULL);
	with(s->path, "DROP TABLE CUPTI_ACTIVITY_KIND_MEMSET", NULL);
	with(s->path, "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME", NULL);
	with(s->path, "DROP TABLE NVTX_EVENTS", NULL);
	with(s->path, "DROP TABLE TARGET_INFO_GPU", NULL);
	with(s->path,
	     "DROP TABLE TARGET_INFO_GPU; CREATE TABLE TARGET_INFO_GPU (other INT)",
	     NULL);
	with(s->path, "ALTER TABLE NVTX_EVENTS RENAME COLUMN textId TO t",
	     "NVTX_EVENTS: no such column: textId");
	/* from the first row, whose microsecond is where time begins */
	with(s->path,
	     "UPDATE NVTX_EVENTS SET end = start, eventType = 59;"
	     "UPDATE NVTX_EVENTS SET start = (SELECT start - start % 1000 + 100000000000000 "
	     "FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1), end = start WHERE rowid = 9; "
	     "UPDATE NVTX_EVENTS SET end = start WHERE rowid = 9",
	     NULL);
	with(s->path,
	     "UPDATE NVTX_EVENTS SET eventType = 59, start = (SELECT start - start % 1000 "
	     "+ 100000000000002 FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1), end = start + "
	     "100000000000002",
	     FAR);
	with(s->path,
	     "UPDATE NVTX_EVENTS SET eventType = 59, start = (SELECT start - start % 1000 "
	     "- 100000000000002 FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1), end = start",
	     FAR);
	with(s->path, "UPDATE NVTX_EVENTS SET eventType = 59, start = -1", FAR);
	with(s->path,
	     "UPDATE NVTX_EVENTS SET eventType = 59, end = start + 100000000000002",
	     FAR);
	with(s->path,
	     "UPDATE NVTX_EVENTS SET eventType = 59, end = start + 100000000000000",
	     NULL);
}

#define GRAPHS \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, deviceId " \
	"INT, graphId INT, correlationId INT, streamId INT);"
#define A_GRAPH \
	"INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1700000000000000000, " \
	"1700000000001000000, 0, 1, 5, 7);"

/* Nsight's usual way to tell a CUDA graph: what runs in it is in no table of kernels. */
static void graphs_without_their_kernels_are_refused(void **state)
{
	const struct scratch *s = *state;

	with(s->path, GRAPHS, NULL);
	with(s->path, GRAPHS A_GRAPH,
	     "holds 1 launch of CUDA graphs without their kernels; record with nsys "
	     "profile --cuda-graph-trace=node");
	with(s->path, GRAPHS A_GRAPH A_GRAPH "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL",
	     "holds 2 launches of CUDA graphs without their kernels; record with nsys "
	     "profile --cuda-graph-trace=node");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(graphs_without_their_kernels_are_refused),
		TEST(each_row_comes_back),
		TEST(what_is_not_there_or_too_far_is_told),
	};

	return cmocka_run_group_tests_name("nsight", tests, NULL, NULL);
}
