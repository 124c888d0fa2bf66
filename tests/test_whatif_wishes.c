/*
 * tests/test_whatif_wishes.c - recorded steps on another GPU, with some kernels faster and some collectives left out: drawn
 * recordings and wishes; the step replayed here, what each part adds as its mean over all orders, durations added up
 * one by one
 */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/stats.h"
#include "foretoken/hw.h"
#include "foretoken/study_whatif.h"
#include "tests/made_recording.h"

enum { DRAWS = 90, STEPS = 3, KERNELS = 9, RANKS = 2, STREAMS = 2 };

static uint64_t seed = 163;

#define PICK(list) (list)[rnd_below(&seed, (int)(sizeof(list) / sizeof(*(list))))]

static const char *const names[] = {
	"some_gemm", "flash_fwd", "elementwise_kernel",	    "FusedOptimizer_x",
	"mystery",   "copy",	  "ncclDevKernel_AllReduce"
};

struct drawn {
	int ranks, steps, at[RANKS];
	const char *name[STEPS][KERNELS];
	int stream[STEPS][KERNELS], gap[STEPS][KERNELS];
	struct made text[RANKS];
};

/* ---- drawn and written ---------------------------------------------------------------------- */

static void put_op(struct made *m, const char *name, int id, int stream, int begin,
		   int us)
{
	if (strcmp(name, "copy"))
		kernel(m, name, id, stream, begin, us);
	else
		add(m,
		    "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy DtoD\",\"pid\":0,"
		    "\"tid\":%d,\"ts\":%d,\"dur\":%d,\"args\":{\"stream\":%d,"
		    "\"correlation\":%d}},\n",
		    stream, begin, us, stream, id);
}

/* Ranks do the same, one a little later than the other; what meets ends at the same time. */
static void put_rank(struct drawn *d, int rank)
{
	struct made *m = &d->text[rank];
	int at = 0, free_us[STREAMS] = { 0 };

	*m = begin(rank);
	for (int s = 0; s < d->steps; s++) {
		int from = at;

		for (int i = 0; i < KERNELS; i++) {
			int id = KERNELS * s + i, *free = &free_us[d->stream[s][i]];
			int late = rank * (1 + (id * 7) % 5);
			int end = (*free > at ? *free : at) + 20 + d->gap[s][i] * 3;

			call(m, "cudaLaunchKernel", id, at, 3);
			put_op(m, d->name[s][i], id, 7 + d->stream[s][i],
			       end - 14 - d->gap[s][i] + late,
			       14 + d->gap[s][i] - late);
			*free = end;
			at += 4 + d->gap[s][i];
		}
		for (int k = 0; k < STREAMS; k++)
			at = free_us[k] > at ? free_us[k] : at;
		at += 10;
		add(m,
		    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\","
		    "\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":%d,\"args\":{}},\n",
		    3 + s, from, at - from);
		at += 5;
	}
}

/* To another GPU none goes with collectives: how long they take there is another test's. */
static void draw(struct drawn *d, bool alone)
{
	*d = (struct drawn){ .ranks = 1 + rnd_below(&seed, RANKS),
			     .steps = 1 + rnd_below(&seed, STEPS) };
	for (int s = 0; s < d->steps; s++)
		for (int i = 0; i < KERNELS; i++) {
			d->name[s][i] = names[rnd_below(&seed, alone ? 6 : 7)];
			d->stream[s][i] = rnd_below(&seed, STREAMS);
			d->gap[s][i] = rnd_below(&seed, 12);
		}
	for (int r = 0; r < d->ranks; r++)
		put_rank(d, r);
}

/* ---- worked out ------------------------------------------------------------------------------ */

struct told {
	const struct ft_replay *p;
	const struct ft_whatif_request *q;
	struct arena mem;
	struct ft_replay_times was, is;
	struct ft_replayed recorded;
	bool asked[RANKS][STEPS];
	int n; /* steps of all ranks */
	struct ft_retiming *retiming;
	double host; /* calls and pauses take so many times as long */
	double spread_s[RANKS][STEPS * KERNELS], by_s[3];
};

static enum ft_whatif_part part(const struct ft_rec_op *op)
{
	static const enum ft_whatif_part of[FT_REC_CLASSES] = {
		[FT_REC_GEMM] = FT_PART_GEMM,
		[FT_REC_ATTENTION] = FT_PART_ATTENTION,
		[FT_REC_MEMORY] = FT_PART_MEMORY,
		[FT_REC_OPTIMIZER] = FT_PART_OPTIMIZER,
		[FT_REC_COPY] = FT_PART_MEMORY,
		[FT_REC_COLLECTIVE] = FT_PART_COLLECTIVE,
		[FT_REC_OTHER] = FT_PART_OTHER,
	};

	return of[op->rec_class];
}

static const struct ft_recording *rank(const struct told *t, size_t k)
{
	return ft_replay_recording(t->p, k);
}

/* Which steps: the one named, or all but a first of several. */
static void find_steps(struct told *t)
{
	for (size_t k = 0; k < ft_replay_ranks(t->p); k++) {
		size_t steps = ft_recording_steps(rank(t, k));

		for (size_t s = 0; s < steps; s++) {
			t->asked[k][s] = t->q->step ? (int)s == t->q->step[0] - '3' :
						      s > 0 || steps == 1;
			t->n += t->asked[k][s];
		}
	}
}

/* On the other GPU, and there so many times faster. */
static void wish_op(struct told *t, size_t k, size_t i)
{
	const struct ft_rec_left all = { 1, 1, 1, 1 };
	const struct ft_rec_op *op = ft_recording_op(rank(t, k), i);
	double by = t->q->speedup[op->rec_class], time_s = (double)op->duration * 1e-12;
	double ratio = 1, spread = 0;
	enum ft_retimed_by how = FT_RETIMED_NOT;

	if (t->retiming)
		how = ft_retime(t->retiming, rank(t, k), op, &all, &ratio, &spread);
	t->by_s[how] += time_s;
	t->spread_s[k][i] = time_s * ratio * spread;
	if (ratio < 1 || ratio > 1)
		t->is.op[k][i] = ft_ps_from_s(time_s * ratio);
	if (by > 0) {
		t->is.op[k][i] = (ft_ps)((double)t->is.op[k][i] / by);
		t->spread_s[k][i] /= by;
	}
	if (op->rec_class == FT_REC_COLLECTIVE && t->q->without[FT_ALL_REDUCE])
		t->is.op[k][i] = 0;
}

static void wish(struct told *t)
{
	for (size_t k = 0; k < ft_replay_ranks(t->p); k++)
		for (size_t i = 0; i < ft_recording_ops(rank(t, k)); i++)
			wish_op(t, k, i);
}

/* Of the slowest rank the mean over its steps, with the parts changed that a set holds. */
static double slowest_s(const struct told *t, const struct ft_replay_times *times)
{
	struct arena mem = { 0 };
	struct ft_replayed at = ft_replay_run(t->p, times, &mem);
	double slowest = 0;

	for (size_t k = 0; k < ft_replay_ranks(t->p); k++) {
		double sum = 0, n = 0;

		for (size_t s = 0; s < ft_recording_steps(rank(t, k)); s++)
			if (t->asked[k][s]) {
				struct ft_rec_window w =
					ft_replay_step(t->p, &at, k, s);

				sum += (double)(w.to - w.from) * 1e-12;
				n++;
			}
		slowest = fmax(slowest, sum / n);
	}
	arena_release(&mem);
	return slowest;
}

/* Of several steps none is shorter than its launches, unless it was. */
static double launched_s(const struct told *t)
{
	struct arena mem = { 0 };
	struct ft_replay_times was = ft_replay_recorded(t->p, &mem);
	double recorded_s = slowest_s(t, &was), s;
	bool several = true;

	for (size_t k = 0; k < ft_replay_ranks(t->p); k++) {
		several = several && ft_recording_steps(rank(t, k)) > 1;
		for (size_t i = 0; i < ft_recording_ops(rank(t, k)); i++)
			was.op[k][i] = 0;
	}
	s = slowest_s(t, &was);
	arena_release(&mem);
	return several ? fmin(s, recorded_s) : 0;
}

static double step_of(const struct told *t, unsigned parts)
{
	struct arena mem = { 0 };
	struct ft_replay_times mixed = ft_replay_recorded(t->p, &mem);
	double s;

	for (size_t k = 0; k < ft_replay_ranks(t->p); k++)
		for (size_t i = 0; i < ft_recording_ops(rank(t, k)); i++)
			if (parts >> part(ft_recording_op(rank(t, k), i)) & 1)
				mixed.op[k][i] = t->is.op[k][i];
	if (parts >> FT_PART_HOST & 1)
		mixed.host_factor = t->host;
	s = slowest_s(t, &mixed);
	arena_release(&mem);
	return fmax(s, launched_s(t) * mixed.host_factor);
}

/* Each order of the parts that are left in `all`: what part i adds when its turn comes. */
static double mean_added(const double *step, unsigned all, unsigned before, int i)
{
	double sum = 0;
	int n = 0;

	for (int next = 0; next < FT_PARTS; next++) {
		if (!((all & ~before) >> next & 1))
			continue;
		n++;
		sum += next == i ? step[before | 1U << i] - step[before] :
				   mean_added(step, all, before | 1U << next, i);
	}
	return sum / n;
}

static bool counts(const struct told *t, size_t k, size_t i)
{
	for (size_t s = 0; s < ft_recording_steps(rank(t, k)); s++) {
		struct ft_rec_window w = ft_replay_step(t->p, &t->recorded, k, s);
		ft_ps at = t->recorded.op_begin[k][i];

		if (t->asked[k][s] && at >= w.from && at < w.to)
			return true;
	}
	return false;
}

/* Durations of the steps asked for, and which parts change. */
static unsigned check_durations(const struct told *t, const struct ft_whatif *a)
{
	double was_s[FT_PARTS] = { 0 }, is_s[FT_PARTS] = { 0 }, all_s = 0, other_s = 0;
	unsigned changed = (unsigned)(t->host < 1 || t->host > 1) << FT_PART_HOST;

	for (size_t k = 0; k < ft_replay_ranks(t->p); k++)
		for (size_t i = 0; i < ft_recording_ops(rank(t, k)); i++) {
			const struct ft_rec_op *op = ft_recording_op(rank(t, k), i);
			int of = (int)part(op);

			all_s += (double)op->duration * 1e-12;
			other_s += (of == FT_PART_OTHER) * (double)op->duration * 1e-12;
			changed |= (unsigned)(t->was.op[k][i] != t->is.op[k][i]) << of;
			if (!counts(t, k, i))
				continue;
			was_s[of] += (double)t->was.op[k][i] * 1e-12 / t->n;
			is_s[of] += (double)t->is.op[k][i] * 1e-12 / t->n;
		}
	for (int i = 0; i < FT_PARTS; i++) {
		near_frac(1 + a->change[i].recorded_s, 1 + was_s[i], 1e-13);
		near_frac(1 + a->change[i].replayed_s, 1 + is_s[i], 1e-13);
		assert_int_equal(a->change[i].changed, changed >> i & 1);
	}
	near_frac(a->classified_frac, 1 - other_s / all_s, 1e-9);
	for (int i = 0; i < 3; i++)
		near_frac(1 + (i == FT_RETIMED_BY_WORK	   ? a->by_work_frac :
			       i == FT_RETIMED_BY_STAND_IN ? a->by_stand_in_frac :
							     a->kept_frac),
			  1 + (t->retiming ? t->by_s[i] / all_s : 0), 1e-12);
	return changed;
}

static void check_where(const struct told *t, const struct ft_rec_where *is)
{
	struct ft_rec_where sum = { .step_s = 0 };

	for (size_t k = 0; k < ft_replay_ranks(t->p); k++)
		for (size_t s = 0; s < ft_recording_steps(rank(t, k)); s++) {
			struct ft_rec_where x = ft_replay_where(
				t->p, &t->recorded, k,
				ft_replay_step(t->p, &t->recorded, k, s));

			if (!t->asked[k][s])
				continue;
			sum.step_s += x.step_s / t->n;
			sum.compute_s += x.compute_s / t->n;
			sum.optimizer_s += x.optimizer_s / t->n;
			sum.exposed_s += x.exposed_s / t->n;
			sum.collective_s += x.collective_s / t->n;
			for (int c = 0; c < FT_REC_CLASSES; c++) {
				sum.class_s[c] += x.class_s[c] / t->n;
				sum.class_n[c] += x.class_n[c];
			}
		}
	near_frac(is->step_s, sum.step_s, 1e-9);
	near_frac(1 + is->compute_s, 1 + sum.compute_s, 1e-13);
	near_frac(1 + is->optimizer_s, 1 + sum.optimizer_s, 1e-13);
	near_frac(1 + is->exposed_s, 1 + sum.exposed_s, 1e-13);
	near_frac(1 + is->collective_s, 1 + sum.collective_s, 1e-13);
	for (int c = 0; c < FT_REC_CLASSES; c++) {
		near_frac(1 + is->class_s[c], 1 + sum.class_s[c], 1e-13);
		assert_int_equal(is->class_n[c], sum.class_n[c] / t->n);
	}
}

/* A part's error counts as far as its kernels' time fits into the step; those of parts are apart. */
static void check_range(const struct told *t, const struct ft_whatif *a)
{
	double square = 0, off;

	for (int of = 0; of < FT_PARTS; of++) {
		double busy_s = a->change[of].replayed_s, sum = 0;

		for (size_t k = 0; k < ft_replay_ranks(t->p); k++)
			for (size_t i = 0; i < ft_recording_ops(rank(t, k)); i++)
				if ((int)part(ft_recording_op(rank(t, k), i)) == of &&
				    counts(t, k, i))
					sum += t->spread_s[k][i] / t->n;
		if (busy_s > a->replayed.step_s)
			sum *= a->replayed.step_s / busy_s;
		square += sum * sum;
	}
	off = NORMAL_P90 * sqrt(square) / a->step_s;
	near_frac(a->low_s, a->step_s / (1 + off), 1e-9);
	near_frac(a->high_s, a->step_s * (1 + off), 1e-9);
	assert_int_equal(off > 0, t->retiming && square > 0);
}

static void check(struct told *t, const struct ft_whatif *a)
{
	double step[1 << FT_PARTS] = { 0 };
	unsigned all;

	t->was = ft_replay_recorded(t->p, &t->mem);
	t->is = ft_replay_recorded(t->p, &t->mem);
	t->recorded = ft_replay_as_recorded(t->p, &t->mem);
	find_steps(t);
	wish(t);
	all = check_durations(t, a);
	check_where(t, &a->recorded);
	for (unsigned s = 0; s < 1 << FT_PARTS; s++)
		if (!(s & ~all))
			step[s] = step_of(t, s);
	near_frac(a->recorded_step_s, step[0], 1e-9);
	near_frac(a->step_s, step[all], 1e-9);
	check_range(t, a); /* no wish is uncertain, another GPU is */
	for (int i = 0; i < FT_PARTS; i++)
		near_frac(1 + a->change[i].step_s,
			  1 + (all >> i & 1 ? mean_added(step, all, 0, i) : 0), 1e-13);
	arena_release(&t->mem);
}

/* ---- asked ------------------------------------------------------------------------------------ */

/* What is not there cannot be faster. */
static const char *why_not(const struct told *t)
{
	bool has[FT_REC_CLASSES] = { false };

	for (size_t k = 0; k < ft_replay_ranks(t->p); k++)
		for (size_t i = 0; i < ft_recording_ops(rank(t, k)); i++)
			has[ft_recording_op(rank(t, k), i)->rec_class] = true;
	if (t->q->step && t->q->step[0] - '3' >= (int)ft_recording_steps(rank(t, 0)))
		return "has no step '";
	for (int c = 0; c < FT_REC_CLASSES; c++)
		if (t->q->speedup[c] > 0 && !has[c])
			return "changes nothing: the recorded step";
	return t->q->without[FT_ALL_REDUCE] && !has[FT_REC_COLLECTIVE] ?
		       "changes nothing: the recorded step" :
		       NULL;
}

static double host_of(struct ft_shelf *shelf, const char *gpu)
{
	struct arena mem = { 0 };
	struct ft_error err;
	const char *text = arena_printf(&mem, "{cluster: {gpu: %s, gpus: 1}}", gpu);
	struct node *root = node_read_text(&mem, "one", text, strlen(text), &err);
	struct ft_scenario *s = ft_scenario_from(shelf, root, "one", false, &err);
	double factor;

	ok_or_say(s, err);
	factor = s->cluster->node->host_factor.value;
	ft_scenario_free(s);
	arena_release(&mem);
	return factor;
}

static void to_another(struct told *t, struct ft_shelf *shelf, struct ft_gpu *gpu[2])
{
	const char *const names_of[] = { "h200", t->q->gpu };
	double factor[2];
	struct ft_error err;

	for (int i = 0; i < 2; i++) {
		gpu[i] = ft_gpu_load(names_of[i], NULL, &err);
		ok_or_say(gpu[i], err);
		factor[i] = host_of(shelf, names_of[i]);
	}
	t->retiming = ft_retiming_new(gpu[0], gpu[1]);
	t->host = factor[0] > 0 && factor[1] > 0 ? factor[1] / factor[0] : 1;
}

/* Was it answered? */
static bool ask(const struct ft_replay *p, const char *gpu)
{
	static const char *const steps[] = { NULL, NULL, "3", "4" };
	struct ft_whatif_request q = { .replay = p, .step = PICK(steps), .gpu = gpu };
	struct told t = { .p = p, .q = &q, .host = 1 };
	struct ft_gpu *both[2] = { NULL, NULL };
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_error err = { 0 };
	struct ft_whatif a;
	const char *why;
	bool ok;

	for (int c = 0; c < FT_REC_CLASSES; c++)
		if (!rnd_below(&seed, 3))
			q.speedup[c] = 0.5 * (1 + rnd_below(&seed, 6));
	q.without[FT_ALL_REDUCE] = !gpu && !rnd_below(&seed, 4);
	if (gpu)
		to_another(&t, shelf, both);
	why = why_not(&t);
	ok = ft_study_whatif(shelf, &q, &a, &err);
	if (!why) {
		ok_or_say(ok, err);
		check(&t, &a);
	} else if (ok || !strstr(err.text, why)) {
		fail_msg("%s instead of %s", ok ? "taken" : err.text, why);
	}
	ft_retiming_free(t.retiming);
	for (int i = 0; i < 2; i++)
		ft_gpu_free(both[i]);
	ft_shelf_free(shelf);
	return ok;
}

static void wishes_are_replayed(void **state)
{
	int answered = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct ft_recording *r[RANKS];
		struct ft_replay *p;
		struct ft_error err;
		struct drawn d;

		const char *gpu = i % 3 ? NULL : i % 2 ? "b200" : "h100-sxm";

		draw(&d, gpu);
		for (int k = 0; k < d.ranks; k++)
			r[k] = end(&d.text[k]);
		p = ft_replay_build((const struct ft_recording *const *)r,
				    (size_t)d.ranks, &err);
		ok_or_say(p, err);
		for (int k = 0; k < 3; k++)
			answered += ask(p, gpu);
		ft_replay_free(p);
		for (int k = 0; k < d.ranks; k++)
			ft_recording_free(r[k]);
	}
	assert_in_range(answered, DRAWS, 3 * DRAWS - 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(wishes_are_replayed) };
	int status = cmocka_run_group_tests_name("wishes", tests, NULL, NULL);

	unlink(made_path());
	return status;
}
