/* tests/test_frees.c - what was never made is freed like anything else: each takes NULL; what is more than memory
 * has is never made */
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "foretoken/cost.h"
#include "foretoken/cost_history.h"
#include "foretoken/hw.h"
#include "foretoken/models.h"
#include "foretoken/recorded.h"
#include "foretoken/reports_session.h"
#include "foretoken/sim.h"
#include "foretoken/stacks.h"
#include "foretoken/study.h"
#include "foretoken/study_plan.h"
#include "foretoken/study_ranks.h"
#include "foretoken/traces.h"
#include "tests/check.h"

static void inputs(void **state)
{
	(void)state;
	ft_prices_free(NULL);
	ft_price_history_free(NULL);
	ft_bom_free(NULL);
	ft_gpu_free(NULL);
	ft_node_free(NULL);
	ft_fabric_free(NULL);
	ft_cluster_free(NULL);
	ft_model_free(NULL);
	ft_plan_free(NULL);
	ft_ccl_free(NULL);
	ft_stack_free(NULL);
	ft_shelf_free(NULL);
	ft_scenario_free(NULL);
}

static void what_is_built(void **state)
{
	(void)state;
	ft_graph_free(NULL);
	ft_outline_free(NULL);
	ft_sketch_free(NULL);
	ft_sketched_free(NULL);
	ft_memo_free(NULL);
	ft_run_free(NULL);
}

static void answers(void **state)
{
	struct ft_outcome o = { .run = NULL };

	(void)state;
	ft_outcome_release(&o);
	ft_validation_free(NULL);
	ft_runs_free(NULL);
	ft_labels_free(NULL);
	ft_settings_free(NULL);
	ft_differences_free(NULL);
	ft_plans_free(NULL);
	ft_recording_free(NULL);
	ft_replay_free(NULL);
	ft_retiming_free(NULL);
	ft_session_free(NULL);
	ft_session_release(NULL);
	ft_ranks_free(NULL);
}

/* More than memory has bytes, one by one and as a product that is small again where it overflows:
 * one line, and exit 1. */
static void too_much_ends_the_program(void **state)
{
	static const size_t asked[][2] = { { SIZE_MAX / 2 + 1, 2 },
					   { SIZE_MAX / 8, 16 },
					   { SIZE_MAX / 16 + 2, 16 } };

	(void)state;
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		char said[64] = "";
		int end[2], status;
		pid_t pid;

		assert_int_equal(pipe(end), 0);
		pid = fork();
		if (!pid) {
			struct arena mem = { 0 };

			dup2(end[1], STDERR_FILENO);
			arena_alloc(&mem, asked[i][0], asked[i][1]);
			_exit(0);
		}
		close(end[1]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(read(end[0], said, sizeof(said) - 1) > 0);
		assert_string_equal(said, "foretoken: error: out of memory\n");
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
		close(end[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_much_ends_the_program),
		cmocka_unit_test(inputs),
		cmocka_unit_test(what_is_built),
		cmocka_unit_test(answers),
	};

	return cmocka_run_group_tests_name("frees", tests, NULL, NULL);
}
