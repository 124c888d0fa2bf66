/*
 * calibrate/import.c - measurements that others made, into the store
 *
 * Each import is a run of its own with the file as its source. A file that lacks
 * a needed column changes nothing: all of it is one transaction.
 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/plain.h"
#include "base/reader.h"
#include "base/text.h"
#include "calibrate/import.h"
#include "calibrate/store.h"
#include "foretoken/hw.h"

/* ---- JSON lines of the probe ----------------------------------------------- */

static const char *word(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : "";
}

static double number(const json_t *row, const char *key, double missing)
{
	const json_t *v = json_object_get(row, key);

	return json_is_number(v) ? json_number_value(v) : missing;
}

static bool truth(const json_t *row, const char *key)
{
	return json_is_true(json_object_get(row, key));
}

static struct ft_measurement of_json(const json_t *r)
{
	return (struct ft_measurement){
		.cell = word(r, "cell"),
		.kind = word(r, "kind"),
		.kernel = word(r, "kernel"),
		.dtype = word(r, "dtype"),
		.layout = word(r, "layout"),
		.impl = word(r, "impl"),
		.pass = word(r, "pass"),
		.m = number(r, "m", 0),
		.n = number(r, "n", 0),
		.k = number(r, "k", 0),
		.batch = number(r, "batch", 0),
		.heads = number(r, "heads", 0),
		.kv_heads = number(r, "kv_heads", 0),
		.sequence = number(r, "sequence_length", 0),
		.head_dim = number(r, "head_dim", 0),
		.bytes = number(r, "bytes", 0),
		.gpus = number(r, "gpus", 0),
		.from = number(r, "from", 0),
		.to = number(r, "to", 0),
		.causal = truth(r, "causal"),
		.warm = truth(r, "warm"),
		.accumulate = truth(r, "accumulate"),
		.sustained = !strcmp(word(r, "clock"), "sustained"),
		.status = word(r, "status"),
		.why = word(r, "why"),
		.time_us = number(r, "time_us", 0),
		.p10_us = number(r, "p10_us", 0),
		.p90_us = number(r, "p90_us", 0),
		.reps = number(r, "reps", 0),
		.relative_error = number(r, "relative_error", -1),
		.in_step = truth(r, "in_step"),
		.source = word(r, "source"),
		.date = word(r, "date"),
		.alone_us = number(r, "alone_us", 0),
		.other_us = number(r, "other_us", 0),
		.other_alone_us = number(r, "other_alone_us", 0),
		.clock_mhz = number(r, "clock_mhz", -1),
		.power_w = number(r, "power_w", -1),
		.temperature_c = number(r, "temperature_c", -1),
	};
}

/* "2026-11-29", or a month: dates are compared as text. */
static bool is_date(const char *text)
{
	return !*text || (strlen(text) > 4 && reader_is_date(text));
}

/* What is fitted gets it, and a profile of the future is not read. */
static bool is_past(const char *date, struct ft_error *err)
{
	return !reader_in_future(date) ||
	       ft_fail(err, NULL, "the date %s lies in the future", date);
}

static bool begin_json(struct ft_store *s, const json_t *r, const char *source,
		       struct ft_error *err)
{
	char libraries[256];
	struct ft_probe_run run = { .backend = word(r, "backend"),
				    .device = word(r, "device"),
				    .date = word(r, "date"),
				    .driver = word(r, "driver"),
				    .fabric = word(r, "fabric"),
				    .libraries = libraries,
				    .source = source };
	double format = number(r, "format", 0);

	if (format < 1 || format >= 2)
		return ft_fail(err, NULL,
			       "these JSON lines are of format %g, "
			       "this foretoken reads 1",
			       format);
	if (!is_date(run.date))
		return ft_fail(err, NULL,
			       "a run's date is '%.40s'; write it as 2026-11-29",
			       run.date);
	snprintf(libraries, sizeof(libraries), "%s; %s; %s; %s", word(r, "runtime"),
		 word(r, "blas"), word(r, "attention_library"), word(r, "ccl"));
	return ft_store_begin(s, &run, err);
}

/* A key that should be a number and is not: it would be read as missing. */
static const char *not_a_number(const json_t *r)
{
	static const char *const numbers[] = {
		"m",
		"n",
		"k",
		"batch",
		"heads",
		"kv_heads",
		"sequence_length",
		"head_dim",
		"bytes",
		"gpus",
		"from",
		"to",
		"time_us",
		"p10_us",
		"p90_us",
		"reps",
		"alone_us",
		"other_us",
		"other_alone_us",
		"relative_error",
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		const json_t *v = json_object_get(r, numbers[i]);

		if (v && !json_is_null(v) && !json_is_number(v))
			return numbers[i];
	}
	return NULL;
}

/* A word that no table has would count as another one or spoil the profile, and what is not
 * true would count as false. */
static const char *unknown_word(const json_t *r, const struct ft_measurement *m)
{
	static const char *const truths[] = { "causal", "warm", "accumulate",
					      "in_step" };
	enum ft_collective op;
	enum ft_layout layout;
	enum ft_dtype dtype;
	enum ft_pass pass;

	for (size_t i = 0; i < sizeof(truths) / sizeof(*truths); i++) {
		const json_t *v = json_object_get(r, truths[i]);

		if (v && !json_is_null(v) && !json_is_boolean(v))
			return truths[i];
	}
	if (m->dtype[0] && !ft_dtype_find(m->dtype, &dtype))
		return "dtype";
	if (m->layout[0] && !ft_layout_find(m->layout, &layout))
		return "layout";
	if (m->pass[0] && !ft_pass_find(m->pass, &pass))
		return "pass";
	if (measurement_is(m, "collective") && m->kernel[0] &&
	    !ft_collective_find(m->kernel, &op))
		return "kernel";
	return NULL;
}

/* What a cell of its kind cannot do without; NULL: all is there. */
static const char *missing_size(const struct ft_measurement *m)
{
	if (!strcmp(m->kind, "gemm"))
		return !(m->m > 0) ? "m" : !(m->n > 0) ? "n" : m->k > 0 ? NULL : "k";
	if (!strcmp(m->kind, "attention"))
		return !(m->heads > 0)	  ? "heads" :
		       !(m->sequence > 0) ? "sequence_length" :
		       m->head_dim > 0	  ? NULL :
					    "head_dim";
	if (!strcmp(m->kind, "collective"))
		return !(m->gpus > 1) ? "gpus" : m->bytes > 0 ? NULL : "bytes";
	return NULL;
}

/* What tables of a profile are not of is kept, not fitted. */
static bool judge(const json_t *r, struct ft_measurement *m, struct ft_error *err)
{
	const char *clock = word(r, "clock"), *why = NULL;

	if (strcmp(m->status, "ok") != 0)
		return true;
	/* torch/kernels.py --only long: products for part of the time, at a clock of neither kind */
	if (text_begins_with(clock, "share "))
		why = "at a clock between a burst's and a sustained one";
	else if (clock[0] && strcmp(clock, "burst") != 0 && !m->sustained)
		return ft_fail(err, NULL,
			       "the clock of the measurement '%.60s' is '%.40s'; it is "
			       "burst, sustained, or of a share of the time",
			       m->cell, clock);
	else if (measurement_is(m, "gemm") && number(r, "groups", 0) > 1)
		why = "grouped: tables are of single products";
	if (why) {
		m->status = "left-out";
		m->why = why;
	}
	return true;
}

/* A size that is a part of one; NULL: all are whole. */
static const char *not_whole(const json_t *r)
{
	static const char *const sizes[] = {
		"m",	    "n",     "k",	 "groups",
		"batch",    "heads", "kv_heads", "sequence_length",
		"head_dim", "gpus",  "from",	 "to"
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		double v = number(r, sizes[i], 0);

		if (v < floor(v) || v > floor(v))
			return sizes[i];
	}
	return NULL;
}

/* Measured is what has a time and a size; what failed has neither. */
static bool is_measured(const json_t *r, const struct ft_measurement *m,
			struct ft_error *err)
{
	const char *key = not_a_number(r), *size = missing_size(m);

	if (key)
		return ft_fail(err, NULL,
			       "'%s' of the measurement '%.60s' is not a number", key,
			       m->cell);
	if (strcmp(m->status, "ok") != 0)
		return true;
	if (!(m->time_us > 0))
		return ft_fail(
			err, NULL,
			"the measurement '%.60s' is ok and has no time_us above 0",
			m->cell);
	if (size)
		return ft_fail(err, NULL,
			       "the measurement '%.60s' is ok and has no %s%s", m->cell,
			       size, !strcmp(size, "gpus") ? " above 1" : " above 0");
	key = not_whole(r);
	if (key)
		return ft_fail(
			err, NULL,
			"%s of the measurement '%.60s' should be a whole number, "
			"not %g",
			key, m->cell, number(r, key, 0));
	if (m->p10_us > m->p90_us && m->p90_us > 0)
		return ft_fail(err, NULL,
			       "the measurement '%.60s' has a p10_us above its p90_us",
			       m->cell);
	key = unknown_word(r, m);
	return !key || ft_fail(err, NULL,
			       "'%s' of the measurement '%.60s' is '%.40s', which it "
			       "cannot be",
			       key, m->cell, word(r, key));
}

bool ft_store_line(struct ft_store *s, const char *line, const char *source,
		   bool *broken, struct ft_error *err)
{
	PLAIN_NUMBERS;
	json_t *r = json_loads(line, 0, NULL);
	const char *record = word(r, "record");
	bool ok = true;

	*broken = false;
	if (!strcmp(record, "run")) {
		ok = begin_json(s, r, source, err);
	} else if (!strcmp(record, "measurement") && word(r, "cell")[0] &&
		   store_kind(word(r, "kind"))) {
		struct ft_measurement m = of_json(r);

		ok = is_measured(r, &m, err) && judge(r, &m, err) &&
		     ft_store_add(s, &m, err);
	} else {
		*broken = true;
	}
	json_decref(r);
	return ok;
}

/* What lines were, so far. */
struct lines {
	size_t measurements, runs;
};

/* Of a line that is none of the probe's: is it a measurement but for its kind? */
static void say_left_out(const char *text, const struct ft_mark *at)
{
	json_t *r = json_loads(text, 0, NULL);
	const char *kind = word(r, "kind");
	bool known = strcmp(word(r, "record"), "measurement") != 0 ||
		     !word(r, "cell")[0] || !kind[0];

	if (known)
		fprintf(stderr, "%s:%d: warning: a broken line is left out\n", at->file,
			at->line);
	else
		fprintf(stderr,
			"%s:%d: warning: a measurement of the unknown kind '%.40s' is "
			"left out\n",
			at->file, at->line, kind);
	json_decref(r);
}

static bool import_line(struct ft_store *s, const char *text, const char *source,
			const struct ft_mark *at, struct lines *n, struct ft_error *err)
{
	bool is_run = strstr(text, "\"record\":\"run\"") ||
		      strstr(text, "\"record\": \"run\"");
	bool broken, ok = ft_store_line(s, text, source, &broken, err);

	*(is_run ? &n->runs : &n->measurements) += ok && !broken;
	if (!ok && !err->line) {
		snprintf(err->file, sizeof(err->file), "%s", at->file);
		err->line = at->line;
		err->column = at->column;
	}
	if (broken)
		say_left_out(text, at);
	return ok;
}

bool import_is_plain(const char *path, const char *text, struct ft_error *err)
{
	struct ft_mark at = { .file = path };

	return !(text_begins_with(text, "\x1f\x8b") ||
		 text_begins_with(text, "\x28\xb5\x2f\xfd")) ||
	       ft_fail(err, &at, "is packed: unpack it first");
}

static bool import_probe(struct ft_store *s, const char *path,
			 const struct ft_probe_run *run, size_t *n,
			 struct ft_error *err)
{
	struct arena mem = { 0 };
	struct ft_mark at = { path, 0, 1 };
	size_t len;
	char *text = file_read(&mem, path, LIMIT_PROBE_BYTES, &len, err), *next;
	struct lines lines = { 0 };
	bool ok = text && import_is_plain(path, text, err);

	if (ok && text_begins_with(text, UTF8_MARK))
		text += strlen(UTF8_MARK);
	for (; ok && *text; text = next) {
		char *end = strchr(text, '\n');

		at.line++;
		next = end ? end + 1 : text + strlen(text);
		if (end)
			*end = '\0';
		if (*text)
			ok = import_line(s, text, run->source, &at, &lines, err);
	}
	if (ok && !at.line)
		ok = ft_fail(err, &(struct ft_mark){ path, 1, 1 }, "is empty");
	if (ok && !lines.measurements && !lines.runs)
		ok = ft_fail(err, &(struct ft_mark){ .file = path },
			     "holds no line of the probe; if it is of another format, "
			     "name that with --format");
	*n = lines.measurements;
	arena_release(&mem);
	return ok;
}

bool import_fabric(const char *fabric, const struct ft_mark *at, struct ft_error *err)
{
	return !fabric[0] || ft_is_scale_up(fabric) ||
	       ft_fail(err, at,
		       "unknown fabric '%.40s'; inside a node it is nvlink, "
		       "nvlink-no-nvls, nvlink-mesh, xgmi or pcie",
		       fabric);
}

/* ---- which ------------------------------------------------------------------------- */

static bool (*const readers[FT_IMPORTS])(struct ft_store *, const char *,
					 const struct ft_probe_run *, size_t *,
					 struct ft_error *) = {
	[FT_IMPORT_PROBE] = import_probe,
	[FT_IMPORT_CSV] = import_csv,
	[FT_IMPORT_NCCL_TESTS] = import_nccl_tests,
	[FT_IMPORT_ATTENTION] = import_attention,
	[FT_IMPORT_KINETO] = import_kineto,
};

bool ft_import_find(const char *name, enum ft_import *format)
{
	static const char *const names[FT_IMPORTS] = {
		"probe", "csv", "nccl-tests", "attention", "kineto",
	};

	for (int i = 0; i < FT_IMPORTS; i++)
		if (!strcmp(names[i], name)) {
			*format = (enum ft_import)i;
			return true;
		}
	return false;
}

bool ft_store_import(struct ft_store *s, enum ft_import format, const char *path,
		     const struct ft_probe_run *run, size_t *n, struct ft_error *err)
{
	PLAIN_NUMBERS;
	bool ok;

	*n = 0;
	if (run->date && !is_date(run->date))
		return ft_fail(err, NULL,
			       "--date: '%.40s' is no date; write it as 2026-11-29",
			       run->date);
	if (run->date && !is_past(run->date, err))
		return false;
	if (run->fabric && !import_fabric(run->fabric, NULL, err))
		return false;
	if (!store_whole(s, err))
		return false;
	ok = readers[format](s, path, run, n, err);
	return store_whole_end(s, ok, err);
}
