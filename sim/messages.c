/*
 * sim/messages.c - a pipeline's messages one behind the other, and kernels beside those that wait
 *
 * Where a library runs a schedule as one list of passes, sends and receives (`messages_in_turn` of the stack), a rank's messages run one
 * behind the other (sim/queues.h).
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
#include "sim/queues.h"

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
		} else if (ft_stream_receives(op->stream)) {
			b.receives |= 1u << channel(op, FT_STREAM_RECV_FORWARD);
		} else if (ft_stream_sends(op->stream)) {
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
static void time_passes(const struct job *s, size_t class, int64_t last,
			struct stage *stage)
{
	const struct ft_class *c = &s->graph->rank_class[class];
	struct brings *of = ARENA_ARRAY(s->mem, s->graph->n_segments, struct brings);

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

static void lay(const struct job *s, int64_t last, struct pipeline *p)
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
		time_passes(s, c, last, stage);
	}
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

/* Does the step have more operations than will be simulated, so that it is refused later? */
static bool is_too_large(const struct ft_graph *g)
{
	double ops = 0;

	for (size_t c = 0; c < g->n_classes; c++)
		ops += engine_ops_of(g, c);
	return ops > LIMIT_STEP_OPS;
}

bool work_is_message(const struct ft_work *w)
{
	return w->kind == FT_COMMUNICATION && w->communication.group == FT_GROUP_PP;
}

/* Units that a message holds: a domain's, or of one NIC. */
static double units_of(const struct job *s)
{
	const struct ft_gpu *gpu = s->cluster->gpu;

	for (size_t i = 0; i < s->graph->n_works; i++)
		if (work_is_message(&s->graph->work[i]))
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

		if (!work_is_message(&s->graph->work[i]) || !t->duration)
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
	int64_t last;

	if (!in_queues(s) || is_too_large(s->graph))
		return;
	last = last_of_run(s->graph);
	lay(s, last, &p);
	if (!queues_list(&p) || !queues_run(&p))
		return;
	units = units_of(s);
	for (size_t c = p.n; c-- > 0;) {
		own_timing(s, c);
		slow(s, c, queues_share_beside(&p.stage[c]), units);
		time_passes(s, c, last, &p.stage[c]);
	}
	if (!queues_run(&p))
		return;
	s->queued_s = more_s = queues_longer_s(&p, queues_length_s(&p));
	for (size_t c = 0; c < p.n && more_s > 0; c++)
		lengthen(s, c, more_s);
}
