/* tests/test_import_words.c - words that others write in their tables and logs, each taken for what it says */
#include "tests/check.h"
#include "tests/scratch.h"

/* Into a store of its own; NULL: refused, as err says. */
static const struct ft_measurement *imported(struct ft_store *s, enum ft_import format,
					     const char *path, const char *text,
					     size_t *n, struct ft_error *err)
{
	struct ft_probe_run run = { .backend = "csv",
				    .device = "D",
				    .fabric = "nvlink" };

	FILE *out = fopen(path, "w");

	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
	return ft_store_import(s, format, path, &run, n, err) ?
		       ft_store_measurements(s, NULL, 0, n, err) :
		       NULL;
}

/* Python writes True: half the work of a causal pass, by whoever reads the rate. A word
 * that is none is no false. */
static void a_truth_is_what_validate_takes_for_one(void **state)
{
	static const char *const head =
		"kernel,dtype,impl,pass,batch,heads,kv_heads,sequence_length,head_dim,"
		"causal,measured.tflops\n";
	static const struct {
		const char *word;
		bool causal;
	} words[] = { { "true", true }, { "True", true }, { "TRUE", true },
		      { "1", true },	{ "", false },	  { "False", false },
		      { "0", false } };
	struct scratch *x = *state;
	const struct ft_measurement *m;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	char path[128], text[1024];
	size_t n;

	snprintf(path, sizeof(path), "%s/t.csv", x->folder);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		snprintf(text, sizeof(text),
			 "%sattention,bf16,cudnn,,1,32,8,4096,%zu,%s,400\n", head,
			 8 * (i + 1), words[i].word);
		m = imported(s, FT_IMPORT_CSV, path, text, &n, &err);
		ok_or_say(m, err);
		for (size_t k = 0; k < n; k++)
			if (m[k].head_dim == 8 * ((double)i + 1)) {
				double flop = 4. * 32 * 4096 * 4096 * m[k].head_dim;

				assert_int_equal(m[k].causal, words[i].causal);
				assert_string_equal(m[k].pass, "forward");
				near_frac(m[k].time_us * 1e-6,
					  flop / 400e12 * (words[i].causal ? 0.5 : 1),
					  1e-9);
			}
	}
	assert_int_equal(n, sizeof(words) / sizeof(*words));
	ft_store_close(s);
}

/* A fit would write the product into a table that nobody can read. */
static void a_row_without_a_format_is_bf16(void **state)
{
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	const struct ft_measurement *m;
	char path[128];
	size_t n;

	snprintf(path, sizeof(path), "%s/f.csv", x->folder);
	m = imported(s, FT_IMPORT_CSV, path,
		     "kernel,m,n,k,measured.time_us\ngemm,8,8,8,9\n", &n, &err);
	ok_or_say(m, err);
	assert_int_equal(n, 1);
	assert_string_equal(m[0].dtype, "bf16");
	ft_store_close(s);
}

static void a_word_that_no_table_has_is_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "kernel,heads,kv_heads,batch,sequence_length,head_dim,causal,"
		  "measured.time_us\nattention,8,8,1,512,128,maybe,9\n",
		  "causal should be true or false, not 'maybe'" },
		{ "kernel,heads,kv_heads,batch,sequence_length,head_dim,pass,"
		  "measured.time_us\nattention,8,8,1,512,128,back,9\n",
		  "unknown pass 'back'" },
		{ "kernel,m,n,k,layout,measured.time_us\ngemm,8,8,8,TN,9\n",
		  "unknown layout 'TN'" },
		{ "kernel,m,n,k,dtype,measured.time_us\ngemm,8,8,8,bfloat,9\n",
		  "unknown dtype 'bfloat'" },
		{ "kernel,m,n,k,clock,measured.time_us\ngemm,8,8,8,boost,9\n",
		  "clock should be burst or sustained, not 'boost'" },
		/* numbers that are none would count as empty cells */
		{ "kernel,m,n,k,measured.time_us,measured.tflops\ngemm,8,8,8,1o,9\n",
		  "'1o' is not a number" },
		{ "op,gpus,nodes,bytes,measured.time_us\nall_reduce,8,two,1024,9\n",
		  "'two' is not a number" },
		{ "kernel,bytes,measured.time_us\ncopy,1MB,9\n",
		  "'1MB' is not a number" },
		{ "kernel,m,bytes,measured.time_us\ncopy,4096,,9\n",
		  "a row of copy needs its bytes, or m and n, above 0" },
		/* a fit would read the shape */
		{ "kernel,m,n,dtype,bytes,measured.time_us\nlayernorm,64,64,fp32,999,9\n",
		  "bytes says 999, and m, n are 16384 bytes of fp32: state one of "
		  "them, or the same" },
		{ "kernel,m,bytes,measured.time_us\ncopy,4096,8192,9\n",
		  "a row of copy has m, but no n above 0" },
		{ "op,gpus,bytes,measured.time_us\nallreduce,8,1024,9\n",
		  "unknown op 'allreduce'" },
		{ "op,gpus,fabric,bytes,measured.time_us\nall_reduce,8,nvlinks,1024,9\n",
		  "unknown fabric 'nvlinks'" },
		{ "kernel,m,n,k,measured.time_us\ngemmm,8,8,8,9\n",
		  "unknown kernel 'gemmm'; with layout or k it is called gemm" },
		{ "kernel,m,n,measured.time_us\n,8,8,9\n",
		  "the row names neither a kernel nor an op" },
		{ "kernel,m,n,k,fast,measured.time_us\ngemm,8,8,8,maybe,9\n",
		  "fast should be true or false, not 'maybe'" },
		{ "kernel,m,n,k,date,measured.time_us\ngemm,8,8,8,May 2026,9\n",
		  "'May 2026' is no date: write 2026, 2026-11 or 2026-11-22" },
		{ "kernel,m,n,k,date,measured.time_us\ngemm,8,8,8,2999-01,9\n",
		  "the date 2999-01 lies in the future" },
	};
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	char path[128];
	size_t n;

	snprintf(path, sizeof(path), "%s/w.csv", x->folder);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_null(imported(s, FT_IMPORT_CSV, path, bad[i].text, &n, &err));
		if (!strstr(err.text, bad[i].says))
			fail_msg("'%s' is not in '%s'", bad[i].says, err.text);
		assert_int_equal(err.line, 2);
	}
	ft_store_close(s);
}

/* The same size twice, and any size in a row that no fit reads. */
static void a_size_told_twice_alike_is_taken(void **state)
{
	static const char text[] =
		"kernel,m,n,bytes,measured.time_us,status\n"
		"copy,64,64,8192,9,\ncopy,64,64,8150,9,\ncopy,64,64,1,9,noisy\n";
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	char path[128];
	size_t n;

	snprintf(path, sizeof(path), "%s/t.csv", x->folder);
	ok_or_say(imported(s, FT_IMPORT_CSV, path, text, &n, &err), err);
	assert_int_equal(n, 3);
	ft_store_close(s);
}

/* A benchmark times more kinds of attention than a profile has tables of. */
static void attention_of_another_kind_is_kept_not_fitted(void **state)
{
	static const char text[] =
		"batch_size,q_seqlen,kv_seqlen,num_q_heads,num_kv_heads,head_dim_qk,"
		"head_dim_vo,attn_mask,sliding_window_size,fwd_time_ms\n"
		"1,4096,4096,32,8,128,128,top_left,,1\n"
		"1,4096,4096,32,8,128,128,top_left,512,2\n"
		"1,4096,8192,32,8,128,128,top_left,None,3\n"
		"1,4096,4096,32,8,192,128,top_left,-1,4\n";
	static const char *const why[] = { "", "a window", "keys of another length",
					   "values of another size" };
	struct scratch *x = *state;
	const struct ft_measurement *m;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	char path[128];
	size_t n;

	snprintf(path, sizeof(path), "%s/k.csv", x->folder);
	m = imported(s, FT_IMPORT_ATTENTION, path, text, &n, &err);
	ok_or_say(m, err);
	assert_int_equal(n, 4);
	for (size_t i = 0; i < n; i++) {
		int row = (int)(m[i].time_us / 1000 + 0.5) - 1;

		assert_string_equal(m[i].status, row ? "left-out" : "ok");
		if (strncmp(m[i].why, why[row], strlen(why[row])) != 0)
			fail_msg("%s", m[i].why);
	}
	ft_store_close(s);
}

/* A column of another name would count as one that is not there; so would an option's word. */
static void a_column_or_an_option_of_no_meaning_is_refused(void **state)
{
	static const char *const text = "kernel,m,n,k,measured.time_us\ngemm,8,8,8,9\n";
	struct ft_probe_run run = { .backend = "csv", .device = "D" };
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	char path[128];
	size_t n;

	snprintf(path, sizeof(path), "%s/c.csv", x->folder);
	assert_null(imported(s, FT_IMPORT_CSV, path,
			     "kernel,m,n,k,laout,measured.time_us\n"
			     "gemm,8,8,8,dgrad,9\n",
			     &n, &err));
	assert_string_equal(err.text, "unknown column 'laout'; did you mean 'layout'?");
	assert_non_null(imported(s, FT_IMPORT_CSV, path, text, &n, &err));
	run.fabric = "nv-link";
	assert_false(ft_store_import(s, FT_IMPORT_CSV, path, &run, &n, &err));
	assert_non_null(strstr(err.text, "unknown fabric 'nv-link'"));
	run.fabric = "xgmi";
	run.date = "yesterday";
	assert_false(ft_store_import(s, FT_IMPORT_CSV, path, &run, &n, &err));
	assert_string_equal(err.text,
			    "--date: 'yesterday' is no date; write it as 2026-11-29");
	run.date = "2026-13-01";
	assert_false(ft_store_import(s, FT_IMPORT_CSV, path, &run, &n, &err));
	run.date = "2026-11-32";
	assert_false(ft_store_import(s, FT_IMPORT_CSV, path, &run, &n, &err));
	assert_string_equal(err.text,
			    "--date: '2026-11-32' is no date; write it as 2026-11-29");
	run.date = "2999-01";
	assert_false(ft_store_import(s, FT_IMPORT_CSV, path, &run, &n, &err));
	assert_string_equal(err.text, "the date 2999-01 lies in the future");
	run.date = "2026-11";
	assert_true(ft_store_import(s, FT_IMPORT_CSV, path, &run, &n, &err));
	ft_store_close(s);
}

/* Nor is the beginning of a cell the cell; words in the place of a time say that there is none. */
static void a_size_with_a_letter_is_no_size(void **state)
{
	static const struct {
		const char *row, *says; /* NULL: read */
	} rows[] = {
		{ "1,8,4k,128,1.5,OOM", "'4k' is not a number" },
		{ "1,8,4096,128,1.5ms,OOM", "'1.5ms' is not a number" },
		{ "1,8,4096,0,1.5,OOM", "head_dim is not above 0" },
		{ "1,,4096,128,1.5,OOM", "heads is not above 0" },
		{ "1,8.5,4096,128,1.5,OOM", "heads should be a whole number" },
		{ "1,8,4096,128,-1.5,OOM", "the time '-1.5' is below 0" },
		{ "1,8,4096,128,.5,OOM", NULL },
		{ "1,8,4096,128,5e-1,-", NULL },
	};
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	char path[128], text[256];
	size_t n;

	snprintf(path, sizeof(path), "%s/a.csv", x->folder);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct ft_measurement *m;

		snprintf(text, sizeof(text),
			 "batch,heads,seqlen,head_dim,fwd_ms,bwd_ms\n%s\n",
			 rows[i].row);
		m = imported(s, FT_IMPORT_ATTENTION, path, text, &n, &err);
		assert_int_equal(m != NULL, !rows[i].says);
		if (m)
			near_frac(m[n - 1].time_us, 500, 1e-9);
		else if (!strstr(err.text, rows[i].says))
			fail_msg("'%s' is not in '%s'", rows[i].says, err.text);
	}
	ft_store_close(s);
}

/* A profile's tables are of single products, of heads of one size and of one node. */
static void what_no_table_is_of_is_kept_and_not_fitted(void **state)
{
	static const struct {
		enum ft_import format;
		const char *text, *why;
	} rows[] = {
		{ FT_IMPORT_CSV,
		  "kernel,dtype,m,n,k,groups,measured.tflops\n"
		  "gemm,bf16,8192,64,64,8,300\n",
		  "grouped" },
		{ FT_IMPORT_CSV,
		  "kernel,dtype,batch,heads,kv_heads,sequence_length,head_dim,"
		  "v_head_dim,measured.time_us\nattention,bf16,1,8,8,512,192,128,9\n",
		  "values of another size" },
		{ FT_IMPORT_NCCL_TESTS,
		  "# all_reduce_perf\n"
		  "#  Rank  0 Group  0 Pid 1 on  one device  0 [0x18] X\n"
		  "#  Rank  1 Group  0 Pid 1 on  two device  0 [0x18] X\n"
		  " 1024 256 float sum -1 52.1 1 1 0 51.9 1 1 0\n",
		  "several nodes" },
	};
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	char path[128];
	size_t n;

	snprintf(path, sizeof(path), "%s/k", x->folder);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct ft_measurement *m =
			imported(s, rows[i].format, path, rows[i].text, &n, &err);
		bool found = false;

		ok_or_say(m, err);
		assert_int_equal(n, i + 1);
		for (size_t k = 0; k < n; k++) {
			assert_string_equal(m[k].status, "left-out");
			found |= strstr(m[k].why, rows[i].why) != NULL;
		}
		assert_true(found);
	}
	ft_store_close(s);
}

/* Of an operation without a root or a redop old logs have no such column. */
static void out_of_place_counts_in_logs_of_any_age(void **state)
{
	static const char *const results[] = {
		"1024 256 float sum -1 52.5 1 1 0 51.9 1 1 0\n",
		"2048 256 float sum 52.5 1 1 0e+00 51.9 1 1 0e+00\n",
		"4096 256 float 52.5 1 1 0e+00 51.9 1 1 0e+00\n",
		"8192 256 float sum -1 52.5 1 1 0\n",
		"16384 256 float sum 52.5 1 1 0\n",
	};
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	const struct ft_measurement *m;
	char path[128], text[1024] =
				"# all_gather_perf\n#  Rank  0 Pid 1 on h device  0\n"
				"#  Rank  1 Pid 1 on h device  1\n";
	size_t n;

	snprintf(path, sizeof(path), "%s/o", x->folder);
	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++)
		strcat(text, results[i]);
	m = imported(s, FT_IMPORT_NCCL_TESTS, path, text, &n, &err);
	ok_or_say(m, err);
	assert_int_equal(n, 5);
	for (size_t i = 0; i < n; i++) {
		assert_true(m[i].time_us == 52.5);
		assert_string_equal(m[i].status, "ok");
	}
	ft_store_close(s);
}

/* cuDNN's, CK's and AITER's benchmarks each have words of their own for a mask. */
static void a_mask_has_many_names(void **state)
{
	static const struct {
		const char *word;
		bool causal;
	} words[] = { { "top_left", true }, { "bottom_right", true },
		      { "causal", true },   { "padding_causal", true },
		      { "t", true },	    { "b", true },
		      { "2", true },	    { "True", true },
		      { "no_mask", false }, { "non_causal", false },
		      { "padding", false }, { "0", false },
		      { "False", false },   { "", false } };
	struct scratch *x = *state;
	struct ft_error err;
	struct ft_store *s = ft_store_open(x->path, true, &err);
	const struct ft_measurement *m = NULL;
	char path[128], text[300];
	size_t n;

	snprintf(path, sizeof(path), "%s/m.csv", x->folder);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		snprintf(text, sizeof(text),
			 "batch,heads,seqlen,head_dim,attn_mask,fwd_time_ms\n"
			 "%zu,2,512,128,%s,1\n",
			 i + 1, words[i].word);
		m = imported(s, FT_IMPORT_ATTENTION, path, text, &n, &err);
		ok_or_say(m, err);
	}
	assert_int_equal(n, sizeof(words) / sizeof(*words));
	for (size_t i = 0; i < n; i++)
		if (m[i].causal != words[(int)m[i].batch - 1].causal)
			fail_msg("%s", words[(int)m[i].batch - 1].word);
	assert_null(imported(s, FT_IMPORT_ATTENTION, path,
			     "batch,heads,seqlen,head_dim,mask,fwd_time_ms\n"
			     "1,2,512,128,sliding,1\n",
			     &n, &err));
	assert_non_null(strstr(err.text, "'sliding' is no mask"));
	ft_store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_truth_is_what_validate_takes_for_one),
		TEST(a_word_that_no_table_has_is_refused),
		TEST(a_row_without_a_format_is_bf16),
		TEST(a_size_told_twice_alike_is_taken),
		TEST(attention_of_another_kind_is_kept_not_fitted),
		TEST(a_column_or_an_option_of_no_meaning_is_refused),
		TEST(a_size_with_a_letter_is_no_size),
		TEST(what_no_table_is_of_is_kept_and_not_fitted),
		TEST(out_of_place_counts_in_logs_of_any_age),
		TEST(a_mask_has_many_names),
	};

	gsl_set_error_handler_off();
	return cmocka_run_group_tests_name("calibrate/import words", tests, NULL, NULL);
}
