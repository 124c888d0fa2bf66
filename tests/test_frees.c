/* tests/test_frees.c - what was never made is freed like anything else: each takes NULL */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inputs),
		cmocka_unit_test(what_is_built),
		cmocka_unit_test(answers),
	};

	return cmocka_run_group_tests_name("frees", tests, NULL, NULL);
}
