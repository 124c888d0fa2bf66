/*
 * tests/test_import_trace.c - kernels of a recorded step as cells of the store: of drawn recordings each cell is
 * counted out here, operator by operator, with its median and its tenths
 */
#include "tests/made_recording.h"
#include "tests/scratch.h"

enum { DRAWS = 120, CALLS = 16, TEXT = 400 };

static uint64_t seed = 67;

#define PICK(list) (list)[rnd_below(&seed, (int)(sizeof(list) / sizeof(*(list))))]

/* What is drawn, most of all what is hard to tell apart. */
enum what {
	PRODUCT,
	ATTENTION,
	ACROSS, /* attention of queries to other keys: no cell of ours */
	NORM,
	BROADCAST, /* a sum whose bytes are not told by its shapes */
	COLLECTIVE,
	ALONE, /* a collective of one rank */
	PAIR,  /* a send */
	UNKNOWN,
	COPY,
	WHATS
};

/* A call of an operator: one or two kernels. */
struct drawn {
	enum what what;
	const char *kernel;
	struct ft_measurement m;
	int dur_us[2], kernels;
};

struct cell {
	char text[TEXT], name[TEXT];
	double us[2 * CALLS];
	size_t n;
};

/* ---- drawn ------------------------------------------------------------------------------ */

static void draw_product(struct drawn *d)
{
	static const char *const layouts[] = { "forward", "dgrad", "wgrad" };

	d->kernel = "some_gemm";
	d->m.kind = "gemm";
	d->m.layout = PICK(layouts);
	d->m.m = 2 + rnd_below(&seed, 2);
	d->m.n = 2 + rnd_below(&seed, 2);
	d->m.k = 2 + rnd_below(&seed, 2);
}

static void draw_attention(struct drawn *d)
{
	bool by_flash = rnd_below(&seed, 2);

	d->kernel = by_flash ? "flash_fwd_kernel" : "some_attention";
	d->m.kind = "attention";
	d->m.impl = by_flash ? "fa2" : "torch";
	d->m.pass = rnd_below(&seed, 2) ? "forward" : "backward";
	d->m.batch = 1 + rnd_below(&seed, 2);
	d->m.heads = 4;
	d->m.kv_heads = 2 + 2 * rnd_below(&seed, 2);
	d->m.sequence = 64 + 64 * rnd_below(&seed, 2);
	d->m.head_dim = 32;
	d->m.causal = rnd_below(&seed, 2);
}

static void draw_collective(struct drawn *d)
{
	d->kernel = "ncclDevKernel_of_some_kind";
	d->m.kind = "collective";
	d->m.kernel = d->what == PAIR	  ? "send" :
		      rnd_below(&seed, 2) ? "all_reduce" :
					    "all_gather";
	d->m.dtype = rnd_below(&seed, 2) ? "bf16" : "fp32";
	d->m.gpus = d->what == ALONE ? 1 : 2 + rnd_below(&seed, 2);
	d->m.bytes = 400000000 + 400 * rnd_below(&seed, 2);
}

static struct drawn draw(void)
{
	static const char *const unknown[] = { "k1", "k2" };
	struct drawn d = { .what = (enum what)rnd_below(&seed, WHATS) };

	d.kernels = 1 + rnd_below(&seed, 2);
	for (int i = 0; i < d.kernels; i++)
		d.dur_us[i] = 1 + rnd_below(&seed, 90);
	d.kernel = PICK(unknown);
	d.m = (struct ft_measurement){ .kind = "trace",
				       .dtype = rnd_below(&seed, 2) ? "bf16" : "fp16" };
	if (d.what == PRODUCT) {
		draw_product(&d);
	} else if (d.what == ATTENTION || d.what == ACROSS) {
		draw_attention(&d);
	} else if (d.what == NORM) {
		d.m.kind = "memory";
		d.m.kernel = "silu";
		d.m.impl = "torch";
		d.m.m = 3 + rnd_below(&seed, 2);
		d.m.n = 3 + rnd_below(&seed, 2);
	} else if (d.what == COLLECTIVE || d.what == ALONE || d.what == PAIR) {
		d.kernels = 1;
		draw_collective(&d);
	}
	return d;
}

/* ---- written ---------------------------------------------------------------------------- */

static const char *type_of(const struct drawn *d)
{
	return !strcmp(d->m.dtype, "bf16") ? "c10::BFloat16" : "c10::Half";
}

/* A linear layer y = x W', x of m rows: the gradient of x is that of y times W, the gradient of W
 * that of y, turned, times x. */
static void put_product(struct made *t, const struct drawn *d)
{
	int m = (int)d->m.m, n = (int)d->m.n, k = (int)d->m.k;

	if (!strcmp(d->m.layout, "forward"))
		add(t, "\"Input Dims\":[[%d,%d],[%d,%d]],", m, k, k, n),
			add(t, "\"Input Strides\":[[%d,1],[1,%d]],", k, k);
	else if (!strcmp(d->m.layout, "dgrad"))
		add(t, "\"Input Dims\":[[%d,%d],[%d,%d]],", m, n, n, k),
			add(t, "\"Input Strides\":[[%d,1],[%d,1]],", n, k);
	else
		add(t, "\"Input Dims\":[[%d,%d],[%d,%d]],", n, m, m, k),
			add(t, "\"Input Strides\":[[1,%d],[%d,1]],", n, k);
}

static void put_attention(struct made *t, const struct drawn *d)
{
	bool back = !strcmp(d->m.pass, "backward");
	int keys = (int)d->m.sequence / (d->what == ACROSS ? 2 : 1);

	add(t, "\"Input Dims\":[%s[%g,%g,%g,%g],[%g,%d,%g,%g]],", back ? "[]," : "",
	    d->m.batch, d->m.sequence, d->m.heads, d->m.head_dim, d->m.batch, keys,
	    d->m.kv_heads, d->m.head_dim);
	add(t, "\"Concrete Inputs\":[");
	for (int i = 0; i < (back ? 11 : 8); i++)
		add(t, "\"\",");
	add(t, "\"%s\"],", d->m.causal ? "True" : "False");
}

static const char *operator_of(const struct drawn *d)
{
	if (d->what == PRODUCT)
		return "aten::mm";
	if (d->what == ATTENTION || d->what == ACROSS)
		return !strcmp(d->m.pass, "forward") ?
			       "aten::_flash_attention_forward" :
			       "aten::_flash_attention_backward";
	return d->what == NORM ? "aten::silu" : "aten::add";
}

/* Some kernels that nobody knows have no operator, either. */
static bool has_operator(const struct drawn *d)
{
	return d->what != COLLECTIVE && d->what != ALONE && d->what != PAIR &&
	       d->what != COPY && (d->what != UNKNOWN || d->kernels == 2);
}

static void put_operator(struct made *t, const struct drawn *d, int id)
{
	add(t,
	    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"%s\",\"pid\":1,\"tid\":1,\"ts\":%d,"
	    "\"dur\":1,\"args\":{\"External id\":%d",
	    d->what == UNKNOWN ? "somebody::s" : operator_of(d), id, id);
	if (d->what != UNKNOWN)
		add(t, ",");
	if (d->what == PRODUCT)
		put_product(t, d);
	if (d->what == ATTENTION || d->what == ACROSS)
		put_attention(t, d);
	if (d->what == NORM)
		add(t, "\"Input Dims\":[[%g,%g]],\"Input Strides\":[[%g,1]],", d->m.m,
		    d->m.n, d->m.n);
	if (d->what == BROADCAST)
		add(t, "\"Input Dims\":[[4,4],[4]],\"Input Strides\":[[4,1],[1]],");
	if (d->what != UNKNOWN)
		add(t, "\"Input type\":[\"%s\",\"%s\",\"%s\"]", type_of(d), type_of(d),
		    type_of(d));
	add(t, "}},\n");
}

static void put_kernel(struct made *t, const struct drawn *d, int id, int i)
{
	add(t,
	    "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":0,\"tid\":7,\"ts\":%d,"
	    "\"dur\":%d,\"args\":{\"stream\":7",
	    d->what == COPY ? "gpu_memcpy" : "kernel", d->kernel,
	    1000 + 200 * id + 100 * i, d->dur_us[i]);
	if (has_operator(d))
		add(t, ",\"External id\":%d", id);
	else if (strcmp(d->m.kind, "trace"))
		add(t,
		    ",\"Collective name\":\"%s\",\"In msg nelems\":%g,"
		    "\"Out msg nelems\":%.0f,\"Group size\":%g,\"dtype\":\"%s\","
		    "\"Process Group Name\":\"0\",\"Process Group Ranks\":\"[0, 1]\"",
		    !strcmp(d->m.kernel, "all_reduce") ? "allreduce" :
		    !strcmp(d->m.kernel, "all_gather") ? "_allgather_base" :
							 "send",
		    8.0, d->m.bytes / (!strcmp(d->m.dtype, "bf16") ? 2 : 4), d->m.gpus,
		    !strcmp(d->m.dtype, "bf16") ? "BFloat16" : "Float");
	add(t, "}},\n");
}

/* ---- counted ---------------------------------------------------------------------------- */

static const char *or_none(const char *word)
{
	return word ? word : "";
}

/* All that a cell is told by. */
static void write_cell(const struct ft_measurement *m, char to[TEXT])
{
	snprintf(to, TEXT,
		 "%s|%s|%s|%s|%s|%s|%g %g %g|%g %g %g %g %g|%.0f %g|%d %d %d %d",
		 m->kind, or_none(m->kernel), or_none(m->dtype), or_none(m->layout),
		 or_none(m->impl), or_none(m->pass), m->m, m->n, m->k, m->batch,
		 m->heads, m->kv_heads, m->sequence, m->head_dim, m->bytes, m->gpus,
		 m->causal, m->warm, m->in_step, m->sustained);
}

static void count(struct cell *cell, size_t *n, const struct ft_measurement *m,
		  double us)
{
	char text[TEXT];
	size_t i = 0;

	write_cell(m, text);
	while (i < *n && strcmp(cell[i].text, text))
		i++;
	if (i == *n) {
		cell[i] = (struct cell){ .n = 0 };
		strcpy(cell[i].text, text);
		++*n;
	}
	cell[i].us[cell[i].n++] = us;
}

/* A call whose work is known is one, whatever kernels it launches; of others each kernel is. */
static void count_call(struct cell *cell, size_t *n, const struct drawn *d)
{
	struct ft_measurement m = d->m, by_name = { .kind = "trace", .in_step = true };
	double all_us = d->dur_us[0] + (d->kernels > 1 ? d->dur_us[1] : 0);

	by_name.kernel = d->kernel;
	m.in_step = true;
	m.warm = d->what != COLLECTIVE;
	if (d->what == COPY)
		return;
	if (d->what == PRODUCT || d->what == ATTENTION || d->what == NORM ||
	    d->what == COLLECTIVE)
		count(cell, n, &m, all_us);
	else
		for (int i = 0; i < d->kernels; i++)
			count(cell, n, &by_name, d->dur_us[i]);
}

/* How many are no longer: the smallest with at least so large a share of them. */
static double tenths_us(const struct cell *c, int tenths)
{
	double found = INFINITY;

	for (size_t i = 0; i < c->n; i++) {
		size_t not_longer = 0;

		for (size_t k = 0; k < c->n; k++)
			not_longer += c->us[k] <= c->us[i];
		if (10 * not_longer >= (size_t)tenths * c->n && c->us[i] < found)
			found = c->us[i];
	}
	return found;
}

/* What stands in the middle, by either side. */
static double median_us(const struct cell *c)
{
	double longest = 0, half = tenths_us(c, 5);
	size_t shorter = 0;

	for (size_t i = 0; i < c->n; i++)
		shorter += c->us[i] <= half;
	if (2 * shorter > c->n)
		return half;
	longest = INFINITY; /* half of them are: the next one has a part */
	for (size_t i = 0; i < c->n; i++)
		if (c->us[i] > half && c->us[i] < longest)
			longest = c->us[i];
	return (half + longest) / 2;
}

static void is_cell(const struct ft_measurement *m, struct cell *cell, size_t n)
{
	char text[TEXT];
	size_t i = 0;

	write_cell(m, text);
	while (i < n && strcmp(cell[i].text, text))
		i++;
	if (i == n || cell[i].name[0])
		fail_msg("%s: %s", text, i < n ? "twice" : "was not drawn");
	snprintf(cell[i].name, TEXT, "%s", m->cell);
	assert_string_equal(m->status, "ok");
	assert_true(m->reps == (double)cell[i].n);
	near_frac(m->time_us, median_us(&cell[i]), 1e-12);
	near_frac(m->p10_us, tenths_us(&cell[i], 1), 1e-12);
	near_frac(m->p90_us, tenths_us(&cell[i], 9), 1e-12);
	assert_true(m->relative_error < 0 && m->clock_mhz < 0 && m->power_w < 0 &&
		    m->temperature_c < 0);
	if (!strcmp(m->kind, "trace"))
		assert_true(!strncmp(m->cell, "trace ", 6) &&
			    !strcmp(m->cell + 6, m->kernel));
	else
		assert_memory_equal(m->cell, "in step ", 8);
}

static void is_stored(const char *db, const char *trace, struct cell *cell, size_t n)
{
	struct ft_probe_run run = { .backend = "kineto" };
	const struct ft_measurement *m;
	const struct ft_probe_run *of;
	struct ft_error err;
	struct ft_store *s = ft_store_open(db, true, &err);
	size_t stored, runs;

	if (rnd_below(&seed, 2))
		run.device = rnd_below(&seed, 2) ? "" : "another";
	ok_or_say(s, err);
	ok_or_say(ft_store_import(s, FT_IMPORT_KINETO, trace, &run, &stored, &err),
		  err);
	assert_int_equal(stored, n);
	m = ft_store_measurements(s, NULL, 0, &stored, &err);
	assert_int_equal(stored, n);
	for (size_t i = 0; i < n; i++)
		is_cell(&m[i], cell, n);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(cell[i].name, cell[k].name);
	of = ft_store_runs(s, &runs, &err);
	assert_int_equal(runs, 1);
	assert_string_equal(of->device,
			    run.device && run.device[0] ? "another" : "NVIDIA H200");
	ft_store_close(s);
	unlink(db);
}

/* Kernels of one operator need not stand together. */
static void put_kernels(struct made *t, const struct drawn *d)
{
	int order[2 * CALLS];

	for (int i = 0; i < 2 * CALLS; i++) {
		int k = rnd_below(&seed, i + 1);

		order[i] = order[k];
		order[k] = i;
	}
	for (int i = 0; i < 2 * CALLS; i++)
		if (order[i] % 2 < d[order[i] / 2].kernels)
			put_kernel(t, &d[order[i] / 2], order[i] / 2, order[i] % 2);
}

static void each_cell_is_counted(void **state)
{
	struct scratch *x = *state;

	for (int i = 0; i < DRAWS; i++) {
		struct made t = begin(0);
		struct cell cell[2 * CALLS];
		struct drawn d[CALLS];
		size_t n = 0;

		for (int id = 0; id < CALLS; id++) {
			do
				d[id] = draw();
			while (!id && d[id].what == COPY); /* a kernel must run */
			if (has_operator(&d[id]))
				put_operator(&t, &d[id], id);
			count_call(cell, &n, &d[id]);
		}
		put_kernels(&t, d);
		t.n -= 2;
		add(&t, "]}\n");
		is_stored(x->path, put(t.text, t.n), cell, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(each_cell_is_counted) };
	int status;

	gsl_set_error_handler_off();
	status = cmocka_run_group_tests_name("import trace", tests, NULL, NULL);
	unlink(made_path());
	return status;
}
