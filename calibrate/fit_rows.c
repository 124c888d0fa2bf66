/*
 * calibrate/fit_rows.c - the CSV files beside a profile: measured rows, and the
 * published ones of the base where they are of the same GPU
 *
 * Several measurements of one shape (two libraries, two runs) become one row, their
 * geometric mean: the profile is of the GPU, not of one library's choice. Of a collective
 * the fastest counts: what disturbs small ones is a host that launches late, which a
 * step's host, running ahead, does not; its row keeps a source of its own.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"
#include "calibrate/fit.h"
#include "calibrate/store.h"
#include "foretoken/hw.h"

enum { TEXT = 192 };

/* What tells one row of a file from another. */
static bool row_key(const struct ft_measurement *m, char key[TEXT])
{
	if (measurement_is(m, "gemm") && !m->accumulate && !m->sustained)
		snprintf(key, TEXT, "%s,%s,%.0f,%.0f,%.0f", m->dtype, m->layout, m->m,
			 m->n, m->k);
	else if (measurement_is(m, "attention"))
		snprintf(key, TEXT, "%s,%s,%s,%s,%.0f,%.0f,%.0f,%.0f,%.0f",
			 m->dtype[0] ? m->dtype : "bf16", m->impl, m->pass,
			 m->causal ? "true" : "false", m->head_dim, m->sequence,
			 m->batch, m->heads, m->kv_heads);
	else if (measurement_is(m, "collective"))
		snprintf(key, TEXT, "%s,%s,%.0f,%.0f", m->fabric, m->kernel, m->gpus,
			 m->bytes);
	else
		return false;
	return true;
}

struct keyed {
	char key[TEXT];
	const struct ft_measurement *m;
};

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct keyed *)a)->key, ((const struct keyed *)b)->key);
}

static size_t collect(const struct fit_input *in, int fold, const char *kind,
		      struct keyed *out)
{
	size_t n = 0;

	for (size_t i = 0; i < in->n; i++)
		if (measurement_is(&in->row[i], kind) && !fit_published(&in->row[i]) &&
		    fit_fold(&in->row[i]) != fold && row_key(&in->row[i], out[n].key))
			out[n++].m = &in->row[i];
	qsort(out, n, sizeof(*out), by_key);
	return n;
}

static int by_key_and_time(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	int order = strcmp(x->key, y->key);

	return order ? order :
		       (x->m->time_us > y->m->time_us) -
			       (x->m->time_us < y->m->time_us);
}

/* Programs round a buffer to whole shares of 2-byte elements, or do not say that they did. */
static void share_key(const struct ft_measurement *m, char key[TEXT])
{
	snprintf(key, TEXT, "%s,%s,%.0f,%.0f", m->fabric, m->kernel, m->gpus,
		 floor(m->bytes / 2 / m->gpus));
}

size_t fit_fastest(struct ft_measurement *row, size_t n)
{
	struct arena mem = { 0 };
	struct keyed *of = ARENA_ARRAY(&mem, n + 1, struct keyed);
	bool *slower = ARENA_ARRAY(&mem, n + 1, bool);
	size_t n_of = 0, kept = 0;

	for (size_t i = 0; i < n; i++)
		if (measurement_is(&row[i], "collective") && !fit_published(&row[i])) {
			share_key(&row[i], of[n_of].key);
			of[n_of++].m = &row[i];
		}
	qsort(of, n_of, sizeof(*of), by_key_and_time);
	for (size_t i = 1; i < n_of; i++)
		if (!strcmp(of[i].key, of[i - 1].key))
			slower[of[i].m - row] = true;
	for (size_t i = 0; i < n; i++)
		if (!slower[i])
			row[kept++] = row[i];
	arena_release(&mem);
	return kept;
}

/* Of n measurements of one cell: the last day's. */
static void put_source(const struct fit_input *in, const struct keyed *row, size_t n,
		       FILE *out)
{
	const char *date = row->m->date;

	for (size_t i = 1; i < n; i++)
		if (strcmp(row[i].m->date, date) > 0)
			date = row[i].m->date;
	if (row->m->source[0])
		fprintf(out, ",%s\n", row->m->source);
	else
		fprintf(out, ",probe-%s-%s\n", in->options->name, date);
}

static void write_measured(const struct fit_input *in, int fold, const char *kind,
			   FILE *out)
{
	struct arena mem = { 0 };
	struct keyed *row = ARENA_ARRAY(&mem, in->n + 1, struct keyed);
	size_t n = collect(in, fold, kind, row);

	for (size_t i = 0, j; i < n; i = j) {
		double sum = 0;

		for (j = i; j < n && !by_key(&row[i], &row[j]); j++)
			sum += log(row[j].m->time_us);
		if (!strcmp(kind, "collective"))
			fprintf(out, "%s,%.5g", row[i].key, row[i].m->time_us);
		else if (!strcmp(kind, "attention"))
			fprintf(out, "%s,%.5g", row[i].key,
				measurement_attention_flop(row[i].m) /
					exp(sum / (double)(j - i)) * 1e-6);
		else
			fprintf(out, "%s,%.5g", row[i].key, exp(sum / (double)(j - i)));
		put_source(in, &row[i], j - i, out);
	}
	arena_release(&mem);
}

/* ---- published rows of the base -------------------------------------------------- */

static double plain(const struct csv *t, size_t i, const char *column)
{
	return strtod(csv_text(t, i, csv_column(t, column)), NULL);
}

/* Rows that this tool measured before are replaced, and those of sources that the
 * store has; those of an unseen fold are left out, and so are fabrics and formats
 * whose measurements stand instead. */
static bool stays(const struct fit_input *in, int fold, const char *kind,
		  const struct csv *t, size_t i)
{
	const char *source = csv_text(t, i, csv_column(t, "source"));
	enum ft_dtype dtype;

	if (text_begins_with(source, "probe-") && fit_origin(in, kind) == FIT_MEASURED)
		return false;
	if (fit_has_code(in, source))
		return false;
	if (!strcmp(kind, "gemm"))
		return ft_dtype_find(csv_text(t, i, csv_column(t, "dtype")), &dtype) &&
		       in->keep[dtype] &&
		       (!in->only_tuned || fit_tuners_code(in, source)) &&
		       fit_fold_gemm(plain(t, i, "n"), plain(t, i, "k")) != fold;
	if (!strcmp(kind, "attention"))
		return fit_fold_attention(plain(t, i, "heads"), plain(t, i, "kv_heads"),
					  plain(t, i, "head_dim"),
					  plain(t, i, "sequence_length")) != fold;
	return !fit_measured_fabric(in, csv_text(t, i, csv_column(t, "fabric")));
}

static bool write_published(const struct fit_input *in, int fold, const char *kind,
			    const char *path, FILE *out, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct csv *t = csv_read_file(&mem, path, err);

	for (size_t i = 0; t && i < t->n_rows; i++) {
		if (!stays(in, fold, kind, t, i))
			continue;
		for (size_t c = 0; c < t->n_columns; c++)
			csv_put(out, t->cell[i * t->n_columns + c],
				c + 1 == t->n_columns);
	}
	arena_release(&mem);
	return t != NULL;
}

/* NAME.FILE.csv beside a profile. */
struct rows_file {
	int family;
	const char *kind, *tail, *header;
};

static const struct rows_file files[] = {
	{ FT_FIT_GEMM, "gemm", "gemm.csv", "dtype,layout,m,n,k,time_us,source" },
	{ FT_FIT_ATTENTION, "attention", "attention.csv",
	  "dtype,impl,pass,causal,head_dim,sequence_length,"
	  "batch,heads,kv_heads,tflops,source" },
	{ FT_FIT_COLLECTIVES, "collective", "collectives.csv",
	  "fabric,op,gpus,bytes,time_us,source" },
};
enum { FILES = sizeof(files) / sizeof(*files) };

const char *fit_rows_tail(size_t i)
{
	return i < FILES ? files[i].tail : NULL;
}

static bool write_file(const struct fit_input *in, int fold, const char *folder,
		       const struct rows_file *to, struct ft_error *err)
{
	struct arena mem = { 0 };
	const struct ft_fit_options *o = in->options;
	const char *path = arena_printf(&mem, "%s/%s.%s", folder, o->name, to->tail);
	const char *base = file_find(&mem, "hw/gpus", o->base, NULL, err);
	struct file_out f;
	bool ok = base && file_begin(&f, path, err);

	if (ok) {
		const char *old = arena_printf(&mem, "%.*s.%s", (int)strlen(base) - 5,
					       base, to->tail);

		fprintf(f.out,
			fit_origin(in, to->kind) == FIT_MEASURED ?
				"# measured and published rows; sources: SOURCES.md, "
				"probe-...: measurements/\n%s\n" :
				"# published rows; the source column is explained in "
				"SOURCES.md\n%s\n",
			to->header);
		/* measured ones first: of two tables that serve, as NVLink's
		 * with and without in-switch reduction, the first is taken */
		write_measured(in, fold, to->kind, f.out);
		fit_write_published(in, fold, to->kind, f.out);
		if (in->own_base && file_exists(old))
			ok = write_published(in, fold, to->kind, old, f.out, err);
		if (ok)
			ok = file_commit(&f, err);
		else
			file_abandon(&f);
	}
	arena_release(&mem);
	return ok;
}

bool fit_write_rows(const struct fit_input *in, int fold, const char *folder,
		    struct ft_error *err)
{
	for (size_t i = 0; i < FILES; i++)
		if (in->families & files[i].family &&
		    !write_file(in, fold, folder, &files[i], err))
			return false;
	return true;
}

static bool copy_file(const char *from, const char *to, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct file_out f;
	size_t len;
	char *text = file_read(&mem, from, (size_t)1 << 28, &len, err);
	bool ok = text && file_begin(&f, to, err);

	if (ok) {
		fwrite(text, 1, len, f.out);
		ok = file_commit(&f, err);
	}
	arena_release(&mem);
	return ok;
}

bool fit_copy_rows(const struct fit_input *in, const char *folder, struct ft_error *err)
{
	struct arena mem = { 0 };
	const char *base = file_find(&mem, "hw/gpus", in->options->base, NULL, err);
	bool ok = base != NULL;

	for (size_t i = 0; ok && in->own_base && i < FILES; i++) {
		const char *from = arena_printf(&mem, "%.*s.%s", (int)strlen(base) - 5,
						base, files[i].tail);
		const char *to = arena_printf(&mem, "%s/%s.%s", folder,
					      in->options->name, files[i].tail);

		if (!(in->families & files[i].family) && file_exists(from) &&
		    !file_exists(to))
			ok = copy_file(from, to, err);
	}
	arena_release(&mem);
	return ok;
}
