/* tests/test_fleets.c - sizes that a job can have: all that load, of whole nodes or an even part of one */
#include <inttypes.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study_decide.h"
#include "tests/check.h"
#include "tests/few.h"

#ifdef TESTS_FEW
enum { SIZES = 80 };
#else
enum { SIZES = 250 };
#endif

static const struct {
	const char *cluster, *training;
} jobs[] = {
	{ "{gpu: h100-sxm, gpus: 16}", "parallel: {tp: 2}" },
	{ "{gpu: h100-sxm, gpus: 8}", "parallel: {tp: 2, pp: 2}, micro_batch_size: 2" },
	{ "{gpu: mi250, gpus: 8}", "parallel: {tp: 1}" },
	{ "{gpu: mi250, gpus: 3}",
	  "parallel: {tp: 1}" }, /* no even part: as it is given */
	{ "{gpu: mi250, gpus: 4}", "parallel: {tp: 4}, micro_batch_size: 4" },
	{ "{gpu: h100-sxm, gpus: 32}", "parallel: {tp: 8, cp: 2}" },
	{ "{gpu: h100-sxm, gpus: 64}", "parallel: {tp: 4}, zero_group: 16" }, /* all */
	{ "{gpu: mi250, gpus: 32}", "parallel: {tp: 2, cp: 2}, zero_group: 32" },
	{ "{gpu: h100-sxm, gpus: 16}", "sharding: hsdp, parallel: {tp: 1}, shard: 8" },
	{ "{gpu: h100-sxm, gpus: 24}", "sharding: hsdp, parallel: {tp: 2}, shard: 4" },
};

static void a_size_is_told_where_the_job_can_have_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++) {
		char text[300];
		struct arena mem = { 0 };
		struct ft_error err;
		struct ft_shelf *shelf = ft_shelf_new();
		struct ft_scenario *s;
		struct node *n;
		int64_t told[FT_FLEETS], own;
		size_t n_told, seen = 0;

		snprintf(
			text, sizeof(text),
			"{model: llama3-8b, cluster: %s, training: {sequence_length: 1024, "
			"global_batch_size: 48, %s}}",
			jobs[i].cluster, jobs[i].training);
		n = node_read_text(&mem, "job", text, strlen(text), &err);
		ok_or_say(n, err);
		s = ft_scenario_from(shelf, n, "job", true, &err);
		ok_or_say(s, err);
		n_told = ft_study_fleets(s, told);
		own = s->cluster->gpus;
		for (int64_t gpus = 1; gpus <= SIZES; gpus++) {
			struct ft_scenario *other =
				ft_scenario_resized(s, gpus, 1, &err);
			int64_t per = s->cluster->ranks_per_node /
				      s->cluster->gpu->ranks_per_gpu;
			bool even = gpus < per ? per % gpus == 0 : gpus % per == 0;
			bool is = seen < n_told && told[seen] == gpus;

			if (is != (other && (even || gpus == own)))
				fail_msg("%s: %" PRId64 " GPUs %s", text, gpus,
					 is ? "told" : "not told");
			seen += is;
			ft_scenario_free(other);
		}
		assert_true(seen == n_told || told[seen] > SIZES);
		for (int times = 1; times <= 2; times++) { /* and the batch with it */
			struct ft_scenario *other =
				ft_scenario_resized(s, own * times, times, &err);

			ok_or_say(other, err);
			assert_int_equal(other->cluster->gpus, own * times);
			assert_int_equal(other->plan->global_batch, 48 * times);
			ft_scenario_free(other);
		}
		assert_true(n_told > 2);
		ft_scenario_free(s);
		ft_shelf_free(shelf);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_size_is_told_where_the_job_can_have_it),
	};

	return cmocka_run_group_tests_name("fleets", tests, NULL, NULL);
}
