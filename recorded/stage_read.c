/*
 * recorded/stage_read.c - the kernels, sends and receives of a recorded stage, as launched
 */
#include <stdlib.h>

#include "recorded/stages.h"

const struct ft_rec_collective *transfer_of(const struct ft_recording *r, size_t op)
{
	const struct ft_rec_collective *c = ft_recording_collective(r, op_of(r, op));

	return c && c->op == FT_SENDRECV && c->peer != FT_REC_NONE ? c : NULL;
}

static int64_t stage_of(const struct layout *l, int64_t number)
{
	for (size_t s = 0; s < l->n; s++)
		if (l->number[s] == number)
			return (int64_t)s;
	return NO_RANK;
}

static struct timed_op *in_launch_order(struct layout *l, const struct rank *k,
					size_t *n)
{
	struct timed_op *to = ARENA_ARRAY(&l->scratch, k->r->op.n, struct timed_op);

	*n = 0;
	for (size_t i = 0; i < k->r->op.n; i++) {
		const struct ft_rec_op *op = op_of(k->r, i);

		if (k->step[i] == (int32_t)l->step && op->call != FT_REC_NONE)
			to[(*n)++] = (struct timed_op){
				call_of(k->r, (size_t)op->call)->start, (uint32_t)i
			};
	}
	qsort(to, *n, sizeof(*to), by_time_and_op);
	return to;
}

/* What a kernel sends comes before what it receives. */
static bool add_transfer(struct layout *l, struct stage *s, uint32_t op)
{
	const struct ft_recording *r = l->p->rank[s->rank].r;
	const struct ft_rec_collective *first = transfer_of(r, op), *c;

	for (int receives = 0; receives < 2; receives++)
		for (c = first; c; c = c->also) {
			int64_t peer = stage_of(l, c->peer);

			if (c->sends == receives)
				continue;
			if (peer == NO_RANK)
				return false;
			if (s->n_cuts == s->cut_cap)
				s->cut = ARENA_GROW(&l->scratch, s->cut, &s->cut_cap);
			s->cut[s->n_cuts++] =
				(struct cut){ op, s->kernel.n, peer, c->sends };
			s->n_sends += c->sends;
		}
	if (first->sends && op_of(r, op)->duration < l->transfer)
		l->transfer = op_of(r, op)->duration;
	return true;
}

bool stage_read(struct layout *l, int64_t here)
{
	struct stage *s = &l->stage[here];
	const struct rank *k = &l->p->rank[s->rank];
	int16_t stream = busiest_stream(k->r, &l->scratch);
	size_t n;
	const struct timed_op *at = in_launch_order(l, k, &n);

	for (size_t i = 0; i < n; i++) {
		const struct ft_rec_op *op = op_of(k->r, at[i].op);

		if (transfer_of(k->r, at[i].op)) {
			if (!add_transfer(l, s, at[i].op))
				return false;
		} else if (op->stream == stream && op->rec_class != FT_REC_COLLECTIVE) {
			add_kernel(&l->scratch, &s->kernel, at[i].op);
		}
	}
	return true;
}
