/*
 * sim/receives.c - kernels beside receives that wait
 *
 * Where a library posts what a pass receives when the pass before it begins (`receives_ahead` of the stack),
 * a kernel waits beside that pass until it is sent, and holds units of the GPU meanwhile. With
 * b and e the begin and end of pass k on a stage, and a when what pass k + 1 receives was sent,
 *
 *	b(k + 1) = max(e(k), a(k + 1)),  e(k) = b(k) + its kernels
 *	waits beside pass k for max(0, min(a(k + 1), e(k)) - b(k))
 *
 * passes in the order of the schedule. The sum over a stage's kernels is its share s, and a kernel that takes f times as
 * long beside so many units takes 1 + s (f - 1) times as long on it: in the mean over the step, so
 * that passes of one kind stay alike (sim/engine_jump.c). Source: on two recorded H100 with two chunks a
 * stage receives wait beside 0.39 and 0.15 of the kernels, by these sums 0.46 and 0.11; 1F1B with one chunk, whose
 * schedule posts them in front of the pass itself, has none (docs/findings.md).
 *
 * Limit: hosts and what is not compute are not in the sums.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "sim/job.h"
#include "sim/kernel.h"

enum { CHANNELS = 4 }; /* forward or backward, each in both directions */

/* Of a segment, or of the calls of a pass. */
struct brings {
	double compute_s;
	unsigned receives, sends; /* channels */
};

struct stage {
	struct brings *pass;
	size_t n, at;
	double begin, end, compute, beside; /* s */
	double *sent[CHANNELS];		    /* when, by others to this one */
	size_t n_sent[CHANNELS], taken[CHANNELS];
};

static unsigned channel(const struct ft_op *op, enum ft_stream forward)
{
	return (op->stream == forward ? 0u : 2u) + op->reverse;
}

static struct brings brings_of(const struct job *s, size_t class, uint32_t segment)
{
	const struct ft_segment *seg = &s->graph->segment[segment];
	struct brings b = { .compute_s = 0 };

	for (size_t i = 0; i < seg->n_ops; i++) {
		const struct ft_op *op = &seg->op[i];

		if (op->stream == FT_STREAM_COMPUTE)
			b.compute_s +=
				1e-12 * (double)s->timing[class][op->work].duration;
		else if (op->stream == FT_STREAM_RECV_FORWARD ||
			 op->stream == FT_STREAM_RECV_BACKWARD)
			b.receives |= 1u << channel(op, FT_STREAM_RECV_FORWARD);
		else if (op->stream == FT_STREAM_SEND_FORWARD ||
			 op->stream == FT_STREAM_SEND_BACKWARD)
			b.sends |= 1u << channel(op, FT_STREAM_SEND_FORWARD);
	}
	return b;
}

static void add_up(struct brings *to, const struct brings *of, uint32_t repeat)
{
	to->compute_s += repeat * of->compute_s;
	to->receives |= of->receives;
	to->sends |= of->sends;
}

static void lay_stage(const struct job *s, size_t class, struct stage *stage)
{
	const struct ft_class *c = &s->graph->rank_class[class];
	struct brings *of = ARENA_ARRAY(s->mem, s->graph->n_segments, struct brings);

	for (uint32_t i = 0; i < s->graph->n_segments; i++)
		of[i] = brings_of(s, class, i);
	stage->n = c->n_slots;
	stage->pass = ARENA_ARRAY(s->mem, c->n_slots + 1, struct brings);
	for (size_t i = 0; i < CHANNELS; i++)
		stage->sent[i] = ARENA_ARRAY(s->mem, c->n_slots + 1, double);
	for (size_t i = 0; i < c->n_slots; i++) {
		size_t end = i + 1 < c->n_slots ? c->slot[i + 1].call : c->n_calls;

		for (size_t k = c->slot[i].call; k < end; k++)
			add_up(&stage->pass[i], &of[c->call[k].segment],
			       c->call[k].repeat);
	}
}

/* When all that a pass receives was sent; INFINITY: not yet. */
static double sent_at(const struct stage *s, unsigned receives)
{
	double at = 0;

	for (size_t i = 0; i < CHANNELS; i++)
		if (receives & 1u << i)
			at = fmax(at, s->taken[i] < s->n_sent[i] ?
					      s->sent[i][s->taken[i]] :
					      INFINITY);
	return at;
}

/* To the next stage in what is even: forward, and backward in reverse. */
static void send(struct stage *stage, size_t n, size_t from, unsigned sends)
{
	for (size_t i = 0; i < CHANNELS; i++) {
		bool on = (i < 2) != (i & 1);
		struct stage *to = &stage[(from + (on ? 1 : n - 1)) % n];

		if (sends & 1u << i && to->n_sent[i] < to->n)
			to->sent[i][to->n_sent[i]++] = stage[from].end;
	}
}

/* Passes of a stage, as far as what they receive was sent. */
static bool go_on(struct stage *stage, size_t n, size_t which)
{
	struct stage *s = &stage[which];
	size_t before = s->at;

	for (; s->at < s->n; s->at++) {
		const struct brings *b = &s->pass[s->at];
		double at = sent_at(s, b->receives);

		if (isinf(at))
			break;
		if (b->receives)
			s->beside += fmax(0, fmin(at, s->end) - s->begin);
		for (size_t i = 0; i < CHANNELS; i++)
			s->taken[i] += b->receives >> i & 1;
		s->begin = fmax(s->end, at);
		s->end = s->begin + b->compute_s;
		s->compute += b->compute_s;
		send(stage, n, which, b->sends);
	}
	return s->at > before;
}

/* Does the pipeline run several chunks a stage, or cut backwards? One that does not posts no receive ahead. */
static bool posts_ahead(const struct job *s)
{
	const struct ft_class *c = &s->graph->rank_class[0];

	if (!s->stack->layout.receives_ahead || s->outline || s->graph->n_classes < 2)
		return false;
	for (size_t i = 0; i < c->n_slots; i++)
		if (c->slot[i].slot.chunk > 0 ||
		    c->slot[i].slot.kind == FT_SLOT_WEIGHTS)
			return true;
	return false;
}

/* Units that a receive holds: a domain's, or of one NIC. */
static double units_of(const struct job *s)
{
	const struct ft_gpu *gpu = s->cluster->gpu;

	for (size_t i = 0; i < s->graph->n_works; i++) {
		const struct ft_work *w = &s->graph->work[i];

		if (w->kind == FT_COMMUNICATION &&
		    w->communication.group == FT_GROUP_PP)
			return s->timing[0][i].held == HELD_BY_DOMAIN ?
				       gpu->receive_units.value :
				       fmin(gpu->receive_units.value,
					    gpu->collective_units_per_nic.value);
	}
	return 0;
}

static void slow(struct job *s, size_t class, double share, double units)
{
	struct work_timing *t = s->timing[class];

	for (size_t i = 0; i < s->graph->n_works; i++) {
		const struct ft_work *w = &s->graph->work[i];

		if (w->kind != FT_COMMUNICATION && !ft_work_is_host_copy(w))
			t[i].duration = ft_ps_from_double(
				(double)t[i].duration *
				(1 +
				 share * (kernel_beside(s->cluster->gpu, w, units, 0) -
					  1)));
	}
}

void job_beside_receives(struct job *s)
{
	size_t n = s->graph->n_classes, works = s->graph->n_works;
	struct stage *stage;
	double units;
	bool moved = true;

	if (!posts_ahead(s) || !((units = units_of(s)) > 0))
		return;
	stage = ARENA_ARRAY(s->mem, n, struct stage);
	for (size_t c = 0; c < n; c++)
		lay_stage(s, c, &stage[c]);
	while (moved) {
		moved = false;
		for (size_t c = 0; c < n; c++)
			moved |= go_on(stage, n, c);
	}
	for (size_t c = n; c-- > 0;) {
		struct work_timing *own =
			ARENA_ARRAY(s->mem, works, struct work_timing);

		memcpy(own, s->timing[c], works * sizeof(*own));
		s->timing[c] = own;
		if (stage[c].compute > 0)
			slow(s, c, stage[c].beside / stage[c].compute, units);
	}
}
