/*
 * tests/test_import_foreign.c - logs of nccl-tests and tables of attention as others write them, drawn: every version's
 * fields and names of columns, against what was drawn
 */
#include "tests/check.h"
#include "tests/scratch.h"

enum { DRAWS = 60, ROWS = 12 };

static uint64_t seed = 79;

#define PICK(list) (list)[rnd_below(&seed, (int)(sizeof(list) / sizeof(*(list))))]

static struct ft_store *store(void)
{
	struct ft_error err;
	struct ft_store *s = ft_store_open(":memory:", true, &err);

	ok_or_say(s, err);
	return s;
}

static size_t import(struct ft_store *s, enum ft_import format, const char *path)
{
	struct ft_probe_run run = { .backend = "theirs",
				    .device = "D",
				    .date = "2026-01-02",
				    .fabric = "nvlink" };
	struct ft_error err;
	size_t n = 0;

	ok_or_say(ft_store_import(s, format, path, &run, &n, &err), err);
	return n;
}

/* ---- nccl-tests -------------------------------------------------------------------------- */

static const char *const ops[][2] = {
	{ "all_reduce_perf", "all_reduce" },
	{ "all_gather_perf", "all_gather" },
	{ "reduce_scatter_perf", "reduce_scatter" },
	{ "alltoall_perf", "all_to_all" },
	{ "broadcast_perf", "broadcast" },
	{ "sendrecv_perf", "sendrecv" },
	{ "AllReduce", "all_reduce" },
	{ "AlltoAll", "all_to_all" },
};

struct line {
	double bytes, us;
};

/* size count type, redop and root where the version has them, and one block of numbers or two. */
static void put_line(FILE *f, const struct line *l, int words, bool wrong, bool twice)
{
	fprintf(f, "%s%14.0f  %12.0f  float", rnd_below(&seed, 2) ? "  " : "", l->bytes,
		l->bytes / 4);
	if (words > 0)
		fputs("     sum", f);
	if (words > 1)
		fputs("      -1", f);
	for (int i = 0; i <= twice; i++)
		fprintf(f, "  %8.2f  %6.2f  %6.2f%s", i ? 99999.25 : l->us, 1.5 + i,
			2.5 + i, wrong ? "      0" : "");
	fputs(rnd_below(&seed, 2) ? "\r\n" : "\n", f);
}

static void write_log(const char *path, const char *op, int ranks, bool apart,
		      struct line *line)
{
	/* of PyTorch's names a comment alone tells, of the program's any line */
	bool two_words = rnd_below(&seed, 2);
	const char *host = rnd_below(&seed, 2) ? "host" : "";
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fprintf(f, "# nThread 1 nGpus %d\n# Collective test starting: %s\n", ranks, op);
	for (int i = 0; i < ranks; i++)
		fprintf(f,
			"#  Rank %2d Group  0 Pid %d on   %s%d device %2d [0x1b] X\n",
			i, 100 + i, host, apart ? i / (ranks / 2) : 0, i);
	fputs("#\n#       size   count  type  time  algbw  busbw\n", f);
	for (int i = 0; i < ROWS; i++) {
		line[i].bytes = i ? 1024. * (1 + i * 10 + rnd_below(&seed, 10)) : 1;
		line[i].us =
			rnd_below(&seed, 8) ? 0.25 * (1 + rnd_below(&seed, 9000)) : 0;
		put_line(f, &line[i], two_words ? 2 : 1, true, true);
	}
	fputs("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 3.5\n", f);
	fclose(f);
}

/* How many fields there are tells where the time is. */
static void a_line_of_each_version_is_read(void **state)
{
	static const struct {
		int words;
		bool wrong, twice;
	} versions[] = { { 2, true, true },
			 { 1, true, true },
			 { 0, true, true },
			 { 2, true, false },
			 { 1, true, false } };
	struct scratch *x = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/log", x->folder);
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		struct line l = { 4096, 17.25 };
		const struct ft_measurement *m;
		struct ft_store *s = store();
		struct ft_error err;
		FILE *f = fopen(path, "w");
		size_t n;

		fputs("# all_gather_perf\n#  Rank  0 on a\n#  Rank  1 on a\n", f);
		put_line(f, &l, versions[i].words, versions[i].wrong,
			 versions[i].twice);
		fclose(f);
		assert_int_equal(import(s, FT_IMPORT_NCCL_TESTS, path), 1);
		m = ft_store_measurements(s, NULL, 0, &n, &err);
		assert_true(m->time_us > 17.24 && m->time_us < 17.26);
		assert_true(m->bytes > 4095 && m->bytes < 4097);
		assert_int_equal(m->gpus, 2);
		ft_store_close(s);
	}
}

static void logs_are_read_line_by_line(void **state)
{
	struct scratch *x = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/log", x->folder);
	for (int i = 0; i < DRAWS; i++) {
		size_t of = (size_t)rnd_below(&seed, 8), n, seen = 0;
		int ranks = 2 << rnd_below(&seed, 3);
		bool apart = rnd_below(&seed, 3) == 0;
		const struct ft_measurement *m;
		struct ft_store *s = store();
		struct line line[ROWS];
		struct ft_error err;

		write_log(path, ops[of][0], ranks, apart, line);
		n = import(s, FT_IMPORT_NCCL_TESTS, path);
		m = ft_store_measurements(s, NULL, 0, &n, &err);
		for (int k = 0; k < ROWS; k++) {
			bool found = false;

			for (size_t r = 0; r < n; r++)
				if (m[r].bytes > line[k].bytes - 0.5 &&
				    m[r].bytes < line[k].bytes + 0.5) {
					found = true;
					near_frac(m[r].time_us, line[k].us, 1e-9);
					assert_string_equal(m[r].kernel, ops[of][1]);
					assert_string_equal(m[r].kind, "collective");
					assert_int_equal(m[r].gpus, ranks);
					assert_string_equal(m[r].status,
							    apart ? "left-out" : "ok");
				}
			assert_int_equal(found, line[k].us > 0);
			seen += found;
		}
		assert_int_equal(seen, n);
		ft_store_close(s);
	}
}

/* The number behind time and rates, out of place, is of wrong elements; of old versions it is the
 * largest error. */
static void a_line_with_wrong_elements_is_not_fitted(void **state)
{
	static const struct {
		const char *wrong, *status;
	} lines[] = { { "0", "ok" },	 { "7", "wrong" },  { "N/A", "ok" },
		      { "2e-06", "ok" }, { "0e+00", "ok" }, { "1", "wrong" } };
	struct scratch *x = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/log", x->folder);
	for (size_t i = 0; i < 2 * sizeof(lines) / sizeof(*lines); i++) {
		const char *wrong = lines[i / 2].wrong;
		const struct ft_measurement *m;
		struct ft_store *s = store();
		struct ft_error err;
		FILE *f = fopen(path, "w");
		size_t n;

		fputs("# all_reduce_perf\n#  Rank  0 on a\n#  Rank  1 on a\n", f);
		fprintf(f, "4096 1024 float sum %s 9.5 0.4 0.8 %s%s\n",
			i % 2 ? "-1" : "", wrong, i % 2 ? " 9.4 0.4 0.8 5" : "");
		fclose(f);
		assert_int_equal(import(s, FT_IMPORT_NCCL_TESTS, path), 1);
		m = ft_store_measurements(s, NULL, 0, &n, &err);
		assert_string_equal(m->status, lines[i / 2].status);
		ft_store_close(s);
	}
}

/* What cannot be told of a result, and where. */
static void a_log_without_its_head_is_refused(void **state)
{
	static const char result[] =
		"4096 1024 float sum -1 9.5 0.4 0.8 0 9.4 0.4 0.8 0\n";
	static const struct {
		const char *head, *why;
		int line;
	} logs[] = {
		{ "#  Rank  0 on a\n#  Rank  1 on a\n", "names no collective", 1 },
		{ "# all_reduce_perf\n", "names no ranks", 1 },
		{ "# all_reduce_perf\n#  Rank  0 on a\n",
		  "is a run of one rank, which sends nothing", 2 },
		{ "#  Rank  0 on a\n", "names no collective", 1 },
		{ "# all_reduce_perf\n#  Rank  0 on a\n#  Rank  1 on a\n", NULL, 0 },
	};
	struct scratch *x = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/log", x->folder);
	for (size_t i = 0; i < sizeof(logs) / sizeof(*logs); i++) {
		struct ft_probe_run run = { .backend = "theirs",
					    .device = "D",
					    .date = "2026-01-02" };
		struct ft_store *s = store();
		FILE *f = fopen(path, "w");
		struct ft_error err;
		size_t n = 0;
		bool ok;

		fprintf(f, "%s%s", logs[i].head, result);
		fclose(f);
		ok = ft_store_import(s, FT_IMPORT_NCCL_TESTS, path, &run, &n, &err);
		assert_int_equal(ok, !logs[i].why);
		assert_int_equal(n, ok);
		if (!ok) {
			assert_non_null(strstr(err.text, logs[i].why));
			assert_int_equal(err.line, logs[i].line);
		}
		ft_store_close(s);
	}
}

/* ---- attention ---------------------------------------------------------------------------------- */

enum { BATCH, HEADS, KV, SEQUENCE, DIM, CAUSAL, FORWARD, BACKWARD, DTYPE, COLUMNS };

static const char *const names[COLUMNS][6] = {
	{ "batch_size", "batch", "b" },
	{ "num_q_heads", "nheads", "nhead", "heads", "h", "hq" },
	{ "num_kv_heads", "nheads_k", "nhead_k", "kv_heads", "hkv" },
	{ "q_seqlen", "seqlen", "seqlen_q", "sequence_length", "s", "sq" },
	{ "head_dim", "hdim", "head_dim_qk", "d" },
	{ "is_causal", "causal", "attn_mask", "mask" },
	{ "fwd_time_ms", "fwd_time(ms)", "forward_ms", "fwd_ms" },
	{ "bwd_time_ms", "bwd_time(ms)", "backward_ms", "bwd_ms" },
	{ "dtype", "data_type", "prec" },
};

static const struct {
	const char *word;
	bool causal;
} masks[] = { { "true", true },
	      { "True", true },
	      { "1", true },
	      { "causal", true },
	      { "top_left", true },
	      { "bottom_right", true },
	      { "2", true },
	      { "", false },
	      { "false", false },
	      { "0", false },
	      { "no_mask", false },
	      { "padding", false },
	      { "padding_causal", true } };

static const struct {
	const char *word, *is;
} formats[] = { { "", "bf16" },	      { "bf16", "bf16" },   { "bfloat16", "bf16" },
		{ "fp8bf16", "fp8" }, { "e4m3", "fp8" },    { "float8", "fp8" },
		{ "half", "fp16" },   { "float16", "fp16" } };

struct table {
	int name[COLUMNS]; /* below 0: it has no such column */
	bool backend;
	struct {
		int batch, heads, kv, mask, format, of;
		double forward_ms, backward_ms; /* 0: "OOM" */
	} row[ROWS];
};

static void draw_table(struct table *t)
{
	for (int c = 0; c < COLUMNS; c++) {
		int n = 0;

		while (n < 6 && names[c][n])
			n++;
		t->name[c] = rnd_below(&seed, n);
		if ((c == KV || c == CAUSAL || c == BACKWARD || c == DTYPE) &&
		    rnd_below(&seed, 4) == 0)
			t->name[c] = -1;
	}
	t->backend = rnd_below(&seed, 2);
	for (int i = 0; i < ROWS; i++) {
		t->row[i].batch = 1 + rnd_below(&seed, 8);
		t->row[i].heads = 8 * (1 + rnd_below(&seed, 8));
		t->row[i].kv = 1 + rnd_below(&seed, 8);
		t->row[i].mask = rnd_below(&seed, 13);
		t->row[i].format = rnd_below(&seed, 8);
		t->row[i].of = rnd_below(&seed, 3);
		t->row[i].forward_ms =
			rnd_below(&seed, 5) ? 0.25 * (1 + rnd_below(&seed, 99)) : 0;
		t->row[i].backward_ms =
			rnd_below(&seed, 5) ? 0.25 * (1 + rnd_below(&seed, 99)) : 0;
	}
}

static const char *const backends[] = { "cudnn", "fa2", "fa3" };

static const char *ms(char text[32], double value)
{
	snprintf(text, 32, value > 0 ? "%.2f" : "OOM", value);
	return text;
}

static void write_table(const char *path, const struct table *t)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(t->backend ? "backend" : "note", f);
	for (int c = 0; c < COLUMNS; c++)
		if (t->name[c] >= 0)
			fprintf(f, ",%s", names[c][t->name[c]]);
	for (int i = 0; i < ROWS; i++) {
		char numbers[4][32], times[2][32];
		const char *cells[COLUMNS] = { numbers[0],
					       numbers[1],
					       numbers[2],
					       numbers[3],
					       "128",
					       masks[t->row[i].mask].word,
					       ms(times[0], t->row[i].forward_ms),
					       ms(times[1], t->row[i].backward_ms),
					       formats[t->row[i].format].word };

		snprintf(numbers[0], 32, "%d", t->row[i].batch);
		snprintf(numbers[1], 32, "%d", t->row[i].heads);
		snprintf(numbers[2], 32, "%d", t->row[i].kv);
		snprintf(numbers[3], 32, "%d",
			 512 * (i + 1)); /* tells the rows apart */
		fprintf(f, "\n%s", backends[t->row[i].of]);
		for (int c = 0; c < COLUMNS; c++)
			if (t->name[c] >= 0)
				fprintf(f, ",%s", cells[c]);
	}
	fputs("\n", f);
	fclose(f);
}

static void is_row(const struct ft_measurement *m, const struct table *t, int i,
		   double time_ms)
{
	assert_string_equal(m->kind, "attention");
	near_frac(m->time_us, time_ms * 1e3, 1e-9);
	assert_int_equal(m->batch, t->row[i].batch);
	assert_int_equal(m->heads, t->row[i].heads);
	assert_int_equal(m->kv_heads, t->name[KV] < 0 ? t->row[i].heads : t->row[i].kv);
	assert_int_equal(m->head_dim, 128);
	assert_int_equal(m->causal,
			 t->name[CAUSAL] >= 0 && masks[t->row[i].mask].causal);
	assert_string_equal(m->dtype,
			    t->name[DTYPE] < 0 ? "bf16" : formats[t->row[i].format].is);
	assert_string_equal(m->impl, t->backend ? backends[t->row[i].of] : "theirs");
}

static void tables_of_attention_are_read(void **state)
{
	struct scratch *x = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/t.csv", x->folder);
	for (int k = 0; k < DRAWS; k++) {
		const struct ft_measurement *m;
		struct ft_store *s = store();
		struct ft_error err;
		size_t n, want = 0;
		struct table t;

		draw_table(&t);
		write_table(path, &t);
		n = import(s, FT_IMPORT_ATTENTION, path);
		m = ft_store_measurements(s, NULL, 0, &n, &err);
		for (int i = 0; i < ROWS; i++)
			want += (size_t)(t.row[i].forward_ms > 0) +
				(size_t)(t.name[BACKWARD] >= 0 &&
					 t.row[i].backward_ms > 0);
		assert_int_equal(n, want);
		for (size_t r = 0; r < n; r++) {
			int i = (int)m[r].sequence / 512 - 1;
			bool back = !strcmp(m[r].pass, "backward");

			assert_true(back || !strcmp(m[r].pass, "forward"));
			is_row(&m[r], &t, i,
			       back ? t.row[i].backward_ms : t.row[i].forward_ms);
		}
		ft_store_close(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_line_of_each_version_is_read),
		TEST(logs_are_read_line_by_line),
		TEST(a_line_with_wrong_elements_is_not_fitted),
		TEST(a_log_without_its_head_is_refused),
		TEST(tables_of_attention_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
