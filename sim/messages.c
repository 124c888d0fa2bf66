/*
 * sim/messages.c - a pipeline's messages one behind the other, and kernels beside those that wait
 *
 * A library that runs a schedule as one list of passes, sends and receives (`messages_in_turn` of the stack) has one queue of messages
 * on each rank. Stages take their passes in turns, one each; a pass goes on once what it receives is listed. Behind it
 * stands its send, and in the list of the stage that gets it, behind the last pass there so far, the receive. A message holds the
 * head of its queue from the end of the pass in front of it until the other end is at the head of its own, and
 * for the transfer: so a receive waits beside passes, and what stands behind it waits, too.
 *
 * From the order and from what passes take follow, without a simulation:
 *
 *	s	the share of a stage's kernels beside which a message waits. A kernel that takes f times as long beside the units that
 *		it holds takes 1 + s (f - 1) times as long, in the mean over the step, so that passes of one kind stay
 *		alike (sim/engine_jump.c)
 *	d	what a message takes longer, all alike, so that passes which only wait for theirs take as long as those in queues
 *
 * Source: PyTorch, torch/distributed/pipelining/schedules.py (_add_send_recv) and ProcessGroupNCCL (batched messages of a group are on one
 * stream). On two recorded H100 with two chunks a stage messages wait beside 0.39 and 0.15 of the kernels, by these sums beside 0.37
 * and 0.17; steps of two to eight stages of two chunks are met within 6 % (docs/findings.md). With one chunk: 1F1B, which has a
 * schedule of its own, has none; zero-bubble 0.17 and 0.01, where these sums would say 0.4 to 0.5, and steps are met without them.
 *
 * Limit: hosts, and what is neither a pass nor a message, are not in the sums, nor are gathers that PyTorch lists among the passes of
 * sharded chunks. Where a step drains its pipeline several times the first run stands for all. A slow GPU's pipeline takes the shares
 * of the others; one number of units holds for all messages, those between nodes if there are such. More stages, more chunks and
 * fewer micro-batches than twice the stages were not measured. A graph without marks of passes has no order to go by.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "sim/job.h"
#include "sim/kernel.h"

enum { CHANNELS = 4 }; /* forward or backward, each in both directions */
enum { STEPS = 60 };
static const double NEAR_FRAC = 1e-7;

/* Of a segment, or of the calls of a pass. */
struct brings {
	double compute_s, transfer_s;
	unsigned receives, sends; /* channels */
};

struct message {
	unsigned channel;
	bool send;
	size_t behind; /* so many passes */
};

/* From begin to end, s. */
struct span {
	double begin, end;
};

struct stage {
	struct brings *pass;
	size_t n; /* passes of a run */
	struct message *queue;
	size_t n_queue;
	/* of a run, as far as it has come */
	size_t at, head, taken[CHANNELS], listed[CHANNELS];
	double free_s;		 /* when the message before the head was over */
	double sent_s[CHANNELS]; /* without queues: when the send before was over */
	double *arrived[CHANNELS];
	size_t n_arrived[CHANNELS];
	struct span *ran, *waited; /* passes; messages */
};

struct pipeline {
	struct stage *stage;
	size_t n;
};

/* ---- passes ------------------------------------------------------------------- */

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
		double t = 1e-12 * (double)s->timing[class][op->work].duration;

		if (op->stream == FT_STREAM_COMPUTE) {
			b.compute_s += t;
		} else if (op->stream == FT_STREAM_RECV_FORWARD ||
			   op->stream == FT_STREAM_RECV_BACKWARD) {
			b.receives |= 1u << channel(op, FT_STREAM_RECV_FORWARD);
		} else if (op->stream == FT_STREAM_SEND_FORWARD ||
			   op->stream == FT_STREAM_SEND_BACKWARD) {
			b.sends |= 1u << channel(op, FT_STREAM_SEND_FORWARD);
			b.transfer_s = fmax(b.transfer_s, t);
		}
	}
	return b;
}

static void add_up(struct brings *to, const struct brings *of, uint32_t repeat)
{
	to->compute_s += repeat * of->compute_s;
	to->transfer_s = fmax(to->transfer_s, of->transfer_s);
	to->receives |= of->receives;
	to->sends |= of->sends;
}

/* The last micro-batch before the pipeline is drained, which the last stage at least notes. */
static int64_t last_of_run(const struct ft_graph *g)
{
	int64_t last = INT64_MAX;

	for (size_t c = 0; c < g->n_classes; c++)
		for (size_t i = 0; i < g->rank_class[c].n_slots; i++) {
			const struct ft_slot *s = &g->rank_class[c].slot[i].slot;

			if (s->kind == FT_SLOT_FLUSH && s->micro_batch < last)
				last = s->micro_batch;
		}
	return last;
}

/* What passes take on a class, up to where its pipeline is drained. */
static void time_passes(const struct job *s, size_t class, struct stage *stage)
{
	const struct ft_class *c = &s->graph->rank_class[class];
	struct brings *of = ARENA_ARRAY(s->mem, s->graph->n_segments, struct brings);
	int64_t last = last_of_run(s->graph);

	for (uint32_t i = 0; i < s->graph->n_segments; i++)
		of[i] = brings_of(s, class, i);
	for (stage->n = 0; stage->n < c->n_slots; stage->n++) {
		size_t i = stage->n;
		size_t end = i + 1 < c->n_slots ? c->slot[i + 1].call : c->n_calls;

		if (!ft_slot_is_pass(c->slot[i].slot.kind) ||
		    c->slot[i].slot.micro_batch > last)
			break;
		stage->pass[i] = (struct brings){ .compute_s = 0 };
		for (size_t k = c->slot[i].call; k < end; k++)
			add_up(&stage->pass[i], &of[c->call[k].segment],
			       c->call[k].repeat);
	}
}

static void lay(const struct job *s, struct pipeline *p)
{
	p->n = s->graph->n_classes;
	p->stage = ARENA_ARRAY(s->mem, p->n, struct stage);
	for (size_t c = 0; c < p->n; c++) {
		struct stage *stage = &p->stage[c];
		size_t n = s->graph->rank_class[c].n_slots;

		stage->pass = ARENA_ARRAY(s->mem, n + 1, struct brings);
		stage->ran = ARENA_ARRAY(s->mem, n + 1, struct span);
		stage->queue =
			ARENA_ARRAY(s->mem, 2 * CHANNELS * n + 1, struct message);
		stage->waited = ARENA_ARRAY(s->mem, 2 * CHANNELS * n + 1, struct span);
		for (size_t i = 0; i < CHANNELS; i++)
			stage->arrived[i] = ARENA_ARRAY(s->mem, n + 1, double);
		time_passes(s, c, stage);
	}
}

/* The stage at the other end: the next one in what goes on, forward, and backward in reverse. */
static struct stage *other_end(const struct pipeline *p, size_t from, unsigned channel,
			       bool send)
{
	bool on = ((channel < 2) != (channel & 1)) == send;

	return &p->stage[(from + (on ? 1 : p->n - 1)) % p->n];
}

static void start_over(struct pipeline *p)
{
	for (size_t c = 0; c < p->n; c++) {
		struct stage *s = &p->stage[c];

		s->at = s->head = 0;
		s->free_s = 0;
		for (size_t i = 0; i < CHANNELS; i++) {
			s->taken[i] = s->listed[i] = s->n_arrived[i] = 0;
			s->sent_s[i] = 0;
		}
	}
}

static bool all_over(const struct pipeline *p)
{
	for (size_t c = 0; c < p->n; c++)
		if (p->stage[c].at < p->stage[c].n)
			return false;
	return true;
}

/* Until no stage goes on. */
static bool run(struct pipeline *p, double more_s,
		bool (*go_on)(struct pipeline *, size_t, double))
{
	bool moved = true;

	start_over(p);
	while (moved) {
		moved = false;
		for (size_t c = 0; c < p->n; c++)
			moved |= go_on(p, c, more_s);
	}
	return all_over(p);
}

static double length_s(const struct pipeline *p)
{
	double end = 0;

	for (size_t c = 0; c < p->n; c++)
		if (p->stage[c].n)
			end = fmax(end, p->stage[c].ran[p->stage[c].n - 1].end);
	return end;
}

/* ---- the order of messages ------------------------------------------------------ */

/* A stage's turn: one pass, if what it receives is listed. */
static bool list_pass(struct pipeline *p, size_t which, double unused)
{
	struct stage *s = &p->stage[which];
	const struct brings *b = &s->pass[s->at];

	(void)unused;
	if (s->at == s->n)
		return false;
	for (size_t i = 0; i < CHANNELS; i++)
		if (b->receives >> i & 1 && s->taken[i] == s->listed[i])
			return false;
	s->at++;
	for (unsigned i = 0; i < CHANNELS; i++) {
		struct stage *to = other_end(p, which, i, true);

		s->taken[i] += b->receives >> i & 1;
		if (!(b->sends >> i & 1) || to->listed[i] == to->n)
			continue;
		to->listed[i]++;
		s->queue[s->n_queue++] = (struct message){ i, true, s->at };
		to->queue[to->n_queue++] = (struct message){ i, false, to->at };
	}
	return true;
}

/* ---- one behind the other ------------------------------------------------------- */

/* Passes of a stage, as far as what they receive has come. */
static bool run_passes(struct stage *s)
{
	size_t before = s->at;

	for (; s->at < s->n; s->at++) {
		const struct brings *b = &s->pass[s->at];
		double at = s->at ? s->ran[s->at - 1].end : 0;

		for (size_t i = 0; i < CHANNELS; i++)
			if (b->receives >> i & 1) {
				if (s->taken[i] == s->n_arrived[i])
					return s->at > before;
				at = fmax(at, s->arrived[i][s->taken[i]]);
			}
		for (size_t i = 0; i < CHANNELS; i++)
			s->taken[i] += b->receives >> i & 1;
		s->ran[s->at] = (struct span){ at, at + b->compute_s };
	}
	return s->at > before;
}

/* When the message at the head begins to wait; INFINITY: the pass in front of it has not run. */
static double begins(const struct stage *s)
{
	size_t behind = s->head < s->n_queue ? s->queue[s->head].behind : s->n + 1;

	if (behind > s->at)
		return INFINITY;
	return fmax(s->free_s, behind ? s->ran[behind - 1].end : 0);
}

/* The message at the head meets its other end. */
static bool meet(struct pipeline *p, size_t which)
{
	struct stage *s = &p->stage[which], *to;
	const struct message *m = &s->queue[s->head];
	double mine = begins(s), its, end;

	if (isinf(mine) || !m->send)
		return false;
	to = other_end(p, which, m->channel, true);
	its = begins(to);
	if (isinf(its) || to->queue[to->head].send ||
	    to->queue[to->head].channel != m->channel)
		return false;
	end = fmax(mine, its) + s->pass[m->behind - 1].transfer_s;
	s->waited[s->head++] = (struct span){ mine, end };
	to->waited[to->head++] = (struct span){ its, end };
	s->free_s = to->free_s = end;
	to->arrived[m->channel][to->n_arrived[m->channel]++] = end;
	return true;
}

static bool go_on_in_queues(struct pipeline *p, size_t which, double unused)
{
	bool moved = run_passes(&p->stage[which]);

	(void)unused;
	while (meet(p, which))
		moved = true;
	return moved;
}

/* Of a stage's passes beside its messages; both one behind the other. */
static double share_beside(const struct stage *s)
{
	double both = 0, all = 0;

	for (size_t i = 0, k = 0; i < s->at && k < s->head;) {
		both += fmax(0, fmin(s->ran[i].end, s->waited[k].end) -
					fmax(s->ran[i].begin, s->waited[k].begin));
		if (s->ran[i].end < s->waited[k].end)
			i++;
		else
			k++;
	}
	for (size_t i = 0; i < s->at; i++)
		all += s->pass[i].compute_s;
	return all > 0 ? both / all : 0;
}

/* ---- without queues --------------------------------------------------------------- */

/* Each send takes so much longer. */
static bool go_on_apart(struct pipeline *p, size_t which, double more_s)
{
	struct stage *s = &p->stage[which];
	size_t from = s->at;
	bool moved = run_passes(s);

	for (size_t k = from; k < s->at; k++)
		for (unsigned i = 0; i < CHANNELS; i++) {
			struct stage *to = other_end(p, which, i, true);

			if (!(s->pass[k].sends >> i & 1) || to->n_arrived[i] == to->n)
				continue;
			s->sent_s[i] = fmax(s->sent_s[i], s->ran[k].end) +
				       s->pass[k].transfer_s + more_s;
			to->arrived[i][to->n_arrived[i]++] = s->sent_s[i];
		}
	return moved;
}

static double apart_s(struct pipeline *p, double more_s)
{
	return run(p, more_s, go_on_apart) ? length_s(p) : INFINITY;
}

/* What messages take longer, so that a run without queues is as long as one in them. Lengths are convex in it and made of
 * straight pieces: the piece at 0 leads beyond what is looked for, a chord of the bracket stays before it, and a half of what
 * is left is taken in turn. */
static double longer_s(struct pipeline *p, double in_queues_s)
{
	double low = 0, below = apart_s(p, low), step = NEAR_FRAC * in_queues_s;
	double high, above;

	if (below >= in_queues_s)
		return 0;
	high = (in_queues_s - below) * step / fmax(step, apart_s(p, step) - below);
	above = apart_s(p, high);
	for (int i = 0; i < STEPS && above - in_queues_s > NEAR_FRAC * in_queues_s;
	     i++) {
		double part = i % 2 ? 0.5 : (in_queues_s - below) / (above - below);
		double at = low + part * (high - low), length = apart_s(p, at);

		if (length < in_queues_s) {
			low = at;
			below = length;
		} else {
			high = at;
			above = length;
		}
	}
	return high;
}

/* ---- what it costs ---------------------------------------------------------------- */

/* Does a stage run several chunks? With one, backwards cut in two or not, recorded messages hardly wait beside kernels. */
static bool in_queues(const struct job *s)
{
	const struct ft_graph *g = s->graph;

	if (!s->stack->layout.messages_in_turn || s->outline || g->n_classes < 2)
		return false;
	for (size_t c = 0; c < g->n_classes; c++)
		for (size_t i = 0; i < g->rank_class[c].n_slots; i++)
			if (g->rank_class[c].slot[i].slot.chunk > 0)
				return true;
	return false;
}

/* Will it be refused? */
static bool is_too_large(const struct ft_graph *g)
{
	double ops = 0;

	for (size_t c = 0; c < g->n_classes; c++)
		for (size_t i = 0; i < g->rank_class[c].n_calls; i++) {
			const struct ft_call *call = &g->rank_class[c].call[i];

			ops += (double)g->segment[call->segment].n_ops * call->repeat;
		}
	return ops > LIMIT_STEP_OPS;
}

static bool is_message(const struct ft_work *w)
{
	return w->kind == FT_COMMUNICATION && w->communication.group == FT_GROUP_PP;
}

/* Units that a message holds: a domain's, or of one NIC. */
static double units_of(const struct job *s)
{
	const struct ft_gpu *gpu = s->cluster->gpu;

	for (size_t i = 0; i < s->graph->n_works; i++)
		if (is_message(&s->graph->work[i]))
			return s->timing[0][i].held == HELD_BY_DOMAIN ?
				       gpu->message_units.value :
				       fmin(gpu->message_units.value,
					    gpu->collective_units_per_nic.value);
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

/* The wait is no transfer: it takes nothing from links, and what runs beside it is slower already. */
static void lengthen(struct job *s, size_t class, double more_s)
{
	for (size_t i = 0; i < s->graph->n_works; i++) {
		struct work_timing *t = &s->timing[class][i];
		double alone = (double)t->duration;
		float part;

		if (!is_message(&s->graph->work[i]) || !t->duration)
			continue;
		t->duration += ft_ps_from_s(more_s);
		part = (float)(alone / (double)t->duration);
		t->port_frac *= part;
		t->nic_frac *= part;
		t->path_frac *= part;
		t->copy_engine = true;
	}
}

static void own_timing(struct job *s, size_t class)
{
	size_t works = s->graph->n_works;
	struct work_timing *own = ARENA_ARRAY(s->mem, works, struct work_timing);

	memcpy(own, s->timing[class], works * sizeof(*own));
	s->timing[class] = own;
}

void job_queue_messages(struct job *s)
{
	struct pipeline p;
	double units, more_s;

	if (!in_queues(s) || is_too_large(s->graph))
		return;
	lay(s, &p);
	if (!run(&p, 0, list_pass) || !run(&p, 0, go_on_in_queues))
		return;
	units = units_of(s);
	for (size_t c = p.n; c-- > 0;) {
		own_timing(s, c);
		slow(s, c, share_beside(&p.stage[c]), units);
		time_passes(s, c, &p.stage[c]);
	}
	if (!run(&p, 0, go_on_in_queues))
		return;
	s->queued_s = more_s = longer_s(&p, length_s(&p));
	for (size_t c = 0; c < p.n && more_s > 0; c++)
		lengthen(s, c, more_s);
}
