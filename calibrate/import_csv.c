/*
 * calibrate/import_csv.c - tables of kernels and collectives with the columns of
 * `foretoken validate`, ours or published ones
 *
 * Beside those columns: source (a code of hw/gpus/SOURCES.md) and date of the row,
 * status (ok when empty; anything else keeps the row out of a fit) and why. Rows of
 * several GPUs become a run each, the device being the GPU's name, unless the
 * import names the device. All rows are checked before the first is stored; of those
 * that a status keeps out, the words are not.
 */
#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "base/reader.h"
#include "base/row_columns.h"
#include "base/text.h"
#include "calibrate/fit.h"
#include "calibrate/import.h"
#include "calibrate/store.h"

/* All of these columns, or an error that names the first missing one. */
static bool need(const struct csv *t, const char *const *names, size_t n,
		 struct ft_error *err)
{
	struct ft_mark top = { t->file, 1, 1 };

	for (size_t i = 0; i < n; i++)
		if (csv_column(t, names[i]) < 0)
			return ft_fail(err, &top, "lacks the column '%s'", names[i]);
	return true;
}

/* 0: the table has no such column, or the cell no number. */
static double number(const struct csv *t, size_t row, const char *column)
{
	struct ft_error ignored;
	double v;

	return csv_number(t, row, csv_column(t, column), 0, &v, &ignored) ? v : 0;
}

static const char *cell(const struct csv *t, size_t row, const char *column)
{
	return csv_text(t, row, csv_column(t, column));
}

/* A row's name: its own shape, so that the same row again replaces it. */
void import_name(struct ft_measurement *m, char id[256])
{
	m->kernel = m->kernel ? m->kernel : "";
	m->dtype = m->dtype ? m->dtype : "";
	m->layout = m->layout ? m->layout : "";
	m->impl = m->impl ? m->impl : "";
	m->pass = m->pass ? m->pass : "";
	snprintf(id, 256,
		 "%s %s %s %s %s %s m%.15g n%.15g k%.15g b%.15g h%.15g/%.15g s%.15g "
		 "d%.15g bytes%.15g gpus%.15g%s%s",
		 m->kind, m->kernel, m->dtype, m->layout, m->impl, m->pass, m->m, m->n,
		 m->k, m->batch, m->heads, m->kv_heads, m->sequence, m->head_dim,
		 m->bytes, m->gpus, m->causal ? " causal" : "", m->warm ? " warm" : "");
	m->cell = id;
	m->status = m->status && m->status[0] ? m->status : "ok";
	m->relative_error = m->clock_mhz = m->power_w = m->temperature_c = -1;
}

/* Microseconds as measured, or out of the rate that stands for them. */
static double time_of(const struct csv *t, size_t i, const struct ft_measurement *m)
{
	double us = number(t, i, "measured.time_us");
	double tflops = number(t, i, "measured.tflops");
	double busbw = number(t, i, "measured.busbw_gb_per_s");
	enum ft_collective op;

	if (us > 0)
		return us;
	if (tflops > 0 && measurement_is(m, "attention"))
		return measurement_attention_flop(m) / tflops * 1e-6;
	if (tflops > 0 && measurement_is(m, "gemm"))
		return 2 * m->m * m->n * m->k / tflops * 1e-6;
	if (busbw > 0 && measurement_is(m, "collective") && m->gpus <= LIMIT_GPUS &&
	    ft_collective_find(m->kernel, &op))
		return m->bytes / busbw * 1e-3 *
		       ft_collective_bus_factor(op, (int64_t)m->gpus);
	return 0;
}

/* What tables of a profile are not of is kept, not fitted. */
static void judge(const struct csv *t, size_t i, struct ft_measurement *m)
{
	double v_head_dim = number(t, i, "v_head_dim");
	const char *why = NULL;
	struct ft_error told; /* by check_words() */
	bool fast;

	if (number(t, i, "nodes") > 1)
		why = "several nodes";
	else if (measurement_is(m, "gemm") && number(t, i, "groups") > 1)
		why = "grouped: tables are of single products";
	else if (measurement_is(m, "gemm") &&
		 csv_truth(t, i, csv_column(t, "fast"), &fast, &told) && fast)
		why = "fast: tables are of products whose sums are widened";
	else if (measurement_is(m, "attention") && v_head_dim > 0 &&
		 v_head_dim != m->head_dim)
		why = "values of another size: tables have one for all";
	m->status = cell(t, i, "status");
	m->why = cell(t, i, "why");
	if (!m->status[0] && why) {
		m->status = "left-out";
		m->why = why;
	}
}

static bool read_truths(const struct csv *t, size_t i, struct ft_measurement *m,
			struct ft_error *err)
{
	bool fast; /* judge() reads it */

	return csv_truth(t, i, csv_column(t, "fast"), &fast, err) &&
	       csv_truth(t, i, csv_column(t, "causal"), &m->causal, err) &&
	       csv_truth(t, i, csv_column(t, "warm"), &m->warm, err) &&
	       csv_truth(t, i, csv_column(t, "accumulate"), &m->accumulate, err) &&
	       csv_truth(t, i, csv_column(t, "in_step"), &m->in_step, err);
}

static void row_of(const struct csv *t, size_t i, struct ft_measurement *m)
{
	const char *kernel = cell(t, i, "kernel"), *op = cell(t, i, "op");
	bool gemm = !op[0] && !strcmp(kernel, "gemm");
	bool attention = !op[0] && !strcmp(kernel, "attention");
	struct ft_error told; /* by check_words() */

	*m = (struct ft_measurement){
		.kind = op[0]		  ? "collective" :
			gemm || attention ? kernel :
					    "memory",
		.dtype = cell(t, i, "dtype"),
		.layout = cell(t, i, "layout"),
		.impl = cell(t, i, "impl"),
		.pass = cell(t, i, "pass"),
		.m = number(t, i, "m"),
		.n = number(t, i, "n"),
		.k = number(t, i, "k"),
		.batch = number(t, i, "batch"),
		.heads = number(t, i, "heads"),
		.kv_heads = number(t, i, "kv_heads"),
		.sequence = number(t, i, "sequence_length"),
		.head_dim = number(t, i, "head_dim"),
		.bytes = number(t, i, "bytes"),
		.gpus = number(t, i, "gpus"),
		.sustained = !strcmp(cell(t, i, "clock"), "sustained"),
		.fabric = cell(t, i, "fabric"),
		.source = cell(t, i, "source"),
		.date = cell(t, i, "date"),
	};
	m->kernel = op[0] ? op : measurement_is(m, "memory") ? kernel : "";
	m->layout = gemm && !m->layout[0] ? "forward" : m->layout;
	m->pass = attention && !m->pass[0] ? "forward" : m->pass;
	m->dtype = (gemm || attention) && !m->dtype[0] ? "bf16" : m->dtype;
	(void)read_truths(t, i, m, &told);
	judge(t, i, m);
	m->time_us = time_of(t, i, m);
}

/* A published rate of copies is not a measurement: scripts/derive_memory.py reads it. */
static bool check_time(const struct csv *t, size_t i, const struct ft_measurement *m,
		       bool published, struct ft_error *err)
{
	int column = csv_column(t, "measured.time_us");
	const char *time = column < 0 ? "" : cell(t, i, "measured.time_us");
	struct ft_mark at = csv_mark(t, i, time[0] ? column : 0);

	/* 0 beside a rate stands for none */
	if (time[0] && !m->status[0] &&
	    (!(m->time_us > 0) || number(t, i, "measured.time_us") < 0))
		return ft_fail(err, &at, "'%.40s' is not a time above 0", time);
	return m->time_us > 0 || m->status[0] ||
	       (published && number(t, i, "measured.gb_per_s") > 0) ||
	       ft_fail(err, &at,
		       "the row has no time: measured.time_us, measured.tflops or "
		       "measured.busbw_gb_per_s");
}

/* A misspelt operation or kernel would be fitted as another one. */
static bool check_names(const struct csv *t, size_t i, const struct ft_measurement *m,
			struct ft_error *err)
{
	struct ft_mark at = csv_mark(t, i, 0);
	enum ft_collective op;

	if (measurement_is(m, "collective")) {
		struct ft_mark fabric_at = csv_mark(t, i, csv_column(t, "fabric"));

		return ft_collective_find(m->kernel, &op) ?
			       import_fabric(m->fabric, &fabric_at, err) :
			       ft_fail(err, &at,
				       "unknown op '%.40s'; it is one such as "
				       "all_reduce or all_to_all",
				       m->kernel);
	}
	if (measurement_is(m, "memory") && (m->layout[0] || m->k > 0) &&
	    !fit_is_memory_kernel(m->kernel))
		return ft_fail(err, &at,
			       "unknown kernel '%.40s'; with layout or k it is called "
			       "gemm",
			       m->kernel);
	return !measurement_is(m, "memory") || m->kernel[0] ||
	       ft_fail(err, &at, "the row names neither a kernel nor an op");
}

/* A word that none of the tables has would count as another one. */
static bool check_words(const struct csv *t, size_t i, struct ft_measurement *m,
			struct ft_error *err)
{
	struct ft_mark at = csv_mark(t, i, 0);
	const char *clock = cell(t, i, "clock");
	enum ft_layout layout;
	enum ft_dtype dtype;
	enum ft_pass pass;

	if (m->status[0] && strcmp(m->status, "ok"))
		return true;
	if (m->dtype[0] && !ft_dtype_find(m->dtype, &dtype))
		return ft_fail(err, &at, "unknown dtype '%.40s'", m->dtype);
	if (measurement_is(m, "gemm") && !ft_layout_find(m->layout, &layout))
		return ft_fail(err, &at, "unknown layout '%.40s'", m->layout);
	if (measurement_is(m, "attention") && !ft_pass_find(m->pass, &pass))
		return ft_fail(err, &at, "unknown pass '%.40s'", m->pass);
	if (clock[0] && strcmp(clock, "burst") && !m->sustained)
		return ft_fail(err, &at,
			       "clock should be burst or sustained, not '%.40s'",
			       clock);
	return read_truths(t, i, m, err) && check_names(t, i, m, err);
}

/* It goes into tables and, as a key, into a profile. */
static bool check_source(const struct csv *t, size_t i, bool published,
			 struct ft_error *err)
{
	const char *source = cell(t, i, "source");
	struct ft_mark at;

	if (*source ? text_is_name(source) : !published)
		return true;
	at = csv_mark(t, i, csv_column(t, "source"));
	return *source ? ft_fail(err, &at, "the source '%.60s' " TEXT_NAME_RULE, source,
				 (int)LIMIT_NAME_BYTES) :
			 ft_fail(err, &at,
				 "a published row needs the code of its source");
}

/* It becomes a profile's provenance. */
static bool check_date(const struct csv *t, size_t i, struct ft_error *err)
{
	const char *date = cell(t, i, "date");
	struct ft_mark at = csv_mark(t, i, csv_column(t, "date"));

	if (*date && !reader_is_date(date))
		return ft_fail(err, &at,
			       "'%.40s' is no date: write 2026, 2026-11 or 2026-11-22",
			       date);
	return !reader_in_future(date) ||
	       ft_fail(err, &at, "the date %s lies in the future", date);
}

/* A cell that should hold a number holds one, or nothing: it does not count as empty. Sizes, which
 * are those in front, are whole. */
static bool check_numbers(const struct csv *t, size_t i, struct ft_error *err)
{
	static const char *const columns[] = { "m",
					       "n",
					       "k",
					       "groups",
					       "batch",
					       "heads",
					       "nodes",
					       "kv_heads",
					       "sequence_length",
					       "gpus",
					       "head_dim",
					       "v_head_dim",
					       "bytes",
					       "measured.time_us",
					       "measured.tflops",
					       "measured.busbw_gb_per_s",
					       "measured.gb_per_s" };
	enum { SIZES = 12 };
	bool left_out = cell(t, i, "status")[0] && strcmp(cell(t, i, "status"), "ok");
	double v;

	for (size_t k = 0; k < sizeof(columns) / sizeof(*columns); k++) {
		struct ft_mark at = csv_mark(t, i, csv_column(t, columns[k]));

		if (!csv_number(t, i, csv_column(t, columns[k]), 0, &v, err))
			return false;
		if (k < SIZES && !left_out && (v < floor(v) || v > floor(v)))
			return ft_fail(err, &at, "%s should be a whole number",
				       columns[k]);
	}
	return true;
}

/* A size that is told twice, in bytes and by a shape, which is what a fit reads, is told alike. */
static bool sizes_agree(const struct csv *t, size_t i, const struct ft_measurement *m,
			struct ft_error *err)
{
	struct ft_mark at = csv_mark(t, i, csv_column(t, m->n > 0 ? "bytes" : "m"));
	enum ft_dtype dtype = FT_BF16;
	double of_shape;

	(void)ft_dtype_find(m->dtype, &dtype);
	of_shape = m->m * m->n * ft_dtype_bytes(dtype);
	if (!(m->m > 0) || m->status[0])
		return true;
	if (!(m->n > 0))
		return ft_fail(err, &at, "a row of %.40s has m, but no n above 0",
			       m->kernel);
	return !(m->bytes > 0) ||
	       (m->bytes > 0.99 * of_shape && m->bytes < 1.01 * of_shape) ||
	       ft_fail(err, &at,
		       "bytes says %.0f, and m, n are %.0f bytes of %s: state one of "
		       "them, or the same",
		       m->bytes, of_shape, ft_dtype_name(dtype));
}

/* A kernel bound by memory that took time moved something. */
static bool check_size(const struct csv *t, size_t i, const struct ft_measurement *m,
		       struct ft_error *err)
{
	struct ft_mark at = csv_mark(t, i, 0);

	if (!measurement_is(m, "memory"))
		return true;
	if (!m->status[0] && m->time_us > 0 && !(m->bytes > 0) &&
	    !(m->m > 0 && m->n > 0))
		return ft_fail(err, &at,
			       "a row of %.40s needs its bytes, or m and n, above 0",
			       m->kernel[0] ? m->kernel : "no kernel");
	return sizes_agree(t, i, m, err);
}

/* What a row of its kind cannot do without: positive numbers, or words. */
static bool check_row(const struct csv *t, size_t i, bool published,
		      struct ft_error *err)
{
	static const char *const gemm[] = { "m", "n", "k", NULL };
	static const char *const attention[] = { "batch",    "heads",
						 "kv_heads", "sequence_length",
						 "head_dim", NULL };
	static const char *const collective[] = { "gpus", "bytes", NULL };
	static const char *const none[] = { NULL };
	struct ft_measurement m;
	const char *const *need;

	if (!check_numbers(t, i, err))
		return false;
	row_of(t, i, &m);
	need = measurement_is(&m, "gemm")	? gemm :
	       measurement_is(&m, "attention")	? attention :
	       measurement_is(&m, "collective") ? collective :
						  none;
	for (; *need; need++) {
		int column = csv_column(t, *need);
		struct ft_mark at = csv_mark(t, i, column < 0 ? 0 : column);
		double v;

		if (column < 0)
			return ft_fail(err, &at,
				       "a %s row needs the column "
				       "'%s', which the file lacks",
				       m.kind, *need);
		if (!csv_number(t, i, column, 0, &v, err))
			return false;
		if (!(v > 0))
			return ft_fail(err, &at, "a %s row needs '%s' above 0", m.kind,
				       *need);
		if (!strcmp(*need, "gpus") && !(v >= 2 && v <= LIMIT_GPUS))
			return ft_fail(err, &at, "'gpus' is not between 2 and %d",
				       LIMIT_GPUS);
	}
	return check_words(t, i, &m, err) && check_size(t, i, &m, err) &&
	       check_time(t, i, &m, published, err);
}

static bool check(const struct csv *t, bool published, struct ft_error *err)
{
	static const char *const published_columns[] = { "source" };
	static const char *const time_column[] = { "measured.time_us" };
	struct ft_mark top = { t->file, 1, 1 };
	bool rate = csv_column(t, "measured.tflops") >= 0 ||
		    csv_column(t, "measured.busbw_gb_per_s") >= 0;

	if (!rate && !need(t, time_column, 1, err))
		return false;
	if (csv_column(t, "kernel") < 0 && csv_column(t, "op") < 0)
		return ft_fail(err, &top, "lacks the column 'kernel' (or 'op')");
	if (published && !need(t, published_columns, 1, err))
		return false;
	if (!row_columns_known(t, ROW_OF_KERNEL | ROW_OF_COLLECTIVE | ROW_OF_STORE,
			       err))
		return false;
	for (size_t i = 0; i < t->n_rows; i++) {
		if (!check_row(t, i, published, err) ||
		    !check_source(t, i, published, err) || !check_date(t, i, err))
			return false;
	}
	return true;
}

/* Rows of one GPU (of all, when gpu is NULL) into a run of their own. */
static bool add_rows(struct ft_store *s, const struct csv *t, struct ft_probe_run run,
		     const char *gpu, size_t *n, struct ft_error *err)
{
	bool ok;

	if (gpu && (!run.device || !run.device[0]))
		run.device = gpu;
	ok = ft_store_begin(s, &run, err);
	for (size_t i = 0; ok && i < t->n_rows; i++) {
		struct ft_measurement m;
		char id[256], named[320];

		if (gpu && strcmp(cell(t, i, "gpu"), gpu))
			continue;
		row_of(t, i, &m);
		if (!(m.time_us > 0))
			continue;
		import_name(&m, id);
		/* a table may have a shape twice: by another source, or measured again */
		snprintf(named, sizeof(named), "%s %.32s:%d", id, m.source, t->line[i]);
		m.cell = named;
		ok = ft_store_add(s, &m, err);
		*n += ok;
	}
	return ok;
}

/* The GPUs of a table, in the order they come; NULL stands for all rows. */
static size_t list_gpus(const struct csv *t, const struct ft_probe_run *run,
			const char **gpu)
{
	size_t n = 0;

	if (csv_column(t, "gpu") < 0) {
		gpu[0] = NULL;
		return 1;
	}
	for (size_t i = 0; i < t->n_rows; i++) {
		const char *name = cell(t, i, "gpu");
		size_t at = 0;

		if (run->gpu && strcmp(name, run->gpu))
			continue;
		while (at < n && strcmp(gpu[at], name))
			at++;
		if (at == n && n <= LIMIT_IMPORT_GPUS)
			gpu[n++] = name;
	}
	return n;
}

static bool add_gpus(struct ft_store *s, const struct csv *t,
		     const struct ft_probe_run *run, const char **gpu, size_t *n,
		     struct ft_error *err)
{
	struct ft_mark top = { t->file, 1, 1 };
	bool named = run->device && run->device[0], ok = true;
	size_t gpus = list_gpus(t, run, gpu);

	if (!gpus)
		return ft_fail(err, &top, "holds no rows%s%s",
			       run->gpu ? " of the GPU " : "",
			       run->gpu ? run->gpu : "");
	if (gpus > LIMIT_IMPORT_GPUS)
		return ft_fail(err, &top,
			       "has rows of more than %d GPUs; choose with --gpu",
			       (int)LIMIT_IMPORT_GPUS);
	if (named && gpus > 1)
		return ft_fail(err, &top,
			       "has rows of several GPUs (%s, %s ...), "
			       "which are not one device; choose with --gpu",
			       gpu[0], gpu[1]);
	for (size_t i = 0; ok && i < gpus; i++)
		ok = add_rows(s, t, *run, gpu[i], n, err);
	return ok;
}

bool import_csv(struct ft_store *s, const char *path, const struct ft_probe_run *run,
		size_t *n, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct csv *t = csv_read_file(&mem, path, err);
	bool published = run->provenance && !strcmp(run->provenance, "published");
	bool ok = t && check(t, published, err) &&
		  add_gpus(s, t, run, ARENA_ARRAY(&mem, t->n_rows + 1, const char *), n,
			   err);

	arena_release(&mem);
	return ok;
}
