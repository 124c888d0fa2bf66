/*
 * tests/test_blocking.c - CUDA_LAUNCH_BLOCKING=1 (layout.blocking_launches): the host waits for each op, so that a step
 * takes all of its ops and their launches one behind the other
 */
#include "tests/simulated.h"
#include "tests/works.h"

#define MODEL "{name: llama3-8b, num_hidden_layers: 4}"

static double step_s(const char *stack, const char *item)
{
	char text[512];

	snprintf(
		text, sizeof(text),
		"{model: %s, stack: %s, cluster: {gpu: a100-80g, gpus: 8}, training: "
		"{sequence_length: 2048, global_batch_size: 8, precision: bf16, sharding: "
		"ddp, overlap: {dp: true}}}",
		MODEL, stack);
	return simulated_s(text, item);
}

static void each_op_is_waited_for(void **state)
{
	(void)state;
	for (int blocks = 0; blocks < 2; blocks++) {
		struct parts p;

		build(&p, MODEL,
		      "{sequence_length: 2048, global_batch_size: 8, sharding: ddp}",
		      blocks ? "bigscience-2022" : "megatron-deepspeed-2022", 8);
		for (size_t i = 0; i < p.graph->n_segments; i++)
			for (size_t k = 0; k < p.graph->segment[i].n_ops; k++)
				assert_int_equal(p.graph->segment[i].op[k].host_waits,
						 blocks);
		drop(&p);
	}
}

/* Reductions beside the backward hide no longer, and the host's time adds up. */
static void nothing_overlaps(void **state)
{
	double blocked = step_s("bigscience-2022", NULL);
	double all = step_s("bigscience-2022", "");

	(void)state;
	assert_true(blocked >= all);
	assert_true(step_s("megatron-deepspeed-2022", NULL) <
		    step_s("megatron-deepspeed-2022", ""));
	assert_true(blocked > step_s("megatron-deepspeed-2022", NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_op_is_waited_for),
		cmocka_unit_test(nothing_overlaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
