/*
 * study/whatif_tensor.c - kernels of a tensor-parallel step in a group of another size
 *
 * A group of n divides of each weight either the features that come out (column-parallel)
 * or those that go in (row-parallel); the model's own features, the hidden ones, are the
 * side that stays. They are known from messages, tokens times hidden features, and from
 * products of so many tokens. Attention has its heads divided. With sequence parallelism
 * (gathered and scattered, not reduced) what lies between is divided, too; else a
 * memory-bound kernel is told by the length of its rows. Weights and what moves them
 * (optimizer, FSDP's copies) are divided. What is not told keeps its time.
 */

#include "study/whatif.h"

static double asked_frac(const struct whatif *w)
{
	return w->answer->tp > 0 ?
		       (double)w->answer->tp_recorded / (double)w->answer->tp :
		       1;
}

static bool is(double a, double b)
{
	return a > b - 0.5 && a < b + 0.5;
}

static const struct ft_work *product_of(const struct ft_recording *r,
					const struct ft_rec_op *op)
{
	const struct ft_rec_work *w = ft_recording_work(r, op);

	return op->rec_class == FT_REC_GEMM && w && w->work.kind == FT_GEMM ? &w->work :
									      NULL;
}

/* Does a product of so many tokens have these features on one side? */
static bool fits(const struct ft_work *p, double elements, double *hidden)
{
	*hidden = elements / (double)p->gemm.m;
	return is(*hidden, (double)p->gemm.n) != is(*hidden, (double)p->gemm.k);
}

/* The features that most products agree on. */
static double find_hidden(const struct whatif *w)
{
	const struct ft_replay *p = w->asked->replay;
	double best = 0;
	int64_t votes = 0;

	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		const struct ft_recording *r = ft_replay_recording(p, k);

		for (size_t i = 0; i < ft_recording_ops(r); i++) {
			const struct ft_work *x = product_of(r, ft_recording_op(r, i));
			double hidden;

			if (!x || !fits(x, w->tensor.elements, &hidden))
				continue;
			if (!votes)
				best = hidden;
			votes += is(hidden, best) ? 1 : -1;
		}
	}
	return best;
}

void tensor_begin(struct whatif *w)
{
	if (w->answer->tp != w->answer->tp_recorded)
		w->tensor.hidden = find_hidden(w);
}

static void keep(struct whatif *w, const struct ft_rec_op *op)
{
	w->tensor.kept++;
	w->tensor.kept_s += (double)op->duration * 1e-12;
}

static void cut_product(struct whatif *w, const struct ft_recording *r,
			const struct ft_rec_op *op, double frac,
			struct ft_rec_left *left)
{
	const struct ft_work *p = product_of(r, op);
	bool out, in;

	if (!p || !(w->tensor.hidden > 0)) {
		left->columns_frac = frac;
		w->tensor.unshaped++;
		return;
	}
	out = is(w->tensor.hidden, (double)p->gemm.n);
	in = is(w->tensor.hidden, (double)p->gemm.k);
	if (out && !in)
		left->inner_frac = frac;
	else if (in && !out)
		left->columns_frac = frac;
	else
		keep(w, op);
}

static void cut_memory(struct whatif *w, const struct ft_recording *r,
		       const struct ft_rec_op *op, double frac,
		       struct ft_rec_left *left)
{
	const struct ft_rec_work *x = ft_recording_work(r, op);
	bool rows = x && x->exact && x->row > 0 && w->tensor.hidden > 0;

	if (w->tensor.sequence || op->in_fsdp || op->rec_class == FT_REC_OPTIMIZER)
		left->bytes_frac = frac;
	else if (!rows)
		keep(w, op);
	else if (!is(x->row, w->tensor.hidden))
		left->bytes_frac = frac;
}

struct ft_rec_left tensor_left(struct whatif *w, const struct ft_recording *r,
			       const struct ft_rec_op *op)
{
	struct ft_rec_left left = { 1, 1, 1, 1 };
	double frac = asked_frac(w);

	if (!(frac < 1 || frac > 1))
		return left;
	switch (op->rec_class) {
	case FT_REC_GEMM:
		cut_product(w, r, op, frac, &left);
		break;
	case FT_REC_ATTENTION:
		left.heads_frac = frac;
		break;
	case FT_REC_MEMORY:
	case FT_REC_OPTIMIZER:
		cut_memory(w, r, op, frac, &left);
		break;
	case FT_REC_COLLECTIVE:
		break;
	default:
		keep(w, op);
	}
	return left;
}

void tensor_end(struct whatif *w)
{
	const struct tensor *t = &w->tensor;

	if (w->answer->tp == w->answer->tp_recorded)
		return;
	if (t->unshaped)
		whatif_note(w,
			    "%lld products without recorded shapes are taken to be "
			    "divided among tensor-parallel ranks.",
			    (long long)t->unshaped);
	if (t->kept)
		whatif_note(
			w,
			"%lld kernels and copies (%.1f ms of all ranks) may be divided "
			"among tensor-parallel ranks or not, and keep their time.",
			(long long)t->kept, 1e3 * t->kept_s);
}
