/*
 * recorded/xla.c - JAX's profiler: a GPU is a process, "/device:GPU:0", and its streams are that process's threads, "Stream #14(Compute)"
 *
 * The file (perfetto_trace.json.gz, *.trace.json.gz) holds all GPUs of a host and no launches. The first that is named is read.
 * Other threads of its process ("XLA Modules", "Steps") tell the same time again, by name, and are left out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "recorded/kineto.h"

static const char of_device[] = "/device:GPU:", of_stream[] = "Stream #";

static bool is_called(const struct reader *k, const char *name)
{
	return k->e.name_len == strlen(name) && !memcmp(k->name, name, k->e.name_len);
}

static bool among(const int64_t *list, size_t n, int64_t x)
{
	while (n && list[n - 1] != x)
		n--;
	return n > 0;
}

static bool put(int64_t *list, size_t *n, int64_t x)
{
	if (*n == LIMIT_TRACE_LANES)
		return false;
	list[(*n)++] = x;
	return true;
}

int xla_named(struct reader *k)
{
	struct xla_gpu *g = &k->gpu;
	bool fits = true;

	if (is_called(k, "process_name") && text_begins_with(k->label, of_device)) {
		const char *number = k->label + strlen(of_device);

		if (g->named)
			fits = put(g->other, &g->others, k->e.pid);
		else
			*g = (struct xla_gpu){ .named = true,
					       .pid = k->e.pid,
					       .number = whole_of(number,
								  strlen(number)) };
	} else if (is_called(k, "thread_name") && g->named && k->e.pid == g->pid &&
		   text_begins_with(k->label, of_stream)) {
		fits = put(g->stream, &g->streams, k->e.tid);
	}
	k->label[0] = '\0';
	return fits || reader_stop(k, "has too many streams or threads");
}

enum category xla_category(struct reader *k)
{
	const struct xla_gpu *g = &k->gpu;

	if (!g->named)
		return C_NONE;
	k->r->counts.other_gpus += among(g->other, g->others, k->e.pid);
	if (k->e.pid != g->pid || !among(g->stream, g->streams, k->e.tid))
		return C_NONE;
	k->e.device = g->number;
	return k->e.name_len >= 6 && (!memcmp(k->name, "Memcpy", 6) ||
				      !memcmp(k->name, "Memset", 6)) ?
		       C_MEMCPY :
		       C_KERNEL;
}

/* ---- steps ------------------------------------------------------------------------- */

struct turn {
	ft_ps start, end;
	int32_t name;
};

static int by_start(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	return x->start != y->start ? (x->start < y->start ? -1 : 1) :
				      (x->name > y->name) - (x->name < y->name);
}

static int16_t busiest(const struct ft_recording *r, struct arena *scratch)
{
	size_t *n = ARENA_ARRAY(scratch, r->stream.n + 1, size_t);
	int16_t most = 0;

	for (size_t i = 0; i < r->op.n; i++)
		n[op_of(r, i)->stream]++;
	for (size_t s = 1; s < r->stream.n; s++)
		if (n[s] > n[most])
			most = (int16_t)s;
	return most;
}

/* Into how many turns of the same kernels n kernels fall, as many as can be; 1: into none. */
static size_t turns_of(const struct turn *t, size_t n)
{
	for (size_t each = 2; each <= n / 2; each++) {
		size_t i = 0;

		if (n % each)
			continue;
		while (i + each < n && t[i].name == t[i + each].name)
			i++;
		if (i + each == n)
			return n / each;
	}
	return 1;
}

void xla_steps(struct ft_recording *r)
{
	struct arena scratch = { 0 };
	int16_t stream = r->op.n ? busiest(r, &scratch) : 0;
	struct turn *t = ARENA_ARRAY(&scratch, r->op.n + 1, struct turn);
	size_t n = 0, turns;
	int16_t thread;

	for (size_t i = 0; i < r->op.n; i++)
		if (op_of(r, i)->stream == stream)
			t[n++] = (struct turn){ op_of(r, i)->start,
						op_of(r, i)->start +
							op_of(r, i)->duration,
						op_of(r, i)->name };
	qsort(t, n, sizeof(*t), by_start);
	turns = turns_of(t, n);
	thread = turns > 1 ? lane_number(r, &r->thread, 0, 0) : 0; /* of the marks */
	for (size_t k = 0; k < turns && turns > 1; k++) {
		struct ft_rec_span *s = table_add(&r->mem, &r->annotation);
		ft_ps end =
			k + 1 < turns ? t[(k + 1) * (n / turns)].start : t[n - 1].end;
		char name[32];

		snprintf(name, sizeof(name), "ProfilerStep#%zu", k);
		*s = (struct ft_rec_span){
			.start = t[k * (n / turns)].start,
			.duration = end - t[k * (n / turns)].start,
			.id = FT_REC_NONE,
			.thread = thread,
			.name = text_number(r, name, strlen(name)),
			.args = FT_REC_NONE,
		};
	}
	arena_release(&scratch);
}
