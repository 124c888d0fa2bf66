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

/* A format of the rows; *dtype, on entry, is that of the row before. Where bf16 and fp16 run
 * at one rate, one table serves both. */
static bool table_dtype(const struct sheet *s, int i, const struct ft_gpu *on,
			enum ft_dtype *dtype)
{
	double bf16 = on->peak_flop_per_s[FT_BF16].value;
	double fp16 = on->peak_flop_per_s[FT_FP16].value;

	if (sheet_same(s, i))
		return true;
	if (!ft_dtype_find(sheet_text(s, i), dtype))
		return sheet_refuse(s, i, "is not a number format");
	if (*dtype == FT_FP16 && (!(fp16 > 0) || fabs(fp16 - bf16) < 0.01 * fp16))
		*dtype = FT_BF16;
	return true;
}

/* ---- products ----------------------------------------------------------- */

enum { G_DTYPE, G_LAYOUT, G_M, G_N, G_K, G_TIME, G_SOURCE, G_CELLS };

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
	const char *layouts[FT_LAYOUTS];
	size_t cap[FT_DTYPES] = { 0 };
	enum ft_dtype d = FT_BF16;
	int more, layout = 0;

	for (int i = 0; i < FT_LAYOUTS; i++)
		layouts[i] = ft_layout_name((enum ft_layout)i);
	while ((more = sheet_next(s)) > 0) {
		struct ft_gemm_table *t;
		struct ft_gemm_row *row;
		struct ft_product p;

		if (!table_dtype(s, G_DTYPE, on, &d) ||
		    !sheet_choice(s, G_LAYOUT, layouts, FT_LAYOUTS, &layout))
			return false;
		t = &table[d];
		if (t->n_rows == cap[d])
			t->row = ARENA_GROW(mem, t->row, &cap[d]);
		row = &t->row[t->n_rows++];
		p = ft_product_of((enum ft_layout)layout, sheet_number(s, G_M),
				  sheet_number(s, G_N), sheet_number(s, G_K));
		row->m = p.m;
		row->n = p.n;
		row->k = p.k;
		row->time_s =
			sheet_number(s, G_TIME) * 1e-6 / on->gemm_layout[layout].value;
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
	static const struct sheet_column columns[] = {
		{ "dtype", false },  { "layout", false }, { "m", true },
		{ "n", true },	     { "k", true },	  { "time_us", true },
		{ "source", false },
	};
	size_t cells = on->gemm_tuned.n_sources ? G_CELLS : G_SOURCE;
	struct ft_gemm_table table[FT_DTYPES] = { 0 };
	struct arena scratch = { 0 };
	struct sheet s;
	bool ok;

	ok = sheet_open(&s, &scratch, path, columns, cells, err) &&
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

static void attention_row(const struct sheet *s, bool causal,
			  struct ft_attention_row *row)
{
	row->head_dim = sheet_number(s, A_HEAD_DIM);
	row->sequence = sheet_number(s, A_SEQUENCE);
	row->batch = sheet_number(s, A_BATCH);
	row->heads = sheet_number(s, A_HEADS);
	row->kv_heads = sheet_number(s, A_KV_HEADS);
	row->causal = causal;
	row->flop_per_s = sheet_number(s, A_TFLOPS) * 1e12;
	row->at[0] = log2f((float)row->sequence);
	row->at[1] = log2f((float)row->batch);
	row->at[2] = log2f((float)row->heads);
	row->at[3] = log2f((float)row->kv_heads);
	row->at[4] = log2f((float)row->head_dim);
	row->at[5] = causal ? 1 : 0;
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
	static const char *const truths[] = { "false", "true" };
	enum ft_dtype dtype = FT_BF16;
	struct filling *f = NULL; /* NULL: the GPU has this kernel's rows */
	bool leads = s->at[A_DTYPE] < 3 && s->at[A_IMPL] < 3 && s->at[A_PASS] < 3;
	int more, pass = 0, causal = 0;

	while ((more = sheet_next(s)) > 0) {
		struct ft_attention_table *t;
		bool same = sheet_same(s, A_DTYPE) && sheet_same(s, A_IMPL) &&
			    sheet_same(s, A_PASS);

		if (!table_dtype(s, A_DTYPE, on, &dtype) ||
		    !sheet_choice(s, A_PASS, passes, FT_PASSES, &pass) ||
		    !sheet_choice(s, A_CAUSAL, truths, 2, &causal))
			return false;
		if (!same)
			f = has_attention(gpu, sheet_text(s, A_IMPL), pass, dtype) ?
				    NULL :
				    attention_table(mem, all, sheet_text(s, A_IMPL),
						    pass, dtype);
		/* the rest of its rows, where they begin with what says so */
		s->pass_over = !f && leads ? 3 : 0;
		if (!f)
			continue;
		t = &f->table;
		if (t->n_rows == f->cap)
			t->row = ARENA_GROW(mem, t->row, &f->cap);
		attention_row(s, causal, &t->row[t->n_rows++]);
	}
	return more == 0;
}

bool gpu_load_attention(struct arena *mem, const char *path, const struct ft_gpu *on,
			const struct ft_provenance *from, struct ft_gpu *gpu,
			struct ft_error *err)
{
	static const struct sheet_column columns[] = {
		{ "dtype", false },  { "impl", false },	   { "pass", false },
		{ "causal", false }, { "head_dim", true }, { "sequence_length", true },
		{ "batch", true },   { "heads", true },	   { "kv_heads", true },
		{ "tflops", true },
	};
	struct ft_attention_table *joined;
	struct arena scratch = { 0 };
	struct fillings all = { NULL, 0, 0 };
	size_t had = gpu->n_attention;
	struct sheet s;
	bool ok = sheet_open(&s, &scratch, path, columns, A_CELLS, err) &&
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

enum { C_FABRIC, C_OP, C_GPUS, C_BYTES, C_TIME, C_CELLS };
enum { MOST_SIZES = 128, MOST_RANKS = 1 << 30 };

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
	struct ft_collective_table *t = NULL; /* NULL: the GPU has this one's rows */
	enum ft_collective op = 0;
	double ranks = 0;
	int more;

	while ((more = sheet_next(s)) > 0) {
		const char *fabric = sheet_text(s, C_FABRIC);
		bool same = sheet_same(s, C_FABRIC) && sheet_same(s, C_OP) &&
			    sheet_number(s, C_GPUS) == ranks;

		ranks = sheet_number(s, C_GPUS);
		if (ranks > MOST_RANKS)
			return sheet_refuse(s, C_GPUS, "is too many GPUs");
		if (!sheet_same(s, C_OP) &&
		    !ft_collective_find(sheet_text(s, C_OP), &op))
			return sheet_refuse(s, C_OP, "is not a collective");
		if (!same && has_own(gpu, n_own, fabric, op, (int64_t)ranks))
			t = NULL;
		else if (!same)
			t = collective_table(mem, gpu, &cap, fabric, op,
					     (int64_t)ranks);
		if (!t)
			continue;
		t->from = from;
		t->on = on;
		if (t->n_rows == MOST_SIZES)
			return sheet_refuse(s, C_BYTES, "is too many sizes");
		t->row[t->n_rows++] = (struct ft_collective_row){
			.bytes = sheet_number(s, C_BYTES),
			.time_s = sheet_number(s, C_TIME) * 1e-6,
		};
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
	static const struct sheet_column columns[] = {
		{ "fabric", false }, { "op", false },	  { "gpus", true },
		{ "bytes", true },   { "time_us", true },
	};
	struct arena scratch = { 0 };
	struct sheet s;
	bool ok = sheet_open(&s, &scratch, path, columns, C_CELLS, err) &&
		  read_collectives(mem, &s, on, from, gpu);

	arena_release(&scratch);
	return ok;
}
