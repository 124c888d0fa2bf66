/*
 * tests/test_stages.c - the stages of a pipeline: what each keeps, as the allocator of one rank of many measured it, and
 * where its step goes; as numbers and as JSON
 */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"
#include "reports/stages.h"
#include "tests/check.h"

/* Peaks of PyTorch's allocator on an H100 that was one rank of 8 or 16 with no network; GiB.
 * measurements/probes/h100-2026-11-27-one-of-many-unseen.jsonl.gz */
static const struct {
	const char *model, *stack, *plan;
	int stages, stage;
	double peak_gib;
} measured[] = {
	{ "{name: llama3-8b}", "torch-2.11-eager", "1f1b, parallel: {pp: 8}", 8, 0,
	  32.96416 },
	{ "{name: llama3-8b}", "torch-2.11-eager", "1f1b, parallel: {pp: 8}", 8, 3,
	  21.26261 },
	{ "{name: llama3-8b}", "torch-2.11-eager", "1f1b, parallel: {pp: 8}", 8, 7,
	  42.29131 },
	{ "{name: llama3-8b}", "torch-2.11-compile", "1f1b, parallel: {pp: 8, vpp: 2}",
	  8, 0, 38.61353 },
	{ "{name: llama3-8b}", "torch-2.11-compile", "1f1b, parallel: {pp: 8, vpp: 2}",
	  8, 3, 27.97448 },
	{ "{name: llama3-8b}", "torch-2.11-compile", "1f1b, parallel: {pp: 8, vpp: 2}",
	  8, 7, 43.29229 },
	{ "{name: llama3-70b}", "torch-2.11-eager",
	  "1f1b, recompute: full, parallel: {pp: 16}", 16, 0, 45.59975 },
	{ "{name: llama3-70b}", "torch-2.11-eager",
	  "1f1b, recompute: full, parallel: {pp: 16}", 16, 15, 72.08126 },
};

struct answer {
	struct arena mem;
	struct ft_shelf *shelf;
	struct ft_scenario *scenario;
	struct ft_outcome outcome;
};

static void answer(struct answer *a, const char *text)
{
	struct ft_error err;
	struct node *root;

	*a = (struct answer){ .shelf = ft_shelf_new() };
	root = node_read_text(&a->mem, "s", text, strlen(text), &err);
	ok_or_say(root, err);
	a->scenario = ft_scenario_from(a->shelf, root, "s", true, &err);
	ok_or_say(a->scenario, err);
	ok_or_say(ft_study_simulate(a->scenario, NULL, NULL, &a->outcome, &err), err);
}

static void done(struct answer *a)
{
	ft_outcome_release(&a->outcome);
	ft_scenario_free(a->scenario);
	ft_shelf_free(a->shelf);
	arena_release(&a->mem);
}

/* No number was set on these; the third stage with two chunks is the farthest off, by 1.1 %. */
static void peaks_are_those_of_the_allocator(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(measured) / sizeof(*measured); i++) {
		bool large = measured[i].stages == 16;
		double is, was = measured[i].peak_gib * (1 << 30);
		struct answer a;
		char text[600];

		snprintf(text, sizeof(text),
			 "{model: %s, cluster: {gpu: h100-sxm, gpus: %d}, stack: %s, "
			 "training: {sequence_length: %d, micro_batch_size: 1, "
			 "global_batch_size: %d, sharding: ddp, gradient_dtype: bf16, "
			 "master_weights: false, schedule: %s}}",
			 measured[i].model, measured[i].stages, measured[i].stack,
			 large ? 2048 : 4096, large ? 32 : 16, measured[i].plan);
		answer(&a, text);
		is = a.outcome.run->stage[measured[i].stage].peak_total_bytes;
		if (fabs(is / was - 1) > 0.012)
			fail_msg("%s, %s, stage %d: %.2f GB, measured %.2f",
				 measured[i].model, measured[i].plan, measured[i].stage,
				 is * 1e-9, was * 1e-9);
		done(&a);
	}
}

static double number(const json_t *stage, const char *of, const char *key)
{
	const json_t *n = json_object_get(json_object_get(stage, of), key);

	assert_true(json_is_number(n));
	return json_number_value(n);
}

/* Each stage's parts add up to the step; the mean over stages is the answer's, and the fullest stage its memory. */
static void stages_add_up_to_the_answer(void **state)
{
	static const char *const texts[] = {
		"{model: llama3-8b, cluster: {gpu: mi300x, gpus: 8}, training: "
		"{sequence_length: 4096, global_batch_size: 16}}",
		"{model: llama3-70b, cluster: {gpu: h100-sxm, gpus: 64}, training: "
		"{sequence_length: 4096, global_batch_size: 64, micro_batch_size: 1, "
		"recompute: full, parallel: {tp: 4, pp: 4, vpp: 2}}}",
		"{model: llama3-8b, cluster: {gpu: mi250, gpus: 8, imperfections: {slow_gpus: [{gpu: 3, speed_frac: 0.9}]}}, "
		"training: {sequence_length: 2048, global_batch_size: 32, "
		"micro_batch_size: 1, parallel: {pp: 8}}}",
		"{model: llama3-8b, cluster: {gpu: h100-sxm, gpus: 8, imperfections: "
		"{slow_gpus: [{gpu: 0, speed_frac: 0.5}]}}, training: {sequence_length: 4096, "
		"global_batch_size: 32, parallel: {tp: 2, pp: 4}}}",
	};
	static const char *const parts[] = { "compute", "exposed_communication",
					     "bubble", "host", "optimizer" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		double mean = 0, most = 0;
		struct answer a;
		json_t *j;
		size_t n;

		answer(&a, texts[i]);
		j = stages_json(a.scenario, &a.outcome);
		n = json_array_size(j);
		assert_int_equal(n, a.scenario->plan->pp);
		for (size_t k = 0; k < n; k++) {
			const json_t *stage = json_array_get(j, k);
			double sum = 0, total = 0;

			for (int p = 0; p < 5; p++)
				sum += number(stage, "breakdown_s", parts[p]);
			near_frac(sum, a.outcome.step_s, 1e-9);
			mean += number(stage, "breakdown_s", "compute") / (double)n;
			for (int m = 0; m < FT_MEMORIES; m++)
				total += number(stage, "memory_bytes_per_gpu",
						ft_memory_name((enum ft_memory)m));
			near_frac(total, number(stage, "memory_bytes_per_gpu", "total"),
				  1e-12);
			most = fmax(most, total);
			assert_int_equal(
				json_integer_value(json_object_get(stage, "stage")), k);
		}
		near_frac(most, a.outcome.memory_total_bytes, 1e-12);
		near_frac(mean, a.outcome.breakdown.compute_s, 1e-9);
		json_decref(j);
		done(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peaks_are_those_of_the_allocator),
		cmocka_unit_test(stages_add_up_to_the_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
