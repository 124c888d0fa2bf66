/*
 * recorded/stage_passes.c - the forward and backward passes of a recorded stage
 *
 * They are told by what is sent: a stage sends a forward pass's result on and a backward
 * pass's back. The first sends nothing back: there receives and numbers of kernels tell.
 */
#include <stdlib.h>
#include <string.h>

#include "recorded/stages.h"

const struct ft_rec_collective *transfer_of(const struct ft_recording *r, size_t op)
{
	const struct ft_rec_collective *c = ft_recording_collective(r, op_of(r, op));

	return c && c->op == FT_SENDRECV && c->peer != FT_REC_NONE ? c : NULL;
}

static int64_t place_of(const struct layout *l, int64_t number)
{
	for (size_t s = 0; s < l->n; s++)
		if (l->number[s] == number)
			return (int64_t)s;
	return NO_RANK;
}

/* ---- passes -------------------------------------------------------- */

static void append(struct layout *l, struct ops *to, uint32_t op)
{
	if (to->n == to->cap)
		to->op = ARENA_GROW(&l->scratch, to->op, &to->cap);
	to->op[to->n++] = op;
}

static void add_pass(struct layout *l, struct stage *s, int back, const uint32_t *op,
		     size_t n)
{
	struct ft_replay *p = l->p;
	const struct ft_recording *r = p->rank[s->rank].r;
	const struct ft_rec_op *first = op_of(r, op[0]), *last = op_of(r, op[n - 1]);
	struct pass *pass;

	if (p->n_passes == p->pass_cap)
		p->pass = ARENA_GROW(&p->mem, p->pass, &p->pass_cap);
	pass = &p->pass[p->n_passes];
	*pass = (struct pass){ (size_t)s->rank, n, ARENA_ARRAY(&p->mem, n, uint32_t),
			       last->start + last->duration - first->start };
	memcpy(pass->op, op, n * sizeof(*op));
	if (s->n[back] == s->cap[back])
		s->pass[back] = ARENA_GROW(&l->scratch, s->pass[back], &s->cap[back]);
	s->pass[back][s->n[back]++] = p->n_passes++;
	if (!back && !s->n[BACKWARD])
		s->ahead++;
}

static size_t ops_of_pass(const struct layout *l, const struct stage *s, int back)
{
	return s->n[back] ? l->p->pass[s->pass[back][0]].n : 0;
}

/* Of a stage behind the first: kernels up to a send; receives may be posted at any time. */
static void close_pass(struct layout *l, struct stage *s, struct ops *region,
		       enum way by)
{
	if (by != SEND_FORWARD && by != SEND_BACKWARD)
		return;
	if (region->n)
		add_pass(l, s, by == SEND_BACKWARD, region->op, region->n);
	region->n = 0;
}

/* Of the first stage, up to a send or receive (WAYS: up to the end). Nothing is sent between
 * a backward pass and the forward pass, or the update, behind it: it is told by the number
 * of kernels. */
static void close_region(struct layout *l, struct stage *s, struct ops *region,
			 enum way by)
{
	size_t forward = ops_of_pass(l, s, FORWARD), back = ops_of_pass(l, s, BACKWARD);
	size_t n = region->n;

	region->n = 0;
	if (!n || (by == WAYS && !back))
		return;
	if (by != SEND_FORWARD) {
		add_pass(l, s, BACKWARD, region->op, by == WAYS && back < n ? back : n);
	} else if (!s->way[RECEIVE_BACKWARD].n || n <= forward) {
		add_pass(l, s, FORWARD, region->op, n);
	} else {
		add_pass(l, s, BACKWARD, region->op, n - forward);
		add_pass(l, s, FORWARD, region->op + n - forward, forward);
	}
}

struct launched {
	ft_ps at;
	uint32_t op;
};

static int by_launch(const void *a, const void *b)
{
	const struct launched *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->op < y->op ? -1 : x->op > y->op;
}

static struct launched *in_launch_order(struct layout *l, const struct rank *k,
					size_t *n)
{
	struct launched *to = ARENA_ARRAY(&l->scratch, k->r->op.n, struct launched);

	*n = 0;
	for (size_t i = 0; i < k->r->op.n; i++) {
		const struct ft_rec_op *op = op_of(k->r, i);

		if (k->step[i] == (int32_t)l->step && op->call != FT_REC_NONE)
			to[(*n)++] = (struct launched){
				call_of(k->r, (size_t)op->call)->start, (uint32_t)i
			};
	}
	qsort(to, *n, sizeof(*to), by_launch);
	return to;
}

/* false: it sends or receives otherwise than to and from its neighbours. */
static bool way_of(const struct layout *l, int64_t here,
		   const struct ft_rec_collective *c, enum way *way)
{
	int64_t peer = place_of(l, c->peer);

	if (peer == NO_RANK || (peer != here - 1 && peer != here + 1))
		return false;
	*way = peer > here ? (c->sends ? SEND_FORWARD : RECEIVE_BACKWARD) :
			     (c->sends ? SEND_BACKWARD : RECEIVE_FORWARD);
	return true;
}

/* A send closes a pass; so what a kernel sends comes before what it receives. */
static bool read_transfer(struct layout *l, int64_t here, uint32_t op,
			  struct ops *region)
{
	struct stage *s = &l->stage[here];
	const struct ft_recording *r = l->p->rank[s->rank].r;
	const struct ft_rec_collective *first = transfer_of(r, op), *c;
	enum way way;

	for (int receives = 0; receives < 2; receives++)
		for (c = first; c; c = c->also) {
			if (c->sends == receives)
				continue;
			if (!way_of(l, here, c, &way))
				return false;
			if (here)
				close_pass(l, s, region, way);
			else
				close_region(l, s, region, way);
			append(l, &s->way[way], op);
		}
	if (first->sends && op_of(r, op)->duration < l->transfer)
		l->transfer = op_of(r, op)->duration;
	return true;
}

bool stage_read(struct layout *l, int64_t here)
{
	struct stage *s = &l->stage[here];
	const struct rank *k = &l->p->rank[s->rank];
	struct ops region = { NULL, 0, 0 };
	int16_t stream = busiest_stream(k->r, &l->scratch);
	size_t n;
	const struct launched *at = in_launch_order(l, k, &n);

	for (size_t i = 0; i < n; i++) {
		const struct ft_rec_op *op = op_of(k->r, at[i].op);

		if (transfer_of(k->r, at[i].op)) {
			if (!read_transfer(l, here, at[i].op, &region))
				return false;
		} else if (op->stream == stream && op->rec_class != FT_REC_COLLECTIVE) {
			append(l, &region, at[i].op);
		}
	}
	if (!here)
		close_region(l, s, &region, WAYS);
	return true;
}
