/*
 * calibrate/import_kineto.c - kernels of a recorded step as cells of the store
 *
 * The operator that launched a kernel says what the work was, where the trace was
 * recorded with shapes. Kernels of one call add up; calls of one shape become one cell:
 * median, p10, p90. What cannot be told is kept by name, as kind "trace". All of it ran
 * inside a step: caches are warm, neighbours run beside it, and a collective's time
 * includes waiting for its peers. So cells say in_step, and a fit leaves them out
 * unless asked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/stats.h"
#include "calibrate/import.h"
#include "calibrate/store.h"
#include "foretoken/recorded.h"

/* One launched kernel, then one call of an operator. */
struct call {
	int64_t op;
	size_t kernel; /* in the recording */
	struct ft_measurement m;
	double time_us;
	const char *cell;
};

struct trace {
	struct arena mem;
	const struct ft_recording *r;
	struct call *call;
	size_t n;
};

/* ---- what a call was ---------------------------------------------------------------- */

static void of_gemm(const struct ft_work *w, struct ft_measurement *m)
{
	m->kind = "gemm";
	m->layout = ft_layout_name(w->gemm.layout);
	m->m = (double)w->gemm.m;
	m->n = (double)w->gemm.n;
	m->k = (double)w->gemm.k;
}

static void of_attention(const struct ft_work *w, struct ft_measurement *m)
{
	m->kind = "attention";
	m->impl = w->attention.impl;
	m->pass = ft_pass_name(w->attention.pass);
	m->batch = (double)w->attention.batch;
	m->heads = (double)w->attention.heads;
	m->kv_heads = (double)w->attention.kv_heads;
	m->sequence = (double)w->attention.queries;
	m->head_dim = (double)w->attention.qk_head_dim;
	m->causal = w->attention.causal;
}

/* Only what the operator's own law tells; false: the rest. */
static bool of_work(const struct ft_rec_work *w, struct ft_measurement *m)
{
	if (!w || !w->exact)
		return false;
	m->dtype = ft_dtype_name(w->work.dtype);
	if (w->work.kind == FT_GEMM) {
		of_gemm(&w->work, m);
	} else if (w->work.kind == FT_ATTENTION) {
		of_attention(&w->work, m);
		return w->work.attention.queries == w->work.attention.keys;
	} else {
		m->kind = "memory";
		m->kernel = w->work.memory.kernel;
		m->impl = "torch";
		m->n = w->row;
		m->m = w->rows;
	}
	return true;
}

static bool of_collective(const struct ft_rec_collective *c, struct ft_measurement *m)
{
	if (!c || c->op == FT_COLLECTIVES || c->op == FT_SENDRECV || c->size < 2 ||
	    c->bytes <= 0)
		return false;
	m->kind = "collective";
	m->kernel = ft_collective_name(c->op);
	m->dtype = c->dtype;
	m->gpus = (double)c->size;
	m->bytes = c->bytes;
	return c->dtype[0] != '\0';
}

/* The work of an operator's call, or else of one kernel. */
static void describe(struct trace *t, struct call *c)
{
	const struct ft_rec_op *op = ft_recording_op(t->r, c->kernel);
	const char *kernel = ft_recording_text(t->r, op->name);
	char id[256];

	c->m = (struct ft_measurement){ .dtype = "" };
	if (!of_collective(ft_recording_collective(t->r, op), &c->m) &&
	    !of_work(ft_recording_work(t->r, op), &c->m))
		c->m = (struct ft_measurement){ .kind = "trace", .kernel = kernel };
	c->m.in_step = true;
	c->m.warm =
		!measurement_is(&c->m, "collective") && !measurement_is(&c->m, "trace");
	import_name(&c->m, id);
	c->cell = measurement_is(&c->m, "trace") ?
			  arena_printf(&t->mem, "trace %s", kernel) :
			  arena_printf(&t->mem, "in step %s", id);
}

/* ---- calls ------------------------------------------------------------------------ */

static int by_operator(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	return x->kernel < y->kernel ? -1 : x->kernel > y->kernel;
}

/* One that took no time (the profiler's clock did not move, or its duration was negative) says nothing of the rate. */
static size_t take_kernels(struct trace *t)
{
	size_t no_time = 0;

	t->call = ARENA_ARRAY(&t->mem, ft_recording_ops(t->r), struct call);
	for (size_t i = 0; i < ft_recording_ops(t->r); i++) {
		const struct ft_rec_op *op = ft_recording_op(t->r, i);

		no_time += !op->is_copy && !op->duration;
		if (!op->is_copy && op->duration)
			t->call[t->n++] = (struct call){
				.op = op->external_id,
				.kernel = i,
				.time_us = (double)op->duration * 1e-6,
			};
	}
	return no_time;
}

/* Kernels of one operator become one call, when the operator's work is known. */
static void join(struct trace *t)
{
	size_t kept = 0;

	qsort(t->call, t->n, sizeof(*t->call), by_operator);
	for (size_t i = 0; i < t->n; i++) {
		struct call *c = &t->call[i];
		struct call *last = kept ? &t->call[kept - 1] : NULL;

		describe(t, c);
		if (last && c->op >= 0 && last->op == c->op &&
		    !measurement_is(&c->m, "trace") && !strcmp(last->m.kind, c->m.kind))
			last->time_us += c->time_us;
		else
			t->call[kept++] = *c;
	}
	t->n = kept;
}

static int by_cell(const void *a, const void *b)
{
	const struct call *x = a, *y = b;
	int order = strcmp(x->cell, y->cell);

	return order ? order : (x->time_us > y->time_us) - (x->time_us < y->time_us);
}

/* Calls of one cell, by rising time, into the store. */
static bool store_cells(struct trace *t, struct ft_store *s, size_t *stored,
			struct ft_error *err)
{
	for (size_t i = 0, j; i < t->n; i = j) {
		struct ft_measurement m = t->call[i].m;
		double *time_us;
		size_t n;

		for (j = i; j < t->n && !strcmp(t->call[i].cell, t->call[j].cell);)
			j++;
		n = j - i;
		time_us = ARENA_ARRAY(&t->mem, n, double);
		for (size_t k = 0; k < n; k++)
			time_us[k] = t->call[i + k].time_us;
		m.cell = t->call[i].cell;
		m.reps = (double)n;
		m.time_us = stats_median(time_us, n);
		m.p10_us = stats_quantile(time_us, n, 0.1);
		m.p90_us = stats_quantile(time_us, n, 0.9);
		if (!ft_store_add(s, &m, err))
			return false;
		++*stored;
	}
	return true;
}

bool import_kineto(struct ft_store *s, const char *path, const struct ft_probe_run *run,
		   size_t *n, struct ft_error *err)
{
	struct ft_recording *r = ft_recording_read(path, err);
	struct trace t = { .r = r };
	struct ft_probe_run of = *run;
	size_t no_time;
	bool ok;

	if (!r)
		return false;
	if (!of.device || !of.device[0])
		of.device = ft_recording_device(r);
	no_time = take_kernels(&t);
	if (no_time)
		fprintf(stderr,
			"%s: warning: %zu kernel%s took no time and %s left out\n",
			ft_recording_file(r), no_time, no_time == 1 ? "" : "s",
			no_time == 1 ? "is" : "are");
	join(&t);
	qsort(t.call, t.n, sizeof(*t.call), by_cell);
	ok = ft_store_begin(s, &of, err) && store_cells(&t, s, n, err);
	arena_release(&t.mem);
	ft_recording_free(r);
	return ok;
}
