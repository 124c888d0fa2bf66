/*
 * tests/test_schedule.c - orders of passes against what must hold of each, and against
 * closed forms of their length and of what a stage keeps
 *
 * The clock here is the obvious one: a pass takes its time once its stage is free and its
 * input is there. Sends take none.
 */
#include "tests/check.h"

#include "base/arena.h"
#include "traces/build.h"

static const enum ft_slot_kind F = FT_SLOT_FORWARD, B = FT_SLOT_BACKWARD,
			       W = FT_SLOT_WEIGHTS, WHOLE = FT_SLOT_WHOLE;

struct drawn_schedule {
	struct arena mem;
	struct ft_plan plan;
	struct ft_slot **slot; /* [pp][n] */
	size_t *n;
};

static void lay(struct drawn_schedule *d, enum ft_schedule schedule, int64_t pp,
		int64_t vpp, int64_t m)
{
	*d = (struct drawn_schedule){ .plan = { .pp = pp,
						.vpp = vpp,
						.micro_batches = m,
						.schedule = schedule } };
	d->n = ARENA_ARRAY(&d->mem, (size_t)pp, size_t);
	d->slot = ARENA_ARRAY(&d->mem, (size_t)pp, struct ft_slot *);
	for (int64_t s = 0; s < pp; s++) {
		size_t room = ft_plan_most_slots(&d->plan);

		d->slot[s] = ARENA_ARRAY(&d->mem, room, struct ft_slot);
		d->n[s] = ft_plan_slots(&d->plan, s, d->slot[s]);
		if (schedule == FT_DUALPIPEV)
			assert_true(d->n[s] <= room);
		else
			assert_int_equal(d->n[s], room);
	}
}

/* When a pass of a chunk was over, or -1: [kind][chunk of the model][micro-batch]. */
static double *end_of(double *end, const struct ft_plan *p, enum ft_slot_kind kind,
		      int64_t at, int64_t m)
{
	return &end[((int64_t)kind * p->pp * p->vpp + at) * p->micro_batches + m];
}

/* When its input is there; -1: not yet. Weights need their own backward, a backward its
 * forward and the next chunk's backward, a forward the chunk before. */
static double input_of(double *end, const struct ft_plan *p, const struct ft_slot *s,
		       int64_t at)
{
	int64_t m = s->micro_batch, last = p->pp * p->vpp - 1;
	double own, other = 0;

	if (s->kind == W)
		return *end_of(end, p, B, at, m);
	if (s->kind == F)
		return at ? *end_of(end, p, F, at - 1, m) : 0;
	own = *end_of(end, p, F, at, m);
	if (at < last)
		other = *end_of(end, p, B, at + 1, m);
	return own < 0 || other < 0 ? -1 : own > other ? own : other;
}

/* Every pass ran: forward, backward, and the part for weights where there is one. */
static void all_ran(double *end, const struct ft_plan *p)
{
	for (int64_t at = 0; at < p->pp * p->vpp; at++)
		for (int64_t m = 0; m < p->micro_batches; m++)
			assert_true(*end_of(end, p, F, at, m) >= 0 &&
				    *end_of(end, p, B, at, m) >= 0 &&
				    (*end_of(end, p, W, at, m) >= 0) == plan_splits(p));
}

/* A pass is over; one that is whole is both parts of a backward. */
static void over(double *end, const struct ft_plan *p, const struct ft_slot *t,
		 int64_t at, double when)
{
	double *to = end_of(end, p, t->kind == WHOLE ? B : t->kind, at, t->micro_batch);

	assert_true(*to < 0); /* once */
	*to = when;
	if (t->kind != WHOLE)
		return;
	to = end_of(end, p, W, at, t->micro_batch);
	assert_true(*to < 0);
	*to = when;
}

/* Of the slots of a stage from this one on, how many run as one: a forward and the whole
 * backward behind it, but the first two on the stage where a V turns. */
static size_t as_one(const struct drawn_schedule *d, int64_t s, size_t i, double both)
{
	const struct ft_slot *t = &d->slot[s][i];

	if (both <= 0 || i + 1 == d->n[s] || t[0].kind != F || t[1].kind != WHOLE)
		return 1;
	return s == d->plan.pp - 1 && t[1].micro_batch == 0 && t[1].chunk == 1 ? 1 : 2;
}

/* When all inputs of these slots are there, or -1. */
static double inputs_of(double *end, const struct ft_plan *p, int64_t s,
			const struct ft_slot *t, size_t n)
{
	double from = 0;

	for (size_t i = 0; i < n; i++) {
		double one = input_of(end, p, &t[i], ft_plan_place(p, s, t[i].chunk));

		if (one < 0)
			return -1;
		from = from > one ? from : one;
	}
	return from;
}

/* The step's length, and how long the last stage waits in it; fails where a pass comes
 * twice, never, or can never begin. both: what a forward takes with a backward beside it,
 * 0 for one after the other. */
static double length_in_pairs(const struct drawn_schedule *d, const double takes[3],
			      double both, double *idle)
{
	const struct ft_plan *p = &d->plan;
	size_t ends = (size_t)(3 * p->pp * p->vpp * p->micro_batches);
	size_t *next = calloc((size_t)p->pp, sizeof(*next)), left;
	double *end = malloc(ends * sizeof(*end)), longest = 0;
	double *free_at = calloc((size_t)p->pp, sizeof(*free_at));
	double *work = calloc((size_t)p->pp, sizeof(*work));
	bool moved = true;

	for (size_t i = 0; i < ends; i++)
		end[i] = -1;
	while (moved) {
		moved = false;
		for (int64_t s = 0; s < p->pp; s++)
			while (next[s] < d->n[s]) {
				const struct ft_slot *t = &d->slot[s][next[s]];
				size_t n = as_one(d, s, next[s], both);
				double from = inputs_of(end, p, s, t, n);
				double length = n == 2		 ? both :
						t->kind == WHOLE ? takes[B] + takes[W] :
								   takes[t->kind];

				if (from < 0)
					break;
				from = from > free_at[s] ? from : free_at[s];
				free_at[s] = from + length;
				work[s] += length;
				for (size_t i = 0; i < n; i++)
					over(end, p, &t[i],
					     ft_plan_place(p, s, t[i].chunk),
					     free_at[s]);
				longest = free_at[s] > longest ? free_at[s] : longest;
				next[s] += n;
				moved = true;
			}
	}
	left = 0;
	for (int64_t s = 0; s < p->pp; s++)
		left += d->n[s] - next[s];
	assert_int_equal(left, 0);
	all_ran(end, p);
	*idle = longest - work[p->pp - 1];
	free(next);
	free(end);
	free(free_at);
	free(work);
	return longest;
}

static double length_of(const struct drawn_schedule *d, const double takes[3])
{
	double idle;

	return length_in_pairs(d, takes, 0, &idle);
}

/* The most micro-batches of all chunks whose activations a stage keeps at once. */
static int64_t most_kept(const struct drawn_schedule *d, int64_t stage)
{
	bool splits = plan_splits(&d->plan);
	int64_t kept = 0, most = 0;

	for (size_t i = 0; i < d->n[stage]; i++) {
		enum ft_slot_kind kind = d->slot[stage][i].kind;

		kept += kind == FT_SLOT_FORWARD;
		most = kept > most ? kept : most;
		kept -= kind == (splits ? W : B) || kind == WHOLE;
	}
	assert_int_equal(kept, 0);
	return most;
}

static int64_t from_to(uint64_t *seed, int64_t least, int64_t most)
{
	return least + (int64_t)(rnd(seed) % (uint64_t)(most - least + 1));
}

static void every_pass_runs_once_in_a_legal_order(void **state)
{
	static const double ones[] = { 1, 1, 1 };
	uint64_t seed = 5;

	(void)state;
	for (int i = 0; i < 600; i++) {
		enum ft_schedule how =
			(enum ft_schedule)from_to(&seed, FT_1F1B, FT_SCHEDULES - 1);
		int64_t pp = from_to(&seed, 1, 9), m = from_to(&seed, 1, 24);
		bool chunks = how == FT_INTERLEAVED || how == FT_ZERO_BUBBLE;
		int64_t vpp = chunks ? from_to(&seed, 1, 3) : 1;
		struct drawn_schedule d;

		if (ft_schedule_folds(how))
			vpp = 2;
		if (pp == 1)
			vpp = 1;
		if (vpp > 1 &&
		    !ft_schedule_folds(
			    how)) /* groups of pp micro-batches, as Megatron has them */
			m = (m + pp - 1) / pp * pp;
		lay(&d, how, pp, vpp, m);
		length_of(&d, ones);
		arena_release(&d.mem);
	}
}

static void lengths_are_the_closed_forms(void **state)
{
	uint64_t seed = 9;

	(void)state;
	for (int i = 0; i < 600; i++) {
		int64_t pp = from_to(&seed, 1, 9), m = from_to(&seed, pp, 24);
		double f = (double)from_to(&seed, 1, 9),
		       b = (double)from_to(&seed, 1, 9);
		double w = (double)from_to(&seed, 1, (int64_t)(f < b ? f : b));
		double work = (double)m * (f + b + w), ramp = (double)(pp - 1);
		const double split[] = { f, b, w }, whole[] = { f, b + w, 0 };
		struct drawn_schedule d;

		lay(&d, FT_1F1B, pp, 1, m);
		near_frac(length_of(&d, whole), work + ramp * (f + b + w), 1e-12);
		for (int64_t s = 0; s < pp; s++)
			assert_int_equal(most_kept(&d, s), pp - s);
		arena_release(&d.mem);
		lay(&d, FT_INTERLEAVED, pp, 3, m / pp * pp); /* chunks of a third */
		near_frac(length_of(&d, whole),
			  3 * (double)(m / pp * pp) * (f + b + w) + ramp * (f + b + w),
			  1e-12);
		arena_release(&d.mem);
		lay(&d, FT_GPIPE, pp, 1, m);
		near_frac(length_of(&d, whole), work + ramp * (f + b + w), 1e-12);
		arena_release(&d.mem);
		lay(&d, FT_ZERO_BUBBLE, pp, 1, m);
		near_frac(length_of(&d, pp > 1 ? split : whole),
			  work + ramp * (f + b - w), 1e-12);
		for (int64_t s = 0; s < pp; s++)
			assert_int_equal(most_kept(&d, s), pp > 1 ? pp : 1);
		arena_release(&d.mem);
	}
}

/* zbv with equal parts: each stage without a pause, the next one begins a forward later. */
static void a_v_has_no_bubble(void **state)
{
	static const double ones[] = { 1, 1, 1 };

	(void)state;
	for (int64_t pp = 2; pp < 10; pp++)
		for (int64_t m = 1; m < 30; m++) {
			double full = 6 * (double)m + (double)(pp - 1), t;
			struct drawn_schedule d;

			lay(&d, FT_ZBV, pp, 2, m);
			t = length_of(&d, ones);
			if (m >= 2 * pp - 1)
				near_frac(t, full, 1e-12);
			else
				assert_true(t >= full);
			for (int64_t s = 0; s < pp; s++)
				assert_int_equal(most_kept(&d, s) <= 2 * pp, true);
			if (m >= 2 * pp - 1)
				assert_int_equal(most_kept(&d, 0), 2 * pp);
			arena_release(&d.mem);
		}
}

/* dualpipev with F = B >= W and pairs that take no longer than their halves: the last stage
 * waits for (pp - 1) (F&B + (B + W) - 3 W), which is what DeepSeek states for 2 pp ranks.
 * Without pairs and with equal parts it is zbv's step. Each stage keeps one chunk more than
 * under zbv. */
static void dualpipe_is_its_closed_form(void **state)
{
	uint64_t seed = 33;

	(void)state;
	for (int i = 0; i < 600; i++) {
		int64_t pp = from_to(&seed, 2, 9), m = from_to(&seed, 2 * pp, 40);
		double f = (double)from_to(&seed, 1, 9);
		double w = (double)from_to(&seed, 1, (int64_t)f);
		double both = f + f + w - 0.25 * (double)from_to(&seed, 0, 4) * w;
		const double takes[] = { f, f, w }, equal[] = { f, f, f };
		double ramp = (double)(pp - 1), idle;
		struct drawn_schedule d;

		lay(&d, FT_DUALPIPEV, pp, 2, m);
		length_in_pairs(&d, takes, both, &idle);
		near_frac(1 + idle, 1 + ramp * (both + (f + w) - 3 * w), 1e-12);
		near_frac(length_of(&d, equal), 6 * (double)m * f + ramp * f, 1e-12);
		for (int64_t s = 0; s < pp; s++)
			assert_int_equal(most_kept(&d, s), 2 * pp + 1);
		arena_release(&d.mem);
	}
}

/* What the plan says of its bubble is that of equal parts, in pairs and not. */
static void dualpipe_says_its_bubble(void **state)
{
	static const double ones[] = { 1, 1, 1 };

	(void)state;
	for (int pairs = 0; pairs < 2; pairs++) {
		struct drawn_schedule d;
		double idle, t;

		lay(&d, FT_DUALPIPEV, 4, 2, 11);
		d.plan.overlap_ep = pairs;
		d.plan.ep = 8;
		t = length_in_pairs(&d, ones, pairs ? 3 : 0, &idle);
		near_frac(ft_plan_bubble(&d.plan), idle / (t - idle), 1e-12);
		arena_release(&d.mem);
	}
}

/* Weights that take longer than a forward or a backward cannot all hide: then it is no
 * shorter than the closed form, and no longer than 1f1b. */
static void long_weights_stay_between(void **state)
{
	uint64_t seed = 21;

	(void)state;
	for (int i = 0; i < 300; i++) {
		int64_t pp = from_to(&seed, 2, 9), m = from_to(&seed, pp, 24);
		double f = (double)from_to(&seed, 1, 9),
		       b = (double)from_to(&seed, 1, 9);
		double w = (double)from_to(&seed, 1, 12);
		double work = (double)m * (f + b + w), ramp = (double)(pp - 1), t;
		const double split[] = { f, b, w };
		struct drawn_schedule d;

		lay(&d, FT_ZERO_BUBBLE, pp, 1, m);
		t = length_of(&d, split);
		assert_true(t >= work + ramp * (f + b - w) - 1e-9);
		assert_true(t <= work + ramp * (f + b + w) + 1e-9);
		arena_release(&d.mem);
	}
}

/* Without a pipeline there is nothing to fill: each micro-batch's backward follows its forward. */
static void one_stage_keeps_one_micro_batch(void **state)
{
	static const enum ft_schedule schedules[] = { FT_GPIPE, FT_1F1B };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct drawn_schedule d;

		lay(&d, schedules[i], 1, 1, 5);
		for (size_t k = 0; k < d.n[0]; k++)
			assert_true(d.slot[0][k].kind == (k % 2 ? B : F) &&
				    d.slot[0][k].micro_batch == (int64_t)k / 2);
		arena_release(&d.mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pass_runs_once_in_a_legal_order),
		cmocka_unit_test(lengths_are_the_closed_forms),
		cmocka_unit_test(one_stage_keeps_one_micro_batch),
		cmocka_unit_test(a_v_has_no_bubble),
		cmocka_unit_test(dualpipe_is_its_closed_form),
		cmocka_unit_test(dualpipe_says_its_bubble),
		cmocka_unit_test(long_weights_stay_between),
	};

	return cmocka_run_group_tests_name("traces/schedule", tests, NULL, NULL);
}
