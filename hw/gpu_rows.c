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
#include "base/file.h"
#include "hw/gpu.h"

enum { MOST_CELLS = 16, PAD = 8, LARGEST_FILE = 64 * 1024 * 1024 };

/*
 * One row at a time of a file that is plain numbers and words, cut in place.
 * base/csv.h would do, but keeps every cell of the table: three times slower,
 * and a profile of 5,000 rows is to load in 3 ms.
 */
struct sheet {
	const char *path;
	char *next;               /* the row after this one */
	int line;
	char *cell[MOST_CELLS];   /* of this row, as they stand in the file */
	char *start;              /* of this row */
	size_t n_cells, width;
	size_t at[MOST_CELLS];    /* where the columns asked for are */
	struct ft_error *err;
};

/* Cut the next row that is neither empty nor a comment; false at the end. */
static bool cut(struct sheet *s)
{
	char *p = s->next;

	while (*p == '#' || *p == '\n' || *p == '\r') {
		s->line += *p != '\r';
		if (*p == '#')
			p += strcspn(p, "\n");
		p += *p != '\0';
	}
	s->start = p;
	s->line++;
	s->n_cells = 0;
	if (!*p)
		return false;
	for (char *cell = p;; p++) {
		char c = *p;

		if (c != ',' && c != '\n' && c != '\r' && c)
			continue;
		if (s->n_cells < MOST_CELLS)
			s->cell[s->n_cells] = cell;
		s->n_cells++;
		cell = p + 1;
		*p = '\0';
		if (c == ',')
			continue;
		if (c == '\r' && p[1] == '\n')
			p++;
		s->next = p + (c != '\0');
		return true;
	}
}

static bool open_sheet(struct sheet *s, struct arena *mem, const char *path,
		       const char *const *names, size_t n, struct ft_error *err)
{
	struct ft_mark top = { path, 1, 1 };
	size_t len;

	*s = (struct sheet){ .path = path, .err = err };
	s->next = file_read(mem, path, LARGEST_FILE, &len, err);
	if (!s->next)
		return false;
	if (strlen(s->next) != len)
		return ft_fail(err, &top, "is binary, not CSV text");
	if (!cut(s))
		return ft_fail(err, &top, "is empty: a header line is needed");
	top.line = s->line;
	s->width = s->n_cells;
	if (s->width > MOST_CELLS)
		return ft_fail(err, &top, "has more than %d columns",
			       MOST_CELLS);
	for (size_t i = 0; i < n; i++) {
		size_t c = 0;

		while (c < s->width && strcmp(s->cell[c], names[i]))
			c++;
		if (c == s->width)
			return ft_fail(err, &top, "lacks the column '%s'",
				       names[i]);
		s->at[i] = c;
	}
	return true;
}

/* The next row: 1; at the end 0; a row of another width is an error, -1. */
static int next_row(struct sheet *s)
{
	struct ft_mark at = { s->path, 0, 1 };

	if (!cut(s))
		return 0;
	if (s->n_cells == s->width)
		return 1;
	at.line = s->line;
	ft_fail(s->err, &at, "this row has %zu cells, the header %zu",
		s->n_cells, s->width);
	return -1;
}

static const char *text(const struct sheet *s, int i)
{
	return s->cell[s->at[i]];
}

static bool refuse(const struct sheet *s, int i, const char *why)
{
	struct ft_mark at = { s->path, s->line,
			      (int)(text(s, i) - s->start) + 1 };

	return ft_fail(s->err, &at, "'%.40s' %s", text(s, i), why);
}

/* Every number of these files is above zero, most are short decimals: those
 * are read digit by digit, with one exact division. */
static bool positive(const struct sheet *s, int i, double *value)
{
	static const double tens[] = { 1,   1e1, 1e2, 1e3, 1e4, 1e5, 1e6,
				       1e7, 1e8, 1e9, 1e10, 1e11, 1e12 };
	const char *p = text(s, i), *point = NULL;
	int64_t digits = 0;
	char *end;

	for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
		if (*p == '.')
			point = p + 1;
		else if (digits < INT64_C(1) << 49)
			digits = digits * 10 + (*p - '0');
		else
			break;
	}
	*value = (double)digits / (point ? tens[(p - point) % 13] : 1);
	if (*p || (point && p - point > 12)) {
		*value = strtod(text(s, i), &end);
		if (*end || !isfinite(*value))
			return refuse(s, i, "is not a number");
	}
	return *value > 0 || refuse(s, i, "is not a number above zero");
}

static bool choice(const struct sheet *s, int i, const char *const *names,
		   int n, int *value)
{
	const char *word = text(s, i);

	for (*value = 0; *value < n; ++*value)
		if (!strcmp(names[*value], word))
			return true;
	return refuse(s, i, "is not known here");
}

/* bf16 and fp16 run at one rate on the same units: one table serves both. */
static bool table_dtype(const struct sheet *s, int i, enum ft_dtype *dtype)
{
	if (!ft_dtype_find(text(s, i), dtype))
		return refuse(s, i, "is no number format");
	if (*dtype == FT_FP16)
		*dtype = FT_BF16;
	return true;
}

/* ---- products ------------------------------------------------------------ */

enum { G_DTYPE, G_LAYOUT, G_M, G_N, G_K, G_TIME, G_CELLS };

static bool gemm_row(const struct sheet *s, const struct ft_gpu *on,
		     struct ft_gemm_row *row)
{
	static const char *const layouts[] = { "forward", "dgrad", "wgrad" };
	double m, n, k, us;
	int layout;

	if (!choice(s, G_LAYOUT, layouts, FT_HW_LAYOUTS, &layout) ||
	    !positive(s, G_M, &m) || !positive(s, G_N, &n) ||
	    !positive(s, G_K, &k) || !positive(s, G_TIME, &us))
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

static bool read_gemm(struct arena *mem, struct sheet *s,
		      const struct ft_gpu *on,
		      struct ft_gemm_table table[FT_DTYPES])
{
	size_t cap[FT_DTYPES] = { 0 };
	enum ft_dtype d;
	int more;

	while ((more = next_row(s)) > 0) {
		struct ft_gemm_table *t;

		if (!table_dtype(s, G_DTYPE, &d))
			return false;
		t = &table[d];
		if (t->n_rows == cap[d])
			t->row = ARENA_GROW(mem, t->row, &cap[d]);
		if (!gemm_row(s, on, &t->row[t->n_rows++]))
			return false;
	}
	return more == 0;
}

/* A GPU's own rows come first; those of a kin fill only what is empty. */
bool gpu_load_gemm(struct arena *mem, const char *path, const struct ft_gpu *on,
		   const struct ft_provenance *from, struct ft_gpu *gpu,
		   struct ft_error *err)
{
	static const char *const names[] = { "dtype", "layout", "m", "n", "k",
					     "time_us" };
	struct ft_gemm_table table[FT_DTYPES] = { 0 };
	struct arena scratch = { 0 };
	struct sheet s;
	bool ok;

	ok = open_sheet(&s, &scratch, path, names, G_CELLS, err) &&
	     read_gemm(mem, &s, on, table);
	for (int d = 0; ok && d < FT_DTYPES; d++) {
		if (!table[d].n_rows || gpu->gemm[d].n_rows)
			continue;
		find_logs(mem, &table[d]);
		table[d].dtype = (enum ft_dtype)d;
		table[d].on = on;
		table[d].from = from;
		gpu->gemm[d] = table[d];
	}
	arena_release(&scratch);
	return ok;
}

/* ---- attention ----------------------------------------------------------- */

enum { A_DTYPE, A_IMPL, A_PASS, A_CAUSAL, A_HEAD_DIM, A_SEQUENCE, A_BATCH,
       A_HEADS, A_KV_HEADS, A_TFLOPS, A_CELLS };

/* A table being filled, and the room its rows have. */
struct filling {
	struct ft_attention_table table;
	size_t cap;
};

static struct filling *attention_table(struct arena *mem, struct filling **all,
				       size_t *n, size_t *cap, const char *impl,
				       int pass, enum ft_dtype dtype)
{
	struct filling *f;

	for (size_t i = *n; i-- > 0;) {
		f = &(*all)[i];
		if (f->table.pass == pass && f->table.dtype == dtype &&
		    !strcmp(f->table.impl, impl))
			return f;
	}
	if (*n == *cap)
		*all = ARENA_GROW(mem, *all, cap);
	f = &(*all)[(*n)++];
	*f = (struct filling){ .cap = 0 };
	f->table.impl = arena_text(mem, impl);
	f->table.pass = pass;
	f->table.dtype = dtype;
	return f;
}

static bool attention_row(const struct sheet *s, struct ft_attention_row *row)
{
	static const char *const truths[] = { "false", "true" };
	int causal;
	double tflops;

	if (!choice(s, A_CAUSAL, truths, 2, &causal) ||
	    !positive(s, A_HEAD_DIM, &row->head_dim) ||
	    !positive(s, A_SEQUENCE, &row->sequence) ||
	    !positive(s, A_BATCH, &row->batch) ||
	    !positive(s, A_HEADS, &row->heads) ||
	    !positive(s, A_KV_HEADS, &row->kv_heads) ||
	    !positive(s, A_TFLOPS, &tflops))
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

static bool read_attention(struct arena *mem, struct sheet *s,
			   struct filling **all, size_t *n)
{
	static const char *const passes[] = { "forward", "backward", "both" };
	size_t cap = 0;
	int more, pass;

	while ((more = next_row(s)) > 0) {
		struct ft_attention_table *t;
		enum ft_dtype dtype;
		struct filling *f;

		if (!table_dtype(s, A_DTYPE, &dtype) ||
		    !choice(s, A_PASS, passes, FT_HW_PASSES, &pass))
			return false;
		f = attention_table(mem, all, n, &cap, text(s, A_IMPL), pass,
				    dtype);
		t = &f->table;
		if (t->n_rows == f->cap)
			t->row = ARENA_GROW(mem, t->row, &f->cap);
		if (!attention_row(s, &t->row[t->n_rows++]))
			return false;
	}
	return more == 0;
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
	struct ft_attention_table *joined;
	struct arena scratch = { 0 };
	struct filling *all = NULL;
	size_t n = 0, had = gpu->n_attention;
	struct sheet s;
	bool ok = open_sheet(&s, &scratch, path, names, A_CELLS, err) &&
		  read_attention(mem, &s, &all, &n);

	arena_release(&scratch);
	if (!ok)
		return false;
	joined = ARENA_ARRAY(mem, had + n + 1, struct ft_attention_table);
	if (had)
		memcpy(joined, gpu->attention, had * sizeof(*joined));
	for (size_t i = 0; i < n; i++) {
		joined[had + i] = all[i].table;
		joined[had + i].on = on;
		joined[had + i].from = from;
	}
	gpu->attention = joined;
	gpu->n_attention = had + n;
	return true;
}

/* ---- collectives --------------------------------------------------------- */

enum { C_FABRIC, C_OP, C_GPUS, C_BYTES, C_TIME, C_CELLS, MOST_SIZES = 128 };

static struct ft_collective_table *
collective_table(struct arena *mem, struct ft_gpu *gpu, size_t *cap,
		 const char *fabric, enum ft_collective op, int64_t n)
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
			     const struct ft_gpu *on,
			     const struct ft_provenance *from,
			     struct ft_gpu *gpu)
{
	size_t n_own = gpu->n_collective, cap = n_own;
	int more;

	while ((more = next_row(s)) > 0) {
		struct ft_collective_table *t;
		struct ft_collective_row row;
		enum ft_collective op;
		double n;

		if (!ft_collective_find(text(s, C_OP), &op))
			return refuse(s, C_OP, "is no collective");
		if (!positive(s, C_GPUS, &n) ||
		    !positive(s, C_BYTES, &row.bytes) ||
		    !positive(s, C_TIME, &row.time_s))
			return false;
		if (has_own(gpu, n_own, text(s, C_FABRIC), op, (int64_t)n))
			continue;
		row.time_s *= 1e-6;
		t = collective_table(mem, gpu, &cap, text(s, C_FABRIC), op,
				     (int64_t)n);
		t->from = from;
		t->on = on;
		if (t->n_rows == MOST_SIZES)
			return refuse(s, C_BYTES, "is one size too many");
		t->row[t->n_rows++] = row;
	}
	for (size_t i = n_own; i < gpu->n_collective; i++)
		qsort(gpu->collective[i].row, gpu->collective[i].n_rows,
		      sizeof(*gpu->collective[i].row), by_bytes);
	return more == 0;
}

bool gpu_load_collectives(struct arena *mem, const char *path,
			  const struct ft_gpu *on,
			  const struct ft_provenance *from, struct ft_gpu *gpu,
			  struct ft_error *err)
{
	static const char *const names[] = { "fabric", "op", "gpus", "bytes",
					     "time_us" };
	struct arena scratch = { 0 };
	struct sheet s;
	bool ok = open_sheet(&s, &scratch, path, names, C_CELLS, err) &&
		  read_collectives(mem, &s, on, from, gpu);

	arena_release(&scratch);
	return ok;
}
