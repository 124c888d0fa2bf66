/*
 * sim/goal.c - a step as GOAL: each rank's program with its times on a cluster
 *
 * The host is a chain of launches; an operation requires its launch, the operation before it
 * on its stream, and what it waits for, as the engine would have it. Kernels take the time
 * that they take alone, or beside messages that wait in queues (sim/messages.c), and each of
 * these waits is a statement in front of its send. A host that runs ahead holds no operation
 * up, but no step is shorter than its launches: they are one statement that nothing requires. Not in GOAL: what runs
 * together slows each other; the host's queue is endless.
 */
#include <inttypes.h>
#include <math.h>

#include "base/arena.h"
#include "base/goal.h"
#include "base/limits.h"
#include "base/plain.h"
#include "sim/job.h"

/* Tags of collectives count from 0; of what crosses stages, from these. What a V sends the
 * other way (ft_op.reverse) has tags of its own. */
enum {
	TAG_REVERSE = 1 << 27,
	TAG_FORWARD = 1 << 28,
	TAG_BACKWARD = 2 << 28,
	TAG_TIED = 3 << 28
};

struct writer {
	struct goal goal;
	const struct job *job;
	size_t class;
	const struct work_timing *timing; /* of its class, or of a slow GPU there */
	int64_t rank, ranks;
	int64_t tail[FT_STREAMS], event[FT_EVENTS], host, host_waits_for;
	int64_t tag, sent[2][2], received[2][2], tied; /* [backward][reverse] */
};

static bool is_tied(const struct ft_work *w)
{
	return w->communication.group == FT_GROUP_EMBEDDING;
}

/* Among the ranks of a group; not to a neighbour stage. */
static bool in_group(const struct ft_work *w)
{
	return w->kind == FT_COMMUNICATION && w->communication.group != FT_GROUP_PP;
}

/* ---- how much there is to write ----------------------------------------------------------- */

static double lines_of_op(const struct ft_graph *g, const struct ft_op *op)
{
	const struct ft_work *w = &g->work[op->work];
	double lines = 6; /* launch, operation, what they require */

	if (in_group(w))
		lines += 5 * (double)goal_tags(w->communication.op,
					       g->group[w->communication.group].size);
	return lines;
}

static bool small_enough(const struct ft_graph *g, struct ft_error *err)
{
	double lines = 0;

	for (size_t c = 0; c < g->n_classes; c++) {
		const struct ft_class *k = &g->rank_class[c];

		for (size_t i = 0; i < k->n_calls; i++) {
			const struct ft_segment *s = &g->segment[k->call[i].segment];

			for (size_t o = 0; o < s->n_ops; o++)
				lines += lines_of_op(g, &s->op[o]) * (double)k->ranks *
					 k->call[i].repeat;
		}
	}
	return lines <= LIMIT_GOAL_LINES ||
	       ft_fail(err, NULL,
		       "a step of %.0f lines of GOAL is too much to write, at most %d; "
		       "use fewer ranks or micro-batches",
		       lines, (int)LIMIT_GOAL_LINES);
}

/* Stages send to ranks of the next as far on: all have as many. */
static bool regular(const struct ft_graph *g, struct ft_error *err)
{
	for (size_t c = 1; c < g->n_classes; c++)
		if (g->rank_class[c].ranks != g->rank_class[0].ranks)
			return ft_fail(
				err, NULL,
				"stages of different numbers of ranks cannot be "
				"written as GOAL: who sends to whom is not told");
	return true;
}

/* ---- comments ------------------------------------------------------------------------------ */

static bool put_chosen(struct writer *w, const struct ft_work *work,
		       struct ft_error *err)
{
	const struct job *j = w->job;
	struct ft_group_shape shape = j->graph->group[work->communication.group];
	struct ft_collective_call call = { .op = work->communication.op,
					   .bytes = work->communication.bytes,
					   .shape = shape };
	struct ft_collective_result r;

	if (!in_group(work) || shape.size < 2)
		return true;
	if (!ft_collective_predict(j->cluster, j->ccl, &call, &r, err))
		return false;
	fprintf(w->goal.out,
		"// %s, %s: %.0f bytes among %" PRId64
		" ranks: chosen %s, %.3f us alone; written as %s\n",
		work->name, ft_collective_name(call.op), call.bytes, shape.size,
		r.algorithm, 1e6 * r.duration.time_s,
		call.op == FT_ALL_TO_ALL ? "an exchange of all pairs" :
		call.op == FT_BROADCAST	 ? "a chain" :
					   "ring");
	return true;
}

static bool put_comments(struct writer *w, struct ft_error *err)
{
	const struct ft_graph *g = w->job->graph;

	fputs("// One training step, written by foretoken. Times are ns; cpu 0 is the host, "
	      "cpu 1 and on are\n// streams. Kernels take the time that they take alone, or\n// beside "
	      "pipeline messages that wait; these waits are calcs in front of sends.\n",
	      w->goal.out);
	if (w->job->engine.host_free)
		fputs("// The host runs ahead: nothing waits for a launch; all of a rank's "
		      "launches are one calc.\n",
		      w->goal.out);
	for (size_t i = 0; i < g->n_works; i++)
		if (g->work[i].kind == FT_COMMUNICATION &&
		    !put_chosen(w, &g->work[i], err))
			return false;
	return true;
}

/* ---- programs ------------------------------------------------------------------------------- */

static int64_t resolve(const struct writer *w, uint8_t code)
{
	return code == FT_EVENT_NONE ? 0 :
	       code < FT_EVENTS	     ? w->event[code] :
				       w->tail[code - FT_TAIL];
}

/* Requires what the operation waits for. */
static void put_waits(struct writer *w, const struct ft_op *op, int64_t what)
{
	goal_require(&w->goal, what, w->tail[op->stream]);
	goal_require(&w->goal, what, w->host);
	for (int i = 0; i < FT_OP_WAITS && op->wait[i] != FT_EVENT_NONE; i++)
		goal_require(&w->goal, what, resolve(w, op->wait[i]));
}

/* A rank as far on in the next stage, or in the one before. */
static int64_t neighbour(const struct writer *w, bool next)
{
	int64_t each = w->ranks / (int64_t)w->job->graph->n_classes;

	return (w->rank + (next ? each : w->ranks - each)) % w->ranks;
}

static int64_t tag_of(bool back, bool reverse, int64_t number)
{
	return (back ? TAG_BACKWARD : TAG_FORWARD) + (reverse ? TAG_REVERSE : 0) +
	       number;
}

static int64_t put_receive(struct writer *w, const struct ft_op *op,
			   const struct ft_work *work)
{
	bool back = op->stream == FT_STREAM_RECV_BACKWARD;
	int64_t tag = tag_of(back, op->reverse, w->received[back][op->reverse]++);
	int64_t what =
		goal_recv(&w->goal, work->communication.bytes,
			  neighbour(w, back != op->reverse), tag, 1 + op->stream);

	put_waits(w, op, what);
	return what;
}

/* Behind what it waits in its queue. */
static int64_t put_send(struct writer *w, const struct ft_op *op,
			const struct ft_work *work)
{
	bool back = op->stream == FT_STREAM_SEND_BACKWARD;
	int64_t tag = tag_of(back, op->reverse, w->sent[back][op->reverse]++);
	ft_ps queued = ft_ps_from_s(w->job->queued_s);
	int64_t wait = queued ? goal_calc(&w->goal, queued, 1 + op->stream) : 0;
	int64_t what =
		goal_send(&w->goal, work->communication.bytes,
			  neighbour(w, back == op->reverse), tag, 1 + op->stream);

	put_waits(w, op, wait ? wait : what);
	goal_require(&w->goal, what, wait);
	return what;
}

static int64_t put_collective(struct writer *w, const struct ft_op *op,
			      const struct ft_work *work)
{
	struct ft_group_shape s = w->job->graph->group[work->communication.group];
	struct goal_call call = {
		.op = work->communication.op,
		.bytes = work->communication.bytes,
		.ring = { 0, s.stride, s.size, w->rank / s.stride % s.size, NULL },
		.cpu = 1 + op->stream,
	};
	int64_t tags = goal_tags(call.op, s.size);
	int64_t begin = goal_calc(&w->goal, 0, 1 + op->stream);

	call.ring.base = w->rank - call.ring.place * s.stride;
	if (is_tied(work)) {
		call.tag = TAG_TIED + w->tied;
		w->tied += tags;
	} else {
		call.tag = w->tag;
		w->tag += tags;
	}
	put_waits(w, op, begin);
	return goal_collective(&w->goal, &call, begin);
}

static int64_t put_op(struct writer *w, const struct ft_op *op)
{
	const struct ft_work *work = &w->job->graph->work[op->work];
	int64_t what;

	if (ft_stream_receives(op->stream))
		return put_receive(w, op, work);
	if (ft_stream_sends(op->stream))
		return put_send(w, op, work);
	if (in_group(work) && w->job->graph->group[work->communication.group].size > 1)
		return put_collective(w, op, work);
	what = goal_calc(&w->goal, w->timing[op->work].duration, 1 + op->stream);
	put_waits(w, op, what);
	return what;
}

/* The host goes on, behind what it waits for. */
static void put_host(struct writer *w, ft_ps time)
{
	int64_t launch = goal_calc(&w->goal, time, 0);

	goal_require(&w->goal, launch, w->host);
	goal_require(&w->goal, launch, w->host_waits_for);
	w->host = launch;
	w->host_waits_for = 0;
}

static void put_launch(struct writer *w, size_t segment, size_t op)
{
	const struct engine_job *e = &w->job->engine;
	const ft_ps *at = &e->host[e->host_begin[segment]];

	if (!e->host_free)
		put_host(w, op ? at[op] - at[op - 1] : at[op]);
}

static void put_call(struct writer *w, size_t segment)
{
	const struct ft_segment *s = &w->job->graph->segment[segment];

	for (size_t i = 0; i < s->n_ops; i++) {
		const struct ft_op *op = &s->op[i];
		int64_t what;

		put_launch(w, segment, i);
		what = put_op(w, op);
		w->tail[op->stream] = what;
		if (op->record < FT_EVENTS)
			w->event[op->record] = what;
		if (op->host_waits)
			w->host_waits_for = what;
	}
	if (!s->n_ops && w->job->engine.host_total[segment] &&
	    !w->job->engine.host_free)
		put_host(w, w->job->engine.host_total[segment]);
}

/* A slow GPU's kernels take longer; the slower pace of two that name it counts. */
static const struct work_timing *timing_of(const struct writer *w)
{
	const struct ft_imperfections *x = &w->job->cluster->imperfections;
	int64_t gpu = w->rank / w->job->cluster->gpu->ranks_per_gpu;
	double speed = 1;

	for (size_t i = 0; i < x->n_slow_gpus; i++)
		if (x->slow_gpu[i].gpu == gpu)
			speed = fmin(speed, x->slow_gpu[i].speed_frac);
	return speed < 1 ? job_slowed(w->job, w->class, speed) :
			   w->job->timing[w->class];
}

static void put_rank(struct writer *w)
{
	const struct ft_class *c = &w->job->graph->rank_class[w->class];
	struct writer fresh = { .goal = w->goal,
				.job = w->job,
				.class = w->class,
				.timing = timing_of(w),
				.rank = w->rank,
				.ranks = w->ranks };

	goal_rank(&fresh.goal, w->rank);
	if (w->job->engine.host_free)
		goal_calc(&fresh.goal, job_host(w->job, w->class), 0);
	for (size_t i = 0; i < c->n_calls; i++)
		for (uint32_t r = 0; r < c->call[i].repeat; r++)
			put_call(&fresh, c->call[i].segment);
	goal_rank_end(&fresh.goal);
}

bool ft_sim_goal(const struct ft_sim_job *given, struct ft_memo *memo, FILE *out,
		 struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct job job = { .mem = &mem,
			   .graph = given->graph,
			   .cluster = given->cluster,
			   .stack = given->stack,
			   .ccl = given->ccl,
			   .memo = memo };
	struct writer w = { .goal = { .out = out }, .job = &job };
	bool ok = small_enough(job.graph, err) && regular(job.graph, err) &&
		  job_time(&job, given->start, err) && put_comments(&w, err);

	for (size_t c = 0; ok && c < job.graph->n_classes; c++)
		w.ranks += job.graph->rank_class[c].ranks;
	if (ok)
		goal_begin(&w.goal, w.ranks);
	for (size_t c = 0; ok && c < job.graph->n_classes; c++)
		for (int64_t i = 0; i < job.graph->rank_class[c].ranks; i++) {
			w.class = c;
			put_rank(&w);
			w.rank++;
		}
	arena_release(&mem);
	return ok;
}
