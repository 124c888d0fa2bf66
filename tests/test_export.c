/*
 * tests/test_export.c - a store as tables: of drawn measurements each cell stands under its column, in a row of the
 * table that it belongs to, and what is no row of one is in neither
 */
#include "base/arena.h"
#include "base/csv.h"
#include "tests/check.h"
#include "tests/scratch.h"

enum { DRAWS = 40, ROWS = 30 };

static uint64_t seed = 71;

#define PICK(list) (list)[rnd_below(&seed, (int)(sizeof(list) / sizeof(*(list))))]

static double number(int most)
{
	return rnd_below(&seed, 3) ? 1 + rnd_below(&seed, most) : 0;
}

static struct ft_measurement draw(void)
{
	static const char *const kinds[] = { "gemm",   "attention",  "memory",
					     "memory", "collective", "transfer",
					     "beside", "launch",     "trace" };
	static const char *const kernels[] = { "concat", "silu", "a, \"b\"",
					       "all_reduce" };
	static const char *const dtypes[] = { "bf16", "fp8", "" };
	static const char *const words[] = { "forward", "wgrad", "" };
	static const char *const statuses[] = { "ok", "ok", "ok", "failed" };

	return (struct ft_measurement){
		.kind = PICK(kinds),
		.kernel = PICK(kernels),
		.dtype = PICK(dtypes),
		.layout = PICK(words),
		.impl = rnd_below(&seed, 2) ? "cudnn" : "",
		.pass = PICK(words),
		.m = number(90000),
		.n = number(900),
		.k = number(900),
		.batch = number(9),
		.heads = number(64),
		.kv_heads = number(8),
		.sequence = number(9000),
		.head_dim = number(128),
		.bytes = number(1 << 30),
		.gpus = number(16),
		.causal = rnd_below(&seed, 2),
		.warm = rnd_below(&seed, 2),
		.accumulate = !rnd_below(&seed, 4),
		.sustained = rnd_below(&seed, 2),
		.in_step = rnd_below(&seed, 2),
		.status = PICK(statuses),
		.time_us = (1 + rnd_below(&seed, 99999)) / 16.0,
		.fabric = rnd_below(&seed, 2) ? "nvlink" : "",
	};
}

/* ---- what each row must say ------------------------------------------------------------- */

static void says(const struct csv *t, size_t i, const char *column, const char *want)
{
	if (csv_column(t, column) < 0)
		fail_msg("there is no column %s", column);
	if (strcmp(csv_text(t, i, csv_column(t, column)), want))
		fail_msg("row %zu: %s is '%s', wanted '%s'", i, column,
			 csv_text(t, i, csv_column(t, column)), want);
}

static void is_number(const struct csv *t, size_t i, const char *column, double want)
{
	char text[32];

	snprintf(text, sizeof(text), "%.0f", want);
	says(t, i, column, text);
}

static void took(const struct csv *t, size_t i, const struct ft_measurement *m)
{
	const char *text = csv_text(t, i, csv_column(t, "measured.time_us"));

	near_frac(strtod(text, NULL), m->time_us, 0.6e-4); /* of five digits */
}

static void is_grouped(const struct csv *t, size_t i, const struct ft_measurement *m,
		       const char *a, const char *b)
{
	char text[100];

	snprintf(text, sizeof(text), "%s%s %s", m->in_step ? "in step: " : "", a, b);
	says(t, i, "group", text);
}

static void is_kernel(const struct csv *t, size_t i, const struct ft_measurement *m,
		      const char *backend)
{
	bool memory = !strcmp(m->kind, "memory");
	/* of two sources that are stacked the probe of PyTorch counts one's rows */
	bool stacked = !strcmp(backend, "torch") && !strcmp(m->kernel, "concat");
	const char *kernel = memory ? m->kernel : m->kind;

	says(t, i, "kernel", kernel);
	says(t, i, "gpu", "some-gpu");
	says(t, i, "dtype", m->dtype);
	says(t, i, "warm", m->warm ? "true" : "false");
	says(t, i, "clock", m->sustained ? "sustained" : "burst");
	says(t, i, "layout", m->layout);
	is_number(t, i, "m", stacked ? m->m + m->m : m->m);
	is_number(t, i, "n", m->n);
	is_number(t, i, "k", m->k);
	says(t, i, "impl", m->impl);
	says(t, i, "pass", m->pass);
	is_number(t, i, "batch", m->batch);
	is_number(t, i, "heads", m->heads);
	is_number(t, i, "kv_heads", m->kv_heads);
	is_number(t, i, "sequence_length", m->sequence);
	is_number(t, i, "head_dim", m->head_dim);
	says(t, i, "causal", m->causal ? "true" : "false");
	if (memory && m->m < 1)
		is_number(t, i, "bytes", m->bytes);
	else
		says(t, i, "bytes", "");
	took(t, i, m);
	is_grouped(t, i, m, m->in_step ? m->kind : backend,
		   memory ? m->kernel : m->dtype);
}

static void is_collective(const struct csv *t, size_t i, const struct ft_measurement *m)
{
	char gpus[32];

	snprintf(gpus, sizeof(gpus), "%.0f", m->gpus);
	says(t, i, "op", m->kernel);
	says(t, i, "gpu", "some-gpu");
	says(t, i, "gpus", gpus);
	says(t, i, "fabric", m->fabric);
	is_number(t, i, "bytes", m->bytes);
	took(t, i, m);
	is_grouped(t, i, m, m->kernel, gpus);
}

static bool belongs(const struct ft_measurement *m, bool collectives)
{
	if (strcmp(m->status, "ok"))
		return false;
	if (!strcmp(m->kind, "collective"))
		return collectives;
	return !collectives && !m->accumulate &&
	       (!strcmp(m->kind, "gemm") || !strcmp(m->kind, "attention") ||
		!strcmp(m->kind, "memory"));
}

/* ---- one run, or all ---------------------------------------------------------------------- */

struct drawn {
	struct ft_measurement row[ROWS];
	const char *backend[ROWS];
	int64_t run[ROWS];
};

static void fill(struct ft_store *s, struct drawn *d)
{
	static const char *const backends[] = { "torch", "cuda" };
	const char *backend = NULL;
	int64_t run = 0;
	struct ft_error err;

	for (int i = 0; i < ROWS; i++) {
		struct ft_probe_run of = { .device = "D", .fabric = "of its run" };
		char cell[16];

		if (!i || !rnd_below(&seed, 12)) {
			of.backend = backend = PICK(backends);
			run++;
			ok_or_say(ft_store_begin(s, &of, &err), err);
		}
		d->row[i] = draw();
		snprintf(cell, sizeof(cell), "cell %02d", i); /* in this order */
		d->row[i].cell = cell;
		d->backend[i] = backend;
		d->run[i] = run;
		ok_or_say(ft_store_add(s, &d->row[i], &err), err);
		if (!d->row[i].fabric[0])
			d->row[i].fabric = of.fabric;
	}
	ok_or_say(ft_store_end(s, &err), err);
}

static void is_exported(struct ft_store *s, const struct drawn *d, int64_t run,
			const char *what)
{
	const struct ft_export asked = { NULL, run, "some-gpu", what };
	bool collectives = !strcmp(what, "collectives");
	struct arena mem = { 0 };
	struct ft_error err;
	size_t len, n = 0;
	struct csv *t;
	char *text;
	FILE *out = open_memstream(&text, &len);

	ok_or_say(ft_store_export(s, &asked, out, &err), err);
	fclose(out);
	t = csv_read_text(&mem, "exported", text, len, &err);
	ok_or_say(t, err);
	for (int i = 0; i < ROWS; i++) {
		const struct ft_measurement *m = &d->row[i];

		if ((run && d->run[i] != run) || !belongs(m, collectives))
			continue;
		assert_true(n < t->n_rows);
		if (collectives)
			is_collective(t, n++, m);
		else
			is_kernel(t, n++, m, d->backend[i]);
	}
	assert_int_equal(n, t->n_rows);
	arena_release(&mem);
	free(text);
}

static void each_cell_stands_under_its_column(void **state)
{
	struct scratch *x = *state;

	for (int i = 0; i < DRAWS; i++) {
		struct ft_error err;
		struct ft_store *s = ft_store_open(x->path, true, &err);
		struct drawn d;

		ok_or_say(s, err);
		fill(s, &d);
		for (int64_t run = 0; run <= d.run[ROWS - 1]; run++) {
			is_exported(s, &d, run, "kernels");
			is_exported(s, &d, run, "collectives");
		}
		ft_store_close(s);
		unlink(x->path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(each_cell_stands_under_its_column) };

	gsl_set_error_handler_off();
	return cmocka_run_group_tests_name("export", tests, NULL, NULL);
}
