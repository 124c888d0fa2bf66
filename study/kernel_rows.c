/* study/kernel_rows.c - rows of single kernels */
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"
#include "base/row_columns.h"
#include "base/text.h"
#include "study/single_rows.h"

static bool truth(const struct csv *t, size_t row, const char *column, bool *out,
		  struct ft_error *err)
{
	return csv_truth(t, row, csv_column(t, column), out, err);
}

/* A whole number from 1, or the fallback where the cell is empty; fallback 0: there is none. */
static bool size(const struct csv *t, size_t row, const char *column, int64_t fallback,
		 int64_t *out, struct ft_error *err)
{
	int at = csv_column(t, column);
	struct ft_mark mark = csv_mark(t, row, at);

	if (!row_whole(t, row, column, fallback, out, err))
		return false;
	if (*out > 0)
		return true;
	return csv_text(t, row, at)[0] ?
		       ft_fail(err, &mark, "%s should be above 0", column) :
		       ft_fail(err, NULL, "the row lacks %s", column);
}

static bool gemm_row(const struct csv *t, size_t row, struct ft_work *w,
		     struct ft_error *err)
{
	const char *layout = csv_text(t, row, csv_column(t, "layout"));

	w->kind = FT_GEMM;
	w->gemm.layout = FT_FORWARD;
	if (layout[0] && !ft_layout_find(layout, &w->gemm.layout))
		return ft_fail(err, NULL,
			       "unknown layout '%s'; it is forward, dgrad or wgrad",
			       layout);
	return truth(t, row, "accumulate", &w->gemm.accumulate, err) &&
	       truth(t, row, "fast", &w->gemm.fast, err) &&
	       size(t, row, "groups", 1, &w->gemm.groups, err) &&
	       size(t, row, "m", 0, &w->gemm.m, err) &&
	       size(t, row, "n", 0, &w->gemm.n, err) &&
	       size(t, row, "k", 0, &w->gemm.k, err);
}

static bool read_pass(const char *pass, struct ft_work *w, struct ft_error *err)
{
	w->attention.pass = FT_PASS_FORWARD;
	return !pass[0] || ft_pass_find(pass, &w->attention.pass) ||
	       ft_fail(err, NULL, "unknown pass '%s'; it is forward, backward or both",
		       pass);
}

static bool attention_row(const struct csv *t, size_t row, struct ft_work *w,
			  struct ft_error *err)
{
	const char *impl = csv_text(t, row, csv_column(t, "impl"));
	int64_t dim;

	w->kind = FT_ATTENTION;
	w->attention.impl = impl[0] ? impl : NULL;
	if (!truth(t, row, "causal", &w->attention.causal, err) ||
	    !read_pass(csv_text(t, row, csv_column(t, "pass")), w, err) ||
	    !size(t, row, "batch", 1, &w->attention.batch, err) ||
	    !size(t, row, "heads", 0, &w->attention.heads, err) ||
	    !size(t, row, "sequence_length", 0, &w->attention.queries, err) ||
	    !size(t, row, "head_dim", 128, &dim, err) ||
	    !size(t, row, "v_head_dim", dim, &w->attention.v_head_dim, err) ||
	    !size(t, row, "kv_heads", w->attention.heads, &w->attention.kv_heads, err))
		return false;
	w->attention.keys = w->attention.queries;
	w->attention.qk_head_dim = dim;
	return w->attention.heads % w->attention.kv_heads == 0 ||
	       ft_fail(err, NULL, "heads is not a multiple of kv_heads");
}

/* What a row with that cell is a row of. */
struct telltale {
	const char *column, *kernel;
};

/* A cell that rows of memory-bound kernels do not have; NULL: there is none. */
static const struct telltale *of_product(const struct csv *t, size_t row)
{
	static const struct telltale all[] = { { "layout", "gemm" },
					       { "k", "gemm" },
					       { "heads", "attention" } };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		const char *cell = csv_text(t, row, csv_column(t, all[i].column));

		if (cell[0] && strcmp(cell, "0") != 0)
			return &all[i];
	}
	return NULL;
}

/* Of a name that no kernel has: what was probably meant. */
static bool refuse_name(const struct csv *t, size_t row, const struct ft_gpu *gpu,
			const struct telltale *product, struct ft_error *err)
{
	const char *name = csv_text(t, row, 0), **known, *near;
	struct ft_mark at = csv_mark(t, row, 0);
	struct arena mem = { 0 };
	size_t n = 0;

	known = ARENA_ARRAY(&mem, gpu->n_memory + 2, const char *);
	known[n++] = "gemm";
	known[n++] = "attention";
	for (size_t i = 0; i < gpu->n_memory; i++)
		if (!gpu->memory[i].warm)
			known[n++] = gpu->memory[i].kernel;
	near = text_nearest(name, known, n);
	if (product)
		ft_fail(err, &at, "unknown kernel '%.40s'; with %s it is called %s",
			name, product->column, product->kernel);
	else if (near)
		ft_fail(err, &at, "unknown kernel '%.40s'; did you mean '%s'?", name,
			near);
	else
		ft_fail(err, &at,
			"unknown kernel '%.40s'; known: %s; a memory-bound kernel "
			"that is none of these is called default",
			name, text_join(&mem, known, n));
	arena_release(&mem);
	return false;
}

/* A memory-bound kernel has a curve, and no cells of products. */
static bool check_name(const struct csv *t, size_t row, const struct ft_gpu *gpu,
		       const struct ft_memory_curve *curve, struct ft_error *err)
{
	const struct telltale *product = of_product(t, row);
	const char *name = csv_text(t, row, 0);
	struct ft_mark at = csv_mark(t, row, 0);

	if (curve == ft_gpu_memory_curve(gpu, NULL, curve->warm) &&
	    strcmp(name, curve->kernel) != 0)
		return refuse_name(t, row, gpu, product, err);
	return !product ||
	       ft_fail(err, &at,
		       "'%.40s' is a memory-bound kernel, which has no %s; with it "
		       "the kernel is called %s",
		       name, product->column, product->kernel);
}

/* A source buffer that is told twice, in bytes and by its shape: the same, but for a format's scales. */
static bool sizes_agree(double bytes, double of_shape, const struct ft_work *w,
			const struct ft_mark *at, struct ft_error *err)
{
	return bytes <= 0 || of_shape <= 0 ||
	       (bytes > 0.99 * of_shape && bytes < 1.01 * of_shape) ||
	       ft_fail(err, at,
		       "bytes says %.0f, and m, n are %.0f bytes of %s: state one of "
		       "them, or the same",
		       bytes, of_shape, ft_dtype_name(w->dtype));
}

/* The row counts the source buffer; the work counts bytes read and written: the
 * profile's curve says how many of those there are to one of the source. */
static bool memory_row(const struct csv *t, size_t row, const struct ft_gpu *gpu,
		       struct ft_work *w, struct ft_error *err)
{
	const struct ft_memory_curve *curve;
	double e = ft_dtype_bytes(w->dtype), bytes;
	int column = csv_column(t, "bytes");
	struct ft_mark at = csv_mark(t, row, column);
	int64_t m, n;

	w->kind = FT_MEMORY_BOUND;
	w->memory.kernel = w->name;
	if (!truth(t, row, "warm", &w->memory.warm, err))
		return false;
	curve = ft_gpu_memory_curve(gpu, w->name, w->memory.warm);
	if (!check_name(t, row, gpu, curve, err) ||
	    !csv_number(t, row, column, 0, &bytes, err) ||
	    !row_whole(t, row, "m", 0, &m, err) || !row_whole(t, row, "n", 0, &n, err))
		return false;
	if (m > 0 && n <= 0) /* rows of no length, which no kernel has */
		return ft_fail(err, NULL, "the row lacks n");
	if (bytes < 0)
		return ft_fail(err, &at, "bytes should be above 0");
	if (bytes > ROW_BYTES_MOST)
		return ft_fail(err, &at, "bytes is out of range");
	w->memory.row_bytes = m > 0 ? e * (double)n : 0;
	if (!sizes_agree(bytes, e * (double)m * (double)n, w, &at, err))
		return false;
	if (bytes <= 0)
		bytes = e * (double)m * (double)n;
	w->memory.bytes = bytes * curve->traffic.value;
	return bytes > 0 || ft_fail(err, NULL, "the row has neither bytes nor m, n");
}

static bool work_of_row(const struct csv *t, size_t row, const struct ft_gpu *gpu,
			struct ft_work *w, struct ft_error *err)
{
	const char *dtype = csv_text(t, row, csv_column(t, "dtype"));

	*w = (struct ft_work){ .name = csv_text(t, row, 0), .dtype = FT_BF16 };
	if (dtype[0] && !ft_dtype_find(dtype, &w->dtype))
		return ft_fail(
			err, NULL,
			"unknown dtype '%s'; it is one such as bf16, fp8 or mxfp8",
			dtype);
	if (!strcmp(w->name, "gemm"))
		return gemm_row(t, row, w, err);
	if (!strcmp(w->name, "attention"))
		return attention_row(t, row, w, err);
	return memory_row(t, row, gpu, w, err);
}

static bool read_clock(const char *word, enum ft_clock *clock, struct ft_error *err)
{
	*clock = strcmp(word, "sustained") ? FT_CLOCK_BURST : FT_CLOCK_SUSTAINED;
	return !word[0] || *clock == FT_CLOCK_SUSTAINED || !strcmp(word, "burst") ||
	       ft_fail(err, NULL, "clock should be burst or sustained, not '%.40s'",
		       word);
}

/* A tuner's row is held against a tuner's kernel. */
static void as_in_source(const struct csv *t, size_t row, const struct ft_gpu *gpu,
			 const struct ft_work *w, struct ft_prediction *p)
{
	if (w->kind == FT_GEMM)
		p->time_s *= ft_gpu_source_factor(
			gpu, csv_text(t, row, csv_column(t, "source")), w->dtype);
}

static bool predict_row(const struct csv *t, size_t row, const struct ft_gpu *gpu,
			struct ft_work *w, struct ft_prediction *p,
			struct ft_error *err)
{
	enum ft_clock clock;

	if (!work_of_row(t, row, gpu, w, err) ||
	    !read_clock(csv_text(t, row, csv_column(t, "clock")), &clock, err) ||
	    !ft_kernel_predict(gpu, w, clock, p, err))
		return false;
	as_in_source(t, row, gpu, w, p);
	return true;
}

static bool kernel_check(struct tally *t, struct garage *g, const struct csv *rows,
			 size_t i, struct ft_error *err)
{
	struct ft_check c = { .id = row_id(t, rows, i),
			      .group = csv_text(rows, i, csv_column(rows, "group")) };
	int column = csv_column(rows, "gpu");
	struct ft_mark at = csv_mark(rows, i, column);
	const struct ft_gpu *gpu = garage_gpu(g, csv_text(rows, i, column), &at, err);
	struct ft_prediction p;
	struct ft_work w;
	double us, tflops;

	if (!gpu || !predict_row(rows, i, gpu, &w, &p, err) ||
	    !row_measured(rows, i, "measured.tflops", &us, &tflops, err))
		return false;
	if (!c.group[0])
		c.group = arena_printf(t->mem, "%s %s %s",
				       csv_text(rows, i, csv_column(rows, "gpu")),
				       w.name, ft_dtype_name(w.dtype));
	if (us <= 0 && w.kind == FT_MEMORY_BOUND)
		return ft_fail(err, NULL,
			       "measured.tflops is of gemm and attention; %s needs "
			       "measured.time_us",
			       w.name);
	check_time_or_rate(t, &c, &p, us,
			   (struct rate){ "tflops", tflops, ft_work_flop(&w) * 1e-12 });
	return true;
}

bool validate_kernels(struct tally *t, const struct csv *rows, struct ft_error *err)
{
	struct garage g = { .n = 0 };

	if (!row_columns_known(rows, ROW_OF_KERNEL, err))
		return false;
	for (size_t i = 0; i < rows->n_rows; i++) {
		struct ft_error why;

		if (!kernel_check(t, &g, rows, i, &why))
			tally_row_failure(t, rows, i, &why);
	}
	garage_close(&g);
	return true;
}

static void write_row(FILE *out, const struct csv *rows, size_t i,
		      const struct ft_prediction *p)
{
	for (size_t c = 0; c < rows->n_columns; c++)
		csv_put(out, csv_text(rows, i, (int)c), false);
	if (p)
		fprintf(out, "%.4f,%s\n", p->time_s * 1e6,
			p->extrapolated ? "true" : "false");
	else
		fputs(",\n", out);
}

static bool kernel_table(struct csv *rows, struct ft_error *err)
{
	struct ft_mark at;

	if (!row_columns_known(rows, ROW_OF_KERNEL, err))
		return false;
	at = (struct ft_mark){ rows->file, 1, 1 };
	return csv_column(rows, "kernel") == 0 ||
	       ft_fail(err, &at, "the first column should be 'kernel'");
}

static bool of_another_gpu(const struct csv *rows, size_t i,
			   const struct ft_gpu *profile)
{
	const char *name = csv_text(rows, i, csv_column(rows, "gpu"));

	return *name && strcmp(name, profile->name) != 0;
}

bool ft_study_kernels(const char *gpu, const char *path, FILE *out,
		      struct ft_kernel_tally *tally, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct csv *rows = csv_read_file(&mem, path, err);
	struct ft_gpu *profile = NULL;
	bool ok = rows && kernel_table(rows, err) &&
		  (profile = ft_gpu_load(gpu, NULL, err));

	*tally = (struct ft_kernel_tally){ 0 };
	for (size_t c = 0; ok && c < rows->n_columns; c++)
		csv_put(out, rows->column[c], false);
	if (ok)
		fputs("predicted.time_us,extrapolated\n", out);
	for (size_t i = 0; ok && i < rows->n_rows; i++) {
		struct ft_prediction p;
		struct ft_error told;
		struct ft_work w;
		bool good = predict_row(rows, i, profile, &w, &p, &told);

		if (!good && !tally->failed++)
			ft_fail(&tally->why,
				&(struct ft_mark){ rows->file, rows->line[i], 1 }, "%s",
				told.text);
		tally->of_other_gpus += of_another_gpu(rows, i, profile);
		write_row(out, rows, i, good ? &p : NULL);
	}
	ft_gpu_free(profile);
	arena_release(&mem);
	return ok;
}
