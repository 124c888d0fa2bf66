/*
 * hw/gpu_rows.c - measured rows beside a profile: CSV files to tables
 *
 *   NAME.gemm.csv         dtype,layout,m,n,k,time_us,source
 *   NAME.attention.csv    dtype,impl,pass,causal,head_dim,sequence_length,
 *                         batch,heads,kv_heads,tflops,source
 *   NAME.collectives.csv  fabric,op,gpus,bytes,time_us,source
 *
 * m n k of a linear layer become those of the product C[m,n] = A[m,k] B[k,n]
 * that its layout is, and its time that of the forward layout.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/csv.h"
#include "hw/gpu.h"

enum { MOST_CELLS = 16, PAD = 8 };

/* A file being read: its columns by the order in which they were asked for. */
struct sheet {
	const struct csv *t;
	int column[MOST_CELLS];
	struct ft_error *err;
};

static bool open_sheet(struct sheet *s, struct arena *mem, const char *path,
		       const char *const *names, size_t n, struct ft_error *err)
{
	struct ft_mark top = { path, 1, 1 };

	s->err = err;
	s->t = csv_read_file(mem, path, err);
	if (!s->t)
		return false;
	for (size_t i = 0; i < n; i++) {
		s->column[i] = csv_column(s->t, names[i]);
		if (s->column[i] < 0)
			return ft_fail(err, &top, "lacks the column '%s'",
				       names[i]);
	}
	return true;
}

static const char *text(const struct sheet *s, size_t row, int i)
{
	return csv_text(s->t, row, s->column[i]);
}

static bool refuse(const struct sheet *s, size_t row, int i, const char *why)
{
	struct ft_mark at = csv_mark(s->t, row, s->column[i]);

	return ft_fail(s->err, &at, "'%.40s' %s", text(s, row, i), why);
}

/* Every number of these files is a positive one. Whole numbers, which most
 * are, take a short way. */
static bool positive(const struct sheet *s, size_t row, int i, double *value)
{
	const char *p = text(s, row, i);
	int64_t whole = 0;

	for (; *p >= '0' && *p <= '9' && whole < INT64_C(1) << 50; p++)
		whole = whole * 10 + (*p - '0');
	*value = (double)whole;
	if (*p && !csv_number(s->t, row, s->column[i], 0, value, s->err))
		return false;
	return *value > 0 || refuse(s, row, i, "is not a number above zero");
}

static bool choice(const struct sheet *s, size_t row, int i,
		   const char *const *names, int n, int *value)
{
	const char *word = text(s, row, i);

	for (*value = 0; *value < n; ++*value)
		if (!strcmp(names[*value], word))
			return true;
	return refuse(s, row, i, "is not known here");
}

/* bf16 and fp16 run at one rate on the same units: one table serves both. */
static bool table_dtype(const struct sheet *s, size_t row, int i,
			enum ft_dtype *dtype)
{
	if (!ft_dtype_find(text(s, row, i), dtype))
		return refuse(s, row, i, "is no number format");
	if (*dtype == FT_FP16)
		*dtype = FT_BF16;
	return true;
}

/* ---- products ------------------------------------------------------------ */

enum { G_DTYPE, G_LAYOUT, G_M, G_N, G_K, G_TIME, G_CELLS };

static bool gemm_row(const struct sheet *s, size_t i, const struct ft_gpu *on,
		     struct ft_gemm_row *row)
{
	static const char *const layouts[] = { "forward", "dgrad", "wgrad" };
	double m, n, k, us;
	int layout;

	if (!choice(s, i, G_LAYOUT, layouts, FT_HW_LAYOUTS, &layout) ||
	    !positive(s, i, G_M, &m) || !positive(s, i, G_N, &n) ||
	    !positive(s, i, G_K, &k) || !positive(s, i, G_TIME, &us))
		return false;
	*row = (struct ft_gemm_row){ m, n, k, us * 1e-6 };
	if (layout == 1)
		*row = (struct ft_gemm_row){ m, k, n, row->time_s };
	else if (layout == 2)
		*row = (struct ft_gemm_row){ n, k, m, row->time_s };
	row->time_s /= on->gemm_layout[layout].value;
	return true;
}

static void find_logs(struct arena *mem, struct ft_gemm_table *t)
{
	size_t padded = (t->n_rows + PAD - 1) / PAD * PAD;

	t->log_m = ARENA_ARRAY(mem, padded, float);
	t->log_n = ARENA_ARRAY(mem, padded, float);
	t->log_k = ARENA_ARRAY(mem, padded, float);
	for (size_t i = 0; i < padded; i++) {
		bool row = i < t->n_rows;

		t->log_m[i] = row ? log2f((float)t->row[i].m) : 1e6f;
		t->log_n[i] = row ? log2f((float)t->row[i].n) : 1e6f;
		t->log_k[i] = row ? log2f((float)t->row[i].k) : 1e6f;
	}
}

static bool fill_gemm(struct arena *mem, const struct sheet *s,
		      const enum ft_dtype *dtype, const struct ft_gpu *on,
		      struct ft_gemm_table *table)
{
	for (int d = 0; d < FT_DTYPES; d++) {
		size_t n = table[d].n_rows;

		table[d].row = n ? ARENA_ARRAY(mem, n, struct ft_gemm_row) :
				   NULL;
		table[d].n_rows = 0;
	}
	for (size_t i = 0; i < s->t->n_rows; i++) {
		struct ft_gemm_table *t = &table[dtype[i]];

		if (!gemm_row(s, i, on, &t->row[t->n_rows++]))
			return false;
	}
	for (int d = 0; d < FT_DTYPES; d++)
		if (table[d].n_rows)
			find_logs(mem, &table[d]);
	return true;
}

bool gpu_load_gemm(struct arena *mem, const char *path, const struct ft_gpu *on,
		   const struct ft_provenance *from, struct ft_gpu *gpu,
		   struct ft_error *err)
{
	static const char *const names[] = { "dtype", "layout", "m", "n", "k",
					     "time_us" };
	struct ft_gemm_table table[FT_DTYPES] = { 0 };
	struct arena scratch = { 0 };
	enum ft_dtype *dtype;
	struct sheet s;
	bool ok;

	ok = open_sheet(&s, &scratch, path, names, G_CELLS, err);
	dtype = ok ? ARENA_ARRAY(&scratch, s.t->n_rows + 1, enum ft_dtype) :
		     NULL;
	for (size_t i = 0; ok && i < s.t->n_rows; i++) {
		ok = table_dtype(&s, i, G_DTYPE, &dtype[i]);
		table[dtype[i]].n_rows += ok;
	}
	ok = ok && fill_gemm(mem, &s, dtype, on, table);
	for (int d = 0; ok && d < FT_DTYPES; d++) {
		table[d].dtype = (enum ft_dtype)d;
		table[d].on = on;
		table[d].from = from;
		if (table[d].n_rows && !gpu->gemm[d].n_rows)
			gpu->gemm[d] = table[d];
	}
	arena_release(&scratch);
	return ok;
}

/* ---- attention ----------------------------------------------------------- */

enum { A_DTYPE, A_IMPL, A_PASS, A_CAUSAL, A_HEAD_DIM, A_SEQUENCE, A_BATCH,
       A_HEADS, A_KV_HEADS, A_TFLOPS, A_CELLS };

static struct ft_attention_table *
attention_table(struct arena *mem, struct ft_gpu *gpu, const char *impl,
		int pass, enum ft_dtype dtype, const struct ft_gpu *on,
		size_t most)
{
	struct ft_attention_table *t;

	for (size_t i = 0; i < gpu->n_attention; i++) {
		t = &gpu->attention[i];
		if (t->on == on && t->pass == pass && t->dtype == dtype &&
		    !strcmp(t->impl, impl))
			return t;
	}
	t = ARENA_ARRAY(mem, gpu->n_attention + 1, struct ft_attention_table);
	if (gpu->n_attention)
		memcpy(t, gpu->attention, gpu->n_attention * sizeof(*t));
	gpu->attention = t;
	t += gpu->n_attention++;
	t->impl = arena_text(mem, impl);
	t->pass = pass;
	t->dtype = dtype;
	t->on = on;
	t->row = ARENA_ARRAY(mem, most, struct ft_attention_row);
	return t;
}

static bool attention_row(const struct sheet *s, size_t i,
			  struct ft_attention_row *row)
{
	static const char *const truths[] = { "false", "true" };
	int causal;
	double tflops;

	if (!choice(s, i, A_CAUSAL, truths, 2, &causal) ||
	    !positive(s, i, A_HEAD_DIM, &row->head_dim) ||
	    !positive(s, i, A_SEQUENCE, &row->sequence) ||
	    !positive(s, i, A_BATCH, &row->batch) ||
	    !positive(s, i, A_HEADS, &row->heads) ||
	    !positive(s, i, A_KV_HEADS, &row->kv_heads) ||
	    !positive(s, i, A_TFLOPS, &tflops))
		return false;
	row->causal = causal;
	row->flop_per_s = tflops * 1e12;
	row->at[0] = log2f((float)row->sequence);
	row->at[1] = log2f((float)row->batch);
	row->at[2] = log2f((float)row->heads);
	row->at[3] = log2f((float)row->kv_heads);
	row->at[4] = log2f((float)row->head_dim);
	row->at[5] = causal ? 1 : 0;
	return true;
}

bool gpu_load_attention(struct arena *mem, const char *path,
			const struct ft_gpu *on,
			const struct ft_provenance *from, struct ft_gpu *gpu,
			struct ft_error *err)
{
	static const char *const names[] = {
		"dtype", "impl",  "pass",  "causal",   "head_dim",
		"sequence_length", "batch", "heads", "kv_heads", "tflops",
	};
	static const char *const passes[] = { "forward", "backward", "both" };
	struct arena scratch = { 0 };
	struct sheet s;
	bool ok = open_sheet(&s, &scratch, path, names, A_CELLS, err);

	for (size_t i = 0; ok && i < s.t->n_rows; i++) {
		struct ft_attention_table *t;
		enum ft_dtype dtype;
		int pass;

		ok = table_dtype(&s, i, A_DTYPE, &dtype) &&
		     choice(&s, i, A_PASS, passes, FT_HW_PASSES, &pass);
		if (!ok)
			break;
		t = attention_table(mem, gpu, text(&s, i, A_IMPL), pass, dtype,
				    on, s.t->n_rows - i);
		t->from = from;
		ok = attention_row(&s, i, &t->row[t->n_rows++]);
	}
	arena_release(&scratch);
	return ok;
}

/* ---- collectives --------------------------------------------------------- */

enum { C_FABRIC, C_OP, C_GPUS, C_BYTES, C_TIME, C_CELLS };

static struct ft_collective_table *
collective_table(struct arena *mem, struct ft_gpu *gpu, size_t *cap,
		 const char *fabric, enum ft_collective op, int64_t n,
		 size_t most)
{
	struct ft_collective_table *t;

	for (size_t i = 0; i < gpu->n_collective; i++) {
		t = &gpu->collective[i];
		if (t->op == op && t->n == n && !strcmp(t->fabric, fabric))
			return t;
	}
	if (gpu->n_collective == *cap)
		gpu->collective = ARENA_GROW(mem, gpu->collective, cap);
	t = &gpu->collective[gpu->n_collective++];
	*t = (struct ft_collective_table){ .op = op, .n = n };
	t->fabric = arena_text(mem, fabric);
	t->row = ARENA_ARRAY(mem, most, struct ft_collective_row);
	return t;
}

static int by_bytes(const void *a, const void *b)
{
	double x = ((const struct ft_collective_row *)a)->bytes;
	double y = ((const struct ft_collective_row *)b)->bytes;

	return (x > y) - (x < y);
}

/* Rows of a kin only fill what the GPU itself lacks: whole tables. */
static bool has_own(const struct ft_gpu *gpu, size_t n_own, const char *fabric,
		    enum ft_collective op, int64_t n)
{
	for (size_t i = 0; i < n_own; i++) {
		const struct ft_collective_table *t = &gpu->collective[i];

		if (t->op == op && t->n == n && !strcmp(t->fabric, fabric))
			return true;
	}
	return false;
}

bool gpu_load_collectives(struct arena *mem, const char *path,
			  const struct ft_gpu *on,
			  const struct ft_provenance *from, struct ft_gpu *gpu,
			  struct ft_error *err)
{
	static const char *const names[] = { "fabric", "op", "gpus", "bytes",
					     "time_us" };
	struct arena scratch = { 0 };
	size_t n_own = gpu->n_collective, cap = n_own;
	struct sheet s;
	bool ok = open_sheet(&s, &scratch, path, names, C_CELLS, err);

	for (size_t i = 0; ok && i < s.t->n_rows; i++) {
		struct ft_collective_table *t;
		struct ft_collective_row row;
		enum ft_collective op;
		double n;

		if (!ft_collective_find(text(&s, i, C_OP), &op))
			ok = refuse(&s, i, C_OP, "is no collective");
		ok = ok && positive(&s, i, C_GPUS, &n) &&
		     positive(&s, i, C_BYTES, &row.bytes) &&
		     positive(&s, i, C_TIME, &row.time_s);
		if (!ok || has_own(gpu, n_own, text(&s, i, C_FABRIC), op,
				   (int64_t)n))
			continue;
		row.time_s *= 1e-6;
		t = collective_table(mem, gpu, &cap, text(&s, i, C_FABRIC), op,
				     (int64_t)n, s.t->n_rows - i);
		t->from = from;
		t->on = on;
		t->row[t->n_rows++] = row;
	}
	for (size_t i = n_own; ok && i < gpu->n_collective; i++)
		qsort(gpu->collective[i].row, gpu->collective[i].n_rows,
		      sizeof(*gpu->collective[i].row), by_bytes);
	arena_release(&scratch);
	return ok;
}
