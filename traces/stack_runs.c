/* traces/stack_runs.c - plans that a stack does not run, which are refused */
#include "traces/stage.h"

/* All-to-all deals a rank's heads over the context group, those of keys and values like those of
 * queries. Source: Transformer Engine, which asserts both (context_parallel.py, read 2026-11-25). */
static bool heads_can_be_dealt(const struct ft_model *model, const struct ft_plan *plan,
			       const struct ft_stack *stack, struct ft_error *err)
{
	enum ft_context_parallel how = context_parallel(stack, plan);

	for (int64_t l = 0; l < model->n_layers && how == FT_CP_ALL_TO_ALL; l++) {
		const struct ft_layer *x = &model->layer[l];
		int64_t heads = x->heads / plan->tp;
		int64_t few = x->kv_heads > plan->tp ? x->kv_heads / plan->tp : 1;
		bool all = heads % plan->cp == 0;

		if (!all || (!x->linear_heads && few % plan->cp))
			return ft_fail(err, NULL,
				       "cp %lld does not divide the %lld %sheads of a "
				       "rank, which stack %s deals over it by "
				       "all-to-all",
				       (long long)plan->cp,
				       (long long)(all ? few : heads),
				       all ? "key-value " : "", stack->name);
	}
	return true;
}

bool stack_runs(const struct ft_model *model, const struct ft_plan *plan,
		const struct ft_stack *stack, struct ft_error *err)
{
	if (plan_splits(plan) && !stack->layout.split_backward)
		return ft_fail(
			err, NULL,
			"schedule: %s cuts a backward in two, which stack "
			"%s does not; use 1f1b, interleaved or gpipe, or a stack "
			"with split_backward: true",
			ft_schedule_name(plan->schedule), stack->name);
	if (plan->schedule == FT_DUALPIPEV && !stack->layout.dual_pipe)
		return ft_fail(err, NULL,
			       "schedule: dualpipev is not in stack %s; use zbv, or a "
			       "stack with dual_pipe: true",
			       stack->name);
	return heads_can_be_dealt(model, plan, stack, err);
}
