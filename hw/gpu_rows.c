/*
 * hw/gpu_rows.c - measured rows beside a profile: CSV files to tables
 *
 *   NAME.gemm.csv         dtype,layout,m,n,k,time_us,source
 *   NAME.attention.csv    dtype,impl,pass,causal,head_dim,sequence_length,
 *                         batch,heads,kv_heads,tflops,source
 *
 * m n k of a linear layer become those of the product C[m,n] = A[m,k] B[k,n]
 * that its layout is, and its time that of the forward layout and of a framework.
 *
 * A run asks for few of them. When a profile is loaded, its files are read and cut into runs
 * of rows of one table; the rows of a table are read when it is asked for.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "hw/gpu.h"
#include "hw/gpu_later.h"
#include "hw/gpu_sheet.h"

enum { PAD = 8 };

/* The format of a run. Where bf16 and fp16 run at one rate, one table serves both. */
static bool table_dtype(const struct sheet *s, int i, const struct ft_gpu *on,
			enum ft_dtype *dtype)
{
	double bf16 = on->peak_flop_per_s[FT_BF16].value;
	double fp16 = on->peak_flop_per_s[FT_FP16].value;
	char word[SHEET_WORD];

	if (!ft_dtype_find(sheet_word(s, i, word), dtype))
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

static void gemm_row(const struct sheet *s, enum ft_layout layout,
		     const struct ft_gemm_table *t, struct ft_gemm_row *row)
{
	struct ft_product p = ft_product_of(layout, sheet_number(s, G_M),
					    sheet_number(s, G_N), sheet_number(s, G_K));

	row->m = p.m;
	row->n = p.n;
	row->k = p.k;
	row->time_s = sheet_number(s, G_TIME) * 1e-6 /
		      t->on->gemm_layout[t->dtype][layout].value;
	if (t->on->gemm_tuned.n_sources)
		row->time_s /=
			ft_gpu_source_factor(t->on, sheet_text(s, G_SOURCE), t->dtype);
}

static bool read_gemm(struct ft_rows_later *l, struct ft_error *err)
{
	const char *layouts[FT_LAYOUTS];
	struct ft_gemm_table *t = &l->gemm;
	struct sheet s = *l->sheet;
	size_t n = 0;

	s.err = err;
	for (int i = 0; i < FT_LAYOUTS; i++)
		layouts[i] = ft_layout_name((enum ft_layout)i);
	t->row = ARENA_ARRAY(l->desk->mem, t->n_rows, struct ft_gemm_row);
	for (size_t r = 0; r < l->n_runs; r++) {
		int layout = 0;

		sheet_to_run(&s, &l->run[r]);
		for (size_t i = 0; i < l->run[r].n_rows; i++) {
			if (sheet_next(&s) < 0 ||
			    !sheet_choice(&s, G_LAYOUT, layouts, FT_LAYOUTS, &layout))
				return false;
			gemm_row(&s, (enum ft_layout)layout, t, &t->row[n++]);
		}
	}
	find_logs(l->desk->mem, t);
	return true;
}

const struct ft_gemm_table *ft_gemm_rows(const struct ft_gemm_table *table,
					 struct ft_error *err)
{
	if (!table->later)
		return table;
	return rows_read(table->later, read_gemm, err) ? &table->later->gemm : NULL;
}

/* A GPU's own rows come first; those of a kin fill only what is empty. */
bool gpu_load_gemm(const struct gpu_file *f, struct ft_error *err)
{
	static const struct sheet_column columns[] = {
		{ "dtype", false },  { "layout", false }, { "m", true },
		{ "n", true },	     { "k", true },	  { "time_us", true },
		{ "source", false },
	};
	size_t cells = f->on->gemm_tuned.n_sources ? G_CELLS : G_SOURCE;
	struct sheet *s = ARENA_NEW(f->mem, struct sheet);
	struct ft_rows_later *later[FT_DTYPES] = { 0 };
	struct sheet_run run;
	int more;

	if (!sheet_open(s, f->mem, f->path, columns, cells, err))
		return false;
	while ((more = sheet_run(s, 1, &run)) > 0) {
		enum ft_dtype d;

		if (!table_dtype(s, G_DTYPE, f->on, &d))
			return false;
		if (f->gpu->gemm[d].n_rows)
			continue;
		if (!later[d])
			later[d] = rows_later(f->mem, f->desk, s);
		rows_add(f->mem, later[d], &run);
		later[d]->gemm.n_rows += run.n_rows;
	}
	for (int d = 0; !more && d < FT_DTYPES; d++) {
		if (!later[d])
			continue;
		later[d]->gemm.dtype = (enum ft_dtype)d;
		later[d]->gemm.on = f->on;
		later[d]->gemm.from = f->from;
		f->gpu->gemm[d] = later[d]->gemm;
		f->gpu->gemm[d].later = later[d];
	}
	return !more;
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

static void attention_row(const struct sheet *s, const struct ft_attention_table *t,
			  bool causal, struct ft_attention_row *row)
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
	row->at[4] =
		log2f((float)ft_attention_kernel_size(t->on, t->impl, row->head_dim));
	row->at[5] = causal ? 1 : 0;
}

static bool read_attention(struct ft_rows_later *l, struct ft_error *err)
{
	static const char *const truths[] = { "false", "true" };
	struct ft_attention_table *t = &l->attention;
	struct sheet s = *l->sheet;
	size_t n = 0;

	s.err = err;
	t->row = ARENA_ARRAY(l->desk->mem, t->n_rows, struct ft_attention_row);
	for (size_t r = 0; r < l->n_runs; r++) {
		int causal = 0;

		sheet_to_run(&s, &l->run[r]);
		for (size_t i = 0; i < l->run[r].n_rows; i++) {
			if (sheet_next(&s) < 0 ||
			    !sheet_choice(&s, A_CAUSAL, truths, 2, &causal))
				return false;
			attention_row(&s, t, causal, &t->row[n++]);
		}
	}
	return true;
}

const struct ft_attention_table *ft_attention_rows(
	const struct ft_attention_table *table, struct ft_error *err)
{
	if (!table->later)
		return table;
	return rows_read(table->later, read_attention, err) ? &table->later->attention :
							      NULL;
}

/* The first of n tables that is of a kernel; NULL: none. */
static struct ft_attention_table *same_kernel(struct ft_attention_table *of, size_t n,
					      const struct ft_attention_table *t)
{
	for (size_t i = 0; i < n; i++)
		if (of[i].pass == t->pass && of[i].dtype == t->dtype &&
		    !strcmp(of[i].impl, t->impl))
			return &of[i];
	return NULL;
}

/* Which kernel a run is of. */
static bool kernel_of(const struct gpu_file *f, const struct sheet *s,
		      struct ft_attention_table *t)
{
	const struct sheet_cell *impl = &s->cell[s->at[A_IMPL]];
	char pass[SHEET_WORD];

	*t = (struct ft_attention_table){ .on = f->on, .from = f->from, .kin = f->kin };
	if (!table_dtype(s, A_DTYPE, f->on, &t->dtype))
		return false;
	sheet_word(s, A_PASS, pass);
	while (t->pass < FT_PASSES && strcmp(ft_pass_name((enum ft_pass)t->pass), pass))
		t->pass++;
	if (t->pass == FT_PASSES)
		return sheet_refuse(s, A_PASS, "is not known here");
	t->impl = arena_text_n(f->mem, impl->text, impl->len);
	return true;
}

/* A GPU's own table of a kernel stands before a kin's, whose rows are left out. */
static bool find_attention(const struct gpu_file *f, struct sheet *s)
{
	struct ft_gpu *gpu = f->gpu;
	size_t had = gpu->n_attention, cap = had;
	struct ft_attention_table kernel, *t;
	struct sheet_run run;
	int more;

	while ((more = sheet_run(s, 3, &run)) > 0) {
		if (!kernel_of(f, s, &kernel))
			return false;
		if (same_kernel(gpu->attention, had, &kernel))
			continue;
		t = NULL;
		if (gpu->n_attention > had)
			t = same_kernel(gpu->attention + had, gpu->n_attention - had,
					&kernel);
		if (!t) {
			if (gpu->n_attention == cap)
				gpu->attention =
					ARENA_GROW(f->mem, gpu->attention, &cap);
			t = &gpu->attention[gpu->n_attention++];
			*t = kernel;
			t->later = rows_later(f->mem, f->desk, s);
		}
		rows_add(f->mem, t->later, &run);
		t->n_rows += run.n_rows;
	}
	for (size_t i = had; i < gpu->n_attention; i++) {
		t = &gpu->attention[i];
		t->later->attention = *t;
		t->later->attention.later = NULL;
	}
	return !more;
}

bool gpu_load_attention(const struct gpu_file *f, struct ft_error *err)
{
	static const struct sheet_column columns[] = {
		{ "dtype", false },  { "impl", false },	   { "pass", false },
		{ "causal", false }, { "head_dim", true }, { "sequence_length", true },
		{ "batch", true },   { "heads", true },	   { "kv_heads", true },
		{ "tflops", true },
	};
	struct sheet *s = ARENA_NEW(f->mem, struct sheet);

	return sheet_open(s, f->mem, f->path, columns, A_CELLS, err) &&
	       find_attention(f, s);
}
