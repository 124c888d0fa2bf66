/*
 * tests/test_import_columns.c - every cell of a table that is imported comes back
 *
 * Rows of all kinds are drawn; what the store then holds of each is what was written, and a rate in
 * the place of a time is the time that it stands for.
 */
#include "tests/scratch.h"

#include "foretoken/sim.h"
#include "tests/check.h"

enum { ROWS = 120 };

static uint64_t seed = 10;

/* A row as it is written, and the time that it has. */
struct row {
	const char *kernel, *op, *dtype, *layout, *impl, *pass, *fabric;
	int m, n, k, batch, heads, kv_heads, sequence, head_dim, gpus;
	double bytes, us, tflops, busbw;
	bool causal, warm, accumulate, in_step, sustained;
};

static struct row any_row(void)
{
	static const char *const kernels[] = { "gemm", "attention", "copy", "rmsnorm" };
	static const char *const ops[] = { "all_reduce", "all_gather", "all_to_all" };
	struct row r = { .kernel = kernels[rnd_below(&seed, 4)], .op = "" };

	if (rnd_below(&seed, 3) == 0)
		r.op = ops[rnd_below(&seed, 3)], r.kernel = "";
	r.dtype = rnd_below(&seed, 2) ? "bf16" : "fp8";
	r.layout = rnd_below(&seed, 3) ? "wgrad" : "";
	r.impl = rnd_below(&seed, 2) ? "cudnn" : "",
	r.pass = rnd_below(&seed, 2) ? "backward" : "forward";
	r.fabric = rnd_below(&seed, 2) ? "nvlink" : "pcie";
	r.m = 1 + rnd_below(&seed, 9000), r.n = 1 + rnd_below(&seed, 9000),
	r.k = 1 + rnd_below(&seed, 9000);
	r.batch = 1 + rnd_below(&seed, 8), r.heads = 1 + rnd_below(&seed, 64),
	r.kv_heads = 1 + rnd_below(&seed, 64);
	r.sequence = 1 + rnd_below(&seed, 9000), r.head_dim = 1 + rnd_below(&seed, 256),
	r.gpus = 2 + rnd_below(&seed, 30);
	r.bytes = 1 + rnd_below(&seed, 1 << 30);
	if (!strcmp(r.kernel, "copy") ||
	    !strcmp(r.kernel, "rmsnorm")) /* as its shape */
		r.bytes = (double)r.m * r.n * (r.dtype[0] == 'b' ? 2 : 1);
	r.causal = rnd_below(&seed, 2), r.warm = rnd_below(&seed, 2),
	r.accumulate = rnd_below(&seed, 2);
	r.in_step = rnd_below(&seed, 2), r.sustained = rnd_below(&seed, 2);
	r.us = rnd_below(&seed, 2) ? (1 + rnd_below(&seed, 1000)) / 8.0 : 0;
	if (!r.us && r.op[0])
		r.busbw = (1 + rnd_below(&seed, 400)) / 8.0;
	else if (!r.us && (r.kernel[0] == 'g' || r.kernel[0] == 'a'))
		r.tflops = (1 + rnd_below(&seed, 90)) / 8.0;
	else if (!r.us)
		r.us = 7;
	return r;
}

/* Operations or bytes over the rate. */
static double us_of(const struct row *r)
{
	bool back = !strcmp(r->pass, "backward");
	double n = r->gpus, pairs = 0;

	if (r->us > 0)
		return r->us;
	if (r->op[0])
		return r->bytes / (r->busbw * 1e9) * 1e6 *
		       (!strcmp(r->op, "all_reduce") ? 2 : 1) * (n - 1) / n;
	if (r->kernel[0] == 'g')
		return 2.0 * r->m * r->n * r->k / (r->tflops * 1e12) * 1e6;
	for (int q = 0; q < r->sequence; q++) /* the diagonal counts half */
		pairs += r->causal ? q + 0.5 : r->sequence;
	/* two products each way, and of a backward half as many more */
	return (back ? 10 : 4) * pairs * r->head_dim * r->batch * r->heads /
	       (r->tflops * 1e12) * 1e6;
}

static void write_rows(const char *path, const struct row *row)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	fputs("kernel,op,dtype,layout,impl,pass,fabric,m,n,k,batch,heads,kv_heads,"
	      "sequence_length,head_dim,gpus,bytes,causal,warm,accumulate,in_step,clock,"
	      "measured.time_us,measured.tflops,measured.busbw_gb_per_s,source,date\n",
	      out);
	for (int i = 0; i < ROWS; i++) {
		const struct row *r = &row[i];

		fprintf(out, "%s,%s,%s,%s,%s,%s,%s,%d,%d,%d,%d,%d,%d,%d,%d,%d,%.0f,",
			r->kernel, r->op, r->dtype, r->layout, r->impl, r->pass,
			r->fabric, r->m, r->n, r->k, r->batch, r->heads, r->kv_heads,
			r->sequence, r->head_dim, r->gpus, r->bytes);
		fprintf(out, "%s,%s,%s,%s,%s,%g,%g,%g,s%d,2026-%02d\n",
			r->causal ? "true" : "false", r->warm ? "true" : "",
			r->accumulate ? "true" : "false", r->in_step ? "true" : "",
			r->sustained ? "sustained" : "burst", r->us, r->tflops,
			r->busbw, i, 1 + i % 12);
	}
	assert_int_equal(fclose(out), 0);
}

static void words_are(const struct ft_measurement *m, const struct row *r, int i)
{
	bool gemm = !strcmp(r->kernel, "gemm"), shaped = gemm || r->kernel[0] == 'a';
	char date[16];

	snprintf(date, sizeof(date), "2026-%02d", 1 + i % 12);
	assert_string_equal(m->kind, r->op[0] ? "collective" :
				     shaped   ? r->kernel :
						"memory");
	assert_string_equal(m->kernel, r->op[0] ? r->op : shaped ? "" : r->kernel);
	assert_string_equal(m->dtype, r->dtype);
	assert_string_equal(m->layout, gemm && !r->layout[0] ? "forward" : r->layout);
	assert_string_equal(m->impl, r->impl);
	assert_string_equal(m->pass, r->pass);
	assert_string_equal(m->fabric, r->fabric);
	assert_string_equal(m->date, date);
	assert_string_equal(m->status, "ok");
}

static void every_cell_comes_back(void **state)
{
	struct scratch *x = *state;
	struct ft_probe_run run = { .backend = "csv", .device = "D" };
	const struct ft_measurement *m;
	struct row row[ROWS];
	bool seen[ROWS] = { false };
	struct ft_store *s;
	struct ft_error err;
	char path[128];
	size_t n;

	for (int i = 0; i < ROWS; i++)
		row[i] = any_row();
	snprintf(path, sizeof(path), "%s/c.csv", x->folder);
	write_rows(path, row);
	s = ft_store_open(x->path, true, &err);
	ok_or_say(s, err);
	ok_or_say(ft_store_import(s, FT_IMPORT_CSV, path, &run, &n, &err), err);
	assert_int_equal(n, ROWS);
	m = ft_store_measurements(s, NULL, 0, &n, &err);
	assert_int_equal(n, ROWS);
	for (size_t k = 0; k < n; k++, m++) {
		int i = atoi(m->source + 1);
		const struct row *r = &row[i];

		assert_false(seen[i]);
		seen[i] = true;
		words_are(m, r, i);
		near_frac(m->time_us, us_of(r), 1e-9);
		assert_true(m->m == r->m && m->n == r->n && m->k == r->k);
		assert_true(m->batch == r->batch && m->heads == r->heads);
		assert_true(m->kv_heads == r->kv_heads && m->sequence == r->sequence);
		assert_true(m->head_dim == r->head_dim && m->gpus == r->gpus);
		assert_true(m->bytes == r->bytes);
		assert_true(m->causal == r->causal && m->warm == r->warm);
		assert_true(m->accumulate == r->accumulate && m->in_step == r->in_step);
		assert_int_equal(m->sustained, r->sustained);
	}
	ft_store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(every_cell_comes_back) };

	gsl_set_error_handler_off();
	return cmocka_run_group_tests_name("import columns", tests, NULL, NULL);
}
