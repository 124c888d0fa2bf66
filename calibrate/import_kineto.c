/*
 * calibrate/import_kineto.c - kernels of a PyTorch profiler trace
 *
 * A kernel names the operator that launched it ("External id", its own or that of
 * the runtime call with its correlation); the operator of a trace recorded with
 * shapes says what the work was. Kernels of one call add up; calls of one shape
 * become one cell: median, p10, p90. What cannot be told is kept by name, as kind
 * "trace". All of it ran inside a step: caches are warm, neighbours run beside it,
 * and a collective's time includes waiting for its peers. So cells say in_step, and
 * a fit leaves them out unless asked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/stats.h"
#include "calibrate/import.h"
#include "calibrate/kineto.h"
#include "calibrate/store.h"

/* An operator, or a runtime call that stands for one: by number. */
struct numbered {
	int64_t id;
	const json_t *event;
};

struct index {
	struct numbered *of;
	size_t n, cap;
};

/* One launched kernel, then one call of an operator. */
struct call {
	int64_t op;
	const json_t *event;
	struct ft_measurement m;
	double time_us;
	const char *cell;
};

struct trace {
	struct arena mem;
	struct index ops, runtime;
	struct call *call;
	size_t n, cap;
};

static int by_id(const void *a, const void *b)
{
	int64_t x = ((const struct numbered *)a)->id;
	int64_t y = ((const struct numbered *)b)->id;

	return (x > y) - (x < y);
}

static void sort(struct index *in)
{
	if (in->n)
		qsort(in->of, in->n, sizeof(*in->of), by_id);
}

static const json_t *find(const struct index *in, int64_t id)
{
	const struct numbered key = { id, NULL }, *found;

	if (!in->n)
		return NULL;
	found = bsearch(&key, in->of, in->n, sizeof(key), by_id);
	return found ? found->event : NULL;
}

static void add(struct arena *mem, struct index *to, int64_t id, const json_t *event)
{
	if (to->n == to->cap)
		to->of = ARENA_GROW(mem, to->of, &to->cap);
	to->of[to->n++] = (struct numbered){ id, event };
}

static bool number_of(const json_t *event, const char *key, int64_t *v)
{
	const json_t *x = json_object_get(json_object_get(event, "args"), key);

	*v = json_integer_value(x);
	return json_is_integer(x);
}

/* ---- what there is --------------------------------------------------------------- */

static void sort_in(struct trace *t, const json_t *event)
{
	const char *category = json_string_value(json_object_get(event, "cat"));
	int64_t id;

	if (!category)
		return;
	if (!strcmp(category, "cpu_op")) {
		if (number_of(event, "External id", &id))
			add(&t->mem, &t->ops, id, event);
	} else if (!strcmp(category, "cuda_runtime") ||
		   !strcmp(category, "cuda_driver")) {
		if (number_of(event, "correlation", &id))
			add(&t->mem, &t->runtime, id, event);
	} else if (!strcmp(category, "kernel")) {
		if (t->n == t->cap)
			t->call = ARENA_GROW(&t->mem, t->call, &t->cap);
		t->call[t->n++] = (struct call){ .op = -1, .event = event };
	}
}

static int64_t operator_of(const struct trace *t, const json_t *kernel)
{
	int64_t id, correlation;
	const json_t *call;

	if (number_of(kernel, "External id", &id))
		return id;
	if (!number_of(kernel, "correlation", &correlation))
		return -1;
	call = find(&t->runtime, correlation);
	return call && number_of(call, "External id", &id) ? id : -1;
}

static int by_operator(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	return (x->op > y->op) - (x->op < y->op);
}

/* ---- calls ------------------------------------------------------------------------ */

static const char *name_of(const json_t *event)
{
	const char *name = json_string_value(json_object_get(event, "name"));

	return name ? name : "";
}

/* The work of an operator's call, or else of one kernel. */
static void describe(struct trace *t, struct call *c)
{
	const json_t *op = find(&t->ops, c->op);
	const char *kernel = name_of(c->event);
	char id[256];

	c->m = (struct ft_measurement){ .dtype = "", .in_step = true };
	if (!kineto_collective(c->event, &c->m) &&
	    !(op && kineto_collective(op, &c->m)) &&
	    !(op && kineto_cell(op, kernel, &c->m)))
		c->m = (struct ft_measurement){ .kind = "trace", .kernel = kernel };
	c->m.in_step = true;
	c->m.warm =
		!measurement_is(&c->m, "collective") && !measurement_is(&c->m, "trace");
	c->m.kernel = c->m.kernel ? c->m.kernel : "";
	c->m.dtype = c->m.dtype ? c->m.dtype : "";
	c->m.layout = c->m.layout ? c->m.layout : "";
	c->m.impl = c->m.impl ? c->m.impl : "";
	c->m.pass = c->m.pass ? c->m.pass : "";
	import_name(&c->m, id);
	c->cell = measurement_is(&c->m, "trace") ?
			  arena_printf(&t->mem, "trace %s", kernel) :
			  arena_printf(&t->mem, "in step %s", id);
}

/* Kernels of one operator become one call, when the operator's work is known. */
static void join(struct trace *t)
{
	size_t kept = 0;

	qsort(t->call, t->n, sizeof(*t->call), by_operator);
	for (size_t i = 0; i < t->n; i++) {
		struct call *c = &t->call[i];
		struct call *last = kept ? &t->call[kept - 1] : NULL;

		c->time_us = json_number_value(json_object_get(c->event, "dur"));
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

/* At least one kernel is there. */
static void make_cells(struct trace *t)
{
	sort(&t->ops);
	sort(&t->runtime);
	for (size_t i = 0; i < t->n; i++)
		t->call[i].op = operator_of(t, t->call[i].event);
	join(t);
	qsort(t->call, t->n, sizeof(*t->call), by_cell);
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
		m.status = "ok";
		m.reps = (double)n;
		m.time_us = stats_median(time_us, n);
		m.p10_us = stats_quantile(time_us, n, 0.1);
		m.p90_us = stats_quantile(time_us, n, 0.9);
		m.relative_error = m.clock_mhz = m.power_w = m.temperature_c = -1;
		if (!ft_store_add(s, &m, err))
			return false;
		++*stored;
	}
	return true;
}

static const char *device_of(const json_t *root, const char *given)
{
	const json_t *first =
		json_array_get(json_object_get(root, "deviceProperties"), 0);
	const char *name = json_string_value(json_object_get(first, "name"));

	return given && given[0] ? given : name ? name : "";
}

static bool store_trace(struct ft_store *s, const json_t *root, struct ft_probe_run run,
			size_t *n, struct ft_error *err)
{
	const json_t *events = json_object_get(root, "traceEvents"), *event;
	struct ft_mark at = { run.source, 1, 1 };
	struct trace t = { .n = 0 };
	bool ok;
	size_t i;

	if (!json_is_array(events))
		return ft_fail(err, &at, "is not a trace: it lacks 'traceEvents'");
	json_array_foreach(events, i, event) sort_in(&t, event);
	ok = t.n || ft_fail(err, &at,
			    "holds no kernels; record it with the "
			    "accelerator's activities");
	if (ok) {
		make_cells(&t);
		run.device = device_of(root, run.device);
		ok = ft_store_begin(s, &run, err) && store_cells(&t, s, n, err);
	}
	arena_release(&t.mem);
	return ok;
}

/* Of a file: what comes from elsewhere has no size to be told by. */
static bool small_enough(const char *path, struct ft_error *err)
{
	struct ft_mark at = { path, 0, 0 };
	struct stat st;

	if (stat(path, &st))
		return ft_fail(err, &at, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return ft_fail(
			err, &at,
			"is not a regular file; write the trace to a file first");
	return st.st_size <= LIMIT_KINETO_BYTES ||
	       ft_fail(err, &at, "is too large a trace: more than %d bytes",
		       (int)LIMIT_KINETO_BYTES);
}

bool import_kineto(struct ft_store *s, const char *path, const struct ft_probe_run *run,
		   size_t *n, struct ft_error *err)
{
	struct ft_mark at = { path, 1, 1 };
	json_error_t why;
	json_t *root;
	bool ok;

	if (!small_enough(path, err))
		return false;
	root = json_load_file(path, 0, &why);
	at.line = root ? 1 : why.line;
	if (!root)
		return ft_fail(err, &at, "%s%s", why.text,
			       why.line <= 1 ? "; gunzip a packed trace first" : "");
	ok = store_trace(s, root, *run, n, err);
	json_decref(root);
	return ok;
}
