/*
 * study/whatif.c - a recorded step, replayed with changes
 *
 * Every operation belongs to one part (its class, or the collectives); the host is one more.
 * What a part adds to the step is its Shapley value: the mean, over all orders in which the
 * changed parts could be put in, of what the step grows by; so they add up to the whole change.
 * The range is that of the predictions: errors within a part are taken to go together, those of
 * parts to be independent; a part counts by what it adds to the step against its own time.
 */
#include <math.h>
#include <string.h>

#include "base/plain.h"
#include "base/stats.h"
#include "study/whatif.h"

const char *ft_whatif_part_name(enum ft_whatif_part part)
{
	static const char *const names[] = { "gemm",	  "attention",	"memory",
					     "optimizer", "collective", "host",
					     "other" };

	return names[part];
}

enum ft_whatif_part part_of(const struct ft_rec_op *op)
{
	switch (op->rec_class) {
	case FT_REC_GEMM:
		return FT_PART_GEMM;
	case FT_REC_ATTENTION:
		return FT_PART_ATTENTION;
	case FT_REC_OPTIMIZER:
		return FT_PART_OPTIMIZER;
	case FT_REC_COLLECTIVE:
		return FT_PART_COLLECTIVE;
	case FT_REC_OTHER:
		return FT_PART_OTHER;
	default:
		return FT_PART_MEMORY;
	}
}

/* ---- steps -------------------------------------------------------------------------- */

static bool is_step(const struct whatif *w, size_t rank, size_t s)
{
	return whatif_is_step(w->asked->step, w->asked->replay, rank, s);
}

/* Of the slowest rank, the mean over its steps. */
static double step_s(const struct whatif *w, const struct ft_replayed *t)
{
	const struct ft_replay *p = w->asked->replay;
	double slowest = 0;

	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		const struct ft_recording *r = ft_replay_recording(p, k);
		double sum = 0, n = 0;

		for (size_t s = 0; s < ft_recording_steps(r); s++) {
			struct ft_rec_window x;

			if (!is_step(w, k, s))
				continue;
			x = ft_replay_step(p, t, k, s);
			sum += (double)(x.to - x.from) * 1e-12;
			n++;
		}
		slowest = fmax(slowest, n > 0 ? sum / n : 0);
	}
	return slowest;
}

static bool has_step(const struct whatif *w, struct ft_error *err)
{
	const struct ft_replay *p = w->asked->replay;

	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		const struct ft_recording *r = ft_replay_recording(p, k);
		size_t s = 0;

		while (s < ft_recording_steps(r) && !is_step(w, k, s))
			s++;
		if (s == ft_recording_steps(r))
			return ft_fail(
				err, &(struct ft_mark){ ft_recording_file(r), 0, 0 },
				"has no step '%.40s'; its first is '%.60s' of %zu",
				w->asked->step,
				ft_recording_text(r, ft_recording_step(r, 0)->name),
				ft_recording_steps(r));
	}
	return true;
}

/* Adds x / n to the sum, field by field: all but the counts are doubles. */
static void add_where(struct ft_rec_where *sum, const struct ft_rec_where *x, double n)
{
	sum->step_s += x->step_s / n;
	sum->optimizer_s += x->optimizer_s / n;
	sum->compute_s += x->compute_s / n;
	sum->exposed_s += x->exposed_s / n;
	sum->bubble_s += x->bubble_s / n;
	sum->tail_s += x->tail_s / n;
	sum->collective_s += x->collective_s / n;
	sum->sendrecv_s += x->sendrecv_s / n;
	sum->call_s += x->call_s / n;
	sum->sync_s += x->sync_s / n;
	sum->allocation_s += x->allocation_s / n;
	sum->latency_s += x->latency_s / n;
	sum->queued_mean += x->queued_mean / n;
	sum->launches += x->launches;
	sum->allocations += x->allocations;
	for (int c = 0; c < FT_REC_CAUSES; c++)
		sum->idle_s[c] += x->idle_s[c] / n;
	for (int c = 0; c < FT_REC_CLASSES; c++) {
		sum->class_s[c] += x->class_s[c] / n;
		sum->class_n[c] += x->class_n[c];
	}
	if (x->queued_most > sum->queued_most)
		sum->queued_most = x->queued_most;
}

/* Which operations count, by when they began as recorded; no time is uncertain yet. */
static void count_steps(struct whatif *w, const struct ft_replayed *t)
{
	const struct ft_replay *p = w->asked->replay;

	w->counted = ARENA_ARRAY(&w->mem, ft_replay_ranks(p), bool *);
	w->spread_s = ARENA_ARRAY(&w->mem, ft_replay_ranks(p), double *);
	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		const struct ft_recording *r = ft_replay_recording(p, k);
		size_t n = ft_recording_ops(r);

		w->counted[k] = ARENA_ARRAY(&w->mem, n, bool);
		w->spread_s[k] = ARENA_ARRAY(&w->mem, n, double);
		for (size_t s = 0; s < ft_recording_steps(r); s++) {
			struct ft_rec_window x;

			if (!is_step(w, k, s))
				continue;
			w->n_steps++;
			x = ft_replay_step(p, t, k, s);
			for (size_t i = 0; i < n; i++)
				w->counted[k][i] |= t->op_begin[k][i] >= x.from &&
						    t->op_begin[k][i] < x.to;
		}
	}
}

static struct ft_rec_where where(const struct whatif *w, const struct ft_replayed *t)
{
	const struct ft_replay *p = w->asked->replay;
	struct ft_rec_where sum = { .step_s = 0 };
	int64_t n = w->n_steps;

	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		const struct ft_recording *r = ft_replay_recording(p, k);

		for (size_t s = 0; s < ft_recording_steps(r); s++) {
			struct ft_rec_where x;

			if (!is_step(w, k, s))
				continue;
			x = ft_replay_where(p, t, k, ft_replay_step(p, t, k, s));
			ft_replay_calls(p, t, k, s, &x);
			add_where(&sum, &x, (double)n);
		}
	}
	sum.launches /= n ? n : 1;
	sum.allocations /= n ? n : 1;
	for (int c = 0; c < FT_REC_CLASSES; c++)
		sum.class_n[c] /= n ? n : 1;
	return sum;
}

/* ---- kernels ------------------------------------------------------------------------- */

struct told {
	double all_s, by_s[3]; /* enum ft_retimed_by */
	double other_s;
};

static bool is_whole(const struct ft_rec_left *left)
{
	const double of[] = { left->bytes_frac, left->columns_frac, left->inner_frac,
			      left->heads_frac };

	for (int i = 0; i < 4; i++)
		if (of[i] < 1 || of[i] > 1)
			return false;
	return true;
}

/* On its own GPU a kernel that does what it did takes what it took, for certain. */
static void retime_kernel(struct whatif *w, size_t rank, size_t i, struct told *told)
{
	const struct ft_recording *r = ft_replay_recording(w->asked->replay, rank);
	const struct ft_rec_op *op = ft_recording_op(r, i);
	const struct ft_whatif *a = w->answer;
	double time_s = (double)op->duration * 1e-12, ratio = 1, spread = 0;
	struct ft_rec_left left = tensor_left(w, r, op);
	enum ft_retimed_by by = FT_RETIMED_NOT;

	if (w->sharded && op->on_shard && a->dp != a->dp_recorded)
		left.bytes_frac *= (double)a->dp_recorded / (double)a->dp;
	told->all_s += time_s;
	if (op->rec_class == FT_REC_OTHER)
		told->other_s += time_s;
	if (op->rec_class == FT_REC_COLLECTIVE)
		return;
	if (w->retiming && (w->other_gpu || !is_whole(&left)))
		by = ft_retime(w->retiming, r, op, &left, &ratio, &spread);
	told->by_s[by] += time_s;
	if (ratio < 1 || ratio > 1)
		w->changed.op[rank][i] = ft_ps_from_s(time_s * ratio);
	else if (!w->other_gpu)
		return; /* as it was recorded, and as sure */
	w->spread_s[rank][i] = time_s * ratio * spread;
}

/* A GPU's own ladder serves where only the size of shards or products changes. */
static void retime_kernels(struct whatif *w)
{
	const struct ft_replay *p = w->asked->replay;
	struct ft_whatif *a = w->answer;
	struct told told = { .all_s = 0 };

	if (!w->retiming &&
	    (a->tp != a->tp_recorded || (w->sharded && a->dp != a->dp_recorded)))
		w->retiming = ft_retiming_new(w->from.gpu, w->to.gpu);
	tensor_begin(w);
	for (size_t k = 0; k < ft_replay_ranks(p); k++)
		for (size_t i = 0; i < ft_recording_ops(ft_replay_recording(p, k)); i++)
			retime_kernel(w, k, i, &told);
	tensor_end(w);
	a->classified_frac = told.all_s > 0 ? 1 - told.other_s / told.all_s : 1;
	if (!w->retiming || !(told.all_s > 0))
		return;
	a->by_work_frac = told.by_s[FT_RETIMED_BY_WORK] / told.all_s;
	a->by_stand_in_frac = told.by_s[FT_RETIMED_BY_STAND_IN] / told.all_s;
	a->kept_frac = told.by_s[FT_RETIMED_NOT] / told.all_s;
}

/* ---- parts ----------------------------------------------------------------------------- */

/* Durations of a step, the mean over ranks and steps. */
static void add_up(struct whatif *w)
{
	const struct ft_replay *p = w->asked->replay;
	double n = (double)w->n_steps;

	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		const struct ft_recording *r = ft_replay_recording(p, k);

		for (size_t i = 0; i < ft_recording_ops(r); i++) {
			enum ft_whatif_part part = part_of(ft_recording_op(r, i));
			struct ft_whatif_change *c = &w->answer->change[part];

			c->changed |= w->recorded.op[k][i] != w->changed.op[k][i];
			if (!w->counted[k][i])
				continue;
			c->recorded_s += (double)w->recorded.op[k][i] * 1e-12 / n;
			c->replayed_s += (double)w->changed.op[k][i] * 1e-12 / n;
			w->part_spread_s[part] += w->spread_s[k][i];
		}
	}
	w->answer->change[FT_PART_HOST].changed =
		w->changed.host_factor < 1 || w->changed.host_factor > 1;
}

/* What the host takes to launch a step, with a GPU that takes nothing: where several follow one
 * another, a step that is shorter drains what was launched ahead, and cannot last. 0: one step
 * alone. As recorded it may have been shorter, and is then no longer. */
static double least_s(struct whatif *w)
{
	const struct ft_replay *p = w->asked->replay;
	struct ft_replay_times none = ft_replay_recorded(p, &w->mem);
	struct ft_replayed t;

	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		const struct ft_recording *r = ft_replay_recording(p, k);

		if (ft_recording_steps(r) < 2)
			return 0;
		memset(none.op[k], 0, ft_recording_ops(r) * sizeof(*none.op[k]));
	}
	t = ft_replay_run(p, &none, &w->mem);
	return fmin(step_s(w, &t), w->answer->recorded_step_s);
}

/* The step with some parts changed, by bit. */
static double step_with(struct whatif *w, unsigned parts)
{
	const struct ft_replay *p = w->asked->replay;
	struct arena scratch = { 0 };
	struct ft_replay_times mixed = ft_replay_recorded(p, &scratch);
	struct ft_replayed t;
	double s;

	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		const struct ft_recording *r = ft_replay_recording(p, k);

		for (size_t i = 0; i < ft_recording_ops(r); i++)
			if (parts >> part_of(ft_recording_op(r, i)) & 1)
				mixed.op[k][i] = w->changed.op[k][i];
	}
	if (parts >> FT_PART_HOST & 1)
		mixed.host_factor = w->changed.host_factor;
	t = ft_replay_run(p, &mixed, &scratch);
	s = step_s(w, &t);
	arena_release(&scratch);
	return fmax(s, w->least_s * mixed.host_factor);
}

static double factorial(int n)
{
	return n < 2 ? 1 : n * factorial(n - 1);
}

static int bits(unsigned set)
{
	int n = 0;

	for (; set; set &= set - 1)
		n++;
	return n;
}

static void attribute(struct whatif *w)
{
	struct ft_whatif *a = w->answer;
	double step[1 << FT_PARTS];
	unsigned all = 0;
	int n;

	for (unsigned i = 0; i < FT_PARTS; i++)
		all |= (unsigned)a->change[i].changed << i;
	n = bits(all);
	for (unsigned s = 0; s < 1 << FT_PARTS; s++)
		if (!(s & ~all))
			step[s] = step_with(w, s);
	for (unsigned i = 0; i < FT_PARTS; i++)
		for (unsigned s = 0; all >> i & 1 && s < 1 << FT_PARTS; s++)
			if (!(s & ~all) && !(s >> i & 1))
				a->change[i].step_s += factorial(bits(s)) *
						       factorial(n - bits(s) - 1) /
						       factorial(n) *
						       (step[s | 1U << i] - step[s]);
	a->step_s = step[all];
}

/* A part's error reaches the step as far as its time does: at most all of it. */
static void range(struct whatif *w)
{
	struct ft_whatif *a = w->answer;
	double square = 0, by = 1;

	for (int i = 0; i < FT_PARTS; i++) {
		double busy = a->change[i].replayed_s;
		double share = busy > 0 ? fmin(1, a->replayed.step_s / busy) : 0;
		double s = w->part_spread_s[i] / (double)w->n_steps;

		square += share * s * share * s;
	}
	if (a->step_s > 0) /* else there is no range: operations that took no time */
		by += NORMAL_P90 * sqrt(square) / a->step_s;
	a->low_s = a->step_s / by;
	a->high_s = a->step_s * by;
}

/* ---- all of it ---------------------------------------------------------------------------- */

static bool is_moved(const struct ft_whatif_request *q)
{
	return q->gpu || q->fabric || q->dp || q->tp || q->n_sets ||
	       q->without_waiting || q->tokens_per_step > 0;
}

static bool move(struct whatif *w, struct ft_error *err)
{
	w->answer->moved = true;
	if (!machines_load(w, err))
		return false;
	if (w->answer->ranks_recorded > (int64_t)ft_replay_ranks(w->asked->replay))
		whatif_note(w,
			    "%zu of %lld ranks recorded: the others are taken to do "
			    "the same, and what they kept this one waiting %s.",
			    ft_replay_ranks(w->asked->replay),
			    (long long)w->answer->ranks_recorded,
			    w->asked->without_waiting ? "is left out" : "stays");
	retime_kernels(w);
	return collectives_retime(w, err);
}

/* A step as long as its launches: the GPU waits for them. */
static void wait_for_host(struct whatif *w, const struct ft_replayed *after)
{
	struct ft_whatif *a = w->answer;
	double more = a->step_s - step_s(w, after);

	if (more <= 1e-9 * a->step_s)
		return;
	a->replayed.step_s += more;
	a->replayed.idle_s[FT_REC_BY_LAUNCH] += more;
	whatif_note(
		w,
		"The step is what the host takes to launch one: that it would be "
		"%.3f ms shorter in this recording is what was launched ahead of it.",
		1e3 * more);
}

/* Where the host is late, kernels that take less time leave the GPU waiting longer: told where
 * it waits long, or a twentieth of the step longer than it did. */
static void say_who_paces(struct whatif *w)
{
	const struct ft_whatif *a = w->answer;
	double late = a->replayed.idle_s[FT_REC_BY_LAUNCH] / a->replayed.step_s;
	double was = a->recorded.idle_s[FT_REC_BY_LAUNCH] / a->replayed.step_s;

	if (late > 0.25 || late - was > 0.05)
		whatif_note(
			w,
			"The GPU waits for late launches during %.0f %% of the replayed "
			"step: the host paces it there, whatever its kernels take.",
			100 * late);
}

static bool run(struct whatif *w, struct ft_error *err)
{
	const struct ft_whatif_request *q = w->asked;
	struct ft_whatif *a = w->answer;
	struct ft_replayed before, after;

	w->recorded = ft_replay_recorded(q->replay, &w->mem);
	w->changed = ft_replay_recorded(q->replay, &w->mem);
	before = ft_replay_as_recorded(q->replay, &w->mem);
	if (!has_step(w, err) || !groups_find(w, err))
		return false;
	count_steps(w, &before);
	a->recorded_step_s = step_s(w, &before);
	a->recorded = where(w, &before);
	if (ft_replay_stages(q->replay)[0])
		whatif_note(w, "%s", ft_replay_stages(q->replay));
	if (!is_moved(q))
		retime_kernels(w);
	else if (!move(w, err))
		return false;
	if (!wishes_apply(w, err))
		return false;
	add_up(w);
	w->least_s = least_s(w);
	attribute(w);
	after = ft_replay_run(q->replay, &w->changed, &w->mem);
	a->replayed = where(w, &after);
	wait_for_host(w, &after);
	say_who_paces(w);
	if (q->timeline)
		ft_replay_write(q->replay, &after, 0,
				w->to.gpu ? w->to.gpu->title :
					    ft_recording_device(
						    ft_replay_recording(q->replay, 0)),
				q->timeline);
	if (q->timeline && (a->dp != a->dp_recorded || a->tp != a->tp_recorded))
		whatif_note(w,
			    "The timeline's groups have the sizes that were recorded: "
			    "ask what-ifs of the recording, not of it.");
	range(w);
	if (q->tokens_per_step > 0 && !(a->step_s > 0))
		return ft_fail(
			err,
			&(struct ft_mark){ .file = ft_recording_file(
						   ft_replay_recording(q->replay, 0)) },
			"its replayed step takes no time, so it has no tokens/s "
			"and no price: leave out --tokens-per-step");
	return !(q->tokens_per_step > 0) || machine_price(w, err);
}

bool ft_study_whatif(struct ft_shelf *shelf, const struct ft_whatif_request *asked,
		     struct ft_whatif *answer, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct whatif *w;
	struct arena mem = { 0 };
	bool ok;

	*answer = (struct ft_whatif){ .step = asked->step };
	w = ARENA_NEW(&mem, struct whatif);
	w->shelf = shelf;
	w->asked = asked;
	w->answer = answer;
	ok = run(w, err);
	machines_release(w);
	arena_release(&w->mem);
	arena_release(&mem);
	return ok;
}
