/* tests/test_watts.c - what GPUs draw under lower power limits, in steps that the host or the GPU paces */
#include <math.h>

#include "tests/simulated.h"

struct drawn {
	double watts, step_s;
};

static struct drawn at_limit(const char *gpu, int limit_w, const char *training)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_scenario *s;
	struct drawn d = { 0 };
	struct ft_outcome o;
	struct ft_error err;
	char text[600];

	snprintf(
		text, sizeof(text),
		"{model: %s, cluster: {gpu: {extends: %s, power.limit: %d W}, gpus: 8}, "
		"training: {%s}}",
		strstr(training, "ep:") ? "gpt-oss-120b" : "qwen3-8b", gpu, limit_w,
		training);
	s = scenario_of(shelf, text, &err);
	ok_or_say(s, err);
	ok_or_say(ft_study_simulate(s, NULL, NULL, &o, &err), err);
	d.watts = o.cost.gpu_power_w;
	d.step_s = o.step_s;
	ft_outcome_release(&o);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	return d;
}

/* A step under a lower limit is as long or longer, but for 1 % that kernels beside collectives may gain by
 * starting at other times, and its GPUs draw as much or less. */
static void a_lower_limit_never_draws_more(void **state)
{
	static const char *const trainings[] = {
		"sequence_length: 1024, micro_batch_size: 4, global_batch_size: 256, "
		"parallel: {tp: 2, ep: 4}",
		"sequence_length: 1024, micro_batch_size: 1, global_batch_size: 32, "
		"sharding: fsdp",
		"sequence_length: 4096, micro_batch_size: 2, global_batch_size: 32, "
		"sharding: fsdp",
	};
	static const struct {
		const char *gpu;
		int limits_w[5];
	} cases[] = { { "b200", { 1000, 900, 800, 700, 500 } },
		      { "h100-sxm", { 700, 650, 600, 500, 400 } },
		      { "mi325x", { 1000, 900, 800, 700, 500 } } };

	(void)state;
	for (size_t t = 0; t < sizeof(trainings) / sizeof(*trainings); t++)
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			struct drawn before = { INFINITY, 0 };

			for (int k = 0; k < 5; k++) {
				struct drawn d =
					at_limit(cases[i].gpu, cases[i].limits_w[k],
						 trainings[t]);

				assert_true(d.watts <= cases[i].limits_w[k] * 1.0001);
				assert_true(d.watts <= before.watts * 1.0001);
				assert_true(d.step_s >= before.step_s * 0.99);
				before = d;
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lower_limit_never_draws_more),
	};

	return cmocka_run_group_tests_name("cost/power", tests, NULL, NULL);
}
