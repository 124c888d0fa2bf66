/* tests/test_jump.c - a step whose repeated passes are jumped over, against all of it run */
#include <inttypes.h>

#include "base/node.h"
#include "foretoken/study.h"
#include "tests/check.h"
#include "tests/plan_drawn.h"

#if defined(__SANITIZE_ADDRESS__) || defined(TESTS_FEW)
enum { PLANS = 60 };
#else
enum { PLANS = 1500 };
#endif

struct tally {
	int steps, jumped;
	uint64_t events, events_jumped;
};

static void same_class(const struct ft_class_result *a, const struct ft_class_result *b)
{
	assert_int_equal(a->end, b->end);
	assert_int_equal(a->compute, b->compute);
	assert_int_equal(a->exposed, b->exposed);
	assert_int_equal(a->bubble, b->bubble);
	assert_int_equal(a->host, b->host);
	assert_int_equal(a->optimizer, b->optimizer);
}

/* To the picosecond, and to the bit. */
static void same_run(const struct ft_run *a, const struct ft_run *b)
{
	assert_int_equal(a->step, b->step);
	assert_int_equal(a->n_classes, b->n_classes);
	for (size_t i = 0; i < a->n_classes; i++)
		same_class(&a->rank_class[i], &b->rank_class[i]);
	assert_int_equal(a->n_shares, b->n_shares);
	for (size_t i = 0; i < a->n_shares; i++) {
		assert_string_equal(a->share[i].name, b->share[i].name);
		assert_true(a->share[i].time_s == b->share[i].time_s);
		assert_true(a->share[i].count == b->share[i].count);
	}
	assert_memory_equal(&a->breakdown, &b->breakdown, sizeof(a->breakdown));
}

static void hold(const char *text, struct ft_shelf *shelf, struct tally *t)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *n = node_read_text(&mem, "drawn", text, strlen(text), &err);
	struct ft_scenario *s;
	struct ft_outcome out;

	ok_or_say(n, err);
	s = ft_scenario_from(shelf, n, "drawn", true, &err);
	if (s && ft_study_simulate(s, NULL, NULL, &out, &err)) {
		struct ft_graph *g = ft_graph_build(s->model, s->plan, s->stack, &err);
		struct ft_sim_job job = { .graph = g,
					  .cluster = s->cluster,
					  .stack = s->stack,
					  .ccl = s->ccl,
					  .start = s->plan->step_start,
					  .run_all = true };
		struct ft_run *all;

		ok_or_say(g, err);
		all = ft_sim_run(&job, NULL, NULL, s->memo, &err);
		ok_or_say(all, err);
		assert_int_equal(all->jumped, 0);
		if (all->step != out.run->step)
			fail_msg("%" PRId64 " ps jumping, %" PRId64 " ps running: %s",
				 out.run->step, all->step, text);
		same_run(out.run, all);
		t->steps++;
		t->jumped += out.run->jumped > 0;
		t->events += out.run->events;
		t->events_jumped += out.run->jumped;
		ft_run_free(all);
		ft_graph_free(g);
		ft_outcome_release(&out);
	}
	ft_scenario_free(s);
	arena_release(&mem);
}

static void a_step_is_the_same_as_if_all_of_it_had_been_run(void **state)
{
	struct tally t = { 0 };
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (seed = 7; t.steps < PLANS;) {
		struct arena mem = { 0 };

		hold(drawn(&mem), shelf, &t);
		arena_release(&mem);
	}
	print_message("%d steps, %d with jumps; %.3f of all events jumped over\n",
		      t.steps, t.jumped, (double)t.events_jumped / (double)t.events);
	assert_true(t.jumped > t.steps / 6);
	ft_shelf_free(shelf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_the_same_as_if_all_of_it_had_been_run),
	};

	return cmocka_run_group_tests_name("jump", tests, NULL, NULL);
}
