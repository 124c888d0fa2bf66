/* tests/test_store.c - the measurement store: batches, versions, full disks */
#include "tests/published.h"
#include "tests/scratch.h"

static const char run_line[] =
	"{\"record\":\"run\",\"format\":1,\"backend\":\"fake\",\"device\":\"D\","
	"\"date\":\"2026-01-02\"}";

static void add_line(struct ft_store *s, const char *line, bool want_broken)
{
	struct ft_error err;
	bool broken;

	assert_true(ft_store_line(s, line, "test", &broken, &err));
	assert_int_equal(broken, want_broken);
}

static void what_goes_in_comes_out(void **state)
{
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	const struct ft_measurement *m;
	size_t n;

	assert_non_null(s);
	add_line(s, run_line, false);
	add_line(s,
		 "{\"record\":\"measurement\",\"cell\":\"gemm a\",\"kind\":"
		 "\"gemm\",\"dtype\":\"bf16\",\"m\":4,\"n\":5,\"k\":6,"
		 "\"status\":\"ok\",\"time_us\":1.5}",
		 false);
	add_line(s, "{\"record\":\"measurement\",\"cell\":\"gem", true);
	assert_true(ft_store_end(s, &err));
	ft_store_close(s);
	s = ft_store_open(x->path, false, &err);
	m = ft_store_measurements(s, "D", 0, &n, &err);
	assert_non_null(m);
	assert_int_equal(n, 1);
	assert_string_equal(m->cell, "gemm a");
	assert_true(m->time_us == 1.5 && m->n == 5 && m->power_w < 0);
	assert_string_equal(m->date, "2026-01-02");
	ft_store_close(s);
}

/* What was measured has a time, a size, and numbers that are numbers. */
static void what_was_not_measured_is_refused(void **state)
{
	static const char *const wrong[][2] = {
		{ "'kind':'gemm','m':4,'n':5,'k':6", "has no time_us above 0" },
		{ "'kind':'gemm','m':4,'n':5,'k':6,'time_us':0", "has no time_us" },
		{ "'kind':'gemm','m':4,'n':5,'k':6,'time_us':'1.5'",
		  "'time_us' of the measurement 'c' is not a number" },
		{ "'kind':'gemm','m':4,'n':0,'k':6,'time_us':1", "has no n above 0" },
		{ "'kind':'attention','heads':4,'head_dim':64,'time_us':1",
		  "has no sequence_length above 0" },
		{ "'kind':'collective','gpus':1,'bytes':9,'time_us':1",
		  "has no gpus above 1" },
		{ "'kind':'launch','time_us':2,'p10_us':3,'p90_us':1",
		  "a p10_us above its p90_us" },
		/* each would count as another word, and no truth as false */
		{ "'kind':'memory','kernel':'add','dtype':'fp64','m':8,'n':8,"
		  "'time_us':1",
		  "'dtype' of the measurement 'c' is 'fp64', which it cannot be" },
		{ "'kind':'gemm','m':8,'n':8,'k':8,'time_us':1,'layout':'wgrd'",
		  "'layout' of the measurement 'c' is 'wgrd'" },
		{ "'kind':'attention','heads':4,'head_dim':64,"
		  "'sequence_length':8,'time_us':1,'pass':'bwd'",
		  "'pass' of the measurement 'c' is 'bwd'" },
		{ "'kind':'attention','heads':4,'head_dim':64,'pass':'forward',"
		  "'sequence_length':8,'time_us':1,'causal':'True'",
		  "'causal' of the measurement 'c' is 'True'" },
		{ "'kind':'collective','kernel':'allreduce','gpus':2,'bytes':9,"
		  "'time_us':1",
		  "'kernel' of the measurement 'c' is 'allreduce'" },
	};
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	bool broken;

	add_line(s, run_line, false);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		char line[300];

		snprintf(line, sizeof(line),
			 "{'record':'measurement','cell':'c','status':'ok',%s}",
			 wrong[i][0]);
		for (char *c = line; *c; c++)
			*c = *c == '\'' ? '"' : *c;
		assert_false(ft_store_line(s, line, "test", &broken, &err));
		assert_non_null(strstr(err.text, wrong[i][1]));
	}
	assert_false(ft_store_line(s,
				   "{\"record\":\"run\",\"format\":1,"
				   "\"date\":\"22.11.2026\"}",
				   "test", &broken, &err));
	assert_non_null(strstr(err.text, "write it as 2026-11-29"));
	ft_store_close(s);
}

static void an_open_batch_is_lost_and_no_more(void **state)
{
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	char line[160];
	size_t n;

	add_line(s, run_line, false);
	for (int i = 0; i < 100; i++) { /* six batches of 16, and 4 open */
		snprintf(line, sizeof(line),
			 "{\"record\":\"measurement\","
			 "\"cell\":\"c%d\",\"kind\":\"launch\",\"status\":\"ok\","
			 "\"time_us\":1}",
			 i);
		add_line(s, line, false);
	}
	ft_store_close(s); /* never ended: as if killed */
	s = ft_store_open(x->path, false, &err);
	assert_non_null(ft_store_measurements(s, NULL, 0, &n, &err));
	assert_int_equal(n, 96);
	ft_store_close(s);
}

static void another_version_is_refused(void **state)
{
	struct scratch *x = *state;
	struct ft_error err;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(x->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "CREATE TABLE t (a); PRAGMA "
				      "user_version = 7",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	assert_null(ft_store_open(x->path, true, &err));
	assert_non_null(strstr(err.text, "version 7"));
	assert_non_null(strstr(err.text, "export it"));
}

/* What foretoken 0.1 made before rows had sources of their own. */
static void a_store_of_version_1_is_brought_up(void **state)
{
	static const char v1[] =
		"CREATE TABLE run (id INTEGER PRIMARY KEY, backend TEXT NOT NULL,"
		" device TEXT NOT NULL, date TEXT NOT NULL, driver TEXT NOT NULL,"
		" fabric TEXT NOT NULL, libraries TEXT NOT NULL, source TEXT NOT "
		"NULL) STRICT;"
		"CREATE TABLE measurement (id INTEGER PRIMARY KEY,"
		" run INTEGER NOT NULL REFERENCES run, cell TEXT NOT NULL,"
		" kind TEXT NOT NULL, kernel TEXT NOT NULL, dtype TEXT NOT NULL,"
		" layout TEXT NOT NULL, impl TEXT NOT NULL, pass TEXT NOT NULL,"
		" m REAL NOT NULL, n REAL NOT NULL, k REAL NOT NULL,"
		" batch REAL NOT NULL, heads REAL NOT NULL, kv_heads REAL NOT "
		"NULL, sequence_length REAL NOT NULL, head_dim REAL NOT NULL,"
		" bytes REAL NOT NULL, gpus REAL NOT NULL,"
		" from_gpu REAL NOT NULL, to_gpu REAL NOT NULL,"
		" causal INTEGER NOT NULL, warm INTEGER NOT NULL,"
		" accumulate INTEGER NOT NULL, sustained INTEGER NOT NULL,"
		" status TEXT NOT NULL, why TEXT NOT NULL,"
		" time_us REAL NOT NULL, p10_us REAL NOT NULL, p90_us REAL NOT "
		"NULL, reps REAL NOT NULL, relative_error REAL NOT NULL,"
		" alone_us REAL NOT NULL, other_us REAL NOT NULL,"
		" other_alone_us REAL NOT NULL, clock_mhz REAL NOT NULL,"
		" power_w REAL NOT NULL, temperature_c REAL NOT NULL,"
		" UNIQUE (run, cell)) STRICT;"
		"INSERT INTO run VALUES (1, 'cuda', 'D', '2026-01-02', '', "
		"'nvlink', '', 'a probe');"
		"INSERT INTO measurement VALUES (1, 1, 'c', 'gemm', '', 'bf16', "
		"'forward', '', '', 4, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, "
		"0, 'ok', '', 7.5, 7, 8, 9, -1, 0, 0, 0, -1, -1, -1);"
		"PRAGMA application_id = 1179927627; PRAGMA user_version = 1";
	struct scratch *x = *state;
	const struct ft_measurement *m;
	struct ft_error err;
	struct ft_store *s;
	sqlite3 *db;
	size_t n;

	assert_int_equal(sqlite3_open(x->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, v1, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	for (int again = 0; again < 2; again++) {
		s = ft_store_open(x->path, false, &err);
		assert_non_null(s);
		m = ft_store_measurements(s, NULL, 0, &n, &err);
		assert_int_equal(n, 1);
		assert_true(m->time_us == 7.5 && m->k == 6 && m->warm && !m->in_step &&
			    m->temperature_c < 0);
		assert_string_equal(m->date, "2026-01-02");
		assert_string_equal(m->fabric, "nvlink");
		assert_string_equal(m->provenance, "measured");
		add_line(s, run_line, false);
		ft_store_close(s);
	}
}

static void another_program_s_database_is_left_alone(void **state)
{
	struct scratch *x = *state;
	struct ft_error err;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(x->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE t (a)", NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	assert_null(ft_store_open(x->path, true, &err));
	assert_non_null(strstr(err.text, "another program"));
}

/* By what it says of itself: ours, and of which version. Whoever is refused stays as it was. */
static void a_database_is_taken_by_what_it_says_of_itself(void **state)
{
	static const int versions[] = { -1, 0, 1, 2, 3, 100 };
	static const int ids[] = { 0, 1179927627, 7 };
	struct scratch *x = *state;

	for (int i = 0; i < 6 * 3 * 2; i++) {
		int version = versions[i % 6], id = ids[i / 6 % 3];
		bool tables = i >= 18, fresh = !version && !tables;
		struct arena mem = { 0 };
		struct ft_error err = { 0 };
		struct ft_store *s;
		sqlite3 *db;

		unlink(x->path);
		assert_int_equal(sqlite3_open(x->path, &db), SQLITE_OK);
		assert_int_equal(
			sqlite3_exec(db,
				     arena_printf(&mem,
						  "PRAGMA user_version=%d; PRAGMA "
						  "application_id=%d;%s",
						  version, id,
						  tables ? "CREATE TABLE t (a);" : ""),
				     NULL, NULL, NULL),
			SQLITE_OK);
		sqlite3_close(db);
		s = ft_store_open(x->path, true, &err);
		assert_int_equal(s != NULL, fresh);
		if (version > 2 || (version <= 0 && !fresh && id == ids[1]))
			assert_non_null(
				strstr(err.text,
				       arena_printf(&mem, "of version %d,", version)));
		else if (!fresh && id != ids[1])
			assert_non_null(strstr(err.text, "another program"));
		ft_store_close(s);
		arena_release(&mem);
	}
}

/* The rows of a store that may be damaged; -1 when it is refused. */
static long rows_of(const char *path)
{
	struct ft_error err = { 0 };
	struct ft_store *s = ft_store_open(path, false, &err);
	const struct ft_measurement *m = NULL;
	const struct ft_probe_run *run = NULL;
	size_t n = 0, runs = 0, ok = 0;

	if (s) {
		m = ft_store_measurements(s, NULL, 0, &n, &err);
		run = m ? ft_store_runs(s, &runs, &err) : NULL;
	}
	if (!run)
		assert_true(err.text[0]);
	for (size_t i = 0; run && i < n; i++)
		ok += !strcmp(m[i].status, "ok");
	ft_store_close(s);
	return run ? (long)ok : -1;
}

static void put_file(const char *path, const char *data, size_t n)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	fclose(f);
}

/* Bytes flipped over all of the file, and the file cut: refused, or all rows there. */
static void a_damaged_store_never_holds_fewer_rows(void **state)
{
	enum { ROWS = 200, FLIPS = 600, CUTS = 60 };
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	static char data[1 << 20];
	char line[200], other[300];
	uint64_t seed = 1;
	long refused = 0;
	size_t n;
	FILE *f;

	add_line(s, run_line, false);
	for (int i = 0; i < ROWS; i++) {
		snprintf(line, sizeof(line),
			 "{\"record\":\"measurement\",\"cell\":\"gemm %d\",\"kind\":"
			 "\"gemm\",\"dtype\":\"bf16\",\"m\":4,\"n\":5,\"k\":%d,"
			 "\"status\":\"ok\",\"time_us\":1.5}",
			 i, i + 1);
		add_line(s, line, false);
	}
	assert_true(ft_store_end(s, &err));
	ft_store_close(s);
	f = fopen(x->path, "rb");
	assert_non_null(f);
	n = fread(data, 1, sizeof(data), f);
	fclose(f);
	assert_in_range(n, 8192, sizeof(data) - 1);
	snprintf(other, sizeof(other), "%s-other", x->path);
	for (int i = 0; i < FLIPS; i++) {
		size_t at;
		char was;
		long rows;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		at = (size_t)(seed >> 33) % n;
		was = data[at];
		data[at] = (char)(was ^ (1 << (seed >> 29 & 7)));
		put_file(other, data, n);
		data[at] = was;
		rows = rows_of(other);
		refused += rows < 0;
		if (rows >= 0 && rows != ROWS)
			fail_msg("byte %zu: %ld rows", at, rows);
	}
	assert_in_range(refused, FLIPS / 20, FLIPS);
	for (int i = 1; i < CUTS; i++) {
		put_file(other, data, n * (size_t)i / CUTS);
		assert_int_equal(rows_of(other), -1);
	}
	unlink(other);
}

static void a_missing_store_says_what_makes_one(void **state)
{
	struct scratch *x = *state;
	struct ft_error err;

	assert_null(ft_store_open(x->path, false, &err));
	assert_non_null(strstr(err.text, "calibrate probe"));
}

/* As on a full disk: the import leaves nothing, and goes through when there is
 * room again; a batch of a probe that does not fit is told. */
static void a_full_disk_is_told_and_costs_one_batch(void **state)
{
	struct scratch *x = *state;
	struct ft_store *s = ft_store_open(x->path, true, &(struct ft_error){ 0 });
	struct ft_error err;
	char path[128], line[160];
	bool broken, ok = true;
	FILE *out;
	size_t n;

	snprintf(path, sizeof(path), "%s/p.csv", x->folder);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs("kernel,dtype,m,n,k,measured.time_us,source\n", out);
	for (int i = 1; i <= 2000; i++)
		fprintf(out, "gemm,bf16,%d,2,3,4,s1\n", i);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(
		sqlite3_exec(s->db, "PRAGMA max_page_count = 20", NULL, NULL, NULL),
		SQLITE_OK);
	assert_false(ft_store_import(s, FT_IMPORT_CSV, path, &published, &n, &err));
	assert_non_null(strstr(err.text, "free some space"));
	assert_non_null(ft_store_runs(s, &n, &err));
	assert_int_equal(n, 0);
	add_line(s, run_line, false);
	for (int i = 0; ok && i < 2000; i++) {
		snprintf(line, sizeof(line),
			 "{\"record\":\"measurement\","
			 "\"cell\":\"c%d\",\"kind\":\"launch\",\"status\":\"ok\","
			 "\"time_us\":1}",
			 i);
		ok = ft_store_line(s, line, "test", &broken, &err);
	}
	assert_false(ok);
	assert_non_null(strstr(err.text, "free some space"));
	ft_store_close(s);
	s = ft_store_open(x->path, false, &err);
	assert_non_null(ft_store_measurements(s, NULL, 0, &n, &err));
	assert_true(n > 0 && n % STORE_BATCH == 0);
	assert_true(ft_store_import(s, FT_IMPORT_CSV, path, &published, &n, &err));
	assert_int_equal(n, 2000);
	ft_store_close(s);
}

/* An import whose third row is none leaves nothing, no run to add to either. */
static void what_follows_a_broken_import_needs_a_run(void **state)
{
	static const char line[] =
		"{\"record\":\"measurement\",\"cell\":\"a\",\"kind\":"
		"\"launch\",\"status\":\"ok\",\"time_us\":1}";
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	char path[112];
	bool broken;
	size_t n;
	FILE *f;

	assert_non_null(s);
	snprintf(path, sizeof(path), "%s/x.csv", x->folder);
	f = fopen(path, "w");
	fputs("kernel,dtype,m,n,k,measured.time_us\ngemm,bf16,64,64,64,1\n"
	      "gemm,bf16,64,64,64,much\n",
	      f);
	fclose(f);
	add_line(s, run_line, false);
	add_line(s, line, false);
	assert_false(ft_store_import(s, FT_IMPORT_CSV, path, &published, &n, &err));
	assert_false(ft_store_line(s, line, "test", &broken, &err));
	assert_non_null(strstr(err.text, "before its run"));
	assert_non_null(ft_store_measurements(s, NULL, 0, &n, &err));
	assert_int_equal(n, 1); /* the one before the import */
	ft_store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_goes_in_comes_out),
		TEST(what_was_not_measured_is_refused),
		TEST(an_open_batch_is_lost_and_no_more),
		TEST(another_version_is_refused),
		TEST(a_store_of_version_1_is_brought_up),
		TEST(another_program_s_database_is_left_alone),
		TEST(a_database_is_taken_by_what_it_says_of_itself),
		TEST(a_damaged_store_never_holds_fewer_rows),
		TEST(a_missing_store_says_what_makes_one),
		TEST(a_full_disk_is_told_and_costs_one_batch),
		TEST(what_follows_a_broken_import_needs_a_run),
	};

	gsl_set_error_handler_off();
	return cmocka_run_group_tests_name("calibrate/store", tests, NULL, NULL);
}
