/* tests/test_search_watch.c - how far a search says that it is, while it runs and when it is over */
#include "foretoken/study_plan.h"
#include "tests/check.h"

enum { STATES = 10000 };

struct seen {
	struct ft_search_state state[STATES];
	size_t n;
	size_t told, tells; /* by progress */
};

static void watch(void *context, const struct ft_search_state *state)
{
	struct seen *s = context;

	assert_true(s->n < STATES);
	s->state[s->n++] = *state;
}

static void tell(void *context, size_t finished, size_t fresh, size_t total)
{
	struct seen *s = context;

	assert_true(fresh <= finished && finished <= total);
	s->told = total;
	s->tells++;
}

/* Nothing while nothing is found; then the best so far, which only gets better. */
static void follows(const struct ft_search_state *was, const struct ft_search_state *is)
{
	assert_true(is->finished <= is->total && is->simulated <= is->considered);
	assert_true(is->simulated >= was->simulated && is->spent_s >= was->spent_s);
	assert_int_equal(is->considered, was->considered);
	assert_true(is->any || !was->any);
	assert_int_equal(is->any, is->best_step_s > 0);
	assert_int_equal(is->any, is->best_usd_per_million_tokens > 0);
	if (!is->any)
		assert_true(is->best_step_s == 0 &&
			    is->best_usd_per_million_tokens == 0);
	if (was->any)
		assert_true(is->best_step_s <= was->best_step_s);
	if (is->bounds) /* steps follow their bounds */
		assert_int_equal(is->total, is->considered);
}

static void what_is_seen_leads_to_what_is_found(const char *text, int threads)
{
	struct seen *s = calloc(1, sizeof(*s));
	struct ft_search search = { .top = 1,
				    .threads = threads,
				    .watch = watch,
				    .watch_context = s,
				    .progress = { tell, s } };
	struct ft_plans *plans[FT_SIZES_MOST], *found;
	struct ft_error err;
	size_t n;
	const struct ft_search_state *last;

	assert_non_null(s);
	ok_or_say(ft_study_plans_of("p", text, &search, plans, &n, &err), err);
	assert_int_equal(n, 1);
	found = plans[0];
	assert_true(s->n >= 2 && s->tells == s->n);
	assert_true(s->state[0].bounds && !s->state[0].any);
	for (size_t i = 1; i < s->n; i++)
		follows(&s->state[i - 1], &s->state[i]);
	last = &s->state[s->n - 1];
	assert_int_equal(last->any, found->n > 0);
	assert_int_equal(last->considered, found->considered);
	assert_int_equal(last->simulated, found->simulated);
	assert_true(last->spent_s <= found->wall_s);
	if (found->n) {
		assert_true(last->best_step_s == found->best[0].outcome->step_s);
		assert_true(last->best_usd_per_million_tokens ==
			    found->best[0].outcome->cost.usd_per_million_tokens);
	}
	ft_plans_free(found);
	free(s);
}

static void a_search_says_how_far_it_is(void **state)
{
	static const char small[] =
		"{model: {name: llama3-8b, num_hidden_layers: 4}, cluster: {gpu: h200, "
		"gpus: 8}, training: {sequence_length: 4096, global_batch_size: 16, "
		"sharding: zero1, recompute: none}}";

	(void)state;
	for (int threads = 1; threads <= 3; threads++)
		what_is_seen_leads_to_what_is_found(small, threads);
}

static void nothing_is_best_where_nothing_fits(void **state)
{
	static const char large[] =
		"{model: {name: llama3-70b, num_hidden_layers: 8}, cluster: {gpu: "
		"h100-sxm, gpus: 1}, training: {sequence_length: 65536, "
		"global_batch_size: 1, recompute: none}}";

	(void)state;
	what_is_seen_leads_to_what_is_found(large, 1);
}

/* As many plans as there may be are searched; one more is refused with both numbers. */
static void as_many_plans_as_may_be_are_searched(void **state)
{
	static const char small[] =
		"{model: {name: llama3-8b, num_hidden_layers: 4}, cluster: {gpu: h200, "
		"gpus: 8}, training: {sequence_length: 4096, global_batch_size: 16, "
		"sharding: zero1}}";
	size_t legal = 0, n;

	(void)state;
	for (int more = 2; more >= 0; more--) {
		struct ft_search search = { .top = 1, .threads = 1 };
		struct ft_plans *plans[FT_SIZES_MOST];
		struct ft_error err;

		/* first without a bound, then as many as that found, then one less */
		search.most = more ? legal : legal - 1;
		if (!ft_study_plans_of("p", small, &search, plans, &n, &err)) {
			char says[64];

			snprintf(says, sizeof(says),
				 "%zu legal plans are too many here: %zu at most",
				 legal, legal - 1);
			assert_int_equal(more, 0);
			assert_non_null(strstr(err.text, says));
			continue;
		}
		assert_int_not_equal(more, 0);
		legal = plans[0]->considered;
		assert_true(legal > 1);
		for (size_t i = 0; i < n; i++)
			ft_plans_free(plans[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_search_says_how_far_it_is),
		cmocka_unit_test(nothing_is_best_where_nothing_fits),
		cmocka_unit_test(as_many_plans_as_may_be_are_searched),
	};

	return cmocka_run_group_tests_name("study/search", tests, NULL, NULL);
}
