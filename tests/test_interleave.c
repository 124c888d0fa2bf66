/* tests/test_interleave.c - which numbers of micro-batches end, against the engine */
#include "tests/check.h"

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"
#include "models/interleave.h"

/* How micro-batches are run. */
struct way {
	const char *schedule;
	int64_t vpp_from, vpp_to;
	bool pairs, ragged;
};

static const struct way ways[] = {
	{ "1f1b", 1, 1, false, false },	       { "gpipe", 1, 1, false, false },
	{ "interleaved", 2, 4, false, false }, { "interleaved", 2, 4, true, false },
	{ "interleaved", 2, 4, true, true },   { "zero-bubble", 1, 4, false, false },
	{ "zbv", 2, 2, false, false },	       { "dualpipev", 2, 2, false, false },
	{ "dualpipev", 2, 2, true, false },    { "dualpipev", 2, 2, true, true },
};

enum { WAYS = sizeof(ways) / sizeof(*ways), MOST_PP = 7 };

static struct ft_scenario *scenario_of(struct ft_shelf *shelf, const struct way *way,
				       int64_t pp, int64_t vpp, int64_t batch,
				       struct ft_error *err)
{
	struct arena mem = { 0 };
	struct ft_scenario *s;
	struct node *n;
	char text[700];

	snprintf(
		text, sizeof(text),
		"{model: {model_type: qwen3_moe, hidden_size: 64, num_hidden_layers: %d, "
		"num_attention_heads: 2, vocab_size: 64, intermediate_size: 64, "
		"num_experts: 4, num_experts_per_tok: 2, moe_intermediate_size: 64}, "
		"cluster: {gpu: h100-sxm, gpus: %d}, "
		"stack: megatron-core, training: {sequence_length: 64, "
		"global_batch_size: %d, micro_batch_size: 2, schedule: %s, "
		"sharding: ddp, parallel: {pp: %d, vpp: %d, ep: 2}, overlap: {ep: %s}}}",
		(int)(pp * vpp), (int)(2 * pp), (int)batch, way->schedule, (int)pp,
		(int)vpp, way->pairs ? "true" : "false");
	n = node_read_text(&mem, "s", text, strlen(text), err);
	s = n ? ft_scenario_from(shelf, n, "s", true, err) : NULL;
	arena_release(&mem);
	return s;
}

/* Does the engine come to an end? */
static bool runs(const struct ft_scenario *s, const struct ft_plan *plan,
		 struct ft_memo *memo)
{
	struct ft_stack stack = *s->stack;
	struct ft_error err;
	struct ft_graph *g;
	struct ft_sim_job job = { .cluster = s->cluster,
				  .stack = &stack,
				  .ccl = s->ccl,
				  .start = plan->step_start };
	struct ft_run *run;

	stack.layout.split_backward = stack.layout.dual_pipe = true;
	job.graph = g = ft_graph_build(s->model, plan, &stack, &err);
	ok_or_say(g, err);
	run = ft_sim_run(&job, NULL, NULL, memo, &err);
	if (!run)
		assert_non_null(strstr(err.text, "cannot finish"));
	ft_run_free(run);
	ft_graph_free(g);
	return run;
}

/* Of one shape, all numbers of micro-batches. Returns how many do not end. */
static int rule_is_the_engine(struct ft_shelf *shelf, const struct way *way, int64_t pp,
			      int64_t vpp)
{
	struct ft_error err;
	struct ft_scenario *s = scenario_of(shelf, way, pp, vpp, 8 * pp, &err);
	struct ft_memo *memo = ft_memo_new();
	int refused = 0;

	ok_or_say(s, err);
	for (int64_t m = 1; m < 3 * pp; m++) {
		struct ft_plan p = *s->plan;
		bool ends;

		p.last_micro_batch = way->ragged ? 1 : 2;
		p.micro_batches = m;
		p.global_batch = 4 * m - (way->ragged ? 2 : 0);
		ends = runs(s, &p, memo);
		refused += !ends;
		if (ends != interleave_ends(&p))
			fail_msg("%s, pp %d, vpp %d, %d micro-batches: the engine %s",
				 way->schedule, (int)pp, (int)vpp, (int)m,
				 ends ? "ends" : "does not end");
	}
	ft_memo_free(memo);
	ft_scenario_free(s);
	return refused;
}

static void what_is_refused_does_not_end_and_all_else_does(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();
	int refused[WAYS] = { 0 };

	(void)state;
	for (size_t w = 0; w < WAYS; w++)
		for (int64_t pp = 2; pp <= MOST_PP; pp++)
			for (int64_t vpp = ways[w].vpp_from; vpp <= ways[w].vpp_to;
			     vpp++)
				refused[w] +=
					rule_is_the_engine(shelf, &ways[w], pp, vpp);
	assert_true(refused[2] > 30 && refused[3] > refused[2] && refused[5] > 30);
	assert_int_equal(refused[0] + refused[1] + refused[6] + refused[7] +
				 refused[8] + refused[9],
			 0);
	ft_shelf_free(shelf);
}

/* The nearest by looking at each. */
static void the_nearest_number_ends(void **state)
{
	(void)state;
	for (int64_t pp = 2; pp < 20; pp++)
		for (int64_t vpp = 1; vpp < 5; vpp++)
			for (int64_t m = 1; m < 4 * pp; m++) {
				struct ft_plan p = { .pp = pp,
						     .vpp = vpp,
						     .micro_batches = m,
						     .schedule = FT_INTERLEAVED };
				int64_t got = interleave_nearest(&p), away = 0;

				for (;; away++) {
					p.micro_batches = m - away;
					if (interleave_ends(&p))
						break;
					p.micro_batches = m + away;
					if (interleave_ends(&p))
						break;
				}
				assert_int_equal(got, p.micro_batches);
			}
}

static void the_error_names_keys_and_the_nearest_batch(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_error err;

	(void)state;
	assert_null(scenario_of(shelf, &ways[2], 8, 4, 48, &err));
	assert_int_equal(err.line, 1);
	assert_string_equal(
		err.text,
		"global_batch_size: 48 is 12 micro-batches of each replica, which "
		"vpp 4 has in groups of pp 8: passes of the 4 left over wait for "
		"each other without end; nearest is 14 micro-batches, "
		"global_batch_size 56, or another micro_batch_size, vpp or pp");
	ft_shelf_free(shelf);
}

/* A chunk with nothing to run waits for nothing: what the rule refuses may end. */
static void empty_chunks_are_left_to_the_engine(void **state)
{
	static const char text[] =
		"{model: {name: llama3-8b, num_hidden_layers: 12}, cluster: {gpu: h100-sxm, "
		"gpus: 6}, stack: megatron-core, training: {sequence_length: 2048, "
		"global_batch_size: 9, micro_batch_size: 1, sharding: ddp, parallel: {pp: "
		"6, vpp: 2, stage_layers: [%s]}}}";
	static const char *const layers[] = { "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1",
					      "4, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1" };
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct arena mem = { 0 };
		const char *one = arena_printf(&mem, text, layers[i]);
		struct ft_error err;
		struct node *n = node_read_text(&mem, "s", one, strlen(one), &err);
		struct ft_scenario *s = ft_scenario_from(shelf, n, "s", true, &err);

		assert_int_equal(s != NULL, i);
		if (s) {
			assert_false(interleave_ends(s->plan));
			assert_true(runs(s, s->plan, s->memo));
		}
		ft_scenario_free(s);
		arena_release(&mem);
	}
	ft_shelf_free(shelf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_refused_does_not_end_and_all_else_does),
		cmocka_unit_test(the_nearest_number_ends),
		cmocka_unit_test(empty_chunks_are_left_to_the_engine),
		cmocka_unit_test(the_error_names_keys_and_the_nearest_batch),
	};

	return cmocka_run_group_tests_name("models/interleave", tests, NULL, NULL);
}
