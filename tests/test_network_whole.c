/* tests/test_network_whole.c - a network with nothing wrong, laid out link by link, is as fast as one that is not */
#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"
#include "tests/check.h"

/* Of a scenario in one line, which is the caller's. */
static double step_of(struct ft_shelf *shelf, struct arena *mem, const char *text)
{
	struct ft_error err;
	struct node *n = node_read_text(mem, "one", text, strlen(text), &err);
	struct ft_scenario *s;
	struct ft_outcome out;
	double step_s;

	ok_or_say(n, err);
	s = ft_scenario_from(shelf, n, "one", true, &err);
	ok_or_say(s, err);
	ok_or_say(ft_study_simulate(s, NULL, NULL, &out, &err), err);
	step_s = out.step_s;
	ft_outcome_release(&out);
	ft_scenario_free(s);
	return step_s;
}

static double replicas(struct ft_shelf *shelf, int pp, int gpus, const char *model,
		       const char *more)
{
	struct arena mem = { 0 };
	double step_s = step_of(
		shelf, &mem,
		arena_printf(
			&mem,
			"{model: %s, cluster: {gpu: a100-80g, gpus: %d, fabric: ib-hdr-rail%s}, "
			"stack: megatron-core, training: {sequence_length: 1024, "
			"global_batch_size: %d, parallel: {pp: %d}}}",
			model, gpus, more, gpus, pp));

	arena_release(&mem);
	return step_s;
}

/* 24 and 32 nodes have two leaves a rail. With two stages all that ends of a tied embedding send crosses
 * between the leaves, each end's in its own direction; with four half of it does. */
static void nothing_wrong_changes_nothing(void **state)
{
	static const char *const models[] = { "gpt-1.5b",
					      "llama2-7b" }; /* one is tied */
	static const int gpus[] = { 128, 192, 256 }, stages[] = { 2, 4 };
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (int i = 0; i < 12; i++) {
		int n = gpus[i % 3], pp = stages[i / 3 % 2];
		const char *model = models[i / 6];

		near_frac(replicas(shelf, pp, n, model, ", imperfections: {}"),
			  replicas(shelf, pp, n, model, ""), 1e-9);
	}
	ft_shelf_free(shelf);
}

/* Eight GPUs a stage, in a node: all that crosses NICs goes from stage to stage, forward or back, and with
 * two chunks a stage from the last to the first and back, too. */
static double half_as_fast(struct ft_shelf *shelf, int pp, int vpp, const char *how)
{
	struct arena mem = { 0 };
	double step_s = step_of(
		shelf, &mem,
		arena_printf(
			&mem,
			"{model: {name: llama3-8b, num_hidden_layers: 16}, cluster: "
			"{gpu: h100-sxm, gpus: %d, fabric: ib-ndr-rail, %s}, "
			"stack: megatron-core, training: {sequence_length: 8192, "
			"micro_batch_size: 1, global_batch_size: 8, "
			"parallel: {tp: 8, pp: %d, vpp: %d}}}",
			8 * pp, how, pp, vpp));

	arena_release(&mem);
	return step_s;
}

static void slow_nics_slow_sends_both_ways(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (int i = 0; i < 4; i++) {
		int pp = i / 2 ? 4 : 2, vpp = 1 + i % 2;

		near_frac(
			half_as_fast(shelf, pp, vpp,
				     "imperfections: {slow_nics_frac: 1, "
				     "slow_nic_rate_frac: 0.5}"),
			half_as_fast(shelf, pp, vpp,
				     "node: {extends: hgx-h100, nics.speed: 200 Gb/s}"),
			5e-5);
	}
	ft_shelf_free(shelf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_wrong_changes_nothing),
		cmocka_unit_test(slow_nics_slow_sends_both_ways),
	};

	return cmocka_run_group_tests_name("network, whole", tests, NULL, NULL);
}
