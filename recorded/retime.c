/*
 * recorded/retime.c - how much longer an operation takes on another GPU
 *
 * Stand-ins form a ladder, predicted once on both GPUs; a recorded time between two
 * rungs takes the ratio between theirs, straight in logarithms. What is shorter than the
 * lowest or longer than the highest takes that one's. Caches count as cold on both. Copies within the GPU move bytes;
 * those to and from the host and other GPUs keep their time.
 */
#include <math.h>
#include <string.h>

#include "foretoken/hw.h"
#include "foretoken/sim.h"
#include "recorded/recording.h"

enum { RUNGS = 48 };

/* Curves of the profiles by what a kernel's name holds; the first that fits. */
static const struct {
	const char *word, *curve;
} curves[] = {
	/* PyTorch's that are not vectorized: they walk strides or odd rows, cast to fp32, or meet in
	 * the same place; fills of 16 bit, too, are bound by instructions */
	{ "native::elementwise_kernel", "strided" },
	{ "unrolled_elementwise_kernel", "strided" },
	{ "CatArrayBatchedCopy<", "strided" },
	{ "CatArray", "concat" },
	{ "FillFunctor<c10", "strided" },
	{ "indexing_backward", "strided" },
	{ "sum_and_scatter", "strided" },
	{ "RadixSort", "strided" },
	{ "Adam", "adamw" },
	{ "FusedOptimizer", "adamw" },
	{ "chunk_cat", "multi_copy" },
	{ "split_with_sizes_copy", "multi_copy" },
	{ "CopyFunctor", "multi_copy" }, /* foreach copies */
	{ "SoftMaxForwardReg", "softmax" },
	{ "SoftMaxBackward<8", "softmax" }, /* of 16 bits */
	{ "SoftMax", "cross_entropy" },	    /* over a vocabulary */
	{ "softmax", "softmax" },
	{ "Softmax", "softmax" },
	{ "layer_norm", "layernorm" },
	{ "rms_norm", "rmsnorm" },
	{ "silu", "silu" },
	{ "gelu", "gelu" },
	{ "dropout", "dropout" },
	{ "Functor_add", "add" },
	{ "MulFunctor", "mul" },
	{ "_copy_kernel", "copy" },
	{ "FillFunctor", "copy" },
	{ "", "default" },
};

enum { CURVES = sizeof(curves) / sizeof(*curves) };

enum ladder_of {
	PRODUCTS,
	NARROW_PRODUCTS,
	FORWARD,
	BACKWARD,
	BYTES, /* and one for each curve */
	LADDERS = BYTES + CURVES
};

struct ladder {
	size_t n; /* 0: not made, or a GPU lacks the format */
	bool made;
	double from_s[RUNGS], to_s[RUNGS], bytes[RUNGS], spread_frac;
};

struct ft_retiming {
	struct arena mem;
	const struct ft_gpu *from, *to;
	struct ladder ladder[LADDERS];
	struct ft_memo *memo;
};

struct ft_retiming *ft_retiming_new(const struct ft_gpu *from, const struct ft_gpu *to)
{
	struct arena mem = { 0 };
	struct ft_retiming *t = ARENA_NEW(&mem, struct ft_retiming);

	t->mem = mem;
	t->from = from;
	t->to = to;
	t->memo = ft_memo_new();
	return t;
}

void ft_retiming_free(struct ft_retiming *t)
{
	struct arena mem;

	if (!t)
		return;
	ft_memo_free(t->memo);
	mem = t->mem; /* t itself lies in it */
	arena_release(&mem);
}

/* ---- stand-ins ------------------------------------------------------------------------ */

/* From 128 on, five rungs to a doubling, in whole 64. */
static int64_t size_of(size_t rung)
{
	return (int64_t)(128 * pow(2, (double)rung / 5) / 64 + 0.5) * 64;
}

static struct ft_work cube(enum ft_dtype dtype, size_t rung)
{
	int64_t side = size_of(rung);

	return (struct ft_work){ .kind = FT_GEMM,
				 .name = "stand-in",
				 .dtype = dtype,
				 .gemm = { .layout = FT_FORWARD,
					   .m = side,
					   .n = side,
					   .k = side,
					   .groups = 1 } };
}

static struct ft_work heads(enum ft_pass pass, size_t rung)
{
	int64_t tokens = size_of(rung);

	return (struct ft_work){ .kind = FT_ATTENTION,
				 .name = "stand-in",
				 .dtype = FT_BF16,
				 .attention = { .pass = pass,
						.batch = 1,
						.heads = 32,
						.kv_heads = 8,
						.queries = tokens,
						.keys = tokens,
						.qk_head_dim = 128,
						.v_head_dim = 128,
						.causal = true } };
}

static struct ft_work moved(const char *curve, double bytes)
{
	return (struct ft_work){ .kind = FT_MEMORY_BOUND,
				 .name = "stand-in",
				 .dtype = FT_BF16,
				 .memory = { .kernel = curve, .bytes = bytes } };
}

static struct ft_work rung_of(enum ladder_of of, size_t rung)
{
	switch (of) {
	case PRODUCTS:
		return cube(FT_BF16, rung);
	case NARROW_PRODUCTS:
		return cube(FT_FP8, rung);
	case FORWARD:
		return heads(FT_PASS_FORWARD, rung);
	case BACKWARD:
		return heads(FT_PASS_BACKWARD, rung);
	default:
		return moved(curves[of - BYTES].curve,
			     1024 * pow(2, (double)rung / 1.8));
	}
}

/* The times of a work on the recording's GPU, and of what is left of it on the other. */
static bool whole_and_part(struct ft_retiming *t, const struct ft_work *w,
			   const struct ft_work *part, double *from_s, double *to_s,
			   double *spread_frac)
{
	struct ft_prediction a, b;
	struct ft_error err;

	if (!ft_kernel_recall(t->memo, t->from, w, FT_CLOCK_SUSTAINED, &a, &err) ||
	    !ft_kernel_recall(t->memo, t->to, part, FT_CLOCK_SUSTAINED, &b, &err) ||
	    !(a.time_s > 0) || !(b.time_s > 0))
		return false;
	*from_s = a.time_s;
	*to_s = b.time_s;
	*spread_frac =
		t->from == t->to && w == part ? 0 : hypot(a.spread_frac, b.spread_frac);
	return true;
}

static const struct ladder *ladder(struct ft_retiming *t, enum ladder_of of)
{
	struct ladder *l = &t->ladder[of];

	if (l->made)
		return l;
	l->made = true;
	for (; l->n < RUNGS; l->n++) {
		struct ft_work w = rung_of(of, l->n);

		if (!whole_and_part(t, &w, &w, &l->from_s[l->n], &l->to_s[l->n],
				    &l->spread_frac)) {
			l->n = 0;
			return l;
		}
		l->bytes[l->n] = w.kind == FT_MEMORY_BOUND ? w.memory.bytes : 0;
	}
	return l;
}

/* Where on a ladder a time is: rung i and how far to the next. */
static size_t find(const struct ladder *l, double time_s, double *past)
{
	size_t i = 0;

	while (i + 2 < l->n && l->from_s[i + 1] < time_s)
		i++;
	*past = l->from_s[i + 1] > l->from_s[i] ?
			log(time_s / l->from_s[i]) /
				log(l->from_s[i + 1] / l->from_s[i]) :
			0; /* of no time at all: far before the first */
	*past = fmin(1, fmax(0, *past));
	return i;
}

static double between(double a, double b, double past)
{
	return pow(a, 1 - past) * pow(b, past);
}

static int64_t fraction(int64_t n, double frac)
{
	int64_t left = (int64_t)((double)n * frac + 0.5);

	return left < 1 ? 1 : left;
}

static struct ft_work part_of(const struct ft_work *w, const struct ft_rec_left *left)
{
	struct ft_work part = *w;

	switch (w->kind) {
	case FT_GEMM:
		part.gemm.n = fraction(w->gemm.n, left->columns_frac);
		part.gemm.k = fraction(w->gemm.k, left->inner_frac);
		break;
	case FT_ATTENTION:
		part.attention.heads = fraction(w->attention.heads, left->heads_frac);
		part.attention.kv_heads =
			fraction(w->attention.kv_heads, left->heads_frac);
		break;
	default:
		part.memory.bytes *= left->bytes_frac;
	}
	return part;
}

static bool is_whole(double frac)
{
	return !(frac < 1 || frac > 1);
}

/* Does a work of this kind keep its whole size? */
static bool leaves_all(const struct ft_rec_left *left, enum ft_work_kind kind)
{
	return !left || (kind == FT_GEMM ? is_whole(left->columns_frac) &&
						   is_whole(left->inner_frac) :
			 kind == FT_ATTENTION ? is_whole(left->heads_frac) :
						is_whole(left->bytes_frac));
}

/* The work of a time on a ladder: bytes as they are, of others the nearest rung's. */
static struct ft_work stand_in(const struct ladder *l, enum ladder_of of, size_t rung,
			       double past)
{
	if (of >= BYTES)
		return moved(curves[of - BYTES].curve,
			     between(l->bytes[rung], l->bytes[rung + 1], past));
	return rung_of(of, past < 0.5 ? rung : rung + 1);
}

static enum ft_retimed_by by_ladder(struct ft_retiming *t, enum ladder_of of,
				    double time_s, const struct ft_rec_left *left,
				    double *ratio, double *spread_frac)
{
	const struct ladder *l = ladder(t, of);
	double past;
	size_t i;

	if (!l->n)
		return FT_RETIMED_NOT;
	i = find(l, time_s, &past);
	*ratio = between(l->to_s[i] / l->from_s[i], l->to_s[i + 1] / l->from_s[i + 1],
			 past);
	*spread_frac = l->spread_frac;
	if (!leaves_all(left, of == PRODUCTS || of == NARROW_PRODUCTS ? FT_GEMM :
			      of < BYTES			      ? FT_ATTENTION :
					   FT_MEMORY_BOUND)) {
		struct ft_work all = stand_in(l, of, i, past);
		struct ft_work part = part_of(&all, left);
		double all_s, part_s, from_s, unused;

		if (whole_and_part(t, &all, &all, &from_s, &all_s, &unused) &&
		    whole_and_part(t, &part, &part, &from_s, &part_s, &unused))
			*ratio *= part_s / all_s;
	}
	return FT_RETIMED_BY_STAND_IN;
}

/* ---- one operation --------------------------------------------------------------------- */

static bool has(const char *name, const char *const *words)
{
	for (; *words; words++)
		if (strstr(name, *words))
			return true;
	return false;
}

static unsigned curve_of(const char *name)
{
	unsigned i = 0;

	while (!strstr(name, curves[i].word))
		i++;
	return i;
}

static enum ladder_of ladder_for(const struct ft_recording *r,
				 const struct ft_rec_op *op)
{
	static const char *const narrow[] = { "e4m3",	"e5m2", "fp8",
					      "Float8", "_F8",	NULL };
	static const char *const back[] = { "bwd",	"bprop",    "backward",
					    "Backward", "dot_do_o", "convert_dq",
					    NULL };
	const char *name = ft_recording_text(r, op->name);

	switch (op->rec_class) {
	case FT_REC_GEMM:
		return has(name, narrow) ? NARROW_PRODUCTS : PRODUCTS;
	case FT_REC_ATTENTION:
		return has(name, back) ? BACKWARD : FORWARD;
	default:
		return BYTES + curve_of(name);
	}
}

static enum ft_work_kind kind_for(const struct ft_rec_op *op)
{
	return op->rec_class == FT_REC_GEMM	 ? FT_GEMM :
	       op->rec_class == FT_REC_ATTENTION ? FT_ATTENTION :
						   FT_MEMORY_BOUND;
}

/* Another GPU has another attention; what a step reads was written long before. */
static struct ft_work portable(const struct ft_rec_work *w)
{
	struct ft_work work = w->work;

	if (work.kind == FT_ATTENTION)
		work.attention.impl = NULL;
	if (work.kind == FT_MEMORY_BOUND)
		work.memory.warm = false;
	return work;
}

/* By the work that the operator's shapes tell. */
static bool by_work(struct ft_retiming *t, const struct ft_rec_work *w,
		    const struct ft_rec_left *left, double *ratio, double *spread_frac)
{
	struct ft_work work = portable(w), part = work;
	bool all = leaves_all(left, work.kind);
	double from_s, to_s;

	if (!all && work.kind == FT_MEMORY_BOUND)
		return false; /* what is left of a row is not told */
	if (!all)
		part = part_of(&work, left);
	if (!whole_and_part(t, &work, all ? &work : &part, &from_s, &to_s, spread_frac))
		return false;
	*ratio = to_s / from_s;
	return true;
}

enum ft_retimed_by ft_retime(struct ft_retiming *t, const struct ft_recording *r,
			     const struct ft_rec_op *op, const struct ft_rec_left *left,
			     double *ratio, double *spread_frac)
{
	const struct ft_rec_work *w = ft_recording_work(r, op);

	*ratio = 1;
	*spread_frac = 0;
	if (op->rec_class == FT_REC_OTHER || op->rec_class == FT_REC_COLLECTIVE)
		return FT_RETIMED_NOT;
	if (recording_far_copy(r, op))
		return FT_RETIMED_NOT;
	if (w && !op->is_copy && w->work.kind == kind_for(op) &&
	    (w->exact || w->work.kind != FT_MEMORY_BOUND) &&
	    by_work(t, w, left, ratio, spread_frac))
		return FT_RETIMED_BY_WORK;
	return by_ladder(t, ladder_for(r, op), (double)op->duration * 1e-12, left,
			 ratio, spread_frac);
}
