/*
 * calibrate/import_foreign.c - formats of other people's benchmarks
 *
 * nccl-tests, rccl-tests: lines "size count type redop root time algbw busbw ...";
 * the op is in the comment that names the program (all_reduce_perf), or in the
 * collective line; ranks are the "Rank" lines, which name their hosts. Out of place
 * counts; where elements of it came out wrong, the line is kept and not fitted. A log may
 * hold several runs, one behind another. Runs of several hosts are kept, not fitted: a
 * profile is of one node.
 *
 * Attention: cuDNN's and AITER's benchmark CSV, by what their columns are called:
 *   batch_size|batch|b, num_q_heads|nheads|heads|h, num_kv_heads|nheads_k|hkv,
 *   seqlen|seqlen_q|s|sq, head_dim|d, causal|mask, fwd_time_ms|fwd(ms), bwd_...
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "calibrate/import.h"
#include "calibrate/store.h"

static const char *const ops[][2] = {
	{ "all_reduce", "all_reduce" },		{ "all_gather", "all_gather" },
	{ "reduce_scatter", "reduce_scatter" }, { "alltoall", "all_to_all" },
	{ "broadcast", "broadcast" },		{ "sendrecv", "sendrecv" },
	{ "AllReduce", "all_reduce" },		{ "AllGather", "all_gather" },
	{ "ReduceScatter", "reduce_scatter" },	{ "AlltoAll", "all_to_all" },
};

/* Fields of a result line: numbers first and last; -1 when it is none. */
static int fields(char *line, char **field, int most)
{
	char *rest;
	int n = 0;

	for (char *f = strtok_r(line, " \t\r", &rest); f && n < most;
	     f = strtok_r(NULL, " \t\r", &rest))
		field[n++] = f;
	return n >= 8 && strtod(field[0], NULL) > 0 ? n : -1;
}

/* A log of nccl-tests while it is read. */
struct nccl_log {
	const char *op;		    /* ours; NULL until the log names one */
	int ranks, line, rank_line; /* rank_line: of the last rank */
	char host[64];		    /* of the first rank */
	bool several;		    /* a rank has another */
	bool told, named; /* results since the last rank; an op since results */
};

/* "#  Rank  0 Group  0 Pid  1 on  HOST device  0 [0x1b] NAME" */
static void read_rank(struct nccl_log *log, const char *text)
{
	const char *on = strstr(text, " on ");
	char host[64];

	if (log->told) /* another run begins */
		*log = (struct nccl_log){ .op = log->named ? log->op : NULL,
					  .named = log->named,
					  .line = log->line };
	log->ranks++;
	log->rank_line = log->line;
	if (!on || sscanf(on, " on %63s", host) != 1)
		return;
	log->several |= log->host[0] && strcmp(log->host, host) != 0;
	memcpy(log->host, host, sizeof(host));
}

/* What a line of the head says. */
static void read_head(struct nccl_log *log, const char *text)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
		if ((text[0] == '#' || strstr(text, "_perf")) &&
		    strstr(text, ops[i][0])) {
			log->op = ops[i][1];
			log->named = true;
		}
	if (text[0] == '#' && strstr(text, " Rank "))
		read_rank(log, text);
}

/* Of so many fields: which is the time, out of place. Old versions have no root, or no
 * redop, where the operation has none; and there may be one block of four, or two. */
static int time_field(int fields)
{
	return fields >= 13 ? 5 : fields >= 11 ? fields - 8 : fields - 4;
}

/* Behind time and rates of a line of so many fields: how many elements are wrong, or N/A where
 * nobody looked. Old versions print the largest error there, which has an exponent. */
static bool is_wrong(char **field, int fields)
{
	int at = time_field(fields) + 3;

	return at < fields && field[at][strspn(field[at], "0123456789")] == '\0' &&
	       strtod(field[at], NULL) > 0;
}

/* Only what is ok is fitted. */
static void judge(struct ft_measurement *m, const struct nccl_log *log, char **field,
		  int fields)
{
	bool wrong = is_wrong(field, fields);

	m->status = wrong ? "wrong" : log->several ? "left-out" : "ok";
	m->why = wrong ? "wrong elements" : log->several ? "several nodes" : "";
}

/* Results come behind the operation and at least two ranks. */
static bool has_head(const struct nccl_log *log, const char *path, struct ft_error *err)
{
	struct ft_mark at = { path, log->ranks ? log->rank_line : 1, 1 };

	if (log->op && log->ranks == 1)
		return ft_fail(
			err, &at,
			"is a run of one rank, which sends nothing; take the log "
			"of a run on two GPUs or more (-g 2, or a rank for each)");
	at.line = 1;
	return (log->op && log->ranks) ||
	       ft_fail(err, &at,
		       "names %s; nccl-tests prints it at the top, keep those lines",
		       log->op ? "no ranks" : "no collective");
}

/* What rounds to no time says nothing of the rate; less than that is a mistake. Other words than numbers
 * are those of other lines. */
static bool took_time(const struct ft_mark *at, const char *word, struct ft_error *err)
{
	char *end;
	double v = strtod(word, &end);

	if (v < 0)
		return ft_fail(err, at, "the time '%.40s' is below 0", word);
	if (end != word && !(v > 0))
		fprintf(stderr,
			"%s:%d: warning: the line took no time and is left out\n",
			at->file, at->line);
	return true;
}

/* size count type [redop] [root] | time algbw busbw wrong | ...  1: a result, 0: another
 * line, -1: a mistake. */
static int read_result(const struct nccl_log *log, const char *path, char *text,
		       struct ft_measurement *m, struct ft_error *err)
{
	struct ft_mark at = { path, log->line, 1 };
	char *field[16];
	int k = text[0] == '#' ? -1 : fields(text, field, 16);

	if (k < 0)
		return 0;
	if (!has_head(log, path, err))
		return -1;
	*m = (struct ft_measurement){
		.kind = "collective",
		.kernel = log->op,
		.dtype = "",
		.layout = "",
		.impl = "",
		.pass = "",
		.bytes = strtod(field[0], NULL),
		.gpus = log->ranks,
		.time_us = strtod(field[time_field(k)], NULL),
	};
	judge(m, log, field, k);
	if (!isfinite(m->time_us) || !isfinite(m->bytes))
		ft_fail(err, &at, "a size or a time is not a number");
	else if (took_time(&at, field[time_field(k)], err))
		return m->time_us > 0;
	return -1;
}

bool import_nccl_tests(struct ft_store *s, const char *path,
		       const struct ft_probe_run *run, size_t *n, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct ft_mark at = { path, 1, 1 };
	struct nccl_log log = { 0 };
	size_t len;
	char *text = file_read(&mem, path, LIMIT_LOG_BYTES, &len, err), *next;
	bool ok =
		text && import_is_plain(path, text, err) && ft_store_begin(s, run, err);

	for (; ok && *text; text = next) {
		char *end = strchr(text, '\n'), id[256];
		struct ft_measurement m;
		int got;

		next = end ? end + 1 : text + strlen(text);
		if (end)
			*end = '\0';
		log.line++;
		read_head(&log, text);
		got = read_result(&log, path, text, &m, err);
		ok = got >= 0;
		if (got <= 0)
			continue;
		log.told = true;
		log.named = false;
		import_name(&m, id);
		ok = ft_store_add(s, &m, err);
		*n += ok;
	}
	if (ok && !*n)
		ok = ft_fail(err, &at, "holds no line of results");
	arena_release(&mem);
	return ok;
}

/* ---- attention --------------------------------------------------------------------- */

static int any_of(const struct csv *t, const char *const *names)
{
	for (; *names; names++)
		if (csv_column(t, *names) >= 0)
			return csv_column(t, *names);
	return -1;
}

enum { BATCH, HEADS, KV, SEQUENCE, DIM, CAUSAL, FORWARD, BACKWARD, DTYPE, COLUMNS };

static const char *const known[COLUMNS][7] = {
	[BATCH] = { "batch_size", "batch", "b" },
	[HEADS] = { "num_q_heads", "nheads", "nhead", "heads", "h", "hq" },
	[KV] = { "num_kv_heads", "nheads_k", "nhead_k", "kv_heads", "hkv" },
	[SEQUENCE] = { "q_seqlen", "seqlen", "seqlen_q", "sequence_length", "s", "sq" },
	[DIM] = { "head_dim", "hdim", "head_dim_qk", "d" },
	[CAUSAL] = { "is_causal", "causal", "attn_mask", "mask" },
	[FORWARD] = { "fwd_time_ms", "fwd_time(ms)", "forward_ms", "fwd_ms" },
	[BACKWARD] = { "bwd_time_ms", "bwd_time(ms)", "backward_ms", "bwd_ms" },
	[DTYPE] = { "dtype", "data_type", "prec" },
};

/* Benchmarks write bf16, bfloat16, fp8bf16, fp8_e4m3 ...; without a word it is
 * bf16. NULL: a format that attention tables have not. */
static const char *format_of(const struct csv *t, size_t row, int column)
{
	static const char *const words[][2] = {
		{ "fp8", "fp8" },      { "float8", "fp8" },    { "e4m3", "fp8" },
		{ "bf16", "bf16" },    { "bfloat16", "bf16" }, { "fp16", "fp16" },
		{ "float16", "fp16" }, { "half", "fp16" },
	};
	const char *said = column < 0 ? "" : csv_text(t, row, column);

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strstr(said, words[i][0]))
			return words[i][1];
	return said[0] ? NULL : "bf16";
}

/* A size, which is whole and above 0. */
static bool read_size(const struct csv *t, size_t row, int column, double *size,
		      struct ft_error *err)
{
	struct ft_mark at = csv_mark(t, row, column);

	if (!csv_number(t, row, column, 0, size, err))
		return false;
	if (!(*size > 0))
		return ft_fail(err, &at, "%s is not above 0", t->column[column]);
	return *size <= floor(*size) ||
	       ft_fail(err, &at, "%s should be a whole number", t->column[column]);
}

/* Milliseconds; benchmarks write "OOM" and the like where they have none: 0. */
static bool read_ms(const struct csv *t, size_t row, int column, double *ms,
		    struct ft_error *err)
{
	const char *text = column < 0 ? "" : csv_text(t, row, column);
	size_t digit = strcspn(text, "0123456789");
	struct ft_mark at;

	*ms = 0;
	if (!text[digit] || digit > strspn(text, "+-."))
		return true;
	at = csv_mark(t, row, column);
	return csv_number(t, row, column, 0, ms, err) &&
	       (*ms >= 0 || ft_fail(err, &at, "the time '%.40s' is below 0", text));
}

static bool read_sizes(const struct csv *t, size_t i, const int at[COLUMNS],
		       struct ft_measurement *m, struct ft_error *err)
{
	return read_size(t, i, at[BATCH], &m->batch, err) &&
	       read_size(t, i, at[HEADS], &m->heads, err) &&
	       read_size(t, i, at[at[KV] < 0 ? HEADS : KV], &m->kv_heads, err) &&
	       read_size(t, i, at[SEQUENCE], &m->sequence, err) &&
	       read_size(t, i, at[DIM], &m->head_dim, err);
}

/* The number in the first of the columns that the table has; 0: none. */
static double number_in(const struct csv *t, size_t row, const char *const *names)
{
	struct ft_error ignored;
	double v;

	return csv_number(t, row, any_of(t, names), 0, &v, &ignored) ? v : 0;
}

/* What tables of a profile are not of is kept, not fitted: why; "": it is fitted. */
static const char *left_out(const struct csv *t, size_t row,
			    const struct ft_measurement *m)
{
	static const char *const values[] = { "head_dim_vo", "head_dim_v", "hdim_v",
					      "dv", NULL };
	static const char *const keys[] = { "kv_seqlen", "seqlen_k", "seqlen_kv", "skv",
					    "seqlens_k", "sk",	     NULL };
	static const char *const window[] = { "sliding_window_size", "sliding_window",
					      "window_size", "window_left", NULL };
	double v = number_in(t, row, values), k = number_in(t, row, keys);
	double w = number_in(t, row, window);

	return v > 0 && v != m->head_dim ?
		       "values of another size: tables have one for all" :
	       k > 0 && k != m->sequence ?
		       "keys of another length: tables have one for all" :
	       w > 0 && w < m->sequence ? "a window: tables are of all keys" :
					  "";
}

static bool add_pass(struct ft_store *s, struct ft_measurement m, double ms,
		     const char *pass, size_t *n, struct ft_error *err)
{
	char id[256];

	if (!(ms > 0))
		return true;
	m.pass = pass;
	m.time_us = ms * 1e3;
	import_name(&m, id);
	/* beside the row of the same shape that is fitted */
	snprintf(id + strlen(id), sizeof(id) - strlen(id), "%s%s", m.why[0] ? " " : "",
		 m.why);
	++*n;
	return ft_store_add(s, &m, err);
}

static bool find_columns(const struct csv *t, const char *path, int at[COLUMNS],
			 struct ft_error *err)
{
	struct ft_mark top = { path, 1, 1 };

	for (int i = 0; i < COLUMNS; i++) {
		at[i] = any_of(t, known[i]);
		if (at[i] < 0 && i != KV && i != CAUSAL && i != BACKWARD && i != DTYPE)
			return ft_fail(err, &top, "lacks the column '%s'", known[i][0]);
	}
	return true;
}

/* What benchmarks write of a mask: a truth, causal or padding_causal, or from which corner
 * its diagonal starts, top_left or bottom_right (t, b; 1, 2), the same where there are as
 * many keys as queries. false: none of these. */
static bool mask_of(const char *word, bool *causal)
{
	bool none = !word[0] || strchr("nNfF0", word[0]) || !strcmp(word, "padding");

	*causal = !none;
	return none || strchr("tTbB12", word[0]) || strstr(word, "causal");
}

/* A benchmark's table, where its columns are, and what implementation it timed. */
struct attention_log {
	const struct csv *t;
	int at[COLUMNS];
	const char *impl;
};

static bool add_attention(struct ft_store *s, const struct attention_log *log, size_t i,
			  size_t *n, struct ft_error *err)
{
	const struct csv *t = log->t;
	const int *at = log->at;
	int backend = csv_column(t, "backend");
	const char *dtype = format_of(t, i, at[DTYPE]);
	struct ft_measurement m = {
		.kind = "attention",
		.kernel = "",
		.layout = "",
		.dtype = dtype,
		.impl = backend >= 0 ? csv_text(t, i, backend) : log->impl,
	};
	const char *mask = csv_text(t, i, at[CAUSAL]);
	double forward_ms, backward_ms;

	if (!dtype) {
		struct ft_mark top = { t->file, 1, 1 };

		return ft_fail(err, &top,
			       "row %zu: '%s' is not one of bf16, "
			       "fp16, fp8",
			       i + 1, csv_text(t, i, at[DTYPE]));
	}
	if (!mask_of(mask, &m.causal)) {
		struct ft_mark place = csv_mark(t, i, at[CAUSAL]);

		return ft_fail(err, &place,
			       "'%.40s' is no mask that is known: true, false, "
			       "causal, top_left, bottom_right, no_mask",
			       mask);
	}
	if (!read_sizes(t, i, at, &m, err))
		return false;
	m.why = left_out(t, i, &m);
	m.status = m.why[0] ? "left-out" : "";
	return read_ms(t, i, at[FORWARD], &forward_ms, err) &&
	       read_ms(t, i, at[BACKWARD], &backward_ms, err) &&
	       add_pass(s, m, forward_ms, "forward", n, err) &&
	       add_pass(s, m, backward_ms, "backward", n, err);
}

bool import_attention(struct ft_store *s, const char *path,
		      const struct ft_probe_run *run, size_t *n, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct attention_log log = { .t = csv_read_file(&mem, path, err),
				     .impl = run->backend };
	bool ok = log.t && find_columns(log.t, path, log.at, err) &&
		  ft_store_begin(s, run, err);

	for (size_t i = 0; ok && i < log.t->n_rows; i++)
		ok = add_attention(s, &log, i, n, err);
	arena_release(&mem);
	return ok;
}
