/* traces/stack_runs.c - plans that a stack does not run, which are refused */
#include "traces/stage.h"

/* Heads that an all-to-all deals over the context group. */
static bool dealt(const struct ft_plan *plan, const struct ft_stack *stack,
		  int64_t heads, const char *what, struct ft_error *err)
{
	int64_t mine = heads > plan->tp ? heads / plan->tp : 1;

	return mine % plan->cp == 0 ||
	       ft_fail(err, NULL,
		       "cp %lld does not divide the %lld %s of a rank, which stack %s "
		       "deals over it by all-to-all",
		       (long long)plan->cp, (long long)mine, what, stack->name);
}

/* Those of a delta rule, and with that way of attention those of queries and of keys. Source:
 * Transformer Engine, which asserts both (context_parallel.py, read 2026-11-25). */
static bool heads_can_be_dealt(const struct ft_model *model, const struct ft_plan *plan,
			       const struct ft_stack *stack, struct ft_error *err)
{
	bool all = context_parallel(stack, plan) == FT_CP_ALL_TO_ALL;

	for (int64_t i = 0; i < model->n_layers; i++) {
		const struct ft_layer *l = &model->layer[i];

		if (l->linear_heads ?
			    !dealt(plan, stack, l->linear_heads,
				   "value heads of a delta rule", err) ||
				    !dealt(plan, stack, l->linear_key_heads,
					   "key heads of a delta rule", err) :
			    all && (!dealt(plan, stack, l->heads, "heads", err) ||
				    !dealt(plan, stack, l->kv_heads, "key-value heads",
					   err)))
			return false;
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
