/* tests/test_store.c - the measurement store: batches, versions, imports */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <gsl/gsl_errno.h>
#include <sqlite3.h>

#include "calibrate/fit.h"
#include "calibrate/store.h"
#include "foretoken/calibrate.h"

struct scratch {
	char folder[64], path[96];
};

static int make_scratch(void **state)
{
	struct scratch *s = calloc(1, sizeof(*s));

	strcpy(s->folder, "/tmp/foretoken-store-XXXXXX");
	assert_non_null(mkdtemp(s->folder));
	snprintf(s->path, sizeof(s->path), "%s/x.db", s->folder);
	*state = s;
	return 0;
}

static int drop_scratch(void **state)
{
	struct scratch *s = *state;
	char command[160];

	snprintf(command, sizeof(command), "rm -rf %s", s->folder);
	assert_int_equal(system(command), 0);
	free(s);
	return 0;
}

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
	add_line(s, "{\"record\":\"measurement\",\"cell\":\"gemm a\",\"kind\":"
		    "\"gemm\",\"dtype\":\"bf16\",\"m\":4,\"n\":5,\"k\":6,"
		    "\"status\":\"ok\",\"time_us\":1.5}", false);
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

static void an_open_batch_is_lost_and_no_more(void **state)
{
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	char line[160];
	size_t n;

	add_line(s, run_line, false);
	for (int i = 0; i < 100; i++) { /* six batches of 16, and 4 open */
		snprintf(line, sizeof(line), "{\"record\":\"measurement\","
			 "\"cell\":\"c%d\",\"kind\":\"gemm\",\"status\":\"ok\","
			 "\"time_us\":1}", i);
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
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE t (a); PRAGMA "
				      "user_version = 7", NULL, NULL, NULL),
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
		assert_true(m->time_us == 7.5 && m->k == 6 && m->warm &&
			    !m->in_step && m->temperature_c < 0);
		assert_string_equal(m->date, "2026-01-02");
		assert_string_equal(m->fabric, "nvlink");
		assert_string_equal(m->provenance, "measured");
		add_line(s, run_line, false);
		ft_store_close(s);
	}
}

static void a_missing_store_says_what_makes_one(void **state)
{
	struct scratch *x = *state;
	struct ft_error err;

	assert_null(ft_store_open(x->path, false, &err));
	assert_non_null(strstr(err.text, "calibrate probe"));
}

static void write_text(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static void nccl_tests_text_is_read(void **state)
{
	struct scratch *x = *state;
	struct ft_probe_run run = { .backend = "nccl-tests", .device = "D",
				    .date = "", .driver = "", .fabric = "nvlink",
				    .libraries = "", .source = "a log" };
	struct ft_store *s;
	struct ft_error err;
	const struct ft_measurement *m;
	char path[128];
	size_t n;

	snprintf(path, sizeof(path), "%s/log", x->folder);
	write_text(path, "# nThread 1 nGpus 2 all_reduce_perf\n"
		   "#  Rank  0 Group  0 Pid 1 on h device  0 [0x18] X\n"
		   "#  Rank  1 Group  0 Pid 1 on h device  1 [0x2a] X\n"
		   "#       size         count      type   redop    root     "
		   "time   algbw   busbw #wrong     time   algbw   busbw\n"
		   "     8388608       2097152     float     sum      -1    "
		   "52.10  161.01  161.01      0    51.95  161.48  161.48      "
		   "0\n");
	s = ft_store_open(x->path, true, &err);
	assert_true(ft_store_import(s, FT_IMPORT_NCCL_TESTS, path, &run, &n,
				    &err));
	assert_int_equal(n, 1);
	m = ft_store_measurements(s, NULL, 0, &n, &err);
	assert_string_equal(m->kernel, "all_reduce");
	assert_true(m->bytes == 8388608 && m->gpus == 2 &&
		    m->time_us == 52.10);
	ft_store_close(s);
}

static void imported_attention_keeps_its_format(void **state)
{
	struct scratch *x = *state;
	struct ft_probe_run run = { .backend = "aiter", .device = "D" };
	static const char *const want[] = { "bf16", "fp8", "fp16", "bf16" };
	const struct ft_measurement *m;
	struct ft_store *s;
	struct ft_error err;
	char path[128];
	size_t n;

	snprintf(path, sizeof(path), "%s/b.csv", x->folder);
	s = ft_store_open(x->path, true, &err);
	write_text(path, "batch,heads,seqlen,head_dim,fwd_time_ms,dtype\n"
			 "1,2,512,128,1,bfloat16\n1,2,1024,128,2,fp8bf16\n"
			 "1,2,2048,128,3,fp16\n1,2,4096,128,4,\n");
	assert_true(ft_store_import(s, FT_IMPORT_ATTENTION, path, &run, &n,
				    &err));
	assert_int_equal(n, 4);
	m = ft_store_measurements(s, NULL, 0, &n, &err);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(m[i].dtype, want[(int)m[i].time_us / 1000 -
						     1]);
	write_text(path, "batch,heads,seqlen,head_dim,fwd_time_ms,dtype\n"
			 "1,2,512,128,1,int4\n");
	assert_false(ft_store_import(s, FT_IMPORT_ATTENTION, path, &run, &n,
				     &err));
	assert_non_null(strstr(err.text, "'int4' is none of"));
	ft_store_close(s);
}

static void missing_columns_are_named(void **state)
{
	struct scratch *x = *state;
	struct ft_probe_run run = { .backend = "attention" };
	struct ft_store *s;
	struct ft_error err;
	char path[128];
	size_t n;

	snprintf(path, sizeof(path), "%s/a.csv", x->folder);
	s = ft_store_open(x->path, true, &err);
	write_text(path, "batch,heads,seqlen\n1,2,3\n");
	assert_false(ft_store_import(s, FT_IMPORT_ATTENTION, path, &run, &n,
				     &err));
	assert_non_null(strstr(err.text, "'head_dim'"));
	write_text(path, "kernel,m\ngemm,3\n");
	assert_false(ft_store_import(s, FT_IMPORT_CSV, path, &run, &n, &err));
	assert_non_null(strstr(err.text, "'measured.time_us'"));
	assert_non_null(ft_store_runs(s, &n, &err));
	assert_int_equal(n, 0); /* nothing half-written */
	ft_store_close(s);
}

static const struct ft_probe_run published = {
	.backend = "csv", .device = "", .date = "2026-11", .driver = "",
	.fabric = "", .libraries = "", .source = "a table",
	.provenance = "published"
};

static void published_rows_keep_gpu_source_and_status(void **state)
{
	struct scratch *x = *state;
	const struct ft_measurement *m;
	struct ft_error err;
	struct ft_store *s;
	char path[128];
	size_t n;

	snprintf(path, sizeof(path), "%s/p.csv", x->folder);
	write_text(path, "op,gpu,gpus,nodes,fabric,bytes,"
			 "measured.busbw_gb_per_s,source,date,status,why\n"
			 "all_reduce,a,8,1,xgmi,8000,3.5,s1,2025-01,,\n"
			 "all_reduce,b,8,1,xgmi,8000,7,s1,,left-out,a guess\n"
			 "all_reduce,a,8,1,xgmi,8000,7,s1,,,\n"
			 "all_reduce,a,16,2,xgmi,8000,7,s2,,,\n");
	s = ft_store_open(x->path, true, &err);
	assert_true(ft_store_import(s, FT_IMPORT_CSV, path, &published, &n,
				    &err));
	assert_int_equal(n, 4);
	m = ft_store_measurements(s, "a", 0, &n, &err);
	assert_int_equal(n, 3); /* the same shape of the same source twice */
	assert_string_equal(m[1].source, "s1");
	assert_string_equal(m[1].date, "2025-01");
	assert_string_equal(m[1].fabric, "xgmi");
	assert_string_equal(m[1].provenance, "published");
	assert_true(m[1].time_us > 3.999 && m[1].time_us < 4.001);
	assert_string_equal(m[2].date, "2026-11");
	assert_string_equal(m[0].status, "left-out"); /* wider than a node */
	m = ft_store_measurements(s, "b", 0, &n, &err);
	assert_string_equal(m->status, "left-out");
	assert_string_equal(m->why, "a guess");
	ft_store_close(s);
}

static void an_import_is_whole_or_nothing(void **state)
{
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s;
	char path[128];
	size_t n;

	snprintf(path, sizeof(path), "%s/p.csv", x->folder);
	s = ft_store_open(x->path, true, &err);
	write_text(path, "kernel,dtype,m,n,measured.time_us,source\n"
			 "gemm,bf16,1,2,3,s1\n");
	assert_false(ft_store_import(s, FT_IMPORT_CSV, path, &published, &n,
				     &err));
	assert_non_null(strstr(err.text, "'k'"));
	write_text(path, "kernel,dtype,m,n,k,measured.time_us,source\n"
			 "gemm,bf16,1,2,3,4,s1\ngemm,bf16,1,2,3,4,\n");
	assert_false(ft_store_import(s, FT_IMPORT_CSV, path, &published, &n,
				     &err));
	assert_non_null(strstr(err.text, "code of its source"));
	assert_int_equal(err.line, 3);
	write_text(path, "{\"record\":\"run\",\"format\":1}\n"
			 "{\"record\":\"measurement\",\"cell\":\"a\"}\n"
			 "{\"record\":\"run\",\"format\":9}\n");
	assert_false(ft_store_import(s, FT_IMPORT_PROBE, path, &published, &n,
				     &err));
	assert_non_null(ft_store_runs(s, &n, &err));
	assert_int_equal(n, 0);
	ft_store_close(s);
}

/* t(0.9) of 2 and 19 degrees of freedom are 1.8856 and 1.3277, z(0.9) 1.2816. */
static void an_error_bar_widens_for_few_shapes(void **state)
{
	(void)state;
	assert_true(fit_spread(0.1, 0.2, 2, 2) < 1e-9); /* cannot say */
	assert_true(fabs(fit_spread(0.1, 0.2, 3, 3) - 0.16989) < 1e-4);
	assert_true(fabs(fit_spread(0.1, 0.12816, 40, 20) - 0.10616) < 1e-4);
	assert_true(fabs(fit_spread(0.5, 0.12816, 9999, 9999) - 0.1) < 1e-4);
}

static void a_curve_is_found_again_despite_an_outlier(void **state)
{
	double bytes[12], time_s[12];
	struct fit_curve c;

	(void)state;
	for (int i = 0; i < 12; i++) {
		bytes[i] = 1e4 * (double)(1 << i);
		time_s[i] = (3e-6 + bytes[i] / 2e12) * (i % 2 ? 1.01 : 0.99);
	}
	time_s[4] *= 3;
	assert_true(fit_curve(bytes, time_s, 12, &c));
	assert_int_equal(c.outliers, 1);
	assert_true(c.start_s > 2.9e-6 && c.start_s < 3.1e-6);
	assert_true(c.bytes_per_s > 1.9e12 && c.bytes_per_s < 2.1e12);
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
	assert_int_equal(sqlite3_exec(s->db, "PRAGMA max_page_count = 20", NULL,
				      NULL, NULL), SQLITE_OK);
	assert_false(ft_store_import(s, FT_IMPORT_CSV, path, &published, &n,
				     &err));
	assert_non_null(strstr(err.text, "free some space"));
	assert_non_null(ft_store_runs(s, &n, &err));
	assert_int_equal(n, 0);
	add_line(s, run_line, false);
	for (int i = 0; ok && i < 2000; i++) {
		snprintf(line, sizeof(line), "{\"record\":\"measurement\","
			 "\"cell\":\"c%d\",\"kind\":\"gemm\",\"status\":\"ok\","
			 "\"time_us\":1}", i);
		ok = ft_store_line(s, line, "test", &broken, &err);
	}
	assert_false(ok);
	assert_non_null(strstr(err.text, "free some space"));
	ft_store_close(s);
	s = ft_store_open(x->path, false, &err);
	assert_non_null(ft_store_measurements(s, NULL, 0, &n, &err));
	assert_true(n > 0 && n % STORE_BATCH == 0);
	assert_true(ft_store_import(s, FT_IMPORT_CSV, path, &published, &n,
				    &err));
	assert_int_equal(n, 2000);
	ft_store_close(s);
}

static void foreign_files_say_what_they_lack(void **state)
{
	static const struct {
		enum ft_import format;
		const char *text, *says;
	} bad[] = {
		{ FT_IMPORT_NCCL_TESTS, "     8388608       2097152     float"
		  "     sum      -1    52.10  161.01  161.01      0\n",
		  "no collective" },
		{ FT_IMPORT_NCCL_TESTS, "# all_reduce_perf\n     8388608  "
		  "2097152  float  sum  -1  52.10  161.01  161.01  0\n",
		  "no ranks" },
		{ FT_IMPORT_NCCL_TESTS, "nothing\n", "no line of results" },
		{ FT_IMPORT_KINETO, "{}", "lacks 'traceEvents'" },
		{ FT_IMPORT_KINETO, "{\"traceEvents\": [", "expected" },
		{ FT_IMPORT_CSV, "m,measured.time_us\n1,2\n", "'kernel'" },
		{ FT_IMPORT_CSV, "op,gpus,measured.time_us,source\nall_reduce,8,2,s1\n",
		  "'bytes'" },
		{ FT_IMPORT_CSV, "kernel,m,n,k,measured.time_us,source\n"
		  "gemm,1,x,2,3,s1\n", "not a number" },
	};
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	char path[128];
	size_t n;

	snprintf(path, sizeof(path), "%s/f", x->folder);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		write_text(path, bad[i].text);
		assert_false(ft_store_import(s, bad[i].format, path, &published,
					     &n, &err));
		if (!strstr(err.text, bad[i].says))
			fail_msg("'%s' is not in '%s'", bad[i].says, err.text);
	}
	ft_store_close(s);
}

static double noise(uint64_t *state)
{
	double u[2];

	for (int i = 0; i < 2; i++) {
		*state = *state * UINT64_C(6364136223846793005) +
			 UINT64_C(1442695040888963407);
		u[i] = ((double)(*state >> 33) + 0.5) / 2147483648.0;
	}
	return sqrt(-2 * log(u[0])) * cos(6.283185307179586 * u[1]);
}

/* A loaded machine: times that hide the bytes, or even fall with them. A rate
 * beyond all bounds once made profiles that could not be read. */
static void noise_makes_no_endless_bandwidth(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (int t = 0; t < 6000; t++) {
		double bytes[12], time_s[12], most = 0, fastest = 0;
		size_t n = 4 + (size_t)t % 9;
		struct fit_curve c;

		for (size_t i = 0; i < n; i++) {
			double slope = t % 3 ? -0.3 : 0;

			bytes[i] = 1e4 * pow(2, (double)i);
			time_s[i] = 1e-5 * pow(2, slope * (double)i) *
				    exp(0.8 * (t % 4) * noise(&random));
			most = fmax(most, time_s[i]);
			fastest = fmax(fastest, bytes[i] / time_s[i]);
		}
		assert_true(fit_curve(bytes, time_s, n, &c));
		assert_true(c.start_s >= 0 && c.start_s <= most);
		assert_true(c.bytes_per_s > 0 &&
			    c.bytes_per_s <= 30.001 * fastest);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, drop_scratch)
	const struct CMUnitTest tests[] = {
		TEST(what_goes_in_comes_out),
		TEST(an_open_batch_is_lost_and_no_more),
		TEST(another_version_is_refused),
		TEST(a_store_of_version_1_is_brought_up),
		TEST(a_missing_store_says_what_makes_one),
		TEST(nccl_tests_text_is_read),
		TEST(imported_attention_keeps_its_format),
		TEST(missing_columns_are_named),
		TEST(published_rows_keep_gpu_source_and_status),
		TEST(an_import_is_whole_or_nothing),
		TEST(a_full_disk_is_told_and_costs_one_batch),
		TEST(foreign_files_say_what_they_lack),
		cmocka_unit_test(an_error_bar_widens_for_few_shapes),
		cmocka_unit_test(a_curve_is_found_again_despite_an_outlier),
		cmocka_unit_test(noise_makes_no_endless_bandwidth),
	};

	gsl_set_error_handler_off();
	return cmocka_run_group_tests_name("calibrate/store", tests, NULL, NULL);
}
