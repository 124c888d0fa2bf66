/* tests/test_import.c - what others wrote: taken whole, or refused with what it lacks */
#include "tests/published.h"
#include "tests/scratch.h"

static void nccl_tests_text_is_read(void **state)
{
	struct scratch *x = *state;
	struct ft_probe_run run = { .backend = "nccl-tests",
				    .device = "D",
				    .date = "",
				    .driver = "",
				    .fabric = "nvlink",
				    .libraries = "",
				    .source = "a log" };
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
			 "0\n" /* and one that took no time */
			 "           4             1     float     sum      -1    "
			 " 0.00    0.00    0.00      0     0.00    0.00    0.00      "
			 "0\n");
	s = ft_store_open(x->path, true, &err);
	assert_true(ft_store_import(s, FT_IMPORT_NCCL_TESTS, path, &run, &n, &err));
	assert_int_equal(n, 1);
	m = ft_store_measurements(s, NULL, 0, &n, &err);
	assert_string_equal(m->kernel, "all_reduce");
	assert_true(m->bytes == 8388608 && m->gpus == 2 && m->time_us == 52.10);
	/* without what nccl-tests prints at the top: there it is missing */
	write_text(path, "# nThread 1 nGpus 2 all_reduce_perf\n\n"
			 "     8388608       2097152     float     sum      -1    "
			 "52.10  161.01  161.01      0\n");
	n = 0;
	assert_false(ft_store_import(s, FT_IMPORT_NCCL_TESTS, path, &run, &n, &err));
	assert_string_equal(err.text, "names no ranks; nccl-tests prints it at the "
				      "top, keep those lines");
	assert_int_equal(err.line, 1);
	ft_store_close(s);
}

/* What a loop over the programs of nccl-tests prints: each run has its own ranks. */
static void nccl_tests_of_several_runs_have_their_own_ranks(void **state)
{
	struct scratch *x = *state;
	static const char ranks[] =
		"#  Rank  0 Group  0 Pid 1 on h device  0 [0x18] X\n"
		"#  Rank  1 Group  0 Pid 1 on h device  1 [0x2a] X\n";
	static const char result[] = "     8388608  2097152  float  sum  -1  "
				     "52.10  161.01  161.01  0\n";
	struct ft_probe_run run = { .backend = "nccl-tests", .device = "D" };
	const struct ft_measurement *m;
	struct ft_store *s;
	struct ft_error err;
	char path[128], text[1024];
	size_t n;

	snprintf(path, sizeof(path), "%s/log", x->folder);
	snprintf(text, sizeof(text),
		 "%s# Collective test starting: all_reduce_perf\n%s"
		 "# nThread 1 nGpus 2 all_gather_perf\n%s%s",
		 ranks, result, ranks, result);
	write_text(path, text);
	s = ft_store_open(x->path, true, &err);
	assert_true(ft_store_import(s, FT_IMPORT_NCCL_TESTS, path, &run, &n, &err));
	m = ft_store_measurements(s, NULL, 0, &n, &err);
	assert_int_equal(n, 2);
	assert_string_equal(m[0].kernel, "all_gather");
	assert_string_equal(m[1].kernel, "all_reduce");
	assert_true(m[0].gpus == 2 && m[1].gpus == 2);
	/* a run that names no collective is not taken for the one before it */
	snprintf(text, sizeof(text), "# all_reduce_perf\n%s%s%s%s", ranks, result,
		 ranks, result);
	write_text(path, text);
	assert_false(ft_store_import(s, FT_IMPORT_NCCL_TESTS, path, &run, &n, &err));
	assert_string_equal(err.text,
			    "names no collective; nccl-tests prints it at the "
			    "top, keep those lines");
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
	assert_true(ft_store_import(s, FT_IMPORT_ATTENTION, path, &run, &n, &err));
	assert_int_equal(n, 4);
	m = ft_store_measurements(s, NULL, 0, &n, &err);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(m[i].dtype, want[(int)m[i].time_us / 1000 - 1]);
	write_text(path, "batch,heads,seqlen,head_dim,fwd_time_ms,dtype\n"
			 "1,2,512,128,1,int4\n");
	assert_false(ft_store_import(s, FT_IMPORT_ATTENTION, path, &run, &n, &err));
	assert_non_null(strstr(err.text, "'int4' is not one of"));
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
	assert_false(ft_store_import(s, FT_IMPORT_ATTENTION, path, &run, &n, &err));
	assert_non_null(strstr(err.text, "'head_dim'"));
	write_text(path, "kernel,m\ngemm,3\n");
	assert_false(ft_store_import(s, FT_IMPORT_CSV, path, &run, &n, &err));
	assert_non_null(strstr(err.text, "'measured.time_us'"));
	assert_non_null(ft_store_runs(s, &n, &err));
	assert_int_equal(n, 0); /* nothing half-written */
	ft_store_close(s);
}

/* No row of a table is dropped: the same shape in another clock or again is a cell of its own,
 * and a row without a time is a mistake. */
static void each_row_is_a_cell_of_its_own(void **state)
{
	static const char *const timeless[] = {
		"kernel,m,n,k,measured.time_us\ngemm,8,8,8,\n",
		"kernel,m,n,k,measured.tflops\ngemm,8,8,8,0\n",
		"kernel,bytes,measured.tflops\ncopy,4000,5600\n",
	};
	struct scratch *x = *state;
	struct ft_probe_run run = { .backend = "csv", .device = "D" };
	const struct ft_measurement *m;
	struct ft_store *s;
	struct ft_error err;
	char path[128];
	size_t n;

	snprintf(path, sizeof(path), "%s/r.csv", x->folder);
	s = ft_store_open(x->path, true, &err);
	write_text(path, "kernel,dtype,m,n,k,clock,measured.time_us\n"
			 "gemm,bf16,64,64,64,burst,5\ngemm,bf16,64,64,64,sustained,7\n"
			 "gemm,bf16,64,64,64,burst,6\n");
	assert_true(ft_store_import(s, FT_IMPORT_CSV, path, &run, &n, &err));
	assert_int_equal(n, 3);
	m = ft_store_measurements(s, NULL, 0, &n, &err);
	assert_int_equal(n, 3);
	assert_true(m[0].time_us + m[1].time_us + m[2].time_us == 18);
	for (size_t i = 0; i < sizeof(timeless) / sizeof(*timeless); i++) {
		write_text(path, timeless[i]);
		assert_false(ft_store_import(s, FT_IMPORT_CSV, path, &run, &n, &err));
		assert_non_null(strstr(err.text, "the row has no time"));
		assert_int_equal(err.line, 2);
	}
	ft_store_close(s);
}

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
			 "all_reduce,a,16,2,xgmi,8000,7,s2,,,\n"
			 "all_reduce,c,2,1,xgmi,8,0.02,s2,,,\n"); /* 0.4 us */
	s = ft_store_open(x->path, true, &err);
	assert_true(ft_store_import(s, FT_IMPORT_CSV, path, &published, &n, &err));
	assert_int_equal(n, 5);
	m = ft_store_measurements(s, "c", 0, &n, &err);
	assert_int_equal(n, 1);
	assert_true(m->time_us > 0.399 && m->time_us < 0.401);
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
	assert_false(ft_store_import(s, FT_IMPORT_CSV, path, &published, &n, &err));
	assert_non_null(strstr(err.text, "'k'"));
	write_text(path, "kernel,dtype,m,n,k,measured.time_us,source\n"
			 "gemm,bf16,1,2,3,4,s1\ngemm,bf16,1,2,3,4,\n");
	assert_false(ft_store_import(s, FT_IMPORT_CSV, path, &published, &n, &err));
	assert_non_null(strstr(err.text, "code of its source"));
	assert_int_equal(err.line, 3);
	write_text(path, "{\"record\":\"run\",\"format\":1}\n"
			 "{\"record\":\"measurement\",\"cell\":\"a\"}\n"
			 "{\"record\":\"run\",\"format\":9}\n");
	assert_false(ft_store_import(s, FT_IMPORT_PROBE, path, &published, &n, &err));
	assert_non_null(ft_store_runs(s, &n, &err));
	assert_int_equal(n, 0);
	ft_store_close(s);
}

static void foreign_files_say_what_they_lack(void **state)
{
	static const struct {
		enum ft_import format;
		const char *text, *says;
	} bad[] = {
		{ FT_IMPORT_NCCL_TESTS,
		  "     8388608       2097152     float"
		  "     sum      -1    52.10  161.01  161.01      0\n",
		  "no collective" },
		{ FT_IMPORT_NCCL_TESTS,
		  "# all_reduce_perf\n     8388608  "
		  "2097152  float  sum  -1  52.10  161.01  161.01  0\n",
		  "no ranks" },
		{ FT_IMPORT_NCCL_TESTS, "nothing\n", "no line of results" },
		{ FT_IMPORT_KINETO, "{}", "lacks 'traceEvents'" },
		{ FT_IMPORT_KINETO, "{\"traceEvents\": [", "cut off" },
		{ FT_IMPORT_CSV, "m,measured.time_us\n1,2\n", "'kernel'" },
		{ FT_IMPORT_CSV, "op,gpus,measured.time_us,source\nall_reduce,8,2,s1\n",
		  "'bytes'" },
		{ FT_IMPORT_CSV,
		  "kernel,m,n,k,measured.time_us,source\n"
		  "gemm,1,x,2,3,s1\n",
		  "not a number" },
	};
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	char path[128];
	size_t n;

	snprintf(path, sizeof(path), "%s/f", x->folder);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		write_text(path, bad[i].text);
		assert_false(
			ft_store_import(s, bad[i].format, path, &published, &n, &err));
		if (!strstr(err.text, bad[i].says))
			fail_msg("'%s' is not in '%s'", bad[i].says, err.text);
	}
	ft_store_close(s);
}

#define FIELD(x) offsetof(struct ft_measurement, x)

/* Each number of a probe's line where it belongs; what the line lacks is 0, or -1: not known. */
static void a_line_says_each_number_of_its_cell(void **state)
{
	static const struct {
		const char *key;
		size_t at;
		double lacking;
	} numbers[] = {
		{ "m", FIELD(m), 0 },
		{ "n", FIELD(n), 0 },
		{ "k", FIELD(k), 0 },
		{ "batch", FIELD(batch), 0 },
		{ "heads", FIELD(heads), 0 },
		{ "kv_heads", FIELD(kv_heads), 0 },
		{ "sequence_length", FIELD(sequence), 0 },
		{ "head_dim", FIELD(head_dim), 0 },
		{ "bytes", FIELD(bytes), 0 },
		{ "gpus", FIELD(gpus), 0 },
		{ "from", FIELD(from), 0 },
		{ "to", FIELD(to), 0 },
		{ "time_us", FIELD(time_us), 0 },
		{ "p10_us", FIELD(p10_us), 0 },
		{ "p90_us", FIELD(p90_us), 0 },
		{ "reps", FIELD(reps), 0 },
		{ "relative_error", FIELD(relative_error), -1 },
		{ "alone_us", FIELD(alone_us), 0 },
		{ "other_us", FIELD(other_us), 0 },
		{ "other_alone_us", FIELD(other_alone_us), 0 },
		{ "clock_mhz", FIELD(clock_mhz), -1 },
		{ "power_w", FIELD(power_w), -1 },
		{ "temperature_c", FIELD(temperature_c), -1 },
	};
	static const struct {
		const char *key;
		size_t at;
	} truths[] = {
		{ "causal", FIELD(causal) },
		{ "warm", FIELD(warm) },
		{ "accumulate", FIELD(accumulate) },
		{ "in_step", FIELD(in_step) },
	};
	enum {
		NUMBERS = sizeof(numbers) / sizeof(*numbers),
		TRUTHS = sizeof(truths) / sizeof(*truths)
	};
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	const struct ft_measurement *m;
	char line[2048];
	bool broken;
	size_t n;

	assert_true(ft_store_line(s,
				  "{\"record\":\"run\",\"format\":1,\"device\":\"D\"}",
				  "", &broken, &err));
	/* none, then all of the numbers, then each of the truths alone */
	for (int i = 0; i < 2 + TRUTHS; i++) {
		int len = snprintf(line, sizeof(line),
				   "{\"record\":\"measurement\",\"cell\":\"%c\","
				   "\"kind\":\"gemm\",\"status\":\"wrong\"",
				   'a' + i);

		for (int k = 0; i == 1 && k < NUMBERS; k++)
			len += snprintf(line + len, sizeof(line) - (size_t)len,
					",\"%s\":%d.5", numbers[k].key, 10 + k);
		snprintf(line + len, sizeof(line) - (size_t)len, "%s%s%s}",
			 i > 1 ? ",\"" : "", i > 1 ? truths[i - 2].key : "",
			 i > 1 ? "\":true" : "");
		assert_true(ft_store_line(s, line, "", &broken, &err) && !broken);
	}
	assert_true(ft_store_end(s, &err));
	m = ft_store_measurements(s, NULL, 0, &n, &err);
	assert_int_equal(n, 2 + TRUTHS);
	for (int i = 0; i < 2 + TRUTHS; i++) {
		const char *at = (const char *)&m[i];

		assert_int_equal(m[i].cell[0], 'a' + i);
		for (int k = 0; k < NUMBERS; k++)
			assert_true(*(const double *)(at + numbers[k].at) ==
				    (i == 1 ? 10.5 + k : numbers[k].lacking));
		for (int k = 0; k < TRUTHS; k++)
			assert_int_equal(*(const bool *)(at + truths[k].at),
					 i == 2 + k);
	}
	ft_store_close(s);
}

/* A product of the probe with more words; its status in the store. */
static void stored_as(struct ft_store *s, const char *cell, const char *words,
		      const char *status, const char *why)
{
	struct ft_error err;
	const struct ft_measurement *m;
	char line[512];
	bool broken;
	size_t n;

	snprintf(line, sizeof(line),
		 "{\"record\":\"measurement\",\"cell\":\"%s\",\"kind\":\"gemm\","
		 "\"status\":\"ok\",\"m\":64,\"n\":64,\"k\":64,\"time_us\":9%s}",
		 cell, words);
	ok_or_say(ft_store_line(s, line, "", &broken, &err), err);
	m = ft_store_measurements(s, NULL, 0, &n, &err);
	while (n-- && strcmp(m[n].cell, cell) != 0)
		;
	assert_string_equal(m[n].status, status);
	if (!strstr(m[n].why, why))
		fail_msg("why is '%s', not '%s'", m[n].why, why);
}

/* torch/kernels.py --only long, and --only grouped. */
static void a_line_of_no_table_is_left_out(void **state)
{
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	bool broken;

	assert_true(ft_store_line(s,
				  "{\"record\":\"run\",\"format\":1,\"device\":\"D\"}",
				  "", &broken, &err));
	stored_as(s, "a", "", "ok", "");
	stored_as(s, "b", ",\"clock\":\"burst\"", "ok", "");
	stored_as(s, "c", ",\"clock\":\"sustained\",\"groups\":1", "ok", "");
	stored_as(s, "d", ",\"clock\":\"share 0.5 for 3 s\"", "left-out",
		  "at a clock between");
	stored_as(s, "e", ",\"groups\":2", "left-out", "grouped");
	assert_false(ft_store_line(s,
				   "{\"record\":\"measurement\",\"cell\":\"f\","
				   "\"kind\":\"gemm\",\"status\":\"ok\",\"m\":64,"
				   "\"n\":64,\"k\":64,\"time_us\":9,"
				   "\"clock\":\"sustaind\"}",
				   "", &broken, &err));
	assert_non_null(
		strstr(err.text, "the clock of the measurement 'f' is 'sustaind'"));
	ft_store_close(s);
}

/* As `validate` and `kernel` have it. */
static void a_size_is_whole(void **state)
{
	static const char *const sizes[] = {
		"groups",   "batch", "heads", "kv_heads", "sequence_length",
		"head_dim", "gpus",  "from",  "to"
	};
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	char line[512], words[128];
	bool broken;

	assert_true(ft_store_line(s,
				  "{\"record\":\"run\",\"format\":1,\"device\":\"D\"}",
				  "", &broken, &err));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		snprintf(line, sizeof(line),
			 "{\"record\":\"measurement\",\"cell\":\"c\",\"kind\":"
			 "\"gemm\",\"status\":\"ok\",\"m\":64,\"n\":64,\"k\":64,"
			 "\"time_us\":9.5,\"bytes\":2.5,\"%s\":2.5}",
			 sizes[i]);
		assert_false(ft_store_line(s, line, "", &broken, &err));
		snprintf(words, sizeof(words),
			 "%s of the measurement 'c' should be a whole number, not 2.5",
			 sizes[i]);
		assert_string_equal(err.text, words);
	}
	ft_store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_size_is_whole),
		TEST(a_line_of_no_table_is_left_out),
		TEST(nccl_tests_text_is_read),
		TEST(nccl_tests_of_several_runs_have_their_own_ranks),
		TEST(imported_attention_keeps_its_format),
		TEST(each_row_is_a_cell_of_its_own),
		TEST(missing_columns_are_named),
		TEST(published_rows_keep_gpu_source_and_status),
		TEST(an_import_is_whole_or_nothing),
		TEST(foreign_files_say_what_they_lack),
		TEST(a_line_says_each_number_of_its_cell),
	};

	gsl_set_error_handler_off();
	return cmocka_run_group_tests_name("calibrate/import", tests, NULL, NULL);
}
