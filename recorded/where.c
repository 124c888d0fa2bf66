/*
 * recorded/where.c - where a step's time went: every instant once, launches, queues
 *
 * Begins and ends are sorted; between two of them the same operations run. Idle time is
 * of the cause of the operation that ends it. Copies to and from host memory and other GPUs, which copy
 * engines do, are communication. A rank that sends or receives waits for its neighbour in the pipeline,
 * a bubble, unless its group is called one of context ranks: their ring is communication.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "base/stats.h"
#include "recorded/replay.h"

/* What an instant counts as: the first of these that applies. */
enum kind { OPTIMIZER, COMPUTE, EXPOSED, BUBBLE, KINDS };

struct turn {
	ft_ps at;
	uint32_t op;
	uint8_t kind;
	bool begins;
};

/* By the group's name, as the program that was recorded gave it. */
static bool of_context(const struct ft_rec_collective *c)
{
	return strcasestr(c->about, "context") || !strcasecmp(c->about, "cp") ||
	       text_ends_with(c->about, "_cp");
}

static enum kind kind_of(const struct ft_recording *r, const struct ft_rec_op *op)
{
	const struct ft_rec_collective *c;

	if (op->rec_class == FT_REC_OPTIMIZER)
		return OPTIMIZER;
	if (recording_far_copy(r, op))
		return EXPOSED;
	if (op->rec_class != FT_REC_COLLECTIVE)
		return COMPUTE;
	c = ft_recording_collective(r, op);
	return c && c->op == FT_SENDRECV && !of_context(c) ? BUBBLE : EXPOSED;
}

/* At one moment begins come before ends: what follows at once leaves no gap. */
static int by_time(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;
	int order = whole_order(x->at, y->at);

	if (!order)
		order = whole_order(y->begins, x->begins);
	return order ? order : whole_order(x->op, y->op);
}

static size_t turns_of(const struct rank *k, const struct ft_replayed *t, size_t rank,
		       struct ft_rec_window w, struct turn *to)
{
	size_t n = 0;

	for (size_t i = 0; i < k->r->op.n; i++) {
		ft_ps from = t->op_begin[rank][i], end = t->op_end[rank][i];
		uint8_t kind = (uint8_t)kind_of(k->r, op_of(k->r, i));

		from = from < w.from ? w.from : from;
		end = end > w.to ? w.to : end;
		if (end <= from)
			continue;
		to[n++] = (struct turn){ from, (uint32_t)i, kind, true };
		to[n++] = (struct turn){ end, (uint32_t)i, kind, false };
	}
	qsort(to, n, sizeof(*to), by_time);
	return n;
}

static void add(struct ft_rec_where *to, const int64_t running[KINDS], double s)
{
	if (running[EXPOSED] || running[BUBBLE])
		to->collective_s += s;
	if (running[OPTIMIZER])
		to->optimizer_s += s;
	else if (running[COMPUTE])
		to->compute_s += s;
	else if (running[EXPOSED])
		to->exposed_s += s;
	else if (running[BUBBLE])
		to->bubble_s += s;
}

static void sweep(const struct rank *k, const struct turn *turn, size_t n,
		  struct ft_rec_window w, struct ft_rec_where *to)
{
	int64_t running[KINDS] = { 0 }, all = 0;
	ft_ps at = w.from;

	for (size_t i = 0; i < n; i++) {
		double s = (double)(turn[i].at - at) * 1e-12;

		if (all)
			add(to, running, s);
		else
			to->idle_s[k->cause[turn[i].op]] += s;
		running[turn[i].kind] += turn[i].begins ? 1 : -1;
		all += turn[i].begins ? 1 : -1;
		at = turn[i].at;
	}
	to->tail_s = (double)(w.to - at) * 1e-12;
}

/* ---- launches --------------------------------------------------------------------------- */

static void latency(const struct rank *k, const struct ft_replayed *t, size_t rank,
		    struct ft_rec_window w, struct ft_rec_where *to)
{
	struct arena scratch = { 0 };
	double *late = ARENA_ARRAY(&scratch, k->r->op.n, double);
	size_t n = 0;

	for (size_t i = 0; i < k->r->op.n; i++) {
		int32_t call = op_of(k->r, i)->call;
		ft_ps begin = t->op_begin[rank][i];

		if (call == FT_REC_NONE || begin < w.from || begin >= w.to)
			continue;
		if (k->cause[i] == FT_REC_BY_LAUNCH)
			late[n++] = (double)(begin - t->call_begin[rank][call]) * 1e-12;
	}
	stats_sort(late, n);
	to->latency_s = n ? late[n / 2] : 0;
	arena_release(&scratch);
}

/* Launched and not begun within the window: two sorted lists, walked together. */
static void queue(const struct rank *k, const struct ft_replayed *t, size_t rank,
		  struct ft_rec_window w, struct ft_rec_where *to)
{
	struct arena scratch = { 0 };
	ft_ps *in = ARENA_ARRAY(&scratch, k->r->op.n, ft_ps);
	ft_ps *out = ARENA_ARRAY(&scratch, k->r->op.n, ft_ps);
	size_t n = 0;
	double waited_s = 0;

	for (size_t i = 0; i < k->r->op.n; i++) {
		int32_t call = op_of(k->r, i)->call;
		ft_ps from = call == FT_REC_NONE ? w.to : t->call_begin[rank][call];
		ft_ps begin = t->op_begin[rank][i];

		from = from < w.from ? w.from : from;
		begin = begin > w.to ? w.to : begin;
		if (begin <= from)
			continue;
		in[n] = from;
		out[n++] = begin;
		waited_s += (double)(begin - from) * 1e-12;
	}
	qsort(in, n, sizeof(*in), by_whole);
	qsort(out, n, sizeof(*out), by_whole);
	for (size_t i = 0, j = 0; i < n; i++) {
		while (j < n && out[j] <= in[i])
			j++;
		if (j <= i && (int64_t)(i + 1 - j) > to->queued_most)
			to->queued_most = (int64_t)(i + 1 - j);
	}
	to->queued_mean = to->step_s > 0 ? waited_s / to->step_s : 0;
	arena_release(&scratch);
}

struct ft_rec_where ft_replay_where(const struct ft_replay *p,
				    const struct ft_replayed *t, size_t rank,
				    struct ft_rec_window w)
{
	const struct rank *k = &p->rank[rank];
	struct ft_rec_where to = { .step_s = (double)(w.to - w.from) * 1e-12 };
	struct arena scratch = { 0 };
	struct turn *turn = ARENA_ARRAY(&scratch, 2 * k->r->op.n, struct turn);

	sweep(k, turn, turns_of(k, t, rank, w, turn), w, &to);
	for (size_t i = 0; i < k->r->op.n; i++) {
		ft_ps begin = t->op_begin[rank][i];
		double s;

		if (begin < w.from || begin >= w.to)
			continue;
		s = (double)(t->op_end[rank][i] - begin) * 1e-12;
		to.class_s[op_of(k->r, i)->rec_class] += s;
		if (kind_of(k->r, op_of(k->r, i)) == BUBBLE)
			to.sendrecv_s += s;
		to.class_n[op_of(k->r, i)->rec_class]++;
	}
	latency(k, t, rank, w, &to);
	queue(k, t, rank, w, &to);
	arena_release(&scratch);
	return to;
}

void ft_replay_calls(const struct ft_replay *p, const struct ft_replayed *t,
		     size_t rank, size_t step, struct ft_rec_where *to)
{
	const struct rank *k = &p->rank[rank];
	const struct ft_rec_step *of = &k->r->step[step];
	struct ft_rec_window w = ft_replay_step(p, t, rank, step);

	for (size_t i = 0; i < k->r->call.n; i++) {
		const struct ft_rec_call *c = call_of(k->r, i);
		ft_ps begin = t->call_begin[rank][i];
		double s = (double)(t->call_end[rank][i] - begin) * 1e-12;

		if (of->marked ? c->start < of->begin || c->start >= of->end :
				 begin < w.from || begin >= w.to)
			continue;
		if (c->kind == FT_REC_LAUNCH) {
			to->launches++;
			to->call_s += s;
		} else if (c->kind == FT_REC_ALLOCATION) {
			to->allocations++;
			to->allocation_s += s;
		} else if (c->kind >= FT_REC_SYNC_EVENT) {
			to->sync_s += s;
		}
	}
}

/* ---- kernels by name ------------------------------------------------------------------------ */

static int by_falling_time(const void *a, const void *b)
{
	const struct ft_rec_kernel *x = a, *y = b;

	if (x->time_s < y->time_s || x->time_s > y->time_s)
		return x->time_s > y->time_s ? -1 : 1;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return x->rec_class < y->rec_class ? -1 : x->rec_class > y->rec_class;
}

static void count_kernel(struct ft_rec_kernel *k, const struct ft_rec_op *op, double s)
{
	k->name = op->name;
	k->rec_class = (enum ft_rec_class)op->rec_class;
	k->time_s += s;
	if (!k->n++ || s < k->shortest_s)
		k->shortest_s = s;
	if (s > k->longest_s)
		k->longest_s = s;
}

/* A kernel of the optimizer may have the name of another that is not: each class by itself. */
struct ft_rec_kernel *ft_replay_kernels(const struct ft_replay *p, size_t rank,
					const struct ft_replayed *t,
					struct ft_rec_window w, struct arena *mem,
					size_t *n)
{
	const struct ft_recording *r = p->rank[rank].r;
	struct ft_rec_kernel *named =
		ARENA_ARRAY(mem, r->texts.text.n, struct ft_rec_kernel);
	struct ft_rec_kernel *all = ARENA_ARRAY(mem, r->op.n, struct ft_rec_kernel);

	*n = 0;
	for (int c = 0; c < FT_REC_CLASSES; c++) {
		for (size_t i = 0; i < r->op.n; i++) {
			const struct ft_rec_op *op = op_of(r, i);
			ft_ps begin = t->op_begin[rank][i];

			if (op->rec_class != c || begin < w.from || begin >= w.to)
				continue;
			count_kernel(&named[op->name], op,
				     (double)(t->op_end[rank][i] - begin) * 1e-12);
		}
		for (size_t i = 0; i < r->texts.text.n; i++)
			if (named[i].n) {
				all[(*n)++] = named[i];
				named[i] = (struct ft_rec_kernel){ 0 };
			}
	}
	qsort(all, *n, sizeof(*all), by_falling_time);
	return all;
}
