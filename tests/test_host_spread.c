/*
 * tests/test_host_spread.c - how sure a step is of its host: against the step on a node whose host is as slow as its range says
 */
#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"
#include "tests/check.h"

#define HIGH "1.25" /* of hgx-h200 */

struct told {
	double step_s, host_frac, spread_frac;
};

static struct told tell(const char *node, const char *stack, const char *model,
			const char *training)
{
	struct arena mem = { 0 };
	struct ft_shelf *shelf = ft_shelf_new();
	const char *text =
		arena_printf(&mem,
			     "{model: %s, cluster: {gpu: h200, gpus: 2, fabric: none, "
			     "node: %s}, stack: %s, training: %s}",
			     model, node, stack, training);
	struct ft_error err;
	struct ft_outcome o;
	struct node *root = node_read_text(&mem, "s", text, strlen(text), &err);
	struct ft_scenario *s;
	struct told t;

	ok_or_say(root, err);
	s = ft_scenario_from(shelf, root, "s", true, &err);
	ok_or_say(s, err);
	ok_or_say(ft_study_simulate(s, NULL, NULL, &o, &err), err);
	t = (struct told){ .step_s = o.step_s,
			   .host_frac = o.breakdown.host_s / o.step_s,
			   .spread_frac = o.traits.host_spread_frac };
	ft_outcome_release(&o);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
	return t;
}

static const char *const slow = "{extends: hgx-h200, host_factor: {value: " HIGH
				", provenance: {kind: assumed, date: 2026-11-28}}}";

#define SMALL "{name: gpt-350m, num_hidden_layers: 4}"
#define LARGE "{name: llama3-8b, num_hidden_layers: 4}"
#define EAGER "torch-2.11-eager"

static const struct {
	const char *stack, *model, *training;
	bool paced; /* by the host */
} cases[] = {
	{ EAGER, SMALL,
	  "{sequence_length: 256, global_batch_size: 2, step_start: together}", true },
	{ EAGER, SMALL,
	  "{sequence_length: 256, global_batch_size: 4, recompute: full, sharding: ddp}",
	  true },
	{ EAGER, SMALL,
	  "{sequence_length: 512, global_batch_size: 2, parallel: {pp: 2}, sharding: ddp}",
	  true },
	{ "torch-2.11-compile", SMALL,
	  "{sequence_length: 1024, global_batch_size: 8, micro_batch_size: 4}", true },
	/* nothing waits for it yet, but it is not far ahead */
	{ EAGER, LARGE,
	  "{sequence_length: 1024, global_batch_size: 2, sharding: fsdp, step_start: together}",
	  true },
	{ "megatron-core", SMALL, "{sequence_length: 256, global_batch_size: 2}",
	  true },
	{ EAGER, LARGE,
	  "{sequence_length: 8192, global_batch_size: 8, micro_batch_size: 4}", false },
	{ "megatron-core", LARGE,
	  "{sequence_length: 8192, global_batch_size: 8, micro_batch_size: 4}", false },
};

/* (step on the slow host / step - 1) / 1.2816, or nothing where the host is ahead. */
static void a_step_is_as_unsure_as_a_slow_host_makes_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct told usual = tell("hgx-h200", cases[i].stack, cases[i].model,
					 cases[i].training);
		struct told late =
			tell(slow, cases[i].stack, cases[i].model, cases[i].training);

		if (cases[i].paced) {
			assert_true(usual.spread_frac > 0.02);
			near_frac(usual.spread_frac,
				  (late.step_s / usual.step_s - 1) / 1.2816, 1e-6);
		} else {
			assert_true(usual.host_frac < 0.02);
			assert_true(usual.spread_frac == 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_as_unsure_as_a_slow_host_makes_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
