/* tests/test_front.c - the plans that no other beats, found in the obvious way */
#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study_plan.h"
#include "study/search.h"
#include "study/shelf.h"
#include "tests/check.h"

static bool beats(const struct ft_outcome *a, const struct ft_outcome *b)
{
	return a->step_s <= b->step_s &&
	       a->memory_total_bytes <= b->memory_total_bytes &&
	       a->cost.usd_per_million_tokens <= b->cost.usd_per_million_tokens;
}

/* Those whose worse figure is within the best one's range; the simplest of them. */
static void equals_are_within_the_range(const struct ft_plans *p, enum ft_rank_by by)
{
	const struct ft_outcome *best = p->best[0].outcome;
	size_t simplest = 0;

	for (size_t k = 0; k < p->n; k++) {
		const struct ft_outcome *o = p->best[k].outcome;
		double times = by == FT_RANK_USD ?
				       o->cost.usd_per_million_tokens /
					       best->cost.usd_per_million_tokens :
				       o->step_s / best->step_s;

		assert_int_equal(p->best[k].equal,
				 times * best->step_s <= best->step_high_s);
		assert_true(times >= 1);
		if (p->best[k].equal &&
		    p->best[k].complexity < p->best[simplest].complexity)
			simplest = k;
	}
	assert_int_equal(p->simplest, simplest);
	for (size_t k = 0; k < p->n_front; k++)
		for (size_t i = 0; i < p->n; i++)
			if (p->front[k].outcome->step_s == p->best[i].outcome->step_s &&
			    p->front[k].outcome->cost.usd_per_million_tokens ==
				    p->best[i].outcome->cost.usd_per_million_tokens)
				assert_int_equal(p->front[k].equal, p->best[i].equal);
}

/* Among all plans that fit: each that no other beats is on it, once, the fastest first, whether
 * all were simulated or not. */
static void the_front_is_what_no_plan_beats(void **state)
{
	static const char *const few[] = {
		"{model: {name: llama3-8b, num_hidden_layers: 8}, cluster: {gpu: h200, "
		"gpus: 8}, training: {sequence_length: 2048, global_batch_size: 16, "
		"micro_batch_size: 1, sharding: zero1, parallel: {cp: 1, vpp: 1}, "
		"schedule: 1f1b}}",
		"{model: {name: mixtral-8x7b, num_hidden_layers: 2}, cluster: {gpu: h200, "
		"gpus: 8}, stack: megatron-core-moe-2025, training: {sequence_length: "
		"2048, global_batch_size: 16, micro_batch_size: 2, recompute: none, "
		"parallel: {cp: 1, etp: 1, vpp: 1}}}",
		"{model: llama3-8b, cluster: {gpu: h100-sxm, gpus: 2}, training: "
		"{sequence_length: 8192, global_batch_size: 8, recompute: none, lora: "
		"{rank: 16, targets: attention}}}"
	};

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct ft_search s = { .rank_by = i % 2 ? FT_RANK_USD : FT_RANK_TOKENS,
				       .top = FT_PLANS_MOST,
				       .threads = 1,
				       .exhaustive = i < 3 };
		const char *text = few[i % 3];
		struct arena mem = { 0 };
		struct ft_error err;
		struct node *root = node_read_text(&mem, "s", text, strlen(text), &err);
		struct ft_plans *p;
		size_t front = 0;

		ok_or_say(root, err);
		p = plans_of(root, "test", &s, &err);
		ok_or_say(p, err);
		print_message("%zu of %zu\n", p->n_front, p->n);
		assert_true(p->n > 10 && p->n < s.top); /* those are all */
		for (size_t k = 0; k < p->n; k++) {
			bool beaten = false;

			for (size_t j = 0; j < p->n; j++)
				beaten |= j != k &&
					  beats(p->best[j].outcome, p->best[k].outcome);
			if (beaten)
				continue;
			for (size_t j = 0; j < p->n_front; j++)
				front += beats(p->front[j].outcome, p->best[k].outcome);
		}
		assert_int_equal(front, p->n_front);
		for (size_t k = 1; k < front; k++)
			assert_true(p->front[k - 1].outcome->step_s <=
				    p->front[k].outcome->step_s);
		equals_are_within_the_range(p, s.rank_by);
		ft_plans_free(p);
		arena_release(&mem);
	}
}

/* Of plans alike in time and memory the first in the space, these by time and place: whatever order they come in. */
static void what_is_kept_does_not_depend_on_the_order(void **state)
{
	enum { PLANS = 10, TOP = 4 };
	struct ft_search asked = { .rank_by = FT_RANK_TOKENS, .top = TOP };
	uint64_t seed = 11;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct search_job *j = allocated(calloc(1, sizeof(*j)));
		bool came[PLANS] = { false };
		struct found f[PLANS];
		size_t kept = 0;

		j->search = &asked;
		for (size_t i = 0; i < PLANS; i++) /* in the order of what is kept */
			f[i] = (struct found){
				.at = i,
				.outcome = { .fits = true,
					     .step_s = 1 + (double)(i > PLANS / 2),
					     .memory_total_bytes = rnd_below(&seed, 3) }
			};
		for (int n = 0; n < PLANS; n++) {
			struct found next;
			int i = rnd_below(&seed, PLANS);

			while (came[i])
				i = (i + 1) % PLANS;
			came[i] = true;
			next = f[i];
			search_take_in(j, &next, true, NULL);
		}
		for (size_t i = 0; i < PLANS && kept < TOP; i++) {
			bool first = true;

			for (size_t k = 0; k < i; k++)
				first &= !(beats(&f[k].outcome, &f[i].outcome) &&
					   beats(&f[i].outcome, &f[k].outcome));
			if (first)
				assert_int_equal(j->kept[kept++].at, i);
		}
		assert_int_equal(j->n_kept, kept);
		free(j->simulated);
		free(j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_front_is_what_no_plan_beats),
		cmocka_unit_test(what_is_kept_does_not_depend_on_the_order),
	};

	return cmocka_run_group_tests_name("front", tests, NULL, NULL);
}
