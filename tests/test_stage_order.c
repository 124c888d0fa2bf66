/*
 * tests/test_stage_order.c - which schedule a pipeline ran: drawn schedules, whose marks and sends are written down
 * stage by stage, are found again, with their chunks and micro-batches; what fits none is none
 */
#include "base/arena.h"
#include "recorded/stages.h"
#include "tests/check.h"

enum { DRAWS = 400, STAGES = 4, MOST = 256 };

static uint64_t seed = 97;

static const struct way {
	enum ft_schedule schedule;
	bool autograd;
	int chunks; /* 0: any */
} ways[] = {
	{ FT_1F1B, false, 0 },	      { FT_GPIPE, false, 1 },
	{ FT_ZERO_BUBBLE, false, 1 }, { FT_ZERO_BUBBLE, true, 1 },
	{ FT_ZBV, false, 2 },	      { FT_ZBV, true, 2 },
	{ FT_DUALPIPEV, false, 2 },
};

enum { WAYS = sizeof(ways) / sizeof(*ways) };

struct ran {
	struct layout l;
	struct stage stage[STAGES];
	struct ft_slot slot[STAGES][MOST];
	struct mark mark[STAGES][MOST];
	struct cut cut[STAGES][MOST];
	size_t n[STAGES];
	struct ft_plan plan;
};

/* What each stage runs, in its order; some stages were not recorded. */
static void draw(struct ran *x)
{
	const struct way *w = &ways[rnd_below(&seed, WAYS)];

	*x = (struct ran){ .plan = { .schedule = w->schedule,
				     .pp = 2 + rnd_below(&seed, STAGES - 1),
				     .vpp = w->chunks ? w->chunks :
							1 + rnd_below(&seed, 3) } };
	x->plan.micro_batches = x->plan.pp * (1 + rnd_below(&seed, 3)) *
				(w->schedule == FT_DUALPIPEV ? 2 : 1);
	for (int64_t s = 0; s < x->plan.pp; s++) {
		assert_true(ft_plan_most_slots(&x->plan) <= MOST);
		x->n[s] = ft_plan_slots(&x->plan, s, x->slot[s]);
		if (w->autograd)
			x->n[s] = ft_slots_by_autograd(s, x->slot[s], x->n[s]);
		x->stage[s].rank = rnd_below(&seed, 4) ? s : NO_RANK;
	}
	x->stage[rnd_below(&seed, (int)x->plan.pp)].rank = 0;
	x->l.stage = x->stage;
	x->l.n = (size_t)x->plan.pp;
	x->l.marked = true;
}

/* The stage at the other end of what a pass sends; -1: it sends nothing. Chunks follow each other
 * from stage to stage, in a V back and forth. */
static int64_t goes_to(const struct ran *x, int64_t here, const struct ft_slot *s)
{
	int64_t n = x->plan.pp;
	bool folds = ft_schedule_folds(x->plan.schedule);
	int64_t place = folds && s->chunk ? 2 * n - 1 - here : s->chunk * n + here;
	int64_t to = s->kind == FT_SLOT_FORWARD ? place + 1 : place - 1, stage;

	if (s->kind == FT_SLOT_WEIGHTS || to < 0 || to >= n * x->plan.vpp)
		return -1;
	stage = folds && to >= n ? 2 * n - 1 - to : to % n;
	return stage == here ? -1 : stage;
}

static int64_t place_in_model(const struct ran *x, int64_t here, int64_t chunk)
{
	int64_t n = x->plan.pp;

	return ft_schedule_folds(x->plan.schedule) && chunk ? 2 * n - 1 - here :
							      chunk * n + here;
}

/* A backward that nothing cuts is marked whole. Receives stand among the sends. */
static void write_down(struct ran *x)
{
	bool splits = ft_schedule_splits(x->plan.schedule);

	for (int64_t s = 0; s < x->plan.pp; s++) {
		struct stage *to = &x->stage[s];

		if (to->rank == NO_RANK)
			continue;
		to->mark = x->mark[s];
		to->cut = x->cut[s];
		for (size_t i = 0; i < x->n[s]; i++) {
			const struct ft_slot *of = &x->slot[s][i];
			struct ft_slot *mark = &to->mark[to->n_marks++].slot;
			int64_t peer = goes_to(x, s, of);

			*mark = *of;
			mark->chunk = place_in_model(x, s, of->chunk);
			if (of->kind == FT_SLOT_BACKWARD && !splits)
				mark->kind = FT_SLOT_WHOLE;
			if (rnd_below(&seed, 3) == 0 && to->n_cuts < MOST / 2)
				to->cut[to->n_cuts++] = (struct cut){ .peer = 0 };
			if (peer < 0)
				continue;
			to->cut[to->n_cuts++] =
				(struct cut){ .peer = peer, .sends = true };
			to->n_sends++;
		}
	}
}

/* As a pass of the found schedule is marked: whole where nothing cuts it, or by its weights alone. */
static bool is_marked(const struct ran *x, enum ft_slot_kind kind,
		      enum ft_slot_kind mark)
{
	if (kind == FT_SLOT_BACKWARD && !ft_schedule_splits(x->l.plan.schedule))
		kind = FT_SLOT_WHOLE;
	return kind == mark || (kind == FT_SLOT_WHOLE && mark == FT_SLOT_WEIGHTS);
}

static void is_found(struct ran *x)
{
	assert_int_equal(x->l.plan.pp, x->plan.pp);
	assert_int_equal(x->l.plan.vpp, x->plan.vpp);
	assert_int_equal(x->l.plan.micro_batches, x->plan.micro_batches);
	assert_int_equal(x->l.n_places, x->plan.micro_batches * x->plan.vpp);
	for (int64_t s = 0; s < x->plan.pp; s++) {
		const struct stage *is = &x->stage[s];

		if (is->rank == NO_RANK) /* autograd cuts elsewhere alike */
			continue;
		assert_int_equal(is->n_slots, x->n[s]);
		for (size_t i = 0; i < is->n_slots; i++) {
			assert_true(is_marked(x, is->slot[i].kind,
					      x->mark[s][i].slot.kind));
			assert_int_equal(is->slot[i].chunk, x->slot[s][i].chunk);
			assert_int_equal(is->slot[i].micro_batch,
					 x->slot[s][i].micro_batch);
		}
	}
}

static void marked_schedules_are_found_again(void **state)
{
	struct ran *x = malloc(sizeof(*x));

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		draw(x);
		write_down(x);
		if (!order_find(&x->l))
			fail_msg("schedule %d, %d stages of %d chunks, %d "
				 "micro-batches: not found",
				 x->plan.schedule, (int)x->plan.pp, (int)x->plan.vpp,
				 (int)x->plan.micro_batches);
		assert_true(x->l.marked);
		is_found(x);
		arena_release(&x->l.scratch);
	}
	free(x);
}

/* Sends to a stage that there is not are of no schedule. */
static void sends_that_fit_no_schedule_are_none(void **state)
{
	struct ran *x = malloc(sizeof(*x));
	int none = 0;

	(void)state;
	for (int i = 0; i < DRAWS / 4; i++) {
		struct cut *last = NULL;

		draw(x);
		write_down(x);
		for (int64_t s = 0; s < x->plan.pp; s++)
			for (size_t k = 0; k < x->stage[s].n_cuts; k++)
				if (x->stage[s].cut[k].sends)
					last = &x->stage[s].cut[k];
		if (!last)
			continue;
		last->peer = x->plan.pp + 3;
		assert_false(order_find(&x->l));
		none++;
		arena_release(&x->l.scratch);
	}
	assert_true(none > DRAWS / 8);
	free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marked_schedules_are_found_again),
		cmocka_unit_test(sends_that_fit_no_schedule_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
