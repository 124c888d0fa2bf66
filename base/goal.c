/* base/goal.c - statements of GOAL, and collectives made of them */
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/goal.h"

void goal_begin(struct goal *g, int64_t ranks)
{
	fprintf(g->out, "num_ranks %" PRId64 "\n", ranks);
}

void goal_rank(struct goal *g, int64_t rank)
{
	g->n = 0;
	fprintf(g->out, "\nrank %" PRId64 " {\n", rank);
}

void goal_rank_end(struct goal *g)
{
	fputs("}\n", g->out);
}

int64_t goal_calc(struct goal *g, ft_ps time, int cpu)
{
	fprintf(g->out, "l%" PRId64 ": calc %" PRId64 " cpu %d\n", ++g->n,
		(time + 500) / 1000, cpu);
	return g->n;
}

struct message {
	const char *what, *way; /* send to, recv from */
	double bytes;
	int64_t peer, tag;
	int cpu;
};

static int64_t put_message(struct goal *g, struct message m)
{
	fprintf(g->out,
		"l%" PRId64 ": %s %.0fb %s %" PRId64 " tag %" PRId64 " cpu %d\n",
		++g->n, m.what, fmax(1, ceil(m.bytes)), m.way, m.peer, m.tag, m.cpu);
	return g->n;
}

int64_t goal_send(struct goal *g, double bytes, int64_t to, int64_t tag, int cpu)
{
	return put_message(g, (struct message){ "send", "to", bytes, to, tag, cpu });
}

int64_t goal_recv(struct goal *g, double bytes, int64_t from, int64_t tag, int cpu)
{
	return put_message(g,
			   (struct message){ "recv", "from", bytes, from, tag, cpu });
}

void goal_require(struct goal *g, int64_t what, int64_t on)
{
	assert(what > 0 && on < what);
	if (on)
		fprintf(g->out, "l%" PRId64 " requires l%" PRId64 "\n", what, on);
}

int64_t goal_tags(enum ft_collective op, int64_t size)
{
	return op == FT_ALL_REDUCE ? 2 * (size - 1) : op == FT_BROADCAST ? 1 : size - 1;
}

/* The k-th rank behind it in the group; -1: the one before it. */
static int64_t behind(const struct goal_ring *r, int64_t k)
{
	int64_t at = (r->place + k + r->size) % r->size;

	return r->rank ? r->rank[at] : r->base + at * r->stride;
}

static int64_t broadcast(struct goal *g, const struct goal_call *c, int64_t after)
{
	const struct goal_ring *ring = &c->ring;
	int64_t at = after;

	if (ring->place) {
		at = goal_recv(g, c->bytes, behind(ring, -1), c->tag, c->cpu);
		goal_require(g, at, after);
	}
	if (ring->place + 1 < ring->size) {
		int64_t sent = goal_send(g, c->bytes, behind(ring, 1), c->tag, c->cpu);

		goal_require(g, sent, at);
		at = sent;
	}
	return at;
}

int64_t goal_collective(struct goal *g, const struct goal_call *call, int64_t after)
{
	enum ft_collective op = call->op;
	const struct goal_ring *ring = &call->ring;
	int64_t steps = goal_tags(op, ring->size), tag = call->tag;
	int64_t sent = after, got = after, end;
	double part =
		call->bytes / (double)(op == FT_SENDRECV ? ring->size - 1 : ring->size);
	int cpu = call->cpu;

	if (op == FT_BROADCAST)
		return broadcast(g, call, after);
	for (int64_t k = 0; k < steps; k++) {
		int64_t far = op == FT_ALL_TO_ALL ? k + 1 : 1;
		int64_t s = goal_send(g, part, behind(ring, far), tag + k, cpu);
		int64_t r = goal_recv(g, part, behind(ring, -far), tag + k, cpu);

		goal_require(g, s, sent);
		if (got != sent && op != FT_ALL_TO_ALL)
			goal_require(g, s, got); /* passes on what has come */
		goal_require(g, r, got);
		sent = s;
		got = r;
	}
	end = goal_calc(g, 0, cpu);
	goal_require(g, end, sent);
	goal_require(g, end, got);
	return end;
}
