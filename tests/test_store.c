/* tests/test_store.c - the measurement store: batches, versions, imports */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "calibrate/fit.h"
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

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, drop_scratch)
	const struct CMUnitTest tests[] = {
		TEST(what_goes_in_comes_out),
		TEST(an_open_batch_is_lost_and_no_more),
		TEST(another_version_is_refused),
		TEST(a_missing_store_says_what_makes_one),
		TEST(nccl_tests_text_is_read),
		TEST(imported_attention_keeps_its_format),
		TEST(missing_columns_are_named),
		cmocka_unit_test(a_curve_is_found_again_despite_an_outlier),
	};

	return cmocka_run_group_tests_name("calibrate/store", tests, NULL, NULL);
}
