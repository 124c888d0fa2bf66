/*
 * tests/test_gpu_rows.c - rows that are read when they are asked for, against the CSV reader;
 * in files of any order; by many threads; with mistakes
 */
#include <math.h>
#include <pthread.h>

#include "tests/check.h"

#include "base/arena.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/node.h"
#include "foretoken/hw_rows.h"
#include "foretoken/sim.h"

static const char *const names[] = {
	"mi100",    "mi210", "mi300x", "mi355x", "a100-80g",
	"h100-sxm", "h200",  "b200",   "gb300",
};
enum { NAMES = sizeof(names) / sizeof(*names) };

/* As a cluster loads it. */
static struct ft_gpu *load(const char *name)
{
	struct node what = { .kind = NODE_SCALAR, .text = name };
	struct ft_error err;
	struct ft_gpu *g;

	g = ft_gpu_load_value(&what, FT_GPU_ALL_ROWS | FT_GPU_ROWS_LATER, &err);
	ok_or_say(g, err);
	return g;
}

/* ---- the obvious way ------------------------------------------------------------------- */

static double number(const struct csv *t, size_t row, const char *column)
{
	double value;
	struct ft_error err;

	ok_or_say(csv_number(t, row, csv_column(t, column), -1, &value, &err), err);
	return value;
}

static const char *word(const struct csv *t, size_t row, const char *column)
{
	return csv_text(t, row, csv_column(t, column));
}

/* bf16 and fp16 of one rate are one table. */
static enum ft_dtype format_of(const struct ft_gpu *g, const struct csv *t, size_t row)
{
	enum ft_dtype d;

	assert_true(ft_dtype_find(word(t, row, "dtype"), &d));
	if (d == FT_FP16 &&
	    g->peak_flop_per_s[FT_BF16].value == g->peak_flop_per_s[FT_FP16].value)
		d = FT_BF16;
	return d;
}

/* The rows that lie beside a profile, NAME.what.csv; NULL: it has none. */
static struct csv *rows_of(struct arena *mem, const char *name, const char *what)
{
	char *path = arena_printf(mem, "hw/gpus/%s.%s.csv", name, what);
	struct ft_error err;
	struct csv *file = file_exists(path) ? csv_read_file(mem, path, &err) : NULL;

	assert_true(file || !file_exists(path));
	return file;
}

static void products_are_those_of_the_file(void **state)
{
	size_t seen = 0;

	(void)state;
	for (size_t k = 0; k < NAMES; k++) {
		struct arena mem = { 0 };
		struct ft_gpu *g = load(names[k]);
		struct ft_error err;
		struct csv *file = rows_of(&mem, names[k], "gemm");
		size_t next[FT_DTYPES] = { 0 };

		assert_non_null(file);
		for (size_t i = 0; i < file->n_rows; i++, seen++) {
			enum ft_dtype d = format_of(g, file, i);
			const struct ft_gemm_table *t = ft_gemm_rows(&g->gemm[d], &err);
			const struct ft_gemm_row *row;
			enum ft_layout layout;
			struct ft_product p;

			ok_or_say(t, err);
			row = &t->row[next[d]++];
			assert_true(ft_layout_find(word(file, i, "layout"), &layout));
			p = ft_product_of(layout, number(file, i, "m"),
					  number(file, i, "n"), number(file, i, "k"));
			assert_true(row->m == p.m && row->n == p.n && row->k == p.k);
			near_frac(row->time_s * g->gemm_layout[d][layout].value *
					  ft_gpu_source_factor(
						  g, word(file, i, "source"), d),
				  number(file, i, "time_us") * 1e-6, 1e-12);
		}
		for (int d = 0; d < FT_DTYPES; d++)
			if (g->gemm[d].on == g)
				assert_int_equal(g->gemm[d].n_rows, next[d]);
		ft_gpu_free(g);
		arena_release(&mem);
	}
	assert_true(seen > 5000);
}

static const struct ft_attention_table *table_of(const struct ft_gpu *g,
						 const struct csv *file, size_t i)
{
	enum ft_dtype d = format_of(g, file, i);

	for (size_t k = 0; k < g->n_attention; k++)
		if (g->attention[k].on == g && g->attention[k].dtype == d &&
		    !strcmp(g->attention[k].impl, word(file, i, "impl")) &&
		    !strcmp(ft_pass_name((enum ft_pass)g->attention[k].pass),
			    word(file, i, "pass")))
			return &g->attention[k];
	fail_msg("row %zu has no table", i);
	return NULL;
}

static void kernels_of_attention_are_those_of_the_file(void **state)
{
	size_t seen = 0;

	(void)state;
	for (size_t k = 0; k < NAMES; k++) {
		struct arena mem = { 0 };
		struct ft_gpu *g = load(names[k]);
		struct ft_error err;
		struct csv *file = rows_of(&mem, names[k], "attention");
		size_t next[64] = { 0 }, n = 0;

		for (size_t i = 0; file && i < file->n_rows; i++, seen++) {
			const struct ft_attention_table *t = table_of(g, file, i);
			size_t at = (size_t)(t - g->attention);
			const struct ft_attention_row *row;

			t = ft_attention_rows(t, &err);
			ok_or_say(t, err);
			row = &t->row[next[at]++];
			assert_true(
				row->head_dim == number(file, i, "head_dim") &&
				row->sequence == number(file, i, "sequence_length") &&
				row->batch == number(file, i, "batch") &&
				row->heads == number(file, i, "heads") &&
				row->kv_heads == number(file, i, "kv_heads") &&
				row->flop_per_s == number(file, i, "tflops") * 1e12);
			assert_int_equal(row->causal,
					 !strcmp(word(file, i, "causal"), "true"));
		}
		for (size_t i = 0; i < g->n_attention; i++)
			n += g->attention[i].on == g ? g->attention[i].n_rows : 0;
		assert_int_equal(n, file ? file->n_rows : 0);
		ft_gpu_free(g);
		arena_release(&mem);
	}
	assert_true(seen > 5000);
}

/* ---- other files ----------------------------------------------------------------------- */

/* A profile in a folder of its own, with files of rows that the test writes. */
struct own {
	struct arena mem;
	char dir[40];
	char *yaml, *gemm, *attention;
};

static void own_begin(struct own *o, const char *gpu)
{
	char *from = arena_printf(&o->mem, "hw/gpus/%s.yaml", gpu), *text;
	struct ft_error err;
	size_t len;
	FILE *out;

	snprintf(o->dir, sizeof(o->dir), "/tmp/ft-test-rows-XXXXXX");
	assert_non_null(mkdtemp(o->dir));
	o->yaml = arena_printf(&o->mem, "%s/%s.yaml", o->dir, gpu);
	o->gemm = arena_printf(&o->mem, "%s/%s.gemm.csv", o->dir, gpu);
	o->attention = arena_printf(&o->mem, "%s/%s.attention.csv", o->dir, gpu);
	text = file_read(&o->mem, from, 1 << 20, &len, &err);
	ok_or_say(text, err);
	out = fopen(o->yaml, "w");
	fputs(text, out);
	fclose(out);
	out = fopen(arena_printf(&o->mem, "%s/%s.collectives.csv", o->dir, gpu), "w");
	fputs("fabric,op,gpus,bytes,time_us\n", out);
	fclose(out);
}

static void own_end(struct own *o)
{
	assert_int_equal(system(arena_printf(&o->mem, "rm -r %s", o->dir)), 0);
	arena_release(&o->mem);
}

/* The file's rows in another order, its columns from last to first. */
static void write_shuffled(const char *path, const struct csv *t, uint64_t *seed)
{
	size_t *row = calloc(t->n_rows, sizeof(*row));
	FILE *out = fopen(path, "w");

	for (size_t i = 0; i < t->n_rows; i++) {
		size_t j = rnd(seed) % (i + 1);

		row[i] = row[j];
		row[j] = i;
	}
	for (size_t c = t->n_columns; c-- > 0;)
		csv_put(out, t->column[c], !c);
	for (size_t i = 0; i < t->n_rows; i++)
		for (size_t c = t->n_columns; c-- > 0;)
			csv_put(out, csv_text(t, row[i], (int)c), !c);
	free(row);
	fclose(out);
}

/* Order counts for nothing but which row is first: sums and numbers are the same. */
static void rows_may_stand_in_any_order(void **state)
{
	struct own o = { 0 };
	struct ft_error err;
	struct ft_gpu *a = load("b200"), *b;
	uint64_t seed = 4;
	struct csv *t;

	(void)state;
	own_begin(&o, "b200");
	t = csv_read_file(&o.mem, "hw/gpus/b200.gemm.csv", &err);
	write_shuffled(o.gemm, t, &seed);
	t = csv_read_file(&o.mem, "hw/gpus/b200.attention.csv", &err);
	write_shuffled(o.attention, t, &seed);
	b = load(o.yaml);
	for (int d = 0; d < FT_DTYPES; d++) {
		const struct ft_gemm_table *x = ft_gemm_rows(&a->gemm[d], &err);
		const struct ft_gemm_table *y = ft_gemm_rows(&b->gemm[d], &err);
		double sum[2] = { 0 };

		assert_int_equal(x->n_rows, y->n_rows);
		for (size_t i = 0; i < x->n_rows; i++) {
			sum[0] += x->row[i].time_s + x->row[i].m;
			sum[1] += y->row[i].time_s + y->row[i].m;
		}
		near_frac(sum[0], sum[1], 1e-9);
	}
	for (size_t k = 0; k < a->n_attention; k++) {
		const struct ft_attention_table *x =
			ft_attention_rows(&a->attention[k], &err);
		size_t same = 0;

		for (size_t j = 0; j < b->n_attention; j++)
			same += b->attention[j].dtype == x->dtype &&
				b->attention[j].pass == x->pass &&
				!strcmp(b->attention[j].impl, x->impl) &&
				b->attention[j].n_rows == x->n_rows;
		assert_int_equal(same, 1);
	}
	ft_gpu_free(a);
	ft_gpu_free(b);
	own_end(&o);
}

/* ---- mistakes -------------------------------------------------------------------------- */

static struct ft_work product(enum ft_dtype dtype)
{
	struct ft_work w = { .kind = FT_GEMM, .dtype = dtype, .name = "t" };

	w.gemm.m = w.gemm.n = w.gemm.k = 4096;
	return w;
}

/* It is told, with its place, to each who needs the rows, and to nobody else. */
static void a_mistake_is_told_to_who_asks_for_the_rows(void **state)
{
	struct own o = { 0 };
	struct ft_error err;
	struct ft_gpu *g;

	(void)state;
	own_begin(&o, "h200");
	write_text(o.gemm, "dtype,layout,m,n,k,time_us,source\n"
			   "bf16,forward,8192,4096,4096,500,x\n"
			   "fp8,forward,8192,4096,4096,300,x\n"
			   "bf16,forward,4096,4096,4096,250,x\n"
			   "fp8,forward,8192,4096,4k,300,x\n");
	write_text(
		o.attention,
		"dtype,impl,pass,causal,head_dim,sequence_length,batch,heads,kv_heads,"
		"tflops,source\nbf16,cudnn,forward,yes,128,4096,1,8,8,500,x\n");
	g = load(o.yaml);
	for (int i = 0; i < 3; i++) {
		struct ft_work good = product(FT_BF16), bad = product(FT_FP8), a;
		struct ft_prediction p;

		ok_or_say(ft_kernel_predict(g, &good, FT_CLOCK_BURST, &p, &err), err);
		near_frac(p.time_s, 250e-6, 0.05);
		assert_false(ft_kernel_predict(g, &bad, FT_CLOCK_BURST, &p, &err));
		assert_string_equal(err.text, "'4k' is not a number");
		assert_string_equal(err.file, o.gemm);
		assert_int_equal(err.line, 5);
		assert_int_equal(err.column, 23);
		assert_true(err.of_system);
		a = (struct ft_work){ .kind = FT_ATTENTION, .name = "t" };
		a.attention.batch = 1;
		a.attention.heads = a.attention.kv_heads = 8;
		a.attention.queries = a.attention.keys = 4096;
		a.attention.qk_head_dim = a.attention.v_head_dim = 128;
		assert_false(ft_kernel_predict(g, &a, FT_CLOCK_BURST, &p, &err));
		assert_string_equal(err.text, "'yes' is not known here");
		assert_int_equal(err.line, 2);
	}
	ft_gpu_free(g);
	/* read at once, it is one of the profile */
	assert_null(ft_gpu_load(o.yaml, NULL, &err));
	assert_int_equal(err.line, 5);
	assert_false(err.of_system);
	own_end(&o);
}

/* Which table a row is of is said when the profile is loaded. */
static void a_row_of_no_table_is_told_at_once(void **state)
{
	static const struct {
		const char *row, *text;
		int column;
	} cases[] = {
		{ "bf17,cudnn,forward", "is not a number format", 1 },
		{ "bf16,cudnn,forwards", "is not known here", 12 },
		{ "bf16,cudnn", "this row has 2 cells", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct own o = { 0 };
		struct ft_error err;

		own_begin(&o, "h200");
		write_text(o.gemm, "dtype,layout,m,n,k,time_us,source\n");
		write_text(
			o.attention,
			arena_printf(&o.mem,
				     "dtype,impl,pass,causal,head_dim,sequence_length,"
				     "batch,heads,kv_heads,tflops\n\n%s%s\n",
				     cases[i].row,
				     i < 2 ? ",true,128,4096,1,8,8,500" : ""));
		assert_null(ft_gpu_load(o.yaml, NULL, &err));
		assert_non_null(strstr(err.text, cases[i].text));
		assert_int_equal(err.line, 3);
		assert_int_equal(err.column, cases[i].column);
		own_end(&o);
	}
}

/* ---- threads --------------------------------------------------------------------------- */

struct asker {
	const struct ft_gpu *gpu;
	double sum;
};

static void *ask(void *arg)
{
	struct asker *a = arg;
	struct ft_error err;

	for (int d = 0; d < FT_DTYPES; d++) {
		const struct ft_gemm_table *t = ft_gemm_rows(&a->gpu->gemm[d], &err);

		for (size_t i = 0; i < t->n_rows; i++)
			a->sum += t->row[i].time_s + (double)t->log_m[i];
	}
	for (size_t k = 0; k < a->gpu->n_attention; k++) {
		const struct ft_attention_table *t =
			ft_attention_rows(&a->gpu->attention[k], &err);

		for (size_t i = 0; i < t->n_rows; i++)
			a->sum += t->row[i].flop_per_s;
	}
	return NULL;
}

static void threads_that_ask_at_once_get_the_same_rows(void **state)
{
	enum { THREADS = 8, ROUNDS = 10 };

	(void)state;
	for (int k = 0; k < ROUNDS; k++) {
		struct ft_gpu *g = load("h200"), *alone = load("h200");
		struct asker one = { alone, 0 }, a[THREADS];
		pthread_t thread[THREADS];

		ask(&one);
		for (int i = 0; i < THREADS; i++) {
			a[i] = (struct asker){ g, 0 };
			assert_int_equal(pthread_create(&thread[i], NULL, ask, &a[i]),
					 0);
		}
		for (int i = 0; i < THREADS; i++) {
			pthread_join(thread[i], NULL);
			assert_true(a[i].sum == one.sum && one.sum > 0);
		}
		ft_gpu_free(g);
		ft_gpu_free(alone);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_are_those_of_the_file),
		cmocka_unit_test(kernels_of_attention_are_those_of_the_file),
		cmocka_unit_test(rows_may_stand_in_any_order),
		cmocka_unit_test(a_mistake_is_told_to_who_asks_for_the_rows),
		cmocka_unit_test(a_row_of_no_table_is_told_at_once),
		cmocka_unit_test(threads_that_ask_at_once_get_the_same_rows),
	};

	return cmocka_run_group_tests_name("hw/gpu_rows", tests, NULL, NULL);
}
