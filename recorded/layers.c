/*
 * recorded/layers.c - layers, found by repetition
 *
 * Periods are tried from the shortest. At each the stretches that are free and equal to
 * themselves that many operations later are taken, if they are two periods long and hold
 * attention and a product (where the step has both: else two equal products beside each
 * other were a layer). A stretch may begin or end with an operation of its neighbours that
 * happens to have the same name: where in it the first layer begins is told by the kernels
 * between the operations, which such a one does not share. Runs that are apart by whole layers
 * are one in which a layer used other kernels; so is the layer beside a run that is one short.
 * Where kernels tell their passes, as in our own timelines, a layer is of one pass, and which one
 * that is does not go by its length and names.
 *
 * Cost: operations times the longest period tried.
 */
#include <stdlib.h>
#include <string.h>

#include "recorded/replay.h"

/* A layer whose attention is not fused has its products of queries, keys and values, scores, their
 * sums, the output and two of an MLP. */
enum { LONGEST_LAYER = 2048, LEAST_PLAIN = 6 };

struct mark { /* a product or attention: all of its kernels side by side are one */
	uint32_t op;
	int32_t name; /* of the longest */
	ft_ps longest;
	uint32_t at;	  /* its place among all operations of the stream */
	uint64_t between; /* what ran between it and the one before, as a hash */
	enum told_pass pass;
	bool attention, taken;
};

struct run {
	size_t begin, period, n; /* marks; layers */
	size_t skip;		 /* layers of its pass that are missing before it */
};

struct finder {
	const struct ft_recording *r;
	const struct ft_replayed *t;
	size_t rank;
	struct ft_rec_window window;
	struct arena *mem;
	uint32_t *op; /* [n_ops] of the stream in the window, by begin */
	struct mark *mark;
	struct run *run;
	size_t n_ops, n_marks, n_runs, cap;
	bool attention, product; /* the step has such */
};

bool op_is_mark(const struct ft_rec_op *op)
{
	return op->rec_class == FT_REC_GEMM || op->rec_class == FT_REC_ATTENTION;
}

int16_t busiest_stream(const struct ft_recording *r, struct arena *scratch)
{
	ft_ps *busy = ARENA_ARRAY(scratch, r->stream.n, ft_ps);
	int16_t most = 0;

	for (size_t i = 0; i < r->op.n; i++)
		if (op_is_mark(op_of(r, i)))
			busy[op_of(r, i)->stream] += op_of(r, i)->duration;
	for (size_t s = 1; s < r->stream.n; s++)
		if (busy[s] > busy[most])
			most = (int16_t)s;
	return most;
}

/* Is this one more kernel of the attention before it? How many there are goes by masks and heads. */
static bool joins(struct finder *f, const struct ft_rec_op *op)
{
	struct mark *last = f->n_marks ? &f->mark[f->n_marks - 1] : NULL;

	if (!last || !last->attention || op->rec_class != FT_REC_ATTENTION ||
	    last->pass != told_place(f->r, op).pass)
		return false;
	if (op->duration > last->longest) {
		last->longest = op->duration;
		last->name = op->name;
	}
	return true;
}

static void collect(struct finder *f, int16_t stream)
{
	uint64_t between = 0;

	f->op = ARENA_ARRAY(f->mem, f->r->op.n, uint32_t);
	f->mark = ARENA_ARRAY(f->mem, f->r->op.n, struct mark);
	for (size_t i = 0; i < f->r->op.n; i++) {
		uint32_t number = f->r->op_order[i];
		const struct ft_rec_op *op = op_of(f->r, number);
		ft_ps begin = f->t->op_begin[f->rank][number];

		if (op->stream != stream || begin < f->window.from ||
		    begin >= f->window.to)
			continue;
		f->op[f->n_ops++] = number;
		if (!op_is_mark(op)) {
			if (!op->is_copy)
				between = (between ^ (uint64_t)op->name) *
					  UINT64_C(0x9e3779b97f4a7c15);
			continue;
		}
		if (!between && joins(f, op))
			continue;
		f->mark[f->n_marks++] = (struct mark){
			.op = number,
			.name = op->name,
			.longest = op->duration,
			.at = (uint32_t)f->n_ops - 1,
			.between = between,
			.pass = told_place(f->r, op).pass,
			.attention = op->rec_class == FT_REC_ATTENTION,
		};
		between = 0;
		f->attention |= op->rec_class == FT_REC_ATTENTION;
		f->product |= op->rec_class == FT_REC_GEMM;
	}
}

/* ---- runs ------------------------------------------------------------------------- */

static bool is_layer(const struct finder *f, size_t begin, size_t period)
{
	bool attention = !f->attention, product = !f->product;

	for (size_t i = begin; i < begin + period; i++) {
		attention |= f->mark[i].attention;
		product |= !f->mark[i].attention;
		if (f->mark[i].pass != f->mark[begin].pass)
			return false;
	}
	return attention && product;
}

/* How many kernels between the operations of a layer are as in the layer beside it. */
static size_t alike(const struct finder *f, size_t layer, size_t beside, size_t period)
{
	size_t n = 0;

	for (size_t i = 1; i < period; i++)
		n += f->mark[layer + i].between == f->mark[beside + i].between;
	return n;
}

/* Where in a stretch the first layer begins. */
static size_t phase(const struct finder *f, size_t begin, size_t period, size_t n,
		    size_t spare)
{
	size_t best = 0, most = 0;

	for (size_t o = 0; o <= spare; o++) {
		size_t first = begin + o, last = first + (n - 1) * period;
		size_t same = alike(f, first, first + period, period) +
			      alike(f, last, last - period, period);

		if (same > most) {
			most = same;
			best = o;
		}
	}
	return best;
}

static void seize(struct finder *f, size_t begin, size_t marks)
{
	for (size_t i = begin; i < begin + marks; i++)
		f->mark[i].taken = true;
}

static void take(struct finder *f, size_t begin, size_t period, size_t marks)
{
	struct run run = { .period = period, .n = marks / period };

	run.begin = begin + phase(f, begin, period, run.n, marks % period);
	seize(f, run.begin, run.n * period);
	if (f->n_runs == f->cap)
		f->run = ARENA_GROW(f->mem, f->run, &f->cap);
	f->run[f->n_runs++] = run;
}

/* Stretches of this period; how many operations they take. */
static size_t take_all(struct finder *f, size_t period)
{
	size_t taken = 0, same = 0;

	for (size_t i = 0; i + period <= f->n_marks; i++) {
		bool more = i + period < f->n_marks && !f->mark[i].taken &&
			    !f->mark[i + period].taken &&
			    f->mark[i].name == f->mark[i + period].name &&
			    f->mark[i].pass == f->mark[i + period].pass;

		if (more) {
			same++;
			continue;
		}
		if (same >= period && is_layer(f, i - same, period)) {
			take(f, i - same, period, same + period);
			taken += (same + period) / period * period;
		}
		same = 0;
	}
	return taken;
}

static int by_begin(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	return whole_order((int64_t)x->begin, (int64_t)y->begin);
}

static void find_runs(struct finder *f)
{
	size_t left = f->n_marks;

	for (size_t p = f->attention ? 1 : LEAST_PLAIN;
	     2 * p <= left && p <= LONGEST_LAYER; p++)
		left -= take_all(f, p);
	if (f->n_runs)
		qsort(f->run, f->n_runs, sizeof(*f->run), by_begin);
}

/* ---- passes ----------------------------------------------------------------------- */

static bool called_backward(const struct finder *f, const struct run *run)
{
	static const char *const words[] = { "bwd", "bprop", "ackward", "compute_dq" };

	for (size_t i = run->begin; i < run->begin + run->period; i++)
		for (size_t w = 0; w < sizeof(words) / sizeof(*words); w++)
			if (strstr(ft_recording_text(f->r, f->mark[i].name), words[w]))
				return true;
	return false;
}

static bool is_backward(const struct finder *f, const struct run *run)
{
	size_t shortest = run->period;

	if (f->mark[run->begin].pass != PASS_NOT_TOLD)
		return f->mark[run->begin].pass == PASS_BACKWARD;
	for (size_t i = 0; i < f->n_runs; i++)
		if (f->run[i].period < shortest)
			shortest = f->run[i].period;
	return 2 * run->period >= 3 * shortest || called_backward(f, run);
}

/* ---- how many layers ---------------------------------------------------------------- */

/* Are n periods from here on in no run yet, and layers by all but their kernels' names? */
static bool are_layers(const struct finder *f, size_t begin, size_t period, size_t n)
{
	if (begin + n * period > f->n_marks)
		return false;
	for (size_t i = begin; i < begin + n * period; i++)
		if (f->mark[i].taken)
			return false;
	for (size_t i = 0; i < n; i++)
		if (!is_layer(f, begin + i * period, period))
			return false;
	return true;
}

/* Two runs of one period with whole layers between them are one in which a layer used
 * other kernels. */
static void merge(struct finder *f)
{
	size_t n = f->n_runs ? 1 : 0;

	for (size_t k = 1; k < f->n_runs; k++) {
		struct run *a = &f->run[n - 1], *b = &f->run[k];
		size_t end = a->begin + a->n * a->period, gap = b->begin - end;

		if (a->period == b->period && gap && gap % a->period == 0 &&
		    are_layers(f, end, a->period, gap / a->period)) {
			seize(f, end, gap);
			a->n += gap / a->period + b->n;
		} else {
			f->run[n++] = *b;
		}
	}
	f->n_runs = n;
}

/* A run that is short of layers: the missing ones are beside it with other kernels, or the
 * step's ends cut its pass. */
static bool complete(struct finder *f, struct run *run, size_t layers)
{
	size_t missing = layers - run->n, marks = missing * run->period;
	size_t end = run->begin + run->n * run->period;

	if (are_layers(f, end, run->period, missing)) {
		seize(f, end, marks);
		run->n = layers;
	} else if (run->begin >= marks &&
		   are_layers(f, run->begin - marks, run->period, missing)) {
		seize(f, run->begin - marks, marks);
		run->begin -= marks;
		run->n = layers;
	} else if (run == f->run) {
		run->skip = missing;
	} else if (run != &f->run[f->n_runs - 1]) {
		return false;
	}
	return true;
}

/* How many layers a pass has: those of the shortest run where all others are multiples of
 * it; else those of the longest, to which the others are completed; 0: they cannot be. */
static size_t count_layers(struct finder *f)
{
	size_t least = SIZE_MAX, most = 0;
	bool whole = true;

	for (size_t k = 0; k < f->n_runs; k++) {
		least = f->run[k].n < least ? f->run[k].n : least;
		most = f->run[k].n > most ? f->run[k].n : most;
	}
	for (size_t k = 0; k < f->n_runs; k++)
		whole &= f->run[k].n % least == 0;
	if (whole)
		return least;
	for (size_t k = 0; k < f->n_runs; k++)
		if (f->run[k].n < most && !complete(f, &f->run[k], most))
			return 0;
	return most;
}

/* The first kernel of an update between two places of the stream, or the second. */
static size_t update_from(const struct finder *f, size_t from, size_t to)
{
	for (; from < to && from < f->n_ops; from++)
		if (op_of(f->r, f->op[from])->rec_class == FT_REC_OPTIMIZER)
			return from;
	return to;
}

/* Operations before a layer's first mark that are the layer's, as a norm is: as many as before the
 * first layer of a run are those before its second. */
static size_t lead_of(const struct finder *f, const struct run *run)
{
	size_t a = f->mark[run->begin].at, b = f->mark[run->begin + run->period].at;
	size_t n = 0;

	for (; n < a; n++) {
		const struct ft_rec_op *x = op_of(f->r, f->op[a - 1 - n]);
		const struct ft_rec_op *y = op_of(f->r, f->op[b - 1 - n]);

		if (op_is_mark(x) || op_is_mark(y) || x->name != y->name)
			break;
	}
	return n;
}

/* When the layer that begins at a mark ends. The last one has no more operations than the one
 * before it, less those that lead the next, and none of the update. */
static ft_ps end_of(const struct finder *f, const struct run *run, size_t i)
{
	size_t first = run->begin + i * run->period, next = first + run->period;
	size_t at = f->mark[first].at;

	if (i + 1 < run->n) {
		at = f->mark[next].at;
	} else {
		at += at - f->mark[first - run->period].at - lead_of(f, run);
		if (next < f->n_marks && f->mark[next].at < at)
			at = f->mark[next].at;
		at = update_from(f, f->mark[first].at, at);
	}
	return at < f->n_ops ? f->t->op_begin[f->rank][f->op[at]] : f->window.to;
}

static void put_layers(struct finder *f, struct ft_rec_layers *to)
{
	size_t n = 0;

	for (size_t k = 0; k < f->n_runs; k++)
		n += f->run[k].n;
	to->layer = ARENA_ARRAY(f->mem, n, struct ft_rec_layer);
	for (size_t k = 0; k < f->n_runs; k++) {
		const struct run *run = &f->run[k];
		bool backward = is_backward(f, run);

		*(backward ? &to->in_backward : &to->in_forward) = (int64_t)run->period;
		for (size_t i = 0; i < run->n; i++) {
			uint32_t op = f->mark[run->begin + i * run->period].op;
			int64_t layer = (int64_t)(run->skip + i) % to->layers;

			to->layer[to->n++] = (struct ft_rec_layer){
				backward,
				backward ? to->layers - 1 - layer : layer,
				{ f->t->op_begin[f->rank][op], end_of(f, run, i) },
			};
		}
	}
}

struct ft_rec_layers ft_replay_layers(const struct ft_replay *p,
				      const struct ft_replayed *t, size_t rank,
				      struct ft_rec_window window, struct arena *mem)
{
	struct ft_rec_layers to = { .n = 0 };
	struct finder f = {
		.r = p->rank[rank].r, .t = t, .rank = rank, .window = window, .mem = mem
	};

	if (marks_cut(f.r)) {
		to.why = FT_LAYERS_CUT;
		return to;
	}
	collect(&f, busiest_stream(f.r, mem));
	find_runs(&f);
	merge(&f);
	if (!f.n_runs)
		to.why = "no sequence of products repeats";
	else if (!(to.layers = (int64_t)count_layers(&f)))
		to.why = "sequences of products repeat, but passes differ in how often";
	else
		put_layers(&f, &to);
	return to;
}
