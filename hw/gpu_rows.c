/*
 * hw/gpu_rows.c - measured rows beside a profile: CSV files to tables
 *
 *   NAME.gemm.csv         dtype,layout,m,n,k,time_us,source
 *   NAME.attention.csv    dtype,impl,pass,causal,head_dim,sequence_length,
 *                         batch,heads,kv_heads,tflops,source
 *   NAME.collectives.csv  fabric,op,gpus,bytes,time_us,source
 *
 * m n k of a linear layer become those of the product C[m,n] = A[m,k] B[k,n]
 * that its layout is, and its time that of the forward layout and of a framework.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "hw/gpu.h"
#include "hw/gpu_sheet.h"

enum { PAD = 8 };

/* A format of the rows. Where bf16 and fp16 run at one rate, one table serves both. */
static bool table_dtype(const struct sheet *s, int i, const struct ft_gpu *on,
			enum ft_dtype *dtype)
{
	double bf16 = on->peak_flop_per_s[FT_BF16].value;
	double fp16 = on->peak_flop_per_s[FT_FP16].value;

	/* mostly the format of the row before */
	if ((unsigned)*dtype >= FT_DTYPES ||
	    strcmp(ft_dtype_name(*dtype), sheet_text(s, i)))
		if (!ft_dtype_find(sheet_text(s, i), dtype))
			return sheet_refuse(s, i, "is not a number format");
	if (*dtype == FT_FP16 && (!(fp16 > 0) || fabs(fp16 - bf16) < 0.01 * fp16))
		*dtype = FT_BF16;
	return true;
}

/* ---- products ----------------------------------------------------------- */

enum { G_DTYPE, G_LAYOUT, G_M, G_N, G_K, G_TIME, G_SOURCE, G_CELLS };

static bool gemm_row(const struct sheet *s, struct ft_product *out, double *time_us,
		     int *layout)
{
	const char *layouts[FT_LAYOUTS];
	double m, n, k;

	for (int i = 0; i < FT_LAYOUTS; i++)
		layouts[i] = ft_layout_name((enum ft_layout)i);
	if (!sheet_choice(s, G_LAYOUT, layouts, FT_LAYOUTS, layout) ||
	    !sheet_positive(s, G_M, &m) || !sheet_positive(s, G_N, &n) ||
	    !sheet_positive(s, G_K, &k) || !sheet_positive(s, G_TIME, time_us))
		return false;
	*out = ft_product_of((enum ft_layout) * layout, m, n, k);
	return true;
}

static void find_logs(struct arena *mem, struct ft_gemm_table *t)
{
	size_t padded = (t->n_rows + PAD - 1) / PAD * PAD;
	float *s = t->scale;

	for (int i = 0; i < 3; i++)
		s[i] = (float)sqrt(t->on->gemm_model.distance[i].value);

	t->log_m = ARENA_ARRAY(mem, padded, float);
	t->log_n = ARENA_ARRAY(mem, padded, float);
	t->log_k = ARENA_ARRAY(mem, padded, float);
	for (size_t i = 0; i < padded; i++) {
		bool row = i < t->n_rows;

		t->log_m[i] = row ? s[0] * log2f((float)t->row[i].m) : 1e6f;
		t->log_n[i] = row ? s[1] * log2f((float)t->row[i].n) : 1e6f;
		t->log_k[i] = row ? s[2] * log2f((float)t->row[i].k) : 1e6f;
	}
}

static bool read_gemm(struct arena *mem, struct sheet *s, const struct ft_gpu *on,
		      struct ft_gemm_table table[FT_DTYPES])
{
	size_t cap[FT_DTYPES] = { 0 };
	enum ft_dtype d = FT_BF16;
	int more, layout = 0;

	while ((more = sheet_next(s)) > 0) {
		struct ft_gemm_table *t;
		struct ft_gemm_row *row;
		struct ft_product p;
		double us;

		if (!table_dtype(s, G_DTYPE, on, &d))
			return false;
		t = &table[d];
		if (t->n_rows == cap[d])
			t->row = ARENA_GROW(mem, t->row, &cap[d]);
		row = &t->row[t->n_rows++];
		if (!gemm_row(s, &p, &us, &layout))
			return false;
		row->m = p.m;
		row->n = p.n;
		row->k = p.k;
		row->time_s = us * 1e-6 / on->gemm_layout[layout].value;
		if (on->gemm_tuned.n_sources)
			row->time_s /=
				ft_gpu_source_factor(on, sheet_text(s, G_SOURCE), d);
	}
	return more == 0;
}

/* A GPU's own rows come first; those of a kin fill only what is empty. */
bool gpu_load_gemm(struct arena *mem, const char *path, const struct ft_gpu *on,
		   const struct ft_provenance *from, struct ft_gpu *gpu,
		   struct ft_error *err)
{
	static const char *const names[] = { "dtype", "layout",	 "m",	  "n",
					     "k",     "time_us", "source" };
	size_t cells = on->gemm_tuned.n_sources ? G_CELLS : G_SOURCE;
	struct ft_gemm_table table[FT_DTYPES] = { 0 };
	struct arena scratch = { 0 };
	struct sheet s;
	bool ok;

	ok = sheet_open(&s, &scratch, path, names, cells, err) &&
	     read_gemm(mem, &s, on, table);
	for (int d = 0; ok && d < FT_DTYPES; d++) {
		if (!table[d].n_rows || gpu->gemm[d].n_rows)
			continue;
		table[d].dtype = (enum ft_dtype)d;
		table[d].on = on;
		find_logs(mem, &table[d]);
		table[d].from = from;
		gpu->gemm[d] = table[d];
	}
	arena_release(&scratch);
	return ok;
}

/* ---- attention ---------------------------------------------------------- */

enum {
	A_DTYPE,
	A_IMPL,
	A_PASS,
	A_CAUSAL,
	A_HEAD_DIM,
	A_SEQUENCE,
	A_BATCH,
	A_HEADS,
	A_KV_HEADS,
	A_TFLOPS,
	A_CELLS
};

/* A table being filled, and the room its rows have. */
struct filling {
	struct ft_attention_table table;
	size_t cap;
};

/* All of them. */
struct fillings {
	struct filling *of;
	size_t n, cap;
};

static struct filling *attention_table(struct arena *mem, struct fillings *all,
				       const char *impl, int pass, enum ft_dtype dtype)
{
	struct filling *f;

	for (size_t i = all->n; i-- > 0;) {
		f = &all->of[i];
		if (f->table.pass == pass && f->table.dtype == dtype &&
		    !strcmp(f->table.impl, impl))
			return f;
	}
	if (all->n == all->cap)
		all->of = ARENA_GROW(mem, all->of, &all->cap);
	f = &all->of[all->n++];
	*f = (struct filling){ .cap = 0 };
	f->table.impl = arena_text(mem, impl);
	f->table.pass = pass;
	f->table.dtype = dtype;
	return f;
}

static bool attention_row(const struct sheet *s, struct ft_attention_row *row)
{
	static const char *const truths[] = { "false", "true" };
	int causal = 1;
	double tflops;

	if (!sheet_choice(s, A_CAUSAL, truths, 2, &causal) ||
	    !sheet_positive(s, A_HEAD_DIM, &row->head_dim) ||
	    !sheet_positive(s, A_SEQUENCE, &row->sequence) ||
	    !sheet_positive(s, A_BATCH, &row->batch) ||
	    !sheet_positive(s, A_HEADS, &row->heads) ||
	    !sheet_positive(s, A_KV_HEADS, &row->kv_heads) ||
	    !sheet_positive(s, A_TFLOPS, &tflops))
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

/* A GPU's own table of a kernel stands before a kin's, which need not be read. */
static bool has_attention(const struct ft_gpu *gpu, const char *impl, int pass,
			  enum ft_dtype dtype)
{
	for (size_t i = gpu->n_attention; i-- > 0;)
		if (gpu->attention[i].pass == pass &&
		    gpu->attention[i].dtype == dtype &&
		    !strcmp(gpu->attention[i].impl, impl))
			return true;
	return false;
}

static bool read_attention(struct arena *mem, struct sheet *s, const struct ft_gpu *on,
			   const struct ft_gpu *gpu, struct fillings *all)
{
	static const char *const passes[] = { "forward", "backward", "both" };
	enum ft_dtype dtype = FT_BF16;
	int more, pass = 0;

	while ((more = sheet_next(s)) > 0) {
		struct ft_attention_table *t;
		struct filling *f;

		if (!table_dtype(s, A_DTYPE, on, &dtype) ||
		    !sheet_choice(s, A_PASS, passes, FT_PASSES, &pass))
			return false;
		if (has_attention(gpu, sheet_text(s, A_IMPL), pass, dtype))
			continue;
		f = attention_table(mem, all, sheet_text(s, A_IMPL), pass, dtype);
		t = &f->table;
		if (t->n_rows == f->cap)
			t->row = ARENA_GROW(mem, t->row, &f->cap);
		if (!attention_row(s, &t->row[t->n_rows++]))
			return false;
	}
	return more == 0;
}

bool gpu_load_attention(struct arena *mem, const char *path, const struct ft_gpu *on,
			const struct ft_provenance *from, struct ft_gpu *gpu,
			struct ft_error *err)
{
	static const char *const names[] = {
		"dtype",	   "impl",  "pass",  "causal",	 "head_dim",
		"sequence_length", "batch", "heads", "kv_heads", "tflops",
	};
	struct ft_attention_table *joined;
	struct arena scratch = { 0 };
	struct fillings all = { NULL, 0, 0 };
	size_t had = gpu->n_attention;
	struct sheet s;
	bool ok = sheet_open(&s, &scratch, path, names, A_CELLS, err) &&
		  read_attention(mem, &s, on, gpu, &all);

	arena_release(&scratch);
	if (!ok)
		return false;
	joined = ARENA_ARRAY(mem, had + all.n + 1, struct ft_attention_table);
	if (had)
		memcpy(joined, gpu->attention, had * sizeof(*joined));
	for (size_t i = 0; i < all.n; i++) {
		joined[had + i] = all.of[i].table;
		joined[had + i].on = on;
		joined[had + i].from = from;
	}
	gpu->attention = joined;
	gpu->n_attention = had + all.n;
	return true;
}

/* ---- collectives -------------------------------------------------------- */

enum { C_FABRIC, C_OP, C_GPUS, C_BYTES, C_TIME, C_CELLS, MOST_SIZES = 128 };

static struct ft_collective_table *collective_table(struct arena *mem,
						    struct ft_gpu *gpu, size_t *cap,
						    const char *fabric,
						    enum ft_collective op, int64_t n)
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
	t->row = ARENA_ARRAY(mem, MOST_SIZES, struct ft_collective_row);
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

static bool read_collectives(struct arena *mem, struct sheet *s,
			     const struct ft_gpu *on, const struct ft_provenance *from,
			     struct ft_gpu *gpu)
{
	size_t n_own = gpu->n_collective, cap = n_own;
	int more;

	while ((more = sheet_next(s)) > 0) {
		const char *fabric = sheet_text(s, C_FABRIC);
		struct ft_collective_table *t;
		struct ft_collective_row row;
		enum ft_collective op;
		double n;

		if (!ft_collective_find(sheet_text(s, C_OP), &op))
			return sheet_refuse(s, C_OP, "is not a collective");
		if (!sheet_positive(s, C_GPUS, &n) ||
		    !sheet_positive(s, C_BYTES, &row.bytes) ||
		    !sheet_positive(s, C_TIME, &row.time_s))
			return false;
		if (has_own(gpu, n_own, fabric, op, (int64_t)n))
			continue;
		row.time_s *= 1e-6;
		t = collective_table(mem, gpu, &cap, fabric, op, (int64_t)n);
		t->from = from;
		t->on = on;
		if (t->n_rows == MOST_SIZES)
			return sheet_refuse(s, C_BYTES, "is too many sizes");
		t->row[t->n_rows++] = row;
	}
	for (size_t i = n_own; i < gpu->n_collective; i++)
		qsort(gpu->collective[i].row, gpu->collective[i].n_rows,
		      sizeof(*gpu->collective[i].row), by_bytes);
	return more == 0;
}

bool gpu_load_collectives(struct arena *mem, const char *path, const struct ft_gpu *on,
			  const struct ft_provenance *from, struct ft_gpu *gpu,
			  struct ft_error *err)
{
	static const char *const names[] = { "fabric", "op", "gpus", "bytes",
					     "time_us" };
	struct arena scratch = { 0 };
	struct sheet s;
	bool ok = sheet_open(&s, &scratch, path, names, C_CELLS, err) &&
		  read_collectives(mem, &s, on, from, gpu);

	arena_release(&scratch);
	return ok;
}
